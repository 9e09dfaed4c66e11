/* Gemv with registers of sixteen lanes, replacing parts of cpu/quant/gemv.h.
 *
 * Blocks of 32, two rows at a time: a register holds two adjacent words of the eight blocks of a group, so the sums of products
 * take half as many instructions as with eight lanes. Then the sums of both rows are combined in one register, and the
 * remaining work is done for both at once. With one column, this gives the processor time to request the next rows from memory;
 * with several columns, activations are loaded once for both rows. The two rows are half a piece apart, so memory is read as
 * two streams that cross their pages at different times.
 *
 * Blocks of 256 with several columns: a register also holds two words, and the sums of two sub-blocks are multiplied by their
 * scales at once. With one column, cpu/quant/gemv.h reads each code once, without going through memory.
 */
#ifndef WW_CPU_ISA_AVX512_QUANT_GEMV_H
#define WW_CPU_ISA_AVX512_QUANT_GEMV_H

#define GEMV_SIGNED_OFFSET 128 /* VNNI multiplies unsigned by signed codes */
#include "cpu/isa/avx512/quant_gemv_rest.h"

/* The functions that cpu/quant/gemv.h uses from here. */
#define GEMV_SMALL_ROWS     zmm_rows
#define GEMV_LARGE_UNPACKED zmm_large
#define GEMV_LARGE_UNPACK   zmm_unpack
#define GEMV_LARGE_ADD      zmm_add_large

enum {
    CODE_REGISTERS = 4, /* registers per group */
    PREFETCH_L1 = 1024, /* prefetch distance of the weights, in each of the two rows */
    PREFETCH_L2 = 8192
};

DOT_FUNCTION __m512i nibbles_of(const char *words, int32_t shift)
{
    return _mm512_and_si512(_mm512_srli_epi32(_mm512_loadu_si512(words), (unsigned)shift), _mm512_set1_epi8(15));
}

/* Bit 4 of the codes of words 2i and 2i + 1, from the output of fifth_spread(). */
DOT_FUNCTION __m512i fifths_of(__m512i bits, int32_t i)
{
    const __m512i low = _mm512_set1_epi32(8 * i), shifts = _mm512_mask_set1_epi32(low, 0xff00, 8 * i + 4);
    const __m512i four = _mm512_and_si512(_mm512_srlv_epi32(bits, shifts), _mm512_set1_epi32(15));
    return _mm512_and_si512(_mm512_mullo_epi32(four, _mm512_set1_epi32(0x02040810)), _mm512_set1_epi32(0x10101010));
}

/* Looks up codes in the codebook; the results are 128 larger. */
DOT_FUNCTION __m512i zmm_lookup(int32_t type, __m512i codes)
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(codebook_from_0(type)), codes);
}

/* The codes of a group, as unsigned numbers: for signed formats, 128 is added. */
DOT_FUNCTION void zmm_codes(int32_t type, const char *group, __m512i codes[CODE_REGISTERS])
{
    const char *words = group + BLOCK_GROUP * words_begin(type);
    if (block_has_codebook(type)) {
        for (int32_t i = 0; i < CODE_REGISTERS; i++)
            codes[i] = zmm_lookup(type, nibbles_of(words + 64 * (i % 2), 4 * (i / 2)));
        return;
    }
    if (codes_signed(type)) {
        for (int32_t i = 0; i < CODE_REGISTERS; i++)
            codes[i] = _mm512_xor_si512(_mm512_loadu_si512(words + 64 * i), _mm512_set1_epi8(-128));
        return;
    }
    const int fifths = type == BLOCK_Q5_0 || type == BLOCK_Q5_1;
    for (int32_t i = 0; i < CODE_REGISTERS; i++) {
        codes[i] = nibbles_of(words + 32 * fifths + 64 * (i % 2), 4 * (i / 2));
        if (fifths)
            codes[i] = _mm512_or_si512(
                codes[i], fifths_of(_mm512_broadcast_i32x8(_mm256_loadu_si256((const __m256i *)(const void *)words)), i));
    }
}

/* f16 number h of the eight blocks of a group, for each row. */
DOT_FUNCTION __m512 zmm_halves(int32_t type, const row_pair *groups, int32_t h)
{
    const int64_t at = (int64_t)BLOCK_GROUP * half_offset(type, h);
    const __m128i first = _mm_loadu_si128((const __m128i *)(const void *)(groups->row[0] + at));
    const __m128i second = _mm_loadu_si128((const __m128i *)(const void *)(groups->row[1] + at));
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1));
}

