/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation under a tree of limits: properties over random instances, the best value against a linear
 * programme that shares nothing with the solver (GLPK; left out without it), and a checker that must refuse
 * what was tampered with. */
#include "alloc/check.h"
#include "alloc/tree.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HAVE_GLPK
#include <glpk.h>
#endif

enum { JOBS = 24, WIDE = 6, GPUS = JOBS * WIDE, NODES = 40 };

struct instance {
    struct tw_tree t;
    struct tw_tree_node node[NODES];
    struct tw_tree_gpu gpu[GPUS];
    struct tw_tree_job job[JOBS];
    struct tw_curve curve[JOBS];
};

struct kind { /* what an instance may hold */
    bool span, uneven, knots, pausable, steps;
};

struct answer {
    double cap[GPUS], price[NODES];
    bool paused[JOBS];
    struct tw_tree_split split;
};

static struct tw_arena fresh(void)
{
    static _Alignas(64) unsigned char memory[4 << 20];
    struct tw_arena a;
    tw_arena_init(&a, memory, tw_tree_bytes(NODES, GPUS, JOBS));
    return a;
}

static void draw_curve(struct tw_curve *c, bool knots, struct tw_rng *rng)
{
    *c = tw_curve_of_loss(exp(tw_rng_uniform(rng, -1.0, 2.7)), 0.3, tw_rng_uniform(rng, 0.02, 0.4));
    c->b = fmin(c->b, 0.95 / expm1(0.7 * c->k)); /* alive at every floor, so concave all the way */
    if (knots && tw_rng_below(rng, 2)) {
        double x[4] = {0.3, 0.55, 0.8, 1.0}, t[4], slope = tw_rng_uniform(rng, 0.0, 0.3);
        t[3] = 1.0;
        for (int k = 2; k >= 0; k--, slope += tw_rng_uniform(rng, 0.0, 0.7))
            t[k] = t[k + 1] - slope * (x[k + 1] - x[k]);
        assert_int_equal(tw_curve_init_knots(c, x, t, 4, NULL), TW_OK);
    }
}

static void draw_job(struct instance *in, uint32_t j, struct kind kind, struct tw_rng *rng)
{
    struct tw_tree_job *job = &in->job[j];
    *job = (struct tw_tree_job){.first = in->t.n_gpus,
                                .n = 1 + (uint32_t)tw_rng_below(rng, WIDE),
                                .weight = exp(tw_rng_uniform(rng, -2.0, 2.0)),
                                .flex = tw_rng_uniform(rng, 1.0, 3.0),
                                .curve = &in->curve[j],
                                .lockstep = tw_rng_below(rng, 4) > 0,
                                .pausable = kind.pausable && tw_rng_below(rng, 3) == 0};
    draw_curve(&in->curve[j], kind.knots, rng);
    bool spans = kind.span && tw_rng_below(rng, 3) == 0;
    uint32_t home = (uint32_t)tw_rng_below(rng, in->t.n_nodes);
    double p0 = tw_rng_uniform(rng, 300.0, 700.0), low = tw_rng_uniform(rng, 0.3, 0.6);
    for (uint32_t i = 0; i < job->n; i++) {
        struct tw_tree_gpu *g = &in->gpu[in->t.n_gpus++];
        if (spans)
            home = (uint32_t)tw_rng_below(rng, in->t.n_nodes);
        if (kind.uneven) {
            p0 = tw_rng_uniform(rng, 300.0, 700.0);
            low = tw_rng_uniform(rng, 0.3, 0.7);
        }
        *g = (struct tw_tree_gpu){.node = home, .p0_w = p0, .floor_w = low * p0, .ceiling_w = p0};
        if (kind.uneven && tw_rng_below(rng, 3) == 0)
            g->ceiling_w = fmax(g->floor_w, p0 * tw_rng_uniform(rng, 0.7, 1.2));
        if (kind.steps)
            g->step_w = 5.0;
    }
}

