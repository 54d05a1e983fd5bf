/* SPDX-License-Identifier: Apache-2.0 */
/* plant/board.h - the physics of one simulated GPU: what a clock costs in watts and gives in speed.
 *
 *   power(f) = idle + part * activity * dynamic(f)
 *   dynamic(f) = active_w + core_w * f' * V(f)^2 * (stall + (1 - stall) * t/c) + mem_w * t    f' = f / f_max
 *   V(f) = v_min well below the knee clock, rising to 1 at f_max: a line with a rounded foot (a hyperbola)
 *   t(f) = (c^-p + 1)^(-1/p),  c = ratio * f'      a smooth minimum of the compute term c and the memory term 1
 *
 * Both are tabulated once a job over the board's clock steps, so that a tick is one search. Work may instead be
 * given as measured points (power and throughput at several caps), which fill the same tables by interpolation.
 *
 * The constants are ours, chosen to be like what is published for boards of this kind; no value was fitted to a
 * device. Nothing here allocates or keeps state. */
#ifndef TW_PLANT_BOARD_H
#define TW_PLANT_BOARD_H

#include "base/err.h"

#include <stddef.h>

#define TW_CLOCK_STEPS 119 /* 210 to 1980 MHz in steps of 15 */
#define TW_CLOCK_TOP ((double)(TW_CLOCK_STEPS - 1))

struct tw_board {
    const char *model;
    double clock_min_hz, clock_max_hz, knee_hz;
    double v_min_frac; /* of the voltage at clock_max_hz */
    double mem_clock_hz;
    double idle_w, idle_spread_w; /* of each GPU: uniform, idle_w +- idle_spread_w */
    double part_spread_frac;      /* standard deviation between GPUs of dynamic power at equal work */
    double limit_min_w, limit_max_w, limit_default_w;
    double hold_frac;     /* the limiter holds this share of the limit */
    double settle_s;      /* time constant with which power follows a new limit */
    double write_delay_s; /* from a write to the new limit being in force */
    double ambient_c, celsius_per_w, thermal_s;
};

extern const struct tw_board tw_board_h100;

/* A point of a measured curve: mean power of one GPU, and throughput of one GPU in any unit. */
struct tw_work_point {
    double power_w, rate;
};

struct tw_work {
    double active_w;   /* what no clock changes once anything runs: memory clock, links */
    double core_w;     /* dynamic power of the core at f_max when never stalled */
    double stall_frac; /* share of core_w that a stalled core still draws */
    double mem_w;      /* power of moving data at the full memory rate */
    double ratio;      /* compute rate at f_max over memory rate: above 1 is memory-bound there */
    double sharp;      /* p of the smooth minimum */
    const struct tw_work_point *point; /* [n_point] rising power; n_point 0: the formula above */
    size_t n_point;
};

struct tw_work_table {
    float dyn_w[TW_CLOCK_STEPS]; /* strictly rising */
    float rate[TW_CLOCK_STEPS];  /* rising; 1 at the top clock */
    float busy[TW_CLOCK_STEPS];  /* t / c: share of time the core is not waiting for memory */
    float mem[TW_CLOCK_STEPS];   /* t: share of the memory rate in use */
};

double tw_board_clock_hz(const struct tw_board *board, double step);
double tw_board_volt_frac(const struct tw_board *board, double clock_hz);

/* TW_EINVAL: a constant out of its range, fewer than two points, points not rising in power, or a point at or
 * below idle power. */
TW_MUST_USE
enum tw_err tw_work_fill(const struct tw_board *board, const struct tw_work *work, struct tw_work_table *ret,
                         struct tw_why *why);

/* A column of the table at a fractional step, linear between steps. */
double tw_work_at(const float column[static TW_CLOCK_STEPS], double step);
/* The highest step, fractional, at which dynamic power is at most dyn_w; 0 when none is. A real limiter dithers
 * between two clocks; the fraction is the time spent in the upper one. */
double tw_work_step(const struct tw_work_table *table, double dyn_w);

/* (a^-8 + b^-8)^(-1/8) for a, b > 0: the sharp smooth minimum, without pow. */
double tw_smooth_min8(double a, double b);

#endif
