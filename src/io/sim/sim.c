/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated site behind port/source.h and port/cap.h. */
#include "io/sim/sim.h"

#include "base/num.h"
#include "plant/plant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS_PER_NODE 8U
#define NODES_PER_RACK 4U
#define SPEC_MAX 4096

struct tw_source {
    void *mem; /* the plant's arena */
    struct tw_plant *plant;
    uint32_t n_gpu, n_job;
    struct tw_gpu_info *gpu; /* [n_gpu] */
    struct tw_job_info *job; /* [n_job] */
    double *last_total;      /* [n_job] at the last reading */
    int64_t last_us;         /* of the last reading */
    double base_w, owed_us;  /* owed: the part of a microsecond that advance() was given and could not use */
};

struct tw_cap {
    struct tw_source *sim;
};

static void uuid_of(uint32_t gpu, char *buf, size_t size)
{
    (void)snprintf(buf, size, "GPU-51a70000-0000-4000-8000-%012x", gpu);
}

/* n_gpu when there is none of that name. The last group of a UUID says which it can only be. */
static uint32_t gpu_by_uuid(const struct tw_source *sim, const char *uuid)
{
    const char *last = strrchr(uuid, '-');
    unsigned long gpu = last ? strtoul(last + 1, NULL, 16) : sim->n_gpu;
    return gpu < sim->n_gpu && strcmp(sim->gpu[gpu].uuid, uuid) == 0 ? (uint32_t)gpu : sim->n_gpu;
}

/* ---- what it is configured with ---- */

struct sim_conf {
    int64_t seed, gpus, jobs;
    double base_w, noise;
};

static enum tw_err take_i64(const char *value, int64_t max, int64_t *ret, struct tw_why *why)
{
    return tw_num_i64(value, 0, max, ret, why);
}

/* One "key=value" into conf. The faults are looked at later, when there are GPUs: see fault_word. */
static enum tw_err conf_word(struct sim_conf *conf, const char *key, const char *value, struct tw_why *why)
{
    if (strcmp(key, "seed") == 0)
        return take_i64(value, INT64_MAX, &conf->seed, why);
    if (strcmp(key, "gpus") == 0)
        return take_i64(value, TW_PLANT_GPU_MAX, &conf->gpus, why);
    if (strcmp(key, "jobs") == 0)
        return take_i64(value, TW_PLANT_GPU_MAX, &conf->jobs, why);
    if (strcmp(key, "base_w") == 0)
        return tw_num_power(value, &conf->base_w, why);
    if (strcmp(key, "noise") == 0)
        return tw_num_f64(value, &conf->noise, why);
    for (int f = TW_PLANT_FAULT_NONE + 1; f < TW_PLANT_FAULT_COUNT; f++)
        if (strcmp(key, tw_plant_fault_name[f]) == 0)
            return TW_OK;
    return tw_fail(
        why, TW_EINVAL,
        "the simulator does not know \"%.40s\"; it takes seed, gpus, jobs, base_w, noise, stuck, ignore, clamp",
        key);
}

static enum tw_err fault_word(struct tw_source *sim, const char *key, char *value, struct tw_why *why)
{
    int fault = TW_PLANT_FAULT_NONE + 1;
    while (fault < TW_PLANT_FAULT_COUNT && strcmp(key, tw_plant_fault_name[fault]) != 0)
        fault++;
    if (fault == TW_PLANT_FAULT_COUNT)
        return TW_OK;
    double arg_w = 0.0;
    if (fault == TW_PLANT_FAULT_CLAMP) {
        char *at = strchr(value, '@');
        if (!at)
            return tw_fail(why, TW_EINVAL, "clamp=%.60s: write clamp=UUID@WATTS", value);
        *at = '\0';
        enum tw_err err = tw_num_power(at + 1, &arg_w, why);
        if (err != TW_OK) {
            tw_why_prefix(why, "clamp: ");
            return err;
        }
    }
    uint32_t gpu = gpu_by_uuid(sim, value);
    if (gpu == sim->n_gpu)
        return tw_fail(why, TW_EINVAL, "%s: no simulated GPU has the UUID \"%.60s\"; the first is %s", key,
                       value, sim->gpu[0].uuid);
    tw_plant_fault(sim->plant, gpu, (enum tw_plant_fault)fault, arg_w);
    return TW_OK;
}

