/* SPDX-License-Identifier: Apache-2.0 */
#include "feature/dataset.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const tw_part_text[TW_PART_COUNT] = {
#define TW_PART_TEXT(id, text) text,
    TW_PART_MAP(TW_PART_TEXT)
#undef TW_PART_TEXT
};

/* name, folder, prefixes, per GPU, validation and test of a run split by time, validation is the tail */
static const struct {
    const char *name;
    struct tw_set set;
} sets[] = {
    {"nvsmi-llm-infer", {.folder = "nvsmi-llm-infer"}},
    {"smc-h100-train/gpt3-64n", {.folder = "smc-h100-train", .prefix = {"gpt3-64n"}, .val_is_tail = true}},
    {"smc-h100-train/lora70b-1n", {.folder = "smc-h100-train", .prefix = {"lora70b-1n"}}},
    {"smc-h100-train/lora70b-8n", {.folder = "smc-h100-train", .prefix = {"lora70b-8n"}}},
    {"nvidia-h200-infer/llm", {.folder = "nvidia-h200-infer", .prefix = {"llama2-70b", "mixtral", "gptj"}}},
    {"nvidia-h200-infer", {.folder = "nvidia-h200-infer"}},
    {"dell-h100-train", {.folder = "dell-h100-train"}},
    {"nvsmi-h100-train/h100x8", {.folder = "nvsmi-h100-train", .prefix = {"h100x8"}}},
    {"nvsmi-h100-train/titanx2", {.folder = "nvsmi-h100-train", .prefix = {"titanx2"}}},
    {"dcgm-h100-mixed/gpu", {.folder = "dcgm-h100-mixed", .per_gpu = true}},
    /* from 2026-05-05 19:14:51 local time: validation from 11:15 of the next day, test from 12:00 */
    {"cisco-h200-train", {.folder = "cisco-h200-train", .time_split_s = {57609.0, 60309.0}}},
    {"gridpilot-v100", {.folder = "gridpilot-v100"}},
};

const char *tw_set_name(size_t i)
{
    return i < sizeof sets / sizeof *sets ? sets[i].name : NULL;
}

enum tw_err tw_set_parse(const char *name, struct tw_set *ret, struct tw_why *why)
{
    for (size_t i = 0; tw_set_name(i); i++)
        if (strcmp(name, tw_set_name(i)) == 0) {
            *ret = sets[i].set;
            return TW_OK;
        }
    const char *slash = strchr(name, '/');
    const size_t folder = slash ? (size_t)(slash - name) : strlen(name);
    if (folder == 0 || folder >= sizeof ret->folder || name[0] == '.' ||
        (slash && (strchr(slash + 1, '/') || strlen(slash + 1) >= sizeof ret->own_prefix)))
        return tw_fail(why, TW_EINVAL, "\"%.80s\" is not a set: write FOLDER or FOLDER/PREFIX", name);
    struct tw_set set = {.per_gpu = false};
    memcpy(set.folder, name, folder);
    if (slash)
        memcpy(set.own_prefix, slash + 1, strlen(slash + 1));
    *ret = set;
    return TW_OK;
}

bool tw_set_has_file(const struct tw_set *set, const char *file)
{
    if (!set->prefix[0])
        return strncmp(file, set->own_prefix, strlen(set->own_prefix)) == 0;
    for (size_t i = 0; i < sizeof set->prefix / sizeof *set->prefix && set->prefix[i]; i++)
        if (strncmp(file, set->prefix[i], strlen(set->prefix[i])) == 0)
            return true;
    return false;
}

/* ---- splits.csv ---- */

#define COLUMN_MAP(X) X(folder) X(file) X(channel) X(run) X(split) X(gpus_per_value)

enum column {
#define COLUMN_ENUM(name) COLUMN_##name,
    COLUMN_MAP(COLUMN_ENUM)
#undef COLUMN_ENUM
        COLUMN_COUNT
};

enum { MOST_FIELDS = 32 };

struct field {
    const char *s;
    size_t n;
};

/* The fields of the line at p; returns where the next line begins, NULL when p is at the end. */
static const char *cut_line(const char *p, const char *end, struct field *f, size_t *ret_n)
{
    if (p >= end)
        return NULL;
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    const char *stop = nl ? nl : end, *next = nl ? nl + 1 : end;
    if (stop > p && stop[-1] == '\r')
        stop--;
    size_t n = 0;
    for (const char *at = p; n < MOST_FIELDS; n++) {
        const char *comma = memchr(at, ',', (size_t)(stop - at));
        f[n] = (struct field){at, (size_t)((comma ? comma : stop) - at)};
        if (!comma) {
            n++;
            break;
        }
        at = comma + 1;
    }
    *ret_n = n;
    return next;
}

