/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's turn: see, learn, change state, decide; and what may be sent. */
#include "ctl/ctl.h"

#include "ctl/ctl_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BIND_START 0.985 /* before anything is known of a job */
#define MEAN_START 0.96
#define MEAN_KEEP 0.97 /* a mean over about thirty seconds */
#define BIND_KEEP 0.9  /* a mean over about ten seconds */
#define LOW_FRAC 0.92  /* draw over limits, of bind_frac: less than a cap that binds would show */
#define DEEP_FRAC 0.44 /* ... no iteration's pause is as deep as this: a stop at once */
#define DIP_FRAC 0.97  /* ... nor deeper than this share of what the job's own iterations show */
#define DIP_KEEP 0.8
#define LOW_UNCAPPED_FRAC 0.8
#define STOP_LOOKS 8       /* glances that an iteration's pause may last */
#define SHALLOW_FRAC 0.94  /* ... of bind_frac, for TW_JOB_RECENT seconds: it wants no more */
#define NEAR_EVENT_S 120.0 /* no probe is begun this short before an event: it would lower the baseline */
#define GUARD_FRAC 0.9985  /* of ten targets, rule 3: power follows a limit some tenths of a second late */
#define STEP_W 1.0         /* a limit is not worth writing for less */
#define ASK_AGAIN_S 5.0    /* a device that did not take a limit is asked again after this */

struct tw_ctl_conf tw_ctl_conf_default(void)
{
    return (struct tw_ctl_conf){.policy = TW_STEER_CURVE,
                                .probe = true,
                                .probe_settle_s = 2.0,
                                .probe_measure_s = 20.0,
                                .probe_jobs = 4,
                                .ramp_down_w_s = NAN,
                                .ramp_up_w_s = NAN,
                                .hard_limit_w = INFINITY,
                                .over_frac = 0.15,
                                .goal_frac = 0.995,
                                .band_low_frac = 0.98,
                                .band_high_frac = 1.0,
                                .safe_frac = 0.5,
                                .blind_after_s = 5.0};
}

size_t tw_ctl_bytes(size_t n_gpu, size_t n_job)
{
    return tw_arena_need(1, sizeof(struct tw_ctl)) + tw_ledger_bytes(n_gpu) +
           tw_arena_need(n_gpu, sizeof(struct tw_gpu_info)) + tw_arena_need(n_job, sizeof(struct tw_ctl_job)) +
           tw_arena_need(n_job, sizeof(struct tw_alloc_job)) + tw_arena_need(n_job, sizeof(double)) +
           tw_arena_need(1, tw_share_bytes(n_job)) + tw_arena_need(n_gpu, sizeof(uint32_t)) +
           tw_arena_need(n_gpu, sizeof(double)) + tw_arena_need(n_gpu, sizeof(enum tw_reason));
}

static void trace(struct tw_ctl *c, const char *what, const char *from, const char *to, const char *reason)
{
    if (!c->conf.trace)
        return;
    char text[256];
    (void)snprintf(text, sizeof text, "%s: %s -> %s: %s", what, from, to, reason);
    c->conf.trace(c->conf.trace_ctx, c->now_s, text);
}

static void trace_line(void *ctx, size_t gpu, const struct tw_transition *t, enum tw_line_state from)
{
    struct tw_ctl *c = ctx;
    /* caps come and go every second; what a person must know is a device that does not obey */
    if (t->next == TW_LINE_FAULT || from == TW_LINE_FAULT)
        trace(c, c->gpu[gpu].uuid, tw_line_state_name[from], tw_line_state_name[t->next], t->why);
}

/* GPUs by job: a counting sort that keeps their order. */
static void group(struct tw_ctl *c)
{
    size_t at = 0;
    for (size_t j = 0; j < c->n_job; j++) {
        c->job[j].first = at;
        for (size_t i = 0; i < c->n_gpu; i++)
            if (c->gpu[i].job == j)
                c->member[at++] = (uint32_t)i;
        c->job[j].n = at - c->job[j].first;
    }
    c->n_member = at;
    for (size_t i = 0; i < c->n_gpu; i++)
        if (c->gpu[i].job >= c->n_job)
            c->member[at++] = (uint32_t)i;
}

