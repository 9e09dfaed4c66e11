/* Multivectors of Qdrant's API: created with a name and without, written, searched, reranked, returned, changed and deleted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/client.h"

#define TOKENS "/collections/tokens"
#define POINTS TOKENS "/points"
#define PLAIN  "/collections/plain"

static server *running;
static int port;

/* Points 1 to 3 have both vectors, 4 only the dense one, 5 one token given as a plain vector. */
static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(NULL);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", TOKENS,
               "{\"vectors\": {\"dense\": {\"size\": 2, \"distance\": \"Dot\"}, \"colbert\": {\"size\": 2, \"distance\": "
               "\"Dot\", \"multivector_config\": {\"comparator\": \"max_sim\"}}}}");
    ASK_STATUS(port, 200, "PUT", POINTS "?wait=true",
               "{\"points\": ["
               "{\"id\": 1, \"payload\": {\"n\": 1}, \"vector\": {\"dense\": [1, 0], \"colbert\": [[1, 0], [0, 1]]}},"
               "{\"id\": 2, \"payload\": {\"n\": 2}, \"vector\": {\"dense\": [0, 1], \"colbert\": [[0, 2], [0, 3], [0.5, 0]]}},"
               "{\"id\": 3, \"payload\": {\"n\": 2}, \"vector\": {\"dense\": [1, 1], \"colbert\": [[-1, -1]]}},"
               "{\"id\": 4, \"vector\": {\"dense\": [2, 0]}},"
               "{\"id\": 5, \"vector\": {\"colbert\": [4, 0]}}]}");
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

static json_t *points_of(const char *path, const char *body, json_t **answer)
{
    *answer = ASK(port, 200, "POST", path, body);
    json_t *result = json_object_get(*answer, "result");
    return json_is_array(result) ? result : json_object_get(result, "points");
}

/* The ids that a query finds with their scores, "1:4 2:-3". */
static const char *found_at(const char *path, const char *body)
{
    static char text[256];
    json_t *answer, *points = points_of(path, body, &answer);
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(points); i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld:%.4g", i > 0 ? " " : "",
                                   json_integer_value(json_object_get(json_array_get(points, i), "id")),
                                   json_number_value(json_object_get(json_array_get(points, i), "score")));
    json_decref(answer);
    return text;
}

#define FOUND(body) found_at(POINTS "/query", body)
#define BOTH        "\"query\": [[1, 0], [0, 1]], \"using\": \"colbert\""

/* The vector of a point as JSON text; the caller frees it. */
static char *vector_at(const char *path, const char *id, const char *name)
{
    char body[160];
    snprintf(body, sizeof body, "{\"ids\": [%s], \"with_vector\": true}", id);
    json_t *answer, *points = points_of(path, body, &answer);
    json_t *vector = json_object_get(json_array_get(points, 0), "vector");
    char *text =
        json_dumps(name ? json_object_get(vector, name) : vector, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    json_decref(answer);
    return text;
}

static void check_vector(const char *path, const char *id, const char *name, const char *expected)
{
    char *text = vector_at(path, id, name);
    if (expected)
        assert_string_equal(text, expected);
    else
        assert_null(text);
    free(text);
}

static void the_description_has_the_comparator(void **state)
{
    (void)state;
    json_t *answer = ASK(port, 200, "GET", TOKENS, NULL);
    json_t *params = json_object_get(json_object_get(json_object_get(answer, "result"), "config"), "params");
    json_t *colbert = json_object_get(json_object_get(params, "vectors"), "colbert");
    assert_int_equal(json_integer_value(json_object_get(colbert, "size")), 2);
    assert_string_equal(json_string_value(json_object_get(json_object_get(colbert, "multivector_config"), "comparator")),
                        "max_sim");
    assert_null(json_object_get(json_object_get(json_object_get(params, "vectors"), "dense"), "multivector_config"));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "result"), "points_count")), 5);
    json_decref(answer);
}

