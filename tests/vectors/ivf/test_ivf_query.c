/* Queries by an index: they find the best rows of the lists that they read, to the bit, with filters and masks, too; and a
 * recall reads as many lists as it needs. */
#include <math.h>
#include <time.h>

#include "arithmetic/canon.h"
#include "vectors/ivf/indexed_scene.h"

static void reading_all_lists_gives_the_bits_of_the_exact_search(void **state)
{
    for (int m = 0; m < METRICS; m++)
        for (int t = 0; t < TYPES; t++) {
            if (!is_tried(*state, m, t) || (device_is_slow(*state) && t < 3))
                continue;
            const ww_collection_config config = config_of(metrics[m], types[t]);
            scene *s = scene_of(*state, &config);
            const int64_t nlist = s->collection->index->nlist;
            ww_results *exact = query_lists(s->collection, s->queries, QUERIES, K, 0);
            ww_results *all = query_lists(s->collection, s->queries, QUERIES, K, nlist);
            ww_results *more = query_lists(s->collection, s->queries, QUERIES, K, nlist + 5);
            check_same_results(exact, all);
            check_same_results(exact, more);
            for (int64_t q = 0; q < QUERIES; q++)
                assert_int_equal(ww_results_proven(all, q), K);
            ww_results_destroy(exact);
            ww_results_destroy(all);
            ww_results_destroy(more);
            scene_free(s);
        }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The keys of the best rows of the nearest lists, by ww_score() and a full sort; returns how many rows there are. */
static int64_t brute_force(const scene *s, const float *query, int64_t nprobe, const uint64_t *mask, uint64_t keys[COUNT])
{
    const ivf *index = s->collection->index;
    uint64_t order[COUNT];
    int64_t count = 0;
    float score;
    for (int64_t l = 0; l < index->nlist; l++) {
        CHECK_OK(ww_score(s->collection->metric, query, index->centroids + l * DIM, DIM, &score));
        order[l] = canon_make_key(index->metric, score, (uint32_t)l);
    }
    qsort(order, (size_t)index->nlist, sizeof *order, by_value);
    for (int64_t i = 0; i < index->nlist && (i < nprobe || count < K); i++) {
        const ivf_list *list = &index->lists[canon_key_row(order[i])];
        for (int64_t r = 0; r < list->count; r++) {
            const uint32_t row = list->rows[r];
            if ((mask && !(mask[row / 64] >> row % 64 & 1)) || !store_is_live(&s->collection->store, row))
                continue;
            CHECK_OK(ww_score(s->collection->metric, query, s->rows + (int64_t)row * DIM, DIM, &score));
            keys[count++] = canon_make_key(index->metric, score, row);
        }
    }
    qsort(keys, (size_t)count, sizeof *keys, by_value);
    return count;
}

static void check_query(const scene *s, int64_t nprobe, const uint64_t *mask)
{
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
    ww_query asked = ww_query_default();
    asked.queries = s->queries;
    asked.query_count = QUERIES;
    asked.dim = DIM;
    asked.k = K;
    asked.nprobe = nprobe;
    asked.mask = mask;
    asked.mask_rows = mask ? COUNT : 0;
    CHECK_OK(ww_collection_search(s->collection, &asked, rows, scores));
    for (int64_t q = 0; q < QUERIES; q++) {
        uint64_t keys[COUNT];
        const int64_t count = brute_force(s, s->queries + q * DIM, nprobe, mask, keys);
        assert_true(count >= K);
        for (int64_t i = 0; i < K; i++) {
            const float score = canon_key_score((int32_t)s->collection->metric, keys[i]);
            assert_int_equal(rows[q * K + i], canon_key_row(keys[i]));
            assert_memory_equal(&scores[q * K + i], &score, sizeof score);
        }
    }
    for (int64_t q = 0; q < QUERIES; q += 2) { /* one by one: the same bits */
        int64_t one_rows[K];
        float one_scores[K];
        asked.queries = s->queries + q * DIM;
        asked.query_count = 1;
        CHECK_OK(ww_collection_search(s->collection, &asked, one_rows, one_scores));
        assert_memory_equal(one_rows, rows + q * K, sizeof one_rows);
        assert_memory_equal(one_scores, scores + q * K, sizeof one_scores);
    }
}

static void a_query_finds_the_best_rows_of_the_lists_it_reads(void **state)
{
    const char *gone[] = {"3", "77", "300", "301", "349"};
    uint64_t mask[(COUNT + 63) / 64];
    test_random random = {3};
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
        mask[i] = random_bits(&random) | random_bits(&random);
    for (int m = 0; m < METRICS; m++)
        for (int t = 0; t < TYPES; t++) {
            if (!is_tried(*state, m, t))
                continue;
            const ww_collection_config config = config_of(metrics[m], types[t]);
            scene *s = scene_of(*state, &config);
            check_query(s, 3, mask);
            CHECK_OK(ww_collection_remove(s->collection, gone, 5));
            check_query(s, 1 + t % 2, NULL);
            scene_free(s);
        }
}

/* The k best by nprobe lists, and by all rows. */
static void check_against_exact(ww_collection *c, const float *queries, int64_t count, int32_t k)
{
    ww_results *lists = query_lists(c, queries, count, k, 1), *exact = query_lists(c, queries, count, k, 0);
    check_same_results(lists, exact);
    ww_results_destroy(lists);
    ww_results_destroy(exact);
}

static void a_query_for_all_rows_reads_all_lists(void **state)
{
    ww_device *device = *state;
    const char *gone[] = {"3", "77", "300", "301", "349"};
    for (int m = 0; m < METRICS; m++)
        for (int t = 0; t < TYPES; t++) {
            if (!is_tried(device, m, t))
                continue;
            const ww_collection_config config = config_of(metrics[m], types[t]);
            scene *s = scene_of(device, &config);
            check_against_exact(s->collection, s->queries, 1, COUNT);
            CHECK_OK(ww_collection_remove(s->collection, gone, 5));
            check_against_exact(s->collection, s->queries, QUERIES, COUNT);
            device->tuning.screen_list_capacity = 20; /* fewer than are kept: queries are asked again */
            check_query(s, 2, NULL);
            device->tuning.screen_list_capacity = 0;
            scene_free(s);
        }
}

static void a_batch_gives_the_bits_of_the_cpu(void **state)
{
    enum { BATCH = 37 }; /* some lists have more than eight queries */
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    for (int64_t nprobe = 1; nprobe < NLIST; nprobe += 4) {
        ww_results *here = query_lists(s->collection, s->rows, BATCH, K, nprobe);
        ww_results *there = query_lists(s->on_cpu, s->rows, BATCH, K, nprobe);
        check_same_results(here, there);
        for (int64_t q = 0; q < BATCH; q++)
            assert_int_equal(ww_results_proven(here, q), ww_results_proven(there, q));
        ww_results_destroy(here);
        ww_results_destroy(there);
    }
    scene_free(s);
}

static void rows_without_codes_are_read_too(void **state)
{
    ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    config.screen = WW_SCREEN_NONE;
    scene *s = scene_of(*state, &config);
    check_query(s, 1, NULL);
    scene_free(s);
    config.screen = WW_SCREEN_INT8;
    config.rows = WW_ROWS_HOST;
    s = scene_of(*state, &config);
    check_query(s, 1, NULL);
    scene_free(s);
}

static void a_filtered_query_finds_as_many_rows_as_there_are(void **state)
{
    const ww_collection_config config = config_of(WW_COSINE, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    for (int64_t admitted = 1; admitted <= 150; admitted = admitted * 6 + 1) {
        uint64_t mask[(COUNT + 63) / 64] = {0};
        int64_t rows[QUERIES * K], matching = 0;
        float scores[QUERIES * K];
        for (int64_t i = 0; i < admitted; i++) {
            const int64_t row = i * 2 % COUNT;
            matching += !(mask[row / 64] >> row % 64 & 1);
            mask[row / 64] |= UINT64_C(1) << row % 64;
        }
        ww_query asked = ww_query_default();
        asked.queries = s->queries;
        asked.query_count = QUERIES;
        asked.dim = DIM;
        asked.k = K;
        asked.nprobe = 1;
        asked.mask = mask;
        asked.mask_rows = COUNT;
        CHECK_OK(ww_collection_search(s->collection, &asked, rows, scores));
        for (int64_t q = 0; q < QUERIES; q++) {
            int64_t found = 0;
            for (int64_t i = 0; i < K && rows[q * K + i] >= 0; i++, found++)
                assert_true(mask[rows[q * K + i] / 64] >> rows[q * K + i] % 64 & 1);
            assert_int_equal(found, matching < K ? matching : K);
        }
    }
    scene_free(s);
}

static void the_statistics_count_the_rows_that_were_read(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
    ww_search_stats stats = ww_search_stats_default();
    ww_query asked = ww_query_default();
    asked.queries = s->queries;
    asked.query_count = QUERIES;
    asked.dim = DIM;
    asked.k = K;
    asked.stats = &stats;
    asked.nprobe = 2;
    CHECK_OK(ww_collection_search(s->collection, &asked, rows, scores));
    assert_true(stats.lists_read >= 2 * QUERIES && stats.list_rows_read >= QUERIES * K);
    assert_true(stats.list_rows_read < QUERIES * COUNT);
    assert_int_equal(stats.list_bytes_read, stats.list_rows_read * (64 + 16));
    const backend *here = s->collection->device->backend;
    if (!here->on_host) { /* nothing else was read; a CPU in a group scores rows of lists without a screen */
        assert_non_null(s->collection->index->held);
        assert_true(stats.rows_screened == stats.list_rows_read ||
                    (here->member_id && stats.rows_screened < stats.list_rows_read));
    }
    asked.nprobe = 0;
    CHECK_OK(ww_collection_search(s->collection, &asked, rows, scores));
    assert_int_equal(stats.lists_read, 0);
    scene_free(s);
}

static void a_recall_reads_enough_lists(void **state)
{
    for (int m = 0; m < METRICS; m++) {
        if (!is_tried(*state, m, 1))
            continue;
        const ww_collection_config config = config_of(metrics[m], WW_VECTOR_F32);
        scene *s = scene_of(*state, &config);
        ww_ivf_info info = ww_ivf_info_default();
        ww_calibrate_config asked = ww_calibrate_config_default();
        asked.query_count = 299;
        asked.k = 5;
        CHECK_OK(ww_collection_calibrate(s->collection, &asked));
        CHECK_OK(ww_collection_calibrate(s->on_cpu, &asked));
        CHECK_OK(ww_collection_describe_ivf(s->collection, &info));
        assert_int_equal(info.calibration_queries, 299);
        const ivf *index = s->collection->index;
        assert_memory_equal(index->calibration.rules, s->on_cpu->index->calibration.rules, 5 * sizeof(ivf_rule));
        for (int64_t r = 0; r < 40; r++) { /* all rows could have been drawn; with few left over most were */
            ww_query query = ww_query_default();
            ww_results *some = NULL;
            query.queries = s->rows + r * DIM;
            query.query_count = 1;
            query.dim = DIM;
            query.k = 6;
            query.recall = 0.6f;
            CHECK_OK(ww_collection_query(s->on_cpu, &query, &some));
            ww_results *exact = query_lists(s->on_cpu, s->rows + r * DIM, 1, 6, 0);
            int64_t found = 0;
            for (int64_t i = 0; i < 6; i++)
                for (int64_t j = 0; j < 6; j++)
                    found += ww_results_rows(some, 0)[i] == ww_results_rows(exact, 0)[j];
            assert_true(found >= 3);
            ww_results_destroy(some);
            ww_results_destroy(exact);
        }
        scene_free(s);
    }
}

static void a_calibration_says_when_it_was_and_what_has_changed_since(void **state)
{
    static const char *const ids[] = {"3", "5", "new", "newer", "newest"}, *const gone[] = {"7", "8", "new"};
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    const time_t before = time(NULL);
    scene *s = scene_of(*state, &config);
    ww_collection *c = s->collection;
    ww_ivf_info info = ww_ivf_info_default();
    ww_rows rows = ww_rows_default();
    CHECK_OK(ww_collection_remove(c, (const char *const[]){"1"}, 1)); /* not counted: it was before */
    CHECK_OK(ww_collection_describe_ivf(c, &info));
    assert_true(info.calibration_time == 0 && info.calibration_rows_removed == 0);
    CHECK_OK(ww_collection_calibrate(c, NULL));
    rows.count = 5, rows.dim = DIM, rows.vectors = s->rows, rows.ids = ids;
    CHECK_OK(ww_collection_upsert(c, &rows)); /* two are replaced */
    CHECK_OK(ww_collection_remove(c, gone, 3));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(ww_collection_describe_ivf(c, &info));
        assert_true(info.calibration_time >= before && info.calibration_time <= time(NULL));
        assert_int_equal(info.calibration_rows_added, 5);
        assert_int_equal(info.calibration_rows_removed, 5);
        CHECK_OK(ww_collection_compact(c, NULL, NULL));
    }
    scene_free(s);
}

static void a_calibration_refuses_a_recall_that_it_cannot_promise(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    ww_calibrate_config asked = ww_calibrate_config_default();
    ww_query query = ww_query_default();
    ww_results *results = NULL;
    query.queries = s->queries;
    query.query_count = 1;
    query.dim = DIM;
    query.k = 3;
    query.recall = 0.5f;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(s->on_cpu, &query, &results)); /* not calibrated */
    asked.query_count = 298;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_calibrate(s->on_cpu, &asked));
    asked.query_count = COUNT + 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_calibrate(s->on_cpu, &asked));
    asked.query_count = 299;
    asked.k = COUNT;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_calibrate(s->on_cpu, &asked));
    asked.k = 4;
    asked.recall = 1.5f;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_calibrate(s->on_cpu, &asked));
    asked.recall = NAN;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_calibrate(s->on_cpu, &asked));
    asked.recall = 0.0f;
    asked.queries = s->rows;
    asked.query_stride = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_calibrate(s->on_cpu, &asked));
    asked.query_stride = 0;
    CHECK_OK(ww_collection_calibrate(s->on_cpu, &asked));
    CHECK_OK(ww_collection_query(s->on_cpu, &query, &results));
    ww_results_destroy(results);
    query.recall = 1.5f;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_query(s->on_cpu, &query, &results));
    query.recall = NAN;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_query(s->on_cpu, &query, &results));
    query.recall = 0.5f;
    query.nprobe = 2;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(s->on_cpu, &query, &results));
    s->rows[77] = INFINITY;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_calibrate(s->on_cpu, &asked));
    CHECK_OK(ww_collection_drop_ivf(s->on_cpu));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_calibrate(s->on_cpu, NULL));
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_all_lists_gives_the_bits_of_the_exact_search),
        cmocka_unit_test(a_query_finds_the_best_rows_of_the_lists_it_reads),
        cmocka_unit_test(a_query_for_all_rows_reads_all_lists),
        cmocka_unit_test(a_batch_gives_the_bits_of_the_cpu),
        cmocka_unit_test(rows_without_codes_are_read_too),
        cmocka_unit_test(a_filtered_query_finds_as_many_rows_as_there_are),
        cmocka_unit_test(the_statistics_count_the_rows_that_were_read),
        cmocka_unit_test(a_recall_reads_enough_lists),
        cmocka_unit_test(a_calibration_says_when_it_was_and_what_has_changed_since),
        cmocka_unit_test(a_calibration_refuses_a_recall_that_it_cannot_promise),
    };
    return RUN_ON_EVERY_DEVICE("ivf_query", tests);
}
