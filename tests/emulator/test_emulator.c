/* The emulator does what a GPU does: every word of simt.h, with waves of 32 and 64, in several orders. */
#include "support/check.h"

#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "emulator/emulator.h"
#include "kernels/probe.h"
#include "support/memory.h"

extern const emulated_kernel emulated_probe_place, emulated_probe_shuffle, emulated_probe_wave_sum, emulated_probe_ballot,
    emulated_probe_leave_early, emulated_probe_reverse, emulated_probe_quads, emulated_probe_atomics, emulated_probe_last_block,
    emulated_probe_arithmetic;

enum { CAPACITY = 65536 };

static float in[CAPACITY] __attribute__((aligned(16)));
static float out[CAPACITY] __attribute__((aligned(16)));
static uint32_t words[CAPACITY];
static uint64_t longs[CAPACITY];

static const uint64_t seeds[] = {0, 1, 2, 0x123456789abcdefull};

/* Clears what kernels write, then runs; a fault fails the test with its text. */
static void run(const emulated_kernel *kernel, uint32_t grid_x, uint32_t grid_y, uint32_t block, uint32_t wave_size,
                size_t shared_bytes, uint64_t seed, uint32_t n, uint32_t parameter)
{
    memset(out, 0, sizeof out);
    memset(words, 0, sizeof words);
    memset(longs, 0, sizeof longs);
    const probe_args args = {.in = in, .out = out, .words = words, .longs = longs, .n = n, .parameter = parameter};
    const emulator_shape shape = {
        .grid_x = grid_x, .grid_y = grid_y, .block = block, .wave_size = wave_size, .shared_bytes = shared_bytes, .seed = seed};
    char fault[EMULATOR_FAULT_BYTES];
    if (!emulator_launch(kernel, &args, sizeof args, &shape, fault))
        fail_msg("%s", fault);
}

#define FOR_EACH_ORDER                                                                                                         \
    for (uint32_t wave = 32; wave <= 64; wave *= 2)                                                                            \
        for (size_t s = 0; s < sizeof seeds / sizeof *seeds; s++)

static void every_thread_knows_its_place(void **state)
{
    (void)state;
    FOR_EACH_ORDER
    {
        const uint32_t grid_x = 5, grid_y = 3, block = 200;
        run(&emulated_probe_place, grid_x, grid_y, block, wave, 0, seeds[s], 0, 0);
        for (uint32_t i = 0; i < grid_x * grid_y * block; i++) {
            const uint32_t *mine = words + (size_t)i * 8, t = i % block;
            assert_int_equal(mine[0], t + 1);
            assert_int_equal(mine[1], i / block % grid_x);
            assert_int_equal(mine[2], i / block / grid_x);
            assert_int_equal(mine[3], grid_x << 16 | grid_y);
            assert_int_equal(mine[4], block);
            assert_int_equal(mine[5], t % wave << 16 | wave);
            assert_int_equal(mine[6], t / wave);
            assert_int_equal(mine[7], (block + wave - 1) / wave);
        }
    }
}

static void shuffles_bring_the_value_of_the_lane_asked(void **state)
{
    (void)state;
    FOR_EACH_ORDER
    {
        const uint32_t block = 256, grid = 3, n = grid * block;
        for (uint32_t turn = 0; turn < wave; turn += 5) {
            run(&emulated_probe_shuffle, grid, 1, block, wave, 0, seeds[s], n, turn);
            for (uint32_t i = 0; i < n; i++) {
                const uint32_t from = i / wave * wave + (i % wave + turn) % wave;
                const uint64_t wide = (uint64_t)from << 40 | from, crossed = (uint64_t)(i ^ 16) << 40 | (i ^ 16);
                assert_int_equal(words[i], from * 3);
                assert_true(out[i] == (float)from + 0.5f + (float)(i ^ 1));
                assert_true(longs[i] == (wide ^ crossed));
                assert_int_equal(words[n + i], i ^ (wave / 2));
            }
        }
    }
}