static void points_are_found_by_the_sum_of_greatest_similarities(void **state)
{
    (void)state;
    assert_string_equal(FOUND("{" BOTH "}"), "5:4 2:3.5 1:2 3:-2");
    assert_string_equal(FOUND("{" BOTH ", \"limit\": 1}"), "5:4");
    assert_string_equal(FOUND("{" BOTH ", \"offset\": 2}"), "1:2 3:-2");
    assert_string_equal(FOUND("{" BOTH ", \"score_threshold\": 2}"), "5:4 2:3.5 1:2");
    assert_string_equal(FOUND("{" BOTH ", \"limit\": 20000}"), "5:4 2:3.5 1:2 3:-2");
    assert_string_equal(FOUND("{" BOTH ", \"filter\": {\"must\": {\"key\": \"n\", \"match\": {\"value\": 2}}}}"), "2:3.5 3:-2");
    assert_string_equal(FOUND("{\"query\": {\"nearest\": [[0, 1]]}, \"using\": \"colbert\"}"), "2:3 1:1 5:0 3:-1");
    assert_string_equal(FOUND("{\"query\": [0, 1], \"using\": \"colbert\"}"), "2:3 1:1 5:0 3:-1"); /* one vector */
    assert_string_equal(FOUND("{\"query\": 1, \"using\": \"colbert\"}"), "5:4 2:3.5 3:-2"); /* like point 1, without it */
    assert_string_equal(found_at(POINTS "/search", "{\"vector\": {\"name\": \"colbert\", \"vector\": [[0, 1]]}, \"limit\": 2}"),
                        "2:3 1:1");
    json_t *answer = ASK(port, 200, "POST", POINTS "/query/groups", "{" BOTH ", \"group_by\": \"n\"}");
    assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "result"), "groups")), 2);
    json_decref(answer);
}

static void what_dense_vectors_find_is_reranked(void **state)
{
    (void)state;
    assert_string_equal(FOUND("{\"prefetch\": {\"query\": [1, 0], \"using\": \"dense\", \"limit\": 3}, " BOTH "}"), "1:2 3:-2");
    assert_string_equal(FOUND("{\"prefetch\": [{" BOTH ", \"limit\": 1}, {\"query\": [0, 1], \"using\": \"dense\", \"limit\": "
                              "1}], \"query\": {\"fusion\": \"rrf\"}}"),
                        "5:0.5 2:0.5");
}

static void vectors_are_returned_changed_and_deleted(void **state)
{
    (void)state;
    check_vector(POINTS, "2", "colbert", "[[0.0,2.0],[0.0,3.0],[0.5,0.0]]");
    check_vector(POINTS, "5", "colbert", "[[4.0,0.0]]");
    check_vector(POINTS, "4", "colbert", NULL);
    ASK_STATUS(port, 200, "PUT", POINTS "/vectors?wait=true",
               "{\"points\": [{\"id\": 4, \"vector\": {\"colbert\": [[9, 9], [1, 1]]}}]}");
    check_vector(POINTS, "4", "colbert", "[[9.0,9.0],[1.0,1.0]]");
    assert_string_equal(FOUND("{" BOTH ", \"limit\": 1}"), "4:18");
    ASK_STATUS(port, 200, "POST", POINTS "/vectors/delete?wait=true", "{\"points\": [4], \"vector\": [\"colbert\"]}");
    assert_string_equal(FOUND("{" BOTH ", \"limit\": 1}"), "5:4");
    ASK_STATUS(port, 200, "POST", POINTS "/delete?wait=true", "{\"points\": [5, 2]}");
    assert_string_equal(FOUND("{" BOTH "}"), "1:2 3:-2");
}

static void a_vector_without_a_name_may_be_a_multivector(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", PLAIN,
               "{\"vectors\": {\"size\": 2, \"distance\": \"Cosine\", \"multivector_config\": {\"comparator\": \"max_sim\"}}}");
    ASK_STATUS(port, 200, "PUT", PLAIN "/points?wait=true",
               "{\"points\": [{\"id\": 1, \"vector\": [[3, 4], [0, 2]]}, {\"id\": 2, \"vector\": [5, 0]}]}");
    ASK_STATUS(port, 200, "PUT", PLAIN "/points?wait=true", "{\"points\": [{\"id\": 3, \"vector\": [0, -7]}]}");
    check_vector(PLAIN "/points", "1", NULL, "[[0.6,0.8],[0.0,1.0]]");
    check_vector(PLAIN "/points", "3", NULL, "[[0.0,-1.0]]");
    assert_string_equal(found_at(PLAIN "/points/query", "{\"query\": [[1, 0], [0, 5]]}"), "1:1.6 2:1 3:-1");
    json_t *answer = ASK(port, 200, "GET", PLAIN, NULL);
    json_t *params = json_object_get(json_object_get(json_object_get(answer, "result"), "config"), "params");
    json_t *vectors = json_object_get(params, "vectors");
    assert_int_equal(json_integer_value(json_object_get(vectors, "size")), 2);
    assert_non_null(json_object_get(vectors, "multivector_config"));
    json_decref(answer);
}

