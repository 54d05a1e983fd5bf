/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments, messages and progress of the command line. */
#include "tokwatt/ui.h"

#include "sys/clock.h"
#include "tokwatt/cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char program[64] = "tokwatt";
static int64_t progress_next_us;
static bool progress_shown;

/* argp and getopt say what is wrong in two or three lines, and exit from inside. While they parse, `stderr` is
 * a buffer; what it holds is made one line when parsing returns or the process exits. */
static const struct argp_option *verb_options; /* the verb's own; argp's state knows only a wrapper of it */
static FILE *real_stderr;
static char *usage_text;
static size_t usage_size;

static void usage_flush(void)
{
    if (!real_stderr)
        return;
    (void)fclose(stderr);
    stderr = real_stderr;
    real_stderr = NULL;
    size_t n = strlen(usage_text);
    while (n > 0 && usage_text[n - 1] == '\n')
        usage_text[--n] = '\0';
    const char *joint = "; "; /* between the fault and the advice, which argp may have wrapped */
    for (char *p = usage_text; *p; p++) {
        if (*p == '\n') {
            (void)fputs(joint, stderr);
            joint = " ";
        } else
            (void)fputc((unsigned char)*p < 0x20 || *p == 0x7f ? '?' : *p, stderr);
    }
    if (n > 0)
        (void)fputc('\n', stderr);
    free(usage_text);
    usage_text = NULL;
}

int tw_ui_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    argp_err_exit_status = TW_EXIT_USAGE;
    verb_options = argp->options;
    (void)snprintf(program, sizeof program, "tokwatt %s", argv[0]);
    argv[0] = program; /* argp prints argv[0]; program_invocation_short_name would drop the verb */
    static bool registered;
    FILE *buffer = registered || atexit(usage_flush) == 0 ? open_memstream(&usage_text, &usage_size) : NULL;
    registered = true;
    if (buffer) {
        real_stderr = stderr;
        stderr = buffer;
    }
    int rc = argp_parse(argp, argc, argv, 0, NULL, input);
    usage_flush();
    return rc == 0 ? 0 : TW_EXIT_USAGE;
}

void tw_ui_bad_option(const struct argp_state *state, int key, const struct tw_why *why)
{
    const struct argp_option *o = verb_options;
    while (o->key != key && (o->name || o->doc))
        o++;
    argp_failure(state, TW_EXIT_USAGE, 0, "--%s: %s", o->key == key && o->name ? o->name : "?", why->text);
}

static void TW_PRINTF(2, 0) say(const char *lead, const char *fmt, va_list ap)
{
    char text[1024];
    (void)vsnprintf(text, sizeof text, fmt, ap);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    tw_ui_progress_done();
    (void)fflush(stdout);
    (void)fprintf(stderr, "%s: %s%s\n", program, lead, text);
}

int tw_ui_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("", fmt, ap);
    va_end(ap);
    return TW_EXIT_USAGE;
}

void tw_ui_warn(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("warning: ", fmt, ap);
    va_end(ap);
}

bool tw_ui_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static enum tw_err to_stdout(void *ctx, const char *bytes, size_t n)
{
    (void)ctx;
    return fwrite(bytes, 1, n, stdout) == n ? TW_OK : TW_EIO;
}

void tw_ui_json(struct tw_jsonw *w)
{
    tw_jsonw_init(w, to_stdout, NULL, true);
}

int tw_ui_json_done(struct tw_jsonw *w, int status)
{
    if (fflush(stdout) != 0 || w->err != TW_OK)
        return tw_ui_error("cannot write the result to standard output");
    return status;
}

void tw_ui_progress(double frac, const char *fmt, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    int64_t now = tw_boot_us();
    if (now < progress_next_us)
        return;
    progress_next_us = now + 100000;
    char text[96];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (frac >= 0.0) {
        char bar[25];
        int full = (int)(24.0 * (frac < 1.0 ? frac : 1.0));
        for (int i = 0; i < 24; i++)
            bar[i] = i < full ? '#' : '.';
        bar[24] = '\0';
        (void)fprintf(stderr, "\r\033[K[%s] %3.0f%% %s", bar, 100.0 * frac, text);
    } else {
        (void)fprintf(stderr, "\r\033[K%s", text);
    }
    (void)fflush(stderr);
    progress_shown = true;
}

void tw_ui_progress_done(void)
{
    if (progress_shown)
        (void)fprintf(stderr, "\r\033[K");
    progress_shown = false;
    progress_next_us = 0;
}
