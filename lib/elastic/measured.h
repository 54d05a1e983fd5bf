/* SPDX-License-Identifier: Apache-2.0 */
/* elastic/measured.h - a job's measured points as they are: straight lines between them, not fitted, not
 * concave.
 *
 * What an oracle may know and what a split is scored on. */
#ifndef TW_ELASTIC_MEASURED_H
#define TW_ELASTIC_MEASURED_H

#include <stddef.h>

struct tw_measured {
    const double *x, *t; /* [n], x ascending, the last (1, 1); borrowed */
    size_t n;
};

/* From n relative points in any order (the uncapped one not among them): sorted, points at one x averaged, x >=
 * 1 left out (no cut), (1, 1) put last. ret_x and ret_t hold n + 1 values. Returns how many there are, 1 or
 * more. */
size_t tw_measured_sort(const double *x, const double *t, size_t n, double *ret_x, double *ret_t);

/* Throughput at x: straight between points, level outside them. */
double tw_measured_value(const struct tw_measured *m, double x);

#endif
