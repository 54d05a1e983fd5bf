/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of knowledge: the same posterior with none, one, two or all points. */
#include "elastic/levels.h"

#include "elastic/fit.h"

#include <math.h>

#define NAME(id, name, text) name,
const char *const tw_level_name[TW_LEVEL_COUNT] = {TW_LEVEL_MAP(NAME)};
#undef NAME
#define TEXT(id, name, text) text,
const char *const tw_level_text[TW_LEVEL_COUNT] = {TW_LEVEL_MAP(TEXT)};
#undef TEXT

const struct tw_level_plan tw_level_plan_default = {
    .low = {0.05, 0.20}, .high = {0.10, 0.25}, .step = 0.01, .probe_s = 60.0, .event_s = 3.0 * 3600.0};

/* What a meter reads at x: the run's own power and throughput, and those of the reference, each with the
 * published run-to-run deviation. */
static void read_at(const struct tw_measured *truth, double x, struct tw_rng *rng, double *ret_x, double *ret_t)
{
    double t = tw_measured_value(truth, x);
    *ret_x = x;
    *ret_t = t;
    if (!rng)
        return;
    *ret_x *= (1.0 + TW_RUN_SD_POWER * tw_rng_normal(rng)) / (1.0 + TW_RUN_SD_POWER * tw_rng_normal(rng));
    *ret_t *=
        (1.0 + TW_RUN_SD_THROUGHPUT * tw_rng_normal(rng)) / (1.0 + TW_RUN_SD_THROUGHPUT * tw_rng_normal(rng));
}

void tw_levels_of(const struct tw_known *telemetry, const struct tw_prior_job *job,
                  const struct tw_measured *truth, double depth, const struct tw_level_plan *plan,
                  struct tw_rng *rng, struct tw_levels *ret)
{
    struct tw_known k = *telemetry;
    double x, t, share = plan->probe_s / plan->event_s, paid = 0.0, x_all[TW_PRIOR_POINTS],
                 t_all[TW_PRIOR_POINTS];
    size_t n = 0;
    ret->known[TW_LEVEL_BOARD] = ret->known[TW_LEVEL_TELEMETRY] = ret->known[TW_LEVEL_CURVE] = k;
    for (int p = 0; p < TW_LEVEL_PROBES; p++) {
        double cut =
            tw_known_probe(&k, plan->low[p], plan->high[p], plan->step, depth, share, &ret->probe_gain[p]);
        read_at(truth, 1.0 - cut, rng, &x, &t);
        (void)tw_known_add(&k, x, t, TW_RUN_SD_THROUGHPUT);
        paid += share * (1.0 - tw_measured_value(truth, 1.0 - cut));
        ret->probe_cut[p] = cut;
        ret->known[TW_LEVEL_PROBE1 + p] = k;
        ret->paid[TW_LEVEL_PROBE1 + p] = paid;
    }
    for (size_t i = 0; i < job->n && n < TW_PRIOR_POINTS; i++, n++) {
        x_all[n] = job->x[i];
        t_all[n] = job->t[i];
        if (rng && job->x[i] < 1.0)
            read_at(truth, job->x[i], rng, &x_all[n], &t_all[n]);
        (void)tw_known_add(&ret->known[TW_LEVEL_CURVE], x_all[n], t_all[n], job->noise_frac);
    }
    ret->paid[TW_LEVEL_BOARD] = ret->paid[TW_LEVEL_TELEMETRY] = ret->paid[TW_LEVEL_CURVE] =
        0.0; /* a sweep before */
    for (int l = 0; l < TW_LEVEL_COUNT; l++)
        ret->curve[l] = tw_known_curve(&ret->known[l]);
    ret->curve[TW_LEVEL_CURVE] = tw_fit_best(x_all, t_all, n, NULL).curve;
}

/* Straight between measured points and straight on below the lowest, not falling and not wildly steep: two
 * noisy points beside each other say little of a slope. */
static double went_on(const struct tw_measured *m, double x)
{
    if (m->n < 2 || x >= m->x[0])
        return tw_measured_value(m, x);
    double slope = fmin(fmax((m->t[1] - m->t[0]) / (m->x[1] - m->x[0]), 0.0), 2.0);
    return m->t[0] - slope * (m->x[0] - x);
}

enum tw_err tw_levels_board(const struct tw_prior_job *job, const struct tw_measured *measured, size_t n,
                            uint32_t board, struct tw_prior_leave leave, struct tw_curve *ret)
{
    enum { CUTS = 16 };
    double x[CUTS], t[CUTS] = {0.0};
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (job[i].board != board || job[i].model == leave.model || i == leave.job)
            continue;
        count++;
        for (int c = 0; c < CUTS; c++)
            t[c] += went_on(&measured[i], 1.0 - 0.04 * (c + 1));
    }
    if (count == 0)
        return TW_ENODATA;
    for (int c = 0; c < CUTS; c++) {
        x[c] = 1.0 - 0.04 * (c + 1);
        t[c] /= (double)count;
    }
    *ret = tw_fit_concave(x, t, CUTS).curve;
    return TW_OK;
}
