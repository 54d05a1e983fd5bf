/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt demo: the whole system on a simulated site, with its page. */
#include "base/num.h"
#include "serve/serve.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STORY_S                                                                                                \
    1320.0 /* learning, five minutes of baseline, the event and both ramps: about this long in site time */
#define STORY_PART 0.82 /* of --for that the story may take */
#define SPEED_DEFAULT 20.0
#define REDRAW_US 250000

struct args {
    int64_t seed, gpus, port;
    double for_s; /* NaN: until it is told to end */
    double speed; /* NaN: so that the story fits */
};

struct demo {
    struct args args;
    char source[128], listen[64], url[64];
    int64_t start_us, drawn_us;
    bool asked;
    enum tw_site_state state;
    struct tw_run_result result;
    double skill30, skill60;
    double probe_lost, probe_s;
};

enum { OPT_SEED = 1000, OPT_FOR, OPT_SPEED, OPT_PORT, OPT_GPUS };

static const struct argp_option options[] = {
    {"for", OPT_FOR, "TIME", 0, "end by itself this long after the page answers (default: stay until Ctrl-C)",
     0},
    {"speed", OPT_SPEED, "N", 0,
     "simulated seconds per second (default 20, or so that the event fits into --for)", 0},
    {"seed", OPT_SEED, "N", 0, "all randomness follows from it (default 1)", 0},
    {"gpus", OPT_GPUS, "N", 0, "GPUs of the site (default 64)", 0},
    {"port", OPT_PORT, "N", 0, "of the page, 0 for a free one (default 9477)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    enum tw_err err = TW_OK;
    switch (key) {
    case OPT_SEED:
        err = tw_num_i64(arg, 0, INT64_MAX, &a->seed, &why);
        break;
    case OPT_GPUS:
        err = tw_num_i64(arg, 10, 8192, &a->gpus, &why);
        break;
    case OPT_PORT:
        err = tw_num_i64(arg, 0, 65535, &a->port, &why);
        break;
    case OPT_FOR:
        err = tw_num_duration(arg, &a->for_s, &why);
        break;
    case OPT_SPEED:
        err = tw_num_f64(arg, &a->speed, &why);
        break;
    case ARGP_KEY_ARG:
        argp_failure(state, TW_EXIT_USAGE, 0, "\"%s\" is not expected; everything is an option here", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (err != TW_OK)
        tw_ui_bad_option(state, key, &why);
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "The whole system on a simulated site: it learns the jobs, carries out a power event of 30 %, and "
           "shows both on a page."
           "\vSimulated time runs faster than the clock. Every figure is simulated. Example:\n\n  tokwatt demo "
           "--for 60s",
};

static const char *const doing[TW_SITE_STATE_COUNT] = {
    [TW_SITE_LEARN] = "learning what the jobs do uncapped",
    [TW_SITE_READY] = "watching; the five minutes of a baseline",
    [TW_SITE_PROBE] = "probing: short caps, to learn each job's curve",
    [TW_SITE_RAMP] = "event: power falls to 70 %",
    [TW_SITE_HOLD] = "event: power is held",
    [TW_SITE_RELEASE] = "event over: power returns",
    [TW_SITE_STOP] = "leaving",
};

static void draw(struct demo *d, const struct tw_snapshot *s)
{
    int64_t now = tw_boot_us();
    if (now - d->drawn_us < REDRAW_US)
        return;
    d->drawn_us = now;
    tw_ui_progress(isnan(d->args.for_s) ? -1.0 : 1e-6 * (double)(now - d->start_us) / d->args.for_s,
                   "%5.0f s simulated  %6.2f kW of %6.2f  %s", s->now_s, 1e-3 * s->power_w,
                   1e-3 * (isnan(s->budget_w) ? s->cap_sum_w : s->budget_w), doing[d->state]);
}

static bool turned(void *ctx, struct tw_run *run, const char *url)
{
    struct demo *d = ctx;
    const struct tw_snapshot *s = tw_run_snapshot(run);
    if (d->start_us == 0) {
        d->start_us = tw_boot_us();
        (void)snprintf(d->url, sizeof d->url, "%s", url);
        printf("page: %s   (simulated site, %.3g simulated seconds per second%s)\n", url, d->args.speed,
               isnan(d->args.for_s) ? "; Ctrl-C ends it" : "");
        (void)fflush(stdout);
    }
    enum tw_site_state state = tw_ctl_state(tw_run_loop(run, TW_STEER_CURVE)->ctl);
    if (state != d->state || s->seq == 1) {
        tw_ui_progress_done();
        printf("%6.0f s  %s\n", s->now_s, doing[state]);
        (void)fflush(stdout);
    }
    d->state = state;
    if (!d->asked && tw_run_is_rested(run)) {
        struct tw_ctl_ask ask = {0.3, 300.0, 0.0, (double)NAN};
        uint32_t id;
        d->asked =
            tw_run_event_add(run, &ask, &id, NULL) == TW_OK; /* somebody else's event may run: later, then */
    }
    d->result = *tw_run_result(run);
    d->skill30 = s->skill_mean30;
    d->skill60 = s->skill_mean60;
    d->probe_lost = tw_ctl_probe_lost(tw_run_loop(run, TW_STEER_CURVE)->ctl, &d->probe_s);
    draw(d, s);
    return !isnan(d->args.for_s) && 1e-6 * (double)(tw_boot_us() - d->start_us) >= d->args.for_s;
}

static void number(const char *name, double value, const char *unit, const char *note)
{
    if (isnan(value))
        printf("  %-18s not known yet (simulated)%s\n", name, note);
    else
        printf("  %-18s %.*f%s (simulated)%s\n", name, fabs(value) < 100.0 ? 2 : 0, value, unit, note);
}

static void summary(const struct demo *d)
{
    const struct tw_run_result *r = &d->result;
    const struct tw_ctl_event *e = &r->detail[TW_STEER_CURVE];
    tw_ui_progress_done();
    if (r->event == 0) {
        puts("\nThe event had not begun when the demo ended; give it more time (--for) or speed (--speed).");
    } else {
        printf("\nEvent of 30 %% on %lld simulated GPUs: from %.0f W to %.0f W%s\n", (long long)d->args.gpus,
               e->baseline_w, e->target_w, r->over ? "" : ", not over yet");
        if (e->means > 0)
            printf("  ten-second means of site power: %.2f to %.2f %% of the target, %u of %u outside 98 to "
                   "100 %% (simulated)\n",
                   100.0 * e->min_frac, 100.0 * e->max_frac, e->means_out, e->means);
    }
    number("forecast skill", d->skill30, "", ", mean of 30 s against the better of last value and 60 s mean");
    number("gap recovered", r->gap_recovered, "", ", of what an oracle saves over equal weight");
    number("tokens saved", r->saved, "", ", weighted: one token of a 70B model counts 1");
    number("probing cost", d->probe_lost, "",
           ", weighted as well; paid once, before the event, and not in the above");
    printf("page: %s\n", d->url);
}

int cmd_demo(int argc, char **argv)
{
    struct demo d = {.args = {.seed = 1, .gpus = 64, .port = 9477, .for_s = (double)NAN, .speed = (double)NAN}};
    int status = tw_ui_parse(&argp, argc, argv, &d.args);
    if (status != 0)
        return status;
    if (!isnan(d.args.for_s) && !(d.args.for_s >= 1.0))
        return tw_ui_error("--for %g s is too short", d.args.for_s);
    if (isnan(d.args.speed))
        d.args.speed = isnan(d.args.for_s)
                           ? SPEED_DEFAULT
                           : fmin(500.0, fmax(SPEED_DEFAULT, STORY_S / (STORY_PART * d.args.for_s)));
    if (!(d.args.speed >= 0.1 && d.args.speed <= 1000.0))
        return tw_ui_error("--speed %g: 0.1 to 1000 is possible", d.args.speed);
    tw_log_level_set(TW_LOG_WARN);
    d.result.gap_recovered = d.result.saved = d.skill30 = d.skill60 = (double)NAN;
    (void)snprintf(d.source, sizeof d.source, "sim:seed=%lld,gpus=%lld", (long long)d.args.seed,
                   (long long)d.args.gpus);
    (void)snprintf(d.listen, sizeof d.listen, "127.0.0.1:%lld", (long long)d.args.port);
    struct serve_conf conf = {.run = {.source = d.source, .ctl = tw_ctl_conf_default(), .speed = d.args.speed},
                              .listen = d.listen,
                              .speed = d.args.speed,
                              .turned = turned,
                              .ctx = &d};
    conf.run.twin[TW_STEER_EQUAL] = conf.run.twin[TW_STEER_ORACLE] = conf.run.twin[TW_STEER_NONE] = true;
    int signal = 0;
    bool left = false;
    struct tw_why why = {""};
    if (serve_site(&conf, &signal, &left, &why) != TW_OK)
        return tw_ui_error("%s", why.text);
    summary(&d);
    return left ? TW_EXIT_BAD : TW_EXIT_OK;
}
