/* SPDX-License-Identifier: Apache-2.0 */
/* MLPerf power logs. The members of interest are found by name; the rest of the record is not looked at, except
 * that it must be closed. */
#include "codec/mllog.h"

#include "codec/decimal.h"

#include <string.h>

#define ROW_OK TW_REJECT_COUNT
#define MAX_W 1e6

static const char mark[] = ":::MLLOG";

/* The value of "name": in [p, end), or NULL. */
static const char *member(const char *p, const char *end, const char *name, size_t n)
{
    p = memmem(p, (size_t)(end - p), name, n);
    if (!p)
        return NULL;
    for (p += n; *p == ' ' || *p == '\t'; p++)
        ;
    if (*p++ != ':')
        return NULL;
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}
#define MEMBER(p, end, name) member((p), (end), "\"" name "\"", sizeof(name) + 1)

static bool is_key(const char *p, const char *key)
{
    return strncmp(p, key, strlen(key)) == 0;
}

bool tw_mllog_recognise(const char *text, size_t n)
{
    const char *end = text + n;
    for (const char *p = text; p && p < end;) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol)
            eol = end;
        const char *at = memmem(p, (size_t)(eol - p), mark, sizeof mark - 1);
        if (at && memmem(at, (size_t)(eol - at), "\"power_reading\"", 15))
            return true;
        p = eol + 1;
    }
    return false;
}

/* A reading's number, which ends at a comma or brace. */
static enum tw_reject value_of(const char *p, double *ret)
{
    bool quoted = *p == '"';
    p += quoted;
    const char *end = tw_decimal_f64(p, 0, ret);
    if (!end)
        return is_key(p, "null") ? TW_REJECT_NO_POWER : TW_REJECT_VALUE;
    if (quoted && *end++ != '"')
        return TW_REJECT_VALUE;
    if (*end != ',' && *end != '}' && *end != ' ')
        return TW_REJECT_VALUE;
    return *ret >= 0.0 && *ret <= MAX_W ? ROW_OK : TW_REJECT_RANGE;
}

/* [p, end) is the line without its end. *ret_reading is false for a whole record of another key. */
static enum tw_reject parse_line(const char *p, const char *end, int64_t *ret_us, double *ret_w,
                                 bool *ret_reading)
{
    *ret_reading = true;
    const char *at = memmem(p, (size_t)(end - p), mark, sizeof mark - 1);
    if (!at || end[-1] != '}')
        return TW_REJECT_TORN;
    if (memmem(at + 1, (size_t)(end - at - 1), mark, sizeof mark - 1))
        return TW_REJECT_TORN;
    const char *key = MEMBER(at, end, "key");
    const char *time = MEMBER(at, end, "time_ms");
    const char *value = MEMBER(at, end, "value");
    if (!key || !time)
        return TW_REJECT_FIELDS;
    if (!is_key(key, "\"power_reading\"")) {
        *ret_reading = false;
        return ROW_OK;
    }
    uint64_t ms;
    time = tw_decimal_u64(time, &ms);
    if (!time || *time != ',' || ms < UINT64_C(31536000000) || ms > UINT64_C(7258118400000))
        return TW_REJECT_TIME;
    *ret_us = (int64_t)ms * 1000;
    return value ? value_of(value, ret_w) : TW_REJECT_NO_POWER;
}

size_t tw_mllog_feed(struct tw_mllog *log, const char *text, size_t n, bool cut, unsigned slot,
                     struct tw_rows *rows)
{
    const char *p = text, *end = text + n;
    while (p < end && rows->n < rows->cap) {
        const char *line = p;
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        p = eol + 1;
        log->lines.line++;
        const char *stop = eol;
        while (stop > line && (stop[-1] == '\r' || stop[-1] == ' '))
            stop--;
        if (stop == line)
            continue;
        bool reading;
        double watts = 0.0;
        int64_t us = 0;
        enum tw_reject what = parse_line(line, stop, &us, &watts, &reading);
        if (what != ROW_OK) {
            if (memchr(line, '\0', (size_t)(eol - line)))
                what = TW_REJECT_NUL_BYTES;
            else if (cut && p == end)
                what = TW_REJECT_CUT;
            tw_reject_add(log->lines.rejected, what, log->lines.line);
            continue;
        }
        if (!reading)
            continue;
        rows->time_us[rows->n] = us;
        rows->key[rows->n] = TW_KEY_NONE;
        rows->line[rows->n] = (uint32_t)log->lines.line;
        rows->slot[slot][rows->n] = (float)watts;
        rows->n++;
    }
    return (size_t)(p - text);
}
