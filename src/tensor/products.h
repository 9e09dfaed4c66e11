/* What matrix products and convolutions share. */
#ifndef WW_TENSOR_PRODUCTS_H
#define WW_TENSOR_PRODUCTS_H

#include "device/matmul_job.h"
#include "tensor/tensor.h"

/* An operand with its name for messages. */
typedef struct named_tensor {
    const char *name;
    const ww_tensor *tensor;
} named_tensor;

/* Both are tensors, of one type that has products, on one device: a float, or one of a set of integers, by their bits. */
ww_status check_product_types(const char *operation, named_tensor a, named_tensor b, uint32_t integers);
ww_status check_math(const char *operation, ww_math math);

/* x as [images, channels, y, x]: of rank 3 with a height of 1. */
ww_tensor tensor_with_height(const ww_tensor *x);

/* Hands a job with k > 0 to the device, unless it has no results. */
ww_status run_product(ww_device *device, const matmul_job *job);

#endif
