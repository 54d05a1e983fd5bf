/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation: properties over random instances, each split passed by the checker, optimality against slower
 * programs that share nothing with the solvers, and the checker against splits that were tampered with. */
#include "alloc/alloc.h"
#include "alloc/check.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 48, ROUNDS = 300 };

struct instance {
    size_t n;
    double budget_w, floor_sum_w, ceiling_sum_w;
    struct tw_alloc_job job[MOST];
    struct tw_curve curve[MOST];
    double x[MOST][5], t[MOST][5];
    double floor_w[MOST], ceiling_w[MOST];
};

static _Alignas(64) unsigned char memory[24 << 20];

static struct tw_arena fresh(void)
{
    struct tw_arena a;
    tw_arena_init(&a, memory, sizeof memory);
    return a;
}

/* Four measured points, out of shape as real ones are, and a concave curve of either family. */
static void draw_job(struct instance *in, size_t i, struct tw_rng *rng)
{
    struct tw_curve *c = &in->curve[i];
    *c = tw_curve_of_loss(exp(tw_rng_uniform(rng, -1.0, 3.0)), 0.3, tw_rng_uniform(rng, 0.02, 0.4));
    if (tw_rng_below(rng, 2)) {
        double x[4] = {0.4, 0.55, 0.8, 1.0}, t[4], slope = tw_rng_uniform(rng, 0.0, 0.3);
        t[3] = 1.0;
        for (int k = 2; k >= 0; k--, slope += tw_rng_uniform(rng, 0.0, 1.0))
            t[k] = t[k + 1] - slope * (x[k + 1] - x[k]);
        assert_int_equal(tw_curve_init_knots(c, x, t, 4, NULL), TW_OK);
    }
    for (int k = 0; k < 5; k++) {
        in->x[i][k] = k == 4 ? 1.0 : 0.35 + 0.15 * k + tw_rng_uniform(rng, 0.0, 0.1);
        in->t[i][k] = k == 4 ? 1.0 : tw_curve_value(c, in->x[i][k]) + 0.03 * tw_rng_normal(rng);
    }
    double p0 = exp(tw_rng_uniform(rng, 5.0, 9.0)), low = tw_rng_uniform(rng, in->x[i][0], 0.6);
    in->job[i] = (struct tw_alloc_job){
        .p0_w = p0,
        .floor_w = low * p0,
        .ceiling_w = p0 * (tw_rng_below(rng, 4) ? 1.0 : tw_rng_uniform(rng, low, 1.0)),
        .weight = exp(tw_rng_uniform(rng, -2.0, 2.0)),
        .stray_frac = tw_rng_below(rng, 3) ? (double)INFINITY : tw_rng_uniform(rng, 0.0, 0.2),
        .gpus = (double)(1 + tw_rng_below(rng, 16)),
        .flex = tw_rng_uniform(rng, 1.0, 3.0),
        .curve = c,
        .measured = {in->x[i], in->t[i], 5},
    };
    in->floor_w[i] = in->job[i].floor_w;
    in->ceiling_w[i] = in->job[i].ceiling_w;
}

static void draw(struct instance *in, struct tw_rng *rng)
{
    in->n = 1 + tw_rng_below(rng, MOST);
    in->floor_sum_w = in->ceiling_sum_w = 0.0;
    for (size_t i = 0; i < in->n; i++) {
        draw_job(in, i, rng);
        in->floor_sum_w += in->floor_w[i];
        in->ceiling_sum_w += in->ceiling_w[i];
    }
    in->budget_w = in->floor_sum_w + (in->ceiling_sum_w - in->floor_sum_w) * tw_rng_uniform(rng, 0.0, 1.1);
}

static void solve(enum tw_policy p, const struct instance *in, double *cap)
{
    struct tw_arena a = fresh();
    struct tw_why why = {""};
    enum tw_err err = TW_EINTERNAL;
    switch (p) {
    case TW_POLICY_EQUAL:
        err = tw_alloc_equal(in->job, in->n, in->budget_w, &a, cap, NULL, &why);
        break;
    case TW_POLICY_EQUAL_WATTS:
        err = tw_alloc_equal_watts(in->job, in->n, in->budget_w, &a, cap, NULL, &why);
        break;
    case TW_POLICY_PFI:
        err = tw_alloc_pfi(in->job, in->n, in->budget_w, &a, cap, &why);
        break;
    case TW_POLICY_CURVE:
        err = tw_alloc_curve(in->job, in->n, in->budget_w, &a, cap, NULL, &why);
        break;
    case TW_POLICY_ORACLE:
        err = tw_alloc_oracle(in->job, in->n, in->budget_w, &a, cap, &why);
        break;
    case TW_POLICY_COUNT:
        break;
    }
    if (err != TW_OK)
        fail_msg("%s: %s", tw_policy_name[p], why.text);
    assert_int_equal(a.used, 0); /* scratch is given back */
}

