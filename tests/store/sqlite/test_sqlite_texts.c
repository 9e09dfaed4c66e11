/* Texts in SQL: the column `text` of a collection's table, and hybrid(), which finds rows by words and by vectors. */
#include "store/sqlite/sql.h"

#include "support/scratch.h"

static sqlite3 *db;

static int setup(void **state)
{
    scratch_setup(state);
    db = sql_open(scratch_path("texts.db"));
    sql_run(db, "PRAGMA synchronous = OFF"); /* no power fails here */
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, device=cpu)");
    sql_run(
        db,
        "INSERT INTO docs(id, vector, payload, text) VALUES ('a', '[1,0]', '{\"n\":1}', 'a squirrel stores nuts'), "
        "('b', '[0.9,0.1]', '{\"n\":2}', 'a boat with sails'), ('c', '[0,1]', '{\"n\":3}', 'the squirrel and the squirrel'), "
        "('d', '[-1,0]', NULL, NULL)");
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return scratch_teardown(state);
}

static const char WORDS[] = "SELECT group_concat(id, '') FROM hybrid('docs', NULL, 'squirrel')";

static void a_text_is_a_column_that_must_be_named(void **state)
{
    (void)state;
    sql_gives(db, "SELECT id, text FROM docs WHERE id < 'c'", "a|a squirrel stores nuts b|a boat with sails");
    sql_gives(db, "SELECT text FROM docs WHERE vector MATCH '[1,0]' AND k = 1", "a squirrel stores nuts");
    sql_gives(db, "SELECT text IS NULL FROM docs WHERE id = 'd'", "1");
    sql_gives(db, "SELECT count(*) FROM pragma_table_info('docs')", "3"); /* SELECT * is unchanged */
    sql_fails(db, "INSERT INTO docs(vector, text) VALUES ('[1,1]', x'ff')", "blob");
}

static void hybrid_says_the_rank_of_each_part(void **state)
{
    (void)state;
    sql_gives(db, "SELECT id, vector_rank, text_rank FROM hybrid('docs', '[1,0]', 'squirrel', 3)", "a|1|2 c|3|1 b|2|");
    sql_gives(db, "SELECT id, score = 1.0, vector_rank, vector_score, text_rank FROM hybrid('docs', '[1,0]', NULL, 1)",
              "a|1|1|1.0|");
    sql_gives(db, "SELECT id, text FROM hybrid('docs', NULL, 'sails') WHERE text_score > 0", "b|a boat with sails");
    sql_gives(
        db,
        "SELECT h.id, d.payload->>'$.n' FROM hybrid('docs', '[1,0]', 'squirrel', 2) AS h JOIN docs AS d ON d.rowid = h.rowid "
        "ORDER BY h.score DESC",
        "a|1 c|3");
    sql_gives(db, "SELECT id FROM hybrid WHERE collection = 'docs' AND query = 'boat' AND k = 1", "b");
    sql_gives(db, "SELECT id FROM hybrid('docs', '[1,0]', 'squirrel', 1, 'hybrid', 'scores', 0.1, 5)", "c");
    sql_gives(db, "SELECT id FROM hybrid('docs', '[1,0]', 'squirrel', 1, 'text')", "c");
}

static void a_filter_holds_for_both_parts(void **state)
{
    (void)state;
    sql_gives(db,
              "SELECT group_concat(id, '') FROM hybrid('docs', '[1,0]', 'squirrel', 9, NULL, NULL, NULL, NULL, "
              "'payload->>''$.n'' > :n', '{\"n\": 1}')",
              "cb");
    sql_gives(db, "SELECT group_concat(id, '') FROM hybrid('docs', NULL, 'squirrel', 9, NULL, NULL, NULL, NULL, 'id = ''a''')",
              "a");
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    sql_fails(db, "SELECT * FROM hybrid", "name of the collection");
    sql_fails(db, "SELECT * FROM hybrid('nobody', '[1,0]', 'x')", "no collection 'nobody'");
    sql_fails(db, "SELECT * FROM hybrid('docs', '[1,0,3]', 'x')", "3");
    sql_fails(db, "SELECT * FROM hybrid('docs', '[1,0]', 'x', -1)", "k is -1");
    sql_fails(db, "SELECT * FROM hybrid('docs', '[1,0]', 'x', 99999)", "16384");
    sql_fails(db, "SELECT * FROM hybrid('docs', NULL, 'x', 1, 'hybrid')", "two of vector, query and sparse");
    sql_fails(db, "SELECT * FROM hybrid('docs', '[1,0]', NULL, 1, 'text')", "query is missing");
    sql_fails(db, "SELECT * FROM hybrid('docs', '[1,0]', 'x', 1, 'magic')", "mode is 'magic'");
    sql_fails(db, "SELECT * FROM hybrid('docs', '[1,0]', 'x', 1, 'hybrid', 'magic')", "fusion is 'magic'");
    sql_fails(db, "CREATE VIRTUAL TABLE h USING hybrid", "no such module");
}

