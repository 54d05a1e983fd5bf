/* SPDX-License-Identifier: Apache-2.0 */
/* A file into series, in two steps: the codec appends rows to columns that grow, block after block of the text;
 * then the rows are dealt out to their series. Memory is that of the columns, twice for a moment. */
#include "io/file/import.h"

#include "io/file/format.h"
#include "io/file/unpack.h"
#include "series/rounds.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK (size_t)262144 /* bytes of text at a time: stays in the cache; the longest line is half of it */
#define FIRST_ROWS 8192

struct job {
    struct tw_reader reader;
    struct tw_rows rows;
    struct tw_import *imp;
    bool started, skip_line; /* within a line that is too long */
};

/* --- columns that grow --------------------------------------------------------------------------------------
 */

static bool grow_array(void *field, size_t count, size_t size)
{
    void *old;
    memcpy(&old, field, sizeof old);
    void *grown = realloc(old, count * size);
    if (grown)
        memcpy(field, &grown, sizeof grown);
    return grown != NULL;
}

static bool grow(struct job *job)
{
    struct tw_rows *rows = &job->rows;
    size_t cap = rows->cap ? rows->cap * 2 : FIRST_ROWS;
    bool ok = grow_array(&rows->time_us, cap, sizeof *rows->time_us) &&
              grow_array(&rows->key, cap, sizeof *rows->key) &&
              grow_array(&rows->line, cap, sizeof *rows->line);
    for (size_t s = 0; ok && s < TW_ROWS_SLOTS; s++)
        ok = !job->reader.slot_used[s] || grow_array(&rows->slot[s], cap, sizeof *rows->slot[s]);
    if (ok)
        rows->cap = cap;
    return ok;
}

static void free_rows(struct tw_rows *rows)
{
    free(rows->time_us);
    free(rows->key);
    free(rows->line);
    for (size_t s = 0; s < TW_ROWS_SLOTS; s++)
        free(rows->slot[s]);
}

/* --- text into rows -----------------------------------------------------------------------------------------
 */

static enum tw_err feed(struct job *job, const char *text, size_t n, bool cut, struct tw_why *why)
{
    while (n > 0) {
        if (job->rows.cap - job->rows.n < 1024 && !grow(job))
            return tw_fail(why, TW_ENOMEM, "out of memory after %zu rows", job->rows.n);
        size_t used = job->reader.format->feed(&job->reader, text, n, cut, &job->rows);
        text += used;
        n -= used;
    }
    return TW_OK;
}

/* What a person sees of a file that is in no known format. */
static enum tw_err unknown_format(const char *text, size_t n, struct tw_why *why)
{
    char seen[41];
    size_t len = 0;
    for (; len < n && len + 1 < sizeof seen && text[len] != '\n' && text[len] != '\r'; len++)
        seen[len] = text[len] >= ' ' && text[len] <= '~' ? text[len] : '?';
    seen[len] = '\0';
    return tw_fail(
        why, TW_EPARSE,
        "no known format (begins with \"%s\"); expected nvidia-smi, DCGM, NVML or BMC CSV with a time "
        "and a power column, an MLPerf power log or a PTDaemon log",
        seen);
}

static enum tw_err start(struct job *job, const char *text, size_t n, size_t *ret_used, struct tw_why *why)
{
    job->reader.format = tw_format_of(text, n);
    if (!job->reader.format)
        return unknown_format(text, n, why);
    job->imp->format = job->reader.format->name;
    job->started = true;
    return job->reader.format->start(&job->reader, text, n, ret_used, why);
}

/* Lines of text[n], which ends in a newline. */
static enum tw_err take_lines(struct job *job, const char *text, size_t n, bool cut, struct tw_why *why)
{
    size_t used = 0;
    if (!job->started) {
        enum tw_err err = start(job, text, n, &used, why);
        if (err)
            return err;
    }
    if (job->skip_line && used < n) { /* the end of a line that was too long */
        used = (size_t)((const char *)memchr(text, '\n', n) + 1 - text);
        job->skip_line = false;
    }
    return feed(job, text + used, n - used, cut, why);
}

static void too_long(struct job *job, const char *text, size_t n)
{
    if (job->skip_line)
        return;
    assert(job->started); /* a first line that long is no header */
    job->skip_line = true;
    job->reader.lines->line++;
    tw_reject_add(job->imp->rejected, memchr(text, '\0', n) ? TW_REJECT_NUL_BYTES : TW_REJECT_TOO_LONG,
                  job->reader.lines->line);
}

