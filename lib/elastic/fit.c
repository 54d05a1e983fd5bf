/* SPDX-License-Identifier: Apache-2.0 */
/* Fits. In exp, the loss is linear in b once k is fixed, so the fit is a search over k alone with b in closed
 * form: a coarse scan for the basin, golden section inside it. */
#include "elastic/fit.h"

#include "base/stat.h"
#include "elastic/belief.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SCAN = 48, GOLDEN = 32, ROUNDS = 6 };
#define B_MIN 1e-9 /* a job that loses nothing: flat, but still with a slope */

struct data {
    size_t n;
    double d[TW_FIT_POINTS], loss[TW_FIT_POINTS], weight[TW_FIT_POINTS];
};

static void take(struct data *p, const double *x, const double *t, size_t n)
{
    p->n = 0;
    for (size_t i = 0; i < n && p->n < TW_FIT_POINTS; i++) {
        if (!(x[i] > 0.0 && x[i] < 1.0 && isfinite(t[i])))
            continue;
        p->d[p->n] = 1.0 - x[i];
        p->loss[p->n] = 1.0 - t[i];
        p->weight[p->n++] = 1.0;
    }
}

/* Weighted squared error at bend k, and the best b there. */
static double error_at(const struct data *p, double k, double *ret_b)
{
    double gg = 0.0, gl = 0.0, ll = 0.0;
    for (size_t i = 0; i < p->n; i++) {
        double g = expm1(k * p->d[i]), w = p->weight[i];
        gg += w * g * g;
        gl += w * g * p->loss[i];
        ll += w * p->loss[i] * p->loss[i];
    }
    double b = fmax(gl / gg, B_MIN);
    *ret_b = b;
    return ll - 2.0 * b * gl + b * b * gg;
}

static struct tw_curve search(const struct data *p)
{
    const double low = log(TW_CURVE_K_MIN), step = (log(TW_CURVE_K_MAX) - low) / (SCAN - 1);
    double b, best = INFINITY;
    int at = 0;
    for (int i = 0; i < SCAN; i++) {
        double e = error_at(p, exp(low + step * i), &b);
        if (e < best) {
            best = e;
            at = i;
        }
    }
    double lo = low + step * fmax(at - 1, 0), hi = low + step * fmin(at + 1, SCAN - 1);
    const double cut = 0.6180339887498949;
    for (int i = 0; i < GOLDEN; i++) {
        double left = hi - cut * (hi - lo), right = lo + cut * (hi - lo);
        if (error_at(p, exp(left), &b) < error_at(p, exp(right), &b))
            hi = right;
        else
            lo = left;
    }
    struct tw_curve c = {.family = TW_CURVE_EXP, .k = exp(0.5 * (lo + hi))};
    (void)error_at(p, c.k, &c.b);
    return c;
}

static double residual(const struct tw_curve *c, const struct data *p, size_t i)
{
    return p->loss[i] - (1.0 - tw_curve_value(c, 1.0 - p->d[i]));
}

/* Huber: what lies further out than 1.345 robust deviations pulls only linearly. */
static void reweight(struct data *p, const struct tw_curve *c)
{
    double size[TW_FIT_POINTS];
    for (size_t i = 0; i < p->n; i++)
        size[i] = fabs(residual(c, p, i));
    tw_stat_sort(size, p->n);
    double far = 1.345 * fmax(1.4826 * tw_stat_quantile_sorted(size, p->n, 0.5), TW_RUN_SD_THROUGHPUT);
    for (size_t i = 0; i < p->n; i++) {
        double r = fabs(residual(c, p, i));
        p->weight[i] = r <= far ? 1.0 : far / r;
    }
}

/* Error, and chi^2 by the noise of a point and its reference; power noise shows through the slope of `exp`, the
 * same for both families, so that they are judged alike. */
