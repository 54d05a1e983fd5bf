/* SPDX-License-Identifier: Apache-2.0 */
/* What the installed helper can write to. Tests link a list of their own. */
#include "tokwatt-capd/devices.h"

#include "io/nvml/nvml.h"

const struct tw_capd_backend tw_capd_backend[] = {
    {NULL, &tw_nvml_cap},
    {NULL, NULL},
};
