/* Block formats of quantized weights. Shared by all backends. The layout is ggml's, byte for byte, so GGUF files are used
 * without a copy.
 *
 * A row is divided into blocks of 32 elements, or 256 in the K formats. A block holds small integers (its codes) and the
 * scales, and in some formats minima, that turn codes into numbers. A K block has 16 sub-blocks of 16 elements or 8 of 32.
 * Their scales are also small integers, multiplied by one or two f16 factors of the whole block.
 *
 * blocks/decode.h turns blocks into floats; blocks/encode.h, blocks/encode_k.h and blocks/codebook.h turn floats into blocks.
 * Like canon.h, they are compiled for the host and for devices, and every operation rounds once, so all give the same bits.
 */
#ifndef WW_ARITHMETIC_BLOCKS_BLOCKS_H
#define WW_ARITHMETIC_BLOCKS_BLOCKS_H

#include "arithmetic/canon.h"
#include "arithmetic/half.h"

/* Format numbers, the same as in GGUF files. */
#define BLOCK_F32    0
#define BLOCK_F16    1
#define BLOCK_Q4_0   2
#define BLOCK_Q4_1   3
#define BLOCK_Q5_0   6
#define BLOCK_Q5_1   7
#define BLOCK_Q8_0   8
#define BLOCK_Q8_1   9
#define BLOCK_Q2_K   10
#define BLOCK_Q3_K   11
#define BLOCK_Q4_K   12
#define BLOCK_Q5_K   13
#define BLOCK_Q6_K   14
#define BLOCK_Q8_K   15
#define BLOCK_IQ4_NL 20
#define BLOCK_IQ4_XS 23
#define BLOCK_BF16   30
#define BLOCK_MXFP4  39
#define BLOCK_TYPES  40 /* all numbers are below this; numbers not listed above are not supported */

/* The block formats: FORMAT(name in functions and types, number, small for blocks of 32 or large for 256, name in messages). */
#define BLOCK_FORMATS_SMALL(FORMAT)                                                                                            \
    FORMAT(q4_0, BLOCK_Q4_0, small, "q4_0")                                                                                    \
    FORMAT(q4_1, BLOCK_Q4_1, small, "q4_1")                                                                                    \
    FORMAT(q5_0, BLOCK_Q5_0, small, "q5_0")                                                                                    \
    FORMAT(q5_1, BLOCK_Q5_1, small, "q5_1")                                                                                    \
    FORMAT(q8_0, BLOCK_Q8_0, small, "q8_0")                                                                                    \
    FORMAT(q8_1, BLOCK_Q8_1, small, "q8_1")
#define BLOCK_FORMATS_LARGE(FORMAT)                                                                                            \
    FORMAT(q2_k, BLOCK_Q2_K, large, "q2_K")                                                                                    \
    FORMAT(q3_k, BLOCK_Q3_K, large, "q3_K")                                                                                    \
    FORMAT(q4_k, BLOCK_Q4_K, large, "q4_K")                                                                                    \
    FORMAT(q5_k, BLOCK_Q5_K, large, "q5_K")                                                                                    \
    FORMAT(q6_k, BLOCK_Q6_K, large, "q6_K")                                                                                    \
    FORMAT(q8_k, BLOCK_Q8_K, large, "q8_K")
/* Formats whose codes are indices into a codebook (blocks/codebook.h), and formats whose codes are the numbers themselves. */
#define BLOCK_FORMATS_CODEBOOK_SMALL(FORMAT)                                                                                   \
    FORMAT(iq4_nl, BLOCK_IQ4_NL, small, "iq4_nl")                                                                              \
    FORMAT(mxfp4, BLOCK_MXFP4, small, "mxfp4")
#define BLOCK_FORMATS_CODEBOOK_LARGE(FORMAT) FORMAT(iq4_xs, BLOCK_IQ4_XS, large, "iq4_xs")
#define BLOCK_FORMATS_CODEBOOK(FORMAT)       BLOCK_FORMATS_CODEBOOK_SMALL(FORMAT) BLOCK_FORMATS_CODEBOOK_LARGE(FORMAT)
#define BLOCK_FORMATS_LINEAR(FORMAT)         BLOCK_FORMATS_SMALL(FORMAT) BLOCK_FORMATS_LARGE(FORMAT)
#define BLOCK_FORMATS(FORMAT)                BLOCK_FORMATS_LINEAR(FORMAT) BLOCK_FORMATS_CODEBOOK(FORMAT)

#define BLOCK32_ELEMENTS 32  /* elements of a block */
#define KBLOCK_ELEMENTS  256 /* of a K block */

/* f16 numbers are stored as their bits. Blocks are only two-byte aligned: a q4_0 block has 18 bytes. An mxfp4 block has 17 and
 * can be at any address. */
typedef uint16_t block_f16;

typedef struct block_q4_0 { /* d * (code - 8) */
    block_f16 d;
    uint8_t codes[16]; /* elements 0..15 low, 16..31 high */
} block_q4_0;

typedef struct block_q4_1 { /* d * code + m */
    block_f16 d, m;
    uint8_t codes[16];
} block_q4_1;

typedef struct block_q5_0 { /* d * (code - 16) */
    block_f16 d;
    uint8_t fifth[4]; /* bit i is the highest code bit of element i */
    uint8_t codes[16];
} block_q5_0;

typedef struct block_q5_1 { /* d * code + m */
    block_f16 d, m;
    uint8_t fifth[4];
    uint8_t codes[16];
} block_q5_1;

