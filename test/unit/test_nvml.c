/* SPDX-License-Identifier: Apache-2.0 */
/* io/nvml through the true dlopen path, against the fake driver (test/fake/nvml) with each of its faults. Tests
 * named test_req_NN are the requirements of users of other tools, by number. No test looks at the clock: each
 * waits for what must come, and fails when it has not come for a very long time. */
#include "io/nvml/nvml.h"
#include "io/nvml/nvml_read.h"
#include "io/registry.h"
#include "sys/clock.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define N 8
#define PATIENCE 6000 /* steps of 10 ms */
#define QUICK ",period=20ms,deadline=1s,retry=20ms"

static char dir[256], lib[512], faults_path[300];

static const char *uuid(unsigned i)
{
    static char text[4][48];
    static unsigned turn;
    char *t = text[turn++ % 4];
    (void)snprintf(t, sizeof text[0], "GPU-51a70000-0000-4000-8000-%012x", i);
    return t;
}

static void faults(const char *text)
{
    char beside[320];
    (void)snprintf(beside, sizeof beside, "%s.new", faults_path);
    FILE *f = fopen(beside, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(beside, faults_path), 0);
}

static int calm(void **state)
{
    (void)state;
    faults("");
    return 0;
}

struct box {
    struct tw_device dev;
    const struct tw_gpu_info *info;
    size_t n;
    struct tw_gpu_sample gpu[N], good[N]; /* the last sample; the last fresh one of each */
    unsigned fresh[N];                    /* fresh readings so far */
    struct tw_job_sample job[1];
    struct tw_site_sample sample;
};

static void describe(struct box *b)
{
    const struct tw_job_info *job = NULL;
    size_t n_job = 1;
    assert_int_equal(b->dev.source_ops->describe(b->dev.source, &b->info, &b->n, &job, &n_job, NULL), TW_OK);
    assert_int_equal(n_job, 0);
    assert_true(b->n <= N);
}

static void box_open(struct box *b, const char *more)
{
    char text[800];
    struct tw_why why = {""};
    *b = (struct box){0};
    (void)snprintf(text, sizeof text, "nvml:path=%s%s", lib, more);
    if (tw_device_open(text, &b->dev, &why) != TW_OK)
        fail_msg("%s: %s", text, why.text);
    b->sample = (struct tw_site_sample){.gpu = b->gpu, .job = b->job};
    describe(b);
}

static void look(struct box *b)
{
    struct timespec nap = {.tv_sec = 0, .tv_nsec = 10000000};
    (void)nanosleep(&nap, NULL);
    assert_int_equal(b->dev.source_ops->read(b->dev.source, &b->sample, NULL), TW_OK);
    for (size_t i = 0; i < b->n; i++)
        if (b->gpu[i].fresh) {
            b->good[i] = b->gpu[i];
            b->fresh[i]++;
        }
}

static struct tw_nvml_info about(struct box *b, size_t i)
{
    struct tw_nvml_info info;
    tw_nvml_look(b->dev.source, i, &info);
    return info;
}

/* Look until the condition holds. */
#define UNTIL(b, condition)                                                                                    \
    do {                                                                                                       \
        int until_left = PATIENCE;                                                                             \
        do {                                                                                                   \
            look(b);                                                                                           \
        } while (!(condition) && --until_left > 0);                                                            \
        if (until_left == 0)                                                                                   \
            fail_msg("line %d: never came: %s", __LINE__, #condition);                                         \
    } while (0)

static unsigned all_fresh(const struct box *b, unsigned at_least)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->fresh[i] < at_least)
            return 0;
    return 1;
}

static double ch(const struct box *b, size_t i, enum tw_channel c)
{
    return (double)b->gpu[i].ch[c];
}

static enum tw_err put(struct box *b, unsigned i, double limit_w, struct tw_why *why)
{
    return b->dev.cap_ops->write(b->dev.cap, uuid(i), limit_w, why);
}

static void get(struct box *b, unsigned i, double *requested_w, double *enforced_w)
{
    struct tw_why why = {""};
    if (b->dev.cap_ops->read(b->dev.cap, uuid(i), requested_w, enforced_w, &why) != TW_OK)
        fail_msg("%s", why.text);
}

/* ---- opening ---- */