static enum tw_err check(const struct tw_ctl_conf *conf, struct tw_why *why)
{
    if (!(conf->over_frac >= 0.0 && conf->over_frac <= 0.5))
        return tw_fail(why, TW_EINVAL, "over_frac is %g; 0 to 0.5 makes sense", conf->over_frac);
    if (!(conf->goal_frac > 0.9 && conf->goal_frac <= 1.0))
        return tw_fail(why, TW_EINVAL, "goal_frac is %g; above 0.9 and at most 1 makes sense", conf->goal_frac);
    if (!(conf->hard_limit_w > 0.0))
        return tw_fail(why, TW_EINVAL, "a hard limit of %g W", conf->hard_limit_w);
    if (conf->ramp_down_w_s <= 0.0 || conf->ramp_up_w_s <= 0.0)
        return tw_fail(why, TW_EINVAL, "a ramp limit lies above 0 W/s");
    return TW_OK;
}

enum tw_err tw_ctl_init(struct tw_arena *arena, const struct tw_ctl_conf *conf, const struct tw_gpu_info *gpu,
                        size_t n_gpu, const struct tw_job_info *job, size_t n_job, struct tw_ctl **ret,
                        struct tw_why *why)
{
    enum tw_err err = check(conf, why);
    if (err != TW_OK)
        return err;
    if (n_gpu == 0)
        return tw_fail(why, TW_EINVAL, "a site without GPUs");
    double lowest_w = 0.0;
    for (size_t i = 0; i < n_gpu; i++)
        lowest_w += gpu[i].limit_min_w > 0.0 ? gpu[i].limit_min_w : 0.0; /* unknown: it can be watched only */
    if (conf->hard_limit_w < lowest_w)
        return tw_fail(why, TW_EINFEASIBLE,
                       "a hard limit of %.0f W is below %.0f W, the lowest limits of the GPUs together",
                       conf->hard_limit_w, lowest_w);
    struct tw_ctl *c = TW_ARENA_ARRAY(arena, struct tw_ctl, 1);
    if (!c)
        return tw_fail(why, TW_ENOMEM, "no room for the controller");
    c->conf = *conf;
    err = tw_ledger_init(&c->ledger, arena, gpu, n_gpu, conf->safe_frac, conf->blind_after_s, why);
    if (err != TW_OK)
        return err;
    c->ledger.trace = trace_line;
    c->ledger.trace_ctx = c;
    c->gpu = TW_ARENA_ARRAY(arena, struct tw_gpu_info, n_gpu);
    c->job = TW_ARENA_ARRAY(arena, struct tw_ctl_job, n_job);
    c->share = TW_ARENA_ARRAY(arena, struct tw_alloc_job, n_job);
    c->share_w = TW_ARENA_ARRAY(arena, double, n_job);
    void *scratch = tw_arena_alloc(arena, 1, tw_share_bytes(n_job));
    c->member = TW_ARENA_ARRAY(arena, uint32_t, n_gpu);
    c->want_w = TW_ARENA_ARRAY(arena, double, n_gpu);
    c->reason = TW_ARENA_ARRAY(arena, enum tw_reason, n_gpu);
    if (!c->gpu || !c->member || !c->want_w || !c->reason || !scratch ||
        (n_job > 0 && (!c->job || !c->share || !c->share_w)))
        return tw_fail(why, TW_ENOMEM, "no room for %zu GPUs and %zu jobs", n_gpu, n_job);
    tw_arena_init(&c->scratch, scratch, tw_share_bytes(n_job));
    c->n_gpu = n_gpu;
    c->n_job = n_job;
    memcpy(c->gpu, gpu, n_gpu * sizeof *gpu);
    for (size_t i = 0; i < n_gpu; i++)
        c->want_w[i] = NAN;
    for (size_t j = 0; j < n_job; j++) {
        struct tw_ctl_job *b = &c->job[j];
        b->info = job[j];
        tw_learn_init(&b->learn);
        b->curve = tw_belief_curve(&b->learn.belief);
        b->bind_frac = BIND_START;
        b->mean_frac = MEAN_START;
        b->dip_w = b->low_w = b->low_s = NAN;
        b->total = b->units = b->rate = b->want_cap_w = NAN;
        for (int k = 0; k < TW_JOB_RECENT; k++)
            b->util[k] = 1.0;
    }
    group(c);
    c->state = TW_SITE_LEARN;
    c->now_s = c->dt_s = NAN;
    c->site_w = c->gpu_w = NAN;
    *ret = c;
    return TW_OK;
}

