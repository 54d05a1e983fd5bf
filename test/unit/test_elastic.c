/* SPDX-License-Identifier: Apache-2.0 */
/* elastic: curves and their inverses, fits, what is believed from a few points, PFI. */
#include "base/rng.h"
#include "elastic/belief.h"
#include "elastic/curve.h"
#include "elastic/fit.h"
#include "elastic/measured.h"
#include "elastic/pfi.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NEAR(got, want, tol)                                                                                   \
    do {                                                                                                       \
        double g_ = (got), w_ = (want);                                                                        \
        if (!(fabs(g_ - w_) <= (tol)))                                                                         \
            fail_msg("%s is %.9g, want %.9g", #got, g_, w_);                                                   \
    } while (0)

/* The family as the spec writes it, by its own formula. */
static double spec_curve(double k, double x0, double x)
{
    return (1.0 - exp(-k * (x - x0))) / (1.0 - exp(-k * (1.0 - x0)));
}

static struct tw_curve a_knots_curve(void)
{
    static const double x[] = {0.4, 0.6, 0.8, 1.0}, t[] = {0.3, 0.7, 0.95, 1.0};
    struct tw_curve c;
    assert_int_equal(tw_curve_init_knots(&c, x, t, 4, NULL), TW_OK);
    return c;
}

static void test_exp_is_the_family_of_the_spec(void **state)
{
    (void)state;
    static const double k[] = {0.01, 0.5, 3.1, 9.0, 30.0}, x0[] = {-2.0, 0.0, 0.2, 0.45};
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        for (size_t j = 0; j < sizeof x0 / sizeof *x0; j++) {
            struct tw_curve c;
            assert_int_equal(tw_curve_init_exp(&c, k[i], x0[j], NULL), TW_OK);
            NEAR(tw_curve_x0(&c), x0[j], 1e-6);
            for (double x = 0.5; x <= 1.0; x += 0.05)
                NEAR(tw_curve_value(&c, x), spec_curve(k[i], x0[j], x), 1e-9);
        }
    }
}

static void test_slope_against_differences(void **state)
{
    (void)state;
    struct tw_curve c[2] = {tw_curve_of_loss(4.0, 0.3, 0.2), a_knots_curve()};
    for (int f = 0; f < 2; f++) {
        for (double x = 0.43; x < 0.99; x += 0.05) {
            double h = 1e-6;
            NEAR(tw_curve_slope(&c[f], x),
                 (tw_curve_value(&c[f], x + h) - tw_curve_value(&c[f], x - h)) / (2 * h), 1e-5);
        }
    }
}

static void test_inverses(void **state)
{
    (void)state;
    struct tw_curve e = tw_curve_of_loss(4.0, 0.3, 0.2), n = a_knots_curve();
    for (double x = 0.41; x < 1.0; x += 0.04) {
        NEAR(tw_curve_at_slope(&e, tw_curve_slope(&e, x)), x, 1e-12);
        NEAR(tw_curve_depth(&e, 1.0 - tw_curve_value(&e, x)), 1.0 - x, 1e-12);
        NEAR(tw_curve_depth(&n, 1.0 - tw_curve_value(&n, x)), 1.0 - x, 1e-12);
    }
    NEAR(tw_curve_at_slope(&e, 1e-9), 1.0, 0.0);
    NEAR(tw_curve_at_slope(&n, 0.2), 1.0, 0.0);
    NEAR(tw_curve_at_slope(&n, 1.0), 0.8, 0.0);
    NEAR(tw_curve_at_slope(&n, 1.5), 0.6, 0.0);
    NEAR(tw_curve_at_slope(&n, 99.0), 0.0, 0.0);
    NEAR(tw_curve_depth(&n, 0.05), 0.2, 1e-12);
    NEAR(tw_curve_depth(&n, 5.0), 1.0, 0.0);
    NEAR(tw_curve_knee(&n, 0.6), 0.2, 1e-12);
    assert_true(isnan(tw_curve_knee(&n, 0.1)));
    NEAR(tw_curve_pfi(&n, 0.2), 4.0, 1e-12);
    NEAR(tw_curve_value(&n, 0.3), 0.1, 1e-12);
    NEAR(tw_curve_value(&n, 0.1), 0.0, 0.0);
    NEAR(tw_curve_value(&n, 1.2), 1.0, 0.0);
}

