/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps of every job of the simulated site against what only the simulation knows. */
#include "elastic/sweep.h"
#include "io/registry.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define JOBS 10
#define SEEDS 4
#define FOUND_W 700.0

static const double cap_w[] = {620.0, 560.0, 500.0, 420.0, 340.0, 260.0};
enum { N = sizeof cap_w / sizeof *cap_w };

struct score {
    double error[3]; /* of the loss at a cut of 10, 20, 30 % */
    bool pfi_in;
    int in; /* points within their interval */
    double took_s, pfi, pfi_true;
};

static void read_job(struct tw_device *dev, struct tw_site_sample *sample, const struct tw_gpu_info *gpu,
                     size_t n_gpu, uint32_t job, double *last_total, struct tw_sweep_seen *ret)
{
    assert_int_equal(dev->source_ops->advance(dev->source, 1.0, NULL), TW_OK);
    assert_int_equal(dev->source_ops->read(dev->source, sample, NULL), TW_OK);
    *ret = (struct tw_sweep_seen){.dt_s = 1.0, .in_force = true};
    for (size_t i = 0; i < n_gpu; i++)
        if (gpu[i].job == job)
            ret->power_w += (double)sample->gpu[i].ch[TW_CH_POWER_W];
    ret->units = sample->job[job].total - *last_total;
    *last_total = sample->job[job].total;
}

/* The true loss at a cut, from a fine grid of caps. */
static double true_loss(const struct tw_device *dev, uint32_t job, double cut)
{
    double p0_w = 0.0, t0 = 0.0, p = 0.0, t = 0.0, above_p = 0.0, above_t = 0.0;
    assert_int_equal(dev->source_ops->truth(dev->source, job, FOUND_W, &p0_w, &t0, NULL), TW_OK);
    above_p = p0_w;
    above_t = t0;
    for (double cap = FOUND_W; cap >= 200.0; cap -= 1.0) {
        assert_int_equal(dev->source_ops->truth(dev->source, job, cap, &p, &t, NULL), TW_OK);
        double want_w = (1.0 - cut) * p0_w;
        if (p <= want_w)
            return 1.0 - (above_p > p ? t + (above_t - t) * (want_w - p) / (above_p - p) : t) / t0;
        above_p = p;
        above_t = t;
    }
    return (double)NAN;
}

static struct score sweep_of(uint64_t seed, uint32_t job, char *name, size_t size)
{
    static struct tw_sweep s;
    static double scratch[TW_PFI_DRAWS];
    struct tw_device dev;
    const struct tw_gpu_info *gpu = NULL;
    const struct tw_job_info *info = NULL;
    size_t n_gpu = 0, n_job = 0;
    char spec[64];
    (void)snprintf(spec, sizeof spec, "sim:seed=%llu,gpus=64,jobs=10", (unsigned long long)seed);
    assert_int_equal(tw_device_open(spec, &dev, NULL), TW_OK);
    assert_int_equal(dev.source_ops->describe(dev.source, &gpu, &n_gpu, &info, &n_job, NULL), TW_OK);
    assert_true(job < n_job);
    (void)snprintf(name, size, "%s", info[job].name);
    struct tw_site_sample sample = {.gpu = calloc(n_gpu, sizeof *sample.gpu),
                                    .job = calloc(n_job, sizeof *sample.job)};
    struct tw_sweep_conf conf = {.n = N, .total_s = 900.0, .precision = TW_SWEEP_PRECISION, .seed = seed};
    memcpy(conf.cap_w, cap_w, sizeof cap_w);
    for (size_t i = 0; i < n_gpu; i++)
        conf.n_gpu += gpu[i].job == job;
    assert_int_equal(tw_sweep_init(&s, &conf, NULL), TW_OK);
    double last_total = 0.0, power[N], rate[N], p0_w = 0.0, t0 = 0.0;
    while (s.phase != TW_SWEEP_DONE && s.now_s < 5000.0) {
        struct tw_sweep_seen seen;
        read_job(&dev, &sample, gpu, n_gpu, job, &last_total, &seen);
        if (!tw_sweep_push(&s, &seen))
            continue;
        double want_w = isnan(tw_sweep_cap(&s)) ? FOUND_W : tw_sweep_cap(&s);
        for (size_t i = 0; i < n_gpu; i++)
            if (gpu[i].job == job)
                assert_int_equal(dev.cap_ops->write(dev.cap, gpu[i].uuid, want_w, NULL), TW_OK);
    }
    struct tw_sweep_result r;
    struct score out = {.took_s = s.now_s};
    assert_int_equal(tw_sweep_finish(&s, 0.05, scratch, &r, NULL), TW_OK);
    assert_int_equal(r.n, N);
    assert_int_equal(dev.source_ops->truth(dev.source, job, FOUND_W, &p0_w, &t0, NULL), TW_OK);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(dev.source_ops->truth(dev.source, job, r.row[i].cap_w, &power[i], &rate[i], NULL),
                         TW_OK);
        double loss = 1.0 - rate[i] / t0;
        out.in += loss >= r.row[i].low && loss <= r.row[i].high;
    }
    out.pfi = r.pfi.mean;
    out.pfi_true = tw_pfi_of(p0_w, t0, power, rate, N).mean;
    out.pfi_in = out.pfi_true >= r.pfi_low && out.pfi_true <= r.pfi_high;
    for (int k = 0; k < 3; k++) {
        double cut = 0.1 * (k + 1);
        out.error[k] = 1.0 - tw_curve_value(&r.fit.curve, 1.0 - cut) - true_loss(&dev, job, cut);
    }
    free(sample.gpu);
    free(sample.job);
    tw_device_close(&dev);
    return out;
}

