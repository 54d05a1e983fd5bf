/* SPDX-License-Identifier: Apache-2.0 */
/* The tree solver: nested filling (nest.c), copies of jobs that lie under several limits, pausing, and the
 * bound. */
#include "alloc/tree_int.h"

#include <math.h>
#include <string.h>

enum { TRIES = 24, TRYING = 3, BISECT = 64, PATIENCE = 12 };
#define SHARE_MIN 1e-9
#define HAIR 1e-9 /* of x: to either side of where a GPU leaves its floor */

struct solve {
    const struct tw_tree *t;
    struct tw_nest nest;
    double *sum_price;  /* [n_nodes] what a watt costs at each place of the walk */
    double *share;      /* [n] an atom's part of its job's value */
    double *whole_x;    /* [n_jobs] what a job in lock step would choose at the last prices */
    double *x;          /* [n_jobs] of jobs in lock step: the smallest of the copies */
    double *part;       /* [n_jobs] how much of a job that may be paused was filled */
    uint32_t *tied;     /* [n_tied] jobs of several atoms */
    uint32_t *yes_no;   /* [n_yes_no] jobs that may be paused */
    double *trial_w;    /* [n_gpus] */
    bool *trial_paused; /* [n_jobs] */
    size_t n_tied, n_yes_no;
    double bound, value;
    struct tw_tree_split *best;
};

size_t tw_tree_bytes(uint32_t n_nodes, uint32_t n_gpus, uint32_t n_jobs)
{
    size_t v = n_nodes, g = n_gpus, j = n_jobs;
    return 6 * tw_arena_need(v + 2, sizeof(uint32_t)) + 6 * tw_arena_need(v, sizeof(double)) +
           4 * tw_arena_need(g, sizeof(uint32_t)) + 10 * tw_arena_need(g, sizeof(double)) +
           2 * tw_arena_need(g, sizeof(struct tw_atom)) + 6 * tw_arena_need(j + 1, sizeof(double)) +
           2 * tw_arena_need(j, sizeof(bool)) + TW_ARENA_ALIGN;
}

/* --- what caps are worth -----------------------------------------------------------------------------------
 */

static double job_value(const struct tw_tree *t, const struct tw_tree_job *job, const double *cap_w)
{
    double slowest = (double)INFINITY, sum = 0.0, p0 = 0.0;
    for (uint32_t i = job->first; i < job->first + job->n; i++) {
        double x = cap_w[i] / t->gpu[i].p0_w;
        slowest = fmin(slowest, x);
        p0 += t->gpu[i].p0_w;
        if (!job->lockstep)
            sum += t->gpu[i].p0_w * tw_curve_value(job->curve, x);
    }
    return job->lockstep ? tw_curve_value(job->curve, slowest) : sum / p0;
}

double tw_tree_value(const struct tw_tree *t, const double *cap_w, const bool *paused, double *ret_t)
{
    double sum = 0.0;
    for (uint32_t j = 0; j < t->n_jobs; j++) {
        double v = paused[j] ? 0.0 : job_value(t, &t->job[j], cap_w);
        sum += t->job[j].weight * v;
        if (ret_t)
            ret_t[j] = v;
    }
    return sum;
}

/* --- prices and the bound ----------------------------------------------------------------------------------
 */

/* A node's price is what a watt costs there beyond what it costs above. */
static void take_prices(struct solve *s, double *ret_price)
{
    const struct tw_tree *t = s->t;
    for (uint32_t v = 0; v < t->n_nodes; v++) {
        double own = isfinite(s->nest.level[v]) ? exp(-s->nest.level[v]) : 0.0;
        double above = v ? s->sum_price[s->nest.spot[t->node[v].parent]] : 0.0;
        s->sum_price[s->nest.spot[v]] = fmax(own, above);
        ret_price[v] = fmax(own - above, 0.0);
    }
}

static double atom_price(const struct solve *s, const struct tw_atom *a)
{
    return s->sum_price[a->spot];
}