/* Hand each word of the spec to conf (sim NULL) or, for faults, to the sim. */
static enum tw_err spec_words(const char *spec, struct sim_conf *conf, struct tw_source *sim,
                              struct tw_why *why)
{
    char text[SPEC_MAX];
    size_t n = strlen(spec);
    if (n >= sizeof text)
        return tw_fail(why, TW_EINVAL, "the simulator's configuration is longer than %d characters",
                       SPEC_MAX - 1);
    memcpy(text, spec, n + 1);
    char *save = NULL;
    for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        char *value = strchr(word, '=');
        if (!value)
            return tw_fail(why, TW_EINVAL, "the simulator wants word=value, not \"%.40s\"", word);
        *value++ = '\0';
        enum tw_err err = sim ? fault_word(sim, word, value, why) : conf_word(conf, word, value, why);
        if (err == TW_EPARSE || err == TW_ERANGE) {
            tw_why_prefix(why, "%.40s: ", word);
            return TW_EINVAL;
        }
        if (err != TW_OK)
            return err;
    }
    return TW_OK;
}

/* ---- opening ---- */

static void describe_gpus(struct tw_source *sim)
{
    const struct tw_board *board = &tw_board_h100;
    for (uint32_t i = 0; i < sim->n_gpu; i++) {
        struct tw_gpu_info *g = &sim->gpu[i];
        uint32_t node = i / GPUS_PER_NODE, job = tw_plant_job_of(sim->plant, i);
        uuid_of(i, g->uuid, sizeof g->uuid);
        (void)snprintf(g->pci, sizeof g->pci, "00000000:%02X:00.0", 0x18U + 0x10U * (i % GPUS_PER_NODE));
        (void)snprintf(g->model, sizeof g->model, "%s", board->model);
        (void)snprintf(g->node, sizeof g->node, "rack%u/n%02u", node / NODES_PER_RACK + 1, node + 1);
        g->job = job == TW_PLANT_NONE ? TW_NO_JOB : job;
        g->limit_min_w = board->limit_min_w;
        g->limit_max_w = board->limit_max_w;
        g->limit_default_w = board->limit_default_w;
    }
}

static void describe_jobs(struct tw_source *sim)
{
    for (uint32_t k = 0; k < sim->n_job; k++) {
        const struct tw_plant_job *c = tw_plant_job_conf(sim->plant, k);
        struct tw_job_info *j = &sim->job[k];
        (void)snprintf(j->name, sizeof j->name, "%s", c->name);
        (void)snprintf(j->unit, sizeof j->unit, "%s", c->unit);
        j->lockstep = c->lockstep;
        j->weight = c->weight;
    }
}

static enum tw_err build(struct tw_source *sim, const struct sim_conf *conf, struct tw_why *why)
{
    sim->n_gpu = (uint32_t)conf->gpus;
    sim->n_job = (uint32_t)conf->jobs;
    sim->base_w = conf->base_w;
    size_t bytes = tw_plant_bytes(sim->n_gpu, sim->n_job);
    struct tw_plant_job *jobs = calloc(sim->n_job + 1U, sizeof *jobs);
    sim->mem = malloc(bytes);
    sim->gpu = calloc(sim->n_gpu + 1U, sizeof *sim->gpu);
    sim->job = calloc(sim->n_job + 1U, sizeof *sim->job);
    sim->last_total = calloc(sim->n_job + 1U, sizeof *sim->last_total);
    enum tw_err err = TW_OK;
    if (!jobs || !sim->mem || !sim->gpu || !sim->job || !sim->last_total)
        err = tw_fail(why, TW_ENOMEM, "no memory for a simulated site of %u GPUs", sim->n_gpu);
    if (err == TW_OK)
        err = tw_plant_default_jobs(sim->n_gpu, sim->n_job, jobs, why);
    if (err == TW_OK) {
        struct tw_arena arena;
        tw_arena_init(&arena, sim->mem, bytes);
        struct tw_plant_conf plant = {.seed = (uint64_t)conf->seed,
                                      .board = &tw_board_h100,
                                      .job = jobs,
                                      .n_job = sim->n_job,
                                      .n_gpu = sim->n_gpu,
                                      .noise = conf->noise};
        err = tw_plant_new(&arena, &plant, &sim->plant, why);
    }
    free(jobs);
    return err;
}

