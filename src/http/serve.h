/* SPDX-License-Identifier: Apache-2.0 */
/* http/serve.h - answer HTTP requests on one loopback address, and feed one live stream to many readers.
 *
 * A thin shell over libmicrohttpd with one thread of its own, on which every handler runs. What holds for all:
 *
 *   - Only loopback addresses are listened on, since there is neither TLS nor a credential here.
 *   - A request whose Host is not a loopback name is refused (a page elsewhere that had its name resolve to
 *     127.0.0.1 would send its own); so is one that changes something and comes from another origin, or whose
 *     body is not application/json.
 *   - Ceilings: connections, streams, header bytes, body bytes, seconds for a request to arrive, for an answer
 *     to be taken, and of silence. A reader of the stream that cannot keep up skips messages; what it holds is
 *     one message, and after TW_HTTP_IDLE_S without taking a byte it is dropped.
 *   - Every answer carries the security headers; answers are not stored by caches unless they have an etag. */
#ifndef TW_HTTP_SERVE_H
#define TW_HTTP_SERVE_H

#include "base/err.h"
#include "sys/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_HTTP_MAX_CONN 192
#define TW_HTTP_MAX_STREAM 96
#define TW_HTTP_MAX_HEADER 16384
#define TW_HTTP_MAX_BODY 16384
#define TW_HTTP_MAX_REPLY (32u << 20)
#define TW_HTTP_ARRIVE_S 20 /* from the connection, or the end of the last answer, to the end of a request */
#define TW_HTTP_TAKE_S 60   /* for an answer to be taken whole */
#define TW_HTTP_IDLE_S 30   /* silence in either direction */

struct tw_http_server;

struct tw_http_request {
    const char *method; /* "GET", "POST", ...; a HEAD arrives as GET, its body is left out on the way back */
    const char *path;   /* decoded, without the query */
    const char *body;   /* NUL after its end; NULL when there is none */
    size_t body_n;
    void *opaque; /* for the functions below */
};

/* A value by name, NULL when absent; valid during the handler. */
const char *tw_http_query(const struct tw_http_request *req, const char *name);
const char *tw_http_header(const struct tw_http_request *req, const char *name);

struct tw_http_reply {
    unsigned status;   /* 200 at the start */
    const char *type;  /* static; NULL: application/json */
    const char *etag;  /* static; NULL: not to be stored. A request that has it gets 304 */
    const char *allow; /* static: the methods, for 405 */
    const char *text;  /* static body; or */
    size_t text_n;
    struct tw_buf body; /* a body made for this answer, ceiling TW_HTTP_MAX_REPLY; the server frees it */
    bool stream;        /* body is the first message of the live stream; 503 when too many read it */
};

/* Answer an error as {"schema":"tokwatt.error/1","status":...,"error":"..."}. */
void tw_http_error(struct tw_http_reply *reply, unsigned status, const char *fmt, ...) TW_PRINTF(3, 4);

typedef void (*tw_http_handle_fn)(void *ctx, const struct tw_http_request *req, struct tw_http_reply *reply);

/* Listen on "ADDRESS:PORT" ("127.0.0.1:9477", "[::1]:0", "localhost:8000"); port 0 takes a free one.
 * TW_EPARSE, TW_EPERM (not a loopback address), TW_EIO (port taken, no such address), TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_http_listen(const char *listen, tw_http_handle_fn handle, void *ctx, struct tw_http_server **ret,
                           struct tw_why *why);
void tw_http_close(struct tw_http_server *srv); /* ends streams, waits for the thread; NULL is fine */
unsigned tw_http_port(const struct tw_http_server *srv);

/* Give n bytes to every reader of the stream, as one message. May be called from any thread but a handler.
 * TW_ENOMEM (nobody gets it) */
enum tw_err tw_http_broadcast(struct tw_http_server *srv, const char *bytes, size_t n);

/* Close connections that are past their deadline. Call it about once a second, from any thread but a handler.
 */
void tw_http_sweep(struct tw_http_server *srv);

struct tw_http_counts {
    uint64_t requests, refused; /* since the start; refused: by a rule or ceiling above */
    unsigned streams;
};
void tw_http_counts(struct tw_http_server *srv, struct tw_http_counts *ret);

#endif
