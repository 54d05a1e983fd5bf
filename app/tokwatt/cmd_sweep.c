/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt sweep: measure a live job at several caps, put everything back. */
#include "base/num.h"
#include "sys/file.h"
#include "tokwatt/cmd.h"
#include "tokwatt/sweepjob.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA "tokwatt.sweep/1"
#define FOR_DEFAULT_S 600.0
#define CSV_MAX 16384

struct args {
    struct sweepjob_conf job;
    const char *caps, *out;
    int64_t points, seed, pid;
    double for_s, slower_frac, precision;
    bool json, force, stop;
};

struct outcome {
    struct tw_sweep_result result;
    bool has_result, failed, interrupted;
    struct tw_why why; /* of a failure, or of no result */
    size_t restored;
};

enum {
    OPT_JSON = 1000,
    OPT_FORCE,
    OPT_CAP,
    OPT_CAPS,
    OPT_POINTS,
    OPT_SLOWER,
    OPT_PRECISION,
    OPT_SEED,
    OPT_GPUS,
    OPT_PID,
    OPT_LOG,
    OPT_PATTERN,
    OPT_SOCKET,
    OPT_UNIT,
    OPT_PER,
    OPT_STOP
};

static const struct argp_option options[] = {
    {"source", 's', "SOURCE", 0, "where the job runs, NAME or NAME:SPEC (default nvml)", 0},
    {"cap", OPT_CAP, "HELPER", 0, "write limits through the helper, \"capd\" or \"capd:/run/..\"", 0},
    {"job", 'j', "NAME", 0, "the job of a simulated source; else a name for the report", 0},
    {"caps", OPT_CAPS, "LIST", 0, "caps of one GPU: 200..700/100W, or 300W,400W,500W", 1},
    {"points", OPT_POINTS, "N", 0, "instead: N caps, evenly from the lowest the GPUs take (default 6)", 1},
    {"for", 'f', "TIME", 0, "how long at most, pauses of the job apart (default 10m)", 1},
    {"slower", OPT_SLOWER, "FRAC", 0, "how much slower is acceptable, for the recommended cap (default 5%)", 1},
    {"precision", OPT_PRECISION, "FRAC", 0,
     "a cap is done when the 90 % interval of its loss is +- this "
     "(default 1.5%)",
     1},
    {"seed", OPT_SEED, "N", 0, "seed of the order of the caps (default 1)", 1},
    {"gpus", OPT_GPUS, "UUID,...", 0, "the job's GPUs (default: those of --pid, or all)", 2},
    {"pid", OPT_PID, "PID", 0, "a job that runs already; the sweep ends with it", 2},
    {"progress-log", OPT_LOG, "FILE", 0, "progress from lines of a log that match --pattern", 2},
    {"pattern", OPT_PATTERN, "REGEX", 0,
     "its first group is the number done in all; without one a match is one", 2},
    {"progress-socket", OPT_SOCKET, "PATH", 0, "progress from datagrams, \"total N\" or \"add N\"", 2},
    {"unit", OPT_UNIT, "UNIT", 0, "of throughput, steps/s or tokens/s and the like (default steps/s)", 2},
    {"per", OPT_PER, "N", 0, "units in one of what progress counts, as tokens in a step (default 1)", 2},
    {"stop", OPT_STOP, NULL, 0, "end the command when the sweep is done, instead of waiting for it", 2},
    {"out", 'o', "FILE", 0, "write the points as CSV, for tokwatt pfi", 3},
    {"force", OPT_FORCE, NULL, 0, "write over a file that is there", 3},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 3},
    {0},
};

