/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt evaluate: train forecasters and score them on held-out runs, as they are served. */
#include "tokwatt/cmd.h"
#include "tokwatt/data.h"
#include "tokwatt/ui.h"

#include "base/num.h"
#include "base/stat.h"
#include "sys/clock.h"
#include "sys/pool.h"
#include "train/calibfit.h"
#include "train/cover.h"
#include "train/ridgefit.h"
#include "train/score.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "tokwatt.evaluate/1"
enum { MOST_SETS = 16, MOST_MODELS = 16, MOST_SEEDS = 32, WINDOWED_S = 1200, WINDOWED_MOST = 3000 };

struct args {
    const char *data;
    char sets[512], models[256];
    const char *set[MOST_SETS];
    const struct tw_model_ops *model[MOST_MODELS];
    size_t n_set, n_model;
    int64_t seeds, threads;
    struct tw_train_opts train;
    bool json;
};

/* One model (of one seed) on one set. */
struct row {
    const struct tw_model_ops *ops;
    int64_t seed; /* 0: none */
    size_t params;
    double train_s, step_us;
    struct tw_train_state train;
    struct tw_score score[TW_TARGET_COUNT], bare[TW_TARGET_COUNT]; /* bare: without calibration */
    struct tw_cover_score cover[TW_COVER_TARGETS], bare_cover[TW_COVER_TARGETS];
    double windowed_w[TW_TARGET_COUNT], served_w[TW_TARGET_COUNT]; /* MAE on the windows that both scored */
};

struct result {
    struct row *row;
    size_t n_row;
    struct row base[2]; /* last, mean60 */
};

struct work {
    const struct args *args;
    const struct tw_kern *kern;
    struct tw_par par;
    const struct data *d;
    struct tw_scaler scaler;
    size_t windows, stride;
};

enum { OPT_JSON = 1000, OPT_SEEDS, OPT_THREADS, OPT_STEPS, OPT_RATE, OPT_HIDDEN };

static const struct argp_option options[] = {
    {"set", 's', "NAME[,NAME]", 0, "sets to score: FOLDER or FOLDER/PREFIX of DATA (default nvsmi-llm-infer)",
     0},
    {"models", 'm', "NAME[,NAME]", 0, "last, mean60, ridge, gru (default all)", 0},
    {"seeds", OPT_SEEDS, "N", 0, "trained models: so many seeds, 1 to N (default 3)", 0},
    {"steps", OPT_STEPS, "N", 0, "training steps (default by the length of the data, 300 to 3000)", 0},
    {"rate", OPT_RATE, "X", 0, "learning rate at the start (default 0.01)", 0},
    {"hidden", OPT_HIDDEN, "N", 0, "units of the gru, 16 to 128 in steps of 16 (default 64)", 0},
    {"threads", OPT_THREADS, "N", 0, "threads (default one a processor); the scores do not depend on it", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 0},
    {0},
};

/* Cut text at its commas into at most `most` words. */
static bool cut(char *text, const char **word, size_t most, size_t *ret_n)
{
    size_t n = 0;
    for (char *p = text; p;) {
        char *comma = strchr(p, ',');
        if (comma)
            *comma = '\0';
        if (n == most || !*p)
            return false;
        word[n++] = p;
        p = comma ? comma + 1 : NULL;
    }
    *ret_n = n;
    return true;
}

