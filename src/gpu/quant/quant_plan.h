/* The plan of a quantized product on a GPU: which kernels over which rows and columns, the layout of codes, how many thread
 * blocks share the work, and how much memory it takes. It is computed from the job and the device before anything is queued.
 * kernels/quant/quant.h explains which kernel is used when.
 */
#ifndef WW_GPU_QUANT_QUANT_PLAN_H
#define WW_GPU_QUANT_QUANT_PLAN_H

#include "device/quant_jobs.h"
#include "gpu/device.h"

/* In order of preference; quant_plan.c has the table. */
typedef enum quant_strategy {
    QUANT_FLOAT,  /* quant_float_product */
    QUANT_BF16,   /* the vendor's BLAS, or matmul_fast_bf16 */
    QUANT_STAY,   /* quant_gemv_one_TYPE, quant_gemv_stay.h */
    QUANT_DIRECT, /* quant_gemv_one_TYPE, quant_gemv_direct.h */
    QUANT_GEMV,   /* quant_gemv_TYPE */
    QUANT_WGMMA,  /* quant_wgmma_* */
    QUANT_TILES   /* quant_tile_* */
} quant_strategy;

/* The sections of a workspace that holds activations or weights as codes, in this order. */
typedef struct quant_coded_bytes {
    size_t codes, sums, factors, partial;
} quant_coded_bytes;

static inline size_t quant_coded_total(quant_coded_bytes bytes)
{
    return bytes.codes + bytes.sums + bytes.factors + bytes.partial;
}

/* One pass: some columns by some rows. Most products have a single pass. */
typedef struct quant_plan {
    quant_strategy strategy;
    int64_t first_column, columns;
    int64_t first_row, rows;

    /* How codes are laid out. */
    bool k_blocks;                  /* blocks of 256 elements, not of 32 */
    uint32_t blocks, blocks_padded; /* of a row or column; padded for the kernel */
    uint32_t columns_padded;        /* columns, padded: whole groups of eight, or whole tiles */
    uint32_t rows_padded;           /* rows, padded: whole tiles */
    uint32_t width;                 /* gemv: columns that a group has room for */
    int32_t layout;                 /* tiles: QUANT_LAYOUT_ */
    quant_coded_bytes activations, weights;

    /* The kernels. */
    int32_t kernel, threads;
    uint32_t splits;      /* thread blocks that share the accumulators of a result */
    uint32_t stages;      /* of shared memory */
    size_t shared_bytes;  /* of all stages */
    int64_t rows_at_once; /* gemv: rows of a launch */
    int64_t stay_blocks;  /* QUANT_STAY: thread blocks; otherwise 0 */

    /* Tiles. */
    int32_t unpack_kernel, fold_kernel, fold_threads;
    uint32_t unpack_stages;
    uint32_t records;    /* wgmma, K blocks: how many records are taken at a time */
    bool sums_in_shared; /* wgmma: shared memory has room for a tile of sums, too */
    size_t sums_floats;  /* floats of one level of sums, for all thread blocks */
} quant_plan;

/* Chooses the strategy. QUANT_BF16 only in fast mode and if it is faster than codes, which give canonical results. */
quant_strategy quant_choose(const gpu_device *device, const quant_product_job *job);

/* Completes a plan with a strategy, a first column and a first row. Loads the kernels whose limits it needs. */
ww_status quant_plan_make(gpu_device *device, const quant_product_job *job, quant_plan *plan);

/* Thread blocks that share the accumulators of a gemv with `tiles` tiles of 16 rows by a group of columns: 1, 2, 4 or 8. */
uint32_t quant_gemv_splits(int64_t tiles, int64_t compute_units);

#endif
