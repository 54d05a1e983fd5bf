/* SPDX-License-Identifier: Apache-2.0 */
/* nn: every table of kernels that this processor runs, against naive versions in double precision written here;
 * the GRU's gradients against central differences of a naive double network; AdamW against its formula. */
#include "base/rng.h"
#include "nn/adamw.h"
#include "nn/gru.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = {"base", "avx2", "avx512", "neon"};
static const float guard = 12345.5f;

static void fill(float *p, size_t n, struct tw_rng *rng)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (float)tw_rng_normal(rng);
}

static void check_near(const char *what, const char *name, double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol))
        fail_msg("%s (%s): got %.9g, want %.9g", what, name, got, want);
}

/* ---- matrix products, with guards on every side of c ---- */

static void product_case(const struct tw_kern *k, bool turned, size_t m, size_t n, size_t depth, bool add)
{
    struct tw_rng rng;
    tw_rng_init(&rng, m * 1000 + n, depth);
    const size_t lda = (turned ? m : depth) + 3, ldb = n + 5, ldc = n + 7, rows_a = turned ? depth : m;
    float *a = test_malloc(rows_a * lda * sizeof *a), *b = test_malloc(depth * ldb * sizeof *b);
    float *c = test_malloc((m + 2) * ldc * sizeof *c), *was = test_malloc((m + 2) * ldc * sizeof *c);
    fill(a, rows_a * lda, &rng);
    fill(b, depth * ldb, &rng);
    for (size_t i = 0; i < (m + 2) * ldc; i++)
        c[i] = guard;
    for (size_t i = 0; i < m; i++)
        fill(c + (i + 1) * ldc, n, &rng);
    memcpy(was, c, (m + 2) * ldc * sizeof *c);
    if (turned)
        k->gemm_tn(m, n, depth, a, lda, b, ldb, c + ldc, ldc);
    else
        k->gemm(m, n, depth, a, lda, b, ldb, c + ldc, ldc, add);
    for (size_t i = 0; i < m + 2; i++)
        for (size_t j = 0; j < ldc; j++) {
            double want = (double)was[i * ldc + j];
            if (i >= 1 && i <= m && j < n) {
                if (!add && !turned)
                    want = 0.0;
                for (size_t p = 0; p < depth; p++)
                    want +=
                        (double)(turned ? a[p * lda + i - 1] : a[(i - 1) * lda + p]) * (double)b[p * ldb + j];
                check_near("product", k->name, (double)c[i * ldc + j], want, 1e-5 * (double)(depth + 2));
            } else {
                check_near("guard", k->name, (double)c[i * ldc + j], (double)guard, 0.0);
            }
        }
    test_free(a);
    test_free(b);
    test_free(c);
    test_free(was);
}

static void test_products(void **state)
{
    (void)state;
    static const size_t ms[] = {1, 2, 3, 4, 5, 6, 7, 13, 64}, ns[] = {16, 48, 64, 192}, ks[] = {1, 7, 71};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct tw_kern *k = tw_kern_find(names[i]);
        if (!k)
            continue;
        for (size_t m = 0; m < sizeof ms / sizeof *ms; m++)
            for (size_t n = 0; n < sizeof ns / sizeof *ns; n++)
                for (size_t d = 0; d < sizeof ks / sizeof *ks; d++) {
                    product_case(k, false, ms[m], ns[n], ks[d], false);
                    product_case(k, false, ms[m], ns[n], ks[d], true);
                    product_case(k, true, ms[m], ns[n], ks[d], true);
                }
    }
}

static void test_tables(void **state)
{
    (void)state;
    assert_non_null(tw_kern_best());
    assert_ptr_equal(tw_kern_find(tw_kern_best()->name), tw_kern_best());
    assert_non_null(tw_kern_find("base"));
    assert_null(tw_kern_find("abacus"));
}

