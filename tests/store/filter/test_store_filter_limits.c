/* Filters that are made to take much time or memory: for every text, a search ends soon after `filter_ms`, and takes memory in
 * proportion. The functions that replace SQLite's own give the same results. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <warpwave/store.h>

#include "store/filter/filter.h"
#include "support/scratch.h"

enum { DIM = 2, ROWS = 300, FILTER_MS = 200, MS_MAX = 4000, MEMORY_MAX = 128 << 20 };

static double milliseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static double cpu_milliseconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return 1e3 * (double)used.tv_sec + 1e-6 * (double)used.tv_nsec;
}

static ww_device *cpu;
static ww_store *store;
static ww_collection *docs;

static int setup(void **state)
{
    scratch_setup(state);
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_store_config how = ww_store_config_default();
    how.filter_ms = FILTER_MS, how.synchronous = WW_SYNCHRONOUS_OFF;
    CHECK_OK(ww_store_open(scratch_path("limits.db"), cpu, &how, &store));
    ww_collection_config config = ww_collection_config_default();
    config.name = "docs", config.dim = DIM, config.metric = WW_L2;
    CHECK_OK(ww_store_create(store, &config, &docs));
    static float vectors[ROWS][DIM];
    static char payloads[ROWS][64];
    const char *texts[ROWS];
    for (int i = 0; i < ROWS; i++) {
        vectors[i][0] = (float)i;
        snprintf(payloads[i], sizeof payloads[i], "{\"n\":%d,\"tags\":[1,2,3]}", i);
        texts[i] = payloads[i];
    }
    ww_rows rows = ww_rows_default();
    rows.vectors = vectors[0], rows.count = ROWS, rows.dim = DIM, rows.payloads = texts;
    CHECK_OK(ww_collection_add(docs, &rows));
    return 0;
}

static int teardown(void **state)
{
    ww_collection_destroy(docs);
    ww_store_close(store);
    ww_device_close(cpu);
    return scratch_teardown(state);
}

static ww_status search(const char *where)
{
    const float zeros[DIM] = {0};
    ww_results *found = NULL;
    ww_query query = ww_query_default();
    query.queries = zeros, query.query_count = 1, query.dim = DIM, query.k = 3, query.where = where;
    const ww_status status = ww_collection_query(docs, &query, &found);
    ww_results_destroy(found);
    return status;
}

/* A text of many letters in few bytes. */
#define KIB   "hex(hex(hex(hex('0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'))))"
#define FOUR  KIB "||" KIB "||" KIB "||" KIB
#define LARGE "hex(hex(hex(hex(hex(hex(hex(" FOUR ")))))))"

/* Runs it: it may succeed or fail, but soon, and without much memory. */
static void is_over_soon(const char *where)
{
    sqlite3_memory_highwater(1);
    const int64_t before = sqlite3_memory_used();
    const double began = milliseconds_now(), used = cpu_milliseconds();
    const ww_status status = search(where);
    const double took = cpu_milliseconds() - used, wall = milliseconds_now() - began;
    const int64_t memory = sqlite3_memory_highwater(0) - before;
    if (getenv("WARPWAVE_TEST_PRINT"))
        printf("%7.0f ms %7.1f MiB  %-14s %.90s\n", took, (double)memory / (1 << 20), ww_status_name(status), where);
    if (took > MS_MAX || memory > MEMORY_MAX)
        fail_msg("%.0f ms (%.0f on the clock), %.0f MiB: %.300s", took, wall, (double)memory / (1 << 20), where);
    CHECK_OK(search("handle = 3")); /* the connection is unchanged */
}

