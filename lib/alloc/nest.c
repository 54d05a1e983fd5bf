/* SPDX-License-Identifier: Apache-2.0 */
/* Nested filling. Limits of a tree are nested, and the sum a set of concave jobs makes of a budget is itself
 * concave; so a node can be filled as if it were alone, and what its atoms got are their ceilings above it: a
 * tighter budget further up never gives any of them more. Each filling is one level for a range of atoms. */
#include "alloc/tree_int.h"

#include <math.h>

enum { PASSES = 200 };
#define CLOSE 1e-12
#define FLAT_SLOPE 1e-12 /* as in fill.c */

/* --- one atom ----------------------------------------------------------------------------------------------
 */

static const struct tw_tree_gpu *gpu_of(const struct tw_nest *s, const struct tw_atom *a, uint32_t i)
{
    return &s->t->gpu[s->perm[a->first + i]];
}

double tw_atom_power(const struct tw_nest *s, const struct tw_atom *a, double x)
{
    if (!a->odd)
        return x * a->p0_w;
    double sum = 0.0;
    for (uint32_t i = 0; i < a->n; i++)
        sum += fmax(gpu_of(s, a, i)->floor_w, x * gpu_of(s, a, i)->p0_w);
    return sum;
}

double tw_atom_active(const struct tw_nest *s, const struct tw_atom *a, double x)
{
    if (!a->odd)
        return a->p0_w;
    double sum = 0.0;
    for (uint32_t i = 0; i < a->n && gpu_of(s, a, i)->floor_w <= x * gpu_of(s, a, i)->p0_w; i++)
        sum += gpu_of(s, a, i)->p0_w;
    return sum;
}

/* Floors of GPUs in an odd atom ascend with floor / p0, so power over x is straight between those. */
double tw_atom_x(const struct tw_nest *s, const struct tw_atom *a, double power_w)
{
    double x = a->x_low;
    if (!a->odd) {
        x = power_w / a->p0_w;
    } else {
        double power = a->power_low, active = 0.0;
        uint32_t i = 0;
        while (x < a->x_high) {
            for (; i < a->n && gpu_of(s, a, i)->floor_w <= x * gpu_of(s, a, i)->p0_w; i++)
                active += gpu_of(s, a, i)->p0_w;
            double next =
                i < a->n ? fmin(gpu_of(s, a, i)->floor_w / gpu_of(s, a, i)->p0_w, a->x_high) : a->x_high;
            double rise = active * (next - x);
            if (power + rise > power_w) {
                x += fmax(power_w - power, 0.0) / active;
                break;
            }
            power += rise;
            if (!(next > x)) { /* rounding of floor / p0: it counts as left */
                active += gpu_of(s, a, i)->p0_w;
                i++;
                continue;
            }
            x = next;
        }
    }
    return fmin(fmax(x, a->x_low), a->x_high);
}

double tw_atom_want(const struct tw_nest *s, const struct tw_atom *a, double price)
{
    const struct tw_curve *c = s->t->job[a->job].curve;
    double x = a->x_low, active = 0.0;
    uint32_t i = 0;
    while (x < a->x_high) {
        for (; i < a->n && gpu_of(s, a, i)->floor_w <= x * gpu_of(s, a, i)->p0_w; i++)
            active += gpu_of(s, a, i)->p0_w;
        double next = i < a->n ? fmin(gpu_of(s, a, i)->floor_w / gpu_of(s, a, i)->p0_w, a->x_high) : a->x_high;
        double slope = price * active / a->weight, stop = slope > 0.0 ? tw_curve_at_slope(c, slope) : a->x_high;
        if (stop < next)
            return fmax(stop, x);
        if (!(next > x)) {
            active += gpu_of(s, a, i)->p0_w;
            i++;
            continue;
        }
        x = next;
    }
    return a->x_high;
}

double tw_atom_demand(const struct tw_nest *s, const struct tw_atom *a, double price)
{
    double x = tw_atom_want(s, a, price), power = tw_atom_power(s, a, x);
    if (a->pausable && a->weight * tw_curve_value(s->t->job[a->job].curve, x) < price * power)
        return 0.0;
    return power;
}

/* --- filling a range ---------------------------------------------------------------------------------------
 */

struct range {
    size_t a, b;   /* atoms */
    size_t oa, ob; /* odd ones among them */
    struct tw_lines line;
};

