/* Results made of results: fused, diversified, grouped, reranked, for a collection in memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <warpwave/ranking.h>

#include "support/check.h"
#include "support/collections.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"

enum { DIM = 2, ROWS = 6 };
static const float VECTORS[ROWS * DIM] = {1, 0, 1, 0.01f, 1, 0.02f, 0.6f, 0.8f, 0.7f, -0.7f, 0, 1};
static const char *const IDS[ROWS] = {"a", "b", "c", "d", "e", "f"};
static const char *const PAYLOADS[ROWS] = {"{\"s\":\"x\",\"n\":1}",     "{\"s\":\"x\",\"n\":1.0}", "{\"s\":\"\\u0078\"}",
                                           "{\"s\":\"y\",\"n\":\"1\"}", "{\"t\":{\"s\":\"x\"}}",   NULL};
static const float EAST[DIM] = {1, 0};

static ww_device *device;
static ww_collection *rows;

static int setup(void **state)
{
    (void)state;
    ww_rows added = ww_rows_default();
    CHECK_OK(ww_device_open("cpu", &device));
    rows = collection_make(device, DIM, WW_COSINE);
    added.count = ROWS, added.dim = DIM, added.vectors = VECTORS, added.ids = IDS, added.payloads = PAYLOADS;
    CHECK_OK(ww_collection_add(rows, &added));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ww_collection_destroy(rows);
    ww_device_close(device);
    return 0;
}

static ww_results *find(const float *vector, int32_t k)
{
    ww_results *found = NULL;
    ww_query query = ww_query_default();
    query.queries = vector, query.query_count = 1, query.dim = DIM, query.k = k;
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    CHECK_OK(ww_collection_query(rows, &query, &found));
    return found;
}

static const char *ids_of(const ww_results *results)
{
    static char ids[64];
    ids[0] = '\0';
    for (int64_t i = 0; i < ww_results_count(results, 0); i++)
        strcat(ids, ww_results_id(results, 0, i));
    return ids;
}

static void lists_are_fused(void **state)
{
    (void)state;
    static const float north[DIM] = {0, 1};
    ww_results *first = find(EAST, 3), *second = find(north, 3), *fused = NULL; /* abc, fdc */
    const ww_results *const lists[2] = {first, second};
    CHECK_OK(ww_results_fuse(lists, 2, NULL, &fused));
    assert_string_equal(ids_of(fused), "cafbd"); /* c is in both; a and f are first of one, a has the smaller handle */
    assert_int_equal(ww_results_parts(fused, 0)[0].ranks[0], 3);
    assert_int_equal(ww_results_parts(fused, 0)[0].ranks[1], 3);
    assert_true(ww_results_scores(fused, 0)[0] == (float)(1.0 / 63.0 + 1.0 / 63.0));
    assert_string_equal(ww_results_payload(fused, 0, 0), PAYLOADS[2]);
    assert_memory_equal(ww_results_vector(fused, 0, 2), VECTORS + (5 * DIM), DIM * sizeof(float));
    ww_results_destroy(fused);
    ww_fuse how = ww_fuse_default();
    how.constant = 1.0, how.weights = (const double[2]){0.0, 1.0}, how.limit = 2;
    CHECK_OK(ww_results_fuse(lists, 2, &how, &fused));
    assert_string_equal(ids_of(fused), "fd");
    ww_results_destroy(fused);
    how.constant = NAN;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_fuse(lists, 2, &how, &fused));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_fuse((const ww_results *const[]){NULL, second}, 2, NULL, &fused));
    ww_results_destroy(first);
    ww_results_destroy(second);
}

