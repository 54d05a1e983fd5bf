/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of each head are kept twice: in order of time, to know which one leaves, and sorted, to read quantiles
 * off. Both change by one a step. */
#include "base/arena.h"
#include "model/forecaster.h"

#include <math.h>
#include <string.h>

struct tw_sum {
    double step_s;
    size_t window, w60;
    uint64_t at;           /* steps taken */
    double *past;          /* [w60 + 1] sums that were, by at modulo; NaN unknown */
    double *said;          /* [w60 + 1][TW_HEADS] middle forecasts that were made */
    double *error;         /* [TW_HEADS][window] in order of time, a ring */
    double *sorted;        /* [TW_HEADS][window] */
    size_t n[TW_HEADS];    /* errors held */
    size_t head[TW_HEADS]; /* where the next one goes */
};

size_t tw_sum_bytes(double step_s, size_t window)
{
    const size_t w = tw_input_steps(60.0, step_s) + 1;
    return tw_arena_need(1, sizeof(struct tw_sum)) + tw_arena_need(w, sizeof(double)) +
           tw_arena_need(w * TW_HEADS, sizeof(double)) + 2 * tw_arena_need(window * TW_HEADS, sizeof(double));
}

struct tw_sum *tw_sum_init(double step_s, size_t window, void *mem)
{
    struct tw_arena a;
    tw_arena_init(&a, mem, tw_sum_bytes(step_s, window));
    struct tw_sum *s = TW_ARENA_ARRAY(&a, struct tw_sum, 1);
    const size_t w = tw_input_steps(60.0, step_s) + 1;
    s->step_s = step_s;
    s->window = window;
    s->w60 = w - 1;
    s->past = TW_ARENA_ARRAY(&a, double, w);
    s->said = TW_ARENA_ARRAY(&a, double, w *TW_HEADS);
    s->error = TW_ARENA_ARRAY(&a, double, window *TW_HEADS);
    s->sorted = TW_ARENA_ARRAY(&a, double, window *TW_HEADS);
    for (size_t i = 0; i < w; i++)
        s->past[i] = (double)NAN;
    for (size_t i = 0; i < w * TW_HEADS; i++)
        s->said[i] = (double)NAN;
    return s;
}

/* First place in sorted[n] that is not below x. */
static size_t place_of(const double *sorted, size_t n, double x)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (sorted[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void remember(struct tw_sum *s, size_t h, double e)
{
    double *sorted = s->sorted + h * s->window, *ring = s->error + h * s->window;
    if (s->n[h] == s->window) {
        const size_t out = place_of(sorted, s->n[h], ring[s->head[h]]);
        memmove(sorted + out, sorted + out + 1, (s->n[h] - out - 1) * sizeof *sorted);
        s->n[h]--;
    }
    const size_t in = place_of(sorted, s->n[h], e);
    memmove(sorted + in + 1, sorted + in, (s->n[h] - in) * sizeof *sorted);
    sorted[in] = e;
    s->n[h]++;
    ring[s->head[h]] = e;
    s->head[h] = (s->head[h] + 1) % s->window;
}

/* What head h should have said `steps` ago; NaN when a value since then is not known. */
static double came(const struct tw_sum *s, size_t h, size_t steps)
{
    const size_t w = s->w60 + 1;
    if (h < TW_LEADS)
        return s->past[s->at % w];
    double sum = 0.0;
    for (size_t k = 0; k < steps; k++)
        sum += s->past[(s->at + w - k) % w];
    return sum / (double)steps;
}

static void learn(struct tw_sum *s)
{
    for (size_t h = 0; h < TW_HEADS; h++) {
        const size_t steps = tw_input_steps(tw_head_s(h), s->step_s), w = s->w60 + 1;
        if (s->at < steps)
            continue;
        const double e = came(s, h, steps) - s->said[(s->at - steps) % w * TW_HEADS + h];
        if (isfinite(e))
            remember(s, h, e);
    }
}

/* Sums of the GPUs' own quantiles. */
static bool add_up(size_t n, const float *watts, const float *out, double ret[static TW_OUTPUTS])
{
    bool any = false;
    memset(ret, 0, TW_OUTPUTS * sizeof *ret);
    for (size_t i = 0; i < n; i++) {
        const float *o = out + i * TW_OUTPUTS;
        const bool ready = isfinite(o[1]);
        any = any || ready;
        for (size_t j = 0; j < TW_OUTPUTS; j++) {
            const float outer = isfinite(o[j]) ? o[j] : o[j / TW_QUANTILES * TW_QUANTILES + 1];
            ret[j] += ready ? (double)outer : isfinite(watts[i]) ? (double)watts[i] : 0.0;
        }
    }
    return any;
}

/* Rank q (n + 1) of n errors, as conformal prediction has it. */
static double error_at(const struct tw_sum *s, size_t h, double q)
{
    const double *sorted = s->sorted + h * s->window, n = (double)s->n[h];
    double at = q * (n + 1.0) - 1.0;
    at = at < 0.0 ? 0.0 : at > n - 1.0 ? n - 1.0 : at;
    const size_t i = (size_t)at, next = i + 1 < s->n[h] ? i + 1 : i;
    return sorted[i] + (at - (double)i) * (sorted[next] - sorted[i]);
}

void tw_sum_push(struct tw_sum *s, double sum_w, size_t n, const float *watts, const float *out,
                 float ret_out_w[static TW_OUTPUTS])
{
    double total[TW_OUTPUTS];
    const size_t w = s->w60 + 1, now = (size_t)(s->at % w);
    s->past[now] = sum_w;
    learn(s);
    const bool any = add_up(n, watts, out, total);
    for (size_t h = 0; h < TW_HEADS; h++) {
        const double middle = total[h * TW_QUANTILES + 1];
        s->said[now * TW_HEADS + h] = any ? middle : (double)NAN;
        for (size_t q = 0; q < TW_QUANTILES; q++) {
            double y = total[h * TW_QUANTILES + q];
            if (q != 1 && s->n[h] >= TW_SUM_FEW)
                y = middle + error_at(s, h, tw_quantile_level[q]);
            ret_out_w[h * TW_QUANTILES + q] = any ? (float)y : NAN;
        }
        /* errors may all lie on one side: the middle stays inside its band */
        float *o = ret_out_w + h * TW_QUANTILES;
        o[0] = o[0] < o[1] ? o[0] : o[1];
        o[2] = o[2] > o[1] ? o[2] : o[1];
    }
    s->at++;
}
