/* CSV: which files are accepted, which are refused and where, and that every number is the nearest f32 in every locale. */
#include "support/check.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/source.h"
#include "files/csv.h"
#include "files/matrix.h"
#include "files/number.h"
#include "support/data/random.h"
#include "support/memory.h"
#include "support/scratch.h"

static void check_takes(const char *text, int64_t rows, int64_t dim, const float *expected)
{
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    float values[32];
    CHECK_OK(matrix_open_bytes("text.csv", text, strlen(text), &matrix));
    CHECK_OK(ww_matrix_describe(matrix, &info));
    assert_int_equal(info.rows, rows);
    assert_int_equal(info.dim, dim);
    assert_int_equal(info.element, WW_ELEMENT_F32);
    CHECK_OK(ww_matrix_read_f32(matrix, 0, rows, values));
    assert_memory_equal(values, expected, (size_t)(rows * dim) * sizeof *values);
    ww_matrix_close(matrix);
}

static void check_refuses(const char *text, const char *place, const char *reason)
{
    ww_matrix *matrix = NULL;
    CHECK_FAILS(WW_CORRUPT_FILE, matrix_open_bytes("text.csv", text, strlen(text), &matrix));
    assert_null(matrix);
    if (!strstr(ww_error_message(), place) || !strstr(ww_error_message(), reason))
        fail_msg("no '%s' or no '%s' in: %s", place, reason, ww_error_message());
}

static void separators_line_ends_comments_quotes_and_headers_are_accepted(void **state)
{
    (void)state;
    const float four[] = {1, 2, 3, 4};
    check_takes("1,2\n3,4\n", 2, 2, four);
    check_takes("1;2\n3;4", 2, 2, four);
    check_takes("1\t2\r\n3\t4\r\n", 2, 2, four);
    check_takes("\n 1  2\n\n\t\n3 \t 4 \n\n", 2, 2, four);
    check_takes(" 1 , 2 \n# a comment\n  # another\n3,\t4\n", 2, 2, four);
    check_takes("x,y\n1,2\n3,4\n", 2, 2, four);
    check_takes("# made by a program\nx y\n1 2\n3 4\n", 2, 2, four);
    check_takes("\"a, b\",\"c \"\"d\"\"; e\"\n\"1\",2\n3,\" 4 \"\n", 2, 2, four);
    check_takes("\xef\xbb\xbfgr\xc3\xb6\xc3\x9f"
                "e,y\n1,2\n3,4\n",
                2, 2, four);
    check_takes("a;b\n1,2\n3,4\n", 2, 2, four); /* the separator is the first row's, not the header's */
    check_takes("1\n2\n3\n4\n", 4, 1, four);
    check_takes("1,2,3,4", 1, 4, four);
}

static void a_refusal_names_line_and_column(void **state)
{
    (void)state;
    check_refuses("", "offset 0", "empty");
    check_refuses("x,y\n\n", "offset 5", "the file has no row of numbers");
    check_refuses("1,2\n\n# c\n3,4,5\n", "line 4, column 1", "3 numbers, line 1 has 2");
    check_refuses("1,2\n3,zwei\n", "line 2, column 3", "'zwei' is not a number");
    check_refuses("1,2\n3,\n", "line 2, column 3", "empty field");
    check_refuses("1,2\n,3\n", "line 2, column 1", "empty field");
    check_refuses("1 ; 2,5\n", "line 1, column 5", "point");
    check_refuses("1,5;2,5\n3;4\n", "line 1, column 1", "point"); /* not a header, though no field reads as a number */
    check_refuses("name,1\n2,3\n", "line 1, column 1", "remove it");
    check_refuses("1,\"2\n", "line 1, column 3", "quote");
    check_refuses("1,\"2\"3\n", "line 1, column 6", "text after a quoted field");
    check_refuses("1,2\n3,this is far too long to be shown as it stands\n", "line 2, column 3", "...'");
    check_refuses("1,2\n3,\x01\xff\n", "line 2, column 3", "'\?\?'");
}

static void texts_that_only_look_like_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",    "-",   "+",    ".",  "e5",   "1e",     "1e+", "0x1p3", "1_000", "1.2.3",
                                        "--1", "1 2", "1e5.", "1f", "nanx", "nan(1)", "in",  "infi",  "1,5",   "\xd9\xa1"};
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[32];
        float value;
        strcpy(text, texts[i]);
        if (number_read(text, strlen(text), c_locale, &value) != NUMBER_NOT)
            fail_msg("'%s' was read as %g", texts[i], (double)value);
    }
    freelocale(c_locale);
}

