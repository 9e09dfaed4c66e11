/* Random numbers: the generator's published values, the same bits on every device, and the distributions. */
#include <math.h>
#include <stdlib.h>

#include "arithmetic/philox.h"
#include "support/devices.h"
#include "support/tensors.h"

/* Those of Random123's known answers whose counter has the form used here. */
static void the_generator_gives_its_published_words(void **state)
{
    (void)state;
    const philox_block zero = philox(0, 0);
    assert_int_equal(zero.word[0], 0x6627e8d5u);
    assert_int_equal(zero.word[1], 0xe169c58du);
    assert_int_equal(zero.word[2], 0xbc57ac4cu);
    assert_int_equal(zero.word[3], 0x9b00dbd8u);
}

static uint64_t expected_bits(ww_dtype dtype, int what, uint64_t seed, uint64_t first, int64_t i, double a, double b)
{
    if (dtype == WW_F64)
        return bits_nearest(dtype, random_block_f64(what, seed, first + (uint64_t)i / 2, a, b).v[i % 2]);
    return bits_nearest(dtype, random_block_f32(what, seed, first + (uint64_t)i / 4, (float)a, (float)b).v[i % 4]);
}

enum { SEED = 0x1234567 };

/* One storage, compared; `used` blocks of the seed were used before, and are counted on. */
static void check_bits(ww_device *device, ww_dtype dtype, int64_t count, int what, uint64_t *used)
{
    const double a = what == RANDOM_UNIFORM ? -2.0 : 0.5;
    ww_tensor out = {0};
    if (what == RANDOM_UNIFORM)
        CHECK_OK(ww_tensor_uniform(device, dtype, 1, (int64_t[]){count}, -2.0, 1.0, &out));
    else
        CHECK_OK(ww_tensor_normal(device, dtype, 1, (int64_t[]){count}, 0.5, 3.0, &out));
    uint8_t *bytes = storage_bytes(out.storage);
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(bits_of(bytes, dtype, i), expected_bits(dtype, what, SEED, *used, i, a, 3.0));
    free(bytes);
    ww_tensor_release(&out);
    *used += (uint64_t)(count + (dtype == WW_F64 ? 1 : 3)) / (dtype == WW_F64 ? 2 : 4);
}

static void the_same_seed_gives_the_same_bits_on_every_device(void **state)
{
    static const ww_dtype types[] = {WW_F32, WW_F64, WW_F16, WW_BF16, WW_F8E4M3};
    static const int64_t sizes[] = {0, 1, 5, 1023, 2050};
    uint64_t used = 0;
    CHECK_OK(ww_device_seed(*state, SEED));
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int what = RANDOM_UNIFORM; what <= RANDOM_NORMAL; what++)
                check_bits(*state, types[t], sizes[s], what, &used);
}

static void check_moments(ww_device *device, ww_dtype dtype, bool normal)
{
    const int64_t count = 40000;
    ww_tensor out = {0};
    CHECK_OK(ww_device_seed(device, 5));
    if (normal)
        CHECK_OK(ww_tensor_normal(device, dtype, 1, (int64_t[]){count}, 2.0, 0.5, &out));
    else
        CHECK_OK(ww_tensor_uniform(device, dtype, 1, (int64_t[]){count}, 1.0, 3.0, &out));
    uint8_t *bytes = storage_bytes(out.storage);
    double sum = 0.0, squares = 0.0, least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double x = (double)number_of(dtype, bits_of(bytes, dtype, i));
        sum += x - 2.0;
        squares += (x - 2.0) * (x - 2.0);
        least = fmin(least, x);
        most = fmax(most, x);
    }
    const double deviation = normal ? 0.5 : 1.0 / sqrt(3.0);
    assert_true(fabs(sum / (double)count) < 5.0 * deviation / sqrt((double)count));
    assert_true(fabs(sqrt(squares / (double)count) - deviation) < 0.01);
    if (normal)
        assert_true(least < 0.5 && most > 3.5);
    else
        assert_true(least >= 1.0 && least < 1.001 && most < 3.0 && most > 2.999);
    free(bytes);
    ww_tensor_release(&out);
}

static void the_numbers_are_distributed_as_asked(void **state)
{
    check_moments(*state, WW_F32, false);
    check_moments(*state, WW_F32, true);
    check_moments(*state, WW_F64, false);
    check_moments(*state, WW_F64, true);
}

static void nonsensical_arguments_are_refused(void **state)
{
    ww_tensor out = {0};
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_uniform(*state, WW_I32, 1, (int64_t[]){5}, 0.0, 1.0, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_uniform(*state, WW_F32, 1, (int64_t[]){5}, 1.0, 0.0, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_uniform(*state, WW_F32, 1, (int64_t[]){5}, 0.0, NAN, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_normal(*state, WW_F32, 1, (int64_t[]){5}, 0.0, -1.0, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_normal(*state, WW_F32, 1, (int64_t[]){-5}, 0.0, 1.0, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_normal(NULL, WW_F32, 1, (int64_t[]){5}, 0.0, 1.0, &out));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_seed(NULL, 1));
    assert_null(out.storage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_gives_its_published_words),
        cmocka_unit_test(the_same_seed_gives_the_same_bits_on_every_device),
        cmocka_unit_test(the_numbers_are_distributed_as_asked),
        cmocka_unit_test(nonsensical_arguments_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("random numbers", tests);
}
