/* SPDX-License-Identifier: Apache-2.0 */
/* sys/buf.h - text that grows on the heap up to a ceiling.
 *
 * A failed put is remembered in err and the rest does nothing, so that it is looked at once, at the end. After
 * a put that went well data[n] is NUL. */
#ifndef TW_SYS_BUF_H
#define TW_SYS_BUF_H

#include "base/err.h"

#include <stddef.h>

struct tw_buf {
    char *data; /* NULL until something was put */
    size_t n, room, max;
    enum tw_err err; /* TW_ENOMEM, TW_ELIMIT */
};

void tw_buf_init(struct tw_buf *b, size_t max_bytes);
void tw_buf_done(struct tw_buf *b);  /* NULL is fine */
void tw_buf_reset(struct tw_buf *b); /* empty, memory kept */
enum tw_err tw_buf_put(struct tw_buf *b, const void *bytes, size_t n);
enum tw_err tw_buf_puts(struct tw_buf *b, const char *s);
enum tw_err tw_buf_printf(struct tw_buf *b, const char *fmt, ...) TW_PRINTF(2, 3);

/* A tw_sink_fn for tw_jsonw_init; ctx is the struct tw_buf. */
enum tw_err tw_buf_sink(void *ctx, const char *bytes, size_t n);

#endif
