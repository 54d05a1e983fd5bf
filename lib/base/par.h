/* SPDX-License-Identifier: Apache-2.0 */
/* base/par.h - work in parallel, on threads that the caller owns.
 *
 * lib/ starts no threads: it is handed a struct tw_par and calls tw_par_run. Task i must write only what
 * belongs to task i; results must not depend on which thread ran it or in which order, so that one seed gives
 * the same bytes with any number of threads. src/sys/pool.h fills one in; tw_par_serial runs the tasks one
 * after the other. */
#ifndef TW_BASE_PAR_H
#define TW_BASE_PAR_H

typedef void (*tw_task_fn)(void *arg, unsigned i);

struct tw_par {
    unsigned n_threads;                                            /* >= 1 */
    void (*run)(void *pool, tw_task_fn fn, void *arg, unsigned n); /* returns when all n are done */
    void *pool;
};

extern const struct tw_par tw_par_serial;

/* fn(arg, 0) ... fn(arg, n - 1); par NULL means serial. */
void tw_par_run(const struct tw_par *par, tw_task_fn fn, void *arg, unsigned n);

#endif
