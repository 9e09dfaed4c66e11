/* The life of a store: opened, shared, filled up, copied, restored, moved, forked; what it refuses; and what its filters admit.
 */
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/page_size.h"
#include "store/store_support.h"
#include "support/devices.h"
#include "support/process.h"
#include "support/scratch.h"
#include "vectors/internal/mirror.h"

static char *path;

static int setup(void **state)
{
    work_synchronous = WW_SYNCHRONOUS_OFF;
    scratch_setup(state);
    path = strdup(scratch_path("life.db"));
    return 0;
}

static int teardown(void **state)
{
    free(path);
    return scratch_teardown(state);
}

/* A store with `operations` done. */
static void make(ww_device *device, ww_store **store, ww_collection **collection, int64_t operations)
{
    CHECK_OK(work_open(path, device, store, collection));
    for (int64_t i = 0; i < operations; i++)
        CHECK_OK(work_do(*collection, 31, i));
}

static ww_collection *model_make(ww_device *device, int64_t operations)
{
    ww_collection *model = collection_make(device, WORK_DIM, WW_L2);
    for (int64_t i = 0; i < operations; i++)
        CHECK_OK(work_do(model, 31, i));
    return model;
}

static void a_backup_is_a_store_of_one_moment(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL, *copy = NULL;
    ww_collection *collection = NULL, *copied = NULL, *model = model_make(device, 12);
    char *backup = strdup(scratch_path("backup.db"));
    make(device, &store, &collection, 12);
    CHECK_OK(ww_store_backup(store, backup, NULL, NULL));
    CHECK_OK(work_do(collection, 31, 12)); /* not in the copy */
    CHECK_OK(ww_store_open(backup, device, NULL, &copy));
    CHECK_OK(ww_store_collection(copy, "work", &copied));
    assert_true(collections_equal(copied, model));
    CHECK_OK(ww_store_check(copy, NULL, NULL));
    work_close(copy, copied);
    CHECK_OK(ww_store_backup(store, backup, NULL, NULL)); /* replaces a store */
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_backup(store, path, NULL, NULL));
    sqlite3 *other = NULL;
    char *foreign = strdup(scratch_path("foreign.db"));
    assert_int_equal(sqlite3_open(foreign, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "CREATE TABLE precious(x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_backup(store, foreign, NULL, NULL));
    work_close(store, collection);
    ww_collection_destroy(model);
    free(foreign);
    free(backup);
}

static int stop_at_once(int64_t done, int64_t total, void *user)
{
    (void)done, (void)total, (void)user;
    return 1;
}

/* Two handles of one store and one of another, each with its own idea of the next numbers. */
static void alternating_writers_leave_the_state_of_a_single_writer(void **state)
{
    ww_store *store = NULL, *other = NULL;
    ww_collection *doors[3] = {NULL};
    make(*state, &store, &doors[0], 0);
    CHECK_OK(ww_store_collection(store, "work", &doors[1]));
    CHECK_OK(ww_store_open(path, *state, NULL, &other));
    CHECK_OK(ww_store_collection(other, "work", &doors[2]));
    ww_collection *model = collection_make(*state, WORK_DIM, WW_L2);
    test_random random = {31};
    for (int64_t i = 0; i < 90; i++) {
        CHECK_OK(work_do(doors[random_below(&random, 3)], 31, i));
        CHECK_OK(work_do(model, 31, i));
        if (i % 15 == 14)
            for (int d = 0; d < 3; d++)
                assert_true(collections_equal(doors[d], model));
    }
    CHECK_OK(ww_store_check(store, NULL, NULL));
    for (int d = 0; d < 3; d++)
        ww_collection_destroy(doors[d]);
    ww_collection_destroy(model);
    ww_store_close(other);
    ww_store_close(store);
}

static void a_cancelled_call_leaves_nothing_behind(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL;
    ww_collection *collection = NULL, *model = model_make(device, 12);
    make(device, &store, &collection, 12);
    CHECK_FAILS(WW_CANCELLED, ww_store_backup(store, scratch_path("none.db"), stop_at_once, NULL));
    assert_int_not_equal(access(scratch_path("none.db"), F_OK), 0);
    CHECK_FAILS(WW_CANCELLED, ww_collection_compact(collection, stop_at_once, NULL));
    test_random random = {1};
    test_rows rows = test_rows_make(&random, 5, WORK_DIM, "n", 0);
    rows.rows.progress = stop_at_once;
    CHECK_FAILS(WW_CANCELLED, ww_collection_add(collection, &rows.rows));
    assert_true(collections_equal(collection, model));
    work_close(store, collection);

    ww_store_config config = ww_store_config_default();
    config.loading = stop_at_once;
    CHECK_OK(ww_store_open(path, device, &config, &store));
    CHECK_OK(ww_store_collection(store, "work", &collection));
    ww_results *found = NULL;
    ww_query query = ww_query_default();
    query.queries = rows.vectors, query.query_count = 1, query.dim = WORK_DIM, query.k = 3;
    CHECK_FAILS(WW_CANCELLED, ww_collection_query(collection, &query, &found));
    work_close(store, collection);
    test_rows_free(&rows);
    ww_collection_destroy(model);
}

static void copy_file(const char *from, const char *to)
{
    size_t size = 0;
    char *bytes = scratch_content(from, &size);
    FILE *file = fopen(to, "r+b"); /* the same inode, as cp would */
    file = file ? file : fopen(to, "wb");
    fwrite(bytes, 1, size, file);
    assert_int_equal(ftruncate(fileno(file), (off_t)size), 0);
    fclose(file);
    free(bytes);
}

static void an_older_copy_in_its_place_is_noticed(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL, *keeps = NULL;
    ww_collection *collection = NULL, *model = model_make(device, 9);
    char *kept = strdup(scratch_path("kept.db"));
    make(device, &store, &collection, 9);
    work_close(store, collection); /* the last one: everything is in the one file now */
    copy_file(path, kept);
    /* This keeps the mirror in memory while the file is restored. */
    CHECK_OK(work_open(path, device, &store, &collection));
    for (int64_t i = 9; i < 14; i++)
        CHECK_OK(work_do(collection, 31, i));
    assert_false(collections_equal(collection, model));
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3 *old = NULL;
    assert_int_equal(sqlite3_open(kept, &old), SQLITE_OK);
    sqlite3_backup *back = sqlite3_backup_init(db, "main", old, "main"); /* SQLite's own restore, under everybody's feet */
    assert_non_null(back);
    assert_int_equal(sqlite3_backup_step(back, -1), SQLITE_DONE);
    sqlite3_backup_finish(back);
    sqlite3_close(old);
    sqlite3_close(db);
    assert_true(collections_equal(collection, model));
    work_close(store, collection);
    (void)keeps;
    ww_collection_destroy(model);
    free(kept);
}

static void a_collection_is_a_virtual_table_and_is_dropped_with_it(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    make(device, &store, &collection, 3);
    CHECK_OK(ww_collection_check(collection, NULL, NULL, NULL));
    sqlite3 *db = NULL;
    sqlite3_stmt *asked = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_schema WHERE name = 'work'", -1, &asked, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(asked), SQLITE_ROW);
    assert_string_equal(sqlite3_column_text(asked, 0),
                        "CREATE VIRTUAL TABLE \"work\" USING warpwave(dim=8, metric=l2, type=f32)");
    sqlite3_finalize(asked);
    CHECK_OK(ww_store_drop(store, "WORK"));
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'work%'", -1, &asked, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(asked), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(asked, 0), 0);
    sqlite3_finalize(asked);
    sqlite3_close(db);
    work_close(store, collection);
}

static void a_locked_file_is_busy_and_can_be_read(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL;
    ww_collection *collection = NULL, *model = model_make(device, 5);
    make(device, &store, &collection, 5);
    work_close(store, collection);
    ww_store_config config = ww_store_config_default();
    config.busy_ms = 20;
    CHECK_OK(ww_store_open(path, device, &config, &store));
    CHECK_OK(ww_store_collection(store, "work", &collection));
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    CHECK_FAILS(WW_BUSY, ww_collection_clear(collection));
    assert_true(collections_equal(collection, model));
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    CHECK_OK(ww_collection_clear(collection));
    work_close(store, collection);
    ww_collection_destroy(model);
}

static void a_second_sqlite_on_the_file_is_refused(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL, *again = NULL;
    ww_collection *collection = NULL;
    make(device, &store, &collection, 1);
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    mirror_key other = {.file_device = (uint64_t)file.st_dev, .file_inode = (uint64_t)file.st_ino, .sqlite = &file};
    CHECK_FAILS(WW_UNSUPPORTED, mirror_file_enter(&other, path));
    work_close(store, collection);
    CHECK_OK(mirror_file_enter(&other, path)); /* now the other one has it */
    CHECK_FAILS(WW_UNSUPPORTED, ww_store_open(path, device, NULL, &again));
    mirror_file_leave(&other);
    CHECK_OK(ww_store_open(path, device, NULL, &again));
    ww_store_close(again);
}

static void a_child_cannot_use_the_parents_store_and_harms_nothing(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    make(device, &store, &collection, 6);
    const pid_t child = fork_when_idle();
    if (child == 0) {
        ww_results *list = NULL;
        const char *id = "x";
        const bool refused = ww_store_list(store, &list) == WW_OTHER_PROCESS &&
                             ww_collection_discard(collection, &id, 1, NULL) == WW_OTHER_PROCESS;
        ww_collection_destroy(collection); /* does nothing: the parent's locks stay */
        ww_store_close(store);
        ww_device *own = NULL;
        ww_store *opened = NULL;
        /* SQLite would treat the parent's locks as the child's: the child's writes could be lost when the parent closes. */
        const bool told = ww_device_open("cpu", &own) == WW_OK && ww_store_open(path, own, NULL, &opened) == WW_OTHER_PROCESS;
        /* Another file is no matter. */
        const bool works =
            work_open(scratch_path("own.db"), own, &opened, &collection) == WW_OK && work_do(collection, 31, 6) == WW_OK;
        _exit(refused && told && works ? 0 : 1);
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    assert_int_equal(WEXITSTATUS(ended), 0);
    ww_collection *model = model_make(device, 6);
    assert_true(collections_equal(collection, model));
    ww_collection_destroy(model);
    work_close(store, collection);
    const pid_t later = fork_when_idle();
    if (later == 0) { /* closed before the fork: the child may use it like any process */
        ww_device *own = NULL;
        _exit(ww_device_open("cpu", &own) != WW_OK || work_open(path, own, &store, &collection) != WW_OK ||
              work_do(collection, 31, 6) != WW_OK);
    }
    waitpid(later, &ended, 0);
    assert_int_equal(WEXITSTATUS(ended), 0);
    model = model_make(device, 7);
    (void)work_verify(path, device, model, 31, 7);
    ww_collection_destroy(model);
}

static void a_collection_moves_to_another_device(void **state)
{
    ww_device *device = *state, *cpu = NULL;
    ww_store *store = NULL;
    ww_collection *collection = NULL, *model = model_make(device, 10);
    make(device, &store, &collection, 10);
    assert_true(collections_equal(collection, model));
    CHECK_OK(ww_device_open("cpu", &cpu));
    CHECK_OK(ww_collection_move(collection, cpu));
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(collection, &info));
    assert_string_equal(info.device, "cpu");
    assert_true(collections_equal(collection, model));
    CHECK_OK(work_do(collection, 31, 10));
    CHECK_OK(work_do(model, 31, 10));
    assert_true(collections_equal(collection, model));
    CHECK_OK(ww_collection_move(collection, device));
    assert_true(collections_equal(collection, model));
    CHECK_OK(ww_collection_reserve(collection, 5000));
    CHECK_OK(ww_collection_describe(collection, &info));
    assert_true(info.rows_capacity >= 5000);
    work_close(store, collection);
    ww_device_close(cpu);
    ww_collection_destroy(model);
}

/* Replaces enough rows to make the log of removals be cut, unnoticed by a second handle. */
static void a_handle_that_is_behind_the_log_reads_everything_again(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL, *second = NULL;
    ww_collection *a = NULL, *b = NULL;
    make(device, &store, &a, 0);
    CHECK_OK(work_open(path, device, &second, &b));
    test_random random = {2};
    test_rows rows = test_rows_make(&random, 900, WORK_DIM, "r", 0);
    CHECK_OK(ww_collection_upsert(a, &rows.rows));
    assert_true(collections_equal(a, b)); /* one mirror for both: */
    sqlite3 *db = NULL;
    for (int i = 0; i < 70; i++) { /* written by another process, as far as the mirror knows */
        rows.rows.vectors = rows.vectors;
        rows.vectors[i] += 1.0f;
        CHECK_OK(ww_collection_upsert(a, &rows.rows));
    }
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_stmt *asked = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT log_start, (SELECT count(*) FROM work_removed) FROM warpwave_collections",
                                        -1, &asked, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(asked), SQLITE_ROW);
    assert_true(sqlite3_column_int64(asked, 0) > 0);
    assert_true(sqlite3_column_int64(asked, 1) < 70 * 900 / 2 + 9000);
    sqlite3_finalize(asked);
    sqlite3_close(db);
    ww_collection *model = collection_make(device, WORK_DIM, WW_L2);
    CHECK_OK(ww_collection_add(model, &rows.rows));
    assert_true(collections_equal(a, model));
    assert_true(collections_equal(b, model));
    ww_collection_destroy(model);
    work_close(second, b);
    work_close(store, a);
    test_rows_free(&rows);
}

