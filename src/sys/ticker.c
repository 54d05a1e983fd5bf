/* SPDX-License-Identifier: Apache-2.0 */
/* A period and signals through descriptors. */
#include "sys/ticker.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void set_of(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGHUP);
}

enum tw_err tw_ticker_open(double period_s, struct tw_ticker *ret, struct tw_why *why)
{
    sigset_t set;
    set_of(&set);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return tw_fail(why, TW_EIO, "signals: %s", strerror(errno));
    struct tw_ticker t = {timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
                          signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    double whole = floor(period_s);
    struct timespec period = {(time_t)whole, (long)(1e9 * (period_s - whole))};
    struct itimerspec spec = {period, period};
    if (t.timer_fd < 0 || t.signal_fd < 0 || timerfd_settime(t.timer_fd, 0, &spec, NULL) != 0) {
        enum tw_err err = tw_fail(why, TW_EIO, "timer: %s", strerror(errno));
        tw_ticker_close(&t);
        return err;
    }
    *ret = t;
    return TW_OK;
}

void tw_ticker_close(struct tw_ticker *t)
{
    if (t->timer_fd >= 0)
        (void)close(t->timer_fd);
    if (t->signal_fd >= 0)
        (void)close(t->signal_fd);
    *t = (struct tw_ticker){-1, -1};
}

enum tw_err tw_ticker_wait(struct tw_ticker *t, uint64_t *ret_ticks, int *ret_signal, struct tw_why *why)
{
    struct pollfd fd[2] = {{t->timer_fd, POLLIN, 0}, {t->signal_fd, POLLIN, 0}};
    *ret_ticks = 0;
    *ret_signal = 0;
    if (poll(fd, 2, -1) < 0 && errno != EINTR)
        return tw_fail(why, TW_EIO, "poll: %s", strerror(errno));
    uint64_t ticks;
    struct signalfd_siginfo info;
    if (read(t->timer_fd, &ticks, sizeof ticks) == (ssize_t)sizeof ticks)
        *ret_ticks = ticks;
    if (read(t->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        *ret_signal = (int)info.ssi_signo;
    return TW_OK;
}
