/* Transactions of several writes: seen whole or not at all, by readers, after failures, after a crash. */
#include <pthread.h>
#include <sys/wait.h>

#include "store/faulty_vfs.h"
#include "store/store_state.h"
#include "store/store_support.h"
#include "support/filters.h"
#include "support/memory.h"
#include "support/process.h"
#include "support/scratch.h"

enum { DIM = 8, ROWS = 40, BUSY_MS = 50 };

static ww_device *device;
static ww_store *store;
static ww_collection *texts, *images;

static ww_status open_both(void)
{
    ww_collection **const collections[] = {&texts, &images};
    ww_store_config how = ww_store_config_default();
    how.synchronous = WW_SYNCHRONOUS_OFF, how.busy_ms = BUSY_MS;
    ww_status status = ww_store_open(scratch_path("transaction.db"), device, &how, &store);
    for (int i = 0; status == WW_OK && i < 2; i++) {
        ww_collection_config config = ww_collection_config_default();
        config.name = i == 0 ? "texts" : "images", config.dim = DIM, config.metric = WW_L2;
        status = ww_store_collection(store, config.name, collections[i]);
        if (status == WW_NOT_FOUND)
            status = ww_store_create(store, &config, collections[i]);
    }
    return status;
}

static void close_both(void)
{
    ww_collection_destroy(texts);
    ww_collection_destroy(images);
    ww_store_close(store);
}

static void make(void)
{
    test_random random = {1};
    CHECK_OK(open_both());
    collection_fill(texts, &random, ROWS, DIM, "point", 0);
    collection_fill(images, &random, ROWS, DIM, "point", 0);
}

static void unmake(void)
{
    static const char *const names[] = {"transaction.db", "transaction.db-wal", "transaction.db-shm"};
    close_both();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(scratch_path(names[i]));
}

/* Gives points 0 to 4 new vectors in both collections, with a payload that says so, removes points 5 and 6, and adds one. */
static ww_status change_both(void)
{
    static const char *const gone[] = {"point5", "point6"};
    ww_collection *const both[] = {texts, images};
    ww_status status = WW_OK;
    for (int i = 0; status == WW_OK && i < 2; i++) {
        test_random random = {7};
        test_rows changed = test_rows_make(&random, 5, DIM, "point", 0), added = test_rows_make(&random, 1, DIM, "new", 0);
        const char *payloads[] = {"{\"new\":1}", "{\"new\":1}", "{\"new\":1}", "{\"new\":1}", "{\"new\":1}"};
        changed.rows.payloads = payloads;
        status = ww_collection_upsert(both[i], &changed.rows);
        if (status == WW_OK)
            status = ww_collection_remove(both[i], gone, 2);
        if (status == WW_OK)
            status = ww_collection_add(both[i], &added.rows);
        test_rows_free(&changed);
        test_rows_free(&added);
    }
    return status;
}

/* Does a search find the changed rows? -1: one collection is changed and the other is not. */
static int is_changed(void)
{
    ww_collection *const both[] = {texts, images};
    int changed[2];
    for (int i = 0; i < 2; i++) {
        test_random random = {7};
        test_rows rows = test_rows_make(&random, 5, DIM, "point", 0);
        ww_results *found = NULL;
        ww_query query = ww_query_default();
        query.queries = rows.vectors, query.query_count = 5, query.dim = DIM, query.k = 1;
        query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS;
        CHECK_OK(ww_collection_query(both[i], &query, &found));
        changed[i] = 0;
        for (int64_t q = 0; q < 5; q++)
            changed[i] += ww_results_scores(found, q)[0] == 0 && strcmp(ww_results_payload(found, q, 0), "{\"new\":1}") == 0;
        assert_int_equal(ww_collection_count(both[i]), changed[i] == 5 ? ROWS - 1 : ROWS);
        assert_true(changed[i] == 0 || changed[i] == 5);
        ww_results_destroy(found);
        test_rows_free(&rows);
    }
    return changed[0] == changed[1] ? changed[0] == 5 : -1;
}

/* ---- what it does -------------------------------------------------------------------------------------------------------- */

