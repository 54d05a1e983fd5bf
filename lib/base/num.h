/* SPDX-License-Identifier: Apache-2.0 */
/* base/num.h - numbers as people write them: "30%", "12kW", "90s", "3h".
 *
 * Every parser takes a NUL-terminated string that holds the value and nothing else (blanks around it are
 * allowed), refuses NaN, infinity, hexadecimal floats and an empty string, and says in why what it wanted. SI
 * inside, whatever was written. */
#ifndef TW_BASE_NUM_H
#define TW_BASE_NUM_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A plain number. TW_EPARSE */
TW_MUST_USE
enum tw_err tw_num_f64(const char *s, double *ret, struct tw_why *why);

/* A whole number in [min, max]. TW_EPARSE, TW_ERANGE */
TW_MUST_USE
enum tw_err tw_num_i64(const char *s, int64_t min, int64_t max, int64_t *ret, struct tw_why *why);

/* "30%", "0.3": a fraction in [0, 1]. A bare number above 1 is refused ("write 30% or 0.3").
 * TW_EPARSE, TW_ERANGE */
TW_MUST_USE
enum tw_err tw_num_frac(const char *s, double *ret_frac, struct tw_why *why);

/* "350", "350W", "12kW", "1.5MW": watts, >= 0. TW_EPARSE, TW_ERANGE */
TW_MUST_USE
enum tw_err tw_num_power(const char *s, double *ret_w, struct tw_why *why);

/* "250ms", "90s", "5m", "3h", "2d", "1h30m"; a bare number is seconds. >= 0. TW_EPARSE, TW_ERANGE */
TW_MUST_USE
enum tw_err tw_num_duration(const char *s, double *ret_s, struct tw_why *why);

/* Write watts for a person ("12.3 kW") into buf; always terminated. Returns buf. */
char *tw_num_show_power(double watts, char *buf, size_t size);
/* Seconds for a person ("3 h 05 min", "42 s"). */
char *tw_num_show_duration(double seconds, char *buf, size_t size);

#endif
