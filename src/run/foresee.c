/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasts as they run, and their score. */
#include "run/foresee.h"

#include "model/forecaster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MINUTE = 60, RING = MINUTE + 1, N_SCORED = 2 };
#define SUM_WINDOW 600 /* past errors of the sum that its band is made of */

static const int horizon_s[N_SCORED] = {30, 60};
static const size_t head_of[N_SCORED] = {TW_HEAD_MEAN30, TW_HEAD_MEAN60};

/* What was said of a GPU at one second. */
struct said {
    float mid[N_SCORED], last, mean60;
};

struct tw_foresee {
    struct tw_forecaster *model;
    struct tw_sum *sum;
    void *model_mem, *sum_mem;
    size_t n_gpu;
    float *watts;       /* [n_gpu] now */
    float *out;         /* [n_gpu][TW_OUTPUTS] forecasts under the limits in force */
    double *energy;     /* [RING][n_gpu] sum of watts up to that second */
    unsigned long *gap; /* [n_gpu] the last turn without a reading */
    struct said *said;  /* [RING][n_gpu] */
    unsigned long turn;
    enum tw_event_state event;                                      /* of the last second */
    double err[N_SCORED], err_last[N_SCORED], err_mean60[N_SCORED]; /* sums of absolute errors */
};

enum tw_err tw_foresee_open(const void *file, size_t n_file, const struct tw_gpu_info *gpu, size_t n_gpu,
                            struct tw_foresee **ret, struct tw_why *why)
{
    size_t bytes = 0;
    enum tw_err err = tw_forecaster_bytes(file, n_file, n_gpu, &bytes, why);
    if (err != TW_OK)
        return err;
    struct tw_foresee *f = calloc(1, sizeof *f);
    if (!f)
        return tw_fail(why, TW_ENOMEM, "no memory for forecasts");
    f->n_gpu = n_gpu;
    size_t sum_bytes = (tw_sum_bytes(1.0, SUM_WINDOW) + 63) & ~(size_t)63;
    f->model_mem = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    f->sum_mem = aligned_alloc(64, sum_bytes);
    f->watts = calloc(n_gpu, sizeof *f->watts);
    f->out = calloc(n_gpu * TW_OUTPUTS, sizeof *f->out);
    f->energy = calloc(RING * n_gpu, sizeof *f->energy);
    f->gap = calloc(n_gpu, sizeof *f->gap);
    f->said = calloc(RING * n_gpu, sizeof *f->said);
    if (!f->model_mem || !f->sum_mem || !f->watts || !f->out || !f->energy || !f->gap || !f->said)
        err = tw_fail(why, TW_ENOMEM, "no memory for forecasts of %zu GPUs", n_gpu);
    if (err == TW_OK)
        err = tw_forecaster_init(file, n_file, tw_kern_best(), n_gpu, f->model_mem, &f->model, why);
    if (err != TW_OK) {
        tw_foresee_close(f);
        return err;
    }
    f->sum = tw_sum_init(1.0, SUM_WINDOW, f->sum_mem);
    for (size_t i = 0; i < n_gpu; i++)
        tw_forecaster_set_limit(f->model, i, gpu[i].limit_max_w);
    *ret = f;
    return TW_OK;
}

void tw_foresee_close(struct tw_foresee *f)
{
    if (!f)
        return;
    free(f->model_mem);
    free(f->sum_mem);
    free(f->watts);
    free(f->out);
    free(f->energy);
    free(f->gap);
    free(f->said);
    free(f);
}

static size_t at(const struct tw_foresee *f, unsigned long turn)
{
    return (size_t)(turn % RING) * f->n_gpu;
}

/* Mean watts of GPU i over the `seconds` up to now; NaN across a gap. */
static double mean(const struct tw_foresee *f, size_t i, int seconds)
{
    if (f->turn < f->gap[i] + (unsigned long)seconds)
        return (double)NAN;
    return (f->energy[at(f, f->turn) + i] - f->energy[at(f, f->turn - (unsigned long)seconds) + i]) / seconds;
}

