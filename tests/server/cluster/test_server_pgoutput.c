/* Messages of PostgreSQL's logical replication, written by hand byte by byte, and the texts of its types. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/cluster/pgoutput.h"
#include "server/cluster/values.h"
#include "support/check.h"

/* ---- writing messages ---------------------------------------------------------------------------------------------------- */

typedef struct message {
    char bytes[512];
    size_t length;
} message;

static void number(message *m, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        m->bytes[m->length++] = (char)(value >> 8 * (bytes - 1 - i));
}

static void text(message *m, const char *value)
{
    memcpy(m->bytes + m->length, value, strlen(value) + 1);
    m->length += strlen(value) + 1;
}

/* NULL: null; "?": unchanged. */
static void row(message *m, char kind, int count, const char *const *values)
{
    number(m, (unsigned char)kind, 1);
    number(m, (uint64_t)count, 2);
    for (int i = 0; i < count; i++) {
        const bool unchanged = values[i] && strcmp(values[i], "?") == 0;
        number(m, !values[i] ? 'n' : unchanged ? 'u' : 't', 1);
        if (!values[i] || unchanged)
            continue;
        number(m, strlen(values[i]), 4);
        memcpy(m->bytes + m->length, values[i], strlen(values[i]));
        m->length += strlen(values[i]);
    }
}

static message relation(void)
{
    message m = {"R", 1};
    number(&m, 16385, 4);
    text(&m, "public");
    text(&m, "docs");
    number(&m, 'd', 1);
    number(&m, 2, 2);
    number(&m, 1, 1);
    text(&m, "id");
    number(&m, 20, 4);
    number(&m, 0xffffffff, 4);
    number(&m, 0, 1);
    text(&m, "embedding");
    number(&m, 1021, 4);
    number(&m, 0xffffffff, 4);
    return m;
}

static message change(char kind, bool old, bool new)
{
    static const char *const key[] = {"7", NULL}, *const values[] = {"8", "?"};
    message m = {{kind}, 1};
    number(&m, 16385, 4);
    if (old)
        row(&m, 'K', 2, key);
    if (new)
        row(&m, 'N', 2, values);
    return m;
}

static message truncate_two(void)
{
    message m = {"T", 1};
    number(&m, 2, 4);
    number(&m, 0, 1);
    number(&m, 16385, 4);
    number(&m, 16390, 4);
    return m;
}

static message commit(void)
{
    message m = {"C", 1};
    number(&m, 0, 1);
    number(&m, 0x16B374D848, 8);
    number(&m, 0x16B374D880, 8);
    number(&m, 1234567, 8);
    return m;
}

static pg_reader reader;

static void read_ok(const message *m, pg_message *read)
{
    CHECK_OK(pgoutput_read(&reader, m->bytes, m->length, read));
}

/* ---- messages ------------------------------------------------------------------------------------------------------------ */

static void every_kind_of_message_is_read(void **state)
{
    (void)state;
    pg_message read;
    message m = relation();
    read_ok(&m, &read);
    assert_int_equal(read.kind, PG_RELATION);
    assert_int_equal(read.relation, 16385);
    assert_string_equal(read.schema, "public");
    assert_string_equal(read.name, "docs");
    assert_int_equal(read.column_count, 2);
    assert_true(read.columns[0].key && !read.columns[1].key);
    assert_string_equal(read.columns[1].name, "embedding");
    assert_int_equal(read.columns[1].type, 1021);
    m = change('U', true, true);
    read_ok(&m, &read);
    assert_int_equal(read.old_count, 2);
    assert_int_equal(read.old_values[0].length, 1);
    assert_memory_equal(read.old_values[0].bytes, "7", 1);
    assert_int_equal(read.old_values[1].presence, PG_NULL);
    assert_int_equal(read.new_values[1].presence, PG_UNCHANGED);
    m = change('U', false, true);
    read_ok(&m, &read);
    assert_null(read.old_values);
    m = change('D', true, false);
    read_ok(&m, &read);
    assert_int_equal(read.kind, PG_DELETE);
    assert_null(read.new_values);
    m = change('I', false, true);
    read_ok(&m, &read);
    assert_int_equal(read.new_count, 2);
    m = truncate_two();
    read_ok(&m, &read);
    assert_int_equal(read.truncated_count, 2);
    assert_int_equal(read.truncated[1], 16390);
    m = commit();
    read_ok(&m, &read);
    assert_true(read.end == 0x16B374D880 && read.commit == 0x16B374D848);
}

