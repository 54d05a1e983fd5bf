/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration of the outer quantiles: steps worked out by hand, the tenth that lies beyond on noise of known
 * quantiles, a model whose middle stays put, margins fitted and kept in a file, and coverage by stretch. */
#include "base/rng.h"
#include "model/modelfile.h"
#include "train/calibfit.h"
#include "train/cover.h"

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
    memset(p, 0x5a, (bytes + 63) / 64 * 64 + 64);
    return p;
}

static void fill(float out[static TW_OUTPUTS], float low, float middle, float high)
{
    for (size_t h = 0; h < TW_HEADS; h++) {
        out[h * TW_QUANTILES] = low;
        out[h * TW_QUANTILES + 1] = middle;
        out[h * TW_QUANTILES + 2] = high;
    }
}

struct one { /* a series on a grid of 1 s */
    struct tw_input_shape shape;
    struct tw_calib calib;
    void *input;
    struct tw_input_state in;
    _Alignas(8) unsigned char row[256];
};

static void open_one(struct one *o)
{
    tw_input_shape_init(&o->shape, 1.0, (struct tw_scaler){300.0, 50.0}, 0);
    tw_calib_init(&o->calib, 1.0);
    assert_int_equal(tw_calib_row_bytes(&o->calib), 192);
    o->input = block(tw_input_bytes(&o->shape, 1));
    tw_input_reset(&o->shape, 1, o->input);
    o->in = tw_input_view(&o->shape, 1, o->input);
    tw_calib_begin(&o->calib, o->row);
}

static void push(struct one *o, float x_w, float out[static TW_OUTPUTS])
{
    tw_input_push(&o->shape, &o->in, 0, x_w);
    tw_calib_step(&o->calib, &o->shape, &o->in, 0, o->row, out);
    tw_input_advance(&o->in);
}

/* The band is 90 .. 110 and every value 115: a quarter of the width above. The 5 s lead is put aside at the
 * 15th sample and known at the 20th: b = 0.2 / 2 (1 / (1 + exp(-0.25 / 0.07)) - 0.1), a = -0.2 / 2 * 0.1. The
 * 60 s lead is put aside at the 8th and known at the 68th. */
static void test_by_hand(void **state)
{
    (void)state;
    struct one o;
    float out[TW_OUTPUTS];
    open_one(&o);
    for (size_t k = 1; k <= 35; k++) {
        fill(out, 90.0f, 100.0f, 110.0f);
        push(&o, 115.0f, out);
        near("middle", (double)out[1], 100.0, 0.0);
        if (k == 19)
            near("not yet", (double)out[2], 110.0, 0.0);
        if (k == 20) {
            near("above", (double)out[2], 110.0 + 20.0 * 0.0872655, 1e-4);
            near("below", (double)out[0], 90.0 + 20.0 * 0.01, 1e-4);
            near("15 s, put aside at the 2nd", (double)out[2 * 3 + 2], 110.0 + 20.0 * 0.0872655, 1e-4);
            near("60 s: not yet", (double)out[11 * 3 + 2], 110.0, 0.0);
        }
        if (k == 34)
            near("the same until the next", (double)out[2], 110.0 + 20.0 * 0.0872655, 1e-4);
        /* r = 1.0772655, m = 1 / (1 + exp(-0.1627345 / (0.07 r))) = 0.8964177: b += 0.1 r (m - 0.1) */
        if (k == 35)
            near("and on from there", (double)out[2], 110.0 + 20.0 * (0.0872655 + 0.0857953), 2e-4);
    }
    free(o.input);
}

/* Values that stand still and a band far too wide, then far too narrow around another middle: the band shrinks
 * to its middle and no further, and grows until it reaches them. */
static void test_bounds(void **state)
{
    (void)state;
    struct one o;
    float out[TW_OUTPUTS];
    open_one(&o);
    for (size_t k = 0; k < 3000; k++) {
        fill(out, 100.0f, 300.0f, 310.0f);
        push(&o, 300.0f, out);
        assert_true(out[0] <= 300.0f && out[2] >= 300.0f);
    }
    near("shrunk", (double)out[0], 300.0, 120.0);
    for (size_t k = 0; k < 3000; k++) {
        fill(out, 299.9f, 300.0f, 300.1f);
        push(&o, 310.0f, out);
    }
    assert_true(out[11 * 3 + 2] > 309.0f);
    /* missing samples, and a model without an answer, teach nothing */
    unsigned char before[sizeof(float) * TW_CALIB_ANCHORS * TW_CALIB_SIDES];
    memcpy(before, o.row, sizeof before);
    for (size_t k = 0; k < 50; k++) {
        fill(out, 299.9f, 300.0f, 300.1f);
        push(&o, NAN, out);
    }
    assert_memory_equal(before, o.row, sizeof before);
    fill(out, NAN, NAN, NAN);
    push(&o, 300.0f, out);
    near("no answer", (double)out[0], (double)NAN, 0.0);
    near("no answer", (double)out[1], (double)NAN, 0.0);
    free(o.input);
}

