/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of Linux. */
#include "sys/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts); /* cannot fail for these ids */
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t tw_boot_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t tw_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

char *tw_wall_show(int64_t wall_us, char *buf, size_t size)
{
    int64_t us = wall_us % 1000000;
    if (us < 0)
        us += 1000000;
    time_t s = (time_t)((wall_us - us) / 1000000);
    struct tm tm;
    char day[24];
    if (!gmtime_r(&s, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        (void)snprintf(buf, size, "?");
    else
        (void)snprintf(buf, size, "%s.%03dZ", day, (int)(us / 1000));
    return buf;
}
