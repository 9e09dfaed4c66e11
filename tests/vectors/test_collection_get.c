/* Many rows at once: getting them by ids and handles, changing their payloads, and removing them. */
#include <stdlib.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"

enum { DIM = 20, ROWS = 150, FETCH_ALL = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS };

static ww_collection *filled(ww_device *device)
{
    test_random random = {51};
    ww_collection *c = collection_make(device, DIM, WW_COSINE);
    for (int64_t first = 0; first < ROWS; first += 50) /* several segments */
        collection_fill(c, &random, 50, DIM, "row", first);
    return c;
}

static void check_entry(ww_collection *c, const ww_results *results, int64_t i, const char *id)
{
    int64_t row = -1, handle = -1;
    char text[64];
    float vector[DIM];
    CHECK_OK(ww_collection_find(c, id, &row));
    CHECK_OK(ww_collection_handle(c, row, &handle));
    CHECK_OK(ww_collection_vector(c, row, vector));
    CHECK_OK(ww_collection_payload(c, row, text, sizeof text, NULL));
    assert_int_equal(ww_results_rows(results, 0)[i], row);
    assert_int_equal(ww_results_handles(results, 0)[i], handle);
    assert_true(ww_results_scores(results, 0)[i] == 0.0f);
    assert_string_equal(ww_results_id(results, 0, i), id);
    assert_memory_equal(ww_results_vector(results, 0, i), vector, sizeof vector);
    const char *payload = ww_results_payload(results, 0, i);
    assert_string_equal(payload ? payload : "", text);
}

static void check_missing(const ww_results *results, int64_t i)
{
    assert_int_equal(ww_results_rows(results, 0)[i], -1);
    assert_int_equal(ww_results_handles(results, 0)[i], -1);
    assert_null(ww_results_id(results, 0, i));
    assert_null(ww_results_payload(results, 0, i));
    assert_null(ww_results_vector(results, 0, i));
}

static void rows_come_in_the_order_of_the_list(void **state)
{
    enum { COUNT = 12 };
    const char *ids[COUNT] = {"row149", "row0", "row77", "nobody", "row77", "row3",
                              "row120", "row5", "",      "row64",  "row63", "row1"};
    const char *gone = "row5";
    int64_t handles[COUNT];
    ww_collection *c = filled(*state);
    for (int removed = 0; removed < 2; removed++) {
        ww_results *results = NULL;
        ww_get get = ww_get_default();
        get.count = COUNT;
        get.fetch = FETCH_ALL;
        get.ids = ids;
        CHECK_OK(ww_collection_get(c, &get, &results));
        assert_int_equal(ww_results_query_count(results), 1);
        assert_int_equal(ww_results_count(results, 0), COUNT);
        for (int i = 0; i < COUNT; i++) {
            if (i == 3 || i == 8 || (removed && i == 7))
                check_missing(results, i);
            else
                check_entry(c, results, i, ids[i]);
        }
        memcpy(handles, ww_results_handles(results, 0), sizeof handles);
        ww_results_destroy(results);
        get.ids = NULL;
        get.handles = handles;
        CHECK_OK(ww_collection_get(c, &get, &results));
        assert_int_equal(ww_results_count(results, 0), COUNT);
        for (int i = 0; i < COUNT; i++) {
            if (handles[i] < 0)
                check_missing(results, i);
            else
                check_entry(c, results, i, ids[i]);
        }
        ww_results_destroy(results);
        CHECK_OK(removed ? WW_OK : ww_collection_remove(c, &gone, 1));
        CHECK_OK(removed ? WW_OK : ww_collection_compact(c, NULL, NULL));
    }
    ww_collection_destroy(c);
}

/* A snapshot of all rows, by their handles and then in pieces, as a program reads rows while others write. */
static void without_a_list_all_rows_come_in_order(void **state)
{
    const char *gone[] = {"row0", "row70"};
    ww_collection *c = filled(*state);
    ww_results *all = NULL, *piece = NULL;
    CHECK_OK(ww_collection_remove(c, gone, 2));
    ww_get get = ww_get_default();
    get.count = WW_ROWS_MAX;
    CHECK_OK(ww_collection_get(c, &get, &all));
    assert_int_equal(ww_results_count(all, 0), ROWS - 2);
    int64_t row = -1;
    for (int64_t i = 0; i < ROWS - 2; i++) {
        row = ww_collection_next(c, row);
        assert_int_equal(ww_results_rows(all, 0)[i], row);
    }
    CHECK_OK(ww_collection_compact(c, NULL, NULL)); /* renumbers all of them */
    get.fetch = FETCH_ALL;
    get.count = 30;
    get.handles = ww_results_handles(all, 0) + 60;
    CHECK_OK(ww_collection_get(c, &get, &piece));
    for (int64_t i = 0; i < 30; i++) {
        char id[32];
        snprintf(id, sizeof id, "row%d", (int)(61 + i + (i >= 9)));
        check_entry(c, piece, i, id);
    }
    ww_results_destroy(piece);
    get.handles = NULL;
    get.count = 7;
    CHECK_OK(ww_collection_get(c, &get, &piece));
    assert_int_equal(ww_results_count(piece, 0), 7);
    check_entry(c, piece, 6, "row7");
    ww_results_destroy(piece);
    get.count = 0;
    CHECK_OK(ww_collection_get(c, &get, &piece));
    assert_int_equal(ww_results_count(piece, 0), 0);
    ww_results_destroy(piece);
    ww_results_destroy(all);
    ww_collection_destroy(c);
}

