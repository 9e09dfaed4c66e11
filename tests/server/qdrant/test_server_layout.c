/* Points without a vector, collections without vectors, and vectors with names beside one without. */
#include <string.h>
#include <unistd.h>

#include <warpwave/store.h>

#include "server/client.h"

static server *running;
static int port;

#define DOCS "/collections/docs"

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(NULL);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", DOCS, "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", DOCS "/points",
               "{\"points\": [{\"id\": 1, \"vector\": [1, 0], \"payload\": {\"n\": 1}},"
               " {\"id\": 2, \"vector\": [0, 1], \"payload\": {\"n\": 2}}]}");
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

static void restart(void)
{
    server_test_end(running);
    running = server_for_test(NULL);
    port = server_port(running);
}

/* The ids of an answer's points in one text, "1 3". */
static const char *ids_of(const char *path, const char *body)
{
    static char text[128];
    json_t *answer = ASK(port, 200, "POST", path, body), *list = json_object_get(answer, "result");
    list = json_object_get(list, "points") ? json_object_get(list, "points") : list;
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(list); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i > 0 ? " " : "",
                 (long long)json_integer_value(json_object_get(json_array_get(list, i), "id")));
    json_decref(answer);
    return text;
}

/* The points of a collection. */
static long long count_of(const char *filter)
{
    char body[256];
    snprintf(body, sizeof body, "{\"filter\": {%s}}", filter);
    json_t *answer = ASK(port, 200, "POST", DOCS "/points/count", body);
    const long long count = json_integer_value(json_object_get(json_object_get(answer, "result"), "count"));
    json_decref(answer);
    return count;
}

/* Compares the vector of a point, or another member of it, with JSON. */
static void check_point(const char *collection, int id, const char *member, const char *expected)
{
    char path[64];
    snprintf(path, sizeof path, "%s/points/%d", collection, id);
    json_t *answer = ASK(port, 200, "GET", path, NULL), *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
    const json_t *value = json_object_get(json_object_get(answer, "result"), member);
    if (!wanted || !json_equal(value, wanted))
        fail_msg("%s of %d is %s, not %s", member, id, json_dumps(value, JSON_ENCODE_ANY), expected);
    json_decref(wanted);
    json_decref(answer);
}

static void check_config(const char *collection, const char *expected)
{
    json_t *answer = ASK(port, 200, "GET", collection, NULL), *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
    const json_t *config = json_object_get(json_object_get(answer, "result"), "config");
    const json_t *vectors = json_object_get(json_object_get(config, "params"), "vectors");
    if (!wanted || !json_equal(vectors, wanted))
        fail_msg("the vectors are %s, not %s", json_dumps(vectors, JSON_ENCODE_ANY), expected);
    json_decref(wanted);
    json_decref(answer);
}

#define HAS_VECTOR "\"must\": [{\"has_vector\": \"\"}]"

static void check_mixed(void)
{
    assert_int_equal(count_of(""), 4);
    assert_int_equal(count_of(HAS_VECTOR), 3);
    assert_int_equal(count_of("\"must\": [{\"key\": \"n\", \"range\": {\"gte\": 2}}]"), 3);
    assert_string_equal(ids_of(DOCS "/points/scroll", "{}"), "1 2 3 4");
    assert_string_equal(ids_of(DOCS "/points/query", "{\"query\": [2, 1]}"), "4 1 2");
    assert_string_equal(ids_of(DOCS "/points/query", "{\"query\": [2, 1], \"filter\": {\"must\": [{\"has_id\": [2, 3]}]}}"),
                        "2");
    assert_string_equal(ids_of(DOCS "/points/query", "{\"query\": 1}"), "4 2");
    check_point(DOCS, 1, "vector", "[1.0, 0.0]");
    check_point(DOCS, 3, "vector", "{}");
    check_point(DOCS, 3, "payload", "{\"n\": 3}");
    check_config(DOCS, "{\"size\": 2, \"distance\": \"Dot\"}");
}

static void a_point_may_lack_its_vector(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", DOCS "/points",
               "{\"points\": [{\"id\": 3, \"vector\": {}, \"payload\": {\"n\": 3}},"
               " {\"id\": 4, \"vector\": [1, 1], \"payload\": {\"n\": 4}}]}");
    check_mixed();
    restart();
    check_mixed();
}

