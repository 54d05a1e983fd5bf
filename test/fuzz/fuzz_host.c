/* SPDX-License-Identifier: Apache-2.0 */
/* Host headers and addresses to listen on: nothing but loopback passes. */
#include "http/http_int.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *host = malloc(n + 1);
    if (!host)
        return 0;
    memcpy(host, data, n);
    host[n] = '\0';
    if (tw_http_host_ok(host) && strncmp(host, "127.", 4) != 0 && strncasecmp(host, "localhost", 9) != 0 &&
        host[0] != '[' && !strchr(host, ':'))
        abort();
    (void)tw_http_origin_ok(host, "127.0.0.1");
    free(host);
    return 0;
}
