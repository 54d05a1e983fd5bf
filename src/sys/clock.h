/* SPDX-License-Identifier: Apache-2.0 */
/* sys/clock.h - the two clocks, which never mix.
 *
 * tw_boot counts through suspend and never steps: intervals, deadlines, leases. tw_wall is the time of day:
 * timestamps for people and files. lib/ is told the time; one turn of the loop has one `now`. */
#ifndef TW_SYS_CLOCK_H
#define TW_SYS_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t tw_boot_us(void); /* CLOCK_BOOTTIME, microseconds */
int64_t tw_wall_us(void); /* CLOCK_REALTIME, microseconds since 1970 */

/* RFC 3339 in UTC with milliseconds, "2026-12-01T10:00:00.000Z"; buf of at least 32 bytes. Returns buf. */
char *tw_wall_show(int64_t wall_us, char *buf, size_t size);

#endif
