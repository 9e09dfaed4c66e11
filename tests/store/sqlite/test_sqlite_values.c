/* Vectors as SQL values: what the functions compute, which blobs and texts are vectors, and which are not. */
#include "store/sqlite/sql.h"

#include <locale.h>

#include "support/scratch.h"

static sqlite3 *db;

static int setup(void **state)
{
    db = sql_open(":memory:");
    return scratch_setup(state);
}

static int teardown(void **state)
{
    sqlite3_close(db);
    return scratch_teardown(state);
}

static void functions_compute_the_scores_of_a_search(void **state)
{
    (void)state;
    const float a[] = {0.1f, -2.5f, 3e-3f}, b[] = {7.0f, 0.3f, -1.25f};
    const char *const names[] = {[WW_COSINE] = "ww_cosine", [WW_L2] = "ww_l2", [WW_DOT] = "ww_dot"};
    for (int metric = 0; metric < 3; metric++) {
        float score;
        CHECK_OK(ww_score((ww_metric)metric, a, b, 3, &score));
        char *sql = sqlite3_mprintf("SELECT %s(?1, ?2)", names[metric]);
        sqlite3_stmt *statement = NULL;
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
        sqlite3_bind_blob(statement, 1, a, sizeof a, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, "[7, 0.3, -1.25]", -1, SQLITE_STATIC);
        assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
        assert_true(sqlite3_column_double(statement, 0) == (double)score);
        sqlite3_finalize(statement);
        sqlite3_free(sql);
    }
    sql_gives(
        db,
        "SELECT ww_l2('[0,0]', '[3,4]'), ww_dot('[1,2]', '[3,4]'), ww_cosine('[2,0]', '[5,0]'), ww_cosine('[0,0]', '[1,1]')",
        "5.0|11.0|1.0|0.0");
    sql_gives(db, "SELECT ww_version()", WW_VERSION_TEXT);
}

static void null_gives_null(void **state)
{
    (void)state;
    sql_gives(
        db, "SELECT ww_l2(NULL, '[1]') IS NULL, ww_dot('[1]', NULL) IS NULL, ww_vector(NULL) IS NULL, ww_to_json(NULL) IS NULL",
        "1|1|1|1");
}

static void texts_and_blobs_are_the_same_vectors(void **state)
{
    (void)state;
    sql_gives(db, "SELECT hex(ww_vector('[1, -2.5]'))", "0000803F000020C0");
    sql_gives(db, "SELECT ww_to_json(x'0000803F000020C0')", "[1,-2.5]");
    sql_gives(db, "SELECT ww_to_json(' [ 1e0 , 0.1,\t-3E-2,\n0.333333343 ] ')", "[1,0.1,-0.03,0.33333334]");
    sql_gives(db, "SELECT ww_to_json('[3.4028235e38, 1e-45, 16777217, 0.1000000001]')",
              "[3.4028235e+38,1.4013e-45,16777216,0.1]");
    sql_gives(db, "SELECT json_array(ww_to_json('[1,2]'))", "[[1,2]]");
}

static void types_have_blobs_of_their_own(void **state)
{
    (void)state;
    sql_gives(db, "SELECT hex(ww_vector('[1,-1,127,-128]', 'i8')), ww_to_json(x'01FF7F80', 'i8')", "01FF7F80|[1,-1,127,-128]");
    sql_gives(db, "SELECT hex(ww_vector('[0,255]', 'u8')), ww_to_json(x'00FF', 'U8')", "00FF|[0,255]");
    sql_gives(db, "SELECT hex(ww_vector('[1, 65504]', 'f16')), ww_to_json(x'003CFF7B', 'f16')", "003CFF7B|[1,65504]");
    sql_gives(db, "SELECT hex(ww_vector('[1, 1.00390625]', 'bf16')), ww_to_json(x'803F', 'bf16')", "803F803F|[1]");
    sql_fails(db, "SELECT ww_vector('[1.5]', 'i8')", "element 0, 1.5, is not an integer from -128 to 127");
    sql_fails(db, "SELECT ww_vector('[0, -1]', 'u8')", "element 1, -1, is not an integer from 0 to 255");
    sql_fails(db, "SELECT ww_vector('[65520]', 'f16')", "too large for f16");
    sql_fails(db, "SELECT ww_vector('[1]', 'f64')", "it must be f32, f16, bf16, i8 or u8");
    sql_fails(db, "SELECT ww_to_json(x'00', 'f16')", "a blob of 1 bytes");
}

