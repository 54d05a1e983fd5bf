/* SPDX-License-Identifier: Apache-2.0 */
/* sys/audit.h - an append-only log whose lines hold each other (base/chain.h).
 *
 * Each line: chain hash, wall time, boot time in seconds, the text. Lines are written at once, and reach the
 * disk at tw_audit_sync, which the owner calls when nothing waits for it. A file that reaches its ceiling is
 * renamed to PATH.1 (replacing the one before) and the next begins with its last hash. */
#ifndef TW_SYS_AUDIT_H
#define TW_SYS_AUDIT_H

#include "base/chain.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct tw_audit {
    int fd; /* -1: closed */
    char path[256];
    size_t size, ceiling;
    bool dirty;   /* lines since the last sync */
    bool torn;    /* the next line owns up to a torn one */
    bool midline; /* the torn one has no newline */
    struct tw_chain chain;
};

/* Open or make the log and go on from its last whole line; a torn tail is kept and owned up to. TW_EPARSE: a
 * line in the middle does not hold, and nothing is appended to a log that was tampered with. */
TW_MUST_USE
enum tw_err tw_audit_open(struct tw_audit *a, const char *path, size_t ceiling, struct tw_why *why);
void tw_audit_close(struct tw_audit *a);
/* Append one line; false when it could not be written whole (disk full): the log is then owned up to as torn
 * with the next line that can be. */
bool tw_audit_add(struct tw_audit *a, const char *fmt, ...) TW_PRINTF(2, 3);
bool tw_audit_sync(struct tw_audit *a); /* false: the disk did not take it */

#endif
