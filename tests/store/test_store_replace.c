/* Replaces a document while the disk fills up. The collection has texts, an index and a map; a replacement that fails leaves
 * all of them unchanged, and one that succeeds changes all of them. */
#include <warpwave/map.h>

#include "store/faulty_vfs.h"
#include "store/store_support.h"
#include "support/scratch.h"

enum { OTHERS = 120, CHUNKS = 12, DIM = 16 };

static ww_device *device;
static ww_store *store;
static ww_collection *docs;

/* The document: chunks "doc0", "doc1", ... Its first form has 12, its second one 5, and the rest is discarded with it. */
static ww_status write_document(const char *text, uint64_t seed, int64_t count,
                                ww_status (*call)(ww_collection *, const ww_rows *))
{
    test_random random = {seed};
    const char *texts[CHUNKS];
    test_rows chunks = test_rows_make(&random, CHUNKS, DIM, "doc", 0);
    for (int64_t i = 0; i < CHUNKS; i++)
        texts[i] = text;
    chunks.rows.texts = texts;
    chunks.rows.count = count;
    chunks.rows.discard_ids = chunks.rows.ids + count, chunks.rows.discard_count = CHUNKS - count;
    const ww_status status = call(docs, &chunks.rows);
    test_rows_free(&chunks);
    return status;
}

static ww_map *map_of(ww_map_origin *origin)
{
    ww_map *map = NULL;
    ww_map_config config = ww_map_config_default();
    ww_map_info info = ww_map_info_default();
    config.steps = 10;
    CHECK_OK(ww_collection_map(docs, &config, &map));
    CHECK_OK(ww_map_describe(map, &info));
    *origin = info.origin;
    return map;
}

static void make(void)
{
    test_random random = {4};
    ww_collection_config config = ww_collection_config_default();
    ww_ivf_config lists = ww_ivf_config_default();
    ww_store_config how = ww_store_config_default();
    ww_map_origin origin;
    how.synchronous = WW_SYNCHRONOUS_OFF;
    config.name = "docs", config.dim = DIM, config.metric = WW_L2;
    lists.nlist = 8, lists.iterations = 2;
    CHECK_OK(ww_store_open(scratch_path("replace.db"), device, &how, &store));
    CHECK_OK(ww_store_create(store, &config, &docs));
    collection_fill(docs, &random, OTHERS, DIM, "other", 0);
    CHECK_OK(write_document("first form", 5, CHUNKS, ww_collection_add));
    CHECK_OK(ww_collection_build_ivf(docs, &lists));
    ww_map_destroy(map_of(&origin));
}

static void unmake(void)
{
    static const char *const names[] = {"replace.db", "replace.db-wal", "replace.db-shm"};
    ww_collection_destroy(docs);
    ww_store_close(store);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(scratch_path(names[i]));
}

/* How many rows a word of their texts finds. */
static int64_t found_by(const char *word)
{
    ww_results *found = NULL;
    ww_match match = ww_match_default();
    ww_query query = ww_query_default();
    match.texts = &word, match.mode = WW_MATCH_TEXT;
    query.match = &match, query.query_count = 1, query.dim = DIM, query.k = 100, query.fetch = WW_FETCH_IDS;
    CHECK_OK(ww_collection_query(docs, &query, &found));
    const int64_t count = ww_results_count(found, 0);
    ww_results_destroy(found);
    return count;
}

/* Checks that the document's rows are those of one version, in every way to look for them. */
static void check_document(bool replaced)
{
    const int64_t chunks = replaced ? 5 : CHUNKS;
    test_random random = {replaced ? 6 : 5};
    test_rows expected = test_rows_make(&random, CHUNKS, DIM, "doc", 0);
    assert_int_equal(found_by("first"), replaced ? 0 : CHUNKS);
    assert_int_equal(found_by("second"), replaced ? 5 : 0);
    for (int64_t i = 0; i < CHUNKS; i++) {
        int64_t row = -1;
        const ww_status status = ww_collection_find(docs, expected.rows.ids[i], &row);
        assert_int_equal(status, i < chunks ? WW_OK : WW_NOT_FOUND);
        for (int64_t nprobe = 0; i < chunks && nprobe <= 1; nprobe++) { /* exactly, and by the nearest list */
            ww_results *found = NULL;
            ww_query query = ww_query_default();
            query.queries = expected.vectors + i * DIM, query.query_count = 1, query.dim = DIM, query.k = 1;
            query.fetch = WW_FETCH_IDS, query.nprobe = nprobe;
            CHECK_OK(ww_collection_query(docs, &query, &found));
            assert_string_equal(ww_results_id(found, 0, 0), expected.rows.ids[i]);
            assert_true(ww_results_scores(found, 0)[0] == 0);
            ww_results_destroy(found);
        }
    }
    test_rows_free(&expected);
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

/* After a failure the map is still that of the rows, and after a replacement it is updated. */
static void check_map(bool replaced)
{
    ww_map_origin origin;
    ww_map *map = map_of(&origin);
    assert_string_equal(ww_map_origin_name(origin), ww_map_origin_name(replaced ? WW_MAP_GROWN : WW_MAP_KEPT));
    assert_int_equal(ww_map_count(map), OTHERS + (replaced ? 5 : CHUNKS));
    ww_map_destroy(map);
}

static void every_failure_in_turn(vfs_fault fault)
{
    bool tripped = true;
    int64_t failures = 0;
    make();
    for (int64_t n = 1; tripped; n++) {
        vfs_arm(fault, n);
        const ww_status status = write_document("second form", 6, 5, ww_collection_upsert);
        tripped = vfs_disarm();
        if (status != WW_OK && (!tripped || status != WW_IO_ERROR))
            fail_msg("call %lld: %s: %s", (long long)n, ww_status_name(status), ww_error_message());
        check_document(status == WW_OK);
        check_map(status == WW_OK);
        failures += status != WW_OK;
        if (status == WW_OK && tripped) { /* it did without what failed */
            unmake();
            make();
        }
    }
    assert_true(failures > 5);
    print_message("%lld failures\n", (long long)failures);
    unmake();
}

static void a_document_replaced_on_a_disk_that_fills_up_stays_whole(void **state)
{
    (void)state;
    every_failure_in_turn(VFS_STAYS_FULL);
}

static void a_document_replaced_with_a_write_that_fails_stays_whole(void **state)
{
    (void)state;
    every_failure_in_turn(VFS_FULL);
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
        cmocka_unit_test_setup_teardown(a_document_replaced_on_a_disk_that_fills_up_stays_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(a_document_replaced_with_a_write_that_fails_stays_whole, setup, teardown),
    };
    vfs_install();
    const int failed = cmocka_run_group_tests_name("store: replaced documents", tests, NULL, NULL);
    vfs_forget();
    return failed;
}