static void test_every_job(void **state)
{
    (void)state;
    int training = 0, points_in = 0, pfi_in = 0;
    double squares[3] = {0};
    print_message(
        "%-16s error of the loss, points of T_0, rms of %d seeds   PFI (true) of the last   in interval: "
        "losses PFI   mean time\n",
        "job", SEEDS);
    for (uint32_t job = 0; job < JOBS; job++) {
        char name[64] = "";
        double sum[3] = {0}, took_s = 0.0;
        int in = 0, pfi = 0;
        struct score sc = {0};
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            sc = sweep_of(seed, job, name, sizeof name);
            for (int k = 0; k < 3; k++)
                sum[k] += sc.error[k] * sc.error[k];
            in += sc.in;
            pfi += sc.pfi_in;
            took_s += sc.took_s;
        }
        print_message("%-16s 10 %%: %5.2f   20 %%: %5.2f   30 %%: %5.2f      %5.2f (%5.2f)   %2d of %d  %d of "
                      "%d   %4.0f s\n",
                      name, 1e2 * sqrt(sum[0] / SEEDS), 1e2 * sqrt(sum[1] / SEEDS), 1e2 * sqrt(sum[2] / SEEDS),
                      sc.pfi, sc.pfi_true, in, N * SEEDS, pfi, SEEDS, took_s / SEEDS);
        if (strncmp(name, "serve", 5) == 0)
            continue; /* their load moves, and with it the truth: shown, not judged */
        training++;
        points_in += in;
        pfi_in += pfi;
        for (int k = 0; k < 3; k++)
            squares[k] += sum[k];
    }
    print_message("%d jobs without a load that moves: rms error %.2f, %.2f, %.2f points at 10, 20, 30 %%; "
                  "losses in their "
                  "interval %d of %d, PFI %d of %d\n",
                  training, 1e2 * sqrt(squares[0] / (training * SEEDS)),
                  1e2 * sqrt(squares[1] / (training * SEEDS)), 1e2 * sqrt(squares[2] / (training * SEEDS)),
                  points_in, training * N * SEEDS, pfi_in, training * SEEDS);
    assert_true(training == 8);
    assert_true(points_in >= 85 * training * N * SEEDS / 100);
    assert_true(pfi_in >= 85 * training * SEEDS / 100);
    for (int k = 0; k < 3; k++)
        assert_true(sqrt(squares[k] / (training * SEEDS)) < 0.012); /* points of T_0 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_job)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
