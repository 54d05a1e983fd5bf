/* SPDX-License-Identifier: Apache-2.0 */
/* The site file through libcyaml, then what a schema cannot say: names that must exist, once, and numbers that
 * must make sense. */
#include "conf/sitefile.h"

#include "base/arena.h"
#include "base/num.h"
#include "sys/file.h"

#include <cyaml/cyaml.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 256, POINTS_MAX = 512, DEPTH_MAX = 31 };

/* --- schema ------------------------------------------------------------------------------------------------
 * Numbers are taken as texts: the library would read "900 kW" as 900. */

#define NEEDED CYAML_FLAG_POINTER
#define MAY_LACK (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(key, flags, type, member) CYAML_FIELD_STRING_PTR(key, flags, type, member, 1, NAME_MAX_BYTES)

static const cyaml_schema_value_t number = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 64)};
static const cyaml_schema_value_t point = {CYAML_VALUE_SEQUENCE_FIXED(CYAML_FLAG_POINTER, char *, &number, 2)};

static const cyaml_schema_field_t node_fields[] = {
    TEXT("name", NEEDED, struct tw_site_node, name), TEXT("parent", MAY_LACK, struct tw_site_node, parent),
    TEXT("limit_w", MAY_LACK, struct tw_site_node, limit), CYAML_FIELD_END};
static const cyaml_schema_value_t node_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct tw_site_node, node_fields)};

static const cyaml_schema_field_t gpu_fields[] = {TEXT("uuid", NEEDED, struct tw_site_gpu, uuid),
                                                  TEXT("node", NEEDED, struct tw_site_gpu, node),
                                                  TEXT("floor_w", NEEDED, struct tw_site_gpu, floor),
                                                  TEXT("ceiling_w", NEEDED, struct tw_site_gpu, ceiling),
                                                  TEXT("step_w", MAY_LACK, struct tw_site_gpu, step),
                                                  TEXT("p0_w", MAY_LACK, struct tw_site_gpu, p0),
                                                  CYAML_FIELD_END};
static const cyaml_schema_value_t gpu_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct tw_site_gpu, gpu_fields)};

static const cyaml_schema_field_t curve_fields[] = {
    CYAML_FIELD_SEQUENCE_COUNT("points", MAY_LACK, struct tw_site_curve, points, n_points, &point, 1,
                               POINTS_MAX),
    TEXT("k", MAY_LACK, struct tw_site_curve, k_text), TEXT("x0", MAY_LACK, struct tw_site_curve, x0_text),
    CYAML_FIELD_END};

static const cyaml_schema_field_t sla_fields[] = {TEXT("slowdown_frac", NEEDED, struct tw_site_sla, slowdown),
                                                  TEXT("horizon", NEEDED, struct tw_site_sla, horizon),
                                                  TEXT("event", NEEDED, struct tw_site_sla, event),
                                                  CYAML_FIELD_END};

static const cyaml_schema_field_t job_fields[] = {
    TEXT("name", NEEDED, struct tw_site_job, name),
    TEXT("unit", MAY_LACK, struct tw_site_job, unit),
    CYAML_FIELD_SEQUENCE_COUNT("gpus", NEEDED, struct tw_site_job, gpus, n_gpus, &gpu_value, 0, TW_SITE_GPUS),
    TEXT("p0_w", NEEDED, struct tw_site_job, p0),
    TEXT("t0", NEEDED, struct tw_site_job, t0_text),
    TEXT("weight", MAY_LACK, struct tw_site_job, weight_text),
    CYAML_FIELD_MAPPING_PTR("curve", MAY_LACK, struct tw_site_job, curve, curve_fields),
    CYAML_FIELD_MAPPING_PTR("sla", MAY_LACK, struct tw_site_job, sla, sla_fields),
    CYAML_FIELD_BOOL_PTR("lockstep", MAY_LACK, struct tw_site_job, lockstep),
    CYAML_FIELD_BOOL_PTR("pausable", MAY_LACK, struct tw_site_job, pausable),
    CYAML_FIELD_END};
static const cyaml_schema_value_t job_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct tw_site_job, job_fields)};

static const cyaml_schema_field_t load_fields[] = {TEXT("node", NEEDED, struct tw_site_load, node),
                                                   TEXT("watts", NEEDED, struct tw_site_load, text),
                                                   CYAML_FIELD_END};
static const cyaml_schema_value_t load_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct tw_site_load, load_fields)};

