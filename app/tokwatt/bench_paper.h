/* SPDX-License-Identifier: Apache-2.0 */
/* bench_paper.h - the published allocation experiment, reconstructed (alloc/paper.h), and what came of it. */
#ifndef TW_APP_BENCH_PAPER_H
#define TW_APP_BENCH_PAPER_H

#include <stdbool.h>
#include <stdint.h>

struct bench_paper {
    unsigned draws, workloads, jobs, threads; /* threads 0: all processors */
    double probe_s, event_s;
    const char *mix_file; /* kalos_completed_jobs.csv, or NULL: the embedded share */
    uint64_t seed;
};

enum bench_form { BENCH_TEXT, BENCH_JSON, BENCH_PAGE };

/* Exit status. */
int bench_paper_run(const struct bench_paper *b, enum bench_form form);

#endif
