/* High planes of codes: the error of what they drop is bounded, their products are exact in every implementation, and no row is
 * discarded by a threshold that its score reaches. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "cpu/isa/scalar/scalar.h"
#include "cpu/search/high_plane.h"
#include "support/data/datasets.h"
#include "vectors/collection.h"

enum { ROWS = 64, QUERIES = 8 };

/* Padded rows of a dataset with their codes and planes, and queries with theirs. */
typedef struct planes {
    int32_t padded;
    float *vectors; /* ROWS, then QUERIES */
    int8_t *codes;
    uint8_t *highs;
    screen_vector made[ROWS + QUERIES];
    float high_residuals[ROWS + QUERIES];
} planes;

/* The scalar set, which is the last. */
static const instruction_set *scalar(void)
{
    const instruction_set *const *set = instruction_sets;
    while (set[1])
        set++;
    return *set;
}

static planes planes_make(const dataset *d, int32_t dim)
{
    planes p = {.padded = canon_padded(dim)};
    const size_t count = ROWS + QUERIES, padded = (size_t)p.padded;
    test_random random = {(uint64_t)dim};
    float *from = malloc(count * (size_t)dim * sizeof *from);
    p.vectors = malloc(count * padded * sizeof *p.vectors);
    p.codes = malloc(count * padded);
    p.highs = malloc(count * padded / 2);
    d->make(&random, dim, from, ROWS, from + (size_t)ROWS * (size_t)dim, QUERIES);
    for (size_t i = 0; i < count; i++) {
        float *row = p.vectors + i * padded;
        const float square = scalar()->store(row, from + i * (size_t)dim, dim);
        p.made[i] = scalar()->encode(row, p.padded, p.codes + i * padded);
        p.made[i].norm = sqrtf(square);
        p.high_residuals[i] = high_plane_make(p.codes + i * padded, p.padded, p.made[i], p.highs + i * (padded / 2));
    }
    free(from);
    return p;
}

static void planes_free(planes *p)
{
    free(p->vectors);
    free(p->codes);
    free(p->highs);
}

/* 16 h of an element of a row. */
static int32_t high_of(const planes *p, size_t row, int32_t element)
{
    const int32_t half = p->padded / 2;
    const uint8_t both = p->highs[row * (size_t)half + (size_t)(element % half)];
    return (int8_t)(element < half ? both & 0xf0 : both << 4 & 0xf0);
}

static void planes_bound_the_error_of_the_bits_they_drop(void **state)
{
    (void)state;
    static const int32_t dims[] = {1, 2, 64, 100, 1000, 4096};
    for (const dataset *d = datasets; d->name; d++) {
        for (size_t n = 0; n < sizeof dims / sizeof *dims; n++) {
            planes p = planes_make(d, dims[n]);
            for (size_t r = 0; r < ROWS; r++) {
                long double squares = 0.0L;
                for (int32_t i = 0; i < p.padded; i++) {
                    const long double rest = (long double)p.vectors[r * (size_t)p.padded + (size_t)i] -
                                             (long double)p.made[r].scale * high_of(&p, r, i);
                    squares += rest * rest;
                }
                const long double rest = sqrtl(squares), bound = p.high_residuals[r];
                if (!(bound >= rest && bound <= rest * 1.001L + 2 * (long double)p.made[r].residual + 0x1p-62L))
                    fail_msg("%s, dim %d, row %d: residual %La, bound %La", d->name, dims[n], (int)r, rest, bound);
            }
            planes_free(&p);
        }
    }
}

static void check_products(const screen_products *ways, const planes *p, const char *name)
{
    int32_t out[ROWS];
    if (ways->begin)
        ways->begin();
    for (size_t q = ROWS; q < ROWS + QUERIES; q++) {
        const int8_t *query = p->codes + q * (size_t)p->padded;
        ways->one_high(query, p->highs, ROWS, p->padded, out);
        for (size_t r = 0; r < ROWS; r++) {
            int32_t sum = 0;
            for (int32_t i = 0; i < p->padded; i++)
                sum += query[i] * high_of(p, r, i);
            if (out[r] != sum)
                fail_msg("%s, %s, %d elements, row %d: %d, not %d", name, ways->name, p->padded, (int)r, out[r], sum);
        }
    }
    if (ways->end)
        ways->end();
}

static void products_of_planes_are_exact_in_every_way_there_is(void **state)
{
    (void)state;
    static const int32_t dims[] = {3, 65, 128, 190, 1088, 8192};
    for (size_t n = 0; n < sizeof dims / sizeof *dims; n++) {
        for (const dataset *d = datasets; d->name; d++) {
            planes p = planes_make(d, dims[n]);
            for (const instruction_set *const *set = instruction_sets; *set; set++)
                for (const screen_products *const *ways = (*set)->products; (*set)->present() && *ways; ways++)
                    if ((*ways)->present())
                        check_products(*ways, &p, d->name);
            planes_free(&p);
        }
    }
}

/* Fails if query q discards row r with a threshold equal to the row's score. Returns whether a much better threshold discards
 * it. */
