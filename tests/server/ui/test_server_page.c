/* The page for browsers: its files and their headers, and the routes that only the page uses. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <warpwave/ivf.h>
#include <warpwave/store.h>

#include "server/client.h"
#include "server/ui/ui.h"

enum { PAGE_BYTES_MAX = 200000 };

static server *running;
static int port;

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(NULL);
    port = server_port(running);
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

/* Asks with a header line more. */
static http_answer ask_with(int at, const char *path, const char *header)
{
    char text[512];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", path, header);
    const int connection = http_connect(at);
    http_send(connection, text, strlen(text));
    http_answer a = http_receive(connection);
    close(connection);
    return a;
}

static const char *body_text(json_t *answer, const char *key)
{
    return json_string_value(json_object_get(json_object_get(answer, "result"), key));
}

static json_t *body_value(json_t *answer, const char *key)
{
    return json_object_get(json_object_get(answer, "result"), key);
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

static void browsers_get_the_page_and_other_clients_the_version(void **state)
{
    (void)state;
    http_answer page = ask_with(port, "/", "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n");
    assert_int_equal(page.status, 200);
    assert_non_null(strstr(page.body, "<script type=\"module\" src=\"/ui/app.js\">"));
    assert_non_null(strcasestr(page.head, "content-type: text/html; charset=utf-8"));
    http_free(&page);
    static const char *const OTHERS[] = {"", "Accept: */*\r\n", "Accept: application/json\r\n"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        http_answer a = ask_with(port, "/", OTHERS[i]);
        assert_int_equal(a.status, 200);
        assert_non_null(strstr(a.body, "\"version\":\""));
        assert_non_null(strcasestr(a.head, "content-type: application/json"));
        http_free(&a);
    }
}

static void every_file_has_the_headers_that_keep_it_safe(void **state)
{
    (void)state;
    for (const page_file *file = page_files; file->name; file++) {
        char path[128];
        snprintf(path, sizeof path, "/ui/%s", file->name);
        http_answer a = ask_with(port, path, "");
        assert_int_equal(a.status, 200);
        assert_int_equal(a.length, file->end - file->bytes);
        assert_memory_equal(a.body, file->bytes, a.length);
        assert_non_null(strcasestr(a.head, "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; "
                                           "img-src 'self'; connect-src 'self';"));
        assert_non_null(strcasestr(a.head, "frame-ancestors 'none'"));
        assert_non_null(strcasestr(a.head, "require-trusted-types-for 'script'"));
        assert_non_null(strcasestr(a.head, "x-content-type-options: nosniff"));
        assert_non_null(strcasestr(a.head, "referrer-policy: no-referrer"));
        assert_null(strcasestr(a.head, "application/octet-stream"));
        http_free(&a);
    }
    http_answer none = ask_with(port, "/ui/none.js", "");
    assert_int_equal(none.status, 404);
    http_free(&none);
    none = ask_with(port, "/ui/..%2Findex.html", "");
    assert_int_equal(none.status, 404);
    http_free(&none);
}

/* Text that would load something from elsewhere, make HTML or code from a text, or store the key. */
static void the_files_are_small_and_name_no_other_origin(void **state)
{
    (void)state;
    static const char *const FORBIDDEN[] = {
        "https://",       "innerHTML",     "outerHTML",       "insertAdjacent", "document.write", "eval(",  "new Function",
        "sessionStorage", "localStorage",  "document.cookie", "@import",        "url(",           "style=", "DOMParser",
        "srcdoc",         "importScripts", "WebSocket",       "sendBeacon",     "EventSource"};
    size_t bytes = 0;
    for (const page_file *file = page_files; file->name; file++) {
        const size_t length = (size_t)(file->end - file->bytes);
        bytes += length;
        for (size_t i = 0; i < sizeof FORBIDDEN / sizeof *FORBIDDEN; i++)
            if (memmem(file->bytes, length, FORBIDDEN[i], strlen(FORBIDDEN[i])))
                fail_msg("%s has '%s' in it", file->name, FORBIDDEN[i]);
        for (const char *at = file->bytes; (at = memmem(at, (size_t)(file->end - at), "http://", 7)); at++)
            if (strncmp(at, "http://www.w3.org/2000/svg", 26) != 0) /* the name of a namespace, which browsers do not load */
                fail_msg("%s names another origin", file->name);
    }
    assert_in_range(bytes, 20000, PAGE_BYTES_MAX);
}

static void with_keys(server_config *config)
{
    static char keys[SCRATCH_PATH_BYTES];
    snprintf(keys, sizeof keys, "%s", scratch_write("keys", "secret\n", 7));
    config->key_file = keys;
}

static void files_need_no_key_and_data_does(void **state)
{
    (void)state;
    server *s = server_for_test(with_keys);
    static const char *const OPEN[] = {"/", "/ui/app.js", "/ui/style.css"}, *const CLOSED[] = {
                                                                                "/warpwave/overview",
                                                                                "/warpwave/collections/docs/fields",
                                                                                "/metrics"};
    for (size_t i = 0; i < 3; i++) {
        http_answer a = ask_with(server_port(s), OPEN[i], "Accept: text/html\r\n");
        assert_int_equal(a.status, 200);
        http_free(&a);
        a = ask_with(server_port(s), CLOSED[i], "");
        assert_int_equal(a.status, 401);
        http_free(&a);
    }
    http_answer a = ask_with(server_port(s), "/warpwave/overview", "api-key: secret\r\n");
    assert_int_equal(a.status, 200);
    http_free(&a);
    server_test_end(s);
}

/* ---- data ---------------------------------------------------------------------------------------------------------------- */

static void fill(void)
{
    out body = {0};
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Cosine\"}}");
    out_text(&body, "{\"points\":[{\"id\":18446744073709551615,\"vector\":[3,4],\"payload\":{\"n\":0,\"tag\":\"last\"}}");
    for (int i = 1; i < 30; i++)
        out_format(&body, ",{\"id\":%d,\"vector\":[1,%d],\"payload\":{\"n\":%d,\"author\":{\"name\":\"ann\"}}}", i, i, i);
    out_text(&body, "]}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", body.bytes);
    out_free(&body);
}

