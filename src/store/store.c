/* SPDX-License-Identifier: Apache-2.0 */
/* The store. Channels are written by name, so that the channel table may grow and be reordered. */
#include "store/store.h"

#include "codec/segment.h"
#include "sys/clock.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define APPLICATION_ID 0x546b5774 /* "TkWt" in the header of the file */
#define VERSION 1
#define BLOCK_ROWS 4096

struct tw_store {
    sqlite3 *db;
    char path[4096];
};

static const char schema[] =
    "CREATE TABLE source (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, format TEXT NOT NULL,"
    "  size_bytes INTEGER NOT NULL, modified_us INTEGER NOT NULL, stored_us INTEGER NOT NULL);"
    "CREATE TABLE series (id INTEGER PRIMARY KEY,"
    "  source_id INTEGER NOT NULL REFERENCES source(id) ON DELETE CASCADE, place INTEGER NOT NULL,"
    "  name TEXT NOT NULL, uuid TEXT NOT NULL, model TEXT NOT NULL, scope INTEGER NOT NULL, wall INTEGER NOT "
    "NULL,"
    "  n INTEGER NOT NULL, first_us INTEGER NOT NULL, last_us INTEGER NOT NULL, channels TEXT NOT NULL,"
    "  UNIQUE (source_id, place));"
    "CREATE TABLE block (series_id INTEGER NOT NULL REFERENCES series(id) ON DELETE CASCADE,"
    "  place INTEGER NOT NULL, first_us INTEGER NOT NULL, last_us INTEGER NOT NULL, n INTEGER NOT NULL,"
    "  data BLOB NOT NULL, PRIMARY KEY (series_id, place)) WITHOUT ROWID;";

/* --- opening ------------------------------------------------------------------------------------------------
 */

static enum tw_err fail_db(const struct tw_store *store, struct tw_why *why)
{
    int rc = sqlite3_errcode(store->db) & 0xff;
    enum tw_err err = TW_EIO;
    const char *hint = "";
    if (rc == SQLITE_NOTADB || rc == SQLITE_CORRUPT) {
        err = TW_EPARSE;
        hint = "; it is no store of tokwatt, or damaged";
    } else if (rc == SQLITE_CANTOPEN) {
        err = TW_ENOENT;
    } else if (rc == SQLITE_READONLY || rc == SQLITE_PERM) {
        err = TW_EPERM;
    } else if (rc == SQLITE_BUSY) {
        hint = "; another process is writing to it";
    }
    return tw_fail(why, err, "%s: %s%s", store->path, sqlite3_errmsg(store->db), hint);
}

static enum tw_err exec(struct tw_store *store, const char *sql, struct tw_why *why)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? TW_OK : fail_db(store, why);
}

static enum tw_err pragma(struct tw_store *store, const char *sql, int64_t *ret, struct tw_why *why)
{
    sqlite3_stmt *st;
    if (sqlite3_prepare_v2(store->db, sql, -1, &st, NULL) != SQLITE_OK)
        return fail_db(store, why);
    enum tw_err err = TW_OK;
    if (sqlite3_step(st) == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    else
        err = fail_db(store, why);
    sqlite3_finalize(st);
    return err;
}

enum tw_err tw_store_default_path(char *buf, size_t size, struct tw_why *why)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int n;
    if (data && data[0] == '/')
        n = snprintf(buf, size, "%s/tokwatt/tokwatt.db", data);
    else if (home && home[0])
        n = snprintf(buf, size, "%s/.local/share/tokwatt/tokwatt.db", home);
    else
        return tw_fail(why, TW_ENOENT, "no place for the store: HOME is not set; name one with --store FILE");
    if (n < 0 || (size_t)n >= size)
        return tw_fail(why, TW_ELIMIT, "the path of the store is too long");
    return TW_OK;
}

/* The folders above path. */
static enum tw_err make_folders(const char *path, struct tw_why *why)
{
    char folder[4096];
    (void)snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return tw_fail(why, errno == EACCES || errno == EROFS ? TW_EPERM : TW_EIO, "%s: %s", folder,
                           strerror(errno));
        *slash = '/';
    }
    return TW_OK;
}

