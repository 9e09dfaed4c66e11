/* /v1/responses: the text and the calls are those of the same conversation, in items and in events. */
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
    static const char *const names[] = {"decoder", "plain"};
    static char paths[2][SCRATCH_PATH_BYTES];
    for (size_t i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", scratch_path(i == 0 ? "decoder.gguf" : "plain.gguf"));
        config->model_names[i] = names[i];
        config->model_paths[i] = paths[i];
    }
    config->model_count = 2;
}

static int begin(void **state)
{
    scratch_setup(state);
    tiny_write_chat(WITH_TOOLS, 0, scratch_path("decoder.gguf"));
    tiny_write_chat(TINY_CHATML, 0, scratch_path("plain.gguf"));
    running = server_for_test(with_models);
    port = server_port(running);
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static const json_t *item_at(const json_t *answer, size_t i)
{
    return json_array_get(json_object_get(answer, "output"), i);
}

#define SAME "\"model\": \"decoder\", \"temperature\": 0.5, \"seed\": 3"

static void a_response_is_the_text_of_the_conversation(void **state)
{
    (void)state;
    json_t *chat =
        ASK(port, 200, "POST", "/v1/chat/completions",
            "{" SAME ", \"max_tokens\": 9, \"messages\": [{\"role\": \"system\", \"content\": \"be brief\"}, {\"role\": "
            "\"user\", \"content\": \"fox\"}]}");
    const json_t *message = json_object_get(json_array_get(json_object_get(chat, "choices"), 0), "message");
    static const char *const BODIES[] = {
        "{" SAME ", \"max_output_tokens\": 9, \"instructions\": \"be brief\", \"input\": \"fox\"}",
        "{" SAME ", \"max_output_tokens\": 9, \"input\": [{\"role\": \"developer\", \"content\": \"be brief\"}, {\"type\": "
        "\"message\", \"role\": \"user\", \"content\": [{\"type\": \"input_text\", \"text\": \"fox\"}]}]}"};
    for (size_t i = 0; i < 2; i++) {
        json_t *answer = ASK(port, 200, "POST", "/v1/responses", BODIES[i]);
        const json_t *part = json_array_get(json_object_get(item_at(answer, 0), "content"), 0);
        assert_string_equal(text_at(part, "text"), text_at(message, "content"));
        assert_string_equal(text_at(answer, "object"), "response");
        assert_string_equal(text_at(answer, "status"), "incomplete");
        assert_string_equal(text_at(json_object_get(answer, "incomplete_details"), "reason"), "max_output_tokens");
        assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "usage"), "output_tokens")), 9);
        assert_true(json_is_false(json_object_get(answer, "store")));
        json_decref(answer);
    }
    json_decref(chat);
}

#define TOOLS                                                                                                                  \
    "\"tools\": [{\"type\": \"function\", \"name\": \"add\", \"strict\": true, \"parameters\": {\"type\": \"object\", "        \
    "\"properties\": {\"a\": {\"enum\": [1, 2]}}, \"required\": [\"a\"], \"additionalProperties\": false}}]"

static void calls_are_items_and_their_results_go_back(void **state)
{
    (void)state;
    json_t *answer =
        ASK(port, 200, "POST", "/v1/responses",
            "{" SAME ", \"input\": \"fox\", \"tool_choice\": {\"type\": \"function\", \"name\": \"add\"}, " TOOLS "}");
    const json_t *call = item_at(answer, 0);
    assert_int_equal(json_array_size(json_object_get(answer, "output")), 1);
    assert_string_equal(text_at(call, "type"), "function_call");
    assert_string_equal(text_at(call, "name"), "add");
    assert_true(strstr(text_at(call, "arguments"), "\"a\"") != NULL);
    assert_string_equal(text_at(answer, "status"), "completed");
    json_decref(answer);
    /* The template sees the same conversation in both forms, so the text is the same. */
    json_t *response =
        ASK(port, 200, "POST", "/v1/responses",
            "{" SAME ", \"max_output_tokens\": 9, \"input\": [{\"role\": \"user\", \"content\": \"fox\"}, {\"type\": "
            "\"function_call\", \"call_id\": \"1\", \"name\": \"add\", \"arguments\": \"{}\"}, {\"type\": \"function_call\", "
            "\"call_id\": \"2\", \"name\": \"add\", \"arguments\": \"{}\"}, {\"type\": \"function_call_output\", \"call_id\": "
            "\"1\", \"output\": \"2\"}]}");
    json_t *chat =
        ASK(port, 200, "POST", "/v1/chat/completions",
            "{" SAME ", \"max_tokens\": 9, \"messages\": [{\"role\": \"user\", \"content\": \"fox\"}, {\"role\": "
            "\"assistant\", \"tool_calls\": [{\"type\": \"function\", \"id\": \"1\", \"function\": {\"name\": \"add\", "
            "\"arguments\": \"{}\"}}, {\"type\": \"function\", \"id\": \"2\", \"function\": {\"name\": \"add\", "
            "\"arguments\": \"{}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": \"1\", \"content\": \"2\"}]}");
    assert_string_equal(text_at(json_array_get(json_object_get(item_at(response, 0), "content"), 0), "text"),
                        text_at(json_object_get(json_array_get(json_object_get(chat, "choices"), 0), "message"), "content"));
    json_decref(response);
    json_decref(chat);
}

