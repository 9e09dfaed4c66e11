/* Opens ROCm's libraries. */
#ifndef WW_GPU_DRIVER_ROCM_LIBRARY_H
#define WW_GPU_DRIVER_ROCM_LIBRARY_H

/* Opens library `name` where the loader looks, or in the folder lib of ROCM_PATH, or of ROCM_HOME if that is not set. If
 * neither is: among AMD's pip packages in the Python environment that VIRTUAL_ENV names, in /opt/rocm/lib, or in the newest
 * /opt/rocm-VERSION/lib. NULL if it is in none of these; dlerror() then has the reason. */
void *rocm_library_open(const char *name);

#endif
