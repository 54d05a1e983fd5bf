/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ctl/ctl.h share. */
#ifndef TW_CTL_CTL_INT_H
#define TW_CTL_CTL_INT_H

#include "ctl/ctl.h"
#include "ctl/learn.h"
#include "ctl/track.h"

#define TW_SETTLE_S                                                                                            \
    3.0 /* from the end of the ramp to the beginning of the hold: power follows limits a little late */
#define TW_JOB_RECENT 4 /* seconds over which a dip is told from a pause inside an iteration */

#define TW_DIP_ROOM 1.12 /* limit over draw of a job that has stopped: a return shows, and harms nobody */

/* How a capped job draws. */
enum tw_job_draw {
    TW_JOB_PUSHES, /* as much as its cap lets it */
    TW_JOB_LOW, /* less, since a moment: the pause of an iteration, or the beginning of a stop. Keeps its limit
                 */
    TW_JOB_STOPPED /* less, for longer: a checkpoint, an evaluation, no requests. Its limit is lent */
};

struct tw_ctl_job {
    struct tw_job_info info;
    struct tw_learn learn;
    struct tw_curve curve; /* of `learn`, or the truth */
    bool has_truth;
    size_t first, n; /* its GPUs: member[first .. first + n) */

    double low_sum_w, high_sum_w; /* what the limits of its live GPUs can be */
    double draw_w, cap_sum_w;     /* sums over its GPUs that can be moved ("live"); limits as read back */
    double now_w;                 /* draw at this instant, where the source has that */
    double follow_w;              /* sum of what their draw can have followed by now */
    size_t n_live;
    double total, units, rate;  /* last total; done in the last turn; per second; NaN unknown */
    double util[TW_JOB_RECENT]; /* draw over limits, newest first */
    enum tw_job_draw drawing;
    double dip_w;        /* draw in the pauses of its iterations, learnt; NaN unknown */
    double low_w, low_s; /* lowest draw of the dip it is in, and since when; NaN: in none */
    unsigned low_looks;  /* glances in a row at which it was LOW */
    double bind_frac;    /* draw over limits while it pushes against them; the pauses of iterations left out */
    double mean_frac; /* the same with the pauses of iterations: mean draw over limits while it does not stop */
    double share_w;   /* draw meant for it */
    double want_cap_w; /* limit of each of its GPUs; NaN: as found */
    enum tw_reason reason;
    double lost_units; /* since the event began */
};

struct tw_ctl {
    struct tw_ctl_conf conf;
    struct tw_ledger ledger;
    struct tw_gpu_info *gpu;    /* [n_gpu] */
    struct tw_ctl_job *job;     /* [n_job] */
    struct tw_alloc_job *share; /* [n_job] what the split is told */
    double *share_w;            /* [n_job] what it answers */
    struct tw_arena scratch;
    uint32_t *member;       /* [n_gpu] GPUs by job; those of no job at the end */
    double *want_w;         /* [n_gpu] limit; NaN: as found */
    enum tw_reason *reason; /* [n_gpu] */
    size_t n_gpu, n_job, n_member;

    double now_s, dt_s;
    unsigned long turns;
    enum tw_site_state state;
    double base_w, gpu_w, site_w;
    unsigned stale;
    struct tw_track track;

    struct tw_ctl_event event[TW_CTL_EVENTS]; /* by id, oldest first */
    size_t n_event;
    uint32_t next_id;
    struct tw_ctl_event *now; /* the one that runs; NULL */
    struct tw_ramp ramp;
    struct tw_band band;
    struct tw_track wanted; /* site watts if no limit of ours bound, second by second */
    double want_sum_w;      /* of the looks of this second */
    unsigned want_looks;
    double trim_w; /* what measured power says must be added to the draw meant */
    double probed_s, rested_s;
};

/* The event list (ctl_event.c). */
struct tw_ctl_event *tw_ctl_event_due(struct tw_ctl *c); /* the one whose time has come, or NULL */
double tw_ctl_event_next_s(const struct tw_ctl *c);      /* when the next waiting one starts; INFINITY: none */
double tw_ctl_floor_w(const struct tw_ctl *c); /* site power with every limit at its lowest, at most */
double tw_ctl_ramp_rate(double conf_w_s, double baseline_w);

/* Energy over the last `seconds` of a hold, site watts x seconds; seconds before the hold count as on target.
 */
double tw_ctl_past(const struct tw_ctl *c, size_t seconds);
double tw_ctl_want(const struct tw_ctl *c, size_t i); /* limit that GPU i is to have */

/* What every limit shall be, from what is known (decide.c): fills want_w and reason. */
void tw_ctl_decide(struct tw_ctl *c);
/* Site watts if no limit of ours bound: a job that pushes would draw what it did uncapped, another what it
 * draws.
 */
double tw_ctl_wanted_w(const struct tw_ctl *c);
/* Once a second, before it: learn from measured power by how much the draw meant is missed. */
void tw_ctl_correct(struct tw_ctl *c);

#endif
