/* SPDX-License-Identifier: Apache-2.0 */
/* Measured points: insertion sort, since a job has a dozen. */
#include "elastic/measured.h"

size_t tw_measured_sort(const double *x, const double *t, size_t n, double *ret_x, double *ret_t)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] < 1.0))
            continue;
        size_t at = m++;
        for (; at > 0 && ret_x[at - 1] > x[i]; at--) {
            ret_x[at] = ret_x[at - 1];
            ret_t[at] = ret_t[at - 1];
        }
        ret_x[at] = x[i];
        ret_t[at] = t[i];
    }
    size_t out = 0;
    for (size_t i = 0, same = 1; i < m; i++) {
        if (out > 0 && !(ret_x[i] > ret_x[out - 1])) {
            same++;
            ret_t[out - 1] += (ret_t[i] - ret_t[out - 1]) / (double)same;
        } else {
            same = 1;
            ret_x[out] = ret_x[i];
            ret_t[out++] = ret_t[i];
        }
    }
    ret_x[out] = 1.0;
    ret_t[out++] = 1.0;
    return out;
}

double tw_measured_value(const struct tw_measured *m, double x)
{
    if (!(x > m->x[0]))
        return m->t[0];
    for (size_t i = 1; i < m->n; i++)
        if (x <= m->x[i])
            return m->t[i - 1] + (m->t[i] - m->t[i - 1]) * (x - m->x[i - 1]) / (m->x[i] - m->x[i - 1]);
    return m->t[m->n - 1];
}
