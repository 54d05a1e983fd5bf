/* SPDX-License-Identifier: Apache-2.0 */
/* capd/rules.h - what the privileged helper may do, and for whom: its configuration file.
 *
 * Plain lines, "#" begins a comment; the file and its folder must be root's and writable by nobody else.
 *
 *   device BACKEND[:SPEC]            how GPUs are reached: "nvml"
 *   socket PATH                      default /run/tokwatt/capd.sock; not used when systemd hands the socket
 * over group NAME                       group that may connect (of a socket made by the helper itself) state
 * PATH                       default /var/lib/tokwatt-capd/state audit PATH                       default
 * /var/lib/tokwatt-capd/audit.log lease MIN MAX                    bounds of a lease, default 200ms 60s watch
 * PERIOD                     how often a held GPU's limit is read again, default 1s user NAME|UID
 * RIGHT[,RIGHT...]   status, budget, free, allow gpu UUID min W max W safe W      a GPU that may be capped, the
 * bounds of a limit, its safe value
 *
 * No user and no GPU is allowed that is not named. The safe values of a site must fit its hard limits together;
 * the helper sees one machine and cannot check that. */
#ifndef TW_CAPD_RULES_H
#define TW_CAPD_RULES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TW_RULES_GPUS 64
#define TW_RULES_USERS 16

enum tw_right { TW_RIGHT_STATUS = 1, TW_RIGHT_BUDGET = 2, TW_RIGHT_FREE = 4, TW_RIGHT_ALLOW = 8 };

struct tw_rules_gpu {
    char uuid[48];
    double min_w, max_w, safe_w; /* min <= safe <= max */
};

struct tw_rules {
    char device[256], socket[104], group[64], state[256], audit[256];
    double lease_min_s, lease_max_s, watch_s;
    size_t n_user, n_gpu;
    struct {
        uid_t uid;
        unsigned rights; /* of enum tw_right */
    } user[TW_RULES_USERS];
    struct tw_rules_gpu gpu[TW_RULES_GPUS];
};

/* Read text, the file's content; name is for messages. TW_EPARSE and TW_ERANGE with the line, TW_EINVAL when no
 * GPU or no user is named, or no device. */
TW_MUST_USE
enum tw_err tw_rules_parse(const char *name, const char *text, struct tw_rules *ret, struct tw_why *why);
/* The same from a file that must be trusted (sys/trust.h). */
TW_MUST_USE
enum tw_err tw_rules_load(const char *path, struct tw_rules *ret, struct tw_why *why);
unsigned tw_rules_rights(const struct tw_rules *rules, uid_t uid); /* 0: a stranger */

#endif
