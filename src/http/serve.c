/* SPDX-License-Identifier: Apache-2.0 */
/* Requests through libmicrohttpd. */
#include "http/serve.h"
#include "base/jsonw.h"
#include "http/http_int.h"
#include "sys/clock.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEVER INT64_MAX

/* One connection, from accept to close; lets the sweep find those that are late. */
struct link {
    int fd; /* -1: a free place */
    int64_t deadline_us;
};

struct tw_http_server {
    struct MHD_Daemon *daemon;
    tw_http_handle_fn handle;
    void *ctx;
    unsigned port;
    struct tw_stream *stream;
    pthread_mutex_t lock; /* of what follows */
    struct link link[TW_HTTP_MAX_CONN];
    uint64_t requests, refused;
};

/* One request while it arrives. */
struct call {
    struct tw_buf body;
};

static const struct header {
    const char *name, *value;
} always[] = {
    {"Content-Security-Policy",
     "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

const char *tw_http_query(const struct tw_http_request *req, const char *name)
{
    return MHD_lookup_connection_value(req->opaque, MHD_GET_ARGUMENT_KIND, name);
}

const char *tw_http_header(const struct tw_http_request *req, const char *name)
{
    return MHD_lookup_connection_value(req->opaque, MHD_HEADER_KIND, name);
}

void tw_http_error(struct tw_http_reply *reply, unsigned status, const char *fmt, ...)
{
    char text[sizeof((struct tw_why *)0)->text];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);

    struct tw_jsonw w;
    tw_buf_reset(&reply->body);
    tw_jsonw_init(&w, tw_buf_sink, &reply->body, false);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", "tokwatt.error/1");
    tw_jsonw_i64(&w, "status", status);
    tw_jsonw_str(&w, "error", text);
    tw_jsonw_end(&w);
    reply->status = status;
    reply->type = NULL;
    reply->etag = NULL;
    reply->text = NULL;
    reply->stream = false;
}

/* --- connections and their deadlines --- */

static void deadline_set(struct tw_http_server *srv, struct link *link, double seconds)
{
    if (!link)
        return;
    (void)pthread_mutex_lock(&srv->lock);
    link->deadline_us = seconds > 0 ? tw_boot_us() + (int64_t)(seconds * 1e6) : NEVER;
    (void)pthread_mutex_unlock(&srv->lock);
}

static struct link *link_of(struct MHD_Connection *conn)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* MHD_NotifyConnectionCallback. The end is told before the socket is closed, so a number found in the table is
 * never somebody else's. */
static void on_connection(void *cls, struct MHD_Connection *conn, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct tw_http_server *srv = cls;
    struct link *link = *socket_context;
    const int send_bytes = 65536; /* what a reader that does not read can hold in the kernel, twice this */
    (void)pthread_mutex_lock(&srv->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
        for (size_t i = 0; i < TW_HTTP_MAX_CONN && info; i++)
            if (srv->link[i].fd < 0) {
                srv->link[i] = (struct link){info->connect_fd, tw_boot_us() + TW_HTTP_ARRIVE_S * 1000000LL};
                *socket_context = &srv->link[i];
                (void)setsockopt(info->connect_fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);
                break;
            }
    } else if (link) {
        link->fd = -1;
    }
    (void)pthread_mutex_unlock(&srv->lock);
}

void tw_http_sweep(struct tw_http_server *srv)
{
    int64_t now = tw_boot_us();
    (void)pthread_mutex_lock(&srv->lock);
    for (size_t i = 0; i < TW_HTTP_MAX_CONN; i++)
        if (srv->link[i].fd >= 0 && srv->link[i].deadline_us < now) {
            (void)shutdown(srv->link[i].fd, SHUT_RDWR); /* the server's thread sees the end and closes */
            srv->link[i].deadline_us = NEVER;
        }
    (void)pthread_mutex_unlock(&srv->lock);
}

/* --- requests --- */

static bool is_reading(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

static bool is_json(const char *type)
{
    static const char want[] = "application/json";
    size_t n = sizeof want - 1;
    return type && strncasecmp(type, want, n) == 0 && (type[n] == '\0' || type[n] == ';' || type[n] == ' ');
}

/* Who asks, and how: the rules at the top of serve.h. True when the request may go on. */
static bool admit(struct MHD_Connection *conn, const char *method, struct tw_http_reply *reply)
{
    const char *host = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "Host");
    const char *origin = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "Origin");
    const char *length = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "Content-Length");
    if (!tw_http_host_ok(host)) {
        tw_http_error(reply, 421, "the Host header must name a loopback address, for example 127.0.0.1:9477");
        return false;
    }
    if (length && (strlen(length) > 9 || strtol(length, NULL, 10) > TW_HTTP_MAX_BODY)) {
        tw_http_error(reply, 413, "the body may have %d bytes at most", TW_HTTP_MAX_BODY);
        return false;
    }
    if (is_reading(method))
        return true;
    if (origin && !tw_http_origin_ok(origin, host)) {
        tw_http_error(reply, 403, "requests that change something must come from this server's own page");
        return false;
    }
    if (strcmp(method, "POST") == 0 &&
        !is_json(MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "Content-Type"))) {
        tw_http_error(reply, 415, "send the body as Content-Type: application/json");
        return false;
    }
    return true;
}