static void draw(struct instance *in, struct kind kind, struct tw_rng *rng)
{
    memset(in, 0, sizeof *in);
    in->t = (struct tw_tree){.node = in->node, .gpu = in->gpu, .job = in->job, .budget_w = (double)INFINITY};
    in->t.n_nodes = 1 + (uint32_t)tw_rng_below(rng, NODES);
    in->t.n_jobs = 1 + (uint32_t)tw_rng_below(rng, JOBS);
    for (uint32_t v = 0; v < in->t.n_nodes; v++)
        in->node[v] = (struct tw_tree_node){.parent = v ? (uint32_t)tw_rng_below(rng, v) : 0,
                                            .limit_w = (double)INFINITY,
                                            .base_w = tw_rng_below(rng, 4) ? 0.0 : 100.0};
    for (uint32_t j = 0; j < in->t.n_jobs; j++)
        draw_job(in, j, kind, rng);
    double need[NODES], want[NODES];
    uint32_t lacking;
    struct tw_arena a = fresh();
    assert_int_equal(tw_tree_lacks(&in->t, &a, need, &lacking, NULL), TW_OK);
    assert_int_equal(lacking, 0);
    for (uint32_t v = 0; v < in->t.n_nodes; v++)
        want[v] = in->node[v].base_w;
    for (uint32_t i = 0; i < in->t.n_gpus; i++)
        want[in->gpu[i].node] += in->gpu[i].p0_w;
    for (uint32_t v = in->t.n_nodes; v-- > 0;) {
        if (v)
            want[in->node[v].parent] += want[v];
        if (v == 0 || tw_rng_below(rng, 3))
            in->node[v].limit_w = need[v] + tw_rng_uniform(rng, 0.05, 1.1) * (want[v] - need[v]);
    }
}

static void check(const struct instance *in, const struct answer *got)
{
    static double floors[GPUS], ceilings[GPUS], step[GPUS], limit[NODES], base[NODES], sum[NODES], lost[NODES];
    static bool off[GPUS];
    static uint32_t node[GPUS], parent[NODES];
    for (uint32_t i = 0; i < in->t.n_gpus; i++) {
        floors[i] = in->gpu[i].floor_w;
        ceilings[i] = in->gpu[i].ceiling_w;
        step[i] = in->gpu[i].step_w;
        node[i] = in->gpu[i].node;
    }
    for (uint32_t j = 0; j < in->t.n_jobs; j++)
        for (uint32_t i = in->job[j].first; i < in->job[j].first + in->job[j].n; i++)
            off[i] = got->paused[j];
    for (uint32_t v = 0; v < in->t.n_nodes; v++) {
        limit[v] = in->node[v].limit_w;
        base[v] = in->node[v].base_w;
        parent[v] = in->node[v].parent;
    }
    struct tw_tree_check c = {got->cap,     floors, ceilings, step, off,           node,
                              in->t.n_gpus, parent, limit,    base, in->t.n_nodes, in->t.budget_w};
    struct tw_why why = {""};
    if (tw_alloc_check_tree(&c, sum, lost, &why) != TW_OK)
        fail_msg("%s", why.text);
    /* and what it must refuse: one cap out of its limits, off its step, or a watt too many anywhere */
    uint32_t i = in->t.n_gpus / 2;
    double bad[GPUS];
    const double wrong[] = {(double)NAN, -1.0, got->cap[i] + 1e5, (double)INFINITY};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        memcpy(bad, got->cap, sizeof bad);
        bad[i] = wrong[k];
        c.cap_w = bad;
        assert_int_equal(tw_alloc_check_tree(&c, sum, lost, &why), TW_EINTERNAL);
    }
    memcpy(bad, got->cap, sizeof bad);
    bad[i] += 2.0;
    if (step[i] > 0.0)
        assert_int_equal(tw_alloc_check_tree(&c, sum, lost, &why), TW_EINTERNAL);
    c.cap_w = got->cap;
    assert_int_equal(tw_alloc_check_tree(&c, sum, lost, &why), TW_OK);
    for (uint32_t v = 0; v < in->t.n_nodes; v++) {
        double was = limit[v];
        limit[v] = sum[v] - 1e-3 * (1.0 + sum[v]); /* sums are those of the last, passed check */
        double keep[NODES];
        memcpy(keep, sum, sizeof keep);
        assert_int_equal(tw_alloc_check_tree(&c, sum, lost, &why), TW_EINTERNAL);
        memcpy(sum, keep, sizeof keep);
        limit[v] = was;
    }
}

