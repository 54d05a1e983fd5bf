/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt export: series out of the store as CSV, or the list of them. */
#include "base/num.h"
#include "store/store.h"
#include "sys/clock.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *store;
    const char *series; /* pattern, or NULL for all */
    bool list, json;
};

/* The series that were asked for, in the order of the store. */
struct chosen {
    const struct options *opt;
    struct {
        int64_t id;
        char *source;
        char name[64];
        bool wall;
    } * series;
    size_t n, cap;
    bool has[TW_CH_COUNT];
    struct tw_jsonw *json;
    uint64_t rows;
};

enum { OPT_STORE = 256, OPT_SERIES, OPT_LIST, OPT_JSON };

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *opt = state->input;
    switch (key) {
    case OPT_STORE:
        opt->store = arg;
        return 0;
    case OPT_SERIES:
        opt->series = arg;
        return 0;
    case OPT_LIST:
        opt->list = true;
        return 0;
    case OPT_JSON:
        opt->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "\"%s\" is one word too many; series are chosen with --series", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option option_table[] = {
    {"store", OPT_STORE, "FILE", 0, "the store (default ~/.local/share/tokwatt/tokwatt.db)", 0},
    {"series", OPT_SERIES, "PATTERN", 0, "only series whose name, or PATH:NAME, fits, with * and ?", 0},
    {"list", OPT_LIST, NULL, 0, "list the series instead of their samples", 0},
    {"json", OPT_JSON, NULL, 0, "with --list: as JSON", 0},
    {0},
};

static const char doc[] =
    "Write series out of the store as CSV on standard output: source, series, time, then a column for each "
    "channel "
    "that any of them has (SI units, empty = missing). Times are RFC 3339 in UTC with microseconds; for "
    "recordings "
    "without a time of day, seconds since their start. Numbers read back give the same bits.\v"
    "example: tokwatt export --list\n"
    "         tokwatt export --series '*node01*:server' > node01.csv";

static bool fits(const struct options *opt, const struct tw_store_entry *e)
{
    char full[4200];
    if (!opt->series)
        return true;
    (void)snprintf(full, sizeof full, "%s:%s", e->source, e->name);
    return fnmatch(opt->series, e->name, 0) == 0 || fnmatch(opt->series, full, 0) == 0;
}

static enum tw_err choose(void *ctx, const struct tw_store_entry *e)
{
    struct chosen *c = ctx;
    if (!fits(c->opt, e))
        return TW_OK;
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 64;
        void *grown = realloc(c->series, cap * sizeof *c->series);
        if (!grown)
            return TW_ENOMEM;
        c->series = grown;
        c->cap = cap;
    }
    char *source = strdup(e->source);
    if (!source)
        return TW_ENOMEM;
    c->series[c->n].id = e->id;
    c->series[c->n].source = source;
    c->series[c->n].wall = e->wall;
    (void)snprintf(c->series[c->n].name, sizeof c->series[c->n].name, "%s", e->name);
    c->n++;
    for (size_t ch = 0; ch < TW_CH_COUNT; ch++)
        c->has[ch] |= e->has[ch];
    return TW_OK;
}

/* --- the list -----------------------------------------------------------------------------------------------
 */

static void list_json(struct tw_jsonw *w, const struct tw_store_entry *e)
{
    char time[32];
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "source", e->source);
    tw_jsonw_str(w, "format", e->format);
    tw_jsonw_str(w, "series", e->name);
    tw_jsonw_str(w, "uuid", e->uuid[0] ? e->uuid : NULL);
    tw_jsonw_str(w, "model", e->model[0] ? e->model : NULL);
    tw_jsonw_i64(w, "rows", (int64_t)e->n);
    tw_jsonw_f64(w, "span_s", (double)(e->last_us - e->first_us) * 1e-6);
    tw_jsonw_str(w, "from", e->wall ? tw_wall_show(e->first_us, time, sizeof time) : NULL);
    tw_jsonw_array(w, "channels");
    for (size_t ch = 0; ch < TW_CH_COUNT; ch++)
        if (e->has[ch])
            tw_jsonw_str(w, NULL, tw_channel_table[ch].name);
    tw_jsonw_end(w);
    tw_jsonw_end(w);
}

static enum tw_err list_one(void *ctx, const struct tw_store_entry *e)
{
    struct chosen *c = ctx;
    char span[32];
    if (!fits(c->opt, e))
        return TW_OK;
    c->n++;
    c->rows += e->n;
    if (c->json)
        list_json(c->json, e);
    else
        printf("%10zu %14s  %-14s %s\n", e->n,
               tw_num_show_duration((double)(e->last_us - e->first_us) * 1e-6, span, sizeof span), e->name,
               e->source);
    return TW_OK;
}

