/* Queries of Qdrant's API beyond the nearest points: by examples, by values, at random; and changes with conditions and paths.
 * The points are on a line, so that the answers can be seen. */
#include <stdlib.h>
#include <string.h>

#include "server/client.h"

static server *running;
static int port;

/* Points 0 to 9 at (n, 1), distance Euclid. */
static int begin(void **state)
{
    char body[2048];
    size_t length = (size_t)snprintf(body, sizeof body, "{\"points\": [");
    scratch_setup(state);
    running = server_for_test(NULL);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", "/collections/line", "{\"vectors\": {\"size\": 2, \"distance\": \"Euclid\"}}");
    for (int i = 0; i < 10; i++)
        length +=
            (size_t)snprintf(body + length, sizeof body - length,
                             "%s{\"id\": %d, \"vector\": [%d, 1], \"payload\": {\"n\": [%d, %d], \"list\": [{\"a\": %d}, {}]}}",
                             i > 0 ? "," : "", i, i, i % 4, 7, i);
    snprintf(body + length, sizeof body - length, "]}");
    ASK_STATUS(port, 200, "PUT", "/collections/line/points", body);
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

/* The ids of the points of an answer, "3 1 2". */
static const char *ids_of(const char *path, const char *body)
{
    static char text[256];
    json_t *answer = ASK(port, 200, "POST", path, body);
    const json_t *points = json_object_get(json_object_get(answer, "result"), "points");
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(points); i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld", i > 0 ? " " : "",
                                   (long long)json_integer_value(json_object_get(json_array_get(points, i), "id")));
    json_decref(answer);
    return text;
}

#define QUERY(query) ids_of("/collections/line/points/query", "{\"limit\": 3, \"query\": " query "}")

static void examples_lead_to_similar_points(void **state)
{
    (void)state;
    assert_string_equal(QUERY("5"), "4 6 3");
    assert_string_equal(QUERY("{\"nearest\": [5.1, 1]}"), "5 6 4");
    assert_string_equal(QUERY("{\"recommend\": {\"positive\": [1, 3]}}"), "2 0 4");
    assert_string_equal(QUERY("{\"recommend\": {\"positive\": [4], \"negative\": [2]}}"), "6 5 7");
    assert_string_equal(QUERY("{\"recommend\": {\"positive\": [[0, 1], 9], \"strategy\": \"best_score\"}}"), "0 8 1");
    assert_string_equal(QUERY("{\"recommend\": {\"negative\": [0], \"strategy\": \"sum_scores\"}}"), "9 8 7");
    assert_string_equal(QUERY("{\"discover\": {\"target\": [0, 1], \"context\": {\"positive\": 8, \"negative\": 2}}}"),
                        "6 7 9");
    assert_string_equal(QUERY("{\"context\": [{\"positive\": [8, 1], \"negative\": [2, 1]}]}"), "9 8 7");
    ASK_STATUS(port, 404, "POST", "/collections/line/points/query", "{\"query\": 77}");
    ASK_STATUS(port, 400, "POST", "/collections/line/points/query", "{\"query\": {\"recommend\": {\"negative\": [1]}}}");
    ASK_STATUS(port, 400, "POST", "/collections/line/points/query",
               "{\"query\": {\"recommend\": {\"positive\": [[1, 2, 3]]}}}");
}

#define FORMULA(formula)                                                                                                       \
    ids_of("/collections/line/points/query",                                                                                   \
           "{\"limit\": 4, \"prefetch\": {\"query\": [5.2, 1], \"limit\": 4}, \"query\": {\"formula\": " formula "}}")