static void test_knots_refused(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        double x[3], t[3];
    } bad[] = {
        {"not concave", {0.5, 0.7, 1.0}, {0.5, 0.6, 1.0}},
        {"falling", {0.5, 0.7, 1.0}, {0.9, 1.1, 1.0}},
        {"not ascending", {0.7, 0.5, 1.0}, {0.5, 0.6, 1.0}},
        {"does not end at 1", {0.5, 0.7, 0.9}, {0.5, 0.8, 1.0}},
        {"not a number", {0.5, (double)NAN, 1.0}, {0.5, 0.9, 1.0}},
    };
    struct tw_curve c;
    struct tw_why why;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (tw_curve_init_knots(&c, bad[i].x, bad[i].t, 3, &why) != TW_EINVAL)
            fail_msg("%s: taken", bad[i].what);
}

static void test_fit_recovers_parameters(void **state)
{
    (void)state;
    static const double k[] = {0.8, 3.1, 7.0, 15.0}, x0[] = {0.1, 0.2, 0.3, 0.4};
    for (int c = 0; c < 4; c++) {
        double x[7], t[7];
        for (int i = 0; i < 7; i++) {
            x[i] = 0.5 + 0.07 * i;
            t[i] = spec_curve(k[c], x0[c], x[i]);
        }
        struct tw_fit f = tw_fit_exp(x, t, 7);
        NEAR(f.curve.k, k[c], 2e-3 * k[c]);
        NEAR(tw_curve_x0(&f.curve), x0[c], 2e-3);
        NEAR(f.rmse, 0.0, 1e-5);
        t[2] -= 0.2; /* one bad run does not bend the curve */
        f = tw_fit_exp(x, t, 7);
        for (double u = 0.5; u < 1.0; u += 0.1)
            NEAR(tw_curve_value(&f.curve, u), spec_curve(k[c], x0[c], u), 0.02);
    }
}

static void test_concave_regression(void **state)
{
    (void)state;
    /* Concave points are their own best fit. */
    static const double x[] = {0.8, 0.4, 0.6}, t[] = {0.95, 0.3, 0.7};
    struct tw_fit f = tw_fit_concave(x, t, 3);
    for (int i = 0; i < 3; i++)
        NEAR(tw_curve_value(&f.curve, x[i]), t[i], 1e-9);
    /* Two points that call for a convex bend: the best concave curve is one line through (1, 1), of least
     * squares slope (0.2 * 0.3 + 0.4 * 0.3) / (0.2^2 + 0.4^2) = 0.9. */
    static const double x2[] = {0.8, 0.6}, t2[] = {0.7, 0.7};
    f = tw_fit_concave(x2, t2, 2);
    NEAR(tw_curve_slope(&f.curve, 0.9), 0.9, 1e-9);
    NEAR(tw_curve_slope(&f.curve, 0.7), 0.9, 1e-9);
    /* Points above the uncapped one: flat there. */
    static const double x3[] = {0.9, 0.8, 0.6}, t3[] = {1.02, 1.01, 0.8};
    f = tw_fit_concave(x3, t3, 3);
    NEAR(tw_curve_value(&f.curve, 0.9), 1.0, 1e-9);
    NEAR(tw_curve_value(&f.curve, 0.8), 1.0, 1e-9);
    NEAR(tw_curve_value(&f.curve, 0.6), 0.8, 1e-9);
}

/* Optimality of the regression on random noisy points: no small feasible move lowers the error (a convex
 * problem, so this is the global optimum). */
static double sum_of_squares(const struct tw_curve *c, const double *x, const double *t, int n)
{
    double s = 0.0;
    for (int i = 0; i < n; i++) {
        double r = tw_curve_value(c, x[i]) - t[i];
        s += r * r;
    }
    return s;
}

