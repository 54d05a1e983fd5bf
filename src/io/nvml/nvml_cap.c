/* SPDX-License-Identifier: Apache-2.0 */
/* Limits through NVML: a thread for each GPU that carries out one request after the other, and a caller who
 * waits for it no longer than the deadline. */
#include "io/nvml/nvml.h"
#include "io/nvml/nvml_lib.h"
#include "io/nvml/nvml_spec.h"
#include "sys/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GPU_MAX 64
#define LIMIT_MAX_W 10000.0

enum request_kind { WRITE, READ };

struct request {
    enum request_kind kind;
    double limit_w;                 /* WRITE */
    double requested_w, enforced_w; /* READ, out */
    enum tw_err err;
    struct tw_why why;
};

struct desk {
    struct tw_cap *cap;
    char uuid[48];
    bool wanted, working; /* a request waits; is being carried out */
    bool unknown;         /* the driver has no GPU of that name */
    int64_t since_us;     /* working since */
    uint64_t asked, done; /* numbers of requests */
    struct request request;
    /* of its thread alone */
    struct nv_device *dev;
    uint64_t dev_generation;
};

struct tw_cap {
    struct nv_spec spec;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned refs;
    bool quit;
    struct nv_lib lib; /* zero: not open */
    uint64_t generation;
    struct desk *desk[GPU_MAX];
    unsigned n_desk;
};

static void wait_until(struct tw_cap *cap, int64_t until_us)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t left_us = until_us - tw_boot_us();
    int64_t ns = (int64_t)t.tv_nsec + (left_us > 0 ? left_us : 0) * 1000;
    t.tv_sec += (time_t)(ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    (void)pthread_cond_timedwait(&cap->changed, &cap->lock, &t);
}

static void leave(struct tw_cap *cap)
{
    bool last = --cap->refs == 0;
    pthread_cond_broadcast(&cap->changed);
    pthread_mutex_unlock(&cap->lock);
    if (!last)
        return;
    nv_lib_close(&cap->lib);
    for (unsigned i = 0; i < cap->n_desk; i++)
        free(cap->desk[i]);
    pthread_cond_destroy(&cap->changed);
    pthread_mutex_destroy(&cap->lock);
    free(cap);
}

/* ---- carrying out, without the lock ---- */

static enum tw_err failed(const struct desk *d, const char *what, int ret, struct tw_why *why)
{
    enum tw_err err = ret == NV_NO_PERMISSION                                   ? TW_EPERM
                      : ret == NV_NOT_SUPPORTED || ret == NV_FUNCTION_NOT_FOUND ? TW_EUNSUPPORTED
                      : ret == NV_NOT_FOUND                                     ? TW_ENOENT
                                                                                : TW_EIO;
    return tw_fail(why, err, "%s: %s: %s (%d)%s", d->uuid, what, nv_text(ret), ret,
                   ret == NV_NO_PERMISSION ? "; limits are written by root: run tokwatt-capd" : "");
}

/* The limit within what the device accepts now, bounds included. */
static int put_limit(struct desk *d, const struct nv_lib *lib, struct request *rq)
{
    unsigned low = 0, high = 0;
    int ret = lib->limit_range(d->dev, &low, &high);
    if (ret != NV_OK) {
        rq->err = failed(d, "reading the range of limits", ret, &rq->why);
        return ret;
    }
    double min_w = 1e-3 * low, max_w = 1e-3 * high;
    if (!(low > 0 && low <= high && max_w <= LIMIT_MAX_W)) {
        rq->err = tw_fail(&rq->why, TW_EUNSUPPORTED,
                          "%s says that it accepts limits of %g to %g W, which is no range: it is only watched",
                          d->uuid, min_w, max_w);
        return NV_OK;
    }
    if (!(rq->limit_w >= min_w && rq->limit_w <= max_w)) {
        rq->err = tw_fail(&rq->why, TW_ERANGE, "%s: a limit of %g W is outside %g to %g W", d->uuid,
                          rq->limit_w, min_w, max_w);
        return NV_OK;
    }
    ret = lib->limit_set(d->dev, (unsigned)lround(1e3 * rq->limit_w));
    rq->err = ret == NV_OK ? TW_OK : failed(d, "setting the limit", ret, &rq->why);
    return ret;
}

