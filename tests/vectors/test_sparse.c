/* Sparse vectors in memory, compared to the bit with a literal implementation of the definition. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/collections.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "vectors/sparse/sparse.h"

enum { ENTRIES_MAX = 24, TERMS = 60, ROWS = 9000, QUERIES = 12 };

typedef struct test_row {
    uint32_t indices[ENTRIES_MAX];
    float values[ENTRIES_MAX];
    int64_t count;
    bool removed;
} test_row;

typedef enum kind { POSITIVE, SIGNED, FEW_VALUES, HUGE_AND_TINY, KINDS } kind;

static float value_of(test_random *random, kind k)
{
    static const float FEW[] = {-1.0f, -0.0f, 0.0f, 0.5f, 1.0f};
    static const float WIDE[] = {1e17f, -1e17f, 1.0f, -1.0f, 1e-30f, 1e-45f, -1e-45f, 3e-39f};
    float x;
    random_normals(random, &x, 1);
    return k == POSITIVE     ? fabsf(x)
           : k == SIGNED     ? x
           : k == FEW_VALUES ? FEW[random_below(random, 5)]
                             : WIDE[random_below(random, 8)];
}

/* Indices come in any order; small ones are frequent. A few rows are empty, and a few have the largest index. */
static void make_row(test_random *random, kind k, test_row *row)
{
    *row = (test_row){.count = (int64_t)random_below(random, ENTRIES_MAX + 1)};
    for (int64_t i = 0; i < row->count;) {
        const uint64_t term = random_below(random, 1 + random_below(random, TERMS));
        const uint32_t index = term == TERMS - 1 ? UINT32_MAX : (uint32_t)(term * term);
        bool twice = false;
        for (int64_t j = 0; j < i; j++)
            twice = twice || row->indices[j] == index;
        if (twice && random_below(random, 50) != 0)
            continue;
        if (twice)
            break;
        row->indices[i] = index;
        row->values[i++] = value_of(random, k);
        if (i == row->count)
            return;
    }
    row->count = 0;
}

static ww_sparse_vector vector_of(const test_row *row)
{
    return (ww_sparse_vector){row->count, row->indices, row->values};
}

