/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines with the priority prefix that systemd reads ("<4>"), and without it on a terminal. */
#include "sys/log.h"

#include "sys/clock.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static enum tw_log_level level_max = TW_LOG_INFO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void tw_log_level_set(enum tw_log_level max)
{
    level_max = max;
}

static void TW_PRINTF(2, 0) write_line(enum tw_log_level level, const char *fmt, va_list ap, uint64_t left_out)
{
    static const char *const prefix[] = {"<3>", "<4>", "<6>", "<7>"};
    char line[1024];
    (void)vsnprintf(line, sizeof line, fmt, ap);
    if (left_out)
        (void)fprintf(stderr, "%s%s (and %llu more like it)\n", isatty(STDERR_FILENO) ? "" : prefix[level],
                      line, (unsigned long long)left_out);
    else
        (void)fprintf(stderr, "%s%s\n", isatty(STDERR_FILENO) ? "" : prefix[level], line);
}

void tw_log(enum tw_log_level level, const char *fmt, ...)
{
    if (level > level_max)
        return;
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&lock);
    write_line(level, fmt, ap, 0);
    pthread_mutex_unlock(&lock);
    va_end(ap);
}

void tw_log_every(struct tw_log_gate *gate, double period_s, enum tw_log_level level, const char *fmt, ...)
{
    if (level > level_max)
        return;
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&lock);
    int64_t now = tw_boot_us();
    if (now < gate->next_us) {
        gate->left_out++;
    } else {
        write_line(level, fmt, ap, gate->left_out);
        gate->left_out = 0;
        gate->next_us = now + (int64_t)(period_s * 1e6);
    }
    pthread_mutex_unlock(&lock);
    va_end(ap);
}