static int check_row(const planes *p, size_t q, size_t r, int32_t metric, int32_t product)
{
    const float *query = p->vectors + q * (size_t)p->padded, *row = p->vectors + r * (size_t)p->padded;
    const float sum = metric == CANON_L2 ? scalar()->squares(query, row, p->padded) : scalar()->dot(query, row, p->padded);
    const screen_vector plane = {p->made[r].scale, p->high_residuals[r], p->made[r].norm};
    const float score = canon_score(metric, sum, p->made[q].norm, p->made[r].norm);
    const float better = metric == CANON_L2 ? score * 0.5f : score + p->made[q].norm * p->made[r].norm;
    if (screen_discards(screen_limit_for(metric, p->padded, p->made[q], score), plane, product))
        fail_msg("%d elements, metric %d: row %d is as good as the threshold", p->padded, metric, (int)r);
    return screen_discards(screen_limit_for(metric, p->padded, p->made[q], better), plane, product);
}

static void no_row_is_discarded_by_its_own_score(void **state)
{
    (void)state;
    static const int32_t dims[] = {1, 5, 64, 300, 4096};
    int64_t discarded = 0;
    for (const dataset *d = datasets; d->name; d++) {
        for (size_t n = 0; n < sizeof dims / sizeof *dims; n++) {
            planes p = planes_make(d, dims[n]);
            for (size_t q = ROWS; q < ROWS + QUERIES; q++) {
                int32_t products[ROWS];
                products_scalar.one_high(p.codes + q * (size_t)p.padded, p.highs, ROWS, p.padded, products);
                for (size_t i = 0; i < 3 * ROWS; i++)
                    discarded += check_row(&p, q, i / 3, (int32_t)(i % 3), products[i / 3]);
            }
            planes_free(&p);
        }
    }
    assert_true(discarded > 1000); /* the bound is of use */
}

/* A collection whose planes exclude every row, and searches of it for one query. */
typedef struct spoilt {
    cpu_device *cpu;
    ww_collection *collection;
    float *vectors; /* SPOILT_ROWS, then a query */
} spoilt;

enum { SPOILT_ROWS = 20000, SPOILT_DIM = 128, SPOILT_K = 10 };

static spoilt spoilt_make(void)
{
    spoilt s = {.vectors = malloc((size_t)(SPOILT_ROWS + 1) * SPOILT_DIM * sizeof(float))};
    test_random random = {4};
    ww_device *device = NULL;
    dataset_named("random normal")
        ->make(&random, SPOILT_DIM, s.vectors, SPOILT_ROWS, s.vectors + (size_t)SPOILT_ROWS * SPOILT_DIM, 1);
    CHECK_OK(ww_device_open("cpu", &device));
    s.cpu = (cpu_device *)device;
    ww_collection_config config = ww_collection_config_default();
    config.dim = SPOILT_DIM;
    CHECK_OK(ww_collection_create(device, &config, &s.collection));
    ww_rows rows = ww_rows_default();
    rows.count = SPOILT_ROWS;
    rows.dim = SPOILT_DIM;
    rows.vectors = s.vectors;
    CHECK_OK(ww_collection_add(s.collection, &rows));
    for (int64_t i = 0; i < s.collection->store.segment_count; i++) {
        const segment *part = &s.collection->store.segments[i];
        for (int64_t r = 0; r < part->count; r++)
            ((float *)part->high_residuals.data)[r] = -INFINITY;
    }
    return s;
}

/* Does a search for one query read planes? Then it finds nothing and is repeated. */
static bool reads_planes(spoilt *s, tuning_choice tuned, int64_t cache_bytes)
{
    int64_t found[SPOILT_K];
    float scores[SPOILT_K];
    ww_search_stats stats = ww_search_stats_default();
    ww_query query = ww_query_default();
    query.queries = s->vectors + (size_t)SPOILT_ROWS * SPOILT_DIM;
    query.query_count = 1;
    query.dim = SPOILT_DIM;
    query.k = SPOILT_K;
    query.stats = &stats;
    s->cpu->base.tuning.planes = tuned;
    s->cpu->cache_bytes = cache_bytes;
    CHECK_OK(ww_collection_search(s->collection, &query, found, scores));
    return stats.repeated_queries > 0;
}

static void planes_are_left_out_where_the_cache_holds_the_codes(void **state)
{
    (void)state;
    const int64_t codes = (int64_t)(SPOILT_ROWS + 63) / 64 * 64 * SPOILT_DIM;
    spoilt s = spoilt_make();
    assert_false(reads_planes(&s, TUNING_AUTO, codes));
    assert_true(reads_planes(&s, TUNING_AUTO, codes - 1));
    assert_true(reads_planes(&s, TUNING_AUTO, 0)); /* unknown */
    assert_true(reads_planes(&s, TUNING_ALWAYS, codes));
    assert_false(reads_planes(&s, TUNING_NEVER, 0));
    assert_true(cpu_cache_bytes() >= 0);
    ww_collection_destroy(s.collection);
    ww_device_close(&s.cpu->base);
    free(s.vectors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_are_left_out_where_the_cache_holds_the_codes),
        cmocka_unit_test(planes_bound_the_error_of_the_bits_they_drop),
        cmocka_unit_test(products_of_planes_are_exact_in_every_way_there_is),
        cmocka_unit_test(no_row_is_discarded_by_its_own_score),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
