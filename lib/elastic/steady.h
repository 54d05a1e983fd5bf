/* SPDX-License-Identifier: Apache-2.0 */
/* elastic/steady.h - mean power and throughput of a job at work, from seconds of its telemetry.
 *
 * A job has a rhythm: an iteration computes, then exchanges at low power; now and then it stops making progress
 * to evaluate or to save a checkpoint; and after a new cap, or at its start, it takes a while to be steady. A
 * plain mean over a window would depend on where in all this the window happens to begin and end.
 *
 *   silence   Progress that is reported in steps (a log line every 10 s) counts evenly over the time since the
 *             report before. A silence of TW_STEADY_PAUSE_S, or of two usual reports if that is longer, is a
 *             pause and is left out with the broken reports at its ends: warm-up before the first progress,
 *             else an evaluation, or a checkpoint when the draw meanwhile is below TW_STEADY_CHECKPOINT of
 *             that at work.
 *   settling  The first seconds are dropped as far as that lowers the standard error of what is left (the
 *             marginal standard error rule, White 1997), of power or of rate, whichever wants more.
 *   rhythm    The period is sought in the autocorrelation of power. The mean is then that over windows which
 *             begin at every phase of whole iterations, which is one mean with ramps of whole iterations at
 *             its ends: a rhythm of that period drops out.
 *   errors    From batches of whole iterations, by Student's t: a deviation is given such that 1.645 of it is
 *             a 90 % interval. */
#ifndef TW_ELASTIC_STEADY_H
#define TW_ELASTIC_STEADY_H

#include <stdbool.h>
#include <stddef.h>

#define TW_STEADY_MAX 1800 /* seconds of one window */
#define TW_STEADY_MIN 12   /* seconds at work without which there is no mean */
#define TW_STEADY_PAUSE_S 8
#define TW_STEADY_CHECKPOINT 0.3

struct tw_steady_second {
    float power_w; /* of the whole job; NaN: not read, the second before stands in */
    float units;   /* done in that second */
};

struct tw_steady {
    double power_w, rate, sd_power_w, sd_rate; /* sd: standard errors of the means */
    double work_s;                             /* seconds that the means rest on */
    double settle_s;                           /* at work, dropped before it was steady */
    bool settled;                        /* false: half of the seconds were dropped and it may not be enough */
    double period_s;                     /* of the rhythm; NaN: none seen */
    double report_s;                     /* usually between two reports of progress */
    double warm_s, eval_s, checkpoint_s; /* left out */
};

struct tw_steady_work { /* scratch */
    double power[TW_STEADY_MAX], rate[TW_STEADY_MAX], sorted[TW_STEADY_MAX];
};

/* Of second [n], n <= TW_STEADY_MAX, all under one cap. before_it: the same job uncapped, whose rhythm and
 * whose reports are known; NULL: this is it. False when fewer than TW_STEADY_MIN seconds at work are among
 * them; *ret then has only what was left out. */
bool tw_steady_of(const struct tw_steady_second *second, size_t n, const struct tw_steady *before_it,
                  struct tw_steady_work *work, struct tw_steady *ret);

#endif