static size_t odd_from(const struct tw_nest *s, size_t a)
{
    size_t low = 0, high = s->n_odd;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->odd[mid] < a)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct range range_of(const struct tw_nest *s, uint32_t v)
{
    struct range r = {.a = s->start[s->spot[v]], .b = s->start[s->spot[v] + s->size[v]]};
    r.oa = odd_from(s, r.a);
    r.ob = odd_from(s, r.b);
    r.line = (struct tw_lines){s->line.lo + r.a, s->line.hi + r.a, s->line.base + r.a, s->line.rate + r.a,
                               r.b - r.a};
    return r;
}

static double odd_at(const struct tw_nest *s, size_t a, double level)
{
    double cap = tw_atom_demand(s, &s->atom[a], exp(-level));
    return fmin(fmax(cap, s->low_w[a]), s->cap_w[a]);
}

static double total(const struct tw_nest *s, const struct range *r, double level, double *ret_rate)
{
    double sum = tw_lines_sum(&r->line, level, ret_rate);
    for (size_t k = r->oa; k < r->ob; k++)
        sum += odd_at(s, s->odd[k], level);
    return sum;
}

static void close_in(const struct tw_nest *s, const struct range *r, double budget_w, double start, double *low,
                     double *high)
{
    double level = start > *low && start < *high ? start : 0.5 * (*low + *high);
    for (int pass = 0; pass < PASSES; pass++) {
        double rate, miss = budget_w - total(s, r, level, &rate), width = *high - *low;
        if (miss >= 0.0)
            *low = level;
        if (miss <= 0.0)
            *high = level;
        if (fabs(miss) <= CLOSE * budget_w) {
            *low = *high = level;
            break;
        }
        double next = rate > 0.0 ? level + miss / rate : (double)NAN;
        bool slow = *high - *low > 0.5 * width && (pass & 1);
        if (slow || !(next > *low && next < *high))
            next = 0.5 * (*low + *high);
        if (!(next > *low && next < *high))
            break;
        level = next;
    }
}

/* Caps at `low`, and where the bracket closed on a stair, the same share of each stair's height. Ceilings come
 * last: watts that bring nothing. Returns their sum. */
static void settle(struct tw_nest *s, const struct range *r, double budget_w, double low, double high)
{
    double rate, below = 0.0, above = 0.0;
    bool to_limits = false;
    if (low < high) {
        below = total(s, r, low, &rate);
        above = total(s, r, high, &rate);
        to_limits = above < budget_w;
        if (to_limits) {
            low = high;
            below = above;
            above = 0.0;
            for (size_t i = r->a; i < r->b; i++)
                above += s->cap_w[i];
        }
    }
    double share = above > below ? fmin(fmax((budget_w - below) / (above - below), 0.0), 1.0) : 0.0;
    for (size_t k = r->oa; k < r->ob; k++) {
        size_t i = s->odd[k];
        double cap = odd_at(s, i, low), up = to_limits ? s->cap_w[i] : odd_at(s, i, high);
        s->cap_w[i] = share > 0.0 ? cap + share * (up - cap) : cap;
    }
    for (size_t i = r->a; i < r->b; i++) {
        if (!(s->line.rate[i] > 0.0))
            continue;
        double cap = tw_line_at(&s->line, i, low);
        if (share > 0.0)
            cap += share * ((to_limits ? s->line.hi[i] : tw_line_at(&s->line, i, high)) - cap);
        s->line.hi[i] = s->cap_w[i] = cap;
    }
}

void tw_nest_fill(struct tw_nest *s)
{
    const struct tw_tree *t = s->t;
    double last = (double)NAN; /* a neighbour's level is a good guess */
    for (size_t i = 0; i < s->n; i++) {
        s->cap_w[i] = s->high_w[i];
        if (s->line.rate[i] > 0.0)
            s->line.hi[i] = s->high_w[i];
    }
    for (uint32_t v = 0; v < t->n_nodes; v++) {
        s->want_w[v] = 0.0;
        for (uint32_t i = s->start[s->spot[v]]; i < s->start[s->spot[v] + 1]; i++)
            s->want_w[v] += s->high_w[i];
    }
    for (uint32_t v = t->n_nodes; v-- > 0;) {
        s->level[v] = (double)INFINITY;
        if (s->want_w[v] > s->avail_w[v]) {
            struct range r = range_of(s, v);
            double low = s->level_low, high = s->level_high;
            close_in(s, &r, s->avail_w[v], last, &low, &high);
            settle(s, &r, s->avail_w[v], low, high);
            s->level[v] = last = low;
            s->want_w[v] = s->avail_w[v];
        }
        if (v > 0)
            s->want_w[t->node[v].parent] += s->want_w[v];
    }
}

