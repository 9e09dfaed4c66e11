/* Requests that no good client sends: each is refused, and the server answers the next one. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/client.h"

static server *running;
static int port;

static void small_limits(server_config *config)
{
    config->body_bytes = 4096;
    config->request_seconds = 20;
}

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(small_limits);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Cosine\"}}");
    return 0;
}

static int end(void **state)
{
    ASK_STATUS(port, 200, "GET", "/collections", NULL); /* the server is still running */
    server_test_end(running);
    return scratch_teardown(state);
}

#define HEAD "POST /collections/docs/points/count HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

static void requests_whose_length_is_said_twice_are_refused(void **state)
{
    (void)state;
    static const char *const pairs[] = {
        HEAD "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        HEAD "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        HEAD "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        HEAD "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        HEAD "Transfer-Encoding: identity\r\n\r\n{}",
        HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        HEAD "Content-Length: +2\r\n\r\n{}",
        HEAD "Content-Length: 2, 2\r\n\r\n{}",
        HEAD "Host: elsewhere\r\nContent-Length: 2\r\n\r\n{}",
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const int status = http_raw_status(port, pairs[i]);
        if (status != 400 && status != 0)
            fail_msg("pair %zu: status %d", i, status);
    }
    assert_int_equal(http_raw_status(port, HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), 200);
}

