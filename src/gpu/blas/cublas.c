/* cuBLAS behind the BLAS table: libcublas.so.13 or .12, or the file that WARPWAVE_CUBLAS_LIBRARY names.
 *
 * It uses the default math mode: f32 is multiplied as f32, without the tensor cores' shorter format. It works in the current
 * CUDA context.
 */
#include "gpu/blas/blas.h"

#include <dlfcn.h>

#include "gpu/blas/cublas_api.h"
#include "gpu/blas/load.h"

/* A process loads cuBLAS once, with its functions. */
static struct {
#define FUNCTION(name, symbol, parameters) int(*name) parameters; // NOLINT(bugprone-macro-parentheses)
    CUBLAS_FUNCTIONS(FUNCTION)
#undef FUNCTION
} cublas; /* filled in once, by load_once() */

static const blas_symbol symbols[] = {
#define FUNCTION(name, symbol, parameters) {#symbol, (void **)&cublas.name},
    CUBLAS_FUNCTIONS(FUNCTION)
#undef FUNCTION
        {NULL, NULL},
};
static const char *const files[] = {"libcublas.so.13", "libcublas.so.12", NULL};
static blas_loading loading = {.once = PTHREAD_ONCE_INIT}; /* of the process, as above */

static void *open_now(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static void load_once(void)
{
    blas_open(&loading, "WARPWAVE_CUBLAS_LIBRARY", files, open_now, symbols);
}

static int cublas_load(char *why, size_t why_capacity)
{
    return blas_loaded(&loading, load_once, why, why_capacity);
}

static int cublas_create(void *stream, void **handle)
{
    const blas_handle_calls calls = {.create = {"cublasCreate", cublas.create},
                                     .destroy = cublas.destroy,
                                     .set_stream = {"cublasSetStream", cublas.set_stream},
                                     .set_mode = {"cublasSetMathMode", cublas.set_math}};
    return blas_handle_create(&calls, stream, NV_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, handle);
}

static int cublas_destroy(void *handle)
{
    return blas_answer("cublasDestroy", cublas.destroy(handle));
}

static const struct {
    int operands, result, compute;
} types[BLAS_TYPES] = {
    [BLAS_F32] = {NV_R_32F, NV_R_32F, NV_COMPUTE_32F}, [BLAS_F64] = {NV_R_64F, NV_R_64F, NV_COMPUTE_64F},
    [BLAS_F16] = {NV_R_16F, NV_R_16F, NV_COMPUTE_32F}, [BLAS_BF16] = {NV_R_16BF, NV_R_16BF, NV_COMPUTE_32F},
    [BLAS_I8] = {NV_R_8I, NV_R_32I, NV_COMPUTE_32I},
};

static int operation(bool transpose)
{
    return transpose ? NV_OP_T : NV_OP_N;
}

static int cublas_multiply(void *handle, const blas_call *c)
{
    const int in = types[c->type].operands;
    const int out = c->f32_results ? NV_R_32F : types[c->type].result;
    const int compute = c->type == BLAS_F32 && c->rough ? NV_COMPUTE_32F_FAST_TF32 : types[c->type].compute;
    if (c->batch == 1)
        return blas_answer("cublasGemmEx", cublas.gemm(handle, operation(c->transpose_a), operation(c->transpose_b), c->m, c->n,
                                                       c->k, c->alpha, c->a, in, c->lda, c->b, in, c->ldb, c->beta, c->c, out,
                                                       c->ldc, compute, NV_GEMM_DEFAULT));
    return blas_answer("cublasGemmStridedBatchedEx",
                       cublas.gemm_batched(handle, operation(c->transpose_a), operation(c->transpose_b), c->m, c->n, c->k,
                                           c->alpha, c->a, in, c->lda, c->stride_a, c->b, in, c->ldb, c->stride_b, c->beta,
                                           c->c, out, c->ldc, c->stride_c, c->batch, compute, NV_GEMM_DEFAULT));
}

static const char *cublas_error_name(int number)
{
    switch (number) {
    case NV_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case NV_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case NV_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case NV_STATUS_ARCH_MISMATCH:
        return "CUBLAS_STATUS_ARCH_MISMATCH";
    case NV_STATUS_MAPPING_ERROR:
        return "CUBLAS_STATUS_MAPPING_ERROR";
    case NV_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case NV_STATUS_INTERNAL_ERROR:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    case NV_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
        return "an error without a name";
    }
}

static driver_error cublas_error_class(int number)
{
    switch (number) {
    case NV_STATUS_ALLOC_FAILED:
        return DRIVER_ERROR_MEMORY;
    case NV_STATUS_ARCH_MISMATCH:
    case NV_STATUS_NOT_SUPPORTED:
        return DRIVER_ERROR_IMAGE;
    default:
        return DRIVER_ERROR_OTHER;
    }
}

const blas_library cublas_library = {
    .backend = "cuda",
    .name = "cuBLAS",
    .load = cublas_load,
    .create = cublas_create,
    .destroy = cublas_destroy,
    .multiply = cublas_multiply,
    .error_name = cublas_error_name,
    .error_class = cublas_error_class,
};
