/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics text. */
#include "api/promtext.h"
#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct out {
    struct tw_buf *buf;
    bool openmetrics;
    const char *name; /* of the family whose samples follow */
    bool is_counter;
};

/* Both dialects agree but for counters: OpenMetrics names the family without _total. */
static void family(struct out *o, const char *name, bool is_counter, const char *help)
{
    const char *suffix = is_counter && !o->openmetrics ? "_total" : "";
    o->name = name;
    o->is_counter = is_counter;
    (void)tw_buf_printf(o->buf, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
                        is_counter ? "counter" : "gauge");
}

/* One sample; labels is what stands between the braces, "" for none. Unknown is left out. */
static void sample(struct out *o, const char *labels, double value)
{
    if (!isfinite(value))
        return;
    (void)tw_buf_printf(o->buf, labels[0] ? "%s%s{%s} %.9g\n" : "%s%s%s %.9g\n", o->name,
                        o->is_counter ? "_total" : "", labels, value);
}

static void single(struct out *o, const char *name, const char *help, double value)
{
    if (!isfinite(value))
        return;
    family(o, name, false, help);
    sample(o, "", value);
}

/* The label value `text` into buf: backslash, quote and newline escaped, bytes that are not UTF-8 replaced; cut
 * between characters at the buffer's end. */
static const char *escaped(const char *text, char *buf, size_t room)
{
    size_t n = 0;
    while (*text && n + 5 < room) {
        size_t len = tw_utf8_len((const unsigned char *)text);
        if (*text == '\\' || *text == '"' || *text == '\n')
            buf[n++] = '\\';
        if (len == 0)
            buf[n++] = '?';
        else if (*text == '\n')
            buf[n++] = 'n';
        else
            for (size_t i = 0; i < len; i++)
                buf[n++] = text[i];
        text += len ? len : 1;
    }
    buf[n] = '\0';
    return buf;
}

static void about_self(struct out *o, const struct tw_promtext_own *own)
{
    family(o, "tokwatt_build_info", false, "Version of the daemon; the value is 1.");
    sample(o, "version=\"" TW_VERSION "\"", 1);
    family(o, "tokwatt_http_requests", true, "HTTP requests received.");
    sample(o, "", (double)own->requests);
    family(o, "tokwatt_http_requests_refused", true, "HTTP requests refused by a rule or a ceiling.");
    sample(o, "", (double)own->refused);
    single(o, "tokwatt_http_streams", "Readers of the live stream now.", own->streams);
}

static const char *const level_text[3] = {"0.1", "0.5", "0.9"};

static double level_of(const struct tw_snap_band *b, int level)
{
    return (double)(level == 0 ? b->low_w : level == 1 ? b->mid_w : b->high_w);
}

static void site(struct out *o, const struct tw_snapshot *s)
{
    char labels[96];
    family(o, "tokwatt_turns", true, "Turns of the control loop.");
    sample(o, "", (double)s->seq);
    single(o, "tokwatt_simulated", "1 when the site is simulated.", s->simulated);
    single(o, "tokwatt_site_speed_ratio", "Site seconds per second of the clock; above 1 only in simulation.",
           s->speed);
    single(o, "tokwatt_site_time_seconds", "Site time since the site was opened.", s->now_s);
    single(o, "tokwatt_site_power_watts", "Power of the site.", s->power_w);
    single(o, "tokwatt_site_cap_watts", "Sum of the caps of all GPUs.", s->cap_sum_w);
    single(o, "tokwatt_site_budget_watts", "Budget in force; absent when there is none.", s->budget_w);
    single(o, "tokwatt_site_gpus", "GPUs of the site.", (double)s->n_gpu);
    single(o, "tokwatt_site_stale_gpus", "GPUs without a fresh reading.", s->stale_gpus);
    family(o, "tokwatt_site_forecast_power_watts", false,
           "Forecast of the site's power at a lead time, by quantile level.");
    for (int i = 0; i < TW_SNAP_LEADS; i++)
        for (int l = 0; l < 3; l++) {
            (void)snprintf(labels, sizeof labels, "horizon_seconds=\"%d\",level=\"%s\"", 5 * (i + 1),
                           level_text[l]);
            sample(o, labels, level_of(&s->path[i], l));
        }
    family(
        o, "tokwatt_forecast_skill_ratio", false,
        "1 - error / error of the better of last value and 60 s mean, of the forecast mean over the horizon.");
    sample(o, "horizon_seconds=\"30\"", s->skill_mean30);
    sample(o, "horizon_seconds=\"60\"", s->skill_mean60);
    single(o, "tokwatt_gap_recovered_ratio",
           "Share of the gap between equal weight and oracle recovered in the last event.", s->gap_recovered);
    single(o, "tokwatt_event_tokens_saved", "Weighted units saved against equal weight in the last event.",
           s->tokens_saved);
}