static double fitted(const struct instance *in, const double *cap)
{
    double sum = 0.0;
    for (size_t i = 0; i < in->n; i++)
        sum += in->job[i].weight * tw_curve_value(&in->curve[i], cap[i] / in->job[i].p0_w);
    return sum;
}

static double measured(const struct instance *in, const double *cap)
{
    double sum = 0.0;
    for (size_t i = 0; i < in->n; i++)
        sum += in->job[i].weight * tw_measured_value(&in->job[i].measured, cap[i] / in->job[i].p0_w);
    return sum;
}

static void test_every_split_is_valid(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 1, 0);
    for (int round = 0; round < ROUNDS; round++) {
        static struct instance in;
        double cap[MOST];
        draw(&in, &rng);
        for (enum tw_policy p = 0; p < TW_POLICY_COUNT; p++) {
            if (p == TW_POLICY_ORACLE && round % 10)
                continue;
            solve(p, &in, cap);
            struct tw_why why = {""};
            if (tw_alloc_check(cap, in.floor_w, in.ceiling_w, in.n, in.budget_w, &why) != TW_OK)
                fail_msg("round %d, %s: %s", round, tw_policy_name[p], why.text);
            double sum = 0.0;
            for (size_t i = 0; i < in.n; i++)
                sum += cap[i];
            if (p != TW_POLICY_ORACLE) /* what there is, is used */
                assert_true(sum >= fmin(in.budget_w, in.ceiling_sum_w) * (1 - 1e-9));
        }
    }
}

/* Water-filling the slow way: bisection on the price, and inside it on each job's power, by nothing but the
 * slope. */
static double slow_cap(const struct tw_alloc_job *j, double lo, double hi, double price)
{
    for (int k = 0; k < 100; k++) {
        double mid = 0.5 * (lo + hi);
        if (j->weight * tw_curve_slope(j->curve, mid / j->p0_w) / j->p0_w >= price)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static double slow_best(const struct instance *in, const double *equal)
{
    double low = -60.0, high = 40.0, lo[MOST], hi[MOST];
    for (size_t i = 0; i < in->n; i++) {
        lo[i] = fmax(in->floor_w[i], equal[i] - in->job[i].stray_frac * in->job[i].p0_w);
        hi[i] = fmin(in->ceiling_w[i], equal[i] + in->job[i].stray_frac * in->job[i].p0_w);
    }
    for (int k = 0; k < 200; k++) {
        double mid = 0.5 * (low + high), sum = 0.0;
        for (size_t i = 0; i < in->n; i++)
            sum += slow_cap(&in->job[i], lo[i], hi[i], exp(mid));
        if (sum > in->budget_w)
            low = mid;
        else
            high = mid;
    }
    double best = 0.0, spent = 0.0;
    for (size_t i = 0; i < in->n; i++) {
        double cap = slow_cap(&in->job[i], lo[i], hi[i], exp(high));
        spent += cap;
        best += in->job[i].weight * tw_curve_value(in->job[i].curve, cap / in->job[i].p0_w);
    }
    return best + exp(high) * fmax(in->budget_w - spent, 0.0); /* dual bound: nothing can be better */
}

static void test_curve_is_optimal(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 2, 0);
    for (int round = 0; round < ROUNDS; round++) {
        static struct instance in;
        double cap[MOST], equal[MOST];
        draw(&in, &rng);
        in.budget_w = fmin(in.budget_w, in.ceiling_sum_w);
        solve(TW_POLICY_EQUAL, &in, equal);
        solve(TW_POLICY_CURVE, &in, cap);
        double got = fitted(&in, cap), bound = slow_best(&in, equal);
        if (!(fabs(got - bound) <= 1e-6 * bound))
            fail_msg("round %d, %zu jobs: %.9g, best %.9g", round, in.n, got, bound);
        for (size_t i = 0; i < in.n; i++)
            assert_true(fabs(cap[i] - equal[i]) <= in.job[i].stray_frac * in.job[i].p0_w + 1e-6);
    }
}

static void test_more_budget_never_hurts(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 3, 0);
    for (int round = 0; round < 60; round++) {
        static struct instance in;
        double cap[MOST], last = -1.0, last_measured = -1.0, price_before = (double)INFINITY;
        draw(&in, &rng);
        for (size_t i = 0; i < in.n; i++)
            in.job[i].stray_frac = (double)INFINITY; /* a bound around equal moves with the budget */
        for (int step = 0; step <= 10; step++) {
            in.budget_w = in.floor_sum_w + (in.ceiling_sum_w - in.floor_sum_w) * step / 10.0;
            struct tw_arena a = fresh();
            double price;
            assert_int_equal(tw_alloc_curve(in.job, in.n, in.budget_w, &a, cap, &price, NULL), TW_OK);
            double got = fitted(&in, cap);
            assert_true(got >= last - 1e-9 * fabs(last));
            /* the next watt is never worth more than this one */
            if (!(price <= price_before * (1 + 1e-9)))
                fail_msg("round %d, step %d, %zu jobs: price %.12g after %.12g", round, step, in.n, price,
                         price_before);
            last = got;
            price_before = price;
            if (round % 10 == 0) {
                solve(TW_POLICY_ORACLE, &in, cap);
                got = measured(&in, cap);
                assert_true(got >= last_measured - 1e-9 * fabs(last_measured));
                last_measured = got;
            }
        }
    }
}

