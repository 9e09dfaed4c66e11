/* Opening ROCm's libraries, wherever AMD's packages put them. */
#ifndef WW_GPU_DRIVER_ROCM_LIBRARY_H
#define WW_GPU_DRIVER_ROCM_LIBRARY_H

/* Opens the library called `name` where the loader looks, or in the folder lib of ROCm, which is at ROCM_PATH, or if that is
 * not set at ROCM_HOME, or else at /opt/rocm. NULL if it is in neither; dlerror() has the reason then. */
void *rocm_library_open(const char *name);

#endif
