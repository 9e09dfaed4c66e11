/* Search, against a full sort of canonical scores: the same rows with the same bits, whatever the shape. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
enum { METRICS = 3 };

/* Several segments (64 rows each, since they grow by less than that), some rows removed. */
static ww_collection *patchwork(ww_device *device, int32_t dim, ww_metric metric, int64_t count)
{
    test_random random = {(uint64_t)dim};
    ww_collection *c = collection_make(device, dim, metric);
    for (int64_t done = 0; done < count; done += 50)
        collection_fill(c, &random, count - done < 50 ? count - done : 50, dim, "p", done);
    for (int64_t i = 3; i < count; i += 7) {
        char text[32];
        const char *id = text;
        snprintf(text, sizeof text, "p%lld", (long long)i);
        CHECK_OK(ww_collection_remove(c, &id, 1));
    }
    return c;
}

static void every_dimension_and_metric_finds_the_rows_of_a_full_sort(void **state)
{
    static const int32_t dims[] = {1, 3, 63, 64, 65, 128, 384, 768};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        const int64_t count = device_is_slow(*state) ? 90 : dims[d] < 384 ? 330 : 130;
        for (int m = 0; m < METRICS; m++) {
            test_random random = {1000 + d};
            ww_collection *c = patchwork(*state, dims[d], metrics[m], count);
            float *queries = malloc(5 * (size_t)dims[d] * sizeof *queries);
            random_normals(&random, queries, 5 * (int64_t)dims[d]);
            check_search(c, queries, 1, 0, 10, NULL, 0);
            check_search(c, queries, 5, 0, 33, NULL, 0);
            free(queries);
            ww_collection_destroy(c);
        }
    }
}

static void k_may_be_anything_from_nothing_to_more_than_there_is(void **state)
{
    enum { DIM = 20 };
    static const int32_t ks[] = {0, 1, 2, 63, 64, 65, 257, 400, WW_K_MAX};
    test_random random = {2};
    float queries[2 * DIM];
    random_normals(&random, queries, 2 * DIM);
    for (int m = 0; m < METRICS; m++) {
        ww_collection *c = patchwork(*state, DIM, metrics[m], 300);
        for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
            check_search(c, queries, 2, 0, ks[i], NULL, 0);
        ww_collection_destroy(c);
    }
}

static void k_of_zero_touches_nothing(void **state)
{
    test_random random = {3};
    ww_collection *c = collection_make(*state, 4, WW_DOT);
    collection_fill(c, &random, 10, 4, "", 0);
    float query[4] = {1, 2, 3, 4};
    ww_query search = ww_query_default();
    search.queries = query;
    search.query_count = 1;
    search.dim = 4;
    CHECK_OK(ww_collection_search(c, &search, NULL, NULL));
    search.k = 5;
    search.query_count = 0;
    search.queries = NULL;
    CHECK_OK(ww_collection_search(c, &search, NULL, NULL));
    ww_collection_destroy(c);
}

static void an_empty_collection_answers_with_nothing(void **state)
{
    float query[3] = {1, 2, 3};
    for (int m = 0; m < METRICS; m++) {
        ww_collection *c = collection_make(*state, 3, metrics[m]);
        check_search(c, query, 1, 0, 4, NULL, 0);
        CHECK_OK(ww_collection_reserve(c, 100));
        check_search(c, query, 1, 0, 4, NULL, 0);
        test_random random = {4};
        collection_fill(c, &random, 70, 3, "", 0);
        for (int64_t i = 0; i < 70; i++) {
            char text[32];
            const char *id = text;
            snprintf(text, sizeof text, "%lld", (long long)i);
            CHECK_OK(ww_collection_remove(c, &id, 1));
        }
        check_search(c, query, 1, 0, 4, NULL, 0); /* all removed */
        ww_collection_destroy(c);
    }
}