static float read_number(const char *text, locale_t c_locale)
{
    char copy[512];
    float value = -1.0f;
    snprintf(copy, sizeof copy, "%s", text);
    if (number_read(copy, strlen(copy), c_locale, &value) != NUMBER_OK)
        fail_msg("'%s' was not read", text);
    assert_string_equal(copy, text); /* the NUL was for a moment only */
    return value;
}

static void numbers_are_the_nearest_float(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        float value;
    } cases[] = {
        {"0", 0.0f},
        {"-0.0", -0.0f},
        {"+1.", 1.0f},
        {".5", 0.5f},
        {"1E3", 1000.0f},
        {"16777217", 16777216.0f}, /* halfway: to even */
        {"16777219", 16777220.0f},
        {"16777217.000000000000000000000001", 16777218.0f},
        {"1.000000059604644775390625", 1.0f}, /* 1 + 2^-24, halfway */
        {"1.00000005960464477539062501", 1.0f + 0x1p-23f},
        {"1.00000017881393432617187499",
         1.0f + 0x1p-23f},                     /* just below 1 + 3*2^-24: a double would round up to it, then to even */
        {"5.074913740158081", 0x1.44cb62p+2f}, /* its nearest double is halfway between two floats, but the number is not */
        {"6.040552377700806", 0x1.82986ap+2f},
        {"8589973000", 8589973504.0f},
        {"3.4028235e38", 0x1.fffffep127f},
        {"3.40282356e38", 0x1.fffffep127f},
        {"1.1754943508222875e-38", 0x1p-126f},
        {"1e-45", 0x1p-149f},
        {"7.006492321624085e-46", 0.0f}, /* half the smallest */
        {"7.006492321624086e-46", 0x1p-149f},
        {"1e-99999999999", 0.0f},
        {"0e99999999999", 0.0f},
        {"inf", INFINITY},
        {"-Infinity", -INFINITY},
    };
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const float value = read_number(cases[i].text, c_locale);
        if (memcmp(&value, &cases[i].value, sizeof value) != 0)
            fail_msg("'%s' is %a, not %a", cases[i].text, (double)value, (double)cases[i].value);
    }
    assert_true(isnan(read_number("-NaN", c_locale)));
    char large[] = "3.4028236e38";
    float value;
    assert_int_equal(number_read(large, strlen(large), c_locale, &value), NUMBER_TOO_LARGE);
    freelocale(c_locale);
}

/* Floats printed with 6 to 20 digits, and the exact halves between neighbours, which need all their digits. */
static void printed_floats_read_back_like_those_of_the_c_library(void **state)
{
    (void)state;
    test_random random = {5};
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    for (int i = 0; i < 100000; i++) {
        const uint32_t bits = (uint32_t)random_bits(&random) & 0xff7fffffu;
        float value;
        char text[256];
        memcpy(&value, &bits, sizeof value);
        if (i % 4 == 0) /* near 1, like most files, where the fast way is used */
            value = random_normal(&random) * 10.0f;
        if (i % 4 == 1)
            snprintf(text, sizeof text, "%.120g", ((double)value + (double)nextafterf(value, 0.0f)) / 2);
        else if (i % 4 == 2)
            snprintf(text, sizeof text, "%.*e", (int)random_below(&random, 20), (double)value);
        else
            snprintf(text, sizeof text, "%.*g", 6 + (int)random_below(&random, 15), (double)value);
        const float expected = strtof(text, NULL);
        if (isinf(expected))
            continue;
        const float found = read_number(text, c_locale);
        if (memcmp(&found, &expected, sizeof found) != 0)
            fail_msg("'%s' is %a, not %a", text, (double)found, (double)expected);
    }
    freelocale(c_locale);
}

