/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for avx2; see kern_impl.h. */
#define KERN_TABLE tw_kern_avx2
#define KERN_NAME "avx2"
#define KERN_VL 8
#define KERN_NV 2
#include "nn/kern_int.h"
#include "nn/kern_impl.h"
