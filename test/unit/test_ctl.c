/* SPDX-License-Identifier: Apache-2.0 */
/* ctl: state tables, ledger, ramps, learning, and the controller against a tiny site of its own.
 *
 * The site: jobs of GPUs that draw what they want or 99.5 % of their limit, whichever is less, and progress as
 * the square root of it. Limits are taken when the test says so. What may be drawn at worst is added up here,
 * from the site's own records. */
#include "base/rng.h"
#include "ctl/ctl.h"
#include "ctl/ctl_int.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_GPU = 12, N_JOB = 3, GPUS_A_JOB = N_GPU / N_JOB };
#define MIN_W 100.0
#define MAX_W 700.0
#define BASE_W 400.0

struct site {
    struct tw_gpu_info gpu[N_GPU];
    struct tw_job_info job[N_JOB];
    double want_w[N_JOB];  /* of each GPU of a job */
    double limit_w[N_GPU]; /* in force */
    double sent_w[N_GPU];  /* written and not in force yet; NaN */
    bool deaf[N_GPU];      /* takes no limit for now */
    bool unread[N_GPU];
    double total[N_JOB];
    struct tw_gpu_sample gs[N_GPU];
    struct tw_job_sample js[N_JOB];
    struct tw_site_sample sample;
    struct tw_ctl *ctl;
    struct tw_ctl_action action[N_GPU];
    void *mem;
    double now_s, read_w; /* read_w: site power at the last reading */
    unsigned raises_over; /* raises that broke a promise */
    double hard_w;
    char trace[64];
};

static double draw(const struct site *s, int i)
{
    return fmin(s->want_w[i / GPUS_A_JOB], 0.995 * s->limit_w[i]);
}

static double site_w(const struct site *s)
{
    double w = BASE_W;
    for (int i = 0; i < N_GPU; i++)
        w += draw(s, i);
    return w;
}

static void site_open(struct site *s, struct tw_ctl_conf conf)
{
    memset(s, 0, sizeof *s);
    s->hard_w = conf.hard_limit_w;
    for (int i = 0; i < N_GPU; i++) {
        s->gpu[i] = (struct tw_gpu_info){.job = (uint32_t)(i / GPUS_A_JOB),
                                         .limit_min_w = MIN_W,
                                         .limit_max_w = MAX_W,
                                         .limit_default_w = MAX_W};
        (void)snprintf(s->gpu[i].uuid, sizeof s->gpu[i].uuid, "GPU-%d", i);
        s->limit_w[i] = MAX_W;
        s->sent_w[i] = (double)NAN;
    }
    for (int j = 0; j < N_JOB; j++) {
        s->job[j] = (struct tw_job_info){.lockstep = true, .weight = 1.0};
        (void)snprintf(s->job[j].name, sizeof s->job[j].name, "job%d", j);
        s->want_w[j] = 400.0 + 100.0 * j;
    }
    size_t bytes = tw_ctl_bytes(N_GPU, N_JOB) + TW_ARENA_ALIGN;
    s->mem = malloc(bytes);
    struct tw_arena arena;
    tw_arena_init(&arena, s->mem, bytes);
    struct tw_why why = {""};
    if (tw_ctl_init(&arena, &conf, s->gpu, N_GPU, s->job, N_JOB, &s->ctl, &why) != TW_OK)
        fail_msg("%s", why.text);
    s->sample = (struct tw_site_sample){.gpu = s->gs, .job = s->js, .base_w = BASE_W};
}

static void site_close(struct site *s)
{
    free(s->mem);
}

/* What the site could draw at worst: the larger of what is in force and what is on its way. */
static double worst_w(const struct site *s)
{
    double w = BASE_W;
    for (int i = 0; i < N_GPU; i++)
        w += s->sent_w[i] > s->limit_w[i] ? s->sent_w[i] : s->limit_w[i];
    return w;
}

/* The checker: knows the event's target and the site's records, nothing of the controller. */
static void check_raise(struct site *s, double before_w)
{
    double after_w = worst_w(s);
    if (!(after_w > before_w + 0.5))
        return;
    if (!(after_w <= s->hard_w + 1.0))
        s->raises_over++;
    size_t n;
    const struct tw_ctl_event *e = tw_ctl_events(s->ctl, &n);
    for (size_t k = 0; k < n; k++)
        if (e[k].state == TW_EVENT_HOLD && !(after_w <= 1.15 * e[k].target_w + 1.0))
            s->raises_over++;
}