/* White noise of 20 W around 300: four fifths lie within 1.2816 standard deviations (tables of the normal
 * distribution), and of a mean over 30 values within 1.2816 / sqrt(30). The model says +-10 W of both. */
static void test_noise(void **state)
{
    (void)state;
    struct one o;
    struct tw_rng rng;
    float out[TW_OUTPUTS];
    enum { STEPS = 60000, WARM = 6000 };
    double half[2] = {0, 0}, inside = 0.0;
    float due[30] = {0}, due_low[30] = {0};
    tw_rng_init(&rng, 5, 1);
    open_one(&o);
    for (size_t k = 0; k < STEPS; k++) {
        const float x = (float)(300.0 + 20.0 * tw_rng_normal(&rng));
        if (k >= WARM)
            inside += (double)(x >= due_low[k % 30] && x <= due[k % 30]);
        fill(out, 290.0f, 300.0f, 310.0f);
        push(&o, x, out);
        due_low[k % 30] = out[5 * 3];
        due[k % 30] = out[5 * 3 + 2];
        for (size_t i = 0; i < 2 && k >= WARM; i++) {
            const float *head = out + (i == 0 ? 5 : TW_HEAD_MEAN30) * TW_QUANTILES;
            half[i] += ((double)head[2] - (double)head[0]) / 2.0 / (STEPS - WARM);
        }
    }
    near("coverage at 30 s", inside / (STEPS - WARM), 0.8, 0.02);
    near("half the band at 30 s", half[0], 1.2816 * 20.0, 2.5); /* it wavers, and so is wider on average */
    near("half the band of the mean", half[1], 1.2816 * 20.0 / sqrt(30.0), 1.0);
    free(o.input);
}

/* ---- a model with spread: ridge that says the last value +- half a unit of the scaler ---- */

struct net {
    struct tw_model m;
    float param[62 * TW_HEADS + TW_OUTPUTS];
};

static void open_net(struct net *n)
{
    memset(n->param, 0, sizeof n->param);
    tw_model_init(&n->m, &tw_model_ridge, tw_kern_best(), 1.0, (struct tw_scaler){300.0, 50.0}, 0);
    n->m.n_param = tw_model_n_param(&n->m);
    assert_int_equal(n->m.n_param, sizeof n->param / sizeof(float));
    n->m.param = n->param;
    for (size_t h = 0; h < TW_HEADS; h++) {
        n->param[60 * TW_HEADS + h] = 1.0f;
        n->param[62 * TW_HEADS + h * TW_QUANTILES] = -0.5f;
        n->param[62 * TW_HEADS + h * TW_QUANTILES + 2] = 0.5f;
    }
}

enum { LEN = 1500 };

static void make(struct tw_dataset *ds, struct tw_track t[static 3], float x[static 3][LEN])
{
    *ds = (struct tw_dataset){.set = "made", .step_s = 1.0, .track = t, .n = 3};
    struct tw_rng rng;
    tw_rng_init(&rng, 9, 0);
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < LEN; k++)
            x[i][k] = (float)(300.0 + 60.0 * tw_rng_normal(&rng));
        t[i] = (struct tw_track){.x_w = x[i], .n = LEN};
        (void)snprintf(t[i].name, sizeof t[i].name, "t%zu", i);
        (void)snprintf(t[i].run, sizeof t[i].run, "r%zu", i);
        t[i].part[i] = (struct tw_span){0, LEN};
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The fit, told again from the data: forecasts are the last value +- 25 W. */
static void test_fit(void **state)
{
    (void)state;
    static float x[3][LEN];
    struct tw_track t[3];
    struct tw_dataset ds;
    static struct net net;
    make(&ds, t, x);
    open_net(&net);
    void *mem = block(tw_calib_fit_bytes(&net.m, &ds));
    tw_calib_fit(&net.m, &ds, NULL, mem);
    static double outside[LEN];
    size_t n = 0;
    for (size_t k = 60; k + 60 < LEN; k++)
        outside[n++] = (fabs((double)x[1][k + 60] - (double)x[1][k]) - 25.0) / 50.0;
    qsort(outside, n, sizeof *outside, by_value);
    const double minutes = (double)n / 60.0;
    const double want = outside[(size_t)(0.8 * (double)(n - 1))];
    assert_true(want > 0.5 && want < 2.5);
    near("margin", (double)net.m.calib.start[4][0], fmin(want, 1.0) * minutes / (minutes + 20.0), 2e-3);
    near("both sides", (double)net.m.calib.start[4][1], (double)net.m.calib.start[4][0], 0.0);
    ds.track[1].part[TW_PART_VAL] = (struct tw_span){0, 0};
    struct net other;
    open_net(&other);
    tw_calib_fit(&other.m, &ds, NULL, mem);
    near("nothing to go by", (double)other.m.calib.start[4][0], 0.0, 0.0);
    free(mem);

    /* and into a file and back; one that lies beyond bounds is refused */
    static unsigned char file[65536];
    const struct tw_model_about about = {.set = "made", .scores = "{}"};
    void *scratch = block(tw_model_file_scratch(&net.m));
    size_t bytes = 0;
    struct tw_why why = {""};
    assert_int_equal(tw_model_write(&net.m, &about, scratch, file, sizeof file, &bytes, &why), TW_OK);
    void *arena_mem = block(tw_model_read_bytes(bytes));
    struct tw_arena arena;
    struct tw_model back;
    tw_arena_init(&arena, arena_mem, tw_model_read_bytes(bytes));
    assert_int_equal(tw_model_read(file, bytes, tw_kern_best(), &arena, &back, NULL, &why), TW_OK);
    assert_memory_equal(back.calib.start, net.m.calib.start, sizeof back.calib.start);
    net.m.calib.start[2][1] = -1.0f;
    assert_int_equal(tw_model_write(&net.m, &about, scratch, file, sizeof file, &bytes, &why), TW_OK);
    tw_arena_init(&arena, arena_mem, tw_model_read_bytes(bytes));
    assert_int_equal(tw_model_read(file, bytes, tw_kern_best(), &arena, &back, NULL, &why), TW_ERANGE);
    free(scratch);
    free(arena_mem);
}

