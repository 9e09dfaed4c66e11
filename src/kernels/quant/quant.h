/* The kernels for quantized matrices: their arguments, and when each is used.
 *
 * For a product of weights (rows) with activations (columns), the first line that applies:
 *   quant_float_product    weights are f32, f16 or bf16, or activations must stay floats: canonical dot products
 *   quant_*_bf16           fast mode, 33 columns or more, and a vendor BLAS that multiplies bf16: the BLAS multiplies, and its
 *                          bits are not specified
 *   quant_gemv_one_TYPE    one column, on sm_90a, AMD chips with MFMA and gfx10 or newer: the kernel quantizes the column
 *                          itself, after a norm or gate if wanted, and can add results to y (quant_gemv_one.c)
 *   quant_gemv_TYPE        up to 32 columns, and experts: memory-bound, reads the weights once for every eight columns
 *   quant_wgmma_*          more columns, on sm_90a: weights are unpacked first, the copy engine brings stages, and wgmma
 *                          multiplies from shared memory
 *   quant_tile_*           more columns, on all other chips: the same with mma, MFMA or dot4 (simt/matrix_i8.h)
 * All but the first three need quantized activations (quant_gemv_activations, quant_tile_activations_*). Unpacking weights
 * (quant_unpack_*) costs as much as reading them a few times, so it is faster from about 32 columns on. All but the BLAS give
 * the bits of arithmetic/blocks/dot.h. gpu/quant/quant_plan.c chooses.
 *
 * In names, block32 means formats with blocks of 32 elements. kblock means the K formats: super-blocks of 256 elements, with a
 * scale for each sub-block of 16 or 32.
 */
#ifndef WW_KERNELS_QUANT_QUANT_H
#define WW_KERNELS_QUANT_QUANT_H

#include "kernels/simt/amd_families.h"

#include <stdint.h>

#if defined(__AMDGCN__) || defined(__NVPTX__)
#define QUANT_SHARED __attribute__((device, unused))
#else
#define QUANT_SHARED __attribute__((unused))
#endif

enum {
    QUANT_THREADS = 256,
    QUANT_UNIT = 4,    /* elements that one thread decodes */
    QUANT_TEAM = 32,   /* threads that work together on a product: a wave, or half of one */
    QUANT_CLASSES = 8, /* accumulators per result: block b belongs to class b % 8 and is added to that accumulator */
};

/* ---- floats to blocks and back ------------------------------------------------------------------------------------------- */

/* quant_decode: decodes rows of blocks to to_type: f32, f16 or bf16. Each thread decodes QUANT_UNIT elements of a row. A row
 * with an invalid id becomes zeros. */
typedef struct quant_decode_args {
    const uint8_t *from;
    void *to;        /* count x cols */
    const void *ids; /* the row of `from` for each row of `to`; NULL: the same row */
    uint64_t rows;   /* of from */
    uint64_t count, cols, units_per_row;
    uint64_t row_bytes;
    int32_t type, block_elements, block_bytes;
    int32_t to_type;
    int32_t id_bytes; /* per id: 1, 4 or 8 */
} quant_decode_args;

/* Reads an id of `bytes` bytes. Ids of 1 and 4 bytes are unsigned, those of 8 bytes are signed. */
static inline QUANT_SHARED uint64_t quant_id(const void *ids, int32_t bytes, uint64_t at)
{
    return bytes == 8 ? ((const uint64_t *)ids)[at] : bytes == 4 ? ((const uint32_t *)ids)[at] : ((const uint8_t *)ids)[at];
}

/* quant_encode_block32: one thread per block, for blocks of at most 32 elements, q8_k and iq4_xs. quant_encode_kblock: one
 * thread per sub-block, 8 or 16 in a block, for the other K formats. */
typedef struct quant_encode_args {
    const float *from;
    uint8_t *to;
    uint64_t count;       /* blocks */
    uint64_t first_block; /* number of the first block here */
    uint64_t *refused;    /* lowered to the number of the first block that cannot hold its elements */
    int32_t type;
} quant_encode_args;

/* ---- activations --------------------------------------------------------------------------------------------------------- */

