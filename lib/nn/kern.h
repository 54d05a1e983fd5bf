/* SPDX-License-Identifier: Apache-2.0 */
/* nn/kern.h - the inner loops of the networks, compiled once per instruction set and chosen at run time.
 *
 * Matrices are row-major floats; ld* are row strides in floats. Widths that a comment calls "padded" are
 * multiples of TW_KERN_PAD, and rows of that matrix may be read and written up to the padded width. Pointers
 * need no alignment. Sums run in one fixed order, so a table gives the same bytes on every call; two tables may
 * differ in the last bits (fused multiply-add). Values must be finite. Nothing here allocates or keeps state.
 */
#ifndef TW_NN_KERN_H
#define TW_NN_KERN_H

#include <stdbool.h>
#include <stddef.h>

#define TW_KERN_PAD 16

struct tw_kern {
    const char *name; /* "base", "avx2", "avx512", "neon" */

    /* c[m][n] = a[m][k] b[k][n], or += when add. n padded. */
    void (*gemm)(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb, float *c,
                 size_t ldc, bool add);
    /* c[m][n] += a[k][m]^T b[k][n]. n padded. */
    void (*gemm_tn)(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
                    float *c, size_t ldc);
    /* c[n] += the sum over the rows of a[m][n]. n padded. */
    void (*colsum)(size_t m, size_t n, const float *a, size_t lda, float *c);

    /* GRU gates of m rows of width h (padded). g[m][4h] holds r, z, nh, nx before activation; nh lacks its bias
     * b_nh[h]. Writes the activated r, z, (nh + b_nh), n back when keep, and
     *     h_new = (1 - z) n + z h_old,  n = tanh(nx + r (nh + b_nh)).
     * h_new may be h_old. */
    void (*gru_act)(size_t m, size_t h, float *g, const float *b_nh, const float *h_old, size_t ld_old,
                    float *h_new, size_t ld_new, bool keep);
    /* Backward of the same: g[m][4h] as gru_act left it, dh[m][h] the gradient of h_new. dg[m][4h] becomes the
     * gradient of r, z, nh, nx before activation, dh the part of h_old's gradient that does not pass through
     * the weights (dh z). */
    void (*gru_back)(size_t m, size_t h, const float *g, const float *h_old, size_t ld_old, float *dh,
                     float *dg);

    /* Pinball loss of m rows of n predictions (n padded). want[m][n] is NaN where there is no target; level[n]
     * the quantile, weight[n] what an output counts for (0 for padding). Adds each row's weighted loss to
     * loss[n] by column and writes its gradient, times scale, to d[m][n]. At a tie the gradient is
     * (1 - level). */
    void (*pinball)(size_t m, size_t n, const float *y, const float *want, const float *level,
                    const float *weight, float scale, float *d, float *loss);
};

/* The widest table that this processor runs; never NULL. */
const struct tw_kern *tw_kern_best(void);
/* By name; NULL when there is none of that name or the processor cannot run it. */
const struct tw_kern *tw_kern_find(const char *name);

#endif
