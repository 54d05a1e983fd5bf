/* SPDX-License-Identifier: Apache-2.0 */
/* io/file/import.h - any supported file into series, recognised by content.
 *
 * Gzip is unpacked on the way. A broken row is counted by reason, with the line where that reason was first
 * met, and reading goes on; only a file in no known format is an error. Gaps stay gaps. Rows whose GPU is not
 * written down (a plain nvidia-smi log of several GPUs) are told apart by their rounds. */
#ifndef TW_IO_FILE_IMPORT_H
#define TW_IO_FILE_IMPORT_H

#include "base/err.h"
#include "codec/reject.h"
#include "series/series.h"

#include <stddef.h>
#include <stdint.h>

struct tw_import {
    const char *format;       /* "nvidia-smi-csv", "mlperf-power", ...; static storage */
    uint64_t rows;            /* rows that became samples */
    double span_s;            /* from the first sample to the last, over all series */
    struct tw_series *series; /* [n_series] */
    size_t n_series;
    struct tw_reject_count rejected[TW_REJECT_COUNT];
    uint64_t bytes;        /* of text, unpacked */
    uint64_t rounds_moved; /* how often rows were lost and the turns of the GPUs found again */
};

/* Read one file. On success *ret is a heap object of the caller's: tw_import_free.
 * Times of day without a zone are taken as UTC. Series are in the order of their first row; their names are
 * "gpu0", "gpu1", ... by index or turn, "server", or what the file calls them ("n1"). A file in a known format
 * without a single usable row is no error here: n_series is 0.
 *
 * TW_ENOENT, TW_EPERM, TW_EINVAL (a directory), TW_ENODATA (empty), TW_EPARSE (no known format; why names what
 * was seen), TW_ELIMIT (over 4 GiB of text), TW_EIO, TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_import_read(const char *path, struct tw_import **ret, struct tw_why *why);
/* The same for text in memory, not packed. */
TW_MUST_USE
enum tw_err tw_import_text(const char *text, size_t n, struct tw_import **ret, struct tw_why *why);
void tw_import_free(struct tw_import *imp); /* NULL is fine */

#endif