static void a_sum_by_shuffles_is_the_same_in_every_lane(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1024; i++)
        in[i] = (float)(i * i % 37);
    FOR_EACH_ORDER
    {
        run(&emulated_probe_wave_sum, 2, 1, 512, wave, 0, seeds[s], 0, 0);
        for (uint32_t i = 0; i < 1024; i++) {
            float sum = 0.0f;
            for (uint32_t l = 0; l < wave; l++)
                sum += in[i / wave * wave + l];
            assert_true(out[i] == sum);
        }
    }
}

static void ballots_count_the_lanes_that_are_there(void **state)
{
    (void)state;
    FOR_EACH_ORDER
    {
        const uint32_t block = 100; /* the last wave is partial at both sizes */
        run(&emulated_probe_ballot, 1, 1, block, wave, 0, seeds[s], 70, 3);
        for (uint32_t i = 0; i < block; i++) {
            uint64_t expected = 0;
            bool all = true;
            for (uint32_t j = i / wave * wave; j < block && j < (i / wave + 1) * wave; j++) {
                expected |= (uint64_t)(j % 3 == 0) << (j % wave);
                all = all && j < 70;
            }
            assert_true(longs[i] == expected);
            assert_int_equal(words[i] & 1, all);
            assert_int_equal(words[i] >> 1, 0); /* no lane is number 70 */
        }
    }
}

static void lanes_that_ended_are_not_waited_for(void **state)
{
    (void)state;
    FOR_EACH_ORDER
    {
        run(&emulated_probe_leave_early, 1, 1, 128, wave, 0, seeds[s], 0, 20);
        for (uint32_t i = 0; i < 128; i++) {
            assert_true(longs[i] == (i % wave < 20 ? 0xfffffu : 0));
            assert_int_equal(words[i], i % wave < 20 ? 19 + 7 : 0);
        }
    }
}

static void shared_memory_is_the_blocks_own(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 7 * 200; i++)
        in[i] = (float)i * 0.25f;
    FOR_EACH_ORDER
    {
        const uint32_t block = 200;
        run(&emulated_probe_reverse, 7, 1, block, wave, block * sizeof(uint32_t), seeds[s], 0, 0);
        for (uint32_t i = 0; i < 7 * block; i++) {
            const uint32_t mirror = i / block * block + block - 1 - i % block;
            assert_true(out[i] == in[mirror]);
            assert_int_equal(words[i], mirror);
        }
        run(&emulated_probe_quads, 1, 1, block, wave, 0, seeds[s], 0, 0);
        for (uint32_t i = 0; i < 4 * block; i++) {
            const float mirrored = in[4 * (block - 1 - i / 4) + i % 4];
            assert_true(out[i] == mirrored * mirrored);
        }
    }
}

static void atomics_lose_nothing(void **state)
{
    (void)state;
    FOR_EACH_ORDER
    {
        const uint32_t grid = 40, block = 256, n = grid * block; /* enough for several system threads */
        memset(longs, 0xff, sizeof longs);
        memset(words, 0, sizeof words);
        longs[0] = 0;
        const probe_args args = {.words = words, .longs = longs};
        const emulator_shape shape = {.grid_x = grid, .block = block, .wave_size = wave, .seed = seeds[s]};
        char fault[EMULATOR_FAULT_BYTES];
        if (!emulator_launch(&emulated_probe_atomics, &args, sizeof args, &shape, fault))
            fail_msg("%s", fault);
        assert_int_equal(words[0], n);
        assert_int_equal(words[1], n - 1);
        assert_in_range(words[2], 1, n);
        assert_int_equal(words[3], n);
        assert_true(longs[0] == (uint64_t)n << 33);
        assert_true(longs[1] == (uint64_t)5 << 32);
    }
}

static void the_last_block_sees_the_writes_of_the_others(void **state)
{
    (void)state;
    FOR_EACH_ORDER
    {
        run(&emulated_probe_last_block, 1000, 1, 64, wave, 0, seeds[s], 0, 0);
        assert_true(longs[0] == 1000ull * 1001 / 2);
    }
}

