/* SPDX-License-Identifier: Apache-2.0 */
/* The helper under test is the installed one with this list of back ends in place of
 * app/tokwatt-capd/backends.c. */
#include "tokwatt-capd/devices.h"

extern const struct tw_cap_ops tw_filecap;

const struct tw_capd_backend tw_capd_backend[] = {
    {NULL, &tw_filecap},
    {NULL, NULL},
};
