/* An index on a group: each member reads the rows that it has, with the bits of one device, and reads only the rows of lists,
 * not all rows. */
#include <stdlib.h>
#include <string.h>

#include "device/group/group.h"
#include "emulated/parts.h"
#include "gpu/device.h"
#include "support/data/indexed.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/faults/faulty_driver.h"
#include "support/memory.h"
#include "vectors/ivf/ivf.h"

enum { DIM = 20, COUNT = 700, MORE = 200, QUERIES = 9, K = 7, NLIST = 14 };

static const char *const groups[] = {"cpu+cpu", "cpu+emulator:32", "emulator:32+emulator:64+cpu"};

typedef struct scene {
    ww_device *group, *cpu;
    ww_collection *in_group, *on_cpu;
    float rows[(COUNT + MORE) * DIM];
    float queries[QUERIES * DIM];
} scene;

static void add(ww_collection *c, const float *rows, int64_t count)
{
    ww_rows some = ww_rows_default();
    some.count = count, some.dim = DIM, some.vectors = rows;
    CHECK_OK(ww_collection_add(c, &some));
}

/* Every member has rows: those of one device, too, which searches them apart. */
static scene *scene_of(const char *name, ww_metric metric, ww_vector_type type)
{
    test_random random = {5};
    scene *s = calloc(1, sizeof *s);
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM, config.metric = metric, config.type = type;
    clustered_rows(&random, s->rows, COUNT + MORE, DIM, 11, type);
    clustered_rows(&random, s->queries, QUERIES, DIM, 11, type);
    for (int64_t i = 0; i < (int64_t)MORE * DIM; i++) /* near one row, so that its list is split */
        s->rows[COUNT * DIM + i] = s->rows[3 * DIM + i % DIM] + (float)random_below(&random, 5);
    CHECK_OK(ww_device_open(name, &s->group));
    CHECK_OK(ww_device_open("cpu", &s->cpu));
    s->group->tuning.group_even = s->group->tuning.group_apart = true;
    s->in_group = collection_of(s->group, &config, s->rows, COUNT);
    s->on_cpu = collection_of(s->cpu, &config, s->rows, COUNT);
    index_build(s->in_group, NLIST);
    index_build(s->on_cpu, NLIST);
    uint64_t having = 0;
    for (int64_t i = 0; i < s->in_group->store.segment_count; i++)
        having |= UINT64_C(1) << s->in_group->store.segments[i].member;
    assert_true(__builtin_popcountll(having) > 1);
    return s;
}

static void scene_free(scene *s)
{
    ww_collection_destroy(s->in_group);
    ww_collection_destroy(s->on_cpu);
    ww_device_close(s->group);
    ww_device_close(s->cpu);
    free(s);
}

/* Checks for the same results and proofs, also with a mask. Returns the stats of the group's search. */
static ww_search_stats check_query(const scene *s, int64_t nprobe, bool masked)
{
    uint64_t mask[(COUNT + MORE) / 64 + 1];
    ww_search_stats stats[2] = {ww_search_stats_default(), ww_search_stats_default()};
    ww_collection *const both[] = {s->in_group, s->on_cpu};
    ww_results *found[2] = {NULL, NULL};
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
        mask[i] = UINT64_C(0x9d2c5680f00fb5a1) >> i % 7;
    for (int i = 0; i < 2; i++) {
        ww_query query = ww_query_default();
        query.queries = s->queries, query.query_count = QUERIES, query.dim = DIM, query.k = K, query.nprobe = nprobe;
        query.mask = masked ? mask : NULL, query.mask_rows = masked ? s->on_cpu->store.rows_count : 0;
        query.stats = &stats[i];
        CHECK_OK(ww_collection_query(both[i], &query, &found[i]));
    }
    check_same_results(found[0], found[1]);
    for (int64_t q = 0; q < QUERIES; q++)
        assert_int_equal(ww_results_proven(found[0], q), ww_results_proven(found[1], q));
    assert_int_equal(stats[0].lists_read, stats[1].lists_read);
    assert_int_equal(stats[0].list_rows_read, stats[1].list_rows_read);
    ww_results_destroy(found[0]);
    ww_results_destroy(found[1]);
    return stats[0];
}

