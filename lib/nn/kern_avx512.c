/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for avx512; see kern_impl.h. */
#define KERN_TABLE tw_kern_avx512
#define KERN_NAME "avx512"
#define KERN_VL 16
#define KERN_NV 4
#include "nn/kern_int.h"
#include "nn/kern_impl.h"
