/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt allocate: a power cut split over measured jobs, all policies side by side. */
#include "alloc/alloc.h"
#include "alloc/check.h"
#include "base/num.h"
#include "base/stat.h"
#include "elastic/belief.h"
#include "elastic/pfi.h"
#include "tokwatt/alloc_site.h"
#include "tokwatt/cmd.h"
#include "tokwatt/jobs.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "tokwatt.allocate/1"
#define LITTLE_TO_WIN 0.003 /* oracle minus equal below this: a share of the gap means nothing */
#define REACH_UNIT 0.7

enum scale { SCALE_PUBLISHED, SCALE_UNIT };

struct args {
    struct jobs_choice choice;
    enum scale scale;
    double cut_frac, reach_frac, budget_w, what_if_w, risk; /* NaN until given */
    bool wanted[TW_POLICY_COUNT], named[TW_POLICY_COUNT];
    bool json, detail;
};

struct split {
    const char *reason; /* why there is none; NULL when there is */
    double *cap_w, *t;  /* [n] */
    double throughput_frac, min_frac, jain, gap, power_frac, price;
    size_t worst;
};

struct fleet {
    const struct args *args;
    const struct jobs *jobs;
    const struct measured_job **member; /* [n] */
    struct tw_alloc_job *job;           /* [n] */
    double *floor_w, *ceiling_w;        /* [n] for the checker */
    const struct measured_job **left;   /* [n_left] left out */
    size_t n, n_left;
    bool like_units;
    double p0_w, floor_sum_w, budget_w;
    struct split split[TW_POLICY_COUNT];
    struct tw_arena arena;
    void *memory;
};

enum {
    OPT_JSON = 1000,
    OPT_SCALE,
    OPT_CUT,
    OPT_POLICY,
    OPT_REACH,
    OPT_DETAIL,
    OPT_BUDGET,
    OPT_WHAT_IF,
    OPT_RISK
};

static const struct argp_option options[] = {
    {"cut", OPT_CUT, "FRAC", 0,
     "how much of the uncapped power to shed, as 30% or 0.3 (this or --budget is needed)", 0},
    {"budget", OPT_BUDGET, "WATTS", 0, "site file: what the site may draw, base load included, as 120kW", 0},
    {"what-if", OPT_WHAT_IF, "WATTS", 0, "site file: also say what so much more would bring, as +1kW", 0},
    {"risk", OPT_RISK, "SD", 0,
     "site file: take losses to be so many standard deviations worse where points leave them open (default 0)",
     0},
    {"policy", OPT_POLICY, "all|NAME,...", 0, "equal, equal-watts, pfi, curve, oracle (default all)", 0},
    {"scale", OPT_SCALE, "published|unit", 0,
     "P_0 = power_w x n_gpus (default), or every job with P_0 = T_0 = 1", 0},
    {"reach", OPT_REACH, "FRAC", 0,
     "leave out jobs whose lowest point is above this share of their P_0 (default 70% with --scale unit, else "
     "none)",
     0},
    {"detail", OPT_DETAIL, NULL, 0, "show the cut of every job", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 0},
    {0},
};

