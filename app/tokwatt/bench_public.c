/* SPDX-License-Identifier: Apache-2.0 */
/* Measured jobs split at every level of knowledge, each job's own curve and its siblings left out. */
#include "tokwatt/bench_public.h"

#include "alloc/alloc.h"
#include "alloc/check.h"
#include "base/stat.h"
#include "elastic/fit.h"
#include "elastic/levels.h"
#include "elastic/pfi.h"
#include "tokwatt/cmd.h"
#include "tokwatt/known.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "tokwatt.bench.allocation/1"
#define LITTLE_TO_WIN 0.003 /* oracle minus equal below this: a share of the gap means nothing */
#define REACH_UNIT 0.7
#define Z90 1.6448536269514722

enum { DEPTHS = 3 };
static const double depths[DEPTHS] = {0.1, 0.2, 0.3};

/* What one level brings on one fleet. */
struct outcome {
    double kept, paid, gap; /* kept with what probes cost taken off; gap NaN when little is to win */
    double noisy_gap[3],
        noisy_kept[3]; /* median, 5 %, 95 % over seeds with run-to-run noise on what is measured */
    struct {
        size_t n;
        double mae, bias, rank, cover90;
    } error[DEPTHS];
};

struct bench {
    const struct bench_public *args;
    struct known known;
    struct tw_measured *measured;                   /* [known.n] */
    uint32_t *member;                               /* [n] indices into known */
    struct tw_known *telemetry;                     /* [n] */
    struct tw_curve *board;                         /* [n] */
    bool *has_board;                                /* [n] */
    size_t *used;                                   /* [n] jobs that the prior of this one rests on */
    struct tw_levels *levels;                       /* [n] of the last call of split_levels */
    struct tw_alloc_job *job;                       /* [n] */
    double *floor_w, *ceiling_w, *cap_w, *t, *pair; /* [n], pair [2 n] */
    double *draw;                                   /* [LEVELS][seeds] */
    double *share;                                  /* [LEVELS][n] cap over P_0 of the last split */
    size_t n, n_left, alone;                        /* alone: members whose board knows no other model */
    double p0_w, floor_sum_w, weight_sum, budget_w, cut_frac;
    double policy[TW_POLICY_COUNT]; /* kept; NaN when refused */
    struct outcome level[TW_LEVEL_COUNT];
    struct tw_arena scratch;
    void *memory, *scratch_memory;
};

/* --- taking ------------------------------------------------------------------------------------------------
 */

static bool in_list(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (; list && *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && strncmp(list, name, n) == 0)
            return true;
    return false;
}

/* A set that is in the list but not in the file. */
static int check_sets(const struct bench *b)
{
    const char *list = b->args->sets;
    for (; list && *list; list += strcspn(list, ","), list += *list == ',') {
        size_t n = strcspn(list, ","), i = 0;
        while (i < b->known.n &&
               !(strlen(b->known.of[i]->src->set) == n && strncmp(b->known.of[i]->src->set, list, n) == 0))
            i++;
        if (i == b->known.n)
            return tw_ui_error("%s: no set \"%.*s\" with jobs that were measured twice or more", b->args->path,
                               (int)n, list);
    }
    return TW_EXIT_OK;
}

static int bench_take(struct bench *b)
{
    size_t n = b->known.n, oracle = n < TW_ORACLE_JOBS ? n : TW_ORACLE_JOBS, seeds = b->args->seeds;
    size_t bytes = tw_arena_need(n, sizeof *b->measured) + tw_arena_need(n, sizeof *b->member) +
                   tw_arena_need(n, sizeof *b->telemetry) + tw_arena_need(n, sizeof *b->board) +
                   tw_arena_need(n, sizeof *b->has_board) + tw_arena_need(n, sizeof *b->used) +
                   tw_arena_need(n, sizeof *b->levels) + tw_arena_need(n, sizeof *b->job) +
                   6 * tw_arena_need(n, sizeof(double)) + TW_ARENA_ALIGN +
                   tw_arena_need(TW_LEVEL_COUNT * (seeds + 1), sizeof(double)) +
                   tw_arena_need(TW_LEVEL_COUNT * n, sizeof(double));
    size_t prior = tw_prior_bytes(b->known.boards, b->known.kinds) * 2,
           split = tw_alloc_bytes(n) + tw_alloc_oracle_bytes(oracle);
    struct tw_arena a;
    b->memory = malloc(bytes);
    b->scratch_memory = malloc(prior > split ? prior : split);
    if (!b->memory || !b->scratch_memory)
        return tw_ui_error("not enough memory for %zu jobs", n);
    tw_arena_init(&a, b->memory, bytes);
    tw_arena_init(&b->scratch, b->scratch_memory, prior > split ? prior : split);
    b->measured = TW_ARENA_ARRAY(&a, struct tw_measured, n);
    b->member = TW_ARENA_ARRAY(&a, uint32_t, n);
    b->telemetry = TW_ARENA_ARRAY(&a, struct tw_known, n);
    b->board = TW_ARENA_ARRAY(&a, struct tw_curve, n);
    b->has_board = TW_ARENA_ARRAY(&a, bool, n);
    b->used = TW_ARENA_ARRAY(&a, size_t, n);
    b->levels = TW_ARENA_ARRAY(&a, struct tw_levels, n);
    b->job = TW_ARENA_ARRAY(&a, struct tw_alloc_job, n);
    b->floor_w = TW_ARENA_ARRAY(&a, double, n);
    b->ceiling_w = TW_ARENA_ARRAY(&a, double, n);
    b->cap_w = TW_ARENA_ARRAY(&a, double, n);
    b->t = TW_ARENA_ARRAY(&a, double, n);
    b->pair = TW_ARENA_ARRAY(&a, double, 2 * n);
    b->draw = TW_ARENA_ARRAY(&a, double, TW_LEVEL_COUNT *(seeds + 1));
    b->share = TW_ARENA_ARRAY(&a, double, TW_LEVEL_COUNT *n);
    for (size_t i = 0; i < n; i++)
        b->measured[i] = b->known.of[i]->measured;
    return TW_EXIT_OK;
}

