/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a folder. */
#include "io/file/walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 64

/* The folders entered so far. */
struct seen {
    struct {
        dev_t dev;
        ino_t ino;
    } * folder;
    size_t n, cap;
};

static bool make_room(void *field, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    size_t more = *cap ? *cap * 2 : 64;
    void *old;
    memcpy(&old, field, sizeof old);
    void *grown = realloc(old, more * size);
    if (!grown)
        return false;
    memcpy(field, &grown, sizeof grown);
    *cap = more;
    return true;
}

static bool enter(struct seen *seen, const struct stat *st, bool *ret_new)
{
    *ret_new = true;
    for (size_t i = 0; i < seen->n; i++)
        if (seen->folder[i].dev == st->st_dev && seen->folder[i].ino == st->st_ino)
            *ret_new = false;
    if (!*ret_new)
        return true;
    if (!make_room(&seen->folder, seen->n, &seen->cap, sizeof *seen->folder))
        return false;
    seen->folder[seen->n].dev = st->st_dev;
    seen->folder[seen->n++].ino = st->st_ino;
    return true;
}

static bool keep(struct tw_walk *walk, char *path)
{
    if (!make_room(&walk->path, walk->n, &walk->cap, sizeof *walk->path))
        return false;
    walk->path[walk->n++] = path;
    return true;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* not strcoll: the same order everywhere */
}

static int not_hidden(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static enum tw_err walk_folder(struct tw_walk *walk, struct seen *seen, const char *folder, int depth,
                               struct tw_why *why);

static enum tw_err walk_entry(struct tw_walk *walk, struct seen *seen, const char *folder, const char *name,
                              int depth, struct tw_why *why)
{
    char *path;
    bool slash = folder[0] && folder[strlen(folder) - 1] == '/';
    if (asprintf(&path, "%s%s%s", folder, slash ? "" : "/", name) < 0)
        return tw_fail(why, TW_ENOMEM, "%s: out of memory", folder);
    struct stat st;
    enum tw_err err = TW_OK;
    if (stat(path, &st) != 0) {
        if (errno != ENOENT && errno != ELOOP) /* a link that leads nowhere is no file */
            err = tw_fail(why, errno == EACCES ? TW_EPERM : TW_EIO, "%s: %s", path, strerror(errno));
    } else if (S_ISDIR(st.st_mode)) {
        err = walk_folder(walk, seen, path, depth + 1, why);
    } else if (S_ISREG(st.st_mode)) {
        if (walk->n + seen->n >= TW_WALK_MAX)
            err = tw_fail(why, TW_ELIMIT, "%s: more than %d files; name smaller folders", folder, TW_WALK_MAX);
        else if (keep(walk, path))
            return TW_OK;
        else
            err = tw_fail(why, TW_ENOMEM, "%s: out of memory", folder);
    }
    free(path);
    return err;
}

static enum tw_err walk_folder(struct tw_walk *walk, struct seen *seen, const char *folder, int depth,
                               struct tw_why *why)
{
    struct stat st;
    struct dirent **list = NULL;
    bool is_new = false;
    int n = stat(folder, &st) == 0 ? scandir(folder, &list, not_hidden, by_name) : -1;
    if (n < 0)
        return tw_fail(why,
                       errno == ENOENT   ? TW_ENOENT
                       : errno == EACCES ? TW_EPERM
                                         : TW_EIO,
                       "%s: %s", folder, strerror(errno));
    enum tw_err err = TW_OK;
    if (depth > DEPTH_MAX)
        err = tw_fail(why, TW_ELIMIT, "%s: folders nested more than %d deep", folder, DEPTH_MAX);
    else if (!enter(seen, &st, &is_new))
        err = tw_fail(why, TW_ENOMEM, "%s: out of memory", folder);
    for (int i = 0; i < n; i++) {
        if (!err && is_new)
            err = walk_entry(walk, seen, folder, list[i]->d_name, depth, why);
        free(list[i]);
    }
    free(list);
    return err;
}

enum tw_err tw_walk_add(struct tw_walk *walk, const char *folder, struct tw_why *why)
{
    struct seen seen = {0};
    enum tw_err err = walk_folder(walk, &seen, folder, 0, why);
    free(seen.folder);
    return err;
}

enum tw_err tw_walk_file(struct tw_walk *walk, const char *path, struct tw_why *why)
{
    char *copy = strdup(path);
    if (copy && keep(walk, copy))
        return TW_OK;
    free(copy);
    return tw_fail(why, TW_ENOMEM, "%s: out of memory", path);
}

void tw_walk_done(struct tw_walk *walk)
{
    for (size_t i = 0; i < walk->n; i++)
        free(walk->path[i]);
    free(walk->path);
    *walk = (struct tw_walk){0};
}
