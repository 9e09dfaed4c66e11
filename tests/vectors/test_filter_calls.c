/* Filters built by calls: the same as those that are read, shown as text, and refused where they make no sense. */
#include "support/check.h"

#include <math.h>
#include <string.h>

#include "support/memory.h"

#define INTEGER(n) (&(ww_filter_value){.type = WW_FILTER_INTEGER, .integer = (n)})
#define REAL(x)    {.type = WW_FILTER_REAL, .real = (x)}
#define TEXT(t)    (&(ww_filter_value){.type = WW_FILTER_TEXT, .text = (t)})

static ww_status build_books(ww_filter **out)
{
    ww_filter *f = NULL;
    ww_status status = ww_filter_create(&f);
    if (status == WW_OK)
        status = ww_filter_add(f, "year", WW_FILTER_GREATER, INTEGER(2000), 1);
    if (status == WW_OK)
        status = ww_filter_begin(f, WW_FILTER_ANY, 0);
    if (status == WW_OK)
        status = ww_filter_add(f, "draft", WW_FILTER_EQUAL, &(ww_filter_value){.type = WW_FILTER_FALSE}, 1);
    if (status == WW_OK)
        status = ww_filter_add(f, "owner.name", WW_FILTER_EQUAL, TEXT("ann"), 1);
    if (status == WW_OK)
        status = ww_filter_end(f);
    if (status == WW_OK)
        *out = f;
    else
        ww_filter_destroy(f);
    return status;
}

static bool matches(const ww_filter *f, const char *id, const char *payload)
{
    int32_t found = -1;
    CHECK_OK(ww_filter_matches(f, id, payload, &found));
    return found;
}

static void a_filter_built_by_calls_equals_the_one_that_is_read(void **state)
{
    (void)state;
    ww_filter *built = NULL, *read = NULL, *other = NULL;
    CHECK_OK(build_books(&built));
    CHECK_OK(ww_filter_read("{\"year\": {\"$gt\": 2000}, \"$or\": [{\"draft\": false}, {\"owner.name\": \"ann\"}]}", &read));
    CHECK_OK(ww_filter_read("{\"year\": {\"$gt\": 2000}, \"$or\": [{\"draft\": false}, {\"owner.name\": \"anna\"}]}", &other));
    assert_true(ww_filter_equal(built, read) && ww_filter_equal(NULL, NULL));
    assert_false(ww_filter_equal(built, other) || ww_filter_equal(built, NULL));
    assert_true(matches(built, NULL, "{\"year\": 2001, \"owner\": {\"name\": \"ann\"}}"));
    assert_false(matches(built, NULL, "{\"year\": 2001, \"owner\": {\"name\": \"bob\"}}"));
    assert_false(matches(built, NULL, NULL));
    ww_filter_destroy(built);
    ww_filter_destroy(read);
    ww_filter_destroy(other);
}

static void groups_count_what_holds(void **state)
{
    (void)state;
    static const struct {
        ww_filter_group group;
        int64_t at_least;
        bool admits[4]; /* by the number of conditions that hold */
    } cases[] = {{WW_FILTER_ALL, 0, {false, false, false, true}},
                 {WW_FILTER_ANY, 0, {false, true, true, true}},
                 {WW_FILTER_NONE, 0, {true, false, false, false}},
                 {WW_FILTER_SOME, 2, {false, false, true, true}}};
    static const char *const payloads[] = {"{}", "{\"b\": 1}", "{\"a\": 1, \"c\": 1}", "{\"a\": 1, \"b\": 1, \"c\": 1}"};
    for (size_t i = 0; i < 4; i++) {
        ww_filter *f = NULL;
        CHECK_OK(ww_filter_create(&f));
        CHECK_OK(ww_filter_begin(f, cases[i].group, cases[i].at_least));
        for (const char *const *name = (const char *const[]){"a", "b", "c", NULL}; *name; name++)
            CHECK_OK(ww_filter_add(f, *name, WW_FILTER_EXISTS, NULL, 0));
        CHECK_OK(ww_filter_end(f));
        for (int held = 0; held < 4; held++)
            assert_int_equal(matches(f, NULL, payloads[held]), cases[i].admits[held]);
        ww_filter_destroy(f);
    }
}

