/* SPDX-License-Identifier: Apache-2.0 */
/* sys/log.h - the log of a daemon: lines on standard error, which systemd keeps.
 *
 * Only app/, run/ and api/ log, once for each thing that happened, and say what happens next. A cause that
 * repeats is limited by tw_log_every, so that a bad day does not fill a disk. Thread-safe. */
#ifndef TW_SYS_LOG_H
#define TW_SYS_LOG_H

#include "base/err.h"

#include <stdint.h>

enum tw_log_level { TW_LOG_ERROR, TW_LOG_WARN, TW_LOG_INFO, TW_LOG_DEBUG };

void tw_log_level_set(enum tw_log_level max); /* default INFO */
void tw_log(enum tw_log_level level, const char *fmt, ...) TW_PRINTF(2, 3);

/* A cause that may repeat: the first line is written at once, then at most one every period_s, with the number
 * left out. One static struct per place; all zero to start. */
struct tw_log_gate {
    int64_t next_us;
    uint64_t left_out;
};
void tw_log_every(struct tw_log_gate *gate, double period_s, enum tw_log_level level, const char *fmt, ...)
    TW_PRINTF(4, 5);

#endif
