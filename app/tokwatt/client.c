/* SPDX-License-Identifier: Apache-2.0 */
/* One request to the daemon. */
#include "tokwatt/client.h"

#include "http/fetch.h"
#include "tokwatt/cmd.h"
#include "tokwatt/ui.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_S 5.0
#define ANSWER_MAX ((size_t)64 << 20)

static int refused(const struct tw_http_answer *answer, const json_t *json)
{
    const char *text = client_str(json, "error");
    (void)tw_ui_error("%s", *text ? text : "the daemon refused without a reason");
    return answer->status == 409 ? TW_EXIT_BAD : TW_EXIT_USAGE;
}

int client_ask(const char *at, const char *method, const char *path, const json_t *body, json_t **ret_json)
{
    char url[512];
    if (snprintf(url, sizeof url, "%s%s%s", strstr(at, "://") ? "" : "http://", at, path) >= (int)sizeof url)
        return tw_ui_error("the address \"%.60s...\" is too long", at);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct tw_http_ask ask = {
        .method = method, .url = url, .body = text, .deadline_s = DEADLINE_S, .max_bytes = ANSWER_MAX};
    struct tw_http_answer answer;
    struct tw_why why = {""};
    enum tw_err err = tw_http_fetch(&ask, &answer, &why);
    free(text);
    if (err != TW_OK)
        return tw_ui_error("no daemon at %s (%s); start tokwattd, or say --at ADDRESS:PORT", at, why.text);
    json_t *json = answer.n > 0 ? json_loadb(answer.body, answer.n, 0, NULL) : NULL;
    int status = TW_EXIT_OK;
    if (answer.status >= 300)
        status = refused(&answer, json);
    else if (answer.n > 0 && !json)
        status = tw_ui_error("%s does not speak Tokwatt's JSON", url);
    if (status == TW_EXIT_OK)
        *ret_json = json;
    else
        json_decref(json);
    tw_http_answer_done(&answer);
    return status;
}

double client_num(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

const char *client_str(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

const char *client_reason(const json_t *snap, const json_t *object)
{
    const char *name = client_str(object, "reason"), *text = client_str(json_object_get(snap, "reasons"), name);
    return *text ? text : name;
}
