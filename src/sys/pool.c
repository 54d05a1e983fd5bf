/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads. A run is a generation number, a function and a counter of tasks still to be taken; workers
 * take task numbers until none is left, and the last one to finish wakes the caller. */
#include "sys/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct tw_pool {
    pthread_mutex_t lock;
    pthread_cond_t start, done;
    pthread_t *threads;
    unsigned n_workers;
    unsigned long generation;
    bool quit;
    tw_task_fn fn;
    void *arg;
    unsigned n_tasks;
    atomic_uint next;
    unsigned busy; /* workers inside the present run */
};

static void work(struct tw_pool *p)
{
    unsigned i;
    while ((i = atomic_fetch_add(&p->next, 1)) < p->n_tasks)
        p->fn(p->arg, i);
}

static void *worker(void *arg)
{
    struct tw_pool *p = arg;
    unsigned long seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->quit && p->generation == seen)
            pthread_cond_wait(&p->start, &p->lock);
        if (p->quit)
            break;
        seen = p->generation;
        pthread_mutex_unlock(&p->lock);
        work(p);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0)
            pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void run(void *pool, tw_task_fn fn, void *arg, unsigned n)
{
    struct tw_pool *p = pool;
    pthread_mutex_lock(&p->lock);
    p->fn = fn;
    p->arg = arg;
    p->n_tasks = n;
    atomic_store(&p->next, 0);
    p->busy = p->n_workers;
    p->generation++;
    pthread_cond_broadcast(&p->start);
    pthread_mutex_unlock(&p->lock);
    work(p);
    pthread_mutex_lock(&p->lock);
    while (p->busy > 0)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

unsigned tw_pool_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? (unsigned)n : 1;
}

enum tw_err tw_pool_new(unsigned n_threads, struct tw_pool **ret, struct tw_why *why)
{
    if (n_threads == 0)
        n_threads = tw_pool_cpus();
    struct tw_pool *p = calloc(1, sizeof *p);
    pthread_t *threads = calloc(n_threads, sizeof *threads);
    if (!p || !threads) {
        free(threads);
        free(p);
        return tw_fail(why, TW_ENOMEM, "no memory for %u threads", n_threads);
    }
    p->threads = threads;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->start, NULL);
    pthread_cond_init(&p->done, NULL);
    for (; p->n_workers + 1 < n_threads; p->n_workers++) {
        int rc = pthread_create(&p->threads[p->n_workers], NULL, worker, p);
        if (rc != 0) {
            tw_pool_free(p);
            return tw_fail(why, TW_EIO, "cannot start a thread: %s", strerror(rc));
        }
    }
    *ret = p;
    return TW_OK;
}

void tw_pool_free(struct tw_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->n_workers; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->start);
    pthread_cond_destroy(&pool->done);
    free(pool->threads);
    free(pool);
}

struct tw_par tw_pool_par(struct tw_pool *pool)
{
    return (struct tw_par){.n_threads = pool->n_workers + 1, .run = run, .pool = pool};
}
