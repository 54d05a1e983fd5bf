/* SPDX-License-Identifier: Apache-2.0 */
/* elastic/steady and elastic/sweep, on a job made here: a known curve, a rhythm, pauses, a slow start, noise.
 */
#include "base/rng.h"
#include "elastic/sweep.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NEAR(got, want, tol)                                                                                   \
    do {                                                                                                       \
        double g_ = (got), w_ = (want);                                                                        \
        if (!(fabs(g_ - w_) <= (tol)))                                                                         \
            fail_msg("%s is %.9g, want %.9g", #got, g_, w_);                                                   \
    } while (0)

#define FOUND_W 700.0
#define TICKS 10

/* A job on 8 GPUs. At work it draws its cap or 620 W a GPU, and gets on at speed t(draw); between iterations it
 * draws 250 W and gets on not at all. */
struct job {
    struct tw_rng rng;
    double iter_s, sync_s, report_s; /* report_s: progress is told once so often */
    double pause_every_s, pause_s, pause_w, warm_s, settle_s;
    double run_power, run_rate; /* of this step */
    double left_s, now_s, next_pause_s, pause_left_s, draw_w, told_units, units;
    bool in_sync;
};

static double speed(double draw_w)
{
    double x = draw_w / 620.0; /* what is lost at work: a square, 20 % at a cut of 40 % */
    return x < 1.0 ? 1.0 - 1.25 * (1.0 - x) * (1.0 - x) : 1.0;
}

static double work_w(double cap_w)
{
    return cap_w < 620.0 ? cap_w : 620.0;
}

/* The truth of a whole iteration, by hand. */
static void truth(const struct job *j, double cap_w, double *ret_power_w, double *ret_rate)
{
    double draw_w = work_w(cap_w), work_s = (j->iter_s - j->sync_s) / speed(draw_w);
    *ret_power_w = 8.0 * (draw_w * work_s + 250.0 * j->sync_s) / (work_s + j->sync_s);
    *ret_rate = 100.0 * (j->iter_s - j->sync_s) / (work_s + j->sync_s);
}

static void job_tick(struct job *j, double cap_w, double *power_w)
{
    double dt = 1.0 / TICKS;
    j->now_s += dt;
    j->draw_w += (work_w(cap_w) - j->draw_w) * (1.0 - exp(-dt / j->settle_s));
    if (j->now_s < j->warm_s) {
        *power_w += 8.0 * 150.0;
        return;
    }
    if (j->pause_every_s > 0.0 && j->now_s >= j->next_pause_s) {
        j->next_pause_s += j->pause_every_s * tw_rng_uniform(&j->rng, 0.9, 1.1);
        j->pause_left_s = j->pause_s * tw_rng_uniform(&j->rng, 0.8, 1.2);
    }
    if (j->pause_left_s > 0.0) {
        j->pause_left_s -= dt;
        *power_w += 8.0 * j->pause_w;
        return;
    }
    double noise = 1.0 + 0.01 * tw_rng_normal(&j->rng);
    *power_w += 8.0 * (j->in_sync ? 250.0 : j->draw_w) * noise * j->run_power;
    double step = j->in_sync ? dt : dt * speed(j->draw_w);
    if (!j->in_sync)
        j->units += 100.0 * step * j->run_rate;
    j->left_s -= step;
    if (j->left_s <= 0.0 && j->iter_s > 0.0) {
        j->in_sync = !j->in_sync && j->sync_s > 0.0;
        j->left_s += (j->in_sync ? j->sync_s : j->iter_s - j->sync_s) * (1.0 + 0.02 * tw_rng_normal(&j->rng));
    }
}

static struct tw_sweep_seen job_second(struct job *j, double cap_w)
{
    double power_w = 0.0;
    for (int i = 0; i < TICKS; i++)
        job_tick(j, cap_w, &power_w);
    struct tw_sweep_seen seen = {.dt_s = 1.0, .power_w = power_w / TICKS, .in_force = true};
    if (!(j->report_s > 0.0) || fmod(floor(j->now_s + 0.5), j->report_s) < 0.5) {
        seen.units = j->units - j->told_units;
        j->told_units = j->units;
    }
    return seen;
}

/* A run-to-run variation of its own for every step, as published. */
static void job_step(struct job *j)
{
    j->run_power = 1.0 + TW_RUN_SD_POWER * tw_rng_normal(&j->rng);
    j->run_rate = 1.0 + TW_RUN_SD_THROUGHPUT * tw_rng_normal(&j->rng);
}

static struct job job_make(uint64_t seed)
{
    struct job j = {.warm_s = 17.0, .settle_s = 1.5, .draw_w = 620.0, .run_power = 1.0, .run_rate = 1.0};
    tw_rng_init(&j.rng, seed, 7);
    j.iter_s = exp(tw_rng_uniform(&j.rng, log(1.5), log(18.0)));
    j.sync_s = j.iter_s * tw_rng_uniform(&j.rng, 0.02, 0.25);
    j.left_s = j.iter_s - j.sync_s;
    j.pause_every_s = tw_rng_uniform(&j.rng, 150.0, 400.0);
    j.next_pause_s = tw_rng_uniform(&j.rng, 30.0, 200.0);
    j.pause_s = tw_rng_uniform(&j.rng, 12.0, 25.0);
    j.pause_w = tw_rng_f64(&j.rng) < 0.5 ? 100.0 : 260.0;
    job_step(&j);
    return j;
}

static const struct tw_sweep_conf six = {.cap_w = {600.0, 500.0, 450.0, 400.0, 350.0, 300.0},
                                         .n = 6,
                                         .n_gpu = 8,
                                         .total_s = 900.0,
                                         .precision = TW_SWEEP_PRECISION,
                                         .seed = 1};

static void sweep_run(struct tw_sweep *s, struct job *j, double *ret_took_s)
{
    double took_s = 0.0;
    for (; s->phase != TW_SWEEP_DONE && took_s < 5000.0; took_s += 1.0) {
        double cap_w = tw_sweep_cap(s);
        struct tw_sweep_seen seen = job_second(j, isnan(cap_w) ? FOUND_W : cap_w);
        if (tw_sweep_push(s, &seen))
            job_step(j);
    }
    assert_int_equal(s->phase, TW_SWEEP_DONE);
    *ret_took_s = took_s;
}

static double scratch[TW_PFI_DRAWS];

/* 100 jobs of random rhythm, pauses and progress reports: losses and PFI within their 90 % intervals. */
static void test_losses_lie_within_their_intervals(void **state)
{
    (void)state;
    static struct tw_sweep s;
    int cases = 0, points = 0, within = 0, pfi_within = 0, pfi_cases = 0;
    double squares = 0.0, slowest_s = 0.0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct job j = job_make(seed);
        if (seed % 4 == 0)
            j.report_s = 5.0;
        struct tw_sweep_conf conf = six;
        conf.seed = seed;
        double took_s = 0.0, p0_w = 0.0, t0 = 0.0;
        assert_int_equal(tw_sweep_init(&s, &conf, NULL), TW_OK);
        sweep_run(&s, &j, &took_s);
        slowest_s = fmax(slowest_s, took_s);
        struct tw_sweep_result r;
        assert_int_equal(tw_sweep_finish(&s, 0.05, scratch, &r, NULL), TW_OK);
        assert_int_equal(r.n, 6);
        truth(&j, FOUND_W, &p0_w, &t0);
        double power[6], rate[6];
        for (size_t i = 0; i < r.n; i++) {
            truth(&j, r.row[i].cap_w, &power[i], &rate[i]);
            double loss = 1.0 - rate[i] / t0;
            bool in = loss >= r.row[i].low && loss <= r.row[i].high;
            within += in;
            points++;
            cases += in && i == seed % 6;
            squares += (loss - r.row[i].loss) * (loss - r.row[i].loss);
        }
        struct tw_pfi want = tw_pfi_of(p0_w, t0, power, rate, 6);
        pfi_cases += r.pfi.used > 0;
        pfi_within += want.mean >= r.pfi_low && want.mean <= r.pfi_high;
    }
    print_message("loss within its 90 %% interval: %d of 100 cases, %d of %d points, rms error %.2f %%; PFI %d "
                  "of %d; longest sweep %.0f s of 900\n",
                  cases, within, points, 100.0 * sqrt(squares / points), pfi_within, pfi_cases, slowest_s);
    assert_true(cases >= 85);
    assert_true(within >= 85 * points / 100);
    assert_true(pfi_within >= 85 * pfi_cases / 100);
    assert_true(slowest_s <= 1.2 * 900.0 + TW_SWEEP_LOOK_LONG_S);
}

