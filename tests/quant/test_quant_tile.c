/* Products of quantized matrices with enough columns for tiles: the CPU's bits with and without wgmma, if thread
 * blocks share a tile and if one computes all its accumulators in turn.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/calls/quant.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

/* Without wgmma and with it, of a size that no tile divides, and of blocks that eight does not. */
static void check_tiles(ww_device *device, ww_quant_type type, int64_t rows, int64_t n, int64_t k)
{
    ww_device *cpu;
    float *w = quant_normals(1, rows * k), *x = quant_normals(2, n * k);
    CHECK_OK(ww_device_open("cpu", &cpu));
    float *here = quant_multiply(cpu, type, w, rows, x, n, k);
    for (int c = 0; c < 2; c++) {
        pretend_sm_90a(device, c == 1);
        float *there = quant_multiply(device, type, w, rows, x, n, k);
        for (int64_t i = 0; i < rows * n; i++)
            if (memcmp(&here[i], &there[i], sizeof *here) != 0)
                fail_msg("type %d, %d x %d times %d, wgmma %d: result %d is %a, on the CPU %a", (int)type, (int)rows, (int)k,
                         (int)n, c, (int)i, (double)there[i], (double)here[i]);
        free(there);
    }
    pretend_nothing(device);
    free(here);
    free(x);
    free(w);
    ww_device_close(cpu);
}

static void tiles_shared_by_blocks_of_threads_have_the_cpus_bits(void **state)
{
    static const ww_quant_type small[] = {WW_QUANT_Q4_0, WW_QUANT_Q5_1}, large[] = {WW_QUANT_Q4_K, WW_QUANT_Q6_K};
    for (int t = 0; t < 2; t++) {
        check_tiles(*state, small[t], 67, 35, 352);
        check_tiles(*state, large[t], 67, 35, 512);
    }
    check_tiles(*state, WW_QUANT_Q5_1, 131, 130, 352); /* a whole tile and a part of the next */
    check_tiles(*state, WW_QUANT_Q4_K, 131, 130, 512);
    check_tiles(*state, WW_QUANT_IQ4_NL, 67, 35, 352);
    check_tiles(*state, WW_QUANT_MXFP4, 67, 35, 352);
    check_tiles(*state, WW_QUANT_IQ4_XS, 67, 35, 512);
}

/* The emulator has three compute units: three tiles are one for each. */
static void tiles_that_park_their_sums_have_the_cpus_bits(void **state)
{
    check_tiles(*state, WW_QUANT_Q4_1, 259, 33, 352);
    check_tiles(*state, WW_QUANT_Q2_K, 259, 33, 512);
    if (!device_is_slow(*state)) {
        check_tiles(*state, WW_QUANT_Q8_0, 1029, 1027, 352);
        check_tiles(*state, WW_QUANT_Q3_K, 4099, 515, 4352);
    }
}

/* Activations that are hard to encode, 256 at a time: the largest magnitude several times, with both signs; halves, which are
 * rounded away from 0 or to even; zeros of both signs; denormals; numbers that barely fit in f16; and numbers just below a
 * half. */
static float awkward(int64_t i)
{
    const int64_t kind = i / 256 % 7, at = i % 256;
    const float sign = i / 256 / 7 % 2 ? -1.0f : 1.0f;
    switch (kind) {
    case 0:
        return at % 32 == 9 ? -127.0f * sign : at % 32 == 22 ? 127.0f * sign : (float)(at % 32) - 15.5f;
    case 1:
        return at == 70 ? 127.0f * sign : at == 71 ? -127.0f * sign : sign * ((float)(at % 120) - 60.5f);
    case 2:
        return at % 2 ? -0.0f : 0.0f;
    case 3:
        return sign * (float)(at - 100) * 0x1p-147f;
    case 4:
        return (at % 3 ? -8.0e6f : 7.9e6f) * sign;
    case 5:
        return at % 32 == 31 ? 127.0f : sign * (0x1.fffffep-2f + (float)(at % 4));
    default:
        return at % 32 == 0 ? sign * 127.0f : 0x1.0p-3f * (float)(at % 9) - 0.5f;
    }
}

/* Columns that start at any float, with a number of elements that is not a multiple of the encoder's unit. */
static float *multiply_from(ww_device *device, ww_quant *q, const float *x, int64_t offset, int64_t n, int64_t k, int64_t rows)
{
    const int64_t shape[2] = {n, k};
    ww_tensor t = {.layout = ww_layout_contiguous(2, shape)};
    ww_tensor out = {0};
    float *y = malloc((size_t)(n * rows) * sizeof *y);
    t.layout.offset = offset;
    CHECK_OK(ww_storage_from_host(device, WW_F32, n * k + offset, x, &t.storage));
    CHECK_OK(ww_quant_matmul(q, &t, &out));
    CHECK_OK(ww_tensor_to_host(&out, y));
    ww_tensor_release(&out);
    ww_storage_release(t.storage);
    return y;
}