static void read_site(struct site *s)
{
    s->sample.now_us = (int64_t)llround(1e6 * s->now_s);
    s->read_w = site_w(s);
    for (int i = 0; i < N_GPU; i++) {
        s->gs[i].fresh = !s->unread[i];
        if (s->unread[i])
            continue;
        s->gs[i].time_us = s->sample.now_us;
        for (int c = 0; c < TW_CH_COUNT; c++)
            s->gs[i].ch[c] = NAN;
        s->gs[i].ch[TW_CH_POWER_W] = (float)draw(s, i);
    }
    for (int j = 0; j < N_JOB; j++)
        s->js[j] = (struct tw_job_sample){.fresh = true, .total = s->total[j], .throughput = (double)NAN};
}

static void take_and_read_back(struct site *s)
{
    for (int i = 0; i < N_GPU; i++) {
        if (!isnan(s->sent_w[i]) && !s->deaf[i]) {
            s->limit_w[i] = s->sent_w[i];
            s->sent_w[i] = (double)NAN;
        }
        if (!s->unread[i])
            tw_ctl_read_back(s->ctl, (uint32_t)i, s->limit_w[i], s->limit_w[i]);
    }
}

static size_t send(struct site *s)
{
    double before = worst_w(s);
    size_t n = tw_ctl_actions(s->ctl, s->action);
    for (size_t k = 0; k < n; k++) {
        assert_true(s->action[k].limit_w >= MIN_W - 1e-9 && s->action[k].limit_w <= MAX_W + 1e-9);
        uint32_t i = s->action[k].gpu;
        s->sent_w[i] = s->action[k].limit_w;
    }
    check_raise(s, before);
    return n;
}

/* One second. */
static void turn(struct site *s)
{
    for (int j = 0; j < N_JOB; j++)
        s->total[j] += s->want_w[j] < 150.0 ? 0.0 : 100.0 * sqrt(draw(s, j * GPUS_A_JOB));
    s->now_s += 1.0;
    read_site(s);
    take_and_read_back(s);
    tw_ctl_step(s->ctl, &s->sample);
    for (int round = 0; round < 3 && send(s) > 0; round++)
        take_and_read_back(s);
}

static void turns(struct site *s, int n)
{
    for (int k = 0; k < n; k++)
        turn(s);
}

static struct tw_ctl_conf conf_of(enum tw_steer policy)
{
    struct tw_ctl_conf conf = tw_ctl_conf_default();
    conf.policy = policy;
    return conf;
}

static uint32_t add(struct site *s, double cut_frac, double for_s)
{
    struct tw_ctl_ask ask = {cut_frac, for_s, 0.0, (double)NAN};
    struct tw_why why = {""};
    uint32_t id = 0;
    if (tw_ctl_event_add(s->ctl, &ask, &id, &why) != TW_OK)
        fail_msg("%s", why.text);
    return id;
}

static const struct tw_ctl_event *last(const struct site *s)
{
    size_t n;
    const struct tw_ctl_event *e = tw_ctl_events(s->ctl, &n);
    assert_true(n > 0);
    return &e[n - 1];
}

static void test_tables(void **state)
{
    (void)state;
    for (int a = 0; a < TW_SITE_STATE_COUNT; a++)
        for (int e = 0; e < TW_SITE_EVENT_COUNT; e++) {
            const struct tw_transition *t = tw_site_go((enum tw_site_state)a, (enum tw_site_event)e);
            if (!t->why || t->next < 0 || t->next >= TW_SITE_STATE_COUNT)
                fail_msg("site: %s has no row for %s", tw_site_state_name[a], tw_site_event_name[e]);
        }
    for (int a = 0; a < TW_LINE_STATE_COUNT; a++)
        for (int e = 0; e < TW_LINE_EVENT_COUNT; e++) {
            const struct tw_transition *t = tw_line_go((enum tw_line_state)a, (enum tw_line_event)e);
            if (!t->why || t->next < 0 || t->next >= TW_LINE_STATE_COUNT)
                fail_msg("line: %s has no row for %s", tw_line_state_name[a], tw_line_event_name[e]);
        }
    for (int e = 0; e < TW_SITE_EVENT_COUNT; e++) /* nothing brings a controller back that was told to leave */
        assert_int_equal(tw_site_go(TW_SITE_STOP, (enum tw_site_event)e)->next, TW_SITE_STOP);
}

