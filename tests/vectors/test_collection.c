/* Collections: what goes in comes out, bit for bit, by row, by id and in order. */
#include <stdlib.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"

static ww_collection_info describe(ww_collection *c)
{
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(c, &info));
    return info;
}

static void metrics_have_names(void **state)
{
    (void)state;
    assert_string_equal(ww_metric_name(WW_COSINE), "cosine");
    assert_string_equal(ww_metric_name(WW_L2), "l2");
    assert_string_equal(ww_metric_name(WW_DOT), "dot");
    assert_null(ww_metric_name((ww_metric)3));
    assert_null(ww_metric_name((ww_metric)-1));
}

static void an_empty_collection_describes_itself(void **state)
{
    ww_collection *c = collection_make(*state, 100, WW_L2);
    const ww_collection_info info = describe(c);
    assert_int_equal(info.dim, 100);
    assert_int_equal(info.metric, WW_L2);
    assert_int_equal(info.rows_live + info.rows_removed + info.rows_capacity + info.segments, 0);
    assert_int_equal(info.bytes_rows + info.bytes_ids + info.bytes_payloads, 0);
    assert_true(strlen(info.device) > 0);
    assert_int_equal(ww_collection_count(c), 0);
    assert_int_equal(ww_collection_next(c, -1), -1);
    ww_collection_destroy(c);
    ww_collection_destroy(NULL);
}

static void check_row(ww_collection *c, const test_rows *rows, int64_t number, int64_t row, int32_t dim)
{
    char text[WW_ID_BYTES_MAX + 1];
    size_t length = 0;
    int64_t found = -1;
    float *vector = malloc((size_t)dim * sizeof *vector);
    CHECK_OK(ww_collection_find(c, rows->ids[number], &found));
    assert_int_equal(found, row);
    CHECK_OK(ww_collection_vector(c, row, vector));
    assert_memory_equal(vector, rows->vectors + number * dim, (size_t)dim * sizeof *vector);
    CHECK_OK(ww_collection_id(c, row, text, sizeof text, &length));
    assert_string_equal(text, rows->ids[number]);
    assert_int_equal(length, strlen(text));
    CHECK_OK(ww_collection_payload(c, row, text, sizeof text, &length));
    assert_string_equal(text, rows->payloads[number] ? rows->payloads[number] : "");
    assert_int_equal(length, strlen(text));
    free(vector);
}

static void rows_are_read_back_unchanged(void **state)
{
    static const int32_t dims[] = {1, 3, 63, 64, 65, 130};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        test_random random = {d + 1};
        ww_collection *c = collection_make(*state, dims[d], WW_COSINE);
        test_rows rows = test_rows_make(&random, 150, dims[d], "id-", 0);
        rows.vectors[0] = -0.0f;
        rows.vectors[dims[d] - 1] = 1e-42f; /* denormal */
        CHECK_OK(ww_collection_add(c, &rows.rows));
        assert_int_equal(ww_collection_count(c), 150);
        for (int64_t i = 0; i < 150; i++)
            check_row(c, &rows, i, i, dims[d]);
        test_rows_free(&rows);
        ww_collection_destroy(c);
    }
}

static void rows_may_have_gaps(void **state)
{
    enum { DIM = 5, STRIDE = 9, COUNT = 70 };
    float vectors[COUNT * STRIDE], back[DIM];
    for (int i = 0; i < COUNT * STRIDE; i++)
        vectors[i] = i % STRIDE < DIM ? (float)i : 1e30f * 1e30f; /* what lies between is not looked at */
    ww_collection *c = collection_make(*state, DIM, WW_DOT);
    ww_rows rows = ww_rows_default();
    rows.count = COUNT;
    rows.dim = DIM;
    rows.vectors = vectors;
    rows.row_stride = STRIDE;
    CHECK_OK(ww_collection_add(c, &rows));
    for (int64_t i = 0; i < COUNT; i++) {
        CHECK_OK(ww_collection_vector(c, i, back));
        assert_memory_equal(back, vectors + i * STRIDE, sizeof back);
    }
    ww_collection_destroy(c);
}