static const cyaml_schema_field_t file_fields[] = {
    CYAML_FIELD_SEQUENCE_COUNT("tree", MAY_LACK, struct tw_site_file, tree, n_tree, &node_value, 0,
                               TW_SITE_GPUS),
    CYAML_FIELD_SEQUENCE_COUNT("jobs", NEEDED, struct tw_site_file, jobs, n_jobs, &job_value, 0, TW_SITE_GPUS),
    CYAML_FIELD_SEQUENCE_COUNT("base_load", MAY_LACK, struct tw_site_file, base_load, n_base_load, &load_value,
                               0, TW_SITE_GPUS),
    CYAML_FIELD_END};
static const cyaml_schema_value_t file_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct tw_site_file, file_fields)};

/* --- what the library says when it refuses ---------------------------------------------------------------- */

/* The library's log: first what is wrong, then the way back to the top, innermost first. */
struct trace {
    char what[160];
    char path[256]; /* built from the inside out */
    unsigned line, steps;
    bool in_trace;
};

static void put_before(struct trace *t, const char *step)
{
    char rest[sizeof t->path];
    (void)snprintf(rest, sizeof rest, "%s", t->path);
    (void)snprintf(t->path, sizeof t->path, "%.120s%.120s", step, rest);
}

static void read_step(struct trace *t, const char *text)
{
    char name[NAME_MAX_BYTES] = ".";
    unsigned n, line;
    const char *at = strstr(text, "(line: ");
    bool innermost = t->steps++ == 0;
    if (at && t->line == 0 && sscanf(at, "(line: %u", &line) == 1)
        t->line = line;
    if (sscanf(text, " in mapping field '%250[^']'", name + 1) == 1) {
        if (!(innermost &&
              strncmp(t->what, "Missing", 7) == 0)) /* there it names the last field that was not */
            put_before(t, name);
    } else if (sscanf(text, " in sequence entry '%u'", &n) == 1) {
        (void)snprintf(name, sizeof name, "[%u]", n > 0 ? n - 1 : 0);
        put_before(t, name);
    }
}

static void take_log(cyaml_log_t level, void *ctx, const char *fmt, va_list args) TW_PRINTF(3, 0);
static void take_log(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
    struct trace *t = ctx;
    char text[512];
    (void)level;
    (void)vsnprintf(text, sizeof text, fmt, args);
    text[strcspn(text, "\n")] = '\0';
    const char *said = strncmp(text, "Load: ", 6) == 0 ? text + 6 : text;
    if (strncmp(said, "Backtrace", 9) == 0)
        t->in_trace = true;
    else if (t->in_trace)
        read_step(t, text);
    else if (t->what[0] == '\0')
        (void)snprintf(t->what, sizeof t->what, "%.150s", said);
}

static cyaml_config_t config_of(struct trace *t)
{
    return (cyaml_config_t){.log_fn = take_log,
                            .log_ctx = t,
                            .mem_fn = cyaml_mem,
                            .log_level = CYAML_LOG_ERROR,
                            .flags = CYAML_CFG_NO_ALIAS};
}

static enum tw_err load(const char *text, size_t n, struct tw_site_file **ret, struct tw_why *why)
{
    struct trace t = {.line = 0};
    cyaml_config_t config = config_of(&t);
    cyaml_data_t *data = NULL;
    cyaml_err_t rc = cyaml_load_data((const uint8_t *)text, n, &config, &file_value, &data, NULL);
    if (rc == CYAML_OK) {
        *ret = data;
        return TW_OK;
    }
    const char *path = t.path[0] == '.' ? t.path + 1 : t.path;
    return tw_fail(why, rc == CYAML_ERR_OOM ? TW_ENOMEM : TW_EPARSE, "line %u: %s%s%s", t.line, path,
                   *path ? ": " : "", t.what[0] ? t.what : cyaml_strerror(rc));
}

/* --- numbers -----------------------------------------------------------------------------------------------
 */

struct where { /* "jobs[2].gpus[0].", put together when something is wrong */
    const char *list, *inner;
    size_t i, k;
};

static enum tw_err fail_at(const struct where *w, const char *field, struct tw_why *why)
{
    if (w->inner)
        tw_why_prefix(why, "%s[%zu].%s[%zu].%s: ", w->list, w->i, w->inner, w->k, field);
    else
        tw_why_prefix(why, "%s[%zu].%s: ", w->list, w->i, field);
    return TW_EINVAL;
}

