/* SPDX-License-Identifier: Apache-2.0 */
/* alloc/check.h - the checker that every split passes before it leaves.
 *
 * Plain sums and comparisons over plain arrays; it shares no code and no types with the solvers, so that a
 * fault there cannot hide itself here. NaN fails every check. */
#ifndef TW_ALLOC_CHECK_H
#define TW_ALLOC_CHECK_H

#include "base/err.h"

#include <stddef.h>

#define TW_CHECK_SLACK 1e-9 /* of the budget, and of each limit: rounding, nothing more */

/* Is every cap_w [n] finite, within floor_w [n] and ceiling_w [n], and their sum within budget_w?
 * TW_EINTERNAL, and why names the first that is not. */
TW_MUST_USE
enum tw_err tw_alloc_check(const double *cap_w, const double *floor_w, const double *ceiling_w, size_t n,
                           double budget_w, struct tw_why *why);

#endif
