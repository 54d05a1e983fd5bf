/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt explain: why a GPU has the limit it has. */
#include "base/num.h"
#include "tokwatt/client.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct args {
    const char *at, *gpu;
    bool json;
};

enum { OPT_AT = 1000, OPT_JSON };

static const struct argp_option options[] = {
    {"at", OPT_AT, "ADDRESS", 0, "the daemon (default " CLIENT_AT ")", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 0},
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
        if (a->gpu)
            argp_failure(state, TW_EXIT_USAGE, 0, "one GPU at a time, not \"%s\" too", arg);
        a->gpu = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "GPU",
    .doc =
        "Why a GPU has the limit it has. GPU is its UUID, or enough of its beginning or end to tell it apart."
        "\vExample:\n\n  tokwatt explain GPU-51a70000-0000-4000-8000-000000000003",
};

static bool matches(const char *uuid, const char *text)
{
    size_t n = strlen(uuid), k = strlen(text);
    return k > 0 && k <= n && (strncmp(uuid, text, k) == 0 || strcmp(uuid + n - k, text) == 0);
}

static const json_t *job_of(const json_t *snap, const json_t *gpu)
{
    const json_t *job = json_object_get(gpu, "job");
    if (json_is_integer(job))
        return json_array_get(json_object_get(snap, "jobs"), (size_t)json_integer_value(job));
    return NULL;
}

/* A number for a person; what is not known is a dash. */
struct shown {
    char text[320]; /* any double */
};

static struct shown show(double value, int digits)
{
    struct shown s = {"-"};
    if (isfinite(value))
        (void)snprintf(s.text, sizeof s.text, "%.*f", digits, value);
    return s;
}

static void print(const json_t *snap, const json_t *gpu)
{
    const json_t *job = job_of(snap, gpu);
    printf("%s%s on %s\n", json_is_true(json_object_get(snap, "simulated")) ? "simulated " : "",
           client_str(gpu, "uuid"), client_str(gpu, "node"));
    printf("  draws %s W, limit asked for %s W, in force %s W\n", show(client_num(gpu, "power_w"), 0).text,
           show(client_num(gpu, "cap_w"), 0).text, show(client_num(gpu, "enforced_w"), 0).text);
    printf("  %s\n", client_reason(snap, gpu));
    if (!job) {
        puts("  no job runs on it");
        return;
    }
    printf("  job %s: %s GPUs, uncapped %s W and %s %s; now %s W and %s %% of that\n", client_str(job, "name"),
           show(client_num(job, "gpus"), 0).text, show(client_num(job, "p0_w"), 0).text,
           show(client_num(job, "t0"), 1).text, client_str(job, "unit"),
           show(client_num(job, "power_w"), 0).text,
           show(100.0 * client_num(job, "throughput") / client_num(job, "t0"), 1).text);
    printf("  its flexibility (PFI at a cut of 30 %%): %s, between %s and %s, from %zu measured points\n",
           show(client_num(job, "pfi"), 2).text, show(client_num(job, "pfi_low"), 2).text,
           show(client_num(job, "pfi_high"), 2).text, json_array_size(json_object_get(job, "points")));
}

static int find(const json_t *snap, const char *text, const json_t **ret_gpu)
{
    const json_t *gpu, *found = NULL;
    size_t i, n = 0;
    json_array_foreach(json_object_get(snap, "gpus"), i, gpu)
    {
        if (matches(client_str(gpu, "uuid"), text)) {
            found = gpu;
            n++;
        }
    }
    if (n != 1)
        return tw_ui_error(n ? "\"%.60s\" fits several GPUs; write more of the UUID"
                             : "no GPU is known as \"%.60s\"; tokwatt status --json lists them",
                           text);
    *ret_gpu = found;
    return TW_EXIT_OK;
}

int cmd_explain(int argc, char **argv)
{
    struct args a = {.at = CLIENT_AT};
    int status = tw_ui_parse(&argp, argc, argv, &a);
    if (status != 0)
        return status;
    if (!a.gpu)
        return tw_ui_error("a GPU is missing; see tokwatt explain --help");
    json_t *snap = NULL;
    status = client_ask(a.at, "GET", "/v1/snapshot", NULL, &snap);
    const json_t *gpu = NULL;
    if (status == TW_EXIT_OK)
        status = find(snap, a.gpu, &gpu);
    if (status == TW_EXIT_OK && a.json) {
        json_t *job = json_deep_copy(job_of(snap, gpu)), *copy = json_deep_copy(gpu);
        json_t *out = json_pack("{s:s,s:b,s:o,s:o?}", "schema", "tokwatt.explain/1", "simulated",
                                json_is_true(json_object_get(snap, "simulated")), "gpu", copy, "job", job);
        (void)json_dumpf(out, stdout, JSON_INDENT(2));
        puts("");
        json_decref(out);
    } else if (status == TW_EXIT_OK) {
        print(snap, gpu);
    }
    json_decref(snap);
    return status;
}
