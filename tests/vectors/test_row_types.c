/* Rows of f16, bf16, i8 and u8: every call gives the bits of an f32 collection that holds the same values, whatever the metric,
 * the screen, the mask and the number of queries; what a type does not hold is refused, and nothing changes.
 *
 * The f32 collections that answers are compared with are on the CPU, whose answers other suites compare with the definition.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/row_values.h"
#include "device/backend.h"
#include "support/collections.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

static const ww_vector_type types[] = {WW_VECTOR_F16, WW_VECTOR_BF16, WW_VECTOR_I8, WW_VECTOR_U8};
static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
enum { TYPES = 4, METRICS = 3 };

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

/* A number that f16 or bf16 round, with large, tiny and denormal ones among them; or one that the bytes hold. */
static float number_of(test_random *random, ww_vector_type type, int64_t row)
{
    if (type == WW_VECTOR_I8)
        return row % 5 == 0 ? -128.0f : (float)random_below(random, 256) - 128.0f;
    if (type == WW_VECTOR_U8)
        return row % 5 == 0 ? 255.0f : (float)random_below(random, row % 3 == 0 ? 4 : 256);
    const float x = random_normal(random);
    return row % 7 == 0 ? x * 0x1p-20f : row % 11 == 0 ? x * 300.0f : x;
}

/* Rows as a caller has them, as the type holds them, and as the f32 values that those are. */
typedef struct numbers {
    float *given;
    char *elements;
    float *held;
} numbers;

static numbers numbers_make(test_random *random, ww_vector_type type, int64_t count, int32_t dim)
{
    const size_t all = (size_t)count * (size_t)dim;
    numbers made = {malloc(all * sizeof(float)), malloc(all * row_type_bytes((int32_t)type)), malloc(all * sizeof(float))};
    float center[1024];
    for (int32_t i = 0; i < dim; i++)
        center[i] = number_of(random, type, 1);
    for (int64_t r = 0; r < count; r++) {
        float *row = made.given + r * dim;
        /* Every fourth row is near one place, so that a screen has something to exclude. */
        for (int32_t i = 0; i < dim; i++)
            row[i] = r % 4 == 3 && i > 2 ? center[i] : number_of(random, type, r);
        char *elements = made.elements + (size_t)(r * dim) * row_type_bytes((int32_t)type);
        assert_true(row_narrow((int32_t)type, row, dim, elements));
        row_widen((int32_t)type, elements, dim, made.held + r * dim);
    }
    return made;
}

static void numbers_free(numbers *n)
{
    free(n->given);
    free(n->elements);
    free(n->held);
}

/* ---- twins --------------------------------------------------------------------------------------------------------------- */

/* A collection of the type, and one of f32 on the CPU with the same values. */
typedef struct twins {
    ww_device *cpu;
    ww_collection *typed, *f32;
    ww_vector_type type;
    int32_t dim;
} twins;

static ww_collection *make(ww_device *device, int32_t dim, ww_metric metric, ww_screen screen, ww_vector_type type)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "test";
    config.dim = dim;
    config.metric = metric;
    config.screen = screen;
    config.type = type;
    ww_collection *made = NULL;
    CHECK_OK(ww_collection_create(device, &config, &made));
    return made;
}

static twins twins_make(ww_device *device, int32_t dim, ww_metric metric, ww_screen screen, ww_vector_type type)
{
    twins t = {.type = type, .dim = dim};
    CHECK_OK(ww_device_open("cpu", &t.cpu));
    t.typed = make(device, dim, metric, screen, type);
    t.f32 = make(t.cpu, dim, metric, screen, WW_VECTOR_F32);
    return t;
}

static void twins_free(twins *t)
{
    ww_collection_destroy(t->typed);
    ww_collection_destroy(t->f32);
    ww_device_close(t->cpu);
}

/* The same rows to both, in three batches: as f32, as elements, and as f32 that replace some. */
static void twins_fill(twins *t, const numbers *n, int64_t count)
{
    const int64_t third = count / 3;
    for (int64_t part = 0; part < 3; part++) {
        ww_rows rows = ww_rows_default(), elements;
        rows.count = part == 2 ? count - 2 * third : third;
        rows.dim = t->dim;
        rows.vectors = n->held + part * third * t->dim;
        elements = rows;
        if (part == 1) {
            elements.vectors = NULL;
            elements.elements = n->elements + (size_t)(third * t->dim) * row_type_bytes((int32_t)t->type);
            elements.type = t->type;
        } else {
            elements.vectors = n->given + part * third * t->dim;
        }
        CHECK_OK(ww_collection_add(t->f32, &rows));
        CHECK_OK(ww_collection_add(t->typed, &elements));
    }
}

