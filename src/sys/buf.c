/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows up to a ceiling. */
#include "sys/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tw_buf_init(struct tw_buf *b, size_t max_bytes)
{
    *b = (struct tw_buf){.max = max_bytes};
}

void tw_buf_done(struct tw_buf *b)
{
    if (!b)
        return;
    free(b->data);
    *b = (struct tw_buf){.max = b->max};
}

void tw_buf_reset(struct tw_buf *b)
{
    b->n = 0;
    b->err = TW_OK;
}

/* Room for n more bytes and a NUL. */
static enum tw_err reserve(struct tw_buf *b, size_t n)
{
    if (b->err != TW_OK)
        return b->err;
    if (n > b->max || b->n > b->max - n)
        return b->err = TW_ELIMIT;
    size_t need = b->n + n + 1;
    if (need <= b->room)
        return TW_OK;
    size_t room = b->room ? b->room : 1024;
    while (room < need)
        room *= 2;
    char *data = realloc(b->data, room);
    if (!data)
        return b->err = TW_ENOMEM;
    b->data = data;
    b->room = room;
    return TW_OK;
}

enum tw_err tw_buf_put(struct tw_buf *b, const void *bytes, size_t n)
{
    if (reserve(b, n) != TW_OK)
        return b->err;
    if (n > 0)
        memcpy(b->data + b->n, bytes, n);
    b->n += n;
    b->data[b->n] = '\0';
    return TW_OK;
}

enum tw_err tw_buf_puts(struct tw_buf *b, const char *s)
{
    return tw_buf_put(b, s, strlen(s));
}

enum tw_err tw_buf_printf(struct tw_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && reserve(b, (size_t)n) == TW_OK) {
        (void)vsnprintf(b->data + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
    return b->err;
}

enum tw_err tw_buf_sink(void *ctx, const char *bytes, size_t n)
{
    return tw_buf_put(ctx, bytes, n);
}
