/* Compiles kernels on this machine for an AMD chip without embedded code, with ROCm's compiler (hipRTC). */
#ifndef WW_GPU_DRIVER_HIPRTC_H
#define WW_GPU_DRIVER_HIPRTC_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/driver/driver.h"

typedef struct hiprtc_job {
    void *hip_library; /* the open libamdhip64, which has the compiler's functions until ROCm 6; from 7 on they are in
                        * libhiprtc.so, or in the file that WARPWAVE_HIPRTC_LIBRARY names */
    const char *module;
    const char *arch; /* the chip */
    bool anew;        /* the cached code is bad: it is removed and replaced */
    char *detail;     /* gets the reason of a failure */
    size_t detail_capacity;
} hiprtc_job;

/* Compiles the embedded source of a module, or finds it in the cache (code_cache.h). Returns 0, or HIP's number for "no code
 * for this GPU" or "out of memory". Takes seconds. */
int hiprtc_compile(const hiprtc_job *job, driver_compiled *out);

#endif
