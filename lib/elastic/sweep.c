/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a sweep, and its result. */
#include "elastic/sweep.h"

#include "base/rng.h"
#include "elastic/belief.h"

#include <math.h>
#include <string.h>

#define EVERY_S 5.0         /* between looks at a measurement under way */
#define GRACE 0.2           /* of total_s, over which pauses may take a sweep in all */
#define REFERENCE_SHARE 0.4 /* of the precision: what the reference's own error may take */
#define MIN_PERIODS 4.0
#define LEAST_SHARE 0.6 /* of TW_SWEEP_STEP_S, at work: less is no measurement */
#define DRIFT_SD 0.29   /* of a drift: what a straight line may miss, a uniform over it */
#define JOULE_STEPS 1000

const char *const tw_sweep_phase_name[TW_SWEEP_PHASE_COUNT] = {
#define TW_SWEEP_PHASE_NAME(id, name) name,
    TW_SWEEP_PHASE_MAP(TW_SWEEP_PHASE_NAME)
#undef TW_SWEEP_PHASE_NAME
};

double tw_sweep_precision_least(void)
{
    return TW_SWEEP_Z * hypot(TW_RUN_SD_THROUGHPUT, TW_RUN_SD_THROUGHPUT);
}

double tw_sweep_time_least(size_t n)
{
    return (double)(n + 2) * TW_SWEEP_STEP_S + (double)n * TW_SWEEP_LOOK_S;
}

/* ---- making one ---- */

static enum tw_err sort_caps(struct tw_sweep_conf *c, struct tw_why *why)
{
    for (size_t i = 0; i < c->n; i++) {
        double cap_w = c->cap_w[i];
        if (!(cap_w > 0.0 && isfinite(cap_w)))
            return tw_fail(why, TW_EINVAL, "a cap of %g W is none", cap_w);
        size_t k = i;
        for (; k > 0 && c->cap_w[k - 1] < cap_w; k--)
            c->cap_w[k] = c->cap_w[k - 1];
        c->cap_w[k] = cap_w;
        if (k > 0 && !(c->cap_w[k - 1] > cap_w))
            return tw_fail(why, TW_EINVAL, "the cap %g W stands twice", cap_w);
    }
    return TW_OK;
}

static void step_begin(struct tw_sweep *s, enum tw_sweep_phase phase, double share_s)
{
    s->phase = phase;
    s->n = 0;
    s->step_from_s = s->now_s;
    s->step_end_s = s->now_s + share_s;
    s->next_look_s = s->now_s + TW_SWEEP_STEP_S;
}

/* An equal share of the time that is left, looks that are still to come taken off. */
static double share_of(const struct tw_sweep *s, size_t measurements, size_t looks)
{
    double left_s = s->conf.total_s - s->now_s - (double)looks * TW_SWEEP_LOOK_S;
    return fmax(TW_SWEEP_STEP_S, left_s / (double)measurements);
}

enum tw_err tw_sweep_init(struct tw_sweep *s, const struct tw_sweep_conf *conf, struct tw_why *why)
{
    struct tw_sweep_conf c = *conf;
    if (c.n < 1 || c.n > TW_SWEEP_CAPS)
        return tw_fail(why, TW_EINVAL, "%zu caps; a sweep has 1 to %d", c.n, TW_SWEEP_CAPS);
    enum tw_err err = sort_caps(&c, why);
    if (err != TW_OK)
        return err;
    if (!(c.total_s >= tw_sweep_time_least(c.n)))
        return tw_fail(why, TW_EINVAL, "%g s are too short for %zu caps: %g s or more, or fewer caps",
                       c.total_s, c.n, tw_sweep_time_least(c.n));
    if (!(c.precision > tw_sweep_precision_least()))
        return tw_fail(why, TW_EINVAL,
                       "a precision of %.2f %% cannot be had: run-to-run variation alone is %.2f %%",
                       1e2 * c.precision, 1e2 * tw_sweep_precision_least());
    memset(s, 0, sizeof *s);
    s->conf = c;
    for (size_t i = 0; i < c.n; i++)
        s->point[i].cap_w = c.cap_w[i];
    s->reference[0].cap_w = s->reference[1].cap_w = (double)NAN;
    step_begin(s, TW_SWEEP_WARM, c.total_s);
    return TW_OK;
}

