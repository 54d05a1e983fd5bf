/* SPDX-License-Identifier: Apache-2.0 */
#include "tokwatt/data.h"

#include "io/file/import.h"
#include "series/grid.h"
#include "sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_ROWS = 100000, MOST_FILES = 20000, SPLITS_MOST_BYTES = 32 << 20 };

struct loader {
    const char *root;
    struct tw_set set;
    char folder[4096];        /* paths over 4000 bytes are refused */
    struct tw_split_row *row; /* of this set */
    size_t n_row;
    struct file_name {
        char text[160];
    } * file; /* in order */
    size_t n_file;
    bool lone; /* DATA is one recording */
    struct data *d;
    char (*split)[12]; /* [n tracks] */
    size_t room;
};

static void leave_out(struct data *d, const char *file, const char *text)
{
    if (d->left_out++ == 0)
        (void)tw_fail(&d->left_why, TW_ENODATA, "%s: %s", file, text);
}

/* ---- which files ---- */

static enum tw_err add_file(struct loader *l, const char *name, struct tw_why *why)
{
    if (l->n_file > 0 && strcmp(l->file[l->n_file - 1].text, name) == 0)
        return TW_OK; /* rows of one file stand together */
    if (l->n_file == MOST_FILES || strlen(name) >= sizeof *l->file)
        return tw_fail(why, TW_ELIMIT, "%s: more than %d files, or a name over %zu bytes", l->folder,
                       MOST_FILES, sizeof *l->file);
    if (l->n_file % 256 == 0) {
        struct file_name *more = realloc(l->file, (l->n_file + 256) * sizeof *l->file);
        if (!more)
            return tw_fail(why, TW_ENOMEM, "out of memory");
        l->file = more;
    }
    memcpy(l->file[l->n_file++].text, name, strlen(name) + 1);
    return TW_OK;
}