static void hostile_filters_are_over_soon(void **state)
{
    (void)state;
    static const char *const texts[] = {
        /* long calls */
        "instr(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(payload)))))))))), hex(hex(hex(hex(hex(hex(hex(hex(payload)))))))) || "
        "'x')",
        "replace(hex(hex(hex(payload))), '3', hex(hex(hex(payload)))) = ''",
        "length(replace(replace(replace(replace('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'a', hex(hex(payload))), '3', "
        "hex(hex(payload))), "
        "'3', hex(hex(payload))), '3', hex(payload))) > 0",
        "trim(hex(hex(hex(hex(hex(hex(hex(hex(payload)))))))), hex(hex(hex(hex(hex(hex(payload)))))))) = ''",
        "hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(payload))))))))))) LIKE "
        "'%3%3%3%3%3%3%3%3%3%3%3%3%3%3%3%3%3%3%3%3%3%3%3%3x'",
        "hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(payload))))))))))) GLOB "
        "'*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3x'",
        "json_valid(hex(hex(hex(hex(hex(hex(hex(hex(hex(hex(payload)))))))))))",
        "json_array_length('[' || hex(hex(hex(hex(hex(hex(hex(hex(payload)))))))) || ']') > 0",
        "quote(quote(quote(quote(quote(quote(quote(quote(quote(quote(quote(quote(payload)))))))))))) = ''",
        "json_quote(json_quote(json_quote(json_quote(json_quote(json_quote(json_quote(json_quote(json_quote(json_quote(json_"
        "quote("
        "json_quote(json_quote(json_quote(json_quote(json_quote(json_quote(json_quote(json_quote(payload))))))))))))))))))) = "
        "''",
        "length(hex(" LARGE ")) > 0",
        "instr(" LARGE ", hex(hex(hex(hex(hex(hex(" FOUR "))))))||'x')",
        "trim(" LARGE ", '3') = ''",
        LARGE " LIKE '%33333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333x'",
        LARGE " GLOB '*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3*3x'",
        "json_array(" LARGE ", " LARGE ", " LARGE ", " LARGE ", " LARGE ", " LARGE ", " LARGE ", " LARGE ") IS NULL",
        "json_extract('[\"' || " LARGE " || '\"]', '$[0]', '$[1]', '$[2]', '$[3]', '$[4]', '$[5]', '$[6]', '$[7]') IS NULL",
        /* many rounds */
        "(SELECT count(*) FROM docs_rows a, docs_rows b, docs_rows c, docs_rows d WHERE a.id < b.id || c.id || d.id) > 1",
        "(SELECT count(*) FROM json_each(payload) a, json_each(payload) b, json_tree(payload) c, json_tree(payload) d, "
        "json_tree(payload) e, json_tree(payload) f, json_tree(payload) g, json_tree(payload) h, json_tree(payload) i) > 1",
        "handle IN (SELECT a.handle * 1000000 + b.handle * 1000 + c.handle FROM docs_rows a, docs_rows b, docs_rows c)",
        "(SELECT max(hex(hex(hex(hex(hex(hex(a.payload))))))) FROM docs_rows a, docs_rows b, docs_rows c) = ''",
        "(SELECT count(*) FROM (SELECT DISTINCT a.payload || b.payload || c.payload FROM docs_rows a, docs_rows b, docs_rows "
        "c)) > 1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        is_over_soon(texts[i]);
}

/* Texts that are slow before they run: joins of many tables, names that are copied wherever they are used. */
static void texts_that_are_hard_to_prepare_are_over_soon(void **state)
{
    (void)state;
    static char text[FILTER_SELECT_TEXT_BYTES_MAX + 1000];
    size_t at = (size_t)snprintf(text, sizeof text, "(SELECT count(*) FROM json_each('[]') t0");
    for (int i = 1; i < 60; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, ", json_each(t%d.value) t%d", i - 1, i);
    snprintf(text + at, sizeof text - at, ") = 0");
    is_over_soon(text);
    at = (size_t)snprintf(text, sizeof text, "(SELECT handle IN (handle");
    for (int i = 0; i < 190; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, ", handle");
    at += (size_t)snprintf(text + at, sizeof text - at, ") AS y FROM docs_rows WHERE y IN (y");
    while (at < FILTER_SELECT_TEXT_BYTES_MAX - 10)
        at += (size_t)snprintf(text + at, sizeof text - at, ",y");
    snprintf(text + at, sizeof text - at, "))");
    is_over_soon(text);
    for (int times = 2; times <= 30; times += 4) { /* each uses the one before twice */
        at = (size_t)snprintf(text, sizeof text, "(WITH t0(x) AS (SELECT 'a')");
        for (int i = 1; i <= times; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, ", t%d(x) AS (SELECT x||x FROM t%d)", i, i - 1);
        snprintf(text + at, sizeof text - at, " SELECT x FROM t%d) IS NULL", times);
        is_over_soon(text);
        at = 0;
        for (int i = 0; i < times; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "(SELECT x+x AS x FROM ");
        at += (size_t)snprintf(text + at, sizeof text - at, "(SELECT handle AS x FROM docs_rows)");
        for (int i = 0; i < times; i++)
            text[at++] = ')';
        text[at] = '\0';
        is_over_soon(text);
    }
}

/* As many calls as a text may have, with values of the maximum length. */
static void texts_with_many_calls_are_over_soon(void **state)
{
    (void)state;
    static char text[FILTER_TEXT_BYTES_MAX + 1000];
    static const char *const calls[] = {"instr(%s, 'b%d')", "length(hex(%s)) = %d", "json_valid(%s || '%d')",
                                        "%s LIKE '%%4x%d'"};
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        size_t at = (size_t)snprintf(text, sizeof text, "0");
        for (int i = 0; i < 11; i++) {
            at += (size_t)snprintf(text + at, sizeof text - at, " OR ");
            at += (size_t)snprintf(text + at, sizeof text - at, calls[c], LARGE, i);
        }
        is_over_soon(text);
    }
}

