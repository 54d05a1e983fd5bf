/* SPDX-License-Identifier: Apache-2.0 */
/* codec/csv.h - recordings as CSV: nvidia-smi --format=csv, DCGM and NVML dumps, BMC logs.
 *
 * The header decides what each column is, by the caller's table of names. Cells may carry their unit ("69.32
 * W", "0 %") or not, be quoted, be padded with blanks; lines end in LF or CR LF. A cell that is empty or says
 * N/A, [N/A], [Not Supported], [Insufficient Permissions] and the like is missing (NaN). What makes a row
 * unusable: a wrong number of fields, a time or number that cannot be read, NaN or a value outside its bounds
 * in the required column, or a required column that is missing.
 *
 * A wide recording has a column for each thing ("n1_watts,n2_watts"): one line becomes a row for each. */
#ifndef TW_CODEC_CSV_H
#define TW_CODEC_CSV_H

#include "base/err.h"
#include "codec/rows.h"
#include "codec/stamp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_CSV_COLS 512 /* nvidia-smi with all fields has 212 */

enum tw_csv_kind {
    TW_CSV_SKIP,
    TW_CSV_WALL,     /* time of day or Unix seconds */
    TW_CSV_WALL_US,  /* Unix time in whole microseconds */
    TW_CSV_SINCE,    /* seconds since the recording began */
    TW_CSV_SINCE_US, /* microseconds since the recording began */
    TW_CSV_INDEX,    /* number of a GPU */
    TW_CSV_ID,       /* UUID or name of a GPU or server: rows are told apart by it rather than by an index */
    TW_CSV_MODEL,    /* name of the hardware */
    TW_CSV_VALUE,
    TW_CSV_BITS, /* a set of bits, decimal or 0x; the low 24 are kept */
};

/* A name that a header may hold. Names are compared without case, without the unit in brackets and without
 * blanks around them. */
struct tw_csv_name {
    const char *name; /* with wide: the end of the name, what comes before it names the series */
    enum tw_csv_kind kind;
    uint8_t slot;
    bool wide;
    bool required;    /* a row without it is rejected as TW_REJECT_NO_POWER */
    int8_t exp10;     /* value = written * 10^exp10 * 2^exp2 */
    uint8_t exp2;     /* 0 to 63 */
    const char *unit; /* that a cell, or the header in brackets, may carry; "" for none */
};

/* What a reading of a slot can be; outside it is none: missing, or in a required column a rejected row. */
struct tw_csv_bounds {
    double lowest, highest;
};

struct tw_csv_col {
    enum tw_csv_kind kind;
    uint8_t slot;
    bool required;
    int exp10;
    double pow2;
    double lowest, highest;
    char unit[16];
    size_t unit_n;
    uint64_t unit_bits, unit_mask; /* its first 8 bytes as a word, for one comparison */
    uint32_t group;                /* of a wide recording: rows of this line */
};

struct tw_csv {
    struct tw_lines lines;
    struct tw_keys keys;
    struct tw_stamp stamp;
    struct tw_csv_col col[TW_CSV_COLS];
    size_t n_cols;
    size_t n_groups; /* 1, or the series of a wide recording, which are keys 0 to n_groups - 1 */
    bool wide;
    bool has_time, has_required, has_key, wall;
    bool slot_used[TW_ROWS_SLOTS];
    char header[8192]; /* the first bytes of it, to know it again */
    size_t header_n;
};

/* Read the header, the first line of text that is not blank (text[0..n) holds it whole, newline included;
 * *ret_used bytes are behind its newline). Where two columns lead to one slot the first name of the table wins.
 * TW_EPARSE: not CSV, or none of the names; TW_ELIMIT: too many columns. */
TW_MUST_USE
enum tw_err tw_csv_start(struct tw_csv *csv, const char *text, size_t n, const struct tw_csv_name *names,
                         size_t n_names, const struct tw_csv_bounds bounds[TW_ROWS_SLOTS], size_t *ret_used,
                         struct tw_why *why);

/* Read whole lines (text[n - 1] is a newline, see codec/rows.h for what is behind it) until they are done or
 * rows is full; every slot of slot_used must be there. cut: the last line had no newline of its own; a bare
 * number at its end may have lost digits, so it is missing. Returns the bytes consumed, a whole number of
 * lines. */
size_t tw_csv_feed(struct tw_csv *csv, const char *text, size_t n, bool cut, struct tw_rows *rows);

#endif
