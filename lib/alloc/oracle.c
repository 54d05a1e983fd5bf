/* SPDX-License-Identifier: Apache-2.0 */
/* The best split of measured points, which need not be concave: a dynamic programme.
 *
 * The budget above the floors is cut into TW_ORACLE_GRID steps. Layer i holds, for every number of steps c, the
 * most that jobs 0..i can bring on at most c steps:
 *
 *     best_i(c) = max over y of best_{i-1}(c - y) + value_i(y)
 *
 * value_i is straight inside a piece of the measured curve, where the maximum over y is that of a sliding
 * window over best_{i-1}(j) - slope j: a piece costs one pass with a queue, whatever its width. The grid then
 * says only which piece every job ends in; inside the chosen pieces the problem is a fractional knapsack,
 * solved exactly, which takes the error of the grid out again. */
#include "alloc/alloc.h"
#include "alloc/alloc_int.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>

enum { GRID = TW_ORACLE_GRID };

struct table {
    const struct tw_alloc_job *job;
    size_t n;
    double step_w;
    double *best, *next, *queue_value; /* [GRID + 1] */
    uint32_t *queue;                   /* [GRID + 1] */
    uint16_t *choice;                  /* [n][GRID + 1] steps that job i takes */
};

static_assert(GRID <= UINT16_MAX, "a choice fits its table");

size_t tw_alloc_oracle_bytes(size_t n)
{
    return 3 * tw_arena_need(GRID + 1, sizeof(double)) + tw_arena_need(GRID + 1, sizeof(uint32_t)) +
           tw_arena_need(n, (GRID + 1) * sizeof(uint16_t)) + 3 * tw_arena_need(n, sizeof(double)) +
           TW_ARENA_ALIGN;
}

static double value_at(const struct tw_alloc_job *j, double cap_w)
{
    return j->weight * tw_measured_value(&j->measured, cap_w / j->p0_w);
}

/* One straight piece of job i, steps first..last: improve the next layer by it. */
static void add_piece(struct table *t, size_t i, uint32_t first, uint32_t last)
{
    const struct tw_alloc_job *j = &t->job[i];
    double start = value_at(j, j->floor_w + first * t->step_w);
    double slope = last > first ? (value_at(j, j->floor_w + last * t->step_w) - start) / (last - first) : 0.0;
    uint16_t *choice = t->choice + i * (GRID + 1);
    uint32_t head = 0, tail = 0; /* queue of candidates from best_{i-1}, values falling */
    for (uint32_t c = first; c <= GRID; c++) {
        uint32_t enter = c - first;
        double v = t->best[enter] - slope * enter;
        while (tail > head && t->queue_value[tail - 1] <= v)
            tail--;
        t->queue[tail] = enter;
        t->queue_value[tail++] = v;
        if (t->queue[head] + last < c)
            head++;
        uint32_t from = t->queue[head];
        double total = t->best[from] + start + slope * (c - from - first);
        if (total > t->next[c]) {
            t->next[c] = total;
            choice[c] = (uint16_t)(c - from);
        }
    }
}

static uint32_t steps_to(const struct table *t, const struct tw_alloc_job *j, double x)
{
    double s = floor((x * j->p0_w - j->floor_w) / t->step_w + 1e-9);
    return s <= 0.0 ? 0 : s >= GRID ? GRID : (uint32_t)s;
}

static void add_job(struct table *t, size_t i)
{
    const struct tw_alloc_job *j = &t->job[i];
    uint32_t most = steps_to(t, j, j->ceiling_w / j->p0_w), at = 0;
    for (size_t c = 0; c <= GRID; c++)
        t->next[c] = -(double)INFINITY;
    for (size_t p = 0; p < j->measured.n; p++) {
        uint32_t end = steps_to(t, j, j->measured.x[p]);
        end = end < most ? end : most;
        if (end >= at) {
            add_piece(t, i, at, end);
            at = end + 1;
        }
    }
    if (at <= most) /* above the uncapped draw: level */
        add_piece(t, i, at, most);
    double *swap = t->best;
    t->best = t->next;
    t->next = swap;
}

