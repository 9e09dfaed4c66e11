/* The kernels for quantized matrices: what they take, and when each is taken.
 *
 * A product of weights (rows) with activations (columns), the first line that applies:
 *   quant_float_product    weights are f32, f16 or bf16, or activations are to stay floats: canonical dot products
 *   quant_*_bf16           fast mode, 33 columns or more, a vendor BLAS that multiplies bf16: that is used, and no bits are
 *                          promised
 *   quant_gemv_one_TYPE    one column, on sm_90a, AMD's chips with MFMA and those from gfx10 on: the product codes it itself,
 *                          behind a norm or gated, and results may be added to y (quant_gemv_one.c)
 *   quant_gemv_TYPE        up to 32 columns, and experts: bound by reading the weights, once for each eight columns
 *   quant_wgmma_*          more, on sm_90a: weights are unpacked first, stages come by the copy engine, wgmma multiplies from
 *                          shared memory
 *   quant_tile_*           more, anywhere else: the same by mma, MFMA or dot4 (simt/matrix_i8.h)
 * Each but the first two codes its activations before (quant_gemv_activations, quant_tile_activations_*); unpacking weights
 * (quant_unpack_*) costs as much as reading them a few times, so it pays from some 32 columns on. All but the BLAS give the
 * bits of arithmetic/blocks/dot.h. gpu/quant/quant_plan.c chooses.
 *
 * In names, block32 is the formats with blocks of 32 elements, kblock the K formats with super-blocks of 256, whose sub-blocks
 * of 16 or 32 elements have a scale each.
 */
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
    QUANT_TEAM = 32,   /* threads that cooperate in products: a wave, or half of one */
    QUANT_CLASSES = 8, /* accumulators of a result: block b is of class b % 8, and goes to that accumulator */
};

/* ---- floats to blocks and back ------------------------------------------------------------------------------------------- */

/* quant_decode: rows of blocks to numbers of to_type: f32, f16 or bf16. A thread for each QUANT_UNIT elements of a row,
 * units_per_row of them. An invalid id makes zeros. */
typedef struct quant_decode_args {
    const uint8_t *from;
    void *to;        /* count x cols */
    const void *ids; /* the row of `from` for each row of `to`; NULL: the same */
    uint64_t rows;   /* of from */
    uint64_t count, cols, units_per_row;
    uint64_t row_bytes;
    int32_t type, block_elements, block_bytes;
    int32_t to_type;
    int32_t id_bytes; /* of each id: 1, 4 or 8 */
} quant_decode_args;

/* An id of `bytes` bytes; unsigned, except with 8 bytes. */
static inline QUANT_SHARED uint64_t quant_id(const void *ids, int32_t bytes, uint64_t at)
{
    return bytes == 8 ? ((const uint64_t *)ids)[at] : bytes == 4 ? ((const uint32_t *)ids)[at] : ((const uint8_t *)ids)[at];
}

/* quant_encode_block32: a thread for each block of at most 32 elements, of q8_k and of iq4_xs. quant_encode_kblock: a thread
 * for each sub-block, 8 or 16 of them, of the other K formats. */
typedef struct quant_encode_args {
    const float *from;
    uint8_t *to;
    uint64_t count;       /* blocks */
    uint64_t first_block; /* its number */
    uint64_t *refused;    /* lowered to the number of the first block that cannot hold its elements */
    int32_t type;
} quant_encode_args;

/* ---- activations --------------------------------------------------------------------------------------------------------- */

