/* What a quantized product on a GPU is going to do: which kernels over which rows and columns, how codes are laid out, how many
 * thread blocks share the work, and how much memory all of that takes. Computed from the job and the device before anything is
 * queued; kernels/quant/quant.h says which kernel is taken when, and why.
 */
#ifndef WW_GPU_QUANT_QUANT_PLAN_H
#define WW_GPU_QUANT_QUANT_PLAN_H

#include "device/quant_jobs.h"
#include "gpu/device.h"
#include "gpu/quant/quant_groups.h"

typedef enum quant_strategy {
    QUANT_UNDECIDED,
    QUANT_FLOAT, /* f32, f16 and bf16 weights */
    QUANT_FAST,  /* vendor BLAS */
    QUANT_GEMV,
    QUANT_TILES,
    QUANT_WGMMA
} quant_strategy;

/* The sections of a workspace that holds activations or weights as codes, in this order. */
typedef struct quant_coded_bytes {
    size_t codes, sums, factors, partial;
} quant_coded_bytes;

static inline size_t quant_coded_total(quant_coded_bytes bytes)
{
    return bytes.codes + bytes.sums + bytes.factors + bytes.partial;
}

/* One pass: some columns by some rows. Most products are a single one. */
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
    bool one_stage;                 /* quant_tile_*: of which two thread blocks share a compute unit */
    quant_coded_bytes activations, weights;
    quant_groups groups; /* experts: columns that share rows; host memory */

    /* The kernels. */
    int32_t kernel, fold_kernel, unpack_kernel;
    int32_t step_kernel; /* gemv, fused: of a product that waits, with what is fused beside it */
    int32_t threads, fold_threads;
    uint32_t splits;            /* thread blocks that share the accumulators of a result */
    uint32_t stages;            /* of shared memory */
    uint32_t stages_overlapped; /* gemv: where it overlaps the product in front of it */
    int64_t rows_at_once;       /* gemv: of a launch */
    size_t stage_bytes;         /* gemv */
    size_t shared_bytes;        /* tiles */
    uint32_t records;           /* wgmma, K blocks: records of so many blocks at a time */
    uint32_t unpack_stages;
    bool sums_in_shared;  /* wgmma: shared memory has room for a tile of sums, too */
    bool fused;           /* gemv: the kernel that can code a single column itself, */
    bool whole;           /* and the one that does so in every thread block: it is short, and there are not many of these */
    bool copy_engine;     /* gemv: rows come by it, */
    bool stays;           /* and thread blocks of the step kernel stay: */
    bool direct;          /* gemv: the kernel that codes a single column chunk by chunk, in every thread block */
    int64_t stay_blocks;  /* so many, */
    uint32_t stay_stages; /* each with so many stages, */
    size_t stay_bytes;    /* and so much shared memory */
    size_t sums_floats;   /* tiles: a level of sums of all thread blocks */
} quant_plan;

/* Whether a product in fast mode may go to the vendor's BLAS: not with experts, nor with so few columns that codes are quicker.
 */
bool quant_may_be_fast(const quant_product_job *job);

/* Whether bf16 is then quicker than codes, by which the product is canonical. */
bool quant_bf16_suits(const gpu_device *device, const quant_product_job *job);

/* Completes a plan that has its first column and first row, and is QUANT_FAST or undecided. Loads the kernels that it asks for
 * their limits. The caller releases plan->groups, whatever this returned. */
ww_status quant_plan_make(gpu_device *device, const quant_product_job *job, quant_plan *plan);

/* Thread blocks that share the accumulators of a gemv with so many tiles of 16 rows by a group of columns: 1, 2, 4 or 8. */
uint32_t quant_gemv_splits(int64_t tiles, int64_t compute_units);

#endif