static void arguments_over_a_limit_are_refused_with_the_limit(void **state)
{
    (void)state;
    static char text[FILTER_TEXT_BYTES_MAX + 100];
    memset(text, ' ', FILTER_TEXT_BYTES_MAX + 1);
    CHECK_FAILS(WW_OUT_OF_RANGE, search(text));
    assert_non_null(strstr(ww_error_message(), "more than 262144 bytes"));
    memset(text, 0, sizeof text);
    strcpy(text, "1");
    for (int i = 0; i < 257; i++)
        strcat(text, " AND abs(handle)");
    CHECK_FAILS(WW_INVALID_ARGUMENT, search(text));
    assert_non_null(strstr(ww_error_message(), "more than 256 function calls"));
    strcpy(text, "id = ''");
    for (int i = 0; i < 65; i++)
        strcat(text, "||id");
    CHECK_FAILS(WW_OUT_OF_RANGE, search(text));
    assert_non_null(strstr(ww_error_message(), "more than 64 operators ||"));
    strcpy(text, "1");
    for (int i = 0; i < 40; i++)
        strcat(text, " AND (SELECT 1)");
    CHECK_FAILS(WW_INVALID_ARGUMENT, search(text));
    assert_non_null(strstr(ww_error_message(), "32 SELECTs"));
    snprintf(text, sizeof text, "(SELECT 1)%4096s", "");
    CHECK_FAILS(WW_OUT_OF_RANGE, search(text));
    assert_non_null(strstr(ww_error_message(), "more than 4096 bytes"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, search("replace(id, 'a', 'b') = ''"));
    CHECK_FAILS(WW_INVALID_ARGUMENT,
                search("trim(id, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-*/') = ''"));
    assert_non_null(strstr(ww_error_message(), "more than 64 characters"));
    CHECK_FAILS(WW_OUT_OF_RANGE, search("hex(hex(hex(hex(" LARGE ")))) = ''"));
    assert_non_null(strstr(ww_error_message(), "more than 1048576 bytes"));
}

/* Random arguments, of letters that make matches, parts of characters and invalid UTF-8 likely. */
static void our_functions_give_the_results_of_sqlites_functions(void **state)
{
    (void)state;
    sqlite3 *theirs = NULL, *ours = NULL;
    assert_int_equal(sqlite_host_ready(), WW_OK);
    assert_int_equal(sqlite3_open(":memory:", &theirs), SQLITE_OK);
    assert_int_equal(sqlite3_open(":memory:", &ours), SQLITE_OK);
    assert_int_equal(filter_functions_register(ours), SQLITE_OK);
    static const char *const functions[] = {"instr", "trim", "ltrim", "rtrim"};
    static const unsigned char letters[] = {'a', 'b', 'a', 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0x80, 'a'};
    uint64_t dice = 1;
    for (int round = 0; round < 20000; round++) {
        unsigned char values[2][12];
        int lengths[2], kinds[2];
        for (int v = 0; v < 2; v++) {
            dice = dice * 6364136223846793005u + 1442695040888963407u;
            lengths[v] = (int)((dice >> 33) % (v ? 4 : 12));
            kinds[v] = (int)((dice >> 40) % 8);
            for (int i = 0; i < lengths[v]; i++) {
                dice = dice * 6364136223846793005u + 1442695040888963407u;
                values[v][i] = letters[(dice >> 33) % sizeof letters];
            }
        }
        char sql[64], *answers[2];
        snprintf(sql, sizeof sql, "SELECT typeof(r), hex(r) FROM (SELECT %s(?1, ?2) AS r)", functions[round % 4]);
        for (int side = 0; side < 2; side++) {
            sqlite3_stmt *s = NULL;
            assert_int_equal(sqlite3_prepare_v2(side ? ours : theirs, sql, -1, &s, NULL), SQLITE_OK);
            for (int v = 0; v < 2; v++)
                if (kinds[v] == 0)
                    sqlite3_bind_null(s, v + 1);
                else if (kinds[v] == 1)
                    sqlite3_bind_int(s, v + 1, lengths[v] * 11);
                else if (kinds[v] < 4)
                    sqlite3_bind_blob(s, v + 1, values[v], lengths[v], SQLITE_STATIC);
                else
                    sqlite3_bind_text(s, v + 1, (const char *)values[v], lengths[v], SQLITE_STATIC);
            assert_int_equal(sqlite3_step(s), SQLITE_ROW);
            answers[side] = sqlite3_mprintf("%s %s", sqlite3_column_text(s, 0), sqlite3_column_text(s, 1));
            sqlite3_finalize(s);
        }
        assert_string_equal(answers[1], answers[0]);
        sqlite3_free(answers[0]), sqlite3_free(answers[1]);
    }
    sqlite3_close(theirs);
    sqlite3_close(ours);
}

static void a_parameter_without_a_type_is_refused(void **state)
{
    (void)state;
    const ww_parameter unknown[] = {{.type = (ww_value_type)7, .integer = 3}};
    CHECK_FAILS(WW_INVALID_ARGUMENT, filter_check(&(filter_where){"handle = ?", unknown, 1, NULL}, "docs"));
    assert_non_null(strstr(ww_error_message(), "parameter 1 has type 7"));
    const ww_parameter empty[] = {{.type = WW_VALUE_TEXT}};
    CHECK_FAILS(WW_INVALID_ARGUMENT, filter_check(&(filter_where){"id = ?", empty, 1, NULL}, "docs"));
    assert_non_null(strstr(ww_error_message(), "the text of parameter 1 is NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_filters_are_over_soon),
        cmocka_unit_test(texts_that_are_hard_to_prepare_are_over_soon),
        cmocka_unit_test(texts_with_many_calls_are_over_soon),
        cmocka_unit_test(arguments_over_a_limit_are_refused_with_the_limit),
        cmocka_unit_test(our_functions_give_the_results_of_sqlites_functions),
        cmocka_unit_test(a_parameter_without_a_type_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
