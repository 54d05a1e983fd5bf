/* SPDX-License-Identifier: Apache-2.0 */
/* train/calibfit.h - the margins that calibration begins with (model/calib.h), from validation runs.
 *
 * Served without calibration over the validation windows, twins left out, the margin of a head is the 80th
 * percentile of how far values lie outside the model's band, in widths, so that four fifths lie inside. It is
 * one for both sides: validation runs are few, and which side they miss on says little about the next run. It
 * is drawn towards 0 when there is little to go by, times minutes / (minutes + 20): windows overlap, and only
 * about one a minute tells something new. */
#ifndef TW_TRAIN_CALIBFIT_H
#define TW_TRAIN_CALIBFIT_H

#include "train/score.h"

/* Sets m->calib.start; all stay 0 without a validation window, and for a model that is not calibrated. mem of
 * tw_calib_fit_bytes, aligned to 64. */
size_t tw_calib_fit_bytes(const struct tw_model *m, const struct tw_dataset *ds);
void tw_calib_fit(struct tw_model *m, const struct tw_dataset *ds, const struct tw_par *par, void *mem);

#endif
