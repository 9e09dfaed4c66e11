/* Sparse vectors of Qdrant's API: created beside dense ones or alone, written, searched, fused, returned, changed and deleted.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/client.h"

#define HYBRID "/collections/hybrid"
#define POINTS HYBRID "/points"

static server *running;
static int port;

/* Four points: 1 to 3 have both vectors, 4 only the dense one. */
static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(NULL);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", HYBRID,
               "{\"vectors\": {\"dense\": {\"size\": 2, \"distance\": \"Dot\"}}, \"sparse_vectors\": {\"words\": {}, \"rare\": "
               "{\"modifier\": \"idf\", \"index\": {\"on_disk\": true}}}}");
    ASK_STATUS(
        port, 200, "PUT", POINTS "?wait=true",
        "{\"points\": ["
        "{\"id\": 1, \"payload\": {\"n\": 1}, \"vector\": {\"dense\": [1, 0], \"words\": {\"indices\": [4294967295, 3], "
        "\"values\": [0.5, 2]}, \"rare\": {\"indices\": [1, 2], \"values\": [1, 1]}}},"
        "{\"id\": 2, \"payload\": {\"n\": 2}, \"vector\": {\"dense\": [0, 1], \"words\": {\"indices\": [3, 7], \"values\": "
        "[1, -4]}, \"rare\": {\"indices\": [1], \"values\": [1]}}},"
        "{\"id\": 3, \"payload\": {\"n\": 2}, \"vector\": {\"dense\": [1, 1], \"words\": {\"indices\": [7], \"values\": "
        "[1]}}},"
        "{\"id\": 4, \"vector\": {\"dense\": [2, 0]}}]}");
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
#define WORDS       "\"query\": {\"indices\": [7, 3], \"values\": [1, 2]}, \"using\": \"words\""

static void the_description_has_sparse_vectors(void **state)
{
    (void)state;
    json_t *answer = ASK(port, 200, "GET", HYBRID, NULL);
    json_t *params = json_object_get(json_object_get(json_object_get(answer, "result"), "config"), "params");
    json_t *sparse = json_object_get(params, "sparse_vectors");
    assert_int_equal(json_object_size(json_object_get(params, "vectors")), 1);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json_object_get(params, "vectors"), "dense"), "size")),
                     2);
    assert_int_equal(json_object_size(sparse), 2);
    assert_int_equal(json_object_size(json_object_get(sparse, "words")), 0);
    assert_string_equal(json_string_value(json_object_get(json_object_get(sparse, "rare"), "modifier")), "idf");
    assert_true(json_is_true(json_object_get(json_object_get(json_object_get(sparse, "rare"), "index"), "on_disk")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "result"), "points_count")), 4);
    json_decref(answer);
}

static void points_are_found_by_common_indices(void **state)
{
    (void)state;
    assert_string_equal(FOUND("{" WORDS "}"), "1:4 3:1 2:-2");
    assert_string_equal(FOUND("{" WORDS ", \"limit\": 1}"), "1:4");
    assert_string_equal(FOUND("{" WORDS ", \"offset\": 1}"), "3:1 2:-2");
    assert_string_equal(FOUND("{" WORDS ", \"score_threshold\": 1}"), "1:4 3:1");
    assert_string_equal(FOUND("{" WORDS ", \"limit\": 20000}"), "1:4 3:1 2:-2");
    assert_string_equal(FOUND("{" WORDS ", \"filter\": {\"must\": {\"key\": \"n\", \"match\": {\"value\": 2}}}}"), "3:1 2:-2");
    assert_string_equal(FOUND("{\"query\": {\"nearest\": {\"indices\": [4294967295], \"values\": [2]}}, \"using\": \"words\"}"),
                        "1:1");
    assert_string_equal(FOUND("{\"query\": {\"indices\": [9], \"values\": [1]}, \"using\": \"words\"}"), "");
    assert_string_equal(FOUND("{\"query\": {\"indices\": [], \"values\": []}, \"using\": \"words\"}"), "");
    assert_string_equal(FOUND("{\"query\": 1, \"using\": \"words\"}"), "2:2"); /* like point 1, without it */
    assert_string_equal(found_at(POINTS "/search",
                                 "{\"vector\": {\"name\": \"words\", \"vector\": {\"indices\": [7], \"values\": [2]}}, "
                                 "\"limit\": 5}"),
                        "3:2 2:-8");
    json_t *answer = ASK(port, 200, "POST", POINTS "/query/groups", "{" WORDS ", \"group_by\": \"n\"}");
    assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "result"), "groups")), 2);
    json_decref(answer);
}

