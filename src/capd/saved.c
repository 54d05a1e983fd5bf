/* SPDX-License-Identifier: Apache-2.0 */
/* The saved state as text. */
#include "capd/saved.h"

#include "base/chain.h"
#include "base/num.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void sum_of(const char *line, size_t n, char ret[static 9])
{
    unsigned char digest[32];
    tw_sha256(line, n, digest);
    (void)snprintf(ret, 9, "%02x%02x%02x%02x", digest[0], digest[1], digest[2], digest[3]);
}

/* Check and cut the sum off a line; false when it does not hold. */
static bool is_intact(char *line)
{
    char sum[9];
    char *mark = strrchr(line, '#');
    if (!mark || mark == line || mark[-1] != ' ')
        return false;
    sum_of(line, (size_t)(mark - 1 - line), sum);
    if (strcmp(mark + 1, sum) != 0)
        return false;
    mark[-1] = '\0';
    return true;
}

static bool take_gpu(struct tw_saved *s, char *line)
{
    struct tw_saved_gpu g = {.found_w = NAN};
    char found[32], kind[16];
    int used = 0;
    if (s->n == TW_SAVED_GPUS || sscanf(line, "gpu %47s found %31s %15s%n", g.uuid, found, kind, &used) != 3 ||
        line[used] != '\0')
        return false;
    if (strcmp(found, "unknown") != 0 && tw_num_f64(found, &g.found_w, NULL) != TW_OK)
        return false;
    g.budget = strcmp(kind, "free") != 0; /* the careful kind where a later version wrote another word */
    s->gpu[s->n++] = g;
    return true;
}

void tw_saved_parse(const char *text, size_t n, struct tw_saved *ret)
{
    *ret = (struct tw_saved){.n = 0};
    bool has_head = false, ended = false, clean = true;
    for (size_t at = 0; at < n;) {
        char line[160];
        const char *newline = memchr(text + at, '\n', n - at);
        size_t len = newline ? (size_t)(newline - text) - at : n - at;
        bool fits = newline && len < sizeof line && !memchr(text + at, '\0', len);
        if (fits) {
            memcpy(line, text + at, len);
            line[len] = '\0';
        }
        at += len + 1;
        if (!fits || ended || !is_intact(line)) {
            clean = false;
            continue;
        }
        int64_t count = 0;
        if (strcmp(line, "tokwatt-capd 1") == 0)
            has_head = true;
        else if (strncmp(line, "end ", 4) == 0)
            ended = tw_num_i64(line + 4, 0, TW_SAVED_GPUS, &count, NULL) == TW_OK && (size_t)count == ret->n;
        else if (!take_gpu(ret, line))
            clean = false;
    }
    ret->whole = has_head && ended && clean;
}

static size_t put_line(char *buf, const char *line)
{
    char sum[9];
    sum_of(line, strlen(line), sum);
    return (size_t)snprintf(buf, 160, "%s #%s\n", line, sum);
}

size_t tw_saved_print(const struct tw_saved *s, char *buf)
{
    char line[144];
    size_t at = put_line(buf, "tokwatt-capd 1");
    for (size_t i = 0; i < s->n; i++) {
        const struct tw_saved_gpu *g = &s->gpu[i];
        int n = snprintf(line, sizeof line, "gpu %s found ", g->uuid);
        if (g->found_w > 0.0)
            n += snprintf(line + n, sizeof line - (size_t)n, "%.3f", g->found_w);
        else
            n += snprintf(line + n, sizeof line - (size_t)n, "unknown");
        (void)snprintf(line + n, sizeof line - (size_t)n, " %s", g->budget ? "budget" : "free");
        at += put_line(buf + at, line);
    }
    (void)snprintf(line, sizeof line, "end %zu", s->n);
    return at + put_line(buf + at, line);
}
