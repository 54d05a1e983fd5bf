/* SPDX-License-Identifier: Apache-2.0 */
/* train/ridgefit.h - fit the linear forecaster: normal equations on the training windows, the strength of each
 * head chosen on the validation windows by mean absolute error, the outer quantiles from training residuals. */
#ifndef TW_TRAIN_RIDGEFIT_H
#define TW_TRAIN_RIDGEFIT_H

#include "train/score.h"

/* m is a ridge on the grid of ds; param[tw_model_n_param(m)]. mem of tw_ridge_fit_bytes, aligned to 64.
 * TW_ENODATA when there is no training window. */
size_t tw_ridge_fit_bytes(const struct tw_model *m, const struct tw_dataset *ds);
TW_MUST_USE
enum tw_err tw_ridge_fit(const struct tw_model *m, const struct tw_dataset *ds, void *mem, float *param,
                         struct tw_why *why);

#endif
