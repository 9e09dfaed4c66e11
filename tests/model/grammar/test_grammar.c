/* Grammars: a matcher compared with PCRE2 on every short text, which grammars are refused and how, and JSON schemas on texts
 * that match them and texts that do not.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/grammar/matcher.h"
#include "model/grammar/schema.h"
#include "support/check.h"
#include "support/data/random.h"
#include "support/memory.h"

/* Does the grammar accept the text? */
static bool accepts(const grammar_program *program, matcher *m, const char *text, size_t bytes)
{
    int32_t state = m->start;
    (void)program;
    for (size_t i = 0; i < bytes; i++)
        CHECK_OK(matcher_step(m, state, (uint8_t)text[i], &state));
    return m->states[state].ends;
}

/* ---- beside PCRE2 -------------------------------------------------------------------------------------------------------- */

/* Two notations of the same language, and the characters of the tested texts. */
static const struct pair {
    const char *gbnf, *expression;
    const char *alphabet[6];
} pairs[] = {
    {"root ::= \"ab\"", "ab", {"a", "b", "c"}},
    {"root ::= \"\"", "", {"a", "b"}},
    {"root ::= \"a\"* \"b\"", "a*b", {"a", "b"}},
    {"root ::= \"a\"+ | \"b\"? \"c\"", "a+|b?c", {"a", "b", "c"}},
    {"root ::= (\"a\" | \"b\" \"c\")*", "(a|bc)*", {"a", "b", "c"}},
    {"root ::= (\"a\"* \"b\"*)* \"c\"", "(a*b*)*c", {"a", "b", "c"}},
    {"root ::= ((\"a\"?)+)* (\"b\" | )", "a*b?", {"a", "b"}},
    {"root ::= \"a\"{2} \"b\"{1,} \"c\"{0,2} \"d\"{0} \"a\"{0,}", "aab+c{0,2}a*", {"a", "b", "c", "d"}},
    {"root ::= (\"a\" \"b\"?){2,4}", "(ab?){2,4}", {"a", "b"}},
    {"root ::= [a-c]* [^b]", "[a-c]*[^b]", {"a", "b", "d", "\xC3\xA9"}},
    {"root ::= [^a-b\\u00e9]{2}", "[^a-b\xC3\xA9]{2}", {"a", "c", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}},
    {"root ::= . [\\u0080-\\U0001F600] .?", ".[\xC2\x80-\xF0\x9F\x98\x80].?", {"a", "\xC3\xA9", "\xF0\x9F\x98\x80", "\n"}},
    {"root ::= [\\x22\\]\\\\^-]+", "[\"\\]\\\\^-]+", {"\"", "]", "\\", "^", "-", "a"}},
    {"root ::= a  # a comment\na ::= \"(\" a \")\" a | ", "(\\((?1)\\)(?1)|)", {"(", ")", "x"}},
    {"root ::= p\np ::= \"a\" p \"a\" | \"b\" p \"b\" | \"c\"", "(a(?1)a|b(?1)b|c)", {"a", "b", "c"}},
    {"root ::= e\ne ::= t (\"+\" t)*\nt ::= \"1\" | \"(\" e\n \")\"", "((1|\\((?1)\\))(\\+(?2))*)", {"1", "+", "(", ")"}},
    {"root ::= n n \"a\"\nn ::= m?\nm ::= \"b\" n", "b*a", {"a", "b"}},
    {"root ::= x{3}\nx ::= y | \"a\"\ny ::= \"a\" \"a\"", "a{3,6}", {"a", "b"}},
    {"x ::= \"a\"\n  | \"b\"\nroot ::=\n x\n x", "[ab]{2}", {"a", "b", "c"}},
};

static bool expression_accepts(pcre2_code *code, pcre2_match_data *match, const char *text, size_t bytes)
{
    const int found = pcre2_match(code, (PCRE2_SPTR)text, bytes, 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED, match, NULL);
    assert_true(found >= 0 || found == PCRE2_ERROR_NOMATCH);
    return found >= 0;
}

