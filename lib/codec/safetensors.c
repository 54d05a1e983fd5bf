/* SPDX-License-Identifier: Apache-2.0 */
/* The header is a small part of JSON, read by descent: an object of objects with known keys. */
#include "codec/safetensors.h"

#include "base/jsonw.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct reader {
    const char *at, *end;
    const unsigned char *data;
    size_t n_data;
    struct tw_st *st;
    struct tw_why *why;
};

static enum tw_err bad(const struct reader *r, const char *what)
{
    return tw_fail(r->why, TW_EPARSE, "safetensors header: %s expected, %zu bytes before its end", what,
                   (size_t)(r->end - r->at));
}

static void blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
}

static bool next_is(struct reader *r, char c)
{
    blanks(r);
    if (r->at >= r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Four digits after \u, as UTF-8. Surrogates and NUL are refused. Returns bytes written, 0 on failure. */
static size_t unicode(struct reader *r, char out[static 3])
{
    unsigned u = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        const int d = r->at < r->end ? hex(*r->at) : -1;
        if (d < 0)
            return 0;
        u = u * 16 + (unsigned)d;
    }
    if (u == 0 || (u >= 0xd800 && u < 0xe000))
        return 0;
    if (u < 0x80) {
        out[0] = (char)u;
        return 1;
    }
    if (u < 0x800) {
        out[0] = (char)(0xc0 | (u >> 6));
        out[1] = (char)(0x80 | (u & 0x3f));
        return 2;
    }
    out[0] = (char)(0xe0 | (u >> 12));
    out[1] = (char)(0x80 | ((u >> 6) & 0x3f));
    out[2] = (char)(0x80 | (u & 0x3f));
    return 3;
}

/* A string, unescaped into the text of st. */
static enum tw_err string(struct reader *r, const char **ret)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char *out = r->st->text + r->st->text_used, *start = out;
    const char *limit = r->st->text + sizeof r->st->text - 4;
    if (!next_is(r, '"'))
        return bad(r, "a string");
    while (r->at < r->end && *r->at != '"') {
        if (out >= limit)
            return tw_fail(r->why, TW_ELIMIT, "safetensors header: over %u bytes of names and metadata",
                           TW_ST_TEXT_MOST);
        if ((unsigned char)*r->at < 0x20)
            return bad(r, "no control character in a string");
        if (*r->at != '\\') {
            *out++ = *r->at++;
            continue;
        }
        r->at++;
        const char *which = r->at < r->end && *r->at ? strchr(from, *r->at) : NULL;
        if (which) {
            *out++ = to[which - from];
            r->at++;
        } else if (r->at < r->end && *r->at == 'u') {
            r->at++;
            const size_t n = unicode(r, out);
            if (n == 0)
                return bad(r, "a character after \\u");
            out += n;
        } else {
            return bad(r, "a known escape");
        }
    }
    if (!next_is(r, '"'))
        return bad(r, "the end of a string");
    *out++ = '\0';
    r->st->text_used = (size_t)(out - r->st->text);
    *ret = start;
    return TW_OK;
}

static enum tw_err whole(struct reader *r, uint64_t *ret)
{
    uint64_t v = 0;
    blanks(r);
    if (r->at >= r->end || *r->at < '0' || *r->at > '9')
        return bad(r, "a whole number");
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        if (v > (UINT64_MAX - 9) / 10)
            return bad(r, "a number below 2^64");
        v = v * 10 + (uint64_t)(*r->at - '0');
    }
    *ret = v;
    return TW_OK;
}

static enum tw_err wholes(struct reader *r, uint64_t *ret, size_t most, size_t *ret_n)
{
    size_t n = 0;
    if (!next_is(r, '['))
        return bad(r, "[");
    if (next_is(r, ']')) {
        *ret_n = 0;
        return TW_OK;
    }
    do {
        if (n == most)
            return bad(r, "fewer numbers");
        enum tw_err err = whole(r, &ret[n++]);
        if (err != TW_OK)
            return err;
    } while (next_is(r, ','));
    if (!next_is(r, ']'))
        return bad(r, "]");
    *ret_n = n;
    return TW_OK;
}

