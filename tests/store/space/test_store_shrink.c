/* Giving space back in steps: the file becomes shorter while others read and write, and rows keep their numbers. */
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

#include "store/store_support.h"
#include "support/check.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { DIM = 64, ROWS = 6000, REMOVED = 4000, STEP = 64 << 10 };

static ww_device *device;
static ww_store *store;
static ww_collection *docs;
static char path[SCRATCH_PATH_BYTES];

static void add(ww_collection *to, int64_t count)
{
    float *vectors = calloc((size_t)(count * DIM), sizeof *vectors);
    ww_rows rows = ww_rows_default();
    assert_non_null(vectors);
    for (int64_t i = 0; i < count * DIM; i++)
        vectors[i] = (float)(i % 977);
    rows.count = count, rows.dim = DIM, rows.vectors = vectors;
    CHECK_OK(ww_collection_add(to, &rows));
    free(vectors);
}

static int setup(void **state)
{
    ww_collection_config config = ww_collection_config_default();
    scratch_setup(state);
    snprintf(path, sizeof path, "%s", scratch_path("s.db"));
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(path, device, NULL, &store));
    config.name = "docs", config.dim = DIM;
    CHECK_OK(ww_store_create(store, &config, &docs));
    add(docs, ROWS);
    return 0;
}

static int teardown(void **state)
{
    ww_collection_destroy(docs);
    ww_store_close(store);
    ww_device_close(device);
    return scratch_teardown(state);
}

static void remove_first(void)
{
    ww_selection first = ww_selection_default();
    int64_t removed = 0;
    first.where = "handle < 4000";
    CHECK_OK(ww_collection_select_remove(docs, &first, &removed));
    assert_int_equal(removed, REMOVED);
}

static int64_t file_bytes(void)
{
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    return file.st_size;
}

static int64_t last_row(ww_collection *c)
{
    int64_t row = -1;
    CHECK_OK(ww_collection_find_handle(c, ROWS - 1, &row));
    return row;
}

static void steps_make_the_file_shorter_while_others_work(void **state)
{
    (void)state;
    ww_store *other = NULL;
    ww_collection *same = NULL;
    int64_t left = INT64_MAX, before = 0;
    int steps = 0;
    remove_first();
    CHECK_OK(ww_store_shrink(store, "docs", 1, NULL)); /* so that all is in the file, not in its log */
    const int64_t whole = file_bytes();
    CHECK_OK(ww_store_open(path, device, NULL, &other));
    CHECK_OK(ww_store_collection(other, "docs", &same));
    const int64_t row = last_row(docs);
    uint64_t digest = 0, then = 0;
    CHECK_OK(ww_collection_digest(same, &digest));
    do {
        before = left;
        CHECK_OK(ww_store_shrink(store, "docs", STEP, &left));
        assert_true(left < before);
        assert_int_equal(ww_collection_count(same), ROWS - REMOVED);
        assert_int_equal(last_row(same), row);
        steps++;
    } while (left > 0);
    assert_true(steps > REMOVED * DIM * 4 / STEP / 2);
    CHECK_OK(ww_collection_digest(same, &then));
    assert_true(digest == then);
    add(same, 1); /* the other one writes, and sees what the first does */
    assert_int_equal(ww_collection_count(docs), ROWS - REMOVED + 1);
    CHECK_OK(ww_store_shrink(store, "docs", STEP, NULL));
    ww_collection_destroy(same);
    ww_store_close(other);
    assert_true(file_bytes() < whole * 2 / 5); /* a third of the rows is left */
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

static void nothing_is_left_of_a_collection_without_removed_rows(void **state)
{
    (void)state;
    int64_t left = 7;
    CHECK_OK(ww_store_shrink(store, "docs", 1, &left));
    assert_int_equal(left, 0);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_shrink(store, "docs", 0, &left));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_shrink(store, NULL, 1, &left));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_shrink(NULL, "docs", 1, &left));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_shrink(store, "nobody", 1, &left));
    CHECK_OK(ww_store_begin(store));
    CHECK_FAILS(WW_UNSUPPORTED, ww_store_shrink(store, "docs", 1, &left));
    CHECK_OK(ww_store_rollback(store));
}

/* A file of an earlier version has no room for the numbers that moving a page needs. */
static void a_file_of_before_is_prepared_by_compact(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    int64_t left = 0;
    remove_first();
    ww_collection_destroy(docs);
    docs = NULL;
    ww_store_close(store);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA auto_vacuum = none; VACUUM", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    CHECK_OK(ww_store_open(path, device, NULL, &store));
    CHECK_OK(ww_store_collection(store, "docs", &docs));
    CHECK_FAILS(WW_UNSUPPORTED, ww_store_shrink(store, "docs", STEP, &left));
    assert_non_null(strstr(ww_error_message(), "prepares the file"));
    CHECK_OK(ww_collection_compact(docs, NULL, NULL));
    CHECK_OK(ww_store_shrink(store, "docs", STEP, &left));
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    remove_first();
    int64_t left = 0;
    const int64_t held = blocks_held();
    for (int64_t n = 1;; n++) {
        fail_allocation_at(n);
        const ww_status status = ww_store_shrink(store, "docs", STEP, &left);
        fail_allocation_at(0);
        assert_int_equal(blocks_held(), held);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
    }
    assert_int_equal(ww_collection_count(docs), ROWS - REMOVED);
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_make_the_file_shorter_while_others_work, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_left_of_a_collection_without_removed_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_of_before_is_prepared_by_compact, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