static void formulas_score_what_was_prefetched(void **state)
{
    (void)state;
    assert_string_equal(FORMULA("{\"neg\": \"$score\"}"), "5 6 4 7");
    assert_string_equal(FORMULA("{\"sum\": [{\"neg\": \"$score\"}, {\"mult\": [9, {\"has_id\": [7, 3]}]}]}"), "7 5 6 4");
    assert_string_equal(FORMULA("{\"mult\": [{\"key\": \"n\", \"match\": {\"value\": 2}}, 2]}"), "6 5 4 7");
    assert_string_equal(FORMULA("\"list[0].a\""), "7 6 5 4");
    assert_string_equal(
        FORMULA("{\"gauss_decay\": {\"x\": \"list[0].a\", \"target\": 6.2, \"scale\": 2}}, \"defaults\": {\"list[0].a\": 1}"),
        "6 7 5 4");
    /* prefetches in prefetches: of the four nearest to 5.2 the two nearest to 9, and 0, which only the other list has */
    assert_string_equal(
        ids_of("/collections/line/points/query",
               "{\"prefetch\": [{\"prefetch\": {\"query\": [5.2, 1], \"limit\": 4}, \"query\": [9, 1], \"limit\": 2}, "
               "{\"query\": [0, 1], \"limit\": 1}], \"query\": {\"formula\": {\"sum\": [\"$score[0]\", {\"mult\": [10, "
               "\"$score[1]\"]}]}, \"defaults\": {\"$score[1]\": 1}}}"),
        "6 7 0");
    static const char *const WRONG[] = {"\"n\"",         "\"unknown\"",   "{\"what\": 1}",
                                        "{\"max\": []}", "\"$score[x]\"", "{\"div\": {\"left\": 1, \"right\": 0}}"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"prefetch\": {\"query\": 5}, \"query\": {\"formula\": %s}}", WRONG[i]);
        ASK_STATUS(port, 400, "POST", "/collections/line/points/query", body);
    }
    ASK_STATUS(port, 400, "POST", "/collections/line/points/query", "{\"query\": {\"formula\": \"$score\"}}");
}

static void an_answer_explains_its_stages(void **state)
{
    (void)state;
    json_t *answer =
        ASK(port, 200, "POST", "/collections/line/points/query",
            "{\"explain\": true, \"prefetch\": [{\"query\": 5, \"limit\": 4, \"score_threshold\": 1.5}, {\"query\": "
            "{\"order_by\": \"n\"}, \"limit\": 3}], \"query\": {\"fusion\": \"rrf\"}, \"limit\": 2}");
    const json_t *stages = json_object_get(answer, "explain");
    static const char *const NAMES[3] = {"query", "finder", "fuse"};
    static const int HITS[3] = {2, 3, 2};
    assert_int_equal(json_array_size(stages), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *stage = json_array_get(stages, i);
        assert_string_equal(json_string_value(json_object_get(stage, "stage")), NAMES[i]);
        assert_int_equal(json_integer_value(json_object_get(stage, "hits")), HITS[i]);
        assert_true(json_number_value(json_object_get(stage, "seconds")) > 0);
    }
    const json_t *first = json_array_get(stages, 0);
    assert_int_equal(json_integer_value(json_object_get(first, "excluded")), 1); /* the example */
    assert_true(json_integer_value(json_object_get(first, "beyond_threshold")) > 0);
    assert_int_equal(json_integer_value(json_object_get(first, "rows_scored")), 10);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(json_array_get(stages, 2), "inputs"), 1)), 1);
    json_decref(answer);
}

/* Trees that differ only in their vectors run as one plan. */
static void alike_trees_of_a_batch_are_answered_as_alone(void **state)
{
    (void)state;
    char body[8192] = "{\"searches\": [";
    const char *const tree =
        "{\"limit\": 2, \"prefetch\": [{\"query\": [%d.4, 1], \"limit\": 3}, {\"query\": [%d.3, 1], \"limit\": 3}], "
        "\"query\": {\"fusion\": \"dbsf\"}}";
    for (int i = 0; i < 8; i++)
        snprintf(body + strlen(body), sizeof body - strlen(body), tree, i, i + 1), strcat(body, i < 7 ? "," : "]}");
    json_t *all = ASK(port, 200, "POST", "/collections/line/points/query/batch", body);
    for (int i = 0; i < 8; i++) {
        snprintf(body, sizeof body, tree, i, i + 1);
        json_t *one = ASK(port, 200, "POST", "/collections/line/points/query", body);
        assert_true(json_equal(json_object_get(one, "result"), json_array_get(json_object_get(all, "result"), (size_t)i)));
        json_decref(one);
    }
    json_decref(all);
}

static void scores_of_examples_are_those_of_qdrant(void **state)
{
    (void)state;
    json_t *answer =
        ASK(port, 200, "POST", "/collections/line/points/query",
            "{\"limit\": 1, \"query\": {\"recommend\": {\"positive\": [[3, 1]], \"strategy\": \"best_score\"}}, \"filter\": "
            "{\"must\": [{\"has_id\": [5]}]}}");
    const json_t *point = json_array_get(json_object_get(json_object_get(answer, "result"), "points"), 0);
    const double score = json_real_value(json_object_get(point, "score"));
    assert_true(score > 0.09999 && score < 0.10001); /* the distance is 2: (1 - 4 / 5) / 2 */
    json_decref(answer);
}

