/* SPDX-License-Identifier: Apache-2.0 */
#include "train/score.h"

#include "model/forecaster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct tw_target_info tw_target_table[TW_TARGET_COUNT] = {
#define TW_TARGET_ROW(id, kind, s, text) {text, TW_TARGET_##kind, s},
    TW_TARGET_MAP(TW_TARGET_ROW)
#undef TW_TARGET_ROW
};

size_t tw_scorer_bytes(size_t cap)
{
    return TW_TARGET_COUNT * cap * sizeof(float);
}

void tw_scorer_init(struct tw_scorer *sc, double step_s, size_t cap, void *mem)
{
    *sc = (struct tw_scorer){.cap = cap, .step_s = step_s};
    for (size_t i = 0; i < TW_TARGET_COUNT; i++)
        sc->sum[i].each = (float *)mem + i * cap;
}

/* One value against its three quantiles, times `part` of a window. Returns the absolute error. */
static double add_value(struct tw_sums *s, const double q[static TW_QUANTILES], double y, double part)
{
    const double e = q[1] - y;
    s->bias += part * e;
    s->squares += part * e * e;
    double pinball = 0.0;
    for (size_t i = 0; i < TW_QUANTILES; i++)
        pinball += fmax(tw_quantile_level[i] * (y - q[i]), (tw_quantile_level[i] - 1.0) * (y - q[i]));
    if (isnan(q[0]) || isnan(q[2]))
        pinball = (double)NAN; /* fmax would have dropped it */
    s->pinball += part * pinball / TW_QUANTILES;
    s->covered += isnan(pinball) ? (double)NAN : part * (double)(y >= q[0] && y <= q[2]);
    s->interval += part * (q[2] - q[0] + 10.0 * (fmax(q[0] - y, 0.0) + fmax(y - q[2], 0.0)));
    return fabs(e);
}

static void add_head(struct tw_sums *s, size_t n, const float *out_w, size_t head, double y)
{
    double q[TW_QUANTILES];
    for (size_t i = 0; i < TW_QUANTILES; i++)
        q[i] = (double)out_w[head * TW_QUANTILES + i];
    const double e = add_value(s, q, y, 1.0);
    s->abs += e;
    s->each[n] = (float)e;
}

static void add_path(struct tw_sums *s, size_t n, const float *out_w, const float *ahead, size_t steps,
                     double step_s)
{
    double e = 0.0;
    for (size_t k = 1; k <= steps; k++) {
        double q[TW_QUANTILES];
        for (size_t i = 0; i < TW_QUANTILES; i++)
            q[i] = tw_output_at(out_w, i, (double)k * step_s);
        e += add_value(s, q, (double)ahead[k - 1], 1.0 / (double)steps);
    }
    e /= (double)steps;
    s->abs += e;
    s->each[n] = (float)e;
}

