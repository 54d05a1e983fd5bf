/* SPDX-License-Identifier: Apache-2.0 */
/* nn/kern_impl.h - the body of kern_<isa>.c. The including file defines
 *
 *   KERN_TABLE  the name of the table      KERN_NAME  its text
 *   KERN_VL     floats in a register       KERN_NV    registers across a tile (KERN_VL * KERN_NV floats)
 *
 * and is compiled with that instruction set switched on. A tile is 6 rows by KERN_NV registers: with 32
 * registers 24 hold sums, 4 the row of b and one the broadcast of a; with 16, 12 + 2 + 1.
 *
 * exp is 2^n times a polynomial of degree 6 on [-ln2/2, ln2/2] (coefficients 1/k!, relative error below 2e-7
 * there); n is rounded by adding 1.5 * 2^23, which leaves the integer in the low bits. */
#include "nn/kern.h"

#include <math.h>
#include <string.h>

typedef float vf __attribute__((vector_size(4 * KERN_VL)));
typedef int vi __attribute__((vector_size(4 * KERN_VL)));

#define INLINE static inline __attribute__((always_inline))

INLINE vf load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}

INLINE vf splat(float x)
{
    return x - (vf){0}; /* not +: that would turn -0 into 0, so it costs an addition */
}

INLINE vf choose(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

INLINE vf clamp(vf x, float limit)
{
    vf hi = splat(limit), lo = splat(-limit);
    x = choose(x < hi, x, hi);
    return choose(x > lo, x, lo);
}

/* |x| <= 87 */
INLINE vf exp_v(vf x)
{
    vf t = x * 1.44269504088896341f + 12582912.0f;
    vf n = t - 12582912.0f;
    vf r = x - n * 0.693145751953125f; /* ln 2 in two parts: the first has few bits, so n times it is exact */
    r = r - n * 1.42860682030941723212e-6f;
    vf p = r * (1.0f / 720.0f) + (1.0f / 120.0f);
    p = p * r + (1.0f / 24.0f);
    p = p * r + (1.0f / 6.0f);
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return (vf)((vi)p + ((vi)t << 23));
}

/* One tile: rows x (nv registers). at: a is stored [k][m]. Constant rows, nv, at after inlining. */
INLINE void tile(size_t rows, size_t nv, bool at, size_t k, const float *a, size_t lda, const float *b,
                 size_t ldb, float *c, size_t ldc, bool add)
{
    vf sum[6][KERN_NV];
#pragma GCC unroll 6
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < nv; j++)
            sum[i][j] = add ? load(c + i * ldc + j * KERN_VL) : (vf){0};
    for (size_t p = 0; p < k; p++) {
        vf row[KERN_NV];
#pragma GCC unroll 4
        for (size_t j = 0; j < nv; j++)
            row[j] = load(b + p * ldb + j * KERN_VL);
#pragma GCC unroll 6
        for (size_t i = 0; i < rows; i++) {
            vf x = splat(at ? a[p * lda + i] : a[i * lda + p]);
#pragma GCC unroll 4
            for (size_t j = 0; j < nv; j++)
                sum[i][j] += x * row[j];
        }
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < nv; j++)
            store(c + i * ldc + j * KERN_VL, sum[i][j]);
}

/* A column panel of nv registers: six rows at a time, then what is left. */
INLINE void panel(size_t nv, bool at, size_t m, size_t k, const float *a, size_t lda, const float *b,
                  size_t ldb, float *c, size_t ldc, bool add)
{
    const size_t a_row = at ? 1 : lda;
    size_t i = 0;
    for (; i + 6 <= m; i += 6)
        tile(6, nv, at, k, a + i * a_row, lda, b, ldb, c + i * ldc, ldc, add);
    a += i * a_row;
    c += i * ldc;
    switch (m - i) {
    case 5:
        tile(5, nv, at, k, a, lda, b, ldb, c, ldc, add);
        break;
    case 4:
        tile(4, nv, at, k, a, lda, b, ldb, c, ldc, add);
        break;
    case 3:
        tile(3, nv, at, k, a, lda, b, ldb, c, ldc, add);
        break;
    case 2:
        tile(2, nv, at, k, a, lda, b, ldb, c, ldc, add);
        break;
    case 1:
        tile(1, nv, at, k, a, lda, b, ldb, c, ldc, add);
        break;
    default:
        break;
    }
}

