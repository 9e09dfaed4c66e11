/* Quantized matrices on a GPU: the table of device/quant_jobs.h. */
#ifndef WW_GPU_QUANT_QUANT_H
#define WW_GPU_QUANT_QUANT_H

#include "device/quant_jobs.h"
#include "gpu/device.h"
#include "gpu/quant/quant_plan.h"

extern const quant_backend gpu_quants;

/* Columns of a job from number `first` on. */
typedef struct columns_part {
    int64_t first, count;
} columns_part;

/* How columns are coded for the tiles that a device has: QUANT_FOR_TILES, QUANT_FOR_WIDE_TILES. */
int32_t gpu_quant_tiles_of(const gpu_device *device);

/* Queues the coding of columns for tiles. */
ww_status gpu_quant_code_tiles(gpu_stream *stream, const quant_product_job *job, columns_part part, quant_coded *coded,
                               uint64_t *refused);

/* Unpacked rows. */
typedef struct quant_unpacked {
    uint32_t *codes, *records;
    float *factors, *mins;
    int64_t places; /* of rows, whole tiles */
} quant_unpacked;

/* Queues the unpacking of weights from row `first` on; with row 0 right behind the coding of columns. */
ww_status gpu_quant_unpack(gpu_stream *stream, const quant_product_job *job, const quant_coded *coded, int64_t first,
                           int64_t rows, quant_unpacked *out);

/* Queues the product with columns that were coded for tiles. */
ww_status gpu_quant_tiles(gpu_stream *stream, const quant_product_job *job, columns_part part, const quant_coded *coded);

/* For tests: whether tiles are wide (kernels/quant/quant_wgmma_small.c, quant_wgmma_large.c); -1: never, 0: where there is code
 * for that, 1: emulated ones, too.
 */
void gpu_quant_tune(int32_t wide);

/* Queues the product by the vendor's BLAS; not `done`, with WW_OK, where there is none or it says that it cannot, and where
 * columns are few or of experts. */
ww_status gpu_quant_fast(gpu_stream *stream, const quant_product_job *job, bool *done);

/* For tests: how many blocks of threads share rows where columns are few, 1, 2, 4 or 8; 0: as many as there is use for. */
void gpu_quant_tune_parts(int32_t parts);

/* Has a device code that only sm_90a has? The emulator has it, if gpu_quant_tune() says so. */
bool gpu_quant_is_wide(const gpu_device *device);

/* Does the copy engine bring rows to products of few columns? */
bool gpu_quant_has_engine(const gpu_device *device);

ww_status gpu_quant_product(ww_device *of, const quant_product_job *job);
bool gpu_quant_takes(const quant_product_job *job);

#endif
