/* SPDX-License-Identifier: Apache-2.0 */
/* elastic/curve.h - what a job's throughput is at a share of its own power.
 *
 * x = P / P_0 and t = T / T_0, where P_0 and T_0 are the job's own uncapped draw and throughput (not the
 * board's limit). Every curve here is concave, does not fall, and has t(1) = 1. A cut is d = 1 - x, a loss l =
 * 1 - t.
 *
 * Two families:
 *
 *   exp      l(d) = b (exp(k d) - 1), which is t(x) = (1 - exp(-k (x - x0))) / (1 - exp(-k (1 - x0))) with
 *            b = q / (1 - q), q = exp(-k (1 - x0)). Two parameters; what few or noisy points can carry.
 *   knots    straight pieces between knots, steeper towards less power: shows a knee where points show one.
 *
 * Both bend past a knee, where the next watt costs more than its share (slope above 1). Plain structs without
 * pointers: copy them as you like. Nothing here fails on a valid curve; NaN in gives NaN out.
 *
 * How a controller uses this room: keep one struct tw_belief per job (elastic/belief.h), add each probe (x, t
 * and their noise) as it settles, take tw_belief_curve for the split, and tw_belief_stray for how far that job
 * may leave equal weight (alloc/alloc.h takes both). Marginal throughput per watt at a cap is tw_curve_slope(c,
 * P / P_0) * T_0 / P_0. */
#ifndef TW_ELASTIC_CURVE_H
#define TW_ELASTIC_CURVE_H

#include "base/err.h"

#include <stddef.h>

#define TW_CURVE_KNOT_MAX 24
#define TW_CURVE_K_MIN 0.01 /* below this a curve is a straight line for every purpose */
#define TW_CURVE_K_MAX 60.0

/* id, name in reports */
#define TW_CURVE_FAMILY_MAP(X)                                                                                 \
    X(EXP, "exp")                                                                                              \
    X(KNOTS, "knots")

enum tw_curve_family {
#define TW_CURVE_FAMILY_ENUM(id, name) TW_CURVE_##id,
    TW_CURVE_FAMILY_MAP(TW_CURVE_FAMILY_ENUM)
#undef TW_CURVE_FAMILY_ENUM
        TW_CURVE_FAMILY_COUNT
};
extern const char *const tw_curve_family_name[TW_CURVE_FAMILY_COUNT];

struct tw_curve {
    enum tw_curve_family family;
    unsigned n;                  /* knots: how many, 2 .. TW_CURVE_KNOT_MAX */
    double k, b;                 /* exp */
    double x[TW_CURVE_KNOT_MAX]; /* knots: ascending, the last is 1 */
    double t[TW_CURVE_KNOT_MAX]; /* knots: value there, the last is 1 */
};

/* exp from its two forms. x0 < 1; TW_EINVAL for k outside TW_CURVE_K_MIN .. _MAX or x0 >= 1. */
TW_MUST_USE
enum tw_err tw_curve_init_exp(struct tw_curve *ret, double k, double x0, struct tw_why *why);
/* exp through (1 - d, 1 - loss) with bend k: the form that probing finds natural. 0 < d < 1, loss > 0. */
struct tw_curve tw_curve_of_loss(double k, double d, double loss);
/* Where exp reaches zero throughput: x0. NaN for knots. */
double tw_curve_x0(const struct tw_curve *c);

/* Knots from n values x [n] ascending with x[n-1] = 1 and t [n] with t[n-1] = 1. TW_EINVAL when they are not
 * ascending, not concave (beyond rounding), falling, or more than TW_CURVE_KNOT_MAX. */
TW_MUST_USE
enum tw_err tw_curve_init_knots(struct tw_curve *ret, const double *x, const double *t, size_t n,
                                struct tw_why *why);

/* t(x): 1 for x >= 1; knots go on straight below the first; never below 0. */
double tw_curve_value(const struct tw_curve *c, double x);
/* dt/dx from the left (what the last watt brought); 0 above 1. */
double tw_curve_slope(const struct tw_curve *c, double x);
/* The largest x <= 1 whose slope is still at least s: where the marginal gain falls to s. 1 when even the slope
 * at 1 is s or more. exp: has no lower end, so it may be below 0; knots: the first knot when no piece is that
 * steep. s > 0. */
double tw_curve_at_slope(const struct tw_curve *c, double s);
/* The deepest cut, 0 .. 1, whose loss is at most `loss` (SLA depth: loss = s H / h, spec's d*). */
double tw_curve_depth(const struct tw_curve *c, double loss);
/* PFI at a depth: d / loss(d); infinity where nothing is lost. */
double tw_curve_pfi(const struct tw_curve *c, double cut);
/* The cut at which loss begins to grow faster than power (slope 1). NaN when that is not within 0 .. max_cut.
 */
double tw_curve_knee(const struct tw_curve *c, double max_cut);

#endif
