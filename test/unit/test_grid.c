/* SPDX-License-Identifier: Apache-2.0 */
/* Series on a grid, the inputs of forecasters, and the parts of a data set: cases worked out by hand. */
#include "feature/dataset.h"
#include "feature/input.h"
#include "series/grid.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void near(double got, double want, double tol)
{
    if (!(fabs(got - want) <= tol || (isnan(got) && isnan(want))))
        fail_msg("got %.9g, want %.9g", got, want);
}

static void check_row(const float *got, const double *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= 1e-4 || (isnan(got[i]) && isnan(want[i]))))
            fail_msg("step %zu: got %g, want %g", i, (double)got[i], want[i]);
}

static void test_step(void **state)
{
    (void)state;
    near(tw_grid_step_s(0.1), 1.0, 0.0);
    near(tw_grid_step_s(0.01), 1.0, 0.0);
    near(tw_grid_step_s(1.0), 1.0, 0.0);
    near(tw_grid_step_s(2.063), 2.0, 0.0);
    near(tw_grid_step_s(11.2), 11.0, 0.0);
    /* 30 s are 3 steps of 11 s and 60 s are 5; 5 s are 2 steps of 2 s; nothing is less than a step */
    assert_int_equal(tw_input_steps(30.0, 11.0), 3);
    assert_int_equal(tw_input_steps(60.0, 11.0), 5);
    assert_int_equal(tw_input_steps(5.0, 2.0), 2);
    assert_int_equal(tw_input_steps(5.0, 11.0), 1);
    assert_int_equal(tw_input_steps(60.0, 1.0), 60);
}

static void test_bins(void **state)
{
    (void)state;
    int64_t t[] = {1000000, 1400000, 1999999, 2000000, 4500000, 4900000};
    float w[] = {10, 20, 60, 5, NAN, 8};
    struct tw_series s = {.n = 6, .time_us = t};
    s.ch[TW_CH_POWER_W] = w;
    float got[8];
    assert_int_equal(tw_grid_count(&s, 1000000, 1.0), 4);
    tw_grid_fill(&s, TW_CH_POWER_W, 1000000, 1.0, true, 60.0, 4, got);
    check_row(got, (const double[]){30, 5, 5, 8}, 4); /* an empty bin holds, a NaN counts for nothing */
    /* the file begins a second and a half earlier than the series */
    assert_int_equal(tw_grid_count(&s, -500000, 1.0), 6);
    tw_grid_fill(&s, TW_CH_POWER_W, -500000, 1.0, true, 60.0, 6, got);
    check_row(got, (const double[]){(double)NAN, 15, 32.5, 32.5, 32.5, 8}, 6);
    tw_grid_fill(&s, TW_CH_POWER_W, 1000000, 1.0, true, 0.5, 4, got);
    check_row(got, (const double[]){30, 5, (double)NAN, 8}, 4); /* held for less than a step: a gap */
    tw_grid_fill(&s, TW_CH_TEMP_C, 1000000, 1.0, true, 60.0, 2, got);
    check_row(got, (const double[]){(double)NAN, (double)NAN}, 2);
    struct tw_series none = {.n = 0};
    assert_int_equal(tw_grid_count(&none, 0, 1.0), 0);
}

static void test_hold(void **state)
{
    (void)state;
    /* 2.063 s apart on a grid of 2 s: the value at or before each point */
    int64_t t[] = {0, 2063000, 4126000, 6189000, 140000000};
    float w[] = {1, 2, 3, 4, 5};
    struct tw_series s = {.n = 5, .time_us = t};
    s.ch[TW_CH_POWER_W] = w;
    float got[71];
    assert_int_equal(tw_grid_count(&s, 0, 2.0), 71);
    tw_grid_fill(&s, TW_CH_POWER_W, 0, 2.0, false, 60.0, 71, got);
    check_row(got, (const double[]){1, 1, 2, 3, 4}, 5);
    near((double)got[34], 4.0, 0.0);         /* taken up at step 4, held for 30 steps */
    near((double)got[35], (double)NAN, 0.0); /* and not longer */
    near((double)got[70], 5.0, 0.0);
}

