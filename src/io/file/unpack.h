/* SPDX-License-Identifier: Apache-2.0 */
/* io/file/unpack.h - the bytes of a file, gzip (of one or several members) unpacked on the way.
 *
 * Nothing is held but one block; more than TW_UNPACK_MAX bytes of text are refused, so that a small file cannot
 * ask for unlimited work. Compressed data that is damaged or ends early gives what came before the damage. */
#ifndef TW_IO_FILE_UNPACK_H
#define TW_IO_FILE_UNPACK_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_UNPACK_MAX (UINT64_C(4) << 30)

struct tw_unpack;

/* TW_ENOENT, TW_EPERM, TW_EINVAL (a directory), TW_EIO, TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_unpack_open(const char *path, struct tw_unpack **ret, struct tw_why *why);
void tw_unpack_close(struct tw_unpack *u); /* NULL is fine */

/* Fill buf with size bytes; fewer mean the end. TW_EIO, TW_ELIMIT */
TW_MUST_USE
enum tw_err tw_unpack_read(struct tw_unpack *u, char *buf, size_t size, size_t *ret_n, struct tw_why *why);
bool tw_unpack_damaged(const struct tw_unpack *u); /* once the end was reached */

#endif
