/* SPDX-License-Identifier: Apache-2.0 */
/* alloc/tree.h - split a power budget over the GPUs of jobs under a tree of limits: site, hall, row, rack,
 * node.
 *
 * Everything said in alloc/alloc.h about units, memory and errors holds here too; power is of one GPU unless a
 * line says otherwise. Maximised is the sum over jobs of weight t(x):
 *
 *   lock step    a job has one x, and each of its GPUs draws max(floor, x p0): the slowest sets the speed, so a
 *                watt above the slowest is left out, except where a floor forces it
 *   otherwise    every GPU works for itself and brings p0 / (sum of p0) of the weight
 *   paused       a job that may be paused draws and brings nothing; what its idle GPUs still draw is base load
 *
 * Jobs that lie under one limit are split exactly: limits of a tree are nested, curves are concave, so filling
 * each node from the leaves up, each with what its children were left as its ceilings, is optimal. A lock-step
 * job under several limits is cut into one copy per limit, whose shares of the job's value follow the prices
 * found there until the copies agree. Whatever the shares, prices give a bound that no split can pass (weak
 * duality), and the smallest copy gives a split; both are returned, and `bound - value` is the gap. Pausing is
 * a yes or no and so not convex: it is decided by the same prices and stands under the same bound. */
#ifndef TW_ALLOC_TREE_H
#define TW_ALLOC_TREE_H

#include "alloc/alloc.h"

#include <stdbool.h>
#include <stdint.h>

#define TW_TREE_DEPTH 32 /* levels at most */
#define TW_TREE_ROUNDS 200
#define TW_TREE_CLOSE 1e-6 /* of the bound: a gap below this ends the rounds */

struct tw_tree_node {
    uint32_t parent; /* an earlier node; of the first one, the root, its own number 0 */
    double limit_w;  /* INFINITY for none */
    double base_w;   /* drawn here whatever the jobs do; counts for every node above */
};

struct tw_tree_gpu {
    uint32_t node;
    double p0_w; /* uncapped draw, > 0 */
    double floor_w, ceiling_w;
    double step_w; /* caps are floor_w + a whole number of these; 0: any */
};

struct tw_tree_job {
    uint32_t first, n; /* its GPUs, in a row; every GPU belongs to one job */
    double weight;     /* of t = 1, > 0 */
    double flex;       /* policy pfi alone, > 0 */
    const struct tw_curve *curve;
    bool lockstep, pausable;
};

struct tw_tree {
    const struct tw_tree_node *node;
    const struct tw_tree_gpu *gpu;
    const struct tw_tree_job *job;
    uint32_t n_nodes, n_gpus, n_jobs;
    double budget_w; /* of the root, base loads included; INFINITY for its limit alone */
};

struct tw_tree_split {
    double *cap_w;   /* [n_gpus] */
    double *price;   /* [n_nodes] policy curve: weight per watt more of this node's limit; else 0 */
    bool *paused;    /* [n_jobs] */
    double value;    /* sum of weight t */
    double bound;    /* policy curve: no split is worth more, before cap steps; else INFINITY */
    unsigned rounds; /* of agreeing between copies; 1 when no job lies under two limits */
};

/* Arena for tw_tree_solve and tw_tree_lacks. */
size_t tw_tree_bytes(uint32_t n_nodes, uint32_t n_gpus, uint32_t n_jobs);

/* The split by a policy; ret's arrays are the caller's. equal: one x; equal-watts: one cap; pfi: watts cut in
 * proportion to flex p0; each as far as floors, SLA depths and limits allow, the rest made up by others under
 * the same node. TW_EUNSUPPORTED for oracle. TW_EINFEASIBLE: see tw_tree_lacks. */
TW_MUST_USE
enum tw_err tw_tree_solve(const struct tw_tree *t, enum tw_policy policy, struct tw_arena *arena,
                          struct tw_tree_split *ret, struct tw_why *why);

/* The nodes whose floors (jobs that may be paused left out) and base loads exceed their limit. need_w [n_nodes]
 * is what each node cannot do without: a node lacks need_w - limit_w (the root: - min(limit_w, budget_w)). With
 * limits raised to need_w the nearest feasible split is a plain tw_tree_solve. */
TW_MUST_USE
enum tw_err tw_tree_lacks(const struct tw_tree *t, struct tw_arena *arena, double *ret_need_w,
                          uint32_t *ret_lacking, struct tw_why *why);

/* The floor that a deepest cut asks of a GPU, in whole steps above its own and at most its ceiling: an SLA
 * depth is put into floor_w before solving. */
double tw_tree_floor(const struct tw_tree_gpu *g, double depth);

/* What caps are worth: sum of weight t, and (NULL is fine) t of every job. */
double tw_tree_value(const struct tw_tree *t, const double *cap_w, const bool *paused, double *ret_t);

#endif
