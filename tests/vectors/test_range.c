/* Range search: finds the rows within a bound that ww_score() gives for all rows, to the bit, on every device, with and without
 * the screen, for all data, masks, limits and numbers of queries. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "device/backend.h"
#include "support/collections.h"
#include "support/data/datasets.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
enum { METRICS = 3 };

/* ---- data ---------------------------------------------------------------------------------------------------------------- */

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

/* The request. */
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

/* ---- asking -------------------------------------------------------------------------------------------------------------- */

static ww_query range_of(const shelf *s, const asked *a, ww_search_stats *stats)
{
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    range.queries = a->queries;
    range.query_count = a->count;
    range.dim = s->dim;
    range.bound = a->bound;
    range.limit = a->limit;
    range.mask = a->mask;
    range.mask_rows = a->mask_rows;
    range.stats = stats;
    return range;
}

static void check_query(const shelf *s, const asked *a, int64_t query, const ww_results *found)
{
    uint64_t *keys = malloc((size_t)(s->count + 1) * sizeof *keys);
    const int64_t total = wanted_keys(s, a, query, keys), count = total < a->limit ? total : a->limit;
    if (ww_results_total(found, query) != total || ww_results_count(found, query) != count)
        fail_msg("metric %d, %lld rows, %lld queries, bound %a, limit %lld: query %lld has %lld of %lld, not %lld of %lld",
                 (int)s->metric, (long long)s->count, (long long)a->count, (double)a->bound, (long long)a->limit,
                 (long long)query, (long long)ww_results_count(found, query), (long long)ww_results_total(found, query),
                 (long long)count, (long long)total);
    const int64_t *rows = ww_results_rows(found, query);
    const float *scores = ww_results_scores(found, query);
    for (int64_t i = 0; i < count; i++)
        if (canon_make_key((int32_t)s->metric, scores[i], (uint32_t)rows[i]) != keys[i])
            fail_msg("metric %d, bound %a: query %lld, place %lld: row %lld with %a, not %u with %a", (int)s->metric,
                     (double)a->bound, (long long)query, (long long)i, (long long)rows[i], (double)scores[i],
                     canon_key_row(keys[i]), (double)canon_key_score((int32_t)s->metric, keys[i]));
    free(keys);
}

static ww_search_stats check_range(const shelf *s, const asked *a)
{
    ww_search_stats stats = ww_search_stats_default();
    const ww_query range = range_of(s, a, &stats);
    ww_results *found = NULL;
    CHECK_OK(ww_collection_query(s->collection, &range, &found));
    assert_int_equal(ww_results_query_count(found), a->count);
    for (int64_t q = 0; q < a->count; q++)
        check_query(s, a, q, found);
    ww_results_destroy(found);
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
    bool wgmma;
} shapes[] = {{1, false}, {3, false}, {7, false}, {20, false}, {20, true}};
enum { SHAPES = 5, ROWS = 700, QUERIES = 20 };

static void check_shape(const shelf *s, asked a, int shape)
{
    a.count = shapes[shape].queries;
    pretend_sm_90a(s->device, shapes[shape].wgmma);
    check_range(s, &a);
}

/* ---- tests --------------------------------------------------------------------------------------------------------------- */

/* At the bound, one step within it and one step outside: rows at exactly that distance are in, and nothing is a step too far.
 */
static void every_dataset_gives_the_results_of_the_definition(void **state)
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
            pretend_screen(device, true);
            const float at = score_at(&s, queries, 12);
            const float worse = metrics[m] == WW_L2 ? INFINITY : -INFINITY;
            const float bounds[] = {at, nextafterf(at, worse), nextafterf(at, -worse)};
            for (int b = 0; b < 3; b++)
                if (metrics[m] != WW_L2 || bounds[b] >= 0.0f)
                    check_shape(&s, (asked){.queries = queries, .bound = bounds[b] + 0.0f, .limit = 2000},
                                (number + m + b) % SHAPES);
            pretend_nothing(device);
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

