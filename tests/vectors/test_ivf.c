/* The index: its lists are the same on every device, a query finds the best rows of the lists it reads to the bit, and the
 * index follows every write. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "support/data/indexed.h"
#include "support/devices.h"
#include "vectors/ivf/ivf.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16, WW_VECTOR_I8, WW_VECTOR_U8};
enum { METRICS = 3, TYPES = 5, DIM = 40, COUNT = 352, QUERIES = 3, K = 10, NLIST = 12 };

typedef struct scene {
    ww_device *cpu;
    ww_collection *collection; /* on the device under test */
    ww_collection *on_cpu;     /* the same on the CPU */
    float rows[COUNT * DIM];
    float queries[QUERIES * DIM];
} scene;

static ww_collection_config config_of(ww_metric metric, ww_vector_type type)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "test";
    config.dim = DIM;
    config.metric = metric;
    config.type = type;
    return config;
}

static scene *scene_of(ww_device *device, const ww_collection_config *config)
{
    test_random random = {5 + (uint64_t)config->type};
    scene *s = calloc(1, sizeof *s);
    clustered_rows(&random, s->rows, COUNT, DIM, 9, config->type);
    clustered_rows(&random, s->queries, QUERIES, DIM, 9, config->type);
    memcpy(s->queries, s->rows + 77 * DIM, 2 * DIM * sizeof *s->queries); /* some are rows */
    CHECK_OK(ww_device_open("cpu", &s->cpu));
    s->collection = collection_of(device, config, s->rows, COUNT);
    s->on_cpu = collection_of(s->cpu, config, s->rows, COUNT);
    index_build(s->collection, NLIST);
    index_build(s->on_cpu, NLIST);
    return s;
}

static void scene_free(scene *s)
{
    ww_collection_destroy(s->collection);
    ww_collection_destroy(s->on_cpu);
    ww_device_close(s->cpu);
    free(s);
}

/* On a slow device each type is tried with one metric. */
static bool is_tried(ww_device *device, int metric, int type)
{
    return !device_is_slow(device) || test_is_long() || metric == type % METRICS;
}

/* ---- lists ------------------------------------------------------------------------------------------------------------------
 */

static void lists_are_the_same_on_every_device(void **state)
{
    for (int m = 0; m < METRICS; m++)
        for (int t = 0; t < TYPES; t++) {
            if (!is_tried(*state, m, t) || (device_is_slow(*state) && t > 2))
                continue;
            const ww_collection_config config = config_of(metrics[m], types[t]);
            scene *s = scene_of(*state, &config);
            check_index_is_whole(s->collection);
            check_same_index(s->collection, s->on_cpu);
            scene_free(s);
        }
}

/* Lengths at the limits of what bounds hold for, in steps that roundings of the canonical length cannot tell apart. */
static void lengths_out_of_range_are_found_alike_on_every_device(void **state)
{
    static const float limits[] = {0x1p-40f, 0x1p60f};
    const ww_collection_config config = config_of(WW_COSINE, WW_VECTOR_F32);
    for (int limit = 0; limit < 2; limit++)
        for (int step = -3; step <= 3; step++) {
            scene *s = calloc(1, sizeof *s);
            test_random random = {29};
            clustered_rows(&random, s->rows, COUNT, DIM, 9, WW_VECTOR_F32);
            float *row = s->rows + 100 * DIM, length = limits[limit] * (1.0f + (float)step * 0x1p-22f);
            memset(row, 0, DIM * sizeof *row);
            row[0] = step == 3 ? 4.0f * length : step == -3 ? length / 4.0f : 0.6f * length;
            row[1] = 0.8f * length;
            CHECK_OK(ww_device_open("cpu", &s->cpu));
            s->collection = collection_of(*state, &config, s->rows, COUNT);
            s->on_cpu = collection_of(s->cpu, &config, s->rows, COUNT);
            index_build(s->collection, NLIST);
            index_build(s->on_cpu, NLIST);
            check_same_index(s->collection, s->on_cpu);
            if (step == 3 || step == -3)
                assert_int_equal(proof_extremes_of(s->collection->index).unbounded, (step > 0) == (limit == 1));
            scene_free(s);
        }
}