/* Checks that each query reads the rows of its lists, and no others. */
static void check_read(const scene *s, int64_t nprobe)
{
    const int64_t row_bytes = 64 + 16, all = QUERIES * s->on_cpu->store.rows_count * row_bytes;
    const ww_search_stats stats = check_query(s, nprobe, false);
    assert_non_null(s->in_group->index->held);
    assert_int_equal(stats.list_bytes_read, stats.list_rows_read * row_bytes);
    assert_true(stats.list_bytes_read < all / 2);
    assert_true(stats.rows_screened <= stats.list_rows_read && stats.rows_scored <= stats.list_rows_read + 3 * QUERIES * K);
}

static void a_group_reads_lists_with_the_bits_of_the_cpu(void **state)
{
    static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
    static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_I8};
    (void)state;
    for (int g = 0; g < 3; g++)
        for (int m = 0; m < 3; m++) {
            if (g > 0 && m != g && !test_is_long()) /* emulators are slow */
                continue;
            scene *s = scene_of(groups[g], metrics[m], types[(m + g) % 3]);
            check_same_index(s->in_group, s->on_cpu);
            check_read(s, 1);
            for (int64_t nprobe = 2; nprobe < NLIST; nprobe = 2 * nprobe + 1)
                (void)check_query(s, nprobe, nprobe % 2);
            scene_free(s);
        }
}

static void lists_on_a_group_follow_every_write(void **state)
{
    (void)state;
    for (int g = 0; g < 3; g++) {
        scene *s = scene_of(groups[g], WW_L2, WW_VECTOR_F32);
        ww_collection *const both[] = {s->in_group, s->on_cpu};
        ww_ivf_info before = ww_ivf_info_default(), after = ww_ivf_info_default();
        CHECK_OK(ww_collection_describe_ivf(s->in_group, &before));
        check_read(s, 2);
        CHECK_OK(ww_collection_describe_ivf(s->in_group, &after));
        assert_true(after.bytes >= before.bytes + COUNT * (64 + 12)); /* codes in the order of lists */
        for (int i = 0; i < 2; i++)
            add(both[i], s->rows + COUNT * DIM, MORE);
        assert_true(s->on_cpu->index->lists_split > 0); /* lists were made again, others have grown */
        check_same_index(s->in_group, s->on_cpu);
        check_read(s, 2);
        for (int row = 0; row < COUNT; row += 3) {
            char id[16];
            const char *const ids[] = {id};
            snprintf(id, sizeof id, "%d", row);
            for (int i = 0; i < 2; i++)
                CHECK_OK(ww_collection_remove(both[i], ids, 1));
        }
        (void)check_query(s, 2, false);
        (void)check_query(s, 2, true);
        for (int i = 0; i < 2; i++)
            CHECK_OK(ww_collection_compact(both[i], NULL, NULL));
        check_read(s, 2);
        CHECK_OK(ww_collection_move(s->in_group, s->cpu));
        (void)check_query(s, 2, false);
        CHECK_OK(ww_collection_move(s->in_group, s->group));
        check_read(s, 2);
        scene_free(s);
    }
}

/* All rows are on the same device, which is searched once. */
static void members_that_are_one_device_search_together(void **state)
{
    (void)state;
    scene *s = scene_of("cpu+cpu", WW_COSINE, WW_VECTOR_F32);
    s->group->tuning.group_apart = false;
    check_read(s, 1);
    scene_free(s);
}

static void an_exact_search_by_lists_is_one_on_a_group(void **state)
{
    (void)state;
    scene *s = scene_of("cpu+cpu", WW_L2, WW_VECTOR_F32);
    s->group->tuning.exact_lists = TUNING_ALWAYS;
    for (int q = 0; q < QUERIES; q++) {
        ww_results *in_group = query_lists(s->in_group, s->queries + q * DIM, 1, K, 0),
                   *on_cpu = query_lists(s->on_cpu, s->queries + q * DIM, 1, K, 0);
        check_same_results(in_group, on_cpu);
        ww_results_destroy(in_group);
        ww_results_destroy(on_cpu);
    }
    assert_non_null(s->in_group->index->held);
    scene_free(s);
}

