/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for neon; see kern_impl.h. */
#define KERN_TABLE tw_kern_neon
#define KERN_NAME "neon"
#define KERN_VL 4
#define KERN_NV 4
#include "nn/kern_int.h"
#include "nn/kern_impl.h"
