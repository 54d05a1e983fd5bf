/* SPDX-License-Identifier: Apache-2.0 */
/* The step: samples into the inputs, blocks of series through the model, watts out. A block is what a thread
 * takes: its outputs and gates stay in the cache. */
#include "model/model.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const double tw_quantile_level[TW_QUANTILES] = {0.1, 0.5, 0.9};

const struct tw_model_ops *const tw_model_table[] = {
#define TW_MODEL_ROW(id) &tw_model_##id,
    TW_MODEL_MAP(TW_MODEL_ROW)
#undef TW_MODEL_ROW
        NULL,
};

const struct tw_model_ops *tw_model_find(const char *name)
{
    for (size_t i = 0; tw_model_table[i]; i++)
        if (strcmp(tw_model_table[i]->name, name) == 0)
            return tw_model_table[i];
    return NULL;
}

double tw_head_s(size_t head)
{
    if (head < TW_LEADS)
        return (double)((head + 1) * TW_LEAD_S);
    return head == TW_HEAD_MEAN30 ? 30.0 : 60.0;
}

double tw_output_at(const float out[static TW_OUTPUTS], size_t q, double ahead_s)
{
    double at = ahead_s / TW_LEAD_S - 1.0;
    at = at < 0.0 ? 0.0 : at > TW_LEADS - 1 ? TW_LEADS - 1 : at;
    const size_t lead = (size_t)at < TW_LEADS - 1 ? (size_t)at : TW_LEADS - 2;
    const double a = (double)out[lead * TW_QUANTILES + q], b = (double)out[(lead + 1) * TW_QUANTILES + q];
    return a + (b - a) * (at - (double)lead);
}

void tw_model_init(struct tw_model *ret, const struct tw_model_ops *ops, const struct tw_kern *kern,
                   double step_s, struct tw_scaler scaler, size_t hidden)
{
    *ret = (struct tw_model){
        .ops = ops, .kern = kern, .gru = {.n_in = TW_INPUT_COUNT, .hidden = hidden, .n_out = TW_OUTPUTS}};
    tw_input_shape_init(&ret->input, step_s, scaler, 0);
    tw_input_shape_init(&ret->input, step_s, scaler, ops->look_back(ret));
    ret->calibrated = ops->spread;
    tw_calib_init(&ret->calib, step_s);
}

size_t tw_model_n_param(const struct tw_model *m)
{
    if (m->ops == &tw_model_gru)
        return tw_gru_n_param(&m->gru);
    return m->ops == &tw_model_ridge ? (m->input.w60 + 2) * TW_HEADS + TW_OUTPUTS : 0;
}

size_t tw_model_n_learned(const struct tw_model *m)
{
    return m->ops == &tw_model_gru ? tw_gru_n_learned(&m->gru) : tw_model_n_param(m);
}

/* The block: inputs, rows of the model, rows of the calibration; each at a multiple of 64. */

