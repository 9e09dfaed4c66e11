/* What answers of models may have besides a text: several choices, probabilities, calls of tools, comments while a prompt is
 * read; and reranking and the API of text-embeddings-inference. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/model.h>

#include "server/client.h"
#include "support/models/tiny.h"

#define WITH_TOOLS "{% if tools %}{{ tools | tojson }} write <tool_call>{% endif %}" TINY_CHATML

static server *running;
static int port;

static void with_models(server_config *config)
{
    static const char *const names[] = {"encoder", "ranker", "decoder", "plain", "qwen"};
    static char paths[5][SCRATCH_PATH_BYTES];
    for (size_t i = 0; i < 5; i++) {
        char file[32];
        snprintf(file, sizeof file, "%s.gguf", names[i]);
        snprintf(paths[i], sizeof paths[i], "%s", scratch_path(file));
        config->model_names[i] = names[i];
        config->model_paths[i] = paths[i];
    }
    config->model_count = 5;
}

static int begin(void **state)
{
    scratch_setup(state);
    tiny_write_words("bert", scratch_path("encoder.gguf"));
    tiny_write_ranker(2, scratch_path("ranker.gguf"));
    tiny_write_chat(WITH_TOOLS, 0, scratch_path("decoder.gguf"));
    tiny_write_chat(TINY_CHATML, 0, scratch_path("plain.gguf"));
    tiny_write_answers(scratch_path("qwen.gguf"));
    running = server_for_test(with_models);
    port = server_port(running);
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

static json_t *choice_at(const json_t *answer, size_t i)
{
    return json_array_get(json_object_get(answer, "choices"), i);
}

static void each_choice_is_the_text_of_its_own_seed(void **state)
{
    (void)state;
    json_t *all = ASK(port, 200, "POST", "/v1/completions",
                      "{\"model\": \"decoder\", \"prompt\": \"fox\", \"max_tokens\": 6, \"seed\": 3, \"n\": 3}");
    assert_int_equal(json_array_size(json_object_get(all, "choices")), 3);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(all, "usage"), "completion_tokens")), 18);
    for (size_t i = 0; i < 3; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"model\": \"decoder\", \"prompt\": \"fox\", \"max_tokens\": 6, \"seed\": %zu}", 3 + i);
        json_t *alone = ASK(port, 200, "POST", "/v1/completions", body);
        assert_true(json_equal(json_object_get(choice_at(all, i), "text"), json_object_get(choice_at(alone, 0), "text")));
        assert_int_equal(json_integer_value(json_object_get(choice_at(all, i), "index")), i);
        json_decref(alone);
    }
    json_decref(all);
    http_answer a = http_ask(port, "POST", "/v1/chat/completions",
                             "{\"model\": \"decoder\", \"messages\": [{\"role\": \"user\", \"content\": \"fox\"}], "
                             "\"max_tokens\": 3, \"n\": 2, \"stream\": true}");
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "\"index\":0"));
    assert_non_null(strstr(a.body, "\"index\":1"));
    assert_non_null(strstr(a.body, "[DONE]"));
    http_free(&a);
    ASK_STATUS(port, 400, "POST", "/v1/completions", "{\"model\": \"decoder\", \"prompt\": \"a\", \"n\": 17}");
}

static void tokens_come_with_their_probabilities(void **state)
{
    (void)state;
    json_t *answer =
        ASK(port, 200, "POST", "/v1/completions",
            "{\"model\": \"decoder\", \"prompt\": \"fox\", \"max_tokens\": 4, \"temperature\": 0, \"logprobs\": 2}");
    const json_t *lists = json_object_get(choice_at(answer, 0), "logprobs");
    assert_int_equal(json_array_size(json_object_get(lists, "tokens")), 4);
    assert_int_equal(json_array_size(json_object_get(lists, "top_logprobs")), 4);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(lists, "text_offset"), 0)), 0);
    json_decref(answer);
    answer = ASK(port, 200, "POST", "/v1/chat/completions",
                 "{\"model\": \"decoder\", \"messages\": [{\"role\": \"user\", \"content\": \"fox\"}], \"max_tokens\": 4, "
                 "\"temperature\": 0, "
                 "\"logprobs\": true, \"top_logprobs\": 20}");
    const json_t *content = json_object_get(json_object_get(choice_at(answer, 0), "logprobs"), "content");
    assert_int_equal(json_array_size(content), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *entry = json_array_get(content, i), *top = json_object_get(entry, "top_logprobs");
        double sum = 0, last = 0;
        assert_int_equal(json_array_size(top), 20);
        assert_true(
            json_equal(json_object_get(entry, "logprob"), json_object_get(json_array_get(top, 0), "logprob"))); /* the best */
        for (size_t k = 0; k < 20; k++) {
            const double value = json_number_value(json_object_get(json_array_get(top, k), "logprob"));
            assert_true(k == 0 || value <= last);
            last = value;
            sum += exp(value);
        }
        assert_true(sum > 0 && sum < 1.00001);
    }
    json_decref(answer);
    http_answer a = http_ask(port, "POST", "/v1/chat/completions",
                             "{\"model\": \"decoder\", \"messages\": [{\"role\": \"user\", \"content\": \"fox\"}], "
                             "\"max_tokens\": 4, \"logprobs\": true, \"stream\": true}");
    int entries = 0;
    for (const char *at = a.body; (at = strstr(at, "\"logprob\":")); at++)
        entries++;
    assert_int_equal(entries, 4);
    http_free(&a);
    ASK_STATUS(port, 400, "POST", "/v1/completions", "{\"model\": \"decoder\", \"prompt\": \"a\", \"logprobs\": 21}");
    ASK_STATUS(port, 400, "POST", "/v1/chat/completions",
               "{\"model\": \"decoder\", \"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"top_logprobs\": 2}");
}

