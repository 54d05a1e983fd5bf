/* SPDX-License-Identifier: Apache-2.0 */
/* base/jsonw.h - write JSON as it is made, to a function that the caller hands in.
 *
 * Nothing is built in memory. Doubles are printed so that reading them gives the same bits; NaN and infinity,
 * our "missing", become null. Strings that are not UTF-8 are repaired with U+FFFD. `key` is NULL inside an
 * array and at the top. Wrong nesting is our own mistake and trips an assert; a sink that fails is remembered
 * in `err`, and the rest of the writing does nothing, so that it is looked at once, at the end. */
#ifndef TW_BASE_JSONW_H
#define TW_BASE_JSONW_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Take n bytes. Anything but TW_OK ends the writing. */
typedef enum tw_err (*tw_sink_fn)(void *ctx, const char *bytes, size_t n);

#define TW_JSONW_DEPTH 32

struct tw_jsonw {
    tw_sink_fn put;
    void *ctx;
    bool pretty; /* two-space indent and newlines */
    enum tw_err err;
    unsigned depth;
    bool has_item[TW_JSONW_DEPTH];
    bool is_array[TW_JSONW_DEPTH];
};

void tw_jsonw_init(struct tw_jsonw *w, tw_sink_fn put, void *ctx, bool pretty);
void tw_jsonw_object(struct tw_jsonw *w, const char *key);
void tw_jsonw_array(struct tw_jsonw *w, const char *key);
void tw_jsonw_end(struct tw_jsonw *w); /* of the innermost object or array; a newline after the outermost */
void tw_jsonw_str(struct tw_jsonw *w, const char *key, const char *value); /* NULL: null */
void tw_jsonw_f64(struct tw_jsonw *w, const char *key, double value);
/* The same rounded to `digits` significant digits, for figures whose last bits mean nothing. */
void tw_jsonw_num(struct tw_jsonw *w, const char *key, double value, int digits);
void tw_jsonw_i64(struct tw_jsonw *w, const char *key, int64_t value);
void tw_jsonw_bool(struct tw_jsonw *w, const char *key, bool value);
void tw_jsonw_null(struct tw_jsonw *w, const char *key);

#endif
