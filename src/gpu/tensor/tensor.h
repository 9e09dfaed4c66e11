/* Tensors on a GPU: one stream for all of a device's work on them, memory in the order of that work, and the operations. */
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

/* Every operation begins with enter and, if that was WW_OK, ends with leave on the same thread: the device is entered, and its
 * stream for tensors, made at first use, is this thread's alone. Leave returns `status`. */
ww_status gpu_tensors_enter(gpu_device *device, gpu_stream **stream, driver_context *previous);
ww_status gpu_tensors_leave(gpu_device *device, driver_context previous, ww_status status);

/* A job as element-wise kernels take it. */
elementwise_args gpu_elementwise_args(const gpu_device *device, const elementwise_job *job);
/* The BLAS handle of the stream, between enter and leave; NULL with WW_OK where the vendor's BLAS is not installed. */
ww_status gpu_tensors_blas(gpu_device *device, struct gpu_blas **out);

/* Which tables of functions of 16-bit types are there, in a workspace of the stream: tensor_elementwise.c. */
typedef struct gpu_tables {
    bool numbers;
    uint32_t of[2];   /* bit by operation, of bf16 and of f16 */
    uint32_t a[2][2]; /* the bits of the number that powf and elu were made with */
} gpu_tables;
gpu_tables *gpu_tensors_tables(gpu_device *device); /* between enter and leave */

/* The workspaces of the stream, all in one place: products of quantized matrices are queued on it, too, and what one queued
 * operation still reads, or keeps there for later, is no other's to write. */
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

/* REDUCE_READY counters, 0 but while a launch counts in them. Between enter and leave. */
ww_status gpu_tensors_ready(gpu_device *device, uint32_t **out);

/* A mark in the stream's work, made at first use; the host waits for it by gpu_tensors_wait. Between enter and leave. */
ww_status gpu_tensors_mark(gpu_device *device);
ww_status gpu_tensors_wait(gpu_device *device);

/* Makes a job whose out and in[0] are dense along the last dimension, and aligned, one whose elements are 16 bytes: false, and
 * nothing changed, where that cannot be. Inputs from number `moved` on are read as they are, one for all of a unit. */
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
/* By the vendor's BLAS; not `done`, with WW_OK, where there is none, or it does not take such matrices, or says that it cannot.
 */
ww_status gpu_matmul_blas(gpu_device *device, const matmul_job *job, bool *done);

/* A product as its kernels take it, except for what is chosen with the kernel. */
matmul_args gpu_matmul_args(const matmul_job *job);

/* Are there kernels for AMD's matrix units that multiply this type? */
bool gpu_has_matrix_units(const gpu_device *device, int32_t type);
/* Products in fast mode by kernels of ours for these: matmul_fast.c. What they cannot read in place is copied first. */
bool gpu_matmul_can_be_fast(const gpu_device *device, const matmul_job *job);
ww_status gpu_matmul_fast(ww_device *base, const matmul_job *job, matmul_args *args);
/* The same between enter and leave for matrices that need not be copied, with results of f32: aligned to 16 bytes, a and the
 * columns of b lying along k, k a multiple of 32 elements of 16 bits. */
ww_status gpu_matmul_fast_launch(gpu_stream *stream, const matmul_job *job);

/* Convolutions in fast mode by the same kernels. */
bool gpu_conv_by_im2col(const gpu_device *device, const matmul_job *job);
ww_status gpu_conv_im2col(ww_device *base, const matmul_job *job);

/* Can the taps of its window be told apart by marks, and their distances be held in 32 bits? */
bool gpu_window_is_marked(const matmul_job *job);
/* Convolutions in fast mode on the matrix units: tensor_conv.c. `args` are the product's, and are changed. */
bool gpu_conv_can_be_fast(const gpu_device *device, const matmul_job *job);
ww_status gpu_conv_fast(ww_device *base, const matmul_job *job, matmul_args *args);

/* ---- for the device -------------------------------------------------------------------------------------------------------
 */

ww_status gpu_tensors_create(gpu_device *device);
void gpu_tensors_destroy(gpu_device *device); /* waits; accepts a device without them */

/* Gives what is held for reuse to the pool, once its work is done; nothing where an operation is under way on another thread or
 * on this one. The device is entered. */
void gpu_tensors_release(gpu_device *device);

#endif
