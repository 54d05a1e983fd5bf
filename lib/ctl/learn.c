/* SPDX-License-Identifier: Apache-2.0 */
/* References and probes of one job. */
#include "ctl/learn.h"

#include "base/stat.h"

#include <math.h>
#include <string.h>

/* Near the depth that an event brings; the rest is learnt in the event itself. */
const double tw_learn_cut[TW_LEARN_CUTS] = {0.20};

#define RUN_SD_X                                                                                               \
    0.004 /* run-to-run variation published for repeated runs: power, throughput (elasticity.md)               \
           */
#define RUN_SD_T 0.005
#define STILL_FRAC 0.05 /* of T_0: no progress */
#define DIP_FRAC 0.80   /* of the mean: a second with the pause of an iteration in it */
#define PARTS 4         /* a window in parts, to see its noise */
#define TRIM_FRAC 0.4   /* a window trimmed to whole iterations keeps at least this share */
#define REFRESH_S 5

void tw_learn_init(struct tw_learn *l)
{
    *l = (struct tw_learn){
        .p0_w = (double)NAN, .t0 = (double)NAN, .sd_x = RUN_SD_X, .sd_t = RUN_SD_T, .in_force_s = (double)NAN};
    tw_belief_init(&l->belief, NULL);
}

struct window_mean {
    double power_w, rate, sd_power_w, sd_rate; /* sd: of the means */
    unsigned n;
};

/* Means over those of second [n] that are not left out, and the noise of these means by the spread of PARTS
 * parts. */
static struct window_mean mean_of(const struct tw_learn_second *second, unsigned n)
{
    double power[PARTS] = {0}, rate[PARTS] = {0};
    unsigned count[PARTS] = {0};
    struct window_mean m = {0};
    for (unsigned i = 0; i < n; i++) {
        if (isnan(second[i].rate))
            continue;
        unsigned k = i * PARTS / n;
        power[k] += (double)second[i].power_w;
        rate[k] += (double)second[i].rate;
        count[k]++;
    }
    unsigned parts = 0;
    double part_power[PARTS], part_rate[PARTS];
    for (unsigned k = 0; k < PARTS; k++) {
        m.power_w += power[k];
        m.rate += rate[k];
        m.n += count[k];
        if (count[k] >= 3) {
            part_power[parts] = power[k] / count[k];
            part_rate[parts++] = rate[k] / count[k];
        }
    }
    m.power_w /= m.n;
    m.rate /= m.n;
    m.sd_power_w = parts < 2 ? m.power_w : tw_stat_std(part_power, parts) / sqrt(parts);
    m.sd_rate = parts < 2 ? m.rate : tw_stat_std(part_rate, parts) / sqrt(parts);
    return m;
}

static void refresh(struct tw_learn *l)
{
    struct window_mean m = mean_of(l->second, l->n);
    if (m.n < TW_LEARN_MIN_S || !(m.power_w > 0.0 && m.rate > 0.0))
        return;
    l->p0_w = m.power_w;
    l->t0 = m.rate;
    l->sd_x = hypot(RUN_SD_X, m.sd_power_w / m.power_w);
    l->sd_t = hypot(RUN_SD_T, m.sd_rate / m.rate);
}

/* Leave out the newest `n` seconds of the reference ring. */
static void strike(struct tw_learn *l, unsigned n)
{
    for (unsigned k = 1; k <= n && k <= l->n; k++)
        l->second[(l->next + TW_LEARN_WINDOW - k) % TW_LEARN_WINDOW].rate = NAN;
}

void tw_learn_push(struct tw_learn *l, const struct tw_learn_seen *s)
{
    double rate = s->units / s->dt_s;
    l->most = fmax(l->most, rate);
    l->still_s = rate <= STILL_FRAC * (l->t0 > 0.0 ? l->t0 : l->most) ? l->still_s + 1 : 0;
    if (s->capped || !(s->power_w >= 0.0 && rate >= 0.0))
        return;
    l->second[l->next] = (struct tw_learn_second){(float)s->power_w, (float)rate};
    l->next = (l->next + 1) % TW_LEARN_WINDOW;
    if (l->n < TW_LEARN_WINDOW)
        l->n++;
    if (l->still_s >= TW_LEARN_PAUSE_S)
        strike(l, l->still_s == TW_LEARN_PAUSE_S ? TW_LEARN_PAUSE_S : 1);
    if (l->next % REFRESH_S == 0)
        refresh(l);
}

bool tw_learn_has_reference(const struct tw_learn *l)
{
    return l->p0_w > 0.0 && l->t0 > 0.0;
}

