/* SPDX-License-Identifier: Apache-2.0 */
/* Points from CSV: one pass over the text into rows, jobs found by an open-addressing table, then the rows of
 * each job brought together by a counting sort. */
#include "codec/points.h"

#include "base/num.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>

/* id, header text, needed */
#define COLUMN_MAP(X)                                                                                          \
    X(SET, "set", false)                                                                                       \
    X(GPU, "gpu", false)                                                                                       \
    X(JOB, "job", true)                                                                                        \
    X(KIND, "kind", false)                                                                                     \
    X(N_GPUS, "n_gpus", false)                                                                                 \
    X(KNOB, "knob", false)                                                                                     \
    X(SETTING, "setting", true)                                                                                \
    X(POWER, "power_w", true)                                                                                  \
    X(THROUGHPUT, "throughput", true)                                                                          \
    X(UNIT, "unit", true)

enum column {
#define COLUMN_ENUM(id, text, needed) COL_##id,
    COLUMN_MAP(COLUMN_ENUM)
#undef COLUMN_ENUM
        COL_COUNT
};

#define COLUMN_TEXT(id, text, needed) text,
static const char *const column_text[COL_COUNT] = {COLUMN_MAP(COLUMN_TEXT)};
#undef COLUMN_TEXT
#define COLUMN_NEEDED(id, text, needed) needed,
static const bool column_needed[COL_COUNT] = {COLUMN_MAP(COLUMN_NEEDED)};
#undef COLUMN_NEEDED
#define UNIT_TEXT(text) text,
static const char *const unit_text[] = {TW_POINTS_UNIT_MAP(UNIT_TEXT)};
#undef UNIT_TEXT

/* What one GPU, and one job, can be at most: beyond it sums over a fleet overflow, or a column is not what its
 * name says. */
#define POWER_MAX_W 1e6
#define RATE_MAX 1e15
#define GPUS_MAX 1e7

enum { FIELD_MAX = 200, COLUMNS_MAX = 64, JOB_TEXT_MAX = COL_COUNT * (FIELD_MAX + 32) };

struct row {
    struct tw_point point;
    uint32_t job;
};

struct reader {
    const char *at, *end;
    uint32_t line;
    int place[COLUMNS_MAX]; /* column of each field, COL_COUNT for one we ignore */
    int n_fields;
    char field[COL_COUNT][FIELD_MAX + 1]; /* of the row at hand */
    struct tw_points_job *job;
    uint32_t *slot; /* [n_slots] job index + 1, 0 is empty */
    size_t n_jobs, n_slots;
    struct tw_arena *arena;
};

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 1;
    for (const char *p = text, *end = text + n; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        lines++;
    return lines;
}

static size_t slots_for(size_t rows)
{
    size_t n = 64;
    while (n < 2 * rows)
        n *= 2;
    return n;
}

size_t tw_points_bytes(const char *text, size_t n)
{
    size_t rows = count_lines(text, n);
    /* names of jobs: no longer than the text, each with its own padding */
    return tw_arena_need(rows, sizeof(struct row)) + tw_arena_need(rows, sizeof(struct tw_points_job)) +
           tw_arena_need(slots_for(rows), sizeof(uint32_t)) + tw_arena_need(rows, sizeof(struct tw_point)) +
           2 * tw_arena_need(rows + 1, sizeof(double)) + tw_arena_need(rows + 1, sizeof(uint32_t)) + 2 * n +
           rows * (6 + 32 + 2 * (size_t)TW_ARENA_ALIGN) + 4096;
}

