/* Shared by matrix products and convolutions. */
#ifndef WW_TENSOR_PRODUCTS_H
#define WW_TENSOR_PRODUCTS_H

#include "device/matmul_job.h"
#include "tensor/tensor.h"

/* An operand and its name for messages. */
typedef struct named_tensor {
    const char *name;
    const ww_tensor *tensor;
} named_tensor;

/* Checks that both are tensors of the same type, on one device. The type must be a float, or in a set of integer types, as
 * bits. */
ww_status check_product_types(const char *operation, named_tensor a, named_tensor b, uint32_t integers);
ww_status check_math(const char *operation, ww_math math);

/* Returns x as [images, channels, y, x]: if it has rank 3, with a height of 1. */
ww_tensor tensor_with_height(const ww_tensor *x);

/* Runs a job with k > 0 on the device, unless it has no results. */
ww_status run_product(ww_device *device, const matmul_job *job);

#endif
