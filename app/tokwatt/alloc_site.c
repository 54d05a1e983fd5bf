/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation on a site file: from its jobs to the solver's, every split through the checker, then what it means
 * for each job. */
#include "tokwatt/alloc_site.h"

#include "alloc/check.h"
#include "alloc/tree.h"
#include "base/num.h"
#include "base/stat.h"
#include "conf/sitefile.h"
#include "elastic/belief.h"
#include "elastic/fit.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "tokwatt.allocate-site/1"
#define FLEX_CUT 0.3   /* PFI of a fitted curve is taken at this cut */
#define BINDS 1e-6     /* of a limit: nearer than this, it binds */
#define SLA_SLACK 1e-6 /* of a loss */

enum { PEEK = 4096 };

struct site_split {
    struct tw_tree_split split;
    double *used_w, *t; /* [n_nodes], [n_jobs] */
    double throughput, throughput_frac, min_frac, jain, power_w;
    uint32_t worst;
    bool done, refused; /* refused: without pausing the floors do not fit */
};

struct site {
    const struct alloc_site_args *args;
    struct tw_site file;
    struct tw_tree tree;
    struct tw_tree_node *node;
    struct tw_tree_gpu *gpu;
    struct tw_tree_job *job;
    struct tw_curve *curve;
    double *allowed; /* [n_jobs] loss that the SLA allows; NaN without one */
    double p0_w, base_w, t0, *need_w;
    struct site_split split[TW_POLICY_COUNT], more;
    /* for the checker [n_gpus], [n_nodes] */
    double *floor_w, *ceiling_w, *step_w, *limit_w, *load_w, *sum_w, *lost_w;
    uint32_t *under, *parent;
    bool *off;
    struct tw_arena arena;
    void *memory;
};

bool alloc_site_is(const char *path)
{
    char text[PEEK];
    size_t n = 0;
    FILE *f = fopen(path, "rbe");
    if (!f)
        return false;
    n = fread(text, 1, sizeof text, f);
    (void)fclose(f);
    return tw_site_is(text, n);
}

/* --- from the file to the solver ---------------------------------------------------------------------------
 */

static bool take_split(struct site_split *p, struct tw_arena *a, uint32_t nodes, uint32_t gpus, uint32_t jobs)
{
    p->split.cap_w = TW_ARENA_ARRAY(a, double, gpus);
    p->split.price = TW_ARENA_ARRAY(a, double, nodes);
    p->split.paused = TW_ARENA_ARRAY(a, bool, jobs);
    p->used_w = TW_ARENA_ARRAY(a, double, nodes);
    p->t = TW_ARENA_ARRAY(a, double, jobs);
    return p->split.cap_w && p->split.price && p->split.paused && p->used_w && p->t;
}