/* A bare number in [low, high]; `none` where it was left out. */
static enum tw_err take(const struct where *w, const char *field, const char *text, double low, double high,
                        double none, double *ret, struct tw_why *why)
{
    if (!text) {
        *ret = none;
        return TW_OK;
    }
    if (tw_num_f64(text, ret, why) != TW_OK)
        return fail_at(w, field, why);
    if (*ret >= low && *ret <= high)
        return TW_OK;
    (void)tw_fail(why, TW_EINVAL, "%s is outside %g to %g", text, low, high);
    return fail_at(w, field, why);
}

static enum tw_err take_duration(const struct where *w, const char *field, const char *text, double *ret,
                                 struct tw_why *why)
{
    enum tw_err err = tw_num_duration(text, ret, why);
    if (err == TW_OK && !(*ret > 0.0))
        err = tw_fail(why, TW_EINVAL, "%s, expected more than 0", text);
    return err == TW_OK ? TW_OK : fail_at(w, field, why);
}

#define MOST 1e12   /* watts, and anything else that is not a share */
#define LEAST 1e-12 /* of what must be above 0 */

static enum tw_err take_gpu(const struct where *w, const struct tw_site_job *j, struct tw_site_gpu *g,
                            struct tw_why *why)
{
    enum tw_err err = take(w, "floor_w", g->floor, 0.0, MOST, 0.0, &g->floor_w, why);
    if (err == TW_OK)
        err = take(w, "ceiling_w", g->ceiling, LEAST, MOST, 0.0, &g->ceiling_w, why);
    if (err == TW_OK)
        err = take(w, "step_w", g->step, 0.0, MOST, 0.0, &g->step_w, why);
    if (err == TW_OK)
        err = take(w, "p0_w", g->p0, LEAST, MOST, j->p0_w / j->n_gpus, &g->p0_w, why);
    if (err == TW_OK && !(g->floor_w <= g->ceiling_w)) {
        (void)tw_fail(why, TW_EINVAL, "%g W is above its ceiling_w of %g W", g->floor_w, g->ceiling_w);
        err = fail_at(w, "floor_w", why);
    }
    return err;
}

static enum tw_err take_curve(const struct where *w, struct tw_site_curve *c, struct tw_arena *arena,
                              struct tw_why *why)
{
    bool points = c->n_points > 0, form = c->k_text && c->x0_text;
    if (points == form || (!form && (c->k_text || c->x0_text))) {
        (void)tw_fail(why, TW_EINVAL, "either points, or k and x0 together");
        return fail_at(w, "curve", why);
    }
    enum tw_err err = take(w, "curve.k", c->k_text, 0.01, 60.0, (double)NAN, &c->k, why);
    if (err == TW_OK)
        err = take(w, "curve.x0", c->x0_text, -1000.0, 0.999, (double)NAN, &c->x0, why);
    if (err != TW_OK || !points)
        return err;
    c->x = TW_ARENA_ARRAY(arena, double, c->n_points);
    c->t = TW_ARENA_ARRAY(arena, double, c->n_points);
    if (!(c->x && c->t))
        return tw_fail(why, TW_ENOMEM, "not enough memory");
    for (unsigned i = 0; i < c->n_points && err == TW_OK; i++) {
        err = take(w, "curve.points", c->points[i][0], LEAST, 1.5, 0.0, &c->x[i], why);
        if (err == TW_OK)
            err = take(w, "curve.points", c->points[i][1], 0.0, 1.5, 0.0, &c->t[i], why);
    }
    return err;
}

