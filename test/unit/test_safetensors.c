/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors: a file written by hand, byte by byte, and every way we know to damage one. */
#include "codec/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tw_st st;

/* Length, header and data put together; length 0 means that of the header. */
static size_t file_of(unsigned char *buf, const char *header, uint64_t length, const float *data, size_t n)
{
    if (length == 0)
        length = strlen(header);
    for (int i = 0; i < 8; i++)
        buf[i] = (unsigned char)(length >> (8 * i));
    memcpy(buf + 8, header, strlen(header));
    if (n > 0)
        memcpy(buf + 8 + strlen(header), data, n * sizeof *data);
    return 8 + strlen(header) + n * sizeof *data;
}

static const float six[6] = {1, 2, 3, -4, 5.5f, 6};

static void test_read(void **state)
{
    (void)state;
    unsigned char buf[1024];
    size_t n = file_of(
        buf,
        " { \"__metadata__\" : {\"a\\u00e9\\n\":\"\\\"x\\\\\", "
        "\"b\":\"\"},\n\"w\":{\"shape\":[2,2],\"dtype\":\"F32\","
        "\"data_offsets\":[0,16]}, \"b\":{\"dtype\":\"F32\",\"data_offsets\":[16,24],\"shape\":[2]}}   ",
        0, six, 6);
    struct tw_why why = {""};
    assert_int_equal(tw_st_read(buf, n, &st, &why), TW_OK);
    assert_int_equal(st.n_tensor, 2);
    assert_string_equal(tw_st_meta(&st, "a\xc3\xa9\n"), "\"x\\");
    assert_string_equal(tw_st_meta(&st, "b"), "");
    assert_null(tw_st_meta(&st, "c"));
    const struct tw_st_tensor *w = tw_st_find(&st, "w"), *b = tw_st_find(&st, "b");
    assert_non_null(w);
    assert_non_null(b);
    assert_int_equal(w->n_dim, 2);
    assert_int_equal(w->dim[1], 2);
    float got[4];
    tw_st_copy(w, got);
    assert_memory_equal(got, six, 16);
    tw_st_copy(b, got);
    assert_memory_equal(got, six + 4, 8);
    /* a scalar has no dimension, an empty array no bytes */
    n = file_of(buf,
                "{\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                "\"e\":{\"dtype\":\"F32\",\"shape\":[0,9],\"data_offsets\":[4,4]}}",
                0, six, 1);
    assert_int_equal(tw_st_read(buf, n, &st, &why), TW_OK);
    assert_int_equal(tw_st_find(&st, "e")->n, 0);
}

#define ONE(offsets, shape) "{\"w\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}}"

