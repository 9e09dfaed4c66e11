/* The virtual table: every kind of statement, transactions and savepoints, conflicts, names, several connections. */
#include "store/sqlite/sql.h"

#include "support/scratch.h"

#define ALL    "SELECT rowid, id, ww_to_json(vector), payload FROM docs ORDER BY rowid"
#define SEARCH "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 10"

static sqlite3 *new_docs(const char *path)
{
    sqlite3 *db = sql_open(path);
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=l2, type=f32, device=cpu);" SQL_FROM_0);
    sql_run(
        db,
        "INSERT INTO docs(id, vector, payload) VALUES ('a', '[0,0]', '{\"n\":1}'), ('b', '[1,0]', NULL), ('c', '[0,2]', '[]')");
    return db;
}

static void insert_update_and_delete_follow_sql(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(":memory:");
    sql_gives(db, ALL, "0|a|[0,0]|{\"n\":1} 1|b|[1,0]| 2|c|[0,2]|[]");
    sql_run(db, "INSERT INTO docs(vector) VALUES (ww_vector('[5,5]'))"); /* its id is its handle */
    assert_int_equal(sqlite3_last_insert_rowid(db), 3);
    sql_run(db, "INSERT INTO docs(rowid, id, vector) VALUES (10, 7, '[6,6]')");
    sql_run(db, "UPDATE docs SET payload = json_object('n', 2) WHERE id = 'b'");
    sql_run(db, "UPDATE docs SET vector = '[9,9]' WHERE rowid = 0");
    sql_run(db, "UPDATE docs SET id = 'z' WHERE id = 'c'");
    sql_gives(db, "SELECT changes()", "1");
    sql_run(db, "DELETE FROM docs WHERE id = '7'");
    sql_gives(db, ALL, "0|a|[9,9]|{\"n\":1} 1|b|[1,0]|{\"n\":2} 2|z|[0,2]|[] 3|3|[5,5]|");
    sql_gives(db, SEARCH, "b z 3 a");
    sql_run(db, "INSERT INTO docs(id, vector) VALUES ('new', '[4,4]')");
    sql_gives(db, "SELECT rowid FROM docs WHERE id = 'new'", "11");
    sql_run(db, "DELETE FROM docs");
    sql_gives(db, "SELECT count(*) FROM docs", "0");
    sql_gives(db, SEARCH, "");
    sqlite3_close(db);
}

static void conflicts_are_resolved_as_the_statement_says(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(":memory:");
    assert_int_equal(sql_fails(db, "INSERT INTO docs(id, vector) VALUES ('x', '[1,1]'), ('b', '[2,2]')", "'b' already exists"),
                     SQLITE_CONSTRAINT);
    sql_gives(db, "SELECT count(*) FROM docs", "3"); /* ABORT: the whole statement is undone */
    sql_fails(db, "INSERT OR FAIL INTO docs(id, vector) VALUES ('x', '[1,1]'), ('b', '[2,2]')", "already exists");
    sql_gives(db, "SELECT count(*) FROM docs", "4");
    sql_run(db, "INSERT OR IGNORE INTO docs(id, vector) VALUES ('b', '[2,2]'), ('y', '[3,3]')");
    sql_gives(db, "SELECT id, ww_to_json(vector) FROM docs WHERE id IN ('b', 'y') ORDER BY id", "b|[1,0] y|[3,3]");
    sql_run(db, "INSERT OR REPLACE INTO docs(id, vector, payload) VALUES ('b', '[8,8]', '1'), ('b', '[7,7]', '2')");
    sql_gives(db, "SELECT rowid, ww_to_json(vector), payload FROM docs WHERE id = 'b'", "1|[7,7]|2"); /* the handle stays */
    sql_run(db, "REPLACE INTO docs(rowid, id, vector) VALUES (0, 'y', '[6,6]')"); /* replaces both 'a' and 'y' */
    sql_gives(db, "SELECT rowid, id FROM docs ORDER BY rowid", "0|y 1|b 2|c 3|x");
    sql_run(db, "UPDATE OR REPLACE docs SET id = 'b' WHERE id = 'c'");
    sql_gives(db, "SELECT rowid, id FROM docs ORDER BY rowid", "0|y 2|b 3|x");
    sql_fails(db, "UPDATE docs SET id = 'x' WHERE id = 'b'", "already exists");
    sql_run(db, "UPDATE OR IGNORE docs SET id = 'x' WHERE id = 'b'");
    sql_gives(db, "SELECT rowid, id FROM docs ORDER BY rowid", "0|y 2|b 3|x");
    sql_fails(db, "BEGIN; INSERT OR ROLLBACK INTO docs(id, vector) VALUES ('q', '[1,1]'), ('x', '[1,1]')", "already exists");
    assert_true(sqlite3_get_autocommit(db));
    sql_gives(db, "SELECT count(*) FROM docs", "3");
    sqlite3_close(db);
}