static error_t parse_text(struct args *a, int key, char *arg)
{
    const char **to = key == 's'           ? &a->job.source
                      : key == 'j'         ? &a->job.job
                      : key == 'o'         ? &a->out
                      : key == OPT_CAP     ? &a->job.cap
                      : key == OPT_CAPS    ? &a->caps
                      : key == OPT_GPUS    ? &a->job.gpus
                      : key == OPT_LOG     ? &a->job.progress_log
                      : key == OPT_PATTERN ? &a->job.pattern
                      : key == OPT_SOCKET  ? &a->job.progress_socket
                      : key == OPT_UNIT    ? &a->job.unit
                                           : NULL;
    if (to)
        *to = arg;
    return to ? 0 : ARGP_ERR_UNKNOWN;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    enum tw_err err = TW_OK;
    switch (key) {
    case 'f':
        err = tw_num_duration(arg, &a->for_s, &why);
        break;
    case OPT_POINTS:
        err = tw_num_i64(arg, 2, TW_SWEEP_CAPS, &a->points, &why);
        break;
    case OPT_SLOWER:
        err = tw_num_frac(arg, &a->slower_frac, &why);
        break;
    case OPT_PRECISION:
        err = tw_num_frac(arg, &a->precision, &why);
        break;
    case OPT_SEED:
        err = tw_num_i64(arg, 0, INT64_MAX, &a->seed, &why);
        break;
    case OPT_PID:
        err = tw_num_i64(arg, 2, INT32_MAX, &a->pid, &why);
        break;
    case OPT_PER:
        err = tw_num_f64(arg, &a->job.per, &why);
        break;
    case OPT_STOP:
        a->stop = true;
        break;
    case OPT_FORCE:
        a->force = true;
        break;
    case OPT_JSON:
        a->json = true;
        break;
    case ARGP_KEY_ARGS:
        a->job.cmd = state->argv + state->next;
        break;
    default:
        return parse_text(a, key, arg);
    }
    if (err != TW_OK)
        argp_failure(state, TW_EXIT_USAGE, 0, "%s", why.text);
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[-- COMMAND [ARG...]]",
    .doc = "Measure a job at several power caps while it runs: uncapped, down to the floor, the rest in random "
           "order, uncapped again. All its GPUs are swept together. Whatever happens, every GPU is put back to "
           "what was found on it; with --cap capd:..,free also when this process is killed."
           "\vExamples, a simulated job and a real one:\n\n"
           "  tokwatt sweep --source sim:seed=3 --job ft-dense-70b --out curve.csv\n"
           "  tokwatt sweep --cap capd:free --progress-log train.log --pattern 'step ([0-9]+)' -- python "
           "train.py\n"
           "  tokwatt pfi curve.csv",
};

/* ---- which caps ---- */

static enum tw_err take_range(const char *text, struct tw_sweep_conf *c, struct tw_why *why)
{
    char low[32], high[32], step[32];
    double low_w = 0.0, high_w = 0.0, step_w = 0.0;
    if (sscanf(text, "%31[^./].%*1[.]%31[^/]/%31s", low, high, step) != 3)
        return tw_fail(why, TW_EINVAL, "a range is LOW..HIGH/STEP, as 200..700/100W, not \"%.60s\"", text);
    enum tw_err err = tw_num_power(low, &low_w, why);
    err = err == TW_OK ? tw_num_power(high, &high_w, why) : err;
    err = err == TW_OK ? tw_num_power(step, &step_w, why) : err;
    if (err != TW_OK)
        return err;
    if (!(step_w >= 1.0 && high_w >= low_w && (high_w - low_w) / step_w < TW_SWEEP_CAPS))
        return tw_fail(why, TW_EINVAL, "\"%.60s\" is not 1 to %d caps upwards in steps of 1 W or more", text,
                       TW_SWEEP_CAPS);
    for (c->n = 0; low_w + (double)c->n * step_w <= high_w + 1e-9 && c->n < TW_SWEEP_CAPS; c->n++)
        c->cap_w[c->n] = low_w + (double)c->n * step_w;
    return TW_OK;
}

static enum tw_err take_caps(const char *text, struct tw_sweep_conf *c, struct tw_why *why)
{
    char word[32];
    if (strstr(text, ".."))
        return take_range(text, c, why);
    for (c->n = 0; *text;) {
        size_t n = strcspn(text, ",");
        if (c->n == TW_SWEEP_CAPS)
            return tw_fail(why, TW_EINVAL, "more than %d caps", TW_SWEEP_CAPS);
        (void)snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), text);
        enum tw_err err = tw_num_power(word, &c->cap_w[c->n], why);
        if (err != TW_OK)
            return err;
        c->n++;
        text += n + (text[n] == ',');
    }
    return TW_OK;
}