/* ---- from step to step ---- */

double tw_sweep_cap(const struct tw_sweep *s)
{
    return s->phase == TW_SWEEP_DESCENT   ? s->point[s->at].cap_w
           : s->phase == TW_SWEEP_MEASURE ? s->point[s->order[s->at]].cap_w
                                          : (double)NAN;
}

double tw_sweep_left_s(const struct tw_sweep *s)
{
    if (s->phase == TW_SWEEP_DONE)
        return 0.0;
    return fmax(s->step_end_s - s->now_s, s->conf.total_s - s->now_s);
}

/* Of a phase that measures. */
static struct tw_sweep_step *step_of(struct tw_sweep *s)
{
    return s->phase == TW_SWEEP_REFERENCE ? &s->reference[0]
           : s->phase == TW_SWEEP_CHECK   ? &s->reference[1]
                                          : &s->point[s->order[s->at]];
}

static void measure_next(struct tw_sweep *s)
{
    if (s->at < s->n_order)
        step_begin(s, TW_SWEEP_MEASURE, share_of(s, s->n_order - s->at + 1, 0));
    else
        step_begin(s, TW_SWEEP_CHECK, share_of(s, 1, 0));
}

static void shuffle(struct tw_sweep *s, size_t n)
{
    struct tw_rng rng;
    tw_rng_init(&rng, s->conf.seed, 1);
    for (size_t i = 0; i < n; i++) {
        size_t k = (size_t)tw_rng_below(&rng, i + 1);
        s->order[i] = s->order[k];
        s->order[k] = i;
    }
    s->n_order = n;
    s->at = 0;
}

static void descent_end(struct tw_sweep *s, size_t usable)
{
    shuffle(s, usable);
    measure_next(s);
}

static void left_out(struct tw_sweep *s, const struct tw_steady *m)
{
    if (s->phase == TW_SWEEP_REFERENCE)
        s->warm_s += m->settle_s;
    else
        s->eval_s += m->warm_s >= TW_STEADY_PAUSE_S ? m->warm_s : 0.0; /* a pause was under way */
    s->eval_s += m->eval_s;
    s->checkpoint_s += m->checkpoint_s;
}

static void keep(struct tw_sweep *s, bool measured, const struct tw_steady *m)
{
    struct tw_sweep_step *step = step_of(s);
    step->measured = measured;
    step->steady = *m;
    step->at_s = 0.5 * (s->step_from_s + s->now_s);
    left_out(s, m);
}

static void step_end(struct tw_sweep *s, bool measured, const struct tw_steady *m)
{
    keep(s, measured, m);
    if (s->phase == TW_SWEEP_REFERENCE) {
        s->at = 0;
        step_begin(s, measured ? TW_SWEEP_DESCENT : TW_SWEEP_DONE, TW_SWEEP_LOOK_LONG_S);
        s->ended_early = !measured;
    } else if (s->phase == TW_SWEEP_MEASURE) {
        s->at++;
        measure_next(s);
    } else {
        step_begin(s, TW_SWEEP_DONE, 0.0);
    }
}

/* ---- is it good enough? ---- */

static bool narrow(const struct tw_sweep *s, const struct tw_steady *m)
{
    double own = m->sd_rate / m->rate;
    if (s->phase != TW_SWEEP_MEASURE)
        return TW_SWEEP_Z * own <= REFERENCE_SHARE * s->conf.precision;
    const struct tw_steady *r = &s->reference[0].steady;
    double t = m->rate / r->rate;
    double sd = t * hypot(hypot(own, r->sd_rate / r->rate), hypot(TW_RUN_SD_THROUGHPUT, TW_RUN_SD_THROUGHPUT));
    return TW_SWEEP_Z * sd <= s->conf.precision;
}

static bool good_of(struct tw_sweep *s, struct tw_steady *ret)
{
    const struct tw_steady *uncapped = s->phase == TW_SWEEP_REFERENCE ? NULL : &s->reference[0].steady;
    return tw_steady_of(s->second, s->n, uncapped, &s->work, ret) &&
           ret->work_s >= LEAST_SHARE * TW_SWEEP_STEP_S;
}