/* quant_gemv_activations: columns of floats become codes (blocks/encode.h: q8_1 or q8_k) as quant_gemv_TYPE reads them. A team
 * of 32 threads for 128 elements of a column, or for a block of 256. Elements past a column's end are coded as zeros; nothing
 * is written for the columns that pad a group, and what a product makes of them is not used. A block that cannot be coded has
 * the factor NaN.
 *
 * Columns are in groups of 8: of group g, block p, column c of the group,
 *
 *     factors[(g * blocks_padded + p) * 8 + c]          f32
 *     sums[(g * blocks_padded + p) * 8 + c]             block32: two i16, the sums of the first 16 codes and of the others
 *     sums[(g * blocks_padded + p) * 64 ..]             kblock: the sums of each 16 codes in two bytes, sum = low + 128 * high;
 *                                                       four low ones and four high ones take the places of two codes' words
 *
 * and codes as quant_code_begin() and quant_code_word() say: as tensor cores want them, 32 codes of `width` columns side by
 * side, of each column the words 0 4 1 5 2 6 3 7; without tensor cores words 0 and 4 of all columns, then 1 and 5, and so on.
 * Blocks of q4_0 and q8_0 begin alternately at a multiple of four bytes and two bytes past one. Codes of the former are two
 * bytes into the block, so products read them from the third code on, and the first two last (QUANT_ROTATE_): columns have the
 * same order. */
enum {
    QUANT_ROTATE_NONE = 0,
    QUANT_ROTATE_16 = 16,
    QUANT_ROTATE_32 = 32
}; /* codes of even blocks, rotated by two within this many */

/* AMD's chips put words together from two with one instruction, and read codes in their order. */
#if defined(__AMDGCN__)
enum { QUANT_ROTATES = 0 };
#else
enum { QUANT_ROTATES = 1 };
#endif

/* Where the words of a column begin among those of `width` columns, of piece number `piece`, and where from there on word
 * `word` of eight is. Without tensor cores, a word and the fourth after it of all columns are side by side: lanes that read
 * them of several columns at once find them in different banks. */
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

/* What columns are before they are coded (arithmetic/blocks/input.h). Behind a norm a thread block has a whole column. */
enum {
    QUANT_NORM_MAX = 16384,  /* elements of a column behind a norm, */
    QUANT_NORM_CHUNK = 4096, /* of a chunk of its sum */
    QUANT_NORM_LANES = 64,   /* accumulators of that sum */
    QUANT_NORM_EACH = 32     /* elements of one that are on their way at once */
};

typedef struct quant_input {
    const float *weight; /* INPUT_NORM: as many as a column has elements */
    const float *up;     /* INPUT_GATED: columns as far apart as those of x */
    float eps;           /* of a norm */
    float scale;         /* of a column behind a norm; the kernel's own */
    int32_t kind;        /* INPUT_ */
    int32_t unused;
} quant_input;

typedef struct quant_gemv_activations_args {
    const float *from;
    uint64_t from_stride;   /* floats from column to column, or bytes if it is coded */
    const uint32_t *source; /* the column of `from` for each padded column, UINT32_MAX for none; NULL: the same */
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    uint64_t *refused;              /* lowered to the number of the first block that cannot be coded; NULL: nobody asks */
    uint64_t first_block;           /* its number */
    uint32_t columns;               /* of `from` */
    uint32_t columns_padded;        /* a multiple of 8 */
    uint32_t width;                 /* columns that a group has room for: 1, 2, 4 or 8 */
    uint32_t blocks, blocks_padded; /* of a column; padded to a multiple of 4 */
    int32_t type;                   /* BLOCK_Q8_1 or BLOCK_Q8_K */
    uint32_t rotation;              /* QUANT_ROTATE_ */
    uint32_t independent;           /* not 0: the work queued before this kernel does not touch what it touches */
    uint32_t coded;                 /* not 0: `from` is blocks of `type`, which are laid out as they are */
    uint32_t unused;
    quant_input input;
} quant_gemv_activations_args;

/* For tiles the blocks of a class follow each other, and classes do so in the order in which they are added up, 0 4 2 6 1 5 3
 * 7: the position of block b of `padded` blocks, a multiple of 8. */
static inline QUANT_SHARED uint32_t quant_position(uint32_t block, uint32_t padded)
{
    const uint32_t number = block % 8, order = (number & 1) << 2 | (number & 2) | number >> 2;
    return order * (padded / 8) + block / 8;
}