static int bench_open(struct bench *b, const struct bench_public *args)
{
    struct jobs_choice choice = {.path = args->path, .drop = args->drop};
    *b = (struct bench){.args = args};
    int rc = known_read(&choice, &tw_prior_public, &b->known);
    if (rc == TW_EXIT_OK)
        rc = bench_take(b);
    return rc;
}

static void bench_done(struct bench *b)
{
    known_done(&b->known);
    free(b->memory);
    free(b->scratch_memory);
}

/* PFI as the paper's rule wants it; where no point counts the ratio of sums; else losing in proportion. */
static double pfi_of(const struct measured_job *m)
{
    struct tw_pfi p = tw_pfi_of(m->p0_w, m->t0, m->power_w, m->rate, m->n);
    return p.mean > 0.0 ? p.mean : p.ros > 0.0 ? p.ros : 1.0;
}

static void choose_members(struct bench *b)
{
    const struct bench_public *a = b->args;
    double reach = isnan(a->reach_frac) ? a->unit ? REACH_UNIT : 1.0 : a->reach_frac;
    b->n = b->n_left = 0;
    b->p0_w = b->floor_sum_w = b->weight_sum = 0.0;
    for (size_t i = 0; i < b->known.n; i++) {
        const struct measured_job *m = b->known.of[i];
        if (a->sets && !in_list(a->sets, m->src->set))
            continue;
        if (m->measured.x[0] > reach) {
            b->n_left++;
            continue;
        }
        double p0 = a->unit ? 1.0 : m->p0_w * m->src->n_gpus;
        b->job[b->n] = (struct tw_alloc_job){.p0_w = p0,
                                             .floor_w = m->measured.x[0] * p0,
                                             .ceiling_w = p0,
                                             .weight = 1.0,
                                             .stray_frac = (double)INFINITY,
                                             .gpus = p0 / m->p0_w,
                                             .flex = pfi_of(m),
                                             .measured = m->measured};
        b->floor_w[b->n] = b->job[b->n].floor_w;
        b->ceiling_w[b->n] = p0;
        b->p0_w += p0;
        b->floor_sum_w += b->floor_w[b->n];
        b->weight_sum += b->job[b->n].weight;
        b->member[b->n++] = (uint32_t)i;
    }
}

/* --- knowing -----------------------------------------------------------------------------------------------
 */

static struct tw_prior_leave leave_of(const struct bench *b, uint32_t index)
{
    return b->args->leave_job ? (struct tw_prior_leave){TW_LEAVE_NONE, index}
                              : (struct tw_prior_leave){b->known.job[index].model, TW_LEAVE_NONE};
}

/* Everything that this job's leave-out says, for all members that share it. */
static int know_from(struct bench *b, size_t first, bool *done)
{
    const struct known *k = &b->known;
    struct tw_prior_leave leave = leave_of(b, b->member[first]);
    struct tw_why why = {""};
    struct tw_prior prior;
    size_t mark = tw_arena_mark(&b->scratch);
    enum tw_err err = tw_prior_fit(&prior, &tw_prior_public, k->job, k->digest, k->n, k->boards, k->kinds,
                                   leave, &b->scratch, &why);
    for (size_t i = first; i < b->n && err == TW_OK; i++) {
        const struct tw_prior_job *j = &k->job[b->member[i]];
        if (done[i] || (b->args->leave_job ? i != first : j->model != leave.model))
            continue;
        done[i] = true;
        err = tw_prior_know(&prior, j->board, j->kind, j->use_frac, &b->scratch, &b->telemetry[i]);
        b->used[i] = prior.used;
        b->has_board[i] = tw_levels_board(k->job, b->measured, k->n, j->board, leave, &b->board[i]) == TW_OK;
        b->alone += !b->has_board[i];
    }
    tw_arena_release(&b->scratch, mark);
    return err == TW_OK ? TW_EXIT_OK : tw_ui_error("%s", *why.text ? why.text : tw_err_text(err));
}

