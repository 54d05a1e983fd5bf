/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated site: one tick is phases of jobs, then clocks of GPUs, then the slowest, then sensors. */
#include "plant/plant.h"

#include "base/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define TICK_S 0.1
#define WINDOW 10 /* ticks in the reported mean: 1 s */

/* Activity of a GPU that waits for the slowest of its job, and of a serving one without requests. */
#define WAIT_ACT 0.45
#define SERVE_IDLE_ACT 0.25

/* Noise, at tw_plant_conf.noise = 1. Run-to-run: the published 0.4 % of power and 0.5 % of throughput. */
#define RUN_POWER_SD 0.004
#define RUN_RATE_SD 0.005
#define RUN_TAU_S 300.0
#define ACT_SD 0.012
#define ACT_TAU_S 1.5
#define SENSOR_SD 0.003
#define LOAD_SD 0.03
#define LOAD_TAU_S 60.0
#define ITER_SD 0.02

const char *const tw_plant_fault_name[TW_PLANT_FAULT_COUNT] = {
#define TW_PLANT_FAULT_NAME(id, name, help) name,
    TW_PLANT_FAULT_MAP(TW_PLANT_FAULT_NAME)
#undef TW_PLANT_FAULT_NAME
};

/* A mean-reverting random walk of standard deviation sd (Ornstein-Uhlenbeck, exact for any step). */
struct walk {
    double x, keep, kick;
};

/* What is averaged over the last second. */
struct gauge {
    float power_w, sm, tensor, dram, util;
};

struct gpu {
    struct tw_rng rng;
    uint32_t job;
    double idle_w, part; /* this piece of silicon */
    struct walk act;
    double requested_w, enforced_w, pending_w;
    int64_t pending_us; /* when pending_w comes into force; INT64_MAX: nothing pending */
    double limit_w;     /* what the limiter works to now: follows enforced_w */
    double step, rate;  /* clock, and speed there */
    double energy_j, temp_c;
    struct gauge window[WINDOW];
    uint32_t throttle_bits;
    enum tw_plant_fault fault;
    double fault_w;
    struct tw_plant_reading stuck; /* what it shows while it is stuck */
};

struct pause_state {
    double next_s, left_s;
};

struct job {
    struct tw_plant_job conf;
    struct tw_work_table table;
    struct tw_rng rng, rng_iter, rng_pause;
    uint32_t first_gpu;
    struct walk run_power, run_rate, load_walk;
    double load, load_phase;
    double work_left_s, sync_left_s; /* of the present iteration; a phase ends at the nearest tick, and what
                                        that was too early or too late stays in here for the next */
    bool in_sync;
    struct pause_state eval, checkpoint;
    double total;
};

struct tw_plant {
    const struct tw_board *board;
    double noise, limit_keep, thermal_keep;
    int64_t now_us, owed_us;
    uint64_t tick;
    uint32_t n_gpu, n_job;
    struct gpu *gpu;
    struct job *job;
};

static struct walk walk_make(double sd, double tau_s)
{
    double keep = exp(-TICK_S / tau_s);
    return (struct walk){.keep = keep, .kick = sd * sqrt(1.0 - keep * keep)};
}

/* Begin anywhere in the walk's own distribution. */
static struct walk walk_start(double sd, double tau_s, struct tw_rng *rng)
{
    struct walk w = walk_make(sd, tau_s);
    w.x = sd * tw_rng_normal(rng);
    return w;
}

