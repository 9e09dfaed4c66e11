/* The leading parts of codes (cpu/search/screen_lead.h): their bound on a sum of products is never too low and is tight enough
 * to exclude most clustered rows, for one query and for groups; searches over long rows find what the full scan finds. */
#include "support/check.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave.h>

#include "cpu/isa/scalar/scalar.h"
#include "cpu/search/screen_lead.h"
#include "support/data/datasets.h"

enum { QUERIES = 3, ROWS = 4 * UNIT_ROWS, DIM_MAX = 4096, VECTORS = ROWS + QUERIES };

/* Rows, then queries, with their codes. */
typedef struct coded {
    int32_t padded;
    float *vectors;
    int8_t *codes;
    float scales[VECTORS], residuals[VECTORS], norms[VECTORS];
} coded;

static const instruction_set *best_set(void)
{
    const instruction_set *const *set = instruction_sets;
    while (!(*set)->present())
        set++;
    return *set;
}

static coded coded_make(const dataset *d, int32_t dim, float size)
{
    test_random random = {(uint64_t)dim};
    coded c = {.padded = canon_padded(dim)};
    float *made = malloc(sizeof(float) * VECTORS * (size_t)dim);
    c.vectors = malloc(sizeof(float) * VECTORS * (size_t)c.padded);
    c.codes = aligned_alloc(64, VECTORS * (size_t)c.padded);
    d->make(&random, dim, made, ROWS, made + (int64_t)ROWS * dim, QUERIES);
    for (int64_t v = 0; v < VECTORS; v++) {
        for (int32_t i = 0; i < dim; i++)
            made[v * dim + i] *= size;
        c.norms[v] = sqrtf(best_set()->store(c.vectors + v * c.padded, made + v * dim, dim));
        const screen_vector s = best_set()->encode(c.vectors + v * c.padded, c.padded, c.codes + v * c.padded);
        c.scales[v] = s.scale;
        c.residuals[v] = s.residual;
    }
    free(made);
    return c;
}

static void coded_free(coded *c)
{
    free(c->vectors);
    free(c->codes);
}

/* Calls `check` with bounds and sums of each query and unit. */
static void each_unit(const coded *c,
                      void (*check)(const coded *c, int32_t query, int32_t row, const int32_t *bounds, const int32_t *sums,
                                    void *context),
                      void *context)
{
    const screen_products *p = screen_products_choose(best_set());
    static lead_rows lead;
    int32_t bounds[UNIT_ROWS], sums[UNIT_ROWS];
    for (int32_t row = 0; row < ROWS; row += UNIT_ROWS) {
        const screen_rows rows = {c->scales + row, c->residuals + row, c->norms + row};
        const int8_t *codes = c->codes + (int64_t)row * c->padded;
        lead_take(&lead, codes, &rows, UNIT_ROWS, c->padded);
        for (int32_t q = ROWS; q < VECTORS; q++) {
            const int8_t *query = c->codes + (int64_t)q * c->padded;
            lead_products(&lead, p, query, lead_rest(query, c->padded), UNIT_ROWS, bounds);
            products_scalar.one(query, codes, UNIT_ROWS, c->padded, sums);
            check(c, q, row, bounds, sums, context);
        }
    }
}

static void check_bounds(const coded *c, int32_t query, int32_t row, const int32_t *bounds, const int32_t *sums, void *context)
{
    for (int32_t r = 0; r < UNIT_ROWS; r++)
        if (bounds[r] < sums[r])
            fail_msg("%s, %d elements: the sum of query %d and row %d is %d, but no more than %d is said",
                     (const char *)context, c->padded, query - ROWS, row + r, sums[r], bounds[r]);
}

static void leading_codes_never_say_too_little(void **state)
{
    (void)state;
    static const int32_t dims[] = {256, 300, 768, DIM_MAX};
    static const float sizes[] = {1.0f, 0x1p-80f, 0x1p50f};
    for (const dataset *d = datasets; d->name; d++) {
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                coded c = coded_make(d, dims[i], sizes[s]);
                each_unit(&c, check_bounds, (void *)d->name);
                coded_free(&c);
            }
        }
    }
}

static void count_small(const coded *c, int32_t query, int32_t row, const int32_t *bounds, const int32_t *sums, void *context)
{
    (void)sums;
    for (int32_t r = 0; r < UNIT_ROWS; r++) {
        const float dot = (float)bounds[r] * c->scales[query] * c->scales[row + r];
        *(int *)context += dot < 0.97f * c->norms[query] * c->norms[row + r];
    }
}

