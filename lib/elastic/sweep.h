/* SPDX-License-Identifier: Apache-2.0 */
/* elastic/sweep.h - a sweep of one job over caps: what to set next, when to stop, what came out.
 *
 * A step machine. Once a second the caller pushes what the whole job did (all its GPUs together, all under one
 * cap) and sets the cap that tw_sweep_cap wants:
 *
 *   warm       uncapped, until there is progress
 *   reference  uncapped: P_0 and T_0
 *   descent    one short look at each cap from high to low, to find the floor: the first cap that the GPUs
 *              cannot hold, or at which the job hardly moves, ends it; it and those below are left out
 *   measure    the caps above the floor in random order, so that a drift is no curve
 *   check      uncapped again: has the job itself changed meanwhile?
 *
 * Each measurement is a tw_steady (elastic/steady.h) over the seconds since its cap was read back. It ends when
 * the 90 % interval of the loss is narrow enough, run-to-run variation included, or when its share of the time
 * is up; a pause in the last moment may take it a little over. Deviations: run-to-run (elastic/fit.h) on every
 * point, the uncapped one included, beside the error of the mean in the run.
 *
 * A drift beyond noise between the two references is corrected along a straight line in time and a part of it
 * is added to the deviations. Without a second reference (the job ended) the first stands alone. */
#ifndef TW_ELASTIC_SWEEP_H
#define TW_ELASTIC_SWEEP_H

#include "base/err.h"
#include "elastic/fit.h"
#include "elastic/pfi.h"
#include "elastic/steady.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_SWEEP_CAPS 23
#define TW_SWEEP_STEP_S 30       /* least time for one measurement */
#define TW_SWEEP_LOOK_S 10       /* of the descent */
#define TW_SWEEP_LOOK_LONG_S 60  /* a look without progress: the job stalls */
#define TW_SWEEP_STALL 0.1       /* of T_0 */
#define TW_SWEEP_HELD 1.08       /* a draw above this share of the caps: not held */
#define TW_SWEEP_Z 1.645         /* 90 % */
#define TW_SWEEP_PRECISION 0.015 /* half width of the interval of a loss, of T_0 */

struct tw_sweep_conf {
    double cap_w[TW_SWEEP_CAPS]; /* [n] of one GPU, all below what was found on every GPU; any order */
    size_t n, n_gpu;
    double total_s;
    double precision; /* above that of run-to-run variation, tw_sweep_precision_least() */
    uint64_t seed;    /* of the order, and of the bootstrap */
};

#define TW_SWEEP_PHASE_MAP(X)                                                                                  \
    X(WARM, "warm-up")                                                                                         \
    X(REFERENCE, "uncapped")                                                                                   \
    X(DESCENT, "descent")                                                                                      \
    X(MEASURE, "measure")                                                                                      \
    X(CHECK, "uncapped again")                                                                                 \
    X(DONE, "done")

enum tw_sweep_phase {
#define TW_SWEEP_PHASE_ENUM(id, name) TW_SWEEP_##id,
    TW_SWEEP_PHASE_MAP(TW_SWEEP_PHASE_ENUM)
#undef TW_SWEEP_PHASE_ENUM
        TW_SWEEP_PHASE_COUNT
};
extern const char *const tw_sweep_phase_name[TW_SWEEP_PHASE_COUNT];

enum tw_sweep_floor { TW_SWEEP_FLOOR_NONE, TW_SWEEP_FLOOR_NOT_HELD, TW_SWEEP_FLOOR_STALLS };

/* One second or so of the job. */
struct tw_sweep_seen {
    double dt_s;
    double power_w; /* of all its GPUs; NaN when one was not read */
    double units;   /* done in dt_s; NaN: not known */
    bool in_force;  /* the cap that was wanted has been read back from every GPU */
};

struct tw_sweep_step {
    double cap_w; /* of one GPU; NaN: uncapped */
    bool measured;
    struct tw_steady steady;
    double at_s; /* middle of it, since the sweep began */
};

struct tw_sweep {
    struct tw_sweep_conf conf; /* caps sorted, the highest first */
    enum tw_sweep_phase phase;
    size_t order[TW_SWEEP_CAPS], at; /* of the caps that are measured; at: place in it, or in the descent */
    size_t n_order;
    enum tw_sweep_floor floor;
    bool ended_early;
    double now_s, step_from_s, step_end_s, next_look_s;
    struct tw_sweep_step reference[2], point[TW_SWEEP_CAPS];
    double warm_s, eval_s, checkpoint_s; /* left out over the whole sweep */
    struct tw_steady_second second[TW_STEADY_MAX];
    size_t n;
    struct tw_steady_work work;
};

double tw_sweep_precision_least(void);
/* The shortest total_s for n caps. */
double tw_sweep_time_least(size_t n);

/* TW_EINVAL: no cap or too many, a cap that is no positive number, two alike, a total that is too short, a
 * precision that run-to-run variation does not allow. */
TW_MUST_USE
enum tw_err tw_sweep_init(struct tw_sweep *s, const struct tw_sweep_conf *conf, struct tw_why *why);
/* True when the wanted cap or the phase has changed. */
bool tw_sweep_push(struct tw_sweep *s, const struct tw_sweep_seen *seen);
/* The job has ended, or somebody wants no more: a measurement under way counts if it is good. */
void tw_sweep_end(struct tw_sweep *s);
double tw_sweep_cap(const struct tw_sweep *s);    /* of one GPU; NaN: uncapped */
double tw_sweep_left_s(const struct tw_sweep *s); /* at most, by the plan */

struct tw_sweep_row {
    double cap_w, power_w, rate;                 /* of one GPU; of the job, corrected for drift */
    double x, t, loss, sd_x, sd_loss, low, high; /* relative; low .. high: 90 % of the loss */
    double work_s, settle_s;
};

/* A cap to live with, and its price beside uncapped. */
struct tw_sweep_advice {
    bool cap;       /* false: leave it uncapped */
    bool deepest;   /* it is the deepest that was measured: deeper may be as good */
    double cap_w;   /* of one GPU */
    double power_w; /* of the job */
    double saved_frac, loss, loss_low, loss_high;
    double j_per_unit, j_saved_frac;
};

struct tw_sweep_result {
    double p0_w, t0;   /* of the job */
    double drift_frac; /* of throughput, last over first reference - 1; NaN: there was no last */
    bool drifted;      /* beyond noise, and corrected */
    size_t n;
    struct tw_sweep_row row[TW_SWEEP_CAPS]; /* the highest cap first */
    struct tw_pfi pfi;
    double pfi_low, pfi_high;
    struct tw_fit fit;
    double knee_cut; /* NaN: none within what was measured */
    struct tw_sweep_advice slower, joules;
};

/* After the sweep is done. allowed: of the throughput, for `slower`. scratch [TW_PFI_DRAWS]. TW_ENODATA: no
 * reference, or no capped point. */
TW_MUST_USE
enum tw_err tw_sweep_finish(const struct tw_sweep *s, double allowed, double *scratch,
                            struct tw_sweep_result *ret, struct tw_why *why);

#endif
