/* SPDX-License-Identifier: Apache-2.0 */
/* What strangers and torn disks hand to the privileged helper: requests, saved state, rules, audit logs. The
 * first byte picks one. */
#include "base/chain.h"
#include "capd/rules.h"
#include "capd/saved.h"
#include "capd/wire.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A request that passes is one that the helper can act on without looking again. */
static void request(const uint8_t *data, size_t n)
{
    struct tw_capd_ask ask;
    if (tw_capd_parse(data, n, &ask, NULL) != TW_OK)
        return;
    if (n != sizeof ask || ask.op >= TW_CAPD_OPS || strnlen(ask.uuid, sizeof ask.uuid) == sizeof ask.uuid ||
        strnlen(ask.reason, sizeof ask.reason) == sizeof ask.reason || !isfinite(ask.watts) ||
        ask.watts < 0.0 || (ask.op == TW_CAPD_SET && (!(ask.watts > 0.0) || ask.uuid[0] == '\0')) ||
        strpbrk(ask.uuid, "\n\r %\"'\\"))
        abort();
}

/* What a file that passes as whole holds is what would be written for it. */
static void saved(const uint8_t *data, size_t n)
{
    static struct tw_saved s, back;
    static char text[TW_SAVED_BYTES];
    tw_saved_parse((const char *)data, n, &s);
    if (s.n > TW_SAVED_GPUS)
        abort();
    tw_saved_parse(text, tw_saved_print(&s, text), &back);
    if (s.whole && (!back.whole || back.n != s.n))
        abort();
}

static void rules(const uint8_t *data, size_t n)
{
    static struct tw_rules r;
    char *text = malloc(n + 1);
    if (!text)
        return;
    memcpy(text, data, n);
    text[n] = '\0';
    if (tw_rules_parse("fuzz", text, &r, NULL) == TW_OK) {
        if (r.n_gpu == 0 || r.n_user == 0 || r.device[0] == '\0')
            abort();
        for (size_t i = 0; i < r.n_gpu; i++)
            if (!(r.gpu[i].min_w > 0.0 && r.gpu[i].min_w <= r.gpu[i].safe_w &&
                  r.gpu[i].safe_w <= r.gpu[i].max_w))
                abort();
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    switch (data[0] % 4) {
    case 0:
        request(data + 1, n - 1);
        break;
    case 1:
        saved(data + 1, n - 1);
        break;
    case 2:
        rules(data + 1, n - 1);
        break;
    default:
        (void)!tw_chain_check((const char *)data + 1, n - 1, NULL, NULL, NULL, NULL, NULL);
    }
    return 0;
}
