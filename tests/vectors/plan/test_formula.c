/* Formulas: what each operation computes, what is refused before and while a row is scored, and bits that must not change. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"

static const char PAYLOAD[] =
    "{\"price\": 8, \"name\": \"x\", \"one\": [5], \"two\": [1, 2], \"none\": [], \"null\": null, \"a\": {\"b\": [{\"c\": 3}]},"
    "\"when\": \"2024-01-31T12:00:00Z\", \"place\": {\"lat\": 52.52, \"lon\": 13.405}, \"lang\": \"en\", \"big\": 1e300}";
static const char DEFAULTS[] = "{\"$score[1]\": 0.25, \"missing\": 4, \"list\": [6], \"none\": 7, \"$score[9]\": 2}";
static const float SCORES[2] = {0.5f, NAN};

static ww_status compute(const char *json, const char *defaults, float *score)
{
    ww_formula *formula = NULL;
    ww_formula_row row = ww_formula_row_default();
    row.id = "7", row.payload = PAYLOAD, row.scores = SCORES, row.score_count = 2;
    ww_status status = ww_formula_read(json, defaults, NULL, NULL, &formula);
    if (status == WW_OK)
        status = ww_formula_score(formula, &row, score);
    ww_formula_destroy(formula);
    return status;
}

static void operations_compute_what_they_say(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        double expected;
    } CASES[] = {
        {"2.5", 2.5},
        {"\"$score\"", 0.5},
        {"\"$score[0]\"", 0.5},
        {"\"$score[1]\"", 0.25},
        {"\"$score[2]\"", 0},
        {"\"$score[9]\"", 2},
        {"\"price\"", 8},
        {"\"one\"", 5},
        {"\"a.b[].c\"", 3},
        {"\"missing\"", 4},
        {"\"list\"", 6},
        {"\"none\"", 7},
        {"{\"sum\": [1, \"price\", {\"sum\": []}]}", 9},
        {"{\"mult\": [2, \"price\", {\"mult\": []}]}", 16},
        {"{\"mult\": [0, \"unknown\"]}", 0}, /* what follows a 0 is not looked at */
        {"{\"max\": [1, \"price\", -2]}", 8},
        {"{\"min\": [1, \"price\", -2]}", -2},
        {"{\"neg\": \"price\"}", -8},
        {"{\"abs\": {\"neg\": 3}}", 3},
        {"{\"sqrt\": 9}", 3},
        {"{\"exp\": 0}", 1},
        {"{\"ln\": 1}", 0},
        {"{\"log10\": 1000}", 3},
        {"{\"acosh\": 1}", 0},
        {"{\"pow\": {\"base\": 2, \"exponent\": 10}}", 1024},
        {"{\"div\": {\"left\": 1, \"right\": 4}}", 0.25},
        {"{\"div\": {\"left\": 0, \"right\": \"unknown\"}}", 0},
        {"{\"div\": {\"left\": 1, \"right\": 0, \"by_zero_default\": 5}}", 5},
        {"{\"filter\": {\"lang\": \"en\"}}", 1},
        {"{\"filter\": {\"lang\": {\"$in\": [\"de\", \"fr\"]}}}", 0},
        {"{\"datetime\": \"1970-01-02\"}", 86400},
        {"{\"sum\": [{\"datetime_key\": \"when\"}, {\"neg\": {\"datetime\": \"2024-01-31\"}}]}", 43200},
        {"{\"lin_decay\": {\"x\": 1}}", 0.5},
        {"{\"lin_decay\": {\"x\": 3}}", 0},
        {"{\"lin_decay\": {\"x\": \"price\", \"target\": 6, \"scale\": 4, \"midpoint\": 0.75}}", 0.875},
        {"{\"exp_decay\": {\"x\": 7, \"target\": 7}}", 1},
        {"{\"exp_decay\": {\"x\": 3, \"target\": 1, \"scale\": 2}}", 0.5},
        {"{\"gauss_decay\": {\"x\": 3, \"target\": 1, \"scale\": 2}}", 0.5},
        {"{\"geo_distance\": {\"origin\": {\"lat\": 52.52, \"lon\": 13.405}, \"to\": \"place\"}}", 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        float score = NAN;
        CHECK_OK(compute(CASES[i].json, DEFAULTS, &score));
        if (score != (float)CASES[i].expected || (score == 0 && signbit(score)))
            fail_msg("%s: %.9g, not %.9g", CASES[i].json, (double)score, CASES[i].expected);
    }
}

