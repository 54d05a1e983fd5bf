/* SPDX-License-Identifier: Apache-2.0 */
/* The shared site: mapping, time, and the fault file. */
#include "fake_site.h"

#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* An address that nothing else takes: in the middle of user space with 47 bits and more, and outside what the
 * sanitizers claim. */
#define SITE_ADDRESS ((void *)0x7e9000000000)
#define SITE_MAGIC "tw-fake-nvml-1"
#define ARENA_AT ((sizeof(struct fake_site) + 4095U) / 4096U * 4096U)
#define SLICE_US 5000

static const char *const channel_name[FAKE_CHANNEL_COUNT] = {
#define FAKE_CHANNEL_NAME(id, name) [FAKE_##id] = name,
    FAKE_CHANNEL_MAP(FAKE_CHANNEL_NAME)
#undef FAKE_CHANNEL_NAME
};

int64_t fake_boot_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void fake_uuid(uint32_t gpu, char *buf, size_t size)
{
    (void)snprintf(buf, size, "GPU-51a70000-0000-4000-8000-%012x", gpu);
}

void fake_pci(uint32_t gpu, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%08X:%02X:00.0", gpu / 8U, 0x18U + 0x10U * (gpu % 8U));
}

/* ---- making and joining ---- */

struct conf {
    int64_t gpus, jobs, seed;
    double noise;
};

static bool conf_read(struct conf *c)
{
    const char *text = getenv("TW_FAKE_NVML_CONF");
    char buf[256];
    (void)snprintf(buf, sizeof buf, "%s", text ? text : "");
    char *save = NULL;
    for (char *word = strtok_r(buf, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        char *value = strchr(word, '=');
        enum tw_err err = TW_EINVAL;
        if (value) {
            *value++ = '\0';
            if (strcmp(word, "gpus") == 0)
                err = tw_num_i64(value, 1, FAKE_GPU_MAX, &c->gpus, NULL);
            else if (strcmp(word, "jobs") == 0)
                err = tw_num_i64(value, 0, FAKE_GPU_MAX, &c->jobs, NULL);
            else if (strcmp(word, "seed") == 0)
                err = tw_num_i64(value, 0, INT64_MAX, &c->seed, NULL);
            else if (strcmp(word, "noise") == 0)
                err = tw_num_f64(value, &c->noise, NULL);
        }
        if (err != TW_OK) {
            (void)fprintf(stderr, "fake nvml: TW_FAKE_NVML_CONF: \"%s\" is not understood\n", word);
            return false;
        }
    }
    return true;
}

static size_t site_bytes(const struct conf *c)
{
    return ARENA_AT + tw_plant_bytes((uint32_t)c->gpus, (uint32_t)c->jobs) + 4096U;
}

static bool site_make(struct fake_site *s, const struct conf *c, size_t bytes)
{
    memset(s, 0, sizeof *s);
    s->bytes = bytes;
    s->epoch_us = fake_boot_us();
    s->generation = 1;
    s->n_gpu = (uint32_t)c->gpus;
    s->board = tw_board_h100;
    s->board.model = NULL; /* a pointer into one process */
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&s->lock, &attr);
    pthread_mutexattr_destroy(&attr);

    struct tw_plant_job jobs[FAKE_GPU_MAX] = {0};
    struct tw_why why = {""};
    struct tw_arena arena;
    tw_arena_init(&arena, (unsigned char *)s + ARENA_AT, bytes - ARENA_AT);
    struct tw_plant_conf plant = {.seed = (uint64_t)c->seed,
                                  .board = &s->board,
                                  .job = jobs,
                                  .n_job = (uint32_t)c->jobs,
                                  .n_gpu = s->n_gpu,
                                  .noise = c->noise};
    enum tw_err err = c->jobs ? tw_plant_default_jobs(s->n_gpu, plant.n_job, jobs, &why) : TW_OK;
    if (err == TW_OK)
        err = tw_plant_new(&arena, &plant, &s->plant, &why);
    if (err != TW_OK) {
        (void)fprintf(stderr, "fake nvml: %s\n", why.text);
        return false;
    }
    tw_plant_advance(s->plant, 2000000); /* sensors with a full window from the first call on */
    memcpy(s->magic, SITE_MAGIC, sizeof SITE_MAGIC);
    return true;
}

