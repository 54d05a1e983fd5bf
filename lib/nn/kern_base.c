/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for base; see kern_impl.h. */
#define KERN_TABLE tw_kern_base
#define KERN_NAME "base"
#define KERN_VL 4
#define KERN_NV 2
#include "nn/kern_int.h"
#include "nn/kern_impl.h"
