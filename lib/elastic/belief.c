/* SPDX-License-Identifier: Apache-2.0 */
/* Posterior of a two-parameter curve by its mode and curvature. Two parameters and a normal prior keep the
 * surface smooth, so a few damped Gauss-Newton steps reach the mode from the prior mean. */
#include "elastic/belief.h"

#include "elastic/fit.h"

#include <math.h>
#include <stdbool.h>

/* Medians over 176 public jobs with four or more points that reach below 75 % of their own power (perseus,
 * zeus, ada, emerald, rtx4000ada_kernels, gridpilot_v100 at 1380 MHz; least-squares fits of the exp family);
 * deviations are a third wider than the 10-90 % spread of those jobs, since a new job comes from elsewhere. */
const struct tw_belief_prior tw_belief_public = {{1.65, -2.16}, {0.55, 0.80}};

enum { STEPS = 30 };

/* loss(d) and its derivatives by theta = (ln k, ln loss at the reference cut). */
static double loss_of(const double theta[static 2], double d, double grad[static 2])
{
    const double k = exp(theta[0]), ref = k * TW_BELIEF_CUT, kd = k * d;
    double loss = exp(theta[1]) * expm1(kd) / expm1(ref);
    grad[0] = loss * (kd / -expm1(-kd) - ref / -expm1(-ref));
    grad[1] = loss;
    return loss;
}

/* Half the negative log posterior up to a constant; gradient g and Gauss-Newton matrix h (00, 01, 11). */
static double surface(const struct tw_belief *b, const double theta[static 2], double g[static 2],
                      double h[static 3])
{
    double cost = 0.0;
    h[1] = 0.0;
    for (int p = 0; p < 2; p++) {
        double z = (theta[p] - b->prior.mean[p]) / b->prior.sd[p];
        cost += 0.5 * z * z;
        g[p] = z / b->prior.sd[p];
        h[2 * p] = 1.0 / (b->prior.sd[p] * b->prior.sd[p]);
    }
    for (unsigned i = 0; i < b->n; i++) {
        double d = 1.0 - b->x[i], grad[2];
        double r = loss_of(theta, d, grad) - (1.0 - b->t[i]);
        double rise = (1.0 - b->t[i]) / d; /* chord: how much of the power noise shows in t */
        double var = b->sigma_t[i] * b->sigma_t[i] + rise * rise * b->sigma_x[i] * b->sigma_x[i] +
                     TW_BELIEF_MISFIT * TW_BELIEF_MISFIT;
        cost += 0.5 * r * r / var;
        for (int p = 0; p < 2; p++)
            g[p] += r * grad[p] / var;
        h[0] += grad[0] * grad[0] / var;
        h[1] += grad[0] * grad[1] / var;
        h[2] += grad[1] * grad[1] / var;
    }
    return cost;
}

static void clamp_theta(double theta[static 2])
{
    theta[0] = fmin(fmax(theta[0], log(TW_CURVE_K_MIN)), log(TW_CURVE_K_MAX));
    theta[1] = fmin(fmax(theta[1], log(1e-6)), 0.0);
}

static void find_mode(struct tw_belief *b)
{
    double theta[2] = {b->prior.mean[0], b->prior.mean[1]}, g[2], h[3], damp = 1e-3;
    double cost = surface(b, theta, g, h);
    for (int step = 0; step < STEPS && damp < 1e8; step++) {
        double a = h[0] * (1.0 + damp), c = h[2] * (1.0 + damp), det = a * c - h[1] * h[1];
        double trial[2] = {theta[0] - (c * g[0] - h[1] * g[1]) / det,
                           theta[1] - (a * g[1] - h[1] * g[0]) / det};
        double g2[2], h2[3];
        clamp_theta(trial);
        double moved = surface(b, trial, g2, h2);
        if (!(moved <= cost)) {
            damp *= 8.0;
            continue;
        }
        bool done = fabs(trial[0] - theta[0]) + fabs(trial[1] - theta[1]) < 1e-9;
        for (int p = 0; p < 2; p++) {
            theta[p] = trial[p];
            g[p] = g2[p];
        }
        for (int p = 0; p < 3; p++)
            h[p] = h2[p];
        cost = moved;
        damp = fmax(damp / 8.0, 1e-9);
        if (done)
            break;
    }
    double det = h[0] * h[2] - h[1] * h[1];
    b->mode[0] = theta[0];
    b->mode[1] = theta[1];
    b->cov[0] = h[2] / det;
    b->cov[1] = -h[1] / det;
    b->cov[2] = h[0] / det;
}

