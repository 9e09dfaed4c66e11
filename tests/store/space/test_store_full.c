/* A compact that fails changes nothing, at whatever point it fails: rows keep their numbers, so that an older mask admits the
 * same rows, and the file can be written as before. */
#include "store/faulty_vfs.h"
#include "store/store_support.h"
#include "support/scratch.h"

enum { ROWS = 300, DIM = 64 };

typedef struct gaps {
    ww_device *device;
    char *path;
    ww_store *store;
    ww_collection *docs;
} gaps;

/* A collection in which every third row was removed. */
static gaps gaps_make(void)
{
    gaps g = {.path = strdup(scratch_path("full.db"))};
    test_random random = {12};
    ww_collection_config config = ww_collection_config_default();
    config.name = "docs", config.dim = DIM, config.metric = WW_L2;
    CHECK_OK(ww_device_open("cpu", &g.device));
    CHECK_OK(ww_store_open(g.path, g.device, NULL, &g.store));
    CHECK_OK(ww_store_create(g.store, &config, &g.docs));
    test_rows rows = test_rows_make(&random, ROWS, DIM, "r", 0);
    CHECK_OK(ww_collection_add(g.docs, &rows.rows));
    for (int64_t i = 0; i < ROWS; i += 3)
        CHECK_OK(ww_collection_remove(g.docs, &rows.rows.ids[i], 1));
    test_rows_free(&rows);
    return g;
}

static void gaps_free(gaps *g)
{
    ww_collection_destroy(g->docs);
    ww_store_close(g->store);
    ww_device_close(g->device);
    for (int i = 0; i < 3; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s%s", g->path, i == 0 ? "" : i == 1 ? "-wal" : "-shm");
        unlink(name);
    }
    free(g->path);
}

/* Row 100 is "r100" before a compact, and "r151" after it. */
static void check_numbers(ww_collection *docs, bool compacted)
{
    const float zeros[DIM] = {0};
    uint64_t mask[(ROWS + 63) / 64] = {0};
    ww_results *found = NULL;
    ww_query query = ww_query_default();
    int64_t row = -1;
    mask[100 / 64] = UINT64_C(1) << (100 % 64);
    query.queries = zeros, query.query_count = 1, query.dim = DIM, query.k = 3, query.fetch = WW_FETCH_IDS;
    query.mask = mask, query.mask_rows = 150;
    CHECK_OK(ww_collection_query(docs, &query, &found));
    assert_int_equal(ww_results_count(found, 0), 1);
    assert_string_equal(ww_results_id(found, 0, 0), compacted ? "r151" : "r100");
    ww_results_destroy(found);
    CHECK_OK(ww_collection_find(docs, "r299", &row));
    assert_int_equal(row, compacted ? 199 : 299);
}

static void every_failure_in_turn(vfs_fault fault)
{
    bool tripped = true;
    int64_t failures = 0;
    gaps g = gaps_make();
    for (int64_t n = 1; tripped; n++) {
        vfs_arm(fault, n);
        const ww_status status = ww_collection_compact(g.docs, NULL, NULL);
        tripped = vfs_disarm();
        if (status != WW_OK && (!tripped || status != WW_IO_ERROR))
            fail_msg("call %lld: %s: %s", (long long)n, ww_status_name(status), ww_error_message());
        check_numbers(g.docs, status == WW_OK);
        failures += status != WW_OK;
        if (status == WW_OK && tripped) { /* it did without what failed */
            CHECK_OK(ww_store_check(g.store, NULL, NULL));
            gaps_free(&g);
            g = gaps_make();
        }
    }
    CHECK_OK(ww_store_check(g.store, NULL, NULL));
    assert_true(failures > 20);
    print_message("%lld failures\n", (long long)failures);
    gaps_free(&g);
}

static void a_compact_on_a_disk_that_fills_up_changes_nothing(void **state)
{
    (void)state;
    every_failure_in_turn(VFS_STAYS_FULL);
}

static void a_compact_with_a_write_that_fails_changes_nothing(void **state)
{
    (void)state;
    every_failure_in_turn(VFS_FULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_compact_on_a_disk_that_fills_up_changes_nothing, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_compact_with_a_write_that_fails_changes_nothing, scratch_setup, scratch_teardown),
    };
    vfs_install();
    const int failed = cmocka_run_group_tests_name("store: full disks", tests, NULL, NULL);
    vfs_forget();
    return failed;
}
