/* SPDX-License-Identifier: Apache-2.0 */
/* The linear system of all known jobs, and one job's posterior. */
#include "elastic/prior.h"

#include "elastic/fit.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { K = TW_PRIOR_KNOTS, N = TW_KNOWN_CUTS, TERMS = 5 };

static const double knot[K] = {0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.40, 0.50, 0.65};

const struct tw_prior_hyper tw_prior_public = {
    .mean = {-1.00, -0.95, -0.85, -0.70, -0.50, -0.30, 0.10, 0.60, 1.30},
    .all = {1.467, 1.000, 1.467, 0.587, 0.200},
    .board = {0.793, 1.000, 0.793, 0.529, 0.150},
    .kind = {0.037, 1.000, 0.018, 0.007, 0.150},
    .use = {0.061, 1.000, 0.020, 0.008, 0.150},
    .use_on_board = {0.277, 1.000, 0.277, 0.055, 0.150},
    .own = {0.248, 1.000, 0.093, 0.093, 0.080},
    .use_mid = 0.85,
    .use_scale = 0.15,
};

/* --- terms -------------------------------------------------------------------------------------------------
 */

static double term_cov(const struct tw_prior_term *t, double d, double e)
{
    double z = (d - e) / t->reach, l = (d - e) / t->run, sd = (d - 0.25) / 0.2, se = (e - 0.25) / 0.2;
    return t->level * t->level * exp(-0.5 * l * l) + t->tilt * t->tilt * sd * se +
           t->bend * t->bend * exp(-0.5 * z * z);
}

/* In place: lower Cholesky factor of a [n][n]; false when it is not positive. */
static bool cholesky(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double s = a[i * n + j];
            const double *ri = a + i * n, *rj = a + j * n;
            for (size_t k = 0; k < j; k++)
                s -= ri[k] * rj[k];
            if (j < i)
                a[i * n + j] = s / a[j * n + j];
            else if (s > 0.0)
                a[i * n + i] = sqrt(s);
            else
                return false;
        }
    }
    return true;
}

static void solve_lower(const double *l, size_t n, double *b)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            b[i] -= l[i * n + k] * b[k];
        b[i] /= l[i * n + i];
    }
}

static void solve_upper(const double *l, size_t n, double *b) /* with the transpose of l */
{
    for (size_t i = n; i-- > 0;) {
        b[i] /= l[i * n + i];
        for (size_t k = 0; k < i; k++)
            b[k] -= l[i * n + k] * b[i];
    }
}

/* Value at a cut as a weighted sum of the values at the knots: the smoothest way through them (a normal process
 * of great level and tilt). Straight lines between knots would put kinks into every loss, and a split goes for
 * kinks. */
static void knot_weights(double cut, double ret[static K])
{
    static const struct tw_prior_term smooth = {10.0, 100.0, 10.0, 1.0, 0.15};
    double c[K * K];
    for (int i = 0; i < K; i++) {
        ret[i] = term_cov(&smooth, knot[i], cut);
        for (int j = 0; j <= i; j++)
            c[i * K + j] = term_cov(&smooth, knot[i], knot[j]) + (i == j ? 1e-6 : 0.0);
    }
    bool ok = cholesky(c, K);
    assert(ok);
    (void)ok;
    solve_lower(c, K, ret);
    solve_upper(c, K, ret);
}

/* --- points ------------------------------------------------------------------------------------------------
 */

struct look {
    double cut, v, var;
};

/* A point as a look at v, or false when it says nothing. Where noise hides the slowdown, v is low and wide. */
static bool look_at(double x, double t, double noise_frac, struct look *ret)
{
    double d = 1.0 - x;
    if (!(d >= TW_PRIOR_LEAST_CUT && d <= N * TW_KNOWN_STEP && t > 0.0 && isfinite(t)))
        return false;
    double rise = fmin(fmax((1.0 - t) / d, 0.3), 1.5); /* power noise shows through the slope */
    double sp = TW_RUN_SD_POWER * rise, st = noise_frac;
    double sd = sqrt(st * st * (1.0 + t * t) + sp * sp * (1.0 + x * x)) / (t * t); /* of the slowdown */
    double slow = 1.0 / t - 1.0, wide = sd / fmax(slow, sd);
    *ret = (struct look){d, log(fmax(slow, 0.5 * sd) / d), wide * wide};
    return true;
}