/* One field into out (cut off when NULL), and over the comma behind it. *ret_last: the line ends here. */
static enum tw_err take_field(struct reader *r, char *out, bool *ret_last, struct tw_why *why)
{
    size_t n = 0;
    bool quoted = r->at < r->end && *r->at == '"';
    r->at += quoted;
    for (;; r->at++) {
        bool over =
            r->at >= r->end || *r->at == '\n' || (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n');
        if (quoted && over)
            return tw_fail(why, TW_EPARSE, "line %u: a quoted field does not end", r->line);
        if (quoted && *r->at == '"') {
            r->at++;
            if (r->at >= r->end || *r->at != '"') {
                quoted = false;
                r->at--;
                continue;
            }
        } else if (!quoted && (over || *r->at == ',')) {
            break;
        }
        if (*r->at == '\0')
            return tw_fail(why, TW_EPARSE, "line %u: a NUL byte; is this a text file?", r->line);
        if (out && ((unsigned char)*r->at < 0x20 || *r->at == 0x7f) && *r->at != '\t' && *r->at != '\r')
            return tw_fail(why, TW_EPARSE, "line %u: a control character (0x%02x); is this a text file?",
                           r->line, (unsigned)(unsigned char)*r->at);
        if (out && n >= FIELD_MAX)
            return tw_fail(why, TW_EPARSE, "line %u: a field of more than %d characters", r->line, FIELD_MAX);
        if (out)
            out[n++] = *r->at;
    }
    if (out)
        out[n] = '\0';
    *ret_last = r->at >= r->end || *r->at != ',';
    if (r->at < r->end && *r->at == '\r')
        r->at++;
    if (r->at < r->end)
        r->at++;
    return TW_OK;
}

static char *trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    for (size_t n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]); n--)
        s[n - 1] = '\0';
    return s;
}

static enum tw_err read_header(struct reader *r, struct tw_why *why)
{
    bool seen[COL_COUNT] = {false}, last = false;
    char text[FIELD_MAX + 1] = "";
    while (!last) {
        enum tw_err err = take_field(r, text, &last, why);
        if (err != TW_OK)
            return err;
        if (r->n_fields == COLUMNS_MAX)
            return tw_fail(why, TW_EPARSE, "line 1: more than %d columns", COLUMNS_MAX);
        int c = 0;
        while (c < COL_COUNT && strcmp(trim(text), column_text[c]) != 0)
            c++;
        if (c < COL_COUNT && seen[c])
            return tw_fail(why, TW_EPARSE, "line 1: column \"%s\" stands there twice", column_text[c]);
        if (c < COL_COUNT)
            seen[c] = true;
        r->place[r->n_fields++] = c;
    }
    for (int c = 0; c < COL_COUNT; c++)
        if (column_needed[c] && !seen[c])
            return tw_fail(
                why, TW_EPARSE,
                "line 1: no column \"%s\"; expected a header with job, setting, power_w, throughput and unit",
                column_text[c]);
    return TW_OK;
}

static enum tw_err read_fields(struct reader *r, struct tw_why *why)
{
    bool last = false;
    int n = 0;
    for (int c = 0; c < COL_COUNT; c++)
        r->field[c][0] = '\0';
    while (!last) {
        int c = n < r->n_fields ? r->place[n] : COL_COUNT;
        enum tw_err err = take_field(r, c < COL_COUNT ? r->field[c] : NULL, &last, why);
        if (err != TW_OK)
            return err;
        n++;
    }
    if (n != r->n_fields)
        return tw_fail(why, TW_EPARSE, "line %u: %d fields, expected %d", r->line, n, r->n_fields);
    for (int c = 0; c < COL_COUNT; c++) {
        char *t = trim(r->field[c]);
        memmove(r->field[c], t, strlen(t) + 1);
    }
    return TW_OK;
}

static enum tw_err number(const struct reader *r, enum column c, double *ret, struct tw_why *why)
{
    struct tw_why inner;
    if (tw_num_f64(r->field[c], ret, &inner) != TW_OK)
        return tw_fail(why, TW_EPARSE, "line %u: %s is \"%.40s\", expected a number", r->line, column_text[c],
                       r->field[c]);
    return TW_OK;
}

