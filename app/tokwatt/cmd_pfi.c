/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt pfi: curves and the Power Flexibility Index of measured jobs. */
#include "base/num.h"
#include "elastic/pfi.h"
#include "sys/pool.h"
#include "tokwatt/cmd.h"
#include "tokwatt/jobs.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "tokwatt.pfi/1"

enum { CUTS_MAX = 16, DRAWS_MAX = 1000000 };

struct args {
    struct jobs_choice choice;
    double cut[CUTS_MAX];
    int n_cuts;
    int64_t draws, seed;
    double slowdown_frac, horizon_s, event_s; /* NaN until given */
    bool json, plot;
};

struct result {
    struct tw_pfi pfi;
    double low, high, sla_depth, knee;
};

struct report {
    const struct args *args;
    const struct jobs *jobs;
    struct result *result; /* [jobs->n] */
};

enum { OPT_JSON = 1000, OPT_AT, OPT_DRAWS, OPT_SEED, OPT_PLOT, OPT_SLOWDOWN, OPT_HORIZON, OPT_EVENT };

static const struct argp_option options[] = {
    {"at", OPT_AT, "CUT,...", 0, "cuts to give loss and PFI at (default 10%,20%,30%)", 0},
    {"slowdown", OPT_SLOWDOWN, "FRAC", 0, "SLA: mean slowdown that is allowed over the horizon", 0},
    {"horizon", OPT_HORIZON, "TIME", 0, "SLA: horizon (default 24h)", 0},
    {"event", OPT_EVENT, "TIME", 0, "SLA: hours of power events in a horizon (default 3h)", 0},
    {"draws", OPT_DRAWS, "N", 0, "bootstrap draws for the interval (default 10000)", 0},
    {"seed", OPT_SEED, "N", 0, "seed of the bootstrap (default 1)", 0},
    {"plot", OPT_PLOT, NULL, 0, "draw each curve in the terminal", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 0},
    {0},
};

static void parse_cuts(struct args *a, const char *arg, struct argp_state *state)
{
    char word[32];
    struct tw_why why = {""};
    if (*arg == '\0')
        argp_failure(state, TW_EXIT_USAGE, 0, "--at is empty, expected cuts separated by commas");
    for (a->n_cuts = 0; *arg;) {
        size_t n = strcspn(arg, ",");
        if (a->n_cuts == CUTS_MAX)
            argp_failure(state, TW_EXIT_USAGE, 0, "--at has more than %d cuts", CUTS_MAX);
        (void)snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), arg);
        if (tw_num_frac(word, &a->cut[a->n_cuts], &why) != TW_OK)
            argp_failure(state, TW_EXIT_USAGE, 0, "--at: %s", why.text);
        a->n_cuts++;
        arg += n + (arg[n] == ',');
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    enum tw_err err = TW_OK;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->choice;
        return 0;
    case OPT_AT:
        parse_cuts(a, arg, state);
        return 0;
    case OPT_SLOWDOWN:
        err = tw_num_frac(arg, &a->slowdown_frac, &why);
        break;
    case OPT_HORIZON:
        err = tw_num_duration(arg, &a->horizon_s, &why);
        break;
    case OPT_EVENT:
        err = tw_num_duration(arg, &a->event_s, &why);
        break;
    case OPT_DRAWS:
        err = tw_num_i64(arg, 100, DRAWS_MAX, &a->draws, &why);
        break;
    case OPT_SEED:
        err = tw_num_i64(arg, 0, INT64_MAX, &a->seed, &why);
        break;
    case OPT_PLOT:
        a->plot = true;
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (err != TW_OK)
        tw_ui_bad_option(state, key, &why);
    return 0;
}

