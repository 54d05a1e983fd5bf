/* SPDX-License-Identifier: Apache-2.0 */
/* cmd.h - what a verb of the command line is.
 *
 * A verb is cmd_<verb>.c with one function, declared here by the X macro and listed in the same order by
 * --help. It gets argv with argv[0] the verb, parses with argp (tw_ui_parse gives --help, --usage and exit 2 on
 * a bad option), prints its report on standard output and returns an exit status. Nothing below app/ prints or
 * exits.
 *
 * Exit status: TW_EXIT_OK done; TW_EXIT_BAD ran, and the answer is bad news; TW_EXIT_USAGE unusable input or
 * usage, with one line on standard error from tw_ui_error. */
#ifndef TW_APP_CMD_H
#define TW_APP_CMD_H

enum { TW_EXIT_OK = 0, TW_EXIT_BAD = 1, TW_EXIT_USAGE = 2 };

/* verb, function suffix, what it does */
/* clang-format off */
#define TW_CMD_MAP(X) \
    X("doctor", doctor, "what this machine can do and what stands in the way") \
    X("gpus", gpus, "the GPUs seen, their limits, what they draw now") \
    X("allocate", allocate, "a power cut split over measured jobs, all policies side by side") \
    X("pfi", pfi, "curves and flexibility (PFI) of measured jobs") \
    X("sweep", sweep, "measure a running job at several caps, put everything back, give its curve and PFI") \
    X("train", train, "a forecaster into a model file") \
    X("evaluate", evaluate, "train forecasters and score them on held-out runs") \
    X("forecast", forecast, "power in the coming minute, as rows, by a model over a recording") \
    X("record", record, "telemetry of a source to a file") \
    X("import", import, "recordings of power, in any known format, into the store") \
    X("export", export, "series out of the store as CSV") \
    X("event", event, "power events of a running daemon: add, list, show, cancel") \
    X("status", status, "what holds now on the site of a running daemon") \
    X("explain", explain, "why a GPU has the limit it has") \
    X("sim", sim, "a power event on a simulated site, policies side by side") \
    X("demo", demo, "the whole system on a simulated site, with its page") \
    X("bench", bench, "what allocation by elasticity is worth, on measured jobs and on the published ones")

/* clang-format on */

#define TW_CMD_DECLARE(verb, fn, text) int cmd_##fn(int argc, char **argv);
TW_CMD_MAP(TW_CMD_DECLARE)
#undef TW_CMD_DECLARE

#endif