static void test_bad_spec(void **state)
{
    (void)state;
    static const char *const bad[][2] = {{"nvml:perod=1s", "perod"},       {"nvml:period", "word=value"},
                                         {"nvml:period=0", "period"},      {"nvml:period=nan", "period"},
                                         {"nvml:deadline=0s", "deadline"}, {"nvml:wait=2", "wait"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tw_device dev = {0};
        struct tw_why why = {""};
        assert_int_equal(tw_device_open(bad[i][0], &dev, &why), TW_EINVAL);
        if (!strstr(why.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], why.text);
    }
}

static void test_req_15_no_library_says_so(void **state)
{
    (void)state;
    struct tw_device dev = {0};
    struct tw_why why = {""};
    assert_int_equal(tw_device_open("nvml:path=/nonexistent/libnvidia-ml.so.1", &dev, &why), TW_EUNSUPPORTED);
    assert_non_null(strstr(why.text, "/nonexistent/"));
    assert_null(strchr(why.text, '\n'));
    assert_null(dev.source);

    char text[600];
    (void)snprintf(text, sizeof text, "nvml:path=%s/libnvidia-ml-torn.so", getenv("TW_FAKE_NVML_DIR"));
    assert_int_equal(tw_device_open(text, &dev, &why), TW_EUNSUPPORTED);
    assert_non_null(strstr(why.text, "nvmlSystemGetDriverVersion"));

    faults("* nodriver\n");
    (void)snprintf(text, sizeof text, "nvml:path=%s", lib);
    assert_int_equal(tw_device_open(text, &dev, &why), TW_EUNSUPPORTED);
    assert_non_null(strstr(why.text, "not loaded"));
}

static void test_req_15_library_found_in_a_folder_and_by_environment(void **state)
{
    (void)state;
    struct nv_lib l = {0};
    assert_int_equal(nv_lib_open(getenv("TW_FAKE_NVML_DIR"), &l, NULL), TW_OK);
    assert_string_equal(l.path, lib);
    nv_lib_close(&l);
    char words[800];
    (void)snprintf(words, sizeof words, "/nonexistent:%s", getenv("TW_FAKE_NVML_DIR"));
    assert_int_equal(setenv("TW_NVML_PATH", words, 1), 0);
    assert_int_equal(nv_lib_open("", &l, NULL), TW_OK);
    assert_string_equal(l.path, lib);
    nv_lib_close(&l);
    assert_int_equal(unsetenv("TW_NVML_PATH"), 0);
}

static void test_req_15_driver_comes_late_goes_and_comes_back(void **state)
{
    (void)state;
    struct box b;
    faults("* nodriver\n");
    box_open(&b, QUICK ",wait=1");
    assert_int_equal(b.n, 0);
    faults("");
    int left = PATIENCE;
    for (; b.n < N && left > 0; left--) {
        look(&b);
        describe(&b);
    }
    assert_int_equal(b.n, N);
    UNTIL(&b, all_fresh(&b, 3));
    struct tw_nvml_driver d;
    tw_nvml_look_driver(b.dev.source, &d);
    assert_true(d.up);
    assert_string_equal(d.driver, "580.0.0");
    assert_int_equal(d.cuda, 13000);

    /* Reload: every handle is void, limits are back at their default; each GPU keeps its place. */
    size_t k = 0; /* whoever says first who it is has the first place */
    while (k < N && strcmp(b.info[k].uuid, uuid(4)) != 0)
        k++;
    assert_true(k < N);
    assert_int_equal(put(&b, 4, 300.0, NULL), TW_OK);
    UNTIL(&b, fabs(ch(&b, k, TW_CH_CAP_ENFORCED_W) - 300.0) < 0.01);
    char first[48];
    memcpy(first, b.info[0].uuid, sizeof first);
    faults("* reload 300ms\n");
    UNTIL(&b, about(&b, k).state == TW_NVML_LOST);
    memset(b.fresh, 0, sizeof b.fresh);
    UNTIL(&b, all_fresh(&b, 3) && ch(&b, k, TW_CH_CAP_ENFORCED_W) > 699.0);
    describe(&b);
    assert_int_equal(b.n, N);
    assert_string_equal(b.info[0].uuid, first);
    tw_nvml_look_driver(b.dev.source, &d);
    assert_true(d.reloads >= 1);
    assert_int_equal(put(&b, 4, 350.0, NULL), TW_OK); /* the writer finds the new driver by itself */
    double asked = 0.0, held = 0.0;
    get(&b, 4, &asked, &held);
    assert_true(fabs(asked - 350.0) < 1e-6);
    assert_int_equal(put(&b, 4, 700.0, NULL), TW_OK);
    tw_device_close(&b.dev);
}

static void test_req_14_handles_released_and_taken(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, QUICK);
    b.dev.cap_ops->close(b.dev.cap); /* it holds the library as well */
    b.dev.cap_ops = NULL;
    b.dev.cap = NULL;
    UNTIL(&b, all_fresh(&b, 2));
    struct tw_why why = {""};
    assert_int_equal(tw_nvml_release(b.dev.source, &why), TW_OK);
    void *h = dlopen(lib, RTLD_NOW | RTLD_NOLOAD);
    assert_null(h); /* nothing of it is mapped: the driver could be unloaded */
    look(&b);
    memset(b.fresh, 0, sizeof b.fresh);
    for (int i = 0; i < 30; i++)
        look(&b);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(b.fresh[i], 0);
        assert_int_equal(about(&b, i).state, TW_NVML_RELEASED);
    }
    tw_nvml_take(b.dev.source);
    UNTIL(&b, all_fresh(&b, 3));

    faults("5 stuck 60s\n");
    UNTIL(&b, about(&b, 5).state == TW_NVML_STUCK);
    assert_int_equal(tw_nvml_release(b.dev.source, &why), TW_EIO); /* not while somebody hangs in it */
    memset(b.fresh, 0, sizeof b.fresh);
    UNTIL(&b, b.fresh[0] >= 3 && b.fresh[7] >= 3);
    faults("");
    UNTIL(&b, b.fresh[5] >= 2);
    tw_device_close(&b.dev);
}