/* The most that a job of several atoms brings beyond the price of its watts: bisection on a falling slope. */
static double tied_surplus(struct solve *s, uint32_t j)
{
    const struct tw_tree_job *job = &s->t->job[j];
    uint32_t first = s->nest.job_atom[j], n = s->nest.job_atom[j + 1] - first;
    const struct tw_nest *e = &s->nest;
    double low = e->atom[e->where[first]].x_low, high = e->atom[e->where[first]].x_high, paid = 0.0,
           least = 0.0;
    for (int pass = 0; pass < BISECT && high - low > 1e-15; pass++) {
        double x = 0.5 * (low + high), slope = job->weight * tw_curve_slope(job->curve, x);
        for (uint32_t k = first; k < first + n; k++) {
            const struct tw_atom *a = &e->atom[e->where[k]];
            slope -= atom_price(s, a) * tw_atom_active(e, a, x);
        }
        if (slope > 0.0)
            low = x;
        else
            high = x;
    }
    s->whole_x[j] = high;
    for (uint32_t k = first; k < first + n; k++) {
        const struct tw_atom *a = &e->atom[e->where[k]];
        paid += atom_price(s, a) * tw_atom_power(e, a, high);
        least += atom_price(s, a) * a->power_low;
    }
    return fmax(job->weight * tw_curve_value(job->curve, high) - paid, -least);
}

static double atom_surplus(const struct solve *s, size_t i)
{
    const struct tw_nest *e = &s->nest;
    const struct tw_atom *a = &e->atom[i];
    double price = atom_price(s, a), x;
    if (!(price > 0.0))
        x = a->x_high;
    else if (a->odd)
        x = tw_atom_want(e, a, price);
    else
        x = (e->line.base[i] - log(price) * e->line.rate[i]) / a->p0_w;
    x = fmin(fmax(x, a->x_low), a->x_high);
    return fmax(a->weight * tw_curve_value(s->t->job[a->job].curve, x) - price * tw_atom_power(e, a, x),
                -price * a->power_low);
}

/* Weak duality: limits at their prices, and each job's best answer to them; that may be to stand at its floors,
 * since throughput stops at 0 where its curve goes on falling. */
static double bound_of(struct solve *s, const double *price)
{
    const struct tw_nest *e = &s->nest;
    double sum = 0.0;
    for (uint32_t v = 0; v < s->t->n_nodes; v++)
        if (price[v] > 0.0)
            sum += price[v] * e->avail_w[v];
    for (uint32_t j = 0; j < s->t->n_jobs; j++) {
        const struct tw_tree_job *job = &s->t->job[j];
        uint32_t first = e->job_atom[j], n = e->job_atom[j + 1] - first;
        if (job->lockstep && n > 1) {
            double surplus = tied_surplus(s, j);
            sum += job->pausable ? fmax(surplus, 0.0) : surplus;
            continue;
        }
        double surplus = 0.0;
        for (uint32_t k = first; k < first + n; k++)
            surplus += atom_surplus(s, e->where[k]);
        sum += job->pausable ? fmax(surplus, 0.0) : surplus;
    }
    return sum;
}

/* --- from atoms to GPUs ------------------------------------------------------------------------------------
 */

static void spread_atom(const struct solve *s, size_t i, double *cap_w)
{
    const struct tw_nest *e = &s->nest;
    const struct tw_atom *a = &e->atom[i];
    double x = tw_atom_x(e, a, e->cap_w[i]);
    for (uint32_t k = 0; k < a->n; k++) {
        uint32_t g = e->perm[a->first + k];
        cap_w[g] = fmax(s->t->gpu[g].floor_w, x * s->t->gpu[g].p0_w);
    }
}

static void spread(const struct solve *s, const bool *paused, double *cap_w)
{
    for (size_t i = 0; i < s->nest.n; i++)
        spread_atom(s, i, cap_w);
    for (size_t k = 0; k < s->n_yes_no; k++) {
        const struct tw_tree_job *job = &s->t->job[s->yes_no[k]];
        for (uint32_t i = job->first; paused[s->yes_no[k]] && i < job->first + job->n; i++)
            cap_w[i] = 0.0;
    }
}

/* --- jobs under several limits, and jobs that may be paused ------------------------------------------------
 */

static bool is_tied(const struct solve *s, uint32_t j)
{
    return s->t->job[j].lockstep && s->nest.job_atom[j + 1] - s->nest.job_atom[j] > 1;
}

/* What the last filling left a job: its smallest copy, and what part of the least a running job draws. */
static void read_jobs(struct solve *s)
{
    const struct tw_nest *e = &s->nest;
    for (size_t k = 0; k < s->n_tied + s->n_yes_no; k++) {
        uint32_t j = k < s->n_tied ? s->tied[k] : s->yes_no[k - s->n_tied];
        s->x[j] = (double)INFINITY;
        s->part[j] = 1.0;
        for (uint32_t i = e->job_atom[j]; i < e->job_atom[j + 1]; i++) {
            const struct tw_atom *a = &e->atom[e->where[i]];
            double cap = e->cap_w[e->where[i]];
            s->x[j] = fmin(s->x[j], tw_atom_x(e, a, cap));
            if (a->power_low > 0.0)
                s->part[j] = fmin(s->part[j], cap / a->power_low);
        }
    }
}

