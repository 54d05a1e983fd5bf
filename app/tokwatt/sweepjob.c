/* SPDX-License-Identifier: Apache-2.0 */
/* The job under a sweep. */
#include "tokwatt/sweepjob.h"

#include "io/nvml/nvml.h"
#include "sys/clock.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAME_W 0.5
#define TAKES_S 10.0  /* a limit that is not read back by then is an error */
#define BACK_TRIES 30 /* times BACK_US: for a limit to be back */
#define BACK_US 100000
#define ENDS_TRIES 100 /* times BACK_US: for a command to end when asked */

static volatile sig_atomic_t caught; /* on a simulated source, which has no ticker to tell */

static void on_signal(int sig)
{
    caught = sig;
}

/* ---- which GPUs ---- */

static int add_gpu(struct sweepjob *j, size_t i)
{
    if (j->n == SWEEPJOB_GPUS)
        return tw_ui_error("a sweep takes at most %d GPUs", SWEEPJOB_GPUS);
    j->member[j->n++] = i;
    return TW_EXIT_OK;
}

static int gpus_named(struct sweepjob *j, const char *text)
{
    char word[64];
    while (*text) {
        size_t n = strcspn(text, ","), i = 0;
        (void)snprintf(word, sizeof word, "%.*s", (int)(n < 63 ? n : 63), text);
        while (i < j->n_gpu && strcmp(j->gpu[i].uuid, word) != 0)
            i++;
        if (i == j->n_gpu)
            return tw_ui_error("--gpus: there is no GPU \"%s\"; tokwatt gpus lists them", word);
        for (size_t k = 0; k < j->n; k++)
            if (j->member[k] == i)
                return tw_ui_error("--gpus: %s stands twice", word);
        if (add_gpu(j, i) != TW_EXIT_OK)
            return TW_EXIT_USAGE;
        text += n + (text[n] == ',');
    }
    return TW_EXIT_OK;
}

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    int parent = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        (void)fclose(f);
    text[n] = '\0';
    const char *after = strrchr(text, ')'); /* a name may hold anything */
    if (!after || sscanf(after, ") %*c %d", &parent) != 1)
        return 0;
    return parent;
}

static bool descends(pid_t pid, pid_t from)
{
    for (int depth = 0; depth < 64 && pid > 1; depth++, pid = parent_of(pid))
        if (pid == from)
            return true;
    return false;
}

static int gpus_of_pid(struct sweepjob *j, pid_t pid)
{
    if (j->dev.source_ops != &tw_nvml_source)
        return tw_ui_error("--pid finds GPUs through nvml only; name them with --gpus");
    for (size_t i = 0; i < j->n_gpu; i++) {
        struct tw_nvml_info info;
        bool holds = false;
        tw_nvml_look(j->dev.source, i, &info);
        for (int k = 0; k < info.n_pid && k < TW_NVML_PIDS; k++)
            holds = holds || descends((pid_t)info.pid[k], pid);
        if (holds && add_gpu(j, i) != TW_EXIT_OK)
            return TW_EXIT_USAGE;
    }
    return j->n ? TW_EXIT_OK
                : tw_ui_error("process %d and those it started hold no GPU; name them with --gpus", (int)pid);
}

static int gpus_of_job(struct sweepjob *j, const char *name)
{
    char known[256] = "";
    size_t at = 0;
    for (j->number = 0; j->number < j->n_job && strcmp(j->job[j->number].name, name) != 0; j->number++) {
        int n = snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", j->job[j->number].name);
        at += n > 0 && (size_t)n < sizeof known - at ? (size_t)n : 0;
    }
    if (j->number == j->n_job)
        return tw_ui_error("there is no job \"%.60s\" on this source; there are: %s", name, known);
    j->name = j->job[j->number].name;
    j->unit = j->job[j->number].unit;
    for (size_t i = 0; i < j->n_gpu; i++)
        if (j->gpu[i].job == j->number && add_gpu(j, i) != TW_EXIT_OK)
            return TW_EXIT_USAGE;
    return TW_EXIT_OK;
}

