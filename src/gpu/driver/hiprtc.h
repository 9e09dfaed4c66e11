/* Compiles kernels on this machine with ROCm's compiler (hipRTC): ours, for an AMD chip without embedded code, and the
 * caller's. */
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

/* The same for a source of the caller, which may include the library's headers for kernels and stdint.h, stdbool.h and
 * stddef.h. Of the job only the library and `detail` are used. Returns
 * HIP's "not supported" if there is no hipRTC. `log` gets all that the compiler wrote, to memory_free(), or NULL. */
int hiprtc_compile_source(const hiprtc_job *job, const driver_source *source, driver_compiled *out, char **log);

#endif