void tw_ctl_found(struct tw_ctl *c, uint32_t gpu, double limit_w)
{
    tw_ledger_found(&c->ledger, gpu, limit_w);
}

void tw_ctl_truth(struct tw_ctl *c, uint32_t job, const struct tw_curve *curve, double p0_w, double t0)
{
    struct tw_ctl_job *j = &c->job[job];
    j->curve = *curve;
    j->has_truth = true;
    j->learn.p0_w = p0_w;
    j->learn.t0 = t0;
}

/* --- see ------------------------------------------------------------------------------------------------ */

static void see_site(struct tw_ctl *c, const struct tw_site_sample *s)
{
    tw_ledger_see(&c->ledger, s);
    c->base_w = s->base_w >= 0.0 ? s->base_w : 0.0;
    c->gpu_w = 0.0;
    c->stale = 0;
    for (size_t i = 0; i < c->n_gpu; i++) {
        const struct tw_line *line = &c->ledger.line[i];
        c->gpu_w += line->blind || isnan(line->power_w) ? tw_line_charge(&c->ledger, i) : line->power_w;
        c->stale += line->blind;
    }
    c->site_w = c->base_w + c->gpu_w;
    /* one value a second, also where turns came late */
    long seconds = lround(fmin(TW_TRACK_LONG, fmax(1.0, c->dt_s)));
    for (long k = 0; k < seconds; k++)
        tw_track_push(&c->track, c->site_w);
}

static void see_progress(struct tw_ctl_job *j, const struct tw_job_sample *s, double dt_s)
{
    double units = NAN;
    if (s->fresh && s->total >= j->total)
        units = s->total - j->total;
    else if (s->fresh && isnan(s->total) && s->throughput >= 0.0)
        units = s->throughput * dt_s;
    if (s->fresh)
        j->total = s->total;
    j->units = units;
    j->rate = units / dt_s;
}

/* What the site would draw at this instant if no limit of ours bound: one more look into the second's mean. */
static void see_want(struct tw_ctl *c)
{
    c->want_sum_w += tw_ctl_wanted_w(c);
    c->want_looks++;
}

/* The second is over. */
static void close_want(struct tw_ctl *c)
{
    see_want(c);
    tw_track_push(&c->wanted, c->want_sum_w / c->want_looks);
    c->want_sum_w = 0.0;
    c->want_looks = 0;
}

/* The draw of the job's GPUs that can be moved, and their limits. */
static void see_draw(const struct tw_ctl *c, struct tw_ctl_job *j)
{
    j->draw_w = j->now_w = j->follow_w = j->cap_sum_w = j->low_sum_w = j->high_sum_w = 0.0;
    j->n_live = 0;
    for (size_t k = j->first; k < j->first + j->n; k++) {
        const struct tw_line *line = &c->ledger.line[c->member[k]];
        if (!tw_line_is_live(line) || !(line->power_w >= 0.0))
            continue;
        j->n_live++;
        j->draw_w += line->power_w;
        j->now_w += line->instant_w;
        j->follow_w += line->follow_w;
        j->cap_sum_w += line->limit_w;
        j->low_sum_w += line->min_w;
        j->high_sum_w += line->max_w;
    }
}