static void equal_scores_are_ordered_by_row(void **state)
{
    enum { DIM = 6, COUNT = 400 };
    for (int m = 0; m < METRICS; m++) {
        test_random random = {5};
        ww_collection *c = collection_make(*state, DIM, metrics[m]);
        static float vectors[COUNT * DIM];
        for (int64_t i = 0; i < COUNT; i++) { /* few different values: many equal rows, many zero rows, signed zeros */
            const uint64_t kind = random_below(&random, 5);
            for (int d = 0; d < DIM; d++)
                vectors[i * DIM + d] = kind == 0 ? (i % 2 ? -0.0f : 0.0f) : (float)kind - 3.0f;
        }
        ww_rows rows = ww_rows_default();
        rows.count = COUNT;
        rows.dim = DIM;
        rows.vectors = vectors;
        CHECK_OK(ww_collection_add(c, &rows));
        float queries[3 * DIM] = {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, -2, -2, -2, -2, -2, -2};
        check_search(c, queries, 3, 0, 1, NULL, 0);
        check_search(c, queries, 3, 0, 100, NULL, 0);
        check_search(c, queries, 3, 0, COUNT, NULL, 0);
        ww_collection_destroy(c);
    }
}

static void a_mask_admits_its_rows_and_no_others(void **state)
{
    enum { DIM = 12, COUNT = 300, WORDS = 6 };
    test_random random = {6};
    float queries[4 * DIM];
    random_normals(&random, queries, 4 * DIM);
    uint64_t mask[WORDS];
    for (int m = 0; m < METRICS; m++) {
        ww_collection *c = patchwork(*state, DIM, metrics[m], COUNT);
        for (int w = 0; w < WORDS; w++)
            mask[w] = random_bits(&random) & random_bits(&random);
        check_search(c, queries, 4, 0, 10, mask, COUNT);
        check_search(c, queries, 4, 0, 200, mask, COUNT);
        check_search(c, queries, 1, 0, 20, mask, 384);  /* longer than the collection */
        check_search(c, queries, 1, 0, 300, mask, 130); /* shorter, ending inside a word */
        memset(mask, 0, sizeof mask);
        check_search(c, queries, 2, 0, 10, mask, COUNT);
        mask[2] = UINT64_C(1) << 40; /* one row alone */
        check_search(c, queries, 2, 0, 10, mask, COUNT);
        memset(mask, 0xff, sizeof mask);
        check_search(c, queries, 2, 0, 10, mask, COUNT);
        check_search(c, queries, 2, 0, 300, mask, 1);
        ww_collection_destroy(c);
    }
}

static void queries_may_have_gaps(void **state)
{
    enum { DIM = 10, STRIDE = 13, COUNT = 5 };
    test_random random = {7};
    float queries[COUNT * STRIDE];
    random_normals(&random, queries, COUNT * STRIDE);
    for (int q = 0; q < COUNT; q++)
        for (int i = DIM; i < STRIDE; i++)
            queries[q * STRIDE + i] = NAN; /* not looked at */
    ww_collection *c = patchwork(*state, DIM, WW_L2, 200);
    check_search(c, queries, COUNT, STRIDE, 9, NULL, 0);
    ww_collection_destroy(c);
}

static void many_queries_are_answered_like_one(void **state)
{
    enum { DIM = 70 };
    const int64_t count = device_is_slow(*state) ? 20 : 130;
    test_random random = {8};
    float *queries = malloc((size_t)count * DIM * sizeof *queries);
    random_normals(&random, queries, count * DIM);
    ww_collection *c = patchwork(*state, DIM, WW_COSINE, 80);
    check_search(c, queries, count, 0, 12, NULL, 0);
    free(queries);
    ww_collection_destroy(c);
}

static void extreme_values_are_scored_canonically(void **state)
{
    enum { DIM = 67, COUNT = 130 };
    static const float scales[] = {1e-42f, 1e-30f, 1e-20f, 1.0f, 1e10f, 1e18f};
    test_random random = {9};
    static float vectors[COUNT * DIM];
    float queries[6 * DIM];
    for (int i = 0; i < COUNT * DIM; i++)
        vectors[i] = random_uniform(&random) * scales[i / DIM % 6];
    for (int i = 0; i < 6 * DIM; i++)
        queries[i] = random_uniform(&random) * scales[i / DIM];
    for (int m = 0; m < METRICS; m++) {
        ww_collection *c = collection_make(*state, DIM, metrics[m]);
        ww_rows rows = ww_rows_default();
        rows.count = COUNT;
        rows.dim = DIM;
        rows.vectors = vectors;
        CHECK_OK(ww_collection_add(c, &rows));
        check_search(c, queries, 6, 0, COUNT, NULL, 0);
        ww_collection_destroy(c);
    }
}

