/* SPDX-License-Identifier: Apache-2.0 */
/* The snapshot of what holds now. */
#include "ctl/ctl_int.h"

#include <math.h>
#include <string.h>

static void snap_gpu(const struct tw_ctl *c, size_t i, struct tw_snap_gpu *g)
{
    const struct tw_line *line = &c->ledger.line[i];
    memcpy(g->uuid, c->gpu[i].uuid, sizeof g->uuid);
    memcpy(g->node, c->gpu[i].node, sizeof g->node);
    g->job = c->gpu[i].job;
    g->reason = c->reason[i];
    g->power_w = line->blind ? NAN : (float)line->power_w;
    g->cap_w = (float)(isnan(line->asked_w) ? line->found_w : line->asked_w);
    g->enforced_w = (float)line->limit_w;
}

static void snap_curve(const struct tw_ctl_job *j, struct tw_snap_job *s)
{
    const struct tw_learn *l = &j->learn;
    double sd, x = 1.0 - TW_BELIEF_CUT, loss = 1.0 - tw_belief_value(&l->belief, x, &sd);
    s->pfi = loss > 0.0 ? TW_BELIEF_CUT / loss : (double)NAN;
    s->pfi_low = TW_BELIEF_CUT / (loss + 1.645 * sd);
    s->pfi_high = loss > 1.645 * sd ? TW_BELIEF_CUT / (loss - 1.645 * sd) : (double)NAN;
    s->curve_k = j->curve.family == TW_CURVE_EXP ? j->curve.k : (double)NAN;
    s->curve_x0 = j->curve.family == TW_CURVE_EXP ? tw_curve_x0(&j->curve) : (double)NAN;
    s->n_points = l->n_points;
    double square = 0.0;
    for (unsigned i = 0; i < l->n_points; i++) {
        s->point[i].x = l->point_x[i];
        s->point[i].t = l->point_t[i];
        double miss = (double)l->point_t[i] - tw_curve_value(&j->curve, (double)l->point_x[i]);
        square += miss * miss;
    }
    s->curve_rmse = l->n_points ? sqrt(square / l->n_points) : (double)NAN;
}

static void snap_job(const struct tw_ctl *c, const struct tw_ctl_job *j, struct tw_snap_job *s)
{
    memcpy(s->name, j->info.name, sizeof s->name);
    memcpy(s->unit, j->info.unit, sizeof s->unit);
    s->n_gpu = (uint32_t)j->n;
    s->power_w = j->draw_w;
    s->cap_w = j->cap_sum_w;
    s->p0_w = j->learn.p0_w;
    s->t0 = j->learn.t0;
    s->throughput = j->rate;
    s->lost_units = j->lost_units;
    s->reason = j->n > 0 ? c->reason[c->member[j->first]] : TW_REASON_UNCAPPED;
    snap_curve(j, s);
}

static void snap_event(const struct tw_ctl *c, struct tw_snapshot *snap)
{
    /* the running one; else the next that waits; else the last */
    const struct tw_ctl_event *e = c->now;
    for (size_t i = 0; i < c->n_event && !e; i++)
        if (c->event[i].state == TW_EVENT_WAITING)
            e = &c->event[i];
    for (size_t i = c->n_event; i > 0 && !e; i--)
        if (!isnan(c->event[i - 1].target_w))
            e = &c->event[i - 1];
    struct tw_snap_event *s = &snap->event;
    s->state = e ? e->state : TW_EVENT_NONE;
    s->cut_frac = e ? e->cut_frac : (double)NAN;
    s->start_s = e ? e->start_s : (double)NAN;
    s->end_s = e ? e->end_s : (double)NAN;
    s->baseline_w = e ? e->baseline_w : (double)NAN;
    s->target_w = e ? e->target_w : (double)NAN;
    s->hold10_min_frac = e ? e->min_frac : (double)NAN;
    s->hold10_max_frac = e ? e->max_frac : (double)NAN;
    s->tokens_lost = e ? e->lost : (double)NAN;
    s->tokens_lost_equal = s->tokens_lost_oracle = NAN; /* the runner's, where there are twins */
}

void tw_ctl_snapshot(const struct tw_ctl *c, struct tw_snapshot *snap)
{
    snap->now_s = c->now_s;
    snap->n_gpu = c->n_gpu;
    snap->n_job = c->n_job;
    for (size_t i = 0; i < c->n_gpu; i++)
        snap_gpu(c, i, &snap->gpu[i]);
    for (size_t j = 0; j < c->n_job; j++)
        snap_job(c, &c->job[j], &snap->job[j]);
    snap->power_w = c->site_w;
    snap->cap_sum_w = tw_ledger_sum(&c->ledger);
    bool binds = c->state == TW_SITE_RAMP || c->state == TW_SITE_HOLD || c->state == TW_SITE_RELEASE;
    snap->budget_w = binds ? tw_ramp_at(&c->ramp, c->now_s) : (double)NAN;
    if (isinf(c->conf.hard_limit_w) == 0)
        snap->budget_w = binds ? fmin(snap->budget_w, c->conf.hard_limit_w) : c->conf.hard_limit_w;
    snap->stale_gpus = c->stale;
    snap_event(c, snap);
}
