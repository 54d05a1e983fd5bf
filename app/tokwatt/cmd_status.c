/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt status: what holds now on the site of a running daemon. */
#include "base/num.h"
#include "tokwatt/client.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define OVER_W 1.0 /* above what was asked for: a device rounds, it does not add a watt */

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

/* One cell of the table, %*.*f with what follows; unknown is a dash. */
static void cell(double value, int width, int digits, const char *unit)
{
    if (isfinite(value))
        printf(" %*.*f%s", width - (int)strlen(unit), digits, value, unit);
    else
        printf(" %*s", width, "-");
}

/* GPUs whose device is at a higher limit than was asked for: it ignores limits, or somebody else writes them.
 */
static void print_disobeying(const json_t *s)
{
    size_t i, n = 0;
    const json_t *gpu, *first = NULL;
    json_array_foreach(json_object_get(s, "gpus"), i, gpu)
    {
        if (!(client_num(gpu, "enforced_w") > client_num(gpu, "cap_w") + OVER_W))
            continue;
        first = first ? first : gpu;
        n++;
    }
    if (n > 0)
        printf("%zu GPUs hold a higher limit than was asked for, the first being %s\n", n,
               client_str(first, "uuid"));
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
    print_disobeying(s);
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
        printf("%-20.20s", client_str(job, "name"));
        cell(client_num(job, "gpus"), 5, 0, "");
        cell(client_num(job, "power_w"), 9, 0, "");
        cell(client_num(job, "cap_w"), 9, 0, "");
        cell(100.0 * client_num(job, "throughput") / client_num(job, "t0"), 7, 1, "%");
        cell(client_num(job, "pfi"), 7, 2, "");
        printf("  %s\n", client_reason(s, job));
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
