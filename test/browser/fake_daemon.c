/* SPDX-License-Identifier: Apache-2.0 */
/* A test fixture: the HTTP API over made-up values, for what a real site seldom shows: 512 GPUs, everything
 * unknown, a loop that stops turning, an API without events. Prints "listening on PORT" and runs until it is
 * told to end. SIGUSR1 stops and starts the turning. */
#include "api/api.h"
#include "sys/clock.h"

#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_GPU = 1024, MAX_JOB = 32, MAX_EVENT = 16 };

static struct {
    size_t n_gpu, n_job;
    double speed, hz;
    bool nan, no_events, real, stale, odd;
} opt = {.n_gpu = 64, .n_job = 8, .speed = 1, .hz = 1};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tw_api_event events[MAX_EVENT];
static size_t n_events;
static double now_s = 1000;
static volatile sig_atomic_t ending, stopped;

static const char *const job_name[] = {"llama-70b-pretrain", "mixtral-finetune", "qwen3-32b-serve",
                                       "bert-batch",         "sdxl-train",       "gpt-oss-finetune",
                                       "embeddings-nightly", "whisper-batch"};
enum { N_NAME = sizeof job_name / sizeof *job_name };
static const double job_k[] = {0.9, 2.6, 4.2, 1.6, 2.0, 5.5, 3.1, 7.0};
static const double job_p0_w[] = {660, 590, 420, 510, 630, 480, 350, 300};

static enum tw_err event_add(void *ctx, const struct tw_api_ask *ask, uint32_t *ret_id, struct tw_why *why)
{
    (void)ctx;
    enum tw_err err = TW_OK;
    pthread_mutex_lock(&lock);
    struct tw_api_event *last = n_events ? &events[n_events - 1] : NULL;
    if (last && last->state < TW_EVENT_DONE)
        err = tw_fail(why, TW_EINFEASIBLE, "event %u is not over yet; cancel it first", last->id);
    else if (n_events == MAX_EVENT)
        err = tw_fail(why, TW_ELIMIT, "too many events");
    else {
        events[n_events] = (struct tw_api_event){.id = (uint32_t)n_events + 1,
                                                 .state = TW_EVENT_WAITING,
                                                 .cut_frac = ask->cut_frac,
                                                 .start_s = now_s + ask->in_s,
                                                 .end_s = now_s + ask->in_s + ask->for_s,
                                                 .baseline_w = (double)NAN,
                                                 .target_w = (double)NAN};
        *ret_id = events[n_events++].id;
    }
    pthread_mutex_unlock(&lock);
    return err;
}

static enum tw_err event_list(void *ctx, struct tw_api_event *ret, size_t room, size_t *ret_n,
                              struct tw_why *why)
{
    (void)ctx;
    (void)why;
    pthread_mutex_lock(&lock);
    *ret_n = n_events < room ? n_events : room;
    memcpy(ret, events, *ret_n * sizeof *ret);
    pthread_mutex_unlock(&lock);
    return TW_OK;
}

static enum tw_err event_cancel(void *ctx, uint32_t id, struct tw_why *why)
{
    (void)ctx;
    enum tw_err err = TW_OK;
    pthread_mutex_lock(&lock);
    if (id == 0 || id > n_events)
        err = tw_fail(why, TW_ENOENT, "there is no event %u", id);
    else if (events[id - 1].state >= TW_EVENT_RELEASE)
        err = tw_fail(why, TW_EINVAL, "event %u is over", id);
    else {
        events[id - 1].cancelled = true;
        events[id - 1].end_s = now_s;
    }
    pthread_mutex_unlock(&lock);
    return err;
}

static double noise(size_t a, double b)
{
    double x = sin((double)a * 12.9898 + b * 78.233) * 43758.5453;
    return 2 * (x - floor(x)) - 1;
}

/* How much of the cut is in force, 0..1, and the state that goes with it. */
static double depth(struct tw_api_event *e)
{
    const double ramp_s = 20, back_s = 30;
    double in = now_s - e->start_s, after = now_s - e->end_s;
    e->state = in < 0           ? TW_EVENT_WAITING
               : after > back_s ? TW_EVENT_DONE
               : after > 0      ? TW_EVENT_RELEASE
               : in < ramp_s    ? TW_EVENT_RAMP
                                : TW_EVENT_HOLD;
    return in < 0 || after > back_s ? 0 : after > 0 ? 1 - after / back_s : fmin(1, in / ramp_s);
}

static double curve(double k, double x)
{
    const double x0 = 0.15;
    return (1 - exp(-k * (x - x0))) / (1 - exp(-k * (1 - x0)));
}

static double weight_of(size_t j)
{
    return 0.6 + 0.1 * (double)(j % N_NAME);
}

