/* SPDX-License-Identifier: Apache-2.0 */
/* model/ridge.h - the features of the linear forecaster, for those who fit it. */
#ifndef TW_MODEL_RIDGE_H
#define TW_MODEL_RIDGE_H

#include "model/model.h"

#define TW_RIDGE_MOST 66 /* features at the most: a minute at 1 s and what goes with it */

static inline size_t tw_ridge_n_feature(const struct tw_input_shape *s)
{
    return s->w60 + 2;
}

/* ret[tw_ridge_n_feature] of series i, whose sample was pushed. */
void tw_ridge_features(const struct tw_input_shape *s, const struct tw_input_state *in, size_t i, float *ret);

#endif