static bool take_memory(struct site *s)
{
    uint32_t v = s->file.n_places, g = s->file.n_gpus, j = s->file.file->n_jobs;
    size_t splits = TW_POLICY_COUNT + 1;
    size_t bytes = tw_tree_bytes(v, g, j) + tw_arena_need(v, sizeof(struct tw_tree_node)) +
                   tw_arena_need(g, sizeof(struct tw_tree_gpu)) + tw_arena_need(j, sizeof(struct tw_tree_job)) +
                   tw_arena_need(j, sizeof(struct tw_curve)) + (2 + splits) * tw_arena_need(j, sizeof(double)) +
                   (5 + 2 * splits) * tw_arena_need(v, sizeof(double)) +
                   (3 + splits) * tw_arena_need(g, sizeof(double)) + splits * tw_arena_need(j, sizeof(bool)) +
                   tw_arena_need(g, sizeof(bool)) + tw_arena_need(g, sizeof(uint32_t)) +
                   tw_arena_need(v, sizeof(uint32_t)) + TW_ARENA_ALIGN;
    s->memory = malloc(bytes);
    if (!s->memory)
        return false;
    struct tw_arena *a = &s->arena;
    tw_arena_init(a, s->memory, bytes);
    s->node = TW_ARENA_ARRAY(a, struct tw_tree_node, v);
    s->gpu = TW_ARENA_ARRAY(a, struct tw_tree_gpu, g);
    s->job = TW_ARENA_ARRAY(a, struct tw_tree_job, j);
    s->curve = TW_ARENA_ARRAY(a, struct tw_curve, j);
    s->allowed = TW_ARENA_ARRAY(a, double, j);
    s->need_w = TW_ARENA_ARRAY(a, double, v);
    s->limit_w = TW_ARENA_ARRAY(a, double, v);
    s->load_w = TW_ARENA_ARRAY(a, double, v);
    s->sum_w = TW_ARENA_ARRAY(a, double, v);
    s->lost_w = TW_ARENA_ARRAY(a, double, v);
    s->floor_w = TW_ARENA_ARRAY(a, double, g);
    s->ceiling_w = TW_ARENA_ARRAY(a, double, g);
    s->step_w = TW_ARENA_ARRAY(a, double, g);
    s->off = TW_ARENA_ARRAY(a, bool, g);
    s->under = TW_ARENA_ARRAY(a, uint32_t, g);
    s->parent = TW_ARENA_ARRAY(a, uint32_t, v);
    bool ok = s->node && s->gpu && s->job && s->curve && s->allowed && s->need_w && s->limit_w && s->load_w &&
              s->sum_w && s->lost_w && s->floor_w && s->ceiling_w && s->step_w && s->off && s->under &&
              s->parent;
    for (int p = 0; p < TW_POLICY_COUNT && ok; p++)
        ok = take_split(&s->split[p], a, v, g, j);
    return ok && take_split(&s->more, a, v, g, j);
}

/* By how much a job's losses grow when its curve is `risk` standard deviations worse, from what its points
 * leave open. A curve given by its numbers is taken at its word. */
static double worse_by(const struct tw_site_curve *c, double risk)
{
    struct tw_belief b;
    tw_belief_init(&b, NULL);
    for (unsigned i = 0; c && i < c->n_points; i++) {
        double sx = TW_RUN_SD_POWER * c->x[i] * sqrt(2.0),
               st = TW_RUN_SD_THROUGHPUT * sqrt(1.0 + c->t[i] * c->t[i]);
        enum tw_err err = tw_belief_add(&b, c->x[i], c->t[i], sx, st);
        (void)err; /* a point at no cut says nothing */
    }
    double sd, loss = 1.0 - tw_belief_value(&b, 1.0 - FLEX_CUT, &sd);
    return loss > 0.0 ? 1.0 + risk * sd / loss : 1.0;
}

static enum tw_err curve_of(const struct site *s, unsigned j, struct tw_curve *ret, struct tw_why *why)
{
    const struct tw_site_curve *c = s->file.file->jobs[j].curve;
    if (c && c->n_points == 0)
        return tw_curve_init_exp(ret, c->k, c->x0, why);
    *ret = c ? tw_fit_best(c->x, c->t, c->n_points, NULL).curve : tw_fit_exp(NULL, NULL, 0).curve;
    double grow = worse_by(c, s->args->risk);
    ret->b *= grow;
    for (unsigned i = 0; ret->family == TW_CURVE_KNOTS && i < ret->n; i++)
        ret->t[i] = 1.0 - grow * (1.0 - ret->t[i]);
    return TW_OK;
}