/* With and without calibration: the middle is the same to the bit, and quantiles never cross. */
static void test_middle(void **state)
{
    (void)state;
    static float x[3][LEN];
    struct tw_track t[3];
    struct tw_dataset ds;
    static struct net net;
    make(&ds, t, x);
    open_net(&net);
    struct tw_model bare = net.m;
    bare.calibrated = false;
    assert_int_equal(tw_model_state_bytes(&net.m, 1) - tw_model_state_bytes(&bare, 1), 192);
    void *a = block(tw_model_state_bytes(&net.m, 1)), *b = block(tw_model_state_bytes(&bare, 1));
    tw_model_reset(&net.m, 1, a);
    tw_model_reset(&bare, 1, b);
    bool differs = false;
    for (size_t k = 0; k < LEN; k++) {
        float out[TW_OUTPUTS], own[TW_OUTPUTS];
        tw_model_step(&net.m, 1, a, &x[0][k], out, NULL);
        tw_model_step(&bare, 1, b, &x[0][k], own, NULL);
        for (size_t h = 0; h < TW_HEADS && k >= 60; h++) {
            const float *o = out + h * TW_QUANTILES;
            assert_memory_equal(o + 1, own + h * TW_QUANTILES + 1, sizeof *o);
            assert_true(o[0] <= o[1] && o[1] <= o[2]);
            differs = differs || o[0] < own[h * TW_QUANTILES] - 1.0f;
        }
    }
    assert_true(differs);
    free(a);
    free(b);
}

/* One track of 1400 s at 300 W, 500 W from second 700 on; the band holds up to second 599 and never after. A
 * shift is 5 s against the 5 s that ended 10 s before: seen from second 702 (3 of 5 up) to 716 (2 of the older
 * 5 up), and counted for 120 s: windows 702 .. 835. */
static void test_cover(void **state)
{
    (void)state;
    static float x[1400];
    for (size_t k = 0; k < 1400; k++)
        x[k] = k < 700 ? 300.0f : 500.0f;
    struct tw_track t = {.x_w = x, .n = 1400, .run = "r"};
    t.part[TW_PART_TEST] = (struct tw_span){0, 1400};
    const struct tw_dataset ds = {.set = "made", .step_s = 1.0, .track = &t, .n = 1};
    void *mem = block(tw_cover_bytes(&ds, TW_PART_TEST));
    struct tw_cover *c = tw_cover_init(&ds, TW_PART_TEST, mem);
    float out[TW_OUTPUTS];
    for (size_t k = 60; k < 1340; k++) {
        fill(out, k < 600 ? 0.0f : 900.0f, 950.0f, 1000.0f);
        tw_cover_add(c, &t, k, out);
    }
    struct tw_cover_score s;
    tw_cover_result(c, 0, &s);
    assert_int_equal(s.stretches, 2); /* the third has 140 windows of 600 */
    assert_int_equal(s.outside, 2);
    near("worst", s.worst_low, 0.0, 0.0);
    near("worst", s.worst_high, 1.0, 0.0);
    assert_int_equal(s.shift_windows, 134);
    near("after the shift", s.shift_coverage, 0.0, 0.0);
    near("interval", s.shift_interval_w, 100.0 + 10.0 * 400.0, 1e-6);
    free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_bounds), cmocka_unit_test(test_noise),
        cmocka_unit_test(test_fit),     cmocka_unit_test(test_middle), cmocka_unit_test(test_cover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
