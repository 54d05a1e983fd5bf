/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log as a file. */
#include "sys/audit.h"

#include "sys/clock.h"
#include "sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One line at the end: opening ("", or "begin HASH "), the two clocks, the text. */
static bool put(struct tw_audit *a, const char *opening, const char *text)
{
    char now[32], stamped[TW_CHAIN_LINE_MAX], line[TW_CHAIN_LINE_MAX + 2];
    struct tw_chain next = a->chain;
    int len = snprintf(stamped, sizeof stamped, "%s%s%s %.3f %s", a->torn ? "torn " : "", opening,
                       tw_wall_show(tw_wall_us(), now, sizeof now), (double)tw_boot_us() / 1e6, text);
    if (len < 0 || a->fd < 0)
        return false;
    line[0] = '\n';
    size_t skip = a->midline ? 0 : 1, n = tw_chain_line(&next, stamped, line + 1) + 1 - skip;
    ssize_t done = write(a->fd, line + skip, n);
    if (done != (ssize_t)n) {
        if (done > 0 && ftruncate(a->fd, (off_t)a->size) != 0)
            a->torn = a->midline = true; /* a folder that only lets us append */
        return false;
    }
    a->size += n;
    a->dirty = true;
    a->torn = a->midline = false;
    a->chain = next;
    return true;
}

static enum tw_err create(struct tw_audit *a, struct tw_why *why)
{
    a->fd = open(a->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (a->fd < 0)
        return tw_fail(why, errno == EACCES ? TW_EPERM : TW_EIO, "%s: %s", a->path, strerror(errno));
    off_t end = lseek(a->fd, 0, SEEK_END);
    a->size = end > 0 ? (size_t)end : 0;
    return TW_OK;
}

enum tw_err tw_audit_open(struct tw_audit *a, const char *path, size_t ceiling, struct tw_why *why)
{
    *a = (struct tw_audit){.fd = -1, .ceiling = ceiling};
    tw_chain_init(&a->chain);
    if (strlen(path) + 3 > sizeof a->path)
        return tw_fail(why, TW_EINVAL, "%.60s...: the path is too long", path);
    (void)snprintf(a->path, sizeof a->path, "%s", path);
    enum tw_err err = create(a, why);
    if (err != TW_OK || a->size == 0)
        return err;
    char *data = NULL;
    size_t n = 0;
    bool tail = false;
    err = tw_file_read(path, ceiling + TW_CHAIN_LINE_MAX, &data, &n, why);
    if (err == TW_OK) {
        err = tw_chain_check(data, n, &a->chain, NULL, NULL, &tail, why);
        if (err != TW_OK)
            tw_why_prefix(why, "%s was changed: ", path);
    }
    if (err == TW_OK) {
        a->midline = n > 0 && data[n - 1] != '\n';
        a->torn = tail;
    }
    free(data);
    if (err != TW_OK)
        tw_audit_close(a);
    return err;
}

void tw_audit_close(struct tw_audit *a)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
}

static bool turn_over(struct tw_audit *a)
{
    char before[sizeof a->path + 2], opening[TW_CHAIN_HEX + 16];
    (void)snprintf(before, sizeof before, "%s.1", a->path);
    if (!tw_audit_sync(a) || rename(a->path, before) != 0)
        return false;
    tw_audit_close(a);
    if (create(a, NULL) != TW_OK)
        return false;
    (void)snprintf(opening, sizeof opening, "begin %s ", a->chain.hex);
    return put(a, opening, "goes on from the file before");
}

bool tw_audit_add(struct tw_audit *a, const char *fmt, ...)
{
    char text[TW_CHAIN_LINE_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (a->size + TW_CHAIN_LINE_MAX > a->ceiling && !turn_over(a)))
        return false;
    return put(a, "", text);
}

bool tw_audit_sync(struct tw_audit *a)
{
    if (a->dirty && (a->fd < 0 || fdatasync(a->fd) != 0))
        return false;
    a->dirty = false;
    return true;
}