static void parse_policies(struct args *a, const char *arg, struct argp_state *state)
{
    memset(a->wanted, 0, sizeof a->wanted);
    memset(a->named, 0, sizeof a->named);
    if (*arg == '\0')
        argp_failure(state, TW_EXIT_USAGE, 0, "--policy is empty, expected names separated by commas, or all");
    while (*arg) {
        size_t n = strcspn(arg, ",");
        int p = 0;
        while (p < TW_POLICY_COUNT &&
               !(strlen(tw_policy_name[p]) == n && strncmp(arg, tw_policy_name[p], n) == 0))
            p++;
        if (p < TW_POLICY_COUNT)
            a->wanted[p] = a->named[p] = true;
        else if (n == 3 && strncmp(arg, "all", 3) == 0)
            for (int k = 0; k < TW_POLICY_COUNT; k++)
                a->wanted[k] = true;
        else
            argp_failure(state, TW_EXIT_USAGE, 0,
                         "--policy: \"%.*s\" is none; there are equal, equal-watts, pfi, curve, oracle and all",
                         (int)n, arg);
        arg += n + (arg[n] == ',');
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->choice;
        return 0;
    case OPT_CUT:
        if (tw_num_frac(arg, &a->cut_frac, &why) != TW_OK)
            argp_failure(state, TW_EXIT_USAGE, 0, "--cut: %s", why.text);
        return 0;
    case OPT_BUDGET:
        if (tw_num_power(arg, &a->budget_w, &why) != TW_OK)
            argp_failure(state, TW_EXIT_USAGE, 0, "--budget: %s", why.text);
        return 0;
    case OPT_WHAT_IF:
        if (tw_num_power(arg + (*arg == '+'), &a->what_if_w, &why) != TW_OK)
            argp_failure(state, TW_EXIT_USAGE, 0, "--what-if: %s", why.text);
        return 0;
    case OPT_RISK:
        if (tw_num_f64(arg, &a->risk, &why) != TW_OK || !(a->risk >= 0.0 && a->risk <= 5.0))
            argp_failure(state, TW_EXIT_USAGE, 0, "--risk is \"%s\", expected 0 to 5 standard deviations", arg);
        return 0;
    case OPT_REACH:
        if (tw_num_frac(arg, &a->reach_frac, &why) != TW_OK)
            argp_failure(state, TW_EXIT_USAGE, 0, "--reach: %s", why.text);
        return 0;
    case OPT_SCALE:
        if (strcmp(arg, "unit") != 0 && strcmp(arg, "published") != 0)
            argp_failure(state, TW_EXIT_USAGE, 0, "--scale is \"%s\", expected published or unit", arg);
        a->scale = strcmp(arg, "unit") == 0 ? SCALE_UNIT : SCALE_PUBLISHED;
        return 0;
    case OPT_POLICY:
        parse_policies(a, arg, state);
        return 0;
    case OPT_DETAIL:
        a->detail = true;
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&jobs_argp, 0, NULL, 0}, {0}};

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "FILE",
    .doc = "Split a power cut over the jobs in FILE, a CSV of measured points or a site file (YAML) with a "
           "tree of "
           "limits, by every policy, and say what each keeps."
           "\vThroughput is read off the measured points, straight between them, whatever a policy believed. "
           "Example:\n\n"
           "  tokwatt allocate curves.csv --scale unit --sets emerald,perseus_a100 --cut 30%\n"
           "  tokwatt allocate curves.csv --sets emerald --cut 20% --policy equal,curve --detail\n"
           "  tokwatt allocate site.yaml --budget 120kW --what-if +1kW",
};

/* --- the fleet ---------------------------------------------------------------------------------------------
 */

/* Units in which one job's number may be added to another's: a token is a token, an epoch is not an epoch. */
static bool adds_up(const char *unit)
{
    static const char *const sums[] = {"tokens/s", "samples/s", "sequences/s", "images/s", "requests/s"};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        if (strcmp(unit, sums[i]) == 0)
            return true;
    return false;
}

/* PFI as the rule wants it: the paper's mean; where no point counts, the ratio of sums; where that says nothing
 * either, 1, which is losing in proportion. */
static double pfi_of(const struct measured_job *m)
{
    struct tw_pfi p = tw_pfi_of(m->p0_w, m->t0, m->power_w, m->rate, m->n);
    return p.mean > 0.0 ? p.mean : p.ros > 0.0 ? p.ros : 1.0;
}

/* What the points leave open about a job's curve, as how far a split may leave equal weight for it. */
static double stray_of(const struct measured_job *m, double level)
{
    struct tw_belief b;
    tw_belief_init(&b, NULL);
    for (size_t i = 0; i < m->n; i++) {
        double sx = TW_RUN_SD_POWER * m->x[i] * sqrt(2.0),
               st = TW_RUN_SD_THROUGHPUT * sqrt(1.0 + m->t[i] * m->t[i]);
        if (m->x[i] < 1.0 && tw_belief_add(&b, m->x[i], m->t[i], sx, st) != TW_OK)
            return 0.0;
    }
    return tw_belief_stray(&b, level);
}

