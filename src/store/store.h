/* SPDX-License-Identifier: Apache-2.0 */
/* store/store.h - series on disk: one SQLite file, nothing to install.
 *
 * A source (an imported file, known by its absolute path) holds series; a series holds sealed blocks of up to
 * 4096 samples, packed (codec/segment.h) and compressed. A source is written in one transaction: it is there as
 * a whole or not at all, also after a crash, and putting it again replaces it. Several processes may read while
 * one writes. Every time and every float comes back bit by bit. */
#ifndef TW_STORE_STORE_H
#define TW_STORE_STORE_H

#include "base/err.h"
#include "series/series.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_store;

struct tw_store_source {
    const char *path; /* absolute: the name of the source */
    const char *format;
    int64_t size_bytes;
    int64_t modified_us;
};

struct tw_store_entry {
    int64_t id;
    const char *source; /* path; these pointers hold until the callback returns */
    const char *format;
    const char *name;
    const char *uuid;
    const char *model;
    enum tw_scope scope;
    bool wall;
    size_t n;
    int64_t first_us, last_us;
    bool has[TW_CH_COUNT];
};

/* Return anything but TW_OK to end the walk; that is then its result. */
typedef enum tw_err (*tw_store_entry_fn)(void *ctx, const struct tw_store_entry *entry);
typedef enum tw_err (*tw_store_rows_fn)(void *ctx, const struct tw_series *rows); /* a part, in order */

/* $XDG_DATA_HOME/tokwatt/tokwatt.db or ~/.local/share/tokwatt/tokwatt.db into buf. TW_ENOENT: neither is set */
TW_MUST_USE
enum tw_err tw_store_default_path(char *buf, size_t size, struct tw_why *why);

/* write: made when missing, folders too. TW_ENOENT, TW_EPERM, TW_EPARSE (a file that is no store of ours),
 * TW_EUNSUPPORTED (written by a later version), TW_EIO */
TW_MUST_USE
enum tw_err tw_store_open(const char *path, bool write, struct tw_store **ret, struct tw_why *why);
void tw_store_close(struct tw_store *store); /* NULL is fine */

/* Put a source with its series, in the place of one with the same path. TW_EIO (disk full, locked), TW_ENOMEM
 */
TW_MUST_USE
enum tw_err tw_store_put(struct tw_store *store, const struct tw_store_source *source,
                         const struct tw_series *series, size_t n_series, struct tw_why *why);

/* Every series, by source and by the order that they came in. TW_EIO */
TW_MUST_USE
enum tw_err tw_store_list(struct tw_store *store, tw_store_entry_fn fn, void *ctx, struct tw_why *why);

/* The rows of one series, block by block; only channels of entry.has are there. TW_EIO, TW_EPARSE (damaged) */
TW_MUST_USE
enum tw_err tw_store_read(struct tw_store *store, int64_t id, tw_store_rows_fn fn, void *ctx,
                          struct tw_why *why);

#endif
