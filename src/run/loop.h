/* SPDX-License-Identifier: Apache-2.0 */
/* run/loop.h - one closed loop: a device that is read and written, and the controller between.
 *
 * Limits are written and read back here and nowhere else. A turn reads everything, lets the controller decide,
 * sends what lowers, reads it back, and sends what may be raised now. A simulated device's time runs on by dt_s
 * during the turn, a tenth of a second of it between a write and its reading back. After tw_loop_open a turn
 * allocates nothing. One thread. */
#ifndef TW_RUN_LOOP_H
#define TW_RUN_LOOP_H

#include "base/err.h"
#include "ctl/ctl.h"
#include "io/registry.h"

#include <stdbool.h>
#include <stddef.h>

struct tw_loop {
    struct tw_device device;
    const struct tw_gpu_info *gpu; /* [n_gpu], the device's own */
    const struct tw_job_info *job; /* [n_job] */
    size_t n_gpu, n_job;
    struct tw_site_sample sample; /* of the last turn */
    struct tw_ctl *ctl;
    struct tw_ctl_action *action; /* [n_gpu] */
    void *mem;
    size_t watch; /* next GPU whose limit is read back although nothing is in flight */
    unsigned long writes, refusals;
};

/* source: "sim:seed=1" (io/registry.h). Reads the limits in force first; they are what tw_loop_close puts back.
 * TW_EUNSUPPORTED: the back end cannot write limits and the policy needs it. */
TW_MUST_USE
enum tw_err tw_loop_open(struct tw_loop *ret, const char *source, const struct tw_ctl_conf *conf,
                         struct tw_why *why);
void tw_loop_close(struct tw_loop *loop); /* NULL and zeroed are fine; does not write */

/* dt_s: site time until the next turn. TW_EIO and the like when the source is gone as a whole. */
TW_MUST_USE
enum tw_err tw_loop_turn(struct tw_loop *loop, double dt_s, struct tw_why *why);

/* Put every limit back that is ours, past those that fail. TW_EIO: some could not be, why says how many and
 * names one. */
TW_MUST_USE
enum tw_err tw_loop_restore(struct tw_loop *loop, struct tw_why *why);

/* Weighted units done since the site was opened (tw_job_info.weight x total). */
double tw_loop_total(const struct tw_loop *loop);
bool tw_loop_is_simulated(const struct tw_loop *loop);

#endif
