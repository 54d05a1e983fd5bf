/* SPDX-License-Identifier: Apache-2.0 */
/* sys/ticker.h - what wakes the thread that owns a loop: a period, and signals.
 *
 * SIGINT, SIGTERM and SIGHUP are blocked while a ticker is open, for this thread and for those it starts, and
 * come out of tw_ticker_wait instead. */
#ifndef TW_SYS_TICKER_H
#define TW_SYS_TICKER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_ticker {
    int timer_fd, signal_fd;
};

/* TW_EIO */
TW_MUST_USE
enum tw_err tw_ticker_open(double period_s, struct tw_ticker *ret, struct tw_why *why);
void tw_ticker_close(struct tw_ticker *t);

/* Sleep until the period has passed at least once, or a signal came. ret_ticks: periods passed since the last
 * call; ret_signal: its number, or 0. TW_EIO */
TW_MUST_USE
enum tw_err tw_ticker_wait(struct tw_ticker *t, uint64_t *ret_ticks, int *ret_signal, struct tw_why *why);

#endif
