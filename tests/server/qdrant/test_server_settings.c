/* What ordinary clients of Qdrant do first: unnamed vectors as {"": ...}, maximal marginal relevance, the routes of older
 * clients, vectors that are added later, and settings that are kept and shown. */
#include <string.h>

#include "server/client.h"

static server *running;
static int port;

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(NULL);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"\": {\"size\": 2, \"distance\": \"Dot\"}}}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points",
               "{\"points\": [{\"id\": 1, \"vector\": {\"\": [1, 0]}}, {\"id\": 2, \"vector\": [0.99, 0]},"
               " {\"id\": 3, \"vector\": [0.7, 0.7], \"payload\": {\"n\": 1}}, {\"id\": 4, \"vector\": [0, 1]}]}");
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

/* The ids of an answer's points in one text, "1 3"; they are the result, its first element, or its "points". */
static const char *ids_of(const char *path, const char *body)
{
    static char text[128];
    json_t *answer = ASK(port, 200, "POST", path, body);
    json_t *list = json_object_get(answer, "result");
    list = json_object_get(list, "points") ? json_object_get(list, "points") : list;
    list = json_is_array(json_array_get(list, 0)) ? json_array_get(list, 0) : list;
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(list); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i > 0 ? " " : "",
                 (long long)json_integer_value(json_object_get(json_array_get(list, i), "id")));
    json_decref(answer);
    return text;
}

static void a_vector_with_an_empty_name_has_no_name(void **state)
{
    (void)state;
    json_t *answer = ASK(port, 200, "GET", "/collections/docs", NULL);
    json_t *config = json_object_get(json_object_get(answer, "result"), "config");
    json_t *vectors = json_object_get(json_object_get(config, "params"), "vectors");
    assert_int_equal(json_integer_value(json_object_get(vectors, "size")), 2);
    json_decref(answer);
    assert_string_equal(ids_of("/collections/docs/points/query", "{\"query\": [1, 0], \"using\": \"\", \"limit\": 2}"), "1 2");
}

#define QUERY "/collections/docs/points/query"

static void relevance_and_diversity_are_weighed(void **state)
{
    (void)state;
    assert_string_equal(ids_of(QUERY,
                               "{\"query\": {\"nearest\": [1, 0.1], \"mmr\": {\"diversity\": 0, \"candidates_limit\": 4}},"
                               " \"limit\": 3}"),
                        "1 2 3");
    assert_string_equal(ids_of(QUERY,
                               "{\"query\": {\"nearest\": [1, 0.1], \"mmr\": {\"diversity\": 0.7, \"candidates_limit\": 4}},"
                               " \"limit\": 2}"),
                        "1 4");
    assert_string_equal(ids_of(QUERY, "{\"query\": {\"nearest\": 1, \"mmr\": {\"diversity\": 0, \"candidates_limit\": 4}},"
                                      " \"limit\": 2}"),
                        "2 3");
    ASK_STATUS(port, 400, "POST", QUERY, "{\"query\": {\"nearest\": [1, 0], \"mmr\": {\"diversity\": 2}}}");
    ASK_STATUS(port, 400, "POST", QUERY, "{\"query\": {\"nearest\": [1, 0], \"mmr\": {\"candidates_limit\": 5000}}}");
    ASK_STATUS(port, 400, "POST", QUERY, "{\"query\": {\"mmr\": {}}}");
}

static void routes_of_older_clients_recommend_and_discover(void **state)
{
    (void)state;
    static const char points[] = "/collections/docs/points/";
    static const char *const cases[][3] = {
        {"recommend", "{\"positive\": [1], \"limit\": 2}", "2 3"},
        {"recommend", "{\"positive\": [[0, 1]], \"negative\": [[1, 0]], \"strategy\": \"best_score\", \"limit\": 1}", "4"},
        {"recommend/batch", "{\"searches\": [{\"positive\": [4], \"limit\": 1}]}", "3"},
        {"discover", "{\"target\": [1, 0], \"context\": [{\"positive\": 4, \"negative\": 2}], \"limit\": 1}", "3"},
        {"discover", "{\"context\": [{\"positive\": 4, \"negative\": 1}], \"limit\": 4}", "3 2"},
        {"discover/batch", "{\"searches\": [{\"target\": [0, 1], \"limit\": 1}]}", "4"},
    };
    char path[128];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(path, sizeof path, "%s%s", points, cases[i][0]);
        const char *found = ids_of(path, cases[i][1]);
        if (strcmp(found, cases[i][2]) != 0)
            fail_msg("%s %s: %s, not %s", cases[i][0], cases[i][1], found, cases[i][2]);
    }
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/recommend/groups",
                         "{\"positive\": [1], \"group_by\": \"n\", \"limit\": 5}");
    assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "result"), "groups")), 1);
    json_decref(answer);
}

