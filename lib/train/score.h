/* SPDX-License-Identifier: Apache-2.0 */
/* train/score.h - how far forecasts were off, target by target.
 *
 * A window is a step with 60 s of past and 60 s of future in its series and part, all of them values; every
 * window of every series counts alike. Targets, for h = 30 and 60 s:
 *
 *     point h   the value h ahead
 *     mean h    the mean over the next h
 *     path h    the value at every step up to h ahead, mean over them
 *
 * Forecast is the 0.5 quantile. p95 is the 95th percentile of the absolute error (of path: of its mean over the
 * path). pinball is the mean over the quantiles 0.1, 0.5, 0.9; coverage80 the share of values within the outer
 * two; interval the score of Gneiting and Raftery (2007) for that band, (u - l) + 10 (l - y)+ + 10 (y - u)+.
 * NaN for what a model does not give. */
#ifndef TW_TRAIN_SCORE_H
#define TW_TRAIN_SCORE_H

#include "base/par.h"
#include "feature/dataset.h"
#include "model/model.h"

enum tw_target_kind { TW_TARGET_POINT, TW_TARGET_MEAN, TW_TARGET_PATH };

/* id, kind, seconds, text */
#define TW_TARGET_MAP(X)                                                                                       \
    X(POINT30, POINT, 30, "point")                                                                             \
    X(POINT60, POINT, 60, "point")                                                                             \
    X(MEAN30, MEAN, 30, "mean")                                                                                \
    X(MEAN60, MEAN, 60, "mean")                                                                                \
    X(PATH30, PATH, 30, "path")                                                                                \
    X(PATH60, PATH, 60, "path")

enum tw_target {
#define TW_TARGET_ENUM(id, kind, s, text) TW_TARGET_##id,
    TW_TARGET_MAP(TW_TARGET_ENUM)
#undef TW_TARGET_ENUM
        TW_TARGET_COUNT
};

struct tw_target_info {
    const char *text;
    enum tw_target_kind kind;
    int horizon_s;
};

extern const struct tw_target_info tw_target_table[TW_TARGET_COUNT];

struct tw_score {
    size_t windows;
    double mae_w, rmse_w, bias_w, p95_w; /* bias: forecast minus value */
    double pinball_w, coverage80, interval_w;
};

struct tw_sums { /* of one target */
    double abs, squares, bias, pinball, covered, interval;
    float *each; /* [cap] absolute error of each window */
};

struct tw_scorer {
    size_t n, cap;
    double step_s;
    struct tw_sums sum[TW_TARGET_COUNT];
};

/* Room for cap windows; mem of tw_scorer_bytes(cap). */
size_t tw_scorer_bytes(size_t cap);
void tw_scorer_init(struct tw_scorer *sc, double step_s, size_t cap, void *mem);
/* A window of x at step t, with its forecast. Beyond cap windows nothing is added. */
void tw_scorer_add(struct tw_scorer *sc, const float *x_w, size_t t, const float out_w[static TW_OUTPUTS]);
/* Sorts the errors of that target: call once for each. */
void tw_scorer_result(struct tw_scorer *sc, enum tw_target target, struct tw_score *ret);

/* Is step t of the track a window of the part? w60 steps are a minute. */
bool tw_window_is(const struct tw_track *t, enum tw_part part, size_t step, size_t w60);
size_t tw_window_count(const struct tw_dataset *ds, enum tw_part part, bool twins, size_t w60);

/* ---- as served ---- */

typedef void (*tw_served_fn)(void *ctx, const struct tw_track *t, size_t step,
                             const float out_w[static TW_OUTPUTS]);

/* Step the model through every track that has the part, from each track's first sample, all tracks together,
 * and hand over the outputs at the windows of the part. twins: also tracks that are twins. trail: a model that
 * knows no spread is given the plainest band there is: its forecast plus quantiles of its own errors on that
 * track over the past TW_TRAIL_S, each known when its time has come (tw_sum of one); until there are TW_SUM_FEW
 * of them the band is the forecast itself. mem of tw_served_bytes, aligned to 64. */
#define TW_TRAIL_S 600.0
size_t tw_served_bytes(const struct tw_model *m, const struct tw_dataset *ds, bool trail);
void tw_served(const struct tw_model *m, const struct tw_dataset *ds, enum tw_part part, bool twins, bool trail,
               const struct tw_par *par, void *mem, tw_served_fn fn, void *ctx);

/* The same windows, every `stride`-th of a track, each from an empty state and its own past look_back steps (as
 * far as there are so many): what a model gives that was not carried. Time since the first sample is told. */
void tw_windowed(const struct tw_model *m, const struct tw_dataset *ds, enum tw_part part, size_t look_back,
                 size_t stride, const struct tw_par *par, void *mem, tw_served_fn fn, void *ctx);
size_t tw_windowed_bytes(const struct tw_model *m);

#endif
