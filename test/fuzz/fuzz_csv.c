/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a CSV recording: header and rows, fed whole, then again in pieces and with room for few rows at
 * a time. The columns are those of the real table, through the format's own start and feed. */
#include "fuzz.h"
#include "io/file/format.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 4096 };

static struct tw_reader reader, again;

/* Rows of text[n], `room` at a time; their number, and a sum over everything in them. */
static size_t read_all(struct tw_reader *r, const char *text, size_t n, bool cut, size_t room,
                       uint64_t *ret_sum)
{
    static int64_t time_us[ROWS];
    static uint32_t key[ROWS], line[ROWS];
    static float slot[TW_ROWS_SLOTS][ROWS];
    struct tw_rows rows = {.cap = room, .time_us = time_us, .key = key, .line = line};
    for (size_t s = 0; s < TW_ROWS_SLOTS; s++)
        rows.slot[s] = r->slot_used[s] ? slot[s] : NULL;
    size_t total = 0;
    uint64_t sum = 0;
    while (n > 0) {
        rows.n = 0;
        size_t used = r->format->feed(r, text, n, cut, &rows);
        fuzz_check(used <= n && (used > 0 || rows.n > 0) && rows.n <= rows.cap);
        for (size_t i = 0; i < rows.n; i++) {
            sum = sum * 31 + (uint64_t)time_us[i] + key[i] + line[i];
            for (size_t s = 0; s < TW_ROWS_SLOTS; s++)
                if (rows.slot[s]) {
                    uint32_t bits;
                    memcpy(&bits, &slot[s][i], sizeof bits);
                    sum = sum * 31 + bits;
                }
        }
        total += rows.n;
        text += used;
        n -= used;
    }
    *ret_sum = sum;
    return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct tw_why why;
    size_t used = 0;
    bool cut = size > 0 && data[size - 1] != '\n';
    size_t n = size + (cut ? 1 : 0);
    reader.format = &tw_format_table[0];
    if (reader.format->start(&reader, text, n, &used, &why) == TW_OK) {
        memcpy(&again, &reader, sizeof again);
        uint64_t a, b;
        size_t whole = read_all(&reader, text + used, n - used, cut, ROWS, &a);
        fuzz_check(read_all(&again, text + used, n - used, cut, 512, &b) == whole && a == b);
        fuzz_check(memcmp(reader.as.csv.lines.rejected, again.as.csv.lines.rejected,
                          sizeof reader.as.csv.lines.rejected) == 0);
    }
    free(text);
    return 0;
}
