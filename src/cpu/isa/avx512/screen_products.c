/* Products of codes by AVX-512 VNNI.
 *
 * vpdpbusd multiplies unsigned by signed bytes: 128 is added to the rows, and the sums start at the bias, minus 128 times the
 * sum of a query's codes. A tile is eight rows by one or two groups: that is enough accumulators to hide the latency, and each
 * loaded register of queries serves eight rows.
 */
#include <immintrin.h>

#include "cpu/isa/avx512/avx512.h"

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))
#define VNNI   __attribute__((target("avx512vnni")))

enum { TILE_ROWS = 8, TILE_GROUPS = 2, ONE_ROWS = 16 };

/* Four bytes as one integer, for a load that broadcasts it. */
static inline int32_t four_bytes(const int8_t *from)
{
    int32_t value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

static bool present(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
}

/* The sum of the lanes of each of 16 registers, in order, by a transposing tree. */
INLINE __m512i sums_of(const __m512i v[ONE_ROWS])
{
    __m512i pairs[8], fours[4];
    UNROLL for (int i = 0; i < 8; i++) pairs[i] =
        _mm512_add_epi32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    UNROLL for (int i = 0; i < 4; i++) fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(pairs[2 * i], pairs[2 * i + 1]),
                                                                   _mm512_unpackhi_epi64(pairs[2 * i], pairs[2 * i + 1]));
    const __m512i low =
        _mm512_add_epi32(_mm512_shuffle_i32x4(fours[0], fours[1], 0x44), _mm512_shuffle_i32x4(fours[0], fours[1], 0xee));
    const __m512i high =
        _mm512_add_epi32(_mm512_shuffle_i32x4(fours[2], fours[3], 0x44), _mm512_shuffle_i32x4(fours[2], fours[3], 0xee));
    return _mm512_add_epi32(_mm512_shuffle_i32x4(low, high, 0x88), _mm512_shuffle_i32x4(low, high, 0xdd));
}

VNNI static void one(const int8_t *query, const int8_t *rows, int32_t row_count, int32_t padded, int32_t *out)
{
    const __m512i raise = _mm512_set1_epi8(-128);
    __m512i bias = _mm512_setzero_si512();
    for (int32_t i = 0; i < padded; i += 64)
        bias = _mm512_dpbusd_epi32(bias, raise, _mm512_loadu_si512(query + i));
    const __m512i taken = _mm512_set1_epi32(-_mm512_reduce_add_epi32(bias));
    for (int32_t r = 0; r < row_count; r += ONE_ROWS) {
        __m512i sums[ONE_ROWS];
        UNROLL for (int j = 0; j < ONE_ROWS; j++)
        {
            const int8_t *row = rows + (r + j) * padded;
            sums[j] = _mm512_setzero_si512();
            for (int32_t i = 0; i < padded; i += 64) {
                const __m512i raised = _mm512_xor_si512(_mm512_loadu_si512(row + i), raise);
                sums[j] = _mm512_dpbusd_epi32(sums[j], raised, _mm512_loadu_si512(query + i));
                __builtin_prefetch(row + i + PREFETCH_BYTES);
            }
        }
        _mm512_storeu_si512(out + r, _mm512_add_epi32(sums_of(sums), taken));
    }
}

/* Flipping the top bit of h gives h + 8. At the end 8 times the sum of the query's codes is subtracted, and the result
 * multiplied by 16. The length of a plane is a multiple of 32 bytes. */
