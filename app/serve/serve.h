/* SPDX-License-Identifier: Apache-2.0 */
/* serve/serve.h - a site that runs by the clock, with its page and API: what tokwattd and `tokwatt demo` have
 * in common.
 *
 * One thread owns the site; the API has its own and takes events through a lock. SIGTERM and SIGINT end it:
 * every limit is put back, past those that fail. */
#ifndef TW_APP_SERVE_H
#define TW_APP_SERVE_H

#include "base/err.h"
#include "run/run.h"

#include <stdbool.h>
#include <stddef.h>

struct serve_conf {
    struct tw_run_conf run;
    const char *listen; /* "127.0.0.1:9477"; NULL: no API */
    double speed;       /* site seconds per second; only a simulated source may have another than 1 */
    bool once;          /* one turn, and out */
    /* After every turn, with url the page's address ("" without one); true ends it. May be NULL. */
    bool (*turned)(void *ctx, struct tw_run *run, const char *url);
    void *ctx;
};

/* Runs until a signal, `turned` or `once` ends it. TW_EIO when the port is taken or the source is gone, and
 * what tw_run_open and tw_api_open say. ret_signal: what ended it, or 0. ret_left: limits were left that
 * could not be put back (it has been logged). */
TW_MUST_USE
enum tw_err serve_site(const struct serve_conf *conf, int *ret_signal, bool *ret_left, struct tw_why *why);

#endif