/* --- building ----------------------------------------------------------------------------------------------
 */

void tw_tree_gpu_range(const struct tw_tree_gpu *g, double *ret_low, double *ret_high)
{
    double high = fmin(g->ceiling_w / g->p0_w, 1.0);
    high = fmax(high, g->floor_w / g->p0_w); /* a floor above what it draws is paid all the same */
    *ret_low = g->floor_w / g->p0_w;
    *ret_high = high;
}

void tw_tree_range(const struct tw_tree *t, const struct tw_tree_job *j, double *ret_low, double *ret_high)
{
    double low = (double)INFINITY, high = 1.0;
    for (uint32_t i = j->first; i < j->first + j->n; i++) {
        low = fmin(low, t->gpu[i].floor_w / t->gpu[i].p0_w);
        high = fmin(high, t->gpu[i].ceiling_w / t->gpu[i].p0_w);
    }
    *ret_low = fmin(low, high);
    *ret_high = high;
}

void tw_tree_need(const struct tw_tree *t, bool pauses, double *ret_need_w)
{
    for (uint32_t v = 0; v < t->n_nodes; v++)
        ret_need_w[v] = t->node[v].base_w;
    for (uint32_t j = 0; j < t->n_jobs; j++) {
        const struct tw_tree_job *job = &t->job[j];
        double low, high;
        if (pauses && job->pausable)
            continue;
        tw_tree_range(t, job, &low, &high);
        for (uint32_t i = job->first; i < job->first + job->n; i++) {
            const struct tw_tree_gpu *g = &t->gpu[i];
            if (!job->lockstep)
                tw_tree_gpu_range(g, &low, &high);
            ret_need_w[g->node] += fmax(g->floor_w, low * g->p0_w);
        }
    }
    for (uint32_t v = t->n_nodes; v-- > 1;)
        ret_need_w[t->node[v].parent] += ret_need_w[v];
}

static enum tw_err check_nodes(const struct tw_tree *t, struct tw_why *why)
{
    if (t->n_nodes == 0 || t->n_jobs == 0 || t->n_gpus == 0)
        return tw_fail(why, TW_EINVAL, "tree: %u nodes, %u jobs, %u GPUs; one of each at least", t->n_nodes,
                       t->n_jobs, t->n_gpus);
    if (!(t->budget_w >= 0.0))
        return tw_fail(why, TW_EINVAL, "tree: a budget of %g W", t->budget_w);
    for (uint32_t v = 0; v < t->n_nodes; v++) {
        const struct tw_tree_node *n = &t->node[v];
        if (v == 0 ? n->parent != 0 : n->parent >= v)
            return tw_fail(why, TW_EINVAL, "tree: node %u has parent %u, expected an earlier node", v,
                           n->parent);
        if (!(n->limit_w >= 0.0 && n->base_w >= 0.0 && isfinite(n->base_w)))
            return tw_fail(why, TW_EINVAL, "tree: node %u has a limit of %g W and a base load of %g W", v,
                           n->limit_w, n->base_w);
    }
    return TW_OK;
}

static enum tw_err check_jobs(const struct tw_tree *t, enum tw_policy policy, struct tw_why *why)
{
    uint32_t next = 0;
    for (uint32_t j = 0; j < t->n_jobs; j++) {
        const struct tw_tree_job *job = &t->job[j];
        if (job->first != next || job->n == 0 || job->n > t->n_gpus - next)
            return tw_fail(why, TW_EINVAL, "tree: job %u has %u GPUs from %u on, expected them from %u on", j,
                           job->n, job->first, next);
        next += job->n;
        if (!(job->weight > 0.0 && isfinite(job->weight)))
            return tw_fail(why, TW_EINVAL, "tree: job %u has weight %g, expected more than 0", j, job->weight);
        if (!job->curve ||
            (job->curve->family == TW_CURVE_EXP && !(job->curve->k > 0.0 && job->curve->b > 0.0)))
            return tw_fail(why, TW_EINVAL, "tree: job %u has no usable curve", j);
        if (policy == TW_POLICY_PFI && !(job->flex > 0.0 && isfinite(job->flex)))
            return tw_fail(why, TW_EINVAL, "tree: job %u has %g as its PFI, expected more than 0", j,
                           job->flex);
    }
    if (next != t->n_gpus)
        return tw_fail(why, TW_EINVAL, "tree: %u GPUs of which the jobs have %u", t->n_gpus, next);
    for (uint32_t i = 0; i < t->n_gpus; i++) {
        const struct tw_tree_gpu *g = &t->gpu[i];
        if (!(g->node < t->n_nodes && g->p0_w > 0.0 && isfinite(g->p0_w) && g->floor_w >= 0.0 &&
              g->floor_w <= g->ceiling_w && isfinite(g->ceiling_w) && g->step_w >= 0.0 && isfinite(g->step_w)))
            return tw_fail(why, TW_EINVAL,
                           "tree: GPU %u: node %u, uncapped %g W, floor %g W, ceiling %g W, step %g W", i,
                           g->node, g->p0_w, g->floor_w, g->ceiling_w, g->step_w);
    }
    return TW_OK;
}