static int64_t found_where(ww_collection *collection, const float *query_vector, int32_t k, const char *where,
                           const ww_parameter *parameters, int64_t count)
{
    ww_results *found = NULL;
    ww_query query = ww_query_default();
    query.queries = query_vector, query.query_count = 1, query.dim = WORK_DIM, query.k = k, query.fetch = WW_FETCH_PAYLOADS;
    query.where = where, query.parameters = parameters, query.parameter_count = count;
    CHECK_OK(ww_collection_query(collection, &query, &found));
    const int64_t hits = ww_results_count(found, 0);
    for (int64_t i = 1; i < hits; i++)
        assert_true(ww_results_scores(found, 0)[i - 1] <= ww_results_scores(found, 0)[i]);
    ww_results_destroy(found);
    return hits;
}

static void a_filter_admits_exactly_the_rows_that_match(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    make(device, &store, &collection, 0);
    test_random random = {3};
    test_rows rows = test_rows_make(&random, 300, WORK_DIM, "r", 0); /* every third has {"n": number} */
    CHECK_OK(ww_collection_add(collection, &rows.rows));
    const ww_parameter least = {.name = ":least", .type = WW_VALUE_INTEGER, .integer = 290};
    assert_int_equal(found_where(collection, rows.vectors, 10, "0", NULL, 0), 0);
    assert_int_equal(found_where(collection, rows.vectors, 10, "id = 'r7'", NULL, 0), 1);
    assert_int_equal(found_where(collection, rows.vectors, 10, "handle < 9", NULL, 0), 9);
    assert_int_equal(found_where(collection, rows.vectors, 10, "1", NULL, 0), 10);
    for (int again = 0; again < 2; again++) { /* the second time it is cached */
        assert_int_equal(found_where(collection, rows.vectors, 50, "payload->>'$.n' >= :least", &least, 1), 3);
        CHECK_OK(ww_store_index(store, "work", "$.n"));
    }
    CHECK_OK(ww_collection_set_payloads(collection, (const char *[]){"r1"}, (const char *[]){"{\"n\": 999}"}, 1));
    assert_int_equal(found_where(collection, rows.vectors, 50, "payload->>'$.n' >= :least", &least, 1), 4);
    CHECK_OK(ww_collection_remove(collection, (const char *[]){"r1", "r291"}, 2));
    assert_int_equal(found_where(collection, rows.vectors, 50, "payload->>'$.n' >= :least", &least, 1), 2);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_index(store, "work", "lang"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_index(store, "work", "$..["));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_index(store, "nobody", "$.n"));
    /* With a mask, too, a row must meet both. */
    uint64_t mask[5] = {0};
    mask[0] = 0x7;
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    ww_results *found = NULL;
    range.queries = rows.vectors, range.query_count = 1, range.dim = WORK_DIM, range.bound = 1e6f, range.limit = 100;
    range.mask = mask, range.mask_rows = 300, range.where = "handle >= 2";
    CHECK_OK(ww_collection_query(collection, &range, &found));
    assert_int_equal(ww_results_count(found, 0), 1);
    assert_int_equal(ww_results_handles(found, 0)[0], 2);
    ww_results_destroy(found);
    work_close(store, collection);
    test_rows_free(&rows);
}

