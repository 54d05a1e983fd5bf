/* SPDX-License-Identifier: Apache-2.0 */
/* nn/gru.h - a gated recurrent unit with a linear head: one step to serve, a stretch of steps to train.
 *
 * The cell is that of PyTorch (Cho et al. 2014, with the reset gate after the product, as cuDNN has it):
 *
 *     r = sigmoid(W_r h + V_r x + b_r)      z = sigmoid(W_z h + V_z x + b_z)
 *     n = tanh(V_n x + b_nx + r (W_n h + b_nh))
 *     h' = (1 - z) n + z h                  y = U h' + S x + c
 *
 * S lets an output follow an input directly (a forecast near the present value needs no hidden unit for it).
 *
 * A row is [h | x | 1 | padding], so that one product covers state, inputs and bias. Everything here is float,
 * works on memory of the caller, and gives the same bytes for the same table of kernels. */
#ifndef TW_NN_GRU_H
#define TW_NN_GRU_H

#include "base/rng.h"
#include "nn/kern.h"

#include <stddef.h>

struct tw_gru_shape {
    size_t n_in;   /* inputs */
    size_t hidden; /* units: a multiple of TW_KERN_PAD */
    size_t n_out;  /* outputs */
};

/* The parameters lie in one block, in this order. Rows are those of the row layout: h, x, 1. Columns of gates
 * are r, z, n, of `hidden` each; in n the rows of h are W_n and the rest V_n and b_nx. Columns of out are
 * padded. name, rows, columns */
#define TW_GRU_PARAM_MAP(X)                                                                                    \
    X(gates, s->hidden + s->n_in + 1, 3 * s->hidden)                                                           \
    X(b_nh, 1, s->hidden)                                                                                      \
    X(out, s->hidden + s->n_in + 1, tw_gru_out_ld(s))

static inline size_t tw_gru_pad(size_t n)
{
    return (n + TW_KERN_PAD - 1) / TW_KERN_PAD * TW_KERN_PAD;
}

static inline size_t tw_gru_out_ld(const struct tw_gru_shape *s)
{
    return tw_gru_pad(s->n_out);
}

/* Floats in a row. */
static inline size_t tw_gru_row_ld(const struct tw_gru_shape *s)
{
    return s->hidden + tw_gru_pad(s->n_in + 1);
}

/* Floats in the block of parameters, padding included. */
size_t tw_gru_n_param(const struct tw_gru_shape *s);
/* Numbers that are learned: without padding. */
size_t tw_gru_n_learned(const struct tw_gru_shape *s);

struct tw_gru_view { /* where the parts of a block begin */
    float *gates, *b_nh, *out;
};
struct tw_gru_view tw_gru_view(const struct tw_gru_shape *s, float *param);

/* Uniform in +-1/sqrt(hidden), as PyTorch does; head weights of inputs (S) and padding are 0. */
void tw_gru_init(const struct tw_gru_shape *s, struct tw_rng *rng, float *param);

/* One step of m rows, in place: row[m][row_ld] holds h, the inputs and the 1; h becomes h' and y[m][out_ld] the
 * outputs. gate[m][4 hidden] is scratch. Nothing is allocated. */
void tw_gru_step(const struct tw_kern *k, const struct tw_gru_shape *s, const float *param, size_t m,
                 float *row, float *gate, float *y);

/* A stretch of t steps of m rows that are trained together, with what backward needs. */
struct tw_gru_stretch {
    size_t t, m;
    float *row;  /* [t + 1][m][row_ld]: the caller fills h of step 0, and inputs and 1 of steps 0 .. t - 1; the
                    pass fills h of steps 1 .. t */
    float *want; /* [t][m][out_ld]: targets, NaN where there is none; the caller fills it */
    float *gate, *dg, *dh, *y, *dy;
};

/* Bytes of the memory behind a stretch, and its division; mem is aligned to 64 and zeroed. */
size_t tw_gru_stretch_bytes(const struct tw_gru_shape *s, size_t t, size_t m);
void tw_gru_stretch_init(struct tw_gru_stretch *st, const struct tw_gru_shape *s, size_t t, size_t m,
                         void *mem);

/* What one step of training shares between shards. */
struct tw_gru_train {
    const struct tw_kern *kern;
    struct tw_gru_shape shape;
    const float *param;
    const float *turned; /* the transposed weights: tw_gru_turn */
    const float *level;  /* [out_ld] quantile of each output */
    const float *weight; /* [out_ld] what it counts for; 0 for padding */
    size_t first_scored; /* outputs and loss from this step on: 0 for all, t - 1 for the last alone */
    float scale;         /* the gradient is that of scale times the weighted loss */
};

size_t tw_gru_n_turned(const struct tw_gru_shape *s); /* floats */
void tw_gru_turn(const struct tw_gru_shape *s, const float *param, float *turned);

/* Forward and backward over the stretch, through all its steps and not beyond (truncated backpropagation).
 * grad[n_param] and loss[out_ld] (weighted, by output, summed) are added to. */
void tw_gru_pass(const struct tw_gru_train *tr, struct tw_gru_stretch *st, float *grad, float *loss);

/* Multiplications and additions of such a pass in matrix products, for a floor: 2 per weight and use, without
 * biases and padding. */
double tw_gru_pass_flops(const struct tw_gru_shape *s, size_t t, size_t m, size_t first_scored);

#endif
