/* SPDX-License-Identifier: Apache-2.0 */
/* known.h - all measured jobs of a file as what a prior learns from (elastic/prior.h): numbered by board, kind
 * and model.
 *
 * A board is a GPU model with the knob it was swept by (a clock sweep is not a cap sweep). The model of a job
 * is read off its name by the rules of the public sets (known.c), so that variants and copies count as
 * siblings: when in doubt two jobs are of one model. */
#ifndef TW_APP_KNOWN_H
#define TW_APP_KNOWN_H

#include "elastic/prior.h"
#include "tokwatt/jobs.h"

#define KNOWN_MAX 5000

struct known {
    struct jobs jobs;
    struct tw_prior_job *job;       /* [n] one for each of jobs.job that has a capped point */
    const struct measured_job **of; /* [n] */
    size_t n;
    uint32_t boards, kinds, models;
    struct tw_prior_digest *digest; /* [n] */
    void *memory;
};

/* Read, number, digest. Exit status as jobs_read. */
int known_read(const struct jobs_choice *choice, const struct tw_prior_hyper *hyper, struct known *ret);
void known_done(struct known *k);

/* The same numbers for a job that may be of another reading of the same file: its index, or n. */
size_t known_find(const struct known *k, const struct measured_job *m);

/* Model of a job, as a part of its name or a text in buf. */
void known_model(const char *set, const char *job, char *buf, size_t size);

#endif