static int know_all(struct bench *b)
{
    bool *done = calloc(b->n + 1, sizeof *done);
    int rc = TW_EXIT_OK;
    if (!done)
        return tw_ui_error("not enough memory for %zu jobs", b->n);
    b->alone = 0;
    for (size_t i = 0; i < b->n && rc == TW_EXIT_OK; i++) {
        tw_ui_progress((double)i / (double)b->n, "learning from the others");
        if (!done[i])
            rc = know_from(b, i, done);
    }
    tw_ui_progress_done();
    free(done);
    return rc;
}

/* --- splitting ---------------------------------------------------------------------------------------------
 */

static double kept_of(struct bench *b)
{
    double kept = 0.0;
    for (size_t i = 0; i < b->n; i++) {
        b->t[i] = tw_measured_value(&b->job[i].measured, b->cap_w[i] / b->job[i].p0_w);
        kept += b->job[i].weight * b->t[i];
    }
    return kept / b->weight_sum;
}

static int checked(struct bench *b, enum tw_err err, struct tw_why *why, const char *name)
{
    if (err == TW_OK)
        err = tw_alloc_check(b->cap_w, b->floor_w, b->ceiling_w, b->n, b->budget_w, why);
    return err == TW_OK ? TW_EXIT_OK : tw_ui_error("%s: %s", name, why->text);
}

static int split_policies(struct bench *b)
{
    struct tw_why why = {""};
    int rc =
        checked(b, tw_alloc_equal(b->job, b->n, b->budget_w, &b->scratch, b->cap_w, NULL, &why), &why, "equal");
    b->policy[TW_POLICY_EQUAL] = kept_of(b);
    if (rc == TW_EXIT_OK)
        rc = checked(b, tw_alloc_equal_watts(b->job, b->n, b->budget_w, &b->scratch, b->cap_w, NULL, &why),
                     &why, "equal-watts");
    b->policy[TW_POLICY_EQUAL_WATTS] = kept_of(b);
    b->policy[TW_POLICY_PFI] = (double)NAN; /* divides by throughput, and units differ between sets */
    if (rc == TW_EXIT_OK && b->args->unit) {
        rc = checked(b, tw_alloc_pfi(b->job, b->n, b->budget_w, &b->scratch, b->cap_w, &why), &why, "pfi");
        b->policy[TW_POLICY_PFI] = kept_of(b);
    }
    for (size_t i = 0; i < b->n; i++)
        b->job[i].curve = &b->known.of[b->member[i]]->best.curve;
    if (rc == TW_EXIT_OK)
        rc = checked(b, tw_alloc_curve(b->job, b->n, b->budget_w, &b->scratch, b->cap_w, NULL, &why), &why,
                     "curve");
    b->policy[TW_POLICY_CURVE] = kept_of(b);
    if (rc == TW_EXIT_OK)
        rc =
            checked(b, tw_alloc_oracle(b->job, b->n, b->budget_w, &b->scratch, b->cap_w, &why), &why, "oracle");
    b->policy[TW_POLICY_ORACLE] = kept_of(b);
    return rc;
}

/* Every level once: what it keeps, and what its probes cost. */
static int split_levels(struct bench *b, struct tw_rng *rng, double ret_kept[static TW_LEVEL_COUNT],
                        double ret_paid[static TW_LEVEL_COUNT])
{
    struct tw_why why = {""};
    struct tw_level_plan plan = tw_level_plan_default;
    plan.probe_s = b->args->probe_s;
    plan.event_s = b->args->event_s;
    for (size_t i = 0; i < b->n; i++) {
        uint32_t m = b->member[i];
        tw_levels_of(&b->telemetry[i], &b->known.job[m], &b->measured[m], b->cut_frac, &plan, rng,
                     &b->levels[i]);
        if (b->has_board[i])
            b->levels[i].curve[TW_LEVEL_BOARD] = b->board[i];
    }
    int rc = TW_EXIT_OK;
    for (int l = 0; l < TW_LEVEL_COUNT && rc == TW_EXIT_OK; l++) {
        ret_paid[l] = 0.0;
        for (size_t i = 0; i < b->n; i++) {
            b->job[i].curve = &b->levels[i].curve[l];
            ret_paid[l] += b->job[i].weight * b->levels[i].paid[l] / b->weight_sum;
        }
        rc = checked(b, tw_alloc_curve(b->job, b->n, b->budget_w, &b->scratch, b->cap_w, NULL, &why), &why,
                     tw_level_name[l]);
        for (size_t i = 0; i < b->n; i++)
            b->share[(size_t)l * b->n + i] = b->cap_w[i] / b->job[i].p0_w;
        ret_kept[l] = kept_of(b) - ret_paid[l];
    }
    return rc;
}

/* Error of the loss at a cut, for members measured that deep. The interval is for a measured loss: its own
 * run-to-run noise is in it. */
