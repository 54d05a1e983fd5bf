/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt bench: what a claim of ours is worth, measured. */
#include "base/num.h"
#include "tokwatt/bench_paper.h"
#include "tokwatt/bench_public.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <argp.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CURVES "caps/curves.csv"
#define MIX "jobs/acme/kalos_completed_jobs.csv"
#define SEEDS_MAX 1000
#define DRAWS_MAX 100000
#define JOBS_MAX 10000

struct args {
    struct bench_public pub;
    struct bench_paper paper;
    const char *what;
    bool public, json, markdown;
    char found[4096], mix[4096];
};

enum {
    OPT_PUBLIC = 1000,
    OPT_SCALE,
    OPT_SETS,
    OPT_DROP,
    OPT_CUT,
    OPT_REACH,
    OPT_LEAVE,
    OPT_PROBE,
    OPT_EVENT,
    OPT_SEEDS,
    OPT_DRAWS,
    OPT_WORKLOADS,
    OPT_JOBS,
    OPT_THREADS,
    OPT_SEED,
    OPT_JSON,
    OPT_MARKDOWN
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "The published experiment, reconstructed:", 1},
    {"draws", OPT_DRAWS, "N", 0, "draws of what is not published (default 200)", 1},
    {"workloads", OPT_WORKLOADS, "N", 0, "workloads in each draw (default 500)", 1},
    {"jobs", OPT_JOBS, "N", 0, "jobs in each workload (default 100)", 1},
    {"seed", OPT_SEED, "N", 0, "of the draws (default 1)", 1},
    {"threads", OPT_THREADS, "N", 0, "default one for each processor", 1},
    {NULL, 0, NULL, 0, "On measured jobs:", 2},
    {"public", OPT_PUBLIC, NULL, 0, "on measured jobs of FILE", 2},
    {"sets", OPT_SETS, "NAME,...", 0, "split over jobs of these sets (default all); all sets are learnt from",
     2},
    {"drop", OPT_DROP, "JOB,...", 0, "without these jobs, neither split nor learnt from", 2},
    {"scale", OPT_SCALE, "published|unit", 0,
     "P_0 = power_w x n_gpus (default), or every job with P_0 = T_0 = 1", 2},
    {"cut", OPT_CUT, "FRAC", 0, "how much of the uncapped power to shed (default 30%)", 2},
    {"reach", OPT_REACH, "FRAC", 0, "leave out jobs whose lowest point is above this share of their P_0", 2},
    {"leave-out", OPT_LEAVE, "model|job", 0,
     "what a job is judged without: every job of its model (default), or itself alone", 2},
    {NULL, 0, NULL, 0, "Both:", 3},
    {"probe", OPT_PROBE, "TIME", 0, "how long a probe lasts (default 60s)", 3},
    {"event", OPT_EVENT, "TIME", 0, "how long what it tells is used (default 3h)", 3},
    {"seeds", OPT_SEEDS, "N", 0, "draws of run-to-run noise (default 20)", 2},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 3},
    {"markdown", OPT_MARKDOWN, NULL, 0, "the whole page of docs/benchmarks/allocation.md", 3},
    {0},
};

static error_t parse_count(int key, const char *arg, struct argp_state *state, struct args *a)
{
    static const struct {
        int key;
        int64_t most;
    } limits[] = {{OPT_SEEDS, SEEDS_MAX}, {OPT_DRAWS, DRAWS_MAX}, {OPT_WORKLOADS, DRAWS_MAX},
                  {OPT_JOBS, JOBS_MAX},   {OPT_THREADS, 1024},    {OPT_SEED, INT32_MAX}};
    struct tw_why why = {""};
    int64_t n = 0;
    size_t i = 0;
    while (i < sizeof limits / sizeof *limits && limits[i].key != key)
        i++;
    if (i == sizeof limits / sizeof *limits)
        return ARGP_ERR_UNKNOWN;
    if (tw_num_i64(arg, 1, limits[i].most, &n, &why) != TW_OK)
        tw_ui_bad_option(state, key, &why);
    if (key == OPT_SEEDS)
        a->pub.seeds = (size_t)n;
    else if (key == OPT_DRAWS)
        a->paper.draws = (unsigned)n;
    else if (key == OPT_WORKLOADS)
        a->paper.workloads = (unsigned)n;
    else if (key == OPT_JOBS)
        a->paper.jobs = (unsigned)n;
    else if (key == OPT_THREADS)
        a->paper.threads = (unsigned)n;
    else
        a->paper.seed = (uint64_t)n;
    return 0;
}