static int list_all(struct tw_store *store, const struct options *opt)
{
    struct tw_jsonw w;
    struct chosen c = {.opt = opt, .json = opt->json ? &w : NULL};
    struct tw_why why = {{0}};
    if (opt->json) {
        tw_ui_json(&w);
        tw_jsonw_object(&w, NULL);
        tw_jsonw_str(&w, "schema", "tokwatt.export-list/1");
        tw_jsonw_array(&w, "series");
    } else {
        printf("%10s %14s  %-14s %s\n", "rows", "span", "series", "source");
    }
    if (tw_store_list(store, list_one, &c, &why))
        return tw_ui_error("%s", why.text);
    if (opt->json) {
        tw_jsonw_end(&w);
        tw_jsonw_end(&w);
        return tw_ui_json_done(&w, TW_EXIT_OK);
    }
    printf("%zu series, %llu rows\n", c.n, (unsigned long long)c.rows);
    return fflush(stdout) == 0 ? TW_EXIT_OK : tw_ui_error("cannot write to standard output");
}

/* --- the samples --------------------------------------------------------------------------------------------
 */

/* A cell of text, quoted when it must be. */
static void put_text(const char *s)
{
    if (!strpbrk(s, ",\"\r\n")) {
        fputs(s, stdout);
        return;
    }
    putchar('"');
    for (; *s; s++) {
        if (*s == '"')
            putchar('"');
        putchar(*s);
    }
    putchar('"');
}

static void put_time(int64_t us, bool wall)
{
    char text[32];
    int64_t second = us / 1000000 - (us % 1000000 < 0), rest = us - second * 1000000;
    if (wall) {
        tw_wall_show(second * 1000000, text, sizeof text);
        text[19] = '\0'; /* up to the second; the show has milliseconds only */
        printf("%s.%06dZ", text, (int)rest);
    } else if (us < 0 && rest > 0) {
        printf("-%lld.%06d", (long long)-(second + 1), (int)(1000000 - rest));
    } else {
        printf("%lld.%06d", (long long)second, (int)rest);
    }
}

struct writing {
    const struct chosen *c;
    size_t at;
};

static enum tw_err write_rows(void *ctx, const struct tw_series *rows)
{
    const struct writing *w = ctx;
    for (size_t i = 0; i < rows->n; i++) {
        put_text(w->c->series[w->at].source);
        putchar(',');
        put_text(w->c->series[w->at].name);
        putchar(',');
        put_time(rows->time_us[i], w->c->series[w->at].wall);
        for (size_t ch = 0; ch < TW_CH_COUNT; ch++) {
            if (!w->c->has[ch])
                continue;
            putchar(',');
            if (rows->ch[ch] && !isnan(rows->ch[ch][i]))
                printf("%.9g", (double)rows->ch[ch][i]);
        }
        putchar('\n');
    }
    return ferror(stdout) ? TW_EIO : TW_OK;
}

static int write_all(struct tw_store *store, const struct options *opt)
{
    struct chosen c = {.opt = opt};
    struct tw_why why = {{0}};
    enum tw_err err = tw_store_list(store, choose, &c, &why);
    int status = TW_EXIT_OK;
    if (err)
        status = tw_ui_error("%s", err == TW_ENOMEM ? "out of memory" : why.text);
    else if (c.n == 0 && opt->series)
        status = tw_ui_error("no series fits \"%s\"; see tokwatt export --list", opt->series);
    if (status == TW_EXIT_OK) {
        fputs("source,series,time", stdout);
        for (size_t ch = 0; ch < TW_CH_COUNT; ch++)
            if (c.has[ch])
                printf(",%s", tw_channel_table[ch].name);
        putchar('\n');
    }
    for (size_t i = 0; i < c.n && status == TW_EXIT_OK; i++) {
        struct writing w = {&c, i};
        err = tw_store_read(store, c.series[i].id, write_rows, &w, &why);
        if (err)
            status = tw_ui_error("%s", ferror(stdout) ? "cannot write to standard output" : why.text);
    }
    if (status == TW_EXIT_OK && fflush(stdout) != 0)
        status = tw_ui_error("cannot write to standard output");
    for (size_t i = 0; i < c.n; i++)
        free(c.series[i].source);
    free(c.series);
    return status;
}

int cmd_export(int argc, char **argv)
{
    struct options opt = {0};
    static const struct argp argp = {option_table, parse_option, NULL, doc, NULL, NULL, NULL};
    int status = tw_ui_parse(&argp, argc, argv, &opt);
    if (status)
        return status;
    if (opt.json && !opt.list)
        return tw_ui_error("--json goes with --list; samples come as CSV");
    char path[4096];
    struct tw_why why = {{0}};
    struct tw_store *store = NULL;
    enum tw_err err = TW_OK;
    if (opt.store)
        (void)snprintf(path, sizeof path, "%s", opt.store);
    else
        err = tw_store_default_path(path, sizeof path, &why);
    if (!err)
        err = tw_store_open(path, false, &store, &why);
    if (err)
        return tw_ui_error("%s", why.text);
    status = opt.list ? list_all(store, &opt) : write_all(store, &opt);
    tw_store_close(store);
    return status;
}
