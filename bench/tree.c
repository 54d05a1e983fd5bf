/* SPDX-License-Identifier: Apache-2.0 */
/* bench tree: time of allocation under a tree of limits on one core, from structs to caps, and beside it GLPK
 * on a piecewise-linear model of the flat problem when it was there at build time. Jobs are drawn at random
 * (seeded); drawing is not measured. */
#include "alloc/tree.h"
#include "base/rng.h"
#include "base/stat.h"
#include "sys/clock.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef HAVE_GLPK
#include <glpk.h>
#endif

enum { REPEATS = 5, HALLS = 4, ROWS = 10, RACKS = 25, BOXES = 16, PIECES = 20 };

struct site {
    struct tw_tree t;
    struct tw_tree_node *node;
    struct tw_tree_gpu *gpu;
    struct tw_tree_job *job;
    struct tw_curve *curve;
    uint32_t first_box, boxes; /* leaves */
    struct tw_tree_split split;
    struct tw_arena arena;
    void *mem;
};

static void *take(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p)
        abort();
    return p;
}

/* Site, halls, rows, racks, boxes: node numbers level by level. */
static void draw_tree(struct site *s)
{
    static const uint32_t wide[] = {HALLS, ROWS, RACKS, BOXES};
    uint32_t level = 0, count = 1, n = 1;
    s->node[0].limit_w = (double)INFINITY;
    for (size_t d = 0; d < sizeof wide / sizeof *wide; d++) {
        uint32_t first = n;
        for (uint32_t i = 0; i < count * wide[d]; i++)
            s->node[n++] = (struct tw_tree_node){.parent = level + i / wide[d], .limit_w = (double)INFINITY};
        level = first;
        count *= wide[d];
    }
    s->first_box = level;
    s->boxes = count;
    s->t.n_nodes = n;
}

/* Limits at 70 to 110 % of what lies below wants, and a budget of 75 % of all. */
static void draw_limits(struct site *s, struct tw_rng *rng)
{
    double *want = take(s->t.n_nodes, sizeof *want);
    for (uint32_t i = 0; i < s->t.n_gpus; i++)
        want[s->gpu[i].node] += s->gpu[i].p0_w;
    for (uint32_t v = s->t.n_nodes; v-- > 1;) {
        want[s->node[v].parent] += want[v];
        s->node[v].limit_w = want[v] * tw_rng_uniform(rng, 0.7, 1.1);
    }
    s->t.budget_w = 0.75 * want[0];
    free(want);
}

static void draw(struct site *s, uint32_t n_jobs, uint32_t wide, double span_frac)
{
    struct tw_rng rng;
    tw_rng_init(&rng, 7, 0);
    uint32_t nodes = 1 + HALLS * (1 + ROWS * (1 + RACKS * (1 + BOXES)));
    s->node = take(nodes, sizeof *s->node);
    s->gpu = take((size_t)n_jobs * wide, sizeof *s->gpu);
    s->job = take(n_jobs, sizeof *s->job);
    s->curve = take(n_jobs, sizeof *s->curve);
    draw_tree(s);
    for (uint32_t j = 0; j < n_jobs; j++) {
        s->curve[j] =
            tw_curve_of_loss(exp(tw_rng_uniform(&rng, 0.0, 2.5)), 0.3, tw_rng_uniform(&rng, 0.03, 0.25));
        s->curve[j].b = fmin(s->curve[j].b, 0.95 / expm1(0.7 * s->curve[j].k)); /* alive at every floor */
        bool spans = tw_rng_f64(&rng) < span_frac;
        uint32_t home = s->first_box + (uint32_t)tw_rng_below(&rng, s->boxes);
        double p0 = tw_rng_uniform(&rng, 400.0, 700.0), low = tw_rng_uniform(&rng, 0.3, 0.5);
        s->job[j] = (struct tw_tree_job){.first = j * wide,
                                         .n = wide,
                                         .weight = p0 * wide * tw_rng_uniform(&rng, 0.5, 2.0),
                                         .curve = &s->curve[j],
                                         .lockstep = true};
        for (uint32_t i = j * wide; i < (j + 1) * wide; i++) {
            if (spans)
                home = s->first_box + (uint32_t)tw_rng_below(&rng, s->boxes);
            s->gpu[i] = (struct tw_tree_gpu){.node = home, .p0_w = p0, .floor_w = low * p0, .ceiling_w = p0};
        }
    }
    s->t.node = s->node;
    s->t.gpu = s->gpu;
    s->t.job = s->job;
    s->t.n_jobs = n_jobs;
    s->t.n_gpus = n_jobs * wide;
    draw_limits(s, &rng);
    size_t bytes = tw_tree_bytes(s->t.n_nodes, s->t.n_gpus, n_jobs);
    s->mem = take(1, bytes);
    tw_arena_init(&s->arena, s->mem, bytes);
    s->split = (struct tw_tree_split){.cap_w = take(s->t.n_gpus, sizeof(double)),
                                      .price = take(s->t.n_nodes, sizeof(double)),
                                      .paused = take(n_jobs, sizeof(bool))};
}

