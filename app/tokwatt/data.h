/* SPDX-License-Identifier: Apache-2.0 */
/* data.h - recordings on disk into a data set that models train on and are scored with.
 *
 * DATA is a folder of sets (DATA/FOLDER/files, with DATA/splits.csv where there is one), or a single recording.
 * A set is FOLDER or FOLDER/PREFIX of file names; "." means the files of DATA itself. */
#ifndef TW_APP_DATA_H
#define TW_APP_DATA_H

#include "feature/dataset.h"

struct data {
    struct tw_dataset ds;
    bool dealt; /* parts were dealt out by name, not read from splits.csv */
    size_t n_run[TW_PART_COUNT], n_track[TW_PART_COUNT], n_twin;
    size_t left_out;        /* rows of splits.csv without a series, and files that could not be read */
    struct tw_why left_why; /* the first of them */
};

/* On success *ret is a heap object: data_free. Everything that a person may have got wrong has its own
 * sentence.
 */
TW_MUST_USE
enum tw_err data_load(const char *path, const char *set, struct data **ret, struct tw_why *why);
void data_free(struct data *d);

#endif
