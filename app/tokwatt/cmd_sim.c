/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt sim: a power event on a simulated site, as fast as the machine allows.
 *
 * One site per policy, all with the same seed; the first policy decides the target in watts, and all deliver
 * it. What each lost is counted against the same site without caps. */
#include "base/num.h"
#include "base/stat.h"
#include "run/run.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "tokwatt.sim/1"
#define MAX_SEEDS 200
#define READY_MAX_S 7200 /* a site that has not come to rest after this never will */
#define AFTER_MAX_S 7200 /* beyond the hold: both ramps */

struct args {
    int64_t seed, seeds, gpus;
    const char *policies;
    double cut_frac, for_s, base_w;
    bool json;
};

/* One seed. */
struct outcome {
    int64_t seed;
    size_t n_job;
    struct tw_run_result result;
    double probe_lost, probe_s;
    double ready_s;
    double skill30, skill60;
    char worst[64];
    double worst_frac; /* units kept over the uncapped reference, of the job that lost most */
    unsigned long writes;
};

enum { OPT_SEED = 1000, OPT_SEEDS, OPT_GPUS, OPT_POLICY, OPT_CUT, OPT_FOR, OPT_JSON, OPT_BASE };

static const struct argp_option options[] = {
    {"seed", OPT_SEED, "N", 0, "all randomness follows from it (default 1)", 0},
    {"seeds", OPT_SEEDS, "N", 0, "that many seeds, from --seed on, and their spread (default 1)", 0},
    {"gpus", OPT_GPUS, "N", 0, "GPUs of the site (default 64)", 0},
    {"policy", OPT_POLICY, "LIST", 0, "of curve, equal, oracle; the first sets the target (default all three)",
     0},
    {"cut", OPT_CUT, "FRAC", 0, "of the mean power of the five minutes before (default 30%)", 0},
    {"for", OPT_FOR, "TIME", 0, "how long the target is held (default 5m)", 0},
    {"base", OPT_BASE, "POWER", 0, "constant power outside the GPUs (default 0)", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 0},
    {0},
};

