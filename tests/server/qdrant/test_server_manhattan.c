/* Searches by Manhattan distance, beside a reference that compares every point. */
#include <math.h>
#include <string.h>

#include "server/client.h"

enum { POINTS = 300, DIM = 5 };

static server *running;
static int port;
static float vectors[POINTS][DIM];

#define GRID "/collections/grid"

/* Coordinates of the points are small integers and halves, so distances are exact, and many are equal. */
static void make_vectors(void)
{
    uint32_t seed = 7;
    for (int i = 0; i < POINTS; i++)
        for (int k = 0; k < DIM; k++) {
            seed = seed * 1664525 + 1013904223;
            vectors[i][k] = (float)((int)(seed >> 28) - 8) / 2;
        }
}

static json_t *vector_of(int number)
{
    json_t *list = json_array();
    for (int k = 0; k < DIM; k++)
        json_array_append_new(list, json_real((double)vectors[number][k]));
    return list;
}

static int begin(void **state)
{
    scratch_setup(state);
    running = server_for_test(NULL);
    port = server_port(running);
    make_vectors();
    ASK_STATUS(port, 200, "PUT", GRID, "{\"vectors\": {\"size\": 5, \"distance\": \"Manhattan\"}}");
    json_t *points = json_array();
    for (int i = 0; i < POINTS; i++)
        json_array_append_new(points, json_pack("{s:i, s:o, s:{s:i}}", "id", i, "vector", vector_of(i), "payload", "n", i % 3));
    json_t *body = json_pack("{s:o}", "points", points);
    char *text = json_dumps(body, 0);
    ASK_STATUS(port, 200, "PUT", GRID "/points", text);
    free(text);
    json_decref(body);
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

static double distance(const float *a, const float *b)
{
    double sum = 0;
    for (int k = 0; k < DIM; k++)
        sum += fabs((double)a[k] - (double)b[k]);
    return sum;
}

/* The number of the next point after `last` (-1: none) in the order of distances, then of ids; only each third with `thirds`.
 */
static int next_of(const float *query, int last, bool thirds)
{
    int best = -1;
    for (int i = 0; i < POINTS; i++) {
        const double d = distance(query, vectors[i]);
        const double before = last < 0 ? -1 : distance(query, vectors[last]);
        const bool after = d > before || (d == before && i > last);
        if ((!thirds || i % 3 == 1) && after && (best < 0 || d < distance(query, vectors[best])))
            best = i;
    }
    return best;
}

/* Asks for the nearest to a point's vector, and compares all hits with the reference. */
static void check_nearest(int number, const char *more, int skipped, bool thirds)
{
    char body[512];
    json_t *list = vector_of(number);
    char *vector = json_dumps(list, 0);
    snprintf(body, sizeof body, "{\"query\": %s%s}", vector, more);
    json_t *answer = ASK(port, 200, "POST", GRID "/points/query", body);
    const json_t *points = json_object_get(json_object_get(answer, "result"), "points");
    assert_true(json_array_size(points) > 0);
    int last = -1;
    for (int i = 0; i < skipped; i++)
        last = next_of(vectors[number], last, thirds);
    for (size_t i = 0; i < json_array_size(points); i++) {
        const json_t *hit = json_array_get(points, i);
        last = next_of(vectors[number], last, thirds);
        assert_int_equal(json_integer_value(json_object_get(hit, "id")), last);
        const double score = json_number_value(json_object_get(hit, "score")),
                     wanted = distance(vectors[number], vectors[last]);
        assert_true(fabs(score - wanted) < 1e-6);
    }
    json_decref(answer);
    free(vector);
    json_decref(list);
}

static void every_search_is_that_of_the_reference(void **state)
{
    (void)state;
    for (int number = 0; number < 12; number++) {
        check_nearest(number, ", \"limit\": 300", 0, false);
        check_nearest(number, ", \"limit\": 10, \"offset\": 7", 7, false);
        check_nearest(number, ", \"limit\": 20, \"filter\": {\"must\": [{\"key\": \"n\", \"match\": {\"value\": 1}}]}", 0,
                      true);
        check_nearest(number,
                      ", \"limit\": 20, \"prefetch\": {\"limit\": 300, \"filter\": {\"must\": [{\"key\": \"n\", \"match\": "
                      "{\"value\": 1}}]}}",
                      0, true);
    }
}

static void it_is_described_and_kept(void **state)
{
    (void)state;
    server_test_end(running);
    running = server_for_test(NULL);
    port = server_port(running);
    json_t *answer = ASK(port, 200, "GET", GRID, NULL);
    const json_t *config = json_object_get(json_object_get(answer, "result"), "config");
    const json_t *params = json_object_get(json_object_get(config, "params"), "vectors");
    assert_string_equal(json_string_value(json_object_get(params, "distance")), "Manhattan");
    json_decref(answer);
    check_nearest(3, ", \"limit\": 10", 0, false);
    ASK_STATUS(port, 200, "DELETE", GRID, NULL);
    ASK_STATUS(port, 200, "PUT", GRID, "{\"vectors\": {\"size\": 5, \"distance\": \"Euclid\"}}");
    answer = ASK(port, 200, "GET", GRID, NULL);
    config = json_object_get(json_object_get(answer, "result"), "config");
    params = json_object_get(json_object_get(config, "params"), "vectors");
    assert_string_equal(json_string_value(json_object_get(params, "distance")), "Euclid");
    json_decref(answer);
}

/* The ids of an answer's points, "3 1". */
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

#define LINE "/collections/line"

/* (3, 3) is nearer than (0, 5) by Euclid, and farther by Manhattan. */
static void other_searches_use_it_too(void **state)
{
    (void)state;
    ASK_STATUS(
        port, 200, "PUT", LINE,
        "{\"vectors\": {\"a\": {\"size\": 2, \"distance\": \"Manhattan\"}, \"e\": {\"size\": 2, \"distance\": \"Euclid\"}}}");
    ASK_STATUS(
        port, 200, "PUT", LINE "/points",
        "{\"points\": [{\"id\": 1, \"vector\": {\"a\": [3, 3], \"e\": [3, 3]}}, {\"id\": 2, \"vector\": {\"a\": [0, 5], \"e\": "
        "[0, 5]}}, {\"id\": 3, \"vector\": {\"a\": [9, 9], \"e\": [9, 9]}}]}");
    assert_string_equal(ids_of(LINE "/points/query", "{\"query\": [0, 0], \"using\": \"a\", \"limit\": 2}"), "2 1");
    assert_string_equal(ids_of(LINE "/points/query", "{\"query\": [0, 0], \"using\": \"e\", \"limit\": 2}"), "1 2");
    assert_string_equal(ids_of(LINE "/points/query", "{\"query\": [0, 0], \"using\": \"a\", \"score_threshold\": 5.5}"), "2");
    assert_string_equal(ids_of(LINE "/points/query",
                               "{\"query\": {\"recommend\": {\"positive\": [[0, 0]], \"strategy\": \"best_score\"}},"
                               " \"using\": \"a\"}"),
                        "2 1 3");
    assert_string_equal(ids_of(LINE "/points/query",
                               "{\"query\": {\"discover\": {\"target\": [0, 0], \"context\": [{\"positive\": [9, 9],"
                               " \"negative\": [0, 4]}]}}, \"using\": \"a\"}"),
                        "3 2 1");
    assert_string_equal(ids_of(LINE "/points/query",
                               "{\"query\": {\"fusion\": \"rrf\"}, \"prefetch\": [{\"query\": [0, 0], \"using\": "
                               "\"a\", \"limit\": 1}, {\"query\": [0, 0], \"using\": \"a\", \"limit\": 3}]}"),
                        "2 1 3");
    ASK_STATUS(port, 501, "POST", LINE "/points/query", "{\"query\": {\"nearest\": [0, 0], \"mmr\": {}}, \"using\": \"a\"}");
    json_t *answer = ASK(port, 200, "POST", LINE "/points/search/matrix/pairs", "{\"using\": \"a\", \"limit\": 1}");
    const json_t *pairs = json_object_get(json_object_get(answer, "result"), "pairs");
    assert_int_equal(json_array_size(pairs), 3);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(pairs, 0), "b")), 2);
    assert_true(fabs(json_number_value(json_object_get(json_array_get(pairs, 0), "score")) - 5) < 1e-6);
    json_decref(answer);
    ASK_STATUS(port, 200, "POST", LINE "/points/search/matrix/offsets", "{\"using\": \"a\"}");
    ASK_STATUS(port, 200, "PUT", LINE "/vectors/b", "{\"size\": 1, \"distance\": \"Manhattan\"}");
    answer = ASK(port, 200, "GET", LINE, NULL);
    const json_t *config = json_object_get(json_object_get(answer, "result"), "config");
    const json_t *added = json_object_get(json_object_get(json_object_get(config, "params"), "vectors"), "b");
    assert_string_equal(json_string_value(json_object_get(added, "distance")), "Manhattan");
    json_decref(answer);
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(every_search_is_that_of_the_reference),
        SERVED(it_is_described_and_kept),
        SERVED(other_searches_use_it_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
