/* SPDX-License-Identifier: Apache-2.0 */
/* Known jobs: who is on which board, of which kind and which model. */
#include "tokwatt/known.h"

#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- models ------------------------------------------------------------------------------------------------
 */

/* How a set names its jobs. FAMILY keeps the letters that a name begins with: the names of those sets do not
 * always say the size. SIZED drops the task before a name ("ft_") and what follows its size ("_8b"). */
enum naming { WHOLE, FAMILY, SIZED };

static const struct {
    const char *set; /* beginning of its name */
    int field;       /* of the fields between '|' */
    enum naming naming;
} rules[] = {
    {"zeus_", 1, WHOLE},
    {"ada_", 1, FAMILY},
    {"emerald", 0, SIZED},
    {"", 0, WHOLE},
};

static const char *skip_task(const char *s)
{
    static const char *const tasks[] = {"ft_", "pt_", "infer_"};
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        if (strncmp(s, tasks[i], strlen(tasks[i])) == 0)
            return s + strlen(tasks[i]);
    return s;
}

/* Up to and with the first part between '_' that is digits and a b; all of it when there is none. */
static size_t sized_length(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t end = i, digits = 0;
        while (end < n && s[end] != '_')
            digits += isdigit((unsigned char)s[end++]) != 0;
        if (digits > 0 && digits == end - i - 1 && s[end - 1] == 'b')
            return end;
        i = end + 1;
    }
    return n;
}

void known_model(const char *set, const char *job, char *buf, size_t size)
{
    size_t r = 0;
    while (strncmp(set, rules[r].set, strlen(rules[r].set)) != 0)
        r++;
    for (int f = 0; f < rules[r].field && strchr(job, '|'); f++)
        job = strchr(job, '|') + 1;
    if (rules[r].naming == SIZED)
        job = skip_task(job);
    size_t n = strcspn(job, "|@");
    if (rules[r].naming == SIZED)
        n = sized_length(job, n);
    for (size_t i = 0; rules[r].naming == FAMILY && i < n; i++)
        if (!isalpha((unsigned char)job[i]))
            n = i;
    n = n < size ? n : size - 1;
    memcpy(buf, job, n);
    buf[n] = 0;
}

static bool same_model(const struct tw_points_job *a, const struct tw_points_job *b)
{
    char x[128], y[128];
    known_model(a->set, a->job, x, sizeof x);
    known_model(b->set, b->job, y, sizeof y);
    return strcmp(x, y) == 0;
}

static bool same_board(const struct tw_points_job *a, const struct tw_points_job *b)
{
    return strcmp(a->gpu, b->gpu) == 0 && strcmp(a->knob, b->knob) == 0;
}

static bool same_kind(const struct tw_points_job *a, const struct tw_points_job *b)
{
    return strcmp(a->kind, b->kind) == 0;
}

/* --- use ---------------------------------------------------------------------------------------------------
 */

/* The board's limit in watts: "A100-400W", or the largest cap that the set used; NaN when neither says. */
static double limit_of(const struct jobs *all, const struct tw_points_job *j)
{
    const char *dash = strrchr(j->gpu, '-');
    char *end;
    double limit = dash ? strtod(dash + 1, &end) : 0.0;
    if (dash && limit > 0.0 && strcmp(end, "W") == 0)
        return limit;
    if (strncmp(j->knob, "cap_w", 5) != 0)
        return (double)NAN;
    for (size_t i = 0; i < all->points.n_jobs; i++) {
        const struct tw_points_job *o = &all->points.job[i];
        if (strcmp(o->set, j->set) == 0 && same_board(o, j))
            limit = fmax(limit, o->point[0].setting);
    }
    return limit;
}

/* --- noise -------------------------------------------------------------------------------------------------
 */

/* What a job's throughput scatters by: its error against the nearest concave curve, and at least the published
 * run-to-run deviation. From its own points alone: an estimate shared by a board would carry a left-out job to
 * the others. */
