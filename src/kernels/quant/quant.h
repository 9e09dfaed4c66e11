/* What the kernels for quantized matrices take. */
#ifndef WW_KERNELS_QUANT_QUANT_H
#define WW_KERNELS_QUANT_QUANT_H

#include <stdint.h>

#if defined(__AMDGCN__) || defined(__NVPTX__)
#define QUANT_SHARED __attribute__((device, unused))
#else
#define QUANT_SHARED __attribute__((unused))
#endif

enum {
    QUANT_THREADS = 256,
    QUANT_UNIT = 4,    /* elements that a thread decodes */
    QUANT_TEAM = 32,   /* threads that work together in products: a wave, or half of one */
    QUANT_CLASSES = 8, /* accumulators of a result: that of block b is number b % 8 */
};

/* quant_decode: rows of blocks to floats. A thread for each QUANT_UNIT elements of a row, units_per_row of them; blocks of
 * QUANT_THREADS. */
typedef struct quant_decode_args {
    const uint8_t *from;
    float *to;           /* count x cols */
    const uint64_t *ids; /* the row of `from` for each row of `to`; NULL: the same */
    uint64_t count, cols, units_per_row;
    uint64_t row_bytes;
    int32_t type, block_elements, block_bytes;
} quant_decode_args;

/* quant_encode_small: a thread for each block of at most 32 elements, and of q8_k. quant_encode_large: as many threads for a
 * block as it has runs, 8 or 16, of the other K formats. Blocks of QUANT_THREADS. */
typedef struct quant_encode_args {
    const float *from;
    uint8_t *to;
    uint64_t count;    /* of blocks */
    uint64_t number;   /* of the first */
    uint64_t *refused; /* lowered to the number of the first block that cannot hold its elements */
    int32_t type;
} quant_encode_args;

/* For tiles the blocks of one accumulator follow each other, and accumulators do so in the order in which they are added up, 0
 * 4 2 6 1 5 3 7: where block b of `kept` blocks is, a multiple of 8. */
static inline QUANT_SHARED uint32_t quant_place(uint32_t block, uint32_t kept)
{
    const uint32_t number = block % 8, order = (number & 1) << 2 | (number & 2) | number >> 2;
    return order * (kept / 8) + block / 8;
}

/* And where what belongs to the small block at `place` of line `line` is, of `lines`. */
static inline QUANT_SHARED uint64_t quant_beside(uint32_t place, uint64_t line, uint64_t lines)
{
    return place * lines + line;
}

/* quant_activations: columns of floats become codes (blocks/encode.h: q8_1 or q8_k) in planes as the products want them. A team
 * of 32 threads for 128 elements of a column, or for a block of 256; blocks of QUANT_THREADS. Elements behind a column's last
 * are coded as zeros; of columns that are not there nothing is written, and what a product makes of them is nobody's. A block
 * that cannot be coded has the factor NaN.
 *
 * For few columns, in groups of 8: of group g, block p, column c of the group,
 *
 *     factors[(g * blocks_kept + p) * 8 + c]         f32
 *     sums[(g * blocks_kept + p) * 8 + c]            of a small block: two i16, the sum of the first 16 codes, and of the
 * others sums[((g * blocks_kept + p) * 8 + c) * 8 ..]   of a large one: the sums of each 16 codes in two bytes, sum = low + 128
 * * high; four low ones, four high ones, the next four, ...
 *
 * and codes as tensor cores want them: 32 codes of `width` columns together, of each column the words 0 4 1 5 2 6 3 7. Blocks
 * of q4_0 and q8_0 begin at a multiple of four bytes or two behind one, in turns; the codes of those that do come two bytes
 * behind it, so products read them from the third code on, and the first two last (quant_turn): that is the order of columns,
 * too. */
enum { QUANT_RECORD = 12 };

enum { QUANT_FOR_TILES = 1, QUANT_FOR_WIDE_TILES = 2 };

/* Within how many codes those of even blocks are turned by two. */
enum { QUANT_TURN_NONE = 0, QUANT_TURN_16 = 16, QUANT_TURN_32 = 32 };

typedef struct quant_activations_args {
    const float *from;
    uint64_t from_stride;   /* floats from column to column */
    const uint32_t *source; /* the column of `from` in each place, UINT32_MAX for none; NULL: the same */
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    uint64_t *refused;            /* lowered to the number of the first block that cannot be coded; NULL: nobody asks */
    uint64_t number;              /* of the first */
    uint32_t columns;             /* of `from` */
    uint32_t places;              /* of columns; a multiple of 8 */
    uint32_t width;               /* columns of a group for which there is room: 1, 2, 4 or 8 */
    uint32_t blocks, blocks_kept; /* of a column; kept is what there is room for, a multiple of 4 */
    int32_t type;                 /* BLOCK_Q8_1 or BLOCK_Q8_K */
    uint32_t turn;                /* QUANT_TURN_ */
    uint32_t apart;               /* not 0: what is queued in front of this kernel does not touch what it touches */
} quant_activations_args;

