/* Qdrant's API over HTTP: requests are answered with the same bits as calls in the process, also under load. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <warpwave/store.h>

#include "server/client.h"

enum { DIM = 8, POINTS = 64 };

static server *running;
static int port;

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(NULL);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 8, \"distance\": \"Dot\"}}");
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

/* Number i of a vector, the same in requests and in the process. */
static float number_of(int point, int i)
{
    return (float)((point * 7 + i * 13) % 31) * 0.0625f - 0.9f;
}

static void write_vector(char *text, size_t capacity, int point)
{
    size_t length = (size_t)snprintf(text, capacity, "[");
    for (int i = 0; i < DIM; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%.9g", i > 0 ? "," : "", (double)number_of(point, i));
    snprintf(text + length, capacity - length, "]");
}

static void add_points(void)
{
    static char body[POINTS * 400];
    size_t length = (size_t)snprintf(body, sizeof body, "{\"points\": [");
    for (int point = 0; point < POINTS; point++) {
        char vector[256];
        write_vector(vector, sizeof vector, point);
        length += (size_t)snprintf(
            body + length, sizeof body - length,
            "%s{\"id\": %d, \"vector\": %s, \"payload\": {\"n\": %d, \"tag\": \"%s\", \"list\": [{\"a\": %d}]}}",
            point > 0 ? "," : "", point, vector, point, point % 2 ? "odd" : "even", point % 3);
    }
    snprintf(body + length, sizeof body - length, "]}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points?wait=true", body);
}

static long long count_of(const char *filter)
{
    char body[512];
    snprintf(body, sizeof body, "{\"filter\": %s}", filter);
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/count", body);
    const long long count = json_integer_value(json_object_get(json_object_get(answer, "result"), "count"));
    json_decref(answer);
    return count;
}

static void collections_are_made_described_listed_and_dropped(void **state)
{
    (void)state;
    json_t *answer = ASK(port, 200, "GET", "/collections/docs", NULL);
    json_t *vectors =
        json_object_get(json_object_get(json_object_get(json_object_get(answer, "result"), "config"), "params"), "vectors");
    assert_int_equal(json_integer_value(json_object_get(vectors, "size")), 8);
    assert_string_equal(json_string_value(json_object_get(vectors, "distance")), "Dot");
    json_decref(answer);
    ASK_STATUS(port, 409, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 8, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 400, "PUT", "/collections/other", "{\"vectors\": {\"size\": 8, \"distance\": \"Hamming\"}}");
    ASK_STATUS(port, 400, "PUT", "/collections/other", "{\"vectors\": {\"size\": 0, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 404, "GET", "/collections/other", NULL);
    ASK_STATUS(port, 200, "POST", "/collections/aliases",
               "{\"actions\": [{\"create_alias\": {\"collection_name\": \"docs\", \"alias_name\": \"papers\"}}]}");
    ASK_STATUS(port, 200, "POST", "/collections/aliases", /* it stays */
               "{\"actions\": [{\"rename_alias\": {\"old_alias_name\": \"papers\", \"new_alias_name\": \"papers\"}}]}");
    ASK_STATUS(port, 200, "POST", "/collections/papers/points/count", "{}");
    ASK_STATUS(port, 200, "DELETE", "/collections/docs", NULL);
    ASK_STATUS(port, 404, "POST", "/collections/papers/points/count", "{}");
    ASK_STATUS(port, 404, "POST", "/collections/docs/points/count", "{}");
}

static void filters_admit_the_rows_that_qdrant_admits(void **state)
{
    (void)state;
    add_points();
    assert_int_equal(count_of("{}"), POINTS);
    assert_int_equal(count_of("{\"must\": [{\"key\": \"n\", \"range\": {\"gte\": 10, \"lt\": 20}}]}"), 10);
    assert_int_equal(count_of("{\"must_not\": [{\"key\": \"tag\", \"match\": {\"value\": \"odd\"}}]}"), POINTS / 2);
    assert_int_equal(count_of("{\"must\": [{\"has_id\": [1, 2, 3, 999]}]}"), 3);
    assert_int_equal(count_of("{\"should\": [{\"has_id\": [1]}, {\"key\": \"n\", \"match\": {\"any\": [5, 6]}}]}"), 3);
    assert_int_equal(
        count_of("{\"must\": [{\"nested\": {\"key\": \"list\", \"filter\": {\"must\": [{\"key\": \"a\", \"match\": "
                 "{\"value\": 1}}]}}}]}"),
        21);
    assert_int_equal(count_of("{\"min_should\": {\"min_count\": 2, \"conditions\": [{\"key\": \"n\", \"range\": {\"lt\": 4}}, "
                              "{\"key\": \"tag\", \"match\": {\"value\": \"even\"}}]}}"),
                     2);
    json_t *answer =
        ASK(port, 400, "POST", "/collections/docs/points/count", "{\"filter\": {\"must\": [{\"key\": \"n\", \"rnge\": {}}]}}");
    const char *message = json_string_value(json_object_get(json_object_get(answer, "status"), "error"));
    assert_non_null(strstr(message, "must.0"));
    json_decref(answer);
}

static void ids_above_2_to_the_53_and_uuids_are_returned_unchanged(void **state)
{
    (void)state;
    static const char vector[] = "[1,0,0,0,0,0,0,0]";
    char body[512];
    snprintf(body, sizeof body,
             "{\"points\": [{\"id\": 18446744073709551615, \"vector\": %s}, {\"id\": \"936DA01F9ABD4D9D80C702AF85C822A8\", "
             "\"vector\": %s}]}",
             vector, vector);
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", body);
    http_answer a = http_ask(port, "POST", "/collections/docs/points/scroll", "{}");
    assert_non_null(strstr(a.body, "{\"id\":18446744073709551615,"));
    assert_non_null(strstr(a.body, "{\"id\":\"936da01f-9abd-4d9d-80c7-02af85c822a8\","));
    http_free(&a);
    ASK_STATUS(port, 200, "GET", "/collections/docs/points/936da01f-9abd-4d9d-80c7-02af85c822a8", NULL);
    ASK_STATUS(port, 400, "PUT", "/collections/docs/points",
               "{\"points\": [{\"id\": 18446744073709551616, \"vector\": [1,0,0,0,0,0,0,0]}]}");
    ASK_STATUS(port, 400, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": -1, \"vector\": [1,0,0,0,0,0,0,0]}]}");
    ASK_STATUS(port, 400, "PUT", "/collections/docs/points",
               "{\"points\": [{\"id\": \"seven\", \"vector\": [1,0,0,0,0,0,0,0]}]}");
}

/* The answer's scores and ids are those of the library, read back to the bit. */
static void check_hits(json_t *points, const ww_results *expected, int64_t query)
{
    assert_int_equal(json_array_size(points), ww_results_count(expected, query));
    for (int64_t i = 0; i < ww_results_count(expected, query); i++) {
        json_t *hit = json_array_get(points, (size_t)i);
        char id[24];
        snprintf(id, sizeof id, "%lld", json_integer_value(json_object_get(hit, "id")));
        assert_string_equal(id, ww_results_id(expected, query, i));
        const float score = (float)json_number_value(json_object_get(hit, "score"));
        assert_memory_equal(&score, ww_results_scores(expected, query) + i, sizeof score);
    }
}

typedef struct asker {
    int first;
    const ww_results *expected;
} asker;

static void *ask_queries(void *user)
{
    const asker *a = user;
    for (int point = a->first; point < POINTS; point += 4) {
        char vector[256], body[400];
        write_vector(vector, sizeof vector, point);
        snprintf(body, sizeof body, "{\"query\": %s, \"limit\": 5}", vector);
        json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/query", body);
        check_hits(json_object_get(json_object_get(answer, "result"), "points"), a->expected, point);
        json_decref(answer);
    }
    return NULL;
}

static void queries_of_four_clients_at_once_have_the_bits_of_calls_in_the_process(void **state)
{
    (void)state;
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    ww_results *expected = NULL;
    float vectors[POINTS][DIM];
    pthread_t threads[4];
    asker askers[4];
    add_points();
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("served.db"), device, NULL, &store));
    CHECK_OK(ww_store_collection(store, "docs", &collection));
    for (int point = 0; point < POINTS; point++)
        for (int i = 0; i < DIM; i++)
            vectors[point][i] = number_of(point, i);
    ww_query query = ww_query_default();
    query.queries = vectors[0];
    query.query_count = POINTS;
    query.dim = DIM;
    query.k = 5;
    query.fetch = WW_FETCH_IDS;
    CHECK_OK(ww_collection_query(collection, &query, &expected));
    for (int i = 0; i < 4; i++) {
        askers[i] = (asker){i, expected};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_queries, &askers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ww_results_destroy(expected);
    ww_collection_destroy(collection);
    ww_store_close(store);
    ww_device_close(device);
}

static void payloads_are_set_overwritten_and_cleared(void **state)
{
    (void)state;
    add_points();
    ASK_STATUS(port, 200, "POST", "/collections/docs/points/payload",
               "{\"payload\": {\"tag\": \"set\", \"new\": {\"a\": 1}}, \"points\": [1, 2]}");
    assert_int_equal(
        count_of(
            "{\"must\": [{\"key\": \"tag\", \"match\": {\"value\": \"set\"}}, {\"key\": \"n\", \"range\": {\"gte\": 0}}]}"),
        2);
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points/payload", "{\"payload\": {\"only\": 1}, \"points\": [1]}");
    assert_int_equal(count_of("{\"must\": [{\"is_empty\": {\"key\": \"n\"}}]}"), 1);
    ASK_STATUS(port, 200, "POST", "/collections/docs/points/payload/delete", "{\"keys\": [\"n\", \"new.a\"], \"points\": [2]}");
    assert_int_equal(count_of("{\"must\": [{\"is_empty\": {\"key\": \"n\"}}]}"), 2);
    ASK_STATUS(port, 200, "POST", "/collections/docs/points/payload/clear",
               "{\"filter\": {\"must\": [{\"key\": \"n\", \"range\": {\"gt\": 60}}]}}");
    assert_int_equal(count_of("{\"must\": [{\"is_empty\": {\"key\": \"n\"}}]}"), 5);
    ASK_STATUS(port, 404, "POST", "/collections/docs/points/payload", "{\"payload\": {}, \"points\": [100000]}");
    ASK_STATUS(port, 200, "POST", "/collections/docs/points/delete", "{\"points\": [1, 2, 100000]}");
    assert_int_equal(count_of("{}"), POINTS - 2);
}

static void a_scroll_visits_every_point_once(void **state)
{
    (void)state;
    long long offset = 0;
    int visited = 0;
    add_points();
    for (bool more = true; more;) {
        char body[64];
        snprintf(body, sizeof body, "{\"limit\": 10, \"offset\": %lld}", offset);
        json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/scroll", body);
        json_t *result = json_object_get(answer, "result"), *next = json_object_get(result, "next_page_offset");
        json_t *points = json_object_get(result, "points");
        for (size_t i = 0; i < json_array_size(points); i++, visited++)
            assert_int_equal(json_integer_value(json_object_get(json_array_get(points, i), "id")), visited);
        more = json_is_integer(next);
        offset = json_integer_value(next);
        json_decref(answer);
    }
    assert_int_equal(visited, POINTS);
}

/* The ids that a query finds, as "3 1 ". */
static void found_ids(const char *body, char *ids, size_t capacity)
{
    json_t *answer = ASK(port, 200, "POST", "/collections/named/points/query", body);
    json_t *points = json_object_get(json_object_get(answer, "result"), "points");
    size_t length = 0;
    ids[0] = '\0';
    for (size_t i = 0; i < json_array_size(points); i++)
        length += (size_t)snprintf(ids + length, capacity - length, "%lld ",
                                   (long long)json_integer_value(json_object_get(json_array_get(points, i), "id")));
    json_decref(answer);
}

static void vectors_with_names_are_searched_each_by_itself_and_fused(void **state)
{
    (void)state;
    char ids[128];
    ASK_STATUS(
        port, 200, "PUT", "/collections/named",
        "{\"vectors\": {\"text\": {\"size\": 2, \"distance\": \"Dot\"}, \"image\": {\"size\": 3, \"distance\": \"Euclid\"}}}");
    ASK_STATUS(
        port, 200, "PUT", "/collections/named/points",
        "{\"points\": [{\"id\": 1, \"vector\": {\"text\": [1, 0], \"image\": [0, 0, 9]}, \"payload\": {\"a\": 1}}, {\"id\": 2, "
        "\"vector\": {\"text\": [2, 0]}}, {\"id\": 3, \"vector\": {\"image\": [0, 0, 1]}, \"payload\": {\"a\": 1}}]}");
    found_ids("{\"query\": [1, 0], \"using\": \"text\"}", ids, sizeof ids);
    assert_string_equal(ids, "2 1 ");
    found_ids(
        "{\"query\": [0, 0, 0], \"using\": \"image\", \"filter\": {\"must\": {\"key\": \"a\", \"match\": {\"value\": 1}}}}",
        ids, sizeof ids);
    assert_string_equal(ids, "3 1 ");
    found_ids(
        "{\"prefetch\": [{\"query\": [1, 0], \"using\": \"text\"}, {\"query\": [0, 0, 0], \"using\": \"image\"}], \"query\": "
        "{\"fusion\": \"rrf\"}}",
        ids, sizeof ids);
    assert_string_equal(ids, "1 2 3 "); /* 1 is second twice */
    ASK_STATUS(port, 400, "POST", "/collections/named/points/query", "{\"query\": [1, 0]}");
    ASK_STATUS(port, 400, "POST", "/collections/named/points/query", "{\"query\": [1, 0], \"using\": \"sound\"}");
    ASK_STATUS(port, 400, "PUT", "/collections/named/points", "{\"points\": [{\"id\": 9, \"vector\": {\"text\": [1, 0, 0]}}]}");
    ASK_STATUS(port, 400, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 9, \"vector\": {\"text\": [1, 0]}}]}");
    ASK_STATUS(port, 200, "POST", "/collections/named/points/payload", "{\"payload\": {\"a\": 2}, \"points\": [1]}");
    found_ids("{\"query\": [1, 0], \"using\": \"text\", \"filter\": {\"must\": {\"key\": \"a\", \"match\": {\"value\": 2}}}}",
              ids, sizeof ids);
    assert_string_equal(ids, "1 ");
    ASK_STATUS(port, 200, "POST", "/collections/named/points/delete", "{\"points\": [2]}");
    found_ids("{\"query\": [1, 0], \"using\": \"text\"}", ids, sizeof ids);
    assert_string_equal(ids, "1 ");
    ASK_STATUS(port, 200, "PUT", "/collections/named/points",
               "{\"batch\": {\"ids\": [7, 8], \"vectors\": {\"text\": [[5, 0], [4, 0]], \"image\": [[1, 1, 1], [2, 2, 2]]}, "
               "\"payloads\": "
               "[{\"b\": 1}, null]}}");
    found_ids("{\"query\": [1, 0], \"using\": \"text\"}", ids, sizeof ids);
    assert_string_equal(ids, "7 8 1 ");
    ASK_STATUS(port, 400, "PUT", "/collections/named/points",
               "{\"batch\": {\"ids\": [7, 8], \"vectors\": {\"text\": [[5, 0]]}}}");
    ASK_STATUS(port, 200, "DELETE", "/collections/named", NULL);
    json_t *answer = ASK(port, 200, "GET", "/collections", NULL);
    assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "result"), "collections")), 1);
    json_decref(answer);
}

