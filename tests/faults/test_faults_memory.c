/* Out of memory, at every allocation of every call in turn: a status and a message, nothing leaked, nothing changed. */
#include <string.h>

#include "support/calls/calls.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"

enum { ATTEMPTS_MAX = 5000 };

static void check_failure(const char *name, int64_t n, ww_status status, int64_t blocks)
{
    if (status != WW_OUT_OF_MEMORY)
        fail_msg("%s, allocation %lld: %s", name, (long long)n, ww_status_name(status));
    if (!strstr(ww_error_message(), "asked"))
        fail_msg("%s, allocation %lld: '%s' does not say what was asked", name, (long long)n, ww_error_message());
    if (blocks_held() != blocks)
        fail_msg("%s, allocation %lld: %lld blocks more than before", name, (long long)n, (long long)(blocks_held() - blocks));
}

/* A device's first search creates what later ones reuse, such as modules. That is not a leak. */
static void let_the_device_take_what_it_keeps(ww_device *device, ww_vector_type type)
{
    ww_collection *c = collection_for_calls_of(device, type);
    for (const collection_call *call = collection_calls; call->name; call++)
        if (type == WW_VECTOR_F32 || call->by_type)
            assert_int_equal(call->call(c), WW_OK);
    ww_collection_destroy(c);
}

static void survive_every_allocation(ww_device *device, ww_vector_type type)
{
    for (const collection_call *call = collection_calls; call->name; call++) {
        if (type != WW_VECTOR_F32 && !call->by_type)
            continue;
        CHECK_OK(ww_device_trim(device)); /* which a call that finds no memory does, too */
        const int64_t at_first = blocks_held();
        ww_collection *c = collection_for_calls_of(device, type);
        snapshot before = snapshot_take(c);
        int64_t n = 1;
        for (; n < ATTEMPTS_MAX; n = fault_next(n)) {
            const int64_t blocks = blocks_held();
            fail_allocation_at(n);
            const ww_status status = call->call(c);
            fail_allocation_at(0);
            if (status == WW_OK)
                break;
            check_failure(call->name, n, status, blocks);
            snapshot now = snapshot_take(c);
            if (!snapshot_equal(&before, &now))
                fail_msg("%s, allocation %lld: the collection has changed", call->name, (long long)n);
            snapshot_free(&now);
        }
        if (call->needs_memory && n == 1)
            fail_msg("%s: no allocation was made to fail", call->name);
        snapshot_free(&before);
        ww_collection_destroy(c);
        CHECK_OK(ww_device_trim(device));
        assert_int_equal(blocks_held(), at_first);
    }
}

static void every_call_survives_a_failure_of_every_allocation(void **state)
{
    let_the_device_take_what_it_keeps(*state, WW_VECTOR_F32);
    let_the_device_take_what_it_keeps(*state, WW_VECTOR_F16);
    survive_every_allocation(*state, WW_VECTOR_F32);
    survive_every_allocation(*state, WW_VECTOR_F16);
}

static void making_a_collection_survives_a_failure_of_every_allocation(void **state)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "faulty";
    config.dim = 3;
    const int64_t blocks = blocks_held();
    int64_t n = 1;
    for (; n < ATTEMPTS_MAX; n++) {
        ww_collection *c = NULL;
        fail_allocation_at(n);
        const ww_status status = ww_collection_create(*state, &config, &c);
        fail_allocation_at(0);
        if (status == WW_OK) {
            ww_collection_destroy(c);
            break;
        }
        check_failure("create", n, status, blocks);
        assert_null(c);
    }
    assert_true(n > 3);
    assert_int_equal(blocks_held(), blocks);
}

/* One row after the other, each add failing once at another allocation: at the end all rows are in the collection. */
static void an_add_that_failed_can_be_made_again(void **state)
{
    enum { DIM = 4, COUNT = 150 };
    test_random random = {1};
    ww_collection *c = collection_make(*state, DIM, WW_DOT);
    test_rows rows = test_rows_make(&random, COUNT, DIM, "again", 0);
    for (int64_t i = 0; i < COUNT; i++) {
        ww_rows one = rows.rows;
        one.count = 1;
        one.vectors += i * DIM;
        one.ids += i;
        one.payloads += i;
        fail_allocation_at(1 + i % 5);
        const ww_status status = ww_collection_add(c, &one);
        fail_allocation_at(0);
        if (status != WW_OK)
            CHECK_OK(ww_collection_add(c, &one));
    }
    for (int64_t i = 0; i < COUNT; i++) {
        float vector[DIM];
        int64_t row = -1;
        CHECK_OK(ww_collection_find(c, rows.ids[i], &row));
        assert_int_equal(row, i);
        CHECK_OK(ww_collection_vector(c, row, vector));
        assert_memory_equal(vector, rows.vectors + i * DIM, sizeof vector);
    }
    check_search(c, rows.vectors, 2, 0, COUNT, NULL, 0);
    test_rows_free(&rows);
    ww_collection_destroy(c);
}

/* Rows of 256 KiB, so that a segment has 1024: the first two of three segments exist when the third cannot be made. */
static void segments_made_before_a_failing_one_are_freed(void **state)
{
    if (device_is_slow(*state)) {
        printf("SKIP: an emulated device would fill a gibibyte of memory\n");
        skip();
    }
    ww_collection *c = collection_make(*state, WW_DIM_MAX, WW_DOT);
    snapshot before = snapshot_take(c);
    const int64_t blocks = blocks_held();
    int64_t n = 1;
    for (; n < ATTEMPTS_MAX; n++) {
        fail_allocation_at(n);
        const ww_status status = ww_collection_reserve(c, 2049);
        fail_allocation_at(0);
        if (status == WW_OK)
            break;
        check_failure("reserve", n, status, blocks);
    }
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(*state, &info));
    const bool host = strcmp(info.backend, "cpu") == 0;
    assert_true(n > (host ? 12 : 1)); /* a GPU's own memory is not the host's to refuse */
    CHECK_OK(ww_collection_clear(c));
    check_unchanged(c, &before);
    if (host)
        assert_int_equal(blocks_held(), blocks);
    else
        assert_true(blocks_held() <= blocks); /* if memory runs out, a device also frees what it kept for reuse */
    ww_collection_destroy(c);
}

static void more_than_there_is_is_refused_with_the_figures(void **state)
{
    ww_collection *c = collection_make(*state, WW_DIM_MAX, WW_DOT);
    const int64_t blocks = blocks_held();
    CHECK_FAILS(WW_OUT_OF_MEMORY, ww_collection_reserve(c, WW_ROWS_MAX)); /* a pebibyte */
    assert_non_null(strstr(ww_error_message(), "free"));
    assert_int_equal(blocks_held(), blocks);
    ww_collection_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_survives_a_failure_of_every_allocation),
        cmocka_unit_test(making_a_collection_survives_a_failure_of_every_allocation),
        cmocka_unit_test(an_add_that_failed_can_be_made_again),
        cmocka_unit_test(segments_made_before_a_failing_one_are_freed),
        cmocka_unit_test(more_than_there_is_is_refused_with_the_figures),
    };
    return RUN_ON_EVERY_DEVICE("out of memory", tests);
}
