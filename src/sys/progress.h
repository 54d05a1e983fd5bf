/* SPDX-License-Identifier: Apache-2.0 */
/* sys/progress.h - how far a job has got, as it tells: lines of its log file, or messages to a socket.
 *
 *   log      A file that grows, and may appear later or begin anew. Every line that matches an extended regular
 *            expression counts: the number in its first group is how much was done in all ("step 120"), and
 *            without a group each match is one more. Lines that were there before are not counted.
 *   socket   Datagrams on a Unix socket that is made here: lines "total NUMBER" (done in all) or "add NUMBER".
 *
 * A total that falls (the job began anew) counts from there. What nobody could have meant, and lines longer
 * than TW_PROGRESS_LINE, are passed over. Nothing here waits. */
#ifndef TW_SYS_PROGRESS_H
#define TW_SYS_PROGRESS_H

#include "base/err.h"

#define TW_PROGRESS_LINE 4096

struct tw_progress;

/* TW_EINVAL: the pattern is no regular expression; TW_ENOMEM */
TW_MUST_USE
enum tw_err tw_progress_log(const char *path, const char *pattern, struct tw_progress **ret,
                            struct tw_why *why);
/* A socket that a former run has left is replaced; any other file is refused. Only our user may write to it.
 * TW_EINVAL: the path is too long; TW_EIO */
TW_MUST_USE
enum tw_err tw_progress_socket(const char *path, struct tw_progress **ret, struct tw_why *why);
/* Done since the last call; 0 on the first one. */
double tw_progress_take(struct tw_progress *p);
void tw_progress_close(struct tw_progress *p); /* NULL is fine; the socket's file goes */

#endif
