/* SPDX-License-Identifier: Apache-2.0 */
/* tokwatt: the command line. Finds the verb and hands over. */
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <stdio.h>
#include <string.h>

struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *text;
};

static const struct verb verbs[] = {
#define TW_CMD_ROW(verb, fn, text) {verb, cmd_##fn, text},
    TW_CMD_MAP(TW_CMD_ROW)
#undef TW_CMD_ROW
        {NULL, NULL, NULL},
};

static void help(void)
{
    puts("tokwatt " TW_VERSION " - turn a limited number of watts into as many tokens as possible\n\n"
         "usage: tokwatt VERB [OPTION...]      (tokwatt VERB --help shows options and an example)\n");
    for (const struct verb *v = verbs; v->name; v++)
        printf("  %-12s %s\n", v->name, v->text);
    puts("\nExit status: 0 done, 1 ran and the answer is bad news, 2 unusable input or usage.\n"
         "Start with: tokwatt demo");
}

/* What a verb printed must have arrived: a full disk or a closed file is no success, whichever verb it was. */
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    return status == TW_EXIT_USAGE ? status : tw_ui_error("cannot write to standard output");
}

int main(int argc, char **argv)
{
    if (argc >= 2 &&
        (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)) {
        help();
        return finish(TW_EXIT_OK);
    }
    if (argc >= 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        puts("tokwatt " TW_VERSION);
        return finish(TW_EXIT_OK);
    }
    if (argc < 2)
        return tw_ui_error("a verb is missing; see tokwatt --help");
    for (const struct verb *v = verbs; v->name; v++)
        if (strcmp(argv[1], v->name) == 0)
            return finish(v->run(argc - 1, argv + 1));
    return tw_ui_error("\"%s\" is not a verb; see tokwatt --help", argv[1]);
}