/* The test creates the locale, because a machine may only have "C". */
static void a_locale_with_a_decimal_comma_changes_nothing(void **state)
{
    (void)state;
    static const char definition[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";
    char command[2 * SCRATCH_PATH_BYTES + 64];
    const char *source = scratch_write("comma.def", definition, strlen(definition));
    snprintf(command, sizeof command, "localedef -c -i '%s' '%s' >/dev/null 2>&1", source, scratch_path("comma"));
    const int result = system(command);
    setenv("LOCPATH", scratch_path(""), 1);
    const char *found = setlocale(LC_ALL, "comma");
    unsetenv("LOCPATH");
    if (!found) {
        printf("SKIP: localedef (status %d) made no locale with a decimal comma here\n", result);
        skip();
    }
    assert_string_equal(localeconv()->decimal_point, ",");
    const float expected[] = {1.5f, 0x1p-149f, 1.0f};
    check_takes("1.5,1.401298464324817e-45,1.000000059604644775390625\n", 1, 3, expected);
    setlocale(LC_ALL, "C");
}

/* Long enough that lines and chunks of the file end in every relation to each other. */
static void a_large_table_is_read_whole(void **state)
{
    (void)state;
    enum { ROWS = 3000, DIM = 37 };
    char *text = malloc(ROWS * DIM * 16);
    size_t length = 0;
    test_random random = {9};
    float *expected = malloc(ROWS * DIM * sizeof *expected);
    for (int i = 0; i < ROWS * DIM; i++) {
        expected[i] = random_normal(&random);
        length += (size_t)sprintf(text + length, "%.9g%c", (double)expected[i], i % DIM == DIM - 1 ? '\n' : ',');
    }
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    CHECK_OK(matrix_open_bytes("large.csv", text, length, &matrix));
    CHECK_OK(ww_matrix_describe(matrix, &info));
    assert_int_equal(info.rows, ROWS);
    assert_int_equal(info.dim, DIM);
    assert_memory_equal(ww_matrix_view_f32(matrix), expected, ROWS * DIM * sizeof *expected);
    ww_matrix_close(matrix);
    free(text);
    free(expected);
}

/* The last number of a file that is still being written may be incomplete. */
static void a_file_that_grows_while_it_is_read_is_refused(void **state)
{
    (void)state;
    file_source source;
    csv_table table = {0};
    const char *path = scratch_write("growing.csv", "1,2\n3,4.1", 9);
    CHECK_OK(source_open(&source, path));
    scratch_write("growing.csv", "1,2\n3,4.125\n", 12);
    CHECK_FAILS(WW_IO_ERROR, csv_read(&source, NULL, &table));
    assert_null(table.values);
    assert_non_null(strstr(ww_error_message(), "growing.csv: had 9 bytes, now 12"));
    scratch_write("growing.csv", "1,2", 3);
    CHECK_FAILS(WW_CORRUPT_FILE, csv_read(&source, NULL, &table));
    assert_null(table.values);
    source_close(&source);
}

static ww_status open_with(const char *path, const char *format, const char *id_column, int32_t streams, ww_matrix **matrix)
{
    ww_matrix_options options = ww_matrix_options_default();
    options.format = format;
    options.id_column = id_column;
    options.streams = streams;
    return ww_matrix_open_with(path, &options, matrix);
}

static void check_ids(const char *text, const char *id_column, const char *const *ids, const float *numbers)
{
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    float values[4];
    CHECK_OK(open_with(scratch_write("ids.csv", text, strlen(text)), NULL, id_column, 0, &matrix));
    CHECK_OK(ww_matrix_describe(matrix, &info));
    assert_int_equal(info.rows, 2);
    assert_int_equal(info.dim, 2);
    CHECK_OK(ww_matrix_read_f32(matrix, 0, 2, values));
    assert_memory_equal(values, numbers, sizeof values);
    for (int i = 0; i < 2; i++)
        assert_string_equal(ww_matrix_id(matrix, i), ids[i]);
    assert_null(ww_matrix_id(matrix, 2));
    assert_null(ww_matrix_id(matrix, -1));
    ww_matrix_close(matrix);
}

static void a_column_may_hold_ids(void **state)
{
    (void)state;
    static const float numbers[4] = {1, 2, 3, 4};
    static const char *const words[] = {"a", "b c"}, *const digits[] = {"007", "1e5"}, *const quoted[] = {"x, \"y\"", "z"};
    check_ids("id,x,y\na,1,2\nb c,3,4\n", "id", words, numbers);
    check_ids("x;the id;y\n1;a;2\n3;b c;4\n", "the id", words, numbers);
    check_ids("1,2,a\n3,4,b c\n", "3", words, numbers);
    check_ids("x,y,name\n1,2,a\n3,4,b c\n", "3", words, numbers);
    check_ids("key,x,y\n007,1,2\n1e5,3,4\n", "key", digits, numbers);
    check_ids("007,1,2\n1e5,3,4\n", "1", digits, numbers);
    check_ids("\"x, \"\"y\"\"\",1,2\nz,3,4\n", "1", quoted, numbers);
    check_ids("\"a \"\"k\"\"\",x,y\na,1,2\nb c,3,4\n", "a \"k\"", words, numbers);
}

static void an_id_column_that_is_not_there_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *column, *reason;
        ww_status status;
    } wrong[] = {{"id,x\na,1\n", "key", "line 1, column 1: no column is called 'key'", WW_INVALID_ARGUMENT},
                 {"a,1\n", "3", "the line has 2 columns; the ids should be in column 3", WW_INVALID_ARGUMENT},
                 {"a,1\n", "0", "no column is called '0'", WW_INVALID_ARGUMENT},
                 {"id,x\n,1\n", "id", "line 2, column 1: the id is empty", WW_CORRUPT_FILE},
                 {"id\na\n", "id", "has an id and no numbers", WW_CORRUPT_FILE},
                 {"id,x,y\na,1,2\nb,3\n", "id", "the row has 1 numbers", WW_CORRUPT_FILE},
                 {"x,y,id\n1,2,a\n1,2\n", "id", "the row has 2 columns; the ids should be in column 3", WW_INVALID_ARGUMENT}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ww_matrix *matrix = NULL;
        const int64_t held = blocks_held();
        CHECK_FAILS(wrong[i].status,
                    open_with(scratch_write("w.csv", wrong[i].text, strlen(wrong[i].text)), NULL, wrong[i].column, 0, &matrix));
        assert_null(matrix);
        if (!strstr(ww_error_message(), wrong[i].reason))
            fail_msg("'%s' does not say '%s'", ww_error_message(), wrong[i].reason);
        assert_int_equal(blocks_held(), held);
    }
}

