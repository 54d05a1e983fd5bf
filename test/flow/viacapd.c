/* SPDX-License-Identifier: Apache-2.0 */
/* Limits through the privileged helper as any controller writes them: the cap table "capd" against a real
 * helper process whose devices are files (test/fake/filecap.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/stat.h"
#include "capd/client.h"
#include "io/capd/viacapd.h"
#include "io/registry.h"
#include "sys/clock.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPUS 8
#define FOUND_W 700.0
#define SAFE_W 400.0

static char top[] = "/tmp/viacapd.XXXXXX", sock[64], uuid[GPUS][48];
static pid_t helper;

static void put(const char *name, const char *text)
{
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static double device_w(int g)
{
    char path[600];
    double w = NAN;
    (void)snprintf(path, sizeof path, "%s/dev/%s", top, uuid[g]);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lf", &w), 1);
    (void)fclose(f);
    return w;
}

static void fault(int g, const char *word)
{
    char name[512];
    (void)snprintf(name, sizeof name, "dev/%s.fault", uuid[g]);
    put(name, word);
}

static bool same(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

/* Wait until the device holds w. */
static bool comes_to(int g, double w)
{
    for (int i = 0; i < 500 && !same(device_w(g), w); i++)
        usleep(10000);
    return same(device_w(g), w);
}

static int start(void **state)
{
    (void)state;
    char text[4096], exe[512], conf[64], name[512];
    assert_non_null(mkdtemp(top));
    (void)snprintf(sock, sizeof sock, "%s/sock", top);
    (void)snprintf(conf, sizeof conf, "%s/capd.conf", top);
    (void)snprintf(name, sizeof name, "%s/dev", top);
    assert_int_equal(mkdir(name, 0755), 0);
    int n = snprintf(text, sizeof text,
                     "device filecap:%s/dev\nsocket %s\nstate %s/state\naudit %s/audit.log\nwatch 100ms\n"
                     "user %u status,budget,free,allow\n",
                     top, sock, top, top, getuid());
    for (int g = 0; g < GPUS; g++) {
        (void)snprintf(uuid[g], sizeof uuid[g], "GPU-%08d-via", g);
        (void)snprintf(name, sizeof name, "dev/%s", uuid[g]);
        put(name, "700 700\n");
        n += snprintf(text + n, sizeof text - (size_t)n, "gpu %s min 200 max 700 safe 400\n", uuid[g]);
    }
    put("capd.conf", text);
    (void)snprintf(exe, sizeof exe, "%s/test/fake/tokwatt-capd-test", getenv("TW_BUILD"));
    helper = fork();
    assert_true(helper >= 0);
    if (helper == 0) {
        execl(exe, exe, "--config", conf, (char *)NULL);
        _exit(127);
    }
    struct tw_capd_client c = {.fd = -1};
    for (int i = 0; i < 500 && tw_capd_client_open(&c, sock, NULL) != TW_OK; i++)
        usleep(10000);
    assert_true(c.fd >= 0);
    tw_capd_client_close(&c);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    char command[128];
    int status = 0;
    kill(helper, SIGTERM);
    waitpid(helper, &status, 0);
    (void)snprintf(command, sizeof command, "rm -rf %s", top);
    return system(command) | (WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1);
}

static struct tw_cap *opened(const char *more)
{
    char spec[96];
    struct tw_cap *cap = NULL;
    struct tw_why why;
    (void)snprintf(spec, sizeof spec, "%s%s", sock, more);
    if (tw_viacapd_cap.open(spec, NULL, &cap, &why) != TW_OK)
        fail_msg("%s", why.text);
    return cap;
}

static void test_write_read_release(void **state)
{
    (void)state;
    const struct tw_cap_ops *ops = &tw_viacapd_cap;
    struct tw_cap *cap = opened("");
    double requested = 0.0, enforced = 0.0;
    assert_int_equal(ops->read(cap, uuid[0], &requested, &enforced, NULL), TW_ENODATA);
    assert_int_equal(ops->write(cap, uuid[0], 300.0, NULL), TW_OK);
    assert_int_equal(ops->read(cap, uuid[0], &requested, &enforced, NULL), TW_OK);
    assert_true(same(requested, 300.0) && same(enforced, 300.0) && same(device_w(0), 300.0));
    assert_int_equal(ops->write(cap, uuid[0], 100.0, NULL), TW_ERANGE);
    assert_int_equal(ops->write(cap, "GPU-unlisted", 300.0, NULL), TW_ENOENT);
    assert_int_equal(ops->release(cap, uuid[0], true, NULL), TW_OK);
    assert_true(same(device_w(0), FOUND_W));
    assert_int_equal(ops->release(cap, uuid[1], true, NULL), TW_OK); /* never written */
    ops->close(cap);
}