#define TOOLS                                                                                                                  \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"add\", \"parameters\": {\"type\": \"object\", "           \
    "\"properties\": "                                                                                                         \
    "{\"a\": {\"enum\": [1, 2]}}, \"required\": [\"a\"], \"additionalProperties\": false}}}, {\"type\": \"function\", "        \
    "\"function\": {\"name\": \"stop\","                                                                                       \
    " \"parameters\": {\"type\": \"object\", \"properties\": {}, \"additionalProperties\": false}}}]"
#define CHAT(more)                                                                                                             \
    "{\"model\": \"decoder\", \"max_tokens\": 400, \"messages\": [{\"role\": \"user\", \"content\": \"fox\"}], " more "}"

static void a_call_that_is_required_is_made(void **state)
{
    (void)state;
    for (int seed = 0; seed < 4; seed++) {
        char body[1024];
        snprintf(body, sizeof body,
                 CHAT(TOOLS ", \"seed\": %d, \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"add\"}}"),
                 seed);
        json_t *answer = ASK(port, 200, "POST", "/v1/chat/completions", body);
        const json_t *message = json_object_get(choice_at(answer, 0), "message");
        const json_t *function = json_object_get(json_array_get(json_object_get(message, "tool_calls"), 0), "function");
        assert_true(json_is_null(json_object_get(message, "content")));
        assert_string_equal(json_string_value(json_object_get(function, "name")), "add");
        json_t *arguments = json_loads(json_string_value(json_object_get(function, "arguments")), 0, NULL);
        const long long a = json_integer_value(json_object_get(arguments, "a"));
        assert_true(a == 1 || a == 2);
        assert_string_equal(json_string_value(json_object_get(choice_at(answer, 0), "finish_reason")), "tool_calls");
        json_decref(arguments);
        json_decref(answer);
    }
    http_answer a =
        http_ask(port, "POST", "/v1/chat/completions", CHAT(TOOLS ", \"tool_choice\": \"required\", \"stream\": true"));
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "\"tool_calls\":[{\"index\":0,"));
    assert_non_null(strstr(a.body, "\"finish_reason\":\"tool_calls\""));
    assert_null(strstr(a.body, "\"content\""));
    http_free(&a);
}

