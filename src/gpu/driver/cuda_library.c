/* Opens libcuda.so.1, or the file that WARPWAVE_CUDA_LIBRARY names, once per process, and translates NVIDIA's numbers.
 */
#include "gpu/driver/cuda_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system/environment.h"
#include "base/text.h"

enum {
    NOT_LOADED = -1 /* the library is missing; NVIDIA's numbers start at 0 */
};

/* A process loads the library once, and starts it once in each process of a fork. */
cuda_library cuda;
_Atomic process_mark cuda_started_in;
static pthread_once_t cuda_once = PTHREAD_ONCE_INIT;

/* Of each thread: the call that failed last there. */
static _Thread_local const char *failed_call = "";
_Thread_local char cuda_detail[DRIVER_DETAIL_BYTES];

int cuda_answer(const char *call, int number)
{
    if (number != NV_SUCCESS) {
        failed_call = call;
        cuda_detail[0] = '\0';
    }
    return number;
}

/* ---- loading ------------------------------------------------------------------------------------------------------------- */

const char *cuda_error_name(int number)
{
    const char *name = NULL;
    if (number == NOT_LOADED)
        return "library not loaded";
    if (cuda.error_name == NULL || cuda.error_name(number, &name) != NV_SUCCESS || name == NULL)
        return "an error without a name";
    return name;
}

static bool find_symbols(void)
{
    const char *missing = NULL;
#define FUNCTION(name, symbol, parameters)                                                                                     \
    *(void **)&cuda.name = dlsym(cuda.handle, #symbol);                                                                        \
    if (cuda.name == NULL && missing == NULL)                                                                                  \
        missing = #symbol;
    CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
    if (missing != NULL) {
        snprintf(cuda.why, sizeof cuda.why, "the CUDA driver has no %s: it is too old or not NVIDIA's; install a newer one",
                 missing);
        return false;
    }
#define FUNCTION(name, symbol, parameters) *(void **)&cuda.name = dlsym(cuda.handle, #symbol);
    CUDA_OPTIONAL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return true;
}

static const char *init_advice(int number)
{
    switch (number) {
    case NV_ERROR_NO_DEVICE:
        return "the driver is installed, but finds no NVIDIA GPU (CUDA_VISIBLE_DEVICES can hide them)";
    case NV_ERROR_STUB_LIBRARY:
        return "this libcuda is the toolkit's stub; put the driver's own first in the library path";
    case NV_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "the library and the kernel module are of different versions; reboot, or install matching ones";
    default:
        return "the driver could not be started; see whether nvidia-smi works";
    }
}

static void load_once(void)
{
    const char *path;
    cuda.number = NOT_LOADED;
    if (!environment_path("WARPWAVE_CUDA_LIBRARY", &path, cuda.why, sizeof cuda.why))
        return;
    if (path == NULL)
        path = cuda_driver.library;
    cuda.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (cuda.handle == NULL) {
        const char *reason = dlerror();
        snprintf(cuda.why, sizeof cuda.why, "no NVIDIA driver: %s", reason != NULL ? reason : path);
        return;
    }
    if (!find_symbols()) {
        cuda.error_name = NULL;
        dlclose(cuda.handle);
        cuda.handle = NULL;
        return;
    }
    atomic_store(&cuda_started_in, process_here()); /* set first, because a fork may happen in between */
    cuda.number = cuda.init(0);
    if (cuda.number == NV_SUCCESS)
        return;
    atomic_store(&cuda_started_in, 0);
    snprintf(cuda.why, sizeof cuda.why, "cuInit: %s (%d): %s", cuda_error_name(cuda.number), cuda.number,
             init_advice(cuda.number));
}

int cuda_load(char *why, size_t why_capacity)
{
    pthread_once(&cuda_once, load_once);
    text_copy(why, why_capacity, cuda.why);
    return cuda_answer("cuInit", cuda.number);
}

/* ---- what a number means ------------------------------------------------------------------------------------------------- */

driver_error cuda_error_class(int number)
{
    switch (number) {
    case NV_ERROR_OUT_OF_MEMORY:
        return DRIVER_ERROR_MEMORY;
    case NV_ERROR_NOT_FOUND:
        return DRIVER_ERROR_NOT_FOUND;
    case NV_ERROR_UNSUPPORTED_PTX_VERSION:
        return DRIVER_ERROR_TOO_OLD;
    case NV_ERROR_INVALID_IMAGE:
    case NV_ERROR_NO_BINARY_FOR_GPU:
    case NV_ERROR_INVALID_PTX:
    case NV_ERROR_JIT_COMPILER_NOT_FOUND:
    case NV_ERROR_JIT_COMPILATION_DISABLED:
        return DRIVER_ERROR_IMAGE;
    case NV_ERROR_DEINITIALIZED:
    case NV_ERROR_ECC_UNCORRECTABLE:
    case NV_ERROR_NVLINK_UNCORRECTABLE:
    case NV_ERROR_CONTAINED:
    case NV_ERROR_ILLEGAL_ADDRESS:
    case NV_ERROR_LAUNCH_TIMEOUT:
    case NV_ERROR_CONTEXT_IS_DESTROYED:
    case NV_ERROR_ASSERT:
    case NV_ERROR_HARDWARE_STACK_ERROR:
    case NV_ERROR_ILLEGAL_INSTRUCTION:
    case NV_ERROR_MISALIGNED_ADDRESS:
    case NV_ERROR_INVALID_ADDRESS_SPACE:
    case NV_ERROR_INVALID_PC:
    case NV_ERROR_LAUNCH_FAILED:
    case NV_ERROR_TENSOR_MEMORY_LEAK:
    case NV_ERROR_MPS_CLIENT_TERMINATED:
        return DRIVER_ERROR_LOST;
    default:
        return DRIVER_ERROR_OTHER;
    }
}

void cuda_failure(driver_failure *out)
{
    *out = (driver_failure){.call = failed_call, .detail = cuda_detail};
}
