/* SPDX-License-Identifier: Apache-2.0 */
/* io/sim and io/registry: what a spec may say, readings, limits, faults. */
#include "io/registry.h"
#include "io/sim/sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GPU0 "GPU-51a70000-0000-4000-8000-000000000000"
#define GPU7 "GPU-51a70000-0000-4000-8000-000000000007"

struct site {
    struct tw_device dev;
    const struct tw_gpu_info *gpu;
    const struct tw_job_info *job;
    size_t n_gpu, n_job;
    struct tw_gpu_sample gs[64];
    struct tw_job_sample js[64];
    struct tw_site_sample sample;
};

static void site_open(struct site *s, const char *text)
{
    struct tw_why why = {""};
    if (tw_device_open(text, &s->dev, &why) != TW_OK)
        fail_msg("%s: %s", text, why.text);
    assert_int_equal(s->dev.source_ops->describe(s->dev.source, &s->gpu, &s->n_gpu, &s->job, &s->n_job, NULL),
                     TW_OK);
    assert_true(s->n_gpu <= 64 && s->n_job <= 64);
    s->sample = (struct tw_site_sample){.gpu = s->gs, .job = s->js};
}

static void turn(struct site *s, double dt_s)
{
    assert_int_equal(s->dev.source_ops->advance(s->dev.source, dt_s, NULL), TW_OK);
    assert_int_equal(s->dev.source_ops->read(s->dev.source, &s->sample, NULL), TW_OK);
}

static void write_cap(struct site *s, const char *uuid, double cap_w)
{
    assert_int_equal(s->dev.cap_ops->write(s->dev.cap, uuid, cap_w, NULL), TW_OK);
}

static void read_cap(struct site *s, const char *uuid, double *requested_w, double *enforced_w)
{
    assert_int_equal(s->dev.cap_ops->read(s->dev.cap, uuid, requested_w, enforced_w, NULL), TW_OK);
}

static void test_bad_spec(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } c[] = {
        {"sun:seed=1", "\"sun\""},
        {"sun", "sim"},
        {"", "sim"},
        {"sim:sead=1", "\"sead\""},
        {"sim:seed=abc", "seed"},
        {"sim:seed=-1", "seed"},
        {"sim:seed", "word=value"},
        {"sim:gpus=0", "0 GPU"},
        {"sim:gpus=1e9", "gpus"},
        {"sim:gpus=4", "10 jobs on 4 GPUs"},
        {"sim:gpus=99999", "gpus"},
        {"sim:jobs=0", "0 jobs"},
        {"sim:base_w=-5", "base_w"},
        {"sim:noise=nan", "noise"},
        {"sim:noise=11", "noise"},
        {"sim:stuck=GPU-none", "GPU-none"},
        {"sim:clamp=" GPU0, "UUID@WATTS"},
        {"sim:clamp=" GPU0 "@x", "clamp"},
        {"sim:ignore=" GPU0 "0", "ignore"},
        {"sim:gpus=8,jobs=2,stuck=GPU-51a70000-0000-4000-8000-000000000008", "stuck"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct tw_device dev = {0};
        struct tw_why why = {""};
        enum tw_err err = tw_device_open(c[i].text, &dev, &why);
        if (err != TW_EINVAL)
            fail_msg("\"%s\": got %s", c[i].text, tw_err_text(err));
        if (!strstr(why.text, c[i].says))
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", c[i].text, why.text, c[i].says);
        assert_null(dev.source);
    }
}

static void test_describe(void **state)
{
    (void)state;
    struct site s = {0};
    site_open(&s, "sim");
    assert_int_equal(s.n_gpu, 64);
    assert_int_equal(s.n_job, 10);
    assert_string_equal(s.gpu[0].uuid, GPU0);
    assert_string_equal(s.gpu[63].node, "rack2/n08");
    size_t of_job[10] = {0}, largest = 0, smallest = 64;
    for (size_t i = 0; i < s.n_gpu; i++) {
        assert_true(s.gpu[i].job < 10);
        of_job[s.gpu[i].job]++;
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(s.gpu[i].uuid, s.gpu[k].uuid);
        assert_true(s.gpu[i].limit_min_w > 0.0 && s.gpu[i].limit_max_w > s.gpu[i].limit_min_w);
    }
    for (size_t k = 0; k < 10; k++) {
        largest = of_job[k] > largest ? of_job[k] : largest;
        smallest = of_job[k] < smallest ? of_job[k] : smallest;
    }
    assert_int_equal(largest, 16);
    assert_int_equal(smallest, 4);
    tw_device_close(&s.dev);

    site_open(&s, "sim:gpus=13,jobs=12,seed=3"); /* more jobs than kinds, hardly more GPUs than jobs */
    assert_int_equal(s.n_job, 12);
    memset(of_job, 0, sizeof of_job);
    for (size_t i = 0; i < s.n_gpu; i++)
        assert_true(s.gpu[i].job != TW_NO_JOB);
    assert_string_equal(s.job[10].name, "pt-dense-70b-2");
    tw_device_close(&s.dev);
}

