/* SPDX-License-Identifier: Apache-2.0 */
/* Clamped lines: the inner loop of every solver here, in eight explicit lanes, so that it vectorises without
 * letting the compiler reorder sums, and gives the same bits everywhere. */
#include "alloc/alloc_int.h"

#include <math.h>

enum { LANES = 8 };

enum tw_err tw_alloc_take(const struct tw_alloc_job *job, size_t n, double budget_w, double *ret_ceiling_sum_w,
                          struct tw_why *why)
{
    double floors = 0.0, ceilings = 0.0;
    if (n == 0)
        return tw_fail(why, TW_EINVAL, "allocation: no jobs");
    if (!(budget_w >= 0.0 && isfinite(budget_w)))
        return tw_fail(why, TW_EINVAL, "allocation: a budget of %g W", budget_w);
    for (size_t i = 0; i < n; i++) {
        const struct tw_alloc_job *j = &job[i];
        if (!(j->p0_w > 0.0 && isfinite(j->p0_w)))
            return tw_fail(why, TW_EINVAL, "allocation: job %zu draws %g W uncapped", i, j->p0_w);
        if (!(j->floor_w >= 0.0 && j->floor_w <= j->ceiling_w && isfinite(j->ceiling_w)))
            return tw_fail(why, TW_EINVAL, "allocation: job %zu has a floor of %g W and a ceiling of %g W", i,
                           j->floor_w, j->ceiling_w);
        floors += j->floor_w;
        ceilings += j->ceiling_w;
    }
    if (!(floors <= budget_w * (1.0 + 1e-12)))
        return tw_fail(why, TW_EINFEASIBLE, "the floors alone need %.6g W, the budget is %.6g W", floors,
                       budget_w);
    *ret_ceiling_sum_w = ceilings;
    return TW_OK;
}

enum tw_err tw_lines_take(struct tw_lines *s, struct tw_arena *arena, size_t n, struct tw_why *why)
{
    s->n = n;
    s->lo = TW_ARENA_ARRAY(arena, double, n);
    s->hi = TW_ARENA_ARRAY(arena, double, n);
    s->base = TW_ARENA_ARRAY(arena, double, n);
    s->rate = TW_ARENA_ARRAY(arena, double, n);
    if (!(s->lo && s->hi && s->base && s->rate))
        return tw_fail(why, TW_ENOMEM, "allocation: the arena is too small for %zu jobs", n);
    return TW_OK;
}

double tw_lines_sum(const struct tw_lines *s, double level, double *ret_rate)
{
    const double *restrict lo = s->lo, *restrict hi = s->hi, *restrict base = s->base, *restrict rate = s->rate;
    double sum[LANES] = {0}, grow[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= s->n; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            double raw = base[i + k] + level * rate[i + k];
            double v = raw > lo[i + k] ? raw : lo[i + k];
            sum[k] += v < hi[i + k] ? v : hi[i + k];
            grow[k] += raw > lo[i + k] && raw < hi[i + k] ? rate[i + k] : 0.0;
        }
    }
    for (; i < s->n; i++) {
        double v = tw_line_at(s, i, level);
        sum[i % LANES] += v;
        grow[i % LANES] += v > lo[i] && v < hi[i] ? rate[i] : 0.0;
    }
    *ret_rate = ((grow[0] + grow[1]) + (grow[2] + grow[3])) + ((grow[4] + grow[5]) + (grow[6] + grow[7]));
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

bool tw_lines_ends(const struct tw_lines *s, double *ret_low, double *ret_high)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (size_t i = 0; i < s->n; i++) {
        if (!(s->rate[i] > 0.0))
            continue;
        double a = (s->lo[i] - s->base[i]) / s->rate[i], b = (s->hi[i] - s->base[i]) / s->rate[i];
        low = a < low ? a : low;
        high = b > high ? b : high;
    }
    *ret_low = low;
    *ret_high = high;
    return low <= high;
}
