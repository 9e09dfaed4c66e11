/* Multivectors in memory, on every device, compared to the bit with a literal implementation of the definition. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/collections.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"

enum { ROWS = 130, QUERIES = 5, LENGTH_MAX = 70 };

typedef struct scene {
    int32_t dim;
    float *numbers; /* ROWS x LENGTH_MAX x dim */
    ww_multivector rows[ROWS];
    bool removed[ROWS];
} scene;

static void scene_make(scene *s, test_random *random, int32_t dim)
{
    memset(s, 0, sizeof *s);
    s->dim = dim;
    s->numbers = malloc((size_t)ROWS * LENGTH_MAX * (size_t)dim * sizeof *s->numbers);
    random_normals(random, s->numbers, (int64_t)ROWS * LENGTH_MAX * dim);
    for (int i = 0; i < ROWS; i++) {
        float *row = s->numbers + (size_t)i * LENGTH_MAX * (size_t)dim;
        const int32_t count = i % 11 == 0 ? 0 : 1 + (int32_t)random_below(random, i % 7 == 0 ? LENGTH_MAX : 9);
        for (int32_t j = 0; i % 13 == 0 && j < dim; j++)
            row[j] = 0.0f;       /* a vector without a direction */
        if (i % 5 == 0 && i > 0) /* rows with equal scores */
            memcpy(row, row - (size_t)LENGTH_MAX * (size_t)dim, LENGTH_MAX * (size_t)dim * sizeof *row);
        s->rows[i] = (ww_multivector){i % 5 == 0 && i > 0 ? s->rows[i - 1].count : count, dim, row};
    }
}

/* ---- the definition ------------------------------------------------------------------------------------------------------ */

static float product(const float *a, float a_norm, const float *b, float b_norm, int32_t dim)
{
    float total = 0.0f, sum = 0.0f;
    for (int32_t i = 0; i < dim; i++) {
        const float x = a_norm > 0.0f ? a[i] / a_norm : a[i], y = b_norm > 0.0f ? b[i] / b_norm : b[i];
        sum = fmaf(x, y, sum);
        if (i % 512 == 511 || i == dim - 1) {
            total += sum;
            sum = 0.0f;
        }
    }
    return total;
}

static float norm_for(ww_metric metric, const float *x, int32_t dim)
{
    float square = 0.0f;
    if (metric != WW_COSINE)
        return 0.0f;
    CHECK_OK(ww_score(WW_DOT, x, x, dim, &square));
    return sqrtf(square);
}

static float reference(ww_metric metric, const ww_multivector *query, const ww_multivector *row)
{
    float sums[64] = {0};
    const int32_t dim = query->dim;
    for (int32_t i = 0; i < query->count; i++) {
        const float *q = query->vectors + (size_t)i * (size_t)dim, q_norm = norm_for(metric, q, dim);
        float best = -INFINITY;
        for (int32_t j = 0; j < row->count; j++) {
            const float *x = row->vectors + (size_t)j * (size_t)dim;
            const float s = product(x, norm_for(metric, x, dim), q, q_norm, dim);
            best = s > best ? s : best;
        }
        sums[i % 64] += best;
    }
    for (int s = 32; s > 0; s /= 2)
        for (int i = 0; i < s; i++)
            sums[i] += sums[i + s];
    return sums[0];
}

typedef struct scored {
    int64_t row;
    float score;
} scored;

static int compare_scored(const void *first, const void *second)
{
    const scored *a = first, *b = second;
    return a->score != b->score ? (a->score < b->score) - (a->score > b->score) : (a->row > b->row) - (a->row < b->row);
}

/* ---- searches ------------------------------------------------------------------------------------------------------------ */

