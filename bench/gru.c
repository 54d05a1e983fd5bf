/* SPDX-License-Identifier: Apache-2.0 */
/* bench_gru [--threads N] [--isa NAME] [--blas LIBRARY]: time of a GRU training step and of a stateful step,
 * beside their floors.
 *
 * Training: hidden 64, look-back 60, batch 256, 6 inputs, Adam, one output at the last step (the shape that
 * others were measured with), and with the whole head (42 outputs) at every step. Floor: floating-point
 * operations of the matrix products over the best sgemm rate that this run measures on as many threads, our own
 * kernel's or OpenBLAS's when it can be opened (libopenblas.so.0, or what --blas names). Times are medians, and
 * the fastest for machines that others use.
 *
 * Stateful step: inputs, cell and the head of 42 outputs, for n GPUs, hot. */
#include "base/rng.h"
#include "model/model.h"
#include "nn/adamw.h"
#include "nn/gru.h"
#include "sys/clock.h"
#include "sys/pool.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { HIDDEN = 64, STEPS = 60, BATCH = 256, INPUTS = 6, SHARDS = 8, ROUNDS = 41, SIDE = 1536 };

static const struct tw_kern *kern;
static const char *blas_library = "libopenblas.so.0";

static void *need(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p) {
        (void)fprintf(stderr, "bench_gru: %zu bytes are not to be had\n", bytes);
        exit(2);
    }
    memset(p, 0, bytes);
    return p;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_value);
    return x[n / 2];
}

static void fill(float *p, size_t n, struct tw_rng *rng)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (float)tw_rng_normal(rng);
}

/* ---- the floor: best sgemm, one square product a thread ---- */

/* Lengths are 32 or 64 bits wide by the build of the library; 64-bit arguments serve both on x86-64 and arm64.
 */
typedef void (*sgemm_fn)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                         int64_t, float, float *, int64_t);

struct product {
    float *a, *b, *c;
    sgemm_fn blas;
};

/* C = A B in blocks of B that stay in the second-level cache: rows of A in turn over 64 columns of a block. */
static void own_square(const struct product *p)
{
    enum { BLOCK = 256 };
    for (size_t k0 = 0; k0 < SIDE; k0 += BLOCK)
        for (size_t j = 0; j < SIDE; j += 64) {
            static _Thread_local float packed[BLOCK * 64];
            for (size_t k = 0; k < BLOCK; k++)
                memcpy(packed + k * 64, p->b + (k0 + k) * SIDE + j, 64 * sizeof(float));
            kern->gemm(SIDE, 64, BLOCK, p->a + k0, SIDE, packed, 64, p->c + j, SIDE, k0 > 0);
        }
}

static void square(void *arg, unsigned i)
{
    struct product *p = (struct product *)arg + i;
    if (p->blas)
        p->blas(101, 111, 111, SIDE, SIDE, SIDE, 1.0f, p->a, SIDE, p->b, SIDE, 0.0f, p->c, SIDE);
    else
        own_square(p);
}

static double rate(const struct tw_par *par, struct product *p, sgemm_fn blas, unsigned threads)
{
    double best = 0.0;
    for (unsigned i = 0; i < threads; i++)
        p[i].blas = blas;
    for (int round = 0; round < 7; round++) {
        int64_t t0 = tw_boot_us();
        tw_par_run(par, square, p, threads);
        double s = (double)(tw_boot_us() - t0) / 1e6;
        best = fmax(best, 2.0 * SIDE * SIDE * SIDE * threads / s);
    }
    return best;
}

