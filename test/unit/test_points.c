/* SPDX-License-Identifier: Apache-2.0 */
/* codec/points: what a table of points may look like, and what it may not. */
#include "codec/points.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static _Alignas(64) unsigned char memory[1 << 20];

static enum tw_err read_as(const char *text, size_t n, enum tw_points_aggregate how, struct tw_points *ret,
                           struct tw_why *why)
{
    struct tw_arena a;
    size_t bytes = tw_points_bytes(text, n);
    assert_true(bytes <= sizeof memory);
    tw_arena_init(&a, memory, bytes); /* no more than it asked for */
    return tw_points_read(text, n, how, &a, ret, why);
}

static struct tw_points good(const char *text)
{
    struct tw_points p = {0};
    struct tw_why why = {""};
    if (read_as(text, strlen(text), TW_POINTS_MEAN, &p, &why) != TW_OK)
        fail_msg("refused: %s", why.text);
    return p;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * fabs(want)))
        fail_msg("got %.12g, want %.12g", got, want);
}

static void test_columns_in_any_order(void **state)
{
    (void)state;
    struct tw_points p = good("\xef\xbb\xbfunit,more,throughput,power_w, setting ,gpu,job,n_gpus\r\n"
                              "tokens/s,x,10.5,200,400,H100,a,8\r\n"
                              "\r\n"
                              "tokens/s,y,9e0,1.5e2,300,H100,a,8\r\n");
    assert_int_equal(p.n_jobs, 1);
    assert_int_equal(p.n_rows, 2);
    assert_string_equal(p.job[0].gpu, "H100");
    assert_string_equal(p.job[0].set, "");
    near(p.job[0].n_gpus, 8);
    assert_true(isnan(p.job[0].second));
    assert_int_equal(p.job[0].n, 2);
    near(p.job[0].point[0].throughput, 10.5);
    near(p.job[0].point[1].power_w, 150);
    assert_int_equal(p.job[0].point[1].line, 4); /* the blank line counts */
}

static void test_quotes(void **state)
{
    (void)state;
    struct tw_points p =
        good("job,setting,power_w,throughput,unit\n\"a, \"\"b\"\"\",\"1\",\"2\",3,\"steps/s\"");
    assert_string_equal(p.job[0].job, "a, \"b\"");
    near(p.job[0].point[0].power_w, 2);
}

static void test_reference_is_the_largest_setting(void **state)
{
    (void)state;
    struct tw_points p = good("set,job,setting,power_w,throughput,unit\n"
                              "s,a,100,50,4,steps/s\ns,a,uncapped,90,9,steps/s\ns,a,300,80,8,steps/s\n"
                              "s,b,300,80,8,steps/s\nt,a,300,70,7,steps/s\n");
    assert_int_equal(p.n_jobs, 3);
    near(p.job[0].point[0].power_w, 90);
    near(p.job[0].point[2].setting, 100);
    assert_string_equal(p.job[2].set, "t");
    near(p.job[2].point[0].power_w, 70);
}

static void test_two_knobs(void **state)
{
    (void)state;
    struct tw_points p = good("job,setting,power_w,throughput,unit\n"
                              "a,150@1380,100,8,iters/s\na,300@405,60,2,iters/s\na,300@1380,200,10,iters/s\n");
    assert_int_equal(p.n_jobs, 2);
    assert_string_equal(p.job[0].job, "a@1380");
    near(p.job[0].second, 1380);
    near(p.job[0].point[0].power_w, 200);
    assert_string_equal(p.job[1].job, "a@405");
    assert_int_equal(p.job[1].n, 1);
}

static void test_repeats(void **state)
{
    (void)state;
    /* twelve repeats of one setting, power 1..12: mean 6.5; the highest tenth is two of them, 11.5 */
    char text[512] = "job,setting,power_w,throughput,unit\n";
    size_t n = strlen(text);
    for (int i = 1; i <= 12; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "a,5,%d,%d,runs/s\n", i, 13 - i);
    struct tw_points p = good(text);
    assert_int_equal(p.job[0].n, 1);
    assert_int_equal(p.job[0].point[0].count, 12);
    near(p.job[0].point[0].power_w, 6.5);
    assert_int_equal(read_as(text, n, TW_POINTS_TOP10, &p, NULL), TW_OK);
    near(p.job[0].point[0].power_w, 11.5);
    near(p.job[0].point[0].throughput, 11.5);
}