static void test_reading(void **state)
{
    (void)state;
    struct site s = {0};
    site_open(&s, "sim:base_w=12kW");
    assert_int_equal(s.dev.source_ops->read(s.dev.source, &s.sample, NULL), TW_OK);
    assert_int_equal(s.sample.now_us, 0);
    assert_false(s.gs[0].fresh); /* nothing has happened yet */
    for (int i = 0; i < 10; i++)
        assert_int_equal(s.dev.source_ops->advance(s.dev.source, 0.1, NULL), TW_OK);
    turn(&s, 0.0);
    assert_int_equal(s.sample.now_us, 1000000);
    assert_true(fabs(s.sample.base_w - 12000.0) < 1e-9);
    for (size_t i = 0; i < s.n_gpu; i++) {
        assert_true(s.gs[i].fresh);
        assert_int_equal(s.gs[i].time_us, 1000000);
        for (int c = 0; c < TW_CH_COUNT; c++)
            if (!isnan(s.gs[i].ch[c]) && !((double)s.gs[i].ch[c] >= tw_channel_table[c].lowest &&
                                           (double)s.gs[i].ch[c] <= tw_channel_table[c].highest))
                fail_msg("GPU %zu: %s reads %g", i, tw_channel_table[c].name, (double)s.gs[i].ch[c]);
        assert_true((double)s.gs[i].ch[TW_CH_POWER_W] > 60.0);
        assert_true(isnan(s.gs[i].ch[TW_CH_PCIE_TX_BYTES_S])); /* not simulated: unknown, not 0 */
    }
    double total = s.js[0].total;
    turn(&s, 10.0);
    assert_true(fabs(s.js[0].throughput - (s.js[0].total - total) / 10.0) < 1e-6 * s.js[0].throughput);
    turn(&s, 0.0); /* no time has passed: the same reading again, and it says so */
    assert_false(s.gs[0].fresh || s.js[0].fresh);
    assert_int_equal(s.dev.source_ops->advance(s.dev.source, -1.0, NULL), TW_EINVAL);
    assert_int_equal(s.dev.source_ops->advance(s.dev.source, NAN, NULL), TW_EINVAL);
    tw_device_close(&s.dev);
}

static void test_limits(void **state)
{
    (void)state;
    struct site s = {0};
    double requested_w, enforced_w;
    site_open(&s, "sim");
    turn(&s, 1.0);
    read_cap(&s, GPU0, &requested_w, &enforced_w);
    assert_true(fabs(requested_w - 700.0) < 1e-9 && fabs(enforced_w - 700.0) < 1e-9);
    write_cap(&s, GPU0, 321.0);
    read_cap(&s, GPU0, &requested_w, &enforced_w);
    assert_true(fabs(requested_w - 321.0) < 1e-9 && fabs(enforced_w - 700.0) < 1e-9); /* not in force yet */
    turn(&s, 1.0);
    read_cap(&s, GPU0, &requested_w, &enforced_w);
    assert_true(fabs(enforced_w - 321.0) < 1e-9);
    turn(&s, 3.0);
    assert_true((double)s.gs[0].ch[TW_CH_POWER_W] < 325.0);
    assert_true(fabs((double)s.gs[0].ch[TW_CH_CAP_ENFORCED_W] - 321.0) < 1e-3);

    struct tw_why why;
    const double bad_w[] = {199.9, 700.1, NAN, -1.0, INFINITY};
    for (size_t i = 0; i < sizeof bad_w / sizeof *bad_w; i++)
        assert_int_equal(s.dev.cap_ops->write(s.dev.cap, GPU0, bad_w[i], &why), TW_ERANGE);
    assert_non_null(strstr(why.text, GPU0));
    assert_int_equal(s.dev.cap_ops->write(s.dev.cap, "GPU-x", 300.0, &why), TW_ENOENT);
    assert_int_equal(s.dev.cap_ops->read(s.dev.cap, "0", &requested_w, &enforced_w, &why), TW_ENOENT);
    tw_device_close(&s.dev);
}