static void test_concave_regression_is_optimal(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 7, 0);
    for (int round = 0; round < 200; round++) {
        double x[9], t[9];
        struct tw_curve truth =
            tw_curve_of_loss(tw_rng_uniform(&rng, 1, 9), 0.5, tw_rng_uniform(&rng, 0.1, 0.6));
        for (int i = 0; i < 9; i++) {
            x[i] = tw_rng_uniform(&rng, 0.5, 0.99);
            t[i] = tw_curve_value(&truth, x[i]) + 0.02 * tw_rng_normal(&rng);
        }
        struct tw_fit f = tw_fit_concave(x, t, 9);
        struct tw_curve checked;
        assert_int_equal(tw_curve_init_knots(&checked, f.curve.x, f.curve.t, f.curve.n, NULL), TW_OK);
        double best = sum_of_squares(&f.curve, x, t, 9);
        assert_true(best <= sum_of_squares(&truth, x, t, 9) + 1e-12);
        for (int move = 0; move < 40; move++) { /* a little towards another concave curve, seen at the points */
            struct tw_curve other =
                tw_curve_of_loss(tw_rng_uniform(&rng, 0.1, 20), 0.5, tw_rng_uniform(&rng, 0, 1));
            double s = 0.0, e = 1e-3;
            for (int i = 0; i < 9; i++) {
                double r = (1 - e) * tw_curve_value(&f.curve, x[i]) + e * tw_curve_value(&other, x[i]) - t[i];
                s += r * r;
            }
            assert_true(s >= best - 1e-12);
        }
    }
}

static void test_evidence_chooses(void **state)
{
    (void)state;
    double x[8], smooth[8], bent[8];
    struct tw_curve knee = a_knots_curve();
    for (int i = 0; i < 8; i++) {
        x[i] = 0.42 + 0.07 * i;
        smooth[i] = spec_curve(4.0, 0.2, x[i]);
        bent[i] = tw_curve_value(&knee, x[i]);
    }
    struct tw_fit e, f = tw_fit_best(x, smooth, 8, &e);
    assert_int_equal(f.curve.family, TW_CURVE_EXP);
    f = tw_fit_best(x, bent, 8, &e);
    assert_int_equal(f.curve.family, TW_CURVE_KNOTS);
    assert_true(e.rmse > 0.01 && f.rmse < 0.005);
    NEAR(tw_curve_knee(&f.curve, 1.0), 0.2, 0.04);
}

static void test_belief(void **state)
{
    (void)state;
    struct tw_curve truth;
    assert_int_equal(tw_curve_init_exp(&truth, 6.0, 0.25, NULL), TW_OK);
    struct tw_belief b;
    tw_belief_init(&b, NULL);
    double sd0, sd1, sd2, m0 = tw_belief_value(&b, 0.7, &sd0);
    assert_true(m0 > 0.7 && m0 < 0.95 && sd0 > 0.03);
    double stray0 = tw_belief_stray(&b, 0.7);
    assert_int_equal(tw_belief_add(&b, 0.92, tw_curve_value(&truth, 0.92), 0.005, 0.007), TW_OK);
    (void)tw_belief_value(&b, 0.7, &sd1);
    assert_int_equal(tw_belief_add(&b, 0.77, tw_curve_value(&truth, 0.77), 0.005, 0.007), TW_OK);
    double m2 = tw_belief_value(&b, 0.7, &sd2), stray2 = tw_belief_stray(&b, 0.7);
    assert_true(sd1 < sd0 && sd2 < 0.5 * sd1);
    NEAR(m2, tw_curve_value(&truth, 0.7), 3.0 * sd2);
    assert_true(stray0 < 0.1 && stray2 > 1.5 * stray0);
    struct tw_curve c = tw_belief_curve(&b);
    for (double x = 0.65; x < 1.0; x += 0.05)
        NEAR(tw_curve_value(&c, x), tw_belief_value(&b, x, NULL), 0.01);
    /* many exact points: the truth */
    for (int i = 0; i < 20; i++)
        assert_int_equal(tw_belief_add(&b, 0.5 + 0.02 * i, tw_curve_value(&truth, 0.5 + 0.02 * i), 1e-4, 1e-4),
                         TW_OK);
    c = tw_belief_curve(&b);
    NEAR(c.k, 6.0, 0.05);
    NEAR(tw_curve_x0(&c), 0.25, 0.005);
    static const double bad[][4] = {
        {1.0, 1, .01, .01}, {0.5, -0.1, .01, .01}, {0.5, 0.5, .01, 0}, {0, 0.5, .01, .01}};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(tw_belief_add(&b, bad[i][0], bad[i][1], bad[i][2], bad[i][3]), TW_EINVAL);
    assert_int_equal(tw_belief_add(&b, (double)NAN, 0.5, .01, .01), TW_EINVAL);
}

