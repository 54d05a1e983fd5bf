/* SPDX-License-Identifier: Apache-2.0 */
/* One good look at a source. */
#include "tokwatt/look.h"

#include "sys/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_S 3.0       /* at most */
#define LOOK_LEAST_S 1.3 /* GPM rates need two samples a second apart */
#define STEP_S 0.1

static void pass_time(struct look *l)
{
    if (l->dev.source_ops->advance) {
        (void)l->dev.source_ops->advance(l->dev.source, STEP_S, NULL); /* 0.1 s is always taken */
        return;
    }
    struct timespec nap = {.tv_sec = 0, .tv_nsec = (long)(STEP_S * 1e9)};
    (void)nanosleep(&nap, NULL);
}

static enum tw_err watch(struct look *l, struct tw_site_sample *sample, struct tw_why *why)
{
    size_t read = 0;
    for (double past_s = 0.0; past_s < LOOK_S && (read < l->n || past_s < LOOK_LEAST_S); past_s += STEP_S) {
        pass_time(l);
        enum tw_err err = l->dev.source_ops->read(l->dev.source, sample, why);
        if (err != TW_OK)
            return err;
        for (size_t i = 0; i < l->n; i++) {
            if (!sample->gpu[i].fresh)
                continue;
            read += l->gpu[i].fresh ? 0U : 1U;
            l->gpu[i] = sample->gpu[i];
        }
    }
    return TW_OK;
}

static enum tw_err look(struct look *l, struct tw_why *why)
{
    const struct tw_job_info *job = NULL;
    size_t n_job = 0;
    enum tw_err err = l->dev.source_ops->describe(l->dev.source, &l->info, &l->n, &job, &n_job, why);
    if (err != TW_OK)
        return err;
    if (l->n == 0)
        return tw_fail(why, TW_ENODATA, "%s has no GPU%s%.200s", l->source, l->driver.note[0] ? ": " : "",
                       l->driver.note);
    struct tw_site_sample sample = {.gpu = calloc(l->n, sizeof *sample.gpu),
                                    .job = calloc(n_job + 1, sizeof *sample.job)};
    l->gpu = calloc(l->n, sizeof *l->gpu);
    l->nv = calloc(l->n, sizeof *l->nv);
    if (!sample.gpu || !sample.job || !l->gpu || !l->nv) {
        free(sample.gpu);
        free(sample.job);
        return tw_fail(why, TW_ENOMEM, "no memory for %zu GPUs", l->n);
    }
    for (size_t i = 0; i < l->n; i++)
        for (int c = 0; c < TW_CH_COUNT; c++)
            l->gpu[i].ch[c] = NAN;
    err = watch(l, &sample, why);
    for (size_t i = 0; err == TW_OK && l->nvml && i < l->n; i++)
        tw_nvml_look(l->dev.source, i, &l->nv[i]);
    /* Limits are read live: what describe said at first may be older than the first whole reading. */
    if (err == TW_OK)
        err = l->dev.source_ops->describe(l->dev.source, &l->info, &l->n, &job, &n_job, why);
    free(sample.gpu);
    free(sample.job);
    return err;
}

enum tw_err look_open(const char *source, struct look *ret, struct tw_why *why)
{
    struct look l = {.source = source};
    enum tw_err err = tw_device_open(source, &l.dev, why);
    if (err != TW_OK)
        return err;
    l.simulated = l.dev.source_ops->advance != NULL;
    l.nvml = l.dev.source_ops == &tw_nvml_source;
    if (l.nvml)
        tw_nvml_look_driver(l.dev.source, &l.driver);
    err = look(&l, why);
    if (err != TW_OK) {
        look_close(&l);
        return err;
    }
    if (l.nvml)
        tw_nvml_look_driver(l.dev.source, &l.driver);
    if (strstr(l.info[0].model, "simulated")) /* the fake driver of the tests says so by its name alone */
        l.simulated = true;
    *ret = l;
    return TW_OK;
}

void look_close(struct look *l)
{
    tw_device_close(&l->dev);
    free(l->gpu);
    free(l->nv);
    l->gpu = NULL;
    l->nv = NULL;
}

const char *look_state(const struct look *l, size_t i)
{
    if (l->nvml && l->nv[i].state != TW_NVML_OK)
        return tw_nvml_state_name[l->nv[i].state];
    return l->gpu[i].fresh ? "ok" : "no reading";
}

/* Three-valued: -1 is unknown. */
static void json_maybe(struct tw_jsonw *w, const char *key, int value)
{
    if (value < 0)
        tw_jsonw_null(w, key);
    else
        tw_jsonw_bool(w, key, value > 0);
}

static void nvml_json(const struct tw_nvml_info *nv, struct tw_jsonw *w)
{
    tw_jsonw_str(w, "note", nv->note[0] ? nv->note : NULL);
    tw_jsonw_num(w, "age_s", nv->age_s, 4);
    tw_jsonw_f64(w, "power_window_s", nv->power_window_s);
    json_maybe(w, "mig", nv->mig);
    json_maybe(w, "persistence", nv->persistence);
    if (nv->n_pid < 0)
        tw_jsonw_null(w, "processes");
    else
        tw_jsonw_i64(w, "processes", nv->n_pid);
    tw_jsonw_array(w, "pids");
    for (int i = 0; i < nv->n_pid && i < TW_NVML_PIDS; i++)
        tw_jsonw_i64(w, NULL, nv->pid[i]);
    tw_jsonw_end(w);
    tw_jsonw_i64(w, "xids", (int64_t)nv->xids);
    if (nv->xids)
        tw_jsonw_i64(w, "last_xid", nv->last_xid);
    else
        tw_jsonw_null(w, "last_xid");
    tw_jsonw_num(w, "energy_ratio", nv->energy_ratio, 5);
    tw_jsonw_num(w, "nvml_cost_frac", nv->cost_frac, 4);
    tw_jsonw_num(w, "nvml_calls_per_s", nv->calls_per_s, 4);
    tw_jsonw_num(w, "period_s", nv->period_s, 4);
}

void look_json(const struct look *l, struct tw_jsonw *w, const char *key)
{
    tw_jsonw_array(w, key);
    for (size_t i = 0; i < l->n; i++) {
        const struct tw_gpu_info *g = &l->info[i];
        tw_jsonw_object(w, NULL);
        tw_jsonw_str(w, "uuid", g->uuid);
        tw_jsonw_str(w, "pci", g->pci[0] ? g->pci : NULL);
        tw_jsonw_str(w, "model", g->model);
        tw_jsonw_str(w, "node", g->node[0] ? g->node : NULL);
        tw_jsonw_str(w, "state", look_state(l, i));
        tw_jsonw_f64(w, "limit_min_w", g->limit_min_w);
        tw_jsonw_f64(w, "limit_max_w", g->limit_max_w);
        tw_jsonw_f64(w, "limit_default_w", g->limit_default_w);
        for (int c = 0; c < TW_CH_COUNT; c++)
            tw_jsonw_num(w, tw_channel_table[c].name, (double)l->gpu[i].ch[c], 8);
        if (l->nvml)
            nvml_json(&l->nv[i], w);
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
}