/* quant_gemv_activations: quantizes columns of floats (blocks/encode.h: q8_1 or q8_k) for quant_gemv_TYPE. A team of 32 threads
 * handles 128 elements of a column, or a block of 256. Elements past a column's end are quantized as zeros. Nothing is written
 * for the columns that pad a group; the kernels compute results for them that nobody reads. A block that cannot be quantized
 * has the factor NaN.
 *
 * Columns are in groups of 8. For group g, block p and column c of the group:
 *
 *     factors[(g * blocks_padded + p) * 8 + c]          f32
 *     sums[(g * blocks_padded + p) * 8 + c]             block32: two i16, the sums of the first 16 codes and of the others
 *     sums[(g * blocks_padded + p) * 64 ..]             kblock: the sum of each 16 codes in two bytes, sum = low + 128 * high;
 *                                                       four low and four high bytes take the places of two words of codes
 *
 * quant_code_begin() and quant_code_word() give the layout of codes. For tensor cores, each column has its 32 codes side by
 * side, words in the order 0 4 1 5 2 6 3 7. Without tensor cores, words 0 and 4 of all columns come first, then 1 and 5, and
 * so on.
 *
 * Blocks of q4_0 and q8_0 start alternately at a multiple of four bytes and two bytes past one. Codes start two bytes into the
 * block. To read aligned words from a block at a multiple of four, the kernels start with its third code and take the first
 * two last (QUANT_ROTATE_). Columns are stored in the same order. */
enum {
    QUANT_ROTATE_NONE = 0,
    QUANT_ROTATE_16 = 16,
    QUANT_ROTATE_32 = 32
}; /* codes of even blocks are rotated by two within runs of this length */

/* AMD chips build an unaligned word from two aligned ones in one instruction, so they need no rotation. */
#if defined(__AMDGCN__)
enum { QUANT_ROTATES = 0 };
#else
enum { QUANT_ROTATES = 1 };
#endif

/* quant_code_begin(): index of a column's first word in piece `piece` of `width` columns. quant_code_word(): offset of its word
 * `word`, of eight, from there. Without tensor cores, words w and w + 4 of all columns are side by side, so that lanes that
 * read them for several columns at once hit different banks. */
#if defined(__NVPTX__)
static inline QUANT_SHARED uint64_t quant_code_begin(uint64_t piece, uint32_t width, uint32_t column)
{
    return (piece * width + column) * 8;
}

static inline QUANT_SHARED uint32_t quant_code_word(uint32_t width, uint32_t word)
{
    (void)width;
    return word % 4 * 2 + word / 4;
}
#else
static inline QUANT_SHARED uint64_t quant_code_begin(uint64_t piece, uint32_t width, uint32_t column)
{
    return piece * width * 8 + (uint64_t)(column * 2);
}

static inline QUANT_SHARED uint32_t quant_code_word(uint32_t width, uint32_t word)
{
    return word % 4 * width * 2 + word / 4;
}
#endif

/* What happens to columns before they are quantized (arithmetic/blocks/input.h). With a norm, a thread block handles a whole
 * column. */
enum {
    QUANT_NORM_MAX = 16384,  /* max elements of a column with a norm */
    QUANT_NORM_CHUNK = 4096, /* elements per chunk of its sum */
    QUANT_NORM_LANES = 64,   /* accumulators of that sum */
    QUANT_NORM_EACH = 32     /* elements per accumulator that are loaded at once */
};

typedef struct quant_input {
    const float *weight; /* INPUT_NORM: one per element of a column */
    const float *up;     /* INPUT_GATED: columns with the stride of x */
    float eps;           /* of a norm */
    float scale;         /* of a column with a norm; the kernel computes it */
    int32_t kind;        /* INPUT_ */
    int32_t unused;
} quant_input;

