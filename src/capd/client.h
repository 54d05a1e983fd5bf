/* SPDX-License-Identifier: Apache-2.0 */
/* capd/client.h - ask the privileged helper (capd/wire.h) to hold GPUs and set their limits.
 *
 * A connection holds what it acquired; when it closes, by will or by death, the helper takes its GPUs to their
 * safe values. Every call waits for the reply. It fails closed: after a broken connection, a reply that is none
 * or a helper that does not answer within the deadline, the connection is closed, every later call says TW_EIO,
 * and the helper does the rest. One thread per connection. ret_reply is filled whenever the helper answered,
 * also with an error; NULL is fine. Errors are those of capd/wire.h. */
#ifndef TW_CAPD_CLIENT_H
#define TW_CAPD_CLIENT_H

#include "base/err.h"
#include "capd/wire.h"

#define TW_CAPD_DEADLINE_S 5.0

struct tw_capd_client {
    int fd; /* -1: closed */
    uint32_t seq;
};

/* path NULL: TW_CAPD_SOCKET. TW_ENOENT: no helper listens there; TW_EPERM: may not connect, or not listed */
TW_MUST_USE
enum tw_err tw_capd_client_open(struct tw_capd_client *c, const char *path, struct tw_why *why);
void tw_capd_client_close(struct tw_capd_client *c); /* without a word: what is held goes to its safe value */

TW_MUST_USE
enum tw_err tw_capd_acquire(struct tw_capd_client *c, const char *uuid, enum tw_capd_kind kind, double lease_s,
                            struct tw_capd_reply *ret_reply, struct tw_why *why);
/* reason: a word for the audit log, letters, digits and "-_./:", at most 31; NULL none */
TW_MUST_USE
enum tw_err tw_capd_set(struct tw_capd_client *c, const char *uuid, double limit_w, const char *reason,
                        struct tw_capd_reply *ret_reply, struct tw_why *why);
/* READ, RENEW, RELEASE, LEAVE, ALLOW, HELLO, and STATUS by uuid; uuid "" where the operation takes none */
TW_MUST_USE
enum tw_err tw_capd_do(struct tw_capd_client *c, enum tw_capd_op op, const char *uuid,
                       struct tw_capd_reply *ret_reply, struct tw_why *why);
/* STATUS of the index-th configured GPU; TW_ENOENT past the last */
TW_MUST_USE
enum tw_err tw_capd_list(struct tw_capd_client *c, unsigned index, struct tw_capd_reply *ret_reply,
                         struct tw_why *why);

#endif
