/* Stress: eight threads at once grow, shrink, compact and search a collection for a while. Every answer that can be checked is
 * checked, and at the end the device's memory is as at the start. It runs two seconds on a real GPU and half a second on an
 * emulated one; WARPWAVE_STRESS_SECONDS sets another time. */
#include "support/devices.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/collections.h"
#include "support/data/random.h"

enum {
    SEARCHERS = 8,
    DIM = 48,
    K = 5,
    DRIVER_SLACK_BYTES = 64 << 20, /* what a driver may keep for itself once it has run */
};

typedef struct stress {
    ww_device *device;
    ww_collection *collection;
    int64_t rows_max; /* the writer shrinks the collection above */
    int64_t batch;
    atomic_bool ended;
    atomic_int_least64_t searches;
    atomic_uint_least64_t seeds;
    pthread_mutex_t lock; /* over the first failure */
    char failure[512];
} stress;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void note_failure(stress *all, const char *what)
{
    pthread_mutex_lock(&all->lock);
    if (all->failure[0] == '\0')
        snprintf(all->failure, sizeof all->failure, "%s: %s", what, ww_error_message());
    pthread_mutex_unlock(&all->lock);
    atomic_store(&all->ended, true);
}

/* An answer among changing rows is right if it is in order, and its rows are rows. */
static bool answer_is_ordered(const int64_t *rows, const float *scores)
{
    for (int i = 1; i < K; i++) {
        const bool filled = rows[i] >= 0;
        if (filled && (rows[i - 1] < 0 || scores[i] < scores[i - 1] || (scores[i] == scores[i - 1] && rows[i] <= rows[i - 1])))
            return false;
    }
    return true;
}

static void *search_all_the_time(void *argument)
{
    stress *all = argument;
    test_random random = {atomic_fetch_add(&all->seeds, 1)};
    while (!atomic_load(&all->ended)) {
        enum { QUERIES_MAX = 4 };
        float queries[QUERIES_MAX * DIM];
        int64_t rows[QUERIES_MAX * K];
        float scores[QUERIES_MAX * K];
        ww_query search = ww_query_default();
        random_normals(&random, queries, sizeof queries / sizeof queries[0]);
        search.queries = queries;
        search.query_count = 1 + (int64_t)random_below(&random, QUERIES_MAX);
        search.dim = DIM;
        search.k = K;
        if (ww_collection_search(all->collection, &search, rows, scores) != WW_OK)
            note_failure(all, "search");
        for (int64_t q = 0; q < search.query_count; q++)
            if (!answer_is_ordered(rows + q * K, scores + q * K))
                note_failure(all, "an answer out of order");
        atomic_fetch_add(&all->searches, 1);
    }
    return NULL;
}

static void remove_a_third(stress *all)
{
    enum { AT_ONCE = 256 };
    static char texts[AT_ONCE][32];
    const char *ids[AT_ONCE];
    int64_t count = 0;
    int64_t number = 0;
    for (int64_t row = ww_collection_next(all->collection, -1); row >= 0; row = ww_collection_next(all->collection, row)) {
        if (number++ % 3 != 0)
            continue;
        if (ww_collection_id(all->collection, row, texts[count], sizeof texts[0], NULL) != WW_OK)
            note_failure(all, "id");
        ids[count] = texts[count];
        if (++count < AT_ONCE)
            continue;
        if (ww_collection_remove(all->collection, ids, count) != WW_OK)
            note_failure(all, "remove");
        count = 0;
    }
    if (count > 0 && ww_collection_remove(all->collection, ids, count) != WW_OK)
        note_failure(all, "remove");
}

static void write_until(stress *all, double deadline)
{
    test_random random = {4};
    int64_t next = 0;
    for (int turn = 0; seconds_now() < deadline && !atomic_load(&all->ended); turn++) {
        test_rows batch = test_rows_make(&random, all->batch, DIM, "row", next);
        next += all->batch;
        if (ww_collection_add(all->collection, &batch.rows) != WW_OK)
            note_failure(all, "add");
        test_rows_free(&batch);
        if (turn % 3 == 2)
            remove_a_third(all);
        if (turn % 5 == 4 && ww_collection_compact(all->collection, NULL, NULL) != WW_OK)
            note_failure(all, "compact");
        if (ww_collection_count(all->collection) > all->rows_max && ww_collection_clear(all->collection) != WW_OK)
            note_failure(all, "clear");
    }
}

static double stress_seconds(ww_device *device)
{
    const char *asked = getenv("WARPWAVE_STRESS_SECONDS");
    if (asked != NULL)
        return strtod(asked, NULL);
    return device_is_slow(device) ? 0.5 : 2.0;
}

static void a_collection_survives_grow_remove_compact_and_search_by_many_threads(void **state)
{
    static stress all;
    pthread_t searchers[SEARCHERS];
    const bool slow = device_is_slow(*state);
    ww_memory_info before = ww_memory_info_default();
    ww_memory_info after = ww_memory_info_default();
    memset(&all, 0, sizeof all);
    all.device = *state;
    all.batch = slow ? 60 : 5000;
    all.rows_max = slow ? 1000 : 400000;
    pthread_mutex_init(&all.lock, NULL);
    CHECK_OK(ww_device_trim(all.device));
    CHECK_OK(ww_device_memory(all.device, &before));
    all.collection = collection_make(all.device, DIM, WW_L2);
    for (int i = 0; i < SEARCHERS; i++)
        assert_int_equal(pthread_create(&searchers[i], NULL, search_all_the_time, &all), 0);
    write_until(&all, seconds_now() + stress_seconds(all.device));
    atomic_store(&all.ended, true);
    for (int i = 0; i < SEARCHERS; i++)
        pthread_join(searchers[i], NULL);
    printf("%lld searches, %lld rows at the end\n", (long long)atomic_load(&all.searches),
           (long long)ww_collection_count(all.collection));
    ww_collection_destroy(all.collection);
    assert_string_equal(all.failure, "");
    assert_true(atomic_load(&all.searches) > 0);
    CHECK_OK(ww_device_trim(all.device));
    CHECK_OK(ww_device_memory(all.device, &after));
    assert_int_equal(after.ours_bytes, before.ours_bytes);
    assert_int_equal(after.pooled_bytes, 0);
    assert_true(after.free_bytes >= before.free_bytes - DRIVER_SLACK_BYTES);
    pthread_mutex_destroy(&all.lock);
}

int main(void)
{
    setenv("WARPWAVE_TEST_DEVICES", "emulator:32,emulator:64", 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_collection_survives_grow_remove_compact_and_search_by_many_threads)};
    return RUN_ON_EVERY_DEVICE("stress", tests);
}
