/* Large matrix products on the CPU, with panels that all threads share. */
#ifndef WW_CPU_MATMUL_SHARED_PANELS_H
#define WW_CPU_MATMUL_SHARED_PANELS_H

#include "cpu/matmul/block.h"

/* Returns true if a product is large enough for matmul_shared_panels(). */
bool matmul_is_large(const matmul_work *w);

/* Computes the product of each matrix of the batch, with panels that all threads share. Fails only if there is not enough
 * memory. Blocking. */
ww_status matmul_shared_panels(ww_device *device, const matmul_work *w);

#endif