/* The definition: over all indices in ascending order. */
static bool reference(const test_row *a, const float *weights, const test_row *b, float *score)
{
    bool common = false;
    float sum = 0.0f;
    uint64_t after = 0;
    for (;;) {
        int64_t best = -1;
        for (int64_t i = 0; i < a->count; i++)
            if (a->indices[i] >= after && (best < 0 || a->indices[i] < a->indices[best]))
                best = i;
        if (best < 0)
            break;
        for (int64_t j = 0; j < b->count; j++)
            if (b->indices[j] == a->indices[best]) {
                sum = fmaf(weights[best], b->values[j], sum);
                common = true;
            }
        after = (uint64_t)a->indices[best] + 1;
    }
    *score = sum + 0.0f;
    return common;
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

static bool is_masked(const ww_query *query, int64_t row)
{
    return query->mask && (row >= query->mask_rows || !(query->mask[row / 64] >> (row % 64) & 1));
}

/* Searches one query in the index and by the definition, and compares everything. */
static void check_query(ww_sparse_index *index, const test_row *rows, int64_t count, const test_row *asked, ww_query query)
{
    scored *all = malloc((size_t)(count + 1) * sizeof *all);
    float weights[ENTRIES_MAX];
    ww_results *found = NULL;
    int64_t hits = 0, counted = 0;
    for (int64_t i = 0; i < count; i++)
        counted += !rows[i].removed && rows[i].count > 0;
    for (int64_t j = 0; j < asked->count; j++) {
        int64_t with = 0;
        for (int64_t i = 0; i < count; i++)
            for (int64_t e = 0; e < rows[i].count; e++)
                with += !rows[i].removed && rows[i].indices[e] == asked->indices[j];
        weights[j] = query.sparse->modifier == WW_SPARSE_IDF ? sparse_idf(asked->values[j], counted, with) : asked->values[j];
    }
    for (int64_t i = 0; i < count; i++) {
        float score = 0.0f;
        if (!rows[i].removed && !is_masked(&query, i) && reference(asked, weights, &rows[i], &score) &&
            (query.mode == WW_QUERY_NEAREST || score >= query.bound))
            all[hits++] = (scored){i, score};
    }
    qsort(all, (size_t)hits, sizeof *all, compare_scored);
    const ww_sparse_vector vector = vector_of(asked);
    ww_sparse_query sparse = *query.sparse;
    sparse.vectors = &vector;
    query.sparse = &sparse;
    query.query_count = 1;
    CHECK_OK(ww_sparse_search(index, &query, &found));
    const int64_t limit = query.mode == WW_QUERY_RANGE ? query.limit : query.k;
    assert_int_equal(ww_results_count(found, 0), hits < limit ? hits : limit);
    if (query.mode == WW_QUERY_RANGE)
        assert_int_equal(ww_results_total(found, 0), hits);
    for (int64_t i = 0; i < ww_results_count(found, 0); i++) {
        assert_int_equal(ww_results_rows(found, 0)[i], all[i].row);
        assert_memory_equal(&ww_results_scores(found, 0)[i], &all[i].score, sizeof(float));
    }
    ww_results_destroy(found);
    free(all);
}

static void check_kind(kind k)
{
    test_random random = {17 + (uint64_t)k};
    test_row *rows = calloc(ROWS, sizeof *rows);
    ww_sparse_vector *vectors = calloc(ROWS, sizeof *vectors);
    uint64_t *mask = calloc(ROWS / 64 + 1, sizeof *mask);
    ww_sparse_index *index = NULL;
    for (int64_t i = 0; i < ROWS; i++) {
        make_row(&random, k, &rows[i]);
        vectors[i] = vector_of(&rows[i]);
        mask[i / 64] |= (uint64_t)(random_below(&random, 3) == 0) << (i % 64);
    }
    CHECK_OK(ww_sparse_create(&index));
    CHECK_OK(ww_sparse_add(index, vectors, 100));
    CHECK_OK(ww_sparse_add(index, vectors + 100, ROWS - 100));
    for (int64_t i = 0; i < ROWS; i += 1 + (int64_t)random_below(&random, 9)) {
        rows[i].removed = true;
        CHECK_OK(ww_sparse_remove(index, i));
    }
    for (int q = 0; q < QUERIES; q++) {
        static const int32_t KS[] = {1, 10, 137, WW_K_MAX};
        test_row asked;
        ww_sparse_query sparse = ww_sparse_query_default();
        ww_query query = ww_query_default();
        make_row(&random, k == HUGE_AND_TINY ? SIGNED : k, &asked);
        sparse.modifier = q % 2 == 0 ? WW_SPARSE_PLAIN : WW_SPARSE_IDF;
        query.sparse = &sparse;
        query.k = KS[q % 4];
        check_query(index, rows, ROWS, &asked, query);
        query.mask = mask, query.mask_rows = ROWS - 70;
        check_query(index, rows, ROWS, &asked, query);
        query.mode = WW_QUERY_RANGE, query.k = 0, query.bound = 0.25f, query.limit = q % 3 == 0 ? WW_ROWS_MAX : 5 * (q % 3 - 1);
        check_query(index, rows, ROWS, &asked, query);
        query.mask = NULL, query.mask_rows = 0, query.bound = -INFINITY;
        check_query(index, rows, ROWS, &asked, query);
    }
    ww_sparse_destroy(index);
    free(rows);
    free(vectors);
    free(mask);
}

static void positive_values_are_searched_exactly(void **state)
{
    (void)state;
    check_kind(POSITIVE);
}

static void values_of_both_signs_are_searched_exactly(void **state)
{
    (void)state;
    check_kind(SIGNED);
}

static void equal_scores_come_in_the_order_of_rows(void **state)
{
    (void)state;
    check_kind(FEW_VALUES);
}

static void sums_that_cancel_and_underflow_are_searched_exactly(void **state)
{
    (void)state;
    check_kind(HUGE_AND_TINY);
}

/* ---- the bounds ---------------------------------------------------------------------------------------------------------- */

typedef struct counted_blocks {
    const uint32_t *rows;
    const float *values;
} counted_blocks;

static ww_status load_counted(void *user, int64_t term, int64_t block, sparse_entries *entries)
{
    const counted_blocks *from = user;
    (void)term;
    *entries = (sparse_entries){from->rows + block * SPARSE_BLOCK, from->values + block * SPARSE_BLOCK};
    return WW_OK;
}

/* One term whose best rows are in the first block: no other block may be read, and none may be lost if its bound is as good. */
static void blocks_that_cannot_reach_the_kth_score_are_not_read(void **state)
{
    (void)state;
    enum { BLOCKS = 40, ENTRIES = BLOCKS * SPARSE_BLOCK };
    uint32_t *rows = malloc(ENTRIES * sizeof *rows);
    float *values = malloc(ENTRIES * sizeof *values);
    sparse_block blocks[BLOCKS];
    for (int32_t i = 0; i < ENTRIES; i++) {
        rows[i] = (uint32_t)(4 * i);
        values[i] = i < SPARSE_BLOCK ? 2.0f : 1.0f;
    }
    for (int32_t b = 0; b < BLOCKS; b++) {
        const float value = values[b * SPARSE_BLOCK];
        blocks[b] =
            (sparse_block){rows[b * SPARSE_BLOCK], rows[b * SPARSE_BLOCK + SPARSE_BLOCK - 1], SPARSE_BLOCK, value, value};
    }
    const sparse_term term = {1.0f, blocks, BLOCKS};
    counted_blocks from = {rows, values};
    for (int better = 0; better < 2; better++) {
        if (better) { /* the last entry of all is the best, and its block's bound says so */
            values[ENTRIES - 1] = 3.0f;
            blocks[BLOCKS - 1].high = 3.0f;
        }
        key_list list = {0};
        sparse_search search = {.terms = &term, .term_count = 1, .load = load_counted, .user = &from, .limit = 10};
        CHECK_OK(sparse_search_run(&search, &list));
        key_list_finish(&list, 10);
        assert_int_equal(list.count, 10);
        assert_int_equal(search.blocks_read, 1 + better);
        assert_int_equal((uint32_t)list.keys[0], better ? rows[ENTRIES - 1] : 0);
        key_list_free(&list);
    }
    free(rows);
    free(values);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

/* A chain of sums that rounds up each time comes out above the exact sum of its products. Such a row, behind one whose score
 * lies between the two, is the best. */
static void a_sum_that_rounds_up_is_not_excluded(void **state)
{
    (void)state;
    enum { LAST = 3000 }; /* in the second window */
    static const uint32_t indices[] = {0, 1, 2, 3, 4}, asked_indices[] = {0, 1, 2, 3, 4, 50}, other[] = {50}, none[] = {70};
    const float first = 1.0f + 3 * 0x1p-23f, filler = 1.0f;
    const float values[] = {1.0f, 0.75f * 0x1p-23f, 0.75f * 0x1p-23f, 0.75f * 0x1p-23f, 0.75f * 0x1p-23f};
    const float ones[] = {1, 1, 1, 1, 1, 1};
    const ww_sparse_vector asked = {6, asked_indices, ones};
    ww_sparse_vector *vectors = malloc((LAST + 1) * sizeof *vectors);
    ww_sparse_query sparse = ww_sparse_query_default();
    ww_query query = ww_query_default();
    ww_sparse_index *index = NULL;
    ww_results *results = NULL;
    for (int64_t i = 0; i < LAST; i++)
        vectors[i] = (ww_sparse_vector){1, i < 4 ? other : none, i == 0 ? &first : &filler};
    vectors[LAST] = (ww_sparse_vector){5, indices, values};
    CHECK_OK(ww_sparse_create(&index));
    CHECK_OK(ww_sparse_add(index, vectors, LAST + 1));
    sparse.vectors = &asked;
    query.sparse = &sparse, query.query_count = 1, query.k = 1;
    CHECK_OK(ww_sparse_search(index, &query, &results));
    assert_int_equal(ww_results_count(results, 0), 1);
    assert_int_equal(ww_results_rows(results, 0)[0], LAST);
    assert_true(ww_results_scores(results, 0)[0] == 1.0f + 4 * 0x1p-23f);
    ww_results_destroy(results);
    ww_sparse_destroy(index);
    free(vectors);
}

static void what_is_no_sparse_vector_is_refused(void **state)
{
    (void)state;
    ww_sparse_index *index = NULL;
    ww_results *found = NULL;
    const uint32_t twice[] = {3, 1, 3}, once[] = {3, 1, 4};
    const float sound[] = {1, 2, 3}, bad[] = {1, NAN, 3}, large[] = {3e38f, 3e38f, 3e38f};
    const ww_sparse_vector wrong[] = {{3, twice, sound},
                                      {3, once, bad},
                                      {3, once, large},
                                      {-1, once, sound},
                                      {3, NULL, sound},
                                      {3, once, NULL},
                                      {WW_SPARSE_MAX + 1, once, sound}};
    const ww_sparse_vector right = {3, once, sound};
    float score = 0.0f;
    int64_t common = 0;
    CHECK_OK(ww_sparse_create(&index));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const ww_sparse_vector both[] = {right, wrong[i]};
        ww_sparse_query sparse = ww_sparse_query_default();
        ww_query query = ww_query_default();
        sparse.vectors = &wrong[i], query.sparse = &sparse, query.query_count = 1, query.k = 1;
        assert_int_not_equal(ww_sparse_add(index, both, 2), WW_OK);
        assert_int_not_equal(ww_sparse_search(index, &query, &found), WW_OK);
        assert_int_not_equal(ww_sparse_score(&right, &wrong[i], &score, &common), WW_OK);
        assert_int_equal(ww_sparse_count(index), 0);
    }
    CHECK_OK(ww_sparse_score(&right, &right, &score, &common));
    assert_true(score == 14.0f && common == 3);
    CHECK_OK(ww_sparse_add(index, &right, 1));
    CHECK_FAILS(WW_NOT_FOUND, ww_sparse_remove(index, 1));
    CHECK_OK(ww_sparse_remove(index, 0));
    CHECK_FAILS(WW_NOT_FOUND, ww_sparse_remove(index, 0));
    ww_query query = ww_query_default();
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_sparse_search(index, &query, &found)); /* without a sparse query */
    ww_sparse_query sparse = ww_sparse_query_default();
    sparse.vectors = &right, query.sparse = &sparse, query.query_count = 1, query.k = WW_K_MAX + 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_sparse_search(index, &query, &found));
    query.k = 1, query.fetch = WW_FETCH_IDS;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_sparse_search(index, &query, &found));
    query.fetch = 0, sparse.modifier = (ww_sparse_modifier)7;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_sparse_search(index, &query, &found));
    ww_sparse_destroy(index);
    ww_sparse_destroy(NULL);
}