/* Without noise, pauses or a need to settle, what is measured is the truth of whole iterations. */
static void test_whole_iterations(void **state)
{
    (void)state;
    static struct tw_steady_work work;
    static const struct {
        double work_s, sync_s;
    } rhythm[] = {{4.0, 1.0}, {7.3, 2.2}, {10.1, 0.75}, {13.0, 5.0}, {1.7, 0.4}};
    for (size_t k = 0; k < sizeof rhythm / sizeof *rhythm; k++) {
        double whole_s = rhythm[k].work_s + rhythm[k].sync_s, share = rhythm[k].work_s / whole_s, plain = 0.0;
        double error = 0.0, plain_error = 0.0;
        for (int n = 60; n < 78; n++) {
            struct tw_steady_second second[80];
            plain = 0.0;
            for (int i = 0; i < n; i++) {
                int busy = 0;
                for (int q = 0; q < 100; q++)
                    busy += fmod(i + (q + 0.5) / 100.0, whole_s) < rhythm[k].work_s;
                second[i] = (struct tw_steady_second){(float)(200.0 + 4.0 * busy), (float)busy};
                plain += busy / 100.0 / n;
            }
            struct tw_steady m;
            assert_true(tw_steady_of(second, (size_t)n, NULL, &work, &m));
            error = fmax(error, fabs(m.rate / 100.0 / share - 1.0));
            plain_error = fmax(plain_error, fabs(plain / share - 1.0));
        }
        print_message("iteration %.2f s: worst error %.2f %%, of the plain mean %.2f %%\n", whole_s,
                      100.0 * error, 100.0 * plain_error);
        assert_true(error < 0.006);
    }
}

