/* SPDX-License-Identifier: Apache-2.0 */
/* http/http_int.h - what the files of this room share. */
#ifndef TW_HTTP_HTTP_INT_H
#define TW_HTTP_HTTP_INT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct MHD_Connection;
struct MHD_Response;

/* The live stream: messages that every reader gets, the newest first of all. Its functions are thread-safe,
 * except that broadcast and end may not be called from the server's own thread. */
struct tw_stream;
struct tw_stream *tw_stream_new(void);
void tw_stream_free(struct tw_stream *s); /* no reader may be left */
void tw_stream_end(struct tw_stream *s);  /* readers get their message to its end and are closed */
enum tw_err tw_stream_broadcast(struct tw_stream *s, const char *bytes, size_t n);
unsigned tw_stream_readers(struct tw_stream *s);

/* A response that feeds a new reader, whose first message is first[n]; NULL with *ret_full true when there are
 * too many, false when memory is out. */
struct MHD_Response *tw_stream_response(struct tw_stream *s, struct MHD_Connection *conn, const char *first,
                                        size_t n, bool *ret_full);

/* A listening socket on a loopback address, or -1 with err and why. */
int tw_http_socket(const char *listen, unsigned *ret_port, enum tw_err *ret_err, struct tw_why *why);

/* Does a Host header name a loopback address ("127.0.0.1:9477", "localhost", "[::1]:80")? */
bool tw_http_host_ok(const char *host);

/* Is origin "http://" + host, the value of an Origin header for a page of ours? */
bool tw_http_origin_ok(const char *origin, const char *host);

#endif
