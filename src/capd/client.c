/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of the privileged helper's socket. */
#include "capd/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum tw_err tw_capd_client_open(struct tw_capd_client *c, const char *path, struct tw_why *why)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const struct timeval deadline = {.tv_sec = (time_t)TW_CAPD_DEADLINE_S};
    const char *at = path ? path : TW_CAPD_SOCKET;
    *c = (struct tw_capd_client){.fd = -1};
    size_t n = strlen(at);
    if (n >= sizeof addr.sun_path)
        return tw_fail(why, TW_EINVAL, "%.60s...: a socket's path has at most %zu characters", at,
                       sizeof addr.sun_path - 1);
    memcpy(addr.sun_path, at, n);
    c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return tw_fail(why, TW_EIO, "socket: %s", strerror(errno));
    if (setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline) == 0 &&
        setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline) == 0 &&
        connect(c->fd, (const struct sockaddr *)&addr, sizeof addr) == 0)
        return TW_OK;
    int e = errno;
    tw_capd_client_close(c);
    if (e == ENOENT || e == ECONNREFUSED)
        return tw_fail(why, TW_ENOENT, "no tokwatt-capd listens at %s; is it started?", at);
    return tw_fail(why, e == EACCES ? TW_EPERM : TW_EIO, "%s: %s", at, strerror(e));
}

void tw_capd_client_close(struct tw_capd_client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

static enum tw_err broken(struct tw_capd_client *c, struct tw_why *why, const char *what)
{
    tw_capd_client_close(c);
    return tw_fail(why, TW_EIO,
                   "tokwatt-capd %s; the connection is closed, and what it held goes to its safe value", what);
}

static enum tw_err exchange(struct tw_capd_client *c, struct tw_capd_ask *ask, struct tw_capd_reply *ret_reply,
                            struct tw_why *why)
{
    struct tw_capd_reply r;
    if (c->fd < 0)
        return tw_fail(why, TW_EIO, "not connected to tokwatt-capd");
    ask->magic = TW_CAPD_MAGIC;
    ask->seq = ++c->seq;
    if (send(c->fd, ask, sizeof *ask, MSG_NOSIGNAL) != (ssize_t)sizeof *ask)
        return broken(c, why, "does not take requests (is this user listed in its configuration?)");
    ssize_t n = recv(c->fd, &r, sizeof r, MSG_TRUNC);
    while (n < 0 && errno == EINTR)
        n = recv(c->fd, &r, sizeof r, MSG_TRUNC);
    if (n < 0)
        return broken(c, why, "did not answer in time");
    if (n == 0)
        return broken(c, why, "hung up (is this user listed in its configuration?)");
    if (n != (ssize_t)sizeof r || r.magic != TW_CAPD_MAGIC || (r.seq != ask->seq && r.status != TW_EPARSE) ||
        r.status > 0)
        return broken(c, why, "answered with something else than a reply");
    r.text[sizeof r.text - 1] = r.uuid[sizeof r.uuid - 1] = '\0';
    if (ret_reply)
        *ret_reply = r;
    return r.status == TW_OK
               ? TW_OK
               : tw_fail(why, (enum tw_err)r.status, "%s%s%s", ask->uuid, ask->uuid[0] ? ": " : "", r.text);
}

/* A request about a GPU; a name that cannot be one is no GPU of anyone's. */
static enum tw_err ask_for(struct tw_capd_ask *ask, enum tw_capd_op op, const char *uuid, struct tw_why *why)
{
    *ask = (struct tw_capd_ask){.op = (uint16_t)op};
    size_t n = strlen(uuid);
    if (n >= sizeof ask->uuid)
        return tw_fail(why, TW_ENOENT, "%.60s... is no GPU's UUID", uuid);
    memcpy(ask->uuid, uuid, n);
    return TW_OK;
}

enum tw_err tw_capd_acquire(struct tw_capd_client *c, const char *uuid, enum tw_capd_kind kind, double lease_s,
                            struct tw_capd_reply *ret_reply, struct tw_why *why)
{
    struct tw_capd_ask ask;
    enum tw_err err = ask_for(&ask, TW_CAPD_ACQUIRE, uuid, why);
    if (err == TW_OK && !(lease_s > 0.0 && lease_s < 1e6))
        err = tw_fail(why, TW_EINVAL, "a lease of %g s", lease_s);
    if (err != TW_OK)
        return err;
    ask.kind = (uint16_t)kind;
    ask.lease_ms = (uint32_t)(lease_s * 1e3 + 0.5);
    return exchange(c, &ask, ret_reply, why);
}

enum tw_err tw_capd_set(struct tw_capd_client *c, const char *uuid, double limit_w, const char *reason,
                        struct tw_capd_reply *ret_reply, struct tw_why *why)
{
    struct tw_capd_ask ask;
    enum tw_err err = ask_for(&ask, TW_CAPD_SET, uuid, why);
    if (err != TW_OK)
        return err;
    ask.watts = limit_w;
    (void)snprintf(ask.reason, sizeof ask.reason, "%s", reason ? reason : "");
    return exchange(c, &ask, ret_reply, why);
}

enum tw_err tw_capd_do(struct tw_capd_client *c, enum tw_capd_op op, const char *uuid,
                       struct tw_capd_reply *ret_reply, struct tw_why *why)
{
    struct tw_capd_ask ask;
    enum tw_err err = ask_for(&ask, op, uuid, why);
    return err == TW_OK ? exchange(c, &ask, ret_reply, why) : err;
}

enum tw_err tw_capd_list(struct tw_capd_client *c, unsigned index, struct tw_capd_reply *ret_reply,
                         struct tw_why *why)
{
    struct tw_capd_ask ask = {.op = TW_CAPD_STATUS, .index = index};
    return exchange(c, &ask, ret_reply, why);
}
