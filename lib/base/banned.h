/* SPDX-License-Identifier: Apache-2.0 */
/* base/banned.h - functions that have a safer neighbour become compile errors (git: banned.h).
 * Forced into every file of the project by the build; system headers are read first. */
#ifndef TW_BASE_BANNED_H
#define TW_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol atoll atof gets localtime   \
    gmtime ctime asctime rand srand

#endif
