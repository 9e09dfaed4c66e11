/* A copy of the store as a download: what is in it, who may have it, and what stops it. */
#include <string.h>
#include <unistd.h>

#include <warpwave/store.h>
#include <warpwave/vectors.h>

#include "server/client.h"
#include "server/state.h"

enum { ROWS = 500 };

static server *running;
static int port;

static void fill(void)
{
    out body = {0};
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    out_text(&body, "{\"points\":[{\"id\":0,\"vector\":[1,2],\"payload\":{\"n\":0}}");
    for (int i = 1; i < ROWS; i++)
        out_format(&body, ",{\"id\":%d,\"vector\":[1,%d],\"payload\":{\"n\":%d}}", i, i, i);
    out_text(&body, "]}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", body.bytes);
    out_free(&body);
}

static int begin_with(void **state, void (*change)(server_config *config))
{
    scratch_setup(state);
    running = server_for_test(change);
    port = server_port(running);
    return 0;
}

static int begin(void **state)
{
    begin_with(state, NULL);
    fill();
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

static http_answer ask_with_key(const char *key)
{
    char text[256];
    snprintf(
        text, sizeof text,
        "POST /warpwave/backup HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\napi-key: %s\r\n\r\n",
        key);
    const int connection = http_connect(port);
    http_send(connection, text, strlen(text));
    http_answer a = http_receive(connection);
    close(connection);
    return a;
}

static void the_copy_is_a_store_with_every_row_and_nothing_is_left_behind(void **state)
{
    (void)state;
    http_answer first = ask_with_key(""); /* SQLite's own files beside the store are there from now on */
    assert_int_equal(first.status, 200);
    http_free(&first);
    const int entries = scratch_entries(), files = scratch_open_files();
    http_answer a = ask_with_key("");
    assert_int_equal(a.status, 200);
    assert_non_null(strcasestr(a.head, "content-disposition: attachment; filename=\"backup.db\""));
    assert_non_null(strcasestr(a.head, "content-type: application/vnd.sqlite3"));
    assert_int_equal(scratch_entries(), entries);
    for (int i = 0; i < 200 && scratch_open_files() > files; i++) /* the server closes the file after the answer */
        usleep(10000);
    assert_in_range(scratch_open_files(), 0, files);
    ASK_STATUS(port, 200, "POST", "/collections/docs/points/delete?wait=true", "{\"points\": [1, 2, 3]}");

    ww_device *device = NULL;
    ww_store *copy = NULL;
    ww_collection *docs = NULL;
    ww_collection_info info = ww_collection_info_default();
    ww_get get = ww_get_default();
    ww_results *rows = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_write("copy.db", a.body, a.length), device, NULL, &copy));
    CHECK_OK(ww_store_collection(copy, "docs", &docs));
    CHECK_OK(ww_collection_describe(docs, &info));
    assert_int_equal(info.rows_live, ROWS);
    get.count = WW_ROWS_MAX;
    get.fetch = WW_FETCH_PAYLOADS;
    CHECK_OK(ww_collection_get(docs, &get, &rows));
    assert_string_equal(ww_results_payload(rows, 0, ROWS - 1), "{\"n\":499}");
    ww_results_destroy(rows);
    ww_collection_destroy(docs);
    ww_store_close(copy);
    ww_device_close(device);
    http_free(&a);
}

static void with_keys(server_config *config)
{
    static char keys[SCRATCH_PATH_BYTES], readers[SCRATCH_PATH_BYTES];
    snprintf(keys, sizeof keys, "%s", scratch_write("keys", "secret\n", 7));
    snprintf(readers, sizeof readers, "%s", scratch_write("readers", "reader\n", 7));
    config->key_file = keys;
    config->read_only_key_file = readers;
}

static int begin_with_keys(void **state)
{
    return begin_with(state, with_keys);
}

static void a_copy_needs_a_key_that_may_write(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int status;
    } CASES[] = {{"", 401}, {"wrong", 401}, {"reader", 403}, {"secret", 200}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        http_answer a = ask_with_key(CASES[i].key);
        assert_int_equal(a.status, CASES[i].status);
        http_free(&a);
    }
}

static void with_reserve(server_config *config)
{
    config->disk_reserve_bytes = INT64_MAX / 2;
}

static int begin_with_reserve(void **state)
{
    return begin_with(state, with_reserve);
}

static void a_disk_without_room_for_a_copy_refuses_it(void **state)
{
    (void)state;
    http_answer a = ask_with_key("");
    assert_int_equal(a.status, 507);
    assert_non_null(strstr(a.body, "--disk-reserve keeps"));
    http_free(&a);
}

static void one_copy_is_made_at_a_time(void **state)
{
    (void)state;
    const int entries = scratch_entries();
    atomic_store(&running->copying, true);
    http_answer a = ask_with_key("");
    assert_int_equal(a.status, 429);
    http_free(&a);
    atomic_store(&running->copying, false);
    a = ask_with_key("");
    assert_int_equal(a.status, 200);
    assert_false(atomic_load(&running->copying));
    http_free(&a);
    assert_in_range(scratch_entries(), entries, entries + 2); /* the store's log and its index */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_copy_is_a_store_with_every_row_and_nothing_is_left_behind, begin, end),
        cmocka_unit_test_setup_teardown(a_copy_needs_a_key_that_may_write, begin_with_keys, end),
        cmocka_unit_test_setup_teardown(a_disk_without_room_for_a_copy_refuses_it, begin_with_reserve, end),
        cmocka_unit_test_setup_teardown(one_copy_is_made_at_a_time, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