static void event(struct out *o, const struct tw_snap_event *e)
{
    char labels[64];
    family(o, "tokwatt_event_state", false, "State of the power event: 1 for the state that holds.");
    for (unsigned i = 0; i < TW_EVENT_COUNT; i++) {
        (void)snprintf(labels, sizeof labels, "state=\"%s\"", tw_event_name[i]);
        sample(o, labels, i == (unsigned)e->state);
    }
    if (e->state == TW_EVENT_NONE)
        return;
    single(o, "tokwatt_event_cut_ratio", "Cut asked for, as a share of the baseline.", e->cut_frac);
    single(o, "tokwatt_event_baseline_watts", "Mean power before the event.", e->baseline_w);
    single(o, "tokwatt_event_target_watts", "Power asked for.", e->target_w);
    family(o, "tokwatt_event_tokens_lost", false, "Weighted units lost since the event began, by policy.");
    sample(o, "policy=\"ours\"", e->tokens_lost);
    sample(o, "policy=\"equal\"", e->tokens_lost_equal);
    sample(o, "policy=\"oracle\"", e->tokens_lost_oracle);
}

/* --- per GPU --- */

static double gpu_power(const struct tw_snap_gpu *g)
{
    return (double)g->power_w;
}
static double gpu_cap(const struct tw_snap_gpu *g)
{
    return (double)g->cap_w;
}
static double gpu_enforced(const struct tw_snap_gpu *g)
{
    return (double)g->enforced_w;
}

static const struct {
    const char *name, *help;
    double (*value)(const struct tw_snap_gpu *g);
} gpu_family[] = {
    {"tokwatt_gpu_power_watts", "Power of the GPU as reported.", gpu_power},
    {"tokwatt_gpu_cap_watts", "Power cap asked for.", gpu_cap},
    {"tokwatt_gpu_cap_enforced_watts", "Power cap that the device enforces, read back.", gpu_enforced},
};

static void gpus(struct out *o, const struct tw_snapshot *s)
{
    char uuid[104], node[104], job[136], labels[416];
    family(o, "tokwatt_gpu_info", false, "Where a GPU is and what runs on it; the value is 1.");
    for (size_t i = 0; i < s->n_gpu; i++) {
        const struct tw_snap_gpu *g = &s->gpu[i];
        (void)snprintf(labels, sizeof labels, "gpu_uuid=\"%s\",node=\"%s\",job_name=\"%s\"",
                       escaped(g->uuid, uuid, sizeof uuid), escaped(g->node, node, sizeof node),
                       escaped(g->job < s->n_job ? s->job[g->job].name : "", job, sizeof job));
        sample(o, labels, 1);
    }
    for (size_t f = 0; f < sizeof gpu_family / sizeof *gpu_family; f++) {
        family(o, gpu_family[f].name, false, gpu_family[f].help);
        for (size_t i = 0; i < s->n_gpu; i++) {
            (void)snprintf(labels, sizeof labels, "gpu_uuid=\"%s\"",
                           escaped(s->gpu[i].uuid, uuid, sizeof uuid));
            sample(o, labels, gpu_family[f].value(&s->gpu[i]));
        }
    }
    family(o, "tokwatt_forecast_power_watts", false,
           "Forecast of the GPU's mean power over the horizon, by quantile level.");
    for (size_t i = 0; i < s->n_gpu; i++) {
        const struct tw_snap_gpu *g = &s->gpu[i];
        (void)escaped(g->uuid, uuid, sizeof uuid);
        for (int h = 30; h <= 60; h += 30)
            for (int l = 0; l < 3; l++) {
                (void)snprintf(labels, sizeof labels, "gpu_uuid=\"%s\",horizon_seconds=\"%d\",level=\"%s\"",
                               uuid, h, level_text[l]);
                sample(o, labels, level_of(h == 30 ? &g->mean30 : &g->mean60, l));
            }
    }
}

