/* Range search: all rows within a bound, to the bit those that ww_score() over all rows says, on every device, by the screen
 * and without it, whatever the data, the mask, the limit and the number of queries. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "base/key_list.h"
#include "base/memory.h"
#include "device/backend.h"
#include "support/collections.h"
#include "support/data/datasets.h"
#include "support/devices.h"
#include "vectors/collection.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
enum { METRICS = 3 };

/* ---- what there is to find ------------------------------------------------------------------------------------------------
 */

/* A collection and what is in it, with a copy of the rows. */
typedef struct shelf {
    ww_device *device;
    ww_collection *collection;
    ww_metric metric;
    int32_t dim;
    int64_t count;
    float *rows;
    bool *gone; /* removed */
} shelf;

static shelf shelf_make(ww_device *device, ww_metric metric, ww_screen screen, const float *rows, int64_t count, int32_t dim)
{
    shelf s = {.device = device, .metric = metric, .dim = dim, .count = count};
    const size_t bytes = (size_t)count * (size_t)dim * sizeof *rows;
    s.rows = malloc(bytes);
    s.gone = calloc((size_t)count, sizeof *s.gone);
    memcpy(s.rows, rows, bytes);
    ww_collection_config config = ww_collection_config_default();
    config.name = "test";
    config.dim = dim;
    config.metric = metric;
    config.screen = screen;
    CHECK_OK(ww_collection_create(device, &config, &s.collection));
    for (int64_t done = 0; done < count; done += 503) { /* several segments */
        ww_rows some = ww_rows_default();
        some.count = count - done < 503 ? count - done : 503;
        some.dim = dim;
        some.vectors = rows + done * dim;
        CHECK_OK(ww_collection_add(s.collection, &some));
    }
    return s;
}

static void shelf_free(shelf *s)
{
    ww_collection_destroy(s->collection);
    free(s->rows);
    free(s->gone);
}

static void shelf_remove(shelf *s, int64_t row)
{
    char text[32];
    const char *id = text;
    snprintf(text, sizeof text, "%lld", (long long)row);
    CHECK_OK(ww_collection_remove(s->collection, &id, 1));
    s->gone[row] = true;
}

/* What is asked. */
typedef struct asked {
    const float *queries;
    int64_t count;
    float bound;
    int64_t limit;
    const uint64_t *mask;
    int64_t mask_rows;
} asked;

