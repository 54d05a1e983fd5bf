/* SPDX-License-Identifier: Apache-2.0 */
/* The store: what goes in comes out bit by bit, a source is replaced as a whole or not at all, and a file of
 * others is left alone. */
#include "base/rng.h"
#include "store/store.h"

#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define N 10000 /* two blocks and a part */

static char folder[] = "/tmp/tokwatt-store-XXXXXX";
static char path[64];
static int64_t time_us[N];
static float power_w[N], temp_c[N];

static struct tw_series make_series(const char *name, size_t n)
{
    struct tw_series s = {.n = n, .wall = true, .scope = TW_SCOPE_GPU, .time_us = time_us};
    (void)snprintf(s.name, sizeof s.name, "%s", name);
    (void)snprintf(s.uuid, sizeof s.uuid, "GPU-1");
    (void)snprintf(s.model, sizeof s.model, "a \"model\"");
    s.ch[TW_CH_POWER_W] = power_w;
    s.ch[TW_CH_TEMP_C] = temp_c;
    return s;
}

static struct tw_store *open_store(bool write)
{
    struct tw_store *store = NULL;
    struct tw_why why = {{0}};
    if (tw_store_open(path, write, &store, &why))
        fail_msg("%s", why.text);
    return store;
}

static void put(struct tw_store *store, const char *source, const struct tw_series *s, size_t n)
{
    struct tw_why why = {{0}};
    struct tw_store_source src = {.path = source, .format = "test", .size_bytes = 1, .modified_us = 2};
    if (tw_store_put(store, &src, s, n, &why))
        fail_msg("%s", why.text);
}

struct found {
    size_t n, rows;
    struct tw_store_entry last;
    char name[64];
};

static enum tw_err count(void *ctx, const struct tw_store_entry *e)
{
    struct found *f = ctx;
    f->n++;
    f->rows += e->n;
    f->last = *e;
    (void)snprintf(f->name, sizeof f->name, "%s", e->name);
    assert_string_equal(e->uuid, "GPU-1");
    assert_string_equal(e->model, "a \"model\"");
    assert_true(e->has[TW_CH_POWER_W] && e->has[TW_CH_TEMP_C] && !e->has[TW_CH_ENERGY_J]);
    return TW_OK;
}

static struct found list(struct tw_store *store)
{
    struct found f = {0};
    struct tw_why why = {{0}};
    if (tw_store_list(store, count, &f, &why))
        fail_msg("%s", why.text);
    return f;
}

static enum tw_err compare(void *ctx, const struct tw_series *rows)
{
    size_t *at = ctx;
    assert_memory_equal(rows->time_us, time_us + *at, rows->n * sizeof *time_us);
    assert_memory_equal(rows->ch[TW_CH_POWER_W], power_w + *at, rows->n * sizeof *power_w);
    assert_memory_equal(rows->ch[TW_CH_TEMP_C], temp_c + *at, rows->n * sizeof *temp_c);
    assert_null(rows->ch[TW_CH_ENERGY_J]);
    *at += rows->n;
    return TW_OK;
}

static void test_round_trip(void **state)
{
    struct tw_series s[2] = {make_series("gpu0", N), make_series("gpu1", 1)};
    struct tw_why why = {{0}};
    (void)state;
    struct tw_store *store = open_store(true);
    put(store, "/a", s, 2);
    tw_store_close(store);
    store = open_store(false);
    struct found f = list(store);
    assert_int_equal(f.n, 2);
    assert_int_equal(f.rows, N + 1);
    assert_string_equal(f.name, "gpu1");
    size_t at = 0;
    assert_int_equal(tw_store_read(store, f.last.id - 1, compare, &at, &why), TW_OK);
    assert_int_equal(at, N);
    at = 0;
    assert_int_equal(tw_store_read(store, f.last.id, compare, &at, &why), TW_OK);
    assert_int_equal(at, 1);
    assert_int_equal(tw_store_read(store, 9999, compare, &at, &why), TW_ENOENT);
    tw_store_close(store);
}

static void test_replace(void **state)
{
    struct tw_series s[2] = {make_series("gpu0", 5000), make_series("gpu1", 7)};
    (void)state;
    struct tw_store *store = open_store(true);
    put(store, "/a", s, 2); /* in the place of what the first test put */
    put(store, "/b", s, 2);
    put(store, "/a", s, 1);
    struct found f = list(store);
    assert_int_equal(f.n, 3);
    assert_int_equal(f.rows, 5000 + 5007);
    tw_store_close(store);
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT sum(n) FROM block", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int64(st, 0), 5000 + 5007); /* no blocks left behind */
    sqlite3_finalize(st);
    sqlite3_close(db);
}

/* A writer that dies in the middle of a file leaves what was there before. */
static void test_killed_writer(void **state)
{
    (void)state;
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "PRAGMA foreign_keys=ON; BEGIN IMMEDIATE; DELETE FROM source", NULL, NULL, NULL),
        SQLITE_OK);
    struct tw_store *other = open_store(false);
    assert_int_equal(list(other).n, 3); /* readers see the state before */
    tw_store_close(other);
    sqlite3_close(db); /* without COMMIT */
    struct tw_store *store = open_store(false);
    assert_int_equal(list(store).n, 3);
    tw_store_close(store);
}

static void test_refused(void **state)
{
    struct tw_store *store = NULL;
    struct tw_why why = {{0}};
    char other[96];
    (void)state;
    (void)snprintf(other, sizeof other, "%s/none.db", folder);
    assert_int_equal(tw_store_open(other, false, &store, &why), TW_ENOENT);
    assert_int_not_equal(access(other, F_OK), 0);

    (void)snprintf(other, sizeof other, "%s/text.db", folder);
    FILE *f = fopen(other, "w");
    assert_non_null(f);
    for (int i = 0; i < 1000; i++)
        (void)fprintf(f, "a text that is no database\n");
    (void)fclose(f);
    assert_int_equal(tw_store_open(other, true, &store, &why), TW_EPARSE);

    (void)snprintf(other, sizeof other, "%s/foreign.db", folder);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(other, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE bookmarks (url TEXT)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(tw_store_open(other, true, &store, &why), TW_EPARSE);
    assert_int_equal(sqlite3_open(other, &db), SQLITE_OK);
    assert_int_not_equal(sqlite3_exec(db, "SELECT * FROM source", NULL, NULL, NULL), SQLITE_OK); /* untouched */
    sqlite3_close(db);

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(tw_store_open(path, true, &store, &why), TW_EUNSUPPORTED);
    assert_int_equal(
        sqlite3_exec(db, "PRAGMA user_version = 1; UPDATE block SET data = x'00'", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    store = open_store(false);
    struct found found = list(store);
    size_t at = 0;
    assert_int_equal(tw_store_read(store, found.last.id, compare, &at, &why), TW_EPARSE);
    tw_store_close(store);
}

static int set_up(void **state)
{
    struct tw_rng rng;
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(path, sizeof path, "%s/new/folder/tokwatt.db", folder);
    tw_rng_init(&rng, 8, 0);
    for (size_t i = 0; i < N; i++) {
        time_us[i] = 1753572729703000 + (int64_t)i * 100000 + (int64_t)tw_rng_below(&rng, 3000);
        power_w[i] = (float)tw_rng_uniform(&rng, 50.0, 700.0);
        temp_c[i] = i % 7 ? 40.0F : (float)NAN;
    }
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_replace),
                                       cmocka_unit_test(test_killed_writer), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