static enum tw_err take_job(const struct tw_site_file *f, unsigned i, struct tw_arena *arena,
                            struct tw_why *why)
{
    struct tw_site_job *j = &f->jobs[i];
    struct where w = {.list = "jobs", .i = i};
    double parts = 0.0;
    bool some = false, all = true;
    if (j->n_gpus == 0) {
        (void)tw_fail(why, TW_EINVAL, "job \"%s\" is on no GPU", j->name);
        return fail_at(&w, "gpus", why);
    }
    enum tw_err err = take(&w, "p0_w", j->p0, LEAST, MOST, 0.0, &j->p0_w, why);
    if (err == TW_OK)
        err = take(&w, "t0", j->t0_text, LEAST, MOST, 0.0, &j->t0, why);
    if (err == TW_OK)
        err = take(&w, "weight", j->weight_text, LEAST, MOST, 1.0, &j->weight, why);
    if (err == TW_OK && j->curve)
        err = take_curve(&w, j->curve, arena, why);
    if (err == TW_OK && j->sla)
        err = take(&w, "sla.slowdown_frac", j->sla->slowdown, 0.0, 1.0, 0.0, &j->sla->slowdown_frac, why);
    if (err == TW_OK && j->sla)
        err = take_duration(&w, "sla.horizon", j->sla->horizon, &j->sla->horizon_s, why);
    if (err == TW_OK && j->sla)
        err = take_duration(&w, "sla.event", j->sla->event, &j->sla->event_s, why);
    if (err == TW_OK &&
        strcmp(j->unit ? j->unit : "tokens/s", f->jobs[0].unit ? f->jobs[0].unit : "tokens/s") != 0) {
        (void)tw_fail(why, TW_EINVAL,
                      "%s beside %s of jobs[0]: one job's number cannot be added to the other's",
                      j->unit ? j->unit : "tokens/s", f->jobs[0].unit ? f->jobs[0].unit : "tokens/s");
        err = fail_at(&w, "unit", why);
    }
    w.inner = "gpus";
    for (w.k = 0; w.k < j->n_gpus && err == TW_OK; w.k++) {
        err = take_gpu(&w, j, &j->gpus[w.k], why);
        parts += j->gpus[w.k].p0_w;
        some = some || j->gpus[w.k].p0;
        all = all && j->gpus[w.k].p0;
    }
    w.inner = NULL;
    if (err == TW_OK && some && !(all && fabs(parts - j->p0_w) <= 0.01 * j->p0_w)) {
        (void)tw_fail(why, TW_EINVAL, "%g W, and its GPUs' p0_w are %s %g W", j->p0_w,
                      all ? "together" : "not all given, together", parts);
        err = fail_at(&w, "p0_w", why);
    }
    return err;
}

/* --- names -------------------------------------------------------------------------------------------------
 */

struct named {
    const char *name;
    uint32_t at; /* of its list, in the order of the file */
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->at < y->at ? -1 : 1;
}

static int name_only(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static uint32_t find(const struct named *list, size_t n, const char *name)
{
    struct named key = {name, 0};
    const struct named *hit = n ? bsearch(&key, list, n, sizeof *list, name_only) : NULL;
    return hit ? hit->at : UINT32_MAX;
}

/* Places in an order in which parents come first: a node is placed once its parent is. place_of [n_tree + 1],
 * the last for a root that the file leaves to us. */
static enum tw_err place_nodes(struct tw_site *s, const struct named *names, uint32_t *place_of,
                               uint32_t *depth_next, struct tw_why *why)
{
    const struct tw_site_file *f = s->file;
    uint32_t n = f->n_tree, root = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        place_of[i] = UINT32_MAX;
        if (f->tree[i].parent)
            continue;
        if (root != UINT32_MAX)
            return tw_fail(why, TW_EINVAL, "tree[%u].parent: missing, and tree[%u] \"%s\" is the root already",
                           i, root, f->tree[root].name);
        root = i;
    }
    s->place[0] = (struct tw_site_place){.name = root == UINT32_MAX ? "site" : f->tree[root].name,
                                         .limit_w = root == UINT32_MAX || isnan(f->tree[root].limit_w)
                                                        ? (double)INFINITY
                                                        : f->tree[root].limit_w};
    s->n_places = 1;
    if (root != UINT32_MAX)
        place_of[root] = 0;
    for (uint32_t i = 0; i < n; i++) { /* walk up to what is placed, then down again */
        uint32_t at = i, steps = 0;
        while (at != UINT32_MAX && place_of[at] == UINT32_MAX) {
            if (steps > n || steps >= DEPTH_MAX)
                return tw_fail(why, TW_EINVAL,
                               "tree[%u].parent: \"%s\" goes round in a circle, or is deeper than %d", i,
                               f->tree[i].parent, DEPTH_MAX);
            depth_next[steps++] = at;
            uint32_t up = find(names, n, f->tree[at].parent);
            if (up == UINT32_MAX && !(root == UINT32_MAX && strcmp(f->tree[at].parent, "site") == 0))
                return tw_fail(why, TW_EINVAL, "tree[%u].parent: there is no node \"%s\"", at,
                               f->tree[at].parent);
            at = up;
        }
        uint32_t parent = at == UINT32_MAX ? 0 : place_of[at];
        while (steps-- > 0) {
            const struct tw_site_node *node = &f->tree[depth_next[steps]];
            s->place[s->n_places] =
                (struct tw_site_place){.name = node->name,
                                       .parent = parent,
                                       .limit_w = isnan(node->limit_w) ? (double)INFINITY : node->limit_w};
            parent = place_of[depth_next[steps]] = s->n_places++;
        }
    }
    return TW_OK;
}

