/* How a search is divided: for every request, no list can overflow, no row is left out, and the device is busy. */
#include "gpu/search/screen_plan.h"
#include "gpu/search/search_plan.h"
#include "kernels/search/search_args.h"
#include "support/check.h"

static const int64_t counts[] = {1, 2, 4, 5, 8, 9, 16, 17, 48, 49, 64, 65, 1000, 4096, 4097, 100000};
static const int32_t ks[] = {1, 10, 100, 1000, WW_K_MAX};
static const int32_t dims[] = {1, 128, 4096, WW_DIM_MAX};

enum { H200_UNITS = 132, H200_SHARED_BYTES = 232448, AMD_SHARED_BYTES = 65536 };

static search_plan plan_for(int64_t queries, int32_t dim, int32_t k)
{
    return search_plan_make((search_size){.queries = queries, .dim = dim, .k = k, .shared_bytes = H200_SHARED_BYTES});
}

static void lists_have_room_for_all_that_can_come(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++)
            for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
                const search_plan plan = search_plan_make((search_size){.queries = counts[i],
                                                                        .dim = dims[d],
                                                                        .k = ks[j],
                                                                        .watched = d % 2 != 0,
                                                                        .shared_bytes = AMD_SHARED_BYTES,
                                                                        .stream_wave = d % 2 != 0 ? 64 : 0,
                                                                        .stream_queries = 1,
                                                                        .stream_teams = 1,
                                                                        .shrunk = (int32_t)(i % 3)});
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
            const search_plan plan = plan_for(counts[i], 128, ks[j]);
            assert_true(plan.round_queries >= 1 && plan.round_queries <= 4096);
            assert_true(plan.round_queries <= counts[i]);
            assert_true((int64_t)plan.round_queries * ks[j] <= 4 << 20);
            const int64_t slots = search_plan_slots(&plan, plan.round_queries);
            assert_true(slots >= plan.round_queries && slots % plan.slot_queries == 0 &&
                        slots - plan.round_queries < plan.slot_queries);
        }
    assert_int_equal(plan_for(5000, 128, 10).round_queries, 2560);
    assert_int_equal(plan_for(3000, WW_DIM_MAX, 10).round_queries, 1024);
}

static void the_kernel_fits_the_rows_and_the_queries(void **state)
{
    (void)state;
    assert_int_equal(plan_for(1, 128, 10).shape, SEARCH_SHAPE_ONE);
    assert_int_equal(plan_for(1, 768, 10).shape, SEARCH_SHAPE_ONE);
    assert_int_equal(plan_for(16, 64, 10).shape, SEARCH_SHAPE_REGISTERS_1);
    assert_int_equal(plan_for(16, 65, 10).shape, SEARCH_SHAPE_REGISTERS_2);
    assert_int_equal(plan_for(1000, 128, 10).shape, SEARCH_SHAPE_REGISTERS_2);
    assert_int_equal(plan_for(2, 129, 10).shape, SEARCH_SHAPE_TILE);
    assert_int_equal(plan_for(1000, WW_DIM_MAX, 10).shape, SEARCH_SHAPE_TILE);
}

static void shared_memory_holds_the_queries_whole_if_it_can(void **state)
{
    (void)state;
    for (size_t i = 1; i < sizeof counts / sizeof *counts; i++)
        for (int32_t dim = 65; dim <= WW_DIM_MAX; dim = dim * 3 / 2)
            for (int amd = 0; amd < 2; amd++) {
                const int64_t shared_bytes = amd ? AMD_SHARED_BYTES : H200_SHARED_BYTES;
                const search_plan plan =
                    search_plan_make((search_size){.queries = counts[i], .dim = dim, .k = 10, .shared_bytes = shared_bytes});
                if (plan.shape != SEARCH_SHAPE_TILE)
                    continue;
                const int32_t strips = plan.slot_queries / SEARCH_TILE_SIDE, pairs = (dim + 127) / 128;
                const int32_t row_strips = plan.tile_rows / SEARCH_TILE_SIDE;
                assert_int_equal(strips * row_strips * SEARCH_TILE_LANES, plan.threads);
                assert_in_range(plan.stages, SEARCH_STAGES_MIN, SEARCH_STAGES_MAX);
                const int32_t queries = strips * SEARCH_TILE_QUERIES_FLOATS * (plan.whole ? pairs : plan.stages);
                const int32_t rows = row_strips * SEARCH_TILE_ROWS_FLOATS * plan.stages;
                assert_int_equal(plan.shared_bytes, (queries + rows) * 4);
                const int64_t blocks = SEARCH_THREADS / plan.threads; /* of a unit */
                assert_true(blocks * ((int64_t)plan.shared_bytes + SEARCH_STATIC_BYTES) <= shared_bytes);
            }
    assert_true(plan_for(1000, 768, 10).whole);
    assert_int_equal(plan_for(1000, 768, 10).slot_queries, 32);
    assert_int_equal(plan_for(16, 768, 10).slot_queries, 16);
    assert_int_equal(plan_for(16, 768, 10).stages, SEARCH_STAGES_MAX);
    assert_false(plan_for(16, WW_DIM_MAX, 10).whole);
}

static int64_t parts_of(const search_plan *plan, int64_t slots, int64_t words, int64_t lists_max)
{
    const search_parts_size size = {.slots = slots, .words = words, .resident = H200_UNITS, .lists_max = lists_max};
    return search_plan_parts(plan, &size);
}

