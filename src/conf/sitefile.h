/* SPDX-License-Identifier: Apache-2.0 */
/* conf/sitefile.h - the site file: a tree of power limits, the jobs on it, and what cannot be shed.
 *
 *     tree:  [{name: hall1, parent: site, limit_w: 900000}, ...]
 *     jobs:
 *       - name: llama-pt
 *         gpus: [{uuid: GPU-0, node: rack3, floor_w: 200, ceiling_w: 700, step_w: 1, p0_w: 675}, ...]
 *         p0_w: 5400                                  # uncapped draw of the job
 *         t0: 41000                                   # uncapped throughput
 *         unit: tokens/s                              # the same for every job
 *         curve: {points: [[1.0, 1.0], [0.8, 0.93]]}  # or {k: 3.1, x0: 0.2}, or left out
 *         sla: {slowdown_frac: 0.05, horizon: 24h, event: 3h}
 *         weight: 1
 *         lockstep: true
 *         pausable: false
 *     base_load: [{node: rack3, watts: 4000}]
 *
 * The root is the node without a parent; when every node has one, it is called "site" and has no limit of its
 * own. step_w (0), a GPU's p0_w (an equal part of the job's), unit (tokens/s), curve, sla, weight (1), lockstep
 * (true), pausable (false) and base_load may be left out. Unknown keys are refused. Numbers are watts and bare:
 * "900 kW" under limit_w is refused.
 *
 * Every refusal is TW_EPARSE (YAML, keys, types; with the line) or TW_EINVAL (sense) and starts with where:
 * "site.yaml: jobs[2].gpus[0].node: ...". */
#ifndef TW_CONF_SITEFILE_H
#define TW_CONF_SITEFILE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_SITE_BYTES (256U << 20) /* a larger file is refused */
#define TW_SITE_GPUS 2000000U

/* Texts are as written; the numbers beside them are what tw_site_open made of those, NaN where one that may be
 * left out was. */
struct tw_site_node {
    char *name, *parent; /* parent NULL: the root */
    char *limit;
    double limit_w;
};

struct tw_site_gpu {
    char *uuid, *node;
    char *floor, *ceiling, *step, *p0;
    double floor_w, ceiling_w, step_w, p0_w; /* step_w 0 and p0_w an equal part where left out */
};

struct tw_site_curve {
    char ***points; /* [n_points][2] */
    unsigned n_points;
    char *k_text, *x0_text;
    double *x, *t; /* [n_points] shares of P_0 and T_0 */
    double k, x0;
};

struct tw_site_sla {
    char *slowdown, *horizon, *event;
    double slowdown_frac, horizon_s, event_s;
};

struct tw_site_job {
    char *name, *unit;
    struct tw_site_gpu *gpus;
    unsigned n_gpus;
    char *p0, *t0_text, *weight_text;
    double p0_w, t0, weight;
    struct tw_site_curve *curve;
    struct tw_site_sla *sla;
    bool *lockstep, *pausable; /* NULL: left out */
};

struct tw_site_load {
    char *node, *text;
    double watts;
};

struct tw_site_file {
    struct tw_site_node *tree;
    unsigned n_tree;
    struct tw_site_job *jobs;
    unsigned n_jobs;
    struct tw_site_load *base_load;
    unsigned n_base_load;
};

/* A node with its place in the tree: node 0 is the root, parents come before children. */
struct tw_site_place {
    const char *name;
    uint32_t parent;
    double limit_w; /* INFINITY for none */
    double base_w;
};

struct tw_site {
    struct tw_site_file *file;
    struct tw_site_place *place; /* [n_places] */
    uint32_t n_places;
    uint32_t *gpu_place; /* [n_gpus] of the jobs' GPUs, in the order of the file */
    uint32_t n_gpus;
    void *memory;
};

/* Does a text look like a site file (and not like a table of points)? Its first words decide. */
bool tw_site_is(const char *text, size_t n);

/* Read and check; what is returned is freed with tw_site_done. TW_ENOMEM, TW_ELIMIT besides the above. */
TW_MUST_USE
enum tw_err tw_site_open(const char *path, struct tw_site *ret, struct tw_why *why);
void tw_site_done(struct tw_site *s);

#endif
