/* SPDX-License-Identifier: Apache-2.0 */
/* PFI: ratios, and their bootstrap. */
#include "elastic/pfi.h"

#include "base/rng.h"
#include "base/stat.h"
#include "elastic/fit.h"

#include <math.h>

struct sums {
    double ratio, plain, cut, loss;
    unsigned used, plain_used;
};

static void add(struct sums *s, double d, double l)
{
    s->cut += d;
    s->loss += l;
    if (fabs(l) > 0.0) {
        s->plain += d / l;
        s->plain_used++;
    }
    if (d >= TW_PFI_MIN_CUT && l >= TW_PFI_MIN_LOSS) {
        s->ratio += d / l;
        s->used++;
    }
}

struct tw_pfi tw_pfi_of(double p0_w, double t0, const double *power_w, const double *throughput, size_t n)
{
    struct sums s = {0};
    for (size_t i = 0; i < n; i++)
        add(&s, 1.0 - power_w[i] / p0_w, 1.0 - throughput[i] / t0);
    return (struct tw_pfi){
        .mean = s.used ? s.ratio / s.used : (double)NAN,
        .ros = s.cut > 0.0 && s.loss > 0.0 ? s.cut / s.loss : (double)NAN,
        .plain = s.plain_used ? s.plain / s.plain_used : (double)NAN,
        .used = s.used,
    };
}

static double noisy(struct tw_rng *rng, double value, double sd)
{
    return value * (1.0 + sd * tw_rng_normal(rng));
}

/* noise NULL: the published one on everything. */
static void interval(double p0_w, double t0, const double *power_w, const double *throughput, size_t n,
                     const struct tw_pfi_noise *noise, size_t draws, struct tw_rng *rng, double *scratch,
                     double *ret_low, double *ret_high)
{
    size_t kept = 0;
    for (size_t k = 0; k < draws; k++) {
        struct sums s = {0};
        double p0 = noisy(rng, p0_w, noise ? noise->p0 : TW_RUN_SD_POWER);
        double t = noisy(rng, t0, noise ? noise->t0 : TW_RUN_SD_THROUGHPUT);
        for (size_t i = 0; i < n; i++)
            add(&s, 1.0 - noisy(rng, power_w[i], noise ? noise->power[i] : TW_RUN_SD_POWER) / p0,
                1.0 - noisy(rng, throughput[i], noise ? noise->throughput[i] : TW_RUN_SD_THROUGHPUT) / t);
        if (s.used)
            scratch[kept++] = s.ratio / s.used;
    }
    *ret_low = *ret_high = (double)NAN;
    if (kept == 0 || 2 * kept < draws)
        return;
    tw_stat_sort(scratch, kept);
    *ret_low = tw_stat_quantile_sorted(scratch, kept, 0.5 * (1.0 - TW_PFI_LEVEL));
    *ret_high = tw_stat_quantile_sorted(scratch, kept, 0.5 * (1.0 + TW_PFI_LEVEL));
}

void tw_pfi_interval(double p0_w, double t0, const double *power_w, const double *throughput, size_t n,
                     size_t draws, uint64_t seed, uint64_t stream, double *scratch, double *ret_low,
                     double *ret_high)
{
    tw_pfi_interval_noise(p0_w, t0, power_w, throughput, n, NULL, draws, seed, stream, scratch, ret_low,
                          ret_high);
}

void tw_pfi_interval_noise(double p0_w, double t0, const double *power_w, const double *throughput, size_t n,
                           const struct tw_pfi_noise *noise, size_t draws, uint64_t seed, uint64_t stream,
                           double *scratch, double *ret_low, double *ret_high)
{
    struct tw_rng rng;
    tw_rng_init(&rng, seed, stream);
    interval(p0_w, t0, power_w, throughput, n, noise, draws, &rng, scratch, ret_low, ret_high);
}
