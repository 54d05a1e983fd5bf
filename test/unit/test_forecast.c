/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasters: the step, scores worked out by hand, ridge against a process that it can solve, training that is
 * the same with any number of threads and follows losses of an independent program, model files, the served
 * component, and the band of a sum. */
#include "base/rng.h"
#include "model/forecaster.h"
#include "sys/pool.h"
#include "train/ridgefit.h"
#include "train/score.h"
#include "train/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void near(const char *what, double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol || (isnan(got) && isnan(want))))
        fail_msg("%s: got %.9g, want %.9g", what, got, want);
}

static void *block(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    assert_non_null(p);
    memset(p, 0x5a, (bytes + 63) / 64 * 64 + 64); /* nothing may rely on zeros */
    return p;
}

/* ---- a data set made here: square waves with noise, of several runs ---- */

enum { TRACKS = 5, LEN = 700 };

struct made {
    struct tw_dataset ds;
    struct tw_track track[TRACKS];
    float x[TRACKS][LEN];
};

static void make(struct made *m)
{
    memset(m, 0, sizeof *m);
    m->ds = (struct tw_dataset){.set = "made", .step_s = 1.0, .track = m->track, .n = TRACKS};
    for (size_t i = 0; i < TRACKS; i++) {
        struct tw_rng rng;
        tw_rng_init(&rng, 3, i);
        for (size_t k = 0; k < LEN; k++)
            m->x[i][k] = (float)(300.0 + 100.0 * (double)((k + 7 * i) % 20 < 10) + 5.0 * tw_rng_normal(&rng));
        m->track[i].x_w = m->x[i];
        m->track[i].n = LEN;
        (void)snprintf(m->track[i].name, sizeof m->track[i].name, "t%zu", i);
        (void)snprintf(m->track[i].run, sizeof m->track[i].run, "r%zu", i);
    }
    bool dealt;
    struct tw_set set = {.per_gpu = false};
    assert_int_equal(tw_dataset_part(&m->ds, &set, NULL, &dealt, NULL), TW_OK);
}

/* ---- outputs and scores ---- */

static void test_between(void **state)
{
    (void)state;
    float out[TW_OUTPUTS];
    for (size_t j = 0; j < TW_OUTPUTS; j++)
        out[j] = (float)(10 * (j / TW_QUANTILES + 1) + j % TW_QUANTILES);
    near("first lead held", tw_output_at(out, 1, 1.0), 11.0, 1e-6);
    near("lead 5", tw_output_at(out, 1, 5.0), 11.0, 1e-6);
    near("between", tw_output_at(out, 0, 7.5), 15.0, 1e-6);
    near("lead 60", tw_output_at(out, 2, 60.0), 122.0, 1e-6);
    near("beyond", tw_output_at(out, 2, 61.0), 122.0, 1e-6);
    near("head", tw_head_s(TW_HEAD_MEAN60), 60.0, 0.0);
    near("head", tw_head_s(5), 30.0, 0.0);
}

