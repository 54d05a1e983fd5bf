/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt event: power events of a running daemon. */
#include "base/num.h"
#include "tokwatt/client.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum action { ADD, LIST, SHOW, CANCEL, N_ACTION };
static const char *const action_name[N_ACTION] = {"add", "list", "show", "cancel"};

struct args {
    const char *at;
    int action; /* N_ACTION: none yet */
    int64_t id; /* 0: none */
    double cut_frac, for_s, in_s;
    bool json;
};

enum { OPT_CUT = 1000, OPT_FOR, OPT_IN, OPT_AT, OPT_JSON };

static const struct argp_option options[] = {
    {"cut", OPT_CUT, "FRAC", 0, "add: of the mean power of the five minutes before", 0},
    {"for", OPT_FOR, "TIME", 0, "add: how long the target is held", 0},
    {"in", OPT_IN, "TIME", 0, "add: from now (default 0s), in site time", 0},
    {"at", OPT_AT, "ADDRESS", 0, "the daemon (default " CLIENT_AT ")", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 0},
    {0},
};

static error_t take_word(struct args *a, const char *arg, struct argp_state *state)
{
    struct tw_why why = {""};
    if (a->action == N_ACTION) {
        for (a->action = 0; a->action < N_ACTION && strcmp(arg, action_name[a->action]) != 0;)
            a->action++;
        if (a->action == N_ACTION)
            argp_failure(state, TW_EXIT_USAGE, 0, "\"%s\" is none of add, list, show, cancel", arg);
        return 0;
    }
    if ((a->action != SHOW && a->action != CANCEL) || a->id != 0)
        argp_failure(state, TW_EXIT_USAGE, 0, "\"%s\" is one word too many", arg);
    else if (tw_num_i64(arg, 1, UINT32_MAX, &a->id, &why) != TW_OK)
        argp_failure(state, TW_EXIT_USAGE, 0, "number of the event: %s", why.text);
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    switch (key) {
    case OPT_CUT:
        if (tw_num_frac(arg, &a->cut_frac, &why) != TW_OK)
            argp_failure(state, TW_EXIT_USAGE, 0, "--cut: %s", why.text);
        return 0;
    case OPT_FOR:
        if (tw_num_duration(arg, &a->for_s, &why) != TW_OK)
            argp_failure(state, TW_EXIT_USAGE, 0, "--for: %s", why.text);
        return 0;
    case OPT_IN:
        if (tw_num_duration(arg, &a->in_s, &why) != TW_OK)
            argp_failure(state, TW_EXIT_USAGE, 0, "--in: %s", why.text);
        return 0;
    case OPT_AT:
        a->at = arg;
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        return take_word(a, arg, state);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "add --cut FRAC --for TIME [--in TIME]\nlist\nshow ID\ncancel ID",
    .doc = "Power events of a running daemon."
           "\vThe cut is of the site's mean power over the five minutes before the event, fixed in watts when "
           "it begins. A cut that the "
           "devices cannot be set to is refused with the nearest one (exit status 1). Example:\n\n"
           "  tokwatt event add --cut 30% --for 5m --in 60s",
};

static int print_json(json_t *json)
{
    (void)json_dumpf(json, stdout, JSON_INDENT(2));
    puts("");
    return ferror(stdout) ? tw_ui_error("cannot write the result to standard output") : TW_EXIT_OK;
}

static void print_event(const json_t *e)
{
    char baseline[40] = "-", target[40] = "-";
    if (!isnan(client_num(e, "baseline_w")))
        (void)tw_num_show_power(client_num(e, "baseline_w"), baseline, sizeof baseline);
    if (!isnan(client_num(e, "target_w")))
        (void)tw_num_show_power(client_num(e, "target_w"), target, sizeof target);
    printf("%4.0f  %-9s %6.1f %%  %9.0f s  %9.0f s  %12s  %12s\n", client_num(e, "id"),
           json_is_true(json_object_get(e, "cancelled")) ? "cancelled" : client_str(e, "state"),
           100.0 * client_num(e, "cut_frac"), client_num(e, "start_s"), client_num(e, "end_s"), baseline,
           target);
}

static int add(const struct args *a)
{
    json_t *body = json_pack("{s:f,s:f,s:f}", "cut_frac", a->cut_frac, "for_s", a->for_s, "in_s", a->in_s),
           *answer = NULL;
    int status = client_ask(a->at, "POST", "/v1/events", body, &answer);
    json_decref(body);
    if (status != TW_EXIT_OK)
        return status;
    if (a->json)
        status = print_json(answer);
    else
        printf("event %.0f: a cut of %.4g %% for %g s, in %g s of site time\n", client_num(answer, "id"),
               100.0 * a->cut_frac, a->for_s, a->in_s);
    json_decref(answer);
    return status;
}

static int cancel(const struct args *a)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/events/%lld", (long long)a->id);
    json_t *answer = NULL;
    int status = client_ask(a->at, "DELETE", path, NULL, &answer);
    if (status == TW_EXIT_OK && a->json && answer)
        status = print_json(answer);
    else if (status == TW_EXIT_OK)
        printf("event %lld is cancelled\n", (long long)a->id);
    json_decref(answer);
    return status;
}

/* list, and show: the one of its number. */
static int list(const struct args *a)
{
    json_t *answer = NULL, *e;
    int status = client_ask(a->at, "GET", "/v1/events", NULL, &answer);
    if (status != TW_EXIT_OK)
        return status;
    json_t *events = json_object_get(answer, "events"), *found = NULL;
    size_t i;
    json_array_foreach(events, i, e)
    {
        if ((int64_t)client_num(e, "id") == a->id)
            found = e;
    }
    if (a->action == SHOW && !found)
        status = tw_ui_error("there is no event %lld", (long long)a->id);
    else if (a->json)
        status = print_json(a->action == SHOW ? found : answer);
    else
        printf("  id  state        cut        start         end      baseline        target   (site time)\n");
    if (status == TW_EXIT_OK && !a->json)
        json_array_foreach(events, i, e)
        {
            if (a->action == LIST || e == found)
                print_event(e);
        }
    json_decref(answer);
    return status;
}

int cmd_event(int argc, char **argv)
{
    struct args a = {.at = CLIENT_AT, .action = N_ACTION, .cut_frac = (double)NAN, .for_s = (double)NAN};
    int status = tw_ui_parse(&argp, argc, argv, &a);
    if (status != 0)
        return status;
    if (a.action == N_ACTION)
        return tw_ui_error("say add, list, show or cancel; see tokwatt event --help");
    if (a.action == ADD && (isnan(a.cut_frac) || isnan(a.for_s)))
        return tw_ui_error("add wants --cut and --for; see tokwatt event --help");
    if ((a.action == SHOW || a.action == CANCEL) && a.id == 0)
        return tw_ui_error("%s wants the number of an event; tokwatt event list shows them",
                           action_name[a.action]);
    return a.action == ADD ? add(&a) : a.action == CANCEL ? cancel(&a) : list(&a);
}