/* Caps that every GPU takes and that lie below what was found on each. */
static int caps_of(const struct sweepjob *j, const struct args *a, struct tw_sweep_conf *c)
{
    double least_w = 0.0, found_least_w = INFINITY;
    for (size_t k = 0; k < j->n; k++) {
        least_w = fmax(least_w, j->gpu[j->member[k]].limit_min_w);
        found_least_w = fmin(found_least_w, j->found_w[k]);
    }
    struct tw_why why = {""};
    if (a->caps) {
        if (take_caps(a->caps, c, &why) != TW_OK)
            return tw_ui_error("--caps: %s", why.text);
    } else {
        for (c->n = 0; c->n < (size_t)a->points; c->n++)
            c->cap_w[c->n] = round(least_w + (found_least_w - least_w) * (double)c->n / (double)a->points);
    }
    size_t kept = 0, above = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!(c->cap_w[i] >= least_w))
            return tw_ui_error("--caps: %g W is less than these GPUs take, %g W", c->cap_w[i], least_w);
        if (c->cap_w[i] < found_least_w)
            c->cap_w[kept++] = c->cap_w[i];
        else
            above += c->cap_w[i] > found_least_w;
    }
    if (above)
        tw_ui_warn("%zu caps above the %g W that were found are left out: a sweep raises no limit", above,
                   found_least_w);
    c->n = kept;
    c->n_gpu = j->n;
    return kept ? TW_EXIT_OK
                : tw_ui_error("no cap lies between %g W and the %g W that were found", least_w, found_least_w);
}

/* ---- the sweep ---- */

static void show(const struct tw_sweep *s, const char *name)
{
    char left[40], cap[24] = "";
    double left_s = tw_sweep_left_s(s), cap_w = tw_sweep_cap(s);
    if (!isnan(cap_w))
        (void)snprintf(cap, sizeof cap, " %g W", cap_w);
    tw_ui_progress(s->now_s / (s->now_s + left_s), "%.24s: %s%s, %s left", name, tw_sweep_phase_name[s->phase],
                   cap, tw_num_show_duration(left_s, left, sizeof left));
}

static void sweep(struct sweepjob *j, struct tw_sweep *s, struct outcome *o)
{
    enum tw_err err = TW_OK;
    while (s->phase != TW_SWEEP_DONE && err == TW_OK) {
        struct tw_sweep_seen seen;
        enum sweepjob_event event = SWEEPJOB_GOES_ON;
        err = sweepjob_second(j, &seen, &event, &o->why);
        if (err == TW_OK && event == SWEEPJOB_GOES_ON && tw_sweep_push(s, &seen))
            err = sweepjob_cap(j, tw_sweep_cap(s), &o->why);
        o->interrupted = event == SWEEPJOB_SIGNAL;
        if (event != SWEEPJOB_GOES_ON)
            break;
        show(s, j->name);
    }
    tw_ui_progress_done();
    o->failed = err != TW_OK;
    tw_sweep_end(s);
}

/* ---- what is written and said ---- */

TW_PRINTF(3, 4) static void csv_put(char *text, size_t *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text + *at, CSV_MAX - *at, fmt, ap);
    va_end(ap);
    *at += n > 0 && (size_t)n < CSV_MAX - *at ? (size_t)n : 0;
}

/* A field in quotes, quotes in it doubled. */
static void csv_text(char *text, size_t *at, const char *field)
{
    csv_put(text, at, "\"");
    for (const char *p = field; *p; p++)
        csv_put(text, at, *p == '"' ? "\"%c" : "%c", (unsigned char)*p < 0x20 ? '?' : *p);
    csv_put(text, at, "\",");
}

static void csv_row(char *text, size_t *at, const struct sweepjob *j, double cap_w, double power_w, double rate,
                    const struct tw_sweep_row *row)
{
    csv_text(text, at, j->simulated ? "simulated" : "sweep");
    csv_text(text, at, j->gpu[j->member[0]].model);
    csv_text(text, at, j->name);
    csv_put(text, at, "%zu,power_cap_w,%g,%.7g,%.7g,", j->n, cap_w, power_w / (double)j->n, rate);
    csv_text(text, at, j->unit);
    if (row)
        csv_put(text, at, "%.5f,%.5f,%.5f\n", row->loss, row->low, row->high);
    else
        csv_put(text, at, "0,,\n");
}

static int csv_write(const struct sweepjob *j, const struct args *a, const struct tw_sweep_result *r)
{
    char text[CSV_MAX];
    size_t at = 0;
    struct tw_why why = {""};
    csv_put(text, &at,
            "set,gpu,job,n_gpus,knob,setting,power_w,throughput,unit,loss_frac,loss_low,loss_high\n");
    csv_row(text, &at, j, j->found_most, r->p0_w, r->t0, NULL);
    for (size_t i = 0; i < r->n; i++)
        csv_row(text, &at, j, r->row[i].cap_w, r->row[i].power_w, r->row[i].rate, &r->row[i]);
    return tw_file_replace(a->out, text, at, &why) == TW_OK ? TW_EXIT_OK : tw_ui_error("%s", why.text);
}

