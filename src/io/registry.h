/* SPDX-License-Identifier: Apache-2.0 */
/* io/registry.h - the back ends there are, and opening one by what the configuration says.
 *
 * "NAME" or "NAME:SPEC", as in "sim:seed=7,gpus=64". A back end that can write limits hands out both tables,
 * opened on the same devices. */
#ifndef TW_IO_REGISTRY_H
#define TW_IO_REGISTRY_H

#include "base/err.h"
#include "port/cap.h"
#include "port/source.h"

#include <stddef.h>

struct tw_backend {
    const struct tw_source_ops *source;
    const struct tw_cap_ops *cap; /* NULL: it only reads */
};

extern const struct tw_backend tw_backend_table[]; /* [tw_backend_count] */
extern const size_t tw_backend_count;

struct tw_device {
    const struct tw_source_ops *source_ops;
    struct tw_source *source;
    const struct tw_cap_ops *cap_ops; /* NULL, as cap: it only reads */
    struct tw_cap *cap;
};

/* TW_EINVAL: no back end of that name (why lists those there are), or a spec that it refuses. Else what its
 * open says. */
TW_MUST_USE
enum tw_err tw_device_open(const char *text, struct tw_device *ret, struct tw_why *why);
/* Let the limits of an open device be written by another back end from now on: "capd" or "capd:SPEC", the
 * privileged helper (io/capd/viacapd.h). dev is untouched on failure. */
TW_MUST_USE
enum tw_err tw_device_cap_through(struct tw_device *dev, const char *text, struct tw_why *why);
void tw_device_close(struct tw_device *dev); /* NULL, and one that was never opened but zeroed, are fine */

#endif