/* ---- gates ---- */

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static void test_gates(void **state)
{
    (void)state;
    enum { M = 3, H = 16 };
    for (size_t which = 0; which < sizeof names / sizeof *names; which++) {
        const struct tw_kern *k = tw_kern_find(names[which]);
        if (!k)
            continue;
        struct tw_rng rng;
        tw_rng_init(&rng, 5, 0);
        float g[M * 4 * H + 1], was[M * 4 * H], b[H], old[M * (H + 1)], now[M * (H + 2) + 1];
        fill(g, M * 4 * H, &rng);
        for (size_t i = 0; i < M * 4 * H; i++)
            g[i] *= 4.0f;
        g[0] = 100.0f; /* saturated both ways, and far beyond what exp holds */
        g[1] = -100.0f;
        g[H] = 1000.0f;
        g[H + 1] = -1000.0f;
        g[3 * H + 2] = 500.0f;
        g[3 * H + 3] = -500.0f;
        memcpy(was, g, sizeof was);
        fill(b, H, &rng);
        fill(old, M * (H + 1), &rng);
        g[M * 4 * H] = now[M * (H + 2)] = guard;
        k->gru_act(M, H, g, b, old, H + 1, now, H + 2, true);
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < H; j++) {
                const float *w = was + i * 4 * H + j;
                double r = sigmoid((double)w[0]), z = sigmoid((double)w[H]);
                double nh = (double)w[2 * H] + (double)b[j], n = tanh((double)w[3 * H] + r * nh);
                double h = (1.0 - z) * n + z * (double)old[i * (H + 1) + j];
                check_near("h", k->name, (double)now[i * (H + 2) + j], h, 2e-6);
                check_near("r", k->name, (double)g[i * 4 * H + j], r, 1e-6);
                check_near("z", k->name, (double)g[i * 4 * H + H + j], z, 1e-6);
                check_near("n", k->name, (double)g[i * 4 * H + 3 * H + j], n, 2e-6);
            }
        check_near("guard", k->name, (double)g[M * 4 * H], (double)guard, 0.0);
        check_near("guard", k->name, (double)now[M * (H + 2)], (double)guard, 0.0);
    }
}

static void test_pinball(void **state)
{
    (void)state;
    /* two rows by hand: y 1, want 3, level 0.9: loss 1.8, slope -0.9; y 5, want 3: loss 0.2, slope +0.1 */
    for (size_t which = 0; which < sizeof names / sizeof *names; which++) {
        const struct tw_kern *k = tw_kern_find(names[which]);
        if (!k)
            continue;
        float y[32] = {0}, want[32], level[16] = {0}, weight[16] = {0}, d[33], loss[17] = {0};
        for (size_t i = 0; i < 32; i++)
            want[i] = NAN;
        level[2] = 0.9f;
        weight[2] = 2.0f;
        y[2] = 1.0f;
        y[16 + 2] = 5.0f;
        want[2] = want[16 + 2] = 3.0f;
        d[32] = loss[16] = guard;
        k->pinball(2, 16, y, want, level, weight, 0.5f, d, loss);
        check_near("loss", k->name, (double)loss[2], 2.0 * (1.8 + 0.2), 1e-6);
        check_near("slope", k->name, (double)d[2], -0.9, 1e-6);
        check_near("slope", k->name, (double)d[16 + 2], 0.1, 1e-6);
        for (size_t i = 0; i < 32; i++)
            if (i % 16 != 2)
                check_near("masked", k->name, (double)d[i], 0.0, 0.0);
        check_near("guard", k->name, (double)d[32] + (double)loss[16], 2.0 * (double)guard, 0.0);
    }
}

/* ---- the network: a naive double version ---- */

enum { IN = 3, HID = 16, OUT = 5, T = 6, M = 7, ROWS = HID + IN + 1 };

static const struct tw_gru_shape shape = {.n_in = IN, .hidden = HID, .n_out = OUT};

struct naive {
    const double *param;
    const float *x;    /* [T][M][IN] */
    const float *h0;   /* [M][HID] */
    const float *want; /* [T][M][OUT], NaN = none */
    const float *level, *weight;
    size_t first_scored;
};

