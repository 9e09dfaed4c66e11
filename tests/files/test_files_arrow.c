/* Columns of Arrow as ids and as JSON. The arrays are made by hand; tests/python compares those of pyarrow with Python's json.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "files/arrow/arrow.h"
#include "support/check.h"

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/* A column, with at most two children. */
typedef struct made {
    struct ArrowSchema schema, *schemas[2];
    struct ArrowArray array, *arrays[2];
    const void *buffers[4];
} made;

static void make(made *m, const char *format, int64_t length, int64_t buffers, const void *first, const void *second)
{
    *m = (made){.buffers = {NULL, first, second}};
    m->schema = (struct ArrowSchema){.format = format, .name = "field", .children = m->schemas, .release = release_schema};
    m->array = (struct ArrowArray){
        .length = length, .n_buffers = buffers, .buffers = m->buffers, .children = m->arrays, .release = release_array};
}

static void adopt(made *parent, made *child)
{
    const int64_t i = parent->schema.n_children++;
    parent->array.n_children = i + 1;
    parent->schemas[i] = &child->schema;
    parent->arrays[i] = &child->array;
}

static void check_texts(const made *m, ww_arrow_form form, const char *const *expected)
{
    ww_arrow_texts *texts = NULL;
    const char *const *list = NULL;
    CHECK_OK(ww_arrow_texts_create(&m->schema, &m->array, form, &texts));
    assert_int_equal(ww_arrow_texts_list(texts, &list), m->array.length);
    for (int64_t i = 0; i < m->array.length; i++) {
        if (expected[i])
            assert_string_equal(list[i], expected[i]);
        else
            assert_null(list[i]);
    }
    ww_arrow_texts_destroy(texts);
}

static void refused(const made *m, ww_arrow_form form, ww_status expected, const char *reason)
{
    ww_arrow_texts *texts = NULL;
    CHECK_FAILS(expected, ww_arrow_texts_create(&m->schema, &m->array, form, &texts));
    assert_null(texts);
    if (!strstr(ww_error_message(), reason))
        fail_msg("'%s' does not say '%s'", ww_error_message(), reason);
}

static const int32_t OFFSETS[] = {0, 1, 1, 6, 9};
static const char TEXTS[] = "a\"\\\n\x01z\xe6\xbc\xa2";

static void texts_are_ids_and_are_escaped_in_json(void **state)
{
    static const char *const plain[] = {"a", "", "\"\\\n\x01z", "\xe6\xbc\xa2"};
    static const char *const json[] = {"\"a\"", "\"\"", "\"\\\"\\\\\\n\\u0001z\"", "\"\xe6\xbc\xa2\""};
    static const char *const some[] = {NULL, "\"\\\n\x01z"};
    static const uint8_t valid = 0x0d;
    made m;
    (void)state;
    make(&m, "u", 4, 3, OFFSETS, TEXTS);
    check_texts(&m, WW_ARROW_PLAIN, plain);
    check_texts(&m, WW_ARROW_JSON, json);
    m.buffers[0] = &valid; /* the second one is null */
    m.array.offset = 1, m.array.length = 2;
    check_texts(&m, WW_ARROW_PLAIN, some);
}

static void views_of_texts_are_read_inside_and_outside(void **state)
{
    static const char outside[] = "0123456789abcdefgh";
    static const int64_t length = sizeof outside - 1;
    static const char *const plain[] = {"inside", "23456789abcdef"};
    int32_t views[8] = {6, 0, 0, 0, 14, 0, 0, 2};
    made m;
    (void)state;
    memcpy(views + 1, "inside", 6);
    make(&m, "vu", 2, 4, views, outside);
    m.buffers[3] = &length;
    check_texts(&m, WW_ARROW_PLAIN, plain);
    views[7] = 5;
    refused(&m, WW_ARROW_PLAIN, WW_INVALID_ARGUMENT, "outside its buffers");
}