static bool admitted(const shelf *s, const asked *a, int64_t row)
{
    if (s->gone[row])
        return false;
    return !a->mask || (row < a->mask_rows && (a->mask[row / 64] >> row % 64 & 1) != 0);
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The keys of all rows within the bound, in order. */
static int64_t wanted_keys(const shelf *s, const asked *a, int64_t query, uint64_t *keys)
{
    int64_t count = 0;
    for (int64_t row = 0; row < s->count; row++) {
        float score;
        CHECK_OK(ww_score(s->metric, a->queries + query * s->dim, s->rows + row * s->dim, s->dim, &score));
        if (admitted(s, a, row) && (s->metric == WW_L2 ? score <= a->bound : score >= a->bound))
            keys[count++] = canon_make_key((int32_t)s->metric, score, (uint32_t)row);
    }
    qsort(keys, (size_t)count, sizeof *keys, by_key);
    return count;
}

/* ---- asking ---------------------------------------------------------------------------------------------------------------
 */

static range_job job_of(const shelf *s, const asked *a, key_list *found, search_stats *stats)
{
    const row_store *store = &s->collection->store;
    return (range_job){.search = {.metric = (int32_t)s->metric,
                                  .dim = s->dim,
                                  .segments = store->segments,
                                  .segment_count = store_segments_used(store),
                                  .queries = a->queries,
                                  .query_count = a->count,
                                  .query_stride = s->dim,
                                  .mask = a->mask,
                                  .mask_rows = a->mask_rows,
                                  .screen = store->screen,
                                  .stats = stats},
                       .bound = a->bound,
                       .limit = a->limit,
                       .found = found};
}

static void check_query(const shelf *s, const asked *a, int64_t query, const key_list *found)
{
    uint64_t *keys = malloc((size_t)(s->count + 1) * sizeof *keys);
    const int64_t total = wanted_keys(s, a, query, keys), count = total < a->limit ? total : a->limit;
    if (found->total != total || found->count != count)
        fail_msg("metric %d, %lld rows, %lld queries, bound %a, limit %lld: query %lld has %lld of %lld, not %lld of %lld",
                 (int)s->metric, (long long)s->count, (long long)a->count, (double)a->bound, (long long)a->limit,
                 (long long)query, (long long)found->count, (long long)found->total, (long long)count, (long long)total);
    for (int64_t i = 0; i < count; i++)
        if (found->keys[i] != keys[i])
            fail_msg("metric %d, bound %a: query %lld, place %lld: row %u with %a, not %u with %a", (int)s->metric,
                     (double)a->bound, (long long)query, (long long)i, canon_key_row(found->keys[i]),
                     (double)canon_key_score((int32_t)s->metric, found->keys[i]), canon_key_row(keys[i]),
                     (double)canon_key_score((int32_t)s->metric, keys[i]));
    free(keys);
}

static search_stats check_range(const shelf *s, const asked *a)
{
    key_list *found = calloc((size_t)a->count, sizeof *found);
    search_stats stats = {.certificate = INFINITY};
    const range_job job = job_of(s, a, found, &stats);
    CHECK_OK(s->device->backend->rows_range(s->device, &job));
    for (int64_t q = 0; q < a->count; q++) {
        check_query(s, a, q, &found[q]);
        key_list_free(&found[q]);
    }
    free(found);
    assert_true(stats.certificate == 0.0f || stats.certificate == INFINITY);
    assert_int_equal(stats.certificate == 0.0f, stats.rows_screened > stats.rows_kept);
    assert_true(stats.rows_kept <= stats.rows_screened);
    return stats;
}

/* The score of the query's result number `at`, or the worst there is. */
static float score_at(const shelf *s, const float *query, int64_t at)
{
    const asked all = {.queries = query, .count = 1, .bound = s->metric == WW_L2 ? INFINITY : -INFINITY};
    uint64_t *keys = malloc((size_t)(s->count + 1) * sizeof *keys);
    const int64_t count = wanted_keys(s, &all, 0, keys);
    const float score = canon_key_score((int32_t)s->metric, keys[at < count ? at : count - 1]);
    free(keys);
    return score;
}

/* Each kernel of a GPU. */
static const struct shape {
    int64_t queries;
    tuning_choice wgmma;
} shapes[] = {{1, TUNING_AUTO}, {3, TUNING_AUTO}, {7, TUNING_AUTO}, {20, TUNING_NEVER}, {20, TUNING_ALWAYS}};
enum { SHAPES = 5, ROWS = 700, QUERIES = 20 };

static void check_shape(const shelf *s, asked a, int shape)
{
    a.count = shapes[shape].queries;
    s->device->tuning.screen_wgmma = shapes[shape].wgmma;
    check_range(s, &a);
}

/* ---- tests ----------------------------------------------------------------------------------------------------------------
 */

/* At the bound, one step within it and one step outside: rows at exactly that distance are in, and nothing is a step too far.
 */
static void every_dataset_gives_what_the_definition_says(void **state)
{
    enum { DIM = 24 };
    ww_device *device = *state;
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows), *queries = malloc((size_t)QUERIES * DIM * sizeof *queries);
    for (const dataset *d = datasets; d->name; d++)
        for (int m = 0; m < METRICS; m++) {
            const int number = (int)(d - datasets);
            if ((TEST_INSTRUMENTED || device_is_slow(device)) && (number + m) % METRICS != 0)
                continue;
            test_random random = {(uint64_t)number + 1};
            d->make(&random, DIM, rows, ROWS, queries, QUERIES);
            shelf s = shelf_make(device, metrics[m], WW_SCREEN_INT8, rows, ROWS, DIM);
            device->tuning = (device_tuning){.screen_always = true};
            const float at = score_at(&s, queries, 12);
            const float worse = metrics[m] == WW_L2 ? INFINITY : -INFINITY;
            const float bounds[] = {at, nextafterf(at, worse), nextafterf(at, -worse)};
            for (int b = 0; b < 3; b++)
                if (metrics[m] != WW_L2 || bounds[b] >= 0.0f)
                    check_shape(&s, (asked){.queries = queries, .bound = bounds[b] + 0.0f, .limit = 2000},
                                (number + m + b) % SHAPES);
            device->tuning = (device_tuning){0};
            shelf_free(&s);
        }
    free(rows);
    free(queries);
}

