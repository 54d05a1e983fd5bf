/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt gpus: the GPUs of a source, their limits and what they draw now. */
#include "tokwatt/cmd.h"
#include "tokwatt/look.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>

#define SCHEMA "tokwatt.gpus/1"

struct args {
    const char *source;
    bool json;
};

enum { OPT_JSON = 1000 };

static const struct argp_option options[] = {
    {"source", 's', "SOURCE", 0, "where from, NAME or NAME:SPEC (default nvml)", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON, with every channel", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    switch (key) {
    case 's':
        a->source = arg;
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Show the GPUs of a source: who they are, their limits, and what they draw now."
           "\vExample:\n\n"
           "  tokwatt gpus\n"
           "  tokwatt gpus --source sim:gpus=8,jobs=2 --json",
};

/* A number in a column of `width`, or a dash where it is unknown. */
static void cell(double value, int width, const char *unit)
{
    if (isfinite(value))
        printf("%*.0f %s", width, value, unit);
    else
        printf("%*s %*s", width, "-", *unit ? 1 : 0, "");
}

static void show_gpu(const struct look *l, size_t i)
{
    const struct tw_gpu_info *g = &l->info[i];
    const float *ch = l->gpu[i].ch;
    printf("%-40s", g->uuid);
    cell((double)ch[TW_CH_POWER_W], 6, "W");
    cell((double)ch[TW_CH_CAP_ENFORCED_W], 6, "W");
    if (isfinite(g->limit_min_w) && isfinite(g->limit_max_w))
        printf("  %4.0f-%-4.0fW", g->limit_min_w, g->limit_max_w);
    else
        printf("  %10s", "watch only");
    cell((double)ch[TW_CH_TEMP_C], 5, "C");
    cell(100.0 * (double)ch[TW_CH_UTIL_FRAC], 5, "%");
    cell(1e-9 * (double)ch[TW_CH_MEM_USED_BYTES], 5, "GB");
    printf("  %s\n", look_state(l, i));
}

static void show(const struct look *l)
{
    if (l->nvml)
        printf("%zu GPUs%s, driver %s (%s)\n", l->n, l->simulated ? ", simulated" : "", l->driver.driver,
               l->driver.path);
    else
        printf("%zu GPUs of %s%s\n", l->n, l->source, l->simulated ? ", simulated" : "");
    printf("%-40s%8s%8s  %-11s%7s%7s%8s  %s\n", "UUID", "POWER", "LIMIT", "RANGE", "TEMP", "UTIL", "MEMORY",
           "STATE");
    double sum_w = 0.0, limit_w = 0.0;
    for (size_t i = 0; i < l->n; i++) {
        show_gpu(l, i);
        sum_w += (double)l->gpu[i].ch[TW_CH_POWER_W];
        limit_w += (double)l->gpu[i].ch[TW_CH_CAP_ENFORCED_W];
    }
    printf("%-40s", "sum");
    cell(sum_w, 6, "W");
    cell(limit_w, 6, "W");
    printf("\n");
}

static int json(const struct look *l, int status)
{
    struct tw_jsonw w;
    tw_ui_json(&w);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", SCHEMA);
    tw_jsonw_str(&w, "source", l->source);
    tw_jsonw_bool(&w, "simulated", l->simulated);
    tw_jsonw_str(&w, "driver", l->nvml ? l->driver.driver : NULL);
    tw_jsonw_str(&w, "library", l->nvml ? l->driver.path : NULL);
    tw_jsonw_i64(&w, "missing_gpus", l->driver.missing_gpus);
    look_json(l, &w, "gpus");
    tw_jsonw_end(&w);
    return tw_ui_json_done(&w, status);
}

int cmd_gpus(int argc, char **argv)
{
    struct args a = {.source = "nvml"};
    struct look l;
    struct tw_why why = {""};
    int bad = tw_ui_parse(&argp, argc, argv, &a);
    if (bad)
        return bad;
    if (look_open(a.source, &l, &why) != TW_OK)
        return tw_ui_error("%s", why.text);
    int status = l.driver.missing_gpus ? TW_EXIT_BAD : TW_EXIT_OK;
    for (size_t i = 0; i < l.n; i++)
        if (!l.gpu[i].fresh)
            status = TW_EXIT_BAD;
    if (a.json)
        status = json(&l, status);
    else
        show(&l);
    if (!a.json && l.driver.missing_gpus)
        tw_ui_warn("the driver counts %u more GPU(s) that do not answer", l.driver.missing_gpus);
    look_close(&l);
    return status;
}
