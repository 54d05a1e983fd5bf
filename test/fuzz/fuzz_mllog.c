/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a log of this codec: it ends, counts every line once and gives powers within their bounds. */
#include "codec/mllog.h"
#include "fuzz.h"

#include <stdbool.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int64_t time_us[64];
    static uint32_t key[64], line[64];
    static float power_w[64];
    struct tw_rows rows = {.cap = 64, .time_us = time_us, .key = key, .line = line, .slot = {power_w}};
    struct tw_mllog log = {0};
    char *text = fuzz_text(data, size), *p = text;
    bool cut = size > 0 && data[size - 1] != '\n';
    size_t n = size + (cut ? 1 : 0), lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    if (n > 0)
        (void)tw_mllog_recognise(text, n);
    while (n > 0) {
        rows.n = 0;
        size_t used = tw_mllog_feed(&log, p, n, cut, 0, &rows);
        fuzz_check(used > 0 && used <= n);
        for (size_t i = 0; i < rows.n; i++)
            fuzz_check(power_w[i] >= 0.0F && power_w[i] <= 1e6F && time_us[i] > 0 && line[i] <= lines);
        p += used;
        n -= used;
    }
    fuzz_check(log.lines.line == lines);
    fuzz_check(tw_reject_total(log.lines.rejected) <= lines);
    free(text);
    return 0;
}
