/* What a web page, a stranger and a careless proxy may not do: requests of other sites, bodies that are not declared as JSON,
 * hosts, memory of bodies, and names that stand for two things. */
#include <string.h>
#include <unistd.h>

#include "server/client.h"
#include "server/state.h"

static server *running;
static int port;

static void small_memory(server_config *config)
{
    config->body_bytes = 1 << 20;
    config->all_bodies_bytes = 3 << 20;
    config->request_seconds = 20;
}

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(small_memory);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 1, \"vector\": [1, 2]}]}");
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

/* Sends a request with more headers, each with its line's end, and returns the status. */
static int status_with(const char *method, const char *path, const char *headers, const char *body)
{
    char sent_text[1024];
    snprintf(sent_text, sizeof sent_text, "%s %s HTTP/1.1\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s", method,
             path, headers, strlen(body), body);
    return http_raw_status(port, sent_text);
}

#define DELETE_POINTS "/collections/docs/points/delete"
#define JSON          "Host: localhost\r\nContent-Type: application/json\r\n"

static int64_t count_points(void)
{
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/count", "{}");
    const int64_t count = json_integer_value(json_object_get(json_object_get(answer, "result"), "count"));
    json_decref(answer);
    return count;
}

static void a_page_of_another_site_can_neither_read_nor_change(void **state)
{
    (void)state;
    static const char *const others[] = {"Origin: http://evil.example\r\n", "Origin: null\r\n",
                                         "Origin: http://localhost:1\r\n", "Sec-Fetch-Site: cross-site\r\n",
                                         "Sec-Fetch-Site: same-site\r\n"};
    char headers[256], own[256];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(headers, sizeof headers, JSON "%s", others[i]);
        assert_int_equal(status_with("POST", DELETE_POINTS, headers, "{\"points\": [1]}"), 403);
        assert_int_equal(status_with("GET", "/collections/docs", headers, ""), 403);
        assert_int_equal(status_with("GET", "/healthz", headers, ""), 200);
    }
    assert_int_equal(count_points(), 1);
    snprintf(own, sizeof own, "Host: localhost:%d\r\nOrigin: http://localhost:%d\r\n", port, port);
    assert_int_equal(status_with("GET", "/collections/docs", own, ""), 200);
    assert_int_equal(status_with("GET", "/collections/docs", JSON "Sec-Fetch-Site: same-origin\r\n", ""), 200);
    assert_int_equal(status_with("GET", "/collections/docs", JSON "Sec-Fetch-Site: none\r\n", ""), 200);
}

static void a_body_that_is_not_declared_as_json_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "Content-Type: text/plain\r\n",
                                        "Content-Type: application/x-www-form-urlencoded\r\n",
                                        "Content-Type: text/json+json\r\n", "Content-Type: application/jsonx\r\n"};
    static const char *const right[] = {"Content-Type: application/json; charset=utf-8\r\n",
                                        "Content-Type: Application/JSON\r\n", "Content-Type: application/vnd.api+json\r\n"};
    char headers[256];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(headers, sizeof headers, "Host: localhost\r\n%s", wrong[i]);
        assert_int_equal(status_with("POST", DELETE_POINTS, headers, "{\"points\": [1]}"), 415);
    }
    assert_int_equal(count_points(), 1);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        snprintf(headers, sizeof headers, "Host: localhost\r\n%s", right[i]);
        assert_int_equal(status_with("POST", "/collections/docs/points/count", headers, "{}"), 200);
    }
    assert_int_equal(status_with("POST", "/collections/docs/points/count", "Host: localhost\r\n", ""), 200);
}