static void test_ramp(void **state)
{
    (void)state;
    struct tw_ramp down = {1000.0, 700.0, 50.0, 10.0};
    assert_float_equal(tw_ramp_at(&down, 40.0), 1000.0, 1e-9);
    assert_float_equal(tw_ramp_at(&down, 60.0), 900.0, 1e-9);
    assert_float_equal(tw_ramp_at(&down, 99.0), 700.0, 1e-9);
    assert_float_equal(tw_ramp_end_s(&down), 80.0, 1e-9);
    struct tw_ramp up = {700.0, INFINITY, 0.0, 5.0};
    assert_float_equal(tw_ramp_at(&up, 10.0), 750.0, 1e-9);
}

static void test_track(void **state)
{
    (void)state;
    struct tw_track t = {.n = 0};
    assert_true(isnan(tw_track_mean(&t, 10)));
    for (int k = 1; k <= 400; k++)
        tw_track_push(&t, (double)k);
    assert_float_equal(tw_track_mean(&t, 10), 395.5, 1e-6); /* 391 .. 400 */
    assert_float_equal(tw_track_mean(&t, 300), 250.5, 1e-6);
    struct tw_band b;
    tw_band_init(&b, 100.0, 0.98, 1.0, 400.0);
    struct tw_track flat = {.n = 0};
    for (int k = 0; k < 20; k++)
        tw_track_push(&flat, 99.0);
    struct tw_track much = {.n = 0}, less = {.n = 0};
    for (int k = 0; k < 10; k++) {
        tw_track_push(&much, 120.0);
        tw_track_push(&less, 91.0);
    }
    tw_band_push(&b, &flat, &much, 409.0); /* begins before the hold: not looked at */
    assert_int_equal(b.n, 0);
    tw_band_push(&b, &flat, &much, 410.0);
    for (int k = 0; k < 10; k++)
        tw_track_push(&flat, 101.0);
    tw_band_push(&b, &flat, &much, 420.0);
    for (int k = 0; k < 10; k++)
        tw_track_push(&flat, 90.0);
    tw_band_push(&b, &flat, &much, 430.0);
    tw_band_push(&b, &flat, &less, 431.0); /* low because the jobs wanted less */
    for (int k = 0; k < 10; k++)
        tw_track_push(&less, 97.0);
    tw_band_push(&b, &flat, &less, 432.0); /* they wanted less, but not by that much */
    assert_int_equal(b.n, 5);
    assert_int_equal(b.n_out, 3);
    assert_int_equal(b.n_free, 1);
    assert_float_equal(b.min_frac, 0.90, 1e-6);
    assert_float_equal(b.max_frac, 1.01, 1e-6);
}

/* A job of 900 W and 50 units/s that pauses for 12 s in every 60: the reference leaves the pauses out. Capped
 * to 720 W it does 45 units/s: x = 0.8, t = 0.9. */
static void test_learn(void **state)
{
    (void)state;
    static struct tw_learn l;
    tw_learn_init(&l);
    for (int k = 0; k < 300; k++) {
        bool pause = k % 60 >= 48;
        struct tw_learn_seen s = {1.0, pause ? 300.0 : 900.0, pause ? 0.0 : 50.0, false};
        tw_learn_push(&l, &s);
    }
    assert_true(tw_learn_has_reference(&l));
    assert_float_equal(l.p0_w, 900.0, 0.5);
    assert_float_equal(l.t0, 50.0, 0.1);
    tw_learn_probe_start(&l);
    for (int k = 0; k < 100 && l.level == 0; k++) {
        bool pause = k >= 20 && k < 32;
        struct tw_learn_seen s = {1.0, pause ? 300.0 : 720.0, pause ? 0.0 : 45.0, true};
        tw_learn_push(&l, &s);
        (void)tw_learn_probe_push(&l, &s, k >= 2, 4.0, 40.0);
    }
    assert_int_equal(l.level, 1);
    assert_int_equal(l.n_points, 1);
    assert_float_equal(l.point_x[0], 0.8, 1e-3);
    assert_float_equal(l.point_t[0], 0.9, 1e-3);
    /* a hold at 630 W with 40 units/s adds points without a probe, and counts no cost for them */
    double lost = l.lost_units;
    tw_learn_probe_stop(&l);
    for (int k = 0; k < TW_LEARN_HOLD_S + 1; k++) {
        struct tw_learn_seen s = {1.0, 630.0, 40.0, true};
        tw_learn_push(&l, &s);
        (void)tw_learn_hold_push(&l, &s, k > 0);
    }
    assert_int_equal(l.n_points, 2);
    assert_float_equal(l.point_x[1], 0.7, 1e-3);
    assert_float_equal(l.point_t[1], 0.8, 1e-3);
    assert_float_equal(l.lost_units, lost, 1e-9);
    assert_float_equal(l.p0_w, 900.0, 0.5); /* stands still under a cap */
}

