/* SPDX-License-Identifier: Apache-2.0 */
/* The list of power events. */
#include "ctl/ctl_int.h"

#include <math.h>
#include <string.h>

#define RAMP_FRAC_S 0.01 /* of the baseline per second, where no ramp limit is set */

double tw_ctl_ramp_rate(double conf_w_s, double baseline_w)
{
    return isnan(conf_w_s) ? RAMP_FRAC_S * baseline_w : conf_w_s;
}

double tw_ctl_floor_w(const struct tw_ctl *c)
{
    double w = c->base_w;
    for (size_t i = 0; i < c->n_gpu; i++)
        w += c->ledger.line[i].min_w;
    return w;
}

double tw_ctl_deepest_cut(const struct tw_ctl *c)
{
    double mean = tw_track_mean(&c->track, TW_TRACK_LONG);
    return fmax(0.0, 1.0 - tw_ctl_floor_w(c) / mean);
}

static bool is_over(const struct tw_ctl_event *e)
{
    return e->state == TW_EVENT_DONE;
}

/* Waiting events are judged by the baseline of now; both ramps count as part of the event. */
static double length_s(const struct tw_ctl *c, double cut_frac, double for_s)
{
    double baseline = tw_track_mean(&c->track, TW_TRACK_LONG);
    if (isnan(baseline))
        return for_s;
    double way = cut_frac * baseline;
    return for_s + way / tw_ctl_ramp_rate(c->conf.ramp_down_w_s, baseline) +
           way / tw_ctl_ramp_rate(c->conf.ramp_up_w_s, baseline);
}

/* A place in the list: at its end, after the oldest one that is over was dropped if there is no room. */
static struct tw_ctl_event *place(struct tw_ctl *c)
{
    if (c->n_event == TW_CTL_EVENTS) {
        size_t old = 0;
        while (old < c->n_event && !is_over(&c->event[old]))
            old++;
        if (old == c->n_event)
            return NULL;
        memmove(&c->event[old], &c->event[old + 1], (c->n_event - old - 1) * sizeof *c->event);
        c->n_event--;
        if (c->now > &c->event[old])
            c->now--;
    }
    return &c->event[c->n_event++];
}

enum tw_err tw_ctl_event_add(struct tw_ctl *c, const struct tw_ctl_ask *ask, uint32_t *ret_id,
                             struct tw_why *why)
{
    if (!(ask->cut_frac >= 0.0 && ask->cut_frac <= 1.0))
        return tw_fail(why, TW_EINVAL, "a cut lies between 0 and 100 %%, not %g %%", 100.0 * ask->cut_frac);
    if (!(ask->for_s > 0.0) || !(ask->in_s >= 0.0) || isinf(ask->for_s) || isinf(ask->in_s))
        return tw_fail(why, TW_EINVAL, "an event lasts more than 0 s and begins now or later");
    double deepest = tw_ctl_deepest_cut(c);
    if (ask->cut_frac > deepest)
        return tw_fail(why, TW_EINFEASIBLE,
                       "a cut of %.4g %% is below what the devices accept (lowest limits sum to %.0f W); the "
                       "nearest is %.4g %%",
                       100.0 * ask->cut_frac, tw_ctl_floor_w(c), 1e-2 * floor(1e4 * deepest));
    double start = c->now_s + ask->in_s, end = start + length_s(c, ask->cut_frac, ask->for_s);
    for (size_t i = 0; i < c->n_event; i++) {
        const struct tw_ctl_event *e = &c->event[i];
        if (!is_over(e) && start < e->start_s + length_s(c, e->cut_frac, e->for_s) && end > e->start_s)
            return tw_fail(why, TW_EINFEASIBLE, "overlaps event %u, which runs from %.0f s to about %.0f s",
                           e->id, e->start_s, e->start_s + length_s(c, e->cut_frac, e->for_s));
    }
    struct tw_ctl_event *e = place(c);
    if (!e)
        return tw_fail(why, TW_ELIMIT, "%d events wait already; cancel one", TW_CTL_EVENTS);
    *e = (struct tw_ctl_event){.id = ++c->next_id,
                               .state = TW_EVENT_WAITING,
                               .cut_frac = ask->cut_frac,
                               .for_s = ask->for_s,
                               .start_s = start,
                               .hold_s = NAN,
                               .end_s = end,
                               .done_s = NAN,
                               .baseline_w = ask->baseline_w,
                               .target_w = NAN,
                               .reached_s = NAN,
                               .min_frac = NAN,
                               .max_frac = NAN};
    *ret_id = e->id;
    return TW_OK;
}

enum tw_err tw_ctl_event_cancel(struct tw_ctl *c, uint32_t id, struct tw_why *why)
{
    for (size_t i = 0; i < c->n_event; i++) {
        struct tw_ctl_event *e = &c->event[i];
        if (e->id != id)
            continue;
        if (is_over(e) || e->cancelled)
            return tw_fail(why, TW_EINVAL, "event %u is over", id);
        e->cancelled = true;
        if (e->state == TW_EVENT_WAITING)
            e->state = TW_EVENT_DONE;
        return TW_OK; /* a running one is ended by the next step */
    }
    return tw_fail(why, TW_ENOENT, "there is no event %u", id);
}

const struct tw_ctl_event *tw_ctl_events(const struct tw_ctl *c, size_t *ret_n)
{
    *ret_n = c->n_event;
    return c->event;
}

struct tw_ctl_event *tw_ctl_event_due(struct tw_ctl *c)
{
    for (size_t i = 0; i < c->n_event; i++)
        if (c->event[i].state == TW_EVENT_WAITING && c->event[i].start_s <= c->now_s)
            return &c->event[i];
    return NULL;
}

double tw_ctl_event_next_s(const struct tw_ctl *c)
{
    double next = INFINITY;
    for (size_t i = 0; i < c->n_event; i++)
        if (c->event[i].state == TW_EVENT_WAITING)
            next = fmin(next, c->event[i].start_s);
    return next;
}
