/* SPDX-License-Identifier: Apache-2.0 */
/* The helper clears its environment, and the fake driver is told by the environment which site it is: a library
 * to preload that keeps the one from the other. */
#include <stdlib.h>

int clearenv(void)
{
    return 0;
}
