/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a series. */
#include "series/series.h"

#include "base/stat.h"

#include <math.h>

double tw_series_span_s(const struct tw_series *s)
{
    return s->n < 2 ? 0.0 : (double)(s->time_us[s->n - 1] - s->time_us[0]) * 1e-6;
}

double tw_series_step_s(const struct tw_series *s)
{
    double step[4096];
    size_t steps = s->n < 2 ? 0 : s->n - 1;
    size_t take = steps < 4096 ? steps : 4096;
    for (size_t i = 0; i < take; i++) {
        size_t at = i * steps / take;
        step[i] = (double)(s->time_us[at + 1] - s->time_us[at]) * 1e-6;
    }
    tw_stat_sort(step, take);
    return take ? tw_stat_quantile_sorted(step, take, 0.5) : (double)NAN;
}

size_t tw_series_gaps(const struct tw_series *s, double *ret_longest_s)
{
    double limit_s = fmax(1.0, 5.0 * tw_series_step_s(s)), longest_s = 0.0;
    size_t gaps = 0;
    for (size_t i = 1; i < s->n; i++) {
        double step_s = (double)(s->time_us[i] - s->time_us[i - 1]) * 1e-6;
        if (!(step_s > limit_s))
            continue;
        gaps++;
        longest_s = step_s > longest_s ? step_s : longest_s;
    }
    if (ret_longest_s)
        *ret_longest_s = longest_s;
    return gaps;
}