static void health_checks_of_proxies_are_answered(void **state)
{
    (void)state;
    assert_int_equal(http_raw_status(port, "GET /healthz HTTP/1.0\r\n\r\n"), 200);
    assert_int_equal(http_raw_status(port, "OPTIONS / HTTP/1.0\r\n\r\n"), 204);
    assert_int_equal(http_raw_status(port, "GET /dashboard HTTP/1.0\r\n\r\n"), 302);
    assert_int_equal(http_raw_status(port, "GET /readyz HTTP/1.1\r\nHost: warpwave\r\nConnection: close\r\n\r\n"), 200);
    assert_int_equal(http_raw_status(port, "GET /collections HTTP/1.0\r\n\r\n"), 400);
}

static char keys[SCRATCH_PATH_BYTES];

static void with_key(server_config *config)
{
    snprintf(keys, sizeof keys, "%s", scratch_write("keys", "secret\n", 7));
    config->key_file = keys;
}

static void a_server_with_keys_answers_to_any_name(void **state)
{
    (void)state;
    server *s = server_for_test(with_key);
    const int own = server_port(s);
    assert_int_equal(
        http_raw_status(own, "GET /metrics HTTP/1.1\r\nHost: warpwave:6333\r\napi-key: secret\r\nConnection: close\r\n\r\n"),
        200);
    assert_int_equal(http_raw_status(own, "GET /metrics HTTP/1.1\r\nHost: warpwave:6333\r\nConnection: close\r\n\r\n"), 401);
    server_test_end(s);
}

/* Waits until the server has read what was sent: the memory of its bodies has not changed for a while. */
static void wait_until_bodies_are_read(void)
{
    long long bytes = -1;
    for (int unchanged = 0; unchanged < 10;) {
        const long long now = atomic_load(&running->body_bytes);
        unchanged = now == bytes && now > 0 ? unchanged + 1 : 0;
        bytes = now;
        usleep(50000);
    }
}

static void unfinished_bodies_together_have_a_limit(void **state)
{
    (void)state;
    enum { CLIENTS = 8, PIECE = 1 << 16 };
    static char piece[PIECE];
    int connections[CLIENTS], refused = 0;
    memset(piece, ' ', sizeof piece);
    for (int i = 0; i < CLIENTS; i++) {
        static const char head[] = "POST /collections/docs/points/count HTTP/1.1\r\n" JSON "Content-Length: 1000000\r\n\r\n";
        connections[i] = http_connect(port);
        http_send(connections[i], head, sizeof head - 1);
        for (int sent = 0; sent + PIECE < 1000000; sent += PIECE)
            http_send(connections[i], piece, sizeof piece);
    }
    wait_until_bodies_are_read();
    for (int i = 0; i < CLIENTS; i++) { /* the rest: each body is spaces and one object */
        memset(piece, ' ', sizeof piece);
        memcpy(piece, "{}", 2);
        http_send(connections[i], piece, 1000000 % PIECE == 0 ? PIECE : 1000000 % PIECE);
        http_answer a = http_receive(connections[i]);
        refused += a.status == 503;
        if (a.status != 503)
            assert_int_equal(a.status, 200);
        http_free(&a);
        close(connections[i]);
    }
    assert_true(refused >= CLIENTS - 3 && refused < CLIENTS);
    assert_int_equal(count_points(), 1);
}

/* Asks for point 2 with this choice of its payload, and compares what comes. */
static void check_payload(const char *with, const char *expected)
{
    char body[256];
    snprintf(body, sizeof body, "{\"ids\": [2], \"with_payload\": %s}", with);
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points", body);
    json_t *payload = json_object_get(json_array_get(json_object_get(answer, "result"), 0), "payload");
    json_t *wanted = json_loads(expected, 0, NULL);
    if (!wanted || !json_equal(payload, wanted))
        fail_msg("%s: %s", with, json_dumps(payload, 0));
    json_decref(wanted);
    json_decref(answer);
}

