/* SPDX-License-Identifier: Apache-2.0 */
/* The latest snapshot and the last hour. */
#include "api/latest.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static_assert((TW_LATEST_LEAD + 1) * 5 == TW_LATEST_LEAD_S && TW_LATEST_LEAD < TW_SNAP_LEADS,
              "the lead of a point");

struct tw_latest {
    pthread_mutex_t lock;
    struct tw_snap_copy now;
    struct tw_point point[TW_LATEST_POINTS];
    size_t head, n; /* where the next point goes; how many there are */
};

static enum tw_err grow(void **array, size_t *room, size_t want, size_t size)
{
    if (want <= *room)
        return TW_OK;
    void *more = realloc(*array, want * size);
    if (!more)
        return TW_ENOMEM;
    *array = more;
    *room = want;
    return TW_OK;
}

static enum tw_err copy_snapshot(struct tw_snap_copy *to, const struct tw_snapshot *from)
{
    void *gpu = to->s.gpu, *job = to->s.job;
    enum tw_err err = grow(&gpu, &to->gpu_room, from->n_gpu, sizeof *from->gpu);
    to->s.gpu = gpu;
    if (err == TW_OK)
        err = grow(&job, &to->job_room, from->n_job, sizeof *from->job);
    to->s.job = job;
    if (err != TW_OK)
        return err;
    to->s = *from;
    to->s.gpu = gpu;
    to->s.job = job;
    if (from->n_gpu > 0)
        memcpy(gpu, from->gpu, from->n_gpu * sizeof *from->gpu);
    if (from->n_job > 0)
        memcpy(job, from->job, from->n_job * sizeof *from->job);
    return TW_OK;
}

void tw_snap_copy_done(struct tw_snap_copy *copy)
{
    free(copy->s.gpu);
    free(copy->s.job);
    *copy = (struct tw_snap_copy){0};
}

struct tw_latest *tw_latest_new(void)
{
    struct tw_latest *b = calloc(1, sizeof *b);
    if (b)
        (void)pthread_mutex_init(&b->lock, NULL);
    return b;
}

void tw_latest_free(struct tw_latest *b)
{
    if (!b)
        return;
    tw_snap_copy_done(&b->now);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

enum tw_err tw_latest_put(struct tw_latest *b, const struct tw_snapshot *snap, int64_t now_us)
{
    (void)pthread_mutex_lock(&b->lock);
    enum tw_err err = copy_snapshot(&b->now, snap);
    if (err == TW_OK) {
        b->now.published_us = now_us;
        b->point[b->head] = (struct tw_point){snap->seq, snap->now_s, snap->power_w, snap->budget_w,
                                              snap->path[TW_LATEST_LEAD]};
        b->head = (b->head + 1) % TW_LATEST_POINTS;
        b->n += b->n < TW_LATEST_POINTS;
    }
    (void)pthread_mutex_unlock(&b->lock);
    return err;
}

enum tw_err tw_latest_get(struct tw_latest *b, struct tw_snap_copy *ret)
{
    (void)pthread_mutex_lock(&b->lock);
    enum tw_err err = b->now.published_us == 0 ? TW_ENODATA : copy_snapshot(ret, &b->now.s);
    if (err == TW_OK)
        ret->published_us = b->now.published_us;
    (void)pthread_mutex_unlock(&b->lock);
    return err;
}

size_t tw_latest_since(struct tw_latest *b, uint64_t since, struct tw_point *ret, size_t room)
{
    (void)pthread_mutex_lock(&b->lock);
    size_t n = 0;
    while (n < b->n && n < room &&
           b->point[(b->head + TW_LATEST_POINTS - n - 1) % TW_LATEST_POINTS].seq > since)
        n++;
    for (size_t i = 0; i < n; i++)
        ret[i] = b->point[(b->head + TW_LATEST_POINTS - n + i) % TW_LATEST_POINTS];
    (void)pthread_mutex_unlock(&b->lock);
    return n;
}