static void test_order_does_not_matter(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 4, 0);
    for (int round = 0; round < ROUNDS; round++) {
        static struct instance in, turned;
        double cap[MOST], cap2[MOST];
        draw(&in, &rng);
        turned = in;
        size_t shift = tw_rng_below(&rng, in.n);
        for (size_t i = 0; i < in.n; i++) {
            size_t from = (in.n - 1 - i + shift) % in.n; /* turned about and shifted */
            turned.job[i] = in.job[from];
        }
        for (enum tw_policy p = 0; p < TW_POLICY_COUNT; p++) {
            if (p == TW_POLICY_ORACLE)
                continue;
            solve(p, &in, cap);
            solve(p, &turned, cap2);
            for (size_t i = 0; i < in.n; i++)
                if (!(fabs(cap2[i] - cap[(in.n - 1 - i + shift) % in.n]) <= 1e-6 * turned.job[i].p0_w))
                    fail_msg("round %d, %s: job %zu differs", round, tw_policy_name[p], i);
        }
    }
}

/* The best of all: at an optimum of straight pieces at most one job stands inside a piece. So every choice of
 * that job and of end points for the others is tried. */
static double brute(const struct instance *in, size_t free_job, size_t i, double left, double sum)
{
    if (i == in->n) {
        const struct tw_alloc_job *j = &in->job[free_job];
        if (!(left >= j->floor_w - 1e-9))
            return -(double)INFINITY;
        double best = -(double)INFINITY, top = fmin(left, j->ceiling_w);
        for (double cap = j->floor_w; cap <= top; cap += (top - j->floor_w) / 4000.0 + 1e-12)
            best = fmax(best, j->weight * tw_measured_value(&j->measured, cap / j->p0_w));
        return sum + fmax(best, j->weight * tw_measured_value(&j->measured, top / j->p0_w));
    }
    if (i == free_job)
        return brute(in, free_job, i + 1, left, sum);
    const struct tw_alloc_job *j = &in->job[i];
    double best = -(double)INFINITY;
    for (int k = -1; k <= 5; k++) {
        double cap = k < 0 ? j->floor_w : k == 5 ? j->ceiling_w : in->x[i][k] * j->p0_w;
        if (cap >= j->floor_w && cap <= j->ceiling_w && cap <= left)
            best = fmax(best, brute(in, free_job, i + 1, left - cap,
                                    sum + j->weight * tw_measured_value(&j->measured, cap / j->p0_w)));
    }
    return best;
}

static void test_oracle_is_optimal(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 5, 0);
    for (int round = 0; round < 25; round++) {
        static struct instance in;
        double cap[MOST], best = -(double)INFINITY;
        do
            draw(&in, &rng);
        while (in.n < 2 || in.n > 3);
        in.budget_w = fmin(in.budget_w, in.ceiling_sum_w);
        solve(TW_POLICY_ORACLE, &in, cap);
        for (size_t i = 0; i < in.n; i++)
            best = fmax(best, brute(&in, i, 0, in.budget_w, 0.0));
        double got = measured(&in, cap);
        if (!(fabs(got - best) <= 1e-5 * fabs(best)))
            fail_msg("round %d: %.9g, best %.9g", round, got, best);
    }
}

static void test_oracle_is_never_beaten(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 6, 0);
    for (int round = 0; round < 30; round++) {
        static struct instance in;
        double cap[MOST];
        draw(&in, &rng);
        solve(TW_POLICY_ORACLE, &in, cap);
        double best = measured(&in, cap);
        for (enum tw_policy p = 0; p < TW_POLICY_ORACLE; p++) {
            solve(p, &in, cap);
            assert_true(measured(&in, cap) <= best * (1 + 1e-6));
        }
    }
}

