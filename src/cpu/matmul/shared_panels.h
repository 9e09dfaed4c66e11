/* Large matrix products on the CPU: panels that all threads share. */
#ifndef WW_CPU_MATMUL_SHARED_PANELS_H
#define WW_CPU_MATMUL_SHARED_PANELS_H

#include "cpu/matmul/block.h"

/* Is a product large enough for matmul_shared_panels()? */
bool matmul_is_large(const matmul_work *w);

/* The product of each of the batch, by panels that all threads share. Fails only without memory. Blocking. */
ww_status matmul_shared_panels(ww_device *device, const matmul_work *w);

#endif