static void walk_on(struct walk *w, struct tw_rng *rng)
{
    w->x = w->x * w->keep + w->kick * tw_rng_normal(rng);
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* ---- what a GPU draws at a clock, and which clock its limit allows ---- */

/* The part of full activity at which a serving GPU works when one of its clocks gives `rate` and `load` is
 * asked for. */
static double serving_act(double load, double rate)
{
    return SERVE_IDLE_ACT + (1.0 - SERVE_IDLE_ACT) * tw_smooth_min8(load, rate) / rate;
}

/* Dynamic power of a nominal part at full activity times act, at a step; load 0: not serving. */
static double dynamic_w(const struct tw_work_table *t, double step, double act, double load)
{
    double w = act * tw_work_at(t->dyn_w, step);
    return load > 0.0 ? w * serving_act(load, tw_work_at(t->rate, step)) : w;
}

static double clock_for(const struct tw_work_table *t, double budget_w, double act, double load)
{
    double step = tw_work_step(t, budget_w / act);
    if (!(load > 0.0) || step >= TW_CLOCK_TOP)
        return step;
    double low = step,
           high = TW_CLOCK_TOP; /* it rests between requests, so at least the busy clock is allowed */
    for (int i = 0; i < 14; i++) {
        double mid = 0.5 * (low + high);
        if (dynamic_w(t, mid, act, load) <= budget_w)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* ---- making one ---- */

size_t tw_plant_bytes(uint32_t n_gpu, uint32_t n_job)
{
    return TW_ARENA_ALIGN + tw_arena_need(1, sizeof(struct tw_plant)) +
           tw_arena_need(n_gpu, sizeof(struct gpu)) + tw_arena_need(n_job, sizeof(struct job));
}

static bool is_frac(double x)
{
    return x >= 0.0 && x <= 1.0;
}

static bool pause_ok(const struct tw_plant_pause *p)
{
    return p->every_s >= 0.0 && p->last_s >= 0.0 && p->act >= 0.0 && p->act <= 1.0 &&
           !(p->every_s > 0.0 && p->last_s * 2.0 > p->every_s);
}

static enum tw_err job_check(const struct tw_plant_job *j, struct tw_why *why)
{
    if (memchr(j->name, '\0', sizeof j->name) == NULL || memchr(j->unit, '\0', sizeof j->unit) == NULL)
        return tw_fail(why, TW_EINVAL, "job: its name or unit is not terminated");
    const char *bad = j->n_gpu == 0                                     ? "n_gpu must be at least 1"
                      : !(j->weight > 0.0 && isfinite(j->weight))       ? "weight must be above 0"
                      : !(j->rate > 0.0 && isfinite(j->rate))           ? "rate must be above 0"
                      : !(j->iter_s >= 0.0 && j->warm_s >= 0.0)         ? "iter_s and warm_s must be 0 or more"
                      : !(is_frac(j->sync_frac) && j->sync_frac <= 0.9) ? "sync_frac must lie in 0..0.9"
                      : !(j->sync_act > 0.0 || !(j->sync_frac > 0.0))   ? "sync_act must be above 0"
                      : !(j->sync_act <= 1.0)                           ? "sync_act must be at most 1"
                      : !pause_ok(&j->eval) || !pause_ok(&j->checkpoint)
                          ? "a pause is longer than half its period, or its activity is not in 0..1"
                      : !(j->load_mean >= 0.0 && j->load_swing >= 0.0)        ? "load must be 0 or more"
                      : !(j->load_mean > 0.0 ? j->load_period_s > 0.0 : true) ? "load_period_s must be above 0"
                                                                              : NULL;
    return bad ? tw_fail(why, TW_EINVAL, "job \"%s\": %s", j->name, bad) : TW_OK;
}

static void iteration_begin(struct job *j, double noise)
{
    double length = 1.0 + noise * ITER_SD * tw_rng_normal(&j->rng_iter);
    j->work_left_s += j->conf.iter_s * (1.0 - j->conf.sync_frac) * clamp(length, 0.8, 1.2);
}

/* At time 0 a job is found anywhere in its rhythm. */
static enum tw_err job_init(struct job *j, const struct tw_plant_conf *conf, uint32_t k, uint32_t first_gpu,
                            struct tw_why *why)
{
    j->conf = conf->job[k];
    j->first_gpu = first_gpu;
    enum tw_err err = tw_work_fill(conf->board, &j->conf.work, &j->table, why);
    if (err != TW_OK) {
        tw_why_prefix(why, "job \"%s\": ", j->conf.name);
        return err;
    }
    tw_rng_init(&j->rng, conf->seed, 0x10000U + 3U * k);
    tw_rng_init(&j->rng_iter, conf->seed, 0x10001U + 3U * k);
    tw_rng_init(&j->rng_pause, conf->seed, 0x10002U + 3U * k);
    j->run_power = walk_start(conf->noise * RUN_POWER_SD, RUN_TAU_S, &j->rng);
    j->run_rate = walk_start(conf->noise * RUN_RATE_SD, RUN_TAU_S, &j->rng);
    j->load_walk = walk_start(conf->noise * LOAD_SD, LOAD_TAU_S, &j->rng);
    j->load_phase = tw_rng_uniform(&j->rng, 0.0, 6.283185307179586);
    iteration_begin(j, conf->noise);
    j->work_left_s *= tw_rng_f64(&j->rng);
    j->eval.next_s = tw_rng_uniform(&j->rng_pause, 0.1, 1.0) * j->conf.eval.every_s;
    j->checkpoint.next_s = tw_rng_uniform(&j->rng_pause, 0.1, 1.0) * j->conf.checkpoint.every_s;
    return TW_OK;
}

static void gpu_init(struct gpu *g, const struct tw_plant_conf *conf, uint32_t i)
{
    const struct tw_board *b = conf->board;
    tw_rng_init(&g->rng, conf->seed, 1U + i);
    g->job = TW_PLANT_NONE;
    g->idle_w = b->idle_w + tw_rng_uniform(&g->rng, -1.0, 1.0) * b->idle_spread_w;
    g->part = 1.0 + b->part_spread_frac * clamp(tw_rng_normal(&g->rng), -2.5, 2.5);
    g->act = walk_start(conf->noise * ACT_SD, ACT_TAU_S, &g->rng);
    g->requested_w = g->enforced_w = g->limit_w = b->limit_default_w;
    g->pending_us = INT64_MAX;
    g->temp_c = b->ambient_c + b->celsius_per_w * 400.0;
    for (int k = 0; k < WINDOW; k++)
        g->window[k].power_w = (float)g->idle_w;
}

enum tw_err tw_plant_new(struct tw_arena *arena, const struct tw_plant_conf *conf, struct tw_plant **ret,
                         struct tw_why *why)
{
    if (conf->n_gpu == 0 || conf->n_gpu > TW_PLANT_GPU_MAX)
        return tw_fail(why, TW_EINVAL, "a plant has 1 to %d GPUs, not %u", TW_PLANT_GPU_MAX, conf->n_gpu);
    if (!(conf->noise >= 0.0 && conf->noise <= 10.0))
        return tw_fail(why, TW_EINVAL, "noise must lie in 0..10");
    uint64_t wanted = 0;
    for (uint32_t k = 0; k < conf->n_job; k++) {
        enum tw_err err = job_check(&conf->job[k], why);
        if (err != TW_OK)
            return err;
        wanted += conf->job[k].n_gpu;
    }
    if (wanted > conf->n_gpu)
        return tw_fail(why, TW_EINVAL, "the jobs want %llu GPUs, the site has %u", (unsigned long long)wanted,
                       conf->n_gpu);

    size_t mark = tw_arena_mark(arena);
    struct tw_plant *p = TW_ARENA_ARRAY(arena, struct tw_plant, 1);
    struct gpu *gpu = TW_ARENA_ARRAY(arena, struct gpu, conf->n_gpu);
    struct job *job = TW_ARENA_ARRAY(arena, struct job, conf->n_job);
    if (!p || !gpu || !job) {
        tw_arena_release(arena, mark);
        return tw_fail(why, TW_ENOMEM, "a plant of %u GPUs and %u jobs needs %zu bytes", conf->n_gpu,
                       conf->n_job, tw_plant_bytes(conf->n_gpu, conf->n_job));
    }
    *p = (struct tw_plant){.board = conf->board,
                           .noise = conf->noise,
                           .limit_keep = exp(-TICK_S / conf->board->settle_s),
                           .thermal_keep = exp(-TICK_S / conf->board->thermal_s),
                           .n_gpu = conf->n_gpu,
                           .n_job = conf->n_job,
                           .gpu = gpu,
                           .job = job};
    for (uint32_t i = 0; i < p->n_gpu; i++)
        gpu_init(&gpu[i], conf, i);
    uint32_t next = 0;
    for (uint32_t k = 0; k < p->n_job; k++) {
        enum tw_err err = job_init(&job[k], conf, k, next, why);
        if (err != TW_OK) {
            tw_arena_release(arena, mark);
            return err;
        }
        for (uint32_t i = 0; i < job[k].conf.n_gpu; i++)
            gpu[next++].job = k;
    }
    *ret = p;
    return TW_OK;
}

/* ---- a tick: phases ---- */

/* What a job asks of its GPUs during one tick. */
struct phase {
    double act;    /* 0: the GPUs are idle */
    double load;   /* of a serving job; else 0 */
    bool progress; /* does work count? */
};

/* Times of pauses do not depend on the caps: they come by the clock. */
static bool pause_step(struct pause_state *s, const struct tw_plant_pause *conf, double now_s,
                       struct tw_rng *rng)
{
    if (!(conf->every_s > 0.0))
        return false;
    if (now_s >= s->next_s) {
        s->left_s = conf->last_s * tw_rng_uniform(rng, 0.8, 1.2);
        s->next_s += conf->every_s * tw_rng_uniform(rng, 0.9, 1.1);
    }
    if (!(s->left_s > 0.0))
        return false;
    s->left_s -= TICK_S;
    return true;
}

static struct phase phase_step(struct job *j, double now_s, double noise)
{
    const struct tw_plant_job *c = &j->conf;
    walk_on(&j->run_power, &j->rng);
    walk_on(&j->run_rate, &j->rng);
    walk_on(&j->load_walk, &j->rng);
    if (now_s < c->start_s || (c->end_s > 0.0 && now_s >= c->end_s))
        return (struct phase){.act = 0.0};
    if (now_s < c->start_s + c->warm_s)
        return (struct phase){.act = 0.3};
    bool evaluates = pause_step(&j->eval, &c->eval, now_s, &j->rng_pause);
    bool saves = pause_step(&j->checkpoint, &c->checkpoint, now_s, &j->rng_pause);
    if (saves || evaluates)
        return (struct phase){.act = saves ? c->checkpoint.act : c->eval.act};
    if (c->load_mean > 0.0) {
        double slow = c->load_swing * sin(j->load_phase + 6.283185307179586 * now_s / c->load_period_s);
        j->load = clamp(c->load_mean + slow + j->load_walk.x, 0.05, 1.3);
        return (struct phase){.act = 1.0, .load = j->load, .progress = true};
    }
    if (!j->in_sync)
        return (struct phase){.act = 1.0, .progress = true};
    j->sync_left_s -= TICK_S;
    if (j->sync_left_s <= 0.5 * TICK_S) { /* its last tick */
        iteration_begin(j, noise);
        j->in_sync = false;
    }
    return (struct phase){.act = c->sync_act};
}

/* Work done in a tick at a speed; a finished iteration turns to its synchronisation. */
static void job_progress(struct job *j, double rate, double noise)
{
    j->total += j->conf.rate * j->conf.n_gpu * rate * (1.0 + j->run_rate.x) * TICK_S;
    if (!(j->conf.iter_s > 0.0) || j->conf.load_mean > 0.0)
        return;
    j->work_left_s -= rate * TICK_S;
    if (j->work_left_s > 0.5 * rate * TICK_S)
        return;
    j->sync_left_s += j->conf.iter_s * j->conf.sync_frac;
    j->in_sync = j->sync_left_s > 0.5 * TICK_S;
    if (!j->in_sync)
        iteration_begin(j, noise);
}

/* ---- a tick: GPUs ---- */

static void limit_step(const struct tw_plant *p, struct gpu *g)
{
    if (g->pending_us <= p->now_us) {
        g->pending_us = INT64_MAX;
        if (g->fault != TW_PLANT_FAULT_IGNORE)
            g->enforced_w =
                g->fault == TW_PLANT_FAULT_CLAMP && g->pending_w < g->fault_w ? g->fault_w : g->pending_w;
    }
    g->limit_w = g->enforced_w + (g->limit_w - g->enforced_w) * p->limit_keep;
}

/* Power, sensors and counters of a GPU that had `dyn_w` to draw above idle. */
static void sensors_step(const struct tw_plant *p, struct gpu *g, double power_w, struct gauge gauge)
{
    gauge.power_w = (float)(power_w * (1.0 + p->noise * SENSOR_SD * tw_rng_normal(&g->rng)));
    g->window[p->tick % WINDOW] = gauge;
    g->energy_j += power_w * TICK_S;
    double rest_c = p->board->ambient_c + p->board->celsius_per_w * power_w;
    g->temp_c = rest_c + (g->temp_c - rest_c) * p->thermal_keep;
}

static void gpu_idle(const struct tw_plant *p, struct gpu *g)
{
    g->step = 9.0; /* 345 MHz */
    g->rate = 0.0;
    g->throttle_bits = TW_THROTTLE_IDLE;
    sensors_step(p, g, g->idle_w, (struct gauge){0});
}

static void gpu_clock(const struct tw_plant *p, struct gpu *g, const struct job *j, const struct phase *ph)
{
    double act = ph->act * (1.0 + g->act.x) * (1.0 + j->run_power.x);
    double budget_w = (g->limit_w * p->board->hold_frac - g->idle_w) / g->part;
    g->step = clock_for(&j->table, budget_w, act, ph->load);
    double rate = tw_work_at(j->table.rate, g->step);
    g->rate = ph->load > 0.0 ? tw_smooth_min8(ph->load, rate) : rate;
    g->throttle_bits = g->step < TW_CLOCK_TOP ? TW_THROTTLE_POWER_CAP : 0U;
}

/* share: of the tick in which this GPU works; the rest it waits for the slowest of its job. */
static void gpu_draw(const struct tw_plant *p, struct gpu *g, const struct job *j, const struct phase *ph,
                     double share)
{
    double act = ph->act * (1.0 + g->act.x) * (1.0 + j->run_power.x) * (share + (1.0 - share) * WAIT_ACT);
    double rate = tw_work_at(j->table.rate, g->step);
    double power_w = g->idle_w + g->part * dynamic_w(&j->table, g->step, act, ph->load);
    double at_work = ph->act * share * (ph->load > 0.0 ? tw_smooth_min8(ph->load, rate) / rate : 1.0);
    const struct tw_plant_job *c = &j->conf;
    struct gauge gauge = {.sm = (float)clamp(c->sm_active_frac * (0.25 + 0.75 * at_work), 0.0, 1.0),
                          .tensor =
                              (float)(c->tensor_active_frac * at_work * tw_work_at(j->table.busy, g->step)),
                          .dram = (float)(c->dram_active_frac * at_work * tw_work_at(j->table.mem, g->step)),
                          .util = (float)(ph->load > 0.0   ? at_work
                                          : ph->act < 0.35 ? 0.6
                                                           : 1.0)};
    sensors_step(p, g, power_w, gauge);
}

static void job_tick(struct tw_plant *p, struct job *j)
{
    struct gpu *gpu = p->gpu + j->first_gpu;
    uint32_t n = j->conf.n_gpu;
    struct phase ph = phase_step(j, (double)p->now_us * 1e-6, p->noise);
    double slowest = INFINITY, sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        walk_on(&gpu[i].act, &gpu[i].rng);
        limit_step(p, &gpu[i]);
        if (!(ph.act > 0.0)) {
            gpu_idle(p, &gpu[i]);
            continue;
        }
        gpu_clock(p, &gpu[i], j, &ph);
        slowest = fmin(slowest, gpu[i].rate);
        sum += gpu[i].rate;
    }
    if (!(ph.act > 0.0))
        return;
    bool together = j->conf.lockstep && ph.progress;
    for (uint32_t i = 0; i < n; i++)
        gpu_draw(p, &gpu[i], j, &ph, together ? slowest / gpu[i].rate : 1.0);
    if (ph.progress)
        job_progress(j, together ? slowest : sum / n, p->noise);
}

static void tick(struct tw_plant *p)
{
    uint32_t used = 0;
    for (uint32_t k = 0; k < p->n_job; k++) {
        job_tick(p, &p->job[k]);
        used += p->job[k].conf.n_gpu;
    }
    for (uint32_t i = used; i < p->n_gpu; i++) {
        limit_step(p, &p->gpu[i]);
        gpu_idle(p, &p->gpu[i]);
    }
    p->now_us += TW_PLANT_TICK_US;
    p->tick++;
}

void tw_plant_advance(struct tw_plant *p, int64_t dt_us)
{
    assert(dt_us >= 0);
    p->owed_us += dt_us;
    for (; p->owed_us >= TW_PLANT_TICK_US; p->owed_us -= TW_PLANT_TICK_US)
        tick(p);
}

/* ---- looking at it ---- */

int64_t tw_plant_now_us(const struct tw_plant *p)
{
    return p->now_us;
}

uint32_t tw_plant_gpus(const struct tw_plant *p)
{
    return p->n_gpu;
}

uint32_t tw_plant_jobs(const struct tw_plant *p)
{
    return p->n_job;
}

uint32_t tw_plant_job_of(const struct tw_plant *p, uint32_t gpu)
{
    assert(gpu < p->n_gpu);
    return p->gpu[gpu].job;
}

const struct tw_plant_job *tw_plant_job_conf(const struct tw_plant *p, uint32_t job)
{
    assert(job < p->n_job);
    return &p->job[job].conf;
}

double tw_plant_total(const struct tw_plant *p, uint32_t job)
{
    assert(job < p->n_job);
    return p->job[job].total;
}

/* A driver reports whole milliwatts, percent, megahertz. */
static double to_step(double x, double step)
{
    return step * round(x / step);
}

static void read_now(const struct tw_plant *p, const struct gpu *g, struct tw_plant_reading *ret)
{
    /* Before a second has passed the mean is of what there is. */
    unsigned n = p->tick == 0 ? 1 : p->tick < WINDOW ? (unsigned)p->tick : WINDOW;
    double power_w = 0.0, sm = 0.0, tensor = 0.0, dram = 0.0, util = 0.0;
    for (unsigned k = 0; k < n; k++) {
        const struct gauge *w = &g->window[k];
        power_w += (double)w->power_w;
        sm += (double)w->sm;
        tensor += (double)w->tensor;
        dram += (double)w->dram;
        util += (double)w->util;
    }
    *ret = (struct tw_plant_reading){
        .time_us = p->now_us,
        .fresh = true,
        .power_w = to_step(power_w / n, 1e-3),
        .power_instant_w = to_step((double)g->window[(p->tick + WINDOW - 1) % WINDOW].power_w, 1e-3),
        .energy_j = to_step(g->energy_j, 1e-3),
        .cap_w = g->requested_w,
        .cap_enforced_w = g->enforced_w,
        .sm_active_frac = to_step(sm / n, 1e-4),
        .tensor_active_frac = to_step(tensor / n, 1e-4),
        .dram_active_frac = to_step(dram / n, 1e-4),
        .util_frac = to_step(util / n, 0.01),
        /* NVML's measure of memory activity is coarser than the true one and reads higher. */
        .mem_copy_util_frac = to_step(clamp(1.3 * dram / n, 0.0, 1.0), 0.01),
        .mem_used_bytes = g->job == TW_PLANT_NONE ? 0.6e9 : p->job[g->job].conf.mem_used_bytes,
        .sm_clock_hz = to_step(tw_board_clock_hz(p->board, g->step), 1e6),
        .mem_clock_hz = p->board->mem_clock_hz,
        .temp_c = to_step(g->temp_c, 1.0),
        .throttle_bits = g->throttle_bits,
    };
}

void tw_plant_read(const struct tw_plant *p, uint32_t gpu, struct tw_plant_reading *ret)
{
    assert(gpu < p->n_gpu);
    const struct gpu *g = &p->gpu[gpu];
    if (g->fault == TW_PLANT_FAULT_STUCK)
        *ret = g->stuck;
    else
        read_now(p, g, ret);
}

enum tw_err tw_plant_cap(struct tw_plant *p, uint32_t gpu, double limit_w, struct tw_why *why)
{
    assert(gpu < p->n_gpu);
    const struct tw_board *b = p->board;
    if (!(limit_w >= b->limit_min_w && limit_w <= b->limit_max_w))
        return tw_fail(why, TW_ERANGE, "a limit of %g W is outside %g to %g W", limit_w, b->limit_min_w,
                       b->limit_max_w);
    struct gpu *g = &p->gpu[gpu];
    g->requested_w = g->pending_w = limit_w;
    g->pending_us = p->now_us + (int64_t)(b->write_delay_s * 1e6);
    return TW_OK;
}

void tw_plant_fault(struct tw_plant *p, uint32_t gpu, enum tw_plant_fault fault, double arg_w)
{
    assert(gpu < p->n_gpu);
    struct gpu *g = &p->gpu[gpu];
    if (fault == TW_PLANT_FAULT_STUCK && g->fault != TW_PLANT_FAULT_STUCK) {
        read_now(p, g, &g->stuck);
        g->stuck.fresh = false;
    }
    g->fault = fault;
    g->fault_w = arg_w;
}

/* ---- the truth, without noise ---- */

static double truth_clock(const struct tw_plant *p, const struct gpu *g, const struct job *j, double cap_w,
                          double act, double load)
{
    return clock_for(&j->table, (cap_w * p->board->hold_frac - g->idle_w) / g->part, act, load);
}

void tw_plant_truth(const struct tw_plant *p, uint32_t job, double cap_w, double *ret_power_w,
                    double *ret_throughput)
{
    assert(job < p->n_job);
    const struct job *j = &p->job[job];
    const struct tw_plant_job *c = &j->conf;
    const struct gpu *gpu = p->gpu + j->first_gpu;
    double load = c->load_mean > 0.0 ? (j->load > 0.0 ? j->load : c->load_mean) : 0.0;
    double slowest = INFINITY, rate_sum = 0.0, work_w = 0.0, sync_w = 0.0;
    for (uint32_t i = 0; i < c->n_gpu; i++) {
        double rate = tw_work_at(j->table.rate, truth_clock(p, &gpu[i], j, cap_w, 1.0, load));
        slowest = fmin(slowest, rate);
        rate_sum += load > 0.0 ? tw_smooth_min8(load, rate) : rate;
    }
    for (uint32_t i = 0; i < c->n_gpu; i++) {
        double step = truth_clock(p, &gpu[i], j, cap_w, 1.0, load);
        double share = c->lockstep ? slowest / tw_work_at(j->table.rate, step) : 1.0;
        work_w +=
            gpu[i].idle_w + gpu[i].part * dynamic_w(&j->table, step, share + (1.0 - share) * WAIT_ACT, load);
        if (c->sync_frac > 0.0)
            sync_w += gpu[i].idle_w +
                      gpu[i].part * dynamic_w(&j->table, truth_clock(p, &gpu[i], j, cap_w, c->sync_act, 0.0),
                                              c->sync_act, 0.0);
    }
    double rate = c->lockstep ? slowest : rate_sum / c->n_gpu;
    double work_s = 1.0, sync_s = 0.0; /* of an iteration; without a rhythm all is work */
    if (c->iter_s > 0.0 && !(c->load_mean > 0.0)) {
        work_s = c->iter_s * (1.0 - c->sync_frac) / rate;
        sync_s = c->iter_s * c->sync_frac;
    }
    *ret_power_w = (work_w * work_s + sync_w * sync_s) / (work_s + sync_s);
    *ret_throughput = c->rate * c->n_gpu * rate * work_s / (work_s + sync_s);
}