/* Every text of at most seven characters. */
static int check_texts(const struct pair *p, pcre2_code *code, matcher *m)
{
    enum { LENGTH_MAX = 7 };
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, NULL);
    int places[LENGTH_MAX] = {0}, letters = 0, accepted = 0;
    while (letters < 6 && p->alphabet[letters])
        letters++;
    const int longest = letters > 4 ? LENGTH_MAX - 2 : LENGTH_MAX;
    for (int length = 0; length <= longest; length++) {
        long count = 1;
        for (int i = 0; i < length; i++)
            count *= letters;
        for (long n = 0; n < count; n++) {
            char text[4 * LENGTH_MAX + 1] = "";
            long rest = n;
            for (int i = 0; i < length; i++, rest /= letters)
                strcat(text, p->alphabet[places[i] = (int)(rest % letters)]);
            const bool expected = expression_accepts(code, match, text, strlen(text));
            accepted += expected;
            if (accepts(m->program, m, text, strlen(text)) != expected)
                fail_msg("%s: '%s' is %s", p->gbnf, text, expected ? "refused" : "accepted");
        }
    }
    pcre2_match_data_free(match);
    return accepted;
}

static void a_grammar_accepts_the_same_texts_as_an_equivalent_expression(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        int error;
        PCRE2_SIZE at;
        grammar_program program = {0};
        matcher m = {0};
        pcre2_code *code = pcre2_compile((PCRE2_SPTR)pairs[i].expression, PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY, &error, &at, NULL);
        assert_non_null(code);
        CHECK_OK(gbnf_parse(pairs[i].gbnf, strlen(pairs[i].gbnf), &program));
        CHECK_OK(matcher_begin(&m, &program));
        if (check_texts(&pairs[i], code, &m) == 0)
            fail_msg("%s: no text was accepted", pairs[i].gbnf);
        matcher_free(&m);
        grammar_program_free(&program);
        pcre2_code_free(code);
    }
}

static void a_class_has_all_characters_of_its_ranges_and_no_others(void **state)
{
    static const struct {
        const char *gbnf;
        uint32_t low, high;
    } classes[] = {{"root ::= [\\x41-\\U0010FFFF]", 0x41, 0x10FFFF},
                   {"root ::= [\\u07f0-\\U00010002]", 0x7f0, 0x10002},
                   {"root ::= [\\u1234-\\u5432]", 0x1234, 0x5432},
                   {"root ::= [\\U00012345-\\U000FEDCB]", 0x12345, 0xFEDCB},
                   {"root ::= [^\\x00-\\u00fe\\u0900-\\U0010FFFF]", 0xFF, 0x8FF}};
    (void)state;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        grammar_program program = {0};
        matcher m = {0};
        CHECK_OK(gbnf_parse(classes[i].gbnf, strlen(classes[i].gbnf), &program));
        CHECK_OK(matcher_begin(&m, &program));
        for (uint32_t c = 0; c <= 0x10FFFF; c++) {
            char text[4];
            const size_t count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
            for (size_t k = count - 1; k > 0; k--)
                text[k] = (char)(0x80 | (c >> 6 * (count - 1 - k) & 0x3F));
            text[0] = (char)(count == 1 ? c : (0xF00u >> count & 0xFF) | c >> 6 * (count - 1));
            const bool expected = c >= classes[i].low && c <= classes[i].high && (c < 0xD800 || c > 0xDFFF);
            if (accepts(&program, &m, text, count) != expected)
                fail_msg("%s: U+%04X", classes[i].gbnf, (unsigned)c);
        }
        matcher_free(&m);
        grammar_program_free(&program);
    }
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

