/* SPDX-License-Identifier: Apache-2.0 */
/* elastic/levels.h - a job's curve at five levels of knowledge, for scoring what each is worth.
 *
 *   board      control: mean curve of other models on the same board; no telemetry, no uncertainty
 *   telemetry  prior and what the uncapped run tells (elastic/prior.h)
 *   probe1     and one shallow cap tried on the running job
 *   probe2     and a second, deeper one
 *   curve      all measured points: the fit that evidence chooses (elastic/fit.h), as `tokwatt allocate` uses
 * it; its uncertainty is the posterior's
 *
 * Truth is the job's measured points, straight between them; a probe reads it off, with noise when a generator
 * is given. Where in its window a probe lies is chosen by what it is expected to win (tw_known_gain). */
#ifndef TW_ELASTIC_LEVELS_H
#define TW_ELASTIC_LEVELS_H

#include "base/rng.h"
#include "elastic/measured.h"
#include "elastic/prior.h"

/* id, name, what it rests on */
#define TW_LEVEL_MAP(X)                                                                                        \
    X(BOARD, "board", "mean curve of other models on the same board")                                          \
    X(TELEMETRY, "telemetry", "other jobs, and this one's uncapped draw")                                      \
    X(PROBE1, "probe1", "and one cap at a cut of 5-10 %")                                                      \
    X(PROBE2, "probe2", "and a second at 20-25 %")                                                             \
    X(CURVE, "curve", "all measured points")

enum tw_level {
#define TW_LEVEL_ENUM(id, name, text) TW_LEVEL_##id,
    TW_LEVEL_MAP(TW_LEVEL_ENUM)
#undef TW_LEVEL_ENUM
        TW_LEVEL_COUNT
};
extern const char *const tw_level_name[TW_LEVEL_COUNT];
extern const char *const tw_level_text[TW_LEVEL_COUNT];

#define TW_LEVEL_PROBES 2
struct tw_level_plan {
    double low[TW_LEVEL_PROBES], high[TW_LEVEL_PROBES], step; /* windows of the probes, and the grid inside */
    double probe_s, event_s; /* a probe lasts so long; what it tells is used so long */
};
extern const struct tw_level_plan
    tw_level_plan_default; /* 5-10 %, 20-25 %, step 1 %; 60 s against one event of 3 h */

struct tw_levels {
    struct tw_curve curve[TW_LEVEL_COUNT];
    struct tw_known known[TW_LEVEL_COUNT]; /* of board: that of telemetry */
    double paid[TW_LEVEL_COUNT];           /* throughput lost to probes, as a share of T_0 over the event */
    double probe_cut[TW_LEVEL_PROBES];
    double probe_gain[TW_LEVEL_PROBES]; /* as expected before it, its cost taken off */
};

/* All levels but board, for a job of which `telemetry` is known (tw_prior_know) and that will be held near
 * `depth`. rng NULL: what is measured is read without further noise. curve[BOARD] is set to that of telemetry:
 * see tw_levels_board. */
void tw_levels_of(const struct tw_known *telemetry, const struct tw_prior_job *job,
                  const struct tw_measured *truth, double depth, const struct tw_level_plan *plan,
                  struct tw_rng *rng, struct tw_levels *ret);

/* The mean of the curves measured on `board`, those left out left out, made concave; below its lowest point a
 * job's curve goes on straight. TW_ENODATA: nobody else was measured there. */
TW_MUST_USE
enum tw_err tw_levels_board(const struct tw_prior_job *job, const struct tw_measured *measured, size_t n,
                            uint32_t board, struct tw_prior_leave leave, struct tw_curve *ret);

#endif
