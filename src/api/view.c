/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots as JSON. */
#include "api/view.h"
#include "base/jsonw.h"
#include "sys/clock.h"

enum { DIGITS = 6 }; /* a watt of a megawatt; what a page or a script can use */

static void num(struct tw_jsonw *w, const char *key, double value)
{
    tw_jsonw_num(w, key, value, DIGITS);
}

static void seconds(struct tw_jsonw *w, const char *key, double value)
{
    tw_jsonw_num(w, key, value, 12); /* a boot clock runs for years */
}

static void wall(struct tw_jsonw *w, const char *key, int64_t wall_us)
{
    char text[32];
    tw_jsonw_str(w, key, tw_wall_show(wall_us, text, sizeof text));
}

static void band(struct tw_jsonw *w, const char *key, const struct tw_snap_band *b)
{
    tw_jsonw_object(w, key);
    num(w, "low_w", (double)b->low_w);
    num(w, "mid_w", (double)b->mid_w);
    num(w, "high_w", (double)b->high_w);
    tw_jsonw_end(w);
}

static const char *reason_name(enum tw_reason r)
{
    return (unsigned)r < TW_REASON_COUNT ? tw_reason_name[r] : NULL;
}

static const char *state_name(enum tw_event_state s)
{
    return (unsigned)s < TW_EVENT_COUNT ? tw_event_name[s] : NULL;
}

/* --- pieces that the snapshot and the tick share --- */

static void head(struct tw_jsonw *w, const struct tw_snapshot *s, const char *run)
{
    tw_jsonw_str(w, "run", run);
    tw_jsonw_i64(w, "seq", (int64_t)s->seq);
    wall(w, "time", s->wall_us);
    seconds(w, "now_s", s->now_s);
    tw_jsonw_bool(w, "simulated", s->simulated);
    num(w, "speed", s->speed);
}

static void site(struct tw_jsonw *w, const struct tw_snapshot *s)
{
    tw_jsonw_object(w, "site");
    num(w, "power_w", s->power_w);
    num(w, "cap_sum_w", s->cap_sum_w);
    num(w, "budget_w", s->budget_w);
    num(w, "skill_mean30", s->skill_mean30);
    num(w, "skill_mean60", s->skill_mean60);
    num(w, "gap_recovered", s->gap_recovered);
    num(w, "tokens_saved", s->tokens_saved);
    tw_jsonw_i64(w, "gpus", (int64_t)s->n_gpu);
    tw_jsonw_i64(w, "jobs", (int64_t)s->n_job);
    tw_jsonw_i64(w, "stale_gpus", s->stale_gpus);
    tw_jsonw_end(w);
}

static void event(struct tw_jsonw *w, const struct tw_snap_event *e)
{
    tw_jsonw_object(w, "event");
    tw_jsonw_str(w, "state", state_name(e->state));
    if (e->state != TW_EVENT_NONE) {
        num(w, "cut_frac", e->cut_frac);
        seconds(w, "start_s", e->start_s);
        seconds(w, "end_s", e->end_s);
        num(w, "baseline_w", e->baseline_w);
        num(w, "target_w", e->target_w);
        num(w, "hold10_min_frac", e->hold10_min_frac);
        num(w, "hold10_max_frac", e->hold10_max_frac);
        num(w, "tokens_lost", e->tokens_lost);
        num(w, "tokens_lost_equal", e->tokens_lost_equal);
        num(w, "tokens_lost_oracle", e->tokens_lost_oracle);
    }
    tw_jsonw_end(w);
}

static void path(struct tw_jsonw *w, const struct tw_snapshot *s)
{
    tw_jsonw_array(w, "path");
    for (int i = 0; i < TW_SNAP_LEADS; i++) {
        tw_jsonw_object(w, NULL);
        tw_jsonw_i64(w, "lead_s", 5 * (i + 1));
        num(w, "low_w", (double)s->path[i].low_w);
        num(w, "mid_w", (double)s->path[i].mid_w);
        num(w, "high_w", (double)s->path[i].high_w);
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
}

static void job_numbers(struct tw_jsonw *w, const struct tw_snap_job *j)
{
    num(w, "power_w", j->power_w);
    num(w, "cap_w", j->cap_w);
    num(w, "p0_w", j->p0_w);
    num(w, "t0", j->t0);
    num(w, "throughput", j->throughput);
    num(w, "pfi", j->pfi);
    num(w, "pfi_low", j->pfi_low);
    num(w, "pfi_high", j->pfi_high);
    num(w, "lost_units", j->lost_units);
    tw_jsonw_str(w, "reason", reason_name(j->reason));
}

/* A value that changes when names or curves do: the page then fetches the snapshot again. FNV-1a. */
static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
    for (const unsigned char *p = bytes, *end = p + n; p < end; p++)
        h = (h ^ *p) * 1099511628211u;
    return h;
}