static void elements_ids_and_other_filters_are_conditions(void **state)
{
    (void)state;
    static const char *const ids[] = {"b", "a", "zebra"};
    ww_filter *f = NULL, *books = NULL, *empty = NULL;
    CHECK_OK(build_books(&books));
    CHECK_OK(ww_filter_create(&empty));
    CHECK_OK(ww_filter_create(&f));
    CHECK_OK(ww_filter_begin_element(f, "list[]"));
    CHECK_OK(ww_filter_add(f, "a", WW_FILTER_SAME, INTEGER(1), 1));
    CHECK_OK(ww_filter_add(f, "b", WW_FILTER_SAME, INTEGER(2), 1));
    CHECK_OK(ww_filter_end(f));
    assert_true(matches(f, NULL, "{\"list\": [{\"a\": 3}, {\"a\": 1, \"b\": 2}]}"));
    assert_false(matches(f, NULL, "{\"list\": [{\"b\": 2}, {\"a\": 1}]}"));
    ww_filter_destroy(f);
    CHECK_OK(ww_filter_create(&f));
    CHECK_OK(ww_filter_add_ids(f, ids, 3));
    assert_true(matches(f, "a", NULL) && matches(f, "b", NULL) && matches(f, "zebra", NULL));
    assert_false(matches(f, "c", NULL) || matches(f, NULL, NULL) || matches(f, "zebr", NULL));
    CHECK_OK(ww_filter_add_filter(f, books));
    CHECK_OK(ww_filter_add_filter(f, empty));
    CHECK_OK(ww_filter_add_filter(f, NULL));
    assert_true(matches(f, "a", "{\"year\": 2001, \"draft\": false}"));
    assert_false(matches(f, "a", "{\"year\": 2000, \"draft\": false}"));
    assert_false(matches(f, "c", "{\"year\": 2001, \"draft\": false}"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add_filter(f, f));
    ww_filter_destroy(f);
    ww_filter_destroy(books);
    ww_filter_destroy(empty);
}

static void a_filter_is_shown_as_text(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *text;
    } cases[] = {
        {"{}", "every row"},
        {"{\"year\": {\"$gt\": 2000}, \"$or\": [{\"draft\": false}, {\"owner.name\": \"ann\"}]}",
         "year > 2000 and (draft = false or owner.name = \"ann\")"},
        {"{\"a b\": {\"$in\": [1, null, \"x\\\"\"]}}", "\"a b\" in [1, null, \"x\\\"\"]"},
        {"{\"$not\": {\"when\": {\"$lt\": {\"$date\": \"2024-01-31\"}}}}", "not (when < 2024-01-31)"},
        {"{\"n\": {\"$nin\": [1,2,3,4,5,6,7,8,9,10]}}", "not n in [1, 2, 3, 4, 5, 6, 7, 8, ... 10 in all]"},
        {"{\"a\": {\"$exists\": true}}", "a exists"},
    };
    char text[256], cut[8];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ww_filter *f = NULL;
        CHECK_OK(ww_filter_read(cases[i].filter, &f));
        assert_int_equal(ww_filter_text(f, text, sizeof text), strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
        assert_int_equal(ww_filter_text(f, cut, sizeof cut), strlen(cases[i].text));
        assert_memory_equal(cut, text, sizeof cut - 1);
        assert_int_equal(cut[sizeof cut - 1], 0);
        assert_int_equal(ww_filter_text(f, NULL, 0), strlen(cases[i].text));
        ww_filter_destroy(f);
    }
}