/* Two windows on a grid of 30 s, where leads are one and two steps: all figures by hand. */
static void test_scores(void **state)
{
    (void)state;
    static float mem[TW_TARGET_COUNT * 2];
    struct tw_scorer sc;
    tw_scorer_init(&sc, 30.0, 2, mem);
    const float x[] = {0, 100, 110, 130, 90};
    float out[TW_OUTPUTS];
    for (size_t j = 0; j < TW_OUTPUTS; j++)
        out[j] = (float)(j % 3 == 0 ? 90 : j % 3 == 1 ? 105 : 120);
    tw_scorer_add(&sc, x, 1, out); /* values ahead 110, 130: point 30 off -5, point 60 off -25 */
    tw_scorer_add(&sc, x, 2, out); /* 130, 90: -25, +15 */
    tw_scorer_add(&sc, x, 2, out); /* no room: left out */
    struct tw_score s;
    tw_scorer_result(&sc, TW_TARGET_POINT30, &s);
    assert_int_equal(s.windows, 2);
    near("mae", s.mae_w, 15.0, 1e-5);
    near("rmse", s.rmse_w, sqrt((25.0 + 625.0) / 2.0), 1e-5);
    near("bias", s.bias_w, -15.0, 1e-5);
    near("p95", s.p95_w, 5.0 + 0.95 * 20.0, 1e-4);
    near("coverage", s.coverage80, 0.5, 1e-9);
    /* 110: .1*20 + .5*5 + .1*10 = 5.5; 130: .1*40 + .5*25 + .9*10 = 25.5; over three quantiles */
    near("pinball", s.pinball_w, (5.5 + 25.5) / 3.0 / 2.0, 1e-5);
    near("interval", s.interval_w, (30.0 + 30.0 + 100.0) / 2.0, 1e-4);
    tw_scorer_result(&sc, TW_TARGET_POINT60, &s);
    near("mae", s.mae_w, 20.0, 1e-5);
    near("coverage at the edge", s.coverage80, 0.5, 1e-9); /* 90 lies on the lower quantile: inside */
    tw_scorer_result(&sc, TW_TARGET_MEAN60, &s);           /* means 120, 110 */
    near("mae", s.mae_w, 10.0, 1e-5);
    near("bias", s.bias_w, -10.0, 1e-5);
    tw_scorer_result(&sc, TW_TARGET_PATH60, &s); /* (5 + 25) / 2, (25 + 15) / 2 */
    near("mae", s.mae_w, 17.5, 1e-5);
    near("p95", s.p95_w, 15.0 + 0.95 * 5.0, 1e-4);
    /* no outer quantiles: no pinball, no coverage, but an error */
    tw_scorer_init(&sc, 30.0, 2, mem);
    for (size_t j = 0; j < TW_OUTPUTS; j++)
        out[j] = j % 3 == 1 ? 105.0f : NAN;
    tw_scorer_add(&sc, x, 1, out);
    tw_scorer_result(&sc, TW_TARGET_POINT30, &s);
    near("mae", s.mae_w, 5.0, 1e-5);
    near("pinball", s.pinball_w, (double)NAN, 0.0);
    near("coverage", s.coverage80, (double)NAN, 0.0);
    near("interval", s.interval_w, (double)NAN, 0.0);
}

static void test_windows(void **state)
{
    (void)state;
    static struct made m;
    make(&m);
    /* 700 steps: present from index 60 to 639 */
    struct tw_track *t = &m.track[4];
    assert_false(tw_window_is(t, TW_PART_TEST, 59, 60));
    assert_true(tw_window_is(t, TW_PART_TEST, 60, 60));
    assert_true(tw_window_is(t, TW_PART_TEST, 639, 60));
    assert_false(tw_window_is(t, TW_PART_TEST, 640, 60));
    assert_int_equal(tw_window_count(&m.ds, TW_PART_TEST, true, 60), 580);
    t->x_w[300] = NAN; /* takes 121 windows away */
    assert_int_equal(tw_window_count(&m.ds, TW_PART_TEST, true, 60), 580 - 121);
    assert_int_equal(tw_window_count(&m.ds, TW_PART_VAL, true, 60), 580);
}

/* ---- the step ---- */

static void test_naive(void **state)
{
    (void)state;
    struct tw_model last, mean;
    const struct tw_scaler scaler = {300.0, 50.0};
    tw_model_init(&last, &tw_model_last, tw_kern_best(), 1.0, scaler, 0);
    tw_model_init(&mean, &tw_model_mean60, tw_kern_best(), 1.0, scaler, 0);
    void *a = block(tw_model_state_bytes(&last, 1)), *b = block(tw_model_state_bytes(&mean, 1));
    tw_model_reset(&last, 1, a);
    tw_model_reset(&mean, 1, b);
    double sum = 0.0;
    float x[200], out[TW_OUTPUTS];
    for (size_t k = 0; k < 200; k++) {
        x[k] = (float)(200 + (k * 37) % 91);
        sum += (double)x[k] - (k >= 60 ? (double)x[k - 60] : 0.0);
        tw_model_step(&last, 1, a, &x[k], out, NULL);
        near("last", (double)out[5 * 3 + 1], k >= 60 ? (double)x[k] : (double)NAN, 1e-3);
        near("lacks", (double)out[0], (double)NAN, 0.0);
        tw_model_step(&mean, 1, b, &x[k], out, NULL);
        near("mean60", (double)out[TW_HEAD_MEAN60 * 3 + 1], k >= 60 ? sum / 60.0 : (double)NAN, 1e-3);
    }
    free(a);
    free(b);
    assert_null(tw_model_find("oracle"));
    assert_ptr_equal(tw_model_find("gru"), &tw_model_gru);
}

