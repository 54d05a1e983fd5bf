/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - the verbs that ask a running daemon: one request, its JSON. */
#ifndef TW_APP_CLIENT_H
#define TW_APP_CLIENT_H

#include <jansson.h>

#define CLIENT_AT "127.0.0.1:9477"

/* Ask the daemon at "ADDRESS:PORT" (or a whole URL). body NULL: none. On success *ret_json is the answer, a new
 * reference (NULL for an empty answer), and 0 is returned; else one line was written and the exit status for it
 * is returned: 1 when the daemon says no for a reason of the site (409), 2 otherwise. */
int client_ask(const char *at, const char *method, const char *path, const json_t *body, json_t **ret_json);

/* Members of an object; NaN and "" for null, missing, or another type. */
double client_num(const json_t *object, const char *key);
const char *client_str(const json_t *object, const char *key);
/* The words for the `reason` of a job or GPU of a snapshot. */
const char *client_reason(const json_t *snap, const json_t *object);

#endif