/* quant_columns_small, quant_columns_large: the same for tiles. Each column has its codes in a row, blocks in the order of
 * quant_place(). Factors and sums of small blocks, those of all 32 codes, as floats, are at quant_beside(). Of a large block
 * they are a record of QUANT_RECORD words in `sums`: the sums of each 16 codes, 16 low bytes, 16 high ones; then the factor.
 * For QUANT_FOR_WIDE_TILES, those of chips that multiply from shared memory, codes and records lie as quant_wgmma_large_word()
 * and quant_together() say, and what belongs to small blocks as quant_wgmma_small_word() and quant_wgmma_small_factor() do.
 * Blocks of QUANT_THREADS: block_index() chooses which 1024 elements, block_index_y() which QUANT_COLUMNS columns. */
enum { QUANT_COLUMNS = QUANT_THREADS / QUANT_TEAM };

typedef struct quant_columns_args {
    const void *from;
    uint64_t from_stride; /* elements from column to column */
    uint64_t elements;    /* of a column */
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    uint64_t *refused; /* as above */
    uint64_t number;
    uint32_t columns, places;     /* places: whole tiles */
    uint32_t blocks, blocks_kept; /* kept: a multiple of 32, of 8 if they are large */
    int32_t from_type;            /* BLOCK_F32, BLOCK_F16 or BLOCK_BF16 */
    int32_t tiles;                /* QUANT_FOR_ */
} quant_columns_args;

/* quant_gemv_TYPE, and quant_gemv_fused_TYPE for a single column: QUANT_FEW_ROWS rows of weights times QUANT_FEW_COLUMNS
 * columns for each block of QUANT_THREADS, or for `parts` such blocks, next to each other, of which each takes as many of the
 * accumulators; block_index_y() and first_group choose the group of columns. Where the copy engine brings rows, from sm_90 on,
 * there is one part. */
enum {
    QUANT_FEW_ROWS = 16,
    QUANT_FEW_COLUMNS = 8,
    QUANT_FEW_RESULTS = QUANT_FEW_ROWS * QUANT_FEW_COLUMNS,
    QUANT_SHARES = 64 /* of the coding of a single column, at most */
};

/* Blocks of threads that a compute unit is to hold. Where products with a single column overlap, two of each, so that there is
 * always one that reads; formats with runs of 16 want some more registers. */
#define QUANT_FEW_RESIDENT       2
#define QUANT_ONE_RESIDENT(type) ((type) == BLOCK_Q2_K || (type) == BLOCK_Q3_K || (type) == BLOCK_Q6_K ? 3 : 4)

typedef struct quant_gemv_args {
    const uint8_t *weights;
    uint64_t weights_stride; /* bytes from row to row */
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    const uint32_t *source;     /* as in quant_activations */
    const uint64_t *first_rows; /* of each group: the row of the weights that is its row 0; NULL: 0 */
    float *y;
    float *partial;  /* of each 16 rows and group of this launch 8 x QUANT_FEW_RESULTS; and */
    uint32_t *ready; /* how many of their blocks are done, 0 before and behind: wanted where there are parts */
    uint64_t rows;
    uint32_t columns, width, first_group;
    uint32_t parts; /* 1, 2, 4 or 8 */
    uint32_t blocks, blocks_kept;
    uint32_t stages;  /* 1..8 */
    uint32_t aligned; /* not 0: all rows begin at a multiple of four bytes */
    uint32_t flip;    /* 0x80808080: not known to the compiler, it is in a register, and a mask besides it in the instruction */
    const float *x;   /* of quant_gemv_fused_TYPE: the column, to be coded on the way; NULL: it is coded */
    uint64_t *refused; /* as in quant_activations, */
    uint64_t number;   /* likewise */
    uint32_t *coded;   /* a word for each share of the coding: it is done when that is `turn` */
    uint32_t turn;
    uint32_t apart; /* not 0: what is queued in front of this kernel does not touch x, nor what it codes */
} quant_gemv_args;

/* For many columns weights are unpacked first, into the same planes that activations have for tiles: codes are signed bytes,
 * the format's offset taken off. Those of large blocks are multiplied with the scales of their runs, which makes 14 bits of
 * them, and split: 128 * upper + lower. 64 upper bytes of a row lie before the 64 lower ones of the same elements. A record has
 * the minima of each 16 codes, a byte each, and from word 8 on the factors of both. Rows behind the last are zeros.
 * quant_unpack_small, quant_unpack_large: units of QUANT_UNPACK_ROWS rows, which block_index_y() chooses, and
 * QUANT_UNPACK_ELEMENTS of each, block_count() units apart. Blocks of QUANT_THREADS, with `stages` times quant_unpack_room() of
 * shared memory. */