static uint32_t place_find(const struct tw_site *s, const struct named *names, const uint32_t *place_of,
                           const char *name)
{
    uint32_t at = find(names, s->file->n_tree, name);
    return at != UINT32_MAX ? place_of[at] : strcmp(name, s->place[0].name) == 0 ? 0 : UINT32_MAX;
}

static enum tw_err sort_names(struct named *list, uint32_t n, const char *what, struct tw_why *why)
{
    if (n)
        qsort(list, n, sizeof *list, by_name);
    for (uint32_t i = 1; i < n; i++)
        if (strcmp(list[i - 1].name, list[i].name) == 0)
            return tw_fail(why, TW_EINVAL, "%s[%u].name: \"%s\" is also the name of %s[%u]", what, list[i].at,
                           list[i].name, what, list[i - 1].at);
    return TW_OK;
}

/* A GPU is in one job. */
static enum tw_err check_uuids(const struct tw_site *s, struct named *list, struct tw_why *why)
{
    const struct tw_site_file *f = s->file;
    uint32_t at = 0;
    for (unsigned j = 0; j < f->n_jobs; j++)
        for (unsigned k = 0; k < f->jobs[j].n_gpus; k++, at++)
            list[at] = (struct named){f->jobs[j].gpus[k].uuid, at};
    qsort(list, at, sizeof *list, by_name);
    for (uint32_t i = 1; i < at; i++) {
        if (strcmp(list[i - 1].name, list[i].name) != 0)
            continue;
        uint32_t k = list[i].at, first = list[i - 1].at, j = 0, holder = 0;
        for (; k >= f->jobs[j].n_gpus; j++)
            k -= f->jobs[j].n_gpus;
        for (; first >= f->jobs[holder].n_gpus; holder++)
            first -= f->jobs[holder].n_gpus;
        return tw_fail(why, TW_EINVAL, "jobs[%u].gpus[%u].uuid: %s is in jobs[%u].gpus[%u] already", j, k,
                       list[i].name, holder, first);
    }
    return TW_OK;
}

static enum tw_err place_all(struct tw_site *s, const struct named *names, const uint32_t *place_of,
                             struct tw_why *why)
{
    const struct tw_site_file *f = s->file;
    uint32_t at = 0;
    for (unsigned i = 0; i < f->n_base_load; i++) {
        struct where w = {.list = "base_load", .i = i};
        uint32_t place = place_find(s, names, place_of, f->base_load[i].node);
        enum tw_err err = take(&w, "watts", f->base_load[i].text, 0.0, MOST, 0.0, &f->base_load[i].watts, why);
        if (err != TW_OK)
            return err;
        if (place == UINT32_MAX)
            return tw_fail(why, TW_EINVAL, "base_load[%u].node: there is no node \"%s\"", i,
                           f->base_load[i].node);
        s->place[place].base_w += f->base_load[i].watts;
    }
    for (unsigned j = 0; j < f->n_jobs; j++) {
        for (unsigned k = 0; k < f->jobs[j].n_gpus; k++) {
            uint32_t place = place_find(s, names, place_of, f->jobs[j].gpus[k].node);
            if (place == UINT32_MAX)
                return tw_fail(why, TW_EINVAL, "jobs[%u].gpus[%u].node: there is no node \"%s\"", j, k,
                               f->jobs[j].gpus[k].node);
            s->gpu_place[at++] = place;
        }
    }
    return TW_OK;
}

/* --- reading -----------------------------------------------------------------------------------------------
 */

bool tw_site_is(const char *text, size_t n)
{
    static const char *const keys[] = {"tree", "jobs", "base_load"};
    for (size_t i = 0; i < n;) {
        while (i < n && isspace((unsigned char)text[i]))
            i++;
        if (i < n && (text[i] == '#' || (n - i >= 3 && memcmp(text + i, "---", 3) == 0))) {
            while (i < n && text[i] != '\n')
                i++;
            continue;
        }
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            size_t len = strlen(keys[k]);
            if (n - i > len && memcmp(text + i, keys[k], len) == 0 && text[i + len] == ':')
                return true;
        }
        return false;
    }
    return false;
}

