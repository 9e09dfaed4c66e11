/* Products of quantized matrices with so many columns that they go by tiles: the CPU's bits from both kinds of tiles, where
 * blocks of threads share a tile and where one takes all accumulators of it in turn.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/quant.h"
#include "support/devices.h"
#include "support/quant_calls.h"

/* Narrow and wide tiles, of a size that no tile divides, and of blocks that eight does not. */
static void check_tiles(ww_device *device, ww_quant_type type, int64_t rows, int64_t n, int64_t k)
{
    ww_device *cpu;
    float *w = quant_normals(1, rows * k), *x = quant_normals(2, n * k);
    CHECK_OK(ww_device_open("cpu", &cpu));
    float *here = quant_multiply(cpu, type, w, rows, x, n, k);
    for (int32_t wide = -1; wide <= 1; wide += 2) {
        gpu_quant_tune(wide);
        float *there = quant_multiply(device, type, w, rows, x, n, k);
        for (int64_t i = 0; i < rows * n; i++)
            if (memcmp(&here[i], &there[i], sizeof *here) != 0)
                fail_msg("type %d, %d x %d times %d, wide %d: result %d is %a, on the CPU %a", (int)type, (int)rows, (int)k,
                         (int)n, (int)wide, (int)i, (double)there[i], (double)here[i]);
        free(there);
    }
    gpu_quant_tune(0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_shared_by_blocks_of_threads_have_the_cpus_bits),
        cmocka_unit_test(tiles_that_park_their_sums_have_the_cpus_bits),
    };
    return RUN_ON_EVERY_DEVICE("quant tile", tests);
}
