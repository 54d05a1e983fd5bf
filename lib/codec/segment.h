/* SPDX-License-Identifier: Apache-2.0 */
/* codec/segment.h - samples as bytes that compress well: the block format of the store.
 *
 *   time column   n differences to the time before (the first to 0), 64-bit, little endian
 *   value columns n floats each, IEEE 754 bits, little endian
 *
 * Every column is written plane by plane: all lowest bytes, then the next, so that bytes that hardly change lie
 * together. The size follows from the counts; there is no header. Any values come back bit by bit. */
#ifndef TW_CODEC_SEGMENT_H
#define TW_CODEC_SEGMENT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

size_t tw_segment_bytes(size_t n, size_t n_columns); /* n up to 2^20, n_columns up to 64 */

/* column[n_columns], each [n]; ret_bytes has tw_segment_bytes() */
void tw_segment_pack(const int64_t *time_us, const float *const *column, size_t n, size_t n_columns,
                     unsigned char *ret_bytes);
/* The way back. TW_EPARSE when size is not that of n and n_columns. */
TW_MUST_USE
enum tw_err tw_segment_unpack(const unsigned char *bytes, size_t size, size_t n, size_t n_columns,
                              int64_t *ret_time_us, float *const *ret_column, struct tw_why *why);

#endif
