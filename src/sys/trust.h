/* SPDX-License-Identifier: Apache-2.0 */
/* sys/trust.h - files that a privileged program believes, because nobody else could have written them.
 *
 * A path is trusted when it is absolute and each folder on the way belongs to root or to us and can be written
 * by nobody else (above the last one a sticky folder such as /tmp is fine, since its entries belong to their
 * owners), and no link on the way belongs to a stranger. */
#ifndef TW_SYS_TRUST_H
#define TW_SYS_TRUST_H

#include "base/err.h"

/* Is the folder that path lies in trusted? path itself need not exist; when it does, it must be a regular file,
 * no link, owned by root or us, with no write permission for group or others. TW_EPERM with the first fault,
 * TW_ENOENT (no such folder), TW_EINVAL (not absolute) */
TW_MUST_USE
enum tw_err tw_trust_path(const char *path, struct tw_why *why);

#endif