static void judge(struct bench *b, int level, int depth)
{
    double *truth = b->pair, *said = b->pair + b->n, d = depths[depth], cover = 0.0, sum = 0.0, off = 0.0;
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct tw_measured *m = &b->job[i].measured;
        if (m->x[0] > 1.0 - d + 1e-9)
            continue;
        double sd, t = tw_measured_value(m, 1.0 - d);
        said[n] = tw_known_loss(&b->levels[i].known[level], d, &sd);
        if (level == TW_LEVEL_BOARD)
            said[n] = 1.0 - tw_curve_value(&b->levels[i].curve[level], 1.0 - d);
        truth[n] = 1.0 - t;
        double noise = TW_RUN_SD_THROUGHPUT * sqrt(1.0 + t * t), e = said[n] - truth[n];
        cover += fabs(e) <= Z90 * sqrt(sd * sd + noise * noise);
        sum += fabs(e);
        off += e;
        n++;
    }
    struct outcome *o = &b->level[level];
    o->error[depth].n = n;
    o->error[depth].mae = n ? sum / (double)n : (double)NAN;
    o->error[depth].bias = n ? off / (double)n : (double)NAN;
    o->error[depth].rank = tw_stat_rank_corr(truth, said, n);
    o->error[depth].cover90 = n && level != TW_LEVEL_BOARD ? cover / (double)n : (double)NAN;
}

static double gap_share(const struct bench *b, double kept)
{
    double equal = b->policy[TW_POLICY_EQUAL], gap = b->policy[TW_POLICY_ORACLE] - equal;
    return gap >= LITTLE_TO_WIN ? (kept - equal) / gap : (double)NAN;
}

static int split_noisy(struct bench *b)
{
    size_t seeds = b->args->seeds;
    double kept[TW_LEVEL_COUNT], paid[TW_LEVEL_COUNT];
    for (size_t s = 0; s < seeds; s++) {
        struct tw_rng rng;
        tw_rng_init(&rng, s + 1, 0);
        int rc = split_levels(b, &rng, kept, paid);
        if (rc != TW_EXIT_OK)
            return rc;
        for (int l = 0; l < TW_LEVEL_COUNT; l++)
            b->draw[(size_t)l * seeds + s] = kept[l];
    }
    static const double q[3] = {0.5, 0.05, 0.95};
    for (int l = 0; l < TW_LEVEL_COUNT; l++) {
        tw_stat_sort(b->draw + (size_t)l * seeds, seeds);
        for (int i = 0; i < 3; i++) {
            b->level[l].noisy_kept[i] = tw_stat_quantile_sorted(b->draw + (size_t)l * seeds, seeds, q[i]);
            b->level[l].noisy_gap[i] = gap_share(b, b->level[l].noisy_kept[i]);
        }
    }
    return TW_EXIT_OK;
}

/* One cut of the chosen fleet. TW_EXIT_BAD: the floors do not allow it. */
static int bench_cut(struct bench *b, double cut_frac)
{
    double kept[TW_LEVEL_COUNT], paid[TW_LEVEL_COUNT];
    b->cut_frac = cut_frac;
    b->budget_w = b->p0_w * (1.0 - cut_frac);
    if (!(b->floor_sum_w <= b->budget_w * (1.0 + 1e-12)))
        return TW_EXIT_BAD;
    int rc = split_policies(b);
    if (rc == TW_EXIT_OK)
        rc = split_noisy(b);
    if (rc == TW_EXIT_OK)
        rc = split_levels(b, NULL, kept, paid);
    for (int l = 0; l < TW_LEVEL_COUNT && rc == TW_EXIT_OK; l++) {
        b->level[l].kept = kept[l];
        b->level[l].paid = paid[l];
        b->level[l].gap = gap_share(b, kept[l]);
        for (int d = 0; d < DEPTHS; d++)
            judge(b, l, d);
    }
    return rc;
}

static double gap_points(const struct bench *b)
{
    return 100.0 * (b->policy[TW_POLICY_ORACLE] - b->policy[TW_POLICY_EQUAL]);
}

/* --- showing -----------------------------------------------------------------------------------------------
 */

static void show_share(double gap)
{
    if (isnan(gap))
        printf("%8s", "-");
    else
        printf("%7.0f%%", 100.0 * gap);
}