/* Finite vectors whose distance is infinite: the rows are found anyway, after the others, and differ from padding. */
static void an_infinite_distance_is_a_result(void **state)
{
    float vectors[3] = {1.8e19f, -1.8e19f, 0.0f};
    ww_collection *c = collection_make(*state, 1, WW_L2);
    ww_rows rows = ww_rows_default();
    rows.count = 3;
    rows.dim = 1;
    rows.vectors = vectors;
    CHECK_OK(ww_collection_add(c, &rows));
    check_search(c, vectors, 3, 0, 5, NULL, 0);
    ww_collection_destroy(c);
}

static int stop_at_once(int64_t done, int64_t total, void *user)
{
    (void)done;
    (void)total;
    ++*(int *)user;
    return 1;
}

static int count_queries(int64_t done, int64_t total, void *user)
{
    long long *last = user;
    assert_true(done >= *last && done <= total);
    *last = done;
    return 0;
}

static void a_search_reports_its_progress_and_can_be_cancelled(void **state)
{
    enum { DIM = 8, QUERIES = 40, K = 3 };
    test_random random = {10};
    float queries[QUERIES * DIM];
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
    random_normals(&random, queries, QUERIES * DIM);
    ww_collection *c = patchwork(*state, DIM, WW_DOT, 100);
    int calls = 0;
    long long last = 0;
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = QUERIES;
    search.dim = DIM;
    search.k = K;
    search.progress = stop_at_once;
    search.progress_user = &calls;
    snapshot before = snapshot_take(c);
    CHECK_FAILS(WW_CANCELLED, ww_collection_search(c, &search, rows, scores));
    assert_int_equal(calls, 1);
    check_unchanged(c, &before);
    search.progress = count_queries;
    search.progress_user = &last;
    CHECK_OK(ww_collection_search(c, &search, rows, scores));
    assert_int_equal(last, QUERIES);
    ww_collection_destroy(c);
}

static void scores_of_two_vectors_are_the_canonical_ones(void **state)
{
    (void)state;
    const float a[3] = {1, 2, 2}, b[3] = {2, 4, 4}, zero[3] = {0, -0.0f, 0};
    float score;
    CHECK_OK(ww_score(WW_DOT, a, b, 3, &score));
    assert_true(score == 18.0f);
    CHECK_OK(ww_score(WW_L2, a, b, 3, &score));
    assert_true(score == 3.0f);
    CHECK_OK(ww_score(WW_COSINE, a, b, 3, &score));
    assert_true(score == 1.0f);
    CHECK_OK(ww_score(WW_COSINE, a, zero, 3, &score));
    assert_true(score == 0.0f && !signbit(score));
    const float large = 1.9e19f, negative[3] = {-1, -2, NAN};
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_score(WW_DOT, &large, a, 1, &score));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_score(WW_DOT, a, negative, 3, &score));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_score((ww_metric)9, a, b, 3, &score));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_score(WW_DOT, a, b, 0, &score));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_score(WW_DOT, a, b, WW_DIM_MAX + 1, &score));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_score(WW_DOT, NULL, b, 3, &score));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_score(WW_DOT, a, NULL, 3, &score));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_score(WW_DOT, a, b, 3, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dimension_and_metric_finds_the_rows_of_a_full_sort),
        cmocka_unit_test(k_may_be_anything_from_nothing_to_more_than_there_is),
        cmocka_unit_test(k_of_zero_touches_nothing),
        cmocka_unit_test(an_empty_collection_answers_with_nothing),
        cmocka_unit_test(equal_scores_are_ordered_by_row),
        cmocka_unit_test(a_mask_admits_its_rows_and_no_others),
        cmocka_unit_test(queries_may_have_gaps),
        cmocka_unit_test(many_queries_are_answered_like_one),
        cmocka_unit_test(extreme_values_are_scored_canonically),
        cmocka_unit_test(an_infinite_distance_is_a_result),
        cmocka_unit_test(a_search_reports_its_progress_and_can_be_cancelled),
        cmocka_unit_test(scores_of_two_vectors_are_the_canonical_ones),
    };
    return RUN_ON_EVERY_DEVICE("collection search", tests);
}