/* The forecasts made h seconds ago are known now. */
static void score(struct tw_foresee *f, size_t i)
{
    for (int k = 0; k < N_SCORED; k++) {
        if (f->turn < 2UL * MINUTE)
            continue;
        const struct said *s = &f->said[at(f, f->turn - (unsigned long)horizon_s[k]) + i];
        double was = mean(f, i, horizon_s[k]);
        double err = fabs((double)s->mid[k] - was), last = fabs((double)s->last - was),
               past = fabs((double)s->mean60 - was);
        if (isnan(err) || isnan(last) || isnan(past))
            continue;
        f->err[k] += err;
        f->err_last[k] += last;
        f->err_mean60[k] += past;
    }
}

/* What we do to the site is no error of the forecast: past errors count within one state of an event only. */
static void forget_old_state(struct tw_foresee *f, enum tw_event_state now)
{
    if (now != f->event)
        f->sum = tw_sum_init(1.0, SUM_WINDOW, f->sum_mem);
    f->event = now;
}

/* A site that is held under a budget draws no more than that; NaN is no budget. */
static struct tw_snap_band held(struct tw_snap_band b, double budget_w)
{
    float most = (float)budget_w;
    return (struct tw_snap_band){fminf(b.low_w, most), fminf(b.mid_w, most), fminf(b.high_w, most)};
}

/* The model knows demand, not limits: what it expects of a GPU ends at the limit that the device enforces now.
 */
static float at_most(float watts, float cap)
{
    return watts > cap ? cap : watts; /* NaN of either kind stays what it is */
}

static void under_limits(struct tw_foresee *f, const struct tw_site_sample *sample)
{
    const float *out = tw_forecaster_out(f->model);
    for (size_t i = 0; i < f->n_gpu; i++) {
        float cap = sample->gpu[i].ch[TW_CH_CAP_ENFORCED_W];
        for (size_t k = i * TW_OUTPUTS; k < (i + 1) * TW_OUTPUTS; k++)
            f->out[k] = at_most(out[k], cap);
    }
}

static struct tw_snap_band band(const float out[static TW_OUTPUTS], size_t head, double add_w)
{
    const float *q = out + head * TW_QUANTILES;
    return (struct tw_snap_band){(float)((double)q[0] + add_w), (float)((double)q[1] + add_w),
                                 (float)((double)q[2] + add_w)};
}

static double skill(const struct tw_foresee *f, int k)
{
    double naive = fmin(f->err_last[k], f->err_mean60[k]);
    return naive > 0.0 ? 1.0 - f->err[k] / naive : (double)NAN;
}

void tw_foresee_push(struct tw_foresee *f, const struct tw_site_sample *sample, struct tw_snapshot *snap)
{
    double sum_w = 0.0;
    f->turn++;
    for (size_t i = 0; i < f->n_gpu; i++) {
        f->watts[i] = sample->gpu[i].fresh ? sample->gpu[i].ch[TW_CH_POWER_W] : (float)NAN;
        bool read = f->watts[i] >= 0.0f;
        f->gap[i] = read ? f->gap[i] : f->turn;
        f->energy[at(f, f->turn) + i] = f->energy[at(f, f->turn - 1) + i] + (read ? (double)f->watts[i] : 0.0);
        sum_w += (double)f->watts[i];
    }
    tw_forecaster_push(f->model, f->watts, NULL);
    under_limits(f, sample);
    for (size_t i = 0; i < f->n_gpu; i++) {
        const float *o = f->out + i * TW_OUTPUTS;
        snap->gpu[i].mean30 = band(o, TW_HEAD_MEAN30, 0.0);
        snap->gpu[i].mean60 = band(o, TW_HEAD_MEAN60, 0.0);
        score(f, i);
        struct said *s = &f->said[at(f, f->turn) + i];
        float cap = sample->gpu[i].ch[TW_CH_CAP_ENFORCED_W]; /* the naive ones know it too */
        s->last = at_most(f->watts[i], cap);
        s->mean60 = f->turn > MINUTE ? at_most((float)mean(f, i, MINUTE), cap) : (float)NAN;
        for (int k = 0; k < N_SCORED; k++)
            s->mid[k] = o[head_of[k] * TW_QUANTILES + 1];
    }
    float site[TW_OUTPUTS];
    forget_old_state(f, snap->event.state);
    tw_sum_push(f->sum, sum_w, f->n_gpu, f->watts, f->out, site);
    for (size_t k = 0; k < TW_SNAP_LEADS; k++)
        snap->path[k] = held(band(site, k, sample->base_w), snap->budget_w);
    snap->skill_mean30 = skill(f, 0);
    snap->skill_mean60 = skill(f, 1);
}
