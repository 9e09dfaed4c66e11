/* Sparse vectors in SQL: the column `sparse` of a collection's table, searches by it, and hybrid() with it. */
#include "store/sqlite/sql.h"

#include "support/scratch.h"

#define V(indices, values) "'{\"indices\": [" indices "], \"values\": [" values "]}'"

static sqlite3 *db;

static int setup(void **state)
{
    scratch_setup(state);
    db = sql_open(scratch_path("sparse.db"));
    sql_run(db, "PRAGMA synchronous = OFF"); /* no power fails here */
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=l2, device=cpu)");
    sql_run(db, "INSERT INTO docs(id, vector, payload, text, sparse) VALUES "
                "('a', '[1,0]', '{\"n\":1}', 'squirrel', " V(
                    "7,3", "2,0.1") "), "
                                    "('b', '[2,0]', '{\"n\":2}', 'boat', " V(
                                        "3", "1") "), "
                                                  "('c', '[3,0]', '{\"n\":3}', 'squirrel', " V(
                                                      "4294967295,7", "1,1") "), "
                                                                             "('d', '[4,0]', NULL, NULL, NULL)");
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return scratch_teardown(state);
}

static void a_sparse_vector_is_a_column_that_must_be_named(void **state)
{
    (void)state;
    sql_gives(db, "SELECT id, sparse FROM docs",
              "a|{\"indices\":[3,7],\"values\":[0.1,2]} b|{\"indices\":[3],\"values\":[1]} "
              "c|{\"indices\":[7,4294967295],\"values\":[1,1]} d|");
    sql_gives(db, "SELECT count(*) FROM pragma_table_info('docs')", "3"); /* SELECT * is unchanged */
    sql_gives(db, "SELECT sparse->>'$.indices[0]' FROM docs WHERE vector MATCH '[3,0]' AND k = 1", "7");
}

static void a_search_orders_by_the_dot_product(void **state)
{
    (void)state;
    sql_gives(db, "SELECT id, score, distance FROM docs WHERE sparse MATCH " V("7", "1") " AND k = 5", "a|2.0|-2.0 c|1.0|-1.0");
    sql_gives(db, "SELECT id, proven FROM docs WHERE sparse MATCH " V("7,3", "1,3") " AND k = 2", "b|1 a|1");
    sql_gives(db, "SELECT id FROM docs WHERE sparse MATCH " V("7", "1") " AND radius = -1.5", "a");
    sql_gives(db, "SELECT id FROM docs WHERE sparse MATCH " V("7", "1") " AND k = 5 AND score >= 1.5", "a");
    sql_gives(db, "SELECT id FROM docs WHERE sparse MATCH " V("7", "1") " AND k = 5 AND filter = 'payload->>''$.n'' > 1'", "c");
    sql_gives(db, "SELECT id FROM docs WHERE sparse MATCH " V("7", "1") " AND k = 5 AND rowid IN (2, 3)", "c");
    sql_gives(db, "SELECT id FROM docs WHERE sparse MATCH " V("7", "1") " ORDER BY score DESC LIMIT 1 OFFSET 1", "c");
    sql_gives(db, "SELECT count(*) FROM docs WHERE sparse MATCH " V("", "") " AND k = 5", "0");
    sql_gives(db, "SELECT count(*) FROM docs WHERE sparse MATCH " V("8", "1") " ORDER BY distance", "0");
}

/* By idf index 3, which two rows have, is worth less than index 4294967295, which one row has. */
static void the_modifier_multiplies_by_the_inverse_document_frequency(void **state)
{
    (void)state;
    static const char query[] = V("3,4294967295", "1.1,1");
    char text[512];
    snprintf(text, sizeof text, "SELECT id FROM docs WHERE sparse MATCH %s AND k = 1", query);
    sql_gives(db, text, "b");
    snprintf(text, sizeof text,
             "SELECT id, score = CAST(score AS REAL) FROM docs WHERE sparse MATCH %s AND k = 1 AND modifier = 'idf'", query);
    sql_gives(db, text, "c|1");
}

static void an_ordered_search_goes_on_until_all_rows_are_found(void **state)
{
    (void)state;
    sql_run(
        db,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) INSERT INTO docs(id, vector, sparse) "
        "SELECT 'n' || i, '[0,0]', json_object('indices', json_array(9), 'values', json_array(i)) FROM n");
    sql_gives(db,
              "SELECT count(*), count(DISTINCT id), max(score) FROM (SELECT * , id, score FROM docs WHERE sparse MATCH " V(
                  "9", "1") ")",
              "600|600|600.0");
    sql_gives(db,
              "SELECT group_concat(s, ' ') FROM (SELECT CAST(score AS INTEGER) AS s FROM docs WHERE sparse MATCH " V(
                  "9", "1") " AND substr(id, 4, 1) = '0' ORDER BY distance LIMIT 3)",
              "600 590 580");
}