/* It draws as a cap that binds lets it; what it did before says nothing about that any more. */
static void pushes_again(struct tw_ctl_job *j)
{
    j->drawing = TW_JOB_PUSHES;
    for (int k = 0; k < TW_JOB_RECENT; k++)
        j->util[k] = 1.0;
}

/* What it draws in the pauses of its iterations: of dips that are over soon, the lowest draw. It hardly depends
 * on the cap, so that it is learnt before one binds. */
static void see_dip(struct tw_ctl_job *j, double now_s, bool low)
{
    if (low) {
        j->low_w = isnan(j->low_s) ? j->now_w : fmin(j->low_w, j->now_w);
        j->low_s = isnan(j->low_s) ? now_s : j->low_s;
        return;
    }
    if (now_s - j->low_s < TW_LEARN_PAUSE_S)
        j->dip_w = isnan(j->dip_w) ? j->low_w : DIP_KEEP * j->dip_w + (1.0 - DIP_KEEP) * j->low_w;
    j->low_s = NAN;
}

/* Lower than any pause of its iterations, and not because its limit has only just risen? */
static bool is_deeper_than_dips(const struct tw_ctl_job *j)
{
    return j->now_w < DIP_FRAC * j->dip_w && j->dip_w < LOW_FRAC * j->bind_frac * j->follow_w;
}

/* How does the job draw at this instant? */
static void see_drawing(struct tw_ctl_job *j, double now_s)
{
    double now = j->now_w / j->follow_w, most = j->util[0];
    for (int k = 1; k < TW_JOB_RECENT; k++)
        most = fmax(most, j->util[k]);
    bool low = now < LOW_FRAC * j->bind_frac;
    see_dip(j, now_s, low);
    j->low_looks = low ? j->low_looks + 1 : 0;
    if (j->drawing == TW_JOB_STOPPED) {
        /* half way between what its lent limit lets it show and a cap that binds */
        if (now > 0.5 * (1.0 / TW_DIP_ROOM + j->bind_frac))
            pushes_again(j);
    } else if (now < DEEP_FRAC * j->bind_frac || is_deeper_than_dips(j) || j->low_looks >= STOP_LOOKS ||
               most < SHALLOW_FRAC * j->bind_frac) {
        j->drawing = TW_JOB_STOPPED;
    } else {
        j->drawing = low ? TW_JOB_LOW : TW_JOB_PUSHES;
    }
}

/* One more second of draw over limits, and the mean of it while the cap binds. */
static void see_util(struct tw_ctl_job *j, double now_s, bool capped, bool budget)
{
    memmove(j->util + 1, j->util, (TW_JOB_RECENT - 1) * sizeof *j->util);
    j->util[0] = j->follow_w > 0.0 ? j->draw_w / j->follow_w : 1.0;
    if (!budget) {
        j->drawing = TW_JOB_PUSHES;
        see_dip(j, now_s, j->now_w < LOW_UNCAPPED_FRAC * j->learn.p0_w);
        return;
    }
    see_drawing(j, now_s);
    if (!capped)
        return;
    if (j->drawing != TW_JOB_STOPPED && j->util[0] <= 1.1)
        j->mean_frac = fmin(1.0, MEAN_KEEP * j->mean_frac + (1.0 - MEAN_KEEP) * j->util[0]);
    double now = j->now_w / j->follow_w;
    if (j->drawing == TW_JOB_PUSHES && now <= 1.1)
        j->bind_frac = fmin(1.0, BIND_KEEP * j->bind_frac + (1.0 - BIND_KEEP) * now);
}