/* Where the factor, minimum or sum of the block32 at `position` of a line (a row or column) is, of `lines`. */
static inline QUANT_SHARED uint64_t quant_scale_index(uint32_t position, uint64_t line, uint64_t lines)
{
    return position * lines + line;
}

/* quant_tile_activations_block32, quant_tile_activations_kblock: the same for tiles. Each column has its codes in a row, blocks
 * by quant_position(). Factors and sums of a block32, that of all 32 codes, as floats, are at quant_scale_index(). A K block
 * has a record of QUANT_RECORD words in `sums`: the sums of each 16 codes, 16 low bytes, 16 high ones; then the factor. With
 * QUANT_LAYOUT_WGMMA codes and records are laid out by quant_wgmma_kblock_word() and quant_tiled_index(), and those of blocks
 * of 32 by quant_wgmma_block32_word() and quant_wgmma_block32_factor(). With QUANT_LAYOUT_SLABS, AMD's, codes are as for wgmma,
 * records by quant_slab_record(). block_index() chooses which 1024 elements, block_index_y() which QUANT_COLUMNS columns. */
enum { QUANT_COLUMNS = QUANT_THREADS / QUANT_TEAM, QUANT_RECORD = 12 };

enum { QUANT_LAYOUT_TILES = 1, QUANT_LAYOUT_WGMMA = 2, QUANT_LAYOUT_SLABS = 3 };

/* The layout that kernels are told, as far as it is not known already: AMD's have one alone. */
#if defined(__AMDGCN__)
#define QUANT_LAYOUT_OF(layout) ((void)(layout), QUANT_LAYOUT_SLABS)
#elif defined(__NVPTX__)
#define QUANT_LAYOUT_OF(layout) ((layout) == QUANT_LAYOUT_WGMMA ? QUANT_LAYOUT_WGMMA : QUANT_LAYOUT_TILES)
#else
#define QUANT_LAYOUT_OF(layout) (layout)
#endif

typedef struct quant_tile_activations_args {
    const void *from;
    uint64_t from_stride; /* elements from column to column, or bytes if they are blocks */
    uint64_t elements;    /* of a column */
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    uint64_t *refused; /* as above */
    uint64_t first_block;
    uint32_t columns, columns_padded; /* padded to whole tiles */
    uint32_t blocks, blocks_padded;   /* padded to a multiple of 32, of 8 for K blocks */
    int32_t from_type;                /* BLOCK_F32, BLOCK_F16, BLOCK_BF16, or coded already: BLOCK_Q8_1, BLOCK_Q8_K */
    int32_t layout;                   /* QUANT_LAYOUT_ */
} quant_tile_activations_args;

/* ---- gemv ---------------------------------------------------------------------------------------------------------------- */

/* quant_gemv_TYPE, and quant_gemv_one_TYPE for a single column: QUANT_GEMV_ROWS rows of weights times QUANT_GEMV_COLUMNS
 * columns for each thread block, or for `splits` neighbouring thread blocks, each of which takes some of the classes;
 * block_index_y() and first_group choose the group of columns. Where the copy engine brings rows, from sm_90 on, there is one
 * split. */
enum {
    QUANT_GEMV_ROWS = 16,
    QUANT_GEMV_COLUMNS = 8,
    QUANT_GEMV_RESULTS = QUANT_GEMV_ROWS * QUANT_GEMV_COLUMNS,
    QUANT_READY_COUNTERS = QUANT_THREADS /* tiles of a launch that may be split */
};

/* Threads of a thread block of quant_gemv_TYPE: where a wave has 64 lanes and multiplies by MFMA twice as many as elsewhere, so
 * that each SIMD has two waves to choose from. The host asks the driver how many the kernel takes. */
enum { QUANT_GEMV_THREADS_MAX = 2 * QUANT_THREADS };
#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__)
enum { QUANT_GEMV_THREADS = QUANT_GEMV_THREADS_MAX };
#else
enum { QUANT_GEMV_THREADS = QUANT_THREADS };
#endif

/* Thread blocks that a compute unit is to hold. */
#define QUANT_GEMV_RESIDENT 2