static void impossible_arguments_are_refused(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    ww_store_config config = ww_store_config_default();
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_open(NULL, device, NULL, &store));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_open(path, NULL, NULL, &store));
    config.must_exist = 1;
    CHECK_FAILS(WW_IO_ERROR, ww_store_open(path, device, &config, &store));
    config.must_exist = 0, config.page_bytes = 1000;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_store_open(path, device, &config, &store));
    config.page_bytes = 0, config.synchronous = (ww_synchronous)9;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_open(path, device, &config, &store));
    CHECK_FAILS(WW_IO_ERROR, ww_store_open("/nowhere/at/all.db", device, NULL, &store));
    assert_int_not_equal(access(path, F_OK), 0);
    make(device, &store, &collection, 3);
    CHECK_FAILS(WW_NOT_FOUND, ww_store_collection(store, "nobody", &collection));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_drop(store, "nobody"));
    work_close(store, collection);
    config = ww_store_config_default();
    config.read_only = 1;
    CHECK_OK(ww_store_open(path, device, &config, &store));
    CHECK_OK(ww_store_collection(store, "work", &collection));
    ww_collection *model = model_make(device, 3);
    assert_true(collections_equal(collection, model));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_clear(collection));
    work_close(store, collection);
    ww_collection_destroy(model);
}

