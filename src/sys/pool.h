/* SPDX-License-Identifier: Apache-2.0 */
/* sys/pool.h - a fixed set of threads behind a struct tw_par (base/par.h).
 *
 * The calling thread works too, so a pool of n uses n - 1 threads of its own. They sleep between runs; they
 * never spin. One run at a time. */
#ifndef TW_SYS_POOL_H
#define TW_SYS_POOL_H

#include "base/err.h"
#include "base/par.h"

struct tw_pool;

/* n_threads 0 means one per processor that this process may use. TW_ENOMEM, TW_EIO (no thread could be started)
 */
TW_MUST_USE
enum tw_err tw_pool_new(unsigned n_threads, struct tw_pool **ret, struct tw_why *why);
void tw_pool_free(struct tw_pool *pool);         /* NULL is fine */
struct tw_par tw_pool_par(struct tw_pool *pool); /* valid as long as the pool */
unsigned tw_pool_cpus(void);

#endif
