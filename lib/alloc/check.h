/* SPDX-License-Identifier: Apache-2.0 */
/* alloc/check.h - the checker that every split passes before it leaves.
 *
 * Plain sums and comparisons over plain arrays; it shares no code and no types with the solvers, so that a
 * fault there cannot hide itself here. NaN fails every check. */
#ifndef TW_ALLOC_CHECK_H
#define TW_ALLOC_CHECK_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_CHECK_SLACK 1e-9 /* of the budget, and of each limit: rounding, nothing more */

/* Is every cap_w [n] finite, within floor_w [n] and ceiling_w [n], and their sum within budget_w?
 * TW_EINTERNAL, and why names the first that is not. */
TW_MUST_USE
enum tw_err tw_alloc_check(const double *cap_w, const double *floor_w, const double *ceiling_w, size_t n,
                           double budget_w, struct tw_why *why);

/* A split under a tree of limits, as plain arrays: of GPUs [n] and of nodes [n_nodes], where parent is an
 * earlier node and 0 that of the root. */
struct tw_tree_check {
    const double *cap_w, *floor_w, *ceiling_w;
    const double *step_w; /* NULL for none; 0 for any cap */
    const bool *off;      /* GPUs of paused jobs, whose cap must be 0; NULL for none */
    const uint32_t *node;
    size_t n;
    const uint32_t *parent;
    const double *limit_w, *base_w;
    size_t n_nodes;
    double budget_w; /* of the root besides its limit; INFINITY for none */
};

/* Every cap finite, within its limits and on a step; under every node caps and base loads within its limit.
 * sum_w, lost_w [n_nodes] are scratch. TW_EINTERNAL, and why names the first that is not. */
TW_MUST_USE
enum tw_err tw_alloc_check_tree(const struct tw_tree_check *c, double *sum_w, double *lost_w,
                                struct tw_why *why);

#endif