static error_t parse_number(int key, const char *arg, struct argp_state *state, struct args *a)
{
    struct tw_why why = {""};
    enum tw_err err = TW_OK;
    switch (key) {
    case OPT_CUT:
        err = tw_num_frac(arg, &a->pub.cut_frac, &why);
        if (err == TW_OK && !(a->pub.cut_frac > 0.0 && a->pub.cut_frac < 1.0))
            argp_failure(state, TW_EXIT_USAGE, 0, "--cut is %s, expected more than 0 and less than 100%%", arg);
        break;
    case OPT_REACH:
        err = tw_num_frac(arg, &a->pub.reach_frac, &why);
        break;
    case OPT_PROBE:
        err = tw_num_duration(arg, &a->pub.probe_s, &why);
        break;
    case OPT_EVENT:
        err = tw_num_duration(arg, &a->pub.event_s, &why);
        if (err == TW_OK && !(a->pub.event_s > 0.0))
            argp_failure(state, TW_EXIT_USAGE, 0, "--event is 0, expected some time");
        break;
    default:
        return parse_count(key, arg, state, a);
    }
    if (err != TW_OK)
        tw_ui_bad_option(state, key, &why);
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    switch (key) {
    case OPT_PUBLIC:
        a->public = true;
        return 0;
    case OPT_SETS:
        a->pub.sets = arg;
        return 0;
    case OPT_DROP:
        a->pub.drop = arg;
        return 0;
    case OPT_SCALE:
        if (strcmp(arg, "unit") != 0 && strcmp(arg, "published") != 0)
            argp_failure(state, TW_EXIT_USAGE, 0, "--scale is \"%s\", expected published or unit", arg);
        a->pub.unit = strcmp(arg, "unit") == 0;
        return 0;
    case OPT_LEAVE:
        if (strcmp(arg, "model") != 0 && strcmp(arg, "job") != 0)
            argp_failure(state, TW_EXIT_USAGE, 0, "--leave-out is \"%s\", expected model or job",
                         arg ? arg : "");
        a->pub.leave_job = strcmp(arg, "job") == 0;
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    case OPT_MARKDOWN:
        a->markdown = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->what && a->pub.path)
            argp_failure(state, TW_EXIT_USAGE, 0, "one file is read, not two: \"%s\" and \"%s\"", a->pub.path,
                         arg);
        *(a->what ? &a->pub.path : &a->what) = arg;
        return 0;
    default:
        return parse_number(key, arg, state, a);
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "allocation [FILE]",
    .doc = "Measure what an allocation by elasticity is worth, and what knowing less of a job costs."
           "\vFILE is a CSV of measured points as `tokwatt pfi` reads it; without it $TW_DATA/" CURVES
           " is read, or the first data/" CURVES " in, beside or below this folder. Example:\n\n"
           "  tokwatt bench allocation --public --scale unit --sets emerald,perseus_a100 --cut 30%",
};

/* A file of the data folder when nobody said where: NULL when it is nowhere. */
static const char *find_data(const char *name, char *buf, size_t size)
{
    static const char *const places[] = {"data", "*/data", "../data", "../*/data"};
    const char *data = getenv("TW_DATA");
    char pattern[256];
    if (data && *data) {
        (void)snprintf(buf, size, "%s/%s", data, name);
        return access(buf, R_OK) == 0 ? buf : NULL;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        glob_t g;
        (void)snprintf(pattern, sizeof pattern, "%s/%s", places[i], name);
        bool found = glob(pattern, 0, NULL, &g) == 0;
        if (found)
            (void)snprintf(buf, size, "%s", g.gl_pathv[0]);
        globfree(&g);
        if (found)
            return buf;
    }
    return NULL;
}

int cmd_bench(int argc, char **argv)
{
    struct args a = {
        .pub = {.cut_frac = 0.3, .reach_frac = (double)NAN, .probe_s = 60.0, .event_s = 10800.0, .seeds = 20},
        .paper = {.draws = 200, .workloads = 500, .jobs = 100, .seed = 1}};
    int rc = tw_ui_parse(&argp, argc, argv, &a);
    if (rc != 0)
        return rc;
    if (!a.what || strcmp(a.what, "allocation") != 0)
        return tw_ui_error("say what to measure: allocation");
    if (!a.pub.path)
        a.pub.path = find_data(CURVES, a.found, sizeof a.found);
    if ((a.public || a.markdown) && !a.pub.path)
        return tw_ui_error("no measured points are here: name a file, or set TW_DATA to a folder with " CURVES);
    a.paper.mix_file = find_data(MIX, a.mix, sizeof a.mix);
    a.paper.probe_s = a.pub.probe_s;
    a.paper.event_s = a.pub.event_s;
    if (a.markdown) {
        rc = bench_public_page(&a.pub);
        return rc == TW_EXIT_OK && !a.public ? bench_paper_run(&a.paper, BENCH_PAGE) : rc;
    }
    return a.public ? bench_public_run(&a.pub, a.json)
                    : bench_paper_run(&a.paper, a.json ? BENCH_JSON : BENCH_TEXT);
}