struct net {
    struct tw_model m;
    float *param;
};

static struct net net_of(uint64_t seed)
{
    struct net n;
    struct tw_rng rng;
    tw_rng_init(&rng, seed, 0);
    tw_model_init(&n.m, &tw_model_gru, tw_kern_best(), 1.0, (struct tw_scaler){300.0, 50.0}, 32);
    n.m.n_param = tw_model_n_param(&n.m);
    n.param = block(n.m.n_param * sizeof(float));
    tw_gru_init(&n.m.gru, &rng, n.param);
    n.m.param = n.param;
    return n;
}

/* A series must not care who stands beside it, nor how many threads there are: same bytes. */
static void test_alone(void **state)
{
    (void)state;
    enum { N = 131, STEPS = 90 };
    struct net net = net_of(4);
    struct tw_pool *pool;
    assert_int_equal(tw_pool_new(3, &pool, NULL), TW_OK);
    const struct tw_par par = tw_pool_par(pool);
    void *all = block(tw_model_state_bytes(&net.m, N)), *two = block(tw_model_state_bytes(&net.m, N));
    void *one = block(tw_model_state_bytes(&net.m, 1));
    tw_model_reset(&net.m, N, all);
    tw_model_reset(&net.m, N, two);
    tw_model_reset(&net.m, 1, one);
    static float x[N], a[N * TW_OUTPUTS], b[N * TW_OUTPUTS], c[TW_OUTPUTS];
    struct tw_rng rng;
    tw_rng_init(&rng, 1, 1);
    for (size_t k = 0; k < STEPS; k++) {
        for (size_t i = 0; i < N; i++)
            x[i] = i == 5 && k < 10 ? NAN : (float)(300.0 + 50.0 * tw_rng_normal(&rng));
        tw_model_step(&net.m, N, all, x, a, NULL);
        tw_model_step(&net.m, N, two, x, b, &par);
        assert_memory_equal(a, b, sizeof a);
        const size_t who = 77; /* a block of six, where the lone one is a block of one */
        tw_model_step(&net.m, 1, one, &x[who], c, NULL);
        for (size_t j = 0; j < TW_OUTPUTS; j++)
            near("alone", (double)c[j], (double)a[who * TW_OUTPUTS + j], 1e-3);
        /* the one that came ten steps later is ready ten steps later */
        near("late", (double)(isfinite(a[5 * TW_OUTPUTS + 1]) != 0), k >= 70 ? 1.0 : 0.0, 0.0);
        for (size_t j = 0; j < TW_OUTPUTS && k >= 60; j += 3)
            assert_true(a[who * TW_OUTPUTS + j] <= a[who * TW_OUTPUTS + j + 1] &&
                        a[who * TW_OUTPUTS + j + 1] <= a[who * TW_OUTPUTS + j + 2]);
    }
    /* a device of twice the board limit, drawing twice the power, forecasts twice as much */
    tw_model_reset(&net.m, 2, all);
    tw_model_set_gain(&net.m, 2, all, 1, 0.5f);
    for (size_t k = 0; k < STEPS; k++) {
        x[0] = (float)(300.0 + 50.0 * tw_rng_normal(&rng));
        x[1] = 2.0f * x[0];
        tw_model_step(&net.m, 2, all, x, a, NULL);
    }
    near("gain", (double)a[TW_OUTPUTS + 4], 2.0 * (double)a[4], 1e-2);
    tw_pool_free(pool);
    free(all);
    free(two);
    free(one);
    free(net.param);
}

