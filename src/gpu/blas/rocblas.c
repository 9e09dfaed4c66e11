/* rocBLAS behind the BLAS table: librocblas.so.5 (ROCm 7), .4 (6), .3 (5.6 and 5.7) or .0 (before), or the file that
 * WARPWAVE_ROCBLAS_LIBRARY names.
 *
 * Atomics are switched off, so that the same call on the same machine gives the same bits. It works on the current HIP device.
 */
#include "gpu/blas/blas.h"

#include "gpu/blas/load.h"
#include "gpu/blas/rocblas_api.h"
#include "gpu/driver/rocm_library.h"

/* A process loads rocBLAS once, with its functions. */
static struct {
#define FUNCTION(name, symbol, parameters) int(*name) parameters; // NOLINT(bugprone-macro-parentheses)
    ROCBLAS_FUNCTIONS(FUNCTION)
#undef FUNCTION
} rocblas; /* filled in once, by load_once() */

static const blas_symbol symbols[] = {
#define FUNCTION(name, symbol, parameters) {#symbol, (void **)&rocblas.name},
    ROCBLAS_FUNCTIONS(FUNCTION)
#undef FUNCTION
        {NULL, NULL},
};
static const char *const files[] = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0", NULL};
static blas_loading loading = {.once = PTHREAD_ONCE_INIT}; /* of the process, as above */

static void load_once(void)
{
    blas_open(&loading, "WARPWAVE_ROCBLAS_LIBRARY", files, rocm_library_open, symbols);
}

static int rocblas_load(char *why, size_t why_capacity)
{
    return blas_loaded(&loading, load_once, why, why_capacity);
}

static int rocblas_create(void *stream, void **handle)
{
    const blas_handle_calls calls = {.create = {"rocblas_create_handle", rocblas.create},
                                     .destroy = rocblas.destroy,
                                     .set_stream = {"rocblas_set_stream", rocblas.set_stream},
                                     .set_mode = {"rocblas_set_atomics_mode", rocblas.set_atomics}};
    return blas_handle_create(&calls, stream, AMD_ATOMICS_NOT_ALLOWED, handle);
}

static int rocblas_destroy(void *handle)
{
    return blas_answer("rocblas_destroy_handle", rocblas.destroy(handle));
}

static const struct {
    int operands, result, compute;
} types[BLAS_TYPES] = {
    [BLAS_F32] = {AMD_DATATYPE_F32, AMD_DATATYPE_F32, AMD_DATATYPE_F32},
    [BLAS_F64] = {AMD_DATATYPE_F64, AMD_DATATYPE_F64, AMD_DATATYPE_F64},
    [BLAS_F16] = {AMD_DATATYPE_F16, AMD_DATATYPE_F16, AMD_DATATYPE_F32},
    [BLAS_BF16] = {AMD_DATATYPE_BF16, AMD_DATATYPE_BF16, AMD_DATATYPE_F32},
    [BLAS_I8] = {AMD_DATATYPE_I8, AMD_DATATYPE_I32, AMD_DATATYPE_I32},
};

static int operation(bool transpose)
{
    return transpose ? AMD_OPERATION_TRANSPOSE : AMD_OPERATION_NONE;
}

/* rocBLAS reads c and writes d; here they are the same matrix. */
static int rocblas_multiply(void *handle, const blas_call *c)
{
    const int in = types[c->type].operands;
    const int out = c->f32_results ? AMD_DATATYPE_F32 : types[c->type].result;
    const int compute = types[c->type].compute;
    if (c->batch == 1)
        return blas_answer("rocblas_gemm_ex",
                           rocblas.gemm(handle, operation(c->transpose_a), operation(c->transpose_b), c->m, c->n, c->k,
                                        c->alpha, c->a, in, c->lda, c->b, in, c->ldb, c->beta, c->c, out, c->ldc, c->c, out,
                                        c->ldc, compute, AMD_GEMM_ALGO_STANDARD, 0, AMD_GEMM_FLAGS_NONE));
    return blas_answer("rocblas_gemm_strided_batched_ex",
                       rocblas.gemm_batched(handle, operation(c->transpose_a), operation(c->transpose_b), c->m, c->n, c->k,
                                            c->alpha, c->a, in, c->lda, c->stride_a, c->b, in, c->ldb, c->stride_b, c->beta,
                                            c->c, out, c->ldc, c->stride_c, c->c, out, c->ldc, c->stride_c, c->batch, compute,
                                            AMD_GEMM_ALGO_STANDARD, 0, AMD_GEMM_FLAGS_NONE));
}

static const char *rocblas_error_name(int number)
{
    static const char *const names[] = {"rocblas_status_success",         "rocblas_status_invalid_handle",
                                        "rocblas_status_not_implemented", "rocblas_status_invalid_pointer",
                                        "rocblas_status_invalid_size",    "rocblas_status_memory_error",
                                        "rocblas_status_internal_error",  "rocblas_status_perf_degraded"};
    if (number >= 0 && number < (int)(sizeof names / sizeof names[0]))
        return names[number];
    switch (number) {
    case AMD_STATUS_INVALID_VALUE:
        return "rocblas_status_invalid_value";
    case AMD_STATUS_EXCLUDED_FROM_BUILD:
        return "rocblas_status_excluded_from_build";
    case AMD_STATUS_ARCH_MISMATCH:
        return "rocblas_status_arch_mismatch";
    default:
        return "an error without a name";
    }
}

static driver_error rocblas_error_class(int number)
{
    switch (number) {
    case AMD_STATUS_MEMORY_ERROR:
        return DRIVER_ERROR_MEMORY;
    case AMD_STATUS_NOT_IMPLEMENTED:
    case AMD_STATUS_EXCLUDED_FROM_BUILD:
    case AMD_STATUS_ARCH_MISMATCH:
        return DRIVER_ERROR_IMAGE;
    default:
        return DRIVER_ERROR_OTHER;
    }
}

const blas_library rocblas_library = {
    .backend = "rocm",
    .name = "rocBLAS",
    .load = rocblas_load,
    .create = rocblas_create,
    .destroy = rocblas_destroy,
    .multiply = rocblas_multiply,
    .error_name = rocblas_error_name,
    .error_class = rocblas_error_class,
};