static void the_overview_has_every_collection_and_its_figures(void **state)
{
    (void)state;
    fill();
    ASK_STATUS(
        port, 200, "PUT", "/collections/named",
        "{\"vectors\": {\"image\": {\"size\": 3, \"distance\": \"Dot\"}, \"text\": {\"size\": 4, \"distance\": \"Euclid\"}}}");
    json_t *answer = ASK(port, 200, "GET", "/warpwave/overview", NULL), *list = body_value(answer, "collections");
    assert_int_equal(json_array_size(list), 2);
    json_t *docs = json_array_get(list, 0), *named = json_array_get(list, 1);
    assert_string_equal(json_string_value(json_object_get(docs, "name")), "docs");
    assert_int_equal(json_integer_value(json_object_get(docs, "rows")), 30);
    assert_int_equal(json_integer_value(json_object_get(docs, "dim")), 2);
    assert_string_equal(json_string_value(json_object_get(docs, "metric")), "cosine");
    assert_true(json_is_null(json_object_get(docs, "index")));
    assert_true(json_is_null(json_object_get(docs, "model")));
    assert_int_equal(json_integer_value(json_object_get(docs, "bytes_vectors")), 30 * 2 * 4);
    assert_int_equal(json_array_size(json_object_get(named, "vectors")), 2);
    const json_t *part = json_array_get(json_object_get(named, "vectors"), 0);
    assert_string_equal(json_string_value(json_object_get(part, "type")), "f32");
    assert_true(json_is_null(json_object_get(part, "index")));
    assert_true(json_integer_value(body_value(answer, "bytes_file")) > 0);
    assert_true(strlen(body_text(answer, "device")) > 0);
    assert_string_equal(body_text(answer, "device_id"), "cpu");
    json_decref(answer);
}

