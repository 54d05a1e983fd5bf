/* SPDX-License-Identifier: Apache-2.0 */
/* One closed loop. */
#include "run/loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POLL_S 0.1     /* of simulated time between a write and its reading back */
#define POLLS 6        /* in a turn */
#define GLANCE_S 0.1   /* between two looks at the draw while a budget binds */
#define RESTORES 5     /* turns that may be spent on putting limits back */
#define WATCH_SHARE 10 /* all limits are read back once in so many turns */

static enum tw_err build(struct tw_loop *l, const struct tw_ctl_conf *conf, struct tw_why *why)
{
    size_t bytes = TW_ARENA_ALIGN + tw_ctl_bytes(l->n_gpu, l->n_job) +
                   tw_arena_need(l->n_gpu, sizeof *l->sample.gpu) +
                   tw_arena_need(l->n_job, sizeof *l->sample.job) + tw_arena_need(l->n_gpu, sizeof *l->action);
    l->mem = malloc(bytes);
    if (!l->mem)
        return tw_fail(why, TW_ENOMEM, "no memory for a site of %zu GPUs", l->n_gpu);
    struct tw_arena arena;
    tw_arena_init(&arena, l->mem, bytes);
    l->sample.gpu = TW_ARENA_ARRAY(&arena, struct tw_gpu_sample, l->n_gpu);
    l->sample.job = TW_ARENA_ARRAY(&arena, struct tw_job_sample, l->n_job);
    l->action = TW_ARENA_ARRAY(&arena, struct tw_ctl_action, l->n_gpu);
    enum tw_err err = tw_ctl_init(&arena, conf, l->gpu, l->n_gpu, l->job, l->n_job, &l->ctl, why);
    for (size_t i = 0; err == TW_OK && l->device.cap && i < l->n_gpu; i++) {
        double requested, enforced;
        /* one that cannot be read now is taken to be at its default, and is seen as blind soon */
        if (l->device.cap_ops->read(l->device.cap, l->gpu[i].uuid, &requested, &enforced, NULL) == TW_OK)
            tw_ctl_found(l->ctl, (uint32_t)i, enforced);
    }
    return err;
}

enum tw_err tw_loop_open(struct tw_loop *ret, const char *source, const struct tw_ctl_conf *conf,
                         struct tw_why *why)
{
    struct tw_loop l = {.mem = NULL};
    enum tw_err err = tw_device_open(source, &l.device, why);
    if (err != TW_OK)
        return err;
    if (!l.device.cap && conf->policy != TW_STEER_NONE)
        err = tw_fail(why, TW_EUNSUPPORTED, "%s only reads; no limit can be written there", source);
    if (err == TW_OK)
        err = l.device.source_ops->describe(l.device.source, &l.gpu, &l.n_gpu, &l.job, &l.n_job, why);
    if (err == TW_OK)
        err = build(&l, conf, why);
    if (err != TW_OK) {
        tw_loop_close(&l);
        return err;
    }
    *ret = l;
    return TW_OK;
}

void tw_loop_close(struct tw_loop *loop)
{
    if (!loop)
        return;
    tw_device_close(&loop->device);
    free(loop->mem);
    memset(loop, 0, sizeof *loop);
}

static void read_back(struct tw_loop *l, uint32_t gpu)
{
    double requested, enforced;
    if (l->device.cap_ops->read(l->device.cap, l->gpu[gpu].uuid, &requested, &enforced, NULL) == TW_OK)
        tw_ctl_read_back(l->ctl, gpu, requested, enforced);
}

static void write_limits(struct tw_loop *l, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const struct tw_ctl_action *a = &l->action[k];
        l->writes++;
        if (l->device.cap_ops->write(l->device.cap, l->gpu[a->gpu].uuid, a->limit_w, NULL) != TW_OK) {
            l->refusals++;
            tw_ctl_refused(l->ctl, a->gpu);
        }
    }
}

