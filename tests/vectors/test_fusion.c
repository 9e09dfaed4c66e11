/* Fusion of any number of lists, compared with a literal implementation of the definitions, and hits that the caller picks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <warpwave/ranking.h>

#include "support/check.h"
#include "support/collections.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"

enum { LISTS = 3, ROWS = 60, HITS_MAX = 50, DIM = 2 };

/* Two collections with the same ids in another order, so handles do not agree. */
typedef struct scene {
    ww_device *device;
    ww_collection *collections[2];
    ww_results *all[2]; /* all rows, in the order of handles */
} scene;

static scene world;

static ww_collection *make(int64_t count, int64_t step, int32_t dim)
{
    ww_collection *made = collection_make(world.device, dim, WW_DOT);
    float *vectors = calloc((size_t)(count * dim), sizeof *vectors);
    char(*texts)[24] = malloc((size_t)count * sizeof *texts);
    const char **ids = malloc((size_t)count * sizeof *ids);
    for (int64_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%lld", (long long)(i * step % count));
        ids[i] = texts[i];
    }
    ww_rows rows = ww_rows_default();
    rows.count = count, rows.dim = dim, rows.vectors = vectors, rows.ids = ids;
    CHECK_OK(ww_collection_add(made, &rows));
    free(vectors);
    free(texts);
    free(ids);
    return made;
}

/* Gets all rows with their ids. */
static ww_results *get_all(ww_collection *from, int64_t count, uint32_t fetch)
{
    int64_t *handles = malloc((size_t)count * sizeof *handles);
    ww_results *found = NULL;
    ww_get get = ww_get_default();
    for (int64_t i = 0; i < count; i++)
        handles[i] = i;
    get.handles = handles, get.count = count, get.fetch = fetch;
    CHECK_OK(ww_collection_get(from, &get, &found));
    assert_non_null(ww_results_id(found, 0, count - 1));
    free(handles);
    return found;
}

static int setup(void **state)
{
    (void)state;
    CHECK_OK(ww_device_open("cpu", &world.device));
    for (int64_t i = 0; i < 2; i++) {
        world.collections[i] = make(ROWS, i == 0 ? 1 : 7, DIM);
        world.all[i] = get_all(world.collections[i], ROWS, WW_FETCH_IDS);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        ww_results_destroy(world.all[i]);
        ww_collection_destroy(world.collections[i]);
    }
    ww_device_close(world.device);
    return 0;
}

/* Some of the rows in any order; all hits of the second list have the same score, and in the others equal scores come, too. */
static ww_results *find_some(test_random *random, int64_t list, bool distances)
{
    ww_picked_hit hits[HITS_MAX];
    ww_results *made = NULL;
    int64_t count = 0;
    float score = 10;
    for (int64_t i = 0; i < ROWS && count < HITS_MAX; i++)
        if (random_below(random, 3) > 0) {
            hits[count++] = (ww_picked_hit){world.all[list % 2], 0, i * (2 * list + 1) % ROWS, distances ? -score : score};
            score -= list == 1 ? 0 : (float)random_below(random, 4);
        }
    CHECK_OK(ww_results_pick(hits, count, &made));
    return made;
}

typedef struct expected_hit {
    const char *id;
    double score;
} expected_hit;

/* The definition of a share: rank from 1. */
static double share(const ww_fuse *how, const ww_results *list, double weight, int64_t rank)
{
    const float *scores = ww_results_scores(list, 0);
    const int64_t count = ww_results_count(list, 0);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)scores[i];
    for (int64_t i = 0; i < count; i++)
        squares += pow((double)scores[i] - sum / (double)count, 2);
    const double deviation = sqrt(squares / (double)(count - 1)), score = (double)scores[rank - 1];
    const double best = (double)scores[0], worst = (double)scores[count - 1];
    switch (how->fusion) {
    case WW_FUSION_RANKS:
        return weight / (how->constant + (double)rank);
    case WW_FUSION_SCALED_RANKS:
        return weight > 0 ? 1 / (how->constant + (double)rank / weight) : 0;
    case WW_FUSION_SCORES:
        return weight * (best == worst ? 1 : (score - worst) / (best - worst));
    default:
        return weight *
               (deviation == 0 ? 0.5 : 0.5 + (best < worst ? -1 : 1) * (score - sum / (double)count) / (6 * deviation));
    }
}

