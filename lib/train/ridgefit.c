/* SPDX-License-Identifier: Apache-2.0 */
/* All but the constant are penalised, each by its variance times the strength, so that units do not matter. */
#include "train/ridgefit.h"

#include "base/arena.h"
#include "model/ridge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double strengths[] = {1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0};
enum { STRENGTHS = sizeof strengths / sizeof *strengths };

struct fit {
    size_t n_feature;
    double *gram;   /* [n_feature][n_feature] */
    double *moment; /* [n_feature][TW_HEADS] */
    double *chol;   /* [n_feature][n_feature] */
    double *weight; /* [STRENGTHS][n_feature][TW_HEADS] */
    double error[STRENGTHS][TW_HEADS];
    float *residual; /* [TW_HEADS][windows] */
    size_t taken;
    void *state;
    size_t windows;
    const float *param; /* while residuals are taken */
};

size_t tw_ridge_fit_bytes(const struct tw_model *m, const struct tw_dataset *ds)
{
    const size_t f = tw_ridge_n_feature(&m->input);
    const size_t windows = tw_window_count(ds, TW_PART_TRAIN, false, m->input.w60);
    return 2 * tw_arena_need(f * f, sizeof(double)) + tw_arena_need(f * TW_HEADS, sizeof(double)) +
           tw_arena_need(STRENGTHS * f * TW_HEADS, sizeof(double)) +
           tw_arena_need(windows * TW_HEADS, sizeof(float)) + tw_arena_need(tw_input_bytes(&m->input, 1), 1);
}

/* What each head should have been at step t, in units of the scaler. */
static void wanted(const struct tw_input_shape *s, const float *x_w, size_t t, double ret[static TW_HEADS])
{
    for (size_t h = 0; h < TW_HEADS; h++) {
        const size_t steps = tw_input_steps(tw_head_s(h), s->step_s);
        double sum = 0.0;
        for (size_t k = h < TW_LEADS ? steps : 1; k <= steps; k++)
            sum += (double)x_w[t + k];
        ret[h] = ((h < TW_LEADS ? sum : sum / (double)steps) - s->scaler.mean_w) / s->scaler.std_w;
    }
}

typedef void (*window_fn)(struct fit *f, const float *x, const double *y);

/* Every window of the part, twins left out, with its features. */
static void each_window(struct fit *f, const struct tw_model *m, const struct tw_dataset *ds, enum tw_part part,
                        window_fn fn)
{
    for (size_t i = 0; i < ds->n; i++) {
        const struct tw_track *t = &ds->track[i];
        if (t->twin || t->part[part].to == t->part[part].from)
            continue;
        tw_input_reset(&m->input, 1, f->state);
        struct tw_input_state in = tw_input_view(&m->input, 1, f->state);
        for (size_t k = 0; k < t->part[part].to; k++) {
            float x[TW_RIDGE_MOST];
            double y[TW_HEADS];
            tw_input_push(&m->input, &in, 0, t->x_w[k]);
            if (tw_window_is(t, part, k, m->input.w60)) {
                tw_ridge_features(&m->input, &in, 0, x);
                wanted(&m->input, t->x_w, k, y);
                fn(f, x, y);
            }
            tw_input_advance(&in);
        }
    }
}

static void add_moments(struct fit *f, const float *x, const double *y)
{
    for (size_t i = 0; i < f->n_feature; i++) {
        for (size_t j = 0; j <= i; j++)
            f->gram[i * f->n_feature + j] += (double)x[i] * (double)x[j];
        for (size_t h = 0; h < TW_HEADS; h++)
            f->moment[i * TW_HEADS + h] += (double)x[i] * y[h];
    }
    f->windows++;
}

static void add_error(struct fit *f, const float *x, const double *y)
{
    for (size_t s = 0; s < STRENGTHS; s++) {
        const double *w = f->weight + s * f->n_feature * TW_HEADS;
        double p[TW_HEADS] = {0};
        for (size_t i = 0; i < f->n_feature; i++)
            for (size_t h = 0; h < TW_HEADS; h++)
                p[h] += (double)x[i] * w[i * TW_HEADS + h];
        for (size_t h = 0; h < TW_HEADS; h++)
            f->error[s][h] += fabs(p[h] - y[h]);
    }
}

