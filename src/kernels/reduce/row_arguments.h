/* What the kernels about rows take: softmax and norms, reductions, sorting, rotary embedding.
 *
 * Softmax and norms (src/gpu/tensor/rows.c). Which kernel when, fastest first; those with a star are NVIDIA's, sm_80 on:
 *   tensor_softmax_wave *, tensor_norm_wave(_2) *   16-bit types, many rows: 32 lanes have a row (_2: two chunks)
 *                                                   in registers, and go from row to row
 *   tensor_softmax_short, tensor_norm_short         rows up to 512 elements, a multiple of 64: several at a time
 *   tensor_softmax_prefetch_4096 *                  16-bit rows of more than 2048 elements: a chunk by 32 lanes
 *   tensor_rows_prefetch *                          16-bit rows up to 16384: a block goes from row to row
 *   tensor_rows_registers                           rows up to 16384 elements, a multiple of 64
 *   tensor_rows_registers_any                       rows up to 1024 of any length
 *   tensor_rows_f32, tensor_rows_f64                any length: a row in shared memory if it fits there, else read
 *                                                   again for each pass
 * All but the last read memory once and write it once; all give the bits of arithmetic/rows.h.
 *
 * Reductions (src/gpu/tensor/reduce.c): the canonical order is chunks of 4096 elements (arithmetic/reduce.h).
 *   tensor_reduce_rows_half        dense rows of 16-bit types, by 16 bytes a lane
 *   tensor_reduce_columns_vectors  results that are neighbours, by 16 bytes
 *   tensor_reduce_rows_KIND, tensor_reduce_columns_KIND   any other layout and type
 * A launch for each round; where the last blocks of the first launch can do the rest, there is no second launch.
 *   tensor_reduce_arg_quads, then tensor_reduce_arg_KIND   argmin and argmax: dense floats, and everything
 *
 * Sorting (src/gpu/tensor/rows.c):
 *   tensor_top_row     the first 256 or fewer of a row of up to 4096: a block looks for them by halving
 *   tensor_sort_registers   rows up to 128 of up to 32 bits, on gfx908, gfx90a and gfx942: lanes have them in registers
 *   tensor_sort_row_1024   rows up to 1024 of up to 32 bits: radix sort of a row, or of up to 16 short ones, by one block
 *   tensor_sort_row    rows up to 4096 of up to 32 bits: the same of one row
 *   tensor_sort_keys, _tile, _step, _put   everything: a bitonic sort, tiles of 2048 in shared memory
 */
#ifndef WW_KERNELS_REDUCE_ROW_ARGUMENTS_H
#define WW_KERNELS_REDUCE_ROW_ARGUMENTS_H

#include "arithmetic/reduce.h"