/* Source of text: fills buf, fewer than size bytes at the end. */
typedef enum tw_err (*read_fn)(void *ctx, char *buf, size_t size, size_t *ret_n, struct tw_why *why);

static enum tw_err take_tail(struct job *job, char *buf, size_t n, bool damaged, struct tw_why *why)
{
    if (damaged) {
        if (!job->started)
            return tw_fail(why, TW_EPARSE, "compressed data damaged or cut before the first line");
        tw_reject_add(job->imp->rejected, TW_REJECT_CORRUPT_GZIP, job->reader.lines->line + 1);
        return TW_OK;
    }
    if (n == 0)
        return TW_OK;
    buf[n] = '\n';
    return take_lines(job, buf, n + 1, true, why);
}

static enum tw_err take_all(struct job *job, read_fn read, void *ctx, struct tw_unpack *unpack,
                            struct tw_why *why)
{
    char *buf = malloc(BLOCK + 1 + TW_TEXT_PAD);
    if (!buf)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    size_t held = 0, got;
    enum tw_err err;
    do {
        err = read(ctx, buf + held, BLOCK - held, &got, why);
        if (err)
            break;
        bool end = got < BLOCK - held;
        job->imp->bytes += got;
        held += got;
        const char *last = memrchr(buf, '\n', held);
        size_t whole = last ? (size_t)(last + 1 - buf) : 0;
        if (whole)
            err = take_lines(job, buf, whole, false, why);
        else if (!end && !job->started)
            err = unknown_format(buf, held, why);
        if (err)
            break;
        held -= whole;
        memmove(buf, buf + whole, held);
        if (!end && held > BLOCK / 2) {
            too_long(job, buf, held);
            held = 0;
        }
        if (end) {
            err = take_tail(job, buf, job->skip_line ? 0 : held, unpack && tw_unpack_damaged(unpack), why);
            break;
        }
    } while (true);
    free(buf);
    if (!err && job->imp->bytes == 0)
        err = tw_fail(why, TW_ENODATA, "the file is empty");
    return err;
}

/* --- rows into series ---------------------------------------------------------------------------------------
 */

struct dealt {
    size_t n;        /* rows */
    int64_t last_us; /* of the row before */
    int64_t prev_us; /* of the one before that, when n > 1 */
    size_t last_row;
};

/* Row i lies before the row before it. Was it that one which had jumped ahead? Then this row fits what came
 * before it, and so does the next. (A torn "68.5299" can leave "5299" in a row that is otherwise whole.) */
static bool last_jumped(const struct tw_rows *rows, const struct dealt *d, size_t i)
{
    int64_t t = rows->time_us[i];
    if (d->n > 1 && t < d->prev_us)
        return false;
    for (size_t j = i + 1; j < rows->n && j < i + 4096; j++)
        if (rows->key[j] == rows->key[i])
            return rows->time_us[j] >= t && rows->time_us[j] < d->last_us;
    return false;
}

/* Take rows out that would make time go back. */
static void drop_backward(struct job *job, struct dealt *dealt)
{
    struct tw_rows *rows = &job->rows;
    for (size_t i = 0; i < rows->n; i++) {
        struct dealt *d = &dealt[rows->key[i]];
        int64_t t = rows->time_us[i];
        if (d->n > 0 && t < d->last_us) {
            bool jumped = last_jumped(rows, d, i);
            size_t out = jumped ? d->last_row : i;
            tw_reject_add(job->imp->rejected, TW_REJECT_TIME_BACK, rows->line[out]);
            rows->key[out] = TW_KEY_NONE;
            if (!jumped)
                continue;
        } else {
            d->prev_us = d->last_us;
            d->n++;
        }
        d->last_us = t;
        d->last_row = i;
    }
}

static bool name_taken(const struct tw_import *imp, size_t before, const char *name)
{
    for (size_t i = 0; i < before; i++)
        if (strcmp(imp->series[i].name, name) == 0)
            return true;
    return false;
}

