/* SPDX-License-Identifier: Apache-2.0 */
/* The lease of one GPU. The table is the design; the functions below it keep the numbers. */
#include "ctl/lease.h"

#include <assert.h>
#include <math.h>

const char *const tw_lease_state_name[TW_LEASE_STATES] = {
#define NAME(id, name, text) [TW_LEASE_##id] = (name),
    TW_LEASE_STATE_MAP(NAME)
#undef NAME
};
const char *const tw_lease_state_text[TW_LEASE_STATES] = {
#define TEXT(id, name, text) [TW_LEASE_##id] = (text),
    TW_LEASE_STATE_MAP(TEXT)
#undef TEXT
};
const char *const tw_lease_event_name[TW_LEASE_EVENTS] = {
#define NAME(id, name, text) [TW_LEASE_EV_##id] = (name),
    TW_LEASE_EVENT_MAP(NAME)
#undef NAME
};

/* clang-format off */
#define T(ev, next, action) [TW_LEASE_EV_##ev] = {1, TW_LEASE_##next, TW_LEASE_DO_##action}
const struct tw_lease_row tw_lease_table[TW_LEASE_STATES][TW_LEASE_EVENTS] = {
[TW_LEASE_IDLE] = {
    T(ACQUIRE, READING, READ),   T(SET, IDLE, REFUSE),       T(RELEASE, IDLE, REFUSE),      T(LEAVE, IDLE, REFUSE),
    T(ALLOW, IDLE, REFUSE),      T(LAPSE, IDLE, NONE),       T(DEATH, IDLE, NONE),          T(BOOT, EXPIRED, LOWER),
    T(TICK, IDLE, NONE),         T(DONE, IDLE, NONE),        T(OFF, IDLE, NONE),            T(FAIL, IDLE, NONE),
    T(DRIFT, IDLE, NONE),        T(RIVAL, IDLE, NONE),       T(STORED, IDLE, NONE),         T(UNSTORED, IDLE, NONE)},
[TW_LEASE_READING] = {
    T(ACQUIRE, READING, REFUSE), T(SET, READING, REFUSE),    T(RELEASE, READING, REFUSE),   T(LEAVE, READING, REFUSE),
    T(ALLOW, READING, REFUSE),   T(LAPSE, IDLE, NONE),       T(DEATH, IDLE, NONE),          T(BOOT, READING, NONE),
    T(TICK, READING, NONE),      T(DONE, FOUND, STORE),      T(OFF, IDLE, NONE),            T(FAIL, IDLE, NONE),
    T(DRIFT, IDLE, NONE),        T(RIVAL, IDLE, NONE),       T(STORED, READING, NONE),      T(UNSTORED, READING, NONE)},
[TW_LEASE_FOUND] = {
    T(ACQUIRE, FOUND, REFUSE),   T(SET, FOUND, REFUSE),      T(RELEASE, FOUND, REFUSE),     T(LEAVE, FOUND, REFUSE),
    T(ALLOW, FOUND, REFUSE),     T(LAPSE, RESTORED, STORE),  T(DEATH, RESTORED, STORE),     T(BOOT, FOUND, NONE),
    T(TICK, FOUND, NONE),        T(DONE, FOUND, NONE),       T(OFF, FOUND, NONE),           T(FAIL, FOUND, NONE),
    T(DRIFT, FOUND, NONE),       T(RIVAL, FOUND, NONE),      T(STORED, SAVED, NONE),        T(UNSTORED, RESTORED, STORE)},
[TW_LEASE_SAVED] = {
    T(ACQUIRE, SAVED, REFUSE),   T(SET, WRITTEN, WRITE),     T(RELEASE, RESTORED, STORE),   T(LEAVE, EXPIRED, LOWER),
    T(ALLOW, SAVED, REFUSE),     T(LAPSE, EXPIRED, LOWER),   T(DEATH, EXPIRED, LOWER),      T(BOOT, SAVED, NONE),
    T(TICK, SAVED, NONE),        T(DONE, SAVED, NONE),       T(OFF, SAVED, NONE),           T(FAIL, SAVED, NONE),
    T(DRIFT, SAVED, NONE),       T(RIVAL, SAVED, NONE),      T(STORED, SAVED, NONE),        T(UNSTORED, SAVED, NONE)},
[TW_LEASE_WRITTEN] = {
    T(ACQUIRE, WRITTEN, REFUSE), T(SET, WRITTEN, WRITE),     T(RELEASE, RESTORING, WRITE),  T(LEAVE, EXPIRED, LOWER),
    T(ALLOW, WRITTEN, REFUSE),   T(LAPSE, EXPIRED, LOWER),   T(DEATH, EXPIRED, LOWER),      T(BOOT, WRITTEN, NONE),
    T(TICK, WRITTEN, READ),      T(DONE, CONFIRMED, NONE),   T(OFF, WRITTEN, NONE),         T(FAIL, WRITTEN, NONE),
    T(DRIFT, WRITTEN, WRITE),    T(RIVAL, CONTESTED, NONE),  T(STORED, WRITTEN, NONE),      T(UNSTORED, WRITTEN, NONE)},
[TW_LEASE_CONFIRMED] = {
    T(ACQUIRE, CONFIRMED, REFUSE), T(SET, WRITTEN, WRITE),   T(RELEASE, RESTORING, WRITE),  T(LEAVE, EXPIRED, LOWER),
    T(ALLOW, CONFIRMED, REFUSE), T(LAPSE, EXPIRED, LOWER),   T(DEATH, EXPIRED, LOWER),      T(BOOT, CONFIRMED, NONE),
    T(TICK, CONFIRMED, READ),    T(DONE, CONFIRMED, NONE),   T(OFF, CONFIRMED, NONE),       T(FAIL, CONFIRMED, NONE),
    T(DRIFT, WRITTEN, WRITE),    T(RIVAL, CONTESTED, NONE),  T(STORED, CONFIRMED, NONE),    T(UNSTORED, CONFIRMED, NONE)},
[TW_LEASE_EXPIRED] = {
    T(ACQUIRE, EXPIRED, REFUSE), T(SET, EXPIRED, REFUSE),    T(RELEASE, EXPIRED, REFUSE),   T(LEAVE, EXPIRED, REFUSE),
    T(ALLOW, EXPIRED, REFUSE),   T(LAPSE, EXPIRED, NONE),    T(DEATH, EXPIRED, NONE),       T(BOOT, EXPIRED, NONE),
    T(TICK, EXPIRED, LOWER),     T(DONE, SAFE, NONE),        T(OFF, EXPIRED, NONE),         T(FAIL, EXPIRED, NONE),
    T(DRIFT, EXPIRED, LOWER),    T(RIVAL, CONTESTED, NONE),  T(STORED, EXPIRED, NONE),      T(UNSTORED, EXPIRED, NONE)},
[TW_LEASE_SAFE] = {
    T(ACQUIRE, CONFIRMED, NONE), T(SET, SAFE, REFUSE),       T(RELEASE, SAFE, REFUSE),      T(LEAVE, SAFE, REFUSE),
    T(ALLOW, RESTORING, WRITE),  T(LAPSE, SAFE, NONE),       T(DEATH, SAFE, NONE),          T(BOOT, SAFE, NONE),
    T(TICK, SAFE, READ),         T(DONE, SAFE, NONE),        T(OFF, SAFE, NONE),            T(FAIL, SAFE, NONE),
    T(DRIFT, EXPIRED, LOWER),    T(RIVAL, CONTESTED, NONE),  T(STORED, SAFE, NONE),         T(UNSTORED, SAFE, NONE)},
[TW_LEASE_RESTORING] = {
    T(ACQUIRE, RESTORING, REFUSE), T(SET, RESTORING, REFUSE), T(RELEASE, RESTORING, REFUSE), T(LEAVE, RESTORING, REFUSE),
    T(ALLOW, RESTORING, REFUSE), T(LAPSE, RESTORING, NONE),  T(DEATH, RESTORING, NONE),     T(BOOT, RESTORING, NONE),
    T(TICK, RESTORING, NONE),    T(DONE, RESTORED, STORE),   T(OFF, EXPIRED, LOWER),        T(FAIL, EXPIRED, LOWER),
    T(DRIFT, EXPIRED, LOWER),    T(RIVAL, EXPIRED, LOWER),   T(STORED, RESTORING, NONE),    T(UNSTORED, RESTORING, NONE)},
[TW_LEASE_RESTORED] = {
    T(ACQUIRE, RESTORED, REFUSE), T(SET, RESTORED, REFUSE),  T(RELEASE, RESTORED, REFUSE),  T(LEAVE, RESTORED, REFUSE),
    T(ALLOW, RESTORED, REFUSE),  T(LAPSE, RESTORED, NONE),   T(DEATH, RESTORED, NONE),      T(BOOT, RESTORED, NONE),
    T(TICK, RESTORED, STORE),    T(DONE, RESTORED, NONE),    T(OFF, RESTORED, NONE),        T(FAIL, RESTORED, NONE),
    T(DRIFT, RESTORED, NONE),    T(RIVAL, RESTORED, NONE),   T(STORED, IDLE, NONE),         T(UNSTORED, RESTORED, NONE)},
[TW_LEASE_CONTESTED] = {
    T(ACQUIRE, SAVED, NONE),     T(SET, CONTESTED, REFUSE),  T(RELEASE, RESTORED, STORE),   T(LEAVE, EXPIRED, LOWER),
    T(ALLOW, RESTORED, STORE),   T(LAPSE, EXPIRED, LOWER),   T(DEATH, EXPIRED, LOWER),      T(BOOT, CONTESTED, NONE),
    T(TICK, CONTESTED, READ),    T(DONE, CONTESTED, NONE),   T(OFF, CONTESTED, NONE),       T(FAIL, CONTESTED, NONE),
    T(DRIFT, CONTESTED, NONE),   T(RIVAL, CONTESTED, NONE),  T(STORED, CONTESTED, NONE),    T(UNSTORED, CONTESTED, NONE)},
};
#undef T
/* clang-format on */

