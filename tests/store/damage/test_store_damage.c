/* Damaged files are refused with a status that says so, or repaired, without a crash or a wrong answer. Also harmful names and
 * texts. */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store_support.h"
#include "support/command.h"
#include "support/devices.h"
#include "support/scratch.h"

static ww_device *cpu;
static char *path;

static int setup(void **state)
{
    work_synchronous = WW_SYNCHRONOUS_OFF;
    scratch_setup(state);
    path = strdup(scratch_path("damage.db"));
    return ww_device_open("cpu", &cpu) == WW_OK ? 0 : -1;
}

static int teardown(void **state)
{
    ww_device_close(cpu);
    free(path);
    return scratch_teardown(state);
}

/* A store with a few rows, closed. */
static void make(int64_t operations)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    CHECK_OK(work_open(path, cpu, &store, &collection));
    test_random random = {5};
    test_rows rows = test_rows_make(&random, 200, WORK_DIM, "r", 0);
    CHECK_OK(ww_collection_add(collection, &rows.rows));
    for (int64_t i = 0; i < operations; i++)
        CHECK_OK(work_do(collection, 3, i));
    test_rows_free(&rows);
    work_close(store, collection);
}

/* Runs SQL on the file, as anybody could. */
static void edit(const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

/* Opens, searches, reads every row, checks and writes. Returns the first failure, which must have a message. */
static ww_status use(void)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    ww_results *found = NULL, *all = NULL;
    const float zeros[WORK_DIM] = {0};
    ww_query query = ww_query_default();
    ww_get get = ww_get_default();
    query.queries = zeros, query.query_count = 1, query.dim = WORK_DIM, query.k = 200,
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS;
    get.count = WW_ROWS_MAX, get.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF;
    ww_status status = ww_store_open(path, cpu, &how, &store);
    if (status == WW_OK)
        status = ww_store_collection(store, "work", &collection);
    if (status == WW_OK)
        status = ww_collection_query(collection, &query, &found);
    if (status == WW_OK)
        status = ww_collection_get(collection, &get, &all);
    if (status == WW_OK)
        status = ww_store_check(store, NULL, NULL);
    for (int64_t i = 0; status == WW_OK && i < 10; i++)
        status = work_do(collection, 17, i);
    ww_results_destroy(found);
    ww_results_destroy(all);
    work_close(store, collection);
    return status;
}

static void refused(const char *sql, ww_status expected, const char *text)
{
    make(0);
    edit(sql);
    const ww_status status = use();
    if (status != expected || !strstr(ww_error_message(), text))
        fail_msg("%s: %s: %s", sql, ww_status_name(status), ww_error_message());
    unlink(path);
}

static void tables_that_were_edited_are_found_out(void **state)
{
    (void)state;
    refused("UPDATE work_vectors SET vector = x'0000' WHERE place = 7", WW_CORRUPT_FILE, "place 7 has 2 bytes");
    refused("UPDATE work_vectors SET vector = zeroblob(65536) WHERE place = 7", WW_CORRUPT_FILE, "place 7");
    refused("UPDATE work_vectors SET vector = 'text' WHERE place = 7", WW_CORRUPT_FILE, "place 7");
    refused("UPDATE work_vectors SET vector = x'0000c07f' || zeroblob(28) WHERE place = 7", WW_CORRUPT_FILE, "place 7");
    refused("UPDATE work_vectors SET vector = CAST(x'0000c07f' || zeroblob(28) AS BLOB) WHERE place = 7", WW_CORRUPT_FILE,
            "place 7");
    refused("DELETE FROM work_vectors WHERE place = 7", WW_CORRUPT_FILE, "199 vectors");
    refused("DELETE FROM work_rows WHERE handle = 7", WW_CORRUPT_FILE, "7");
    refused("UPDATE work_vectors SET place = 100000 WHERE place = 199", WW_CORRUPT_FILE, "100000");
    refused("UPDATE work_rows SET place = 8 WHERE handle = 7", WW_CORRUPT_FILE, "handle 7");
    refused("UPDATE work_rows SET payload = '{' WHERE handle = 7", WW_CORRUPT_FILE, "checksum");
    refused(WORK_MADE_OLD "UPDATE work_rows SET payload = '{' WHERE handle = 7", WW_CORRUPT_FILE, "not JSON");
    refused("UPDATE warpwave_collections SET live = 7", WW_CORRUPT_FILE, "200 vectors");
    refused("UPDATE warpwave_collections SET live = -7", WW_CORRUPT_FILE, "is invalid");
    refused("UPDATE warpwave_collections SET dim = 9", WW_DIMENSION_MISMATCH, "dimension 9");
    refused("UPDATE warpwave_collections SET dim = 99999999999", WW_CORRUPT_FILE, "is invalid");
    refused("UPDATE warpwave_collections SET metric = 'taxi'", WW_CORRUPT_FILE, "is invalid");
    refused("UPDATE warpwave_collections SET type = 'f8'", WW_CORRUPT_FILE, "f8");
    refused("UPDATE warpwave_collections SET next_place = 5", WW_CORRUPT_FILE, "never assigned");
    refused("UPDATE warpwave_collections SET next_handle = 5", WW_CORRUPT_FILE, "never assigned");
    refused("DROP TABLE work_vectors", WW_CORRUPT_FILE, "work_vectors");
    refused("ALTER TABLE work_vectors RENAME COLUMN vector TO v", WW_CORRUPT_FILE, "not as they were made");
    refused("ALTER TABLE work_rows ADD COLUMN more CHECK (handle < 205)", WW_CORRUPT_FILE, "work");
    refused("ALTER TABLE warpwave_collections RENAME COLUMN live TO l", WW_CORRUPT_FILE, "not as they were made");
}

