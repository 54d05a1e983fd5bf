/* SPDX-License-Identifier: Apache-2.0 */
/* A site that runs, and its twins. */
#include "run/run.h"

#include "model/forecaster.h"
#include "run/foresee.h"
#include "sys/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct member {
    bool runs;
    struct tw_loop loop;
    uint32_t event;     /* id, in this loop, of the event that is compared */
    double start_total; /* weighted units when it began */
};

struct tw_run {
    struct tw_run_conf conf;
    pthread_mutex_t lock; /* over the controllers: turns, and events from other threads */
    struct member member[TW_STEER_COUNT];
    enum tw_steer first;
    struct tw_foresee *foresee;
    struct tw_snapshot snap;
    struct tw_run_result result;
};

#define TRUTH_POINTS 24
#define BASELINE_S 300.0

/* The oracle's curves: the least concave curve over the truth at evenly spaced limits. A job in step loses
 * throughput to its slowest GPU before it sheds power; where such a point lies under its neighbours' line it is
 * left out, since no curve that is concave could keep it and still be near the others. */
static enum tw_err tell_truth(struct tw_loop *l, uint32_t job, struct tw_why *why)
{
    const struct tw_gpu_info *gpu = NULL;
    for (size_t i = 0; i < l->n_gpu && !gpu; i++)
        if (l->gpu[i].job == job)
            gpu = &l->gpu[i];
    if (!gpu)
        return TW_OK;
    double p0, t0, x[TRUTH_POINTS], t[TRUTH_POINTS];
    enum tw_err err = l->device.source_ops->truth(l->device.source, job, gpu->limit_max_w, &p0, &t0, why);
    size_t n = TRUTH_POINTS - 1;
    x[n] = t[n] = 1.0;
    for (int k = TRUTH_POINTS - 2; err == TW_OK && k >= 0; k--) {
        double cap = gpu->limit_min_w + (gpu->limit_max_w - gpu->limit_min_w) * k / (TRUTH_POINTS - 1), p, r;
        err = l->device.source_ops->truth(l->device.source, job, cap, &p, &r, why);
        if (err != TW_OK || !(p < p0 * x[n] - 1e-3 * p0))
            continue; /* does not bind */
        double here = p / p0, kept = fmin(r / t0, t[n]);
        while (n + 1 < TRUTH_POINTS && (t[n] - kept) * (x[n + 1] - x[n]) < (t[n + 1] - t[n]) * (x[n] - here))
            n++;
        n--;
        x[n] = here;
        t[n] = kept;
    }
    struct tw_curve curve;
    if (err == TW_OK)
        err = tw_curve_init_knots(&curve, x + n, t + n, TRUTH_POINTS - n, why);
    if (err == TW_OK)
        tw_ctl_truth(l->ctl, job, &curve, p0, t0);
    return err;
}

static enum tw_err tell_truths(struct member *m, struct tw_why *why)
{
    enum tw_err err = TW_OK;
    for (uint32_t j = 0; err == TW_OK && j < m->loop.n_job; j++)
        err = tell_truth(&m->loop, j, why);
    return err;
}

static enum tw_err open_member(struct tw_run *run, enum tw_steer policy, struct tw_why *why)
{
    struct member *m = &run->member[policy];
    struct tw_ctl_conf ctl = run->conf.ctl;
    ctl.policy = policy;
    if (policy != run->first)
        ctl.trace = NULL;
    enum tw_err err = tw_loop_open(&m->loop, run->conf.source, &ctl, why);
    if (err != TW_OK)
        return err;
    m->runs = true;
    if (policy != run->first && !tw_loop_is_simulated(&m->loop))
        return tw_fail(why, TW_EINVAL, "%s is no simulation; only a simulated site can run twice",
                       run->conf.source);
    if (policy == TW_STEER_ORACLE && !m->loop.device.source_ops->truth)
        return tw_fail(why, TW_EINVAL, "policy oracle needs a source that tells the truth");
    return policy == TW_STEER_ORACLE ? tell_truths(m, why) : err;
}

static void forget_result(struct tw_run_result *r)
{
    *r = (struct tw_run_result){.gap_recovered = (double)NAN, .saved = (double)NAN, .done_none = (double)NAN};
    for (int p = 0; p < TW_STEER_COUNT; p++)
        r->lost[p] = (double)NAN;
}