/* "300", "300@1380", "uncapped" */
static enum tw_err read_setting(struct reader *r, double *ret, double *ret_second, struct tw_why *why)
{
    char *text = r->field[COL_SETTING], *at = strchr(text, '@');
    *ret_second = (double)NAN;
    if (text[0] == '\0')
        return tw_fail(why, TW_EPARSE, "line %u: setting is empty, so job \"%.60s\" has no uncapped reference",
                       r->line, r->field[COL_JOB]);
    if (at) {
        if (tw_num_f64(at + 1, ret_second, NULL) != TW_OK)
            return tw_fail(why, TW_EPARSE,
                           "line %u: setting is \"%.40s\", expected a number, or two as in 300@1380", r->line,
                           text);
        *at = '\0';
    }
    if (strcmp(text, "uncapped") == 0) {
        *ret = (double)INFINITY;
        return TW_OK;
    }
    return number(r, COL_SETTING, ret, why);
}

static enum tw_err too_large(const struct reader *r, int column, double value, double most, struct tw_why *why)
{
    return tw_fail(why, TW_ERANGE, "line %u: %s is %g, expected %g at most", r->line, column_text[column],
                   value, most);
}

static enum tw_err read_values(struct reader *r, struct tw_point *p, double *ret_second, double *ret_n_gpus,
                               struct tw_why *why)
{
    enum tw_err err = read_setting(r, &p->setting, ret_second, why);
    if (err == TW_OK)
        err = number(r, COL_POWER, &p->power_w, why);
    if (err == TW_OK)
        err = number(r, COL_THROUGHPUT, &p->throughput, why);
    *ret_n_gpus = 1.0;
    if (err == TW_OK && r->field[COL_N_GPUS][0] != '\0')
        err = number(r, COL_N_GPUS, ret_n_gpus, why);
    if (err != TW_OK)
        return err;
    if (!(p->power_w > 0.0))
        return tw_fail(why, TW_ERANGE, "line %u: power_w is %g, expected more than 0", r->line, p->power_w);
    if (!(p->power_w <= POWER_MAX_W))
        return too_large(r, COL_POWER, p->power_w, POWER_MAX_W, why);
    if (!(p->throughput <= RATE_MAX))
        return too_large(r, COL_THROUGHPUT, p->throughput, RATE_MAX, why);
    if (!(*ret_n_gpus <= GPUS_MAX))
        return too_large(r, COL_N_GPUS, *ret_n_gpus, GPUS_MAX, why);
    if (!(p->throughput >= 0.0))
        return tw_fail(why, TW_ERANGE, "line %u: throughput is %g, expected 0 or more", r->line, p->throughput);
    if (!(*ret_n_gpus >= 1.0))
        return tw_fail(why, TW_ERANGE, "line %u: n_gpus is %g, expected 1 or more", r->line, *ret_n_gpus);
    for (size_t u = 0; u < sizeof unit_text / sizeof *unit_text; u++)
        if (strcmp(r->field[COL_UNIT], unit_text[u]) == 0)
            return TW_OK;
    return tw_fail(why, TW_ERANGE,
                   "line %u: unit \"%.40s\" is not known; known are tokens/s, samples/s, steps/s and others "
                   "(man tokwatt-pfi)",
                   r->line, r->field[COL_UNIT]);
}

static uint64_t hash_text(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return (h ^ 0xff) * 0x100000001b3u;
}

