/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a device by name, for one worker. */
#include "tokwatt-capd/devices.h"

#include <string.h>

struct place {
    const struct tw_capd_backend *backend;
    const char *spec;
};

static enum tw_err open_cap(void *ctx, struct tw_cap **ret, struct tw_why *why)
{
    const struct place *at = ctx;
    struct tw_source *source = NULL;
    enum tw_err err = TW_OK;
    if (at->backend->source) /* it lives as long as the process: a handle of the cap may rest on it */
        err = at->backend->source->open(at->spec, &source, why);
    if (err != TW_OK)
        return err;
    err = at->backend->cap->open(at->spec, source, ret, why);
    if (err != TW_OK && source)
        at->backend->source->close(source);
    return err;
}

enum tw_err tw_capd_device(const char *text, struct tw_worker_device *ret, struct tw_why *why)
{
    static struct place place; /* one configuration per process */
    size_t n = strcspn(text, ":");
    for (const struct tw_capd_backend *b = tw_capd_backend; b->cap; b++) {
        if (strlen(b->cap->name) == n && strncmp(b->cap->name, text, n) == 0) {
            place = (struct place){.backend = b, .spec = text[n] == ':' ? text + n + 1 : ""};
            *ret = (struct tw_worker_device){.ops = b->cap, .open = open_cap, .ctx = &place};
            return TW_OK;
        }
    }
    return tw_fail(why, TW_EINVAL, "no device is called \"%.*s\"; see tokwatt-capd(8)", (int)(n < 40 ? n : 40),
                   text);
}
