/* Kernels of the caller as a backend sees them: loaded code, functions in it, and launches, whose tensors are checked. They are
 * queued with the work on tensors (tensor_jobs.h).
 */
#ifndef WW_DEVICE_KERNEL_JOBS_H
#define WW_DEVICE_KERNEL_JOBS_H

#include "device/backend.h"

enum { KERNEL_ARGUMENTS_MAX = 4096 }; /* bytes; CUDA's limit on all chips */

/* A kernel's requirements and limits: ww_kernel_info without its size. */
typedef struct kernel_limits {
    int32_t threads_per_block_max, registers;
    int64_t shared_static_bytes, shared_dynamic_bytes_max, local_bytes;
    int64_t argument_bytes; /* -1: unknown */
} kernel_limits;

/* A launch. Arguments have the layout of a C struct. `argument_bytes` excludes the padding after the last one, and
 * `argument_alignment` is the largest alignment. */
typedef struct kernel_launch {
    const char *name; /* for messages */
    int64_t grid[3], block[3];
    size_t shared_bytes;
    const void *arguments;
    size_t argument_bytes, argument_alignment;
} kernel_launch;

/* A source of the caller to compile. */
typedef struct kernel_source {
    const char *text, *name; /* the name is for messages */
    const char *const *options;
    size_t option_count;
} kernel_source;

typedef struct kernel_backend {
    /* The caller may change the image when it returns. */
    ww_status (*load)(ww_device *device, const void *image, size_t bytes, void **module);
    /* Compiles a source and loads it. `log` gets all that the compiler wrote, also when it fails, to memory_free(), or NULL. */
    ww_status (*compile)(ww_device *device, const kernel_source *source, void **module, char **log);
    void (*unload)(ww_device *device, void *module); /* waits */
    /* Functions are valid as long as their module. */
    ww_status (*find)(ww_device *device, void *module, const char *name, void **function, kernel_limits *limits);
    ww_status (*launch)(ww_device *device, void *function, const kernel_limits *limits, const kernel_launch *launch);
} kernel_backend;

#endif
