/* SPDX-License-Identifier: Apache-2.0 */
/* bench alloc: time of water-filling on one core. Jobs are drawn at random (seeded): exp curves, a third with
 * knots when asked for, floors at 40 to 60 % of their own power, a budget of 75 % of all. Preparing each job
 * (one logarithm, one equal split to start from) is inside the measured time; drawing is not. The median of the
 * repeats is printed. */
#include "alloc/alloc.h"
#include "alloc/check.h"
#include "base/rng.h"
#include "base/stat.h"
#include "sys/clock.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPEATS = 15 };

struct problem {
    size_t n;
    struct tw_alloc_job *job;
    struct tw_curve *curve;
    double *cap_w, *floor_w, *ceiling_w, budget_w;
    struct tw_arena arena;
};

static void draw(struct problem *p, bool knots)
{
    struct tw_rng rng;
    tw_rng_init(&rng, 42, 0);
    p->budget_w = 0.0;
    for (size_t i = 0; i < p->n; i++) {
        p->curve[i] =
            tw_curve_of_loss(exp(tw_rng_uniform(&rng, 0.0, 2.5)), 0.3, tw_rng_uniform(&rng, 0.03, 0.25));
        if (knots && i % 3 == 0) {
            double x[] = {0.6, 0.75, 0.9, 1.0}, t[4] = {0, 0, 0, 1.0};
            for (int k = 2; k >= 0; k--)
                t[k] = tw_curve_value(&p->curve[i], x[k]);
            if (tw_curve_init_knots(&p->curve[i], x, t, 4, NULL) != TW_OK)
                abort();
        }
        double p0 = tw_rng_uniform(&rng, 300.0, 60000.0);
        p->job[i] = (struct tw_alloc_job){.p0_w = p0,
                                          .floor_w = p0 * tw_rng_uniform(&rng, 0.4, 0.6),
                                          .ceiling_w = p0,
                                          .weight = p0 * tw_rng_uniform(&rng, 0.5, 2.0),
                                          .stray_frac = (double)INFINITY,
                                          .curve = &p->curve[i]};
        p->floor_w[i] = p->job[i].floor_w;
        p->ceiling_w[i] = p0;
        p->budget_w += 0.75 * p0;
    }
}

static void measure(size_t n, bool knots)
{
    struct problem p = {.n = n};
    size_t bytes = tw_alloc_bytes(n);
    void *mem = malloc(bytes);
    p.job = calloc(n, sizeof *p.job);
    p.curve = calloc(n, sizeof *p.curve);
    p.cap_w = calloc(3 * n, sizeof *p.cap_w);
    if (!(mem && p.job && p.curve && p.cap_w))
        abort();
    p.floor_w = p.cap_w + n;
    p.ceiling_w = p.floor_w + n;
    tw_arena_init(&p.arena, mem, bytes);
    draw(&p, knots);
    double ms[REPEATS], price = 0.0;
    for (int r = 0; r < REPEATS; r++) {
        int64_t start = tw_boot_us();
        if (tw_alloc_curve(p.job, n, p.budget_w, &p.arena, p.cap_w, &price, NULL) != TW_OK)
            abort();
        ms[r] = (double)(tw_boot_us() - start) / 1000.0;
    }
    tw_stat_sort(ms, REPEATS);
    struct tw_why why = {"passed"};
    enum tw_err err = tw_alloc_check(p.cap_w, p.floor_w, p.ceiling_w, n, p.budget_w, &why);
    printf("%8zu jobs, %-21s median %8.3f ms, fastest %8.3f ms (%d runs, one core); checker: %s\n", n,
           knots ? "a third with knots:" : "exp curves:", ms[REPEATS / 2], ms[0], REPEATS,
           err == TW_OK ? "passed" : why.text);
    free(mem);
    free(p.job);
    free(p.curve);
    free(p.cap_w);
}

int main(void)
{
    puts("alloc: water-filling on fitted curves, flat, from structs of jobs to caps, preparation included");
    measure(10, false);
    measure(1000, false);
    measure(100000, false);
    measure(1000000, false);
    measure(10, true);
    measure(1000, true);
    measure(100000, true);
    return 0;
}
