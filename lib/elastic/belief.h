/* SPDX-License-Identifier: Apache-2.0 */
/* elastic/belief.h - what is known of a job's curve from a few noisy points.
 *
 * A posterior over the exp family's two numbers, theta = (ln k, ln loss at a cut of TW_BELIEF_CUT), with a
 * normal prior taken from public sweeps. The mode is found by damped Gauss-Newton, its curvature gives the
 * covariance, and nine weighted curves (Gauss-Hermite nodes, three by three) stand for it: every mean and
 * deviation below is over them. Points are kept in a ring of TW_BELIEF_POINTS, so what is old is forgotten.
 *
 * In a loop:
 *
 *     struct tw_belief b;
 *     tw_belief_init(&b, NULL);
 *     ...a cap has settled, 20 s of samples taken, P_0 and T_0 from the uncapped minutes before...
 *     tw_belief_add(&b, p_w / p0_w, tok_s / t0, sigma_x, sigma_t);
 *     struct tw_curve c = tw_belief_curve(&b);          the job's curve for tw_alloc_job.curve
 *     double stray = tw_belief_stray(&b, 0.7);          for tw_alloc_job.stray_frac
 *     tw_curve_slope(&c, x) * t0 / p0_w;                units/s lost per watt taken at x
 *
 * tw_belief_add costs a few microseconds. A struct is 1.5 kB without pointers. */
#ifndef TW_ELASTIC_BELIEF_H
#define TW_ELASTIC_BELIEF_H

#include "elastic/curve.h"

#include <stddef.h>

#define TW_BELIEF_POINTS 24
#define TW_BELIEF_CURVES 9
#define TW_BELIEF_CUT 0.3
#define TW_BELIEF_MISFIT                                                                                       \
    0.01 /* of t: what two parameters leave open of a real curve (0.7 to 1.4 % on public sweeps) */

struct tw_belief_prior {
    double mean[2], sd[2]; /* of ln k and ln loss(TW_BELIEF_CUT) */
};
extern const struct tw_belief_prior tw_belief_public; /* belief.c says from which jobs */

struct tw_belief {
    struct tw_belief_prior prior;
    unsigned n, next;
    double x[TW_BELIEF_POINTS], t[TW_BELIEF_POINTS], sigma_x[TW_BELIEF_POINTS], sigma_t[TW_BELIEF_POINTS];
    double mode[2], cov[3]; /* theta, and its covariance as 00, 01, 11 */
    double k[TW_BELIEF_CURVES], b[TW_BELIEF_CURVES], weight[TW_BELIEF_CURVES];
};

void tw_belief_init(struct tw_belief *b, const struct tw_belief_prior *prior); /* NULL: tw_belief_public */

/* One measured point: x = P / P_0 and t = T / T_0 with standard deviations that include the reference's own. A
 * point at x >= 1, or with a value that is not finite or a sigma that is not above 0, is left out: TW_EINVAL.
 */
TW_MUST_USE
enum tw_err tw_belief_add(struct tw_belief *b, double x, double t, double sigma_x, double sigma_t);

/* Expected throughput at x, and its standard deviation (ret_sd may be NULL). */
double tw_belief_value(const struct tw_belief *b, double x, double *ret_sd);
/* Expected dt/dx at x, and its standard deviation. */
double tw_belief_slope(const struct tw_belief *b, double x, double *ret_sd);
/* The exp curve nearest to the expected curve between x = 0.5 and 1: what an allocator maximises. */
struct tw_curve tw_belief_curve(const struct tw_belief *b);

/* How far from equal weight this job may be moved, as a share of P_0: TW_STRAY_GAIN over the relative
 * uncertainty of the slope at x, at most 1. With the prior alone a few per cent; with two good probes about a
 * fifth. */
#define TW_STRAY_GAIN 0.05
double tw_belief_stray(const struct tw_belief *b, double x);

#endif
