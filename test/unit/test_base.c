/* SPDX-License-Identifier: Apache-2.0 */
/* base: numbers with units, arena, JSON writer, random numbers, statistics, errors. */
#include "base/arena.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/stat.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct num_case {
    const char *text;
    enum tw_err err;
    double want;
};

static void check_cases(const struct num_case *c, size_t n,
                        enum tw_err (*parse)(const char *, double *, struct tw_why *))
{
    for (size_t i = 0; i < n; i++) {
        double got = -77.0;
        struct tw_why why = {""};
        enum tw_err err = parse(c[i].text, &got, &why);
        if (err != c[i].err)
            fail_msg("\"%s\": got %s, want %s", c[i].text, tw_err_text(err), tw_err_text(c[i].err));
        if (err == TW_OK && !(fabs(got - c[i].want) <= 1e-12 * fabs(c[i].want)))
            fail_msg("\"%s\": got %g, want %g", c[i].text, got, c[i].want);
        if (err != TW_OK) {
            assert_true(got < -76.0 && got > -78.0); /* untouched */
            assert_true(strlen(why.text) > 5);
        }
    }
}

static void test_frac(void **state)
{
    (void)state;
    static const struct num_case c[] = {
        {"30%", TW_OK, 0.3},    {" 0.3 ", TW_OK, 0.3},  {"0", TW_OK, 0.0},        {"100%", TW_OK, 1.0},
        {"150%", TW_ERANGE, 0}, {"-5%", TW_ERANGE, 0},  {"abc", TW_EPARSE, 0},    {"", TW_EPARSE, 0},
        {"nan", TW_EPARSE, 0},  {"inf%", TW_EPARSE, 0}, {"0x1p-1", TW_EPARSE, 0}, {"30%%", TW_EPARSE, 0},
        {"30", TW_ERANGE, 0},   {"3 0%", TW_EPARSE, 0}, {"1e-1", TW_OK, 0.1},     {"30 %", TW_OK, 0.3},
    };
    check_cases(c, sizeof c / sizeof *c, tw_num_frac);
}

static void test_power(void **state)
{
    (void)state;
    static const struct num_case c[] = {
        {"350", TW_OK, 350},     {"350W", TW_OK, 350},  {"12kW", TW_OK, 12000},  {"1.5 MW", TW_OK, 1.5e6},
        {"5mW", TW_OK, 0.005},   {"-1W", TW_ERANGE, 0}, {"12kWh", TW_EPARSE, 0}, {"W", TW_EPARSE, 0},
        {"1e400", TW_EPARSE, 0}, {"12k", TW_EPARSE, 0},
    };
    check_cases(c, sizeof c / sizeof *c, tw_num_power);
}

static void test_duration(void **state)
{
    (void)state;
    static const struct num_case c[] = {
        {"90s", TW_OK, 90},     {"5m", TW_OK, 300},   {"3h", TW_OK, 10800},  {"1h30m", TW_OK, 5400},
        {"250ms", TW_OK, 0.25}, {"60", TW_OK, 60},    {"2d", TW_OK, 172800}, {"5 min", TW_OK, 300},
        {"", TW_EPARSE, 0},     {"5x", TW_EPARSE, 0}, {"-1s", TW_ERANGE, 0}, {"1h30", TW_EPARSE, 0},
    };
    check_cases(c, sizeof c / sizeof *c, tw_num_duration);
}

static void test_i64(void **state)
{
    (void)state;
    int64_t v = 0;
    assert_int_equal(tw_num_i64(" 42 ", 0, 100, &v, NULL), TW_OK);
    assert_int_equal(v, 42);
    assert_int_equal(tw_num_i64("101", 0, 100, &v, NULL), TW_ERANGE);
    assert_int_equal(tw_num_i64("99999999999999999999", 0, INT64_MAX, &v, NULL), TW_ERANGE);
    assert_int_equal(tw_num_i64("4.2", 0, 100, &v, NULL), TW_EPARSE);
    assert_int_equal(v, 42);
}

static void test_arena(void **state)
{
    (void)state;
    static _Alignas(64) unsigned char block[4096];
    struct tw_arena a;
    tw_arena_init(&a, block, sizeof block);
    unsigned char *p = tw_arena_alloc(&a, 10, 3);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % TW_ARENA_ALIGN, 0);
    size_t mark = tw_arena_mark(&a);
    double *d = TW_ARENA_ARRAY(&a, double, 100);
    assert_non_null(d);
    for (int i = 0; i < 100; i++)
        assert_true(d[i] >= 0.0 && d[i] <= 0.0); /* zeroed */
    assert_null(tw_arena_alloc(&a, 4096, 1));
    assert_null(tw_arena_alloc(&a, SIZE_MAX / 2, 4)); /* overflow of count * size */
    tw_arena_release(&a, mark);
    assert_ptr_equal(tw_arena_alloc(&a, 1, 1), d);
    assert_true(a.peak >= 800);
}

