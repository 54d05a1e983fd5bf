/* SPDX-License-Identifier: Apache-2.0 */
/* Splits of a number of watts over jobs. */
#include "ctl/share.h"

#include "alloc/check.h"

#include <stdbool.h>
#include <string.h>

#define NAME(id, name, text) name,
const char *const tw_steer_name[TW_STEER_COUNT] = {TW_STEER_MAP(NAME)};
#undef NAME

enum tw_err tw_steer_parse(const char *name, enum tw_steer *ret, struct tw_why *why)
{
    for (int p = 0; p < TW_STEER_COUNT; p++)
        if (strcmp(name, tw_steer_name[p]) == 0) {
            *ret = (enum tw_steer)p;
            return TW_OK;
        }
    return tw_fail(why, TW_EINVAL, "\"%s\" is no policy; there are curve, equal, oracle and none", name);
}

size_t tw_share_bytes(size_t n)
{
    return tw_alloc_bytes(n) + 2 * tw_arena_need(n, sizeof(double)) + TW_ARENA_ALIGN;
}

/* Does the split hold, by code that shares nothing with the solver? */
static bool is_sound(const struct tw_alloc_job *job, size_t n, double budget_w, struct tw_arena *scratch,
                     const double *w)
{
    size_t mark = tw_arena_mark(scratch);
    double *floor_w = TW_ARENA_ARRAY(scratch, double, n), *ceiling_w = TW_ARENA_ARRAY(scratch, double, n);
    bool sound = floor_w && ceiling_w;
    for (size_t i = 0; sound && i < n; i++) {
        floor_w[i] = job[i].floor_w;
        ceiling_w[i] = job[i].ceiling_w;
    }
    sound = sound && tw_alloc_check(w, floor_w, ceiling_w, n, budget_w, NULL) == TW_OK;
    tw_arena_release(scratch, mark);
    return sound;
}

void tw_share_split(enum tw_steer policy, const struct tw_alloc_job *job, size_t n, double budget_w,
                    struct tw_arena *scratch, double *ret_w)
{
    enum tw_err err = policy == TW_STEER_EQUAL ? tw_alloc_equal(job, n, budget_w, scratch, ret_w, NULL, NULL)
                                               : tw_alloc_curve(job, n, budget_w, scratch, ret_w, NULL, NULL);
    if (err == TW_OK && is_sound(job, n, budget_w, scratch, ret_w))
        return;
    for (size_t i = 0; i < n; i++)
        ret_w[i] = job[i].floor_w;
}
