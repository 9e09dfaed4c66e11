/* How a GPU chooses between ways of searching: by their cost, and by trials if the costs are close. The result never
 * changes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/memory_hooks.h"
#include "base/system/cache.h"
#include "gpu/device.h"
#include "gpu/search/choice/search_choice.h"
#include "gpu/search/choice/search_cost.h"
#include "gpu/search/choice/trials_file.h"
#include "support/collections.h"
#include "support/data/datasets.h"
#include "support/devices.h"
#include "support/memory.h"

/* ---- the model ----------------------------------------------------------------------------------------------------------- */

static bool screened_on_an_h200(int64_t rows, int32_t dim, int64_t queries, double admitted)
{
    const search_rates rates = search_rates_of(132, true);
    const search_amount amount = {.words = (rows + 63) / 64,
                                  .queries = queries,
                                  .dim = dim,
                                  .k = 10,
                                  .words_admitted = admitted,
                                  .rows_admitted = admitted};
    const screen_plan plan = screen_plan_make(
        (screen_size){.queries = queries, .dim = dim, .k = 10, .words = amount.words, .sample_buckets = 4, .sample_tiles = 16});
    return search_cost_screened(&rates, &amount, &plan, true) < search_cost_full_scan(&rates, &amount);
}

/* Measurements of bench/search/search_choice.c on an H200, where one way was better by more than 15%. */
static void the_model_chooses_the_way_that_was_measured_as_better(void **state)
{
    (void)state;
    static const struct {
        int64_t rows;
        int32_t dim;
        int64_t queries;
        bool screened;
    } measured[] = {
        {1000, 16, 1, false},     {1000, 128, 100, false},   {1000, 784, 8, false},       {10000, 16, 100, false},
        {10000, 784, 1, false},   {60000, 128, 8, false},    {60000, 16, 100, true},      {60000, 128, 100, true},
        {60000, 784, 1000, true}, {60000, 784, 10000, true}, {300000, 16, 1, true},       {300000, 128, 8, true},
        {1000000, 128, 1, true},  {1000000, 16, 100, true},  {1000000, 784, 10000, true}, {390000, 50, 10000, true},
    };
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        if (screened_on_an_h200(measured[i].rows, measured[i].dim, measured[i].queries, 1.0) != measured[i].screened)
            fail_msg("%lld x %d, %lld queries: the other way was better", (long long)measured[i].rows, measured[i].dim,
                     (long long)measured[i].queries);
    assert_false(screened_on_an_h200(1000000, 128, 8, 0.001)); /* few rows are admitted: those are soon scored */
}

/* ---- trials -------------------------------------------------------------------------------------------------------------- */

static void trials_end_with_the_quicker_way(void **state)
{
    (void)state;
    search_trials *trials = calloc(1, sizeof *trials);
    for (int quicker = 0; quicker < 2; quicker++) {
        const uint64_t shape = 77 + (uint64_t)quicker;
        int runs[2] = {0, 0};
        for (int i = 0; i < 6; i++) {
            const bool screened = search_trials_choose(trials, shape, true, true);
            runs[screened]++;
            search_trials_record(trials, shape, screened, screened == (quicker == 1) ? 10.0 + i : 30.0 - i);
        }
        assert_int_equal(runs[0], 3);
        assert_int_equal(runs[1], 3);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(search_trials_choose(trials, shape, true, true), quicker == 1);
            search_trials_record(trials, shape, quicker == 1, 1000.0); /* once disturbed is not for good */
        }
    }
    assert_true(search_trials_choose(trials, 77 + TRIALS_KEPT, true, true)); /* another shape in the same place */
    search_trials_record(trials, 77 + TRIALS_KEPT, true, 1.0);
    assert_false(search_trials_choose(trials, 77 + TRIALS_KEPT, false, true));
    free(trials);
}

/* Measures both ways of a shape often enough; the screen takes `screened` microseconds, the scan 20. */
static void measure(search_trials *trials, uint64_t shape, double screened)
{
    for (int i = 0; i < 3; i++) {
        search_trials_record(trials, shape, false, 20.0);
        search_trials_record(trials, shape, true, screened);
    }
}

static void nothing_is_tried_in_the_first_second(void **state)
{
    (void)state;
    search_trials *trials = calloc(1, sizeof *trials);
    search_trials_begin(trials);
    assert_false(search_trials_may_run(trials));
    search_trials_record(trials, 5, true, 30.0);
    assert_true(search_trials_choose(trials, 5, true, false)); /* the guess, though the scan was tried less often */
    assert_false(search_trials_choose(trials, 5, true, true));
    measure(trials, 5, 30.0);
    assert_false(search_trials_choose(trials, 5, true, false)); /* what is known holds from the start */
    trials->begins_ns -= 1000000000;
    assert_true(search_trials_may_run(trials));
    free(trials);
}

