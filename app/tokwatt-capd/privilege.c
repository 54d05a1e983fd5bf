/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities by system call: two structs are shorter than a library. */
#include "tokwatt-capd/privilege.h"

#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_FD 3 /* of those that systemd hands over: sd_listen_fds(3) */

int tw_privilege_descriptors(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd < FIRST_FD)
        continue;
    if (fd >= FIRST_FD)
        close(fd);
    const char *count = getenv("LISTEN_FDS"), *whom = getenv("LISTEN_PID");
    int64_t n = 0, pid = 0;
    bool ours = count && whom && tw_num_i64(count, 1, 1, &n, NULL) == TW_OK &&
                tw_num_i64(whom, 1, INT64_MAX, &pid, NULL) == TW_OK && pid == getpid();
    (void)close_range((unsigned)FIRST_FD + (ours ? 1U : 0U), ~0U, 0);
    if (!ours)
        return -1;
    (void)fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
    (void)fcntl(FIRST_FD, F_SETFL, O_NONBLOCK);
    return FIRST_FD;
}

enum tw_err tw_privilege_drop(struct tw_why *why)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct set[2] = {{0}};
    if (syscall(SYS_capget, &head, set) != 0)
        return tw_fail(why, TW_EPERM, "capget: %s", strerror(errno));
    uint32_t keep = set[0].permitted & (1U << CAP_SYS_ADMIN);
    if (set[0].effective & (1U << CAP_SETPCAP))
        for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
            if (cap != CAP_SYS_ADMIN && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
                return tw_fail(why, TW_EPERM, "capability %lu cannot be dropped: %s", cap, strerror(errno));
    memset(set, 0, sizeof set);
    set[0].permitted = set[0].effective = keep;
    if (syscall(SYS_capset, &head, set) != 0)
        return tw_fail(why, TW_EPERM, "capset: %s", strerror(errno));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return tw_fail(why, TW_EPERM, "prctl: %s", strerror(errno));
    return TW_OK;
}