typedef struct quant_gemv_activations_args {
    const float *from;
    uint64_t from_stride;   /* floats from column to column, or bytes if `coded` */
    const uint32_t *source; /* the column of `from` for each padded column, UINT32_MAX for none; NULL: the same column */
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    uint64_t *refused;              /* lowered to the number of the first block that cannot be quantized; or NULL */
    uint64_t first_block;           /* number of the first block here */
    uint32_t columns;               /* of `from` */
    uint32_t columns_padded;        /* a multiple of 8 */
    uint32_t width;                 /* columns that a group has room for: 1, 2, 4 or 8 */
    uint32_t blocks, blocks_padded; /* of a column; padded to a multiple of 4 */
    int32_t type;                   /* BLOCK_Q8_1 or BLOCK_Q8_K */
    uint32_t rotation;              /* QUANT_ROTATE_ */
    uint32_t independent;           /* not 0: work queued before this kernel does not touch the same memory */
    uint32_t coded;                 /* not 0: `from` is already blocks of `type`, and the kernel only lays them out */
    uint32_t unused;
    quant_input input;
} quant_gemv_activations_args;

/* For tiles, the blocks of a class are consecutive, and classes are in the order in which they are added up: 0 4 2 6 1 5 3 7.
 * Returns the position of block `block` of `padded` blocks, a multiple of 8. */
static inline QUANT_SHARED uint32_t quant_position(uint32_t block, uint32_t padded)
{
    const uint32_t number = block % 8, order = (number & 1) << 2 | (number & 2) | number >> 2;
    return order * (padded / 8) + block / 8;
}

/* Index of the factor, minimum or sum of the block32 at `position` of a line (a row or column), of `lines` lines. */
static inline QUANT_SHARED uint64_t quant_scale_index(uint32_t position, uint64_t line, uint64_t lines)
{
    return position * lines + line;
}

/* quant_tile_activations_block32, quant_tile_activations_kblock: quantize columns for tiles. block_index() chooses 1024
 * elements, block_index_y() QUANT_COLUMNS columns. With QUANT_LAYOUT_TILES, the codes of a column are contiguous, and blocks
 * are in the order of quant_position(). A block32 has a factor and the sum of its 32 codes, both floats at quant_scale_index().
 * A K block has a record of QUANT_RECORD words in `sums`: the sums of each 16 codes, as 16 low bytes and 16 high bytes, then
 * the factor.
 *
 * QUANT_LAYOUT_WGMMA places K blocks by quant_wgmma_kblock_word() and quant_tiled_index(), and blocks of 32 by
 * quant_wgmma_block32_word() and quant_wgmma_block32_factor(). QUANT_LAYOUT_SLABS, for AMD, places codes as for wgmma and
 * records by quant_slab_record(). */
enum { QUANT_COLUMNS = QUANT_THREADS / QUANT_TEAM, QUANT_RECORD = 12 };

enum { QUANT_LAYOUT_TILES = 1, QUANT_LAYOUT_WGMMA = 2, QUANT_LAYOUT_SLABS = 3 };

/* The layout that a kernel was given, as a constant where the chip has only one. */
#if defined(__AMDGCN__)
#define QUANT_LAYOUT_OF(layout) ((void)(layout), QUANT_LAYOUT_SLABS)
#elif defined(__NVPTX__)
#define QUANT_LAYOUT_OF(layout) ((layout) == QUANT_LAYOUT_WGMMA ? QUANT_LAYOUT_WGMMA : QUANT_LAYOUT_TILES)
#else
#define QUANT_LAYOUT_OF(layout) (layout)
#endif

typedef struct quant_tile_activations_args {
    const void *from;
    uint64_t from_stride; /* elements from column to column, or bytes for blocks */
    uint64_t elements;    /* of a column */
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    uint64_t *refused; /* as above */
    uint64_t first_block;
    uint32_t columns, columns_padded; /* padded to whole tiles */
    uint32_t blocks, blocks_padded;   /* padded to a multiple of 32, of 8 for K blocks */
    int32_t from_type;                /* BLOCK_F32, BLOCK_F16, BLOCK_BF16, or already quantized: BLOCK_Q8_1, BLOCK_Q8_K */
    int32_t layout;                   /* QUANT_LAYOUT_ */
} quant_tile_activations_args;

/* ---- gemv ---------------------------------------------------------------------------------------------------------------- */

/* quant_gemv_TYPE, and quant_gemv_one_TYPE for a single column: a thread block multiplies QUANT_GEMV_ROWS rows of weights with
 * QUANT_GEMV_COLUMNS columns. `splits` neighbouring thread blocks can share this work; each takes some of the classes. From
 * sm_90 on, the copy engine brings rows, and `splits` is 1. block_index_y() and first_group choose the group of columns. */
