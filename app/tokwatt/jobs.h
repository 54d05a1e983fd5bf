/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.h - measured jobs from a file of points, as `pfi` and `allocate` take them: chosen by set and name,
 * relative to their uncapped reference, with fitted curves. */
#ifndef TW_APP_JOBS_H
#define TW_APP_JOBS_H

#include "codec/points.h"
#include "elastic/fit.h"
#include "elastic/measured.h"

#include <argp.h>
#include <stdbool.h>

/* Which jobs; all texts are comma lists or NULL. A job is named by its name, or the name before "@" of a second
 * knob. */
struct jobs_choice {
    const char *path, *sets, *drop, *only;
    enum tw_points_aggregate aggregate;
};

struct measured_job {
    const struct tw_points_job *src;
    const char *reason; /* why nothing can be said of it; NULL when all is well */
    double p0_w, t0;    /* of one GPU, and of the job */
    size_t n;           /* capped points; arrays by setting, the largest first */
    const double *power_w, *rate, *x, *t;
    const uint32_t *line;
    struct tw_measured measured;
    struct tw_fit exp, best; /* when reason is NULL */
    bool below_others;       /* its largest setting is not the largest of its set: said as a warning */
};

struct jobs {
    struct tw_points points;
    struct measured_job *job; /* [n] */
    size_t n;
    char *text;   /* the file, while it is read */
    void *memory; /* arena of points */
    void *arrays; /* arena of job and its arrays */
};

/* The options that choose jobs, for a verb's own argp table to name as a child; input is the struct
 * jobs_choice. */
extern const struct argp jobs_argp;

/* Read, choose, fit. A job that was asked for by name (only) must be usable. TW_EXIT_OK, or TW_EXIT_USAGE after
 * one line on standard error. */
int jobs_read(const struct jobs_choice *choice, struct jobs *ret);
void jobs_done(struct jobs *j);

/* A point that is noise: above the uncapped throughput, or more throughput than a point with a larger setting.
 * NULL when it is neither. */
const char *jobs_noise(const struct measured_job *j, size_t i);

#endif