/* Size, place and values of an array whose header was read. */
static enum tw_err place(struct reader *r, struct tw_st_tensor *t, const uint64_t *dim, const uint64_t *offset)
{
    uint64_t n = 1;
    for (size_t i = 0; i < t->n_dim; i++) {
        if (dim[i] != 0 && n > (r->n_data / sizeof(float)) / dim[i])
            return tw_fail(r->why, TW_EPARSE, "safetensors: \"%.40s\" is larger than the file", t->name);
        n *= dim[i];
        t->dim[i] = (size_t)dim[i];
    }
    if (!(offset[0] <= offset[1] && offset[1] <= r->n_data))
        return tw_fail(r->why, TW_EPARSE, "safetensors: \"%.40s\" lies beyond the end of the file: cut short?",
                       t->name);
    if (offset[1] - offset[0] != n * sizeof(float))
        return tw_fail(r->why, TW_EPARSE, "safetensors: \"%.40s\" has %llu bytes, its shape needs %llu",
                       t->name, (unsigned long long)(offset[1] - offset[0]),
                       (unsigned long long)(n * sizeof(float)));
    t->n = (size_t)n;
    t->data = r->data + offset[0];
    for (size_t i = 0; i < r->st->n_tensor; i++) {
        const struct tw_st_tensor *o = &r->st->tensor[i];
        if (o->data < t->data + 4 * t->n && t->data < o->data + 4 * o->n)
            return tw_fail(r->why, TW_EPARSE, "safetensors: \"%.40s\" and \"%.40s\" overlap", o->name, t->name);
        if (strcmp(o->name, t->name) == 0)
            return tw_fail(r->why, TW_EPARSE, "safetensors: \"%.40s\" is there twice", t->name);
    }
    for (size_t i = 0; i < t->n; i++) {
        float x;
        memcpy(&x, t->data + 4 * i, sizeof x);
        if (!isfinite(x))
            return tw_fail(r->why, TW_ERANGE, "safetensors: \"%.40s\" holds a value that is no number",
                           t->name);
    }
    return TW_OK;
}

static enum tw_err tensor(struct reader *r, const char *name)
{
    struct tw_st_tensor t = {.name = name};
    uint64_t dim[TW_ST_DIMS_MOST] = {0}, offset[2] = {0};
    size_t n_offset = 0;
    bool has_shape = false, has_type = false;
    if (r->st->n_tensor == TW_ST_TENSORS_MOST)
        return tw_fail(r->why, TW_ELIMIT, "safetensors: more than %d arrays", TW_ST_TENSORS_MOST);
    if (!next_is(r, '{'))
        return bad(r, "{");
    do {
        const char *key = "", *type = "";
        enum tw_err err = string(r, &key);
        if (err == TW_OK && !next_is(r, ':'))
            err = bad(r, ":");
        if (err != TW_OK)
            return err;
        if (strcmp(key, "dtype") == 0) {
            err = string(r, &type);
            if (err == TW_OK && strcmp(type, "F32") != 0)
                return tw_fail(r->why, TW_EUNSUPPORTED,
                               "safetensors: \"%.40s\" is of type %.8s, F32 was expected", name, type);
            has_type = true;
        } else if (strcmp(key, "shape") == 0) {
            err = wholes(r, dim, TW_ST_DIMS_MOST, &t.n_dim);
            has_shape = true;
        } else if (strcmp(key, "data_offsets") == 0) {
            err = wholes(r, offset, 2, &n_offset);
        } else {
            return bad(r, "dtype, shape or data_offsets");
        }
        if (err != TW_OK)
            return err;
    } while (next_is(r, ','));
    if (!next_is(r, '}') || !has_shape || !has_type || n_offset != 2)
        return bad(r, "dtype, shape and data_offsets of an array");
    enum tw_err err = place(r, &t, dim, offset);
    if (err == TW_OK)
        r->st->tensor[r->st->n_tensor++] = t;
    return err;
}

static enum tw_err metadata(struct reader *r)
{
    if (!next_is(r, '{'))
        return bad(r, "{");
    if (next_is(r, '}'))
        return TW_OK;
    do {
        struct tw_st_meta m = {NULL, NULL};
        if (r->st->n_meta == TW_ST_META_MOST)
            return tw_fail(r->why, TW_ELIMIT, "safetensors: more than %d metadata entries", TW_ST_META_MOST);
        enum tw_err err = string(r, &m.key);
        if (err == TW_OK && !next_is(r, ':'))
            err = bad(r, ":");
        if (err == TW_OK)
            err = string(r, &m.value);
        if (err != TW_OK)
            return err;
        r->st->meta[r->st->n_meta++] = m;
    } while (next_is(r, ','));
    return next_is(r, '}') ? TW_OK : bad(r, "}");
}

static enum tw_err header(struct reader *r)
{
    if (!next_is(r, '{'))
        return bad(r, "{");
    if (!next_is(r, '}')) {
        do {
            const char *name = NULL;
            enum tw_err err = string(r, &name);
            if (err == TW_OK && !next_is(r, ':'))
                err = bad(r, ":");
            if (err == TW_OK)
                err = strcmp(name, "__metadata__") == 0 ? metadata(r) : tensor(r, name);
            if (err != TW_OK)
                return err;
        } while (next_is(r, ','));
        if (!next_is(r, '}'))
            return bad(r, "}");
    }
    blanks(r);
    return r->at == r->end ? TW_OK : bad(r, "nothing more");
}

