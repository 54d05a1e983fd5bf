/* SPDX-License-Identifier: Apache-2.0 */
/* Who could have written this file? */
#include "sys/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool owner_is_ours(const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == geteuid();
}

/* Folders from the root down, of a path without links. */
static enum tw_err folders(const char *real, struct tw_why *why)
{
    char at[PATH_MAX];
    for (size_t i = 0; i < sizeof at && (i == 0 || real[i - 1] != '\0'); i++) {
        if (i > 0 && real[i] != '/' && real[i] != '\0')
            continue;
        size_t n = i == 0 ? 1 : i;
        memcpy(at, real, n);
        at[n] = '\0';
        struct stat st;
        if (lstat(at, &st) != 0)
            return tw_fail(why, TW_EIO, "%s: %s", at, strerror(errno));
        if (!owner_is_ours(&st))
            return tw_fail(why, TW_EPERM, "%s belongs to user %u; it must belong to root", at, st.st_uid);
        bool on_the_way = real[i] != '\0' && real[1] != '\0';
        if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(on_the_way && (st.st_mode & S_ISVTX)))
            return tw_fail(why, TW_EPERM, "%s can be written by others (mode %04o); chmod go-w it", at,
                           st.st_mode & 07777U);
    }
    return TW_OK;
}

enum tw_err tw_trust_path(const char *path, struct tw_why *why)
{
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (path[0] != '/' || strlen(path) >= sizeof folder)
        return tw_fail(why, TW_EINVAL, "%.80s: write an absolute path", path);
    size_t n = slash == path ? 1 : (size_t)(slash - path);
    memcpy(folder, path, n);
    folder[n] = '\0';
    if (!realpath(folder, real))
        return tw_fail(why, errno == ENOENT ? TW_ENOENT : TW_EIO, "%s: %s", folder, strerror(errno));
    /* A link on the way that a stranger owns would lie in a folder that he can write, which the walk over the
     * unresolved path refuses; the walk over the resolved one looks at where the links led. */
    enum tw_err err = folders(real, why);
    for (size_t i = 1; err == TW_OK && i <= n; i++) {
        if (path[i] != '/' && i < n)
            continue;
        struct stat st;
        memcpy(folder, path, i);
        folder[i] = '\0';
        if (lstat(folder, &st) == 0 && S_ISLNK(st.st_mode) && !owner_is_ours(&st))
            err = tw_fail(why, TW_EPERM, "%s is a link that belongs to user %u", folder, st.st_uid);
    }
    if (err != TW_OK)
        return err;
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? TW_OK : tw_fail(why, TW_EIO, "%s: %s", path, strerror(errno));
    if (S_ISLNK(st.st_mode))
        return tw_fail(why, TW_EPERM, "%s is a symbolic link; name the file itself", path);
    if (!S_ISREG(st.st_mode))
        return tw_fail(why, TW_EPERM, "%s is not a regular file", path);
    if (!owner_is_ours(&st))
        return tw_fail(why, TW_EPERM, "%s belongs to user %u; it must belong to root", path, st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return tw_fail(why, TW_EPERM, "%s can be written by others (mode %04o); chmod go-w it", path,
                       st.st_mode & 07777U);
    return TW_OK;
}