typedef struct block_q8_0 { /* d * code */
    block_f16 d;
    int8_t codes[32];
} block_q8_0;

typedef struct block_q8_1 { /* d * code; for activations */
    block_f16 d, sum;       /* sum: d times the sum of the codes */
    int8_t codes[32];
} block_q8_1;

typedef struct block_q2_k { /* d * scale * code - dmin * min, sub-blocks of 16 */
    uint8_t scales[16];     /* scale low, min high */
    uint8_t codes[64];      /* for each half of the block: 32 bytes with four runs of 32 elements, two bits each */
    block_f16 d, dmin;
} block_q2_k;

typedef struct block_q3_k { /* d * (scale - 32) * (code - 4), sub-blocks of 16 */
    uint8_t third[32];      /* byte i%32, bit i/32: the highest code bit of element i */
    uint8_t codes[64];      /* the two lower bits, as in q2_k */
    uint8_t scales[12];     /* low four bits of scales 0..7 and 8..15 in bytes 0..7, the highest two in bytes 8..11 */
    block_f16 d;
} block_q3_k;

typedef struct block_q4_k { /* d * scale * code - dmin * min, sub-blocks of 32 */
    block_f16 d, dmin;
    uint8_t scales[12]; /* six bits each: scales 0..3, mins 0..3, then 4..7 with their highest bits in the first eight bytes */
    uint8_t codes[128]; /* 32 bytes per 64 elements: the first 32 in the low nibbles, the others in the high */
} block_q4_k;

typedef struct block_q5_k { /* as q4_k */
    block_f16 d, dmin;
    uint8_t scales[12];
    uint8_t fifth[32]; /* byte i%32, bit i/32 */
    uint8_t codes[128];
} block_q5_k;

typedef struct block_q6_k { /* d * scale * (code - 32), sub-blocks of 16 */
    uint8_t low[128];       /* for each half: 64 bytes, elements 0..63 low, 64..127 high */
    uint8_t high[64];       /* for each half: 32 bytes, elements l, l+32, l+64, l+96, two bits each */
    int8_t scales[16];
    block_f16 d;
} block_q6_k;

typedef struct block_q8_k { /* d * code; for activations */
    float d;
    int8_t codes[256];
    int16_t sums[16]; /* the sum of the codes of each 16 elements */
} block_q8_k;

typedef struct block_iq4_nl { /* d * codebook[code] */
    block_f16 d;
    uint8_t codes[16]; /* as in q4_0 */
} block_iq4_nl;

typedef struct block_iq4_xs { /* d * (scale - 32) * codebook[code], sub-blocks of 32 */
    block_f16 d;
    uint16_t scales_high;  /* two bits of each scale */
    uint8_t scales_low[4]; /* four bits of each */
    uint8_t codes[128];    /* 16 bytes per sub-block, as in q4_0 */
} block_iq4_xs;

typedef struct block_mxfp4 { /* 2^(e - 128) * codebook[code]; blocks are at any address */
    uint8_t e;
    uint8_t codes[16]; /* as in q4_0 */
} block_mxfp4;

/* Elements per block; 0 for a number that is not a format. */
CANON_FUNCTION int32_t block_elements(int32_t type)
{
    switch (type) {
    case BLOCK_F32:
    case BLOCK_F16:
    case BLOCK_BF16:
        return 1;
#define FORMAT(name, number, size, text) case number:
        BLOCK_FORMATS_SMALL(FORMAT)
        BLOCK_FORMATS_CODEBOOK_SMALL(FORMAT)
        return BLOCK32_ELEMENTS;
        BLOCK_FORMATS_LARGE(FORMAT)
        BLOCK_FORMATS_CODEBOOK_LARGE(FORMAT)
        return KBLOCK_ELEMENTS;
#undef FORMAT
    default:
        return 0;
    }
}

/* Elements per block of a valid format; never 0, so it can be a divisor. */
CANON_FUNCTION int32_t block_length(int32_t type)
{
    const int32_t elements = block_elements(type);
    return elements > 0 ? elements : 1;
}

CANON_FUNCTION int32_t block_bytes(int32_t type)
{
    switch (type) {
    case BLOCK_F32:
        return 4;
    case BLOCK_F16:
    case BLOCK_BF16:
        return 2;
#define FORMAT(name, number, size, text)                                                                                       \
    case number:                                                                                                               \
        return (int32_t)sizeof(block_##name);
        BLOCK_FORMATS(FORMAT)
#undef FORMAT
    default:
        return 0;
    }
}

/* ---- 16-bit floats: those of arithmetic/half.h --------------------------------------------------------------------------- */

CANON_FUNCTION float block_f32_from_f16(uint32_t half)
{
    return f32_from_f16((uint16_t)half);
}

CANON_FUNCTION uint32_t block_f16_from_f32(float value)
{
    return f16_from_f32(value);
}

CANON_FUNCTION float block_f32_from_bf16(uint32_t half)
{
    return f32_from_bf16((uint16_t)half);
}

CANON_FUNCTION uint32_t block_bf16_from_f32(float value)
{
    return bf16_from_f32(value);
}

/* Whether an f16 is infinite or NaN: the scale was too large for f16, or an element was not finite. */
CANON_FUNCTION int block_f16_bad(uint32_t half)
{
    return (half & 0x7c00u) == 0x7c00u;
}

#endif
