/* An index over time: lists that become tiny by removals are merged, removed rows free their memory, and a calibration learns
 * how many lists each recall needs. There are enough rows for several threads. */
#include <stdlib.h>
#include <string.h>

#include "support/data/indexed.h"
#include "support/devices.h"
#include "vectors/ivf/ivf.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
enum { METRICS = 3, DIM = 40, COUNT = 20000, COUNT_SLOW = 400, QUERIES = 3, STAYS = 40 };

typedef struct scene {
    ww_device *cpu;
    ww_collection *collection, *on_cpu; /* the same rows, on the device under test and on the CPU */
    int64_t count;
    float *rows;
} scene;

static scene *scene_of(ww_device *device, ww_metric metric)
{
    scene *s = calloc(1, sizeof *s);
    test_random random = {23 + (uint64_t)metric};
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM;
    config.metric = metric;
    s->count = device_is_slow(device) ? COUNT_SLOW : COUNT;
    s->rows = malloc((size_t)s->count * DIM * sizeof *s->rows);
    clustered_rows(&random, s->rows, s->count, DIM, 30, WW_VECTOR_F32);
    CHECK_OK(ww_device_open("cpu", &s->cpu));
    s->collection = collection_of(device, &config, s->rows, s->count);
    s->on_cpu = collection_of(s->cpu, &config, s->rows, s->count);
    index_build(s->collection, s->count / 40);
    index_build(s->on_cpu, s->count / 40);
    return s;
}

static void scene_free(scene *s)
{
    ww_collection_destroy(s->collection);
    ww_collection_destroy(s->on_cpu);
    ww_device_close(s->cpu);
    free(s->rows);
    free(s);
}

/* Of STAYS rows one stays. */
static void remove_max(ww_collection *c, int64_t count)
{
    for (int64_t row = 0; row < count; row++) {
        char id[32];
        const char *gone[] = {id};
        snprintf(id, sizeof id, "%lld", (long long)row);
        if (row % STAYS != 0)
            CHECK_OK(ww_collection_remove(c, gone, 1));
    }
}

static void check_exact_by_all_lists(ww_collection *c, const float *queries)
{
    ww_results *lists = query_lists(c, queries, QUERIES, (int32_t)c->store.rows_live, 1);
    ww_results *exact = query_lists(c, queries, QUERIES, (int32_t)c->store.rows_live, 0);
    check_same_results(lists, exact);
    ww_results_destroy(lists);
    ww_results_destroy(exact);
}

/* Proofs are still true after a merge. */
static void check_proofs(ww_collection *c, const float *queries)
{
    ww_results *exact = query_lists(c, queries, QUERIES, 5, 0);
    for (int64_t nprobe = 1; nprobe < c->index->nlist; nprobe = 2 * nprobe + 1) {
        ww_results *some = query_lists(c, queries, QUERIES, 5, nprobe);
        for (int64_t q = 0; q < QUERIES; q++)
            for (int64_t i = 0; i < ww_results_proven(some, q); i++)
                assert_int_equal(ww_results_rows(some, q)[i], ww_results_rows(exact, q)[i]);
        ww_results_destroy(some);
    }
    ww_results_destroy(exact);
}

static void compact_merges_tiny_lists(void **state)
{
    for (int m = 0; m < METRICS; m++) {
        scene *s = scene_of(*state, metrics[m]);
        ww_collection *both[] = {s->collection, s->on_cpu};
        const int64_t lists = s->on_cpu->index->nlist;
        for (int i = 0; i < 2; i++) {
            ww_results_destroy(query_lists(both[i], s->rows, QUERIES, 5, 2)); /* brings the lists to the device */
            remove_max(both[i], s->count);
            CHECK_OK(ww_collection_compact(both[i], NULL, NULL));
            check_index_is_whole(both[i]);
            check_exact_by_all_lists(both[i], s->rows);
            check_proofs(both[i], s->rows);
        }
        check_same_index(both[0], both[1]);
        const ivf *index = s->on_cpu->index;
        assert_true(index->nlist < lists);
        assert_int_equal(index->rows, s->on_cpu->store.rows_live);
        for (int64_t l = 0; l < index->nlist; l++)
            assert_true(index->lists[l].count > 0);
        ww_rows again = ww_rows_default();
        again.count = s->count, again.dim = DIM, again.vectors = s->rows;
        CHECK_OK(ww_collection_add(s->on_cpu, &again)); /* lists grow again, and are split */
        check_index_is_whole(s->on_cpu);
        check_proofs(s->on_cpu, s->rows);
        ww_ivf_info info = ww_ivf_info_default();
        CHECK_OK(ww_collection_describe_ivf(s->on_cpu, &info));
        assert_true((double)info.rows_largest <= 4.0 * info.rows_mean);
        scene_free(s);
    }
}