static const struct argp_child children[] = {{&jobs_argp, 0, NULL, 0}, {0}};

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "FILE",
    .doc = "Curves of throughput against power and the Power Flexibility Index (PFI) of the jobs in FILE, a "
           "CSV of "
           "measured points: set,gpu,job,kind,n_gpus,knob,setting,power_w,throughput,unit, in any order."
           "\vPFI is the share of power shed over the share of throughput lost: 1 loses in proportion, more is "
           "flexible. "
           "Example:\n\n"
           "  tokwatt pfi curves.csv --sets emerald\n"
           "  tokwatt pfi curves.csv --job pt_mpt_7b_fast --plot --slowdown 5% --event 3h",
};

/* --- computing ---------------------------------------------------------------------------------------------
 */

/* A stream of its own for each job, by name: the interval of a job does not depend on which others were asked
 * for. */
static uint64_t stream_of(const struct tw_points_job *j)
{
    const char *part[] = {j->set, j->gpu, j->job};
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t k = 0; k < 3; k++)
        for (const char *p = part[k];; p++) {
            h = (h ^ (unsigned char)*p) * 0x100000001b3u;
            if (!*p)
                break;
        }
    return h;
}

static double deepest(const struct measured_job *m)
{
    return 1.0 - m->measured.x[0];
}

static void compute(void *ctx, unsigned i)
{
    struct report *r = ctx;
    const struct args *a = r->args;
    const struct measured_job *m = &r->jobs->job[i];
    struct result *out = &r->result[i];
    *out = (struct result){.pfi = {(double)NAN, (double)NAN, (double)NAN, 0},
                           .low = (double)NAN,
                           .high = (double)NAN,
                           .sla_depth = (double)NAN,
                           .knee = (double)NAN};
    if (m->reason)
        return;
    out->pfi = tw_pfi_of(m->p0_w, m->t0, m->power_w, m->rate, m->n);
    double *scratch = malloc((size_t)a->draws * sizeof *scratch);
    if (scratch && out->pfi.used)
        tw_pfi_interval(m->p0_w, m->t0, m->power_w, m->rate, m->n, (size_t)a->draws, (uint64_t)a->seed,
                        stream_of(m->src), scratch, &out->low, &out->high);
    free(scratch);
    out->knee = tw_curve_knee(&m->best.curve, deepest(m));
    if (!isnan(a->slowdown_frac))
        out->sla_depth = tw_curve_depth(&m->best.curve, a->slowdown_frac * a->horizon_s / a->event_s);
}

/* --- reporting ---------------------------------------------------------------------------------------------
 */

static const char *why_no_pfi(const struct measured_job *m, const struct result *r)
{
    return m->reason ? m->reason : r->pfi.used ? NULL : "no point with a cut of 2 % and a loss of 1 % or more";
}