static void points_of_equal_score_in_a_context_come_as_from_qdrant(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", "/collections/ties", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    ASK_STATUS(
        port, 200, "PUT", "/collections/ties/points",
        "{\"points\": [{\"id\": 1, \"vector\": [3, 1]}, {\"id\": 5, \"vector\": [1, 3]}, {\"id\": 3, \"vector\": [2, 1]},"
        " {\"id\": 2, \"vector\": [5, 0]}, {\"id\": 4, \"vector\": [4, 2]}]}");
    assert_string_equal(ids_of("/collections/ties/points/query",
                               "{\"query\": {\"context\": [{\"positive\": [1, 0], \"negative\": [0, 1]}]}, \"limit\": 5}"),
                        "4 2 3 1 5");
}

static void a_vector_can_be_added_later_and_removed(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", "/collections/named", "{\"vectors\": {\"a\": {\"size\": 1, \"distance\": \"Dot\"}}}");
    ASK_STATUS(port, 200, "PUT", "/collections/named/points", "{\"points\": [{\"id\": 1, \"vector\": {\"a\": [1]}}]}");
    ASK_STATUS(port, 200, "PUT", "/collections/named/vectors/b", "{\"size\": 2, \"distance\": \"Cosine\"}");
    ASK_STATUS(port, 409, "PUT", "/collections/named/vectors/b", "{\"size\": 2, \"distance\": \"Cosine\"}");
    ASK_STATUS(port, 200, "PUT", "/collections/named/points/vectors",
               "{\"points\": [{\"id\": 1, \"vector\": {\"b\": [1, 2]}}]}");
    ASK_STATUS(port, 200, "PUT", "/collections/named/points", "{\"points\": [{\"id\": 2, \"vector\": {\"b\": [2, 1]}}]}");
    assert_string_equal(ids_of("/collections/named/points/query", "{\"query\": [1, 2], \"using\": \"b\"}"), "1 2");
    assert_string_equal(ids_of("/collections/named/points/query", "{\"query\": [1], \"using\": \"a\"}"), "1");
    ASK_STATUS(port, 200, "DELETE", "/collections/named/vectors/b", NULL);
    ASK_STATUS(port, 404, "DELETE", "/collections/named/vectors/c", NULL);
    ASK_STATUS(port, 400, "POST", "/collections/named/points/query", "{\"query\": [1, 2], \"using\": \"b\"}");
}

/* Compares a member of the description's config. */
static void check_config(const char *collection, const char *member, const char *expected)
{
    char path[64];
    snprintf(path, sizeof path, "/collections/%s", collection);
    json_t *answer = ASK(port, 200, "GET", path, NULL), *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
    json_t *config = json_object_get(json_object_get(answer, "result"), "config");
    json_t *value = json_object_get(config, member) ? json_object_get(config, member)
                                                    : json_object_get(json_object_get(config, "params"), member);
    if (!wanted || !json_equal(value, wanted))
        fail_msg("%s is %s, not %s", member, json_dumps(value, JSON_ENCODE_ANY), expected);
    json_decref(wanted);
    json_decref(answer);
}

static void settings_are_kept_and_shown(void **state)
{
    (void)state;
    ASK_STATUS(
        port, 200, "PUT", "/collections/set",
        "{\"vectors\": {\"size\": 1, \"distance\": \"Dot\"}, \"shard_number\": 3, \"metadata\": {\"owner\": \"ann\"},"
        " \"quantization_config\": {\"scalar\": {\"type\": \"int8\"}}, \"optimizers_config\": {\"indexing_threshold\": 7}}");
    check_config("set", "shard_number", "3");
    check_config("set", "metadata", "{\"owner\": \"ann\"}");
    check_config("set", "quantization_config", "{\"scalar\": {\"type\": \"int8\"}}");
    ASK_STATUS(port, 200, "PATCH", "/collections/set",
               "{\"metadata\": {\"year\": 1}, \"params\": {\"replication_factor\": 2}}");
    check_config("set", "metadata", "{\"owner\": \"ann\", \"year\": 1}");
    check_config("set", "replication_factor", "2");
    json_t *answer = ASK(port, 200, "GET", "/collections/set", NULL);
    json_t *config = json_object_get(json_object_get(answer, "result"), "config");
    json_t *optimizer = json_object_get(config, "optimizer_config");
    assert_int_equal(json_integer_value(json_object_get(optimizer, "indexing_threshold")), 7);
    assert_true(json_is_integer(json_object_get(optimizer, "max_optimization_threads")));
    json_decref(answer);
    ASK_STATUS(port, 200, "DELETE", "/collections/set", NULL);
    ASK_STATUS(port, 200, "PUT", "/collections/set", "{\"vectors\": {\"size\": 1, \"distance\": \"Dot\"}}");
    check_config("set", "shard_number", "1");
    check_config("set", "quantization_config", "null");
}

