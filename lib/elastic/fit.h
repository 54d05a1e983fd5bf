/* SPDX-License-Identifier: Apache-2.0 */
/* elastic/fit.h - curves from measured points.
 *
 * Points are relative, x [n] = P_i / P_0 and t [n] = T_i / T_0, in any order, the uncapped one not among them
 * (it is (1, 1) by definition). Noise is kept: points above 1 or out of order pull on the fit like any other. A
 * point with x >= 1 says nothing of a cut and is left out. At most TW_FIT_POINTS are used: give the mean of
 * repeats.
 *
 * Two fits are made and the evidence chooses. exp has two parameters and is fitted robustly (Huber weights).
 * The concave regression is the least-squares monotone concave curve with knots at measured points: loss(x) = p
 * (1 - x) + sum_j q_j max(0, x_j - x) with p, q >= 0, an NNLS (Lawson and Hanson 1974). It costs one parameter
 * per knot it keeps, so Akaike's criterion with the run-to-run noise as the known variance prefers exp unless
 * the points show, beyond that noise, a bend that exp cannot make. */
#ifndef TW_ELASTIC_FIT_H
#define TW_ELASTIC_FIT_H

#include "elastic/curve.h"

#include <stddef.h>

#define TW_FIT_POINTS 512

/* Published run-to-run variation of power and of throughput (arXiv 2609.11542), of every point, uncapped
 * included. */
#define TW_RUN_SD_POWER 0.004
#define TW_RUN_SD_THROUGHPUT 0.005

struct tw_fit {
    struct tw_curve curve;
    double rmse; /* of t, over the points used; NaN when there was none */
    unsigned points;
    unsigned params;
    double aic; /* chi^2 + 2 params, by the run-to-run noise */
};

/* exp alone. No point below x = 1: the curve of the prior (elastic/belief.h); one such point: through it, with
 * the prior's bend. */
struct tw_fit tw_fit_exp(const double *x, const double *t, size_t n);
/* The concave regression alone; n >= 1 with a point below 1, else as tw_fit_exp. */
struct tw_fit tw_fit_concave(const double *x, const double *t, size_t n);
/* Both, and the better of the two by evidence. ret_exp may be NULL. */
struct tw_fit tw_fit_best(const double *x, const double *t, size_t n, struct tw_fit *ret_exp);

#endif