static void wrong_vectors_and_queries_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *path, *body;
    } cases[] = {
        {400, "/collections/docs/points/query", "{\"query\": [1, 2, 3]}"},
        {400, "/collections/docs/points/query", "{\"query\": [1, \"2\"]}"},
        {400, "/collections/docs/points/query", "{\"query\": [1,0,0,0,0,0,0,0], \"limit\": 0}"},
        {400, "/collections/docs/points/query", "{\"query\": {\"formula\": \"$score\"}}"},
        {400, "/collections/docs/points/query", "{\"query\": {\"indices\": [1], \"values\": [1]}}"},
        {400, "/collections/docs/points/query", "{\"query\": [[1,0],[0,1]]}"},
        {404, "/collections/docs/points/query", "{\"query\": 12345}"},
        {400, "/collections/docs/points/query", "{\"query\": {\"fusion\": \"rrf\"}}"},
        {400, "/collections/docs/points/query", "{\"query\": [1e999,0,0,0,0,0,0,0]}"},
        {400, "/collections/docs/points/scroll", "{\"offset\": \"x\"}"},
        {400, "/collections/docs/points/query", "[]"},
        {400, "/collections/docs/points/query", "{\"query\": "},
        {405, "/collections", "{}"},
        {404, "/nothing", "{}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ASK_STATUS(port, cases[i].status, "POST", cases[i].path, cases[i].body);
}

static void what_qdrant_has_and_the_server_has_not_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *body;
    } cases[] = {
        {"POST", "/collections/docs/points/query", "{\"query\": [1,0,0,0,0,0,0,0], \"shard_key\": \"a\"}"},
        {"POST", "/collections/docs/points/query/batch", "{\"searches\": [{\"query\": 1, \"shard_key\": \"a\"}]}"},
        {"POST", "/collections/docs/points/count", "{\"shard_key\": \"a\"}"},
        {"POST", "/collections/docs/points/scroll", "{\"shard_key\": [\"a\"]}"},
        {"POST", "/collections/docs/points/delete", "{\"filter\": {}, \"shard_key\": \"a\"}"},
        {"POST", "/collections/docs/points/batch", "{\"operations\": [{\"delete\": {\"filter\": {}, \"shard_key\": \"a\"}}]}"},
        {"PUT", "/collections/other", "{\"vectors\": {\"size\": 1, \"distance\": \"Dot\"}, \"sharding_method\": \"custom\"}"},
        {"PUT", "/collections/other",
         "{\"vectors\": {\"size\": 1, \"distance\": \"Dot\"}, \"init_from\": {\"collection\": \"a\"}}"},
        {"PUT", "/collections/docs/shards", "{\"shard_key\": \"a\"}"},
    };
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 1, \"vector\": [1,0,0,0,0,0,0,0]}]}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *answer = ASK(port, 501, cases[i].method, cases[i].path, cases[i].body);
        const char *why = json_string_value(json_object_get(json_object_get(answer, "status"), "error"));
        assert_true(why && strstr(why, "not supported"));
        json_decref(answer);
    }
    json_t *left = ASK(port, 200, "POST", "/collections/docs/points/count", "{\"shard_key\": null}");
    assert_true(json_integer_value(json_object_get(json_object_get(left, "result"), "count")) == 1); /* it was not deleted */
    json_decref(left);
}

