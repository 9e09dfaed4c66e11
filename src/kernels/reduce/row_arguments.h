/* What the kernels about rows take: reductions, softmax and norms, rotary embedding, sorting. */
#ifndef WW_KERNELS_REDUCE_ROW_ARGUMENTS_H
#define WW_KERNELS_REDUCE_ROW_ARGUMENTS_H

#include "arithmetic/reduce.h"

enum {
    REDUCE_THREADS = 256,
    REDUCE_NARROW_GROUP = 8,      /* lanes that make one run of a row of 16-bit elements, eight accumulators each */
    REDUCE_GROUP = 16,            /* lanes that make one run of a row, four accumulators each */
    REDUCE_COLUMNS = 64,          /* results of a block where results lie side by side */
    REDUCE_COLUMNS_THREADS = 512, /* of it, where they are loaded by 16 bytes */
    REDUCE_READY = 4096,          /* counters of blocks that are ready */
    ARG_GROUP = 32,               /* lanes that find the first of the best of a stretch by fours */
    REDUCE_FINISH_RUNS = 256,     /* runs of the second round that one launch finishes */
    ROW_THREADS = 256,
    ROW_SHORT = 1024,          /* elements of a row, or a part of it, that 32 or 64 lanes hold in registers */
    ROW_PAIR_LANES = 32,       /* that do it by pairs */
    ROW_PAIR_THREADS = 512,    /* of as many parts as a row may have */
    ROW_PAIR_FEW = 64,         /* threads of a block where a row is one part */
    ROW_AHEAD_RESIDENT = 1024, /* threads of a compute unit where blocks go from row to row, for which there are registers */
    ROW_WHOLE = 4096,          /* elements that 32 lanes hold where there are registers for so many */
    ROW_WHOLE_THREADS = 128,   /* of a block then */
    ROW_WHOLE_RESIDENT = 384,
    ROW_STRETCH = 512,         /* elements that rows which 32 lanes have to themselves are multiples of */
    ROW_WAVE_THREADS = 512,    /* of a block of such, the only one of a compute unit */
    ROW_WAVE_RUNS = 2,         /* runs that such a row may have */
    ROW_WAVE_THREADS_2 = 384,  /* of a block of rows of two */
    ROW_WAVE_FEW = 128,        /* at least */
    ROW_REGISTERS_MAX = 16384, /* elements of a row that a block holds in registers */
    ROW_HELD_BYTES = 32768,    /* rows up to this, as their kind, are kept in shared memory */
    ROW_RESULTS_HERE = 512,    /* results of runs, likewise */
    SORT_ROW_MAX = 4096,       /* elements of a row that one block sorts */
    SORT_ROW_THREADS = 512,    /* of it */
    TOP_THREADS = 256,         /* of a block that looks for the first few of such a row */
    TOP_MAX = TOP_THREADS,     /* of them */
    SORT_TILE = 2048,          /* pairs that a block sorts in shared memory */
    SORT_THREADS = 256,
};

/* A round: of each result and run one element. Or all rounds, where `ready` counts the blocks that are: of the only result, or
 * for columns of each 64 results, up to 64 runs of them. */
typedef struct reduce_args {
    const void *x;
    void *out;
    void *between;   /* what runs come to, as the kind, if `ready` */
    uint32_t *ready; /* all 0, and again in the end; or NULL */
    reduce_dims kept, reduced;
    int64_t outs, n, runs;
    int64_t divide_by;    /* a mean's count in the last round, or 0 */
    int32_t op, type, to; /* `to`: the type of what is written */
    int32_t dense;        /* elements that are reduced lie side by side */
    int32_t chunks;       /* and every four of them can be loaded at once */
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
    void *results; /* of runs, if they do not fit shared memory */
    int64_t rows, n, runs;
    double eps;
    int32_t op, type;
    int32_t held;   /* a row fits shared memory */
    int32_t chunks; /* rows can be loaded and stored by fours */
    int32_t apart;  /* as above, of weights and biases, too */
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
    int64_t rows, n, k, padded;
    int64_t first_size, last_size; /* of sequences that are merged */
    int64_t apart;                 /* of elements that a step compares */
    int32_t type, descending;
} sort_args;

#endif
