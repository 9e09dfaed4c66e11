/* Kernels for an AMD chip that none were embedded for: compiled on this machine, by the compiler that ROCm brings (hipRTC). */
#ifndef WW_GPU_DRIVER_HIPRTC_H
#define WW_GPU_DRIVER_HIPRTC_H

#include <stddef.h>

/* Compiles the embedded source of `module` for the chip `arch`, or finds that it was done before (code_cache.h). Returns 0 and
 * the code object in `image`, to be given back with memory_free(); or HIP's number for "no code for this GPU" or "out of
 * memory", with the reason in `detail`. `hip_library` is the open libamdhip64, which has the compiler's functions until
 * ROCm 6; from 7 on they are in libhiprtc.so, or in the file that WARPWAVE_HIPRTC_LIBRARY names. Takes seconds. */
int hiprtc_compile(void *hip_library, const char *module, const char *arch, void **image, size_t *bytes, char *detail,
                   size_t detail_capacity);

#endif