/* A pipe, and a name without an ending; both are refused without the options that allow them. */
static void streams_are_read_to_their_end(void **state)
{
    (void)state;
    static const char text[] = "1,2\n3,4\n";
    int ends[2];
    char path[64];
    float values[4];
    ww_matrix *matrix = NULL;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, sizeof text - 1), sizeof text - 1);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    CHECK_FAILS(WW_UNSUPPORTED, open_with(path, "csv", NULL, 0, &matrix));
    CHECK_FAILS(WW_UNSUPPORTED, open_with(path, NULL, NULL, 1, &matrix));
    CHECK_FAILS(WW_INVALID_ARGUMENT, open_with(path, "xls", NULL, 1, &matrix));
    CHECK_OK(open_with(path, "csv", NULL, 1, &matrix));
    CHECK_OK(ww_matrix_read_f32(matrix, 0, 2, values));
    assert_true(values[0] == 1.0f && values[3] == 4.0f);
    ww_matrix_close(matrix);
    close(ends[0]);
    CHECK_OK(open_with(scratch_write("data", text, sizeof text - 1), "CSV", NULL, 0, &matrix));
    ww_matrix_close(matrix);
}

static void numbers_that_are_not_finite_are_named_by_row_and_column(void **state)
{
    (void)state;
    ww_matrix *matrix = NULL;
    float values[6];
    CHECK_OK(ww_matrix_open(scratch_write("n.csv", "1,2\n3,4\n5,nan\n", 14), &matrix));
    CHECK_OK(ww_matrix_read_f32(matrix, 0, 3, values));
    CHECK_OK(ww_matrix_check_finite(matrix, 0, 2, values));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_check_finite(matrix, 0, 3, values));
    assert_non_null(strstr(ww_error_message(), "n.csv: row 2, column 1 is NaN"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_check_finite(matrix, 2, 1, values + 4));
    assert_non_null(strstr(ww_error_message(), "row 2, column 1"));
    ww_matrix_close(matrix);
}

static void the_digits_of_the_demo_are_1797_rows_of_65(void **state)
{
    (void)state;
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    float row[65];
    CHECK_OK(ww_matrix_open(SOURCE_DIR "/data/digits.csv", &matrix));
    CHECK_OK(ww_matrix_describe(matrix, &info));
    assert_int_equal(info.rows, 1797);
    assert_int_equal(info.dim, 65);
    CHECK_OK(ww_matrix_read_f32(matrix, 1, 1, row));
    assert_true(row[3] == 12.0f && row[64] == 1.0f);
    ww_matrix_close(matrix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(separators_line_ends_comments_quotes_and_headers_are_accepted),
        cmocka_unit_test(a_refusal_names_line_and_column),
        cmocka_unit_test(texts_that_only_look_like_numbers_are_refused),
        cmocka_unit_test(numbers_are_the_nearest_float),
        cmocka_unit_test(printed_floats_read_back_like_those_of_the_c_library),
        cmocka_unit_test_setup_teardown(a_locale_with_a_decimal_comma_changes_nothing, scratch_setup, scratch_teardown),
        cmocka_unit_test(a_large_table_is_read_whole),
        cmocka_unit_test_setup_teardown(a_file_that_grows_while_it_is_read_is_refused, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_column_may_hold_ids, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(an_id_column_that_is_not_there_is_refused, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(streams_are_read_to_their_end, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(numbers_that_are_not_finite_are_named_by_row_and_column, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test(the_digits_of_the_demo_are_1797_rows_of_65),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