#define VECTOR(members) "{\"size\": 1, \"distance\": \"Dot\"" members "}"

static void settings_of_vectors_are_kept_and_shown(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", "/collections/one",
               "{\"vectors\": " VECTOR(", \"on_disk\": true, \"hnsw_config\": {\"m\": 8}") "}");
    check_config("one", "vectors", VECTOR(", \"on_disk\": true, \"hnsw_config\": {\"m\": 8}"));
    ASK_STATUS(port, 200, "PATCH", "/collections/one", "{\"vectors\": {\"\": {\"on_disk\": false}}}");
    check_config("one", "vectors", VECTOR(", \"on_disk\": false, \"hnsw_config\": {\"m\": 8}"));
    ASK_STATUS(port, 200, "PUT", "/collections/two",
               "{\"vectors\": {\"a\": " VECTOR(", \"quantization_config\": {\"binary\": {}}") ", \"b\": " VECTOR("") "}}");
    ASK_STATUS(port, 200, "PATCH", "/collections/two", "{\"vectors\": {\"b\": {\"on_disk\": true}}}");
    check_config(
        "two", "vectors",
        "{\"a\": " VECTOR(", \"quantization_config\": {\"binary\": {}}") ", \"b\": " VECTOR(", \"on_disk\": true") "}");
    ASK_STATUS(port, 400, "PATCH", "/collections/two", "{\"vectors\": {\"b\": {\"on_disk\": 1}}}");
    ASK_STATUS(port, 400, "PATCH", "/collections/two", "{\"vectors\": {\"b\": {\"hnsw_config\": 1}}}");
    ASK_STATUS(port, 400, "PATCH", "/collections/two", "{\"vectors\": [1]}");
}

/* Gives the collection these limits only. */
static void set_limits(const char *limits)
{
    char body[512];
    ASK_STATUS(port, 200, "PATCH", "/collections/docs",
               "{\"strict_mode_config\": {\"enabled\": true, \"max_query_limit\": null, \"max_points_count\": null}}");
    snprintf(body, sizeof body, "{\"strict_mode_config\": {\"enabled\": true, %s}}", limits);
    ASK_STATUS(port, 200, "PATCH", "/collections/docs", body);
}

