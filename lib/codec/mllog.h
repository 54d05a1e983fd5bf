/* SPDX-License-Identifier: Apache-2.0 */
/* codec/mllog.h - power logs of MLPerf: lines ":::MLLOG {json}" whose key is power_reading.
 *
 * time_ms is Unix time in milliseconds, value the watts of a whole server, as integer, float or string. Records
 * of other keys are passed over; a reading of null (or "null") has no power. The readings of one file are of
 * one server. */
#ifndef TW_CODEC_MLLOG_H
#define TW_CODEC_MLLOG_H

#include "codec/rows.h"

#include <stdbool.h>
#include <stddef.h>

struct tw_mllog {
    struct tw_lines lines;
};

/* Does the text hold a power reading? */
bool tw_mllog_recognise(const char *text, size_t n);

/* As tw_csv_feed (codec/csv.h); power goes to `slot`. All zero to start. */
size_t tw_mllog_feed(struct tw_mllog *log, const char *text, size_t n, bool cut, unsigned slot,
                     struct tw_rows *rows);

#endif
