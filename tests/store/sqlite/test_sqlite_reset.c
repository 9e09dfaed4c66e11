/* SQLite reads its schema again, or connects a table a second time, in the middle of a transaction: the rows written before and
 * after that, through any table object, equal those of a plain table with the same changes. */
#include "store/sqlite/sql.h"

#include <stdio.h>
#include <unistd.h>

#include <warpwave/store.h>

#include "support/scratch.h"

/* Statements of a host; each may fail. */
static const char *const STATEMENTS[] = {
    "SELECT 1",
    "ATTACH '/nonexistent/folder/x.db' AS broken",
    "ATTACH 'GARBAGE' AS broken",
    "ATTACH ':memory:' AS extra",
    "DETACH extra",
    "DETACH nothing",
    "PRAGMA schema_version = 4711",
    "PRAGMA writable_schema = reset",
    "PRAGMA writable_schema = on",
    "PRAGMA writable_schema = off",
    "PRAGMA encoding = 'UTF-16'",
    "PRAGMA journal_mode = wal",
    "PRAGMA foreign_keys = on",
    "PRAGMA integrity_check",
    "PRAGMA temp_store = memory",
    "PRAGMA trusted_schema = off",
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "CREATE TABLE fresh(x); INSERT INTO fresh VALUES (1); DROP TABLE fresh",
    "CREATE TEMP TABLE fresh(x); DROP TABLE fresh",
    "CREATE INDEX on_payload ON docs_rows(payload)",
    "CREATE VIEW seen AS SELECT id FROM docs; DROP VIEW seen",
    "CREATE TEMP VIEW seen AS SELECT id FROM docs; SELECT * FROM seen; DROP VIEW seen",
    "ALTER TABLE plain RENAME TO simple; ALTER TABLE simple RENAME TO plain",
    "ALTER TABLE plain ADD COLUMN y DEFAULT 3",
    "ALTER TABLE plain RENAME COLUMN x TO z; ALTER TABLE plain RENAME COLUMN z TO x",
    "ALTER TABLE docs RENAME TO papers; ALTER TABLE papers RENAME TO docs",
    "CREATE VIRTUAL TABLE docs USING warpwave(dim=2)",
    "CREATE VIRTUAL TABLE second USING warpwave(dim=2); INSERT INTO second(vector) VALUES ('[1,2]'); DROP TABLE second",
    "CREATE VIRTUAL TABLE temp.docs USING warpwave(dim=9); DROP TABLE temp.docs",
    "CREATE TABLE docs_rows(x)",
    "CREATE TABLE plain(x)",
    "INSERT INTO docs(id, vector) VALUES ('a', 'no vector')",
    "INSERT INTO nowhere VALUES (1)",
    "SELECT count(*) FROM docs JOIN plain",
    "CREATE TRIGGER t AFTER INSERT ON plain BEGIN DELETE FROM plain; END; DROP TRIGGER t",
    "EXTENSION", /* loads it once more */
};
enum { STATEMENT_COUNT = sizeof STATEMENTS / sizeof *STATEMENTS };

static ww_device *cpu;

typedef enum ending { COMMIT, ROLLBACK, ENDINGS } ending;
typedef enum savepoint { NO_SAVEPOINT, RELEASED, GONE_BACK_TO, SAVEPOINTS } savepoint;

typedef struct scenario {
    sqlite3 *db, *model;
    const char *statement;
    char what[300]; /* for messages */
} scenario;

/* On the virtual table, and on the plain table of the same name. */
static void both(const scenario *s, const char *sql)
{
    sqlite3 *const dbs[] = {s->db, s->model};
    for (int i = 0; i < 2; i++) {
        char *message = NULL;
        if (sqlite3_exec(dbs[i], sql, NULL, NULL, &message) != SQLITE_OK)
            fail_msg("%s: %s %s: %s", s->what, i ? "model:" : "", sql, message ? message : "");
    }
}

