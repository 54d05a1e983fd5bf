/* SPDX-License-Identifier: Apache-2.0 */
/* codec/decimal.h - decimal numbers of a text, fast and exactly rounded.
 *
 * The text must end in a byte that is no part of a number (a newline will do): nothing is read beyond it. The
 * result is the double that strtod gives, for every input: up to 19 digits that fit 53 bits with a power of ten
 * up to 22 need one exactly rounded operation (Clinger 1990), anything else is handed to strtod. */
#ifndef TW_CODEC_DECIMAL_H
#define TW_CODEC_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

/* [+-] digits [. digits] [e[+-]digits], times 10^exp10, rounded once. Returns the byte after the number, or
 * NULL when there is none at p (NaN, infinity and hexadecimal are none) or it is longer than 120 bytes. A value
 * too large for a double gives infinity: check the range. */
const char *tw_decimal_f64(const char *p, int exp10, double *ret);

/* Digits alone, at most 18 of them; NULL when there is none or there are more. */
const char *tw_decimal_u64(const char *p, uint64_t *ret);

/* [-] digits [. digits] times 10^exp10 (0 to 6) as a whole number, rounded half up: for times, which a double
 * would blur. NULL when it does not fit. */
const char *tw_decimal_fixed(const char *p, unsigned exp10, int64_t *ret);

#endif