static void arithmetic_rounds_once_and_keeps_denormals(void **state)
{
    (void)state;
    static const float values[] = {1.0f, 3.0f, 1e-40f, 3e-39f, 0x1.fffffep127f, 0x1p-149f, 2.0f, 0.1f, 1.0000001f, 5e-20f};
    const size_t count = sizeof values / sizeof *values;
    for (size_t i = 0; i < count * count; i++) {
        in[2 * i] = values[i / count];
        in[2 * i + 1] = values[i % count];
    }
    run(&emulated_probe_arithmetic, 1, 1, 128, 32, 0, 0, (uint32_t)(count * count), 0);
    for (size_t i = 0; i < count * count; i++) {
        const float a = in[2 * i], b = in[2 * i + 1];
        const float product = a * b;
        const float expected[4] = {(float)((double)a / (double)b), (float)sqrt((double)a), fmaf(a, b, -a), product - a};
        for (size_t j = 0; j < 4; j++)
            if (!isnan(expected[j]) || !isnan(out[4 * i + j])) /* inf - inf */
                assert_int_equal(canon_float_bits(out[4 * i + j]), canon_float_bits(expected[j]));
    }
}

static void a_launch_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    const probe_args args = {0};
    const emulator_shape good = {.grid_x = 1, .block = 32, .wave_size = 32};
    const struct {
        emulator_shape shape;
        size_t args_bytes;
        const char *text;
    } cases[] = {
        {good, sizeof args - 1, "bytes of arguments"},
        {{.grid_x = 1, .block = 257, .wave_size = 32}, sizeof args, "257 threads; it was compiled for 1 to 256"},
        {{.grid_x = 1, .block = 0, .wave_size = 32}, sizeof args, "a block of 0 threads"},
        {{.grid_x = 1, .block = 32, .wave_size = 16}, sizeof args, "32 or 64 lanes, not 16"},
        {{.grid_x = 0, .block = 32, .wave_size = 32}, sizeof args, "a grid of 0 by 1"},
        {{.grid_x = 1, .grid_y = 70000, .block = 32, .wave_size = 32}, sizeof args, "a grid of 1 by 70000"},
        {{.grid_x = 1, .block = 32, .wave_size = 32, .shared_bytes = 65537}, sizeof args, "65537 bytes of shared memory"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char fault[EMULATOR_FAULT_BYTES] = "";
        assert_false(emulator_launch(&emulated_probe_reverse, &args, cases[c].args_bytes, &cases[c].shape, fault));
        if (!strstr(fault, cases[c].text))
            fail_msg("'%s' does not say '%s'", fault, cases[c].text);
    }
}

static void a_launch_without_memory_is_refused_and_keeps_none(void **state)
{
    (void)state;
    const probe_args args = {.in = in, .out = out, .words = words};
    const emulator_shape shape = {.grid_x = 1, .block = 64, .wave_size = 32, .shared_bytes = 256};
    char fault[EMULATOR_FAULT_BYTES];
    const int64_t before = blocks_held();
    int64_t refused = 0;
    for (bool done = false; !done; refused += !done) {
        fail_allocation_at(refused + 1);
        done = emulator_launch(&emulated_probe_reverse, &args, sizeof args, &shape, fault);
        fail_allocation_at(0);
        assert_true(done || strstr(fault, "no memory"));
        assert_int_equal(blocks_held(), before);
    }
    assert_true(refused >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_knows_its_place),
        cmocka_unit_test(shuffles_bring_the_value_of_the_lane_asked),
        cmocka_unit_test(a_sum_by_shuffles_is_the_same_in_every_lane),
        cmocka_unit_test(ballots_count_the_lanes_that_are_there),
        cmocka_unit_test(lanes_that_ended_are_not_waited_for),
        cmocka_unit_test(shared_memory_is_the_blocks_own),
        cmocka_unit_test(atomics_lose_nothing),
        cmocka_unit_test(the_last_block_sees_the_writes_of_the_others),
        cmocka_unit_test(arithmetic_rounds_once_and_keeps_denormals),
        cmocka_unit_test(a_launch_that_does_not_fit_is_refused),
        cmocka_unit_test(a_launch_without_memory_is_refused_and_keeps_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