static void test_event(void **state)
{
    (void)state;
    for (int policy = 0; policy <= TW_STEER_EQUAL; policy++) {
        struct site s;
        site_open(&s, conf_of((enum tw_steer)policy));
        turns(&s, 900);
        assert_int_equal(tw_ctl_state(s.ctl), TW_SITE_READY);
        double before = site_w(&s); /* 12 GPUs: 4 x (400 + 500 + 600) + 400 = 6400 */
        assert_float_equal(before, 6400.0, 1e-6);
        (void)add(&s, 0.25, 120.0);
        turns(&s, 31 + 15);
        assert_int_equal(tw_ctl_state(s.ctl), TW_SITE_HOLD);
        assert_float_equal(last(&s)->baseline_w, 6400.0, 1.0);
        assert_float_equal(last(&s)->target_w, 4800.0, 1.0);
        for (int k = 0; k < 100; k++) {
            turn(&s);
            assert_true(site_w(&s) <= 4800.0 + 0.5);
        }
        assert_true(last(&s)->min_frac >= 0.98);
        assert_true(last(&s)->max_frac <= 1.0);
        assert_int_equal(last(&s)->means_out, 0);
        double was = site_w(&s);
        for (int k = 0; k < 60; k++) { /* the return: no faster than one per cent of the baseline a second */
            turn(&s);
            assert_true(site_w(&s) - was <= 64.0 + 0.02 * 6400.0);
            was = site_w(&s);
        }
        assert_int_equal(last(&s)->state, TW_EVENT_DONE);
        for (int i = 0; i < N_GPU; i++)
            assert_float_equal(s.limit_w[i], MAX_W, 0.6);
        assert_int_equal(s.raises_over, 0);
        site_close(&s);
    }
}

/* Rule 3: what the last nine readings and all limits together come to stays at or under ten targets. */
static void test_ten_seconds(void **state)
{
    (void)state;
    struct tw_ctl_conf conf = conf_of(TW_STEER_EQUAL);
    conf.over_frac = 0.5; /* so that it is not rule 2 that binds */
    struct site s;
    site_open(&s, conf);
    turns(&s, 320);
    (void)add(&s, 0.25, 300.0);
    turns(&s, 60);
    double ring[9] = {0};
    int bound = 0;
    for (int k = 0; k < 200; k++) {
        if (k % 40 == 20) /* a job that stops and comes back makes the sum of limits move */
            s.want_w[2] = s.want_w[2] < 150.0 ? 600.0 : 120.0;
        turn(&s);
        ring[k % 9] = s.read_w;
        double past = 0.0;
        for (int m = 0; m < 9; m++)
            past += ring[m];
        if (k < 9)
            continue;
        double room = tw_ctl_room_w(s.ctl) + BASE_W;
        assert_true(past + room <= 10.0 * last(&s)->target_w + 1.0);
        bound += past + room > 9.9 * last(&s)->target_w;
    }
    assert_true(bound > 100);
    site_close(&s);
}

/* A lower limit that is not taken yet keeps everybody else down. */
static void test_lower_confirm_raise(void **state)
{
    (void)state;
    struct tw_ctl_conf conf = conf_of(TW_STEER_EQUAL);
    conf.over_frac = 0.0;
    struct site s;
    site_open(&s, conf);
    turns(&s, 120);
    (void)add(&s, 0.25, 300.0);
    turns(&s, 60);
    assert_int_equal(tw_ctl_state(s.ctl), TW_SITE_HOLD);
    double before[N_GPU];
    memcpy(before, s.limit_w, sizeof before);
    s.want_w[2] = 120.0; /* the largest job stops */
    for (int i = 2 * GPUS_A_JOB; i < N_GPU; i++)
        s.deaf[i] = true;
    turns(&s, 2);
    for (int i = 0; i < 2 * GPUS_A_JOB; i++)
        assert_true(s.limit_w[i] <= before[i] + 2.0); /* its limit is not down: nothing to lend */
    for (int i = 0; i < N_GPU; i++)
        s.deaf[i] = false;
    turns(&s, 4);
    double lent = 0.0;
    for (int i = 0; i < 2 * GPUS_A_JOB; i++)
        lent += s.limit_w[i] - before[i];
    assert_true(lent > 200.0);
    for (int i = 2 * GPUS_A_JOB; i < N_GPU; i++)
        assert_true(s.limit_w[i] < 0.6 * before[i]);
    s.want_w[2] = 600.0; /* and comes back: it gets its share again */
    turns(&s, 8);
    for (int i = 2 * GPUS_A_JOB; i < N_GPU; i++)
        assert_true(s.limit_w[i] > 0.9 * before[i]);
    site_close(&s);
}

