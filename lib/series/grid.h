/* SPDX-License-Identifier: Apache-2.0 */
/* series/grid.h - a series on an even grid, as forecasts want it.
 *
 * A source that is quicker than the grid is averaged in bins [start + k step, start + (k + 1) step); one that
 * is as slow as the grid holds its last value at start + k step. A step without a value of its own holds the
 * last one for at most hold_s; what is longer is a gap, NaN, as is all before the first value. `start` is that
 * of the file, not of the series, so that the GPUs of one file share their bins. */
#ifndef TW_SERIES_GRID_H
#define TW_SERIES_GRID_H

#include "series/series.h"

#define TW_GRID_HOLD_S 60.0

/* The grid for a source whose rows are median_s apart: 1 s below 0.75 s, else the nearest whole second. NaN for
 * NaN. */
double tw_grid_step_s(double median_s);

/* Steps from start_us to the last row of s; 0 for an empty series or one that ends before start_us. */
size_t tw_grid_count(const struct tw_series *s, int64_t start_us, double step_s);

/* Fill ret[n]; n as tw_grid_count gave, or less. mean: average in bins, else hold the last value. A series
 * without the channel gives NaN throughout. */
void tw_grid_fill(const struct tw_series *s, enum tw_channel ch, int64_t start_us, double step_s, bool mean,
                  double hold_s, size_t n, float *ret);

#endif