/* ---- ridge ---- */

struct errors {
    double sum;
    size_t n;
};

static void add_error(void *ctx, const struct tw_track *t, size_t step, const float out[static TW_OUTPUTS])
{
    struct errors *e = ctx;
    e->sum += fabs((double)out[5 * TW_QUANTILES + 1] - (double)t->x_w[step + 30]);
    e->n++;
}

static void test_ridge(void **state)
{
    (void)state;
    static struct made m;
    make(&m);
    /* a wave of period 40 is a linear function of two of its values: no error is left but rounding and penalty
     */
    for (size_t i = 0; i < TRACKS; i++)
        for (size_t k = 0; k < LEN; k++)
            m.x[i][k] =
                (float)(300.0 + (40.0 + (double)i) * sin(6.283185307179586 * (double)k / 40.0 + (double)i));
    struct tw_model model;
    tw_model_init(&model, &tw_model_ridge, tw_kern_best(), 1.0, tw_dataset_scaler(&m.ds), 0);
    model.n_param = tw_model_n_param(&model);
    float *param = block(model.n_param * sizeof(float));
    void *mem = block(tw_ridge_fit_bytes(&model, &m.ds)), *run = block(tw_served_bytes(&model, &m.ds, false));
    struct tw_why why = {""};
    assert_int_equal(tw_ridge_fit(&model, &m.ds, mem, param, &why), TW_OK);
    model.param = param;
    struct errors e = {0.0, 0};
    tw_served(&model, &m.ds, TW_PART_TEST, true, false, NULL, run, add_error, &e);
    assert_int_equal(e.n, 580);
    assert_true(e.sum / (double)e.n < 0.1); /* of an amplitude of 44 W; last value is off by 57 W */
    free(param);
    free(mem);
    free(run);
}

/* ---- training ---- */

static const struct tw_train_opts small = {.hidden = 32,
                                           .batch = 32,
                                           .stretch = 40,
                                           .steps = 150,
                                           .check_every = 75,
                                           .rate = 1e-2,
                                           .clip = 1.0,
                                           .weight_point = 2.0,
                                           .weight_mean = 2.0,
                                           .weight_outer = 0.5,
                                           .vary_gain = 0.2,
                                           .vary_level = 0.2,
                                           .seed = 7};

static double train(const struct made *m, unsigned threads, uint64_t seed, float *ret_param, size_t *ret_n)
{
    struct tw_pool *pool;
    assert_int_equal(tw_pool_new(threads, &pool, NULL), TW_OK);
    const struct tw_par par = tw_pool_par(pool);
    struct tw_train_opts opts = small;
    opts.seed = seed;
    void *mem = block(tw_trainer_bytes(&m->ds, &opts));
    struct tw_trainer *tr;
    struct tw_why why = {""};
    assert_int_equal(tw_trainer_init(&m->ds, &opts, tw_kern_best(), NULL, mem, &tr, &why), TW_OK);
    size_t checks = 0, steps = 0;
    for (enum tw_train_event e; (e = tw_trainer_turn(tr, &par)) != TW_TRAIN_DONE;) {
        checks += e == TW_TRAIN_CHECKED;
        steps += e == TW_TRAIN_STEPPED;
    }
    assert_int_equal(steps, 150);
    assert_int_equal(checks, 2);
    const struct tw_model model = tw_trainer_model(tr);
    memcpy(ret_param, model.param, model.n_param * sizeof *ret_param);
    *ret_n = model.n_param;
    const double best = tw_trainer_state(tr).best;
    free(mem);
    tw_pool_free(pool);
    return best;
}

