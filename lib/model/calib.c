/* SPDX-License-Identifier: Apache-2.0 */
/* A row is the margins, then for each anchor a ring of the bands put aside: as many as are under way at once.
 */
#include "model/calib.h"

#include "model/model.h"

#include <math.h>
#include <string.h>

struct aside {
    float low_w, high_w; /* NaN: none */
};

struct margins {
    float a[TW_CALIB_ANCHORS][TW_CALIB_SIDES];
};

static const uint8_t heads[TW_CALIB_ANCHORS] = {0, 2, 5, 8, 11, TW_HEAD_MEAN30, TW_HEAD_MEAN60};

/* Which anchors a lead lies between, and how far from the first to the second. */
static const struct {
    uint8_t a, b;
    float part;
} between[TW_HEADS] = {
    {0, 0, 0.0f},        {0, 1, 0.5f},        {1, 1, 0.0f},        {1, 2, 1.0f / 3.0f}, {1, 2, 2.0f / 3.0f},
    {2, 2, 0.0f},        {2, 3, 1.0f / 3.0f}, {2, 3, 2.0f / 3.0f}, {3, 3, 0.0f},        {3, 4, 1.0f / 3.0f},
    {3, 4, 2.0f / 3.0f}, {4, 4, 0.0f},        {5, 5, 0.0f},        {6, 6, 0.0f},
};

size_t tw_calib_head(size_t a)
{
    return heads[a];
}

void tw_calib_init(struct tw_calib *ret, double step_s)
{
    ret->period = (uint32_t)tw_input_steps(TW_CALIB_PERIOD_S, step_s);
    for (uint32_t a = 0; a < TW_CALIB_ANCHORS; a++) {
        ret->start[a][0] = ret->start[a][1] = 0.0f;
        ret->steps[a] = (uint32_t)tw_input_steps(tw_head_s(heads[a]), step_s);
        ret->places[a] = (ret->steps[a] + ret->period - 1) / ret->period;
        /* anchors take turns, so that no step has the work of all */
        ret->turn[a] = a * ret->period / TW_CALIB_ANCHORS;
    }
}

static size_t places_of(const struct tw_calib *c)
{
    size_t places = 0;
    for (size_t a = 0; a < TW_CALIB_ANCHORS; a++)
        places += c->places[a];
    return places;
}

size_t tw_calib_row_bytes(const struct tw_calib *c)
{
    return sizeof(struct margins) + places_of(c) * sizeof(struct aside);
}

void tw_calib_begin(const struct tw_calib *c, void *row)
{
    struct margins *m = row;
    struct aside *aside = (struct aside *)(void *)(m + 1);
    memcpy(m->a, c->start, sizeof m->a);
    for (size_t i = 0; i < places_of(c); i++)
        aside[i] = (struct aside){NAN, NAN};
}

static float width_of(float low_w, float high_w)
{
    const float w = high_w - low_w;
    return w > TW_CALIB_FLOOR_W ? w : TW_CALIB_FLOOR_W;
}

void tw_calib_outside(float low_w, float high_w, double y_w, float ret[static TW_CALIB_SIDES])
{
    const float w = width_of(low_w, high_w);
    ret[0] = (low_w - (float)y_w) / w;
    ret[1] = ((float)y_w - high_w) / w;
}

/* What anchor a should have said `steps` ago, in watts. */
static double came_w(const struct tw_input_shape *s, const struct tw_input_state *in, size_t i, size_t a,
                     size_t steps)
{
    double sum = 0.0;
    const bool mean = heads[a] >= TW_LEADS;
    for (size_t k = 0; k < (mean ? steps : 1); k++)
        sum += (double)tw_input_lag(s, in, i, k);
    if (mean)
        sum /= (double)steps;
    return (sum * s->scaler.std_w + s->scaler.mean_w) / (double)in->gain[i];
}

static float moved(float a, float outside, float r)
{
    const float z = (outside - a) / (TW_CALIB_SOFT * r);
    const float miss = z < -20.0f ? 0.0f : 1.0f / (1.0f + expf(-z));
    a += TW_CALIB_RATE * 0.5f * r * (miss - (float)tw_quantile_level[0]);
    return a < TW_CALIB_LEAST ? TW_CALIB_LEAST : a > TW_CALIB_MOST ? TW_CALIB_MOST : a;
}

static void learn(float a[static TW_CALIB_SIDES], const struct aside *was, double y_w)
{
    const float r = 1.0f + a[0] + a[1];
    float outside[TW_CALIB_SIDES];
    tw_calib_outside(was->low_w, was->high_w, y_w, outside);
    for (size_t side = 0; side < TW_CALIB_SIDES; side++)
        if (isfinite(outside[side]))
            a[side] = moved(a[side], outside[side], r);
}

void tw_calib_step(const struct tw_calib *c, const struct tw_input_shape *s, const struct tw_input_state *in,
                   size_t i, void *row, float *out_w)
{
    struct margins *m = row;
    struct aside *ring = (struct aside *)(void *)(m + 1);
    const uint32_t age = in->age[i], phase = age % c->period;
    for (size_t a = 0; a < TW_CALIB_ANCHORS; ring += c->places[a], a++) {
        const uint32_t due = c->steps[a] + c->turn[a];
        if (phase == due % c->period && age >= due && in->missing[i] == 0)
            learn(m->a[a], &ring[(age - due) / c->period % c->places[a]], came_w(s, in, i, a, c->steps[a]));
        if (phase == c->turn[a]) {
            const float *o = out_w + (size_t)heads[a] * TW_QUANTILES;
            ring[age / c->period % c->places[a]] = (struct aside){o[0], o[2]};
        }
    }
    for (size_t h = 0; h < TW_HEADS; h++) {
        const float *p = m->a[between[h].a], *q = m->a[between[h].b], part = between[h].part;
        float *o = out_w + h * TW_QUANTILES;
        const float w = width_of(o[0], o[2]);
        o[0] -= w * (p[0] + part * (q[0] - p[0]));
        o[2] += w * (p[1] + part * (q[1] - p[1]));
        o[0] = o[0] > o[1] ? o[1] : o[0];
        o[2] = o[2] < o[1] ? o[1] : o[2];
    }
}
