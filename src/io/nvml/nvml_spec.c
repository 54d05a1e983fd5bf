/* SPDX-License-Identifier: Apache-2.0 */
/* The words after "nvml:". */
#include "io/nvml/nvml_spec.h"

#include "base/num.h"

#include <stdio.h>
#include <string.h>

static enum tw_err take_time(const char *key, const char *value, double low_s, double high_s, double *ret_s,
                             struct tw_why *why)
{
    double s = 0.0;
    enum tw_err err = tw_num_duration(value, &s, why);
    if (err == TW_OK && !(s >= low_s && s <= high_s))
        err = tw_fail(why, TW_EINVAL, "%s must lie in %g s to %g s", key, low_s, high_s);
    if (err == TW_OK)
        *ret_s = s;
    return err;
}

static enum tw_err take_text(const char *value, char *buf, size_t size, struct tw_why *why)
{
    if (strlen(value) >= size)
        return tw_fail(why, TW_EINVAL, "a path is longer than %zu characters", size - 1);
    (void)snprintf(buf, size, "%s", value);
    return TW_OK;
}

static enum tw_err word_read(struct nv_spec *s, const char *key, const char *value, struct tw_why *why)
{
    if (strcmp(key, "path") == 0)
        return take_text(value, s->path, sizeof s->path, why);
    if (strcmp(key, "sysfs") == 0)
        return take_text(value, s->sysfs, sizeof s->sysfs, why);
    if (strcmp(key, "period") == 0)
        return take_time(key, value, 0.01, 60.0, &s->period_s, why);
    if (strcmp(key, "deadline") == 0)
        return take_time(key, value, 0.01, 600.0, &s->deadline_s, why);
    if (strcmp(key, "retry") == 0)
        return take_time(key, value, 0.01, 3600.0, &s->retry_s, why);
    if (strcmp(key, "wait") == 0 && (strcmp(value, "0") == 0 || strcmp(value, "1") == 0)) {
        s->wait = *value == '1';
        return TW_OK;
    }
    return tw_fail(
        why, TW_EINVAL,
        "nvml does not know \"%.40s=%.40s\"; it takes path, period, deadline, retry, wait (0 or 1), sysfs", key,
        value);
}

enum tw_err nv_spec_parse(const char *text, struct nv_spec *ret, struct tw_why *why)
{
    struct nv_spec s = {.sysfs = "/sys", .period_s = 0.1, .deadline_s = 2.0, .retry_s = 1.0};
    char copy[1024];
    if (strlen(text) >= sizeof copy)
        return tw_fail(why, TW_EINVAL, "the configuration of nvml is longer than %zu characters",
                       sizeof copy - 1);
    (void)snprintf(copy, sizeof copy, "%s", text);
    char *save = NULL;
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        char *value = strchr(word, '=');
        if (!value)
            return tw_fail(why, TW_EINVAL, "nvml wants word=value, not \"%.40s\"", word);
        *value++ = '\0';
        enum tw_err err = word_read(&s, word, value, why);
        if (err != TW_OK) {
            tw_why_prefix(why, "%.40s: ", word);
            return TW_EINVAL;
        }
    }
    *ret = s;
    return TW_OK;
}
