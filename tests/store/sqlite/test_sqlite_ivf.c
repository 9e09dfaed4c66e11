/* The index in SQL: commands build, calibrate and drop it, nprobe and recall search by it, and it follows INSERT, UPDATE,
 * DELETE and ROLLBACK. */
#include <stdio.h>

#include "store/sqlite/sql.h"
#include "support/scratch.h"

static sqlite3 *db;
static char *path;

static int setup(void **state)
{
    scratch_setup(state);
    path = strdup(scratch_path("sql.db"));
    db = sql_open(path);
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=l2);" SQL_FROM_0);
    sql_run(db, "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 599) INSERT INTO docs(id, vector) "
                "SELECT 'd' || i, json_array(i % 8 * 100 + i * 7 % 11, i % 8 * 50 + i * 5 % 13) FROM n");
    return 0;
}

static int teardown(void **state)
{
    sqlite3_close(db);
    free(path);
    return scratch_teardown(state);
}

/* Is the index whole, and is reading all lists the exact search? */
static void check_index(void)
{
    sql_gives(db,
              "SELECT count(*) FROM docs_vectors AS v LEFT JOIN docs_ivf_rows AS r ON r.place = v.place WHERE r.list IS NULL "
              "AND v.place NOT IN (SELECT place FROM docs_removed)",
              "0");
    sql_gives(db, "SELECT count(*) FROM docs_ivf_rows WHERE place NOT IN (SELECT place FROM docs_vectors)", "0");
    sql_gives(db,
              "SELECT count(*) FROM docs_ivf_lists AS l WHERE rows <> (SELECT count(*) FROM docs_ivf_rows WHERE list = l.list)",
              "0");
    char *exact = sql_text(db, "SELECT rowid, score FROM docs WHERE vector MATCH '[203, 105]' AND k = 20");
    char *lists = sql_text(db, "SELECT rowid, score FROM docs WHERE vector MATCH '[203, 105]' AND k = 20 AND nprobe = 1000000");
    assert_non_null(exact);
    assert_non_null(lists);
    assert_string_equal(exact, lists);
    free(exact);
    free(lists);
}

static void a_command_builds_the_index(void **state)
{
    (void)state;
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND k = 3 AND nprobe = 2", "there is no index");
    sql_run(db, "INSERT INTO docs(docs) VALUES ('build-ivf nlist=8 seed=1 iterations=5')");
    sql_gives(db, "SELECT nlist, rows_trained FROM docs_ivf", "8|600");
    check_index();
    /* The clusters are far apart, so one list suffices to prove its hits. */
    sql_gives(
        db,
        "SELECT count(*), sum(proven), max(distance) < 20 FROM docs WHERE vector MATCH '[203, 105]' AND k = 5 AND nprobe = 1",
        "5|5|1");
    sql_gives(db, "SELECT sum(proven) FROM docs WHERE vector MATCH '[203, 105]' AND k = 5", "5");
    sql_gives(db, "SELECT proven FROM docs LIMIT 1", "");
    sql_gives(db,
              "SELECT count(*) FROM docs WHERE vector MATCH '[203, 105]' AND k = 9 AND nprobe = 1 AND filter = 'handle < 9'",
              "9");
    sql_run(db, "INSERT INTO docs(docs) VALUES ('build-ivf nlist=9')"); /* replaces the old index */
    sql_gives(db, "SELECT nlist FROM docs_ivf", "9");
    check_index();
    sql_run(db, "INSERT INTO docs(docs) VALUES (' drop-ivf ')");
    sql_gives(db, "SELECT (SELECT count(*) FROM docs_ivf) + (SELECT count(*) FROM docs_ivf_rows)", "0");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND k = 3 AND nprobe = 2", "there is no index");
    sql_fails(db, "INSERT INTO docs(docs) VALUES ('drop-ivf')", "no index");
}

static void a_calibration_lets_queries_ask_for_a_recall(void **state)
{
    (void)state;
    sql_run(db, "INSERT INTO docs(docs) VALUES ('build-ivf nlist=8')");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND k = 3 AND recall = 0.9", "not calibrated");
    sql_fails(db, "INSERT INTO docs(docs) VALUES ('calibrate recall=1.5')", "recall is 1.5");
    sql_run(db, "INSERT INTO docs(docs) VALUES ('calibrate k=5 queries=400 recall=0.9')");
    sql_gives(db, "SELECT calibration_k, calibration_queries FROM docs_ivf", "5|400");
    sql_gives(db, "SELECT count(*) FROM docs WHERE vector MATCH '[3, 5]' AND k = 3 AND recall = 0.9", "3");
}