static int get_limits(struct desk *d, const struct nv_lib *lib, struct request *rq)
{
    unsigned asked = 0, held = 0;
    int ret = lib->limit(d->dev, &asked);
    if (ret == NV_OK)
        ret = lib->limit_enforced(d->dev, &held);
    if (ret != NV_OK) {
        rq->err = failed(d, "reading the limit", ret, &rq->why);
        return ret;
    }
    if (asked == 0 || asked == NV_BLANK_U32 || held == 0 || held == NV_BLANK_U32) {
        rq->err = tw_fail(&rq->why, TW_EIO, "%s does not say what its limit is", d->uuid);
        return NV_OK;
    }
    rq->requested_w = 1e-3 * asked;
    rq->enforced_w = 1e-3 * held;
    rq->err = TW_OK;
    return NV_OK;
}

static int carry_out(struct desk *d, const struct nv_lib *lib, struct request *rq)
{
    int ret = d->dev ? NV_OK : lib->by_uuid(d->uuid, &d->dev);
    if (ret != NV_OK) {
        rq->err = failed(d, "finding it", ret, &rq->why);
        return ret;
    }
    return rq->kind == WRITE ? put_limit(d, lib, rq) : get_limits(d, lib, rq);
}

/* Begin anew with a driver that was reloaded, once for all who notice. Under the lock. The old library is shut
 * down only when nobody else is in it; else it is left to whoever is. */
static enum tw_err open_again(struct tw_cap *cap, uint64_t generation, struct tw_why *why)
{
    if (cap->generation != generation)
        return TW_OK; /* somebody was faster */
    unsigned inside = 0;
    for (unsigned i = 0; i < cap->n_desk; i++)
        inside += cap->desk[i]->working ? 1U : 0U;
    if (inside <= 1)
        nv_lib_close(&cap->lib);
    cap->lib = (struct nv_lib){0};
    cap->generation++;
    return nv_lib_open(cap->spec.path, &cap->lib, why);
}

/* The lock is held on entry and on return. A handle that turned out void is taken again, once. */
static void serve(struct desk *d, struct request *rq)
{
    struct tw_cap *cap = d->cap;
    for (int attempt = 0; attempt < 2; attempt++) {
        uint64_t generation = cap->generation;
        struct nv_lib lib = cap->lib;
        if (d->dev_generation != generation) {
            d->dev = NULL;
            d->dev_generation = generation;
        }
        if (!lib.handle) {
            rq->err = open_again(cap, generation, &rq->why);
            if (rq->err != TW_OK)
                return;
            continue;
        }
        bool had = d->dev != NULL;
        pthread_mutex_unlock(&cap->lock);
        int ret = carry_out(d, &lib, rq);
        pthread_mutex_lock(&cap->lock);
        if (rq->err == TW_OK)
            return;
        bool void_handle = nv_device_gone(ret) || ret == NV_INVALID_ARGUMENT;
        if (void_handle)
            d->dev = NULL;
        if (nv_driver_gone(ret)) {
            enum tw_err err = open_again(cap, generation, &rq->why);
            if (err != TW_OK) {
                rq->err = TW_EIO; /* it was there: this passes */
                return;
            }
        } else if (!void_handle || !had) {
            return;
        }
    }
}

static void *desk_run(void *arg)
{
    struct desk *d = arg;
    struct tw_cap *cap = d->cap;
    pthread_mutex_lock(&cap->lock);
    while (!cap->quit) {
        if (!d->wanted) {
            pthread_cond_wait(&cap->changed, &cap->lock);
            continue;
        }
        struct request rq = d->request;
        d->wanted = false;
        d->working = true;
        d->since_us = tw_boot_us();
        serve(d, &rq);
        d->working = false;
        d->unknown = rq.err == TW_ENOENT;
        d->request = rq;
        d->done = d->asked;
        pthread_cond_broadcast(&cap->changed);
    }
    leave(cap);
    return NULL;
}

/* ---- asking ---- */

static enum tw_err desk_for(struct tw_cap *cap, const char *uuid, struct desk **ret, struct tw_why *why)
{
    for (unsigned i = 0; i < cap->n_desk; i++)
        if (strcmp(cap->desk[i]->uuid, uuid) == 0) {
            *ret = cap->desk[i];
            return TW_OK;
        }
    size_t n = strlen(uuid);
    if (strncmp(uuid, "GPU-", 4) != 0 || n >= sizeof cap->desk[0]->uuid)
        return tw_fail(why, TW_ENOENT, "\"%.60s\" is not the UUID of a GPU (GPU-...); limits take nothing else",
                       uuid);
    for (unsigned i = 0; i < cap->n_desk; i++) { /* names that were none do not use up the desks */
        struct desk *free_desk = cap->desk[i];
        if (free_desk->unknown && !free_desk->working && !free_desk->wanted) {
            free_desk->unknown = false;
            memcpy(free_desk->uuid, uuid, n + 1);
            *ret = free_desk;
            return TW_OK;
        }
    }
    struct desk *d = cap->n_desk < GPU_MAX ? calloc(1, sizeof *d) : NULL;
    if (!d)
        return tw_fail(why, TW_ELIMIT, "more than %d different GPUs were asked for", GPU_MAX);
    d->cap = cap;
    memcpy(d->uuid, uuid, n + 1);
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int bad = pthread_create(&thread, &attr, desk_run, d);
    pthread_attr_destroy(&attr);
    if (bad) {
        free(d);
        return tw_fail(why, TW_EIO, "no thread could be started");
    }
    cap->refs++;
    cap->desk[cap->n_desk++] = d;
    *ret = d;
    return TW_OK;
}