/* The factors of a group of mxfp4, for each row. */
DOT_FUNCTION __m512 zmm_exponents(const row_pair *groups)
{
    const dot_floats first = group_factor(BLOCK_MXFP4, groups->row[0]), second = group_factor(BLOCK_MXFP4, groups->row[1]);
    return _mm512_castpd_ps(_mm512_insertf64x4(_mm512_castpd256_pd512((__m256d)first), (__m256d)second, 1));
}

/* Adds a group of both rows to the accumulators of a column. */
DOT_FUNCTION __m512 zmm_add(int32_t type, __m512i codes[2][CODE_REGISTERS], __m512 d, __m512 min, const gemv_small *x,
                            __m512 acc)
{
    const __m256i start = _mm256_load_si256((const __m256i *)(const void *)x->sums);
    const __m512 da = _mm512_broadcast_f32x8(_mm256_load_ps(x->d));
    __m512i sums[2];
    sums[0] = sums[1] = codes_offset(type) ? _mm512_zextsi256_si512(start) : _mm512_setzero_si512();
    for (int32_t i = 0; i < CODE_REGISTERS; i++) {
        const __m512i a = _mm512_load_si512(x->codes[2 * i]);
        sums[0] = _mm512_dpbusd_epi32(sums[0], codes[0][i], a);
        sums[1] = _mm512_dpbusd_epi32(sums[1], codes[1][i], a);
    }
    const __m512i j =
        _mm512_add_epi32(_mm512_shuffle_i64x2(sums[0], sums[1], 0x44), _mm512_shuffle_i64x2(sums[0], sums[1], 0xee));
    acc = _mm512_fmadd_ps(_mm512_mul_ps(d, da), _mm512_cvtepi32_ps(j), acc);
    if (dot_has_min(type))
        acc = _mm512_fmadd_ps(_mm512_mul_ps(min, da), _mm512_cvtepi32_ps(_mm512_broadcast_i32x8(start)), acc);
    return acc;
}

/* Multiplies group e of both rows with the columns of a piece. */
DOT_FUNCTION void zmm_groups(int32_t type, const quant_gemv *piece, const row_pair *groups, int64_t e, int64_t columns,
                             __m512 acc[GEMV_COLUMNS])
{
    __m512i codes[2][CODE_REGISTERS];
    zmm_codes(type, groups->row[0], codes[0]);
    zmm_codes(type, groups->row[1], codes[1]);
    const __m512 d = type == BLOCK_MXFP4 ? zmm_exponents(groups) : zmm_halves(type, groups, 0),
                 min = dot_has_min(type) ? zmm_halves(type, groups, 1) : d;
    for (int64_t c = 0; c < columns; c++) {
        const gemv_small *x = (const gemv_small *)(const void *)(piece->activations + c * piece->activations_stride) + e;
        acc[c] = zmm_add(type, codes, d, min, x, acc[c]);
    }
}

/* Prefetches what follows the group: far ahead into the second-level cache, near ahead into the first. */
DOT_FUNCTION void zmm_prefetch(const char *group, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += 64) {
        __builtin_prefetch(group + at + PREFETCH_L1, 0, 3);
        __builtin_prefetch(group + at + PREFETCH_L2, 0, 2);
    }
}

/* Multiplies the whole groups of two rows, or of the same row twice, with the columns of a piece. */
DOT_FUNCTION void zmm_pair(int32_t type, const quant_gemv *piece, row_pair rows, int64_t columns, __m512 acc[GEMV_COLUMNS])
{
    const int64_t whole = piece->blocks / BLOCK_GROUP, group_bytes = (int64_t)BLOCK_GROUP * block_bytes(type);
    for (int64_t c = 0; c < columns; c++)
        acc[c] = _mm512_setzero_ps();
    for (int64_t e = 0; e < whole; e++) {
        zmm_prefetch(rows.row[0], group_bytes);
        zmm_prefetch(rows.row[1], group_bytes);
        zmm_groups(type, piece, &rows, e, columns, acc);
        rows.row[0] += group_bytes;
        rows.row[1] += group_bytes;
    }
}