static const char *floor_text[] = {
    [TW_SWEEP_FLOOR_NONE] = NULL,
    [TW_SWEEP_FLOOR_NOT_HELD] = "the GPUs draw more than the cap there",
    [TW_SWEEP_FLOOR_STALLS] = "the job hardly moves there",
};

/* "tokens/s": how many letters name one of them. */
static int one_of(const char *unit)
{
    size_t n = strcspn(unit, "/");
    if (n > 4 && strncmp(unit + n - 4, "ches", 4) == 0)
        return (int)n - 2;
    return (int)(n > 1 && unit[n - 1] == 's' ? n - 1 : n);
}

static void say_advice(const char *what, const struct tw_sweep_advice *v, const struct tw_sweep_result *r,
                       const char *unit)
{
    int n = one_of(unit);
    double before = r->p0_w / r->t0;
    if (!v->cap) {
        printf("%s: leave it uncapped, %.4g J/%.*s\n", what, before, n, unit);
        return;
    }
    printf("%s: cap %.0f W%s: %.1f %% less power, %.1f %% slower (%.1f to %.1f), %.4g J/%.*s instead of %.4g\n",
           what, v->cap_w, v->deepest ? " (the deepest measured)" : "", 1e2 * v->saved_frac, 1e2 * v->loss,
           1e2 * fmax(0.0, v->loss_low), 1e2 * v->loss_high, v->j_per_unit, n, unit, before);
}

static void say_points(const struct sweepjob *j, const struct tw_sweep *s, const struct tw_sweep_result *r)
{
    printf("%s%s on %zu GPUs, uncapped: %.0f W, %.5g %s\n", j->simulated ? "simulated: " : "", j->name, j->n,
           r->p0_w, r->t0, j->unit);
    printf("  cap W   power W    cut %%   slower %%   90 %% interval   measured s\n");
    for (size_t i = 0; i < r->n; i++) {
        const struct tw_sweep_row *p = &r->row[i];
        printf("%7.0f %9.0f %8.1f %10.2f   %5.2f to %5.2f %10.0f\n", p->cap_w, p->power_w, 1e2 * (1.0 - p->x),
               1e2 * p->loss, 1e2 * p->low, 1e2 * p->high, p->work_s);
    }
    size_t missing = s->conf.n - r->n;
    if (floor_text[s->floor])
        printf("floor: %g W and below left out: %s\n", s->point[s->n_order].cap_w, floor_text[s->floor]);
    else if (missing)
        printf("%zu caps were not measured\n", missing);
    printf("left out: warm-up %.0f s, evaluations %.0f s, checkpoints %.0f s\n", s->warm_s, s->eval_s,
           s->checkpoint_s);
    if (isnan(r->drift_frac))
        printf("drift: not known, there was no second uncapped measurement\n");
    else
        printf("drift from first to last: %+.1f %%%s\n", 1e2 * r->drift_frac,
               r->drifted ? ", beyond noise: corrected, intervals widened" : "");
}

static void say(const struct sweepjob *j, const struct args *a, const struct tw_sweep *s,
                const struct outcome *o)
{
    const struct tw_sweep_result *r = &o->result;
    char slower[48];
    say_points(j, s, r);
    if (r->pfi.used)
        printf("PFI %.2f (90 %%: %.2f to %.2f) over %u caps, by sums %.2f", r->pfi.mean, r->pfi_low,
               r->pfi_high, r->pfi.used, r->pfi.ros);
    else
        printf("PFI: no cap with a cut of 2 %% and a loss of 1 %% or more");
    if (isnan(r->knee_cut))
        printf("; no knee within what was measured\n");
    else
        printf("; knee at a cut of %.0f %%\n", 1e2 * r->knee_cut);
    (void)snprintf(slower, sizeof slower, "at most %g %% slower", 1e2 * a->slower_frac);
    say_advice(slower, &r->slower, r, j->unit);
    say_advice("least J per unit", &r->joules, r, j->unit);
}

