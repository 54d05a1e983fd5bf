/* SPDX-License-Identifier: Apache-2.0 */
/* alloc/tree_int.h - what the files of the tree solver share: atoms and nested filling.
 *
 * An atom is what is filled as one: the GPUs of one lock-step job under one limit, or a single GPU. Atoms are
 * sorted by the node that limits them, in the order of a walk through the tree, so that what lies under a node
 * is a range. Most atoms are clamped lines in the level (alloc_int.h); the odd ones (knots, GPUs that leave
 * their floors one after the other, jobs that may be paused) answer a price through tw_atom_demand. */
#ifndef TW_ALLOC_TREE_INT_H
#define TW_ALLOC_TREE_INT_H

#include "alloc/alloc_int.h"
#include "alloc/tree.h"

struct tw_atom {
    uint32_t job, first, n; /* GPUs nest->perm[first .. first + n) */
    uint32_t spot;          /* place of its node in the walk */
    double weight;          /* of t = 1: the job's, or its copy's share */
    double p0_w;            /* sum over its GPUs */
    double x_low, x_high;
    double power_low; /* at x_low: what a running job draws at least */
    bool odd, pausable;
};

struct tw_nest {
    const struct tw_tree *t;
    bool by_price;   /* levels are -ln(price); else a share, watts or a cut */
    uint32_t *spot;  /* [n_nodes] place in the walk */
    uint32_t *size;  /* [n_nodes] nodes under and including */
    uint32_t *holds; /* [n_nodes] nearest node at or above whose limit can matter */
    double *avail_w; /* [n_nodes] limit less base loads */
    double *level;   /* [n_nodes] at which it is full; INFINITY when it is not */
    double *want_w;  /* [n_nodes] */
    uint32_t *start; /* [n_nodes + 2] first atom at each place of the walk */
    uint32_t *perm;  /* [n_gpus] GPUs by atom; of an odd one by floor / p0 */
    struct tw_atom *atom;
    size_t n;
    uint32_t *job_atom;             /* [n_jobs + 1] its first entry in where */
    uint32_t *where;                /* [n] atoms in the order of jobs */
    struct tw_lines line;           /* [n]; an odd atom has 0 everywhere */
    double *low_w, *high_w, *cap_w; /* [n] limits of every atom, and what it was given */
    uint32_t *odd;                  /* [n_odd] ascending */
    size_t n_odd;
    double level_low, level_high;
};

TW_MUST_USE
enum tw_err tw_nest_build(struct tw_nest *s, const struct tw_tree *t, enum tw_policy policy,
                          struct tw_arena *arena, struct tw_why *why);
/* Set line and limits from the atom's weight and x_low .. x_high. */
void tw_nest_open(struct tw_nest *s, size_t a);
/* Hold an atom at a power. */
void tw_nest_hold(struct tw_nest *s, size_t a, double power_w);
/* Fill every node from the leaves up: cap_w and level. */
void tw_nest_fill(struct tw_nest *s);

double tw_atom_power(const struct tw_nest *s, const struct tw_atom *a, double x);
/* The largest x that a power buys, within x_low .. x_high. */
double tw_atom_x(const struct tw_nest *s, const struct tw_atom *a, double power_w);
/* The x it wants at a price per watt, were it to run. */
double tw_atom_want(const struct tw_nest *s, const struct tw_atom *a, double price);
double tw_atom_demand(const struct tw_nest *s, const struct tw_atom *a, double price);
/* Sum of p0 of its GPUs that are above their floor beyond x: how fast its power grows there. */
double tw_atom_active(const struct tw_nest *s, const struct tw_atom *a, double x);

/* What floors need under each node, base loads included [n_nodes]; with `pauses` jobs that may be paused need
 * nothing. */
void tw_tree_need(const struct tw_tree *t, bool pauses, double *ret_need_w);
/* The range of x of a lock-step job: below its low end nothing more is saved. */
void tw_tree_range(const struct tw_tree *t, const struct tw_tree_job *j, double *ret_low, double *ret_high);
/* The same for one GPU of a job that is not in lock step. */
void tw_tree_gpu_range(const struct tw_tree_gpu *g, double *ret_low, double *ret_high);

/* Caps down to steps of the device, and what that frees given out again where it brings most per watt. */
TW_MUST_USE
enum tw_err tw_tree_step(const struct tw_tree *t, double *cap_w, const bool *paused, struct tw_arena *arena,
                         struct tw_why *why);

#endif