static uint32_t revision(const struct tw_snapshot *s)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < s->n_gpu; i++) {
        h = mix(h, s->gpu[i].uuid, strnlen(s->gpu[i].uuid, sizeof s->gpu[i].uuid));
        h = mix(h, &s->gpu[i].job, sizeof s->gpu[i].job);
    }
    for (size_t i = 0; i < s->n_job; i++) {
        const struct tw_snap_job *j = &s->job[i];
        h = mix(h, j->name, strnlen(j->name, sizeof j->name));
        h = mix(h, &j->n_points, sizeof j->n_points);
        h = mix(h, &j->curve_k, sizeof j->curve_k);
        h = mix(h, &j->curve_x0, sizeof j->curve_x0);
        h = mix(h, &j->p0_w, sizeof j->p0_w);
    }
    return (uint32_t)(h ^ h >> 32);
}

/* --- whole answers --- */

static void job_whole(struct tw_jsonw *w, const struct tw_snap_job *j)
{
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "name", j->name);
    tw_jsonw_str(w, "unit", j->unit);
    tw_jsonw_i64(w, "gpus", j->n_gpu);
    job_numbers(w, j);
    tw_jsonw_object(w, "curve");
    num(w, "k", j->curve_k);
    num(w, "x0", j->curve_x0);
    num(w, "rmse", j->curve_rmse);
    tw_jsonw_end(w);
    tw_jsonw_array(w, "points");
    for (uint32_t i = 0; i < j->n_points && i < TW_SNAP_POINTS; i++) {
        tw_jsonw_object(w, NULL);
        num(w, "power_frac", (double)j->point[i].x);
        num(w, "throughput_frac", (double)j->point[i].t);
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
    tw_jsonw_end(w);
}

static void gpu_whole(struct tw_jsonw *w, const struct tw_snapshot *s, const struct tw_snap_gpu *g)
{
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "uuid", g->uuid);
    tw_jsonw_str(w, "node", g->node);
    if (g->job < s->n_job)
        tw_jsonw_i64(w, "job", g->job);
    else
        tw_jsonw_null(w, "job");
    num(w, "power_w", (double)g->power_w);
    num(w, "cap_w", (double)g->cap_w);
    num(w, "enforced_w", (double)g->enforced_w);
    band(w, "mean30", &g->mean30);
    band(w, "mean60", &g->mean60);
    tw_jsonw_str(w, "reason", reason_name(g->reason));
    tw_jsonw_end(w);
}

void tw_view_snapshot(struct tw_buf *out, const struct tw_snap_copy *snap, const char *run, double age_s)
{
    const struct tw_snapshot *s = &snap->s;
    struct tw_jsonw w;
    tw_jsonw_init(&w, tw_buf_sink, out, false);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", "tokwatt.snapshot/1");
    head(&w, s, run);
    tw_jsonw_num(&w, "age_s", age_s, 3);
    tw_jsonw_i64(&w, "rev", revision(s));
    site(&w, s);
    path(&w, s);
    event(&w, &s->event);
    tw_jsonw_object(&w, "reasons"); /* the words for each name */
    for (unsigned i = 0; i < TW_REASON_COUNT; i++)
        tw_jsonw_str(&w, tw_reason_name[i], tw_reason_text[i]);
    tw_jsonw_end(&w);
    tw_jsonw_array(&w, "jobs");
    for (size_t i = 0; i < s->n_job; i++)
        job_whole(&w, &s->job[i]);
    tw_jsonw_end(&w);
    tw_jsonw_array(&w, "gpus");
    for (size_t i = 0; i < s->n_gpu; i++)
        gpu_whole(&w, s, &s->gpu[i]);
    tw_jsonw_end(&w);
    tw_jsonw_end(&w);
}

static double point_value(const struct tw_point *p, int column)
{
    switch (column) {
    case 0:
        return p->t_s;
    case 1:
        return p->power_w;
    case 2:
        return p->budget_w;
    case 3:
        return (double)p->ahead.low_w;
    case 4:
        return (double)p->ahead.mid_w;
    default:
        return (double)p->ahead.high_w;
    }
}

