/* A budget of memory for the collections of a store: those that were not searched for longest leave it, whichever
 * thread searches, and every answer stays what it was. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include <warpwave/store.h>

#include "support/check.h"
#include "support/scratch.h"

enum { DIM = 16, ROWS = 3000, COLLECTIONS = 3, THREADS = 3, BYTES = ROWS * (64 * 4 + 64 + 32 + 32) };

static ww_device *device;
static ww_store *store;
static ww_collection *all[COLLECTIONS];

static void open_with(int64_t budget)
{
    ww_store_config config = ww_store_config_default();
    char name[16];
    config.memory_bytes = budget;
    CHECK_OK(ww_store_open(scratch_path("s.db"), device, &config, &store));
    for (int i = 0; i < COLLECTIONS; i++) {
        snprintf(name, sizeof name, "c%d", i);
        CHECK_OK(ww_store_collection(store, name, &all[i]));
    }
}

static void close_all(void)
{
    for (int i = 0; i < COLLECTIONS; i++)
        ww_collection_destroy(all[i]);
    ww_store_close(store);
}

/* Collection i has the rows i, i + 1, ... in its first number. */
static int setup(void **state)
{
    scratch_setup(state);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("s.db"), device, NULL, &store));
    static float vectors[ROWS][DIM];
    for (int i = 0; i < COLLECTIONS; i++) {
        char name[16];
        ww_collection_config config = ww_collection_config_default();
        ww_rows rows = ww_rows_default();
        snprintf(name, sizeof name, "c%d", i);
        config.name = name, config.dim = DIM, config.metric = WW_L2;
        for (int r = 0; r < ROWS; r++)
            vectors[r][0] = (float)(r + i);
        rows.count = ROWS, rows.dim = DIM, rows.vectors = vectors[0];
        CHECK_OK(ww_store_create(store, &config, &all[i]));
        CHECK_OK(ww_collection_add(all[i], &rows));
    }
    close_all();
    return 0;
}

static int teardown(void **state)
{
    ww_device_close(device);
    return scratch_teardown(state);
}

/* Returns the row that is nearest to 100, or -1. */
static int64_t search(int i)
{
    const float wanted[DIM] = {100};
    ww_query query = ww_query_default();
    ww_results *found = NULL;
    query.queries = wanted, query.query_count = 1, query.dim = DIM, query.k = 1;
    if (ww_collection_query(all[i], &query, &found) != WW_OK)
        return -1;
    const int64_t row = ww_results_rows(found, 0)[0];
    ww_results_destroy(found);
    return row;
}

static int64_t memory(void)
{
    ww_store_info info = ww_store_info_default();
    CHECK_OK(ww_store_describe(store, &info));
    return info.bytes_memory;
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 50000000}, NULL);
}

static void what_was_not_searched_for_longest_leaves(void **state)
{
    (void)state;
    open_with(2 * BYTES + BYTES / 2);
    assert_int_equal(memory(), 0);
    assert_int_equal(search(0), 100);
    assert_int_equal(search(1), 99);
    assert_int_equal(memory(), 2 * BYTES);
    assert_int_equal(search(2), 98); /* the other two were searched just now, so they stay */
    assert_int_equal(memory(), 3 * BYTES);
    close_all();
    open_with(2 * BYTES + BYTES / 2);
    assert_int_equal(search(0), 100);
    assert_int_equal(search(1), 99);
    rest();
    assert_int_equal(search(1), 99);
    assert_int_equal(search(2), 98);
    assert_int_equal(memory(), 2 * BYTES);
    rest();
    assert_int_equal(search(0), 100); /* it comes back; now 1 leaves */
    assert_int_equal(memory(), 2 * BYTES);
    close_all();
    open_with(0);
    for (int i = 0; i < COLLECTIONS; i++)
        assert_int_equal(search(i), 100 - i);
    assert_int_equal(memory(), 3 * BYTES);
    close_all();
}

static void one_that_needs_more_than_all_is_searched_in_the_file(void **state)
{
    (void)state;
    open_with(1);
    assert_int_equal(search(0), 100);
    rest();
    assert_int_equal(search(1), 99);
    assert_int_equal(memory(), 0);
    close_all();
    ww_store_config config = ww_store_config_default();
    config.memory_bytes = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_store_open(scratch_path("s.db"), device, &config, &store));
}

static void *search_all(void *wrong)
{
    for (int n = 0; n < 40; n++) {
        const int i = n % COLLECTIONS;
        *(int64_t *)wrong += search(i) != 100 - i;
        if (n % 10 == 0)
            rest();
    }
    return NULL;
}

static void threads_find_the_same_whatever_leaves(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int64_t wrong[THREADS] = {0};
    open_with(BYTES);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, search_all, &wrong[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(wrong[i], 0);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_searched_for_longest_leaves),
        cmocka_unit_test(one_that_needs_more_than_all_is_searched_in_the_file),
        cmocka_unit_test(threads_find_the_same_whatever_leaves),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
