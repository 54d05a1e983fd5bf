/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt doctor: what this machine can do, and what stands in the way. Nothing is changed. */
#include "tokwatt/cmd.h"
#include "tokwatt/look.h"
#include "tokwatt/ui.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA "tokwatt.doctor/1"
#define CHECKS_MAX 32

/* A fault makes the exit status 1; a warning is worth reading; absent is nothing wrong. */
#define VERDICT_MAP(X) X(OK, "ok") X(ABSENT, "absent") X(WARN, "warn") X(FAULT, "fault")

enum verdict {
#define VERDICT_ENUM(id, name) VERDICT_##id,
    VERDICT_MAP(VERDICT_ENUM)
#undef VERDICT_ENUM
};
static const char *const verdict_name[] = {
#define VERDICT_NAME(id, name) name,
    VERDICT_MAP(VERDICT_NAME)
#undef VERDICT_NAME
};

struct check {
    const char *name;
    enum verdict verdict;
    char text[400];
};

struct report {
    struct check check[CHECKS_MAX];
    size_t n;
};

struct args {
    const char *source;
    bool json;
};

enum { OPT_JSON = 1000 };

static const struct argp_option options[] = {
    {"source", 's', "SOURCE", 0, "the source to look at, NAME or NAME:SPEC (default nvml)", 0},
    {"json", OPT_JSON, NULL, 0, "report as JSON", 0},
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
    .doc = "Say what this machine can do and what stands in the way: driver, permissions, limits, sources. "
           "Nothing is "
           "changed. The exit status is 1 when a fault was found."
           "\vExample:\n\n"
           "  tokwatt doctor\n"
           "  tokwatt doctor --source sim --json",
};

static void TW_PRINTF(4, 5) say(struct report *r, const char *name, enum verdict verdict, const char *fmt, ...)
{
    if (r->n == CHECKS_MAX)
        return;
    struct check *c = &r->check[r->n++];
    c->name = name;
    c->verdict = verdict;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(c->text, sizeof c->text, fmt, ap);
    va_end(ap);
}

/* ---- what holds for any source ---- */

static void check_readings(struct report *r, const struct look *l)
{
    size_t fresh = 0, power = 0, instant = 0, activity = 0;
    for (size_t i = 0; i < l->n; i++) {
        const float *ch = l->gpu[i].ch;
        fresh += l->gpu[i].fresh ? 1U : 0U;
        power += isfinite(ch[TW_CH_POWER_W]) ? 1U : 0U;
        instant += isfinite(ch[TW_CH_POWER_INSTANT_W]) ? 1U : 0U;
        activity += isfinite(ch[TW_CH_SM_ACTIVE_FRAC]) ? 1U : 0U;
    }
    size_t all = l->n + l->driver.missing_gpus;
    say(r, "gpus", fresh == all ? VERDICT_OK : VERDICT_FAULT, "%zu of %zu GPUs are read", fresh, all);
    for (size_t i = 0; i < l->n; i++)
        if (!l->gpu[i].fresh || (l->nvml && l->nv[i].state != TW_NVML_OK))
            say(r, "gpu", VERDICT_FAULT, "%s: %s%s%s", l->info[i].uuid, look_state(l, i),
                l->nvml && l->nv[i].note[0] ? ": " : "", l->nvml ? l->nv[i].note : "");
    say(r, "power", power == l->n ? VERDICT_OK : VERDICT_FAULT,
        "power of %zu of %zu GPUs, instant power of %zu", power, l->n, instant);
    say(r, "activity", activity == l->n ? VERDICT_OK : VERDICT_ABSENT,
        "activity of multiprocessors, tensor pipes and memory of %zu of %zu GPUs%s", activity, l->n,
        activity == l->n ? "" : " (GPM needs Hopper or later and MIG off; dcgm-exporter can give the rest)");
}

static void check_limits(struct report *r, const struct look *l)
{
    size_t known = 0;
    for (size_t i = 0; i < l->n; i++)
        known += isfinite(l->info[i].limit_min_w) && isfinite(l->info[i].limit_max_w) ? 1U : 0U;
    if (known == l->n)
        say(r, "limits", VERDICT_OK, "all %zu GPUs say which power limits they accept", l->n);
    else
        say(r, "limits", VERDICT_WARN, "%zu of %zu GPUs accept no power limit and are only watched",
            l->n - known, l->n);
    if (!l->dev.cap_ops)
        say(r, "writing", VERDICT_ABSENT, "this source only reads");
    else if (l->nvml && geteuid() != 0)
        say(r, "writing", VERDICT_ABSENT, "limits are written by root: tokwatt-capd does that for all others");
    else
        say(r, "writing", VERDICT_OK, "limits can be written from here");
}

/* ---- what holds for NVML ---- */