static void diversity_skips_similar_hits(void **state)
{
    (void)state;
    ww_results *found = find(EAST, ROWS), *diverse = NULL;
    ww_diversity how = ww_diversity_default();
    how.lambda = 1.0;
    CHECK_OK(ww_results_diversify(found, &how, &diverse));
    assert_string_equal(ids_of(diverse), ids_of(found));
    ww_results_destroy(diverse);
    how.lambda = 0.4, how.limit = 3;
    CHECK_OK(ww_results_diversify(found, &how, &diverse));
    assert_string_equal(ids_of(diverse), "afe"); /* b and c are like a; f is 0.4 * 0 - 0.6 * 0, d 0.4 * 0.6 - 0.6 * 0.6 */
    assert_true(ww_results_scores(diverse, 0)[0] == ww_results_scores(found, 0)[0]);
    ww_results_destroy(diverse);
    how.lambda = 1.5;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_diversify(found, &how, &diverse));
    ww_results_destroy(found);
    ww_query query = ww_query_default();
    query.queries = EAST, query.query_count = 1, query.dim = DIM, query.k = 2;
    CHECK_OK(ww_collection_query(rows, &query, &found));
    how.lambda = 0.5;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_diversify(found, &how, &diverse)); /* no vectors */
    ww_results_destroy(found);
    CHECK_OK(ww_collection_rank(rows, &query, &how, NULL, 0, &diverse));
    assert_int_equal(ww_results_count(diverse, 0), 2);
    ww_results_destroy(diverse);
    query.k = 0;
    CHECK_OK(ww_collection_rank(rows, &query, &how, NULL, 0, &diverse));
    assert_int_equal(ww_results_count(diverse, 0), 0);
    ww_results_destroy(diverse);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_rank(rows, &query, NULL, NULL, 0, &diverse));
}

static void hits_are_grouped_by_a_field(void **state)
{
    (void)state;
    ww_results *found = find(EAST, ROWS), *grouped = NULL;
    ww_grouping how = ww_grouping_default();
    how.field = "s";
    CHECK_OK(ww_results_group(found, &how, &grouped));
    assert_string_equal(ids_of(grouped), "ad"); /* "\u0078" is x; e and f have no s */
    ww_results_destroy(grouped);
    how.size = 2;
    CHECK_OK(ww_results_group(found, &how, &grouped));
    assert_string_equal(ids_of(grouped), "abd");
    ww_results_destroy(grouped);
    how.field = "n", how.size = 9;
    CHECK_OK(ww_results_group(found, &how, &grouped));
    assert_string_equal(ids_of(grouped), "abd"); /* 1 and 1.0 are one group, "1" is another */
    ww_results_destroy(grouped);
    how.field = "t.s";
    CHECK_OK(ww_results_group(found, &how, &grouped));
    assert_string_equal(ids_of(grouped), "e");
    ww_results_destroy(grouped);
    how.groups = 0;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_group(found, &how, &grouped));
    how.groups = 1, how.field = "";
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_group(found, &how, &grouped));
    ww_results_destroy(found);
}

/* The second group starts after the first 3,000 rows. */
static void groups_are_filled_however_far_they_are(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    static float vectors[MANY * DIM];
    static const char *payloads[MANY];
    for (int i = 0; i < MANY; i++) {
        vectors[i * DIM] = 1.0f;
        vectors[i * DIM + 1] = (float)i / MANY;
        payloads[i] = i < MANY - 1 ? "{\"g\":\"many\"}" : "{\"g\":\"last\"}";
    }
    ww_collection *many = collection_make(device, DIM, WW_COSINE);
    ww_rows added = ww_rows_default();
    ww_results *grouped = NULL;
    added.count = MANY, added.dim = DIM, added.vectors = vectors, added.payloads = payloads;
    CHECK_OK(ww_collection_add(many, &added));
    ww_query query = ww_query_default();
    ww_grouping how = ww_grouping_default();
    query.queries = EAST, query.query_count = 1, query.dim = DIM;
    how.field = "g", how.groups = 2, how.size = 2;
    CHECK_OK(ww_collection_rank(many, &query, NULL, &how, 0, &grouped));
    assert_int_equal(ww_results_count(grouped, 0), 3);
    assert_int_equal(ww_results_rows(grouped, 0)[2], MANY - 1);
    ww_results_destroy(grouped);
    ww_collection_destroy(many);
}