static void whole(struct argp_state *state, const char *name, const char *arg, int64_t min, int64_t max,
                  int64_t *ret)
{
    struct tw_why why = {""};
    if (tw_num_i64(arg, min, max, ret, &why) != TW_OK)
        argp_failure(state, TW_EXIT_USAGE, 0, "--%s: %s", name, why.text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    int64_t n = 0;
    switch (key) {
    case 's':
        if (snprintf(a->sets, sizeof a->sets, "%s", arg) >= (int)sizeof a->sets)
            argp_failure(state, TW_EXIT_USAGE, 0, "--set: too many names");
        return 0;
    case 'm':
        if (snprintf(a->models, sizeof a->models, "%s", arg) >= (int)sizeof a->models)
            argp_failure(state, TW_EXIT_USAGE, 0, "--models: too many names");
        return 0;
    case OPT_SEEDS:
        whole(state, "seeds", arg, 1, MOST_SEEDS, &a->seeds);
        return 0;
    case OPT_THREADS:
        whole(state, "threads", arg, 1, 256, &a->threads);
        return 0;
    case OPT_STEPS:
        whole(state, "steps", arg, 1, 1000000, &n);
        a->train.steps = (size_t)n;
        return 0;
    case OPT_HIDDEN:
        whole(state, "hidden", arg, 16, 128, &n);
        a->train.hidden = (size_t)n / 16 * 16;
        return 0;
    case OPT_RATE:
        if (tw_num_f64(arg, &a->train.rate, &why) != TW_OK || !(a->train.rate > 0.0 && a->train.rate < 1.0))
            argp_failure(state, TW_EXIT_USAGE, 0, "--rate: a number between 0 and 1 was expected");
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->data)
            argp_failure(state, TW_EXIT_USAGE, 0, "one folder of data is read, not two: \"%s\" and \"%s\"",
                         a->data, arg);
        a->data = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "DATA",
    .doc = "Train forecasters of GPU power and score them on held-out runs of DATA, as served: every series is "
           "stepped from its first sample with its state carried.\v"
           "Errors are in watts per GPU. Splits are those of DATA/splits.csv; where there is none, runs "
           "(files) are "
           "dealt out by name. Example:\n\n"
           "  tokwatt evaluate data/power --set nvsmi-llm-infer --models last,mean60,ridge,gru --json",
};

/* ---- scoring ---- */

struct sink {
    struct tw_scorer all, some; /* every window, and each stride-th step */
    size_t stride;
    struct tw_cover *cover; /* NULL: not asked for */
};

static void take(void *ctx, const struct tw_track *t, size_t step, const float out_w[static TW_OUTPUTS])
{
    struct sink *s = ctx;
    tw_scorer_add(&s->all, t->x_w, step, out_w);
    if (step % s->stride == 0)
        tw_scorer_add(&s->some, t->x_w, step, out_w);
    if (s->cover)
        tw_cover_add(s->cover, t, step, out_w);
}

static void *block(size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
}

/* Microseconds of one step for one GPU: the fastest of a few rounds over a series of the set. */
static double time_step(const struct tw_model *m, const struct tw_track *t, void *state)
{
    enum { STEPS = 500, ROUNDS = 5 };
    float out[TW_OUTPUTS];
    double best = (double)INFINITY;
    tw_model_reset(m, 1, state);
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t t0 = tw_boot_us();
        for (size_t k = 0; k < STEPS; k++)
            tw_model_step(m, 1, state, &t->x_w[k % t->n], out, NULL);
        best = fmin(best, (double)(tw_boot_us() - t0) / STEPS);
    }
    return best;
}

struct room {                               /* memory of score() */
    void *step, *windowed, *errors, *cover; /* step holds arenas of its own: never a second use */
    size_t scorer;
};

/* Over the test windows as served. served_w: MAE on the windows that are scored from an empty state as well;
 * NULL: not asked for. */
static void score_served(const struct work *w, const struct tw_model *m, const struct room *room,
                         struct tw_score *ret, struct tw_cover_score *ret_cover, double *ret_served_w)
{
    const struct tw_dataset *ds = &w->d->ds;
    struct sink s = {.stride = w->stride, .cover = tw_cover_init(ds, TW_PART_TEST, room->cover)};
    tw_scorer_init(&s.all, ds->step_s, w->windows, room->errors);
    tw_scorer_init(&s.some, ds->step_s, w->windows, (unsigned char *)room->errors + room->scorer);
    tw_served(m, ds, TW_PART_TEST, true, true, &w->par, room->step, take, &s);
    for (enum tw_target i = 0; i < TW_TARGET_COUNT; i++) {
        struct tw_score part;
        tw_scorer_result(&s.all, i, &ret[i]);
        tw_scorer_result(&s.some, i, &part);
        if (ret_served_w)
            ret_served_w[i] = part.mae_w;
    }
    for (size_t i = 0; i < TW_COVER_TARGETS; i++)
        tw_cover_result(s.cover, i, &ret_cover[i]);
}

