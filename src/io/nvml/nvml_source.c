/* SPDX-License-Identifier: Apache-2.0 */
/* The source: a thread for the driver, a thread for each GPU, and what they have for whoever asks.
 *
 *   driver thread:  down --opened--> up --a call says the driver is gone--> down
 *                   up <--taken-- released <--released-- up
 *   GPU thread:     nameless --handle, UUID--> named --handle by UUID--> read, read, read ...
 *                   on "lost": handle dropped, asked for again by UUID, ever more seldom
 *
 * One lock guards everything but the calls into NVML, which are made without it. The library is shut down and
 * unloaded only while no GPU thread is inside; one that hangs there keeps its copy, and the next driver gets
 * another. The site is freed by whoever leaves it last. */
#include "io/nvml/nvml.h"

#include "io/nvml/nvml_lib.h"
#include "io/nvml/nvml_read.h"
#include "io/nvml/nvml_spec.h"
#include "sys/clock.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GPU_MAX 64
#define BACKOFF_MAX 32
#define COST_FRAC 0.05     /* of a thread's time, at most, in NVML */
#define SLOWEST_US 1000000 /* and yet read as often as this */
#define INIT_S 30.0        /* a first nvmlInit without persistence mode takes seconds */
#define TEND_US 200000     /* how often the driver thread looks around */

const char *const tw_nvml_state_name[TW_NVML_STATE_COUNT] = {
#define STATE_NAME(id, name, help) [TW_NVML_##id] = (name),
    TW_NVML_STATE_MAP(STATE_NAME)
#undef STATE_NAME
};

struct site;

struct slot {
    struct site *site;
    unsigned number;

    /* under the site's lock */
    bool named, lost, missing, asleep;
    char uuid[48], pci[20], model[48];
    char note[128];
    unsigned tries;  /* passes and attempts so far */
    int64_t call_us; /* when it went into NVML; 0: it is outside */
    struct nv_device *dev;
    uint64_t dev_generation; /* of the driver that gave dev out; 0: none */
    struct nv_reading last;
    uint64_t seq, handed; /* readings so far; the one that read() gave out */
    uint64_t xids;
    unsigned last_xid, energy_resets;
    double energy_ratio, cost_frac, calls_per_s;
    int64_t period_us;

    /* of its thread alone */
    struct nv_gpu gpu;
    bool may_sleep;
    int64_t sleep_look_us;
    int64_t retry_us, win_from_us, win_busy_us;
    unsigned win_calls;
};

struct site {
    struct nv_spec spec;
    pthread_mutex_t lock;
    pthread_cond_t go, tend, changed; /* wake the GPUs' threads; the driver's; whoever waits for them */
    unsigned refs;
    bool quit, up, driver_lost, want_release, released;
    bool attempted; /* opening the library was tried at least once */
    enum tw_err attempt;
    struct tw_why note;
    uint64_t generation;
    unsigned count, busy; /* GPUs that the driver counts; threads inside NVML */
    struct nv_lib lib;    /* changed only by the driver thread, while busy is 0 */
    struct nv_event_set *events;
    struct tw_nvml_driver about;
    struct slot *slot[GPU_MAX];
    unsigned n_slot;
};

struct tw_source {
    struct site *site;
    unsigned order[GPU_MAX]; /* slots, in the order in which they were described */
    size_t n;
    struct tw_gpu_info info[GPU_MAX];
};

/* ---- waiting ---- */

static void wait_us(struct site *s, pthread_cond_t *cond, int64_t us)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = (int64_t)t.tv_nsec + (us > 0 ? us : 0) * 1000;
    t.tv_sec += (time_t)(ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    (void)pthread_cond_timedwait(cond, &s->lock, &t);
}

/* Something that decides what threads do has changed. */
static void tell_all(struct site *s)
{
    pthread_cond_broadcast(&s->go);
    pthread_cond_broadcast(&s->tend);
    pthread_cond_broadcast(&s->changed);
}

static int64_t as_us(double s)
{
    return (int64_t)(s * 1e6);
}