typedef struct quant_gemv_args {
    const uint8_t *weights;
    uint64_t weights_stride; /* bytes from row to row */
    uint32_t *codes;
    float *factors;
    uint32_t *sums;
    const uint32_t *source;     /* as in quant_gemv_activations */
    const uint64_t *first_rows; /* of each group: the row of the weights that is its row 0; NULL: 0 */
    float *y;
    float *partial;  /* of each 16 rows and group of this launch 8 x QUANT_GEMV_RESULTS; and */
    uint32_t *ready; /* how many of their splits are done, 0 before and after: wanted where there are several */
    uint64_t rows;
    uint32_t columns, width, first_group;
    uint32_t splits; /* 1, 2, 4 or 8 */
    uint32_t blocks, blocks_padded;
    uint32_t stages;  /* 1..8 */
    uint32_t aligned; /* not 0: all rows begin at a multiple of four bytes */
    uint32_t flip;    /* 0x80808080: unknown to the compiler, it is in a register, and a mask besides it in the instruction */
    uint32_t adds;    /* not 0: results are added to y */
    /* quant_gemv_one_TYPE: */
    uint32_t stays;       /* not 0: thread blocks take more than 16 rows each (quant_gemv_stay.h) */
    uint32_t independent; /* not 0: the work queued before this kernel does not touch x */
    const float *x;    /* the column, to be coded by the kernel; NULL, which only those that stay take: it is coded already */
    uint64_t *refused; /* as in quant_gemv_activations */
    uint64_t first_block; /* as there */
    quant_input input;    /* of x */
} quant_gemv_args;

/* ---- unpacking ----------------------------------------------------------------------------------------------------------- */

/* For tiles weights are unpacked first, and laid out as activations are: codes are signed bytes, the format's offset taken off.
 * Those of K blocks are multiplied by the scales of their sub-blocks, which makes 14 bits of them, and cut in two: 128 * upper
 * + lower. 64 upper bytes of a row are followed by the 64 lower ones of the same elements. A record has the minima of each 16
 * codes, a byte each, and from word 8 on the factors of both. Rows past the last are zeros. quant_unpack_block32,
 * quant_unpack_kblock: units of QUANT_UNPACK_ROWS rows, which block_index_y()
 * chooses, and QUANT_UNPACK_ELEMENTS of each, block_count() units from one to the next; `stages` times quant_unpack_stage() of
 * shared memory. */
enum { QUANT_UNPACK_ROWS = 8, QUANT_UNPACK_ELEMENTS = 1024 };

/* Bytes of a stage for blocks of `bytes` bytes and `elements` elements; a row takes a multiple of 16, wherever it begins. */
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
    uint32_t independent; /* not 0: only the kernel just before it runs, which does not touch what this one touches */
    uint32_t stages;      /* 2 or 3 */
} quant_unpack_args;

/* ---- tiles --------------------------------------------------------------------------------------------------------------- */

/* quant_tile_FORMATS, quant_wgmma_FORMATS: QUANT_TILE rows by QUANT_TILE columns for each thread block; block_index() is the
 * tile, those of the same rows next to each other. Classes are worked on one after the other, in the order in which they are
 * added up; `classes` of them by one thread block, and block_index_y() chooses which. */
