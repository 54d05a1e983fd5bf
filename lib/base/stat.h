/* SPDX-License-Identifier: Apache-2.0 */
/* base/stat.h - small statistics over arrays of doubles. NaN entries are not allowed: filter first. */
#ifndef TW_BASE_STAT_H
#define TW_BASE_STAT_H

#include <stddef.h>

double tw_stat_mean(const double *x, size_t n);                      /* NaN when n is 0 */
double tw_stat_std(const double *x, size_t n);                       /* divided by n - 1; NaN when n < 2 */
void tw_stat_sort(double *x, size_t n);                              /* ascending, in place, no allocation */
double tw_stat_quantile_sorted(const double *x, size_t n, double q); /* linear between ranks (type 7) */
/* Jain's fairness index, (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has everything. */
double tw_stat_jain(const double *x, size_t n);

/* Spearman's rank correlation, ties sharing their mean rank; NaN when n < 2 or one side is constant. O(n^2). */
double tw_stat_rank_corr(const double *x, const double *y, size_t n);

#endif
