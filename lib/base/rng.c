/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256++ and what is made from it. */
#include "base/rng.h"

#include <assert.h>
#include <math.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void tw_rng_init(struct tw_rng *rng, uint64_t seed, uint64_t stream)
{
    uint64_t x = seed;
    uint64_t mixed = splitmix(&x) ^ (stream * 0xD1342543DE82EF95u);
    for (int i = 0; i < 4; i++)
        rng->s[i] = splitmix(&mixed);
    rng->spare = 0.0;
    rng->has_spare = 0;
}

uint64_t tw_rng_u64(struct tw_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotl(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t tw_rng_below(struct tw_rng *rng, uint64_t n)
{
    assert(n > 0);
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t x;
    do
        x = tw_rng_u64(rng);
    while (x >= limit);
    return x % n;
}

double tw_rng_f64(struct tw_rng *rng)
{
    return (double)(tw_rng_u64(rng) >> 11) * 0x1p-53;
}

double tw_rng_uniform(struct tw_rng *rng, double lo, double hi)
{
    return lo + (hi - lo) * tw_rng_f64(rng);
}

double tw_rng_normal(struct tw_rng *rng)
{
    if (rng->has_spare) {
        rng->has_spare = 0;
        return rng->spare;
    }
    double u = 1.0 - tw_rng_f64(rng); /* (0, 1]: the logarithm stays finite */
    double r = sqrt(-2.0 * log(u));
    double phi = 6.283185307179586 * tw_rng_f64(rng);
    rng->spare = r * sin(phi);
    rng->has_spare = 1;
    return r * cos(phi);
}
