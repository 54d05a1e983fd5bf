/* SPDX-License-Identifier: Apache-2.0 */
/* codec/ptd.h - logs of a power analyzer as SPEC PTDaemon writes them (spl.txt of MLPerf Inference).
 *
 *   Time,07-12-2024 23:12:12.830,Watts,2382.900000,Volts,..,Amps,..,PF,..,Mark,name,Ch1,Watts,..,Ch2,..
 *
 * Pairs of name and value; the Watts before the first channel are the total. Watts below 0 (-1, -2) are error
 * codes, not power. Local time without a zone, taken as UTC (codec/stamp.h). */
#ifndef TW_CODEC_PTD_H
#define TW_CODEC_PTD_H

#include "codec/rows.h"
#include "codec/stamp.h"

#include <stdbool.h>
#include <stddef.h>

struct tw_ptd {
    struct tw_lines lines;
    struct tw_stamp stamp;
    size_t n_fields; /* of the first good line; the others must have as many */
};

bool tw_ptd_recognise(const char *text, size_t n); /* text[n - 1] is a newline */

/* As tw_csv_feed (codec/csv.h); power goes to `slot`. All zero to start. */
size_t tw_ptd_feed(struct tw_ptd *ptd, const char *text, size_t n, bool cut, unsigned slot,
                   struct tw_rows *rows);

#endif
