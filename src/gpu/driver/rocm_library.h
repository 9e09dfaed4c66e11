/* Opening ROCm's libraries, wherever AMD's packages put them. */
#ifndef WW_GPU_DRIVER_ROCM_LIBRARY_H
#define WW_GPU_DRIVER_ROCM_LIBRARY_H

/* Opens the library called `name` where the loader looks, or in the folder lib of ROCM_PATH, which is /opt/rocm if it is not
 * set. NULL if it is in neither; dlerror() has the reason then. */
void *rocm_library_open(const char *name);

#endif
