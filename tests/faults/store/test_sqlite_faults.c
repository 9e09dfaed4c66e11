/* Failures around the virtual table: no memory, edited tables behind it, malicious names and texts, and an authorizer of the
 * host. The module is linked statically, so that its allocations can be made to fail. */
#include "store/sqlite/sql.h"

#include "store/sqlite/module.h"
#include "store/sqlite_memory.h"
#include "support/devices.h"
#include "support/memory.h"
#include "support/scratch.h"

static sqlite3 *open_linked(const char *path)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite_host_ready(), WW_OK);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(module_register(db, NULL), SQLITE_OK);
    sql_run(db, "PRAGMA synchronous = OFF"); /* no power fails here */
    return db;
}

static const char WITH_PARAMETERS[] =
    "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 2 AND filter = 'id = :id OR handle = :n' AND "
    "parameters = json_object('id', 'a', ':n', 1)";

static const char *const STEPS[] = {
    "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=l2, device=cpu)",
    "INSERT INTO docs(id, vector, payload, text) VALUES ('a', '[0,0]', '{\"n\":1}', 'red fox'), ('b', '[1,0]', NULL, NULL)",
    "INSERT OR REPLACE INTO docs(id, vector, text) VALUES ('b', '[2,0]', 'dog')",
    "SELECT id, score, payload, text FROM hybrid('docs', '[0,0]', 'fox', 2, 'hybrid', 'ranks', 1, 1, 'id = :a', '[\"a\"]')",
    "UPDATE docs SET vector = vector, sparse = '{\"indices\": [9, 2], \"values\": [1, 2]}' WHERE id = 'a'",
    "SELECT id, sparse FROM docs WHERE sparse MATCH '{\"indices\": [2, 9], \"values\": [1, 1]}' AND k = 2 AND modifier = 'idf'",
    "SELECT id, sparse_rank, text_rank FROM hybrid('docs', '[0,0]', 'fox') WHERE sparse = '{\"indices\":[9],\"values\":[1]}'",
    "SELECT id, score, vector, payload FROM docs WHERE vector MATCH '[0,0]' AND k = 2",
    "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 2 AND filter = 'payload->>''$.n'' = 1' AND rowid IN (0, 1)",
    WITH_PARAMETERS,
    "SELECT id FROM docs WHERE vector MATCH '[0,0]' ORDER BY distance",
    "SELECT ww_to_json(vector), id FROM docs WHERE id = 'a'",
    "UPDATE docs SET payload = '2' WHERE vector MATCH '[0,0]' AND radius = 0",
    "DELETE FROM docs WHERE id = 'b'",
    "INSERT INTO docs(docs) VALUES ('build-ivf nlist=1')",
    "INSERT INTO docs(id, vector) VALUES ('c', '[3,1]')",
    "SELECT id, proven FROM docs WHERE vector MATCH '[0,0]' AND k = 2 AND nprobe = 1",
    "ALTER TABLE docs RENAME TO papers",
    "DROP TABLE papers",
};
enum { STEP_COUNT = sizeof STEPS / sizeof *STEPS };

/* Runs steps up to `last`; the code of that one. */
static int run_steps(sqlite3 *db, int last)
{
    int code = SQLITE_OK;
    for (int i = 0; i <= last && code == SQLITE_OK; i++)
        code = sqlite3_exec(db, STEPS[i], NULL, NULL, NULL);
    return code;
}

static void every_allocation_of_the_library_fails_once(void **state)
{
    (void)state;
    sqlite3 *warm = open_linked(":memory:"); /* makes everything that a process allocates only once */
    assert_int_equal(run_steps(warm, STEP_COUNT - 1), SQLITE_OK);
    sqlite3_close(warm);
    const int64_t blocks = blocks_held();
    int failures = 0;
    for (int step = 0; step < STEP_COUNT; step++) {
        int successes = 0; /* successes in a row: if an allocation only makes things faster, its failure is not noticed */
        for (int64_t n = 1; successes < 12; n++) {
            sqlite3 *db = open_linked(":memory:");
            assert_int_equal(run_steps(db, step - 1), SQLITE_OK);
            fail_allocation_at(n);
            const int code = sqlite3_exec(db, STEPS[step], NULL, NULL, NULL);
            fail_allocation_at(0);
            failures += code != SQLITE_OK;
            successes = code == SQLITE_OK ? successes + 1 : 0;
            if (code != SQLITE_OK && (code & 0xff) != SQLITE_NOMEM)
                fail_msg("%s: allocation %lld: code %d: %s", STEPS[step], (long long)n, code, sqlite3_errmsg(db));
            /* The same statement works when there is memory again: nothing was half done. */
            if (code != SQLITE_OK && sqlite3_exec(db, STEPS[step], NULL, NULL, NULL) != SQLITE_OK)
                fail_msg("%s: after allocation %lld failed: %s", STEPS[step], (long long)n, sqlite3_errmsg(db));
            sqlite3_close(db);
            assert_int_equal(blocks_held(), blocks);
        }
    }
    assert_true(failures > 2 * STEP_COUNT);
}

