/* SPDX-License-Identifier: Apache-2.0 */
#include "train/cover.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

#define STRETCH_S 600.0
#define SHIFT_S 5.0    /* means that are compared */
#define APART_S 10.0   /* from the end of the first to the start of the second */
#define SETTLE_S 120.0 /* counted after a shift */
#define SHIFT_SHARE 0.2

struct stretch {
    double covered, windows;
};

struct shift {
    double covered, windows, interval_w;
};

struct tw_cover {
    const struct tw_dataset *ds;
    enum tw_part part;
    double limit_w;
    size_t n_block;          /* stretches a run may have */
    size_t *run;             /* [ds->n] the first track of the same run */
    size_t *n_track;         /* [ds->n] tracks of a run, at its first one */
    struct stretch *stretch; /* [TW_COVER_TARGETS][ds->n][n_block] */
    struct shift shift[TW_COVER_TARGETS];
};

static size_t blocks_of(const struct tw_dataset *ds, enum tw_part part)
{
    size_t longest = 0;
    for (size_t i = 0; i < ds->n; i++) {
        const struct tw_span *p = &ds->track[i].part[part];
        longest = p->to - p->from > longest ? p->to - p->from : longest;
    }
    return 1 + longest / tw_input_steps(STRETCH_S, ds->step_s);
}

size_t tw_cover_bytes(const struct tw_dataset *ds, enum tw_part part)
{
    return tw_arena_need(1, sizeof(struct tw_cover)) + 2 * tw_arena_need(ds->n, sizeof(size_t)) +
           tw_arena_need(TW_COVER_TARGETS * ds->n * blocks_of(ds, part), sizeof(struct stretch));
}

struct tw_cover *tw_cover_init(const struct tw_dataset *ds, enum tw_part part, void *mem)
{
    struct tw_arena a;
    tw_arena_init(&a, mem, tw_cover_bytes(ds, part));
    struct tw_cover *c = TW_ARENA_ARRAY(&a, struct tw_cover, 1);
    c->ds = ds;
    c->part = part;
    c->n_block = blocks_of(ds, part);
    c->run = TW_ARENA_ARRAY(&a, size_t, ds->n);
    c->n_track = TW_ARENA_ARRAY(&a, size_t, ds->n);
    c->stretch = TW_ARENA_ARRAY(&a, struct stretch, TW_COVER_TARGETS * ds->n * c->n_block);
    for (size_t i = 0; i < ds->n; i++) {
        const struct tw_track *t = &ds->track[i];
        size_t first = 0;
        while (strcmp(ds->track[first].run, t->run) != 0)
            first++;
        c->run[i] = first;
        c->n_track[first] += t->part[part].to > t->part[part].from;
        for (size_t k = 0; k < t->n; k++)
            c->limit_w = (double)t->x_w[k] > c->limit_w ? (double)t->x_w[k] : c->limit_w;
    }
    return c;
}

static double mean_w(const float *x_w, size_t n)
{
    double sum = 0.0;
    for (size_t k = 0; k < n; k++)
        sum += (double)x_w[k];
    return sum / (double)n;
}

/* Did the level shift within the past SETTLE_S? */
static bool is_shifted(const struct tw_cover *c, const float *x_w, size_t step)
{
    const double step_s = c->ds->step_s;
    const size_t n = tw_input_steps(SHIFT_S, step_s), apart = tw_input_steps(APART_S, step_s);
    const size_t settle = tw_input_steps(SETTLE_S, step_s);
    for (size_t back = 0; back < settle && step + 1 >= back + apart + 2 * n; back++) {
        const float *now = x_w + step + 1 - back - n;
        if (fabs(mean_w(now, n) - mean_w(now - apart - n, n)) >= SHIFT_SHARE * c->limit_w)
            return true;
    }
    return false;
}

void tw_cover_add(struct tw_cover *c, const struct tw_track *t, size_t step,
                  const float out_w[static TW_OUTPUTS])
{
    static const size_t head[TW_COVER_TARGETS] = {5, 11, TW_HEAD_MEAN30, TW_HEAD_MEAN60};
    const double step_s = c->ds->step_s;
    const size_t block = (step - t->part[c->part].from) / tw_input_steps(STRETCH_S, step_s);
    const size_t run = c->run[t - c->ds->track];
    const bool shifted = is_shifted(c, t->x_w, step);
    for (size_t i = 0; i < TW_COVER_TARGETS; i++) {
        const float *o = out_w + head[i] * TW_QUANTILES, *ahead = t->x_w + step + 1;
        const size_t n = tw_input_steps(tw_head_s(head[i]), step_s);
        const double y = head[i] < TW_LEADS ? (double)ahead[n - 1] : mean_w(ahead, n);
        const double lo = (double)o[0], hi = (double)o[2];
        if (!isfinite(lo) || !isfinite(hi))
            continue;
        struct stretch *s = &c->stretch[(i * c->ds->n + run) * c->n_block + block];
        const double in = (double)(y >= lo && y <= hi);
        s->covered += in;
        s->windows += 1.0;
        if (shifted) {
            c->shift[i].covered += in;
            c->shift[i].windows += 1.0;
            c->shift[i].interval_w += hi - lo + 10.0 * (fmax(lo - y, 0.0) + fmax(y - hi, 0.0));
        }
    }
}

void tw_cover_result(const struct tw_cover *c, size_t target, struct tw_cover_score *ret)
{
    const struct shift *sh = &c->shift[target];
    *ret = (struct tw_cover_score){.worst_low = (double)NAN,
                                   .worst_high = (double)NAN,
                                   .shift_windows = (size_t)sh->windows,
                                   .shift_coverage = sh->covered / sh->windows,
                                   .shift_interval_w = sh->interval_w / sh->windows};
    for (size_t run = 0; run < c->ds->n; run++)
        for (size_t b = 0; b < c->n_block; b++) {
            const struct stretch *s = &c->stretch[(target * c->ds->n + run) * c->n_block + b];
            const double full = (double)c->n_track[run] * STRETCH_S / c->ds->step_s;
            if (!(s->windows >= 0.5 * full) || c->n_track[run] == 0)
                continue;
            const double share = s->covered / s->windows;
            ret->stretches++;
            ret->outside += !(share >= 0.65 && share <= 0.95);
            ret->worst_low = fmin(ret->worst_low, share); /* fmin and fmax drop a NaN */
            ret->worst_high = fmax(ret->worst_high, share);
        }
}
