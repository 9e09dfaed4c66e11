/* Harmful SQL, intended or not: rowids at the end of their range, triggers, views and foreign keys on the tables of a
 * collection, filters that read other tables. Nothing crashes, nothing is lost, and the message says what to do.
 */
#include "store/sqlite/sql.h"

#include <warpwave/store.h>

#include "support/command.h"
#include "support/scratch.h"

#define SEARCH "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 10"

static sqlite3 *new_docs(const char *path)
{
    sqlite3 *db = sql_open(path);
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=l2, device=cpu);" SQL_FROM_0
                "INSERT INTO docs(id, vector) VALUES ('a', '[0,0]'), ('b', '[1,0]'), ('c', '[0,2]')");
    return db;
}

static void a_rowid_that_leaves_no_room_is_refused(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(scratch_path("rowid.db"));
    static const char *const refused[] = {"9223372036854775807", "9223372036854775806", "4611686018427387904"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        for (int replace = 0; replace < 2; replace++) {
            char *sql = sqlite3_mprintf("%s INTO docs(rowid, id, vector) VALUES (%s, 'b', '[1,2]')",
                                        replace ? "REPLACE" : "INSERT", refused[i]);
            sql_fails(db, sql, "leaves too few numbers for later rows");
            sqlite3_free(sql);
        }
    sql_gives(db, SEARCH, "a b c");
    sql_run(db,
            "INSERT INTO docs(rowid, vector) VALUES (4611686018427387903, '[9,9]'); INSERT INTO docs(vector) VALUES ('[8,8]')");
    sql_gives(db, "SELECT max(rowid) FROM docs", "4611686018427387904");
    sql_run(db,
            "UPDATE warpwave_collections SET next_handle = 9223372036854775806"); /* as an older version would have left it */
    sql_run(db, "INSERT INTO docs(vector) VALUES ('[7,7]')");
    sql_fails(db, "INSERT INTO docs(vector) VALUES ('[7,7]')", "all handles have been given");
    sql_gives(db, SEARCH, "a b c 9223372036854775806 4611686018427387904 4611686018427387903");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A refused statement has changed nothing, even if the transaction continues. */
static void a_refused_replacement_takes_no_row_away(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(":memory:");
    sql_run(db, "DELETE FROM docs WHERE rowid = 1; BEGIN");
    sql_fails(db, "REPLACE INTO docs(rowid, id, vector) VALUES (1, 'c', '[1,1]')", "was given before");
    sql_run(db, "COMMIT");
    sql_gives(db, SEARCH, "a c");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static const char *const TRIGGERS[] = {
    "CREATE TRIGGER tr AFTER DELETE ON docs_rows BEGIN DELETE FROM docs WHERE rowid = old.handle + 1; END",
    "CREATE TRIGGER tr BEFORE INSERT ON docs_rows BEGIN INSERT INTO docs(vector) VALUES ('[5,5]'); END",
    "CREATE TRIGGER tr AFTER INSERT ON docs_vectors BEGIN UPDATE docs SET payload = '1'; END",
    "CREATE TRIGGER tr AFTER INSERT ON DOCS_REMOVED BEGIN DELETE FROM docs_vectors; END",
    "CREATE TRIGGER tr AFTER UPDATE ON warpwave_collections BEGIN INSERT INTO docs(vector) VALUES ('[6,6]'); END",
    "CREATE TEMP TRIGGER tr AFTER DELETE ON docs_rows BEGIN DELETE FROM docs; END",
    "CREATE TEMP TRIGGER tr AFTER UPDATE ON main.warpwave_collections BEGIN DELETE FROM docs_rows; END",
};

static void a_trigger_on_the_tables_behind_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof TRIGGERS / sizeof *TRIGGERS; i++)
        for (int late = 0; late < 3; late++) { /* before the transaction, in it, in it after a change */
            sqlite3 *db = new_docs(":memory:");
            if (late)
                sql_run(db, "BEGIN");
            if (late == 2)
                sql_run(db, "INSERT INTO docs(id, vector) VALUES ('d', '[0,3]'); DELETE FROM docs WHERE id = 'd'");
            sql_run(db, TRIGGERS[i]);
            char *message = NULL;
            int code = sqlite3_exec(db, "INSERT INTO docs(id, vector) VALUES ('e', '[0,3]')", NULL, NULL, &message);
            if (code == SQLITE_OK) { /* the trigger is on another kind of change, which comes next */
                sqlite3_free(message);
                message = NULL;
                assert_int_equal(late, 2);
                code = sqlite3_exec(db, "DELETE FROM docs WHERE id = 'a'", NULL, NULL, &message);
            }
            if (code == SQLITE_OK || !message || (!strstr(message, "trigger")))
                fail_msg("%s, %d: code %d, %s", TRIGGERS[i], late, code, message ? message : "");
            sqlite3_free(message);
            if (!sqlite3_get_autocommit(db))
                sql_run(db, "ROLLBACK");
            sql_run(db, "DROP TRIGGER IF EXISTS tr");
            sql_gives(db, SEARCH, "a b c");
            sql_run(db, "INSERT INTO docs(id, vector) VALUES ('f', '[0,0.5]')");
            sql_gives(db, SEARCH, "a f b c");
            sql_gives(db, "SELECT live FROM warpwave_collections", "4");
            assert_int_equal(sqlite3_close(db), SQLITE_OK);
        }
}

/* Uncommitted changes must never reach the copy in memory that other connections search. */
static void a_refused_rename_does_not_show_uncommitted_rows_to_others(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(scratch_path("rename.db")), *other = sql_open(scratch_path("rename.db"));
    sql_gives(other, SEARCH, "a b c");
    sql_run(db, "BEGIN; INSERT INTO docs(id, vector) VALUES ('p', '[0,0.1]');"
                "CREATE TRIGGER t AFTER UPDATE ON warpwave_collections BEGIN SELECT 1; END");
    sql_fails(db, "ALTER TABLE docs RENAME TO papers", "trigger 't'");
    sql_run(db, "DROP TRIGGER t");
    sql_gives(db, SEARCH, "a p b c");
    sql_run(db, "ROLLBACK; INSERT INTO docs(id, vector) VALUES ('q', '[0,9]')"); /* with the sequence that p had */
    sql_gives(other, SEARCH, "a b c q");
    sql_gives(db, SEARCH, "a b c q");
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_foreign_key_that_leads_back_to_the_table_is_refused(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(":memory:");
    sql_run(db, "PRAGMA foreign_keys = ON; CREATE TABLE child(h INTEGER REFERENCES docs_rows(handle) ON DELETE CASCADE);"
                "INSERT INTO child VALUES (1); CREATE TRIGGER back AFTER DELETE ON child BEGIN DELETE FROM docs; END");
    assert_int_equal(
        sql_fails(db, "DELETE FROM docs WHERE rowid = 1",
                  "docs: a trigger, a foreign key action or a view uses the table while its own tables are read or "
                  "written; drop it"),
        SQLITE_ERROR);
    sql_gives(db, SEARCH, "a b c");
    sql_gives(db, "SELECT count(*) FROM child", "1");
    sql_run(db, "DELETE FROM docs WHERE rowid = 2"); /* it has no child */
    sql_run(db, "INSERT INTO docs(id, vector) VALUES ('c', '[0,2]')");
    sql_run(db, "DROP TRIGGER back; DELETE FROM docs WHERE rowid = 1");
    sql_gives(db, SEARCH, "a c");
    sql_gives(db, "SELECT count(*) FROM child", "0");
    sql_run(db, "INSERT INTO child VALUES (0); CREATE TRIGGER back AFTER DELETE ON child WHEN 0 BEGIN DELETE FROM docs; END;"
                "DELETE FROM docs WHERE rowid = 0"); /* the program is in our statement, and does nothing */
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_view_in_the_place_of_a_table_is_refused(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(":memory:");
    sql_gives(db, SEARCH, "a b c");
    sql_run(db, "ALTER TABLE docs_rows RENAME TO hidden;"
                "CREATE VIEW docs_rows AS SELECT h.* FROM hidden h, docs d WHERE d.rowid = h.handle");
    sql_fails(db, "SELECT id FROM docs", "uses the table while");
    sql_fails(db, SEARCH, "uses the table while");
    sql_run(db, "DROP VIEW docs_rows; CREATE VIEW docs_rows AS SELECT * FROM hidden WHERE 0 OR handle <> -7");
    sql_fails(db, "SELECT id FROM docs", "docs_rows is a view");
    sql_fails(db, "DELETE FROM docs WHERE rowid = 1", "");
    sql_fails(db, "INSERT INTO docs(vector) VALUES ('[1,1]')", "docs_rows is a view");
    sql_run(db, "DROP VIEW docs_rows; ALTER TABLE hidden RENAME TO docs_rows");
    sql_gives(db, SEARCH, "a b c");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The library's own connections run neither: a file is data. */
static void a_file_with_triggers_and_views_runs_none_of_them(void **state)
{
    (void)state;
    const char *path = scratch_path("triggers.db");
    sqlite3 *db = new_docs(path);
    sql_run(db, "CREATE TABLE told(what);"
                "CREATE TRIGGER t1 AFTER DELETE ON docs_rows BEGIN INSERT INTO told VALUES ('deleted'); DELETE FROM docs; END;"
                "CREATE TRIGGER t2 AFTER INSERT ON docs_vectors BEGIN DELETE FROM docs_vectors; END;"
                "CREATE TRIGGER t3 AFTER UPDATE ON warpwave_collections BEGIN DELETE FROM docs; END;"
                "CREATE VIEW seen AS SELECT * FROM docs");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    ww_device *cpu = NULL;
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    CHECK_OK(ww_store_open(path, cpu, NULL, &store));
    CHECK_OK(ww_store_collection(store, "docs", &docs));
    CHECK_OK(ww_collection_remove(docs, (const char *const[]){"b"}, 1));
    const float more[2] = {3.0f, 3.0f};
    ww_rows rows = ww_rows_default();
    rows.vectors = more, rows.count = 1, rows.dim = 2, rows.ids = (const char *const[]){"d"};
    CHECK_OK(ww_collection_add(docs, &rows));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_collection_destroy(docs);
    ww_store_close(store);
    ww_device_close(cpu);
    db = sql_open(path);
    sql_gives(db, "SELECT count(*) FROM told", "0");
    sql_gives(db, SEARCH, "a c d");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A collection with an invalid entry does not affect the others. */
static void a_damaged_collection_does_not_affect_the_others(void **state)
{
    (void)state;
    const char *path = scratch_path("damaged.db");
    sqlite3 *db = new_docs(path);
    sql_run(db, "CREATE VIRTUAL TABLE bad USING warpwave(dim=3); CREATE VIRTUAL TABLE zoo USING warpwave(dim=1);"
                "UPDATE warpwave_collections SET next_handle = -9223372036854775808 WHERE name = 'bad'");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    ww_device *cpu = NULL;
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    ww_results *list = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    CHECK_OK(ww_store_open(path, cpu, NULL, &store));
    CHECK_OK(ww_store_collection(store, "docs", &docs));
    CHECK_OK(ww_collection_remove(docs, (const char *const[]){"b"}, 1));
    CHECK_FAILS(WW_CORRUPT_FILE, ww_store_collection(store, "bad", &docs));
    CHECK_OK(ww_store_list(store, &list));
    assert_int_equal(ww_results_count(list, 0), 3);
    assert_string_equal(ww_results_id(list, 0, 0), "bad");
    assert_string_equal(ww_results_payload(list, 0, 0), "{\"error\":\"its entry in warpwave_collections is invalid\"}");
    assert_string_equal(ww_results_payload(list, 0, 2),
                        "{\"dim\":1,\"metric\":\"cosine\",\"type\":\"f32\",\"rows\":0,\"format\":3}");
    ww_results_destroy(list);
    CHECK_FAILS(WW_CORRUPT_FILE, ww_store_check(store, NULL, NULL));
    assert_non_null(strstr(ww_error_message(), "1 fault: collection 'bad'"));
    ww_collection_destroy(docs);
    command_result listed = COMMAND_RUN("store", "list", path);
    assert_int_equal(listed.code, 3);
    assert_non_null(strstr(listed.out, "docs"));
    assert_non_null(strstr(listed.out, "damaged       -  -       -     bad"));
    assert_non_null(strstr(listed.out, "zoo"));
    assert_non_null(strstr(listed.err, "collection 'bad': its entry in warpwave_collections is invalid"));
    command_free(&listed);
    listed = COMMAND_RUN("store", "list", path, "--json");
    assert_int_equal(listed.code, 3);
    json_t *value = /* the failure follows as an object */
        json_loads(listed.out, JSON_DISABLE_EOF_CHECK, NULL);
    assert_int_equal(json_array_size(value), 3);
    json_decref(value);
    command_free(&listed);
    COMMAND_SAYS(3, "collection 'bad'", "store", "check", path);
    CHECK_OK(ww_store_drop(store, "bad"));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_store_close(store);
    ww_device_close(cpu);
}

/* A filter of a collection in an attached file reads that collection's rows, whatever names other tables have. */
static void a_filter_reads_its_own_rows_only(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(scratch_path("filter_main.db"));
    char *attach = sqlite3_mprintf("ATTACH %Q AS other", scratch_path("filter_other.db"));
    sql_run(db, attach);
    sqlite3_free(attach);
    sql_run(db, "CREATE VIRTUAL TABLE other.docs USING warpwave(dim=2, metric=l2, device=cpu);"
                "INSERT INTO other.docs(id, vector) VALUES ('x', '[0,0]'), ('y', '[1,1]')");
#define OTHER "SELECT id FROM other.docs WHERE vector MATCH '[0,0]' AND k = 9 AND filter = "
    sql_gives(db, OTHER "'(SELECT count(*) FROM docs_rows) = 2'", "x y");
    sql_gives(db, OTHER "'(SELECT count(*) FROM docs_rows r WHERE r.id >= docs_rows.id) = 1'", "y");
    sql_gives(db, OTHER "'EXISTS (SELECT id FROM docs_rows WHERE id = ''a'')'", "");
    sql_fails(db, OTHER "'EXISTS (SELECT 1 FROM main.docs_rows WHERE id = ''a'')'", "no such table");
    sql_fails(db, OTHER "'EXISTS (SELECT 1 FROM other.docs_rows)'", "no such table");
    sql_run(
        db,
        "CREATE TEMP TABLE docs_rows(handle, place, id, payload); INSERT INTO temp.docs_rows VALUES (1, 1, 'secret', NULL)");
    sql_gives(db, OTHER "'EXISTS (SELECT id FROM docs_rows WHERE id = ''secret'')'", "");
    sql_fails(db, OTHER "'EXISTS (SELECT 1 FROM temp.docs_rows)'", "no such table");
    sql_gives(db, OTHER "'EXISTS (SELECT 1 FROM json_each(''[1,2]'') WHERE value = 2)'", "x y");
    static const char *const impostors[] = {"main", "other", "temp"};
    for (int i = 0; i < 3; i++) {
        char *create = sqlite3_mprintf("CREATE TABLE %s.JSON_EACH(value); INSERT INTO %s.json_each VALUES ('secret')",
                                       impostors[i], impostors[i]);
        char *drop = sqlite3_mprintf("DROP TABLE %s.json_each", impostors[i]);
        sql_run(db, create);
        sql_fails(db, OTHER "'EXISTS (SELECT 1 FROM json_each WHERE value = ''secret'')'", "is called json_each");
        sql_fails(db, OTHER "'EXISTS (SELECT 1 FROM \"json_each\" WHERE value = ''secret'')'", "is called json_each");
        sql_gives(db, OTHER "'id = ''y'''", "y");
        sql_run(db, drop);
        sqlite3_free(create), sqlite3_free(drop);
    }
    sql_gives(db, OTHER "'EXISTS (SELECT 1 FROM json_each(''[1,2]'') WHERE value = 2)'", "x y");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static char logged[512];

static void keep_logged(void *user, int code, const char *message)
{
    (void)user, (void)code;
    if (strstr(message, "docs: "))
        snprintf(logged, sizeof logged, "%s", message);
}

/* SQLite takes no message from a table that cannot be dropped, so its log has it. */
static void a_table_that_cannot_be_dropped_says_why_in_the_log(void **state)
{
    (void)state;
    sqlite3 *db = sql_open(":memory:");
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2); INSERT INTO docs(vector) VALUES('[1,2]');"
                "ALTER TABLE docs_rows RENAME TO hidden; CREATE VIEW docs_rows AS SELECT * FROM hidden");
    logged[0] = '\0';
    sql_fails(db, "DROP TABLE docs", "");
    assert_non_null(strstr(logged, "DROP VIEW"));
    sql_run(db, "DROP VIEW docs_rows; ALTER TABLE hidden RENAME TO docs_rows; DROP TABLE docs");
    sqlite3_close(db);
}

int main(void)
{
    sqlite3_config(SQLITE_CONFIG_LOG, keep_logged, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rowid_that_leaves_no_room_is_refused),
        cmocka_unit_test(a_table_that_cannot_be_dropped_says_why_in_the_log),
        cmocka_unit_test(a_refused_replacement_takes_no_row_away),
        cmocka_unit_test(a_trigger_on_the_tables_behind_is_refused),
        cmocka_unit_test(a_refused_rename_does_not_show_uncommitted_rows_to_others),
        cmocka_unit_test(a_foreign_key_that_leads_back_to_the_table_is_refused),
        cmocka_unit_test(a_view_in_the_place_of_a_table_is_refused),
        cmocka_unit_test(a_file_with_triggers_and_views_runs_none_of_them),
        cmocka_unit_test(a_damaged_collection_does_not_affect_the_others),
        cmocka_unit_test(a_filter_reads_its_own_rows_only),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
