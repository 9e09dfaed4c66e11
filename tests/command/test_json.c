/* The JSON checker compared with jansson: both must agree on every text that is within the limits of both. */
#include "support/check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "support/data/random.h"
#include "support/memory.h"

static bool accepts(const char *text)
{
    json_fault fault;
    return json_check(text, strlen(text), &fault);
}

static void valid_json_is_accepted(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "-0.5e+10",
        "1E-2",
        "123456789012345678901234567890",
        "1e400",
        "\"\"",
        "\"\\u0000\\n\\/\\\"\"",
        "\"\\ud83d\\ude00\"",
        "\"\xf0\x9f\x98\x80 \xc3\xa9\"",
        "[]",
        "{}",
        "[1,[2,{\"a\":[]}],{}]",
        "{\"a\":1,\"a\":2}",
        "\t{ \"x\" : [ 1 , 2 ] }\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!accepts(texts[i]))
            fail_msg("refused: %s", texts[i]);
}

static void invalid_json_is_refused_with_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *what;
        size_t line, column;
    } cases[] = {
        {"", "the end where a value is expected", 1, 1},
        {"[1,\n 2", "a comma or ] expected", 2, 3},
        {"[1,]", "a value expected", 1, 4},
        {"{\"a\" 1}", "a colon expected", 1, 6},
        {"{a:1}", "a key in quotes expected", 1, 2},
        {"{\"a\":1,}", "a key in quotes expected", 1, 8},
        {"[1}", "a comma or ] expected", 1, 3},
        {"01", "a number that begins with 0", 1, 2},
        {"-", "a number without digits", 1, 2},
        {"1.", "a number without digits", 1, 3},
        {"1e+", "a number without digits", 1, 4},
        {"nul", "a value expected", 1, 1},
        {"NaN", "a value expected", 1, 1},
        {"1 2", "something after the value", 1, 3},
        {"\"a", "a string that does not end", 1, 3},
        {"\"\\x\"", "an escape that JSON does not have", 1, 4},
        {"\"\\u12\"", "a \\u escape without four hexadecimal digits", 1, 4},
        {"\"\\ud800\"", "a \\u escape that is half of a surrogate pair", 1, 8},
        {"\"\\udc00\"", "a \\u escape that is half of a surrogate pair", 1, 8},
        {"\"\n\"", "a control character in a string", 2, 1},
        {"\"\xff\"", "bytes that are not UTF-8", 1, 3},
        {"\"\xc0\x80\"", "bytes that are not UTF-8", 1, 3},
        {"\"\xed\xa0\x80\"", "bytes that are not UTF-8", 1, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_fault fault;
        assert_false(json_check(cases[i].text, strlen(cases[i].text), &fault));
        assert_string_equal(fault.what, cases[i].what);
        assert_int_equal(fault.line, cases[i].line);
        assert_int_equal(fault.column, cases[i].column);
    }
}

static void depth_is_limited_and_said(void **state)
{
    (void)state;
    char text[2 * (JSON_DEPTH_MAX + 1)];
    json_fault fault;
    for (int depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        assert_int_equal(json_check(text, 2 * (size_t)depth, &fault), depth == JSON_DEPTH_MAX);
    }
    assert_non_null(strstr(fault.what, "too deep"));
}

/* 15 MB of "[]," would become hundreds of megabytes as a tree. */
static void memory_does_not_grow_with_the_text(void **state)
{
    (void)state;
    enum { BYTES = 3 * 1000 * 1000 };
    char *text = malloc(BYTES + 3);
    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 1; i < BYTES; i += 3)
        memcpy(text + i, "[],", 3);
    memcpy(text + BYTES - 2, "1]", 3);
    fail_allocation_at(1);
    assert_true(accepts(text));
    fail_allocation_at(0);
    free(text);
}

/* Texts made by random edits of a good one: both say the same of each. */
static void it_agrees_with_jansson(void **state)
{
    (void)state;
    static const char good[] = "{\"a\":[1,-2.5e3,true,null,\"x\\u00e9\\n\"],\"b\":{\"c\":[[],{}]},\"d\":0}";
    static const char bytes[] = "{}[]:,\"\\u0eE+-.1tnf \n\x80\xc3";
    uint64_t refused = 0;
    test_random random = {7};
    for (int round = 0; round < 20000; round++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        const size_t length = sizeof good - 1;
        for (uint64_t edits = 1 + random_below(&random, 3); edits > 0; edits--)
            text[random_below(&random, length)] = bytes[random_below(&random, sizeof bytes - 1)];
        json_error_t error;
        json_t *tree = json_loadb(text, length, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);
        json_fault fault;
        if (json_check(text, length, &fault) != (tree != NULL) && !(error.text[0] && strstr(error.text, "overflow")))
            fail_msg("%s: jansson %s", text, tree ? "accepts it" : error.text);
        refused += tree == NULL;
        json_decref(tree);
    }
    assert_true(refused > 5000 && refused < 19000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_json_is_accepted),    cmocka_unit_test(invalid_json_is_refused_with_the_place),
        cmocka_unit_test(depth_is_limited_and_said), cmocka_unit_test(memory_does_not_grow_with_the_text),
        cmocka_unit_test(it_agrees_with_jansson),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
