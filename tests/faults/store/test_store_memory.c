/* Out of memory in the store and in SQLite below it: every allocation fails in turn, ours and SQLite's, only that one or all
 * later ones, too. Each call returns a status and leaves the file either unchanged or completely changed. */
#include <unistd.h>

#include "store/sqlite_memory.h"
#include "store/store_support.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { OPERATIONS = 4 };

static char *path;
static ww_device *device;

static int setup(void **state)
{
    work_synchronous = WW_SYNCHRONOUS_OFF;
    scratch_setup(state);
    path = strdup(scratch_path("memory.db"));
    CHECK_OK(ww_device_open("cpu", &device));
    return 0;
}

static int teardown(void **state)
{
    ww_device_close(device);
    free(path);
    return scratch_teardown(state);
}

static ww_status ask(ww_collection *collection)
{
    static const float zeros[WORK_DIM] = {0};
    const ww_parameter least = {.name = ":least", .type = WW_VALUE_INTEGER};
    ww_results *found = NULL;
    ww_query query = ww_query_default();
    query.queries = zeros, query.query_count = 1, query.dim = WORK_DIM, query.k = 3;
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS;
    query.where = "handle >= :least", query.parameters = &least, query.parameter_count = 1;
    const ww_status status = ww_collection_query(collection, &query, &found);
    ww_results_destroy(found);
    return status;
}

/* Opens a new store and works on it; `done` says how many operations were acknowledged. */
static ww_status work(ww_store **store, ww_collection **collection, int64_t *done)
{
    ww_status status = work_open(path, device, store, collection);
    for (*done = 0; status == WW_OK && *done < OPERATIONS;) {
        status = work_do(*collection, 31, *done);
        *done += status == WW_OK;
        if (status == WW_OK)
            status = ask(*collection);
    }
    return status;
}

/* The file contains `done` operations, or one more that was not acknowledged. */
static void verify(int64_t done)
{
    ww_collection *model = collection_make(device, WORK_DIM, WW_L2);
    for (int64_t i = 0; i < done; i++)
        CHECK_OK(work_do(model, 31, i));
    (void)work_verify(path, device, model, 31, done);
    ww_collection_destroy(model);
}

static void remove_file(void)
{
    char name[4096];
    unlink(path);
    snprintf(name, sizeof name, "%s-wal", path), unlink(name);
    snprintf(name, sizeof name, "%s-shm", path), unlink(name);
}

static void every_allocation_of_ours(int64_t step)
{
    int64_t n = 1;
    for (bool failed = true; failed; n = test_is_short() ? fault_next(n) : n + step) {
        ww_store *store = NULL;
        ww_collection *collection = NULL;
        int64_t done = 0;
        remove_file();
        fail_allocation_at(n);
        const ww_status status = work(&store, &collection, &done);
        fail_allocation_at(0);
        failed = status != WW_OK;
        if (failed && status != WW_OUT_OF_MEMORY)
            fail_msg("allocation %lld: %s: %s", (long long)n, ww_status_name(status), ww_error_message());
        work_close(store, collection);
        verify(done);
    }
    print_message("%lld allocations\n", (long long)n);
    assert_true(n > 20);
}

static void an_allocation_of_ours_that_fails_changes_nothing(void **state)
{
    (void)state;
    every_allocation_of_ours(1);
}

static void an_allocation_for_an_index_that_fails_changes_nothing(void **state)
{
    (void)state;
    work_indexed = true;
    every_allocation_of_ours(1);
    work_indexed = false;
}

static void an_allocation_for_a_search_in_the_file_that_fails_changes_nothing(void **state)
{
    (void)state;
    work_streams = true;
    every_allocation_of_ours(1);
    work_streams = false;
}

/* There are thousands of allocations: the first ones fail in turn, later ones in larger steps. If SQLite ignores a failure (a
 * cache stays smaller), it does not count. */
static void an_allocation_of_sqlite_that_fails_changes_nothing(void **state)
{
    (void)state;
    int failures = 0;
    sqlite_memory_begin();
    for (int forever = 0; forever < 2; forever++) {
        int64_t n = 1;
        for (bool reached = true; reached; n += test_is_short() ? 1 + n / 6 : n < 60 ? 1 : n / 24) {
            ww_store *store = NULL;
            ww_collection *collection = NULL;
            int64_t done = 0;
            remove_file();
            sqlite_memory_fail_at(n, forever);
            const ww_status status = work(&store, &collection, &done);
            sqlite_memory_fail_at(0, false);
            reached = sqlite_memory.failed;
            failures += status != WW_OK;
            if (status != WW_OK && (!reached || ww_error_message()[0] == '\0'))
                fail_msg("allocation %lld: %s: %s", (long long)n, ww_status_name(status), ww_error_message());
            if (status == WW_OK)
                assert_int_equal(done, OPERATIONS);
            work_close(store, collection);
            verify(done);
        }
        assert_true(n > 200);
    }
    sqlite_memory_end();
    assert_true(failures > (test_is_short() ? 30 : 100));
}

static ww_status upgrade_and_sum(uint64_t *digest)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    ww_status status = work_open(path, device, &store, &collection);
    if (status == WW_OK)
        status = ww_store_upgrade(store, NULL, NULL);
    if (status == WW_OK)
        status = ww_collection_digest(collection, digest);
    work_close(store, collection);
    return status;
}

/* Of ours or, with `sqlite`, of SQLite's. */
static void every_allocation_of_an_upgrade(bool sqlite)
{
    ww_store *store = NULL;
    ww_collection *collection = NULL;
    int64_t done = 0;
    uint64_t expected = 0, digest = 0;
    if (sqlite)
        sqlite_memory_begin();
    CHECK_OK(work(&store, &collection, &done));
    CHECK_OK(ww_collection_digest(collection, &expected));
    work_close(store, collection);
    int64_t n = 1, failures = 0;
    for (bool failed = true; failed; n += n < 60 || !sqlite ? 1 : n / 24) {
        work_make_old(path);
        if (sqlite)
            sqlite_memory_fail_at(n, true);
        else
            fail_allocation_at(n);
        const ww_status status = upgrade_and_sum(&digest);
        if (sqlite)
            sqlite_memory_fail_at(0, false);
        else
            fail_allocation_at(0);
        failed = sqlite ? sqlite_memory.failed : status != WW_OK;
        failures += status != WW_OK;
        verify(done); /* upgrades what was not */
        CHECK_OK(upgrade_and_sum(&digest));
        assert_true(digest == expected);
    }
    assert_true(failures > 3);
    if (sqlite)
        sqlite_memory_end();
}

static void an_allocation_for_an_upgrade_that_fails_changes_nothing(void **state)
{
    (void)state;
    every_allocation_of_an_upgrade(false);
}

static void an_allocation_of_sqlite_for_an_upgrade_that_fails_changes_nothing(void **state)
{
    (void)state;
    every_allocation_of_an_upgrade(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_allocation_of_ours_that_fails_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(an_allocation_for_an_index_that_fails_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(an_allocation_for_a_search_in_the_file_that_fails_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(an_allocation_of_sqlite_that_fails_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(an_allocation_for_an_upgrade_that_fails_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(an_allocation_of_sqlite_for_an_upgrade_that_fails_changes_nothing, setup, teardown),
    };
    return cmocka_run_group_tests_name("store: memory", tests, NULL, NULL);
}