/* Scribbles over the root page of a table. */
static void destroy_page(const char *table)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *asked = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?1",
                                        -1, &asked, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(asked, 1, table, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(asked), SQLITE_ROW);
    const off_t page = sqlite3_column_int(asked, 0), size = sqlite3_column_int(asked, 1);
    sqlite3_finalize(asked);
    sqlite3_close(db);
    char bytes[512];
    memset(bytes, 0x5a, sizeof bytes);
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(file, bytes, sizeof bytes, (page - 1) * size), sizeof bytes);
    close(file);
}

/* The collection "calm" next to "work": all calls on it work, whatever happened to "work". */
static void check_calm(const char *what, ww_collection *model)
{
    ww_store *store = NULL;
    ww_collection *calm = NULL;
    ww_results *list = NULL;
    ww_store_info info = ww_store_info_default();
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF;
    if (ww_store_open(path, cpu, &how, &store) != WW_OK || ww_store_collection(store, "calm", &calm) != WW_OK ||
        !collections_equal(calm, model) || work_do(calm, 3, 6) != WW_OK || ww_store_list(store, &list) != WW_OK ||
        ww_store_describe(store, &info) != WW_OK)
        fail_msg("%s: %s", what, ww_error_message());
    assert_int_equal(ww_results_count(list, 0), 2);
    assert_int_equal(info.collections, 2);
    assert_string_equal(ww_results_id(list, 0, 0), "calm");
    assert_non_null(strstr(ww_results_payload(list, 0, 0), "\"dim\":8"));
    assert_string_equal(ww_results_id(list, 0, 1), "work");
    const ww_status status = ww_store_check(store, NULL, NULL);
    const char *said = strstr(ww_error_message(), "damage.db"); /* the folder's name may be anything */
    if ((status != WW_CORRUPT_FILE && status != WW_UNSUPPORTED) || !said || !strstr(said, "work"))
        fail_msg("%s: a check says %s: %s", what, ww_status_name(status), ww_error_message());
    ww_results_destroy(list);
    work_close(store, calm);
}

static void a_damaged_collection_does_not_affect_the_others(void **state)
{
    (void)state;
    static const char *const edits[] = {"UPDATE warpwave_collections SET dim = -1 WHERE name = 'work'",
                                        "UPDATE warpwave_collections SET live = -7 WHERE name = 'work'",
                                        "UPDATE warpwave_collections SET next_handle = -5 WHERE name = 'work'",
                                        "UPDATE warpwave_collections SET metric = 'taxi' WHERE name = 'work'",
                                        "UPDATE warpwave_collections SET format = 7 WHERE name = 'work'",
                                        "UPDATE warpwave_collections SET format = 'x' WHERE name = 'work'",
                                        "UPDATE warpwave_collections SET next_place = 3 WHERE name = 'work'",
                                        "DROP TABLE work_vectors",
                                        "DROP TABLE work_rows",
                                        "ALTER TABLE work_rows RENAME COLUMN id TO x",
                                        "UPDATE work_vectors SET vector = x'00'",
                                        NULL, /* pages */
                                        NULL};
    ww_collection *model = collection_make(cpu, WORK_DIM, WW_L2);
    for (int64_t i = 0; i < 6; i++)
        CHECK_OK(work_do(model, 3, i));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        ww_store *store = NULL;
        ww_collection *calm = NULL;
        ww_collection_config config = ww_collection_config_default();
        config.name = "calm", config.dim = WORK_DIM, config.metric = WW_L2;
        ww_store_config how = ww_store_config_default();
        how.synchronous = WW_SYNCHRONOUS_OFF;
        make(0);
        CHECK_OK(ww_store_open(path, cpu, &how, &store));
        CHECK_OK(ww_store_create(store, &config, &calm));
        for (int64_t k = 0; k < 6; k++)
            CHECK_OK(work_do(calm, 3, k));
        work_close(store, calm);
        if (edits[i])
            edit(edits[i]);
        else
            destroy_page(i % 2 ? "work_vectors" : "work_rows");
        check_calm(edits[i] ? edits[i] : "a page", model);
        const bool listed = i > 5; /* its entry is sound */
        COMMAND_SAYS(0, "", "store", "search", path, "calm", "--vector", "[1,2,3,4,5,6,7,8]", "-k", "2");
        command_result list = COMMAND_RUN("store", "list", path);
        assert_true((list.code == 0) == listed && strstr(list.out, "calm") && strstr(list.out, "work"));
        command_free(&list);
        command_result checked = COMMAND_RUN("store", "check", path);
        assert_true(checked.code != 0 && checked.code < 128 && strstr(checked.err, "work"));
        command_free(&checked);
        unlink(path);
    }
    ww_collection_destroy(model);
}