static void writes_are_found_and_rolled_back_ones_are_not(void **state)
{
    (void)state;
    sql_run(db, "BEGIN; UPDATE docs SET vector = vector, sparse = " V("7", "9") " WHERE id = 'd'");
    sql_gives(db, "SELECT id FROM docs WHERE sparse MATCH " V("7", "1") " AND k = 1", "d");
    sql_run(db, "ROLLBACK");
    sql_gives(db, "SELECT id FROM docs WHERE sparse MATCH " V("7", "1") " AND k = 1", "a");
    sql_run(db, "UPDATE docs SET vector = '[9,9]' WHERE id = 'a'"); /* keeps its sparse vector */
    sql_gives(db, "SELECT id FROM docs WHERE sparse MATCH " V("7", "1") " AND k = 1", "a");
    sql_run(db, "INSERT OR REPLACE INTO docs(id, vector) VALUES ('a', '[1,0]')"); /* loses it */
    sql_gives(db, "SELECT id FROM docs WHERE sparse MATCH " V("7", "1") " AND k = 1", "c");
    sql_run(db, "INSERT OR REPLACE INTO docs(rowid, id, vector) VALUES (3, 'c', '[1,0]')");
    sql_gives(db, "SELECT count(*) FROM docs WHERE sparse MATCH " V("7", "1") " AND k = 1", "0");
    sql_run(db, "DELETE FROM docs WHERE id = 'b'");
    sql_gives(db, "SELECT count(*) FROM docs WHERE sparse MATCH " V("3", "1") " AND k = 9", "0");
    sql_gives(db, "PRAGMA integrity_check", "ok");
    sql_run(db, "ALTER TABLE docs RENAME TO papers; DROP TABLE papers");
    sql_gives(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'papers%' OR name LIKE 'docs%'", "0");
}

static void hybrid_fuses_sparse_vectors_with_vectors_and_words(void **state)
{
    (void)state;
    sql_gives(
        db,
        "SELECT id, vector_rank, sparse_rank, sparse_score FROM hybrid WHERE collection = 'docs' AND vector = '[2,0]' AND "
        "sparse = " V("7", "1") " AND k = 2",
        "a|2|1|2.0 c|3|2|1.0");
    sql_gives(
        db,
        "SELECT id, vector_rank, text_rank, sparse_rank FROM hybrid WHERE collection = 'docs' AND vector = '[2,0]' AND query = "
        "'boat' AND sparse = " V("3", "1") " AND k = 1",
        "b|1|1|1");
    sql_gives(db,
              "SELECT id FROM hybrid WHERE collection = 'docs' AND vector = '[2,0]' AND sparse = " V(
                  "7", "1") " AND sparse_weight = 0 AND k = 1",
              "b");
    sql_gives(db,
              "SELECT group_concat(id, '') FROM hybrid WHERE collection = 'docs' AND sparse = " V(
                  "7", "1") " AND modifier = 'idf' AND filter = 'id <> ''a'''",
              "c");
    sql_fails(db, "SELECT * FROM hybrid WHERE collection = 'docs' AND vector = '[1,0]' AND mode = 'sparse'",
              "sparse is missing");
    sql_fails(db, "SELECT * FROM hybrid WHERE collection = 'docs' AND vector = '[1,0]' AND modifier = 'idf'",
              "no search by sparse");
}

static void wrong_sparse_vectors_are_refused(void **state)
{
    (void)state;
    sql_fails(db, "INSERT INTO docs(vector, sparse) VALUES ('[1,1]', " V("1,1", "1,2") ")", "index 1 appears twice");
    sql_fails(db, "INSERT INTO docs(vector, sparse) VALUES ('[1,1]', " V("1", "1,2") ")", "1 indices and 2 values");
    sql_fails(db, "INSERT INTO docs(vector, sparse) VALUES ('[1,1]', " V("-1", "1") ")", "0 to 4294967295");
    sql_fails(db, "INSERT INTO docs(vector, sparse) VALUES ('[1,1]', " V("1", "1e99") ")", "finite");
    sql_fails(db, "INSERT INTO docs(vector, sparse) VALUES ('[1,1]', '[1]')", "the lists indices and values");
    sql_fails(db, "INSERT INTO docs(vector, sparse) VALUES ('[1,1]', '{')", "not JSON");
    sql_fails(db, "INSERT INTO docs(vector, sparse) VALUES ('[1,1]', x'00')", "sparse is a blob");
    sql_fails(db, "UPDATE docs SET sparse = NULL WHERE id = 'a'", "SET vector = vector");
    sql_fails(db, "INSERT INTO docs(vector, modifier) VALUES ('[1,1]', 'idf')", "modifier cannot be written");
    sql_fails(db, "SELECT id FROM docs WHERE sparse MATCH NULL AND k = 1", "sparse is NULL");
    sql_fails(db, "SELECT id FROM docs WHERE sparse MATCH " V("1", "1") " AND k = 1 AND modifier = 'tf'", "it must be idf");
    sql_fails(db, "SELECT id FROM docs WHERE sparse MATCH " V("1", "1") " AND k = 1 AND nprobe = 1", "always exact");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[1,1]' AND k = 1 AND modifier = 'idf'", "sparse MATCH");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH '[1,1]' AND sparse MATCH " V("1", "1") " AND k = 1", "hybrid()");
    sql_gives(db, "SELECT count(*) FROM docs", "4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sparse_vector_is_a_column_that_must_be_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_search_orders_by_the_dot_product, setup, teardown),
        cmocka_unit_test_setup_teardown(the_modifier_multiplies_by_the_inverse_document_frequency, setup, teardown),
        cmocka_unit_test_setup_teardown(an_ordered_search_goes_on_until_all_rows_are_found, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_are_found_and_rolled_back_ones_are_not, setup, teardown),
        cmocka_unit_test_setup_teardown(hybrid_fuses_sparse_vectors_with_vectors_and_words, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_sparse_vectors_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