/* --- per job --- */

static double job_power(const struct tw_snap_job *j)
{
    return j->power_w;
}
static double job_cap(const struct tw_snap_job *j)
{
    return j->cap_w;
}
static double job_reference(const struct tw_snap_job *j)
{
    return j->p0_w;
}
static double job_gpus(const struct tw_snap_job *j)
{
    return j->n_gpu;
}
static double job_rate(const struct tw_snap_job *j)
{
    return j->throughput;
}
static double job_rate_reference(const struct tw_snap_job *j)
{
    return j->t0;
}
static double job_pfi(const struct tw_snap_job *j)
{
    return j->pfi;
}
static double job_pfi_low(const struct tw_snap_job *j)
{
    return j->pfi_low;
}
static double job_pfi_high(const struct tw_snap_job *j)
{
    return j->pfi_high;
}
static double job_lost(const struct tw_snap_job *j)
{
    return j->lost_units;
}

static const struct {
    const char *name, *help;
    double (*value)(const struct tw_snap_job *j);
    bool has_unit; /* a rate or amount of the job's own unit: carries the label unit */
} job_family[] = {
    {"tokwatt_job_power_watts", "Power of the job's GPUs.", job_power, false},
    {"tokwatt_job_cap_watts", "Sum of the caps of the job's GPUs.", job_cap, false},
    {"tokwatt_job_reference_power_watts", "Power of the job without a cap.", job_reference, false},
    {"tokwatt_job_gpus", "GPUs of the job.", job_gpus, false},
    {"tokwatt_job_throughput", "Work per second now, in the unit named.", job_rate, true},
    {"tokwatt_job_reference_throughput", "Work per second without a cap, in the unit named.",
     job_rate_reference, true},
    {"tokwatt_job_pfi_ratio", "Power flexibility index as learnt so far.", job_pfi, false},
    {"tokwatt_job_pfi_low_ratio", "Lower end of the 90 % interval of the power flexibility index.", job_pfi_low,
     false},
    {"tokwatt_job_pfi_high_ratio", "Upper end of the 90 % interval of the power flexibility index.",
     job_pfi_high, false},
    {"tokwatt_job_lost_units", "Work lost against the uncapped reference since the event began.", job_lost,
     false},
};

static void jobs(struct out *o, const struct tw_snapshot *s)
{
    char name[136], unit[56], labels[288];
    for (size_t f = 0; f < sizeof job_family / sizeof *job_family; f++) {
        family(o, job_family[f].name, false, job_family[f].help);
        for (size_t i = 0; i < s->n_job; i++) {
            const struct tw_snap_job *j = &s->job[i];
            (void)escaped(j->name, name, sizeof name);
            if (job_family[f].has_unit)
                (void)snprintf(labels, sizeof labels, "job_name=\"%s\",unit=\"%s\"", name,
                               escaped(j->unit, unit, sizeof unit));
            else
                (void)snprintf(labels, sizeof labels, "job_name=\"%s\"", name);
            sample(o, labels, job_family[f].value(j));
        }
    }
}

void tw_promtext(struct tw_buf *out, const struct tw_snap_copy *snap, const struct tw_promtext_own *own,
                 bool openmetrics)
{
    struct out o = {.buf = out, .openmetrics = openmetrics};
    about_self(&o, own);
    if (snap) {
        single(&o, "tokwatt_snapshot_age_seconds", "Age of what these metrics say.", own->age_s);
        site(&o, &snap->s);
        event(&o, &snap->s.event);
        gpus(&o, &snap->s);
        jobs(&o, &snap->s);
    }
    if (openmetrics)
        (void)tw_buf_puts(out, "# EOF\n");
}

bool tw_promtext_wants_openmetrics(const char *accept)
{
    return accept && strstr(accept, "application/openmetrics-text") != NULL;
}

const char *tw_promtext_type(bool openmetrics)
{
    return openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                       : "text/plain; version=0.0.4; charset=utf-8";
}
