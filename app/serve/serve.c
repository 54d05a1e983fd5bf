/* SPDX-License-Identifier: Apache-2.0 */
/* A site that runs by the clock. */
#include "serve/serve.h"

#include "api/api.h"
#include "sys/log.h"
#include "sys/ticker.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>

#define BEHIND_MAX                                                                                             \
    40 /* turns made up for at a time; a machine that is slower than that lets site time fall behind */

struct serve {
    const struct serve_conf *conf;
    struct tw_run *run;
    struct tw_api *api;
    char url[64];
};

static enum tw_err hook_add(void *ctx, const struct tw_api_ask *ask, uint32_t *ret_id, struct tw_why *why)
{
    struct serve *s = ctx;
    struct tw_ctl_ask a = {ask->cut_frac, ask->for_s, ask->in_s, (double)NAN};
    return tw_run_event_add(s->run, &a, ret_id, why);
}

static enum tw_err hook_list(void *ctx, struct tw_api_event *ret, size_t room, size_t *ret_n,
                             struct tw_why *why)
{
    (void)why;
    struct serve *s = ctx;
    struct tw_ctl_event e[TW_CTL_EVENTS];
    *ret_n = tw_run_event_list(s->run, e, room < TW_CTL_EVENTS ? room : TW_CTL_EVENTS);
    for (size_t i = 0; i < *ret_n; i++)
        ret[i] = (struct tw_api_event){.id = e[i].id,
                                       .state = e[i].state,
                                       .cancelled = e[i].cancelled,
                                       .cut_frac = e[i].cut_frac,
                                       .start_s = e[i].start_s,
                                       .end_s = e[i].end_s,
                                       .baseline_w = e[i].baseline_w,
                                       .target_w = e[i].target_w};
    return TW_OK;
}

static enum tw_err hook_cancel(void *ctx, uint32_t id, struct tw_why *why)
{
    struct serve *s = ctx;
    return tw_run_event_cancel(s->run, id, why);
}

static enum tw_err open_api(struct serve *s, struct tw_why *why)
{
    if (!s->conf->listen)
        return TW_OK;
    struct tw_api_hooks hooks = {s, hook_add, hook_list, hook_cancel};
    enum tw_err err = tw_api_open(s->conf->listen, &hooks, &s->api, why);
    if (err == TW_OK)
        (void)snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", tw_api_port(s->api));
    return err;
}

static enum tw_err turn(struct serve *s, bool *ret_end, struct tw_why *why)
{
    enum tw_err err = tw_run_turn(s->run, 1.0, why);
    if (err != TW_OK)
        return err;
    static struct tw_log_gate gate;
    enum tw_err shown = s->api ? tw_api_publish(s->api, tw_run_snapshot(s->run)) : TW_OK;
    if (shown != TW_OK)
        tw_log_every(&gate, 60.0, TW_LOG_WARN, "the page shows old values: %s", tw_err_text(shown));
    *ret_end = s->conf->once || (s->conf->turned && s->conf->turned(s->conf->ctx, s->run, s->url));
    return TW_OK;
}

static enum tw_err loop(struct serve *s, int *ret_signal, struct tw_why *why)
{
    struct tw_ticker ticker;
    enum tw_err err = tw_ticker_open(1.0 / s->conf->speed, &ticker, why);
    if (err != TW_OK)
        return err;
    bool end = false;
    while (err == TW_OK && !end) {
        uint64_t ticks;
        err = tw_ticker_wait(&ticker, &ticks, ret_signal, why);
        if (*ret_signal == SIGINT || *ret_signal == SIGTERM)
            break;
        for (uint64_t k = 0; err == TW_OK && !end && k < ticks && k < BEHIND_MAX; k++)
            err = turn(s, &end, why);
    }
    tw_ticker_close(&ticker);
    return err;
}

enum tw_err serve_site(const struct serve_conf *conf, int *ret_signal, bool *ret_left, struct tw_why *why)
{
    struct serve s = {.conf = conf};
    *ret_signal = 0;
    /* signals are blocked before threads are made, so that they all inherit it */
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    enum tw_err err = tw_run_open(&conf->run, &s.run, why);
    if (err == TW_OK)
        err = open_api(&s, why);
    bool began = err == TW_OK; /* before the first turn no limit was touched */
    if (began)
        err = loop(&s, ret_signal, why);
    struct tw_why said = {""};
    *ret_left = began && tw_run_restore(s.run, &said) != TW_OK;
    if (*ret_left)
        tw_log(TW_LOG_ERROR, "on the way out: %s", said.text);
    tw_api_close(s.api);
    tw_run_close(s.run);
    return err;
}
