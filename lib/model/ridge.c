/* SPDX-License-Identifier: Apache-2.0 */
/* Linear on the past minute: differences of each value to the last one, the last one, and a constant. The outer
 * quantiles stand at fixed distances from the middle one (those of the residuals in training).
 *
 * Parameters: weight [w60 + 2][TW_HEADS], then offset [TW_HEADS][TW_QUANTILES]. Features: lag 1 .. w60 minus
 * lag 0, lag 0, 1. */
#include "model/ridge.h"

#include <string.h>

static size_t look_back(const struct tw_model *m)
{
    return m->input.w60 + 1;
}

static size_t none(const struct tw_model *m)
{
    (void)m;
    return 0;
}

void tw_ridge_features(const struct tw_input_shape *s, const struct tw_input_state *in, size_t i, float *ret)
{
    const float now = tw_input_lag(s, in, i, 0);
    for (size_t lag = 1; lag <= s->w60; lag++)
        ret[lag - 1] = tw_input_lag(s, in, i, lag) - now;
    ret[s->w60] = now;
    ret[s->w60 + 1] = 1.0f;
}

static void predict(const struct tw_model *m, const struct tw_input_state *in, size_t i0, size_t n, float *row,
                    float *u)
{
    (void)row;
    const size_t n_feature = tw_ridge_n_feature(&m->input);
    const float *offset = m->param + n_feature * TW_HEADS;
    for (size_t i = 0; i < n; i++, u += TW_OUTPUTS) {
        float x[TW_RIDGE_MOST], y[TW_HEADS] = {0};
        tw_ridge_features(&m->input, in, i0 + i, x);
        for (size_t f = 0; f < n_feature; f++)
            for (size_t h = 0; h < TW_HEADS; h++)
                y[h] += x[f] * m->param[f * TW_HEADS + h];
        for (size_t j = 0; j < TW_OUTPUTS; j++)
            u[j] = y[j / TW_QUANTILES] + offset[j];
    }
}

const struct tw_model_ops tw_model_ridge = {
    .name = "ridge",
    .help = "ridge regression on the past 60 s",
    .spread = true,
    .look_back = look_back,
    .row_floats = none,
    .predict = predict,
};
