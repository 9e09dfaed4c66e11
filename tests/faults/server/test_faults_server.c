/* Requests while allocations fail in turn: each request gets an answer, and the server continues. */
#include <string.h>
#include <unistd.h>

#include "server/client.h"
#include "support/memory.h"
#include "support/models/tiny.h"

enum { FAILURES = 60 };

static server *running;
static int port;

static void with_encoder(server_config *config)
{
    static char path[SCRATCH_PATH_BYTES];
    snprintf(path, sizeof path, "%s", scratch_path("encoder.gguf"));
    tiny_write_words("bert", path);
    config->model_names[0] = "encoder";
    config->model_paths[0] = path;
    config->model_count = 1;
}

/* A collection whose texts have prefixes. */
static void add_texts(void)
{
    ww_device *device = NULL;
    ww_model *encoder = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_model_open(scratch_path("encoder.gguf"), device, NULL, &encoder));
    ASK_STATUS(port, 200, "PUT", "/collections/texts", "{\"vectors\": {\"size\": 64, \"distance\": \"Dot\"}}");
    server_keep_prefixes("texts", encoder, "fox ", "dogs ");
    ww_model_close(encoder);
    ww_device_close(device);
}

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(with_encoder);
    port = server_port(running);
    add_texts();
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    ASK_STATUS(
        port, 200, "PUT", "/collections/docs/points",
        "{\"points\": [{\"id\": 1, \"vector\": [1, 2], \"payload\": {\"a\": [1, 2]}}, {\"id\": 2, \"vector\": [2, 1]}]}");
    ASK_STATUS(port, 200, "PUT", "/collections/lone", "{\"vectors\": {\"size\": 1, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/lone/points", "{\"points\": [{\"id\": 1, \"vector\": [1]}]}");
    ASK_STATUS(port, 200, "PUT", "/collections/pair",
               "{\"vectors\": {\"a\": {\"size\": 2, \"distance\": \"Dot\"}, \"b\": {\"size\": 1, \"distance\": \"Dot\"}}}");
    ASK_STATUS(port, 200, "PUT", "/collections/pair/points",
               "{\"points\": [{\"id\": 1, \"vector\": {\"a\": [1, 2], \"b\": [3]}}]}");
    return 0;
}

static int end(void **state)
{
    fail_allocation_at(0);
    server_test_end(running);
    return scratch_teardown(state);
}

