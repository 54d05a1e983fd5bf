/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt-capd: the privileged helper, the only program that writes power limits. Man page: tokwatt-capd(8). */
#include "tokwatt-capd/devices.h"
#include "tokwatt-capd/privilege.h"

#include "base/chain.h"
#include "capd/rules.h"
#include "capd/server.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/notify.h"

#include <argp.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TURN_MS 1000 /* the longest wait in one turn: the watchdog needs its signs of life */
#define SETTLE_S 5.0 /* what the stop waits for devices, and a single turn for its first answers */
#define BACKLOG 64
#define AUDIT_MAX ((size_t)64 << 20)

struct args {
    const char *config, *audit;
    bool check, once;
};

static const struct argp_option options[] = {
    {"config", 'c', "FILE", 0, "configuration (default /etc/tokwatt/capd.conf)", 0},
    {"check", 't', NULL, 0, "look at the configuration and exit", 0},
    {"once", 'T', NULL, 0, "bring what a crash left to its safe values, and exit", 0},
    {"audit", 'a', "FILE", 0, "check that the lines of an audit log hold each other, and exit", 0},
    {0}};

static error_t take_arg(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    switch (key) {
    case 'c':
        a->config = arg;
        return 0;
    case 'a':
        a->audit = arg;
        return 0;
    case 't':
        a->check = true;
        return 0;
    case 'T':
        a->once = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "\"%s\" is one word too many", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int fail(const struct tw_why *why)
{
    (void)fprintf(stderr, "tokwatt-capd: %s\n", why->text);
    return 2;
}

static int check_audit(const char *path)
{
    struct tw_why why;
    struct tw_chain chain;
    char *data = NULL;
    size_t n = 0, lines = 0, torn = 0;
    bool tail = false;
    if (tw_file_read(path, AUDIT_MAX, &data, &n, &why) != TW_OK)
        return fail(&why);
    enum tw_err err = tw_chain_check(data, n, &chain, &lines, &torn, &tail, &why);
    free(data);
    if (err != TW_OK) {
        printf("%s: %s\n", path, why.text);
        return 1;
    }
    printf("%s: %zu lines hold, %zu torn by a crash%s; last %s\n", path, lines, torn,
           tail ? ", the tail is torn" : "", chain.hex);
    return 0;
}

/* Our own socket, for a machine whose systemd does not hand one over. */
static enum tw_err listen_at(const struct tw_rules *rules, int *ret_fd, struct tw_why *why)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s", rules->socket);
    const struct group *gr = rules->group[0] ? getgrnam(rules->group) : NULL;
    if (rules->group[0] && !gr)
        return tw_fail(why, TW_EINVAL, "there is no group \"%s\" on this machine", rules->group);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat st;
    if (lstat(rules->socket, &st) == 0 && S_ISSOCK(st.st_mode)) {
        if (fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof addr) == 0) {
            close(fd);
            return tw_fail(why, TW_EPERM, "%s: another tokwatt-capd listens there", rules->socket);
        }
        (void)unlink(rules->socket); /* left by one that was killed */
    }
    mode_t before = umask(0117); /* 0660 from the first moment */
    int bad = fd < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof addr) != 0;
    umask(before);
    bad = bad || (gr && lchown(rules->socket, (uid_t)-1, gr->gr_gid) != 0) || listen(fd, BACKLOG) != 0;
    if (bad) {
        enum tw_err err = tw_fail(why, TW_EIO, "%s: %s", rules->socket, strerror(errno));
        if (fd >= 0)
            close(fd);
        return err;
    }
    *ret_fd = fd;
    return TW_OK;
}

/* Turns until nothing is on its way, or time is up. */
static void settle(struct tw_capd *s, struct tw_notify *notify)
{
    int64_t end_us = tw_boot_us() + (int64_t)(SETTLE_S * 1e6);
    do {
        tw_capd_turn(s, -1, 20);
        tw_notify_alive(notify, tw_boot_us());
    } while (!tw_capd_is_settled(s) && tw_boot_us() < end_us);
}

static int serve(struct tw_capd *s, struct tw_notify *notify, int stop_fd)
{
    struct signalfd_siginfo info;
    tw_notify_send(notify, "READY=1");
    while (read(stop_fd, &info, sizeof info) < 0) {
        tw_capd_turn(s, stop_fd, TURN_MS);
        tw_notify_alive(notify, tw_boot_us());
    }
    tw_notify_send(notify, "STOPPING=1");
    tw_log(TW_LOG_INFO, "stopping: held GPUs go to their safe values");
    tw_capd_stop(s);
    settle(s, notify);
    return tw_capd_is_well(s) ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct args a = {.config = "/etc/tokwatt/capd.conf"};
    const struct argp argp = {options,
                              take_arg,
                              NULL,
                              "The privileged helper of Tokwatt: the only program that writes power limits.\v"
                              "Example: tokwatt-capd --check --config /etc/tokwatt/capd.conf",
                              NULL,
                              NULL,
                              NULL};
    static struct tw_rules rules;
    struct tw_worker_device device;
    struct tw_why why;
    struct tw_notify notify;
    struct tw_capd *s = NULL;
    sigset_t stop;
    int listen_fd = tw_privilege_descriptors();
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    if (a.audit)
        return check_audit(a.audit);
    tw_notify_init(&notify);
    clearenv(); /* what follows, vendor libraries among it, sees nothing of whoever started us */
    umask(022);
    if (chdir("/") != 0 || tw_rules_load(a.config, &rules, &why) != TW_OK ||
        tw_capd_device(rules.device, &device, &why) != TW_OK)
        return fail(&why);
    if (a.check) {
        printf("%s: %zu GPUs, %zu users, device %s\n", a.config, rules.n_gpu, rules.n_user, rules.device);
        return 0;
    }
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL); /* before threads, which inherit it */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a full disk is an error of write, not our end */
    int stop_fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
    if (stop_fd < 0)
        return fail((tw_fail(&why, TW_EIO, "signalfd: %s", strerror(errno)), &why));
    if (listen_fd < 0 && !a.once && listen_at(&rules, &listen_fd, &why) != TW_OK)
        return fail(&why);
    if (tw_privilege_drop(&why) != TW_OK || tw_capd_open(&rules, &device, listen_fd, &s, &why) != TW_OK)
        return fail(&why);
    int status;
    if (a.once) {
        settle(s, &notify);
        status = tw_capd_is_well(s) ? 0 : 1;
    } else {
        status = serve(s, &notify, stop_fd);
    }
    tw_capd_close(s);
    tw_notify_done(&notify);
    fflush(stdout);
    _exit(status); /* not through handlers of libraries, whose thread may be stuck in a driver */
}
