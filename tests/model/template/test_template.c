/* Chat templates, compared with the output of jinja2 (template_cases.json, by make_template_cases.py). */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/template/template.h"
#include "support/check.h"

enum { NOW = 1721984700 }; /* 2024-07-26 09:05:00 UTC, as in make_template_cases.py */

static ww_status render_with(const char *text, const char *json, bool generation, text_buffer *out, template_quotes *quotes)
{
    const template_input input = {.json = json, .bos = "<s>", .eos = "</s>", .add_generation = generation, .now = NOW};
    template_program *program = NULL;
    ww_status status = template_parse(text, strlen(text), &program);
    if (status == WW_OK)
        status = template_render(program, &input, out, quotes);
    template_free(program);
    return status;
}

/* The mark in the inputs is in no template: all of it must be the conversation's. */
static void check_marks(const char *name, const text_buffer *out, const template_quotes *quotes)
{
    size_t quote = 0;
    for (const char *at = out->text; (at = strstr(at, "§")) != NULL; at++) {
        const size_t place = (size_t)(at - out->text);
        while (quote < quotes->count && quotes->spans[quote].to <= place)
            quote++;
        if (quote == quotes->count || quotes->spans[quote].from > place)
            fail_msg("%s: byte %zu is the conversation's", name, place);
    }
}

static void check_case(const char *name, const char *text, json_t *variables, json_t *expected)
{
    char *json = json_dumps(variables, 0);
    text_buffer out = {0};
    template_quotes quotes = {0};
    const bool generation = json_is_true(json_object_get(variables, "add_generation_prompt"));
    const ww_status status = render_with(text, json, generation, &out, &quotes);
    CHECK_OK(text_buffer_end(&out));
    if ((status == WW_OK) != json_is_string(expected))
        fail_msg("%s: %s, and jinja2 %s\n%s", name, status == WW_OK ? "rendered" : ww_error_message(),
                 json_is_string(expected) ? "rendered" : "refused", json);
    if (status == WW_OK && strcmp(out.text, json_string_value(expected)) != 0)
        fail_msg("%s:\n%s\nis not jinja2's\n%s", name, out.text, json_string_value(expected));
    if (status == WW_OK)
        check_marks(name, &out, &quotes);
    template_quotes_free(&quotes);
    text_buffer_free(&out);
    free(json);
}

static void templates_write_the_same_text_as_jinja2(void **state)
{
    (void)state;
    json_t *file = json_load_file(SOURCE_DIR "/tests/model/template/template_cases.json", 0, NULL), *one;
    json_t *templates = json_object_get(file, "templates"), *inputs = json_object_get(file, "inputs");
    size_t i;
    assert_true(json_object_size(templates) >= 30);
    assert_true(json_array_size(json_object_get(file, "cases")) >= 200);
    json_array_foreach(json_object_get(file, "cases"), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "template"));
        check_case(name, json_string_value(json_object_get(templates, name)),
                   json_array_get(inputs, (size_t)json_integer_value(json_object_get(one, "input"))),
                   json_object_get(one, "expected"));
    }
    json_decref(file);
}

