/* SPDX-License-Identifier: Apache-2.0 */
/* Progress from a log or a socket. */
#include "sys/progress.h"

#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define READS 256 /* at most in one take: a job that floods us is caught up with later */

struct tw_progress {
    int fd; /* -1: the log is not there yet */
    char *path;
    bool socket, has_pattern, from_start;
    regex_t pattern;
    off_t at;
    ino_t inode;
    char line[TW_PROGRESS_LINE];
    size_t n;
    bool skip;          /* the rest of a line that is too long */
    double total, done; /* total NaN: none was told yet */
};

static struct tw_progress *make(const char *path, struct tw_why *why)
{
    struct tw_progress *p = calloc(1, sizeof *p);
    if (p)
        p->path = strdup(path);
    if (!p || !p->path) {
        free(p);
        (void)tw_fail(why, TW_ENOMEM, "no memory to follow %s", path);
        return NULL;
    }
    p->fd = -1;
    p->total = (double)NAN;
    return p;
}

static void told_total(struct tw_progress *p, double total)
{
    if (total > p->total)
        p->done += total - p->total;
    else if (total < p->total)
        p->done += total; /* it began anew */
    p->total = total;
}

/* ---- log ---- */

static bool log_look(struct tw_progress *p)
{
    struct stat st;
    if (stat(p->path, &st) != 0)
        return p->fd >= 0; /* moved away: its end may still be read */
    if (p->fd >= 0 && st.st_ino == p->inode) {
        if (st.st_size < p->at)
            p->at = 0;
        return true;
    }
    int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return p->fd >= 0;
    if (p->fd >= 0)
        (void)close(p->fd);
    p->fd = fd;
    p->inode = st.st_ino;
    p->at = p->from_start ? 0 : st.st_size;
    p->n = 0;
    return true;
}

enum tw_err tw_progress_log(const char *path, const char *pattern, struct tw_progress **ret, struct tw_why *why)
{
    struct tw_progress *p = make(path, why);
    if (!p)
        return TW_ENOMEM;
    int code = regcomp(&p->pattern, pattern, REG_EXTENDED);
    if (code != 0) {
        char text[128];
        (void)regerror(code, &p->pattern, text, sizeof text);
        tw_progress_close(p);
        return tw_fail(why, TW_EINVAL, "\"%.100s\" is no regular expression: %s", pattern, text);
    }
    p->has_pattern = true;
    (void)log_look(p);
    p->from_start = true; /* a file that appears from now on is new */
    *ret = p;
    return TW_OK;
}

static void line_log(struct tw_progress *p)
{
    regmatch_t m[2];
    char word[64];
    double total = 0.0;
    if (regexec(&p->pattern, p->line, 2, m, 0) != 0)
        return;
    if (m[1].rm_so < 0) {
        p->done += 1.0;
        return;
    }
    int n = (int)(m[1].rm_eo - m[1].rm_so);
    (void)snprintf(word, sizeof word, "%.*s", n < 63 ? n : 63, p->line + m[1].rm_so);
    if (tw_num_f64(word, &total, NULL) == TW_OK && total >= 0.0)
        told_total(p, total);
}

static void line_message(struct tw_progress *p)
{
    double x = 0.0;
    if (strncmp(p->line, "total ", 6) == 0 && tw_num_f64(p->line + 6, &x, NULL) == TW_OK && x >= 0.0)
        told_total(p, x);
    else if (strncmp(p->line, "add ", 4) == 0 && tw_num_f64(p->line + 4, &x, NULL) == TW_OK && x >= 0.0)
        p->done += x;
}

static void bytes(struct tw_progress *p, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n' || text[i] == '\r') {
            p->line[p->n] = '\0';
            if (p->n > 0 && !p->skip) {
                if (p->socket)
                    line_message(p);
                else
                    line_log(p);
            }
            p->n = 0;
            p->skip = false;
        } else if (p->n + 1 < sizeof p->line && text[i] != '\0') {
            p->line[p->n++] = text[i];
        } else {
            p->skip = true;
        }
    }
}

/* ---- socket ---- */

enum tw_err tw_progress_socket(const char *path, struct tw_progress **ret, struct tw_why *why)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct stat st;
    if (strlen(path) >= sizeof at.sun_path)
        return tw_fail(why, TW_EINVAL, "the path of a socket has at most %zu characters: %s",
                       sizeof at.sun_path - 1, path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return tw_fail(why, TW_EINVAL, "%s is there and is no socket", path);
    struct tw_progress *p = make(path, why);
    if (!p)
        return TW_ENOMEM;
    (void)unlink(path);
    p->socket = true;
    p->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(0177);
    int rc = p->fd < 0 ? -1 : bind(p->fd, (const struct sockaddr *)&at, sizeof at);
    (void)umask(mask);
    if (rc != 0) {
        int number = errno;
        p->socket = false; /* not ours to take away */
        tw_progress_close(p);
        return tw_fail(why, TW_EIO, "%s: %s", path, strerror(number));
    }
    *ret = p;
    return TW_OK;
}

double tw_progress_take(struct tw_progress *p)
{
    char text[8192];
    for (int i = 0; i < READS && (p->socket || log_look(p)); i++) {
        ssize_t n = p->socket ? recv(p->fd, text, sizeof text - 1, MSG_DONTWAIT)
                              : pread(p->fd, text, sizeof text, p->at);
        if (n <= 0 && !(p->socket && n == 0))
            break;
        if (p->socket)
            text[n++] = '\n'; /* a datagram ends its last line */
        else
            p->at += n;
        bytes(p, text, (size_t)n);
    }
    double done = p->done;
    p->done = 0.0;
    return done;
}

void tw_progress_close(struct tw_progress *p)
{
    if (!p)
        return;
    if (p->fd >= 0)
        (void)close(p->fd);
    if (p->socket)
        (void)unlink(p->path);
    if (p->has_pattern)
        regfree(&p->pattern);
    free(p->path);
    free(p);
}
