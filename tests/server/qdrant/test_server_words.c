/* Searches by words: texts that vectors are made of stay with their points, and {"text": ..., "model": "bm25"} finds points by
 * their words, alone or fused with a search by vectors. */
#include <stdlib.h>
#include <string.h>

#include <warpwave/model.h>
#include <warpwave/store.h>

#include "server/client.h"
#include "support/models/tiny.h"

#define POINTS "/collections/docs/points"

static server *running;
static int port;

static void with_encoder(server_config *config)
{
    static char path[SCRATCH_PATH_BYTES];
    snprintf(path, sizeof path, "%s", scratch_path("encoder.gguf"));
    config->model_names[0] = "encoder";
    config->model_paths[0] = path;
    config->model_count = 1;
}

/* Points 1 to 4 with texts. */
static int begin(void **state)
{
    scratch_setup(state);
    tiny_write_words("bert", scratch_path("encoder.gguf"));
    running = server_for_test(with_encoder);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 64, \"distance\": \"Cosine\"}}");
    ASK_STATUS(port, 200, "PUT", POINTS,
               "{\"points\": [{\"id\": 1, \"vector\": {\"text\": \"a fox\"}, \"payload\": {\"n\": 1}},"
               "{\"id\": 2, \"vector\": {\"text\": \"dogs\"}, \"payload\": {\"n\": 1}},"
               "{\"id\": 3, \"vector\": {\"text\": \"the fox and the dogs and a zebra\"}, \"payload\": {\"n\": 3}},"
               "{\"id\": 4, \"vector\": {\"text\": \"nothing at all\"}}]}");
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

/* The points of an answer; the caller decrefs the answer. */
static json_t *points_of(const char *body, json_t **answer)
{
    *answer = ASK(port, 200, "POST", POINTS "/query", body);
    return json_object_get(json_object_get(*answer, "result"), "points");
}

static long long id_at(json_t *points, size_t i)
{
    return json_integer_value(json_object_get(json_array_get(points, i), "id"));
}

static double score_at(json_t *points, size_t i)
{
    return json_number_value(json_object_get(json_array_get(points, i), "score"));
}

/* The ids that a query finds, "3 1 2". */
static const char *ids_of(const char *body)
{
    static char text[256];
    json_t *answer, *points = points_of(body, &answer);
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < json_array_size(points); i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld", i > 0 ? " " : "", id_at(points, i));
    json_decref(answer);
    return text;
}

#define WORDS(text)        "\"query\": {\"text\": \"" text "\", \"model\": \"bm25\"}"
#define FOUND_WITH(text)   ids_of("{" WORDS(text) "}")
#define QUERY(words, more) ids_of("{" WORDS(words) ", " more "}")

static void words_find_what_the_library_finds(void **state)
{
    (void)state;
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    ww_results *expected = NULL;
    ww_match match = ww_match_default();
    ww_query query = ww_query_default();
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("served.db"), device, NULL, &store));
    CHECK_OK(ww_store_collection(store, "docs", &docs));
    match.texts = (const char *const[]){"fox dogs"};
    match.mode = WW_MATCH_TEXT;
    query.match = &match;
    query.query_count = 1;
    query.dim = 64;
    query.k = 10;
    query.fetch = WW_FETCH_IDS;
    CHECK_OK(ww_collection_query(docs, &query, &expected));
    json_t *answer, *points = points_of("{" WORDS("fox dogs") ", \"with_payload\": true}", &answer);
    assert_int_equal(ww_results_count(expected, 0), 3);
    assert_int_equal(json_array_size(points), 3);
    for (size_t i = 0; i < 3; i++) {
        const float score = (float)score_at(points, i);
        assert_int_equal(atoll(ww_results_id(expected, 0, (int64_t)i)), id_at(points, i));
        assert_memory_equal(&score, &ww_results_scores(expected, 0)[i], sizeof score);
        assert_int_equal(json_integer_value(json_object_get(json_object_get(json_array_get(points, i), "payload"), "n")),
                         id_at(points, i) == 3 ? 3 : 1);
    }
    json_decref(answer);
    ww_results_destroy(expected);
    ww_collection_destroy(docs);
    ww_store_close(store);
    ww_device_close(device);
}

