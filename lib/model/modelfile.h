/* SPDX-License-Identifier: Apache-2.0 */
/* model/modelfile.h - a trained forecaster as a safetensors file, and back.
 *
 * Arrays of a gru are named and laid out as PyTorch does it (gates r, z, n; weights [out][in]):
 *
 *   gru.weight_ih_l0 [3 hidden][inputs]   gru.weight_hh_l0 [3 hidden][hidden]   gru.bias_ih_l0, gru.bias_hh_l0
 *   head.weight [42][hidden + inputs], columns h then inputs                     head.bias [42]
 *
 * and of a ridge: ridge.weight [features][14], ridge.offset [14][3]. Either may have calib.start [7][2], the
 * margins that calibration begins with (model/calib.h). Metadata (text): format
 * "tokwatt.model/1", model, hidden, inputs, channels, step_s, mean_w, std_w, limit_w, and what is told about
 * it: set, seed, data_hash, steps, scores, version. */
#ifndef TW_MODEL_MODELFILE_H
#define TW_MODEL_MODELFILE_H

#include "base/arena.h"
#include "model/model.h"

#define TW_MODEL_FORMAT "tokwatt.model/1"
#define TW_MODEL_FILE_MOST (1u << 20) /* bytes */

struct tw_model_about {
    char set[96], seed[24], data_hash[24], steps[24], version[24];
    char scores[2048]; /* JSON text */
    double limit_w;    /* board limit of the devices it was trained on; 0: unknown */
};

/* Write to out[cap]; *ret_n is the size, also when out is NULL. scratch of tw_model_file_scratch. TW_ELIMIT */
size_t tw_model_file_scratch(const struct tw_model *m);
TW_MUST_USE
enum tw_err tw_model_write(const struct tw_model *m, const struct tw_model_about *about, void *scratch,
                           void *out, size_t cap, size_t *ret_n, struct tw_why *why);

/* Read a model. Its parameters and scratch come out of the arena: tw_model_read_bytes(n) is enough for any file
 * of n bytes that is accepted. ret_about may be NULL.
 * TW_EPARSE (no safetensors, cut, or shapes that do not fit), TW_ERANGE (a value that is no number),
 * TW_EUNSUPPORTED (another format version, model, inputs or channels), TW_ELIMIT (over TW_MODEL_FILE_MOST) */
size_t tw_model_read_bytes(size_t n);
/* What a file holds, without its parameters and kernels. Errors as tw_model_read, but arrays are not held
 * against the model. */
TW_MUST_USE
enum tw_err tw_model_peek(const void *bytes, size_t n, struct tw_model *ret, struct tw_why *why);
TW_MUST_USE
enum tw_err tw_model_read(const void *bytes, size_t n, const struct tw_kern *kern, struct tw_arena *arena,
                          struct tw_model *ret, struct tw_model_about *ret_about, struct tw_why *why);

#endif
