/* SPDX-License-Identifier: Apache-2.0 */
/* run/run.h - a site that runs: the loop that counts, its twins, the snapshot that others see.
 *
 * Where the source is simulated, the same site with the same seed can run beside it under other policies
 * ("twins": equal weight, the oracle, and no caps at all). Their events have the baseline and the target of the
 * first, in watts, so that all deliver the same; what each lost is counted against the one without caps, in
 * weighted units, from the beginning of the event until power is back everywhere. Twins exist for the
 * comparison only; nothing the first does depends on them.
 *
 * tw_run_turn is called by the thread that owns the run, about once a second of site time. Events may be asked
 * for by any thread. After tw_run_open a turn allocates nothing. */
#ifndef TW_RUN_RUN_H
#define TW_RUN_RUN_H

#include "base/err.h"
#include "ctl/ctl.h"
#include "ctl/snapshot.h"
#include "run/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_run_conf {
    const char *source;        /* "sim:seed=1" */
    struct tw_ctl_conf ctl;    /* of the first loop; the twins differ in policy alone */
    bool twin[TW_STEER_COUNT]; /* policies to run beside it; only for a simulated source */
    double speed;              /* site seconds per second, shown in the snapshot; 1 for a real site */
};

/* What each policy came to in the last event that is over everywhere, or so far in the one that runs. NaN: not
 * run. */
struct tw_run_result {
    uint32_t event; /* id of the first loop's event; 0: there was none */
    bool over;
    double lost[TW_STEER_COUNT]; /* weighted units, against policy none */
    double gap_recovered;        /* (equal - curve) / (equal - oracle) of what was lost */
    double saved;                /* equal - curve */
    double done_none;            /* what policy none did in that time, for scale */
    struct tw_ctl_event detail[TW_STEER_COUNT];
};

struct tw_run;

/* TW_EINVAL (twins of a source that is not simulated, oracle without truth), and what tw_loop_open says. */
TW_MUST_USE
enum tw_err tw_run_open(const struct tw_run_conf *conf, struct tw_run **ret, struct tw_why *why);
void tw_run_close(struct tw_run *run); /* NULL is fine; does not restore limits */

/* One turn of the first loop and its twins; dt_s of site time go by. */
TW_MUST_USE
enum tw_err tw_run_turn(struct tw_run *run, double dt_s, struct tw_why *why);
TW_MUST_USE
enum tw_err tw_run_restore(struct tw_run *run, struct tw_why *why);

/* What held after the last turn; the run's own, for the thread that turns it. */
const struct tw_snapshot *tw_run_snapshot(const struct tw_run *run);
const struct tw_run_result *tw_run_result(const struct tw_run *run);
const struct tw_loop *tw_run_loop(const struct tw_run *run, enum tw_steer policy); /* NULL: not run */

/* Has every loop learnt what it can, and been left alone for the five minutes of a baseline? The moment for an
 * event in a simulation that wants a clean one. */
bool tw_run_is_rested(const struct tw_run *run);

/* Any thread. As tw_ctl_event_add and kin. */
TW_MUST_USE
enum tw_err tw_run_event_add(struct tw_run *run, const struct tw_ctl_ask *ask, uint32_t *ret_id,
                             struct tw_why *why);
TW_MUST_USE
enum tw_err tw_run_event_cancel(struct tw_run *run, uint32_t id, struct tw_why *why);
/* The latest into ret[room], oldest first; how many were written. */
size_t tw_run_event_list(struct tw_run *run, struct tw_ctl_event *ret, size_t room);

#endif