static void *map(int fd, size_t bytes)
{
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *p = mmap(SITE_ADDRESS, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, fd, 0);
    if (p == MAP_FAILED || p != SITE_ADDRESS) {
        (void)fprintf(stderr, "fake nvml: cannot map %zu bytes at %p: %s\n", bytes, SITE_ADDRESS,
                      strerror(errno));
        return NULL;
    }
    return p;
}

static bool usable(int fd, size_t *ret_bytes)
{
    struct fake_site head;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head.magic, SITE_MAGIC, sizeof SITE_MAGIC) != 0)
        return false;
    struct stat st;
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != head.bytes || head.epoch_us > fake_boot_us())
        return false;
    *ret_bytes = head.bytes;
    return true;
}

static struct fake_site *site_open(void)
{
    struct conf c = {.gpus = 8, .jobs = 2, .seed = 1, .noise = 1.0};
    if (!conf_read(&c))
        return NULL;
    const char *path = getenv("TW_FAKE_NVML");
    size_t bytes = site_bytes(&c);
    if (!path || !*path) {
        struct fake_site *s = map(-1, bytes);
        return s && site_make(s, &c, bytes) ? s : NULL;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || lockf(fd, F_LOCK, 0) != 0) {
        (void)fprintf(stderr, "fake nvml: %s: %s\n", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct fake_site *s = NULL;
    if (usable(fd, &bytes)) {
        s = map(fd, bytes);
    } else if (ftruncate(fd, 0) == 0 && ftruncate(fd, (off_t)bytes) == 0) {
        s = map(fd, bytes);
        if (s && !site_make(s, &c, bytes))
            s = NULL;
    }
    close(fd); /* and with it the lock; the mapping stays */
    return s;
}

static struct fake_site *the_site;

static void open_once(void)
{
    the_site = site_open();
}

struct fake_site *fake_site_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return the_site;
}

/* A library that is unloaded and loaded again, as after a driver upgrade, finds its place free. */
__attribute__((destructor)) static void site_close(void)
{
    if (the_site)
        munmap(the_site, the_site->bytes);
    the_site = NULL;
}

/* ---- the fault file ---- */

static uint32_t channel_bits(char **save)
{
    uint32_t bits = 0;
    for (char *word = strtok_r(NULL, " \t", save); word; word = strtok_r(NULL, " \t", save))
        for (int c = 0; c < FAKE_CHANNEL_COUNT; c++)
            if (strcmp(word, channel_name[c]) == 0 || strcmp(word, "all") == 0)
                bits |= 1U << c;
    return bits;
}

static int64_t time_us(char **save)
{
    char *word = strtok_r(NULL, " \t", save);
    double s = 0.0;
    if (!word || tw_num_duration(word, &s, NULL) != TW_OK)
        (void)fprintf(stderr, "fake nvml: a fault wants a time, such as 30s\n");
    return (int64_t)(s * 1e6);
}

static double number(char **save)
{
    char *word = strtok_r(NULL, " \t", save);
    double x = 0.0;
    if (!word || tw_num_f64(word, &x, NULL) != TW_OK)
        (void)fprintf(stderr, "fake nvml: a fault wants a number\n");
    return x;
}

static void reload(struct fake_site *s, int64_t off_us)
{
    s->generation++;
    s->off_until_us = fake_boot_us() + off_us;
    for (uint32_t i = 0; i < s->n_gpu; i++) {
        struct tw_plant_reading r;
        tw_plant_read(s->plant, i, &r);
        s->gpu[i].energy_from_j = r.energy_j;
        if (tw_plant_cap(s->plant, i, s->board.limit_default_w, NULL) != TW_OK)
            (void)fprintf(stderr, "fake nvml: the default limit was refused\n");
    }
}

static void add_pid(struct fake_fault *f, char **save)
{
    if (f->n_pid == FAKE_PID_MAX)
        return;
    f->pid[f->n_pid].pid = (uint32_t)number(save);
    char *bytes = strtok_r(NULL, " \t", save);
    double n = 1e9;
    if (bytes && tw_num_f64(bytes, &n, NULL) != TW_OK)
        n = 1e9;
    f->pid[f->n_pid++].bytes = (uint64_t)n;
}

/* One GPU's part of a line. False: the word is not known. */
static bool gpu_line(struct fake_site *s, struct fake_gpu *g, uint32_t i, const char *what, char **save)
{
    struct fake_fault *f = &g->fault;
    if (strcmp(what, "na") == 0)
        f->na |= channel_bits(save);
    else if (strcmp(what, "blank") == 0)
        f->blank |= channel_bits(save);
    else if (strcmp(what, "zero") == 0)
        f->zero |= channel_bits(save);
    else if (strcmp(what, "error") == 0) {
        f->error_code = (int)number(save);
        f->error |= channel_bits(save);
    } else if (strcmp(what, "frozen") == 0)
        f->frozen = true;
    else if (strcmp(what, "lost") == 0)
        f->lost = true;
    else if (strcmp(what, "stuck") == 0 || strcmp(what, "slow") == 0)
        f->call_us = time_us(save);
    else if (strcmp(what, "nonsense") == 0)
        f->nonsense = true;
    else if (strcmp(what, "mig") == 0)
        f->mig = true;
    else if (strcmp(what, "nopersist") == 0)
        f->nopersist = true;
    else if (strcmp(what, "pid") == 0)
        add_pid(f, save);
    else if (strcmp(what, "ignored") == 0)
        f->ignored = true;
    else if (strcmp(what, "clamped") == 0)
        f->clamped_w = number(save);
    else if (strcmp(what, "denied") == 0)
        f->denied = true;
    else if (strcmp(what, "slowwrite") == 0 || strcmp(what, "stuckwrite") == 0) {
        f->write_us = time_us(save);
        f->write_fails = strcmp(what, "stuckwrite") == 0;
    } else if (strcmp(what, "xid") == 0) {
        g->xid_code = (uint32_t)number(save);
        g->xid_seq++;
    } else if (strcmp(what, "reset") == 0) {
        struct tw_plant_reading r;
        tw_plant_read(s->plant, i, &r);
        g->energy_from_j = r.energy_j;
    } else
        return false;
    return true;
}

static void line_read(struct fake_site *s, const char *line)
{
    char head[256];
    (void)snprintf(head, sizeof head, "%s", line);
    head[strcspn(head, "#\n")] = '\0';
    char *save = NULL, *which = strtok_r(head, " \t", &save), *what = strtok_r(NULL, " \t", &save);
    if (!which)
        return;
    if (what && strcmp(what, "nodriver") == 0) {
        s->nodriver = true;
        return;
    }
    if (what && strcmp(what, "reload") == 0) {
        reload(s, time_us(&save));
        return;
    }
    bool known = false;
    for (uint32_t i = 0; what && i < s->n_gpu; i++) {
        char uuid[48], index[16], again[256];
        fake_uuid(i, uuid, sizeof uuid);
        (void)snprintf(index, sizeof index, "%u", i);
        if (strcmp(which, "*") != 0 && strcmp(which, uuid) != 0 && strcmp(which, index) != 0)
            continue;
        (void)snprintf(again, sizeof again, "%s", line); /* the arguments are read for each GPU anew */
        again[strcspn(again, "#\n")] = '\0';
        char *pos = NULL;
        (void)strtok_r(again, " \t", &pos);
        (void)strtok_r(NULL, " \t", &pos);
        known = gpu_line(s, &s->gpu[i], i, what, &pos);
    }
    if (!known)
        (void)fprintf(stderr, "fake nvml: fault line not understood: %.80s\n", line);
}

static void plant_faults(struct fake_site *s)
{
    for (uint32_t i = 0; i < s->n_gpu; i++) {
        const struct fake_fault *f = &s->gpu[i].fault;
        tw_plant_fault(s->plant, i,
                       f->frozen            ? TW_PLANT_FAULT_STUCK
                       : f->ignored         ? TW_PLANT_FAULT_IGNORE
                       : f->clamped_w > 0.0 ? TW_PLANT_FAULT_CLAMP
                                            : TW_PLANT_FAULT_NONE,
                       f->clamped_w);
    }
}

static void control_read(struct fake_site *s)
{
    char path[4096];
    const char *faults = getenv("TW_FAKE_NVML_FAULTS"), *file = getenv("TW_FAKE_NVML");
    if (faults && *faults)
        (void)snprintf(path, sizeof path, "%s", faults);
    else if (file && *file)
        (void)snprintf(path, sizeof path, "%s.faults", file);
    else
        return;
    struct stat st;
    uint64_t stamp = 0; /* no file: no faults */
    if (stat(path, &st) == 0)
        stamp = ((uint64_t)st.st_mtim.tv_sec * 1000000000U + (uint64_t)st.st_mtim.tv_nsec) ^
                ((uint64_t)st.st_ino << 20) ^ ((uint64_t)st.st_size << 50) ^ 1U;
    if (stamp == s->control_stamp)
        return;
    s->control_stamp = stamp;
    for (uint32_t i = 0; i < s->n_gpu; i++)
        s->gpu[i].fault = (struct fake_fault){0};
    s->nodriver = false;
    FILE *f = stamp ? fopen(path, "re") : NULL;
    char line[256];
    while (f && fgets(line, sizeof line, f))
        line_read(s, line);
    if (f)
        fclose(f);
    plant_faults(s);
}

/* ---- time ---- */

/* Tick by tick, so that the activity integrals are those of the plant's own readings. */
static void advance(struct fake_site *s)
{
    int64_t due_us = fake_boot_us() - s->epoch_us + 2000000;
    while (due_us - tw_plant_now_us(s->plant) >= TW_PLANT_TICK_US) {
        tw_plant_advance(s->plant, TW_PLANT_TICK_US);
        for (uint32_t i = 0; i < s->n_gpu; i++) {
            struct tw_plant_reading r;
            tw_plant_read(s->plant, i, &r);
            struct fake_activity *a = &s->gpu[i].activity;
            double dt_s = 1e-6 * (double)TW_PLANT_TICK_US;
            a->time_s += dt_s;
            a->sm += r.sm_active_frac * dt_s;
            a->tensor += r.tensor_active_frac * dt_s;
            a->dram += r.dram_active_frac * dt_s;
        }
    }
}

void fake_site_enter(struct fake_site *s)
{
    if (pthread_mutex_lock(&s->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&s->lock); /* its holder was killed: a tick at most is counted twice */
    control_read(s);
    advance(s);
}

void fake_site_leave(struct fake_site *s)
{
    pthread_mutex_unlock(&s->lock);
}

bool fake_site_has_driver(const struct fake_site *s)
{
    return !s->nodriver && fake_boot_us() >= s->off_until_us;
}

void fake_site_dawdle(struct fake_site *s, const int64_t *field_us)
{
    int64_t began_us = fake_boot_us();
    for (;;) {
        fake_site_enter(s);
        int64_t left_us = began_us + *field_us - fake_boot_us();
        fake_site_leave(s);
        if (left_us <= 0)
            return;
        int64_t nap_us = left_us < SLICE_US ? left_us : SLICE_US;
        struct timespec nap = {.tv_sec = 0, .tv_nsec = (long)nap_us * 1000};
        (void)nanosleep(&nap, NULL);
    }
}
