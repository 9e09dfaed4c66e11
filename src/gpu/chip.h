/* The chips: what each family has, and which of the embedded code a chip can run, and which of it is best. */
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
 * NVIDIA: code for the very chip with all its features (sm_90a for sm_90) is best; then baseline code, which every chip of its
 * number or a higher one runs: the nearest below is best. AMD: the very chip, then the generic target of its family
 * (gfx11-generic for gfx1101). */
int32_t chip_fitness(const char *arch, const char *target);

/* The same for code of a `format` (kernels/embedded.h), on a scale of its own. A cubin is finished code: it runs on the chip it
 * was made for, and is then better than the PTX it was made of, which the driver would have to compile. */
int32_t chip_code_fitness(const char *arch, const char *target, const char *format);

/* What code for a chip has beyond the kernels of all chips. The emulator has every kernel, and takes those that suit every
 * chip; a test has it pretend the others. */
typedef struct chip_capabilities {
    bool emulated;
    bool sm_80_code;  /* NVIDIA, sm_80 on: mma, copies in the background, tables of 128 KiB, convolutions as each output sees
                         them */
    bool sm_90a_code; /* wgmma and the copy engine */
    bool fast_f16;    /* fast products of f16: by matrix units, or by instructions of two products (v_dot2_f32_f16) */
    bool matrix_f16;  /* AMD's matrix units, by kernels for f16 and bf16, */
    bool matrix_f32;  /* and for f32 */
    bool mfma; /* MFMA and waves of 64: screens of many queries with rows in registers, sorting of short rows in registers */
    bool conv_halves;   /* a wave of conv_shared_* has 32 outputs, and blocks are cut to fill the device (conv_shared_mfma.h) */
    bool conv_all_taps; /* shared memory holds the weights of all taps that are ever there, and offsets have 64 bits (NVIDIA) */
    bool quant_slabs;   /* tiles of quantized products read codes as they will lie in shared memory */
    bool wide_gemv;     /* blocks of quant_gemv_TYPE have as many threads as their kernel was compiled for (AMD) */
    bool gemv_one;      /* quant_gemv_one_TYPE: kernels that code the one column that they multiply */
} chip_capabilities;

/* Constants by which work is cut up. */
typedef struct chip_constants {
    int64_t narrow_count_max;      /* elements of a tensor whose places are calculated in 32 bits */
    int32_t screen_sample_buckets; /* of the screen's sample, for each result that is asked for, */
    int32_t screen_sample_tiles;   /* and tiles of it at least */
    int64_t three_stages_numbers;  /* of all queries, from which on the screen looks at rows in three stages, */
    int64_t three_stages_tiles;    /* and tiles of rows */
    int32_t quant_bf16_percent; /* of the rounds of tiles of bf16 that are filled, from which on fast products of K blocks take
                                   that way: 0 always, those of other formats, too; over 100 never (gpu/quant/quant_plan.c) */
    int32_t quant_stages;       /* of a gemv where shared memory is small */
    int32_t quant_gemv_splits;  /* thread blocks that share a row of a gemv; 0: the fastest number */
    int32_t stream_queries;     /* search_stream replaces search_tile from this many queries on, in blocks of */
    int32_t stream_teams;       /* at least this many teams of 32 threads */
} chip_constants;

/* A family of chips. */
typedef struct chip_family {
    const char *prefix; /* of its names, as drivers and compilers have them */
    int32_t wave_size;  /* 0: the device reports it */
    chip_capabilities has;
    chip_constants constants;
} chip_family;

/* The family of a chip, or of the target of code for it: "gfx90a", "gfx11-generic", "sm_90a", "emulated". One that is not in
 * the table has none of the capabilities. */
const chip_family *chip_find(const char *name);

#endif
