/* Filters: which texts are refused before a database sees them, and what the others admit. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "store/filter/filter.h"
#include "support/memory.h"

enum { ROWS = 200 };

static sqlite3 *open_rows(void)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    const char *const sql =
        "CREATE TABLE docs_rows(handle INTEGER PRIMARY KEY, id TEXT UNIQUE, payload TEXT, place INTEGER, other INTEGER);"
        "CREATE TABLE secret(word TEXT); INSERT INTO secret VALUES ('xyzzy');"
        "WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 199) "
        "INSERT INTO docs_rows SELECT i, 'row' || i, json_object('lang', CASE i % 4 WHEN 0 THEN 'en' ELSE 'de' END, "
        "'year', 1900 + i, 'tags', json_array('t' || (i % 10), 'all')), i, i FROM n;";
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    return db;
}

static void refused(const char *text, const char *why)
{
    CHECK_FAILS(WW_INVALID_ARGUMENT, filter_check(&(filter_where){.text = text}, "docs"));
    if (!strstr(ww_error_message(), why))
        fail_msg("\"%s\" is refused with \"%s\", not because of \"%s\"", text, ww_error_message(), why);
}

static void texts_that_leave_their_brackets_are_refused(void **state)
{
    (void)state;
    refused("1; DROP TABLE docs_rows", "semicolon");
    refused("1) ; (1", "closes nothing");
    refused("1) UNION SELECT word FROM secret WHERE (1", "closes nothing");
    refused("1) /*", "closes nothing");
    refused("1 /* not closed", "does not end");
    refused("(1", "1 '(' is not closed");
    refused("id = 'abc", "does not end");
    refused("id = \"abc", "does not end");
    refused("id = `abc", "does not end");
    refused("[id = 1", "does not end");
    refused("id = $a(b) OR 1", "does not end");
    refused("", "syntax error: the expression is empty or not complete");
    refused("-- nothing", "syntax error: the expression is empty or not complete");
    refused("id = ", "syntax error: the expression is empty or not complete");
    refused("id IN (1,)", "near \")\": syntax error");
    refused("1 ORDER BY 1", "syntax error");
    refused("DELETE FROM docs_rows", "syntax error");
    refused("1 FROM secret", "syntax error");
    refused("PRAGMA user_version", "syntax error");
    refused("ATTACH 'x.db' AS x", "syntax error");
    refused("1 = 1 LIMIT 1", "syntax error");
}

static void only_rows_and_listed_functions_are_allowed(void **state)
{
    (void)state;
    refused("id IN (SELECT word FROM secret)", "no such table");
    refused("EXISTS (SELECT 1 FROM sqlite_schema)", "cannot be read");
    refused("EXISTS (SELECT 1 FROM pragma_database_list)", "only reading");
    refused("vector IS NULL", "no such column");
    refused("random() > 0", "random");
    refused("date('now') > '2000'", "date");
    refused("CURRENT_TIMESTAMP > '2000'", "current_timestamp");
    refused("load_extension('x')", "load_extension");
    refused("readfile('/etc/passwd') IS NULL", "no such function");
    refused("printf('%d', 1)", "printf");
    refused("length(zeroblob(10)) > 1", "zeroblob");
    refused("last_insert_rowid() > 0", "last_insert_rowid");
    refused("handle IN (WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)",
            "WITH is not allowed");
    refused("EXISTS (SELECT 1 FROM (SELECT id FROM docs_rows))", "a subquery in FROM");
    refused("EXISTS (SELECT 1 FROM ((SELECT id FROM docs_rows)))", "a subquery in FROM");
    refused("EXISTS (SELECT 1 FROM docs_rows a JOIN /* x */ ( VALUES (1)))", "a subquery in FROM");
    refused("EXISTS (SELECT 1 FROM docs_rows a JOIN docs_rows b ON a.id = b.id, (select 1))", "a subquery in FROM");
    refused("EXISTS (SELECT 1 FROM docs_rows, (docs_rows b, (SELECT 2) c))", "a subquery in FROM");
    refused("id COLLATE whatever = 'a'", "no such collation");
    refused("id MATCH 'a'", "match");
    refused("max(handle, 1) OVER () > 1", "window function");
}

