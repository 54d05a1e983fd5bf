/* SPDX-License-Identifier: Apache-2.0 */
/* Small statistics. */
#include "base/stat.h"

#include <math.h>

double tw_stat_mean(const double *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return n ? sum / (double)n : (double)NAN;
}

double tw_stat_std(const double *x, size_t n)
{
    if (n < 2)
        return (double)NAN;
    double mean = tw_stat_mean(x, n), sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sqrt(sum / (double)(n - 1));
}

static void sift(double *x, size_t root, size_t n)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && x[child + 1] > x[child])
            child++;
        if (!(x[child] > x[root]))
            return;
        double t = x[root];
        x[root] = x[child];
        x[child] = t;
    }
}

/* Heap sort: qsort may allocate, and lib/ does not. */
void tw_stat_sort(double *x, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(x, i, n);
    for (size_t end = n; end-- > 1;) {
        double t = x[0];
        x[0] = x[end];
        x[end] = t;
        sift(x, 0, end);
    }
}

double tw_stat_quantile_sorted(const double *x, size_t n, double q)
{
    if (n == 0)
        return (double)NAN;
    double at = q * (double)(n - 1);
    if (!(at > 0.0))
        return x[0];
    size_t i = (size_t)at;
    if (i + 1 >= n)
        return x[n - 1];
    return x[i] + (at - (double)i) * (x[i + 1] - x[i]);
}

double tw_stat_jain(const double *x, size_t n)
{
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return squares > 0.0 ? sum * sum / ((double)n * squares) : (double)NAN;
}

static double rank_of(const double *x, size_t n, size_t i)
{
    double below = 0.0, same = 0.0;
    for (size_t k = 0; k < n; k++) {
        below += x[k] < x[i];
        same += !(x[k] < x[i]) && !(x[k] > x[i]);
    }
    return below + 0.5 * (same + 1.0);
}

double tw_stat_rank_corr(const double *x, const double *y, size_t n)
{
    double mid = 0.5 * ((double)n + 1.0), xx = 0.0, yy = 0.0, xy = 0.0;
    for (size_t i = 0; i < n; i++) {
        double a = rank_of(x, n, i) - mid, b = rank_of(y, n, i) - mid;
        xx += a * a;
        yy += b * b;
        xy += a * b;
    }
    return xx > 0.0 && yy > 0.0 ? xy / sqrt(xx * yy) : (double)NAN;
}
