/* SPDX-License-Identifier: Apache-2.0 */
/* plant: physics of a board, sensors, limits, lock step, rhythm, phases, the default mix. Expected values come
 * from the formulas in board.h, worked out here again, or from properties. */
#include "plant/plant.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000)

static const struct tw_plant_job steady = {
    .name = "steady",
    .unit = "tokens/s",
    .n_gpu = 4,
    .weight = 1.0,
    .rate = 1000.0,
    .work = {.active_w = 60.0, .core_w = 700.0, .stall_frac = 0.4, .mem_w = 80.0, .ratio = 0.8, .sharp = 4.0},
    .sm_active_frac = 0.9,
    .tensor_active_frac = 0.5,
    .dram_active_frac = 0.5,
    .mem_used_bytes = 60e9};

/* Plants of a test, in one block each. */
static _Alignas(64) unsigned char block[3][1 << 20];

static struct tw_plant *make(unsigned slot, const struct tw_plant_job *job, uint32_t n_job, uint32_t n_gpu,
                             uint64_t seed, double noise)
{
    struct tw_arena arena;
    struct tw_plant *p = NULL;
    struct tw_why why = {""};
    assert_true(tw_plant_bytes(n_gpu, n_job) <= sizeof block[slot]);
    tw_arena_init(&arena, block[slot], tw_plant_bytes(n_gpu, n_job));
    struct tw_plant_conf conf = {
        .seed = seed, .board = &tw_board_h100, .job = job, .n_job = n_job, .n_gpu = n_gpu, .noise = noise};
    if (tw_plant_new(&arena, &conf, &p, &why) != TW_OK)
        fail_msg("%s", why.text);
    return p;
}

static struct tw_plant *make_default(unsigned slot, uint64_t seed, double noise)
{
    static struct tw_plant_job job[10];
    assert_int_equal(tw_plant_default_jobs(64, 10, job, NULL), TW_OK);
    return make(slot, job, 10, 64, seed, noise);
}

static void cap_all(struct tw_plant *p, double cap_w)
{
    for (uint32_t i = 0; i < tw_plant_gpus(p); i++)
        assert_int_equal(tw_plant_cap(p, i, cap_w, NULL), TW_OK);
}

static double instant_w(const struct tw_plant *p, uint32_t gpu)
{
    struct tw_plant_reading r;
    tw_plant_read(p, gpu, &r);
    return r.power_instant_w;
}

static void assert_near(double got, double want, double tolerance, const char *what)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s: got %.9g, want %.9g within %g", what, got, want, tolerance);
}

/* ---- board ---- */

static void test_voltage(void **state)
{
    (void)state;
    const struct tw_board *b = &tw_board_h100;
    assert_near(tw_board_volt_frac(b, b->clock_max_hz), 1.0, 1e-12, "voltage at the top");
    assert_near(tw_board_volt_frac(b, b->clock_min_hz), b->v_min_frac, 0.002, "voltage at the bottom");
    double last = 0.0, last_slope = -1.0;
    for (int i = 0; i < TW_CLOCK_STEPS; i++) {
        double v = tw_board_volt_frac(b, tw_board_clock_hz(b, i));
        assert_true(v >= last);
        if (i > 0) {
            assert_true(v - last >= last_slope - 1e-12); /* flat, then rising: never bends down */
            last_slope = v - last;
        }
        last = v;
    }
    assert_near(tw_board_clock_hz(b, 1.0) - tw_board_clock_hz(b, 0.0), 15e6, 1.0, "a clock step");
}

