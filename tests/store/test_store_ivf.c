/* The index of a collection in a store: its lists are those of the same rows in memory, it exists after the file is opened
 * again, and damage to it never affects the rows. */
#include <warpwave/ranking.h>

#include "store/indexed_store.h"

/* ---- lists --------------------------------------------------------------------------------------------------------------- */

static void lists_of_a_store_are_those_of_the_same_rows_in_memory(void **state)
{
    static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
    static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16, WW_VECTOR_I8, WW_VECTOR_U8};
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        scene *s = indexed_scene(metrics[i % 3], types[i]);
        check_tables(s);
        check_answers(s);
        for (int64_t done = 0; done < EXTRA; done += 100) { /* lists are split */
            add(s->stored, s->rows + (COUNT + done) * DIM, 100);
            add(s->memory, s->rows + (COUNT + done) * DIM, 100);
            check_tables(s);
            check_answers(s);
        }
        assert_true(s->memory->index->lists_split > 0);
        CHECK_OK(ww_store_check(s->store, NULL, NULL));
        scene_free(s);
    }
}

static void a_file_that_is_opened_again_has_the_index(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    ww_ivf_info before = ww_ivf_info_default(), after = ww_ivf_info_default(), memory = ww_ivf_info_default();
    CHECK_OK(ww_collection_calibrate(s->stored, NULL));
    CHECK_OK(ww_collection_calibrate(s->memory, NULL));
    add(s->stored, s->rows + COUNT * DIM, EXTRA);
    add(s->memory, s->rows + COUNT * DIM, EXTRA);
    CHECK_OK(ww_collection_describe_ivf(s->stored, &before));
    reopen(s);
    check_tables(s);
    check_answers(s);
    CHECK_OK(ww_collection_describe_ivf(s->stored, &after));
    CHECK_OK(ww_collection_describe_ivf(s->memory, &memory));
    before.bytes = after.bytes = memory.bytes;
    assert_true(after.calibration_time > 0 && after.calibration_time <= memory.calibration_time);
    memory.calibration_time = after.calibration_time;
    assert_memory_equal(&before, &after, sizeof after);
    assert_memory_equal(&memory, &after, sizeof after);
    assert_int_equal(after.rows_added, EXTRA);
    assert_int_equal(after.calibration_rows_added, EXTRA);
    scene_free(s);
}

static void a_calibration_is_kept(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_COSINE, WW_VECTOR_F32);
    ww_query query = ww_query_default();
    ww_results *found[2] = {NULL, NULL};
    query.queries = s->queries, query.query_count = QUERIES, query.dim = DIM, query.k = K, query.recall = 0.9f;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(s->stored, &query, &found[0]));
    CHECK_OK(ww_collection_calibrate(s->stored, NULL));
    CHECK_OK(ww_collection_calibrate(s->memory, NULL));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(ww_collection_query(s->stored, &query, &found[0]));
        CHECK_OK(ww_collection_query(s->memory, &query, &found[1]));
        check_same_results(found[0], found[1]);
        ww_results_destroy(found[0]);
        ww_results_destroy(found[1]);
        reopen(s);
    }
    scene_free(s);
}

/* What one device has built and another one writes to. */
static void a_backup_has_the_index_and_its_calibration(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    ww_calibrate_config asked = ww_calibrate_config_default();
    ww_ivf_info info = ww_ivf_info_default();
    ww_store *store = NULL;
    ww_collection *copy = NULL;
    char *copied = strdup(scratch_path("backup.db"));
    asked.query_count = 299;
    CHECK_OK(ww_collection_calibrate(s->stored, &asked));
    CHECK_OK(ww_store_backup(s->store, copied, NULL, NULL));
    CHECK_OK(ww_store_open(copied, cpu, NULL, &store));
    CHECK_OK(ww_store_check(store, NULL, NULL));
    CHECK_OK(ww_store_collection(store, "docs", &copy));
    CHECK_OK(ww_collection_describe_ivf(copy, &info));
    assert_true(info.nlist >= NLIST && info.calibration_queries == 299);
    for (int64_t nprobe = 1; nprobe < NLIST; nprobe += 4) {
        ww_results *here = query_lists(s->stored, s->queries, QUERIES, K, nprobe);
        ww_results *there = query_lists(copy, s->queries, QUERIES, K, nprobe);
        check_same_results(here, there);
        ww_results_destroy(here);
        ww_results_destroy(there);
    }
    add(copy, s->rows + COUNT * DIM, EXTRA); /* which splits lists there, and not here */
    check_exact(copy, s->queries);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    check_tables(s);
    ww_collection_destroy(copy);
    ww_store_close(store);
    free(copied);
    scene_free(s);
}

