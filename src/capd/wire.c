/* SPDX-License-Identifier: Apache-2.0 */
/* Is a packet a request? The first code that a stranger's bytes meet. */
#include "capd/wire.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

const char *const tw_capd_op_name[TW_CAPD_OPS] = {
#define NAME(id, name) [TW_CAPD_##id] = (name),
    TW_CAPD_OP_MAP(NAME)
#undef NAME
};

/* Letters, digits and the marks of UUIDs, MIG names and reasons; NUL-terminated, zeros after. */
static bool is_word(const char *s, size_t size)
{
    size_t n = strnlen(s, size);
    if (n == size)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!(s[i] >= '0' && s[i] <= '9') && !(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= 'A' && s[i] <= 'Z') &&
            !strchr("-_./:", s[i]))
            return false;
    for (size_t i = n; i < size; i++)
        if (s[i] != '\0')
            return false;
    return true;
}

enum tw_err tw_capd_parse(const void *packet, size_t n, struct tw_capd_ask *ret, struct tw_why *why)
{
    struct tw_capd_ask ask;
    if (n != sizeof ask)
        return tw_fail(why, TW_EPARSE, "a request has %zu bytes, not %zu", sizeof ask, n);
    memcpy(&ask, packet, sizeof ask);
    if (ask.magic != TW_CAPD_MAGIC)
        return tw_fail(why, TW_EPARSE, "not a request of this protocol version");
    if (ask.op >= TW_CAPD_OPS)
        return tw_fail(why, TW_EPARSE, "there is no operation %u", ask.op);
    if (!is_word(ask.uuid, sizeof ask.uuid) || !is_word(ask.reason, sizeof ask.reason) || ask.zero != 0)
        return tw_fail(why, TW_EPARSE, "a field holds what it cannot hold");
    bool is_set = ask.op == TW_CAPD_SET, is_acquire = ask.op == TW_CAPD_ACQUIRE;
    if (is_set ? !(ask.watts > 0.0 && ask.watts < HUGE_VAL) : !(fpclassify(ask.watts) == FP_ZERO))
        return tw_fail(why, TW_EPARSE, "the limit is not a number of watts");
    if (is_acquire ? ask.kind != TW_CAPD_BUDGET && ask.kind != TW_CAPD_FREE : ask.kind != 0)
        return tw_fail(why, TW_EPARSE, "there is no kind of client %u", ask.kind);
    if ((!is_acquire && ask.lease_ms != 0) || (ask.op != TW_CAPD_STATUS && ask.index != 0) ||
        (!is_set && ask.reason[0] != '\0'))
        return tw_fail(why, TW_EPARSE, "a field that %s does not use is not zero", tw_capd_op_name[ask.op]);
    bool wants_uuid = ask.op != TW_CAPD_HELLO && ask.op != TW_CAPD_RENEW && ask.op != TW_CAPD_STATUS;
    if (wants_uuid && ask.uuid[0] == '\0')
        return tw_fail(why, TW_EPARSE, "%s names no GPU", tw_capd_op_name[ask.op]);
    *ret = ask;
    return TW_OK;
}
