/* SPDX-License-Identifier: Apache-2.0 */
/* One thread per GPU. */
#include "capd/worker.h"

#include "sys/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REOPEN_AFTER 3U /* failures in a row */

struct tw_worker {
    struct tw_worker_device dev;
    char uuid[48];
    int wake_fd;
    pthread_t thread;
    /* the thread's own */
    struct tw_cap *cap;
    unsigned failures;
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct tw_job next;
    struct tw_job_result done;
    int64_t begun_us; /* 0: no job is running */
    bool has_done, stop;
};

static enum tw_err do_job(struct tw_worker *w, const struct tw_job *job, struct tw_job_result *r)
{
    const struct tw_cap_ops *ops = w->dev.ops;
    enum tw_err err = w->cap ? TW_OK : w->dev.open(w->dev.ctx, &w->cap, &r->why);
    bool write = job->kind == TW_JOB_WRITE;
    if (err == TW_OK && job->kind == TW_JOB_LOWER) {
        err = ops->read(w->cap, w->uuid, &r->requested_w, &r->enforced_w, &r->why);
        write = err == TW_OK && r->requested_w > job->watts;
    }
    if (err == TW_OK && write)
        err = ops->write(w->cap, w->uuid, job->watts, &r->why);
    if (write)
        r->issued_us = tw_boot_us();
    if (err == TW_OK && (write || job->kind == TW_JOB_READ))
        err = ops->read(w->cap, w->uuid, &r->requested_w, &r->enforced_w, &r->why);
    r->read_us = tw_boot_us();
    w->failures = err == TW_OK ? 0 : w->failures + 1;
    if (w->failures >= REOPEN_AFTER) {
        ops->close(w->cap);
        w->cap = NULL;
        w->failures = 0;
    }
    return err;
}

static void *work(void *arg)
{
    struct tw_worker *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (w->next.kind == TW_JOB_NONE || w->has_done) { /* the last answer must be fetched first */
            pthread_cond_wait(&w->more, &w->lock);
            continue;
        }
        struct tw_job job = w->next;
        w->next = (struct tw_job){.kind = TW_JOB_NONE};
        w->begun_us = tw_boot_us();
        struct tw_job_result r = {.job = job, .requested_w = NAN, .enforced_w = NAN, .begun_us = w->begun_us};
        pthread_mutex_unlock(&w->lock);
        r.err = do_job(w, &job, &r);
        uint64_t one = 1;
        pthread_mutex_lock(&w->lock);
        w->done = r;
        w->has_done = true;
        w->begun_us = 0;
        (void)!write(w->wake_fd, &one, sizeof one); /* a full counter wakes as well */
    }
    pthread_mutex_unlock(&w->lock);
    w->dev.ops->close(w->cap);
    return NULL;
}

enum tw_err tw_worker_new(const struct tw_worker_device *dev, const char *uuid, int wake_fd,
                          struct tw_worker **ret, struct tw_why *why)
{
    struct tw_worker *w = calloc(1, sizeof *w);
    size_t n = strlen(uuid);
    if (!w || n >= sizeof w->uuid) {
        free(w);
        return tw_fail(why, TW_ENOMEM, "no memory for a worker");
    }
    w->dev = *dev;
    memcpy(w->uuid, uuid, n + 1);
    w->wake_fd = wake_fd;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    int e = pthread_create(&w->thread, NULL, work, w);
    if (e != 0) {
        free(w);
        return tw_fail(why, TW_EIO, "no thread for %s: %s", uuid, strerror(e));
    }
    *ret = w;
    return TW_OK;
}

bool tw_worker_free(struct tw_worker *w)
{
    if (!w)
        return true;
    pthread_mutex_lock(&w->lock);
    bool idle = w->begun_us == 0;
    w->stop = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    if (!idle)
        return false;
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return true;
}

void tw_worker_give(struct tw_worker *w, struct tw_job job)
{
    pthread_mutex_lock(&w->lock);
    w->next = job;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}

bool tw_worker_take(struct tw_worker *w, struct tw_job_result *ret)
{
    pthread_mutex_lock(&w->lock);
    bool has = w->has_done;
    if (has)
        *ret = w->done;
    w->has_done = false;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    return has;
}

bool tw_worker_is_busy(struct tw_worker *w, int64_t *ret_begun_us)
{
    pthread_mutex_lock(&w->lock);
    bool busy = w->begun_us != 0 || w->has_done || w->next.kind != TW_JOB_NONE;
    *ret_begun_us = w->begun_us;
    pthread_mutex_unlock(&w->lock);
    return busy;
}