/* A new file gets its tables; an old one must be ours. */
static enum tw_err check_schema(struct tw_store *store, bool write, struct tw_why *why)
{
    int64_t id = 0, version = 0, tables = 0;
    enum tw_err err = pragma(store, "PRAGMA application_id", &id, why);
    if (!err)
        err = pragma(store, "PRAGMA user_version", &version, why);
    if (!err)
        err = pragma(store, "SELECT count(*) FROM sqlite_schema", &tables, why);
    if (err)
        return err;
    if (id == APPLICATION_ID && version == VERSION)
        return TW_OK;
    if (id == APPLICATION_ID && version > VERSION)
        return tw_fail(why, TW_EUNSUPPORTED,
                       "%s: written by a later version of tokwatt (layout %lld, known %d)", store->path,
                       (long long)version, VERSION);
    if (tables != 0 || id != 0 || !write)
        return tw_fail(why, TW_EPARSE, "%s: a database, but no store of tokwatt", store->path);
    char set[128];
    (void)snprintf(set, sizeof set, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
                   APPLICATION_ID, VERSION);
    err = exec(store, "BEGIN IMMEDIATE", why);
    if (!err)
        err = pragma(store, "SELECT count(*) FROM sqlite_schema", &tables, why);
    if (!err && tables == 0) /* else another process was faster */
        err = exec(store, schema, why);
    return err ? err : exec(store, set, why);
}

enum tw_err tw_store_open(const char *path, bool write, struct tw_store **ret, struct tw_why *why)
{
    struct tw_store *store = calloc(1, sizeof *store);
    if (!store)
        return tw_fail(why, TW_ENOMEM, "out of memory");
    (void)snprintf(store->path, sizeof store->path, "%s", path);
    enum tw_err err = TW_OK;
    if (write)
        err = make_folders(path, why);
    else if (access(path, F_OK) != 0)
        err = tw_fail(why, TW_ENOENT, "%s: no store there; fill one with tokwatt import", path);
    if (!err) {
        int flags = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE;
        if (sqlite3_open_v2(path, &store->db, flags, NULL) != SQLITE_OK)
            err = fail_db(store, why);
    }
    if (!err) {
        sqlite3_busy_timeout(store->db, 5000);
        err = check_schema(store, write, why);
    }
    if (!err && write)
        err = exec(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON",
                   why);
    if (err) {
        tw_store_close(store);
        return err;
    }
    *ret = store;
    return TW_OK;
}

void tw_store_close(struct tw_store *store)
{
    if (!store)
        return;
    (void)sqlite3_close(store->db); /* statements are all finalized; NULL is fine */
    free(store);
}

/* --- writing ------------------------------------------------------------------------------------------------
 */

/* What a block goes through: packed, then compressed. */
struct packer {
    unsigned char *plain, *packed;
    uLongf packed_max;
    const float *column[TW_CH_COUNT];
    size_t n_columns;
    char channels[512]; /* their names, comma separated, in the order of column */
};

static bool packer_init(struct packer *p, const struct tw_series *s)
{
    memset(p, 0, sizeof *p);
    size_t at = 0;
    for (size_t ch = 0; ch < TW_CH_COUNT; ch++) {
        if (!s->ch[ch])
            continue;
        p->column[p->n_columns++] = s->ch[ch];
        int n = snprintf(p->channels + at, sizeof p->channels - at, "%s%s", at ? "," : "",
                         tw_channel_table[ch].name);
        if (n < 0 || (size_t)n >= sizeof p->channels - at)
            return false;
        at += (size_t)n;
    }
    size_t bytes = tw_segment_bytes(BLOCK_ROWS, p->n_columns);
    p->packed_max = compressBound((uLong)bytes);
    p->plain = malloc(bytes);
    p->packed = malloc(p->packed_max);
    return p->plain && p->packed;
}

static void packer_done(struct packer *p)
{
    free(p->plain);
    free(p->packed);
}

static bool put_block(sqlite3_stmt *st, struct packer *p, const struct tw_series *s, int64_t id, size_t from)
{
    size_t n = s->n - from < BLOCK_ROWS ? s->n - from : BLOCK_ROWS;
    const float *column[TW_CH_COUNT];
    for (size_t c = 0; c < p->n_columns; c++)
        column[c] = p->column[c] + from;
    tw_segment_pack(s->time_us + from, column, n, p->n_columns, p->plain);
    uLongf size = p->packed_max;
    if (compress2(p->packed, &size, p->plain, (uLong)tw_segment_bytes(n, p->n_columns), 1) != Z_OK)
        return false;
    sqlite3_reset(st);
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, (int64_t)(from / BLOCK_ROWS));
    sqlite3_bind_int64(st, 3, s->time_us[from]);
    sqlite3_bind_int64(st, 4, s->time_us[from + n - 1]);
    sqlite3_bind_int64(st, 5, (int64_t)n);
    sqlite3_bind_blob64(st, 6, p->packed, size, SQLITE_STATIC);
    return sqlite3_step(st) == SQLITE_DONE;
}