static void fill(struct tw_snapshot *s)
{
    size_t per_job = s->n_job ? s->n_gpu / s->n_job : 0;
    struct tw_api_event *e = n_events ? &events[n_events - 1] : NULL;
    double cut = e ? depth(e) * e->cut_frac : 0, unknown = (double)NAN;
    s->power_w = s->cap_sum_w = 0;
    s->stale_gpus = opt.stale ? 2 : 0;
    double base_w = 0, plain_w = 0, weighted_w = 0;
    for (size_t j = 0; j < s->n_job; j++) { /* so that the jobs' cuts add up to the site's */
        plain_w += job_p0_w[j % N_NAME];
        weighted_w += job_p0_w[j % N_NAME] * weight_of(j);
    }
    for (size_t j = 0; j < s->n_job; j++) {
        struct tw_snap_job *job = &s->job[j];
        double k = job_k[j % N_NAME], p0 = job_p0_w[j % N_NAME];
        double share = 1 - 0.97 * (1 - cut * weight_of(j) * plain_w / weighted_w);
        snprintf(job->name, sizeof job->name, j < N_NAME ? "%s" : "%s-%zu", job_name[j % N_NAME], j);
        if (opt.odd && j == 1)
            snprintf(job->name, sizeof job->name, "%060d", 0);
        if (opt.odd && j == 0)
            snprintf(job->name, sizeof job->name, "a\"b\\c\nd\xff\xc3\xa9<b>");
        snprintf(job->unit, sizeof job->unit, j % 3 == 0 ? "samples/s" : "tokens/s");
        job->n_gpu = (uint32_t)per_job;
        job->p0_w = p0 * (double)per_job;
        job->t0 = 1000 * (double)(j + 1) * (double)per_job;
        job->power_w = job->cap_w = 0;
        for (size_t i = j * per_job; i < (j + 1) * per_job; i++) {
            struct tw_snap_gpu *g = &s->gpu[i];
            double swing = 0.05 * sin(now_s / (9 + (double)j) + (double)j) + 0.012 * noise(i, now_s);
            double cap = cut > 0 ? p0 * (1 - share) : 700;
            double p = fmin(p0 * (0.97 + swing), cap * (0.99 + 0.004 * noise(i, now_s)));
            snprintf(g->uuid, sizeof g->uuid, "GPU-%08zx-5a1e-4d2b-9c00-%012zx", i * 2654435761u % 4294967296u,
                     i);
            snprintf(g->node, sizeof g->node, "rack%zu/n%02zu", i / 32 + 1, i / 8 % 4 + 1);
            g->job = (uint32_t)j;
            g->power_w = (float)p;
            g->cap_w = (float)cap;
            g->enforced_w = (float)cap;
            g->mean30 = (struct tw_snap_band){(float)(p * 0.96), (float)(p * 1.001), (float)(p * 1.04)};
            g->mean60 = (struct tw_snap_band){(float)(p * 0.94), (float)(p * 1.002), (float)(p * 1.06)};
            g->reason = cut <= 0                        ? TW_REASON_UNCAPPED
                        : e->state == TW_EVENT_RAMP     ? TW_REASON_RAMP
                        : e->state == TW_EVENT_RELEASE  ? TW_REASON_RELEASE
                        : j % N_NAME == 7               ? TW_REASON_LENT
                        : j % N_NAME == 4 && i % 8 == 0 ? TW_REASON_DEVICE_FLOOR
                                                        : TW_REASON_EVENT_SHARE;
            if (opt.stale && i < 2) {
                g->power_w = (float)unknown;
                g->reason = TW_REASON_BLIND;
            } else {
                job->power_w += p;
            }
            job->cap_w += cap;
            base_w += p0 * 0.97;
        }
        double x = job->p0_w > 0 ? job->power_w / job->p0_w : unknown;
        job->throughput = job->t0 * curve(k, x) * (1 + 0.01 * noise(j, now_s));
        job->pfi = 0.3 / (1 - curve(k, 0.7));
        job->pfi_low = job->pfi * 0.9;
        job->pfi_high = job->pfi * 1.12;
        job->curve_k = k;
        job->curve_x0 = 0.15;
        job->curve_rmse = 0.008 + 0.001 * (double)j;
        job->n_points = (uint32_t)(3 + j % 6);
        for (uint32_t p = 0; p < job->n_points; p++) {
            double at = 1 - 0.09 * p;
            job->point[p].x = (float)at;
            job->point[p].t = (float)(curve(k, at) + 0.012 * noise(j, p));
        }
        job->lost_units = cut > 0 ? (1 - curve(k, x)) * job->t0 * (now_s - e->start_s) : 0;
        job->reason = per_job ? s->gpu[j * per_job].reason : TW_REASON_UNCAPPED;
        s->power_w += job->power_w;
        s->cap_sum_w += job->cap_w;
    }
    s->budget_w = cut > 0 && e->state != TW_EVENT_RELEASE ? base_w * (1 - cut) : unknown;
    for (int i = 0; i < TW_SNAP_LEADS; i++) {
        double spread = 0.01 + 0.002 * i, mid = s->power_w * (1 + 0.004 * sin(now_s / 20 + i));
        s->path[i] =
            (struct tw_snap_band){(float)(mid * (1 - spread)), (float)mid, (float)(mid * (1 + spread))};
    }
    s->skill_mean30 = 0.43;
    s->skill_mean60 = 0.39;
    s->gap_recovered = e && e->state != TW_EVENT_WAITING ? 0.71 : unknown;
    s->tokens_saved = e && e->state != TW_EVENT_WAITING ? 1.84e6 : unknown;
    s->event = (struct tw_snap_event){.state = TW_EVENT_NONE};
    if (e && e->state != TW_EVENT_DONE) {
        e->baseline_w = base_w;
        e->target_w = base_w * (1 - e->cut_frac);
        s->event =
            (struct tw_snap_event){e->state, e->cut_frac, e->start_s, e->end_s, e->baseline_w, e->target_w,
                                   0.984,    0.997,       2.1e6,      3.9e6,    1.4e6};
    }
}

