/* SPDX-License-Identifier: Apache-2.0 */
/* The cell as three products a step: r and z over the whole row, nh over h, nx over the inputs. Gates lie as
 * r, z, nh, nx, so that the three that go back through the weights of h are neighbours. */
#include "nn/gru.h"

#include <assert.h>
#include <math.h>
#include <string.h>

size_t tw_gru_n_param(const struct tw_gru_shape *s)
{
    size_t n = 0;
#define COUNT(name, rows, cols) n += (rows) * (cols);
    TW_GRU_PARAM_MAP(COUNT)
#undef COUNT
    return n;
}

size_t tw_gru_n_learned(const struct tw_gru_shape *s)
{
    return tw_gru_n_param(s) - (s->hidden + s->n_in + 1) * (tw_gru_out_ld(s) - s->n_out);
}

struct tw_gru_view tw_gru_view(const struct tw_gru_shape *s, float *param)
{
    struct tw_gru_view v;
    float *at = param;
#define PLACE(name, rows, cols)                                                                                \
    v.name = at;                                                                                               \
    at += (rows) * (cols);
    TW_GRU_PARAM_MAP(PLACE)
#undef PLACE
    return v;
}

/* The same for parameters that are only read. */
struct view {
    const float *gates, *b_nh, *out;
};

static struct view view_of(const struct tw_gru_shape *s, const float *param)
{
    struct view v;
    const float *at = param;
#define PLACE(name, rows, cols)                                                                                \
    v.name = at;                                                                                               \
    at += (rows) * (cols);
    TW_GRU_PARAM_MAP(PLACE)
#undef PLACE
    return v;
}

void tw_gru_init(const struct tw_gru_shape *s, struct tw_rng *rng, float *param)
{
    struct tw_gru_view v = tw_gru_view(s, param);
    const double bound = 1.0 / sqrt((double)s->hidden);
    const size_t rows = s->hidden + s->n_in + 1, ld = tw_gru_out_ld(s);
    memset(param, 0, tw_gru_n_param(s) * sizeof *param);
    for (size_t i = 0; i < rows * 3 * s->hidden; i++)
        v.gates[i] = (float)tw_rng_uniform(rng, -bound, bound);
    for (size_t i = 0; i < s->hidden; i++)
        v.b_nh[i] = (float)tw_rng_uniform(rng, -bound, bound);
    for (size_t i = 0; i < s->hidden; i++)
        for (size_t j = 0; j < s->n_out; j++)
            v.out[i * ld + j] = (float)tw_rng_uniform(rng, -bound, bound);
}

/* h_new may lie in the row itself (a served step) or in the row of the next step (training). */
static void cell(const struct tw_kern *k, const struct tw_gru_shape *s, const struct view *v, size_t m,
                 const float *row, float *gate, float *h_new, bool keep)
{
    const size_t h = s->hidden, ld = tw_gru_row_ld(s), n_x = s->n_in + 1;
    k->gemm(m, 2 * h, h + n_x, row, ld, v->gates, 3 * h, gate, 4 * h, false);
    k->gemm(m, h, h, row, ld, v->gates + 2 * h, 3 * h, gate + 2 * h, 4 * h, false);
    k->gemm(m, h, n_x, row + h, ld, v->gates + h * 3 * h + 2 * h, 3 * h, gate + 3 * h, 4 * h, false);
    k->gru_act(m, h, gate, v->b_nh, row, ld, h_new, ld, keep);
}

void tw_gru_step(const struct tw_kern *k, const struct tw_gru_shape *s, const float *param, size_t m,
                 float *row, float *gate, float *y)
{
    const struct view v = view_of(s, param);
    const size_t ld = tw_gru_row_ld(s), out_ld = tw_gru_out_ld(s);
    cell(k, s, &v, m, row, gate, row, false);
    k->gemm(m, out_ld, s->hidden + s->n_in + 1, row, ld, v.out, out_ld, y, out_ld, false);
}

/* part, floats */
#define STRETCH_MAP(X)                                                                                         \
    X(row, (t + 1) * m * tw_gru_row_ld(s))                                                                     \
    X(want, t *m *tw_gru_out_ld(s))                                                                            \
    X(gate, t *m * 4 * s->hidden)                                                                              \
    X(dg, m * 4 * s->hidden)                                                                                   \
    X(dh, m * s->hidden)                                                                                       \
    X(y, m *tw_gru_out_ld(s))                                                                                  \
    X(dy, m *tw_gru_out_ld(s))

size_t tw_gru_stretch_bytes(const struct tw_gru_shape *s, size_t t, size_t m)
{
    size_t n = 0;
#define COUNT(name, floats) n += (floats);
    STRETCH_MAP(COUNT)
#undef COUNT
    return n * sizeof(float);
}