static void each_limit_of_strict_mode_is_obeyed(void **state)
{
    (void)state;
    static const struct {
        const char *limit, *path, *wrong, *right;
    } cases[] = {
        {"\"filter_max_conditions\": 1", QUERY,
         "{\"filter\": {\"must\": [{\"key\": \"n\", \"match\": {\"value\": 1}}, {\"key\": \"n\", \"match\": {\"value\": 1}}]}}",
         "{\"filter\": {\"must\": [{\"key\": \"n\", \"match\": {\"value\": 1}}]}}"},
        {"\"condition_max_size\": 2", QUERY, "{\"filter\": {\"must\": [{\"has_id\": [1, 2, 3]}]}}",
         "{\"filter\": {\"must\": [{\"has_id\": [1, 2]}]}}"},
        {"\"search_max_hnsw_ef\": 10", QUERY, "{\"query\": [1, 0], \"params\": {\"hnsw_ef\": 11}}",
         "{\"query\": [1, 0], \"params\": {\"hnsw_ef\": 10}}"},
        {"\"search_max_oversampling\": 1.5", QUERY,
         "{\"query\": [1, 0], \"params\": {\"quantization\": {\"oversampling\": 1.6}}}",
         "{\"query\": [1, 0], \"params\": {\"quantization\": {\"oversampling\": 1.5}}}"},
        {"\"search_allow_exact\": false", QUERY, "{\"query\": [1, 0], \"params\": {\"exact\": true}}", "{\"query\": [1, 0]}"},
        {"\"max_timeout\": 3", QUERY, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_limits(cases[i].limit);
        ASK_STATUS(port, 400, "POST", cases[i].wrong ? cases[i].path : QUERY "?timeout=4",
                   cases[i].wrong ? cases[i].wrong : "{\"query\": [1, 0]}");
        ASK_STATUS(port, 200, "POST", cases[i].right ? cases[i].path : QUERY "?timeout=3",
                   cases[i].right ? cases[i].right : "{\"query\": [1, 0]}");
    }
    ASK_STATUS(port, 501, "PATCH", "/collections/docs",
               "{\"strict_mode_config\": {\"enabled\": true, \"unindexed_filtering_retrieve\": false}}");
    ASK_STATUS(port, 200, "PATCH", "/collections/docs",
               "{\"strict_mode_config\": {\"enabled\": true, \"unindexed_filtering_retrieve\": true}}");
    ASK_STATUS(port, 400, "PATCH", "/collections/docs",
               "{\"strict_mode_config\": {\"enabled\": true, \"max_timeout\": \"3\"}}");
}

static void the_size_of_a_collection_may_be_limited(void **state)
{
    (void)state;
    static const char *const limits[] = {"\"max_points_count\": 5",
                                         "\"max_points_count\": 1000, \"max_collection_vector_size_bytes\": 40"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        set_limits(limits[i]);
        ASK_STATUS(port, 400, "PUT", "/collections/docs/points",
                   "{\"points\": [{\"id\": 8, \"vector\": [1, 0]}, {\"id\": 9, \"vector\": [1, 0]}]}");
        ASK_STATUS(port, 200, "PUT", "/collections/docs/points",
                   "{\"points\": [{\"id\": 8, \"vector\": [1, 0]}, {\"id\": 1, \"vector\": [1, 0]}]}"); /* 1 is there already */
        ASK_STATUS(port, 200, "POST", "/collections/docs/points/delete", "{\"points\": [8]}");
    }
    set_limits("\"max_payload_index_count\": 1");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/index", "{\"field_name\": \"n\"}");
    ASK_STATUS(port, 400, "PUT", "/collections/docs/index", "{\"field_name\": \"m\"}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/index", "{\"field_name\": \"n\", \"field_schema\": \"integer\"}");
}

static void requests_of_a_minute_may_be_limited(void **state)
{
    (void)state;
    set_limits("\"read_rate_limit\": 3, \"write_rate_limit\": 1");
    for (int i = 0; i < 2; i++)
        ASK_STATUS(port, 200, "POST", QUERY, "{\"query\": [1, 0]}");
    ASK_STATUS(port, 429, "POST", QUERY "/batch", "{\"searches\": [{\"limit\": 1}, {\"limit\": 1}]}");
    ASK_STATUS(port, 200, "POST", QUERY, "{\"query\": [1, 0]}");
    ASK_STATUS(port, 429, "POST", QUERY, "{\"query\": [1, 0]}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 8, \"vector\": [1, 0]}]}");
    ASK_STATUS(port, 429, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 8, \"vector\": [1, 0]}]}");
}

static void a_request_may_say_how_long_its_client_waits(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "POST", QUERY "?timeout=5", "{\"query\": [1, 0]}");
    ASK_STATUS(port, 400, "POST", QUERY "?timeout=0", "{\"query\": [1, 0]}");
    ASK_STATUS(port, 400, "POST", QUERY "?timeout=1s", "{\"query\": [1, 0]}");
}

static void limits_of_strict_mode_are_obeyed_or_refused(void **state)
{
    (void)state;
    ASK_STATUS(port, 501, "PATCH", "/collections/docs",
               "{\"strict_mode_config\": {\"enabled\": true, \"max_disk_usage_percent\": 3}}");
    ASK_STATUS(port, 200, "PATCH", "/collections/docs",
               "{\"strict_mode_config\": {\"enabled\": true, \"max_query_limit\": 3, \"search_max_batchsize\": 1,"
               " \"upsert_max_batchsize\": 1}}");
    ASK_STATUS(port, 200, "POST", QUERY, "{\"query\": [1, 0], \"limit\": 3}");
    ASK_STATUS(port, 400, "POST", QUERY, "{\"query\": [1, 0], \"limit\": 4}");
    ASK_STATUS(port, 400, "POST", QUERY "/batch", "{\"searches\": [{\"limit\": 1}, {\"limit\": 1}]}");
    ASK_STATUS(port, 400, "PUT", "/collections/docs/points",
               "{\"points\": [{\"id\": 8, \"vector\": [1, 0]}, {\"id\": 9, \"vector\": [1, 0]}]}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 8, \"vector\": [1, 0]}]}");
    ASK_STATUS(port, 200, "PATCH", "/collections/docs", "{\"strict_mode_config\": {\"enabled\": false}}");
    ASK_STATUS(port, 200, "POST", QUERY, "{\"query\": [1, 0], \"limit\": 4}");
}

