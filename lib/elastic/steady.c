/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses out, settling out, whole iterations, and how sure the mean is. */
#include "elastic/steady.h"

#include "base/stat.h"

#include <math.h>

#define BATCH_S 3 /* of the settling rule */
#define PAYS 0.85 /* dropping must lower the squared standard error to this */
#define LEAST_SD 1e-3
#define LAG_MAX 300U
#define RHYTHM 0.3 /* least autocorrelation that is a rhythm */
#define BATCHES 10U
#define PAUSES 64
#define LONGER 1.5 /* than uncapped, reports and iterations may be */

/* Student's t at 95 % by degrees of freedom, over that of the normal distribution. */
static double student(size_t dof)
{
    static const double t95[] = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812};
    size_t n = sizeof t95 / sizeof *t95;
    return t95[dof < 1 ? 0 : dof < n ? dof - 1 : n - 1] / 1.645;
}

/* ---- pauses ---- */

static double usual_gap(const struct tw_steady_second *s, size_t n, double *sorted)
{
    size_t gaps = 0, last = n;
    for (size_t i = 0; i < n; i++) {
        if (!((double)s[i].units > 0.0))
            continue;
        if (last < n)
            sorted[gaps++] = (double)(i - last);
        last = i;
    }
    tw_stat_sort(sorted, gaps);
    return gaps ? tw_stat_quantile_sorted(sorted, gaps, 0.5) : 1.0;
}

struct pause {
    double length_s, power_w;
};

struct at_work {
    struct tw_steady_work *to;
    size_t n;
    struct pause pause[PAUSES];
    size_t pauses;
};

static void pause_add(struct at_work *w, const struct tw_steady_second *s, size_t from, size_t to)
{
    double sum = 0.0;
    size_t seen = 0;
    for (size_t i = from; i < to; i++)
        if (!isnan(s[i].power_w)) {
            sum += (double)s[i].power_w;
            seen++;
        }
    if (w->pauses < PAUSES)
        w->pause[w->pauses++] = (struct pause){(double)(to - from), seen ? sum / (double)seen : (double)NAN};
}

/* Seconds from..to (to is the one that reports `units` for all of them) were spent at work. */
static void work_add(struct at_work *w, const struct tw_steady_second *s, size_t from, size_t to)
{
    for (size_t i = from; i <= to; i++) {
        double power = (double)s[i].power_w;
        if (isnan(power))
            power = w->n ? w->to->power[w->n - 1] : (double)NAN;
        if (isnan(power))
            continue;
        w->to->power[w->n] = power;
        w->to->rate[w->n++] = (double)s[to].units / (double)(to - from + 1);
    }
}

static void take_apart(struct at_work *w, const struct tw_steady_second *s, size_t n,
                       const struct tw_steady *before_it, struct tw_steady *ret)
{
    double gap = usual_gap(s, n, w->to->sorted);
    if (before_it)
        gap = fmin(gap, LONGER * before_it->report_s); /* few reports, of which one is a pause */
    double silence = fmax(TW_STEADY_PAUSE_S, 2.0 * gap);
    ret->report_s = gap;
    size_t last = n, before = 0; /* the second that reported progress last; w->n before what it reported */
    for (size_t i = 0; i < n; i++) {
        if (!((double)s[i].units > 0.0))
            continue;
        if (last == n) {
            ret->warm_s = (double)i;
        } else if ((double)(i - last - 1) < silence) {
            before = w->n;
            work_add(w, s, last + 1, i);
        } else {
            pause_add(w, s, last + 1, i);
            w->n = before; /* the pause began in what was reported last */
        }
        last = i;
    }
    if (last == n) {
        ret->warm_s = (double)n;
    } else if ((double)(n - last - 1) >= silence) {
        pause_add(w, s, last + 1, n);
        w->n = before;
    }
}

/* ---- settling ---- */

/* How many of y[n] to drop: where (squared deviations left) / (number left)^2 is least, over whole batches and
 * at most half. Deviations under LEAST_SD of the mean are no news. */
static size_t settling(const double *y, size_t n)
{
    size_t batches = n / BATCH_S, best = 0;
    double sum = 0.0, squares = 0.0, least = INFINITY, all = INFINITY;
    for (size_t k = batches; k-- > 0;) {
        double mean = tw_stat_mean(y + k * BATCH_S, BATCH_S);
        double left = (double)(batches - k);
        sum += mean;
        squares += mean * mean;
        double least_sd = LEAST_SD * sum / left;
        double score = (fmax(0.0, squares - sum * sum / left) + left * least_sd * least_sd) / (left * left);
        all = score;
        if (k <= batches / 2 && score < least) {
            least = score;
            best = k;
        }
    }
    return least < PAYS * all ? best * BATCH_S : 0;
}

/* ---- rhythm ---- */

static double correlation(const double *y, size_t n, size_t lag, double mean)
{
    double sum = 0.0, all = 0.0;
    for (size_t i = 0; i < n; i++)
        all += (y[i] - mean) * (y[i] - mean);
    for (size_t i = lag; i < n; i++)
        sum += (y[i] - mean) * (y[i - lag] - mean);
    return all > 0.0 ? sum / (double)(n - lag) / (all / (double)n) : 0.0;
}

