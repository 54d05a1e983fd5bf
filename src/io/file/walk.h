/* SPDX-License-Identifier: Apache-2.0 */
/* io/file/walk.h - the files below a folder, in the order of their names.
 *
 * Links are followed, but no folder is entered twice, so a link to a folder above ends nothing. Names that
 * begin with a dot are left alone. Regular files only: no pipes, sockets or devices. */
#ifndef TW_IO_FILE_WALK_H
#define TW_IO_FILE_WALK_H

#include "base/err.h"

#include <stddef.h>

#define TW_WALK_MAX 1000000 /* files and folders */

struct tw_walk {
    char **path; /* [n] */
    size_t n, cap;
};

/* Add the files below folder to walk (all zero to start). TW_ENOENT, TW_EPERM, TW_ELIMIT, TW_EIO, TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_walk_add(struct tw_walk *walk, const char *folder, struct tw_why *why);
/* Add one path as it is. TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_walk_file(struct tw_walk *walk, const char *path, struct tw_why *why);
void tw_walk_done(struct tw_walk *walk);

#endif
