/* SPDX-License-Identifier: Apache-2.0 */
/* Files, packed or not. */
#include "io/file/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define IN_SIZE 65536

struct tw_unpack {
    int fd;
    bool gzip, ended, damaged, fresh_member;
    uint64_t total;
    size_t in_n; /* bytes in `in`; for plain files those of the head that are not handed out yet */
    size_t in_at;
    z_stream z;
    unsigned char in[IN_SIZE];
};

static enum tw_err fail_errno(struct tw_why *why, const char *path)
{
    enum tw_err err = errno == ENOENT || errno == ENOTDIR ? TW_ENOENT : errno == EACCES ? TW_EPERM : TW_EIO;
    return tw_fail(why, err, "%s: %s", path, strerror(errno));
}

static enum tw_err fill_in(struct tw_unpack *u, struct tw_why *why)
{
    u->in_at = u->in_n = 0;
    ssize_t n;
    do
        n = read(u->fd, u->in, IN_SIZE);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return tw_fail(why, TW_EIO, "reading failed: %s", strerror(errno));
    u->in_n = (size_t)n;
    return TW_OK;
}

enum tw_err tw_unpack_open(const char *path, struct tw_unpack **ret, struct tw_why *why)
{
    enum tw_err err;
    struct stat st;
    struct tw_unpack *u = calloc(1, sizeof *u);
    if (!u)
        return tw_fail(why, TW_ENOMEM, "%s: out of memory", path);
    u->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (u->fd < 0 || fstat(u->fd, &st) != 0) {
        err = fail_errno(why, path);
        goto out;
    }
    if (S_ISDIR(st.st_mode)) {
        err = tw_fail(why, TW_EINVAL, "%s: is a directory, not a file", path);
        goto out;
    }
    err = fill_in(u, why);
    if (err) {
        tw_why_prefix(why, "%s: ", path);
        goto out;
    }
    u->gzip = u->in_n >= 2 && u->in[0] == 0x1f && u->in[1] == 0x8b;
    if (u->gzip && inflateInit2(&u->z, 15 + 16) != Z_OK) {
        u->gzip = false;
        err = tw_fail(why, TW_ENOMEM, "%s: out of memory", path);
        goto out;
    }
    *ret = u;
    u = NULL;
out:
    tw_unpack_close(u);
    return err;
}

void tw_unpack_close(struct tw_unpack *u)
{
    if (!u)
        return;
    if (u->gzip)
        inflateEnd(&u->z);
    if (u->fd >= 0)
        (void)close(u->fd); /* read only: nothing to lose */
    free(u);
}

bool tw_unpack_damaged(const struct tw_unpack *u)
{
    return u->damaged;
}

static enum tw_err read_plain(struct tw_unpack *u, char *buf, size_t size, size_t *n, struct tw_why *why)
{
    size_t head = u->in_n - u->in_at < size ? u->in_n - u->in_at : size;
    memcpy(buf, u->in + u->in_at, head);
    u->in_at += head;
    *n = head;
    while (*n < size) {
        ssize_t got = read(u->fd, buf + *n, size - *n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tw_fail(why, TW_EIO, "reading failed: %s", strerror(errno));
        if (got == 0)
            break;
        *n += (size_t)got;
    }
    return TW_OK;
}

/* One call of inflate; sets `ended` at the end of the data, and `damaged` when it is not a clean one. */
static enum tw_err inflate_some(struct tw_unpack *u, struct tw_why *why)
{
    if (u->in_at == u->in_n) {
        enum tw_err err = fill_in(u, why);
        if (err)
            return err;
        if (u->in_n == 0) {
            u->ended = true;
            u->damaged = !u->fresh_member;
            return TW_OK;
        }
    }
    u->z.next_in = u->in + u->in_at;
    u->z.avail_in = (uInt)(u->in_n - u->in_at);
    if (u->fresh_member &&
        u->z.next_in[0] == 0) { /* zero padding behind the last member, as tar and tapes do */
        u->in_at = u->in_n;
        return TW_OK;
    }
    u->fresh_member = false;
    int rc = inflate(&u->z, Z_NO_FLUSH);
    u->in_at = u->in_n - u->z.avail_in;
    if (rc == Z_STREAM_END) {
        u->fresh_member = true;
        rc = inflateReset(&u->z);
    }
    if (rc != Z_OK && rc != Z_BUF_ERROR)
        u->ended = u->damaged = true;
    return TW_OK;
}

static enum tw_err read_gzip(struct tw_unpack *u, char *buf, size_t size, size_t *n, struct tw_why *why)
{
    u->z.next_out = (unsigned char *)buf;
    u->z.avail_out = (uInt)size;
    enum tw_err err = TW_OK;
    while (!err && !u->ended && u->z.avail_out > 0)
        err = inflate_some(u, why);
    *n = size - u->z.avail_out;
    return err;
}

enum tw_err tw_unpack_read(struct tw_unpack *u, char *buf, size_t size, size_t *ret_n, struct tw_why *why)
{
    size_t n = 0;
    enum tw_err err = u->gzip ? read_gzip(u, buf, size, &n, why) : read_plain(u, buf, size, &n, why);
    if (err)
        return err;
    u->total += n;
    if (u->total > TW_UNPACK_MAX)
        return tw_fail(why, TW_ELIMIT, "more than %llu bytes of text; cut the file into parts",
                       (unsigned long long)TW_UNPACK_MAX);
    *ret_n = n;
    return TW_OK;
}
