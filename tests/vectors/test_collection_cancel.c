/* A call that has a token is stopped by another thread, leaves everything as it was, and the token can be used again. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/collections.h"
#include "support/devices.h"

enum { DIM = 8, ROWS = 200, K = 3 };

static ww_cancel *token;

static ww_query query_of(const float *queries, int64_t count)
{
    ww_query query = ww_query_default();
    query.queries = queries;
    query.query_count = count;
    query.dim = DIM;
    query.k = K;
    query.cancel = token;
    return query;
}

static void a_token_that_was_asked_stops_every_call_and_a_reset_one_none(void **state)
{
    float queries[40 * DIM];
    int64_t rows[40 * K], count = 0;
    float scores[40 * K];
    test_random random = {10};
    ww_results *results = NULL;
    random_normals(&random, queries, 40 * DIM);
    CHECK_OK(ww_cancel_create(&token));
    ww_collection *c = collection_make(*state, DIM, WW_DOT);
    collection_fill(c, &random, ROWS, DIM, "p", 0);
    const ww_query query = query_of(queries, 40);
    ww_query range = query_of(queries, 40);
    range.k = 0;
    range.mode = WW_QUERY_RANGE;
    range.bound = -1e30F;
    range.limit = ROWS;
    ww_get get = ww_get_default();
    get.count = ROWS;
    get.cancel = token;
    snapshot before = snapshot_take(c);
    ww_cancel_ask(token);
    CHECK_FAILS(WW_CANCELLED, ww_collection_search(c, &query, rows, scores));
    CHECK_FAILS(WW_CANCELLED, ww_collection_query(c, &query, &results));
    CHECK_FAILS(WW_CANCELLED, ww_collection_query(c, &range, &results));
    assert_null(results);
    check_unchanged(c, &before);
    ww_cancel_reset(token);
    CHECK_OK(ww_collection_search(c, &query, rows, scores));
    CHECK_OK(ww_collection_query(c, &range, &results));
    ww_results_destroy(results);
    CHECK_OK(ww_collection_get(c, &get, &results));
    ww_results_destroy(results);
    ww_selection all = ww_selection_default();
    all.cancel = token;
    CHECK_OK(ww_collection_select_count(c, &all, &count));
    assert_int_equal(count, ROWS);
    ww_collection_destroy(c);
    ww_cancel_destroy(token);
    ww_cancel_destroy(NULL);
    ww_cancel_ask(NULL);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_cancel_create(NULL));
}

static void *ask_soon(void *unused)
{
    (void)unused;
    usleep(30000);
    ww_cancel_ask(token);
    return NULL;
}

/* Searches until a call is cancelled, which the other thread does after 30 ms; the test's limit of time ends it otherwise. */
static void another_thread_stops_a_search_that_runs(void **state)
{
    enum { QUERIES = 2000 };
    pthread_t thread;
    float *queries = malloc(sizeof(float) * QUERIES * DIM);
    test_random random = {11};
    random_normals(&random, queries, (int64_t)QUERIES * DIM);
    CHECK_OK(ww_cancel_create(&token));
    ww_collection *c = collection_make(*state, DIM, WW_L2);
    collection_fill(c, &random, ROWS, DIM, "p", 0);
    const ww_query query = query_of(queries, QUERIES);
    assert_int_equal(pthread_create(&thread, NULL, ask_soon, NULL), 0);
    for (ww_status status = WW_OK; status != WW_CANCELLED;) {
        ww_results *results = NULL;
        status = ww_collection_query(c, &query, &results);
        assert_true(status == WW_OK || (status == WW_CANCELLED && !results));
        ww_results_destroy(results);
    }
    pthread_join(thread, NULL);
    ww_cancel_destroy(token);
    ww_collection_destroy(c);
    free(queries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_that_was_asked_stops_every_call_and_a_reset_one_none),
        cmocka_unit_test(another_thread_stops_a_search_that_runs),
    };
    return RUN_ON_EVERY_DEVICE("stopping calls", tests);
}