static enum tw_err take_job(struct site *s, unsigned j, uint32_t *at, struct tw_why *why)
{
    const struct tw_site_job *from = &s->file.file->jobs[j];
    enum tw_err err = curve_of(s, j, &s->curve[j], why);
    if (err != TW_OK) {
        tw_why_prefix(why, "%s: jobs[%u].curve: ", s->args->path, j);
        return err;
    }
    s->job[j] = (struct tw_tree_job){.first = *at,
                                     .n = from->n_gpus,
                                     .weight = from->weight * from->t0,
                                     .curve = &s->curve[j],
                                     .flex = fmin(tw_curve_pfi(&s->curve[j], FLEX_CUT), 1e6) / from->t0,
                                     .lockstep = !from->lockstep || *from->lockstep,
                                     .pausable = from->pausable && *from->pausable};
    s->allowed[j] = from->sla ? fmin(from->sla->slowdown_frac * from->sla->horizon_s / from->sla->event_s, 1.0)
                              : (double)NAN;
    double depth = s->allowed[j] < 1.0 ? tw_curve_depth(&s->curve[j], s->allowed[j]) : 1.0;
    for (unsigned k = 0; k < from->n_gpus; k++, (*at)++) {
        const struct tw_site_gpu *g = &from->gpus[k];
        s->gpu[*at] = (struct tw_tree_gpu){.node = s->file.gpu_place[*at],
                                           .p0_w = g->p0_w,
                                           .floor_w = g->floor_w,
                                           .ceiling_w = g->ceiling_w,
                                           .step_w = g->step_w};
        s->gpu[*at].floor_w = tw_tree_floor(&s->gpu[*at], depth);
        s->floor_w[*at] = s->gpu[*at].floor_w;
        s->ceiling_w[*at] = g->ceiling_w;
        s->step_w[*at] = g->step_w;
        s->under[*at] = s->file.gpu_place[*at];
        s->p0_w += g->p0_w;
    }
    s->t0 += from->t0;
    return TW_OK;
}

static enum tw_err take_site(struct site *s, struct tw_why *why)
{
    uint32_t at = 0;
    enum tw_err err = TW_OK;
    for (uint32_t v = 0; v < s->file.n_places; v++) {
        const struct tw_site_place *p = &s->file.place[v];
        s->node[v] = (struct tw_tree_node){p->parent, p->limit_w, p->base_w};
        s->parent[v] = p->parent;
        s->limit_w[v] = p->limit_w;
        s->load_w[v] = p->base_w;
        s->base_w += p->base_w;
    }
    for (unsigned j = 0; j < s->file.file->n_jobs && err == TW_OK; j++)
        err = take_job(s, j, &at, why);
    double budget =
        isnan(s->args->cut_frac) ? s->args->budget_w : (1.0 - s->args->cut_frac) * (s->p0_w + s->base_w);
    s->tree = (struct tw_tree){.node = s->node,
                               .gpu = s->gpu,
                               .job = s->job,
                               .n_nodes = s->file.n_places,
                               .n_gpus = s->file.n_gpus,
                               .n_jobs = s->file.file->n_jobs,
                               .budget_w = budget};
    return err;
}

/* --- splits ------------------------------------------------------------------------------------------------
 */

static enum tw_err check_split(struct site *s, const struct site_split *p, struct tw_why *why)
{
    for (uint32_t j = 0; j < s->tree.n_jobs; j++)
        for (uint32_t i = s->job[j].first; i < s->job[j].first + s->job[j].n; i++)
            s->off[i] = p->split.paused[j];
    struct tw_tree_check c = {.cap_w = p->split.cap_w,
                              .floor_w = s->floor_w,
                              .ceiling_w = s->ceiling_w,
                              .step_w = s->step_w,
                              .off = s->off,
                              .node = s->under,
                              .n = s->tree.n_gpus,
                              .parent = s->parent,
                              .limit_w = s->limit_w,
                              .base_w = s->load_w,
                              .n_nodes = s->tree.n_nodes,
                              .budget_w = s->tree.budget_w};
    return tw_alloc_check_tree(&c, s->sum_w, s->lost_w, why);
}

