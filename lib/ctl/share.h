/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/share.h - how a number of watts is split over the jobs of a site, by policy.
 *
 * The solvers are lib/alloc's; this picks one, and makes an answer of every case: a controller cannot return an
 * error to its GPUs. Watts here are what a job shall draw on average, not limits. */
#ifndef TW_CTL_SHARE_H
#define TW_CTL_SHARE_H

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/err.h"

#include <stddef.h>

/* id, name, text */
#define TW_STEER_MAP(X)                                                                                        \
    X(CURVE, "curve", "equal marginal weighted throughput per watt on the curves learnt by probing")           \
    X(EQUAL, "equal", "the same fraction of its own power for every job")                                      \
    X(ORACLE, "oracle", "as curve, on the true curves, which only a simulation has")                           \
    X(NONE, "none", "no caps at all: what the others are compared with")

enum tw_steer {
#define TW_STEER_ENUM(id, name, text) TW_STEER_##id,
    TW_STEER_MAP(TW_STEER_ENUM)
#undef TW_STEER_ENUM
        TW_STEER_COUNT
};
extern const char *const tw_steer_name[TW_STEER_COUNT];
/* TW_EINVAL: no such policy; why lists those there are */
TW_MUST_USE
enum tw_err tw_steer_parse(const char *name, enum tw_steer *ret, struct tw_why *why);

/* Split budget_w over job [n] into ret_w [n], floor <= ret <= ceiling. Where the budget passes the sum of
 * ceilings, each has its ceiling; where it is under the sum of floors, each has its floor, and so it has if a
 * solver fails or its split does not pass alloc/check.h. scratch holds tw_alloc_bytes(n) and more; floor_w and
 * ceiling_w [n] are scratch for the check. */
void tw_share_split(enum tw_steer policy, const struct tw_alloc_job *job, size_t n, double budget_w,
                    struct tw_arena *scratch, double *ret_w);
size_t tw_share_bytes(size_t n); /* of scratch */

#endif
