/* SPDX-License-Identifier: Apache-2.0 */
/* The helper's configuration file. */
#include "capd/rules.h"

#include "base/num.h"
#include "sys/file.h"
#include "sys/trust.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULES_BYTES 65536
#define WORDS 9

static enum tw_err take_text(const char *word, char *ret, size_t size, struct tw_why *why)
{
    size_t n = strlen(word);
    if (n >= size)
        return tw_fail(why, TW_ERANGE, "\"%.40s...\" is longer than %zu characters", word, size - 1);
    memcpy(ret, word, n + 1);
    return TW_OK;
}

static enum tw_err take_user(struct tw_rules *r, char **word, struct tw_why *why)
{
    static const char *const name[] = {"status", "budget", "free", "allow"};
    if (r->n_user == TW_RULES_USERS)
        return tw_fail(why, TW_ERANGE, "more than %d users", TW_RULES_USERS);
    int64_t uid = 0;
    if (tw_num_i64(word[1], 0, UINT32_MAX - 1, &uid, NULL) != TW_OK) {
        const struct passwd *pw = getpwnam(word[1]);
        if (!pw)
            return tw_fail(why, TW_EPARSE, "there is no user \"%.60s\" on this machine", word[1]);
        uid = pw->pw_uid;
    }
    unsigned rights = 0;
    char *save = NULL;
    for (char *w = strtok_r(word[2], ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        size_t i = 0;
        while (i < 4 && strcmp(w, name[i]) != 0)
            i++;
        if (i == 4)
            return tw_fail(why, TW_EPARSE,
                           "no right is called \"%.40s\"; there are status, budget, free, allow", w);
        rights |= 1U << i;
    }
    if (tw_rules_rights(r, (uid_t)uid))
        return tw_fail(why, TW_EPARSE, "user %s is named twice", word[1]);
    r->user[r->n_user].uid = (uid_t)uid;
    r->user[r->n_user++].rights = rights;
    return TW_OK;
}

static enum tw_err take_gpu(struct tw_rules *r, char **word, struct tw_why *why)
{
    static const char *const label[] = {"min", "max", "safe"};
    if (r->n_gpu == TW_RULES_GPUS)
        return tw_fail(why, TW_ERANGE, "more than %d GPUs", TW_RULES_GPUS);
    struct tw_rules_gpu *g = &r->gpu[r->n_gpu];
    double *into[] = {&g->min_w, &g->max_w, &g->safe_w};
    enum tw_err err = take_text(word[1], g->uuid, sizeof g->uuid, why);
    for (size_t i = 0; i < 3 && err == TW_OK; i++)
        err = strcmp(word[2 + 2 * i], label[i]) == 0
                  ? tw_num_power(word[3 + 2 * i], into[i], why)
                  : tw_fail(why, TW_EPARSE, "write: gpu UUID min WATTS max WATTS safe WATTS");
    if (err != TW_OK)
        return err;
    if (!(g->min_w > 0.0 && g->min_w <= g->safe_w && g->safe_w <= g->max_w))
        return tw_fail(why, TW_ERANGE, "0 < min <= safe <= max does not hold: %g, %g, %g W", g->min_w,
                       g->safe_w, g->max_w);
    for (size_t i = 0; i < r->n_gpu; i++)
        if (strcmp(r->gpu[i].uuid, g->uuid) == 0)
            return tw_fail(why, TW_EPARSE, "%s is named twice", g->uuid);
    r->n_gpu++;
    return TW_OK;
}

static enum tw_err take_lease(struct tw_rules *r, char **word, struct tw_why *why)
{
    enum tw_err err = tw_num_duration(word[1], &r->lease_min_s, why);
    if (err == TW_OK)
        err = tw_num_duration(word[2], &r->lease_max_s, why);
    if (err == TW_OK &&
        !(r->lease_min_s >= 0.05 && r->lease_min_s <= r->lease_max_s && r->lease_max_s <= 3600.0))
        err = tw_fail(why, TW_ERANGE, "a lease is between 50ms and 1h, and min is at most max");
    return err;
}

static enum tw_err take_watch(struct tw_rules *r, char **word, struct tw_why *why)
{
    enum tw_err err = tw_num_duration(word[1], &r->watch_s, why);
    if (err == TW_OK && !(r->watch_s >= 0.05 && r->watch_s <= 60.0))
        err = tw_fail(why, TW_ERANGE, "the period is between 50ms and 60s");
    return err;
}

static enum tw_err take_line(struct tw_rules *r, char *line, struct tw_why *why)
{
    char *word[WORDS + 1] = {0}, *save = NULL;
    size_t n = 0;
    line[strcspn(line, "#")] = '\0';
    for (char *w = strtok_r(line, " \t\r", &save); w && n <= WORDS; w = strtok_r(NULL, " \t\r", &save))
        word[n++] = w;
    if (n == 0)
        return TW_OK;
    const struct {
        const char *word;
        size_t n_words;
        char *text; /* or take */
        size_t size;
        enum tw_err (*take)(struct tw_rules *, char **, struct tw_why *);
    } known[] = {
        {"device", 2, r->device, sizeof r->device, NULL},
        {"socket", 2, r->socket, sizeof r->socket, NULL},
        {"group", 2, r->group, sizeof r->group, NULL},
        {"state", 2, r->state, sizeof r->state, NULL},
        {"audit", 2, r->audit, sizeof r->audit, NULL},
        {"user", 3, NULL, 0, take_user},
        {"gpu", 8, NULL, 0, take_gpu},
        {"lease", 3, NULL, 0, take_lease},
        {"watch", 2, NULL, 0, take_watch},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].word, word[0]) != 0)
            continue;
        if (n != known[i].n_words)
            return tw_fail(why, TW_EPARSE, "%s takes %zu words after it, not %zu", word[0],
                           known[i].n_words - 1, n - 1);
        return known[i].take ? known[i].take(r, word, why)
                             : take_text(word[1], known[i].text, known[i].size, why);
    }
    return tw_fail(why, TW_EPARSE, "\"%.40s\" is not known; see tokwatt-capd(8)", word[0]);
}