/* These bits are the definition on every machine. */
static void bits_are_the_same_everywhere(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        double near;
        float bits;
    } CASES[] = {
        {"{\"exp\": 1}", 2.71828182845905, 0x1.5bf0a8p+1f},
        {"{\"ln\": 10}", 2.30258509299405, 0x1.26bb1cp+1f},
        {"{\"acosh\": 3}", 1.76274717403909, 0x1.c34366p+0f},
        {"{\"pow\": {\"base\": 1.5, \"exponent\": -0.7}}", 0.752897956971237, 0x1.817bd8p-1f},
        {"{\"geo_distance\": {\"origin\": {\"lat\": 51.5074, \"lon\": -0.1278}, \"to\": \"place\"}}", 931570.707207339,
         0x1.c6de56p+19f},
        {"{\"gauss_decay\": {\"x\": 5, \"scale\": 7, \"midpoint\": 0.3}}", 0.541034712319454, 0x1.150280p-1f},
        {"{\"exp_decay\": {\"x\": 5, \"scale\": 7, \"midpoint\": 0.3}}", 0.42317030252478, 0x1.b1538ep-2f},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        float score = NAN;
        CHECK_OK(compute(CASES[i].json, NULL, &score));
        assert_true(fabs((double)score - CASES[i].near) < 1e-6 * CASES[i].near);
        if (score != CASES[i].bits)
            fail_msg("%s: %a, not %a", CASES[i].json, (double)score, (double)CASES[i].bits);
    }
}

static void what_cannot_be_read_is_refused(void **state)
{
    (void)state;
    static const char *const WRONG[] = {"",
                                        "{",
                                        "[1]",
                                        "true",
                                        "null",
                                        "{}",
                                        "{\"sum\": 1}",
                                        "{\"sum\": [1], \"mult\": [2]}",
                                        "{\"max\": []}",
                                        "{\"what\": 1}",
                                        "\"$score[\"",
                                        "\"$score[-1]\"",
                                        "\"$score[1]x\"",
                                        "\"$scores\"",
                                        "\"\"",
                                        "\"a..b\"",
                                        "{\"div\": {\"left\": 1}}",
                                        "{\"div\": 1}",
                                        "{\"pow\": {\"base\": 1}}",
                                        "{\"exp_decay\": {}}",
                                        "{\"exp_decay\": {\"x\": 1, \"midpoint\": 1}}",
                                        "{\"gauss_decay\": {\"x\": 1, \"scale\": 0}}",
                                        "{\"lin_decay\": {\"x\": 1, \"midpoint\": -0.1}}",
                                        "{\"geo_distance\": {\"to\": \"place\"}}",
                                        "{\"geo_distance\": {\"origin\": {\"lat\": 91, \"lon\": 0}, \"to\": \"place\"}}",
                                        "{\"geo_distance\": {\"origin\": {\"lat\": 9, \"lon\": 0}}}",
                                        "{\"datetime\": \"yesterday\"}",
                                        "{\"datetime\": 5}",
                                        "{\"datetime_key\": 5}",
                                        "{\"filter\": {\"a\": {\"$what\": 1}}}",
                                        "{\"filter\": 1}",
                                        "1e999"};
    ww_formula *formula = NULL;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++)
        if (ww_formula_read(WRONG[i], NULL, NULL, NULL, &formula) != WW_INVALID_ARGUMENT)
            fail_msg("%s was not refused", WRONG[i]);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_formula_read("1", "[]", NULL, NULL, &formula));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_formula_read("1", "{\"$score[x]\": 1}", NULL, NULL, &formula));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_formula_read("\"$score\"", "{\"$score\": \"x\"}", NULL, NULL, &formula));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_formula_read(NULL, NULL, NULL, NULL, &formula));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_formula_read("1", NULL, NULL, NULL, NULL));
    char deep[1024] = "", wide[3 * WW_FORMULA_TERMS_MAX + 64] = "{\"sum\": [1";
    for (int i = 0; i < 40; i++)
        strcat(deep, "{\"neg\": ");
    strcat(deep, "1");
    for (int i = 0; i < 40; i++)
        strcat(deep, "}");
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_formula_read(deep, NULL, NULL, NULL, &formula));
    for (size_t i = 0, at = strlen(wide); i < WW_FORMULA_TERMS_MAX; i++, at += 2)
        memcpy(wide + at, ",1", 3);
    strcat(wide, "]}");
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_formula_read(wide, NULL, NULL, NULL, &formula));
    assert_null(formula);
}