static void twins_remove(twins *t, int64_t row)
{
    char text[32];
    const char *id = text;
    snprintf(text, sizeof text, "%lld", (long long)row);
    CHECK_OK(ww_collection_remove(t->typed, &id, 1));
    CHECK_OK(ww_collection_remove(t->f32, &id, 1));
}

static void check_results(const ww_results *a, const ww_results *b, int32_t dim)
{
    assert_int_equal(ww_results_query_count(a), ww_results_query_count(b));
    for (int64_t q = 0; q < ww_results_query_count(a); q++) {
        const int64_t count = ww_results_count(a, q);
        assert_int_equal(count, ww_results_count(b, q));
        assert_int_equal(ww_results_total(a, q), ww_results_total(b, q));
        assert_memory_equal(ww_results_rows(a, q), ww_results_rows(b, q), (size_t)count * sizeof(int64_t));
        assert_memory_equal(ww_results_scores(a, q), ww_results_scores(b, q), (size_t)count * sizeof(float));
        for (int64_t i = 0; i < count && ww_results_vector(b, q, 0); i++)
            assert_memory_equal(ww_results_vector(a, q, i), ww_results_vector(b, q, i), (size_t)dim * sizeof(float));
    }
}

typedef struct asked {
    const float *queries;
    int64_t count;
    int32_t k;
    const uint64_t *mask;
    int64_t mask_rows;
} asked;

static void check_query(const twins *t, asked a)
{
    ww_query query = ww_query_default();
    query.queries = a.queries;
    query.query_count = a.count;
    query.dim = t->dim;
    query.k = a.k;
    query.mask = a.mask;
    query.mask_rows = a.mask_rows;
    query.fetch = WW_FETCH_VECTORS;
    ww_results *typed = NULL, *f32 = NULL;
    CHECK_OK(ww_collection_query(t->typed, &query, &typed));
    CHECK_OK(ww_collection_query(t->f32, &query, &f32));
    check_results(typed, f32, t->dim);
    ww_results_destroy(typed);
    ww_results_destroy(f32);
}

/* The bound is the score of the k-th result of the first query. */
static void check_range(const twins *t, asked a)
{
    ww_query query = ww_query_default();
    query.queries = a.queries;
    query.query_count = 1;
    query.dim = t->dim;
    query.k = a.k;
    ww_results *typed = NULL, *f32 = NULL;
    CHECK_OK(ww_collection_query(t->f32, &query, &f32));
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    range.queries = a.queries;
    range.query_count = a.count;
    range.dim = t->dim;
    range.bound = ww_results_scores(f32, 0)[ww_results_count(f32, 0) - 1];
    range.limit = 50;
    range.mask = a.mask;
    range.mask_rows = a.mask_rows;
    range.fetch = WW_FETCH_VECTORS;
    ww_results_destroy(f32);
    CHECK_OK(ww_collection_query(t->typed, &range, &typed));
    CHECK_OK(ww_collection_query(t->f32, &range, &f32));
    check_results(typed, f32, t->dim);
    ww_results_destroy(typed);
    ww_results_destroy(f32);
}

static void check_get(const twins *t)
{
    ww_get get = ww_get_default();
    get.count = WW_ROWS_MAX;
    get.fetch = WW_FETCH_VECTORS;
    ww_results *typed = NULL, *f32 = NULL;
    CHECK_OK(ww_collection_get(t->typed, &get, &typed));
    CHECK_OK(ww_collection_get(t->f32, &get, &f32));
    check_results(typed, f32, t->dim);
    ww_results_destroy(typed);
    ww_results_destroy(f32);
    float a[1024], b[1024];
    char elements[4096], again[4096];
    for (int64_t row = ww_collection_next(t->f32, -1); row >= 0; row = ww_collection_next(t->f32, row + 97)) {
        CHECK_OK(ww_collection_vector(t->f32, row, a));
        CHECK_OK(ww_collection_vector(t->typed, row, b));
        assert_memory_equal(a, b, (size_t)t->dim * sizeof *a);
        CHECK_OK(ww_collection_elements(t->typed, row, elements));
        assert_true(row_narrow((int32_t)t->type, a, t->dim, again));
        assert_memory_equal(elements, again, (size_t)t->dim * row_type_bytes((int32_t)t->type));
    }
}

