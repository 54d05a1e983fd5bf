/* SPDX-License-Identifier: Apache-2.0 */
#include "train/calibfit.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>

#define FEW_MINUTES 20.0
static const double least = -0.4, most = 1.0; /* margins from validation stay within these */

struct fit {
    const struct tw_model *m;
    size_t n, cap;
    float *outside; /* [TW_CALIB_ANCHORS][cap] */
};

static size_t windows_of(const struct tw_model *m, const struct tw_dataset *ds)
{
    return tw_window_count(ds, TW_PART_VAL, false, m->input.w60);
}

size_t tw_calib_fit_bytes(const struct tw_model *m, const struct tw_dataset *ds)
{
    return tw_arena_need(windows_of(m, ds) * TW_CALIB_ANCHORS, sizeof(float)) +
           tw_arena_need(tw_served_bytes(m, ds, false), 1);
}

static void take(void *ctx, const struct tw_track *t, size_t step, const float out_w[static TW_OUTPUTS])
{
    struct fit *f = ctx;
    for (size_t a = 0; a < TW_CALIB_ANCHORS; a++) {
        const size_t head = tw_calib_head(a), steps = f->m->calib.steps[a];
        const float *o = out_w + head * TW_QUANTILES;
        double sum = 0.0;
        for (size_t k = head < TW_LEADS ? steps : 1; k <= steps; k++)
            sum += (double)t->x_w[step + k];
        float outside[TW_CALIB_SIDES];
        tw_calib_outside(o[0], o[2], head < TW_LEADS ? sum : sum / (double)steps, outside);
        f->outside[a * f->cap + f->n] = fmaxf(outside[0], outside[1]);
    }
    f->n++;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void tw_calib_fit(struct tw_model *m, const struct tw_dataset *ds, const struct tw_par *par, void *mem)
{
    struct tw_arena a;
    tw_arena_init(&a, mem, tw_calib_fit_bytes(m, ds));
    struct tw_model bare = *m;
    struct fit f = {.m = m, .cap = windows_of(m, ds)};
    if (!m->calibrated || f.cap == 0)
        return;
    bare.calibrated = false;
    f.outside = TW_ARENA_ARRAY(&a, float, f.cap *TW_CALIB_ANCHORS);
    tw_served(&bare, ds, TW_PART_VAL, false, false, par, tw_arena_alloc(&a, tw_served_bytes(m, ds, false), 1),
              take, &f);
    const double minutes = (double)f.n * ds->step_s / 60.0, trust = minutes / (minutes + FEW_MINUTES);
    for (size_t i = 0; i < TW_CALIB_ANCHORS; i++) {
        float *r = f.outside + i * f.cap;
        qsort(r, f.n, sizeof *r, by_value);
        const double at =
            (double)r[(size_t)((tw_quantile_level[2] - tw_quantile_level[0]) * (double)(f.n - 1))];
        const double margin = at < least ? least : at > most ? most : at;
        m->calib.start[i][0] = m->calib.start[i][1] = (float)(trust * margin);
    }
}
