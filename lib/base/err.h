/* SPDX-License-Identifier: Apache-2.0 */
/* base/err.h - error codes, and the sentence that goes with one.
 *
 * A function that can fail returns enum tw_err: 0 for done, negative otherwise. Where a person may have to act
 * it also fills a struct tw_why, which the caller owns and may leave NULL. The sentence says what was expected
 * and what to do; it carries no newline and no program name. Outputs are untouched on failure unless a header
 * says otherwise. */
#ifndef TW_BASE_ERR_H
#define TW_BASE_ERR_H

#define TW_MUST_USE __attribute__((warn_unused_result))
#define TW_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* name, value, what a person reads */
#define TW_ERR_MAP(X)                                                                                          \
    X(OK, 0, "done")                                                                                           \
    X(EINVAL, -1, "unusable argument")                                                                         \
    X(ENOMEM, -2, "out of memory")                                                                             \
    X(EIO, -3, "input or output failed")                                                                       \
    X(EPARSE, -4, "not in the expected format")                                                                \
    X(ENOENT, -5, "not found")                                                                                 \
    X(ERANGE, -6, "out of range")                                                                              \
    X(EINFEASIBLE, -7, "cannot be satisfied")                                                                  \
    X(EUNSUPPORTED, -8, "not supported here")                                                                  \
    X(ENODATA, -9, "no data yet")                                                                              \
    X(EPERM, -10, "not permitted")                                                                             \
    X(ESTALE, -11, "data too old")                                                                             \
    X(ELIMIT, -12, "over a ceiling")                                                                           \
    X(EINTERNAL, -13, "internal check failed")

enum tw_err {
#define TW_ERR_ENUM(name, value, text) TW_##name = (value),
    TW_ERR_MAP(TW_ERR_ENUM)
#undef TW_ERR_ENUM
};

struct tw_why {
    char text[512];
};

/* The words for a code; "unknown error" for a value that is none. Static storage. */
const char *tw_err_text(enum tw_err err);

/* Fill why (NULL is fine; cut at its size) and return err, so that a check is one statement:
 *
 *     if (!(floor_sum_w <= budget_w))
 *         return tw_fail(why, TW_EINFEASIBLE, "floors need %g W, budget is %g W", floor_sum_w, budget_w); */
enum tw_err tw_fail(struct tw_why *why, enum tw_err err, const char *fmt, ...) TW_PRINTF(3, 4);

/* Put a place before what is already there: "curves.csv:17: " + text. NULL is fine. */
void tw_why_prefix(struct tw_why *why, const char *fmt, ...) TW_PRINTF(2, 3);

#endif