/* ---- tests --------------------------------------------------------------------------------------------------------------- */

static void ask_everything(const twins *t, test_random *random, int64_t count, bool few)
{
    enum { QUERIES = 40 };
    float *queries = malloc((size_t)QUERIES * (size_t)t->dim * sizeof *queries);
    uint64_t mask[32];
    for (int32_t i = 0; i < 32; i++)
        mask[i] = random_bits(random) & random_bits(random);
    const bool bytes = row_type_is_bytes((int32_t)t->type);
    for (int64_t i = 0; i < QUERIES * (int64_t)t->dim; i++)
        queries[i] = random_normal(random) * (bytes ? 40.0f : 1.0f) + (t->type == WW_VECTOR_U8 ? 60.0f : 0.0f);
    static const int64_t counts[] = {1, 17, 2, 5, 3, QUERIES};
    const size_t rounds = few ? 2 : sizeof counts / sizeof *counts;
    for (size_t i = 0; i < rounds; i++) {
        check_query(t, (asked){queries, counts[i], 1 + (int32_t)i * 7, NULL, 0});
        check_query(t, (asked){queries, counts[i], 10, mask, count - 100});
        if (!few || i == 1)
            check_range(t, (asked){queries, counts[i], 20, i % 2 ? mask : NULL, count});
    }
    free(queries);
}

static void compare(ww_device *device, int32_t dim, ww_metric metric, ww_screen screen, ww_vector_type type)
{
    test_random random = {(uint64_t)dim * 100 + (uint64_t)type * 10 + (uint64_t)metric};
    const bool slow = device_is_slow(device);
    const int64_t count = slow ? 200 : 1900;
    numbers n = numbers_make(&random, type, count, dim);
    twins t = twins_make(device, dim, metric, screen, type);
    twins_fill(&t, &n, count);
    if (!slow)
        ask_everything(&t, &random, count, false);
    for (int64_t row = 5; row < count; row += 9)
        twins_remove(&t, row);
    ask_everything(&t, &random, count, slow);
    CHECK_OK(ww_collection_compact(t.typed, NULL, NULL));
    CHECK_OK(ww_collection_compact(t.f32, NULL, NULL));
    if (!slow)
        ask_everything(&t, &random, count, false);
    check_get(&t);
    CHECK_OK(ww_collection_check(t.typed, NULL, NULL, NULL));
    twins_free(&t);
    numbers_free(&n);
}

static void every_metric_with_a_screen_gives_the_bits_of_f32(void **state)
{
    ww_device *device = *state;
    pretend_screen(device, true); /* a GPU screens from more rows on than a test has time for */
    for (int32_t t = 0; t < TYPES; t++)
        for (int32_t m = 0; m < METRICS; m++)
            compare(device, m == 0 ? 100 : 64, metrics[m], WW_SCREEN_INT8, types[t]);
    pretend_screen(device, false);
}

static void every_metric_without_a_screen_gives_the_bits_of_f32(void **state)
{
    for (int32_t t = 0; t < TYPES; t++)
        for (int32_t m = 0; m < METRICS; m++)
            compare(*state, m == 0 ? 65 : 3, metrics[m], WW_SCREEN_NONE, types[t]);
}

static void long_rows_give_the_bits_of_f32(void **state)
{
    for (int32_t t = 0; t < TYPES; t++) {
        compare(*state, 130 + 64 * t, metrics[t % METRICS], WW_SCREEN_INT8, types[t]);
        if (!device_is_slow(*state))
            compare(*state, 770, metrics[(t + 1) % METRICS], WW_SCREEN_INT8, types[t]);
    }
}

