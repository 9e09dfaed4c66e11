/* Products of codes for AVX2, with and without AVX-VNNI.
 *
 * Without AVX-VNNI a group is widened to 16 bits, because vpmaddubsw, which multiplies bytes, saturates. A single query uses it
 * anyway, with the magnitudes of rows and their signs moved to the query: two products of 127 * 127 fit in 16 bits. With
 * AVX-VNNI, vpdpbusd needs unsigned bytes on one side: 128 is added to the rows, and the sums start at the bias, minus 128
 * times the sum of a query's codes.
 */
#include <immintrin.h>

#include "cpu/isa/avx2/avx2.h"

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))
#define VNNI   __attribute__((target("avxvnni")))

enum { VNNI_ROWS = 6 };

/* Four bytes as one integer, for a load that broadcasts it. */
static inline int32_t four_bytes(const int8_t *from)
{
    int32_t value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

static int32_t sum_of(__m256i v)
{
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    return _mm_cvtsi128_si32(sum);
}

static void one(const int8_t *query, const int8_t *rows, int32_t row_count, int32_t padded, int32_t *out)
{
    const __m256i ones = _mm256_set1_epi16(1);
    for (int32_t r = 0; r < row_count; r++, rows += padded) {
        __m256i sums = _mm256_setzero_si256();
        for (int32_t i = 0; i < padded; i += 32) {
            const __m256i row = _mm256_loadu_si256((const __m256i *)(rows + i));
            const __m256i signs = _mm256_sign_epi8(_mm256_loadu_si256((const __m256i *)(query + i)), row);
            const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(row), signs);
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, ones));
            __builtin_prefetch(rows + i + PREFETCH_BYTES);
        }
        out[r] = sum_of(sums);
    }
}

/* Flipping the top bit of h gives h + 8: unsigned, and small enough that four products fit in 16 bits. At the end 8 times the
 * sum of the query's codes is subtracted, and the result multiplied by 16. */
static void one_high(const int8_t *query, const uint8_t *highs, int32_t row_count, int32_t padded, int32_t *out)
{
    const __m256i ones = _mm256_set1_epi16(1), lower = _mm256_set1_epi8(15), flip = _mm256_set1_epi8((char)0x88);
    const int32_t half = padded / 2;
    int32_t raised = 0;
    for (int32_t i = 0; i < padded; i++)
        raised += 8 * query[i];
    for (int32_t r = 0; r < row_count; r++, highs += half) {
        __m256i sums = _mm256_setzero_si256();
        for (int32_t i = 0; i < half; i += 32) {
            const __m256i both = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(highs + i)), flip);
            const __m256i first = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(both, 4), lower),
                                                       _mm256_loadu_si256((const __m256i *)(query + i)));
            const __m256i second =
                _mm256_maddubs_epi16(_mm256_and_si256(both, lower), _mm256_loadu_si256((const __m256i *)(query + half + i)));
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_add_epi16(first, second), ones));
            __builtin_prefetch(highs + i + PREFETCH_BYTES);
        }
        out[r] = 16 * (sum_of(sums) - raised);
    }
}

/* ---- AVX2: pairs of 16-bit numbers, eight queries per register ----------------------------------------------------------- */

static bool present(void)
{
    return __builtin_cpu_supports("avx2");
}

static void pack(const int8_t *codes, int32_t padded, int8_t *packed)
{
    int16_t *to = (int16_t *)(void *)packed;
    for (int32_t i = 0; i < padded; i += 2)
        for (int32_t q = 0; q < GROUP; q++, to += 2) {
            to[0] = (int16_t)codes[q * padded + i];
            to[1] = (int16_t)codes[q * padded + i + 1];
        }
}

static void prepare(const int8_t *rows, int32_t row_count, int32_t padded, int8_t *prepared)
{
    for (int32_t i = 0; i < row_count * padded; i += 16)
        _mm256_storeu_si256((__m256i *)(prepared + 2 * (int64_t)i),
                            _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(rows + i))));
}

static void group_of_four_rows(const int8_t *packed, const int8_t *rows, int32_t padded, int32_t *out)
{
    __m256i sums[4][2];
    UNROLL for (int r = 0; r < 4; r++) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
    for (int32_t i = 0; i < padded; i += 2) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)(packed + i * 2 * GROUP));
        const __m256i high = _mm256_loadu_si256((const __m256i *)(packed + i * 2 * GROUP + 32));
        UNROLL for (int r = 0; r < 4; r++)
        {
            const __m256i row = _mm256_set1_epi32(four_bytes(rows + (r * padded + i) * 2));
            sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(low, row));
            sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(high, row));
        }
    }
    UNROLL for (int r = 0; r < 4; r++)
    {
        _mm256_storeu_si256((__m256i *)(out + r * GROUP), sums[r][0]);
        _mm256_storeu_si256((__m256i *)(out + r * GROUP + 8), sums[r][1]);
    }
}