static void score_windowed(const struct work *w, const struct tw_model *m, const struct room *room,
                           double *ret_windowed_w)
{
    const struct tw_dataset *ds = &w->d->ds;
    struct sink s = {.stride = w->stride};
    tw_scorer_init(&s.all, ds->step_s, w->windows, room->errors);
    tw_scorer_init(&s.some, ds->step_s, w->windows, (unsigned char *)room->errors + room->scorer);
    tw_windowed(m, ds, TW_PART_TEST, tw_input_steps(WINDOWED_S, ds->step_s), w->stride, &w->par, room->windowed,
                take, &s);
    for (enum tw_target i = 0; i < TW_TARGET_COUNT; i++) {
        struct tw_score part;
        tw_scorer_result(&s.all, i, &part);
        ret_windowed_w[i] = part.mae_w;
    }
}

static enum tw_err score(const struct work *w, const struct tw_model *m, struct row *r, struct tw_why *why)
{
    const struct tw_dataset *ds = &w->d->ds;
    struct room room = {.scorer = tw_scorer_bytes(w->windows)};
    room.step = block(tw_served_bytes(m, ds, true));
    room.windowed = block(tw_windowed_bytes(m));
    room.errors = block(2 * room.scorer);
    room.cover = block(tw_cover_bytes(ds, TW_PART_TEST));
    enum tw_err err = TW_OK;
    if (room.step && room.windowed && room.errors && room.cover) {
        struct tw_model bare = *m;
        bare.calibrated = false;
        score_served(w, m, &room, r->score, r->cover, r->served_w);
        if (m->calibrated)
            score_served(w, &bare, &room, r->bare, r->bare_cover, NULL);
        score_windowed(w, m, &room, r->windowed_w);
        r->step_us = time_step(m, &ds->track[0], room.step);
    } else {
        err = tw_fail(why, TW_ENOMEM, "out of memory");
    }
    free(room.step);
    free(room.windowed);
    free(room.errors);
    free(room.cover);
    return err;
}

/* Calibrate on validation, then score on test. */
static enum tw_err score_trained(const struct work *w, struct tw_model *m, struct row *r, struct tw_why *why)
{
    void *mem = block(tw_calib_fit_bytes(m, &w->d->ds));
    if (!mem)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    tw_calib_fit(m, &w->d->ds, &w->par, mem);
    free(mem);
    return score(w, m, r, why);
}

/* ---- training ---- */

static enum tw_err run_gru(const struct work *w, struct row *r, struct tw_why *why)
{
    const struct tw_dataset *ds = &w->d->ds;
    struct tw_train_opts opts = w->args->train;
    opts.seed = (uint64_t)r->seed;
    void *mem = block(tw_trainer_bytes(ds, &opts));
    struct tw_trainer *tr;
    if (!mem)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    enum tw_err err = tw_trainer_init(ds, &opts, w->kern, NULL, mem, &tr, why);
    const int64_t t0 = tw_boot_us();
    while (err == TW_OK && tw_trainer_turn(tr, &w->par) != TW_TRAIN_DONE) {
        const struct tw_train_state s = tw_trainer_state(tr);
        tw_ui_progress((double)s.step / (double)s.steps,
                       "%s: gru, seed %lld, loss %.4f, validation %.3f of base", ds->set, (long long)r->seed,
                       s.loss, s.check);
    }
    tw_ui_progress_done();
    if (err == TW_OK) {
        struct tw_model m = tw_trainer_model(tr);
        r->train_s = (double)(tw_boot_us() - t0) / 1e6;
        r->train = tw_trainer_state(tr);
        r->params = tw_model_n_learned(&m);
        err = score_trained(w, &m, r, why);
    }
    free(mem);
    return err;
}