static void show_text(const struct bench *b)
{
    const struct bench_public *a = b->args;
    printf("%zu jobs of %s, %s, cut %g%%; left out when a job is judged: %s\n\n", b->n,
           a->sets ? a->sets : "all sets", a->unit ? "each with P_0 = T_0 = 1" : "at their published sizes",
           100.0 * b->cut_frac, a->leave_job ? "itself" : "every job of its model");
    printf("%-12s %7s %8s   %s\n", "", "kept %", "of gap", "with run-to-run noise, 5-95 %");
    for (int p = 0; p < TW_POLICY_COUNT; p++) {
        if (isnan(b->policy[p]))
            continue;
        printf("%-12s %7.2f ", tw_policy_name[p], 100.0 * b->policy[p]);
        show_share(gap_share(b, b->policy[p]));
        printf("   %s\n", tw_policy_text[p]);
    }
    puts("");
    for (int l = 0; l < TW_LEVEL_COUNT; l++) {
        const struct outcome *o = &b->level[l];
        printf("%-12s %7.2f ", tw_level_name[l], 100.0 * o->kept);
        show_share(o->gap);
        if (isnan(o->gap))
            printf("   %5.2f to %5.2f kept   ", 100.0 * o->noisy_kept[1], 100.0 * o->noisy_kept[2]);
        else
            printf("   %4.0f%% (%.0f to %.0f%%)   ", 100.0 * o->noisy_gap[0], 100.0 * o->noisy_gap[1],
                   100.0 * o->noisy_gap[2]);
        printf("%s\n", tw_level_text[l]);
    }
    printf(
        "\nProbes are paid for: %.3f points of probe1, %.3f of probe2 (%g s each against an event of %g s).\n",
        100.0 * b->level[TW_LEVEL_PROBE1].paid, 100.0 * b->level[TW_LEVEL_PROBE2].paid, a->probe_s, a->event_s);
    puts("\nLoss at a cut: mean error, rank correlation, share inside the 90 % interval");
    printf("%-12s", "");
    for (int d = 0; d < DEPTHS; d++)
        printf("   cut %2.0f%%: %3zu jobs   ", 100.0 * depths[d], b->level[0].error[d].n);
    puts("");
    for (int l = 0; l < TW_LEVEL_COUNT; l++) {
        printf("%-12s", tw_level_name[l]);
        for (int d = 0; d < DEPTHS; d++) {
            printf("   %6.4f %6.2f ", b->level[l].error[d].mae, b->level[l].error[d].rank);
            if (isnan(b->level[l].error[d].cover90))
                printf("%6s", "-");
            else
                printf("%5.0f%%", 100.0 * b->level[l].error[d].cover90);
        }
        puts("");
    }
    if (gap_points(b) < 100.0 * LITTLE_TO_WIN)
        printf("\nEqual and oracle differ by %.2f points: on this fleet there is nothing to win, and a share "
               "of that gap "
               "means nothing.\n",
               gap_points(b));
    if (b->alone)
        printf("\n%zu jobs are on a board without another model: for them board stands for telemetry.\n",
               b->alone);
    if (b->n_left)
        printf("\n%zu jobs left out: their lowest point is above the share given by --reach.\n", b->n_left);
}

static void json_level(struct tw_jsonw *w, const struct outcome *o, const char *name)
{
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "level", name);
    tw_jsonw_num(w, "gap_recovered", o->gap, 6);
    tw_jsonw_num(w, "throughput_frac", o->kept, 8);
    tw_jsonw_num(w, "paid_frac", o->paid, 6);
    tw_jsonw_object(w, "noisy");
    tw_jsonw_num(w, "gap_median", o->noisy_gap[0], 6);
    tw_jsonw_num(w, "gap_p05", o->noisy_gap[1], 6);
    tw_jsonw_num(w, "gap_p95", o->noisy_gap[2], 6);
    tw_jsonw_num(w, "throughput_median_frac", o->noisy_kept[0], 8);
    tw_jsonw_end(w);
    tw_jsonw_array(w, "errors");
    for (int d = 0; d < DEPTHS; d++) {
        tw_jsonw_object(w, NULL);
        tw_jsonw_num(w, "cut_frac", depths[d], 6);
        tw_jsonw_i64(w, "jobs", (int64_t)o->error[d].n);
        tw_jsonw_num(w, "loss_mae", o->error[d].mae, 6);
        tw_jsonw_num(w, "loss_bias", o->error[d].bias, 6);
        tw_jsonw_num(w, "rank_correlation", o->error[d].rank, 6);
        tw_jsonw_num(w, "coverage_90", o->error[d].cover90, 6);
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
    tw_jsonw_end(w);
}

static void json_job(struct tw_jsonw *w, const struct bench *b, size_t i)
{
    const struct tw_levels *v = &b->levels[i];
    const struct measured_job *m = b->known.of[b->member[i]];
    char model[128];
    known_model(m->src->set, m->src->job, model, sizeof model);
    tw_jsonw_object(w, NULL);
    tw_jsonw_str(w, "set", m->src->set);
    tw_jsonw_str(w, "job", m->src->job);
    tw_jsonw_str(w, "model", model);
    tw_jsonw_i64(w, "learnt_from", (int64_t)b->used[i]);
    tw_jsonw_bool(w, "board_known", b->has_board[i]);
    tw_jsonw_array(w, "probe_cuts");
    for (int p = 0; p < TW_LEVEL_PROBES; p++)
        tw_jsonw_num(w, NULL, v->probe_cut[p], 6);
    tw_jsonw_end(w);
    tw_jsonw_array(w, "probe_gains");
    for (int p = 0; p < TW_LEVEL_PROBES; p++)
        tw_jsonw_num(w, NULL, v->probe_gain[p], 6);
    tw_jsonw_end(w);
    tw_jsonw_object(w, "cut_frac");
    for (int l = 0; l < TW_LEVEL_COUNT; l++)
        tw_jsonw_num(w, tw_level_name[l], 1.0 - b->share[(size_t)l * b->n + i], 6);
    tw_jsonw_end(w);
    tw_jsonw_object(w, "loss_at_30");
    tw_jsonw_num(w, "measured", 1.0 - tw_measured_value(&m->measured, 0.7), 6);
    for (int l = TW_LEVEL_TELEMETRY; l < TW_LEVEL_COUNT; l++) {
        double sd, loss = tw_known_loss(&v->known[l], 0.3, &sd);
        tw_jsonw_array(w, tw_level_name[l]);
        tw_jsonw_num(w, NULL, loss, 6);
        tw_jsonw_num(w, NULL, sd, 6);
        tw_jsonw_end(w);
    }
    tw_jsonw_end(w);
    tw_jsonw_end(w);
}