static bool solve(const struct instance *in, enum tw_policy p, struct answer *got)
{
    struct tw_arena a = fresh();
    struct tw_why why = {""};
    got->split = (struct tw_tree_split){.cap_w = got->cap, .price = got->price, .paused = got->paused};
    enum tw_err err = tw_tree_solve(&in->t, p, &a, &got->split, &why);
    assert_int_equal(a.used, 0);
    if (err == TW_EINFEASIBLE && p != TW_POLICY_CURVE) /* only curve pauses a job to make room */
        return false;
    if (err != TW_OK)
        fail_msg("%s: %s", tw_policy_name[p], why.text);
    return true;
}

#ifdef HAVE_GLPK
enum { PIECES = 240 };

/* Rows: nodes, then one for each GPU of a lock-step job: p_g >= p0 x. Columns: p_g, then pieces of x. */
static double programme(const struct instance *in)
{
    const struct tw_tree *t = &in->t;
    glp_prob *lp = glp_create_prob();
    glp_set_obj_dir(lp, GLP_MAX);
    glp_add_rows(lp, (int)(t->n_nodes + t->n_gpus));
    glp_add_cols(lp, (int)t->n_gpus);
    double base[NODES], fixed = 0.0;
    for (uint32_t v = 0; v < t->n_nodes; v++)
        base[v] = in->node[v].base_w;
    for (uint32_t v = t->n_nodes; v-- > 1;)
        base[in->node[v].parent] += base[v];
    for (uint32_t v = 0; v < t->n_nodes; v++)
        if (isfinite(in->node[v].limit_w))
            glp_set_row_bnds(lp, (int)v + 1, GLP_UP, 0.0, in->node[v].limit_w - base[v]);
        else
            glp_set_row_bnds(lp, (int)v + 1, GLP_FR, 0.0, 0.0);
    for (uint32_t j = 0; j < t->n_jobs; j++) {
        const struct tw_tree_job *job = &in->job[j];
        double all = 0.0, low = (double)INFINITY, high = 1.0;
        for (uint32_t i = job->first; i < job->first + job->n; i++) {
            all += in->gpu[i].p0_w;
            low = fmin(low, in->gpu[i].floor_w / in->gpu[i].p0_w);
            high = fmin(high, in->gpu[i].ceiling_w / in->gpu[i].p0_w);
        }
        low = fmin(low, high);
        for (uint32_t i = job->first; i < job->first + job->n; i++) {
            const struct tw_tree_gpu *g = &in->gpu[i];
            int ind[NODES + 2], n = 0;
            double val[NODES + 2];
            for (uint32_t v = g->node;; v = in->node[v].parent) {
                ind[++n] = (int)v + 1;
                val[n] = 1.0;
                if (v == 0)
                    break;
            }
            int row = (int)(t->n_nodes + i) + 1, col = (int)i + 1;
            ind[++n] = row;
            val[n] = 1.0;
            glp_set_mat_col(lp, col, n, ind, val);
            glp_set_col_bnds(lp, col, GLP_LO, g->floor_w, 0.0);
            double from = job->lockstep ? low : g->floor_w / g->p0_w;
            double to = job->lockstep ? high : fmax(from, fmin(g->ceiling_w / g->p0_w, 1.0));
            glp_set_row_bnds(lp, row, GLP_LO, from * g->p0_w, 0.0);
            if (job->lockstep && i > job->first)
                continue;
            double weight = job->lockstep ? job->weight : job->weight * g->p0_w / all;
            fixed += weight * tw_curve_value(job->curve, from);
            int first = glp_add_cols(lp, PIECES);
            for (int k = 0; k < PIECES; k++) {
                double a = from + (to - from) * k / PIECES, b = from + (to - from) * (k + 1) / PIECES;
                glp_set_col_bnds(lp, first + k, b > a ? GLP_DB : GLP_FX, 0.0, b - a);
                glp_set_obj_coef(
                    lp, first + k,
                    b > a ? weight * (tw_curve_value(job->curve, b) - tw_curve_value(job->curve, a)) / (b - a)
                          : 0.0);
                int rows[WIDE + 1], m = 0;
                double drawn[WIDE + 1];
                for (uint32_t q = job->lockstep ? job->first : i;
                     q < (job->lockstep ? job->first + job->n : i + 1); q++) {
                    rows[++m] = (int)(t->n_nodes + q) + 1;
                    drawn[m] = -in->gpu[q].p0_w;
                }
                glp_set_mat_col(lp, first + k, m, rows, drawn);
            }
        }
    }
    glp_smcp how;
    glp_init_smcp(&how);
    glp_term_out(GLP_OFF);
    how.msg_lev = GLP_MSG_OFF;
    how.presolve = GLP_ON;
    glp_scale_prob(lp, GLP_SF_AUTO);
    assert_int_equal(glp_simplex(lp, &how), 0);
    assert_int_equal(glp_get_status(lp), GLP_OPT);
    double best = glp_get_obj_val(lp) + fixed;
    glp_delete_prob(lp);
    return best;
}

