/* SPDX-License-Identifier: Apache-2.0 */
/* elastic/prior.h - what other jobs say of a job that was never swept, and what probes add.
 *
 * Everything is said of v(d) = ln(slowdown(d) / d), where slowdown = T_0 / T - 1 at a cut of d. A job spends a
 * share c of its time waiting for the SM clock, and 1 - c for memory and network, whose clocks a cap leaves
 * alone; so slowdown = c (f_0 / f - 1), where the clock f that a share of power buys is the board's: jobs of a
 * board differ by a factor, that is by a constant in v, which fades as the idle draw comes near. v of job j is
 *
 *     v_j(d) = all(d) + board(d) + kind(d) + use_j (use(d) + use_on_board(d)) + own_j(d) + noise
 *
 * where `use` is what the uncapped run tells: the share of its board's limit that the job draws. Every term is
 * a normal process over d, so what all known jobs say together is one linear system, and the posterior is
 * exact. A model with many measured variants on one board counts as one job.
 *
 *   tw_prior_digest   once: each known job's points as a 9 x 9 matrix and a vector
 *   tw_prior_fit      the system of all jobs but those left out; a few milliseconds for 300 jobs
 *   tw_prior_know     a struct tw_known for a job by its board, kind and use
 *   tw_known_add      a measured point; order does not matter
 *   tw_known_curve    the expected curve made concave, for tw_alloc_job.curve
 *
 * Memory is the caller's; what was used of an arena stays with the prior. */
#ifndef TW_ELASTIC_PRIOR_H
#define TW_ELASTIC_PRIOR_H

#include "base/arena.h"
#include "base/err.h"
#include "elastic/curve.h"

#include <stddef.h>
#include <stdint.h>

#define TW_PRIOR_KNOTS 9   /* cuts at which the terms shared between jobs are kept */
#define TW_PRIOR_GROUPS 64 /* boards, and kinds, at most */
#define TW_KNOWN_CUTS                                                                                          \
    38                     /* cuts at which a job's own posterior is kept: TW_KNOWN_STEP, 2 TW_KNOWN_STEP, ... \
                            */
#define TW_KNOWN_STEP 0.02 /* so down to a cut of 0.76; deeper points are left out */
#define TW_PRIOR_LEAST_CUT 0.02 /* shallower points say nothing but noise */

/* How far one term may go from nothing. With s = (d - .25) / .2 the covariance at cuts d, e is
 *
 *     level^2 exp(-(d - e)^2 / (2 run^2)) + tilt^2 s_d s_e + bend^2 exp(-(d - e)^2 / (2 reach^2))
 *
 * where run is the long and reach the short of the two lengths. */
struct tw_prior_term {
    double level, run, tilt, bend, reach;
};

struct tw_prior_hyper {
    double mean[TW_PRIOR_KNOTS]; /* of `all` */
    struct tw_prior_term all, board, kind, use, use_on_board, own;
    double use_mid, use_scale; /* the share of the limit that counts as 0, and as one unit */
};
/* Chosen on zeus_*, ada_*, stage_* alone by leave-one-model-out likelihood (bench/levels_tune.c). */
extern const struct tw_prior_hyper tw_prior_public;

struct tw_prior_job {
    uint32_t board, kind, model; /* numbered by the caller; board and kind below TW_PRIOR_GROUPS */
    double use_frac;             /* P_0 / board limit; NaN: unknown, counts as average */
    double noise_frac;           /* run-to-run deviation of throughput: TW_RUN_SD_THROUGHPUT or more */
    const double *x, *t;         /* [n] capped points, relative, any order */
    size_t n;
};

struct tw_prior_digest {
    double info[TW_PRIOR_KNOTS][TW_PRIOR_KNOTS], pull[TW_PRIOR_KNOTS];
};

/* Sums over one job's points; at most TW_PRIOR_POINTS of them are looked at. */
#define TW_PRIOR_POINTS 64
void tw_prior_digest(const struct tw_prior_hyper *h, const struct tw_prior_job *job,
                     struct tw_prior_digest *ret);

#define TW_LEAVE_NONE UINT32_MAX
struct tw_prior_leave {
    uint32_t model; /* no job of this model is used */
    uint32_t job;   /* nor this one, by its index */
};

struct tw_prior {
    const struct tw_prior_hyper *hyper;
    uint32_t boards, kinds;
    size_t m;       /* unknowns */
    double *factor; /* [m][m] lower Cholesky factor */
    double *weight; /* [m] posterior mean */
    size_t used;    /* jobs that it rests on */
};

size_t tw_prior_bytes(uint32_t boards, uint32_t kinds);

/* job, digest [n]. boards, kinds: one more than the largest number used. TW_EINVAL: a number out of range;
 * TW_ENOMEM: the arena is smaller than tw_prior_bytes. */
TW_MUST_USE
enum tw_err tw_prior_fit(struct tw_prior *ret, const struct tw_prior_hyper *hyper,
                         const struct tw_prior_job *job, const struct tw_prior_digest *digest, size_t n,
                         uint32_t boards, uint32_t kinds, struct tw_prior_leave leave, struct tw_arena *arena,
                         struct tw_why *why);

/* A job's v at TW_KNOWN_CUTS cuts: a plain struct of 12 kB. */
struct tw_known {
    double mean[TW_KNOWN_CUTS], cov[TW_KNOWN_CUTS][TW_KNOWN_CUTS];
};

/* scratch: arena with tw_prior_know_bytes(prior), given back. */
size_t tw_prior_know_bytes(const struct tw_prior *p);
TW_MUST_USE
enum tw_err tw_prior_know(const struct tw_prior *p, uint32_t board, uint32_t kind, double use_frac,
                          struct tw_arena *scratch, struct tw_known *ret);

/* A measured point x, t with a run-to-run deviation of throughput of noise_frac and the published one of power
 * (elastic/fit.h), the reference's own included. Returns the log density that was given to it before; 0 for a
 * point outside the cuts, which is left out. */
double tw_known_add(struct tw_known *k, double x, double t, double noise_frac);

/* The log density alone, without learning from the point. */
double tw_known_density(const struct tw_known *k, double x, double t, double noise_frac);

/* Expected loss at a cut, and its standard deviation (NULL is fine). */
double tw_known_loss(const struct tw_known *k, double cut, double *ret_sd);

/* The expected curve, made concave and never falling: knots at cuts of our own. */
struct tw_curve tw_known_curve(const struct tw_known *k);
/* What a probe at `cut` is expected to win when the job will be held near `depth`, in throughput times the time
 * that it is held: a wrong slope s moves the split by (error of s) / curvature, which costs half the squared
 * error over the curvature; a probe takes the part of the variance that it explains. Less what the probe itself
 * costs, loss(cut) * share, where share is probing time over the time that the knowledge is used. */
double tw_known_gain(const struct tw_known *k, double cut, double depth, double share);
/* The best of cuts low, low + step, .. high. */
double tw_known_probe(const struct tw_known *k, double low, double high, double step, double depth,
                      double share, double *ret_gain);

#endif
