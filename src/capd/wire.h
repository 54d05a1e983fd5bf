/* SPDX-License-Identifier: Apache-2.0 */
/* capd/wire.h - what client and privileged helper say to each other.
 *
 * A Unix socket of type SOCK_SEQPACKET: one packet is one message, there is nothing to reassemble. A client
 * sends one struct tw_capd_ask and gets one struct tw_capd_reply with the same seq. Both have a fixed size;
 * numbers are in the byte order of the machine, since both ends are on it. The helper knows who asks by
 * SO_PEERCRED, not by anything in the message.
 *
 * A packet of another size, with another magic, an unknown operation, a name without its NUL or with bytes that
 * a UUID does not have, a limit that is no number, is answered with TW_EPARSE and the connection is closed:
 * that is no client of ours. Fields that an operation does not use must be zero.
 *
 *   op       uses                          who                   what
 *   HELLO    -                             any listed user       the reply's text: version; n_gpu: GPUs listed
 *   STATUS   index, or uuid                "status"              what the helper knows, without touching the
 * device ACQUIRE  uuid kind lease_ms            "budget" or "free"    hold the GPU: value found read and saved,
 * then OK SET      uuid watts reason             holder                write the limit, read it back READ uuid
 * holder                read the limits from the device now RENEW    -                             holder of
 * anything    all leases of this connection start again RELEASE  uuid                          holder the value
 * found goes back (there is room for it) LEAVE    uuid                          holder                no room:
 * min(safe value, cap in force), restore pending ALLOW    uuid                          "allow"               a
 * pending restore may go ahead
 *
 * SET and READ renew the lease of their GPU. One request per GPU at a time; another gets TW_ELIMIT. A client
 * that dies or closes gives up all that it holds, as if each lease had run out. kind: TW_CAPD_BUDGET for a
 * client that answers to a power budget (its GPUs return to the value found only by RELEASE or ALLOW),
 * TW_CAPD_FREE for one on a machine without (they return as soon as it is gone).
 *
 * status is an enum tw_err: OK; ENOENT no such GPU in the configuration; EPERM not allowed, or held by another;
 * ERANGE outside the configured bounds, or the device holds another limit than asked (requested_w and
 * enforced_w say which); ELIMIT busy; EIO the device or the disk failed; EPARSE. text says what and what to do.
 */
#ifndef TW_CAPD_WIRE_H
#define TW_CAPD_WIRE_H

#include "base/err.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define TW_CAPD_MAGIC 0x31435754U /* "TWC1" */
#define TW_CAPD_SOCKET "/run/tokwatt/capd.sock"

#define TW_CAPD_OP_MAP(X)                                                                                      \
    X(HELLO, "hello")                                                                                          \
    X(STATUS, "status")                                                                                        \
    X(ACQUIRE, "acquire")                                                                                      \
    X(SET, "set")                                                                                              \
    X(READ, "read")                                                                                            \
    X(RENEW, "renew")                                                                                          \
    X(RELEASE, "release")                                                                                      \
    X(LEAVE, "leave")                                                                                          \
    X(ALLOW, "allow")

enum tw_capd_op {
#define TW_CAPD_OP_ENUM(id, name) TW_CAPD_##id,
    TW_CAPD_OP_MAP(TW_CAPD_OP_ENUM)
#undef TW_CAPD_OP_ENUM
        TW_CAPD_OPS
};
extern const char *const tw_capd_op_name[TW_CAPD_OPS];

enum tw_capd_kind { TW_CAPD_BUDGET = 1, TW_CAPD_FREE = 2 };
enum tw_capd_held { TW_CAPD_NOBODY, TW_CAPD_YOU, TW_CAPD_ANOTHER };

struct tw_capd_ask {
    uint32_t magic, seq;
    uint16_t op, kind;
    uint32_t lease_ms;
    double watts;
    uint32_t index, zero;
    char uuid[48];
    char reason[32]; /* for the audit log: "event_share" */
};
static_assert(sizeof(struct tw_capd_ask) == 112, "the wire format has no padding");

struct tw_capd_reply {
    uint32_t magic, seq;
    int32_t status;
    uint16_t state, held; /* enum tw_lease_state, enum tw_capd_held */
    uint16_t kind, n_gpu;
    uint32_t lease_left_ms;
    double found_w, asked_w, requested_w, enforced_w; /* NaN unknown */
    double safe_w, min_w, max_w;                      /* as configured */
    /* of the last job on the device, boot clock: taken up, the write returned (0: none was made), read back */
    int64_t begun_us, issued_us, read_us;
    char uuid[48];
    char text[128];
};
static_assert(sizeof(struct tw_capd_reply) == 280, "the wire format has no padding");

/* Is packet [n] a request? TW_EPARSE with what is wrong. Says nothing about whether it is allowed. */
TW_MUST_USE
enum tw_err tw_capd_parse(const void *packet, size_t n, struct tw_capd_ask *ret, struct tw_why *why);

#endif