static void test_blind(void **state)
{
    (void)state;
    struct site s;
    site_open(&s, conf_of(TW_STEER_EQUAL));
    turns(&s, 120);
    (void)add(&s, 0.25, 600.0);
    turns(&s, 60);
    struct tw_ledger *l = &s.ctl->ledger;
    double limit = l->line[0].limit_w;
    assert_float_equal(tw_line_charge(l, 0), limit, 1e-9);
    s.unread[0] = true;
    turns(&s, 7);
    assert_true(l->line[0].blind);
    /* neither power nor limit could be read for five seconds: it may be at its power-on default */
    assert_float_equal(tw_line_charge(l, 0), MAX_W, 1e-9);
    tw_ctl_read_back(s.ctl, 0, limit, limit); /* the limit can be: its safe value counts, half the default */
    assert_float_equal(tw_line_charge(l, 0), fmax(limit, 350.0), 1e-9);
    assert_int_equal(s.ctl->reason[0], TW_REASON_BLIND);
    assert_true(s.ctl->want_w[0] <= limit + 1.0); /* never up */
    assert_int_equal(s.raises_over, 0);
    site_close(&s);
}

static void test_refused_events(void **state)
{
    (void)state;
    struct site s;
    site_open(&s, conf_of(TW_STEER_EQUAL));
    turns(&s, 320);
    struct tw_why why = {""};
    uint32_t id = 0;
    static const struct {
        struct tw_ctl_ask ask;
        enum tw_err err;
        const char *says;
    } c[] = {
        {{1.5, 60, 0, NAN}, TW_EINVAL, "between 0 and 100"},
        {{-0.1, 60, 0, NAN}, TW_EINVAL, "between 0 and 100"},
        {{(double)NAN, 60, 0, NAN}, TW_EINVAL, "between 0 and 100"},
        {{0.3, 0, 0, NAN}, TW_EINVAL, "lasts more"},
        {{0.3, 60, -1, NAN}, TW_EINVAL, "lasts more"},
        /* floors: 12 x 100 + 400 = 1600 of 6400, so 75 % is the deepest */
        {{0.80, 60, 0, NAN}, TW_EINFEASIBLE, "the nearest is 75 %"},
    };
    for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
        assert_int_equal(tw_ctl_event_add(s.ctl, &c[k].ask, &id, &why), c[k].err);
        if (!strstr(why.text, c[k].says))
            fail_msg("\"%s\" does not say \"%s\"", why.text, c[k].says);
    }
    struct tw_ctl_ask later = {0.2, 60, 100, (double)NAN};
    assert_int_equal(tw_ctl_event_add(s.ctl, &later, &id, &why), TW_OK);
    assert_int_equal(tw_ctl_event_add(s.ctl, &later, &id, &why), TW_EINFEASIBLE);
    assert_non_null(strstr(why.text, "overlaps event 1"));
    assert_int_equal(tw_ctl_event_cancel(s.ctl, 7, &why), TW_ENOENT);
    assert_int_equal(tw_ctl_event_cancel(s.ctl, 1, &why), TW_OK);
    assert_int_equal(tw_ctl_event_cancel(s.ctl, 1, &why), TW_EINVAL);
    assert_int_equal(tw_ctl_event_add(s.ctl, &later, &id, &why), TW_OK);
    site_close(&s);
}