static void forget(struct tw_snapshot *s)
{
    float f = NAN;
    for (size_t i = 0; i < s->n_gpu; i++) {
        struct tw_snap_gpu *g = &s->gpu[i];
        g->power_w = g->cap_w = g->enforced_w = f;
        g->mean30 = g->mean60 = (struct tw_snap_band){f, f, f};
        g->reason = TW_REASON_BLIND;
        g->job = i % 2 ? UINT32_MAX : g->job;
    }
    for (size_t j = 0; j < s->n_job; j++) {
        struct tw_snap_job *job = &s->job[j];
        job->power_w = job->cap_w = job->p0_w = job->t0 = job->throughput = job->lost_units = (double)NAN;
        job->pfi = job->pfi_low = job->pfi_high = job->curve_k = job->curve_x0 = job->curve_rmse = (double)NAN;
        job->n_points = 0;
    }
    s->power_w = s->cap_sum_w = s->budget_w = s->skill_mean30 = s->skill_mean60 = s->gap_recovered =
        s->tokens_saved = (double)NAN;
    for (int i = 0; i < TW_SNAP_LEADS; i++)
        s->path[i] = (struct tw_snap_band){f, f, f};
    s->stale_gpus = (unsigned)s->n_gpu;
}

static void on_signal(int sig)
{
    if (sig == SIGUSR1)
        stopped = !stopped;
    else
        ending = 1;
}

static double number(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (*end || !(v >= 0)) {
        fprintf(stderr, "fake_daemon: \"%s\" is not a number\n", text);
        exit(2);
    }
    return v;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"listen", 1, NULL, 'l'}, {"gpus", 1, NULL, 'g'},      {"jobs", 1, NULL, 'j'}, {"speed", 1, NULL, 's'},
        {"hz", 1, NULL, 'z'},     {"nan", 0, NULL, 'n'},       {"real", 0, NULL, 'r'}, {"stale", 0, NULL, 't'},
        {"past", 1, NULL, 'p'},   {"no-events", 0, NULL, 'e'}, {"odd", 0, NULL, 'o'},  {0}};
    const char *listen = "127.0.0.1:0";
    double past = 0;
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'l':
            listen = optarg;
            break;
        case 'g':
            opt.n_gpu = (size_t)fmin(number(optarg), MAX_GPU);
            break;
        case 'j':
            opt.n_job = (size_t)fmin(number(optarg), MAX_JOB);
            break;
        case 's':
            opt.speed = number(optarg);
            break;
        case 'z':
            opt.hz = number(optarg);
            break;
        case 'p':
            past = number(optarg);
            break;
        case 'n':
            opt.nan = true;
            break;
        case 'r':
            opt.real = true;
            break;
        case 't':
            opt.stale = true;
            break;
        case 'o':
            opt.odd = true;
            break;
        case 'e':
            opt.no_events = true;
            break;
        default:
            return 2;
        }
    }
    static struct tw_snap_gpu gpu[MAX_GPU];
    static struct tw_snap_job job[MAX_JOB];
    struct tw_snapshot snap = {.simulated = !opt.real,
                               .speed = opt.speed,
                               .n_gpu = opt.n_gpu,
                               .n_job = opt.n_job,
                               .gpu = gpu,
                               .job = job};
    struct tw_api_hooks hooks = {NULL, event_add, event_list, event_cancel};
    if (opt.no_events)
        hooks = (struct tw_api_hooks){0};
    struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGUSR1, &act, NULL);
    struct tw_api *api;
    struct tw_why why = {""};
    if (tw_api_open(listen, &hooks, &api, &why) != TW_OK) {
        fprintf(stderr, "fake_daemon: %s\n", why.text);
        return 2;
    }
    printf("listening on %u\n", tw_api_port(api));
    fflush(stdout);
    while (!ending) {
        if (!stopped) {
            pthread_mutex_lock(&lock);
            snap.seq++;
            now_s += opt.speed / opt.hz;
            snap.now_s = now_s;
            snap.wall_us = tw_wall_us();
            fill(&snap);
            if (opt.nan)
                forget(&snap);
            pthread_mutex_unlock(&lock);
            if (tw_api_publish(api, &snap) != TW_OK)
                fprintf(stderr, "fake_daemon: publish failed\n");
        }
        if (past > 0)
            past -= 1; /* a history that is there at once */
        else
            usleep((useconds_t)(1e6 / opt.hz));
    }
    tw_api_close(api);
    return 0;
}