static void invalid_grammars_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *text, *reason;
    } wrong[] = {
        {"", "'root'"},
        {"root", "line 1: a rule"},
        {"root ::= a", "'a' is used and not defined"},
        {"root ::= \"a\"\nroot ::= \"b\"", "line 2: rule 'root' is defined twice"},
        {"root ::= \"a", "line 1: a literal"},
        {"root ::= [a", "does not end"},
        {"root ::= []", "empty"},
        {"root ::= [^\\x00-\\U0010FFFF]", "empty"},
        {"root ::= [z-a]", "ends before it begins"},
        {"root ::= (\"a\"", "not closed"},
        {"root ::= \"a\")", "closes no group"},
        {"root ::= \"a\"{2,1}", "repetition"},
        {"root ::= \"a\"{,1}", "repetition"},
        {"root ::= \"a\"{100001}", "repetition"},
        {"root ::= * \"a\"", "expected"},
        {"root ::= \"a\" % \"b\"", "expected"},
        {"root ::= \"\\q\"", "escape"},
        {"root ::= \"\\ud800\"", "not a Unicode character"},
        {"root ::= \"\\x4\"", "hexadecimal"},
        {"root ::= root \"a\" | \"b\"", "'root' calls itself"},
        {"root ::= \"c\" a\na ::= b \"x\" | \"y\"\nb ::= \"\"? a", "left recursion"},
        {"root ::= n root | \"b\"\nn ::= \"a\"*", "'root' calls itself"},
        {"root ::= \"a\" | x\nx ::= \"b\" x", "'x' never ends"},
        {"root ::= ((\"a\"{1000}){1000})", "more than 262144 steps"},
        {"root ::= \"\xFF\"", "not UTF-8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        grammar_program program = {0};
        if (gbnf_parse(wrong[i].text, strlen(wrong[i].text), &program) == WW_OK)
            fail_msg("%s: accepted", wrong[i].text);
        if (!strstr(ww_error_message(), wrong[i].reason))
            fail_msg("%s: %s", wrong[i].text, ww_error_message());
        assert_null(program.steps);
    }
    assert_int_equal(blocks_held(), 0);
}

static void groups_inside_each_other_have_a_limit_and_no_recursion_beyond_it(void **state)
{
    static char text[200000];
    grammar_program program = {0};
    (void)state;
    memcpy(text, "root ::= ", 9);
    memset(text + 9, '(', sizeof text - 9);
    assert_int_equal(gbnf_parse(text, sizeof text, &program), WW_INVALID_ARGUMENT);
    assert_non_null(strstr(ww_error_message(), "nested more than 100"));
}

/* Rules that each depend on the one before them, which is checked later. */
static void rules_in_long_chains_are_refused_before_they_take_long(void **state)
{
    enum { RULES = 4000, BYTES = RULES * 600 };
    char *text = memory_alloc(BYTES);
    size_t used = (size_t)snprintf(text, BYTES, "root ::= r3999\nr0 ::= \"a\"\n");
    grammar_program program = {0};
    (void)state;
    for (int i = 1; i < RULES; i++)
        used += (size_t)snprintf(text + used, BYTES - used, "r%d ::= [a-c]{20} r%d\n", i, i - 1);
    const ww_status status = gbnf_parse(text, used, &program);
    memory_free(text);
    assert_int_equal(status, WW_OUT_OF_RANGE);
    assert_non_null(strstr(ww_error_message(), "chains"));
    assert_int_equal(blocks_held(), 0);
}

static void a_deep_text_is_remembered_and_forgotten_states_change_nothing(void **state)
{
    static const char gbnf[] = "root ::= p\np ::= \"(\" p \")\" | \"x\"";
    enum { DEPTH = 200000 };
    grammar_program program = {0};
    matcher m = {0};
    int32_t at;
    (void)state;
    CHECK_OK(gbnf_parse(gbnf, strlen(gbnf), &program));
    CHECK_OK(matcher_begin(&m, &program));
    at = m.start;
    for (int i = 0; i < 2 * DEPTH + 1; i++) {
        CHECK_OK(matcher_step(&m, at, i < DEPTH ? '(' : i == DEPTH ? 'x' : ')', &at));
        CHECK_OK(matcher_trim(&m, &at));
        assert_int_not_equal(at, STATE_DEAD);
        assert_int_equal(m.states[at].ends, i == 2 * DEPTH);
        assert_true(m.state_count <= 1 << 12);
    }
    matcher_free(&m);
    grammar_program_free(&program);
    assert_int_equal(blocks_held(), 0);
}

/* ---- schemas ------------------------------------------------------------------------------------------------------------- */

static void schema_program(const char *schema, grammar_program *program)
{
    text_buffer gbnf = {0};
    CHECK_OK(schema_to_gbnf(schema, strlen(schema), &gbnf));
    CHECK_OK(gbnf_parse(gbnf.text, gbnf.bytes, program));
    text_buffer_free(&gbnf);
}

static void texts_that_fit_a_schema_are_accepted_and_others_are_not(void **state)
{
#include "model/grammar/schema_cases.h"
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grammar_program program = {0};
        matcher m = {0};
        schema_program(cases[i].schema, &program);
        CHECK_OK(matcher_begin(&m, &program));
        for (int good = 0; good < 2; good++)
            for (const char *const *text = good ? cases[i].good : cases[i].bad; *text; text++)
                if (accepts(&program, &m, *text, strlen(*text)) != good)
                    fail_msg("%s: %s is %s", cases[i].schema, *text, good ? "refused" : "accepted");
        matcher_free(&m);
        grammar_program_free(&program);
    }
    assert_int_equal(blocks_held(), 0);
}