static void score(struct site *s, struct site_split *p)
{
    (void)tw_tree_value(&s->tree, p->split.cap_w, p->split.paused, p->t);
    memcpy(p->used_w, s->sum_w, s->tree.n_nodes * sizeof(double));
    p->throughput = 0.0;
    p->min_frac = (double)INFINITY;
    for (uint32_t j = 0; j < s->tree.n_jobs; j++) {
        p->throughput += s->file.file->jobs[j].t0 * p->t[j];
        if (p->t[j] < p->min_frac) {
            p->min_frac = p->t[j];
            p->worst = j;
        }
    }
    p->throughput_frac = p->throughput / s->t0;
    p->jain = tw_stat_jain(p->t, s->tree.n_jobs);
    p->power_w = s->sum_w[0];
    p->done = true;
}

static enum tw_err solve(struct site *s, enum tw_policy policy, struct site_split *p, struct tw_why *why)
{
    enum tw_err err = tw_tree_solve(&s->tree, policy, &s->arena, &p->split, why);
    if (err == TW_OK)
        err = check_split(s, p, why);
    if (err == TW_OK)
        score(s, p);
    return err;
}

static int solve_all(struct site *s)
{
    for (enum tw_policy p = 0; p < TW_POLICY_ORACLE; p++) {
        struct tw_why why = {""};
        enum tw_err err = s->args->wanted[p] || p == TW_POLICY_CURVE ? solve(s, p, &s->split[p], &why) : TW_OK;
        s->split[p].refused = err == TW_EINFEASIBLE && p != TW_POLICY_CURVE;
        if (err != TW_OK && !(s->split[p].refused && !s->args->named[p]))
            return tw_ui_error("policy %s: %s", tw_policy_name[p], why.text);
    }
    if (isnan(s->args->what_if_w))
        return TW_EXIT_OK;
    struct tw_why why = {""};
    double budget = s->tree.budget_w;
    s->tree.budget_w += s->args->what_if_w;
    enum tw_err err = solve(s, TW_POLICY_CURVE, &s->more, &why);
    s->tree.budget_w = budget;
    return err == TW_OK ? TW_EXIT_OK : tw_ui_error("--what-if: %s", why.text);
}

/* --- reporting ---------------------------------------------------------------------------------------------
 */

static const char *unit_of(const struct site *s)
{
    return s->file.file->jobs[0].unit ? s->file.file->jobs[0].unit : "tokens/s";
}

static double limit_of(const struct site *s, uint32_t v)
{
    return v ? s->limit_w[v] : fmin(s->limit_w[0], s->tree.budget_w);
}

static bool binds(const struct site *s, const struct site_split *p, uint32_t v)
{
    return p->split.price[v] > 0.0 || p->used_w[v] >= limit_of(s, v) * (1.0 - BINDS);
}

static double job_cap(const struct site *s, const struct site_split *p, uint32_t j)
{
    double sum = 0.0;
    for (uint32_t i = s->job[j].first; i < s->job[j].first + s->job[j].n; i++)
        sum += p->split.cap_w[i];
    return sum;
}

static const char *sla_word(const struct site *s, const struct site_split *p, uint32_t j)
{
    if (isnan(s->allowed[j]))
        return "none";
    return 1.0 - p->t[j] <= s->allowed[j] + SLA_SLACK ? "ok" : "at risk";
}

/* Units lost for each MWh that the job gives back. */
static double lost_per_mwh(const struct site *s, uint32_t j, double cap_w, double t)
{
    double given = s->file.file->jobs[j].p0_w - cap_w;
    return given > 0.0 ? (1.0 - t) * s->file.file->jobs[j].t0 * 3600.0 * 1e6 / given : (double)NAN;
}

static const char *curve_word(const struct tw_site_job *j)
{
    return !j->curve ? "assumed" : j->curve->n_points ? "measured" : "given";
}

