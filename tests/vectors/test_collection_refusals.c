/* Bad input: each is refused with its status and a message, and the collection is as it was. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"

enum { DIM = 70, BASE = 100, COUNT = 130 };

/* A collection with rows "a0".."a99", of which one is removed, and a batch of 130 good rows "b0".. to spoil. */
typedef struct stage {
    ww_collection *collection;
    test_rows batch;
    snapshot before;
} stage;

static stage set(void **state)
{
    test_random random = {1};
    stage s = {.collection = collection_make(*state, DIM, WW_COSINE)};
    const char *gone = "a40";
    collection_fill(s.collection, &random, BASE, DIM, "a", 0);
    CHECK_OK(ww_collection_remove(s.collection, &gone, 1));
    s.batch = test_rows_make(&random, COUNT, DIM, "b", 0);
    s.before = snapshot_take(s.collection);
    return s;
}

/* Both ways of writing refuse the batch. Afterwards nothing has changed, and the corrected batch is accepted. */
static void strike(stage *s)
{
    check_unchanged(s->collection, &s->before);
    test_rows_free(&s->batch);
    test_random random = {2};
    collection_fill(s->collection, &random, COUNT, DIM, "b", 0);
    assert_int_equal(ww_collection_count(s->collection), BASE - 1 + COUNT);
    ww_collection_destroy(s->collection);
}

static void refuse(stage *s, ww_status expected, const char *words)
{
    CHECK_FAILS(expected, ww_collection_add(s->collection, &s->batch.rows));
    if (!strstr(ww_error_message(), words))
        fail_msg("'%s' does not say '%s'", ww_error_message(), words);
    CHECK_FAILS(expected, ww_collection_upsert(s->collection, &s->batch.rows));
    if (!strstr(ww_error_message(), words))
        fail_msg("'%s' does not say '%s'", ww_error_message(), words);
}

static void values_that_are_not_finite(void **state)
{
    static const int rows[] = {0, 27, 28, 63, COUNT - 1};
    stage s = set(state);
    const float bad[] = {NAN, INFINITY, -INFINITY, 1.9e19f}; /* the last is finite, its square is not */
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            for (int column = 0; column < DIM; column += DIM - 1) {
                float *value = &s.batch.vectors[rows[r] * DIM + column];
                const float good = *value;
                char words[64], place[32];
                snprintf(words, sizeof words, "row %d of the batch (id 'b%d'): ", rows[r], rows[r]);
                snprintf(place, sizeof place, "column %d is %s", column, isnan(bad[b]) ? "NaN" : "infinite");
                *value = bad[b];
                refuse(&s, WW_INVALID_ARGUMENT, words);
                refuse(&s, WW_INVALID_ARGUMENT, isfinite(bad[b]) ? "squared norm is not finite" : place);
                *value = good;
            }
        }
    }
    strike(&s);
}

static void a_norm_that_overflows_only_in_sum(void **state)
{
    stage s = set(state);
    for (int i = 0; i < DIM; i++) /* each square is about 1e37: 70 of them exceed the largest float, 30 do not */
        s.batch.vectors[5 * DIM + i] = 3.2e18f;
    refuse(&s, WW_INVALID_ARGUMENT, "squared norm");
    strike(&s);
}

static void bad_ids(void **state)
{
    static char long_id[WW_ID_BYTES_MAX + 2];
    memset(long_id, 'x', WW_ID_BYTES_MAX + 1);
    static const int rows[] = {0, 30, COUNT - 1};
    stage s = set(state);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char *good = s.batch.ids[rows[r]];
        s.batch.ids[rows[r]] = "";
        refuse(&s, WW_INVALID_ARGUMENT, "is empty");
        s.batch.ids[rows[r]] = long_id;
        refuse(&s, WW_INVALID_ARGUMENT, "too long");
        s.batch.ids[rows[r]] = "caf\xe9";
        refuse(&s, WW_INVALID_ARGUMENT, "of the batch is not UTF-8");
        s.batch.ids[rows[r]] = NULL;
        refuse(&s, WW_INVALID_ARGUMENT, "is NULL");
        s.batch.ids[rows[r]] = good;
    }
    strike(&s);
}

static void an_id_of_256_bytes_is_good(void **state)
{
    static char long_id[WW_ID_BYTES_MAX + 1];
    memset(long_id, 'x', WW_ID_BYTES_MAX);
    stage s = set(state);
    char *good = s.batch.ids[3];
    s.batch.ids[3] = long_id;
    CHECK_OK(ww_collection_add(s.collection, &s.batch.rows));
    s.batch.ids[3] = good;
    snapshot_free(&s.before);
    test_rows_free(&s.batch);
    ww_collection_destroy(s.collection);
}