static void bodies_that_are_too_large_or_cut_short_are_not_obeyed(void **state)
{
    (void)state;
    static char large[8192];
    memset(large, ' ', sizeof large - 1);
    assert_int_equal(http_raw_status(port, HEAD "Content-Length: 1000000000000\r\n\r\n"), 413);
    http_answer a = http_ask(port, "POST", "/collections/docs/points/count", large);
    assert_int_equal(a.status, 413);
    http_free(&a);
    assert_int_equal(http_cut_status(port, HEAD "Content-Length: 10\r\n\r\n{}"), 0);
    assert_int_equal(http_cut_status(port, HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\n{}"), 0);
}

static double bodies(void)
{
    return http_figure(port, "\nwarpwave_body_memory_bytes ");
}

static void a_client_that_leaves_before_its_body_is_whole_is_no_failure_of_the_server(void **state)
{
    static const char begun[] = HEAD "Content-Length: 10\r\n\r\n{}";
    (void)state;
    const int connection = http_connect(port);
    http_send(connection, begun, sizeof begun - 1);
    for (int i = 0; i < 1000 && bodies() == 0; i++)
        usleep(10000);
    close(connection);
    for (int i = 0; i < 1000 && bodies() > 0; i++)
        usleep(10000);
#define FIGURE(status)                                                                                                         \
    "\nwarpwave_requests_total{method=\"POST\",path=\"/collections/{collection_name}/points/count\",status=\"" status "\"} "
    assert_true(http_figure(port, FIGURE("4xx")) == 1);
    assert_true(http_figure(port, FIGURE("5xx")) == -1);
}

static void texts_that_are_no_json_are_refused(void **state)
{
    (void)state;
    static char deep[3000], request[4000];
    memset(deep, '[', sizeof deep - 1);
    static const char *const bodies[] = {"{\"filter\": \"\xff\xfe\"}",
                                         "{\"filter\": {\"must\": \"\xed\xa0\x80\"}}",
                                         "{",
                                         "nul",
                                         "{\"a\": 1}}",
                                         "{\"a\": 01}",
                                         "\"text\"",
                                         "{\"filter\": {\"must\": [1e99999]}}"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        ASK_STATUS(port, 400, "POST", "/collections/docs/points/count", bodies[i]);
    ASK_STATUS(port, 400, "POST", "/collections/docs/points/count", deep);
    const int head = snprintf(request, sizeof request, HEAD "Content-Length: 4\r\nConnection: close\r\n\r\n");
    memcpy(request + head, "{}\0 ", 4);
    const int connection = http_connect(port);
    http_send(connection, request, (size_t)head + 4);
    http_answer a = http_receive(connection);
    assert_int_equal(a.status, 400);
    http_free(&a);
    close(connection);
}

static void hosts_that_were_not_named_are_refused(void **state)
{
    (void)state;
    assert_int_equal(http_raw_status(port, "GET /collections HTTP/1.1\r\nHost: rebound.example\r\n\r\n"), 403);
    assert_int_equal(http_raw_status(port, "GET /collections HTTP/1.1\r\nHost: 127.0.0.1:9\r\n\r\n"), 200);
    assert_int_equal(http_raw_status(port, "GET /collections HTTP/1.1\r\nHost: [::1]:9\r\n\r\n"), 200);
    assert_int_equal(http_raw_status(port, "GET /collections HTTP/1.1\r\n\r\n"), 400);
}

/* Sends it on a connection of its own. */
static http_answer answer_raw(const char *bytes)
{
    const int connection = http_connect(port);
    http_send(connection, bytes, strlen(bytes));
    http_answer a = http_receive(connection);
    close(connection);
    return a;
}

static void heads_that_are_not_http_1_are_refused_in_json(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int status;
    } cases[] = {{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
                 {"GET /collections HTTP/2\r\n\r\n", 505},
                 {"GET /collections HTTP/0.9\r\n\r\n", 505},
                 {"GET /collections\r\n", 400},
                 {"\r\n\r\nhello\n", 400},
                 {"\x16\x03\x01 a ClientHello\n", 400},
                 {"GET /collections HTTP/1.1\r\nAccept: text/html\r\n\r\n", 400},
                 {"GET /collections HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", 400}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_answer a = answer_raw(cases[i].line);
        if (a.status != cases[i].status || !strstr(a.head, "application/json"))
            fail_msg("case %zu: %d %s", i, a.status, a.head ? a.head : "");
        json_t *body = json_loads(a.body, 0, NULL);
        assert_non_null(json_string_value(json_object_get(json_object_get(body, "status"), "error")));
        json_decref(body);
        http_free(&a);
    }
    assert_int_equal(http_raw_status(port, "\r\nGET /healthz HTTP/1.0\r\n\r\n"), 200);
}

static void header_lines_without_end_are_cut_off(void **state)
{
    (void)state;
    static char line[4096];
    const int connection = http_connect(port);
    memset(line, 'a', sizeof line - 1);
    static const char start[] = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ";
    http_send(connection, start, sizeof start - 1);
    for (int i = 0; i < 64; i++)
        http_send(connection, line, sizeof line - 1);
    http_answer a = http_receive(connection);
    assert_true(a.status == 0 || (a.status >= 400 && a.status < 500));
    http_free(&a);
    close(connection);
}

static void a_million_headers_are_cut_off(void **state)
{
    (void)state;
    static const char start[] = "GET / HTTP/1.1\r\nHost: localhost\r\n";
    const int connection = http_connect(port);
    int sent = 0;
    http_send(connection, start, sizeof start - 1);
    for (char line[32]; sent < 1000000; sent++) {
        const int length = snprintf(line, sizeof line, "X%d: %d\r\n", sent, sent);
        if (send(connection, line, (size_t)length, MSG_NOSIGNAL) != length)
            break;
    }
    assert_true(sent < 1000000);
    close(connection);
}

static void a_chunked_body_without_end_is_not_kept(void **state)
{
    (void)state;
    static char chunk[4096 + 8];
    const int head = snprintf(chunk, sizeof chunk, "1000\r\n");
    memset(chunk + head, ' ', 4096);
    const int connection = http_connect(port);
    http_send(connection, HEAD "Transfer-Encoding: chunked\r\n\r\n", sizeof HEAD "Transfer-Encoding: chunked\r\n\r\n" - 1);
    for (int i = 0; i < 16; i++) { /* the limit is one of these */
        http_send(connection, chunk, (size_t)head + 4096);
        http_send(connection, "\r\n", 2);
    }
    http_send(connection, "0\r\n\r\n", 5);
    http_answer a = http_receive(connection);
    assert_int_equal(a.status, 413);
    http_free(&a);
    close(connection);
}

static void numbers_are_exact_or_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"18446744073709551616", "-1", "1.5", "1e2", "9007199254740993.0", "1e400"};
    static const char *const right[] = {"9007199254740993", "18446744073709551615", "9223372036854775808"};
    char body[160];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"points\": [{\"id\": %s, \"vector\": [1, 2]}]}", wrong[i]);
        ASK_STATUS(port, 400, "PUT", "/collections/docs/points", body);
    }
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        snprintf(body, sizeof body, "{\"points\": [{\"id\": %s, \"vector\": [1, 2], \"payload\": {\"n\": %s}}]}", right[i],
                 right[i]);
        ASK_STATUS(port, 200, "PUT", "/collections/docs/points", body);
        snprintf(body, sizeof body, "{\"ids\": [%s], \"with_payload\": true}", right[i]);
        http_answer a = http_ask(port, "POST", "/collections/docs/points", body);
        snprintf(body, sizeof body, "{\"n\": %s}", right[i]);
        if (a.status != 200 || !strstr(a.body, right[i]) || !strstr(a.body, body))
            fail_msg("%s: status %d: %s", right[i], a.status, a.body);
        http_free(&a);
    }
    ASK_STATUS(port, 400, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 1, \"vector\": [1e39, 2]}]}");
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    (void)state;
    static const char two[] =
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" HEAD "Content-Length: 2\r\nConnection: close\r\n\r\n{}";
    const int connection = http_connect(port);
    http_send(connection, two, sizeof two - 1);
    char all[4096] = "";
    size_t length = 0;
    for (ssize_t count; (count = recv(connection, all + length, sizeof all - 1 - length, 0)) > 0;)
        length += (size_t)count;
    const char *first = strstr(all, "healthz check passed"), *second = strstr(all, "\"count\":0");
    assert_true(first && second && first < second);
    close(connection);
}

static void paths_with_escapes_name_collections_and_no_other_routes(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "GET", "/collections/d%6Fcs", NULL);
    ASK_STATUS(port, 404, "GET", "/collections/docs%2Fexists", NULL);
    ASK_STATUS(port, 400, "GET", "/collections/docs%00", NULL);
    ASK_STATUS(port, 404, "GET", "/collections/..%2f..%2fetc", NULL);
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(requests_whose_length_is_said_twice_are_refused),
        SERVED(bodies_that_are_too_large_or_cut_short_are_not_obeyed),
        SERVED(a_client_that_leaves_before_its_body_is_whole_is_no_failure_of_the_server),
        SERVED(texts_that_are_no_json_are_refused),
        SERVED(hosts_that_were_not_named_are_refused),
        SERVED(heads_that_are_not_http_1_are_refused_in_json),
        SERVED(header_lines_without_end_are_cut_off),
        SERVED(a_million_headers_are_cut_off),
        SERVED(a_chunked_body_without_end_is_not_kept),
        SERVED(numbers_are_exact_or_refused),
        SERVED(pipelined_requests_are_answered_in_order),
        SERVED(paths_with_escapes_name_collections_and_no_other_routes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