static void json_job(struct tw_jsonw *w, const struct site *s, const struct site_split *p, uint32_t j)
{
    const struct tw_site_job *from = &s->file.file->jobs[j];
    double cap = job_cap(s, p, j), loss = 1.0 - p->t[j];
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "job", from->name);
    tw_jsonw_bool(w, "paused", p->split.paused[j]);
    tw_jsonw_num(w, "cap_w", cap, 9);
    tw_jsonw_num(w, "cut_frac", 1.0 - cap / from->p0_w, 9);
    tw_jsonw_num(w, "throughput", from->t0 * p->t[j], 9);
    tw_jsonw_num(w, "throughput_frac", p->t[j], 9);
    tw_jsonw_num(w, "lost_per_mwh", lost_per_mwh(s, j, cap, p->t[j]), 6);
    tw_jsonw_num(w, "time_lost_s_per_h", 3600.0 * loss, 6);
    tw_jsonw_str(w, "sla", sla_word(s, p, j));
    tw_jsonw_str(w, "curve", curve_word(from));
    tw_jsonw_array(w, "gpus");
    for (unsigned k = 0; k < from->n_gpus; k++) {
        tw_jsonw_object(w, NULL);
        tw_jsonw_str(w, "uuid", from->gpus[k].uuid);
        tw_jsonw_str(w, "node", from->gpus[k].node);
        tw_jsonw_num(w, "cap_w", p->split.cap_w[s->job[j].first + k], 9);
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
    tw_jsonw_end(w);
}

static void json_split(struct tw_jsonw *w, const struct site *s, const struct site_split *p)
{
    bool priced = isfinite(p->split.bound);
    tw_jsonw_num(w, "throughput", p->throughput, 9);
    tw_jsonw_num(w, "throughput_frac", p->throughput_frac, 9);
    tw_jsonw_num(w, "min_throughput_frac", p->min_frac, 9);
    tw_jsonw_str(w, "worst_job", s->file.file->jobs[p->worst].name);
    tw_jsonw_num(w, "jain", p->jain, 9);
    tw_jsonw_num(w, "power_w", p->power_w, 9);
    tw_jsonw_num(w, "optimality_gap_frac",
                 priced ? fmax(1.0 - p->split.value / p->split.bound, 0.0) : (double)NAN, 3);
    tw_jsonw_array(w, "binding");
    for (uint32_t v = 0; v < s->tree.n_nodes; v++) {
        if (!binds(s, p, v))
            continue;
        tw_jsonw_object(w, NULL);
        tw_jsonw_str(w, "node", s->file.place[v].name);
        tw_jsonw_num(w, "limit_w", limit_of(s, v), 9);
        tw_jsonw_num(w, "used_w", p->used_w[v], 9);
        tw_jsonw_num(w, "price_per_kw", priced ? 1000.0 * p->split.price[v] : (double)NAN, 6);
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
    tw_jsonw_array(w, "jobs");
    for (uint32_t j = 0; j < s->tree.n_jobs; j++)
        json_job(w, s, p, j);
    tw_jsonw_end(w);
}

static void json_head(struct tw_jsonw *w, const struct site *s, bool feasible)
{
    tw_ui_json(w);
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "schema", SCHEMA);
    tw_jsonw_str(w, "file", s->args->path);
    tw_jsonw_str(w, "unit", unit_of(s));
    tw_jsonw_i64(w, "n_jobs", s->tree.n_jobs);
    tw_jsonw_i64(w, "n_gpus", s->tree.n_gpus);
    tw_jsonw_num(w, "p0_w", s->p0_w, 9);
    tw_jsonw_num(w, "base_load_w", s->base_w, 9);
    tw_jsonw_num(w, "budget_w", s->tree.budget_w, 9);
    tw_jsonw_num(w, "risk", s->args->risk, 6);
    tw_jsonw_bool(w, "feasible", feasible);
}