static void sim_close(struct tw_source *sim)
{
    if (!sim)
        return;
    free(sim->last_total);
    free(sim->job);
    free(sim->gpu);
    free(sim->mem);
    free(sim);
}

static enum tw_err sim_open(const char *spec, struct tw_source **ret, struct tw_why *why)
{
    struct sim_conf conf = {.seed = 1, .gpus = 64, .jobs = 10, .noise = 1.0};
    enum tw_err err = spec_words(spec, &conf, NULL, why);
    if (err != TW_OK)
        return err;
    struct tw_source *sim = calloc(1, sizeof *sim);
    if (!sim)
        return tw_fail(why, TW_ENOMEM, "no memory for a simulated site");
    err = build(sim, &conf, why);
    if (err == TW_OK) {
        describe_gpus(sim);
        describe_jobs(sim);
        err = spec_words(spec, NULL, sim, why);
    }
    if (err != TW_OK) {
        sim_close(sim);
        return err;
    }
    *ret = sim;
    return TW_OK;
}

/* ---- a turn ---- */

static enum tw_err sim_describe(struct tw_source *sim, const struct tw_gpu_info **ret_gpu, size_t *ret_n_gpu,
                                const struct tw_job_info **ret_job, size_t *ret_n_job, struct tw_why *why)
{
    (void)why;
    *ret_gpu = sim->gpu;
    *ret_n_gpu = sim->n_gpu;
    *ret_job = sim->job;
    *ret_n_job = sim->n_job;
    return TW_OK;
}

static void fill_gpu(const struct tw_plant_reading *r, bool moved, struct tw_gpu_sample *s)
{
    s->time_us = r->time_us;
    s->fresh = r->fresh && moved;
    for (int c = 0; c < TW_CH_COUNT; c++)
        s->ch[c] = NAN;
    s->ch[TW_CH_POWER_W] = (float)r->power_w;
    s->ch[TW_CH_POWER_INSTANT_W] = (float)r->power_instant_w;
    s->ch[TW_CH_ENERGY_J] = (float)r->energy_j;
    s->ch[TW_CH_CAP_W] = (float)r->cap_w;
    s->ch[TW_CH_CAP_ENFORCED_W] = (float)r->cap_enforced_w;
    s->ch[TW_CH_SM_ACTIVE_FRAC] = (float)r->sm_active_frac;
    s->ch[TW_CH_TENSOR_ACTIVE_FRAC] = (float)r->tensor_active_frac;
    s->ch[TW_CH_DRAM_ACTIVE_FRAC] = (float)r->dram_active_frac;
    s->ch[TW_CH_UTIL_FRAC] = (float)r->util_frac;
    s->ch[TW_CH_MEM_COPY_UTIL_FRAC] = (float)r->mem_copy_util_frac;
    s->ch[TW_CH_MEM_USED_BYTES] = (float)r->mem_used_bytes;
    s->ch[TW_CH_SM_CLOCK_HZ] = (float)r->sm_clock_hz;
    s->ch[TW_CH_MEM_CLOCK_HZ] = (float)r->mem_clock_hz;
    s->ch[TW_CH_TEMP_C] = (float)r->temp_c;
    s->ch[TW_CH_THROTTLE_BITS] = (float)r->throttle_bits;
}

static enum tw_err sim_read(struct tw_source *sim, struct tw_site_sample *sample, struct tw_why *why)
{
    (void)why;
    int64_t now_us = tw_plant_now_us(sim->plant);
    double past_s = (double)(now_us - sim->last_us) * 1e-6;
    bool moved = past_s > 0.0;
    sample->now_us = now_us;
    sample->base_w = sim->base_w;
    for (uint32_t i = 0; i < sim->n_gpu; i++) {
        struct tw_plant_reading r;
        tw_plant_read(sim->plant, i, &r);
        fill_gpu(&r, moved, &sample->gpu[i]);
    }
    for (uint32_t k = 0; k < sim->n_job; k++) {
        struct tw_job_sample *j = &sample->job[k];
        j->fresh = moved;
        j->total = tw_plant_total(sim->plant, k);
        j->throughput = moved ? (j->total - sim->last_total[k]) / past_s : (double)NAN;
        sim->last_total[k] = j->total;
    }
    sim->last_us = now_us;
    return TW_OK;
}

