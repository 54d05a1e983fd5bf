/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a number: what is read is what strtod says, and it ends where a number ends. The first byte
 * chooses the power of ten. */
#include "codec/decimal.h"
#include "fuzz.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    int exp10 = data[0] % 16 - 8;
    char *text = fuzz_text(data + 1, size - 1), want[400];
    double got;
    int64_t fixed;
    uint64_t whole;
    const char *end = tw_decimal_f64(text, exp10, &got);
    if (end) {
        size_t n = (size_t)(end - text), mantissa = strcspn(text, "eE");
        long power = mantissa < n ? strtol(text + mantissa + 1, NULL, 10) : 0;
        fuzz_check(n > 0 && n <= 120);
        if (mantissa > n)
            mantissa = n;
        if (power > -100000 && power < 100000) {
            memcpy(want, text, mantissa);
            (void)snprintf(want + mantissa, sizeof want - mantissa, "e%ld", power + exp10);
            double expected = strtod(want, NULL);
            fuzz_check(memcmp(&expected, &got, sizeof got) == 0);
        }
    }
    (void)tw_decimal_fixed(text, 6, &fixed);
    (void)tw_decimal_u64(text, &whole);
    free(text);
    return 0;
}
