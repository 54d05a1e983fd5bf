/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_site.h - `tokwatt allocate` on a site file: a tree of limits, all policies side by side. */
#ifndef TW_APP_ALLOC_SITE_H
#define TW_APP_ALLOC_SITE_H

#include "alloc/alloc.h"

#include <stdbool.h>

struct alloc_site_args {
    const char *path;
    double cut_frac, budget_w;  /* one of them, the other NaN */
    double what_if_w;           /* NaN: not asked */
    double risk;                /* standard deviations that losses are taken to be worse */
    const bool *wanted, *named; /* [TW_POLICY_COUNT] */
    bool json, detail;
};

/* Is the file one? By its first words. False when it cannot be read: the caller's reader says why. */
bool alloc_site_is(const char *path);
int alloc_site(const struct alloc_site_args *a);

#endif
