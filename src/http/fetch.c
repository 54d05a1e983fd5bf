/* SPDX-License-Identifier: Apache-2.0 */
/* One request through libcurl. */
#include "http/fetch.h"
#include "sys/buf.h"

#include <curl/curl.h>
#include <pthread.h>
#include <string.h>

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_start(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT); /* a failure shows as curl_easy_init giving NULL */
}

static size_t take(char *bytes, size_t size, size_t n, void *ctx)
{
    return tw_buf_put(ctx, bytes, size * n) == TW_OK ? size * n : 0;
}

static enum tw_err explain(CURLcode rc, const struct tw_http_ask *ask, const struct tw_buf *body,
                           const char *detail, struct tw_why *why)
{
    if (body->err == TW_ELIMIT)
        return tw_fail(why, TW_ELIMIT, "%s: the answer is longer than %zu bytes", ask->url, ask->max_bytes);
    if (body->err == TW_ENOMEM || rc == CURLE_OUT_OF_MEMORY)
        return tw_fail(why, TW_ENOMEM, "%s: no memory for the answer", ask->url);
    if (rc == CURLE_OPERATION_TIMEDOUT)
        return tw_fail(why, TW_ESTALE, "%s: no whole answer within %g s", ask->url, ask->deadline_s);
    if (rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL)
        return tw_fail(why, TW_EINVAL, "\"%s\" is not an address like http://127.0.0.1:9477/", ask->url);
    return tw_fail(why, TW_EIO, "%s: %s", ask->url, detail[0] ? detail : curl_easy_strerror(rc));
}

enum tw_err tw_http_fetch(const struct tw_http_ask *ask, struct tw_http_answer *ret, struct tw_why *why)
{
    (void)pthread_once(&curl_once, curl_start);
    enum tw_err err = TW_OK;
    char type[128], detail[CURL_ERROR_SIZE] = "";
    struct tw_buf body;
    tw_buf_init(&body, ask->max_bytes);
    struct curl_slist *headers = NULL;
    CURL *curl = curl_easy_init();
    if (!curl)
        return tw_fail(why, TW_ENOMEM, "%s: libcurl cannot start", ask->url);

    (void)snprintf(type, sizeof type, "Content-Type: %s", ask->type ? ask->type : "application/json");
    headers = curl_slist_append(NULL, ask->body ? type : "Accept: application/json");
    curl_easy_setopt(curl, CURLOPT_URL, ask->url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, ask->method);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(ask->deadline_s * 1e3));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "tokwatt/" TW_VERSION);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    if (ask->body)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, ask->body);

    CURLcode rc = curl_easy_perform(curl);
    long status = 0;
    if (rc != CURLE_OK) {
        err = explain(rc, ask, &body, detail, why);
        goto out;
    }
    if (tw_buf_put(&body, "", 0) != TW_OK) { /* an empty answer is "" */
        err = tw_fail(why, TW_ENOMEM, "%s: no memory for the answer", ask->url);
        goto out;
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    *ret = (struct tw_http_answer){(unsigned)status, body.data, body.n};
    body.data = NULL;
out:
    tw_buf_done(&body);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return err;
}

void tw_http_answer_done(struct tw_http_answer *answer)
{
    if (!answer)
        return;
    free(answer->body);
    *answer = (struct tw_http_answer){0};
}