static double noise_of(const struct measured_job *m)
{
    struct tw_fit f = tw_fit_concave(m->x, m->t, m->n);
    if (f.points < f.params + 2)
        return TW_RUN_SD_THROUGHPUT;
    return fmax(f.rmse * sqrt((double)f.points / (double)(f.points - f.params)), TW_RUN_SD_THROUGHPUT);
}

/* --- reading -----------------------------------------------------------------------------------------------
 */

/* The number of the first earlier job that is the same in this respect, or the next free number. */
static uint32_t number(const struct known *k, size_t i,
                       bool (*same)(const struct tw_points_job *, const struct tw_points_job *),
                       const uint32_t *of, size_t stride, uint32_t *next)
{
    for (size_t e = 0; e < i; e++)
        if (same(k->of[e]->src, k->of[i]->src))
            return *(const uint32_t *)(const void *)((const char *)of + e * stride);
    return (*next)++;
}

static void fill(struct known *k, const struct tw_prior_hyper *hyper)
{
    const size_t stride = sizeof *k->job;
    for (size_t i = 0; i < k->jobs.n; i++) {
        const struct measured_job *m = &k->jobs.job[i];
        if (m->reason)
            continue;
        size_t at = k->n++;
        struct tw_prior_job *j = &k->job[at];
        k->of[at] = m;
        *j = (struct tw_prior_job){
            .use_frac = m->p0_w / limit_of(&k->jobs, m->src), .x = m->x, .t = m->t, .n = m->n};
        j->board = number(k, at, same_board, &k->job[0].board, stride, &k->boards);
        j->kind = number(k, at, same_kind, &k->job[0].kind, stride, &k->kinds);
        j->model = number(k, at, same_model, &k->job[0].model, stride, &k->models);
    }
    for (size_t i = 0; i < k->n; i++)
        k->job[i].noise_frac = noise_of(k->of[i]);
    for (size_t i = 0; i < k->n; i++)
        tw_prior_digest(hyper, &k->job[i], &k->digest[i]);
}

int known_read(const struct jobs_choice *choice, const struct tw_prior_hyper *hyper, struct known *ret)
{
    *ret = (struct known){.n = 0};
    int rc = jobs_read(choice, &ret->jobs);
    if (rc != TW_EXIT_OK)
        return rc;
    size_t n = ret->jobs.n;
    if (n > KNOWN_MAX)
        return tw_ui_error("%s: %zu jobs, at most %d are learnt from", choice->path, n, KNOWN_MAX);
    size_t bytes = tw_arena_need(n, sizeof *ret->job) + tw_arena_need(n, sizeof(void *)) +
                   tw_arena_need(n, sizeof *ret->digest) + TW_ARENA_ALIGN;
    struct tw_arena a;
    ret->memory = malloc(bytes);
    if (!ret->memory)
        return tw_ui_error("%s: not enough memory for %zu jobs", choice->path, n);
    tw_arena_init(&a, ret->memory, bytes);
    ret->job = TW_ARENA_ARRAY(&a, struct tw_prior_job, n);
    ret->of = tw_arena_alloc(&a, n, sizeof(void *));
    ret->digest = TW_ARENA_ARRAY(&a, struct tw_prior_digest, n);
    fill(ret, hyper);
    if (ret->boards > TW_PRIOR_GROUPS || ret->kinds > TW_PRIOR_GROUPS)
        return tw_ui_error("%s: %u boards and %u kinds, at most %d of each are learnt from", choice->path,
                           ret->boards, ret->kinds, TW_PRIOR_GROUPS);
    return TW_EXIT_OK;
}

void known_done(struct known *k)
{
    jobs_done(&k->jobs);
    free(k->memory);
    *k = (struct known){.n = 0};
}

size_t known_find(const struct known *k, const struct measured_job *m)
{
    const struct tw_points_job *s = m->src;
    size_t i = 0;
    while (i < k->n && !(strcmp(k->of[i]->src->set, s->set) == 0 && strcmp(k->of[i]->src->job, s->job) == 0 &&
                         strcmp(k->of[i]->src->gpu, s->gpu) == 0))
        i++;
    return i;
}
