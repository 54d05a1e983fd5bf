/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with units. strtod does the digits; what it stops at is always looked at. */
#include "base/num.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blank(const char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    return s;
}

/* Digits, sign, point and exponent only: strtod alone would take "nan", "inf" and "0x1p3". */
static bool number_head(const char *s, double *ret, const char **ret_end)
{
    const char *p = s;
    if (*p == '+' || *p == '-')
        p++;
    if (!isdigit((unsigned char)*p) && !(*p == '.' && isdigit((unsigned char)p[1])))
        return false;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        return false;
    char *end;
    double v = strtod(s, &end);
    if (end == s || !isfinite(v))
        return false;
    *ret = v;
    *ret_end = end;
    return true;
}

static bool rest_is_blank(const char *s)
{
    return *skip_blank(s) == '\0';
}

enum tw_err tw_num_f64(const char *s, double *ret, struct tw_why *why)
{
    double v;
    const char *end;
    if (!number_head(skip_blank(s), &v, &end) || !rest_is_blank(end))
        return tw_fail(why, TW_EPARSE, "\"%.40s\" is not a number", s);
    *ret = v;
    return TW_OK;
}

enum tw_err tw_num_i64(const char *s, int64_t min, int64_t max, int64_t *ret, struct tw_why *why)
{
    const char *p = skip_blank(s);
    char *end;
    errno = 0;
    long long v = strtoll(p, &end, 10);
    if (end == p || !rest_is_blank(end))
        return tw_fail(why, TW_EPARSE, "\"%.40s\" is not a whole number", s);
    if (errno == ERANGE || v < min || v > max)
        return tw_fail(why, TW_ERANGE, "%.40s is outside %lld to %lld", s, (long long)min, (long long)max);
    *ret = v;
    return TW_OK;
}

enum tw_err tw_num_frac(const char *s, double *ret_frac, struct tw_why *why)
{
    double v;
    const char *end;
    if (!number_head(skip_blank(s), &v, &end))
        return tw_fail(why, TW_EPARSE, "\"%.40s\" is not a ratio; write 30%% or 0.3", s);
    end = skip_blank(end);
    bool percent = *end == '%';
    if (percent)
        end++;
    if (!rest_is_blank(end))
        return tw_fail(why, TW_EPARSE, "\"%.40s\" is not a ratio; write 30%% or 0.3", s);
    double frac = percent ? v / 100.0 : v;
    if (!(frac >= 0.0 && frac <= 1.0))
        return tw_fail(why, TW_ERANGE, "%.40s is outside 0%% to 100%%%s", s,
                       percent ? "" : "; write 30% or 0.3");
    *ret_frac = frac;
    return TW_OK;
}

enum tw_err tw_num_power(const char *s, double *ret_w, struct tw_why *why)
{
    static const struct {
        const char *unit;
        double watts;
    } units[] = {{"W", 1.0}, {"kW", 1e3}, {"KW", 1e3}, {"MW", 1e6}, {"GW", 1e9}, {"mW", 1e-3}};
    double v;
    const char *end;
    if (!number_head(skip_blank(s), &v, &end))
        return tw_fail(why, TW_EPARSE, "\"%.40s\" is not a power; write 350W, 12kW or 1.5MW", s);
    end = skip_blank(end);
    double scale = *end == '\0' ? 1.0 : 0.0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].unit);
        if (strncmp(end, units[i].unit, n) == 0 && rest_is_blank(end + n))
            scale = units[i].watts;
    }
    if (!(scale > 0.0))
        return tw_fail(why, TW_EPARSE, "\"%.40s\" is not a power; write 350W, 12kW or 1.5MW", s);
    if (!(v >= 0.0))
        return tw_fail(why, TW_ERANGE, "%.40s is negative; a power is 0 W or more", s);
    *ret_w = v * scale;
    return TW_OK;
}

enum tw_err tw_num_duration(const char *s, double *ret_s, struct tw_why *why)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"ms", 1e-3}, {"min", 60.0}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0}, {"d", 86400.0}};
    const char *p = skip_blank(s);
    double sum = 0.0;
    bool any = false;
    while (*p) {
        double v;
        const char *end;
        if (!number_head(p, &v, &end))
            return tw_fail(why, TW_EPARSE, "\"%.40s\" is not a duration; write 90s, 5m, 3h or 1h30m", s);
        if (!(v >= 0.0))
            return tw_fail(why, TW_ERANGE, "%.40s is negative; a duration is 0 s or more", s);
        end = skip_blank(end);
        double scale = 0.0;
        if (*end == '\0' && !any) {
            scale = 1.0;
        } else {
            for (size_t i = 0; i < sizeof units / sizeof *units && !(scale > 0.0); i++) {
                size_t n = strlen(units[i].unit);
                if (strncmp(end, units[i].unit, n) == 0 && !isalpha((unsigned char)end[n])) {
                    scale = units[i].seconds;
                    end += n;
                }
            }
        }
        if (!(scale > 0.0))
            return tw_fail(why, TW_EPARSE, "\"%.40s\" is not a duration; write 90s, 5m, 3h or 1h30m", s);
        sum += v * scale;
        any = true;
        p = skip_blank(end);
    }
    if (!any)
        return tw_fail(why, TW_EPARSE, "a duration is missing; write 90s, 5m, 3h or 1h30m");
    *ret_s = sum;
    return TW_OK;
}

char *tw_num_show_power(double watts, char *buf, size_t size)
{
    double a = fabs(watts);
    if (a >= 1e6)
        (void)snprintf(buf, size, "%.2f MW", watts / 1e6);
    else if (a >= 1e4)
        (void)snprintf(buf, size, "%.1f kW", watts / 1e3);
    else if (a >= 1e3)
        (void)snprintf(buf, size, "%.2f kW", watts / 1e3);
    else
        (void)snprintf(buf, size, "%.0f W", watts);
    return buf;
}

char *tw_num_show_duration(double seconds, char *buf, size_t size)
{
    if (seconds < 1.0)
        (void)snprintf(buf, size, "%.0f ms", seconds * 1e3);
    else if (seconds < 120.0)
        (void)snprintf(buf, size, "%.3g s", seconds);
    else if (seconds < 7200.0)
        (void)snprintf(buf, size, "%.0f min %02.0f s", floor(seconds / 60.0), fmod(seconds, 60.0));
    else
        (void)snprintf(buf, size, "%.0f h %02.0f min", floor(seconds / 3600.0),
                       floor(fmod(seconds, 3600.0) / 60.0));
    return buf;
}
