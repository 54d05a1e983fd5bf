/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/ctl.h - the controller of a site, as a step function.
 *
 * Readings go in, a list of limits to write comes out; the runner carries them out and tells what it read back.
 * No clock, no heap, no printing: time is that of the sample, memory is the caller's arena. One turn, about
 * once a second:
 *
 *     tw_ctl_step(c, &sample);
 *     while ((n = tw_ctl_actions(c, action)) > 0)        lower limits come first
 *         for each: write it, read it back, tw_ctl_read_back or tw_ctl_refused
 *
 * What holds at every instant, whatever is lost or late (ledger.h says what a GPU is charged with):
 *
 *   1. The sum of charges does not pass the hard limit through a raise, ever.
 *   2. In a hold it does not pass (1 + over_frac) x target through a raise.
 *   3. In a hold no raise lets the last nine seconds of measured site power plus the sum of charges pass ten
 * times the target: if every GPU drew all it may in the next second, the ten-second mean would still be at or
 * below it.
 *
 * A sum of limits somewhat above the target is needed: a training job pauses for a second in every iteration,
 * so its mean draw lies a few per cent under a limit that binds (docs/adr/ has the numbers). over_frac 0
 * forbids it.
 *
 * A power event: the baseline is the mean site power of the five minutes before it, fixed in watts; the target
 * is (1 - cut) x baseline. The budget falls at ramp_down, holds for for_s, and rises at ramp_up until nothing
 * binds.
 *
 * Throughput of different jobs is added up in weighted units: tw_job_info.weight x units done. */
#ifndef TW_CTL_CTL_H
#define TW_CTL_CTL_H

#include "base/arena.h"
#include "base/err.h"
#include "ctl/ledger.h"
#include "ctl/share.h"
#include "ctl/snapshot.h"
#include "series/site.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_CTL_EVENTS 64 /* remembered: waiting, running, and the latest past */

struct tw_ctl_conf {
    enum tw_steer policy;
    bool probe; /* learn curves by short caps while no event is near */
    double probe_settle_s, probe_measure_s;
    unsigned probe_jobs;                  /* so many at a time */
    double ramp_down_w_s, ramp_up_w_s;    /* NaN: one per cent of the baseline per second */
    double hard_limit_w;                  /* of the whole site; INFINITY: none */
    double over_frac;                     /* rule 2 above */
    double goal_frac;                     /* where in the band a hold aims: share of the target */
    double band_low_frac, band_high_frac; /* what a hold is judged by */
    double safe_frac, blind_after_s;      /* ledger.h */
    void (*trace)(void *ctx, double now_s, const char *text); /* every change of state; may be NULL */
    void *trace_ctx;
};
struct tw_ctl_conf tw_ctl_conf_default(void);

struct tw_ctl_action {
    uint32_t gpu;
    double limit_w;
    enum tw_reason reason;
};

struct tw_ctl_ask {
    double cut_frac;   /* 0 .. 1 */
    double for_s;      /* of the hold, above 0 */
    double in_s;       /* from now, 0 or more */
    double baseline_w; /* NaN: measured when the event begins */
};

struct tw_ctl_event {
    uint32_t id;
    enum tw_event_state state;
    bool cancelled;
    bool infeasible; /* the target lay under what the devices can be set to: target_w is the nearest above */
    double cut_frac, for_s;
    double start_s, hold_s, end_s, done_s; /* ramp begins, hold begins, hold ends, power is back; NaN before */
    double baseline_w, target_w;
    double reached_s;          /* first time site power was at or under the target; NaN before */
    double min_frac, max_frac; /* ten-second means in the hold, of the target */
    unsigned means, means_out,
        means_free; /* how many there were, outside the band, and with jobs that wanted less */
    double lost;    /* weighted units against the uncapped references, until done */
};

struct tw_ctl;