static void a_quantifier_may_be_long(void **state)
{
    (void)state;
    grammar_program program = {0};
    matcher m = {0};
    char schema[700];
    snprintf(schema, sizeof schema, "{\"pattern\": \"^a{%0600d}$\"}", 2);
    schema_program(schema, &program);
    CHECK_OK(matcher_begin(&m, &program));
    assert_true(accepts(&program, &m, "\"aa\"", 4));
    assert_false(accepts(&program, &m, "\"a\"", 3));
    matcher_free(&m);
    grammar_program_free(&program);
}

/* Every integer near the bounds, and powers of ten around the largest. */
static void a_range_of_integers_has_all_between_its_bounds_and_no_others(void **state)
{
    (void)state;
    test_random random = {11};
    for (int n = 0; n < 150; n++) {
        const int width = n < 50 ? 40 : 1300, low = (int)random_below(&random, 2 * (uint64_t)width) - width;
        const int high = low + (int)random_below(&random, (uint64_t)width);
        grammar_program program = {0};
        matcher m = {0};
        char schema[128];
        snprintf(schema, sizeof schema, "{\"type\": \"integer\", \"minimum\": %d, \"maximum\": %d}", low, high);
        schema_program(schema, &program);
        CHECK_OK(matcher_begin(&m, &program));
        for (int i = low - 120; i <= high + 120; i++) {
            char text[16];
            const size_t bytes = (size_t)snprintf(text, sizeof text, "%d", i);
            if (accepts(&program, &m, text, bytes) != (i >= low && i <= high))
                fail_msg("%s: %d", schema, i);
        }
        matcher_free(&m);
        grammar_program_free(&program);
    }
}

static void check_number(matcher *m, const char *schema, const char *text, bool expected)
{
    if (accepts(m->program, m, text, strlen(text)) != expected)
        fail_msg("%s: %s is %s", schema, text, expected ? "refused" : "accepted");
}

/* Hundredths as bounds, and every thousandth around them, with and without zeros at its end. */
static void a_range_of_numbers_has_all_between_its_bounds_and_no_others(void **state)
{
    (void)state;
    test_random random = {12};
    for (int n = 0; n < 60; n++) {
        const int width = n < 30 ? 30 : 1200, low = (int)random_below(&random, 2 * (uint64_t)width) - width;
        const int high = low + 1 + (int)random_below(&random, (uint64_t)width);
        const bool lower = random_below(&random, 2), upper = random_below(&random, 2); /* exclusive? */
        grammar_program program = {0};
        matcher m = {0};
        char schema[160];
        snprintf(schema, sizeof schema, "{\"type\": \"number\", \"%s\": %.2f, \"%s\": %.2f}",
                 lower ? "exclusiveMinimum" : "minimum", low / 100.0, upper ? "exclusiveMaximum" : "maximum", high / 100.0);
        schema_program(schema, &program);
        CHECK_OK(matcher_begin(&m, &program));
        for (int i = 10 * low - 1200; i <= 10 * high + 1200; i++) {
            char text[16];
            const bool fits = i >= 10 * low + lower && i <= 10 * high - upper;
            const int bytes = snprintf(text, sizeof text, "%s%d.%03d", i < 0 ? "-" : "", abs(i) / 1000, abs(i) % 1000);
            check_number(&m, schema, text, fits);
            for (int end = bytes - 1; text[end] == '0' || text[end] == '.'; end--) {
                const bool whole = text[end] == '.';
                text[end] = '\0';
                check_number(&m, schema, text, fits && text[end - 1] != '.');
                if (whole)
                    break;
            }
        }
        matcher_free(&m);
        grammar_program_free(&program);
    }
}