static void words_are_searched_among_the_rows_of_a_filter(void **state)
{
    (void)state;
    assert_string_equal(FOUND_WITH("fox"), "1 3");
    assert_string_equal(FOUND_WITH("FOX"), "1 3");
    assert_string_equal(FOUND_WITH("wolf"), "");
    assert_string_equal(ids_of("{\"query\": {\"nearest\": {\"text\": \"zebra\", \"model\": \"Qdrant/bm25\"}}}"), "3");
    assert_string_equal(QUERY("fox", "\"filter\": {\"must\": {\"key\": \"n\", \"match\": {\"value\": 3}}}"), "3");
    assert_string_equal(QUERY("fox", "\"limit\": 1"), "1");
    assert_string_equal(QUERY("fox", "\"offset\": 1"), "3");
    assert_string_equal(QUERY("fox", "\"score_threshold\": 1000"), "");
    assert_string_equal(QUERY("fox", "\"prefetch\": {\"query\": {\"text\": \"dogs\"}, \"limit\": 1}"), ""); /* only 2 is left */
    json_t *answer = ASK(port, 200, "POST", POINTS "/query/groups", "{" WORDS("fox dogs") ", \"group_by\": \"n\"}");
    assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "result"), "groups")), 2);
    json_decref(answer);
    ASK_STATUS(port, 400, "POST", POINTS "/query", "{" WORDS("fox") ", \"limit\": 16000, \"offset\": 400}");
    ASK_STATUS(port, 400, "POST", POINTS "/query", "{" WORDS("fox") ", \"using\": \"other\"}");
    ASK_STATUS(port, 400, "PUT", POINTS, "{\"points\": [{\"id\": 9, \"vector\": {\"text\": \"a\", \"model\": \"bm25\"}}]}");
    ASK_STATUS(port, 200, "PUT", "/collections/plain", "{\"vectors\": {\"size\": 1, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/plain/points", "{\"points\": [{\"id\": 1, \"vector\": [1]}]}");
    ASK_STATUS(port, 400, "POST", "/collections/plain/points/query", "{" WORDS("fox") "}"); /* its rows have no texts */
}

static void words_and_vectors_are_fused(void **state)
{
    (void)state;
    json_t *words_answer, *near_answer, *answer;
    json_t *words = points_of("{" WORDS("fox zebra") "}", &words_answer);
    json_t *near = points_of("{\"query\": {\"text\": \"dogs\"}}", &near_answer);
    json_t *fused =
        points_of("{\"query\": {\"fusion\": \"rrf\"}, \"prefetch\": [{" WORDS("fox zebra") "}, {\"query\": "
                                                                                           "{\"text\": \"dogs\"}}]}",
                  &answer);
    assert_int_equal(json_array_size(words), 2);
    assert_int_equal(json_array_size(fused), 4);
    for (size_t i = 0; i < 4; i++) {
        double expected = 0;
        for (size_t rank = 0; rank < 4; rank++) {
            expected += rank < 2 && id_at(words, rank) == id_at(fused, i) ? 1 / (double)(rank + 2) : 0;
            expected += id_at(near, rank) == id_at(fused, i) ? 1 / (double)(rank + 2) : 0;
        }
        assert_true((float)expected == (float)score_at(fused, i));
        assert_true(i == 0 || score_at(fused, i - 1) >= score_at(fused, i));
    }
    json_decref(words_answer);
    json_decref(near_answer);
    json_decref(answer);
    assert_string_equal(ids_of("{\"query\": {\"fusion\": \"dbsf\"}, \"limit\": 1, \"prefetch\": [{" WORDS("zebra") "}, {" WORDS(
                            "zebra dogs") "}]}"),
                        "3");
}

/* {"points": [{"id": `id`, "vector": [1, 1, ...]}]} */
static void write_numbers(const char *path, int id)
{
    char body[1024];
    size_t length = (size_t)snprintf(body, sizeof body, "{\"points\": [{\"id\": %d, \"vector\": [1", id);
    for (int i = 1; i < 64; i++)
        length += (size_t)snprintf(body + length, sizeof body - length, ",1");
    snprintf(body + length, sizeof body - length, "]}]}");
    ASK_STATUS(port, 200, "PUT", path, body);
}

static void a_text_lives_as_long_as_its_point_has_it(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", POINTS, "{\"points\": [{\"id\": 1, \"vector\": {\"text\": \"a wolf\"}}]}");
    assert_string_equal(FOUND_WITH("fox"), "3");
    assert_string_equal(FOUND_WITH("wolf"), "1");
    ASK_STATUS(port, 200, "POST", POINTS "/payload", "{\"payload\": {\"n\": 7}, \"points\": [1]}");
    write_numbers(POINTS "/vectors", 1);
    assert_string_equal(FOUND_WITH("wolf"), "1"); /* only the vector is new */
    ASK_STATUS(port, 200, "PUT", POINTS "/vectors", "{\"points\": [{\"id\": 1, \"vector\": {\"text\": \"a bear\"}}]}");
    assert_string_equal(FOUND_WITH("wolf bear"), "1");
    assert_string_equal(FOUND_WITH("wolf"), "");
    write_numbers(POINTS, 1);
    assert_string_equal(FOUND_WITH("bear"), ""); /* the whole point is new */
    ASK_STATUS(port, 200, "PUT", POINTS,         /* the same id twice: the last one is kept, with its text */
               "{\"points\": [{\"id\": 5, \"vector\": {\"text\": \"one\"}}, {\"id\": 6, \"vector\": {\"text\": \"two\"}}, "
               "{\"id\": 5, \"vector\": {\"text\": \"three\"}}]}");
    assert_string_equal(FOUND_WITH("one"), "");
    assert_string_equal(FOUND_WITH("two"), "6");
    assert_string_equal(FOUND_WITH("three"), "5");
    ASK_STATUS(port, 200, "POST", POINTS "/delete", "{\"points\": [5]}");
    assert_string_equal(FOUND_WITH("three"), "");
}