static void refuse(struct argp_state *state, const char *option, const struct tw_why *why)
{
    argp_failure(state, TW_EXIT_USAGE, 0, "--%s: %s", option, why->text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    switch (key) {
    case OPT_SEED:
        if (tw_num_i64(arg, 0, INT64_MAX / 2, &a->seed, &why) != TW_OK)
            refuse(state, "seed", &why);
        return 0;
    case OPT_SEEDS:
        if (tw_num_i64(arg, 1, MAX_SEEDS, &a->seeds, &why) != TW_OK)
            refuse(state, "seeds", &why);
        return 0;
    case OPT_GPUS:
        if (tw_num_i64(arg, 10, 8192, &a->gpus, &why) != TW_OK)
            refuse(state, "gpus", &why);
        return 0;
    case OPT_POLICY:
        a->policies = arg;
        return 0;
    case OPT_CUT:
        if (tw_num_frac(arg, &a->cut_frac, &why) != TW_OK)
            refuse(state, "cut", &why);
        return 0;
    case OPT_FOR:
        if (tw_num_duration(arg, &a->for_s, &why) != TW_OK)
            refuse(state, "for", &why);
        return 0;
    case OPT_BASE:
        if (tw_num_power(arg, &a->base_w, &why) != TW_OK)
            refuse(state, "base", &why);
        return 0;
    case OPT_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_failure(state, TW_EXIT_USAGE, 0, "\"%s\" is not expected; everything is an option here", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Run a power event on a simulated site in virtual time, and compare policies on the same site with "
           "the same seed."
           "\vEvery figure is simulated. Lost throughput of different jobs is added up in weighted tokens: one "
           "token of a "
           "70B model counts 1, others by their active parameters. Example:\n\n"
           "  tokwatt sim --seeds 5 --cut 30% --for 5m",
};

/* "curve,equal" into the run's configuration: the first leads, the rest are twins; none always runs beside. */
static enum tw_err take_policies(const char *list, struct tw_run_conf *conf, struct tw_why *why)
{
    char text[64];
    if (strlen(list) >= sizeof text)
        return tw_fail(why, TW_EINVAL, "a list of policies longer than %zu characters", sizeof text - 1);
    (void)snprintf(text, sizeof text, "%s", list);
    bool first = true;
    char *save = NULL;
    for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        enum tw_steer policy;
        enum tw_err err = tw_steer_parse(word, &policy, why);
        if (err != TW_OK)
            return err;
        if (first)
            conf->ctl.policy = policy;
        else
            conf->twin[policy] = true;
        first = false;
    }
    if (first || conf->ctl.policy == TW_STEER_NONE)
        return tw_fail(why, TW_EINVAL, "--policy names no policy that caps; there are curve, equal and oracle");
    conf->twin[TW_STEER_NONE] = true;
    return TW_OK;
}

static void find_worst(const struct tw_snapshot *s, struct outcome *o)
{
    const struct tw_snap_event *e = &s->event;
    for (size_t j = 0; j < s->n_job; j++) {
        double could = s->job[j].t0 * (s->now_s - e->start_s);
        double frac = 1.0 - s->job[j].lost_units / could;
        if (!(frac < o->worst_frac))
            continue;
        o->worst_frac = frac;
        (void)snprintf(o->worst, sizeof o->worst, "%s", s->job[j].name);
    }
}

/* Turns until `done` says so or the time is up. */
static enum tw_err turns(struct tw_run *run, bool (*done)(const struct tw_run *), double most_s,
                         const char *what, struct tw_why *why)
{
    for (double t = 0.0; !done(run); t += 1.0) {
        if (t > most_s)
            return tw_fail(why, TW_EINTERNAL, "the simulated site did not come to an end: %s for %g s", what,
                           most_s);
        enum tw_err err = tw_run_turn(run, 1.0, why);
        if (err != TW_OK)
            return err;
        tw_ui_progress(-1.0, "%s, simulated time %.0f s", what, tw_run_snapshot(run)->now_s);
    }
    return TW_OK;
}

static bool is_over(const struct tw_run *run)
{
    return tw_run_result(run)->over;
}

static enum tw_err play(const struct args *a, int64_t seed, struct outcome *o, struct tw_why *why)
{
    char source[512];
    (void)snprintf(source, sizeof source, "sim:seed=%lld,gpus=%lld,base_w=%.0f", (long long)seed,
                   (long long)a->gpus, a->base_w);
    struct tw_run_conf conf = {.source = source, .ctl = tw_ctl_conf_default(), .speed = 1.0};
    enum tw_err err = take_policies(a->policies, &conf, why);
    struct tw_run *run = NULL;
    if (err == TW_OK)
        err = tw_run_open(&conf, &run, why);
    if (err == TW_OK)
        err = turns(run, tw_run_is_rested, READY_MAX_S, "learning", why);
    struct tw_ctl_ask ask = {a->cut_frac, a->for_s, 0.0, (double)NAN};
    uint32_t id = 0;
    if (err == TW_OK) {
        o->ready_s = tw_run_snapshot(run)->now_s;
        err = tw_run_event_add(run, &ask, &id, why);
    }
    if (err == TW_OK)
        err = turns(run, is_over, a->for_s + AFTER_MAX_S, "event", why);
    if (err == TW_OK) {
        const struct tw_snapshot *s = tw_run_snapshot(run);
        const struct tw_loop *l = tw_run_loop(run, conf.ctl.policy);
        o->seed = seed;
        o->n_job = s->n_job;
        o->result = *tw_run_result(run);
        o->probe_lost = tw_ctl_probe_lost(l->ctl, &o->probe_s);
        o->skill30 = s->skill_mean30;
        o->skill60 = s->skill_mean60;
        o->writes = l->writes;
        o->worst_frac = 1.0;
        find_worst(s, o);
    }
    tw_run_close(run);
    return err;
}

static bool in_band(const struct tw_ctl_event *e)
{
    return e->means > 0 && e->means_out == 0;
}

static enum tw_steer leader(const struct args *a)
{
    struct tw_run_conf conf = {.ctl = {.policy = TW_STEER_CURVE}};
    return take_policies(a->policies, &conf, NULL) == TW_OK ? conf.ctl.policy : TW_STEER_CURVE;
}

/* --- report -------------------------------------------------------------------------------------------- */

static void json_policy(struct tw_jsonw *w, const struct outcome *o, int p)
{
    const struct tw_ctl_event *e = &o->result.detail[p];
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "policy", tw_steer_name[p]);
    tw_jsonw_num(w, "tokens_lost", o->result.lost[p], 9);
    tw_jsonw_num(w, "loss_frac", o->result.lost[p] / o->result.done_none, 5);
    tw_jsonw_num(w, "hold10_min_frac", e->min_frac, 6);
    tw_jsonw_num(w, "hold10_max_frac", e->max_frac, 6);
    tw_jsonw_i64(w, "means", e->means);
    tw_jsonw_i64(w, "means_outside_band", e->means_out);
    tw_jsonw_i64(w, "means_unbound", e->means_free);
    tw_jsonw_num(w, "ramp_s", e->hold_s - e->start_s, 6);
    tw_jsonw_num(w, "reached_s", e->reached_s - e->start_s, 6);
    tw_jsonw_end(w);
}

static void json_outcome(struct tw_jsonw *w, const struct outcome *o, enum tw_steer lead)
{
    const struct tw_ctl_event *e = &o->result.detail[lead];
    tw_jsonw_object(w, NULL);
    tw_jsonw_i64(w, "seed", o->seed);
    tw_jsonw_bool(w, "in_band", in_band(e));
    tw_jsonw_bool(w, "infeasible", e->infeasible);
    tw_jsonw_num(w, "baseline_w", e->baseline_w, 7);
    tw_jsonw_num(w, "target_w", e->target_w, 7);
    tw_jsonw_num(w, "event_at_s", e->start_s, 7);
    tw_jsonw_num(w, "gap_recovered", o->result.gap_recovered, 4);
    tw_jsonw_num(w, "tokens_saved", o->result.saved, 9);
    tw_jsonw_str(w, "worst_job", o->worst);
    tw_jsonw_num(w, "worst_job_kept_frac", o->worst_frac, 5);
    tw_jsonw_num(w, "probe_tokens_lost", o->probe_lost, 9);
    tw_jsonw_num(w, "probe_s", o->probe_s, 6);
    tw_jsonw_num(w, "skill_mean30", o->skill30, 4);
    tw_jsonw_num(w, "skill_mean60", o->skill60, 4);
    tw_jsonw_array(w, "policies");
    for (int p = 0; p < TW_STEER_COUNT; p++)
        if (p != TW_STEER_NONE && !isnan(o->result.lost[p]))
            json_policy(w, o, p);
    tw_jsonw_end(w);
    tw_jsonw_end(w);
}

static int report_json(const struct args *a, const struct outcome *o, size_t n, int status)
{
    struct tw_jsonw w;
    tw_ui_json(&w);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", SCHEMA);
    tw_jsonw_bool(&w, "simulated", true);
    tw_jsonw_i64(&w, "gpus", a->gpus);
    tw_jsonw_i64(&w, "jobs", (int64_t)o->n_job);
    tw_jsonw_f64(&w, "cut_frac", a->cut_frac);
    tw_jsonw_f64(&w, "for_s", a->for_s);
    tw_jsonw_str(&w, "unit",
                 "weighted tokens: one token of a 70B model counts 1, others by their active parameters");
    tw_jsonw_array(&w, "runs");
    for (size_t i = 0; i < n; i++)
        json_outcome(&w, &o[i], leader(a));
    tw_jsonw_end(&w);
    tw_jsonw_end(&w);
    return tw_ui_json_done(&w, status);
}

static void print_outcome(const struct outcome *o, enum tw_steer lead)
{
    const struct tw_run_result *r = &o->result;
    const struct tw_ctl_event *e = &r->detail[lead];
    printf("simulated site, seed %lld: event at %.0f s, baseline %.0f W (mean of the five minutes before), "
           "target %.0f W%s\n",
           (long long)o->seed, e->start_s, e->baseline_w, e->target_w,
           e->infeasible ? " (the nearest that the devices accept)" : "");
    printf("  %-8s %16s %8s  %-24s %s\n", "policy", "tokens lost", "of all", "10 s means, of target",
           "to target");
    for (int p = 0; p < TW_STEER_COUNT; p++) {
        const struct tw_ctl_event *d = &r->detail[p];
        if (p == TW_STEER_NONE || isnan(r->lost[p]))
            continue;
        char band[800];
        if (isnan(d->min_frac))
            (void)snprintf(band, sizeof band, "up to %.2f %%, jobs want less", 100.0 * d->max_frac);
        else
            (void)snprintf(band, sizeof band, "%.2f..%.2f %%, %u of %u out", 100.0 * d->min_frac,
                           100.0 * d->max_frac, d->means_out, d->means);
        printf("  %-8s %16.0f %6.2f %%  %-24s %.0f s\n", tw_steer_name[p], r->lost[p],
               100.0 * r->lost[p] / r->done_none, band, d->reached_s - d->start_s);
    }
    if (!isnan(r->saved))
        printf("  tokens saved against equal weight: %.0f (simulated)", r->saved);
    if (!isnan(r->gap_recovered))
        printf("; share of the gap to the oracle: %.2f (simulated)", r->gap_recovered);
    printf("%s  worst job: %s keeps %.1f %%; probing cost %.0f tokens in %.0f s, paid once; limits written %lu "
           "times\n",
           isnan(r->saved) ? "" : "\n", o->worst, 100.0 * o->worst_frac, o->probe_lost, o->probe_s, o->writes);
    if (!isnan(o->skill30))
        printf("  forecast skill against the better of last value and 60 s mean: %.2f (30 s), %.2f (60 s) "
               "(simulated)\n",
               o->skill30, o->skill60);
}

static void print_spread(const struct outcome *o, size_t n, enum tw_steer lead)
{
    double gap[MAX_SEEDS], saved[MAX_SEEDS], probe[MAX_SEEDS], low[MAX_SEEDS], high[MAX_SEEDS];
    size_t clean = 0, gaps = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tw_ctl_event *e = &o[i].result.detail[lead];
        low[i] = e->min_frac;
        high[i] = e->max_frac;
        saved[i] = o[i].result.saved;
        probe[i] = o[i].probe_lost;
        clean += in_band(e);
        if (!isnan(o[i].result.gap_recovered))
            gap[gaps++] = o[i].result.gap_recovered;
    }
    tw_stat_sort(low, n);
    tw_stat_sort(high, n);
    printf("%zu seeds (simulated): all ten-second means within the band in %zu; lowest %.2f %%, highest %.2f "
           "%% of target\n",
           n, clean, 100.0 * low[0], 100.0 * high[n - 1]);
    if (gaps < n)
        return;
    printf("  tokens saved %.0f on average, standard deviation %.0f; gap recovered %.2f, standard deviation "
           "%.2f\n",
           tw_stat_mean(saved, n), tw_stat_std(saved, n), tw_stat_mean(gap, n), tw_stat_std(gap, n));
    printf("  probing cost %.0f on average, paid once before the event and not counted in it\n",
           tw_stat_mean(probe, n));
}