enum {
    QUANT_GEMV_ROWS = 16,
    QUANT_GEMV_COLUMNS = 8,
    QUANT_GEMV_RESULTS = QUANT_GEMV_ROWS * QUANT_GEMV_COLUMNS,
    QUANT_READY_COUNTERS = QUANT_THREADS /* max tiles of a launch that is split */
};

/* Threads per thread block of quant_gemv_TYPE. Chips with MFMA have twice as many, so that each SIMD has two waves of 64 lanes
 * to choose from. The host asks the driver how many threads the kernel takes. */
enum { QUANT_GEMV_THREADS_MAX = 2 * QUANT_THREADS };
#if defined(SIMT_MFMA)
enum { QUANT_GEMV_THREADS = QUANT_GEMV_THREADS_MAX };
#else
enum { QUANT_GEMV_THREADS = QUANT_THREADS };
#endif

/* Resident thread blocks per compute unit. */
#define QUANT_GEMV_RESIDENT 2

typedef struct quant_gemv_args {
    const uint8_t *weights;
    uint64_t weights_stride; /* bytes from row to row */
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    const uint32_t *source;     /* as in quant_gemv_activations */
    const uint64_t *first_rows; /* for each group, the row of the weights that is its row 0; NULL: 0 */
    float *y;
    float *partial;  /* with several splits: 8 x QUANT_GEMV_RESULTS for each 16 rows and group of this launch */
    uint32_t *ready; /* with several splits: how many of them are done; 0 before and after the launch */
    uint64_t rows;
    uint32_t columns, width, first_group;
    uint32_t splits; /* 1, 2, 4 or 8 */
    uint32_t blocks, blocks_padded;
    uint32_t stages;  /* 1..8 */
    uint32_t aligned; /* not 0: all rows start at a multiple of four bytes */
    uint32_t flip; /* 0x80808080; the compiler does not know it, so it stays in a register and only the mask is an immediate */
    uint32_t adds; /* not 0: results are added to y */
    /* quant_gemv_one_TYPE: */
    uint32_t stays;       /* not 0: each thread block takes more than 16 rows (quant_gemv_stay.h) */
    uint32_t independent; /* not 0: work queued before this kernel does not touch x */
    const float *x;       /* the column, which the kernel quantizes; NULL, only with `stays`: it is already quantized */
    uint64_t *refused;    /* as in quant_gemv_activations */
    uint64_t first_block; /* as in quant_gemv_activations */
    quant_input input;    /* of x */
} quant_gemv_args;

/* ---- unpacking ----------------------------------------------------------------------------------------------------------- */

/* For tiles, weights are unpacked first and laid out like activations. Codes are signed bytes, without the format's offset. A
 * code of a K block is multiplied by the scale of its sub-block, which gives 14 bits, and split in two bytes: 128 * upper +
 * lower. 64 upper bytes of a row are followed by the 64 lower bytes of the same elements. A record has the minima of each 16
 * codes, one byte each, and from word 8 on the factors of codes and minima. Rows past the last are zeros.
 *
 * quant_unpack_block32, quant_unpack_kblock: a unit is QUANT_UNPACK_ROWS rows, which block_index_y() chooses, and
 * QUANT_UNPACK_ELEMENTS elements of each. A thread block steps by block_count() units. It needs `stages` times
 * quant_unpack_stage() bytes of shared memory. */
enum { QUANT_UNPACK_ROWS = 8, QUANT_UNPACK_ELEMENTS = 1024 };

/* Bytes of a stage for blocks of `bytes` bytes and `elements` elements. A row has room for any alignment, rounded up to a
 * multiple of 16. */
static inline QUANT_SHARED uint32_t quant_unpack_stage(uint32_t bytes, uint32_t elements)
{
    return (QUANT_UNPACK_ELEMENTS / elements * bytes + 15 + 15) / 16 * 16 * QUANT_UNPACK_ROWS;
}