static void groups(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                   int32_t *out)
{
    for (int32_t g = 0; g < group_count; g++)
        for (int32_t r = 0; r < row_count; r += 4)
            group_of_four_rows(packed + g * packed_group_bytes(&products_avx2, padded), prepared + r * padded * 2, padded,
                               out + (g * UNIT_ROWS + r) * GROUP);
}

const screen_products products_avx2 = {.name = "avx2",
                                       .present = present,
                                       .code_bytes = 2,
                                       .one = one,
                                       .one_high = one_high,
                                       .pack = pack,
                                       .prepare = prepare,
                                       .groups = groups};

/* ---- AVX-VNNI: fours of bytes -------------------------------------------------------------------------------------------- */

static bool vnni_present(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avxvnni");
}

static void vnni_pack(const int8_t *codes, int32_t padded, int8_t *packed)
{
    for (int32_t i = 0; i < padded; i += 4)
        for (int32_t q = 0; q < GROUP; q++, packed += 4)
            __builtin_memcpy(packed, codes + q * padded + i, 4);
    int32_t *bias = (int32_t *)(void *)packed;
    for (int32_t q = 0; q < GROUP; q++) {
        bias[q] = 0;
        for (int32_t i = 0; i < padded; i++)
            bias[q] -= 128 * codes[q * padded + i];
    }
}

static void vnni_prepare(const int8_t *rows, int32_t row_count, int32_t padded, int8_t *prepared)
{
    for (int32_t i = 0; i < row_count * padded; i += 32)
        _mm256_storeu_si256((__m256i *)(prepared + i),
                            _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(rows + i)), _mm256_set1_epi8(-128)));
}

/* Six rows by a group need twelve sums, which hide the latency of the instruction; four or two rows at the end do not. */
VNNI INLINE void vnni_tile(int R, const int8_t *packed, const int8_t *rows, int32_t padded, int32_t *out)
{
    __m256i sums[VNNI_ROWS][2];
    UNROLL for (int r = 0; r < R; r++) UNROLL for (int half = 0; half < 2; half++) sums[r][half] =
        _mm256_loadu_si256((const __m256i *)(packed + GROUP * padded + half * 32));
    for (int32_t i = 0; i < padded; i += 4) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)(packed + i * GROUP));
        const __m256i high = _mm256_loadu_si256((const __m256i *)(packed + i * GROUP + 32));
        UNROLL for (int r = 0; r < R; r++)
        {
            const __m256i row = _mm256_set1_epi32(four_bytes(rows + r * padded + i));
            sums[r][0] = _mm256_dpbusd_avx_epi32(sums[r][0], row, low);
            sums[r][1] = _mm256_dpbusd_avx_epi32(sums[r][1], row, high);
        }
    }
    UNROLL for (int r = 0; r < R; r++)
    {
        _mm256_storeu_si256((__m256i *)(out + r * GROUP), sums[r][0]);
        _mm256_storeu_si256((__m256i *)(out + r * GROUP + 8), sums[r][1]);
    }
}

VNNI static void vnni_groups(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count,
                             int32_t padded, int32_t *out)
{
    for (int32_t g = 0; g < group_count; g++, packed += packed_group_bytes(&products_avx_vnni, padded)) {
        int32_t r = 0;
        for (; r + VNNI_ROWS <= row_count; r += VNNI_ROWS)
            vnni_tile(VNNI_ROWS, packed, prepared + r * padded, padded, out + (g * UNIT_ROWS + r) * GROUP);
        for (; r + 4 <= row_count; r += 4)
            vnni_tile(4, packed, prepared + r * padded, padded, out + (g * UNIT_ROWS + r) * GROUP);
        for (; r < row_count; r += 2)
            vnni_tile(2, packed, prepared + r * padded, padded, out + (g * UNIT_ROWS + r) * GROUP);
    }
}

const screen_products products_avx_vnni = {.name = "avx-vnni",
                                           .present = vnni_present,
                                           .code_bytes = 1,
                                           .one = one,
                                           .one_high = one_high,
                                           .pack = vnni_pack,
                                           .prepare = vnni_prepare,
                                           .groups = vnni_groups};