void tw_lease_init(struct tw_lease *l, double safe_w, double ceiling_w)
{
    *l = (struct tw_lease){.state = TW_LEASE_IDLE,
                           .budget = true,
                           .safe_w = safe_w,
                           .ceiling_w = ceiling_w,
                           .found_w = NAN,
                           .asked_w = NAN,
                           .force_w = NAN,
                           .requested_w = NAN,
                           .enforced_w = NAN};
}

/* What goes back: the value found, or where that was lost the ceiling that the operator configured. */
static double back_w(const struct tw_lease *l)
{
    return l->found_w > 0.0 ? l->found_w : l->ceiling_w;
}

enum tw_lease_action tw_lease_step(struct tw_lease *l, enum tw_lease_event ev, int64_t now_us, double watts,
                                   double *ret_w)
{
    const struct tw_lease_row *row = &tw_lease_table[l->state][ev];
    assert(row->set);
    enum tw_lease_state from = l->state;
    enum tw_lease_action action = (enum tw_lease_action)row->action;
    l->state = (enum tw_lease_state)row->next;

    if (ev == TW_LEASE_EV_ACQUIRE && action != TW_LEASE_DO_REFUSE) {
        l->asked_w = from == TW_LEASE_SAFE ? l->force_w : (double)NAN; /* taken over as it stands */
        l->reasserts = l->restores = 0;
        if (from == TW_LEASE_IDLE)
            l->found_w = NAN;
    }
    if (ev == TW_LEASE_EV_SET && action == TW_LEASE_DO_WRITE)
        l->asked_w = watts;
    if (ev == TW_LEASE_EV_BOOT && action == TW_LEASE_DO_LOWER)
        l->found_w = watts;
    if (ev == TW_LEASE_EV_DRIFT) {
        l->reasserts++;
        l->drift_us = now_us;
    }
    if (l->state == TW_LEASE_EXPIRED && from != TW_LEASE_EXPIRED)
        l->lowerings = 0;
    if (ev == TW_LEASE_EV_ALLOW)
        l->restores = 0;
    /* A client without a budget asked nobody for room, and nobody will say that there is some. */
    if (l->state == TW_LEASE_SAFE && from == TW_LEASE_EXPIRED && !l->budget &&
        l->restores < TW_LEASE_RESTORES) {
        l->restores++;
        l->state = TW_LEASE_RESTORING;
        action = TW_LEASE_DO_WRITE;
    }
    if (action == TW_LEASE_DO_LOWER)
        *ret_w = l->safe_w;
    if (action == TW_LEASE_DO_WRITE)
        *ret_w = l->state == TW_LEASE_RESTORING ? back_w(l) : l->asked_w;
    return action;
}

