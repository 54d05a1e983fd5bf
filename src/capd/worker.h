/* SPDX-License-Identifier: Apache-2.0 */
/* capd/worker.h - one thread per GPU that talks to its device, so that a slow or stuck GPU delays only itself.
 *
 * A worker opens its own handle of the back end on its first job and again after repeated failures (the driver
 * may have been reloaded, a device reset). It takes one job at a time; one that has not begun is replaced by a
 * newer. Finished jobs are fetched by the owner, who is woken through an eventfd. */
#ifndef TW_CAPD_WORKER_H
#define TW_CAPD_WORKER_H

#include "base/err.h"
#include "port/cap.h"

#include <stdbool.h>
#include <stdint.h>

enum tw_job_kind { TW_JOB_NONE, TW_JOB_READ, TW_JOB_WRITE, TW_JOB_LOWER };

struct tw_job {
    enum tw_job_kind kind;
    double watts;  /* WRITE: the limit; LOWER: written only if the limit requested now lies above it */
    unsigned turn; /* the owner's number, handed back */
};

struct tw_job_result {
    struct tw_job job;
    enum tw_err err;                /* of the device; OK also when it read back something else than asked */
    double requested_w, enforced_w; /* read back; NaN on failure */
    /* boot clock: taken up, the write returned (0: none was made), the last call returned */
    int64_t begun_us, issued_us, read_us;
    struct tw_why why;
};

/* How a worker reaches its device: opens source and cap together (the privileged program's list of back ends).
 */
struct tw_worker_device {
    const struct tw_cap_ops *ops;
    enum tw_err (*open)(void *ctx, struct tw_cap **ret, struct tw_why *why);
    void *ctx;
};

struct tw_worker;

TW_MUST_USE
enum tw_err tw_worker_new(const struct tw_worker_device *dev, const char *uuid, int wake_fd,
                          struct tw_worker **ret, struct tw_why *why);
/* Ends the thread if it is idle and returns true; a thread stuck in its driver is left behind, and only the end
 * of the process frees it. NULL is fine. */
bool tw_worker_free(struct tw_worker *w);
void tw_worker_give(struct tw_worker *w, struct tw_job job);
bool tw_worker_take(struct tw_worker *w, struct tw_job_result *ret); /* false: nothing finished */
bool tw_worker_is_busy(struct tw_worker *w,
                       int64_t *ret_begun_us); /* begun_us of the running job, 0 if waiting */

#endif