static struct MHD_Response *response_from(struct tw_http_server *srv, struct MHD_Connection *conn,
                                          struct tw_http_reply *reply)
{
    if (reply->stream) {
        bool full = false;
        struct MHD_Response *resp = tw_stream_response(
            srv->stream, conn, reply->body.data ? reply->body.data : "", reply->body.n, &full);
        if (resp)
            return resp;
        tw_http_error(reply, 503, full ? "too many readers of the stream; try again later" : "out of memory");
    }
    if (!reply->text && reply->body.err != TW_OK)
        tw_http_error(reply, 500, "the answer could not be made: %s", tw_err_text(reply->body.err));
    if (reply->text) /* the library takes static text by a pointer that is not const and does not write to it */
        return MHD_create_response_from_buffer(reply->text_n, (void *)(uintptr_t)reply->text,
                                               MHD_RESPMEM_PERSISTENT);
    struct MHD_Response *resp =
        MHD_create_response_from_buffer(reply->body.n, reply->body.data, MHD_RESPMEM_MUST_FREE);
    if (resp)
        reply->body.data = NULL;
    return resp;
}

/* Queue the reply, and free what is left of it. */
static enum MHD_Result give(struct tw_http_server *srv, struct MHD_Connection *conn,
                            struct tw_http_reply *reply)
{
    const char *had = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "If-None-Match");
    if (reply->etag && reply->status == 200 && had && strcmp(had, reply->etag) == 0) {
        reply->status = 304;
        reply->text = "";
        reply->text_n = 0;
    }
    struct MHD_Response *resp = response_from(srv, conn, reply);
    enum MHD_Result ok = MHD_NO;
    if (resp) {
        for (size_t i = 0; i < sizeof always / sizeof *always; i++)
            (void)MHD_add_response_header(resp, always[i].name, always[i].value);
        (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_CONTENT_TYPE,
                                      reply->type ? reply->type : "application/json");
        (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_CACHE_CONTROL,
                                      reply->etag ? "no-cache" : "no-store");
        if (reply->etag)
            (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_ETAG, reply->etag);
        if (reply->allow)
            (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_ALLOW, reply->allow);
        if (reply->status >= 400)
            (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_CONNECTION, "close");
        deadline_set(srv, link_of(conn), reply->stream ? 0 : TW_HTTP_TAKE_S);
        ok = MHD_queue_response(conn, reply->status, resp);
        MHD_destroy_response(resp);
    }
    tw_buf_done(&reply->body);
    return ok;
}

static void count(struct tw_http_server *srv, bool refused)
{
    (void)pthread_mutex_lock(&srv->lock);
    srv->requests++;
    srv->refused += refused;
    (void)pthread_mutex_unlock(&srv->lock);
}

static void reply_init(struct tw_http_reply *reply)
{
    *reply = (struct tw_http_reply){.status = 200};
    tw_buf_init(&reply->body, TW_HTTP_MAX_REPLY);
}