enum { QUANT_UNPACK_ROWS = 8, QUANT_UNPACK_ELEMENTS = 1024 };

/* Bytes of a stage for blocks of so many bytes and elements: of a row a multiple of 16, wherever it begins. */
static inline QUANT_SHARED uint32_t quant_unpack_room(uint32_t bytes, uint32_t elements)
{
    return (QUANT_UNPACK_ELEMENTS / elements * bytes + 15 + 15) / 16 * 16 * QUANT_UNPACK_ROWS;
}

typedef struct quant_unpack_args {
    const uint8_t *weights;
    uint64_t weights_stride;
    uint32_t *codes;
    float *factors, *mins; /* of small blocks, at quant_beside() */
    uint32_t *records;     /* of large ones */
    uint32_t rows, places; /* places: of rows, whole tiles */
    uint32_t blocks, blocks_kept;
    int32_t type;
    int32_t tiles;   /* QUANT_FOR_, but for few columns */
    uint32_t apart;  /* not 0: nothing runs but the kernel in front, which does not touch what this one touches */
    uint32_t stages; /* 2 or 3 */
} quant_unpack_args;

/* quant_tile_KIND: QUANT_TILE rows by QUANT_TILE columns for each block of QUANT_TILE_THREADS; block_index() is the tile, those
 * of the same rows together. The classes of accumulators are worked on one after the other, in the order in which they are
 * added up; `classes` of them by one block, and block_index_y() chooses which. */
enum {
    QUANT_TILE = 128,
    QUANT_TILE_THREADS = 256,
    QUANT_TILE_RUN = 64,                                          /* bytes of a row in a slab */
    QUANT_TILE_STAGE_WORDS = 2 * QUANT_TILE * QUANT_TILE_RUN / 4, /* codes of a stage of small blocks */
    QUANT_TILE_SMALL_WORDS = 4 * QUANT_TILE * 2,                  /* factors, minima, factors, sums of a stage */
    QUANT_TILE_LARGE_WORDS = 3 * QUANT_TILE * QUANT_TILE_RUN / 4, /* upper and lower bytes of rows, codes of columns */
    QUANT_TILE_RECORD_WORDS = 2 * QUANT_TILE * QUANT_RECORD,      /* records of a block */
    QUANT_TILE_SMALL_BYTES = (QUANT_TILE_STAGE_WORDS + QUANT_TILE_SMALL_WORDS) * 4, /* of shared memory for each stage */
    QUANT_TILE_LARGE_BYTES = QUANT_TILE_LARGE_WORDS * 4,
    QUANT_TILE_RECORDS_BYTES = QUANT_TILE_RECORD_WORDS * 4, /* and once */
    QUANT_WIDE_ALIGNMENT = 1024, /* quant_wide_KIND: the same for chips that multiply from shared memory */
    QUANT_WIDE_TEAMS = 2,
    QUANT_WIDE_THREADS = (QUANT_WIDE_TEAMS + 1) * 128,     /* the last of which bring stages */
    QUANT_WIDE_STAGES = 3,                                 /* at most */
    QUANT_WIDE_BLOCKS = 4,                                 /* of each row and column in a stage */
    QUANT_WIDE_CODES = QUANT_TILE * QUANT_WIDE_BLOCKS * 8, /* words of rows, and of columns */
    QUANT_WIDE_BESIDE = QUANT_TILE * QUANT_WIDE_BLOCKS,    /* of factors, of minima, and of sums */
    QUANT_WIDE_GROUP = 16,                                 /* places, of which factors of columns lie together, as f16 */
    QUANT_WIDE_FACTORS = QUANT_TILE * QUANT_WIDE_GROUP / 2,
    QUANT_WIDE_STAGE_WORDS = 2 * QUANT_WIDE_CODES + 3 * QUANT_WIDE_BESIDE + QUANT_WIDE_FACTORS,
    QUANT_LARGE_TEAMS = 2,
    QUANT_LARGE_THREADS = (QUANT_LARGE_TEAMS + 1) * 128, /* the last of which bring stages */
    QUANT_LARGE_STAGES = 5,                              /* at most */
    QUANT_LARGE_RECORDS = 2,                             /* at most */
    QUANT_WIDE_ROOM_BYTES = QUANT_TILE * QUANT_TILE * 4  /* for sums that wait */
};