static void see_job(struct tw_ctl *c, struct tw_ctl_job *j, const struct tw_job_sample *s)
{
    bool capped = false, all_read = true, in_force = true, held = c->state == TW_SITE_HOLD;
    double draw = 0.0;
    for (size_t k = j->first; k < j->first + j->n; k++) {
        const struct tw_line *line = &c->ledger.line[c->member[k]];
        capped = capped || line->state != TW_LINE_FREE;
        in_force = in_force && line->state == TW_LINE_HELD;
        held = held && line->state != TW_LINE_FREE && line->state != TW_LINE_FAULT;
        all_read = all_read && line->power_us == c->ledger.now_us;
        draw += line->power_w;
    }
    see_draw(c, j);
    see_progress(j, s, c->dt_s);
    see_util(j, 1e-6 * (double)c->ledger.now_us, capped, tw_ctl_wants_glances(c));
    struct tw_learn_seen seen = {c->dt_s, all_read ? draw : (double)NAN, j->units, capped};
    if (j->has_truth)
        return;
    tw_learn_push(&j->learn, &seen);
    if (!j->learn.probing) {
        if (tw_learn_hold_push(&j->learn, &seen, held))
            j->curve = tw_belief_curve(&j->learn.belief);
    } else if (tw_learn_probe_push(&j->learn, &seen, in_force, c->conf.probe_settle_s,
                                   c->conf.probe_measure_s)) {
        j->curve = tw_belief_curve(&j->learn.belief);
        if (!tw_learn_is_curious(&j->learn))
            tw_learn_probe_stop(&j->learn);
    }
}

/* --- change state --------------------------------------------------------------------------------------- */

/* The one place where the site's state changes. */
static void go(struct tw_ctl *c, enum tw_site_event event)
{
    const struct tw_transition *t = tw_site_go(c->state, event);
    if (t->next != (int)c->state)
        trace(c, "site", tw_site_state_name[c->state], tw_site_state_name[t->next], t->why);
    c->state = (enum tw_site_state)t->next;
}

static bool has_references(const struct tw_ctl *c)
{
    for (size_t j = 0; j < c->n_job; j++)
        if (c->job[j].n > 0 && !tw_learn_has_reference(&c->job[j].learn) && !c->job[j].has_truth)
            return false;
    return true;
}

static bool is_curious(const struct tw_ctl *c)
{
    if (!c->conf.probe || c->conf.policy != TW_STEER_CURVE)
        return false;
    for (size_t j = 0; j < c->n_job; j++)
        if (c->job[j].n > 0 && tw_learn_is_curious(&c->job[j].learn))
            return true;
    return false;
}

static void stop_probes(struct tw_ctl *c)
{
    for (size_t j = 0; j < c->n_job; j++)
        if (c->job[j].learn.probing)
            tw_learn_probe_stop(&c->job[j].learn);
}

/* Keep probe_jobs of them busy. */
static void run_probes(struct tw_ctl *c)
{
    unsigned busy = 0;
    for (size_t j = 0; j < c->n_job; j++)
        busy += c->job[j].learn.probing;
    c->probed_s += busy > 0 ? c->dt_s : 0.0;
    for (size_t j = 0; j < c->n_job && busy < c->conf.probe_jobs; j++) {
        struct tw_learn *l = &c->job[j].learn;
        if (c->job[j].n > 0 && !l->probing && tw_learn_is_curious(l)) {
            tw_learn_probe_start(l);
            busy++;
        }
    }
    if (busy == 0)
        go(c, TW_SITE_EV_PROBED);
}