static void rows_are_in_the_list_of_their_nearest_centroid(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    const ivf *index = s->collection->index;
    assert_int_equal(index->lists_split, 0); /* else rows of other lists may be nearer to the new ones */
    for (int64_t l = 0; l < index->nlist; l++)
        for (int64_t i = 0; i < index->lists[l].count; i++) {
            const float *row = s->rows + (int64_t)index->lists[l].rows[i] * DIM;
            float mine, other;
            CHECK_OK(ww_score(WW_L2, row, index->centroids + l * DIM, DIM, &mine));
            assert_true(mine <= index->lists[l].farthest && mine >= index->lists[l].nearest);
            for (int64_t o = 0; o < index->nlist; o++) {
                CHECK_OK(ww_score(WW_L2, row, index->centroids + o * DIM, DIM, &other));
                assert_true(other > mine || (other == mine && o >= l));
            }
        }
    scene_free(s);
}

static void another_seed_gives_other_lists(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    ww_ivf_config other = ww_ivf_config_default();
    other.nlist = NLIST;
    other.sample_rows = 300;
    CHECK_OK(ww_collection_build_ivf(s->on_cpu, &other));
    const size_t bytes = NLIST * DIM * sizeof(float);
    float *before = malloc(bytes);
    memcpy(before, s->on_cpu->index->centroids, bytes);
    CHECK_OK(ww_collection_build_ivf(s->on_cpu, &other));
    assert_memory_equal(before, s->on_cpu->index->centroids, bytes);
    other.seed = 1;
    CHECK_OK(ww_collection_build_ivf(s->on_cpu, &other));
    assert_memory_not_equal(before, s->on_cpu->index->centroids, bytes);
    free(before);
    scene_free(s);
}

static void more_iterations_never_raise_the_loss(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    double last = INFINITY;
    for (int32_t i = 1; i < (device_is_slow(*state) ? 4 : 6); i++) {
        ww_ivf_config asked = ww_ivf_config_default();
        ww_ivf_info info = ww_ivf_info_default();
        asked.nlist = NLIST;
        asked.iterations = i; /* the sample is all rows */
        CHECK_OK(ww_collection_build_ivf(s->on_cpu, &asked));
        CHECK_OK(ww_collection_describe_ivf(s->on_cpu, &info));
        assert_true(info.loss > 0.0 && info.loss <= last);
        last = info.loss;
    }
    scene_free(s);
}

/* ---- queries ----------------------------------------------------------------------------------------------------------------
 */

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