static bool fleet_take(struct fleet *f)
{
    size_t n = f->jobs->n, oracle = tw_alloc_oracle_bytes(n < TW_ORACLE_JOBS ? n : TW_ORACLE_JOBS);
    size_t bytes = 2 * tw_arena_need(n, sizeof(void *)) + tw_arena_need(n, sizeof(struct tw_alloc_job)) +
                   (2 + 2 * TW_POLICY_COUNT) * tw_arena_need(n, sizeof(double)) + tw_alloc_bytes(n) + oracle +
                   TW_ARENA_ALIGN;
    f->memory = malloc(bytes);
    if (!f->memory)
        return false;
    tw_arena_init(&f->arena, f->memory, bytes);
    f->member = tw_arena_alloc(&f->arena, n, sizeof(void *));
    f->left = tw_arena_alloc(&f->arena, n, sizeof(void *));
    f->job = TW_ARENA_ARRAY(&f->arena, struct tw_alloc_job, n);
    f->floor_w = TW_ARENA_ARRAY(&f->arena, double, n);
    f->ceiling_w = TW_ARENA_ARRAY(&f->arena, double, n);
    bool ok = f->member && f->left && f->job && f->floor_w && f->ceiling_w;
    for (int p = 0; p < TW_POLICY_COUNT; p++) {
        f->split[p].cap_w = TW_ARENA_ARRAY(&f->arena, double, n);
        f->split[p].t = TW_ARENA_ARRAY(&f->arena, double, n);
        ok = ok && f->split[p].cap_w && f->split[p].t;
    }
    return ok;
}

static const char *left_out_reason(const struct fleet *f, const struct measured_job *m)
{
    if (m->reason)
        return m->reason;
    return m->measured.x[0] > f->args->reach_frac ? "its lowest point is above the share given by --reach"
                                                  : NULL;
}

/* Watts here are watts of the whole job; under --scale unit they are shares of P_0, and a GPU's count stands
 * for how many shares one watt per GPU is, so that equal-watts is one cap in real watts. */
static void add_member(struct fleet *f, const struct measured_job *m)
{
    bool unit = f->args->scale == SCALE_UNIT;
    double p0 = unit ? 1.0 : m->p0_w * m->src->n_gpus;
    f->member[f->n] = m;
    f->job[f->n] = (struct tw_alloc_job){
        .p0_w = p0,
        .floor_w = m->measured.x[0] * p0,
        .ceiling_w = p0,
        .weight = f->like_units && !unit ? m->t0 : 1.0,
        .stray_frac = stray_of(m, fmax(1.0 - f->args->cut_frac, m->measured.x[0])),
        .gpus = p0 / m->p0_w,
        .flex = unit ? pfi_of(m) : pfi_of(m) * p0 / m->t0,
        .curve = &m->best.curve,
        .measured = m->measured,
    };
    f->floor_w[f->n] = f->job[f->n].floor_w;
    f->ceiling_w[f->n] = p0;
    f->p0_w += p0;
    f->floor_sum_w += f->job[f->n].floor_w;
    f->n++;
}

static void fleet_fill(struct fleet *f)
{
    const char *unit = NULL;
    f->like_units = true;
    for (size_t i = 0; i < f->jobs->n; i++) {
        const struct measured_job *m = &f->jobs->job[i];
        if (left_out_reason(f, m))
            continue;
        unit = unit ? unit : m->src->unit;
        if (!adds_up(m->src->unit) || strcmp(unit, m->src->unit) != 0)
            f->like_units = false;
    }
    for (size_t i = 0; i < f->jobs->n; i++) {
        const struct measured_job *m = &f->jobs->job[i];
        if (left_out_reason(f, m))
            f->left[f->n_left++] = m;
        else
            add_member(f, m);
    }
    f->budget_w = f->p0_w * (1.0 - f->args->cut_frac);
}

/* --- splitting and scoring ---------------------------------------------------------------------------------
 */