static void a_handle_is_never_used_twice_and_never_changes(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(":memory:");
    sql_run(db, "DELETE FROM docs WHERE rowid = 2");
    sql_fails(db, "INSERT INTO docs(rowid, id, vector) VALUES (2, 'again', '[1,1]')", "handle 2 was given before");
    sql_fails(db, "INSERT INTO docs(rowid, id, vector) VALUES (1, 'again', '[1,1]')", "rowid 1 exists already");
    sql_fails(db, "INSERT INTO docs(rowid, id, vector) VALUES (-1, 'again', '[1,1]')", "rowid must be an integer, 0 or more");
    sql_fails(db, "UPDATE docs SET rowid = 9 WHERE rowid = 1", "cannot be changed");
    sql_fails(db, "UPDATE docs SET rowid = rowid + 1", "cannot be changed");
    sql_run(db, "INSERT INTO docs(id, vector) VALUES ('next', '[1,1]')");
    sql_gives(db, "SELECT rowid FROM docs WHERE id = 'next'", "3");
    sqlite3_close(db);
}

static void the_first_write_by_sql_upgrades_a_table_of_an_earlier_version(void **state)
{
    (void)state;
    static const char format[] = "SELECT format, digest <> 0 FROM warpwave_collections";
    sqlite3 *db = sql_open(":memory:");
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=l2, device=cpu);"
                "INSERT INTO docs(id, vector, payload, text) VALUES ('a', '[1,2]', '{\"n\":1}', 'words'), ('b', '[3,4]', NULL, "
                "NULL), ('c', '[5,6]', '{}', NULL)");
    sql_run(db, "ALTER TABLE docs_rows DROP COLUMN checksum; ALTER TABLE docs_rows DROP COLUMN text_checksum;"
                "ALTER TABLE docs_vectors DROP COLUMN checksum; UPDATE warpwave_collections SET format = 1, digest = 0");
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH '[3,4]' AND k = 2", "b a");
    sql_gives(db, format, "1|0");
    sql_run(db, "BEGIN; INSERT INTO docs(id, vector) VALUES ('d', '[7,8]')");
    sql_gives(db, format, "3|1");
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH '[7,8]' AND k = 2", "d c");
    sql_run(db, "ROLLBACK");
    sql_gives(db, format, "1|0");
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH '[7,8]' AND k = 2", "c b");
    sql_run(db, "BEGIN; SAVEPOINT s; UPDATE docs SET payload = '[]' WHERE id = 'a'; ROLLBACK TO s; DELETE FROM docs WHERE id = "
                "'b'; COMMIT");
    sql_gives(db, format, "3|1");
    sql_gives(db, "SELECT id, payload, text FROM docs WHERE vector MATCH '[3,4]' AND k = 2", "a|{\"n\":1}|words c|{}|");
    sql_run(db, "UPDATE docs_rows SET payload = '{\"n\":2}' WHERE id = 'a'");
    sql_fails(db, "SELECT payload FROM docs WHERE id = 'a'", "checksum");
    sqlite3_close(db);
}

