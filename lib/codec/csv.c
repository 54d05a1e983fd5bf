/* SPDX-License-Identifier: Apache-2.0 */
/* CSV recordings. One pass over the bytes: every cell is parsed where it stands and goes straight into its
 * column; whether the row counts is known at its end. Only a row that fails is looked at again, to say why.
 *
 * Every line ends in a newline (the caller sees to it), and a newline is part of no cell: loops stop there and
 * need not watch the end of the text. */
#include "codec/csv.h"

#include "codec/decimal.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#define ROW_OK TW_REJECT_COUNT                /* no reason to reject */
#define UNIX_US_MIN INT64_C(31536000000000)   /* 1971 */
#define UNIX_US_MAX INT64_C(7258118400000000) /* 2200 */

static inline bool is_end(char c)
{
    return c == ',' || c == '\n' || c == '\r' || c == '"';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool same_text(const char *a, size_t n, const char *b)
{
    for (size_t i = 0; i < n; i++)
        if (b[i] == '\0' || lower(a[i]) != lower(b[i]))
            return false;
    return b[n] == '\0';
}

/* --- the header ---------------------------------------------------------------------------------------------
 */

struct span {
    const char *at;
    size_t n;
};

static struct span trim(struct span s)
{
    while (s.n && (s.at[0] == ' ' || s.at[0] == '\t' || s.at[0] == '"'))
        s.at++, s.n--;
    while (s.n &&
           (s.at[s.n - 1] == ' ' || s.at[s.n - 1] == '\t' || s.at[s.n - 1] == '\r' || s.at[s.n - 1] == '"'))
        s.n--;
    return s;
}

/* "power.draw [W]" into its name and unit. */
static void split_unit(struct span cell, struct span *name, struct span *unit)
{
    *name = trim(cell);
    *unit = (struct span){"", 0};
    const char *open = memchr(name->at, '[', name->n);
    if (!open || name->at[name->n - 1] != ']')
        return;
    *unit = trim((struct span){open + 1, (size_t)(name->at + name->n - 1 - (open + 1))});
    *name = trim((struct span){name->at, (size_t)(open - name->at)});
}

static bool name_fits(const struct tw_csv_name *want, struct span name)
{
    size_t n = strlen(want->name);
    if (!want->wide)
        return same_text(name.at, name.n, want->name);
    return name.n > n && same_text(name.at + name.n - n, n, want->name);
}

static const struct tw_csv_name *find_name(const struct tw_csv_name *names, size_t n_names, struct span name,
                                           struct span unit, bool wide)
{
    for (size_t i = 0; i < n_names; i++)
        if (names[i].wide == wide && name_fits(&names[i], name) &&
            (unit.n == 0 || same_text(unit.at, unit.n, names[i].unit)))
            return &names[i];
    return NULL;
}

static void set_col(struct tw_csv_col *col, const struct tw_csv_name *name)
{
    *col = (struct tw_csv_col){.kind = name->kind,
                               .slot = name->slot,
                               .required = name->required,
                               .exp10 = name->exp10,
                               .pow2 = (double)(UINT64_C(1) << name->exp2),
                               .unit_n = strlen(name->unit)};
    if (col->unit_n >= sizeof col->unit)
        col->unit_n = sizeof col->unit - 1;
    memcpy(col->unit, name->unit, col->unit_n);
    size_t n = col->unit_n < 8 ? col->unit_n : 8;
    memcpy(&col->unit_bits, col->unit, n);
    memset(&col->unit_mask, 0xff, n);
}

/* A second column for what is already there: the name that stands first in the table is kept. */
static void settle(struct tw_csv *csv, const struct tw_csv_name **taken, size_t at,
                   const struct tw_csv_name *name)
{
    for (size_t i = 0; i < at; i++) {
        const struct tw_csv_name *other = taken[i];
        if (!other || other->wide || csv->col[i].kind == TW_CSV_SKIP)
            continue;
        bool both_time = other->kind <= TW_CSV_SINCE_US && name->kind <= TW_CSV_SINCE_US;
        bool both_slot = other->kind >= TW_CSV_VALUE && name->kind >= TW_CSV_VALUE && other->slot == name->slot;
        bool both_role = other->kind == name->kind && name->kind < TW_CSV_VALUE;
        if (!both_time && !both_slot && !both_role)
            continue;
        if (other <= name)
            return;
        csv->col[i].kind = TW_CSV_SKIP;
    }
    taken[at] = name;
    set_col(&csv->col[at], name);
}

static void set_facts(struct tw_csv *csv, const struct tw_csv_bounds bounds[TW_ROWS_SLOTS])
{
    for (size_t i = 0; i < csv->n_cols; i++) {
        struct tw_csv_col *c = &csv->col[i];
        if (c->kind >= TW_CSV_WALL && c->kind <= TW_CSV_SINCE_US) {
            csv->has_time = true;
            csv->wall = c->kind == TW_CSV_WALL || c->kind == TW_CSV_WALL_US;
        } else if (c->kind == TW_CSV_INDEX || c->kind == TW_CSV_ID) {
            csv->has_key = true;
        } else if (c->kind >= TW_CSV_VALUE) {
            csv->slot_used[c->slot] = true;
            c->lowest = bounds[c->slot].lowest;
            c->highest = bounds[c->slot].highest;
            csv->has_required |= c->required;
        }
    }
}

/* The columns of a wide recording, once no plain column holds what is required. */
static void set_wide(struct tw_csv *csv, const struct span *name, const struct span *unit,
                     const struct tw_csv_name *names, size_t n_names)
{
    csv->n_groups = 0;
    for (size_t i = 0; i < csv->n_cols; i++) {
        const struct tw_csv_name *w = find_name(names, n_names, name[i], unit[i], true);
        if (csv->col[i].kind >= TW_CSV_VALUE)
            csv->col[i].kind = TW_CSV_SKIP;
        if (!w)
            continue;
        uint32_t key = tw_keys_by_name(&csv->keys, name[i].at, name[i].n - strlen(w->name), -1);
        if (key != csv->n_groups)
            continue; /* the same name twice */
        set_col(&csv->col[i], w);
        csv->col[i].group = key;
        csv->n_groups++;
    }
    csv->wide = csv->n_groups > 0;
    if (!csv->wide)
        csv->n_groups = 1;
}

enum tw_err tw_csv_start(struct tw_csv *csv, const char *text, size_t n, const struct tw_csv_name *names,
                         size_t n_names, const struct tw_csv_bounds bounds[TW_ROWS_SLOTS], size_t *ret_used,
                         struct tw_why *why)
{
    struct span name[TW_CSV_COLS] = {{0}}, unit[TW_CSV_COLS] = {{0}};
    const struct tw_csv_name *taken[TW_CSV_COLS];
    memset(csv, 0, sizeof *csv);
    const char *p = text, *end = text + n;
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    for (; p < end && (*p == '\n' || *p == '\r' || *p == ' '); p++)
        csv->lines.line += *p == '\n';
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    if (!eol)
        return tw_fail(why, TW_EPARSE, "no line that could be a CSV header");
    csv->header_n = (size_t)(eol - p) < sizeof csv->header ? (size_t)(eol - p) : sizeof csv->header;
    memcpy(csv->header, p, csv->header_n);
    csv->n_groups = 1;
    for (const char *cell = p; cell <= eol;) {
        const char *comma = memchr(cell, ',', (size_t)(eol - cell));
        const char *stop = comma ? comma : eol;
        if (csv->n_cols == TW_CSV_COLS)
            return tw_fail(why, TW_ELIMIT, "the CSV header has more than %d columns", TW_CSV_COLS);
        size_t at = csv->n_cols++;
        split_unit((struct span){cell, (size_t)(stop - cell)}, &name[at], &unit[at]);
        taken[at] = NULL;
        const struct tw_csv_name *found = find_name(names, n_names, name[at], unit[at], false);
        if (found)
            settle(csv, taken, at, found);
        cell = stop + 1;
    }
    set_facts(csv, bounds);
    if (csv->has_time && !csv->has_required) {
        set_wide(csv, name, unit, names, n_names);
        set_facts(csv, bounds);
    }
    if (!csv->has_time || !csv->has_required)
        return tw_fail(why, TW_EPARSE, "the CSV header has no column known to hold %s",
                       csv->has_time ? "power" : "the time");
    csv->lines.line++;
    *ret_used = (size_t)(eol + 1 - text);
    return TW_OK;
}

/* --- rows ---------------------------------------------------------------------------------------------------
 */

/* The byte after a cell of any content: its comma or the end of the line. */
static inline const char *skip_cell(const char *p)
{
    if (*p == '"') {
        for (p++; *p != '"' && *p != '\n'; p++)
            ;
        return *p == '"' ? p + 1 : p;
    }
    while (*p != ',' && *p != '\n' && *p != '\r')
        p++;
    return p;
}

static const char *text_cell(const char *p, struct span *ret)
{
    const char *end = skip_cell(p);
    *ret = trim((struct span){p, (size_t)(end - p)});
    return end;
}

/* A cell without a number: missing, an error of the device, or rubbish. */
static enum tw_reject blank_cell(const char *p, const char **ret_end)
{
    static const char *const missing[] = {"",
                                          "N/A",
                                          "[N/A]",
                                          "[Not Supported]",
                                          "Not Supported",
                                          "NA",
                                          "-",
                                          "[Not Found]",
                                          "[Not Available]",
                                          "nan",
                                          "nul",
                                          "null",
                                          "[Insufficient Permissions]"};
    static const char *const broken[] = {"[Unknown Error]",      "Unknown Error", "[GPU is lost]",
                                         "[GPU requires reset]", "ERR!",          "[Reset Required]"};
    struct span s;
    *ret_end = text_cell(p, &s);
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (same_text(s.at, s.n, missing[i]))
            return same_text(s.at, s.n, "nan") ? TW_REJECT_VALUE : TW_REJECT_NO_POWER;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        if (same_text(s.at, s.n, broken[i]))
            return TW_REJECT_ERROR_CODE;
    return TW_REJECT_TORN; /* stands for rubbish until the end of value_cell */
}

static const char *skip_unit(const struct tw_csv_col *c, const char *p)
{
    while (*p == ' ')
        p++;
    if (is_end(*p))
        return p;
    /* The unit holds no newline, so strncmp stops at the end of the line. */
    return c->unit_n && strncmp(p, c->unit, c->unit_n) == 0 && (is_end(p[c->unit_n]) || p[c->unit_n] == ' ')
               ? p + c->unit_n
               : NULL;
}

static enum tw_reject value_cell(const struct tw_csv_col *c, const char **pp, bool cut, float *ret)
{
    const char *p = *pp;
    double v;
    bool quoted = *p == '"';
    const char *after = tw_decimal_f64(p + quoted, c->exp10, &v);
    if (!after) {
        enum tw_reject what = blank_cell(p, pp);
        *ret = NAN;
        if (what == TW_REJECT_TORN)
            return TW_REJECT_VALUE;
        return c->required ? what : ROW_OK;
    }
    const char *end = skip_unit(c, after);
    if (!end || (quoted && *end++ != '"'))
        return TW_REJECT_VALUE;
    *pp = end;
    v *= c->pow2;
    if (cut && end == after && (*end == '\n' || *end == '\r')) {
        *ret = NAN; /* digits may be gone */
        return c->required ? TW_REJECT_CUT : ROW_OK;
    }
    if (!(v >= c->lowest && v <= c->highest)) {
        *ret = NAN;
        return c->required ? TW_REJECT_RANGE : ROW_OK;
    }
    *ret = (float)v;
    return ROW_OK;
}

/* Up to eight digits at p, by the word: bytes that are no digits are marked, the digits before the first of
 * them are moved to the top, and pairs, fours and eights are put together by three multiplications. *ret_n is 8
 * when there may be more. */
static inline uint64_t digits_at(const char *p, unsigned *ret_n)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    word = le64toh(word) ^ UINT64_C(0x3030303030303030);
    uint64_t other = ((word + UINT64_C(0x7676767676767676)) | word) & UINT64_C(0x8080808080808080);
    unsigned n = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
    *ret_n = n;
    if (n == 0)
        return 0;
    word <<= 64 - 8 * n;
    word = word * 10 + (word >> 8);
    return ((word & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
            ((word >> 16) & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
           32;
}

/* A cell as it mostly is: few digits, the unit or none, a value within its bounds. Returns its end, or NULL for
 * any other cell, which value_cell then reads. The value is the same: both operands are exact, so it is rounded
 * once. */
static inline const char *quick_cell(const struct tw_csv_col *c, const char *p, float *ret)
{
    static const double ten[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    static const uint64_t shift[8] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    unsigned n, n_frac = 0;
    uint64_t m = digits_at(p, &n);
    if (n == 0 || n == 8)
        return NULL;
    p += n;
    if (*p == '.') {
        uint64_t frac = digits_at(p + 1, &n_frac);
        if (n_frac == 0 || n_frac == 8)
            return NULL;
        m = m * shift[n_frac] + frac;
        p += 1 + n_frac;
    }
    int e = c->exp10 - (int)n_frac;
    double v = (double)m;
    if (e < 0)
        v /= ten[-e];
    else
        v *= ten[e];
    v *= c->pow2;
    if (*p == ' ') {
        uint64_t word;
        memcpy(&word, ++p, sizeof word);
        if (((word ^ c->unit_bits) & c->unit_mask) == 0)
            p += c->unit_n;
    }
    if ((*p != ',' && *p != '\n' && *p != '\r') || !(v >= c->lowest && v <= c->highest))
        return NULL;
    *ret = (float)v;
    return p;
}

static enum tw_reject bits_cell(const struct tw_csv_col *c, const char **pp, float *ret)
{
    const char *p = *pp;
    uint64_t v = 0;
    if (p[0] != '0' || (p[1] != 'x' && p[1] != 'X'))
        return value_cell(c, pp, false, ret);
    const char *start = p += 2;
    for (;; p++) {
        char d = lower(*p);
        if (d >= '0' && d <= '9')
            v = v << 4 | (uint64_t)(d - '0');
        else if (d >= 'a' && d <= 'f')
            v = v << 4 | (uint64_t)(d - 'a' + 10);
        else
            break;
    }
    if (p == start || p - start > 16)
        return TW_REJECT_VALUE;
    *ret = (float)(v & 0xffffff);
    *pp = p;
    return ROW_OK;
}

static const char *time_cell(struct tw_csv *csv, enum tw_csv_kind kind, const char *p, int64_t *ret_us)
{
    bool quoted = *p == '"';
    p += quoted;
    bool absolute = kind == TW_CSV_WALL || kind == TW_CSV_WALL_US;
    if (kind == TW_CSV_WALL)
        p = tw_stamp_wall(&csv->stamp, p, ret_us);
    else if (kind == TW_CSV_SINCE)
        p = tw_decimal_fixed(p, 6, ret_us);
    else {
        uint64_t us = 0;
        p = tw_decimal_u64(p, &us);
        *ret_us = (int64_t)us;
    }
    if (!p || (absolute && (*ret_us < UNIX_US_MIN || *ret_us > UNIX_US_MAX)))
        return NULL;
    if (quoted && *p++ != '"')
        return NULL;
    return p;
}

struct who {
    uint64_t index;
    bool has_index;
    struct span id, model;
};

static uint32_t key_of(struct tw_csv *csv, const struct who *who)
{
    uint32_t key;
    if (who->id.n)
        key = tw_keys_by_name(&csv->keys, who->id.at, who->id.n, who->has_index ? (int32_t)who->index : -1);
    else
        key = tw_keys_by_index(&csv->keys, who->index);
    if (key != TW_KEY_NONE && who->model.n && csv->keys.key[key].model[0] == '\0')
        tw_keys_model(&csv->keys, key, who->model.at, who->model.n);
    return key;
}

static inline const char *who_cell(enum tw_csv_kind kind, const char *p, struct who *who)
{
    if (kind == TW_CSV_ID)
        return text_cell(p, &who->id);
    if (kind == TW_CSV_MODEL)
        return text_cell(p, &who->model);
    p = tw_decimal_u64(p, &who->index);
    who->has_index = p && who->index < 1024;
    return who->has_index ? p : NULL;
}

/* One line into rows at rows->n (a row for each group). Leaves *pp somewhere in the line on failure and behind
 * it on success. */
static inline enum tw_reject parse_line(struct tw_csv *csv, const char **pp, bool cut, struct tw_rows *rows)
{
    const char *p = *pp;
    const struct tw_csv_col *c = csv->col, *end = csv->col + csv->n_cols;
    struct who who = {0};
    int64_t time_us = 0;
    enum tw_reject missing = ROW_OK;
    for (;;) {
        while (*p == ' ')
            p++;
        enum tw_reject what = ROW_OK;
        switch (c->kind) {
        case TW_CSV_SKIP:
            p = skip_cell(p);
            break;
        case TW_CSV_VALUE: {
            float *to = &rows->slot[c->slot][rows->n + c->group];
            const char *after = cut ? NULL : quick_cell(c, p, to);
            if (after)
                p = after;
            else
                what = value_cell(c, &p, cut, to);
            break;
        }
        case TW_CSV_BITS:
            what = bits_cell(c, &p, &rows->slot[c->slot][rows->n + c->group]);
            break;
        case TW_CSV_WALL: {
            const char *after = tw_stamp_quick(&csv->stamp, p, &time_us);
            p = after ? after : time_cell(csv, c->kind, p, &time_us);
            if (!p)
                return TW_REJECT_TIME;
            break;
        }
        case TW_CSV_WALL_US:
        case TW_CSV_SINCE:
        case TW_CSV_SINCE_US:
            p = time_cell(csv, c->kind, p, &time_us);
            if (!p)
                return TW_REJECT_TIME;
            break;
        case TW_CSV_INDEX:
        case TW_CSV_ID:
        case TW_CSV_MODEL:
            p = who_cell(c->kind, p, &who);
            if (!p)
                return TW_REJECT_VALUE;
            break;
        }
        if (what != ROW_OK) {
            if (!csv->wide || what == TW_REJECT_VALUE)
                return what;
            missing = what; /* of a wide line one thing may be missing and the others not */
        }
        while (*p == ' ')
            p++;
        if (++c == end)
            break;
        if (*p++ != ',')
            return TW_REJECT_FIELDS;
    }
    if (*p == '\r')
        p++;
    if (*p != '\n')
        return TW_REJECT_FIELDS;
    uint32_t key = TW_KEY_NONE;
    if (csv->has_key) {
        key = key_of(csv, &who);
        if (key == TW_KEY_NONE)
            return TW_REJECT_RANGE;
    }
    *pp = p + 1;
    for (size_t g = 0; g < csv->n_groups; g++) {
        rows->time_us[rows->n + g] = time_us;
        rows->key[rows->n + g] = csv->wide ? (uint32_t)g : key;
        rows->line[rows->n + g] = (uint32_t)csv->lines.line;
    }
    return csv->wide ? missing : ROW_OK;
}

/* A wide line with something missing: keep the rows that have it. Returns how many. */
static size_t pack_groups(const struct tw_csv *csv, struct tw_rows *rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < csv->n_cols; i++) {
        const struct tw_csv_col *c = &csv->col[i];
        if (!c->required || isnan(rows->slot[c->slot][rows->n + c->group]))
            continue;
        rows->slot[c->slot][rows->n + kept] = rows->slot[c->slot][rows->n + c->group];
        rows->key[rows->n + kept] = c->group;
        kept++;
    }
    return kept;
}

static bool is_header(const struct tw_csv *csv, const char *line, size_t n)
{
    return n >= csv->header_n && memcmp(line, csv->header, csv->header_n) == 0;
}

/* Why a line failed, seen as a whole. */
static enum tw_reject reason_of(const struct tw_csv *csv, const char *line, size_t n, bool cut,
                                enum tw_reject first)
{
    if (memchr(line, '\0', n))
        return TW_REJECT_NUL_BYTES;
    if (cut)
        return TW_REJECT_CUT;
    size_t fields = 1;
    for (const char *p = line; p < line + n; p++)
        fields += *p == ',';
    if (fields != csv->n_cols)
        return fields < csv->n_cols ? TW_REJECT_FIELDS : TW_REJECT_TORN;
    return first;
}

size_t tw_csv_feed(struct tw_csv *csv, const char *text, size_t n, bool cut, struct tw_rows *rows)
{
    const char *p = text, *end = text + n;
    while (p < end && rows->n + csv->n_groups <= rows->cap) {
        const char *line = p;
        csv->lines.line++;
        if (*p == '\n' || (*p == '\r' && p[1] == '\n')) {
            p += *p == '\r' ? 2 : 1;
            continue;
        }
        enum tw_reject what = parse_line(csv, &p, false, rows);
        if (what == ROW_OK && !(cut && p == end)) {
            rows->n += csv->n_groups;
            continue;
        }
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        bool last = cut && eol + 1 == end;
        p = line;
        if (last)
            what = parse_line(csv, &p, true, rows);
        p = eol + 1;
        size_t kept = what == ROW_OK ? csv->n_groups : 0;
        if (csv->wide &&
            (what == TW_REJECT_NO_POWER || what == TW_REJECT_RANGE || what == TW_REJECT_ERROR_CODE))
            kept = pack_groups(csv, rows);
        rows->n += kept;
        if (kept == 0 && !is_header(csv, line, (size_t)(eol - line)))
            tw_reject_add(csv->lines.rejected, reason_of(csv, line, (size_t)(eol - line), last, what),
                          csv->lines.line);
    }
    return (size_t)(p - text);
}
