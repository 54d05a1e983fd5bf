/* SPDX-License-Identifier: Apache-2.0 */
/* The privileged helper behind port/cap.h. */
#include "io/capd/viacapd.h"

#include "base/num.h"
#include "capd/client.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS 64

struct gpu {
    char uuid[48];
    struct tw_capd_client client;
    bool held;
};

struct tw_cap {
    char path[104];
    enum tw_capd_kind kind;
    double lease_s;
    pthread_mutex_t lock; /* of the list, not of its entries */
    size_t n;
    struct gpu gpu[GPUS];
};

static enum tw_err take_word(struct tw_cap *cap, const char *word, struct tw_why *why)
{
    if (word[0] == '/' && strlen(word) < sizeof cap->path) {
        memcpy(cap->path, word, strlen(word) + 1);
        return TW_OK;
    }
    if (strcmp(word, "free") == 0) {
        cap->kind = TW_CAPD_FREE;
        return TW_OK;
    }
    if (strncmp(word, "lease=", 6) == 0)
        return tw_num_duration(word + 6, &cap->lease_s, why);
    return tw_fail(why, TW_EINVAL, "capd does not know \"%.40s\"; it takes a socket path, free, lease=10s",
                   word);
}

static enum tw_err cap_open(const char *spec, struct tw_source *source, struct tw_cap **ret, struct tw_why *why)
{
    (void)source;
    char text[256], *save = NULL;
    size_t n = strlen(spec);
    struct tw_capd_client probe;
    struct tw_cap *cap = n < sizeof text ? calloc(1, sizeof *cap) : NULL;
    if (!cap)
        return tw_fail(why, n < sizeof text ? TW_ENOMEM : TW_EINVAL, "capd: the configuration is too long");
    *cap = (struct tw_cap){.path = TW_CAPD_SOCKET, .kind = TW_CAPD_BUDGET, .lease_s = 10.0};
    memcpy(text, spec, n + 1);
    enum tw_err err = TW_OK;
    for (char *w = strtok_r(text, ",", &save); w && err == TW_OK; w = strtok_r(NULL, ",", &save))
        err = take_word(cap, w, why);
    if (err == TW_OK)
        err = tw_capd_client_open(&probe, cap->path, why);
    if (err == TW_OK) {
        err = tw_capd_do(&probe, TW_CAPD_HELLO, "", NULL, why);
        tw_capd_client_close(&probe);
    }
    if (err != TW_OK) {
        free(cap);
        return err;
    }
    pthread_mutex_init(&cap->lock, NULL);
    *ret = cap;
    return TW_OK;
}

/* The entry of a GPU, made on the first call. NULL when there are too many, or the name is none. */
static struct gpu *entry(struct tw_cap *cap, const char *uuid)
{
    struct gpu *found = NULL;
    pthread_mutex_lock(&cap->lock);
    for (size_t i = 0; i < cap->n && !found; i++)
        if (strcmp(cap->gpu[i].uuid, uuid) == 0)
            found = &cap->gpu[i];
    if (!found && cap->n < GPUS && strlen(uuid) < sizeof found->uuid) {
        found = &cap->gpu[cap->n++];
        *found = (struct gpu){.client.fd = -1};
        memcpy(found->uuid, uuid, strlen(uuid) + 1);
    }
    pthread_mutex_unlock(&cap->lock);
    return found;
}

/* A connection for the GPU; one that broke is made anew, and holds nothing. */
static enum tw_err connected(struct tw_cap *cap, struct gpu *g, struct tw_why *why)
{
    if (g->client.fd >= 0)
        return TW_OK;
    g->held = false;
    return tw_capd_client_open(&g->client, cap->path, why);
}

static enum tw_err cap_write(struct tw_cap *cap, const char *uuid, double limit_w, struct tw_why *why)
{
    struct gpu *g = entry(cap, uuid);
    if (!g)
        return tw_fail(why, TW_ENOENT, "%.60s is one GPU too many", uuid);
    enum tw_err err = connected(cap, g, why);
    if (err == TW_OK && !g->held)
        err = tw_capd_acquire(&g->client, uuid, cap->kind, cap->lease_s, NULL, why);
    if (err != TW_OK)
        return err;
    g->held = true;
    struct tw_capd_reply r = {.status = TW_OK};
    err = tw_capd_set(&g->client, uuid, limit_w, NULL, &r, why);
    if (err == TW_EPERM) /* the lease ran out: the next write acquires it again */
        g->held = false;
    /* Written, but the device holds another limit: the port's rule is that read tells, and it will. */
    return err == TW_ERANGE && r.requested_w > 0.0 && limit_w >= r.min_w && limit_w <= r.max_w ? TW_OK : err;
}

static enum tw_err cap_read(struct tw_cap *cap, const char *uuid, double *ret_requested_w,
                            double *ret_enforced_w, struct tw_why *why)
{
    struct gpu *g = entry(cap, uuid);
    struct tw_capd_reply r;
    if (!g)
        return tw_fail(why, TW_ENOENT, "%.60s is one GPU too many", uuid);
    enum tw_err err = connected(cap, g, why);
    if (err == TW_OK)
        err = tw_capd_do(&g->client, g->held ? TW_CAPD_READ : TW_CAPD_STATUS, uuid, &r, why);
    if (err == TW_EPERM)
        g->held = false;
    if (err != TW_OK)
        return err;
    if (!(r.requested_w > 0.0))
        return tw_fail(why, TW_ENODATA, "%s: the helper has not read this GPU yet", uuid);
    *ret_requested_w = r.requested_w;
    *ret_enforced_w = r.enforced_w;
    return TW_OK;
}

static enum tw_err cap_release(struct tw_cap *cap, const char *uuid, bool room, struct tw_why *why)
{
    struct gpu *g = entry(cap, uuid);
    if (!g || !g->held)
        return TW_OK; /* nothing of ours */
    enum tw_err err = tw_capd_do(&g->client, room ? TW_CAPD_RELEASE : TW_CAPD_LEAVE, uuid, NULL, why);
    g->held = false;
    return err;
}

static void cap_close(struct tw_cap *cap)
{
    if (!cap)
        return;
    for (size_t i = 0; i < cap->n; i++) {
        /* Without a budget there is room by definition; with one only release() knows. A GPU that fails is the
         * helper's to try again. */
        (void)cap_release(cap, cap->gpu[i].uuid, cap->kind == TW_CAPD_FREE, NULL);
        tw_capd_client_close(&cap->gpu[i].client);
    }
    pthread_mutex_destroy(&cap->lock);
    free(cap);
}

const struct tw_cap_ops tw_viacapd_cap = {
    .abi = TW_CAP_ABI,
    .name = "capd",
    .open = cap_open,
    .close = cap_close,
    .write = cap_write,
    .read = cap_read,
    .release = cap_release,
};