static void test_table_formula(void **state)
{
    (void)state;
    const struct tw_board *b = &tw_board_h100;
    const struct tw_work w = steady.work;
    struct tw_work_table t;
    assert_int_equal(tw_work_fill(b, &w, &t, NULL), TW_OK);
    for (int i = 0; i < TW_CLOCK_STEPS; i++) {
        double hz = 210e6 + 15e6 * i, f = hz / 1980e6, c = w.ratio * f, v = tw_board_volt_frac(b, hz);
        double rate = exp(-log(exp(-w.sharp * log(c)) + 1.0) / w.sharp);
        double watts = 60.0 + 700.0 * f * v * v * (0.4 + 0.6 * rate / c) + 80.0 * rate;
        assert_near((double)t.dyn_w[i], watts, 1e-4 * watts, "dynamic power");
        assert_near((double)t.mem[i], rate, 1e-5, "speed");
        assert_true(i == 0 || (t.dyn_w[i] > t.dyn_w[i - 1] && t.rate[i] > t.rate[i - 1]));
    }
    assert_near((double)t.rate[TW_CLOCK_STEPS - 1], 1.0, 1e-6, "speed at the top");

    struct tw_work only = {.core_w = 500.0, .ratio = 0.01, .sharp = 6.0}; /* never waits for memory */
    assert_int_equal(tw_work_fill(b, &only, &t, NULL), TW_OK);
    assert_near(tw_work_at(t.rate, (990.0 - 210.0) / 15.0), 0.5, 1e-6, "compute-bound at half the clock");
    only.ratio = 100.0; /* waits for nothing else */
    assert_int_equal(tw_work_fill(b, &only, &t, NULL), TW_OK);
    assert_near((double)t.rate[0], 1.0, 1e-3, "memory-bound at the lowest clock");
}

static void test_step_is_inverse(void **state)
{
    (void)state;
    struct tw_work_table t;
    assert_int_equal(tw_work_fill(&tw_board_h100, &steady.work, &t, NULL), TW_OK);
    for (double s = 0.0; s <= TW_CLOCK_TOP; s += 0.37)
        assert_near(tw_work_step(&t, tw_work_at(t.dyn_w, s)), s, 1e-3, "step of a power");
    assert_near(tw_work_step(&t, -5.0), 0.0, 0.0, "no power");
    assert_near(tw_work_step(&t, NAN), 0.0, 0.0, "NaN");
    assert_near(tw_work_step(&t, 1e9), TW_CLOCK_TOP, 0.0, "all the power");
    for (double a = 0.05; a < 3.0; a *= 1.7)
        for (double b = 0.05; b < 3.0; b *= 1.3)
            assert_near(tw_smooth_min8(a, b), pow(pow(a, -8.0) + pow(b, -8.0), -0.125), 1e-12,
                        "smooth minimum");
}