static void event_begin(struct tw_ctl *c, struct tw_ctl_event *e)
{
    stop_probes(c);
    if (c->now) { /* the next came before power was back from the last */
        c->now->state = TW_EVENT_DONE;
        c->now->done_s = c->now_s;
    }
    c->now = e;
    if (isnan(e->baseline_w))
        e->baseline_w = tw_track_mean(&c->track, TW_TRACK_LONG);
    e->target_w = (1.0 - e->cut_frac) * e->baseline_w;
    double floor_w = tw_ctl_floor_w(c);
    if (!(floor_w <= e->target_w)) {
        e->infeasible = true;
        e->target_w = floor_w;
    }
    double rate = tw_ctl_ramp_rate(c->conf.ramp_down_w_s, e->baseline_w);
    c->ramp = (struct tw_ramp){fmax(e->baseline_w, c->site_w), e->target_w, c->now_s, rate};
    e->state = TW_EVENT_RAMP;
    e->start_s = c->now_s;
    e->end_s = tw_ramp_end_s(&c->ramp) + TW_SETTLE_S + e->for_s;
    c->trim_w = 0.0;
    for (size_t j = 0; j < c->n_job; j++)
        c->job[j].lost_units = 0.0;
    go(c, TW_SITE_EV_START);
}

static void event_hold(struct tw_ctl *c, struct tw_ctl_event *e)
{
    e->state = TW_EVENT_HOLD;
    e->hold_s = c->now_s;
    tw_band_init(&c->band, e->target_w, c->conf.band_low_frac, c->conf.band_high_frac, c->now_s);
    go(c, TW_SITE_EV_RAMPED);
}

static void event_release(struct tw_ctl *c, struct tw_ctl_event *e)
{
    double from = tw_ramp_at(&c->ramp, c->now_s);
    c->ramp = (struct tw_ramp){from, INFINITY, c->now_s, tw_ctl_ramp_rate(c->conf.ramp_up_w_s, e->baseline_w)};
    e->state = TW_EVENT_RELEASE;
    e->end_s = c->now_s;
    go(c, TW_SITE_EV_END);
}

static void event_done(struct tw_ctl *c, struct tw_ctl_event *e)
{
    e->state = TW_EVENT_DONE;
    e->done_s = c->now_s;
    c->now = NULL;
    go(c, TW_SITE_EV_RETURNED);
}

/* Nothing binds any more: the budget would let every job draw what it did uncapped, and then some. */
static bool is_back(const struct tw_ctl *c)
{
    double want = c->base_w;
    for (size_t j = 0; j < c->n_job; j++)
        want += fmax(c->job[j].learn.p0_w > 0.0 ? c->job[j].learn.p0_w : 0.0, c->job[j].draw_w);
    for (size_t k = c->n_member; k < c->n_gpu; k++)
        want += fmax(0.0, c->ledger.line[c->member[k]].power_w);
    return tw_ramp_at(&c->ramp, c->now_s) >= 1.02 * want;
}

static void count_event(struct tw_ctl *c, struct tw_ctl_event *e)
{
    if (isnan(e->reached_s) && c->site_w <= e->target_w)
        e->reached_s = c->now_s;
    for (size_t j = 0; j < c->n_job; j++) {
        struct tw_ctl_job *b = &c->job[j];
        double lost = b->learn.t0 * c->dt_s - b->units;
        if (isnan(lost))
            continue;
        b->lost_units += lost;
        e->lost += b->info.weight * lost;
    }
    if (c->state != TW_SITE_HOLD)
        return;
    tw_band_push(&c->band, &c->track, &c->wanted, c->now_s);
    e->min_frac = c->band.min_frac;
    e->max_frac = c->band.max_frac;
    e->means = c->band.n;
    e->means_out = c->band.n_out;
    e->means_free = c->band.n_free;
}

static void drive_event(struct tw_ctl *c)
{
    struct tw_ctl_event *due = tw_ctl_event_due(c);
    if (due && c->state != TW_SITE_STOP && c->state != TW_SITE_RAMP && c->state != TW_SITE_HOLD)
        event_begin(c, due);
    struct tw_ctl_event *e = c->now;
    if (!e || c->state == TW_SITE_STOP)
        return;
    count_event(c, e);
    bool ends = e->cancelled || (c->state == TW_SITE_HOLD && c->now_s >= e->end_s);
    if (ends && (c->state == TW_SITE_RAMP || c->state == TW_SITE_HOLD))
        event_release(c, e);
    else if (c->state == TW_SITE_RAMP && c->now_s >= tw_ramp_end_s(&c->ramp) + TW_SETTLE_S)
        event_hold(c, e);
    else if (c->state == TW_SITE_RELEASE && is_back(c))
        event_done(c, e);
}