static void test_pauses_and_settling_are_left_out(void **state)
{
    (void)state;
    static struct tw_steady_work work;
    struct tw_steady_second s[200];
    for (int i = 0; i < 200; i++) /* 5 s of nothing, 15 of slow start, then 600 W and 10/s */
        s[i] = i < 5 ? (struct tw_steady_second){150.0F, 0.0F}
               : i < 20
                   ? (struct tw_steady_second){400.0F + 10.0F * (float)(i - 5), 5.0F + 0.3F * (float)(i - 5)}
                   : (struct tw_steady_second){600.0F + (float)(i % 2), 10.0F};
    for (int i = 80; i < 95; i++)
        s[i] = (struct tw_steady_second){250.0F, 0.0F};
    for (int i = 140; i < 150; i++)
        s[i] = (struct tw_steady_second){100.0F, 0.0F};
    struct tw_steady m;
    assert_true(tw_steady_of(s, 200, NULL, &work, &m));
    NEAR(m.power_w, 600.5, 1.0);
    NEAR(m.rate, 10.0, 0.02);
    NEAR(m.warm_s, 5.0, 0.0);
    NEAR(m.eval_s, 15.0, 1.01); /* and the second that reports again */
    NEAR(m.checkpoint_s, 10.0, 1.01);
    assert_true(m.settled && m.settle_s >= 9.0 && m.settle_s <= 18.0);
    assert_false(tw_steady_of(s, 5, NULL, &work, &m));
    NEAR(m.warm_s, 5.0, 0.0);
}

/* A log line every 10 s is a rhythm, not a pause. */
static void test_progress_in_lumps(void **state)
{
    (void)state;
    static struct tw_steady_work work;
    struct tw_steady_second s[120];
    for (int i = 0; i < 120; i++)
        s[i] = (struct tw_steady_second){500.0F + (float)(i % 3), i % 10 == 4 ? 70.0F : 0.0F};
    struct tw_steady m;
    assert_true(tw_steady_of(s, 120, NULL, &work, &m));
    NEAR(m.rate, 7.0, 1e-6);
    NEAR(m.eval_s + m.checkpoint_s, 0.0, 0.0);
    /* A pause within the reports at 64 and 94: both go with it, and 65 to 93 was silence. */
    s[64].units = 28.0F;
    s[74].units = s[84].units = 0.0F;
    s[94].units = 21.0F;
    assert_true(tw_steady_of(s, 120, NULL, &work, &m));
    NEAR(m.rate, 7.0, 1e-6);
    NEAR(m.eval_s + m.checkpoint_s, 29.0, 0.0);
}

