/* SPDX-License-Identifier: Apache-2.0 */
/* The list of back ends. A new one is a line here and a folder beside this file. */
#include "io/registry.h"

#include "io/capd/viacapd.h"
#include "io/nvml/nvml.h"
#include "io/sim/sim.h"

#include <stdio.h>
#include <string.h>

const struct tw_backend tw_backend_table[] = {
    {&tw_sim_source, &tw_sim_cap},
    {&tw_nvml_source, &tw_nvml_cap},
};
const size_t tw_backend_count = sizeof tw_backend_table / sizeof *tw_backend_table;

static enum tw_err unknown(const char *name, size_t n, struct tw_why *why)
{
    char known[256] = "";
    for (size_t i = 0; i < tw_backend_count; i++) {
        char longer[sizeof known];
        (void)snprintf(longer, sizeof longer, "%.200s%s%.40s", known, i ? ", " : "",
                       tw_backend_table[i].source->name);
        memcpy(known, longer, sizeof known);
    }
    return tw_fail(why, TW_EINVAL, "no source is called \"%.*s\"; there is: %s", (int)(n < 40 ? n : 40), name,
                   known);
}

enum tw_err tw_device_open(const char *text, struct tw_device *ret, struct tw_why *why)
{
    size_t n = strcspn(text, ":");
    const char *spec = text[n] == ':' ? text + n + 1 : "";
    const struct tw_backend *b = NULL;
    for (size_t i = 0; i < tw_backend_count; i++)
        if (strlen(tw_backend_table[i].source->name) == n &&
            strncmp(tw_backend_table[i].source->name, text, n) == 0)
            b = &tw_backend_table[i];
    if (!b)
        return unknown(text, n, why);
    struct tw_device dev = {.source_ops = b->source, .cap_ops = b->cap};
    enum tw_err err = b->source->open(spec, &dev.source, why);
    if (err == TW_OK && b->cap)
        err = b->cap->open("", dev.source, &dev.cap, why);
    if (err != TW_OK) {
        tw_device_close(&dev);
        return err;
    }
    *ret = dev;
    return TW_OK;
}

enum tw_err tw_device_cap_through(struct tw_device *dev, const char *text, struct tw_why *why)
{
    const struct tw_cap_ops *ops = &tw_viacapd_cap;
    struct tw_cap *cap = NULL;
    size_t n = strcspn(text, ":");
    if (n != strlen(ops->name) || strncmp(text, ops->name, n) != 0)
        return tw_fail(why, TW_EINVAL, "limits can be written through \"%s\", not \"%.*s\"", ops->name,
                       (int)(n < 40 ? n : 40), text);
    enum tw_err err = ops->open(text[n] == ':' ? text + n + 1 : "", dev->source, &cap, why);
    if (err != TW_OK)
        return err;
    if (dev->cap_ops)
        dev->cap_ops->close(dev->cap);
    dev->cap_ops = ops;
    dev->cap = cap;
    return TW_OK;
}

void tw_device_close(struct tw_device *dev)
{
    if (!dev)
        return;
    if (dev->cap_ops)
        dev->cap_ops->close(dev->cap);
    if (dev->source_ops)
        dev->source_ops->close(dev->source);
    *dev = (struct tw_device){0};
}
