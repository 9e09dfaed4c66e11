/* Arguments of the kernels that work on rows: softmax and norms, reductions, sorting, rotary embedding.
 *
 * Softmax and norms (src/gpu/tensor/rows.c). The first kernel that applies is used; those with a star are for NVIDIA, sm_80 on:
 *   tensor_softmax_wave *, tensor_norm_wave(_2) *   16-bit types, many rows: 32 lanes hold a row (_2: two chunks) in
 *                                                   registers and loop over rows
 *   tensor_softmax_short, tensor_norm_short         rows up to 512 elements, a multiple of 64: several at a time
 *   tensor_softmax_prefetch_4096 *                  16-bit rows of more than 2048 elements: 32 lanes hold a chunk
 *   tensor_rows_prefetch *                          16-bit rows up to 16384 elements: a block loops over rows
 *   tensor_rows_registers                           rows up to 16384 elements, a multiple of 64
 *   tensor_rows_registers_any                       rows up to 1024 elements, any length
 *   tensor_rows_f32, tensor_rows_f64                any length: a row is in shared memory if it fits, else each pass reads it
 *                                                   again
 * All but the last line read memory once and write it once. All give the bits of arithmetic/rows.h.
 *
 * Reductions (src/gpu/tensor/reduce.c): the canonical order is chunks of 4096 elements (arithmetic/reduce.h).
 *   tensor_reduce_rows_half        dense rows of 16-bit types, 16 bytes per lane
 *   tensor_reduce_columns_vectors  adjacent results, 16 bytes per lane
 *   tensor_reduce_rows_KIND, tensor_reduce_columns_KIND   any other layout and type
 * Each round is a launch, unless the last blocks of the first launch can do the rest.
 *   tensor_reduce_arg_quads, then tensor_reduce_arg_KIND   argmin and argmax: dense floats, then everything else
 *
 * Sorting (src/gpu/tensor/rows.c):
 *   tensor_top_row          the first 256 or fewer elements of a row of up to 4096: a block finds the last of them by bisection
 *   tensor_sort_registers   rows up to 128 elements of up to 32 bits, on gfx908, gfx90a and gfx942: lanes hold them in
 *                           registers
 *   tensor_sort_row_1024    rows up to 1024 elements of up to 32 bits: one block radix-sorts a row, or up to 16 short ones
 *   tensor_sort_row         rows up to 4096 elements of up to 32 bits: one block radix-sorts a row
 *   tensor_sort_keys, _tile, _step, _put   all other rows: bitonic sort, tiles of 2048 elements in shared memory
 */
#ifndef WW_KERNELS_REDUCE_ROW_ARGUMENTS_H
#define WW_KERNELS_REDUCE_ROW_ARGUMENTS_H

#include "arithmetic/reduce.h"