static enum tw_err solve(struct fleet *f, enum tw_policy p, struct tw_why *why)
{
    struct split *s = &f->split[p];
    s->price = (double)NAN;
    switch (p) {
    case TW_POLICY_EQUAL:
        return tw_alloc_equal(f->job, f->n, f->budget_w, &f->arena, s->cap_w, NULL, why);
    case TW_POLICY_EQUAL_WATTS:
        return tw_alloc_equal_watts(f->job, f->n, f->budget_w, &f->arena, s->cap_w, NULL, why);
    case TW_POLICY_PFI:
        if (f->args->scale == SCALE_PUBLISHED && !f->like_units)
            return tw_fail(
                why, TW_EUNSUPPORTED,
                "the paper's rule divides by throughput, and these jobs are in units that do not compare");
        return tw_alloc_pfi(f->job, f->n, f->budget_w, &f->arena, s->cap_w, why);
    case TW_POLICY_CURVE:
        return tw_alloc_curve(f->job, f->n, f->budget_w, &f->arena, s->cap_w, &s->price, why);
    case TW_POLICY_ORACLE:
        return tw_alloc_oracle(f->job, f->n, f->budget_w, &f->arena, s->cap_w, why);
    case TW_POLICY_COUNT:
        break;
    }
    return tw_fail(why, TW_EINTERNAL, "no such policy");
}

/* Throughput off the measured points, for whatever a policy believed. */
static void score(const struct fleet *f, struct split *s)
{
    double kept = 0.0, weights = 0.0, power = 0.0;
    s->min_frac = (double)INFINITY;
    for (size_t i = 0; i < f->n; i++) {
        s->t[i] = tw_measured_value(&f->job[i].measured, s->cap_w[i] / f->job[i].p0_w);
        kept += f->job[i].weight * s->t[i];
        weights += f->job[i].weight;
        power += s->cap_w[i];
        if (s->t[i] < s->min_frac) {
            s->min_frac = s->t[i];
            s->worst = i;
        }
    }
    s->throughput_frac = kept / weights;
    s->power_frac = power / f->p0_w;
    s->jain = tw_stat_jain(s->t, f->n);
}

static char reasons[TW_POLICY_COUNT][sizeof(struct tw_why)];

/* Every policy, wanted or not: the gap is between equal and oracle. TW_EXIT_USAGE when one that was asked for
 * by name is refused, or when a split does not pass the checker. */
static int solve_all(struct fleet *f)
{
    for (enum tw_policy p = 0; p < TW_POLICY_COUNT; p++) {
        struct tw_why why = {""};
        enum tw_err err = solve(f, p, &why);
        if (err == TW_OK)
            err = tw_alloc_check(f->split[p].cap_w, f->floor_w, f->ceiling_w, f->n, f->budget_w, &why);
        if (err == TW_OK) {
            score(f, &f->split[p]);
            continue;
        }
        if (f->args->named[p] || (err != TW_EUNSUPPORTED && err != TW_ELIMIT))
            return tw_ui_error("policy %s: %s", tw_policy_name[p], why.text);
        (void)snprintf(reasons[p], sizeof reasons[p], "%s", why.text);
        f->split[p].reason = reasons[p];
    }
    const struct split *equal = &f->split[TW_POLICY_EQUAL], *oracle = &f->split[TW_POLICY_ORACLE];
    double gap = oracle->reason ? (double)NAN : oracle->throughput_frac - equal->throughput_frac;
    for (enum tw_policy p = 0; p < TW_POLICY_COUNT; p++)
        f->split[p].gap =
            gap >= LITTLE_TO_WIN ? (f->split[p].throughput_frac - equal->throughput_frac) / gap : (double)NAN;
    return TW_EXIT_OK;
}

static bool little_to_win(const struct fleet *f)
{
    const struct split *oracle = &f->split[TW_POLICY_ORACLE];
    return !oracle->reason &&
           !(oracle->throughput_frac - f->split[TW_POLICY_EQUAL].throughput_frac >= LITTLE_TO_WIN);
}

static const char *objective(const struct fleet *f)
{
    return f->args->scale == SCALE_PUBLISHED && f->like_units ? "total throughput" : "mean relative throughput";
}

