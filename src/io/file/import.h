/* SPDX-License-Identifier: Apache-2.0 */
/* io/file/import.h - any supported file into series, recognised by content.
 *
 * Gzip is unpacked on the way. A broken row is counted by reason, with the line where that reason was first
 * met, and reading goes on; only a file in no known format is an error. Gaps stay gaps. Rows whose GPU is not
 * written down (a plain nvidia-smi log of several GPUs) are told apart by their rounds. */
#ifndef TW_IO_FILE_IMPORT_H
#define TW_IO_FILE_IMPORT_H

#include "base/err.h"
#include "series/series.h"

#include <stddef.h>
#include <stdint.h>

/* Why a row was left out. Texts are what --json prints. */
#define TW_REJECT_MAP(X)                                                                                       \
    X(FIELDS, "wrong number of fields")                                                                        \
    X(TORN, "torn or spliced line")                                                                            \
    X(TIME, "unreadable time")                                                                                 \
    X(TIME_BACK, "time goes back")                                                                             \
    X(VALUE, "unreadable number")                                                                              \
    X(RANGE, "value out of range")                                                                             \
    X(NO_POWER, "no power in the row")                                                                         \
    X(ERROR_CODE, "error code instead of a value")                                                             \
    X(NUL_BYTES, "NUL bytes")                                                                                  \
    X(CUT, "cut line at the end of the file")                                                                  \
    X(TOO_LONG, "line too long")                                                                               \
    X(CORRUPT_GZIP, "compressed data damaged or cut")

enum tw_reject {
#define TW_REJECT_ENUM(id, text) TW_REJECT_##id,
    TW_REJECT_MAP(TW_REJECT_ENUM)
#undef TW_REJECT_ENUM
        TW_REJECT_COUNT
};

struct tw_reject_count {
    uint64_t count;
    uint64_t first_line; /* from 1, in the unpacked text; 0 when count is 0 */
};

struct tw_import {
    const char *format;       /* "nvidia-smi-csv", "mlperf-power", ...; static storage */
    uint64_t rows;            /* rows that became samples */
    double span_s;            /* from the first sample to the last, over all series */
    struct tw_series *series; /* [n_series] */
    size_t n_series;
    struct tw_reject_count rejected[TW_REJECT_COUNT];
};

extern const char *const tw_reject_text[TW_REJECT_COUNT];

/* Read one file. On success *ret is a heap object of the caller's: tw_import_free.
 * TW_ENOENT, TW_EPERM, TW_EINVAL (a directory), TW_EPARSE (no known format; why names what was seen),
 * TW_ELIMIT, TW_EIO, TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_import_read(const char *path, struct tw_import **ret, struct tw_why *why);
void tw_import_free(struct tw_import *imp); /* NULL is fine */

#endif
