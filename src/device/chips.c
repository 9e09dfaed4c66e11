/* The chips that the kernels in this library were compiled for. This build carries none. */
#include <warpwave/device.h>

size_t ww_kernel_chip_count(void)
{
    return 0;
}

const char *ww_kernel_chip(size_t index)
{
    (void)index;
    return NULL;
}
