/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt record, then import: every value of every channel comes back as it was read. */
#include "io/file/import.h"
#include "io/registry.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SPEC "sim:seed=9,gpus=12,jobs=3,stuck=GPU-51a70000-0000-4000-8000-000000000005"
#define GPUS 12
#define ROWS 200

static void check_back(const char *path)
{
    struct tw_import *imp = NULL;
    struct tw_why why = {""};
    if (tw_import_read(path, &imp, &why) != TW_OK)
        fail_msg("%s", why.text);
    assert_string_equal(imp->format, "tokwatt-csv");
    assert_int_equal(imp->n_series, GPUS - 1); /* the stuck one was never read */
    assert_int_equal(imp->rows, (GPUS - 1) * ROWS);
    for (int i = 0; i < TW_REJECT_COUNT; i++)
        assert_int_equal(imp->rejected[i].count, 0);

    struct tw_device dev;
    const struct tw_gpu_info *gpu;
    const struct tw_job_info *job;
    size_t n_gpu, n_job;
    struct tw_gpu_sample gs[GPUS];
    struct tw_job_sample js[3];
    struct tw_site_sample sample = {.gpu = gs, .job = js};
    assert_int_equal(tw_device_open(SPEC, &dev, NULL), TW_OK);
    assert_int_equal(dev.source_ops->describe(dev.source, &gpu, &n_gpu, &job, &n_job, NULL), TW_OK);
    for (size_t t = 0; t < ROWS; t++) {
        assert_int_equal(dev.source_ops->advance(dev.source, 0.5, NULL), TW_OK);
        assert_int_equal(dev.source_ops->read(dev.source, &sample, NULL), TW_OK);
        for (size_t k = 0; k < imp->n_series; k++) {
            const struct tw_series *s = &imp->series[k];
            size_t i = k < 5 ? k : k + 1;
            assert_string_equal(s->uuid, gpu[i].uuid);
            assert_string_equal(s->model, gpu[i].model);
            assert_int_equal(s->time_us[t], (int64_t)t * 500000);
            for (int c = 0; c < TW_CH_COUNT; c++)
                if (!isnan(gs[i].ch[c])) {
                    assert_non_null(s->ch[c]);
                    assert_memory_equal(&s->ch[c][t], &gs[i].ch[c], sizeof(float));
                } else {
                    assert_true(!s->ch[c] || isnan(s->ch[c][t]));
                }
        }
    }
    tw_device_close(&dev);
    tw_import_free(imp);
}

static void test_round_trip(void **state)
{
    (void)state;
    char folder[] = "/tmp/tokwatt-record-XXXXXX", path[64], command[512];
    static const char *const name[] = {"plain.csv", "packed.csv.gz"};
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        (void)snprintf(command, sizeof command,
                       "'%s' record %s --source %s --period 500ms --for 100s > /dev/null", getenv("TOKWATT"),
                       path, SPEC);
        assert_int_equal(system(command), 0);
        check_back(path);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