static bool measurement_push(struct tw_sweep *s)
{
    bool over = s->now_s >= s->step_end_s || s->n == TW_STEADY_MAX;
    if (!over && s->now_s < s->next_look_s)
        return false;
    s->next_look_s = s->now_s + EVERY_S;
    struct tw_steady m;
    bool good = good_of(s, &m);
    bool whole = good && m.settled && m.work_s >= TW_SWEEP_STEP_S && !(m.work_s < MIN_PERIODS * m.period_s);
    if (over && !good && s->n < TW_STEADY_MAX &&
        s->now_s < s->step_from_s + 2.0 * TW_SWEEP_STEP_S + GRACE * s->conf.total_s)
        return false; /* a pause has eaten its time */
    if (!over && !(whole && narrow(s, &m)))
        return false;
    step_end(s, good, &m);
    return true;
}

/* The descent only asks whether the cap can be lived with. */
static bool look_push(struct tw_sweep *s)
{
    double power_w = 0.0, units = 0.0;
    size_t seen = 0, from = s->n / 2;
    bool moves = false;
    for (size_t i = 0; i < s->n; i++) {
        moves = moves || (double)s->second[i].units > 0.0;
        units += (double)s->second[i].units;
        if (i >= from && !isnan(s->second[i].power_w)) {
            power_w += (double)s->second[i].power_w;
            seen++;
        }
    }
    double rate = units / (double)s->n, cap_w = s->point[s->at].cap_w * (double)s->conf.n_gpu;
    bool stalls = !(rate >= TW_SWEEP_STALL * s->reference[0].steady.rate);
    bool over = s->now_s >= s->step_end_s;
    if (s->n < TW_SWEEP_LOOK_S ? !over : stalls && !over)
        return false; /* a pause, or it stalls: time will tell */
    bool held = seen > 0 && power_w / (double)seen <= TW_SWEEP_HELD * cap_w;
    s->floor = stalls || !moves ? TW_SWEEP_FLOOR_STALLS : !held ? TW_SWEEP_FLOOR_NOT_HELD : TW_SWEEP_FLOOR_NONE;
    if (s->floor == TW_SWEEP_FLOOR_NONE && ++s->at < s->conf.n)
        step_begin(s, TW_SWEEP_DESCENT, TW_SWEEP_LOOK_LONG_S);
    else
        descent_end(s, s->at);
    return true;
}

static bool warm_push(struct tw_sweep *s)
{
    bool moves = s->n > 0 && (double)s->second[s->n - 1].units > 0.0;
    if (!moves) {
        s->n = 0;
        s->warm_s = s->now_s;
        if (s->now_s < s->step_end_s)
            return false;
        s->ended_early = true;
        step_begin(s, TW_SWEEP_DONE, 0.0);
        return true;
    }
    step_begin(s, TW_SWEEP_REFERENCE, share_of(s, s->conf.n + 2, s->conf.n));
    return true;
}

bool tw_sweep_push(struct tw_sweep *s, const struct tw_sweep_seen *seen)
{
    if (s->phase == TW_SWEEP_DONE || !(seen->dt_s > 0.0))
        return false;
    s->now_s += seen->dt_s;
    long whole = lround(seen->dt_s);
    for (long k = 0; k < (whole > 1 ? whole : 1) && seen->in_force && s->n < TW_STEADY_MAX; k++)
        s->second[s->n++] = (struct tw_steady_second){
            (float)seen->power_w, seen->units >= 0.0 ? (float)(seen->units / seen->dt_s) : 0.0F};
    return s->phase == TW_SWEEP_WARM      ? warm_push(s)
           : s->phase == TW_SWEEP_DESCENT ? look_push(s)
                                          : measurement_push(s);
}

void tw_sweep_end(struct tw_sweep *s)
{
    if (s->phase == TW_SWEEP_DONE)
        return;
    struct tw_steady m;
    bool measures = s->phase != TW_SWEEP_WARM && s->phase != TW_SWEEP_DESCENT;
    if (measures && good_of(s, &m))
        keep(s, true, &m);
    s->ended_early = true;
    step_begin(s, TW_SWEEP_DONE, 0.0);
}

/* ---- result ---- */

