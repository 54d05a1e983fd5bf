/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files. */
#include "sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum tw_err from_errno(int e)
{
    switch (e) {
    case ENOENT:
    case ENOTDIR:
        return TW_ENOENT;
    case EACCES:
    case EPERM:
    case EROFS:
        return TW_EPERM;
    default:
        return TW_EIO;
    }
}

enum tw_err tw_file_read(const char *path, size_t max_bytes, char **ret_data, size_t *ret_n, struct tw_why *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tw_fail(why, from_errno(errno), "%s: %s", path, strerror(errno));
    enum tw_err err = TW_OK;
    char *data = NULL;
    size_t room = 65536, n = 0;
    struct stat st;
    if (fstat(fd, &st) != 0) {
        err = tw_fail(why, TW_EIO, "%s: %s", path, strerror(errno));
        goto out;
    }
    if (S_ISDIR(st.st_mode)) {
        err = tw_fail(why, TW_EINVAL, "%s is a directory; name a file", path);
        goto out;
    }
    if (S_ISREG(st.st_mode) && st.st_size > 0 && (uintmax_t)st.st_size < max_bytes)
        room = (size_t)st.st_size;
    data = malloc(room + 1);
    for (;;) {
        if (!data) {
            err = tw_fail(why, TW_ENOMEM, "%s: no memory for %zu bytes", path, room);
            goto out;
        }
        ssize_t got = read(fd, data + n, room - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            err = tw_fail(why, TW_EIO, "%s: %s", path, strerror(errno));
            goto out;
        }
        if (got == 0 && n < room)
            break;
        n += (size_t)got;
        if (n > max_bytes) {
            err =
                tw_fail(why, TW_ELIMIT, "%s is larger than %zu bytes, the most that is read", path, max_bytes);
            goto out;
        }
        if (n == room) {
            char probe;
            ssize_t more = read(fd, &probe, 1);
            if (more == 0)
                break;
            if (more < 0) {
                err = tw_fail(why, TW_EIO, "%s: %s", path, strerror(errno));
                goto out;
            }
            size_t wider = room * 2;
            char *grown = realloc(data, wider + 1);
            if (!grown) {
                err = tw_fail(why, TW_ENOMEM, "%s: no memory for %zu bytes", path, wider);
                goto out;
            }
            data = grown;
            room = wider;
            data[n++] = probe;
        }
    }
    data[n] = '\0';
    *ret_data = data;
    *ret_n = n;
    data = NULL;
out:
    free(data);
    close(fd);
    return err;
}

enum tw_err tw_file_replace(const char *path, const void *data, size_t n, struct tw_why *why)
{
    char beside[4096], folder[4096] = ".";
    int len = snprintf(beside, sizeof beside, "%s.tmp.%ld", path, (long)getpid());
    if (len < 0 || (size_t)len >= sizeof beside)
        return tw_fail(why, TW_EINVAL, "%.60s...: the path is too long", path);
    const char *slash = strrchr(path, '/');
    if (slash) {
        size_t keep = (size_t)(slash - path) + (slash == path); /* "/" itself for a file at the top */
        memcpy(folder, path, keep);
        folder[keep] = '\0';
    }
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 && errno == EEXIST && unlink(beside) == 0) /* left by a dead process that had our number */
        fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return tw_fail(why, from_errno(errno), "%s: %s", beside, strerror(errno));
    int e = 0;
    const char *p = data;
    for (size_t left = n; left > 0 && !e;) {
        ssize_t put = write(fd, p, left);
        if (put < 0 && errno != EINTR)
            e = errno;
        else if (put > 0) {
            p += put;
            left -= (size_t)put;
        }
    }
    if (!e && fsync(fd) != 0)
        e = errno;
    if (close(fd) != 0 && !e)
        e = errno;
    if (!e && rename(beside, path) != 0)
        e = errno;
    if (e) {
        (void)unlink(beside); /* what was written is of no use to anyone */
        return tw_fail(why, from_errno(e), "%s: %s", path, strerror(e));
    }
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return tw_fail(why, from_errno(errno), "%s: %s", folder, strerror(errno));
    /* Some file systems cannot sync a folder, and say so by EINVAL; any other failure means that the new name
     * may not survive a power cut. */
    e = fsync(dir) != 0 && errno != EINVAL ? errno : 0;
    close(dir);
    return e ? tw_fail(why, from_errno(e), "%s: %s", folder, strerror(e)) : TW_OK;
}
