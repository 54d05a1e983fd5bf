/* SPDX-License-Identifier: Apache-2.0 */
/* io/file/format.h - the formats that recordings come in: one row of a table each.
 *
 * A new format is a codec in lib/codec, two functions here and a row in tw_format_table. */
#ifndef TW_IO_FILE_FORMAT_H
#define TW_IO_FILE_FORMAT_H

#include "base/err.h"
#include "codec/csv.h"
#include "codec/mllog.h"
#include "codec/ptd.h"
#include "codec/rows.h"

#include <stdbool.h>
#include <stddef.h>

/* Whose rows are they when the rows do not say? */
enum tw_anon { TW_ANON_ROUNDS, TW_ANON_GPU, TW_ANON_SERVER };

struct tw_format;

/* A file being read: the state of its codec and what is known about it. */
struct tw_reader {
    const struct tw_format *format;
    struct tw_lines *lines;
    struct tw_keys *keys; /* NULL: no row says whose it is */
    bool wall;
    bool slot_used[TW_ROWS_SLOTS];
    union {
        struct tw_csv csv;
        struct tw_mllog mllog;
        struct tw_ptd ptd;
    } as;
};

struct tw_format {
    const char *name;
    const char *help;
    enum tw_anon anon;
    bool ids_are_names; /* the ids of rows are names of series; else UUIDs */
    /* MUST. Is text[n], the beginning of a file (whole lines), in this format? */
    bool (*recognise)(const char *text, size_t n);
    /* MUST. Ready for the first line behind *ret_used bytes; fills lines, keys, wall and slot_used. */
    enum tw_err (*start)(struct tw_reader *r, const char *text, size_t n, size_t *ret_used, struct tw_why *why);
    /* MUST. As tw_csv_feed (codec/csv.h). */
    size_t (*feed)(struct tw_reader *r, const char *text, size_t n, bool cut, struct tw_rows *rows);
};

extern const struct tw_format tw_format_table[];
extern const size_t tw_format_count;

/* The format of a file that begins with text[n], or NULL. */
const struct tw_format *tw_format_of(const char *text, size_t n);

#endif