static void compare(struct kind kind, uint64_t seed, int rounds)
{
    struct tw_rng rng;
    tw_rng_init(&rng, seed, 0);
    double worst = 0.0, gap = 0.0;
    for (int round = 0; round < rounds; round++) {
        static struct instance in;
        static struct answer got;
        draw(&in, kind, &rng);
        solve(&in, TW_POLICY_CURVE, &got);
        double best = programme(&in), off = (got.split.value - best) / best;
        worst = fabs(off) > worst ? fabs(off) : worst;
        gap = fmax(gap, 1.0 - got.split.value / got.split.bound);
        if (!(fabs(off) <= 1e-4 && got.split.bound >= best * (1 - 1e-9)))
            fail_msg("round %d, %u jobs, %u nodes: %.9g, bound %.9g, LP %.9g (%.2g), %u rounds", round,
                     in.t.n_jobs, in.t.n_nodes, got.split.value, got.split.bound, best, off, got.split.rounds);
    }
    print_message("largest relative difference to GLPK: %.2g, largest gap: %.2g\n", worst, gap);
}

static void test_against_lp(void **state)
{
    (void)state;
    compare((struct kind){0}, 11, 20);
    compare((struct kind){.uneven = true}, 12, 20);
    compare((struct kind){.knots = true, .uneven = true}, 13, 20);
}

static void test_spanning_against_lp(void **state)
{
    (void)state;
    compare((struct kind){.span = true}, 14, 25);
    compare((struct kind){.span = true, .uneven = true}, 15, 40);
}
#else
static void test_against_lp(void **state)
{
    (void)state;
    print_message("skipped: built without GLPK (libglpk-dev)\n");
    skip();
}

static void test_spanning_against_lp(void **state)
{
    test_against_lp(state);
}
#endif

static const struct kind kinds[] = {
    {0},
    {.span = true},
    {.uneven = true, .knots = true},
    {.span = true, .uneven = true, .knots = true},
    {.pausable = true},
    {.span = true, .uneven = true, .pausable = true},
    {.span = true, .uneven = true, .knots = true, .pausable = true, .steps = true}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void test_every_split_is_valid(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 21, 0);
    for (int round = 0; round < 40 * KINDS; round++) {
        static struct instance in;
        static struct answer got;
        draw(&in, kinds[round % KINDS], &rng);
        for (enum tw_policy p = 0; p < TW_POLICY_ORACLE; p++) {
            if (!solve(&in, p, &got))
                continue;
            check(&in, &got);
            assert_true(got.split.value <= got.split.bound * (1 + 1e-9));
        }
    }
}

/* No other policy brings more, and none brings more than the bound. */
static void test_curve_is_never_beaten(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 22, 0);
    for (int round = 0; round < 200; round++) {
        static struct instance in;
        static struct answer got, other;
        struct kind kind = {.span = round % 2, .uneven = round % 3 == 0};
        draw(&in, kind, &rng);
        solve(&in, TW_POLICY_CURVE, &got);
        for (enum tw_policy p = 0; p < TW_POLICY_CURVE; p++) {
            solve(&in, p, &other);
            if (!(other.split.value <= got.split.value * (1 + 1e-5)))
                fail_msg("round %d: %s brings %.9g, curve %.9g of %.9g", round, tw_policy_name[p],
                         other.split.value, got.split.value, got.split.bound);
        }
    }
}

