/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt train: a forecaster into a model file. */
#include "tokwatt/cmd.h"
#include "tokwatt/data.h"
#include "tokwatt/ui.h"

#include "base/num.h"
#include "model/modelfile.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/pool.h"
#include "train/calibfit.h"
#include "train/ridgefit.h"
#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "tokwatt.train/1"

struct args {
    const char *data, *set, *out, *model;
    struct tw_train_opts train;
    int64_t threads;
    double limit_w;
    bool json;
};

enum { OPT_JSON = 1000, OPT_SEED, OPT_THREADS, OPT_STEPS, OPT_LIMIT };

static const struct argp_option options[] = {
    {"set", 's', "NAME", 0, "FOLDER or FOLDER/PREFIX of DATA; \".\" for the files of DATA itself (default)", 0},
    {"out", 'o', "FILE", 0, "where the model goes, a safetensors file", 0},
    {"model", 'm', "NAME", 0, "gru or ridge (default gru)", 0},
    {"seed", OPT_SEED, "N", 0, "of the starting weights and the order of the data (default 1)", 0},
    {"steps", OPT_STEPS, "N", 0, "training steps (default by the length of the data)", 0},
    {"limit", OPT_LIMIT, "POWER", 0, "board limit of the devices of DATA, so that others can be scaled to it",
     0},
    {"threads", OPT_THREADS, "N", 0, "threads (default one a processor); the file does not depend on it", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    int64_t n = 0;
    enum tw_err err = TW_OK;
    switch (key) {
    case 's':
        a->set = arg;
        return 0;
    case 'o':
        a->out = arg;
        return 0;
    case 'm':
        a->model = arg;
        return 0;
    case OPT_SEED:
        err = tw_num_i64(arg, 0, INT64_MAX, &n, &why);
        a->train.seed = (uint64_t)n;
        break;
    case OPT_STEPS:
        err = tw_num_i64(arg, 1, 1000000, &n, &why);
        a->train.steps = (size_t)n;
        break;
    case OPT_THREADS:
        err = tw_num_i64(arg, 1, 256, &a->threads, &why);
        break;
    case OPT_LIMIT:
        err = tw_num_power(arg, &a->limit_w, &why);
        break;
    case OPT_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->data)
            argp_failure(state, TW_EXIT_USAGE, 0,
                         "one folder or file of data is read, not two: \"%s\" and \"%s\"", a->data, arg);
        a->data = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (err != TW_OK)
        tw_ui_bad_option(state, key, &why);
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "DATA",
    .doc = "Train a forecaster of GPU power on the training runs of DATA (a recording, or a folder) and write "
           "it to a "
           "model file.\vThe same data and seed give the same bytes on one machine. Example:\n\n"
           "  tokwatt record site.csv.gz --source sim:seed=7 --for 2h\n"
           "  tokwatt train site.csv.gz -o site.safetensors",
};

static void *block(size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
}

struct report {
    double train_s, best;
    size_t steps, best_step, params, bytes;
};

static enum tw_err write_model(const struct args *a, const struct data *d, struct tw_model *m,
                               const struct tw_par *par, struct report *r, struct tw_why *why)
{
    void *fit = block(tw_calib_fit_bytes(m, &d->ds));
    if (!fit)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    tw_calib_fit(m, &d->ds, par, fit);
    free(fit);
    struct tw_model_about about = {.limit_w = a->limit_w};
    (void)snprintf(about.set, sizeof about.set, "%s", d->ds.set);
    (void)snprintf(about.seed, sizeof about.seed, "%" PRIu64, a->train.seed);
    (void)snprintf(about.data_hash, sizeof about.data_hash, "%016" PRIx64, d->ds.hash);
    (void)snprintf(about.steps, sizeof about.steps, "%zu", r->best_step);
    (void)snprintf(about.version, sizeof about.version, "%s", TW_VERSION);
    (void)snprintf(about.scores, sizeof about.scores, "{\"validation_of_base\":%.6g}", r->best);
    if (!(r->best >= 0.0))
        (void)snprintf(about.scores, sizeof about.scores, "{\"validation_of_base\":null}");
    void *scratch = block(tw_model_file_scratch(m)), *out = block(TW_MODEL_FILE_MOST);
    enum tw_err err = scratch && out ? TW_OK : tw_fail(why, TW_ENOMEM, "out of memory");
    if (err == TW_OK)
        err = tw_model_write(m, &about, scratch, out, TW_MODEL_FILE_MOST, &r->bytes, why);
    if (err == TW_OK)
        err = tw_file_replace(a->out, out, r->bytes, why);
    free(scratch);
    free(out);
    return err;
}

static enum tw_err train_gru(const struct args *a, const struct data *d, const struct tw_par *par,
                             struct report *r, struct tw_why *why)
{
    void *mem = block(tw_trainer_bytes(&d->ds, &a->train));
    struct tw_trainer *tr;
    if (!mem)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    enum tw_err err = tw_trainer_init(&d->ds, &a->train, tw_kern_best(), NULL, mem, &tr, why);
    const int64_t t0 = tw_boot_us();
    while (err == TW_OK && tw_trainer_turn(tr, par) != TW_TRAIN_DONE) {
        const struct tw_train_state s = tw_trainer_state(tr);
        tw_ui_progress((double)s.step / (double)s.steps, "loss %.4f, validation %.3f of base", s.loss, s.check);
    }
    tw_ui_progress_done();
    if (err == TW_OK) {
        struct tw_model m = tw_trainer_model(tr);
        const struct tw_train_state s = tw_trainer_state(tr);
        *r = (struct report){.train_s = (double)(tw_boot_us() - t0) / 1e6,
                             .best = s.best,
                             .steps = s.steps,
                             .best_step = s.best_step,
                             .params = tw_model_n_learned(&m)};
        err = write_model(a, d, &m, par, r, why);
    }
    free(mem);
    return err;
}

static enum tw_err train_ridge(const struct args *a, const struct data *d, const struct tw_par *par,
                               struct report *r, struct tw_why *why)
{
    struct tw_model m;
    tw_model_init(&m, &tw_model_ridge, tw_kern_best(), d->ds.step_s, tw_dataset_scaler(&d->ds), 0);
    m.n_param = tw_model_n_param(&m);
    void *mem = block(tw_ridge_fit_bytes(&m, &d->ds));
    float *param = block(m.n_param * sizeof *param);
    enum tw_err err = mem && param ? TW_OK : tw_fail(why, TW_ENOMEM, "out of memory");
    const int64_t t0 = tw_boot_us();
    if (err == TW_OK)
        err = tw_ridge_fit(&m, &d->ds, mem, param, why);
    m.param = param;
    if (err == TW_OK) {
        *r = (struct report){.train_s = (double)(tw_boot_us() - t0) / 1e6, .best = -1.0, .params = m.n_param};
        err = write_model(a, d, &m, par, r, why);
    }
    free(mem);
    free(param);
    return err;
}

static int report(const struct args *a, const struct data *d, const struct report *r)
{
    if (!a->json) {
        printf("%s: %s of %zu parameters in %.1f s, %zu bytes\n", a->out, a->model, r->params, r->train_s,
               r->bytes);
        printf("  trained on %zu series of %zu runs", d->n_track[TW_PART_TRAIN], d->n_run[TW_PART_TRAIN]);
        if (r->best >= 0.0)
            printf("; validation error %.3f of the better of last value and 60 s mean", r->best);
        printf("\n");
        return TW_EXIT_OK;
    }
    struct tw_jsonw j;
    tw_ui_json(&j);
    tw_jsonw_object(&j, NULL);
    tw_jsonw_str(&j, "schema", SCHEMA);
    tw_jsonw_str(&j, "file", a->out);
    tw_jsonw_str(&j, "model", a->model);
    tw_jsonw_str(&j, "set", d->ds.set);
    tw_jsonw_i64(&j, "params", (int64_t)r->params);
    tw_jsonw_i64(&j, "bytes", (int64_t)r->bytes);
    tw_jsonw_num(&j, "train_s", r->train_s, 4);
    tw_jsonw_i64(&j, "steps", (int64_t)r->steps);
    tw_jsonw_i64(&j, "best_step", (int64_t)r->best_step);
    tw_jsonw_num(&j, "validation_of_base", r->best >= 0.0 ? r->best : (double)NAN, 6);
    tw_jsonw_end(&j);
    return tw_ui_json_done(&j, TW_EXIT_OK);
}

int cmd_train(int argc, char **argv)
{
    struct args a = {.set = ".", .model = "gru", .train = tw_train_defaults};
    int status = tw_ui_parse(&argp, argc, argv, &a);
    if (status != TW_EXIT_OK)
        return status;
    if (!a.data || !a.out)
        return tw_ui_error("%s is missing; see tokwatt train --help",
                           a.data ? "-o FILE" : "a recording or a folder");
    const bool gru = strcmp(a.model, "gru") == 0;
    if (!gru && strcmp(a.model, "ridge") != 0)
        return tw_ui_error("model \"%s\" cannot be trained; there are gru and ridge", a.model);
    struct tw_why why = {""};
    struct data *d = NULL;
    struct tw_pool *pool = NULL;
    if (data_load(a.data, a.set, &d, &why) != TW_OK)
        return tw_ui_error("%s", why.text);
    if (d->left_out > 0)
        tw_ui_warn("%zu series or files left out; the first: %s", d->left_out, d->left_why.text);
    enum tw_err err = tw_pool_new((unsigned)a.threads, &pool, &why);
    struct report r = {.best = -1.0};
    if (err == TW_OK) {
        const struct tw_par par = tw_pool_par(pool);
        err = gru ? train_gru(&a, d, &par, &r, &why) : train_ridge(&a, d, &par, &r, &why);
    }
    status = err == TW_OK ? report(&a, d, &r) : tw_ui_error("%s", why.text);
    tw_pool_free(pool);
    data_free(d);
    return status;
}