static int choose(struct sweepjob *j)
{
    const struct sweepjob_conf *c = j->conf;
    if (j->simulated)
        return gpus_of_job(j, c->job);
    j->name = c->job;
    j->unit = c->unit;
    if (c->gpus)
        return gpus_named(j, c->gpus);
    if (c->pid)
        return gpus_of_pid(j, c->pid);
    for (size_t i = 0; i < j->n_gpu; i++)
        if (add_gpu(j, i) != TW_EXIT_OK)
            return TW_EXIT_USAGE;
    return TW_EXIT_OK;
}

/* ---- opening ---- */

static int found(struct sweepjob *j)
{
    for (size_t k = 0; k < j->n; k++) {
        const char *uuid = j->gpu[j->member[k]].uuid;
        double requested_w = 0.0, enforced_w = 0.0;
        struct tw_why why = {""};
        if (j->dev.cap_ops->read(j->dev.cap, uuid, &requested_w, &enforced_w, &why) != TW_OK)
            requested_w = (double)j->sample.gpu[j->member[k]].ch[TW_CH_CAP_W];
        if (!(requested_w > 0.0))
            return tw_ui_error("the limit of %s cannot be read: %s", uuid, why.text);
        j->found_w[k] = requested_w;
        j->found_most = fmax(j->found_most, requested_w);
    }
    return TW_EXIT_OK;
}

int sweepjob_start(struct sweepjob *j)
{
    char **cmd = j->conf->cmd;
    if (!cmd)
        return TW_EXIT_OK;
    j->child = fork();
    if (j->child < 0)
        return tw_ui_error("cannot start %s: %s", cmd[0], strerror(errno));
    if (j->child > 0)
        return TW_EXIT_OK;
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO); /* standard output is the report's */
    (void)execvp(cmd[0], cmd);
    (void)fprintf(stderr, "tokwatt sweep: cannot start %s: %s\n", cmd[0], strerror(errno));
    _exit(127);
}

static int open_progress(struct sweepjob *j)
{
    const struct sweepjob_conf *c = j->conf;
    struct tw_why why = {""};
    enum tw_err err = c->progress_socket ? tw_progress_socket(c->progress_socket, &j->progress, &why)
                                         : tw_progress_log(c->progress_log, c->pattern, &j->progress, &why);
    return err == TW_OK ? TW_EXIT_OK : tw_ui_error("%s", why.text);
}

/* NVML's threads need a moment for the first reading. */
static enum tw_err first_reading(struct sweepjob *j, struct tw_why *why)
{
    struct tw_sweep_seen seen;
    enum sweepjob_event event = SWEEPJOB_GOES_ON;
    enum tw_err err = TW_OK;
    for (int i = 0; i < 3 && err == TW_OK && event == SWEEPJOB_GOES_ON; i++)
        err = sweepjob_second(j, &seen, &event, why);
    return err;
}

int sweepjob_open(struct sweepjob *j, const struct sweepjob_conf *conf)
{
    struct tw_why why = {""};
    *j = (struct sweepjob){.conf = conf, .wanted_w = (double)NAN, .last_total = (double)NAN};
    (void)signal(SIGPIPE, SIG_IGN); /* a reader that has gone must not end us before limits are back */
    bool sim = strncmp(conf->source, "sim", 3) == 0 && (conf->source[3] == ':' || conf->source[3] == '\0');
    if (!sim && tw_ticker_open(1.0, &j->ticker, &why) != TW_OK) /* before any thread: it blocks signals */
        return tw_ui_error("%s", why.text);
    j->ticking = !sim;
    if (sim) {
        struct sigaction act = {.sa_handler = on_signal};
        (void)sigaction(SIGINT, &act, NULL);
        (void)sigaction(SIGTERM, &act, NULL);
    }
    if (tw_device_open(conf->source, &j->dev, &why) != TW_OK ||
        (conf->cap && tw_device_cap_through(&j->dev, conf->cap, &why) != TW_OK) ||
        j->dev.source_ops->describe(j->dev.source, &j->gpu, &j->n_gpu, &j->job, &j->n_job, &why) != TW_OK)
        return tw_ui_error("%s", why.text);
    j->simulated = j->dev.source_ops->advance != NULL;
    if (!j->dev.cap_ops)
        return tw_ui_error("the source %s cannot write power limits", j->dev.source_ops->name);
    j->sample.gpu = calloc(j->n_gpu + 1, sizeof *j->sample.gpu);
    j->sample.job = calloc(j->n_job + 1, sizeof *j->sample.job);
    if (!j->sample.gpu || !j->sample.job)
        return tw_ui_error("no memory for %zu GPUs", j->n_gpu);
    int status = choose(j);
    if (status == TW_EXIT_OK && j->n == 0)
        status = tw_ui_error("there is no GPU to sweep");
    if (status == TW_EXIT_OK && !j->simulated)
        status = open_progress(j);
    if (status == TW_EXIT_OK && first_reading(j, &why) != TW_OK)
        status = tw_ui_error("%s", why.text);
    if (status == TW_EXIT_OK)
        status = found(j);
    return status;
}