DOT_FUNCTION void zmm_rows(int32_t type, const quant_gemv *piece)
{
    const int64_t half = (piece->rows + 1) / 2, rest = piece->blocks % BLOCK_GROUP, whole = piece->blocks - rest;
    gemv_rest last[GEMV_COLUMNS];
    for (int64_t c = 0; c < piece->columns; c++) {
        const char *activations = piece->activations + c * piece->activations_stride;
        gemv_rest_prepare((const gemv_small *)(const void *)activations + whole / BLOCK_GROUP, rest, &last[c]);
    }
    for (int64_t r = 0; r < half; r++) {
        const int64_t next = r + half < piece->rows ? r + half : r;
        const row_pair rows = {{piece->weights + r * piece->weights_stride, piece->weights + next * piece->weights_stride}};
        __m512 acc[GEMV_COLUMNS];
        if (piece->columns == 1)
            zmm_pair(type, piece, rows, 1, acc);
        else
            zmm_pair(type, piece, rows, piece->columns, acc);
        const row_pair blocks = {{rows.row[0] + whole * block_bytes(type), rows.row[1] + whole * block_bytes(type)}};
        for (int64_t c = 0; c < piece->columns; c++) {
            float sums[2], *out = piece->out + piece->places[c] * piece->out_stride;
            if (rest > 0)
                acc[c] = pair_rest_add(type, blocks, rest, &last[c], acc[c]);
            pair_fold(acc[c], sums);
            out[next] = sums[1];
            out[r] = sums[0];
        }
    }
}

/* ---- blocks of 256 ------------------------------------------------------------------------------------------------------- */

typedef struct zmm_large {
    __m512i codes[32], scales[8], mins[8]; /* of words 2i and 2i + 1; scales and mins: of sub-blocks 2i and 2i + 1 */
    dot_floats d, min;
} zmm_large;

DOT_FUNCTION __m512i zmm_both(dot_lanes first, dot_lanes second)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512((__m256i)first), (__m256i)second, 1);
}

DOT_FUNCTION dot_lanes zmm_halves_added(__m512i v)
{
    return (dot_lanes)_mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
}

DOT_FUNCTION void zmm_unpack(int32_t type, const char *group, zmm_large *out)
{
    _Pragma("GCC unroll 32") for (int32_t i = 0; i < 32; i++) out->codes[i] =
        zmm_both(group_codes(type, group, i / 4, 2 * (i % 4)), group_codes(type, group, i / 4, 2 * (i % 4) + 1));
    _Pragma("GCC unroll 8") for (int32_t r = 0; r < sub_blocks(type) / 2; r++)
    {
        out->scales[r] = zmm_both(group_scale(type, group, 2 * r), group_scale(type, group, 2 * r + 1));
        if (dot_has_min(type))
            out->mins[r] = zmm_both(group_min(type, group, 2 * r), group_min(type, group, 2 * r + 1));
    }
    out->d = group_factor(type, group);
    if (dot_has_min(type))
        out->min = group_min_factor(type, group);
}

/* The sums of products of one sub-block. The first eight lanes have words 2i, the others words 2i + 1. */
DOT_FUNCTION __m512i zmm_sub_block(int32_t type, const zmm_large *group, const gemv_large *x, int32_t r)
{
    const int32_t pairs = 32 / sub_blocks(type);
    __m512i sum = _mm512_setzero_si512();
    if (dot_offset(type))
        sum = _mm512_zextsi256_si512(_mm256_load_si256((const __m256i *)(const void *)x->sums[r]));
    _Pragma("GCC unroll 4") for (int32_t i = 0; i < pairs; i++) sum =
        _mm512_dpbusd_epi32(sum, group->codes[pairs * r + i], _mm512_load_si512(x->codes[2 * (pairs * r + i)]));
    return sum;
}

/* Adds one group's part to the accumulators of a column. A minimum and the sum of a sub-block's codes both fit in 16 bits, so
 * the instruction for pairs of 16-bit numbers multiplies them; the other number of each pair is 0. */
DOT_FUNCTION dot_floats zmm_add_large(int32_t type, const zmm_large *group, const gemv_large *x, dot_floats acc)
{
    const dot_floats da = dot_load_floats(x->d);
    __m512i j = _mm512_setzero_si512(), m = j;
    _Pragma("GCC unroll 8") for (int32_t r = 0; r < sub_blocks(type); r += 2)
    {
        const __m512i first = zmm_sub_block(type, group, x, r), second = zmm_sub_block(type, group, x, r + 1);
        const __m512i sums =
            _mm512_add_epi32(_mm512_shuffle_i64x2(first, second, 0x44), _mm512_shuffle_i64x2(first, second, 0xee));
        j = _mm512_add_epi32(j, _mm512_mullo_epi32(sums, group->scales[r / 2]));
        if (dot_has_min(type))
            m = _mm512_dpwssd_epi32(m, group->mins[r / 2], _mm512_load_si512(x->sums[r]));
    }
    acc = dot_fma(group->d * da, __builtin_convertvector(zmm_halves_added(j), dot_floats), acc);
    return dot_has_min(type) ? dot_fma(group->min * da, __builtin_convertvector(zmm_halves_added(m), dot_floats), acc) : acc;
}

#endif
