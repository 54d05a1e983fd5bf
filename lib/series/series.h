/* SPDX-License-Identifier: Apache-2.0 */
/* series/series.h - what one thing (a GPU, a server) reported over time.
 *
 * Columns of one length: a time column, never decreasing, and a column for each channel that the source has
 * (NULL for one that it lacks). Gaps stay gaps: nothing is filled in here, and the times are those of the
 * source. The memory is whoever made the series' own; see there. */
#ifndef TW_SERIES_SERIES_H
#define TW_SERIES_SERIES_H

#include "series/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tw_scope { TW_SCOPE_GPU, TW_SCOPE_SERVER, TW_SCOPE_OTHER };

struct tw_series {
    char name[64];  /* "gpu0", "server", "n1": unique in its file, never empty */
    char uuid[48];  /* "" when the source does not tell */
    char model[64]; /* likewise */
    enum tw_scope scope;
    bool wall;              /* times are Unix time; else they count from the start of the recording */
    size_t n;               /* rows */
    int64_t *time_us;       /* [n] microseconds, never decreasing */
    float *ch[TW_CH_COUNT]; /* [n] each or NULL; NaN = missing */
};

/* Seconds from the first row to the last; 0 with fewer than two rows. */
double tw_series_span_s(const struct tw_series *s);
/* Median of the steps between rows in seconds (of at most 4096 of them, taken evenly); NaN with fewer than two
 * rows. */
double tw_series_step_s(const struct tw_series *s);
/* Holes in the recording: steps of more than a second and of more than five times that median. *ret_longest_s
 * (NULL is fine) is the longest of them, or 0. */
size_t tw_series_gaps(const struct tw_series *s, double *ret_longest_s);

#endif