bool tw_learn_is_curious(const struct tw_learn *l)
{
    return l->level < TW_LEARN_CUTS;
}

static void restart(struct tw_learn *l)
{
    l->n_probe = 0;
    l->spent_s = 0;
    l->in_force_s = (double)NAN;
}

void tw_learn_probe_start(struct tw_learn *l)
{
    l->probing = true;
    restart(l);
}

void tw_learn_probe_stop(struct tw_learn *l)
{
    l->probing = false;
    restart(l);
}

double tw_learn_probe_w(const struct tw_learn *l)
{
    return l->p0_w * (1.0 - tw_learn_cut[l->level]);
}

/* Does an iteration's work begin in second i? */
static bool begins(const struct tw_learn_second *s, unsigned i, double mean_rate)
{
    return i > 0 && (double)s[i].rate >= DIP_FRAC * mean_rate && (double)s[i - 1].rate < DIP_FRAC * mean_rate;
}

/* From the first beginning of an iteration to the last one, where that is most of the window. */
static void trim(const struct tw_learn *l, unsigned *ret_from, unsigned *ret_n)
{
    double mean_rate = mean_of(l->probe, l->n_probe).rate;
    unsigned first = 0, last = 0;
    for (unsigned i = 1; i < l->n_probe; i++)
        if (begins(l->probe, i, mean_rate)) {
            first = first ? first : i;
            last = i;
        }
    bool use = (double)(last - first) >= TRIM_FRAC * l->n_probe;
    *ret_from = use ? first : 0;
    *ret_n = use ? last - first : l->n_probe;
}

static void measure(struct tw_learn *l)
{
    unsigned from, n;
    trim(l, &from, &n);
    struct window_mean m = mean_of(l->probe + from, n);
    double x = m.power_w / l->p0_w, t = m.rate / l->t0;
    double sd_x = hypot(l->sd_x, m.sd_power_w / l->p0_w), sd_t = hypot(l->sd_t, m.sd_rate / l->t0);
    if (tw_belief_add(&l->belief, x, t, sd_x, sd_t) != TW_OK)
        return;                          /* the cap did not bind */
    if (l->n_points == TW_SNAP_POINTS) { /* the oldest makes room */
        l->n_points--;
        memmove(l->point_x, l->point_x + 1, l->n_points * sizeof *l->point_x);
        memmove(l->point_t, l->point_t + 1, l->n_points * sizeof *l->point_t);
    }
    l->point_x[l->n_points] = (float)x;
    l->point_t[l->n_points++] = (float)t;
}

/* One second at a capped point, into the window; true when it is long enough. The end of a window waits until
 * it is known whether a pause has begun; of a pause, what came before its first second stays. */
static bool collect(struct tw_learn *l, const struct tw_learn_seen *s, bool settled, double measure_s)
{
    double rate = s->units / s->dt_s;
    if (l->still_s == TW_LEARN_PAUSE_S)
        l->n_probe -= l->n_probe < TW_LEARN_PAUSE_S - 1 ? l->n_probe : TW_LEARN_PAUSE_S - 1;
    bool counts = settled && s->power_w >= 0.0 && rate >= 0.0 && l->still_s < TW_LEARN_PAUSE_S;
    if (counts && l->n_probe < TW_LEARN_PROBE_MAX)
        l->probe[l->n_probe++] = (struct tw_learn_second){(float)s->power_w, (float)rate};
    return l->n_probe >= measure_s && (l->still_s == 0 || l->still_s >= TW_LEARN_PAUSE_S);
}

bool tw_learn_probe_push(struct tw_learn *l, const struct tw_learn_seen *s, bool in_force, double settle_s,
                         double measure_s)
{
    l->spent_s++;
    if (s->units >= 0.0 && l->still_s < TW_LEARN_PAUSE_S)
        l->lost_units += l->t0 * s->dt_s - s->units;
    if (in_force)
        l->in_force_s = isnan(l->in_force_s) ? 0.0 : l->in_force_s + s->dt_s;
    bool enough = collect(l, s, l->in_force_s > settle_s, measure_s);
    if (!enough && l->spent_s < TW_LEARN_TRIES * (settle_s + measure_s))
        return false;
    if (enough)
        measure(l);
    restart(l);
    l->level++;
    return true;
}

bool tw_learn_hold_push(struct tw_learn *l, const struct tw_learn_seen *s, bool held)
{
    if (!held || !tw_learn_has_reference(l)) {
        restart(l);
        return false;
    }
    if (!collect(l, s, true, TW_LEARN_HOLD_S))
        return false;
    measure(l);
    restart(l);
    return true;
}
