/* SPDX-License-Identifier: Apache-2.0 */
/* sys/notify.h - tell systemd that we are up and alive (sd_notify(3), the datagram protocol), without
 * libsystemd.
 *
 * The socket's name and the watchdog's period come from the environment that systemd made; without them
 * everything here does nothing. */
#ifndef TW_SYS_NOTIFY_H
#define TW_SYS_NOTIFY_H

#include <stdint.h>

struct tw_notify {
    int fd;            /* -1: nobody listens */
    int64_t period_us; /* of the watchdog's sign of life: half of what systemd waits; 0 none */
    int64_t next_us;   /* boot clock */
};

void tw_notify_init(struct tw_notify *n); /* reads NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID */
void tw_notify_done(struct tw_notify *n);
void tw_notify_send(struct tw_notify *n, const char *state); /* "READY=1", "STOPPING=1", "STATUS=..." */
void tw_notify_alive(struct tw_notify *n, int64_t now_us);   /* call each turn; sends when due */

#endif