void sweepjob_close(struct sweepjob *j)
{
    tw_progress_close(j->progress);
    tw_device_close(&j->dev);
    free(j->sample.gpu);
    free(j->sample.job);
    if (j->ticking)
        tw_ticker_close(&j->ticker);
}

/* ---- a second ---- */

static bool has_ended(struct sweepjob *j)
{
    if (j->child > 0 && !j->child_ended && waitpid(j->child, &j->child_status, WNOHANG) == j->child)
        j->child_ended = true;
    return j->child_ended || (j->conf->pid > 0 && kill(j->conf->pid, 0) != 0 && errno == ESRCH);
}

static enum tw_err pass(struct sweepjob *j, enum sweepjob_event *ret_event, struct tw_why *why)
{
    int sig = 0;
    uint64_t ticks = 0;
    enum tw_err err = j->simulated ? j->dev.source_ops->advance(j->dev.source, 1.0, why)
                                   : tw_ticker_wait(&j->ticker, &ticks, &sig, why);
    *ret_event = sig || caught ? SWEEPJOB_SIGNAL : has_ended(j) ? SWEEPJOB_ENDED : SWEEPJOB_GOES_ON;
    return err;
}

static double power_of(const struct sweepjob *j)
{
    double sum = 0.0;
    for (size_t k = 0; k < j->n; k++) {
        const struct tw_gpu_sample *s = &j->sample.gpu[j->member[k]];
        sum += s->fresh ? (double)s->ch[TW_CH_POWER_W] : (double)NAN;
    }
    return sum;
}

static double units_of(struct sweepjob *j)
{
    if (!j->simulated)
        return tw_progress_take(j->progress) * j->conf->per;
    double total = j->sample.job[j->number].total, done = total - j->last_total;
    j->last_total = total;
    return done;
}

/* Is what was asked for read back from every GPU? Reading also renews the lease that a helper gives. */
static enum tw_err look_back(struct sweepjob *j, double dt_s, bool *ret_in_force, struct tw_why *why)
{
    *ret_in_force = true;
    if (!j->touched)
        return TW_OK;
    j->asked_s += dt_s;
    for (size_t k = 0; k < j->n; k++) {
        const char *uuid = j->gpu[j->member[k]].uuid;
        double want_w = isnan(j->wanted_w) ? j->found_w[k] : j->wanted_w, requested_w = 0.0, enforced_w = 0.0;
        enum tw_err err = j->dev.cap_ops->read(j->dev.cap, uuid, &requested_w, &enforced_w, why);
        bool same = err == TW_OK && fabs(requested_w - want_w) <= SAME_W;
        *ret_in_force = *ret_in_force && same;
        if (!same && j->asked_s > TAKES_S)
            return err != TW_OK ? err
                                : tw_fail(why, TW_EIO, "%s was asked for %g W and holds %g W", uuid, want_w,
                                          requested_w);
        if (same && j->asked_s > 0.5 * TAKES_S && !j->told_enforced && enforced_w > want_w + SAME_W) {
            j->told_enforced = true;
            tw_ui_warn("%s was asked for %g W and enforces %g W", uuid, want_w, enforced_w);
        }
    }
    return TW_OK;
}

