/* SPDX-License-Identifier: Apache-2.0 */
/* ui.h - what the verbs share towards a person: arguments, errors, progress, colour, JSON on standard output.
 */
#ifndef TW_APP_UI_H
#define TW_APP_UI_H

#include "base/err.h"
#include "base/jsonw.h"

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

/* argp_parse with exit status 2 for a bad option, and the verb's own name in messages ("tokwatt pfi: ...").
 * Returns 0 to go on; --help and --usage print and exit 0. In the doc string, text after "\v" is the place for
 * an example. */
int tw_ui_parse(const struct argp *argp, int argc, char **argv, void *input);

/* The value of the option with this key is unusable: one line that names the option, and exit status 2. */
void tw_ui_bad_option(const struct argp_state *state, int key, const struct tw_why *why);

/* One line on standard error, "tokwatt <verb>: <text>"; returns TW_EXIT_USAGE, so that a verb can
 * `return tw_ui_error("...")`. Control characters in the text are shown as '?'. */
int tw_ui_error(const char *fmt, ...) TW_PRINTF(1, 2);
void tw_ui_warn(const char *fmt, ...) TW_PRINTF(1, 2);

/* May colours be used on standard output? A terminal, NO_COLOR unset, TERM not "dumb". */
bool tw_ui_colour(void);

/* A JSON writer on standard output. tw_ui_json_done flushes and turns a failed write (disk full, closed pipe)
 * into exit status 2. */
void tw_ui_json(struct tw_jsonw *w);
int tw_ui_json_done(struct tw_jsonw *w, int status);

/* A progress line on standard error: only when it is a terminal, redrawn at most ten times a second, wiped at
 * the end. frac in 0..1, or negative when the end is not known. */
void tw_ui_progress(double frac, const char *fmt, ...) TW_PRINTF(2, 3);
void tw_ui_progress_done(void);

#endif