/* New shares of value for the copies: what the watts of each cost at the x that the job as a whole would choose
 * at these prices. Where GPUs of some copies leave their floors just there, those take up what the others leave
 * of the value. */
static void share_out(struct solve *s, double pace)
{
    struct tw_nest *e = &s->nest;
    for (size_t k = 0; k < s->n_tied; k++) {
        uint32_t j = s->tied[k], first = e->job_atom[j], last = e->job_atom[j + 1];
        const struct tw_tree_job *job = &s->t->job[j];
        double x = s->whole_x[j], below = 0.0, above = 0.0, all = 0.0;
        for (uint32_t i = first; i < last; i++) {
            const struct tw_atom *a = &e->atom[e->where[i]];
            below += atom_price(s, a) * tw_atom_active(e, a, x - HAIR);
            above += atom_price(s, a) * tw_atom_active(e, a, x + HAIR);
        }
        if (!(above > 0.0))
            continue;
        double want = job->weight * tw_curve_slope(job->curve, x);
        double part = above > below ? fmin(fmax((want - below) / (above - below), 0.0), 1.0) : 1.0;
        double sum = below + part * (above - below);
        for (uint32_t i = first; i < last && sum > 0.0; i++) {
            uint32_t at = e->where[i];
            const struct tw_atom *a = &e->atom[at];
            double low = tw_atom_active(e, a, x - HAIR), high = tw_atom_active(e, a, x + HAIR);
            double share = atom_price(s, a) * (low + part * (high - low)) / sum;
            s->share[at] += pace * (share - s->share[at]);
            s->share[at] = fmax(s->share[at], SHARE_MIN);
            all += s->share[at];
        }
        for (uint32_t i = first; i < last && sum > 0.0; i++) {
            s->share[e->where[i]] /= all;
            e->atom[e->where[i]].weight = job->weight * s->share[e->where[i]];
        }
    }
}

static void open_jobs(struct solve *s)
{
    struct tw_nest *e = &s->nest;
    for (size_t k = 0; k < s->n_tied + s->n_yes_no; k++) {
        uint32_t j = k < s->n_tied ? s->tied[k] : s->yes_no[k - s->n_tied];
        for (uint32_t i = e->job_atom[j]; i < e->job_atom[j + 1]; i++) {
            e->atom[e->where[i]].pausable = s->t->job[j].pausable;
            tw_nest_open(e, e->where[i]);
        }
    }
}

/* Is there room for what runs at its least, with tied jobs where they stand? */
static bool fits(const struct solve *s)
{
    struct tw_nest const *e = &s->nest;
    const struct tw_tree *t = s->t;
    for (uint32_t v = 0; v < t->n_nodes; v++) {
        e->want_w[v] = 0.0;
        for (uint32_t i = e->start[e->spot[v]]; i < e->start[e->spot[v] + 1]; i++)
            e->want_w[v] += e->low_w[i];
    }
    for (uint32_t v = t->n_nodes; v-- > 0;) {
        if (!(e->want_w[v] <= e->avail_w[v] * (1.0 + 1e-12)))
            return false;
        if (v)
            e->want_w[t->node[v].parent] += e->want_w[v];
    }
    return true;
}

/* A split in which tied jobs have one x and a job runs or does not, the others filled around them; kept when it
 * is the best so far. */
static bool try_split(struct solve *s, const bool *paused)
{
    struct tw_nest *e = &s->nest;
    for (size_t k = 0; k < s->n_tied + s->n_yes_no; k++) {
        uint32_t j = k < s->n_tied ? s->tied[k] : s->yes_no[k - s->n_tied];
        for (uint32_t i = e->job_atom[j]; i < e->job_atom[j + 1]; i++) {
            struct tw_atom *a = &e->atom[e->where[i]];
            a->pausable = false;
            tw_nest_open(e, e->where[i]);
            if (paused[j])
                tw_nest_hold(e, e->where[i], 0.0);
            else if (is_tied(s, j))
                tw_nest_hold(e, e->where[i], tw_atom_power(e, a, s->x[j]));
        }
    }
    bool better = false;
    if (fits(s)) {
        tw_nest_fill(e);
        spread(s, paused, s->trial_w);
        double value = tw_tree_value(s->t, s->trial_w, paused, NULL);
        better = value > s->value;
        if (better) {
            s->value = value;
            memcpy(s->best->cap_w, s->trial_w, s->t->n_gpus * sizeof(double));
            memcpy(s->best->paused, paused, s->t->n_jobs * sizeof(bool));
        }
    }
    open_jobs(s);
    return better;
}

