/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, voltage, power and speed of a simulated GPU. */
#include "plant/board.h"

#include <math.h>

const struct tw_board tw_board_h100 = {
    .model = "Tokwatt simulated H100",
    .clock_min_hz = 210e6,
    .clock_max_hz = 1980e6,
    .knee_hz = 1280e6,
    .v_min_frac = 0.80,
    .mem_clock_hz = 2619e6,
    .idle_w = 84.0,
    .idle_spread_w = 12.0,
    .part_spread_frac = 0.018,
    .limit_min_w = 200.0,
    .limit_max_w = 700.0,
    .limit_default_w = 700.0,
    .hold_frac = 0.995,
    .settle_s = 0.25,
    .write_delay_s = 0.04,
    .ambient_c = 29.0,
    .celsius_per_w = 0.058,
    .thermal_s = 25.0,
};

double tw_board_clock_hz(const struct tw_board *board, double step)
{
    return board->clock_min_hz + (board->clock_max_hz - board->clock_min_hz) * (step / TW_CLOCK_TOP);
}

/* How far the foot of the voltage curve is rounded, of the way from the knee to the top. */
#define FOOT 0.15

static double rise(double x)
{
    return 0.5 * (x + sqrt(x * x + FOOT * FOOT));
}

double tw_board_volt_frac(const struct tw_board *board, double clock_hz)
{
    double x = (clock_hz - board->knee_hz) / (board->clock_max_hz - board->knee_hz);
    return board->v_min_frac + (1.0 - board->v_min_frac) * rise(x) / rise(1.0);
}

static enum tw_err fill_from_model(const struct tw_board *board, const struct tw_work *work,
                                   struct tw_work_table *ret, struct tw_why *why)
{
    if (!(work->active_w >= 0.0 && work->core_w > 0.0 && work->stall_frac >= 0.0 && work->stall_frac <= 1.0 &&
          work->mem_w >= 0.0 && work->ratio > 0.0 && work->sharp >= 1.0))
        return tw_fail(
            why, TW_EINVAL,
            "work: core_w and ratio must be above 0, stall_frac in 0..1, active_w and mem_w >= 0, sharp >= 1");
    double t_top = pow(pow(work->ratio, -work->sharp) + 1.0, -1.0 / work->sharp);
    for (int i = 0; i < TW_CLOCK_STEPS; i++) {
        double hz = tw_board_clock_hz(board, i);
        double f = hz / board->clock_max_hz, v = tw_board_volt_frac(board, hz);
        double c = work->ratio * f;
        double t = pow(pow(c, -work->sharp) + 1.0, -1.0 / work->sharp);
        double core = work->core_w * f * v * v * (work->stall_frac + (1.0 - work->stall_frac) * t / c);
        ret->dyn_w[i] = (float)(work->active_w + core + work->mem_w * t);
        ret->rate[i] = (float)(t / t_top);
        ret->busy[i] = (float)(t / c);
        ret->mem[i] = (float)t;
    }
    return TW_OK;
}

/* Points know nothing of clocks: the steps are laid evenly over the power range. Below the lowest point the
 * curve goes straight to no speed at idle power. */
static enum tw_err fill_from_points(const struct tw_board *board, const struct tw_work *work,
                                    struct tw_work_table *ret, struct tw_why *why)
{
    const struct tw_work_point *p = work->point;
    size_t n = work->n_point;
    if (n < 2)
        return tw_fail(why, TW_EINVAL, "work: a measured curve needs two points or more, not %zu", n);
    for (size_t i = 0; i < n; i++)
        if (!(p[i].power_w > (i ? p[i - 1].power_w : board->idle_w) && p[i].rate > 0.0 &&
              isfinite(p[i].power_w) && isfinite(p[i].rate)))
            return tw_fail(why, TW_EINVAL,
                           "work: point %zu (%g W, %g) must have more power than %g W, and speed", i + 1,
                           p[i].power_w, p[i].rate, i ? p[i - 1].power_w : board->idle_w);
    struct tw_work_point from = {board->idle_w, 0.0};
    double span_w = p[n - 1].power_w - board->idle_w;
    size_t k = 0;
    for (int i = 0; i < TW_CLOCK_STEPS; i++) {
        double w = span_w * (i + 1) / TW_CLOCK_STEPS;
        while (k + 1 < n && p[k].power_w - board->idle_w < w)
            from = p[k++];
        double part = (w + board->idle_w - from.power_w) / (p[k].power_w - from.power_w);
        double rate = (from.rate + (p[k].rate - from.rate) * part) / p[n - 1].rate;
        ret->dyn_w[i] = (float)w;
        ret->rate[i] = (float)rate;
        ret->busy[i] = 0.6F;
        ret->mem[i] = (float)rate;
    }
    return TW_OK;
}

enum tw_err tw_work_fill(const struct tw_board *board, const struct tw_work *work, struct tw_work_table *ret,
                         struct tw_why *why)
{
    return work->n_point ? fill_from_points(board, work, ret, why) : fill_from_model(board, work, ret, why);
}

double tw_work_at(const float column[static TW_CLOCK_STEPS], double step)
{
    int i = (int)step;
    if (i >= TW_CLOCK_STEPS - 1)
        return (double)column[TW_CLOCK_STEPS - 1];
    double low = (double)column[i];
    return low + ((double)column[i + 1] - low) * (step - i);
}

double tw_work_step(const struct tw_work_table *table, double dyn_w)
{
    if (!(dyn_w > (double)table->dyn_w[0]))
        return 0.0;
    int low = 0, high = TW_CLOCK_STEPS - 1;
    if (dyn_w >= (double)table->dyn_w[high])
        return TW_CLOCK_TOP;
    while (high - low > 1) {
        int mid = (low + high) / 2;
        if ((double)table->dyn_w[mid] <= dyn_w)
            low = mid;
        else
            high = mid;
    }
    return low + (dyn_w - (double)table->dyn_w[low]) / ((double)table->dyn_w[high] - (double)table->dyn_w[low]);
}

double tw_smooth_min8(double a, double b)
{
    double low = a < b ? a : b, x = low / (a < b ? b : a);
    double x2 = x * x, x4 = x2 * x2;
    return low / sqrt(sqrt(sqrt(1.0 + x4 * x4)));
}
