/* Compiles kernels of the caller on this machine with CUDA's compiler (NVRTC). The library's own need none: the driver compiles
 * PTX. */
#ifndef WW_GPU_DRIVER_NVRTC_H
#define WW_GPU_DRIVER_NVRTC_H

#include "gpu/driver/driver.h"

/* Compiles a source for source->arch ("sm_90") to a cubin, or finds it in the cache (code_cache.h). NVRTC is libnvrtc.so.13,
 * .12 or .11.2 where the loader looks, in CUDA_PATH/lib64 or in /usr/local/cuda/lib64, or the file that WARPWAVE_NVRTC_LIBRARY
 * names. Returns 0, or CUDA's number for "no code for this GPU", "not supported" (there is no NVRTC) or "out
 * of memory", with the reason in `detail`. `log` gets all that the compiler wrote, to memory_free(), or NULL. Takes seconds. */
int nvrtc_compile_source(const driver_source *source, driver_compiled *out, char **log, char *detail, size_t detail_capacity);

#endif