/* Rows of other clusters than the query's: their cosine is certainly not near 1. */
static void leading_codes_exclude_most_clustered_rows(void **state)
{
    (void)state;
    int excluded = 0;
    coded c = coded_make(dataset_named("clustered"), 768, 1.0f);
    each_unit(&c, count_small, &excluded);
    coded_free(&c);
    assert_true(excluded > QUERIES * ROWS / 2);
}

/* Limits with which each query keeps rows as good as `best`, its dot product; slots without a query keep nothing. */
static screen_limits limits_of(const coded *c, const float best[QUERIES])
{
    screen_limits limits = {.a = {0}};
    for (int32_t q = 0; q < GROUP; q++) {
        limits.h[q] = INFINITY;
        if (q >= QUERIES)
            continue;
        const screen_vector v = {c->scales[ROWS + q], c->residuals[ROWS + q], c->norms[ROWS + q]};
        const screen_limit limit = screen_limit_for(CANON_DOT, c->padded, v, best[q]);
        limits.a[q] = limit.a / v.scale;
        limits.b_above[q] = limit.b / v.scale;
        limits.h[q] = limit.h / v.scale;
    }
    return limits;
}

/* The answer of the leading codes of all queries together about a unit. */
static bool group_may_keep(const coded *c, const instruction_set *set, int32_t row, const screen_limits *limits)
{
    static lead_rows lead;
    static int8_t queries[GROUP * DIM_MAX], leading[GROUP * LEAD_CODES];
    static int8_t packed[2 * GROUP * LEAD_CODES + GROUP_BIAS] __attribute__((aligned(64)));
    static int32_t products[GROUPS_MAX * UNIT_ROWS * GROUP] __attribute__((aligned(64)));
    const screen_products *p = screen_products_choose(set);
    const screen_rows rows = {c->scales + row, c->residuals + row, c->norms + row};
    float tails[GROUP] = {0}, rests[SCREEN_STRIPS];
    memset(queries, 0, sizeof queries);
    memcpy(queries, c->codes + (int64_t)ROWS * c->padded, (size_t)(QUERIES * c->padded));
    for (int32_t q = 0; q < QUERIES; q++)
        tails[q] = lead_rest(queries + (int64_t)q * c->padded, c->padded);
    lead_of_group(queries, c->padded, leading);
    p->pack(leading, LEAD_CODES, packed);
    lead_take(&lead, c->codes + (int64_t)row * c->padded, &rows, UNIT_ROWS, c->padded);
    lead_rests_of_runs(&lead, rows.scales, UNIT_ROWS, rests);
    strip_bounds runs;
    set->bound_strips(&rows, UNIT_ROWS, &runs);
    const int8_t *codes = lead.codes;
    if (p->prepare) {
        p->prepare(codes, UNIT_ROWS, LEAD_CODES, lead.prepared);
        codes = lead.prepared;
    }
    if (p->begin)
        p->begin();
    p->groups(packed, 1, codes, UNIT_ROWS, LEAD_CODES, products);
    if (p->end)
        p->end();
    return set->filter_leads(products, &runs, rests, UNIT_ROWS, limits, tails);
}

/* Returns how many units are excluded. */
static int check_units(const coded *c, const instruction_set *set, const char *name)
{
    float best[QUERIES];
    int excluded = 0;
    bool holds_best[ROWS / UNIT_ROWS] = {false};
    for (int32_t q = 0; q < QUERIES; q++) {
        int32_t at = 0;
        for (int32_t r = 0; r < ROWS; r++) {
            const float dot =
                best_set()->dot(c->vectors + (int64_t)r * c->padded, c->vectors + (int64_t)(ROWS + q) * c->padded, c->padded);
            at = r == 0 || dot > best[q] ? r : at;
            best[q] = at == r ? dot : best[q];
        }
        holds_best[at / UNIT_ROWS] = true;
    }
    const screen_limits limits = limits_of(c, best);
    for (int32_t unit = 0; unit < ROWS / UNIT_ROWS; unit++) {
        const bool may = group_may_keep(c, set, unit * UNIT_ROWS, &limits);
        if (holds_best[unit] && !may)
            fail_msg("%s, %s, %d elements: unit %d holds the best row of a query and is excluded", set->name, name, c->padded,
                     unit);
        excluded += !may;
    }
    return excluded;
}