enum tw_err tw_st_read(const void *bytes, size_t n, struct tw_st *ret, struct tw_why *why)
{
    const unsigned char *p = bytes;
    uint64_t length = 0;
    if (n < 8)
        return tw_fail(why, TW_EPARSE, "not a safetensors file: %zu bytes, at least 8 were expected", n);
    for (int i = 7; i >= 0; i--)
        length = length << 8 | p[i];
    if (length > TW_ST_HEADER_MOST)
        return tw_fail(why, TW_EPARSE,
                       "not a safetensors file, or damaged: its header claims %llu bytes, at most %u",
                       (unsigned long long)length, TW_ST_HEADER_MOST);
    if (length > n - 8)
        return tw_fail(why, TW_EPARSE, "cut short: the header claims %llu bytes, %zu are there",
                       (unsigned long long)length, n - 8);
    ret->n_tensor = ret->n_meta = ret->text_used = 0;
    struct reader r = {.at = (const char *)p + 8,
                       .end = (const char *)p + 8 + length,
                       .data = p + 8 + length,
                       .n_data = n - 8 - (size_t)length,
                       .st = ret,
                       .why = why};
    return header(&r);
}

const struct tw_st_tensor *tw_st_find(const struct tw_st *st, const char *name)
{
    for (size_t i = 0; i < st->n_tensor; i++)
        if (strcmp(st->tensor[i].name, name) == 0)
            return &st->tensor[i];
    return NULL;
}

const char *tw_st_meta(const struct tw_st *st, const char *key)
{
    for (size_t i = 0; i < st->n_meta; i++)
        if (strcmp(st->meta[i].key, key) == 0)
            return st->meta[i].value;
    return NULL;
}

void tw_st_copy(const struct tw_st_tensor *t, float *ret)
{
    memcpy(ret, t->data, t->n * sizeof *ret);
}

/* ---- writing ---- */

struct sink {
    unsigned char *out;
    size_t cap, n;
};

static enum tw_err put(void *ctx, const char *bytes, size_t n)
{
    struct sink *s = ctx;
    if (s->out) {
        if (n > s->cap - s->n)
            return TW_ELIMIT;
        memcpy(s->out + s->n, bytes, n);
    }
    s->n += n;
    return TW_OK;
}

enum tw_err tw_st_write(const struct tw_st *st, void *out, size_t cap, size_t *ret_n, struct tw_why *why)
{
    static const char blank[8] = "        ";
    struct sink s = {.out = out, .cap = cap};
    struct tw_jsonw w;
    enum tw_err err = put(&s, blank, 8); /* the length, filled in below */
    tw_jsonw_init(&w, put, &s, false);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_object(&w, "__metadata__");
    for (size_t i = 0; i < st->n_meta; i++)
        tw_jsonw_str(&w, st->meta[i].key, st->meta[i].value);
    tw_jsonw_end(&w);
    int64_t at = 0;
    for (size_t i = 0; i < st->n_tensor; i++) {
        const struct tw_st_tensor *t = &st->tensor[i];
        tw_jsonw_object(&w, t->name);
        tw_jsonw_str(&w, "dtype", "F32");
        tw_jsonw_array(&w, "shape");
        for (size_t d = 0; d < t->n_dim; d++)
            tw_jsonw_i64(&w, NULL, (int64_t)t->dim[d]);
        tw_jsonw_end(&w);
        tw_jsonw_array(&w, "data_offsets");
        tw_jsonw_i64(&w, NULL, at);
        at += (int64_t)(t->n * sizeof(float));
        tw_jsonw_i64(&w, NULL, at);
        tw_jsonw_end(&w);
        tw_jsonw_end(&w);
    }
    tw_jsonw_end(&w);
    if (err == TW_OK)
        err = w.err;
    if (err == TW_OK && s.n % 8 != 0)
        err = put(&s, blank, 8 - s.n % 8);
    const uint64_t length = s.n - 8;
    for (size_t i = 0; err == TW_OK && i < st->n_tensor; i++)
        err = put(&s, (const char *)st->tensor[i].data, st->tensor[i].n * sizeof(float));
    if (err != TW_OK || length > TW_ST_HEADER_MOST)
        return tw_fail(why, TW_ELIMIT, "the model file is larger than the %zu bytes that were set aside", cap);
    for (size_t i = 0; s.out && i < 8; i++)
        s.out[i] = (unsigned char)(length >> (8 * i));
    *ret_n = s.n;
    return TW_OK;
}
