/* SPDX-License-Identifier: Apache-2.0 */
/* One total out of a counter and an integral. */
#include "series/energy.h"

#include <math.h>

void tw_energy_init(struct tw_energy *e, double wrap_j, double max_w, double gap_s)
{
    *e = (struct tw_energy){.wrap_j = wrap_j,
                            .max_w = max_w,
                            .gap_s = gap_s,
                            .ratio = (double)NAN,
                            .last_w = (double)NAN,
                            .counter_j = (double)NAN};
}

/* What the counter says was used since it was last read; NaN when it cannot say. Counts why. */
static double counter_step(struct tw_energy *e, double counter_j, double past_s)
{
    /* a counter may move in lumps of up to a second */
    double most_j = e->max_w * (past_s + 1.0), d = counter_j - e->counter_j;
    if (d >= 0.0 && d <= most_j)
        return d;
    if (d > most_j) {
        e->leaps++;
        return (double)NAN;
    }
    if (e->wrap_j > 0.0 && d + e->wrap_j <= most_j) {
        e->wraps++;
        return d + e->wrap_j;
    }
    e->resets++;
    return (double)NAN;
}

static void compare(struct tw_energy *e, double counter_j, double power_j, double past_s)
{
    if (!(isfinite(counter_j) && isfinite(power_j)))
        return;
    e->win_counter_j += counter_j;
    e->win_power_j += power_j;
    e->win_s += past_s;
    if (e->win_s < TW_ENERGY_WINDOW_S)
        return;
    e->ratio = e->win_power_j > 0.0 ? e->win_counter_j / e->win_power_j : (double)NAN;
    e->distrusted = !(e->ratio <= TW_ENERGY_TRUST && e->ratio >= 1.0 / TW_ENERGY_TRUST);
    e->win_counter_j = e->win_power_j = e->win_s = 0.0;
}

void tw_energy_push(struct tw_energy *e, int64_t time_us, double power_w, double counter_j)
{
    if (e->began && time_us <= e->last_us)
        return;
    double past_s = e->began ? 1e-6 * (double)(time_us - e->last_us) : 0.0;
    double power_j = past_s <= e->gap_s ? 0.5 * (e->last_w + power_w) * past_s : (double)NAN;
    if (e->began) {
        e->since_counter_j += power_j;
        if (isfinite(power_j))
            e->total_j += power_j; /* until the counter says better */
    }
    if (isfinite(counter_j)) {
        if (isfinite(e->counter_j)) {
            double gone_s = 1e-6 * (double)(time_us - e->counter_us);
            double step_j = counter_step(e, counter_j, gone_s);
            compare(e, step_j, e->since_counter_j, gone_s);
            if (isfinite(step_j) && !e->distrusted) {
                e->at_counter_j += step_j;
                e->total_j = fmax(e->total_j - (isfinite(power_j) ? power_j : 0.0), e->at_counter_j);
            } else {
                e->at_counter_j = e->total_j;
            }
        } else {
            e->at_counter_j = e->total_j;
        }
        e->counter_j = counter_j;
        e->counter_us = time_us;
        e->since_counter_j = 0.0;
    }
    e->last_w = power_w;
    e->last_us = time_us;
    e->began = true;
}
