/* SPDX-License-Identifier: Apache-2.0 */
/* Caps in steps of the device. All go down to their step first, and a lock-step job's GPUs down to the slowest;
 * then the rest of each limit goes to the step that brings most per watt, for as long as one fits. */
#include "alloc/tree_int.h"

#include <math.h>

#define HAIR 1e-9 /* of a step: what rounding takes off a whole number of them */

struct unit { /* what moves at once: a lock-step job, or a GPU */
    uint32_t job, first, n;
    double gain; /* per watt */
};

struct steps {
    const struct tw_tree *t;
    double *cap_w, *left_w; /* [n_gpus], [n_nodes] */
    struct unit *heap;
    size_t n;
};

static double floor_step(const struct tw_tree_gpu *g, double cap_w)
{
    if (!(g->step_w > 0.0))
        return cap_w;
    return fmax(g->floor_w, g->floor_w + floor((cap_w - g->floor_w) / g->step_w + HAIR) * g->step_w);
}

static double ceil_step(const struct tw_tree_gpu *g, double cap_w)
{
    if (!(g->step_w > 0.0))
        return fmax(cap_w, g->floor_w);
    return fmax(g->floor_w, g->floor_w + ceil((cap_w - g->floor_w) / g->step_w - HAIR) * g->step_w);
}

double tw_tree_floor(const struct tw_tree_gpu *g, double depth)
{
    return fmax(g->floor_w, fmin(ceil_step(g, (1.0 - depth) * g->p0_w), g->ceiling_w));
}

static double slowest(const struct steps *s, const struct unit *u)
{
    double x = (double)INFINITY;
    for (uint32_t i = u->first; i < u->first + u->n; i++)
        x = fmin(x, s->cap_w[i] / s->t->gpu[i].p0_w);
    return x;
}

/* The next x at which a unit's slowest GPU has moved by one step, and its gain per watt; 0 when it cannot. */
static double next_x(const struct steps *s, struct unit *u)
{
    const struct tw_tree_job *job = &s->t->job[u->job];
    double x = slowest(s, u), next = (double)INFINITY, cost = 0.0, all = 0.0, part = 0.0;
    u->gain = 0.0;
    for (uint32_t i = u->first; i < u->first + u->n; i++) {
        const struct tw_tree_gpu *g = &s->t->gpu[i];
        if (s->cap_w[i] <= x * g->p0_w * (1.0 + 1e-12) && g->step_w > 0.0)
            next = fmin(next, (s->cap_w[i] + g->step_w) / g->p0_w);
    }
    if (!isfinite(next))
        return x;
    for (uint32_t i = u->first; i < u->first + u->n; i++) {
        const struct tw_tree_gpu *g = &s->t->gpu[i];
        double cap = fmax(ceil_step(g, next * g->p0_w), s->cap_w[i]);
        if (!(cap <= g->ceiling_w * (1.0 + 1e-12)))
            return x;
        cost += cap - s->cap_w[i];
        part += g->p0_w;
    }
    for (uint32_t i = job->first; i < job->first + job->n; i++)
        all += s->t->gpu[i].p0_w;
    double worth = tw_curve_value(job->curve, next) - tw_curve_value(job->curve, x);
    u->gain = cost > 0.0 ? job->weight * part / all * worth / cost : 0.0;
    return next;
}

static void sift(struct steps *s, size_t i)
{
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= s->n)
            return;
        if (c + 1 < s->n && s->heap[c + 1].gain > s->heap[c].gain)
            c++;
        if (!(s->heap[c].gain > s->heap[i].gain))
            return;
        struct unit u = s->heap[i];
        s->heap[i] = s->heap[c];
        s->heap[c] = u;
        i = c;
    }
}

static void spend(struct steps *s, uint32_t node, double watts)
{
    for (;; node = s->t->node[node].parent) {
        s->left_w[node] -= watts;
        if (node == 0)
            return;
    }
}