static void lists_of_few_rows_that_were_wanted_stay(void **state)
{
    const char *gone[] = {"7"};
    scene *s = scene_of(*state, WW_L2);
    const int64_t lists = COUNT_SLOW;
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM;
    config.metric = WW_L2;
    ww_collection *c = collection_of(*state, &config, s->rows, lists);
    index_build(c, lists); /* a row each */
    CHECK_OK(ww_collection_remove(c, gone, 1));
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    assert_true(c->index->nlist >= lists - 1);
    check_index_is_whole(c);
    ww_collection_destroy(c);
    scene_free(s);
}

static void compact_frees_the_memory_of_removed_rows(void **state)
{
    (void)state;
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    scene *s = scene_of(cpu, WW_L2);
    ww_ivf_info before = ww_ivf_info_default(), after = ww_ivf_info_default();
    ww_collection_info rows_before = ww_collection_info_default(), rows_after = ww_collection_info_default();
    CHECK_OK(ww_collection_describe_ivf(s->on_cpu, &before));
    CHECK_OK(ww_collection_describe(s->on_cpu, &rows_before));
    remove_max(s->on_cpu, s->count);
    CHECK_OK(ww_collection_compact(s->on_cpu, NULL, NULL));
    CHECK_OK(ww_collection_describe_ivf(s->on_cpu, &after));
    CHECK_OK(ww_collection_describe(s->on_cpu, &rows_after));
    assert_int_equal(after.rows, COUNT / STAYS);
    assert_true(after.bytes < before.bytes / 4);
    assert_true(rows_after.bytes_screen < rows_before.bytes_screen / 8);
    for (int64_t l = 0; l < after.nlist; l++) /* some lists got rows when others were merged */
        assert_true(s->on_cpu->index->lists[l].capacity <= s->on_cpu->index->lists[l].count + 16);
    scene_free(s);
    ww_device_close(cpu);
}

/* A row number is all that an index has of a row. */
static void an_index_has_four_bytes_a_row(void **state)
{
    (void)state;
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    scene *s = scene_of(cpu, WW_L2);
    ww_ivf_info info = ww_ivf_info_default();
    CHECK_OK(ww_collection_describe_ivf(s->on_cpu, &info));
    const int64_t centroid =
        (int64_t)sizeof(ivf_list) + 4 * DIM /* on the host */ + 4 * 64 + 3 * 64 / 2 + 32 /* on the device */;
    assert_true(info.bytes >= info.rows * 4 && info.bytes <= info.rows * 4 + (info.nlist + 64) * 2 * centroid);
    scene_free(s);
    ww_device_close(cpu);
}

static int64_t lists_read(ww_collection *c, const float *query, float recall)
{
    ww_query asked = ww_query_default();
    ww_search_stats stats = ww_search_stats_default();
    int64_t rows[10];
    float scores[10];
    asked.queries = query;
    asked.query_count = 1;
    asked.dim = DIM;
    asked.k = 10;
    asked.recall = recall;
    asked.stats = &stats;
    CHECK_OK(ww_collection_search(c, &asked, rows, scores));
    return stats.lists_read;
}