static void files_are_as_small_as_their_pages_allow(void **state)
{
    (void)state;
    assert_true(page_milli_bytes(page_bytes_for(784 * 4), 784 * 4) < 1060 * 784 * 4);
    assert_true(page_milli_bytes(page_bytes_for(50 * 4), 50 * 4) < 1100 * 50 * 4);
    assert_int_equal(page_bytes_for(50 * 4), 4096);
    for (int64_t bytes = 1; bytes <= WW_DIM_MAX * 4; bytes = bytes * 3 / 2 + 1)
        assert_true(page_milli_bytes(page_bytes_for(bytes), bytes) >= bytes * 1000);
}

/* Of 2,000 rows 200 remain: the file becomes as small as one that never had the others. */
static void compacting_gives_space_back_to_the_file_system(void **state)
{
    ww_device *device = *state;
    enum { MANY = 2000, FEW = 200, DIM = 100 };
    float *values = calloc((size_t)MANY * DIM, sizeof *values);
    char texts[MANY][16];
    const char *ids[MANY];
    int64_t bytes[2];
    assert_non_null(values);
    for (int i = 0; i < MANY; i++) {
        snprintf(texts[i], sizeof texts[i], "r%d", i);
        ids[i] = texts[i];
        values[i * DIM] = (float)i;
    }
    for (int fresh = 0; fresh < 2; fresh++) {
        char *file = strdup(scratch_path(fresh ? "fresh.db" : "compacted.db"));
        ww_store *store = NULL;
        ww_collection *docs = NULL;
        ww_collection_config config = ww_collection_config_default();
        config.name = "docs", config.dim = DIM, config.metric = WW_L2;
        CHECK_OK(ww_store_open(file, device, NULL, &store));
        CHECK_OK(ww_store_create(store, &config, &docs));
        ww_rows rows = ww_rows_default();
        rows.count = fresh ? FEW : MANY, rows.dim = DIM, rows.vectors = values, rows.ids = ids;
        CHECK_OK(ww_collection_add(docs, &rows));
        if (!fresh)
            CHECK_OK(ww_collection_discard(docs, ids + FEW, MANY - FEW, NULL));
        CHECK_OK(ww_collection_compact(docs, NULL, NULL));
        ww_store_info info = ww_store_info_default();
        CHECK_OK(ww_store_describe(store, &info));
        struct stat found;
        assert_int_equal(stat(file, &found), 0);
        assert_int_equal(found.st_size, info.bytes_file);
        assert_int_equal(info.bytes_unused, 0);
        bytes[fresh] = info.bytes_file;
        ww_collection_destroy(docs);
        ww_store_close(store);
        free(file);
    }
    assert_true((double)bytes[0] <= 1.02 * (double)bytes[1]);
    free(values);
}

