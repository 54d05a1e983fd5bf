/* SPDX-License-Identifier: Apache-2.0 */
/* What every limit shall be.
 *
 * In an event the budget of the moment is split twice over: first what each job shall draw (share.h), from its
 * curve and from what it wants now; then the limits that make it draw that. A job that pushes against its cap
 * draws a little less than its limits on average (bind_frac); one that dips wants no more than it draws, and
 * what it leaves goes to the others by the same split. Measured power corrects what is left. */
#include "ctl/ctl_int.h"

#include <math.h>

#define SETTLE_GAIN 0.20     /* the same between ramp and hold, of the last second */
#define TRIM_GAIN 0.05       /* of the error of the ten-second mean, per second */
#define TRIM_ERR_FRAC 0.005  /* an error larger than this share of the target is a dip, and no bias */
#define TRIM_MAX_FRAC 0.02   /* of the target */
#define LOW_SPARE_FRAC 0.004 /* kept clear of the band's lower end */
#define HIGH_AIM_FRAC 1.006  /* bounds the draw of the next AHEAD_S seconds smoothly, before rule 3 does */
#define AHEAD_S 3
#define CATCH_MAX_FRAC 0.06 /* of the target, in one second */
#define HIGH_FRAC 1.02      /* a job is worth no more than this share of its uncapped draw */
#define SCALINGS 8

static void leave_as_found(struct tw_ctl *c)
{
    for (size_t i = 0; i < c->n_gpu; i++) {
        c->want_w[i] = NAN;
        c->reason[i] = c->state == TW_SITE_STOP ? TW_REASON_RELEASE : TW_REASON_UNCAPPED;
    }
    for (size_t j = 0; j < c->n_job; j++)
        c->job[j].want_cap_w = NAN;
}