static enum tw_err build_snapshot(struct tw_run *run, struct tw_why *why)
{
    const struct tw_loop *l = &run->member[run->first].loop;
    struct tw_snapshot *s = &run->snap;
    s->gpu = calloc(l->n_gpu, sizeof *s->gpu);
    s->job = calloc(l->n_job + 1, sizeof *s->job);
    if (!s->gpu || !s->job)
        return tw_fail(why, TW_ENOMEM, "no memory for a snapshot of %zu GPUs", l->n_gpu);
    s->simulated = tw_loop_is_simulated(l);
    s->speed = run->conf.speed;
    struct tw_snap_band none = {(float)NAN, (float)NAN, (float)NAN};
    for (size_t i = 0; i < l->n_gpu; i++)
        s->gpu[i].mean30 = s->gpu[i].mean60 = none;
    for (int k = 0; k < TW_SNAP_LEADS; k++)
        s->path[k] = none;
    s->skill_mean30 = s->skill_mean60 = s->gap_recovered = s->tokens_saved = (double)NAN;
    return TW_OK;
}

enum tw_err tw_run_open(const struct tw_run_conf *conf, struct tw_run **ret, struct tw_why *why)
{
    struct tw_run *run = calloc(1, sizeof *run);
    if (!run)
        return tw_fail(why, TW_ENOMEM, "no memory");
    run->conf = *conf;
    run->first = conf->ctl.policy;
    (void)pthread_mutex_init(&run->lock, NULL); /* cannot fail with default attributes */
    forget_result(&run->result);
    enum tw_err err = open_member(run, run->first, why);
    for (int p = 0; err == TW_OK && p < TW_STEER_COUNT; p++)
        if (conf->twin[p] && p != (int)run->first)
            err = open_member(run, (enum tw_steer)p, why);
    if (err == TW_OK)
        err = build_snapshot(run, why);
    const struct tw_loop *l = &run->member[run->first].loop;
    if (err == TW_OK)
        err = tw_foresee_open(tw_model_builtin, tw_model_builtin_size, l->gpu, l->n_gpu, &run->foresee, why);
    if (err != TW_OK) {
        tw_run_close(run);
        return err;
    }
    *ret = run;
    return TW_OK;
}

void tw_run_close(struct tw_run *run)
{
    if (!run)
        return;
    for (int p = 0; p < TW_STEER_COUNT; p++)
        tw_loop_close(&run->member[p].loop);
    tw_foresee_close(run->foresee);
    (void)pthread_mutex_destroy(&run->lock);
    free(run->snap.gpu);
    free(run->snap.job);
    free(run);
}

static const struct tw_ctl_event *event_of(const struct member *m, uint32_t id)
{
    size_t n = 0;
    const struct tw_ctl_event *e = tw_ctl_events(m->loop.ctl, &n);
    for (size_t i = 0; i < n; i++)
        if (e[i].id == id)
            return &e[i];
    return NULL;
}

/* The event of the first loop that has begun most lately. */
static const struct tw_ctl_event *begun(const struct tw_run *run)
{
    size_t n = 0;
    const struct tw_ctl_event *e = tw_ctl_events(run->member[run->first].loop.ctl, &n);
    while (n > 0 && isnan(e[n - 1].target_w))
        n--;
    return n > 0 ? &e[n - 1] : NULL;
}

/* An event begins in the first loop: all twins have it at once, with its baseline. */
static void mirror(struct tw_run *run, const struct tw_ctl_event *e)
{
    forget_result(&run->result);
    run->result.event = e->id;
    struct tw_ctl_ask ask = {e->cut_frac, e->for_s, 0.0, e->baseline_w};
    for (int p = 0; p < TW_STEER_COUNT; p++) {
        struct member *m = &run->member[p];
        m->start_total = NAN;
        m->event = 0;
        if (p == TW_STEER_ORACLE && m->runs && tell_truths(m, NULL) != TW_OK)
            continue; /* load has moved since the site was opened */
        if (p == (int)run->first)
            m->event = e->id;
        else if (m->runs && tw_ctl_event_add(m->loop.ctl, &ask, &m->event, NULL) != TW_OK)
            m->event = 0; /* still busy with the last: it is left out of this comparison */
    }
}

static double sum_of_all(const struct tw_run_result *r, enum tw_steer a, enum tw_steer b)
{
    return r->lost[a] - r->lost[b];
}

static void compare(struct tw_run *run)
{
    struct tw_run_result *r = &run->result;
    const struct tw_ctl_event *e = event_of(&run->member[run->first], r->event);
    if (r->event == 0 || r->over || !e)
        return;
    const struct member *none = &run->member[TW_STEER_NONE];
    bool over = true;
    for (int p = 0; p < TW_STEER_COUNT; p++) {
        struct member *m = &run->member[p];
        if (!m->runs || m->event == 0)
            continue;
        if (isnan(m->start_total))
            m->start_total = tw_loop_total(&m->loop);
        const struct tw_ctl_event *mine = event_of(m, m->event);
        if (mine) {
            r->detail[p] = *mine;
            over = over && mine->state == TW_EVENT_DONE;
        }
    }
    r->done_none = none->runs ? tw_loop_total(&none->loop) - none->start_total : (double)NAN;
    for (int p = 0; p < TW_STEER_COUNT; p++) {
        const struct member *m = &run->member[p];
        if (m->runs && m->event != 0)
            r->lost[p] = r->done_none - (tw_loop_total(&m->loop) - m->start_total);
    }
    r->saved = sum_of_all(r, TW_STEER_EQUAL, TW_STEER_CURVE);
    r->gap_recovered = r->saved / sum_of_all(r, TW_STEER_EQUAL, TW_STEER_ORACLE);
    r->over = over;
}

