/* SPDX-License-Identifier: Apache-2.0 */
/* Ten training steps of a GRU from fixed weights: losses of gru_ten_steps.py (numpy 2, autograd, float64). */
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

static const double expected[10] = {0.175937245, 0.155852237, 0.146539383, 0.141129758, 0.137292459,
                                    0.133478992, 0.129980502, 0.127461211, 0.127813450, 0.128891854};

enum { I = 3, H = 16, O = 5, T = 12, M = 8, ROWS = H + I + 1 };

static const struct tw_gru_shape shape = {.n_in = I, .hidden = H, .n_out = O};

static void weights(float *param)
{
    const struct tw_gru_view v = tw_gru_view(&shape, param);
    memset(param, 0, tw_gru_n_param(&shape) * sizeof *param);
    for (size_t i = 0; i < (size_t)ROWS * 3 * H; i++)
        v.gates[i] = (float)(0.4 * sin(1.3 * (double)i + 0.5));
    for (size_t i = 0; i < H; i++)
        v.b_nh[i] = (float)(0.4 * sin(1.3 * (double)i + 0.9));
    for (size_t i = 0; i < (size_t)ROWS * O; i++)
        v.out[i / O * tw_gru_out_ld(&shape) + i % O] = (float)(0.4 * sin(1.1 * (double)i + 0.2));
}

static void data(struct tw_gru_stretch *st)
{
    const size_t ld = tw_gru_row_ld(&shape), out_ld = tw_gru_out_ld(&shape);
    for (size_t t = 0; t < T; t++)
        for (size_t m = 0; m < M; m++) {
            float *row = st->row + (t * M + m) * ld + H, *want = st->want + (t * M + m) * out_ld;
            for (size_t i = 0; i < I; i++)
                row[i] = (float)sin(0.9 * (double)t + 1.7 * (double)m + 2.3 * (double)i);
            row[I] = 1.0f;
            for (size_t o = 0; o < out_ld; o++)
                want[o] = o < O ? (float)(cos(0.5 * (double)t + 0.3 * (double)m) * (double)(o + 1) / 5.0) : NAN;
        }
}

static void run(const struct tw_kern *kern)
{
    enum { MOST = 2048 };
    static float param[MOST], grad[MOST], m[MOST], v[MOST], turned[MOST];
    float level[16] = {0.1f, 0.3f, 0.5f, 0.7f, 0.9f}, weight[16] = {1, 1, 1, 1, 1};
    const size_t n = tw_gru_n_param(&shape), bytes = tw_gru_stretch_bytes(&shape, T, M);
    assert_true(n <= MOST && tw_gru_n_turned(&shape) <= MOST);
    void *mem = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(mem);
    memset(mem, 0, bytes);
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    struct tw_gru_stretch st;
    tw_gru_stretch_init(&st, &shape, T, M, mem);
    data(&st);
    weights(param);
    const struct tw_adamw opt = {.beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .decay = 0.01f};
    const struct tw_gru_train tr = {.kern = kern,
                                    .shape = shape,
                                    .param = param,
                                    .turned = turned,
                                    .level = level,
                                    .weight = weight,
                                    .scale = 1.0f / (T * M * O)};
    for (size_t step = 1; step <= 10; step++) {
        float loss[16] = {0};
        double total = 0.0;
        memset(grad, 0, sizeof grad);
        tw_gru_turn(&shape, param, turned);
        tw_gru_pass(&tr, &st, grad, loss);
        for (size_t o = 0; o < 16; o++)
            total += (double)loss[o];
        total /= (double)(T * M * O);
        if (!(fabs(total - expected[step - 1]) <= 2e-5 * expected[step - 1]))
            fail_msg("%s, step %zu: loss %.9f, %.9f was expected", kern->name, step, total, expected[step - 1]);
        (void)tw_grad_clip(n, grad, 0.05);
        tw_adamw_step(&opt, n, step, 0.01f, grad, m, v, param);
    }
    free(mem);
}

static void test_ten_steps(void **state)
{
    (void)state;
    static const char *const names[] = {"base", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tw_kern_find(names[i]))
            run(tw_kern_find(names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ten_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
