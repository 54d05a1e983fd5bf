/* SPDX-License-Identifier: Apache-2.0 */
/* Packed samples. Differences wrap in unsigned arithmetic, so no time is too far from another. */
#include "codec/segment.h"

#include <string.h>

size_t tw_segment_bytes(size_t n, size_t n_columns)
{
    return n * (sizeof(int64_t) + n_columns * sizeof(float));
}

void tw_segment_pack(const int64_t *time_us, const float *const *column, size_t n, size_t n_columns,
                     unsigned char *ret_bytes)
{
    unsigned char *to = ret_bytes;
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t step = (uint64_t)time_us[i] - before;
        before = (uint64_t)time_us[i];
        for (size_t b = 0; b < 8; b++)
            to[b * n + i] = (unsigned char)(step >> (8 * b));
    }
    to += 8 * n;
    for (size_t c = 0; c < n_columns; c++, to += 4 * n)
        for (size_t i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &column[c][i], sizeof bits);
            for (size_t b = 0; b < 4; b++)
                to[b * n + i] = (unsigned char)(bits >> (8 * b));
        }
}

enum tw_err tw_segment_unpack(const unsigned char *bytes, size_t size, size_t n, size_t n_columns,
                              int64_t *ret_time_us, float *const *ret_column, struct tw_why *why)
{
    if (size != tw_segment_bytes(n, n_columns))
        return tw_fail(why, TW_EPARSE, "a block of %zu samples has %zu bytes instead of %zu", n, size,
                       tw_segment_bytes(n, n_columns));
    const unsigned char *from = bytes;
    uint64_t time = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t step = 0;
        for (size_t b = 0; b < 8; b++)
            step |= (uint64_t)from[b * n + i] << (8 * b);
        time += step;
        ret_time_us[i] = (int64_t)time;
    }
    from += 8 * n;
    for (size_t c = 0; c < n_columns; c++, from += 4 * n)
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = 0;
            for (size_t b = 0; b < 4; b++)
                bits |= (uint32_t)from[b * n + i] << (8 * b);
            memcpy(&ret_column[c][i], &bits, sizeof bits);
        }
    return TW_OK;
}