static json_t *row_at(json_t *answer, size_t i)
{
    return json_array_get(body_value(answer, "rows"), i);
}

static void rows_come_in_pages_with_ids_and_handles_as_texts(void **state)
{
    (void)state;
    fill();
    json_t *answer = ASK(port, 200, "POST", "/warpwave/collections/docs/rows", "{\"limit\": 2}");
    assert_int_equal(json_integer_value(body_value(answer, "total")), 30);
    assert_int_equal(json_array_size(body_value(answer, "rows")), 2);
    assert_string_equal(json_string_value(json_object_get(row_at(answer, 0), "id")), "18446744073709551615");
    char body[128];
    snprintf(body, sizeof body, "{\"handles\": [\"%s\", \"999999\"], \"with_vector\": true}",
             json_string_value(json_object_get(row_at(answer, 0), "handle")));
    json_decref(answer);
    answer = ASK(port, 200, "POST", "/warpwave/collections/docs/rows", body);
    assert_int_equal(json_array_size(body_value(answer, "rows")), 1);
    json_t *vector = json_object_get(row_at(answer, 0), "vector"); /* unchanged, without normalization */
    assert_float_equal(json_real_value(json_array_get(vector, 1)), 4, 0);
    json_decref(answer);
    answer = ASK(port, 200, "POST", "/warpwave/collections/docs/rows",
                 "{\"offset\": 5, \"filter\": {\"must\": [{\"key\": \"n\", \"range\": {\"gte\": 20}}]}}");
    assert_int_equal(json_integer_value(body_value(answer, "total")), 10);
    assert_int_equal(json_array_size(body_value(answer, "rows")), 5);
    assert_string_equal(json_string_value(json_object_get(row_at(answer, 0), "id")), "25");
    json_decref(answer);
    static const char *const WRONG[] = {
        "{\"ids\": [1]}",    "{\"ids\": \"1\"}", "{\"handles\": [\"1x\"]}",       "{\"handles\": [\"\"]}",
        "{\"limit\": 1001}", "{\"offset\": -1}", "{\"ids\": [], \"handles\": []}"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        ASK_STATUS(port, 400, "POST", "/warpwave/collections/docs/rows", WRONG[i]);
}

static void large_payloads_are_cut_between_characters(void **state)
{
    (void)state;
    out body = {0};
    fill();
    out_text(&body, "{\"id\":\"7\",\"payload\":{\"a\":\"");
    for (int i = 0; i < 2000; i++)
        out_text(&body, "\xf0\x9f\xa6\x8a");
    out_text(&body, "\"}}");
    ASK_STATUS(port, 200, "PUT", "/warpwave/collections/docs/rows", body.bytes);
    json_t *answer = ASK(port, 200, "POST", "/warpwave/collections/docs/rows", "{\"ids\": [\"7\"], \"payload_bytes\": 1000}");
    json_t *row = row_at(answer, 0);
    assert_null(json_object_get(row, "payload"));
    assert_int_equal(json_integer_value(json_object_get(row, "payload_bytes")), 8008);
    assert_in_range(json_string_length(json_object_get(row, "preview")), 400, 403);
    assert_null(strstr(json_string_value(json_object_get(row, "preview")), "\xef\xbf\xbd"));
    json_decref(answer);
    answer = ASK(port, 200, "POST", "/warpwave/collections/docs/rows", "{\"ids\": [\"7\"]}");
    assert_int_equal(json_string_length(json_object_get(json_object_get(row_at(answer, 0), "payload"), "a")), 8000);
    json_decref(answer);
    out_free(&body);
}

static void rows_are_changed_and_deleted_by_ids_of_any_kind(void **state)
{
    (void)state;
    fill();
    ASK_STATUS(port, 200, "PUT", "/warpwave/collections/docs/rows",
               "{\"id\": \"18446744073709551615\", \"payload\": {\"n\": 12345678901234567890}}");
    ASK_STATUS(port, 404, "PUT", "/warpwave/collections/docs/rows", "{\"id\": \"not there\", \"payload\": {}}");
    ASK_STATUS(port, 400, "PUT", "/warpwave/collections/docs/rows", "{\"id\": \"1\", \"payload\": [1]}");
    http_answer a =
        http_ask(port, "POST", "/warpwave/collections/docs/rows", "{\"ids\": [\"18446744073709551615\", \"none\"]}");
    assert_non_null(strstr(a.body, "12345678901234567890"));
    http_free(&a);
    json_t *answer = ASK(port, 200, "POST", "/warpwave/collections/docs/rows/delete", "{\"ids\": [\"3\", \"4\", \"none\"]}");
    assert_int_equal(json_integer_value(body_value(answer, "deleted")), 2);
    json_decref(answer);
    answer = ASK(port, 200, "POST", "/warpwave/collections/docs/rows", "{\"with_payload\": false}");
    assert_int_equal(json_integer_value(body_value(answer, "total")), 28);
    json_decref(answer);
    ASK_STATUS(port, 400, "POST", "/warpwave/collections/docs/rows/delete", "{}");
    ASK_STATUS(port, 404, "POST", "/warpwave/collections/none/rows", "{}");
}

static void the_fields_of_payloads_have_types_and_counts(void **state)
{
    (void)state;
    fill();
    json_t *answer = ASK(port, 200, "GET", "/warpwave/collections/docs/fields", NULL), *fields = body_value(answer, "fields");
    static const struct {
        const char *key, *type;
        int rows;
    } EXPECTED[] = {{"n", "number", 30}, {"tag", "text", 1}, {"author", "object", 29}, {"author.name", "text", 29}};
    assert_int_equal(json_array_size(fields), 4);
    for (size_t i = 0; i < 4; i++) {
        json_t *field = json_array_get(fields, i);
        assert_string_equal(json_string_value(json_object_get(field, "key")), EXPECTED[i].key);
        assert_int_equal(json_integer_value(json_object_get(field, "rows")), EXPECTED[i].rows);
        assert_string_equal(json_string_value(json_array_get(json_object_get(field, "types"), 0)), EXPECTED[i].type);
    }
    json_decref(answer);
}

static void a_query_reports_its_cost_on_request(void **state)
{
    (void)state;
    fill();
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/query",
                         "{\"query\": [1, 20], \"limit\": 3, \"with_cost\": true, \"params\": {\"exact\": true}}");
    json_t *cost = json_object_get(answer, "cost");
    const int64_t rows =
        json_integer_value(json_object_get(cost, "rows_screened")) + json_integer_value(json_object_get(cost, "rows_scored"));
    assert_true(rows >= 30);
    assert_true(json_integer_value(json_object_get(cost, "bytes")) >= 30 * 2);
    assert_true(json_is_true(json_object_get(cost, "exact")));
    assert_int_equal(json_integer_value(json_object_get(cost, "proven")), 3);
    assert_string_equal(json_string_value(json_object_get(cost, "device")), "cpu");
    json_decref(answer);
    answer = ASK(port, 200, "POST", "/collections/docs/points/query", "{\"query\": [1, 20], \"limit\": 3}");
    assert_null(json_object_get(answer, "cost"));
    json_decref(answer);
    ASK_STATUS(port, 400, "POST", "/collections/docs/points/query", "{\"query\": [1, 2], \"params\": {\"nprobe\": \"a\"}}");
}

