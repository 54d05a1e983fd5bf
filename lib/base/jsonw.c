/* SPDX-License-Identifier: Apache-2.0 */
/* A streaming JSON writer. */
#include "base/jsonw.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct tw_jsonw *w, const char *bytes, size_t n)
{
    if (w->err == TW_OK && n > 0)
        w->err = w->put(w->ctx, bytes, n);
}

static void puts_(struct tw_jsonw *w, const char *s)
{
    put(w, s, strlen(s));
}

static void newline(struct tw_jsonw *w)
{
    if (!w->pretty)
        return;
    puts_(w, "\n");
    for (unsigned i = 0; i < w->depth; i++)
        puts_(w, "  ");
}

static void quoted(struct tw_jsonw *w, const char *text)
{
    puts_(w, "\"");
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        size_t n = tw_utf8_len(s);
        char esc[8];
        if (n == 0) {
            puts_(w, "\\ufffd");
            s++;
        } else if (*s == '"' || *s == '\\') {
            esc[0] = '\\';
            esc[1] = (char)*s++;
            put(w, esc, 2);
        } else if (*s == '\n') {
            puts_(w, "\\n");
            s++;
        } else if (*s == '\t') {
            puts_(w, "\\t");
            s++;
        } else if (*s < 0x20) {
            (void)snprintf(esc, sizeof esc, "\\u%04x", *s++);
            put(w, esc, 6);
        } else {
            put(w, (const char *)s, n);
            s += n;
        }
    }
    puts_(w, "\"");
}

/* Comma, newline and key before a value. */
static void lead(struct tw_jsonw *w, const char *key)
{
    if (w->depth == 0)
        return;
    unsigned d = w->depth - 1;
    assert(w->is_array[d] == (key == NULL));
    if (w->has_item[d])
        puts_(w, ",");
    w->has_item[d] = true;
    newline(w);
    if (key) {
        quoted(w, key);
        puts_(w, w->pretty ? ": " : ":");
    }
}

static void open_(struct tw_jsonw *w, const char *key, bool is_array)
{
    lead(w, key);
    assert(w->depth < TW_JSONW_DEPTH);
    w->has_item[w->depth] = false;
    w->is_array[w->depth] = is_array;
    w->depth++;
    puts_(w, is_array ? "[" : "{");
}

void tw_jsonw_init(struct tw_jsonw *w, tw_sink_fn sink, void *ctx, bool pretty)
{
    *w = (struct tw_jsonw){.put = sink, .ctx = ctx, .pretty = pretty};
}

void tw_jsonw_object(struct tw_jsonw *w, const char *key)
{
    open_(w, key, false);
}

void tw_jsonw_array(struct tw_jsonw *w, const char *key)
{
    open_(w, key, true);
}

void tw_jsonw_end(struct tw_jsonw *w)
{
    assert(w->depth > 0);
    w->depth--;
    if (w->has_item[w->depth])
        newline(w);
    puts_(w, w->is_array[w->depth] ? "]" : "}");
    if (w->depth == 0)
        puts_(w, "\n");
}

void tw_jsonw_str(struct tw_jsonw *w, const char *key, const char *value)
{
    lead(w, key);
    if (value)
        quoted(w, value);
    else
        puts_(w, "null");
}

void tw_jsonw_num(struct tw_jsonw *w, const char *key, double value, int digits)
{
    lead(w, key);
    if (!isfinite(value)) {
        puts_(w, "null");
        return;
    }
    char buf[336]; /* the longest a %.*g can get */
    (void)snprintf(buf, sizeof buf, "%.*g", digits, value);
    puts_(w, strcmp(buf, "-0") == 0 ? "0" : buf);
}

void tw_jsonw_f64(struct tw_jsonw *w, const char *key, double value)
{
    char buf[40];
    int digits = 15;
    if (isfinite(value))
        for (; digits < 17; digits++) {
            (void)snprintf(buf, sizeof buf, "%.*g", digits, value);
            if (!(strtod(buf, NULL) < value) && !(strtod(buf, NULL) > value))
                break;
        }
    tw_jsonw_num(w, key, value, digits);
}

void tw_jsonw_i64(struct tw_jsonw *w, const char *key, int64_t value)
{
    lead(w, key);
    char buf[24];
    (void)snprintf(buf, sizeof buf, "%lld", (long long)value);
    puts_(w, buf);
}

void tw_jsonw_bool(struct tw_jsonw *w, const char *key, bool value)
{
    lead(w, key);
    puts_(w, value ? "true" : "false");
}

void tw_jsonw_null(struct tw_jsonw *w, const char *key)
{
    lead(w, key);
    puts_(w, "null");
}