static size_t points_bytes(const struct tw_site_file *f)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < f->n_jobs; i++)
        if (f->jobs[i].curve)
            bytes += 2 * tw_arena_need(f->jobs[i].curve->n_points, sizeof(double));
    return bytes;
}

static enum tw_err take_all(struct tw_site *s, struct tw_arena *arena, struct tw_why *why)
{
    const struct tw_site_file *f = s->file;
    struct named *names = TW_ARENA_ARRAY(arena, struct named, f->n_tree + 1);
    struct named *uuids = TW_ARENA_ARRAY(arena, struct named, s->n_gpus + 1);
    uint32_t *place_of = TW_ARENA_ARRAY(arena, uint32_t, f->n_tree + 1);
    uint32_t *chain = TW_ARENA_ARRAY(arena, uint32_t, f->n_tree + 1);
    s->place = TW_ARENA_ARRAY(arena, struct tw_site_place, f->n_tree + 1);
    s->gpu_place = TW_ARENA_ARRAY(arena, uint32_t, s->n_gpus + 1);
    enum tw_err err = names && uuids && place_of && chain && s->place && s->gpu_place
                          ? TW_OK
                          : tw_fail(why, TW_ENOMEM, "not enough memory");
    for (unsigned i = 0; i < f->n_tree && err == TW_OK; i++) {
        struct where w = {.list = "tree", .i = i};
        err = take(&w, "limit_w", f->tree[i].limit, 0.0, MOST, (double)NAN, &f->tree[i].limit_w, why);
        names[i] = (struct named){f->tree[i].name, i};
    }
    for (unsigned i = 0; i < f->n_jobs && err == TW_OK; i++)
        err = take_job(f, i, arena, why);
    if (err == TW_OK)
        err = sort_names(names, f->n_tree, "tree", why);
    if (err == TW_OK)
        err = place_nodes(s, names, place_of, chain, why);
    if (err == TW_OK)
        err = place_all(s, names, place_of, why);
    return err == TW_OK ? check_uuids(s, uuids, why) : err;
}

static enum tw_err check(struct tw_site *s, struct tw_why *why)
{
    const struct tw_site_file *f = s->file;
    size_t gpus = 0;
    if (!f || f->n_jobs == 0)
        return tw_fail(why, TW_EINVAL, "jobs: there are none");
    for (unsigned i = 0; i < f->n_jobs; i++)
        gpus += f->jobs[i].n_gpus;
    if (gpus > TW_SITE_GPUS)
        return tw_fail(why, TW_ELIMIT, "jobs: %zu GPUs, at most %u are taken", gpus, TW_SITE_GPUS);
    s->n_gpus = (uint32_t)gpus;
    size_t n = (size_t)f->n_tree + 1;
    size_t bytes = tw_arena_need(n, sizeof(struct named)) + tw_arena_need(gpus + 1, sizeof(struct named)) +
                   2 * tw_arena_need(n, sizeof(uint32_t)) + tw_arena_need(n, sizeof(struct tw_site_place)) +
                   tw_arena_need(gpus + 1, sizeof(uint32_t)) + points_bytes(f) + TW_ARENA_ALIGN;
    struct tw_arena arena;
    s->memory = malloc(bytes);
    if (!s->memory)
        return tw_fail(why, TW_ENOMEM, "not enough memory for %zu GPUs", gpus);
    tw_arena_init(&arena, s->memory, bytes);
    return take_all(s, &arena, why);
}

enum tw_err tw_site_open(const char *path, struct tw_site *ret, struct tw_why *why)
{
    struct tw_site s = {.file = NULL};
    char *text = NULL;
    size_t n = 0;
    enum tw_err err = tw_file_read(path, TW_SITE_BYTES, &text, &n, why);
    if (err != TW_OK)
        return err;
    err = load(text, n, &s.file, why);
    free(text);
    if (err == TW_OK)
        err = check(&s, why);
    if (err == TW_OK) {
        *ret = s;
        return TW_OK;
    }
    tw_why_prefix(why, "%s: ", path);
    tw_site_done(&s);
    return err;
}

void tw_site_done(struct tw_site *s)
{
    struct trace t = {.line = 0};
    cyaml_config_t config = config_of(&t);
    if (s->file)
        (void)cyaml_free(&config, &file_value, s->file, 0);
    free(s->memory);
    *s = (struct tw_site){.file = NULL};
}