/* ---- readings ---- */

static void test_req_01_known_by_uuid_and_pci(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, QUICK);
    assert_int_equal(b.n, N);
    for (unsigned i = 0; i < N; i++) {
        char pci[20];
        (void)snprintf(pci, sizeof pci, "00000000:%02X:00.0", 0x18U + 0x10U * i);
        assert_string_equal(b.info[i].uuid, uuid(i));
        assert_string_equal(b.info[i].pci, pci);
        assert_string_equal(b.info[i].model, "Tokwatt simulated H100");
    }
    static const char *const no[] = {"0", "3", "", "00000000:18:00.0", "gpu0", "GPU-51a7"};
    double asked = 0.0, held = 0.0;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        assert_int_equal(b.dev.cap_ops->write(b.dev.cap, no[i], 400.0, NULL), TW_ENOENT);
        assert_int_equal(b.dev.cap_ops->read(b.dev.cap, no[i], &asked, &held, NULL), TW_ENOENT);
    }
    for (unsigned i = 0; i < 200; i++) { /* more wrong names than there are desks */
        char name[48];
        (void)snprintf(name, sizeof name, "GPU-none-%u", i);
        assert_int_equal(b.dev.cap_ops->write(b.dev.cap, name, 400.0, NULL), TW_ENOENT);
    }
    for (unsigned i = 0; i < N; i++) {
        get(&b, i, &asked, &held);
        assert_true(asked > 699.0 && held > 699.0); /* none was touched */
    }
    tw_device_close(&b.dev);
}

static const enum tw_channel read_channels[] = {
    TW_CH_POWER_W,        TW_CH_POWER_INSTANT_W, TW_CH_CAP_W,        TW_CH_CAP_ENFORCED_W, TW_CH_UTIL_FRAC,
    TW_CH_MEM_USED_BYTES, TW_CH_SM_CLOCK_HZ,     TW_CH_MEM_CLOCK_HZ, TW_CH_TEMP_C,
};
#define N_READ (sizeof read_channels / sizeof *read_channels)

static unsigned known(const struct box *b, size_t i)
{
    unsigned n = 0;
    for (size_t k = 0; k < N_READ; k++)
        n += isfinite(ch(b, i, read_channels[k])) ? 1U : 0U;
    return n;
}

static void test_req_02_missing_is_never_a_number(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "1 na power average instant energy memory temp clocks limit enforced util reasons range\n",
        "1 blank power average instant energy memory temp clocks limit enforced util reasons range\n",
        "1 error 999 power average instant energy memory temp clocks limit enforced util reasons range\n",
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct box b;
        box_open(&b, QUICK);
        UNTIL(&b, all_fresh(&b, 1) && known(&b, 1) == N_READ);
        faults(cases[k]);
        UNTIL(&b, known(&b, 1) == 0);
        for (int c = 0; c < TW_CH_COUNT; c++)
            if (c != TW_CH_SM_ACTIVE_FRAC && c != TW_CH_TENSOR_ACTIVE_FRAC && c != TW_CH_DRAM_ACTIVE_FRAC &&
                c != TW_CH_ENERGY_J && isfinite(ch(&b, 1, (enum tw_channel)c)))
                fail_msg("case %zu: %s is %g", k, tw_channel_table[c].name, ch(&b, 1, (enum tw_channel)c));
        assert_false(b.gpu[1].fresh);
        assert_int_equal(known(&b, 0), N_READ);
        tw_device_close(&b.dev);
        faults("");
    }

    /* A live board does not draw 0 W, run at 0 MHz, 0 degrees or under a limit of 0; 0 % at work it may be. */
    struct box b;
    box_open(&b, QUICK);
    faults("2 zero power average instant energy memory temp clocks limit enforced\n");
    UNTIL(&b, known(&b, 2) == 1);
    assert_true(isfinite(ch(&b, 2, TW_CH_UTIL_FRAC)));
    tw_device_close(&b.dev);
}