/* Rows in the order in which they are found, sorted by score; of equal ones, the one found earlier comes first. */
static int64_t fuse_slowly(ww_results *const *lists, const ww_fuse *how, expected_hit *fused)
{
    int64_t count = 0;
    for (int64_t l = 0; l < LISTS; l++)
        for (int64_t i = 0; i < ww_results_count(lists[l], 0); i++) {
            const char *id = ww_results_id(lists[l], 0, i);
            int64_t at = 0;
            while (at < count && strcmp(fused[at].id, id) != 0)
                at++;
            if (at == count)
                fused[count++] = (expected_hit){id, 0};
            fused[at].score += share(how, lists[l], how->weights ? how->weights[l] : 1, i + 1);
        }
    for (int64_t i = 1; i < count; i++)
        for (int64_t j = i; j > 0 && fused[j].score > fused[j - 1].score; j--) {
            const expected_hit moved = fused[j];
            fused[j] = fused[j - 1];
            fused[j - 1] = moved;
        }
    return count;
}

static void check_fused(ww_results *const *lists, const ww_fuse *how)
{
    expected_hit expected[LISTS * HITS_MAX];
    ww_results *fused = NULL;
    const int64_t all = fuse_slowly(lists, how, expected), count = how->limit > 0 && how->limit < all ? how->limit : all;
    CHECK_OK(ww_results_fuse((const ww_results *const *)lists, LISTS, how, &fused));
    assert_int_equal(ww_results_count(fused, 0), count);
    assert_null(ww_results_parts(fused, 0)); /* of two lists only */
    for (int64_t i = 0; i < count; i++) {
        assert_string_equal(ww_results_id(fused, 0, i), expected[i].id);
        assert_true(fabsf(ww_results_scores(fused, 0)[i] - (float)expected[i].score) <= 1e-6f);
    }
    ww_results_destroy(fused);
}

static void lists_of_different_collections_are_fused_as_defined(void **state)
{
    (void)state;
    static const double weights[LISTS] = {1, 0.5, 3}, none[LISTS] = {0, 1, 0};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        test_random random = {seed};
        ww_results *lists[LISTS];
        for (int64_t l = 0; l < LISTS; l++)
            lists[l] = find_some(&random, l, seed % 2 == 0);
        for (int fusion = WW_FUSION_RANKS; fusion <= WW_FUSION_DISTRIBUTIONS; fusion++) {
            ww_fuse how = ww_fuse_default();
            how.fusion = (ww_fusion)fusion, how.by_id = true;
            check_fused(lists, &how);
            how.constant = 1, how.weights = weights;
            check_fused(lists, &how);
            how.limit = 5, how.weights = none;
            check_fused(lists, &how);
        }
        for (int l = 0; l < LISTS; l++)
            ww_results_destroy(lists[l]);
    }
}

static void without_by_id_rows_are_told_apart_by_handle(void **state)
{
    (void)state;
    const ww_results *lists[4] = {world.all[0], world.all[1], world.all[0], world.all[0]};
    ww_results *fused = NULL;
    CHECK_OK(ww_results_fuse(lists, 4, NULL, &fused)); /* in all lists the first row has handle 0 */
    assert_int_equal(ww_results_count(fused, 0), ROWS);
    for (int64_t i = 0; i < ROWS; i++)
        assert_int_equal(ww_results_handles(fused, 0)[i], i);
    assert_true(ww_results_scores(fused, 0)[0] == (float)(1.0 / 61 + 1.0 / 61 + 1.0 / 61 + 1.0 / 61));
    ww_results_destroy(fused);
    ww_fuse how = ww_fuse_default();
    how.limit = 3;
    CHECK_OK(ww_results_fuse(lists, 1, &how, &fused)); /* a single list, too */
    assert_int_equal(ww_results_count(fused, 0), 3);
    ww_results_destroy(fused);
}

