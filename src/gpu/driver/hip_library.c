/* Opens libamdhip64.so of ROCm 7, 6 or 5, or the file that WARPWAVE_HIP_LIBRARY names, once per process, and translates AMD's
 * numbers. */
#include "gpu/driver/hip_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/environment.h"
#include "base/text.h"
#include "gpu/driver/rocm_library.h"

enum { NOT_LOADED = -1 }; /* the library is missing; AMD's numbers start at 0 */

/* A process loads the library once, and starts it once in each process of a fork. */
hip_library hip;
_Atomic process_mark hip_started_in;
static pthread_once_t hip_once = PTHREAD_ONCE_INIT;

/* Of each thread: the call that failed last there. */
static _Thread_local const char *failed_call = "";
_Thread_local char hip_detail[DRIVER_DETAIL_BYTES];

int hip_answer(const char *call, int number)
{
    if (number != AMD_SUCCESS) {
        failed_call = call;
        hip_detail[0] = '\0';
        (void)hip.last_error();
    }
    return number;
}

void hip_failed_elsewhere(const char *call)
{
    failed_call = call;
}

/* ---- loading ------------------------------------------------------------------------------------------------------------- */

const char *hip_error_name(int number)
{
    if (number == NOT_LOADED)
        return "library not loaded";
    if (number == HIP_NO_CHIP)
        return "no chip named";
    const char *name = hip.error_name != NULL ? hip.error_name(number) : NULL;
    return name != NULL ? name : "an error without a name";
}

static const char *find_symbols(void)
{
    const char *missing = NULL;
#define FUNCTION(name, symbol, parameters)                                                                                     \
    *(void **)&hip.name = dlsym(hip.handle, #symbol);                                                                          \
    if (hip.name == NULL && missing == NULL)                                                                                   \
        missing = #symbol;
    HIP_FUNCTIONS(FUNCTION)
#undef FUNCTION
#define FUNCTION(name, symbol, parameters) *(void **)&hip.name = dlsym(hip.handle, #symbol);
    HIP_PROPERTIES_FUNCTIONS(FUNCTION)
    HIP_OPTIONAL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    if (hip.properties_6 == NULL && hip.properties_5 == NULL && missing == NULL)
        missing = "hipGetDeviceProperties";
    *(void **)&hip.error_name = dlsym(hip.handle, "hipGetErrorName");
    *(void **)&hip.last_error = dlsym(hip.handle, "hipGetLastError");
    if ((hip.error_name == NULL || hip.last_error == NULL) && missing == NULL)
        missing = "hipGetErrorName";
    return missing;
}

/* Opens one runtime. If it lacks symbols, the search goes on, because an older one may have them. */
static void open_runtime(const char *name)
{
    char reason[256];
    hip.handle = rocm_library_open(name);
    const char *missing = hip.handle != NULL ? find_symbols() : NULL;
    if (hip.handle != NULL && missing == NULL)
        return;
    if (hip.handle == NULL) {
        const char *said = dlerror();
        text_copy(reason, sizeof reason, said != NULL ? said : "it cannot be opened");
    } else {
        snprintf(reason, sizeof reason, "%s has no %s: it is too old or not AMD's; install ROCm 5.2 or newer", name, missing);
        hip.error_name = NULL;
        dlclose(hip.handle);
        hip.handle = NULL;
    }
    text_append(hip.why, sizeof hip.why, reason);
}

/* Opens the newest installed runtime, or the one that WARPWAVE_HIP_LIBRARY names. On failure hip.why has the reason. */
static void open_library(void)
{
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};
    const char *path;
    if (!environment_path("WARPWAVE_HIP_LIBRARY", &path, hip.why, sizeof hip.why))
        return;
    text_copy(hip.why, sizeof hip.why, "no ROCm runtime");
    for (size_t i = 0; hip.handle == NULL && i < (path != NULL ? 1 : sizeof names / sizeof names[0]); i++) {
        text_append(hip.why, sizeof hip.why, i == 0 ? ": " : "; ");
        open_runtime(path != NULL ? path : names[i]);
    }
}

/* Advice for a runtime that sees no device, because its own message has none. */
static const char *device_advice(void)
{
    if (access("/dev/kfd", F_OK) != 0)
        return "there is no /dev/kfd: no AMD GPU, or its kernel driver (amdgpu) is not loaded";
    if (access("/dev/kfd", R_OK | W_OK) != 0)
        return "this user may not open /dev/kfd; it belongs to the group render as a rule";
    return "the driver is loaded, but the runtime finds no GPU it supports (HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES can "
           "hide them)";
}

/* hipInit of ROCm 5 returns "invalid device" if there is none; counting devices gives the right error. */
static void start(void)
{
    int count = 0;
    hip.starting = "hipInit";
    atomic_store(&hip_started_in, process_here()); /* set first, because a fork may happen in between */
    hip.number = hip.init(0);
    const int counted = hip.number != AMD_SUCCESS ? hip.device_count(&count) : AMD_SUCCESS;
    if (counted != AMD_SUCCESS) {
        hip.starting = "hipGetDeviceCount";
        hip.number = counted;
    }
    if (hip.number == AMD_SUCCESS) {
        hip.why[0] = '\0';
        return;
    }
    atomic_store(&hip_started_in, 0);
    (void)hip.last_error();
    const bool absent = hip.number == AMD_ERROR_NO_DEVICE || hip.number == AMD_ERROR_INVALID_DEVICE;
    snprintf(hip.why, sizeof hip.why, "%s: %s (%d): %s", hip.starting, hip_error_name(hip.number), hip.number,
             absent ? device_advice() : "the ROCm runtime could not be started; see whether rocminfo works");
}

static void load_once(void)
{
    hip.number = NOT_LOADED;
    hip.starting = "";
    open_library();
    if (hip.handle != NULL)
        start();
}

int hip_load(char *why, size_t why_capacity)
{
    pthread_once(&hip_once, load_once);
    text_copy(why, why_capacity, hip.why);
    if (hip.number != AMD_SUCCESS)
        failed_call = hip.starting;
    return hip.number;
}

/* ---- what a number means ------------------------------------------------------------------------------------------------- */

driver_error hip_error_class(int number)
{
    switch (number) {
    case AMD_ERROR_OUT_OF_MEMORY:
        return DRIVER_ERROR_MEMORY;
    case AMD_ERROR_NOT_FOUND:
        return DRIVER_ERROR_NOT_FOUND;
    case AMD_ERROR_INVALID_IMAGE:
    case AMD_ERROR_NO_BINARY_FOR_GPU:
    case AMD_ERROR_INVALID_KERNEL_FILE:
    case AMD_ERROR_SHARED_OBJECT_INIT_FAILED: /* the loader refused the code */
        return DRIVER_ERROR_IMAGE;
    case AMD_ERROR_DEINITIALIZED:
    case AMD_ERROR_ECC_NOT_CORRECTABLE:
    case AMD_ERROR_ILLEGAL_ADDRESS:
    case AMD_ERROR_LAUNCH_TIMEOUT:
    case AMD_ERROR_CONTEXT_IS_DESTROYED:
    case AMD_ERROR_ASSERT:
    case AMD_ERROR_LAUNCH_FAILURE:
        return DRIVER_ERROR_LOST;
    default:
        return DRIVER_ERROR_OTHER;
    }
}

void hip_failure(driver_failure *out)
{
    *out = (driver_failure){.call = failed_call, .detail = hip_detail};
}
