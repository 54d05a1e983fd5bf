/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt status: what holds now on the site of a running daemon. */
#include "base/num.h"
#include "tokwatt/client.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct args {
    const char *at;
    bool json;
};

enum { OPT_AT = 1000, OPT_JSON };

static const struct argp_option options[] = {
    {"at", OPT_AT, "ADDRESS", 0, "the daemon (default " CLIENT_AT ")", 0},
    {"json", OPT_JSON, NULL, 0, "the whole snapshot as JSON", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    switch (key) {
    case OPT_AT:
        a->at = arg;
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_failure(state, TW_EXIT_USAGE, 0, "\"%s\" is not expected", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "What holds now: site power, budget, event, jobs.\vExample:\n\n  tokwatt status --at 127.0.0.1:9477",
};

static void power(const char *name, double watts)
{
    char text[40];
    if (!isnan(watts))
        printf("%s%s", name, tw_num_show_power(watts, text, sizeof text));
}

static void print(const json_t *s)
{
    const json_t *site = json_object_get(s, "site"), *e = json_object_get(s, "event"), *job;
    bool simulated = json_is_true(json_object_get(s, "simulated"));
    printf("%s%.0f GPUs, %.0f jobs, site time %.0f s", simulated ? "simulated site: " : "",
           client_num(site, "gpus"), client_num(site, "jobs"), client_num(s, "now_s"));
    power("; draws ", client_num(site, "power_w"));
    power(", limits sum to ", client_num(site, "cap_sum_w"));
    power(", budget ", client_num(site, "budget_w"));
    puts("");
    if (client_num(site, "stale_gpus") > 0)
        printf("%.0f GPUs have no fresh reading\n", client_num(site, "stale_gpus"));
    if (strcmp(client_str(e, "state"), "none") != 0) {
        printf("event: %s, cut %.4g %%", client_str(e, "state"), 100.0 * client_num(e, "cut_frac"));
        power(", baseline ", client_num(e, "baseline_w"));
        power(", target ", client_num(e, "target_w"));
        puts("");
    }
    printf("%-20s %5s %9s %9s %7s %7s  %s\n", "job", "GPUs", "draw W", "limit W", "of T_0", "PFI", "why");
    size_t i;
    json_array_foreach(json_object_get(s, "jobs"), i, job)
    {
        printf("%-20.20s %5.0f %9.0f %9.0f %6.1f%% %7.2f  %s\n", client_str(job, "name"),
               client_num(job, "gpus"), client_num(job, "power_w"), client_num(job, "cap_w"),
               100.0 * client_num(job, "throughput") / client_num(job, "t0"), client_num(job, "pfi"),
               client_reason(s, job));
    }
}

int cmd_status(int argc, char **argv)
{
    struct args a = {.at = CLIENT_AT};
    int status = tw_ui_parse(&argp, argc, argv, &a);
    json_t *snap = NULL;
    if (status == 0)
        status = client_ask(a.at, "GET", "/v1/snapshot", NULL, &snap);
    if (status != TW_EXIT_OK)
        return status;
    if (a.json) {
        (void)json_dumpf(snap, stdout, JSON_INDENT(2));
        puts("");
    } else {
        print(snap);
    }
    json_decref(snap);
    return TW_EXIT_OK;
}