static void a_collection_that_changes_its_shape_while_it_is_open_is_refused(void **state)
{
    (void)state;
    static const char *const edits[] = {"UPDATE warpwave_collections SET dim = 64",
                                        "UPDATE warpwave_collections SET metric = 'dot'",
                                        "UPDATE warpwave_collections SET type = 'f16'"};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        make(0);
        ww_store *store = NULL;
        ww_collection *collection = NULL;
        ww_results *found = NULL;
        const float zeros[WORK_DIM] = {0};
        ww_query query = ww_query_default();
        query.queries = zeros, query.query_count = 1, query.dim = WORK_DIM, query.k = 3;
        CHECK_OK(work_open(path, cpu, &store, &collection));
        edit(edits[i]);
        CHECK_FAILS(WW_CORRUPT_FILE, ww_collection_query(collection, &query, &found));
        CHECK_FAILS(WW_CORRUPT_FILE, ww_collection_clear(collection));
        work_close(store, collection);
        unlink(path);
    }
}

static void a_newer_format_is_refused_with_both_numbers(void **state)
{
    (void)state;
    make(0);
    edit("UPDATE warpwave_collections SET format = 7");
    assert_int_equal(use(), WW_UNSUPPORTED);
    assert_non_null(strstr(ww_error_message(), "format 7"));
    assert_non_null(strstr(ww_error_message(), "format 4"));
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    (void)state;
    FILE *file = fopen(path, "wb");
    for (int i = 0; i < 1000; i++)
        fputs("this is a text, ", file);
    fclose(file);
    assert_int_equal(use(), WW_CORRUPT_FILE);
    const char *file_named = strstr(ww_error_message(), "damage.db is not a store");
    if (!file_named || strstr(ww_error_message(), "PRAGMA"))
        fail_msg("%s", ww_error_message());
    struct stat after;
    stat(path, &after);
    assert_int_equal(after.st_size, 16000);
}

static void a_folder_that_does_not_exist_is_named(void **state)
{
    (void)state;
    ww_store *store = NULL;
    CHECK_FAILS(WW_IO_ERROR, ww_store_open("/nonexistent/folder/x.db", cpu, NULL, &store));
    assert_non_null(strstr(ww_error_message(), "the folder /nonexistent/folder does not exist"));
}

/* Pages flipped and files cut off, everywhere: in a child, so that a crash would be seen. */
static void damage(bool cut)
{
    make(8);
    size_t size = 0;
    char *bytes = scratch_content(path, &size);
    test_random random = {77};
    int refusals = 0;
    for (int i = 0; i < 120; i++) {
        const size_t at = random_below(&random, size);
        FILE *file = fopen(path, "wb");
        if (!cut)
            for (size_t k = 0; k < 16 && at + k < size; k++)
                bytes[at + k] = (char)~bytes[at + k];
        fwrite(bytes, 1, cut ? at : size, file);
        fclose(file);
        if (!cut)
            for (size_t k = 0; k < 16 && at + k < size; k++)
                bytes[at + k] = (char)~bytes[at + k];
        const ww_status status = use();
        refusals += status != WW_OK;
        char wal[4096];
        snprintf(wal, sizeof wal, "%s-wal", path);
        unlink(wal);
        snprintf(wal, sizeof wal, "%s-shm", path);
        unlink(wal);
    }
    print_message("%d of 120 refused\n", refusals);
    /* Others hit bytes that are never read, or values that any vector could have. */
    assert_true(cut ? refusals == 120 : refusals > 10);
    free(bytes);
}