struct reference {
    double p0_w, t0, from_s, power_slope, rate_slope; /* relative, per second; 0 without a drift */
    double middle_s, sd_p0, sd_t0, sd_drift;          /* relative */
};

static struct reference reference_of(const struct tw_sweep *s, struct tw_sweep_result *ret)
{
    const struct tw_sweep_step *a = &s->reference[0], *b = &s->reference[1];
    struct reference r = {.p0_w = a->steady.power_w, .t0 = a->steady.rate};
    r.sd_p0 = a->steady.sd_power_w / r.p0_w;
    r.sd_t0 = a->steady.sd_rate / r.t0;
    ret->drift_frac = (double)NAN;
    if (b->measured) {
        double sd_b = b->steady.sd_rate / b->steady.rate;
        double noise = hypot(hypot(r.sd_t0, sd_b), hypot(TW_RUN_SD_THROUGHPUT, TW_RUN_SD_THROUGHPUT));
        double power = b->steady.power_w / r.p0_w - 1.0;
        ret->drift_frac = b->steady.rate / r.t0 - 1.0;
        ret->drifted = !(fabs(ret->drift_frac) <= 2.0 * noise);
        r.p0_w *= 1.0 + 0.5 * power;
        r.t0 *= 1.0 + 0.5 * ret->drift_frac;
        r.sd_p0 = 0.5 * hypot(r.sd_p0, b->steady.sd_power_w / b->steady.power_w);
        r.sd_t0 = 0.5 * hypot(r.sd_t0, sd_b);
        if (ret->drifted) {
            double span_s = b->at_s - a->at_s;
            r.middle_s = 0.5 * (a->at_s + b->at_s);
            r.power_slope = power / span_s;
            r.rate_slope = ret->drift_frac / span_s;
            r.sd_drift = DRIFT_SD * fabs(ret->drift_frac);
        }
    }
    r.sd_p0 = hypot(r.sd_p0, TW_RUN_SD_POWER);
    r.sd_t0 = hypot(r.sd_t0, TW_RUN_SD_THROUGHPUT);
    return r;
}

/* sd_power, sd_rate: of the point alone, relative. */
static struct tw_sweep_row row_of(const struct tw_sweep_step *p, const struct reference *r, double *sd_power,
                                  double *sd_rate)
{
    const struct tw_steady *m = &p->steady;
    double since_s = p->at_s - r->middle_s;
    struct tw_sweep_row o = {.cap_w = p->cap_w,
                             .power_w = m->power_w / (1.0 + r->power_slope * since_s),
                             .rate = m->rate / (1.0 + r->rate_slope * since_s),
                             .work_s = m->work_s,
                             .settle_s = m->settle_s};
    *sd_power = hypot(m->sd_power_w / m->power_w, TW_RUN_SD_POWER);
    *sd_rate = hypot(hypot(m->sd_rate / m->rate, r->sd_drift), TW_RUN_SD_THROUGHPUT);
    o.x = o.power_w / r->p0_w;
    o.t = o.rate / r->t0;
    o.loss = 1.0 - o.t;
    o.sd_x = o.x * hypot(*sd_power, r->sd_p0);
    o.sd_loss = o.t * hypot(*sd_rate, r->sd_t0);
    o.low = o.loss - TW_SWEEP_Z * o.sd_loss;
    o.high = o.loss + TW_SWEEP_Z * o.sd_loss;
    return o;
}

/* The cap of one GPU that brings the job to x: straight between measured points, watt for watt above the
 * highest one that binds. Points stand with the highest cap first. */
static double cap_for(const struct tw_sweep_result *r, size_t n_gpu, double x)
{
    for (size_t i = r->n; i-- > 0;) {
        const struct tw_sweep_row *deep = &r->row[i], *next = i > 0 ? deep - 1 : NULL;
        if (x <= deep->x)
            return deep->cap_w;
        if (next && x <= next->x)
            return deep->cap_w + (x - deep->x) / (next->x - deep->x) * (next->cap_w - deep->cap_w);
    }
    return r->row[0].cap_w + (x - r->row[0].x) * r->p0_w / (double)n_gpu;
}