static void name_by_key(struct job *job, struct tw_series *s, size_t at, uint32_t key)
{
    const struct tw_key *k = &job->reader.keys->key[key];
    memcpy(s->model, k->model, sizeof s->model);
    s->scope = job->reader.format->anon == TW_ANON_SERVER ? TW_SCOPE_SERVER : TW_SCOPE_GPU;
    if (job->reader.format->ids_are_names) {
        memcpy(s->name, k->id, sizeof s->name);
        if (strcmp(s->name, "total") == 0)
            s->scope = TW_SCOPE_OTHER; /* the sum of the others */
    } else {
        (void)snprintf(s->name, sizeof s->name, "gpu%d", k->index >= 0 ? k->index : (int)at);
        if (strcmp(k->id, s->name) != 0)
            (void)snprintf(s->uuid, sizeof s->uuid, "%.47s", k->id);
    }
    for (unsigned i = 2; name_taken(job->imp, at, s->name) || s->name[0] == '\0'; i++)
        (void)snprintf(s->name, sizeof s->name, "series%zu-%u", at, i);
}

static void name_series(struct job *job, struct tw_series *s, size_t at, uint32_t key)
{
    if (job->reader.keys) {
        name_by_key(job, s, at, key);
    } else if (job->reader.format->anon == TW_ANON_SERVER) {
        (void)snprintf(s->name, sizeof s->name, "server");
        s->scope = TW_SCOPE_SERVER;
    } else {
        (void)snprintf(s->name, sizeof s->name, "gpu%u", key);
        s->scope = TW_SCOPE_GPU;
    }
    s->wall = job->reader.wall;
}

static bool has_value(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(v[i]))
            return true;
    return false;
}

static bool alloc_series(const struct job *job, struct tw_series *s, size_t n)
{
    s->time_us = malloc(n * sizeof *s->time_us);
    bool ok = s->time_us != NULL;
    for (size_t ch = 0; ok && ch < TW_CH_COUNT; ch++)
        if (job->reader.slot_used[ch])
            ok = (s->ch[ch] = malloc(n * sizeof **s->ch)) != NULL;
    return ok;
}

/* One series takes the columns as they are. */
static void move_columns(struct job *job, struct tw_series *s)
{
    struct tw_rows *rows = &job->rows;
    s->n = rows->n;
    s->time_us = rows->time_us;
    rows->time_us = NULL;
    for (size_t ch = 0; ch < TW_CH_COUNT; ch++) {
        s->ch[ch] = rows->slot[ch];
        rows->slot[ch] = NULL;
    }
}

static void copy_columns(const struct job *job, struct tw_series *const of_key[])
{
    const struct tw_rows *rows = &job->rows;
    for (size_t i = 0; i < rows->n; i++)
        if (rows->key[i] != TW_KEY_NONE) {
            struct tw_series *s = of_key[rows->key[i]];
            s->time_us[s->n++] = rows->time_us[i];
        }
    for (size_t ch = 0; ch < TW_CH_COUNT; ch++) {
        if (!job->reader.slot_used[ch])
            continue;
        for (size_t k = 0; k < job->imp->n_series; k++)
            job->imp->series[k].n = 0;
        const float *from = rows->slot[ch];
        for (size_t i = 0; i < rows->n; i++)
            if (rows->key[i] != TW_KEY_NONE) {
                struct tw_series *s = of_key[rows->key[i]];
                s->ch[ch][s->n++] = from[i];
            }
    }
}

static void drop_empty_channels(struct tw_series *s)
{
    for (size_t ch = 0; ch < TW_CH_COUNT; ch++)
        if (s->ch[ch] && !has_value(s->ch[ch], s->n)) {
            free(s->ch[ch]);
            s->ch[ch] = NULL;
        }
}

static bool deal_out(struct job *job, const struct dealt *dealt, size_t n_keys)
{
    struct tw_import *imp = job->imp;
    struct tw_series *of_key[TW_KEYS_MAX] = {NULL};
    size_t n = 0, rows = 0;
    imp->series = calloc(n_keys, sizeof *imp->series);
    if (!imp->series)
        return false;
    for (uint32_t k = 0; k < n_keys; k++) {
        if (dealt[k].n == 0)
            continue;
        struct tw_series *s = of_key[k] = &imp->series[n];
        name_series(job, s, n++, k);
        rows += dealt[k].n;
    }
    imp->n_series = n;
    imp->rows = rows;
    if (n == 1 && rows == job->rows.n) {
        move_columns(job, &imp->series[0]);
    } else {
        for (uint32_t k = 0; k < n_keys; k++)
            if (of_key[k] && !alloc_series(job, of_key[k], dealt[k].n))
                return false;
        copy_columns(job, of_key);
    }
    for (size_t i = 0; i < n; i++)
        drop_empty_channels(&imp->series[i]);
    return true;
}