typedef struct quant_tile_args {
    const uint32_t *row_codes, *column_codes;
    const float *row_factors, *row_mins, *column_factors; /* of small blocks */
    const float *column_sums;
    const uint32_t *row_records, *column_records; /* of large ones */
    float *parked;                                /* 3 tiles for each block, as its threads want them */
    float *partial;                               /* a tile for each block; NULL: all classes are here, and y is written */
    float *y;                                     /* of the first row here */
    uint64_t y_stride;                            /* floats from column to column */
    uint32_t rows, columns;
    uint32_t row_places; /* of rows, whole tiles */
    uint32_t blocks_kept;
    uint32_t across; /* tiles of the same rows */
    uint32_t classes;
    uint32_t stages;  /* 2, 3 or 4; of quant_wide_KIND from 1 on */
    uint32_t records; /* quant_wgmma_large: those of so many blocks at a time, 1 or 2 */
    uint32_t room;    /* quant_wide_KIND, quant_wgmma_large: not 0 if there is shared memory for a tile of sums, too */
} quant_tile_args;

/* quant_wgmma_large, quant_wgmma_large_min: the same for chips that multiply from shared memory, by blocks of
 * QUANT_LARGE_THREADS. Place by place the four quarters of what a tile wants, of each the upper bytes of all rows, as they will
 * lie in shared memory, then the lower ones. Which word of that, of `slabs` of a quarter, has word `word` of a block's codes;
 * their records lie together likewise. */
static inline QUANT_SHARED uint64_t quant_wgmma_large_word(uint64_t line, uint32_t place, uint32_t kept, uint32_t slabs,
                                                           uint32_t word)
{
    const uint32_t in_tile = (uint32_t)(line % QUANT_TILE), piece = word / 4 % 4;
    const uint32_t in_slab = in_tile * (QUANT_TILE_RUN / 4) + (piece ^ (in_tile >> 1 & 3)) * 4 + word % 4;
    return ((line / QUANT_TILE * kept + place) * 4 + word / 16) * slabs * (QUANT_TILE * QUANT_TILE_RUN / 4) + in_slab;
}

/* Of something that lies together for `lines` of a tile, place by place: which is that of line `line`. */
static inline QUANT_SHARED uint64_t quant_together(uint64_t line, uint32_t place, uint32_t kept, uint32_t lines)
{
    return (line / lines * kept + place) * lines + line % lines;
}

/* quant_wide_KIND: small blocks for the same chips. Codes lie as if eight places were one of a large block with one slab a
 * quarter; factors and minima of rows, and of columns the sums times their factor, which is exact, at quant_together(). Factors
 * of columns are f16, and those of 16 places make a row of a slab: this one is number so many of them. */
static inline QUANT_SHARED uint64_t quant_wgmma_small_word(uint64_t line, uint32_t place, uint32_t kept, uint32_t word)
{
    return quant_wgmma_large_word(line, place / 8, kept / 8, 1, place % 8 * 8 + word);
}

static inline QUANT_SHARED uint64_t quant_wgmma_small_factor(uint64_t line, uint32_t place, uint32_t kept)
{
    const uint32_t in_group = place % QUANT_WIDE_GROUP, piece = in_group / 8 ^ (line >> 2 & 1), at = piece * 8 + in_group % 8;
    return quant_together(line, place / QUANT_WIDE_GROUP, kept / QUANT_WIDE_GROUP, QUANT_TILE) * QUANT_WIDE_GROUP + at;
}

/* quant_fold: adds what `parts` blocks of threads found for each tile; the same threads, but QUANT_FOLD_BLOCKS blocks of them
 * for each tile, block_index_y() chooses which. */
enum { QUANT_FOLD_BLOCKS = 8 };

typedef struct quant_fold_args {
    const float *partial;
    float *y;
    uint64_t y_stride;
    uint32_t rows, columns;
    uint32_t across;
    uint32_t parts; /* 2, 4 or 8 */
} quant_fold_args;

/* For fast products. quant_halve: rows of blocks, but for plain formats, to bf16, scale times code plus minimum, rounded here
 * and there; a thread for each 8 elements. quant_narrow: floats to bf16, a thread each. Blocks of QUANT_THREADS. */
typedef struct quant_halve_args {
    const uint8_t *from;
    uint16_t *to;
    uint64_t eights; /* of all rows, which follow each other */
    int32_t type;
} quant_halve_args;

typedef struct quant_narrow_args {
    const float *from;
    uint16_t *to;
    uint64_t count;
} quant_narrow_args;

/* quant_product_plain: 16 threads for a row of f32, f16 or bf16 and one column, as canonical dot products; block_index_y()
 * chooses the column. */
typedef struct quant_product_args {
    const uint8_t *weights;
    const float *x;
    float *y;
    const uint64_t *first_rows; /* of each column; NULL: 0 */
    uint64_t rows, columns, first_column;
    uint64_t weights_stride; /* bytes from row to row */
    uint64_t cols;
    int32_t type;
} quant_product_args;

#endif
