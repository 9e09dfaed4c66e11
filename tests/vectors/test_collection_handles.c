/* Handles, which name rows for good, and automatic ids, which are handles in decimal. */
#include <stdlib.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"

enum { NAMES = 300, HANDLES_MAX = 1 << 16 };

/* The known state of each name: its handle while it exists, otherwise -1. */
typedef struct model {
    ww_collection *collection;
    test_random random;
    int64_t handles[NAMES];
    int64_t rows_live;
    bool was_given[HANDLES_MAX];
} model;

static void add_rows(ww_collection *c, const char *const *ids, int64_t count, bool upsert)
{
    float *vectors = calloc((size_t)count, sizeof *vectors);
    ww_rows rows = ww_rows_default();
    rows.count = count;
    rows.dim = 1;
    rows.vectors = vectors;
    rows.ids = ids;
    CHECK_OK(upsert ? ww_collection_upsert(c, &rows) : ww_collection_add(c, &rows));
    free(vectors);
}

static int64_t handle_of(ww_collection *c, const char *id)
{
    int64_t row = -1, handle = -1, back = -1;
    CHECK_OK(ww_collection_find(c, id, &row));
    CHECK_OK(ww_collection_handle(c, row, &handle));
    CHECK_OK(ww_collection_find_handle(c, handle, &back));
    assert_int_equal(back, row);
    return handle;
}

/* Upserts some names: existing ones keep their handle, the others get a new one that was never used. */
static void upsert_some(model *m, bool only_new)
{
    char texts[NAMES][32];
    const char *ids[NAMES];
    const int64_t first = (int64_t)random_below(&m->random, NAMES), most = 1 + (int64_t)random_below(&m->random, 90);
    int64_t count = 0;
    for (int64_t n = first; n < NAMES && count < most; n++)
        if (!only_new || m->handles[n] < 0) {
            snprintf(texts[count], sizeof texts[count], "n%lld", (long long)n);
            ids[count] = texts[count];
            count++;
        }
    if (count == 0)
        return;
    add_rows(m->collection, ids, count, !only_new);
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = strtoll(ids[i] + 1, NULL, 10), handle = handle_of(m->collection, ids[i]);
        if (m->handles[n] >= 0) {
            assert_int_equal(handle, m->handles[n]);
            continue;
        }
        assert_in_range(handle, 0, HANDLES_MAX - 1);
        assert_false(m->was_given[handle]);
        m->was_given[handle] = true;
        m->handles[n] = handle;
        m->rows_live++;
    }
}

static void remove_some(model *m)
{
    for (int64_t i = (int64_t)random_below(&m->random, 30); i > 0; i--) {
        const int64_t n = (int64_t)random_below(&m->random, NAMES);
        char text[32];
        const char *id = text;
        int64_t row;
        snprintf(text, sizeof text, "n%lld", (long long)n);
        if (m->handles[n] < 0)
            continue;
        CHECK_OK(ww_collection_remove(m->collection, &id, 1));
        CHECK_FAILS(WW_NOT_FOUND, ww_collection_find_handle(m->collection, m->handles[n], &row));
        m->handles[n] = -1;
        m->rows_live--;
    }
}

static void check_all(model *m)
{
    assert_int_equal(ww_collection_count(m->collection), m->rows_live);
    for (int64_t n = 0; n < NAMES; n++) {
        char id[32];
        snprintf(id, sizeof id, "n%lld", (long long)n);
        if (m->handles[n] >= 0)
            assert_int_equal(handle_of(m->collection, id), m->handles[n]);
    }
}

static void handles_stay_through_everything(void **state)
{
    model *m = calloc(1, sizeof *m);
    m->collection = collection_make(*state, 1, WW_DOT);
    m->random = (test_random){31};
    memset(m->handles, -1, sizeof m->handles);
    for (int round = 0; round < (device_is_slow(*state) ? 25 : 200); round++) {
        const uint64_t kind = random_below(&m->random, 10);
        if (kind < 6)
            upsert_some(m, kind < 3);
        else if (kind < 8)
            remove_some(m);
        else if (kind == 8)
            CHECK_OK(ww_collection_compact(m->collection, NULL, NULL));
        else if (random_below(&m->random, 8) == 0) {
            CHECK_OK(ww_collection_clear(m->collection));
            memset(m->handles, -1, sizeof m->handles);
            m->rows_live = 0;
        }
        check_all(m);
    }
    ww_collection_destroy(m->collection);
    free(m);
}

static void handles_stay_when_a_collection_moves(void **state)
{
    const char *ids[] = {"a", "b", "c", "d"};
    const char *again[] = {"b"};
    ww_device *device = NULL;
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    add_rows(c, ids, 4, false);
    add_rows(c, again, 1, true);
    CHECK_OK(ww_collection_remove(c, ids, 1));
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_collection_move(c, device));
    for (int i = 1; i < 4; i++)
        assert_int_equal(handle_of(c, ids[i]), i);
    add_rows(c, ids, 1, false);
    assert_int_equal(handle_of(c, "a"), 4); /* a name that is removed and added again is new */
    ww_collection_destroy(c);
    ww_device_close(device);
}