struct text {
    char s[512];
    size_t n;
};

static enum tw_err into_text(void *ctx, const char *bytes, size_t n)
{
    struct text *t = ctx;
    if (t->n + n >= sizeof t->s)
        return TW_ELIMIT;
    memcpy(t->s + t->n, bytes, n);
    t->n += n;
    t->s[t->n] = '\0';
    return TW_OK;
}

static void test_jsonw(void **state)
{
    (void)state;
    struct text t = {.n = 0};
    struct tw_jsonw w;
    tw_jsonw_init(&w, into_text, &t, false);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "a\"b", "x\n\x01\xff\xc3\xa9");
    tw_jsonw_array(&w, "v");
    tw_jsonw_f64(&w, NULL, 0.1);
    tw_jsonw_f64(&w, NULL, (double)NAN);
    tw_jsonw_f64(&w, NULL, 1.0 / 3.0);
    tw_jsonw_num(&w, NULL, 1.0 / 3.0, 3);
    tw_jsonw_i64(&w, NULL, INT64_MIN);
    tw_jsonw_end(&w);
    tw_jsonw_bool(&w, "t", true);
    tw_jsonw_object(&w, "empty");
    tw_jsonw_end(&w);
    tw_jsonw_null(&w, "n");
    tw_jsonw_end(&w);
    assert_int_equal(w.err, TW_OK);
    assert_string_equal(t.s,
                        "{\"a\\\"b\":\"x\\n\\u0001\\ufffd\xc3\xa9\",\"v\":[0.1,null,0.3333333333333333,0.333,"
                        "-9223372036854775808],\"t\":true,\"empty\":{},\"n\":null}\n");
}

static void test_rng(void **state)
{
    (void)state;
    struct tw_rng a, b;
    tw_rng_init(&a, 1, 0);
    tw_rng_init(&b, 1, 1);
    double sum = 0, squares = 0, cross = 0;
    enum { N = 20000 };
    for (int i = 0; i < N; i++) {
        double x = tw_rng_normal(&a), y = tw_rng_normal(&b);
        sum += x;
        squares += x * x;
        cross += x * y;
    }
    /* four standard errors: 1/sqrt(N) for mean and correlation, sqrt(2/N) for the variance */
    assert_true(fabs(sum / N) < 4.0 / sqrt(N));
    assert_true(fabs(squares / N - 1.0) < 4.0 * sqrt(2.0 / N));
    assert_true(fabs(cross / N) < 4.0 / sqrt(N));
    unsigned seen[5] = {0};
    for (int i = 0; i < 5000; i++)
        seen[tw_rng_below(&a, 5)]++;
    for (int i = 0; i < 5; i++)
        assert_in_range(seen[i], 850, 1150);
}

static void test_stat(void **state)
{
    (void)state;
    double x[] = {3, 1, 2, 5, 4};
    assert_true(fabs(tw_stat_std(x, 5) - sqrt(2.5)) < 1e-12);
    tw_stat_sort(x, 5);
    for (int i = 0; i < 5; i++)
        assert_true(fabs(x[i] - (i + 1)) < 1e-12);
    assert_true(fabs(tw_stat_quantile_sorted(x, 5, 0.1) - 1.4) < 1e-12);
    assert_true(fabs(tw_stat_quantile_sorted(x, 5, 1.0) - 5.0) < 1e-12);
    assert_true(isnan(tw_stat_mean(x, 0)));
    double one[] = {1, 0, 0, 0};
    assert_true(fabs(tw_stat_jain(one, 4) - 0.25) < 1e-12);
}

static void test_why(void **state)
{
    (void)state;
    struct tw_why why = {""};
    assert_int_equal(tw_fail(&why, TW_EPARSE, "row %d", 3), TW_EPARSE);
    tw_why_prefix(&why, "%s:%d: ", "a.csv", 7);
    assert_string_equal(why.text, "a.csv:7: row 3");
    assert_string_equal(tw_err_text((enum tw_err)99), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frac), cmocka_unit_test(test_power), cmocka_unit_test(test_duration),
        cmocka_unit_test(test_i64),  cmocka_unit_test(test_arena), cmocka_unit_test(test_jsonw),
        cmocka_unit_test(test_rng),  cmocka_unit_test(test_stat),  cmocka_unit_test(test_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