enum tw_err sweepjob_second(struct sweepjob *j, struct tw_sweep_seen *ret, enum sweepjob_event *ret_event,
                            struct tw_why *why)
{
    struct tw_sweep_seen seen = {.dt_s = 1.0};
    enum tw_err err = pass(j, ret_event, why);
    if (err == TW_OK)
        err = j->dev.source_ops->read(j->dev.source, &j->sample, why);
    if (err != TW_OK)
        return err;
    int64_t now_us = j->simulated ? j->sample.now_us : tw_boot_us();
    if (j->last_us > 0)
        seen.dt_s = (double)(now_us - j->last_us) * 1e-6;
    j->last_us = now_us;
    seen.power_w = power_of(j);
    seen.units = units_of(j);
    err = look_back(j, seen.dt_s, &seen.in_force, why);
    if (err == TW_OK)
        *ret = seen;
    return err;
}

/* ---- limits ---- */

/* What was found goes back through release where there is one: it may lie outside what we may write. */
static enum tw_err ask(struct sweepjob *j, size_t k, double cap_w, struct tw_why *why)
{
    const char *uuid = j->gpu[j->member[k]].uuid;
    if (isnan(cap_w) && j->dev.cap_ops->release)
        return j->dev.cap_ops->release(j->dev.cap, uuid, true, why);
    return j->dev.cap_ops->write(j->dev.cap, uuid, isnan(cap_w) ? j->found_w[k] : cap_w, why);
}

enum tw_err sweepjob_cap(struct sweepjob *j, double cap_w, struct tw_why *why)
{
    if (isnan(cap_w) && !j->touched)
        return TW_OK;
    j->touched = true;
    j->wanted_w = cap_w;
    j->asked_s = 0.0;
    enum tw_err err = TW_OK;
    for (size_t k = 0; k < j->n && err == TW_OK; k++)
        err = ask(j, k, cap_w, why);
    return err;
}

static enum tw_err back(struct sweepjob *j, size_t k, struct tw_why *why)
{
    const char *uuid = j->gpu[j->member[k]].uuid;
    double requested_w = (double)NAN, enforced_w = 0.0;
    enum tw_err err = ask(j, k, (double)NAN, why);
    for (int i = 0; i < BACK_TRIES && err == TW_OK; i++) {
        err = j->dev.cap_ops->read(j->dev.cap, uuid, &requested_w, &enforced_w, why);
        if (err == TW_OK && fabs(requested_w - j->found_w[k]) <= SAME_W)
            return TW_OK;
        struct timespec wait = {.tv_nsec = BACK_US * 1000L};
        if (!j->simulated)
            (void)nanosleep(&wait, NULL);
    }
    return err != TW_OK
               ? err
               : tw_fail(why, TW_EIO, "%s holds %g W, %g W was found on it", uuid, requested_w, j->found_w[k]);
}

size_t sweepjob_restore(struct sweepjob *j)
{
    size_t good = 0;
    for (size_t k = 0; k < j->n; k++) {
        struct tw_why why = {""};
        if (!j->touched || back(j, k, &why) == TW_OK)
            good++;
        else
            (void)tw_ui_error("could not be put back, set it by hand (nvidia-smi -i %s -pl %g): %s",
                              j->gpu[j->member[k]].uuid, j->found_w[k], why.text);
    }
    j->touched = false;
    return good;
}

void sweepjob_wait(struct sweepjob *j, bool stop)
{
    if (j->child <= 0 || j->child_ended)
        return;
    if (stop)
        (void)kill(j->child, SIGTERM);
    struct timespec wait = {.tv_nsec = BACK_US * 1000L};
    for (int i = 0; !has_ended(j); i++) {
        if (stop && i == ENDS_TRIES)
            (void)kill(j->child, SIGKILL);
        sigset_t pending;
        if (!stop && sigpending(&pending) == 0 &&
            (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1)) {
            (void)kill(j->child, SIGTERM); /* meant for both */
            stop = true;
        }
        (void)nanosleep(&wait, NULL);
    }
}
