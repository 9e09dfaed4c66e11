/* Opens ROCm's libraries. */
#ifndef WW_GPU_DRIVER_ROCM_LIBRARY_H
#define WW_GPU_DRIVER_ROCM_LIBRARY_H

#include <stddef.h>

/* Opens library `name` where the loader looks, or in the folder lib of ROCM_PATH, or of ROCM_HOME if that is not set. If
 * neither is: among AMD's pip packages (of the environments that VIRTUAL_ENV and CONDA_PREFIX name, of the site-packages that
 * this library is installed in, of the running Python, of the user, of /usr/local), then in /opt/rocm/lib, in the newest
 * /opt/rocm/core-VERSION/lib, or in the newest /opt/rocm-VERSION/lib. NULL if it is in none of these; dlerror() then has the
 * reason. */
void *rocm_library_open(const char *name);

/* Opens library `name` in the folder of the library that has this function. NULL if it is not there. */
void *rocm_library_beside(const void *function, const char *name);

/* Writes the release of ROCm ("6.4.3") that the library with this function is of, as .info/version beside its folder says. HIP
 * has versions of its own. "" if there is no such file, as with Debian's packages, or it does not begin with a version. */
void rocm_release(const void *function, char *text, size_t capacity);

#endif
