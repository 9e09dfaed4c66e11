/* A token stops what a store does for a call: filters that SQLite evaluates, and fetching what belongs to the hits. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <warpwave/filter.h>
#include <warpwave/selection.h>
#include <warpwave/store.h>

#include "support/check.h"
#include "support/scratch.h"

enum { ROWS = 6000, DIM = 4 };

static ww_device *device;
static ww_store *store;
static ww_collection *docs;
static ww_cancel *token;

static int begin(void **state)
{
    scratch_setup(state);
    ww_store_config given = ww_store_config_default();
    ww_collection_config config = ww_collection_config_default();
    static float vectors[ROWS * DIM];
    static const char *payloads[ROWS];
    for (int i = 0; i < ROWS; i++) {
        vectors[i * DIM] = (float)i + 1;
        payloads[i] = "{\"a\": 1}";
    }
    ww_rows rows = ww_rows_default();
    rows.count = ROWS;
    rows.dim = DIM;
    rows.vectors = vectors;
    rows.payloads = payloads;
    given.filter_ms = 0;
    config.name = "docs";
    config.dim = DIM;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("docs.db"), device, &given, &store));
    CHECK_OK(ww_store_create(store, &config, &docs));
    CHECK_OK(ww_collection_add(docs, &rows));
    CHECK_OK(ww_cancel_create(&token));
    return 0;
}

static int end(void **state)
{
    ww_cancel_destroy(token);
    ww_collection_destroy(docs);
    ww_store_close(store);
    ww_device_close(device);
    return scratch_teardown(state);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double asked_at;

static void *ask_soon(void *unused)
{
    (void)unused;
    usleep(50000);
    asked_at = seconds();
    ww_cancel_ask(token);
    return NULL;
}

static void a_filter_without_a_limit_of_time_is_stopped_by_another_thread(void **state)
{
    (void)state;
    pthread_t thread;
    ww_selection rows = ww_selection_default();
    int64_t count = 0;
    rows.where =
        "(SELECT count(*) FROM docs_rows AS a, docs_rows AS b, docs_rows AS c WHERE a.handle + b.handle > c.handle) > 0";
    rows.cancel = token;
    assert_int_equal(pthread_create(&thread, NULL, ask_soon, NULL), 0);
    CHECK_FAILS(WW_CANCELLED, ww_collection_select_count(docs, &rows, &count)); /* it would take hours */
    const double late = seconds() - asked_at;
    pthread_join(thread, NULL);
    if (late > 1)
        fail_msg("it took %g s to stop", late);
    ww_cancel_reset(token);
    rows.where = NULL;
    CHECK_OK(ww_collection_select_count(docs, &rows, &count));
    assert_int_equal(count, ROWS);
}

static void a_token_that_was_asked_stops_reading(void **state)
{
    (void)state;
    ww_results *results = NULL;
    ww_get get = ww_get_default();
    ww_selection rows = ww_selection_default();
    ww_query query = ww_query_default();
    const float vector[DIM] = {1, 0, 0, 0};
    query.queries = vector;
    query.query_count = 1;
    query.dim = DIM;
    query.k = 3;
    ww_filter *filter = NULL;
    CHECK_OK(ww_filter_read("{\"a\": 1}", &filter));
    query.filter = filter;
    query.cancel = rows.cancel = get.cancel = token;
    get.count = ROWS;
    get.fetch = WW_FETCH_PAYLOADS;
    ww_cancel_ask(token);
    CHECK_FAILS(WW_CANCELLED, ww_collection_get(docs, &get, &results));
    CHECK_FAILS(WW_CANCELLED, ww_collection_select(docs, &rows, WW_FETCH_IDS, &results));
    CHECK_FAILS(WW_CANCELLED, ww_collection_query(docs, &query, &results));
    assert_null(results);
    ww_cancel_reset(token);
    CHECK_OK(ww_collection_query(docs, &query, &results));
    assert_int_equal(ww_results_count(results, 0), 3);
    ww_results_destroy(results);
    ww_filter_destroy(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_filter_without_a_limit_of_time_is_stopped_by_another_thread, begin, end),
        cmocka_unit_test_setup_teardown(a_token_that_was_asked_stops_reading, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