/* MHD_AccessHandlerCallback: once for the headers, once for each part of the body, once at the end. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url, const char *method,
                                  const char *version, const char *part, size_t *part_n, void **con_cls)
{
    (void)version;
    struct tw_http_server *srv = cls;
    struct call *call = *con_cls;
    struct tw_http_reply reply;
    reply_init(&reply);
    if (!call) {
        bool ok = admit(conn, method, &reply);
        count(srv, !ok);
        if (!ok)
            return give(srv, conn, &reply);
        call = calloc(1, sizeof *call);
        if (!call)
            return MHD_NO;
        tw_buf_init(&call->body, TW_HTTP_MAX_BODY);
        *con_cls = call;
        return MHD_YES;
    }
    if (*part_n > 0) { /* a body over the ceiling is read, not kept, and refused at its end */
        (void)tw_buf_put(&call->body, part, *part_n);
        *part_n = 0;
        return MHD_YES;
    }
    if (call->body.err != TW_OK) {
        tw_http_error(&reply, 413, "the body may have %d bytes at most", TW_HTTP_MAX_BODY);
        return give(srv, conn, &reply);
    }
    struct tw_http_request req = {strcmp(method, "HEAD") == 0 ? "GET" : method, url, call->body.data,
                                  call->body.n, conn};
    srv->handle(srv->ctx, &req, &reply);
    return give(srv, conn, &reply);
}

/* MHD_RequestCompletedCallback */
static void on_done(void *cls, struct MHD_Connection *conn, void **con_cls,
                    enum MHD_RequestTerminationCode code)
{
    (void)code;
    struct call *call = *con_cls;
    if (call)
        tw_buf_done(&call->body);
    free(call);
    *con_cls = NULL;
    deadline_set(cls, link_of(conn), TW_HTTP_IDLE_S + TW_HTTP_ARRIVE_S);
}

static void be_quiet(void *cls, const char *fmt, va_list ap)
{
    (void)cls;
    (void)fmt;
    (void)ap;
}

enum tw_err tw_http_listen(const char *listen, tw_http_handle_fn handle, void *ctx, struct tw_http_server **ret,
                           struct tw_why *why)
{
    enum tw_err err = TW_OK;
    unsigned port = 0;
    int fd = tw_http_socket(listen, &port, &err, why);
    if (fd < 0)
        return err;
    struct tw_http_server *srv = calloc(1, sizeof *srv);
    if (srv)
        srv->stream = tw_stream_new();
    if (!srv || !srv->stream) {
        (void)close(fd);
        free(srv);
        return tw_fail(why, TW_ENOMEM, "no memory for the HTTP server");
    }
    srv->handle = handle;
    srv->ctx = ctx;
    srv->port = port;
    (void)pthread_mutex_init(&srv->lock, NULL);
    for (size_t i = 0; i < TW_HTTP_MAX_CONN; i++)
        srv->link[i].fd = -1;
    srv->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request,
        srv, MHD_OPTION_EXTERNAL_LOGGER, be_quiet, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)TW_HTTP_MAX_CONN, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)TW_HTTP_MAX_HEADER, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TW_HTTP_IDLE_S,
        MHD_OPTION_NOTIFY_COMPLETED, on_done, srv, MHD_OPTION_NOTIFY_CONNECTION, on_connection, srv,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!srv->daemon) {
        (void)close(fd);
        tw_http_close(srv);
        return tw_fail(why, TW_EIO, "the HTTP server's thread could not be started");
    }
    *ret = srv;
    return TW_OK;
}

void tw_http_close(struct tw_http_server *srv)
{
    if (!srv)
        return;
    tw_stream_end(srv->stream); /* suspended readers must be awake before the daemon may stop */
    if (srv->daemon)
        MHD_stop_daemon(srv->daemon);
    tw_stream_free(srv->stream);
    (void)pthread_mutex_destroy(&srv->lock);
    free(srv);
}

unsigned tw_http_port(const struct tw_http_server *srv)
{
    return srv->port;
}

enum tw_err tw_http_broadcast(struct tw_http_server *srv, const char *bytes, size_t n)
{
    return tw_stream_broadcast(srv->stream, bytes, n);
}

void tw_http_counts(struct tw_http_server *srv, struct tw_http_counts *ret)
{
    unsigned streams = tw_stream_readers(srv->stream);
    (void)pthread_mutex_lock(&srv->lock);
    *ret = (struct tw_http_counts){srv->requests, srv->refused, streams};
    (void)pthread_mutex_unlock(&srv->lock);
}