void tw_prior_digest(const struct tw_prior_hyper *h, const struct tw_prior_job *job,
                     struct tw_prior_digest *ret)
{
    double v[TW_PRIOR_POINTS * TW_PRIOR_POINTS], col[TW_PRIOR_POINTS], w[TW_PRIOR_POINTS][K];
    double half[K + 1][TW_PRIOR_POINTS]; /* L^-1 times each knot's column, and times u */
    struct look look[TW_PRIOR_POINTS];
    size_t n = 0;
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < job->n && n < TW_PRIOR_POINTS; i++)
        n += look_at(job->x[i], job->t[i], job->noise_frac, &look[n]);
    for (size_t i = 0; i < n; i++)
        knot_weights(look[i].cut, w[i]);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            v[i * n + j] = term_cov(&h->own, look[i].cut, look[j].cut) + (i == j ? look[i].var : 0.0);
    if (n == 0 || !cholesky(v, n))
        return;
    for (int k = 0; k <= K; k++) {
        for (size_t i = 0; i < n; i++)
            col[i] = k == K ? look[i].v : w[i][k];
        solve_lower(v, n, col);
        memcpy(half[k], col, n * sizeof *col);
    }
    for (int a = 0; a < K; a++) {
        for (size_t i = 0; i < n; i++)
            ret->pull[a] += half[a][i] * half[K][i];
        for (int b = 0; b < K; b++)
            for (size_t i = 0; i < n; i++)
                ret->info[a][b] += half[a][i] * half[b][i];
    }
}

/* --- the system --------------------------------------------------------------------------------------------
 */

/* Blocks of unknowns: all, use, then board and use_on_board of every board, then every kind. */
static size_t unknowns(uint32_t boards, uint32_t kinds)
{
    return (size_t)K * (2 + 2 * (size_t)boards + kinds);
}

size_t tw_prior_bytes(uint32_t boards, uint32_t kinds)
{
    size_t m = unknowns(boards, kinds);
    return tw_arena_need(m * m, sizeof(double)) + tw_arena_need(m, sizeof(double)) + TW_ARENA_ALIGN;
}

struct part {
    size_t block;
    double factor;
};

static double use_of(const struct tw_prior_hyper *h, double use_frac)
{
    double z = (use_frac - h->use_mid) / h->use_scale;
    return isfinite(z) ? fmin(fmax(z, -3.0), 1.5) : 0.0;
}

static void parts_of(const struct tw_prior_hyper *h, uint32_t boards, uint32_t board, uint32_t kind,
                     double use_frac, struct part ret[static TERMS])
{
    double use = use_of(h, use_frac);
    ret[0] = (struct part){0, 1.0};
    ret[1] = (struct part){1, use};
    ret[2] = (struct part){2 + (size_t)board, 1.0};
    ret[3] = (struct part){2 + (size_t)boards + board, use};
    ret[4] = (struct part){2 + 2 * (size_t)boards + kind, 1.0};
}

static const struct tw_prior_term *term_of(const struct tw_prior_hyper *h, uint32_t boards, size_t block)
{
    return block == 0               ? &h->all
           : block == 1             ? &h->use
           : block < 2 + boards     ? &h->board
           : block < 2 + 2 * boards ? &h->use_on_board
                                    : &h->kind;
}

/* The inverse of a term's covariance at the knots into the diagonal block. */
static bool add_term(const struct tw_prior_term *t, double *a, size_t m, size_t at)
{
    double c[K * K], e[K];
    for (int i = 0; i < K; i++)
        for (int j = 0; j < K; j++)
            c[i * K + j] = term_cov(t, knot[i], knot[j]) + (i == j ? 1e-6 : 0.0);
    if (!cholesky(c, K))
        return false;
    for (int j = 0; j < K; j++) {
        memset(e, 0, sizeof e);
        e[j] = 1.0;
        solve_lower(c, K, e);
        solve_upper(c, K, e);
        for (int i = 0; i < K; i++)
            a[(at + (size_t)i) * m + at + (size_t)j] += e[i];
    }
    return true;
}

static void add_job(const struct tw_prior *p, const struct tw_prior_job *j, const struct tw_prior_digest *g,
                    double share, double *a, double *b)
{
    struct part part[TERMS];
    parts_of(p->hyper, p->boards, j->board, j->kind, j->use_frac, part);
    for (int r = 0; r < TERMS; r++) {
        for (int i = 0; i < K; i++) {
            size_t row = part[r].block * K + (size_t)i;
            b[row] += share * part[r].factor * g->pull[i];
            for (int s = 0; s < TERMS; s++) {
                double f = share * part[r].factor * part[s].factor;
                double *to = a + row * p->m + part[s].block * K;
                for (int k = 0; k < K; k++)
                    to[k] += f * g->info[i][k];
            }
        }
    }
}

static bool left_out(const struct tw_prior_job *job, size_t i, struct tw_prior_leave leave)
{
    return job[i].model == leave.model || i == leave.job;
}