void tw_scorer_add(struct tw_scorer *sc, const float *x_w, size_t t, const float out_w[static TW_OUTPUTS])
{
    if (sc->n == sc->cap)
        return;
    const float *ahead = x_w + t + 1;
    for (size_t i = 0; i < TW_TARGET_COUNT; i++) {
        const struct tw_target_info *info = &tw_target_table[i];
        const size_t steps = tw_input_steps(info->horizon_s, sc->step_s);
        double sum = 0.0;
        switch (info->kind) {
        case TW_TARGET_POINT:
            add_head(&sc->sum[i], sc->n, out_w, (size_t)(info->horizon_s / TW_LEAD_S - 1),
                     (double)ahead[steps - 1]);
            break;
        case TW_TARGET_MEAN:
            for (size_t k = 0; k < steps; k++)
                sum += (double)ahead[k];
            add_head(&sc->sum[i], sc->n, out_w, info->horizon_s == 30 ? TW_HEAD_MEAN30 : TW_HEAD_MEAN60,
                     sum / (double)steps);
            break;
        case TW_TARGET_PATH:
            add_path(&sc->sum[i], sc->n, out_w, ahead, steps, sc->step_s);
            break;
        }
    }
    sc->n++;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void tw_scorer_result(struct tw_scorer *sc, enum tw_target target, struct tw_score *ret)
{
    const struct tw_sums *s = &sc->sum[target];
    const double n = (double)sc->n;
    double p95 = (double)NAN;
    if (sc->n > 0) {
        qsort(s->each, sc->n, sizeof *s->each, by_value);
        const double at = 0.95 * (n - 1.0);
        const size_t i = (size_t)at, next = i + 1 < sc->n ? i + 1 : i;
        p95 = (double)s->each[i] + (at - (double)i) * ((double)s->each[next] - (double)s->each[i]);
    }
    *ret = (struct tw_score){.windows = sc->n,
                             .mae_w = s->abs / n,
                             .rmse_w = sqrt(s->squares / n),
                             .bias_w = s->bias / n,
                             .p95_w = p95,
                             .pinball_w = s->pinball / n,
                             .coverage80 = s->covered / n,
                             .interval_w = s->interval / n};
}

bool tw_window_is(const struct tw_track *t, enum tw_part part, size_t step, size_t w60)
{
    const struct tw_span *p = &t->part[part];
    if (step < p->from + w60 || step + w60 >= p->to)
        return false;
    for (size_t k = step - w60; k <= step + w60; k++)
        if (!isfinite(t->x_w[k]))
            return false;
    return true;
}

static bool takes_part(const struct tw_track *t, enum tw_part part, bool twins)
{
    return t->part[part].to > t->part[part].from && (twins || !t->twin);
}

size_t tw_window_count(const struct tw_dataset *ds, enum tw_part part, bool twins, size_t w60)
{
    size_t n = 0;
    for (size_t i = 0; i < ds->n; i++)
        for (size_t k = 0; k < ds->track[i].n && takes_part(&ds->track[i], part, twins); k++)
            n += tw_window_is(&ds->track[i], part, k, w60);
    return n;
}

/* ---- as served ---- */

static size_t round64(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t trail_bytes(const struct tw_model *m, double step_s, bool trail)
{
    return m->ops->spread || !trail ? 0 : round64(tw_sum_bytes(step_s, tw_input_steps(TW_TRAIL_S, step_s)));
}

size_t tw_served_bytes(const struct tw_model *m, const struct tw_dataset *ds, bool trail)
{
    return tw_model_state_bytes(m, ds->n) + round64(ds->n * sizeof(float)) +
           round64(ds->n * TW_OUTPUTS * sizeof(float)) + round64(ds->n * sizeof(size_t)) +
           round64(ds->n * sizeof(struct tw_sum *)) + ds->n * trail_bytes(m, ds->step_s, trail);
}

void tw_served(const struct tw_model *m, const struct tw_dataset *ds, enum tw_part part, bool twins, bool trail,
               const struct tw_par *par, void *mem, tw_served_fn fn, void *ctx)
{
    size_t *which = mem, n = 0, steps = 0;
    for (size_t i = 0; i < ds->n; i++)
        if (takes_part(&ds->track[i], part, twins)) {
            which[n++] = i;
            steps = ds->track[i].part[part].to > steps ? ds->track[i].part[part].to : steps;
        }
    unsigned char *at = (unsigned char *)mem + round64(ds->n * sizeof(size_t));
    float *x = (float *)(void *)at, *out = (float *)(void *)(at + round64(ds->n * sizeof(float)));
    unsigned char *state = at + round64(ds->n * sizeof(float)) + round64(ds->n * TW_OUTPUTS * sizeof(float));
    tw_model_reset(m, n, state);
    struct tw_sum **band = (struct tw_sum **)(void *)(state + tw_model_state_bytes(m, ds->n));
    unsigned char *band_mem = (unsigned char *)band + round64(ds->n * sizeof(struct tw_sum *));
    const size_t each = trail_bytes(m, ds->step_s, trail);
    for (size_t i = 0; i < n && each > 0; i++)
        band[i] = tw_sum_init(ds->step_s, tw_input_steps(TW_TRAIL_S, ds->step_s), band_mem + i * each);
    for (size_t k = 0; k < steps; k++) {
        for (size_t i = 0; i < n; i++)
            x[i] = k < ds->track[which[i]].n ? ds->track[which[i]].x_w[k] : NAN;
        tw_model_step(m, n, state, x, out, par);
        for (size_t i = 0; i < n && each > 0; i++)
            tw_sum_push(band[i], (double)x[i], 1, &x[i], out + i * TW_OUTPUTS, out + i * TW_OUTPUTS);
        for (size_t i = 0; i < n; i++)
            if (tw_window_is(&ds->track[which[i]], part, k, m->input.w60))
                fn(ctx, &ds->track[which[i]], k, out + i * TW_OUTPUTS);
    }
}

/* ---- windowed ---- */

enum { BATCH = 4 * TW_MODEL_BLOCK };

size_t tw_windowed_bytes(const struct tw_model *m)
{
    return tw_model_state_bytes(m, BATCH) + round64(BATCH * sizeof(float)) +
           round64(BATCH * TW_OUTPUTS * sizeof(float));
}

void tw_windowed(const struct tw_model *m, const struct tw_dataset *ds, enum tw_part part, size_t look_back,
                 size_t stride, const struct tw_par *par, void *mem, tw_served_fn fn, void *ctx)
{
    float *x = mem, *out = (float *)(void *)((unsigned char *)mem + round64(BATCH * sizeof(float)));
    void *state = (unsigned char *)(void *)out + round64(BATCH * TW_OUTPUTS * sizeof(float));
    for (size_t i = 0; i < ds->n; i++) {
        const struct tw_track *t = &ds->track[i];
        size_t step[BATCH], n = 0;
        for (size_t k = t->part[part].from; k < t->part[part].to; k++) {
            if (k % stride == 0 && tw_window_is(t, part, k, m->input.w60))
                step[n++] = k;
            if (n == 0 || (n < BATCH && k + 1 < t->part[part].to))
                continue;
            tw_model_reset(m, n, state);
            for (size_t b = 0; b < n; b++)
                if (step[b] + 1 > look_back)
                    tw_model_set_before(m, n, state, b, (uint32_t)(step[b] + 1 - look_back));
            for (size_t back = look_back; back-- > 0;) {
                for (size_t b = 0; b < n; b++)
                    x[b] = step[b] >= back ? t->x_w[step[b] - back] : NAN;
                tw_model_step(m, n, state, x, out, par);
            }
            for (size_t b = 0; b < n; b++)
                fn(ctx, t, step[b], out + b * TW_OUTPUTS);
            n = 0;
        }
    }
}
