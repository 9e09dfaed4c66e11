/* Access and limits: keys, origins, full queues, stopping. */
#include <string.h>
#include <unistd.h>

#include "server/client.h"

static char keys[SCRATCH_PATH_BYTES], read_only[SCRATCH_PATH_BYTES];

static void with_keys(server_config *config)
{
    snprintf(keys, sizeof keys, "%s", scratch_write("keys", "secret\nother\n", 13));
    snprintf(read_only, sizeof read_only, "%s", scratch_write("read-only", "look\n", 5));
    config->key_file = keys;
    config->read_only_key_file = read_only;
    config->origins[0] = "https://pages.example";
    config->origin_count = 1;
}

static int status_with(int port, const char *method, const char *header)
{
    char request[512];
    snprintf(request, sizeof request, "%s /collections%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", method,
             strcmp(method, "DELETE") == 0 ? "/none" : "", header);
    return http_raw_status(port, request);
}

static void a_request_needs_a_key_if_the_server_has_keys(void **state)
{
    (void)state;
    server *s = server_for_test(with_keys);
    const int port = server_port(s);
    assert_int_equal(status_with(port, "GET", ""), 401);
    assert_int_equal(status_with(port, "GET", "api-key: wrong\r\n"), 401);
    assert_int_equal(status_with(port, "GET", "api-key: secre\r\n"), 401);
    assert_int_equal(status_with(port, "GET", "api-key: secret\r\n"), 200);
    assert_int_equal(status_with(port, "GET", "Authorization: Bearer other\r\n"), 200);
    assert_int_equal(status_with(port, "GET", "api-key: look\r\n"), 200);
    assert_int_equal(status_with(port, "DELETE", "api-key: look\r\n"), 403);
    assert_int_equal(status_with(port, "DELETE", "api-key: secret\r\n"), 200);
    assert_int_equal(http_raw_status(port, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
    scratch_write("keys", "fresh\n", 6);
    CHECK_OK(server_reload(s));
    assert_int_equal(status_with(port, "GET", "api-key: secret\r\n"), 401);
    assert_int_equal(status_with(port, "GET", "api-key: fresh\r\n"), 200);
    scratch_write("keys", "", 0);
    CHECK_FAILS(WW_INVALID_ARGUMENT, server_reload(s));
    assert_int_equal(status_with(port, "GET", "api-key: fresh\r\n"), 200);
    server_test_end(s);
}

static void a_public_address_without_a_key_is_refused(void **state)
{
    (void)state;
    server *s = NULL;
    server_config config = server_config_default();
    CHECK_OK(ww_device_open("cpu", &config.device));
    config.store = scratch_path("served.db");
    config.address = "0.0.0.0";
    config.port = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, server_start(&config, &s));
    config.no_auth = true;
    CHECK_OK(server_start(&config, &s));
    server_stop(s);
    ww_device_close(config.device);
}

static void only_origins_that_were_named_are_permitted(void **state)
{
    (void)state;
    server *s = server_for_test(with_keys);
    const int port = server_port(s), connection = http_connect(port);
    static const char good[] = "OPTIONS /collections HTTP/1.1\r\nHost: localhost\r\nOrigin: https://pages.example\r\n"
                               "Access-Control-Request-Method: PUT\r\nConnection: close\r\n\r\n";
    http_send(connection, good, sizeof good - 1);
    http_answer a = http_receive(connection);
    assert_int_equal(a.status, 204);
    assert_non_null(strcasestr(a.head, "access-control-allow-origin: https://pages.example"));
    assert_non_null(strcasestr(a.head, "access-control-allow-methods:"));
    http_free(&a);
    close(connection);
    assert_int_equal(
        http_raw_status(port, "OPTIONS /collections HTTP/1.1\r\nHost: localhost\r\nOrigin: https://other.example\r\n\r\n"),
        403);
    server_test_end(s);
}

static void no_room(server_config *config)
{
    config->queue_limit = 0;
}

static void a_full_queue_says_when_to_try_again(void **state)
{
    (void)state;
    server *s = server_for_test(no_room);
    http_answer a = http_ask(server_port(s), "GET", "/collections", NULL);
    assert_int_equal(a.status, 429);
    assert_non_null(strcasestr(a.head, "retry-after: 1"));
    http_free(&a);
    server_test_end(s);
}

static void the_description_has_every_route_and_is_json(void **state)
{
    (void)state;
    server *s = server_for_test(NULL);
    const int port = server_port(s);
    json_t *description = ASK(port, 200, "GET", "/openapi.json", NULL), *paths = json_object_get(description, "paths");
    assert_non_null(json_object_get(json_object_get(paths, "/collections/{collection_name}/points/query"), "post"));
    const json_t *embeddings = json_object_get(json_object_get(paths, "/v1/embeddings"), "post");
    assert_non_null(json_object_get(json_object_get(embeddings, "responses"), "415"));
    assert_true(json_object_size(paths) > 30);
    json_decref(description);
    bool counted = false;
    for (int i = 0; i < 1000 && !counted; i++) { /* a request is counted after its client has the answer */
        http_answer figures = http_ask(port, "GET", "/metrics", NULL);
        assert_non_null(strstr(figures.body, "# TYPE warpwave_requests_total counter\n"));
        counted = strstr(figures.body, "path=\"/openapi.json\",status=\"2xx\"} 1\n") != NULL;
        http_free(&figures);
    }
    assert_true(counted);
    ASK_STATUS(port, 200, "GET", "/telemetry", NULL);
    server_test_end(s);
}

#define SCRATCHED(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

static void with_an_audit_log(server_config *config)
{
    static char audit[SCRATCH_PATH_BYTES];
    snprintf(keys, sizeof keys, "%s", scratch_write("keys", "secret amy\n", 11));
    snprintf(read_only, sizeof read_only, "%s", scratch_write("readers", "reader ben\n", 11));
    snprintf(audit, sizeof audit, "%s", scratch_path("audit"));
    config->key_file = keys;
    config->read_only_key_file = read_only;
    config->audit_log = audit;
}

static void ask_as(int port, const char *key, const char *request, const char *body)
{
    char text[600];
    snprintf(text, sizeof text,
             "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\napi-key: %s\r\nX-Request-Id: r7\r\nContent-Type: "
             "application/json\r\nContent-Length: %zu\r\n\r\n%s",
             request, key, strlen(body), body);
    assert_true(http_raw_status(port, text) > 0);
}

/* The lines of the log, once there are as many; the caller decrefs. */
static json_t *lines_of(const char *path, size_t wanted)
{
    json_t *lines = NULL;
    for (int turn = 0; turn < 200 && json_array_size(lines) < wanted; turn++) {
        size_t size = 0;
        char *text = scratch_content(path, &size), *rest = NULL;
        json_decref(lines);
        lines = json_array();
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            json_array_append_new(lines, json_loads(line, 0, NULL));
        free(text);
        usleep(10000);
    }
    assert_int_equal(json_array_size(lines), wanted);
    return lines;
}

static const char *text_of(const json_t *lines, size_t line, const char *key)
{
    const char *text = json_string_value(json_object_get(json_array_get(lines, line), key));
    return text ? text : "";
}

static void every_change_has_a_line_in_the_audit_log(void **state)
{
    (void)state;
    server *s = server_for_test(with_an_audit_log);
    const int port = server_port(s);
    ask_as(port, "secret", "PUT /collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    json_decref(lines_of(scratch_path("audit"), 1)); /* a line may come later than the answer */
    ask_as(port, "reader", "GET /collections/docs", "");
    ask_as(port, "reader", "DELETE /collections/docs", "");
    json_decref(lines_of(scratch_path("audit"), 2));
    ask_as(port, "secret", "POST /snapshots", "");
    json_t *lines = lines_of(scratch_path("audit"), 3);
    assert_string_equal(text_of(lines, 0, "key"), "amy");
    assert_string_equal(text_of(lines, 0, "collection"), "docs");
    assert_string_equal(text_of(lines, 0, "route"), "/collections/{collection_name}");
    assert_string_equal(text_of(lines, 0, "method"), "PUT");
    assert_string_equal(text_of(lines, 0, "id"), "r7");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(lines, 0), "status")), 200);
    assert_string_equal(text_of(lines, 1, "key"), "ben");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(lines, 1), "status")), 403);
    assert_string_equal(text_of(lines, 2, "path"), "/snapshots");
    assert_true(json_is_null(json_object_get(json_array_get(lines, 2), "collection")));
    json_decref(lines);
    char old[SCRATCH_PATH_BYTES];
    snprintf(old, sizeof old, "%s", scratch_path("audit.1"));
    assert_int_equal(rename(scratch_path("audit"), old), 0);
    CHECK_OK(server_reload(s)); /* as SIGHUP does */
    ask_as(port, "secret", "DELETE /collections/docs", "");
    lines = lines_of(scratch_path("audit"), 1);
    assert_string_equal(text_of(lines, 0, "method"), "DELETE");
    json_decref(lines);
    server_test_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCHED(a_request_needs_a_key_if_the_server_has_keys), SCRATCHED(a_public_address_without_a_key_is_refused),
        SCRATCHED(only_origins_that_were_named_are_permitted),   SCRATCHED(a_full_queue_says_when_to_try_again),
        SCRATCHED(the_description_has_every_route_and_is_json),  SCRATCHED(every_change_has_a_line_in_the_audit_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
