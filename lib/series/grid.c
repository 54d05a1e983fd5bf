/* SPDX-License-Identifier: Apache-2.0 */
#include "series/grid.h"

#include <math.h>

double tw_grid_step_s(double median_s)
{
    if (median_s < 0.75)
        return 1.0;
    return isnan(median_s) ? median_s : round(median_s);
}

static int64_t step_us(double step_s)
{
    return llround(step_s * 1e6);
}

size_t tw_grid_count(const struct tw_series *s, int64_t start_us, double step_s)
{
    if (s->n == 0 || s->time_us[s->n - 1] < start_us)
        return 0;
    return (size_t)((s->time_us[s->n - 1] - start_us) / step_us(step_s)) + 1;
}

void tw_grid_fill(const struct tw_series *s, enum tw_channel ch, int64_t start_us, double step_s, bool mean,
                  double hold_s, size_t n, float *ret)
{
    const int64_t step = step_us(step_s);
    const float *x = s->ch[ch];
    const double hold_steps = hold_s / step_s;
    float last = NAN;
    double age = 0.0; /* steps since `last` was its own */
    size_t row = 0;
    for (size_t k = 0; k < n; k++) {
        /* rows before `until` belong to this step: the bin's end, or the grid point itself */
        const int64_t until = start_us + (int64_t)(mean ? k + 1 : k) * step + (mean ? 0 : 1);
        double sum = 0.0;
        size_t count = 0;
        for (; x && row < s->n && s->time_us[row] < until; row++) {
            if (isnan(x[row]))
                continue;
            sum = mean ? sum + (double)x[row] : (double)x[row];
            count = mean ? count + 1 : 1;
        }
        age += 1.0;
        if (count > 0) {
            last = (float)(sum / (double)count);
            age = 0.0;
        }
        ret[k] = age <= hold_steps ? last : NAN;
    }
}
