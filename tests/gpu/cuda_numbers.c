/* Compares the numbers and structs of src/gpu/driver/cuda_api.h with NVIDIA's cuda.h. check-cuda-numbers compiles and runs it
 * if that header is installed. Prints differences, and exits with 1 if there are any. */
#include <stdio.h>

#include <cuda.h>
#if __has_include(<cublas_api.h>)
#include <cublas_api.h>
#define HAVE_CUBLAS 1
#endif

#include "gpu/blas/cublas_api.h"
#include "gpu/driver/cuda_api.h"

static const struct {
    const char *name;
    int ours, theirs;
} numbers[] = {
#define BOTH(ours, theirs)           {#ours, (int)(ours), (int)(theirs)}
#define NUMBER(ours, theirs, number) BOTH(ours, (intptr_t)(theirs)),
    CUDA_NUMBERS(NUMBER)
#ifdef HAVE_CUBLAS
        CUBLAS_NUMBERS(NUMBER)
#endif
#undef NUMBER
            BOTH(NV_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 1, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
    BOTH(NV_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 2, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
    BOTH(NV_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 1, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
    BOTH(NV_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 2, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
    BOTH(sizeof(nv_launch_attribute), sizeof(CUlaunchAttribute)),
    BOTH(offsetof(nv_launch_attribute, value), offsetof(CUlaunchAttribute, value)),
    BOTH(sizeof(nv_launch_config), sizeof(CUlaunchConfig)),
    BOTH(offsetof(nv_launch_config, stream), offsetof(CUlaunchConfig, hStream)),
    BOTH(offsetof(nv_launch_config, attribute_count), offsetof(CUlaunchConfig, numAttrs)),
    BOTH(sizeof(nv_address), sizeof(CUdeviceptr)),
    BOTH(sizeof(int), sizeof(CUdevice)),
    BOTH(sizeof(int), sizeof(CUresult)),
    BOTH(sizeof(int), sizeof(CUjit_option)),
};

int main(int count, char **arguments)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].ours != numbers[i].theirs) {
            fprintf(stderr, "%s is %d, and in cuda.h %d\n", numbers[i].name, numbers[i].ours, numbers[i].theirs);
            wrong = 1;
        }
    printf("%d numbers are those of %s, which is of CUDA %d.%d\n", (int)(sizeof numbers / sizeof numbers[0]),
           count > 1 ? arguments[1] : "cuda.h", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    return wrong;
}
