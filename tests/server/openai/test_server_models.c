/* OpenAI's API over HTTP, with small models: the bits and the texts of the same calls in the process. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <warpwave/model.h>

#include "base/strings/text_stream.h"
#include "server/client.h"
#include "support/models/tiny.h"

enum { TOKENS = 12, CLIENTS = 4 };

static server *running;
static int port;
static ww_device *device;
static ww_model *encoder, *decoder;

static void with_models(server_config *config)
{
    static char paths[2][SCRATCH_PATH_BYTES];
    snprintf(paths[0], sizeof paths[0], "%s", scratch_path("encoder.gguf"));
    snprintf(paths[1], sizeof paths[1], "%s", scratch_path("decoder.gguf"));
    config->model_names[0] = "encoder";
    config->model_names[1] = "decoder";
    config->model_paths[0] = paths[0];
    config->model_paths[1] = paths[1];
    config->model_count = 2;
}

static int begin(void **state)
{
    scratch_setup(state);
    tiny_write_words("bert", scratch_path("encoder.gguf"));
    tiny_write_chat(TINY_CHATML, 0, scratch_path("decoder.gguf"));
    running = server_for_test(with_models);
    port = server_port(running);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_model_open(scratch_path("encoder.gguf"), device, NULL, &encoder));
    CHECK_OK(ww_model_open(scratch_path("decoder.gguf"), device, NULL, &decoder));
    return 0;
}

static int end(void **state)
{
    ww_model_close(encoder);
    ww_model_close(decoder);
    ww_device_close(device);
    server_test_end(running);
    return scratch_teardown(state);
}

/* ---- embeddings ---------------------------------------------------------------------------------------------------------- */

static json_t *vector_at(json_t *answer, size_t i)
{
    return json_object_get(json_array_get(json_object_get(answer, "data"), i), "embedding");
}

static int base64_value(char c)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(letters, c) : NULL;
    return at ? (int)(at - letters) : -1;
}

static size_t base64_read(const char *text, unsigned char *bytes)
{
    size_t count = 0;
    unsigned word = 0, bits = 0;
    for (; base64_value(*text) >= 0; text++) {
        word = word << 6 | (unsigned)base64_value(*text);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes[count++] = (unsigned char)(word >> bits);
        }
    }
    return count;
}

static void embeddings_have_the_bits_of_the_library(void **state)
{
    (void)state;
    static const char *const texts[2] = {"a fox", "dogs"};
    enum { WIDTH = 64 };
    float expected[2][WIDTH];
    unsigned char bytes[4 * WIDTH + 4];
    CHECK_OK(ww_model_embed(encoder, texts, NULL, 2, NULL, expected[0]));
    json_t *answer = ASK(port, 200, "POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": [\"a fox\", \"dogs\"]}");
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < WIDTH; k++) {
            const float value = (float)json_number_value(json_array_get(vector_at(answer, i), k));
            assert_memory_equal(&value, &expected[i][k], sizeof value);
        }
    assert_true(json_integer_value(json_object_get(json_object_get(answer, "usage"), "prompt_tokens")) > 0);
    json_decref(answer);
    answer = ASK(port, 200, "POST", "/v1/embeddings",
                 "{\"model\": \"encoder\", \"input\": \"dogs\", \"encoding_format\": \"base64\"}");
    assert_int_equal(base64_read(json_string_value(vector_at(answer, 0)), bytes), sizeof expected[1]);
    assert_memory_equal(bytes, expected[1], sizeof expected[1]);
    json_decref(answer);
}

static void tokens_are_embedded_as_their_text(void **state)
{
    (void)state;
    json_t *text = ASK(port, 200, "POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": \"a fox\"}");
    json_t *tokens = ASK(port, 200, "POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": [2, 4, 5, 3]}");
    assert_true(json_equal(vector_at(text, 0), vector_at(tokens, 0)));
    json_decref(text);
    json_decref(tokens);
}