static void check_nvml(struct report *r, const struct look *l)
{
    size_t off = 0, mig = 0, held_idle = 0, xid = 0;
    double cost = 0.0, worst = 0.0;
    for (size_t i = 0; i < l->n; i++) {
        const struct tw_nvml_info *nv = &l->nv[i];
        off += nv->persistence == 0 ? 1U : 0U;
        mig += nv->mig == 1 ? 1U : 0U;
        xid += nv->xids ? 1U : 0U;
        held_idle += nv->n_pid > 0 && l->gpu[i].ch[TW_CH_UTIL_FRAC] < 0.01F ? 1U : 0U;
        cost += nv->cost_frac;
        worst = fmax(worst, nv->cost_frac);
    }
    if (off)
        say(r, "persistence", VERDICT_WARN,
            "persistence mode is off on %zu GPUs: limits are lost when the last program leaves the driver "
            "(enable "
            "nvidia-persistenced)",
            off);
    else
        say(r, "persistence", VERDICT_OK, "persistence mode is on");
    if (mig)
        say(r, "mig", VERDICT_WARN, "MIG is on on %zu GPUs: power is the board's, utilisation is unknown", mig);
    if (held_idle)
        say(r, "held", VERDICT_WARN, "%zu GPUs are held by a process and idle", held_idle);
    if (xid)
        say(r, "xid", VERDICT_WARN, "Xid errors on %zu GPUs while we looked", xid);
    say(r, "cost", VERDICT_OK, "reading takes %.3f s of NVML a second over all GPUs, %.3f s on the slowest",
        cost, worst);
}

static void check_device_files(struct report *r)
{
    static const char path[] = "/dev/nvidiactl";
    if (access(path, F_OK) != 0)
        say(r, "device files", VERDICT_ABSENT, "there is no %s", path);
    else if (access(path, R_OK | W_OK) != 0)
        say(r, "device files", VERDICT_FAULT, "%s: %s", path, strerror(errno));
    else
        say(r, "device files", VERDICT_OK, "%s can be opened", path);
}

/* ---- the machine ---- */

static void check_machine(struct report *r)
{
    static const char rapl[] = "/sys/class/powercap/intel-rapl:0/energy_uj";
    if (access(rapl, F_OK) != 0)
        say(r, "rapl", VERDICT_ABSENT, "no energy counter of the processor in /sys/class/powercap");
    else if (access(rapl, R_OK) != 0)
        say(r, "rapl", VERDICT_ABSENT, "%s: %s", rapl, strerror(errno));
    else
        say(r, "rapl", VERDICT_OK, "the processor's energy counter can be read");
}

static int json(const struct report *r, const struct look *l, int status)
{
    struct tw_jsonw w;
    tw_ui_json(&w);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", SCHEMA);
    tw_jsonw_bool(&w, "healthy", status == TW_EXIT_OK);
    tw_jsonw_array(&w, "checks");
    for (size_t i = 0; i < r->n; i++) {
        tw_jsonw_object(&w, NULL);
        tw_jsonw_str(&w, "name", r->check[i].name);
        tw_jsonw_str(&w, "verdict", verdict_name[r->check[i].verdict]);
        tw_jsonw_str(&w, "text", r->check[i].text);
        tw_jsonw_end(&w);
    }
    tw_jsonw_end(&w);
    tw_jsonw_array(&w, "sources");
    for (size_t i = 0; i < tw_backend_count; i++) {
        tw_jsonw_object(&w, NULL);
        tw_jsonw_str(&w, "name", tw_backend_table[i].source->name);
        tw_jsonw_str(&w, "help", tw_backend_table[i].source->help);
        tw_jsonw_bool(&w, "writes_limits", tw_backend_table[i].cap != NULL);
        tw_jsonw_end(&w);
    }
    tw_jsonw_end(&w);
    look_json(l, &w, "gpus");
    tw_jsonw_end(&w);
    return tw_ui_json_done(&w, status);
}

int cmd_doctor(int argc, char **argv)
{
    struct args a = {.source = "nvml"};
    int bad = tw_ui_parse(&argp, argc, argv, &a);
    if (bad)
        return bad;
    struct report r = {.n = 0};
    struct look l = {.source = a.source};
    struct tw_why why = {""};
    enum tw_err err = look_open(a.source, &l, &why);
    if (err == TW_EINVAL)
        return tw_ui_error("%s", why.text);
    say(&r, "source", err == TW_OK ? VERDICT_OK : VERDICT_FAULT, "%s: %s", a.source,
        err != TW_OK  ? why.text
        : l.nvml      ? l.driver.path
        : l.simulated ? "simulated"
                      : "open");
    if (l.nvml)
        say(&r, "driver", VERDICT_OK, "driver %s, NVML %s, CUDA %d.%d", l.driver.driver, l.driver.nvml,
            l.driver.cuda / 1000, l.driver.cuda % 1000 / 10);
    if (strncmp(a.source, "nvml", 4) == 0)
        check_device_files(&r);
    if (err == TW_OK) {
        check_readings(&r, &l);
        check_limits(&r, &l);
    }
    if (l.nvml)
        check_nvml(&r, &l);
    check_machine(&r);
    int status = TW_EXIT_OK;
    for (size_t i = 0; i < r.n; i++) {
        if (r.check[i].verdict == VERDICT_FAULT)
            status = TW_EXIT_BAD;
        if (!a.json)
            printf("%-6s %-13s %s\n", verdict_name[r.check[i].verdict], r.check[i].name, r.check[i].text);
    }
    if (a.json)
        status = json(&r, &l, status);
    look_close(&l);
    return status;
}