/* Zeros and signs of zeros, huge, tiny and denormal numbers, equal rows. */
static void hard_numbers(float *rows, int64_t count, int32_t dim, ww_metric metric)
{
    test_random random = {99};
    for (int64_t i = 0; i < count; i++)
        for (int32_t j = 0; j < dim; j++) {
            float *x = &rows[i * dim + j];
            *x = (float)((int)random_below(&random, 5) - 2);
            if (i % 6 == 1)
                *x = rows[j];
            else if (i % 6 == 2)
                *x = -0.0f;
            else if (i % 6 == 3)
                *x *= 1e17f;
            else if (i % 6 == 4 && metric != WW_COSINE)
                *x *= 1e-40f;
            else if (i % 6 == 5)
                *x *= 1e-18f;
        }
}

static void hard_numbers_give_what_the_definition_says(void **state)
{
    enum { DIM = 65, COUNT = 300 };
    ww_device *device = *state;
    float *rows = malloc((size_t)COUNT * DIM * sizeof *rows);
    for (int m = 0; m < METRICS; m++) {
        hard_numbers(rows, COUNT, DIM, metrics[m]);
        static const float bounds[] = {0.0f, 1.0f, 0x1p-149f, 3e38f, 1e-30f, INFINITY, -1.0f, -3e38f, -INFINITY, -4.0f};
        for (int screen = 0; screen < 2; screen++) {
            shelf s = shelf_make(device, metrics[m], screen ? WW_SCREEN_INT8 : WW_SCREEN_NONE, rows, COUNT, DIM);
            device->tuning = (device_tuning){.screen_always = true};
            for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++)
                if (metrics[m] != WW_L2 || bounds[b] >= 0.0f)
                    check_shape(&s, (asked){.queries = rows, .bound = bounds[b], .limit = COUNT},
                                (int)(b + (size_t)m) % SHAPES);
            device->tuning = (device_tuning){0};
            shelf_free(&s);
        }
    }
    free(rows);
}

static void limits_give_the_best_and_count_all(void **state)
{
    static const int64_t limits[] = {0, 1, 2, 31, 32, 33, 150, 699, 700, INT64_C(4294967295)};
    enum { DIM = 16 };
    ww_device *device = *state;
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows);
    random_normals(&(test_random){5}, rows, (int64_t)ROWS * DIM);
    for (int screen = 0; screen < 2; screen++) {
        shelf s = shelf_make(device, metrics[1 + screen], screen ? WW_SCREEN_INT8 : WW_SCREEN_NONE, rows, ROWS, DIM);
        device->tuning = (device_tuning){.screen_always = true};
        for (size_t l = 0; l < sizeof limits / sizeof *limits; l++)
            for (int64_t within = 10; within <= 310; within += 100) {
                const asked a = {.queries = rows, .bound = score_at(&s, rows, within), .limit = limits[l]};
                check_shape(&s, a, (int)(l + (size_t)within / 100) % SHAPES);
            }
        check_shape(&s, (asked){.queries = rows, .bound = screen ? -INFINITY : INFINITY, .limit = 7}, 1);
        device->tuning = (device_tuning){0};
        shelf_free(&s);
    }
    free(rows);
}

static void removed_and_masked_rows_are_not_found(void **state)
{
    enum { DIM = 32 };
    ww_device *device = *state;
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows);
    uint64_t mask[ROWS / 64 + 1];
    test_random random = {77};
    random_normals(&random, rows, (int64_t)ROWS * DIM);
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
        mask[i] = i % 7 == 3 ? 0 : random_bits(&random);
    for (int screen = 0; screen < 2; screen++) {
        shelf s = shelf_make(device, WW_L2, screen ? WW_SCREEN_INT8 : WW_SCREEN_NONE, rows, ROWS, DIM);
        for (int64_t i = 0; i < ROWS; i += 1 + i % 5)
            shelf_remove(&s, i);
        device->tuning = (device_tuning){.screen_always = true};
        for (int shape = 0; shape < SHAPES; shape++) {
            const asked a = {.queries = rows, .bound = score_at(&s, rows, 60), .limit = 1000};
            asked masked = a;
            masked.mask = mask;
            masked.mask_rows = ROWS - 5;
            check_shape(&s, a, shape);
            check_shape(&s, masked, shape);
        }
        device->tuning = (device_tuning){0};
        shelf_free(&s);
    }
    free(rows);
}

