/* SPDX-License-Identifier: Apache-2.0 */
/* http, api: text with a ceiling, who may ask, one request to somebody else, the body of an event. */
#include "api/ask.h"
#include "api/promtext.h"
#include "http/fetch.h"
#include "http/http_int.h"
#include "http/serve.h"
#include "sys/buf.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void test_buf(void **state)
{
    (void)state;
    struct tw_buf b;
    tw_buf_init(&b, 10);
    assert_int_equal(tw_buf_puts(&b, "12345"), TW_OK);
    assert_int_equal(tw_buf_printf(&b, "%d", 67890), TW_OK);
    assert_string_equal(b.data, "1234567890");
    assert_int_equal(tw_buf_puts(&b, "1"), TW_ELIMIT);
    assert_int_equal(tw_buf_puts(&b, ""), TW_ELIMIT); /* remembered */
    assert_int_equal(b.n, 10);
    tw_buf_reset(&b);
    assert_int_equal(tw_buf_puts(&b, "x"), TW_OK);
    assert_string_equal(b.data, "x");
    assert_int_equal(tw_buf_put(&b, b.data, SIZE_MAX), TW_ELIMIT);
    tw_buf_done(&b);
    tw_buf_done(NULL);
}

static void test_host(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool ok;
    } c[] = {
        {"127.0.0.1", true},    {"127.0.0.1:9477", true}, {"LOCALHOST", true},
        {"[::1]:1", true},      {"127.255.0.9", true},    {"128.0.0.1", false},
        {"localhost.", false},  {"localhost:", true},     {"[::1]x", false},
        {"[]", false},          {"127.0.0.1:1:2", false}, {"0177.0.0.1", false},
        {"2130706433", false},  {"::1", false},           {"[::2]", false},
        {"a.localhost", false}, {" 127.0.0.1", false},    {NULL, false},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        if (tw_http_host_ok(c[i].host) != c[i].ok)
            fail_msg("Host \"%s\" should%s do", c[i].host ? c[i].host : "(none)", c[i].ok ? "" : " not");
    assert_true(tw_http_origin_ok("http://127.0.0.1:9477", "127.0.0.1:9477"));
    assert_false(tw_http_origin_ok("http://127.0.0.1:9478", "127.0.0.1:9477"));
    assert_false(tw_http_origin_ok("https://127.0.0.1:9477", "127.0.0.1:9477"));
    assert_false(tw_http_origin_ok("http://127.0.0.1:9477.evil", "127.0.0.1:9477"));
}

static void handle(void *ctx, const struct tw_http_request *req, struct tw_http_reply *reply)
{
    (void)ctx;
    if (strcmp(req->path, "/long") == 0) {
        for (int i = 0; i < 1000; i++)
            (void)tw_buf_puts(&reply->body, "0123456789");
    } else if (strcmp(req->path, "/echo") == 0) {
        (void)tw_buf_printf(&reply->body, "%s %s", req->method, req->body ? req->body : "-");
    } else if (strcmp(req->path, "/empty") != 0) {
        tw_http_error(reply, 404, "no \"%s\"", req->path);
    }
}

static void test_fetch(void **state)
{
    (void)state;
    struct tw_http_server *srv;
    struct tw_why why = {""};
    assert_int_equal(tw_http_listen("127.0.0.1:0", handle, NULL, &srv, &why), TW_OK);
    char url[64];
    struct tw_http_ask ask = {.method = "GET", .url = url, .deadline_s = 10, .max_bytes = 4096};
    struct tw_http_answer answer;

    snprintf(url, sizeof url, "http://127.0.0.1:%u/echo", tw_http_port(srv));
    assert_int_equal(tw_http_fetch(&ask, &answer, &why), TW_OK);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "GET -");
    tw_http_answer_done(&answer);

    ask.method = "POST";
    ask.body = "{}";
    assert_int_equal(tw_http_fetch(&ask, &answer, &why), TW_OK);
    assert_string_equal(answer.body, "POST {}");
    tw_http_answer_done(&answer);
    ask.method = "GET";
    ask.body = NULL;

    snprintf(url, sizeof url, "http://127.0.0.1:%u/empty", tw_http_port(srv));
    assert_int_equal(tw_http_fetch(&ask, &answer, &why), TW_OK);
    assert_string_equal(answer.body, "");
    assert_int_equal(answer.n, 0);
    tw_http_answer_done(&answer);

    snprintf(url, sizeof url, "http://127.0.0.1:%u/none", tw_http_port(srv));
    assert_int_equal(tw_http_fetch(&ask, &answer, &why), TW_OK);
    assert_int_equal(answer.status, 404);
    assert_string_equal(answer.body,
                        "{\"schema\":\"tokwatt.error/1\",\"status\":404,\"error\":\"no \\\"/none\\\"\"}\n");
    tw_http_answer_done(&answer);
    tw_http_answer_done(NULL);

    snprintf(url, sizeof url, "http://127.0.0.1:%u/long", tw_http_port(srv));
    assert_int_equal(tw_http_fetch(&ask, &answer, &why), TW_ELIMIT);
    tw_http_close(srv);
    assert_int_equal(tw_http_fetch(&ask, &answer, &why), TW_EIO);
    assert_non_null(strstr(why.text, url));

    snprintf(url, sizeof url, "file:///etc/hostname");
    assert_int_equal(tw_http_fetch(&ask, &answer, &why), TW_EINVAL);
    snprintf(url, sizeof url, "http://");
    assert_int_equal(tw_http_fetch(&ask, &answer, &why), TW_EINVAL);
}