/* More rows than the blocks of a device take in their first steps, forward and backward, some steps without an admitted row. */
static void one_query_goes_through_many_rows(void **state)
{
    enum { DIM = 20, COUNT = 3000 };
    for (int32_t i = 0; i < TYPES; i++) {
        test_random random = {(uint64_t)i + 50};
        numbers n = numbers_make(&random, types[i], COUNT, DIM);
        twins t = twins_make(*state, DIM, metrics[i % METRICS], WW_SCREEN_NONE, types[i]);
        twins_fill(&t, &n, COUNT);
        uint64_t mask[COUNT / 64 + 1];
        for (int32_t w = 0; w <= COUNT / 64; w++)
            mask[w] = w / 9 % 2 ? random_bits(&random) : 0;
        for (int32_t q = 0; q < 4; q++)
            check_query(&t, (asked){n.held + q * DIM, 1, 30, q > 1 ? mask : NULL, COUNT});
        twins_free(&t);
        numbers_free(&n);
    }
}

/* Searches rows of bytes near one of 64 places, and sees that codes have excluded the others. */
static void search_one_place(ww_collection *c, const float *place, int32_t dim, int64_t query_count)
{
    enum { K = 5 };
    test_random random = {11};
    float *queries = malloc((size_t)(query_count * dim) * sizeof *queries);
    int64_t *found = malloc((size_t)query_count * K * sizeof *found);
    float *scores = malloc((size_t)query_count * K * sizeof *scores);
    for (int64_t i = 0; i < query_count * dim; i++)
        queries[i] = place[i % dim] + random_normal(&random);
    ww_search_stats stats = ww_search_stats_default();
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = query_count;
    search.dim = dim;
    search.k = K;
    search.stats = &stats;
    CHECK_OK(ww_collection_search(c, &search, found, scores));
    assert_true(stats.rows_screened > 0);
    assert_true(stats.rows_kept * 4 < stats.rows_screened);
    assert_true(stats.certificate >= 0.0f);
    assert_int_equal(stats.fallback_queries, 0);
    free(queries);
    free(found);
    free(scores);
}

/* The screen excludes rows of bytes by their own values, for every metric and number of queries. */
static void rows_of_bytes_are_their_own_screen(void **state)
{
    enum { DIM = 128, PLACES = 64 };
    ww_device *device = *state;
    const int64_t count = device_is_slow(device) ? 512 : 4096;
    pretend_screen(device, true); /* a GPU screens from more rows on */
    for (int32_t i = 2; i < TYPES; i++) {
        for (int32_t metric = 0; metric < 3; metric++) {
            test_random random = {7};
            const ww_vector_type type = types[i];
            ww_collection *c = make(*state, DIM, (ww_metric)metric, WW_SCREEN_INT8, type);
            uint8_t *elements = malloc((size_t)count * DIM);
            for (int64_t r = 0; r < count * DIM; r++)
                elements[r] = r < (int64_t)PLACES * DIM
                                  ? (uint8_t)(random_below(&random, 120) * 2 + (type == WW_VECTOR_I8 ? 136 : 0))
                                  : (uint8_t)(elements[r % (PLACES * DIM)] + random_below(&random, 3));
            ww_rows rows = ww_rows_default();
            rows.count = count;
            rows.dim = DIM;
            rows.elements = elements;
            rows.type = type;
            CHECK_OK(ww_collection_add(c, &rows));
            float place[DIM]; /* the longest, which is near for dot, too */
            double longest = 0.0;
            for (int64_t r = 0; r < PLACES; r++) {
                float wide[DIM];
                double length = 0.0;
                row_widen((int32_t)type, elements + r * DIM, DIM, wide);
                for (int32_t d = 0; d < DIM; d++)
                    length += (double)wide[d] * (double)wide[d];
                if (length > longest)
                    memcpy(place, wide, sizeof place);
                longest = length > longest ? length : longest;
            }
            static const int64_t query_counts[] = {3, 7, 20};
            for (int32_t q = 0; q < 3; q++)
                search_one_place(c, place, DIM, query_counts[q]);
            ww_collection_info info = ww_collection_info_default();
            CHECK_OK(ww_collection_describe(c, &info));
            assert_int_equal(info.type, type);
            assert_int_equal(info.bytes_screen, info.rows_capacity * 8);
            assert_int_equal(info.bytes_rows, info.rows_capacity * (DIM + 4) + info.rows_capacity / 8);
            free(elements);
            ww_collection_destroy(c);
        }
    }
    pretend_screen(device, false);
}

