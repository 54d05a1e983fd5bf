/* SPDX-License-Identifier: Apache-2.0 */
/* series/site.h - what a source says about GPUs and jobs: who they are, and one reading of each.
 *
 * A GPU is known by UUID and PCI address; an index is only a place in the arrays of one source. A reading has a
 * time and says whether it is new: a source that cannot read a GPU leaves its last time standing and sets fresh
 * to false. */
#ifndef TW_SERIES_SITE_H
#define TW_SERIES_SITE_H

#include "series/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_NO_JOB UINT32_MAX

struct tw_gpu_info {
    char uuid[48];
    char pci[20]; /* "" when unknown */
    char model[48];
    char node[48]; /* path in the budget tree below the site, "rack1/n03"; "" when unknown */
    uint32_t job;  /* index into the jobs of the same source, or TW_NO_JOB */
    double limit_min_w, limit_max_w, limit_default_w; /* what the device accepts, read live */
};

struct tw_gpu_sample {
    int64_t time_us;       /* when it was read: site time, microseconds (see tw_site_sample) */
    bool fresh;            /* read since the last call, and not a repeat of a slow sensor */
    float ch[TW_CH_COUNT]; /* NaN = missing */
};

struct tw_job_info {
    char name[64];
    char unit[24]; /* of throughput: "tokens/s", "samples/s" */
    bool lockstep; /* synchronous: its slowest GPU sets the speed */
    double weight; /* worth of one unit against that of other jobs; 1 = plain */
};

struct tw_job_sample {
    bool fresh;
    double total;      /* units done since the job began; NaN unknown */
    double throughput; /* units per second over the time since the last reading; NaN unknown */
};

/* One turn: everything that a source knows now. Arrays have the lengths that describe() gave. */
struct tw_site_sample {
    int64_t now_us;            /* boot clock of a real site, simulated time of a simulated one */
    struct tw_gpu_sample *gpu; /* [n_gpu] */
    struct tw_job_sample *job; /* [n_job] */
    double base_w;             /* power of the site outside its GPUs, or 0 */
};

#endif
