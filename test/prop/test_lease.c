/* SPDX-License-Identifier: Apache-2.0 */
/* Promises 2 and 3 under random histories. One GPU, one disk, clients that come, ask, go and die, a helper that
 * is killed at any point, power cuts, a device that fails, clamps and ignores, a second writer. Beside the
 * state machine runs a referee that knows the device, the disk and what was asked, and nothing of states:
 *
 *   - a write happens only while the disk holds the value that was found before the first of them;
 *   - a write above what the device holds is one that the living holder asked for, or the value found after a
 * release, a permission, or the end of a client without a budget;
 *   - once nobody holds the GPU, and the device answers and nobody else writes, it comes to the safe value or
 * below, or to the value found where that is allowed; a client without a budget leaves the value found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "ctl/lease.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define SAFE_W 400.0
#define CEILING_W 700.0
#define DEFAULT_W 700.0 /* power-on */
#define HISTORIES 20000
#define LENGTH 80

enum fault { HEALTHY, UNREADABLE, UNWRITABLE, IGNORES, CLAMPS, FAULTS };

struct world {
    struct tw_rng rng;
    uint64_t seed;
    int step;
    /* what is under test, and the shell that carries out what it wants */
    struct tw_lease lease;
    bool owned, store;
    enum tw_lease_action job;
    double job_w;
    int64_t now_us;
    /* the world */
    double device_w;
    enum fault fault;
    bool disk_fails, on_disk, disk_budget;
    double disk_found_w;
    /* the referee */
    double found_w;    /* before the first write of this tenure; NaN between tenures */
    double allowed_w;  /* by the living holder; NaN */
    bool back_allowed; /* the value found may return */
    bool obstinate;    /* somebody else answers each of our writes */
    bool rival;        /* somebody else has written since the tenure began */
    bool budget;
};

static void complain(const struct world *w, const char *what, double watts)
{
    fail_msg("seed %lu step %d: %s (%g W; device %g, found %g, state %s)", (unsigned long)w->seed, w->step,
             what, watts, w->device_w, w->found_w, tw_lease_state_name[w->lease.state]);
}

static void referee_write(const struct world *w, double watts)
{
    if (!w->on_disk)
        complain(w, "written and not saved", watts);
    if (!w->rival && isfinite(w->disk_found_w) && !(fabs(w->disk_found_w - w->found_w) < 1e-9))
        complain(w, "what was saved is not what was found", w->disk_found_w);
    if (watts <= w->device_w + TW_LEASE_TOL_W)
        return;
    double back_w = isfinite(w->disk_found_w) ? w->disk_found_w : CEILING_W;
    if (!(fabs(watts - w->allowed_w) < 1e-9) && !(w->back_allowed && fabs(watts - back_w) < 1e-9))
        complain(w, "raised", watts);
}

static void event(struct world *w, enum tw_lease_event ev, double watts)
{
    double out_w = NAN;
    enum tw_lease_action action = tw_lease_step(&w->lease, ev, w->now_us, watts, &out_w);
    if (action == TW_LEASE_DO_READ || action == TW_LEASE_DO_WRITE || action == TW_LEASE_DO_LOWER) {
        w->job = action;
        w->job_w = out_w;
    }
    if (action == TW_LEASE_DO_STORE)
        w->store = true;
    enum tw_lease_state s = w->lease.state;
    if (!(s >= TW_LEASE_READING && s <= TW_LEASE_CONFIRMED) && s != TW_LEASE_CONTESTED)
        w->owned = false;
    if (s == TW_LEASE_IDLE && !w->on_disk) {
        w->found_w = w->allowed_w = NAN;
        w->back_allowed = false;
    }
}

/* The thread that talks to the device. */
static void work(struct world *w)
{
    enum tw_lease_action job = w->job;
    w->job = TW_LEASE_DO_NONE;
    if (job == TW_LEASE_DO_NONE)
        return;
    bool ok = w->fault != UNREADABLE;
    bool write = ok && (job == TW_LEASE_DO_WRITE || (job == TW_LEASE_DO_LOWER && w->device_w > w->job_w));
    if (write && w->fault == UNWRITABLE)
        ok = false;
    else if (write) {
        referee_write(w, w->job_w);
        if (w->fault != IGNORES)
            w->device_w = w->fault == CLAMPS ? fmax(w->job_w, 350.0) : w->job_w;
        if (w->obstinate) {
            w->device_w = 650.0;
            w->rival = true;
        }
    }
    if (w->lease.state == TW_LEASE_READING && ok) { /* a tenure begins */
        w->found_w = w->device_w;
        w->rival = false;
    }
    event(w, tw_lease_judge(&w->lease, w->now_us, ok, w->device_w, w->device_w), 0.0);
}

