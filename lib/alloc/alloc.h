/* SPDX-License-Identifier: Apache-2.0 */
/* alloc/alloc.h - split a power budget over jobs.
 *
 * Unless a line says otherwise: power is in watts and of the whole job (all its GPUs), arrays belong to the
 * caller and are borrowed for the call only, order is kept, outputs are untouched on failure, and nothing here
 * allocates, blocks, logs or keeps state. Scratch memory is an arena that holds tw_alloc_bytes(n); what was
 * used is given back before returning. A budget above the sum of the ceilings is not spent: every cap is then
 * its ceiling.
 *
 * Every solver returns TW_EINVAL for a job or budget that is no sense (why names it), TW_EINFEASIBLE when the
 * floors alone exceed the budget (the floors themselves are then the nearest feasible split), TW_ENOMEM for too
 * small an arena. Whatever leaves a program has passed alloc/check.h first, which shares no code with this. */
#ifndef TW_ALLOC_ALLOC_H
#define TW_ALLOC_ALLOC_H

#include "base/arena.h"
#include "base/err.h"
#include "elastic/curve.h"
#include "elastic/measured.h"

#include <stddef.h>

/* id, name, what it does */
#define TW_POLICY_MAP(X)                                                                                       \
    X(EQUAL, "equal", "the same fraction of its own power for every job")                                      \
    X(EQUAL_WATTS, "equal-watts", "the same cap in watts for every GPU")                                       \
    X(PFI, "pfi", "the paper's rule: watts cut in proportion to (P_0/T_0) PFI")                                \
    X(CURVE, "curve", "equal marginal weighted throughput per watt on fitted curves")                          \
    X(ORACLE, "oracle", "the best split of the measured points, known after the fact")

enum tw_policy {
#define TW_POLICY_ENUM(id, name, text) TW_POLICY_##id,
    TW_POLICY_MAP(TW_POLICY_ENUM)
#undef TW_POLICY_ENUM
        TW_POLICY_COUNT
};
extern const char *const tw_policy_name[TW_POLICY_COUNT];
extern const char *const tw_policy_text[TW_POLICY_COUNT];

struct tw_alloc_job {
    double p0_w;               /* uncapped draw, > 0 */
    double floor_w, ceiling_w; /* limits of the cap, 0 <= floor <= ceiling; the ceiling is usually p0_w */
    double weight; /* curve, oracle: what t = 1 is worth, > 0: T_0 for tokens/s, 1 for relative throughput */
    double stray_frac; /* curve: |cap / p0 - equal level| stays within this; 1 or more for no bound */
    const struct tw_curve *curve; /* curve: throughput against power */
    double gpus;                  /* equal-watts: number of GPUs, > 0 */
    double flex;                  /* pfi: watts are cut in proportion to this, > 0 */
    struct tw_measured measured;  /* oracle: the measured points */
};

size_t tw_alloc_bytes(size_t n);

/* The same fraction of its own power for every job; those at their floor are made up by the others.
 *   job [n]; ret_cap_w [n]; ret_level (NULL is fine) the fraction: cap = clamp(level p0) */
TW_MUST_USE
enum tw_err tw_alloc_equal(const struct tw_alloc_job *job, size_t n, double budget_w, struct tw_arena *arena,
                           double *ret_cap_w, double *ret_level, struct tw_why *why);

/* The same cap for every GPU: cap = clamp(level gpus), and no job above its p0. */
TW_MUST_USE
enum tw_err tw_alloc_equal_watts(const struct tw_alloc_job *job, size_t n, double budget_w,
                                 struct tw_arena *arena, double *ret_cap_w, double *ret_level,
                                 struct tw_why *why);

/* Watts cut in proportion to flex (arXiv 2609.11542: (P_0 / T_0) PFI), as far as the floors allow. */
TW_MUST_USE
enum tw_err tw_alloc_pfi(const struct tw_alloc_job *job, size_t n, double budget_w, struct tw_arena *arena,
                         double *ret_cap_w, struct tw_why *why);

/* Maximise sum of weight t(cap / p0) on the fitted curves: every job not at a limit has the same marginal
 * weighted throughput per watt. Exact: the curves are concave, so one price clears the budget, and jobs whose
 * curve is straight at that price share what is left. About 40 passes over n at most, of which the first few do
 * most of the work. ret_price  (NULL is fine) shadow price: weight t per watt more; 0 when the budget does not
 * bind */
TW_MUST_USE
enum tw_err tw_alloc_curve(const struct tw_alloc_job *job, size_t n, double budget_w, struct tw_arena *arena,
                           double *ret_cap_w, double *ret_price, struct tw_why *why);

/* Maximise sum of weight t on the measured points, straight between them, which need not be concave: a dynamic
 * programme over TW_ORACLE_GRID steps of the budget above the floors, then an exact linear programme inside the
 * pieces that it chose. Its scratch is tw_alloc_oracle_bytes; TW_ELIMIT above TW_ORACLE_JOBS jobs. Time goes
 * with TW_ORACLE_GRID times the number of points: 37 jobs of 7 points take about 0.1 s. */
#define TW_ORACLE_GRID 32768
#define TW_ORACLE_JOBS 2000
size_t tw_alloc_oracle_bytes(size_t n);
TW_MUST_USE
enum tw_err tw_alloc_oracle(const struct tw_alloc_job *job, size_t n, double budget_w, struct tw_arena *arena,
                            double *ret_cap_w, struct tw_why *why);

/* A job's cap over its own GPUs: the same for each, those at a limit made up by the others. floor_w and
 * ceiling_w are per GPU [n]. */
TW_MUST_USE
enum tw_err tw_alloc_spread(const double *floor_w, const double *ceiling_w, size_t n, double cap_w,
                            double *ret_cap_w, struct tw_why *why);

#endif