/* The posterior keeps its promise: over jobs drawn from the prior, with noisy probes, the truth lies in the 90
 * % interval about nine times in ten. */
static void test_belief_coverage(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 11, 0);
    int inside = 0;
    const double noise = hypot(0.006, TW_BELIEF_MISFIT); /* a real curve strays from its family as well */
    enum { JOBS = 1000 };
    for (int j = 0; j < JOBS; j++) {
        struct tw_belief b;
        tw_belief_init(&b, NULL);
        struct tw_curve truth =
            tw_curve_of_loss(exp(b.prior.mean[0] + b.prior.sd[0] * tw_rng_normal(&rng)), TW_BELIEF_CUT,
                             fmin(1.0, exp(b.prior.mean[1] + b.prior.sd[1] * tw_rng_normal(&rng))));
        for (int i = 0; i < 2; i++) {
            double x = i ? 0.78 : 0.92;
            assert_int_equal(tw_belief_add(&b, x + 0.004 * tw_rng_normal(&rng),
                                           tw_curve_value(&truth, x) + noise * tw_rng_normal(&rng), 0.004,
                                           0.006),
                             TW_OK);
        }
        double sd, mean = tw_belief_value(&b, 0.7, &sd);
        inside += fabs(tw_curve_value(&truth, 0.7) - mean) <= 1.645 * sd;
    }
    /* Laplace and a ramped end are approximations: four standard errors of a binomial around 0.9, and 2 points
     */
    assert_in_range(inside, (int)(JOBS * (0.9 - 0.02 - 4 * 0.0095)), (int)(JOBS * (0.9 + 0.02 + 4 * 0.0095)));
}

/* The emerald jobs as published, and their PFI as the specification gives it. */
static void test_pfi_of_published_points(void **state)
{
    (void)state;
    static const struct {
        const char *job;
        double p[6], t[6], mean, ros;
    } c[] = {
        {"ft_llama_8b_dolly",
         {345.648, 320.617, 288.304, 244.121, 196.119, 99.8529},
         {0.19722222, 0.19333333, 0.1875, 0.17833333, 0.15916667, 0.0475},
         2.657,
         1.500},
        {"infer_llama_8b",
         {368.375, 332.906, 288.965, 241.801, 194.684, 97.9433},
         {0.0666, 0.065, 0.062, 0.058, 0.052, 0.015},
         2.578,
         1.530},
        {"pt_mpt_13b_lg",
         {381.749, 337.099, 291.142, 244.743, 196.183, 101.734},
         {0.14833333, 0.13666667, 0.1275, 0.11583333, 0.0925, 0.028333333},
         1.403,
         1.190},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct tw_pfi f = tw_pfi_of(c[i].p[0], c[i].t[0], c[i].p + 1, c[i].t + 1, 5);
        NEAR(f.mean, c[i].mean, 0.0005);
        NEAR(f.ros, c[i].ros, 0.0005);
        assert_int_equal(f.used, 5);
    }
    /* gridpilot_v100, inference at 1380 MHz: one of two caps binds. */
    static const double p[] = {222.4, 147.2}, t[] = {509.78, 422.88};
    struct tw_pfi f = tw_pfi_of(223.0, 509.842, p, t, 2);
    assert_int_equal(f.used, 1);
    NEAR(f.mean, (1 - 147.2 / 223.0) / (1 - 422.88 / 509.842), 1e-12);
    NEAR(f.plain, 12.06, 0.005);
}

