/* SPDX-License-Identifier: Apache-2.0 */
/* Serial work, and the hand-over to a pool. */
#include "base/par.h"

#include <stddef.h>

static void run_serial(void *pool, tw_task_fn fn, void *arg, unsigned n)
{
    (void)pool;
    for (unsigned i = 0; i < n; i++)
        fn(arg, i);
}

const struct tw_par tw_par_serial = {.n_threads = 1, .run = run_serial};

void tw_par_run(const struct tw_par *par, tw_task_fn fn, void *arg, unsigned n)
{
    if (!par || n < 2)
        run_serial(NULL, fn, arg, n);
    else
        par->run(par->pool, fn, arg, n);
}