enum {
    QUANT_TILE = 128,
    QUANT_TILE_THREADS = 256,
    QUANT_TILE_LEVELS = 3,                                               /* of sums that wait for others: log2(QUANT_CLASSES) */
    QUANT_SLAB_ROW_BYTES = 64,                                           /* a slab: this many bytes of each row of a tile */
    QUANT_TILE_STAGE_WORDS = 2 * QUANT_TILE * QUANT_SLAB_ROW_BYTES / 4,  /* codes of a stage of blocks of 32 */
    QUANT_TILE_BLOCK32_WORDS = 4 * QUANT_TILE * 2,                       /* factors, minima, factors, sums of a stage */
    QUANT_TILE_KBLOCK_WORDS = 3 * QUANT_TILE * QUANT_SLAB_ROW_BYTES / 4, /* upper and lower bytes of rows, codes of columns */
    QUANT_TILE_RECORD_WORDS = 2 * QUANT_TILE * QUANT_RECORD,             /* records of a block */
    QUANT_TILE_PLANES_WORDS = 2 * QUANT_TILE * QUANT_RECORD * 2 / 3,     /* the same where there is one stage */
    QUANT_TILE_BLOCK32_BYTES = (QUANT_TILE_STAGE_WORDS + QUANT_TILE_BLOCK32_WORDS) * 4, /* of shared memory for each stage */
    QUANT_TILE_KBLOCK_BYTES = QUANT_TILE_KBLOCK_WORDS * 4,
    QUANT_TILE_RECORDS_BYTES = QUANT_TILE_RECORD_WORDS * 4, /* and once */
    QUANT_TILE_PLANES_BYTES = QUANT_TILE_PLANES_WORDS * 4,
    QUANT_WGMMA_ALIGNMENT = 1024,
    QUANT_WGMMA_SUMS_BYTES = QUANT_TILE * QUANT_TILE * 4, /* sums that wait in shared memory */
    QUANT_WGMMA_BLOCK32_TEAMS = 2,
    QUANT_WGMMA_BLOCK32_THREADS = (QUANT_WGMMA_BLOCK32_TEAMS + 1) * 128,     /* the last of which bring stages */
    QUANT_WGMMA_BLOCK32_STAGES = 3,                                          /* at most */
    QUANT_WGMMA_BLOCK32_BLOCKS = 4,                                          /* of each row and column in a stage */
    QUANT_WGMMA_BLOCK32_CODES = QUANT_TILE * QUANT_WGMMA_BLOCK32_BLOCKS * 8, /* words of rows, and of columns */
    QUANT_WGMMA_BLOCK32_SCALES = QUANT_TILE * QUANT_WGMMA_BLOCK32_BLOCKS,    /* of factors, of minima, and of sums */
    QUANT_WGMMA_BLOCK32_GROUP = 16, /* positions whose factors of columns are side by side, as f16 */
    QUANT_WGMMA_BLOCK32_FACTORS = QUANT_TILE * QUANT_WGMMA_BLOCK32_GROUP / 2,
    QUANT_WGMMA_BLOCK32_STAGE_WORDS =
        2 * QUANT_WGMMA_BLOCK32_CODES + 3 * QUANT_WGMMA_BLOCK32_SCALES + QUANT_WGMMA_BLOCK32_FACTORS,
    QUANT_WGMMA_KBLOCK_TEAMS = 2,
    QUANT_WGMMA_KBLOCK_THREADS = (QUANT_WGMMA_KBLOCK_TEAMS + 1) * 128, /* the last of which bring stages */
    QUANT_WGMMA_KBLOCK_STAGES = 5,                                     /* at most */
    QUANT_WGMMA_KBLOCK_RECORDS = 2                                     /* at most */
};

typedef struct quant_tile_args {
    const uint32_t *row_codes, *column_codes;
    const float *row_factors, *row_mins, *column_factors; /* of blocks of 32 */
    const float *column_sums;
    const uint32_t *row_records, *column_records; /* of K blocks */
    float *parked;                                /* QUANT_TILE_LEVELS tiles for each thread block, as its threads want them */
    float *partial;    /* a tile for each thread block; NULL: all classes are here, and y is written */
    float *y;          /* of the first row here */
    uint64_t y_stride; /* floats from column to column */
    uint32_t rows, columns;
    uint32_t rows_padded; /* to whole tiles */
    uint32_t blocks_padded;
    uint32_t across; /* tiles of the same rows */
    uint32_t classes;
    uint32_t stages;         /* 2, 3 or 4, or 1 of waves of 64 lanes but on NVIDIA; quant_wgmma_block32: from 1 on */
    uint32_t records;        /* quant_wgmma_kblock: blocks whose records are taken at a time, 1 or 2 */
    uint32_t sums_in_shared; /* quant_wgmma_*: not 0 if there is shared memory for a tile of sums, too */
    int32_t layout;          /* QUANT_LAYOUT_ */
    uint32_t has_min;        /* not 0: the format has minima; quant_tile_block32_min: it has */
    uint32_t unused;
} quant_tile_args;

