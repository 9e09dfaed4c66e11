/* Products of few rows with few columns have the CPU's bits for any number of thread blocks that share the rows. */
#include <stdlib.h>
#include <string.h>

#include "support/calls/quant.h"
#include "support/data/golden.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

/* With `splits` thread blocks for the same rows, if rows can be shared at all. */
static void check_splits(ww_device *device, const golden_type *type, int64_t rows, int64_t n, int64_t k)
{
    ww_device *cpu;
    float *w = quant_normals(1, rows * k), *x = quant_normals(2, n * k);
    CHECK_OK(ww_device_open("cpu", &cpu));
    float *here = quant_multiply(cpu, type->type, w, rows, x, n, k);
    for (int32_t splits = 0; splits <= 8; splits = splits ? splits * 2 : 1) {
        pretend_gemv_splits(device, splits);
        float *there = quant_multiply(device, type->type, w, rows, x, n, k);
        pretend_gemv_splits(device, 0);
        for (int64_t i = 0; i < rows * n; i++)
            if (memcmp(&here[i], &there[i], sizeof *here) != 0)
                fail_msg("%s, %d x %d times %d, %d splits: result %d is %a, on the CPU %a", type->name, (int)rows, (int)k,
                         (int)n, (int)splits, (int)i, (double)there[i], (double)here[i]);
        free(there);
    }
    free(here);
    free(x);
    free(w);
    ww_device_close(cpu);
}

static void rows_shared_by_blocks_of_threads_have_the_cpus_bits(void **state)
{
    static const int64_t rows[] = {1, 7, 64, 100, 513}, lengths[] = {256, 2304, 768, 512, 256};
    const bool quick = device_is_quick_gpu(*state);
    int64_t n = 1;
    for (const golden_type *t = golden_types; t->name; t++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            if (!quick && rows[r] > 16 && (n + (int64_t)r) % 4 != 0) {
                n = n % 8 + 1;
                continue;
            }
            check_splits(*state, t, rows[r], n, lengths[r]);
            if (quick)
                check_splits(*state, t, rows[r], 9 - n, 14336);
            n = n % 8 + 1;
        }
}

/* A number of blocks that is not a multiple of eight and exceeds a stage. */
static void rows_of_any_number_of_blocks_are_shared(void **state)
{
    for (const golden_type *t = golden_types; t->name; t++)
        if (t->type == WW_QUANT_Q4_0 || t->type == WW_QUANT_Q5_1 || t->type == WW_QUANT_Q8_0)
            for (int64_t k = 32; k <= 4192; k += 1248)
                check_splits(*state, t, 5, 3, k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_shared_by_blocks_of_threads_have_the_cpus_bits),
        cmocka_unit_test(rows_of_any_number_of_blocks_are_shared),
    };
    return RUN_ON_EVERY_DEVICE("quant split", tests);
}
