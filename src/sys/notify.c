/* SPDX-License-Identifier: Apache-2.0 */
/* The datagrams of sd_notify(3). */
#include "sys/notify.h"

#include "base/num.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int64_t watchdog_us(void)
{
    const char *text = getenv("WATCHDOG_USEC"), *who = getenv("WATCHDOG_PID");
    int64_t us = 0, pid = getpid();
    if (!text || tw_num_i64(text, 1000, INT64_MAX, &us, NULL) != TW_OK)
        return 0;
    if (who && (tw_num_i64(who, 1, INT64_MAX, &pid, NULL) != TW_OK || pid != getpid()))
        return 0; /* meant for another process */
    return us / 2;
}

void tw_notify_init(struct tw_notify *n)
{
    *n = (struct tw_notify){.fd = -1};
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof addr.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(addr.sun_path, path, len);
    if (path[0] == '@')
        addr.sun_path[0] = '\0'; /* the abstract name space */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (connect(fd, (const struct sockaddr *)&addr, size) != 0) {
        close(fd);
        return;
    }
    n->fd = fd;
    n->period_us = watchdog_us();
}

void tw_notify_done(struct tw_notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}

void tw_notify_send(struct tw_notify *n, const char *state)
{
    if (n->fd >= 0) /* a full or vanished socket is systemd's trouble, and its watchdog will say so */
        (void)send(n->fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void tw_notify_alive(struct tw_notify *n, int64_t now_us)
{
    if (n->period_us <= 0 || now_us < n->next_us)
        return;
    n->next_us = now_us + n->period_us;
    tw_notify_send(n, "WATCHDOG=1");
}
