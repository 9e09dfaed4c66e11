/* Fast products of quantized matrices on ROCm: by rocBLAS, and canonical where it says that it cannot. */
#include "support/standin.h"

#include <string.h>

#include "gpu/blas/rocblas_api.h"
#include "support/data/random.h"

enum { ROWS = 20, COLUMNS = 40, COLS = 256 };

static standin rocm;
static float weights[ROWS * COLS], values[COLUMNS * COLS];

/* The product with `math` while the stand-in is set so. */
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

static void check_fallback(int number)
{
    static float canonical[ROWS * COLUMNS], fast[ROWS * COLUMNS], fallen[ROWS * COLUMNS];
    char settings[96];
    snprintf(settings, sizeof settings, "memory=64MiB;fail=rocblas_gemm_ex:1:%d", number);
    CHECK_OK(multiply("memory=64MiB", WW_MATH_CANONICAL, canonical));
    CHECK_OK(multiply("memory=64MiB", WW_MATH_FAST, fast));
    assert_memory_not_equal(fast, canonical, sizeof fast); /* it was rocBLAS */
    CHECK_OK(multiply(settings, WW_MATH_FAST, fallen));
    assert_memory_equal(fallen, canonical, sizeof fallen);
}

static void a_fast_product_that_rocblas_has_not_is_canonical(void **state)
{
    (void)state;
    check_fallback(AMD_STATUS_NOT_IMPLEMENTED);
    check_fallback(AMD_STATUS_ARCH_MISMATCH);
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
    (void)ww_backend_absence("rocm"); /* starts the runtime, which happens once for a process */
    random_normals(&random, weights, (int64_t)ROWS * COLS);
    random_normals(&random, values, (int64_t)COLUMNS * COLS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fast_product_that_rocblas_has_not_is_canonical),
        cmocka_unit_test(a_fast_product_that_fails_otherwise_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