void tw_lease_note(struct tw_lease *l, double requested_w, double enforced_w)
{
    l->requested_w = requested_w;
    l->enforced_w = enforced_w;
    l->force_w = fmax(requested_w, enforced_w);
}

static bool is_at_most(double w, double limit_w)
{
    return w <= limit_w + TW_LEASE_TOL_W;
}

/* Somebody raised the limit: once more, or enough? */
static enum tw_lease_event raised(struct tw_lease *l, int64_t now_us)
{
    if (l->reasserts > 0 && now_us - l->drift_us > TW_LEASE_CALM_US)
        l->reasserts = 0;
    return l->reasserts < TW_LEASE_REASSERTS ? TW_LEASE_EV_DRIFT : TW_LEASE_EV_RIVAL;
}

enum tw_lease_event tw_lease_judge(struct tw_lease *l, int64_t now_us, bool ok, double requested_w,
                                   double enforced_w)
{
    if (!ok || !(requested_w > 0.0) || !(enforced_w > 0.0))
        return TW_LEASE_EV_FAIL;
    tw_lease_note(l, requested_w, enforced_w);
    bool asked_holds = is_at_most(l->force_w, l->asked_w);
    switch (l->state) {
    case TW_LEASE_READING:
        l->found_w = requested_w;
        return TW_LEASE_EV_DONE;
    case TW_LEASE_WRITTEN:
        if (asked_holds && is_at_most(l->asked_w, requested_w))
            return TW_LEASE_EV_DONE;
        return l->reasserts > 0 && !is_at_most(requested_w, l->asked_w) ? raised(l, now_us) : TW_LEASE_EV_OFF;
    case TW_LEASE_CONFIRMED:
        return asked_holds ? TW_LEASE_EV_DONE : raised(l, now_us);
    case TW_LEASE_EXPIRED:
        if (is_at_most(l->force_w, l->safe_w))
            return TW_LEASE_EV_DONE;
        return ++l->lowerings < TW_LEASE_LOWERINGS ? TW_LEASE_EV_OFF : TW_LEASE_EV_RIVAL;
    case TW_LEASE_SAFE:
        return is_at_most(l->force_w, l->safe_w) ? TW_LEASE_EV_DONE : raised(l, now_us);
    case TW_LEASE_RESTORING:
        return fabs(requested_w - back_w(l)) <= TW_LEASE_TOL_W ? TW_LEASE_EV_DONE : TW_LEASE_EV_OFF;
    case TW_LEASE_IDLE:
    case TW_LEASE_FOUND:
    case TW_LEASE_SAVED:
    case TW_LEASE_RESTORED:
    case TW_LEASE_CONTESTED:
    case TW_LEASE_STATES:
        break;
    }
    return TW_LEASE_EV_DONE;
}

bool tw_lease_is_stored(enum tw_lease_state state)
{
    return state != TW_LEASE_IDLE && state != TW_LEASE_READING && state != TW_LEASE_RESTORED;
}

bool tw_lease_may_acquire(const struct tw_lease *l, bool budget)
{
    return l->state == TW_LEASE_IDLE || l->budget == budget;
}
