/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/ledger.h - what every GPU may draw at worst, by what is known.
 *
 * A GPU counts ("is charged") as the largest of: the limit last read back, a limit in flight or not taken yet,
 * its draw where that lies over the limit (it is still settling, or ignores its cap), its safe value once its
 * power has not been read for blind_after_s, and its power-on default once its limit has not been read back for
 * that long either (it may have rebooted). A raise is sent only where the sum of charges leaves room for it;
 * that is the whole of "lower, confirm, raise".
 *
 * Watts; times are site time in microseconds. */
#ifndef TW_CTL_LEDGER_H
#define TW_CTL_LEDGER_H

#include "base/arena.h"
#include "base/err.h"
#include "ctl/states.h"
#include "series/site.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_line {
    double min_w, max_w, default_w; /* what the device accepts, and its power-on limit */
    double found_w;                 /* in force when we came */
    double safe_w;                  /* where it goes when nothing is known */
    double limit_w;                 /* last read back: the larger of requested and enforced */
    double asked_w;                 /* last asked for; NaN when nothing was */
    double flight_w;                /* highest asked for and not read back; NaN when there is none */
    double follow_w;  /* the limit as draw can have followed it by now: down at once, up in SETTLE_S */
    double power_w;   /* last fresh reading; NaN before the first */
    double instant_w; /* the same without the source's averaging, where it has that */
    int64_t power_us, limit_us; /* when power and limit were read */
    int64_t asked_us;
    enum tw_line_state state;
    bool blind;
};

struct tw_ledger {
    struct tw_line *line; /* [n] */
    size_t n;
    int64_t now_us;
    int64_t blind_after_us;
    /* Told of every change of state; may be NULL. */
    void (*trace)(void *ctx, size_t gpu, const struct tw_transition *t, enum tw_line_state from);
    void *trace_ctx;
};

size_t tw_ledger_bytes(size_t n);
/* safe_frac: the safe value as a share of the power-on default, kept inside what the device accepts.
 * TW_ENOMEM; TW_EINVAL when a device's bounds make no sense (min above max, not above 0) */
TW_MUST_USE
enum tw_err tw_ledger_init(struct tw_ledger *l, struct tw_arena *arena, const struct tw_gpu_info *gpu, size_t n,
                           double safe_frac, double blind_after_s, struct tw_why *why);

/* The limit in force when we came: what goes back in the end. Before the first tw_ledger_see. */
void tw_ledger_found(struct tw_ledger *l, size_t i, double limit_w);

/* One turn's readings: sets now, takes fresh powers, marks the blind. */
void tw_ledger_see(struct tw_ledger *l, const struct tw_site_sample *s);

double tw_line_charge(const struct tw_ledger *l, size_t i);
double tw_ledger_sum(const struct tw_ledger *l);

/* A limit is about to be sent: in flight from now. limit_w lies inside the device's bounds. */
void tw_ledger_ask(struct tw_ledger *l, size_t i, double limit_w);
/* What the device says now. Another limit than the one asked for is a fault once the device had time to take
 * it; it is charged as it reads from the start. */
void tw_ledger_read_back(struct tw_ledger *l, size_t i, double requested_w, double enforced_w);
void tw_ledger_refused(struct tw_ledger *l, size_t i);

/* A cap can be moved and its effect seen. */
bool tw_line_is_live(const struct tw_line *line);

#endif
