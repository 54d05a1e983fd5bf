/* SPDX-License-Identifier: Apache-2.0 */
/* codec/safetensors.h - named arrays in a file (Hugging Face, safetensors 0.x).
 *
 *   u64 little-endian    length of the header
 *   header               JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
 *                        "__metadata__": {"key": "text"}}, blanks allowed at its end
 *   data                 offsets count from here; little-endian, row-major
 *
 * Reading believes nothing: lengths against the bytes that are there, every array inside the data, of the size
 * that its shape says, none over another, and no array without finite values. Ceilings below bound what a file
 * may ask for. */
#ifndef TW_CODEC_SAFETENSORS_H
#define TW_CODEC_SAFETENSORS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_ST_HEADER_MOST (256u << 10) /* bytes */
#define TW_ST_TENSORS_MOST 32
#define TW_ST_DIMS_MOST 4
#define TW_ST_META_MOST 32
#define TW_ST_TEXT_MOST (32u << 10) /* bytes of all keys, values and names */

struct tw_st_tensor { /* floats: the only type that models of ours have */
    const char *name;
    size_t n_dim, dim[TW_ST_DIMS_MOST];
    size_t n;                  /* elements */
    const unsigned char *data; /* 4 n bytes, not aligned: tw_st_copy */
};

struct tw_st_meta {
    const char *key, *value;
};

struct tw_st {
    struct tw_st_tensor tensor[TW_ST_TENSORS_MOST];
    struct tw_st_meta meta[TW_ST_META_MOST];
    size_t n_tensor, n_meta;
    char text[TW_ST_TEXT_MOST];
    size_t text_used;
};

/* Views into bytes[n], which must outlive *ret. TW_EPARSE, TW_ELIMIT, TW_EUNSUPPORTED (another type), TW_ERANGE
 * (NaN or infinity in an array) */
TW_MUST_USE
enum tw_err tw_st_read(const void *bytes, size_t n, struct tw_st *ret, struct tw_why *why);

const struct tw_st_tensor *tw_st_find(const struct tw_st *st, const char *name); /* NULL: none */
const char *tw_st_meta(const struct tw_st *st, const char *key);                 /* NULL: none */
void tw_st_copy(const struct tw_st_tensor *t, float *ret);                       /* [n] */

/* Write tensors and metadata of st (data of each points to floats in memory) to out[cap]; *ret_n is the size,
 * also when out is NULL. TW_ELIMIT when cap is too small or the header over its ceiling */
TW_MUST_USE
enum tw_err tw_st_write(const struct tw_st *st, void *out, size_t cap, size_t *ret_n, struct tw_why *why);

#endif