static void a_point_gets_its_vector_and_loses_it(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", DOCS "/points", "{\"points\": [{\"id\": 3, \"vector\": {}, \"payload\": {\"n\": 3}}]}");
    ASK_STATUS(port, 200, "PUT", DOCS "/points/vectors", "{\"points\": [{\"id\": 3, \"vector\": [5, 5]}]}");
    assert_string_equal(ids_of(DOCS "/points/query", "{\"query\": [1, 1], \"limit\": 1}"), "3");
    check_point(DOCS, 3, "payload", "{\"n\": 3}");
    ASK_STATUS(port, 200, "POST", DOCS "/points/payload", "{\"payload\": {\"m\": 1}, \"points\": [3]}");
    assert_string_equal(ids_of(DOCS "/points/query", "{\"query\": [1, 1], \"filter\": {\"must\": [{\"key\": \"m\", \"match\": "
                                                     "{\"value\": 1}}]}}"),
                        "3");
    ASK_STATUS(port, 200, "POST", DOCS "/points/vectors/delete", "{\"vector\": [\"\"], \"points\": [3]}");
    assert_string_equal(ids_of(DOCS "/points/query", "{\"query\": [1, 1]}"), "1 2");
    assert_int_equal(count_of(""), 3);
    ASK_STATUS(port, 200, "POST", DOCS "/points/delete", "{\"points\": [1, 3]}");
    assert_string_equal(ids_of(DOCS "/points/query", "{\"query\": [1, 1]}"), "2");
    assert_int_equal(count_of(""), 1);
}

/* What other programs see of the collection: its points with vectors. */
static void other_programs_see_the_points_with_vectors(void **state)
{
    (void)state;
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    ASK_STATUS(port, 200, "PUT", DOCS "/points",
               "{\"points\": [{\"id\": 3, \"vector\": {}}, {\"id\": 4, \"vector\": [1, 1]}]}");
    server_test_end(running);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("served.db"), device, NULL, &store));
    CHECK_OK(ww_store_collection(store, "docs", &collection));
    assert_int_equal(ww_collection_count(collection), 3);
    ww_collection_destroy(collection);
    ww_store_close(store);
    ww_device_close(device);
    running = server_for_test(NULL);
    port = server_port(running);
}

/* Waits until a server knows a vector: it looks once a second. */
static void wait_for_vector(int at, const char *name)
{
    char body[64];
    http_answer a = {0};
    snprintf(body, sizeof body, "{\"query\": [1], \"using\": \"%s\"}", name);
    for (int i = 0; i < 1000 && a.status != 200; i++) {
        http_free(&a);
        usleep(10000);
        a = http_ask(at, "POST", "/collections/later/points/query", body);
    }
    assert_int_equal(a.status, 200);
    http_free(&a);
}

/* Two servers have the file open when one of them splits the collection. */
static void another_server_notices_it(void **state)
{
    (void)state;
    ww_device *device = NULL;
    server *other = NULL;
    server_config config = server_config_default();
    CHECK_OK(ww_device_open("cpu", &device));
    config.store = scratch_path("served.db");
    config.device = device;
    config.port = 0;
    CHECK_OK(server_start(&config, &other));
    const int first = port, second = server_port(other);
    port = second;
    assert_int_equal(count_of(""), 2);
    port = first;
    ASK_STATUS(port, 200, "PUT", DOCS "/points", "{\"points\": [{\"id\": 3, \"vector\": {}}]}");
    port = second;
    ASK_STATUS(port, 200, "PUT", DOCS "/points", "{\"points\": [{\"id\": 4, \"vector\": [1, 1]}]}");
    assert_int_equal(count_of(""), 4);
    port = first;
    assert_int_equal(count_of(""), 4);
    ASK_STATUS(port, 200, "PUT", "/collections/later", "{\"vectors\": {\"size\": 1, \"distance\": \"Dot\"}}");
    ASK_STATUS(second, 200, "POST", "/collections/later/points/count", "{}");
    ASK_STATUS(port, 200, "PUT", "/collections/later/vectors/b", "{\"size\": 1, \"distance\": \"Dot\"}");
    wait_for_vector(second, "b");
    ASK_STATUS(port, 200, "PUT", "/collections/later/vectors/c", "{\"size\": 1, \"distance\": \"Dot\"}");
    wait_for_vector(second, "c");
    server_stop(other);
    ww_device_close(device);
}

static void a_dropped_collection_leaves_nothing_behind(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", DOCS "/points", "{\"points\": [{\"id\": 3, \"vector\": {}}]}");
    ASK_STATUS(port, 200, "DELETE", DOCS, NULL);
    ASK_STATUS(port, 404, "POST", DOCS "/points/count", "{}");
    ASK_STATUS(port, 200, "PUT", DOCS, "{\"vectors\": {\"size\": 1, \"distance\": \"Dot\"}}");
    assert_int_equal(count_of(""), 0);
    ASK_STATUS(port, 200, "PUT", DOCS "/points", "{\"points\": [{\"id\": 9, \"vector\": [1]}]}");
    assert_string_equal(ids_of(DOCS "/points/query", "{\"query\": [1]}"), "9");
}

#define BARE "/collections/bare"

