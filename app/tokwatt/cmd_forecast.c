/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt forecast: a model over a recording, forecasts as rows. */
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include "base/num.h"
#include "io/file/import.h"
#include "model/forecaster.h"
#include "series/grid.h"
#include "sys/file.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "tokwatt.forecast/1"
enum { MOST_SERIES = 4096 };

struct args {
    const char *model, *data, *series;
    double every_s, limit_w; /* every_s 0: only after the last sample; limit_w 0: as in training */
    bool json;
};

enum { OPT_JSON = 1000, OPT_SERIES, OPT_EVERY, OPT_LIMIT };

static const struct argp_option options[] = {
    {"series", OPT_SERIES, "PATTERN", 0, "only series whose name fits, with * and ?", 0},
    {"every", OPT_EVERY, "TIME", 0, "a forecast at every so many seconds of DATA (default: after its end only)",
     0},
    {"limit", OPT_LIMIT, "POWER", 0, "board limit of these devices, to scale those of training to", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON instead of CSV", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    enum tw_err err = TW_OK;
    switch (key) {
    case OPT_SERIES:
        a->series = arg;
        return 0;
    case OPT_EVERY:
        err = tw_num_duration(arg, &a->every_s, &why);
        if (err == TW_OK && !(a->every_s > 0.0))
            err = tw_fail(&why, TW_EINVAL, "more than no time was expected");
        break;
    case OPT_LIMIT:
        err = tw_num_power(arg, &a->limit_w, &why);
        break;
    case OPT_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 1)
            argp_failure(state, TW_EXIT_USAGE, 0, "\"%s\" is one word too many; MODEL and DATA were given",
                         arg);
        *(state->arg_num == 0 ? &a->model : &a->data) = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (err != TW_OK)
        argp_failure(state, TW_EXIT_USAGE, 0, "\"%s\": %s", arg, why.text);
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL DATA",
    .doc = "Step MODEL (a model file, or \"builtin\") through the recording DATA and print what it says of the "
           "minute that follows: power at 5, 10 ... 60 s ahead and its mean over 30 s and 60 s, each with the "
           "quantiles 0.1, 0.5 and 0.9, in watts per GPU. Times are seconds from the first sample of DATA. A "
           "series of less than a minute has no forecast yet.\v"
           "Example:\n\n"
           "  tokwatt record site.csv --source sim:seed=7,gpus=4,jobs=2 --for 5m\n"
           "  tokwatt forecast builtin site.csv --series gpu0",
};

/* One recording on the grid of the model. */
struct run {
    const struct args *args;
    const void *file; /* of the model */
    size_t n_file;
    char *file_text; /* what was read, to be freed */
    struct tw_import *imp;
    struct tw_forecaster *f;
    void *mem;
    const struct tw_series **series; /* [n] */
    double *gpus;                    /* [n] GPUs that a value covers */
    float *x_w;                      /* [n][steps] watts per GPU, NaN where nothing was read */
    size_t n, steps;
    struct tw_jsonw json;
};

static enum tw_err read_model(struct run *r, struct tw_why *why)
{
    if (strcmp(r->args->model, "builtin") == 0) {
        r->file = tw_model_builtin;
        r->n_file = tw_model_builtin_size;
        return TW_OK;
    }
    enum tw_err err = tw_file_read(r->args->model, TW_MODEL_FILE_MOST, &r->file_text, &r->n_file, why);
    r->file = r->file_text;
    return err;
}

static enum tw_err choose(struct run *r, struct tw_why *why)
{
    const struct tw_import *imp = r->imp;
    r->series = calloc(imp->n_series + 1, sizeof(const struct tw_series *));
    r->gpus = calloc(imp->n_series + 1, sizeof *r->gpus);
    if (!r->series || !r->gpus)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    for (size_t i = 0; i < imp->n_series; i++) {
        const struct tw_series *s = &imp->series[i];
        if (s->n == 0 || !s->ch[TW_CH_POWER_W] || s->scope == TW_SCOPE_OTHER ||
            (r->args->series && fnmatch(r->args->series, s->name, 0) != 0))
            continue;
        r->series[r->n] = s;
        r->gpus[r->n++] = s->scope == TW_SCOPE_SERVER ? 8.0 : 1.0;
    }
    if (r->n == 0 && r->args->series)
        return tw_fail(why, TW_ENODATA, "%s: no series with power fits \"%s\"; the first is \"%s\"",
                       r->args->data, r->args->series, imp->n_series ? imp->series[0].name : "(none)");
    if (r->n == 0)
        return tw_fail(why, TW_ENODATA, "%s: no series with power", r->args->data);
    if (r->n > MOST_SERIES)
        return tw_fail(why, TW_ELIMIT, "%s: %zu series; at most %d at a time, choose with --series",
                       r->args->data, r->n, MOST_SERIES);
    return TW_OK;
}

/* Bring the series onto the model's grid. A source that is slower than the grid would be mostly repeats. */
static enum tw_err lay_out(struct run *r, struct tw_why *why)
{
    const double step_s = tw_forecaster_step_s(r->f), median_s = tw_series_step_s(r->series[0]);
    int64_t start_us = INT64_MAX;
    for (size_t i = 0; i < r->imp->n_series; i++)
        if (r->imp->series[i].n > 0 && r->imp->series[i].time_us[0] < start_us)
            start_us = r->imp->series[i].time_us[0];
    if (median_s > 1.5 * step_s)
        return tw_fail(why, TW_EUNSUPPORTED, "%s has a sample every %.3g s; this model wants one every %g s",
                       r->args->data, median_s, step_s);
    for (size_t i = 0; i < r->n; i++) {
        const size_t n = tw_grid_count(r->series[i], start_us, step_s);
        r->steps = n > r->steps ? n : r->steps;
    }
    r->x_w = malloc((r->n * r->steps + 1) * sizeof *r->x_w);
    if (!r->x_w)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    for (size_t i = 0; i < r->n; i++) {
        float *x = r->x_w + i * r->steps;
        const size_t n = tw_grid_count(r->series[i], start_us, step_s);
        tw_grid_fill(r->series[i], TW_CH_POWER_W, start_us, step_s, median_s < 0.75 * step_s, TW_GRID_HOLD_S, n,
                     x);
        for (size_t k = 0; k < r->steps; k++)
            x[k] = k < n ? (float)((double)x[k] / r->gpus[i]) : NAN;
    }
    return TW_OK;
}

static enum tw_err open_run(struct run *r, struct tw_why *why)
{
    size_t bytes = 0;
    enum tw_err err = read_model(r, why);
    if (err == TW_OK) {
        err = tw_forecaster_bytes(r->file, r->n_file, 1, &bytes, why); /* is it a model? before data is read */
        if (err != TW_OK)
            tw_why_prefix(why, "%s: ", r->args->model);
    }
    if (err == TW_OK)
        err = tw_import_read(r->args->data, &r->imp, why);
    if (err == TW_OK)
        err = choose(r, why);
    if (err == TW_OK)
        err = tw_forecaster_bytes(r->file, r->n_file, r->n, &bytes, why);
    if (err == TW_OK) {
        r->mem = aligned_alloc(64, (bytes + 63) / 64 * 64);
        err = r->mem ? TW_OK : tw_fail(why, TW_ENOMEM, "out of memory");
    }
    if (err == TW_OK) {
        err = tw_forecaster_init(r->file, r->n_file, tw_kern_best(), r->n, r->mem, &r->f, why);
        if (err != TW_OK)
            tw_why_prefix(why, "%s: ", r->args->model);
    }
    for (size_t i = 0; err == TW_OK && i < r->n; i++)
        tw_forecaster_set_limit(r->f, i, r->args->limit_w);
    return err == TW_OK ? lay_out(r, why) : err;
}

static void close_run(struct run *r)
{
    tw_import_free(r->imp);
    free(r->file_text);
    free(r->mem);
    free(r->series);
    free(r->gpus);
    free(r->x_w);
}

/* ---- rows ---- */

static const char *head_text(size_t h)
{
    return h < TW_LEADS ? "point" : "mean";
}

static void print_csv(const struct run *r, size_t step, size_t i)
{
    const float *o = tw_forecaster_out(r->f) + i * TW_OUTPUTS;
    for (size_t h = 0; h < TW_HEADS; h++, o += TW_QUANTILES)
        printf("%g,%s,%s,%g,%.2f,%.2f,%.2f\n", (double)step * tw_forecaster_step_s(r->f), r->series[i]->name,
               head_text(h), tw_head_s(h), (double)o[0], (double)o[1], (double)o[2]);
}

static void print_json(struct run *r, size_t step, size_t i)
{
    struct tw_jsonw *j = &r->json;
    const bool ready = tw_forecaster_is_ready(r->f, i);
    const float *o = tw_forecaster_out(r->f) + i * TW_OUTPUTS;
    tw_jsonw_object(j, NULL);
    tw_jsonw_num(j, "time_s", (double)step * tw_forecaster_step_s(r->f), 9);
    tw_jsonw_str(j, "series", r->series[i]->name);
    tw_jsonw_bool(j, "ready", ready);
    tw_jsonw_array(j, "heads");
    for (size_t h = 0; h < TW_HEADS && ready; h++, o += TW_QUANTILES) {
        tw_jsonw_object(j, NULL);
        tw_jsonw_str(j, "target", head_text(h));
        tw_jsonw_num(j, "lead_s", tw_head_s(h), 6);
        tw_jsonw_num(j, "low_w", (double)o[0], 6);
        tw_jsonw_num(j, "mid_w", (double)o[1], 6);
        tw_jsonw_num(j, "high_w", (double)o[2], 6);
        tw_jsonw_end(j);
    }
    tw_jsonw_end(j);
    tw_jsonw_end(j);
}

/* Step through the recording. Returns how many of the series have a forecast at its end. */
static size_t step_all(struct run *r, float *x)
{
    const double step_s = tw_forecaster_step_s(r->f), every_s = r->args->every_s;
    const double wanted = every_s > step_s ? floor(every_s / step_s + 0.5) : 1.0;
    const size_t every = every_s > 0.0 && wanted < (double)r->steps ? (size_t)wanted : r->steps;
    size_t ready = 0;
    for (size_t k = 0; k < r->steps; k++) {
        for (size_t i = 0; i < r->n; i++)
            x[i] = r->x_w[i * r->steps + k];
        tw_forecaster_push(r->f, x, NULL);
        const bool last = k + 1 == r->steps;
        for (size_t i = 0; i < r->n; i++) {
            const bool is_ready = tw_forecaster_is_ready(r->f, i);
            ready += last && is_ready;
            if (!last && (every_s <= 0.0 || (k + 1) % every != 0))
                continue;
            if (r->args->json)
                print_json(r, k, i);
            else if (is_ready)
                print_csv(r, k, i);
        }
    }
    return ready;
}

static int forecast(struct run *r)
{
    float *x = malloc(r->n * sizeof *x);
    if (!x)
        return tw_ui_error("out of memory");
    if (r->args->json) {
        tw_ui_json(&r->json);
        tw_jsonw_object(&r->json, NULL);
        tw_jsonw_str(&r->json, "schema", SCHEMA);
        tw_jsonw_str(&r->json, "model", r->args->model);
        tw_jsonw_num(&r->json, "step_s", tw_forecaster_step_s(r->f), 6);
        tw_jsonw_array(&r->json, "forecasts");
    } else {
        printf("time_s,series,target,lead_s,low_w,mid_w,high_w\n");
    }
    const size_t ready = step_all(r, x);
    free(x);
    int status = TW_EXIT_OK;
    if (r->args->json) {
        tw_jsonw_end(&r->json);
        tw_jsonw_end(&r->json);
        status = tw_ui_json_done(&r->json, TW_EXIT_OK);
    } else if (fflush(stdout) != 0) {
        status = tw_ui_error("cannot write to standard output");
    }
    if (status == TW_EXIT_OK && ready < r->n) {
        tw_ui_warn("not yet: %zu of %zu series have no full minute before the end of %s", r->n - ready, r->n,
                   r->args->data);
        status = TW_EXIT_BAD;
    }
    return status;
}

int cmd_forecast(int argc, char **argv)
{
    struct args a = {.model = NULL};
    int status = tw_ui_parse(&argp, argc, argv, &a);
    if (status != TW_EXIT_OK)
        return status;
    if (!a.model || !a.data)
        return tw_ui_error("%s is missing; see tokwatt forecast --help",
                           a.model ? "a recording" : "a model file");
    struct run r = {.args = &a};
    struct tw_why why = {""};
    status = open_run(&r, &why) == TW_OK ? forecast(&r) : tw_ui_error("%s", why.text);
    close_run(&r);
    return status;
}