static void test_req_02_age_and_staleness(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, QUICK);
    UNTIL(&b, all_fresh(&b, 2));
    faults("3 stuck 60s\n");
    UNTIL(&b, about(&b, 3).state == TW_NVML_STUCK);
    int64_t stood_us = b.gpu[3].time_us;
    UNTIL(&b, isnan(ch(&b, 3, TW_CH_POWER_W)));   /* an old value is not published ... */
    assert_int_equal(b.gpu[3].time_us, stood_us); /* ... and its time stands */
    assert_false(b.gpu[3].fresh);
    assert_true(b.sample.now_us - stood_us >= 1000000);
    assert_true(about(&b, 3).age_s > 1.0);
    faults("");
    UNTIL(&b, isfinite(ch(&b, 3, TW_CH_POWER_W)));
    tw_device_close(&b.dev);
}

static void test_req_03_average_and_instant_told_apart(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, QUICK);
    UNTIL(&b, all_fresh(&b, 1));
    assert_true(fabs(about(&b, 0).power_window_s - 1.0) < 1e-9);
    assert_int_equal(put(&b, 0, 300.0, NULL), TW_OK);
    /* The mean of a second falls behind the instant one when power drops ... */
    UNTIL(&b, ch(&b, 0, TW_CH_POWER_W) - ch(&b, 0, TW_CH_POWER_INSTANT_W) > 60.0);
    /* ... and they meet when it has settled. */
    UNTIL(&b, fabs(ch(&b, 0, TW_CH_POWER_W) - ch(&b, 0, TW_CH_POWER_INSTANT_W)) < 10.0 &&
                  ch(&b, 0, TW_CH_POWER_W) < 310.0);
    assert_int_equal(put(&b, 0, 700.0, NULL), TW_OK);

    faults("0 na fields\n"); /* without the batch: nvmlDeviceGetPowerUsage, whose window the capability tells */
    UNTIL(&b, isnan(ch(&b, 0, TW_CH_POWER_INSTANT_W)) && isfinite(ch(&b, 0, TW_CH_POWER_W)));
    assert_true(fabs(about(&b, 0).power_window_s - 1.0) < 1e-9);
    tw_device_close(&b.dev);
}

static void test_req_03_repeats_are_not_fresh(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, ",period=10ms,deadline=1s"); /* ten times as fast as the sensor */
    UNTIL(&b, all_fresh(&b, 1));
    unsigned reads = 0, fresh = 0;
    double last_j = ch(&b, 0, TW_CH_ENERGY_J);
    for (; fresh < 8 && reads < PATIENCE; reads++) {
        look(&b);
        if (!b.gpu[0].fresh)
            continue;
        assert_true(ch(&b, 0, TW_CH_ENERGY_J) > last_j); /* the counter tells that the sensor moved */
        last_j = ch(&b, 0, TW_CH_ENERGY_J);
        fresh++;
    }
    assert_int_equal(fresh, 8);
    assert_true(reads >= 2 * fresh);

    faults("0 frozen\n"); /* all sensors stand still: no reading, and soon no number */
    UNTIL(&b, isnan(ch(&b, 0, TW_CH_POWER_W)));
    assert_true(isfinite(ch(&b, 1, TW_CH_POWER_W)));
    tw_device_close(&b.dev);
}

static void test_req_04_energy_survives_a_reset(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, QUICK);
    UNTIL(&b, all_fresh(&b, 2) && ch(&b, 0, TW_CH_ENERGY_J) > 50.0);
    double before_j = ch(&b, 0, TW_CH_ENERGY_J);
    faults("0 reset\n");
    UNTIL(&b, about(&b, 0).energy_resets == 1 && (assert_true(!(ch(&b, 0, TW_CH_ENERGY_J) < before_j)), 1));
    UNTIL(&b, ch(&b, 0, TW_CH_ENERGY_J) > before_j + 200.0);
    /* Idle or busy the plant's H100 draws 75 to 720 W: what was counted since lies between. */
    assert_true(ch(&b, 0, TW_CH_ENERGY_J) < before_j + 2000.0);
    tw_device_close(&b.dev);
}

