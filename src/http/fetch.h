/* SPDX-License-Identifier: Apache-2.0 */
/* http/fetch.h - one HTTP request to somebody else, with a deadline and a ceiling.
 *
 * A thin shell over libcurl: http and https only, no redirects, certificates checked, no proxy for loopback. */
#ifndef TW_HTTP_FETCH_H
#define TW_HTTP_FETCH_H

#include "base/err.h"

#include <stddef.h>

struct tw_http_ask {
    const char *method; /* "GET", "POST", "DELETE" */
    const char *url;
    const char *body; /* NULL: none */
    const char *type; /* of the body; NULL: application/json */
    double deadline_s;
    size_t max_bytes; /* of the answer */
};

struct tw_http_answer {
    unsigned status;
    char *body; /* NUL after its end; never NULL on success */
    size_t n;
};

/* Any status is a success here: look at ret->status. ret->body is freed by tw_http_answer_done.
 * TW_EINVAL (the URL), TW_EIO (nobody answers), TW_ESTALE (deadline), TW_ELIMIT (longer than max_bytes),
 * TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_http_fetch(const struct tw_http_ask *ask, struct tw_http_answer *ret, struct tw_why *why);
void tw_http_answer_done(struct tw_http_answer *answer); /* NULL is fine */

#endif