static void duplicate_ids_inside_a_batch(void **state)
{
    stage s = set(state);
    char *good = s.batch.ids[COUNT - 1];
    for (int i = 0; i < COUNT - 1; i += 43) {
        s.batch.ids[COUNT - 1] = s.batch.ids[i];
        refuse(&s, WW_DUPLICATE_ID, "twice in the batch");
    }
    s.batch.ids[COUNT - 1] = good;
    strike(&s);
}

static void an_upsert_that_fails_late_gives_replaced_rows_back(void **state)
{
    stage s = set(state);
    char *good[3];
    for (int i = 0; i < 3; i++) {
        good[i] = s.batch.ids[i];
        s.batch.ids[i] = i == 0 ? "a0" : i == 1 ? "a99" : "a50"; /* known ids, replaced before the fault is met */
    }
    s.batch.vectors[(COUNT - 1) * DIM] = NAN;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_upsert(s.collection, &s.batch.rows));
    memcpy(s.batch.ids, good, sizeof good);
    strike(&s);
}

static void a_duplicate_id_against_the_store(void **state)
{
    stage s = set(state);
    char *good = s.batch.ids[77];
    s.batch.ids[77] = "a99";
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_add(s.collection, &s.batch.rows));
    assert_non_null(strstr(ww_error_message(), "'a99'"));
    s.batch.ids[77] = good;
    strike(&s);
}

static void payloads_that_are_not_json(void **state)
{
    static const char *const bad[] = {"", " ", "{", "{\"a\": }", "nul", "[1,]", "{'a': 1}", "[1] [2]", "\"\xff\"", "01"};
    stage s = set(state);
    char *good = s.batch.payloads[90];
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        s.batch.payloads[90] = (char *)(uintptr_t)bad[b];
        refuse(&s, WW_INVALID_ARGUMENT, "payload 90 of the batch is not JSON");
    }
    s.batch.payloads[90] = good;
    strike(&s);
}

static void another_dimension(void **state)
{
    stage s = set(state);
    s.batch.rows.dim = DIM - 1;
    refuse(&s, WW_DIMENSION_MISMATCH, "dimension 70, the rows have 69");
    s.batch.rows.dim = 0;
    refuse(&s, WW_DIMENSION_MISMATCH, "70");
    strike(&s);
}

static void counts_strides_and_null_pointers(void **state)
{
    stage s = set(state);
    const ww_rows good = s.batch.rows;
    s.batch.rows.count = -1;
    refuse(&s, WW_INVALID_ARGUMENT, "count is -1");
    s.batch.rows.payloads = NULL;
    s.batch.rows.count = WW_ROWS_MAX; /* together with the existing rows, too many */
    refuse(&s, WW_OUT_OF_RANGE, "4294967295");
    s.batch.rows.count = INT64_MAX;
    refuse(&s, WW_OUT_OF_RANGE, "4294967295");
    s.batch.rows = good;
    s.batch.rows.vectors = NULL;
    refuse(&s, WW_INVALID_ARGUMENT, "rows->vectors is NULL");
    s.batch.rows = good;
    s.batch.rows.row_stride = DIM - 1;
    refuse(&s, WW_INVALID_ARGUMENT, "row_stride is 69");
    s.batch.rows.row_stride = -DIM;
    refuse(&s, WW_INVALID_ARGUMENT, "row_stride is -70");
    s.batch.rows = good;
    s.batch.rows.struct_size = 0;
    refuse(&s, WW_INVALID_ARGUMENT, "ww_rows_default");
    s.batch.rows = good;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(NULL, &s.batch.rows));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_add(s.collection, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_upsert(NULL, &s.batch.rows));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_upsert(s.collection, NULL));
    strike(&s);
}

