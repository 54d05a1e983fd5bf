/* SPDX-License-Identifier: Apache-2.0 */
/* codec/stamp.h - times of day in a text, as microseconds since 1970.
 *
 * Read: 2025/07/26 23:32:09.703, 2026-05-05T19:14:51, 2026-05-05 19:14:51.5Z, ...+02:00 (year first) and
 * 07-12-2024 23:12:12.830 (month first, as SPEC PTDaemon writes), fraction of 0 to 9 digits; and Unix seconds
 * such as 1775016266.006. A local time without a zone is taken as UTC: the file does not say more, and steps
 * between rows stay right as long as no clock change falls into the recording. Years 1971 to 2199.
 *
 * The text must end in a byte that is no part of a time, such as a newline. */
#ifndef TW_CODEC_STAMP_H
#define TW_CODEC_STAMP_H

#include <stdint.h>
#include <string.h>

/* Rows of one second share their first 19 bytes: they are looked up, not parsed again. All zero to start. */
struct tw_stamp {
    char second[20];
    int64_t base_us;
};

/* Returns the byte after the time, or NULL when p holds none. */
const char *tw_stamp_calendar(struct tw_stamp *cache, const char *p, int64_t *ret_us);
/* A calendar time or Unix seconds, whichever is there. */
const char *tw_stamp_wall(struct tw_stamp *cache, const char *p, int64_t *ret_us);

/* The commonest case without a call: the second of the time before and three digits behind the point. Reads up
 * to 24 bytes, which must be readable. NULL: ask one of the others. */
static inline const char *tw_stamp_quick(const struct tw_stamp *cache, const char *p, int64_t *ret_us)
{
    uint64_t a[3], b[3];
    memcpy(a, cache->second, 16);
    memcpy(a + 2, cache->second + 11, 8); /* bytes 11 to 18 */
    memcpy(b, p, 16);
    memcpy(b + 2, p + 11, 8);
    unsigned d0 = (unsigned char)p[20] - 48U, d1 = (unsigned char)p[21] - 48U, d2 = (unsigned char)p[22] - 48U;
    if (((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2])) != 0 || p[19] != '.' || d0 > 9 || d1 > 9 || d2 > 9 ||
        (p[23] != ',' && p[23] != '\n' && p[23] != '\r'))
        return NULL;
    *ret_us = cache->base_us + (int64_t)(d0 * 100 + d1 * 10 + d2) * 1000;
    return p + 23;
}

#endif