static void invalid_vectors_give_an_error_with_the_reason(void **state)
{
    (void)state;
    sql_fails(db, "SELECT ww_vector(5)", "ww_vector: an integer; a vector is a blob of f32 numbers or a JSON array");
    sql_fails(db, "SELECT ww_vector(1.5)", "a number;");
    sql_fails(db, "SELECT ww_vector(x'0000')", "a blob of 2 bytes");
    sql_fails(db, "SELECT ww_vector(x'')", "a blob of 0 bytes");
    sql_fails(db, "SELECT ww_vector(x'0000C07F')", "element 0 is nan");
    sql_fails(db, "SELECT ww_vector(x'0000803F0000807F')", "element 1 is infinite");
    sql_fails(db, "SELECT ww_vector('[1, 1e39]')", "element 1 is infinite");
    sql_fails(db, "SELECT ww_vector('1, 2')", "not JSON");
    sql_fails(db, "SELECT ww_vector('[1, 2')", "not JSON");
    sql_fails(db, "SELECT ww_vector('[1, nan]')", "not JSON");
    sql_fails(db, "SELECT ww_vector('[0x10]')", "not JSON");
    sql_fails(db, "SELECT ww_vector('{\"a\": 1}')", "not an array");
    sql_fails(db, "SELECT ww_vector('[1, \"2\"]')", "element 1 of the JSON array is not a number");
    sql_fails(db, "SELECT ww_vector('[1, null]')", "element 1 of the JSON array is not a number");
    sql_fails(db, "SELECT ww_vector('[[1]]')", "element 0 of the JSON array is not a number");
    sql_fails(db, "SELECT ww_vector('[]')", "an empty JSON array");
    sql_fails(db,
              "SELECT ww_vector('[' || substr(replace(hex(zeroblob(40000)), '00', ',1'), 2) || ',1' || "
              "replace(hex(zeroblob(40000)), '00', ',1') "
              "|| ']')",
              "more than 65536 numbers");
    sql_fails(db, "SELECT ww_dot('[1]', '[1,2]')", "a vector of 1 numbers and one of 2");
    sql_fails(db, "SELECT ww_dot('[1]')", "wrong number of arguments");
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    static const char definition[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n";
    char command[2 * SCRATCH_PATH_BYTES + 64];
    const char *source = scratch_write("comma.def", definition, strlen(definition));
    snprintf(command, sizeof command, "localedef -c -i '%s' '%s' >/dev/null 2>&1", source, scratch_path("comma"));
    const int made = system(command);
    setenv("LOCPATH", scratch_path(""), 1);
    if (made < 0 || !setlocale(LC_ALL, "comma") || strcmp(localeconv()->decimal_point, ",") != 0) {
        print_message("SKIP: no locale with a decimal comma can be made (package locales)\n");
        skip();
    }
    sql_gives(db, "SELECT ww_to_json(ww_vector('[1.5, 2.25]'))", "[1.5,2.25]");
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_compute_the_scores_of_a_search),      cmocka_unit_test(null_gives_null),
        cmocka_unit_test(texts_and_blobs_are_the_same_vectors),          cmocka_unit_test(types_have_blobs_of_their_own),
        cmocka_unit_test(invalid_vectors_give_an_error_with_the_reason), cmocka_unit_test(numbers_do_not_depend_on_the_locale),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