static void rows_begin_at_1_because_0_means_that_there_is_none(void **state)
{
    (void)state;
    sqlite3 *db = sql_open(":memory:");
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, device=cpu); INSERT INTO docs(vector) VALUES ('[1,2]')");
    sql_gives(db, "SELECT last_insert_rowid(), rowid, id FROM docs", "1|1|1");
    sql_run(db, "INSERT INTO docs(vector) VALUES ('[1,3]')");
    sql_gives(db, "SELECT last_insert_rowid()", "2");
    sqlite3_close(db);
}

static void wrong_values_are_refused_and_change_nothing(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(":memory:");
    static const char *const statements[][2] = {
        {"INSERT INTO docs(id) VALUES ('x')", "vector is NULL"},
        {"INSERT INTO docs(id, vector) VALUES ('x', NULL)", "vector is NULL"},
        {"INSERT INTO docs(id, vector) VALUES ('x', 5)", "an integer"},
        {"INSERT INTO docs(id, vector) VALUES ('x', '[1]')", "a JSON array of 1 numbers; 2 are needed"},
        {"INSERT INTO docs(id, vector) VALUES ('x', x'0000803F')", "a blob of 4 bytes; 2 f32 numbers take 8"},
        {"INSERT INTO docs(id, vector) VALUES ('x', x'0000803F0000C07F')", "element 1 is nan"},
        {"INSERT INTO docs(id, vector) VALUES ('x', 'words')", "not JSON"},
        {"INSERT INTO docs(id, vector) VALUES ('x', '[3e38, 3e38]')", "squared norm"},
        {"SELECT id FROM docs WHERE vector MATCH '[3e38, 3e38]' AND k = 1", "query are so large that its squared norm"},
        {"INSERT INTO docs(id, vector, payload) VALUES ('x', '[1,1]', '{')", "payload"},
        {"INSERT INTO docs(id, vector, payload) VALUES ('x', '[1,1]', x'7B7D')", "payload is a blob"},
        {"INSERT INTO docs(id, vector) VALUES ('', '[1,1]')", "an id is empty"},
        {"INSERT INTO docs(id, vector) VALUES (x'61', '[1,1]')", "id is a blob"},
        {"INSERT INTO docs(id, vector) VALUES ('a' || char(0) || 'b', '[1,1]')", "a NUL at byte 2"},
        {"INSERT INTO docs(id, vector) VALUES (hex(zeroblob(200)), '[1,1]')", "too long"},
        {"INSERT INTO docs(id, vector, score) VALUES ('x', '[1,1]', 1.0)", "score cannot be written"},
        {"INSERT INTO docs(id, vector, k) VALUES ('x', '[1,1]', 1)", "k cannot be written"},
        {"UPDATE docs SET distance = 1", "distance cannot be written"},
        {"UPDATE docs SET vector = NULL WHERE id = 'a'", "vector is NULL"},
        {"UPDATE OR FAIL docs SET id = 'new', payload = 'no json' WHERE rowid = 0", "payload"},
        {"UPDATE docs SET id = NULL WHERE id = 'a'", "NULL"},
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        sql_fails(db, statements[i][0], statements[i][1]);
    sql_gives(db, ALL, "0|a|[0,0]|{\"n\":1} 1|b|[1,0]| 2|c|[0,2]|[]");
    sqlite3_close(db);
}

static void a_transaction_sees_its_rows_and_a_rollback_takes_them_back(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(scratch_path("t.db")), *other = sql_open(scratch_path("t.db"));
    sql_gives(db, SEARCH, "a b c");
    sql_gives(other, SEARCH, "a b c");
    sql_run(db, "BEGIN; INSERT INTO docs(id, vector) VALUES ('p', '[0,1]'); DELETE FROM docs WHERE id = 'a';"
                "UPDATE docs SET vector = '[0,0]' WHERE id = 'c'");
    sql_gives(db, SEARCH, "c b p");
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 10 AND filter = 'id <> ''b'''", "c p");
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' ORDER BY distance", "c b p");
    sql_gives(other, SEARCH, "a b c"); /* only this connection sees them */
    sql_run(db, "ROLLBACK");
    sql_gives(db, SEARCH, "a b c");
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 10 AND filter = 'id <> ''b'''", "a c");
    sql_run(db, "BEGIN; INSERT INTO docs(id, vector) VALUES ('q', '[0,1]'); COMMIT");
    sql_gives(db, SEARCH, "a b q c");
    sql_gives(other, SEARCH, "a b q c");
    sql_run(other, "DELETE FROM docs WHERE id = 'q'");
    sql_gives(db, SEARCH, "a b c");
    sqlite3_close(db);
    sqlite3_close(other);
}

static void a_reader_keeps_its_snapshot(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(scratch_path("s.db")), *reader = sql_open(scratch_path("s.db"));
    sql_run(db, "PRAGMA journal_mode = WAL");
    sql_run(reader, "BEGIN");
    sql_gives(reader, SEARCH, "a b c");
    sql_run(db, "INSERT INTO docs(id, vector) VALUES ('n', '[0,0.5]'); DELETE FROM docs WHERE id = 'a'");
    sql_gives(db, SEARCH, "n b c");
    sql_gives(reader, SEARCH, "a b c");
    sql_gives(reader, ALL, "0|a|[0,0]|{\"n\":1} 1|b|[1,0]| 2|c|[0,2]|[]");
    sql_run(reader, "COMMIT");
    sql_gives(reader, SEARCH, "n b c");
    sqlite3_close(reader);
    sqlite3_close(db);
}

static void savepoints_can_be_rolled_back_to(void **state)
{
    (void)state;
    for (int file = 0; file < 2; file++) {
        sqlite3 *db = new_docs(file ? scratch_path("savepoint.db") : ":memory:");
        sql_run(db, "BEGIN; INSERT INTO docs(id, vector) VALUES ('p', '[0,0.1]'); SAVEPOINT one;"
                    "INSERT INTO docs(id, vector) VALUES ('q', '[0,0.2]'); DELETE FROM docs WHERE id = 'p'; SAVEPOINT two;"
                    "INSERT INTO docs(id, vector) VALUES ('r', '[0,0.3]')");
        sql_gives(db, SEARCH, "a q r b c");
        sql_run(db, "ROLLBACK TO two");
        sql_gives(db, SEARCH, "a q b c");
        sql_run(db, "INSERT INTO docs(id, vector) VALUES ('s', '[0,0.4]')"); /* with the handle that r had */
        sql_gives(db, SEARCH, "a q s b c");
        sql_run(db, "ROLLBACK TO one");
        sql_gives(db, SEARCH, "a p b c");
        sql_run(db, "INSERT INTO docs(id, vector) VALUES ('t', '[0,0.5]'); RELEASE one; COMMIT");
        sql_gives(db, SEARCH, "a p t b c");
        sql_gives(db, "SELECT count(*) FROM docs", "5");
        sqlite3_close(db);
    }
}

static void a_table_that_is_created_in_a_transaction_can_be_rolled_back(void **state)
{
    (void)state;
    sqlite3 *db = sql_open(scratch_path("c.db"));
    sql_run(db,
            "BEGIN; CREATE VIRTUAL TABLE docs USING warpwave(dim=1, metric=l2, device=cpu);"
            "INSERT INTO docs(id, vector) VALUES ('a', '[1]'); SAVEPOINT s; INSERT INTO docs(id, vector) VALUES ('b', '[2]')");
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH '[0]' AND k = 9", "a b");
    sql_run(db, "ROLLBACK TO s; INSERT INTO docs(id, vector) VALUES ('c', '[3]')");
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH '[0]' AND k = 9", "a c");
    sql_run(db, "ROLLBACK");
    sql_fails(db, "SELECT * FROM docs", "no such table");
    sql_gives(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'docs%'", "0");
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2)");
    sql_gives(db, "SELECT count(*) FROM docs", "0");
    sqlite3_close(db);
}

static void tables_are_renamed_and_dropped_with_all_that_is_theirs(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(scratch_path("r.db"));
    sql_gives(db, SEARCH, "a b c");
    sql_run(db, "ALTER TABLE docs RENAME TO \"other 'docs'\"");
    sql_gives(db, "SELECT id FROM \"other 'docs'\" WHERE vector MATCH '[0,0]' AND k = 2", "a b");
    sql_run(db, "INSERT INTO \"other 'docs'\"(id, vector) VALUES ('d', '[0,0]')");
    sql_gives(db, "SELECT count(*) FROM \"other 'docs'_rows\"", "4");
    sql_gives(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'docs%'", "0");
    sql_run(db, "BEGIN; ALTER TABLE \"other 'docs'\" RENAME TO third");
    sql_gives(db, "SELECT id FROM third WHERE vector MATCH '[0,0]' AND k = 2", "a d");
    sql_run(db, "INSERT INTO third(id, vector) VALUES ('e', '[0,0]')");
    sql_gives(db, "SELECT id FROM third WHERE vector MATCH '[0,0]' AND k = 3", "a d e");
    sql_run(db, "ROLLBACK");
    sql_gives(db, "SELECT id FROM \"other 'docs'\" WHERE vector MATCH '[0,0]' AND k = 3", "a d b");
    sql_run(db, "DROP TABLE \"other 'docs'\"");
    sql_gives(db, "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'warpwave%' AND name NOT LIKE 'sqlite%'", "");
    sql_gives(db, "SELECT count(*) FROM warpwave_collections", "0");
    sqlite3_close(db);
}

static void a_vacuum_and_a_second_process_change_nothing(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(scratch_path("v.db"));
    sql_run(db, "DELETE FROM docs WHERE id = 'b'; INSERT INTO docs(id, vector) VALUES ('d', '[0.5,0]')");
    sql_gives(db, "SELECT rowid, id FROM docs WHERE vector MATCH '[0,0]' AND k = 9", "0|a 3|d 2|c");
    sql_run(db, "VACUUM");
    sql_gives(db, "SELECT rowid, id FROM docs WHERE vector MATCH '[0,0]' AND k = 9", "0|a 3|d 2|c");
    sqlite3_close(db);
    db = sql_open(scratch_path("v.db"));
    sql_gives(db, "SELECT rowid, id FROM docs WHERE vector MATCH '[0,0]' AND k = 9", "0|a 3|d 2|c");
    sql_gives(db, "PRAGMA integrity_check", "ok");
    sqlite3_close(db);
}

static void attached_databases_have_tables_of_their_own(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(scratch_path("main.db"));
    char *attach = sqlite3_mprintf("ATTACH %Q AS \"o'ther\"", scratch_path("attached.db"));
    sql_run(db, attach);
    sql_run(db, "CREATE VIRTUAL TABLE \"o'ther\".docs USING warpwave(dim=1, metric=dot, device=cpu)");
    sql_run(db, "INSERT INTO \"o'ther\".docs(id, vector, payload) VALUES ('x', '[1]', '1'), ('y', '[2]', '2')");
    sql_gives(db, "SELECT id, score, distance FROM \"o'ther\".docs WHERE vector MATCH '[3]' AND k = 9",
              "y|6.0|-6.0 x|3.0|-3.0");
    sql_gives(db, "SELECT id FROM \"o'ther\".docs WHERE vector MATCH '[3]' AND k = 9 AND filter = 'payload = ''1'''", "x");
    sql_gives(db, SEARCH, "a b c");
    sql_run(db, "BEGIN; DELETE FROM main.docs; DELETE FROM \"o'ther\".docs; ROLLBACK");
    sql_gives(db, SEARCH, "a b c");
    sql_run(db, "DETACH \"o'ther\"");
    sql_run(db, attach);
    sql_gives(db, "SELECT id FROM \"o'ther\".docs WHERE vector MATCH '[3]' AND k = 1", "y");
    sqlite3_free(attach);
    sqlite3_close(db);
}

static void wrong_arguments_make_no_table(void **state)
{
    (void)state;
    sqlite3 *db = sql_open(":memory:");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave", "dim is missing");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=0)", "dim is 0; it must be 1 to 65536");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=70000)", "dim is 70000");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=three)", "dim is three");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=3, dim=3)", "dim is given twice");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=3, metric=hamming)", "it must be cosine, l2 or dot");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=3, type=f64)", "it must be f32");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=3, colour=red)", "unknown argument colour");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=3, rows=disk)", "it must be device or host");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=3, rows=host, rows=host)", "rows is given twice");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=3, vectors=hex)", "it must be blob or json");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=3, vectors=json, vectors=json)", "vectors is given twice");
    sql_fails(db, "CREATE VIRTUAL TABLE t USING warpwave(embedding float[3])", "has no value; write dim=384");
    sql_fails(db, "CREATE VIRTUAL TABLE warpwave_x USING warpwave(dim=3)", "warpwave_");
    sql_run(db, "CREATE TABLE taken_rows(x)");
    sql_fails(db, "CREATE VIRTUAL TABLE taken USING warpwave(dim=3)", "taken_rows");
    sql_gives(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 't%' AND name <> 'taken_rows'", "0");
    sql_run(db, "CREATE VIRTUAL TABLE t USING warpwave( DIM = '3' , metric = \"L2\", device=nosuch)");
    sql_fails(db, "SELECT * FROM t WHERE vector MATCH '[1,2,3]' AND k = 1", "nosuch"); /* opened with the first search */
    sql_run(db, "INSERT INTO t(vector) VALUES ('[1,2,3]')");
    sql_gives(db, "SELECT count(*) FROM t", "1");
    sqlite3_close(db);
}