static void test_checker_rejects_tampering(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 7, 0);
    for (int round = 0; round < ROUNDS; round++) {
        static struct instance in;
        double cap[MOST], bad[MOST];
        draw(&in, &rng);
        in.budget_w = fmin(in.budget_w, in.ceiling_sum_w);
        solve(TW_POLICY_CURVE, &in, cap);
        assert_int_equal(tw_alloc_check(cap, in.floor_w, in.ceiling_w, in.n, in.budget_w, NULL), TW_OK);
        size_t i = tw_rng_below(&rng, in.n);
        const double wrong[] = {(double)NAN,
                                (double)INFINITY,
                                -(double)INFINITY,
                                in.floor_w[i] * (1 - 1e-6),
                                in.ceiling_w[i] * (1 + 1e-6),
                                -cap[i]};
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            memcpy(bad, cap, sizeof bad);
            bad[i] = wrong[k];
            struct tw_why why = {""};
            assert_int_equal(tw_alloc_check(bad, in.floor_w, in.ceiling_w, in.n, in.budget_w, &why),
                             TW_EINTERNAL);
            assert_true(strlen(why.text) > 10);
        }
        double less = in.budget_w * (1 - 1e-6);
        assert_int_equal(tw_alloc_check(cap, in.floor_w, in.ceiling_w, in.n, less, NULL), TW_EINTERNAL);
        assert_int_equal(tw_alloc_check(cap, in.floor_w, in.ceiling_w, in.n, (double)NAN, NULL), TW_EINTERNAL);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 8, 0);
    static struct instance in;
    double cap[MOST] = {-7.0};
    draw(&in, &rng);
    struct tw_arena a = fresh();
    struct tw_why why = {""};
    assert_int_equal(tw_alloc_curve(in.job, in.n, in.floor_sum_w * 0.99, &a, cap, NULL, &why), TW_EINFEASIBLE);
    assert_non_null(strstr(why.text, "floors"));
    assert_true(cap[0] < -6.0); /* untouched */
    assert_int_equal(tw_alloc_equal(in.job, in.n, (double)NAN, &a, cap, NULL, &why), TW_EINVAL);
    assert_int_equal(tw_alloc_equal(in.job, in.n, -1.0, &a, cap, NULL, &why), TW_EINVAL);
    assert_int_equal(tw_alloc_equal(in.job, 0, 1.0, &a, cap, NULL, &why), TW_EINVAL);
    struct tw_arena tiny;
    tw_arena_init(&tiny, memory, 64);
    in.budget_w = 0.5 * (in.floor_sum_w + in.ceiling_sum_w);
    assert_int_equal(tw_alloc_curve(in.job, in.n, in.budget_w, &tiny, cap, NULL, &why), TW_ENOMEM);
    assert_int_equal(tw_alloc_oracle(in.job, in.n, in.budget_w, &tiny, cap, &why), TW_ENOMEM);
    in.job[0].flex = 0.0;
    assert_int_equal(tw_alloc_pfi(in.job, in.n, in.budget_w, &a, cap, &why), TW_EINVAL);
    in.job[0].weight = (double)NAN;
    assert_int_equal(tw_alloc_curve(in.job, in.n, in.budget_w, &a, cap, NULL, &why), TW_EINVAL);
    in.job[0].ceiling_w = in.job[0].floor_w / 2;
    assert_int_equal(tw_alloc_equal(in.job, in.n, in.budget_w, &a, cap, NULL, &why), TW_EINVAL);
}

static void test_spread(void **state)
{
    (void)state;
    static const double lo[] = {100, 100, 250, 100}, hi[] = {400, 150, 400, 400};
    double cap[4];
    /* 800 W over four: GPU 1 stops at 150, GPU 2 starts at 250, the others share 400: 200 each */
    assert_int_equal(tw_alloc_spread(lo, hi, 4, 800.0, cap, NULL), TW_OK);
    static const double want[] = {200, 150, 250, 200};
    for (int i = 0; i < 4; i++)
        assert_true(fabs(cap[i] - want[i]) < 1e-6);
    assert_int_equal(tw_alloc_spread(lo, hi, 4, 9999.0, cap, NULL), TW_OK);
    assert_true(fabs(cap[3] - 400.0) < 1e-6);
    assert_int_equal(tw_alloc_spread(lo, hi, 4, 500.0, cap, NULL), TW_EINFEASIBLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_split_is_valid),
        cmocka_unit_test(test_curve_is_optimal),
        cmocka_unit_test(test_more_budget_never_hurts),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_oracle_is_optimal),
        cmocka_unit_test(test_oracle_is_never_beaten),
        cmocka_unit_test(test_checker_rejects_tampering),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