static void add_residual(struct fit *f, const float *x, const double *y)
{
    for (size_t h = 0; h < TW_HEADS; h++) {
        double p = 0.0;
        for (size_t i = 0; i < f->n_feature; i++)
            p += (double)x[i] * (double)f->param[i * TW_HEADS + h];
        f->residual[h * f->windows + f->taken] = (float)(y[h] - p);
    }
    f->taken++;
}

/* Solve (gram + strength * diag) w = moment by Cholesky; the diagonal is never small enough to fail. */
static void solve(struct fit *f, double strength, double *w)
{
    const size_t n = f->n_feature;
    double *l = f->chol;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = f->gram[i * n + j];
            if (i == j)
                sum += (i + 1 < n ? strength : 0.0) * sum + 1e-9 * (double)f->windows;
            for (size_t k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? sqrt(sum > 1e-12 ? sum : 1e-12) : sum / l[j * n + j];
        }
    for (size_t h = 0; h < TW_HEADS; h++) {
        for (size_t i = 0; i < n; i++) {
            double sum = f->moment[i * TW_HEADS + h];
            for (size_t k = 0; k < i; k++)
                sum -= l[i * n + k] * w[k * TW_HEADS + h];
            w[i * TW_HEADS + h] = sum / l[i * n + i];
        }
        for (size_t i = n; i-- > 0;) {
            double sum = w[i * TW_HEADS + h];
            for (size_t k = i + 1; k < n; k++)
                sum -= l[k * n + i] * w[k * TW_HEADS + h];
            w[i * TW_HEADS + h] = sum / l[i * n + i];
        }
    }
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

enum tw_err tw_ridge_fit(const struct tw_model *m, const struct tw_dataset *ds, void *mem, float *param,
                         struct tw_why *why)
{
    struct tw_arena a;
    tw_arena_init(&a, mem, tw_ridge_fit_bytes(m, ds));
    struct fit f = {.n_feature = tw_ridge_n_feature(&m->input)};
    const size_t n = f.n_feature, windows = tw_window_count(ds, TW_PART_TRAIN, false, m->input.w60);
    if (n > TW_RIDGE_MOST)
        return tw_fail(why, TW_ERANGE, "a grid of %g s is too fine for the linear model", m->input.step_s);
    if (windows == 0)
        return tw_fail(why, TW_ENODATA, "set \"%s\": no training series is longer than two minutes", ds->set);
    f.gram = TW_ARENA_ARRAY(&a, double, n *n);
    f.chol = TW_ARENA_ARRAY(&a, double, n *n);
    f.moment = TW_ARENA_ARRAY(&a, double, n *TW_HEADS);
    f.weight = TW_ARENA_ARRAY(&a, double, STRENGTHS *n *TW_HEADS);
    f.residual = TW_ARENA_ARRAY(&a, float, windows *TW_HEADS);
    f.state = tw_arena_alloc(&a, tw_input_bytes(&m->input, 1), 1);
    each_window(&f, m, ds, TW_PART_TRAIN, add_moments);
    for (size_t s = 0; s < STRENGTHS; s++)
        solve(&f, strengths[s], f.weight + s * n * TW_HEADS);
    each_window(&f, m, ds, TW_PART_VAL, add_error);
    for (size_t h = 0; h < TW_HEADS; h++) {
        size_t best = 2; /* without a validation window */
        for (size_t s = 0; s < STRENGTHS; s++)
            best = f.error[s][h] < f.error[best][h] ? s : best;
        for (size_t i = 0; i < n; i++)
            param[i * TW_HEADS + h] = (float)f.weight[(best * n + i) * TW_HEADS + h];
    }
    f.param = param;
    each_window(&f, m, ds, TW_PART_TRAIN, add_residual);
    float *offset = param + n * TW_HEADS;
    for (size_t h = 0; h < TW_HEADS; h++) {
        float *r = f.residual + h * windows;
        qsort(r, windows, sizeof *r, by_value);
        offset[h * TW_QUANTILES] = r[(size_t)(tw_quantile_level[0] * (double)(windows - 1))];
        offset[h * TW_QUANTILES + 1] = 0.0f;
        offset[h * TW_QUANTILES + 2] = r[(size_t)(tw_quantile_level[2] * (double)(windows - 1))];
    }
    return TW_OK;
}