/* --- reporting ---------------------------------------------------------------------------------------------
 */

static void json_job_name(struct tw_jsonw *w, const struct measured_job *m)
{
    tw_jsonw_str(w, "set", m->src->set);
    tw_jsonw_str(w, "gpu", m->src->gpu);
    tw_jsonw_str(w, "job", m->src->job);
}

/* A job's part of a split: its cap as a share of its own power, and as watts for each of its GPUs. */
static void json_part(struct tw_jsonw *w, const struct fleet *f, size_t i, double cap_w, double t)
{
    const struct measured_job *m = f->member[i];
    double x = cap_w / f->job[i].p0_w;
    tw_jsonw_object(w, NULL);
    json_job_name(w, m);
    tw_jsonw_num(w, "cut_frac", 1.0 - x, 9);
    tw_jsonw_num(w, "cap_w_per_gpu", x * m->p0_w, 9);
    tw_jsonw_num(w, "throughput_frac", t, 9);
    tw_jsonw_end(w);
}

static void json_head(struct tw_jsonw *w, const struct fleet *f)
{
    tw_ui_json(w);
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "schema", SCHEMA);
    tw_jsonw_str(w, "file", f->args->choice.path);
    tw_jsonw_str(w, "scale", f->args->scale == SCALE_UNIT ? "unit" : "published");
    tw_jsonw_f64(w, "cut_frac", f->args->cut_frac);
    tw_jsonw_str(w, "objective", objective(f));
    tw_jsonw_i64(w, "n_jobs", (int64_t)f->n);
    tw_jsonw_num(w, "p0_w", f->args->scale == SCALE_UNIT ? (double)NAN : f->p0_w, 9);
    tw_jsonw_num(w, "floor_frac", f->floor_sum_w / f->p0_w, 9);
    tw_jsonw_array(w, "left_out");
    for (size_t i = 0; i < f->n_left; i++) {
        tw_jsonw_object(w, NULL);
        json_job_name(w, f->left[i]);
        tw_jsonw_str(w, "reason", left_out_reason(f, f->left[i]));
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
}

static void json_policy(struct tw_jsonw *w, const struct fleet *f, enum tw_policy p)
{
    const struct split *s = &f->split[p];
    bool none = s->reason != NULL;
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "policy", tw_policy_name[p]);
    tw_jsonw_num(w, "throughput_frac", none ? (double)NAN : s->throughput_frac, 9);
    tw_jsonw_num(w, "min_throughput_frac", none ? (double)NAN : s->min_frac, 9);
    tw_jsonw_num(w, "jain", none ? (double)NAN : s->jain, 9);
    tw_jsonw_num(w, "gap_recovered", none ? (double)NAN : s->gap, 6);
    tw_jsonw_num(w, "power_frac", none ? (double)NAN : s->power_frac, 9);
    if (none) {
        tw_jsonw_str(w, "reason", s->reason);
    } else {
        if (p == TW_POLICY_CURVE)
            tw_jsonw_num(w, "price_per_w", s->price, 6);
        tw_jsonw_str(w, "worst_job", f->member[s->worst]->src->job);
        tw_jsonw_array(w, "jobs");
        for (size_t i = 0; i < f->n; i++)
            json_part(w, f, i, s->cap_w[i], s->t[i]);
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
}

static int show_json(const struct fleet *f)
{
    struct tw_jsonw w;
    json_head(&w, f);
    tw_jsonw_bool(&w, "feasible", true);
    tw_jsonw_bool(&w, "little_to_win", little_to_win(f));
    tw_jsonw_array(&w, "policies");
    for (enum tw_policy p = 0; p < TW_POLICY_COUNT; p++)
        if (f->args->wanted[p])
            json_policy(&w, f, p);
    tw_jsonw_end(&w);
    tw_jsonw_end(&w);
    return tw_ui_json_done(&w, TW_EXIT_OK);
}

