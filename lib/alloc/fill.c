/* SPDX-License-Identifier: Apache-2.0 */
/* Water-filling on fitted curves. The level is -ln(price): an exp job's cap is then a straight line in it,
 *
 *     w t'(x) = price p0,  t'(x) = b k exp(k (1 - x))   =>   cap = p0 (1 + (ln(w b k / p0) + level) / k)
 *
 * so the sum over exp jobs is a sum of clamped lines, and one logarithm per job is all that is ever computed. A
 * job with knots is a staircase in the level. One bracket serves both: Newton's step on the lines, halving when
 * that does not help; where the bracket closes on a stair, the jobs that stand on it share what is left, which
 * costs nothing, since their curves are straight there. */
#include "alloc/alloc_int.h"

#include <math.h>

enum { PASSES = 256 };
#define CLOSE 1e-12      /* of the budget: what rounding leaves of a sum over a hundred thousand jobs */
#define FLAT_SLOPE 1e-12 /* a slope that counts as none: the price of the last, worthless watts */

struct fill {
    struct tw_lines lines;
    const struct tw_alloc_job *job;
    size_t *knots; /* [n_knots] jobs that are staircases; their line is held at 0 */
    double *hi;    /* [n] upper limit of every job */
    size_t n_knots;
};

static double stair_at(const struct tw_alloc_job *j, double lo, double hi, double price)
{
    double cap = j->p0_w * tw_curve_at_slope(j->curve, price * j->p0_w / j->weight);
    cap = cap > lo ? cap : lo;
    return cap < hi ? cap : hi;
}

/* For a staircase the lines' arrays hold its limits in base and rate, with lo = hi = 0: the sum of lines skips
 * it. */
static double total(const struct fill *f, double level, double *ret_rate)
{
    double sum = tw_lines_sum(&f->lines, level, ret_rate), price = exp(-level);
    for (size_t k = 0; k < f->n_knots; k++) {
        size_t i = f->knots[k];
        sum += stair_at(&f->job[i], f->lines.base[i], f->hi[i], price);
    }
    return sum;
}

static double cap_at(const struct fill *f, size_t i, double level)
{
    if (f->lines.rate[i] > 0.0) /* a line; looking at its curve would cost a cache miss */
        return tw_line_at(&f->lines, i, level);
    return stair_at(&f->job[i], f->lines.base[i], f->hi[i], exp(-level));
}

static enum tw_err check_curves(const struct tw_alloc_job *job, size_t n, bool *ret_bounded, struct tw_why *why)
{
    bool bounded = false;
    for (size_t i = 0; i < n; i++) {
        if (!(job[i].weight > 0.0 && isfinite(job[i].weight)))
            return tw_fail(why, TW_EINVAL, "allocation: job %zu has weight %g, expected more than 0", i,
                           job[i].weight);
        if (!job[i].curve ||
            (job[i].curve->family == TW_CURVE_EXP && !(job[i].curve->k > 0.0 && job[i].curve->b > 0.0)))
            return tw_fail(why, TW_EINVAL, "allocation: job %zu has no usable curve", i);
        if (!(job[i].stray_frac >= 0.0))
            return tw_fail(why, TW_EINVAL,
                           "allocation: job %zu may stray by %g of its power, expected 0 or more", i,
                           job[i].stray_frac);
        bounded = bounded || job[i].stray_frac < 1.0;
    }
    *ret_bounded = bounded;
    return TW_OK;
}

/* Limits around the equal split, and each job's line or place among the staircases; equal_w may be f->hi
 * itself, or NULL when no job is bounded. Returns the range of levels in which anything moves. */