/* What costs nothing: rows that were added, with ids or without, and rows without ids of which some were removed. */
static void handles_cost_nothing_while_rows_follow_one_another(void **state)
{
    const char *ids[] = {"a", "b", "c"};
    const char *third = "2";
    ww_collection_info info = ww_collection_info_default();
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    add_rows(c, NULL, 1000, false);
    CHECK_OK(ww_collection_remove(c, &third, 1));
    CHECK_OK(ww_collection_describe(c, &info));
    const int64_t bytes = info.bytes_ids;
    assert_int_equal(info.bytes_handles, 0);
    assert_true(bytes < 2000);
    assert_int_equal(info.mask_rows, 1000);
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    CHECK_OK(ww_collection_describe(c, &info));
    assert_true(info.bytes_ids <= bytes);
    assert_true(info.bytes_handles > 0 && info.bytes_handles <= 512); /* one page of 64 has a gap */
    assert_int_equal(info.mask_rows, 999);
    CHECK_OK(ww_collection_clear(c));
    add_rows(c, ids, 3, false);
    CHECK_OK(ww_collection_describe(c, &info));
    assert_int_equal(info.bytes_handles, 0);
    ww_collection_destroy(c);
}

static void automatic_ids_are_never_given_twice(void **state)
{
    const char *second = "1", *last = "3";
    int64_t row = -1;
    ww_device *device = NULL;
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    add_rows(c, NULL, 4, false);
    CHECK_OK(ww_collection_remove(c, &second, 1));
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    add_rows(c, NULL, 1, false); /* row 3 again, and "3" is taken */
    assert_int_equal(ww_collection_count(c), 4);
    CHECK_OK(ww_collection_find(c, "4", &row));
    assert_int_equal(row, 3);
    CHECK_OK(ww_collection_remove(c, &last, 1));
    CHECK_OK(ww_collection_clear(c));
    add_rows(c, NULL, 1, true);
    CHECK_OK(ww_collection_find(c, "5", &row));
    assert_int_equal(row, 0);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_collection_move(c, device));
    add_rows(c, NULL, 1, false);
    CHECK_OK(ww_collection_find(c, "6", &row));
    assert_int_equal(row, 1);
    ww_collection_destroy(c);
    ww_device_close(device);
}

/* The last page is begun, its handles follow one another, and the next one does not follow them: the last row was removed. */
static void a_handle_that_went_with_the_last_row_is_not_given_to_the_next(void **state)
{
    for (int64_t rows = 2; rows <= 66; rows += 64) {
        ww_collection *c = collection_make(*state, 1, WW_L2);
        char last[32], next[32];
        add_rows(c, NULL, rows, false);
        snprintf(last, sizeof last, "%lld", (long long)(rows - 1));
        snprintf(next, sizeof next, "%lld", (long long)rows);
        CHECK_OK(ww_collection_remove(c, (const char *const[]){last}, 1));
        CHECK_OK(ww_collection_compact(c, NULL, NULL));
        add_rows(c, NULL, 2, false);
        int64_t row;
        CHECK_FAILS(WW_NOT_FOUND, ww_collection_find(c, last, &row));
        assert_int_equal(handle_of(c, next), rows);
        CHECK_OK(ww_collection_find(c, next, &row));
        assert_int_equal(row, rows - 1);
        assert_int_equal(handle_of(c, "0"), 0);
        ww_collection_destroy(c);
    }
}

static void numbers_that_the_caller_took_are_left_out(void **state)
{
    const char *taken[] = {"2", "4", "100", "9223372036854775807", "9223372036854775808", "007"};
    const char *const left[] = {"6", "7", "8"};
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    add_rows(c, taken, 6, false);
    add_rows(c, NULL, 3, false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(handle_of(c, left[i]), 6 + i);
    add_rows(c, NULL, 200, false);
    assert_int_equal(ww_collection_count(c), 209);
    assert_int_equal(handle_of(c, "100"), 2); /* the caller's */
    assert_int_equal(handle_of(c, "99"), 99);
    assert_int_equal(handle_of(c, "101"), 101);
    ww_collection_destroy(c);
}

static void no_message_recommends_replacing_a_row_with_an_automatic_id(void **state)
{
    const char *id = "1", *name = "name";
    const float vector = 1.0f;
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = 1;
    rows.vectors = &vector;
    rows.ids = &id;
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    add_rows(c, NULL, 2, false);
    add_rows(c, &name, 1, false);
    snapshot before = snapshot_take(c);
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_add(c, &rows));
    assert_null(strstr(ww_error_message(), "upsert"));
    rows.ids = &name;
    CHECK_FAILS(WW_DUPLICATE_ID, ww_collection_add(c, &rows));
    assert_non_null(strstr(ww_error_message(), "upsert"));
    check_unchanged(c, &before);
    ww_collection_destroy(c);
}

static void refusals(void **state)
{
    const char *first = "0";
    int64_t number = -7;
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find_handle(c, 0, &number));
    add_rows(c, NULL, 3, false);
    CHECK_OK(ww_collection_remove(c, &first, 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_handle(NULL, 0, &number));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_handle(c, 1, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_find_handle(NULL, 0, &number));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_find_handle(c, 1, NULL));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_handle(c, 0, &number));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_handle(c, 3, &number));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_handle(c, -1, &number));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find_handle(c, 0, &number));
    assert_non_null(strstr(ww_error_message(), "was removed"));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find_handle(c, 3, &number));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find_handle(c, -1, &number));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find_handle(c, INT64_MAX, &number));
    CHECK_FAILS(WW_NOT_FOUND, ww_collection_find_handle(c, INT64_MIN, &number));
    assert_int_equal(number, -7);
    ww_collection_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_stay_through_everything),
        cmocka_unit_test(handles_stay_when_a_collection_moves),
        cmocka_unit_test(handles_cost_nothing_while_rows_follow_one_another),
        cmocka_unit_test(automatic_ids_are_never_given_twice),
        cmocka_unit_test(a_handle_that_went_with_the_last_row_is_not_given_to_the_next),
        cmocka_unit_test(numbers_that_the_caller_took_are_left_out),
        cmocka_unit_test(no_message_recommends_replacing_a_row_with_an_automatic_id),
        cmocka_unit_test(refusals),
    };
    return RUN_ON_EVERY_DEVICE("handles", tests);
}
