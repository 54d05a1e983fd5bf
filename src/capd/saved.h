/* SPDX-License-Identifier: Apache-2.0 */
/* capd/saved.h - what must survive a power cut: the value found on each GPU that is ours to put back.
 *
 *   tokwatt-capd 1 #SUM
 *   gpu UUID found 700.000 budget #SUM
 *   gpu UUID found unknown free #SUM
 *   end 2 #SUM
 *
 * SUM is the first 8 hexadecimal digits of the SHA-256 of the line before " #", and ties each line on its own,
 * so that of a damaged file the whole lines are still believed. A file without its "end" line, or whose count
 * is wrong, is not whole: what it may have lost is then unknown. */
#ifndef TW_CAPD_SAVED_H
#define TW_CAPD_SAVED_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define TW_SAVED_GPUS 128 /* those listed, and some that a newer configuration left out */
#define TW_SAVED_BYTES ((size_t)(TW_SAVED_GPUS + 3) * 160)

struct tw_saved_gpu {
    char uuid[48];
    double found_w; /* NaN: unknown */
    bool budget;
};

struct tw_saved {
    size_t n;
    bool whole;
    struct tw_saved_gpu gpu[TW_SAVED_GPUS];
};

/* Never fails: what cannot be believed is left out, and whole is false. */
void tw_saved_parse(const char *text, size_t n, struct tw_saved *ret);
/* The text of s into buf [TW_SAVED_BYTES]; returns its length. */
size_t tw_saved_print(const struct tw_saved *s, char *buf);

#endif