/* Inputs against sums done afresh at every step, over a series with a hole and one that ends. */
static void test_inputs(void **state)
{
    (void)state;
    enum { N = 400, HOLE = 150, HOLE_END = 170, GONE = 250, BACK = 330 };
    const struct tw_scaler scaler = {.mean_w = 200.0, .std_w = 50.0};
    struct tw_input_shape s;
    tw_input_shape_init(&s, 1.0, scaler, 61);
    assert_int_equal(s.w60, 60);
    assert_int_equal(s.look_back, 61);
    void *block = aligned_alloc(64, tw_input_bytes(&s, 2));
    assert_non_null(block);
    tw_input_reset(&s, 2, block);
    struct tw_input_state st = tw_input_view(&s, 2, block);
    double u[N];
    size_t first = 0; /* where the present run of values began */
    for (size_t k = 0; k < N; k++) {
        const bool known = !(k >= HOLE && k < HOLE_END) && !(k >= GONE && k < BACK);
        const double w = 200.0 + 40.0 * sin(0.3 * (double)k) + (double)(k % 7);
        tw_input_push(&s, &st, 0, known ? (float)w : NAN);
        tw_input_push(&s, &st, 1, NAN);
        u[k] = known ? (w - 200.0) / 50.0 : k > 0 ? u[k - 1] : 0.0;
        if (k == BACK)
            first = BACK;
        float x[TW_INPUT_COUNT];
        tw_input_read(&s, &st, 0, x);
        if (k >= GONE + 60 && k < BACK) { /* held for a minute, then forgotten */
            assert_false(tw_input_is_ready(&s, &st, 0));
            assert_int_equal(st.age[0], 0);
        } else {
            const size_t age = k - first + 1;
            double sum10 = 0, sum60 = 0, q60 = 0;
            const size_t n10 = age < 10 ? age : 10, n60 = age < 60 ? age : 60;
            for (size_t i = 0; i < n60; i++) {
                sum10 += i < n10 ? u[k - i] : 0.0;
                sum60 += u[k - i];
                q60 += u[k - i] * u[k - i];
            }
            const double mean = sum60 / (double)n60, var = q60 / (double)n60 - mean * mean;
            near((double)x[TW_INPUT_MEAN60], mean, 1e-5);
            near((double)x[TW_INPUT_LAST], 3.0 * (u[k] - mean), 1e-5);
            near((double)x[TW_INPUT_PREVIOUS], 3.0 * (u[age > 1 ? k - 1 : k] - mean), 1e-5);
            near((double)x[TW_INPUT_MEAN10], 3.0 * (sum10 / (double)n10 - mean), 1e-5);
            near((double)x[TW_INPUT_STD60], 3.0 * sqrt(var > 0 ? var : 0), 1e-3);
            near((double)x[TW_INPUT_ELAPSED], (double)age / ((double)age + 600.0), 1e-6);
            assert_int_equal(tw_input_is_ready(&s, &st, 0), age > 60);
            for (size_t lag = 0; lag <= 60; lag++)
                near((double)tw_input_lag(&s, &st, 0, lag), u[lag < age ? k - lag : first], 1e-6);
        }
        tw_input_read(&s, &st, 1, x);
        near((double)x[TW_INPUT_LAST], 0.0, 0.0);
        assert_false(tw_input_is_ready(&s, &st, 1));
        tw_input_advance(&st);
    }
    free(block);
}

static void test_splits(void **state)
{
    (void)state;
    struct tw_split_row r[4];
    size_t n = 0;
    struct tw_why why = {""};
    const char *ok =
        "run,folder,file,channel,split,x,gpus_per_value\r\nr1,f,a.csv,gpu0,train,,1\n\nr2,f,b.csv,,test,,8";
    assert_int_equal(tw_split_parse(ok, strlen(ok), r, 4, &n, &why), TW_OK);
    assert_int_equal(n, 2);
    assert_string_equal(r[0].channel, "gpu0");
    assert_string_equal(r[1].run, "r2");
    assert_string_equal(r[1].channel, "");
    near(r[1].gpus_per_value, 8.0, 0.0);
    static const char *const bad[] = {
        "",
        "folder,file\n",
        "folder,file,channel,run,split,gpus_per_value\nf,a.csv,,r,train,zero\n",
        "folder,file,channel,run,split,gpus_per_value\nf,../a.csv,,r,train,1\n",
        "folder,file,channel,run,split,gpus_per_value\n..,a.csv,,r,train,1\n",
        "folder,file,channel,run,split,gpus_per_value\nf,a.csv,,r\n",
        "folder,file,channel,run,split,gpus_per_value\nf,a.csv,,r,train,nan\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        n = 77;
        why.text[0] = '\0';
        if (tw_split_parse(bad[i], strlen(bad[i]), r, 4, &n, &why) == TW_OK)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(n, 77);
        assert_true(strlen(why.text) > 5);
    }
    assert_int_equal(tw_split_parse(ok, strlen(ok), r, 1, &n, &why), TW_ELIMIT);
}