static void a_get_that_makes_no_sense_is_refused(void **state)
{
    const char *ids[] = {"row1", NULL};
    const int64_t handles[] = {1, 2};
    ww_collection *c = filled(*state);
    ww_results *const untouched = (ww_results *)&ids;
    ww_results *results = untouched;
    ww_get good = ww_get_default();
    good.ids = ids;
    good.count = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_get(NULL, &good, &results));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_get(c, NULL, &results));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_get(c, &good, NULL));
    ww_get get = good;
    get.count = -1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_get(c, &get, &results));
    get = good;
    get.count = 2;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_get(c, &get, &results));
    get = good;
    get.handles = handles;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_get(c, &get, &results));
    get = good;
    get.fetch = 64;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_get(c, &get, &results));
    get = good;
    get.struct_size = 3;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_get(c, &get, &results));
    get = good;
    get.count = INT64_MAX / 2; /* no list is that long, but first there is not enough memory for the answer */
    get.ids = NULL;
    get.handles = handles;
    CHECK_FAILS(WW_OUT_OF_MEMORY, ww_collection_get(c, &get, &results));
    assert_ptr_equal(results, untouched);
    ww_collection_destroy(c);
}

static void check_payload(ww_collection *c, const char *id, const char *expected)
{
    char text[64];
    int64_t row = -1;
    CHECK_OK(ww_collection_find(c, id, &row));
    CHECK_OK(ww_collection_payload(c, row, text, sizeof text, NULL));
    assert_string_equal(text, expected);
}

static void payloads_change_and_nothing_else(void **state)
{
    const char *ids[] = {"row0", "row1", "row3", "row149", "row1"};
    const char *payloads[] = {NULL, "[1]", "{\"longer\": \"than it was\"}", "null", "[2]"};
    int64_t rows[2], handle = -1;
    float before[DIM], after[DIM];
    ww_collection_info info[2] = {ww_collection_info_default(), ww_collection_info_default()};
    ww_collection *c = filled(*state);
    CHECK_OK(ww_collection_find(c, "row3", &rows[0]));
    CHECK_OK(ww_collection_vector(c, rows[0], before));
    CHECK_OK(ww_collection_describe(c, &info[0]));
    check_payload(c, "row0", "{\"n\": 0}");
    CHECK_OK(ww_collection_set_payloads(c, ids, payloads, 5));
    check_payload(c, "row0", "");
    check_payload(c, "row1", "[2]");
    check_payload(c, "row3", "{\"longer\": \"than it was\"}");
    check_payload(c, "row149", "null");
    check_payload(c, "row6", "{\"n\": 6}");
    CHECK_OK(ww_collection_find(c, "row3", &rows[1]));
    CHECK_OK(ww_collection_vector(c, rows[1], after));
    CHECK_OK(ww_collection_handle(c, rows[1], &handle));
    CHECK_OK(ww_collection_describe(c, &info[1]));
    assert_int_equal(rows[0], rows[1]);
    assert_int_equal(handle, 3);
    assert_memory_equal(before, after, sizeof before);
    const int64_t added = (int64_t)(strlen("[2]") + 1 + strlen(payloads[2]) - strlen("{\"n\": 3}") + strlen("null") + 1 -
                                    strlen("{\"n\": 0}") - 1);
    assert_int_equal(info[1].bytes_payloads - info[0].bytes_payloads, added);
    CHECK_OK(ww_collection_set_payloads(c, NULL, NULL, 0));
    ww_collection_destroy(c);
}