static void requests_that_a_model_cannot_serve_are_refused(void **state)
{
    (void)state;
    ASK_STATUS(port, 404, "POST", "/v1/embeddings", "{\"model\": \"other\", \"input\": \"a\"}");
    ASK_STATUS(port, 400, "POST", "/v1/embeddings", "{\"model\": \"decoder\", \"input\": \"a\"}");
    ASK_STATUS(port, 400, "POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": \"a\", \"dimensions\": 300}");
    ASK_STATUS(port, 400, "POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": []}");
    ASK_STATUS(port, 400, "POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": [99999]}");
    ASK_STATUS(port, 400, "POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": [\"a\", 1]}");
    ASK_STATUS(port, 400, "POST", "/v1/completions", "{\"model\": \"encoder\", \"prompt\": \"a\"}");
    ASK_STATUS(port, 400, "POST", "/v1/completions", "{\"model\": \"decoder\", \"prompt\": \"a\", \"temperature\": 3}");
    ASK_STATUS(port, 400, "POST", "/v1/chat/completions",
               "{\"model\": \"decoder\", \"messages\": [{\"role\": \"somebody\", \"content\": \"a\"}]}");
    static const char *const unsupported[] = {"\"frequency_penalty\": 2.5",
                                              "\"presence_penalty\": -3",
                                              "\"repetition_penalty\": 0",
                                              "\"logit_bias\": {\"5\": 101}",
                                              "\"logit_bias\": {\"fox\": 1}",
                                              "\"logit_bias\": {\"5x\": 1}",
                                              "\"logit_bias\": {\"-5\": 1}",
                                              "\"logit_bias\": {\"99999999\": 1}",
                                              "\"logit_bias\": [5]",
                                              "\"echo\": true",
                                              "\"suffix\": \"a\"",
                                              "\"best_of\": 2",
                                              "\"functions\": [{}]",
                                              "\"reasoning_effort\": \"low\""};
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"model\": \"decoder\", \"prompt\": \"a\", %s}", unsupported[i]);
        ASK_STATUS(port, 400, "POST", "/v1/completions", body);
    }
    ASK_STATUS(
        port, 200, "POST", "/v1/completions",
        "{\"model\": \"decoder\", \"prompt\": \"a\", \"max_tokens\": 1, \"frequency_penalty\": 0, \"presence_penalty\": 0.0, "
        "\"logit_bias\": {}, \"echo\": false, \"suffix\": \"\", \"best_of\": 1}");
    json_t *models = ASK(port, 200, "GET", "/v1/models", NULL);
    assert_int_equal(json_array_size(json_object_get(models, "data")), 2);
    json_decref(models);
}

/* The id of the first point that a query finds. */
static long long first_found(const char *query)
{
    char body[256];
    snprintf(body, sizeof body, "{\"query\": %s, \"limit\": 1}", query);
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/query", body);
    json_t *points = json_object_get(json_object_get(answer, "result"), "points");
    assert_int_equal(json_array_size(points), 1);
    json_t *point = json_array_get(points, 0);
    const long long id = json_integer_value(json_object_get(point, "id"));
    assert_true(json_number_value(json_object_get(point, "score")) > 0.9999); /* the same text, so the same vector */
    json_decref(answer);
    return id;
}

static void texts_take_the_place_of_vectors(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 64, \"distance\": \"Cosine\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points",
               "{\"points\": [{\"id\": 1, \"vector\": {\"text\": \"a fox\", \"model\": \"encoder\"}}, {\"id\": 2, \"vector\": "
               "{\"text\": \"dogs\"}, \"payload\": {\"a\": 1}}]}");
    assert_int_equal(first_found("{\"text\": \"a fox\"}"), 1);
    assert_int_equal(first_found("{\"nearest\": {\"text\": \"dogs\", \"model\": \"encoder\"}}"), 2);
    ASK_STATUS(port, 400, "POST", "/collections/docs/points/query", "{\"query\": {\"text\": \"a\", \"model\": \"decoder\"}}");
    ASK_STATUS(port, 400, "POST", "/collections/docs/points/query", "{\"query\": {\"text\": 7}}");
    ASK_STATUS(port, 200, "PUT", "/collections/small", "{\"vectors\": {\"size\": 2, \"distance\": \"Cosine\"}}");
    ASK_STATUS(port, 400, "POST", "/collections/small/points/query", "{\"query\": {\"text\": \"a\"}}");
    ASK_STATUS(port, 404, "POST", "/collections/none/points/query", "{\"query\": {\"text\": \"a\"}}");
}

/* Checks that a list of numbers is the vector of a text. */
static void check_vector(json_t *list, const char *text)
{
    enum { WIDTH = 64 };
    float expected[WIDTH];
    CHECK_OK(ww_model_embed(encoder, &text, NULL, 1, NULL, expected));
    assert_int_equal(json_array_size(list), WIDTH);
    for (size_t k = 0; k < WIDTH; k++) {
        const float value = (float)json_number_value(json_array_get(list, k));
        assert_memory_equal(&value, &expected[k], sizeof value);
    }
}