/* Reads the file as a new process would, and returns whether a shape is known, and screened. */
static bool is_remembered(uint64_t device, uint64_t shape, bool *screened)
{
    search_trials *trials = calloc(1, sizeof *trials);
    trials_file_read(device, trials);
    *screened = search_trials_choose(trials, shape, false, false);
    const bool known = *screened == search_trials_choose(trials, shape, true, false);
    free(trials);
    return known;
}

static void change_file(long at, char to)
{
    char path[4096];
    assert_true(cache_path("search-times", path, sizeof path));
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    assert_int_equal(fputc(to, file), to);
    fclose(file);
}

static void times_are_remembered_by_device_and_damaged_lines_are_skipped(void **state)
{
    (void)state;
    enum { HEAD_BYTES = 24 };
    search_trials *trials = calloc(1, sizeof *trials);
    const uint64_t card = trials_device("a card", "sm_90", "12.4"), other = trials_device("a card", "sm_90", "12.5");
    bool screened;
    assert_true(card != other);
    assert_false(is_remembered(card, 7, &screened)); /* there is no file yet */
    measure(trials, 7, 10.0);
    measure(trials, 8, 30.0);
    search_trials_record(trials, 9, true, 1.0); /* not settled */
    assert_true(trials->changed);
    trials_file_write(card, trials);
    assert_true(is_remembered(card, 7, &screened) && screened);
    assert_true(is_remembered(card, 8, &screened) && !screened);
    assert_false(is_remembered(card, 9, &screened));
    assert_false(is_remembered(other, 7, &screened));
    memset(trials, 0, sizeof *trials);
    measure(trials, 7, 50.0);
    trials_file_write(other, trials); /* keeps the lines of the first */
    assert_true(is_remembered(other, 7, &screened) && !screened);
    assert_true(is_remembered(card, 7, &screened) && screened);
    change_file(HEAD_BYTES + 40, 'x'); /* in the first line, which is the last device's */
    assert_false(is_remembered(other, 7, &screened));
    assert_true(is_remembered(card, 8, &screened));
    for (int64_t n = 1, before = -1; before != memory_failures_made(); n++) { /* without memory nothing is remembered */
        before = memory_failures_made();
        fail_allocation_at(n);
        (void)is_remembered(card, 8, &screened);
        trials_file_write(other, trials);
        fail_allocation_at(0);
    }
    assert_true(is_remembered(card, 8, &screened));
    change_file(0, 'W'); /* another format */
    assert_false(is_remembered(card, 8, &screened));
    trials_file_write(other, trials);
    assert_true(is_remembered(other, 7, &screened));
    free(trials);
}

/* ---- searches ------------------------------------------------------------------------------------------------------------ */

static ww_search_stats search(ww_collection *c, const float *queries, int64_t count, int32_t dim, int64_t *rows, float *scores)
{
    ww_search_stats stats = ww_search_stats_default();
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = count;
    search.dim = dim;
    search.k = 5;
    search.stats = &stats;
    CHECK_OK(ww_collection_search(c, &search, rows, scores));
    return stats;
}

/* Too few rows to be screened before, but enough queries that screening is faster. */
static void few_rows_are_screened_for_many_queries_and_give_the_same(void **state)
{
    enum { ROWS = 4000, DIM = 60, QUERIES = 120, K = 5 };
    ww_device *device = *state;
    static float rows[ROWS * DIM];
    static int64_t found[2][QUERIES * K];
    static float scores[2][QUERIES * K];
    random_normals(&(test_random){31}, rows, ROWS * DIM);
    ww_collection *c = collection_make(device, DIM, WW_L2);
    ww_rows some = ww_rows_default();
    some.count = ROWS;
    some.dim = DIM;
    some.vectors = rows;
    CHECK_OK(ww_collection_add(c, &some));
    const ww_search_stats few = search(c, rows, 2, DIM, found[0], scores[0]);
    assert_int_equal(few.rows_screened, 0);
    const ww_search_stats many = search(c, rows, QUERIES, DIM, found[0], scores[0]);
    if (device_is_slow(device)) /* by the model only; a card tries both ways */
        assert_true(many.rows_screened >= (int64_t)ROWS * QUERIES);
    assert_true(many.certificate >= 0);
    device->tuning.screen = TUNING_NEVER;
    const ww_search_stats plain = search(c, rows, QUERIES, DIM, found[1], scores[1]);
    device->tuning.screen = TUNING_AUTO;
    assert_int_equal(plain.rows_screened, 0);
    assert_memory_equal(found[0], found[1], sizeof found[0]);
    assert_memory_equal(scores[0], scores[1], sizeof scores[0]);
    ww_collection_destroy(c);
}

