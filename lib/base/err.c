/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes and their sentences. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tw_err_text(enum tw_err err)
{
    switch (err) {
#define TW_ERR_CASE(name, value, text)                                                                         \
    case TW_##name:                                                                                            \
        return text;
        TW_ERR_MAP(TW_ERR_CASE)
#undef TW_ERR_CASE
    default:
        return "unknown error";
    }
}

enum tw_err tw_fail(struct tw_why *why, enum tw_err err, const char *fmt, ...)
{
    if (why) {
        va_list ap;
        va_start(ap, fmt);
        (void)vsnprintf(why->text, sizeof why->text, fmt, ap); /* a cut sentence is still a sentence */
        va_end(ap);
    }
    return err;
}

void tw_why_prefix(struct tw_why *why, const char *fmt, ...)
{
    if (!why)
        return;
    char old[sizeof why->text];
    memcpy(old, why->text, sizeof old);
    old[sizeof old - 1] = '\0';
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(why->text, sizeof why->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof why->text) {
        size_t room = sizeof why->text - (size_t)n - 1;
        size_t keep = strlen(old) < room ? strlen(old) : room;
        memcpy(why->text + n, old, keep);
        why->text[(size_t)n + keep] = '\0';
    }
}
