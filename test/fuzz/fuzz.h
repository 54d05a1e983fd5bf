/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what the fuzz targets share. */
#ifndef TW_TEST_FUZZ_H
#define TW_TEST_FUZZ_H

#include "codec/rows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_check(cond) ((cond) ? (void)0 : abort())

/* A copy on the heap (so that reading too far is seen) that ends in a newline and has the padding that readers
 * may load but not use; the caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1 + TW_TEXT_PAD);
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\n';
    memset(text + size + 1, '7', TW_TEXT_PAD - 1);
    text[size + TW_TEXT_PAD] = '\0';
    return text;
}

#endif