/* Every type of rows: stored unchanged, and found with the same bits as in a collection in memory. */
static void rows_of_every_type_are_kept_as_they_are(void **state)
{
    ww_device *device = *state;
    ww_store *store = NULL;
    CHECK_OK(ww_store_open(path, device, NULL, &store));
    float values[40 * WORK_DIM];
    for (int i = 0; i < 40 * WORK_DIM; i++)
        values[i] = (float)(i * 37 % 101);
    for (int type = 0; ww_vector_type_name((ww_vector_type)type); type++) {
        ww_collection_config config = ww_collection_config_default();
        ww_collection *stored = NULL, *plain = NULL;
        config.name = ww_vector_type_name((ww_vector_type)type);
        config.dim = WORK_DIM, config.metric = WW_L2, config.type = (ww_vector_type)type;
        CHECK_OK(ww_store_create(store, &config, &stored));
        CHECK_OK(ww_collection_create(device, &config, &plain));
        ww_rows rows = ww_rows_default();
        rows.count = 40, rows.dim = WORK_DIM, rows.vectors = values;
        CHECK_OK(ww_collection_add(stored, &rows));
        CHECK_OK(ww_collection_add(plain, &rows));
        assert_true(collections_equal(stored, plain));
        CHECK_OK(ww_collection_add(stored, &rows)); /* into the copy that is in memory by now */
        CHECK_OK(ww_collection_add(plain, &rows));
        assert_true(collections_equal(stored, plain));
        if (type >= WW_VECTOR_I8) {
            const float half[WORK_DIM] = {0.5f};
            rows.count = 1, rows.vectors = half;
            CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(stored, &rows));
        }
        ww_collection_destroy(stored);
        CHECK_OK(ww_store_collection(store, config.name, &stored));
        assert_true(collections_equal(stored, plain));
        ww_collection_destroy(stored);
        ww_collection_destroy(plain);
    }
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_backup_is_a_store_of_one_moment, setup, teardown),
        cmocka_unit_test_setup_teardown(alternating_writers_leave_the_state_of_a_single_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_call_leaves_nothing_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(an_older_copy_in_its_place_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_collection_is_a_virtual_table_and_is_dropped_with_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_locked_file_is_busy_and_can_be_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_second_sqlite_on_the_file_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_child_cannot_use_the_parents_store_and_harms_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_collection_moves_to_another_device, setup, teardown),
        cmocka_unit_test_setup_teardown(a_handle_that_is_behind_the_log_reads_everything_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_filter_admits_exactly_the_rows_that_match, setup, teardown),
        cmocka_unit_test_setup_teardown(impossible_arguments_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(files_are_as_small_as_their_pages_allow, setup, teardown),
        cmocka_unit_test_setup_teardown(compacting_gives_space_back_to_the_file_system, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_of_every_type_are_kept_as_they_are, setup, teardown),
    };
    return RUN_ON_EVERY_DEVICE("store: life", tests);
}