static void judge(struct tw_fit *f, const struct data *p, const struct tw_curve *exp_curve)
{
    double sum = 0.0, chi2 = 0.0;
    for (size_t i = 0; i < p->n; i++) {
        double x = 1.0 - p->d[i], t = 1.0 - p->loss[i], r = residual(&f->curve, p, i);
        double st = TW_RUN_SD_THROUGHPUT * fmax(t, 0.1),
               sx = TW_RUN_SD_POWER * x * tw_curve_slope(exp_curve, x);
        sum += r * r;
        chi2 += r * r / (st * st + sx * sx);
    }
    f->points = (unsigned)p->n;
    f->rmse = p->n ? sqrt(sum / (double)p->n) : (double)NAN;
    f->aic = chi2 + 2.0 * f->params;
}

static struct tw_fit fit_exp(struct data *p)
{
    struct tw_fit f = {.params = 2};
    if (p->n < 2) {
        double k = exp(tw_belief_public.mean[0]);
        f.params = (unsigned)p->n;
        f.curve = p->n ? tw_curve_of_loss(k, p->d[0], fmax(p->loss[0], B_MIN))
                       : tw_curve_of_loss(k, TW_BELIEF_CUT, exp(tw_belief_public.mean[1]));
    } else {
        f.curve = search(p);
        for (int i = 0; i < ROUNDS && p->n > 3; i++) {
            reweight(p, &f.curve);
            f.curve = search(p);
        }
    }
    judge(&f, p, &f.curve);
    return f;
}

struct tw_fit tw_fit_exp(const double *x, const double *t, size_t n)
{
    struct data p;
    take(&p, x, t, n);
    return fit_exp(&p);
}

/* --- concave regression ------------------------------------------------------------------------------------
 */

enum { HINGES = TW_CURVE_KNOT_MAX - 1 }; /* hinge 0 sits at x = 1 and is the slope there */

struct nnls {
    int n;
    double gram[HINGES][HINGES], rhs[HINGES], q[HINGES];
    bool in[HINGES];
};

static double hinge(double knot, double x)
{
    return x < knot ? knot - x : 0.0;
}

/* Least squares over the columns that are `in`, by Cholesky; the others are 0. False when they are dependent.
 */
static bool solve_in(const struct nnls *s, double out[static HINGES])
{
    double l[HINGES][HINGES], y[HINGES];
    int idx[HINGES], m = 0;
    for (int j = 0; j < s->n; j++) {
        out[j] = 0.0;
        if (s->in[j])
            idx[m++] = j;
    }
    for (int a = 0; a < m; a++) {
        y[a] = s->rhs[idx[a]];
        for (int c = 0; c <= a; c++) {
            double v = s->gram[idx[a]][idx[c]];
            for (int e = 0; e < c; e++)
                v -= l[a][e] * l[c][e];
            if (a == c && !(v > 1e-12 * s->gram[idx[a]][idx[a]]))
                return false;
            l[a][c] = a == c ? sqrt(v) : v / l[c][c];
        }
        for (int e = 0; e < a; e++)
            y[a] -= l[a][e] * y[e];
        y[a] /= l[a][a];
    }
    for (int a = m - 1; a >= 0; a--) {
        double v = y[a];
        for (int e = a + 1; e < m; e++)
            v -= l[e][a] * out[idx[e]];
        out[idx[a]] = v / l[a][a];
    }
    return true;
}

/* The steepest column that is out and would help; -1 when none is left. */
static int next_column(const struct nnls *s, const bool *refused)
{
    int best = -1;
    double steepest = 0.0;
    for (int j = 0; j < s->n; j++) {
        double w = s->rhs[j];
        for (int c = 0; c < s->n; c++)
            w -= s->gram[j][c] * s->q[c];
        double scaled = w / sqrt(s->gram[j][j]);
        if (!s->in[j] && !refused[j] && scaled > 1e-9 && scaled > steepest) {
            steepest = scaled;
            best = j;
        }
    }
    return best;
}