static struct tw_sweep_advice advice_at(const struct tw_sweep_result *r, const struct tw_belief *b,
                                        size_t n_gpu, double x, double x_min)
{
    double sd = 0.0, t = tw_curve_value(&r->fit.curve, x);
    (void)tw_belief_value(b, x, &sd);
    double uncapped_j = r->p0_w / r->t0, j = x * r->p0_w / (t * r->t0);
    return (struct tw_sweep_advice){.cap = x < 1.0,
                                    .deepest = x <= x_min,
                                    .cap_w = x < 1.0 ? cap_for(r, n_gpu, x) : (double)NAN,
                                    .power_w = x * r->p0_w,
                                    .saved_frac = 1.0 - x,
                                    .loss = 1.0 - t,
                                    .loss_low = x < 1.0 ? 1.0 - t - TW_SWEEP_Z * sd : 0.0,
                                    .loss_high = x < 1.0 ? 1.0 - t + TW_SWEEP_Z * sd : 0.0,
                                    .j_per_unit = j,
                                    .j_saved_frac = 1.0 - j / uncapped_j};
}

static void advise(const struct tw_sweep *s, double allowed, struct tw_sweep_result *r)
{
    struct tw_belief b;
    double x_min = 1.0, best_x = 1.0, least = INFINITY;
    tw_belief_init(&b, NULL);
    for (size_t i = 0; i < r->n; i++) {
        x_min = fmin(x_min, r->row[i].x);
        if (r->row[i].x < 1.0 &&
            tw_belief_add(&b, r->row[i].x, r->row[i].t, r->row[i].sd_x, r->row[i].sd_loss) != TW_OK)
            continue; /* no throughput at all: nothing that a curve could take */
    }
    for (int k = 0; k <= JOULE_STEPS; k++) {
        double x = 1.0 - (1.0 - x_min) * k / JOULE_STEPS, j = x / tw_curve_value(&r->fit.curve, x);
        if (j < least) {
            least = j;
            best_x = x;
        }
    }
    double slower_x = fmax(x_min, 1.0 - tw_curve_depth(&r->fit.curve, allowed));
    r->slower = advice_at(r, &b, s->conf.n_gpu, slower_x, x_min);
    r->joules = advice_at(r, &b, s->conf.n_gpu, best_x, x_min);
    r->knee_cut = tw_curve_knee(&r->fit.curve, 1.0 - x_min);
}

enum tw_err tw_sweep_finish(const struct tw_sweep *s, double allowed, double *scratch,
                            struct tw_sweep_result *ret, struct tw_why *why)
{
    struct tw_sweep_result r = {0};
    double power[TW_SWEEP_CAPS], rate[TW_SWEEP_CAPS], x[TW_SWEEP_CAPS], t[TW_SWEEP_CAPS];
    double sd_power[TW_SWEEP_CAPS], sd_rate[TW_SWEEP_CAPS];
    if (!s->reference[0].measured)
        return tw_fail(why, TW_ENODATA, "no uncapped reference: the job made too little progress to measure");
    struct reference ref = reference_of(s, &r);
    r.p0_w = ref.p0_w;
    r.t0 = ref.t0;
    for (size_t i = 0; i < s->conf.n; i++) {
        if (!s->point[i].measured)
            continue;
        r.row[r.n] = row_of(&s->point[i], &ref, &sd_power[r.n], &sd_rate[r.n]);
        power[r.n] = r.row[r.n].power_w;
        rate[r.n] = r.row[r.n].rate;
        x[r.n] = r.row[r.n].x;
        t[r.n] = r.row[r.n].t;
        r.n++;
    }
    if (r.n == 0)
        return tw_fail(why, TW_ENODATA, "no cap was measured to the end");
    struct tw_pfi_noise noise = {ref.sd_p0, ref.sd_t0, sd_power, sd_rate};
    r.pfi = tw_pfi_of(r.p0_w, r.t0, power, rate, r.n);
    tw_pfi_interval_noise(r.p0_w, r.t0, power, rate, r.n, &noise, TW_PFI_DRAWS, s->conf.seed, 2, scratch,
                          &r.pfi_low, &r.pfi_high);
    r.fit = tw_fit_best(x, t, r.n, NULL);
    advise(s, allowed, &r);
    *ret = r;
    return TW_OK;
}