static void a_row_without_what_the_formula_needs_is_refused(void **state)
{
    (void)state;
    static const char *const WRONG[] = {"\"unknown\"",
                                        "\"name\"",
                                        "\"null\"",
                                        "\"two\"",
                                        "\"a\"",
                                        "{\"datetime_key\": \"name\"}",
                                        "{\"datetime_key\": \"price\"}",
                                        "{\"geo_distance\": {\"origin\": {\"lat\": 1, \"lon\": 1}, \"to\": \"price\"}}",
                                        "{\"div\": {\"left\": 1, \"right\": 0}}",
                                        "{\"sqrt\": -1}",
                                        "{\"ln\": 0}",
                                        "{\"log10\": -1}",
                                        "{\"acosh\": 0.5}",
                                        "{\"exp\": 1000}",
                                        "{\"pow\": {\"base\": -1, \"exponent\": 0.5}}",
                                        "\"big\"",
                                        "{\"mult\": [\"big\", \"big\"]}"};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        float score = 7;
        if (compute(WRONG[i], NULL, &score) != WW_INVALID_ARGUMENT || score != 7)
            fail_msg("%s was not refused", WRONG[i]);
    }
    ww_formula *formula = NULL;
    float score = 0;
    ww_formula_row row = ww_formula_row_default();
    CHECK_OK(ww_formula_read("\"$score\"", NULL, NULL, NULL, &formula));
    CHECK_OK(ww_formula_score(formula, &row, &score));
    row.score_count = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_formula_score(formula, &row, &score));
    row.score_count = 0, row.payload = "{";
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_formula_score(formula, &row, &score));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_formula_score(NULL, &row, &score));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_formula_score(formula, NULL, &score));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_formula_score(formula, &row, NULL));
    ww_formula_destroy(formula);
}

static ww_status read_own(void *user, const char *json, ww_filter *filter)
{
    ++*(int *)user;
    if (strncmp(json, "{\"own\": 1}", 10) != 0)
        return WW_UNSUPPORTED;
    return ww_filter_add_ids(filter, (const char *const[]){"7"}, 1);
}

static void the_caller_reads_its_own_conditions(void **state)
{
    (void)state;
    int calls = 0;
    float score = 0;
    ww_formula *formula = NULL;
    ww_formula_row row = ww_formula_row_default();
    CHECK_OK(ww_formula_read("{\"sum\": [1, {\"own\": 1}]}", NULL, read_own, &calls, &formula));
    row.id = "7";
    CHECK_OK(ww_formula_score(formula, &row, &score));
    assert_true(score == 2.0f && calls == 1);
    row.id = "8";
    CHECK_OK(ww_formula_score(formula, &row, &score));
    assert_true(score == 1.0f);
    ww_formula_destroy(formula);
    CHECK_FAILS(WW_UNSUPPORTED, ww_formula_read("{\"own\": 2}", NULL, read_own, &calls, &formula));
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const int64_t held = blocks_held();
    ww_status status = WW_OUT_OF_MEMORY;
    long failures = 0;
    for (int64_t n = 1; status != WW_OK; n++) {
        float score = 0;
        fail_allocation_at(n);
        status = compute("{\"sum\": [\"price\", {\"filter\": {\"lang\": \"en\"}}, \"missing\"]}", DEFAULTS, &score);
        fail_allocation_at(0);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        assert_int_equal(blocks_held(), held);
        failures += status != WW_OK;
    }
    assert_true(failures > 5);
    fault_count("allocation", failures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_compute_what_they_say),
        cmocka_unit_test(bits_are_the_same_everywhere),
        cmocka_unit_test(what_cannot_be_read_is_refused),
        cmocka_unit_test(a_row_without_what_the_formula_needs_is_refused),
        cmocka_unit_test(the_caller_reads_its_own_conditions),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