static int show_json(const struct bench *b)
{
    const struct bench_public *a = b->args;
    struct tw_jsonw w;
    tw_ui_json(&w);
    tw_jsonw_object(&w, NULL);
    tw_jsonw_str(&w, "schema", SCHEMA);
    tw_jsonw_str(&w, "kind", "public");
    tw_jsonw_str(&w, "file", a->path);
    tw_jsonw_str(&w, "scale", a->unit ? "unit" : "published");
    tw_jsonw_str(&w, "sets", a->sets);
    tw_jsonw_str(&w, "dropped", a->drop);
    tw_jsonw_str(&w, "left_out", a->leave_job ? "job" : "model");
    tw_jsonw_num(&w, "cut_frac", b->cut_frac, 9);
    tw_jsonw_i64(&w, "n_jobs", (int64_t)b->n);
    tw_jsonw_i64(&w, "n_known", (int64_t)b->known.n);
    tw_jsonw_i64(&w, "n_left_out_by_reach", (int64_t)b->n_left);
    tw_jsonw_i64(&w, "n_board_unknown", (int64_t)b->alone);
    tw_jsonw_num(&w, "probe_s", a->probe_s, 9);
    tw_jsonw_num(&w, "event_s", a->event_s, 9);
    tw_jsonw_array(&w, "seeds");
    for (size_t s = 0; s < a->seeds; s++)
        tw_jsonw_i64(&w, NULL, (int64_t)s + 1);
    tw_jsonw_end(&w);
    tw_jsonw_num(&w, "gap_points", gap_points(b), 6);
    tw_jsonw_bool(&w, "nothing_to_win", gap_points(b) < 100.0 * LITTLE_TO_WIN);
    tw_jsonw_array(&w, "policies");
    for (int p = 0; p < TW_POLICY_COUNT; p++) {
        tw_jsonw_object(&w, NULL);
        tw_jsonw_str(&w, "policy", tw_policy_name[p]);
        tw_jsonw_num(&w, "throughput_frac", b->policy[p], 8);
        tw_jsonw_num(&w, "gap_recovered", gap_share(b, b->policy[p]), 6);
        tw_jsonw_end(&w);
    }
    tw_jsonw_end(&w);
    tw_jsonw_array(&w, "levels");
    for (int l = 0; l < TW_LEVEL_COUNT; l++)
        json_level(&w, &b->level[l], tw_level_name[l]);
    tw_jsonw_end(&w);
    tw_jsonw_array(&w, "jobs");
    for (size_t i = 0; i < b->n; i++)
        json_job(&w, b, i);
    tw_jsonw_end(&w);
    tw_jsonw_end(&w);
    return tw_ui_json_done(&w, TW_EXIT_OK);
}

int bench_public_run(const struct bench_public *args, bool json)
{
    struct bench b;
    int rc = bench_open(&b, args);
    if (rc == TW_EXIT_OK)
        rc = check_sets(&b);
    if (rc == TW_EXIT_OK) {
        choose_members(&b);
        if (b.n == 0)
            rc = tw_ui_error("%s: no job is left that can be cut (--sets, --drop, --reach)", args->path);
    }
    if (rc == TW_EXIT_OK)
        rc = know_all(&b);
    if (rc == TW_EXIT_OK) {
        rc = bench_cut(&b, args->cut_frac);
        if (rc == TW_EXIT_BAD)
            rc = tw_ui_error("a cut of %g%% is deeper than the lowest measured points, which allow %.1f%%",
                             100.0 * args->cut_frac, 100.0 * (1.0 - b.floor_sum_w / b.p0_w));
        else if (rc == TW_EXIT_OK && json)
            rc = show_json(&b);
        else if (rc == TW_EXIT_OK)
            show_text(&b);
    }
    bench_done(&b);
    return rc;
}

/* --- the page ----------------------------------------------------------------------------------------------
 */

static const struct {
    const char *name, *sets;
    bool unit, spec;
} fleets[] = {
    {"emerald", "emerald", true, true},
    {"perseus_a100", "perseus_a100", true, true},
    {"perseus_a40", "perseus_a40", true, true},
    {"emerald + perseus_a100", "emerald,perseus_a100", true, true},
    {"emerald + perseus_a100 + perseus_a40", "emerald,perseus_a100,perseus_a40", true, true},
    {"zeus_v100", "zeus_v100", true, true},
    {"zeus_a40", "zeus_a40", true, true},
    {"zeus_p100", "zeus_p100", true, false},
    {"zeus_rtx6000", "zeus_rtx6000", true, false},
    {"zeus, four boards", "zeus_v100,zeus_a40,zeus_p100,zeus_rtx6000", true, false},
    {"ada, three boards", "ada_rtx4000,ada_rtx5000,ada_rtx6000", true, false},
    {"stage, two boards", "stage_a100_sxm,stage_a40", true, false},
    {"all sets", NULL, true, false},
    {"all sets, published sizes", NULL, false, false},
};
enum { FLEETS = sizeof fleets / sizeof *fleets };