/* The piece of the measured curve that holds cap_w, within the job's limits. */
static void piece_of(const struct tw_alloc_job *j, double cap_w, double *ret_lo, double *ret_hi)
{
    const struct tw_measured *m = &j->measured;
    double lo = j->floor_w, hi = j->ceiling_w;
    for (size_t p = 0; p < m->n; p++) {
        double at = m->x[p] * j->p0_w;
        if (at <= cap_w && at > lo)
            lo = at;
        if (at > cap_w && at < hi)
            hi = at;
    }
    *ret_lo = lo;
    *ret_hi = hi;
}

/* Fractional knapsack over the chosen pieces: start at their low ends, fill the steepest first. */
static void polish(const struct tw_alloc_job *job, size_t n, double budget_w, double *cap_w, double *lo,
                   double *hi, double *slope)
{
    double left = budget_w;
    for (size_t i = 0; i < n; i++) {
        piece_of(&job[i], cap_w[i], &lo[i], &hi[i]);
        slope[i] =
            hi[i] > lo[i] ? (value_at(&job[i], hi[i]) - value_at(&job[i], lo[i])) / (hi[i] - lo[i]) : 0.0;
        cap_w[i] = lo[i];
        left -= lo[i];
    }
    while (left > 0.0) {
        size_t top = n;
        for (size_t i = 0; i < n; i++)
            if (slope[i] > 0.0 && (top == n || slope[i] > slope[top]))
                top = i;
        if (top == n)
            return;
        double give = fmin(left, hi[top] - lo[top]);
        cap_w[top] += give;
        left -= give;
        slope[top] = 0.0;
    }
}

enum tw_err tw_alloc_oracle(const struct tw_alloc_job *job, size_t n, double budget_w, struct tw_arena *arena,
                            double *ret_cap_w, struct tw_why *why)
{
    double ceilings, floors = 0.0;
    enum tw_err err = tw_alloc_take(job, n, budget_w, &ceilings, why);
    if (err != TW_OK)
        return err;
    if (n > TW_ORACLE_JOBS)
        return tw_fail(why, TW_ELIMIT, "oracle: %zu jobs, at most %d", n, TW_ORACLE_JOBS);
    for (size_t i = 0; i < n; i++) {
        if (job[i].measured.n == 0 || !(job[i].weight > 0.0))
            return tw_fail(why, TW_EINVAL, "oracle: job %zu has no measured points or no weight", i);
        floors += job[i].floor_w;
    }
    double spend = fmax(fmin(budget_w, ceilings) - floors, 0.0);
    size_t mark = tw_arena_mark(arena);
    struct table t = {.job = job, .n = n, .step_w = fmax(spend, 1e-12 * budget_w) / GRID};
    t.best = TW_ARENA_ARRAY(arena, double, GRID + 1); /* zeroed: no jobs bring nothing */
    t.next = TW_ARENA_ARRAY(arena, double, GRID + 1);
    t.queue_value = TW_ARENA_ARRAY(arena, double, GRID + 1);
    t.queue = TW_ARENA_ARRAY(arena, uint32_t, GRID + 1);
    t.choice = tw_arena_alloc(arena, n, (GRID + 1) * sizeof(uint16_t));
    double *lo = TW_ARENA_ARRAY(arena, double, n), *hi = TW_ARENA_ARRAY(arena, double, n),
           *slope = TW_ARENA_ARRAY(arena, double, n);
    if (t.best && t.next && t.queue_value && t.queue && t.choice && lo && hi && slope) {
        for (size_t i = 0; i < n; i++)
            add_job(&t, i);
        uint32_t c = GRID;
        for (size_t i = n; i-- > 0;) {
            uint16_t took = t.choice[i * (GRID + 1) + c];
            ret_cap_w[i] = fmin(job[i].floor_w + took * t.step_w, job[i].ceiling_w);
            c -= took;
        }
        for (int turn = 0; turn < 2; turn++) /* again: what is left may reach into the pieces above */
            polish(job, n, budget_w, ret_cap_w, lo, hi, slope);
    } else {
        err = tw_fail(why, TW_ENOMEM, "oracle: the arena is too small for %zu jobs", n);
    }
    tw_arena_release(arena, mark);
    return err;
}