static void test_req_05_one_worker_per_device(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, QUICK);
    UNTIL(&b, all_fresh(&b, 1));
    faults("2 stuck 60s\n5 slow 100ms\n");
    UNTIL(&b, about(&b, 2).state == TW_NVML_STUCK);
    look(&b);
    memset(b.fresh, 0, sizeof b.fresh);
    UNTIL(&b, b.fresh[0] >= 10 && b.fresh[1] >= 10 && b.fresh[3] >= 10 && b.fresh[4] >= 10 &&
                  b.fresh[6] >= 10 && b.fresh[7] >= 10);
    assert_int_equal(b.fresh[2], 0);
    assert_true(b.fresh[5] <= b.fresh[0]);
    faults("");
    UNTIL(&b, b.fresh[2] >= 3);
    tw_device_close(&b.dev);
}

static void test_req_05_stuck_from_the_start(void **state)
{
    (void)state;
    struct box b;
    faults("2 stuck 60s\n6 lost\n");
    box_open(&b, QUICK);
    assert_int_equal(b.n, N - 2); /* the two could not say who they are yet */
    struct tw_nvml_driver d;
    tw_nvml_look_driver(b.dev.source, &d);
    assert_int_equal(d.missing_gpus, 2);
    UNTIL(&b, all_fresh(&b, 3));
    faults("");
    for (int left = PATIENCE; b.n < N && left > 0; left--) {
        look(&b);
        describe(&b);
    }
    assert_int_equal(b.n, N);
    UNTIL(&b, all_fresh(&b, 4));
    tw_device_close(&b.dev);
    /* Closing while one hangs: the others are let go, and the thread that hangs frees the rest when it is out.
     */
    box_open(&b, QUICK);
    faults("1 stuck 60s\n");
    UNTIL(&b, about(&b, 1).state == TW_NVML_STUCK);
    tw_device_close(&b.dev);
    faults("");
    struct timespec nap = {.tv_sec = 0, .tv_nsec = 200000000};
    (void)nanosleep(&nap, NULL);
}

static void test_req_06_transient_is_not_unsupported(void **state)
{
    (void)state;
    struct nv_lib l = {0};
    struct nv_device *dev = NULL;
    static struct nv_gpu g;
    assert_int_equal(nv_lib_open(lib, &l, NULL), TW_OK);
    assert_int_equal(l.by_index(0, &dev), NV_OK);
    nv_gpu_take(&g, &l, dev);
    int64_t now_us = tw_boot_us(); /* told, not waited for */
    assert_int_equal(nv_gpu_pass(&g, now_us), NV_OK);
    assert_true(isfinite(g.now.ch[TW_CH_TEMP_C]));

    faults("0 error 999 temp util\n"); /* a passing failure, ten times over */
    for (int i = 0; i < 10; i++) {
        now_us += 1000000;
        assert_int_equal(nv_gpu_pass(&g, now_us), NV_OK);
        assert_true(isnan(g.now.ch[TW_CH_TEMP_C]) && isnan(g.now.ch[TW_CH_UTIL_FRAC]));
    }
    faults("");
    now_us += 1000000;
    assert_int_equal(nv_gpu_pass(&g, now_us), NV_OK);
    assert_true(isfinite(g.now.ch[TW_CH_TEMP_C]) && isfinite(g.now.ch[TW_CH_UTIL_FRAC]));

    faults("0 na util\n"); /* refused: believed the third time, and asked again a minute later */
    for (int i = 0; i < 3; i++) {
        now_us += 1000000;
        assert_int_equal(nv_gpu_pass(&g, now_us), NV_OK);
    }
    faults("");
    now_us += 1000000;
    assert_int_equal(nv_gpu_pass(&g, now_us), NV_OK);
    assert_true(isnan(g.now.ch[TW_CH_UTIL_FRAC]) && isfinite(g.now.ch[TW_CH_TEMP_C]));
    now_us += 61000000;
    assert_int_equal(nv_gpu_pass(&g, now_us), NV_OK);
    assert_true(isfinite(g.now.ch[TW_CH_UTIL_FRAC]));

    faults("0 error 10 power average instant\n"); /* and a pass without power is a pass */
    now_us += 1000000;
    assert_int_equal(nv_gpu_pass(&g, now_us), NV_OK);
    assert_true(isnan(g.now.ch[TW_CH_POWER_W]));
    nv_gpu_drop(&g);
    nv_lib_close(&l);
}