/* How many points have the key of an index. */
static long long points_of(const char *key)
{
    json_t *answer = ASK(port, 200, "GET", "/collections/docs", NULL);
    json_t *schema = json_object_get(json_object_get(answer, "result"), "payload_schema");
    json_t *points = json_object_get(json_object_get(schema, key), "points");
    assert_true(json_is_integer(points));
    const long long count = json_integer_value(points);
    json_decref(answer);
    return count;
}

static void an_index_tells_how_many_points_have_its_key(void **state)
{
    (void)state;
    static const char *const indexes[] = {"\"n\", \"field_schema\": \"integer\"",
                                          "\"tags[]\", \"field_schema\": \"keyword\"",
                                          "\"at\", \"field_schema\": {\"type\": \"datetime\", \"on_disk\": true}",
                                          "\"where.place\", \"field_schema\": \"geo\"",
                                          "\"known\", \"field_schema\": \"bool\"",
                                          "\"key\", \"field_schema\": \"uuid\"",
                                          "\"none\""};
    for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
        char body[160];
        snprintf(body, sizeof body, "{\"field_name\": %s}", indexes[i]);
        ASK_STATUS(port, 200, "PUT", "/collections/docs/index", body);
    }
    ASK_STATUS(port, 400, "PUT", "/collections/docs/index", "{\"field_name\": \"n\", \"field_schema\": \"number\"}");
    assert_int_equal(points_of("n"), 1);
    ASK_STATUS(
        port, 200, "PUT", "/collections/docs/points",
        "{\"points\": [{\"id\": 4, \"vector\": [0, 1], \"payload\": {\"n\": [1.5, 2, 3], \"tags\": [1, \"a\", \"b\"],"
        " \"at\": \"2024-01-02\", \"where\": {\"place\": {\"lon\": 1, \"lat\": 2.5}}, \"known\": false,"
        " \"key\": \"550e8400-e29b-41d4-a716-446655440000\"}}, {\"id\": 5, \"vector\": [0, 1], \"payload\":"
        " {\"n\": 1.5, \"tags\": [1, null], \"at\": \"then\", \"where\": {\"place\": 1}, \"known\": 0, \"key\": \"k\"}}]}");
    assert_int_equal(points_of("n"), 2);
    assert_int_equal(points_of("tags[]"), 1);
    assert_int_equal(points_of("at"), 1);
    assert_int_equal(points_of("where.place"), 1);
    assert_int_equal(points_of("known"), 1);
    assert_int_equal(points_of("key"), 1);
    assert_int_equal(points_of("none"), 0);
    ASK_STATUS(port, 200, "POST", "/collections/docs/points/payload/clear", "{\"points\": [3]}");
    assert_int_equal(points_of("n"), 1);
    ASK_STATUS(port, 200, "DELETE", "/collections/docs/index/none", NULL);
    ASK_STATUS(port, 200, "PUT", "/collections/docs/index", "{\"field_name\": \"n\", \"field_schema\": \"float\"}");
    assert_int_equal(points_of("n"), 2); /* of another kind */
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(a_vector_with_an_empty_name_has_no_name),
        SERVED(relevance_and_diversity_are_weighed),
        SERVED(routes_of_older_clients_recommend_and_discover),
        SERVED(points_of_equal_score_in_a_context_come_as_from_qdrant),
        SERVED(a_vector_can_be_added_later_and_removed),
        SERVED(settings_are_kept_and_shown),
        SERVED(settings_of_vectors_are_kept_and_shown),
        SERVED(limits_of_strict_mode_are_obeyed_or_refused),
        SERVED(each_limit_of_strict_mode_is_obeyed),
        SERVED(the_size_of_a_collection_may_be_limited),
        SERVED(requests_of_a_minute_may_be_limited),
        SERVED(a_request_may_say_how_long_its_client_waits),
        SERVED(an_index_tells_how_many_points_have_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
