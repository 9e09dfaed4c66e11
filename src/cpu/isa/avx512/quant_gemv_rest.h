/* The last blocks of two rows for gemv, in registers: replaces gemv_rest_add() of cpu/quant/gemv_rest.h. In rows of 576
 * elements they are a ninth of the blocks, but one by one, through memory, they took more time than all others.
 *
 * A register of 32 bytes has half of a block of each row: one register has the first 16 codes, a second one the others. The sum
 * of their products goes to the lane of its accumulator, and the factors are applied to all blocks at once.
 */
#ifndef WW_CPU_ISA_AVX512_QUANT_GEMV_REST_H
#define WW_CPU_ISA_AVX512_QUANT_GEMV_REST_H

#include <immintrin.h>

#include "cpu/quant/gemv_rest.h"

/* The addresses of two rows, or of groups or blocks in them. A register with eight numbers of each row has those of the first
 * row in its first lanes. */
typedef struct row_pair {
    const char *row[2];
} row_pair;

/* Loads 16 bytes of each row. */
DOT_FUNCTION __m256i pair_load(const row_pair *blocks, int64_t at)
{
    const __m128i first = _mm_loadu_si128((const __m128i *)(const void *)(blocks->row[0] + at));
    const __m128i second = _mm_loadu_si128((const __m128i *)(const void *)(blocks->row[1] + at));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
}

/* The numbers of a codebook plus 128. */
DOT_FUNCTION __m128i codebook_from_0(int32_t type)
{
    const __m128i table = _mm_set_epi32((int32_t)codebook_word(type, 3), (int32_t)codebook_word(type, 2),
                                        (int32_t)codebook_word(type, 1), (int32_t)codebook_word(type, 0));
    return _mm_xor_si128(table, _mm_set1_epi8(-128));
}

/* Bit 4 of 16 codes of each row: bits [first, first + 16) of the word that follows the factors of a block. */
DOT_FUNCTION __m256i pair_fifths(int32_t type, const row_pair *blocks, int32_t first)
{
    uint16_t bits[2];
    for (int32_t k = 0; k < 2; k++)
        memcpy(&bits[k], blocks->row[k] + words_begin(type) + first / 8, sizeof bits[k]);
    return _mm256_maskz_set1_epi8((__mmask32)(bits[0] | (uint32_t)bits[1] << 16), 16);
}

/* The codes of a block of each row, as unsigned numbers: for signed formats, 128 is added. */
DOT_FUNCTION void pair_codes(int32_t type, const row_pair *blocks, __m256i codes[2])
{
    const int32_t begin = words_begin(type);
    if (codes_signed(type) && !block_has_codebook(type)) {
        for (int32_t i = 0; i < 2; i++)
            codes[i] = _mm256_xor_si256(pair_load(blocks, begin + 16 * i), _mm256_set1_epi8(-128));
        return;
    }
    const int fifths = type == BLOCK_Q5_0 || type == BLOCK_Q5_1;
    const __m256i bytes = pair_load(blocks, begin + 4 * fifths), low = _mm256_set1_epi8(15);
    codes[0] = _mm256_and_si256(bytes, low);
    codes[1] = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low);
    for (int32_t i = 0; i < 2 && fifths; i++)
        codes[i] = _mm256_or_si256(codes[i], pair_fifths(type, blocks, 16 * i));
    for (int32_t i = 0; i < 2 && block_has_codebook(type); i++)
        codes[i] = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(codebook_from_0(type)), codes[i]);
}

/* The sum of products of a block of each row, in all four lanes of that row's half. */
DOT_FUNCTION __m256i pair_dot(int32_t type, const row_pair *blocks, const int8_t *activations)
{
    __m256i codes[2], sum = _mm256_setzero_si256();
    pair_codes(type, blocks, codes);
    for (int32_t i = 0; i < 2; i++) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(activations + (int64_t)16 * i));
        sum = _mm256_dpbusd_epi32(sum, codes[i], _mm256_broadcastsi128_si256(a));
    }
    sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0x4e));
    return _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0xb1));
}