static void a_group_excludes_units_by_leading_codes_but_none_with_a_best_row(void **state)
{
    (void)state;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        int excluded = 0;
        if (!(*set)->present() || !(*set)->filter_leads)
            continue;
        for (const dataset *d = datasets; d->name; d++) {
            coded c = coded_make(d, 768, 1.0f);
            excluded += check_units(&c, *set, d->name);
            coded_free(&c);
        }
        assert_true(excluded > 0);
    }
}

static void check_search(ww_device *device, const dataset *d, int32_t dim, ww_metric metric, int64_t least, int64_t most)
{
    enum { COUNT = 3000, K = 5, ASKED_MAX = 40 };
    test_random random = {9};
    float *rows = malloc(sizeof(float) * (COUNT + ASKED_MAX) * (size_t)dim), *queries = rows + (int64_t)COUNT * dim;
    d->make(&random, dim, rows, COUNT, queries, ASKED_MAX);
    static int64_t ids[2][ASKED_MAX * K];
    static float scores[2][ASKED_MAX * K];
    for (int64_t asked = least; asked <= most; asked++) {
        for (int none = 0; none < 2; none++) {
            ww_collection *c = NULL;
            ww_collection_config config = ww_collection_config_default();
            config.name = "lead";
            config.dim = dim;
            config.metric = metric;
            config.screen = none ? WW_SCREEN_NONE : WW_SCREEN_INT8;
            ww_rows batch = ww_rows_default();
            batch.count = COUNT;
            batch.dim = dim;
            batch.vectors = rows;
            ww_query search = ww_query_default();
            search.queries = queries;
            search.query_count = asked;
            search.dim = dim;
            search.k = K;
            assert_int_equal(ww_collection_create(device, &config, &c), WW_OK);
            assert_int_equal(ww_collection_add(c, &batch), WW_OK);
            assert_int_equal(ww_collection_search(c, &search, ids[none], scores[none]), WW_OK);
            ww_collection_destroy(c);
        }
        if (memcmp(ids[0], ids[1], sizeof *ids[0] * (size_t)asked * K) != 0 ||
            memcmp(scores[0], scores[1], sizeof *scores[0] * (size_t)asked * K) != 0)
            fail_msg("%s, dim %d, metric %d, %d queries: not what the full scan finds", d->name, dim, metric, (int)asked);
    }
    free(rows);
}

static void few_queries_over_long_rows_find_what_the_full_scan_finds(void **state)
{
    (void)state;
    static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
    ww_device *device = NULL;
    assert_int_equal(ww_device_open("cpu", &device), WW_OK);
    int turn = 0;
    for (const dataset *d = datasets; d->name; d++, turn++)
        check_search(device, d, turn % 2 ? 256 : 320, metrics[turn % 3], 1, QUERIES);
    for (int m = 0; m < 3; m++)
        check_search(device, dataset_named("clustered"), 512, metrics[m], 1, QUERIES);
    ww_device_close(device);
}

static void batches_over_long_rows_find_what_the_full_scan_finds(void **state)
{
    (void)state;
    static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
    const char *asked = getenv("WARPWAVE_ISA");
    char *before = asked ? strdup(asked) : NULL;
    for (const instruction_set *const *set = instruction_sets; *set; set++) {
        ww_device *device = NULL;
        if (!(*set)->present())
            continue;
        setenv("WARPWAVE_ISA", (*set)->name, 1);
        assert_int_equal(ww_device_open("cpu", &device), WW_OK);
        for (int m = 0; m < 3; m++)
            check_search(device, dataset_named("clustered"), 512, metrics[m], 40, 40);
        ww_device_close(device);
    }
    if (before)
        setenv("WARPWAVE_ISA", before, 1);
    else
        unsetenv("WARPWAVE_ISA");
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leading_codes_never_say_too_little),
        cmocka_unit_test(leading_codes_exclude_most_clustered_rows),
        cmocka_unit_test(a_group_excludes_units_by_leading_codes_but_none_with_a_best_row),
        cmocka_unit_test(few_queries_over_long_rows_find_what_the_full_scan_finds),
        cmocka_unit_test(batches_over_long_rows_find_what_the_full_scan_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