static void test_req_07_limits_read_live(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, QUICK);
    UNTIL(&b, all_fresh(&b, 1));
    describe(&b);
    assert_true(fabs(b.info[0].limit_min_w - 200.0) < 1e-9 && fabs(b.info[0].limit_max_w - 700.0) < 1e-9 &&
                fabs(b.info[0].limit_default_w - 700.0) < 1e-9);
    struct tw_why why = {""};
    static const struct {
        double limit_w;
        enum tw_err err;
    } c[] = {{200.0, TW_OK},       {700.0, TW_OK},           {199.999, TW_ERANGE},
             {700.001, TW_ERANGE}, {0.0, TW_ERANGE},         {-5.0, TW_ERANGE},
             {1e9, TW_ERANGE},     {(double)NAN, TW_ERANGE}, {(double)INFINITY, TW_ERANGE},
             {450.0, TW_OK}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        enum tw_err err = put(&b, 0, c[i].limit_w, &why);
        if (err != c[i].err)
            fail_msg("%g W: %s (%s)", c[i].limit_w, tw_err_text(err), why.text);
    }
    double asked = 0.0, held = 0.0;
    get(&b, 0, &asked, &held);
    assert_true(fabs(asked - 450.0) < 1e-6);
    assert_int_equal(put(&b, 0, 700.0, NULL), TW_OK);

    /* A range that is none: that GPU is only watched, which is a normal state. */
    faults("0 nonsense\n1 na range limit enforced\n");
    for (int left = PATIENCE; !isnan(b.info[0].limit_min_w) && left > 0; left--) {
        look(&b);
        describe(&b);
    }
    assert_true(isnan(b.info[0].limit_min_w) && isnan(b.info[0].limit_max_w));
    assert_int_equal(put(&b, 0, 400.0, &why), TW_EUNSUPPORTED);
    assert_non_null(strstr(why.text, "only watched"));
    assert_int_equal(put(&b, 1, 400.0, &why), TW_EUNSUPPORTED);
    assert_int_equal(put(&b, 2, 700.0, &why), TW_OK);
    look(&b);
    memset(b.fresh, 0, sizeof b.fresh);
    UNTIL(&b, all_fresh(&b, 2));
    tw_device_close(&b.dev);
}

static void test_gpm(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, QUICK);
    UNTIL(&b, isfinite(ch(&b, 0, TW_CH_SM_ACTIVE_FRAC)) && isfinite(ch(&b, 0, TW_CH_TENSOR_ACTIVE_FRAC)) &&
                  isfinite(ch(&b, 0, TW_CH_DRAM_ACTIVE_FRAC)));
    for (size_t i = 0; i < 3; i++) {
        static const enum tw_channel c[] = {TW_CH_SM_ACTIVE_FRAC, TW_CH_TENSOR_ACTIVE_FRAC,
                                            TW_CH_DRAM_ACTIVE_FRAC};
        double v = ch(&b, 0, c[i]);
        assert_true(v > 0.01 && v <= 1.0); /* a job is at work on it */
    }
    assert_true(isnan(ch(&b, 0, TW_CH_PCIE_TX_BYTES_S))); /* refused metric by metric */
    tw_device_close(&b.dev);

    faults("0 na gpm\n");
    box_open(&b, QUICK);
    UNTIL(&b, isfinite(ch(&b, 1, TW_CH_SM_ACTIVE_FRAC)));
    assert_true(isnan(ch(&b, 0, TW_CH_SM_ACTIVE_FRAC))); /* unknown, not 0 */
    tw_device_close(&b.dev);
}

static void test_req_18_mig_and_held_gpus(void **state)
{
    (void)state;
    struct box b;
    faults("3 mig\n4 pid 4242 2000000000\n4 pid 4243\n");
    box_open(&b, QUICK);
    UNTIL(&b, all_fresh(&b, 2));
    assert_int_equal(b.n, N); /* a board with slices is one board */
    assert_int_equal(about(&b, 3).mig, 1);
    assert_int_equal(about(&b, 2).mig, 0);
    assert_true(isnan(ch(&b, 3, TW_CH_UTIL_FRAC)) && isnan(ch(&b, 3, TW_CH_SM_ACTIVE_FRAC)));
    assert_true(isfinite(ch(&b, 3, TW_CH_POWER_W)));
    struct tw_nvml_info info = about(&b, 4);
    assert_int_equal(info.n_pid, 2);
    assert_int_equal(info.pid[0], 4242);
    assert_int_equal(info.pid[1], 4243);
    assert_int_equal(about(&b, 0).n_pid, 0);
    tw_device_close(&b.dev);
}