/* Without memory for lists, all rows are read with masks, and the stats say so. */
static void a_group_without_memory_for_lists_reads_all_rows(void **state)
{
    (void)state;
    const int64_t row_bytes = 64 + 16;
    int64_t without = 0;
    for (int64_t n = 1; n < 400; n++) {
        scene *s = scene_of("cpu+cpu", WW_L2, WW_VECTOR_F32);
        ww_search_stats stats = ww_search_stats_default();
        int64_t rows[QUERIES * K], expected[QUERIES * K];
        float scores[QUERIES * K];
        ww_query query = ww_query_default();
        query.queries = s->queries, query.query_count = QUERIES, query.dim = DIM, query.k = K, query.nprobe = 2;
        CHECK_OK(ww_collection_search(s->on_cpu, &query, expected, scores));
        query.stats = &stats;
        fail_allocation_at(n);
        const ww_status status = ww_collection_search(s->in_group, &query, rows, scores);
        fail_allocation_at(0);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        if (status == WW_OK) {
            assert_memory_equal(rows, expected, sizeof rows);
            without += !s->in_group->index->held;
            assert_int_equal(stats.list_bytes_read,
                             row_bytes * (s->in_group->index->held ? stats.list_rows_read : (int64_t)QUERIES * COUNT));
        }
        CHECK_OK(ww_collection_search(s->in_group, &query, rows, scores)); /* nothing is in its way */
        assert_memory_equal(rows, expected, sizeof rows);
        scene_free(s);
    }
    assert_true(without > 20);
}

/* Numbers that do not mean a lost device: the search fails, or has no lists and reads all rows, and the next one is right. */
static void calls_of_a_members_driver_may_fail_while_lists_are_read(void **state)
{
    (void)state;
    scene *s = scene_of("cpu+emulator:32", WW_L2, WW_VECTOR_F32);
    gpu_device *member = gpu_of(group_of(s->group)->members[1].device);
    const gpu_driver *driver = member->driver;
    long failures = 0;
    const char *victim = "";
    for (long n = 1; victim; n = fault_next(n)) {
        int64_t rows[QUERIES * K], expected[QUERIES * K];
        float scores[QUERIES * K];
        ww_query query = ww_query_default();
        query.queries = s->queries, query.query_count = QUERIES, query.dim = DIM, query.k = K, query.nprobe = 2;
        CHECK_OK(ww_collection_search(s->on_cpu, &query, expected, scores));
        ivf_forget(s->in_group->index); /* lists are brought to the members once more */
        const int64_t blocks = blocks_held();
        member->driver = &faulty_driver;
        faulty_arm(driver, n, EMULATED_INVALID_VALUE, NULL);
        const ww_status status = ww_collection_search(s->in_group, &query, rows, scores);
        victim = faulty_victim();
        faulty_arm(driver, 0, 0, NULL);
        member->driver = driver;
        failures += status != WW_OK;
        assert_true(status == WW_OK || (status == WW_DRIVER_ERROR && strstr(ww_error_message(), "emulator:32")));
        ivf_forget(s->in_group->index);
        assert_int_equal(blocks_held(), blocks);
        CHECK_OK(ww_collection_search(s->in_group, &query, rows, scores));
        assert_memory_equal(rows, expected, sizeof rows);
    }
    assert_true(failures > (test_is_short() ? 2 : 5));
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_reads_lists_with_the_bits_of_the_cpu),
        cmocka_unit_test(lists_on_a_group_follow_every_write),
        cmocka_unit_test(members_that_are_one_device_search_together),
        cmocka_unit_test(an_exact_search_by_lists_is_one_on_a_group),
        cmocka_unit_test(a_group_without_memory_for_lists_reads_all_rows),
        cmocka_unit_test(calls_of_a_members_driver_may_fail_while_lists_are_read),
    };
    return cmocka_run_group_tests_name("group: lists of an index", tests, NULL, NULL);
}