static enum tw_err run_ridge(const struct work *w, struct row *r, struct tw_why *why)
{
    struct tw_model m;
    tw_model_init(&m, r->ops, w->kern, w->d->ds.step_s, w->scaler, 0);
    m.n_param = tw_model_n_param(&m);
    void *mem = block(tw_ridge_fit_bytes(&m, &w->d->ds));
    float *param = block(m.n_param * sizeof *param);
    enum tw_err err = mem && param ? TW_OK : tw_fail(why, TW_ENOMEM, "out of memory");
    const int64_t t0 = tw_boot_us();
    if (err == TW_OK)
        err = tw_ridge_fit(&m, &w->d->ds, mem, param, why);
    if (err == TW_OK) {
        r->train_s = (double)(tw_boot_us() - t0) / 1e6;
        r->params = m.n_param;
        m.param = param;
        err = score_trained(w, &m, r, why);
    }
    free(mem);
    free(param);
    return err;
}

static enum tw_err run_row(const struct work *w, struct row *r, struct tw_why *why)
{
    if (r->ops == &tw_model_gru)
        return run_gru(w, r, why);
    if (r->ops == &tw_model_ridge)
        return run_ridge(w, r, why);
    struct tw_model m;
    tw_model_init(&m, r->ops, w->kern, w->d->ds.step_s, w->scaler, 0);
    return score(w, &m, r, why);
}

static enum tw_err run_set(struct work *w, struct result *res, struct tw_why *why)
{
    const struct args *a = w->args;
    w->scaler = tw_dataset_scaler(&w->d->ds);
    const size_t w60 = tw_input_steps(60.0, w->d->ds.step_s);
    w->windows = tw_window_count(&w->d->ds, TW_PART_TEST, true, w60);
    w->stride = 1 + w->windows / WINDOWED_MOST;
    if (w->windows == 0)
        return tw_fail(why, TW_ENODATA, "set \"%s\": no test series is longer than two minutes", w->d->ds.set);
    static const struct tw_model_ops *const base[2] = {&tw_model_last, &tw_model_mean60};
    for (size_t i = 0; i < 2; i++) {
        res->base[i] = (struct row){.ops = base[i]};
        enum tw_err err = run_row(w, &res->base[i], why);
        if (err != TW_OK)
            return err;
    }
    res->row = calloc(a->n_model * (size_t)a->seeds, sizeof *res->row);
    if (!res->row)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    for (size_t i = 0; i < a->n_model; i++)
        for (int64_t seed = 1; seed <= (a->model[i]->trained ? a->seeds : 1); seed++) {
            struct row *r = &res->row[res->n_row++];
            *r = (struct row){.ops = a->model[i], .seed = a->model[i]->trained ? seed : 0};
            enum tw_err err = TW_OK;
            if (r->ops == base[0] || r->ops == base[1])
                *r = res->base[r->ops == base[1]];
            else
                err = run_row(w, r, why);
            if (err != TW_OK)
                return err;
        }
    return TW_OK;
}

static const struct row *reference(const struct result *res, size_t target)
{
    return &res->base[res->base[1].score[target].mae_w < res->base[0].score[target].mae_w];
}

static double skill(const struct result *res, const struct row *r, size_t target)
{
    return 1.0 - r->score[target].mae_w / reference(res, target)->score[target].mae_w;
}

/* MAE of a model: mean over its seeds, and their standard deviation. */
static double over_seeds(const struct result *res, const struct tw_model_ops *ops, size_t target,
                         double *ret_std)
{
    double x[MOST_SEEDS];
    size_t n = 0;
    for (size_t i = 0; i < res->n_row; i++)
        if (res->row[i].ops == ops && n < MOST_SEEDS)
            x[n++] = res->row[i].score[target].mae_w;
    if (ret_std)
        *ret_std = tw_stat_std(x, n);
    return tw_stat_mean(x, n);
}

