/* What operators look at: readiness when the file or the disk fails, figures, and the access log. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/client.h"

static server *running;
static int port;
static char store[SCRATCH_PATH_BYTES], moved[SCRATCH_PATH_BYTES], log_path[SCRATCH_PATH_BYTES], keys[SCRATCH_PATH_BYTES];
static int64_t reserve_bytes;
static bool needs_key;

static void configure(server_config *config)
{
    snprintf(store, sizeof store, "%s", config->store);
    config->access_log = log_path;
    config->key_file = needs_key ? keys : NULL;
    config->disk_reserve_bytes = reserve_bytes;
}

static int begin_with(void **state, int64_t reserve)
{
    scratch_setup(state);
    reserve_bytes = reserve;
    snprintf(moved, sizeof moved, "%s", scratch_path("moved.db"));
    snprintf(log_path, sizeof log_path, "%s", scratch_path("log"));
    snprintf(keys, sizeof keys, "%s", scratch_write("keys", "secret alice\nother\n", 19));
    needs_key = false;
    running = server_for_test(configure);
    ASK_STATUS(server_port(running), 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    needs_key = true;
    server_test_end(running); /* the file is written when the store is closed */
    running = server_for_test(configure);
    port = server_port(running);
    return 0;
}

static int begin(void **state)
{
    return begin_with(state, 0);
}

static int begin_full(void **state)
{
    return begin_with(state, INT64_MAX);
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

/* Waits until /readyz has this status, and says it with these words. */
static void wait_for(int status, const char *words)
{
    for (int i = 0; i < 100; i++) {
        http_answer a = http_ask(port, "GET", "/readyz", NULL);
        const bool found = a.status == status && strstr(a.body, words);
        http_free(&a);
        if (found)
            return;
        usleep(100000);
    }
    fail_msg("/readyz never said %d %s", status, words);
}

static void readiness_names_a_file_that_was_removed_replaced_or_damaged(void **state)
{
    (void)state;
    wait_for(200, "ready");
    assert_int_equal(rename(store, moved), 0);
    wait_for(503, "was removed");
    scratch_write("served.db", "", 0);
    wait_for(503, "was replaced");
    assert_int_equal(rename(moved, store), 0);
    wait_for(200, "ready");
    struct stat file;
    char first[16];
    const int fd = open(store, O_RDWR);
    assert_int_equal(pread(fd, first, sizeof first, 0), sizeof first);
    assert_int_equal(pwrite(fd, "no longer SQLite", sizeof first, 0), sizeof first);
    wait_for(503, "malformed");
    assert_int_equal(pwrite(fd, first, sizeof first, 0), sizeof first);
    wait_for(200, "ready");
    assert_int_equal(fstat(fd, &file), 0);
    assert_int_equal(ftruncate(fd, file.st_size / 2), 0);
    wait_for(503, "truncated");
    close(fd);
}

static void readiness_names_a_full_disk(void **state)
{
    (void)state;
    wait_for(503, "is full");
}

/* Sends a request with a key and a name of the request's own; returns the head of the answer. */
static char *ask(const char *key)
{
    char request[256];
    const int connection = http_connect(port);
    snprintf(
        request, sizeof request,
        "GET /collections HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\napi-key: %s\r\nX-Request-Id: from-%s\r\n\r\n",
        key, key);
    http_send(connection, request, strlen(request));
    http_answer a = http_receive(connection);
    close(connection);
    assert_int_equal(a.status, 200);
    free(a.body);
    return a.head;
}

/* Waits until the log has a line with these words. */
static void wait_for_line(const char *words)
{
    for (int i = 0; i < 100; i++) {
        char text[8192] = "";
        FILE *file = fopen(log_path, "re");
        if (file) {
            (void)!fread(text, 1, sizeof text - 1, file);
            fclose(file);
        }
        if (strstr(text, words))
            return;
        usleep(20000);
    }
    fail_msg("the log never had %s", words);
}

static void the_access_log_has_names_and_is_opened_again_after_a_reload(void **state)
{
    (void)state;
    char *head = ask("secret");
    assert_non_null(strcasestr(head, "x-request-id: from-secret"));
    free(head);
    wait_for_line("\"id\":\"from-secret\",\"key\":\"alice\"");
    wait_for_line("\"sent_bytes\":");
    assert_int_equal(rename(log_path, moved), 0);
    CHECK_OK(server_reload(running));
    free(ask("other"));
    wait_for_line("\"id\":\"from-other\",\"key\":\"line 2\"");
}

static void figures_have_routes_the_process_and_the_disk(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "its answer; le is an upper bound in seconds.\n",
        "warpwave_request_duration_seconds_bucket{method=\"GET\",path=\"/collections\",le=\"+Inf\"} 1\n",
        "warpwave_request_duration_seconds_count{method=\"GET\",path=\"/collections\"} 1\n",
        "\nprocess_cpu_seconds_total ",
        "\nprocess_resident_memory_bytes ",
        "\nprocess_open_fds ",
        "\nprocess_start_time_seconds ",
        "\nwarpwave_disk_free_bytes ",
        "\nwarpwave_store_bytes ",
        "\nwarpwave_store_memory_bytes ",
        "\nwarpwave_store_memory_limit_bytes 0\n",
        "# TYPE warpwave_collection_points gauge\n"};
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\napi-key: secret\r\n\r\n";
    free(ask("secret"));
    usleep(50000); /* a request is counted after its client has the answer */
    const int connection = http_connect(port);
    http_send(connection, request, sizeof request - 1);
    http_answer figures = http_receive(connection);
    close(connection);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(figures.body, lines[i]))
            fail_msg("there is no %s in %s", lines[i], figures.body);
    http_free(&figures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(readiness_names_a_file_that_was_removed_replaced_or_damaged, begin, end),
        cmocka_unit_test_setup_teardown(readiness_names_a_full_disk, begin_full, end),
        cmocka_unit_test_setup_teardown(the_access_log_has_names_and_is_opened_again_after_a_reload, begin, end),
        cmocka_unit_test_setup_teardown(figures_have_routes_the_process_and_the_disk, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
