/* SPDX-License-Identifier: Apache-2.0 */
/* nn/kern_int.h - the tables that this build holds, widest first. */
#ifndef TW_NN_KERN_INT_H
#define TW_NN_KERN_INT_H

#include "nn/kern.h"

extern const struct tw_kern tw_kern_base;
#if defined(__x86_64__)
extern const struct tw_kern tw_kern_avx2, tw_kern_avx512;
#elif defined(__aarch64__)
extern const struct tw_kern tw_kern_neon;
#endif

#endif
