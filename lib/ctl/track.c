/* SPDX-License-Identifier: Apache-2.0 */
/* Budget ramps and sliding means of site power. */
#include "ctl/track.h"

#include <math.h>

void tw_track_push(struct tw_track *t, double site_w)
{
    t->watts[t->next] = (float)site_w;
    t->next = (t->next + 1) % TW_TRACK_LONG;
    if (t->n < TW_TRACK_LONG)
        t->n++;
}

double tw_track_mean(const struct tw_track *t, size_t seconds)
{
    size_t n = t->n < seconds ? t->n : seconds;
    if (n == 0)
        return NAN;
    double sum = 0.0;
    for (size_t i = 1; i <= n; i++)
        sum += (double)t->watts[(t->next + TW_TRACK_LONG - i) % TW_TRACK_LONG];
    return sum / (double)n;
}

double tw_ramp_at(const struct tw_ramp *r, double now_s)
{
    double way = r->rate_w_s * fmax(0.0, now_s - r->start_s);
    return r->to_w < r->from_w ? fmax(r->to_w, r->from_w - way) : fmin(r->to_w, r->from_w + way);
}

double tw_ramp_end_s(const struct tw_ramp *r)
{
    return r->start_s + fabs(r->to_w - r->from_w) / r->rate_w_s;
}

void tw_band_init(struct tw_band *b, double target_w, double low_frac, double high_frac, double start_s)
{
    *b = (struct tw_band){.target_w = target_w,
                          .low_frac = low_frac,
                          .high_frac = high_frac,
                          .start_s = start_s,
                          .min_frac = NAN,
                          .max_frac = NAN};
}

void tw_band_push(struct tw_band *b, const struct tw_track *t, const struct tw_track *wanted, double now_s)
{
    if (!(now_s - b->start_s >= TW_TRACK_SHORT))
        return;
    double frac = tw_track_mean(t, TW_TRACK_SHORT) / b->target_w;
    double want = tw_track_mean(wanted, TW_TRACK_SHORT) / b->target_w, width = b->high_frac - b->low_frac;
    bool is_free = frac < b->low_frac && want < b->low_frac && frac >= want - width;
    b->n++;
    b->n_free += is_free;
    b->max_frac = isnan(b->max_frac) ? frac : fmax(b->max_frac, frac);
    if (!is_free)
        b->min_frac = isnan(b->min_frac) ? frac : fmin(b->min_frac, frac);
    if (!(frac <= b->high_frac && (is_free || frac >= b->low_frac)))
        b->n_out++;
}