size_t tw_ctl_bytes(size_t n_gpu, size_t n_job);
/* gpu [n_gpu] and job [n_job] are borrowed for the call. TW_EINVAL with what makes no sense, TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_ctl_init(struct tw_arena *arena, const struct tw_ctl_conf *conf, const struct tw_gpu_info *gpu,
                        size_t n_gpu, const struct tw_job_info *job, size_t n_job, struct tw_ctl **ret,
                        struct tw_why *why);

/* The limit in force on a GPU when we came; what goes back in the end. Before the first step. */
void tw_ctl_found(struct tw_ctl *c, uint32_t gpu, double limit_w);
/* For policy oracle alone: a job's true curve and reference. */
void tw_ctl_truth(struct tw_ctl *c, uint32_t job, const struct tw_curve *curve, double p0_w, double t0);

void tw_ctl_step(struct tw_ctl *c, const struct tw_site_sample *sample);
/* Between two steps, while a budget binds: only limits are thought over, by the draw of this instant, so that a
 * job that stops or comes back is noticed at once. Nothing is learnt, counted or averaged. */
void tw_ctl_glance(struct tw_ctl *c, const struct tw_site_sample *sample);
bool tw_ctl_wants_glances(const struct tw_ctl *c);
/* Limits that may be sent now, into ret [n_gpu]; they are in flight from here on. All that lowers comes in the
 * first call of a turn; raises come as soon as what was read back leaves room. 0: nothing to send. */
size_t tw_ctl_actions(struct tw_ctl *c, struct tw_ctl_action *ret);
void tw_ctl_read_back(struct tw_ctl *c, uint32_t gpu, double requested_w, double enforced_w);
void tw_ctl_refused(struct tw_ctl *c, uint32_t gpu);
/* Is a limit of this GPU in flight, so that it is worth reading back? */
bool tw_ctl_awaits(const struct tw_ctl *c, uint32_t gpu);

/* TW_EINVAL (a number out of range), TW_EINFEASIBLE (overlaps another event; or no split reaches the target:
 * why gives the nearest cut), TW_ELIMIT (TW_CTL_EVENTS wait already) */
TW_MUST_USE
enum tw_err tw_ctl_event_add(struct tw_ctl *c, const struct tw_ctl_ask *ask, uint32_t *ret_id,
                             struct tw_why *why);
/* TW_ENOENT, TW_EINVAL (over) */
TW_MUST_USE
enum tw_err tw_ctl_event_cancel(struct tw_ctl *c, uint32_t id, struct tw_why *why);
/* Oldest first; valid until the next call that takes c. */
const struct tw_ctl_event *tw_ctl_events(const struct tw_ctl *c, size_t *ret_n);

/* Stop: nothing binds any more, every limit goes back to what was found. */
void tw_ctl_leave(struct tw_ctl *c);
bool tw_ctl_has_left(const struct tw_ctl *c);       /* every GPU has its limit back */
size_t tw_ctl_not_restored(const struct tw_ctl *c); /* how many have not */

enum tw_site_state tw_ctl_state(const struct tw_ctl *c);
/* For how long nothing bound and there was nothing left to probe, in seconds: with TW_TRACK_LONG of it an event
 * has a clean baseline. */
double tw_ctl_rested_s(const struct tw_ctl *c);
/* The deepest cut of the power now that the devices can be set to. NaN before the first reading. */
double tw_ctl_deepest_cut(const struct tw_ctl *c);
/* What probing cost so far, weighted units, and for how many seconds any job was probed. */
double tw_ctl_probe_lost(const struct tw_ctl *c, double *ret_seconds);
double tw_ctl_site_w(const struct tw_ctl *c);
double tw_ctl_charge_w(const struct tw_ctl *c); /* sum over GPUs */
/* The sum of charges that raises may reach now: the smallest of rules 1 to 3. INFINITY: no bound. */
double tw_ctl_room_w(const struct tw_ctl *c);

/* Fill gpu [n_gpu], job [n_job] and the site's numbers. Forecasts, speed, wall time, seq, twins and skill are
 * the runner's and stay as they are. */
void tw_ctl_snapshot(const struct tw_ctl *c, struct tw_snapshot *snap);

#endif