/* One kind of rules reads fewer lists for some recalls, and the other kind for others. Dot has one kind only. */
static void a_recall_that_is_named_reads_the_fewest_lists(void **state)
{
    (void)state;
    enum { RECALLS = 10 };
    int64_t lists[RECALLS + 1][RECALLS], fewer = 0; /* for each named recall, none first: what each recall reads */
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int m = 0; m < 2; m++) {
        scene *s = scene_of(cpu, metrics[m]);
        for (int named = 0; named <= RECALLS; named++) {
            ww_calibrate_config asked = ww_calibrate_config_default();
            asked.query_count = 299;
            asked.recall = (float)named / RECALLS;
            CHECK_OK(ww_collection_calibrate(s->on_cpu, &asked));
            assert_int_equal(s->on_cpu->index->calibration.k, RECALLS);
            for (int h = 0; h < RECALLS; h++)
                lists[named][h] = s->on_cpu->index->calibration.rules[h].nprobe;
        }
        for (int h = 0; h < RECALLS; h++) {
            for (int named = 0; named <= RECALLS; named++)
                assert_true(lists[h + 1][h] <= lists[named][h]);
            fewer += lists[h + 1][h] < lists[0][h];
        }
        scene_free(s);
    }
    assert_true(fewer > 0);
    ww_device_close(cpu);
}

/* 120 lists have enough rows that threads share one query; 64 queries are shared, too. */
static void the_number_of_threads_changes_no_bit(void **state)
{
    (void)state;
    static const char *const threads[] = {"1", "3"};
    scene *s[2];
    for (int t = 0; t < 2; t++) {
        ww_device *device = NULL;
        setenv("WARPWAVE_THREADS", threads[t], 1);
        CHECK_OK(ww_device_open("cpu", &device));
        s[t] = scene_of(device, WW_L2);
        ww_device_close(device);
        check_same_index(s[t]->collection, s[0]->collection);
        for (int64_t count = 1; count <= 64; count += 63)
            for (int64_t nprobe = 0; nprobe <= 120; nprobe += 60) {
                ww_results *one = query_lists(s[0]->collection, s[0]->rows, count, 10, nprobe);
                ww_results *more = query_lists(s[t]->collection, s[t]->rows, count, 10, nprobe);
                check_same_results(one, more);
                for (int64_t q = 0; q < count; q++)
                    assert_int_equal(ww_results_proven(one, q), ww_results_proven(more, q));
                ww_results_destroy(one);
                ww_results_destroy(more);
            }
    }
    unsetenv("WARPWAVE_THREADS");
    for (int t = 0; t < 2; t++)
        scene_free(s[t]);
}

static void a_higher_recall_reads_at_least_as_many_lists(void **state)
{
    (void)state;
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int m = 0; m < METRICS; m++) {
        scene *s = scene_of(cpu, metrics[m]);
        ww_calibrate_config asked = ww_calibrate_config_default();
        asked.query_count = 400;
        CHECK_OK(ww_collection_calibrate(s->on_cpu, &asked));
        float query[DIM];
        test_random random = {3};
        int64_t least = INT64_MAX, most = 0;
        for (int q = 0; q < 200; q++) { /* not only queries that are like rows */
            for (int32_t i = 0; i < DIM; i++)
                query[i] = s->rows[q * DIM + i] * (q % 2 ? 1.0f : 0.3f) + (q % 3 ? 0.0f : 40.0f * random_normal(&random));
            int64_t before = 0;
            for (int h = 1; h < 10; h++) {
                const int64_t now = lists_read(s->on_cpu, query, (float)h / 10.0f);
                assert_true(now >= before && now > 0);
                before = now;
                least = now < least ? now : least;
                most = now > most ? now : most;
            }
        }
        assert_true(least < most);
        scene_free(s);
    }
    ww_device_close(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compact_merges_tiny_lists),
        cmocka_unit_test(lists_of_few_rows_that_were_wanted_stay),
    };
    const struct CMUnitTest on_cpu[] = {
        cmocka_unit_test(compact_frees_the_memory_of_removed_rows),
        cmocka_unit_test(an_index_has_four_bytes_a_row),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
        cmocka_unit_test(a_recall_that_is_named_reads_the_fewest_lists),
        cmocka_unit_test(a_higher_recall_reads_at_least_as_many_lists),
    };
    const int failed = cmocka_run_group_tests_name("ivf_life", on_cpu, NULL, NULL);
    return failed + RUN_ON_EVERY_DEVICE("ivf_life", tests);
}