static void without_ids_the_row_number_is_the_id(void **state)
{
    static float vectors[1100];
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    ww_rows rows = ww_rows_default();
    rows.dim = 1;
    rows.vectors = vectors;
    rows.count = 1000;
    CHECK_OK(ww_collection_add(c, &rows));
    rows.count = 100;
    CHECK_OK(ww_collection_add(c, &rows));
    char text[32], expected[32];
    int64_t row;
    for (int64_t i = 0; i < 1100; i++) {
        snprintf(expected, sizeof expected, "%lld", (long long)i);
        CHECK_OK(ww_collection_id(c, i, text, sizeof text, NULL));
        assert_string_equal(text, expected);
        CHECK_OK(ww_collection_find(c, expected, &row));
        assert_int_equal(row, i);
    }
    ww_collection_destroy(c);
}

static void adding_nothing_is_no_error(void **state)
{
    ww_collection *c = collection_make(*state, 4, WW_DOT);
    ww_rows rows = ww_rows_default();
    rows.dim = 4;
    CHECK_OK(ww_collection_add(c, &rows));
    CHECK_OK(ww_collection_upsert(c, &rows));
    CHECK_OK(ww_collection_remove(c, NULL, 0));
    assert_int_equal(ww_collection_count(c), 0);
    ww_collection_destroy(c);
}

static void ids_of_every_length_are_distinguished(void **state)
{
    enum { COUNT = WW_ID_BYTES_MAX };
    static char texts[COUNT][WW_ID_BYTES_MAX + 1];
    const char *ids[COUNT];
    static float vectors[COUNT];
    for (int i = 0; i < COUNT; i++) {
        memset(texts[i], 'x', (size_t)i + 1); /* each is the beginning of the next */
        ids[i] = texts[i];
        vectors[i] = (float)i;
    }
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    ww_rows rows = ww_rows_default();
    rows.count = COUNT;
    rows.dim = 1;
    rows.vectors = vectors;
    rows.ids = ids;
    CHECK_OK(ww_collection_add(c, &rows));
    for (int i = 0; i < COUNT; i++) {
        int64_t row = -1;
        char text[WW_ID_BYTES_MAX + 1];
        CHECK_OK(ww_collection_find(c, texts[i], &row));
        assert_int_equal(row, i);
        CHECK_OK(ww_collection_id(c, row, text, sizeof text, NULL));
        assert_string_equal(text, texts[i]);
    }
    ww_collection_destroy(c);
}

static void a_text_that_does_not_fit_says_its_length(void **state)
{
    test_random random = {1};
    ww_collection *c = collection_make(*state, 2, WW_DOT);
    collection_fill(c, &random, 2, 2, "name", 10);
    char text[8] = "before";
    size_t length = 0;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_id(c, 0, text, 6, &length));
    assert_int_equal(length, 6);
    assert_string_equal(text, "before");
    CHECK_OK(ww_collection_id(c, 0, text, 7, NULL));
    assert_string_equal(text, "name10");
    CHECK_OK(ww_collection_id(c, 0, NULL, 0, &length));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_payload(c, 0, text, 3, &length));
    assert_int_equal(length, strlen("{\"n\": 10}"));
    CHECK_OK(ww_collection_payload(c, 1, text, 1, &length));
    assert_int_equal(length, 0);
    assert_string_equal(text, "");
    ww_collection_destroy(c);
}

static void payloads_of_any_size_and_kind_are_kept_as_they_came(void **state)
{
    enum { LARGE = 3000000 };
    char *large = malloc(LARGE + 1);
    memset(large, ' ', LARGE);
    large[0] = '[';
    large[LARGE - 1] = ']';
    large[LARGE] = '\0';
    const char *payloads[] = {"{\"a\": 1, \"a\": 2}",
                              "  [1, 2 ,3]\n",
                              "\"text \\u0000 with a NUL, \xc3\xa4\"",
                              "123456789012345678901234567890",
                              "null",
                              "true",
                              NULL,
                              large};
    enum { COUNT = sizeof payloads / sizeof *payloads };
    float vectors[COUNT] = {0};
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    ww_rows rows = ww_rows_default();
    rows.count = COUNT;
    rows.dim = 1;
    rows.vectors = vectors;
    rows.payloads = payloads;
    CHECK_OK(ww_collection_add(c, &rows));
    char *back = malloc(LARGE + 1);
    for (int i = 0; i < COUNT; i++) {
        CHECK_OK(ww_collection_payload(c, i, back, LARGE + 1, NULL));
        assert_string_equal(back, payloads[i] ? payloads[i] : "");
    }
    assert_true(describe(c).bytes_payloads > LARGE);
    free(back);
    free(large);
    ww_collection_destroy(c);
}