static void invalid_and_unsupported_schemas_are_refused_by_name(void **state)
{
    static const struct {
        const char *text, *reason;
    } wrong[] = {
        {"{", "line 1"},
        {"[]", "must be an object"},
        {"false", "nothing fits"},
        {"{\"type\": \"text\"}", "'text'"},
        {"{\"type\": []}", "empty list"},
        {"{\"type\": \"integer\", \"minimum\": \"3\"}", "minimum must be a number"},
        {"{\"type\": \"integer\", \"exclusiveMinimum\": true}", "exclusiveMinimum must be a number"},
        {"{\"type\": \"integer\", \"maximum\": 1e18}", "maximum must be a number of at most 18 digits"},
        {"{\"type\": \"integer\", \"minimum\": 3, \"exclusiveMaximum\": 3}", "no integer is between"},
        {"{\"type\": \"number\", \"exclusiveMinimum\": 0.5, \"maximum\": 0.5}", "no number is between"},
        {"{\"type\": \"number\", \"minimum\": 0.12345678901234567}", "minimum must be a number of at most 15 digits"},
        {"{\"type\": \"number\", \"maximum\": 1e15}", "maximum must be a number of at most 15 digits"},
        {"{\"type\": \"number\", \"maximum\": 1234567890123456}", "maximum must be a number of at most 15 digits"},
        {"{\"prefixItems\": {}}", "prefixItems must be a list"},
        {"{\"prefixItems\": [true], \"minItems\": 2}", "below minItems"},
        {"{\"const\": 3, \"minimum\": 3}", "beside 'const'"},
        {"{\"properties\": {\"a\": {\"uniqueItems\": true}}}", "'uniqueItems'"},
        {"{\"$ref\": \"#/$defs/a\"}", "'#/$defs/a'"},
        {"{\"$ref\": \"http://a\"}", "'http://a'"},
        {"{\"anyOf\": [true], \"minLength\": 2}", "beside 'anyOf'"},
        {"{\"anyOf\": []}", "anyOf"},
        {"{\"allOf\": [true, true]}", "allOf"},
        {"{\"oneOf\": [{\"type\": \"integer\"}, {\"type\": \"number\"}]}", "1 and 2 of oneOf"},
        {"{\"enum\": []}", "no value"},
        {"{\"type\": \"string\", \"const\": 3}", "no value"},
        {"{\"type\": \"array\", \"minItems\": 3, \"maxItems\": 2}", "maxItems"},
        {"{\"minLength\": -1}", "minLength"},
        {"{\"maxLength\": 1e9}", "maxLength"},
        {"{\"pattern\": \"a(?=b)\"}", "(?"},
        {"{\"pattern\": \"a\\\\b\"}", "punctuation"},
        {"{\"pattern\": \"^a|b$\"}", "| outside"},
        {"{\"pattern\": \"a*?\"}", "lazy"},
        {"{\"pattern\": \"(a\"}", "not closed"},
        {"{\"pattern\": \"a\", \"minLength\": 1}", "beside minLength"},
        {"{\"required\": [\"a\"], \"additionalProperties\": false}", "'a' is required"},
        {"{\"required\": [1]}", "list of names"},
        {"{\"properties\": []}", "properties"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        text_buffer gbnf = {0};
        if (schema_to_gbnf(wrong[i].text, strlen(wrong[i].text), &gbnf) == WW_OK)
            fail_msg("%s: accepted", wrong[i].text);
        if (!strstr(ww_error_message(), wrong[i].reason))
            fail_msg("%s: %s", wrong[i].text, ww_error_message());
        text_buffer_free(&gbnf);
    }
    assert_int_equal(blocks_held(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grammar_accepts_the_same_texts_as_an_equivalent_expression),
        cmocka_unit_test(a_class_has_all_characters_of_its_ranges_and_no_others),
        cmocka_unit_test(invalid_grammars_are_refused_with_the_reason),
        cmocka_unit_test(groups_inside_each_other_have_a_limit_and_no_recursion_beyond_it),
        cmocka_unit_test(rules_in_long_chains_are_refused_before_they_take_long),
        cmocka_unit_test(a_deep_text_is_remembered_and_forgotten_states_change_nothing),
        cmocka_unit_test(texts_that_fit_a_schema_are_accepted_and_others_are_not),
        cmocka_unit_test(a_quantifier_may_be_long),
        cmocka_unit_test(a_range_of_integers_has_all_between_its_bounds_and_no_others),
        cmocka_unit_test(a_range_of_numbers_has_all_between_its_bounds_and_no_others),
        cmocka_unit_test(invalid_and_unsupported_schemas_are_refused_by_name),
    };
    return cmocka_run_group_tests_name("grammars", tests, NULL, NULL);
}