static void awkward_activations_are_coded_as_on_a_cpu(void **state)
{
    ww_device *device = *state;
    enum { ROWS = 3, N = 37, K = 1280 + 256, OFFSETS = 2 };
    static const ww_quant_type types[] = {WW_QUANT_Q4_1, WW_QUANT_Q8_0, WW_QUANT_Q4_K, WW_QUANT_Q6_K};
    ww_device *cpu;
    float *w = quant_normals(3, ROWS * K), *x = malloc((N * K + OFFSETS) * sizeof *x);
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int64_t i = 0; i < N * K + OFFSETS; i++)
        x[i] = awkward(i);
    for (int t = 0; t < 4; t++)
        for (int64_t offset = 0; offset < OFFSETS; offset++) {
            ww_quant *here, *there;
            CHECK_OK(ww_quant_from_f32(cpu, types[t], w, ROWS, K, 0, &here));
            CHECK_OK(ww_quant_from_f32(*state, types[t], w, ROWS, K, 0, &there));
            float *y = multiply_from(cpu, here, x, offset, N, K, ROWS);
            for (int c = 0; c < 2; c++) {
                pretend_sm_90a(device, c == 1);
                float *z = multiply_from(*state, there, x, offset, N, K, ROWS);
                for (int64_t i = 0; i < N * ROWS; i++)
                    if (memcmp(&y[i], &z[i], sizeof *y) != 0)
                        fail_msg("type %d, from float %d on, wgmma %d: result %d is %a, on the CPU %a", (int)types[t],
                                 (int)offset, c, (int)i, (double)z[i], (double)y[i]);
                free(z);
            }
            pretend_nothing(device);
            free(y);
            ww_quant_destroy(there);
            ww_quant_destroy(here);
        }
    ww_device_close(cpu);
    free(x);
    free(w);
}

/* Results on the device and on a CPU with the same f16 or bf16, from number `offset` on. */
static void check_halves(ww_device *device, ww_device *cpu, ww_quant_type type, ww_dtype dtype, int64_t n, int64_t offset)
{
    enum { ROWS = 3, K = 512 };
    float *w = quant_normals(5, ROWS * K), *x = quant_normals(6, n * K + offset), *y[2];
    const int64_t all[1] = {n * K + offset}, shape[2] = {n, K};
    for (int on = 0; on < 2; on++) {
        ww_device *where = on ? device : cpu;
        ww_quant *q;
        ww_tensor halves = {0}, out = {0};
        ww_tensor given = {.layout = ww_layout_contiguous(1, all)};
        y[on] = malloc((size_t)(n * ROWS) * sizeof(float));
        CHECK_OK(ww_quant_from_f32(where, type, w, ROWS, K, 0, &q));
        CHECK_OK(ww_storage_from_host(where, WW_F32, n * K + offset, x, &given.storage));
        CHECK_OK(ww_tensor_cast(&given, dtype, &halves));
        ww_tensor t = {.storage = halves.storage, .layout = ww_layout_contiguous(2, shape)};
        t.layout.offset = offset;
        CHECK_OK(ww_quant_matmul(q, &t, &out));
        CHECK_OK(ww_tensor_to_host(&out, y[on]));
        ww_tensor_release(&out);
        ww_tensor_release(&halves);
        ww_storage_release(given.storage);
        ww_quant_destroy(q);
    }
    if (memcmp(y[0], y[1], (size_t)(n * ROWS) * sizeof(float)) != 0)
        fail_msg("type %d, dtype %d, %d columns, from number %d on: not the CPU's bits", (int)type, (int)dtype, (int)n,
                 (int)offset);
    free(y[1]);
    free(y[0]);
    free(x);
    free(w);
}

/* Also with a number of columns whose last part is small. */
static void activations_of_16_bits_are_coded_as_they_are(void **state)
{
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int64_t offset = 0; offset < 8; offset += 3) {
        check_halves(*state, cpu, WW_QUANT_Q4_1, WW_F16, 37, offset);
        check_halves(*state, cpu, WW_QUANT_Q4_K, WW_BF16, 37, offset);
    }
    check_halves(*state, cpu, WW_QUANT_Q4_0, WW_BF16, 7, 1);
    if (!device_is_slow(*state))
        check_halves(*state, cpu, WW_QUANT_Q8_0, WW_F16, 4096 + 5, 0);
    ww_device_close(cpu);
}

static void activations_of_16_bits_that_are_not_finite_are_refused(void **state)
{
    enum { N = 40, K = 256 };
    float *x = quant_normals(7, N * K);
    const int64_t shape[2] = {N, K};
    ww_tensor t = {.layout = ww_layout_contiguous(2, shape)}, halves = t;
    ww_quant *q;
    ww_tensor out = {0};
    x[33 * K + 70] = INFINITY;
    CHECK_OK(ww_quant_from_f32(*state, WW_QUANT_Q8_0, x, 2, K, 0, &q));
    CHECK_OK(ww_storage_from_host(*state, WW_F32, N * K, x, &t.storage));
    CHECK_OK(ww_tensor_cast(&t, WW_F16, &halves));
    assert_int_equal(ww_quant_matmul(q, &halves, &out), WW_INVALID_ARGUMENT);
    assert_non_null(strstr(ww_error_message(), "block 266 "));
    ww_storage_release(halves.storage);
    ww_storage_release(t.storage);
    ww_quant_destroy(q);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_shared_by_blocks_of_threads_have_the_cpus_bits),
        cmocka_unit_test(tiles_that_park_their_sums_have_the_cpus_bits),
        cmocka_unit_test(awkward_activations_are_coded_as_on_a_cpu),
        cmocka_unit_test(activations_of_16_bits_are_coded_as_they_are),
        cmocka_unit_test(activations_of_16_bits_that_are_not_finite_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("quant tile", tests);
}