static void a_collection_may_have_no_vectors(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", BARE, "{}");
    ASK_STATUS(port, 200, "PUT", BARE "/points", "{\"points\": [{\"id\": 1, \"vector\": {}, \"payload\": {\"n\": 1}}]}");
    check_config(BARE, "{}");
    check_point(BARE, 1, "payload", "{\"n\": 1}");
    check_point(BARE, 1, "vector", "{}");
    ASK_STATUS(port, 400, "POST", BARE "/points/query", "{\"query\": [1]}");
    ASK_STATUS(port, 400, "PUT", BARE "/points", "{\"points\": [{\"id\": 2, \"vector\": [1]}]}");
    assert_string_equal(ids_of(BARE "/points/query", "{}"), "1");
    restart();
    check_config(BARE, "{}");
    ASK_STATUS(port, 200, "PUT", BARE "/vectors/a", "{\"size\": 1, \"distance\": \"Dot\"}");
    ASK_STATUS(port, 200, "PUT", BARE "/points/vectors", "{\"points\": [{\"id\": 1, \"vector\": {\"a\": [2]}}]}");
    assert_string_equal(ids_of(BARE "/points/query", "{\"query\": [1], \"using\": \"a\"}"), "1");
    ASK_STATUS(port, 200, "DELETE", BARE "/vectors/a", NULL);
    check_config(BARE, "{}");
    check_point(BARE, 1, "payload", "{\"n\": 1}");
}

static void a_vector_with_a_name_joins_one_without(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", DOCS "/vectors/b", "{\"size\": 1, \"distance\": \"Dot\", \"on_disk\": true}");
    ASK_STATUS(port, 409, "PUT", DOCS "/vectors/b", "{\"size\": 1, \"distance\": \"Dot\"}");
    check_config(
        DOCS, "{\"\": {\"size\": 2, \"distance\": \"Dot\"}, \"b\": {\"size\": 1, \"distance\": \"Dot\", \"on_disk\": true}}");
    ASK_STATUS(port, 200, "PUT", DOCS "/points",
               "{\"points\": [{\"id\": 3, \"vector\": {\"\": [3, 3], \"b\": [4]}}, {\"id\": 4, \"vector\": {\"b\": [5]}},"
               " {\"id\": 5, \"vector\": [6, 6]}]}");
    assert_string_equal(ids_of(DOCS "/points/query", "{\"query\": [1, 1]}"), "5 3 1 2");
    assert_string_equal(ids_of(DOCS "/points/query", "{\"query\": [1], \"using\": \"b\"}"), "4 3");
    check_point(DOCS, 3, "vector", "{\"\": [3.0, 3.0], \"b\": [4.0]}");
    check_point(DOCS, 5, "vector", "{\"\": [6.0, 6.0]}");
    ASK_STATUS(port, 200, "DELETE", DOCS "/vectors/b", NULL);
    check_point(DOCS, 4, "vector", "{}");
    check_config(DOCS, "{\"size\": 2, \"distance\": \"Dot\"}");
    ASK_STATUS(port, 200, "PUT", "/collections/both",
               "{\"vectors\": {\"a\": {\"size\": 1, \"distance\": \"Dot\"}, \"\": {\"size\": 2, \"distance\": \"Cosine\"}}}");
    check_config("/collections/both",
                 "{\"\": {\"size\": 2, \"distance\": \"Cosine\"}, \"a\": {\"size\": 1, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/both/points",
               "{\"points\": [{\"id\": 1, \"vector\": {\"\": [1, 0], \"a\": [1]}}]}");
    assert_string_equal(ids_of("/collections/both/points/query", "{\"query\": [1, 0]}"), "1");
}

static void wrong_vectors_are_refused(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"points\": [{\"id\": 9}]}",
        "{\"points\": [{\"id\": 9, \"vector\": null}]}",
        "{\"points\": [{\"id\": 9, \"vector\": {\"b\": [1, 2]}}]}",
        "{\"points\": [{\"id\": 9, \"vector\": {}}, {\"id\": 8, \"vector\": [1, 2, 3]}]}",
        "{\"points\": [{\"id\": 9, \"vector\": [1, 2, 3]}, {\"id\": 8, \"vector\": {}}]}",
    };
    ASK_STATUS(port, 400, "PUT", DOCS "/points/vectors", "{\"points\": [{\"id\": 1, \"vector\": {}}]}");
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        ASK_STATUS(port, 400, "PUT", DOCS "/points", bodies[i]);
    assert_int_equal(count_of(""), 2);
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(a_point_may_lack_its_vector),
        SERVED(a_point_gets_its_vector_and_loses_it),
        SERVED(other_programs_see_the_points_with_vectors),
        SERVED(another_server_notices_it),
        SERVED(a_dropped_collection_leaves_nothing_behind),
        SERVED(a_collection_may_have_no_vectors),
        SERVED(a_vector_with_a_name_joins_one_without),
        SERVED(wrong_vectors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
