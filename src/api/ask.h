/* SPDX-License-Identifier: Apache-2.0 */
/* api/ask.h - the body of POST /v1/events. */
#ifndef TW_API_ASK_H
#define TW_API_ASK_H

#include "api/api.h"

/* {"cut_frac":0.3,"for_s":300,"in_s":0}: one object, in_s may be left out, no other key is accepted.
 * TW_EPARSE (not that), TW_ERANGE (a number out of its range) */
TW_MUST_USE
enum tw_err tw_ask_parse(const char *body, size_t n, struct tw_api_ask *ret, struct tw_why *why);

/* The decimal id at the end of /v1/events/ID. */
TW_MUST_USE
enum tw_err tw_ask_id(const char *text, uint32_t *ret, struct tw_why *why);

#endif