static void halves_take_half_of_the_memory(void **state)
{
    for (int32_t i = 0; i < 2; i++) {
        ww_collection *c = make(*state, 128, WW_DOT, WW_SCREEN_NONE, types[i]);
        CHECK_OK(ww_collection_reserve(c, 640));
        ww_collection_info info = ww_collection_info_default();
        CHECK_OK(ww_collection_describe(c, &info));
        assert_int_equal(info.bytes_screen, 0);
        assert_int_equal(info.bytes_rows, info.rows_capacity * (128 * 2 + 4) + info.rows_capacity / 8);
        ww_collection_destroy(c);
    }
}

/* Adds one row of four numbers, the third of which is `x`, after one that fits. */
static ww_status add_one(ww_collection *c, float x)
{
    const float vectors[8] = {1, 2, 3, 4, 1, 2, x, 4};
    ww_rows rows = ww_rows_default();
    rows.count = 2;
    rows.dim = 4;
    rows.vectors = vectors;
    return ww_collection_add(c, &rows);
}

static void values_that_a_type_cannot_hold_are_refused(void **state)
{
    static const struct {
        ww_vector_type type;
        float x;
        bool fits;
    } cases[] = {
        {WW_VECTOR_F16, 65504.0f, true},   {WW_VECTOR_F16, 65519.0f, true}, {WW_VECTOR_F16, 65520.0f, false},
        {WW_VECTOR_F16, -70000.0f, false}, {WW_VECTOR_F16, NAN, false},     {WW_VECTOR_F16, 1e-30f, true},
        {WW_VECTOR_BF16, 1e18f, true},     {WW_VECTOR_BF16, 3e38f, false},  {WW_VECTOR_BF16, 3.4e38f, false},
        {WW_VECTOR_BF16, INFINITY, false}, {WW_VECTOR_I8, -128.0f, true},   {WW_VECTOR_I8, 127.0f, true},
        {WW_VECTOR_I8, 128.0f, false},     {WW_VECTOR_I8, -129.0f, false},  {WW_VECTOR_I8, 1.5f, false},
        {WW_VECTOR_I8, NAN, false},        {WW_VECTOR_I8, 0x1p40f, false},  {WW_VECTOR_I8, -0.0f, true},
        {WW_VECTOR_U8, 0.0f, true},        {WW_VECTOR_U8, 255.0f, true},    {WW_VECTOR_U8, 256.0f, false},
        {WW_VECTOR_U8, -1.0f, false},      {WW_VECTOR_U8, 0.001f, false},   {WW_VECTOR_U8, -INFINITY, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ww_collection *c = make(*state, 4, WW_DOT, WW_SCREEN_INT8, cases[i].type);
        CHECK_OK(add_one(c, 1.0f));
        snapshot before = snapshot_take(c);
        if (cases[i].fits) {
            CHECK_OK(add_one(c, cases[i].x));
            assert_int_equal(ww_collection_count(c), 4);
            snapshot_free(&before);
        } else {
            CHECK_FAILS(WW_INVALID_ARGUMENT, add_one(c, cases[i].x));
            assert_non_null(strstr(ww_error_message(), "row 1 of the batch (id '3')"));
            if (cases[i].type != WW_VECTOR_BF16 || isinf(cases[i].x) || cases[i].x > 3.39e38f) /* else: the norm */
                assert_non_null(strstr(ww_error_message(), "column 2 is "));
            check_unchanged(c, &before);
        }
        ww_collection_destroy(c);
    }
}

static void numbers_are_rounded_to_the_nearest_even(void **state)
{
    ww_collection *c = make(*state, 4, WW_DOT, WW_SCREEN_NONE, WW_VECTOR_F16);
    const float given[4] = {2049.0f, 2051.0f, 0x1p-25f, 0x1.8p-24f}, wanted[4] = {2048.0f, 2052.0f, 0.0f, 0x1p-23f};
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = 4;
    rows.vectors = given;
    CHECK_OK(ww_collection_add(c, &rows));
    float got[4];
    CHECK_OK(ww_collection_vector(c, 0, got));
    assert_memory_equal(got, wanted, sizeof got);
    ww_collection_destroy(c);
    c = make(*state, 4, WW_DOT, WW_SCREEN_NONE, WW_VECTOR_BF16);
    const float bf16_given[4] = {257.0f, 259.0f, -257.0f, 1.0f}, bf16_wanted[4] = {256.0f, 260.0f, -256.0f, 1.0f};
    rows.vectors = bf16_given;
    CHECK_OK(ww_collection_add(c, &rows));
    CHECK_OK(ww_collection_vector(c, 0, got));
    assert_memory_equal(got, bf16_wanted, sizeof got);
    ww_collection_destroy(c);
}

static void elements_of_another_type_are_refused(void **state)
{
    ww_collection *c = make(*state, 4, WW_DOT, WW_SCREEN_INT8, WW_VECTOR_F16);
    const uint16_t elements[12] = {0x3c00, 0, 0, 0, 0x7c00, 0x7e00, 0, 0, 0x4000, 0, 0, 0}; /* 1; infinity and NaN; 2 */
    const float vectors[4] = {0};
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = 4;
    rows.elements = elements;
    snapshot before = snapshot_take(c);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(c, &rows)); /* said to be f32 */
    rows.type = WW_VECTOR_BF16;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(c, &rows));
    assert_non_null(strstr(ww_error_message(), "rows of f16, rows->elements are bf16"));
    rows.type = (ww_vector_type)77;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(c, &rows));
    rows.type = WW_VECTOR_F16;
    rows.vectors = vectors;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(c, &rows));
    rows.vectors = NULL;
    rows.count = 2;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(c, &rows)); /* infinity */
    rows.elements = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(c, &rows));
    check_unchanged(c, &before);
    rows.elements = elements;
    rows.row_stride = 8;
    CHECK_OK(ww_collection_add(c, &rows));
    uint16_t got[4];
    CHECK_OK(ww_collection_elements(c, 1, got));
    assert_memory_equal(got, elements + 8, sizeof got);
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_elements(c, 2, got));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_elements(c, 1, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_elements(NULL, 1, got));
    ww_collection_destroy(c);
    ww_collection_config config = ww_collection_config_default();
    config.dim = 4;
    config.type = (ww_vector_type)5;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_create(*state, &config, &c));
}