/* Searches one query in the index, and compares with the definition's scores of all rows. */
static void check_query(ww_multi_index *index, const scene *s, const float *scores, const ww_multivector *asked, ww_query query)
{
    scored all[ROWS];
    int64_t hits = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        const bool masked = query.mask && (i >= query.mask_rows || !(query.mask[i / 64] >> (i % 64) & 1));
        if (s->rows[i].count > 0 && !s->removed[i] && !masked && (query.mode == WW_QUERY_NEAREST || scores[i] >= query.bound))
            all[hits++] = (scored){i, scores[i]};
    }
    qsort(all, (size_t)hits, sizeof *all, compare_scored);
    ww_multi_query multi = ww_multi_query_default();
    ww_results *found = NULL;
    multi.vectors = asked;
    query.multi = &multi;
    query.query_count = 1;
    CHECK_OK(ww_multi_search(index, &query, &found));
    const int64_t limit = query.mode == WW_QUERY_RANGE ? query.limit : query.k;
    assert_int_equal(ww_results_count(found, 0), hits < limit ? hits : limit);
    if (query.mode == WW_QUERY_RANGE)
        assert_int_equal(ww_results_total(found, 0), hits);
    for (int64_t i = 0; i < ww_results_count(found, 0); i++) {
        assert_int_equal(ww_results_rows(found, 0)[i], all[i].row);
        assert_memory_equal(&ww_results_scores(found, 0)[i], &all[i].score, sizeof(float));
    }
    ww_results_destroy(found);
}

static void check_metric(ww_device *device, ww_metric metric, int32_t dim, int queries)
{
    test_random random = {31 + (uint64_t)dim};
    scene s;
    ww_multi_index *index = NULL;
    uint64_t most[ROWS / 64 + 1], few[ROWS / 64 + 1] = {0};
    scene_make(&s, &random, dim);
    memset(most, 0xfe, sizeof most);
    few[0] = 0x20, few[1] = 0x10001;
    CHECK_OK(ww_multi_create(device, dim, metric, &index));
    CHECK_OK(ww_multi_add(index, s.rows, 1));
    CHECK_OK(ww_multi_add(index, s.rows + 1, 40));
    CHECK_OK(ww_multi_add(index, s.rows + 41, ROWS - 41));
    for (int64_t i = 3; i < ROWS; i += 17) {
        s.removed[i] = true;
        CHECK_OK(ww_multi_remove(index, i));
    }
    assert_int_equal(ww_multi_count(index), ROWS - (ROWS - 4) / 17 - 1);
    for (int q = 0; q < queries; q++) {
        static const int32_t LENGTHS[QUERIES] = {1, 3, 5, 32, 67};
        float *numbers = malloc((size_t)LENGTHS[q] * (size_t)dim * sizeof *numbers), scores[ROWS];
        const ww_multivector asked = {LENGTHS[q], dim, numbers};
        random_normals(&random, numbers, (int64_t)LENGTHS[q] * dim);
        for (int i = 0; i < ROWS; i++)
            scores[i] = s.rows[i].count > 0 ? reference(metric, &asked, &s.rows[i]) : 0.0f;
        ww_query query = ww_query_default();
        query.k = q == 0 ? WW_K_MAX : 10;
        check_query(index, &s, scores, &asked, query);
        query.mask = most, query.mask_rows = ROWS - 70;
        check_query(index, &s, scores, &asked, query);
        query.mask = few, query.mask_rows = ROWS;
        check_query(index, &s, scores, &asked, query);
        query.mode = WW_QUERY_RANGE, query.k = 0, query.bound = scores[1], query.limit = q % 2 == 0 ? WW_ROWS_MAX : 3;
        check_query(index, &s, scores, &asked, query);
        query.mask = NULL, query.mask_rows = 0, query.bound = -INFINITY, query.limit = 0;
        check_query(index, &s, scores, &asked, query);
        float score = 0.0f;
        CHECK_OK(ww_multi_score(metric, &asked, &s.rows[1], &score));
        assert_memory_equal(&score, &scores[1], sizeof score);
        free(numbers);
    }
    ww_multi_destroy(index);
    free(s.numbers);
}

static void scores_have_the_bits_of_the_definition(void **state)
{
    check_metric(*state, WW_DOT, 8, QUERIES);
    check_metric(*state, WW_COSINE, 40, 4);
}