static void a_quoted_bracket_or_semicolon_is_only_a_letter(void **state)
{
    (void)state;
    static const char *const texts[] = {"id <> ';)'",       "id <> ';''--/*'", "\"id\" = ')'",       "[id] = ';'",
                                        "`id` <> '('",      "id = 1 -- ) ;",   "id /* ) ; ( */ = 1", "id = x'00'",
                                        "((id) = (('a')))", "id = '''' OR 1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK_OK(filter_check(&(filter_where){.text = texts[i]}, "docs"));
}

static int64_t count_of(sqlite3 *db, const filter_where *where)
{
    filter_places places = {0};
    CHECK_OK(filter_check(where, "docs"));
    CHECK_OK(filter_run(where, &(filter_target){.db = db, .schema = "main", .collection = "docs"}, &places));
    const int64_t count = places.count;
    filter_places_free(&places);
    return count;
}

static void expressions_admit_the_same_rows_as_sql(void **state)
{
    (void)state;
    sqlite3 *db = open_rows();
    static const struct {
        const char *text;
        int64_t rows;
    } cases[] = {
        {"1", ROWS},
        {"0", 0},
        {"NULL", 0},
        {"payload->>'$.lang' = 'en'", ROWS / 4},
        {"payload->>'$.lang' = 'en' AND payload->>'$.year' >= 2000", 25},
        {"id LIKE 'row1%'", 111},
        {"id GLOB 'row?'", 10},
        {"handle = 7", 1},
        {"handle BETWEEN 10 AND 19 -- ten of them", 10},
        {"rowid < 3", 3},
        {"docs_rows.handle < 3", 3},
        {"EXISTS (SELECT 1 FROM json_each(payload, '$.tags') WHERE value = 't3')", ROWS / 10},
        {"json_array_length(payload, '$.tags') = 2", ROWS},
        {"EXISTS (SELECT 1 FROM docs_rows a JOIN docs_rows b ON (SELECT a.handle + 1) = b.handle WHERE b.id = docs_rows.id)",
         ROWS - 1},
        {"coalesce((SELECT NULL), (SELECT 3)) = handle", 1},
        {"((SELECT 3) = handle OR handle IN (VALUES (4), (5)))", 3},
        {"(SELECT count(*) FROM (docs_rows a JOIN docs_rows b) WHERE a.id = docs_rows.id AND b.handle < 2) = 2", ROWS},
        {"lower(upper(id)) = id", ROWS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t rows = count_of(db, &(filter_where){.text = cases[i].text});
        if (rows != cases[i].rows)
            fail_msg("\"%s\" admits %lld rows, not %lld", cases[i].text, (long long)rows, (long long)cases[i].rows);
    }
    sqlite3_close(db);
}

static void values_are_bound_by_place_and_by_name(void **state)
{
    (void)state;
    sqlite3 *db = open_rows();
    const ww_parameter by_place[] = {{.type = WW_VALUE_TEXT, .text = "en"}, {.type = WW_VALUE_INTEGER, .integer = 2000}};
    assert_int_equal(count_of(db, &(filter_where){"payload->>'$.lang' = ? AND payload->>'$.year' >= ?", by_place, 2, NULL}),
                     25);
    const ww_parameter by_name[] = {{.name = ":year", .type = WW_VALUE_REAL, .real = 1999.5},
                                    {.name = "@lang", .type = WW_VALUE_TEXT, .text = "en' OR '1"}};
    assert_int_equal(
        count_of(db, &(filter_where){"payload->>'$.lang' = @lang OR payload->>'$.year' > :year", by_name, 2, NULL}), 100);
    const ww_parameter null[] = {{.type = WW_VALUE_NULL}};
    assert_int_equal(count_of(db, &(filter_where){"?1 IS NULL", null, 1, NULL}), ROWS);
    CHECK_FAILS(WW_INVALID_ARGUMENT, filter_check(&(filter_where){"id = :a OR id = :b", by_place, 1, NULL}, "docs"));
    assert_non_null(strstr(ww_error_message(), ":b (2 of 2) has no value"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, filter_check(&(filter_where){"id = ?", by_place, 2, NULL}, "docs"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, filter_check(&(filter_where){"id = ?", by_name, 1, NULL}, "docs"));
    sqlite3_close(db);
}

static void a_collection_with_quotes_in_its_name_is_filtered(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    const char *const name = "it's \"a\" [name]";
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    char *sql = sqlite3_mprintf("CREATE TABLE \"%w_rows\"(handle INTEGER PRIMARY KEY, place INTEGER, id TEXT, payload TEXT);"
                                "INSERT INTO \"%w_rows\" VALUES (3, 13, 'a', NULL), (4, 14, 'b', NULL)",
                                name, name);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(sql);
    filter_places places = {0};
    const filter_where where = {.text = "id = 'b'"};
    CHECK_OK(filter_check(&where, name));
    CHECK_OK(filter_run(&where, &(filter_target){.db = db, .schema = "main", .collection = name}, &places));
    assert_int_equal(places.count, 1);
    assert_int_equal(places.places[0], 14);
    filter_places_free(&places);
    sqlite3_close(db);
}

static void a_guarded_connection_only_reads(void **state)
{
    (void)state;
    sqlite3 *db = open_rows();
    filter_guard guard = {0};
    assert_int_equal(filter_guard_install(db, &guard), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DELETE FROM docs_rows", NULL, NULL, NULL), SQLITE_AUTH);
    assert_int_equal(sqlite3_exec(db, "ATTACH ':memory:' AS x", NULL, NULL, NULL), SQLITE_AUTH);
    assert_int_equal(sqlite3_exec(db, "SELECT count(*) FROM secret", NULL, NULL, NULL), SQLITE_OK);
    /* Without filter_check() before it: only the authorizer refuses it, and the next filter runs. */
    const filter_target target = {.db = db, .schema = "main", .collection = "docs", .guard = &guard};
    filter_places places = {0};
    CHECK_FAILS(WW_INVALID_ARGUMENT, filter_run(&(filter_where){.text = "id IN (SELECT word FROM secret)"}, &target, &places));
    CHECK_FAILS(WW_INVALID_ARGUMENT, filter_run(&(filter_where){.text = "other = 3"}, &target, &places));
    CHECK_OK(filter_run(&(filter_where){.text = "id = 'row3'"}, &target, &places));
    assert_int_equal(places.count, 1);
    filter_places_free(&places);
    sqlite3_close(db);
}

static void a_time_limit_interrupts(void **state)
{
    (void)state;
    sqlite3 *db = open_rows();
    filter_places places = {0};
    const filter_where slow = {
        .text = "(SELECT count(*) FROM docs_rows a, docs_rows b, docs_rows c, docs_rows d WHERE a.id < b.id || c.id || "
                "d.id) > 1"};
    CHECK_OK(filter_check(&slow, "docs"));
    CHECK_FAILS(
        WW_CANCELLED,
        filter_run(&slow, &(filter_target){.db = db, .schema = "main", .collection = "docs", .seconds_max = 0.05}, &places));
    assert_non_null(strstr(ww_error_message(), "not done in 0.05 s"));
    /* The handler was removed: the same connection can do long work again. */
    assert_int_equal(sqlite3_exec(db, "SELECT count(*) FROM docs_rows a, docs_rows b WHERE a.id < b.id", NULL, NULL, NULL),
                     SQLITE_OK);
    filter_places_free(&places);
    sqlite3_close(db);
}

static void keys_know_text_and_values_again(void **state)
{
    (void)state;
    ww_parameter values[] = {{.name = ":a", .type = WW_VALUE_TEXT, .text = "x"}, {.type = WW_VALUE_INTEGER, .integer = 3}};
    const filter_where where = {"id = :a", values, 2, NULL};
    filter_key *key = filter_key_copy(&where);
    assert_non_null(key);
    assert_true(filter_key_is(key, &where));
    assert_false(filter_key_is(key, &(filter_where){"id = :b", values, 2, NULL}));
    assert_false(filter_key_is(key, &(filter_where){"id = :a", values, 1, NULL}));
    values[1].integer = 4;
    assert_false(filter_key_is(key, &where));
    values[1].integer = 3, values[0].text = "y";
    assert_false(filter_key_is(key, &where));
    values[0].text = "x";
    assert_true(filter_key_is(key, &where));
    filter_key_free(key);
}

static void every_failing_allocation_is_a_status(void **state)
{
    (void)state;
    sqlite3 *db = open_rows();
    const filter_where where = {.text = "payload->>'$.lang' = 'en'"};
    const int64_t blocks = blocks_held();
    for (int64_t n = 1;; n++) {
        filter_places places = {0};
        fail_allocation_at(n);
        const ww_status status =
            filter_run(&where, &(filter_target){.db = db, .schema = "main", .collection = "docs"}, &places);
        filter_key *key = status == WW_OK ? filter_key_copy(&where) : NULL;
        fail_allocation_at(0);
        filter_places_free(&places);
        const bool whole = status == WW_OK && key;
        filter_key_free(key);
        assert_int_equal(blocks_held(), blocks);
        if (whole)
            break;
        if (status != WW_OK)
            assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_true(n < 100);
    }
    sqlite3_close(db);
}

static int setup(void **state)
{
    (void)state;
    return sqlite_host_ready() == WW_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_that_leave_their_brackets_are_refused),
        cmocka_unit_test(only_rows_and_listed_functions_are_allowed),
        cmocka_unit_test(a_quoted_bracket_or_semicolon_is_only_a_letter),
        cmocka_unit_test(expressions_admit_the_same_rows_as_sql),
        cmocka_unit_test(values_are_bound_by_place_and_by_name),
        cmocka_unit_test(a_collection_with_quotes_in_its_name_is_filtered),
        cmocka_unit_test(a_guarded_connection_only_reads),
        cmocka_unit_test(a_time_limit_interrupts),
        cmocka_unit_test(keys_know_text_and_values_again),
        cmocka_unit_test(every_failing_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