static void test_points(void **state)
{
    (void)state;
    static const struct tw_work_point point[] = {{200, 40}, {300, 70}, {450, 90}, {500, 92}};
    struct tw_work w = {.point = point, .n_point = 4};
    struct tw_work_table t;
    assert_int_equal(tw_work_fill(&tw_board_h100, &w, &t, NULL), TW_OK);
    for (int i = 0; i < 4; i++) {
        double s = tw_work_step(&t, point[i].power_w - tw_board_h100.idle_w);
        assert_near(tw_work_at(t.rate, s), point[i].rate / 92.0, 0.004, "speed at a measured point");
    }
    assert_near(tw_work_at(t.rate, tw_work_step(&t, 375 - tw_board_h100.idle_w)), 80.0 / 92.0, 0.004,
                "between");

    static const struct tw_work_point bad[][2] = {
        {{300, 70}, {300, 80}}, {{80, 10}, {300, 70}}, {{200, 0}, {300, 70}}, {{200, NAN}, {300, 70}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tw_why why = {""};
        w = (struct tw_work){.point = bad[i], .n_point = 2};
        assert_int_equal(tw_work_fill(&tw_board_h100, &w, &t, &why), TW_EINVAL);
        assert_non_null(strstr(why.text, "point"));
    }
    w.n_point = 1;
    assert_int_equal(tw_work_fill(&tw_board_h100, &w, &t, NULL), TW_EINVAL);
}

/* ---- limits and sensors ---- */

static void test_limit_is_held(void **state)
{
    (void)state;
    static const double cap_w[] = {650, 520, 405, 300, 230, 200};
    for (unsigned noise = 0; noise <= 1; noise++) {
        struct tw_plant *p = make_default(0, 11, noise);
        double limit = noise ? 1.0 + 6.0 * 0.003 : 1.0 + 1e-6; /* six standard deviations of the sensor */
        for (size_t k = 0; k < sizeof cap_w / sizeof *cap_w; k++) {
            cap_all(p, cap_w[k]);
            tw_plant_advance(p, 3 * SECOND);
            double worst = 0.0;
            for (int t = 0; t < 3000; t++) { /* 5 minutes of ticks: all phases come by */
                tw_plant_advance(p, SECOND / 10);
                for (uint32_t i = 0; i < 64; i++)
                    worst = fmax(worst, instant_w(p, i) / cap_w[k]);
            }
            if (!(worst <= limit))
                fail_msg("noise %u, %g W: a GPU drew %.4f of its limit", noise, cap_w[k], worst);
            assert_true(worst > 0.97); /* and the limits did bind */
        }
    }
}

static void test_settling(void **state)
{
    (void)state;
    struct tw_plant *p = make(0, &steady, 1, 4, 1, 0.0);
    cap_all(p, 500.0); /* below its draw, so that the limiter works from the first tick */
    tw_plant_advance(p, 10 * SECOND);
    assert_near(instant_w(p, 0), 500.0 * tw_board_h100.hold_frac, 0.5, "held");
    cap_all(p, 300.0);
    tw_plant_advance(p, SECOND / 10);
    assert_near(instant_w(p, 0), 497.5, 0.5, "not yet in force");
    for (int k = 1; k <= 20; k++) {
        tw_plant_advance(p, SECOND / 10);
        double want = tw_board_h100.hold_frac * (300.0 + 200.0 * exp(-0.1 * k / 0.25));
        assert_near(instant_w(p, 0), want, 0.5, "first-order settling");
    }
    struct tw_plant_reading r;
    tw_plant_read(p, 0, &r);
    assert_true(r.throttle_bits == TW_THROTTLE_POWER_CAP && r.sm_clock_hz < 1980e6);
}

static void test_sensors(void **state)
{
    (void)state;
    for (unsigned noise = 0; noise <= 1; noise++) {
        struct tw_plant *p = make_default(0, 5, noise);
        double joule[64] = {0}, last[64][10];
        for (int t = 0; t < 6000; t++) {
            if (t % 600 == 300)
                cap_all(p, 250.0 + t / 20.0);
            tw_plant_advance(p, SECOND / 10);
            for (uint32_t i = 0; i < 64; i++) {
                double w = instant_w(p, i);
                joule[i] += 0.1 * w;
                last[i][t % 10] = w;
            }
            if (t % 97 != 96)
                continue;
            for (uint32_t i = 0; i < 64; i++) {
                struct tw_plant_reading r;
                double mean = 0.0;
                for (int k = 0; k < 10; k++)
                    mean += 0.1 * last[i][k];
                tw_plant_read(p, i, &r);
                assert_near(r.power_w, mean, 1e-3, "reported power is the mean of the last second");
            }
        }
        for (uint32_t i = 0; i < 64; i++) {
            struct tw_plant_reading r;
            tw_plant_read(p, i, &r);
            assert_near(r.energy_j, joule[i], joule[i] * (noise ? 5e-4 : 1e-6),
                        "energy is the integral of power");
            assert_true(r.temp_c > 25.0 && r.temp_c < 85.0);
        }
    }
}

/* ---- determinism ---- */

static void test_same_seed(void **state)
{
    (void)state;
    struct tw_plant *a = make_default(0, 7, 1.0), *b = make_default(1, 7, 1.0), *c = make_default(2, 8, 1.0);
    unsigned differ = 0;
    for (int t = 0; t < 120; t++) {
        tw_plant_advance(a, SECOND);
        for (int k = 0; k < 40; k++)
            tw_plant_advance(b, SECOND / 40); /* the size of the steps does not matter */
        tw_plant_advance(c, SECOND);
        for (uint32_t i = 0; i < 64; i++) {
            struct tw_plant_reading ra, rb, rc;
            tw_plant_read(a, i, &ra);
            tw_plant_read(b, i, &rb);
            tw_plant_read(c, i, &rc);
            assert_memory_equal(&ra.power_w, &rb.power_w, sizeof ra.power_w);
            assert_memory_equal(&ra.energy_j, &rb.energy_j, sizeof ra.energy_j);
            differ += fabs(ra.power_w - rc.power_w) > 0.01;
        }
    }
    assert_true(differ > 120 * 64 / 2);
}

/* Two policies meet the same noise: what one GPU is allowed changes nothing for other jobs. */
static void test_noise_does_not_follow_caps(void **state)
{
    (void)state;
    struct tw_plant *a = make_default(0, 7, 1.0), *b = make_default(1, 7, 1.0);
    for (uint32_t i = 0; i < 16; i++)
        assert_int_equal(tw_plant_cap(b, i, 250.0, NULL), TW_OK);
    tw_plant_advance(a, 900 * SECOND);
    tw_plant_advance(b, 900 * SECOND);
    assert_true(tw_plant_total(b, 0) < 0.6 * tw_plant_total(a, 0));
    for (uint32_t k = 1; k < 10; k++)
        assert_near(tw_plant_total(b, k), tw_plant_total(a, k), 0.0, "another job");
    cap_all(b, 700.0); /* and its own noise goes on as if nothing had been */
    tw_plant_advance(a, 10 * SECOND);
    tw_plant_advance(b, 10 * SECOND);
    struct tw_plant_reading ra, rb;
    tw_plant_read(a, 20, &ra);
    tw_plant_read(b, 20, &rb);
    assert_near(ra.power_w, rb.power_w, 0.0, "another job's power");
}

/* Nor does it for the GPU itself, once its limit is back. */
static void test_noise_after_a_limit(void **state)
{
    (void)state;
    struct tw_plant_job job = steady;
    job.work.core_w = 500.0; /* draws less than 700 W */
    struct tw_plant *a = make(0, &job, 1, 4, 7, 1.0), *b = make(1, &job, 1, 4, 7, 1.0);
    cap_all(b, 250.0);
    tw_plant_advance(a, 60 * SECOND);
    tw_plant_advance(b, 60 * SECOND);
    assert_true(instant_w(b, 0) < 0.6 * instant_w(a, 0));
    cap_all(b, 700.0);
    tw_plant_advance(a, 10 * SECOND);
    tw_plant_advance(b, 10 * SECOND);
    for (uint32_t i = 0; i < 4; i++)
        assert_near(instant_w(b, i), instant_w(a, i), 0.0, "power");
}

/* ---- jobs ---- */

static void test_lockstep(void **state)
{
    (void)state;
    struct tw_plant_job job[2] = {steady, steady};
    job[0].lockstep = true;
    job[0].n_gpu = job[1].n_gpu = 4;
    struct tw_plant *p = make(0, job, 2, 8, 3, 0.0);
    tw_plant_advance(p, 60 * SECOND);
    double free_rate[2], slow_rate[2], waiting_w = instant_w(p, 1);
    for (uint32_t k = 0; k < 2; k++)
        free_rate[k] = tw_plant_total(p, k) / 60.0;
    assert_int_equal(tw_plant_cap(p, 0, 250.0, NULL), TW_OK); /* one GPU of each job */
    assert_int_equal(tw_plant_cap(p, 4, 250.0, NULL), TW_OK);
    tw_plant_advance(p, 10 * SECOND);
    double from[2] = {tw_plant_total(p, 0), tw_plant_total(p, 1)};
    tw_plant_advance(p, 60 * SECOND);
    for (uint32_t k = 0; k < 2; k++)
        slow_rate[k] = (tw_plant_total(p, k) - from[k]) / 60.0;
    double whole_w, whole_rate;
    cap_all(p, 250.0);
    tw_plant_advance(p, 10 * SECOND);
    from[0] = tw_plant_total(p, 0);
    double waited_w = instant_w(p, 1);
    tw_plant_advance(p, 60 * SECOND);
    whole_rate = (tw_plant_total(p, 0) - from[0]) / 60.0;
    whole_w = waited_w;
    /* In lock step one slow GPU costs what four slow ones cost, but for which piece of silicon is worst. */
    assert_near(slow_rate[0], whole_rate, 0.06 * whole_rate, "slowest GPU sets the speed");
    double own_loss = 1.0 - slow_rate[1] / free_rate[1], all_loss = 1.0 - slow_rate[0] / free_rate[0];
    assert_near(own_loss, all_loss / 4.0, 0.02, "without lock step one GPU costs a quarter");
    assert_true(whole_w < waiting_w);

    assert_int_equal(tw_plant_cap(p, 1, 700.0, NULL),
                     TW_OK); /* power to a GPU that waits is wasted, but drawn */
    tw_plant_advance(p, 10 * SECOND);
    assert_true(instant_w(p, 1) > 260.0);
    assert_true(instant_w(p, 1) < waiting_w);
}

static void test_rhythm(void **state)
{
    (void)state;
    static const double iter_s[] = {8.0, 2.03, 0.57}; /* the last two end between ticks */
    for (size_t k = 0; k < sizeof iter_s / sizeof *iter_s; k++) {
        struct tw_plant_job job = steady;
        job.iter_s = iter_s[k];
        job.sync_frac = 0.25;
        job.sync_act = 0.3;
        job.work.core_w = 300.0; /* no limit binds: the top clock throughout */
        struct tw_plant *p = make(0, &job, 1, 4, 1, 0.0);
        int starts = 0, low_ticks = 0;
        double high_w = 0.0, last_w = 0.0;
        for (int t = 0; t < 200; t++) {
            tw_plant_advance(p, SECOND / 10);
            high_w = fmax(high_w, instant_w(p, 0));
        }
        double from = tw_plant_total(p, 0);
        for (int t = 0; t < 8000; t++) {
            tw_plant_advance(p, SECOND / 10);
            double w = instant_w(p, 0);
            low_ticks += w < 0.7 * high_w;
            starts += w < 0.7 * high_w && !(last_w < 0.7 * high_w);
            last_w = w;
        }
        assert_near(starts, 800.0 / iter_s[k], 1.0 + 0.001 * 800.0 / iter_s[k], "iterations");
        assert_near(low_ticks / 8000.0, 0.25, 0.003, "share of synchronisation");
        assert_near((tw_plant_total(p, 0) - from) / 800.0, 4 * 1000.0 * 0.75, 20.0, "throughput");
    }
}

static void test_phases(void **state)
{
    (void)state;
    struct tw_plant_job job = steady;
    job.start_s = 30.0;
    job.warm_s = 20.0;
    job.end_s = 700.0;
    job.eval = (struct tw_plant_pause){.every_s = 100.0, .last_s = 10.0, .act = 0.3};
    struct tw_plant *p = make(0, &job, 1, 5, 2, 0.0);
    double idle_w = 0.0, work_w = 0.0, total = 0.0;
    int paused = 0;
    for (int t = 0; t < 800; t++) {
        tw_plant_advance(p, SECOND);
        double w = instant_w(p, 0), gained = tw_plant_total(p, 0) - total;
        total += gained;
        if (t < 30)
            idle_w = w;
        if (t < 50 || t >= 700)
            assert_near(gained, 0.0, 1e-9, "progress before, warming up, after");
        if (t >= 700)
            assert_near(w, idle_w, 1e-9, "idle after the end");
        if (t >= 31 && t < 49)
            assert_true(w > idle_w + 50.0);
        if (t < 50 || t >= 700)
            continue;
        work_w = fmax(work_w, w);
        paused += !(gained > 0.0);
        if (!(gained > 0.0))
            assert_true(w < 0.65 * work_w || work_w < idle_w + 1.0);
    }
    assert_true(idle_w >= 70.0 && idle_w <= 120.0);
    /* 650 s hold 6 or 7 pauses of 8 to 12 s; the seconds at their edges are partly work. */
    assert_true(paused >= 6 * 7 && paused <= 7 * 12);
    assert_near(instant_w(p, 4), 95.0, 25.0, "a GPU without a job");
}

static void test_serving(void **state)
{
    (void)state;
    struct tw_plant_job job = steady;
    job.load_mean = 0.5;
    job.load_period_s = 1000.0;
    job.work.core_w = 400.0;
    struct tw_plant *p = make(0, &job, 1, 4, 1, 0.0);
    tw_plant_advance(p, 100 * SECOND);
    double free_rate = tw_plant_total(p, 0) / 100.0, free_w = instant_w(p, 0);
    assert_near(free_rate, 0.5 * 4000.0, 2.0, "the load is served");
    cap_all(p, 0.9 * free_w);
    tw_plant_advance(p, 10 * SECOND);
    double from = tw_plant_total(p, 0);
    tw_plant_advance(p, 100 * SECOND);
    assert_near((tw_plant_total(p, 0) - from) / 100.0, free_rate, 0.02 * free_rate,
                "a mild limit costs next to nothing");
    cap_all(p, 200.0);
    tw_plant_advance(p, 10 * SECOND);
    from = tw_plant_total(p, 0);
    tw_plant_advance(p, 100 * SECOND);
    assert_true(tw_plant_total(p, 0) - from < 0.9 * 100.0 * free_rate);
}

/* What a run shows agrees with what tw_plant_truth says, at every limit. */
static void test_truth(void **state)
{
    (void)state;
    static struct tw_plant_job job[10];
    assert_int_equal(tw_plant_default_jobs(64, 10, job, NULL), TW_OK);
    for (int k = 0; k < 10; k++) {
        job[k].eval.every_s = job[k].checkpoint.every_s = 0.0;
        job[k].load_swing = 0.0;
    }
    static const double cap_w[] = {700, 560, 430, 330, 240};
    for (size_t c = 0; c < sizeof cap_w / sizeof *cap_w; c++) {
        struct tw_plant *p = make(0, job, 10, 64, 4, 0.0);
        cap_all(p, cap_w[c]);
        tw_plant_advance(p, 20 * SECOND);
        double joule[10] = {0}, units[10];
        for (uint32_t k = 0; k < 10; k++)
            units[k] = -tw_plant_total(p, k);
        for (uint32_t i = 0; i < 64; i++) {
            struct tw_plant_reading r;
            tw_plant_read(p, i, &r);
            joule[tw_plant_job_of(p, i)] -= r.energy_j;
        }
        tw_plant_advance(p, 1800 * SECOND);
        for (uint32_t i = 0; i < 64; i++) {
            struct tw_plant_reading r;
            tw_plant_read(p, i, &r);
            joule[tw_plant_job_of(p, i)] += r.energy_j;
        }
        for (uint32_t k = 0; k < 10; k++) {
            double power_w, throughput;
            tw_plant_truth(p, k, cap_w[c], &power_w, &throughput);
            units[k] += tw_plant_total(p, k);
            assert_near(joule[k] / 1800.0, power_w, 0.008 * power_w, job[k].name);
            assert_near(units[k] / 1800.0, throughput, 0.008 * throughput, job[k].name);
        }
    }
}

/* ---- the default mix ---- */

/* The limit at which a job's true power is x of its uncapped power, by bisection; its throughput there. */
static double kept_at(const struct tw_plant *p, uint32_t job, double x)
{
    double p0_w, t0, power_w = 0.0, t = 0.0, low = 150.0, high = 700.0;
    tw_plant_truth(p, job, 700.0, &p0_w, &t0);
    for (int i = 0; i < 50; i++) {
        double mid = 0.5 * (low + high);
        tw_plant_truth(p, job, mid, &power_w, &t);
        if (power_w > x * p0_w)
            high = mid;
        else
            low = mid;
    }
    return t / t0;
}

static void test_default_mix(void **state)
{
    (void)state;
    struct tw_plant *p = make_default(0, 1, 0.0);
    tw_plant_advance(p, SECOND);
    double lowest = INFINITY, highest = 0.0;
    for (uint32_t k = 0; k < 10; k++) {
        const struct tw_plant_job *c = tw_plant_job_conf(p, k);
        double p0_w, t0, last_w = 0.0, last_t = 0.0;
        tw_plant_truth(p, k, 700.0, &p0_w, &t0);
        p0_w /= c->n_gpu;
        double pfi = 0.3 / (1.0 - kept_at(p, k, 0.7));
        printf("    %-15s %2u GPUs, %3.0f W each, keeps %.3f %.3f %.3f at 10, 20, 30 %%, PFI(30 %%) %.2f\n",
               c->name, c->n_gpu, p0_w, kept_at(p, k, 0.9), kept_at(p, k, 0.8), kept_at(p, k, 0.7), pfi);
        assert_true(p0_w >= 350.0 && p0_w <= 680.0);
        assert_true(pfi >= 0.95 && pfi <= 3.0);
        lowest = fmin(lowest, pfi);
        highest = fmax(highest, pfi);
        for (double cap_w = 200.0; cap_w <= 700.0; cap_w += 2.0) {
            double power_w, t;
            tw_plant_truth(p, k, cap_w, &power_w, &t);
            assert_true(t >= last_t && power_w >= last_w); /* more power never hurts */
            last_t = t;
            last_w = power_w;
        }
        assert_true(last_w > 0.0 && last_t > 0.0);
    }
    assert_true(lowest < 1.15 && highest > 2.4); /* jobs differ: there is something to win */
}

/* Evaluation and checkpoint of each kind of job take 30 to 60 % of its power. */
static void test_default_pauses(void **state)
{
    (void)state;
    static struct tw_plant_job job[10];
    assert_int_equal(tw_plant_default_jobs(64, 10, job, NULL), TW_OK);
    for (uint32_t k = 0; k < 10; k++) {
        job[k].sync_frac = 0.0; /* so that a tick without progress is a pause */
        assert_true(job[k].load_mean > 0.0 || k == 9 || job[k].eval.every_s > 0.0);
    }
    struct tw_plant *p = make(0, job, 10, 64, 2, 0.0);
    uint32_t first[10] = {0};
    for (uint32_t k = 1; k < 10; k++)
        first[k] = first[k - 1] + job[k - 1].n_gpu;
    double total[10] = {0}, low[10], high[10], work_w[10] = {0};
    int paused[10] = {0};
    for (uint32_t k = 0; k < 10; k++) {
        low[k] = INFINITY;
        high[k] = 0.0;
    }
    for (int t = 0; t < 36000; t++) {
        tw_plant_advance(p, SECOND / 10);
        for (uint32_t k = 0; k < 10; k++) {
            double w = instant_w(p, first[k]);
            if (tw_plant_total(p, k) > total[k]) {
                work_w[k] = fmax(work_w[k], w);
            } else {
                paused[k]++;
                low[k] = fmin(low[k], w);
                high[k] = fmax(high[k], w);
            }
            total[k] = tw_plant_total(p, k);
        }
    }
    for (uint32_t k = 0; k < 10; k++) {
        if (!(job[k].eval.every_s > 0.0)) {
            assert_int_equal(paused[k], 0);
            continue;
        }
        if (!(low[k] > 0.28 * work_w[k] && high[k] < 0.62 * work_w[k]))
            fail_msg("%s pauses at %.2f to %.2f of its power", job[k].name, low[k] / work_w[k],
                     high[k] / work_w[k]);
        assert_true(paused[k] > 360 && paused[k] < 3600); /* 1 to 10 % of the time */
    }
}

/* The curve family of the allocator must not be what made the curves, or the simulator would flatter it: the
 * best fit of t(x) = (1 - exp(-k (x - x0))) / (1 - exp(-k (1 - x0))) leaves a residual. */
static double family_rmse(const double x[], const double t[], int n)
{
    double best = INFINITY;
    for (double k = -6.0; k <= 14.0; k += 0.05)
        for (double x0 = -0.6; x0 <= 0.5; x0 += 0.01) {
            double sum = 0.0;
            for (int i = 0; i < n; i++) {
                double e =
                    (1.0 - exp(-(k + 1e-9) * (x[i] - x0))) / (1.0 - exp(-(k + 1e-9) * (1.0 - x0))) - t[i];
                sum += e * e;
            }
            best = fmin(best, sum);
        }
    return sqrt(best / n);
}

static void test_not_the_allocators_family(void **state)
{
    (void)state;
    struct tw_plant *p = make_default(0, 1, 0.0);
    tw_plant_advance(p, SECOND);
    int off = 0;
    for (uint32_t k = 0; k < 10; k++) {
        double x[13], t[13];
        for (int i = 0; i < 13; i++) {
            x[i] = 1.0 - 0.05 * i;
            t[i] = i ? kept_at(p, k, x[i]) : 1.0;
        }
        double rmse = family_rmse(x, t, 13);
        printf("    %-15s best fit of the allocator's family leaves %.2f %%\n", tw_plant_job_conf(p, k)->name,
               100.0 * rmse);
        off += rmse > 0.005;
    }
    assert_true(off >= 5);
}

/* ---- bad input ---- */

static void test_bad_conf(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        struct tw_plant_job change;
    } c[] = {
        {"n_gpu", {.n_gpu = 0, .weight = 1, .rate = 1}},
        {"weight", {.n_gpu = 1, .weight = NAN, .rate = 1}},
        {"rate", {.n_gpu = 1, .weight = 1, .rate = -1}},
        {"iter_s", {.n_gpu = 1, .weight = 1, .rate = 1, .iter_s = NAN}},
        {"sync_frac", {.n_gpu = 1, .weight = 1, .rate = 1, .iter_s = 5, .sync_frac = 1.0}},
        {"sync_act", {.n_gpu = 1, .weight = 1, .rate = 1, .iter_s = 5, .sync_frac = 0.2}},
        {"pause", {.n_gpu = 1, .weight = 1, .rate = 1, .eval = {10.0, 9.0, 0.3}}},
        {"load_period_s", {.n_gpu = 1, .weight = 1, .rate = 1, .load_mean = 0.5}},
        {"core_w", {.n_gpu = 1, .weight = 1, .rate = 1}},
        {"want 9 GPUs", {.n_gpu = 9, .weight = 1, .rate = 1}},
    };
    struct tw_arena arena;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct tw_plant *p = NULL;
        struct tw_why why = {""};
        struct tw_plant_conf conf = {
            .board = &tw_board_h100, .job = &c[i].change, .n_job = 1, .n_gpu = 8, .noise = 1};
        tw_arena_init(&arena, block[0], sizeof block[0]);
        assert_int_equal(tw_plant_new(&arena, &conf, &p, &why), TW_EINVAL);
        assert_null(p);
        assert_int_equal(tw_arena_mark(&arena), 0); /* nothing kept */
        if (!strstr(why.text, c[i].says))
            fail_msg("\"%s\" does not say \"%s\"", why.text, c[i].says);
    }
    struct tw_plant *p = NULL;
    struct tw_plant_conf conf = {.board = &tw_board_h100, .job = &steady, .n_job = 1, .n_gpu = 4, .noise = 1};
    tw_arena_init(&arena, block[0], tw_plant_bytes(4, 1) / 2);
    assert_int_equal(tw_plant_new(&arena, &conf, &p, NULL), TW_ENOMEM);
    conf.n_gpu = 0;
    assert_int_equal(tw_plant_new(&arena, &conf, &p, NULL), TW_EINVAL);
    conf.n_gpu = 4;
    conf.noise = NAN;
    assert_int_equal(tw_plant_new(&arena, &conf, &p, NULL), TW_EINVAL);
    assert_null(p);
}