static void every_allocation_of_sqlite_fails_once(void **state)
{
    (void)state;
    sqlite_memory_begin();
    for (int step = 0; step < STEP_COUNT; step++) {
        bool passed = false;
        for (int64_t n = 1; !passed && n < 1000000; n += 1 + n / (test_is_long() ? 32 : test_is_short() ? 1 : 4)) {
            sqlite3 *db = open_linked(":memory:");
            assert_int_equal(run_steps(db, step - 1), SQLITE_OK);
            sqlite_memory_fail_at(n, false);
            const int code = sqlite3_exec(db, STEPS[step], NULL, NULL, NULL);
            passed = !sqlite_memory.failed;
            sqlite_memory_fail_at(0, false);
            if (passed)
                assert_int_equal(code, SQLITE_OK);
            sqlite3_close(db);
        }
        assert_true(passed);
    }
    sqlite_memory_end();
}

static const char *const edits[] = {
    "UPDATE docs_vectors SET vector = x'00' WHERE place = 1",
    "UPDATE docs_vectors SET vector = 'text' WHERE place = 1",
    "UPDATE docs_vectors SET vector = x'0000C07F0000C07F' WHERE place = 1",
    "UPDATE docs_vectors SET handle = 99 WHERE place = 1",
    "DELETE FROM docs_vectors WHERE place = 1",
    "DELETE FROM docs_rows WHERE handle = 1",
    "UPDATE docs_rows SET place = 77 WHERE handle = 1",
    "UPDATE docs_rows SET id = x'FF', payload = x'FF' WHERE handle = 1",
    "DROP TABLE docs_rows",
    "DROP TABLE docs_vectors",
    "DROP TABLE docs_removed",
    "UPDATE docs_fts_data SET block = x'00'",
    "DELETE FROM docs_fts_data",
    "DELETE FROM docs_fts_docsize",
    "DELETE FROM docs_fts_content",
    "UPDATE docs_fts_content SET c0 = x'ff00'",
    "DROP TABLE docs_fts_content",
    "DROP TABLE docs_vectors; CREATE VIEW docs_vectors AS SELECT 1 AS place, 1 AS handle, x'00' AS vector",
    "DELETE FROM warpwave_collections",
    "DROP TABLE warpwave_collections",
    "UPDATE warpwave_collections SET dim = -1",
    "UPDATE warpwave_collections SET dim = 3",
    "UPDATE warpwave_collections SET metric = 'nonsense'",
    "UPDATE warpwave_collections SET type = 'nonsense'",
    "UPDATE warpwave_collections SET next_place = 0, next_handle = 0, sequence = 0",
    "UPDATE warpwave_collections SET next_place = 9223372036854775807, sequence = 9223372036854775807",
};