static void test_sets(void **state)
{
    (void)state;
    struct tw_set set;
    struct tw_why why;
    assert_int_equal(tw_set_parse("nvidia-h200-infer/llm", &set, &why), TW_OK);
    assert_true(tw_set_has_file(&set, "mixtral-8x7b_run.txt"));
    assert_false(tw_set_has_file(&set, "bert-99_run.txt"));
    assert_int_equal(tw_set_parse("some/lora", &set, &why), TW_OK);
    assert_true(tw_set_has_file(&set, "lora-1.csv"));
    assert_false(tw_set_has_file(&set, "gpt.csv"));
    assert_int_equal(tw_set_parse("some", &set, &why), TW_OK);
    assert_true(tw_set_has_file(&set, "anything"));
    assert_int_equal(tw_set_parse("../x", &set, &why), TW_EINVAL);
    assert_int_equal(tw_set_parse("", &set, &why), TW_EINVAL);
    assert_int_equal(tw_set_parse("a/b/c", &set, &why), TW_EINVAL);
}

enum { RUNS = 6, LEN = 1000 };

static void make(struct tw_dataset *ds, struct tw_track *track, float (*x)[LEN], size_t n)
{
    memset(track, 0, n * sizeof *track);
    *ds = (struct tw_dataset){.step_s = 1.0, .track = track, .n = n};
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < LEN; k++)
            x[i][k] = (float)(i * 1000 + k);
        track[i].x_w = x[i];
        track[i].n = LEN;
        (void)snprintf(track[i].run, sizeof track[i].run, "run%zu", i);
    }
}

static void test_parts(void **state)
{
    (void)state;
    static struct tw_track track[RUNS];
    static float x[RUNS][LEN];
    struct tw_dataset ds;
    struct tw_why why;
    bool dealt = false;
    struct tw_set set = {.val_is_tail = true};
    const char *const words[] = {"train", "train", "val", "test", "unused", "train"};
    make(&ds, track, x, RUNS);
    memcpy(x[1], x[0], sizeof x[0]);
    memcpy(x[5], x[0], sizeof x[0]);
    (void)snprintf(track[1].run, sizeof track[1].run, "run0");
    assert_int_equal(tw_dataset_part(&ds, &set, words, &dealt, &why), TW_OK);
    assert_false(dealt);
    assert_true(track[1].twin);  /* of run 0, which has the same values */
    assert_false(track[5].twin); /* the same values in another run are a repeat */
    assert_false(track[0].twin);
    /* published validation is left out; the last fifth of training runs validates, a minute away */
    assert_int_equal(track[2].part[TW_PART_VAL].to, 0);
    assert_int_equal(track[0].part[TW_PART_TRAIN].to, 740);
    assert_int_equal(track[0].part[TW_PART_VAL].from, 800);
    assert_int_equal(track[0].part[TW_PART_VAL].to, LEN);
    assert_int_equal(track[3].part[TW_PART_TEST].to, LEN);
    assert_int_equal(track[4].part[TW_PART_TEST].to + track[4].part[TW_PART_TRAIN].to, 0);
    const uint64_t hash = ds.hash;
    x[3][500] += 1.0f;
    assert_int_equal(tw_dataset_part(&ds, &set, words, &dealt, &why), TW_OK);
    assert_true(hash != ds.hash);

    /* dealt out by name: of five runs the fourth validates, the fifth tests */
    set.val_is_tail = false;
    make(&ds, track, x, RUNS);
    assert_int_equal(tw_dataset_part(&ds, &set, NULL, &dealt, &why), TW_OK);
    assert_true(dealt);
    for (size_t i = 0; i < RUNS; i++)
        assert_int_equal(track[i].part[i == 3 ? TW_PART_VAL : i == 4 ? TW_PART_TEST : TW_PART_TRAIN].to, LEN);
    make(&ds, track, x, 1);
    assert_int_equal(tw_dataset_part(&ds, &set, NULL, &dealt, &why), TW_OK);
    assert_int_equal(track[0].part[TW_PART_TEST].from, 800);
    make(&ds, track, x, 2);
    assert_int_equal(tw_dataset_part(&ds, &set, (const char *const[]){"test", "test"}, &dealt, &why),
                     TW_ENODATA);

    make(&ds, track, x, 1);
    x[0][3] = NAN;
    assert_int_equal(tw_dataset_part(&ds, &set, (const char *const[]){"train"}, &dealt, &why), TW_OK);
    const struct tw_scaler scaler = tw_dataset_scaler(&ds); /* 0 .. 599 without 3 */
    near(scaler.mean_w, (599.0 * 600.0 / 2.0 - 3.0) / 599.0, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),   cmocka_unit_test(test_bins),   cmocka_unit_test(test_hold),
        cmocka_unit_test(test_inputs), cmocka_unit_test(test_splits), cmocka_unit_test(test_sets),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
