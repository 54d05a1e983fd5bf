/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/adamw.h"

#include <math.h>

void tw_adamw_step(const struct tw_adamw *opt, size_t n, size_t step, float rate, const float *grad,
                   float *restrict m, float *restrict v, float *restrict param)
{
    const float fix1 = (float)(1.0 / (1.0 - pow((double)opt->beta1, (double)step)));
    const float fix2 = (float)(1.0 / (1.0 - pow((double)opt->beta2, (double)step)));
    for (size_t i = 0; i < n; i++) {
        m[i] = opt->beta1 * m[i] + (1.0f - opt->beta1) * grad[i];
        v[i] = opt->beta2 * v[i] + (1.0f - opt->beta2) * grad[i] * grad[i];
        param[i] -= rate * (m[i] * fix1 / (sqrtf(v[i] * fix2) + opt->eps) + opt->decay * param[i]);
    }
}

double tw_grad_clip(size_t n, float *grad, double limit)
{
    double sum[8] = {0}; /* eight lanes, so that the order is fixed and the loop vectorises */
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t l = 0; l < 8; l++)
            sum[l] += (double)grad[i + l] * (double)grad[i + l];
    for (; i < n; i++)
        sum[0] += (double)grad[i] * (double)grad[i];
    double norm = 0.0;
    for (size_t l = 0; l < 8; l++)
        norm += sum[l];
    norm = sqrt(norm);
    if (limit > 0.0 && norm > limit) {
        const float by = (float)(limit / norm);
        for (i = 0; i < n; i++)
            grad[i] *= by;
    }
    return norm;
}