typedef struct quant_unpack_args {
    const uint8_t *weights;
    uint64_t weights_stride;
    uint32_t *codes;
    float *factors, *mins;      /* of blocks of 32, at quant_scale_index() */
    uint32_t *records;          /* of K blocks */
    uint32_t rows, rows_padded; /* padded to whole tiles */
    uint32_t blocks, blocks_padded;
    int32_t type;
    int32_t layout;       /* QUANT_LAYOUT_ */
    uint32_t independent; /* not 0: only the kernel just before may still run, and it does not touch the same memory */
    uint32_t stages;      /* 2 or 3 */
} quant_unpack_args;

/* ---- tiles --------------------------------------------------------------------------------------------------------------- */

/* quant_tile_FORMATS, quant_wgmma_FORMATS: each thread block computes a tile of QUANT_TILE rows by QUANT_TILE columns.
 * block_index() is the tile; tiles of the same rows are next to each other. A thread block works on `classes` classes, which
 * block_index_y() chooses, one after the other in the order in which they are added up. */
enum {
    QUANT_TILE = 128,
    QUANT_TILE_THREADS = 256,
    QUANT_TILE_LEVELS = 3,                                               /* of sums waiting to be added: log2(QUANT_CLASSES) */
    QUANT_SLAB_ROW_BYTES = 64,                                           /* a slab: this many bytes of each row of a tile */
    QUANT_TILE_STAGE_WORDS = 2 * QUANT_TILE * QUANT_SLAB_ROW_BYTES / 4,  /* codes of a stage of blocks of 32 */
    QUANT_TILE_BLOCK32_WORDS = 4 * QUANT_TILE * 2,                       /* factors, minima, factors, sums of a stage */
    QUANT_TILE_KBLOCK_WORDS = 3 * QUANT_TILE * QUANT_SLAB_ROW_BYTES / 4, /* upper and lower bytes of rows, codes of columns */
    QUANT_TILE_RECORD_WORDS = 2 * QUANT_TILE * QUANT_RECORD,             /* records of a block */
    QUANT_TILE_PLANES_WORDS = 2 * QUANT_TILE * QUANT_RECORD * 2 / 3,     /* the same with a single stage */
    QUANT_TILE_BLOCK32_BYTES = (QUANT_TILE_STAGE_WORDS + QUANT_TILE_BLOCK32_WORDS) * 4, /* of shared memory per stage */
    QUANT_TILE_KBLOCK_BYTES = QUANT_TILE_KBLOCK_WORDS * 4,
    QUANT_TILE_RECORDS_BYTES = QUANT_TILE_RECORD_WORDS * 4, /* in addition, once */
    QUANT_TILE_PLANES_BYTES = QUANT_TILE_PLANES_WORDS * 4,
    QUANT_WGMMA_ALIGNMENT = 1024,
    QUANT_WGMMA_SUMS_BYTES = QUANT_TILE * QUANT_TILE * 4, /* sums waiting in shared memory */
    QUANT_WGMMA_BLOCK32_TEAMS = 2,
    QUANT_WGMMA_BLOCK32_THREADS = (QUANT_WGMMA_BLOCK32_TEAMS + 1) * 128,     /* the last 128 bring stages */
    QUANT_WGMMA_BLOCK32_STAGES = 3,                                          /* at most */
    QUANT_WGMMA_BLOCK32_BLOCKS = 4,                                          /* of each row and column in a stage */
    QUANT_WGMMA_BLOCK32_CODES = QUANT_TILE * QUANT_WGMMA_BLOCK32_BLOCKS * 8, /* words of rows, and of columns */
    QUANT_WGMMA_BLOCK32_SCALES = QUANT_TILE * QUANT_WGMMA_BLOCK32_BLOCKS,    /* of factors, of minima, and of sums */
    QUANT_WGMMA_BLOCK32_GROUP = 16, /* positions whose column factors are side by side, as f16 */
    QUANT_WGMMA_BLOCK32_FACTORS = QUANT_TILE * QUANT_WGMMA_BLOCK32_GROUP / 2,
    QUANT_WGMMA_BLOCK32_STAGE_WORDS =
        2 * QUANT_WGMMA_BLOCK32_CODES + 3 * QUANT_WGMMA_BLOCK32_SCALES + QUANT_WGMMA_BLOCK32_FACTORS,
    QUANT_WGMMA_KBLOCK_TEAMS = 2,
    QUANT_WGMMA_KBLOCK_THREADS = (QUANT_WGMMA_KBLOCK_TEAMS + 1) * 128, /* the last 128 bring stages */
    QUANT_WGMMA_KBLOCK_STAGES = 5,                                     /* at most */
    QUANT_WGMMA_KBLOCK_RECORDS = 2                                     /* at most */
};