static double processor_seconds(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Groups of two queries with `count` hits each, two hits in a group; returns the processor time. */
static double seconds_to_group(ww_collection *c, int64_t count)
{
    ww_results *found = NULL, *grouped = NULL;
    ww_query query = ww_query_default();
    ww_grouping how = ww_grouping_default();
    const float queries[2 * DIM] = {1, 0, 1, 0};
    query.queries = queries, query.query_count = 2, query.dim = DIM, query.mode = WW_QUERY_RANGE;
    query.bound = -INFINITY, query.limit = count, query.fetch = WW_FETCH_PAYLOADS;
    CHECK_OK(ww_collection_query(c, &query, &found));
    how.field = "g", how.groups = count, how.size = count;
    const double before = processor_seconds();
    CHECK_OK(ww_results_group(found, &how, &grouped));
    const double seconds = processor_seconds() - before;
    for (int64_t q = 0; q < 2; q++) {
        assert_int_equal(ww_results_count(grouped, q), count);
        for (int64_t i = 0; i < count; i++) /* 0 and 1 have the key 0, 2 and 3 the key 1, and so on */
            assert_int_equal(ww_results_rows(grouped, q)[i] / 2, ww_results_rows(grouped, q)[i - i % 2] / 2);
    }
    ww_results_destroy(found);
    ww_results_destroy(grouped);
    return seconds;
}

/* Ten times as many groups take ten times as long, not a hundred times. */
static void the_cost_of_groups_is_linear(void **state)
{
    (void)state;
    enum { MANY = 40000, FEW = MANY / 10 };
    float *vectors = calloc((size_t)MANY * DIM, sizeof *vectors);
    char(*texts)[24] = calloc(MANY, sizeof *texts);
    const char **payloads = calloc(MANY, sizeof *payloads);
    assert_true(vectors && texts && payloads);
    for (int i = 0; i < MANY; i++) {
        vectors[(size_t)i * DIM] = 1.0f;
        vectors[(size_t)i * DIM + 1] = (float)i / MANY;
        snprintf(texts[i], sizeof texts[i], "{\"g\":%d}", i / 2);
        payloads[i] = texts[i];
    }
    ww_collection *many = collection_make(device, DIM, WW_COSINE);
    ww_rows added = ww_rows_default();
    added.count = MANY, added.dim = DIM, added.vectors = vectors, added.payloads = payloads;
    CHECK_OK(ww_collection_add(many, &added));
    double ratio = INFINITY;
    for (int i = 0; i < 5 && ratio > 30; i++)
        ratio = seconds_to_group(many, MANY) / seconds_to_group(many, FEW);
    if (ratio > 30)
        fail_msg("ten times as many groups took %.0f times as long", ratio);
    ww_collection_destroy(many);
    free(vectors);
    free(texts);
    free(payloads);
}

static void hits_are_reranked_by_scores_of_the_caller(void **state)
{
    (void)state;
    static const float scores[3] = {1.0f, 7.0f, 7.0f};
    ww_results *found = find(EAST, 3), *reranked = NULL;
    CHECK_OK(ww_results_rerank(found, scores, 2, &reranked));
    assert_string_equal(ids_of(reranked), "bc");
    assert_true(ww_results_scores(reranked, 0)[0] == 7.0f);
    ww_results_destroy(reranked);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_rerank(found, (const float[]){NAN, 0, 0}, 0, &reranked));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_rerank(found, NULL, 0, &reranked));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_rerank(found, scores, -1, &reranked));
    ww_results_destroy(found);
}

/* All of them over the same results. */
static ww_status make_all(const ww_results *found)
{
    static const float scores[ROWS] = {1, 2, 3, 4, 5, 6};
    ww_results *made[4] = {NULL};
    ww_diversity diversity = ww_diversity_default();
    ww_grouping grouping = ww_grouping_default();
    grouping.field = "s";
    ww_status status = ww_results_fuse((const ww_results *const[]){found, found}, 2, NULL, &made[0]);
    if (status == WW_OK)
        status = ww_results_diversify(found, &diversity, &made[1]);
    if (status == WW_OK)
        status = ww_results_group(found, &grouping, &made[2]);
    if (status == WW_OK)
        status = ww_results_rerank(found, scores, 0, &made[3]);
    for (int i = 0; i < 4; i++)
        ww_results_destroy(made[i]);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    ww_results *found = find(EAST, ROWS);
    const int64_t held = blocks_held();
    ww_status status = WW_OUT_OF_MEMORY;
    long failures = 0;
    for (int64_t n = 1; status != WW_OK; n++) {
        fail_allocation_at(n);
        status = make_all(found);
        fail_allocation_at(0);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        assert_int_equal(blocks_held(), held);
        failures += status != WW_OK;
    }
    assert_true(failures > 10);
    fault_count("allocation", failures);
    ww_results_destroy(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_fused),
        cmocka_unit_test(diversity_skips_similar_hits),
        cmocka_unit_test(hits_are_grouped_by_a_field),
        cmocka_unit_test(groups_are_filled_however_far_they_are),
        cmocka_unit_test(the_cost_of_groups_is_linear),
        cmocka_unit_test(hits_are_reranked_by_scores_of_the_caller),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