/* With two points that have it of two, and one of two: ln(0.5 / 2.5 + 1) and ln(1.5 / 1.5 + 1). */
static void idf_weighs_rare_indices_by_the_live_points(void **state)
{
    (void)state;
    char expected[64];
    static const char query[] = "{\"query\": {\"indices\": [1, 2], \"values\": [1, 1]}, \"using\": \"rare\"}";
    snprintf(expected, sizeof expected, "1:%.4g 2:%.4g", log(1.2) + log(2.0), log(1.2));
    assert_string_equal(FOUND(query), expected);
    ASK_STATUS(port, 200, "POST", POINTS "/delete?wait=true", "{\"points\": [2]}");
    snprintf(expected, sizeof expected, "1:%.4g", 2 * log(0.5 / 1.5 + 1));
    assert_string_equal(FOUND(query), expected);
}

/* The sparse vector of a point as JSON text; the caller frees it. */
static char *vector_of(const char *id, const char *name)
{
    char body[160];
    snprintf(body, sizeof body, "{\"ids\": [%s], \"with_vector\": true}", id);
    json_t *answer, *points = points_of(POINTS, body, &answer);
    char *text = json_dumps(json_object_get(json_object_get(json_array_get(points, 0), "vector"), name),
                            JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    json_decref(answer);
    return text;
}

/* A document fills the vector and asks for it, with the indices that fastembed's model gives words. */
static void a_document_is_made_into_the_weights_of_its_words(void **state)
{
    (void)state;
#define TEXT(text, options) "{\"text\": \"" text "\", \"model\": \"Qdrant/bm25\"" options "}"
    ASK_STATUS(port, 200, "PUT", POINTS "?wait=true",
               "{\"points\": [{\"id\": 8, \"vector\": {\"rare\": " TEXT(
                   "Hello, hello test", ", \"options\": {\"k\": 1, \"b\": 0}") "}}, {\"id\": 9, \"vector\": {\"dense\": [0, "
                                                                               "0], \"rare\": " TEXT("a fox", "") "}}]}");
    char *made = vector_of("8", "rare");
    assert_string_equal(made, "{\"indices\":[613153351,1167338989],\"values\":[1.33333,1.0]}");
    free(made);
    assert_string_equal(FOUND("{\"query\": " TEXT("TEST", "") ", \"using\": \"rare\", \"score_threshold\": 1}"), "8:1.204");
    ASK_STATUS(port, 400, "PUT", POINTS,
               "{\"points\": [{\"id\": 8, \"vector\": {\"rare\": " TEXT("x", ", \"options\": {\"stemmer\": 1}") "}}]}");
    ASK_STATUS(port, 400, "PUT", POINTS,
               "{\"points\": [{\"id\": 8, \"vector\": {\"rare\": " TEXT("x", ", \"options\": {\"b\": 7}") "}}]}");
    ASK_STATUS(port, 400, "PUT", POINTS, "{\"points\": [{\"id\": 8, \"vector\": {\"dense\": " TEXT("x", "") "}}]}");
    ASK_STATUS(port, 200, "POST", POINTS "/delete?wait=true", "{\"points\": [8, 9]}");
}

static void hits_are_fused_with_those_of_dense_vectors(void **state)
{
    (void)state;
#define BOTH "\"prefetch\": [{\"query\": [0, 1], \"using\": \"dense\", \"limit\": 2}, {" WORDS ", \"limit\": 2}]"
    assert_string_equal(FOUND("{" BOTH ", \"query\": {\"fusion\": \"rrf\"}}"), "3:0.6667 2:0.5 1:0.5");
    json_t *answer, *points = points_of(POINTS "/query", "{" BOTH ", \"query\": {\"fusion\": \"dbsf\"}}", &answer);
    assert_int_equal(json_array_size(points), 3);
    json_decref(answer);
    assert_string_equal(FOUND("{\"prefetch\": {\"query\": [0, 1], \"using\": \"dense\", \"limit\": 2}, " WORDS "}"),
                        "3:1 2:-2"); /* rescored */
}

static void check_vector(const char *id, const char *name, const char *expected)
{
    char *text = vector_of(id, name);
    if (expected)
        assert_string_equal(text, expected);
    else
        assert_null(text);
    free(text);
}

static void sparse_vectors_are_returned_changed_and_deleted(void **state)
{
    (void)state;
    check_vector("1", "words", "{\"indices\":[3,4294967295],\"values\":[2.0,0.5]}"); /* the indices ascend */
    check_vector("4", "words", NULL);
    ASK_STATUS(port, 200, "PUT", POINTS "/vectors?wait=true",
               "{\"points\": [{\"id\": 4, \"vector\": {\"words\": {\"indices\": [7], \"values\": [9]}}}]}");
    assert_string_equal(FOUND("{" WORDS "}"), "4:9 1:4 3:1 2:-2");
    ASK_STATUS(port, 200, "PUT", POINTS "?wait=true", "{\"points\": [{\"id\": 1, \"vector\": {\"dense\": [1, 0]}}]}");
    assert_string_equal(FOUND("{" WORDS "}"), "4:9 3:1 2:-2"); /* an upsert replaces all vectors */
    ASK_STATUS(port, 200, "POST", POINTS "/vectors/delete?wait=true", "{\"points\": [3], \"vector\": [\"words\"]}");
    assert_string_equal(FOUND("{" WORDS "}"), "4:9 2:-2");
    json_t *answer = ASK(port, 200, "POST", POINTS "/count", "{\"filter\": {\"must\": {\"has_vector\": \"words\"}}}");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "result"), "count")), 2);
    json_decref(answer);
}

