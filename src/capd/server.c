/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the privileged helper. */
#include "capd/server.h"

#include "capd/saved.h"
#include "capd/wire.h"
#include "ctl/lease.h"
#include "sys/audit.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/trust.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define AUDIT_BYTES ((size_t)16 << 20)
#define ACCEPTS_PER_TURN 8
#define STRANGERS_PERIOD_US 10000000LL /* one line of the log for all that came in this time */
#define SYNC_PERIOD_US 1000000LL       /* the audit log reaches the disk at least so often */

struct client {
    int fd; /* -1: free */
    uid_t uid;
    pid_t pid;
    unsigned rights;
    double tokens; /* requests that may be read now */
    int64_t tokens_us;
};

struct gpu {
    const struct tw_rules_gpu *rule;
    struct tw_lease lease;
    struct tw_worker *worker;
    struct client *owner; /* NULL: nobody */
    int64_t lease_us, tick_us;
    unsigned turn;                        /* of the last job given */
    int64_t begun_us, issued_us, read_us; /* of the last job that ended */
    bool stuck;                           /* said once */
    struct client *waiting;               /* for the answer to its request */
    struct tw_capd_ask ask;
};

struct tw_capd {
    struct tw_rules rules;
    struct gpu gpu[TW_RULES_GPUS];
    struct client client[TW_CAPD_CLIENTS];
    struct tw_saved left_out; /* saved GPUs that the configuration no longer lists: kept for the day it does */
    int listen_fd, wake_fd;
    bool store;
    struct tw_audit audit;
    uint64_t lines_lost, strangers;
    int64_t strangers_us, sync_us;
    struct tw_log_gate alarm_gate;
};

/* ---- the log ---- */