/* Returns the smallest multiple of 128 rows for which the model chooses the screen on this device. */
static int64_t screened_rows_min(ww_device *device, int64_t queries, int32_t dim, int32_t k)
{
    const search_rates rates = search_rates_of(device->info.compute_units, ((gpu_device *)device)->capabilities.sm_90a_code);
    for (int64_t rows = 128;; rows += 128) {
        const search_amount amount = {
            .words = rows / 64, .queries = queries, .dim = dim, .k = k, .words_admitted = 1, .rows_admitted = 1};
        const screen_plan plan = screen_plan_make((screen_size){
            .queries = queries, .dim = dim, .k = k, .words = amount.words, .sample_buckets = 4, .sample_tiles = 16});
        if (plan.sample_tiles * 4 >= (uint32_t)k &&
            search_cost_screened(&rates, &amount, &plan, true) < search_cost_full_scan(&rates, &amount))
            return rows;
    }
}

/* Nothing is forced: every shape of the screen runs at a size at which users get it, with its usual sample and lists. If two
 * ways are close, a card tries both, so the test repeats the search until it has. */
static void every_shape_is_screened_unforced_and_gives_the_cpus_bits(void **state)
{
    static const int64_t batches[] = {1, 4, 8, 40};
    enum { DIM = 9, K = 5, QUERIES = 40 };
    ww_device *device = *state, *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    static int64_t found[2][QUERIES * K];
    static float scores[2][QUERIES * K];
    static device_tuning untouched;                   /* static: its padding is 0, too */
    untouched.group_even = device->tuning.group_even; /* support/devices.c sets it, only for groups */
    assert_int_equal(memcmp(&device->tuning, &untouched, sizeof untouched), 0);
    for (int b = 0; b < 4; b++) {
        const int64_t count = screened_rows_min(device, batches[b], DIM, K);
        float *rows = malloc((size_t)count * DIM * sizeof *rows), queries[QUERIES * DIM];
        test_random random = {(uint64_t)b + 1};
        dataset_named(b % 2 ? "clustered" : "random normal")->make(&random, DIM, rows, count, queries, QUERIES);
        ww_collection *here = collection_make(cpu, DIM, (ww_metric)(b % 3)),
                      *there = collection_make(device, DIM, (ww_metric)(b % 3));
        ww_rows all = ww_rows_default();
        all.count = count;
        all.dim = DIM;
        all.vectors = rows;
        CHECK_OK(ww_collection_add(here, &all));
        CHECK_OK(ww_collection_add(there, &all));
        search(here, queries, batches[b], DIM, found[0], scores[0]);
        int64_t screened = 0;
        for (int i = 0; i < (device_is_slow(device) ? 1 : 6); i++) {
            const ww_search_stats stats = search(there, queries, batches[b], DIM, found[1], scores[1]);
            const size_t results = (size_t)batches[b] * K;
            screened += stats.rows_screened;
            assert_true(stats.certificate >= 0 && stats.repeated_queries == 0);
            assert_memory_equal(found[0], found[1], results * sizeof found[0][0]);
            assert_memory_equal(scores[0], scores[1], results * sizeof scores[0][0]);
        }
        printf("%lld rows are screened for %lld queries on %s\n", (long long)count, (long long)batches[b], device->info.id);
        assert_true(screened > 0);
        ww_collection_destroy(here);
        ww_collection_destroy(there);
        free(rows);
    }
    ww_device_close(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rows_are_screened_for_many_queries_and_give_the_same),
        cmocka_unit_test(every_shape_is_screened_unforced_and_gives_the_cpus_bits),
    };
    const struct CMUnitTest of_no_device[] = {
        cmocka_unit_test(the_model_chooses_the_way_that_was_measured_as_better),
        cmocka_unit_test(trials_end_with_the_quicker_way),
        cmocka_unit_test(nothing_is_tried_in_the_first_second),
        cmocka_unit_test(times_are_remembered_by_device_and_damaged_lines_are_skipped),
    };
    char folder[] = "/tmp/warpwave-choice-XXXXXX", file[64];
    if (!mkdtemp(folder))
        return 1;
    setenv("XDG_CACHE_HOME", folder, 1); /* times of earlier runs must not decide */
    setenv("WARPWAVE_TEST_DEVICES", test_is_short() ? "emulator:32" : "emulator:32,emulator:64", 0);
    const int failed = cmocka_run_group_tests(of_no_device, NULL, NULL) + RUN_ON_EVERY_DEVICE("choice", tests);
    snprintf(file, sizeof file, "%s/warpwave/search-times", folder);
    unlink(file);
    snprintf(file, sizeof file, "%s/warpwave", folder);
    rmdir(file);
    rmdir(folder);
    return failed;
}