/* ---- report ---- */

static void json_cover(struct tw_jsonw *j, const struct row *r, size_t i)
{
    const struct tw_cover_score *c = &r->cover[i], *b = &r->bare_cover[i];
    const double none = (double)NAN;
    const bool cal = r->ops->spread;
    tw_jsonw_i64(j, "stretches_10min", (int64_t)c->stretches);
    tw_jsonw_i64(j, "stretches_outside", (int64_t)c->outside);
    tw_jsonw_num(j, "stretch_coverage_least", c->worst_low, 6);
    tw_jsonw_num(j, "stretch_coverage_most", c->worst_high, 6);
    tw_jsonw_i64(j, "shift_windows", (int64_t)c->shift_windows);
    tw_jsonw_num(j, "shift_coverage80", c->shift_coverage, 6);
    tw_jsonw_num(j, "shift_interval_score_w", c->shift_interval_w, 6);
    tw_jsonw_num(j, "bare_stretch_coverage_least", cal ? b->worst_low : none, 6);
    tw_jsonw_num(j, "bare_stretch_coverage_most", cal ? b->worst_high : none, 6);
    tw_jsonw_num(j, "bare_shift_coverage80", cal ? b->shift_coverage : none, 6);
    tw_jsonw_num(j, "bare_shift_interval_score_w", cal ? b->shift_interval_w : none, 6);
}

static void json_score(struct tw_jsonw *j, const struct result *res, const struct row *r, size_t i)
{
    const struct tw_score *s = &r->score[i], *b = &r->bare[i];
    const double none = (double)NAN;
    const bool cal = r->ops->spread;
    tw_jsonw_object(j, NULL);
    tw_jsonw_str(j, "target", tw_target_table[i].text);
    tw_jsonw_i64(j, "horizon_s", tw_target_table[i].horizon_s);
    tw_jsonw_i64(j, "windows", (int64_t)s->windows);
    tw_jsonw_num(j, "mae_w", s->mae_w, 6);
    tw_jsonw_num(j, "rmse_w", s->rmse_w, 6);
    tw_jsonw_num(j, "bias_w", s->bias_w, 6);
    tw_jsonw_num(j, "p95_w", s->p95_w, 6);
    tw_jsonw_num(j, "pinball_w", s->pinball_w, 6);
    tw_jsonw_num(j, "coverage80", s->coverage80, 6);
    tw_jsonw_num(j, "interval_score_w", s->interval_w, 6);
    tw_jsonw_num(j, "bare_coverage80", cal ? b->coverage80 : none, 6);
    tw_jsonw_num(j, "bare_interval_score_w", cal ? b->interval_w : none, 6);
    if (i < TW_COVER_TARGETS)
        json_cover(j, r, i);
    tw_jsonw_num(j, "skill", skill(res, r, i), 6);
    tw_jsonw_str(j, "reference", reference(res, i)->ops->name);
    tw_jsonw_num(j, "windowed_mae_w", r->windowed_w[i], 6);
    tw_jsonw_num(j, "served_mae_same_windows_w", r->served_w[i], 6);
    tw_jsonw_end(j);
}

static void json_row(struct tw_jsonw *j, const struct result *res, const struct row *r)
{
    tw_jsonw_object(j, NULL);
    tw_jsonw_str(j, "model", r->ops->name);
    if (r->seed > 0)
        tw_jsonw_i64(j, "seed", r->seed);
    else
        tw_jsonw_null(j, "seed");
    tw_jsonw_i64(j, "params", (int64_t)r->params);
    tw_jsonw_num(j, "train_s", r->train_s, 4);
    tw_jsonw_num(j, "step_us", r->step_us, 4);
    if (r->ops->trained) {
        tw_jsonw_i64(j, "train_steps", (int64_t)r->train.steps);
        tw_jsonw_i64(j, "best_step", (int64_t)r->train.best_step);
        tw_jsonw_num(j, "validation_of_base", r->train.best, 6);
    }
    tw_jsonw_array(j, "scores");
    for (size_t i = 0; i < TW_TARGET_COUNT; i++)
        json_score(j, res, r, i);
    tw_jsonw_end(j);
    tw_jsonw_end(j);
}