static void test_pfi_guards(void **state)
{
    (void)state;
    static const double p[] = {99.0, 80.0, 60.0}, t[] = {90.0, 100.5, 99.9};
    struct tw_pfi f = tw_pfi_of(100.0, 100.0, p, t, 3); /* too little cut, no loss, too little loss */
    assert_int_equal(f.used, 0);
    assert_true(isnan(f.mean));
    NEAR(f.ros, 0.61 / (0.1 - 0.005 + 0.001), 1e-9);
    double scratch[200], low = 0, high = 0;
    f = tw_pfi_of(100.0, 100.0, p + 1, t + 1, 1);
    assert_true(isnan(f.ros)); /* nothing is lost */
    tw_pfi_interval(100.0, 100.0, p + 1, t + 1, 1, 200, 1, 1, scratch, &low, &high);
    assert_true(isnan(low) && isnan(high));
}

/* One point far from the guards: PFI = d / l with d = 1 - p/p0, so its deviation by the delta method is
 * PFI sqrt((sd_d / d)^2 + (sd_l / l)^2), sd_d = (p/p0) 0.004 sqrt 2, sd_l = (t/t0) 0.005 sqrt 2; +-1.645 of it.
 */
static void test_pfi_interval(void **state)
{
    (void)state;
    static const double p[] = {60.0}, t[] = {75.0};
    static double scratch[20000];
    double low, high, again_low, again_high;
    tw_pfi_interval(100.0, 100.0, p, t, 1, 20000, 1, 2, scratch, &low, &high);
    double pfi = 0.4 / 0.25, sd_d = 0.6 * 0.004 * sqrt(2.0), sd_l = 0.75 * 0.005 * sqrt(2.0);
    double half = 1.645 * pfi * sqrt(sd_d * sd_d / 0.16 + sd_l * sd_l / 0.0625);
    NEAR(low, pfi - half, 0.05 * half);
    NEAR(high, pfi + half, 0.05 * half);
    tw_pfi_interval(100.0, 100.0, p, t, 1, 20000, 1, 2, scratch, &again_low, &again_high);
    NEAR(again_low, low, 0.0);
    NEAR(again_high, high, 0.0);
}

static void test_measured(void **state)
{
    (void)state;
    static const double x[] = {0.8, 1.02, 0.5, 0.8}, t[] = {0.9, 1.01, 0.4, 0.94};
    double sx[5], st[5];
    struct tw_measured m = {sx, st, tw_measured_sort(x, t, 4, sx, st)};
    assert_int_equal(m.n, 3); /* two at one x are one, above 1 is left out, (1, 1) is added */
    NEAR(tw_measured_value(&m, 0.8), 0.92, 1e-12);
    NEAR(tw_measured_value(&m, 0.65), 0.66, 1e-12);
    NEAR(tw_measured_value(&m, 0.9), 0.96, 1e-12);
    NEAR(tw_measured_value(&m, 0.1), 0.4, 0.0);
    NEAR(tw_measured_value(&m, 1.3), 1.0, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_is_the_family_of_the_spec),
        cmocka_unit_test(test_slope_against_differences),
        cmocka_unit_test(test_inverses),
        cmocka_unit_test(test_knots_refused),
        cmocka_unit_test(test_fit_recovers_parameters),
        cmocka_unit_test(test_concave_regression),
        cmocka_unit_test(test_concave_regression_is_optimal),
        cmocka_unit_test(test_evidence_chooses),
        cmocka_unit_test(test_belief),
        cmocka_unit_test(test_belief_coverage),
        cmocka_unit_test(test_pfi_of_published_points),
        cmocka_unit_test(test_pfi_guards),
        cmocka_unit_test(test_pfi_interval),
        cmocka_unit_test(test_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
