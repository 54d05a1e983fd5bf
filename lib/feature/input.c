/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums are doubles: adding and taking away a million times leaves an error far below a float's. */
#include "feature/input.h"

#include <math.h>
#include <string.h>

size_t tw_input_steps(double seconds, double step_s)
{
    const double steps = ceil(seconds / step_s - 0.5);
    return steps < 1.0 ? 1 : (size_t)steps;
}

void tw_input_shape_init(struct tw_input_shape *ret, double step_s, struct tw_scaler scaler, size_t look_back)
{
    *ret = (struct tw_input_shape){.step_s = step_s,
                                   .scaler = scaler,
                                   .w10 = tw_input_steps(10.0, step_s),
                                   .w60 = tw_input_steps(60.0, step_s),
                                   .hold = tw_input_steps(TW_INPUT_HOLD_S, step_s)};
    ret->look_back = look_back > ret->w60 ? look_back : ret->w60;
}

/* part, type, elements */
#define STATE_MAP(X)                                                                                           \
    X(at, uint64_t, 8)                                                                                         \
    X(s10, double, n)                                                                                          \
    X(s60, double, n)                                                                                          \
    X(q60, double, n)                                                                                          \
    X(ring, float, n * s->look_back)                                                                           \
    X(gain, float, n)                                                                                          \
    X(age, uint32_t, n)                                                                                        \
    X(missing, uint32_t, n)                                                                                    \
    X(before, uint32_t, n)

size_t tw_input_bytes(const struct tw_input_shape *s, size_t n)
{
    size_t bytes = 0;
#define COUNT(name, type, count) bytes += (count) * sizeof(type);
    STATE_MAP(COUNT)
#undef COUNT
    return (bytes + 63) / 64 * 64;
}

struct tw_input_state tw_input_view(const struct tw_input_shape *s, size_t n, void *block)
{
    unsigned char *at = block;
    struct tw_input_state st = {.n = n};
    /* doubles first, then floats and integers of four bytes: every part is aligned */
#define PLACE(name, type, count)                                                                               \
    st.name = (type *)(void *)at;                                                                              \
    at += (count) * sizeof(type);
    STATE_MAP(PLACE)
#undef PLACE
    return st;
}

void tw_input_reset(const struct tw_input_shape *s, size_t n, void *block)
{
    struct tw_input_state st = tw_input_view(s, n, block);
    memset(block, 0, tw_input_bytes(s, n));
    for (size_t i = 0; i < n; i++)
        st.gain[i] = 1.0f;
}

float tw_input_lag(const struct tw_input_shape *s, const struct tw_input_state *st, size_t i, size_t lag)
{
    if (lag >= st->age[i])
        lag = st->age[i] > 0 ? st->age[i] - 1 : 0;
    const size_t now = (size_t)(*st->at % s->look_back);
    return st->ring[i * s->look_back + (now >= lag ? now - lag : now + s->look_back - lag)];
}

void tw_input_forget(struct tw_input_state *st, size_t i)
{
    st->age[i] = st->before[i] = 0;
    st->s10[i] = st->s60[i] = st->q60[i] = 0.0;
}

void tw_input_push(const struct tw_input_shape *s, struct tw_input_state *st, size_t i, float x_w)
{
    float u;
    if (isfinite(x_w)) {
        u = (float)(((double)x_w * (double)st->gain[i] - s->scaler.mean_w) / s->scaler.std_w);
        st->missing[i] = 0;
    } else {
        if (st->age[i] == 0)
            return;
        if (++st->missing[i] > s->hold) {
            tw_input_forget(st, i);
            return;
        }
        /* the ring still holds the step before at one place less than the present one */
        const size_t now = (size_t)(*st->at % s->look_back);
        u = st->ring[i * s->look_back + (now > 0 ? now - 1 : s->look_back - 1)];
    }
    const size_t now = (size_t)(*st->at % s->look_back);
    float *ring = st->ring + i * s->look_back;
    if (st->age[i] >= s->w10) {
        const float out = ring[(now + s->look_back - s->w10) % s->look_back];
        st->s10[i] -= (double)out;
    }
    if (st->age[i] >= s->w60) {
        const double out = (double)ring[(now + s->look_back - s->w60) % s->look_back];
        st->s60[i] -= out;
        st->q60[i] -= out * out;
    }
    ring[now] = u;
    st->s10[i] += (double)u;
    st->s60[i] += (double)u;
    st->q60[i] += (double)u * (double)u;
    if (st->age[i] < UINT32_MAX)
        st->age[i]++;
}

void tw_input_advance(struct tw_input_state *st)
{
    ++*st->at;
}

void tw_input_read(const struct tw_input_shape *s, const struct tw_input_state *st, size_t i,
                   float ret[static TW_INPUT_COUNT])
{
    const size_t age = st->age[i];
    if (age == 0) {
        memset(ret, 0, TW_INPUT_COUNT * sizeof *ret);
        return;
    }
    const double n10 = (double)(age < s->w10 ? age : s->w10), n60 = (double)(age < s->w60 ? age : s->w60);
    const double mean60 = st->s60[i] / n60, var = st->q60[i] / n60 - mean60 * mean60;
    const double t_s = ((double)age + (double)st->before[i]) * s->step_s;
    ret[TW_INPUT_MEAN60] = (float)mean60;
    ret[TW_INPUT_LAST] = (float)(TW_INPUT_ZOOM * ((double)tw_input_lag(s, st, i, 0) - mean60));
    ret[TW_INPUT_PREVIOUS] = (float)(TW_INPUT_ZOOM * ((double)tw_input_lag(s, st, i, 1) - mean60));
    ret[TW_INPUT_MEAN10] = (float)(TW_INPUT_ZOOM * (st->s10[i] / n10 - mean60));
    ret[TW_INPUT_STD60] = var > 0.0 ? (float)(TW_INPUT_ZOOM * sqrt(var)) : 0.0f;
    ret[TW_INPUT_ELAPSED] = (float)(t_s / (t_s + 600.0));
}
