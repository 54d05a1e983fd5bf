/* SPDX-License-Identifier: Apache-2.0 */
/* sys/file.h - whole files: read with a ceiling, replaced atomically. */
#ifndef TW_SYS_FILE_H
#define TW_SYS_FILE_H

#include "base/err.h"

#include <stddef.h>

/* The whole of a regular file (or pipe) in one heap block, NUL after the last byte; the caller frees it. A
 * directory, a missing file and a file of more than max_bytes are refused by name. TW_ENOENT, TW_EINVAL (a
 * directory), TW_EPERM, TW_ELIMIT, TW_EIO, TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_file_read(const char *path, size_t max_bytes, char **ret_data, size_t *ret_n,
                         struct tw_why *why);

/* Put n bytes at path so that a reader, or a machine that loses power, sees the old file or the new one and
 * never a part: written beside it, fsync, rename, fsync of the folder. After a failure of that last fsync the
 * new file is there, but may not survive. TW_EIO, TW_EPERM, TW_ENOENT */
TW_MUST_USE
enum tw_err tw_file_replace(const char *path, const void *data, size_t n, struct tw_why *why);

#endif