static void show_left_out(const struct fleet *f)
{
    size_t shallow = 0;
    for (size_t i = 0; i < f->n_left; i++)
        shallow += f->left[i]->reason == NULL;
    if (shallow)
        printf("%zu jobs left out: their lowest point is above %.0f%% of their own power (--reach).\n", shallow,
               100.0 * f->args->reach_frac);
    if (f->n_left > shallow)
        printf("%zu jobs left out: %s.\n", f->n_left - shallow, "one usable point");
}

static void show_detail(const struct fleet *f)
{
    printf("\ncut of each job, %% of its own power, and what it keeps\n%-50s", "");
    for (enum tw_policy p = 0; p < TW_POLICY_COUNT; p++)
        if (f->args->wanted[p] && !f->split[p].reason)
            printf(" %13s", tw_policy_name[p]);
    putchar('\n');
    for (size_t i = 0; i < f->n; i++) {
        printf("%-14.14s %-35.35s", f->member[i]->src->set, f->member[i]->src->job);
        for (enum tw_policy p = 0; p < TW_POLICY_COUNT; p++)
            if (f->args->wanted[p] && !f->split[p].reason)
                printf(" %5.1f -> %4.1f", 100.0 * (1.0 - f->split[p].cap_w[i] / f->job[i].p0_w),
                       100.0 * f->split[p].t[i]);
        putchar('\n');
    }
}

static void show_table(const struct fleet *f)
{
    char watts[32];
    printf("%zu jobs, %s, cut %.4g%%: %s kept\n\n", f->n,
           f->args->scale == SCALE_UNIT ? "each with P_0 = T_0 = 1"
                                        : tw_num_show_power(f->p0_w, watts, sizeof watts),
           100.0 * f->args->cut_frac, objective(f));
    printf("%-12s %8s %8s %7s %9s  %s\n", "policy", "kept %", "worst %", "Jain", "gap", "");
    for (enum tw_policy p = 0; p < TW_POLICY_COUNT; p++) {
        const struct split *s = &f->split[p];
        if (!f->args->wanted[p])
            continue;
        if (s->reason) {
            printf("%-12s %8s  %s\n", tw_policy_name[p], "-", s->reason);
            continue;
        }
        printf("%-12s %8.2f %8.2f %7.4f ", tw_policy_name[p], 100.0 * s->throughput_frac, 100.0 * s->min_frac,
               s->jain);
        if (isnan(s->gap))
            printf("%9s", "-");
        else
            printf("%8.0f%%", 100.0 * s->gap);
        printf("  %s\n", tw_policy_text[p]);
    }
    putchar('\n');
    if (little_to_win(f))
        printf("Equal and oracle differ by %.2f points: on this fleet there is little to win, and a share of "
               "that gap "
               "means nothing.\n",
               100.0 * fabs(f->split[TW_POLICY_ORACLE].throughput_frac -
                            f->split[TW_POLICY_EQUAL].throughput_frac));
    show_left_out(f);
    if (f->args->detail)
        show_detail(f);
}

/* The floors leave no split: say by how much, and offer the nearest, every job at its floor. */
static int infeasible(const struct fleet *f)
{
    double deepest = 1.0 - f->floor_sum_w / f->p0_w;
    char reason[160];
    (void)snprintf(
        reason, sizeof reason,
        "the floors need %.4g%% of the power and a cut of %.4g%% leaves %.4g%%; the deepest cut is %.4g%%",
        100.0 * f->floor_sum_w / f->p0_w, 100.0 * f->args->cut_frac, 100.0 * (1.0 - f->args->cut_frac),
        100.0 * deepest);
    struct tw_why why;
    if (tw_alloc_check(f->floor_w, f->floor_w, f->ceiling_w, f->n, f->floor_sum_w, &why) != TW_OK)
        return tw_ui_error("the nearest feasible split: %s", why.text);
    if (!f->args->json) {
        printf("Infeasible: %s.\nThe nearest feasible split has every job at its lowest measured point:\n",
               reason);
        for (size_t i = 0; i < f->n; i++)
            printf("  %-18.18s %-40.40s %6.1f W per GPU, cut %5.1f%%, keeps %5.1f%%\n", f->member[i]->src->set,
                   f->member[i]->src->job, f->floor_w[i] / f->job[i].p0_w * f->member[i]->p0_w,
                   100.0 * (1.0 - f->floor_w[i] / f->job[i].p0_w), 100.0 * f->job[i].measured.t[0]);
        return TW_EXIT_BAD;
    }
    struct tw_jsonw w;
    json_head(&w, f);
    tw_jsonw_bool(&w, "feasible", false);
    tw_jsonw_str(&w, "reason", reason);
    tw_jsonw_array(&w, "policies");
    tw_jsonw_end(&w);
    tw_jsonw_object(&w, "nearest");
    tw_jsonw_num(&w, "cut_frac", deepest, 9);
    tw_jsonw_array(&w, "jobs");
    for (size_t i = 0; i < f->n; i++)
        json_part(&w, f, i, f->floor_w[i], f->job[i].measured.t[0]);
    tw_jsonw_end(&w);
    tw_jsonw_end(&w);
    tw_jsonw_end(&w);
    return tw_ui_json_done(&w, TW_EXIT_BAD);
}