static void test_req_20_older_driver_by_probing(void **state)
{
    (void)state;
    struct box b;
    char keep[512];
    memcpy(keep, lib, sizeof keep);
    (void)snprintf(lib, sizeof lib, "%s/libnvidia-ml-old.so", getenv("TW_FAKE_NVML_DIR"));
    box_open(&b, QUICK);
    memcpy(lib, keep, sizeof keep);
    UNTIL(&b, all_fresh(&b, 3));
    assert_true(isfinite(ch(&b, 0, TW_CH_POWER_W)));
    assert_true(isnan(ch(&b, 0, TW_CH_POWER_INSTANT_W)));
    assert_true(isnan(about(&b, 0).power_window_s)); /* nobody says what it is a mean of */
    assert_true(isfinite(ch(&b, 0, TW_CH_TEMP_C)) && isfinite(ch(&b, 0, TW_CH_MEM_USED_BYTES)) &&
                isfinite(ch(&b, 0, TW_CH_THROTTLE_BITS)));
    assert_true(isnan(ch(&b, 0, TW_CH_SM_ACTIVE_FRAC)));
    assert_int_equal(about(&b, 0).mig, -1);
    UNTIL(&b, ch(&b, 0, TW_CH_ENERGY_J) > 100.0); /* no counter: the integral */
    tw_device_close(&b.dev);
}

static void test_req_21_cost_stated_rate_adapts(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, ",period=20ms,deadline=2s");
    UNTIL(&b, about(&b, 0).calls_per_s > 1.0);
    struct tw_nvml_info quick = about(&b, 0);
    assert_true(quick.cost_frac >= 0.0 && quick.cost_frac < 1.0);
    faults("0 slow 20ms\n"); /* a call as dear as the whole period */
    UNTIL(&b, about(&b, 0).period_s > 0.2);
    assert_true(about(&b, 1).period_s < about(&b, 0).period_s); /* the others keep theirs */
    faults("");
    UNTIL(&b, about(&b, 0).period_s < 0.1);
    tw_device_close(&b.dev);
}

