/* SPDX-License-Identifier: Apache-2.0 */
/* codec/reject.h - why a line of a recording was left out.
 *
 * Reading never stops at a broken line: it is counted under one reason, with the number of the line where that
 * reason was first met. Blank lines, a header repeated inside the file and records that are not readings (other
 * keys of an MLPerf log) are no rejects. */
#ifndef TW_CODEC_REJECT_H
#define TW_CODEC_REJECT_H

#include <stdint.h>

/* id, what a person and --json read */
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

extern const char *const tw_reject_text[TW_REJECT_COUNT];

void tw_reject_add(struct tw_reject_count rejected[TW_REJECT_COUNT], enum tw_reject reason, uint64_t line);
uint64_t tw_reject_total(const struct tw_reject_count rejected[TW_REJECT_COUNT]);

#endif
