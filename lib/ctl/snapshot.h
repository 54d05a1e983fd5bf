/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/snapshot.h - what holds now, in one plain block: the controller writes it once a turn, everything that
 * shows something (page, API, status, metrics) reads a copy.
 *
 * NaN is unknown. Times are site time in seconds since the site was opened; a simulated site's runs at `speed`
 * times the clock. Arrays belong to whoever holds the snapshot. */
#ifndef TW_CTL_SNAPSHOT_H
#define TW_CTL_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_SNAP_LEADS 12  /* forecasts 5, 10 ... 60 s ahead */
#define TW_SNAP_POINTS 12 /* measured points of a job's curve that are shown */

/* Why a GPU has the cap it has: what `explain` prints. */
#define TW_REASON_MAP(X)                                                                                       \
    X(UNCAPPED, "uncapped", "uncapped: no budget binds")                                                       \
    X(PROBE, "probe", "probe: a short cap to learn this job's curve")                                          \
    X(EVENT_SHARE, "event_share", "event: share of the budget by marginal throughput per watt")                \
    X(EVENT_EQUAL, "event_equal", "event: equal share, the job's curve is not known yet")                      \
    X(SLA_FLOOR, "sla_floor", "event: held at the floor of its SLA")                                           \
    X(DEVICE_FLOOR, "device_floor", "event: held at the lowest limit the device accepts")                      \
    X(LENT, "lent", "event: draws less than its share; the rest is lent to other jobs")                        \
    X(RAMP, "ramp", "ramp: on its way to a new cap")                                                           \
    X(RELEASE, "release", "release: the event is over, power returns at the ramp limit")                       \
    X(HARD_LIMIT, "hard_limit", "hard limit of the site: every GPU gives way in proportion")                   \
    X(BLIND, "blind", "safe cap: no fresh reading")

enum tw_reason {
#define TW_REASON_ENUM(id, name, text) TW_REASON_##id,
    TW_REASON_MAP(TW_REASON_ENUM)
#undef TW_REASON_ENUM
        TW_REASON_COUNT
};
extern const char *const tw_reason_text[TW_REASON_COUNT]; /* for a person */
extern const char *const tw_reason_name[TW_REASON_COUNT]; /* for a program: "event_share" */

#define TW_EVENT_MAP(X)                                                                                        \
    X(NONE, "none")                                                                                            \
    X(WAITING, "waiting")                                                                                      \
    X(RAMP, "ramp")                                                                                            \
    X(HOLD, "hold")                                                                                            \
    X(RELEASE, "release")                                                                                      \
    X(DONE, "done")

enum tw_event_state {
#define TW_EVENT_ENUM(id, name) TW_EVENT_##id,
    TW_EVENT_MAP(TW_EVENT_ENUM)
#undef TW_EVENT_ENUM
        TW_EVENT_COUNT
};
extern const char *const tw_event_name[TW_EVENT_COUNT];

struct tw_snap_band { /* quantiles 0.1, 0.5, 0.9 */
    float low_w, mid_w, high_w;
};

struct tw_snap_gpu {
    char uuid[48];
    char node[48];
    uint32_t job;
    enum tw_reason reason;
    float power_w, cap_w, enforced_w;
    struct tw_snap_band mean30, mean60; /* forecast of the mean over the next 30 and 60 s */
};

struct tw_snap_job {
    char name[64];
    char unit[24];
    uint32_t n_gpu;
    double power_w, cap_w;         /* sums over its GPUs */
    double p0_w, t0;               /* uncapped reference: watts, units/s */
    double throughput;             /* now */
    double pfi, pfi_low, pfi_high; /* from the curve as learnt so far */
    double curve_k, curve_x0, curve_rmse;
    double lost_units;     /* against its uncapped reference, since the event began */
    enum tw_reason reason; /* of its first GPU */
    uint32_t n_points;
    struct {
        float x, t; /* P/P_0, T/T_0 */
    } point[TW_SNAP_POINTS];
};

struct tw_snap_event {
    enum tw_event_state state;
    double cut_frac, start_s, end_s; /* end: of the hold */
    double baseline_w, target_w;     /* mean of the five minutes before, and what is asked */
    double hold10_min_frac,
        hold10_max_frac; /* ten-second means over target, lowest and highest since the ramp ended */
    double tokens_lost, tokens_lost_equal, tokens_lost_oracle; /* weighted units since the event began */
};

struct tw_snapshot {
    uint64_t seq;
    bool simulated;
    double speed; /* simulated seconds per second */
    double now_s;
    int64_t wall_us;
    size_t n_gpu, n_job;
    struct tw_snap_gpu *gpu;                 /* [n_gpu] */
    struct tw_snap_job *job;                 /* [n_job] */
    double power_w, cap_sum_w, budget_w;     /* the site; budget NaN when none is in force */
    struct tw_snap_band path[TW_SNAP_LEADS]; /* site forecast by lead time */
    double skill_mean30,
        skill_mean60; /* of the forecasts so far, against the better of last value and 60 s mean */
    double gap_recovered, tokens_saved; /* of the last event; NaN before one */
    struct tw_snap_event event;
    unsigned stale_gpus;
};

#endif
