/* Reads a block of weights for the product kernels: words of four codes, with the format's offset subtracted so that they are
 * signed bytes, and the scales of a block. `type` is always a constant, so the compiler keeps one case of each switch. Blocks
 * are in shared memory at even addresses, except mxfp4, whose blocks have 17 bytes.
 *
 * blocks/dot.h defines the arithmetic, and unpacks the same blocks for callers that need all eight words of a piece.
 */
#ifndef WW_KERNELS_QUANT_QUANT_WORDS_H
#define WW_KERNELS_QUANT_QUANT_WORDS_H

#include "kernels/simt/simt.h"

#include "arithmetic/blocks/dot.h"
#include "arithmetic/convert.h"

/* Alignment of the blocks of a class, for formats whose blocks start alternately at a multiple of four bytes (WORDS_EVEN) and
 * two bytes past one (WORDS_ODD). WORDS_ANYWHERE: unknown. WORDS_PAIRED: unknown, but the four aligned bytes after a word may
 * be read as well, which is faster if consecutive words are read. WORDS_SHIFTED: like WORDS_PAIRED, and its lower bits say how
 * many bytes past a multiple of four words are (words_shifted()). */
enum { WORDS_ANYWHERE, WORDS_EVEN, WORDS_ODD, WORDS_PAIRED, WORDS_SHIFTED };

/* WORDS_SHIFTED for a block of this format at the even offset `place`. Its words are at a multiple of four bytes from its
 * start, or two bytes past one. */
DEVICE int32_t words_shifted(int32_t type, uint32_t place)
{
    const uint32_t codes_at = type == BLOCK_Q3_K || type == BLOCK_Q6_K ? 0 : 2;
    return WORDS_SHIFTED | (int32_t)((place + codes_at) & 2);
}

/* Loads four bytes of a block, at offset `byte` from `at`, a multiple of four. If the blocks of a format have a multiple of
 * four bytes, its rows start at a multiple of four, too. */
DEVICE uint32_t words_load_aligned(int32_t type, int32_t alignment, const uint8_t *at, int32_t byte)
{
    if (block_bytes(type) % 2 != 0) { /* bytes after the block may be read: the next row, columns, or the matrix's padding */
        const uint32_t off = (uint32_t)(uintptr_t)(at + byte) & 3, *two = (const uint32_t *)(const void *)(at + byte - off);
        return (uint32_t)(((uint64_t)two[1] << 32 | two[0]) >> off * 8);
    }
#if defined(__AMDGCN__)
    if (block_bytes(type) % 4 != 0 && (alignment & WORDS_SHIFTED)) {
        const uint32_t off = (uint32_t)alignment & 2, *two = (const uint32_t *)(const void *)(at - off + byte);
        return __builtin_amdgcn_alignbyte(two[1], two[0], off);
    }
#endif
    if (block_bytes(type) % 4 != 0 && alignment == WORDS_PAIRED) {
        const uint32_t off = (uint32_t)(uintptr_t)at & 2, *two = (const uint32_t *)(const void *)(at - off + byte);
        return (uint32_t)(((uint64_t)two[1] << 32 | two[0]) >> off * 8);
    }
    return block_bytes(type) % 4 == 0 || alignment == WORDS_EVEN ? *(const uint32_t *)(const void *)(at + byte)
                                                                 : dot_word(at, byte);
}

DEVICE uint32_t words_load(int32_t type, const uint8_t *at, int32_t byte)
{
    return words_load_aligned(type, WORDS_ANYWHERE, at, byte);
}

/* Moves bit i of the lowest four to the lowest bit of byte i. The partial products do not overlap. */
DEVICE uint32_t words_spread(uint32_t bits)
{
    return (bits & 15u) * 0x00204081u & 0x01010101u;
}

/* Subtracts `offset` from each byte. All bytes are below 128. */
DEVICE uint32_t words_less(uint32_t word, uint32_t offset)
{
    return offset ? ((word | 0x80808080u) - offset * 0x01010101u) ^ 0x80808080u : word;
}

DEVICE uint32_t words_block32(int32_t type, int32_t alignment, const uint8_t *codes, const uint8_t *fifth, int32_t half,
                              int32_t at)
{
    const uint32_t word = words_load_aligned(type, alignment, codes, 4 * at) >> 4 * half & 0x0f0f0f0fu;
    return fifth ? word | words_spread(words_load_aligned(type, alignment, fifth, 0) >> (4 * at + 16 * half)) << 4 : word;
}

/* Words `at` and `at` + 4 of piece p of a format with a codebook, looked up in the codebook. */
DEVICE nibble_bytes words_codebook(int32_t type, int32_t alignment, const uint8_t *block, int32_t p, int32_t at)
{
    const int32_t first = type == BLOCK_MXFP4 ? 1 : type == BLOCK_IQ4_NL ? 2 : 8;
    const u32x4 table = {codebook_word(type, 0), codebook_word(type, 1), codebook_word(type, 2), codebook_word(type, 3)};
    return lookup_nibbles(table, words_load_aligned(type, alignment, block + first, 16 * p + 4 * at));
}