static void tables_that_were_edited_are_refused_and_can_be_dropped(void **state)
{
    (void)state;
    static const char *const uses[] = {
        "SELECT id, payload, vector FROM docs WHERE vector MATCH '[0,0]' AND k = 9",
        "SELECT id FROM docs WHERE vector MATCH '[0,0]' ORDER BY distance",
        "SELECT id, vector FROM docs",
        "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 9 AND filter = 'payload IS NULL'",
        "INSERT INTO docs(id, vector) VALUES ('new', '[1,1]')",
        "SELECT id, text FROM hybrid('docs', '[0,0]', 'fox', 2)",
        "UPDATE docs SET vector = '[3,3]'",
        "UPDATE docs SET text = 'cat'",
        "DELETE FROM docs WHERE rowid = 1",
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        for (int again = 0; again < 2; again++) { /* on the connection that has the rows in memory, and on a new one */
            char name[32];
            snprintf(name, sizeof name, "edited%zu%d.db", i, again);
            sqlite3 *db = open_linked(scratch_path(name));
            assert_int_equal(run_steps(db, 1), SQLITE_OK);
            sql_run(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 1");
            sql_run(db, edits[i]);
            if (again) {
                sqlite3_close(db);
                db = open_linked(scratch_path(name));
            }
            for (size_t use = 0; use < sizeof uses / sizeof *uses; use++) {
                const int code = sqlite3_exec(db, uses[use], NULL, NULL, NULL); /* an answer or an error, never a crash */
                assert_true(code == SQLITE_OK || sqlite3_errmsg(db)[0] != '\0');
            }
            if (strstr(edits[i], "CREATE VIEW"))
                sql_run(db, "DROP VIEW docs_vectors");
            if (sqlite3_exec(db, "DROP TABLE docs", NULL, NULL, NULL) != SQLITE_OK)
                fail_msg("%s: then the table cannot be dropped: %s", edits[i], ww_error_message());
            sql_gives(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'docs%'", "0");
            sqlite3_close(db);
        }
}

static void a_newer_format_is_refused_with_both_numbers(void **state)
{
    (void)state;
    sqlite3 *db = open_linked(scratch_path("newer.db"));
    assert_int_equal(run_steps(db, 1), SQLITE_OK);
    sql_run(db, "UPDATE warpwave_collections SET format = 7");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 9", "7");
    sql_fails(db, "INSERT INTO docs(vector) VALUES ('[1,1]')", "7");
    sql_fails(db, "DROP TABLE docs", "error"); /* SQLite passes no text on from there */
    sql_gives(db, "SELECT count(*) FROM docs_rows", "2");
    sqlite3_close(db);
}

static void names_with_quotes_are_only_names(void **state)
{
    (void)state;
    static const char *const names[] = {"a\"b",  "it's", "x; DROP TABLE safe; --", "[brackets]", "%s%n", "\xc3\xa9\xe2\x82\xac",
                                        "select"};
    sqlite3 *db = open_linked(":memory:");
    sql_run(db, "CREATE TABLE safe(x)");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *create = sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\" USING warpwave(dim=1, metric=l2, device=cpu)", names[i]);
        char *insert =
            sqlite3_mprintf("INSERT INTO \"%w\"(id, vector, payload) VALUES ('a', '[1]', '1'), ('b', '[2]', '2')", names[i]);
        char *query = sqlite3_mprintf("SELECT id FROM \"%w\" WHERE vector MATCH '[0]' AND k = 5 AND filter = 'payload = ''2'''",
                                      names[i]);
        char *change =
            sqlite3_mprintf("UPDATE \"%w\" SET id = 'c' WHERE id = 'b'; DELETE FROM \"%w\" WHERE id = 'a'", names[i], names[i]);
        char *drop = sqlite3_mprintf("DROP TABLE \"%w\"", names[i]);
        sql_run(db, create);
        sql_run(db, insert);
        sql_gives(db, query, "b");
        sql_run(db, change);
        sql_gives(db, query, "c");
        sql_run(db, drop);
        sqlite3_free(create), sqlite3_free(insert), sqlite3_free(query), sqlite3_free(change), sqlite3_free(drop);
    }
    sql_gives(db, "SELECT group_concat(name) FROM sqlite_schema WHERE name NOT LIKE 'warpwave%' AND name NOT LIKE 'sqlite%'",
              "safe");
    sqlite3_close(db);
}

static int calls;

static int host_authorizer(void *user, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)a, (void)b, (void)c, (void)d;
    calls++;
    return action == *(const int *)user ? SQLITE_DENY : SQLITE_OK;
}

static int host_progress(void *user)
{
    ++*(int *)user;
    return 0;
}

static void authorizer_and_progress_handler_of_the_host_stay(void **state)
{
    (void)state;
    sqlite3 *db = open_linked(":memory:");
    int denied = SQLITE_ATTACH, progress = 0;
    assert_int_equal(run_steps(db, 1), SQLITE_OK);
    sqlite3_set_authorizer(db, host_authorizer, &denied);
    sqlite3_progress_handler(db, 1, host_progress, &progress);
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 9 AND filter = 'id = ''b'''", "b");
    calls = progress = 0;
    sql_fails(db, "ATTACH ':memory:' AS x", "not authorized");
    sql_gives(db, "SELECT 1", "1");
    assert_true(calls > 0);
    assert_true(progress > 0);
    sqlite3_close(db);
}

static void a_defensive_connection_cannot_edit_the_tables_behind(void **state)
{
    (void)state;
    sqlite3 *db = open_linked(":memory:");
    assert_int_equal(run_steps(db, 1), SQLITE_OK);
    assert_int_equal(sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL), SQLITE_OK);
    sql_fails(db, "DELETE FROM docs_rows", "may not be modified");
    sql_fails(db, "UPDATE docs_vectors SET vector = x'00'", "may not be modified");
    sql_run(db, "INSERT INTO docs(id, vector) VALUES ('c', '[3,3]')");
    sql_gives(db, "SELECT count(*) FROM docs_rows", "3");
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_the_library_fails_once),
        cmocka_unit_test(every_allocation_of_sqlite_fails_once),
        cmocka_unit_test(tables_that_were_edited_are_refused_and_can_be_dropped),
        cmocka_unit_test(a_newer_format_is_refused_with_both_numbers),
        cmocka_unit_test(names_with_quotes_are_only_names),
        cmocka_unit_test(authorizer_and_progress_handler_of_the_host_stay),
        cmocka_unit_test(a_defensive_connection_cannot_edit_the_tables_behind),
    };
    setenv("WARPWAVE_DEVICE", "cpu", 1); /* hundreds of devices are opened, and a GPU takes half a second each time */
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
