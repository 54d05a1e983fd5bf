/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the privileged helper that compute: state table, chained lines, saved state, requests, rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/chain.h"
#include "capd/rules.h"
#include "capd/saved.h"
#include "capd/wire.h"
#include "ctl/lease.h"
#include "sys/audit.h"
#include "sys/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- state table ---- */

static void test_lease_table_is_total(void **state)
{
    (void)state;
    for (int s = 0; s < TW_LEASE_STATES; s++)
        for (int e = 0; e < TW_LEASE_EVENTS; e++) {
            const struct tw_lease_row *row = &tw_lease_table[s][e];
            if (!row->set || row->next >= TW_LEASE_STATES || row->action >= TW_LEASE_ACTIONS)
                fail_msg("%s x %s has no row", tw_lease_state_name[s], tw_lease_event_name[e]);
            if (row->action == TW_LEASE_DO_REFUSE)
                assert_int_equal(row->next, s); /* what is refused changes nothing */
        }
}

/* Promise 2, read off the table: whatever holds a GPU that may have been written, its end leads down. */
static void test_lease_end_leads_down_from_every_held_state(void **state)
{
    (void)state;
    static const int held[] = {TW_LEASE_SAVED, TW_LEASE_WRITTEN, TW_LEASE_CONFIRMED, TW_LEASE_CONTESTED};
    static const int end[] = {TW_LEASE_EV_LAPSE, TW_LEASE_EV_DEATH, TW_LEASE_EV_LEAVE};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        for (size_t k = 0; k < sizeof end / sizeof *end; k++) {
            assert_int_equal(tw_lease_table[held[i]][end[k]].next, TW_LEASE_EXPIRED);
            assert_int_equal(tw_lease_table[held[i]][end[k]].action, TW_LEASE_DO_LOWER);
        }
    assert_int_equal(tw_lease_table[TW_LEASE_IDLE][TW_LEASE_EV_BOOT].action, TW_LEASE_DO_LOWER);
}

/* A limit is written up only where somebody living asked for it, or allowed it; the one re-assertion answers a
 * raise. */
static void test_lease_writes_only_on_request(void **state)
{
    (void)state;
    for (int s = 0; s < TW_LEASE_STATES; s++)
        for (int e = 0; e < TW_LEASE_EVENTS; e++)
            if (tw_lease_table[s][e].action == TW_LEASE_DO_WRITE)
                assert_true(e == TW_LEASE_EV_SET || e == TW_LEASE_EV_RELEASE || e == TW_LEASE_EV_ALLOW ||
                            (e == TW_LEASE_EV_DRIFT && (s == TW_LEASE_CONFIRMED || s == TW_LEASE_WRITTEN)));
}

static void test_lease_stored_states_cover_every_write(void **state)
{
    (void)state;
    for (int s = 0; s < TW_LEASE_STATES; s++)
        for (int e = 0; e < TW_LEASE_EVENTS; e++) {
            const struct tw_lease_row *row = &tw_lease_table[s][e];
            bool writes = row->action == TW_LEASE_DO_WRITE || row->action == TW_LEASE_DO_LOWER;
            if (writes && e != TW_LEASE_EV_BOOT) /* at boot it is on the disk already */
                assert_true(tw_lease_is_stored((enum tw_lease_state)s) && s != TW_LEASE_FOUND);
        }
}

static void test_lease_nan_is_a_failure(void **state)
{
    (void)state;
    struct tw_lease l;
    tw_lease_init(&l, 400.0, 700.0);
    for (int s = 0; s < TW_LEASE_STATES; s++) {
        l.state = (enum tw_lease_state)s;
        assert_int_equal(tw_lease_judge(&l, 0, true, (double)NAN, 300.0), TW_LEASE_EV_FAIL);
        assert_int_equal(tw_lease_judge(&l, 0, true, 300.0, 0.0), TW_LEASE_EV_FAIL);
        assert_int_equal(tw_lease_judge(&l, 0, false, 300.0, 300.0), TW_LEASE_EV_FAIL);
    }
}

/* ---- chained lines ---- */

