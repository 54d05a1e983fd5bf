/* SPDX-License-Identifier: Apache-2.0 */
/* io/nvml/nvml_read.h - one GPU's readings, out of NVML's units into ours.
 *
 * Used by one thread at a time, without locks. Each value is taken only after its own status was looked at;
 * NVML's blanks, zeros that cannot be and values out of a channel's bounds are NaN. "Not supported" is believed
 * after it was said three times, and asked again a minute later; any other failure is a passing one.
 *
 * A pass is quick (power, energy: one batched call where the driver has it), and once a second whole (the rest,
 * limits included), and every ten seconds also rare (persistence and MIG mode, processes). Values of the last
 * whole pass stand in the quick ones after it. */
#ifndef TW_IO_NVML_READ_H
#define TW_IO_NVML_READ_H

#include "io/nvml/nvml_lib.h"
#include "series/channel.h"
#include "series/energy.h"

#include <stdbool.h>
#include <stdint.h>

#define NV_PID_MAX 8

/* What can be asked of a GPU, each with its own memory of refusals. */
enum nv_feature {
    NV_F_FIELDS,
    NV_F_AVERAGE,
    NV_F_INSTANT,
    NV_F_FIELD_ENERGY,
    NV_F_POWER,
    NV_F_ENERGY,
    NV_F_UTIL,
    NV_F_MEMORY_V2,
    NV_F_MEMORY,
    NV_F_TEMP_V,
    NV_F_TEMP,
    NV_F_CLOCK_SM,
    NV_F_CLOCK_MEM,
    NV_F_REASONS,
    NV_F_LIMIT,
    NV_F_ENFORCED,
    NV_F_RANGE,
    NV_F_DEFAULT,
    NV_F_MIG,
    NV_F_PERSISTENCE,
    NV_F_PROCESSES,
    NV_F_GPM,
    NV_F_COUNT
};

struct nv_refusals {
    unsigned in_a_row;
    int64_t again_us;
};

struct nv_reading {
    int64_t time_us; /* boot clock, when power was read; 0: never */
    bool repeat;     /* the sensor has not moved since the reading before */
    float ch[TW_CH_COUNT];
    double limit_min_w, limit_max_w, limit_default_w; /* NaN: unknown, or the range was nonsense */
    double power_window_s; /* over which power_w is a mean; 0: instant; NaN: unknown */
    int mig, persistence;  /* 1 on, 0 off, -1 unknown */
    int n_pid;             /* processes that hold the GPU; -1 unknown */
    unsigned pid[NV_PID_MAX];
};

struct nv_gpu {
    struct nv_lib lib; /* a copy: it must outlive a thread that hangs in it */
    struct nv_device *dev;
    double usage_window_s; /* of nvmlDeviceGetPowerUsage: 0 on GA100 and before Ampere, else 1; NaN unknown */
    struct nv_refusals refusals[NV_F_COUNT];
    struct tw_energy energy;
    double seen_counter_j, seen_power_w, seen_instant_w; /* of the last pass, for repeats */
    int64_t moved_us;                                    /* when one of them last changed */
    struct nv_gpm_sample *gpm_old, *gpm_new;
    bool gpm_has_old;
    int64_t whole_us, rare_us; /* of the last such pass; 0: never */
    unsigned calls;            /* into the library, so far */
    struct nv_reading now;
};

/* Begin with a handle just taken. What was known of the device (energy total, counters) is kept when it is the
 * same struct again; memory that is all zero is a fresh one. */
void nv_gpu_take(struct nv_gpu *g, const struct nv_lib *lib, struct nv_device *dev);
/* Give the samples back to the library, which must still be loaded. */
void nv_gpu_drop(struct nv_gpu *g);

/* One pass at boot time now_us. Returns NV_OK, or the number that says that device or driver is gone (then
 * g->now keeps what it had). Fills g->now. */
int nv_gpu_pass(struct nv_gpu *g, int64_t now_us);

#endif
