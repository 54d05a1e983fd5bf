/* SPDX-License-Identifier: Apache-2.0 */
/* train/trainer.h - train a gru forecaster, one turn at a time.
 *
 * Truncated backpropagation: `batch` streams each walk through the training part of a track in stretches, the
 * state carried from stretch to stretch and from the start of the log, so that training sees what serving sees.
 * The pinball loss is taken at every step that has a target. Tracks come in a shuffled order, each once a
 * round; twins are left out. From time to time the model is scored on the validation windows, served as it will
 * be, and the best weights so far are kept.
 *
 * Rows are split into shards of a fixed size and their gradients summed in a fixed order: one seed gives the
 * same bytes with any number of threads. */
#ifndef TW_TRAIN_TRAINER_H
#define TW_TRAIN_TRAINER_H

#include "feature/dataset.h"
#include "model/model.h"
#include "train/score.h"

struct tw_train_opts {
    size_t hidden;      /* a multiple of 16 */
    size_t batch;       /* streams; a multiple of TW_TRAIN_SHARD */
    size_t stretch;     /* steps */
    size_t steps;       /* of the optimiser; 0: by the length of the data, 300 rounds but 300 to 3000 steps */
    size_t check_every; /* steps between validations */
    double rate, decay, clip;
    double weight_point, weight_mean, weight_outer; /* leads 30 and 60 s, the two means, quantiles 0.1 and 0.9;
                                                       the other leads count 1 */
    double vary_gain, vary_level; /* each visit of a track is scaled by exp(+-vary_gain), and shifted by
                                     +-vary_level of the scaler, at random: devices differ in both */
    uint64_t seed;
};

#define TW_TRAIN_SHARD 16 /* rows that one task trains */

extern const struct tw_train_opts tw_train_defaults;

enum tw_train_event { TW_TRAIN_STEPPED, TW_TRAIN_CHECKED, TW_TRAIN_DONE };

struct tw_trainer;

/* Memory of a trainer; ds must stay until it is done. 0 when the options make no sense for it. */
size_t tw_trainer_bytes(const struct tw_dataset *ds, const struct tw_train_opts *opts);
/* mem aligned to 64. The trainer lives in it: nothing to free. param NULL: drawn from the seed; else the
 * weights to start from. TW_EINVAL (options), TW_ENODATA (no training step has a target) */
TW_MUST_USE
enum tw_err tw_trainer_init(const struct tw_dataset *ds, const struct tw_train_opts *opts,
                            const struct tw_kern *kern, const float *param, void *mem, struct tw_trainer **ret,
                            struct tw_why *why);

/* One step of the optimiser, or one validation. After DONE further turns do nothing. */
enum tw_train_event tw_trainer_turn(struct tw_trainer *tr, const struct tw_par *par);

struct tw_train_state {
    size_t step, steps;
    double loss;  /* mean weighted pinball loss of the last step, in units of the scaler */
    double check; /* last validation: mean over point and mean targets of MAE / MAE of the better of last and
                     mean60; NaN before the first, or without validation windows */
    double best;  /* best so far */
    size_t best_step; /* and when */
};
struct tw_train_state tw_trainer_state(const struct tw_trainer *tr);

/* The best weights so far in a model ready to step; param is the trainer's memory. */
struct tw_model tw_trainer_model(const struct tw_trainer *tr);

#endif