static void test_write_faults(void **state)
{
    (void)state;
    struct tw_plant *p = make(0, &steady, 1, 4, 1, 0.0);
    struct tw_plant_reading r;
    tw_plant_advance(p, 5 * SECOND);
    tw_plant_fault(p, 0, TW_PLANT_FAULT_IGNORE, 0.0);
    tw_plant_fault(p, 1, TW_PLANT_FAULT_CLAMP, 420.0);
    tw_plant_fault(p, 2, TW_PLANT_FAULT_STUCK, 0.0);
    cap_all(p, 300.0);
    tw_plant_advance(p, 5 * SECOND);
    assert_true(instant_w(p, 0) > 450.0); /* measured power tells */
    assert_near(instant_w(p, 1), 420.0 * 0.995, 1.0, "clamped");
    tw_plant_read(p, 2, &r);
    assert_true(!r.fresh && r.time_us == 5 * SECOND && r.power_w > 450.0);
    tw_plant_fault(p, 2, TW_PLANT_FAULT_NONE, 0.0);
    tw_plant_read(p, 2, &r);
    assert_true(r.fresh && r.time_us == 10 * SECOND && r.power_w < 300.0); /* it worked all the while */
    tw_plant_fault(p, 0, TW_PLANT_FAULT_NONE, 0.0);
    tw_plant_advance(p, SECOND);
    tw_plant_read(p, 0, &r);
    assert_true(r.cap_w < 301.0 && r.cap_enforced_w > 699.0); /* what was ignored stays ignored */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_voltage),
        cmocka_unit_test(test_table_formula),
        cmocka_unit_test(test_step_is_inverse),
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_limit_is_held),
        cmocka_unit_test(test_settling),
        cmocka_unit_test(test_sensors),
        cmocka_unit_test(test_same_seed),
        cmocka_unit_test(test_noise_does_not_follow_caps),
        cmocka_unit_test(test_noise_after_a_limit),
        cmocka_unit_test(test_lockstep),
        cmocka_unit_test(test_rhythm),
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_serving),
        cmocka_unit_test(test_truth),
        cmocka_unit_test(test_default_mix),
        cmocka_unit_test(test_default_pauses),
        cmocka_unit_test(test_not_the_allocators_family),
        cmocka_unit_test(test_bad_conf),
        cmocka_unit_test(test_write_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
