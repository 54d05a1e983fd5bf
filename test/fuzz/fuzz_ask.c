/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /v1/events: what is accepted is in range, what is refused says why. */
#include "api/ask.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tw_api_ask ask;
    struct tw_why why = {""};
    if (tw_ask_parse((const char *)data, n, &ask, &why) != TW_OK) {
        if (strlen(why.text) < 10)
            abort();
    } else if (!(ask.cut_frac >= 0 && ask.cut_frac <= 1) || !(ask.for_s > 0 && ask.for_s <= 604800) ||
               !(ask.in_s >= 0 && ask.in_s <= 2592000)) {
        abort();
    }
    return 0;
}