static void prefixes_of_a_collection_are_put_before_its_texts(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 64, \"distance\": \"Dot\"}}");
    server_keep_prefixes("docs", encoder, "fox ", "dogs "); /* the server has opened the collection without them */
    for (int id = 1; id <= 2; id++) {
        char body[128];
        snprintf(body, sizeof body, "{\"points\": [{\"id\": %d, \"vector\": {\"text\": \"%s\"}}]}", id,
                 id == 1 ? "a fox" : "a");
        ASK_STATUS(port, 200, "PUT", "/collections/docs/points", body);
    }
    for (int id = 1; id <= 2; id++) {
        char path[64];
        snprintf(path, sizeof path, "/collections/docs/points/%d", id);
        json_t *point = ASK(port, 200, "GET", path, NULL);
        check_vector(json_object_get(json_object_get(point, "result"), "vector"), id == 1 ? "dogs a fox" : "dogs a");
        json_decref(point);
    }
    float query[64];
    CHECK_OK(ww_model_embed(encoder, (const char *const[]){"fox a"}, NULL, 1, NULL, query));
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/query",
                         "{\"query\": {\"text\": \"a\"}, \"limit\": 1, \"with_vector\": true}");
    json_t *point = json_array_get(json_object_get(json_object_get(answer, "result"), "points"), 0);
    double score = 0;
    for (size_t k = 0; k < 64; k++)
        score += (double)query[k] * json_number_value(json_array_get(json_object_get(point, "vector"), k));
    assert_true(fabs(score - json_number_value(json_object_get(point, "score"))) < 1e-6);
    json_decref(answer);
}

/* ---- texts --------------------------------------------------------------------------------------------------------------- */

typedef struct text {
    char bytes[1024];
    size_t length;
} text;

static int collect(const char *piece, size_t bytes, void *user)
{
    text *all = user;
    assert_true(all->length + bytes < sizeof all->bytes);
    memcpy(all->bytes + all->length, piece, bytes + 1);
    all->length += bytes;
    return 0;
}

/* Generates with the library, after a prompt. */
static void generate_here(const char *prompt, text *out)
{
    ww_session *session = NULL;
    int32_t ids[64];
    size_t count = 0;
    ww_generation generation = ww_generation_default();
    *out = (text){0};
    generation.tokens = TOKENS;
    generation.text = collect;
    generation.user = out;
    CHECK_OK(ww_model_tokenize(decoder, prompt, strlen(prompt), WW_TOKENS_PLAIN, ids, 64, &count));
    CHECK_OK(ww_session_create(decoder, &session));
    CHECK_OK(ww_session_feed(session, ids, count));
    CHECK_OK(ww_session_generate(session, &generation, NULL));
    ww_session_destroy(session);
}

/* Chooses tokens with penalties for those that were generated before. */
static void generate_penalised(const char *prompt, ww_sampling sampling, text *out)
{
    ww_session *session = NULL;
    int32_t ids[64], chosen[TOKENS];
    size_t count = 0;
    *out = (text){0};
    CHECK_OK(ww_model_tokenize(decoder, prompt, strlen(prompt), WW_TOKENS_PLAIN, ids, 64, &count));
    CHECK_OK(ww_session_create(decoder, &session));
    CHECK_OK(ww_session_feed(session, ids, count));
    for (int i = 0; i < TOKENS; i++) {
        sampling.repetition_window = i;
        CHECK_OK(ww_session_sample(session, &sampling, &chosen[i]));
        CHECK_OK(ww_session_feed(session, &chosen[i], 1));
    }
    char bytes[sizeof out->bytes];
    text_stream whole = {0}; /* the tokens are not all whole characters */
    CHECK_OK(ww_model_detokenize(decoder, chosen, TOKENS, bytes, sizeof bytes, &count));
    CHECK_OK(text_stream_add(&whole, bytes, count));
    text_stream_finish(&whole);
    (void)collect(whole.text, whole.bytes, out);
    text_stream_free(&whole);
    ww_session_destroy(session);
}

static const char *const prompts[CLIENTS] = {"a", "fox and dog", "zebra?", "the longest of these prompts"};
static text expected_texts[CLIENTS], answered_texts[CLIENTS];

static void keep(json_t *value, text *to)
{
    *to = (text){.length = json_string_length(value)};
    assert_true(to->length < sizeof to->bytes);
    memcpy(to->bytes, json_string_value(value), to->length);
}

static void check_same(const text *a, const text *b)
{
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->bytes, b->bytes, a->length);
}

static void *complete(void *user)
{
    const int i = (int)(intptr_t)user;
    char body[256];
    snprintf(body, sizeof body, "{\"model\": \"decoder\", \"prompt\": \"%s\", \"max_tokens\": %d, \"temperature\": 0}",
             prompts[i], TOKENS);
    json_t *answer = ASK(port, 200, "POST", "/v1/completions", body);
    json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
    keep(json_object_get(choice, "text"), &answered_texts[i]);
    json_decref(answer);
    return NULL;
}

