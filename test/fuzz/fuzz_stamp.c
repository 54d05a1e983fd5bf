/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as times, one after the other through one cache: with and without what it holds the answer is the
 * same. */
#include "codec/stamp.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct tw_stamp cache = {0};
    for (const char *p = text; p; p = memchr(p, '\n', (size_t)(text + size - p)), p = p ? p + 1 : p) {
        struct tw_stamp fresh = {0};
        int64_t a = 1, b = 1, c;
        const char *quick = tw_stamp_quick(&cache, p, &c);
        const char *end = tw_stamp_wall(&cache, p, &a);
        fuzz_check(end == tw_stamp_wall(&fresh, p, &b) && a == b);
        fuzz_check(!quick || (quick == end && c == a));
        fuzz_check(!end || (end > p && end <= text + size));
        if (p >= text + size)
            break;
    }
    free(text);
    return 0;
}