static void a_server_alone_is_no_cluster(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 1, \"vector\": [1,0,0,0,0,0,0,0]}]}");
    json_t *cluster = ASK(port, 200, "GET", "/cluster", NULL);
    assert_string_equal(json_string_value(json_object_get(json_object_get(cluster, "result"), "status")), "disabled");
    json_t *shards = ASK(port, 200, "GET", "/collections/docs/cluster", NULL), *result = json_object_get(shards, "result");
    assert_int_equal(json_integer_value(json_object_get(result, "shard_count")), 1);
    assert_int_equal(json_array_size(json_object_get(result, "local_shards")), 1);
    assert_int_equal(json_array_size(json_object_get(result, "remote_shards")), 0);
    ASK_STATUS(port, 404, "GET", "/collections/unknown/cluster", NULL);
    json_decref(cluster);
    json_decref(shards);
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(collections_are_made_described_listed_and_dropped),
        SERVED(filters_admit_the_rows_that_qdrant_admits),
        SERVED(ids_above_2_to_the_53_and_uuids_are_returned_unchanged),
        SERVED(queries_of_four_clients_at_once_have_the_bits_of_calls_in_the_process),
        SERVED(payloads_are_set_overwritten_and_cleared),
        SERVED(a_scroll_visits_every_point_once),
        SERVED(vectors_with_names_are_searched_each_by_itself_and_fused),
        SERVED(wrong_vectors_and_queries_are_refused_with_their_place),
        SERVED(what_qdrant_has_and_the_server_has_not_is_refused_with_a_sentence),
        SERVED(a_server_alone_is_no_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
