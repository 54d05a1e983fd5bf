/* SPDX-License-Identifier: Apache-2.0 */
/* tokwattd: the daemon. Reads a source once a second, keeps the site to its budgets, serves page and API. */
#include "api/api.h"
#include "base/num.h"
#include "serve/serve.h"
#include "sys/log.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_DONE = 0, EXIT_BAD = 1, EXIT_UNUSABLE = 2 };

struct args {
    struct serve_conf serve;
    bool check, no_twins, control;
};

enum { OPT_SPEED = 1000, OPT_CHECK, OPT_ONCE, OPT_NO_TWINS, OPT_CONTROL, OPT_LIMIT, OPT_QUIET };

static const struct argp_option options[] = {
    {"source", 's', "SOURCE", 0, "what to read, NAME or NAME:SPEC (default sim)", 0},
    {"listen", 'l', "ADDRESS", 0, "page and API (default " TW_API_LISTEN "); \"none\" for none", 0},
    {"speed", OPT_SPEED, "N", 0, "simulated seconds per second (default 1)", 0},
    {"limit", OPT_LIMIT, "POWER", 0, "hard limit of the site, never passed by a raise", 0},
    {"control", OPT_CONTROL, NULL, 0,
     "write limits on a source that is not simulated; without it they are only watched", 0},
    {"no-twins", OPT_NO_TWINS, NULL, 0, "no second site under equal weight to compare with", 0},
    {"check", OPT_CHECK, NULL, 0, "open everything, say what was found, and exit", 0},
    {"once", OPT_ONCE, NULL, 0, "take one turn and exit", 0},
    {"quiet", OPT_QUIET, NULL, 0, "log errors and warnings only", 0},
    {0},
};

static void refuse(struct argp_state *state, const char *option, const struct tw_why *why)
{
    argp_failure(state, EXIT_UNUSABLE, 0, "--%s: %s", option, why->text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct tw_why why = {""};
    switch (key) {
    case 's':
        a->serve.run.source = arg;
        return 0;
    case 'l':
        a->serve.listen = strcmp(arg, "none") == 0 ? NULL : arg;
        return 0;
    case OPT_SPEED:
        if (tw_num_f64(arg, &a->serve.speed, &why) != TW_OK)
            refuse(state, "speed", &why);
        return 0;
    case OPT_LIMIT:
        if (tw_num_power(arg, &a->serve.run.ctl.hard_limit_w, &why) != TW_OK)
            refuse(state, "limit", &why);
        return 0;
    case OPT_CONTROL:
        a->control = true;
        return 0;
    case OPT_NO_TWINS:
        a->no_twins = true;
        return 0;
    case OPT_CHECK:
        a->check = true;
        return 0;
    case OPT_ONCE:
        a->serve.once = true;
        return 0;
    case OPT_QUIET:
        tw_log_level_set(TW_LOG_WARN);
        return 0;
    case ARGP_KEY_ARG:
        argp_failure(state, EXIT_UNUSABLE, 0, "\"%s\" is not expected; everything is an option here", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc =
        "Watch the GPUs of a site, keep it to its power budgets, serve page and API."
        "\vSIGTERM puts every limit back and ends it. Example, a simulated site at twenty times the clock:\n\n"
        "  tokwattd --source sim:seed=1 --speed 20",
};

static void trace(void *ctx, double now_s, const char *text)
{
    (void)ctx;
    tw_log(TW_LOG_INFO, "%.0f s: %s", now_s, text);
}

/* Is the source simulated, and how large? Decides what may be done with it. */
static enum tw_err look(struct args *a, bool *ret_simulated, struct tw_why *why)
{
    struct tw_device device;
    enum tw_err err = tw_device_open(a->serve.run.source, &device, why);
    if (err != TW_OK)
        return err;
    const struct tw_gpu_info *gpu;
    const struct tw_job_info *job;
    size_t n_gpu = 0, n_job = 0;
    err = device.source_ops->describe(device.source, &gpu, &n_gpu, &job, &n_job, why);
    *ret_simulated = device.source_ops->advance != NULL;
    bool writes = device.cap != NULL;
    tw_device_close(&device);
    if (err != TW_OK)
        return err;
    if (n_gpu == 0)
        return tw_fail(why, TW_ENODATA, "%s has no GPUs", a->serve.run.source);
    if (a->control && !writes)
        return tw_fail(why, TW_EUNSUPPORTED, "--control: limits cannot be written on %s", a->serve.run.source);
    if (!*ret_simulated && a->serve.speed != 1.0)
        return tw_fail(why, TW_EINVAL, "--speed %g: only simulated time can run faster", a->serve.speed);
    tw_log(TW_LOG_INFO, "%s: %zu %sGPUs, %zu jobs, limits %s", a->serve.run.source, n_gpu,
           *ret_simulated ? "simulated " : "", n_job,
           *ret_simulated || a->control ? "are written" : "are only watched");
    return TW_OK;
}

static bool say_page(void *ctx, struct tw_run *run, const char *url)
{
    (void)run;
    bool *said = ctx;
    if (!*said && *url)
        tw_log(TW_LOG_INFO, "page at %s", url);
    *said = true;
    return false;
}

int main(int argc, char **argv)
{
    bool said = false;
    struct args a = {.serve = {.run = {.source = "sim", .ctl = tw_ctl_conf_default()},
                               .listen = TW_API_LISTEN,
                               .speed = 1.0,
                               .turned = say_page,
                               .ctx = &said}};
    a.serve.run.ctl.trace = trace;
    argp_err_exit_status = EXIT_UNUSABLE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return EXIT_UNUSABLE;
    struct tw_why why = {""};
    enum tw_err err = TW_OK;
    if (!(a.serve.speed >= 0.01 && a.serve.speed <= 1000.0))
        err = tw_fail(&why, TW_ERANGE, "--speed %g: 0.01 to 1000 is possible", a.serve.speed);
    bool simulated = false;
    if (err == TW_OK)
        err = look(&a, &simulated, &why);
    if (err == TW_OK && !a.check) {
        if (!simulated && !a.control)
            a.serve.run.ctl.policy = TW_STEER_NONE;
        a.serve.run.twin[TW_STEER_EQUAL] = a.serve.run.twin[TW_STEER_ORACLE] = a.serve.run.twin[TW_STEER_NONE] =
            simulated && !a.no_twins;
        a.serve.run.speed = a.serve.speed;
        int signal = 0;
        bool left = false;
        err = serve_site(&a.serve, &signal, &left, &why);
        if (err == TW_OK && left)
            return EXIT_BAD;
        if (err == TW_OK)
            tw_log(TW_LOG_INFO, "limits are as they were found; done");
    }
    if (err == TW_OK)
        return EXIT_DONE;
    (void)fprintf(stderr, "tokwattd: %s\n", why.text);
    return EXIT_UNUSABLE;
}