static void test_cancel_and_leave(void **state)
{
    (void)state;
    struct site s;
    site_open(&s, conf_of(TW_STEER_EQUAL));
    tw_ctl_found(s.ctl, 3, 650.0); /* somebody had capped it before us */
    s.limit_w[3] = 650.0;
    turns(&s, 120);
    uint32_t id = add(&s, 0.3, 600.0);
    turns(&s, 50);
    assert_int_equal(tw_ctl_event_cancel(s.ctl, id, NULL), TW_OK);
    turns(&s, 2);
    assert_int_equal(tw_ctl_state(s.ctl), TW_SITE_RELEASE);
    tw_ctl_leave(s.ctl);
    for (int k = 0; k < 3; k++) {
        (void)send(&s);
        take_and_read_back(&s);
    }
    assert_true(tw_ctl_has_left(s.ctl));
    for (int i = 0; i < N_GPU; i++)
        assert_float_equal(s.limit_w[i], i == 3 ? 650.0 : MAX_W, 0.6);
    site_close(&s);
}

/* A hard limit under the sum of the limits found: it holds within a few turns, without any event, and again
 * after a job has come back. */
static void test_hard_limit_from_the_start(void **state)
{
    (void)state;
    struct tw_ctl_conf conf = conf_of(TW_STEER_CURVE);
    conf.hard_limit_w = 8000.0;
    struct site s;
    site_open(&s, conf);
    assert_true(worst_w(&s) > 8000.0);
    for (int k = 0; k < 900; k++) {
        s.want_w[1] = k / 100 % 2 ? 120.0 : 500.0;
        turn(&s);
        if (k >= 5 && !(worst_w(&s) <= 8000.0 + 1.0))
            fail_msg("turn %d: the limits add up to %.0f W", k, worst_w(&s));
    }
    assert_int_equal(s.raises_over, 0);
    /* Scaled, not pressed to the floor: what a hard limit leaves is used. */
    assert_true(worst_w(&s) >= 0.97 * 8000.0);
    site_close(&s);
}

/* Lost samples, limits that are taken late or not at all, jobs that stop and come back: no raise breaks a
 * promise, and what is drawn stays at or under the target in the mean of ten seconds. */
static void test_random(void **state)
{
    (void)state;
    unsigned out = 0, means = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct tw_ctl_conf conf = conf_of(seed % 2 ? TW_STEER_CURVE : TW_STEER_EQUAL);
        conf.hard_limit_w = 8000.0; /* the limits found add up to 8800 W: they cannot all come back */
        struct site s;
        site_open(&s, conf);
        struct tw_rng rng;
        tw_rng_init(&rng, seed, 0);
        double ring[10] = {0};
        unsigned held = 0;
        turns(&s, 700);
        (void)add(&s, tw_rng_uniform(&rng, 0.1, 0.4), 300.0);
        for (int k = 0; k < 400; k++) {
            int i = (int)tw_rng_below(&rng, N_GPU), j = (int)tw_rng_below(&rng, N_JOB);
            s.unread[i] = tw_rng_f64(&rng) < 0.2;
            s.deaf[i] = tw_rng_f64(&rng) < 0.1;
            if (tw_rng_f64(&rng) < 0.02)
                s.want_w[j] = s.want_w[j] < 150.0 ? 400.0 + 100.0 * j : 120.0;
            turn(&s);
            ring[k % 10] = site_w(&s);
            held = tw_ctl_state(s.ctl) == TW_SITE_HOLD ? held + 1 : 0;
            double mean = 0.0;
            for (int m = 0; m < 10; m++)
                mean += 0.1 * ring[m];
            if (held > 10) {
                means++;
                out += mean <= 1.002 * last(&s)->target_w ? 0U : 1U;
            }
        }
        if (s.raises_over)
            fail_msg("seed %llu: %u raises over a limit", (unsigned long long)seed, s.raises_over);
        site_close(&s);
    }
    assert_true(means > 20 * 250);
    /* a device that is deaf for a second cannot be lowered in it: that is nobody's promise, and must stay rare
     */
    if (!(out <= means / 50))
        fail_msg("%u of %u ten-second means lay over the target", out, means);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_ramp),
        cmocka_unit_test(test_track),
        cmocka_unit_test(test_learn),
        cmocka_unit_test(test_event),
        cmocka_unit_test(test_ten_seconds),
        cmocka_unit_test(test_lower_confirm_raise),
        cmocka_unit_test(test_blind),
        cmocka_unit_test(test_refused_events),
        cmocka_unit_test(test_cancel_and_leave),
        cmocka_unit_test(test_hard_limit_from_the_start),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
