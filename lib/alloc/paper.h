/* SPDX-License-Identifier: Apache-2.0 */
/* alloc/paper.h - the allocation experiment of arXiv 2609.11542, put together again from what it prints.
 *
 * A RECONSTRUCTION: the paper prints the PFI of 25 H200 groups (some as a range), their cap grids, the quality
 * of its PFI prediction and the outcome. It does not print power, throughput or curves. What is missing is
 * drawn from the ranges of the table in paper.c, and nowhere else; nothing is tuned to the outcome. One draw
 * fixes 25 curves and 25 predictions; workloads of jobs are then drawn from the groups, their power is cut, and
 * each policy splits it:
 *
 *   equal      the same share of its own power for every job
 *   rule       the paper's: watts cut in proportion to (P_0 / T_0) PFI, PFI predicted as well as published
 *   rule_pfi   the same with PFI known
 *   board ..   ours: equal marginal tokens per watt on what each level of elastic/levels.h knows; jobs of the
 * same curve    model are never learnt from, `telemetry` knows the same predicted PFI as `rule` oracle equal
 * marginal tokens per watt on the true curves
 *
 * Truth is straight between the caps of a group's grid, as in the paper. */
#ifndef TW_ALLOC_PAPER_H
#define TW_ALLOC_PAPER_H

#include "base/arena.h"
#include "base/err.h"

#include <stdint.h>

#define TW_PAPER_GROUPS 25
#define TW_PAPER_CUTS 4
extern const double tw_paper_cut[TW_PAPER_CUTS]; /* 10, 20, 30, 40 % */

#define TW_PAPER_POLICY_MAP(X)                                                                                 \
    X(EQUAL, "equal")                                                                                          \
    X(RULE, "rule")                                                                                            \
    X(RULE_PFI, "rule_pfi")                                                                                    \
    X(BOARD, "board")                                                                                          \
    X(TELEMETRY, "telemetry")                                                                                  \
    X(PROBE1, "probe1")                                                                                        \
    X(PROBE2, "probe2")                                                                                        \
    X(CURVE, "curve")                                                                                          \
    X(ORACLE, "oracle")
enum tw_paper_policy {
#define TW_PAPER_ENUM(id, name) TW_PAPER_##id,
    TW_PAPER_POLICY_MAP(TW_PAPER_ENUM)
#undef TW_PAPER_ENUM
        TW_PAPER_POLICY_COUNT
};
extern const char *const tw_paper_policy_name[TW_PAPER_POLICY_COUNT];

enum tw_paper_mix { TW_PAPER_RANDOM, TW_PAPER_PRODUCTION, TW_PAPER_MIX_COUNT };
extern const char *const tw_paper_mix_name[TW_PAPER_MIX_COUNT];

/* Pretraining jobs among those that run at a moment (of pretraining and fine-tuning): of the completed jobs of
 * the Kalos cluster (AcmeTrace, CC-BY 4.0), weighted by run time. Of all jobs that were started it is 56 %. */
#define TW_PAPER_PRETRAINING 0.766

/* The table of ranges, for reports: one line of text for each group, "" past the end. buf of 256 bytes. */
void tw_paper_group_show(unsigned group, char *buf, size_t size);

struct tw_paper_setup {
    unsigned workloads, jobs; /* 500 of 100 in the paper */
    double pretraining_frac;  /* of the production mix */
    double probe_s, event_s;  /* what probes are charged: elastic/levels.h */
    uint64_t seed;
};

struct tw_paper_draw {
    double tokens[TW_PAPER_MIX_COUNT][TW_PAPER_CUTS]
                 [TW_PAPER_POLICY_COUNT]; /* tokens/s per job, mean of workloads */
    double kept[TW_PAPER_MIX_COUNT][TW_PAPER_CUTS]
               [TW_PAPER_POLICY_COUNT]; /* mean relative throughput of a job */
    double rank, rmse;                  /* of the predicted PFI; the published ones are 0.489 and 0.241 */
    unsigned clamped;                   /* groups whose deep ratio could not be met together with their PFI */
};

size_t tw_paper_bytes(const struct tw_paper_setup *s);
/* Draw number `draw`: the same for the same seed, whatever else is drawn. TW_EINVAL, TW_ENOMEM; TW_EINTERNAL
 * when a split does not pass the checker. */
TW_MUST_USE
enum tw_err tw_paper_draw(const struct tw_paper_setup *s, unsigned draw, struct tw_arena *arena,
                          struct tw_paper_draw *ret, struct tw_why *why);

/* One group's curve from what is published, for tests: exp (k, b) with the given mean of d/l over the caps
 * below p0_w, and `deep` as the mean over 300 and 400 W as far as it can be met. Returns whether it was. */
int tw_paper_curve(const double *cap_w, unsigned n_caps, double p0_w, double pfi, double deep, double *ret_k,
                   double *ret_b);

#endif