/* As langchain-qdrant makes it: a dense vector without a name beside a sparse one. */
static void a_vector_without_a_name_may_stand_beside(void **state)
{
    (void)state;
    ASK_STATUS(
        port, 200, "PUT", "/collections/chain",
        "{\"vectors\": {\"\": {\"size\": 2, \"distance\": \"Cosine\"}}, \"sparse_vectors\": {\"langchain-sparse\": {\"index\": "
        "{\"on_disk\": false}}}}");
    ASK_STATUS(
        port, 200, "PUT", "/collections/chain/points",
        "{\"points\": [{\"id\": 1, \"vector\": {\"\": [1, 0], \"langchain-sparse\": {\"indices\": [5], \"values\": [1]}}}, "
        "{\"id\": 2, \"vector\": {\"\": [0, 1], \"langchain-sparse\": {\"indices\": [5, 6], \"values\": [2, 1]}}}]}");
    assert_string_equal(
        found_at("/collections/chain/points/query",
                 "{\"prefetch\": [{\"query\": [1, 0], \"using\": \"\"}, {\"query\": {\"indices\": [5], \"values\": "
                 "[1]}, \"using\": \"langchain-sparse\"}], \"query\": {\"fusion\": \"rrf\"}}"),
        "1:0.8333 2:0.8333");
    assert_string_equal(found_at("/collections/chain/points/query", "{\"query\": [0, 1]}"), "2:1 1:0");
    json_t *answer = ASK(port, 200, "GET", "/collections/chain", NULL);
    json_t *params = json_object_get(json_object_get(json_object_get(answer, "result"), "config"), "params");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(params, "vectors"), "size")), 2);
    assert_non_null(json_object_get(json_object_get(params, "sparse_vectors"), "langchain-sparse"));
    json_decref(answer);
    ASK_STATUS(port, 200, "DELETE", "/collections/chain", NULL); /* and nothing of it is left */
    ASK_STATUS(port, 200, "PUT", "/collections/chain", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    answer = ASK(port, 200, "GET", "/collections/chain", NULL);
    params = json_object_get(json_object_get(json_object_get(answer, "result"), "config"), "params");
    assert_null(json_object_get(params, "sparse_vectors"));
    json_decref(answer);
}