static void what_makes_no_sense_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    static const ww_filter_value flat[] = {REAL(1), REAL(2), REAL(3)}, far[] = {REAL(91), REAL(0), REAL(3)};
    static const ww_filter_value open_ring[] = {REAL(4), REAL(0), REAL(0), REAL(0), REAL(1),
                                                REAL(1), REAL(1), REAL(1), REAL(0)};
    const char *const no_id[] = {NULL};
    ww_filter *f = NULL, *untouched = NULL;
    int32_t found = 0;
    CHECK_OK(build_books(&f));
    CHECK_OK(build_books(&untouched));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a..b", WW_FILTER_EXISTS, NULL, 0));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a b", WW_FILTER_EXISTS, NULL, 0));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, NULL, WW_FILTER_EXISTS, NULL, 0));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(NULL, "a", WW_FILTER_EXISTS, NULL, 0));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", WW_FILTER_EXISTS, INTEGER(1), 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", WW_FILTER_LESS, NULL, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", (ww_filter_test)21, NULL, 0));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", WW_FILTER_EQUAL, INTEGER(1), -1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", WW_FILTER_LESS, &(ww_filter_value){.type = WW_FILTER_TRUE}, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", WW_FILTER_LESS, &(ww_filter_value){.type = (ww_filter_type)7}, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", WW_FILTER_WITHIN, INTEGER(1), 1)); /* no bound */
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", WW_FILTER_PHRASE, TEXT(NULL), 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT,
                ww_filter_add(f, "a", WW_FILTER_EQUAL, &(ww_filter_value){.type = WW_FILTER_DATE, .text = "soon"}, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT,
                ww_filter_add(f, "a", WW_FILTER_EQUAL, &(ww_filter_value){.type = WW_FILTER_REAL, .real = NAN}, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", WW_FILTER_CIRCLE, far, 3));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", WW_FILTER_BOX, flat, 3));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add(f, "a", WW_FILTER_POLYGON, open_ring, 9));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add_ids(f, no_id, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add_ids(f, NULL, 1));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_filter_add_ids(f, no_id, -1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_begin(f, (ww_filter_group)4, 0));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_filter_begin(f, WW_FILTER_SOME, 0));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_filter_begin(f, WW_FILTER_ALL, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_begin_element(f, "a["));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_end(f)); /* nothing is open */
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_matches(f, NULL, "{", &found));
    assert_true(ww_filter_equal(f, untouched));
    for (int i = 0; i < WW_FILTER_DEPTH_MAX; i++)
        CHECK_OK(ww_filter_begin(f, WW_FILTER_ALL, 0));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_filter_begin(f, WW_FILTER_ALL, 0));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_matches(f, NULL, NULL, &found));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_filter_add_filter(untouched, f));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_filter_begin_element(f, "a"));
    ww_filter_destroy(f);
    ww_filter_destroy(untouched);
    ww_filter_destroy(NULL);
}

static void every_allocation_of_building_may_fail(void **state)
{
    (void)state;
    const int64_t held = blocks_held();
    ww_status status = WW_OUT_OF_MEMORY;
    int64_t n = 0;
    while (status != WW_OK && n < 100) {
        ww_filter *f = NULL;
        fail_allocation_at(++n);
        status = build_books(&f);
        fail_allocation_at(0);
        ww_filter_destroy(f);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        assert_int_equal(blocks_held(), held);
    }
    assert_true(n > 6 && status == WW_OK);
}

/* A filter that could not be added leaves the other as it was, and it can be added later. */
static void adding_a_filter_without_memory_changes_nothing(void **state)
{
    (void)state;
    ww_filter *books = NULL, *f = NULL, *before = NULL;
    ww_status status = WW_OUT_OF_MEMORY;
    CHECK_OK(build_books(&books));
    CHECK_OK(build_books(&f));
    CHECK_OK(build_books(&before));
    int failures = 0;
    for (int i = 0; i < 40; i++) /* lists that grow in every way */
        for (int64_t n = 1; n == 1 || status != WW_OK; n++) {
            fail_allocation_at(n);
            status = ww_filter_add_filter(f, books);
            fail_allocation_at(0);
            failures += status != WW_OK;
            if (status != WW_OK)
                assert_true(ww_filter_equal(f, before));
            else
                CHECK_OK(ww_filter_add_filter(before, books));
        }
    assert_true(failures > 5 && ww_filter_equal(f, before));
    assert_true(matches(f, NULL, "{\"year\": 2001, \"draft\": false}"));
    ww_filter_destroy(books);
    ww_filter_destroy(f);
    ww_filter_destroy(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_built_by_calls_equals_the_one_that_is_read),
        cmocka_unit_test(groups_count_what_holds),
        cmocka_unit_test(elements_ids_and_other_filters_are_conditions),
        cmocka_unit_test(a_filter_is_shown_as_text),
        cmocka_unit_test(what_makes_no_sense_is_refused_and_changes_nothing),
        cmocka_unit_test(every_allocation_of_building_may_fail),
        cmocka_unit_test(adding_a_filter_without_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