static void points_come_by_values_and_at_random(void **state)
{
    (void)state;
    assert_string_equal(QUERY("{\"order_by\": {\"key\": \"n\", \"direction\": \"desc\", \"start_from\": 3}}"), "3 7 2");
    assert_string_equal(QUERY("{\"order_by\": \"n\"}"), "0 4 8");
    assert_int_equal(strlen(QUERY("{\"sample\": \"random\"}")), 5); /* three of one digit */
    assert_string_equal(
        ids_of("/collections/line/points/scroll", "{\"limit\": 20, \"order_by\": {\"key\": \"n\", \"start_from\": 3}}"),
        "3 7 0 1 2 3 4 5 6 7 8 9"); /* once for each value */
    assert_string_equal(ids_of("/collections/line/points/scroll", "{\"limit\": 2, \"offset\": 4}"), "4 5");
}

static void vectors_are_looked_up_elsewhere(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", "/collections/other",
               "{\"vectors\": {\"a\": {\"size\": 2, \"distance\": \"Euclid\"}, \"b\": {\"size\": 2, \"distance\": \"Dot\"}}}");
    ASK_STATUS(port, 200, "PUT", "/collections/other/points",
               "{\"points\": [{\"id\": 5, \"vector\": {\"a\": [8, 1]}, \"payload\": {\"x\": 1}}, {\"id\": 6, \"vector\": "
               "{\"b\": [1, 1]}}]}");
    assert_string_equal(ids_of("/collections/line/points/query",
                               "{\"limit\": 2, \"query\": 5, \"lookup_from\": {\"collection\": \"other\", \"vector\": \"a\"}}"),
                        "8 7");
    ASK_STATUS(port, 404, "POST", "/collections/line/points/query",
               "{\"query\": 5, \"lookup_from\": {\"collection\": \"none\"}}");
    assert_string_equal(ids_of("/collections/other/points/scroll", "{\"filter\": {\"must\": [{\"has_vector\": \"a\"}]}}"), "5");
    assert_string_equal(ids_of("/collections/other/points/scroll", "{\"filter\": {\"must_not\": [{\"has_vector\": \"a\"}]}}"),
                        "6");
    assert_string_equal(ids_of("/collections/other/points/scroll", "{\"filter\": {\"must\": [{\"has_vector\": \"c\"}]}}"), "");
    json_t *answer = ASK(port, 200, "POST", "/collections/line/points/query/groups",
                         "{\"query\": [5, 1], \"group_by\": \"list[0].a\", \"limit\": 1, \"with_lookup\": \"other\"}");
    json_t *group = json_array_get(json_object_get(json_object_get(answer, "result"), "groups"), 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(group, "lookup"), "id")), 5);
    json_decref(answer);
}

static void a_matrix_has_the_nearest_of_a_sample(void **state)
{
    (void)state;
    static const char body[] = "{\"sample\": 10, \"limit\": 1, \"filter\": {\"must\": [{\"has_id\": [1, 2, 7]}]}}";
    json_t *answer = ASK(port, 200, "POST", "/collections/line/points/search/matrix/offsets", body);
    char *text = json_dumps(json_object_get(answer, "result"), JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"ids\":[1,2,7],\"offsets_col\":[1,0,1],\"offsets_row\":[0,1,2],\"scores\":[1.0,1.0,5.0]}");
    free(text);
    json_decref(answer);
    answer = ASK(port, 200, "POST", "/collections/line/points/search/matrix/pairs", body);
    assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "result"), "pairs")), 3);
    json_decref(answer);
    ASK_STATUS(port, 400, "POST", "/collections/line/points/search/matrix/pairs", "{\"using\": \"x\"}");
}

/* The payload of a point as compact JSON. */
static void payload_is(int id, const char *expected)
{
    char path[64];
    snprintf(path, sizeof path, "/collections/line/points/%d", id);
    json_t *answer = ASK(port, 200, "GET", path, NULL);
    char *text = json_dumps(json_object_get(json_object_get(answer, "result"), "payload"), JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, expected);
    free(text);
    json_decref(answer);
}

