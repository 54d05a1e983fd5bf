/* SPDX-License-Identifier: Apache-2.0 */
/* plant/plant.h - a simulated site: GPUs, the jobs on them, time.
 *
 * Time runs in ticks of 0.1 s and only when tw_plant_advance is called. Everything follows from the seed: two
 * plants of one configuration that are advanced alike give the same bytes, and the random numbers drawn do not
 * depend on the caps, so that two policies can be compared on the same noise. Memory is the caller's arena;
 * nothing is allocated after tw_plant_new. One thread.
 *
 * A GPU chooses the highest clock whose power stays under its limit (board.h); power follows a new limit with a
 * time constant. Sensors: instant power of the last tick, the mean of the last second, an energy counter that
 * integrates true power. A job runs iterations (work, then an exposed synchronisation at low power), pauses for
 * evaluation and checkpoints, or serves a load that varies. Jobs in lock step go at the speed of their slowest
 * GPU; the others wait.
 *
 * What a policy may see is a reading. tw_plant_truth is for reports and oracles. */
#ifndef TW_PLANT_PLANT_H
#define TW_PLANT_PLANT_H

#include "base/arena.h"
#include "base/err.h"
#include "plant/board.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_PLANT_TICK_US INT64_C(100000)
#define TW_PLANT_GPU_MAX 8192
#define TW_PLANT_NONE UINT32_MAX

/* A phase that comes back: evaluation, checkpoint. */
struct tw_plant_pause {
    double every_s; /* between starts, +- 10 %; 0: never */
    double last_s;  /* +- 20 % */
    double act;     /* activity of its GPUs meanwhile, of full work; no progress is made */
};

struct tw_plant_job {
    char name[64];
    char unit[24];
    uint32_t n_gpu;
    bool lockstep;
    double weight; /* worth of one unit against that of other jobs */
    double rate;   /* units/s of one GPU at work at the top clock */
    struct tw_work work;
    double iter_s;    /* one iteration at the top clock; 0: no rhythm */
    double sync_frac; /* share of it that is exposed synchronisation, which no clock shortens */
    double sync_act;  /* activity during it */
    struct tw_plant_pause eval, checkpoint;
    double start_s, end_s; /* site time; end_s 0: never ends. Before and after, its GPUs are idle */
    double warm_s;         /* after the start: little activity, no progress */
    double
        load_mean; /* of a serving job: offered load, of what one GPU gives at the top clock; 0: no serving */
    double load_swing, load_period_s;                            /* slow sine around it */
    double sm_active_frac, tensor_active_frac, dram_active_frac; /* at work, when the term in question limits */
    double mem_used_bytes;
};

struct tw_plant_conf {
    uint64_t seed;
    const struct tw_board *board;
    const struct tw_plant_job *job; /* [n_job], borrowed for tw_plant_new only, but for work.point */
    uint32_t n_job;
    uint32_t n_gpu; /* jobs take theirs in order; the rest idle. 1 .. TW_PLANT_GPU_MAX */
    double noise;   /* 1: as described in the guide; 0: none */
};

/* What can be wrong with a GPU. */
#define TW_PLANT_FAULT_MAP(X)                                                                                  \
    X(NONE, "none", "works")                                                                                   \
    X(STUCK, "stuck", "cannot be read: its last reading stands and is not fresh")                              \
    X(IGNORE, "ignore", "takes a limit without an error and does not enforce it")                              \
    X(CLAMP, "clamp", "enforces no limit below a given one")

enum tw_plant_fault {
#define TW_PLANT_FAULT_ENUM(id, ...) TW_PLANT_FAULT_##id,
    TW_PLANT_FAULT_MAP(TW_PLANT_FAULT_ENUM)
#undef TW_PLANT_FAULT_ENUM
        TW_PLANT_FAULT_COUNT
};

extern const char *const tw_plant_fault_name[TW_PLANT_FAULT_COUNT];

#define TW_THROTTLE_IDLE 0x1U /* as NVML numbers its reasons */
#define TW_THROTTLE_POWER_CAP 0x4U

/* As a driver reports: rounded to mW, mJ, whole percent (1e-4 for the three _active_), MHz and degrees. */
struct tw_plant_reading {
    int64_t time_us; /* of the reading: site time, or when it got stuck */
    bool fresh;
    double power_w;         /* mean of the last second */
    double power_instant_w; /* mean of the last tick */
    double energy_j;        /* since the plant began */
    double cap_w, cap_enforced_w;
    double sm_active_frac, tensor_active_frac, dram_active_frac, util_frac,
        mem_copy_util_frac; /* last second */
    double mem_used_bytes, sm_clock_hz, mem_clock_hz, temp_c;
    uint32_t throttle_bits;
};

struct tw_plant; /* opaque */

/* The default mix, stretched over n_gpu GPUs: ten kinds of jobs, taken again from the first when n_job is more;
 * sizes in proportion to those for 64 GPUs (16, 3 x 8, 6 x 4), at least one GPU each.
 *
 *   ret_job  [n_job]
 *
 * TW_EINVAL  n_gpu or n_job is 0, or more jobs than GPUs */
TW_MUST_USE
enum tw_err tw_plant_default_jobs(uint32_t n_gpu, uint32_t n_job, struct tw_plant_job *ret_job,
                                  struct tw_why *why);

/* Memory that tw_plant_new takes out of an arena. */
size_t tw_plant_bytes(uint32_t n_gpu, uint32_t n_job);

/* A plant at time 0, limits at the board's default. It lives in the arena and needs no taking down.
 * TW_EINVAL with the job or field at fault, TW_ENOMEM when the arena is too small */
TW_MUST_USE
enum tw_err tw_plant_new(struct tw_arena *arena, const struct tw_plant_conf *conf, struct tw_plant **ret,
                         struct tw_why *why);

/* Let time pass, to the last whole tick at or before now + dt_us; what is left is kept for the next call. */
void tw_plant_advance(struct tw_plant *plant, int64_t dt_us);
int64_t tw_plant_now_us(const struct tw_plant *plant);
uint32_t tw_plant_gpus(const struct tw_plant *plant);
uint32_t tw_plant_jobs(const struct tw_plant *plant);

/* gpu < tw_plant_gpus in all that follows, job < tw_plant_jobs. */
void tw_plant_read(const struct tw_plant *plant, uint32_t gpu, struct tw_plant_reading *ret);
uint32_t tw_plant_job_of(const struct tw_plant *plant, uint32_t gpu); /* TW_PLANT_NONE: idle */
const struct tw_plant_job *tw_plant_job_conf(const struct tw_plant *plant, uint32_t job);
double tw_plant_total(const struct tw_plant *plant, uint32_t job); /* units done since time 0 */

/* Ask for a limit; it is in force board->write_delay_s later. TW_ERANGE (also NaN) outside the board's limits
 */
TW_MUST_USE
enum tw_err tw_plant_cap(struct tw_plant *plant, uint32_t gpu, double limit_w, struct tw_why *why);

/* arg_w: of a clamp, the lowest limit that is enforced; otherwise unused. */
void tw_plant_fault(struct tw_plant *plant, uint32_t gpu, enum tw_plant_fault fault, double arg_w);

/* Not for a policy. True mean power (sum over the job's GPUs) and throughput (units/s) of a job when each of
 * its GPUs has the limit cap_w: no noise, settled, pauses left out, a serving job at the load it has now. */
void tw_plant_truth(const struct tw_plant *plant, uint32_t job, double cap_w, double *ret_power_w,
                    double *ret_throughput);

#endif
