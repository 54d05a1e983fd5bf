/* SPDX-License-Identifier: Apache-2.0 */
/* alloc/alloc_int.h - what the solvers of this room share: clamped straight lines and the level that fills a
 * budget. */
#ifndef TW_ALLOC_ALLOC_INT_H
#define TW_ALLOC_ALLOC_INT_H

#include "alloc/alloc.h"

#include <stdbool.h>

/* cap_i = clamp(base_i + level rate_i, lo_i, hi_i), rate_i > 0; or held at lo_i, with rate_i 0. */
struct tw_lines {
    double *lo, *hi, *base, *rate; /* [n] */
    size_t n;
};

/* The checks all solvers make; TW_EINVAL and TW_EINFEASIBLE as alloc.h says. */
TW_MUST_USE
enum tw_err tw_alloc_take(const struct tw_alloc_job *job, size_t n, double budget_w, double *ret_ceiling_sum_w,
                          struct tw_why *why);

TW_MUST_USE
enum tw_err tw_lines_take(struct tw_lines *s, struct tw_arena *arena, size_t n, struct tw_why *why);

/* One cap. */
static inline double tw_line_at(const struct tw_lines *s, size_t i, double level)
{
    double v = s->base[i] + level * s->rate[i];
    v = v > s->lo[i] ? v : s->lo[i];
    return v < s->hi[i] ? v : s->hi[i];
}

/* Sum of all caps at a level, and how fast it grows there. */
double tw_lines_sum(const struct tw_lines *s, double level, double *ret_rate);

/* Levels at or below which every line is at lo, and at or above which every line is at hi. False when no line
 * moves. */
bool tw_lines_ends(const struct tw_lines *s, double *ret_low, double *ret_high);

#endif