static bool copy_field(struct field f, char *ret, size_t size)
{
    if (f.n >= size)
        return false;
    memcpy(ret, f.s, f.n);
    ret[f.n] = '\0';
    return true;
}

static bool row_of(const struct field *f, const size_t *col, struct tw_split_row *ret)
{
    char number[32], *end;
    struct tw_split_row r = {.gpus_per_value = 1.0};
    if (!copy_field(f[col[COLUMN_folder]], r.folder, sizeof r.folder) ||
        !copy_field(f[col[COLUMN_file]], r.file, sizeof r.file) ||
        !copy_field(f[col[COLUMN_channel]], r.channel, sizeof r.channel) ||
        !copy_field(f[col[COLUMN_run]], r.run, sizeof r.run) ||
        !copy_field(f[col[COLUMN_split]], r.split, sizeof r.split) ||
        !copy_field(f[col[COLUMN_gpus_per_value]], number, sizeof number))
        return false;
    r.gpus_per_value = strtod(number, &end);
    if (end == number || *end || !(r.gpus_per_value >= 1.0 && r.gpus_per_value <= 1e4))
        return false;
    /* a path of the folder, never out of it */
    if (strchr(r.file, '/') || strchr(r.folder, '/') || r.file[0] == '.' || r.folder[0] == '.')
        return false;
    *ret = r;
    return true;
}

enum tw_err tw_split_parse(const char *text, size_t n, struct tw_split_row *ret, size_t max_rows, size_t *ret_n,
                           struct tw_why *why)
{
    static const char *const names[COLUMN_COUNT] = {
#define COLUMN_NAME(name) #name,
        COLUMN_MAP(COLUMN_NAME)
#undef COLUMN_NAME
    };
    struct field f[MOST_FIELDS];
    size_t fields = 0, col[COLUMN_COUNT], most = 0, rows = 0;
    const char *end = text + n, *p = cut_line(text, end, f, &fields);
    for (size_t c = 0; c < COLUMN_COUNT; c++) {
        size_t i = 0;
        while (p && i < fields && !(f[i].n == strlen(names[c]) && memcmp(f[i].s, names[c], f[i].n) == 0))
            i++;
        if (!p || i == fields)
            return tw_fail(why, TW_EPARSE, "the heading has no column \"%s\"", names[c]);
        col[c] = i;
        most = i > most ? i : most;
    }
    for (size_t line = 2; (p = cut_line(p, end, f, &fields)) != NULL; line++) {
        if (fields == 1 && f[0].n == 0)
            continue;
        if (rows == max_rows)
            return tw_fail(why, TW_ELIMIT, "more than %zu rows", max_rows);
        if (fields <= most || !row_of(f, col, &ret[rows]))
            return tw_fail(why, TW_EPARSE,
                           "line %zu is not a row of folder, file, channel, run, split, "
                           "gpus_per_value",
                           line);
        rows++;
    }
    *ret_n = rows;
    return TW_OK;
}

/* ---- parts ---- */

#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static uint64_t fnv(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * FNV_PRIME;
    return h;
}

static void mark_twins(struct tw_dataset *ds)
{
    for (size_t i = 0; i < ds->n; i++)
        for (size_t j = 0; j < i && !ds->track[i].twin; j++) {
            const struct tw_track *a = &ds->track[i], *b = &ds->track[j];
            ds->track[i].twin = !b->twin && a->n == b->n && strcmp(a->run, b->run) == 0 &&
                                memcmp(a->x_w, b->x_w, a->n * sizeof *a->x_w) == 0;
        }
}

/* Rank of a run among those of the set by name, and how many there are. */
static size_t rank_of(const struct tw_dataset *ds, const char *run, size_t *ret_runs)
{
    size_t rank = 0, runs = 0;
    for (size_t i = 0; i < ds->n; i++) {
        bool first = true;
        for (size_t j = 0; j < i && first; j++)
            first = strcmp(ds->track[i].run, ds->track[j].run) != 0;
        if (!first)
            continue;
        runs++;
        rank += strcmp(ds->track[i].run, run) < 0;
    }
    *ret_runs = runs;
    return rank;
}