static void test_train(void **state)
{
    (void)state;
    static struct made m;
    make(&m);
    enum { MOST = 20000 };
    static float one[MOST], two[MOST], other[MOST];
    size_t n = 0;
    const double best = train(&m, 1, 7, one, &n);
    assert_true(n <= MOST);
    (void)train(&m, 2, 7, two, &n);
    assert_memory_equal(one, two, n * sizeof *one); /* one seed, one result, with any number of threads */
    (void)train(&m, 2, 8, other, &n);
    assert_memory_not_equal(one, other, n * sizeof *one);
    assert_true(best < 0.7); /* a square wave of one period: learned in part after 150 steps */
}

static void test_train_refuses(void **state)
{
    (void)state;
    static struct made m;
    make(&m);
    struct tw_train_opts opts = small;
    opts.hidden = 17;
    assert_int_equal(tw_trainer_bytes(&m.ds, &opts), 0);
    opts.hidden = 32;
    opts.batch = 3;
    assert_int_equal(tw_trainer_bytes(&m.ds, &opts), 0);
    opts = small;
    for (size_t i = 0; i < TRACKS; i++)
        m.track[i].part[TW_PART_TRAIN].to = m.track[i].part[TW_PART_TRAIN].to ? 4 : 0;
    void *mem = block(tw_trainer_bytes(&m.ds, &opts));
    struct tw_trainer *tr;
    struct tw_why why = {""};
    assert_int_equal(tw_trainer_init(&m.ds, &opts, tw_kern_best(), NULL, mem, &tr, &why), TW_ENODATA);
    free(mem);
}

/* ---- model files and the served component ---- */

static size_t write_net(const struct net *net, unsigned char *file, size_t cap)
{
    const struct tw_model_about about = {
        .set = "made", .seed = "4", .version = "0", .limit_w = 700.0, .scores = "{}"};
    void *scratch = block(tw_model_file_scratch(&net->m));
    size_t n = 0;
    assert_int_equal(tw_model_write(&net->m, &about, scratch, file, cap, &n, NULL), TW_OK);
    free(scratch);
    return n;
}

static void test_file(void **state)
{
    (void)state;
    static unsigned char file[200000];
    struct net net = net_of(4);
    const size_t n = write_net(&net, file, sizeof file);
    void *mem = block(tw_model_read_bytes(n));
    struct tw_arena arena;
    struct tw_model back;
    struct tw_model_about about;
    struct tw_why why = {""};
    tw_arena_init(&arena, mem, tw_model_read_bytes(n));
    if (tw_model_read(file, n, tw_kern_best(), &arena, &back, &about, &why) != TW_OK)
        fail_msg("%s", why.text);
    assert_int_equal(back.n_param, net.m.n_param);
    assert_memory_equal(back.param, net.param, net.m.n_param * sizeof(float));
    assert_string_equal(about.set, "made");
    near("limit", about.limit_w, 700.0, 0.0);
    near("scaler", back.input.scaler.std_w, 50.0, 0.0);

    /* every cut is refused, and so is a file with one thing changed */
    for (size_t cut = 0; cut < n; cut += cut < 1200 ? 1 : 997) {
        tw_arena_init(&arena, mem, tw_model_read_bytes(n));
        if (tw_model_read(file, cut, tw_kern_best(), &arena, &back, NULL, &why) == TW_OK)
            fail_msg("a model cut to %zu of %zu bytes was read", cut, n);
    }
    static const struct {
        const char *from, *to;
    } change[] = {
        {"tokwatt.model/1", "tokwatt.model/2"},
        {"\"gru\"", "\"abc\""},
        {"\"hidden\":\"32\"", "\"hidden\":\"48\""},
        {"\"hidden\":\"32\"", "\"hidden\":\"xx\""},
        {"\"power_w\"", "\"other_w\""},
        {"elapsed", "elapsex"},
        {"[96,32]", "[32,96]"},
        {"head.bias", "head.bixs"},
        {"\"std_w\":\"50\"", "\"std_w\":\"-5\""},
        {"\"step_s\":\"1\"", "\"step_s\":\"0\""},
    };
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        static unsigned char copy[sizeof file];
        memcpy(copy, file, n);
        unsigned char *at = memmem(copy, n, change[i].from, strlen(change[i].from));
        assert_non_null(at);
        memcpy(at, change[i].to, strlen(change[i].to));
        tw_arena_init(&arena, mem, tw_model_read_bytes(n));
        why.text[0] = '\0';
        if (tw_model_read(copy, n, tw_kern_best(), &arena, &back, NULL, &why) == TW_OK)
            fail_msg("read with %s", change[i].to);
        assert_true(strlen(why.text) > 10);
    }
    free(mem);
    free(net.param);
}

