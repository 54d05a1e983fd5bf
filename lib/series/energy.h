/* SPDX-License-Identifier: Apache-2.0 */
/* series/energy.h - an energy counter and the integral of power, reconciled.
 *
 * Both say what a device used, and both can be wrong: a counter is reset when the driver is reloaded, wraps, or
 * cannot be read for a while; an integral misses what happens between samples. Each reading goes in with
 * whatever of the two is known; out comes one total that never goes back. Where the counter is readable the
 * total is the counter's; over a step that the counter cannot tell (reset, unreadable, a leap that no power
 * explains) it is the integral's, and when the counter comes back without a reset its own difference over the
 * gap counts. Every minute the two are compared; a counter that does not agree within TW_ENERGY_TRUST is not
 * used until it does again.
 *
 * The integral is by trapezoids over the power that is pushed; between samples more than gap_s apart power is
 * unknown and nothing is added. The caller keeps the struct; nothing allocates. */
#ifndef TW_SERIES_ENERGY_H
#define TW_SERIES_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

struct tw_energy {
    double wrap_j, max_w, gap_s; /* as given to init */
    double total_j;
    unsigned resets, wraps, leaps; /* of the counter, so far */
    double ratio;                  /* counter over integral in the last window of comparison; NaN: none yet */

    /* the rest is inner state */
    bool began, distrusted;
    int64_t last_us, counter_us;
    double last_w, counter_j; /* NaN: unknown */
    double at_counter_j;      /* total when the counter was last read */
    double since_counter_j;   /* integral since then; NaN when power was missing on the way */
    double win_counter_j, win_power_j, win_s;
};

/*   wrap_j  the counter begins again at 0 after this much; 0 = it does not wrap
 *   max_w   more than the device can draw: a counter that grew faster has leapt
 *   gap_s   longest step over which power is joined by a line */
void tw_energy_init(struct tw_energy *e, double wrap_j, double max_w, double gap_s);

/* One reading at time_us (a reading that does not come later than the last is left out). power_w, counter_j:
 * NaN = unknown. */
void tw_energy_push(struct tw_energy *e, int64_t time_us, double power_w, double counter_j);

#define TW_ENERGY_WINDOW_S 60.0 /* counter and integral are compared over this long */
#define TW_ENERGY_TRUST 1.5     /* the counter may say up to so much more, or less, than the integral */

#endif