/* Word 4 * half + at of piece p, at < 4. For q4_0, codes are multiplied by 16 and the factor is divided by 16. Both are exact:
 * the product of the factor with that of q8_1, both f16, stays far from underflow. */
DEVICE uint32_t words_of_aligned(int32_t type, int32_t alignment, const uint8_t *block, int32_t p, int32_t half, int32_t at)
{
    const int32_t byte = 16 * half + 4 * at;
    uint32_t word;
    if (block_has_codebook(type)) {
        const nibble_bytes both = words_codebook(type, alignment, block, p, at);
        return half ? both.high : both.low;
    }
    switch (type) {
    case BLOCK_Q4_0: /* 16 * (code - 8): the code in the upper half of the byte, with its highest bit flipped */
        word = words_load_aligned(type, alignment, block + 2, 4 * at);
        return ((half ? word : word << 4) & 0xf0f0f0f0u) ^ 0x80808080u;
    case BLOCK_Q4_1:
        word = words_block32(type, alignment, block + 4, NULL, half, at);
        break;
    case BLOCK_Q5_0:
        word = words_block32(type, alignment, block + 6, block + 2, half, at);
        break;
    case BLOCK_Q5_1:
        word = words_block32(type, alignment, block + 8, block + 4, half, at);
        break;
    case BLOCK_Q8_0:
        word = words_load_aligned(type, alignment, block + 2, byte);
        break;
    case BLOCK_Q2_K:
        word = words_load_aligned(type, alignment, block + 16, 32 * (p / 4) + byte) >> 2 * (p % 4) & 0x03030303u;
        break;
    case BLOCK_Q3_K:
        word = (words_load_aligned(type, alignment, block + 32, 32 * (p / 4) + byte) >> 2 * (p % 4) & 0x03030303u) |
               (words_load_aligned(type, alignment, block, byte) >> p & 0x01010101u) << 2;
        break;
    case BLOCK_Q4_K:
        word = words_load_aligned(type, alignment, block + 16, 32 * (p / 2) + byte) >> 4 * (p % 2) & 0x0f0f0f0fu;
        break;
    case BLOCK_Q5_K:
        word = (words_load_aligned(type, alignment, block + 48, 32 * (p / 2) + byte) >> 4 * (p % 2) & 0x0f0f0f0fu) |
               (words_load_aligned(type, alignment, block + 16, byte) >> p & 0x01010101u) << 4;
        break;
    case BLOCK_Q6_K:
        word =
            (words_load_aligned(type, alignment, block, 64 * (p / 4) + 32 * (p % 2) + byte) >> 4 * (p % 4 / 2) & 0x0f0f0f0fu) |
            (words_load_aligned(type, alignment, block + 128, 32 * (p / 4) + byte) >> 2 * (p % 4) & 0x03030303u) << 4;
        break;
    default: /* q8_1, q8_k */
        word = words_load_aligned(type, alignment, block + 4, 32 * p + byte);
        break;
    }
    return words_less(word, (uint32_t)dot_offset(type));
}

DEVICE uint32_t words_of(int32_t type, const uint8_t *block, int32_t p, int32_t half, int32_t at)
{
    return words_of_aligned(type, WORDS_ANYWHERE, block, p, half, at);
}

/* Whether a gemv rotates the codes of this format's even blocks by two (quant.h). */
DEVICE bool words_rotated(int32_t type)
{
    return type == BLOCK_Q4_0 || type == BLOCK_Q8_0;
}

/* Two words of a rotated format, and the f16 before the codes. */
typedef struct words_two {
    uint32_t x, y, factor;
} words_two;

/* Words `at` and `at` + 4 of a block, or the low and the high nibbles of word `at`; rotated if the block's number is even. With
 * WORDS_EVEN, the last word ends with two bytes of the next block, which are replaced by the first two codes. flip is
 * 0x80808080. */
