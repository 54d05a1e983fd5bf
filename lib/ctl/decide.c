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
#define TRIM_MAX_FRAC 0.006  /* of the target */
#define LOW_SPARE_FRAC 0.006 /* kept clear of the band's lower end */
#define HIGH_AIM_FRAC 1.006  /* bounds the draw of the next AHEAD_S seconds smoothly, before rule 3 does */
#define AHEAD_S 3
#define CATCH_MAX_FRAC 0.06 /* of the target, in one second */
#define HIGH_FRAC 1.02      /* a job is worth no more than this share of its uncapped draw */
#define STRAY_GAIN 3.0 /* over what a belief allows: a hold measures its own split and mends it (learn.h) */
#define SCALINGS 12
#define CLOSE_FRAC 5e-4 /* of the draw: near enough */

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

static double reference_w(const struct tw_ctl_job *j)
{
    double p0 = j->learn.p0_w > 0.0 ? j->learn.p0_w : j->draw_w;
    return fmax(1.0, p0 * (double)j->n_live / (double)j->n);
}

/* What the split may give a job. */
static void offer(const struct tw_ctl_job *j, struct tw_alloc_job *s)
{
    double low = j->low_sum_w, high = j->high_sum_w;
    double worth = j->info.weight * j->learn.t0;
    *s = (struct tw_alloc_job){.p0_w = reference_w(j), .gpus = (double)j->n, .curve = &j->curve};
    if (j->drawing == TW_JOB_PUSHES) {
        s->floor_w = low * j->mean_frac;
        s->ceiling_w = clip(HIGH_FRAC * s->p0_w, s->floor_w, fmax(s->floor_w, high * j->mean_frac));
    } else { /* LOW: it draws that whatever its limit is */
        s->ceiling_w = j->now_w;
        s->floor_w = j->drawing == TW_JOB_LOW ? j->now_w : fmin(low * j->bind_frac, j->now_w);
    }
    s->weight = worth > 0.0 ? worth : 1e-9; /* nothing is known of what it does */
    s->stray_frac =
        j->has_truth ? (double)INFINITY : STRAY_GAIN * tw_belief_stray(&j->learn.belief, 1.0 - TW_BELIEF_CUT);
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

struct outcome {
    double draw_w, limit_w; /* at this instant, and the sum of limits */
};

/* The limits of the live GPUs of jobs for the shares as they are, and what they will draw under them now: the
 * pauses of iterations, which are in the means that shares are in, are filled by the other jobs as they come.
 */
static struct outcome limits_of_shares(struct tw_ctl *c)
{
    struct outcome o = {0.0, 0.0};
    for (size_t j = 0; j < c->n_job; j++) {
        struct tw_ctl_job *b = &c->job[j];
        b->share_w = c->share_w[j];
        if (b->n_live == 0)
            continue;
        double cap = b->cap_sum_w, draw = b->share_w; /* LOW: its limit stays where it is */
        if (b->drawing == TW_JOB_PUSHES) {
            cap = b->share_w / b->mean_frac;
            draw = b->bind_frac * cap;
        } else if (b->drawing == TW_JOB_STOPPED) {
            cap = b->share_w < 0.99 * b->now_w ? b->share_w / b->bind_frac : TW_DIP_ROOM * b->now_w;
            cap = fmax(b->low_sum_w, cap);
        }
        b->want_cap_w = cap / (double)b->n_live;
        o.limit_w += cap;
        o.draw_w += draw;
    }
    return o;
}

/* Every job has all it wants, and limits may still rise by left_w: those that have stopped get it, so that one
 * that comes back finds room. */
static void spread(struct tw_ctl *c, double left_w)
{
    double lack = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t j = 0; j < c->n_job; j++) {
            struct tw_ctl_job *b = &c->job[j];
            double more = reference_w(b) / b->mean_frac - b->want_cap_w * (double)b->n_live;
            if (b->drawing != TW_JOB_STOPPED || b->n_live == 0 || !(more > 0.0))
                continue;
            if (pass == 0)
                lack += more;
            else
                b->want_cap_w += fmin(1.0, left_w / lack) * more / (double)b->n_live;
        }
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

double tw_ctl_wanted_w(const struct tw_ctl *c)
{
    double want = c->base_w;
    for (size_t j = 0; j < c->n_job; j++) {
        const struct tw_ctl_job *b = &c->job[j];
        bool pushes = b->drawing == TW_JOB_PUSHES && b->n_live > 0;
        want += pushes ? fmin(reference_w(b) * b->bind_frac / b->mean_frac, b->high_sum_w) : b->now_w;
    }
    for (size_t k = 0; k < c->n_gpu; k++) {
        const struct tw_line *line = &c->ledger.line[c->member[k]];
        if (k >= c->n_member || !tw_line_is_live(line))
            want += fmax(0.0, line->power_w);
    }
    return want;
}

/* The bias of what was expected goes into trim_w: at once between the end of a ramp and the hold, slowly in the
 * hold. */
void tw_ctl_correct(struct tw_ctl *c)
{
    if (c->state != TW_SITE_HOLD && !(c->state == TW_SITE_RAMP && c->now_s >= tw_ramp_end_s(&c->ramp) + 1.0))
        return;
    double target = c->now->target_w, goal = c->conf.goal_frac * target;
    bool holds = c->state == TW_SITE_HOLD;
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

/* A split whose draw at this instant is `draw_w`, or as near as limits that add up to `room_w` come to it. The
 * split is in means, draw and limits follow from it job by job: a few steps find the place. */
static void split(struct tw_ctl *c, double draw_w, double room_w)
{
    double budget = draw_w;
    for (int k = 0; k < SCALINGS; k++) {
        tw_share_split(c->conf.policy, c->share, c->n_job, budget, &c->scratch, c->share_w);
        struct outcome o = limits_of_shares(c);
        double over = fmax(o.draw_w - draw_w, o.limit_w - room_w), used = 0.0;
        if (fabs(over) < CLOSE_FRAC * draw_w)
            return;
        for (size_t j = 0; j < c->n_job; j++)
            used += c->share_w[j];
        if (over < 0.0 && used < budget) { /* each has all it wants */
            spread(c, room_w - o.limit_w);
            return;
        }
        budget = fmin(budget, used) - over;
    }
}

static void decide_event(struct tw_ctl *c)
{
    for (size_t j = 0; j < c->n_job; j++)
        offer(&c->job[j], &c->share[j]);
    double room = tw_ctl_room_w(c), draw = aim(c) - c->base_w - fixed_w(c);
    for (size_t i = 0; i < c->n_gpu; i++)
        if (c->gpu[i].job >= c->n_job || !tw_line_is_live(&c->ledger.line[i]))
            room -= tw_line_charge(&c->ledger, i);
    split(c, draw, room);
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