/* The rows of splits.csv that belong to the set; none when there is no such file. */
static enum tw_err read_splits(struct loader *l, struct tw_why *why)
{
    char path[4200];
    char *text = NULL;
    size_t n = 0, rows = 0;
    (void)snprintf(path, sizeof path, "%s/splits.csv", l->root);
    enum tw_err err = tw_file_read(path, SPLITS_MOST_BYTES, &text, &n, why);
    if (err == TW_ENOENT)
        return TW_OK;
    if (err != TW_OK)
        return err;
    l->row = calloc(MOST_ROWS, sizeof *l->row);
    err = l->row ? tw_split_parse(text, n, l->row, MOST_ROWS, &rows, why)
                 : tw_fail(why, TW_ENOMEM, "out of memory");
    free(text);
    if (err != TW_OK) {
        tw_why_prefix(why, "%s: ", path);
        return err;
    }
    for (size_t i = 0; i < rows; i++) {
        const struct tw_split_row *r = &l->row[i];
        if (strcmp(r->folder, l->set.folder) != 0 || !tw_set_has_file(&l->set, r->file) ||
            (l->set.per_gpu && r->gpus_per_value > 1.0))
            continue;
        l->row[l->n_row++] = *r;
        err = add_file(l, r->file, why);
        if (err != TW_OK)
            return err;
    }
    return TW_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static enum tw_err list_files(struct loader *l, struct tw_why *why)
{
    DIR *dir = opendir(l->folder);
    enum tw_err err = TW_OK;
    if (!dir)
        return tw_fail(why, TW_EIO, "%s: %s", l->folder, strerror(errno));
    for (struct dirent *e; err == TW_OK && (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.' && (e->d_type == DT_REG || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN) &&
            tw_set_has_file(&l->set, e->d_name))
            err = add_file(l, e->d_name, why);
    (void)closedir(dir);
    if (err == TW_OK && l->n_file > 1)
        qsort(l->file, l->n_file, sizeof *l->file, by_name);
    return err;
}

/* ---- files into tracks ---- */

static enum tw_err add_track(struct loader *l, const struct tw_series *s, const char *file, int64_t start_us,
                             double median_s, double gpus, const char *run, const char *split,
                             struct tw_why *why)
{
    struct tw_dataset *ds = &l->d->ds;
    if (ds->n == l->room) {
        const size_t room = l->room ? 2 * l->room : 64;
        void *track = realloc(ds->track, room * sizeof *ds->track);
        if (track)
            ds->track = track;
        void *word = realloc(l->split, room * sizeof *l->split);
        if (word)
            l->split = word;
        if (!track || !word)
            return tw_fail(why, TW_ENOMEM, "out of memory");
        l->room = room;
    }
    struct tw_track *t = &ds->track[ds->n];
    *t = (struct tw_track){.n = tw_grid_count(s, start_us, ds->step_s)};
    t->x_w = malloc((t->n ? t->n : 1) * sizeof *t->x_w);
    if (!t->x_w)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    tw_grid_fill(s, TW_CH_POWER_W, start_us, ds->step_s, median_s < 0.75, TW_GRID_HOLD_S, t->n, t->x_w);
    for (size_t k = 0; k < t->n; k++)
        t->x_w[k] = (float)((double)t->x_w[k] / gpus);
    (void)snprintf(t->name, sizeof t->name, "%.120s:%.30s", file, s->name);
    (void)snprintf(t->run, sizeof t->run, "%.90s", run);
    (void)snprintf(l->split[ds->n], sizeof l->split[ds->n], "%.11s", split);
    ds->n++;
    return TW_OK;
}

static const struct tw_series *series_of(const struct tw_import *imp, const char *channel)
{
    for (size_t i = 0; i < imp->n_series; i++)
        if (strcmp(imp->series[i].name, channel) == 0)
            return &imp->series[i];
    return channel[0] == '\0' && imp->n_series == 1 ? &imp->series[0] : NULL;
}

static enum tw_err add_series(struct loader *l, const struct tw_import *imp, const char *file,
                              struct tw_why *why)
{
    int64_t start_us = INT64_MAX;
    for (size_t i = 0; i < imp->n_series; i++)
        if (imp->series[i].n > 0 && imp->series[i].time_us[0] < start_us)
            start_us = imp->series[i].time_us[0];
    const double median_s = tw_series_step_s(&imp->series[0]), step_s = tw_grid_step_s(median_s);
    if (!(step_s >= 1.0 && step_s <= 30.0)) {
        leave_out(l->d, file, "too few samples, or over 30 s apart");
        return TW_OK;
    }
    if (l->d->ds.n == 0)
        l->d->ds.step_s = step_s;
    if (fabs(step_s - l->d->ds.step_s) > 0.5) {
        leave_out(l->d, file, "another sampling interval than the files before it");
        return TW_OK;
    }
    enum tw_err err = TW_OK;
    bool known = false;
    for (size_t i = 0; err == TW_OK && i < l->n_row; i++) {
        const struct tw_split_row *r = &l->row[i];
        if (strcmp(r->file, file) != 0)
            continue;
        known = true;
        const struct tw_series *s = series_of(imp, r->channel);
        if (s && s->ch[TW_CH_POWER_W])
            err = add_track(l, s, file, start_us, median_s, r->gpus_per_value, r->run, r->split, why);
        else
            leave_out(l->d, file, "no series of that name with power");
    }
    for (size_t i = 0; err == TW_OK && !known && i < imp->n_series; i++) {
        const struct tw_series *s = &imp->series[i];
        if (s->ch[TW_CH_POWER_W] && s->scope != TW_SCOPE_OTHER)
            err = add_track(l, s, file, start_us, median_s, s->scope == TW_SCOPE_SERVER ? 8.0 : 1.0, file, "",
                            why);
    }
    return err;
}

static enum tw_err read_file(struct loader *l, const char *file, struct tw_why *why)
{
    char path[4400];
    struct tw_import *imp = NULL;
    struct tw_why reason = {""};
    (void)snprintf(path, sizeof path, "%s/%s", l->folder, file);
    enum tw_err err = tw_import_read(path, &imp, &reason);
    if (err == TW_ENOMEM) {
        *why = reason;
        return err;
    }
    if (err != TW_OK) {
        /* beside recordings lie notes and logs: only what splits.csv names, or a lone file, must be readable */
        if (l->n_row > 0 || l->n_file == 1)
            leave_out(l->d, file, reason.text);
        return TW_OK;
    }
    if (imp->n_series > 0)
        err = add_series(l, imp, file, why);
    tw_import_free(imp);
    return err;
}

static void count_parts(struct data *d)
{
    const struct tw_dataset *ds = &d->ds;
    for (size_t i = 0; i < ds->n; i++) {
        d->n_twin += ds->track[i].twin;
        for (size_t p = 0; p < TW_PART_COUNT; p++) {
            if (ds->track[i].part[p].to == ds->track[i].part[p].from)
                continue;
            d->n_track[p]++;
            bool first = true;
            for (size_t j = 0; j < i && first; j++)
                first = ds->track[j].part[p].to == ds->track[j].part[p].from ||
                        strcmp(ds->track[i].run, ds->track[j].run) != 0;
            d->n_run[p] += first;
        }
    }
}

/* Where the set lies: DATA/FOLDER, DATA itself, or the folder of a single recording. */
static enum tw_err find_folder(struct loader *l, const char *path, const char *set, struct tw_why *why)
{
    struct stat st;
    if (strlen(path) > 4000)
        return tw_fail(why, TW_EINVAL, "the path is too long");
    if (stat(path, &st) != 0)
        return tw_fail(why, TW_ENOENT, "%s: %s", path, strerror(errno));
    if (S_ISREG(st.st_mode)) {
        const char *slash = strrchr(path, '/');
        (void)snprintf(l->folder, sizeof l->folder, "%s", slash ? path : ".");
        if (slash)
            l->folder[slash - path] = '\0';
        l->lone = true;
        return add_file(l, slash ? slash + 1 : path, why);
    }
    if (strcmp(set, ".") == 0) {
        (void)snprintf(l->folder, sizeof l->folder, "%s", path);
        return TW_OK;
    }
    enum tw_err err = tw_set_parse(set, &l->set, why);
    if (err != TW_OK)
        return err;
    (void)snprintf(l->folder, sizeof l->folder, "%s/%s", path, l->set.folder);
    if (stat(l->folder, &st) != 0 || !S_ISDIR(st.st_mode))
        return tw_fail(why, TW_ENOENT, "set \"%s\": %s has no folder \"%s\"", set, path, l->set.folder);
    return read_splits(l, why);
}

static enum tw_err load(struct loader *l, const char *path, const char *set, struct tw_why *why)
{
    struct data *d = l->d;
    enum tw_err err = find_folder(l, path, set, why);
    if (err == TW_OK && l->n_file == 0)
        err = list_files(l, why);
    if (err == TW_OK && l->n_file == 0)
        return tw_fail(why, TW_ENOENT, "set \"%s\": %s has no file that begins with \"%s\"", set, l->folder,
                       l->set.own_prefix);
    /* a lone recording goes by its own name, which no set of the table has */
    (void)snprintf(d->ds.set, sizeof d->ds.set, "%.90s", l->lone ? l->file[0].text : set);
    for (size_t i = 0; err == TW_OK && i < l->n_file; i++)
        err = read_file(l, l->file[i].text, why);
    if (err != TW_OK)
        return err;
    if (d->ds.n == 0)
        return tw_fail(why, TW_ENODATA, "set \"%s\": no file of %s could be read%s%s", set, l->folder,
                       d->left_out ? ": " : "", d->left_out ? d->left_why.text : "");
    const char **split = l->split ? calloc(d->ds.n, sizeof *split) : NULL;
    if (!split)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    for (size_t i = 0; i < d->ds.n; i++)
        split[i] = l->split[i];
    err = tw_dataset_part(&d->ds, &l->set, split, &d->dealt, why);
    free(split);
    if (err == TW_OK)
        count_parts(d);
    return err;
}

enum tw_err data_load(const char *path, const char *set, struct data **ret, struct tw_why *why)
{
    struct loader l = {.root = path, .d = calloc(1, sizeof *l.d)};
    if (!l.d)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    enum tw_err err = load(&l, path, set, why);
    free(l.row);
    free(l.file);
    free(l.split);
    if (err == TW_OK)
        *ret = l.d;
    else
        data_free(l.d);
    return err;
}

void data_free(struct data *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->ds.n; i++)
        free(d->ds.track[i].x_w);
    free(d->ds.track);
    free(d);
}