static void points(struct tw_jsonw *w, const struct tw_point *point, size_t n)
{
    static const char *const column[] = {"t_s", "power_w", "budget_w", "low_w", "mid_w", "high_w"};
    for (int c = 0; c < (int)(sizeof column / sizeof *column); c++) {
        tw_jsonw_array(w, column[c]);
        for (size_t i = 0; i < n; i++)
            tw_jsonw_num(w, NULL, point_value(&point[i], c), c == 0 ? 12 : DIGITS);
        tw_jsonw_end(w);
    }
}

void tw_view_history(struct tw_buf *out, const char *run, const struct tw_point *point, size_t n)
{
    struct tw_jsonw w;
    tw_jsonw_init(&w, tw_buf_sink, out, false);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", "tokwatt.history/1");
    tw_jsonw_str(&w, "run", run);
    if (n > 0)
        tw_jsonw_i64(&w, "seq", (int64_t)point[n - 1].seq);
    else
        tw_jsonw_null(&w, "seq");
    tw_jsonw_i64(&w, "lead_s", TW_LATEST_LEAD_S);
    points(&w, point, n);
    tw_jsonw_end(&w);
}

void tw_view_tick(struct tw_buf *out, const struct tw_snap_copy *snap, const char *run, uint64_t after,
                  const struct tw_point *point, size_t n)
{
    const struct tw_snapshot *s = &snap->s;
    struct tw_jsonw w;
    (void)tw_buf_printf(out, "event: tick\nid: %llu\ndata: ", (unsigned long long)s->seq);
    tw_jsonw_init(&w, tw_buf_sink, out, false);
    tw_jsonw_object(&w, NULL);
    head(&w, s, run);
    tw_jsonw_i64(&w, "rev", revision(s));
    site(&w, s);
    path(&w, s);
    event(&w, &s->event);
    tw_jsonw_object(&w, "points");
    tw_jsonw_i64(&w, "after", (int64_t)after);
    points(&w, point, n);
    tw_jsonw_end(&w);
    tw_jsonw_array(&w, "jobs");
    for (size_t i = 0; i < s->n_job; i++) {
        tw_jsonw_object(&w, NULL);
        job_numbers(&w, &s->job[i]);
        tw_jsonw_end(&w);
    }
    tw_jsonw_end(&w);
    tw_jsonw_array(&w, "gpus"); /* rows of power, cap, enforced, mean 30, mean 60 in watts, reason */
    for (size_t i = 0; i < s->n_gpu; i++) {
        const struct tw_snap_gpu *g = &s->gpu[i];
        const float value[] = {g->power_w, g->cap_w, g->enforced_w, g->mean30.mid_w, g->mean60.mid_w};
        tw_jsonw_array(&w, NULL);
        for (size_t v = 0; v < sizeof value / sizeof *value; v++)
            tw_jsonw_num(&w, NULL, (double)value[v], 4);
        tw_jsonw_str(&w, NULL, reason_name(g->reason));
        tw_jsonw_end(&w);
    }
    tw_jsonw_end(&w);
    tw_jsonw_end(&w); /* which writes a newline */
    (void)tw_buf_puts(out, "\n");
}

void tw_view_events(struct tw_buf *out, const struct tw_api_event *list, size_t n)
{
    struct tw_jsonw w;
    tw_jsonw_init(&w, tw_buf_sink, out, false);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", "tokwatt.events/1");
    tw_jsonw_array(&w, "events");
    for (size_t i = 0; i < n; i++) {
        tw_jsonw_object(&w, NULL);
        tw_jsonw_i64(&w, "id", list[i].id);
        tw_jsonw_str(&w, "state", state_name(list[i].state));
        tw_jsonw_bool(&w, "cancelled", list[i].cancelled);
        num(&w, "cut_frac", list[i].cut_frac);
        seconds(&w, "start_s", list[i].start_s);
        seconds(&w, "end_s", list[i].end_s);
        num(&w, "baseline_w", list[i].baseline_w);
        num(&w, "target_w", list[i].target_w);
        tw_jsonw_end(&w);
    }
    tw_jsonw_end(&w);
    tw_jsonw_end(&w);
}

void tw_view_ready(struct tw_buf *out, bool ready, size_t n_gpu, size_t stale, const char *text)
{
    struct tw_jsonw w;
    tw_jsonw_init(&w, tw_buf_sink, out, false);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", "tokwatt.ready/1");
    tw_jsonw_bool(&w, "ready", ready);
    tw_jsonw_i64(&w, "gpus", (int64_t)n_gpu);
    tw_jsonw_i64(&w, "stale_gpus", (int64_t)stale);
    tw_jsonw_str(&w, "text", text);
    tw_jsonw_end(&w);
}