#define CHANGE(method, path, body) ASK_STATUS(port, 200, method, "/collections/line/points" path, body)

static void keys_lead_through_lists(void **state)
{
    (void)state;
    CHANGE("POST", "/payload", "{\"points\": [1], \"payload\": {\"n\": null, \"new\": 1}}"); /* null removes */
    payload_is(1, "{\"list\":[{\"a\":1},{}],\"new\":1}");
    CHANGE("POST", "/payload", "{\"points\": [1], \"key\": \"list[].b\", \"payload\": {\"c\": 2}}");
    payload_is(1, "{\"list\":[{\"a\":1,\"b\":{\"c\":2}},{\"b\":{\"c\":2}}],\"new\":1}");
    CHANGE("POST", "/payload", "{\"points\": [1], \"key\": \"list[1].b\", \"payload\": {\"c\": 3}}");
    CHANGE("POST", "/payload", "{\"points\": [1], \"key\": \"x.y\", \"payload\": {\"z\": 4}}");
    payload_is(1, "{\"list\":[{\"a\":1,\"b\":{\"c\":2}},{\"b\":{\"c\":3}}],\"new\":1,\"x\":{\"y\":{\"z\":4}}}");
    CHANGE("POST", "/payload/delete", "{\"points\": [1], \"keys\": [\"list[].b\", \"x.y\", \"missing\", \"list[0]\"]}");
    payload_is(1, "{\"list\":[{\"a\":1},{}],\"new\":1,\"x\":{}}");
    CHANGE("POST", "/payload/delete", "{\"points\": [1], \"keys\": [\"list[]\"]}");
    payload_is(1, "{\"list\":[],\"new\":1,\"x\":{}}");
    ASK_STATUS(port, 400, "POST", "/collections/line/points/payload/delete", "{\"points\": [1], \"keys\": [\"a..b\"]}");
}

static void changes_may_have_conditions(void **state)
{
    (void)state;
    CHANGE("PUT", "",
           "{\"update_mode\": \"insert_only\", \"points\": [{\"id\": 1, \"vector\": [0, 0]}, {\"id\": 100, \"vector\": [100, "
           "1]}]}");
    CHANGE("PUT", "",
           "{\"update_mode\": \"update_only\", \"points\": [{\"id\": 2, \"vector\": [50, 1]}, {\"id\": 200, \"vector\": [0, "
           "0]}]}");
    CHANGE("PUT", "",
           "{\"update_filter\": {\"must\": [{\"has_id\": [3]}]}, \"points\": [{\"id\": 3, \"vector\": [60, 1]}, {\"id\": 4, "
           "\"vector\": "
           "[70, 1]}]}");
    assert_string_equal(QUERY("[1, 1]"), "1 0 4");
    assert_string_equal(QUERY("[90, 1]"), "100 3 2");
    assert_string_equal(ids_of("/collections/line/points/scroll", "{\"limit\": 20, \"offset\": 9}"), "9 100");
    ASK_STATUS(port, 400, "PUT", "/collections/line/points", "{\"update_mode\": \"never\", \"points\": []}");
}

/* Points with ids from 0 up, added in another order, and one with a UUID first. */
static void add_scrambled(int count)
{
    enum { STEP = 7919 }; /* a prime, so that every id comes once */
    const size_t room = 64 + 16 * (size_t)count;
    char *body = malloc(room);
    assert_non_null(body);
    size_t length = (size_t)snprintf(body, room, "{\"batch\": {\"ids\": [\"00000000-0000-0000-0000-000000000007\"");
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(body + length, room - length, ",%d", (int)((int64_t)i * STEP % count));
    length += (size_t)snprintf(body + length, room - length, "],\"vectors\":[[1]");
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(body + length, room - length, ",[1]");
    snprintf(body + length, room - length, "]}}");
    ASK_STATUS(port, 200, "PUT", "/collections/many", "{\"vectors\": {\"size\": 1, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/many/points", body);
    free(body);
}