static int show_json(const struct site *s)
{
    struct tw_jsonw w;
    json_head(&w, s, true);
    tw_jsonw_array(&w, "policies");
    for (enum tw_policy p = 0; p < TW_POLICY_ORACLE; p++) {
        if (!s->args->wanted[p])
            continue;
        tw_jsonw_object(&w, NULL);
        tw_jsonw_str(&w, "policy", tw_policy_name[p]);
        if (s->split[p].refused)
            tw_jsonw_str(&w, "reason", "it pauses no job, and the floors do not fit");
        else
            json_split(&w, s, &s->split[p]);
        tw_jsonw_end(&w);
    }
    tw_jsonw_end(&w);
    if (s->more.done) {
        tw_jsonw_object(&w, "what_if");
        tw_jsonw_num(&w, "more_w", s->args->what_if_w, 9);
        tw_jsonw_num(&w, "throughput", s->more.throughput, 9);
        tw_jsonw_num(&w, "gain", s->more.throughput - s->split[TW_POLICY_CURVE].throughput, 6);
        tw_jsonw_end(&w);
    }
    tw_jsonw_end(&w);
    return tw_ui_json_done(&w, TW_EXIT_OK);
}

static void show_binding(const struct site *s, const struct site_split *p)
{
    char used[32];
    for (uint32_t v = 0; v < s->tree.n_nodes; v++)
        if (binds(s, p, v))
            printf("  %-20s full at %s: one kW more brings %.4g %s\n", s->file.place[v].name,
                   tw_num_show_power(p->used_w[v], used, sizeof used), 1000.0 * p->split.price[v], unit_of(s));
}

static void show_jobs(const struct site *s, const struct site_split *p)
{
    printf("\n%-24s %10s %7s %7s %12s %14s  %s\n", "job", "cap W", "cut %", "kept %", "lost min/h",
           "lost per MWh", "SLA");
    for (uint32_t j = 0; j < s->tree.n_jobs; j++) {
        double cap = job_cap(s, p, j);
        printf("%-24.24s %10.1f %7.1f %7.2f %12.2f ", s->file.file->jobs[j].name, cap,
               100.0 * (1.0 - cap / s->file.file->jobs[j].p0_w), 100.0 * p->t[j], 60.0 * (1.0 - p->t[j]));
        double lost = lost_per_mwh(s, j, cap, p->t[j]);
        if (isnan(lost))
            printf("%14s", "-");
        else
            printf("%14.4g", lost);
        printf("  %s%s%s\n", sla_word(s, p, j), p->split.paused[j] ? ", paused" : "",
               s->file.file->jobs[j].curve ? "" : ", curve assumed");
        for (uint32_t i = s->job[j].first; s->args->detail && i < s->job[j].first + s->job[j].n; i++)
            printf("  %-22s %10.1f  %s\n", s->file.file->jobs[j].gpus[i - s->job[j].first].uuid,
                   p->split.cap_w[i], s->file.place[s->under[i]].name);
    }
}

static int show_table(const struct site *s)
{
    char p0[32], base[32], budget[32];
    printf("%u jobs on %u GPUs, uncapped %s and %s of base load; budget %s\n\n", s->tree.n_jobs, s->tree.n_gpus,
           tw_num_show_power(s->p0_w, p0, sizeof p0), tw_num_show_power(s->base_w, base, sizeof base),
           tw_num_show_power(s->tree.budget_w, budget, sizeof budget));
    printf("%-12s %14s %8s %8s %7s  %s\n", "policy", unit_of(s), "kept %", "worst %", "Jain", "");
    for (enum tw_policy p = 0; p < TW_POLICY_ORACLE; p++) {
        const struct site_split *q = &s->split[p];
        if (s->args->wanted[p] && q->refused)
            printf("%-12s %14s  it pauses no job, and the floors do not fit\n", tw_policy_name[p], "-");
        else if (s->args->wanted[p])
            printf("%-12s %14.1f %8.2f %8.2f %7.4f  %s\n", tw_policy_name[p], q->throughput,
                   100.0 * q->throughput_frac, 100.0 * q->min_frac, q->jain, tw_policy_text[p]);
    }
    const struct site_split *best = &s->split[TW_POLICY_CURVE];
    if (!s->args->wanted[TW_POLICY_CURVE])
        return TW_EXIT_OK;
    printf("\ncurve: no split is worth over %.2g%% more\n",
           100.0 * fmax(best->split.bound / best->split.value - 1.0, 0.0));
    show_binding(s, best);
    if (s->more.done)
        printf("  With %g W more the site makes %.1f %s, %.4g more.\n", s->args->what_if_w, s->more.throughput,
               unit_of(s), s->more.throughput - best->throughput);
    show_jobs(s, best);
    return TW_EXIT_OK;
}

