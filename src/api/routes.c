/* SPDX-License-Identifier: Apache-2.0 */
/* The routes, as a table. Everything here runs on the server's thread. */
#include "api/api_int.h"
#include "api/ask.h"
#include "api/page.h"
#include "api/promtext.h"
#include "api/view.h"
#include "base/jsonw.h"
#include "base/num.h"
#include "sys/clock.h"

#include <string.h>

typedef void (*route_fn)(struct tw_api *api, const struct tw_http_request *req, const char *rest,
                         struct tw_http_reply *reply);

static unsigned status_of(enum tw_err err)
{
    switch (err) {
    case TW_EINVAL:
    case TW_EPARSE:
    case TW_ERANGE:
        return 400;
    case TW_EPERM:
        return 403;
    case TW_ENOENT:
        return 404;
    case TW_EINFEASIBLE:
        return 409;
    case TW_EUNSUPPORTED:
        return 501;
    case TW_ELIMIT:
    case TW_ENODATA:
    case TW_ESTALE:
        return 503;
    case TW_OK:
    case TW_ENOMEM:
    case TW_EIO:
    case TW_EINTERNAL:
    default:
        return 500;
    }
}

static void refuse(struct tw_http_reply *reply, enum tw_err err, const struct tw_why *why)
{
    tw_http_error(reply, status_of(err), "%s", why->text[0] ? why->text : tw_err_text(err));
}

/* The latest snapshot into api->seen; false with the reply made when there is none. */
static bool look(struct tw_api *api, struct tw_http_reply *reply)
{
    enum tw_err err = tw_latest_get(api->latest, &api->seen);
    if (err == TW_OK)
        return true;
    struct tw_why why = {"nothing measured yet; try again in a second"};
    refuse(reply, err, &why);
    return false;
}

static double age_s(const struct tw_api *api)
{
    return (double)(tw_boot_us() - api->seen.published_us) * 1e-6;
}

static void get_snapshot(struct tw_api *api, const struct tw_http_request *req, const char *rest,
                         struct tw_http_reply *reply)
{
    (void)req;
    (void)rest;
    if (look(api, reply))
        tw_view_snapshot(&reply->body, &api->seen, api->run, age_s(api));
}

static void get_history(struct tw_api *api, const struct tw_http_request *req, const char *rest,
                        struct tw_http_reply *reply)
{
    (void)rest;
    int64_t since = 0;
    struct tw_why why = {""};
    const char *text = tw_http_query(req, "since");
    enum tw_err err = text ? tw_num_i64(text, 0, INT64_MAX, &since, &why) : TW_OK;
    if (err != TW_OK) {
        tw_why_prefix(&why, "since: ");
        refuse(reply, err, &why);
        return;
    }
    size_t n = tw_latest_since(api->latest, (uint64_t)since, api->point, TW_LATEST_POINTS);
    tw_view_history(&reply->body, api->run, api->point, n);
}

/* The first message is the state now, so that a page has something to show at once. */
static void get_stream(struct tw_api *api, const struct tw_http_request *req, const char *rest,
                       struct tw_http_reply *reply)
{
    (void)req;
    (void)rest;
    reply->type = "text/event-stream";
    reply->stream = true;
    (void)tw_buf_puts(&reply->body, "retry: 2000\n\n");
    if (tw_latest_get(api->latest, &api->seen) == TW_OK)
        tw_view_tick(&reply->body, &api->seen, api->run, api->seen.s.seq, NULL, 0);
}

static void get_events(struct tw_api *api, const struct tw_http_request *req, const char *rest,
                       struct tw_http_reply *reply)
{
    (void)req;
    (void)rest;
    struct tw_api_event list[TW_API_MAX_EVENTS];
    size_t n = 0;
    struct tw_why why = {"this daemon takes no events"};
    enum tw_err err = TW_EUNSUPPORTED;
    if (api->hooks.event_list) {
        why.text[0] = '\0';
        err = api->hooks.event_list(api->hooks.ctx, list, TW_API_MAX_EVENTS, &n, &why);
    }
    if (err == TW_OK)
        tw_view_events(&reply->body, list, n);
    else
        refuse(reply, err, &why);
}

static void event_done(struct tw_http_reply *reply, uint32_t id, bool cancelled)
{
    struct tw_jsonw w;
    tw_jsonw_init(&w, tw_buf_sink, &reply->body, false);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", "tokwatt.event/1");
    tw_jsonw_i64(&w, "id", id);
    tw_jsonw_bool(&w, "cancelled", cancelled);
    tw_jsonw_end(&w);
}

static void post_event(struct tw_api *api, const struct tw_http_request *req, const char *rest,
                       struct tw_http_reply *reply)
{
    (void)rest;
    struct tw_api_ask ask;
    uint32_t id = 0;
    struct tw_why why = {""};
    enum tw_err err = tw_ask_parse(req->body, req->body_n, &ask, &why);
    if (err == TW_OK)
        err = api->hooks.event_add ? api->hooks.event_add(api->hooks.ctx, &ask, &id, &why)
                                   : tw_fail(&why, TW_EUNSUPPORTED, "this daemon takes no events");
    if (err != TW_OK) {
        refuse(reply, err, &why);
        return;
    }
    reply->status = 201;
    event_done(reply, id, false);
}