static void drive(struct tw_ctl *c)
{
    drive_event(c);
    if (c->state == TW_SITE_LEARN && has_references(c))
        go(c, TW_SITE_EV_REFERENCE);
    bool near = tw_ctl_event_next_s(c) - c->now_s < NEAR_EVENT_S;
    if (c->state == TW_SITE_READY && !near && is_curious(c))
        go(c, TW_SITE_EV_CURIOUS);
    if (c->state == TW_SITE_PROBE && near) {
        stop_probes(c);
        go(c, TW_SITE_EV_PROBED);
    }
    if (c->state == TW_SITE_PROBE)
        run_probes(c);
}

void tw_ctl_step(struct tw_ctl *c, const struct tw_site_sample *sample)
{
    double now = 1e-6 * (double)sample->now_us;
    c->dt_s = isnan(c->now_s) ? 1.0 : fmax(1e-3, now - c->now_s);
    c->now_s = now;
    c->turns++;
    see_site(c, sample);
    for (size_t j = 0; j < c->n_job; j++)
        see_job(c, &c->job[j], &sample->job[j]);
    close_want(c);
    drive(c);
    c->rested_s = c->state == TW_SITE_READY && !is_curious(c) ? c->rested_s + c->dt_s : 0.0;
    tw_ctl_correct(c);
    tw_ctl_decide(c);
}

bool tw_ctl_wants_glances(const struct tw_ctl *c)
{
    return c->state == TW_SITE_RAMP || c->state == TW_SITE_HOLD || c->state == TW_SITE_RELEASE;
}

void tw_ctl_glance(struct tw_ctl *c, const struct tw_site_sample *sample)
{
    tw_ledger_see(&c->ledger, sample);
    for (size_t j = 0; j < c->n_job; j++) {
        see_draw(c, &c->job[j]);
        see_drawing(&c->job[j], 1e-6 * (double)sample->now_us);
    }
    see_want(c);
    tw_ctl_decide(c);
}

/* --- send ----------------------------------------------------------------------------------------------- */

double tw_ctl_past(const struct tw_ctl *c, size_t seconds)
{
    size_t held = (size_t)fmin((double)seconds, floor(c->now_s - c->now->hold_s));
    double before = (double)(seconds - held) * c->now->target_w;
    return before + (held > 0 ? (double)held * tw_track_mean(&c->track, held) : 0.0);
}

double tw_ctl_room_w(const struct tw_ctl *c)
{
    double room = c->conf.hard_limit_w - c->base_w;
    if (c->state == TW_SITE_RAMP || c->state == TW_SITE_RELEASE)
        room = fmin(room, (1.0 + c->conf.over_frac) * tw_ramp_at(&c->ramp, c->now_s) - c->base_w);
    if (c->state != TW_SITE_HOLD)
        return room;
    double target = c->now->target_w;
    room = fmin(room, (1.0 + c->conf.over_frac) * target - c->base_w);
    double past = tw_ctl_past(c, TW_TRACK_SHORT - 1); /* what the last nine seconds leave of ten targets */
    return fmin(room, GUARD_FRAC * TW_TRACK_SHORT * target - past - c->base_w);
}

double tw_ctl_charge_w(const struct tw_ctl *c)
{
    return tw_ledger_sum(&c->ledger);
}

double tw_ctl_want(const struct tw_ctl *c, size_t i)
{
    return isnan(c->want_w[i]) ? c->ledger.line[i].found_w : c->want_w[i];
}

