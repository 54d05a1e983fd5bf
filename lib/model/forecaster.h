/* SPDX-License-Identifier: Apache-2.0 */
/* model/forecaster.h - a forecaster of n GPUs, for those who serve it.
 *
 *     size_t bytes = tw_forecaster_bytes(file, n_file, n_gpu);          once, memory from the caller
 *     tw_forecaster_init(file, n_file, kern, n_gpu, mem, &f, &why);
 *     every step:  tw_forecaster_push(f, watts, par);   out = tw_forecaster_out(f, i);
 *
 * A sample is pushed at every step of the model's grid (tw_forecaster_step_s), for all GPUs together; watts are
 * NaN for one that was not read. Outputs are the 42 numbers of model/model.h, NaN while there is no answer yet.
 * After init nothing is allocated. One forecaster belongs to one thread at a time; several may live side by
 * side. */
#ifndef TW_MODEL_FORECASTER_H
#define TW_MODEL_FORECASTER_H

#include "model/model.h"
#include "model/modelfile.h"

#include <stdbool.h>

struct tw_forecaster;

/* Memory for a model file of n_file bytes and n_gpu GPUs. */
TW_MUST_USE
enum tw_err tw_forecaster_bytes(const void *file, size_t n_file, size_t n_gpu, size_t *ret_bytes,
                                struct tw_why *why);
/* mem aligned to 64; the file may go afterwards. Errors are those of tw_model_read. */
TW_MUST_USE
enum tw_err tw_forecaster_init(const void *file, size_t n_file, const struct tw_kern *kern, size_t n_gpu,
                               void *mem, struct tw_forecaster **ret, struct tw_why *why);

double tw_forecaster_step_s(const struct tw_forecaster *f);
const struct tw_model_about *tw_forecaster_about(const struct tw_forecaster *f);

/* GPU i has a board limit of limit_w: its power is scaled by the limit of the devices of training. No effect
 * for a model that does not tell theirs. */
void tw_forecaster_set_limit(struct tw_forecaster *f, size_t i, double limit_w);
/* GPU i is another one now, or was gone: forget what was seen of it. */
void tw_forecaster_forget(struct tw_forecaster *f, size_t i);

/* watts[n_gpu]. par NULL: serial. */
void tw_forecaster_push(struct tw_forecaster *f, const float *watts, const struct tw_par *par);
/* [n_gpu][TW_OUTPUTS] after the last push; valid until the next. */
const float *tw_forecaster_out(const struct tw_forecaster *f);
/* Has GPU i a forecast? */
bool tw_forecaster_is_ready(const struct tw_forecaster *f, size_t i);

/* The state as bytes, to go on after a restart. TW_EPARSE when the bytes are not those of this model and number
 * of GPUs; the state is then untouched. */
size_t tw_forecaster_save_bytes(const struct tw_forecaster *f);
void tw_forecaster_save(const struct tw_forecaster *f, void *ret);
TW_MUST_USE
enum tw_err tw_forecaster_restore(struct tw_forecaster *f, const void *bytes, size_t n, struct tw_why *why);

/* A model that is part of the program: trained on simulated sites with other seeds than those of the demo. */
extern const unsigned char tw_model_builtin[];
extern const size_t tw_model_builtin_size;

/* ---- the sum over a site ---- */

/* Quantiles of a sum are not sums of quantiles: errors inside a job go together. The band of a sum is its
 * middle forecast plus quantiles of the sum's own errors over the past `window` steps, each known when its time
 * has come (split conformal prediction over a trailing window). Until there are TW_SUM_FEW errors of a head,
 * the outer quantiles are the sums of those of the GPUs: too wide, and never too narrow for errors that are
 * less than wholly correlated. */
#define TW_SUM_FEW 60

struct tw_sum;

size_t tw_sum_bytes(double step_s, size_t window);
struct tw_sum *tw_sum_init(double step_s, size_t window, void *mem); /* mem aligned to 64 */

/* One step: sum_w is what the GPUs drew together now (NaN: not known), out[n][TW_OUTPUTS] their forecasts. GPUs
 * without a forecast count with watts[i] (NaN: as nothing) in all quantiles. ret_out_w is of the sum; NaN while
 * no GPU has a forecast. */
void tw_sum_push(struct tw_sum *s, double sum_w, size_t n, const float *watts, const float *out,
                 float ret_out_w[static TW_OUTPUTS]);

#endif