/* ---- an index ------------------------------------------------------------------------------------------------------------ */

/* A store with a collection of 4,000 rows around 40 places, which has an index. */
static void with_index(server_config *config)
{
    enum { ROWS = 4000, DIM = 4 };
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    ww_collection_config described = ww_collection_config_default();
    described.name = "docs";
    described.dim = DIM;
    described.metric = WW_L2;
    float *vectors = calloc((size_t)ROWS * DIM, sizeof *vectors);
    char(*ids)[16] = calloc(ROWS, sizeof *ids);
    const char **texts = calloc(ROWS, sizeof *texts);
    assert_true(vectors && ids && texts);
    for (int i = 0; i < ROWS; i++) {
        snprintf(ids[i], sizeof ids[i], "%d", i);
        texts[i] = ids[i];
        for (int d = 0; d < DIM; d++)
            vectors[i * DIM + d] = (float)(100 * (i % 40 * (d + 3) % 17)) + (float)(i * (d + 7) % 13) * 0.01f;
    }
    ww_rows rows = ww_rows_default();
    rows.count = ROWS;
    rows.dim = DIM;
    rows.vectors = vectors;
    rows.ids = texts;
    CHECK_OK(ww_store_open(config->store, config->device, NULL, &store));
    CHECK_OK(ww_store_create(store, &described, &collection));
    CHECK_OK(ww_collection_add(collection, &rows));
    CHECK_OK(ww_collection_build_ivf(collection, NULL));
    ww_collection_destroy(collection);
    ww_store_close(store);
    free(vectors);
    free(ids);
    free(texts);
}