static double floor_rate(const struct tw_par *par, unsigned threads)
{
    struct tw_rng rng;
    tw_rng_init(&rng, 1, 0);
    struct product *p = need(threads * sizeof *p);
    for (unsigned i = 0; i < threads; i++) {
        p[i] = (struct product){.a = need(sizeof(float) * SIDE * SIDE),
                                .b = need(sizeof(float) * SIDE * SIDE),
                                .c = need(sizeof(float) * SIDE * SIDE)};
        fill(p[i].a, (size_t)SIDE * SIDE, &rng);
        fill(p[i].b, (size_t)SIDE * SIDE, &rng);
    }
    double own = rate(par, p, NULL, threads), blas = 0.0;
    void *lib = dlopen(blas_library, RTLD_NOW | RTLD_LOCAL);
    if (lib) {
        sgemm_fn fn = NULL;
        void (*set)(int) = NULL;
        static const char *const product_names[] = {"cblas_sgemm", "cblas_sgemm64_", "scipy_cblas_sgemm64_"};
        static const char *const thread_names[] = {"openblas_set_num_threads", "openblas_set_num_threads64_",
                                                   "scipy_openblas_set_num_threads64_"};
        for (size_t i = 0; i < 3 && !fn; i++) {
            *(void **)&fn = dlsym(lib, product_names[i]);
            *(void **)&set = dlsym(lib, thread_names[i]);
        }
        if (set)
            set(1); /* one product a thread */
        if (fn)
            blas = rate(par, p, fn, threads);
    }
    printf("  sgemm %d^3 on %u thread%s: own %.1f GFLOP/s, OpenBLAS ", SIDE, threads, threads > 1 ? "s" : "",
           own / 1e9);
    if (blas > 0.0)
        printf("%.1f\n", blas / 1e9);
    else
        printf("not here (%s)\n", blas_library);
    for (unsigned i = 0; i < threads; i++) {
        free(p[i].a);
        free(p[i].b);
        free(p[i].c);
    }
    free(p);
    return fmax(own, blas);
}

/* ---- training ---- */

struct bench {
    struct tw_gru_train tr;
    struct tw_gru_stretch shard[SHARDS];
    float *grad, *loss; /* [SHARDS] each */
    size_t n_param;
};

static void pass(void *arg, unsigned i)
{
    struct bench *b = arg;
    float *grad = b->grad + i * b->n_param;
    memset(grad, 0, b->n_param * sizeof *grad);
    tw_gru_pass(&b->tr, &b->shard[i], grad, b->loss + i * tw_gru_out_ld(&b->tr.shape));
}

static void train(const struct tw_par *par, unsigned threads, size_t n_out, size_t first_scored, double sgemm)
{
    struct bench b = {.tr = {.kern = kern,
                             .shape = {.n_in = INPUTS, .hidden = HIDDEN, .n_out = n_out},
                             .first_scored = first_scored,
                             .scale = 1.0f / (BATCH * (float)(STEPS - first_scored))}};
    const struct tw_gru_shape *s = &b.tr.shape;
    struct tw_rng rng;
    tw_rng_init(&rng, 1, 0);
    const size_t ld = tw_gru_row_ld(s), out_ld = tw_gru_out_ld(s), rows = BATCH / SHARDS;
    b.n_param = tw_gru_n_param(s);
    float *param = need(b.n_param * sizeof(float)), *turned = need(tw_gru_n_turned(s) * sizeof(float));
    float *m = need(b.n_param * sizeof(float)), *v = need(b.n_param * sizeof(float));
    float *level = need(out_ld * sizeof(float)), *weight = need(out_ld * sizeof(float));
    b.grad = need(SHARDS * b.n_param * sizeof(float));
    b.loss = need(SHARDS * out_ld * sizeof(float));
    tw_gru_init(s, &rng, param);
    for (size_t j = 0; j < n_out; j++) {
        level[j] = 0.5f;
        weight[j] = 1.0f;
    }
    b.tr.param = param;
    b.tr.turned = turned;
    b.tr.level = level;
    b.tr.weight = weight;
    void *mem[SHARDS];
    for (unsigned i = 0; i < SHARDS; i++) {
        mem[i] = need(tw_gru_stretch_bytes(s, STEPS, rows));
        tw_gru_stretch_init(&b.shard[i], s, STEPS, rows, mem[i]);
        for (size_t t = 0; t < STEPS; t++)
            for (size_t r = 0; r < rows; r++) {
                fill(b.shard[i].row + (t * rows + r) * ld + HIDDEN, INPUTS, &rng);
                b.shard[i].row[(t * rows + r) * ld + HIDDEN + INPUTS] = 1.0f;
            }
        fill(b.shard[i].want, STEPS * rows * out_ld, &rng);
    }
    const struct tw_adamw adam = {.beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};
    double ms[ROUNDS];
    for (size_t round = 0; round < ROUNDS + 5; round++) {
        int64_t t0 = tw_boot_us();
        tw_gru_turn(s, param, turned);
        tw_par_run(par, pass, &b, SHARDS);
        for (size_t i = 1; i < SHARDS; i++)
            for (size_t j = 0; j < b.n_param; j++)
                b.grad[j] += b.grad[i * b.n_param + j];
        tw_adamw_step(&adam, b.n_param, round + 1, 1e-3f, b.grad, m, v, param);
        if (round >= 5)
            ms[round - 5] = (double)(tw_boot_us() - t0) / 1e3;
    }
    double flops = tw_gru_pass_flops(s, STEPS, BATCH, first_scored), floor_ms = flops / sgemm * 1e3;
    double med = median(ms, ROUNDS);
    printf("  training step, %zu output%s at %s: %.2f ms (fastest %.2f) on %u thread%s; floor %.2f ms "
           "(%.0f MFLOP); %.2f x the floor, fastest %.2f x\n",
           n_out, n_out > 1 ? "s" : "", first_scored ? "the last step" : "every step", med, ms[0], threads,
           threads > 1 ? "s" : "", floor_ms, flops / 1e6, med / floor_ms, ms[0] / floor_ms);
    for (unsigned i = 0; i < SHARDS; i++)
        free(mem[i]);
    free(param), free(turned), free(m), free(v), free(level), free(weight), free(b.grad), free(b.loss);
}

