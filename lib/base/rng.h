/* SPDX-License-Identifier: Apache-2.0 */
/* base/rng.h - seeded random numbers (xoshiro256++, Blackman and Vigna 2019, seeded by splitmix64).
 *
 * The state is the caller's; the same seed and stream give the same numbers everywhere. Not for secrets. */
#ifndef TW_BASE_RNG_H
#define TW_BASE_RNG_H

#include <stdint.h>

struct tw_rng {
    uint64_t s[4];
    double spare; /* the second number of a normal pair */
    int has_spare;
};

/* Different streams of one seed are independent for our purposes: one per GPU, job, layer. */
void tw_rng_init(struct tw_rng *rng, uint64_t seed, uint64_t stream);
uint64_t tw_rng_u64(struct tw_rng *rng);
uint64_t tw_rng_below(struct tw_rng *rng, uint64_t n); /* 0 .. n-1 without bias; n >= 1 */
double tw_rng_f64(struct tw_rng *rng);                 /* [0, 1) */
double tw_rng_uniform(struct tw_rng *rng, double lo, double hi);
double tw_rng_normal(struct tw_rng *rng); /* mean 0, standard deviation 1 */

#endif
