/* SPDX-License-Identifier: Apache-2.0 */
/* sweepjob.h - the job that `sweep` measures: its GPUs, its progress, its process, its caps and what was found.
 *
 * A second passes with sweepjob_second; on a simulated source it is a simulated one. Whatever happens in
 * between, sweepjob_restore puts every GPU back to what was found on it. */
#ifndef TW_APP_SWEEPJOB_H
#define TW_APP_SWEEPJOB_H

#include "elastic/sweep.h"
#include "io/registry.h"
#include "sys/progress.h"
#include "sys/ticker.h"

#include <stdbool.h>
#include <sys/types.h>

#define SWEEPJOB_GPUS 64

struct sweepjob_conf {
    const char *source, *cap; /* cap NULL: written as the source writes */
    const char *job;          /* of a simulated source */
    const char *gpus;         /* UUIDs with commas; NULL: those of pid, or all */
    const char *progress_log, *pattern, *progress_socket, *unit;
    double per; /* units in one of what progress counts */
    pid_t pid;  /* 0: none */
    char **cmd; /* NULL: none */
};

struct sweepjob {
    const struct sweepjob_conf *conf;
    struct tw_device dev;
    struct tw_ticker ticker;
    bool ticking, simulated, touched; /* touched: a limit was written */
    struct tw_progress *progress;
    const struct tw_gpu_info *gpu;
    const struct tw_job_info *job;
    size_t n_gpu, n_job; /* of the source */
    struct tw_site_sample sample;
    size_t member[SWEEPJOB_GPUS], n;           /* places in gpu[] */
    double found_w[SWEEPJOB_GPUS], found_most; /* [n] */
    uint32_t number;                           /* of the simulated job */
    const char *name, *unit;
    double last_total, wanted_w, asked_s; /* wanted_w NaN: as found; asked_s: since it was asked for */
    int64_t last_us;
    pid_t child;
    bool child_ended, told_enforced;
    int child_status;
};

enum sweepjob_event { SWEEPJOB_GOES_ON, SWEEPJOB_ENDED, SWEEPJOB_SIGNAL };

/* Open everything. TW_EXIT_OK, or an exit status after one line on standard error. SIGPIPE is ignored from here
 * on. */
int sweepjob_open(struct sweepjob *j, const struct sweepjob_conf *conf);
/* Start the command, if there is one. */
int sweepjob_start(struct sweepjob *j);
void sweepjob_close(struct sweepjob *j); /* does not restore */

/* One second: *ret of the whole job. TW_OK, or an error that ends the sweep. */
TW_MUST_USE
enum tw_err sweepjob_second(struct sweepjob *j, struct tw_sweep_seen *ret, enum sweepjob_event *ret_event,
                            struct tw_why *why);
/* Ask all GPUs for cap_w; NaN: what was found. */
TW_MUST_USE
enum tw_err sweepjob_cap(struct sweepjob *j, double cap_w, struct tw_why *why);
/* Put back, read back; every GPU that fails is named on standard error. Returns how many hold again what was
 * found. */
size_t sweepjob_restore(struct sweepjob *j);
/* End the command if it runs and `stop`; wait for it. */
void sweepjob_wait(struct sweepjob *j, bool stop);

#endif