static void test_order_of_caps(void **state)
{
    (void)state;
    static struct tw_sweep s;
    struct job j = job_make(3);
    struct tw_sweep_conf conf = six;
    double seen[64];
    size_t n = 0;
    assert_int_equal(tw_sweep_init(&s, &conf, NULL), TW_OK);
    assert_true(isnan(tw_sweep_cap(&s)));
    for (int i = 0; i < 3000 && s.phase != TW_SWEEP_DONE; i++) {
        double cap_w = tw_sweep_cap(&s);
        struct tw_sweep_seen second = job_second(&j, isnan(cap_w) ? FOUND_W : cap_w);
        if (tw_sweep_push(&s, &second) && n < 64)
            seen[n++] = tw_sweep_cap(&s);
    }
    /* reference, six looks, six measurements, check, done */
    assert_int_equal(n, 15);
    assert_true(isnan(seen[0]) && isnan(seen[13]) && isnan(seen[14]));
    bool sorted = true;
    double sum = 0.0;
    for (size_t i = 0; i < 6; i++) {
        NEAR(seen[1 + i], six.cap_w[i], 0.0);
        sorted = sorted && (i == 0 || seen[7 + i] < seen[6 + i]);
        sum += seen[7 + i];
    }
    NEAR(sum, 2600.0, 0.0); /* each once */
    assert_false(sorted);
    NEAR(tw_sweep_left_s(&s), 0.0, 0.0);
}

/* Below 450 W these GPUs draw 450 W whatever they are told: found on the way down, and left out. */
static void test_floor(void **state)
{
    (void)state;
    static struct tw_sweep s;
    struct tw_sweep_result r;
    struct tw_sweep_conf conf = six;
    assert_int_equal(tw_sweep_init(&s, &conf, NULL), TW_OK);
    for (int i = 0; i < 3000 && s.phase != TW_SWEEP_DONE; i++) {
        double cap_w = fmin(620.0, fmax(450.0, isnan(tw_sweep_cap(&s)) ? FOUND_W : tw_sweep_cap(&s)));
        struct tw_sweep_seen seen = {1.0, 8.0 * cap_w, 100.0 * speed(cap_w) + 0.01 * (i % 3), true};
        (void)tw_sweep_push(&s, &seen);
    }
    assert_int_equal(s.floor, TW_SWEEP_FLOOR_NOT_HELD);
    assert_int_equal(tw_sweep_finish(&s, 0.05, scratch, &r, NULL), TW_OK);
    assert_int_equal(r.n, 3);
    NEAR(r.row[2].cap_w, 450.0, 0.0);
    NEAR(r.row[2].loss, 1.25 * pow(1.0 - 450.0 / 620.0, 2.0), 1e-3);
    /* the curve is 1 - 1.25 d^2: 5 % are lost at d = 0.2, and the price is on the curve through the points */
    NEAR(r.slower.saved_frac, 0.2, 0.02);
    NEAR(r.slower.cap_w, 496.0, 12.0);
    NEAR(r.slower.loss, 0.05, 1e-6);
    assert_true(r.slower.loss_low < 0.05 && r.slower.loss_high > 0.05);
    assert_true(r.joules.cap && r.joules.deepest); /* J/unit falls down to a cut of 0.55 */
    NEAR(r.joules.cap_w, 450.0, 1e-6);
}

static void test_stall(void **state)
{
    (void)state;
    static struct tw_sweep s;
    struct tw_sweep_conf conf = six;
    assert_int_equal(tw_sweep_init(&s, &conf, NULL), TW_OK);
    for (int i = 0; i < 3000 && s.phase != TW_SWEEP_DONE; i++) {
        double cap_w = isnan(tw_sweep_cap(&s)) ? FOUND_W : tw_sweep_cap(&s);
        struct tw_sweep_seen seen = {1.0, 8.0 * fmin(cap_w, 620.0), cap_w < 480.0 ? 0.0 : 10.0, true};
        (void)tw_sweep_push(&s, &seen);
    }
    assert_int_equal(s.floor, TW_SWEEP_FLOOR_STALLS);
    assert_int_equal(s.n_order, 2);
}