static void drop(struct site *s)
{
    void *all[] = {s->node, s->gpu, s->job, s->curve, s->mem, s->split.cap_w, s->split.price, s->split.paused};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void measure(const char *what, uint32_t n_jobs, uint32_t wide, double span_frac)
{
    struct site s = {.mem = NULL};
    struct tw_why why = {""};
    double ms[REPEATS];
    draw(&s, n_jobs, wide, span_frac);
    for (int r = 0; r < REPEATS; r++) {
        int64_t start = tw_boot_us();
        if (tw_tree_solve(&s.t, TW_POLICY_CURVE, &s.arena, &s.split, &why) != TW_OK) {
            (void)fprintf(stderr, "%s: %s\n", what, why.text);
            exit(1);
        }
        ms[r] = (double)(tw_boot_us() - start) / 1000.0;
    }
    tw_stat_sort(ms, REPEATS);
    printf("%-44s %8u GPUs, %6u nodes: median %9.2f ms, fastest %9.2f ms, gap %.1e, %u rounds\n", what,
           s.t.n_gpus, s.t.n_nodes, ms[REPEATS / 2], ms[0], fmax(1.0 - s.split.value / s.split.bound, 0.0),
           s.split.rounds);
    drop(&s);
}

#ifdef HAVE_GLPK
/* The flat problem of n jobs, PIECES straight pieces each: one row. */
static void beside_glpk(uint32_t n)
{
    struct site s = {.mem = NULL};
    draw(&s, n, 1, 0.0);
    for (uint32_t v = 1; v < s.t.n_nodes; v++)
        s.node[v].limit_w = (double)INFINITY;
    int64_t start = tw_boot_us();
    if (tw_tree_solve(&s.t, TW_POLICY_CURVE, &s.arena, &s.split, NULL) != TW_OK)
        abort();
    double ours = (double)(tw_boot_us() - start) / 1000.0, fixed = 0.0, spent = 0.0;
    start = tw_boot_us();
    glp_term_out(GLP_OFF);
    glp_prob *lp = glp_create_prob();
    glp_set_obj_dir(lp, GLP_MAX);
    glp_add_rows(lp, 1);
    glp_add_cols(lp, (int)n * PIECES);
    for (uint32_t j = 0; j < n; j++) {
        const struct tw_tree_gpu *g = &s.gpu[j];
        double low = g->floor_w / g->p0_w, width = (1.0 - low) / PIECES;
        fixed += s.job[j].weight * tw_curve_value(&s.curve[j], low);
        spent += g->floor_w;
        for (int k = 0; k < PIECES; k++) {
            int col = (int)j * PIECES + k + 1, row[] = {0, 1};
            double watts[] = {0.0, g->p0_w};
            double rise = tw_curve_value(&s.curve[j], low + width * (k + 1)) -
                          tw_curve_value(&s.curve[j], low + width * k);
            glp_set_col_bnds(lp, col, GLP_DB, 0.0, width);
            glp_set_obj_coef(lp, col, s.job[j].weight * rise / width);
            glp_set_mat_col(lp, col, 1, row, watts);
        }
    }
    glp_set_row_bnds(lp, 1, GLP_UP, 0.0, s.t.budget_w - spent);
    if (glp_simplex(lp, NULL) != 0)
        abort();
    double theirs = (double)(tw_boot_us() - start) / 1000.0, value = glp_get_obj_val(lp) + fixed;
    printf("%u jobs flat: %.2f ms, value %.8g; GLPK, %d pieces a job: %.1f ms, value %.8g (%.1e below)\n", n,
           ours, s.split.value, PIECES, theirs, value, 1.0 - value / s.split.value);
    glp_delete_prob(lp);
    drop(&s);
}
#else
static void beside_glpk(uint32_t n)
{
    printf("%u jobs flat beside GLPK: left out, built without it\n", n);
}
#endif

int main(void)
{
    puts("tree: site, 4 halls, 40 rows, 1000 racks, 16000 boxes; one core, preparation included");
    beside_glpk(1000);
    measure("125,000 jobs of 8 GPUs, each in one box", 125000, 8, 0.0);
    measure("10,000 jobs of 8 GPUs, 10 % span boxes", 10000, 8, 0.1);
    return 0;
}