static void both_collections_change_with_the_commit_and_not_before(void **state)
{
    (void)state;
    make();
    assert_int_equal(is_changed(), 0);
    CHECK_OK(ww_store_begin(store));
    CHECK_OK(change_both());
    assert_int_equal(is_changed(), 0);
    CHECK_OK(ww_store_commit(store));
    assert_int_equal(is_changed(), 1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    close_both();
    CHECK_OK(open_both());
    assert_int_equal(is_changed(), 1);
    unmake();
}

static void a_rollback_leaves_nothing_and_later_writes_work(void **state)
{
    (void)state;
    make();
    CHECK_OK(ww_store_begin(store));
    CHECK_OK(change_both());
    CHECK_OK(ww_store_rollback(store));
    assert_int_equal(is_changed(), 0);
    CHECK_OK(change_both());
    assert_int_equal(is_changed(), 1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    unmake();
}

static void a_write_that_fails_is_undone_alone(void **state)
{
    (void)state;
    static const char *const missing[] = {"point10", "absent"};
    int64_t row = -1;
    make();
    CHECK_OK(ww_store_begin(store));
    CHECK_OK(change_both());
    assert_int_equal(ww_collection_remove(texts, missing, 2), WW_NOT_FOUND);
    CHECK_OK(ww_store_commit(store));
    CHECK_OK(ww_collection_find(texts, "point10", &row));
    assert_int_equal(is_changed(), 1);
    unmake();
}

static void lookups_in_a_transaction_see_its_rows(void **state)
{
    (void)state;
    static const char *const id = "new0";
    ww_results *found = NULL;
    ww_get get = ww_get_default();
    int64_t row = -1;
    make();
    CHECK_OK(ww_store_begin(store));
    CHECK_OK(change_both());
    get.ids = &id, get.count = 1, get.fetch = WW_FETCH_VECTORS | WW_FETCH_PAYLOADS;
    CHECK_OK(ww_collection_get(texts, &get, &found));
    assert_non_null(ww_results_vector(found, 0, 0));
    ww_results_destroy(found);
    assert_int_equal(ww_collection_find(images, "point5", &row), WW_NOT_FOUND);
    CHECK_OK(ww_store_rollback(store));
    CHECK_OK(ww_collection_find(images, "point5", &row));
    assert_int_equal(ww_collection_find(images, id, &row), WW_NOT_FOUND);
    unmake();
}

/* ---- what it refuses ----------------------------------------------------------------------------------------------------- */

static void other_changes_of_the_store_are_refused_in_between(void **state)
{
    (void)state;
    ww_collection_config config = ww_collection_config_default();
    ww_selection selection = ww_selection_default();
    int64_t removed = 0;
    config.name = "more", config.dim = DIM;
    selection.filter = filter_of("{\"new\": 1}");
    make();
    CHECK_OK(ww_store_begin(store));
    assert_int_equal(ww_store_begin(store), WW_UNSUPPORTED);
    assert_int_equal(ww_store_create(store, &config, NULL), WW_UNSUPPORTED);
    assert_int_equal(ww_store_drop(store, "texts"), WW_UNSUPPORTED);
    assert_int_equal(ww_store_rename(store, "texts", "words"), WW_UNSUPPORTED);
    assert_int_equal(ww_collection_compact(texts, NULL, NULL), WW_UNSUPPORTED);
    assert_int_equal(ww_collection_select_remove(texts, &selection, &removed), WW_UNSUPPORTED);
    CHECK_OK(change_both());
    CHECK_OK(ww_store_commit(store));
    assert_int_equal(ww_store_commit(store), WW_INVALID_ARGUMENT);
    assert_int_equal(ww_store_rollback(store), WW_INVALID_ARGUMENT);
    assert_int_equal(ww_store_begin(NULL), WW_INVALID_ARGUMENT);
    assert_int_equal(is_changed(), 1);
    unmake();
}

static void *write_elsewhere(void *user)
{
    ww_status *statuses = user;
    test_random random = {3};
    test_rows rows = test_rows_make(&random, 1, DIM, "elsewhere", 0);
    statuses[0] = ww_store_commit(store);
    statuses[1] = ww_collection_upsert(texts, &rows.rows);
    test_rows_free(&rows);
    return NULL;
}

static void other_threads_wait_for_the_end(void **state)
{
    (void)state;
    ww_status statuses[2] = {WW_OK, WW_OK};
    pthread_t thread;
    make();
    CHECK_OK(ww_store_begin(store));
    CHECK_OK(change_both());
    assert_int_equal(pthread_create(&thread, NULL, write_elsewhere, statuses), 0);
    pthread_join(thread, NULL);
    assert_int_equal(statuses[0], WW_INVALID_ARGUMENT);
    assert_int_equal(statuses[1], WW_BUSY);
    CHECK_OK(ww_store_commit(store));
    assert_int_equal(pthread_create(&thread, NULL, write_elsewhere, statuses), 0);
    pthread_join(thread, NULL);
    assert_int_equal(statuses[1], WW_OK);
    unmake();
}

/* ---- failures ------------------------------------------------------------------------------------------------------------ */

/* The whole transaction, as a program writes it. */
static ww_status change_as_one(void)
{
    ww_status status = ww_store_begin(store);
    if (status != WW_OK)
        return status;
    status = change_both();
    if (status == WW_OK)
        return ww_store_commit(store);
    CHECK_OK(ww_store_rollback(store));
    return status;
}

static void a_disk_that_fills_up_at_any_write_leaves_both_or_neither(void **state)
{
    (void)state;
    bool tripped = true;
    int64_t failures = 0;
    make();
    for (int64_t n = 1; tripped; n++) {
        vfs_arm(VFS_STAYS_FULL, n);
        const ww_status status = change_as_one();
        tripped = vfs_disarm();
        assert_true(status == WW_OK || (tripped && status == WW_IO_ERROR));
        assert_int_equal(is_changed(), status == WW_OK);
        failures += status != WW_OK;
        if (status == WW_OK && tripped) {
            unmake();
            make();
        }
    }
    assert_true(failures > 0);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    unmake();
}

/* As SQLite does by itself after some failures. */
static void after_sqlite_has_rolled_back_no_later_write_is_committed(void **state)
{
    (void)state;
    make();
    CHECK_OK(ww_store_begin(store));
    CHECK_OK(change_both());
    assert_int_equal(sqlite3_exec(store->writer, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    CHECK_FAILS(WW_IO_ERROR, change_both());
    CHECK_FAILS(WW_IO_ERROR, ww_store_commit(store));
    assert_int_equal(is_changed(), 0);
    CHECK_OK(change_as_one());
    assert_int_equal(is_changed(), 1);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    unmake();
}

static void memory_that_runs_out_at_any_allocation_leaves_both_or_neither(void **state)
{
    (void)state;
    int64_t failures = 0;
    make();
    for (int64_t n = 1;; n++) {
        close_both();
        CHECK_OK(open_both()); /* the first changes allocate most */
        fail_allocation_at(n);
        const ww_status status = change_as_one();
        fail_allocation_at(0);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_int_equal(is_changed(), 0);
        failures++;
    }
    assert_true(failures > 0);
    assert_int_equal(is_changed(), 1);
    unmake();
}

static void a_process_that_dies_in_a_transaction_leaves_nothing(void **state)
{
    (void)state;
    make();
    close_both();
    const pid_t child = fork_when_idle();
    if (child == 0) {
        ww_device *own = NULL;
        const bool opened = ww_device_open("cpu", &own) == WW_OK;
        device = own;
        _exit(opened && open_both() == WW_OK && ww_store_begin(store) == WW_OK && change_both() == WW_OK ? 0 : 1);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    CHECK_OK(open_both());
    assert_int_equal(is_changed(), 0);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    unmake();
}

static int setup(void **state)
{
    scratch_setup(state);
    CHECK_OK(ww_device_open("cpu", &device));
    return 0;
}

static int teardown(void **state)
{
    ww_device_close(device);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_collections_change_with_the_commit_and_not_before, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rollback_leaves_nothing_and_later_writes_work, setup, teardown),
        cmocka_unit_test_setup_teardown(a_write_that_fails_is_undone_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(lookups_in_a_transaction_see_its_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(other_changes_of_the_store_are_refused_in_between, setup, teardown),
        cmocka_unit_test_setup_teardown(other_threads_wait_for_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_fills_up_at_any_write_leaves_both_or_neither, setup, teardown),
        cmocka_unit_test_setup_teardown(after_sqlite_has_rolled_back_no_later_write_is_committed, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_that_runs_out_at_any_allocation_leaves_both_or_neither, setup, teardown),
        cmocka_unit_test_setup_teardown(a_process_that_dies_in_a_transaction_leaves_nothing, setup, teardown),
    };
    vfs_install();
    const int failed = cmocka_run_group_tests_name("store: transactions", tests, NULL, NULL);
    vfs_forget();
    return failed;
}