/* Inserts f16 number h of a block of each row into lanes l and l + 8. */
DOT_FUNCTION __m256i pair_half(__m256i halves, const row_pair *blocks, int32_t h, int64_t l)
{
    uint16_t half[2];
    for (int32_t k = 0; k < 2; k++)
        memcpy(&half[k], blocks->row[k] + 2 * h, sizeof half[k]);
    halves = _mm256_mask_set1_epi16(halves, (__mmask16)(1u << l), (int16_t)half[0]);
    return _mm256_mask_set1_epi16(halves, (__mmask16)(0x100u << l), (int16_t)half[1]);
}

/* The factors of blocks of mxfp4. */
DOT_FUNCTION __m512 pair_exponents(row_pair blocks, int64_t count)
{
    _Alignas(64) float d[2][DOT_ACCUMULATORS] = {{0}};
    for (int64_t l = 0; l < count; l++)
        for (int32_t k = 0; k < 2; k++)
            d[k][l] = block_e8m0_half((uint8_t)blocks.row[k][l * block_bytes(BLOCK_MXFP4)]);
    return _mm512_load_ps(d);
}

/* Adds `count` blocks of both rows to their accumulators, eight per row; the other accumulators do not change. */
DOT_FUNCTION __m512 pair_rest_add(int32_t type, row_pair blocks, int64_t count, const gemv_rest *x, __m512 acc)
{
    __m256i low = _mm256_setzero_si256(), high = low; /* sums of blocks 0 to 3 and 4 to 7, those of the first row first */
    __m256i halves = low, min_halves = low;
    const __mmask16 taken = (__mmask16)(((1u << count) - 1) * 0x101);
    const __m512 exponents = type == BLOCK_MXFP4 ? pair_exponents(blocks, count) : _mm512_setzero_ps();
    for (int64_t l = 0; l < count; l++) {
        const __m256i j = pair_dot(type, &blocks, x->codes[l]);
        low = _mm256_mask_mov_epi32(low, (__mmask8)(l < 4 ? 0x11u << l : 0), j);
        high = _mm256_mask_mov_epi32(high, (__mmask8)(l < 4 ? 0 : 0x11u << (l - 4)), j);
        if (type != BLOCK_MXFP4)
            halves = pair_half(halves, &blocks, 0, l);
        if (dot_has_min(type))
            min_halves = pair_half(min_halves, &blocks, 1, l);
        blocks.row[0] += block_bytes(type);
        blocks.row[1] += block_bytes(type);
    }
    const __m512i sums = _mm512_broadcast_i32x8(_mm256_loadu_si256((const __m256i *)(const void *)x->sums));
    const __m512 da = _mm512_broadcast_f32x8(_mm256_loadu_ps(x->d));
    const __m512 d = type == BLOCK_MXFP4 ? exponents : _mm512_cvtph_ps(halves);
    __m512i j = _mm512_shuffle_i64x2(_mm512_castsi256_si512(low), _mm512_castsi256_si512(high), 0x44);
    j = _mm512_shuffle_i64x2(j, j, 0xd8);
    if (codes_offset(type))
        j = _mm512_add_epi32(j, sums);
    acc = _mm512_mask3_fmadd_ps(_mm512_mul_ps(d, da), _mm512_cvtepi32_ps(j), acc, taken);
    if (dot_has_min(type))
        acc = _mm512_mask3_fmadd_ps(_mm512_mul_ps(_mm512_cvtph_ps(min_halves), da), _mm512_cvtepi32_ps(sums), acc, taken);
    return acc;
}

/* Folds the accumulators of each row to one number, like dot_fold(). */
DOT_FUNCTION void pair_fold(__m512 acc, float to[2])
{
    acc = _mm512_add_ps(acc, _mm512_shuffle_f32x4(acc, acc, 0xb1));
    acc = _mm512_add_ps(acc, _mm512_shuffle_ps(acc, acc, 0x4e));
    acc = _mm512_add_ps(acc, _mm512_shuffle_ps(acc, acc, 0xb1));
    to[0] = _mm_cvtss_f32(_mm512_castps512_ps128(acc));
    to[1] = _mm_cvtss_f32(_mm512_extractf32x4_ps(acc, 2));
}

#endif