static void json_summary(struct tw_jsonw *j, const struct args *a, const struct result *res)
{
    tw_jsonw_array(j, "summary");
    for (size_t m = 0; m < a->n_model; m++)
        for (size_t i = 0; i < TW_TARGET_COUNT; i++) {
            double std = (double)NAN, mean = over_seeds(res, a->model[m], i, &std);
            tw_jsonw_object(j, NULL);
            tw_jsonw_str(j, "model", a->model[m]->name);
            tw_jsonw_str(j, "target", tw_target_table[i].text);
            tw_jsonw_i64(j, "horizon_s", tw_target_table[i].horizon_s);
            tw_jsonw_i64(j, "seeds", a->model[m]->trained ? a->seeds : 1);
            tw_jsonw_num(j, "mae_w", mean, 6);
            tw_jsonw_num(j, "mae_std_w", std, 4);
            tw_jsonw_num(j, "skill", 1.0 - mean / reference(res, i)->score[i].mae_w, 6);
            tw_jsonw_str(j, "reference", reference(res, i)->ops->name);
            tw_jsonw_end(j);
        }
    tw_jsonw_end(j);
}

static void json_set(struct tw_jsonw *j, const struct work *w, const struct result *res)
{
    const struct data *d = w->d;
    tw_jsonw_object(j, NULL);
    tw_jsonw_str(j, "set", d->ds.set);
    tw_jsonw_num(j, "step_s", d->ds.step_s, 6);
    tw_jsonw_str(j, "split", d->dealt ? "dealt out by name" : "splits.csv");
    for (size_t p = 0; p < TW_PART_COUNT; p++) {
        tw_jsonw_object(j, tw_part_text[p]);
        tw_jsonw_i64(j, "runs", (int64_t)d->n_run[p]);
        tw_jsonw_i64(j, "series", (int64_t)d->n_track[p]);
        tw_jsonw_end(j);
    }
    tw_jsonw_i64(j, "twins", (int64_t)d->n_twin);
    tw_jsonw_i64(j, "left_out", (int64_t)d->left_out);
    tw_jsonw_array(j, "models");
    for (size_t i = 0; i < res->n_row; i++)
        json_row(j, res, &res->row[i]);
    tw_jsonw_end(j);
    json_summary(j, w->args, res);
    tw_jsonw_end(j);
}

static void print_row(const char *name, const double *w, const struct result *res, const char *tail)
{
    printf("  %-14s", name);
    for (size_t i = 0; i < TW_TARGET_COUNT; i++)
        printf(" %8.2f", w[i]);
    for (size_t i = TW_TARGET_MEAN30; i <= TW_TARGET_MEAN60; i++)
        printf(" %6.1f%%", 100.0 * (1.0 - w[i] / reference(res, i)->score[i].mae_w));
    printf("%s\n", tail);
}

static void print_gain(const struct args *a, const struct result *res)
{
    for (size_t m = 0; m < a->n_model; m++) {
        if (!a->model[m]->trained)
            continue;
        for (size_t i = TW_TARGET_MEAN30; i <= TW_TARGET_MEAN60; i++) {
            const double own = over_seeds(res, a->model[m], i, NULL);
            printf("  %s against", a->model[m]->name);
            for (size_t k = 0; k < a->n_model; k++)
                if (k != m) {
                    const double gain = 1.0 - own / over_seeds(res, a->model[k], i, NULL);
                    printf(" %s %.1f %% %s,", a->model[k]->name, 100.0 * fabs(gain),
                           gain >= 0.0 ? "less" : "MORE");
                }
            printf(" on mean %d (%.2f W)\n", tw_target_table[i].horizon_s, own);
        }
    }
}