/* The first peak that comes near the highest: its multiples are peaks too. */
static double period_of(const double *y, size_t n)
{
    double mean = tw_stat_mean(y, n), r[LAG_MAX + 2], high = 0.0;
    size_t lags = n / 3 < LAG_MAX ? n / 3 : LAG_MAX;
    for (size_t k = 1; k <= lags + 1; k++)
        r[k] = correlation(y, n, k, mean);
    for (size_t k = 2; k <= lags; k++)
        if (r[k] >= r[k - 1] && r[k] >= r[k + 1])
            high = fmax(high, r[k]);
    if (!(high >= RHYTHM))
        return (double)NAN;
    for (size_t k = 2; k <= lags; k++) {
        if (!(r[k] >= r[k - 1] && r[k] >= r[k + 1] && r[k] >= 0.8 * high))
            continue;
        double bend = r[k - 1] - 2.0 * r[k] + r[k + 1];
        return (double)k + (bend < 0.0 ? 0.5 * (r[k - 1] - r[k + 1]) / bend : 0.0);
    }
    return (double)NAN;
}

/* ---- means ---- */

static double tapered(const double *y, size_t n, double ramp_s)
{
    double sum = 0.0, weights = 0.0;
    for (size_t i = 0; i < n; i++) {
        double at = (double)i + 0.5, end = (double)n - at;
        double w = fmin(1.0, fmin(at, end) / ramp_s);
        sum += w * y[i];
        weights += w;
    }
    return sum / weights;
}

/* Standard error of the mean of y[n], for weights that cost nothing. Each batch is a triangle over two units of
 * whole iterations, which a period that is slightly off hardly moves; neighbours share a half, so they
 * correlate by 1/4, and a triangle over 2 u has the variance of 1.5 u plain seconds. */
static double error_of(const double *y, size_t n, double unit_s, size_t batches)
{
    double mean[BATCHES] = {0};
    for (size_t k = 0; k < batches; k++) {
        size_t from = (size_t)lround((double)k * unit_s), to = (size_t)lround((double)(k + 2) * unit_s);
        to = to < n ? to : n;
        mean[k] = tapered(y + from, to - from, 0.5 * (double)(to - from));
    }
    double variance = pow(tw_stat_std(mean, batches), 2.0) / (1.0 - 0.5 / (double)batches);
    return student(batches - 1) * sqrt(variance * 1.5 * unit_s / (double)n);
}

static void measure(const double *power, const double *rate, size_t n, const struct tw_steady *before_it,
                    struct tw_steady *ret)
{
    double length = (double)n, unit = period_of(power, n);
    if (isnan(unit) && before_it)
        unit = before_it->period_s; /* it has one, whether this window shows it or not */
    ret->period_s = unit;
    unit = isnan(unit) ? 1.0 : fmin(unit, length / 3.0);
    double ramp_s = unit * fmax(1.0, floor(length / 4.0 / unit));
    double batch_s = unit * ceil(length / (BATCHES + 1) / unit);
    size_t batches = (size_t)(length / batch_s + 1e-9) - 1; /* 2 or more: a period is at most n / 3 */
    /* What the ramps cost: sum w^2 n / (sum w)^2 of a trapezium. */
    double a = ramp_s / length, cost = sqrt((1.0 - 4.0 / 3.0 * a)) / (1.0 - a);
    ret->power_w = tapered(power, n, ramp_s);
    ret->rate = tapered(rate, n, ramp_s);
    ret->sd_power_w = cost * error_of(power, n, batch_s, batches);
    ret->sd_rate = cost * error_of(rate, n, batch_s, batches);
    ret->work_s = length;
}

bool tw_steady_of(const struct tw_steady_second *second, size_t n, const struct tw_steady *before_it,
                  struct tw_steady_work *work, struct tw_steady *ret)
{
    struct at_work w = {.to = work};
    *ret = (struct tw_steady){.power_w = (double)NAN,
                              .rate = (double)NAN,
                              .sd_power_w = (double)NAN,
                              .sd_rate = (double)NAN,
                              .period_s = (double)NAN};
    take_apart(&w, second, n, before_it, ret);
    bool enough = w.n >= TW_STEADY_MIN;
    if (enough) {
        size_t by_power = settling(work->power, w.n), by_rate = settling(work->rate, w.n);
        size_t drop = by_power > by_rate ? by_power : by_rate;
        ret->settle_s = (double)drop;
        ret->settled = drop + BATCH_S < w.n / 2;
        measure(work->power + drop, work->rate + drop, w.n - drop, before_it, ret);
    }
    double at_work_w = enough ? ret->power_w : w.n ? tw_stat_mean(work->power, w.n) : (double)NAN;
    for (size_t k = 0; k < w.pauses; k++)
        *(w.pause[k].power_w < TW_STEADY_CHECKPOINT * at_work_w ? &ret->checkpoint_s : &ret->eval_s) +=
            w.pause[k].length_s;
    return enough;
}