static void audit(struct tw_capd *s, const char *fmt, ...) TW_PRINTF(2, 3);
static void audit(struct tw_capd *s, const char *fmt, ...)
{
    char text[TW_CHAIN_LINE_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (strstr(text, "ALARM"))
        tw_log_every(&s->alarm_gate, 1.0, TW_LOG_WARN, "%s", text);
    if (s->lines_lost > 0 && tw_audit_add(&s->audit, "ALARM %lu lines before this one could not be written",
                                          (unsigned long)s->lines_lost))
        s->lines_lost = 0;
    if (s->lines_lost > 0 || !tw_audit_add(&s->audit, "%s", text)) {
        /* Lowering must not wait for a disk; the number is owned up to when there is room again. */
        s->lines_lost++;
        tw_log_every(&s->alarm_gate, 1.0, TW_LOG_WARN, "ALARM the audit log cannot be written: %s", text);
    }
}

/* ---- answers ---- */

static void drop_client(struct tw_capd *s, struct client *c, const char *cause);

static void reply(struct tw_capd *s, struct client *c, uint32_t seq, const struct gpu *g, enum tw_err status,
                  const char *text)
{
    struct tw_capd_reply r = {
        .magic = TW_CAPD_MAGIC, .seq = seq, .status = status, .n_gpu = (uint16_t)s->rules.n_gpu};
    (void)snprintf(r.text, sizeof r.text, "%s", text);
    if (g) {
        const struct tw_lease *l = &g->lease;
        int64_t left_us = g->owner ? l->end_us - tw_boot_us() : 0;
        r.state = (uint16_t)l->state;
        r.kind = l->budget ? TW_CAPD_BUDGET : TW_CAPD_FREE;
        r.held = !g->owner ? TW_CAPD_NOBODY : g->owner == c ? TW_CAPD_YOU : TW_CAPD_ANOTHER;
        r.lease_left_ms = left_us > 0 ? (uint32_t)(left_us / 1000) : 0;
        r.found_w = l->found_w;
        r.asked_w = l->asked_w;
        r.requested_w = l->requested_w;
        r.enforced_w = l->enforced_w;
        r.begun_us = g->begun_us;
        r.issued_us = g->issued_us;
        r.read_us = g->read_us;
        r.safe_w = g->rule->safe_w;
        r.min_w = g->rule->min_w;
        r.max_w = g->rule->max_w;
        memcpy(r.uuid, g->rule->uuid, sizeof r.uuid);
    }
    if (send(c->fd, &r, sizeof r, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof r)
        drop_client(s, c, "does not fetch its replies");
}

static void answer(struct tw_capd *s, struct gpu *g, enum tw_err status, const char *text)
{
    struct client *c = g->waiting;
    g->waiting = NULL;
    if (c)
        reply(s, c, g->ask.seq, g, status, text);
}

/* The client that waits learns what the event was to its request, unless there is more to come. */
static void answer_event(struct tw_capd *s, struct gpu *g, enum tw_lease_event ev, enum tw_lease_action action,
                         const struct tw_job_result *r)
{
    const struct tw_lease *l = &g->lease;
    struct tw_why why;
    bool as_asked = fabs(l->requested_w - l->asked_w) <= TW_LEASE_TOL_W;
    if (!g->waiting || ev < TW_LEASE_EV_DONE) /* the events before DONE ask, they answer nothing */
        return;
    if (ev == TW_LEASE_EV_FAIL) {
        answer(s, g, r && r->err != TW_OK ? r->err : TW_EIO,
               r && r->err != TW_OK ? r->why.text : "no sensible limit read");
    } else if (ev == TW_LEASE_EV_UNSTORED) {
        answer(s, g, TW_EIO, "the state cannot be saved to disk; nothing more is written to this GPU");
    } else if (g->ask.op == TW_CAPD_READ) {
        answer(s, g, TW_OK, tw_lease_state_text[l->state]);
    } else if (ev == TW_LEASE_EV_DONE || ev == TW_LEASE_EV_STORED) {
        if (action == TW_LEASE_DO_NONE)
            answer(s, g, TW_OK, tw_lease_state_text[l->state]);
    } else if (g->ask.op == TW_CAPD_SET && as_asked) {
        answer(s, g, TW_OK, "requested as asked; not enforced yet");
    } else {
        answer(s, g,
               tw_fail(&why, TW_ERANGE, "the device holds %.1f W requested, %.1f W enforced", l->requested_w,
                       l->enforced_w),
               why.text);
    }
}

/* ---- the state machine and what it wants done ---- */

static void give(struct gpu *g, enum tw_job_kind kind, double watts)
{
    tw_worker_give(g->worker, (struct tw_job){.kind = kind, .watts = watts, .turn = ++g->turn});
}

static void step_because(struct tw_capd *s, struct gpu *g, enum tw_lease_event ev, int64_t now, double watts,
                         const struct tw_job_result *r)
{
    struct tw_lease *l = &g->lease;
    enum tw_lease_state from = l->state;
    double w = NAN;
    enum tw_lease_action action = tw_lease_step(l, ev, now, watts, &w);
    bool keeps = l->state >= TW_LEASE_READING && l->state <= TW_LEASE_CONFIRMED;
    struct client *who = g->owner;
    if (!keeps && l->state != TW_LEASE_CONTESTED)
        g->owner = NULL;
    if (ev == TW_LEASE_EV_STORED && l->state == TW_LEASE_SAVED && from != TW_LEASE_SAVED)
        l->end_us = now + g->lease_us; /* from the moment that the client can use it */
    if (action == TW_LEASE_DO_READ)
        give(g, TW_JOB_READ, 0.0);
    else if (action == TW_LEASE_DO_WRITE)
        give(g, TW_JOB_WRITE, w);
    else if (action == TW_LEASE_DO_LOWER)
        give(g, TW_JOB_LOWER, w);
    else if (action == TW_LEASE_DO_STORE)
        s->store = true;
    bool fell = ev == TW_LEASE_EV_OFF || ev == TW_LEASE_EV_FAIL || ev == TW_LEASE_EV_UNSTORED;
    if (from != l->state || action == TW_LEASE_DO_WRITE || ev == TW_LEASE_EV_DRIFT) {
        g->tick_us = now + (int64_t)(s->rules.watch_s * (l->state == TW_LEASE_WRITTEN ? 1e5 : 1e6));
        audit(s,
              "%s %s: %s -> %s%s found=%.1f asked=%.1f requested=%.1f enforced=%.1f write=%.1f uid=%d "
              "pid=%d%s%.31s%s%.90s",
              g->rule->uuid, tw_lease_event_name[ev], tw_lease_state_name[from], tw_lease_state_name[l->state],
              l->state == TW_LEASE_CONTESTED || ev == TW_LEASE_EV_DRIFT || fell ? " ALARM" : "", l->found_w,
              l->asked_w, l->requested_w, l->enforced_w, w, who ? (int)who->uid : -1, who ? (int)who->pid : -1,
              ev == TW_LEASE_EV_SET && g->ask.reason[0] ? " reason=" : "",
              ev == TW_LEASE_EV_SET ? g->ask.reason : "", fell && r && r->err != TW_OK ? " because " : "",
              fell && r ? r->why.text : "");
    }
    answer_event(s, g, ev, action, r);
}

static void step(struct tw_capd *s, struct gpu *g, enum tw_lease_event ev, int64_t now, double watts)
{
    step_because(s, g, ev, now, watts, NULL);
}

static void drop_client(struct tw_capd *s, struct client *c, const char *cause)
{
    int64_t now = tw_boot_us();
    int fd = c->fd;
    if (fd < 0)
        return;
    c->fd = -1; /* first: what follows may want to answer it */
    close(fd);
    if (cause)
        audit(s, "client uid=%d pid=%d closed: %s", (int)c->uid, (int)c->pid, cause);
    for (size_t i = 0; i < s->rules.n_gpu; i++) {
        struct gpu *g = &s->gpu[i];
        if (g->waiting == c)
            g->waiting = NULL;
        if (g->owner == c)
            step(s, g, TW_LEASE_EV_DEATH, now, 0.0);
    }
}

/* ---- requests ---- */

static struct gpu *gpu_by_uuid(struct tw_capd *s, const char *uuid)
{
    for (size_t i = 0; i < s->rules.n_gpu; i++)
        if (strcmp(s->gpu[i].rule->uuid, uuid) == 0)
            return &s->gpu[i];
    return NULL;
}

/* Which event an operation is, where it is one. */
static const enum tw_lease_event event_of[TW_CAPD_OPS] = {
    [TW_CAPD_ACQUIRE] = TW_LEASE_EV_ACQUIRE, [TW_CAPD_SET] = TW_LEASE_EV_SET,
    [TW_CAPD_RELEASE] = TW_LEASE_EV_RELEASE, [TW_CAPD_LEAVE] = TW_LEASE_EV_LEAVE,
    [TW_CAPD_ALLOW] = TW_LEASE_EV_ALLOW,
};

static enum tw_err may(const struct tw_capd *s, const struct client *c, const struct gpu *g,
                       const struct tw_capd_ask *ask, struct tw_why *why)
{
    const struct tw_lease *l = &g->lease;
    bool budget = ask->kind == TW_CAPD_BUDGET;
    double lease_s = ask->lease_ms / 1e3;
    if (ask->op == TW_CAPD_ACQUIRE) {
        if (!(c->rights & (budget ? TW_RIGHT_BUDGET : TW_RIGHT_FREE)))
            return tw_fail(why, TW_EPERM, "this user may not hold GPUs %s a budget",
                           budget ? "with" : "without");
        if (!(lease_s >= s->rules.lease_min_s && lease_s <= s->rules.lease_max_s))
            return tw_fail(why, TW_ERANGE, "a lease is %g to %g s here", s->rules.lease_min_s,
                           s->rules.lease_max_s);
        if (g->owner)
            return tw_fail(why, TW_EPERM, "held by %s (uid %d, pid %d)",
                           g->owner == c ? "you" : "another client", (int)g->owner->uid, (int)g->owner->pid);
        if (!tw_lease_may_acquire(l, budget))
            return tw_fail(why, TW_EPERM, "a restore %s a budget is pending; allow it first",
                           l->budget ? "with" : "without");
    } else if (ask->op == TW_CAPD_ALLOW) {
        if (!(c->rights & TW_RIGHT_ALLOW))
            return tw_fail(why, TW_EPERM, "this user may not allow a restore");
        if (g->owner)
            return tw_fail(why, TW_EPERM, "the GPU is held; its holder gives it back");
    } else if (g->owner != c) {
        return tw_fail(why, TW_EPERM, "you do not hold this GPU (state %s)", tw_lease_state_name[l->state]);
    }
    if (ask->op == TW_CAPD_SET && !(ask->watts >= g->rule->min_w && ask->watts <= g->rule->max_w))
        return tw_fail(why, TW_ERANGE, "%.1f W is outside %.1f to %.1f W, the bounds configured for this GPU",
                       ask->watts, g->rule->min_w, g->rule->max_w);
    if (g->waiting)
        return tw_fail(why, TW_ELIMIT, "a request for this GPU is in flight; one at a time");
    return TW_OK;
}

static void do_gpu_request(struct tw_capd *s, struct client *c, struct gpu *g, const struct tw_capd_ask *ask)
{
    struct tw_why why;
    int64_t now = tw_boot_us(), began = 0;
    enum tw_err err = may(s, c, g, ask, &why);
    enum tw_lease_event ev = event_of[ask->op];
    if (err == TW_OK && ask->op != TW_CAPD_READ &&
        tw_lease_table[g->lease.state][ev].action == TW_LEASE_DO_REFUSE)
        err = tw_fail(&why, TW_ELIMIT, "not while the GPU is %s", tw_lease_state_name[g->lease.state]);
    if (err != TW_OK) {
        if (err == TW_EPERM || err == TW_ERANGE)
            audit(s, "%s refused %s %.1f W to uid=%d pid=%d: %s", g->rule->uuid, tw_capd_op_name[ask->op],
                  ask->watts, (int)c->uid, (int)c->pid, why.text);
        reply(s, c, ask->seq, g, err, why.text);
        return;
    }
    g->waiting = c;
    g->ask = *ask;
    if (ask->op == TW_CAPD_ACQUIRE) {
        g->owner = c;
        g->lease_us = (int64_t)ask->lease_ms * 1000;
        g->lease.budget = ask->kind == TW_CAPD_BUDGET;
    }
    if (ask->op == TW_CAPD_ACQUIRE || ask->op == TW_CAPD_SET || ask->op == TW_CAPD_READ)
        g->lease.end_us = now + g->lease_us;
    if (ask->op != TW_CAPD_READ)
        step(s, g, ev, now, ask->watts);
    else if (!tw_worker_is_busy(g->worker, &began)) /* else the answer of the job that runs serves */
        give(g, TW_JOB_READ, 0.0);
    /* Taken over as it stands, nothing is on its way that would bring the answer. */
    if (g->waiting && ask->op == TW_CAPD_ACQUIRE && g->lease.state != TW_LEASE_READING)
        answer(s, g, TW_OK, "taken over as it stands");
}

static void do_request(struct tw_capd *s, struct client *c, const struct tw_capd_ask *ask)
{
    struct gpu *g = ask->uuid[0] ? gpu_by_uuid(s, ask->uuid) : NULL;
    int64_t now = tw_boot_us();
    if (ask->op == TW_CAPD_HELLO) {
        reply(s, c, ask->seq, NULL, TW_OK, "tokwatt-capd " TW_VERSION);
    } else if (ask->op == TW_CAPD_RENEW) {
        for (size_t i = 0; i < s->rules.n_gpu; i++)
            if (s->gpu[i].owner == c)
                s->gpu[i].lease.end_us = now + s->gpu[i].lease_us;
        reply(s, c, ask->seq, NULL, TW_OK, "renewed");
    } else if (ask->op == TW_CAPD_STATUS) {
        if (!ask->uuid[0] && ask->index < s->rules.n_gpu)
            g = &s->gpu[ask->index];
        if (!(c->rights & TW_RIGHT_STATUS))
            reply(s, c, ask->seq, NULL, TW_EPERM, "this user may not ask for the status");
        else
            reply(s, c, ask->seq, g, g ? TW_OK : TW_ENOENT,
                  g ? tw_lease_state_text[g->lease.state] : "no such GPU");
    } else if (!g) {
        reply(s, c, ask->seq, NULL, TW_ENOENT, "no such GPU in the configuration");
    } else {
        do_gpu_request(s, c, g, ask);
    }
}

static bool has_token(struct client *c, int64_t now)
{
    c->tokens = fmin(TW_CAPD_BURST, c->tokens + (double)(now - c->tokens_us) * 1e-6 * TW_CAPD_RATE);
    c->tokens_us = now;
    return c->tokens >= 1.0;
}

static void read_client(struct tw_capd *s, struct client *c)
{
    unsigned char packet[sizeof(struct tw_capd_ask)];
    struct tw_capd_ask ask;
    struct tw_why why;
    ssize_t n = recv(c->fd, packet, sizeof packet, MSG_DONTWAIT | MSG_TRUNC); /* MSG_TRUNC: the true length */
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop_client(s, c, n < 0 ? strerror(errno) : NULL);
        return;
    }
    c->tokens -= 1.0;
    if (tw_capd_parse(packet, (size_t)n, &ask, &why) == TW_OK) {
        do_request(s, c, &ask);
        return;
    }
    reply(s, c, 0, NULL, TW_EPARSE, why.text);
    drop_client(s, c, why.text);
}

/* ---- who comes in ---- */

static void strangers(struct tw_capd *s, int64_t now)
{
    if (s->strangers == 0 || now < s->strangers_us)
        return;
    audit(s, "turned away %lu connections: user not listed, or too many", (unsigned long)s->strangers);
    s->strangers = 0;
    s->strangers_us = now + STRANGERS_PERIOD_US;
}

static void take_client(struct tw_capd *s, int64_t now)
{
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t size = sizeof who;
    unsigned rights =
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? tw_rules_rights(&s->rules, who.uid) : 0;
    struct client *free_slot = NULL;
    unsigned same = 0;
    for (size_t i = 0; i < TW_CAPD_CLIENTS; i++) {
        if (s->client[i].fd < 0)
            free_slot = &s->client[i];
        else
            same += s->client[i].uid == who.uid;
    }
    if (rights == 0 || !free_slot || same >= TW_CAPD_CLIENTS_USER) {
        close(fd);
        s->strangers++;
        return;
    }
    *free_slot = (struct client){
        .fd = fd, .uid = who.uid, .pid = who.pid, .rights = rights, .tokens = TW_CAPD_BURST, .tokens_us = now};
}

/* ---- what happens by itself ---- */

static void take_results(struct tw_capd *s)
{
    uint64_t count;
    (void)!read(s->wake_fd, &count, sizeof count);
    for (size_t i = 0; i < s->rules.n_gpu; i++) {
        struct gpu *g = &s->gpu[i];
        struct tw_job_result r;
        if (!tw_worker_take(g->worker, &r))
            continue;
        g->stuck = false;
        g->begun_us = r.begun_us;
        g->issued_us = r.issued_us;
        g->read_us = r.read_us;
        if (r.job.turn != g->turn) { /* something newer is on its way */
            if (r.err == TW_OK)
                tw_lease_note(&g->lease, r.requested_w, r.enforced_w);
            continue;
        }
        int64_t now = tw_boot_us();
        enum tw_lease_event ev = tw_lease_judge(&g->lease, now, r.err == TW_OK, r.requested_w, r.enforced_w);
        step_because(s, g, ev, now, 0.0, &r);
    }
}

static void tick_gpu(struct tw_capd *s, struct gpu *g, int64_t now)
{
    int64_t began = 0;
    if (g->owner && now >= g->lease.end_us)
        step(s, g, TW_LEASE_EV_LAPSE, now, 0.0);
    if (tw_worker_is_busy(g->worker, &began)) {
        if (began == 0 || g->stuck || (double)(now - began) * 1e-6 < TW_CAPD_STUCK_S)
            return;
        g->stuck = true;
        audit(s, "%s ALARM the device has not answered for %g s (state %s)", g->rule->uuid, TW_CAPD_STUCK_S,
              tw_lease_state_name[g->lease.state]);
        answer(s, g, TW_EIO, "the device does not answer");
    } else if (now >= g->tick_us) {
        g->tick_us = now + (int64_t)(s->rules.watch_s * (g->lease.state == TW_LEASE_WRITTEN ? 1e5 : 1e6));
        step(s, g, TW_LEASE_EV_TICK, now, 0.0);
    }
}

static void store(struct tw_capd *s)
{
    static char text[TW_SAVED_BYTES];
    static struct tw_saved saved;
    struct tw_why why;
    saved = s->left_out;
    for (size_t i = 0; i < s->rules.n_gpu; i++) {
        const struct gpu *g = &s->gpu[i];
        if (!tw_lease_is_stored(g->lease.state) || saved.n == TW_SAVED_GPUS)
            continue;
        struct tw_saved_gpu *to = &saved.gpu[saved.n++];
        *to = (struct tw_saved_gpu){.found_w = g->lease.found_w, .budget = g->lease.budget};
        memcpy(to->uuid, g->rule->uuid, sizeof to->uuid);
    }
    s->store = false;
    enum tw_err err = tw_file_replace(s->rules.state, text, tw_saved_print(&saved, text), &why);
    if (err != TW_OK)
        audit(s, "ALARM the state cannot be saved: %s", why.text);
    int64_t now = tw_boot_us();
    for (size_t i = 0; i < s->rules.n_gpu; i++)
        if (s->gpu[i].lease.state == TW_LEASE_FOUND || s->gpu[i].lease.state == TW_LEASE_RESTORED)
            step(s, &s->gpu[i], err == TW_OK ? TW_LEASE_EV_STORED : TW_LEASE_EV_UNSTORED, now, 0.0);
}

/* ---- the turn ---- */

static int wait_for(const struct tw_capd *s, int64_t now, int wait_ms, bool throttled)
{
    int64_t soonest = now + (int64_t)wait_ms * 1000;
    for (size_t i = 0; i < s->rules.n_gpu; i++) {
        const struct gpu *g = &s->gpu[i];
        if (g->owner && g->lease.end_us < soonest)
            soonest = g->lease.end_us;
        if (g->lease.state != TW_LEASE_IDLE && g->tick_us > now && g->tick_us < soonest)
            soonest = g->tick_us;
    }
    int64_t ms = (soonest - now + 999) / 1000;
    if (throttled && ms > 2)
        ms = 2;
    return s->store || ms < 0 ? 0 : (int)ms;
}

void tw_capd_turn(struct tw_capd *s, int stop_fd, int wait_ms)
{
    struct pollfd p[3 + TW_CAPD_CLIENTS] = {{.fd = s->wake_fd, .events = POLLIN},
                                            {.fd = s->listen_fd, .events = POLLIN},
                                            {.fd = stop_fd, .events = POLLIN}};
    int64_t now = tw_boot_us();
    bool throttled = false;
    for (size_t i = 0; i < TW_CAPD_CLIENTS; i++) {
        bool may_read = s->client[i].fd >= 0 && has_token(&s->client[i], now);
        throttled |= s->client[i].fd >= 0 && !may_read;
        p[3 + i] = (struct pollfd){.fd = s->client[i].fd, .events = may_read ? POLLIN : 0};
    }
    if (poll(p, 3 + TW_CAPD_CLIENTS, wait_for(s, now, wait_ms, throttled)) < 0)
        for (size_t i = 0; i < 3 + TW_CAPD_CLIENTS; i++)
            p[i].revents = 0; /* interrupted: what is due by time is still done */
    if (p[0].revents)
        take_results(s);
    for (size_t i = 0; i < TW_CAPD_CLIENTS; i++) {
        struct client *c = &s->client[i];
        if (c->fd < 0 || c->fd != p[3 + i].fd || !p[3 + i].revents)
            continue;
        if (p[3 + i].revents & POLLIN)
            read_client(s, c);
        else
            drop_client(s, c, NULL);
    }
    now = tw_boot_us();
    for (int i = 0; p[1].revents && i < ACCEPTS_PER_TURN; i++)
        take_client(s, now);
    strangers(s, now);
    for (size_t i = 0; i < s->rules.n_gpu; i++)
        tick_gpu(s, &s->gpu[i], now);
    if (s->store)
        store(s);
    if (s->audit.dirty && now >= s->sync_us) {
        if (!tw_audit_sync(&s->audit))
            tw_log_every(&s->alarm_gate, 1.0, TW_LOG_WARN, "ALARM the audit log does not reach the disk");
        s->sync_us = now + SYNC_PERIOD_US;
    }
}

/* ---- opening and closing ---- */

/* What was saved before the crash or the power cut: every GPU in it goes to its safe value first. Of a damaged
 * file the whole lines are believed, and a GPU that it may have lost is treated as one whose found value is
 * unknown. */
static enum tw_err boot(struct tw_capd *s, bool ran_before, struct tw_why *why)
{
    static struct tw_saved saved;
    char *text = NULL;
    size_t n = 0;
    int64_t now = tw_boot_us();
    enum tw_err err = tw_file_read(s->rules.state, TW_SAVED_BYTES, &text, &n, why);
    if (err != TW_OK && err != TW_ENOENT && err != TW_ELIMIT)
        return err;
    tw_saved_parse(text ? text : "", n, &saved);
    free(text);
    bool lost = !saved.whole && (err != TW_ENOENT || ran_before);
    if (lost) {
        char aside[sizeof s->rules.state + 16];
        (void)snprintf(aside, sizeof aside, "%s.damaged", s->rules.state);
        (void)rename(s->rules.state, aside); /* for a person to look at; it may also just be missing */
        audit(s,
              "ALARM the saved state is damaged or missing: every GPU goes to its safe value, restore pending");
    }
    for (size_t i = 0; i < saved.n; i++) {
        struct gpu *g = gpu_by_uuid(s, saved.gpu[i].uuid);
        if (!g) {
            audit(s, "ALARM %s is in the saved state and not in the configuration; left as it is",
                  saved.gpu[i].uuid);
            s->left_out.gpu[s->left_out.n++] = saved.gpu[i];
        } else if (g->lease.state == TW_LEASE_IDLE) {
            g->lease.budget = saved.gpu[i].budget;
            step(s, g, TW_LEASE_EV_BOOT, now, saved.gpu[i].found_w);
        }
    }
    for (size_t i = 0; i < s->rules.n_gpu && lost; i++)
        if (s->gpu[i].lease.state == TW_LEASE_IDLE)
            step(s, &s->gpu[i], TW_LEASE_EV_BOOT, now, NAN);
    store(s); /* also the very first time: a missing file is then a lost one */
    return TW_OK;
}

enum tw_err tw_capd_open(const struct tw_rules *rules, const struct tw_worker_device *dev, int listen_fd,
                         struct tw_capd **ret, struct tw_why *why)
{
    enum tw_err err = tw_trust_path(rules->state, why);
    if (err == TW_OK)
        err = tw_trust_path(rules->audit, why);
    struct tw_capd *s = err == TW_OK ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return err != TW_OK ? err : tw_fail(why, TW_ENOMEM, "no memory for the helper");
    s->rules = *rules;
    s->listen_fd = listen_fd;
    s->audit.fd = -1;
    for (size_t i = 0; i < TW_CAPD_CLIENTS; i++)
        s->client[i].fd = -1;
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    err = s->wake_fd < 0 ? tw_fail(why, TW_EIO, "eventfd: %s", strerror(errno))
                         : tw_audit_open(&s->audit, rules->audit, AUDIT_BYTES, why);
    bool ran_before = s->audit.size > 0;
    for (size_t i = 0; i < rules->n_gpu && err == TW_OK; i++) {
        s->gpu[i].rule = &s->rules.gpu[i];
        tw_lease_init(&s->gpu[i].lease, rules->gpu[i].safe_w, rules->gpu[i].max_w);
        err = tw_worker_new(dev, rules->gpu[i].uuid, s->wake_fd, &s->gpu[i].worker, why);
    }
    if (err == TW_OK) {
        audit(s, "start version=" TW_VERSION " gpus=%zu pid=%d", rules->n_gpu, (int)getpid());
        err = boot(s, ran_before, why);
    }
    if (err != TW_OK) {
        s->listen_fd = -1; /* still the caller's */
        tw_capd_close(s);
        return err;
    }
    *ret = s;
    return TW_OK;
}

void tw_capd_stop(struct tw_capd *s)
{
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    s->listen_fd = -1;
    for (size_t i = 0; i < TW_CAPD_CLIENTS; i++)
        drop_client(s, &s->client[i], "the helper stops");
}

bool tw_capd_is_settled(struct tw_capd *s)
{
    int64_t began = 0;
    bool busy = s->store;
    for (size_t i = 0; i < s->rules.n_gpu; i++)
        busy |= tw_worker_is_busy(s->gpu[i].worker, &began);
    return !busy;
}

bool tw_capd_is_well(const struct tw_capd *s)
{
    for (size_t i = 0; i < s->rules.n_gpu; i++)
        if (s->gpu[i].lease.state == TW_LEASE_EXPIRED || s->gpu[i].lease.state == TW_LEASE_CONTESTED)
            return false;
    return true;
}

void tw_capd_close(struct tw_capd *s)
{
    if (!s)
        return;
    bool all = true;
    for (size_t i = 0; i < TW_CAPD_CLIENTS; i++)
        if (s->client[i].fd >= 0)
            close(s->client[i].fd);
    for (size_t i = 0; i < s->rules.n_gpu; i++)
        all &= tw_worker_free(s->gpu[i].worker);
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    if (s->audit.fd >= 0) {
        audit(s, "stop");
        (void)tw_audit_sync(&s->audit); /* the disk's last word is in the journal */
        tw_audit_close(&s->audit);
    }
    if (all) { /* a thread stuck in its driver still writes to wake_fd one day */
        close(s->wake_fd);
        free(s);
    }
}
