/* SPDX-License-Identifier: Apache-2.0 */
/* Measured jobs: read a file of points, choose, put relative to the uncapped reference, fit. */
#include "tokwatt/jobs.h"

#include "base/arena.h"
#include "sys/file.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)4 << 30)
#define NAMES_SHOWN 240
#define TOPS_MAX 256 /* sets and boards that are compared; beyond that the warning is left out */

enum { OPT_SETS = 2000, OPT_DROP, OPT_JOB, OPT_AGGREGATE };

static const struct argp_option options[] = {
    {"sets", OPT_SETS, "NAME,...", 0, "only these sets", 0},
    {"drop", OPT_DROP, "JOB,...", 0, "without these jobs", 0},
    {"job", OPT_JOB, "JOB,...", 0, "only these jobs, which must be usable", 0},
    {"aggregate", OPT_AGGREGATE, "mean|top10", 0,
     "repeats of a setting: their mean (default), or the mean of the highest tenth", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct jobs_choice *c = state->input;
    switch (key) {
    case OPT_SETS:
        c->sets = arg;
        return 0;
    case OPT_DROP:
        c->drop = arg;
        return 0;
    case OPT_JOB:
        c->only = arg;
        return 0;
    case OPT_AGGREGATE:
        if (strcmp(arg, "mean") != 0 && strcmp(arg, "top10") != 0)
            argp_failure(state, TW_EXIT_USAGE, 0, "--aggregate is \"%s\", expected mean or top10", arg);
        c->aggregate = strcmp(arg, "top10") == 0 ? TW_POINTS_TOP10 : TW_POINTS_MEAN;
        return 0;
    case ARGP_KEY_ARG:
        if (c->path)
            argp_failure(state, TW_EXIT_USAGE, 0, "one file is read, not two: \"%s\" and \"%s\"", c->path, arg);
        c->path = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp jobs_argp = {.options = options, .parser = parse};

/* --- names -------------------------------------------------------------------------------------------------
 */

/* The next name of a comma list; false at its end. */
static bool next_name(const char **list, const char **ret_name, size_t *ret_n)
{
    if (!*list || **list == '\0')
        return false;
    *ret_name = *list;
    *ret_n = strcspn(*list, ",");
    *list += *ret_n + ((*list)[*ret_n] == ',');
    return true;
}

static bool same(const char *name, size_t n, const char *text, size_t text_n)
{
    return n == text_n && strncmp(name, text, n) == 0;
}

static bool names_job(const char *name, size_t n, const struct tw_points_job *j)
{
    size_t whole = strlen(j->job), base = isnan(j->second) ? whole : (size_t)(strrchr(j->job, '@') - j->job);
    return same(name, n, j->job, whole) || same(name, n, j->job, base);
}

static bool names_set(const char *name, size_t n, const struct tw_points_job *j)
{
    return same(name, n, j->set, strlen(j->set));
}

typedef bool (*names_fn)(const char *name, size_t n, const struct tw_points_job *j);

static bool listed(const char *list, names_fn names, const struct tw_points_job *j)
{
    const char *name;
    size_t n;
    while (next_name(&list, &name, &n))
        if (names(name, n, j))
            return true;
    return false;
}

static const char *name_of(const struct tw_points_job *j, bool set)
{
    return set ? j->set : j->job;
}

/* The distinct sets, or jobs, for a person who misspelt one; as many as fit. */
static void show_known(const struct tw_points *p, bool sets, char *buf, size_t size)
{
    size_t used = 0;
    (void)snprintf(buf, size, "none");
    for (size_t i = 0; i < p->n_jobs; i++) {
        const char *text = name_of(&p->job[i], sets);
        size_t k = 0;
        while (k < i && strcmp(text, name_of(&p->job[k], sets)) != 0)
            k++;
        if (k < i || *text == '\0')
            continue;
        int n = snprintf(buf + used, size - used, "%s%s", used ? ", " : "", text);
        if (n < 0 || (size_t)n >= size - used) {
            (void)snprintf(buf + used, size - used, "%s", used + 6 < size ? ", ..." : "");
            return;
        }
        used += (size_t)n;
    }
}

/* Every name of a list must be in the file: a misspelt one would silently choose something else. */
static int check_names(const struct jobs_choice *c, const struct tw_points *p, const char *list,
                       const char *option, names_fn names)
{
    const char *name;
    char known[NAMES_SHOWN];
    size_t n;
    if (list && *list == '\0')
        return tw_ui_error("--%s is empty, expected names separated by commas", option);
    while (next_name(&list, &name, &n)) {
        bool found = false;
        for (size_t i = 0; i < p->n_jobs && !found; i++)
            found = names(name, n, &p->job[i]);
        if (found)
            continue;
        show_known(p, names == names_set, known, sizeof known);
        return tw_ui_error("%s: no %s \"%.*s\"; there are %s", c->path, names == names_set ? "set" : "job",
                           (int)n, name, known);
    }
    return TW_EXIT_OK;
}

/* --- reading -----------------------------------------------------------------------------------------------
 */

static void prepare(struct measured_job *m, struct tw_arena *a)
{
    const struct tw_points_job *s = m->src;
    size_t n = s->n - 1;
    double *power = TW_ARENA_ARRAY(a, double, n), *rate = TW_ARENA_ARRAY(a, double, n);
    double *x = TW_ARENA_ARRAY(a, double, n), *t = TW_ARENA_ARRAY(a, double, n);
    double *mx = TW_ARENA_ARRAY(a, double, n + 1), *mt = TW_ARENA_ARRAY(a, double, n + 1);
    uint32_t *line = TW_ARENA_ARRAY(a, uint32_t, n);
    m->p0_w = s->point[0].power_w;
    m->t0 = s->point[0].throughput;
    m->n = n;
    for (size_t i = 0; i < n; i++) {
        power[i] = s->point[i + 1].power_w;
        rate[i] = s->point[i + 1].throughput;
        x[i] = power[i] / m->p0_w;
        t[i] = rate[i] / m->t0;
        line[i] = s->point[i + 1].line;
    }
    m->power_w = power;
    m->rate = rate;
    m->x = x;
    m->t = t;
    m->line = line;
    m->measured = (struct tw_measured){mx, mt, tw_measured_sort(x, t, n, mx, mt)};
    if (n == 0) {
        m->reason = "one usable point, at least two are needed";
        return;
    }
    m->best = tw_fit_best(x, t, n, &m->exp);
    if (isnan(m->best.rmse)) /* the curve would be our expectation alone, and read as this job's */
        m->reason = "no cap lowers the job's power, so nothing says what a cut costs it";
}

static size_t arrays_bytes(const struct tw_points *p)
{
    size_t bytes = tw_arena_need(p->n_jobs, sizeof(struct measured_job)) + TW_ARENA_ALIGN;
    for (size_t i = 0; i < p->n_jobs; i++)
        bytes += 7 * tw_arena_need(p->job[i].n + 1, sizeof(double));
    return bytes;
}

/* The largest setting of each set and board, for a warning where a job's own is smaller. */
struct tops {
    const struct tw_points_job *of[TOPS_MAX];
    size_t n;
};

static bool same_board(const struct tw_points_job *a, const struct tw_points_job *b)
{
    return strcmp(a->set, b->set) == 0 && strcmp(a->gpu, b->gpu) == 0;
}

/* The job of its set and board with the largest setting; itself when the table is full or it has no set. */
static const struct tw_points_job *top_of(struct tops *t, const struct tw_points_job *j, bool add)
{
    for (size_t k = 0; k < t->n; k++) {
        if (!same_board(t->of[k], j))
            continue;
        if (add && j->point[0].setting > t->of[k]->point[0].setting)
            t->of[k] = j;
        return t->of[k];
    }
    if (add && t->n < TOPS_MAX && *j->set != '\0')
        t->of[t->n++] = j;
    return j;
}

static int choose(const struct jobs_choice *c, struct jobs *ret, struct tw_arena *a)
{
    struct tops tops = {.n = 0};
    for (size_t i = 0; i < ret->points.n_jobs; i++)
        (void)top_of(&tops, &ret->points.job[i], true);
    for (size_t i = 0; i < ret->points.n_jobs; i++) {
        const struct tw_points_job *j = &ret->points.job[i];
        bool by_name = c->only && listed(c->only, names_job, j);
        if ((c->sets && !listed(c->sets, names_set, j)) || (c->only && !by_name) ||
            (c->drop && listed(c->drop, names_job, j)))
            continue;
        struct measured_job *m = &ret->job[ret->n++];
        *m = (struct measured_job){.src = j};
        m->below_others = top_of(&tops, j, false)->point[0].setting > j->point[0].setting;
        prepare(m, a);
        if (by_name && m->reason)
            return tw_ui_error("%s:%u: job \"%s\": %s", c->path, j->line, j->job, m->reason);
    }
    if (ret->n == 0)
        return tw_ui_error("%s: no job is left after --sets, --job and --drop", c->path);
    return TW_EXIT_OK;
}

static int read_points(const struct jobs_choice *c, struct jobs *ret)
{
    struct tw_why why = {""};
    size_t n;
    struct tw_arena a;
    if (tw_file_read(c->path, FILE_MAX_BYTES, &ret->text, &n, &why) != TW_OK)
        return tw_ui_error("%s", why.text);
    size_t bytes = tw_points_bytes(ret->text, n);
    ret->memory = malloc(bytes);
    if (!ret->memory)
        return tw_ui_error("%s: not enough memory to read %zu bytes", c->path, n);
    tw_arena_init(&a, ret->memory, bytes);
    if (tw_points_read(ret->text, n, c->aggregate, &a, &ret->points, &why) != TW_OK)
        return tw_ui_error("%s: %s", c->path, why.text);
    free(ret->text);
    ret->text = NULL;
    return TW_EXIT_OK;
}

int jobs_read(const struct jobs_choice *choice, struct jobs *ret)
{
    *ret = (struct jobs){.n = 0};
    if (!choice->path)
        return tw_ui_error("a file of measured points is missing; --help says how it is written");
    int rc = read_points(choice, ret);
    if (rc == TW_EXIT_OK)
        rc = check_names(choice, &ret->points, choice->sets, "sets", names_set);
    if (rc == TW_EXIT_OK)
        rc = check_names(choice, &ret->points, choice->drop, "drop", names_job);
    if (rc == TW_EXIT_OK)
        rc = check_names(choice, &ret->points, choice->only, "job", names_job);
    if (rc == TW_EXIT_OK) {
        size_t bytes = arrays_bytes(&ret->points);
        struct tw_arena a;
        ret->arrays = malloc(bytes);
        if (!ret->arrays)
            return tw_ui_error("%s: not enough memory for %zu jobs", choice->path, ret->points.n_jobs);
        tw_arena_init(&a, ret->arrays, bytes);
        ret->job = TW_ARENA_ARRAY(&a, struct measured_job, ret->points.n_jobs);
        rc = choose(choice, ret, &a);
    }
    return rc;
}

void jobs_done(struct jobs *j)
{
    free(j->text);
    free(j->memory);
    free(j->arrays);
    *j = (struct jobs){.n = 0};
}

const char *jobs_noise(const struct measured_job *j, size_t i)
{
    if (j->t[i] > 1.0)
        return "throughput above the uncapped point";
    if (i > 0 && j->t[i] > j->t[i - 1])
        return "throughput above that of a larger setting";
    return NULL;
}