/* The port's rule: a clamped write is a write; reading tells. */
static void test_clamped_write_is_read_back(void **state)
{
    (void)state;
    struct tw_cap *cap = opened("");
    double requested = 0.0, enforced = 0.0;
    assert_int_equal(tw_viacapd_cap.write(cap, uuid[1], 500.0, NULL), TW_OK);
    fault(1, "clamp=350");
    assert_int_equal(tw_viacapd_cap.write(cap, uuid[1], 300.0, NULL), TW_OK);
    assert_int_equal(tw_viacapd_cap.read(cap, uuid[1], &requested, &enforced, NULL), TW_OK);
    assert_true(same(requested, 350.0));
    fault(1, "eio");
    assert_int_equal(tw_viacapd_cap.write(cap, uuid[1], 320.0, NULL), TW_EIO);
    fault(1, "");
    assert_int_equal(tw_viacapd_cap.release(cap, uuid[1], true, NULL), TW_OK);
    tw_viacapd_cap.close(cap);
}

static void test_close_of_a_budget_client_leaves_the_restore_pending(void **state)
{
    (void)state;
    struct tw_cap *cap = opened("");
    struct tw_capd_client c;
    struct tw_capd_reply r;
    assert_int_equal(tw_viacapd_cap.write(cap, uuid[2], 600.0, NULL), TW_OK);
    tw_viacapd_cap.close(cap);
    assert_true(same(device_w(2), SAFE_W));
    assert_int_equal(tw_capd_client_open(&c, sock, NULL), TW_OK);
    assert_int_equal(tw_capd_do(&c, TW_CAPD_STATUS, uuid[2], &r, NULL), TW_OK);
    assert_non_null(strstr(r.text, "restore pending"));
    assert_int_equal(tw_capd_do(&c, TW_CAPD_ALLOW, uuid[2], &r, NULL), TW_OK);
    assert_true(same(device_w(2), FOUND_W));
    tw_capd_client_close(&c);
}

static void test_close_of_a_sweep_restores(void **state)
{
    (void)state;
    struct tw_cap *cap = opened(",free");
    assert_int_equal(tw_viacapd_cap.write(cap, uuid[3], 250.0, NULL), TW_OK);
    tw_viacapd_cap.close(cap);
    assert_true(same(device_w(3), FOUND_W));
}

static void test_lost_lease_is_said_and_acquired_again(void **state)
{
    (void)state;
    struct tw_cap *cap = opened(",lease=1s");
    double requested = 0.0, enforced = 0.0;
    assert_int_equal(tw_viacapd_cap.write(cap, uuid[4], 600.0, NULL), TW_OK);
    assert_true(comes_to(4, SAFE_W));
    assert_int_equal(tw_viacapd_cap.read(cap, uuid[4], &requested, &enforced, NULL), TW_EPERM);
    usleep(100000); /* until it has been read back, too */
    assert_int_equal(tw_viacapd_cap.write(cap, uuid[4], 500.0, NULL), TW_OK);
    assert_true(same(device_w(4), 500.0));
    assert_int_equal(tw_viacapd_cap.release(cap, uuid[4], true, NULL), TW_OK);
    assert_true(same(device_w(4), FOUND_W)); /* the first one, not the safe value that it came from */
    tw_viacapd_cap.close(cap);
}

/* ---- eight threads, one per GPU ---- */

struct writer {
    pthread_t thread;
    struct tw_cap *cap;
    int g, n;
    double *took_s; /* [n] */
    enum tw_err err;
};

static void *write_limits(void *arg)
{
    struct writer *w = arg;
    for (int i = 0; i < w->n && w->err == TW_OK; i++) {
        int64_t t = tw_boot_us();
        w->err = tw_viacapd_cap.write(w->cap, uuid[w->g], 300.0 + i % 100, NULL);
        w->took_s[i] = (double)(tw_boot_us() - t) * 1e-6;
    }
    return NULL;
}