static void what_cannot_be_fused_is_refused(void **state)
{
    (void)state;
    ww_collection *wide = make(ROWS, 1, DIM + 2);
    ww_results *narrow = get_all(world.collections[0], ROWS, WW_FETCH_IDS | WW_FETCH_VECTORS), *fused = NULL, *anonymous = NULL;
    ww_results *other = get_all(wide, ROWS, WW_FETCH_IDS | WW_FETCH_VECTORS);
    const ww_results *lists[2] = {narrow, other};
    const double wrong[2] = {1, -1};
    ww_fuse how = ww_fuse_default();
    ww_query query = ww_query_default();
    const ww_picked_hit picked[2] = {{narrow, 0, 0, 1}, {other, 0, 1, 1}};
    ww_results *first = NULL;
    CHECK_OK(ww_results_pick(picked, 1, &first));
    lists[0] = first;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_results_fuse(lists, 2, NULL, &fused));
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_results_pick(picked, 2, &fused));
    ww_results_destroy(first);
    lists[0] = narrow;
    lists[1] = narrow, how.weights = wrong;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_fuse(lists, 2, &how, &fused));
    how.weights = NULL, how.constant = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_fuse(lists, 2, &how, &fused));
    how.constant = 0, how.limit = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_fuse(lists, 2, &how, &fused));
    how.limit = 0, how.fusion = (ww_fusion)4;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_fuse(lists, 2, &how, &fused));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_fuse(lists, 0, NULL, &fused));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_fuse(NULL, 2, NULL, &fused));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_fuse(lists, 2, NULL, NULL));
    query.queries = (const float[2 * DIM]){1, 0, 0, 1}, query.query_count = 2, query.dim = DIM, query.k = 3;
    CHECK_OK(ww_collection_query(world.collections[0], &query, &anonymous));
    lists[1] = anonymous, how.fusion = WW_FUSION_RANKS, how.by_id = true;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_fuse(lists, 2, NULL, &fused)); /* of another number of queries */
    lists[0] = anonymous;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_fuse(lists, 2, &how, &fused)); /* without ids */
    ww_results_destroy(narrow);
    ww_results_destroy(other);
    ww_results_destroy(anonymous);
    ww_collection_destroy(wide);
}

static void lists_without_hits_are_fused_into_nothing(void **state)
{
    (void)state;
    ww_results *empty = NULL, *fused = NULL;
    CHECK_OK(ww_results_pick(NULL, 0, &empty));
    assert_int_equal(ww_results_query_count(empty), 1);
    for (int fusion = WW_FUSION_RANKS; fusion <= WW_FUSION_DISTRIBUTIONS; fusion++) {
        ww_fuse how = ww_fuse_default();
        how.fusion = (ww_fusion)fusion, how.by_id = fusion % 2 == 0;
        CHECK_OK(ww_results_fuse((const ww_results *const[]){empty, empty}, 2, &how, &fused));
        assert_int_equal(ww_results_count(fused, 0), 0);
        ww_results_destroy(fused);
    }
    ww_results_destroy(empty);
}

static void hits_are_picked_in_the_order_of_the_caller(void **state)
{
    (void)state;
    const ww_picked_hit picked[3] = {{world.all[1], 0, 1, 2.5f}, {world.all[0], 0, 9, 1.5f}, {world.all[1], 0, 1, -3.0f}};
    ww_results *made = NULL;
    CHECK_OK(ww_results_pick(picked, 3, &made));
    assert_int_equal(ww_results_count(made, 0), 3);
    assert_string_equal(ww_results_id(made, 0, 0), "7");
    assert_string_equal(ww_results_id(made, 0, 1), "9");
    assert_true(ww_results_scores(made, 0)[2] == -3.0f);
    ww_results_destroy(made);
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_pick(&(ww_picked_hit){world.all[0], 0, ROWS, 0}, 1, &made));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_pick(&(ww_picked_hit){world.all[0], 1, 0, 0}, 1, &made));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_pick(&(ww_picked_hit){NULL, 0, 0, 0}, 1, &made));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_results_pick(picked, -1, &made));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_pick(NULL, 1, &made));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_results_pick(picked, 1, NULL));
}