enum tw_err tw_rules_parse(const char *name, const char *text, struct tw_rules *ret, struct tw_why *why)
{
    struct tw_rules r = {.socket = "/run/tokwatt/capd.sock",
                         .state = "/var/lib/tokwatt-capd/state",
                         .audit = "/var/lib/tokwatt-capd/audit.log",
                         .lease_min_s = 0.2,
                         .lease_max_s = 60.0,
                         .watch_s = 1.0};
    unsigned number = 0;
    for (const char *at = text; *at;) {
        char line[1024];
        size_t n = strcspn(at, "\n");
        number++;
        if (n >= sizeof line)
            return tw_fail(why, TW_EPARSE, "%s:%u: the line is longer than %zu characters", name, number,
                           sizeof line - 1);
        memcpy(line, at, n);
        line[n] = '\0';
        enum tw_err err = take_line(&r, line, why);
        if (err != TW_OK) {
            tw_why_prefix(why, "%s:%u: ", name, number);
            return err;
        }
        at += n + (at[n] == '\n');
    }
    if (r.device[0] == '\0' || r.n_gpu == 0 || r.n_user == 0)
        return tw_fail(why, TW_EINVAL, "%s names no %s; see tokwatt-capd(8)", name,
                       r.device[0] == '\0' ? "device"
                       : r.n_gpu == 0      ? "gpu"
                                           : "user");
    *ret = r;
    return TW_OK;
}

enum tw_err tw_rules_load(const char *path, struct tw_rules *ret, struct tw_why *why)
{
    char *text = NULL;
    size_t n = 0;
    enum tw_err err = tw_trust_path(path, why);
    if (err == TW_OK)
        err = tw_file_read(path, RULES_BYTES, &text, &n, why);
    if (err == TW_OK && strlen(text) != n)
        err = tw_fail(why, TW_EPARSE, "%s holds a NUL byte; it is plain text", path);
    if (err == TW_OK)
        err = tw_rules_parse(path, text, ret, why);
    free(text);
    return err;
}

unsigned tw_rules_rights(const struct tw_rules *rules, uid_t uid)
{
    for (size_t i = 0; i < rules->n_user; i++)
        if (rules->user[i].uid == uid)
            return rules->user[i].rights;
    return 0;
}