static void texts_of_four_clients_at_once_are_those_of_the_library(void **state)
{
    (void)state;
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        generate_here(prompts[i], &expected_texts[i]);
    for (intptr_t i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, complete, (void *)i), 0);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        check_same(&answered_texts[i], &expected_texts[i]);
    }
}

static void penalties_and_biases_are_those_of_the_library(void **state)
{
    (void)state;
    text expected, plain, answered;
    ww_sampling sampling = ww_sampling_default();
    sampling.bias_tokens = (const int32_t[]){5, 6};
    sampling.biases = (const float[]){-100.0f, 2.5f};
    sampling.bias_count = 2;
    sampling.frequency_penalty = 1.5;
    sampling.presence_penalty = 0.5;
    sampling.repetition_penalty = 1.25;
    generate_penalised("fox and dog", sampling, &expected);
    generate_here("fox and dog", &plain);
    assert_true(plain.length != expected.length || memcmp(plain.bytes, expected.bytes, plain.length) != 0);
    json_t *answer = ASK(port, 200, "POST", "/v1/completions",
                         "{\"model\": \"decoder\", \"prompt\": \"fox and dog\", \"max_tokens\": 12, \"temperature\": 0, "
                         "\"frequency_penalty\": 1.5, \"presence_penalty\": 0.5, \"repetition_penalty\": 1.25, "
                         "\"logit_bias\": {\"5\": -100, \"6\": 2.5}}");
    keep(json_object_get(json_array_get(json_object_get(answer, "choices"), 0), "text"), &answered);
    json_decref(answer);
    check_same(&answered, &expected);
}

/* Puts the pieces of a stream together; returns how many events there were before [DONE]. */
static int join_events(const char *body, text *out)
{
    int events = 0;
    *out = (text){0};
    for (const char *at = body; (at = strstr(at, "data: ")); at += 6, events++) {
        if (strncmp(at + 6, "[DONE]", 6) == 0)
            return events;
        json_t *event = json_loadb(at + 6, strcspn(at + 6, "\n"), JSON_ALLOW_NUL, NULL);
        assert_non_null(event);
        json_t *choice = json_array_get(json_object_get(event, "choices"), 0), *delta = json_object_get(choice, "delta");
        json_t *piece = json_object_get(delta ? delta : choice, delta ? "content" : "text");
        if (piece)
            collect(json_string_value(piece), json_string_length(piece), out);
        json_decref(event);
    }
    fail_msg("the stream has no [DONE]: %s", body);
    return 0;
}

static void a_stream_has_the_same_text_in_pieces(void **state)
{
    (void)state;
    text expected, streamed;
    generate_here("fox", &expected);
    http_answer a =
        http_ask(port, "POST", "/v1/completions",
                 "{\"model\": \"decoder\", \"prompt\": \"fox\", \"max_tokens\": 12, \"temperature\": 0, \"stream\": true}");
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.head, "text/event-stream"));
    assert_true(join_events(a.body, &streamed) > 2);
    check_same(&streamed, &expected);
    http_free(&a);
    a = http_ask(port, "POST", "/v1/chat/completions",
                 "{\"model\": \"decoder\", \"messages\": [{\"role\": \"user\", \"content\": \"fox<|im_end|>\"}], "
                 "\"max_tokens\": 5, \"stream\": "
                 "true, \"stream_options\": {\"include_usage\": true}, \"seed\": 7}");
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "\"role\":\"assistant\""));
    assert_non_null(strstr(a.body, "\"completion_tokens\":5"));
    join_events(a.body, &streamed);
    http_free(&a);
}

static void a_stop_ends_the_text_before_it(void **state)
{
    (void)state;
    text whole, told;
    char body[256], stop = '\0';
    int prompt = -1;
    for (size_t at = 0; stop == '\0' && ++prompt < CLIENTS;) { /* a letter that is not the first byte */
        generate_here(prompts[prompt], &whole);
        for (at = 1; at < whole.length && stop == '\0'; at++)
            if ((whole.bytes[at] | 0x20) >= 'a' && (whole.bytes[at] | 0x20) <= 'z')
                stop = whole.bytes[at];
    }
    assert_true(prompt < CLIENTS);
    snprintf(body, sizeof body,
             "{\"model\": \"decoder\", \"prompt\": \"%s\", \"max_tokens\": 12, \"temperature\": 0, \"stop\": \"%c\"}",
             prompts[prompt], stop);
    json_t *answer = ASK(port, 200, "POST", "/v1/completions", body);
    json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
    keep(json_object_get(choice, "text"), &told);
    whole.length = (size_t)((char *)memchr(whole.bytes, stop, whole.length) - whole.bytes);
    check_same(&told, &whole);
    assert_string_equal(json_string_value(json_object_get(choice, "finish_reason")), "stop");
    json_decref(answer);
}

