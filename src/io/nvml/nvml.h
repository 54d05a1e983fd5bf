/* SPDX-License-Identifier: Apache-2.0 */
/* io/nvml/nvml.h - NVIDIA GPUs through NVML, read and limited.
 *
 * What the source is configured with, after "nvml:", as words with commas between:
 *
 *   path=FILE       the library, or a folder that holds it (nvml_lib.h says where it is looked for otherwise)
 *   period=100ms    how often each GPU is read (10ms to 60s)
 *   deadline=2s     a GPU that has not answered for so long is shown as unread
 *   retry=1s        how often a driver that is gone, or a GPU that is lost, is looked for (then ever more
 *                   seldom, up to 32 times that)
 *   wait=0          1: opening succeeds without a driver, and its GPUs appear at a later describe()
 *   sysfs=/sys      where power states of PCI devices stand
 *
 * Every GPU has a thread of its own that reads it, so that one that hangs delays no other; read() hands out
 * what the threads have and never waits. One more thread looks after the driver: it opens the library, finds
 * the GPUs, and does both again when the driver is reloaded. A GPU keeps its place in describe() and read() for
 * as long as the source is open, also while it is lost; a new one is appended by describe().
 *
 * A thread whose reading costs more than a twentieth of the period reads more seldom, at the slowest once a
 * second. A GPU that the kernel has put to sleep is left asleep.
 *
 * energy_j counts from when the source was opened, reconciled (series/energy.h), so that it survives resets and
 * a float holds it. */
#ifndef TW_IO_NVML_H
#define TW_IO_NVML_H

#include "port/cap.h"
#include "port/source.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const struct tw_source_ops tw_nvml_source;

/* Writing. spec: path=, deadline= and wait= as above; "" with an open tw_nvml_source takes its library. A GPU
 * is named by UUID and by nothing else. Calls for different GPUs may come from different threads, and each GPU
 * has a thread of its own here too: a call that outlasts the deadline returns TW_EIO while it is still under
 * way in the driver, so the limit it asked for may yet come; until it is over, further calls for that GPU fail
 * at once. */
extern const struct tw_cap_ops tw_nvml_cap;

#define TW_NVML_STATE_MAP(X)                                                                                   \
    X(STARTING, "starting", "not read yet")                                                                    \
    X(OK, "ok", "is read")                                                                                     \
    X(STUCK, "stuck", "has not answered within the deadline")                                                  \
    X(LOST, "lost", "has fallen off the bus, or its driver is gone")                                           \
    X(ASLEEP, "asleep", "put to sleep by the kernel, and left so")                                             \
    X(RELEASED, "released", "its handle was given back on request")

enum tw_nvml_state {
#define TW_NVML_STATE_ENUM(id, name, help) TW_NVML_##id,
    TW_NVML_STATE_MAP(TW_NVML_STATE_ENUM)
#undef TW_NVML_STATE_ENUM
        TW_NVML_STATE_COUNT
};
extern const char *const tw_nvml_state_name[TW_NVML_STATE_COUNT];

#define TW_NVML_PIDS 8

/* What is known of one GPU beyond its channels, for doctor and for metrics. */
struct tw_nvml_info {
    enum tw_nvml_state state;
    char note[128];        /* the last trouble, "" when there was none */
    double power_window_s; /* power_w is a mean over this; 0 instant; NaN unknown */
    int mig, persistence;  /* 1 on, 0 off, -1 unknown */
    int n_pid;             /* processes that hold it; -1 unknown */
    unsigned pid[TW_NVML_PIDS];
    uint64_t xids; /* Xid events since the source was opened, and the last code */
    unsigned last_xid;
    unsigned energy_resets;
    double energy_ratio; /* counter over integral; NaN before a minute has passed */
    double cost_frac;    /* share of the time its thread spends in NVML, over the last second or so */
    double calls_per_s;  /* into NVML, likewise */
    double age_s;        /* of its last reading; NaN: none yet */
    double period_s;     /* between readings now */
};

struct tw_nvml_driver {
    char path[256], driver[80], nvml[80];
    int cuda;              /* 13000 for 13.0; 0 unknown */
    bool up;               /* the driver answers */
    char note[256];        /* why not */
    unsigned missing_gpus; /* that the driver counts and that nobody could identify yet */
    unsigned reloads;
};

/* gpu: a place in describe(). src: opened by tw_nvml_source. */
void tw_nvml_look(struct tw_source *src, size_t gpu, struct tw_nvml_info *ret);
void tw_nvml_look_driver(struct tw_source *src, struct tw_nvml_driver *ret);

/* Give all handles and the library back, for a GPU reset, a change of MIG mode or a driver upgrade; read() then
 * has nothing fresh. TW_EIO: a GPU is in a call that does not end; nothing was released. */
TW_MUST_USE
enum tw_err tw_nvml_release(struct tw_source *src, struct tw_why *why);
void tw_nvml_take(struct tw_source *src); /* and take them again */

#endif