/* A grammar makes the model write what a trained model would write. */
static void calls_are_read_from_the_text(void **state)
{
    (void)state;
    static const char written[] = CHAT(TOOLS ", \"grammar\": \"root ::= \\\"Well. <tool_call>{\\\\\\\"name\\\\\\\": "
                                             "\\\\\\\"stop\\\\\\\", \\\\\\\"arguments\\\\\\\": {}}</tool_call>\\\"\"");
    json_t *answer = ASK(port, 200, "POST", "/v1/chat/completions", written);
    const json_t *message = json_object_get(choice_at(answer, 0), "message");
    assert_string_equal(json_string_value(json_object_get(message, "content")), "Well. ");
    assert_int_equal(json_array_size(json_object_get(message, "tool_calls")), 1);
    json_decref(answer);
    ASK_STATUS(port, 200, "POST", "/v1/chat/completions",
               "{\"model\": \"decoder\", \"max_tokens\": 2, " TOOLS
               ", \"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
               "\"content\": null, \"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"add\", "
               "\"arguments\": "
               "\"{\\\"a\\\": 1}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": \"1\", \"content\": \"2\"}]}");
#define REFUSED(more) ASK_STATUS(port, 400, "POST", "/v1/chat/completions", CHAT(more))
    REFUSED("\"tool_choice\": \"required\"");
    REFUSED("\"tools\": [{\"type\": \"other\"}]");
    REFUSED(TOOLS ", \"tool_choice\": \"maybe\"");
    REFUSED(TOOLS ", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"other\"}}");
    REFUSED(TOOLS ", \"tool_choice\": \"required\", \"response_format\": {\"type\": \"json_object\"}");
    ASK_STATUS(port, 400, "POST", "/v1/chat/completions",
               "{\"model\": \"plain\", \"messages\": [{\"role\": \"user\", \"content\": \"a\"}], " TOOLS "}");
}

static void a_long_prompt_shows_its_progress(void **state)
{
    (void)state;
    char body[1200];
    const int length =
        snprintf(body, sizeof body, "{\"model\": \"decoder\", \"stream\": true, \"max_tokens\": 2, \"prompt\": \"");
    memset(body + length, 'a', 600);
    snprintf(body + length + 600, sizeof body - (size_t)length - 600, "\"}");
    http_answer a = http_ask(port, "POST", "/v1/completions", body);
    assert_int_equal(a.status, 200);
    assert_int_equal(strncmp(a.body, ": ", 2), 0); /* pieces of 256, 256 and 88 tokens */
    assert_non_null(strstr(a.body, "\n\n: "));
    http_free(&a);
}

static void texts_are_ranked_as_the_library_does(void **state)
{
    (void)state;
    static const char *const texts[] = {"cat dog", "fox", "dog the"};
    float scores[3];
    ww_device *device = NULL;
    ww_model *model = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_model_open(scratch_path("ranker.gguf"), device, NULL, &model));
    CHECK_OK(ww_model_rerank(model, "the fox", texts, NULL, 3, scores, NULL, NULL));
    ww_model_close(model);
    ww_device_close(device);
    json_t *answer = ASK(port, 200, "POST", "/rerank",
                         "{\"query\": \"the fox\", \"texts\": [\"cat dog\", \"fox\", \"dog the\"], \"raw_scores\": true, "
                         "\"return_text\": true}");
    assert_int_equal(json_array_size(answer), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *entry = json_array_get(answer, i);
        const size_t number = (size_t)json_integer_value(json_object_get(entry, "index"));
        assert_true((float)json_number_value(json_object_get(entry, "score")) == scores[number]);
        assert_string_equal(json_string_value(json_object_get(entry, "text")), texts[number]);
    }
    json_decref(answer);
    answer =
        ASK(port, 200, "POST", "/v1/rerank",
            "{\"model\": \"ranker\", \"query\": \"the fox\", \"documents\": [\"cat dog\", {\"text\": \"fox\"}], \"top_n\": 1}");
    assert_int_equal(json_array_size(json_object_get(answer, "results")), 1);
    const double score =
        json_number_value(json_object_get(json_array_get(json_object_get(answer, "results"), 0), "relevance_score"));
    assert_true(score > 0 && score < 1);
    json_decref(answer);
    ASK_STATUS(port, 400, "POST", "/v1/rerank", "{\"model\": \"encoder\", \"query\": \"a\", \"documents\": [\"b\"]}");
    ASK_STATUS(port, 400, "POST", "/rerank", "{\"query\": \"a\", \"texts\": [\"b\"], \"truncate\": false}");
    ASK_STATUS(port, 400, "POST", "/v1/rerank", "{\"model\": \"ranker\", \"query\": \"a\", \"documents\": []}");
    ASK_STATUS(port, 400, "POST", "/v1/embeddings", "{\"model\": \"ranker\", \"input\": \"a\"}");
}