static void hard_numbers_give_the_results_of_the_definition(void **state)
{
    enum { DIM = 65, COUNT = 300 };
    ww_device *device = *state;
    float *rows = malloc((size_t)COUNT * DIM * sizeof *rows);
    for (int m = 0; m < METRICS; m++) {
        hard_numbers(rows, COUNT, DIM, metrics[m]);
        static const float bounds[] = {0.0f, 1.0f, 0x1p-149f, 3e38f, 1e-30f, INFINITY, -1.0f, -3e38f, -INFINITY, -4.0f};
        for (int screen = 0; screen < 2; screen++) {
            shelf s = shelf_make(device, metrics[m], screen ? WW_SCREEN_INT8 : WW_SCREEN_NONE, rows, COUNT, DIM);
            pretend_screen(device, true);
            for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++)
                if ((metrics[m] != WW_L2 || bounds[b] >= 0.0f) && !(device_is_slow(device) && (b + (size_t)screen) % 2 != 0))
                    check_shape(&s, (asked){.queries = rows, .bound = bounds[b], .limit = COUNT},
                                (int)(b + (size_t)m) % SHAPES);
            pretend_nothing(device);
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
        pretend_screen(device, true);
        for (size_t l = 0; l < sizeof limits / sizeof *limits; l++)
            for (int64_t within = 10; within <= 310; within += device_is_slow(device) ? 300 : 100) {
                const asked a = {.queries = rows, .bound = score_at(&s, rows, within), .limit = limits[l]};
                check_shape(&s, a, (int)(l + (size_t)within / 100) % SHAPES);
            }
        check_shape(&s, (asked){.queries = rows, .bound = screen ? -INFINITY : INFINITY, .limit = 7}, 1);
        pretend_nothing(device);
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
        pretend_screen(device, true);
        for (int shape = 0; shape < SHAPES; shape++) {
            const asked a = {.queries = rows, .bound = score_at(&s, rows, 60), .limit = 1000};
            asked masked = a;
            masked.mask = mask;
            masked.mask_rows = ROWS - 5;
            check_shape(&s, a, shape);
            check_shape(&s, masked, shape);
        }
        pretend_nothing(device);
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
            if (device_is_slow(device) && (shape + within / 4) % 2 != 0)
                continue;
            pretend_screen(device, true);
            device->tuning.screen_list_capacity = 12;
            pretend_sm_90a(device, shapes[shape].wgmma);
            const asked a = {
                .queries = rows, .count = shapes[shape].queries, .bound = score_at(&s, rows, within), .limit = 1000};
            const ww_search_stats stats = check_range(&s, &a);
            if (strcmp(device->backend->name, "cpu") != 0 && within > 12) /* and 100: longer lists, and longer than those */
                assert_true(stats.fallback_queries > 0);
        }
    pretend_nothing(device);
    shelf_free(&s);
    free(rows);
}

/* Of a GPU: with room for few entries batches go in halves, and rows in pieces; with a limit the later ones give little. */
static void entries_without_room_come_in_pieces(void **state)
{
    enum { DIM = 16 };
    ww_device *device = *state;
    float *rows = malloc((size_t)ROWS * DIM * sizeof *rows);
    random_normals(&(test_random){18}, rows, (int64_t)ROWS * DIM);
    for (int screen = 0; screen < 2; screen++) {
        shelf s = shelf_make(device, WW_L2, screen ? WW_SCREEN_INT8 : WW_SCREEN_NONE, rows, ROWS, DIM);
        pretend_screen(device, true);
        device->tuning.range_entries = 40;
        for (int64_t limit = 3; limit <= 3000; limit *= 1000)
            for (int64_t queries = 1; queries <= 11; queries += 5) {
                check_range(&s, &(asked){.queries = rows, .count = queries, .bound = score_at(&s, rows, 30), .limit = limit});
                check_range(&s, &(asked){.queries = rows, .count = queries, .bound = score_at(&s, rows, 300), .limit = limit});
            }
        check_range(&s, &(asked){.queries = rows, .count = 3, .bound = INFINITY, .limit = 1000});
        pretend_nothing(device);
        shelf_free(&s);
    }
    free(rows);
}