static void test_served(void **state)
{
    (void)state;
    enum { N = 3, STEPS = 200, CUT = 120 };
    static unsigned char file[200000];
    struct net net = net_of(4);
    const size_t n = write_net(&net, file, sizeof file);
    size_t bytes = 0;
    struct tw_why why = {""};
    assert_int_equal(tw_forecaster_bytes(file, n, N, &bytes, &why), TW_OK);
    void *mem = block(bytes), *mem2 = block(bytes);
    struct tw_forecaster *f, *g;
    assert_int_equal(tw_forecaster_init(file, n, tw_kern_best(), N, mem, &f, &why), TW_OK);
    assert_int_equal(tw_forecaster_init(file, n, tw_kern_best(), N, mem2, &g, &why), TW_OK);
    void *state_m = block(tw_model_state_bytes(&net.m, N)), *saved = NULL;
    tw_model_reset(&net.m, N, state_m);
    static float out[N * TW_OUTPUTS];
    struct tw_rng rng;
    tw_rng_init(&rng, 2, 2);
    near("step", tw_forecaster_step_s(f), 1.0, 0.0);
    for (size_t k = 0; k < STEPS; k++) {
        float x[N];
        for (size_t i = 0; i < N; i++)
            x[i] = (float)(300.0 + 50.0 * tw_rng_normal(&rng));
        tw_forecaster_push(f, x, NULL);
        tw_model_step(&net.m, N, state_m, x, out, NULL);
        assert_memory_equal(tw_forecaster_out(f), out, sizeof out); /* one code path */
        assert_int_equal(tw_forecaster_is_ready(f, 1), k >= 60);
        if (saved) { /* one that was restored goes on as if nothing had been */
            tw_forecaster_push(g, x, NULL);
            assert_memory_equal(tw_forecaster_out(g), out, sizeof out);
        }
        if (k == CUT) {
            saved = block(tw_forecaster_save_bytes(f));
            tw_forecaster_save(f, saved);
            assert_int_equal(tw_forecaster_restore(g, saved, tw_forecaster_save_bytes(f) - 1, &why), TW_EPARSE);
            ((char *)saved)[9] ^= 1;
            assert_int_equal(tw_forecaster_restore(g, saved, tw_forecaster_save_bytes(f), &why), TW_EPARSE);
            ((char *)saved)[9] ^= 1;
            assert_int_equal(tw_forecaster_restore(g, saved, tw_forecaster_save_bytes(f), &why), TW_OK);
        }
    }
    tw_forecaster_forget(f, 1);
    const float x[N] = {300, 300, 300};
    tw_forecaster_push(f, x, NULL);
    assert_false(tw_forecaster_is_ready(f, 1));
    assert_true(tw_forecaster_is_ready(f, 0));
    assert_int_equal(tw_forecaster_bytes(file, n, 0, &bytes, &why), TW_EINVAL);
    assert_int_equal(tw_forecaster_bytes(file, 10, N, &bytes, &why), TW_EPARSE);
    free(mem);
    free(mem2);
    free(state_m);
    free(saved);
    free(net.param);
}

