/* The stand-in for ROCm from a test's side. */
#include "support/standin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static bool chip_is_embedded(const char *chip)
{
    for (size_t i = 0; ww_kernel_chip(i) != NULL; i++)
        if (strcmp(ww_kernel_chip(i), chip) == 0)
            return true;
    return false;
}

bool standin_has_kernels(void)
{
    return chip_is_embedded("gfx90a") && chip_is_embedded("gfx1100");
}

bool standin_open(int rocm, const char *settings, standin *out)
{
    char path[512];
    if (!standin_has_kernels()) {
        printf("SKIP: " STANDIN_WITHOUT_KERNELS "\n");
        fflush(stdout); /* callers may _exit */
        return false;
    }
    unsetenv("WARPWAVE_DEVICE");
    unsetenv("WARPWAVE_HIPRTC_LIBRARY");
    setenv("WARPWAVE_STANDIN", settings, 1);
    snprintf(path, sizeof path, BUILD_DIR "/standin/librocblas.so.4");
    setenv("WARPWAVE_ROCBLAS_LIBRARY", path, 1);
    snprintf(path, sizeof path, BUILD_DIR "/standin/libhiprtc.so.7");
    if (rocm == 7)
        setenv("WARPWAVE_HIPRTC_LIBRARY", path, 1);
    snprintf(path, sizeof path, BUILD_DIR "/standin/libamdhip64.so.%d", rocm);
    setenv("WARPWAVE_HIP_LIBRARY", path, 1);
    out->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (out->library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    *(void **)&out->configure = dlsym(out->library, "standin_configure");
    *(void **)&out->count = dlsym(out->library, "standin_count");
    *(void **)&out->calls = dlsym(out->library, "standin_calls");
    *(void **)&out->victim = dlsym(out->library, "standin_victim");
    *(void **)&out->misuse = dlsym(out->library, "standin_misuse");
    *(void **)&out->given_back = dlsym(out->library, "standin_given_back");
    return out->given_back != NULL && out->configure != NULL && out->count != NULL && out->calls != NULL &&
           out->victim != NULL && out->misuse != NULL;
}

long standin_alive(const standin *s)
{
    standin_counts counts;
    s->count(&counts);
    return (long)(counts.blocks + counts.pinned + counts.streams + counts.events + counts.modules + counts.handles);
}

const char *standin_alive_text(const standin *s)
{
    static _Thread_local char text[160];
    standin_counts counts;
    s->count(&counts);
    snprintf(text, sizeof text, "%d blocks, %d pinned, %d streams, %d events, %d modules, %d other handles", (int)counts.blocks,
             (int)counts.pinned, (int)counts.streams, (int)counts.events, (int)counts.modules, (int)counts.handles);
    return text;
}