VNNI static void one_high(const int8_t *query, const uint8_t *highs, int32_t row_count, int32_t padded, int32_t *out)
{
    const __m512i lower = _mm512_set1_epi8(15), flip = _mm512_set1_epi8((char)0x88);
    const int32_t half = padded / 2;
    __m512i bias = _mm512_setzero_si512();
    for (int32_t i = 0; i < padded; i += 64)
        bias = _mm512_dpbusd_epi32(bias, _mm512_set1_epi8(8), _mm512_loadu_si512(query + i));
    const __m512i raised = _mm512_set1_epi32(_mm512_reduce_add_epi32(bias));
    for (int32_t r = 0; r < row_count; r += ONE_ROWS) {
        __m512i sums[ONE_ROWS];
        UNROLL for (int j = 0; j < ONE_ROWS; j++)
        {
            const uint8_t *plane = highs + (r + j) * half;
            sums[j] = _mm512_setzero_si512();
            for (int32_t i = 0; i < half; i += 64) {
                const __mmask64 some = half - i < 64 ? UINT32_MAX : UINT64_MAX;
                const __m512i both = _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, plane + i), flip);
                const __m512i first = _mm512_maskz_loadu_epi8(some, query + i);
                const __m512i second = _mm512_maskz_loadu_epi8(some, query + half + i);
                sums[j] = _mm512_dpbusd_epi32(sums[j], _mm512_and_si512(_mm512_srli_epi16(both, 4), lower), first);
                sums[j] = _mm512_dpbusd_epi32(sums[j], _mm512_and_si512(both, lower), second);
                __builtin_prefetch(plane + i + PREFETCH_BYTES);
            }
        }
        _mm512_storeu_si512(out + r, _mm512_slli_epi32(_mm512_sub_epi32(sums_of(sums), raised), 4));
    }
}

static void pack(const int8_t *codes, int32_t padded, int8_t *packed)
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

static void prepare(const int8_t *rows, int32_t row_count, int32_t padded, int8_t *prepared)
{
    for (int32_t i = 0; i < row_count * padded; i += 64)
        _mm512_storeu_si512(prepared + i, _mm512_xor_si512(_mm512_loadu_si512(rows + i), _mm512_set1_epi8(-128)));
}

VNNI INLINE void tile(int G, const int8_t *packed, const int8_t *rows, int32_t padded, int32_t *out)
{
    const int64_t group_bytes = packed_group_bytes(&products_avx512_vnni, padded);
    __m512i sums[TILE_ROWS][TILE_GROUPS];
    UNROLL for (int r = 0; r < TILE_ROWS; r++) UNROLL for (int g = 0; g < G; g++) sums[r][g] =
        _mm512_loadu_si512(packed + g * group_bytes + GROUP * padded);
    for (int32_t i = 0; i < padded; i += 4) {
        __m512i queries[TILE_GROUPS];
        UNROLL for (int g = 0; g < G; g++) queries[g] = _mm512_loadu_si512(packed + g * group_bytes + i * GROUP);
        UNROLL for (int r = 0; r < TILE_ROWS; r++)
        {
            const __m512i row = _mm512_set1_epi32(four_bytes(rows + r * padded + i));
            UNROLL for (int g = 0; g < G; g++) sums[r][g] = _mm512_dpbusd_epi32(sums[r][g], row, queries[g]);
        }
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++) UNROLL for (int g = 0; g < G; g++)
        _mm512_storeu_si512(out + (g * UNIT_ROWS + r) * GROUP, sums[r][g]);
}

VNNI static void groups(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                        int32_t *out)
{
    const int64_t group_bytes = packed_group_bytes(&products_avx512_vnni, padded);
    for (int32_t g = 0; g < group_count; g += TILE_GROUPS, packed += TILE_GROUPS * group_bytes) {
        for (int32_t r = 0; r < row_count; r += TILE_ROWS) {
            int32_t *to = out + (g * UNIT_ROWS + r) * GROUP;
            if (g + 1 == group_count)
                tile(1, packed, prepared + r * padded, padded, to);
            else
                tile(2, packed, prepared + r * padded, padded, to);
        }
    }
}

const screen_products products_avx512_vnni = {.name = "avx512-vnni",
                                              .present = present,
                                              .code_bytes = 1,
                                              .one = one,
                                              .one_high = one_high,
                                              .pack = pack,
                                              .prepare = prepare,
                                              .groups = groups};
