/* SPDX-License-Identifier: Apache-2.0 */
/* feature/dataset.h - series on a grid, and which steps of them train, validate and test.
 *
 * A set is a folder of the data with an optional prefix of file names; the table below knows those with rules
 * of their own, and any other FOLDER or FOLDER/PREFIX is a set too. Splits are by run, never by GPU or server:
 * those of one job move together. They are read from splits.csv; where it is missing, or calls every series of
 * a set unused, runs are dealt out by name. */
#ifndef TW_FEATURE_DATASET_H
#define TW_FEATURE_DATASET_H

#include "base/err.h"
#include "feature/input.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_PART_MAP(X) X(TRAIN, "train") X(VAL, "val") X(TEST, "test")

enum tw_part {
#define TW_PART_ENUM(id, text) TW_PART_##id,
    TW_PART_MAP(TW_PART_ENUM)
#undef TW_PART_ENUM
        TW_PART_COUNT
};

extern const char *const tw_part_text[TW_PART_COUNT];

struct tw_span {
    size_t from, to; /* steps from .. to - 1; empty when equal */
};

struct tw_track {
    char name[160]; /* file, and channel where the file has several */
    char run[96];
    float *x_w; /* [n] watts per GPU, NaN = gap; borrowed */
    size_t n;
    struct tw_span part[TW_PART_COUNT];
    bool twin; /* the values of an earlier track of its run: scored, but not trained on or selected with */
};

struct tw_dataset {
    char set[96];
    double step_s;
    struct tw_track *track;
    size_t n;
    uint64_t hash; /* of all values and parts, in order (FNV-1a): what a model was trained on */
};

/* A row of splits.csv. */
struct tw_split_row {
    char folder[48], file[96], channel[16], run[64], split[12];
    double gpus_per_value;
};

/* Parse splits.csv (columns found by name: folder, file, channel, run, split, gpus_per_value). max_rows bounds
 * ret. TW_EPARSE with the line, TW_ELIMIT */
TW_MUST_USE
enum tw_err tw_split_parse(const char *text, size_t n, struct tw_split_row *ret, size_t max_rows, size_t *ret_n,
                           struct tw_why *why);

struct tw_set {
    char folder[48];
    const char *prefix[4]; /* file names begin with one of them; none: any */
    char own_prefix[48];   /* what prefix[0] points to for a set that is not in the table */
    bool per_gpu;          /* leave out series that cover a server */
    double
        time_split_s[2]; /* a run split by time: validation and test begin so long after its start; 0: by run */
    bool val_is_tail;    /* published validation rows are left out; the last fifth of training runs validates */
};

/* From "FOLDER" or "FOLDER/PREFIX". TW_EINVAL (empty, or too long, or more than one slash) */
TW_MUST_USE
enum tw_err tw_set_parse(const char *name, struct tw_set *ret, struct tw_why *why);
bool tw_set_has_file(const struct tw_set *set, const char *file);
/* Names of the table, NULL at its end: for messages. */
const char *tw_set_name(size_t i);

/* Set parts from the words of splits.csv (`split` per track: train, val, test, time, anything else = unused),
 * mark twins, and compute the hash. When no track tests, runs are dealt out in order of name: of each five, one
 * validates and one tests; of two, the first trains and the second tests; a single one is cut at 60 and 80 % of
 * its length. *ret_dealt says so. Where nothing else validates, the last fifth of training runs does, 60 s away
 * from what trains. TW_ENODATA when no track trains or tests. */
TW_MUST_USE
enum tw_err tw_dataset_part(struct tw_dataset *ds, const struct tw_set *set, const char *const *split,
                            bool *ret_dealt, struct tw_why *why);

/* Mean and standard deviation over the training steps of tracks that are no twins. */
struct tw_scaler tw_dataset_scaler(const struct tw_dataset *ds);

#endif
