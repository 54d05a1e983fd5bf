/* SPDX-License-Identifier: Apache-2.0 */
/* nn/adamw.h - Adam with decoupled weight decay (Loshchilov and Hutter 2019), and clipping by global norm. */
#ifndef TW_NN_ADAMW_H
#define TW_NN_ADAMW_H

#include <stddef.h>

struct tw_adamw {
    float beta1, beta2, eps, decay; /* 0.9, 0.999, 1e-8, 0.01 are the usual ones; decay 0 is Adam */
};

/* Step number `step` (from 1) of n parameters. m and v [n] are the moments, zero before the first step. */
void tw_adamw_step(const struct tw_adamw *opt, size_t n, size_t step, float rate, const float *grad, float *m,
                   float *v, float *param);

/* Scale grad [n] so that its Euclidean norm is at most limit (0: leave it). Returns the norm before, NaN or
 * infinite when the gradient is. */
double tw_grad_clip(size_t n, float *grad, double limit);

#endif