static void vectors_come_out_as_json_if_the_table_says_so(void **state)
{
    (void)state;
    const char *path = scratch_path("json.db");
    sqlite3 *db = sql_open(path);
    sql_run(db, "CREATE VIRTUAL TABLE t USING warpwave(dim=3, metric=l2, vectors=json)");
    sql_run(db, "INSERT INTO t(id, vector, payload) VALUES ('a', '[0.1,-2,3e-7]', '{}'), ('b', ww_vector('[1,0,0]'), NULL)");
    sql_gives(db, "SELECT * FROM t", "a|[0.1,-2,3e-07]|{} b|[1,0,0]|");
    sql_run(db, "UPDATE t SET payload = '[]' WHERE id = 'a'");
    sql_gives(db, "SELECT vector, payload FROM t WHERE vector MATCH '[0,0,0]' AND k = 1", "[1,0,0]|");
    sql_gives(db, "SELECT ww_to_json(vector) = vector, ww_l2(vector, '[0.1,-2,3e-7]') FROM t WHERE id = 'a'", "1|0.0");
    sqlite3_close(db);
    db = sql_open(path); /* the file says so */
    sql_gives(db, "SELECT * FROM t", "a|[0.1,-2,3e-07]|[] b|[1,0,0]|");
    sqlite3_close(db);
}