static void test_more_budget_never_hurts(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 23, 0);
    for (int round = 0; round < 40; round++) {
        static struct instance in;
        static struct answer got;
        draw(&in, (struct kind){.span = round % 2, .uneven = true}, &rng);
        double last = -1.0, top = in.node[0].limit_w;
        double need[NODES];
        uint32_t lacking;
        struct tw_arena a = fresh();
        assert_int_equal(tw_tree_lacks(&in.t, &a, need, &lacking, NULL), TW_OK);
        for (int step = 0; step <= 8; step++) {
            in.t.budget_w = need[0] + (top - need[0]) * step / 8.0 + 1e-6;
            solve(&in, TW_POLICY_CURVE, &got);
            if (!(got.split.value >= last * (1 - 2e-5)))
                fail_msg("round %d, step %d: %.9g after %.9g", round, step, got.split.value, last);
            last = got.split.value;
        }
    }
}

/* A root price is what one more watt brings. */
static void test_prices_are_gains(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 24, 0);
    int seen = 0;
    for (int round = 0; round < 100; round++) {
        static struct instance in;
        static struct answer got, more;
        draw(&in, (struct kind){.uneven = round % 2}, &rng);
        uint32_t v = (uint32_t)tw_rng_below(&rng, in.t.n_nodes);
        solve(&in, TW_POLICY_CURVE, &got);
        in.node[v].limit_w += 0.01;
        solve(&in, TW_POLICY_CURVE, &more);
        double gain = (more.split.value - got.split.value) / 0.01;
        if (!(gain <= got.price[v] * (1 + 1e-3) + 1e-8 && gain >= more.price[v] * (1 - 1e-3) - 1e-8))
            fail_msg("round %d: a watt at node %u brings %.6g, prices %.6g and %.6g", round, v, gain,
                     got.price[v], more.price[v]);
        seen += got.price[v] > 0.0;
    }
    assert_true(seen > 10);
}

/* Jobs the other way round: the same worth. */
static void test_order_does_not_matter(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 25, 0);
    for (int round = 0; round < 100; round++) {
        static struct instance in, turned;
        static struct answer got, back;
        draw(&in, (struct kind){.span = round % 2, .uneven = true}, &rng);
        turned = in;
        turned.t.node = turned.node;
        turned.t.gpu = turned.gpu;
        turned.t.job = turned.job;
        uint32_t next = 0;
        for (uint32_t j = 0; j < in.t.n_jobs; j++) {
            const struct tw_tree_job *from = &in.job[in.t.n_jobs - 1 - j];
            turned.job[j] = *from;
            turned.job[j].first = next;
            for (uint32_t i = 0; i < from->n; i++)
                turned.gpu[next++] = in.gpu[from->first + from->n - 1 - i];
        }
        solve(&in, TW_POLICY_CURVE, &got);
        solve(&turned, TW_POLICY_CURVE, &back);
        if (!(fabs(got.split.value - back.split.value) <= (round % 2 ? 1e-5 : 1e-9) * got.split.value))
            fail_msg("round %d: %.12g and %.12g", round, got.split.value, back.split.value);
    }
}

/* Few jobs that may be paused: every choice tried. */
static void test_pausing_against_all_choices(void **state)
{
    (void)state;
    struct tw_rng rng;
    tw_rng_init(&rng, 26, 0);
    for (int round = 0; round < 60; round++) {
        static struct instance in, fixed;
        static struct answer got, one;
        draw(&in, (struct kind){.pausable = true}, &rng);
        if (in.t.n_jobs < 3 || in.t.n_jobs > 9)
            continue;
        solve(&in, TW_POLICY_CURVE, &got);
        double best = -(double)INFINITY;
        for (uint32_t mask = 0; mask < 1U << in.t.n_jobs; mask++) {
            bool ok = true;
            fixed = in;
            fixed.t.node = fixed.node;
            fixed.t.gpu = fixed.gpu;
            fixed.t.job = fixed.job;
            for (uint32_t j = 0; j < in.t.n_jobs; j++) {
                bool paused = mask >> j & 1;
                ok = ok && (!paused || in.job[j].pausable);
                fixed.job[j].pausable = false;
                for (uint32_t i = in.job[j].first; paused && i < in.job[j].first + in.job[j].n; i++)
                    fixed.gpu[i].floor_w = fixed.gpu[i].ceiling_w = 0.0;
                if (paused)
                    fixed.job[j].weight = 1e-12;
            }
            struct tw_arena a = fresh();
            one.split = (struct tw_tree_split){.cap_w = one.cap, .price = one.price, .paused = one.paused};
            if (ok && tw_tree_solve(&fixed.t, TW_POLICY_CURVE, &a, &one.split, NULL) == TW_OK)
                best = fmax(best, one.split.value);
        }
        assert_true(got.split.bound >= best * (1 - 1e-9));
        if (!(got.split.value >= best * (1 - 0.02)))
            fail_msg("round %d, %u jobs: %.9g, best %.9g", round, in.t.n_jobs, got.split.value, best);
    }
}