static void a_device_reads_the_lists_of_a_store(void **state)
{
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    ww_collection_destroy(s->stored);
    ww_store_close(s->store);
    CHECK_OK(ww_store_open(path, *state, NULL, &s->store));
    CHECK_OK(ww_store_collection(s->store, "docs", &s->stored));
    check_answers(s);
    add(s->stored, s->rows + COUNT * DIM, EXTRA);
    add(s->memory, s->rows + COUNT * DIM, EXTRA);
    assert_true(s->memory->index->lists_split > 0);
    check_answers(s);
    index_build(s->memory, NLIST / 2);
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = NLIST / 2, config.iterations = 2, config.seed = 7;
    ww_store *other = NULL;
    ww_collection *writer = NULL;
    open_store(&other);
    CHECK_OK(ww_store_collection(other, "docs", &writer));
    CHECK_OK(ww_collection_build_ivf(writer, &config)); /* with another config, which has fewer lists */
    ww_collection_destroy(writer);
    ww_store_close(other);
    check_answers(s);
    scene_free(s);
}

/* Hits of some lists that are ranked by something else are not those of an exact search in that order. */
static void hits_that_are_ranked_again_are_not_proven(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    ww_results *some = query_lists(s->stored, s->queries, QUERIES, K, 1),
               *exact = query_lists(s->stored, s->queries, QUERIES, K, 0);
    ww_results *fused = NULL;
    assert_true(ww_results_proven(some, 0) > 0);
    CHECK_OK(ww_results_fuse((const ww_results *const[]){some, some}, 2, NULL, &fused));
    assert_int_equal(ww_results_proven(fused, 0), 0);
    ww_results_destroy(fused);
    CHECK_OK(ww_results_fuse((const ww_results *const[]){exact, exact}, 2, NULL, &fused));
    assert_int_equal(ww_results_proven(fused, 0), K);
    ww_results_destroy(fused);
    ww_results_destroy(some);
    ww_results_destroy(exact);
    scene_free(s);
}

/* ---- damage -------------------------------------------------------------------------------------------------------------- */

static void damage_to_the_index_never_harms_the_rows(void **state)
{
    static const char *const edits[] = {
        "DELETE FROM docs_ivf",
        "INSERT INTO docs_ivf SELECT * FROM docs_ivf",
        "UPDATE docs_ivf SET nlist = 1000000000",
        "UPDATE docs_ivf SET nlist = nlist - 1",
        "DROP TABLE docs_ivf_lists",
        "DROP TABLE docs_ivf_rows",
        "DELETE FROM docs_ivf_lists WHERE list = 3",
        "UPDATE docs_ivf_lists SET rows = rows + 1 WHERE list = 2",
        "UPDATE docs_ivf_lists SET farthest = NULL WHERE list = 2",
        "UPDATE docs_ivf_centroids SET centroid = x'00' WHERE list = 1",
        "UPDATE docs_ivf_centroids SET centroid = replace(zeroblob(24), x'00', x'ffffffff') WHERE list = 1",
        "DELETE FROM docs_ivf_centroids WHERE list = 1",
        "DELETE FROM docs_ivf_rows WHERE place = 9",
        "UPDATE docs_ivf_rows SET list = 99 WHERE place = 9",
        "UPDATE docs_ivf_rows SET place = 100000 WHERE place = 9",
    };
    (void)state;
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
        ww_results *found = NULL;
        ww_query query = ww_query_default();
        query.queries = s->queries, query.query_count = QUERIES, query.dim = DIM, query.k = K;
        edit(edits[i]);
        reopen(s);
        CHECK_OK(ww_collection_query(s->stored, &query, &found));
        ww_results_destroy(found);
        found = NULL;
        query.nprobe = 3;
        CHECK_FAILS(WW_CORRUPT_FILE, ww_collection_query(s->stored, &query, &found));
        assert_non_null(strstr(ww_error_message(), "build the index again"));
        CHECK_FAILS(WW_CORRUPT_FILE, ww_store_check(s->store, NULL, NULL));
        if (i % 2 == 0)
            index_build(s->stored, NLIST);
        else
            CHECK_OK(ww_collection_drop_ivf(s->stored));
        CHECK_OK(ww_store_check(s->store, NULL, NULL));
        add(s->stored, s->rows, 10);
        scene_free(s);
    }
}

static void wrong_bounds_are_found_by_a_check(void **state)
{
    (void)state;
    scene *s = indexed_scene(WW_L2, WW_VECTOR_F32);
    edit("UPDATE docs_ivf_lists SET farthest = nearest, nearest = nearest WHERE rows > 5");
    CHECK_FAILS(WW_CORRUPT_FILE, ww_store_check(s->store, NULL, NULL));
    assert_non_null(strstr(ww_error_message(), "does not bound"));
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_of_a_store_are_those_of_the_same_rows_in_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_opened_again_has_the_index, setup, teardown),
        cmocka_unit_test_setup_teardown(a_calibration_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backup_has_the_index_and_its_calibration, setup, teardown),
        cmocka_unit_test_setup_teardown(hits_that_are_ranked_again_are_not_proven, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_to_the_index_never_harms_the_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_bounds_are_found_by_a_check, setup, teardown),
    };
    const struct CMUnitTest on_devices[] = {cmocka_unit_test(a_device_reads_the_lists_of_a_store)};
    const int failed = cmocka_run_group_tests_name("store: ivf", tests, NULL, NULL);
    void *state = NULL;
    (void)setup(&state);
    const int failed_there = RUN_ON_EVERY_DEVICE("store: ivf", on_devices);
    (void)teardown(&state);
    return failed + failed_there;
}