static void a_collection_may_have_only_sparse_vectors_or_get_them_later(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", "/collections/alone", "{\"sparse_vectors\": {\"s\": {}}}");
    ASK_STATUS(port, 200, "PUT", "/collections/alone/points",
               "{\"batch\": {\"ids\": [1, 2], \"vectors\": {\"s\": [{\"indices\": [1], \"values\": [1]}, {\"indices\": [1], "
               "\"values\": [3]}]}}}");
    assert_string_equal(
        found_at("/collections/alone/points/query", "{\"query\": {\"indices\": [1], \"values\": [2]}, \"using\": \"s\"}"),
        "2:6 1:2");
    ASK_STATUS(port, 200, "PUT", "/collections/plain", "{\"vectors\": {\"size\": 1, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/plain/points", "{\"points\": [{\"id\": 1, \"vector\": [1]}]}");
    ASK_STATUS(port, 200, "PUT", "/collections/plain/vectors/s", "{\"sparse\": {\"modifier\": \"idf\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/plain/points/vectors",
               "{\"points\": [{\"id\": 1, \"vector\": {\"s\": {\"indices\": [1], \"values\": [1]}}}]}");
    char expected[32];
    snprintf(expected, sizeof expected, "1:%.4g", log(0.5 / 1.5 + 1));
    assert_string_equal(
        found_at("/collections/plain/points/query", "{\"query\": {\"indices\": [1], \"values\": [1]}, \"using\": \"s\"}"),
        expected);
    ASK_STATUS(port, 200, "DELETE", "/collections/plain/vectors/s", NULL);
    ASK_STATUS(port, 400, "POST", "/collections/plain/points/query",
               "{\"query\": {\"indices\": [1], \"values\": [1]}, \"using\": \"s\"}");
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *path, *body;
    } cases[] = {
        {400, POINTS "/query", "{\"query\": {\"indices\": [1, 1], \"values\": [1, 2]}, \"using\": \"words\"}"},
        {400, POINTS "/query", "{\"query\": {\"indices\": [1], \"values\": [1, 2]}, \"using\": \"words\"}"},
        {400, POINTS "/query", "{\"query\": {\"indices\": [-1], \"values\": [1]}, \"using\": \"words\"}"},
        {400, POINTS "/query", "{\"query\": {\"indices\": [4294967296], \"values\": [1]}, \"using\": \"words\"}"},
        {400, POINTS "/query", "{\"query\": {\"indices\": [1.5], \"values\": [1]}, \"using\": \"words\"}"},
        {400, POINTS "/query", "{\"query\": {\"indices\": [1], \"values\": [1e300]}, \"using\": \"words\"}"},
        {400, POINTS "/query", "{\"query\": {\"indices\": [1], \"values\": [\"1\"]}, \"using\": \"words\"}"},
        {400, POINTS "/query", "{\"query\": {\"indices\": [1]}, \"using\": \"words\"}"},
        {400, POINTS "/query", "{\"query\": {\"indices\": [1], \"values\": [1]}, \"using\": \"dense\"}"},
        {400, POINTS "/query", "{\"query\": {\"indices\": [1], \"values\": [1]}, \"using\": \"other\"}"},
        {400, POINTS "/query", "{\"query\": [1, 0], \"using\": \"words\"}"},
        {400, POINTS "/query", "{\"query\": [1], \"using\": \"words\"}"},
        {404, POINTS "/query", "{\"query\": 99, \"using\": \"words\"}"},
        {400, POINTS "/query", "{\"query\": {\"recommend\": {\"positive\": [[1, 0]]}}, \"using\": \"words\"}"},
        {404, POINTS "/query", "{\"query\": {\"recommend\": {\"positive\": [1, 99]}}, \"using\": \"words\"}"},
        {501, POINTS "/search/matrix/pairs", "{\"using\": \"words\"}"},
    };
    static const char *const wrong[] = {
        "{\"points\": [{\"id\": 9, \"vector\": {\"words\": {\"indices\": [1, 1], \"values\": [1, 2]}}}]}",
        "{\"points\": [{\"id\": 9, \"vector\": {\"words\": [1]}}]}",
        "{\"points\": [{\"id\": 9, \"vector\": {\"dense\": {\"indices\": [1], \"values\": [1]}}}]}",
        "{\"points\": [{\"id\": 9, \"vector\": {\"indices\": [1], \"values\": [1]}}]}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ASK_STATUS(port, cases[i].status, "POST", cases[i].path, cases[i].body);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ASK_STATUS(port, 400, "PUT", POINTS, wrong[i]);
    ASK_STATUS(port, 400, "PUT", "/collections/x", "{\"sparse_vectors\": {\"s\": {\"modifier\": \"other\"}}}");
    ASK_STATUS(port, 400, "PUT", "/collections/x", "{\"sparse_vectors\": {\"s\": 1}}");
    ASK_STATUS(port, 400, "PUT", "/collections/x", "{\"sparse_vectors\": [1]}");
    ASK_STATUS(port, 400, "PUT", "/collections/x", "{\"sparse_vectors\": {\"\": {}}}");
    ASK_STATUS(port, 400, "PUT", "/collections/x",
               "{\"vectors\": {\"s\": {\"size\": 1, \"distance\": \"Dot\"}}, \"sparse_vectors\": {\"s\": {}}}");
    assert_string_equal(FOUND("{" WORDS "}"), "1:4 3:1 2:-2");
}