static void parts_of_payloads_are_chosen_by_decoded_keys(void **state)
{
    (void)state;
    ASK_STATUS(
        port, 200, "PUT", "/collections/docs/points",
        "{\"points\": [{\"id\": 2, \"vector\": [1, 2], \"payload\": {\"a]\": 5, \"\": {\"x\": 1}, \"pass\\u0077ord\": \"p\","
        " \"list\": [{\"b\": 1, \"c\": 2}, {\"b\": 3}], \"u\": {\"v\": [1, 2]}, \"u.v\": 7}}]}");
    check_payload("{\"exclude\": [\"password\", \"list\", \"u\", \"\\\"u.v\\\"\"]}", "{\"a]\": 5, \"\": {\"x\": 1}}");
    check_payload("{\"include\": [\"\\\"a]\\\"\"]}", "{\"a]\": 5}");
    check_payload("[\"u.v\"]", "{\"u\": {\"v\": [1, 2]}}");
    check_payload("[\"\\\"u.v\\\"\"]", "{\"u.v\": 7}");
    check_payload("[\"list[].b\"]", "{\"list\": [{\"b\": 1}, {\"b\": 3}]}");
    check_payload("[\"list[1].b\"]", "{\"list\": [{\"b\": 3}]}");
    check_payload("{\"exclude\": [\"list[].b\", \"a\", \"u\", \"\\\"u.v\\\"\", \"password\", \"\\\"a]\\\"\"]}",
                  "{\"\": {\"x\": 1}, \"list\": [{\"c\": 2}, {}]}");
    char many[4096] = "{\"ids\": [2], \"with_payload\": [";
    for (int i = 0; i < 200; i++)
        strcat(many, i > 0 ? ",\"a\"" : "\"a\"");
    strcat(many, "]}");
    ASK_STATUS(port, 400, "POST", "/collections/docs/points", many);
}

static void a_name_is_an_alias_or_a_collection_but_never_both(void **state)
{
    (void)state;
    static const char other[] = "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}";
    ASK_STATUS(port, 200, "PUT", "/collections/other", other);
    ASK_STATUS(port, 409, "POST", "/collections/aliases",
               "{\"actions\": [{\"create_alias\": {\"alias_name\": \"docs\", \"collection_name\": \"other\"}}]}");
    ASK_STATUS(port, 200, "POST", "/collections/aliases",
               "{\"actions\": [{\"create_alias\": {\"alias_name\": \"short\", \"collection_name\": \"docs\"}}]}");
    ASK_STATUS(port, 409, "PUT", "/collections/short", other);
    json_t *answer = ASK(port, 200, "DELETE", "/collections/short", NULL);
    assert_true(json_is_false(json_object_get(answer, "result")));
    json_decref(answer);
    assert_int_equal(count_points(), 1);
}

static void deleting_a_collection_keeps_the_indexes_of_others(void **state)
{
    (void)state;
    static const char vectors[] = "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}";
    ASK_STATUS(port, 200, "PUT", "/collections/a", vectors);
    ASK_STATUS(port, 200, "PUT", "/collections/a:b", vectors);
    ASK_STATUS(port, 200, "PUT", "/collections/a:b/index", "{\"field_name\": \"c\", \"field_schema\": \"keyword\"}");
    ASK_STATUS(port, 200, "DELETE", "/collections/a", NULL);
    json_t *answer = ASK(port, 200, "GET", "/collections/a:b", NULL);
    assert_non_null(json_object_get(json_object_get(json_object_get(answer, "result"), "payload_schema"), "c"));
    json_decref(answer);
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(a_page_of_another_site_can_neither_read_nor_change),
        SERVED(a_body_that_is_not_declared_as_json_is_refused),
        SERVED(health_checks_of_proxies_are_answered),
        cmocka_unit_test_setup_teardown(a_server_with_keys_answers_to_any_name, scratch_setup, scratch_teardown),
        SERVED(unfinished_bodies_together_have_a_limit),
        SERVED(parts_of_payloads_are_chosen_by_decoded_keys),
        SERVED(a_name_is_an_alias_or_a_collection_but_never_both),
        SERVED(deleting_a_collection_keeps_the_indexes_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
