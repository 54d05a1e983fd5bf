/* SPDX-License-Identifier: Apache-2.0 */
/* api/api.h - what a site shows over HTTP: the page, JSON, a live stream, metrics; and events asked for.
 *
 * The runner tells the API what holds by tw_api_publish once a turn; the API keeps a copy, so that no request
 * ever waits for the loop or the loop for a request. What a request wants changed goes the other way, through
 * tw_api_hooks, on the server's own thread: the hooks take the lock that their data needs.
 *
 * Routes: GET / and its assets, GET /v1/snapshot, /v1/history?since=SEQ, /v1/stream (server-sent events),
 * GET and POST /v1/events, DELETE /v1/events/ID, GET /metrics, /healthz, /readyz. docs/guide/http.md has their
 * bodies. */
#ifndef TW_API_API_H
#define TW_API_API_H

#include "base/err.h"
#include "ctl/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_API_LISTEN "127.0.0.1:9477"
#define TW_API_MAX_EVENTS 64 /* events that are listed: those to come, the one running, the latest past */

/* What POST /v1/events asks for; ranges are checked: cut_frac 0..1, for_s above 0 up to 7 days, in_s 0 up to
 * 30 days. Times are site seconds. */
struct tw_api_ask {
    double cut_frac;
    double for_s;
    double in_s;
};

struct tw_api_event {
    uint32_t id;
    enum tw_event_state state;
    bool cancelled;
    double cut_frac, start_s, end_s; /* end: of the hold, site time */
    double baseline_w, target_w;     /* NaN before it begins */
};

/* Called on the server's thread, one at a time; none may block for long. ctx goes to each. Texts in why reach
 * the one who asked. */
struct tw_api_hooks {
    void *ctx;
    /* Put an event into the schedule. TW_ELIMIT (too many), TW_EINFEASIBLE (overlaps another), TW_EINVAL */
    enum tw_err (*event_add)(void *ctx, const struct tw_api_ask *ask, uint32_t *ret_id, struct tw_why *why);
    /* The latest events into ret[room], oldest first. */
    enum tw_err (*event_list)(void *ctx, struct tw_api_event *ret, size_t room, size_t *ret_n,
                              struct tw_why *why);
    /* End a running event (power returns at the ramp limit) or drop a waiting one. TW_ENOENT, TW_EINVAL (it is
     * over) */
    enum tw_err (*event_cancel)(void *ctx, uint32_t id, struct tw_why *why);
};

struct tw_api;

/* Serve on listen ("127.0.0.1:9477", "[::1]:9477", "localhost:0"; port 0 takes a free one). Anything but a
 * loopback address is refused: there is no TLS and no credential here. The three hooks may be NULL: the route
 * then answers 501.
 *
 * TW_EPARSE (not ADDRESS:PORT), TW_EPERM (not loopback), TW_EIO (the port is taken), TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_api_open(const char *listen, const struct tw_api_hooks *hooks, struct tw_api **ret,
                        struct tw_why *why);
void tw_api_close(struct tw_api *api); /* ends all streams; NULL is fine */
unsigned tw_api_port(const struct tw_api *api);

/* What holds now; the snapshot is copied. Call it once a turn, from one thread. Memory is taken only when the
 * site has grown since the last call. Streams are told at most five times a second, with all turns since.
 * TW_ENOMEM (the last copy stays) */
TW_MUST_USE
enum tw_err tw_api_publish(struct tw_api *api, const struct tw_snapshot *snap);

/* Is the page built in? Without it GET / gives a short text that says so. */
bool tw_api_has_page(void);

#endif
