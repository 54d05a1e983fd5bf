/* SPDX-License-Identifier: Apache-2.0 */
/* What every GPU may draw at worst. */
#include "ctl/ledger.h"

#include <assert.h>
#include <math.h>

#define SAME_W 0.51     /* devices round to a watt; two limits this close are one */
#define OVER_FRAC 1.03  /* a draw this far over the limit is no noise */
#define TAKE_US 3000000 /* a limit that reads back differently for this long was not taken */
#define SETTLE_S 0.3    /* time constant with which a device's draw follows a raised limit */

size_t tw_ledger_bytes(size_t n)
{
    return tw_arena_need(n, sizeof(struct tw_line));
}

enum tw_err tw_ledger_init(struct tw_ledger *l, struct tw_arena *arena, const struct tw_gpu_info *gpu, size_t n,
                           double safe_frac, double blind_after_s, struct tw_why *why)
{
    struct tw_line *line = TW_ARENA_ARRAY(arena, struct tw_line, n);
    if (!line)
        return tw_fail(why, TW_ENOMEM, "no room for the limits of %zu GPUs", n);
    for (size_t i = 0; i < n; i++) {
        const struct tw_gpu_info *g = &gpu[i];
        if (!(g->limit_min_w > 0.0 && g->limit_min_w <= g->limit_max_w && g->limit_default_w <= g->limit_max_w))
            return tw_fail(why, TW_EINVAL, "%s: limits of %g to %g W, %g W by default, make no sense", g->uuid,
                           g->limit_min_w, g->limit_max_w, g->limit_default_w);
        line[i] = (struct tw_line){.min_w = g->limit_min_w,
                                   .max_w = g->limit_max_w,
                                   .default_w = g->limit_default_w,
                                   .found_w = g->limit_default_w,
                                   .safe_w = fmax(g->limit_min_w, safe_frac * g->limit_default_w),
                                   .limit_w = g->limit_default_w,
                                   .follow_w = g->limit_default_w,
                                   .asked_w = NAN,
                                   .flight_w = NAN,
                                   .power_w = NAN,
                                   .state = TW_LINE_FREE};
    }
    *l = (struct tw_ledger){.line = line, .n = n, .blind_after_us = (int64_t)(1e6 * blind_after_s)};
    return TW_OK;
}

static void go(struct tw_ledger *l, size_t i, enum tw_line_event event)
{
    enum tw_line_state from = l->line[i].state;
    const struct tw_transition *t = tw_line_go(from, event);
    l->line[i].state = (enum tw_line_state)t->next;
    if (t->next != (int)from && l->trace)
        l->trace(l->trace_ctx, i, t, from);
}

void tw_ledger_found(struct tw_ledger *l, size_t i, double limit_w)
{
    if (limit_w > 0.0)
        l->line[i].found_w = l->line[i].limit_w = limit_w;
}

void tw_ledger_see(struct tw_ledger *l, const struct tw_site_sample *s)
{
    double keep = exp(-1e-6 * (double)(s->now_us - l->now_us) / SETTLE_S);
    l->now_us = s->now_us;
    for (size_t i = 0; i < l->n; i++) {
        struct tw_line *line = &l->line[i];
        double power = (double)s->gpu[i].ch[TW_CH_POWER_W];
        if (s->gpu[i].fresh && power >= 0.0) {
            double instant = (double)s->gpu[i].ch[TW_CH_POWER_INSTANT_W];
            line->power_w = power;
            line->instant_w = instant >= 0.0 ? instant : power;
            line->power_us = s->gpu[i].time_us;
        }
        line->follow_w = fmin(line->limit_w, line->limit_w + keep * (line->follow_w - line->limit_w));
        line->blind = l->now_us - line->power_us > l->blind_after_us;
    }
}

double tw_line_charge(const struct tw_ledger *l, size_t i)
{
    const struct tw_line *line = &l->line[i];
    double charge = line->limit_w;
    if (line->flight_w > charge)
        charge = line->flight_w;
    if (line->state == TW_LINE_FAULT && line->asked_w > charge) /* it may still take it, late */
        charge = line->asked_w;
    if (line->power_w > OVER_FRAC * line->limit_w && line->power_w > charge)
        charge = line->power_w;
    if (line->blind && line->safe_w > charge)
        charge = line->safe_w;
    if (line->blind && l->now_us - line->limit_us > l->blind_after_us && line->default_w > charge)
        charge = line->default_w;
    return charge;
}

double tw_ledger_sum(const struct tw_ledger *l)
{
    double sum = 0.0;
    for (size_t i = 0; i < l->n; i++)
        sum += tw_line_charge(l, i);
    return sum;
}

void tw_ledger_ask(struct tw_ledger *l, size_t i, double limit_w)
{
    struct tw_line *line = &l->line[i];
    assert(limit_w >= line->min_w - SAME_W && limit_w <= line->max_w + SAME_W);
    /* two in flight: the higher one counts until the last is read back */
    line->flight_w = line->flight_w > limit_w ? line->flight_w : limit_w;
    line->asked_w = limit_w;
    line->asked_us = l->now_us;
    go(l, i,
       fabs(limit_w - line->found_w) <= SAME_W ? TW_LINE_EV_ASK_FOUND
       : limit_w < line->limit_w               ? TW_LINE_EV_ASK_LOWER
                                               : TW_LINE_EV_ASK_RAISE);
}

void tw_ledger_read_back(struct tw_ledger *l, size_t i, double requested_w, double enforced_w)
{
    struct tw_line *line = &l->line[i];
    double limit = requested_w > enforced_w ? requested_w : enforced_w;
    if (!(limit > 0.0))
        return;
    line->limit_w = limit;
    line->limit_us = l->now_us;
    double wanted = isnan(line->asked_w) ? line->found_w : line->asked_w;
    if (fabs(limit - wanted) <= SAME_W) {
        line->flight_w = NAN;
        go(l, i, fabs(limit - line->found_w) <= SAME_W ? TW_LINE_EV_CONFIRM_FOUND : TW_LINE_EV_CONFIRM);
    } else if (isnan(line->flight_w) || l->now_us - line->asked_us > TAKE_US) {
        /* A raise that did not come may still come late: it counts until another limit is read back as asked.
         */
        line->flight_w = line->flight_w > limit ? line->flight_w : (double)NAN;
        go(l, i, TW_LINE_EV_DIFFER);
    }
}

void tw_ledger_refused(struct tw_ledger *l, size_t i)
{
    go(l, i, TW_LINE_EV_REFUSE); /* what was asked stays in flight: a failed call may still have arrived */
}

bool tw_line_is_live(const struct tw_line *line)
{
    return !line->blind && line->state != TW_LINE_FAULT;
}