static double clip(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* The same limit for all GPUs of a job, inside what each accepts. */
static void cap_job(struct tw_ctl *c, struct tw_ctl_job *j, double cap_w, enum tw_reason reason)
{
    j->want_cap_w = cap_w;
    j->reason = reason;
    for (size_t k = j->first; k < j->first + j->n; k++) {
        uint32_t i = c->member[k];
        const struct tw_line *line = &c->ledger.line[i];
        if (line->blind) {
            c->want_w[i] = clip(fmin(cap_w, line->safe_w), line->min_w, line->max_w);
            c->reason[i] = TW_REASON_BLIND;
            continue;
        }
        c->want_w[i] = clip(cap_w, line->min_w, line->max_w);
        c->reason[i] =
            c->want_w[i] <= line->min_w && reason != TW_REASON_PROBE ? TW_REASON_DEVICE_FLOOR : reason;
    }
}

static void decide_probe(struct tw_ctl *c)
{
    leave_as_found(c);
    for (size_t j = 0; j < c->n_job; j++) {
        struct tw_ctl_job *b = &c->job[j];
        if (b->learn.probing)
            cap_job(c, b, tw_learn_probe_w(&b->learn) / (double)b->n, TW_REASON_PROBE);
    }
}

/* Draw over limits that a job will have under the limits meant for it. */
static double draw_per_cap(const struct tw_ctl_job *j)
{
    return j->drawing == TW_JOB_STOPPED ? 1.0 / TW_DIP_ROOM : j->mean_frac;
}

static double reference_w(const struct tw_ctl_job *j)
{
    double p0 = j->learn.p0_w > 0.0 ? j->learn.p0_w : j->draw_w;
    return fmax(1.0, p0 * (double)j->n_live / (double)j->n);
}

/* What the split may give a job. */
static void offer(const struct tw_ctl *c, const struct tw_ctl_job *j, struct tw_alloc_job *s)
{
    double low = 0.0, high = 0.0;
    for (size_t k = j->first; k < j->first + j->n; k++) {
        const struct tw_line *line = &c->ledger.line[c->member[k]];
        if (!tw_line_is_live(line))
            continue;
        low += line->min_w;
        high += line->max_w;
    }
    double frac = draw_per_cap(j), worth = j->info.weight * j->learn.t0;
    *s = (struct tw_alloc_job){.p0_w = reference_w(j), .gpus = (double)j->n, .curve = &j->curve};
    s->floor_w = low * frac;
    s->ceiling_w = clip(j->drawing != TW_JOB_PUSHES ? j->now_w : HIGH_FRAC * s->p0_w, s->floor_w,
                        fmax(s->floor_w, high * frac));
    s->weight = worth > 0.0 ? worth : 1e-9; /* nothing is known of what it does */
    s->stray_frac = j->has_truth ? (double)INFINITY : tw_belief_stray(&j->learn.belief, 1.0 - TW_BELIEF_CUT);
}

/* GPUs that the split cannot move: those of no job (their lowest limit is more than they want), the blind, and
 * the ones that do not obey. They are taken as they draw. */
static double fixed_w(struct tw_ctl *c)
{
    double w = 0.0;
    for (size_t k = 0; k < c->n_gpu; k++) {
        uint32_t i = c->member[k];
        const struct tw_line *line = &c->ledger.line[i];
        if (k >= c->n_member) {
            c->want_w[i] = line->min_w;
            c->reason[i] = TW_REASON_DEVICE_FLOOR;
            w += line->blind ? tw_line_charge(&c->ledger, i) : fmax(0.0, line->power_w);
        } else if (!tw_line_is_live(line)) {
            w += line->blind ? tw_line_charge(&c->ledger, i) : fmax(0.0, line->power_w);
        }
    }
    return w;
}

/* The limits of the live GPUs of jobs for the shares as they are; their sum. */
static double limits_of_shares(struct tw_ctl *c)
{
    double sum = 0.0;
    for (size_t j = 0; j < c->n_job; j++) {
        struct tw_ctl_job *b = &c->job[j];
        b->share_w = c->share_w[j];
        if (b->n_live == 0)
            continue;
        if (b->drawing == TW_JOB_LOW)
            b->want_cap_w = b->cap_sum_w / (double)b->n_live; /* stays where it is */
        else
            b->want_cap_w = b->share_w / draw_per_cap(b) / (double)b->n_live;
        sum += (double)b->n_live * b->want_cap_w;
    }
    return sum;
}

/* The pauses of iterations are filled by the other jobs as they come, so that limits are meant for jobs that
 * push: by how much that is more than the means that shares are in. */
static double filled(const struct tw_ctl *c)
{
    double push = 0.0, mean = 0.0;
    for (size_t j = 0; j < c->n_job; j++) {
        const struct tw_ctl_job *b = &c->job[j];
        if (b->drawing == TW_JOB_STOPPED || b->n_live == 0)
            continue;
        push += reference_w(b) * b->bind_frac / b->mean_frac;
        mean += reference_w(b);
    }
    return mean > 0.0 ? fmax(1.0, push / mean) : 1.0;
}

/* What is left when every job has all it wants goes to all alike, so that a job that comes back from a pause
 * finds room. */
static void spread(struct tw_ctl *c, double left_w)
{
    double lack = 0.0;
    for (size_t j = 0; j < c->n_job; j++)
        lack += fmax(0.0, reference_w(&c->job[j]) - c->share_w[j]);
    for (size_t j = 0; j < c->n_job && lack > 0.0; j++)
        c->share_w[j] += fmin(1.0, left_w / lack) * fmax(0.0, reference_w(&c->job[j]) - c->share_w[j]);
}

static enum tw_reason reason_of(const struct tw_ctl *c, const struct tw_ctl_job *j)
{
    if (c->state == TW_SITE_RAMP)
        return TW_REASON_RAMP;
    if (c->state == TW_SITE_RELEASE)
        return TW_REASON_RELEASE;
    if (j->drawing == TW_JOB_STOPPED)
        return TW_REASON_LENT;
    bool known = j->has_truth || j->learn.belief.n > 0;
    return c->conf.policy == TW_STEER_EQUAL || !known ? TW_REASON_EVENT_EQUAL : TW_REASON_EVENT_SHARE;
}

/* Do the jobs want less than the target, so that power lies under it whatever the limits are? */
static bool is_free(const struct tw_ctl *c)
{
    double want = c->base_w;
    for (size_t j = 0; j < c->n_job; j++) {
        const struct tw_ctl_job *b = &c->job[j];
        want += b->drawing == TW_JOB_STOPPED ? b->now_w : reference_w(b);
    }
    for (size_t k = c->n_member; k < c->n_gpu; k++)
        want += fmax(0.0, c->ledger.line[c->member[k]].power_w);
    return want < c->now->target_w;
}

/* The bias of what was expected goes into trim_w: at once between the end of a ramp and the hold, slowly in the
 * hold. */
void tw_ctl_correct(struct tw_ctl *c)
{
    if (c->state != TW_SITE_HOLD && !(c->state == TW_SITE_RAMP && c->now_s >= tw_ramp_end_s(&c->ramp) + 1.0))
        return;
    double target = c->now->target_w, goal = c->conf.goal_frac * target;
    bool holds = c->state == TW_SITE_HOLD;
    if (holds && is_free(c))
        c->free_s = c->now_s;
    double miss = goal - tw_track_mean(&c->track, holds ? TW_TRACK_SHORT : 1);
    double most = (holds ? TRIM_ERR_FRAC : TRIM_MAX_FRAC) * target, gain = holds ? TRIM_GAIN : SETTLE_GAIN;
    c->trim_w =
        clip(c->trim_w + gain * clip(miss, -most, most), -TRIM_MAX_FRAC * target, TRIM_MAX_FRAC * target);
}

/* The draw to aim at. In a hold, a ten-second mean that threatens to leave the band below is filled up as far
 * as that, and no further: what is filled up in one second is missing in the mean ten seconds later, and all of
 * it would echo for ever. A constant draw shall fit for the next seconds, so that rule 3 never comes down at
 * once. */
static double aim(const struct tw_ctl *c)
{
    double draw = c->conf.goal_frac * tw_ramp_at(&c->ramp, c->now_s) + c->trim_w;
    if (c->state != TW_SITE_HOLD)
        return draw;
    double target = c->now->target_w, low = c->conf.band_low_frac + LOW_SPARE_FRAC;
    double lack =
        TW_TRACK_SHORT * low * target - tw_ctl_past(c, TW_TRACK_SHORT - 1) - c->conf.goal_frac * target;
    draw += clip(lack, 0.0, CATCH_MAX_FRAC * target);
    double high = TW_TRACK_SHORT * HIGH_AIM_FRAC * target;
    for (size_t h = 2; h <= AHEAD_S; h++)
        draw = fmin(draw, (high - tw_ctl_past(c, TW_TRACK_SHORT - h)) / (double)h);
    return draw;
}

static void decide_event(struct tw_ctl *c)
{
    double draw = (aim(c) - c->base_w - fixed_w(c)) / filled(c);
    for (size_t j = 0; j < c->n_job; j++)
        offer(c, &c->job[j], &c->share[j]);
    double room = tw_ctl_room_w(c);
    for (size_t i = 0; i < c->n_gpu; i++)
        if (c->gpu[i].job >= c->n_job || !tw_line_is_live(&c->ledger.line[i]))
            room -= tw_line_charge(&c->ledger, i);
    for (int k = 0; k < SCALINGS; k++) {
        tw_share_split(c->conf.policy, c->share, c->n_job, draw, &c->scratch, c->share_w);
        double used = 0.0;
        for (size_t j = 0; j < c->n_job; j++)
            used += c->share_w[j];
        if (draw > used)
            spread(c, draw - used);
        double limits = limits_of_shares(c);
        if (limits <= room)
            break;
        draw = fmin(draw, used) - (limits - room);
    }
    for (size_t j = 0; j < c->n_job; j++)
        if (c->job[j].n > 0)
            cap_job(c, &c->job[j], c->job[j].n_live ? c->job[j].want_cap_w : 0.0, reason_of(c, &c->job[j]));
}

/* Whatever was decided: the limits of all GPUs together fit under the hard limit. What each has above its
 * lowest is scaled; GPUs that do not obey, or are not seen, are charged as they are. */
static void fit_hard_limit(struct tw_ctl *c)
{
    double fixed = c->base_w, above = 0.0;
    for (size_t i = 0; i < c->n_gpu; i++) {
        const struct tw_line *line = &c->ledger.line[i];
        bool live = tw_line_is_live(line);
        fixed += live ? line->min_w : tw_line_charge(&c->ledger, i);
        above += live ? tw_ctl_want(c, i) - line->min_w : 0.0;
    }
    double room = fmax(0.0, c->conf.hard_limit_w - fixed);
    if (above <= room)
        return;
    for (size_t i = 0; i < c->n_gpu; i++) {
        const struct tw_line *line = &c->ledger.line[i];
        if (!tw_line_is_live(line))
            continue;
        c->want_w[i] = line->min_w + room / above * (tw_ctl_want(c, i) - line->min_w);
        if (c->reason[i] == TW_REASON_UNCAPPED)
            c->reason[i] = TW_REASON_HARD_LIMIT;
    }
}

void tw_ctl_decide(struct tw_ctl *c)
{
    if (c->conf.policy == TW_STEER_NONE) {
        leave_as_found(c);
    } else if (c->state == TW_SITE_RAMP || c->state == TW_SITE_HOLD || c->state == TW_SITE_RELEASE) {
        decide_event(c); /* inside tw_ctl_room_w, which knows the hard limit */
    } else {
        if (c->state == TW_SITE_PROBE)
            decide_probe(c);
        else
            leave_as_found(c);
        if (isinf(c->conf.hard_limit_w) == 0)
            fit_hard_limit(c);
    }
}