int cmd_sim(int argc, char **argv)
{
    struct args a = {
        .seed = 1, .seeds = 1, .gpus = 64, .policies = "curve,equal,oracle", .cut_frac = 0.3, .for_s = 300.0};
    int status = tw_ui_parse(&argp, argc, argv, &a);
    if (status != 0)
        return status;
    if (!(a.for_s >= 20.0 && a.for_s <= 86400.0))
        return tw_ui_error("--for %g s: 20 s to a day can be simulated", a.for_s);
    struct outcome *o = calloc((size_t)a.seeds, sizeof *o);
    if (!o)
        return tw_ui_error("no memory");
    struct tw_why why = {""};
    enum tw_err err = TW_OK;
    for (int64_t k = 0; err == TW_OK && k < a.seeds; k++) {
        err = play(&a, a.seed + k, &o[k], &why);
        if (err == TW_OK && !in_band(&o[k].result.detail[leader(&a)]))
            status = TW_EXIT_BAD;
        if (err == TW_OK && !a.json)
            print_outcome(&o[k], leader(&a));
    }
    tw_ui_progress_done();
    if (err != TW_OK) {
        (void)tw_ui_error("%s", why.text);
        status = err == TW_EINFEASIBLE ? TW_EXIT_BAD : TW_EXIT_USAGE;
    } else if (a.json) {
        status = report_json(&a, o, (size_t)a.seeds, status);
    } else {
        if (a.seeds > 1)
            print_spread(o, (size_t)a.seeds, leader(&a));
        if (status == TW_EXIT_BAD)
            puts("the band of 98 to 100 % of the target was left (simulated)");
    }
    free(o);
    return status;
}