static void publish(struct tw_run *run)
{
    struct tw_snapshot *s = &run->snap;
    const struct tw_run_result *r = &run->result;
    tw_ctl_snapshot(run->member[run->first].loop.ctl, s);
    tw_foresee_push(run->foresee, &run->member[run->first].loop.sample, s);
    s->seq++;
    s->wall_us = tw_wall_us();
    if (r->event == 0)
        return;
    if (!isnan(r->lost[run->first]))
        s->event.tokens_lost = r->lost[run->first];
    s->event.tokens_lost_equal = r->lost[TW_STEER_EQUAL];
    s->event.tokens_lost_oracle = r->lost[TW_STEER_ORACLE];
    s->gap_recovered = r->gap_recovered;
    s->tokens_saved = r->saved;
}

static enum tw_err turn(struct tw_run *run, double dt_s, struct tw_why *why)
{
    enum tw_err err = tw_loop_turn(&run->member[run->first].loop, dt_s, why);
    if (err != TW_OK)
        return err;
    const struct tw_ctl_event *e = begun(run);
    if (e && e->id != run->result.event)
        mirror(run, e);
    for (int p = 0; err == TW_OK && p < TW_STEER_COUNT; p++)
        if (run->member[p].runs && p != (int)run->first)
            err = tw_loop_turn(&run->member[p].loop, dt_s, why);
    if (err == TW_OK) {
        compare(run);
        publish(run);
    }
    return err;
}

enum tw_err tw_run_turn(struct tw_run *run, double dt_s, struct tw_why *why)
{
    (void)pthread_mutex_lock(&run->lock);
    enum tw_err err = turn(run, dt_s, why);
    (void)pthread_mutex_unlock(&run->lock);
    return err;
}

enum tw_err tw_run_restore(struct tw_run *run, struct tw_why *why)
{
    (void)pthread_mutex_lock(&run->lock);
    enum tw_err err = tw_loop_restore(&run->member[run->first].loop, why);
    (void)pthread_mutex_unlock(&run->lock);
    return err;
}

const struct tw_snapshot *tw_run_snapshot(const struct tw_run *run)
{
    return &run->snap;
}

const struct tw_run_result *tw_run_result(const struct tw_run *run)
{
    return &run->result;
}

const struct tw_loop *tw_run_loop(const struct tw_run *run, enum tw_steer policy)
{
    return run->member[policy].runs ? &run->member[policy].loop : NULL;
}

bool tw_run_is_rested(const struct tw_run *run)
{
    for (int p = 0; p < TW_STEER_COUNT; p++)
        if (run->member[p].runs && tw_ctl_rested_s(run->member[p].loop.ctl) < BASELINE_S)
            return false;
    return true;
}

enum tw_err tw_run_event_add(struct tw_run *run, const struct tw_ctl_ask *ask, uint32_t *ret_id,
                             struct tw_why *why)
{
    (void)pthread_mutex_lock(&run->lock);
    enum tw_err err = tw_ctl_event_add(run->member[run->first].loop.ctl, ask, ret_id, why);
    (void)pthread_mutex_unlock(&run->lock);
    return err;
}

enum tw_err tw_run_event_cancel(struct tw_run *run, uint32_t id, struct tw_why *why)
{
    (void)pthread_mutex_lock(&run->lock);
    enum tw_err err = tw_ctl_event_cancel(run->member[run->first].loop.ctl, id, why);
    for (int p = 0; err == TW_OK && id == run->result.event && p < TW_STEER_COUNT; p++) {
        struct member *m = &run->member[p];
        if (m->runs && p != (int)run->first && m->event != 0 &&
            tw_ctl_event_cancel(m->loop.ctl, m->event, NULL) != TW_OK)
            continue; /* over there already */
    }
    (void)pthread_mutex_unlock(&run->lock);
    return err;
}

size_t tw_run_event_list(struct tw_run *run, struct tw_ctl_event *ret, size_t room)
{
    (void)pthread_mutex_lock(&run->lock);
    size_t n = 0;
    const struct tw_ctl_event *e = tw_ctl_events(run->member[run->first].loop.ctl, &n);
    size_t skip = n > room ? n - room : 0;
    memcpy(ret, e + skip, (n - skip) * sizeof *ret);
    (void)pthread_mutex_unlock(&run->lock);
    return n - skip;
}