/* Every Qwen3 has the tokens of Qwen3-Reranker's answers. */
static void a_model_that_reranks_by_its_answers_still_generates(void **state)
{
    (void)state;
    ASK_STATUS(port, 200, "POST", "/v1/chat/completions",
               "{\"model\": \"qwen\", \"messages\": [{\"role\": \"user\", \"content\": \"fox\"}], \"max_tokens\": 3}");
    json_t *answer =
        ASK(port, 200, "POST", "/v1/rerank", "{\"model\": \"qwen\", \"query\": \"fox\", \"documents\": [\"a\", \"b\"]}");
    assert_int_equal(json_array_size(json_object_get(answer, "results")), 2);
    json_decref(answer);
}

static void a_template_takes_the_place_of_the_models_own(void **state)
{
    (void)state;
    server *other = NULL;
    server_config config = server_config_default();
    with_models(&config);
    config.port = 0;
    config.store = scratch_path("templates.db");
    config.chat_template = "{{ messages[0].content }}";
    CHECK_OK(ww_device_open("cpu", &config.device));
    CHECK_OK(server_start(&config, &other));
    json_t *answer =
        ASK(server_port(other), 200, "POST", "/v1/chat/completions",
            "{\"model\": \"plain\", \"messages\": [{\"role\": \"user\", \"content\": \"fox\"}], \"max_tokens\": 1}");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "usage"), "prompt_tokens")), 3);
    json_decref(answer);
    server_stop(other);
    ww_device_close(config.device);
}

static void texts_are_embedded_as_tei_does(void **state)
{
    (void)state;
    json_t *bare = ASK(port, 200, "POST", "/embed", "{\"inputs\": [\"the fox\", \"dog\"]}");
    json_t *named = ASK(port, 200, "POST", "/v1/embeddings", "{\"model\": \"encoder\", \"input\": [\"the fox\", \"dog\"]}");
    assert_int_equal(json_array_size(bare), 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(json_equal(json_array_get(bare, i),
                               json_object_get(json_array_get(json_object_get(named, "data"), i), "embedding")));
    json_decref(bare);
    json_decref(named);
    bare = ASK(port, 200, "POST", "/embed", "{\"inputs\": \"the fox\", \"dimensions\": 3}");
    double sum = 0;
    for (size_t i = 0; i < 3; i++)
        sum += pow(json_number_value(json_array_get(json_array_get(bare, 0), i)), 2);
    assert_int_equal(json_array_size(json_array_get(bare, 0)), 3);
    assert_true(fabs(sum - 1) < 1e-5);
    json_decref(bare);
    json_t *tokens = ASK(port, 200, "POST", "/tokenize", "{\"inputs\": [\"fox\"]}");
    const json_t *first = json_array_get(json_array_get(tokens, 0), 0);
    assert_true(json_is_true(json_object_get(first, "special"))); /* [CLS] */
    assert_int_equal(json_array_size(json_array_get(tokens, 0)), 3);
    json_decref(tokens);
    json_t *info = ASK(port, 200, "GET", "/info", NULL);
    assert_string_equal(json_string_value(json_object_get(info, "model_id")), "encoder");
    json_decref(info);
    ASK_STATUS(port, 400, "POST", "/embed", "{\"inputs\": \"a\", \"normalize\": false}");
    ASK_STATUS(port, 400, "POST", "/tokenize", "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_choice_is_the_text_of_its_own_seed),
        cmocka_unit_test(tokens_come_with_their_probabilities),
        cmocka_unit_test(a_call_that_is_required_is_made),
        cmocka_unit_test(calls_are_read_from_the_text),
        cmocka_unit_test(a_long_prompt_shows_its_progress),
        cmocka_unit_test(texts_are_ranked_as_the_library_does),
        cmocka_unit_test(a_model_that_reranks_by_its_answers_still_generates),
        cmocka_unit_test(texts_are_embedded_as_tei_does),
        cmocka_unit_test(a_template_takes_the_place_of_the_models_own),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
