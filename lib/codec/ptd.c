/* SPDX-License-Identifier: Apache-2.0 */
/* PTDaemon logs. */
#include "codec/ptd.h"

#include "codec/decimal.h"

#include <string.h>

#define ROW_OK TW_REJECT_COUNT
#define MAX_W 1e6

static const char head[] = "Time,", watts[] = ",Watts,";

static size_t count_fields(const char *p, const char *end)
{
    size_t n = 1;
    for (; p < end; p++)
        n += *p == ',';
    return n;
}

/* The line up to and with its total. */
static enum tw_reject parse_head(struct tw_stamp *stamp, const char *p, int64_t *ret_us, double *ret_w)
{
    if (strncmp(p, head, sizeof head - 1) != 0)
        return TW_REJECT_TORN;
    p = tw_stamp_calendar(stamp, p + sizeof head - 1, ret_us);
    if (!p)
        return TW_REJECT_TIME;
    if (strncmp(p, watts, sizeof watts - 1) != 0)
        return TW_REJECT_FIELDS;
    p = tw_decimal_f64(p + sizeof watts - 1, 0, ret_w);
    if (!p || (*p != ',' && *p != '\n' && *p != '\r'))
        return TW_REJECT_VALUE;
    if (*ret_w < 0.0)
        return TW_REJECT_ERROR_CODE;
    return *ret_w <= MAX_W ? ROW_OK : TW_REJECT_RANGE;
}

bool tw_ptd_recognise(const char *text, size_t n)
{
    struct tw_stamp stamp = {0};
    int64_t us;
    double w;
    const char *p = text, *end = text + n;
    for (int lines = 0; p < end && lines < 16; lines++) {
        enum tw_reject what = parse_head(&stamp, p, &us, &w);
        if (what == ROW_OK || what == TW_REJECT_ERROR_CODE)
            return true;
        p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
    }
    return false;
}

size_t tw_ptd_feed(struct tw_ptd *ptd, const char *text, size_t n, bool cut, unsigned slot,
                   struct tw_rows *rows)
{
    const char *p = text, *end = text + n;
    while (p < end && rows->n < rows->cap) {
        const char *line = p;
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        p = eol + 1;
        ptd->lines.line++;
        if (*line == '\n' || (*line == '\r' && line[1] == '\n'))
            continue;
        int64_t us = 0;
        double w = 0.0;
        enum tw_reject what = parse_head(&ptd->stamp, line, &us, &w);
        size_t fields = count_fields(line, eol);
        if (ptd->n_fields && fields != ptd->n_fields)
            what = fields < ptd->n_fields ? TW_REJECT_FIELDS : TW_REJECT_TORN;
        bool last = cut && p == end;
        if (last && what == ROW_OK && fields < 5)
            what = TW_REJECT_CUT; /* the total is the last number there is */
        if (what != ROW_OK) {
            if (memchr(line, '\0', (size_t)(eol - line)))
                what = TW_REJECT_NUL_BYTES;
            else if (last)
                what = TW_REJECT_CUT;
            tw_reject_add(ptd->lines.rejected, what, ptd->lines.line);
            continue;
        }
        ptd->n_fields = fields;
        rows->time_us[rows->n] = us;
        rows->key[rows->n] = TW_KEY_NONE;
        rows->line[rows->n] = (uint32_t)ptd->lines.line;
        rows->slot[slot][rows->n] = (float)w;
        rows->n++;
    }
    return (size_t)(p - text);
}