static void searches_that_cannot_be(void **state)
{
    stage s = set(state);
    int64_t rows[8];
    float scores[8];
    float query[2 * DIM] = {1.0f};
    ww_query good = ww_query_default();
    good.queries = query;
    good.query_count = 2;
    good.dim = DIM;
    good.k = 4;
    CHECK_OK(ww_collection_search(s.collection, &good, rows, scores));
#define REFUSED(status, field, value)                                                                                          \
    do {                                                                                                                       \
        ww_query bad = good;                                                                                                   \
        bad.field = value;                                                                                                     \
        CHECK_FAILS(status, ww_collection_search(s.collection, &bad, rows, scores));                                           \
        assert_true(strlen(ww_error_message()) > 0);                                                                           \
    } while (0)
    REFUSED(WW_OUT_OF_RANGE, k, -1);
    REFUSED(WW_OUT_OF_RANGE, k, WW_K_MAX + 1);
    REFUSED(WW_DIMENSION_MISMATCH, dim, DIM + 1);
    REFUSED(WW_INVALID_ARGUMENT, query_count, -1);
    REFUSED(WW_INVALID_ARGUMENT, queries, NULL);
    REFUSED(WW_INVALID_ARGUMENT, query_stride, DIM - 1);
    REFUSED(WW_INVALID_ARGUMENT, mask_rows, -1);
    REFUSED(WW_INVALID_ARGUMENT, struct_size, 0);
    /* What only another mode reads, or has no place in the buffers, is not passed over in silence. */
    REFUSED(WW_INVALID_ARGUMENT, bound, 0.5f);
    REFUSED(WW_INVALID_ARGUMENT, limit, 1);
    REFUSED(WW_INVALID_ARGUMENT, fetch, WW_FETCH_IDS);
    REFUSED(WW_INVALID_ARGUMENT, mode, (ww_query_mode)2);
    REFUSED(WW_INVALID_ARGUMENT, where, "id = 'a'");
    ww_query range = good;
    range.mode = WW_QUERY_RANGE;
    range.k = 0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(s.collection, &range, rows, scores));
    assert_string_equal(ww_error_message(), "ww_collection_search: a search into buffers finds the nearest k, not ranges");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(s.collection, &good, NULL, scores));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(s.collection, &good, rows, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(s.collection, NULL, rows, scores));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(NULL, &good, rows, scores));
    const float bad[] = {NAN, INFINITY, -INFINITY, 1.9e19f};
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        query[2 * DIM - 1] = bad[b];
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(s.collection, &good, rows, scores));
        assert_non_null(strstr(ww_error_message(), isfinite(bad[b]) ? "query 1: its values" : "query 1: column 69"));
    }
    query[2 * DIM - 1] = 1.8e19f; /* its square is finite still */
    CHECK_OK(ww_collection_search(s.collection, &good, rows, scores));
    strike(&s);
}

static void lookups_of_missing_rows(void **state)
{
    stage s = set(state);
    int64_t row = 7;
    char text[32];
    float vector[DIM];
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(s.collection, "nobody", &row));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(s.collection, "", &row));
    assert_int_equal(row, 7);
    static const int64_t rows[] = {-1, 40, BASE, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_FAILS(WW_NOT_FOUND, ww_collection_vector(s.collection, rows[i], vector));
        CHECK_FAILS(WW_NOT_FOUND, ww_collection_id(s.collection, rows[i], text, sizeof text, NULL));
        CHECK_FAILS(WW_NOT_FOUND, ww_collection_payload(s.collection, rows[i], text, sizeof text, NULL));
    }
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_find(NULL, "a", &row));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_find(s.collection, NULL, &row));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_find(s.collection, "a0", NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_vector(s.collection, 0, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_vector(NULL, 0, vector));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_id(s.collection, 0, NULL, 5, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_id(NULL, 0, text, 8, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_payload(s.collection, 0, NULL, 5, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_payload(NULL, 0, text, 8, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_describe(s.collection, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_compact(NULL, NULL, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_clear(NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_reserve(NULL, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_remove(NULL, NULL, 0));
    assert_int_equal(ww_collection_count(NULL), 0);
    strike(&s);
}

static void collections_that_cannot_be(void **state)
{
    ww_collection *c = (ww_collection *)1;
    ww_collection_config config = ww_collection_config_default();
    static const int32_t dims[] = {0, -1, WW_DIM_MAX + 1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        config.dim = dims[i];
        CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_create(*state, &config, &c));
    }
    config.dim = 4;
    config.metric = (ww_metric)3;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_create(*state, &config, &c));
    config.metric = WW_DOT;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_create(NULL, &config, &c));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_create(*state, NULL, &c));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_create(*state, &config, NULL));
    config.struct_size = 3;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_create(*state, &config, &c));
    assert_ptr_equal(c, (ww_collection *)1);
}

static void the_largest_dimension_works(void **state)
{
    const int32_t dim = WW_DIM_MAX;
    test_random random = {3};
    ww_collection *c = collection_make(*state, dim, WW_L2);
    test_rows rows = test_rows_make(&random, 2, dim, "big", 0);
    CHECK_OK(ww_collection_add(c, &rows.rows));
    check_search(c, rows.vectors, 1, 0, 3, NULL, 0);
    test_rows_free(&rows);
    ww_collection_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_that_are_not_finite),
        cmocka_unit_test(a_norm_that_overflows_only_in_sum),
        cmocka_unit_test(bad_ids),
        cmocka_unit_test(an_id_of_256_bytes_is_good),
        cmocka_unit_test(duplicate_ids_inside_a_batch),
        cmocka_unit_test(an_upsert_that_fails_late_gives_replaced_rows_back),
        cmocka_unit_test(a_duplicate_id_against_the_store),
        cmocka_unit_test(payloads_that_are_not_json),
        cmocka_unit_test(another_dimension),
        cmocka_unit_test(counts_strides_and_null_pointers),
        cmocka_unit_test(searches_that_cannot_be),
        cmocka_unit_test(lookups_of_missing_rows),
        cmocka_unit_test(collections_that_cannot_be),
        cmocka_unit_test(the_largest_dimension_works),
    };
    return RUN_ON_EVERY_DEVICE("collection refusals", tests);
}