static void spread(struct tw_belief *b)
{
    static const double node[3] = {-1.7320508075688772, 0.0, 1.7320508075688772};
    static const double weight[3] = {1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0};
    double l00 = sqrt(b->cov[0]), l10 = b->cov[1] / l00, l11 = sqrt(fmax(b->cov[2] - l10 * l10, 0.0));
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            double theta[2] = {b->mode[0] + l00 * node[i], b->mode[1] + l10 * node[i] + l11 * node[j]};
            clamp_theta(theta);
            struct tw_curve c = tw_curve_of_loss(exp(theta[0]), TW_BELIEF_CUT, exp(theta[1]));
            b->k[3 * i + j] = c.k;
            b->b[3 * i + j] = c.b;
            b->weight[3 * i + j] = weight[i] * weight[j];
        }
    }
}

void tw_belief_init(struct tw_belief *b, const struct tw_belief_prior *prior)
{
    *b = (struct tw_belief){.prior = prior ? *prior : tw_belief_public};
    find_mode(b);
    spread(b);
}

enum tw_err tw_belief_add(struct tw_belief *b, double x, double t, double sigma_x, double sigma_t)
{
    if (!(x > 0.0 && x < 1.0 && t >= 0.0 && isfinite(t) && sigma_x >= 0.0 && isfinite(sigma_x) &&
          sigma_t > 0.0 && isfinite(sigma_t)))
        return TW_EINVAL;
    unsigned i = b->next;
    b->x[i] = x;
    b->t[i] = t;
    b->sigma_x[i] = sigma_x;
    b->sigma_t[i] = sigma_t;
    b->next = (i + 1) % TW_BELIEF_POINTS;
    if (b->n < TW_BELIEF_POINTS)
        b->n++;
    find_mode(b);
    spread(b);
    return TW_OK;
}

/* Mean and deviation over the nine curves of value or slope at x. */
static double over_curves(const struct tw_belief *b, double x, double (*of)(const struct tw_curve *, double),
                          double *ret_sd)
{
    double mean = 0.0, square = 0.0;
    for (int i = 0; i < TW_BELIEF_CURVES; i++) {
        struct tw_curve c = {.family = TW_CURVE_EXP, .k = b->k[i], .b = b->b[i]};
        double v = of(&c, x);
        mean += b->weight[i] * v;
        square += b->weight[i] * v * v;
    }
    if (ret_sd)
        *ret_sd = sqrt(fmax(square - mean * mean, 0.0));
    return mean;
}

double tw_belief_value(const struct tw_belief *b, double x, double *ret_sd)
{
    return over_curves(b, x, tw_curve_value, ret_sd);
}

double tw_belief_slope(const struct tw_belief *b, double x, double *ret_sd)
{
    return over_curves(b, x, tw_curve_slope, ret_sd);
}

struct tw_curve tw_belief_curve(const struct tw_belief *b)
{
    enum { N = 10 };
    double x[N], t[N];
    for (int i = 0; i < N; i++) {
        x[i] = 0.5 + 0.05 * i;
        t[i] = tw_belief_value(b, x[i], NULL);
    }
    return tw_fit_exp(x, t, N).curve;
}

double tw_belief_stray(const struct tw_belief *b, double x)
{
    double sd, slope = tw_belief_slope(b, x, &sd);
    return sd > TW_STRAY_GAIN * slope ? TW_STRAY_GAIN * slope / sd : 1.0;
}