/* K blocks for wgmma. Position by position the four quarters of what a tile wants, of each the upper bytes of all rows, as they
 * will be in shared memory, then the lower ones. The index of word `word` of a block's codes, with `slabs` for each quarter. */
static inline QUANT_SHARED uint64_t quant_wgmma_kblock_word(uint64_t line, uint32_t position, uint32_t padded, uint32_t slabs,
                                                            uint32_t word)
{
    const uint32_t in_tile = (uint32_t)(line % QUANT_TILE), piece = word / 4 % 4;
    const uint32_t in_slab = in_tile * (QUANT_SLAB_ROW_BYTES / 4) + (piece ^ (in_tile >> 1 & 3)) * 4 + word % 4;
    return ((line / QUANT_TILE * padded + position) * 4 + word / 16) * slabs * (QUANT_TILE * QUANT_SLAB_ROW_BYTES / 4) +
           in_slab;
}

/* Tile by tile of `lines` lines, and in a tile position by position: the index for line `line`. */
static inline QUANT_SHARED uint64_t quant_tiled_index(uint64_t line, uint32_t position, uint32_t padded, uint32_t lines)
{
    return (line / lines * padded + position) * lines + line % lines;
}

/* Where 16 bytes of a record are, in sixteens of bytes, with QUANT_LAYOUT_SLABS: what the same part has of a tile's lines is
 * side by side. */
static inline QUANT_SHARED uint64_t quant_slab_record(uint64_t line, uint32_t position, uint32_t padded, uint32_t part)
{
    const uint64_t tile = quant_tiled_index(line, position, padded, QUANT_TILE) / QUANT_TILE;
    return tile * (uint64_t)(QUANT_RECORD / 4 * QUANT_TILE) + (uint64_t)(part * QUANT_TILE) + line % QUANT_TILE;
}

/* Where part `part` of a record is, in sixteens of bytes. */
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

/* Blocks of 32 for wgmma. Codes are laid out as if eight positions were one of a K block with one slab a quarter; factors and
 * minima of rows, and of columns the sums times their factor, which is exact, at quant_tiled_index(). Factors of columns are
 * f16, and those of 16 positions make a row of a slab: this is their index. */
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

/* quant_tile_fold, quant_wgmma_fold: adds what `splits` thread blocks found for each tile; as many threads, and
 * QUANT_FOLD_BLOCKS thread blocks for each tile, block_index_y() chooses which. */
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

/* quant_weights_bf16: rows of blocks to bf16, scale times code plus minimum, rounded on the way; a
 * thread for each 8 elements.
 */
typedef struct quant_weights_bf16_args {
    const uint8_t *from;
    uint16_t *to;
    uint64_t eights; /* of all rows, which follow each other */
    int32_t type;
} quant_weights_bf16_args;

/* quant_activations_bf16: floats to bf16, a thread each. */
typedef struct quant_activations_bf16_args {
    const float *from;
    uint16_t *to;
    uint64_t count;
} quant_activations_bf16_args;

/* quant_float_product: 16 threads for a row, decoded as it is read, and `together` columns, as canonical dot products;
 * block_index_y() chooses the columns. */
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

/* In the place of a first row: the results of a column whose id is no expert are NaN, those of one that is skipped, because its
 * id is the largest of the type, zeros. */
#define QUANT_NO_ROW  UINT64_MAX
#define QUANT_SKIPPED (UINT64_MAX - 1)

/* quant_expert_rows: the first row of each column, a thread each. quant_expert_groups, a single thread block: the columns in
 * groups of at most QUANT_GEMV_COLUMNS that meet the same expert, as quant_gemv_TYPE wants them; `groups` of them, as many as
 * there can be, and those that are left over have no columns. Results of columns that are in no group are written here. */
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
