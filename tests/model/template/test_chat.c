/* Conversations to a template, and from it. */
#include <jansson.h>
#include <string.h>

#include "model/chat.h"
#include "support/check.h"

static const char CHATML[] = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                             "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static ww_status write_chat(const char *template_text, const chat_message *messages, size_t count, bool add_generation,
                            text_buffer *out, template_quotes *quotes)
{
    template_program *program = NULL;
    CHECK_OK(template_parse(template_text, strlen(template_text), &program));
    const chat_format format = {.program = program, .bos = "<s>", .eos = "</s>", .quotes = quotes};
    const ww_status status = chat_render(&format, messages, count, add_generation, out);
    template_free(program);
    return status;
}

static void check_text(const char *template_text, const chat_message *messages, size_t count, const char *expected)
{
    text_buffer out = {0};
    CHECK_OK(write_chat(template_text, messages, count, true, &out, NULL));
    CHECK_OK(text_buffer_end(&out));
    assert_string_equal(out.text, expected);
    text_buffer_free(&out);
}

static void every_character_reaches_the_template(void **state)
{
    (void)state;
    static const chat_message talk[] = {{"user", "\"a\"\\\n\t\x01\x1f\x7f é 語 𝄞"}, {"tool", ""}};
    check_text("{{ bos_token }}{{ messages[0].content }}|{{ messages[1].role }}{{ messages[1].content }}{{ eos_token }}", talk,
               2, "<s>\"a\"\\\n\t\x01\x1f\x7f é 語 𝄞|tool</s>");
    check_text(CHATML, talk + 1, 1, "<|im_start|>tool\n<|im_end|>\n<|im_start|>assistant\n");
}

static void messages_are_quotes_in_the_text(void **state)
{
    (void)state;
    static const chat_message talk[] = {{"user", "<|im_end|>"}};
    text_buffer out = {0};
    template_quotes quotes = {0};
    CHECK_OK(write_chat(CHATML, talk, 1, false, &out, &quotes));
    assert_int_equal(quotes.count, 2);
    assert_memory_equal(out.text + quotes.spans[0].from, "user", 4);
    assert_int_equal(quotes.spans[1].from, strlen("<|im_start|>user\n"));
    assert_int_equal(quotes.spans[1].to, strlen("<|im_start|>user\n<|im_end|>"));
    template_quotes_free(&quotes);
    text_buffer_free(&out);
}

static void invalid_conversations_are_refused(void **state)
{
    (void)state;
    static const struct {
        chat_message message;
        size_t count;
        const char *words;
    } cases[] = {{{"user", NULL}, 1, "message 0 has no text"},    {{NULL, "a"}, 1, "message 0 has no role"},
                 {{"user", "\xFF"}, 1, "message 0 is not UTF-8"}, {{"\xFF", "a"}, 1, "message 0 is not UTF-8"},
                 {{"user", "a"}, 0, "without messages"},          {{"user", "a"}, 1, "line 1, column 19: not user"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_buffer out = {0};
        template_quotes quotes = {0};
        CHECK_OK(text_buffer_add_text(&out, "before"));
        CHECK_FAILS(WW_INVALID_ARGUMENT, write_chat("{{ raise_exception('not ' + messages[0].role) }}", &cases[i].message,
                                                    cases[i].count, true, &out, &quotes));
        assert_non_null(strstr(ww_error_message(), cases[i].words));
        assert_int_equal(out.bytes, 6);
        assert_int_equal(quotes.count, 0);
        text_buffer_free(&out);
    }
}

/* Rendered by the program that the template was written for. */
static void smollm2s_template_writes_the_published_text(void **state)
{
    (void)state;
    static const char template_text[] =
        "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a "
        "helpful AI "
        "assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "
        "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% "
        "endif %}";
    json_t *cases = json_load_file(TEST_DATA_DIR "/model/chat_smollm2.json", 0, NULL), *one, *message;
    size_t i, k;
    assert_int_equal(json_array_size(cases), 3);
    json_array_foreach(cases, i, one)
    {
        chat_message messages[8];
        text_buffer out = {0};
        json_t *list = json_object_get(one, "messages");
        json_array_foreach(list, k, message) messages[k] =
            (chat_message){.role = json_string_value(json_object_get(message, "role")),
                           .text = json_string_value(json_object_get(message, "content"))};
        CHECK_OK(write_chat(template_text, messages, json_array_size(list),
                            json_is_true(json_object_get(one, "add_generation_prompt")), &out, NULL));
        CHECK_OK(text_buffer_end(&out));
        assert_string_equal(out.text, json_string_value(json_object_get(one, "text")));
        text_buffer_free(&out);
    }
    json_decref(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_reaches_the_template),
        cmocka_unit_test(messages_are_quotes_in_the_text),
        cmocka_unit_test(invalid_conversations_are_refused),
        cmocka_unit_test(smollm2s_template_writes_the_published_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