/* What is promised at 30 % on the two mixed fleets; NaN: nothing. */
static const double promised[TW_LEVEL_COUNT] = {(double)NAN, 0.65, 0.75, 0.85, 0.92};
#define PROMISED_AT 0.3
#define CURVE_SLACK                                                                                            \
    0.001 /* with the full curve never below equal by more than this, in a row of the specification */

static bool fleet_promises(int fleet)
{
    return fleets[fleet].spec && strchr(fleets[fleet].sets, ',') != NULL;
}

struct miss {
    char text[1024];
};

static void add_miss(struct miss *miss, size_t *n, size_t most, const char *fleet, double cut, const char *what,
                     double got, double want)
{
    if (*n < most)
        (void)snprintf(miss[(*n)++].text, sizeof miss->text,
                       "%.60s, cut %.0f %%: %.60s is %.4g, %.4g was the aim", fleet, 100.0 * cut, what, got,
                       want);
}

enum { MISSES = 32 };

static void find_misses(const struct bench *b, int fleet, struct miss *miss, size_t *n)
{
    const char *name = fleets[fleet].name;
    double curve = b->level[TW_LEVEL_CURVE].kept, equal = b->policy[TW_POLICY_EQUAL];
    if (fleets[fleet].spec && !(curve >= equal - CURVE_SLACK))
        add_miss(miss, n, MISSES, name, b->cut_frac, "throughput kept with the full curve", curve,
                 equal - CURVE_SLACK);
    if (!fleet_promises(fleet) || !(fabs(b->cut_frac - PROMISED_AT) < 1e-9))
        return;
    for (int l = 0; l < TW_LEVEL_COUNT; l++)
        if (!isnan(promised[l]) && !(b->level[l].gap >= promised[l]))
            add_miss(miss, n, MISSES, name, b->cut_frac, tw_level_name[l], b->level[l].gap, promised[l]);
    if (!(b->level[TW_LEVEL_TELEMETRY].gap >= b->level[TW_LEVEL_BOARD].gap))
        add_miss(miss, n, MISSES, name, b->cut_frac, "telemetry (at least board)",
                 b->level[TW_LEVEL_TELEMETRY].gap, b->level[TW_LEVEL_BOARD].gap);
}

static void page_share(double gap)
{
    if (isnan(gap))
        printf(" |");
    else
        printf(" %.2f |", gap);
}

static void page_row(const struct bench *b, int fleet)
{
    static const int shown[] = {TW_POLICY_EQUAL, TW_POLICY_EQUAL_WATTS, TW_POLICY_PFI, TW_POLICY_ORACLE};
    printf("| %s | %zu | %.0f %% |", fleets[fleet].name, b->n, 100.0 * b->cut_frac);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (isnan(b->policy[shown[i]]))
            printf(" |");
        else
            printf(" %.2f |", 100.0 * b->policy[shown[i]]);
    for (int l = 0; l < TW_LEVEL_COUNT; l++)
        printf(" %.2f |", 100.0 * b->level[l].kept);
    for (int l = 0; l < TW_LEVEL_COUNT; l++)
        page_share(b->level[l].gap);
    for (int l = TW_LEVEL_PROBE1; l <= TW_LEVEL_CURVE; l++)
        if (isnan(b->level[l].gap))
            printf(" |");
        else
            printf(" %.2f (%.2f to %.2f) |", b->level[l].noisy_gap[0], b->level[l].noisy_gap[1],
                   b->level[l].noisy_gap[2]);
    puts("");
}

static int page_fleets(struct bench *b, struct bench_public *args, struct miss *miss, size_t *n_miss)
{
    puts("| fleet | jobs | cut | equal | equal-watts | pfi | oracle | board | telemetry | probe1 | probe2 | "
         "curve | gap: board | "
         "telemetry | probe1 | probe2 | curve | probe1, noise | probe2, noise | curve, noise |\n"
         "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (int f = 0; f < FLEETS; f++) {
        args->sets = fleets[f].sets;
        args->unit = fleets[f].unit;
        choose_members(b);
        int rc = b->n ? know_all(b) : TW_EXIT_OK;
        for (int c = 0; c < DEPTHS && b->n && rc == TW_EXIT_OK; c++) {
            rc = bench_cut(b, depths[c]);
            if (rc == TW_EXIT_BAD) { /* not that deep: no row */
                rc = TW_EXIT_OK;
                break;
            }
            if (rc == TW_EXIT_OK) {
                page_row(b, f);
                find_misses(b, f, miss, n_miss);
            }
        }
        if (rc != TW_EXIT_OK)
            return rc;
    }
    return TW_EXIT_OK;
}