static void the_index_follows_writes_by_sql(void **state)
{
    (void)state;
    sql_gives(db, WORDS, "ca");
    sql_run(db, "UPDATE docs SET payload = '1' WHERE id = 'a'"); /* the text stays */
    sql_gives(db, WORDS, "ca");
    sql_run(db, "UPDATE docs SET text = 'a red squirrel in the woods' WHERE id = 'd'");
    sql_gives(db, "SELECT id FROM hybrid('docs', NULL, 'woods')", "d");
    sql_run(db, "DELETE FROM docs WHERE id = 'c'");
    sql_run(db, "INSERT OR REPLACE INTO docs(id, vector, text) VALUES ('a', '[1,1]', 'bread')");
    sql_gives(db, WORDS, "d");
    sql_run(db, "ALTER TABLE docs RENAME TO papers");
    sql_gives(db, "SELECT id FROM hybrid('papers', NULL, 'bread')", "a");
    sql_run(db, "INSERT INTO papers(id, vector, text) VALUES ('z', '[1,1]', 'rye bread')");
    sql_gives(db, "SELECT group_concat(id, '') FROM hybrid('papers', NULL, 'bread')", "az");
    sql_run(db, "DROP TABLE papers");
    sql_gives(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'papers%' OR name LIKE 'docs%'", "0");
}

static void a_rollback_takes_rows_and_index_back(void **state)
{
    (void)state;
    sql_run(db,
            "BEGIN; DELETE FROM docs WHERE id = 'a'; INSERT INTO docs(id, vector, text) VALUES ('n', '[0,1]', 'new squirrel')");
    sql_gives(db, "SELECT group_concat(id, '') FROM (SELECT id FROM hybrid('docs', NULL, 'squirrel') ORDER BY id)", "cn");
    sql_gives(db, "SELECT group_concat(id, '') FROM (SELECT id FROM hybrid('docs', '[0,1]', 'new', 2) ORDER BY score DESC)",
              "nc");
    sql_run(db, "SAVEPOINT s; DELETE FROM docs; ROLLBACK TO s");
    sql_gives(db, "SELECT count(*) FROM hybrid('docs', NULL, 'squirrel')", "2");
    sql_run(db, "ROLLBACK");
    sql_gives(db, WORDS, "ca");
    sql_gives(db, "SELECT group_concat(id, '') FROM hybrid('docs', '[1,0]', 'squirrel', 2)", "ac");
    sql_gives(db, "SELECT count(*) FROM docs_fts_content", "3");
    sql_run(db,
            "INSERT INTO docs_fts(docs_fts, rank) VALUES('integrity-check', 1)"); /* FTS5 compares its index with the texts */
}

static void a_failing_statement_leaves_no_words_behind(void **state)
{
    (void)state;
    sql_fails(db, "INSERT INTO docs(id, vector, text) VALUES ('x', '[1,1]', 'whale'), ('a', '[1,1]', 'whale')",
              "already exists");
    sql_gives(db, "SELECT count(*) FROM hybrid('docs', NULL, 'whale')", "0");
    sql_run(db, "INSERT INTO docs_fts(docs_fts, rank) VALUES('integrity-check', 1)");
    sql_run(db, "CREATE TEMP TRIGGER t AFTER INSERT ON docs_fts_content BEGIN SELECT 1; END");
    sql_fails(db, "INSERT INTO docs(vector, text) VALUES ('[1,1]', 'x')", "trigger");
    sql_run(db, "DROP TRIGGER t");
}

static void hybrid_reads_attached_databases(void **state)
{
    (void)state;
    sql_run(db, "ATTACH ':memory:' AS side; CREATE VIRTUAL TABLE side.docs USING warpwave(dim=2, device=cpu)");
    sql_run(db, "INSERT INTO side.docs(id, vector, text) VALUES ('s', '[1,0]', 'squirrel on the side')");
    sql_gives(db, "SELECT id FROM hybrid WHERE collection = 'docs' AND query = 'squirrel' AND schema = 'side'", "s");
    sql_gives(db, WORDS, "ca");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_text_is_a_column_that_must_be_named),
        TEST(hybrid_says_the_rank_of_each_part),
        TEST(a_filter_holds_for_both_parts),
        TEST(wrong_arguments_are_refused),
        TEST(the_index_follows_writes_by_sql),
        TEST(a_rollback_takes_rows_and_index_back),
        TEST(a_failing_statement_leaves_no_words_behind),
        TEST(hybrid_reads_attached_databases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