/* The text of the answer to a chat with additional fields. */
static void answer_with(const char *asked, text *out)
{
    char body[512];
    snprintf(body, sizeof body,
             "{\"model\": \"decoder\", \"messages\": [{\"role\": \"user\", \"content\": \"fox\"}], \"max_tokens\": 600, %s}",
             asked);
    json_t *answer = ASK(port, 200, "POST", "/v1/chat/completions", body);
    json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
    assert_string_equal(json_string_value(json_object_get(choice, "finish_reason")), "stop");
    keep(json_object_get(json_object_get(choice, "message"), "content"), out);
    json_decref(answer);
}

static void an_answer_has_the_format_that_is_asked_for(void **state)
{
    (void)state;
    text told;
    static const char *const formats[][2] = {{"\"json_schema\", \"json_schema\": {\"name\": \"n\", \"schema\"", "}"},
                                             {"\"json_schema\", \"schema\"", ""},
                                             {"\"json_object\", \"schema\"", ""}};
    for (int seed = 0; seed < 6; seed++) {
        char asked[256];
        snprintf(asked, sizeof asked,
                 "\"seed\": %d, \"response_format\": {\"type\": %s: {\"properties\": {\"a\": {\"type\": \"integer\"}}, "
                 "\"required\": [\"a\"]}%s}",
                 seed, formats[seed % 3][0], formats[seed % 3][1]);
        answer_with(asked, &told);
        json_t *value = json_loadb(told.bytes, told.length, 0, NULL);
        assert_true(json_is_integer(json_object_get(value, "a")));
        json_decref(value);
    }
    answer_with("\"grammar\": \"root ::= \\\"yes\\\"\"", &told);
    assert_int_equal(told.length, 3);
    assert_memory_equal(told.bytes, "yes", 3);
#define REFUSED(asked)                                                                                                         \
    ASK_STATUS(port, 400, "POST", "/v1/completions", "{\"model\": \"decoder\", \"prompt\": \"a\", " asked "}")
    REFUSED("\"response_format\": {\"type\": \"xml\"}");
    REFUSED("\"response_format\": {\"type\": \"json_schema\"}");
    REFUSED("\"response_format\": {\"type\": \"json_object\"}, \"grammar\": \"root ::= [a]\"");
    REFUSED("\"grammar\": \"root ::= root\"");
    ASK_STATUS(port, 200, "POST", "/v1/completions",
               "{\"model\": \"decoder\", \"prompt\": \"a\", \"response_format\": {\"type\": \"json_object\"}}");
    ASK_STATUS(port, 400, "POST", "/v1/completions",
               "{\"model\": \"decoder\", \"prompt\": \"a\", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": "
               "{\"schema\": {\"uniqueItems\": true}}}}");
}

static void a_client_that_leaves_a_stream_frees_its_session(void **state)
{
    (void)state;
    static const char request[] =
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 85\r\n\r\n"
        "{\"model\": \"decoder\", \"prompt\": \"a\", \"max_tokens\": 1000000, \"stream\": true, \"seed\": 1}";
    const int connection = http_connect(port);
    char some[64];
    http_send(connection, request, sizeof request - 1);
    assert_true(read(connection, some, sizeof some) > 0);
    close(connection);
    bool active = true;
    while (active) { /* ctest ends the test if it stays active */
        http_answer a = http_ask(port, "GET", "/metrics", NULL);
        active = strstr(a.body, "warpwave_requests_active 0\n") == NULL;
        http_free(&a);
        usleep(20000);
    }
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(embeddings_have_the_bits_of_the_library),
        SERVED(tokens_are_embedded_as_their_text),
        SERVED(requests_that_a_model_cannot_serve_are_refused),
        SERVED(texts_take_the_place_of_vectors),
        SERVED(prefixes_of_a_collection_are_put_before_its_texts),
        SERVED(texts_of_four_clients_at_once_are_those_of_the_library),
        SERVED(penalties_and_biases_are_those_of_the_library),
        SERVED(a_stream_has_the_same_text_in_pieces),
        SERVED(a_stop_ends_the_text_before_it),
        SERVED(an_answer_has_the_format_that_is_asked_for),
        SERVED(a_client_that_leaves_a_stream_frees_its_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
