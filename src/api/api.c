/* SPDX-License-Identifier: Apache-2.0 */
/* The API's two ends: what is published, and who listens. */
#include "api/api.h"
#include "api/api_int.h"
#include "api/page.h"
#include "api/view.h"
#include "sys/clock.h"

#include <stdio.h>

#define TICK_US 200000  /* streams are told at most this often */
#define TICK_POINTS 120 /* turns in one tick; a reader that misses more asks for the history */
#define TICK_MAX (4u << 20)

bool tw_api_has_page(void)
{
    return tw_page_asset[0].path != NULL;
}

enum tw_err tw_api_open(const char *listen, const struct tw_api_hooks *hooks, struct tw_api **ret,
                        struct tw_why *why)
{
    struct tw_api *api = calloc(1, sizeof *api);
    if (api)
        api->latest = tw_latest_new();
    if (!api || !api->latest) {
        tw_api_close(api);
        return tw_fail(why, TW_ENOMEM, "no memory for the HTTP API");
    }
    api->hooks = *hooks;
    tw_buf_init(&api->tick, TICK_MAX);
    (void)snprintf(api->run, sizeof api->run, "%llx", (unsigned long long)tw_wall_us());
    enum tw_err err = tw_http_listen(listen, tw_api_handle, api, &api->http, why);
    if (err != TW_OK) {
        tw_api_close(api);
        return err;
    }
    *ret = api;
    return TW_OK;
}

void tw_api_close(struct tw_api *api)
{
    if (!api)
        return;
    tw_http_close(api->http);
    tw_latest_free(api->latest);
    tw_snap_copy_done(&api->seen);
    tw_snap_copy_done(&api->told);
    tw_buf_done(&api->tick);
    free(api);
}

unsigned tw_api_port(const struct tw_api *api)
{
    return tw_http_port(api->http);
}

/* Tell the readers of the stream what is new since the last time. The first tick after a silence overlaps with
 * what a new reader has already, so that a turn between its first message and this one is not missed. */
static enum tw_err tell(struct tw_api *api)
{
    struct tw_http_counts counts;
    tw_http_counts(api->http, &counts);
    enum tw_err err = counts.streams > 0 ? tw_latest_get(api->latest, &api->told) : TW_ENODATA;
    if (err != TW_OK)
        return err == TW_ENODATA ? TW_OK : err;
    size_t n = tw_latest_since(api->latest, api->told_seq, api->news, TICK_POINTS);
    uint64_t after = n > 0 ? api->news[0].seq - 1 : api->told_seq;
    tw_buf_reset(&api->tick);
    tw_view_tick(&api->tick, &api->told, api->run, after, api->news, n);
    api->told_seq = api->told.s.seq;
    return api->tick.err == TW_OK ? tw_http_broadcast(api->http, api->tick.data, api->tick.n) : api->tick.err;
}

enum tw_err tw_api_publish(struct tw_api *api, const struct tw_snapshot *snap)
{
    int64_t now = tw_boot_us();
    enum tw_err err = tw_latest_put(api->latest, snap, now);
    if (err != TW_OK || now - api->told_us < TICK_US)
        return err;
    api->told_us = now;
    tw_http_sweep(api->http);
    return tell(api);
}
