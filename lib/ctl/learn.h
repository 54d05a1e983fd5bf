/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/learn.h - what a job draws and does uncapped, and how it takes a cap: learnt while it runs.
 *
 * Reference: P_0 and T_0 are means over the last TW_LEARN_WINDOW uncapped seconds at work. They stand still
 * while a cap binds.
 *
 * At work: a training job makes no progress while it evaluates or writes a checkpoint, and no cap is to blame
 * for that. A stretch of TW_LEARN_PAUSE_S and more without progress is such a pause, and left out from its
 * first second; a shorter one belongs to an iteration and counts.
 *
 * Probe: a cap at each of tw_learn_cut[] in turn; one is enough, since every hold adds points for nothing.
 * After a cap is in force, settle_s are thrown away and measure_s at work are measured. Where the progress
 * itself shows iterations that are long against a second, the window is trimmed to whole ones. Each point goes
 * into the job's belief (elastic/belief.h) with the noise seen between parts of the window.
 *
 * Nothing here knows how the job is made: watts and progress in, a curve with its uncertainty out. */
#ifndef TW_CTL_LEARN_H
#define TW_CTL_LEARN_H

#include "ctl/snapshot.h"
#include "elastic/belief.h"

#include <stdbool.h>
#include <stdint.h>

#define TW_LEARN_WINDOW 300
#define TW_LEARN_MIN_S 80 /* a reference from less than this is none yet */
#define TW_LEARN_PAUSE_S 8
#define TW_LEARN_PROBE_MAX 128 /* seconds of a probe that are kept */
#define TW_LEARN_CUTS 1
#define TW_LEARN_HOLD_S 20 /* seconds of a hold that make one point */
#define TW_LEARN_TRIES 3   /* probe seconds spent on one cut, in windows, before it is given up */

extern const double tw_learn_cut[TW_LEARN_CUTS];

/* One second of a job. */
struct tw_learn_seen {
    double dt_s;
    double power_w; /* NaN when not every GPU was read */
    double units;   /* done in dt_s; NaN unknown */
    bool capped;    /* a cap of ours is in force or on its way */
};

struct tw_learn_second {
    float power_w, rate; /* rate in units/s; NaN: left out */
};

struct tw_learn {
    struct tw_learn_second second[TW_LEARN_WINDOW]; /* a ring */
    unsigned n, next;
    double most;       /* highest rate seen */
    unsigned still_s;  /* seconds without progress up to now */
    double p0_w, t0;   /* NaN until known */
    double sd_x, sd_t; /* of the reference, relative */

    bool probing;
    unsigned level;    /* next cut to probe; TW_LEARN_CUTS when done */
    double in_force_s; /* since the probe's cap was confirmed; NaN before */
    unsigned spent_s;  /* under this cut's cap */
    struct tw_learn_second probe[TW_LEARN_PROBE_MAX];
    unsigned n_probe;
    double lost_units; /* what probing cost so far, in the job's own units */

    struct tw_belief belief;
    unsigned n_points;
    float point_x[TW_SNAP_POINTS], point_t[TW_SNAP_POINTS];
};

void tw_learn_init(struct tw_learn *l);
/* Every second, whatever the job is under. */
void tw_learn_push(struct tw_learn *l, const struct tw_learn_seen *s);
bool tw_learn_has_reference(const struct tw_learn *l);

/* Is there a cut left to probe? */
bool tw_learn_is_curious(const struct tw_learn *l);
void tw_learn_probe_start(struct tw_learn *l);
/* The draw of the whole job that the probe wants, watts. */
double tw_learn_probe_w(const struct tw_learn *l);
/* One second under the probe's cap, after tw_learn_push. `in_force`: every GPU's cap has been read back.
 * Returns true when this cut is done with, measured or given up; the next one is then in tw_learn_probe_w while
 * tw_learn_is_curious. */
bool tw_learn_probe_push(struct tw_learn *l, const struct tw_learn_seen *s, bool in_force, double settle_s,
                         double measure_s);
/* One second of a hold, after tw_learn_push: its limits cap the job anyway, so that what it draws and does
 * under them is a point of its curve that costs nothing. `held`: in the hold, and a cap in force. True when a
 * point was added. */
bool tw_learn_hold_push(struct tw_learn *l, const struct tw_learn_seen *s, bool held);
void tw_learn_probe_stop(struct tw_learn *l);

#endif