/* To the CPU and back, with a host copy and without one. */
static void a_collection_that_moves_keeps_its_bits(void **state)
{
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int32_t t = 0; t < TYPES; t++) {
        test_random random = {(uint64_t)t};
        numbers n = numbers_make(&random, types[t], 300, 70);
        ww_collection_config config = ww_collection_config_default();
        config.dim = 70;
        config.metric = metrics[t % METRICS];
        config.type = types[t];
        config.keep_host_copy = t % 2;
        ww_collection *c = NULL;
        CHECK_OK(ww_collection_create(*state, &config, &c));
        ww_rows rows = ww_rows_default();
        rows.count = 300;
        rows.dim = 70;
        rows.vectors = n.given;
        CHECK_OK(ww_collection_add(c, &rows));
        const char *gone[] = {"3", "77"};
        CHECK_OK(ww_collection_remove(c, gone, 2));
        rows.count = 1;
        const char *ids[] = {"9"};
        rows.ids = ids;
        CHECK_OK(ww_collection_upsert(c, &rows));
        snapshot before = snapshot_take(c);
        CHECK_OK(ww_collection_move(c, cpu));
        snapshot there = snapshot_take(c);
        assert_true(snapshot_equal_but_figures(&before, &there));
        CHECK_OK(ww_collection_move(c, *state));
        snapshot back = snapshot_take(c);
        assert_true(snapshot_equal_but_figures(&before, &back));
        snapshot_free(&before);
        snapshot_free(&there);
        snapshot_free(&back);
        ww_collection_destroy(c);
        numbers_free(&n);
    }
    ww_device_close(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_metric_with_a_screen_gives_the_bits_of_f32),
        cmocka_unit_test(every_metric_without_a_screen_gives_the_bits_of_f32),
        cmocka_unit_test(long_rows_give_the_bits_of_f32),
        cmocka_unit_test(one_query_goes_through_many_rows),
        cmocka_unit_test(rows_of_bytes_are_their_own_screen),
        cmocka_unit_test(halves_take_half_of_the_memory),
        cmocka_unit_test(values_that_a_type_cannot_hold_are_refused),
        cmocka_unit_test(numbers_are_rounded_to_the_nearest_even),
        cmocka_unit_test(elements_of_another_type_are_refused),
        cmocka_unit_test(a_collection_that_moves_keeps_its_bits),
    };
    return RUN_ON_EVERY_DEVICE("row types", tests);
}