/* Jobs that were filled in part only are paused, then (in the first rounds) started again one by one, the
 * fullest first, each kept when that is better. */
static void decide(struct solve *s)
{
    bool *paused = s->trial_paused;
    memset(paused, 0, s->t->n_jobs * sizeof(bool));
    for (size_t k = 0; k < s->n_yes_no; k++)
        paused[s->yes_no[k]] = s->part[s->yes_no[k]] < 1.0 - 1e-9;
    (void)try_split(s, paused);
    for (int tries = 0; tries < TRIES && s->best->rounds <= TRYING; tries++) {
        uint32_t next = UINT32_MAX;
        for (size_t k = 0; k < s->n_yes_no; k++) {
            uint32_t j = s->yes_no[k];
            if (paused[j] && s->part[j] >= 0.0 && (next == UINT32_MAX || s->part[j] > s->part[next]))
                next = j;
        }
        if (next == UINT32_MAX)
            return;
        paused[next] = false;
        s->part[next] = -1.0; /* looked at */
        if (!try_split(s, paused))
            paused[next] = true;
    }
}

static void run_rounds(struct solve *s, double *price)
{
    double pace = 1.0;
    int since = 0;
    for (s->best->rounds = 1; s->best->rounds < TW_TREE_ROUNDS; s->best->rounds++) {
        tw_nest_fill(&s->nest);
        take_prices(s, price);
        double bound = bound_of(s, price), value = s->value, before = s->bound;
        if (bound < s->bound) {
            s->bound = bound;
            memcpy(s->best->price, price, s->t->n_nodes * sizeof(double));
        }
        read_jobs(s);
        decide(s);
        if (s->bound - s->value <= TW_TREE_CLOSE * fabs(s->bound) || s->n_tied == 0)
            return;
        bool moved = s->value > value + 1e-9 * fabs(s->value) || s->bound < before - 1e-9 * fabs(s->bound);
        since = moved ? 0 : since + 1;
        if (since >= PATIENCE)
            return;
        if (since && since % 3 == 0)
            pace *= 0.5;
        share_out(s, pace);
        open_jobs(s);
    }
}

static bool take_solve(struct solve *s, struct tw_arena *arena)
{
    const struct tw_tree *t = s->t;
    s->sum_price = TW_ARENA_ARRAY(arena, double, t->n_nodes);
    s->share = TW_ARENA_ARRAY(arena, double, s->nest.n);
    s->whole_x = TW_ARENA_ARRAY(arena, double, t->n_jobs);
    s->x = TW_ARENA_ARRAY(arena, double, t->n_jobs);
    s->part = TW_ARENA_ARRAY(arena, double, t->n_jobs);
    s->tied = TW_ARENA_ARRAY(arena, uint32_t, t->n_jobs);
    s->yes_no = TW_ARENA_ARRAY(arena, uint32_t, t->n_jobs);
    s->trial_w = TW_ARENA_ARRAY(arena, double, t->n_gpus);
    s->trial_paused = TW_ARENA_ARRAY(arena, bool, t->n_jobs);
    return s->sum_price && s->share && s->whole_x && s->x && s->part && s->tied && s->yes_no && s->trial_w &&
           s->trial_paused;
}

static void list_jobs(struct solve *s)
{
    const struct tw_nest *e = &s->nest;
    for (uint32_t j = 0; j < s->t->n_jobs; j++) {
        bool tied = is_tied(s, j);
        if (tied)
            s->tied[s->n_tied++] = j;
        if (s->t->job[j].pausable)
            s->yes_no[s->n_yes_no++] = j;
        for (uint32_t i = e->job_atom[j]; tied && i < e->job_atom[j + 1]; i++)
            s->share[e->where[i]] = e->atom[e->where[i]].weight / s->t->job[j].weight;
    }
}