static void growing_row_by_row_keeps_the_existing_rows(void **state)
{
    enum { DIM = 3, COUNT = 700 };
    test_random random = {5};
    ww_collection *c = collection_make(*state, DIM, WW_L2);
    test_rows all = test_rows_make(&random, COUNT, DIM, "r", 0);
    for (int64_t i = 0; i < COUNT; i++) {
        ww_rows one = all.rows;
        one.count = 1;
        one.vectors += i * DIM;
        one.ids += i;
        one.payloads += i;
        CHECK_OK(ww_collection_add(c, &one));
    }
    const ww_collection_info info = describe(c);
    assert_int_equal(info.rows_live, COUNT);
    assert_int_equal(info.segments, 11); /* of 64 rows each */
    assert_int_equal(info.rows_capacity, 704);
    for (int64_t i = 0; i < COUNT; i++)
        check_row(c, &all, i, i, DIM);
    test_rows_free(&all);
    ww_collection_destroy(c);
}

static void a_large_collection_grows_by_a_part_of_itself(void **state)
{
    enum { COUNT = 6400 };
    static float vectors[COUNT];
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    ww_rows rows = ww_rows_default();
    rows.count = COUNT;
    rows.dim = 1;
    rows.vectors = vectors;
    CHECK_OK(ww_collection_add(c, &rows));
    assert_int_equal(describe(c).rows_capacity, COUNT); /* a batch gets what it needs */
    rows.count = 1;
    CHECK_OK(ww_collection_add(c, &rows));
    assert_int_equal(describe(c).segments, 2);
    assert_int_equal(describe(c).rows_capacity, COUNT + 256); /* a 32nd, in words of 64 */
    ww_collection_destroy(c);
}

static void reserved_room_is_used_before_more_is_made(void **state)
{
    test_random random = {6};
    ww_collection *c = collection_make(*state, 8, WW_DOT);
    CHECK_OK(ww_collection_reserve(c, 1000));
    const ww_collection_info reserved = describe(c);
    assert_true(reserved.rows_capacity >= 1000);
    assert_int_equal(reserved.segments, 1);
    assert_int_equal(reserved.rows_live, 0);
    for (int i = 0; i < 10; i++)
        collection_fill(c, &random, 100, 8, "", i * 100);
    assert_int_equal(describe(c).segments, 1);
    assert_int_equal(describe(c).bytes_rows, reserved.bytes_rows);
    CHECK_OK(ww_collection_reserve(c, 10));
    assert_int_equal(describe(c).segments, 1);
    const char *gone[] = {"3", "4", "5"};
    CHECK_OK(ww_collection_remove(c, gone, 3));
    CHECK_OK(ww_collection_reserve(c, 1100)); /* live rows, beside the removed */
    const int64_t segments = describe(c).segments;
    collection_fill(c, &random, 103, 8, "", 1000);
    assert_int_equal(describe(c).segments, segments);
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_reserve(c, WW_ROWS_MAX + 1));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_reserve(c, -1));
    ww_collection_destroy(c);
}

static void next_visits_live_rows_in_order(void **state)
{
    test_random random = {7};
    ww_collection *c = collection_make(*state, 2, WW_DOT);
    for (int i = 0; i < 4; i++)
        collection_fill(c, &random, 64, 2, "", i * 64);
    char text[32];
    for (int i = 0; i < 256; i++) { /* leaves 0, 63, 64 and 200: across words and segments, with an empty one between */
        const char *id = text;
        snprintf(text, sizeof text, "%d", i);
        if (i != 0 && i != 63 && i != 64 && i != 200)
            CHECK_OK(ww_collection_remove(c, &id, 1));
    }
    assert_int_equal(ww_collection_next(c, -1), 0);
    assert_int_equal(ww_collection_next(c, 0), 63);
    assert_int_equal(ww_collection_next(c, 63), 64);
    assert_int_equal(ww_collection_next(c, 64), 200);
    assert_int_equal(ww_collection_next(c, 200), -1);
    assert_int_equal(ww_collection_next(c, 100000), -1);
    assert_int_equal(ww_collection_next(NULL, -1), -1);
    ww_collection_destroy(c);
}

