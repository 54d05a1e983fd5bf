/* SPDX-License-Identifier: Apache-2.0 */
/* feature/input.h - what a forecaster sees of a series at each step, kept up to date one sample at a time.
 *
 * The same code feeds training and serving. The state of n series is one block of bytes without pointers, so
 * that it can be copied, saved and restored. A sample is watts per GPU; inside, power is in units of the
 * scaler,
 *
 *     u = (watts * gain - mean_w) / std_w,      gain 1 unless a device was given its own.
 *
 * A missing sample (NaN) repeats the last one for at most TW_INPUT_HOLD_S; after that the series starts anew.
 * All series of a block step together.
 *
 * The inputs, in this order (windows hold what is there when less than their length has passed): */
#ifndef TW_FEATURE_INPUT_H
#define TW_FEATURE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* id, name, help */
#define TW_INPUT_MAP(X)                                                                                        \
    X(MEAN60, "mean60", "mean over the past 60 s: the level")                                                  \
    X(LAST, "last", "power at this step, from the level")                                                      \
    X(PREVIOUS, "previous", "power one step before, from the level")                                           \
    X(MEAN10, "mean10", "mean over the past 10 s, from the level")                                             \
    X(STD60, "std60", "standard deviation over the past 60 s")                                                 \
    X(ELAPSED, "elapsed", "time since the first sample, saturating: t / (t + 600 s)")

enum tw_input {
#define TW_INPUT_ENUM(id, name, help) TW_INPUT_##id,
    TW_INPUT_MAP(TW_INPUT_ENUM)
#undef TW_INPUT_ENUM
        TW_INPUT_COUNT
};

#define TW_INPUT_HOLD_S 60.0
/* Deviations and spread are enlarged: they are small against the range of levels, and a network that sees
 * mostly levels learns to know runs by them. */
#define TW_INPUT_ZOOM 3.0

struct tw_scaler {
    double mean_w, std_w; /* std_w > 0 */
};

struct tw_input_shape {
    double step_s;
    struct tw_scaler scaler;
    size_t w10, w60;  /* steps in 10 s and 60 s, at least 1 */
    size_t hold;      /* steps */
    size_t look_back; /* values kept: the most steps back that tw_input_lag may ask for, plus one; >= w60 */
};

/* look_back is raised to w60 when it is less. */
void tw_input_shape_init(struct tw_input_shape *ret, double step_s, struct tw_scaler scaler, size_t look_back);

/* Steps in `seconds`, nearest, halves down, at least 1: 30 s are 3 steps of 11 s, 5 s are 2 of 2 s. */
size_t tw_input_steps(double seconds, double step_s);

struct tw_input_state {      /* views into the block */
    uint64_t *at;            /* [1] steps taken: the place in the rings */
    double *s10, *s60, *q60; /* [n] running sums, and sum of squares */
    float *ring;             /* [n][look_back] */
    float *gain;             /* [n] */
    uint32_t *age;           /* [n] steps since the first sample; 0: none yet */
    uint32_t *missing;       /* [n] steps since the last sample of its own */
    uint32_t *before;        /* [n] steps that the series had run before its first sample; 0 unless told */
    size_t n;
};

/* A multiple of 64. */
size_t tw_input_bytes(const struct tw_input_shape *s, size_t n);
/* Views of a block (aligned to 64) that tw_input_reset has prepared or that was saved. */
struct tw_input_state tw_input_view(const struct tw_input_shape *s, size_t n, void *block);
void tw_input_reset(const struct tw_input_shape *s, size_t n, void *block); /* nothing seen, gain 1 */

/* Take sample x_w of series i at the present step; call for every i of the block, then tw_input_advance. */
void tw_input_push(const struct tw_input_shape *s, struct tw_input_state *st, size_t i, float x_w);
void tw_input_advance(struct tw_input_state *st);
/* Series i starts anew: nothing seen. Its gain stays. */
void tw_input_forget(struct tw_input_state *st, size_t i);

/* Before tw_input_advance: the inputs of series i (zeros when none was seen), and the value lag steps back. lag
 * is below look_back; what lies before the first sample reads as the first. */
void tw_input_read(const struct tw_input_shape *s, const struct tw_input_state *st, size_t i,
                   float ret[static TW_INPUT_COUNT]);
float tw_input_lag(const struct tw_input_shape *s, const struct tw_input_state *st, size_t i, size_t lag);

/* Has series i a full minute of past? */
static inline bool tw_input_is_ready(const struct tw_input_shape *s, const struct tw_input_state *st, size_t i)
{
    return st->age[i] > s->w60;
}

#endif