/* One over the number of used jobs that are variants of job i. */
static double share_of(const struct tw_prior_job *job, size_t n, size_t i, struct tw_prior_leave leave)
{
    double count = 0.0;
    for (size_t k = 0; k < n; k++)
        count += job[k].model == job[i].model && job[k].board == job[i].board && job[k].kind == job[i].kind &&
                 !left_out(job, k, leave);
    return 1.0 / count;
}

enum tw_err tw_prior_fit(struct tw_prior *ret, const struct tw_prior_hyper *hyper,
                         const struct tw_prior_job *job, const struct tw_prior_digest *digest, size_t n,
                         uint32_t boards, uint32_t kinds, struct tw_prior_leave leave, struct tw_arena *arena,
                         struct tw_why *why)
{
    if (boards > TW_PRIOR_GROUPS || kinds > TW_PRIOR_GROUPS)
        return tw_fail(why, TW_ELIMIT, "prior: %u boards and %u kinds, at most %d of each", boards, kinds,
                       TW_PRIOR_GROUPS);
    for (size_t i = 0; i < n; i++)
        if (job[i].board >= boards || job[i].kind >= kinds)
            return tw_fail(why, TW_EINVAL, "prior: job %zu is on board %u of %u, kind %u of %u", i,
                           job[i].board, boards, job[i].kind, kinds);
    struct tw_prior p = {.hyper = hyper, .boards = boards, .kinds = kinds, .m = unknowns(boards, kinds)};
    p.factor = TW_ARENA_ARRAY(arena, double, p.m *p.m);
    p.weight = TW_ARENA_ARRAY(arena, double, p.m);
    if (!p.factor || !p.weight)
        return tw_fail(why, TW_ENOMEM, "prior: the arena is too small for %u boards", boards);
    bool ok = true;
    for (size_t block = 0; block < p.m / K; block++)
        ok = add_term(term_of(hyper, boards, block), p.factor, p.m, block * K) && ok;
    for (size_t i = 0; i < K; i++) /* the mean of `all` is not 0 */
        for (size_t k = 0; k < K; k++)
            p.weight[i] += p.factor[i * p.m + k] * hyper->mean[k];
    for (size_t i = 0; i < n; i++) {
        if (left_out(job, i, leave))
            continue;
        add_job(&p, &job[i], &digest[i], share_of(job, n, i, leave), p.factor, p.weight);
        p.used++;
    }
    if (!ok || !cholesky(p.factor, p.m))
        return tw_fail(why, TW_EINTERNAL, "prior: the system is not positive");
    solve_lower(p.factor, p.m, p.weight);
    solve_upper(p.factor, p.m, p.weight);
    *ret = p;
    return TW_OK;
}

/* --- one job -----------------------------------------------------------------------------------------------
 */

size_t tw_prior_know_bytes(const struct tw_prior *p)
{
    return tw_arena_need(K * p->m, sizeof(double)) + TW_ARENA_ALIGN;
}

static double cut_of(int i)
{
    return TW_KNOWN_STEP * (i + 1);
}

enum tw_err tw_prior_know(const struct tw_prior *p, uint32_t board, uint32_t kind, double use_frac,
                          struct tw_arena *scratch, struct tw_known *ret)
{
    if (board >= p->boards || kind >= p->kinds)
        return TW_EINVAL;
    size_t mark = tw_arena_mark(scratch);
    double *half = TW_ARENA_ARRAY(scratch, double, K * p->m); /* L^-1 Z' */
    if (!half)
        return TW_ENOMEM;
    struct part part[TERMS];
    double mean[K] = {0}, cov[K][K] = {{0}};
    parts_of(p->hyper, p->boards, board, kind, use_frac, part);
    for (size_t k = 0; k < K; k++) {
        for (int r = 0; r < TERMS; r++) {
            half[k * p->m + part[r].block * K + k] += part[r].factor;
            mean[k] += part[r].factor * p->weight[part[r].block * K + k];
        }
        solve_lower(p->factor, p->m, half + k * p->m);
    }
    for (size_t i = 0; i < K; i++)
        for (size_t j = 0; j < K; j++)
            for (size_t k = 0; k < p->m; k++)
                cov[i][j] += half[i * p->m + k] * half[j * p->m + k];
    tw_arena_release(scratch, mark);
    double w[N][K];
    for (int i = 0; i < N; i++)
        knot_weights(cut_of(i), w[i]);
    for (int i = 0; i < N; i++) {
        ret->mean[i] = 0.0;
        for (int a = 0; a < K; a++)
            ret->mean[i] += w[i][a] * mean[a];
    }
    for (int i = 0; i < N; i++) {
        double row[K] = {0};
        for (int a = 0; a < K; a++)
            for (int b = 0; b < K; b++)
                row[b] += w[i][a] * cov[a][b];
        for (int j = 0; j < N; j++) {
            ret->cov[i][j] = term_cov(&p->hyper->own, cut_of(i), cut_of(j));
            for (int b = 0; b < K; b++)
                ret->cov[i][j] += row[b] * w[j][b];
        }
    }
    return TW_OK;
}