static void deal(struct tw_dataset *ds)
{
    for (size_t i = 0; i < ds->n; i++) {
        struct tw_track *t = &ds->track[i];
        size_t runs, rank = rank_of(ds, t->run, &runs);
        if (runs == 1) {
            t->part[TW_PART_TRAIN] = (struct tw_span){0, t->n * 6 / 10};
            t->part[TW_PART_VAL] = (struct tw_span){t->n * 6 / 10, t->n * 8 / 10};
            t->part[TW_PART_TEST] = (struct tw_span){t->n * 8 / 10, t->n};
        } else {
            enum tw_part part = runs < 5        ? (rank == runs - 1 ? TW_PART_TEST : TW_PART_TRAIN)
                                : rank % 5 == 3 ? TW_PART_VAL
                                : rank % 5 == 4 ? TW_PART_TEST
                                                : TW_PART_TRAIN;
            t->part[part] = (struct tw_span){0, t->n};
        }
    }
}

static size_t count_part(const struct tw_dataset *ds, enum tw_part part)
{
    size_t n = 0;
    for (size_t i = 0; i < ds->n; i++)
        n += ds->track[i].part[part].to - ds->track[i].part[part].from;
    return n;
}

static void by_word(const struct tw_dataset *ds, const struct tw_set *set, struct tw_track *t, const char *word)
{
    if (strcmp(word, "time") == 0 && set->time_split_s[0] > 0.0) {
        size_t val = (size_t)(set->time_split_s[0] / ds->step_s),
               test = (size_t)(set->time_split_s[1] / ds->step_s);
        val = val < t->n ? val : t->n;
        test = test < t->n ? test : t->n;
        t->part[TW_PART_TRAIN] = (struct tw_span){0, val};
        t->part[TW_PART_VAL] = (struct tw_span){val, test};
        t->part[TW_PART_TEST] = (struct tw_span){test, t->n};
    }
    for (size_t p = 0; p < TW_PART_COUNT; p++)
        if (strcmp(word, tw_part_text[p]) == 0 && !(p == TW_PART_VAL && set->val_is_tail))
            t->part[p] = (struct tw_span){0, t->n};
}

static void tail_validates(struct tw_dataset *ds)
{
    const size_t gap = tw_input_steps(60.0, ds->step_s);
    for (size_t i = 0; i < ds->n; i++) {
        struct tw_span *train = &ds->track[i].part[TW_PART_TRAIN];
        const size_t length = train->to - train->from, cut = train->from + length * 8 / 10;
        if (length < 10 * gap)
            continue; /* too short to give some away */
        ds->track[i].part[TW_PART_VAL] = (struct tw_span){cut, train->to};
        train->to = cut - gap;
    }
}

enum tw_err tw_dataset_part(struct tw_dataset *ds, const struct tw_set *set, const char *const *split,
                            bool *ret_dealt, struct tw_why *why)
{
    for (size_t i = 0; i < ds->n; i++)
        memset(ds->track[i].part, 0, sizeof ds->track[i].part);
    for (size_t i = 0; i < ds->n && split; i++)
        by_word(ds, set, &ds->track[i], split[i]);
    const bool dealt = count_part(ds, TW_PART_TEST) == 0;
    if (dealt)
        deal(ds);
    if (count_part(ds, TW_PART_VAL) == 0)
        tail_validates(ds);
    if (count_part(ds, TW_PART_TRAIN) == 0 || count_part(ds, TW_PART_TEST) == 0)
        return tw_fail(why, TW_ENODATA, "set \"%s\": no series is left for %s", ds->set,
                       count_part(ds, TW_PART_TRAIN) == 0 ? "training" : "testing");
    mark_twins(ds);
    ds->hash = FNV_START;
    for (size_t i = 0; i < ds->n; i++) {
        ds->hash = fnv(ds->hash, ds->track[i].x_w, ds->track[i].n * sizeof(float));
        for (size_t p = 0; p < TW_PART_COUNT; p++) {
            ds->hash = (ds->hash ^ ds->track[i].part[p].from) * FNV_PRIME;
            ds->hash = (ds->hash ^ ds->track[i].part[p].to) * FNV_PRIME;
        }
    }
    *ret_dealt = dealt;
    return TW_OK;
}

struct tw_scaler tw_dataset_scaler(const struct tw_dataset *ds)
{
    double n = 0.0, sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < ds->n; i++) {
        const struct tw_track *t = &ds->track[i];
        for (size_t k = t->part[TW_PART_TRAIN].from; k < t->part[TW_PART_TRAIN].to && !t->twin; k++)
            if (isfinite(t->x_w[k])) {
                n += 1.0;
                sum += (double)t->x_w[k];
                squares += (double)t->x_w[k] * (double)t->x_w[k];
            }
    }
    const double mean = n > 0.0 ? sum / n : 0.0, var = n > 0.0 ? squares / n - mean * mean : 0.0;
    return (struct tw_scaler){.mean_w = mean, .std_w = var > 1e-6 ? sqrt(var) : 1.0};
}
