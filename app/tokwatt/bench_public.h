/* SPDX-License-Identifier: Apache-2.0 */
/* bench_public.h - allocation scored on measured jobs of a file, at every level of knowledge. */
#ifndef TW_APP_BENCH_PUBLIC_H
#define TW_APP_BENCH_PUBLIC_H

#include <stdbool.h>
#include <stddef.h>

struct bench_public {
    const char *path, *sets, *drop; /* sets NULL: all of the file */
    bool unit;                      /* P_0 = T_0 = 1, else P_0 = power_w x n_gpus */
    bool leave_job;                 /* leave out the job alone, not its siblings */
    double cut_frac, reach_frac;    /* reach NaN: 70 % under unit, else no bound */
    double probe_s, event_s;
    size_t seeds;
};

/* One fleet and one cut, as text or JSON on standard output. Exit status. */
int bench_public_run(const struct bench_public *b, bool json);
/* Every fleet of the list in bench_public.c at 10, 20 and 30 %, and errors by set, as Markdown. */
int bench_public_page(const struct bench_public *b);

#endif