void tw_gru_stretch_init(struct tw_gru_stretch *st, const struct tw_gru_shape *s, size_t t, size_t m, void *mem)
{
    float *at = mem;
    st->t = t;
    st->m = m;
#define PLACE(name, floats)                                                                                    \
    st->name = at;                                                                                             \
    at += (floats);
    STRETCH_MAP(PLACE)
#undef PLACE
}

size_t tw_gru_n_turned(const struct tw_gru_shape *s)
{
    return (3 * s->hidden + tw_gru_out_ld(s)) * s->hidden;
}

static void transpose(size_t rows, size_t cols, const float *a, size_t lda, float *ret)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            ret[j * rows + i] = a[i * lda + j];
}

void tw_gru_turn(const struct tw_gru_shape *s, const float *param, float *turned)
{
    const struct view v = view_of(s, param);
    transpose(s->hidden, 3 * s->hidden, v.gates, 3 * s->hidden, turned);
    transpose(s->hidden, tw_gru_out_ld(s), v.out, tw_gru_out_ld(s), turned + 3 * s->hidden * s->hidden);
}

/* Outputs, loss and gradient of the head at step t; adds to dh. The outputs see h of after the step and x of
 * it.
 */
static void head(const struct tw_gru_train *tr, struct tw_gru_stretch *st, size_t t, float *g_out, float *loss)
{
    const struct tw_kern *k = tr->kern;
    const struct tw_gru_shape *s = &tr->shape;
    const struct view v = view_of(s, tr->param);
    const size_t h = s->hidden, n_x = s->n_in + 1, ld = tw_gru_row_ld(s), out_ld = tw_gru_out_ld(s), m = st->m;
    const float *x = st->row + t * m * ld + h, *h_new = st->row + (t + 1) * m * ld;
    k->gemm(m, out_ld, h, h_new, ld, v.out, out_ld, st->y, out_ld, false);
    k->gemm(m, out_ld, n_x, x, ld, v.out + h * out_ld, out_ld, st->y, out_ld, true);
    k->pinball(m, out_ld, st->y, st->want + t * m * out_ld, tr->level, tr->weight, tr->scale, st->dy, loss);
    k->gemm_tn(h, out_ld, m, h_new, ld, st->dy, out_ld, g_out, out_ld);
    k->gemm_tn(n_x, out_ld, m, x, ld, st->dy, out_ld, g_out + h * out_ld, out_ld);
    k->gemm(m, h, out_ld, st->dy, out_ld, tr->turned + 3 * h * h, h, st->dh, h, true);
}

void tw_gru_pass(const struct tw_gru_train *tr, struct tw_gru_stretch *st, float *grad, float *loss)
{
    const struct tw_kern *k = tr->kern;
    const struct tw_gru_shape *s = &tr->shape;
    const struct view v = view_of(s, tr->param);
    const struct tw_gru_view g = tw_gru_view(s, grad);
    const size_t h = s->hidden, n_x = s->n_in + 1, ld = tw_gru_row_ld(s), m = st->m;
    assert(h % TW_KERN_PAD == 0);
    for (size_t t = 0; t < st->t; t++)
        cell(k, s, &v, m, st->row + t * m * ld, st->gate + t * m * 4 * h, st->row + (t + 1) * m * ld, true);
    memset(st->dh, 0, m * h * sizeof *st->dh);
    for (size_t t = st->t; t-- > 0;) {
        const float *row = st->row + t * m * ld;
        if (t >= tr->first_scored)
            head(tr, st, t, g.out, loss);
        k->gru_back(m, h, st->gate + t * m * 4 * h, row, ld, st->dh, st->dg);
        k->gemm_tn(h + n_x, 2 * h, m, row, ld, st->dg, 4 * h, g.gates, 3 * h);
        k->gemm_tn(h, h, m, row, ld, st->dg + 2 * h, 4 * h, g.gates + 2 * h, 3 * h);
        k->gemm_tn(n_x, h, m, row + h, ld, st->dg + 3 * h, 4 * h, g.gates + h * 3 * h + 2 * h, 3 * h);
        k->colsum(m, h, st->dg + 2 * h, 4 * h, g.b_nh);
        if (t > 0)
            k->gemm(m, h, 3 * h, st->dg, 4 * h, tr->turned, h, st->dh, h, true);
    }
}

double tw_gru_pass_flops(const struct tw_gru_shape *s, size_t t, size_t m, size_t first_scored)
{
    const double h = (double)s->hidden, x = (double)s->n_in, o = (double)s->n_out;
    const double cell = 3.0 * h * (h + x), back_h = 3.0 * h * h;
    const double head = o * (h + x), back_head = o * h;
    const double steps = (double)(t * m), scored = (double)((t - first_scored) * m);
    /* forward, weights' gradient, gradient of h (not of x, and none out of the first step) */
    return 2.0 * (steps * 2.0 * cell + (double)((t - 1) * m) * back_h + scored * (2.0 * head + back_head));
}