static void test_damage(void **state)
{
    (void)state;
    static const struct {
        const char *what, *header;
        uint64_t length;
        size_t floats;
        enum tw_err err;
    } c[] = {
        {"cut data", ONE("0,24", "6"), 0, 5, TW_EPARSE},
        {"header beyond the file", ONE("0,24", "6"), 5000, 6, TW_EPARSE},
        {"10 GB by its header", ONE("0,24", "6"), 10000000000u, 6, TW_EPARSE},
        {"2^64 - 1 by its header", ONE("0,24", "6"), UINT64_MAX, 6, TW_EPARSE},
        {"10 GB by its shape", ONE("0,24", "2500000000"), 0, 6, TW_EPARSE},
        {"shape that overflows", ONE("0,24", "4294967296,4294967296,4294967296"), 0, 6, TW_EPARSE},
        {"shape over 2^64", ONE("0,24", "99999999999999999999"), 0, 6, TW_EPARSE},
        {"shape that does not fit", ONE("0,24", "5"), 0, 6, TW_EPARSE},
        {"offsets back to front", ONE("24,0", "6"), 0, 6, TW_EPARSE},
        {"one offset", ONE("0", "6"), 0, 6, TW_EPARSE},
        {"five dimensions", ONE("0,24", "1,1,1,1,6"), 0, 6, TW_EPARSE},
        {"negative shape", ONE("0,24", "-6"), 0, 6, TW_EPARSE},
        {"another type", "{\"w\":{\"dtype\":\"BF16\",\"shape\":[6],\"data_offsets\":[0,12]}}", 0, 3,
         TW_EUNSUPPORTED},
        {"overlap",
         "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         0, 3, TW_EPARSE},
        {"not JSON", "hello", 0, 0, TW_EPARSE},
        {"no end", "{\"w\":{\"dtype\":\"F32\"", 0, 0, TW_EPARSE},
        {"no end of a string", "{\"w", 0, 0, TW_EPARSE},
        {"more after the end", "{}{}", 0, 0, TW_EPARSE},
        {"a comma too much", "{\"__metadata__\":{\"a\":\"b\",}}", 0, 0, TW_EPARSE},
        {"metadata that is no text", "{\"__metadata__\":{\"a\":1}}", 0, 0, TW_EPARSE},
        {"a bad escape", "{\"__metadata__\":{\"a\":\"\\q\"}}", 0, 0, TW_EPARSE},
        {"a surrogate", "{\"__metadata__\":{\"a\":\"\\ud800\"}}", 0, 0, TW_EPARSE},
        {"a field of its own", "{\"w\":{\"dtype\":\"F32\",\"x\":1}}", 0, 0, TW_EPARSE},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        unsigned char buf[1024];
        struct tw_why why = {""};
        size_t n = file_of(buf, c[i].header, c[i].length, six, c[i].floats);
        enum tw_err err = tw_st_read(buf, n, &st, &why);
        if (err != c[i].err)
            fail_msg("%s: got %s (%s)", c[i].what, tw_err_text(err), why.text);
        assert_true(strlen(why.text) > 5);
    }
    unsigned char buf[64] = {0};
    struct tw_why why = {""};
    for (size_t n = 0; n < 9; n++)
        assert_int_equal(tw_st_read(buf, n, &st, &why), TW_EPARSE);
    const float nan_inside[2] = {1.0f, NAN}, inf_inside[2] = {INFINITY, 1.0f};
    unsigned char big[256];
    size_t n = file_of(big, ONE("0,8", "2"), 0, nan_inside, 2);
    assert_int_equal(tw_st_read(big, n, &st, &why), TW_ERANGE);
    n = file_of(big, ONE("0,8", "2"), 0, inf_inside, 2);
    assert_int_equal(tw_st_read(big, n, &st, &why), TW_ERANGE);
}

/* Every prefix of a good file is refused, whatever stands behind it in memory. */
static void test_prefix(void **state)
{
    (void)state;
    unsigned char buf[512];
    size_t n = file_of(buf, ONE("0,24", "2,3"), 0, six, 6);
    for (size_t cut = 0; cut < n; cut++) {
        unsigned char *copy = malloc(cut ? cut : 1); /* its own block: a read beyond is seen by sanitizers */
        assert_non_null(copy);
        memcpy(copy, buf, cut);
        struct tw_why why;
        if (tw_st_read(copy, cut, &st, &why) == TW_OK)
            fail_msg("a file cut to %zu of %zu bytes was read", cut, n);
        free(copy);
    }
}

static void test_write(void **state)
{
    (void)state;
    static struct tw_st back;
    unsigned char buf[512];
    size_t n = 0, planned = 0;
    struct tw_why why;
    memset(&st, 0, sizeof st);
    st.n_meta = 1;
    st.meta[0] = (struct tw_st_meta){"k", "a\"\n\xc3\xa9"};
    st.n_tensor = 1;
    st.tensor[0] =
        (struct tw_st_tensor){.name = "w", .n_dim = 2, .dim = {2, 3}, .n = 6, .data = (const void *)six};
    assert_int_equal(tw_st_write(&st, NULL, 0, &planned, &why), TW_OK);
    assert_int_equal(tw_st_write(&st, buf, sizeof buf, &n, &why), TW_OK);
    assert_int_equal(n, planned);
    assert_int_equal((n - 24) % 8, 0); /* data on a multiple of eight, as the format wants */
    assert_int_equal(tw_st_read(buf, n, &back, &why), TW_OK);
    assert_string_equal(tw_st_meta(&back, "k"), "a\"\n\xc3\xa9");
    float got[6];
    tw_st_copy(tw_st_find(&back, "w"), got);
    assert_memory_equal(got, six, sizeof six);
    assert_int_equal(tw_st_write(&st, buf, n - 1, &n, &why), TW_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