typedef struct quant_tile_args {
    const uint32_t *row_codes, *column_codes;
    const float *row_factors, *row_mins, *column_factors; /* of blocks of 32 */
    const float *column_sums;
    const uint32_t *row_records, *column_records; /* of K blocks */
    float *parked;                                /* QUANT_TILE_LEVELS tiles per thread block, in an order of its own */
    float *partial;                               /* one tile per thread block; NULL: each handles all classes and writes y */
    float *y;                                     /* the result of the first row here */
    uint64_t y_stride;                            /* floats from column to column */
    uint32_t rows, columns;
    uint32_t rows_padded; /* to whole tiles */
    uint32_t blocks_padded;
    uint32_t across; /* number of tiles with the same rows */
    uint32_t classes;
    uint32_t stages;         /* 2, 3 or 4; also 1 for waves of 64 lanes except on NVIDIA, and for quant_wgmma_block32 */
    uint32_t records;        /* quant_wgmma_kblock: blocks whose records are loaded at a time, 1 or 2 */
    uint32_t sums_in_shared; /* quant_wgmma_*: not 0 if a tile of sums also fits in shared memory */
    int32_t layout;          /* QUANT_LAYOUT_ */
    uint32_t has_min;        /* not 0: the format has minima, as it always does for quant_tile_block32_min */
    uint32_t unused;
} quant_tile_args;

/* K blocks for wgmma: the index of word `word` of a block's codes, with `slabs` slabs per quarter. Each position of a tile has
 * four quarters. A quarter has the upper bytes of all rows, in the order of shared memory, then the lower bytes. */
static inline QUANT_SHARED uint64_t quant_wgmma_kblock_word(uint64_t line, uint32_t position, uint32_t padded, uint32_t slabs,
                                                            uint32_t word)
{
    const uint32_t in_tile = (uint32_t)(line % QUANT_TILE), piece = word / 4 % 4;
    const uint32_t in_slab = in_tile * (QUANT_SLAB_ROW_BYTES / 4) + (piece ^ (in_tile >> 1 & 3)) * 4 + word % 4;
    return ((line / QUANT_TILE * padded + position) * 4 + word / 16) * slabs * (QUANT_TILE * QUANT_SLAB_ROW_BYTES / 4) +
           in_slab;
}

/* Index of line `line` at a position. Tiles of `lines` lines follow each other, and within a tile positions do. */
static inline QUANT_SHARED uint64_t quant_tiled_index(uint64_t line, uint32_t position, uint32_t padded, uint32_t lines)
{
    return (line / lines * padded + position) * lines + line % lines;
}

/* Index of 16 bytes of a record, in units of 16 bytes, with QUANT_LAYOUT_SLABS: the same part of all lines of a tile is
 * contiguous. */
static inline QUANT_SHARED uint64_t quant_slab_record(uint64_t line, uint32_t position, uint32_t padded, uint32_t part)
{
    const uint64_t tile = quant_tiled_index(line, position, padded, QUANT_TILE) / QUANT_TILE;
    return tile * (uint64_t)(QUANT_RECORD / 4 * QUANT_TILE) + (uint64_t)(part * QUANT_TILE) + line % QUANT_TILE;
}

/* Index of part `part` of a record, in units of 16 bytes. */
static inline QUANT_SHARED uint64_t quant_record_part(int32_t layout, uint64_t line, uint32_t position, uint32_t padded,
                                                      uint32_t part)
{
    if (QUANT_LAYOUT_OF(layout) == QUANT_LAYOUT_SLABS)
        return quant_slab_record(line, position, padded, part);
    const uint64_t record = QUANT_LAYOUT_OF(layout) == QUANT_LAYOUT_WGMMA
                                ? quant_tiled_index(line, position, padded, QUANT_TILE)
                                : line * padded + position;
    return record * (QUANT_RECORD / 4) + part;
}

