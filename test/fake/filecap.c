/* SPDX-License-Identifier: Apache-2.0 */
/* A cap back end for tests whose devices are files: DIR/UUID holds "requested enforced" in watts and outlives
 * the process, as a limit outlives its writer. DIR/log gets a line per write. DIR/UUID.fault, read at every
 * call, holds one word:
 *
 *   eio           every call fails            ignore       a write is taken and nothing happens
 *   deaf          writes fail, reads work     lag          requested changes, enforced does not
 *   clamp=W       no limit below W            slow=MS      each call takes so long
 *   stuck         a call does not return until the fault is gone
 *   kill=before   SIGKILL on the next write, before it is done (between save and write)
 *   kill=after    SIGKILL on the next write, done and not read back (between write and confirm)
 *   rival=W       right after each write somebody else writes W
 *   missing       no such device */
#include "port/cap.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct tw_cap {
    char folder[200];
};

static enum tw_err file_open(const char *spec, struct tw_source *source, struct tw_cap **ret,
                             struct tw_why *why)
{
    (void)source;
    struct tw_cap *cap = calloc(1, sizeof *cap);
    if (!cap || strlen(spec) >= sizeof cap->folder) {
        free(cap);
        return tw_fail(why, TW_EINVAL, "filecap wants a folder");
    }
    memcpy(cap->folder, spec, strlen(spec) + 1);
    *ret = cap;
    return TW_OK;
}

static void file_close(struct tw_cap *cap)
{
    free(cap);
}

static void fault_of(const struct tw_cap *cap, const char *uuid, char word[static 64])
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/%s.fault", cap->folder, uuid);
    word[0] = '\0';
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    if (fscanf(f, "%63s", word) != 1)
        word[0] = '\0';
    (void)fclose(f);
}

/* The faults that both ways share. */
static enum tw_err begin(const struct tw_cap *cap, const char *uuid, char word[static 64], struct tw_why *why)
{
    unsigned ms = 0;
    fault_of(cap, uuid, word);
    while (strcmp(word, "stuck") == 0) {
        usleep(5000);
        fault_of(cap, uuid, word);
    }
    if (sscanf(word, "slow=%u", &ms) == 1)
        usleep(ms * 1000);
    if (strcmp(word, "missing") == 0)
        return tw_fail(why, TW_ENOENT, "%s is not there", uuid);
    return strcmp(word, "eio") == 0 ? tw_fail(why, TW_EIO, "%s does not answer", uuid) : TW_OK;
}

static enum tw_err look(const struct tw_cap *cap, const char *uuid, double *ret_requested_w,
                        double *ret_enforced_w, struct tw_why *why)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/%s", cap->folder, uuid);
    FILE *f = fopen(path, "re");
    if (!f)
        return tw_fail(why, TW_ENOENT, "no device %s", uuid);
    double requested = 0.0, enforced = 0.0;
    int n = fscanf(f, "%lf %lf", &requested, &enforced);
    (void)fclose(f);
    if (n != 2)
        return tw_fail(why, TW_EIO, "%s reads as nonsense", uuid);
    *ret_requested_w = requested;
    *ret_enforced_w = enforced;
    return TW_OK;
}

static enum tw_err file_read(struct tw_cap *cap, const char *uuid, double *ret_requested_w,
                             double *ret_enforced_w, struct tw_why *why)
{
    char word[64];
    enum tw_err err = begin(cap, uuid, word, why);
    return err == TW_OK ? look(cap, uuid, ret_requested_w, ret_enforced_w, why) : err;
}

static void put(const struct tw_cap *cap, const char *uuid, double requested, double enforced)
{
    char path[300], beside[320];
    (void)snprintf(path, sizeof path, "%s/%s", cap->folder, uuid);
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    FILE *f = fopen(beside, "we");
    if (!f)
        abort();
    (void)fprintf(f, "%.3f %.3f\n", requested, enforced);
    (void)fclose(f);
    if (rename(beside, path) != 0)
        abort();
}

static enum tw_err file_write(struct tw_cap *cap, const char *uuid, double limit_w, struct tw_why *why)
{
    char word[64], path[300];
    double requested = 0.0, enforced = 0.0, w = 0.0;
    enum tw_err err = begin(cap, uuid, word, why);
    if (err == TW_OK && strcmp(word, "deaf") == 0)
        err = tw_fail(why, TW_EIO, "%s takes no limit", uuid);
    if (err == TW_OK && strcmp(word, "kill=before") == 0)
        (void)raise(SIGKILL);
    if (err == TW_OK)
        err = look(cap, uuid, &requested, &enforced, why);
    if (err != TW_OK)
        return err;
    (void)snprintf(path, sizeof path, "%s/log", cap->folder);
    FILE *f = fopen(path, "ae");
    if (f) {
        (void)fprintf(f, "%s %.3f %.3f\n", uuid, requested, limit_w);
        (void)fclose(f);
    }
    if (sscanf(word, "clamp=%lf", &w) == 1 && limit_w < w)
        limit_w = w;
    if (strcmp(word, "lag") == 0)
        put(cap, uuid, limit_w, enforced);
    else if (strcmp(word, "ignore") != 0)
        put(cap, uuid, limit_w, limit_w);
    if (sscanf(word, "rival=%lf", &w) == 1)
        put(cap, uuid, w, w);
    if (strcmp(word, "kill=after") == 0)
        (void)raise(SIGKILL);
    return TW_OK;
}

const struct tw_cap_ops tw_filecap = {
    .abi = TW_CAP_ABI,
    .name = "filecap",
    .open = file_open,
    .close = file_close,
    .write = file_write,
    .read = file_read,
};