/* Of a GPU: lists of kept rows that are too short are made longer, and then every row is scored. */
static void full_lists_are_asked_again_and_then_plainly(void **state)
{
    enum { DIM = 16 };
    ww_device *device = *state;
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows);
    random_normals(&(test_random){8}, rows, (int64_t)ROWS * DIM);
    shelf s = shelf_make(device, WW_DOT, WW_SCREEN_INT8, rows, ROWS, DIM);
    for (int shape = 0; shape < SHAPES; shape++)
        for (int64_t within = 4; within <= 400; within *= 10) {
            device->tuning = (device_tuning){.screen_always = true, .screen_list_capacity = 12};
            device->tuning.screen_wgmma = shapes[shape].wgmma;
            const asked a = {
                .queries = rows, .count = shapes[shape].queries, .bound = score_at(&s, rows, within), .limit = 1000};
            const search_stats stats = check_range(&s, &a);
            if (strcmp(device->backend->name, "cpu") != 0)
                assert_int_equal(stats.fallback_queries > 0, within > 12 || stats.fallback_queries > 0);
        }
    device->tuning = (device_tuning){0};
    shelf_free(&s);
    free(rows);
}

/* Whatever the number of rows and queries, as the device chooses. */
static void sizes_that_devices_choose_by_give_what_the_definition_says(void **state)
{
    static const int64_t counts[] = {1, 63, 64, 65, 127, 128, 129, 500};
    enum { DIM = 130, MOST = 500 };
    ww_device *device = *state;
    float *rows = malloc((size_t)MOST * DIM * sizeof *rows);
    random_normals(&(test_random){12}, rows, (int64_t)MOST * DIM);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        shelf s = shelf_make(device, metrics[c % METRICS], WW_SCREEN_INT8, rows, counts[c], DIM);
        for (int64_t queries = 1; queries <= 40 && queries <= MOST; queries += 13) {
            const asked a = {.queries = rows, .count = queries, .bound = score_at(&s, rows, 20), .limit = 100};
            check_range(&s, &a);
        }
        shelf_free(&s);
    }
    free(rows);
}

/* A bound that keeps few: the screen excludes nearly all, and says so. */
static void the_screen_excludes_what_is_outside(void **state)
{
    enum { DIM = 64 };
    ww_device *device = *state;
    const int64_t count = device_is_slow(device) ? 2000 : 20000;
    float *rows = malloc((size_t)count * DIM * sizeof *rows);
    random_normals(&(test_random){21}, rows, count * DIM);
    shelf s = shelf_make(device, WW_COSINE, WW_SCREEN_INT8, rows, count, DIM);
    device->tuning = (device_tuning){.screen_always = true};
    for (int64_t queries = 1; queries <= 16; queries += 15) {
        const asked a = {.queries = rows, .count = queries, .bound = score_at(&s, rows, 5), .limit = 100};
        const search_stats stats = check_range(&s, &a);
        assert_int_equal(stats.rows_screened, count * queries);
        assert_true(stats.rows_kept < count * queries / 8 && stats.rows_scored < count * queries / 4);
        assert_true(stats.certificate == 0.0f);
    }
    device->tuning = (device_tuning){0};
    shelf_free(&s);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dataset_gives_what_the_definition_says),
        cmocka_unit_test(hard_numbers_give_what_the_definition_says),
        cmocka_unit_test(limits_give_the_best_and_count_all),
        cmocka_unit_test(removed_and_masked_rows_are_not_found),
        cmocka_unit_test(full_lists_are_asked_again_and_then_plainly),
        cmocka_unit_test(sizes_that_devices_choose_by_give_what_the_definition_says),
        cmocka_unit_test(the_screen_excludes_what_is_outside),
    };
    return RUN_ON_EVERY_DEVICE("range", tests);
}