static void examples_may_be_sparse(void **state)
{
    (void)state;
    /* the mean of 1 and 2 has 3: 1.5, 7: -2, 4294967295: 0.25 */
    assert_string_equal(
        FOUND("{\"query\": {\"recommend\": {\"positive\": [{\"indices\": [3, 4294967295], \"values\": [2, 0.5]}, 2]}}, "
              "\"using\": \"words\"}"),
        "1:3.125 3:-2");
    assert_string_equal(FOUND("{\"query\": {\"recommend\": {\"positive\": [1], \"negative\": [3]}}, \"using\": \"words\"}"),
                        "2:8");
    /* the sums, and 0 without a common index */
    assert_string_equal(FOUND("{\"query\": {\"recommend\": {\"positive\": [{\"indices\": [3], \"values\": [1]}], \"negative\": "
                              "[{\"indices\": [7], \"values\": [1]}], \"strategy\": \"sum_scores\"}}, \"using\": \"words\"}"),
                        "2:5 1:2 3:-1");
    assert_string_equal(FOUND("{\"query\": {\"recommend\": {\"positive\": [{\"indices\": [3], \"values\": [1]}], \"strategy\": "
                              "\"best_score\"}}, \"using\": \"words\"}"),
                        "1:0.8333 2:0.75 3:0.5");
    assert_string_equal(
        FOUND(
            "{\"query\": {\"discover\": {\"target\": {\"indices\": [3], \"values\": [1]}, \"context\": {\"positive\": "
            "{\"indices\": [7], \"values\": [1]}, \"negative\": {\"indices\": [3], \"values\": [1]}}}}, \"using\": \"words\"}"),
        "3:1.5 1:-0.1667 2:-0.25");
    assert_string_equal(FOUND("{\"query\": {\"context\": [{\"positive\": {\"indices\": [7], \"values\": [1]}, \"negative\": "
                              "{\"indices\": [8], \"values\": [1]}}]}, \"using\": \"words\"}"),
                        "3:0 1:-1.192e-07 2:-0.8");
    /* 1 is the nearest; with all diversity 3, which has nothing in common with it, comes before 2 */
    assert_string_equal(
        FOUND("{\"query\": {\"nearest\": {\"indices\": [3, 7], \"values\": [2, 1]}, \"mmr\": {\"diversity\": 1}}, "
              "\"using\": \"words\"}"),
        "1:4 3:1 2:-2");
    assert_string_equal(
        FOUND("{\"query\": {\"nearest\": {\"indices\": [3, 7], \"values\": [2, 1]}, \"mmr\": {\"diversity\": 0}}, "
              "\"using\": \"words\"}"),
        "1:4 3:1 2:-2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_description_has_sparse_vectors, begin, end),
        cmocka_unit_test_setup_teardown(points_are_found_by_common_indices, begin, end),
        cmocka_unit_test_setup_teardown(idf_weighs_rare_indices_by_the_live_points, begin, end),
        cmocka_unit_test_setup_teardown(a_document_is_made_into_the_weights_of_its_words, begin, end),
        cmocka_unit_test_setup_teardown(hits_are_fused_with_those_of_dense_vectors, begin, end),
        cmocka_unit_test_setup_teardown(sparse_vectors_are_returned_changed_and_deleted, begin, end),
        cmocka_unit_test_setup_teardown(a_vector_without_a_name_may_stand_beside, begin, end),
        cmocka_unit_test_setup_teardown(a_collection_may_have_only_sparse_vectors_or_get_them_later, begin, end),
        cmocka_unit_test_setup_teardown(examples_may_be_sparse, begin, end),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
