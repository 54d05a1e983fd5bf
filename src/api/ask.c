/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /v1/events. */
#include "api/ask.h"
#include "base/num.h"

#include <jansson.h>
#include <stddef.h>
#include <string.h>

static const struct field {
    const char *key;
    size_t offset;
    double low, high; /* low itself is allowed unless open */
    bool low_open, required;
    const char *range;
} fields[] = {
    {"cut_frac", offsetof(struct tw_api_ask, cut_frac), 0, 1, false, true, "a fraction from 0 to 1"},
    {"for_s", offsetof(struct tw_api_ask, for_s), 0, 7 * 86400.0, true, true,
     "seconds, above 0, at most 7 days"},
    {"in_s", offsetof(struct tw_api_ask, in_s), 0, 30 * 86400.0, false, false, "seconds, at most 30 days"},
};
enum { N_FIELD = sizeof fields / sizeof *fields };

static const struct field *field_of(const char *key)
{
    for (int i = 0; i < N_FIELD; i++)
        if (strcmp(fields[i].key, key) == 0)
            return &fields[i];
    return NULL;
}

static enum tw_err take(const struct field *f, const json_t *value, struct tw_api_ask *ask, struct tw_why *why)
{
    if (!json_is_number(value))
        return tw_fail(why, TW_EPARSE, "%s must be a number: %s", f->key, f->range);
    double v = json_number_value(value);
    if (!(f->low_open ? v > f->low : v >= f->low) || !(v <= f->high))
        return tw_fail(why, TW_ERANGE, "%s is %g; it must be %s", f->key, v, f->range);
    memcpy((char *)ask + f->offset, &v, sizeof v);
    return TW_OK;
}

enum tw_err tw_ask_parse(const char *body, size_t n, struct tw_api_ask *ret, struct tw_why *why)
{
    static const char example[] = "send {\"cut_frac\":0.3,\"for_s\":300}";
    if (!body || n == 0)
        return tw_fail(why, TW_EPARSE, "the body is empty; %s", example);
    json_error_t bad;
    json_t *top = json_loadb(body, n, JSON_REJECT_DUPLICATES, &bad);
    if (!top)
        return tw_fail(why, TW_EPARSE, "the body is not JSON (line %d: %s); %s", bad.line, bad.text, example);

    enum tw_err err = TW_OK;
    struct tw_api_ask ask = {0};
    const char *key;
    json_t *value;
    if (!json_is_object(top))
        err = tw_fail(why, TW_EPARSE, "the body is not an object; %s", example);
    json_object_foreach(top, key, value)
    {
        const struct field *f = field_of(key);
        if (err == TW_OK)
            err = f ? take(f, value, &ask, why)
                    : tw_fail(why, TW_EPARSE, "\"%.40s\" is not a key of an event; %s", key, example);
    }
    for (int i = 0; i < N_FIELD && err == TW_OK; i++)
        if (fields[i].required && !json_object_get(top, fields[i].key))
            err = tw_fail(why, TW_EPARSE, "%s is missing: %s", fields[i].key, fields[i].range);
    json_decref(top);
    if (err == TW_OK)
        *ret = ask;
    return err;
}

enum tw_err tw_ask_id(const char *text, uint32_t *ret, struct tw_why *why)
{
    int64_t id = 0;
    if (strspn(text, "0123456789") != strlen(text) || tw_num_i64(text, 0, UINT32_MAX, &id, NULL) != TW_OK)
        return tw_fail(why, TW_EPARSE, "\"%.40s\" is not the number of an event", text);
    *ret = (uint32_t)id;
    return TW_OK;
}