static double span_of(const struct tw_import *imp)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < imp->n_series; i++) {
        const struct tw_series *s = &imp->series[i];
        first = s->time_us[0] < first ? s->time_us[0] : first;
        last = s->time_us[s->n - 1] > last ? s->time_us[s->n - 1] : last;
    }
    return imp->n_series ? (double)(last - first) * 1e-6 : 0.0;
}

/* Keys of rows that have none. Returns how many keys there are. */
static size_t settle_keys(struct job *job)
{
    struct tw_rows *rows = &job->rows;
    if (job->reader.keys)
        return job->reader.keys->n;
    int64_t gap_us = 0;
    size_t things = 1;
    if (job->reader.format->anon == TW_ANON_ROUNDS)
        things = tw_rounds_find(rows->time_us, rows->n, &gap_us);
    job->imp->rounds_moved = tw_rounds_assign(rows->time_us, rows->line, rows->n, things, gap_us, rows->key);
    return things;
}

static enum tw_err finish(struct job *job, struct tw_why *why)
{
    assert(job->reader.lines); /* there was text, so a codec was started */
    for (int i = 0; i < TW_REJECT_COUNT; i++) {
        const struct tw_reject_count *r = &job->reader.lines->rejected[i];
        if (r->count == 0)
            continue;
        tw_reject_add(job->imp->rejected, (enum tw_reject)i, r->first_line);
        job->imp->rejected[i].count += r->count - 1;
    }
    if (job->rows.n == 0)
        return TW_OK;
    size_t n_keys = settle_keys(job);
    struct dealt *dealt = calloc(n_keys, sizeof *dealt);
    bool ok = dealt != NULL;
    if (ok) {
        drop_backward(job, dealt);
        ok = deal_out(job, dealt, n_keys);
    }
    free(dealt);
    if (!ok)
        return tw_fail(why, TW_ENOMEM, "out of memory for %zu rows", job->rows.n);
    job->imp->span_s = span_of(job->imp);
    return TW_OK;
}

/* --- the two ways in ----------------------------------------------------------------------------------------
 */

static enum tw_err import(read_fn read, void *ctx, struct tw_unpack *unpack, struct tw_import **ret,
                          struct tw_why *why)
{
    struct job *job = calloc(1, sizeof *job);
    struct tw_import *imp = calloc(1, sizeof *imp);
    enum tw_err err;
    if (!job || !imp) {
        err = tw_fail(why, TW_ENOMEM, "out of memory");
        goto out;
    }
    job->imp = imp;
    err = take_all(job, read, ctx, unpack, why);
    if (!err)
        err = finish(job, why);
    if (!err) {
        *ret = imp;
        imp = NULL;
    }
out:
    if (job)
        free_rows(&job->rows);
    free(job);
    tw_import_free(imp);
    return err;
}

static enum tw_err read_unpack(void *ctx, char *buf, size_t size, size_t *ret_n, struct tw_why *why)
{
    return tw_unpack_read(ctx, buf, size, ret_n, why);
}

enum tw_err tw_import_read(const char *path, struct tw_import **ret, struct tw_why *why)
{
    struct tw_unpack *unpack;
    enum tw_err err = tw_unpack_open(path, &unpack, why);
    if (err)
        return err;
    err = import(read_unpack, unpack, unpack, ret, why);
    tw_unpack_close(unpack);
    if (err)
        tw_why_prefix(why, "%s: ", path);
    return err;
}

struct memory {
    const char *at;
    size_t n;
};

static enum tw_err read_memory(void *ctx, char *buf, size_t size, size_t *ret_n, struct tw_why *why)
{
    struct memory *m = ctx;
    (void)why;
    size_t n = m->n < size ? m->n : size;
    memcpy(buf, m->at, n);
    m->at += n;
    m->n -= n;
    *ret_n = n;
    return TW_OK;
}

enum tw_err tw_import_text(const char *text, size_t n, struct tw_import **ret, struct tw_why *why)
{
    struct memory m = {text, n};
    return import(read_memory, &m, NULL, ret, why);
}

void tw_import_free(struct tw_import *imp)
{
    if (!imp)
        return;
    for (size_t i = 0; i < imp->n_series; i++) {
        free(imp->series[i].time_us);
        for (size_t ch = 0; ch < TW_CH_COUNT; ch++)
            free(imp->series[i].ch[ch]);
    }
    free(imp->series);
    free(imp);
}