/* Whatever the number of rows and queries, as the device chooses. */
static void sizes_at_which_devices_choose_give_the_results_of_the_definition(void **state)
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
static void the_screen_excludes_rows_outside_the_bound(void **state)
{
    enum { DIM = 64 };
    ww_device *device = *state;
    const int64_t count = device_is_slow(device) ? 2000 : 20000;
    float *rows = malloc((size_t)count * DIM * sizeof *rows);
    random_normals(&(test_random){21}, rows, count * DIM);
    shelf s = shelf_make(device, WW_COSINE, WW_SCREEN_INT8, rows, count, DIM);
    pretend_screen(device, true);
    for (int64_t queries = 1; queries <= 16; queries += 15) {
        const asked a = {.queries = rows, .count = queries, .bound = score_at(&s, rows, 5), .limit = 100};
        const ww_search_stats stats = check_range(&s, &a);
        assert_int_equal(stats.rows_screened, count * queries);
        assert_true(stats.rows_kept < count * queries / 8 && stats.rows_scored < count * queries / 4);
        assert_true(stats.certificate == 0.0f);
    }
    pretend_nothing(device);
    shelf_free(&s);
    free(rows);
}

static void results_have_ids_payloads_vectors_and_handles(void **state)
{
    enum { DIM = 3 };
    static const float rows[4 * DIM] = {0, 0, 0, 1, 0, 0, 2, 0, 0, 2, 0, 0};
    static const char *const ids[] = {"origin", "one", "two", "too"};
    static const char *const payloads[] = {"0", NULL, "{\"x\": 2}", "[2]"};
    ww_collection *c = collection_make(*state, DIM, WW_L2);
    ww_rows some = ww_rows_default();
    some.count = 4;
    some.dim = DIM;
    some.vectors = rows;
    some.ids = ids;
    some.payloads = payloads;
    CHECK_OK(ww_collection_add(c, &some));
    CHECK_OK(ww_collection_remove(c, ids, 1));
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    range.queries = rows + DIM;
    range.query_count = 1;
    range.dim = DIM;
    range.bound = 1.0f;
    range.limit = 2;
    range.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    ww_results *found = NULL;
    CHECK_OK(ww_collection_query(c, &range, &found));
    CHECK_OK(ww_collection_clear(c)); /* what was found stays */
    assert_int_equal(ww_results_count(found, 0), 2);
    assert_int_equal(ww_results_total(found, 0), 3);
    assert_string_equal(ww_results_id(found, 0, 0), "one");
    assert_string_equal(ww_results_id(found, 0, 1), "two");
    assert_null(ww_results_payload(found, 0, 0));
    assert_string_equal(ww_results_payload(found, 0, 1), "{\"x\": 2}");
    assert_memory_equal(ww_results_vector(found, 0, 1), rows + 2L * DIM, DIM * sizeof *rows);
    assert_int_equal(ww_results_rows(found, 0)[1], 1);
    assert_int_equal(ww_results_handles(found, 0)[1], 2);
    assert_int_equal(ww_results_total(found, 1), 0);
    assert_int_equal(ww_results_total(NULL, 0), 0);
    ww_results_destroy(found);
    /* Nothing to search, and nobody to search for. */
    CHECK_OK(ww_collection_query(c, &range, &found));
    assert_int_equal(ww_results_total(found, 0), 0);
    assert_int_equal(ww_results_count(found, 0), 0);
    ww_results_destroy(found);
    range.query_count = 0;
    CHECK_OK(ww_collection_query(c, &range, &found));
    assert_int_equal(ww_results_query_count(found), 0);
    ww_results_destroy(found);
    ww_collection_destroy(c);
}

static ww_query range_query(const float *query, int32_t dim)
{
    ww_query good = ww_query_default();
    good.mode = WW_QUERY_RANGE;
    good.queries = query;
    good.query_count = 1;
    good.dim = dim;
    good.bound = 1;
    good.limit = 5;
    return good;
}