static void disk(struct world *w)
{
    if (!w->store)
        return;
    w->store = false;
    if (!w->disk_fails) {
        w->on_disk = tw_lease_is_stored(w->lease.state);
        w->disk_found_w = w->lease.found_w;
        w->disk_budget = w->lease.budget;
    }
    if (w->lease.state == TW_LEASE_FOUND || w->lease.state == TW_LEASE_RESTORED)
        event(w, w->disk_fails ? TW_LEASE_EV_UNSTORED : TW_LEASE_EV_STORED, 0.0);
}

static void client(struct world *w)
{
    bool budget = tw_rng_below(&w->rng, 2) == 0;
    double watts = tw_rng_uniform(&w->rng, 200.0, 700.0);
    enum tw_lease_state before = w->lease.state;
    switch (tw_rng_below(&w->rng, 7)) {
    case 0:
        if (w->owned || !tw_lease_may_acquire(&w->lease, budget) ||
            tw_lease_table[before][TW_LEASE_EV_ACQUIRE].action == TW_LEASE_DO_REFUSE)
            return;
        w->lease.budget = w->budget = budget;
        w->owned = true;
        w->back_allowed = false;
        w->allowed_w = NAN;
        event(w, TW_LEASE_EV_ACQUIRE, 0.0);
        return;
    case 1:
    case 2:
        if (!w->owned || w->job != TW_LEASE_DO_NONE)
            return;
        if (tw_lease_table[before][TW_LEASE_EV_SET].action == TW_LEASE_DO_WRITE)
            w->allowed_w = watts;
        event(w, TW_LEASE_EV_SET, watts);
        return;
    case 3:
        if (!w->owned || tw_lease_table[before][TW_LEASE_EV_RELEASE].action == TW_LEASE_DO_REFUSE)
            return;
        w->back_allowed = true;
        w->allowed_w = NAN;
        event(w, TW_LEASE_EV_RELEASE, 0.0);
        return;
    case 6:
        if (w->owned || tw_lease_table[before][TW_LEASE_EV_ALLOW].action == TW_LEASE_DO_REFUSE)
            return;
        w->back_allowed = true;
        event(w, TW_LEASE_EV_ALLOW, 0.0);
        return;
    default: /* it leaves, dies, or falls silent */
        if (!w->owned || (before == TW_LEASE_READING && tw_rng_below(&w->rng, 2)))
            return;
        w->allowed_w = NAN;
        w->back_allowed |= !w->budget;
        enum tw_lease_event end[] = {TW_LEASE_EV_LEAVE, TW_LEASE_EV_DEATH, TW_LEASE_EV_LAPSE};
        event(w, end[tw_rng_below(&w->rng, 3)], 0.0);
    }
}

/* kill -9 of the helper, or the whole machine without power. */
static void crash(struct world *w, bool power)
{
    if (power)
        w->device_w = DEFAULT_W;
    tw_lease_init(&w->lease, SAFE_W, CEILING_W);
    w->owned = w->store = false;
    w->job = TW_LEASE_DO_NONE;
    w->allowed_w = NAN;
    w->back_allowed = w->on_disk && !w->disk_budget;
    if (!w->on_disk) {
        w->found_w = NAN;
        return;
    }
    w->lease.budget = w->budget = w->disk_budget;
    event(w, TW_LEASE_EV_BOOT, w->disk_found_w);
}

static void one_step(struct world *w)
{
    w->now_us += (int64_t)tw_rng_below(&w->rng, 2000000);
    uint64_t what = tw_rng_below(&w->rng, 100);
    if (what < 35)
        client(w);
    else if (what < 65)
        work(w);
    else if (what < 80)
        disk(w);
    else if (what < 88 && w->job == TW_LEASE_DO_NONE)
        event(w, TW_LEASE_EV_TICK, 0.0);
    else if (what == 88)
        crash(w, false);
    else if (what == 89)
        crash(w, true);
    else if (what < 94)
        w->fault = tw_rng_below(&w->rng, 2) ? HEALTHY : (enum fault)tw_rng_below(&w->rng, FAULTS);
    else if (what < 96)
        w->disk_fails = tw_rng_below(&w->rng, 3) == 0;
    else if (what == 96) {
        w->device_w = tw_rng_uniform(&w->rng, 200.0, 700.0);
        w->rival = true;
    }
}

