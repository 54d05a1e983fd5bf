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

static enum tw_err check_gpu(const struct tw_tree_check *c, size_t i, struct tw_why *why)
{
    double cap = c->cap_w[i], slack = TW_CHECK_SLACK * (1.0 + fabs(c->ceiling_w[i]));
    if (!isfinite(cap))
        return tw_fail(why, TW_EINTERNAL, "check: cap %zu is not a number", i);
    if (c->node[i] >= c->n_nodes)
        return tw_fail(why, TW_EINTERNAL, "check: GPU %zu stands under node %u, there are %zu", i, c->node[i],
                       c->n_nodes);
    if (c->off && c->off[i])
        return fabs(cap) <= slack
                   ? TW_OK
                   : tw_fail(why, TW_EINTERNAL, "check: cap %zu is %.9g W, its job is paused", i, cap);
    if (!(cap >= c->floor_w[i] - slack && cap <= c->ceiling_w[i] + slack))
        return tw_fail(why, TW_EINTERNAL, "check: cap %zu is %.9g W, outside %.9g to %.9g W", i, cap,
                       c->floor_w[i], c->ceiling_w[i]);
    double step = c->step_w ? c->step_w[i] : 0.0;
    double above = cap - c->floor_w[i];
    double off_step = step > 0.0 ? fabs(above - step * floor(above / step + 0.5)) : 0.0;
    if (!(off_step <= 1e-6 * step + slack))
        return tw_fail(why, TW_EINTERNAL, "check: cap %zu is %.9g W, not %.9g W and whole steps of %g W", i,
                       cap, c->floor_w[i], step);
    return TW_OK;
}

/* value onto sum [v], compensated */
static void put(double *sum, double *lost, size_t v, double value)
{
    double y = value - lost[v], t = sum[v] + y;
    lost[v] = (t - sum[v]) - y;
    sum[v] = t;
}

enum tw_err tw_alloc_check_tree(const struct tw_tree_check *c, double *sum_w, double *lost_w,
                                struct tw_why *why)
{
    for (size_t v = 0; v < c->n_nodes; v++) {
        sum_w[v] = c->base_w[v];
        lost_w[v] = 0.0;
    }
    for (size_t i = 0; i < c->n; i++) {
        enum tw_err err = check_gpu(c, i, why);
        if (err != TW_OK)
            return err;
        put(sum_w, lost_w, c->node[i], c->cap_w[i]);
    }
    for (size_t v = c->n_nodes; v-- > 0;) {
        if (v > 0 && c->parent[v] >= v)
            return tw_fail(why, TW_EINTERNAL, "check: node %zu does not come after its parent", v);
        if (!(sum_w[v] <= c->limit_w[v] + TW_CHECK_SLACK * (1.0 + fabs(c->limit_w[v]))))
            return tw_fail(why, TW_EINTERNAL, "check: under node %zu there are %.9g W, its limit is %.9g W", v,
                           sum_w[v], c->limit_w[v]);
        if (v > 0)
            put(sum_w, lost_w, c->parent[v], sum_w[v]);
    }
    if (!(sum_w[0] <= c->budget_w + TW_CHECK_SLACK * (1.0 + fabs(c->budget_w))))
        return tw_fail(why, TW_EINTERNAL, "check: all together are %.9g W, the budget is %.9g W", sum_w[0],
                       c->budget_w);
    return TW_OK;
}