/* A table that is connected again within a transaction does not know what the transaction did before. */
static void a_rename_in_a_transaction_does_not_show_its_rows_to_others(void **state)
{
    (void)state;
    sqlite3 *db = new_docs(scratch_path("u.db")), *other = sql_open(scratch_path("u.db"));
    sql_gives(db, SEARCH, "a b c");
    sql_gives(other, SEARCH, "a b c");
    sql_run(db, "BEGIN; INSERT INTO docs(id, vector) VALUES ('p', '[0,0.1]'); ALTER TABLE docs RENAME TO papers");
    sql_gives(db, "SELECT id FROM papers WHERE vector MATCH '[0,0]' AND k = 10", "a p b c");
    sql_run(db, "INSERT INTO papers(id, vector) VALUES ('r', '[0,0.2]')");
    sql_gives(db, "SELECT id FROM papers WHERE vector MATCH '[0,0]' AND k = 10", "a p r b c");
    sql_gives(other, SEARCH, "a b c");
    sql_run(db, "ROLLBACK; INSERT INTO docs(id, vector) VALUES ('q', '[0,5]'), ('s', '[0,0.4]')");
    sql_gives(other, SEARCH, "a s b c q");
    sql_gives(db, SEARCH, "a s b c q");
    sqlite3_close(db);
    db = sql_open(scratch_path("u.db")); /* and a table whose first use is within one */
    sql_run(db, "BEGIN IMMEDIATE; INSERT INTO docs(id, vector) VALUES ('t', '[0,0.5]')");
    sql_gives(db, SEARCH, "a s t b c q");
    sql_gives(other, SEARCH, "a s b c q");
    sql_run(db, "COMMIT");
    sql_gives(other, SEARCH, "a s t b c q");
    sqlite3_close(other);
    sqlite3_close(db);
}