static void a_query_by_lists_says_how_many_hits_are_proven(void **state)
{
    (void)state;
    server *s = server_for_test(with_index);
    json_t *answer = ASK(server_port(s), 200, "GET", "/warpwave/overview", NULL);
    json_t *index = json_object_get(json_array_get(body_value(answer, "collections"), 0), "index");
    assert_true(json_integer_value(json_object_get(index, "lists")) > 1);
    assert_true(json_integer_value(json_object_get(index, "rows_largest")) > 0);
    json_decref(answer);
    answer = ASK(server_port(s), 200, "POST", "/collections/docs/points/query",
                 "{\"query\": [300.01, 400, 500, 600], \"limit\": 10, \"with_cost\": true, \"params\": {\"nprobe\": 2}}");
    json_t *cost = json_object_get(answer, "cost");
    assert_true(json_is_false(json_object_get(cost, "exact")));
    assert_true(json_integer_value(json_object_get(cost, "lists_read")) >= 2);
    assert_true(json_integer_value(json_object_get(cost, "bytes")) > 0);
    assert_true(json_integer_value(json_object_get(cost, "bytes")) < 4000 * 4);
    assert_in_range(json_integer_value(json_object_get(cost, "proven")), 0, 10);
    json_decref(answer);
    answer = ASK(server_port(s), 200, "POST", "/collections/docs/points/query",
                 "{\"query\": [300.01, 400, 500, 600], \"with_cost\": true, \"params\": {\"nprobe\": 2, \"exact\": true}}");
    cost = json_object_get(answer, "cost");
    assert_true(json_is_true(json_object_get(cost, "exact")));
    assert_int_equal(json_integer_value(json_object_get(cost, "proven")), 10);
    json_decref(answer);
    server_test_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(browsers_get_the_page_and_other_clients_the_version, begin, end),
        cmocka_unit_test_setup_teardown(every_file_has_the_headers_that_keep_it_safe, begin, end),
        cmocka_unit_test_setup_teardown(the_files_are_small_and_name_no_other_origin, begin, end),
        cmocka_unit_test_setup_teardown(files_need_no_key_and_data_does, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(the_overview_has_every_collection_and_its_figures, begin, end),
        cmocka_unit_test_setup_teardown(rows_come_in_pages_with_ids_and_handles_as_texts, begin, end),
        cmocka_unit_test_setup_teardown(large_payloads_are_cut_between_characters, begin, end),
        cmocka_unit_test_setup_teardown(rows_are_changed_and_deleted_by_ids_of_any_kind, begin, end),
        cmocka_unit_test_setup_teardown(the_fields_of_payloads_have_types_and_counts, begin, end),
        cmocka_unit_test_setup_teardown(a_query_by_lists_says_how_many_hits_are_proven, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_query_reports_its_cost_on_request, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
