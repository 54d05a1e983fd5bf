/* SPDX-License-Identifier: Apache-2.0 */
/* series/energy: one total out of a counter and an integral. Expected values by hand. */
#include "series/energy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define S INT64_C(1000000)
#define NONE ((double)NAN)

static struct tw_energy fresh(void)
{
    struct tw_energy e;
    tw_energy_init(&e, 0.0, 2000.0, 10.0);
    return e;
}

static void is(double got, double want)
{
    if (!(fabs(got - want) < 1e-6))
        fail_msg("got %.9g, expected %.9g", got, want);
}

static void test_counter_alone(void **state)
{
    (void)state;
    struct tw_energy e = fresh();
    tw_energy_push(&e, 0, NONE, 5000.0);
    is(e.total_j, 0.0); /* counts from the first reading */
    tw_energy_push(&e, 1 * S, NONE, 5300.0);
    tw_energy_push(&e, 2 * S, NONE, 5900.0);
    is(e.total_j, 900.0);
    tw_energy_push(&e, 2 * S, NONE, 9999.0); /* not later: left out */
    is(e.total_j, 900.0);
}

static void test_power_alone(void **state)
{
    (void)state;
    struct tw_energy e = fresh();
    tw_energy_push(&e, 0, 100.0, NONE);
    tw_energy_push(&e, 2 * S, 300.0, NONE); /* trapezoid: 2 s at a mean of 200 W */
    is(e.total_j, 400.0);
    tw_energy_push(&e, 30 * S, 300.0, NONE); /* 28 s is over the gap: unknown, not invented */
    is(e.total_j, 400.0);
    tw_energy_push(&e, 31 * S, NONE, NONE);
    tw_energy_push(&e, 32 * S, 300.0, NONE);
    is(e.total_j, 400.0);
    tw_energy_push(&e, 33 * S, 300.0, NONE);
    is(e.total_j, 700.0);
}

/* The requirement: wraps, resets and ranges that cannot be read are survived, and the total never goes back. */
static void test_req_04_resets_wraps_gaps(void **state)
{
    (void)state;
    struct tw_energy e = fresh();
    double last = 0.0;
    for (int t = 0; t <= 30; t++) {
        /* 500 W throughout; the counter says so, is reset at 11 s, and is unreadable from 20 to 24 s. */
        double counter = t < 11 ? 1e6 + 500.0 * t : 500.0 * (t - 11) + 50.0;
        tw_energy_push(&e, t * S, 500.0, t >= 20 && t < 25 ? NONE : counter);
        assert_true(e.total_j >= last);
        last = e.total_j;
    }
    is(e.total_j, 500.0 * 30);
    assert_int_equal(e.resets, 1);
    assert_int_equal(e.leaps, 0);

    tw_energy_init(&e, 1000.0, 2000.0, 10.0); /* a counter that wraps at 1000 J, without power beside it */
    for (int t = 0; t <= 10; t++)
        tw_energy_push(&e, t * S, NONE, fmod(300.0 * t, 1000.0));
    is(e.total_j, 3000.0);
    assert_int_equal(e.wraps, 3);
    assert_int_equal(e.resets, 0);
}

static void test_unread_range_takes_the_counter(void **state)
{
    (void)state;
    struct tw_energy e = fresh();
    tw_energy_push(&e, 0, 500.0, 100.0);
    for (int t = 1; t < 5; t++)
        tw_energy_push(&e, t * S, 500.0, NONE); /* the integral says 2000 J ... */
    is(e.total_j, 2000.0);
    tw_energy_push(&e, 5 * S, 500.0, 100.0 + 2600.0); /* ... and the counter knows that it was 2600 */
    is(e.total_j, 2600.0);
    for (int t = 6; t < 10; t++)
        tw_energy_push(&e, t * S, 500.0, NONE);
    tw_energy_push(&e, 10 * S, 500.0, 100.0 + 2600.0 + 1000.0); /* less than the integral: no way back */
    assert_true(e.total_j >= 4600.0 - 1e-6);
    tw_energy_push(&e, 12 * S, 500.0, 100.0 + 2600.0 + 4000.0);
    is(e.total_j, 6600.0); /* and once it has caught up, the counter's again */
}

static void test_leap(void **state)
{
    (void)state;
    struct tw_energy e = fresh();
    tw_energy_push(&e, 0, 400.0, 100.0);
    tw_energy_push(&e, 1 * S, 400.0, 500.0);
    tw_energy_push(&e, 2 * S, 400.0, 9e9);
    tw_energy_push(&e, 3 * S, 400.0, 9e9 + 400.0);
    is(e.total_j, 1200.0);
    assert_int_equal(e.leaps, 1);
}

/* A counter that stands still, or counts half, beside power that does not, is found out after a minute. */
static void test_req_04_counter_and_integral_compared(void **state)
{
    (void)state;
    struct tw_energy e = fresh();
    for (int t = 0; t <= 61; t++) {
        tw_energy_push(&e, t * S, 500.0, 1000.0 + 510.0 * t);
        if (t == 59)
            assert_true(isnan(e.ratio));
    }
    assert_true(fabs(e.ratio - 1.02) < 1e-9);
    is(e.total_j, 510.0 * 61);

    e = fresh();
    for (int t = 0; t <= 180; t++)
        tw_energy_push(&e, t * S, 500.0, 1000.0);
    is(e.ratio, 0.0);
    is(e.total_j, 500.0 * 121); /* from the step on that filled the first minute: the integral took over */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter_alone),
        cmocka_unit_test(test_power_alone),
        cmocka_unit_test(test_req_04_resets_wraps_gaps),
        cmocka_unit_test(test_unread_range_takes_the_counter),
        cmocka_unit_test(test_leap),
        cmocka_unit_test(test_req_04_counter_and_integral_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