static size_t round64(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static size_t rows_bytes(const struct tw_model *m, size_t n)
{
    return round64(n * m->ops->row_floats(m) * sizeof(float));
}

static size_t calib_bytes(const struct tw_model *m)
{
    return m->calibrated ? tw_calib_row_bytes(&m->calib) : 0;
}

size_t tw_model_state_bytes(const struct tw_model *m, size_t n)
{
    return tw_input_bytes(&m->input, n) + rows_bytes(m, n) + round64(n * calib_bytes(m));
}

struct rows { /* of a block */
    float *model;
    unsigned char *calib;
};

static struct rows rows_of(const struct tw_model *m, size_t n, void *state)
{
    unsigned char *at = (unsigned char *)state + tw_input_bytes(&m->input, n);
    return (struct rows){(float *)(void *)at, at + rows_bytes(m, n)};
}

static void begin(const struct tw_model *m, const struct rows *r, size_t i)
{
    const size_t floats = m->ops->row_floats(m);
    memset(r->model + i * floats, 0, floats * sizeof *r->model);
    if (m->ops->begin)
        m->ops->begin(m, r->model + i * floats);
    if (m->calibrated)
        tw_calib_begin(&m->calib, r->calib + i * calib_bytes(m));
}

void tw_model_reset(const struct tw_model *m, size_t n, void *state)
{
    tw_input_reset(&m->input, n, state);
    const struct rows rows = rows_of(m, n, state);
    for (size_t i = 0; i < n; i++)
        begin(m, &rows, i);
}

void tw_model_reset_one(const struct tw_model *m, size_t n, void *state, size_t i)
{
    struct tw_input_state in = tw_input_view(&m->input, n, state);
    tw_input_forget(&in, i);
    const struct rows rows = rows_of(m, n, state);
    begin(m, &rows, i);
}

void tw_model_set_gain(const struct tw_model *m, size_t n, void *state, size_t i, float gain)
{
    struct tw_input_state in = tw_input_view(&m->input, n, state);
    assert(gain > 0.0f);
    in.gain[i] = gain;
}

void tw_model_set_before(const struct tw_model *m, size_t n, void *state, size_t i, uint32_t steps)
{
    struct tw_input_state in = tw_input_view(&m->input, n, state);
    in.before[i] = steps;
}

static void swap_if_less(float *a, float *b)
{
    if (*b < *a) {
        const float t = *a;
        *a = *b;
        *b = t;
    }
}

/* Units of the scaler to watts; the three quantiles of a head in order (which never makes a pinball loss
 * worse).
 */
static void to_watts(const struct tw_model *m, const struct tw_input_state *in, size_t i, const float *u,
                     float *out)
{
    const bool ready = tw_input_is_ready(&m->input, in, i);
    const double std = m->input.scaler.std_w, mean = m->input.scaler.mean_w, gain = (double)in->gain[i];
    for (size_t j = 0; j < TW_OUTPUTS; j++)
        out[j] = ready ? (float)(((double)u[j] * std + mean) / gain) : NAN;
    for (size_t j = 0; j < TW_OUTPUTS; j += TW_QUANTILES) {
        swap_if_less(out + j, out + j + 1);
        swap_if_less(out + j + 1, out + j + 2);
        swap_if_less(out + j, out + j + 1);
    }
}

struct step {
    const struct tw_model *m;
    struct tw_input_state in;
    struct rows rows;
    const float *x_w;
    float *out_w;
};

static void block(void *arg, unsigned b)
{
    struct step *s = arg;
    const struct tw_model *m = s->m;
    const size_t floats = m->ops->row_floats(m), i0 = (size_t)b * TW_MODEL_BLOCK;
    const size_t n = s->in.n - i0 < TW_MODEL_BLOCK ? s->in.n - i0 : TW_MODEL_BLOCK;
    float u[TW_MODEL_BLOCK * TW_OUTPUTS];
    for (size_t i = i0; i < i0 + n; i++) {
        tw_input_push(&m->input, &s->in, i, s->x_w[i]);
        if (s->in.age[i] <= 1) /* a series begins with a fresh row, however long nothing was seen */
            begin(m, &s->rows, i);
    }
    m->ops->predict(m, &s->in, i0, n, s->rows.model + i0 * floats, u);
    for (size_t i = i0; i < i0 + n; i++) {
        float *out = s->out_w + i * TW_OUTPUTS;
        to_watts(m, &s->in, i, u + (i - i0) * TW_OUTPUTS, out);
        if (m->calibrated)
            tw_calib_step(&m->calib, &m->input, &s->in, i, s->rows.calib + i * calib_bytes(m), out);
    }
}

void tw_model_step(const struct tw_model *m, size_t n, void *state, const float *x_w, float *out_w,
                   const struct tw_par *par)
{
    struct step s = {.m = m,
                     .in = tw_input_view(&m->input, n, state),
                     .rows = rows_of(m, n, state),
                     .x_w = x_w,
                     .out_w = out_w};
    const unsigned blocks = (unsigned)((n + TW_MODEL_BLOCK - 1) / TW_MODEL_BLOCK);
    tw_par_run(blocks > 1 ? par : NULL, block, &s, blocks);
    tw_input_advance(&s.in);
}
