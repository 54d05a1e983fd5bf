/* SPDX-License-Identifier: Apache-2.0 */
/* privilege.h - give up what the helper does not need. */
#ifndef TW_APP_CAPD_PRIVILEGE_H
#define TW_APP_CAPD_PRIVILEGE_H

#include "base/err.h"

/* Close every descriptor that was inherited but the first three (opened on /dev/null where they are closed)
 * and, when systemd handed over a socket, that one. Returns it, or -1. */
int tw_privilege_descriptors(void);

/* Keep CAP_SYS_ADMIN, which the NVIDIA kernel driver asks of whoever writes a limit, and nothing else: out of
 * the bounding, permitted, effective and inheritable sets; no new privileges; no core dump, no ptrace by
 * others. Before threads are started. TW_EPERM: the kernel refused. */
TW_MUST_USE
enum tw_err tw_privilege_drop(struct tw_why *why);

#endif