DEVICE words_two words_rotated_pair(int32_t type, int32_t alignment, bool even, uint32_t flip, const uint8_t *block, int32_t at)
{
    const bool nibbles = type == BLOCK_Q4_0;
    words_two two;
    uint32_t last;
    if (alignment == WORDS_EVEN) {
        const uint32_t *words = (const uint32_t *)(const void *)block, head = words[0];
        const uint32_t mask = at == 3 ? 0xffff0000u : 0;
        two.factor = head;
        two.x = nibbles ? 0 : words[1 + at];
        last = words[(nibbles ? 1 : 5) + at];
        last = (last & ~mask) | (head & mask);
    } else if (alignment == WORDS_ODD) {
        const uint32_t *words = (const uint32_t *)(const void *)(block + 2);
        two.factor = *(const uint16_t *)(const void *)block;
        two.x = nibbles ? 0 : words[at];
        last = words[(nibbles ? 0 : 4) + at];
    } else {
        const uint16_t *halves = (const uint16_t *)(const void *)block + 1;
        const int32_t first = 2 * at + (even ? 1 : 0), around = nibbles ? 7 : 15, later = nibbles ? 0 : 8;
        two.factor = halves[-1];
        two.x = nibbles ? 0 : halves[first] | (uint32_t)halves[first + 1] << 16;
        last = halves[(first + later) & around] | (uint32_t)halves[(first + later + 1) & around] << 16;
    }
    if (nibbles) { /* 16 * (code - 8), as above */
        two.x = (last << 4 & 0xf0f0f0f0u) ^ flip;
        two.y = (last & 0xf0f0f0f0u) ^ flip;
    } else {
        two.y = last;
    }
    return two;
}

