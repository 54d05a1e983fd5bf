/* SPDX-License-Identifier: Apache-2.0 */
/* codec/points.h - a table of measured points: throughput and power of jobs at several caps or clocks, as CSV.
 *
 * The first line names the columns, in any order; others are ignored:
 *
 *   job         name; with set and gpu it says which rows belong together           needed
 *   setting     the cap or clock: a number, "300@1380" with two knobs, or "uncapped"   needed
 *   power_w     mean power of one GPU at that setting, W, above 0                   needed
 *   throughput  in `unit`, 0 or more                                                needed
 *   unit        one of TW_POINTS_UNIT_MAP                                           needed
 *   set, gpu, kind, knob   text; empty when absent
 *   n_gpus      GPUs of the job, 1 when absent
 *
 * Fields may be quoted ("" for a quote inside), lines may end in CR LF, a byte order mark is skipped. Rows of
 * one setting are repeats and become one point. With two knobs ("cap_w@sm_mhz") every value of the second knob
 * is a job of its own, "name@1380". The uncapped reference of a job is its point with the largest setting.
 *
 * A row that cannot be right is an error that names its line; noise (a capped point above the uncapped one) is
 * not. */
#ifndef TW_CODEC_POINTS_H
#define TW_CODEC_POINTS_H

#include "base/arena.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Units of throughput that we know. "published" is the number of a paper that does not say. */
#define TW_POINTS_UNIT_MAP(X)                                                                                  \
    X("tokens/s")                                                                                              \
    X("samples/s")                                                                                             \
    X("sequences/s")                                                                                           \
    X("images/s")                                                                                              \
    X("requests/s")                                                                                            \
    X("steps/s")                                                                                               \
    X("iters/s")                                                                                               \
    X("batches/s")                                                                                             \
    X("microbatches/s")                                                                                        \
    X("epochs/s")                                                                                              \
    X("runs/s")                                                                                                \
    X("published")

enum tw_points_aggregate {
    TW_POINTS_MEAN, /* repeats of a setting: their mean */
    TW_POINTS_TOP10 /* mean of the highest tenth, at least one, of power and of throughput (arXiv 2609.11542) */
};

struct tw_point {
    double setting, power_w, throughput;
    uint32_t line;  /* of its first row, from 1 */
    uint32_t count; /* rows that it stands for */
};

struct tw_points_job {
    const char *set, *gpu, *job, *kind, *knob, *unit; /* in the arena */
    double second;                                    /* value of the second knob; NaN when there is one knob */
    double n_gpus;
    uint32_t line;                /* first row */
    const struct tw_point *point; /* [n] by setting, the largest (the reference) first */
    size_t n;
};

struct tw_points {
    const struct tw_points_job *job; /* [n_jobs] in order of first appearance */
    size_t n_jobs, n_rows;
};

/* How large an arena tw_points_read needs for this text. */
size_t tw_points_bytes(const char *text, size_t n);

/* Read n bytes of text. *ret lies in the arena.
 * TW_EPARSE   a column is missing or named twice, a row is not readable, or its values contradict those of its
 * job TW_ERANGE   power or throughput out of range, an unknown unit TW_ENODATA  no rows TW_ENOMEM   arena too
 * small */
TW_MUST_USE
enum tw_err tw_points_read(const char *text, size_t n, enum tw_points_aggregate aggregate,
                           struct tw_arena *arena, struct tw_points *ret, struct tw_why *why);

#endif
