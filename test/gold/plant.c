/* SPDX-License-Identifier: Apache-2.0 */
/* The default jobs of the plant beside curves that others measured (caps/curves.csv of TW_DATA): the throughput
 * that a job keeps at 10, 20 and 30 % less power must lie inside what the public sets span. The plant was made
 * to be like them in shape; this test holds it there. */
#include "base/stat.h"
#include "plant/plant.h"
#include "sys/file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POINTS 64
#define CURVES 400
#define CUTS 3

static const double cut[CUTS] = {0.1, 0.2, 0.3};

/* Whole devices under caps or clocks; the stage_, ada_ and kernel sets are parts of a step or single kernels.
 */
static const char *const set[] = {"emerald",  "perseus_a100", "perseus_a40", "zeus_v100",
                                  "zeus_a40", "zeus_p100",    "zeus_rtx6000"};

struct curve {
    char key[256];
    size_t n;
    double setting[POINTS], power_w[POINTS], rate[POINTS];
};

static struct curve curve[CURVES];
static size_t n_curves;

static bool is_wanted(const char *key)
{
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        if (strncmp(key, set[i], strlen(set[i])) == 0 && key[strlen(set[i])] == ',')
            return true;
    return false;
}

/* set,gpu,job,kind,n_gpus,knob,setting,power_w,throughput,unit: the first six name the job. No quotes in the
 * file. */
static void take_row(const char *line)
{
    const char *p = line;
    for (int i = 0; i < 6 && p; i++)
        p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL;
    if (!p || !is_wanted(line))
        return;
    size_t n = (size_t)(p - line);
    assert_true(n < sizeof curve->key);
    size_t k = 0;
    while (k < n_curves && !(strncmp(curve[k].key, line, n) == 0 && curve[k].key[n] == '\0'))
        k++;
    assert_true(k < CURVES);
    if (k == n_curves) {
        n_curves++;
        memcpy(curve[k].key, line, n);
    }
    struct curve *c = &curve[k];
    assert_true(c->n < POINTS);
    char *end;
    c->setting[c->n] = strtod(p, &end);
    c->power_w[c->n] = strtod(end + 1, &end);
    c->rate[c->n] = strtod(end + 1, &end);
    c->n++;
}

/* Throughput kept at x of the power of the largest setting, linear between neighbours in setting; NaN when the
 * curve does not go there. */
static double public_kept(const struct curve *c, double x)
{
    size_t top = 0;
    for (size_t i = 1; i < c->n; i++)
        if (c->setting[i] > c->setting[top])
            top = i;
    double best = NAN, best_setting = -INFINITY;
    for (size_t i = 0; i < c->n; i++) {
        size_t below = c->n; /* the next lower setting */
        for (size_t j = 0; j < c->n; j++)
            if (c->setting[j] < c->setting[i] && (below == c->n || c->setting[j] > c->setting[below]))
                below = j;
        if (below == c->n)
            continue;
        double xa = c->power_w[i] / c->power_w[top], xb = c->power_w[below] / c->power_w[top];
        if (!(xa >= x && x >= xb) || !(c->setting[i] > best_setting))
            continue;
        best_setting = c->setting[i];
        double part = xa > xb ? (x - xb) / (xa - xb) : 1.0;
        best = (c->rate[below] + (c->rate[i] - c->rate[below]) * part) / c->rate[top];
    }
    return best;
}

static double plant_kept(const struct tw_plant *p, uint32_t job, double x)
{
    double p0_w, t0, power_w = 0.0, t = 0.0, low = 150.0, high = 700.0;
    tw_plant_truth(p, job, 700.0, &p0_w, &t0);
    for (int i = 0; i < 50; i++) {
        double mid = 0.5 * (low + high);
        tw_plant_truth(p, job, mid, &power_w, &t);
        if (power_w > x * p0_w)
            high = mid;
        else
            low = mid;
    }
    return t / t0;
}

static void test_envelope(void **state)
{
    (void)state;
    char path[512];
    char *text;
    size_t n;
    (void)snprintf(path, sizeof path, "%s/caps/curves.csv", getenv("TW_DATA") ? getenv("TW_DATA") : "");
    if (tw_file_read(path, 64U << 20, &text, &n, NULL) != TW_OK) {
        printf("skipped: no curves.csv under TW_DATA\n");
        skip();
    }
    for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        take_row(line);
    free(text);
    assert_true(n_curves > 60);

    static unsigned char block[1 << 18];
    static struct tw_plant_job job[10];
    struct tw_arena arena;
    struct tw_plant *p = NULL;
    assert_int_equal(tw_plant_default_jobs(64, 10, job, NULL), TW_OK);
    struct tw_plant_conf conf = {.seed = 1, .board = &tw_board_h100, .job = job, .n_job = 10, .n_gpu = 64};
    tw_arena_init(&arena, block, sizeof block);
    assert_int_equal(tw_plant_new(&arena, &conf, &p, NULL), TW_OK);
    tw_plant_advance(p, 1000000);

    int inside_half = 0;
    for (int k = 0; k < CUTS; k++) {
        double kept[CURVES];
        size_t m = 0;
        for (size_t i = 0; i < n_curves; i++) {
            double v = public_kept(&curve[i], 1.0 - cut[k]);
            if (!isnan(v))
                kept[m++] = v;
        }
        assert_true(m > 40);
        tw_stat_sort(kept, m);
        double low = tw_stat_quantile_sorted(kept, m, 0.05), high = tw_stat_quantile_sorted(kept, m, 0.95);
        printf("    cut %2.0f %%: %zu public curves keep %.3f to %.3f (5 to 95 %%: %.3f to %.3f, median %.3f); "
               "plant:",
               100.0 * cut[k], m, kept[0], kept[m - 1], low, high, tw_stat_quantile_sorted(kept, m, 0.5));
        for (uint32_t j = 0; j < 10; j++) {
            double v = plant_kept(p, j, 1.0 - cut[k]);
            printf(" %.3f", v);
            if (!(v >= kept[0] && v <= kept[m - 1]))
                fail_msg("%s keeps %.3f at a cut of %.0f %%", job[j].name, v, 100.0 * cut[k]);
            inside_half += v >= low && v <= high;
        }
        printf("\n");
    }
    printf("    %d of 30 points of the plant lie between the 5 and 95 %% quantiles of the public ones\n",
           inside_half);
    assert_true(inside_half >= 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_envelope)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