static bool room_above(const struct steps *s, uint32_t node)
{
    for (;; node = s->t->node[node].parent) {
        if (!(s->left_w[node] >= 0.0))
            return false;
        if (node == 0)
            return true;
    }
}

/* Move a unit to x if every limit above its GPUs has room for it. */
static bool move(struct steps *s, const struct unit *u, double x)
{
    const struct tw_tree *t = s->t;
    bool room = true;
    for (uint32_t i = u->first; i < u->first + u->n; i++)
        spend(s, t->gpu[i].node, fmax(ceil_step(&t->gpu[i], x * t->gpu[i].p0_w) - s->cap_w[i], 0.0));
    for (uint32_t i = u->first; room && i < u->first + u->n; i++)
        room = room_above(s, t->gpu[i].node);
    for (uint32_t i = u->first; i < u->first + u->n; i++) {
        double cap = fmax(ceil_step(&t->gpu[i], x * t->gpu[i].p0_w), s->cap_w[i]);
        if (room)
            s->cap_w[i] = cap;
        else
            spend(s, t->gpu[i].node, s->cap_w[i] - cap);
    }
    return room;
}

static void round_down(struct steps *s, const bool *paused)
{
    const struct tw_tree *t = s->t;
    for (uint32_t j = 0; j < t->n_jobs; j++) {
        const struct tw_tree_job *job = &t->job[j];
        struct unit u = {.job = j, .first = job->first, .n = job->n};
        if (paused[j])
            continue;
        for (uint32_t i = u.first; i < u.first + u.n; i++)
            s->cap_w[i] = floor_step(&t->gpu[i], s->cap_w[i]);
        double x = slowest(s, &u);
        for (uint32_t i = u.first; job->lockstep && i < u.first + u.n; i++)
            s->cap_w[i] = fmin(s->cap_w[i], ceil_step(&t->gpu[i], x * t->gpu[i].p0_w));
        for (uint32_t i = u.first; i < u.first + u.n && !job->lockstep; i++)
            s->heap[s->n++] = (struct unit){.job = j, .first = i, .n = 1};
        if (job->lockstep)
            s->heap[s->n++] = u;
    }
}

static void take_room(struct steps *s)
{
    const struct tw_tree *t = s->t;
    for (uint32_t v = 0; v < t->n_nodes; v++) {
        double limit = v ? t->node[v].limit_w : fmin(t->node[v].limit_w, t->budget_w);
        s->left_w[v] = limit * (1.0 + 1e-12);
    }
    for (uint32_t v = 0; v < t->n_nodes; v++)
        spend(s, v, t->node[v].base_w);
    for (uint32_t i = 0; i < t->n_gpus; i++)
        spend(s, t->gpu[i].node, s->cap_w[i]);
}

enum tw_err tw_tree_step(const struct tw_tree *t, double *cap_w, const bool *paused, struct tw_arena *arena,
                         struct tw_why *why)
{
    size_t mark = tw_arena_mark(arena);
    struct steps s = {.t = t, .cap_w = cap_w};
    s.left_w = TW_ARENA_ARRAY(arena, double, t->n_nodes);
    s.heap = TW_ARENA_ARRAY(arena, struct unit, t->n_gpus);
    if (!(s.left_w && s.heap)) {
        tw_arena_release(arena, mark);
        return tw_fail(why, TW_ENOMEM, "tree: the arena is too small for %u GPUs", t->n_gpus);
    }
    round_down(&s, paused);
    take_room(&s);
    for (size_t i = 0; i < s.n; i++)
        (void)next_x(&s, &s.heap[i]);
    for (size_t i = s.n / 2; i-- > 0;)
        sift(&s, i);
    while (s.n > 0 && s.heap[0].gain > 0.0) {
        double x = next_x(&s, &s.heap[0]);
        if (move(&s, &s.heap[0], x))
            (void)next_x(&s, &s.heap[0]);
        else
            s.heap[0] = s.heap[--s.n];
        sift(&s, 0);
    }
    tw_arena_release(arena, mark);
    return TW_OK;
}