static void dimensions_of_several_chunks_have_the_bits_of_the_definition(void **state)
{
    check_metric(*state, WW_COSINE, 520, 2);
}

/* Several queries of different lengths are answered as each by itself. */
static void queries_may_have_different_numbers_of_vectors(void **state)
{
    test_random random = {4};
    scene s;
    ww_multi_index *index = NULL;
    ww_multi_query multi = ww_multi_query_default();
    ww_query query = ww_query_default();
    ww_results *found = NULL;
    scene_make(&s, &random, 16);
    CHECK_OK(ww_multi_create(*state, 16, WW_DOT, &index));
    CHECK_OK(ww_multi_add(index, s.rows, ROWS));
    multi.vectors = s.rows, query.multi = &multi, query.query_count = 5, query.k = 1; /* the first has no vectors */
    CHECK_OK(ww_multi_search(index, &query, &found));
    assert_int_equal(ww_results_count(found, 0), 0);
    for (int64_t q = 1; q < 5; q++) {
        float scores[ROWS];
        for (int i = 0; i < ROWS; i++)
            scores[i] = s.rows[i].count > 0 ? reference(WW_DOT, &s.rows[q], &s.rows[i]) : 0.0f;
        ww_query one = ww_query_default();
        one.k = 1;
        check_query(index, &s, scores, &s.rows[q], one);
        assert_memory_equal(ww_results_scores(found, q), &scores[ww_results_rows(found, q)[0]], sizeof(float));
    }
    ww_results_destroy(found);
    ww_multi_destroy(index);
    free(s.numbers);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

static void what_is_no_multivector_is_refused(void **state)
{
    ww_multi_index *index = NULL;
    ww_results *found = NULL;
    const float sound[] = {1, 2, 3, 4}, bad[] = {1, 2, NAN, 4}, large[] = {1, 2, 0x1.8p48f, 1};
    const ww_multivector right = {2, 2, sound};
    const ww_multivector wrong[] = {{-1, 2, sound}, {WW_MULTI_MAX + 1, 2, sound}, {2, 2, bad},  {2, 2, large}, {2, 2, NULL},
                                    {1, 0, sound},  {1, WW_DIM_MAX + 1, sound},   {1, 3, sound}};
    float score = 0.0f;
    CHECK_FAILS(WW_UNSUPPORTED, ww_multi_create(*state, 2, WW_L2, &index));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_multi_create(*state, 0, WW_DOT, &index));
    CHECK_OK(ww_multi_create(*state, 2, WW_DOT, &index));
    CHECK_OK(ww_multi_add(index, &right, 1));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const ww_multivector both[] = {right, wrong[i]};
        ww_multi_query multi = ww_multi_query_default();
        ww_query query = ww_query_default();
        multi.vectors = &wrong[i], query.multi = &multi, query.query_count = 1, query.k = 1;
        assert_int_not_equal(ww_multi_add(index, both, 2), WW_OK);
        assert_int_not_equal(ww_multi_search(index, &query, &found), WW_OK);
        assert_int_not_equal(ww_multi_score(WW_DOT, &right, &wrong[i], &score), WW_OK);
        assert_int_equal(ww_multi_count(index), 1);
    }
    ww_multi_query multi = ww_multi_query_default();
    ww_query query = ww_query_default();
    query.k = 1, query.query_count = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_multi_search(index, &query, &found)); /* without a multi query */
    multi.vectors = &right, query.multi = &multi, query.fetch = WW_FETCH_IDS;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_multi_search(index, &query, &found));
    CHECK_FAILS(WW_UNSUPPORTED, ww_multi_score(WW_L2, &right, &right, &score));
    CHECK_OK(ww_multi_remove(index, 0));
    CHECK_FAILS(WW_NOT_FOUND, ww_multi_remove(index, 0));
    CHECK_FAILS(WW_NOT_FOUND, ww_multi_remove(index, 1));
    ww_multi_destroy(index);
    ww_multi_destroy(NULL);
}