static void flipped_bytes_never_crash(void **state)
{
    (void)state;
    damage(false);
}

static void files_that_were_cut_off_never_crash(void **state)
{
    (void)state;
    damage(true);
}

static void names_reach_sql_in_quotes(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a\"b", "a'; DROP TABLE warpwave_collections; --", "%s%n", "select", "ä ö", "1", "x;y", "[z]", "a`b"};
    ww_store *store = NULL;
    CHECK_OK(ww_store_open(path, cpu, NULL, &store));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ww_collection_config config = ww_collection_config_default();
        ww_collection *collection = NULL;
        config.name = names[i], config.dim = WORK_DIM, config.metric = WW_L2;
        CHECK_OK(ww_store_create(store, &config, &collection));
        test_random random = {6};
        test_rows rows = test_rows_make(&random, 20, WORK_DIM, "id", 0);
        CHECK_OK(ww_collection_add(collection, &rows.rows));
        test_rows_free(&rows);
        ww_results *found = NULL;
        const float zeros[WORK_DIM] = {0};
        ww_query query = ww_query_default();
        query.queries = zeros, query.query_count = 1, query.dim = WORK_DIM, query.k = 3, query.fetch = WW_FETCH_IDS;
        query.where = "id LIKE 'id%'";
        CHECK_OK(ww_collection_query(collection, &query, &found));
        assert_int_equal(ww_results_count(found, 0), 3);
        ww_results_destroy(found);
        CHECK_OK(ww_store_index(store, names[i], "$.n"));
        ww_collection_destroy(collection);
    }
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_results *list = NULL;
    CHECK_OK(ww_store_list(store, &list));
    assert_int_equal(ww_results_count(list, 0), sizeof names / sizeof *names);
    ww_results_destroy(list);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_OK(ww_store_drop(store, names[i]));
    ww_store_close(store);
}

static void names_whose_tables_collide_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "A", "a_rows", "A_VECTORS", "a_removed", "sqlite_x", "warpwave_x", "mine", "b"};
    ww_store *store = NULL;
    ww_collection_config config = ww_collection_config_default();
    CHECK_OK(ww_store_open(path, cpu, NULL, &store));
    config.name = "a", config.dim = WORK_DIM;
    CHECK_OK(ww_store_create(store, &config, NULL));
    edit("CREATE TABLE mine(x); CREATE TABLE b_Rows(x)");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        config.name = bad[i];
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_create(store, &config, NULL));
    }
    char longest[200];
    memset(longest, 'x', sizeof longest);
    longest[129] = '\0';
    config.name = longest;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_create(store, &config, NULL));
    longest[128] = '\0';
    CHECK_OK(ww_store_create(store, &config, NULL));
    config.name = "zero", config.dim = 0;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_store_create(store, &config, NULL));
    ww_store_close(store);
}

/* In every way in which an id or a name can be passed: C, SQL, and the command. */
static void names_and_ids_that_are_not_utf8_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"\xff", "caf\xe9", "\xc0\xaf", "\xed\xa0\x80", "a\xf0\x9f\x92"};
    make(0);
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    CHECK_OK(work_open(path, cpu, &store, &collection));
    test_random random = {6};
    test_rows rows = test_rows_make(&random, 3, WORK_DIM, "new", 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *ids[] = {"fine", "r\xc3\xb6w", bad[i]};
        ww_collection_config config = ww_collection_config_default();
        config.name = bad[i], config.dim = WORK_DIM;
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_create(store, &config, NULL));
        assert_non_null(strstr(ww_error_message(), "UTF-8"));
        rows.rows.ids = ids;
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(collection, &rows.rows));
        assert_non_null(strstr(ww_error_message(), "row 2 of the batch is not UTF-8"));
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_upsert(collection, &rows.rows));
        assert_non_null(strstr(ww_error_message(), "row 2 of the batch is not UTF-8"));
        CHECK_FAILS(WW_NOT_FOUND, ww_collection_remove(collection, &bad[i], 1));
        assert_int_equal(ww_collection_count(collection), 200);
    }
    rows.rows.ids = (const char *const *)rows.ids;
    test_rows_free(&rows);
    work_close(store, collection);
}