static void disturb(const scenario *s)
{
    if (strcmp(s->statement, "EXTENSION") == 0) {
        assert_int_equal(sqlite3_load_extension(s->db, EXTENSION_PATH, NULL, NULL), SQLITE_OK);
        return;
    }
    char sql[1024];
    const char *garbage = strstr(s->statement, "GARBAGE");
    if (garbage)
        snprintf(sql, sizeof sql, "ATTACH '%s' AS broken", scratch_path("garbage"));
    else
        snprintf(sql, sizeof sql, "%s", s->statement);
    (void)sqlite3_exec(s->db, sql, NULL, NULL, NULL);
}

static void same(const scenario *s, sqlite3 *db, const char *when)
{
    static const char *const questions[][2] = {
        {"SELECT id, ww_to_json(vector), payload FROM docs ORDER BY id", "SELECT id, vector, payload FROM docs ORDER BY id"},
        {"SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 100",
         "SELECT id FROM docs ORDER BY abs(CAST(vector ->> '$[0]' AS REAL))"},
        {"SELECT count(*) FROM main.docs_vectors WHERE place NOT IN (SELECT place FROM main.docs_removed)",
         "SELECT count(*) FROM docs"},
        {"SELECT live FROM main.warpwave_collections WHERE name = 'docs'", "SELECT count(*) FROM docs"},
    };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        char *found = sql_text(db, questions[i][0]), *expected = sql_text(s->model, questions[i][1]);
        if (!found || !expected || strcmp(found, expected) != 0)
            fail_msg("%s, %s: %s\n    gives \"%s\"\n    not   \"%s\"", s->what, when, questions[i][0],
                     found ? found : sqlite3_errmsg(db), expected);
        free(found), free(expected);
    }
}

static void run(scenario *s, savepoint how, ending end)
{
    both(s, "INSERT INTO docs(id, vector, payload) VALUES ('a', '[1,0]', '1'), ('b', '[2,0]', NULL), ('c', '[3,0]', '[]'), "
            "('d', '[4,0]', NULL), ('e', '[5,0]', NULL)");
    same(s, s->db, "at first");
    both(s, "BEGIN");
    both(s, "INSERT INTO docs(id, vector) VALUES ('p', '[6,0]'), ('q', '[7,0]')");
    disturb(s);
    both(s, "INSERT INTO docs(id, vector) VALUES ('r', '[0.5,0]')");
    both(s, "DELETE FROM docs WHERE id = 'a'");
    both(s, "UPDATE docs SET vector = '[9,0]' WHERE id = 'b'");
    same(s, s->db, "after the statement");
    if (how != NO_SAVEPOINT) {
        both(s, "SAVEPOINT one");
        both(s, "INSERT INTO docs(id, vector) VALUES ('s', '[0.25,0]')");
        disturb(s);
        both(s, "DELETE FROM docs WHERE id IN ('q', 's')");
        both(s, "INSERT INTO docs(id, vector) VALUES ('t', '[8,0]')");
        same(s, s->db, "in the savepoint");
        both(s, how == RELEASED ? "RELEASE one" : "ROLLBACK TO one");
        same(s, s->db, "after the savepoint");
        both(s, "INSERT INTO docs(id, vector) VALUES ('u', '[0.75,0]'), ('v', '[11,0]'), ('w', '[12,0]')");
        same(s, s->db, "after more rows");
    }
    disturb(s);
    both(s, "UPDATE docs SET payload = '2', id = 'E' WHERE id = 'e'");
    both(s, end == COMMIT ? "COMMIT" : "ROLLBACK");
    same(s, s->db, "at the end");
    both(s, "INSERT INTO docs(id, vector) VALUES ('y', '[20,0]')");
    disturb(s);
    both(s, "DELETE FROM docs WHERE id = 'd'");
    same(s, s->db, "afterwards");
}