static double naive_loss(const struct naive *n, double *ret_last_h)
{
    const size_t out_ld = tw_gru_out_ld(&shape);
    const double *w = n->param, *b = w + (size_t)ROWS * 3 * HID, *u = b + HID;
    double loss = 0.0;
    for (size_t m = 0; m < M; m++) {
        double h[HID], next[HID];
        for (size_t j = 0; j < HID; j++)
            h[j] = (double)n->h0[m * HID + j];
        for (size_t t = 0; t < T; t++) {
            double x[IN + 1];
            for (size_t i = 0; i < IN; i++)
                x[i] = (double)n->x[(t * M + m) * IN + i];
            x[IN] = 1.0;
            for (size_t j = 0; j < HID; j++) {
                double a[4] = {0, 0, b[j], 0};
                for (size_t i = 0; i < HID; i++)
                    for (size_t gate = 0; gate < 3; gate++)
                        a[gate] += h[i] * w[i * 3 * HID + gate * HID + j];
                for (size_t i = 0; i < IN + 1; i++) {
                    a[0] += x[i] * w[(HID + i) * 3 * HID + j];
                    a[1] += x[i] * w[(HID + i) * 3 * HID + HID + j];
                    a[3] += x[i] * w[(HID + i) * 3 * HID + 2 * HID + j];
                }
                double z = sigmoid(a[1]);
                next[j] = (1.0 - z) * tanh(a[3] + sigmoid(a[0]) * a[2]) + z * h[j];
            }
            memcpy(h, next, sizeof h);
            for (size_t o = 0; o < OUT && t >= n->first_scored; o++) {
                double y = 0.0, want = (double)n->want[(t * M + m) * OUT + o], q = (double)n->level[o];
                for (size_t i = 0; i < HID; i++)
                    y += h[i] * u[i * out_ld + o];
                for (size_t i = 0; i < IN + 1; i++)
                    y += x[i] * u[(HID + i) * out_ld + o];
                if (!isnan(want))
                    loss += (double)n->weight[o] * fmax(q * (want - y), (q - 1.0) * (want - y));
            }
        }
        if (ret_last_h)
            memcpy(ret_last_h + m * HID, h, sizeof h);
    }
    return loss;
}

static void gradient_case(const struct tw_kern *k, size_t first_scored)
{
    struct tw_rng rng;
    tw_rng_init(&rng, 9, first_scored);
    const size_t n_param = tw_gru_n_param(&shape), out_ld = tw_gru_out_ld(&shape), ld = tw_gru_row_ld(&shape);
    float *param = test_malloc(n_param * sizeof(float)), *grad = test_malloc((n_param + 1) * sizeof(float));
    float *turned = test_malloc(tw_gru_n_turned(&shape) * sizeof(float));
    double *exact = test_malloc(n_param * sizeof(double));
    float x[T * M * IN], h0[M * HID], want[T * M * OUT], level[16] = {0}, weight[16] = {0}, loss[16] = {0};
    tw_gru_init(&shape, &rng, param);
    fill(tw_gru_view(&shape, param).out + HID * out_ld, OUT, &rng);
    fill(x, T * M * IN, &rng);
    fill(h0, M * HID, &rng);
    fill(want, T * M * OUT, &rng);
    for (size_t i = 0; i < T * M * OUT; i += 11)
        want[i] = NAN;
    for (size_t o = 0; o < OUT; o++) {
        level[o] = 0.1f + 0.2f * (float)o;
        weight[o] = 1.0f + 0.5f * (float)o;
    }
    for (size_t i = 0; i < n_param; i++)
        exact[i] = (double)param[i];
    void *mem = aligned_alloc(64, (tw_gru_stretch_bytes(&shape, T, M) + 127) / 64 * 64);
    assert_non_null(mem);
    memset(mem, 0, tw_gru_stretch_bytes(&shape, T, M));
    struct tw_gru_stretch st;
    tw_gru_stretch_init(&st, &shape, T, M, mem);
    for (size_t t = 0; t < T; t++)
        for (size_t m = 0; m < M; m++) {
            float *row = st.row + (t * M + m) * ld;
            if (t == 0)
                memcpy(row, h0 + m * HID, HID * sizeof(float));
            memcpy(row + HID, x + (t * M + m) * IN, IN * sizeof(float));
            row[HID + IN] = 1.0f;
            for (size_t o = 0; o < out_ld; o++)
                st.want[(t * M + m) * out_ld + o] = o < OUT ? want[(t * M + m) * OUT + o] : NAN;
        }
    for (size_t i = 0; i <= n_param; i++)
        grad[i] = i == n_param ? guard : 0.0f;
    tw_gru_turn(&shape, param, turned);
    const float scale = 0.25f;
    const struct tw_gru_train tr = {.kern = k,
                                    .shape = shape,
                                    .param = param,
                                    .turned = turned,
                                    .level = level,
                                    .weight = weight,
                                    .first_scored = first_scored,
                                    .scale = scale};
    tw_gru_pass(&tr, &st, grad, loss);

    struct naive n = {exact, x, h0, want, level, weight, first_scored};
    double last_h[M * HID], total = 0.0, largest = 0.0;
    double want_loss = naive_loss(&n, last_h);
    for (size_t o = 0; o < OUT; o++)
        total += (double)loss[o];
    check_near("loss", k->name, total, want_loss, 1e-5 * want_loss);
    for (size_t m = 0; m < M; m++)
        for (size_t j = 0; j < HID; j++)
            check_near("h", k->name, (double)st.row[(T * M + m) * ld + j], last_h[m * HID + j], 1e-5);
    for (size_t i = 0; i < n_param; i++) {
        const double eps = 1e-6, keep = exact[i];
        exact[i] = keep + eps;
        double up = naive_loss(&n, NULL);
        exact[i] = keep - eps;
        double down = naive_loss(&n, NULL);
        exact[i] = keep;
        double slope = (double)scale * (up - down) / (2.0 * eps);
        largest = fmax(largest, fabs(slope));
        check_near("gradient", k->name, (double)grad[i], slope, 2e-5 + 1e-4 * fabs(slope));
    }
    assert_true(largest > 0.5); /* the check would mean little on a flat loss */
    check_near("guard", k->name, (double)grad[n_param], (double)guard, 0.0);

    /* the served step gives what training saw */
    float *row = aligned_alloc(64, M * ld * sizeof(float)), gate[M * 4 * HID];
    float y[M * 16];
    assert_non_null(row);
    memcpy(row, st.row, M * ld * sizeof(float));
    tw_gru_step(k, &shape, param, M, row, gate, y);
    for (size_t m = 0; m < M; m++)
        for (size_t j = 0; j < HID; j++)
            check_near("step", k->name, (double)row[m * ld + j], (double)st.row[(M + m) * ld + j], 1e-6);
    free(row);
    free(mem);
    test_free(param);
    test_free(grad);
    test_free(turned);
    test_free(exact);
}