/* ---- serving ---- */

static void serve(const struct tw_par *par, unsigned threads, size_t n, double sgemm)
{
    struct tw_model m;
    struct tw_rng rng;
    tw_rng_init(&rng, 1, 0);
    tw_model_init(&m, &tw_model_gru, kern, 1.0, (struct tw_scaler){300.0, 100.0}, HIDDEN);
    m.n_param = tw_model_n_param(&m);
    float *param = need(m.n_param * sizeof *param);
    tw_gru_init(&m.gru, &rng, param);
    m.param = param;
    void *state = need(tw_model_state_bytes(&m, n));
    float *x = need(n * sizeof *x), *out = need(n * TW_OUTPUTS * sizeof *out);
    tw_model_reset(&m, n, state);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(300.0 + 50.0 * tw_rng_normal(&rng));
    const size_t each = n < 100 ? 2000 : n < 10000 ? 50 : 1;
    double us[ROUNDS];
    for (size_t round = 0; round < ROUNDS; round++) {
        int64_t t0 = tw_boot_us();
        for (size_t i = 0; i < each; i++)
            tw_model_step(&m, n, state, x, out, par);
        us[round] = (double)(tw_boot_us() - t0) / (double)each;
    }
    const double flops = 2.0 * (double)n * (3.0 * HIDDEN * (HIDDEN + INPUTS) + TW_OUTPUTS * (HIDDEN + INPUTS));
    const double med = median(us, ROUNDS), floor_us = flops / sgemm * 1e6;
    printf("  stateful step of %zu GPU%s: %.2f us (fastest %.2f) on %u thread%s; %.2f x (fastest %.2f x) the "
           "floor of %.2f us (%.1f MFLOP); state %zu "
           "bytes a GPU\n",
           n, n > 1 ? "s" : "", med, us[0], threads, threads > 1 ? "s" : "", med / floor_us, us[0] / floor_us,
           floor_us, flops / 1e6, tw_model_state_bytes(&m, n) / n);
    free(param), free(state), free(x), free(out);
}

int main(int argc, char **argv)
{
    unsigned most = tw_pool_cpus() < 2 ? 1 : 2;
    kern = tw_kern_best();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            most = (unsigned)strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--isa") == 0)
            kern = tw_kern_find(argv[i + 1]);
        if (strcmp(argv[i], "--blas") == 0)
            blas_library = argv[i + 1];
    }
    if (!kern || most < 1 || most > 64) {
        (void)fprintf(stderr, "bench_gru: no such instruction set here, or threads not in 1..64\n");
        return 2;
    }
    struct utsname uts;
    (void)uname(&uts);
    printf("GRU, hidden %d, %d inputs, look-back %d, batch %d, Adam; kernels \"%s\"; %s, %u processors\n",
           HIDDEN, INPUTS, STEPS, BATCH, kern->name, uts.machine, tw_pool_cpus());
    for (unsigned threads = 1; threads <= most; threads++) {
        struct tw_pool *pool;
        struct tw_why why;
        if (tw_pool_new(threads, &pool, &why) != TW_OK) {
            (void)fprintf(stderr, "bench_gru: %s\n", why.text);
            return 2;
        }
        struct tw_par par = tw_pool_par(pool);
        double sgemm = floor_rate(&par, threads);
        train(&par, threads, 1, STEPS - 1, sgemm);
        train(&par, threads, TW_OUTPUTS, 0, sgemm);
        static const size_t gpus[] = {1, 8, 1000, 100000};
        for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
            serve(&par, threads, gpus[i], sgemm);
        tw_pool_free(pool);
    }
    return 0;
}