static void texts_have_no_prefix_when_words_are_searched(void **state)
{
    (void)state;
    ww_device *device = NULL;
    ww_model *encoder = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_model_open(scratch_path("encoder.gguf"), device, NULL, &encoder));
    ASK_STATUS(port, 200, "PUT", "/collections/other", "{\"vectors\": {\"size\": 64, \"distance\": \"Dot\"}}");
    server_keep_prefixes("other", encoder, "ask: ", "passage: ");
    ASK_STATUS(port, 200, "PUT", "/collections/other/points", "{\"points\": [{\"id\": 1, \"vector\": {\"text\": \"a fox\"}}]}");
    static const char *const words[] = {"fox", "passage:"};
    for (size_t i = 0; i < 2; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"query\": {\"text\": \"%s\", \"model\": \"bm25\"}}", words[i]);
        json_t *answer = ASK(port, 200, "POST", "/collections/other/points/query", body);
        assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "result"), "points")), 1 - i);
        json_decref(answer);
    }
    ww_model_close(encoder);
    ww_device_close(device);
}

static void vectors_with_names_have_texts_of_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *words, *using;
        size_t found;
    } cases[] = {{"fox", "title", 1}, {"fox", "body", 0}, {"dogs", "body", 1}, {"dogs", "title", 0}};
    ASK_STATUS(port, 200, "PUT", "/collections/named",
               "{\"vectors\": {\"title\": {\"size\": 64, \"distance\": \"Dot\"}, \"body\": {\"size\": 64, \"distance\": "
               "\"Dot\"}}}");
    ASK_STATUS(port, 200, "PUT", "/collections/named/points",
               "{\"points\": [{\"id\": 1, \"vector\": {\"title\": {\"text\": \"a wolf\"}, \"body\": {\"text\": \"dogs\"}}}]}");
    ASK_STATUS(port, 200, "PUT", "/collections/named/points/vectors",
               "{\"points\": [{\"id\": 1, \"vector\": {\"title\": {\"text\": \"a fox\"}}}]}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"query\": {\"text\": \"%s\", \"model\": \"bm25\"}, \"using\": \"%s\"}", cases[i].words,
                 cases[i].using);
        json_t *answer = ASK(port, 200, "POST", "/collections/named/points/query", body);
        assert_int_equal(json_array_size(json_object_get(json_object_get(answer, "result"), "points")), cases[i].found);
        json_decref(answer);
    }
}

/* Asks with a body in which 2,000 words replace %s, and returns the number of texts that were cut; -1: the answer has none. */
static long long cut_of(const char *method, const char *path, const char *format)
{
    enum { WORDS_COUNT = 2000 };
    static char words[5 * WORDS_COUNT + 1], body[sizeof words + 512];
    for (size_t i = 0; i < WORDS_COUNT; i++)
        memcpy(words + 5 * i, "dogs ", 6);
    const char *place = strstr(format, "%s");
    snprintf(body, sizeof body, "%.*s%s%s", (int)(place ? place - format : (long)strlen(format)), format, place ? words : "",
             place ? place + 2 : "");
    json_t *answer = ASK(port, 200, method, path, body);
    const json_t *usage = json_object_get(answer, "usage");
    const json_t *cut = json_object_get(usage ? usage : answer, "texts_cut");
    const long long count = cut ? json_integer_value(cut) : -1;
    json_decref(answer);
    return count;
}

static void texts_that_are_cut_are_counted(void **state)
{
    (void)state;
    assert_int_equal(
        cut_of("PUT", POINTS,
               "{\"points\": [{\"id\": 7, \"vector\": {\"text\": \"%s\"}}, {\"id\": 8, \"vector\": {\"text\": \"a\"}}]}"),
        1);
    assert_int_equal(cut_of("PUT", POINTS, "{\"points\": [{\"id\": 7, \"vector\": {\"text\": \"a fox\"}}]}"), -1);
    assert_int_equal(cut_of("POST", POINTS "/query", "{\"query\": {\"text\": \"%s\"}}"), 1);
    assert_int_equal(cut_of("POST", POINTS "/query", "{\"query\": {\"text\": \"dogs\"}}"), -1);
    assert_int_equal(cut_of("POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": [\"%s\", \"a\"]}"), 1);
    assert_int_equal(cut_of("POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": [\"a\"]}"), 0);
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(words_find_what_the_library_finds),
        SERVED(words_are_searched_among_the_rows_of_a_filter),
        SERVED(words_and_vectors_are_fused),
        SERVED(a_text_lives_as_long_as_its_point_has_it),
        SERVED(texts_have_no_prefix_when_words_are_searched),
        SERVED(vectors_with_names_have_texts_of_their_own),
        SERVED(texts_that_are_cut_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
