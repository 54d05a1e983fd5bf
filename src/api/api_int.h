/* SPDX-License-Identifier: Apache-2.0 */
/* api/api_int.h - what the files of this room share. */
#ifndef TW_API_API_INT_H
#define TW_API_API_INT_H

#include "api/api.h"
#include "api/latest.h"
#include "http/serve.h"

#define TW_API_FRESH_S 5 /* a snapshot older than this, by the clock, is not "now" */

struct tw_api {
    struct tw_http_server *http;
    struct tw_api_hooks hooks;
    struct tw_latest *latest;
    char run[20]; /* names this life of the server */

    /* the server's thread */
    struct tw_snap_copy seen;
    struct tw_point point[TW_LATEST_POINTS];

    /* the publishing thread */
    struct tw_buf tick;
    struct tw_snap_copy told;
    struct tw_point news[TW_LATEST_POINTS];
    uint64_t told_seq;
    int64_t told_us;
};

/* tw_http_handle_fn */
void tw_api_handle(void *ctx, const struct tw_http_request *req, struct tw_http_reply *reply);

#endif