static void test_faults(void **state)
{
    (void)state;
    struct site s = {0};
    double requested_w, enforced_w;
    site_open(&s, "sim:stuck=" GPU0 ",ignore=GPU-51a70000-0000-4000-8000-000000000001,clamp=" GPU7 "@400");
    turn(&s, 1.0);
    assert_false(s.gs[0].fresh);
    assert_true(s.gs[1].fresh && s.gs[7].fresh);
    for (size_t i = 0; i < 8; i++)
        write_cap(&s, s.gpu[i].uuid, 300.0);
    turn(&s, 5.0);
    assert_int_equal(s.gs[0].time_us, 0); /* its last time stands */
    assert_int_equal(s.dev.cap_ops->read(s.dev.cap, GPU0, &requested_w, &enforced_w, NULL), TW_EIO);
    read_cap(&s, s.gpu[1].uuid, &requested_w, &enforced_w);
    assert_true(fabs(requested_w - 300.0) < 1e-9 && fabs(enforced_w - 700.0) < 1e-9);
    read_cap(&s, GPU7, &requested_w, &enforced_w);
    assert_true(fabs(requested_w - 300.0) < 1e-9 && fabs(enforced_w - 400.0) < 1e-9);
    read_cap(&s, s.gpu[2].uuid, &requested_w, &enforced_w);
    assert_true(fabs(enforced_w - 300.0) < 1e-9);
    tw_device_close(&s.dev);
}

static void test_truth(void **state)
{
    (void)state;
    struct site s = {0};
    site_open(&s, "sim:noise=0");
    double free_w, free_rate, power_w = -1.0, rate = -1.0;
    turn(&s, 1.0);
    for (uint32_t k = 0; k < s.n_job; k++) {
        size_t n = 0;
        for (size_t i = 0; i < s.n_gpu; i++)
            n += s.gpu[i].job == k;
        assert_int_equal(s.dev.source_ops->truth(s.dev.source, k, 700.0, &free_w, &free_rate, NULL), TW_OK);
        assert_int_equal(s.dev.source_ops->truth(s.dev.source, k, 300.0, &power_w, &rate, NULL), TW_OK);
        assert_true(power_w < free_w && rate < free_rate && rate > 0.0);
        assert_true(power_w <= 300.0 * (double)n && power_w > 250.0 * (double)n);
    }
    rate = -1.0;
    assert_int_equal(s.dev.source_ops->truth(s.dev.source, 10, 300.0, &power_w, &rate, NULL), TW_EINVAL);
    assert_true(rate < 0.0); /* untouched */
    tw_device_close(&s.dev);
}

static void test_registry(void **state)
{
    (void)state;
    for (size_t i = 0; i < tw_backend_count; i++) {
        const struct tw_backend *b = &tw_backend_table[i];
        assert_int_equal(b->source->abi, TW_SOURCE_ABI);
        assert_true(b->source->name && b->source->help && b->source->open && b->source->close &&
                    b->source->describe && b->source->read);
        b->source->close(NULL);
        if (b->cap) {
            assert_int_equal(b->cap->abi, TW_CAP_ABI);
            assert_true(b->cap->open && b->cap->close && b->cap->write && b->cap->read);
            b->cap->close(NULL);
        }
    }
    tw_device_close(NULL);
    struct tw_device none = {0};
    tw_device_close(&none);
    struct tw_cap *cap = NULL;
    assert_int_equal(tw_sim_cap.open("", NULL, &cap, NULL), TW_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_spec), cmocka_unit_test(test_describe), cmocka_unit_test(test_reading),
        cmocka_unit_test(test_limits),   cmocka_unit_test(test_faults),   cmocka_unit_test(test_truth),
        cmocka_unit_test(test_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