static void check_file(const scenario *s, const char *path)
{
    ww_store *store = NULL;
    ww_store_config config = ww_store_config_default();
    config.read_only = 1;
    CHECK_OK(ww_store_open(path, cpu, &config, &store));
    if (ww_store_check(store, NULL, NULL) != WW_OK)
        fail_msg("%s: %s", s->what, ww_error_message());
    ww_store_close(store);
    sqlite3 *again = sql_open(path);
    same(s, again, "in the file");
    sqlite3_close(again);
}

static void a_new_schema_in_a_transaction_loses_nothing(void **state)
{
    (void)state;
    FILE *garbage = fopen(scratch_path("garbage"), "w");
    assert_non_null(garbage);
    for (int i = 0; i < 200; i++)
        fputs("this is no database ", garbage);
    fclose(garbage);
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int i = 0; i < STATEMENT_COUNT; i++)
        for (savepoint how = NO_SAVEPOINT; how < SAVEPOINTS; how++)
            for (ending end = COMMIT; end < ENDINGS; end++) {
                char name[64];
                scenario s = {.statement = STATEMENTS[i]};
                snprintf(s.what, sizeof s.what, "%s (savepoint %d, end %d)", STATEMENTS[i], (int)how, (int)end);
                snprintf(name, sizeof name, "reset%d-%d-%d.db", i, (int)how, (int)end);
                char *path = strdup(scratch_path(name));
                s.db = sql_open(path);
                assert_int_equal(sqlite3_open(":memory:", &s.model), SQLITE_OK);
                sql_run(s.db, "PRAGMA synchronous = off; PRAGMA journal_mode = memory; CREATE TABLE plain(x);"
                              "INSERT INTO plain VALUES (1);"
                              "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=l2, device=cpu);" SQL_FROM_0);
                sql_run(s.model, "CREATE TABLE docs(id TEXT PRIMARY KEY, vector TEXT, payload TEXT)");
                run(&s, how, end);
                assert_int_equal(sqlite3_close(s.db), SQLITE_OK);
                check_file(&s, path);
                sqlite3_close(s.model);
                unlink(path);
                free(path);
            }
    ww_device_close(cpu);
}

/* A function of the host's that resets the schema and writes while a statement of the table is at its rows. */
static void meddle(sqlite3_context *context, int count, sqlite3_value **values)
{
    sqlite3 *db = sqlite3_context_db_handle(context);
    (void)count, (void)values;
    (void)sqlite3_exec(db, "ATTACH '/nonexistent/folder/x.db' AS broken", NULL, NULL, NULL);
    (void)sqlite3_exec(db, "INSERT INTO docs(vector) VALUES ('[100,0]')", NULL, NULL, NULL);
    sqlite3_result_text(context, "[50,0]", -1, SQLITE_STATIC);
}

static void a_second_object_may_write_between_the_rows_of_a_statement(void **state)
{
    (void)state;
    sqlite3 *db = sql_open(scratch_path("meddle.db"));
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=l2, device=cpu);" SQL_FROM_0 "CREATE TABLE n(i);"
                "INSERT INTO n VALUES (1), (2), (3), (4)");
    sqlite3_create_function(db, "meddle", 1, SQLITE_UTF8, NULL, meddle, NULL, NULL);
    sql_run(db, "BEGIN; INSERT INTO docs(vector) SELECT meddle(i) FROM n; COMMIT");
    sql_gives(db, "SELECT count(*), count(DISTINCT rowid) FROM docs", "8|8");
    sql_gives(db, "SELECT group_concat(rowid) FROM docs WHERE vector MATCH '[50,0]' AND k = 4", "1,3,5,7");
    sql_gives(db, "SELECT live, next_handle, next_place FROM warpwave_collections", "8|8|8");
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_schema_in_a_transaction_loses_nothing),
        cmocka_unit_test(a_second_object_may_write_between_the_rows_of_a_statement),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