/* (word & mask) ^ flip in one instruction. Otherwise the compiler may reorder it into two. */
DEVICE uint32_t words_and_flip(uint32_t word, uint32_t mask, uint32_t flip)
{
#if defined(__NVPTX__)
    uint32_t result;
    __asm__("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(word), "r"(mask), "r"(flip));
    return result;
#else
    return (word & mask) ^ flip;
#endif
}

/* The same for tensor cores. For q6_k it returns 4 * (code - 32), which takes fewer operations: the code shifted up, with its
 * highest bit flipped. words_shift() returns how many bits J must then be shifted down. flip is 0x80808080. */
DEVICE uint32_t words_quick(int32_t type, int32_t alignment, uint32_t flip, const uint8_t *block, int32_t p, int32_t half,
                            int32_t at)
{
    if (type != BLOCK_Q6_K)
        return words_of_aligned(type, alignment >= WORDS_PAIRED ? alignment : WORDS_ANYWHERE, block, p, half, at);
    const int32_t byte = 16 * half + 4 * at, part = p % 4;
    const uint32_t low = words_load_aligned(type, alignment, block, 64 * (p / 4) + 32 * (p % 2) + byte);
    const uint32_t high = words_load_aligned(type, alignment, block + 128, 32 * (p / 4) + byte);
    const uint32_t lower = words_and_flip(part < 2 ? low << 2 : low >> 2, 0x3c3c3c3cu, flip);
    return words_and_flip(part == 3 ? high : high << (6 - 2 * part), 0xc0c0c0c0u, lower);
}

DEVICE int32_t words_shift(int32_t type)
{
    return type == BLOCK_Q6_K ? 2 : 0;
}

DEVICE bool words_sub_blocks_of_16(int32_t type)
{
    return type == BLOCK_Q2_K || type == BLOCK_Q3_K || type == BLOCK_Q6_K;
}

/* Scales and minima of a K block, one byte each. Word i has those of sub-blocks 4 * i to 4 * i + 3, of 16 or 32 elements. */
typedef struct words_scales {
    uint32_t scales[4], mins[4];
} words_scales;

/* Spreads four numbers, `distance` bits apart, to one byte each. */
DEVICE uint32_t words_spread_by(uint32_t bits, uint32_t distance, uint32_t mask)
{
    return (bits & mask) | (bits >> distance & mask) << 8 | (bits >> 2 * distance & mask) << 16 |
           (bits >> 3 * distance & mask) << 24;
}

/* The first 16 bytes of a q4_k or q5_k block: two factors and the scales. They are aligned to 16 bytes, or with WORDS_PAIRED
 * and WORDS_SHIFTED to eight, because AMD chips move some rows of a stage (quant_gemv_layout.h). */
DEVICE u32x4 words_head(int32_t alignment, const uint8_t *block)
{
#if defined(__AMDGCN__)
    typedef uint32_t head __attribute__((ext_vector_type(4), aligned(8), may_alias));
    if (alignment >= WORDS_PAIRED) {
        const head v = *(const head *)(const void *)block;
        return (u32x4){v.x, v.y, v.z, v.w};
    }
#endif
    (void)alignment;
    return load_u32x4((const uint32_t *)(const void *)block);
}

DEVICE words_scales words_scales_aligned(int32_t type, int32_t alignment, const uint8_t *block)
{
    words_scales s = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    if (type == BLOCK_Q2_K) {
        UNROLL
        for (int32_t i = 0; i < 4; i++) {
            const uint32_t word = words_load(type, block, 4 * i);
            s.scales[i] = word & 0x0f0f0f0fu;
            s.mins[i] = word >> 4 & 0x0f0f0f0fu;
        }
    } else if (type == BLOCK_Q3_K) {
        const uint32_t top = words_load(type, block + 96, 8);
        UNROLL
        for (int32_t i = 0; i < 4; i++)
            s.scales[i] = words_less((words_load(type, block + 96, 4 * (i % 2)) >> 4 * (i / 2) & 0x0f0f0f0fu) |
                                         (top >> 2 * i & 0x03030303u) << 4,
                                     32);
    } else if (type == BLOCK_Q4_K || type == BLOCK_Q5_K) {
        const u32x4 head = words_head(alignment, block);
        const uint32_t first = head.y, second = head.z, third = head.w;
        s.scales[0] = first & 0x3f3f3f3fu;
        s.mins[0] = second & 0x3f3f3f3fu;
        s.scales[1] = (third & 0x0f0f0f0fu) | (first >> 2 & 0x30303030u);
        s.mins[1] = (third >> 4 & 0x0f0f0f0fu) | (second >> 2 & 0x30303030u);
    } else if (type == BLOCK_IQ4_XS) {
        const uint32_t high = words_load(type, block, 0) >> 16, low = words_load(type, block, 4);
        UNROLL
        for (int32_t i = 0; i < 2; i++) /* four bits of each scale from `low`, two from `high` */
            s.scales[i] = words_less(words_spread_by(low >> 16 * i, 4, 15u) | words_spread_by(high >> 8 * i, 2, 3u) << 4, 32);
    } else if (type == BLOCK_Q6_K) {
        UNROLL
        for (int32_t i = 0; i < 4; i++)
            s.scales[i] = words_load_aligned(type, alignment, block + 192, 4 * i);
    }
    return s;
}

DEVICE words_scales words_scales_of(int32_t type, const uint8_t *block)
{
    return words_scales_aligned(type, WORDS_ANYWHERE, block);
}

/* The minima of elements 64 * at to 64 * at + 63 of a block, one byte for each 16. */
DEVICE uint32_t words_mins(int32_t type, const words_scales *s, uint32_t at)
{
    if (words_sub_blocks_of_16(type))
        return at < 2 ? at < 1 ? s->mins[0] : s->mins[1] : at < 3 ? s->mins[2] : s->mins[3];
    const uint32_t two = (at < 2 ? s->mins[0] : s->mins[1]) >> at % 2 * 16;
    return (two & 255u) * 0x0101u | (two >> 8 & 255u) * 0x01010000u;
}

/* Byte `i` of four words, signed. Selected instead of indexed, so that the words stay in registers if `i` is not a constant. */
DEVICE int32_t words_byte(const uint32_t *words, int32_t i)
{
    const uint32_t low = i < 4 ? words[0] : words[1], high = i < 12 ? words[2] : words[3], word = i < 8 ? low : high;
#if defined(__NVPTX__) /* one instruction: the byte, sign-extended */
    int32_t byte;
    __asm__("prmt.b32 %0, %1, 0, %2;" : "=r"(byte) : "r"(word), "r"((i % 4) * 0x1111 + 0x8880));
    return byte;
#else
    return (int8_t)(word >> i % 4 * 8);
#endif
}

DEVICE float words_f16_from(uint16_t bits)
{
#if defined(__NVPTX__)
    float value;
    __asm__("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#elif defined(__AMDGCN__)
    return widen_f16(bits);
#else
    return block_f32_from_f16(bits);
#endif
}

/* An f16 at an even address. */
DEVICE float words_f16(const uint8_t *at)
{
    return words_f16_from(*(const uint16_t *)at);
}

/* The factors of J and of M, as dot_factors_of() returns them, except that q4_0's is divided by 16. */
DEVICE dot_factors words_factors(int32_t type, const uint8_t *block)
{
    dot_factors factors;
    factors.min = 0.0f;
    switch (type) {
    case BLOCK_Q4_1:
    case BLOCK_Q5_1:
        factors.d = words_f16(block);
        factors.min = words_f16(block + 2);
        break;
    case BLOCK_Q4_K:
    case BLOCK_Q5_K:
        factors.d = words_f16(block);
        factors.min = -words_f16(block + 2);
        break;
    case BLOCK_Q2_K:
        factors.d = words_f16(block + 80);
        factors.min = -words_f16(block + 82);
        break;
    case BLOCK_Q3_K:
        factors.d = words_f16(block + 108);
        break;
    case BLOCK_Q6_K:
        factors.d = words_f16(block + 208);
        break;
    case BLOCK_Q8_K:
        factors.d = canon_bits_float(words_load(type, block, 0));
        break;
    case BLOCK_Q4_0:
        factors.d = words_f16(block) * 0.0625f;
        break;
    case BLOCK_MXFP4:
        factors.d = block_e8m0_half(*block);
        break;
    default:
        factors.d = words_f16(block);
        break;
    }
    return factors;
}

#endif