static void leave(struct site *s)
{
    bool last = --s->refs == 0;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    for (unsigned i = 0; i < s->n_slot; i++) {
        nv_gpu_drop(&s->slot[i]->gpu);
        free(s->slot[i]);
    }
    if (s->events)
        (void)s->lib.events_free(s->events);
    nv_lib_close(&s->lib);
    pthread_cond_destroy(&s->go);
    pthread_cond_destroy(&s->tend);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static enum tw_err thread_start(struct site *s, void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    s->refs++;
    int failed = pthread_create(&thread, &attr, run, arg);
    pthread_attr_destroy(&attr);
    if (failed)
        s->refs--;
    return failed ? TW_EIO : TW_OK;
}

/* ---- a GPU's thread ---- */

static bool claimed(const struct site *s, const char *uuid)
{
    for (unsigned i = 0; i < s->n_slot; i++)
        if (s->slot[i]->named && strcmp(s->slot[i]->uuid, uuid) == 0)
            return true;
    return false;
}

/* Find out whose number this is, and make it this slot's if nobody has it. NV_NOT_FOUND: taken. */
static int claim(struct slot *sl, const struct nv_lib *lib, unsigned index, struct nv_device **ret_dev)
{
    struct site *s = sl->site;
    struct nv_device *dev = NULL;
    struct nv_pci pci = {0};
    char uuid[96] = "", name[96] = "";
    int ret = lib->by_index(index, &dev);
    if (ret == NV_OK)
        ret = lib->uuid(dev, uuid, sizeof uuid);
    if (ret == NV_OK && strlen(uuid) >= sizeof sl->uuid)
        ret = NV_UNKNOWN;
    if (ret == NV_OK && lib->pci(dev, &pci) != NV_OK)
        pci.bus_id[0] = '\0';
    if (ret == NV_OK && lib->name(dev, name, sizeof name) != NV_OK)
        name[0] = '\0';
    if (ret != NV_OK)
        return ret;
    pthread_mutex_lock(&s->lock);
    if (claimed(s, uuid)) {
        ret = NV_NOT_FOUND;
    } else {
        (void)snprintf(sl->uuid, sizeof sl->uuid, "%s", uuid);
        (void)snprintf(sl->pci, sizeof sl->pci, "%.16s", pci.bus_id);
        (void)snprintf(sl->model, sizeof sl->model, "%.47s", name);
        sl->named = true;
        *ret_dev = dev;
    }
    pthread_mutex_unlock(&s->lock);
    return ret;
}

/* Its own number first; the others only when that one belongs to somebody already. */
static int get_named(struct slot *sl, const struct nv_lib *lib, unsigned count, struct nv_device **ret_dev)
{
    int ret = NV_NOT_FOUND;
    for (unsigned k = 0; k < count && ret == NV_NOT_FOUND; k++)
        ret = claim(sl, lib, (sl->number + k) % count, ret_dev);
    return ret;
}

/* A handle of the present driver. Called outside the lock; named changes only in this thread. */
static int get_handle(struct slot *sl, const struct nv_lib *lib, unsigned count, struct nv_event_set *events,
                      struct nv_device **ret_dev)
{
    struct nv_device *dev = NULL;
    int ret = sl->named ? lib->by_uuid(sl->uuid, &dev) : get_named(sl, lib, count, &dev);
    if (ret != NV_OK)
        return ret;
    nv_gpu_take(&sl->gpu, lib, dev);
    if (events && lib->events_for)
        (void)lib->events_for(dev, NV_EVENT_XID, events); /* a board without Xid events counts none */
    *ret_dev = dev;
    return NV_OK;
}

static bool file_says(const struct slot *sl, const char *what, const char *word)
{
    char path[256], text[32] = "", bus[20];
    size_t n = strlen(sl->pci);
    if (n < 12)
        return false;
    (void)snprintf(bus, sizeof bus, "%s", sl->pci + (n - 12)); /* "0000:18:00.0" of "00000000:18:00.0" */
    for (char *p = bus; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    (void)snprintf(path, sizeof path, "%s/bus/pci/devices/%s/power/%s", sl->site->spec.sysfs, bus, what);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool got = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    text[strcspn(text, "\n")] = '\0';
    return got && strcmp(text, word) == 0;
}

/* Asking a sleeping GPU would wake it. Whether it may sleep at all is looked up once a second. */
static bool is_asleep(struct slot *sl, int64_t now_us)
{
    if (sl->sleep_look_us == 0 || now_us - sl->sleep_look_us >= 1000000) {
        sl->may_sleep = file_says(sl, "control", "auto");
        sl->sleep_look_us = now_us;
    }
    return sl->may_sleep && file_says(sl, "runtime_status", "suspended");
}

/* What a pass cost, and what period that allows. */
static void account(struct slot *sl, int64_t began_us, int64_t ended_us, unsigned calls)
{
    int64_t cost_us = ended_us - began_us, period_us = as_us(sl->site->spec.period_s);
    if (sl->win_from_us == 0)
        sl->win_from_us = began_us;
    sl->win_busy_us += cost_us;
    sl->win_calls += calls;
    int64_t win_us = ended_us - sl->win_from_us;
    if (win_us < 1000000)
        return;
    sl->cost_frac = (double)sl->win_busy_us / (double)win_us;
    sl->calls_per_s = 1e6 * sl->win_calls / (double)win_us;
    sl->win_from_us = ended_us;
    sl->win_busy_us = 0;
    sl->win_calls = 0;
    /* The share is in proportion to the rate: slower by as much as it is too dear, and back by halves. */
    int64_t slowest_us = period_us > SLOWEST_US ? period_us : SLOWEST_US;
    double factor = sl->cost_frac / COST_FRAC;
    int64_t next_us = (int64_t)((double)sl->period_us * (factor > 0.5 ? factor : 0.5));
    sl->period_us = next_us < period_us ? period_us : next_us > slowest_us ? slowest_us : next_us;
}

/* After a call; under the lock. */
static void publish(struct slot *sl, int ret, struct nv_device *dev, uint64_t generation)
{
    struct site *s = sl->site;
    sl->missing = ret == NV_NOT_FOUND;
    if (ret == NV_OK && generation != s->generation) {
        nv_gpu_drop(&sl->gpu); /* it hung while the driver was changed */
        return;
    }
    if (ret == NV_OK) {
        sl->dev = dev;
        sl->dev_generation = generation;
        sl->lost = false;
        sl->retry_us = as_us(s->spec.retry_s);
        const struct nv_reading *now = &sl->gpu.now;
        if (!now->repeat) {
            sl->last = *now;
            sl->seq++;
        }
        sl->energy_resets = sl->gpu.energy.resets;
        sl->energy_ratio = sl->gpu.energy.ratio;
        return;
    }
    (void)snprintf(sl->note, sizeof sl->note, "%s (%d)", nv_text(ret), ret);
    nv_gpu_drop(&sl->gpu);
    sl->dev = NULL;
    sl->dev_generation = 0;
    sl->lost = true;
    sl->retry_us = sl->retry_us > 0 ? sl->retry_us * 2 : as_us(s->spec.retry_s);
    if (sl->retry_us > BACKOFF_MAX * as_us(s->spec.retry_s))
        sl->retry_us = BACKOFF_MAX * as_us(s->spec.retry_s);
    if (nv_driver_gone(ret) && generation == s->generation) {
        s->driver_lost = true;
        sl->retry_us = 0; /* the driver thread waits, not we */
        tell_all(s);
    }
}

/* One turn: into NVML and out again. The lock is held on entry and on return. */
static void turn(struct slot *sl)
{
    struct site *s = sl->site;
    uint64_t generation = s->generation;
    unsigned count = s->count, calls = sl->gpu.calls;
    struct nv_event_set *events = s->events;
    struct nv_device *dev = sl->dev_generation == generation ? sl->dev : NULL;
    struct nv_lib lib = s->lib;
    int64_t began_us = tw_boot_us();
    s->busy++;
    sl->call_us = began_us;
    pthread_mutex_unlock(&s->lock);

    bool asleep = dev && is_asleep(sl, began_us);
    int ret = NV_OK;
    if (!asleep && !dev)
        ret = get_handle(sl, &lib, count, events, &dev);
    if (!asleep && ret == NV_OK)
        ret = nv_gpu_pass(&sl->gpu, tw_boot_us());

    pthread_mutex_lock(&s->lock);
    s->busy--;
    sl->call_us = 0;
    sl->tries++;
    sl->asleep = asleep;
    account(sl, began_us, tw_boot_us(), sl->gpu.calls - calls);
    if (!asleep)
        publish(sl, ret, dev, generation);
    pthread_cond_broadcast(&s->changed);
}

static void *gpu_run(void *arg)
{
    struct slot *sl = arg;
    struct site *s = sl->site;
    pthread_mutex_lock(&s->lock);
    int64_t next_us = 0;
    while (!s->quit) {
        int64_t now_us = tw_boot_us();
        if (!s->up || s->want_release || s->driver_lost) {
            wait_us(s, &s->go, 10000000);
            next_us = 0;
        } else if (now_us < next_us) {
            wait_us(s, &s->go, next_us - now_us);
        } else {
            turn(sl);
            next_us = now_us + (sl->lost ? sl->retry_us : sl->period_us);
        }
    }
    leave(s);
    return NULL;
}

static enum tw_err slot_add(struct site *s)
{
    struct slot *sl = s->n_slot < GPU_MAX ? calloc(1, sizeof *sl) : NULL;
    if (!sl)
        return TW_ENOMEM;
    *sl = (struct slot){
        .site = s, .number = s->n_slot, .period_us = as_us(s->spec.period_s), .energy_ratio = (double)NAN};
    enum tw_err err = thread_start(s, gpu_run, sl);
    if (err != TW_OK) {
        free(sl);
        return err;
    }
    s->slot[s->n_slot++] = sl;
    return TW_OK;
}

/* ---- the driver's thread ---- */

static void try_open(struct site *s)
{
    struct nv_lib lib = {0};
    struct tw_why why = {""};
    struct tw_nvml_driver about = {0};
    struct nv_event_set *events = NULL;
    unsigned count = 0;
    pthread_mutex_unlock(&s->lock);
    enum tw_err err = nv_lib_open(s->spec.path, &lib, &why);
    if (err == TW_OK) {
        (void)snprintf(about.path, sizeof about.path, "%s", lib.path);
        if (lib.driver_version(about.driver, sizeof about.driver) != NV_OK)
            about.driver[0] = '\0';
        if (!lib.nvml_version || lib.nvml_version(about.nvml, sizeof about.nvml) != NV_OK)
            about.nvml[0] = '\0';
        if (!lib.cuda_version || lib.cuda_version(&about.cuda) != NV_OK)
            about.cuda = 0;
        int ret = lib.count(&count);
        if (ret != NV_OK || count == 0)
            err = tw_fail(&why, TW_EUNSUPPORTED, "%.200s: %s", lib.path,
                          ret == NV_OK ? "the driver sees no GPU" : nv_text(ret));
        else if (lib.events_new && lib.events_wait && lib.events_free && lib.events_new(&events) != NV_OK)
            events = NULL;
        if (err != TW_OK)
            nv_lib_close(&lib);
    }
    pthread_mutex_lock(&s->lock);
    s->attempted = true;
    s->attempt = err;
    s->note = why;
    if (err == TW_OK) {
        about.reloads = (unsigned)s->generation;
        s->lib = lib;
        s->events = events;
        s->about = about;
        s->count = count < GPU_MAX ? count : GPU_MAX;
        s->generation++;
        s->up = true;
        s->driver_lost = false;
    }
    tell_all(s);
}

/* Stop using the library and give it back. False: a GPU's thread is still inside after the deadline. */
static bool stop_using(struct site *s)
{
    s->up = false;
    int64_t until_us = tw_boot_us() + as_us(s->spec.deadline_s);
    while (s->busy > 0 && tw_boot_us() < until_us)
        wait_us(s, &s->changed, until_us - tw_boot_us());
    return s->busy == 0;
}

static void let_go(struct site *s, bool all_out)
{
    for (unsigned i = 0; i < s->n_slot; i++) {
        struct slot *sl = s->slot[i];
        if (sl->call_us == 0) {
            nv_gpu_drop(&sl->gpu);
            sl->dev = NULL;
            sl->dev_generation = 0;
        }
    }
    if (all_out) {
        if (s->events)
            (void)s->lib.events_free(s->events);
        nv_lib_close(&s->lib);
    } else {
        s->lib = (struct nv_lib){0}; /* the one who hangs in it keeps it */
        s->generation++;             /* and what he brings back is of yesterday */
    }
    s->events = NULL;
    s->driver_lost = false;
}

/* Xid events since the last look. */
static void drain_events(struct site *s)
{
    struct nv_event_set *set = s->events;
    for (int i = 0; set && i < GPU_MAX; i++) {
        struct nv_event e = {0};
        pthread_mutex_unlock(&s->lock);
        int ret = s->lib.events_wait(set, &e, 0);
        pthread_mutex_lock(&s->lock);
        if (ret != NV_OK)
            return;
        for (unsigned k = 0; k < s->n_slot; k++)
            if (s->slot[k]->dev == e.device && e.type == NV_EVENT_XID) {
                s->slot[k]->xids++;
                s->slot[k]->last_xid = (unsigned)e.data;
            }
    }
}

/* A thread for each GPU that the driver counts and that no slot stands for. */
static void enough_slots(struct site *s)
{
    unsigned have = 0;
    for (unsigned i = 0; i < s->n_slot; i++)
        have += s->slot[i]->missing && s->slot[i]->named ? 0U : 1U;
    while (have < s->count && slot_add(s) == TW_OK)
        have++;
}

static void do_release(struct site *s)
{
    bool was_up = s->up;
    if (stop_using(s)) {
        let_go(s, true);
        s->released = true;
    } else {
        s->up = was_up;
    }
    s->want_release = false;
    tell_all(s);
}

static void *driver_run(void *arg)
{
    struct site *s = arg;
    pthread_mutex_lock(&s->lock);
    int64_t retry_us = as_us(s->spec.retry_s), next_us = 0;
    while (!s->quit) {
        int64_t now_us = tw_boot_us();
        if (s->want_release) {
            do_release(s);
        } else if (s->released) {
            wait_us(s, &s->tend, 10000000);
        } else if (s->up && s->driver_lost) {
            let_go(s, stop_using(s));
            next_us = now_us; /* at once: a reload may be over already */
        } else if (s->up) {
            enough_slots(s);
            drain_events(s);
            if (!s->quit && !s->want_release && !s->driver_lost)
                wait_us(s, &s->tend, TEND_US);
        } else if (now_us < next_us) {
            wait_us(s, &s->tend, next_us - now_us);
        } else {
            try_open(s);
            retry_us = s->up ? as_us(s->spec.retry_s) : retry_us;
            next_us = tw_boot_us() + retry_us;
            if (!s->up && retry_us < BACKOFF_MAX * as_us(s->spec.retry_s))
                retry_us *= 2;
        }
    }
    leave(s);
    return NULL;
}

/* ---- the port ---- */

static void nvml_close(struct tw_source *src)
{
    if (!src)
        return;
    struct site *s = src->site;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    tell_all(s);
    int64_t until_us = tw_boot_us() + as_us(s->spec.deadline_s);
    while (s->refs > 1 && tw_boot_us() < until_us)
        wait_us(s, &s->changed, until_us - tw_boot_us());
    leave(s);
    free(src);
}

static struct site *site_new(const struct nv_spec *spec)
{
    struct site *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->spec = *spec;
    s->refs = 1;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->go, &attr);
    pthread_cond_init(&s->tend, &attr);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static bool all_tried(const struct site *s)
{
    if (s->n_slot < s->count)
        return false;
    for (unsigned i = 0; i < s->n_slot; i++)
        if (s->slot[i]->tries == 0)
            return false;
    return true;
}

/* Until the library was tried and each GPU has been read once, or has had its time. Under the lock. */
static enum tw_err first_look(struct site *s, struct tw_why *why)
{
    int64_t until_us = tw_boot_us() + as_us(INIT_S);
    while (!s->attempted && tw_boot_us() < until_us)
        wait_us(s, &s->changed, until_us - tw_boot_us());
    if (!s->attempted)
        return tw_fail(why, TW_EIO, "the NVIDIA driver has not answered nvmlInit for %g s", INIT_S);
    if (s->attempt != TW_OK) {
        if (s->spec.wait)
            return TW_OK;
        return tw_fail(why, s->attempt, "%s", s->note.text);
    }
    until_us = tw_boot_us() + as_us(s->spec.deadline_s);
    while (!all_tried(s) && tw_boot_us() < until_us)
        wait_us(s, &s->changed, until_us - tw_boot_us());
    return TW_OK;
}

static enum tw_err nvml_open(const char *text, struct tw_source **ret, struct tw_why *why)
{
    struct nv_spec spec;
    enum tw_err err = nv_spec_parse(text, &spec, why);
    if (err != TW_OK)
        return err;
    struct tw_source *src = calloc(1, sizeof *src);
    struct site *s = site_new(&spec);
    if (!src || !s) {
        free(src);
        free(s);
        return tw_fail(why, TW_ENOMEM, "no memory for the GPUs of this machine");
    }
    src->site = s;
    pthread_mutex_lock(&s->lock);
    err = thread_start(s, driver_run, s);
    if (err != TW_OK)
        err = tw_fail(why, err, "no thread could be started");
    else
        err = first_look(s, why);
    pthread_mutex_unlock(&s->lock);
    if (err != TW_OK) {
        nvml_close(src);
        return err;
    }
    *ret = src;
    return TW_OK;
}

static bool is_described(const struct tw_source *src, unsigned slot)
{
    for (size_t i = 0; i < src->n; i++)
        if (src->order[i] == slot)
            return true;
    return false;
}

static enum tw_err nvml_describe(struct tw_source *src, const struct tw_gpu_info **ret_gpu, size_t *ret_n_gpu,
                                 const struct tw_job_info **ret_job, size_t *ret_n_job, struct tw_why *why)
{
    static const struct tw_job_info none;
    (void)why;
    struct site *s = src->site;
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->n_slot; i++)
        if (s->slot[i]->named && !is_described(src, i))
            src->order[src->n++] = i;
    for (size_t i = 0; i < src->n; i++) {
        const struct slot *sl = s->slot[src->order[i]];
        struct tw_gpu_info *g = &src->info[i];
        bool read = sl->seq > 0;
        (void)snprintf(g->uuid, sizeof g->uuid, "%s", sl->uuid);
        (void)snprintf(g->pci, sizeof g->pci, "%s", sl->pci);
        (void)snprintf(g->model, sizeof g->model, "%s", sl->model);
        g->job = TW_NO_JOB;
        g->limit_min_w = read ? sl->last.limit_min_w : (double)NAN;
        g->limit_max_w = read ? sl->last.limit_max_w : (double)NAN;
        g->limit_default_w = read ? sl->last.limit_default_w : (double)NAN;
    }
    pthread_mutex_unlock(&s->lock);
    *ret_gpu = src->info;
    *ret_n_gpu = src->n;
    *ret_job = &none;
    *ret_n_job = 0;
    return TW_OK;
}

static enum tw_err nvml_read(struct tw_source *src, struct tw_site_sample *sample, struct tw_why *why)
{
    (void)why;
    struct site *s = src->site;
    pthread_mutex_lock(&s->lock);
    int64_t now_us = tw_boot_us();
    sample->now_us = now_us;
    sample->base_w = 0.0;
    for (size_t i = 0; i < src->n; i++) {
        struct slot *sl = s->slot[src->order[i]];
        struct tw_gpu_sample *g = &sample->gpu[i];
        bool young = sl->seq > 0 && now_us - sl->last.time_us <= as_us(s->spec.deadline_s);
        bool power = isfinite(sl->last.ch[TW_CH_POWER_W]) || isfinite(sl->last.ch[TW_CH_POWER_INSTANT_W]);
        g->time_us = sl->last.time_us;
        g->fresh = young && power && sl->seq != sl->handed;
        for (int c = 0; c < TW_CH_COUNT; c++)
            g->ch[c] = young ? sl->last.ch[c] : NAN;
        sl->handed = sl->seq;
    }
    pthread_mutex_unlock(&s->lock);
    return TW_OK;
}

/* ---- beyond the port ---- */

const struct nv_spec *nv_source_spec(const struct tw_source *src)
{
    return &src->site->spec;
}

static enum tw_nvml_state state_of(const struct site *s, const struct slot *sl, int64_t now_us)
{
    if (s->released)
        return TW_NVML_RELEASED;
    if (sl->call_us != 0 && now_us - sl->call_us > as_us(s->spec.deadline_s))
        return TW_NVML_STUCK;
    if (sl->lost || !s->up)
        return TW_NVML_LOST;
    if (sl->asleep)
        return TW_NVML_ASLEEP;
    return sl->seq > 0 ? TW_NVML_OK : TW_NVML_STARTING;
}

void tw_nvml_look(struct tw_source *src, size_t gpu, struct tw_nvml_info *ret)
{
    struct site *s = src->site;
    pthread_mutex_lock(&s->lock);
    const struct slot *sl = s->slot[src->order[gpu]];
    const struct nv_reading *r = &sl->last;
    bool read = sl->seq > 0;
    int64_t now_us = tw_boot_us();
    *ret = (struct tw_nvml_info){.state = state_of(s, sl, now_us),
                                 .power_window_s = read ? r->power_window_s : (double)NAN,
                                 .mig = read ? r->mig : -1,
                                 .persistence = read ? r->persistence : -1,
                                 .n_pid = read ? r->n_pid : -1,
                                 .xids = sl->xids,
                                 .last_xid = sl->last_xid,
                                 .energy_resets = sl->energy_resets,
                                 .energy_ratio = sl->energy_ratio,
                                 .cost_frac = sl->cost_frac,
                                 .calls_per_s = sl->calls_per_s,
                                 .age_s = read ? 1e-6 * (double)(now_us - r->time_us) : (double)NAN,
                                 .period_s = 1e-6 * (double)sl->period_us};
    memcpy(ret->note, sl->note, sizeof ret->note);
    memcpy(ret->pid, r->pid, sizeof ret->pid);
    pthread_mutex_unlock(&s->lock);
}

void tw_nvml_look_driver(struct tw_source *src, struct tw_nvml_driver *ret)
{
    struct site *s = src->site;
    pthread_mutex_lock(&s->lock);
    unsigned named = 0;
    for (unsigned i = 0; i < s->n_slot; i++)
        named += s->slot[i]->named && !s->slot[i]->missing ? 1U : 0U;
    *ret = s->about;
    ret->up = s->up;
    ret->missing_gpus = s->count > named ? s->count - named : 0U;
    (void)snprintf(ret->note, sizeof ret->note, "%.255s", s->note.text);
    pthread_mutex_unlock(&s->lock);
}

enum tw_err tw_nvml_release(struct tw_source *src, struct tw_why *why)
{
    struct site *s = src->site;
    pthread_mutex_lock(&s->lock);
    if (!s->released)
        s->want_release = true;
    tell_all(s);
    while (s->want_release)
        wait_us(s, &s->changed, 1000000);
    bool done = s->released;
    pthread_mutex_unlock(&s->lock);
    return done ? TW_OK
                : tw_fail(why, TW_EIO, "a GPU is in a call that does not end; its handle cannot be given back");
}

void tw_nvml_take(struct tw_source *src)
{
    struct site *s = src->site;
    pthread_mutex_lock(&s->lock);
    s->released = false;
    tell_all(s);
    pthread_mutex_unlock(&s->lock);
}

const struct tw_source_ops tw_nvml_source = {
    .abi = TW_SOURCE_ABI,
    .name = "nvml",
    .help = "the NVIDIA GPUs of this machine: path=,period=100ms,deadline=2s,retry=1s,wait=0",
    .open = nvml_open,
    .close = nvml_close,
    .describe = nvml_describe,
    .read = nvml_read,
};