static int split_and_show(struct fleet *f)
{
    if (!fleet_take(f))
        return tw_ui_error("not enough memory for %zu jobs", f->jobs->n);
    fleet_fill(f);
    if (f->n == 0)
        return tw_ui_error(
            "%s: no job is left that can be cut; all were left out (--reach, or one usable point)",
            f->args->choice.path);
    if (!(f->floor_sum_w <= f->budget_w * (1.0 + 1e-12)))
        return infeasible(f);
    int rc = solve_all(f);
    if (rc != TW_EXIT_OK)
        return rc;
    if (f->args->json)
        return show_json(f);
    show_table(f);
    return TW_EXIT_OK;
}

static int on_site(const struct args *a)
{
    struct alloc_site_args site = {.path = a->choice.path,
                                   .cut_frac = a->cut_frac,
                                   .budget_w = a->budget_w,
                                   .what_if_w = a->what_if_w,
                                   .risk = isnan(a->risk) ? 0.0 : a->risk,
                                   .wanted = a->wanted,
                                   .named = a->named,
                                   .json = a->json,
                                   .detail = a->detail};
    if (isnan(a->cut_frac) == isnan(a->budget_w))
        return tw_ui_error("one of --cut and --budget is needed, as in --cut 30%% or --budget 120kW");
    if (a->choice.sets || a->choice.drop || a->choice.only || !isnan(a->reach_frac) ||
        a->scale != SCALE_PUBLISHED)
        return tw_ui_error(
            "--sets, --job, --drop, --reach and --scale are for tables of points, and %s is a site "
            "file",
            a->choice.path);
    return alloc_site(&site);
}

int cmd_allocate(int argc, char **argv)
{
    struct args a = {.cut_frac = (double)NAN,
                     .reach_frac = (double)NAN,
                     .budget_w = (double)NAN,
                     .what_if_w = (double)NAN,
                     .risk = (double)NAN};
    for (int p = 0; p < TW_POLICY_COUNT; p++)
        a.wanted[p] = true;
    if (tw_ui_parse(&argp, argc, argv, &a) != 0)
        return TW_EXIT_USAGE;
    if (a.choice.path && alloc_site_is(a.choice.path))
        return on_site(&a);
    if (!isnan(a.budget_w) || !isnan(a.what_if_w) || !isnan(a.risk))
        return tw_ui_error("--budget, --what-if and --risk are for site files, and %s is none",
                           a.choice.path ? a.choice.path : "a table");
    if (isnan(a.cut_frac))
        return tw_ui_error("--cut is missing; say how much power to shed, as in --cut 30%%");
    if (isnan(a.reach_frac))
        a.reach_frac = a.scale == SCALE_UNIT ? REACH_UNIT : 1.0;
    struct jobs jobs = {.n = 0};
    struct fleet f = {.args = &a, .jobs = &jobs};
    int rc = jobs_read(&a.choice, &jobs);
    if (rc == TW_EXIT_OK)
        rc = split_and_show(&f);
    free(f.memory);
    jobs_done(&jobs);
    return rc;
}