static void load_extension(sqlite3 *db)
{
    char *message = NULL;
    assert_int_equal(sqlite3_enable_load_extension(db, 1), SQLITE_OK);
    if (sqlite3_load_extension(db, EXTENSION_PATH, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
}

static void sql_values_that_are_not_utf8_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"INSERT INTO work(id, vector) VALUES (CAST(x'61ff' AS TEXT), '[1,2,3,4,5,6,7,8]')",
                                      "UPDATE work SET id = CAST(x'61ff' AS TEXT) WHERE rowid = 3",
                                      "CREATE VIRTUAL TABLE \"caf\xe9\" USING warpwave(dim=3)"};
    make(0);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    load_extension(db);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(sqlite3_exec(db, bad[i], NULL, NULL, NULL), SQLITE_OK);
        if (!strstr(sqlite3_errmsg(db), "UTF-8"))
            fail_msg("%s: %s", bad[i], sqlite3_errmsg(db));
    }
    sqlite3_close(db);
}

/* Files of earlier versions may hold such an id. They are read, and an export that cannot say it fails. */
static void an_id_that_is_not_utf8_is_read_and_never_exported_as_another(void **state)
{
    (void)state;
    make(0);
    edit(WORK_MADE_OLD "UPDATE work_rows SET id = CAST(x'61ff' AS TEXT) WHERE handle = 7");
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    ww_results *found = NULL;
    const char *id = "a\xff";
    CHECK_OK(work_open(path, cpu, &store, &collection));
    ww_get get = ww_get_default();
    get.ids = &id, get.count = 1, get.fetch = WW_FETCH_IDS;
    CHECK_OK(ww_collection_get(collection, &get, &found));
    assert_int_equal(ww_results_handles(found, 0)[0], 7);
    assert_string_equal(ww_results_id(found, 0, 0), id);
    ww_results_destroy(found);
    CHECK_FAILS(WW_CORRUPT_FILE, ww_store_check(store, NULL, NULL));
    assert_non_null(strstr(ww_error_message(), "the id of handle 7 is not UTF-8"));
    static const char *const targets[] = {"out.jsonl", "out.csv"};
    for (int i = 0; i < 2; i++) {
        char *target = strdup(scratch_path(targets[i]));
        COMMAND_SAYS(3, "handle 7 is not UTF-8", "store", "export", path, "work", target);
        assert_int_not_equal(access(target, F_OK), 0);
        free(target);
    }
    char *vectors = strdup(scratch_path("out.npy")), *ids = strdup(scratch_path("out.ids"));
    COMMAND_SAYS(3, "handle 7 is not UTF-8", "store", "export", path, "work", vectors, "--ids", ids);
    COMMAND_SAYS(0, "", "store", "export", path, "work", vectors); /* without ids it does not matter */
    CHECK_OK(ww_collection_remove(collection, &id, 1));
    COMMAND_SAYS(0, "", "store", "export", path, "work", scratch_path("out.jsonl"));
    free(vectors);
    free(ids);
    work_close(store, collection);
}

static void a_where_runs_no_other_statement(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "1; DROP TABLE work_rows",
        "1) OR (SELECT count(*) FROM sqlite_schema",
        "random() > 0",
        "load_extension('x')",
        "id IN (SELECT name FROM sqlite_schema)",
        "date('now') > ''",
        "(1",
        "",
        "payload->>'$.n' = :missing",
        "nonsense = 1",
        "EXISTS (WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x FROM t)"};
    make(0);
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    CHECK_OK(work_open(path, cpu, &store, &collection));
    const float zeros[WORK_DIM] = {0};
    ww_query query = ww_query_default();
    query.queries = zeros, query.query_count = 1, query.dim = WORK_DIM, query.k = 3;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ww_results *found = NULL;
        query.where = bad[i];
        const ww_status status = ww_collection_query(collection, &query, &found);
        if (status != WW_INVALID_ARGUMENT)
            fail_msg("'%s': %s: %s", bad[i], ww_status_name(status), ww_error_message());
    }
    assert_int_equal(ww_collection_count(collection), 200);
    work_close(store, collection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tables_that_were_edited_are_found_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_collection_does_not_affect_the_others, setup, teardown),
        cmocka_unit_test_setup_teardown(a_collection_that_changes_its_shape_while_it_is_open_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_newer_format_is_refused_with_both_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_database_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_that_does_not_exist_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(flipped_bytes_never_crash, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_were_cut_off_never_crash, setup, teardown),
        cmocka_unit_test_setup_teardown(names_reach_sql_in_quotes, setup, teardown),
        cmocka_unit_test_setup_teardown(names_whose_tables_collide_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(names_and_ids_that_are_not_utf8_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(sql_values_that_are_not_utf8_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_that_is_not_utf8_is_read_and_never_exported_as_another, setup, teardown),
        cmocka_unit_test_setup_teardown(a_where_runs_no_other_statement, setup, teardown),
    };
    return cmocka_run_group_tests_name("store: damage", tests, NULL, NULL);
}