enum {
    REDUCE_THREADS = 256,
    REDUCE_HALF_GROUP = 8,        /* lanes per chunk of a row of 16-bit elements, eight accumulators each */
    REDUCE_GROUP = 16,            /* lanes per chunk of a row, four accumulators each */
    REDUCE_COLUMNS = 64,          /* results per block if results are adjacent */
    REDUCE_COLUMNS_THREADS = 512, /* per block if it loads 16 bytes at a time */
    REDUCE_READY = 4096,          /* counters of finished blocks */
    ARG_GROUP = 32,               /* lanes that find the first best element of a part, four elements at a time */
    REDUCE_FINISH_CHUNKS = 256,   /* max chunks of the second round that the last block of the first finishes */
    ROW_THREADS = 256,
    ROW_PART = 1024,              /* elements of a row or part of one that 32 or 64 lanes hold in registers */
    ROW_PAIR_LANES = 32,          /* lanes per part that hold elements in pairs */
    ROW_SHORT = 512,              /* max elements of short rows, one or several together, that 32 lanes hold */
    ROW_SHORT_THREADS = 256,      /* per block for short rows */
    ROW_PAIR_THREADS = 512,       /* per block for a row with the maximum number of parts */
    ROW_PAIR_THREADS_MIN = 64,    /* per block for a row of one part */
    ROW_PREFETCH_RESIDENT = 1024, /* threads per compute unit that have enough registers if blocks loop over rows */
    ROW_PART_4096 = 4096,         /* elements that 32 lanes hold if they have enough registers */
    ROW_PART_4096_THREADS = 128,  /* per block then */
    ROW_PART_4096_RESIDENT = 384,
    ROW_WAVE_MULTIPLE = 512,      /* a row held by 32 lanes has a multiple of this many elements */
    ROW_WAVE_THREADS = 512,       /* per block of such rows, the only block of a compute unit */
    ROW_WAVE_CHUNKS = 2,          /* max chunks of such a row */
    ROW_WAVE_THREADS_2 = 384,     /* per block if rows have two chunks */
    ROW_WAVE_THREADS_MIN = 128,   /* with fewer threads per block, another kernel is used */
    ROW_REGISTERS_MAX = 16384,    /* max elements of a row that a block holds in registers */
    ROW_SHARED_BYTES = 32768,     /* max bytes of a row, in the type of the arithmetic, that is kept in shared memory */
    ROW_RESULTS_SHARED = 512,     /* max results of chunks that are also kept there */
    SORT_ROW_MAX = 4096,          /* max elements of a row that one block sorts */
    SORT_ROW_THREADS = 256,       /* per block then */
    SORT_ROW_SHORT = 1024,        /* max elements of a short row, or of several together */
    SORT_ROW_SHORT_ROWS = 16,     /* max rows per block then */
    SORT_SHORT_THREADS = 64,      /* per block then */
    SORT_REGISTERS_ROW = 128,     /* max elements of a row that up to sixteen lanes sort */
    SORT_REGISTERS_OWN = 8,       /* elements per thread then */
    SORT_REGISTERS_THREADS = 256, /* per block then */
    TOP_THREADS = 256,            /* per block that finds the first few elements of a row */
    TOP_MAX = TOP_THREADS,        /* max number of these elements */
    SORT_TILE = 2048,             /* pairs that a block sorts in shared memory */
    SORT_THREADS = 256,
};

/* One round writes one element for each result and chunk. With `ready`, one launch does all rounds: `ready` counts finished
 * blocks, for a single result, or for columns for each 64 results of up to 64 chunks. */
typedef struct reduce_args {
    const void *x;
    void *out;
    void *between;   /* results of chunks, in the type of the arithmetic; used with `ready` */
    uint32_t *ready; /* all 0 before and after the launch; or NULL */
    reduce_dims kept, reduced;
    int64_t outs, n, chunks;
    int64_t divide_by;    /* for a mean the count, in the last round; else 0 */
    int32_t op, type, to; /* `to`: the type of the output */
    int32_t dense;        /* the elements of a result are adjacent */
    int32_t quads;        /* dense, and aligned for loads of four elements */
    int32_t apart;        /* work queued before does not write x: reading may start before it has ended */
} reduce_args;

/* Finds the first best element of each of `parts` parts of a result, then the best of those. */
typedef struct reduce_arg_args {
    const void *x;
    reduce_dims kept, reduced;
    int64_t outs, n, parts;
    int64_t *best_values; /* bits of the value, by result and part */
    int64_t *best_places;
    uint32_t *out; /* NULL in the first step */
    int32_t op, type;
    int32_t apart; /* as above */
    int32_t unused;
} reduce_arg_args;

typedef struct row_args {
    const void *x, *weight, *bias;
    void *out;
    void *results; /* of chunks, if they do not fit in shared memory */
    int64_t rows, n, chunks;
    double eps;
    int32_t op, type;
    int32_t in_shared; /* a row fits in shared memory */
    int32_t quads;     /* rows can be loaded and stored by quads */
    int32_t apart;     /* as above, also for weights and biases */
    int32_t unused;
} row_args;

typedef struct rope_args {
    const void *x, *cosine, *sine;
    void *out;
    reduce_dims cosines, sines;
    int64_t rows, half, cosine_step, sine_step;
    int32_t type, interleaved;
} rope_args;

typedef struct sort_args {
    const void *x;
    void *values;
    uint32_t *indices;
    uint64_t *keys; /* `padded` per row */
    uint32_t *places;
    int64_t rows, n, k, padded;    /* `padded`: n rounded up to a power of two; unused by tensor_top_row */
    int64_t first_size, last_size; /* elements of the sequences that are merged */
    int64_t apart;                 /* distance of the elements that a step compares */
    int32_t type, descending;
} sort_args;

#endif
