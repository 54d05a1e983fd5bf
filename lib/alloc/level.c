/* SPDX-License-Identifier: Apache-2.0 */
/* The rules with one level for all: equal, equal-watts, pfi, and a job's cap over its GPUs. The sum of clamped
 * lines grows with the level in straight pieces, so Newton's step inside a shrinking bracket lands on the
 * answer after a few passes. */
#include "alloc/alloc_int.h"

#include <math.h>

#define NAME(id, name, text) name,
const char *const tw_policy_name[TW_POLICY_COUNT] = {TW_POLICY_MAP(NAME)};
#undef NAME
#define TEXT(id, name, text) text,
const char *const tw_policy_text[TW_POLICY_COUNT] = {TW_POLICY_MAP(TEXT)};
#undef TEXT

enum { PASSES = 128 };

size_t tw_alloc_bytes(size_t n)
{
    /* lines (4), the equal split that curve starts from, the list of jobs with knots, and room to align */
    return 6 * tw_arena_need(n, sizeof(double)) + TW_ARENA_ALIGN;
}

static double find_level(const struct tw_lines *s, double budget_w)
{
    double low, high, rate;
    if (!tw_lines_ends(s, &low, &high))
        return 0.0;
    double level = 0.5 * (low + high);
    for (int pass = 0; pass < PASSES; pass++) {
        double miss = budget_w - tw_lines_sum(s, level, &rate);
        if (fabs(miss) <= 1e-13 * budget_w)
            break;
        if (miss > 0.0)
            low = level;
        else
            high = level;
        double next = rate > 0.0 ? level + miss / rate : (double)NAN;
        if (!(next > low && next < high))
            next = 0.5 * (low + high);
        if (!(next > low && next < high)) /* nothing lies between: as near as doubles come */
            break;
        level = next;
    }
    return level;
}

enum rule { RULE_SHARE, RULE_WATTS, RULE_FLEX };

static double rate_of(const struct tw_alloc_job *j, enum rule rule)
{
    return rule == RULE_SHARE ? j->p0_w : rule == RULE_WATTS ? j->gpus : j->flex;
}

static enum tw_err solve(enum rule rule, const struct tw_alloc_job *job, size_t n, double budget_w,
                         struct tw_arena *arena, double *ret_cap_w, double *ret_level, struct tw_why *why)
{
    double ceilings, level = (double)INFINITY;
    enum tw_err err = tw_alloc_take(job, n, budget_w, &ceilings, why);
    if (err != TW_OK)
        return err;
    for (size_t i = 0; i < n; i++)
        if (!(rate_of(&job[i], rule) > 0.0 && isfinite(rate_of(&job[i], rule))))
            return tw_fail(why, TW_EINVAL, "allocation: job %zu has %g %s, expected more than 0", i,
                           rate_of(&job[i], rule), rule == RULE_WATTS ? "GPUs" : "as its PFI");
    size_t mark = tw_arena_mark(arena);
    struct tw_lines s;
    err = tw_lines_take(&s, arena, n, why);
    if (err == TW_OK) {
        for (size_t i = 0; i < n; i++) {
            s.lo[i] = job[i].floor_w;
            s.hi[i] = job[i].ceiling_w;
            s.base[i] = rule == RULE_FLEX ? job[i].p0_w : 0.0;
            s.rate[i] = rate_of(&job[i], rule);
        }
        if (ceilings > budget_w)
            level = find_level(&s, budget_w);
        for (size_t i = 0; i < n; i++)
            ret_cap_w[i] = ceilings > budget_w ? tw_line_at(&s, i, level) : s.hi[i];
        if (ret_level)
            *ret_level = level;
    }
    tw_arena_release(arena, mark);
    return err;
}

enum tw_err tw_alloc_equal(const struct tw_alloc_job *job, size_t n, double budget_w, struct tw_arena *arena,
                           double *ret_cap_w, double *ret_level, struct tw_why *why)
{
    return solve(RULE_SHARE, job, n, budget_w, arena, ret_cap_w, ret_level, why);
}

enum tw_err tw_alloc_equal_watts(const struct tw_alloc_job *job, size_t n, double budget_w,
                                 struct tw_arena *arena, double *ret_cap_w, double *ret_level,
                                 struct tw_why *why)
{
    return solve(RULE_WATTS, job, n, budget_w, arena, ret_cap_w, ret_level, why);
}

enum tw_err tw_alloc_pfi(const struct tw_alloc_job *job, size_t n, double budget_w, struct tw_arena *arena,
                         double *ret_cap_w, struct tw_why *why)
{
    return solve(RULE_FLEX, job, n, budget_w, arena, ret_cap_w, NULL, why);
}

/* Bisection on the common cap, kept on the side that fits. */
enum tw_err tw_alloc_spread(const double *floor_w, const double *ceiling_w, size_t n, double cap_w,
                            double *ret_cap_w, struct tw_why *why)
{
    double low = 0.0, high = 0.0, floors = 0.0;
    for (size_t i = 0; i < n; i++) {
        if (!(floor_w[i] >= 0.0 && floor_w[i] <= ceiling_w[i] && isfinite(ceiling_w[i])))
            return tw_fail(why, TW_EINVAL, "spread: GPU %zu has a floor of %g W and a ceiling of %g W", i,
                           floor_w[i], ceiling_w[i]);
        floors += floor_w[i];
        high = fmax(high, ceiling_w[i]);
    }
    if (n == 0 || !(cap_w >= 0.0))
        return tw_fail(why, TW_EINVAL, "spread: a cap of %g W over %zu GPUs", cap_w, n);
    if (!(floors <= cap_w * (1.0 + 1e-12)))
        return tw_fail(why, TW_EINFEASIBLE, "spread: the floors need %.6g W, the cap is %.6g W", floors, cap_w);
    for (int pass = 0; pass < PASSES && high - low > 1e-12 * high; pass++) {
        double level = 0.5 * (low + high), sum = 0.0;
        for (size_t i = 0; i < n; i++)
            sum += fmin(fmax(level, floor_w[i]), ceiling_w[i]);
        if (sum <= cap_w)
            low = level;
        else
            high = level;
    }
    for (size_t i = 0; i < n; i++)
        ret_cap_w[i] = fmin(fmax(low, floor_w[i]), ceiling_w[i]);
    return TW_OK;
}