static void rows_of_every_type_are_written_and_found(void **state)
{
    (void)state;
    sqlite3 *db = sql_open(":memory:");
    static const char *const types[] = {"f32", "f16", "bf16", "i8", "u8"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char *create =
            sqlite3_mprintf("CREATE VIRTUAL TABLE docs USING warpwave(dim=3, metric=dot, type=%s, device=cpu)", types[i]);
        char *insert =
            sqlite3_mprintf("INSERT INTO docs(id, vector) VALUES ('json', '[1,2,3]'), ('f32', x'00004040000000400000803F'), "
                            "('typed', ww_vector('[4,4,4]', '%s'))",
                            types[i]);
        char *match = sqlite3_mprintf("SELECT id FROM docs WHERE vector MATCH ww_vector('[0,0,1]', '%s') AND k = 3", types[i]);
        sql_run(db, create);
        sql_run(db, insert);
        sql_gives(db, "SELECT id, ww_to_json(vector), score FROM docs WHERE vector MATCH '[0,0,0.5]' AND k = 3",
                  "typed|[4,4,4]|2.0 json|[1,2,3]|1.5 f32|[3,2,1]|0.5");
        sql_gives(db, match, "typed json f32");
        if (types[i][0] == 'i' || types[i][0] == 'u')
            sql_fails(db, "INSERT INTO docs(vector) VALUES ('[1,2,0.5]')", "0.5");
        sql_gives(db, "SELECT count(*) FROM docs", "3");
        sql_run(db, "DROP TABLE docs");
        sqlite3_free(create), sqlite3_free(insert), sqlite3_free(match);
    }
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insert_update_and_delete_follow_sql),
        cmocka_unit_test(conflicts_are_resolved_as_the_statement_says),
        cmocka_unit_test(a_handle_is_never_used_twice_and_never_changes),
        cmocka_unit_test(vectors_come_out_as_json_if_the_table_says_so),
        cmocka_unit_test(rows_begin_at_1_because_0_means_that_there_is_none),
        cmocka_unit_test(the_first_write_by_sql_upgrades_a_table_of_an_earlier_version),
        cmocka_unit_test(wrong_values_are_refused_and_change_nothing),
        cmocka_unit_test(a_transaction_sees_its_rows_and_a_rollback_takes_them_back),
        cmocka_unit_test(a_reader_keeps_its_snapshot),
        cmocka_unit_test(savepoints_can_be_rolled_back_to),
        cmocka_unit_test(a_table_that_is_created_in_a_transaction_can_be_rolled_back),
        cmocka_unit_test(tables_are_renamed_and_dropped_with_all_that_is_theirs),
        cmocka_unit_test(a_vacuum_and_a_second_process_change_nothing),
        cmocka_unit_test(attached_databases_have_tables_of_their_own),
        cmocka_unit_test(wrong_arguments_make_no_table),
        cmocka_unit_test(rows_of_every_type_are_written_and_found),
        cmocka_unit_test(a_rename_in_a_transaction_does_not_show_its_rows_to_others),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