static void bounds_and_limits_that_make_no_sense_are_refused(void **state)
{
    enum { DIM = 2 };
    const float query[DIM] = {1, 2};
    ww_collection *c = collection_make(*state, DIM, WW_L2);
    ww_results *found = (ww_results *)&found;
    const ww_query good = range_query(query, DIM);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(NULL, &good, &found));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, NULL, &found));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &good, NULL));
    ww_query bad = good;
    bad.struct_size = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &bad, &found));
    bad = good;
    bad.bound = NAN;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &bad, &found));
    assert_string_equal(ww_error_message(), "ww_collection_query: bound is not a number");
    bad.bound = -1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &bad, &found));
    assert_string_equal(ww_error_message(), "ww_collection_query: bound is -1; a distance must not be negative");
    bad = good;
    bad.limit = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_query(c, &bad, &found));
    bad.limit = WW_ROWS_MAX + 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_query(c, &bad, &found));
    assert_string_equal(ww_error_message(), "ww_collection_query: limit is 4294967296; it must be 0 to 4294967295");
    bad = good;
    bad.k = 5;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &bad, &found));
    assert_string_equal(ww_error_message(), "ww_collection_query: k is for the nearest; for a range set limit");
    assert_ptr_equal(found, &found); /* nothing was written */
    ww_collection_destroy(c);
}

static void modes_and_queries_that_make_no_sense_are_refused(void **state)
{
    enum { DIM = 2 };
    const float query[DIM] = {1, 2}, wrong[DIM] = {1, NAN};
    ww_collection *c = collection_make(*state, DIM, WW_L2), *dots = collection_make(*state, DIM, WW_DOT);
    ww_results *found = (ww_results *)&found;
    const ww_query good = range_query(query, DIM);
    ww_query bad = good;
    bad.mode = WW_QUERY_NEAREST; /* forgotten, perhaps */
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &bad, &found));
    bad.mode = (ww_query_mode)7;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &bad, &found));
    assert_string_equal(ww_error_message(), "ww_collection_query: mode is 7; it must be WW_QUERY_NEAREST or WW_QUERY_RANGE");
    bad = good;
    bad.queries = wrong;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &bad, &found));
    bad = good;
    bad.dim = 3;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_collection_query(c, &bad, &found));
    bad = good;
    bad.fetch = 64;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &bad, &found));
    assert_ptr_equal(found, &found); /* nothing was written */
    bad = good;
    bad.bound = -1; /* a score may be */
    CHECK_OK(ww_collection_query(dots, &bad, &found));
    ww_results_destroy(found);
    bad.bound = -0.0f;
    CHECK_OK(ww_collection_query(c, &bad, &found));
    ww_results_destroy(found);
    ww_collection_destroy(c);
    ww_collection_destroy(dots);
}

static int stop(int64_t done, int64_t total, void *user)
{
    (void)done;
    (void)total;
    ++*(int *)user;
    return 1;
}

static void a_progress_function_can_stop_it(void **state)
{
    enum { DIM = 8, COUNT = 300 };
    float rows[COUNT * DIM];
    random_normals(&(test_random){2}, rows, COUNT * DIM);
    shelf s = shelf_make(*state, WW_DOT, WW_SCREEN_INT8, rows, COUNT, DIM);
    int calls = 0;
    ww_results *found = NULL;
    ww_query range = range_of(&s, &(asked){.queries = rows, .count = 20, .bound = 0, .limit = 10}, NULL);
    range.progress = stop;
    range.progress_user = &calls;
    CHECK_FAILS(WW_CANCELLED, ww_collection_query(s.collection, &range, &found));
    assert_int_equal(calls, 1);
    shelf_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dataset_gives_the_results_of_the_definition),
        cmocka_unit_test(hard_numbers_give_the_results_of_the_definition),
        cmocka_unit_test(limits_give_the_best_and_count_all),
        cmocka_unit_test(removed_and_masked_rows_are_not_found),
        cmocka_unit_test(full_lists_are_asked_again_and_then_plainly),
        cmocka_unit_test(entries_without_room_come_in_pieces),
        cmocka_unit_test(sizes_at_which_devices_choose_give_the_results_of_the_definition),
        cmocka_unit_test(the_screen_excludes_rows_outside_the_bound),
        cmocka_unit_test(results_have_ids_payloads_vectors_and_handles),
        cmocka_unit_test(bounds_and_limits_that_make_no_sense_are_refused),
        cmocka_unit_test(modes_and_queries_that_make_no_sense_are_refused),
        cmocka_unit_test(a_progress_function_can_stop_it),
    };
    return RUN_ON_EVERY_DEVICE("range", tests);
}