static void test_gradient(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct tw_kern *k = tw_kern_find(names[i]);
        if (k) {
            gradient_case(k, 0);
            gradient_case(k, T - 1);
        }
    }
}

static void test_flops(void **state)
{
    (void)state;
    /* the figure of others for this shape: 1203 MFLOP, 413 forward; they count the gradient of the first h */
    const struct tw_gru_shape s = {.n_in = 6, .hidden = 64, .n_out = 1};
    check_near("flops", "count", tw_gru_pass_flops(&s, 60, 256, 59) / 1e6, 1203.0, 7.0);
    assert_int_equal(tw_gru_n_learned(&s), 3 * 64 * (64 + 6 + 1) + 64 + 64 + 7);
}

static void test_adamw(void **state)
{
    (void)state;
    const struct tw_adamw opt = {.beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .decay = 0.1f};
    const double grad[3] = {0.5, -0.25, 0.125};
    float p = 2.0f, m = 0.0f, v = 0.0f;
    double want = 2.0, wm = 0.0, wv = 0.0;
    for (size_t step = 1; step <= 3; step++) {
        const float g = (float)grad[step - 1];
        tw_adamw_step(&opt, 1, step, 0.1f, &g, &m, &v, &p);
        wm = 0.9 * wm + 0.1 * grad[step - 1];
        wv = 0.99 * wv + 0.01 * grad[step - 1] * grad[step - 1];
        double mh = wm / (1.0 - pow(0.9, (double)step)), vh = wv / (1.0 - pow(0.99, (double)step));
        want -= 0.1 * (mh / (sqrt(vh) + 1e-8) + 0.1 * want);
        check_near("adamw", "step", (double)p, want, 1e-5);
    }
    float g[11];
    for (size_t i = 0; i < 11; i++)
        g[i] = i == 10 ? 4.0f : i == 9 ? 3.0f : 0.0f;
    check_near("norm", "clip", tw_grad_clip(11, g, 1.0), 5.0, 1e-6);
    check_near("clipped", "clip", (double)g[10], 0.8, 1e-6);
    check_near("norm", "clip", tw_grad_clip(11, g, 0.0), 1.0, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),  cmocka_unit_test(test_products), cmocka_unit_test(test_gates),
        cmocka_unit_test(test_pinball), cmocka_unit_test(test_gradient), cmocka_unit_test(test_flops),
        cmocka_unit_test(test_adamw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
