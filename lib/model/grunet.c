/* SPDX-License-Identifier: Apache-2.0 */
/* gru: one gated recurrent unit over the inputs of feature/input.h, its state carried for as long as the series
 * runs. The row of a series is that of nn/gru.h. */
#include "model/model.h"

#include <string.h>

static size_t none(const struct tw_model *m)
{
    (void)m;
    return 0;
}

static size_t row_floats(const struct tw_model *m)
{
    return tw_gru_row_ld(&m->gru);
}

static void begin(const struct tw_model *m, float *row)
{
    row[m->gru.hidden + m->gru.n_in] = 1.0f;
}

#define MOST_HIDDEN 128 /* bounds the scratch on the stack; model files above it are refused */

static void predict(const struct tw_model *m, const struct tw_input_state *in, size_t i0, size_t n, float *row,
                    float *u)
{
    enum { SLICE = 12 }; /* rows at a time: two tiles of six; gates of 12 x 4 x 64 floats stay in the cache */
    const size_t ld = tw_gru_row_ld(&m->gru), out_ld = tw_gru_out_ld(&m->gru);
    _Alignas(64) float gate[SLICE * 4 * MOST_HIDDEN];
    _Alignas(64) float y[SLICE * ((TW_OUTPUTS + TW_KERN_PAD - 1) / TW_KERN_PAD * TW_KERN_PAD)];
    for (size_t i = 0; i < n; i++)
        tw_input_read(&m->input, in, i0 + i, row + i * ld + m->gru.hidden);
    for (size_t i = 0; i < n; i += SLICE) {
        const size_t rows = n - i < SLICE ? n - i : SLICE;
        tw_gru_step(m->kern, &m->gru, m->param, rows, row + i * ld, gate, y);
        for (size_t j = 0; j < rows; j++)
            memcpy(u + (i + j) * TW_OUTPUTS, y + j * out_ld, TW_OUTPUTS * sizeof *u);
    }
}

const struct tw_model_ops tw_model_gru = {
    .name = "gru",
    .help = "gated recurrent unit, state carried",
    .trained = true,
    .spread = true,
    .look_back = none,
    .row_floats = row_floats,
    .begin = begin,
    .predict = predict,
};
