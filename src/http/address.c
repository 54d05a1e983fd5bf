/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are listened on, and which names a request may use for them. */
#include "base/num.h"
#include "http/http_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

/* "HOST:PORT", "[HOST]:PORT", "HOST" into parts; *ret_port is what follows the colon, or NULL. */
static bool split(const char *text, char *host, size_t room, const char **ret_port)
{
    const char *start = text, *end, *port = NULL;
    if (*text == '[') {
        start = text + 1;
        end = strchr(start, ']');
        if (!end || (end[1] != '\0' && end[1] != ':'))
            return false;
        port = end[1] == ':' ? end + 2 : NULL;
    } else {
        end = strrchr(text, ':');
        port = end ? end + 1 : NULL;
        if (!end)
            end = text + strlen(text);
    }
    size_t n = (size_t)(end - start);
    if (n == 0 || n >= room)
        return false;
    memcpy(host, start, n);
    host[n] = '\0';
    *ret_port = port;
    return true;
}

static bool loopback_v4(const char *host, struct in_addr *ret)
{
    return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, ret) == 1 &&
           ntohl(ret->s_addr) >> 24 == 127;
}

static bool loopback_v6(const char *host, struct in6_addr *ret)
{
    return inet_pton(AF_INET6, host, ret) == 1 && IN6_IS_ADDR_LOOPBACK(ret);
}

bool tw_http_host_ok(const char *host)
{
    char name[64];
    const char *port;
    struct in_addr v4;
    struct in6_addr v6;
    if (!host || !split(host, name, sizeof name, &port))
        return false;
    if (port && (strlen(port) > 5 || strspn(port, "0123456789") != strlen(port)))
        return false;
    for (char *c = name; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    return loopback_v4(name, &v4) || loopback_v6(name, &v6);
}

bool tw_http_origin_ok(const char *origin, const char *host)
{
    static const char scheme[] = "http://";
    return strncmp(origin, scheme, sizeof scheme - 1) == 0 && strcmp(origin + sizeof scheme - 1, host) == 0;
}

static bool is_address(const char *host)
{
    unsigned char any[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, any) == 1 || inet_pton(AF_INET6, host, any) == 1;
}

int tw_http_socket(const char *listen_text, unsigned *ret_port, enum tw_err *ret_err, struct tw_why *why)
{
    char host[64];
    const char *port_text;
    int64_t port = 0;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } addr = {.v6 = {0}};
    socklen_t len = 0;
    if (!split(listen_text, host, sizeof host, &port_text) || !port_text ||
        tw_num_i64(port_text, 0, 65535, &port, NULL) != TW_OK) {
        *ret_err =
            tw_fail(why, TW_EPARSE, "\"%s\" is not ADDRESS:PORT, for example 127.0.0.1:9477", listen_text);
        return -1;
    }
    if (loopback_v4(host, &addr.v4.sin_addr)) {
        addr.v4.sin_family = AF_INET;
        addr.v4.sin_port = htons((uint16_t)port);
        len = sizeof addr.v4;
    } else if (loopback_v6(host, &addr.v6.sin6_addr)) {
        addr.v6.sin6_family = AF_INET6;
        addr.v6.sin6_port = htons((uint16_t)port);
        len = sizeof addr.v6;
    } else {
        *ret_err = is_address(host)
                       ? tw_fail(why, TW_EPERM,
                                 "will not listen on %s: anyone who reaches it could cut the site's power, and "
                                 "there is no TLS or credential yet; listen on 127.0.0.1 and reach it through "
                                 "ssh -L",
                                 host)
                       : tw_fail(why, TW_EPARSE, "\"%s\" is not a loopback address like 127.0.0.1", host);
        return -1;
    }

    int on = 1;
    int fd = socket(addr.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, &addr.any, len) != 0 || listen(fd, 128) != 0 || getsockname(fd, &addr.any, &len) != 0) {
        *ret_err = tw_fail(why, TW_EIO, "cannot listen on %s: %s%s", listen_text, strerror(errno),
                           errno == EADDRINUSE ? "; stop the other program or choose another port" : "");
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    *ret_port = ntohs(addr.any.sa_family == AF_INET ? addr.v4.sin_port : addr.v6.sin6_port);
    return fd;
}