/* The model that is part of the program loads, and beats doing nothing on a wave. */
static void test_builtin(void **state)
{
    (void)state;
    size_t bytes = 0;
    struct tw_why why = {""};
    assert_int_equal(tw_forecaster_bytes(tw_model_builtin, tw_model_builtin_size, 1, &bytes, &why), TW_OK);
    void *mem = block(bytes);
    struct tw_forecaster *f;
    if (tw_forecaster_init(tw_model_builtin, tw_model_builtin_size, tw_kern_best(), 1, mem, &f, &why) != TW_OK)
        fail_msg("%s", why.text);
    near("step", tw_forecaster_step_s(f), 1.0, 0.0);
    near("limit", tw_forecaster_about(f)->limit_w, 700.0, 0.0);
    tw_forecaster_set_limit(f, 0, 350.0);
    for (size_t k = 0; k < 100; k++) {
        const float x = 250.0f;
        tw_forecaster_push(f, &x, NULL);
    }
    /* steady power of a device of half the size: forecast near it */
    near("steady", (double)tw_forecaster_out(f)[TW_HEAD_MEAN60 * 3 + 1], 250.0, 40.0);
    free(mem);
}

/* ---- the sum ---- */

/* Eight GPUs whose errors go together in part, forecast by their own quantiles: the band of the sum holds 80 %,
 * and is narrower than the sum of the bands. */
static void test_sum(void **state)
{
    (void)state;
    enum { N = 8, STEPS = 6000, WINDOW = 600, FROM = 1000 };
    void *mem = block(tw_sum_bytes(1.0, WINDOW));
    struct tw_sum *s = tw_sum_init(1.0, WINDOW, mem);
    struct tw_rng rng;
    tw_rng_init(&rng, 11, 0);
    static float said[STEPS][TW_OUTPUTS];
    static double sum[STEPS];
    float watts[N], out[N * TW_OUTPUTS];
    double inside = 0.0, n = 0.0, width = 0.0;
    for (size_t k = 0; k < STEPS; k++) {
        const double common = 6.0 * tw_rng_normal(&rng);
        sum[k] = 0.0;
        for (size_t i = 0; i < N; i++) {
            const double w = 300.0 + common + 8.0 * tw_rng_normal(&rng); /* std 10, correlation 0.36 */
            watts[i] = (float)w;
            sum[k] += w;
            for (size_t j = 0; j < TW_OUTPUTS; j++)
                out[i * TW_OUTPUTS + j] = (float)(300.0 + 12.8155 * ((double)(j % 3) - 1.0));
        }
        tw_sum_push(s, k % 50 == 7 ? (double)NAN : sum[k], N, watts, out, said[k]);
        if (k == 5)
            near("wide at first", (double)said[k][2] - (double)said[k][0], N * 2.0 * 12.8155, 0.1);
        if (k >= FROM) {
            const float *o = said[k - 30] + 5 * TW_QUANTILES;
            inside += sum[k] >= (double)o[0] && sum[k] <= (double)o[2];
            width += (double)o[2] - (double)o[0];
            n += 1.0;
        }
    }
    /* the sum has the standard deviation sqrt(8 * 64 + 64 * 36): its 80 % band is 2.563 of them wide */
    const double std = sqrt(8.0 * 64.0 + 64.0 * 36.0);
    near("coverage", inside / n, 0.8, 0.03);
    near("width", width / n, 2.0 * 1.28155 * std, 0.06 * 2.0 * 1.28155 * std);
    assert_true(width / n < 0.8 * N * 2.0 * 12.8155);
    /* no forecast at all: none of the sum */
    for (size_t j = 0; j < N * TW_OUTPUTS; j++)
        out[j] = NAN;
    float none[TW_OUTPUTS];
    tw_sum_push(s, 1.0, N, watts, out, none);
    near("none", (double)none[1], (double)NAN, 0.0);
    free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_between), cmocka_unit_test(test_scores),        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_naive),   cmocka_unit_test(test_alone),         cmocka_unit_test(test_ridge),
        cmocka_unit_test(test_train),   cmocka_unit_test(test_train_refuses), cmocka_unit_test(test_file),
        cmocka_unit_test(test_served),  cmocka_unit_test(test_builtin),       cmocka_unit_test(test_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
