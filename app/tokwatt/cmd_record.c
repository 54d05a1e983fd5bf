/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt record: telemetry of a source to a file.
 *
 * One row for each GPU that was read anew, in the order of the source, with every channel by its name and in
 * SI:
 *
 *   t_s,gpu_uuid,gpu_model,job,power_w,power_instant_w,...
 *
 * t_s counts from the first turn. Numbers are the shortest that read back to the same float; missing is empty.
 * A name that ends in .gz is compressed. `tokwatt import` knows the format as tokwatt-csv. */
#include "base/num.h"
#include "io/registry.h"
#include "sys/clock.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define SCHEMA "tokwatt.record/1"
#define FOR_DEFAULT_S 3600.0
#define PERIOD_MIN_S 0.1
#define ROW_MAX 1024

struct args {
    const char *out, *source;
    double for_s, period_s;
    bool json, force;
};

struct recording {
    struct tw_device dev;
    const struct tw_gpu_info *gpu;
    const struct tw_job_info *job;
    size_t n_gpu, n_job;
    struct tw_site_sample sample;
    bool made; /* the file, which was not there before */
    gzFile file;
    int64_t start_us, rows;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

enum { OPT_JSON = 1000, OPT_FORCE };

static const struct argp_option options[] = {
    {"source", 's', "SOURCE", 0, "where from, NAME or NAME:SPEC (default sim)", 0},
    {"for", 'f', "TIME", 0, "how long (default 1h)", 0},
    {"period", 'p', "TIME", 0, "time between rows of one GPU, 100ms or more (default 1s)", 0},
    {"force", OPT_FORCE, NULL, 0, "write over a file that is there", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    switch (key) {
    case 's':
        a->source = arg;
        return 0;
    case 'f':
    case 'p':
        if (tw_num_duration(arg, key == 'f' ? &a->for_s : &a->period_s, &why) != TW_OK)
            argp_failure(state, TW_EXIT_USAGE, 0, "--%s: %s", key == 'f' ? "for" : "period", why.text);
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    case OPT_FORCE:
        a->force = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->out)
            argp_failure(state, TW_EXIT_USAGE, 0, "one file is written, not two: \"%s\" and \"%s\"", a->out,
                         arg);
        a->out = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "OUT",
    .doc = "Record the telemetry of a source to OUT, a CSV file (compressed when OUT ends in .gz)."
           "\vA simulated source is recorded faster than the clock. Example, an hour of a simulated site:\n\n"
           "  tokwatt record site.csv.gz --source sim:seed=7,gpus=64 --for 1h\n"
           "  tokwatt import --dry-run site.csv.gz",
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static int file_open(struct recording *r, const struct args *a)
{
    int fd = open(a->out, O_WRONLY | O_CREAT | O_CLOEXEC | (a->force ? O_TRUNC : O_EXCL), 0644);
    if (fd < 0)
        return errno == EEXIST ? tw_ui_error("%s is there already; choose another name or say --force", a->out)
                               : tw_ui_error("%s: %s", a->out, strerror(errno));
    r->file = gzdopen(fd, ends_with(a->out, ".gz") ? "wb6" : "wbT");
    if (!r->file) {
        (void)close(fd);
        return tw_ui_error("no memory to write %s", a->out);
    }
    r->made = !a->force;
    (void)gzbuffer(r->file, 1U << 17);
    return TW_EXIT_OK;
}

static bool header_write(struct recording *r)
{
    bool ok = gzputs(r->file, "t_s,gpu_uuid,gpu_model,job") >= 0;
    for (int c = 0; c < TW_CH_COUNT; c++)
        ok = gzprintf(r->file, ",%s", tw_channel_table[c].name) > 0 && ok;
    return gzputc(r->file, '\n') == '\n' && ok;
}

/* The fewest digits that read back to the same float; nothing for NaN. Returns their number. */
static size_t float_show(char *buf, size_t size, float x)
{
    int n = 0;
    for (int digits = 6; isfinite(x) && digits <= 9; digits++) {
        n = snprintf(buf, size, "%.*g", digits, (double)x);
        float back = strtof(buf, NULL);
        if (!(back < x) && !(back > x))
            break;
    }
    return (size_t)n;
}

static bool row_write(struct recording *r, size_t i)
{
    char row[ROW_MAX];
    const struct tw_gpu_info *g = &r->gpu[i];
    const struct tw_gpu_sample *s = &r->sample.gpu[i];
    size_t n = (size_t)snprintf(row, sizeof row, "%.10g,%s,%s,%s", (double)(s->time_us - r->start_us) * 1e-6,
                                g->uuid, g->model, g->job == TW_NO_JOB ? "" : r->job[g->job].name);
    for (int c = 0; c < TW_CH_COUNT; c++) {
        row[n++] = ',';
        n += float_show(row + n, sizeof row - n, s->ch[c]);
    }
    row[n++] = '\n';
    r->rows++;
    return gzwrite(r->file, row, (unsigned)n) == (int)n;
}

/* Let one period pass. False when it was interrupted. */
static enum tw_err pass(struct recording *r, double period_s, int64_t *next_us, struct tw_why *why)
{
    if (r->dev.source_ops->advance)
        return r->dev.source_ops->advance(r->dev.source, period_s, why);
    *next_us += (int64_t)(period_s * 1e6);
    struct timespec until = {.tv_sec = *next_us / 1000000, .tv_nsec = *next_us % 1000000 * 1000};
    (void)clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until,
                          NULL); /* a signal ends it, and `stop` says so */
    return TW_OK;
}

static int record(struct recording *r, const struct args *a)
{
    struct tw_why why = {""};
    long turns = lround(a->for_s / a->period_s);
    int64_t next_us = tw_boot_us();
    bool ok = header_write(r);
    for (long t = 0; t < turns && ok && !stop; t++) {
        if (pass(r, a->period_s, &next_us, &why) != TW_OK ||
            r->dev.source_ops->read(r->dev.source, &r->sample, &why) != TW_OK)
            return tw_ui_error("%s", why.text);
        if (t == 0)
            r->start_us = r->sample.now_us;
        for (size_t i = 0; i < r->n_gpu && ok; i++)
            if (r->sample.gpu[i].fresh)
                ok = row_write(r, i);
        tw_ui_progress((double)t / (double)turns, "%s", a->out);
    }
    tw_ui_progress_done();
    int last = gzclose(r->file);
    r->file = NULL;
    if (!ok || last != Z_OK)
        return tw_ui_error("%s: the file could not be written whole: %s", a->out,
                           errno ? strerror(errno) : "disk full?");
    return TW_EXIT_OK;
}

static int report(const struct recording *r, const struct args *a, double took_s)
{
    double span_s = (double)(r->sample.now_us - r->start_us) * 1e-6;
    bool simulated = r->dev.source_ops->advance != NULL;
    if (a->json) {
        struct tw_jsonw w;
        tw_ui_json(&w);
        tw_jsonw_object(&w, NULL);
        tw_jsonw_str(&w, "schema", SCHEMA);
        tw_jsonw_str(&w, "file", a->out);
        tw_jsonw_str(&w, "source", r->dev.source_ops->name);
        tw_jsonw_bool(&w, "simulated", simulated);
        tw_jsonw_i64(&w, "gpus", (int64_t)r->n_gpu);
        tw_jsonw_i64(&w, "rows", r->rows);
        tw_jsonw_num(&w, "span_s", span_s, 9);
        tw_jsonw_num(&w, "took_s", took_s, 3);
        tw_jsonw_end(&w);
        return tw_ui_json_done(&w, TW_EXIT_OK);
    }
    char span[40];
    printf("%s: %lld rows of %zu %sGPUs over %s\n", a->out, (long long)r->rows, r->n_gpu,
           simulated ? "simulated " : "", tw_num_show_duration(span_s, span, sizeof span));
    return TW_EXIT_OK;
}

static int prepare(struct recording *r, const struct args *a)
{
    struct tw_why why = {""};
    if (tw_device_open(a->source, &r->dev, &why) != TW_OK ||
        r->dev.source_ops->describe(r->dev.source, &r->gpu, &r->n_gpu, &r->job, &r->n_job, &why) != TW_OK)
        return tw_ui_error("%s", why.text);
    r->sample.gpu = calloc(r->n_gpu + 1, sizeof *r->sample.gpu);
    r->sample.job = calloc(r->n_job + 1, sizeof *r->sample.job);
    if (!r->sample.gpu || !r->sample.job)
        return tw_ui_error("no memory for %zu GPUs", r->n_gpu);
    return file_open(r, a);
}

int cmd_record(int argc, char **argv)
{
    struct args a = {.source = "sim", .for_s = FOR_DEFAULT_S, .period_s = 1.0};
    int status = tw_ui_parse(&argp, argc, argv, &a);
    if (status != 0)
        return status;
    if (!a.out)
        return tw_ui_error("a file to write is missing; see tokwatt record --help");
    if (!(a.period_s >= PERIOD_MIN_S))
        return tw_ui_error("a period of %g s is too short; 100ms is the shortest", a.period_s);
    if (!(a.for_s >= a.period_s))
        return tw_ui_error("--for %g s is shorter than one period of %g s", a.for_s, a.period_s);

    struct sigaction act = {.sa_handler = on_signal};
    (void)sigaction(SIGINT, &act, NULL); /* what was recorded until then is kept whole */
    (void)sigaction(SIGTERM, &act, NULL);
    struct recording r = {0};
    int64_t from_us = tw_boot_us();
    status = prepare(&r, &a);
    if (status == TW_EXIT_OK)
        status = record(&r, &a);
    if (status == TW_EXIT_OK)
        status = report(&r, &a, (double)(tw_boot_us() - from_us) * 1e-6);
    if (r.file)
        (void)gzclose(r.file); /* the error that led here has been told */
    if (status != TW_EXIT_OK && r.made && r.rows == 0)
        (void)unlink(a.out); /* a header alone is no recording */
    free(r.sample.gpu);
    free(r.sample.job);
    tw_device_close(&r.dev);
    return status;
}
