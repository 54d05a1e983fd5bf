/* SPDX-License-Identifier: Apache-2.0 */
/* The checker. Sums are compensated, so that a hundred thousand roundings do not pass for a watt. */
#include "alloc/check.h"

#include <math.h>

enum tw_err tw_alloc_check(const double *cap_w, const double *floor_w, const double *ceiling_w, size_t n,
                           double budget_w, struct tw_why *why)
{
    double sum = 0.0, lost = 0.0;
    for (size_t i = 0; i < n; i++) {
        double cap = cap_w[i], slack = TW_CHECK_SLACK * fabs(ceiling_w[i]);
        if (!isfinite(cap))
            return tw_fail(why, TW_EINTERNAL, "check: cap %zu is not a number", i);
        if (!(cap >= floor_w[i] - slack))
            return tw_fail(why, TW_EINTERNAL, "check: cap %zu is %.9g W, below its floor of %.9g W", i, cap,
                           floor_w[i]);
        if (!(cap <= ceiling_w[i] + slack))
            return tw_fail(why, TW_EINTERNAL, "check: cap %zu is %.9g W, above its ceiling of %.9g W", i, cap,
                           ceiling_w[i]);
        double y = cap - lost, t = sum + y;
        lost = (t - sum) - y;
        sum = t;
    }
    if (!(sum <= budget_w + TW_CHECK_SLACK * fabs(budget_w)))
        return tw_fail(why, TW_EINTERNAL, "check: the caps sum to %.9g W, the budget is %.9g W", sum, budget_w);
    return TW_OK;
}