static void prepare(struct fill *f, const double *equal_w, double *ret_low, double *ret_high)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (size_t i = 0; i < f->lines.n; i++) {
        const struct tw_alloc_job *j = &f->job[i];
        const struct tw_curve *c = j->curve;
        double lo = j->floor_w, hi = j->ceiling_w, first, last;
        if (equal_w) {
            lo = fmax(lo, equal_w[i] - j->stray_frac * j->p0_w);
            hi = fmin(hi, equal_w[i] + j->stray_frac * j->p0_w);
        }
        f->hi[i] = hi;
        if (c->family == TW_CURVE_EXP) {
            double rate = j->p0_w / c->k;
            double base = j->p0_w + rate * log(j->weight * c->b * c->k / j->p0_w);
            f->lines.lo[i] = lo;
            f->lines.hi[i] = hi;
            f->lines.base[i] = base;
            f->lines.rate[i] = rate;
            first = (lo - base) / rate;
            last = (hi - base) / rate;
        } else {
            double scale = log(j->p0_w / j->weight);
            f->lines.lo[i] = f->lines.hi[i] = f->lines.rate[i] = 0.0;
            f->lines.base[i] = lo;
            f->knots[f->n_knots++] = i;
            first = scale - log(fmax(tw_curve_slope(c, c->x[0]), FLAT_SLOPE)) - 1e-9;
            last = scale - log(fmax(tw_curve_slope(c, 1.0), FLAT_SLOPE)) + 1e-9;
        }
        low = first < low ? first : low;
        high = last > high ? last : high;
    }
    *ret_low = low;
    *ret_high = high;
}

/* Close the bracket [low, high], total(low) <= budget <= total(high). */
static void close_in(const struct fill *f, double budget_w, double *low, double *high)
{
    double level = 0.5 * (*low + *high);
    for (int pass = 0; pass < PASSES; pass++) {
        double rate, miss = budget_w - total(f, level, &rate), width = *high - *low;
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

/* The caps between those at the two ends of the bracket whose sum is the budget. Where even the last worthless
 * watt does not fill it, the rest goes towards the limits: a budget is there to be used. */
static void mix(const struct fill *f, double budget_w, double low, double high, double *ret_cap_w)
{
    double rate, below = 0.0, above = 0.0;
    bool to_limits = false;
    if (low < high) {
        below = total(f, low, &rate);
        above = total(f, high, &rate);
        to_limits = above < budget_w;
    }
    if (to_limits) {
        low = high;
        below = above;
        above = 0.0;
        for (size_t i = 0; i < f->lines.n; i++)
            above += f->hi[i];
    }
    double share = above > below ? fmin(fmax((budget_w - below) / (above - below), 0.0), 1.0) : 0.0;
    for (size_t i = 0; i < f->lines.n; i++) {
        double cap = cap_at(f, i, low);
        if (share > 0.0)
            cap += share * ((to_limits ? f->hi[i] : cap_at(f, i, high)) - cap);
        ret_cap_w[i] = cap;
    }
}

enum tw_err tw_alloc_curve(const struct tw_alloc_job *job, size_t n, double budget_w, struct tw_arena *arena,
                           double *ret_cap_w, double *ret_price, struct tw_why *why)
{
    double ceilings, low, high;
    bool bounded = false;
    enum tw_err err = tw_alloc_take(job, n, budget_w, &ceilings, why);
    if (err == TW_OK)
        err = check_curves(job, n, &bounded, why);
    if (err != TW_OK)
        return err;
    if (ceilings <= budget_w) {
        for (size_t i = 0; i < n; i++)
            ret_cap_w[i] = job[i].ceiling_w;
        if (ret_price)
            *ret_price = 0.0;
        return TW_OK;
    }
    size_t mark = tw_arena_mark(arena);
    struct tw_lines lines;
    double *hi = TW_ARENA_ARRAY(arena, double, n);
    size_t *knots = TW_ARENA_ARRAY(arena, size_t, n);
    if (hi && bounded)
        err = tw_alloc_equal(job, n, budget_w, arena, hi, NULL, why);
    if (err == TW_OK)
        err = tw_lines_take(&lines, arena, n, why);
    if (err == TW_OK && hi && knots) {
        struct fill f = {.lines = lines, .job = job, .knots = knots, .hi = hi};
        prepare(&f, bounded ? hi : NULL, &low, &high);
        close_in(&f, budget_w, &low, &high);
        mix(&f, budget_w, low, high, ret_cap_w);
        if (ret_price)
            *ret_price = exp(-low);
    }
    tw_arena_release(arena, mark);
    return err;
}