static void page_errors_of(const struct bench *b, const char *set, const char *left_out)
{
    for (int l = 0; l < TW_LEVEL_COUNT; l++) {
        printf("| %s | %s | %s |", set, left_out, tw_level_name[l]);
        for (int d = 0; d < DEPTHS; d++) {
            if (b->level[l].error[d].n == 0) {
                printf(" | | | |");
                continue;
            }
            printf(" %zu | %.4f |", b->level[l].error[d].n, b->level[l].error[d].mae);
            page_share(b->level[l].error[d].rank);
            page_share(b->level[l].error[d].cover90);
        }
        puts("");
    }
}

/* Errors of one set, without splitting anything. */
static int page_errors(struct bench *b, struct bench_public *args)
{
    struct tw_level_plan plan = tw_level_plan_default;
    puts("| set | left out | level | 10 %: jobs | error | rank | in 90 % | 20 %: jobs | error | rank | in 90 % "
         "| 30 %: jobs | error | rank | "
         "in 90 % |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    args->unit = true;
    args->reach_frac = 1.0;
    for (size_t i = 0; i < b->known.n; i++) {
        const char *set = b->known.of[i]->src->set;
        size_t first = 0;
        while (strcmp(b->known.of[first]->src->set, set) != 0)
            first++;
        if (first != i)
            continue;
        args->sets = set;
        for (int by_job = 0; by_job < 2; by_job++) {
            args->leave_job = by_job;
            choose_members(b);
            int rc = know_all(b);
            if (rc != TW_EXIT_OK)
                return rc;
            for (size_t m = 0; m < b->n; m++) {
                uint32_t k = b->member[m];
                tw_levels_of(&b->telemetry[m], &b->known.job[k], &b->measured[k], PROMISED_AT, &plan, NULL,
                             &b->levels[m]);
                if (b->has_board[m])
                    b->levels[m].curve[TW_LEVEL_BOARD] = b->board[m];
            }
            for (int l = 0; l < TW_LEVEL_COUNT; l++)
                for (int d = 0; d < DEPTHS; d++)
                    judge(b, l, d);
            page_errors_of(b, set, by_job ? "job" : "model");
        }
    }
    return TW_EXIT_OK;
}

int bench_public_page(const struct bench_public *given)
{
    struct bench_public args = *given;
    struct miss miss[MISSES];
    size_t n_miss = 0;
    struct bench b;
    args.reach_frac = (double)NAN;
    args.leave_job = false;
    int rc = bench_open(&b, &args);
    if (rc == TW_EXIT_OK) {
        printf(
            "# Allocation\n\nMade by `tokwatt bench allocation --markdown --drop %s`; do not edit.\n\n"
            "## On measured jobs\n\n"
            "Throughput kept (%%, mean over jobs) when total power is cut, read off the measured points of "
            "public sweeps, "
            "straight between them, whatever a policy believed; then the share of the gap between `equal` "
            "and `oracle` that "
            "each level of knowledge recovers. Empty: equal and oracle differ by less than %.1f point, so "
            "on that fleet there "
            "is nothing to win, or the rule does not apply (the paper's `pfi` divides by throughput, and "
            "units differ between "
            "sets). Every job is scaled to P_0 = T_0 = 1 except in the last rows. `curve` knows all points "
            "of the job; the "
            "other levels learn from jobs of other models only. Probes are paid for: %g s each against one "
            "event of %g s. The last "
            "three columns add the published run-to-run noise (0.4 %% of power, 0.5 %% of throughput) to "
            "whatever is measured: "
            "median and 5-95 %% over %zu seeds.\n\n"
            "The numbers of the prior were chosen on zeus_*, ada_* and stage_* alone (bench/levels_tune.c), so "
            "the "
            "rows of those sets are no test of them. The form of the model (a job differs from its board by a "
            "factor in slowdown) was settled by its physics, but with the rows of emerald and perseus_* in "
            "sight: "
            "they are no blind test of the form. A noisy oracle also profits from noise that no policy can "
            "know.\n\n",
            args.drop ? args.drop : "''", 100.0 * LITTLE_TO_WIN, args.probe_s, args.event_s, args.seeds);
        rc = page_fleets(&b, &args, miss, &n_miss);
    }
    if (rc == TW_EXIT_OK) {
        puts("\n### What was aimed at and missed\n");
        for (size_t i = 0; i < n_miss; i++)
            printf("- %s\n", miss[i].text);
        if (n_miss == 0)
            puts("Nothing.");
        else
            puts("\nWhy: a split goes where curves bend, and straight lines between five or six measured caps "
                 "bend only at "
                 "those caps, where only the points themselves tell. After two shallow probes the loss is "
                 "known well "
                 "(below), the depth of the bend is still what three other jobs of the board say of it. The "
                 "second "
                 "probe, at 20-25 %, also costs about a tenth of a point.");
        puts("\n### Error of the loss\n\nMean error of the expected loss at a cut, rank correlation over jobs, "
             "and how many "
             "measured losses lie in the 90 % interval (nominal: 0.90; run-to-run noise included). `model`: no "
             "job of the same model is "
             "learnt from; `job`: only the job itself is left out.\n");
        rc = page_errors(&b, &args);
        puts("");
    }
    bench_done(&b);
    return rc;
}
