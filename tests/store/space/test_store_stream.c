/* A collection that does not fit into the store's memory_bytes is searched in the file: with the same bits as in memory, for
 * every type, metric, mode and choice of rows. */
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include <warpwave/store.h>

#include "store/store_support.h"
#include "support/scratch.h"

enum {
    DIM = 512,
    ROWS = 6000,
    QUERIES = 5,
    K = 20,
    ASKED = 6,
    LONG_DIM = 4096,
    LONG_ROWS = 3000
}; /* three pieces of f32 rows */

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_BF16, WW_VECTOR_I8};

static ww_device *device;
static ww_store *store;
static ww_collection *docs;

static int set_up(void **state)
{
    return ww_device_open("cpu", &device) != WW_OK || scratch_setup(state) != 0;
}

static int tear_down(void **state)
{
    ww_device_close(device);
    return scratch_teardown(state);
}

static void open_with(const char *name, int64_t memory_bytes)
{
    ww_store_config config = ww_store_config_default();
    config.memory_bytes = memory_bytes, config.synchronous = WW_SYNCHRONOUS_OFF;
    CHECK_OK(ww_store_open(scratch_path(name), device, &config, &store));
}

static void close_all(void)
{
    ww_collection_destroy(docs);
    ww_store_close(store);
}

static int64_t memory(void)
{
    ww_store_info info = ww_store_info_default();
    CHECK_OK(ww_store_describe(store, &info));
    return info.bytes_memory;
}

/* Rows, each tenth of them twice, of which some are removed and others written again. */
static void fill(const char *name, ww_metric metric, ww_vector_type type)
{
    test_random random = {(uint64_t)metric * 10 + (uint64_t)type};
    ww_collection_config config = ww_collection_config_default();
    config.name = "docs", config.dim = DIM, config.metric = metric, config.type = type;
    open_with(name, 1);
    CHECK_OK(ww_store_create(store, &config, &docs));
    test_rows rows = test_rows_make(&random, ROWS, DIM, "id", 0);
    for (int64_t i = 0; type == WW_VECTOR_I8 && i < ROWS * DIM; i++)
        rows.vectors[i] = (float)random_below(&random, 100) - 50.0f;
    for (int64_t i = 0; i < ROWS; i += 10) /* ties */
        memcpy(rows.vectors + (ROWS - 1 - i) * DIM, rows.vectors + i * DIM, DIM * sizeof(float));
    CHECK_OK(ww_collection_add(docs, &rows.rows));
    for (int64_t i = 0; i < 300; i++)
        CHECK_OK(ww_collection_remove(docs, rows.rows.ids + i * 17, 1));
    rows.rows.count = 100;
    CHECK_OK(ww_collection_upsert(docs, &rows.rows));
    test_rows_free(&rows);
}

/* All kinds of searches; results of those before `ASKED`. */
static void ask(const float *queries, ww_results *results[ASKED])
{
    static uint64_t mask[(2 * ROWS) / 64 + 1];
    test_random random = {8};
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(docs, &info));
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
        mask[i] = random_below(&random, UINT64_MAX);
    for (int i = 0; i < ASKED; i++) {
        ww_query query = ww_query_default();
        ww_search_stats stats = ww_search_stats_default();
        query.queries = queries, query.query_count = i == 0 ? 1 : QUERIES, query.dim = DIM, query.k = K;
        query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
        query.stats = &stats;
        query.mask = i == 2 ? mask : NULL, query.mask_rows = i == 2 ? info.mask_rows : 0;
        query.where = i == 3 ? "handle % 3 = 0" : i == 4 ? "handle < 0" : NULL;
        if (i == 5)
            query.mode = WW_QUERY_RANGE, query.k = 0, query.bound = info.metric == WW_L2 ? INFINITY : 0.0f, query.limit = 100;
        CHECK_OK(ww_collection_query(docs, &query, &results[i]));
        assert_true(i == 4 || (stats.rows_scored > 0 && stats.certificate >= 0));
    }
}

static void the_bits_are_those_of_rows_in_memory(void **state)
{
    float queries[QUERIES * DIM];
    test_random random = {3};
    (void)state;
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            ww_results *streamed[ASKED], *loaded[ASKED];
            char name[32];
            snprintf(name, sizeof name, "s%zu%zu.db", m, t);
            fill(name, metrics[m], types[t]);
            ww_get first = ww_get_default();
            ww_results *row = NULL;
            first.count = 1, first.fetch = WW_FETCH_VECTORS;
            CHECK_OK(ww_collection_get(docs, &first, &row));
            random_normals(&random, queries, QUERIES * DIM);
            memcpy(queries, ww_results_vector(row, 0, 0), DIM * sizeof *queries); /* found twice */
            ww_results_destroy(row);
            ask(queries, streamed);
            assert_int_equal(memory(), 0);
            close_all();
            open_with(name, 0);
            CHECK_OK(ww_store_collection(store, "docs", &docs));
            ask(queries, loaded);
            assert_true(memory() > 0);
            for (int i = 0; i < ASKED; i++) {
                assert_true(results_equal(streamed[i], loaded[i], DIM));
                assert_int_equal(ww_results_count(loaded[i], 0) > 0, i != 4);
                ww_results_destroy(streamed[i]);
                ww_results_destroy(loaded[i]);
            }
            close_all();
            unlink(scratch_path(name));
        }
}