static enum tw_err put_series(struct tw_store *store, sqlite3_stmt *series, sqlite3_stmt *block, int64_t source,
                              size_t place, const struct tw_series *s, struct tw_why *why)
{
    struct packer p;
    bool ok = packer_init(&p, s);
    if (ok) {
        sqlite3_reset(series);
        sqlite3_bind_int64(series, 1, source);
        sqlite3_bind_int64(series, 2, (int64_t)place);
        sqlite3_bind_text(series, 3, s->name, -1, SQLITE_STATIC);
        sqlite3_bind_text(series, 4, s->uuid, -1, SQLITE_STATIC);
        sqlite3_bind_text(series, 5, s->model, -1, SQLITE_STATIC);
        sqlite3_bind_int(series, 6, (int)s->scope);
        sqlite3_bind_int(series, 7, s->wall);
        sqlite3_bind_int64(series, 8, (int64_t)s->n);
        sqlite3_bind_int64(series, 9, s->n ? s->time_us[0] : 0);
        sqlite3_bind_int64(series, 10, s->n ? s->time_us[s->n - 1] : 0);
        sqlite3_bind_text(series, 11, p.channels, -1, SQLITE_STATIC);
        ok = sqlite3_step(series) == SQLITE_DONE;
        int64_t id = sqlite3_last_insert_rowid(store->db);
        for (size_t from = 0; ok && from < s->n; from += BLOCK_ROWS)
            ok = put_block(block, &p, s, id, from);
    }
    packer_done(&p);
    return ok ? TW_OK : fail_db(store, why);
}

static enum tw_err put_source(struct tw_store *store, const struct tw_store_source *source, int64_t *ret_id,
                              struct tw_why *why)
{
    static const char *const sql[] = {
        "DELETE FROM source WHERE path = ?1",
        "INSERT INTO source (path, format, size_bytes, modified_us, stored_us) VALUES (?1, ?2, ?3, ?4, ?5)"};
    for (int i = 0; i < 2; i++) {
        sqlite3_stmt *st;
        if (sqlite3_prepare_v2(store->db, sql[i], -1, &st, NULL) != SQLITE_OK)
            return fail_db(store, why);
        sqlite3_bind_text(st, 1, source->path, -1, SQLITE_STATIC);
        if (i == 1) {
            sqlite3_bind_text(st, 2, source->format, -1, SQLITE_STATIC);
            sqlite3_bind_int64(st, 3, source->size_bytes);
            sqlite3_bind_int64(st, 4, source->modified_us);
            sqlite3_bind_int64(st, 5, tw_wall_us());
        }
        bool ok = sqlite3_step(st) == SQLITE_DONE;
        enum tw_err err = ok ? TW_OK : fail_db(store, why);
        sqlite3_finalize(st);
        if (err)
            return err;
    }
    *ret_id = sqlite3_last_insert_rowid(store->db);
    return TW_OK;
}

enum tw_err tw_store_put(struct tw_store *store, const struct tw_store_source *source,
                         const struct tw_series *series, size_t n_series, struct tw_why *why)
{
    sqlite3_stmt *st_series = NULL, *st_block = NULL;
    int64_t id = 0;
    enum tw_err err = exec(store, "BEGIN IMMEDIATE", why);
    if (err)
        return err;
    err = put_source(store, source, &id, why);
    if (!err &&
        (sqlite3_prepare_v2(store->db,
                            "INSERT INTO series VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                            -1, &st_series, NULL) != SQLITE_OK ||
         sqlite3_prepare_v2(store->db, "INSERT INTO block VALUES (?1, ?2, ?3, ?4, ?5, ?6)", -1, &st_block,
                            NULL) != SQLITE_OK))
        err = fail_db(store, why);
    for (size_t i = 0; !err && i < n_series; i++)
        err = put_series(store, st_series, st_block, id, i, &series[i], why);
    sqlite3_finalize(st_series);
    sqlite3_finalize(st_block);
    if (!err)
        err = exec(store, "COMMIT", why);
    if (err)
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL); /* the cause is already in why */
    return err;
}

/* --- reading ------------------------------------------------------------------------------------------------
 */

static const char *text(sqlite3_stmt *st, int col)
{
    const unsigned char *t = sqlite3_column_text(st, col);
    return t ? (const char *)t : "";
}

/* Names of channels into their order; a name that this version does not know is passed over with its column.
 * Returns how many there are, 0 when they are too many. */
static size_t read_channels(const char *names, int ret_ch[static 64])
{
    size_t n = 0;
    while (*names) {
        size_t len = strcspn(names, ",");
        if (n == 64)
            return 0;
        ret_ch[n] = -1;
        for (int ch = 0; ch < TW_CH_COUNT; ch++)
            if (strlen(tw_channel_table[ch].name) == len && strncmp(tw_channel_table[ch].name, names, len) == 0)
                ret_ch[n] = ch;
        n++;
        names += len + (names[len] == ',');
    }
    return n;
}