static void test_lack_and_nearest(void **state)
{
    (void)state;
    /* two nodes; the floors under node 1 need 2 x 200 W and 50 W of base load, its limit is 430 W: 20 W over */
    static const struct tw_curve curve = {.family = TW_CURVE_EXP, .k = 3.0, .b = 0.1};
    struct tw_tree_node node[] = {{0, 5000.0, 0.0}, {0, 430.0, 50.0}};
    struct tw_tree_gpu gpu[] = {{1, 500.0, 200.0, 500.0, 0.0}, {1, 500.0, 200.0, 500.0, 0.0}};
    struct tw_tree_job job[] = {{.n = 2, .weight = 1.0, .curve = &curve, .lockstep = true}};
    struct tw_tree t = {node, gpu, job, 2, 2, 1, (double)INFINITY};
    struct tw_arena a = fresh();
    struct tw_why why = {""};
    double need[2];
    uint32_t lacking;
    struct answer got;
    got.split = (struct tw_tree_split){.cap_w = got.cap, .price = got.price, .paused = got.paused};
    assert_int_equal(tw_tree_solve(&t, TW_POLICY_CURVE, &a, &got.split, &why), TW_EINFEASIBLE);
    assert_non_null(strstr(why.text, "450 W"));
    assert_int_equal(tw_tree_lacks(&t, &a, need, &lacking, NULL), TW_OK);
    assert_int_equal(lacking, 1);
    assert_true(fabs(need[1] - node[1].limit_w - 20.0) < 1e-9);
    node[1].limit_w = need[1];
    assert_int_equal(tw_tree_solve(&t, TW_POLICY_CURVE, &a, &got.split, &why), TW_OK);
    assert_true(fabs(got.cap[0] - 200.0) < 1e-6 && fabs(got.cap[1] - 200.0) < 1e-6);
    /* unequal GPUs in lock step: 700 W for p0 of 500 and 300 W, floors 200 W each: at x = .875 both */
    node[1].limit_w = 750.0;
    gpu[1] = (struct tw_tree_gpu){1, 300.0, 200.0, 300.0, 0.0};
    assert_int_equal(tw_tree_solve(&t, TW_POLICY_CURVE, &a, &got.split, &why), TW_OK);
    assert_true(fabs(got.cap[0] - 437.5) < 1e-6 && fabs(got.cap[1] - 262.5) < 1e-6);
    /* 450 W: the second stays on its floor of 200 W, which is more than it can use */
    node[1].limit_w = 500.0;
    assert_int_equal(tw_tree_solve(&t, TW_POLICY_CURVE, &a, &got.split, &why), TW_OK);
    assert_true(fabs(got.cap[0] - 250.0) < 1e-6 && fabs(got.cap[1] - 200.0) < 1e-6);
    node[1].parent = 1;
    assert_int_equal(tw_tree_solve(&t, TW_POLICY_CURVE, &a, &got.split, &why), TW_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lack_and_nearest),
        cmocka_unit_test(test_every_split_is_valid),
        cmocka_unit_test(test_against_lp),
        cmocka_unit_test(test_spanning_against_lp),
        cmocka_unit_test(test_curve_is_never_beaten),
        cmocka_unit_test(test_more_budget_never_hurts),
        cmocka_unit_test(test_prices_are_gains),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_pausing_against_all_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
