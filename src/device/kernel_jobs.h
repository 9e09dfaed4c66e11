/* Kernels of the caller's own as a backend sees them: code that was loaded, functions in it, and launches that were checked as
 * far as tensors go. Queued with the work on tensors (tensor_jobs.h).
 */
#ifndef WW_DEVICE_KERNEL_JOBS_H
#define WW_DEVICE_KERNEL_JOBS_H

#include "device/backend.h"

enum { KERNEL_ARGUMENTS_MAX = 4096 }; /* bytes: what CUDA takes everywhere */

/* What a kernel needs and allows: ww_kernel_info without its size. */
typedef struct kernel_limits {
    int32_t threads_per_block_max, registers;
    int64_t shared_static_bytes, shared_dynamic_bytes_max, local_bytes;
    int64_t argument_bytes; /* -1: not known */
} kernel_limits;

/* A launch. Arguments lie as C lays out a struct of them; `argument_bytes` is without the padding behind the last, and
 * `argument_alignment` the largest of theirs. */
typedef struct kernel_launch {
    const char *name; /* for messages */
    int64_t grid[3], block[3];
    size_t shared_bytes;
    const void *arguments;
    size_t argument_bytes, argument_alignment;
} kernel_launch;

typedef struct kernel_backend {
    /* The image may be changed when it returns. */
    ww_status (*load)(ww_device *device, const void *image, size_t bytes, void **module);
    void (*unload)(ww_device *device, void *module); /* waits */
    /* The function lives as long as its module. */
    ww_status (*find)(ww_device *device, void *module, const char *name, void **function, kernel_limits *limits);
    ww_status (*launch)(ww_device *device, void *function, const kernel_limits *limits, const kernel_launch *launch);
} kernel_backend;

#endif