static const char *keep(struct reader *r, const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = tw_arena_alloc(r->arena, n, 1);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

static enum tw_err new_job(struct reader *r, const char *name, double second, double n_gpus, uint32_t slot,
                           uint32_t *ret_index, struct tw_why *why)
{
    struct tw_points_job *j = &r->job[r->n_jobs];
    *j = (struct tw_points_job){
        .set = keep(r, r->field[COL_SET]),
        .gpu = keep(r, r->field[COL_GPU]),
        .job = keep(r, name),
        .kind = keep(r, r->field[COL_KIND]),
        .knob = keep(r, r->field[COL_KNOB]),
        .unit = keep(r, r->field[COL_UNIT]),
        .second = second,
        .n_gpus = n_gpus,
        .line = r->line,
    };
    if (!(j->set && j->gpu && j->job && j->kind && j->knob && j->unit))
        return tw_fail(why, TW_ENOMEM, "points: the arena is too small");
    *ret_index = (uint32_t)r->n_jobs++;
    r->slot[slot] = *ret_index + 1;
    return TW_OK;
}

/* The job that the row belongs to, made when it is new. */
static enum tw_err find_job(struct reader *r, double second, double n_gpus, uint32_t *ret_index,
                            struct tw_why *why)
{
    char name[FIELD_MAX + 40];
    if (r->field[COL_JOB][0] == '\0')
        return tw_fail(why, TW_EPARSE, "line %u: job is empty", r->line);
    if (isnan(second))
        (void)snprintf(name, sizeof name, "%s", r->field[COL_JOB]);
    else
        (void)snprintf(name, sizeof name, "%s@%.15g", r->field[COL_JOB], second);
    uint64_t h =
        hash_text(hash_text(hash_text(0xcbf29ce484222325u, r->field[COL_SET]), r->field[COL_GPU]), name);
    uint32_t slot = (uint32_t)(h & (r->n_slots - 1));
    for (; r->slot[slot] != 0; slot = (uint32_t)((slot + 1) & (r->n_slots - 1))) {
        const struct tw_points_job *j = &r->job[r->slot[slot] - 1];
        if (strcmp(j->job, name) != 0 || strcmp(j->gpu, r->field[COL_GPU]) != 0 ||
            strcmp(j->set, r->field[COL_SET]) != 0)
            continue;
        if (strcmp(j->unit, r->field[COL_UNIT]) != 0)
            return tw_fail(why, TW_EPARSE, "line %u: unit \"%s\", but job \"%.60s\" has \"%s\" in line %u",
                           r->line, r->field[COL_UNIT], name, j->unit, j->line);
        if (!(fabs(j->n_gpus - n_gpus) < 0.5))
            return tw_fail(why, TW_EPARSE, "line %u: %g GPUs, but job \"%.60s\" has %g in line %u", r->line,
                           n_gpus, name, j->n_gpus, j->line);
        *ret_index = r->slot[slot] - 1;
        return TW_OK;
    }
    return new_job(r, name, second, n_gpus, slot, ret_index, why);
}

static bool skip_blank_line(struct reader *r)
{
    const char *p = r->at;
    while (p < r->end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    if (p < r->end && *p != '\n')
        return false;
    r->at = p < r->end ? p + 1 : p;
    return true;
}

static int by_setting(const void *a, const void *b)
{
    const struct tw_point *l = a, *r = b;
    int order = (l->setting < r->setting) - (l->setting > r->setting);
    return order ? order : (l->line > r->line) - (l->line < r->line);
}

static int falling(const void *a, const void *b)
{
    double l = *(const double *)a, r = *(const double *)b;
    return (l < r) - (l > r);
}

/* Mean of n values, or of the highest tenth of them; sorts v. */
static double summary(double *v, size_t n, enum tw_points_aggregate aggregate)
{
    size_t take = n;
    if (aggregate == TW_POINTS_TOP10) {
        qsort(v, n, sizeof *v, falling);
        take = (n + 9) / 10;
    }
    double sum = 0.0;
    for (size_t i = 0; i < take; i++)
        sum += v[i];
    return sum / (double)take;
}

/* Repeats of a setting into one point. p [n] is sorted by setting. */
static size_t merge(struct tw_point *p, size_t n, enum tw_points_aggregate aggregate, double *power,
                    double *rate)
{
    size_t out = 0;
    for (size_t i = 0; i < n;) {
        size_t same = 0;
        while (i + same < n && !(p[i + same].setting < p[i].setting)) {
            power[same] = p[i + same].power_w;
            rate[same] = p[i + same].throughput;
            same++;
        }
        p[out] = p[i];
        p[out].count = (uint32_t)same;
        p[out].power_w = summary(power, same, aggregate);
        p[out++].throughput = summary(rate, same, aggregate);
        i += same;
    }
    return out;
}

static enum tw_err gather(struct reader *r, const struct row *row, size_t n_rows,
                          enum tw_points_aggregate aggregate, struct tw_why *why)
{
    struct tw_point *sorted = TW_ARENA_ARRAY(r->arena, struct tw_point, n_rows);
    uint32_t *start = TW_ARENA_ARRAY(r->arena, uint32_t, r->n_jobs + 1);
    double *power = TW_ARENA_ARRAY(r->arena, double, n_rows), *rate = TW_ARENA_ARRAY(r->arena, double, n_rows);
    if (!(sorted && start && power && rate))
        return tw_fail(why, TW_ENOMEM, "points: the arena is too small");
    for (size_t i = 0; i < n_rows; i++)
        start[row[i].job + 1]++;
    for (size_t j = 0; j < r->n_jobs; j++)
        start[j + 1] += start[j];
    for (size_t i = n_rows; i-- > 0;)
        sorted[--start[row[i].job + 1]] = row[i].point; /* afterwards start[j + 1] is where job j begins */
    for (size_t j = 0; j < r->n_jobs; j++) {
        struct tw_point *first = sorted + start[j + 1];
        size_t n = (j + 1 < r->n_jobs ? start[j + 2] : n_rows) - start[j + 1];
        qsort(first, n, sizeof *first, by_setting);
        r->job[j].point = first;
        r->job[j].n = merge(first, n, aggregate, power, rate);
        if (!(first[0].throughput > 0.0))
            return tw_fail(
                why, TW_ERANGE,
                "line %u: job \"%.60s\" has no uncapped reference: throughput is 0 at its largest setting",
                first[0].line, r->job[j].job);
    }
    return TW_OK;
}

enum tw_err tw_points_read(const char *text, size_t n, enum tw_points_aggregate aggregate,
                           struct tw_arena *arena, struct tw_points *ret, struct tw_why *why)
{
    size_t lines = count_lines(text, n), n_rows = 0;
    if (lines >= UINT32_MAX / 2)
        return tw_fail(why, TW_ELIMIT, "points: %zu lines are too many", lines);
    struct reader r = {.at = text, .end = text + n, .line = 1, .arena = arena, .n_slots = slots_for(lines)};
    struct row *row = TW_ARENA_ARRAY(arena, struct row, lines);
    r.job = TW_ARENA_ARRAY(arena, struct tw_points_job, lines);
    r.slot = TW_ARENA_ARRAY(arena, uint32_t, r.n_slots);
    if (!(row && r.job && r.slot))
        return tw_fail(why, TW_ENOMEM, "points: the arena is too small for %zu lines", lines);
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        r.at += 3;
    enum tw_err err = read_header(&r, why);
    while (err == TW_OK && r.at < r.end) {
        double second, n_gpus;
        r.line++;
        if (skip_blank_line(&r))
            continue;
        struct row *here = &row[n_rows];
        here->point = (struct tw_point){.line = r.line, .count = 1};
        err = read_fields(&r, why);
        if (err == TW_OK)
            err = read_values(&r, &here->point, &second, &n_gpus, why);
        if (err == TW_OK)
            err = find_job(&r, second, n_gpus, &here->job, why);
        n_rows++;
    }
    if (err == TW_OK && n_rows == 0)
        err = tw_fail(why, TW_ENODATA, "no rows after the header");
    if (err == TW_OK)
        err = gather(&r, row, n_rows, aggregate, why);
    if (err == TW_OK)
        *ret = (struct tw_points){.job = r.job, .n_jobs = r.n_jobs, .n_rows = n_rows};
    return err;
}