/* The 80 % band of each row: coverage and interval score, without calibration in brackets. */
static void print_bands(const struct result *res)
{
    printf("  %-14s", "80 % band");
    for (size_t i = 0; i < TW_COVER_TARGETS; i++)
        printf("  %5s %2d: coverage, interval score", tw_target_table[i].text, tw_target_table[i].horizon_s);
    printf("\n");
    for (size_t k = 0; k < res->n_row; k++) {
        const struct row *r = &res->row[k];
        char name[64];
        (void)snprintf(name, sizeof name, r->seed ? "%s, seed %lld" : "%s", r->ops->name, (long long)r->seed);
        printf("  %-14s", name);
        for (size_t i = 0; i < TW_COVER_TARGETS; i++) {
            printf("  %6.1f%% %8.2f W", 100.0 * r->score[i].coverage80, r->score[i].interval_w);
            if (r->ops->spread)
                printf(" (%5.1f%% %8.2f)", 100.0 * r->bare[i].coverage80, r->bare[i].interval_w);
            else
                printf(" %17s", "");
        }
        printf("\n");
    }
}

static void print_set(const struct work *w, const struct result *res)
{
    const struct args *a = w->args;
    const struct data *d = w->d;
    printf("%s: grid %g s; train %zu runs, %zu series; validation %zu, %zu; test %zu, %zu; %zu windows%s\n",
           d->ds.set, d->ds.step_s, d->n_run[0], d->n_track[0], d->n_run[1], d->n_track[1], d->n_run[2],
           d->n_track[2], w->windows, d->dealt ? "; runs dealt out by name" : "");
    printf("  %-14s", "MAE, W per GPU");
    for (size_t i = 0; i < TW_TARGET_COUNT; i++)
        printf(" %5s %2d", tw_target_table[i].text, tw_target_table[i].horizon_s);
    printf("  skill of mean 30, 60\n");
    for (size_t m = 0; m < a->n_model; m++) {
        double mean[TW_TARGET_COUNT], std[TW_TARGET_COUNT];
        char name[64], tail[800];
        for (size_t i = 0; i < res->n_row; i++) {
            const struct row *r = &res->row[i];
            if (r->ops != a->model[m])
                continue;
            for (size_t t = 0; t < TW_TARGET_COUNT; t++)
                mean[t] = r->score[t].mae_w;
            (void)snprintf(name, sizeof name, r->seed ? "%s, seed %lld" : "%s", r->ops->name,
                           (long long)r->seed);
            (void)snprintf(tail, sizeof tail, "  %zu parameters, trained %.0f s, step %.2f us", r->params,
                           r->train_s, r->step_us);
            print_row(name, mean, res, r->ops->trained ? tail : "");
        }
        if (!a->model[m]->trained || a->seeds < 2)
            continue;
        for (size_t t = 0; t < TW_TARGET_COUNT; t++)
            mean[t] = over_seeds(res, a->model[m], t, &std[t]);
        (void)snprintf(name, sizeof name, "%s, mean", a->model[m]->name);
        print_row(name, mean, res, "");
        printf("  %-14s", "  +- (seeds)");
        for (size_t t = 0; t < TW_TARGET_COUNT; t++)
            printf(" %8.2f", std[t]);
        printf("\n");
    }
    print_gain(a, res);
    print_bands(res);
}

/* ---- all of it ---- */

