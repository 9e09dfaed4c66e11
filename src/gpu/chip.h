/* What each family of chips has, which embedded code a chip can run, and which of it is best. */
#ifndef WW_GPU_CHIP_H
#define WW_GPU_CHIP_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CHIP_GENERIC = 1,    /* code for the family of the chip */
    CHIP_EXACT = 1 << 20 /* above every chip's number */
};

/* How well code for `target` ("sm_90a", "gfx90a") suits a device of `arch` ("sm_90", "gfx90a"): 0 not at all, more is better.
 *
 * NVIDIA: code for exactly this chip with all its features (sm_90a for sm_90) is best. Next is baseline code, which every chip
 * with the same or a higher number runs; the highest number is best. AMD: exactly this chip, then the generic target of its
 * family (gfx11-generic for gfx1101).
 */
int32_t chip_fitness(const char *arch, const char *target);

/* Like chip_fitness() for code of a `format` (kernels/embedded.h), on another scale. A cubin is finished code: it only runs on
 * its own chip, but is better than its PTX, which the driver would have to compile. */
int32_t chip_code_fitness(const char *arch, const char *target, const char *format);

/* What a chip has beyond the kernels of all chips. */
typedef struct chip_capabilities {
    bool sm_80_code;  /* NVIDIA, sm_80 on: mma, copies in the background, tables of 128 KiB, convolutions as each output sees
                         them */
    bool sm_90a_code; /* wgmma and the copy engine */
    bool fast_f16;    /* fast products of f16: by matrix units, or by instructions of two products (v_dot2_f32_f16) */
    bool matrix_f16;  /* AMD's matrix units, with kernels for f16 and bf16 */
    bool matrix_f32;  /* AMD's matrix units, with kernels for f32 */
    bool mfma;        /* MFMA and waves of 64: large batches are screened, and short rows sorted, in registers */
    bool conv_halves; /* a wave of conv_shared_* has 32 outputs, and blocks are sized to fill the device (conv_shared_mfma.h) */
    bool conv_all_taps; /* shared memory holds the weights of all taps of a block, and offsets have 64 bits (NVIDIA) */
    bool quant_slabs;   /* tiles of quantized products read codes in the layout of shared memory */
    bool wide_gemv;     /* blocks of quant_gemv_TYPE have as many threads as their kernel was compiled for (AMD) */
    bool gemv_one;      /* quant_gemv_one_TYPE: kernels for one column, which they code themselves */
} chip_capabilities;

/* Constants for dividing work. */
typedef struct chip_constants {
    int64_t narrow_count_max;      /* elements of a tensor, at most, for 32-bit offsets */
    int32_t screen_sample_buckets; /* buckets of the screen's sample for each result */
    int32_t screen_sample_tiles;   /* tiles of the screen's sample, at least */
    int64_t three_stages_numbers;  /* numbers in all queries, at least, for a screen with three stages */
    int64_t three_stages_tiles;    /* tiles of rows, at least, for a screen with three stages */
    int32_t quant_bf16_percent;    /* fast products of K blocks use bf16 if its tiles fill at least this percentage of their
                                      rounds: 0 always, for other formats too; over 100 never (gpu/quant/quant_plan.c) */
    int32_t quant_stages;          /* stages of a gemv if shared memory is small */
    int32_t quant_gemv_splits;     /* thread blocks that share a row of a gemv; 0: the fastest number */
    int32_t stream_queries;        /* search_stream replaces search_tile from this many queries on */
    int32_t stream_teams;          /* teams of 32 threads that a block of search_stream must have, at least */
} chip_constants;

/* A family of chips. */
typedef struct chip_family {
    const char *prefix; /* of the names that drivers and compilers use */
    int32_t wave_size;  /* 0: the device reports it */
    chip_capabilities has;
    chip_constants constants;
} chip_family;

/* Returns the family of a chip, or of the target of code for it: "gfx90a", "gfx11-generic", "sm_90a". A chip that is not in the
 * table has no capabilities. */
const chip_family *chip_find(const char *name);

#endif