/* Places in a walk that visits a node, then all that lies under it, child by child. */
static enum tw_err walk(struct tw_nest *s, struct tw_arena *arena, struct tw_why *why)
{
    const struct tw_tree *t = s->t;
    size_t mark = tw_arena_mark(arena);
    uint32_t *next = TW_ARENA_ARRAY(arena, uint32_t, t->n_nodes);
    uint32_t *depth = TW_ARENA_ARRAY(arena, uint32_t, t->n_nodes);
    enum tw_err err = next && depth ? TW_OK : tw_fail(why, TW_ENOMEM, "tree: the arena is too small");
    for (uint32_t v = 0; v < t->n_nodes && err == TW_OK; v++) {
        s->size[v] = 1;
        depth[v] = v ? depth[t->node[v].parent] + 1 : 1;
        if (depth[v] > TW_TREE_DEPTH)
            err = tw_fail(why, TW_ELIMIT, "tree: node %u is %u levels deep, at most %d are taken", v, depth[v],
                          TW_TREE_DEPTH);
    }
    if (err == TW_OK) {
        for (uint32_t v = t->n_nodes; v-- > 1;)
            s->size[t->node[v].parent] += s->size[v];
        s->spot[0] = 0;
        next[0] = 1;
        for (uint32_t v = 1; v < t->n_nodes; v++) {
            uint32_t p = t->node[v].parent;
            s->spot[v] = next[p];
            next[p] += s->size[v];
            next[v] = s->spot[v] + 1;
        }
    }
    tw_arena_release(arena, mark);
    return err;
}

/* What is left of each limit for jobs, and which limits cannot matter since all below fits. */
static void take_limits(struct tw_nest *s)
{
    const struct tw_tree *t = s->t;
    for (uint32_t v = 0; v < t->n_nodes; v++) {
        s->avail_w[v] = t->node[v].base_w;
        s->want_w[v] = 0.0;
    }
    for (uint32_t i = 0; i < t->n_gpus; i++)
        s->want_w[t->gpu[i].node] += fmax(fmin(t->gpu[i].ceiling_w, t->gpu[i].p0_w), t->gpu[i].floor_w);
    for (uint32_t v = t->n_nodes; v-- > 1;)
        s->avail_w[t->node[v].parent] += s->avail_w[v];
    for (uint32_t v = t->n_nodes; v-- > 0;) {
        double limit = v ? t->node[v].limit_w : fmin(t->node[v].limit_w, t->budget_w);
        s->avail_w[v] = limit - s->avail_w[v];
        if (!(s->want_w[v] > s->avail_w[v]))
            s->avail_w[v] = (double)INFINITY;
        if (v)
            s->want_w[t->node[v].parent] += fmin(s->want_w[v], s->avail_w[v]);
    }
    for (uint32_t v = 0; v < t->n_nodes; v++)
        s->holds[v] = v == 0 || isfinite(s->avail_w[v]) ? v : s->holds[t->node[v].parent];
}

/* Order of GPUs within a job: by limit, then by where they leave their floor. */
static bool comes_after(const struct tw_nest *s, uint32_t a, uint32_t b)
{
    const struct tw_tree_gpu *g = &s->t->gpu[a], *h = &s->t->gpu[b];
    uint32_t sg = s->spot[s->holds[g->node]], sh = s->spot[s->holds[h->node]];
    if (sg != sh)
        return sg > sh;
    return g->floor_w * h->p0_w > h->floor_w * g->p0_w;
}