static int check_args(struct args *a)
{
    const char *name[MOST_MODELS];
    if (!a->data)
        return tw_ui_error("a folder of data is missing; see tokwatt evaluate --help");
    if (!cut(a->sets, a->set, MOST_SETS, &a->n_set))
        return tw_ui_error("--set: names between commas, at most %d", MOST_SETS);
    if (!cut(a->models, name, MOST_MODELS, &a->n_model))
        return tw_ui_error("--models: names between commas, at most %d", MOST_MODELS);
    for (size_t i = 0; i < a->n_model; i++) {
        a->model[i] = tw_model_find(name[i]);
        if (!a->model[i])
            return tw_ui_error("model \"%s\" is not known; there are last, mean60, ridge and gru", name[i]);
        for (size_t k = 0; k < i; k++)
            if (a->model[k] == a->model[i])
                return tw_ui_error("model \"%s\" is named twice", name[i]);
    }
    return TW_EXIT_OK;
}

/* All data is read before anything is trained, and JSON is written when all is done: a wrong name costs no time
 * and leaves nothing half-written. */
struct job {
    struct data *d;
    struct result res;
    struct work w;
};

static int load_all(const struct args *a, struct job *job)
{
    for (size_t i = 0; i < a->n_set; i++) {
        struct tw_why why = {""};
        if (data_load(a->data, a->set[i], &job[i].d, &why) != TW_OK)
            return tw_ui_error("%s", why.text);
        const struct data *d = job[i].d;
        if (d->left_out > 0)
            tw_ui_warn("%s: %zu series or files left out; the first: %s", d->ds.set, d->left_out,
                       d->left_why.text);
        if (d->dealt)
            tw_ui_warn("%s: no split is given for it; runs are dealt out by name", d->ds.set);
    }
    return TW_EXIT_OK;
}

static int run_all(const struct args *a, const struct tw_par *par, struct job *job)
{
    for (size_t i = 0; i < a->n_set; i++) {
        struct tw_why why = {""};
        job[i].w = (struct work){.args = a, .kern = tw_kern_best(), .par = *par, .d = job[i].d};
        if (run_set(&job[i].w, &job[i].res, &why) != TW_OK)
            return tw_ui_error("%s", why.text);
        if (!a->json)
            print_set(&job[i].w, &job[i].res);
        (void)fflush(stdout);
    }
    return TW_EXIT_OK;
}

static int write_json(const struct args *a, const struct job *job)
{
    struct tw_jsonw j;
    tw_ui_json(&j);
    tw_jsonw_object(&j, NULL);
    tw_jsonw_str(&j, "schema", SCHEMA);
    tw_jsonw_str(&j, "kernels", tw_kern_best()->name);
    tw_jsonw_array(&j, "sets");
    for (size_t i = 0; i < a->n_set; i++)
        json_set(&j, &job[i].w, &job[i].res);
    tw_jsonw_end(&j);
    tw_jsonw_end(&j);
    return tw_ui_json_done(&j, TW_EXIT_OK);
}

int cmd_evaluate(int argc, char **argv)
{
    struct args a = {
        .sets = "nvsmi-llm-infer", .models = "last,mean60,ridge,gru", .seeds = 3, .train = tw_train_defaults};
    int status = tw_ui_parse(&argp, argc, argv, &a);
    if (status == TW_EXIT_OK)
        status = check_args(&a);
    if (status != TW_EXIT_OK)
        return status;
    struct tw_pool *pool = NULL;
    struct tw_why why = {""};
    struct job *job = calloc(a.n_set, sizeof *job);
    if (!job)
        return tw_ui_error("out of memory");
    if (tw_pool_new((unsigned)a.threads, &pool, &why) != TW_OK)
        status = tw_ui_error("%s", why.text);
    if (status == TW_EXIT_OK)
        status = load_all(&a, job);
    if (status == TW_EXIT_OK) {
        const struct tw_par par = tw_pool_par(pool);
        status = run_all(&a, &par, job);
    }
    if (status == TW_EXIT_OK && a.json)
        status = write_json(&a, job);
    for (size_t i = 0; i < a.n_set; i++) {
        free(job[i].res.row);
        data_free(job[i].d);
    }
    free(job);
    tw_pool_free(pool);
    return status;
}
