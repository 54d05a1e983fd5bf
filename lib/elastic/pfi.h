/* SPDX-License-Identifier: Apache-2.0 */
/* elastic/pfi.h - the Power Flexibility Index of measured points (arXiv 2609.11542), and its interval.
 *
 * Points are watts and units/s, in any order, the uncapped ones (p0, t0) apart. With d = 1 - P/P_0 and l = 1 -
 * T/T_0:
 *
 *   mean    mean of d / l over points with d >= TW_PFI_MIN_CUT and l >= TW_PFI_MIN_LOSS: where a cap does not
 * bind, or nothing is lost, the ratio means nothing. NaN when no point counts. ros     ratio of sums, sum d /
 * sum l over all points: stable. NaN unless both sums are above 0. plain   mean of d / l over all points with l
 * other than 0: what the definition gives without guards. */
#ifndef TW_ELASTIC_PFI_H
#define TW_ELASTIC_PFI_H

#include <stddef.h>
#include <stdint.h>

#define TW_PFI_MIN_CUT 0.02
#define TW_PFI_MIN_LOSS 0.01
#define TW_PFI_DRAWS 10000
#define TW_PFI_LEVEL 0.90

struct tw_pfi {
    double mean, ros, plain;
    unsigned used; /* points that count towards the mean */
};

struct tw_pfi tw_pfi_of(double p0_w, double t0, const double *power_w, const double *throughput, size_t n);

/* A TW_PFI_LEVEL interval of `mean` by parametric bootstrap: every power and throughput, the uncapped ones
 * included, is drawn anew from a normal around the measured one, with the published run-to-run deviations
 * (elastic/fit.h), the guards apply to each draw, and draws without a point that counts are left out. scratch
 * [draws]; seed and stream name the random numbers NaN for both ends when fewer than half of the draws had a
 * point that counts. */
void tw_pfi_interval(double p0_w, double t0, const double *power_w, const double *throughput, size_t n,
                     size_t draws, uint64_t seed, uint64_t stream, double *scratch, double *ret_low,
                     double *ret_high);

/* The same with deviations of one's own, relative to each value. power, throughput [n] */
struct tw_pfi_noise {
    double p0, t0;
    const double *power, *throughput;
};
void tw_pfi_interval_noise(double p0_w, double t0, const double *power_w, const double *throughput, size_t n,
                           const struct tw_pfi_noise *noise, size_t draws, uint64_t seed, uint64_t stream,
                           double *scratch, double *ret_low, double *ret_high);

#endif