static void sort_gpus(const struct tw_nest *s, uint32_t *p, uint32_t n)
{
    for (uint32_t gap = n / 2; gap > 0;
         gap = gap == 2 ? 1 : gap * 5 / 11) { /* Shell: short and nearly sorted */
        for (uint32_t i = gap; i < n; i++) {
            uint32_t v = p[i], k = i;
            for (; k >= gap && comes_after(s, p[k - gap], v); k -= gap)
                p[k] = p[k - gap];
            p[k] = v;
        }
    }
}

static size_t cut_job(struct tw_nest *s, uint32_t j, bool per_gpu, struct tw_atom *atom)
{
    const struct tw_tree *t = s->t;
    const struct tw_tree_job *job = &t->job[j];
    double low, high, p0 = 0.0;
    size_t n = 0;
    for (uint32_t i = job->first; i < job->first + job->n; i++) {
        s->perm[i] = i;
        p0 += t->gpu[i].p0_w;
    }
    if (!per_gpu) {
        tw_tree_range(t, job, &low, &high);
        sort_gpus(s, s->perm + job->first, job->n);
    }
    for (uint32_t i = job->first; i < job->first + job->n; i++) {
        const struct tw_tree_gpu *g = &t->gpu[s->perm[i]];
        uint32_t spot = s->spot[s->holds[g->node]];
        struct tw_atom *a = n ? &atom[n - 1] : NULL;
        if (per_gpu)
            tw_tree_gpu_range(g, &low, &high);
        if (per_gpu || !a || a->spot != spot) {
            a = &atom[n++];
            *a = (struct tw_atom){.job = j,
                                  .first = i,
                                  .spot = spot,
                                  .x_low = low,
                                  .x_high = high,
                                  .odd = s->by_price && (job->pausable || job->curve->family != TW_CURVE_EXP),
                                  .pausable = s->by_price && job->pausable};
        }
        a->n++;
        a->p0_w += g->p0_w;
        a->power_low += fmax(g->floor_w, low * g->p0_w);
        if (s->by_price && g->floor_w > low * g->p0_w * (1.0 + 1e-12))
            a->odd = true;
    }
    for (size_t k = 0; k < n; k++)
        atom[k].weight = job->weight * atom[k].p0_w / p0;
    return n;
}

static void sort_atoms(struct tw_nest *s, const struct tw_atom *from)
{
    uint32_t n_nodes = s->t->n_nodes;
    for (uint32_t v = 0; v <= n_nodes + 1; v++)
        s->start[v] = 0;
    for (size_t u = 0; u < s->n; u++)
        s->start[from[u].spot + 2]++;
    for (uint32_t v = 2; v <= n_nodes + 1; v++)
        s->start[v] += s->start[v - 1];
    for (size_t u = 0; u < s->n; u++) {
        uint32_t a = s->start[from[u].spot + 1]++;
        s->atom[a] = from[u];
        s->where[u] = a;
    }
}

static void line_rule(const struct tw_nest *s, enum tw_policy policy, const struct tw_atom *a, double *base,
                      double *rate)
{
    bool pfi = policy == TW_POLICY_PFI;
    *base = pfi ? a->p0_w : 0.0;
    *rate = pfi ? s->t->job[a->job].flex * a->p0_w : policy == TW_POLICY_EQUAL_WATTS ? a->n : a->p0_w;
}

void tw_nest_open(struct tw_nest *s, size_t i)
{
    const struct tw_atom *a = &s->atom[i];
    const struct tw_curve *c = s->t->job[a->job].curve;
    s->low_w[i] = a->pausable ? 0.0 : a->power_low;
    s->high_w[i] = fmax(tw_atom_power(s, a, a->x_high), s->low_w[i]);
    if (a->odd || !s->by_price)
        return;
    s->line.rate[i] = a->p0_w / c->k;
    s->line.base[i] = a->p0_w + s->line.rate[i] * log(a->weight * c->b * c->k / a->p0_w);
    s->line.lo[i] = s->low_w[i];
}

void tw_nest_hold(struct tw_nest *s, size_t i, double power_w)
{
    s->low_w[i] = s->high_w[i] = power_w;
    if (s->line.rate[i] > 0.0)
        s->line.lo[i] = power_w;
}