static const struct {
    const char *method, *path, *body;
} requests[] = {
    {"PUT", "/collections/docs/points", "{\"points\": [{\"id\": 1, \"vector\": [1, 2], \"payload\": {\"a\": [1, 2]}}]}"},
    {"POST", "/collections/docs/points/query",
     "{\"query\": [1, 2], \"with_payload\": [\"a\"], \"with_vector\": true, \"filter\": {\"must\": [{\"key\": \"a\", "
     "\"match\": {\"value\": 1}}]}}"},
    {"POST", "/collections/docs/points/query",
     "{\"prefetch\": [{\"query\": [1, 2]}, {\"query\": 2}], \"query\": {\"fusion\": \"rrf\"}}"},
    {"POST", "/collections/docs/points/query/groups", "{\"query\": [1, 2], \"group_by\": \"a\"}"},
    {"POST", "/collections/docs/points/scroll", "{\"order_by\": \"a\"}"},
    {"POST", "/collections/docs/points/scroll", "{\"limit\": 1}"},
    {"POST", "/collections/docs/points", "{\"ids\": [2, 1]}"},
    {"PUT", "/collections/texts/points", "{\"points\": [{\"id\": 1, \"vector\": {\"text\": \"a fox\"}}]}"},
    {"POST", "/collections/texts/points/query", "{\"query\": {\"text\": \"dogs\"}}"},
    {"POST", "/collections/docs/points/payload", "{\"payload\": {\"b\": 1}, \"points\": [1]}"},
    {"POST", "/collections/docs/facet", "{\"key\": \"a\"}"},
    {"GET", "/collections/docs", NULL},
    {"PUT", "/collections/docs/index", "{\"field_name\": \"a\", \"field_schema\": \"integer\"}"},
    {"GET", "/openapi.json", NULL},
    {"GET", "/ui/app.js", NULL},
    {"GET", "/warpwave/overview", NULL},
    {"POST", "/warpwave/backup", NULL},
    {"POST", "/collections/docs/snapshots", NULL},
    {"GET", "/collections/docs/snapshots", NULL},
    {"GET", "/warpwave/collections/docs/fields", NULL},
    {"POST", "/warpwave/collections/docs/rows", "{\"filter\": {\"must\": [{\"key\": \"a\", \"match\": {\"value\": 1}}]}}"},
    {"POST", "/warpwave/collections/docs/rows", "{\"ids\": [\"1\", \"3\"], \"with_vector\": true}"},
    {"POST", "/warpwave/collections/docs/rows", "{\"handles\": [\"1\", \"3\"]}"},
    {"PUT", "/warpwave/collections/docs/rows", "{\"id\": \"2\", \"payload\": {\"a\": 1}}"},
    {"POST", "/warpwave/collections/docs/map", NULL},
    {"GET", "/warpwave/collections/docs/map", NULL},
    {"GET", "/warpwave/collections/docs/map/points", NULL},
    {"POST", "/warpwave/collections/docs/map/colours", "{\"key\": \"a\", \"generation\": 1}"},
    {"POST", "/warpwave/collections/pair/rows", "{\"ids\": [\"1\"], \"with_vector\": true}"},
    {"POST", "/warpwave/collections/pair/map?using=a", NULL},
    {"GET", "/warpwave/collections/pair/map/points?using=a", NULL},
    {"POST", "/warpwave/collections/docs/rows/delete", "{\"ids\": [\"9\"]}"},
    {"PUT", "/collections/none", "{}"},
    {"PUT", "/collections/lone/points", "{\"points\": [{\"id\": 2, \"vector\": [2]}, {\"id\": 3, \"vector\": {}}]}"},
    {"PUT", "/collections/lone/points", "{\"points\": [{\"id\": 2, \"vector\": [2]}]}"},
    {"PUT", "/collections/lone/vectors/c", "{\"size\": 1, \"distance\": \"Dot\", \"on_disk\": true}"},
    {"GET", "/collections/lone", NULL},
    {"PUT", "/collections/lone/vectors/m", "{\"size\": 1, \"distance\": \"Manhattan\"}"},
    {"PUT", "/collections/lone/points",
     "{\"points\": [{\"id\": 2, \"vector\": {\"m\": [2]}}, {\"id\": 3, \"vector\": {\"m\": [1]}}]}"},
    {"POST", "/collections/lone/points/query", "{\"query\": [1], \"using\": \"m\"}"},
    {"POST", "/collections/lone/points/query",
     "{\"query\": {\"context\": [{\"positive\": 2, \"negative\": [0]}]}, \"using\": \"m\"}"},
    {"POST", "/collections/lone/points/search/matrix/pairs", "{\"using\": \"m\"}"},
    {"PATCH", "/collections/lone", "{\"strict_mode_config\": {\"enabled\": true, \"max_points_count\": 3}}"},
    {"PUT", "/collections/lone/points", "{\"points\": [{\"id\": 3, \"vector\": [2]}, {\"id\": 2, \"vector\": [2]}]}"},
};

static void every_request_is_answered_whichever_allocation_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        for (int n = 1; n <= FAILURES; n++) {
            fail_allocation_at(n);
            http_answer a = http_ask(port, requests[i].method, requests[i].path, requests[i].body);
            fail_allocation_at(0);
            /* 0: there was no memory for the request itself, and the connection was closed */
            if (a.status != 0 && a.status != 200 && a.status != 507 && a.status != 404 && a.status != 409 && a.status != 500)
                fail_msg("%s %s, allocation %d: status %d: %s", requests[i].method, requests[i].path, n, a.status, a.body);
            http_free(&a);
        }
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/count", "{}");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "result"), "count")), 2);
    json_decref(answer);
}

/* Without memory for compressing it, an answer is sent as it is. */
static void an_answer_that_cannot_be_compressed_is_sent_nevertheless(void **state)
{
    (void)state;
    int packed = 0, plain = 0;
    for (int n = 1; n <= FAILURES; n++) {
        static const char asked[] = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                    "Accept-Encoding: gzip\r\n\r\n";
        const int connection = http_connect(port);
        fail_allocation_at(n);
        http_send(connection, asked, sizeof asked - 1);
        http_answer a = http_receive(connection);
        fail_allocation_at(0);
        close(connection);
        if (a.status != 0 && a.status != 200 && a.status != 507)
            fail_msg("allocation %d: status %d", n, a.status);
        packed += a.status == 200 && strstr(a.head, "content-encoding: gzip");
        plain += a.status == 200 && !strstr(a.head, "content-encoding");
        http_free(&a);
    }
    assert_true(packed > 0 && plain > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_answer_that_cannot_be_compressed_is_sent_nevertheless, begin, end),
        cmocka_unit_test_setup_teardown(every_request_is_answered_whichever_allocation_fails, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