static void a_vector_may_be_added_and_made_again_without_it(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", TOKENS "/vectors/late",
               "{\"dense\": {\"size\": 3, \"distance\": \"Cosine\", \"multivector_config\": {\"comparator\": \"max_sim\"}}}");
    ASK_STATUS(port, 200, "PUT", POINTS "/vectors?wait=true",
               "{\"points\": [{\"id\": 1, \"vector\": {\"late\": [[1, 0, 0], [0, 0, 2]]}}]}");
    assert_string_equal(FOUND("{\"query\": [[0, 0, 1]], \"using\": \"late\"}"), "1:1");
    ASK_STATUS(port, 200, "DELETE", TOKENS "/vectors/late", NULL);
    ASK_STATUS(port, 200, "PUT", TOKENS "/vectors/late", "{\"dense\": {\"size\": 3, \"distance\": \"Cosine\"}}");
    ASK_STATUS(port, 400, "PUT", POINTS "/vectors?wait=true",
               "{\"points\": [{\"id\": 1, \"vector\": {\"late\": [[1, 0, 0], [0, 0, 2]]}}]}");
}

static void what_is_not_supported_is_refused(void **state)
{
    (void)state;
    static const char *const BAD_VECTORS[] = {
        "[[1, 0], [1]]", "[[]]",        "[[1, 0], 2]", "[[1, \"x\"]]",
        "[[1, 0, 0]]",   "[[1e39, 0]]", "[[1e20, 0]]", "{\"indices\": [1], \"values\": [1]}"};
    ASK_STATUS(port, 400, "PUT", PLAIN,
               "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\", \"multivector_config\": {\"comparator\": \"min\"}}}");
    ASK_STATUS(port, 501, "PUT", PLAIN,
               "{\"vectors\": {\"size\": 2, \"distance\": \"Euclid\", \"multivector_config\": {\"comparator\": \"max_sim\"}}}");
    for (size_t i = 0; i < sizeof BAD_VECTORS / sizeof *BAD_VECTORS; i++) {
        char body[160];
        snprintf(body, sizeof body, "{\"points\": [{\"id\": 1, \"vector\": {\"colbert\": %s}}]}", BAD_VECTORS[i]);
        ASK_STATUS(port, 400, "PUT", POINTS "?wait=true", body);
        snprintf(body, sizeof body, "{\"query\": %s, \"using\": \"colbert\"}", BAD_VECTORS[i]);
        ASK_STATUS(port, 400, "POST", POINTS "/query", body);
    }
    ASK_STATUS(port, 400, "POST", POINTS "/query", "{\"query\": [[1, 0]], \"using\": \"dense\"}");
    ASK_STATUS(port, 400, "PUT", POINTS "?wait=true", "{\"points\": [{\"id\": 1, \"vector\": {\"dense\": [[1, 0]]}}]}");
    ASK_STATUS(port, 501, "POST", POINTS "/query",
               "{\"query\": {\"recommend\": {\"positive\": [1, 2]}}, \"using\": \"colbert\"}");
    ASK_STATUS(port, 501, "POST", POINTS "/query",
               "{\"query\": {\"recommend\": {\"positive\": [[[1, 0]]]}}, \"using\": \"colbert\"}");
    ASK_STATUS(port, 200, "POST", POINTS "/query", "{\"query\": {\"nearest\": [[1, 0]], \"mmr\": {}}, \"using\": \"colbert\"}");
    ASK_STATUS(port, 501, "POST", POINTS "/search/matrix/pairs", "{\"using\": \"colbert\"}");
    ASK_STATUS(port, 404, "POST", POINTS "/query", "{\"query\": 77, \"using\": \"colbert\"}");
    check_vector(POINTS, "1", "colbert", "[[1.0,0.0],[0.0,1.0]]"); /* nothing was changed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_description_has_the_comparator, begin, end),
        cmocka_unit_test_setup_teardown(points_are_found_by_the_sum_of_greatest_similarities, begin, end),
        cmocka_unit_test_setup_teardown(what_dense_vectors_find_is_reranked, begin, end),
        cmocka_unit_test_setup_teardown(vectors_are_returned_changed_and_deleted, begin, end),
        cmocka_unit_test_setup_teardown(a_vector_without_a_name_may_be_a_multivector, begin, end),
        cmocka_unit_test_setup_teardown(a_vector_may_be_added_and_made_again_without_it, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_supported_is_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