/* Everything heals and everybody goes: where does the GPU end? */
static void ending(struct world *w)
{
    w->fault = HEALTHY;
    w->disk_fails = w->obstinate = false;
    if (w->owned) {
        w->allowed_w = NAN;
        w->back_allowed |= !w->budget;
        event(w, TW_LEASE_EV_DEATH, 0.0);
    }
    for (int i = 0; i < 40; i++) {
        work(w);
        disk(w);
        if (w->job == TW_LEASE_DO_NONE)
            event(w, TW_LEASE_EV_TICK, 0.0);
    }
    enum tw_lease_state s = w->lease.state;
    if (s != TW_LEASE_IDLE && s != TW_LEASE_SAFE && s != TW_LEASE_CONTESTED)
        complain(w, "does not come to rest", w->device_w);
    if (s == TW_LEASE_SAFE && !(w->device_w <= SAFE_W + TW_LEASE_TOL_W))
        complain(w, "above the safe value", w->device_w);
    if (s == TW_LEASE_IDLE && w->on_disk)
        complain(w, "idle with a saved value", w->disk_found_w);
    if (s == TW_LEASE_SAFE && !w->lease.budget && w->lease.restores < TW_LEASE_RESTORES)
        complain(w, "a sweep's value found was not put back", w->device_w);
}

static void test_promises_2_and_3_under_random_histories(void **state)
{
    (void)state;
    unsigned rest[TW_LEASE_STATES] = {0}, visited[TW_LEASE_STATES] = {0};
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        struct world w = {.seed = seed,
                          .device_w = DEFAULT_W,
                          .found_w = NAN,
                          .allowed_w = NAN,
                          .disk_found_w = NAN,
                          .obstinate = seed % 4 == 0};
        tw_rng_init(&w.rng, seed, 0);
        tw_lease_init(&w.lease, SAFE_W, CEILING_W);
        for (w.step = 0; w.step < LENGTH; w.step++) {
            one_step(&w);
            visited[w.lease.state]++;
        }
        ending(&w);
        rest[w.lease.state]++;
    }
    printf("%d histories of %d steps; ended idle %u, safe %u, contested %u\n", HISTORIES, LENGTH,
           rest[TW_LEASE_IDLE], rest[TW_LEASE_SAFE], rest[TW_LEASE_CONTESTED]);
    for (int s = 0; s < TW_LEASE_STATES; s++)
        if (visited[s] < 1000)
            fail_msg("state %s was hardly visited (%u)", tw_lease_state_name[s], visited[s]);
}

/* After an undisturbed tenure the device holds the value found, whoever ends it and however. */
static void test_value_found_returns(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct world w = {.seed = seed, .allowed_w = NAN, .disk_found_w = NAN};
        tw_rng_init(&w.rng, seed, 1);
        tw_lease_init(&w.lease, SAFE_W, CEILING_W);
        double found_w = w.device_w = w.found_w = tw_rng_uniform(&w.rng, 200.0, 700.0);
        bool budget = seed % 2;
        w.lease.budget = w.budget = budget;
        w.owned = true;
        event(&w, TW_LEASE_EV_ACQUIRE, 0.0);
        work(&w);
        disk(&w);
        for (int i = 0; i < 5; i++) {
            w.allowed_w = tw_rng_uniform(&w.rng, 200.0, 700.0);
            event(&w, TW_LEASE_EV_SET, w.allowed_w);
            work(&w);
        }
        w.allowed_w = NAN;
        w.back_allowed = !budget;
        if (seed % 3 == 0)
            crash(&w, seed % 5 == 0);
        else
            event(&w, seed % 7 ? TW_LEASE_EV_DEATH : TW_LEASE_EV_LAPSE, 0.0);
        ending(&w);
        if (budget) {
            assert_int_equal(w.lease.state, TW_LEASE_SAFE);
            assert_true(w.device_w <= SAFE_W);
            w.back_allowed = true;
            event(&w, TW_LEASE_EV_ALLOW, 0.0);
            ending(&w);
        }
        assert_int_equal(w.lease.state, TW_LEASE_IDLE);
        assert_true(fabs(w.device_w - found_w) < 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises_2_and_3_under_random_histories),
        cmocka_unit_test(test_value_found_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