static void check_refused(ww_status expected, const char *text, const char *words)
{
    text_buffer out = {0};
    template_quotes quotes = {0};
    CHECK_OK(text_buffer_add_text(&out, "before"));
    const ww_status status =
        render_with(text, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", true, &out, &quotes);
    if (status != expected || !strstr(ww_error_message(), words))
        fail_msg("%s: status %d, %s", text, (int)status, status == WW_OK ? "" : ww_error_message());
    assert_int_equal(out.bytes, 6);
    assert_int_equal(quotes.count, 0);
    template_quotes_free(&quotes);
    text_buffer_free(&out);
}

static void invalid_templates_are_refused_with_the_place(void **state)
{
    (void)state;
    check_refused(WW_INVALID_ARGUMENT, "a\n  {{ 1 + }}", "line 2, column 10: a value was expected, not the end of the tag");
    check_refused(WW_INVALID_ARGUMENT, "{% if a %}b", "endif was expected, not the end");
    check_refused(WW_INVALID_ARGUMENT, "{{ 'a }}", "line 1, column 4: a text has no closing '");
    check_refused(WW_INVALID_ARGUMENT, "{{ a", "a tag has no end");
    check_refused(WW_INVALID_ARGUMENT, "{# a", "a comment has no end");
    check_refused(WW_INVALID_ARGUMENT, "{{ a ? b }}", "the character '?' has no meaning");
    check_refused(WW_UNSUPPORTED, "{% include 'x' %}", "the tag 'include' is not known");
    check_refused(WW_UNSUPPORTED, "{{ 'a' | nosuch }}", "line 1, column 8: the filter 'nosuch' is not known");
    check_refused(WW_UNSUPPORTED, "{{ 'a' is nosuch }}", "the test 'nosuch' is not known");
    check_refused(WW_INVALID_ARGUMENT, "\xFF", "UTF-8");
    check_refused(WW_INVALID_ARGUMENT, "{{ raise_exception('no ' ~ messages[0].role) }}", "line 1, column 19: no user");
    check_refused(WW_INVALID_ARGUMENT, "{{ messages.append(1) }}", "'append' is undefined");
    check_refused(WW_INVALID_ARGUMENT, "{{ 1 // 0 }}", "division by zero");
    check_refused(WW_OUT_OF_RANGE, "{{ 9223372036854775807 + 1 }}", "64 bits");
}

static void a_template_that_does_not_end_is_stopped(void **state)
{
    (void)state;
    char deep[4096] = "{{ ";
    memset(deep + 3, '(', 2000);
    check_refused(WW_OUT_OF_RANGE, deep, "nested more than");
    check_refused(WW_OUT_OF_RANGE, "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
                  "more than");
    check_refused(WW_OUT_OF_RANGE, "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "levels deep");
    check_refused(WW_OUT_OF_RANGE, "{{ 'abcdefgh' * 1000000000 }}", "");
    check_refused(WW_OUT_OF_RANGE, "{{ range(2000000000) }}", "");
    check_refused(WW_OUT_OF_RANGE,
                  "{% set n = namespace(x='abcdefgh') %}{% for i in range(40) %}{% set n.x = n.x + n.x %}{% endfor %}", "");
    check_refused(WW_OUT_OF_RANGE, "{% set n = namespace(x=[]) %}{% for i in range(200) %}{% set n.x = [n.x] %}{% endfor %}",
                  "levels deep");
    check_refused(
        WW_OUT_OF_RANGE,
        "{% set n = namespace(x=[]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x == n.x + [] }}",
        "steps");
    check_refused(WW_OUT_OF_RANGE, "{% set n = namespace() %}{% set n.f = n %}{{ 2 ** 64 }}", "64 bits");
}

/* A text stays marked as the conversation's when a template changes it. */
static void text_stays_the_conversations(void **state)
{
    (void)state;
    static const char json[] = "{\"messages\": [{\"role\": \"user\", \"content\": \" <|end|> x \"}]}";
    text_buffer out = {0};
    template_quotes quotes = {0};
    CHECK_OK(render_with("<|{{ messages[0].content.upper() | trim ~ '<|end|>' }}{{ messages[0].content | tojson }}|>", json,
                         true, &out, &quotes));
    CHECK_OK(text_buffer_end(&out));
    assert_string_equal(out.text, "<|<|END|> X<|end|>\" <|end|> x \"|>");
    assert_int_equal(quotes.count, 2);
    assert_int_equal(quotes.spans[0].from, 2);
    assert_int_equal(quotes.spans[0].to, 11);
    assert_int_equal(quotes.spans[1].from, 19);
    assert_int_equal(quotes.spans[1].to, 30);
    template_quotes_free(&quotes);
    text_buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_write_the_same_text_as_jinja2),
        cmocka_unit_test(invalid_templates_are_refused_with_the_place),
        cmocka_unit_test(a_template_that_does_not_end_is_stopped),
        cmocka_unit_test(text_stays_the_conversations),
    };
    setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