/* Searches for `count` queries; returns the row that is nearest to the first. */
static int64_t nearest(const float *queries, int64_t count)
{
    ww_query query = ww_query_default();
    ww_results *found = NULL;
    query.queries = queries, query.query_count = count, query.dim = LONG_DIM, query.k = 1;
    CHECK_OK(ww_collection_query(docs, &query, &found));
    const int64_t handle = ww_results_handles(found, 0)[0];
    ww_results_destroy(found);
    return handle;
}

static void the_first_search_of_a_large_collection_does_not_load_it(void **state)
{
    test_random random = {6};
    ww_collection_config config = ww_collection_config_default();
    config.name = "docs", config.dim = LONG_DIM;
    (void)state;
    test_rows rows = test_rows_make(&random, LONG_ROWS, LONG_DIM, "id", 0);
    rows.rows.payloads = NULL;
    open_with("first.db", 0);
    CHECK_OK(ww_store_create(store, &config, &docs));
    CHECK_OK(ww_collection_add(docs, &rows.rows));
    const float *wanted = rows.vectors + 2345 * LONG_DIM;
    assert_int_equal(nearest(wanted, 1), 2345);
    assert_int_equal(memory(), 0);
    assert_int_equal(nearest(wanted, 1), 2345);
    assert_true(memory() > 0);
    close_all();
    open_with("first.db", 0);
    CHECK_OK(ww_store_collection(store, "docs", &docs));
    assert_int_equal(nearest(wanted, 5), 2345);
    assert_true(memory() > 0); /* many queries are worth it */
    test_rows_free(&rows);
    close_all();
}

static int32_t stop(int64_t done, int64_t total, void *user)
{
    (void)done, (void)total;
    return ++*(int *)user == 2;
}

static void a_search_in_the_file_can_be_stopped(void **state)
{
    static const float zeros[DIM];
    ww_query query = ww_query_default();
    ww_results *found = NULL;
    ww_cancel *token = NULL;
    int calls = 0;
    (void)state;
    fill("stop.db", WW_L2, WW_VECTOR_F32);
    query.queries = zeros, query.query_count = 1, query.dim = DIM, query.k = 1;
    query.progress = stop, query.progress_user = &calls;
    CHECK_FAILS(WW_CANCELLED, ww_collection_query(docs, &query, &found));
    assert_int_equal(calls, 2); /* between pieces */
    CHECK_OK(ww_cancel_create(&token));
    ww_cancel_ask(token);
    query.progress = NULL, query.cancel = token;
    CHECK_FAILS(WW_CANCELLED, ww_collection_query(docs, &query, &found));
    query.cancel = NULL;
    CHECK_OK(ww_collection_query(docs, &query, &found));
    ww_results_destroy(found);
    ww_cancel_destroy(token);
    close_all();
}

/* A vector that is not as it was written is found by its checksum. */
static void damage_is_found(void **state)
{
    static const float zeros[DIM];
    static char page[1 << 16];
    float wanted[DIM];
    ww_query query = ww_query_default();
    ww_results *found = NULL;
    (void)state;
    fill("damage.db", WW_L2, WW_VECTOR_F32);
    ww_get get = ww_get_default();
    get.count = 1000, get.fetch = WW_FETCH_VECTORS;
    CHECK_OK(ww_collection_get(docs, &get, &found));
    memcpy(wanted, ww_results_vector(found, 0, 999), sizeof wanted);
    ww_results_destroy(found);
    close_all();
    const int file = open(scratch_path("damage.db"), O_RDWR);
    bool done = false;
    for (off_t at = 0; !done && pread(file, page, sizeof page, at) > 0; at += (off_t)(sizeof page - sizeof wanted)) {
        char *place = memmem(page, sizeof page, wanted, sizeof wanted);
        if (place) {
            place[5] ^= 1;
            done = pwrite(file, place, sizeof wanted, at + (place - page)) == sizeof wanted;
        }
    }
    close(file);
    assert_true(done);
    open_with("damage.db", 1);
    CHECK_OK(ww_store_collection(store, "docs", &docs));
    query.queries = zeros, query.query_count = 1, query.dim = DIM, query.k = 1;
    CHECK_FAILS(WW_CORRUPT_FILE, ww_collection_query(docs, &query, &found));
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_bits_are_those_of_rows_in_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_search_of_a_large_collection_does_not_load_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_search_in_the_file_can_be_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damage_is_found, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("store: searches in the file", tests, NULL, NULL);
}