static void numbers_have_their_shortest_digits(void **state)
{
    static const int64_t integers[] = {INT64_MIN, -1, 0, INT64_MAX};
    static const char *const as_signed[] = {"-9223372036854775808", "-1", "0", "9223372036854775807"};
    static const char *const as_unsigned[] = {"9223372036854775808", "18446744073709551615", "0", "9223372036854775807"};
    static const double reals[] = {0.1, -2.5, 1e16, 1e-7, 100, 0.1 + 0.2, 5e-324, -0.0};
    static const char *const real[] = {"0.1", "-2.5", "1e+16", "1e-07", "100.0", "0.30000000000000004", "5e-324", "-0.0"};
    static const int64_t decimals[] = {-5, -1, 12340, 0};
    static const char *const decimal[] = {"-0.05", "123.40"};
    static const double bad[] = {1, NAN};
    made m;
    (void)state;
    make(&m, "l", 4, 2, integers, NULL);
    check_texts(&m, WW_ARROW_PLAIN, as_signed);
    make(&m, "L", 4, 2, integers, NULL);
    check_texts(&m, WW_ARROW_JSON, as_unsigned);
    make(&m, "g", 8, 2, reals, NULL);
    check_texts(&m, WW_ARROW_JSON, real);
    make(&m, "d:10,2", 2, 2, decimals, NULL);
    check_texts(&m, WW_ARROW_JSON, decimal);
    make(&m, "g", 2, 2, bad, NULL);
    refused(&m, WW_ARROW_JSON, WW_INVALID_ARGUMENT, "row 1: the column 'field' is NaN");
    refused(&m, WW_ARROW_PLAIN, WW_UNSUPPORTED, "neither texts nor integers");
}

static void dates_and_times_are_iso_8601(void **state)
{
    static const int32_t days[] = {0, -1, 11016, 2932896};
    static const char *const date[] = {"\"1970-01-01\"", "\"1969-12-31\"", "\"2000-02-29\"", "\"9999-12-31\""};
    static const int64_t instants[] = {-1, 1709210096789012};
    static const char *const utc[] = {"\"1969-12-31T23:59:59.999999+00:00\"", "\"2024-02-29T12:34:56.789012+00:00\""};
    static const char *const east[] = {"\"1970-01-01T02:29:59.999999+02:30\"", "\"2024-02-29T15:04:56.789012+02:30\""};
    static const int32_t seconds[] = {3661, 86400};
    static const int32_t far = 2932897;
    static const char *const time[] = {"\"01:01:01\""};
    made m;
    (void)state;
    make(&m, "tdD", 4, 2, days, NULL);
    check_texts(&m, WW_ARROW_JSON, date);
    make(&m, "tsu:UTC", 2, 2, instants, NULL);
    check_texts(&m, WW_ARROW_JSON, utc);
    make(&m, "tsu:+02:30", 2, 2, instants, NULL);
    check_texts(&m, WW_ARROW_JSON, east);
    make(&m, "tts", 1, 2, seconds, NULL);
    check_texts(&m, WW_ARROW_JSON, time);
    m.array.offset = 1;
    refused(&m, WW_ARROW_JSON, WW_OUT_OF_RANGE, "not a time of day");
    make(&m, "tdD", 1, 2, &far, NULL);
    refused(&m, WW_ARROW_JSON, WW_OUT_OF_RANGE, "years 1 to 9999");
    make(&m, "tsu:Europe/Berlin", 2, 2, instants, NULL);
    refused(&m, WW_ARROW_JSON, WW_UNSUPPORTED, "tsu:Europe/Berlin");
}

/* Rows {"field": text, "list": [numbers]}; null elements inside are null. */
static void make_nested(made *rows, made *text, made *list, made *numbers)
{
    static const int32_t offsets[] = {0, 2, 2, 3, 3}, values[] = {1, 2, 3};
    static const uint8_t valid = 0x05, list_valid = 0x0f;
    make(text, "u", 4, 3, OFFSETS, TEXTS);
    make(numbers, "i", 3, 2, values, NULL);
    numbers->buffers[0] = &valid;
    make(list, "+l", 4, 2, offsets, NULL);
    list->buffers[0] = &list_valid;
    list->schema.name = "li\"st";
    adopt(list, numbers);
    make(rows, "+s", 4, 1, NULL, NULL);
    adopt(rows, text);
    adopt(rows, list);
}

static void structs_are_objects_and_lists_are_arrays(void **state)
{
    static const char *const json[] = {"{\"field\":\"a\",\"li\\\"st\":[1,null]}", "{\"field\":\"\",\"li\\\"st\":[]}",
                                       "{\"field\":\"\\\"\\\\\\n\\u0001z\",\"li\\\"st\":[3]}",
                                       "{\"field\":\"\xe6\xbc\xa2\",\"li\\\"st\":[]}"};
    made rows, text, list, numbers;
    (void)state;
    make_nested(&rows, &text, &list, &numbers);
    check_texts(&rows, WW_ARROW_JSON, json);
    numbers.array.length = 2;
    refused(&rows, WW_ARROW_JSON, WW_INVALID_ARGUMENT, "beyond its elements");
    numbers.array.length = 3;
    list.schema.name = "field";
    refused(&rows, WW_ARROW_JSON, WW_INVALID_ARGUMENT, "exists twice");
    list.schema.name = "other";
    list.array.length = 3;
    refused(&rows, WW_ARROW_JSON, WW_INVALID_ARGUMENT, "shorter than what it belongs to");
}