/* All eight at once, n writes each; returns the seconds that all of it took. */
static double together(struct tw_cap *cap, int n, double *took_s)
{
    struct writer w[GPUS];
    int64_t t = tw_boot_us();
    for (int g = 0; g < GPUS; g++) {
        w[g] = (struct writer){.cap = cap, .g = g, .n = n, .took_s = took_s + g * n};
        assert_int_equal(pthread_create(&w[g].thread, NULL, write_limits, &w[g]), 0);
    }
    for (int g = 0; g < GPUS; g++) {
        pthread_join(w[g].thread, NULL);
        assert_int_equal(w[g].err, TW_OK);
    }
    return (double)(tw_boot_us() - t) * 1e-6;
}

static void test_eight_gpus_at_once(void **state)
{
    (void)state;
    enum { N = 200 };
    static double took_s[GPUS * N];
    struct tw_cap *cap = opened(",free");
    double all_s = together(cap, 1, took_s);
    printf("acquired (found value read and saved) and written, 8 GPUs at once: %.1f ms\n", all_s * 1e3);
    (void)together(cap, N, took_s);
    tw_stat_sort(took_s, GPUS * N);
    printf("%d limits written and read back, 8 threads: p50 %.2f ms, p99 %.2f ms, worst %.2f ms\n", GPUS * N,
           tw_stat_quantile_sorted(took_s, GPUS * N, 0.5) * 1e3,
           tw_stat_quantile_sorted(took_s, GPUS * N, 0.99) * 1e3, took_s[GPUS * N - 1] * 1e3);
    for (int g = 0; g < GPUS; g++)
        fault(g, "slow=32");
    all_s = together(cap, 1, took_s);
    printf("calls of 32 ms (write, read back), 8 GPUs at once: %.1f ms\n", all_s * 1e3);
    for (int g = 0; g < GPUS; g++)
        fault(g, "");
    tw_viacapd_cap.close(cap);
    for (int g = 0; g < GPUS; g++)
        assert_true(same(device_w(g), FOUND_W));
}

static void test_registry_writes_through_the_helper(void **state)
{
    (void)state;
    struct tw_device dev = {0};
    struct tw_why why;
    char text[96];
    assert_int_equal(tw_device_open("sim:gpus=2,jobs=1", &dev, &why), TW_OK);
    assert_int_equal(tw_device_cap_through(&dev, "telepathy", &why), TW_EINVAL);
    assert_int_equal(tw_device_cap_through(&dev, "capd:/nowhere/sock", &why), TW_ENOENT);
    assert_non_null(strstr(why.text, "is it started?"));
    assert_int_equal(tw_device_cap_through(&dev, "capd:lease=x", &why), TW_EPARSE);
    (void)snprintf(text, sizeof text, "capd:%s,free", sock);
    assert_int_equal(tw_device_cap_through(&dev, text, &why), TW_OK);
    assert_string_equal(dev.cap_ops->name, "capd");
    assert_int_equal(dev.cap_ops->write(dev.cap, uuid[5], 444.0, &why), TW_OK);
    assert_true(same(device_w(5), 444.0));
    tw_device_close(&dev);
    assert_true(same(device_w(5), FOUND_W));
}

/* Fails closed: a helper that is gone is an error at once, and stays one until there is another. */
static void test_helper_gone(void **state)
{
    struct tw_cap *cap = opened("");
    assert_int_equal(tw_viacapd_cap.write(cap, uuid[6], 600.0, NULL), TW_OK);
    kill(helper, SIGKILL);
    waitpid(helper, NULL, 0);
    assert_int_equal(tw_viacapd_cap.write(cap, uuid[6], 500.0, NULL), TW_EIO);
    assert_int_equal(tw_viacapd_cap.write(cap, uuid[6], 500.0, NULL), TW_ENOENT);
    assert_true(same(device_w(6), 600.0));
    tw_viacapd_cap.close(cap);
    (void)state;
}

static int clean(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", top);
    return system(command);
}

static int restart(void **state)
{
    memcpy(top + sizeof top - 7, "XXXXXX", 6);
    return start(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_read_release),
        cmocka_unit_test(test_clamped_write_is_read_back),
        cmocka_unit_test(test_close_of_a_budget_client_leaves_the_restore_pending),
        cmocka_unit_test(test_close_of_a_sweep_restores),
        cmocka_unit_test(test_lost_lease_is_said_and_acquired_again),
        cmocka_unit_test(test_eight_gpus_at_once),
        cmocka_unit_test(test_registry_writes_through_the_helper),
    };
    const struct CMUnitTest last[] = {cmocka_unit_test(test_helper_gone)};
    int failed = cmocka_run_group_tests(tests, start, stop);
    return failed + cmocka_run_group_tests(last, restart, clean);
}