/* FIPS 180-4 examples (NIST, SHA256.pdf), and the million of 'a' of FIPS 180-2. */
static void test_sha256_published_values(void **state)
{
    (void)state;
    static char million[1000000];
    memset(million, 'a', sizeof million);
    const struct {
        const char *text;
        size_t n;
        const char *hex;
    } c[] = {
        {"", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {million, sizeof million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        unsigned char digest[32];
        char hex[65];
        tw_sha256(c[i].text, c[i].n, digest);
        for (size_t k = 0; k < 32; k++)
            (void)snprintf(hex + 2 * k, 3, "%02x", digest[k]);
        assert_string_equal(hex, c[i].hex);
    }
}

static size_t chain_text(char *text, size_t n_lines)
{
    struct tw_chain chain;
    char line[TW_CHAIN_LINE_MAX + 1], what[32];
    size_t at = 0;
    tw_chain_init(&chain);
    for (size_t i = 0; i < n_lines; i++) {
        (void)snprintf(what, sizeof what, "%s line", i == 0 ? "first" : i == 1 ? "second" : "another");
        size_t n = tw_chain_line(&chain, what, line);
        memcpy(text + at, line, n);
        at += n;
    }
    return at;
}

static void test_chain_lines(void **state)
{
    (void)state;
    char text[8 * TW_CHAIN_LINE_MAX];
    /* python3: hashlib.sha256(("0" * 32 + " first line").encode()).hexdigest()[:32], and so on */
    static const char expected[] =
        "88f6a1100c6b3109dc410edc3c70f8ee first line\n4a50ba1b7a0b379e574365c5486923cb second line\n";
    assert_int_equal(chain_text(text, 2), sizeof expected - 1);
    assert_memory_equal(text, expected, sizeof expected - 1);
}

static void test_chain_shows_changes(void **state)
{
    (void)state;
    char text[8 * TW_CHAIN_LINE_MAX];
    size_t n = chain_text(text, 6), lines = 0, torn = 0;
    bool tail = true;
    struct tw_why why;
    assert_int_equal(tw_chain_check(text, n, NULL, &lines, &torn, &tail, &why), TW_OK);
    assert_true(lines == 6 && torn == 0 && !tail);
    size_t last = n - strlen("another line\n") - TW_CHAIN_HEX - 1;
    for (size_t i = 0; i < n;
         i++) { /* every bit flip of a byte is seen; in the last line it looks like a torn tail */
        text[i] ^= 1;
        enum tw_err err = tw_chain_check(text, n, NULL, &lines, &torn, &tail, &why);
        if (i < last - 1)
            assert_int_equal(err, TW_EPARSE);
        else
            assert_true(err == TW_EPARSE || tail);
        text[i] ^= 1;
    }
    for (size_t i = 0; i <= n; i++) /* a cut anywhere is a torn tail, not an error */
        assert_int_equal(tw_chain_check(text, i, NULL, &lines, &torn, &tail, &why), TW_OK);
}

static void test_audit_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/audit.XXXXXX", path[64], before[80];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/log", folder);
    (void)snprintf(before, sizeof before, "%s.1", path);
    struct tw_audit a;
    struct tw_why why;
    char *data = NULL;
    size_t n = 0, lines = 0, torn = 0;
    bool tail = false;
    assert_int_equal(tw_audit_open(&a, path, 1 << 20, &why), TW_OK);
    assert_true(tw_audit_add(&a, "one\ntwo"));
    tw_audit_close(&a);
    assert_int_equal(truncate(path, 50), 0); /* in the middle of the stamp or text */
    FILE *f = fopen(path, "ae");
    assert_non_null(f);
    assert_true(fputs("half a li", f) >= 0);
    (void)fclose(f);
    assert_int_equal(tw_audit_open(&a, path, 1 << 20, &why), TW_OK);
    assert_true(tw_audit_add(&a, "after the crash"));
    tw_audit_close(&a);
    assert_int_equal(tw_file_read(path, 1 << 20, &data, &n, &why), TW_OK);
    assert_int_equal(tw_chain_check(data, n, NULL, &lines, &torn, &tail, &why), TW_OK);
    assert_true(lines == 1 && torn == 1 && !tail);
    free(data);
    assert_int_equal(tw_audit_open(&a, path, 4096, &why), TW_OK); /* a ceiling that is soon reached */
    for (int i = 0; i < 60; i++)
        assert_true(tw_audit_add(&a, "line number %d of a log that must turn over now and then", i));
    assert_true(tw_audit_sync(&a) && a.size <= 4096);
    tw_audit_close(&a);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tw_file_read(i ? before : path, 1 << 20, &data, &n, &why), TW_OK);
        assert_int_equal(tw_chain_check(data, n, NULL, &lines, &torn, &tail, &why), TW_OK);
        assert_true(n <= 4096 && lines > 2 && !tail);
        assert_true(strstr(data, "begin ") != NULL);
        free(data);
        assert_int_equal(unlink(i ? before : path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* ---- saved state ---- */

static void fill_saved(struct tw_saved *s)
{
    *s = (struct tw_saved){.n = 3,
                           .gpu = {{.uuid = "GPU-a", .found_w = 700.0, .budget = true},
                                   {.uuid = "GPU-b", .found_w = (double)NAN, .budget = true},
                                   {.uuid = "GPU-c", .found_w = 512.125, .budget = false}}};
}

static void test_saved_round_trip(void **state)
{
    (void)state;
    static char text[TW_SAVED_BYTES];
    static struct tw_saved s, back;
    fill_saved(&s);
    tw_saved_parse(text, tw_saved_print(&s, text), &back);
    assert_true(back.whole && back.n == 3);
    assert_string_equal(back.gpu[2].uuid, "GPU-c");
    assert_true(fabs(back.gpu[2].found_w - 512.125) < 1e-9 && !back.gpu[2].budget);
    assert_true(isnan(back.gpu[1].found_w) && back.gpu[1].budget);
    s.n = 0;
    tw_saved_parse(text, tw_saved_print(&s, text), &back);
    assert_true(back.whole && back.n == 0);
    s.n = TW_SAVED_GPUS;
    for (size_t i = 0; i < s.n; i++)
        (void)snprintf(s.gpu[i].uuid, sizeof s.gpu[i].uuid, "GPU-%043zu", i);
    tw_saved_parse(text, tw_saved_print(&s, text), &back);
    assert_true(back.whole && back.n == TW_SAVED_GPUS);
}

/* Whatever is torn off or flipped, it is noticed, and what is still believed is true. */
static void test_saved_damage_is_noticed(void **state)
{
    (void)state;
    static char text[TW_SAVED_BYTES];
    static struct tw_saved s, back;
    fill_saved(&s);
    size_t n = tw_saved_print(&s, text);
    for (size_t i = 0; i < n; i++) {
        tw_saved_parse(text, i, &back);
        assert_true(!back.whole && back.n <= 3);
    }
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            tw_saved_parse(text, n, &back);
            assert_false(back.whole);
            for (size_t k = 0; k < back.n; k++)
                assert_true(strcmp(back.gpu[k].uuid, "GPU-b") == 0 ||
                            fabs(back.gpu[k].found_w - 700.0) < 1e-9 ||
                            fabs(back.gpu[k].found_w - 512.125) < 1e-9);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
}

/* ---- requests ---- */

static void test_wire_requests(void **state)
{
    (void)state;
    const struct {
        const char *what;
        struct tw_capd_ask ask;
        bool good;
    } c[] = {
        {"hello", {.op = TW_CAPD_HELLO}, true},
        {"status by index", {.op = TW_CAPD_STATUS, .index = 3}, true},
        {"set", {.op = TW_CAPD_SET, .watts = 300.0, .uuid = "GPU-1", .reason = "event_share"}, true},
        {"acquire", {.op = TW_CAPD_ACQUIRE, .kind = TW_CAPD_FREE, .lease_ms = 1000, .uuid = "MIG-1/2:3"}, true},
        {"no such operation", {.op = TW_CAPD_OPS}, false},
        {"set without a GPU", {.op = TW_CAPD_SET, .watts = 300.0}, false},
        {"set of nothing", {.op = TW_CAPD_SET, .uuid = "GPU-1"}, false},
        {"set of NaN", {.op = TW_CAPD_SET, .watts = (double)NAN, .uuid = "GPU-1"}, false},
        {"set of infinity", {.op = TW_CAPD_SET, .watts = (double)INFINITY, .uuid = "GPU-1"}, false},
        {"acquire without a kind", {.op = TW_CAPD_ACQUIRE, .lease_ms = 1000, .uuid = "GPU-1"}, false},
        {"watts in a read", {.op = TW_CAPD_READ, .watts = 1.0, .uuid = "GPU-1"}, false},
        {"a reason in a release", {.op = TW_CAPD_RELEASE, .uuid = "GPU-1", .reason = "x"}, false},
        {"a newline in a name", {.op = TW_CAPD_READ, .uuid = "GPU\n1"}, false},
        {"a blank in a reason", {.op = TW_CAPD_SET, .watts = 1.0, .uuid = "GPU-1", .reason = "a b"}, false},
        {"not zero", {.op = TW_CAPD_HELLO, .zero = 1}, false},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct tw_capd_ask ask = c[i].ask, ret;
        struct tw_why why;
        ask.magic = TW_CAPD_MAGIC;
        if ((tw_capd_parse(&ask, sizeof ask, &ret, &why) == TW_OK) != c[i].good)
            fail_msg("%s", c[i].what);
        assert_int_equal(tw_capd_parse(&ask, sizeof ask - 1, &ret, &why), TW_EPARSE);
        ask.magic++;
        assert_int_equal(tw_capd_parse(&ask, sizeof ask, &ret, &why), TW_EPARSE);
    }
}

/* ---- rules ---- */

static void test_rules(void **state)
{
    (void)state;
    struct tw_why why;
    static struct tw_rules r;
    const char good[] =
        "# a site\ndevice nvml   # by UUID\nuser 1000 status,budget\nuser 0 allow\nlease 500ms 30s\n"
        "gpu GPU-1 min 200W max 700W safe 0.4kW\n\n";
    assert_int_equal(tw_rules_parse("capd.conf", good, &r, &why), TW_OK);
    assert_true(r.n_gpu == 1 && r.n_user == 2 && fabs(r.gpu[0].safe_w - 400.0) < 1e-9 &&
                fabs(r.lease_min_s - 0.5) < 1e-9);
    assert_int_equal(tw_rules_rights(&r, 1000), TW_RIGHT_STATUS | TW_RIGHT_BUDGET);
    assert_int_equal(tw_rules_rights(&r, 1001), 0);
    const struct {
        const char *text, *says;
    } bad[] = {
        {"device nvml\nuser 0 free\n", "names no gpu"},
        {"device nvml\ngpu G min 1 max 3 safe 2\n", "names no user"},
        {"user 0 free\ngpu G min 1 max 3 safe 2\n", "names no device"},
        {"gpu G min 1 max 3 safe 4\n", "capd.conf:1: 0 < min <= safe <= max"},
        {"gpu G min 1 max 3\n", "takes 7 words"},
        {"gpu G min 1 max 3 default 2\n", "write: gpu UUID"},
        {"gpu G min 1 max 3 safe 2\ngpu G min 1 max 3 safe 2\n", "capd.conf:2: G is named twice"},
        {"user 0 root\n", "no right is called"},
        {"user 0 free\nuser 0 status\n", "named twice"},
        {"shell /bin/sh\n", "is not known"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(tw_rules_parse("capd.conf", bad[i].text, &r, &why), TW_OK);
        if (!strstr(why.text, bad[i].says))
            fail_msg("\"%s\" says: %s", bad[i].text, why.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lease_table_is_total),
        cmocka_unit_test(test_lease_end_leads_down_from_every_held_state),
        cmocka_unit_test(test_lease_writes_only_on_request),
        cmocka_unit_test(test_lease_stored_states_cover_every_write),
        cmocka_unit_test(test_lease_nan_is_a_failure),
        cmocka_unit_test(test_sha256_published_values),
        cmocka_unit_test(test_chain_lines),
        cmocka_unit_test(test_chain_shows_changes),
        cmocka_unit_test(test_audit_file),
        cmocka_unit_test(test_saved_round_trip),
        cmocka_unit_test(test_saved_damage_is_noticed),
        cmocka_unit_test(test_wire_requests),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
