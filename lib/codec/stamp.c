/* SPDX-License-Identifier: Apache-2.0 */
/* Times of day. Days are counted by the civil calendar rule of Hinnant ("chrono-compatible low-level date
 * algorithms", 2013): no library call knows dates without touching time zones. */
#include "codec/stamp.h"

#include "codec/decimal.h"

#include <stdbool.h>
#include <string.h>

static int64_t days_from_civil(int y, int m, int d)
{
    y -= m <= 2;
    int era = y / 400;
    int yoe = y - era * 400;
    int doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return (int64_t)era * 146097 + doe - 719468;
}

/* n digits at p, or -1. */
static int digits(const char *p, int n)
{
    int v = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -1;
        v = v * 10 + (p[i] - '0');
    }
    return v;
}

static bool day_exists(int y, int m, int d)
{
    static const int days[13] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (y < 1971 || y > 2199 || m < 1 || m > 12 || d < 1)
        return false;
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return d <= days[m] + (m == 2 && leap ? 1 : 0);
}

/* The 19 bytes up to the second. A byte that ends the text stops every check before the next byte is read. */
static bool to_second(const char *p, int64_t *ret_us)
{
    int y, m, d;
    if (digits(p, 4) >= 0) {
        if ((p[4] != '-' && p[4] != '/') || digits(p + 5, 2) < 0 || p[7] != p[4] || digits(p + 8, 2) < 0)
            return false;
        y = digits(p, 4), m = digits(p + 5, 2), d = digits(p + 8, 2);
    } else {
        if (digits(p, 2) < 0 || (p[2] != '-' && p[2] != '/') || digits(p + 3, 2) < 0 || p[5] != p[2] ||
            digits(p + 6, 4) < 0)
            return false;
        m = digits(p, 2), d = digits(p + 3, 2), y = digits(p + 6, 4);
    }
    if ((p[10] != ' ' && p[10] != 'T') || digits(p + 11, 2) < 0 || p[13] != ':' || digits(p + 14, 2) < 0 ||
        p[16] != ':' || digits(p + 17, 2) < 0)
        return false;
    int hour = digits(p + 11, 2), minute = digits(p + 14, 2), second = digits(p + 17, 2);
    if (!day_exists(y, m, d) || hour > 23 || minute > 59 || second > 60)
        return false;
    *ret_us = (days_from_civil(y, m, d) * 86400 + hour * 3600 + minute * 60 + second) * 1000000;
    return true;
}

static const char *zone(const char *p, int64_t *us)
{
    if (*p == 'Z')
        return p + 1;
    if (*p != '+' && *p != '-')
        return p;
    int hour = digits(p + 1, 2);
    if (hour < 0 || hour > 14 || p[3] != ':' || digits(p + 4, 2) < 0 || digits(p + 4, 2) > 59)
        return NULL;
    int64_t off = (int64_t)(hour * 3600 + digits(p + 4, 2) * 60) * 1000000;
    *us -= *p == '+' ? off : -off;
    return p + 6;
}

const char *tw_stamp_calendar(struct tw_stamp *cache, const char *p, int64_t *ret_us)
{
    /* strncmp, not memcmp: the text may end (in a byte that is no digit) before 19 bytes are there. */
    if (cache->second[0] == '\0' || strncmp(cache->second, p, 19) != 0) {
        int64_t base;
        if (!to_second(p, &base))
            return NULL;
        memcpy(cache->second, p, 19);
        cache->base_us = base;
    }
    int64_t us = cache->base_us;
    p += 19;
    if (*p == '.') {
        static const int64_t scale[7] = {1000000, 100000, 10000, 1000, 100, 10, 1};
        int64_t frac = 0;
        int n = 0;
        for (p++; n < 9 && *p >= '0' && *p <= '9'; n++, p++) {
            if (n < 6)
                frac = frac * 10 + (*p - '0');
            else if (n == 6 && *p >= '5')
                frac++;
        }
        if (n == 0)
            return NULL;
        us += frac * scale[n < 6 ? n : 6];
    }
    p = zone(p, &us);
    if (p)
        *ret_us = us;
    return p;
}

const char *tw_stamp_wall(struct tw_stamp *cache, const char *p, int64_t *ret_us)
{
    if (p[0] >= '0' && p[0] <= '9' && p[1] >= '0' && p[1] <= '9' &&
        (p[2] == '-' || p[2] == '/' ||
         (p[2] >= '0' && p[2] <= '9' && p[3] >= '0' && p[3] <= '9' && (p[4] == '-' || p[4] == '/'))))
        return tw_stamp_calendar(cache, p, ret_us);
    return tw_decimal_fixed(p, 6, ret_us);
}