static void dictionaries_are_looked_up(void **state)
{
    static const int8_t indices[] = {3, 0, 1, 4};
    static const uint8_t valid = 0x0d;
    static const char *const plain[] = {"\xe6\xbc\xa2", "a", NULL};
    made m, values;
    (void)state;
    make(&values, "u", 4, 3, OFFSETS, TEXTS);
    values.buffers[0] = &valid;
    make(&m, "c", 3, 2, indices, NULL);
    m.schema.dictionary = &values.schema;
    m.array.dictionary = &values.array;
    check_texts(&m, WW_ARROW_PLAIN, plain);
    m.array.length = 4;
    refused(&m, WW_ARROW_PLAIN, WW_INVALID_ARGUMENT, "outside its dictionary");
}

static void what_is_no_text_or_incomplete_is_refused(void **state)
{
    static const char *const types[] = {"z", "tDs", "+ud:0,1", "+r", "d:40,2,256", "x", "", "d:5", "tsx:", "+w:", "vz"};
    static const int32_t backwards[] = {0, 5, 2};
    static const char invalid[] = {'a', '\xff', 'b', '\0', 'c', 'd'};
    static const int32_t offsets[] = {0, 1, 2, 5};
    static const struct {
        int32_t count, key_bytes;
        char key[20];
    } extension = {1, 20, {"ARROW:extension:name"}};
    made m;
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        make(&m, types[i], 1, 2, OFFSETS, TEXTS);
        refused(&m, WW_ARROW_JSON, WW_UNSUPPORTED, "has the type");
    }
    make(&m, "u", 2, 3, backwards, TEXTS);
    refused(&m, WW_ARROW_JSON, WW_INVALID_ARGUMENT, "do not ascend");
    make(&m, "u", 2, 3, offsets, invalid);
    refused(&m, WW_ARROW_PLAIN, WW_INVALID_ARGUMENT, "row 1: the column 'field' has a text that is not UTF-8");
    m.array.offset = 2, m.array.length = 1;
    refused(&m, WW_ARROW_PLAIN, WW_INVALID_ARGUMENT, "NUL");
    m.array.n_buffers = 2;
    refused(&m, WW_ARROW_PLAIN, WW_INVALID_ARGUMENT, "lacks a buffer");
    make(&m, "+l", 2, 2, offsets, NULL);
    refused(&m, WW_ARROW_JSON, WW_INVALID_ARGUMENT, "children");
    make(&m, "u", 1, 3, offsets, invalid);
    m.schema.metadata = (const char *)&extension;
    refused(&m, WW_ARROW_PLAIN, WW_UNSUPPORTED, "has the type");
    m.array.release = NULL;
    refused(&m, WW_ARROW_PLAIN, WW_INVALID_ARGUMENT, "released");
    refused(&m, (ww_arrow_form)7, WW_INVALID_ARGUMENT, "form is 7");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_arrow_texts_create(NULL, &m.array, WW_ARROW_JSON, NULL));
    assert_int_equal(ww_arrow_texts_list(NULL, NULL), 0);
    ww_arrow_texts_destroy(NULL);
}

static void memory_that_runs_out_at_any_allocation_leaves_nothing(void **state)
{
    made rows, text, list, numbers;
    (void)state;
    make_nested(&rows, &text, &list, &numbers);
    const int64_t held = memory_blocks_held();
    int64_t n = 1;
    for (;; n++) {
        ww_arrow_texts *texts = NULL;
        memory_fail_at(n);
        const ww_status status = ww_arrow_texts_create(&rows.schema, &rows.array, WW_ARROW_JSON, &texts);
        memory_fail_at(0);
        ww_arrow_texts_destroy(texts);
        assert_int_equal(memory_blocks_held(), held);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_null(texts);
    }
    assert_true(n > 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_ids_and_are_escaped_in_json),
        cmocka_unit_test(views_of_texts_are_read_inside_and_outside),
        cmocka_unit_test(numbers_have_their_shortest_digits),
        cmocka_unit_test(dates_and_times_are_iso_8601),
        cmocka_unit_test(structs_are_objects_and_lists_are_arrays),
        cmocka_unit_test(dictionaries_are_looked_up),
        cmocka_unit_test(what_is_no_text_or_incomplete_is_refused),
        cmocka_unit_test(memory_that_runs_out_at_any_allocation_leaves_nothing),
    };
    return cmocka_run_group_tests_name("files: arrow", tests, NULL, NULL);
}
