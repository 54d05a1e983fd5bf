/* SPDX-License-Identifier: Apache-2.0 */
/* Curves: value, slope and their inverses. */
#include "elastic/curve.h"

#include <assert.h>
#include <math.h>

#define NAME(id, name) name,
const char *const tw_curve_family_name[TW_CURVE_FAMILY_COUNT] = {TW_CURVE_FAMILY_MAP(NAME)};
#undef NAME

#define SLACK 1e-9 /* rounding that a concavity check forgives */

enum tw_err tw_curve_init_exp(struct tw_curve *ret, double k, double x0, struct tw_why *why)
{
    if (!(k >= TW_CURVE_K_MIN && k <= TW_CURVE_K_MAX))
        return tw_fail(why, TW_EINVAL, "curve: k is %g, expected %g to %g", k, TW_CURVE_K_MIN, TW_CURVE_K_MAX);
    if (!(x0 < 1.0 && x0 > -1000.0))
        return tw_fail(why, TW_EINVAL, "curve: x0 is %g, expected less than 1", x0);
    *ret = (struct tw_curve){.family = TW_CURVE_EXP, .k = k, .b = 1.0 / expm1(k * (1.0 - x0))};
    return TW_OK;
}

struct tw_curve tw_curve_of_loss(double k, double d, double loss)
{
    assert(d > 0.0 && d < 1.0);
    return (struct tw_curve){.family = TW_CURVE_EXP, .k = k, .b = loss / expm1(k * d)};
}

double tw_curve_x0(const struct tw_curve *c)
{
    return c->family == TW_CURVE_EXP ? 1.0 - log1p(1.0 / c->b) / c->k : (double)NAN;
}

enum tw_err tw_curve_init_knots(struct tw_curve *ret, const double *x, const double *t, size_t n,
                                struct tw_why *why)
{
    if (n < 2 || n > TW_CURVE_KNOT_MAX)
        return tw_fail(why, TW_EINVAL, "curve: %zu knots, expected 2 to %d", n, TW_CURVE_KNOT_MAX);
    if (!(fabs(x[n - 1] - 1.0) <= SLACK && fabs(t[n - 1] - 1.0) <= SLACK))
        return tw_fail(why, TW_EINVAL, "curve: the last knot is (%g, %g), expected (1, 1)", x[n - 1], t[n - 1]);
    double above = INFINITY;
    for (size_t i = 0; i + 1 < n; i++) {
        double slope = (t[i + 1] - t[i]) / (x[i + 1] - x[i]);
        if (!(x[i] > 0.0 && x[i + 1] > x[i]))
            return tw_fail(why, TW_EINVAL, "curve: knot %zu at x = %g is not below the next", i, x[i]);
        if (!(slope >= -SLACK && slope <= above + SLACK * (1.0 + fabs(slope))))
            return tw_fail(why, TW_EINVAL, "curve: not concave and rising at knot %zu, x = %g", i, x[i]);
        above = slope;
    }
    *ret = (struct tw_curve){.family = TW_CURVE_KNOTS, .n = (unsigned)n};
    for (size_t i = 0; i < n; i++) {
        ret->x[i] = x[i];
        ret->t[i] = t[i];
    }
    return TW_OK;
}

static double piece_slope(const struct tw_curve *c, unsigned i)
{
    return (c->t[i + 1] - c->t[i]) / (c->x[i + 1] - c->x[i]);
}

/* The piece that x lies in, its left end left out: the first piece also serves below it. */
static unsigned piece_of(const struct tw_curve *c, double x)
{
    unsigned i = c->n - 2;
    while (i > 0 && !(x > c->x[i]))
        i--;
    return i;
}

double tw_curve_value(const struct tw_curve *c, double x)
{
    if (x >= 1.0)
        return 1.0;
    double t;
    if (c->family == TW_CURVE_EXP) {
        t = 1.0 - c->b * expm1(c->k * (1.0 - x));
    } else {
        unsigned i = piece_of(c, x);
        t = c->t[i + 1] - piece_slope(c, i) * (c->x[i + 1] - x);
    }
    return t < 0.0 ? 0.0 : t;
}

double tw_curve_slope(const struct tw_curve *c, double x)
{
    if (x > 1.0)
        return 0.0;
    if (c->family == TW_CURVE_EXP)
        return c->b * c->k * exp(c->k * (1.0 - x));
    return piece_slope(c, piece_of(c, x));
}

double tw_curve_at_slope(const struct tw_curve *c, double s)
{
    if (c->family == TW_CURVE_EXP)
        return fmin(1.0, 1.0 - log(s / (c->b * c->k)) / c->k);
    for (unsigned i = c->n - 1; i > 0; i--)
        if (piece_slope(c, i - 1) >= s)
            return c->x[i];
    return 0.0;
}

double tw_curve_depth(const struct tw_curve *c, double loss)
{
    if (!(loss > 0.0))
        loss = 0.0;
    double d;
    if (c->family == TW_CURVE_EXP) {
        d = log1p(loss / c->b) / c->k;
    } else {
        unsigned i = c->n - 2;
        while (i > 0 && 1.0 - c->t[i] <= loss)
            i--;
        double slope = piece_slope(c, i);
        d = slope > 0.0 ? 1.0 - c->x[i + 1] + (loss - (1.0 - c->t[i + 1])) / slope : 1.0;
    }
    return d > 1.0 ? 1.0 : d;
}

double tw_curve_pfi(const struct tw_curve *c, double cut)
{
    double loss = 1.0 - tw_curve_value(c, 1.0 - cut);
    return loss > 0.0 ? cut / loss : (double)INFINITY;
}

double tw_curve_knee(const struct tw_curve *c, double max_cut)
{
    double knee;
    if (c->family == TW_CURVE_KNOTS && !(piece_slope(c, 0) >= 1.0))
        return (double)NAN;
    knee = 1.0 - tw_curve_at_slope(c, 1.0);
    return knee <= max_cut ? knee : (double)NAN;
}
