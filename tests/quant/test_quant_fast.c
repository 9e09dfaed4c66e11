/* Fast products of quantized matrices on ROCm: by rocBLAS, and by kernels of ours where it is not installed or says that it
 * cannot: for matrix units where the chip has them, canonical where not. Which chips take which way for how many columns is in
 * tests/rocm/test_rocm_fast.c. */
#include "support/standin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/blas/rocblas_api.h"
#include "gpu/device.h"
#include "support/data/random.h"
#include "support/process.h"

enum { ROWS = 20, COLUMNS = 40, COLS = 256 };

static standin rocm;
static float weights[ROWS * COLS], values[COLUMNS * COLS];
static bool matrix_units; /* has the chip any? */

/* The product with `math` and these settings of the stand-in. */
static ww_status multiply(const char *settings, ww_math math, float *y)
{
    const int64_t shape[2] = {COLUMNS, COLS};
    ww_tensor x = {.layout = ww_layout_contiguous(2, shape)};
    ww_quant_product options = ww_quant_product_default();
    ww_device *device = NULL;
    ww_quant *matrix = NULL;
    ww_tensor out = {0};
    options.math = math;
    rocm.configure("memory=64MiB");
    CHECK_OK(ww_device_open("rocm:0", &device));
    matrix_units = gpu_of(device)->capabilities.matrix_f16;
    device->tuning.quant_bf16 = TUNING_ALWAYS; /* with so few columns integers are faster */
    CHECK_OK(ww_quant_from_f32(device, WW_QUANT_Q8_0, weights, ROWS, COLS, 0, &matrix));
    CHECK_OK(ww_storage_from_host(device, WW_F32, (int64_t)COLUMNS * COLS, values, &x.storage));
    rocm.configure(settings);
    ww_status status = ww_quant_multiply(matrix, &x, &options, &out);
    if (status == WW_OK)
        status = ww_tensor_to_host(&out, y);
    ww_tensor_release(&out);
    ww_storage_release(x.storage);
    ww_quant_destroy(matrix);
    ww_device_close(device);
    assert_null(rocm.misuse());
    assert_int_equal(standin_alive(&rocm), 0);
    return status;
}

/* Are all results within `part` of the sum of the products' sizes of each other? */
static bool are_near(const float *a, const float *b, double part)
{
    bool near = true;
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < ROWS; j++) {
            double sizes = 0;
            for (int k = 0; k < COLS; k++)
                sizes += fabs((double)values[i * COLS + k] * (double)weights[j * COLS + k]);
            near &= fabs((double)a[i * ROWS + j] - (double)b[i * ROWS + j]) <= part * sizes;
        }
    return near;
}

static void check_fallback(int number)
{
    static float canonical[ROWS * COLUMNS], fast[ROWS * COLUMNS], fallen[ROWS * COLUMNS];
    char settings[96];
    snprintf(settings, sizeof settings, "memory=64MiB;fail=rocblas_gemm_ex:1:%d", number);
    CHECK_OK(multiply("memory=64MiB", WW_MATH_CANONICAL, canonical));
    CHECK_OK(multiply("memory=64MiB", WW_MATH_FAST, fast));
    assert_memory_not_equal(fast, canonical, sizeof fast); /* it was rocBLAS */
    CHECK_OK(multiply(settings, WW_MATH_FAST, fallen));
    if (matrix_units) /* the same numbers, summed in another order: twice the stated error; sizes are a little off, by bf16 */
        assert_true(are_near(fallen, fast, 2 * 1.05 * COLS * 0x1p-23));
    else
        assert_memory_equal(fallen, canonical, sizeof fallen);
}

static void a_fast_product_that_rocblas_has_not_is_by_kernels_of_ours(void **state)
{
    (void)state;
    check_fallback(AMD_STATUS_NOT_IMPLEMENTED);
    check_fallback(AMD_STATUS_ARCH_MISMATCH);
}

/* In a separate process, because a library is only looked for once. */
static void multiply_without_rocblas(void)
{
    static float canonical[ROWS * COLUMNS], fast[ROWS * COLUMNS];
    setenv("WARPWAVE_ROCBLAS_LIBRARY", "/nonexistent/librocblas.so.4", 1);
    EXPECT(multiply("memory=64MiB", WW_MATH_CANONICAL, canonical) == WW_OK);
    EXPECT(multiply("memory=64MiB", WW_MATH_FAST, fast) == WW_OK);
    /* One has activations of 8 bits a block, the other numbers of 8 bits each. */
    EXPECT((memcmp(fast, canonical, sizeof fast) != 0) == matrix_units);
    EXPECT(are_near(fast, canonical, 0x1p-6));
}

static void a_fast_product_without_rocblas_is_by_kernels_of_ours(void **state)
{
    (void)state;
    in_a_process(multiply_without_rocblas, 60);
    (void)ww_backend_absence("rocm"); /* starts the runtime here, which happens once for a process, and after its children */
}

static void a_fast_product_that_fails_otherwise_says_so(void **state)
{
    static float y[ROWS * COLUMNS];
    char settings[96];
    (void)state;
    snprintf(settings, sizeof settings, "memory=64MiB;fail=rocblas_gemm_ex:1:%d", AMD_STATUS_INTERNAL_ERROR);
    CHECK_FAILS(WW_DRIVER_ERROR, multiply(settings, WW_MATH_FAST, y));
    assert_non_null(strstr(ww_error_message(), "rocblas_gemm_ex"));
}

int main(void)
{
    test_random random = {7};
    if (!standin_open(6, "", &rocm))
        return 0;
    random_normals(&random, weights, (int64_t)ROWS * COLS);
    random_normals(&random, values, (int64_t)COLUMNS * COLS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fast_product_without_rocblas_is_by_kernels_of_ours),
        cmocka_unit_test(a_fast_product_that_rocblas_has_not_is_by_kernels_of_ours),
        cmocka_unit_test(a_fast_product_that_fails_otherwise_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