static void file_put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_req_21_sleepers_stay_asleep(void **state)
{
    (void)state;
    char path[700], more[700];
    static const char *const parts[] = {"sys",
                                        "sys/bus",
                                        "sys/bus/pci",
                                        "sys/bus/pci/devices",
                                        "sys/bus/pci/devices/0000:18:00.0",
                                        "sys/bus/pci/devices/0000:18:00.0/power"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, parts[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    (void)snprintf(path, sizeof path, "%s/%s/control", dir, parts[5]);
    file_put(path, "auto\n");
    (void)snprintf(path, sizeof path, "%s/%s/runtime_status", dir, parts[5]);
    file_put(path, "active\n");
    (void)snprintf(more, sizeof more, QUICK ",sysfs=%s/sys", dir);
    struct box b;
    box_open(&b, more);
    UNTIL(&b, all_fresh(&b, 2));
    file_put(path, "suspended\n");
    UNTIL(&b, about(&b, 0).state == TW_NVML_ASLEEP);
    look(&b);
    memset(b.fresh, 0, sizeof b.fresh);
    UNTIL(&b, b.fresh[1] >= 10);
    assert_int_equal(b.fresh[0], 0);
    file_put(path, "active\n");
    UNTIL(&b, b.fresh[0] >= 2);
    tw_device_close(&b.dev);
}

static void test_req_24_missing_gpu_and_xid(void **state)
{
    (void)state;
    struct box b;
    box_open(&b, QUICK);
    UNTIL(&b, all_fresh(&b, 2));
    faults("6 xid 79\n");
    UNTIL(&b, about(&b, 6).xids == 1);
    assert_int_equal(about(&b, 6).last_xid, 79);
    faults("6 lost\n");
    UNTIL(&b, about(&b, 6).state == TW_NVML_LOST);
    assert_non_null(strstr(about(&b, 6).note, "bus"));
    describe(&b);
    assert_int_equal(b.n, N); /* it is missing, not forgotten */
    assert_int_equal(about(&b, 6).xids, 1);
    UNTIL(&b, isnan(ch(&b, 6, TW_CH_POWER_W)));
    assert_int_equal(about(&b, 5).xids, 0);
    faults("");
    b.fresh[6] = 0;
    UNTIL(&b, b.fresh[6] >= 3);
    assert_int_equal(about(&b, 6).xids, 1);
    faults("6 xid 31\n");
    UNTIL(&b, about(&b, 6).xids == 2 && about(&b, 6).last_xid == 31);
    tw_device_close(&b.dev);
}

/* ---- writing ---- */

static void test_req_08_read_back(void **state)
{
    (void)state;
    struct box b;
    struct tw_why why = {""};
    double asked = 0.0, held = 0.0;
    box_open(&b, QUICK);
    faults("0 ignored\n1 clamped 400\n2 denied\n3 slowwrite 50ms\n");
    for (unsigned i = 0; i < 4; i++) {
        enum tw_err err = put(&b, i, 300.0, &why);
        assert_int_equal(err, i == 2 ? TW_EPERM : TW_OK);
    }
    assert_non_null(strstr(why.text, "permission"));
    /* What is enforced comes a little later than the call returns, in this driver as in a real one. */
    UNTIL(&b, (get(&b, 3, &asked, &held), fabs(held - 300.0) < 1e-6));
    UNTIL(&b, (get(&b, 1, &asked, &held), fabs(held - 400.0) < 1e-6));
    assert_true(fabs(asked - 300.0) < 1e-6);
    get(&b, 0, &asked, &held);
    assert_true(fabs(asked - 300.0) < 1e-6 && held > 699.0); /* success was said, and nothing happened */
    get(&b, 2, &asked, &held);
    assert_true(asked > 699.0);
    UNTIL(&b, ch(&b, 3, TW_CH_POWER_W) < 310.0); /* and power is the last word */
    assert_true(ch(&b, 0, TW_CH_POWER_W) > 310.0);
    faults("");
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(put(&b, i, 700.0, NULL), TW_OK);
    UNTIL(&b, (get(&b, 0, &asked, &held), held > 699.0));
    tw_device_close(&b.dev);
}

static void test_req_05_stuck_write_delays_only_itself(void **state)
{
    (void)state;
    struct box b;
    struct tw_why why = {""};
    box_open(&b, QUICK);
    faults("2 stuckwrite 60s\n");
    look(&b);
    assert_int_equal(put(&b, 2, 300.0, &why), TW_EIO);
    assert_non_null(strstr(why.text, "under way"));
    assert_int_equal(put(&b, 3, 300.0, &why), TW_OK);
    assert_int_equal(put(&b, 2, 250.0, &why), TW_EIO); /* at once: one call in flight */
    assert_non_null(strstr(why.text, "earlier call"));
    faults("");
    int left = PATIENCE;
    while (put(&b, 2, 350.0, &why) != TW_OK && --left > 0)
        look(&b);
    double asked = 0.0, held = 0.0;
    get(&b, 2, &asked, &held);
    assert_true(fabs(asked - 350.0) < 1e-6);
    assert_int_equal(put(&b, 2, 700.0, NULL), TW_OK);
    assert_int_equal(put(&b, 3, 700.0, NULL), TW_OK);
    tw_device_close(&b.dev);
}

static void test_two_at_once(void **state)
{
    (void)state;
    struct box a, b;
    box_open(&a, QUICK);
    box_open(&b, QUICK);
    UNTIL(&a, all_fresh(&a, 2));
    UNTIL(&b, all_fresh(&b, 2));
    tw_device_close(&a.dev);
    memset(b.fresh, 0, sizeof b.fresh);
    UNTIL(&b, all_fresh(&b, 2));
    tw_device_close(&b.dev);
}

static int set_up(void **state)
{
    (void)state;
    const char *where = getenv("TW_FAKE_NVML_DIR");
    if (!where)
        return -1;
    (void)snprintf(dir, sizeof dir, "/tmp/tw-test-nvml-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    char site[300];
    (void)snprintf(site, sizeof site, "%s/site", dir);
    (void)snprintf(faults_path, sizeof faults_path, "%s/site.faults", dir);
    (void)snprintf(lib, sizeof lib, "%s/libnvidia-ml.so.1", where);
    return setenv("TW_FAKE_NVML", site, 1) || setenv("TW_FAKE_NVML_CONF", "gpus=8,jobs=2,seed=1", 1) ||
           unsetenv("TW_NVML_PATH");
}

static int tear_down(void **state)
{
    (void)state;
    char cmd[320];
    (void)snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    return system(cmd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, calm, calm)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bad_spec),
        TEST(test_req_15_no_library_says_so),
        TEST(test_req_15_library_found_in_a_folder_and_by_environment),
        TEST(test_req_15_driver_comes_late_goes_and_comes_back),
        TEST(test_req_14_handles_released_and_taken),
        TEST(test_req_01_known_by_uuid_and_pci),
        TEST(test_req_02_missing_is_never_a_number),
        TEST(test_req_02_age_and_staleness),
        TEST(test_req_03_average_and_instant_told_apart),
        TEST(test_req_03_repeats_are_not_fresh),
        TEST(test_req_04_energy_survives_a_reset),
        TEST(test_req_05_one_worker_per_device),
        TEST(test_req_05_stuck_from_the_start),
        TEST(test_req_06_transient_is_not_unsupported),
        TEST(test_req_07_limits_read_live),
        TEST(test_gpm),
        TEST(test_req_18_mig_and_held_gpus),
        TEST(test_req_20_older_driver_by_probing),
        TEST(test_req_21_cost_stated_rate_adapts),
        TEST(test_req_21_sleepers_stay_asleep),
        TEST(test_req_24_missing_gpu_and_xid),
        TEST(test_req_08_read_back),
        TEST(test_req_05_stuck_write_delays_only_itself),
        TEST(test_two_at_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