static void a_collection_in_memory_has_no_sparse_vectors(void **state)
{
    (void)state;
    ww_device *device = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    ww_collection *memory = collection_make(device, 1, WW_DOT);
    const uint32_t index = 1;
    const float value = 1.0f;
    const ww_sparse_vector vector = {1, &index, &value};
    ww_sparse_query sparse = ww_sparse_query_default();
    ww_query query = ww_query_default();
    ww_rows rows = ww_rows_default();
    ww_results *found = NULL;
    rows.count = 1, rows.dim = 1, rows.vectors = &value, rows.sparse = &vector;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(memory, &rows));
    sparse.vectors = &vector, query.sparse = &sparse, query.query_count = 1, query.k = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(memory, &query, &found));
    ww_collection_destroy(memory);
    ww_device_close(device);
}

/* ---- faults -------------------------------------------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    test_random random = {5};
    test_row rows[40];
    ww_sparse_vector vectors[40];
    for (int i = 0; i < 40; i++) {
        make_row(&random, SIGNED, &rows[i]);
        vectors[i] = vector_of(&rows[i]);
    }
    const int64_t held = blocks_held();
    long failures = 0;
    bool passed = false;
    for (int64_t n = 1; !passed; n++) {
        ww_sparse_index *index = NULL;
        ww_results *found = NULL;
        ww_sparse_query sparse = ww_sparse_query_default();
        ww_query query = ww_query_default();
        sparse.vectors = vectors, query.sparse = &sparse, query.query_count = 4, query.mode = WW_QUERY_RANGE,
        query.bound = -9.0f;
        query.limit = 7;
        fail_allocation_at(n);
        ww_status status = ww_sparse_create(&index);
        if (status == WW_OK)
            status = ww_sparse_add(index, vectors, 30);
        if (status == WW_OK)
            status = ww_sparse_add(index, vectors + 30, 10);
        if (status == WW_OK)
            status = ww_sparse_search(index, &query, &found);
        fail_allocation_at(0);
        passed = status == WW_OK;
        failures += !passed;
        if (!passed)
            assert_int_equal(status, WW_OUT_OF_MEMORY);
        if (index) { /* what failed left nothing behind: the rest can be added, and answers are right */
            const int64_t count = ww_sparse_count(index);
            assert_true(count == 0 || count == 30 || count == 40);
            CHECK_OK(ww_sparse_add(index, vectors + count, 40 - count));
            query.mode = WW_QUERY_NEAREST, query.k = 10, query.bound = 0, query.limit = 0;
            check_query(index, rows, 40, &rows[1], query);
        }
        ww_results_destroy(found);
        ww_sparse_destroy(index);
        assert_int_equal(blocks_held(), held);
    }
    assert_true(failures > 20);
    fault_count("allocation", failures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positive_values_are_searched_exactly),
        cmocka_unit_test(values_of_both_signs_are_searched_exactly),
        cmocka_unit_test(equal_scores_come_in_the_order_of_rows),
        cmocka_unit_test(sums_that_cancel_and_underflow_are_searched_exactly),
        cmocka_unit_test(blocks_that_cannot_reach_the_kth_score_are_not_read),
        cmocka_unit_test(a_sum_that_rounds_up_is_not_excluded),
        cmocka_unit_test(what_is_no_sparse_vector_is_refused),
        cmocka_unit_test(a_collection_in_memory_has_no_sparse_vectors),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