static void nonsensical_arguments_are_refused(void **state)
{
    static const struct {
        const char *sql, *reason;
    } cases[] = {
        {"INSERT INTO docs(docs) VALUES ('built-ivf')", "not a command"},
        {"INSERT INTO docs(docs) VALUES ('')", "not a command"},
        {"INSERT INTO docs(docs) VALUES ('build-ivf lists=3')", "not a command"},
        {"INSERT INTO docs(docs) VALUES ('build-ivf nlist=x')", "whole number"},
        {"INSERT INTO docs(docs) VALUES ('build-ivf nlist=601')", "nlist is 601"},
        {"INSERT INTO docs(docs) VALUES ('drop-ivf nlist=3')", "not a command"},
        {"INSERT INTO docs(docs, id) VALUES ('drop-ivf', 'x')", "stands alone"},
        {"INSERT INTO docs(docs) VALUES ('calibrate')", "no index"},
        {"INSERT INTO docs(docs) VALUES ('calibrate recall=x')", "not a number"},
        {"INSERT INTO docs(vector, nprobe) VALUES ('[1, 2]', 3)", "nprobe cannot be written"},
        {"SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND nprobe = 2", "need k"},
        {"SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND k = 2 AND radius = 3 AND nprobe = 2", "no radius"},
        {"SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND k = 2 AND nprobe = 0", "1 or more"},
        {"SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND k = 2 AND recall = 2", "at most 1"},
        {"SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND k = 2 AND recall = 0.5 AND nprobe = 1", "both given"},
        {"SELECT id FROM docs WHERE nprobe = 2", "need a query"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        sql_fails(db, cases[i].sql, cases[i].reason);
}

static void the_index_follows_writes_by_sql(void **state)
{
    (void)state;
    sql_run(db, "INSERT INTO docs(docs) VALUES ('build-ivf nlist=8')");
    sql_run(db, "DELETE FROM docs WHERE rowid % 7 = 0");
    check_index();
    sql_run(db, "UPDATE docs SET vector = '[901, 902]' WHERE rowid % 7 = 1");
    check_index();
    sql_run(db, "INSERT OR REPLACE INTO docs(id, vector) VALUES ('d2', '[1, 1]'), ('new', '[2, 2]')");
    check_index();
    sql_run(db, "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 599) INSERT INTO docs(vector) "
                "SELECT json_array(i % 31, i % 37) FROM n");
    check_index();
    sql_gives(db, "SELECT nlist > 8, lists_split > 0 FROM docs_ivf", "1|1"); /* most rows came to one list */
    sql_gives(db, "PRAGMA integrity_check", "ok");
    sql_run(db, "ALTER TABLE docs RENAME TO others");
    sql_gives(db, "SELECT count(*) FROM others WHERE vector MATCH '[3, 5]' AND k = 3 AND nprobe = 2", "3");
    sql_run(db, "DROP TABLE others");
    sql_gives(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE '%ivf%'", "0");
}

static void a_transaction_sees_its_index_and_a_rollback_undoes_it(void **state)
{
    (void)state;
    sqlite3 *other = sql_open(path);
    sql_run(db, "BEGIN");
    sql_run(db, "INSERT INTO docs(id, vector) VALUES ('extra', '[203, 105]')");
    sql_run(db, "INSERT INTO docs(docs) VALUES ('build-ivf nlist=8')");
    check_index();
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH '[203, 105]' AND k = 1 AND nprobe = 1", "extra");
    sql_fails(other, "SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND k = 3 AND nprobe = 2", "there is no index");
    sql_run(db, "ROLLBACK");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND k = 3 AND nprobe = 2", "there is no index");
    sql_run(db, "INSERT INTO docs(docs) VALUES ('build-ivf nlist=8')");
    sql_gives(other, "SELECT count(*) FROM docs WHERE vector MATCH '[3, 5]' AND k = 3 AND nprobe = 2", "3");
    /* Uncommitted rows are found in addition to those in lists. */
    sql_run(db, "BEGIN");
    sql_run(db, "INSERT INTO docs(id, vector) VALUES ('extra', '[203.5, 105]')");
    sql_gives(db, "SELECT id, proven FROM docs WHERE vector MATCH '[203.5, 105]' AND k = 1 AND nprobe = 1", "extra|1");
    check_index();
    sql_run(db, "SAVEPOINT s");
    sql_run(db, "DELETE FROM docs WHERE rowid < 300");
    check_index();
    sql_run(db, "ROLLBACK TO s");
    check_index();
    sql_run(db, "INSERT INTO docs(docs) VALUES ('drop-ivf')");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[3, 5]' AND k = 3 AND nprobe = 2", "there is no index");
    sql_run(db, "ROLLBACK");
    check_index();
    sqlite3_close(other);
}

static void a_trigger_on_a_table_of_the_index_is_refused(void **state)
{
    (void)state;
    sql_run(db, "INSERT INTO docs(docs) VALUES ('build-ivf nlist=8')");
    sql_run(db, "CREATE TRIGGER t AFTER INSERT ON docs_ivf_rows BEGIN DELETE FROM docs_rows; END");
    sql_fails(db, "INSERT INTO docs(vector) VALUES ('[1, 2]')", "trigger");
    sql_run(db, "DROP TRIGGER t");
    sql_run(db, "INSERT INTO docs(vector) VALUES ('[1, 2]')");
    check_index();
}

static void a_table_with_the_name_of_a_column_has_no_commands(void **state)
{
    (void)state;
    sql_run(db, "CREATE VIRTUAL TABLE score USING warpwave(dim=1)");
    sql_run(db, "INSERT INTO score(vector) VALUES ('[1]')");
    sql_fails(db, "INSERT INTO score(score) VALUES ('build-ivf')", "cannot be written");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_builds_the_index, setup, teardown),
        cmocka_unit_test_setup_teardown(a_calibration_lets_queries_ask_for_a_recall, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsensical_arguments_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(the_index_follows_writes_by_sql, setup, teardown),
        cmocka_unit_test_setup_teardown(a_transaction_sees_its_index_and_a_rollback_undoes_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_trigger_on_a_table_of_the_index_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_table_with_the_name_of_a_column_has_no_commands, setup, teardown),
    };
    return cmocka_run_group_tests_name("sqlite: ivf", tests, NULL, NULL);
}