static void payloads_that_cannot_be_set_change_nothing(void **state)
{
    const char *ids[] = {"row0", "row1"};
    const char *absent[] = {"row0", "nobody"};
    const char *null[] = {"row0", NULL};
    const char *payloads[] = {"[1]", "[2]"};
    const char *wrong[] = {"[1]", "{"};
    ww_collection *c = filled(*state);
    snapshot before = snapshot_take(c);
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_set_payloads(c, absent, payloads, 2));
    assert_non_null(strstr(ww_error_message(), "'nobody'"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_set_payloads(c, ids, wrong, 2));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_set_payloads(c, null, payloads, 2));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_set_payloads(c, NULL, payloads, 2));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_set_payloads(c, ids, NULL, 2));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_set_payloads(c, ids, payloads, -1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_set_payloads(NULL, ids, payloads, 2));
    check_unchanged(c, &before);
    ww_collection_destroy(c);
}

static void discarding_counts_missing_ids(void **state)
{
    const char *ids[] = {"row1", "nobody", "row100", "row1", ""};
    const char *null[] = {"row2", NULL};
    int64_t missing = -7, row;
    ww_collection *c = filled(*state);
    snapshot before = snapshot_take(c);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_discard(NULL, ids, 5, &missing));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_discard(c, NULL, 5, &missing));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_discard(c, ids, -1, &missing));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_discard(c, null, 2, &missing));
    assert_int_equal(missing, -7);
    check_unchanged(c, &before);
    CHECK_OK(ww_collection_discard(c, ids, 5, &missing));
    assert_int_equal(missing, 3);
    assert_int_equal(ww_collection_count(c), ROWS - 2);
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(c, "row1", &row));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(c, "row100", &row));
    CHECK_OK(ww_collection_discard(c, ids, 5, &missing));
    assert_int_equal(missing, 5);
    CHECK_OK(ww_collection_discard(c, ids, 0, &missing));
    assert_int_equal(missing, 0);
    CHECK_OK(ww_collection_discard(c, ids, 5, NULL));
    assert_int_equal(ww_collection_count(c), ROWS - 2);
    ww_collection_destroy(c);
}

/* Rows without ids of the caller's are found and removed without a table. */
static void rows_with_automatic_ids_are_discarded_too(void **state)
{
    const char *ids[] = {"3", "149", "150", "3", "row3"};
    float vectors[ROWS] = {0};
    int64_t missing = -1;
    ww_rows rows = ww_rows_default();
    rows.count = ROWS;
    rows.dim = 1;
    rows.vectors = vectors;
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    CHECK_OK(ww_collection_add(c, &rows));
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_remove(c, (const char *[]){"3", "4", "3"}, 3));
    CHECK_OK(ww_collection_discard(c, ids, 5, &missing));
    assert_int_equal(missing, 3);
    assert_int_equal(ww_collection_count(c), ROWS - 2);
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_remove(c, ids, 1));
    ww_collection_destroy(c);
}

static void a_mask_that_does_not_say_how_many_rows_it_covers(void **state)
{
    const float query[DIM] = {1.0f};
    const uint64_t mask[3] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    int64_t row = -7;
    float score = 0;
    ww_collection_info info = ww_collection_info_default();
    ww_collection *c = filled(*state), *empty = collection_make(*state, DIM, WW_L2);
    ww_query search = ww_query_default();
    search.queries = query;
    search.query_count = 1;
    search.dim = DIM;
    search.k = 1;
    search.mask = mask;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(c, &search, &row, &score));
    assert_non_null(strstr(ww_error_message(), "mask_rows is 0; a mask over all rows has 150"));
    assert_int_equal(row, -7);
    ww_results *results = NULL;
    ww_query asked = ww_query_default();
    asked.queries = query;
    asked.query_count = 1;
    asked.dim = DIM;
    asked.k = 1;
    asked.mask = mask;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_query(c, &asked, &results));
    assert_null(results);
    CHECK_OK(ww_collection_search(empty, &search, &row, &score)); /* it covers all of its no rows */
    assert_int_equal(row, -1);
    const char *gone = "row149";
    CHECK_OK(ww_collection_remove(c, &gone, 1));
    CHECK_OK(ww_collection_describe(c, &info));
    assert_int_equal(info.mask_rows, ROWS); /* a removed row has its place until it is compacted */
    search.mask_rows = info.mask_rows;
    CHECK_OK(ww_collection_search(c, &search, &row, &score));
    assert_true(row >= 0);
    ww_collection_destroy(empty);
    ww_collection_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_in_the_order_of_the_list),
        cmocka_unit_test(without_a_list_all_rows_come_in_order),
        cmocka_unit_test(a_get_that_makes_no_sense_is_refused),
        cmocka_unit_test(payloads_change_and_nothing_else),
        cmocka_unit_test(payloads_that_cannot_be_set_change_nothing),
        cmocka_unit_test(discarding_counts_missing_ids),
        cmocka_unit_test(rows_with_automatic_ids_are_discarded_too),
        cmocka_unit_test(a_mask_that_does_not_say_how_many_rows_it_covers),
    };
    return RUN_ON_EVERY_DEVICE("many rows at once", tests);
}
