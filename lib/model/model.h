/* SPDX-License-Identifier: Apache-2.0 */
/* model/model.h - forecasters: one table each, one step function for all.
 *
 * tw_model_step is the only way to a forecast: `tokwatt evaluate`, the daemon and the plug-in all call it. It
 * takes one sample of n series (GPUs) at a grid step and gives 42 numbers for each, in watts per GPU:
 *
 *     quantiles 0.1, 0.5, 0.9 of the value 5, 10 ... 60 s ahead, then of the mean over the next 30 s and 60 s
 *
 * NaN where a model has no answer: before a minute of a series has been seen, and for the outer quantiles of a
 * model that knows no spread. State is a block of bytes that the caller owns: no pointers inside, so it may be
 * saved, copied and restored. Nothing is allocated while stepping; a model is read only and may be shared by
 * threads. */
#ifndef TW_MODEL_MODEL_H
#define TW_MODEL_MODEL_H

#include "base/err.h"
#include "base/par.h"
#include "feature/input.h"
#include "model/calib.h"
#include "nn/gru.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TW_LEADS = 12,                        /* 5, 10 ... 60 s */
    TW_LEAD_S = 5,                        /* between leads */
    TW_QUANTILES = 3,                     /* 0.1, 0.5, 0.9 */
    TW_HEADS = TW_LEADS + 2,              /* leads, mean 30, mean 60 */
    TW_HEAD_MEAN30 = TW_LEADS,            /* index of a head; of a lead it is lead_s / 5 - 1 */
    TW_HEAD_MEAN60 = TW_LEADS + 1,        /* */
    TW_OUTPUTS = TW_HEADS * TW_QUANTILES, /* output [head * 3 + quantile] */
};

extern const double tw_quantile_level[TW_QUANTILES];

/* Where head ends, in seconds ahead: the lead, or the length of the mean. */
double tw_head_s(size_t head);

/* Value `ahead_s` ahead for quantile q: linear between the leads, and the first lead's before 5 s. */
double tw_output_at(const float out[static TW_OUTPUTS], size_t q, double ahead_s);

struct tw_model;

struct tw_model_ops {
    const char *name;
    const char *help;
    bool trained; /* has parameters that depend on a seed */
    bool spread;  /* gives outer quantiles, which are calibrated (model/calib.h) */
    /* Values back that it reads, and floats of its own in the state of each series. */
    size_t (*look_back)(const struct tw_model *m);
    size_t (*row_floats)(const struct tw_model *m);
    /* MAY be NULL: zeros. Prepare the row of one series that was just reset. */
    void (*begin)(const struct tw_model *m, float *row);
    /* Series i0 .. i0 + n of a state whose sample was pushed: u[n][TW_OUTPUTS] in units of the scaler. n is at
     * most TW_MODEL_BLOCK; row is that of series i0. */
    void (*predict)(const struct tw_model *m, const struct tw_input_state *in, size_t i0, size_t n, float *row,
                    float *u);
};

#define TW_MODEL_BLOCK 48

#define TW_MODEL_MAP(X) X(last) X(mean60) X(ridge) X(gru)
#define TW_MODEL_DECLARE(id) extern const struct tw_model_ops tw_model_##id;
TW_MODEL_MAP(TW_MODEL_DECLARE)
#undef TW_MODEL_DECLARE

/* All of them, ended by NULL; and one by name, NULL when there is none. */
extern const struct tw_model_ops *const tw_model_table[];
const struct tw_model_ops *tw_model_find(const char *name);

struct tw_model {
    const struct tw_model_ops *ops;
    const struct tw_kern *kern;
    struct tw_input_shape input;
    struct tw_gru_shape gru; /* of a gru: n_in, hidden, n_out */
    const float *param;      /* [n_param], the caller's */
    size_t n_param;
    bool calibrated; /* set for a model with spread; clear it for the bare model. State differs between the two
                      */
    struct tw_calib calib;
};

/* Fill in *ret for a grid of step_s. A trained model then needs param (of tw_model_n_param floats). */
void tw_model_init(struct tw_model *ret, const struct tw_model_ops *ops, const struct tw_kern *kern,
                   double step_s, struct tw_scaler scaler, size_t hidden);
size_t tw_model_n_param(const struct tw_model *m);
size_t tw_model_n_learned(const struct tw_model *m);

/* State of n series: bytes (a multiple of 64), made empty, and one series of it made empty. The block is
 * aligned to 64. */
size_t tw_model_state_bytes(const struct tw_model *m, size_t n);
void tw_model_reset(const struct tw_model *m, size_t n, void *state);
void tw_model_reset_one(const struct tw_model *m, size_t n, void *state, size_t i);
/* Scale of one series against the devices of training: 1, or (their board limit / its board limit). */
void tw_model_set_gain(const struct tw_model *m, size_t n, void *state, size_t i, float gain);
/* A series that was just reset had already run for so many steps. */
void tw_model_set_before(const struct tw_model *m, size_t n, void *state, size_t i, uint32_t steps);

/* One step of the grid. x_w[n]: watts per GPU, NaN = missing. out_w[n][TW_OUTPUTS]; quantiles never cross.
 * par NULL: serial. */
void tw_model_step(const struct tw_model *m, size_t n, void *state, const float *x_w, float *out_w,
                   const struct tw_par *par);

#endif