/* Levels beyond which nothing moves, with room: prices of copies move while they come to agree. */
static void find_ends(struct tw_nest *s)
{
    double low, high;
    if (!tw_lines_ends(&s->line, &low, &high)) {
        low = (double)INFINITY;
        high = -(double)INFINITY;
    }
    for (size_t k = 0; k < s->n_odd; k++) {
        const struct tw_atom *a = &s->atom[s->odd[k]];
        const struct tw_curve *c = s->t->job[a->job].curve;
        double least = (double)INFINITY;
        for (uint32_t i = 0; i < a->n; i++)
            least = fmin(least, gpu_of(s, a, i)->p0_w);
        double steep = fmax(tw_curve_slope(c, a->x_low), FLAT_SLOPE) / least;
        if (a->pausable)
            steep = fmax(steep, 1.0 / fmax(a->power_low, least));
        low = fmin(low, -log(a->weight * steep));
        high = fmax(high, -log(a->weight * fmax(tw_curve_slope(c, a->x_high), FLAT_SLOPE) / a->p0_w));
    }
    double room = s->by_price ? 25.0 : 1e-9 * (fabs(low) + fabs(high));
    s->level_low = low - room;
    s->level_high = high + room;
}

static bool take_memory(struct tw_nest *s, const struct tw_tree *t, struct tw_arena *arena)
{
    size_t v = t->n_nodes, g = t->n_gpus;
    s->spot = TW_ARENA_ARRAY(arena, uint32_t, v);
    s->size = TW_ARENA_ARRAY(arena, uint32_t, v);
    s->holds = TW_ARENA_ARRAY(arena, uint32_t, v);
    s->avail_w = TW_ARENA_ARRAY(arena, double, v);
    s->level = TW_ARENA_ARRAY(arena, double, v);
    s->want_w = TW_ARENA_ARRAY(arena, double, v);
    s->start = TW_ARENA_ARRAY(arena, uint32_t, v + 2);
    s->perm = TW_ARENA_ARRAY(arena, uint32_t, g);
    s->job_atom = TW_ARENA_ARRAY(arena, uint32_t, (size_t)t->n_jobs + 1);
    return s->spot && s->size && s->holds && s->avail_w && s->level && s->want_w && s->start && s->perm &&
           s->job_atom;
}

static bool take_atoms(struct tw_nest *s, struct tw_arena *arena)
{
    s->where = TW_ARENA_ARRAY(arena, uint32_t, s->n);
    s->low_w = TW_ARENA_ARRAY(arena, double, s->n);
    s->high_w = TW_ARENA_ARRAY(arena, double, s->n);
    s->cap_w = TW_ARENA_ARRAY(arena, double, s->n);
    s->odd = TW_ARENA_ARRAY(arena, uint32_t, s->n);
    s->atom = TW_ARENA_ARRAY(arena, struct tw_atom, s->n);
    return s->where && s->low_w && s->high_w && s->cap_w && s->odd && s->atom &&
           tw_lines_take(&s->line, arena, s->n, NULL) == TW_OK;
}

enum tw_err tw_nest_build(struct tw_nest *s, const struct tw_tree *t, enum tw_policy policy,
                          struct tw_arena *arena, struct tw_why *why)
{
    *s = (struct tw_nest){.t = t, .by_price = policy == TW_POLICY_CURVE};
    enum tw_err err = check_nodes(t, why);
    if (err == TW_OK)
        err = check_jobs(t, policy, why);
    if (err != TW_OK)
        return err;
    struct tw_atom *loose = TW_ARENA_ARRAY(arena, struct tw_atom, t->n_gpus);
    if (!loose || !take_memory(s, t, arena))
        return tw_fail(why, TW_ENOMEM, "tree: the arena is too small for %u GPUs", t->n_gpus);
    err = walk(s, arena, why);
    if (err != TW_OK)
        return err;
    take_limits(s);
    for (uint32_t j = 0; j < t->n_jobs; j++) {
        s->job_atom[j] = (uint32_t)s->n;
        s->n += cut_job(s, j, !s->by_price || !t->job[j].lockstep, loose + s->n);
    }
    s->job_atom[t->n_jobs] = (uint32_t)s->n;
    if (!take_atoms(s, arena))
        return tw_fail(why, TW_ENOMEM, "tree: the arena is too small for %u GPUs", t->n_gpus);
    sort_atoms(s, loose);
    for (size_t i = 0; i < s->n; i++) {
        if (s->atom[i].odd)
            s->odd[s->n_odd++] = (uint32_t)i;
        tw_nest_open(s, i);
        if (!s->by_price) {
            line_rule(s, policy, &s->atom[i], &s->line.base[i], &s->line.rate[i]);
            s->line.lo[i] = s->low_w[i];
        }
        if (!s->atom[i].odd)
            s->line.hi[i] = s->high_w[i];
    }
    find_ends(s);
    return TW_OK;
}
