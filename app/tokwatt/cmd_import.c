/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt import: recordings of power into the store, with a report of what was left out and why. */
#include "base/num.h"
#include "io/file/import.h"
#include "io/file/walk.h"
#include "store/store.h"
#include "sys/clock.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct options {
    bool dry_run, json, strict;
    const char *store;
    char **path;
    int n_paths;
};

/* What is kept of a file once its samples are stored. */
struct result {
    const char *file; /* of the walk */
    const char *format;
    uint64_t rows, bytes;
    size_t n_series, gaps;
    double span_s, longest_gap_s;
    bool wall;
    int64_t from_us, to_us;
    char (*name)[64]; /* [n_series] */
    struct tw_reject_count rejected[TW_REJECT_COUNT];
};

struct run {
    struct options opt;
    struct tw_walk files;
    struct {
        size_t from; /* its files begin here in the walk, and end where the next begin */
        bool folder;
    } * named; /* [n_paths + 1] */
    struct result *result;
    size_t n_results;
    uint64_t not_telemetry, empty;
    struct tw_store *store;
    char store_path[4096];
    bool failed;
};

enum { OPT_DRY_RUN = 256, OPT_JSON, OPT_STRICT, OPT_STORE };

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *opt = state->input;
    switch (key) {
    case OPT_DRY_RUN:
        opt->dry_run = true;
        return 0;
    case OPT_JSON:
        opt->json = true;
        return 0;
    case OPT_STRICT:
        opt->strict = true;
        return 0;
    case OPT_STORE:
        opt->store = arg;
        return 0;
    case ARGP_KEY_ARGS:
        opt->path = state->argv + state->next;
        opt->n_paths = state->argc - state->next;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option option_table[] = {
    {"dry-run", OPT_DRY_RUN, NULL, 0, "read and report, store nothing", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 0},
    {"strict", OPT_STRICT, NULL, 0, "exit 1 when a line was left out", 0},
    {"store", OPT_STORE, "FILE", 0, "the store (default ~/.local/share/tokwatt/tokwatt.db)", 0},
    {0},
};

static const char doc[] = "Read recordings of GPU and server power into the store: CSV of nvidia-smi, DCGM, "
                          "NVML and BMCs, MLPerf power "
                          "logs, SPEC PTDaemon logs, each plain or gzip. Formats are told by content. Folders "
                          "are searched; what is no "
                          "recording there is passed over. A broken line is left out and counted; a file "
                          "imported again replaces what it "
                          "gave before.\v"
                          "example: tokwatt import --dry-run traces/\n"
                          "         tokwatt import nvidia-smi.csv.gz power/node_*.txt";

/* --- which files --------------------------------------------------------------------------------------------
 */

static int gather(struct run *run)
{
    struct tw_why why;
    run->named = calloc((size_t)run->opt.n_paths + 1, sizeof *run->named);
    if (!run->named)
        return tw_ui_error("out of memory");
    for (int i = 0; i < run->opt.n_paths; i++) {
        const char *path = run->opt.path[i];
        struct stat st;
        if (stat(path, &st) != 0)
            return tw_ui_error("%s: %s", path, strerror(errno));
        run->named[i].from = run->files.n;
        run->named[i].folder = S_ISDIR(st.st_mode);
        if ((run->named[i].folder ? tw_walk_add : tw_walk_file)(&run->files, path, &why))
            return tw_ui_error("%s", why.text);
    }
    run->named[run->opt.n_paths].from = run->files.n;
    run->result = calloc(run->files.n ? run->files.n : 1, sizeof *run->result);
    return run->result ? TW_EXIT_OK : tw_ui_error("out of memory");
}

/* --- one file -----------------------------------------------------------------------------------------------
 */

static bool summarize(struct result *r, const char *file, const struct tw_import *imp)
{
    *r = (struct result){.file = file,
                         .format = imp->format,
                         .rows = imp->rows,
                         .bytes = imp->bytes,
                         .n_series = imp->n_series,
                         .span_s = imp->span_s};
    memcpy(r->rejected, imp->rejected, sizeof r->rejected);
    r->name = calloc(imp->n_series ? imp->n_series : 1, sizeof *r->name);
    if (!r->name)
        return false;
    for (size_t i = 0; i < imp->n_series; i++) {
        const struct tw_series *s = &imp->series[i];
        double longest_s;
        memcpy(r->name[i], s->name, sizeof r->name[i]);
        r->gaps += tw_series_gaps(s, &longest_s);
        r->longest_gap_s = longest_s > r->longest_gap_s ? longest_s : r->longest_gap_s;
        r->wall = s->wall;
        r->from_us = i == 0 || s->time_us[0] < r->from_us ? s->time_us[0] : r->from_us;
        r->to_us = i == 0 || s->time_us[s->n - 1] > r->to_us ? s->time_us[s->n - 1] : r->to_us;
    }
    return true;
}

static enum tw_err store_file(struct run *run, const char *file, const struct tw_import *imp,
                              struct tw_why *why)
{
    struct stat st;
    char *path = realpath(file, NULL);
    if (!path || stat(path, &st) != 0) {
        enum tw_err err = tw_fail(why, TW_EIO, "%s: %s", file, strerror(errno));
        free(path);
        return err;
    }
    struct tw_store_source source = {.path = path,
                                     .format = imp->format,
                                     .size_bytes = st.st_size,
                                     .modified_us =
                                         (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000};
    enum tw_err err = tw_store_put(run->store, &source, imp->series, imp->n_series, why);
    free(path);
    return err;
}

/* The reason that stands first in the file. */
static int first_reject(const struct tw_reject_count rejected[TW_REJECT_COUNT])
{
    int first = -1;
    for (int i = 0; i < TW_REJECT_COUNT; i++)
        if (rejected[i].count && (first < 0 || rejected[i].first_line < rejected[first].first_line))
            first = i;
    return first;
}

static void fail(struct run *run, const char *text)
{
    (void)tw_ui_error("%s", text);
    run->failed = true;
}

static void no_rows(struct run *run, const char *file, const struct tw_import *imp)
{
    int why = first_reject(imp->rejected);
    run->failed = true;
    if (why < 0)
        (void)tw_ui_error("%s: %s without a single row", file, imp->format);
    else
        (void)tw_ui_error("%s: no usable row; line %llu: %s", file,
                          (unsigned long long)imp->rejected[why].first_line, tw_reject_text[why]);
}

static void one_file(struct run *run, const char *file, bool named)
{
    struct tw_import *imp = NULL;
    struct tw_why why = {{0}};
    enum tw_err err = tw_import_read(file, &imp, &why);
    if (err) {
        if (named || (err != TW_EPARSE && err != TW_ENODATA))
            fail(run, why.text);
        else if (err == TW_ENODATA)
            run->empty++;
        else
            run->not_telemetry++;
        return;
    }
    if (imp->rows == 0 && named) {
        no_rows(run, file, imp);
    } else if (run->store && imp->rows && store_file(run, file, imp, &why)) {
        fail(run, why.text);
    } else if (summarize(&run->result[run->n_results], file, imp)) {
        run->n_results++;
    } else {
        fail(run, "out of memory");
    }
    tw_import_free(imp);
}

static void all_files(struct run *run)
{
    for (int p = 0; p < run->opt.n_paths; p++) {
        size_t before = run->n_results, from = run->named[p].from, to = run->named[p + 1].from;
        bool failed = run->failed;
        for (size_t i = from; i < to; i++) {
            tw_ui_progress((double)i / (double)run->files.n, "%s", run->files.path[i]);
            one_file(run, run->files.path[i], !run->named[p].folder);
        }
        if (run->named[p].folder && run->n_results == before && run->failed == failed) {
            (void)tw_ui_error("%s: no recording of power among %zu files", run->opt.path[p], to - from);
            run->failed = true;
        }
    }
    tw_ui_progress_done();
}

/* --- reports ------------------------------------------------------------------------------------------------
 */

static void json_file(struct tw_jsonw *w, const struct result *r)
{
    char time[32];
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "file", r->file);
    tw_jsonw_str(w, "format", r->format);
    tw_jsonw_i64(w, "rows", (int64_t)r->rows);
    tw_jsonw_i64(w, "series", (int64_t)r->n_series);
    tw_jsonw_array(w, "series_names");
    for (size_t i = 0; i < r->n_series; i++)
        tw_jsonw_str(w, NULL, r->name[i]);
    tw_jsonw_end(w);
    tw_jsonw_f64(w, "span_s", r->span_s);
    tw_jsonw_str(w, "from", r->wall ? tw_wall_show(r->from_us, time, sizeof time) : NULL);
    tw_jsonw_str(w, "to", r->wall ? tw_wall_show(r->to_us, time, sizeof time) : NULL);
    tw_jsonw_i64(w, "gaps", (int64_t)r->gaps);
    tw_jsonw_f64(w, "longest_gap_s", r->longest_gap_s);
    tw_jsonw_array(w, "rejected");
    for (int i = 0; i < TW_REJECT_COUNT; i++) {
        if (r->rejected[i].count == 0)
            continue;
        tw_jsonw_object(w, NULL);
        tw_jsonw_str(w, "reason", tw_reject_text[i]);
        tw_jsonw_i64(w, "count", (int64_t)r->rejected[i].count);
        tw_jsonw_i64(w, "first_line", (int64_t)r->rejected[i].first_line);
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
    tw_jsonw_end(w);
}

static void json_skipped(struct tw_jsonw *w, const char *reason, uint64_t count)
{
    if (count == 0)
        return;
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "reason", reason);
    tw_jsonw_i64(w, "count", (int64_t)count);
    tw_jsonw_end(w);
}

static int report_json(const struct run *run, int status)
{
    struct tw_jsonw w;
    tw_ui_json(&w);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", "tokwatt.import/1");
    tw_jsonw_bool(&w, "dry_run", run->opt.dry_run);
    tw_jsonw_str(&w, "store", run->store ? run->store_path : NULL);
    tw_jsonw_array(&w, "files");
    for (size_t i = 0; i < run->n_results; i++)
        json_file(&w, &run->result[i]);
    tw_jsonw_end(&w);
    tw_jsonw_array(&w, "skipped");
    json_skipped(&w, "not telemetry", run->not_telemetry);
    json_skipped(&w, "empty", run->empty);
    tw_jsonw_end(&w);
    tw_jsonw_end(&w);
    return tw_ui_json_done(&w, status);
}

struct totals {
    uint64_t rows, series, gaps, rejected, bytes;
};

static struct totals add_up(const struct run *run)
{
    struct totals t = {0};
    for (size_t i = 0; i < run->n_results; i++) {
        const struct result *r = &run->result[i];
        t.rows += r->rows;
        t.series += r->n_series;
        t.gaps += r->gaps;
        t.bytes += r->bytes;
        t.rejected += tw_reject_total(r->rejected);
    }
    return t;
}

static void table_row(const struct result *r)
{
    char span[32];
    printf("%10llu %7zu %14s %6zu  %-18s %s\n", (unsigned long long)r->rows, r->n_series,
           tw_num_show_duration(r->span_s, span, sizeof span), r->gaps, r->format, r->file);
    for (int i = 0; i < TW_REJECT_COUNT; i++)
        if (r->rejected[i].count)
            printf("%10s left out: %llu x %s, first in line %llu\n", "",
                   (unsigned long long)r->rejected[i].count, tw_reject_text[i],
                   (unsigned long long)r->rejected[i].first_line);
}

static int report_table(const struct run *run, int status)
{
    struct totals t = add_up(run);
    printf("%10s %7s %14s %6s  %-18s %s\n", "rows", "series", "span", "gaps", "format", "file");
    for (size_t i = 0; i < run->n_results; i++)
        table_row(&run->result[i]);
    printf("%zu file%s, %llu series, %llu rows, %llu gaps, %llu line%s left out", run->n_results,
           run->n_results == 1 ? "" : "s", (unsigned long long)t.series, (unsigned long long)t.rows,
           (unsigned long long)t.gaps, (unsigned long long)t.rejected, t.rejected == 1 ? "" : "s");
    if (run->not_telemetry + run->empty)
        printf("; skipped: %llu not telemetry, %llu empty", (unsigned long long)run->not_telemetry,
               (unsigned long long)run->empty);
    if (run->store)
        printf("\nStored in %s. Next: tokwatt export --list%s%s\n", run->store_path,
               run->opt.store ? " --store " : "", run->opt.store ? run->opt.store : "");
    else
        printf("\nNothing was stored (--dry-run). Next: the same without --dry-run\n");
    if (fflush(stdout) != 0)
        return tw_ui_error("cannot write the report to standard output");
    return status;
}

/* One line about lines left out, whatever the form of the report. */
static void warn_rejected(const struct run *run)
{
    struct totals t = add_up(run);
    for (size_t i = 0; i < run->n_results; i++) {
        const struct result *r = &run->result[i];
        int first = first_reject(r->rejected);
        if (first < 0)
            continue;
        tw_ui_warn("%llu of the lines left out, the first being %s:%llu: %s", (unsigned long long)t.rejected,
                   r->file, (unsigned long long)r->rejected[first].first_line, tw_reject_text[first]);
        return;
    }
}

/* --- the verb -----------------------------------------------------------------------------------------------
 */

static int open_store(struct run *run)
{
    struct tw_why why;
    if (run->opt.dry_run)
        return TW_EXIT_OK;
    enum tw_err err = TW_OK;
    if (run->opt.store)
        (void)snprintf(run->store_path, sizeof run->store_path, "%s", run->opt.store);
    else
        err = tw_store_default_path(run->store_path, sizeof run->store_path, &why);
    if (!err)
        err = tw_store_open(run->store_path, true, &run->store, &why);
    return err ? tw_ui_error("%s", why.text) : TW_EXIT_OK;
}

static int import_all(struct run *run)
{
    int status = gather(run);
    if (status == TW_EXIT_OK)
        status = open_store(run);
    if (status != TW_EXIT_OK)
        return status;
    all_files(run);
    struct totals t = add_up(run);
    if (run->n_results && t.rows == 0 && !run->failed) {
        (void)tw_ui_error("no usable row in %zu files", run->n_results);
        run->failed = true;
    }
    status = run->failed ? TW_EXIT_USAGE : run->opt.strict && t.rejected ? TW_EXIT_BAD : TW_EXIT_OK;
    if (t.rows == 0)
        return status;
    warn_rejected(run);
    return run->opt.json ? report_json(run, status) : report_table(run, status);
}

int cmd_import(int argc, char **argv)
{
    struct run run = {0};
    static const struct argp argp = {option_table, parse_option, "PATH...", doc, NULL, NULL, NULL};
    int status = tw_ui_parse(&argp, argc, argv, &run.opt);
    if (status)
        return status;
    if (run.opt.n_paths == 0)
        return tw_ui_error("a file or folder is missing; see tokwatt import --help");
    status = import_all(&run);
    tw_store_close(run.store);
    for (size_t i = 0; i < run.n_results; i++)
        free(run.result[i].name);
    free(run.result);
    free(run.named);
    tw_walk_done(&run.files);
    return status;
}