enum {
    REDUCE_THREADS = 256,
    REDUCE_HALF_GROUP = 8,        /* lanes that make one chunk of a row of 16-bit elements, eight accumulators each */
    REDUCE_GROUP = 16,            /* lanes that make one chunk of a row, four accumulators each */
    REDUCE_COLUMNS = 64,          /* results of a block where results lie side by side */
    REDUCE_COLUMNS_THREADS = 512, /* of it, where they are loaded by 16 bytes */
    REDUCE_READY = 4096,          /* counters of blocks that are ready */
    ARG_GROUP = 32,               /* lanes that find the first of the best of a stretch by quads */
    REDUCE_FINISH_CHUNKS = 256,   /* chunks of the second round that the last block of the first finishes */
    ROW_THREADS = 256,
    ROW_PART = 1024,              /* elements of a row, or a part of it, that 32 or 64 lanes hold in registers */
    ROW_PAIR_LANES = 32,          /* that do it by pairs */
    ROW_SHORT = 512,              /* elements of rows, of one or of several together, that 32 lanes hold where they are short */
    ROW_SHORT_THREADS = 256,      /* of a block then */
    ROW_PAIR_THREADS = 512,       /* of as many parts as a row may have */
    ROW_PAIR_THREADS_MIN = 64,    /* threads of a block where a row is one part */
    ROW_PREFETCH_RESIDENT = 1024, /* threads of a compute unit where blocks go from row to row, for which there are registers */
    ROW_PART_4096 = 4096,         /* elements that 32 lanes hold where there are enough registers */
    ROW_PART_4096_THREADS = 128,  /* of a block then */
    ROW_PART_4096_RESIDENT = 384,
    ROW_WAVE_MULTIPLE = 512,      /* elements that rows which 32 lanes have to themselves are multiples of */
    ROW_WAVE_THREADS = 512,       /* of a block of such, the only one of a compute unit */
    ROW_WAVE_CHUNKS = 2,          /* chunks that such a row may have */
    ROW_WAVE_THREADS_2 = 384,     /* of a block of rows of two */
    ROW_WAVE_THREADS_MIN = 128,   /* at least */
    ROW_REGISTERS_MAX = 16384,    /* elements of a row that a block holds in registers */
    ROW_SHARED_BYTES = 32768,     /* rows up to this, as their kind, are kept in shared memory */
    ROW_RESULTS_SHARED = 512,     /* results of chunks that are kept there, too */
    SORT_ROW_MAX = 4096,          /* elements of a row that one block sorts */
    SORT_ROW_THREADS = 256,       /* of it */
    SORT_ROW_SHORT = 1024,        /* elements of a shorter row, or of several together, */
    SORT_ROW_SHORT_ROWS = 16,     /* rows of a block at most, */
    SORT_SHORT_THREADS = 64,      /* and threads of a block that sorts them */
    SORT_REGISTERS_ROW = 128,     /* elements of a row that up to sixteen lanes sort, */
    SORT_REGISTERS_OWN = 8,       /* elements of a thread, */
    SORT_REGISTERS_THREADS = 256, /* and threads of a block of them */
    TOP_THREADS = 256,            /* of a block that looks for the first few of such a row */
    TOP_MAX = TOP_THREADS,        /* of them */
    SORT_TILE = 2048,             /* pairs that a block sorts in shared memory */
    SORT_THREADS = 256,
};

/* A round: of each result and chunk one element. Or all rounds, where `ready` counts the blocks that are: of the only result,
 * or for columns of each 64 results, up to 64 chunks of them. */
typedef struct reduce_args {
    const void *x;
    void *out;
    void *between;   /* what chunks come to, as the kind, if `ready` */
    uint32_t *ready; /* all 0, and again in the end; or NULL */
    reduce_dims kept, reduced;
    int64_t outs, n, chunks;
    int64_t divide_by;    /* a mean's count in the last round, or 0 */
    int32_t op, type, to; /* `to`: the type of what is written */
    int32_t dense;        /* elements that are reduced lie side by side */
    int32_t quads;        /* and every four of them can be loaded at once */
    int32_t apart;        /* what is queued in front does not write x: reading may begin before that has ended */
} reduce_args;

/* The first of the best: of each result in `parts` stretches, and then of those. */
typedef struct reduce_arg_args {
    const void *x;
    reduce_dims kept, reduced;
    int64_t outs, n, parts;
    int64_t *best_values; /* bits of the kind, by result and part */
    int64_t *best_places;
    uint32_t *out; /* NULL in the first step */
    int32_t op, type;
    int32_t apart; /* as above */
    int32_t unused;
} reduce_arg_args;

typedef struct row_args {
    const void *x, *weight, *bias;
    void *out;
    void *results; /* of chunks, if they do not fit shared memory */
    int64_t rows, n, chunks;
    double eps;
    int32_t op, type;
    int32_t in_shared; /* a row fits shared memory */
    int32_t quads;     /* rows can be loaded and stored by quads */
    int32_t apart;     /* as above, of weights and biases, too */
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
    uint64_t *keys; /* of each row `padded` */
    uint32_t *places;
    int64_t rows, n, k, padded;    /* a power of two, in every kernel but that for the first few */
    int64_t first_size, last_size; /* of sequences that are merged */
    int64_t apart;                 /* of elements that a step compares */
    int32_t type, descending;
} sort_args;

#endif