/* Asked for already, or tried a moment ago without success? */
static bool is_settled(const struct tw_ctl *c, size_t i, double limit_w)
{
    const struct tw_line *line = &c->ledger.line[i];
    bool same = fabs(limit_w - line->limit_w) < STEP_W && isnan(line->flight_w);
    bool asked = fabs(limit_w - line->asked_w) < STEP_W && !isnan(line->flight_w);
    bool soon =
        line->state == TW_LINE_FAULT && c->ledger.now_us - line->asked_us < (int64_t)(1e6 * ASK_AGAIN_S);
    return same || asked || soon;
}

static size_t send(struct tw_ctl *c, size_t i, double limit_w, struct tw_ctl_action *ret)
{
    tw_ledger_ask(&c->ledger, i, limit_w);
    *ret = (struct tw_ctl_action){(uint32_t)i, limit_w, c->reason[i]};
    return 1;
}

size_t tw_ctl_actions(struct tw_ctl *c, struct tw_ctl_action *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_gpu; i++) {
        const struct tw_line *line = &c->ledger.line[i];
        double high = line->flight_w > line->limit_w ? line->flight_w : line->limit_w;
        if (tw_ctl_want(c, i) < high && !is_settled(c, i, tw_ctl_want(c, i)))
            n += send(c, i, tw_ctl_want(c, i), ret + n);
    }
    double rise = 0.0, room = tw_ctl_room_w(c) - tw_ctl_charge_w(c);
    for (size_t i = 0; i < c->n_gpu; i++)
        rise += fmax(0.0, tw_ctl_want(c, i) - tw_line_charge(&c->ledger, i));
    if (!(room >= 0.0))
        return n;
    double part = rise > room ? room / rise : 1.0;
    for (size_t i = 0; i < c->n_gpu; i++) {
        const struct tw_line *line = &c->ledger.line[i];
        double charge = tw_line_charge(&c->ledger, i), step = part * (tw_ctl_want(c, i) - charge);
        bool last = part >= 1.0 && isnan(c->want_w[i]) && line->state != TW_LINE_FREE; /* however small */
        if ((step >= STEP_W || last) && (last || !is_settled(c, i, charge + step)))
            n += send(c, i, last ? line->found_w : charge + step, ret + n);
    }
    return n;
}

void tw_ctl_read_back(struct tw_ctl *c, uint32_t gpu, double requested_w, double enforced_w)
{
    tw_ledger_read_back(&c->ledger, gpu, requested_w, enforced_w);
}

void tw_ctl_refused(struct tw_ctl *c, uint32_t gpu)
{
    tw_ledger_refused(&c->ledger, gpu);
}

bool tw_ctl_awaits(const struct tw_ctl *c, uint32_t gpu)
{
    return !isnan(c->ledger.line[gpu].flight_w);
}

void tw_ctl_leave(struct tw_ctl *c)
{
    stop_probes(c);
    if (c->now) {
        c->now->cancelled = true;
        c->now->state = TW_EVENT_DONE;
        c->now->done_s = c->now_s;
        c->now = NULL;
    }
    go(c, TW_SITE_EV_LEAVE);
    tw_ctl_decide(c);
}

size_t tw_ctl_not_restored(const struct tw_ctl *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_gpu; i++)
        n += c->ledger.line[i].state != TW_LINE_FREE;
    return n;
}

bool tw_ctl_has_left(const struct tw_ctl *c)
{
    return c->state == TW_SITE_STOP && tw_ctl_not_restored(c) == 0;
}

double tw_ctl_rested_s(const struct tw_ctl *c)
{
    return c->rested_s;
}

enum tw_site_state tw_ctl_state(const struct tw_ctl *c)
{
    return c->state;
}

double tw_ctl_site_w(const struct tw_ctl *c)
{
    return c->site_w;
}

double tw_ctl_probe_lost(const struct tw_ctl *c, double *ret_seconds)
{
    double lost = 0.0;
    for (size_t j = 0; j < c->n_job; j++)
        lost += c->job[j].info.weight * c->job[j].learn.lost_units;
    *ret_seconds = c->probed_s;
    return lost;
}