static void clearing_frees_the_memory_and_the_collection_can_be_filled_again(void **state)
{
    test_random random = {8};
    ww_collection *c = collection_make(*state, 16, WW_DOT);
    snapshot empty = snapshot_take(c);
    collection_fill(c, &random, 300, 16, "a", 0);
    CHECK_OK(ww_collection_clear(c));
    check_unchanged(c, &empty);
    collection_fill(c, &random, 20, 16, "a", 0);
    assert_int_equal(ww_collection_count(c), 20);
    int64_t row;
    CHECK_OK(ww_collection_find(c, "a0", &row));
    assert_int_equal(row, 0);
    ww_collection_destroy(c);
}

static void memory_stays_within_a_twentieth_of_rows_and_ids(void **state)
{
    const int64_t count = device_is_slow(*state) ? 2000 : 50000;
    test_random random = {9};
    ww_collection *c = collection_make(*state, 128, WW_DOT);
    test_rows rows = test_rows_make(&random, count, 128, "identifier-", 0);
    rows.rows.payloads = NULL;
    CHECK_OK(ww_collection_add(c, &rows.rows));
    int64_t ids = 0;
    for (int64_t i = 0; i < count; i++)
        ids += (int64_t)strlen(rows.ids[i]);
    const ww_collection_info info = describe(c);
    const double held = (double)(info.bytes_rows + info.bytes_ids + info.bytes_payloads);
    assert_true(held <= 1.05 * (double)(count * 512 + ids));
    assert_int_equal(info.bytes_payloads, 0);
    assert_true(info.bytes_rows >= count * (512 + 4));
    assert_true(info.bytes_ids >= ids + count * 7 && info.bytes_ids <= ids + count * 10);
    test_rows_free(&rows);
    ww_collection_destroy(c);
}

static void a_struct_of_an_older_program_is_understood(void **state)
{
    float vector = 2.0f;
    ww_collection *c = collection_make(*state, 1, WW_DOT);
    ww_rows rows = ww_rows_default();
    rows.struct_size = offsetof(ww_rows, row_stride); /* it ends there: the rest is at its default, whatever is in memory */
    rows.count = 1;
    rows.dim = 1;
    rows.vectors = &vector;
    rows.row_stride = -7;
    rows.ids = (const char *const *)1;
    CHECK_OK(ww_collection_add(c, &rows));
    ww_collection_info info;
    memset(&info, 0x55, sizeof info);
    info.struct_size = offsetof(ww_collection_info, rows_removed);
    CHECK_OK(ww_collection_describe(c, &info));
    assert_int_equal(info.rows_live, 1);
    assert_int_equal(info.rows_removed, 0x5555555555555555);
    ww_collection_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_have_names),
        cmocka_unit_test(an_empty_collection_describes_itself),
        cmocka_unit_test(rows_are_read_back_unchanged),
        cmocka_unit_test(rows_may_have_gaps),
        cmocka_unit_test(without_ids_the_row_number_is_the_id),
        cmocka_unit_test(adding_nothing_is_no_error),
        cmocka_unit_test(ids_of_every_length_are_distinguished),
        cmocka_unit_test(a_text_that_does_not_fit_says_its_length),
        cmocka_unit_test(payloads_of_any_size_and_kind_are_kept_as_they_came),
        cmocka_unit_test(growing_row_by_row_keeps_the_existing_rows),
        cmocka_unit_test(a_large_collection_grows_by_a_part_of_itself),
        cmocka_unit_test(reserved_room_is_used_before_more_is_made),
        cmocka_unit_test(next_visits_live_rows_in_order),
        cmocka_unit_test(clearing_frees_the_memory_and_the_collection_can_be_filled_again),
        cmocka_unit_test(memory_stays_within_a_twentieth_of_rows_and_ids),
        cmocka_unit_test(a_struct_of_an_older_program_is_understood),
    };
    return RUN_ON_EVERY_DEVICE("collection", tests);
}
