/* Fast products of tensors on ROCm: by rocBLAS, by kernels of ours where it is not installed or says that it cannot, and an
 * error where it fails. */
#include "support/standin.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/blas/rocblas_api.h"
#include "support/data/random.h"
#include "support/process.h"

/* The inner batches, which share a matrix, are one call of rocBLAS, so that there are OUTER of them. K is less than a chunk:
 * sums have one order in all kernels of ours then, those for matrix units included, as the stand-in runs them. */
enum { OUTER = 2, INNER = 3, M = 5, K = 300, N = 7, RESULTS = OUTER * INNER * M * N };

static standin rocm;
static float left[OUTER * INNER * M * K], right[OUTER * K * N];

/* The product with `math` while the stand-in is set so. */
static ww_status multiply(const char *settings, ww_math math, float *y)
{
    const int64_t a_shape[4] = {OUTER, INNER, M, K}, b_shape[4] = {OUTER, 1, K, N};
    ww_tensor a = {.layout = ww_layout_contiguous(4, a_shape)}, b = {.layout = ww_layout_contiguous(4, b_shape)};
    ww_device *device = NULL;
    ww_tensor out = {0};
    rocm.configure("memory=64MiB");
    CHECK_OK(ww_device_open("rocm:0", &device));
    CHECK_OK(ww_storage_from_host(device, WW_F32, sizeof left / sizeof *left, left, &a.storage));
    CHECK_OK(ww_storage_from_host(device, WW_F32, sizeof right / sizeof *right, right, &b.storage));
    rocm.configure(settings);
    ww_status status = ww_tensor_matmul(&a, &b, math, &out);
    assert_int_equal(status == WW_OK, out.storage != NULL);
    if (status == WW_OK)
        status = ww_tensor_to_host(&out, y);
    ww_tensor_release(&out);
    ww_storage_release(a.storage);
    ww_storage_release(b.storage);
    ww_device_close(device);
    assert_null(rocm.misuse());
    assert_int_equal(standin_alive(&rocm), 0);
    return status;
}

/* In a process of its own, because a library is looked for once. */
static void multiply_without_rocblas(void)
{
    static float canonical[RESULTS], fast[RESULTS];
    setenv("WARPWAVE_ROCBLAS_LIBRARY", "/nonexistent/librocblas.so.4", 1);
    EXPECT(multiply("memory=64MiB", WW_MATH_CANONICAL, canonical) == WW_OK);
    EXPECT(multiply("memory=64MiB", WW_MATH_FAST, fast) == WW_OK);
    EXPECT(memcmp(fast, canonical, sizeof fast) == 0);
}

static void a_fast_product_without_rocblas_is_canonical(void **state)
{
    (void)state;
    in_a_process(multiply_without_rocblas, 60);
}

static void a_fast_product_that_rocblas_has_not_is_canonical(void **state)
{
    static const int numbers[] = {AMD_STATUS_NOT_IMPLEMENTED, AMD_STATUS_ARCH_MISMATCH};
    static float canonical[RESULTS], fast[RESULTS], fallen[RESULTS];
    (void)state;
    CHECK_OK(multiply("memory=64MiB", WW_MATH_CANONICAL, canonical));
    CHECK_OK(multiply("memory=64MiB", WW_MATH_FAST, fast));
    assert_memory_not_equal(fast, canonical, sizeof fast); /* it was rocBLAS */
    for (int call = 1; call <= OUTER; call++) {            /* the first, or the last, when half of the results are there */
        char settings[96];
        snprintf(settings, sizeof settings, "memory=64MiB;fail=rocblas_gemm_strided_batched_ex:%d:%d", call, numbers[call % 2]);
        CHECK_OK(multiply(settings, WW_MATH_FAST, fallen));
        assert_memory_equal(fallen, canonical, sizeof fallen);
    }
}

static void a_fast_product_that_fails_otherwise_says_so(void **state)
{
    static float y[RESULTS];
    (void)state;
    for (int call = 1; call <= OUTER; call++) {
        char settings[96];
        snprintf(settings, sizeof settings, "memory=64MiB;fail=rocblas_gemm_strided_batched_ex:%d:%d", call,
                 AMD_STATUS_INTERNAL_ERROR);
        CHECK_FAILS(WW_DRIVER_ERROR, multiply(settings, WW_MATH_FAST, y));
        assert_non_null(strstr(ww_error_message(), "rocblas_gemm_strided_batched_ex"));
    }
}

int main(void)
{
    test_random random = {7};
    if (!standin_open(6, "", &rocm))
        return 0;
    random_normals(&random, left, sizeof left / sizeof *left);
    random_normals(&random, right, sizeof right / sizeof *right);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fast_product_without_rocblas_is_canonical),
        cmocka_unit_test(a_fast_product_that_rocblas_has_not_is_canonical),
        cmocka_unit_test(a_fast_product_that_fails_otherwise_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