/* The two grid cuts around a cut. */
static int between_cuts(double cut, double *ret_right)
{
    double at = cut / TW_KNOWN_STEP - 1.0;
    int i = at <= 0.0 ? 0 : at >= N - 2 ? N - 2 : (int)at;
    *ret_right = fmin(fmax(at - i, 0.0), 1.0);
    return i;
}

static double v_mean(const struct tw_known *k, double cut)
{
    double w;
    int i = between_cuts(cut, &w);
    return (1.0 - w) * k->mean[i] + w * k->mean[i + 1];
}

/* Covariance of v at every grid cut with v at `cut`; returns its variance. */
static double v_cov(const struct tw_known *k, double cut, double ret[static N])
{
    double w;
    int i = between_cuts(cut, &w);
    for (int j = 0; j < N; j++)
        ret[j] = (1.0 - w) * k->cov[j][i] + w * k->cov[j][i + 1];
    return (1.0 - w) * ret[i] + w * ret[i + 1];
}

/* How a look differs from what was expected, its variance, and the covariance of every grid cut with it. */
static double surprise(const struct tw_known *k, const struct look *look, double *ret_var,
                       double ret_cov[static N])
{
    *ret_var = v_cov(k, look->cut, ret_cov) + look->var;
    return look->v - v_mean(k, look->cut);
}

static double log_normal(double miss, double var)
{
    return -0.5 * (miss * miss / var + log(2.0 * 3.14159265358979323846 * var));
}

double tw_known_density(const struct tw_known *k, double x, double t, double noise_frac)
{
    struct look look;
    double c[N], var;
    if (!look_at(x, t, noise_frac, &look))
        return 0.0;
    double miss = surprise(k, &look, &var, c);
    return log_normal(miss, var);
}

double tw_known_add(struct tw_known *k, double x, double t, double noise_frac)
{
    struct look look;
    double c[N], var;
    if (!look_at(x, t, noise_frac, &look))
        return 0.0;
    double miss = surprise(k, &look, &var, c);
    for (int i = 0; i < N; i++) {
        k->mean[i] += c[i] * miss / var;
        for (int j = 0; j < N; j++)
            k->cov[i][j] -= c[i] * c[j] / var;
    }
    return log_normal(miss, var);
}

double tw_known_loss(const struct tw_known *k, double cut, double *ret_sd)
{
    /* Gauss-Hermite, five nodes. */
    static const double node[5] = {-2.856970013872806, -1.355626179974266, 0.0, 1.355626179974266,
                                   2.856970013872806};
    static const double weight[5] = {0.011257411327721, 0.222075922005613, 0.533333333333333, 0.222075922005613,
                                     0.011257411327721};
    double c[N], sd = sqrt(fmax(v_cov(k, cut, c), 0.0)), mid = v_mean(k, cut), mean = 0.0, square = 0.0;
    for (int i = 0; i < 5; i++) {
        double slow = cut * exp(mid + node[i] * sd), loss = slow / (1.0 + slow);
        mean += weight[i] * loss;
        square += weight[i] * loss * loss;
    }
    if (ret_sd)
        *ret_sd = sqrt(fmax(square - mean * mean, 0.0));
    return mean;
}

/* Pool adjacent violators: the nearest slopes that do not fall with the cut, weighted by the width of their
 * piece. */
static void make_rising(double *slope, const double *width, size_t n)
{
    double sum[TW_CURVE_KNOT_MAX], wide[TW_CURVE_KNOT_MAX];
    size_t first[TW_CURVE_KNOT_MAX + 1], blocks = 0;
    for (size_t i = 0; i < n; i++) {
        sum[blocks] = slope[i] * width[i];
        wide[blocks] = width[i];
        first[blocks++] = i;
        while (blocks > 1 && sum[blocks - 2] * wide[blocks - 1] > sum[blocks - 1] * wide[blocks - 2]) {
            sum[blocks - 2] += sum[blocks - 1];
            wide[blocks - 2] += wide[blocks - 1];
            blocks--;
        }
    }
    first[blocks] = n;
    for (size_t b = 0; b < blocks; b++)
        for (size_t i = first[b]; i < first[b + 1]; i++)
            slope[i] = sum[b] / wide[b];
}