static void delete_event(struct tw_api *api, const struct tw_http_request *req, const char *rest,
                         struct tw_http_reply *reply)
{
    (void)req;
    uint32_t id = 0;
    struct tw_why why = {""};
    enum tw_err err = tw_ask_id(rest, &id, &why);
    if (err == TW_OK)
        err = api->hooks.event_cancel ? api->hooks.event_cancel(api->hooks.ctx, id, &why)
                                      : tw_fail(&why, TW_EUNSUPPORTED, "this daemon takes no events");
    if (err == TW_OK)
        event_done(reply, id, true);
    else
        refuse(reply, err, &why);
}

static void get_metrics(struct tw_api *api, const struct tw_http_request *req, const char *rest,
                        struct tw_http_reply *reply)
{
    (void)rest;
    bool openmetrics = tw_promtext_wants_openmetrics(tw_http_header(req, "Accept"));
    bool known = tw_latest_get(api->latest, &api->seen) == TW_OK;
    struct tw_http_counts counts;
    tw_http_counts(api->http, &counts);
    struct tw_promtext_own own = {counts.requests, counts.refused, counts.streams, known ? age_s(api) : 0};
    reply->type = tw_promtext_type(openmetrics);
    tw_promtext(&reply->body, known ? &api->seen : NULL, &own, openmetrics);
}

static void get_health(struct tw_api *api, const struct tw_http_request *req, const char *rest,
                       struct tw_http_reply *reply)
{
    (void)api;
    (void)req;
    (void)rest;
    reply->type = "text/plain; charset=utf-8";
    reply->text = "ok\n";
    reply->text_n = 3;
}

/* Ready means all GPUs fresh, now. */
static void get_ready(struct tw_api *api, const struct tw_http_request *req, const char *rest,
                      struct tw_http_reply *reply)
{
    (void)req;
    (void)rest;
    const char *text = "nothing measured yet";
    size_t n = 0, stale = 0;
    bool ready = false;
    if (tw_latest_get(api->latest, &api->seen) == TW_OK) {
        n = api->seen.s.n_gpu;
        stale = api->seen.s.stale_gpus;
        bool late = age_s(api) > TW_API_FRESH_S;
        ready = n > 0 && stale == 0 && !late;
        text = late        ? "the control loop has not turned for some seconds"
               : n == 0    ? "no GPU is known"
               : stale > 0 ? "some GPUs have no fresh reading"
                           : "all GPUs are fresh";
    }
    reply->status = ready ? 200 : 503;
    tw_view_ready(&reply->body, ready, n, stale, text);
}

static const struct route {
    const char *method, *path; /* a path that ends in "/" takes one more segment, handed over as rest */
    route_fn handle;
} routes[] = {
    {"GET", "/v1/snapshot", get_snapshot}, {"GET", "/v1/history", get_history},
    {"GET", "/v1/stream", get_stream},     {"GET", "/v1/events", get_events},
    {"POST", "/v1/events", post_event},    {"DELETE", "/v1/events/", delete_event},
    {"GET", "/metrics", get_metrics},      {"GET", "/healthz", get_health},
    {"GET", "/readyz", get_ready},
};
enum { N_ROUTE = sizeof routes / sizeof *routes };

/* What follows the route's path in path: "" for the same, NULL for another path. */
static const char *rest_of(const struct route *r, const char *path)
{
    size_t n = strlen(r->path);
    if (strncmp(path, r->path, n) != 0)
        return NULL;
    return r->path[n - 1] == '/' ? (path[n] ? path + n : NULL) : (path[n] ? NULL : path + n);
}

static bool give_asset(const struct tw_http_request *req, struct tw_http_reply *reply)
{
    for (const struct tw_page_asset *a = tw_page_asset; a->path; a++)
        if (strcmp(a->path, req->path) == 0) {
            reply->type = a->type;
            reply->etag = a->etag;
            reply->text = (const char *)a->data;
            reply->text_n = a->n;
            return true;
        }
    if (tw_api_has_page() || strcmp(req->path, "/") != 0)
        return false;
    static const char text[] =
        "tokwattd " TW_VERSION " is running. The page was not built in: it needs npm at build time (for the "
        "chart library).\nInstall npm, run `make clean all`, and start tokwattd again.\n\nMeanwhile: "
        "/v1/snapshot "
        "/v1/history /v1/stream /v1/events /metrics /healthz /readyz\n";
    reply->type = "text/plain; charset=utf-8";
    reply->text = text;
    reply->text_n = sizeof text - 1;
    return true;
}

void tw_api_handle(void *ctx, const struct tw_http_request *req, struct tw_http_reply *reply)
{
    struct tw_api *api = ctx;
    const char *allow = NULL;
    for (int i = 0; i < N_ROUTE; i++) {
        const char *rest = rest_of(&routes[i], req->path);
        if (!rest)
            continue;
        if (strcmp(routes[i].method, req->method) == 0) {
            routes[i].handle(api, req, rest, reply);
            return;
        }
        allow = !allow ? routes[i].method : "GET, POST"; /* no path has more than these two */
    }
    if (!allow && give_asset(req, reply)) {
        if (strcmp(req->method, "GET") == 0)
            return;
        allow = "GET";
    }
    if (!allow) {
        tw_http_error(reply, 404, "there is nothing at %.200s", req->path);
        return;
    }
    tw_http_error(reply, 405, "%.20s is not possible here; %s is", req->method, allow);
    reply->allow = allow;
}
