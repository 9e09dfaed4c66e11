/* One file, two doors: a collection that C calls and SQL use at the same time, in one process. */
#include "store/sqlite/sql.h"

#include <warpwave/store.h>

#include "store/sqlite/module.h"
#include "support/scratch.h"

#define SEARCH "SELECT id FROM docs WHERE vector MATCH '[0,0]' AND k = 10"

static sqlite3 *open_linked(const char *path)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite_host_ready(), WW_OK);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(module_register(db, NULL), SQLITE_OK);
    sql_run(db, "CREATE VIRTUAL TABLE IF NOT EXISTS docs USING warpwave");
    return db;
}

static void add(ww_collection *collection, const char *id, float x, float y)
{
    const float vector[] = {x, y};
    const char *const ids[] = {id}, *const payloads[] = {"{\"by\":\"c\"}"};
    ww_rows rows = ww_rows_default();
    rows.count = 1, rows.dim = 2, rows.vectors = vector, rows.ids = ids, rows.payloads = payloads;
    CHECK_OK(ww_collection_add(collection, &rows));
}

/* The ids of the nearest, separated by spaces. */
static void found_in_c(ww_collection *collection, const char *where, const char *expected)
{
    static const float origin[] = {0.0f, 0.0f};
    char text[256] = "";
    ww_results *results = NULL;
    ww_query query = ww_query_default();
    query.queries = origin, query.query_count = 1, query.dim = 2, query.k = 10, query.fetch = WW_FETCH_IDS, query.where = where;
    CHECK_OK(ww_collection_query(collection, &query, &results));
    for (int64_t i = 0; i < ww_results_count(results, 0); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", ww_results_id(results, 0, i));
    ww_results_destroy(results);
    assert_string_equal(text, expected);
}

static void both_doors_lead_to_the_same_rows(void **state)
{
    (void)state;
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    ww_collection_config config = ww_collection_config_default();
    const ww_store_config store_config = ww_store_config_default();
    config.name = "docs", config.dim = 2, config.metric = WW_L2;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("doors.db"), device, &store_config, &store));
    CHECK_OK(ww_store_create(store, &config, &docs));
    add(docs, "a", 0.0f, 1.0f);
    add(docs, "b", 0.0f, 2.0f);
    sqlite3 *db = open_linked(scratch_path("doors.db"));
    sql_gives(db, SEARCH, "a b");
    sql_run(db, "INSERT INTO docs(id, vector, payload) VALUES ('c', '[0,1.5]', '{\"by\":\"sql\"}')");
    found_in_c(docs, NULL, "a c b");
    found_in_c(docs, "payload->>'$.by' = 'c'", "a b");
    sql_run(db, "BEGIN; DELETE FROM docs WHERE id = 'a'; INSERT INTO docs(id, vector) VALUES ('p', '[0,0]')");
    sql_gives(db, SEARCH, "p c b");
    found_in_c(docs, NULL, "a c b"); /* not before the COMMIT */
    sql_run(db, "ROLLBACK");
    sql_gives(db, SEARCH, "a c b");
    add(docs, "d", 0.0f, 0.5f);
    sql_gives(db, SEARCH, "d a c b");
    sql_run(db, "UPDATE docs SET vector = '[0,9]' WHERE id = 'd'");
    found_in_c(docs, NULL, "a c b d");
    CHECK_OK(ww_collection_compact(docs, NULL, NULL));
    sql_gives(db, SEARCH, "a c b d");
    CHECK_OK(ww_collection_clear(docs));
    sql_gives(db, SEARCH, "");
    add(docs, "e", 0.0f, 0.5f);
    sql_gives(db, "SELECT rowid, id FROM docs WHERE vector MATCH '[0,0]' AND k = 1", "4|e");
    sqlite3_close(db);
    ww_collection_destroy(docs);
    ww_store_close(store);
    ww_device_close(device);
}

static void a_collection_of_sql_opens_in_c(void **state)
{
    (void)state;
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    sqlite3 *db = NULL;
    const ww_store_config store_config = ww_store_config_default();
    assert_int_equal(sqlite_host_ready(), WW_OK);
    assert_int_equal(sqlite3_open(scratch_path("sql.db"), &db), SQLITE_OK);
    assert_int_equal(module_register(db, NULL), SQLITE_OK);
    sql_run(db, "CREATE VIRTUAL TABLE docs USING warpwave(dim=2, metric=l2, device=cpu);"
                "INSERT INTO docs(id, vector) VALUES ('x', '[3,0]'), ('y', '[1,0]')");
    sqlite3_close(db);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("sql.db"), device, &store_config, &store));
    CHECK_OK(ww_store_collection(store, "docs", &docs));
    found_in_c(docs, NULL, "y x");
    add(docs, "z", 0.0f, 0.0f);
    ww_collection_destroy(docs);
    ww_store_close(store);
    ww_device_close(device);
    db = open_linked(scratch_path("sql.db"));
    sql_gives(db, SEARCH, "z y x");
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_doors_lead_to_the_same_rows),
        cmocka_unit_test(a_collection_of_sql_opens_in_c),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