static void a_collection_in_memory_has_no_multivectors(void **state)
{
    ww_collection *memory = collection_make(*state, 1, WW_DOT);
    const float value = 1.0f;
    const ww_multivector vector = {1, 1, &value};
    ww_multi_query multi = ww_multi_query_default();
    ww_query query = ww_query_default();
    ww_rows rows = ww_rows_default();
    ww_results *found = NULL;
    rows.count = 1, rows.dim = 1, rows.vectors = &value, rows.multi = &vector;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(memory, &rows));
    multi.vectors = &vector, query.multi = &multi, query.query_count = 1, query.k = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(memory, &query, &found));
    ww_collection_destroy(memory);
}

static void a_cancelled_search_stops(void **state)
{
    const float sound[] = {1, 2};
    const ww_multivector right = {1, 2, sound};
    ww_multi_index *index = NULL;
    ww_results *found = NULL;
    ww_cancel *cancel = NULL;
    ww_multi_query multi = ww_multi_query_default();
    ww_query query = ww_query_default();
    CHECK_OK(ww_multi_create(*state, 2, WW_DOT, &index));
    CHECK_OK(ww_multi_add(index, &right, 1));
    CHECK_OK(ww_cancel_create(&cancel));
    ww_cancel_ask(cancel);
    multi.vectors = &right, query.multi = &multi, query.query_count = 1, query.k = 1, query.cancel = cancel;
    CHECK_FAILS(WW_CANCELLED, ww_multi_search(index, &query, &found));
    ww_cancel_destroy(cancel);
    ww_multi_destroy(index);
}

/* ---- faults -------------------------------------------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state)
{
    test_random random = {5};
    scene s;
    float scores[ROWS];
    long failures = 0;
    scene_make(&s, &random, 4);
    for (int i = 40; i < ROWS; i++)
        s.removed[i] = true;
    for (int i = 0; i < ROWS; i++)
        scores[i] = s.rows[i].count > 0 ? reference(WW_DOT, &s.rows[1], &s.rows[i]) : 0.0f;
    for (int64_t n = 1; n <= 120; n++) { /* a product that gets no workspace does without: not each one fails the call */
        ww_multi_index *index = NULL;
        ww_results *found = NULL;
        ww_multi_query multi = ww_multi_query_default();
        ww_query query = ww_query_default();
        multi.vectors = s.rows, query.multi = &multi, query.query_count = 4, query.k = 7;
        fail_allocation_at(n);
        ww_status status = ww_multi_create(*state, 4, WW_DOT, &index);
        if (status == WW_OK)
            status = ww_multi_add(index, s.rows, 30);
        if (status == WW_OK)
            status = ww_multi_add(index, s.rows + 30, 10);
        if (status == WW_OK)
            status = ww_multi_search(index, &query, &found);
        fail_allocation_at(0);
        failures += status != WW_OK;
        if (status != WW_OK)
            assert_int_equal(status, WW_OUT_OF_MEMORY);
        if (index) { /* what failed left nothing behind: the rest can be added, and answers are right */
            const int64_t count = ww_multi_count(index);
            assert_true(count == 0 || count == 30 || count == 40);
            CHECK_OK(ww_multi_add(index, s.rows + count, 40 - count));
            check_query(index, &s, scores, &s.rows[1], query);
        }
        ww_results_destroy(found);
        ww_multi_destroy(index);
    }
    assert_true(failures > 20);
    fault_count("allocation", failures);
    free(s.numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_have_the_bits_of_the_definition),
        cmocka_unit_test(dimensions_of_several_chunks_have_the_bits_of_the_definition),
        cmocka_unit_test(queries_may_have_different_numbers_of_vectors),
        cmocka_unit_test(what_is_no_multivector_is_refused),
        cmocka_unit_test(a_collection_in_memory_has_no_multivectors),
        cmocka_unit_test(a_cancelled_search_stops),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return RUN_ON_EVERY_DEVICE("multivectors", tests);
}