/* Floors and base loads that do not fit: where and by how much, and the split that is nearest, with just those
 * limits raised to what cannot be done without. */
static int infeasible(struct site *s)
{
    struct tw_why why = {""};
    struct tw_jsonw w;
    if (s->args->json) {
        json_head(&w, s, false);
        tw_jsonw_array(&w, "lacking");
    } else {
        puts("Infeasible: floors and base load exceed these limits.");
    }
    for (uint32_t v = 0; v < s->tree.n_nodes; v++) {
        double limit = limit_of(s, v);
        if (s->need_w[v] <= limit * (1.0 + 1e-12))
            continue;
        if (s->args->json) {
            tw_jsonw_object(&w, NULL);
            tw_jsonw_str(&w, "node", s->file.place[v].name);
            tw_jsonw_num(&w, "limit_w", limit, 9);
            tw_jsonw_num(&w, "need_w", s->need_w[v], 9);
            tw_jsonw_num(&w, "over_w", s->need_w[v] - limit, 9);
            tw_jsonw_end(&w);
        } else {
            printf("  %-20s needs %.1f W of %.1f W: %.1f W too much\n", s->file.place[v].name, s->need_w[v],
                   limit, s->need_w[v] - limit);
        }
        s->node[v].limit_w = s->limit_w[v] = fmax(s->limit_w[v], s->need_w[v]);
        if (v == 0)
            s->tree.budget_w = fmax(s->tree.budget_w, s->need_w[0]);
    }
    enum tw_err err = solve(s, TW_POLICY_CURVE, &s->split[TW_POLICY_CURVE], &why);
    if (err != TW_OK)
        return tw_ui_error("the nearest feasible split: %s", why.text);
    if (s->args->json) {
        tw_jsonw_end(&w);
        tw_jsonw_object(&w, "nearest");
        json_split(&w, s, &s->split[TW_POLICY_CURVE]);
        tw_jsonw_end(&w);
        tw_jsonw_end(&w);
        return tw_ui_json_done(&w, TW_EXIT_BAD);
    }
    puts("The nearest feasible split, with just these limits raised by so much:");
    show_jobs(s, &s->split[TW_POLICY_CURVE]);
    return TW_EXIT_BAD;
}

int alloc_site(const struct alloc_site_args *a)
{
    struct site s = {.args = a};
    struct tw_why why = {""};
    uint32_t lacking = 0;
    int rc;
    if (a->named[TW_POLICY_ORACLE])
        return tw_ui_error("--policy oracle splits measured points; a site file has none to be right about");
    enum tw_err err = tw_site_open(a->path, &s.file, &why);
    if (err == TW_OK && !take_memory(&s))
        err = tw_fail(&why, TW_ENOMEM, "%s: not enough memory for %u GPUs", a->path, s.file.n_gpus);
    if (err == TW_OK)
        err = take_site(&s, &why);
    if (err == TW_OK)
        err = tw_tree_lacks(&s.tree, &s.arena, s.need_w, &lacking, &why);
    if (err != TW_OK)
        rc = tw_ui_error("%s", why.text);
    else if (lacking)
        rc = infeasible(&s);
    else if ((rc = solve_all(&s)) == TW_EXIT_OK)
        rc = a->json ? show_json(&s) : show_table(&s);
    free(s.memory);
    tw_site_done(&s.file);
    return rc;
}