static void pages_have_every_point_once_in_order(void **state)
{
    (void)state;
    enum { COUNT = 17001, PAGE = 2500 }; /* more rows than are read at once; the last page has the rest */
    add_scrambled(COUNT);
    int64_t next = 0;
    for (char offset[64] = "null"; strcmp(offset, "end") != 0;) {
        char body[128];
        snprintf(body, sizeof body, "{\"limit\": %d, \"offset\": %s, \"with_payload\": false}", PAGE, offset);
        json_t *answer = ASK(port, 200, "POST", "/collections/many/points/scroll", body);
        const json_t *result = json_object_get(answer, "result"), *points = json_object_get(result, "points");
        const json_t *following = json_object_get(result, "next_page_offset");
        for (size_t i = 0; i < json_array_size(points); i++, next++) {
            const json_t *id = json_object_get(json_array_get(points, i), "id");
            assert_true(next < COUNT ? json_is_integer(id) && json_integer_value(id) == next : json_is_string(id));
        }
        if (json_is_null(following))
            snprintf(offset, sizeof offset, "end");
        else if (json_is_integer(following))
            snprintf(offset, sizeof offset, "%lld", (long long)json_integer_value(following));
        else
            snprintf(offset, sizeof offset, "\"%s\"", json_string_value(following));
        json_decref(answer);
    }
    assert_int_equal(next, COUNT + 1);
    json_t *listed = ASK(port, 200, "POST", "/collections/many/points/query", "{\"limit\": 2, \"offset\": 16999}");
    const json_t *points = json_object_get(json_object_get(listed, "result"), "points");
    assert_int_equal(json_integer_value(json_object_get(json_array_get(points, 0), "id")), 16999);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(points, 1), "id")), 17000);
    json_decref(listed);
}

/* Sizes beyond everything that is there mean all of it, and their sums and products do not overflow. */
static void huge_limits_find_everything(void **state)
{
    (void)state;
    static const char *const numbers[] = {"10", "2305843009213693953", "9223372036854775807"};
    static const char *const paths[] = {"/collections/line/points/query/groups", "/collections/line/points/search/groups"};
    for (size_t i = 0; i < 6; i++) {
        char body[256];
        snprintf(body, sizeof body, "{\"%s\": [5.1, 1], \"group_by\": \"n\", \"group_size\": %s, \"limit\": %s}",
                 i % 2 ? "vector" : "query", numbers[i / 2], numbers[i / 2]);
        json_t *answer = ASK(port, 200, "POST", paths[i % 2], body);
        const json_t *groups = json_object_get(json_object_get(answer, "result"), "groups");
        size_t hits = 0;
        for (size_t k = 0; k < json_array_size(groups); k++)
            hits += json_array_size(json_object_get(json_array_get(groups, k), "hits"));
        assert_int_equal(json_array_size(groups), 5); /* 0 to 3, and 7 */
        assert_int_equal(hits, 20);
        json_decref(answer);
    }
    assert_string_equal(
        ids_of("/collections/line/points/query", "{\"query\": [0, 1], \"limit\": 9223372036854775807, \"offset\": 7}"),
        "7 8 9");
    assert_string_equal(ids_of("/collections/line/points/query",
                               "{\"query\": [0, 1], \"limit\": 9223372036854775807, \"offset\": 9223372036854775807}"),
                        "");
    assert_string_equal(ids_of("/collections/line/points/query", "{\"limit\": 9223372036854775807, \"offset\": 8}"), "8 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(examples_lead_to_similar_points, begin, end),
        cmocka_unit_test_setup_teardown(scores_of_examples_are_those_of_qdrant, begin, end),
        cmocka_unit_test_setup_teardown(formulas_score_what_was_prefetched, begin, end),
        cmocka_unit_test_setup_teardown(an_answer_explains_its_stages, begin, end),
        cmocka_unit_test_setup_teardown(alike_trees_of_a_batch_are_answered_as_alone, begin, end),
        cmocka_unit_test_setup_teardown(points_come_by_values_and_at_random, begin, end),
        cmocka_unit_test_setup_teardown(vectors_are_looked_up_elsewhere, begin, end),
        cmocka_unit_test_setup_teardown(a_matrix_has_the_nearest_of_a_sample, begin, end),
        cmocka_unit_test_setup_teardown(keys_lead_through_lists, begin, end),
        cmocka_unit_test_setup_teardown(changes_may_have_conditions, begin, end),
        cmocka_unit_test_setup_teardown(pages_have_every_point_once_in_order, begin, end),
        cmocka_unit_test_setup_teardown(huge_limits_find_everything, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
