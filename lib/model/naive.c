/* SPDX-License-Identifier: Apache-2.0 */
/* last: the present value, at every lead. mean60: the mean of the past minute. */
#include "model/model.h"

#include <math.h>

static size_t none(const struct tw_model *m)
{
    (void)m;
    return 0;
}

static void constant(const struct tw_model *m, const struct tw_input_state *in, size_t i0, size_t n, bool mean,
                     float *u)
{
    for (size_t i = 0; i < n; i++) {
        float x[TW_INPUT_COUNT];
        tw_input_read(&m->input, in, i0 + i, x);
        const float y = mean ? x[TW_INPUT_MEAN60] : tw_input_lag(&m->input, in, i0 + i, 0);
        for (size_t j = 0; j < TW_OUTPUTS; j++)
            u[i * TW_OUTPUTS + j] = j % TW_QUANTILES == 1 ? y : NAN;
    }
}

static void last(const struct tw_model *m, const struct tw_input_state *in, size_t i0, size_t n, float *row,
                 float *u)
{
    (void)row;
    constant(m, in, i0, n, false, u);
}

static void mean60(const struct tw_model *m, const struct tw_input_state *in, size_t i0, size_t n, float *row,
                   float *u)
{
    (void)row;
    constant(m, in, i0, n, true, u);
}

const struct tw_model_ops tw_model_last = {
    .name = "last",
    .help = "the last value",
    .look_back = none,
    .row_floats = none,
    .predict = last,
};

const struct tw_model_ops tw_model_mean60 = {
    .name = "mean60",
    .help = "the mean of the past 60 s",
    .look_back = none,
    .row_floats = none,
    .predict = mean60,
};