static enum tw_err sim_advance(struct tw_source *sim, double dt_s, struct tw_why *why)
{
    if (!(dt_s >= 0.0 && dt_s <= 1e7))
        return tw_fail(why, TW_EINVAL, "simulated time cannot pass by %g s", dt_s);
    sim->owed_us += dt_s * 1e6;
    double whole_us = floor(sim->owed_us + 1e-3); /* so that ten times 0.1 s is 1 s */
    tw_plant_advance(sim->plant, (int64_t)whole_us);
    sim->owed_us -= whole_us;
    return TW_OK;
}

static enum tw_err sim_truth(const struct tw_source *sim, uint32_t job, double cap_w, double *ret_power_w,
                             double *ret_throughput, struct tw_why *why)
{
    if (job >= sim->n_job)
        return tw_fail(why, TW_EINVAL, "the simulated site has %u jobs; there is no number %u", sim->n_job,
                       job);
    tw_plant_truth(sim->plant, job, cap_w, ret_power_w, ret_throughput);
    return TW_OK;
}

/* ---- limits ---- */

static enum tw_err cap_open(const char *spec, struct tw_source *source, struct tw_cap **ret, struct tw_why *why)
{
    if (*spec)
        return tw_fail(why, TW_EINVAL,
                       "the simulator's limits take no configuration of their own, not \"%.40s\"", spec);
    if (!source)
        return tw_fail(why, TW_EINVAL,
                       "the simulator's limits act on an open simulated source, and there is none");
    struct tw_cap *cap = malloc(sizeof *cap);
    if (!cap)
        return tw_fail(why, TW_ENOMEM, "no memory for the simulator's limits");
    cap->sim = source;
    *ret = cap;
    return TW_OK;
}

static void cap_close(struct tw_cap *cap)
{
    free(cap);
}

static enum tw_err find(const struct tw_cap *cap, const char *uuid, uint32_t *ret_gpu, struct tw_why *why)
{
    uint32_t gpu = gpu_by_uuid(cap->sim, uuid);
    if (gpu == cap->sim->n_gpu)
        return tw_fail(why, TW_ENOENT, "no simulated GPU has the UUID \"%.60s\"", uuid);
    *ret_gpu = gpu;
    return TW_OK;
}

static enum tw_err cap_write(struct tw_cap *cap, const char *uuid, double limit_w, struct tw_why *why)
{
    uint32_t gpu = 0;
    enum tw_err err = find(cap, uuid, &gpu, why);
    if (err == TW_OK)
        err = tw_plant_cap(cap->sim->plant, gpu, limit_w, why);
    if (err == TW_ERANGE)
        tw_why_prefix(why, "%s: ", uuid);
    return err;
}

static enum tw_err cap_read(struct tw_cap *cap, const char *uuid, double *ret_requested_w,
                            double *ret_enforced_w, struct tw_why *why)
{
    uint32_t gpu = 0;
    enum tw_err err = find(cap, uuid, &gpu, why);
    if (err != TW_OK)
        return err;
    struct tw_plant_reading r;
    tw_plant_read(cap->sim->plant, gpu, &r);
    if (!r.fresh)
        return tw_fail(why, TW_EIO, "%s cannot be read", uuid);
    *ret_requested_w = r.cap_w;
    *ret_enforced_w = r.cap_enforced_w;
    return TW_OK;
}

const struct tw_source_ops tw_sim_source = {
    .abi = TW_SOURCE_ABI,
    .name = "sim",
    .help = "a simulated site: seed=1,gpus=64,jobs=10,base_w=0",
    .open = sim_open,
    .close = sim_close,
    .describe = sim_describe,
    .read = sim_read,
    .advance = sim_advance,
    .truth = sim_truth,
};

const struct tw_cap_ops tw_sim_cap = {
    .abi = TW_CAP_ABI,
    .name = "sim",
    .open = cap_open,
    .close = cap_close,
    .write = cap_write,
    .read = cap_read,
};
