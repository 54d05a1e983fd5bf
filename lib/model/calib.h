/* SPDX-License-Identifier: Apache-2.0 */
/* model/calib.h - the outer quantiles of a series, kept true to its own errors while it runs.
 *
 * Where a model says low .. high, of the width w = high - low, the calibrated band is
 *
 *     low - a w .. high + b w,        and never past the middle quantile, which is not touched
 *
 * (Romano, Patterson and Candes, "Conformalized quantile regression", 2019, with the score in units of the
 * width). The margins a and b are fitted on validation runs and then follow the series, in the manner of Gibbs
 * and Candes, "Adaptive conformal inference under distribution shift", 2021: every TW_CALIB_PERIOD_S the band
 * that the model gave is put aside, and when its time has come and the value y is known, each margin moves by
 *
 *     a += TW_CALIB_RATE r/2 (m - 0.1),    m = 1 / (1 + exp(-(e - a) / (TW_CALIB_SOFT r))),
 *
 * where e is (low - y) / w for a, (y - high) / w for b, and r = 1 + a + b the calibrated width in widths. m is
 * a miss, 0 or 1, with its edge softened, so that a margin does not jump at each. It rests where a tenth of the
 * values lies beyond. Leads 5, 15, 30, 45 and 60 s and the two means have margins of their own; other leads lie
 * on lines between.
 *
 * A series takes tw_calib_row_bytes (192 on a grid of 1 s); no pointers inside. */
#ifndef TW_MODEL_CALIB_H
#define TW_MODEL_CALIB_H

#include "feature/input.h"

#include <stdbool.h>

enum { TW_CALIB_ANCHORS = 7, TW_CALIB_SIDES = 2 }; /* sides: below, above */

#define TW_CALIB_PERIOD_S 15.0
#define TW_CALIB_RATE 0.2f
#define TW_CALIB_SOFT 0.07f
#define TW_CALIB_LEAST (-0.45f) /* margins stay within these */
#define TW_CALIB_MOST 100.0f
#define TW_CALIB_FLOOR_W 0.2f /* a width counts as at least so much */

struct tw_calib {
    float start[TW_CALIB_ANCHORS][TW_CALIB_SIDES]; /* margins that a series begins with */
    /* of the grid */
    uint32_t period, steps[TW_CALIB_ANCHORS], places[TW_CALIB_ANCHORS], turn[TW_CALIB_ANCHORS];
};

/* The head of model/model.h that anchor a is. */
size_t tw_calib_head(size_t a);

/* For a grid of step_s; margins of 0: as the model says. */
void tw_calib_init(struct tw_calib *ret, double step_s);

/* Bytes of a row, a multiple of 8, and how a series begins. */
size_t tw_calib_row_bytes(const struct tw_calib *c);
void tw_calib_begin(const struct tw_calib *c, void *row);

/* One step of series i, whose sample was pushed and before tw_input_advance: learn from what has come, put
 * aside what is due, and move the outer quantiles of out_w (in watts and in order). A sample that is missing
 * teaches nothing. */
void tw_calib_step(const struct tw_calib *c, const struct tw_input_shape *s, const struct tw_input_state *in,
                   size_t i, void *row, float *out_w);

/* How far y lies outside low_w .. high_w, in widths, to each side (negative: inside). */
void tw_calib_outside(float low_w, float high_w, double y_w, float ret[static TW_CALIB_SIDES]);

#endif
