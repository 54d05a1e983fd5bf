/* SPDX-License-Identifier: Apache-2.0 */
/* port/cap.h - what a back end that writes power limits fills in.
 *
 * Nothing is believed until read back: write, then read, then look at the measured power. A GPU is named by
 * UUID; no call takes an index. */
#ifndef TW_PORT_CAP_H
#define TW_PORT_CAP_H

#include "base/err.h"

#include <stdbool.h>

#define TW_CAP_ABI 1

struct tw_cap; /* the back end's own */
struct tw_source;

struct tw_cap_ops {
    unsigned abi;
    const char *name;

    /* source: the open source of the same back end (io/registry.h pairs them), for a back end whose devices
     * live in it, as a simulation's do; others leave it alone. It must outlive the handle. */
    enum tw_err (*open)(const char *spec, struct tw_source *source, struct tw_cap **ret, struct tw_why *why);
    void (*close)(struct tw_cap *cap); /* NULL is fine */
    /* Ask for a limit. TW_ERANGE outside what the device accepts, TW_EPERM, TW_ENOENT (no such GPU), TW_EIO.
     * That the call returned says nothing about when, or whether, the limit is enforced: read it back later. */
    enum tw_err (*write)(struct tw_cap *cap, const char *uuid, double limit_w, struct tw_why *why);
    /* What was asked for and what the device enforces, read from it now. */
    enum tw_err (*read)(struct tw_cap *cap, const char *uuid, double *ret_requested_w, double *ret_enforced_w,
                        struct tw_why *why);
    /* MAY be NULL: the back end keeps no value found. Give the GPU back. room: the budget leaves room for the
     * value that was found on it, which is then put back; without room it goes to its safe value, and the value
     * found follows when somebody allows it. TW_OK for a GPU that was never written. */
    enum tw_err (*release)(struct tw_cap *cap, const char *uuid, bool room, struct tw_why *why);
};

#endif
