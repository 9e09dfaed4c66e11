/* How a search is cut up: whatever is asked for, no list can overflow, nothing is left out, and the device is filled. */
#include "gpu/search_plan.h"
#include "kernels/search.h"
#include "support/check.h"

static const int64_t counts[] = {1, 2, 4, 5, 8, 9, 16, 17, 48, 49, 64, 65, 1000, 4096, 4097, 100000};
static const int32_t ks[] = {1, 10, 100, 1000, WW_K_MAX};
static const int32_t dims[] = {1, 128, 4096, WW_DIM_MAX};

static void lists_have_room_for_all_that_can_come(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++)
            for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
                const search_plan plan = search_plan_make(counts[i], dims[d], ks[j], (int32_t)d % 2);
                assert_true(plan.list_kept_max >= ks[j]);
                assert_true(plan.list_trigger > plan.list_kept_max);
                assert_true(plan.list_capacity >= plan.list_trigger + plan.tile_rows);
            }
}

static void rounds_are_few_equal_and_within_limits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++) {
            const search_plan plan = search_plan_make(counts[i], 128, ks[j], 0);
            assert_true(plan.chunk >= 1 && plan.chunk <= 4096);
            assert_true(plan.chunk <= counts[i]);
            assert_true((int64_t)plan.chunk * ks[j] <= 4 << 20);
            const int64_t slots = search_plan_slots(&plan, plan.chunk);
            assert_true(slots >= plan.chunk && slots % plan.slot_queries == 0 && slots - plan.chunk < plan.slot_queries);
        }
    assert_int_equal(search_plan_make(5000, 128, 10, 0).chunk, 2560);
    assert_int_equal(search_plan_make(3000, WW_DIM_MAX, 10, 0).chunk, 1024);
}

static void the_kernel_fits_the_number_of_queries(void **state)
{
    (void)state;
    static const search_shape shapes[] = {SEARCH_SHAPE_FEW_1, SEARCH_SHAPE_FEW_4, SEARCH_SHAPE_FEW_4, SEARCH_SHAPE_FEW_8,
                                          SEARCH_SHAPE_FEW_8, SEARCH_SHAPE_TALL,  SEARCH_SHAPE_TALL,  SEARCH_SHAPE_TALL,
                                          SEARCH_SHAPE_TALL,  SEARCH_SHAPE_WIDE,  SEARCH_SHAPE_WIDE,  SEARCH_SHAPE_WIDE};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        assert_int_equal(search_plan_make(counts[i], 768, 10, 0).shape, shapes[i]);
}

static void short_rows_and_many_queries_are_held_in_registers(void **state)
{
    (void)state;
    assert_int_equal(search_plan_make(16, 64, 10, 0).shape, SEARCH_SHAPE_HELD_1);
    assert_int_equal(search_plan_make(16, 65, 10, 0).shape, SEARCH_SHAPE_HELD_2);
    assert_int_equal(search_plan_make(1000, 128, 10, 0).shape, SEARCH_SHAPE_HELD_2);
    assert_int_equal(search_plan_make(1, 128, 10, 0).shape, SEARCH_SHAPE_FEW_1);
    assert_int_equal(search_plan_make(1000, 129, 10, 0).shape, SEARCH_SHAPE_WIDE);
}

static void parts_fill_the_device_and_no_more_than_there_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const search_plan plan = search_plan_make(counts[i], 768, 10, 0);
        const int64_t slots = search_plan_slots(&plan, plan.chunk), columns = slots / plan.slot_queries;
        assert_int_equal(search_plan_parts(&plan, slots, 1, 132, 1 << 20), 1);
        assert_int_equal(search_plan_parts(&plan, slots, 1 << 20, 132, 0), 1);
        const int64_t parts = search_plan_parts(&plan, slots, 1 << 20, 132, 1 << 20);
        const int64_t blocks = parts * columns, rounds = (blocks + 131) / 132;
        assert_true((double)blocks / (double)(rounds * 132) > 0.85);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_have_room_for_all_that_can_come),
        cmocka_unit_test(rounds_are_few_equal_and_within_limits),
        cmocka_unit_test(the_kernel_fits_the_number_of_queries),
        cmocka_unit_test(short_rows_and_many_queries_are_held_in_registers),
        cmocka_unit_test(parts_fill_the_device_and_no_more_than_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