static enum tw_err pass(struct tw_loop *l, double dt_s, struct tw_why *why)
{
    if (!l->device.source_ops->advance || !(dt_s > 0.0))
        return TW_OK;
    return l->device.source_ops->advance(l->device.source, dt_s, why);
}

/* Read back what is in flight; how many limits still are. */
static size_t confirm(struct tw_loop *l)
{
    size_t n = 0;
    for (uint32_t i = 0; i < l->n_gpu; i++) {
        if (!tw_ctl_awaits(l->ctl, i))
            continue;
        read_back(l, i);
        n += tw_ctl_awaits(l->ctl, i);
    }
    return n;
}

/* Send what the controller wants: what lowers, and when that was read back what it made room for. Gives up for
 * this turn after POLLS; what is in flight then is read back in the next. Returns the simulated time it took
 * through ret_s. */
static enum tw_err carry_out(struct tw_loop *l, double dt_s, double *ret_s, struct tw_why *why)
{
    *ret_s = 0.0;
    for (int poll = 0; poll < POLLS; poll++) {
        size_t n = tw_ctl_actions(l->ctl, l->action);
        write_limits(l, n);
        if (n == 0 && confirm(l) == 0)
            return TW_OK;
        double wait = fmin(POLL_S, dt_s - *ret_s);
        enum tw_err err = pass(l, wait, why);
        if (err != TW_OK)
            return err;
        *ret_s += wait;
        (void)confirm(l); /* what is left shows in the next round */
    }
    return TW_OK;
}

/* Limits that somebody else may have moved: a tenth of them a turn. */
static void watch(struct tw_loop *l)
{
    for (size_t k = 0; k < (l->n_gpu + WATCH_SHARE - 1) / WATCH_SHARE; k++) {
        read_back(l, (uint32_t)l->watch);
        l->watch = (l->watch + 1) % l->n_gpu;
    }
}

enum tw_err tw_loop_turn(struct tw_loop *l, double dt_s, struct tw_why *why)
{
    enum tw_err err = l->device.source_ops->read(l->device.source, &l->sample, why);
    if (err != TW_OK)
        return err;
    if (!l->device.cap) {
        tw_ctl_step(l->ctl, &l->sample);
        return pass(l, dt_s, why);
    }
    (void)confirm(l); /* what the turn before left in flight */
    tw_ctl_step(l->ctl, &l->sample);
    watch(l);
    double used, left = dt_s;
    err = carry_out(l, left, &used, why);
    left -= used;
    while (err == TW_OK && tw_loop_is_simulated(l) && tw_ctl_wants_glances(l->ctl) && left > 1.5 * GLANCE_S) {
        err = pass(l, GLANCE_S, why);
        if (err == TW_OK)
            err = l->device.source_ops->read(l->device.source, &l->sample, why);
        if (err != TW_OK)
            return err;
        (void)confirm(l);
        tw_ctl_glance(l->ctl, &l->sample);
        left -= GLANCE_S;
        err = carry_out(l, left, &used, why);
        left -= used;
    }
    return err == TW_OK ? pass(l, left, why) : err;
}

enum tw_err tw_loop_restore(struct tw_loop *l, struct tw_why *why)
{
    if (!l->device.cap)
        return TW_OK;
    tw_ctl_leave(l->ctl);
    double used;
    for (int k = 0; k < RESTORES && !tw_ctl_has_left(l->ctl); k++) {
        enum tw_err err = carry_out(l, 1.0, &used, why);
        if (err != TW_OK)
            return err;
    }
    if (tw_ctl_has_left(l->ctl))
        return TW_OK;
    return tw_fail(why, TW_EIO, "%zu of %zu limits could not be put back", tw_ctl_not_restored(l->ctl),
                   l->n_gpu);
}

double tw_loop_total(const struct tw_loop *l)
{
    double sum = 0.0;
    for (size_t j = 0; j < l->n_job; j++)
        if (l->sample.job[j].total >= 0.0)
            sum += l->job[j].weight * l->sample.job[j].total;
    return sum;
}

bool tw_loop_is_simulated(const struct tw_loop *l)
{
    return l->device.source_ops->advance != NULL;
}
