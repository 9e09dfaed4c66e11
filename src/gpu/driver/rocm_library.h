/* Opens ROCm's libraries. */
#ifndef WW_GPU_DRIVER_ROCM_LIBRARY_H
#define WW_GPU_DRIVER_ROCM_LIBRARY_H

/* Opens library `name` where the loader looks, or in the folder lib of ROCM_PATH, or of ROCM_HOME if that is not set, or of
 * /opt/rocm if neither is. NULL if it is in neither place; dlerror() then has the reason. */
void *rocm_library_open(const char *name);

#endif