/* Knots at cut [n], ascending. Down to a cut of 45 % slopes are pooled; below, where expected throughput levels
 * off towards nothing, a slope is at least that above it, so that what lies too deep to be used does not bend
 * what is used. */
static struct tw_curve curve_through(const struct tw_known *k, const double *cut, size_t n)
{
    const double deep = 0.45, least = 1e-4; /* a slope of 0 would make free watts */
    double slope[TW_CURVE_KNOT_MAX], width[TW_CURVE_KNOT_MAX], below = 0.0;
    size_t near = 0;
    for (size_t i = 0; i < n; i++) {
        double loss = tw_known_loss(k, cut[i], NULL);
        width[i] = cut[i] - (i ? cut[i - 1] : 0.0);
        slope[i] = (loss - below) / width[i];
        below = loss;
    }
    while (near < n && cut[near] <= deep)
        near++;
    make_rising(slope, width, near);
    for (size_t i = near > 0 ? near : 1; i < n; i++)
        slope[i] = fmax(slope[i], slope[i - 1]);
    struct tw_curve c = {.family = TW_CURVE_KNOTS, .n = (unsigned)n + 1};
    c.x[n] = c.t[n] = 1.0;
    for (size_t i = 0; i < n; i++) {
        c.x[n - 1 - i] = 1.0 - cut[i];
        c.t[n - 1 - i] = c.t[n - i] - fmax(slope[i], least * (double)(i + 1)) * width[i];
    }
    return c;
}

struct tw_curve tw_known_curve(const struct tw_known *k)
{
    /* Close together where a split ends up, since a split on straight pieces ends at their ends. */
    static const double cut[TW_CURVE_KNOT_MAX - 1] = {0.05, 0.08, 0.10, 0.12, 0.14, 0.16, 0.18, 0.20,
                                                      0.22, 0.24, 0.26, 0.28, 0.30, 0.32, 0.34, 0.36,
                                                      0.38, 0.40, 0.43, 0.46, 0.50, 0.58, 0.76};
    return curve_through(k, cut, TW_CURVE_KNOT_MAX - 1);
}

/* Covariance of the slope of the loss near a depth with v at a probe, of which c is the covariance with every
 * cut: d loss / d v is t (1 - t). */
static double slope_cov(const struct tw_known *k, const double c[static N], double depth)
{
    const double half = 2.0 * TW_KNOWN_STEP, lo = fmax(depth - half, TW_KNOWN_STEP), hi = lo + 2.0 * half;
    double wl, wh, loss_l = tw_known_loss(k, lo, NULL), loss_h = tw_known_loss(k, hi, NULL);
    int l = between_cuts(lo, &wl), h = between_cuts(hi, &wh);
    double low = (1.0 - wl) * c[l] + wl * c[l + 1], high = (1.0 - wh) * c[h] + wh * c[h + 1];
    return (loss_h * (1.0 - loss_h) * high - loss_l * (1.0 - loss_l) * low) / (hi - lo);
}

double tw_known_gain(const struct tw_known *k, double cut, double depth, double share)
{
    enum { DEPTHS = 3 };
    const double apart = 0.1, wide = 0.15, least_bend = 0.5;
    double c[N], var, told = 0.0, loss = tw_known_loss(k, cut, NULL);
    struct look look;
    if (!look_at(1.0 - cut, 1.0 - loss, TW_RUN_SD_THROUGHPUT, &look))
        return -(double)INFINITY;
    var = v_cov(k, cut, c) + look.var;
    for (int i = 0; i < DEPTHS; i++) { /* where the split will hold it is not known exactly */
        double s = slope_cov(k, c, depth + apart * (i - 1));
        told += s * s / DEPTHS;
    }
    struct tw_curve curve = tw_known_curve(k);
    double bend = (tw_curve_slope(&curve, 1.0 - depth - wide) - tw_curve_slope(&curve, 1.0 - depth + wide)) /
                  (2.0 * wide);
    return 0.5 * told / var / fmax(bend, least_bend) - loss * share;
}

double tw_known_probe(const struct tw_known *k, double low, double high, double step, double depth,
                      double share, double *ret_gain)
{
    double best = low, gain = -(double)INFINITY;
    for (int i = 0; low + i * step <= high + 1e-9; i++) {
        double g = tw_known_gain(k, low + i * step, depth, share);
        if (g > gain) {
            gain = g;
            best = low + i * step;
        }
    }
    if (ret_gain)
        *ret_gain = gain;
    return best;
}
