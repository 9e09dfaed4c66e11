/* The chips that the kernels in this library were compiled for. */
#include <warpwave/device.h>

#include "kernels/embedded.h"

size_t ww_kernel_chip_count(void)
{
    return embedded_chip_count();
}

const char *ww_kernel_chip(size_t index)
{
    return embedded_chip(index);
}