static void the_statistics_say_what_was_read(void **state)
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
    if (!s->collection->device->backend->on_host) { /* nothing else was read */
        assert_non_null(s->collection->index->held);
        assert_int_equal(stats.rows_screened, stats.list_rows_read);
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

static void a_calibration_refuses_what_it_cannot_promise(void **state)
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

/* ---- writes -----------------------------------------------------------------------------------------------------------------
 */

static void add_some(ww_collection *c, const float *rows, int64_t count, const char *const *ids)
{
    ww_rows some = ww_rows_default();
    some.count = count;
    some.dim = DIM;
    some.vectors = rows;
    some.ids = ids;
    CHECK_OK(ids ? ww_collection_upsert(c, &some) : ww_collection_add(c, &some));
}

static void the_index_follows_every_write(void **state)
{
    const char *replaced[] = {"4", "340", "77"}, *gone[] = {"5", "351", "64"};
    for (int m = 0; m < METRICS; m++) {
        if (!is_tried(*state, m, 0))
            continue;
        const ww_collection_config config = config_of(metrics[m], WW_VECTOR_F32);
        scene *s = scene_of(*state, &config);
        ww_collection *both[] = {s->collection, s->on_cpu};
        for (int i = 0; i < 2; i++) {
            add_some(both[i], s->queries, QUERIES, NULL);
            add_some(both[i], s->queries, 3, replaced);
            CHECK_OK(ww_collection_remove(both[i], gone, 3));
            check_index_is_whole(both[i]);
            ww_results *found = query_lists(both[i], s->queries + 2 * DIM, 1, 1, 1);
            if (metrics[m] != WW_DOT) /* a row is its own nearest, and in the nearest list */
                assert_int_equal(ww_results_rows(found, 0)[0], COUNT + 2);
            ww_results_destroy(found);
            CHECK_OK(ww_collection_compact(both[i], NULL, NULL));
            check_index_is_whole(both[i]);
            assert_int_equal(both[i]->index->rows, both[i]->store.rows_live);
        }
        check_same_index(both[0], both[1]);
        ww_ivf_info info = ww_ivf_info_default();
        CHECK_OK(ww_collection_describe_ivf(s->collection, &info));
        assert_int_equal(info.rows_added, QUERIES + 3);
        assert_int_equal(info.rows, COUNT + QUERIES - 3);
        CHECK_OK(ww_collection_clear(s->collection));
        CHECK_FAILS(WW_NOT_FOUND, ww_collection_describe_ivf(s->collection, &info));
        scene_free(s);
    }
}

static void a_list_that_grows_is_split(void **state)
{
    for (int m = 0; m < METRICS; m++) {
        if (!is_tried(*state, m, 1))
            continue;
        const ww_collection_config config = config_of(metrics[m], WW_VECTOR_F32);
        scene *s = scene_of(*state, &config);
        test_random random = {11};
        enum { MORE = 800 };
        float *near = malloc(MORE * DIM * sizeof *near);
        for (int64_t i = 0; i < MORE * DIM; i++) /* all near one row, all different */
            near[i] = s->rows[i % DIM] + random_normal(&random);
        for (int64_t done = 0; done < MORE; done += 200) {
            add_some(s->collection, near + done * DIM, 200, NULL);
            add_some(s->on_cpu, near + done * DIM, 200, NULL);
            ww_ivf_info info = ww_ivf_info_default();
            CHECK_OK(ww_collection_describe_ivf(s->collection, &info));
            assert_true((double)info.rows_largest <= 4.0 * info.rows_mean);
        }
        assert_true(s->collection->index->lists_split > 0);
        check_index_is_whole(s->collection);
        check_same_index(s->collection, s->on_cpu);
        free(near);
        scene_free(s);
    }
}

static void equal_rows_can_be_indexed(void **state)
{
    ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    float *rows = malloc(COUNT * DIM * sizeof *rows);
    for (int64_t i = 0; i < COUNT * DIM; i++)
        rows[i] = (float)(i % DIM) * 0.1f;
    for (int m = 0; m < METRICS; m++) {
        if (!is_tried(*state, m, 2))
            continue;
        config.metric = metrics[m];
        ww_collection *c = collection_of(*state, &config, rows, COUNT);
        index_build(c, NLIST);
        check_index_is_whole(c);
        ww_results *found = query_lists(c, rows, 1, 25, 1), *exact = query_lists(c, rows, 1, 25, 0);
        check_same_results(found, exact);
        add_some(c, rows, 300, NULL);
        check_index_is_whole(c);
        ww_results_destroy(found);
        ww_results_destroy(exact);
        ww_collection_destroy(c);
    }
    free(rows);
}

static void an_index_moves_with_its_collection(void **state)
{
    for (int t = 0; t < TYPES; t++) {
        if (!is_tried(*state, 0, t))
            continue;
        const ww_collection_config config = config_of(WW_COSINE, types[t]);
        scene *s = scene_of(*state, &config);
        ww_device *group = NULL;
        ww_results *before = query_lists(s->collection, s->queries, QUERIES, K, 2);
        CHECK_OK(ww_device_open("cpu+cpu", &group));
        CHECK_OK(ww_collection_move(s->collection, group));
        ww_results *in_group = query_lists(s->collection, s->queries, QUERIES, K, 2);
        check_same_results(before, in_group);
        CHECK_OK(ww_collection_move(s->collection, s->cpu));
        ww_results *after = query_lists(s->collection, s->queries, QUERIES, K, 2);
        check_same_results(before, after);
        check_index_is_whole(s->collection);
        add_some(s->collection, s->queries, QUERIES, NULL);
        check_index_is_whole(s->collection);
        ww_results_destroy(before);
        ww_results_destroy(in_group);
        ww_results_destroy(after);
        ww_device_close(group);
        scene_free(s);
    }
}

/* ---- refusals ---------------------------------------------------------------------------------------------------------------
 */

static int stop_at_half(long long done, long long total, void *user)
{
    long long *most = user;
    assert_true(done >= *most && done <= total);
    *most = done;
    return done * 2 >= total;
}

static void a_cancelled_build_leaves_the_old_index(void **state)
{
    const ww_collection_config config = config_of(WW_DOT, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    ww_ivf_config asked = ww_ivf_config_default();
    long long most = 0;
    asked.nlist = 5;
    asked.progress = stop_at_half;
    asked.progress_user = &most;
    CHECK_FAILS(WW_CANCELLED, ww_collection_build_ivf(s->collection, &asked));
    assert_true(most > 0);
    check_same_index(s->collection, s->on_cpu);
    scene_free(s);
}

static void what_cannot_be_is_refused(void **state)
{
    const ww_collection_config config = config_of(WW_L2, WW_VECTOR_F32);
    scene *s = scene_of(*state, &config);
    ww_ivf_config asked = ww_ivf_config_default();
    ww_ivf_info info = ww_ivf_info_default();
    ww_query query = ww_query_default();
    ww_results *results = NULL;
    asked.nlist = COUNT + 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_build_ivf(s->collection, &asked));
    asked.nlist = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_build_ivf(s->collection, &asked));
    asked = ww_ivf_config_default();
    asked.iterations = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_build_ivf(s->collection, &asked));
    asked.iterations = 0;
    asked.sample_rows = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_build_ivf(s->collection, &asked));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_build_ivf(NULL, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_describe_ivf(s->collection, NULL));
    check_same_index(s->collection, s->on_cpu);
    query.queries = s->queries;
    query.query_count = 1;
    query.dim = DIM;
    query.nprobe = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_query(s->collection, &query, &results));
    query.nprobe = 1;
    query.mode = WW_QUERY_RANGE;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(s->collection, &query, &results));
    query.mode = WW_QUERY_NEAREST;
    query.k = 3;
    CHECK_OK(ww_collection_drop_ivf(s->collection));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(s->collection, &query, &results));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_drop_ivf(s->collection));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_describe_ivf(s->collection, &info));
    CHECK_OK(ww_collection_clear(s->collection));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_build_ivf(s->collection, NULL));
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_the_same_on_every_device),
        cmocka_unit_test(lengths_out_of_range_are_found_alike_on_every_device),
        cmocka_unit_test(rows_are_in_the_list_of_their_nearest_centroid),
        cmocka_unit_test(another_seed_gives_other_lists),
        cmocka_unit_test(more_iterations_never_raise_the_loss),
        cmocka_unit_test(reading_all_lists_gives_the_bits_of_the_exact_search),
        cmocka_unit_test(a_query_finds_the_best_rows_of_the_lists_it_reads),
        cmocka_unit_test(a_query_for_all_rows_reads_all_lists),
        cmocka_unit_test(a_batch_gives_the_bits_of_the_cpu),
        cmocka_unit_test(rows_without_codes_are_read_too),
        cmocka_unit_test(a_filtered_query_finds_as_many_rows_as_there_are),
        cmocka_unit_test(the_statistics_say_what_was_read),
        cmocka_unit_test(a_recall_reads_enough_lists),
        cmocka_unit_test(a_calibration_refuses_what_it_cannot_promise),
        cmocka_unit_test(the_index_follows_every_write),
        cmocka_unit_test(a_list_that_grows_is_split),
        cmocka_unit_test(equal_rows_can_be_indexed),
        cmocka_unit_test(an_index_moves_with_its_collection),
        cmocka_unit_test(a_cancelled_build_leaves_the_old_index),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return RUN_ON_EVERY_DEVICE("ivf", tests);
}
