/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/track.h - the budget as time goes by, and how well the site keeps to it.
 *
 * A budget moves in a straight line from where it is to where it shall be, at a limited number of watts per
 * second; site power is averaged over sliding windows of ten and 300 seconds, one value a second. */
#ifndef TW_CTL_TRACK_H
#define TW_CTL_TRACK_H

#include <stdbool.h>
#include <stddef.h>

#define TW_TRACK_SHORT 10 /* the window that is held against the target, seconds */
#define TW_TRACK_LONG 300 /* the baseline's (grid.md: the five minutes before the event) */

/* One value a second, the newest TW_TRACK_LONG kept. */
struct tw_track {
    float watts[TW_TRACK_LONG];
    size_t n, next;
};

void tw_track_push(struct tw_track *t, double site_w);
/* Mean of the last `seconds` values (of as many as there are, when fewer); NaN before the first. */
double tw_track_mean(const struct tw_track *t, size_t seconds);

/* A straight way between two budgets. */
struct tw_ramp {
    double from_w, to_w, start_s, rate_w_s; /* rate above 0, whichever way it goes */
};

double tw_ramp_at(const struct tw_ramp *r, double now_s);
double tw_ramp_end_s(const struct tw_ramp *r);

/* Ten-second means over the target: lowest, highest, and how many lay outside the band. */
struct tw_band {
    double target_w, low_frac, high_frac;
    double start_s; /* windows that begin before this are not looked at */
    double min_frac, max_frac;
    unsigned n, n_out, n_free; /* free: under the lower end because the jobs wanted less */
};

void tw_band_init(struct tw_band *b, double target_w, double low_frac, double high_frac, double start_s);
/* wanted: what the site would draw without limits, as t. A mean under the lower end is free where the jobs
 * wanted less than that end over the same ten seconds, and power kept within the band's width of what they
 * wanted. Free ones are not held against anybody, nor counted in min_frac. */
void tw_band_push(struct tw_band *b, const struct tw_track *t, const struct tw_track *wanted, double now_s);

#endif