static search_plan streamed_plan_for(int64_t queries, int32_t dim, int32_t wave)
{
    return search_plan_make((search_size){.queries = queries,
                                          .dim = dim,
                                          .k = 10,
                                          .shared_bytes = H200_SHARED_BYTES,
                                          .stream_wave = wave,
                                          .stream_queries = 9,
                                          .stream_teams = 8});
}

static void a_copy_engine_is_used_where_queries_and_stages_fit(void **state)
{
    (void)state;
    assert_int_equal(streamed_plan_for(1, 768, 32).shape, SEARCH_SHAPE_ONE);
    assert_int_equal(streamed_plan_for(16, 128, 32).shape, SEARCH_SHAPE_REGISTERS_2);
    assert_int_equal(streamed_plan_for(8, 768, 32).shape, SEARCH_SHAPE_TILE);
    assert_int_equal(streamed_plan_for(16, 768, 32).slot_queries, 16);
    assert_int_equal(streamed_plan_for(1000, 768, 32).slot_queries, 64);
    assert_int_equal(streamed_plan_for(16, WW_DIM_MAX, 32).shape, SEARCH_SHAPE_TILE);
    for (size_t i = 5; i < sizeof counts / sizeof *counts; i++)
        for (int32_t dim = 129; dim <= 1536; dim = dim * 3 / 2)
            for (int32_t wave = 32; wave <= 64; wave *= 2) {
                const search_plan plan = streamed_plan_for(counts[i], dim, wave);
                assert_int_equal(plan.shape, SEARCH_SHAPE_STREAM);
                assert_int_equal(plan.threads, SEARCH_STREAM_THREADS);
                assert_int_equal(plan.block_parts * wave, SEARCH_THREADS);
                const int32_t strips = plan.slot_queries / SEARCH_TILE_SIDE, pairs = (dim + 127) / 128;
                assert_int_equal(strips * plan.tile_rows * SEARCH_TILE_LANES, SEARCH_THREADS * SEARCH_TILE_SIDE);
                assert_in_range(plan.stages, SEARCH_STREAM_STAGES_MIN, SEARCH_STREAM_STAGES_MAX);
                assert_int_equal(plan.shared_bytes, (pairs * strips * SEARCH_TILE_QUERIES_FLOATS +
                                                     plan.stages * plan.tile_rows * (SEARCH_STREAM_ROW_FLOATS + 1)) *
                                                        4);
                assert_true((int64_t)plan.shared_bytes + SEARCH_STREAM_STATIC_BYTES <= H200_SHARED_BYTES);
                const int64_t slots = search_plan_slots(&plan, plan.round_queries);
                assert_int_equal(parts_of(&plan, slots, 1 << 20, 1 << 20) % plan.block_parts, 0);
                assert_int_equal(parts_of(&plan, slots, 1 << 20, 0), plan.block_parts);
            }
}

static void parts_fill_the_device_and_no_more_than_there_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const search_plan plan = plan_for(counts[i], 768, 10);
        const int64_t slots = search_plan_slots(&plan, plan.round_queries), columns = slots / plan.slot_queries;
        const int64_t tiles = plan.tile_rows < SEARCH_WORD_ROWS ? SEARCH_WORD_ROWS / plan.tile_rows : 1; /* in the same word */
        assert_in_range(parts_of(&plan, slots, 1, 1 << 20), 1, tiles);
        assert_int_equal(parts_of(&plan, slots, 1 << 20, 0), 1);
        const int64_t parts = parts_of(&plan, slots, 1 << 20, 1 << 20);
        const int64_t blocks = parts * columns, rounds = (blocks + 131) / 132;
        assert_true((double)blocks / (double)(rounds * 132) > 0.85);
    }
}

/* Lists that overflow are requested twice. */
static void a_screen_has_room_for_a_cluster_and_its_memory_is_bounded(void **state)
{
    (void)state;
    const int64_t ten_million = 10000000;
    for (int64_t queries = 9; queries <= 100000; queries *= 10) {
        const screen_size size = {
            .queries = queries, .dim = 128, .k = 10, .words = ten_million / 64, .sample_buckets = 4, .sample_tiles = 16};
        const screen_plan plan = screen_plan_make(size);
        assert_true(plan.capacity >= 10000);
        assert_true((int64_t)plan.round_queries * plan.capacity * 8 <= (int64_t)512 << 20);
        assert_true(plan.round_queries >= queries || plan.round_queries >= 1024);
    }
    for (int64_t words = 2; words <= (int64_t)1 << 26; words *= 4) {
        const screen_plan plan = screen_plan_make(
            (screen_size){.queries = 3000, .dim = 128, .k = 10, .words = words, .sample_buckets = 4, .sample_tiles = 16});
        assert_true(plan.capacity >= 10 && plan.capacity < words * 64 + 1024);
        assert_true((int64_t)plan.round_queries * plan.capacity * 8 <= (int64_t)512 << 20 || plan.round_queries == 256);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_have_room_for_all_that_can_come),
        cmocka_unit_test(rounds_are_few_equal_and_within_limits),
        cmocka_unit_test(the_kernel_fits_the_rows_and_the_queries),
        cmocka_unit_test(shared_memory_holds_the_queries_whole_if_it_can),
        cmocka_unit_test(a_copy_engine_is_used_where_queries_and_stages_fit),
        cmocka_unit_test(parts_fill_the_device_and_no_more_than_there_is),
        cmocka_unit_test(a_screen_has_room_for_a_cluster_and_its_memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
