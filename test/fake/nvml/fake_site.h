/* SPDX-License-Identifier: Apache-2.0 */
/* fake_site.h - the plant behind the fake driver: one site, shared by all processes that name the same file.
 *
 * There is no server. The site, a simulated plant (lib/plant) with its faults, lies in a file that each process
 * maps at the same fixed address, so that the plant's own pointers hold in all of them. Whoever calls first
 * after some time moves the plant on to the boot clock's now, under a robust lock in the file: a process that
 * is killed in the middle hurts nobody. Without a file the site is the process's own.
 *
 *   TW_FAKE_NVML         the file; made when it is not there, and anew after a reboot
 *   TW_FAKE_NVML_CONF    for the one who makes it: "gpus=8,jobs=2,seed=1,noise=1"
 *   TW_FAKE_NVML_FAULTS  a text file of faults, read again when it changes (replace it by rename); without the
 *                        variable it is the file's name with ".faults" after it
 *
 * A line of the fault file is WHICH WHAT [ARGUMENT...]; "#" begins a comment. WHICH is *, an index or a UUID.
 * Faults hold as long as their line stands; events happen once each time a changed file is read.
 *
 *   reading   na CHANNEL...      the call is answered NOT_SUPPORTED
 *             blank CHANNEL...   success, with NVML's "not available" in the value
 *             zero CHANNEL...    success, with 0 in the value
 *             error CODE CHANNEL...  the call fails with that number
 *             frozen             all readings stand still
 *             lost               every call says GPU_IS_LOST
 *             stuck TIME         every call takes that long (ends early when the line goes)
 *             slow TIME          likewise, meant short
 *             nonsense           the range of limits is turned round
 *             mig                MIG mode is on: utilisation and GPM are NOT_SUPPORTED
 *             nopersist          persistence mode reads as off
 *             pid N [BYTES]      a process N holds that GPU
 *   writing   ignored            success, and the limit is not enforced (it reads back as requested)
 *             clamped WATTS      success, and no limit below is enforced
 *             denied             NO_PERMISSION
 *             slowwrite TIME     setting a limit takes that long, then happens
 *             stuckwrite TIME    likewise, and it ends with TIMEOUT and is not done
 *   events    reset              the energy counter begins again at 0
 *             xid N              an Xid event
 *             reload TIME        (WHICH is *) no driver for that long; then all handles are invalid, limits
 *                                are back at their default, energy counters at 0
 *             nodriver           (a fault, WHICH is *) the driver is not loaded
 *
 * CHANNEL: power, average, instant, energy, util, memory, temp, clocks, limit, range, enforced, reasons, gpm,
 * mig, persistence, fields (the batched call as a whole), identity, processes, or "all". */
#ifndef FAKE_SITE_H
#define FAKE_SITE_H

#include "plant/plant.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_GPU_MAX 64
#define FAKE_PID_MAX 8

#define FAKE_CHANNEL_MAP(X)                                                                                    \
    X(POWER, "power")                                                                                          \
    X(AVERAGE, "average")                                                                                      \
    X(INSTANT, "instant")                                                                                      \
    X(ENERGY, "energy")                                                                                        \
    X(UTIL, "util")                                                                                            \
    X(MEMORY, "memory")                                                                                        \
    X(TEMP, "temp")                                                                                            \
    X(CLOCKS, "clocks")                                                                                        \
    X(LIMIT, "limit")                                                                                          \
    X(RANGE, "range")                                                                                          \
    X(ENFORCED, "enforced")                                                                                    \
    X(REASONS, "reasons")                                                                                      \
    X(GPM, "gpm")                                                                                              \
    X(MIG, "mig")                                                                                              \
    X(PERSISTENCE, "persistence")                                                                              \
    X(FIELDS, "fields")                                                                                        \
    X(IDENTITY, "identity")                                                                                    \
    X(PROCESSES, "processes")                                                                                  \
    X(SET, "set")

enum fake_channel {
#define FAKE_CHANNEL_ENUM(id, name) FAKE_##id,
    FAKE_CHANNEL_MAP(FAKE_CHANNEL_ENUM)
#undef FAKE_CHANNEL_ENUM
        FAKE_CHANNEL_COUNT
};

/* What is wrong with a GPU while its lines stand. */
struct fake_fault {
    uint32_t na, blank, zero, error; /* bits by channel */
    int error_code;
    bool lost, nonsense, mig, nopersist, ignored, denied, frozen;
    double clamped_w; /* 0: not */
    int64_t call_us;  /* stuck or slow */
    int64_t write_us; /* likewise, of a write */
    bool write_fails;
    uint32_t n_pid;
    struct {
        uint32_t pid;
        uint64_t bytes;
    } pid[FAKE_PID_MAX];
};

/* Integrals since the site began: what a GPM sample remembers. */
struct fake_activity {
    double time_s, sm, tensor, dram;
};

struct fake_gpu {
    struct fake_fault fault;
    struct fake_activity activity;
    double energy_from_j; /* the counter's zero */
    uint64_t xid_seq;     /* events so far; the last code */
    uint32_t xid_code;
};

struct fake_site {
    char magic[16];
    uint64_t bytes;
    pthread_mutex_t lock; /* robust, shared */
    int64_t epoch_us;     /* boot time of plant time 0 */
    uint64_t generation;  /* of the driver: one more at each reload */
    int64_t off_until_us; /* boot time */
    bool nodriver;
    uint64_t control_stamp; /* of the fault file as last read */
    uint32_t n_gpu;
    struct fake_gpu gpu[FAKE_GPU_MAX];
    struct tw_board board;
    struct tw_plant *plant;
};

/* The site of this process; made or joined at the first call. NULL: it cannot be had (a line on standard error
 * says why: a test that sees none would look for long). */
struct fake_site *fake_site_get(void);
/* Lock, read the fault file if it changed, and move the plant to now. */
void fake_site_enter(struct fake_site *site);
void fake_site_leave(struct fake_site *site);
int64_t fake_boot_us(void);
bool fake_site_has_driver(const struct fake_site *site);
/* Take as long as the field says (0: nothing), unlocked, in slices, as long as the field stands. */
void fake_site_dawdle(struct fake_site *site, const int64_t *field_us);
void fake_uuid(uint32_t gpu, char *buf, size_t size);
void fake_pci(uint32_t gpu, char *buf, size_t size);

#endif