static void json_curves(struct tw_jsonw *w, const struct measured_job *m)
{
    const struct tw_curve *c = &m->best.curve;
    if (m->reason) {
        tw_jsonw_null(w, "curve");
        tw_jsonw_null(w, "best_curve");
        return;
    }
    tw_jsonw_object(w, "curve");
    tw_jsonw_num(w, "k", m->exp.curve.k, 6);
    tw_jsonw_num(w, "x0", tw_curve_x0(&m->exp.curve), 6);
    tw_jsonw_num(w, "rmse", m->exp.rmse, 4);
    tw_jsonw_end(w);
    tw_jsonw_object(w, "best_curve");
    tw_jsonw_str(w, "family", tw_curve_family_name[c->family]);
    tw_jsonw_num(w, "rmse", m->best.rmse, 4);
    if (c->family == TW_CURVE_KNOTS) {
        tw_jsonw_array(w, "knots");
        for (unsigned i = 0; i < c->n; i++) {
            tw_jsonw_object(w, NULL);
            tw_jsonw_num(w, "x", c->x[i], 6);
            tw_jsonw_num(w, "t", c->t[i], 6);
            tw_jsonw_end(w);
        }
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
}

static void json_at(struct tw_jsonw *w, const struct args *a, const struct measured_job *m)
{
    tw_jsonw_array(w, "at");
    for (int i = 0; i < a->n_cuts && !m->reason; i++) {
        tw_jsonw_object(w, NULL);
        tw_jsonw_f64(w, "cut_frac", a->cut[i]);
        tw_jsonw_num(w, "loss_frac", 1.0 - tw_curve_value(&m->best.curve, 1.0 - a->cut[i]), 6);
        tw_jsonw_num(w, "pfi", tw_curve_pfi(&m->best.curve, a->cut[i]), 6);
        tw_jsonw_bool(w, "measured", a->cut[i] <= deepest(m));
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
}

static void json_points(struct tw_jsonw *w, const struct measured_job *m)
{
    tw_jsonw_array(w, "points");
    for (size_t i = 0; i < m->n; i++) {
        tw_jsonw_object(w, NULL);
        tw_jsonw_i64(w, "row", m->line[i]);
        tw_jsonw_num(w, "x", m->x[i], 6);
        tw_jsonw_num(w, "t", m->t[i], 6);
        if (jobs_noise(m, i))
            tw_jsonw_str(w, "warning", jobs_noise(m, i));
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
}

static void json_job(struct tw_jsonw *w, const struct args *a, const struct measured_job *m,
                     const struct result *r)
{
    const struct tw_points_job *s = m->src;
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "set", s->set);
    tw_jsonw_str(w, "gpu", s->gpu);
    tw_jsonw_str(w, "job", s->job);
    tw_jsonw_str(w, "kind", s->kind);
    tw_jsonw_f64(w, "n_gpus", s->n_gpus);
    tw_jsonw_str(w, "unit", s->unit);
    tw_jsonw_f64(w, "p0_w_per_gpu", m->p0_w);
    tw_jsonw_f64(w, "t0", m->t0);
    tw_jsonw_i64(w, "points_capped", (int64_t)m->n);
    tw_jsonw_i64(w, "points_used", r->pfi.used);
    tw_jsonw_num(w, "pfi", r->pfi.mean, 6);
    tw_jsonw_num(w, "pfi_ros", r->pfi.ros, 6);
    tw_jsonw_num(w, "pfi_low", r->low, 6);
    tw_jsonw_num(w, "pfi_high", r->high, 6);
    tw_jsonw_num(w, "pfi_unguarded", r->pfi.plain, 6);
    if (why_no_pfi(m, r))
        tw_jsonw_str(w, "reason", why_no_pfi(m, r));
    json_curves(w, m);
    tw_jsonw_num(w, "knee_cut_frac", r->knee, 6);
    json_at(w, a, m);
    if (!isnan(a->slowdown_frac))
        tw_jsonw_num(w, "sla_depth_frac", r->sla_depth, 6);
    if (m->below_others)
        tw_jsonw_str(w, "warning", "its largest setting is below that of others in its set; taken as uncapped");
    json_points(w, m);
    tw_jsonw_end(w);
}

static int show_json(const struct report *r)
{
    struct tw_jsonw w;
    tw_ui_json(&w);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", SCHEMA);
    tw_jsonw_str(&w, "file", r->args->choice.path);
    tw_jsonw_object(&w, "method");
    tw_jsonw_f64(&w, "min_cut_frac", TW_PFI_MIN_CUT);
    tw_jsonw_f64(&w, "min_loss_frac", TW_PFI_MIN_LOSS);
    tw_jsonw_f64(&w, "interval", TW_PFI_LEVEL);
    tw_jsonw_i64(&w, "draws", r->args->draws);
    tw_jsonw_i64(&w, "seed", r->args->seed);
    tw_jsonw_str(&w, "aggregate", r->args->choice.aggregate == TW_POINTS_TOP10 ? "top10" : "mean");
    tw_jsonw_end(&w);
    tw_jsonw_array(&w, "jobs");
    for (size_t i = 0; i < r->jobs->n; i++)
        json_job(&w, r->args, &r->jobs->job[i], &r->result[i]);
    tw_jsonw_end(&w);
    tw_jsonw_end(&w);
    return tw_ui_json_done(&w, TW_EXIT_OK);
}

/* Throughput against power: "o" measured, "." the fitted curve, "/" losing in proportion. */
static void plot(const struct measured_job *m)
{
    enum { W = 61, H = 17 };
    char cell[H][W + 1];
    double low = fmax(0.0, floor(10.0 * m->measured.x[0]) / 10.0), bottom = 1.0, top = 1.0;
    for (size_t i = 0; i < m->n; i++) {
        bottom = fmin(bottom, m->t[i]);
        top = fmax(top, m->t[i]);
    }
    bottom = fmax(0.0, floor(10.0 * fmin(bottom, low)) / 10.0);
    top = fmin(ceil(20.0 * top) / 20.0, 2.0);
    for (int row = 0; row < H; row++)
        (void)snprintf(cell[row], W + 1, "%*s", W, "");
    for (int pass = 0; pass < 2; pass++) {
        for (int col = 0; col < W; col++) {
            double x = low + (1.0 - low) * col / (W - 1), t = pass ? tw_curve_value(&m->best.curve, x) : x;
            int row = (int)lround((top - t) / (top - bottom) * (H - 1));
            if (row >= 0 && row < H)
                cell[row][col] = pass ? '.' : '/';
        }
    }
    for (size_t i = 0; i <= m->n; i++) {
        double x = i < m->n ? m->x[i] : 1.0, t = i < m->n ? m->t[i] : 1.0;
        int row = (int)lround((top - t) / (top - bottom) * (H - 1)),
            col = (int)lround((x - low) / (1.0 - low) * (W - 1));
        if (row >= 0 && row < H && col >= 0 && col < W)
            cell[row][col] = 'o';
    }
    printf("\n%s %s\n", m->src->set, m->src->job);
    for (int row = 0; row < H; row++)
        printf("  %4.0f%% |%s\n", 100.0 * (top - (top - bottom) * row / (H - 1)), cell[row]);
    printf("        +");
    for (int col = 0; col < W; col++)
        putchar('-');
    printf("\n   %4.0f%%%*s\n   throughput kept against power kept; o measured, . %s curve, / loses in "
           "proportion\n",
           100.0 * low, W + 4, "100%", tw_curve_family_name[m->best.curve.family]);
}

static const char *show(double v, int digits, char *buf, size_t size)
{
    if (isnan(v))
        return "-";
    if (isinf(v))
        return "inf";
    (void)snprintf(buf, size, "%.*f", digits, v);
    return buf;
}

static void show_row(const struct args *a, const struct measured_job *m, const struct result *r)
{
    char b[7][328]; /* the longest double */
    const struct tw_points_job *s = m->src;
    const double deep = a->n_cuts ? a->cut[a->n_cuts - 1] : 0.3;
    double loss = m->reason ? (double)NAN : 100.0 * (1.0 - tw_curve_value(&m->best.curve, 1.0 - deep));
    printf("%-18.18s %-34.34s %3u/%-3zu %7s %7s %7s %7s %7s%s %6s %s", s->set, s->job, r->pfi.used, m->n,
           show(r->pfi.mean, 3, b[0], sizeof b[0]), show(r->low, 2, b[1], sizeof b[1]),
           show(r->high, 2, b[2], sizeof b[2]), show(r->pfi.ros, 3, b[3], sizeof b[3]),
           show(loss, 1, b[4], sizeof b[4]), !m->reason && deep > deepest(m) ? "*" : " ",
           show(100.0 * r->knee, 0, b[5], sizeof b[5]),
           m->reason ? "-" : tw_curve_family_name[m->best.curve.family]);
    if (!isnan(a->slowdown_frac))
        printf(" %6s", show(100.0 * r->sla_depth, 1, b[6], sizeof b[6]));
    if (why_no_pfi(m, r))
        printf("  %s", why_no_pfi(m, r));
    putchar('\n');
}

/* The first few by row; all of them are in the JSON. */
static void show_noise(const struct report *r, size_t noisy)
{
    enum { SHOWN = 8 };
    size_t shown = 0;
    printf("%zu points lie above the uncapped one or above a larger setting: noise, kept. Rows", noisy);
    for (size_t i = 0; i < r->jobs->n; i++)
        for (size_t k = 0; k < r->jobs->job[i].n && shown < SHOWN; k++)
            if (jobs_noise(&r->jobs->job[i], k))
                printf("%s %u", shown++ ? "," : "", r->jobs->job[i].line[k]);
    printf("%s\n", noisy > SHOWN ? " and others (--json names each)." : ".");
}

static void show_table(const struct report *r)
{
    const struct args *a = r->args;
    size_t noisy = 0;
    printf("%-18s %-34s %7s %7s %7s %7s %7s %6.0f%% %7s %s%s\n", "set", "job", "used", "PFI", "low", "high",
           "ratio", a->n_cuts ? 100.0 * a->cut[a->n_cuts - 1] : 30.0, "knee", "curve",
           isnan(a->slowdown_frac) ? "" : "    SLA");
    for (size_t i = 0; i < r->jobs->n; i++) {
        const struct measured_job *m = &r->jobs->job[i];
        show_row(a, m, &r->result[i]);
        for (size_t k = 0; k < m->n; k++)
            noisy += jobs_noise(m, k) != NULL;
    }
    printf("\nused: capped points with a cut of 2 %% and a loss of 1 %% or more, of all; low, high: 90 %% "
           "interval of the "
           "PFI from run-to-run variation;\nratio: sum of cuts over sum of losses; %.0f%%: throughput lost "
           "(%%) at that "
           "cut, * beyond what was measured;\nknee: cut (%%) past which loss grows faster than power; curve: "
           "the family "
           "that the evidence chose.\n",
           a->n_cuts ? 100.0 * a->cut[a->n_cuts - 1] : 30.0);
    if (noisy)
        show_noise(r, noisy);
}

int cmd_pfi(int argc, char **argv)
{
    struct args a = {.cut = {0.1, 0.2, 0.3},
                     .n_cuts = 3,
                     .draws = TW_PFI_DRAWS,
                     .seed = 1,
                     .slowdown_frac = (double)NAN,
                     .horizon_s = 86400.0,
                     .event_s = 10800.0};
    struct jobs jobs = {.n = 0};
    struct tw_pool *pool = NULL;
    struct report r = {.args = &a, .jobs = &jobs};
    if (tw_ui_parse(&argp, argc, argv, &a) != 0)
        return TW_EXIT_USAGE;
    if (!(a.event_s > 0.0 && a.event_s <= a.horizon_s))
        return tw_ui_error("--event is %g s, expected more than 0 and at most the horizon of %g s", a.event_s,
                           a.horizon_s);
    int rc = jobs_read(&a.choice, &jobs);
    if (rc == TW_EXIT_OK) {
        r.result = calloc(jobs.n, sizeof *r.result);
        if (!r.result)
            rc = tw_ui_error("not enough memory for %zu jobs", jobs.n);
    }
    if (rc == TW_EXIT_OK) {
        struct tw_par par = tw_par_serial;
        if (tw_pool_new(0, &pool, NULL) == TW_OK)
            par = tw_pool_par(pool);
        tw_par_run(&par, compute, &r, (unsigned)jobs.n);
        tw_pool_free(pool);
        if (a.json) {
            rc = show_json(&r);
        } else {
            show_table(&r);
            for (size_t i = 0; a.plot && i < jobs.n; i++)
                if (!jobs.job[i].reason)
                    plot(&jobs.job[i]);
        }
    }
    free(r.result);
    jobs_done(&jobs);
    return rc;
}
