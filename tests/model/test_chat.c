/* Conversations as the families of models read them. */
#include <jansson.h>
#include <string.h>

#include "model/chat.h"
#include "support/check.h"
#include "support/scratch.h"

static const chat_message TALK[] = {{"system", "Be brief."}, {"user", " Hi "}, {"assistant", "Hello!"}, {"user", "2+2?"}};

/* Beginnings of real templates, with the marks that tell. */
static const char CHATML[] =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'}}{% endfor %}";
static const char QWEN[] =
    "{%- if messages[0]['role'] == 'system' %}{{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}"
    "{%- else %}{{- '<|im_start|>system\\nYou are Qwen.<|im_end|>\\n' }}{%- endif %}";
static const char LLAMA3[] = "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ "
                             "message['content'] | trim + '<|eot_id|>' %}";
static const char LLAMA31[] = "{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}{{- 'Cutting Knowledge Date: December "
                              "2023\\n' }}{{- '<|eot_id|>' }}";
static const char LLAMA2[] = "{{ bos_token + '[INST] ' + '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + ' [/INST]' }}";
static const char MISTRAL[] = "{{ bos_token }}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' "
                              "}}{% else %}{{ message['content'] + eos_token}}";
static const char MISTRAL3[] = "{%- if messages[0]['role'] == 'system' %}{{- '[INST] ' + system_message + '\\n\\n' + "
                               "message['content'] + '[/INST]' }}{{- ' ' + message['content'] + eos_token}}";
static const char GEMMA[] =
    "{{ bos_token }}{{ '<start_of_turn>' + role + '\\n' + (message['content'] | trim) + '<end_of_turn>\\n' }}";
static const char GEMMA1[] =
    "{{ bos_token }}{{ raise_exception('System role not supported') }}{{ '<start_of_turn>' }}{{'<end_of_turn>\\n' }}";
static const char PHI3[] = "{% if message['role'] == 'user' %}{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}";
static const char ZEPHYR[] = "{{ '<|user|>\\n' + message['content'] + eos_token }}";

static void check_text(const char *template_text, const chat_message *messages, size_t count, const char *expected)
{
    chat_format format = {.template_text = template_text, .bos = "<s>", .eos = "</s>"};
    text_buffer out = {0};
    CHECK_OK(chat_find(template_text, &format.family));
    CHECK_OK(chat_render(&format, messages, count, true, &out));
    CHECK_OK(text_buffer_end(&out));
    assert_string_equal(out.text, expected);
    text_buffer_free(&out);
}

static void check_refused(const char *template_text, const chat_message *messages, size_t count, const char *word)
{
    chat_format format = {.template_text = template_text, .bos = "<s>", .eos = "</s>"};
    text_buffer out = {0};
    CHECK_OK(chat_find(template_text, &format.family));
    CHECK_OK(text_buffer_add_text(&out, "before"));
    assert_int_not_equal(chat_render(&format, messages, count, true, &out), WW_OK);
    assert_non_null(strstr(ww_error_message(), word));
    assert_int_equal(out.bytes, 6);
    text_buffer_free(&out);
}

static void each_family_has_its_form(void **state)
{
    (void)state;
    check_text(
        CHATML, TALK, 4,
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n"
        "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n");
    check_text(LLAMA2, TALK, 4, "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello! </s><s>[INST] 2+2? [/INST]");
    check_text(
        LLAMA3, TALK, 4,
        "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi"
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|><|start_header_id|>user<|end_header_id|>"
        "\n\n2+2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
    check_text(GEMMA, TALK, 4,
               "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n"
               "<start_of_turn>user\n2+2?<end_of_turn>\n<start_of_turn>model\n");
    check_text(MISTRAL, TALK + 1, 3, "<s>[INST]  Hi  [/INST]Hello!</s>[INST] 2+2? [/INST]");
    check_text(MISTRAL3, TALK, 4, "<s>[INST]  Hi [/INST] Hello!</s>[INST] Be brief.\n\n2+2?[/INST]");
    check_text(PHI3, TALK, 2, "<|system|>\nBe brief.<|end|>\n<|user|>\n Hi <|end|>\n<|assistant|>\n");
    check_text(ZEPHYR, TALK, 2, "<|system|>\nBe brief.</s>\n<|user|>\n Hi </s>\n<|assistant|>\n");
}

static void a_template_may_have_words_for_the_system(void **state)
{
    (void)state;
    check_text(QWEN, TALK + 1, 1,
               "<|im_start|>system\nYou are Qwen.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
    check_text(QWEN, TALK, 2,
               "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
    check_text(CHATML, TALK + 1, 1, "<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
    check_text(
        LLAMA31, TALK, 2,
        "<s><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
        "Be brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant"
        "<|end_header_id|>\n\n");
}

static void what_a_family_does_not_know_is_refused(void **state)
{
    (void)state;
    static const chat_message tool[] = {{"tool", "42"}}, late[] = {{"user", "a"}, {"system", "b"}},
                              twice[] = {{"user", "a"}, {"user", "b"}}, none[] = {{"user", NULL}},
                              broken[] = {{"user", "\xFF"}};
    chat_family family;
    check_refused(CHATML, tool, 1, "'tool'");
    check_refused(CHATML, late, 2, "only the first");
    check_refused(CHATML, none, 1, "no text");
    check_refused(CHATML, broken, 1, "no UTF-8");
    check_refused(CHATML, TALK, 0, "without messages");
    check_refused(GEMMA, twice, 2, "must be the assistant's");
    check_refused(LLAMA2, TALK + 2, 1, "must be the user's");
    check_refused(GEMMA1, TALK, 2, "no system message");
    check_refused(MISTRAL, TALK, 2, "no system message");
    CHECK_FAILS(WW_UNSUPPORTED, chat_find("{{ 'a template of my own' }}", &family));
    assert_non_null(strstr(ww_error_message(), "chatml, llama2, llama3, mistral, gemma"));
    CHECK_FAILS(WW_UNSUPPORTED, chat_find_name("alpaca", &family));
    assert_non_null(strstr(ww_error_message(), "'alpaca'"));
    CHECK_OK(chat_find_name("gemma", &family));
    assert_int_equal(family, CHAT_GEMMA);
    assert_string_equal(chat_name(CHAT_LLAMA3), "llama3");
}

/* Rendered by the program that the template was written for. */
static void smollm2_reads_what_it_was_taught(void **state)
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
    chat_format format = {.template_text = template_text, .bos = "<|im_start|>", .eos = "<|im_end|>"};
    CHECK_OK(chat_find(template_text, &format.family));
    assert_int_equal(json_array_size(cases), 3);
    json_array_foreach(cases, i, one)
    {
        chat_message messages[8];
        text_buffer out = {0};
        json_t *list = json_object_get(one, "messages");
        json_array_foreach(list, k, message) messages[k] =
            (chat_message){.role = json_string_value(json_object_get(message, "role")),
                           .text = json_string_value(json_object_get(message, "content"))};
        CHECK_OK(chat_render(&format, messages, json_array_size(list),
                             json_is_true(json_object_get(one, "add_generation_prompt")), &out));
        CHECK_OK(text_buffer_end(&out));
        assert_string_equal(out.text, json_string_value(json_object_get(one, "text")));
        text_buffer_free(&out);
    }
    json_decref(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_family_has_its_form),
        cmocka_unit_test(a_template_may_have_words_for_the_system),
        cmocka_unit_test(what_a_family_does_not_know_is_refused),
        cmocka_unit_test(smollm2_reads_what_it_was_taught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