/* Move q towards z as far as it stays >= 0, and put what reached 0 out. True when all of z was taken. */
static bool step_towards(struct nnls *s, const double *z)
{
    double alpha = 1.0;
    for (int j = 0; j < s->n; j++)
        if (s->in[j] && z[j] <= 0.0)
            alpha = fmin(alpha, s->q[j] / (s->q[j] - z[j]));
    for (int j = 0; j < s->n; j++) {
        s->q[j] += alpha * (z[j] - s->q[j]);
        if (s->in[j] && !(s->q[j] > 1e-14)) {
            s->q[j] = 0.0;
            s->in[j] = false;
        }
    }
    return alpha >= 1.0;
}

static void nnls_solve(struct nnls *s)
{
    bool refused[HINGES] = {false};
    for (int turn = 0; turn < 8 * HINGES; turn++) {
        int j = next_column(s, refused);
        if (j < 0)
            return;
        double z[HINGES];
        s->in[j] = true;
        if (!solve_in(s, z) ||
            !(z[j] > 0.0)) { /* as good as dependent on the others: rounding decides, leave it */
            s->in[j] = false;
            refused[j] = true;
            continue;
        }
        while (!step_towards(s, z) && solve_in(s, z))
            ;
        memset(refused, 0, sizeof refused); /* the others have moved: ask again */
    }
}

/* Hinges at 1 and at distinct measured points but the lowest, thinned evenly when there are too many. */
static int place_hinges(const struct data *p, double knot[static HINGES], double *ret_lowest)
{
    double x[TW_FIT_POINTS];
    size_t m = 0;
    for (size_t i = 0; i < p->n; i++)
        x[i] = 1.0 - p->d[i];
    tw_stat_sort(x, p->n);
    for (size_t i = 0; i < p->n; i++)
        if (m == 0 || x[i] > x[m - 1] + 1e-6)
            x[m++] = x[i];
    *ret_lowest = x[0];
    size_t inner = m - 1, keep = inner < HINGES - 1 ? inner : HINGES - 1;
    knot[0] = 1.0;
    for (size_t j = 0; j < keep; j++)
        knot[1 + j] = x[m - 1 - j * inner / keep];
    return (int)(1 + keep);
}

static struct tw_curve regress(const struct data *p, unsigned *ret_params)
{
    double knot[HINGES] = {1.0}, lowest;
    struct nnls s = {.n = place_hinges(p, knot, &lowest)};
    for (size_t i = 0; i < p->n; i++) {
        for (int a = 0; a < s.n; a++) {
            double h = hinge(knot[a], 1.0 - p->d[i]);
            s.rhs[a] += h * p->loss[i];
            for (int b = 0; b < s.n; b++)
                s.gram[a][b] += h * hinge(knot[b], 1.0 - p->d[i]);
        }
    }
    nnls_solve(&s);
    struct tw_curve c = {.family = TW_CURVE_KNOTS};
    *ret_params = s.in[0];
    c.x[c.n++] = lowest;
    for (int j = s.n - 1; j >= 1; j--) {
        if (s.in[j]) {
            c.x[c.n++] = knot[j];
            (*ret_params)++;
        }
    }
    c.x[c.n++] = 1.0;
    for (unsigned i = 0; i < c.n; i++) {
        c.t[i] = 1.0;
        for (int j = 0; j < s.n; j++)
            c.t[i] -= s.q[j] * hinge(knot[j], c.x[i]);
    }
    return c;
}

static struct tw_fit fit_concave(const struct data *p, const struct tw_curve *exp_curve)
{
    struct tw_fit f = {0};
    f.curve = regress(p, &f.params);
    judge(&f, p, exp_curve);
    return f;
}

struct tw_fit tw_fit_concave(const double *x, const double *t, size_t n)
{
    struct data p;
    take(&p, x, t, n);
    struct tw_fit e = fit_exp(&p);
    return p.n ? fit_concave(&p, &e.curve) : e;
}

struct tw_fit tw_fit_best(const double *x, const double *t, size_t n, struct tw_fit *ret_exp)
{
    struct data p;
    take(&p, x, t, n);
    struct tw_fit e = fit_exp(&p);
    if (ret_exp)
        *ret_exp = e;
    if (p.n < 2)
        return e;
    struct tw_fit c = fit_concave(&p, &e.curve);
    return c.aic < e.aic ? c : e;
}