/* Blocks of 32 for wgmma. Codes are laid out as if eight positions were one K block with one slab per quarter. Factors and
 * minima of rows, and sums of columns times their factor, which is exact, are at quant_tiled_index(). Factors of columns are
 * f16, at quant_wgmma_block32_factor(); those of 16 positions make a row of a slab. */
static inline QUANT_SHARED uint64_t quant_wgmma_block32_word(uint64_t line, uint32_t position, uint32_t padded, uint32_t word)
{
    return quant_wgmma_kblock_word(line, position / 8, padded / 8, 1, position % 8 * 8 + word);
}

static inline QUANT_SHARED uint64_t quant_wgmma_block32_factor(uint64_t line, uint32_t position, uint32_t padded)
{
    enum { GROUP = QUANT_WGMMA_BLOCK32_GROUP };
    const uint32_t in_group = position % GROUP, piece = in_group / 8 ^ (line >> 2 & 1), at = piece * 8 + in_group % 8;
    return quant_tiled_index(line, position / GROUP, padded / GROUP, QUANT_TILE) * GROUP + at;
}

/* quant_tile_fold, quant_wgmma_fold: add the partial results of `splits` thread blocks for each tile. QUANT_FOLD_BLOCKS thread
 * blocks, numbered by block_index_y(), share a tile; each has as many threads as a thread block of the product. */
enum { QUANT_FOLD_BLOCKS = 8 };

typedef struct quant_tile_fold_args {
    const float *partial;
    float *y;
    uint64_t y_stride;
    uint32_t rows, columns;
    uint32_t across;
    uint32_t splits; /* 2, 4 or 8 */
} quant_tile_fold_args;

/* ---- fast mode, and float weights ---------------------------------------------------------------------------------------- */

/* quant_weights_bf16: decodes rows of blocks to bf16, scale times code plus minimum, with roundings in between. One thread per
 * 8 elements. */
typedef struct quant_weights_bf16_args {
    const uint8_t *from;
    uint16_t *to;
    uint64_t eights; /* groups of 8 elements in all rows, which are contiguous */
    int32_t type;
} quant_weights_bf16_args;

/* quant_activations_bf16: converts floats to bf16, one per thread. */
typedef struct quant_activations_bf16_args {
    const float *from;
    uint16_t *to;
    uint64_t count;
} quant_activations_bf16_args;

/* quant_float_product: 16 threads compute the canonical dot products of a row, which they decode as they read it, with
 * `together` columns. block_index_y() chooses the columns. */
enum { QUANT_FLOAT_COLUMNS = 4 };

typedef struct quant_float_args {
    const uint8_t *weights;
    const float *x;
    float *y;
    const uint64_t *first_rows; /* of each column, or QUANT_NO_ROW, QUANT_SKIPPED; NULL: 0 */
    uint64_t rows, columns, first_column;
    uint64_t weights_stride; /* bytes from row to row */
    uint64_t cols;
    int32_t type;
    uint32_t together; /* 1..QUANT_FLOAT_COLUMNS; 1 with first_rows */
} quant_float_args;

/* ---- experts by ids that are on the device ------------------------------------------------------------------------------- */

/* Values in place of a first row. QUANT_NO_ROW: the column's id is not an expert, and its results are NaN. QUANT_SKIPPED: the
 * id is the largest of its type, the column is skipped, and its results are zeros. */
#define QUANT_NO_ROW  UINT64_MAX
#define QUANT_SKIPPED (UINT64_MAX - 1)

/* quant_expert_rows: finds the first row of each column, one per thread. quant_expert_groups: a single thread block puts
 * columns with the same expert in groups of at most QUANT_GEMV_COLUMNS, as quant_gemv_TYPE reads them. `groups` is the maximum
 * number; unused groups have no columns. The kernel writes the results of columns that are in no group. */
enum { QUANT_EXPERT_COLUMNS = 4096 }; /* at most */

typedef struct quant_experts_args {
    const void *ids;
    uint64_t *first_rows; /* of each column, or of each group */
    uint32_t *source;     /* QUANT_GEMV_COLUMNS columns for each group, UINT32_MAX for none */
    float *y;             /* columns x rows */
    uint64_t rows;        /* of an expert */
    uint64_t experts;
    uint32_t columns, groups;
    int32_t id_bytes;
} quant_experts_args;

#endif
