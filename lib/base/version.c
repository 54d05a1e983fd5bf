/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library. */
#include "tokwatt/version.h"

const char *tw_version(void)
{
    return TW_VERSION;
}