static void test_refused(void **state)
{
    (void)state;
#define HEAD "job,setting,power_w,throughput,unit\n"
    static const struct {
        const char *text, *says;
        enum tw_err err;
    } bad[] = {
        {"", "no column", TW_EPARSE},
        {"job,setting\n", "no column \"power_w\"", TW_EPARSE},
        {"job,job,setting,power_w,throughput,unit\n", "twice", TW_EPARSE},
        {HEAD, "no rows", TW_ENODATA},
        {HEAD "\n\n", "no rows", TW_ENODATA},
        {HEAD "a,1,2,3\n", "line 2: 4 fields", TW_EPARSE},
        {HEAD "a,1,2,3,runs/s,9\n", "line 2: 6 fields", TW_EPARSE},
        {HEAD "a,1,0,3,runs/s\n", "line 2: power_w is 0", TW_ERANGE},
        {HEAD "a,1,-4,3,runs/s\n", "line 2: power_w is -4", TW_ERANGE},
        {HEAD "a,1,nan,3,runs/s\n", "line 2: power_w is \"nan\"", TW_EPARSE},
        {HEAD "a,1,,3,runs/s\n", "line 2: power_w is \"\"", TW_EPARSE},
        {HEAD "a,1,2,inf,runs/s\n", "throughput is \"inf\"", TW_EPARSE},
        {HEAD "a,1,2,-3,runs/s\n", "throughput is -3", TW_ERANGE},
        {HEAD "a,1,2,0,runs/s\n", "no uncapped reference", TW_ERANGE},
        {HEAD "a,,2,3,runs/s\n", "no uncapped reference", TW_EPARSE},
        {HEAD "a,1@x,2,3,runs/s\n", "expected a number, or two", TW_EPARSE},
        {HEAD "a,1,2,3,rods\n", "unit \"rods\"", TW_ERANGE},
        {HEAD "a,1,2,3,\n", "unit \"\"", TW_ERANGE},
        {HEAD ",1,2,3,runs/s\n", "job is empty", TW_EPARSE},
        {HEAD "a,1,2,3,runs/s\na,2,2,3,steps/s\n", "line 3: unit", TW_EPARSE},
        {HEAD "\"a,1,2,3,runs/s\n", "does not end", TW_EPARSE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tw_points p = {.n_jobs = 77};
        struct tw_why why = {""};
        enum tw_err err = read_as(bad[i].text, strlen(bad[i].text), TW_POINTS_MEAN, &p, &why);
        if (err != bad[i].err || !strstr(why.text, bad[i].says))
            fail_msg("case %zu: %s, \"%s\"; want \"%s\"", i, tw_err_text(err), why.text, bad[i].says);
        assert_int_equal(p.n_jobs, 77); /* untouched */
    }
    struct tw_why why = {""};
    struct tw_points p;
    assert_int_equal(read_as(HEAD "a\0b,1,2,3,runs/s\n", sizeof HEAD + 16, TW_POINTS_MEAN, &p, &why),
                     TW_EPARSE);
    assert_non_null(strstr(why.text, "NUL"));
}

/* A file cut at any byte is read or refused with its line; never more, under the sanitizers. */
static void test_cut_anywhere(void **state)
{
    (void)state;
    static const char text[] =
        "set,job,setting,power_w,throughput,unit\r\ns,\"a \"\"q\"\"\",300@5,100,8,steps/s\r\n"
        "s,\"a \"\"q\"\"\",100@5,50,4,steps/s\r\n";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        struct tw_points p;
        struct tw_why why = {""};
        enum tw_err err = read_as(text, n, TW_POINTS_MEAN, &p, &why);
        assert_true(err == TW_OK || strlen(why.text) > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_in_any_order),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_reference_is_the_largest_setting),
        cmocka_unit_test(test_two_knobs),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cut_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