/* Only the whole message is one. */
static void messages_that_are_cut_or_longer_are_refused(void **state)
{
    (void)state;
    const message whole[] = {relation(),
                             change('I', false, true),
                             change('U', true, true),
                             change('U', false, true),
                             change('D', true, false),
                             truncate_two(),
                             commit()};
    pg_message read;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        for (size_t length = 0; length < whole[i].length; length++) {
            char *cut = malloc(length + 1); /* what is read behind it shows under the address sanitizer */
            assert_non_null(cut);
            memcpy(cut, whole[i].bytes, length);
            assert_int_equal(pgoutput_read(&reader, cut, length, &read), WW_CORRUPT_FILE);
            free(cut);
        }
        assert_int_equal(pgoutput_read(&reader, whole[i].bytes, whole[i].length + 1, &read), WW_CORRUPT_FILE);
    }
}

static void counts_that_no_message_can_have_are_refused(void **state)
{
    (void)state;
    pg_message read;
    message m = change('I', false, false);
    number(&m, 'N', 1);
    number(&m, PG_COLUMNS_MAX + 1, 2);
    assert_int_equal(pgoutput_read(&reader, m.bytes, m.length, &read), WW_CORRUPT_FILE);
    m = (message){"T", 1};
    number(&m, 0x7fffffff, 4);
    number(&m, 0, 1);
    assert_int_equal(pgoutput_read(&reader, m.bytes, m.length, &read), WW_CORRUPT_FILE);
    m = change('I', false, false);
    number(&m, 'N', 1);
    number(&m, 1, 2);
    number(&m, 't', 1);
    number(&m, 0xffffffff, 4);
    assert_int_equal(pgoutput_read(&reader, m.bytes, m.length, &read), WW_CORRUPT_FILE);
    assert_int_equal(pgoutput_read(&reader, "Z", 1, &read), WW_CORRUPT_FILE);
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

static pg_value value_of(const char *bytes)
{
    return bytes ? (pg_value){PG_TEXT, bytes, strlen(bytes)} : (pg_value){PG_NULL, NULL, 0};
}

static void check_json(json_form form, const char *bytes, const char *expected)
{
    out o = {0};
    const pg_value value = value_of(bytes);
    value_put_json(&o, form, &value);
    assert_int_equal(o.length, strlen(expected));
    assert_memory_equal(o.bytes, expected, o.length);
    out_free(&o);
}

static void values_become_json_as_the_database_writes_it(void **state)
{
    (void)state;
    check_json(FORM_BOOL, "t", "true");
    check_json(FORM_BOOL, "f", "false");
    check_json(FORM_NUMBER, "-1.50", "-1.50");
    check_json(FORM_NUMBER, "NaN", "\"NaN\"");
    check_json(FORM_NUMBER, "-Infinity", "\"-Infinity\"");
    check_json(FORM_STRING, "a\"b", "\"a\\\"b\"");
    check_json(FORM_JSON, "{\"a\": [1]}", "{\"a\": [1]}");
    check_json(FORM_TIME, "2024-01-31 12:00:00.5+00", "\"2024-01-31T12:00:00.5+00:00\"");
    check_json(FORM_TIME, "2024-01-31 12:00:00", "\"2024-01-31T12:00:00\"");
    check_json(FORM_TIME, "0044-03-15 00:00:00+00 BC", "\"0044-03-15T00:00:00+00:00 BC\"");
    check_json(FORM_TIME, "infinity", "\"infinity\"");
    check_json(FORM_STRING, NULL, "null");
}

static void check_vector(vector_form form, const char *bytes, vector_fault fault, int32_t count)
{
    float numbers[4] = {-9, -9, -9, -9};
    int32_t found = 0;
    const pg_value value = value_of(bytes);
    assert_int_equal(value_read_vector(form, &value, numbers, 2, &found), fault);
    if (fault == VECTOR_OK)
        assert_true(numbers[0] == 1 && numbers[1] == -2.5f);
    assert_true(numbers[2] == -9); /* nothing is written behind the dimension */
    if (count >= 0)
        assert_int_equal(found, count);
}

static void vectors_are_read_in_each_form_and_refused_with_the_reason(void **state)
{
    (void)state;
    check_vector(VECTOR_SINGLE, "[1,-2.5]", VECTOR_OK, 2);
    check_vector(VECTOR_SINGLE, "{1,-2.5}", VECTOR_OK, 2);
    check_vector(VECTOR_DOUBLE, "{1,-2.5}", VECTOR_OK, 2);
    check_vector(VECTOR_BYTES, "\\x0000803f000020c0", VECTOR_OK, 2);
    check_vector(VECTOR_SINGLE, "[1,2,3]", VECTOR_WRONG_DIM, 3);
    check_vector(VECTOR_BYTES, "\\x0000803f", VECTOR_WRONG_DIM, 1);
    check_vector(VECTOR_SINGLE, "{1,NaN}", VECTOR_NOT_FINITE, 2);
    check_vector(VECTOR_DOUBLE, "{1,1e39}", VECTOR_NOT_FINITE, 2);
    check_vector(VECTOR_SINGLE, "{1,NULL}", VECTOR_UNREADABLE, -1);
    check_vector(VECTOR_SINGLE, "{{1,2},{3,4}}", VECTOR_UNREADABLE, -1);
    check_vector(VECTOR_SINGLE, "[1,,2]", VECTOR_UNREADABLE, -1);
    check_vector(VECTOR_SINGLE, "[1", VECTOR_UNREADABLE, -1);
    check_vector(VECTOR_BYTES, "\\x0000803g000020c0", VECTOR_UNREADABLE, -1);
    check_vector(VECTOR_SINGLE, NULL, VECTOR_IS_NULL, 0);
}

static void check_binary(vector_form form, const char *bytes, size_t length, vector_fault fault)
{
    float numbers[4] = {-9, -9, -9, -9};
    int32_t found = 0;
    char *exact = malloc(length); /* so that a sanitizer sees a read behind it */
    memcpy(exact, bytes, length);
    const pg_value value = {PG_BINARY, exact, length};
    assert_int_equal(value_read_vector(form, &value, numbers, 2, &found), fault);
    if (fault == VECTOR_OK)
        assert_true(numbers[0] == 1 && numbers[1] == -2.5f);
    assert_true(numbers[2] == -9);
    free(exact);
}
#define CHECK_BINARY(form, bytes, fault) check_binary(form, bytes, sizeof(bytes) - 1, fault)

#define SINGLE_HEAD "\0\0\0\1\0\0\0\0\0\0\x02\xbc"
#define SINGLE_ONE  "\0\0\0\4\x3f\x80\0\0"
#define SINGLE_TWO  "\0\0\0\4\xc0\x20\0\0"

static void vectors_of_a_copy_are_read_in_their_binary_forms(void **state)
{
    (void)state;
    CHECK_BINARY(VECTOR_SINGLE, SINGLE_HEAD "\0\0\0\2\0\0\0\1" SINGLE_ONE SINGLE_TWO, VECTOR_OK);
    CHECK_BINARY(VECTOR_SINGLE, SINGLE_HEAD "\0\0\0\3\0\0\0\1" SINGLE_ONE SINGLE_TWO SINGLE_TWO, VECTOR_WRONG_DIM);
    CHECK_BINARY(VECTOR_SINGLE, SINGLE_HEAD "\0\0\0\2\0\0\0\1" SINGLE_ONE "\0\0\0\4\x7f\x80\0\0", VECTOR_NOT_FINITE);
    CHECK_BINARY(VECTOR_SINGLE, SINGLE_HEAD "\0\0\0\2\0\0\0\1" SINGLE_ONE "\xff\xff\xff\xff", VECTOR_UNREADABLE);
    CHECK_BINARY(VECTOR_SINGLE, SINGLE_HEAD "\xff\0\0\2\0\0\0\1" SINGLE_ONE SINGLE_TWO, VECTOR_UNREADABLE);
    CHECK_BINARY(VECTOR_SINGLE, SINGLE_HEAD "\0\0\0\2\0\0\0\1" SINGLE_ONE SINGLE_TWO "x", VECTOR_UNREADABLE);
    CHECK_BINARY(VECTOR_SINGLE, SINGLE_HEAD "\0\0", VECTOR_UNREADABLE);
    CHECK_BINARY(VECTOR_SINGLE, SINGLE_HEAD, VECTOR_UNREADABLE);
    CHECK_BINARY(VECTOR_SINGLE, "\0\0\0\0\0\0\0\0\0\0\x02\xbc", VECTOR_WRONG_DIM); /* {} */
    CHECK_BINARY(VECTOR_SINGLE, "\0\0", VECTOR_UNREADABLE);
    CHECK_BINARY(VECTOR_DOUBLE,
                 "\0\0\0\1\0\0\0\0\0\0\x02\xbd\0\0\0\2\0\0\0\1\0\0\0\x08\x3f\xf0\0\0\0\0\0\0\0\0\0\x08\xc0\x04\0\0\0\0\0\0",
                 VECTOR_OK);
    CHECK_BINARY(VECTOR_DOUBLE, SINGLE_HEAD "\0\0\0\2\0\0\0\1" SINGLE_ONE SINGLE_TWO, VECTOR_UNREADABLE);
    CHECK_BINARY(VECTOR_PGVECTOR, "\0\2\0\0\x3f\x80\0\0\xc0\x20\0\0", VECTOR_OK);
    CHECK_BINARY(VECTOR_PGVECTOR, "\0\2\0\0\x3f\x80\0\0\xc0\x20\0", VECTOR_UNREADABLE);
    CHECK_BINARY(VECTOR_PGVECTOR, "\0\1\0\0\x3f\x80\0\0", VECTOR_WRONG_DIM);
    CHECK_BINARY(VECTOR_PGVECTOR, "\0\2\0\1\x3f\x80\0\0\xc0\x20\0\0", VECTOR_UNREADABLE);
    CHECK_BINARY(VECTOR_BYTES, "\0\0\x80\x3f\0\0\x20\xc0", VECTOR_OK);
    CHECK_BINARY(VECTOR_BYTES, "\0\0\x80\x3f\0", VECTOR_UNREADABLE);
    CHECK_BINARY(VECTOR_HALF, "\0\1\0\0\x3c\0", VECTOR_UNREADABLE);
}

static void numbers_are_rounded_as_strtof_does(void **state)
{
    static const char *const texts[] = {"-0",
                                        "0",
                                        "1e-45",
                                        "1.17549435e-38",
                                        "3.4028235e+38",
                                        "16777217",
                                        "0.1",
                                        "-1.5e-07",
                                        "123456789012345678901234567890",
                                        "1.00000017881393432617187499",
                                        "1.00000017881393432617187500",
                                        "2e0",
                                        "5e-324"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char list[80];
        float expected = strtof(texts[i], NULL), read[2];
        int32_t found = 0;
        snprintf(list, sizeof list, "{%s,%s}", texts[i], texts[i]);
        const pg_value value = value_of(list);
        assert_int_equal(value_read_vector(VECTOR_SINGLE, &value, read, 2, &found), VECTOR_OK);
        assert_memory_equal(read, &expected, sizeof expected);
        assert_memory_equal(read + 1, &expected, sizeof expected);
    }
    check_vector(VECTOR_SINGLE, "{1,-}", VECTOR_UNREADABLE, -1);
    check_vector(VECTOR_SINGLE, "{1,2e}", VECTOR_UNREADABLE, -1);
    check_vector(VECTOR_SINGLE, "{1,-2.5x}", VECTOR_UNREADABLE, -1);
    check_vector(VECTOR_SINGLE, "{1.0,-2.5e0}", VECTOR_OK, 2);
    check_vector(VECTOR_SINGLE, "{1 ,-2.5}", VECTOR_OK, 2);
}

/* The text that PostgreSQL writes for a float has nine digits at most and must come back as the same bits. */
static void floats_come_back_as_the_same_bits(void **state)
{
    (void)state;
    uint32_t bits = 12345;
    for (int i = 0; i < 20000; i++) {
        char list[64];
        float expected, read[1];
        int32_t found = 0;
        bits = bits * 1664525u + 1013904223u;
        memcpy(&expected, &bits, sizeof expected);
        if (!isfinite(expected))
            continue;
        snprintf(list, sizeof list, "[%.9g]", (double)expected);
        const pg_value value = value_of(list);
        assert_int_equal(value_read_vector(VECTOR_SINGLE, &value, read, 1, &found), VECTOR_OK);
        assert_memory_equal(read, &expected, sizeof expected);
    }
}

static void ids_of_several_columns_are_a_list(void **state)
{
    (void)state;
    const pg_value values[] = {value_of("7"), value_of("a\"b"), value_of(NULL)};
    const pg_value *const keys[] = {&values[0], &values[1], &values[2]};
    static const json_form forms[] = {FORM_NUMBER, FORM_STRING, FORM_STRING};
    out o = {0};
    assert_true(value_put_id(&o, keys, forms, 1));
    assert_memory_equal(o.bytes, "7", o.length);
    o.length = 0;
    assert_true(value_put_id(&o, keys, forms, 2));
    assert_memory_equal(o.bytes, "[7,\"a\\\"b\"]", o.length);
    o.length = 0;
    assert_false(value_put_id(&o, keys, forms, 3));
    out_free(&o);
}

static void places_in_the_log_are_read_and_written(void **state)
{
    (void)state;
    pg_lsn lsn = 0;
    char written[PG_LSN_BYTES];
    assert_true(pg_lsn_read("16/B374D848", &lsn));
    assert_true(lsn == 0x16B374D848);
    pg_lsn_write(lsn, written);
    assert_string_equal(written, "16/B374D848");
    assert_false(pg_lsn_read("16", &lsn));
    assert_false(pg_lsn_read("16/", &lsn));
    assert_false(pg_lsn_read("16/123456789", &lsn));
    assert_false(pg_lsn_read("x/1", &lsn));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_message_is_read),
        cmocka_unit_test(messages_that_are_cut_or_longer_are_refused),
        cmocka_unit_test(counts_that_no_message_can_have_are_refused),
        cmocka_unit_test(values_become_json_as_the_database_writes_it),
        cmocka_unit_test(vectors_are_read_in_each_form_and_refused_with_the_reason),
        cmocka_unit_test(vectors_of_a_copy_are_read_in_their_binary_forms),
        cmocka_unit_test(numbers_are_rounded_as_strtof_does),
        cmocka_unit_test(floats_come_back_as_the_same_bits),
        cmocka_unit_test(ids_of_several_columns_are_a_list),
        cmocka_unit_test(places_in_the_log_are_read_and_written),
    };
    const int failed = cmocka_run_group_tests_name("server: PostgreSQL's messages and values", tests, NULL, NULL);
    pgoutput_free(&reader);
    return failed;
}