static void json_advice(struct tw_jsonw *w, const char *key, const struct tw_sweep_advice *v)
{
    tw_jsonw_object(w, key);
    tw_jsonw_num(w, "cap_w", v->cap_w, 6);
    tw_jsonw_bool(w, "deepest_measured", v->deepest);
    tw_jsonw_num(w, "power_w", v->power_w, 6);
    tw_jsonw_num(w, "saved_frac", v->saved_frac, 6);
    tw_jsonw_num(w, "loss_frac", v->loss, 6);
    tw_jsonw_num(w, "loss_low", v->loss_low, 6);
    tw_jsonw_num(w, "loss_high", v->loss_high, 6);
    tw_jsonw_num(w, "j_per_unit", v->j_per_unit, 6);
    tw_jsonw_num(w, "j_saved_frac", v->j_saved_frac, 6);
    tw_jsonw_end(w);
}

static void json_result(struct tw_jsonw *w, const struct tw_sweep_result *r)
{
    tw_jsonw_num(w, "p0_w", r->p0_w, 7);
    tw_jsonw_num(w, "t0", r->t0, 7);
    tw_jsonw_num(w, "drift_frac", r->drift_frac, 5);
    tw_jsonw_bool(w, "drift_corrected", r->drifted);
    tw_jsonw_num(w, "pfi", r->pfi.mean, 6);
    tw_jsonw_num(w, "pfi_low", r->pfi_low, 6);
    tw_jsonw_num(w, "pfi_high", r->pfi_high, 6);
    tw_jsonw_num(w, "pfi_ros", r->pfi.ros, 6);
    tw_jsonw_i64(w, "points_used", r->pfi.used);
    tw_jsonw_num(w, "knee_cut_frac", r->knee_cut, 6);
    tw_jsonw_array(w, "points");
    for (size_t i = 0; i < r->n; i++) {
        const struct tw_sweep_row *p = &r->row[i];
        tw_jsonw_object(w, NULL);
        tw_jsonw_num(w, "cap_w", p->cap_w, 6);
        tw_jsonw_num(w, "power_w", p->power_w, 7);
        tw_jsonw_num(w, "throughput", p->rate, 7);
        tw_jsonw_num(w, "cut_frac", 1.0 - p->x, 6);
        tw_jsonw_num(w, "loss_frac", p->loss, 6);
        tw_jsonw_num(w, "loss_low", p->low, 6);
        tw_jsonw_num(w, "loss_high", p->high, 6);
        tw_jsonw_num(w, "measured_s", p->work_s, 6);
        tw_jsonw_num(w, "settle_s", p->settle_s, 6);
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
    json_advice(w, "at_most_slower", &r->slower);
    json_advice(w, "least_energy", &r->joules);
}

static int say_json(const struct sweepjob *j, const struct tw_sweep *s, const struct outcome *o, int status)
{
    struct tw_jsonw w;
    tw_ui_json(&w);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", SCHEMA);
    tw_jsonw_bool(&w, "simulated", j->simulated);
    tw_jsonw_str(&w, "job", j->name);
    tw_jsonw_i64(&w, "n_gpus", (int64_t)j->n);
    tw_jsonw_str(&w, "unit", j->unit);
    tw_jsonw_num(&w, "took_s", s->now_s, 6);
    tw_jsonw_bool(&w, "ended_early", s->ended_early);
    tw_jsonw_i64(&w, "put_back", (int64_t)o->restored);
    tw_jsonw_num(&w, "warm_s", s->warm_s, 6);
    tw_jsonw_num(&w, "evaluation_s", s->eval_s, 6);
    tw_jsonw_num(&w, "checkpoint_s", s->checkpoint_s, 6);
    tw_jsonw_str(&w, "floor", floor_text[s->floor]);
    if (o->has_result)
        json_result(&w, &o->result);
    else
        tw_jsonw_str(&w, "reason", o->why.text);
    tw_jsonw_end(&w);
    return tw_ui_json_done(&w, status);
}

static int report(const struct sweepjob *j, const struct args *a, const struct tw_sweep *s, struct outcome *o)
{
    int status = s->ended_early || o->restored < j->n ? TW_EXIT_BAD : TW_EXIT_OK;
    if (o->failed)
        status = tw_ui_error("the sweep ended early: %s", o->why.text);
    else if (o->interrupted)
        tw_ui_warn("interrupted; what was measured until then follows");
    else if (s->ended_early)
        tw_ui_warn(j->child_ended || a->pid ? "the job ended before the sweep was done"
                                            : "the job made no progress that could be measured");
    double *scratch = malloc(TW_PFI_DRAWS * sizeof *scratch);
    struct tw_why why = {"no memory"};
    o->has_result = scratch && tw_sweep_finish(s, a->slower_frac, scratch, &o->result, &why) == TW_OK;
    free(scratch);
    if (!o->has_result && !o->failed)
        o->why = why;
    bool written = o->has_result && a->out;
    if (written && csv_write(j, a, &o->result) != TW_EXIT_OK)
        return TW_EXIT_USAGE;
    if (a->json)
        return say_json(j, s, o, status);
    if (o->has_result)
        say(j, a, s, o);
    else
        printf("no result: %s\n", o->why.text);
    printf("put back: %zu of %zu GPUs hold what was found\n", o->restored, j->n);
    if (written)
        printf("next: tokwatt pfi %s\n", a->out);
    else if (o->has_result)
        printf("next: add --out curve.csv to keep the points, then tokwatt pfi curve.csv\n");
    return status;
}

static int check(struct args *a)
{
    const struct sweepjob_conf *c = &a->job;
    bool sim = strncmp(c->source, "sim", 3) == 0;
    if (a->out && !a->force && access(a->out, F_OK) == 0)
        return tw_ui_error("%s is there already; choose another name or say --force", a->out);
    if (a->caps && a->points)
        return tw_ui_error("--caps and --points say the same in two ways; give one");
    if (sim && !c->job)
        return tw_ui_error("which job? --job NAME; tokwatt gpus --source %s lists them", c->source);
    if (sim && (c->cmd || a->pid || c->cap || c->progress_log || c->progress_socket || c->gpus))
        return tw_ui_error("a simulated job takes no command, process, helper, GPUs or progress of its own");
    if (!sim && (c->progress_log != NULL) == (c->progress_socket != NULL))
        return tw_ui_error(
            "progress comes from --progress-log FILE --pattern REGEX or from --progress-socket PATH; "
            "give one of them");
    if (c->progress_log && !c->pattern)
        return tw_ui_error("--progress-log needs --pattern: which lines count?");
    if (c->cmd && a->pid)
        return tw_ui_error("a command or --pid, not both");
    if (!(c->per > 0.0))
        return tw_ui_error("--per %g: expected more than 0", c->per);
    if (!(a->slower_frac > 0.0))
        return tw_ui_error("--slower 0%%: something has to be acceptable");
    if (!a->caps && !a->points)
        a->points = 6;
    return TW_EXIT_OK;
}

static int run(struct sweepjob *j, struct args *a, struct tw_sweep *s)
{
    struct tw_sweep_conf conf = {.total_s = a->for_s, .precision = a->precision, .seed = (uint64_t)a->seed};
    struct outcome o = {0};
    struct tw_why why = {""};
    int status = sweepjob_open(j, &a->job);
    if (status == TW_EXIT_OK)
        status = caps_of(j, a, &conf);
    if (status == TW_EXIT_OK && tw_sweep_init(s, &conf, &why) != TW_OK)
        status = tw_ui_error("%s", why.text);
    if (status == TW_EXIT_OK && !j->simulated && !a->job.cap)
        tw_ui_warn(
            "limits are written directly: if this process is killed (kill -9) they stay; --cap capd:free "
            "has a helper that puts them back");
    if (status == TW_EXIT_OK)
        status = sweepjob_start(j);
    if (status != TW_EXIT_OK)
        return status;
    sweep(j, s, &o);
    o.restored = sweepjob_restore(j);
    status = report(j, a, s, &o);
    (void)fflush(stdout);
    sweepjob_wait(j, a->stop || o.interrupted || o.failed);
    return status;
}

int cmd_sweep(int argc, char **argv)
{
    struct args a = {.job = {.source = "nvml", .unit = "steps/s", .per = 1.0},
                     .for_s = FOR_DEFAULT_S,
                     .slower_frac = 0.05,
                     .precision = TW_SWEEP_PRECISION,
                     .seed = 1};
    int status = tw_ui_parse(&argp, argc, argv, &a);
    if (status == TW_EXIT_OK)
        status = check(&a);
    if (status != TW_EXIT_OK)
        return status;
    a.job.pid = (pid_t)a.pid;
    if (!a.job.job)
        a.job.job = a.job.cmd ? a.job.cmd[0] : "job";
    struct sweepjob j = {0};
    struct tw_sweep *s = calloc(1, sizeof *s);
    status = s ? run(&j, &a, s) : tw_ui_error("no memory for a sweep");
    sweepjob_close(&j);
    free(s);
    return status;
}