static void test_drift_is_seen_and_corrected(void **state)
{
    (void)state;
    static struct tw_sweep s;
    struct tw_sweep_result r;
    struct tw_sweep_conf conf = six;
    assert_int_equal(tw_sweep_init(&s, &conf, NULL), TW_OK);
    double now_s = 0.0;
    for (; now_s < 3000.0 && s.phase != TW_SWEEP_DONE; now_s += 1.0) {
        double cap_w = fmin(620.0, isnan(tw_sweep_cap(&s)) ? FOUND_W : tw_sweep_cap(&s));
        double faster = 1.0 + 2e-4 * now_s; /* 12 % in ten minutes: shorter sequences, say */
        struct tw_sweep_seen seen = {1.0, 8.0 * cap_w, 100.0 * speed(cap_w) * faster, true};
        (void)tw_sweep_push(&s, &seen);
    }
    assert_int_equal(tw_sweep_finish(&s, 0.05, scratch, &r, NULL), TW_OK);
    assert_true(r.drifted && r.drift_frac > 0.03);
    for (size_t i = 0; i < r.n; i++)
        NEAR(r.row[i].loss, 1.0 - speed(fmin(620.0, r.row[i].cap_w)), 0.006);
}

/* Ended in the middle: what was measured until then counts. */
static void test_job_ends_early(void **state)
{
    (void)state;
    static struct tw_sweep s;
    struct tw_sweep_result r;
    struct tw_why why = {""};
    struct tw_sweep_conf conf = six;
    struct job j = job_make(5);
    assert_int_equal(tw_sweep_init(&s, &conf, NULL), TW_OK);
    while (!(s.phase == TW_SWEEP_MEASURE && s.at == 2)) {
        double cap_w = tw_sweep_cap(&s);
        struct tw_sweep_seen seen = job_second(&j, isnan(cap_w) ? FOUND_W : cap_w);
        (void)tw_sweep_push(&s, &seen);
    }
    tw_sweep_end(&s);
    assert_true(s.phase == TW_SWEEP_DONE && s.ended_early && isnan(tw_sweep_cap(&s)));
    assert_int_equal(tw_sweep_finish(&s, 0.05, scratch, &r, &why), TW_OK);
    assert_int_equal(r.n, 2);
    assert_true(isnan(r.drift_frac) && !r.drifted);

    assert_int_equal(tw_sweep_init(&s, &conf, NULL), TW_OK);
    tw_sweep_end(&s);
    assert_int_equal(tw_sweep_finish(&s, 0.05, scratch, &r, &why), TW_ENODATA);
}

/* A job that never begins does not hold the sweep for ever. */
static void test_no_progress(void **state)
{
    (void)state;
    static struct tw_sweep s;
    struct tw_sweep_conf conf = six;
    struct tw_sweep_seen seen = {1.0, 1000.0, (double)NAN, true};
    assert_int_equal(tw_sweep_init(&s, &conf, NULL), TW_OK);
    for (int i = 0; i < 1000; i++)
        (void)tw_sweep_push(&s, &seen);
    assert_true(s.phase == TW_SWEEP_DONE && s.ended_early);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static struct tw_sweep s;
    static const struct {
        double cap_w[2], total_s, precision;
        size_t n;
        const char *says;
    } cases[] = {
        {{300.0, 300.0}, 900.0, 0.015, 2, "stands twice"},
        {{300.0, (double)NAN}, 900.0, 0.015, 2, "is none"},
        {{300.0, -1.0}, 900.0, 0.015, 2, "is none"},
        {{300.0, 400.0}, 900.0, 0.015, 0, "1 to 23"},
        {{300.0, 400.0}, 100.0, 0.015, 2, "too short"},
        {{300.0, 400.0}, (double)NAN, 0.015, 2, "too short"},
        {{300.0, 400.0}, 900.0, 0.01, 2, "run-to-run"},
        {{300.0, 400.0}, 900.0, (double)NAN, 2, "run-to-run"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tw_why why = {""};
        struct tw_sweep_conf conf = {.cap_w = {cases[i].cap_w[0], cases[i].cap_w[1]},
                                     .n = cases[i].n,
                                     .n_gpu = 1,
                                     .total_s = cases[i].total_s,
                                     .precision = cases[i].precision};
        assert_int_equal(tw_sweep_init(&s, &conf, &why), TW_EINVAL);
        if (!strstr(why.text, cases[i].says))
            fail_msg("case %zu says \"%s\"", i, why.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_iterations),
        cmocka_unit_test(test_pauses_and_settling_are_left_out),
        cmocka_unit_test(test_progress_in_lumps),
        cmocka_unit_test(test_losses_lie_within_their_intervals),
        cmocka_unit_test(test_order_of_caps),
        cmocka_unit_test(test_floor),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_drift_is_seen_and_corrected),
        cmocka_unit_test(test_job_ends_early),
        cmocka_unit_test(test_no_progress),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
