/* A stand-in for libcublas, inside the stand-in for NVIDIA's driver library: handles, and a product that returns a status
 * chosen by the test (STANDIN_CUBLAS_CREATE, STANDIN_CUBLAS_GEMM). It computes nothing, because that stand-in runs no kernels.
 */
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cublasCreate_v2(void **handle);
EXPORT int cublasDestroy_v2(void *handle);
EXPORT int cublasSetStream_v2(void *handle, void *stream);
EXPORT int cublasSetMathMode(void *handle, int mode);
EXPORT int cublasGemmEx(void *handle);
EXPORT int cublasGemmStridedBatchedEx(void *handle);

static int setting(const char *name)
{
    const char *said = getenv(name);
    return said != NULL ? atoi(said) : 0;
}

int cublasCreate_v2(void **handle)
{
    const int number = setting("STANDIN_CUBLAS_CREATE");
    if (number == 0)
        *handle = malloc(1);
    return number;
}

int cublasDestroy_v2(void *handle)
{
    free(handle);
    return 0;
}

int cublasSetStream_v2(void *handle, void *stream)
{
    (void)stream;
    return handle != NULL ? 0 : 1;
}

int cublasSetMathMode(void *handle, int mode)
{
    return handle != NULL && mode == 16 ? 0 : 7; /* no reduced precision in reductions */
}

/* The other parameters are not looked at. */
int cublasGemmEx(void *handle)
{
    return handle != NULL ? setting("STANDIN_CUBLAS_GEMM") : 1;
}

int cublasGemmStridedBatchedEx(void *handle)
{
    return cublasGemmEx(handle);
}
