/* ww_model() and ww_embed(): texts in SQL become the model's vectors, and mistakes give messages. */
#include "store/sqlite/sql.h"

#include "support/models/tiny.h"
#include "support/scratch.h"

/* A connection with a model; skips where models were not built. */
static sqlite3 *open_with_model(void)
{
    char sql[SCRATCH_PATH_BYTES + 64];
    sqlite3 *db = sql_open(":memory:");
    snprintf(sql, sizeof sql, "SELECT length(ww_model('%s', 'cpu'))", scratch_path("encoder.gguf"));
    char *text = sql_text(db, sql);
    if (!text && strstr(sqlite3_errmsg(db), "cannot be loaded")) {
        printf("SKIP: %s\n", sqlite3_errmsg(db));
        sqlite3_close(db);
        skip();
    }
    if (!text)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_string_equal(text, "32");
    free(text);
    return db;
}

static void texts_become_vectors_that_a_search_takes(void **state)
{
    (void)state;
    sqlite3 *db = open_with_model();
    sql_gives(db, "SELECT length(ww_embed('a fox')), ww_embed(NULL), ww_embed('a fox') = ww_embed('A  FOX')", "256||1");
    sql_gives(db, "SELECT round(ww_dot(ww_embed('dogs'), ww_embed('dogs')), 4)", "1.0");
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=64, metric=cosine)");
    sql_run(db, "INSERT INTO docs(id, vector) VALUES ('fox', ww_embed('a fox')), ('dogs', ww_embed('dogs a dogs'))");
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH ww_embed('dogs dogs') AND k = 1", "dogs");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void vectors_of_another_model_are_refused(void **state)
{
    (void)state;
    sqlite3 *db = open_with_model();
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=64, metric=cosine, device=cpu)");
    sql_run(
        db,
        "INSERT INTO docs(id, vector, text) VALUES ('fox', ww_embed('a fox'), 'a fox')"); /* no model is kept: any may come */
    sql_run(db, "CREATE TABLE warpwave_models(uid INTEGER PRIMARY KEY, name TEXT, fingerprint TEXT, path TEXT)");
    sql_run(db, "INSERT INTO warpwave_models SELECT uid, 'minilm', 'beef', '' FROM warpwave_collections");
    sql_fails(db, "SELECT id FROM docs WHERE vector MATCH ww_embed('a fox') AND k = 1", "'minilm'");
    sql_fails(db, "SELECT id FROM hybrid('docs', ww_embed('a fox'), 'fox', 1)", "'minilm'");
    sql_fails(db, "INSERT INTO docs(id, vector) VALUES ('dog', ww_embed('a dog'))", "'minilm'");
    sql_fails(db, "INSERT INTO docs(id, vector) VALUES ('dog', ww_embed('a dog')), ('dogs', ww_embed('dogs'))", "'minilm'");
    sql_fails(db, "UPDATE docs SET vector = ww_embed('a dog')", "'minilm'");
    sql_gives(db, "SELECT count(*) FROM docs", "1");
    sql_gives(db, "SELECT id FROM hybrid('docs', NULL, 'fox', 1)", "fox"); /* words need no model */
    char sql[SCRATCH_PATH_BYTES + 96];
    snprintf(sql, sizeof sql, "UPDATE warpwave_models SET fingerprint = ww_model('%s', 'cpu')", scratch_path("encoder.gguf"));
    sql_run(db, sql);
    sql_gives(db, "SELECT id FROM docs WHERE vector MATCH ww_embed('a fox') AND k = 1", "fox"); /* now it is the same model */
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void mistakes_are_reported_and_the_model_stays(void **state)
{
    (void)state;
    char sql[SCRATCH_PATH_BYTES + 64];
    sqlite3 *db = open_with_model(), *none = sql_open(":memory:");
    sql_fails(none, "SELECT ww_embed('a fox')", "this connection has no model; SELECT ww_model('FILE')");
    sql_fails(db, "SELECT ww_model(NULL)", "NULL");
    sql_fails(db, "SELECT ww_model('/nowhere.gguf', 'cpu')", "nowhere.gguf");
    sql_fails(db, "SELECT ww_model('/nowhere.gguf', 'abacus')", "abacus");
    snprintf(sql, sizeof sql, "SELECT ww_model('%s', 'cpu')", scratch_path("decoder.gguf"));
    sql_fails(db, sql, "does not embed");
    sql_gives(db, "SELECT length(ww_embed('a fox'))", "256");
    sql_run(db, "CREATE TABLE t(x); CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT ww_embed(new.x); END");
    sql_fails(db, "INSERT INTO t VALUES ('a')", "unsafe use of ww_embed");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(sqlite3_close(none), SQLITE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_vectors_that_a_search_takes),
        cmocka_unit_test(vectors_of_another_model_are_refused),
        cmocka_unit_test(mistakes_are_reported_and_the_model_stays),
    };
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    tiny_write_words("bert", scratch_path("encoder.gguf"));
    tiny_write_words("llama", scratch_path("decoder.gguf"));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return scratch_teardown(&scratch) != 0 || failed;
}
