/* SPDX-License-Identifier: Apache-2.0 */
/* What the installed helper can write to. Tests link a list of their own. */
#include "tokwatt-capd/devices.h"

#include "io/sim/sim.h"

const struct tw_capd_backend tw_capd_backend[] = {
    {&tw_sim_source, &tw_sim_cap},
    {NULL, NULL},
};
