/* Errors that a GPU would not report are faults that say where; behaviour that would vary on a GPU shows under some seed. */
#include "support/check.h"

#include <string.h>

#include "emulator/emulator.h"
#include "kernels/probe.h"
#include "support/memory.h"

extern const emulated_kernel emulated_wrong_index, emulated_wrong_far_index, emulated_wrong_dynamic_index, emulated_wrong_range,
    emulated_wrong_barrier_in_branch, emulated_wrong_two_barriers, emulated_wrong_wave_operations,
    emulated_wrong_barrier_and_shuffle, emulated_wrong_lane, emulated_wrong_uniform, emulated_wrong_no_barrier,
    emulated_wrong_no_wave_barrier, emulated_wrong_too_much_shared, emulated_probe_place;

static uint32_t words[4096];

static bool launch(const emulated_kernel *kernel, uint32_t block, uint32_t wave_size, size_t shared_bytes, uint64_t seed,
                   uint32_t parameter, char *fault)
{
    const probe_args args = {.words = words, .parameter = parameter};
    const emulator_shape shape = {
        .grid_x = 2, .block = block, .wave_size = wave_size, .shared_bytes = shared_bytes, .seed = seed};
    const int64_t held = blocks_held();
    fault[0] = '\0';
    const bool good = emulator_launch(kernel, &args, sizeof args, &shape, fault);
    assert_int_equal(blocks_held(), held);
    return good;
}

/* Under every order: the fault names the kernel and says `text`, and the emulator works on. */
static void expect_fault(const emulated_kernel *kernel, uint32_t block, size_t shared_bytes, uint32_t parameter,
                         const char *text)
{
    char fault[EMULATOR_FAULT_BYTES];
    for (uint32_t wave = 32; wave <= 64; wave *= 2)
        for (uint64_t seed = 0; seed < 5; seed++) {
            assert_false(launch(kernel, block, wave, shared_bytes, seed, parameter, fault));
            if (!strstr(fault, text) || !strstr(fault, kernel->name) || !strstr(fault, "block (") || !strstr(fault, "thread "))
                fail_msg("'%s' does not say '%s' and where", fault, text);
            assert_true(launch(&emulated_probe_place, block, wave, 0, seed, 0, fault));
        }
}

static void an_index_outside_a_shared_array_is_a_fault(void **state)
{
    (void)state;
    char fault[EMULATOR_FAULT_BYTES];
    expect_fault(&emulated_wrong_index, 1, 0, 64, "out of bounds at wrong.c:");
    expect_fault(&emulated_wrong_index, 1, 0, (uint32_t)-1, "index -1");
    assert_true(launch(&emulated_wrong_index, 1, 32, 0, 0, 63, fault));
    expect_fault(&emulated_wrong_far_index, 1, 0, 1u << 28, "index 4611686018427387904");
    assert_true(launch(&emulated_wrong_far_index, 1, 32, 0, 0, 0, fault));
    expect_fault(&emulated_wrong_dynamic_index, 1, 128, 32, "out of bounds at wrong.c:");
    expect_fault(&emulated_wrong_dynamic_index, 1, 0, 0, "out of bounds at wrong.c:");
    assert_true(launch(&emulated_wrong_dynamic_index, 1, 32, 128, 0, 31, fault));
    expect_fault(&emulated_wrong_range, 1, 0, 61, "4 elements");
    assert_true(launch(&emulated_wrong_range, 1, 32, 0, 0, 60, fault));
}

static void more_shared_memory_than_a_block_has_is_a_fault(void **state)
{
    (void)state;
    char fault[EMULATOR_FAULT_BYTES];
    expect_fault(&emulated_wrong_too_much_shared, 64, 2000, 0, "shared array values: 64000 bytes");
    assert_true(launch(&emulated_wrong_too_much_shared, 64, 32, 1000, 0, 0, fault));
}

static void a_barrier_that_some_threads_skip_is_a_fault(void **state)
{
    (void)state;
    char fault[EMULATOR_FAULT_BYTES];
    expect_fault(&emulated_wrong_barrier_in_branch, 256, 0, 255, "divergent barrier");
    expect_fault(&emulated_wrong_barrier_in_branch, 256, 0, 64, "divergent barrier"); /* whole waves skip it */
    expect_fault(&emulated_wrong_barrier_in_branch, 256, 0, 1, "wrong.c:");
    assert_true(launch(&emulated_wrong_barrier_in_branch, 256, 32, 0, 3, 256, fault));
    expect_fault(&emulated_wrong_two_barriers, 256, 0, 0, "divergent barrier");
    assert_true(launch(&emulated_wrong_two_barriers, 32, 32, 0, 0, 0, fault)); /* one wave, one barrier */
}

static void lanes_at_different_wave_operations_are_a_fault(void **state)
{
    (void)state;
    expect_fault(&emulated_wrong_wave_operations, 64, 0, 0, "divergent wave operation");
    expect_fault(&emulated_wrong_barrier_and_shuffle, 64, 0, 0, "divergent ");
    expect_fault(&emulated_wrong_lane, 64, 0, 0, "asked of a wave of ");
    expect_fault(&emulated_wrong_uniform, 64, 0, 0, "wave_uniform_u32 at wrong.c:");
}

/* Under how many of 16 seeds is the answer the one that the author hoped for? */
static uint32_t right_answers(const emulated_kernel *kernel, uint32_t wave, bool neighbour_wave)
{
    uint32_t right = 0;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        char fault[EMULATOR_FAULT_BYTES];
        assert_true(launch(kernel, 256, wave, 0, seed, 0, fault));
        bool good = true;
        for (uint32_t t = 0; t < 256; t++)
            good = good && words[t] == (neighbour_wave ? (t + wave) % 256 : (t ^ 1));
        right += good;
    }
    return right;
}

static void a_missing_barrier_shows_under_some_seed(void **state)
{
    (void)state;
    for (uint32_t wave = 32; wave <= 64; wave *= 2) {
        assert_true(right_answers(&emulated_wrong_no_barrier, wave, true) < 16);
        assert_true(right_answers(&emulated_wrong_no_wave_barrier, wave, false) < 16);
    }
}

static void a_seed_gives_the_same_order_each_time(void **state)
{
    (void)state;
    static uint32_t first[256];
    uint32_t different = 0;
    char fault[EMULATOR_FAULT_BYTES];
    for (uint64_t seed = 0; seed < 8; seed++) {
        assert_true(launch(&emulated_wrong_no_barrier, 256, 32, 0, seed, 0, fault));
        uint32_t again[256];
        memcpy(again, words, sizeof again);
        assert_true(launch(&emulated_wrong_no_barrier, 256, 32, 0, seed, 0, fault));
        assert_memory_equal(again, words, sizeof again);
        if (seed == 0)
            memcpy(first, words, sizeof first);
        different += memcmp(first, words, sizeof first) != 0;
    }
    assert_true(different >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_outside_a_shared_array_is_a_fault),
        cmocka_unit_test(more_shared_memory_than_a_block_has_is_a_fault),
        cmocka_unit_test(a_barrier_that_some_threads_skip_is_a_fault),
        cmocka_unit_test(lanes_at_different_wave_operations_are_a_fault),
        cmocka_unit_test(a_missing_barrier_shows_under_some_seed),
        cmocka_unit_test(a_seed_gives_the_same_order_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