/* The names of the events, with spaces between them; each has the next number. The caller frees them. */
static char *events_of(const http_answer *a, char **deltas)
{
    char *names = calloc(1, a->length + 1);
    int64_t number = 0;
    *deltas = calloc(1, a->length + 1);
    for (const char *at = strstr(a->body, "event: "); at; at = strstr(at + 1, "\nevent: ")) {
        at += *at == '\n';
        const char *data = strstr(at, "\ndata: ") + 7;
        json_t *event = json_loadb(data, strcspn(data, "\n"), 0, NULL);
        const char *type = text_at(event, "type");
        assert_int_equal(strncmp(at + 7, type, strlen(type)), 0);
        assert_int_equal(json_integer_value(json_object_get(event, "sequence_number")), number++);
        const char *kind = type + strlen("response.");
        if (!strstr(kind, ".delta") || !strstr(names, kind)) /* each kind of piece once */
            sprintf(names + strlen(names), "%s ", kind);
        strcat(*deltas, text_at(event, "delta"));
        json_decref(event);
    }
    return names;
}

static void a_stream_has_an_event_for_every_step(void **state)
{
    (void)state;
    char *deltas = NULL;
    json_t *answer = ASK(port, 200, "POST", "/v1/responses", "{" SAME ", \"max_output_tokens\": 9, \"input\": \"fox\"}");
    http_answer a =
        http_ask(port, "POST", "/v1/responses", "{" SAME ", \"max_output_tokens\": 9, \"input\": \"fox\", \"stream\": true}");
    char *names = events_of(&a, &deltas);
    assert_string_equal(names, "created in_progress output_item.added content_part.added output_text.delta output_text.done "
                               "content_part.done output_item.done incomplete ");
    assert_string_equal(deltas, text_at(json_array_get(json_object_get(item_at(answer, 0), "content"), 0), "text"));
    free(names);
    free(deltas);
    http_free(&a);
    json_decref(answer);
    a = http_ask(port, "POST", "/v1/responses",
                 "{" SAME ", \"input\": \"fox\", \"stream\": true, \"tool_choice\": \"required\", " TOOLS "}");
    names = events_of(&a, &deltas);
    assert_string_equal(names, "created in_progress output_item.added function_call_arguments.delta "
                               "function_call_arguments.done output_item.done completed ");
    assert_non_null(strstr(deltas, "\"a\""));
    free(names);
    free(deltas);
    http_free(&a);
}

static void a_schema_shapes_the_text(void **state)
{
    (void)state;
    json_t *answer = ASK(port, 200, "POST", "/v1/responses",
                         "{" SAME ", \"input\": \"fox\", \"text\": {\"format\": {\"type\": \"json_schema\", \"name\": \"n\", "
                         "\"strict\": true, \"schema\": {\"enum\": [\"red\"]}}}}");
    assert_string_equal(text_at(json_array_get(json_object_get(item_at(answer, 0), "content"), 0), "text"), "\"red\"");
    assert_string_equal(text_at(answer, "status"), "completed");
    json_decref(answer);
}

static void what_would_have_to_be_kept_is_refused(void **state)
{
    (void)state;
    static const char *const BODIES[][2] = {
        {"\"input\": \"a\", \"previous_response_id\": \"resp_1\"", "previous_response_id: answers are not kept"},
        {"\"input\": \"a\", \"conversation\": \"c\"", "conversation: conversations are not kept"},
        {"\"input\": \"a\", \"background\": true", "background"},
        {"\"input\": \"a\", \"reasoning\": {\"effort\": \"low\"}", "reasoning"},
        {"\"input\": \"a\", \"truncation\": \"auto\"", "truncation"},
        {"\"input\": \"a\", \"tools\": [{\"type\": \"web_search\"}]", "tools[0]: only functions"},
        {"\"input\": \"a\", \"text\": {\"format\": {\"type\": \"json_schema\"}}", "text.format.schema"},
        {"\"input\": []", "input: a text or a list"},
        {"\"input\": [{\"type\": \"item_reference\", \"id\": \"msg_1\"}]", "input: an item is"},
        {"\"input\": [{\"type\": \"function_call\", \"name\": \"add\"}]", "arguments"},
        {"\"input\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_image\"}]}]", "text"},
        {"\"instructions\": \"a\"", "input"}};
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        char body[512];
        snprintf(body, sizeof body, "{\"model\": \"decoder\", %s}", BODIES[i][0]);
        http_answer a = http_ask(port, "POST", "/v1/responses", body);
        if (a.status != 400 || !strstr(a.body, BODIES[i][1]))
            fail_msg("%s: %d %s", body, a.status, a.body);
        http_free(&a);
    }
    ASK_STATUS(port, 400, "POST", "/v1/responses", "{\"model\": \"plain\", \"input\": \"a\", " TOOLS "}");
    ASK_STATUS(port, 404, "POST", "/v1/responses", "{\"model\": \"missing\", \"input\": \"a\"}");
    ASK_STATUS(port, 200, "POST", "/v1/responses",
               "{\"model\": \"plain\", \"input\": \"a\", \"max_output_tokens\": 1, \"include\": [], \"background\": false, "
               "\"truncation\": \"disabled\", \"store\": true, \"metadata\": {\"k\": \"v\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_response_is_the_text_of_the_conversation),
        cmocka_unit_test(calls_are_items_and_their_results_go_back),
        cmocka_unit_test(a_stream_has_an_event_for_every_step),
        cmocka_unit_test(a_schema_shapes_the_text),
        cmocka_unit_test(what_would_have_to_be_kept_is_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