INLINE void gemm_any(bool at, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
                     size_t ldb, float *c, size_t ldc, bool add)
{
    size_t j = 0;
    for (; j + KERN_NV * KERN_VL <= n; j += KERN_NV * KERN_VL)
        panel(KERN_NV, at, m, k, a, lda, b + j, ldb, c + j, ldc, add);
    for (; j + KERN_VL <= n; j += KERN_VL)
        panel(1, at, m, k, a, lda, b + j, ldb, c + j, ldc, add);
}

static void gemm(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb, float *c,
                 size_t ldc, bool add)
{
    if (add)
        gemm_any(false, m, n, k, a, lda, b, ldb, c, ldc, true);
    else
        gemm_any(false, m, n, k, a, lda, b, ldb, c, ldc, false);
}

static void gemm_tn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
                    float *c, size_t ldc)
{
    gemm_any(true, m, n, k, a, lda, b, ldb, c, ldc, true);
}

static void colsum(size_t m, size_t n, const float *a, size_t lda, float *c)
{
    for (size_t j = 0; j < n; j += KERN_VL) {
        vf s = load(c + j);
        for (size_t i = 0; i < m; i++)
            s += load(a + i * lda + j);
        store(c + j, s);
    }
}

/* z = 1 / (1 + e^-az) and n = tanh(an) share one division: with u = 1 + e^-az, w = 1 + e^2an it is 1 / (u w).
 */
static void gru_act(size_t m, size_t h, float *g, const float *b_nh, const float *h_old, size_t ld_old,
                    float *h_new, size_t ld_new, bool keep)
{
    for (size_t i = 0; i < m; i++, g += 4 * h, h_old += ld_old, h_new += ld_new) {
        for (size_t j = 0; j < h; j += KERN_VL) {
            vf r = 1.0f / (1.0f + exp_v(-clamp(load(g + j), 30.0f)));
            vf nh = load(g + 2 * h + j) + load(b_nh + j);
            vf u = 1.0f + exp_v(-clamp(load(g + h + j), 30.0f));
            vf e = exp_v(2.0f * clamp(load(g + 3 * h + j) + r * nh, 9.0f));
            vf w = 1.0f + e;
            vf q = 1.0f / (u * w);
            vf z = w * q, n = (e - 1.0f) * (u * q);
            if (keep) {
                store(g + j, r);
                store(g + h + j, z);
                store(g + 2 * h + j, nh);
                store(g + 3 * h + j, n);
            }
            store(h_new + j, n + z * (load(h_old + j) - n));
        }
    }
}

static void gru_back(size_t m, size_t h, const float *g, const float *h_old, size_t ld_old, float *dh,
                     float *dg)
{
    for (size_t i = 0; i < m; i++, g += 4 * h, dg += 4 * h, h_old += ld_old, dh += h) {
        for (size_t j = 0; j < h; j += KERN_VL) {
            vf r = load(g + j), z = load(g + h + j), nh = load(g + 2 * h + j), n = load(g + 3 * h + j);
            vf d = load(dh + j), dz = d * z;
            vf dn = (d - dz) * (1.0f - n * n);
            vf dnr = dn * r;
            store(dg + j, dnr * nh * (1.0f - r));
            store(dg + h + j, (load(h_old + j) - n) * dz * (1.0f - z));
            store(dg + 2 * h + j, dnr);
            store(dg + 3 * h + j, dn);
            store(dh + j, dz);
        }
    }
}

static void pinball(size_t m, size_t n, const float *y, const float *want, const float *level,
                    const float *weight, float scale, float *d, float *loss)
{
    for (size_t j = 0; j < n; j += KERN_VL) {
        const vf q = load(level + j), w = load(weight + j), zero = {0};
        vf total = load(loss + j);
        for (size_t i = 0; i < m; i++) {
            vf t = load(want + i * n + j);
            vf e = t - load(y + i * n + j);
            vi known = t == t;
            vf slope = choose(e > zero, q, q - 1.0f);
            total += choose(known, w * slope * e, zero);
            store(d + i * n + j, choose(known, -(w * slope) * scale, zero));
        }
        store(loss + j, total);
    }
}

const struct tw_kern KERN_TABLE = {
    .name = KERN_NAME,
    .gemm = gemm,
    .gemm_tn = gemm_tn,
    .colsum = colsum,
    .gru_act = gru_act,
    .gru_back = gru_back,
    .pinball = pinball,
};