static void test_fetch_deadline(void **state)
{
    (void)state;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* takes connections, never answers */
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", ntohs(addr.sin_port));
    struct tw_http_ask ask = {.method = "GET", .url = url, .deadline_s = 0.2, .max_bytes = 100};
    struct tw_http_answer answer;
    struct tw_why why = {""};
    assert_int_equal(tw_http_fetch(&ask, &answer, &why), TW_ESTALE);
    assert_non_null(strstr(why.text, "0.2 s"));
    close(fd);
}

static void test_ask(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum tw_err err;
        double cut, length, in;
    } c[] = {
        {"{\"cut_frac\":0.3,\"for_s\":300,\"in_s\":5}", TW_OK, 0.3, 300, 5},
        {" {\"for_s\":1,\"cut_frac\":1} ", TW_OK, 1, 1, 0},
        {"{\"cut_frac\":0,\"for_s\":604800}", TW_OK, 0, 604800, 0},
        {"{\"cut_frac\":1.0000001,\"for_s\":300}", TW_ERANGE, 0, 0, 0},
        {"{\"cut_frac\":0.3,\"for_s\":604801}", TW_ERANGE, 0, 0, 0},
        {"{\"cut_frac\":0.3,\"for_s\":-1}", TW_ERANGE, 0, 0, 0},
        {"{\"cut_frac\":true,\"for_s\":1}", TW_EPARSE, 0, 0, 0},
        {"{\"cut_frac\":0.3}", TW_EPARSE, 0, 0, 0},
        {"", TW_EPARSE, 0, 0, 0},
        {"{\"cut_frac\":0.3,\"for_s\":1}}", TW_EPARSE, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct tw_api_ask got = {-7, -7, -7};
        struct tw_why why = {""};
        enum tw_err err = tw_ask_parse(c[i].body, strlen(c[i].body), &got, &why);
        if (err != c[i].err)
            fail_msg("%s: got %s", c[i].body, tw_err_text(err));
        double cut = err == TW_OK ? c[i].cut : -7, length = err == TW_OK ? c[i].length : -7,
               in = err == TW_OK ? c[i].in : -7;
        assert_true(fabs(got.cut_frac - cut) < 1e-12 && fabs(got.for_s - length) < 1e-9 &&
                    fabs(got.in_s - in) < 1e-9);
        assert_true(err == TW_OK || strlen(why.text) > 10);
    }
    uint32_t id = 7;
    assert_int_equal(tw_ask_id("4294967295", &id, NULL), TW_OK);
    assert_int_equal(id, UINT32_MAX);
    assert_int_equal(tw_ask_id("4294967296", &id, NULL), TW_EPARSE);
    assert_int_equal(tw_ask_id("", &id, NULL), TW_EPARSE);
    assert_int_equal(tw_ask_id("+1", &id, NULL), TW_EPARSE);
}

static void test_accept(void **state)
{
    (void)state;
    assert_false(tw_promtext_wants_openmetrics(NULL));
    assert_false(tw_promtext_wants_openmetrics("text/plain;version=0.0.4"));
    assert_false(tw_promtext_wants_openmetrics("*/*"));
    assert_true(tw_promtext_wants_openmetrics("application/openmetrics-text; version=1.0.0,text/plain;q=0.5"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf),   cmocka_unit_test(test_host),
        cmocka_unit_test(test_fetch), cmocka_unit_test(test_fetch_deadline),
        cmocka_unit_test(test_ask),   cmocka_unit_test(test_accept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
