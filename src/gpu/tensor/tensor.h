/* Tensors on a GPU: one stream for all work of a device on tensors, memory in the order of that work, and the operations. */
#ifndef WW_GPU_TENSOR_TENSOR_H
#define WW_GPU_TENSOR_TENSOR_H

#include "device/tensor_jobs.h"
#include "gpu/device.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/matmul/matmul.h"

struct gpu_blas; /* gpu/blas/blas.h */

extern const tensor_backend tensors_gpu;
extern const struct kernel_backend gpu_kernels; /* own_kernel.c */

/* ---- for operations -------------------------------------------------------------------------------------------------------
 */

/* Every operation begins with enter and, if that was WW_OK, ends with leave on the same thread. In between the device is
 * entered, and this thread alone uses its stream for tensors, which the first use creates. Leave returns `status`. */
ww_status gpu_tensors_enter(gpu_device *device, gpu_stream **stream, driver_context *previous);
ww_status gpu_tensors_leave(gpu_device *device, driver_context previous, ww_status status);

/* The arguments of element-wise kernels for a job. */
elementwise_args gpu_elementwise_args(const gpu_device *device, const elementwise_job *job);
/* Returns the BLAS handle of the stream, or NULL with WW_OK if the vendor's BLAS is not installed. Between enter and leave. */
ww_status gpu_tensors_blas(gpu_device *device, struct gpu_blas **out);

/* Which tables of 16-bit functions exist, in a workspace of the stream (elementwise.c). */
typedef struct gpu_tables {
    bool numbers;
    uint32_t of[2];   /* a bit per operation, for bf16 and f16 */
    uint32_t a[2][2]; /* the bits of the parameter of the powf and elu tables */
} gpu_tables;
gpu_tables *gpu_tensors_tables(gpu_device *device); /* between enter and leave */

/* The workspaces of the stream, all in one place. Products of quantized matrices are queued on it too, and no operation may
 * write what another queued operation still reads or keeps for later. */
enum {
    TENSORS_WORKSPACE_BAD_ID,
    TENSORS_WORKSPACE_TABLES, /* keeps what is in it */
    TENSORS_WORKSPACE_READY,  /* keeps what is in it */
    TENSORS_WORKSPACE_ACTIVATIONS,
    TENSORS_WORKSPACE_GEMV_SLOTS, /* GPU_OVERLAP of them */
    TENSORS_WORKSPACE_COUNTERS,   /* keeps what is in it */
    TENSORS_WORKSPACE_REFUSED,
    TENSORS_WORKSPACE_GROUPS,
    TENSORS_WORKSPACE_WEIGHTS,
    TENSORS_WORKSPACE_SUMS,
    TENSORS_WORKSPACE_ATTENTION,
    TENSORS_WORKSPACES
};

/* Returns REDUCE_READY counters, which are 0 except while a launch uses them. Between enter and leave. */
ww_status gpu_tensors_ready(gpu_device *device, uint32_t **out);

/* Records an event in the stream, which the first use creates; gpu_tensors_wait() waits for it. Between enter and leave. */
ww_status gpu_tensors_mark(gpu_device *device);
ww_status gpu_tensors_wait(gpu_device *device);

/* Rewrites a job whose out and in[0] are aligned and dense along the last dimension, so that its elements are 16-byte units.
 * Returns false and changes nothing if that is impossible. Inputs from number `moved` on are read unchanged, one value per
 * unit. */
bool gpu_take_units(elementwise_job *job, int32_t moved);

ww_status gpu_elementwise(ww_device *base, const elementwise_job *job);
ww_status gpu_random(ww_device *base, const random_job *job);
ww_status gpu_check_ids(ww_device *base, const elementwise_job *ids, int64_t extent, int64_t *bad, int64_t *value);
ww_status gpu_gather(ww_device *base, const elementwise_job *job, const elementwise_job *ids, int64_t *bad, int64_t *value);
ww_status gpu_scatter(ww_device *base, const scatter_job *job);
ww_status gpu_reduce(ww_device *base, const reduce_job *job);
ww_status gpu_rows(ww_device *base, const rows_job *job);
ww_status gpu_rope(ww_device *base, const rope_job *job);
ww_status gpu_sort(ww_device *base, const sort_job *job);
ww_status gpu_matmul(ww_device *base, const matmul_job *job);
ww_status gpu_resample(ww_device *base, const struct resample_args *args);
ww_status gpu_cumsum(ww_device *base, const struct cumsum_args *args);
ww_status gpu_conv_integer(ww_device *base, const struct conv_integer_args *args);
ww_status gpu_attention_store(ww_device *base, const attention_store_job *job);
ww_status gpu_attention(ww_device *base, const attention_job *job);
/* Multiplies with the vendor's BLAS. Leaves `done` false, with WW_OK, if there is no BLAS or it cannot multiply these matrices.
 */
ww_status gpu_matmul_blas(gpu_device *device, const matmul_job *job, bool *done);

/* The arguments of matrix kernels for a job, except for what depends on the kernel. */
matmul_args gpu_matmul_args(const matmul_job *job);

/* Returns true if there are kernels for AMD's matrix units that multiply this type. */
bool gpu_has_matrix_units(const gpu_device *device, int32_t type);
/* Products in fast mode by our own kernels (matmul_fast.c). Matrices that they cannot read in place are copied first. */
bool gpu_matmul_can_be_fast(const gpu_device *device, const matmul_job *job);
ww_status gpu_matmul_fast(ww_device *base, const matmul_job *job, matmul_args *args);
/* Queues a fast product of matrices that need no copy, with f32 results: aligned to 16 bytes, a and the columns of b contiguous
 * along k, k a multiple of 32 16-bit elements. Between enter and leave. */
ww_status gpu_matmul_fast_launch(gpu_stream *stream, const matmul_job *job);

/* Convolutions in fast mode by the kernels of matmul_fast.c. */
bool gpu_conv_by_im2col(const gpu_device *device, const matmul_job *job);
ww_status gpu_conv_im2col(ww_device *base, const matmul_job *job);

/* Returns true if marks can distinguish the taps of the window and 32 bits hold their distances. */
bool gpu_window_is_marked(const matmul_job *job);
/* Convolutions in fast mode on matrix units (conv.c). Changes `args`, the arguments of the product. */
bool gpu_conv_can_be_fast(const gpu_device *device, const matmul_job *job);
ww_status gpu_conv_fast(ww_device *base, const matmul_job *job, matmul_args *args);

/* ---- for the device -------------------------------------------------------------------------------------------------------
 */

ww_status gpu_tensors_create(gpu_device *device);
void gpu_tensors_destroy(gpu_device *device); /* waits; accepts a device without them */

/* Returns the memory held for reuse to the pool, after its work is done. Does nothing while an operation is in progress on any
 * thread. The device is entered. */
void gpu_tensors_release(gpu_device *device);

#endif