/* It takes a fraction of a second; comparing each hit with every other would take minutes. */
static void many_hits_are_fused_quickly_and_can_be_stopped(void **state)
{
    (void)state;
    enum { MANY = 200000 };
    ww_collection *large = make(MANY, 1, 1);
    ww_results *lists[2] = {NULL, NULL}, *all = get_all(large, MANY, WW_FETCH_IDS), *fused = NULL;
    ww_picked_hit *hits = malloc(MANY * sizeof *hits);
    for (int l = 0; l < 2; l++) {
        for (int64_t i = 0; i < MANY; i++)
            hits[i] = (ww_picked_hit){all, 0, l == 0 ? i : MANY - 1 - i, (float)(MANY - i)};
        CHECK_OK(ww_results_pick(hits, MANY, &lists[l]));
    }
    ww_fuse how = ww_fuse_default();
    how.constant = 1, how.by_id = true;
    CHECK_OK(ww_results_fuse((const ww_results *const *)lists, 2, &how, &fused));
    assert_int_equal(ww_results_count(fused, 0), MANY);
    assert_string_equal(ww_results_id(fused, 0, 0), "0"); /* first and last of a list are better than twice in the middle */
    assert_string_equal(ww_results_id(fused, 0, 1), "199999");
    assert_int_equal(ww_results_parts(fused, 0)[1].ranks[0], MANY);
    assert_int_equal(ww_results_parts(fused, 0)[1].ranks[1], 1);
    ww_results_destroy(fused);
    ww_cancel *cancel = NULL;
    CHECK_OK(ww_cancel_create(&cancel));
    how.cancel = cancel;
    ww_cancel_ask(cancel);
    CHECK_FAILS(WW_CANCELLED, ww_results_fuse((const ww_results *const *)lists, 2, &how, &fused));
    ww_cancel_destroy(cancel);
    ww_results_destroy(lists[0]);
    ww_results_destroy(lists[1]);
    ww_results_destroy(all);
    ww_collection_destroy(large);
    free(hits);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const ww_results *lists[3] = {world.all[0], world.all[1], world.all[0]};
    const ww_picked_hit picked = {world.all[1], 0, 1, 2.5f};
    ww_fuse how = ww_fuse_default();
    how.by_id = true;
    const int64_t held = blocks_held();
    ww_status status = WW_OUT_OF_MEMORY;
    long failures = 0;
    for (int64_t n = 1; status != WW_OK; n++) {
        ww_results *made[3] = {NULL, NULL, NULL};
        fail_allocation_at(n);
        status = ww_results_fuse(lists, 3, &how, &made[0]);
        if (status == WW_OK)
            status = ww_results_fuse(lists, 2, NULL, &made[1]);
        if (status == WW_OK)
            status = ww_results_pick(&picked, 1, &made[2]);
        fail_allocation_at(0);
        for (int i = 0; i < 3; i++)
            ww_results_destroy(made[i]);
        assert_true(status == WW_OK || status == WW_OUT_OF_MEMORY);
        assert_int_equal(blocks_held(), held);
        failures += status != WW_OK;
    }
    assert_true(failures > 10);
    fault_count("allocation", failures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_different_collections_are_fused_as_defined),
        cmocka_unit_test(without_by_id_rows_are_told_apart_by_handle),
        cmocka_unit_test(what_cannot_be_fused_is_refused),
        cmocka_unit_test(lists_without_hits_are_fused_into_nothing),
        cmocka_unit_test(hits_are_picked_in_the_order_of_the_caller),
        cmocka_unit_test(many_hits_are_fused_quickly_and_can_be_stopped),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