static enum tw_err by_price(struct solve *s, struct tw_arena *arena, struct tw_why *why)
{
    if (!take_solve(s, arena))
        return tw_fail(why, TW_ENOMEM, "tree: the arena is too small for %u GPUs", s->t->n_gpus);
    double *price = TW_ARENA_ARRAY(arena, double, s->t->n_nodes);
    if (!price)
        return tw_fail(why, TW_ENOMEM, "tree: the arena is too small for %u nodes", s->t->n_nodes);
    list_jobs(s);
    s->bound = (double)INFINITY;
    s->value = -(double)INFINITY;
    if (s->n_tied || s->n_yes_no) {
        run_rounds(s, price);
    } else {
        tw_nest_fill(&s->nest);
        take_prices(s, s->best->price);
        s->bound = bound_of(s, s->best->price);
        memset(s->best->paused, 0, s->t->n_jobs * sizeof(bool));
        spread(s, s->best->paused, s->best->cap_w);
        s->best->rounds = 1;
    }
    s->best->bound = s->bound;
    return TW_OK;
}

/* --- the solver --------------------------------------------------------------------------------------------
 */

enum tw_err tw_tree_lacks(const struct tw_tree *t, struct tw_arena *arena, double *ret_need_w,
                          uint32_t *ret_lacking, struct tw_why *why)
{
    size_t mark = tw_arena_mark(arena);
    struct tw_nest nest;
    enum tw_err err = tw_nest_build(&nest, t, TW_POLICY_EQUAL, arena, why); /* its checks */
    tw_arena_release(arena, mark);
    if (err != TW_OK)
        return err;
    uint32_t lacking = 0;
    tw_tree_need(t, true, ret_need_w);
    for (uint32_t v = 0; v < t->n_nodes; v++) {
        double limit = v ? t->node[v].limit_w : fmin(t->node[v].limit_w, t->budget_w);
        if (!(ret_need_w[v] <= limit * (1.0 + 1e-12)))
            lacking++;
    }
    *ret_lacking = lacking;
    return TW_OK;
}

static bool must_lack(const struct tw_tree *t, bool pauses, double *need_w, uint32_t *ret_node)
{
    tw_tree_need(t, pauses, need_w);
    for (uint32_t v = t->n_nodes; v-- > 0;) {
        double limit = v ? t->node[v].limit_w : fmin(t->node[v].limit_w, t->budget_w);
        if (!(need_w[v] <= limit * (1.0 + 1e-12))) {
            *ret_node = v;
            return true;
        }
    }
    return false;
}

enum tw_err tw_tree_solve(const struct tw_tree *t, enum tw_policy policy, struct tw_arena *arena,
                          struct tw_tree_split *ret, struct tw_why *why)
{
    if (policy == TW_POLICY_ORACLE || policy >= TW_POLICY_COUNT)
        return tw_fail(why, TW_EUNSUPPORTED, "the oracle splits measured points without a tree");
    size_t mark = tw_arena_mark(arena);
    struct solve s = {.t = t, .best = ret};
    uint32_t node;
    enum tw_err err = tw_nest_build(&s.nest, t, policy, arena, why);
    if (err == TW_OK && must_lack(t, policy == TW_POLICY_CURVE, s.nest.want_w, &node))
        err = tw_fail(
            why, TW_EINFEASIBLE, "floors and base loads under node %u need %.6g W, its limit is %.6g W", node,
            s.nest.want_w[node], node ? t->node[node].limit_w : fmin(t->node[0].limit_w, t->budget_w));
    if (err == TW_OK && policy == TW_POLICY_CURVE) {
        err = by_price(&s, arena, why);
    } else if (err == TW_OK) {
        for (size_t i = 0; i < s.nest.n; i++) /* only price pauses a job */
            if (s.nest.atom[i].pausable)
                s.nest.atom[i].pausable = false;
        tw_nest_fill(&s.nest);
        memset(ret->paused, 0, t->n_jobs * sizeof(bool));
        memset(ret->price, 0, t->n_nodes * sizeof(double));
        spread(&s, ret->paused, ret->cap_w);
        ret->bound = (double)INFINITY;
        ret->rounds = 1;
    }
    bool steps = false;
    for (uint32_t i = 0; i < t->n_gpus && err == TW_OK && !steps; i++)
        steps = t->gpu[i].step_w > 0.0;
    tw_arena_release(arena, mark);
    if (steps)
        err = tw_tree_step(t, ret->cap_w, ret->paused, arena, why);
    if (err == TW_OK)
        ret->value = tw_tree_value(t, ret->cap_w, ret->paused, NULL);
    return err;
}