static enum tw_err ask(struct tw_cap *cap, const char *uuid, struct request *rq, struct tw_why *why)
{
    struct desk *d = NULL;
    pthread_mutex_lock(&cap->lock);
    enum tw_err err = desk_for(cap, uuid, &d, why);
    int64_t until_us = tw_boot_us() + (int64_t)(1e6 * cap->spec.deadline_s);
    if (err == TW_OK && d && (d->working || d->wanted))
        err = tw_fail(why, TW_EIO, "%s: an earlier call is still under way in the driver, for %.1f s", uuid,
                      d->working ? 1e-6 * (double)(tw_boot_us() - d->since_us) : 0.0);
    if (err == TW_OK && d) {
        d->request = *rq;
        d->wanted = true;
        uint64_t mine = ++d->asked;
        pthread_cond_broadcast(&cap->changed);
        while (d->done != mine && tw_boot_us() < until_us)
            wait_until(cap, until_us);
        if (d->done == mine) {
            *rq = d->request;
            err = rq->err;
            if (why && err != TW_OK)
                *why = rq->why;
        } else {
            err = tw_fail(why, TW_EIO, "%s: no answer from the driver within %g s; the call is still under way",
                          uuid, cap->spec.deadline_s);
        }
    }
    pthread_mutex_unlock(&cap->lock);
    return err;
}

static enum tw_err cap_write(struct tw_cap *cap, const char *uuid, double limit_w, struct tw_why *why)
{
    struct request rq = {.kind = WRITE, .limit_w = limit_w};
    if (!(limit_w > 0.0 && limit_w <= LIMIT_MAX_W))
        return tw_fail(why, TW_ERANGE, "%.60s: a limit of %g W is none", uuid, limit_w);
    return ask(cap, uuid, &rq, why);
}

static enum tw_err cap_read(struct tw_cap *cap, const char *uuid, double *ret_requested_w,
                            double *ret_enforced_w, struct tw_why *why)
{
    struct request rq = {.kind = READ};
    enum tw_err err = ask(cap, uuid, &rq, why);
    if (err == TW_OK) {
        *ret_requested_w = rq.requested_w;
        *ret_enforced_w = rq.enforced_w;
    }
    return err;
}

static void cap_close(struct tw_cap *cap)
{
    if (!cap)
        return;
    pthread_mutex_lock(&cap->lock);
    cap->quit = true;
    pthread_cond_broadcast(&cap->changed);
    int64_t until_us = tw_boot_us() + (int64_t)(1e6 * cap->spec.deadline_s);
    while (cap->refs > 1 && tw_boot_us() < until_us)
        wait_until(cap, until_us);
    leave(cap);
}

static enum tw_err cap_open(const char *text, struct tw_source *source, struct tw_cap **ret, struct tw_why *why)
{
    struct nv_spec spec;
    enum tw_err err = nv_spec_parse(text, &spec, why);
    if (err != TW_OK)
        return err;
    if (source && !*text)
        spec = *nv_source_spec(source);
    struct tw_cap *cap = calloc(1, sizeof *cap);
    if (!cap)
        return tw_fail(why, TW_ENOMEM, "no memory for the limits of this machine");
    cap->spec = spec;
    cap->refs = 1;
    cap->generation = 1;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cap->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&cap->lock, NULL);
    err = nv_lib_open(spec.path, &cap->lib, why);
    if (err != TW_OK && !spec.wait) {
        cap_close(cap);
        return err;
    }
    *ret = cap;
    return TW_OK;
}

const struct tw_cap_ops tw_nvml_cap = {
    .abi = TW_CAP_ABI,
    .name = "nvml",
    .open = cap_open,
    .close = cap_close,
    .write = cap_write,
    .read = cap_read,
};
