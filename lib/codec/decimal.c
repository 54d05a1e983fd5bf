/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers. The short way is a loop over digits and one division or multiplication by an exact power of
 * ten; both operands are then exact, so the result is rounded once. */
#include "codec/decimal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double ten[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* What the short way cannot do: more digits, larger powers. */
static double by_strtod(const char *p, const char *end, int exp10)
{
    char buf[160];
    size_t n = (size_t)(end - p);
    size_t mantissa = n;
    long written = 0;
    for (size_t i = 0; i < n; i++)
        if (p[i] == 'e' || p[i] == 'E') {
            mantissa = i;
            written = strtol(p + i + 1, NULL, 10);
            break;
        }
    if (written > 100000 || written < -100000)
        written = written > 0 ? 100000 : -100000;
    memcpy(buf, p, mantissa);
    (void)snprintf(buf + mantissa, sizeof buf - mantissa, "e%ld", written + exp10);
    return strtod(buf, NULL);
}

const char *tw_decimal_f64(const char *p, int exp10, double *ret)
{
    const char *start = p;
    bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    uint64_t m = 0;
    const char *first = p;
    while (is_digit(*p))
        m = m * 10 + (uint64_t)(*p++ - '0');
    ptrdiff_t digits = p - first;
    int e = exp10;
    if (*p == '.') {
        const char *point = ++p;
        while (is_digit(*p))
            m = m * 10 + (uint64_t)(*p++ - '0');
        digits += p - point;
        e -= (int)(p - point < 1000 ? p - point : 1000);
    }
    if (digits == 0)
        return NULL;
    bool power = false;
    if ((*p == 'e' || *p == 'E') && (is_digit(p[1]) || ((p[1] == '-' || p[1] == '+') && is_digit(p[2])))) {
        power = true;
        p += 2;
        while (is_digit(*p))
            p++;
    }
    if (p - start > 120)
        return NULL;
    double v;
    if (!power && digits <= 19 && m <= (UINT64_C(1) << 53) && e >= -22 && e <= 22) {
        v = e < 0 ? (double)m / ten[-e] : (double)m * ten[e];
        *ret = negative ? -v : v;
    } else {
        *ret = by_strtod(start, p, exp10);
    }
    return p;
}

const char *tw_decimal_u64(const char *p, uint64_t *ret)
{
    const char *start = p;
    uint64_t m = 0;
    while (is_digit(*p) && p - start < 19)
        m = m * 10 + (uint64_t)(*p++ - '0');
    if (p == start || p - start > 18)
        return NULL;
    *ret = m;
    return p;
}

const char *tw_decimal_fixed(const char *p, unsigned exp10, int64_t *ret)
{
    bool negative = *p == '-';
    uint64_t m;
    const char *start = negative ? p + 1 : p;
    p = tw_decimal_u64(start, &m);
    if (!p || p - start > 12)
        return NULL;
    unsigned left = exp10;
    if (*p == '.') {
        p++;
        for (; left > 0 && is_digit(*p); left--)
            m = m * 10 + (uint64_t)(*p++ - '0');
        if (left == 0 && *p >= '5' && *p <= '9')
            m++;
        while (is_digit(*p))
            p++;
    }
    for (; left > 0; left--)
        m *= 10;
    *ret = negative ? -(int64_t)m : (int64_t)m;
    return p;
}