static void read_entry(sqlite3_stmt *st, struct tw_store_entry *e)
{
    int ch[64];
    *e = (struct tw_store_entry){.id = sqlite3_column_int64(st, 0),
                                 .source = text(st, 1),
                                 .format = text(st, 2),
                                 .name = text(st, 3),
                                 .uuid = text(st, 4),
                                 .model = text(st, 5),
                                 .scope = (enum tw_scope)sqlite3_column_int(st, 6),
                                 .wall = sqlite3_column_int(st, 7) != 0,
                                 .n = (size_t)sqlite3_column_int64(st, 8),
                                 .first_us = sqlite3_column_int64(st, 9),
                                 .last_us = sqlite3_column_int64(st, 10)};
    size_t n = read_channels(text(st, 11), ch);
    for (size_t i = 0; i < n; i++)
        if (ch[i] >= 0)
            e->has[ch[i]] = true;
}

enum tw_err tw_store_list(struct tw_store *store, tw_store_entry_fn fn, void *ctx, struct tw_why *why)
{
    sqlite3_stmt *st;
    if (sqlite3_prepare_v2(
            store->db,
            "SELECT s.id, o.path, o.format, s.name, s.uuid, s.model, s.scope, s.wall, s.n,"
            " s.first_us, s.last_us, s.channels FROM series s JOIN source o ON o.id = s.source_id"
            " ORDER BY o.path, s.place",
            -1, &st, NULL) != SQLITE_OK)
        return fail_db(store, why);
    enum tw_err err = TW_OK;
    int rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW && !err) {
        struct tw_store_entry e;
        read_entry(st, &e);
        err = fn(ctx, &e);
    }
    if (!err && rc != SQLITE_DONE)
        err = fail_db(store, why);
    sqlite3_finalize(st);
    return err;
}

/* Room for a block on its way back, all of it in one piece of memory. */
struct unpacker {
    struct tw_series rows;
    float *column[64];
    size_t n_columns;
    unsigned char *plain; /* the piece: the unpacked block, then time and columns */
};

static bool unpacker_init(struct unpacker *u, const char *channels)
{
    int ch[64];
    memset(u, 0, sizeof *u);
    u->n_columns = read_channels(channels, ch);
    size_t bytes = tw_segment_bytes(BLOCK_ROWS, u->n_columns); /* a multiple of 8 */
    u->plain = malloc(2 * bytes);
    if (!u->plain)
        return false;
    u->rows.time_us = (void *)(u->plain + bytes);
    float *column = (void *)(u->rows.time_us + BLOCK_ROWS);
    for (size_t c = 0; c < u->n_columns; c++, column += BLOCK_ROWS) {
        u->column[c] = column;
        if (ch[c] >= 0)
            u->rows.ch[ch[c]] = column;
    }
    return true;
}

static enum tw_err read_block(const struct tw_store *store, sqlite3_stmt *st, struct unpacker *u,
                              struct tw_why *why)
{
    int64_t n = sqlite3_column_int64(st, 0);
    if (n < 1 || n > BLOCK_ROWS)
        return tw_fail(why, TW_EPARSE, "%s: damaged: a block of %lld samples", store->path, (long long)n);
    uLongf size = (uLongf)tw_segment_bytes((size_t)n, u->n_columns);
    if (uncompress(u->plain, &size, sqlite3_column_blob(st, 1), (uLong)sqlite3_column_bytes(st, 1)) != Z_OK)
        return tw_fail(why, TW_EPARSE, "%s: damaged: a block does not unpack", store->path);
    u->rows.n = (size_t)n;
    return tw_segment_unpack(u->plain, size, (size_t)n, u->n_columns, u->rows.time_us, u->column, why);
}

enum tw_err tw_store_read(struct tw_store *store, int64_t id, tw_store_rows_fn fn, void *ctx,
                          struct tw_why *why)
{
    sqlite3_stmt *st = NULL;
    struct unpacker u = {0};
    enum tw_err err = TW_OK;
    int rc = sqlite3_prepare_v2(store->db, "SELECT channels FROM series WHERE id = ?1", -1, &st, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(st, 1, id);
        rc = sqlite3_step(st);
    }
    if (rc == SQLITE_DONE)
        err = tw_fail(why, TW_ENOENT, "%s: no such series", store->path);
    else if (rc != SQLITE_ROW)
        err = fail_db(store, why);
    else if (!unpacker_init(&u, text(st, 0)))
        err = tw_fail(why, TW_ENOMEM, "out of memory");
    sqlite3_finalize(st);
    st = NULL;
    if (!err && sqlite3_prepare_v2(store->db, "SELECT n, data FROM block WHERE series_id = ?1 ORDER BY place",
                                   -1, &st, NULL) != SQLITE_OK)
        err = fail_db(store, why);
    if (!err)
        sqlite3_bind_int64(st, 1, id);
    while (!err && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        err = read_block(store, st, &u, why);
        if (!err)
            err = fn(ctx, &u.rows);
    }
    if (!err && rc != SQLITE_DONE)
        err = fail_db(store, why);
    sqlite3_finalize(st);
    free(u.plain);
    return err;
}
