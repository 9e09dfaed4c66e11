/* Products of codes for 64-bit Arm: plain NEON, SDOT (dotprod) and SMMLA (i8mm).
 *
 * SDOT adds four products to each lane. A register has four queries, which are multiplied with one lane of a row's register.
 * SMMLA multiplies two rows by two queries, eight codes of each. Both are stored in pairs: eight codes of the first, then eight
 * of the second.
 */
#include <arm_neon.h>
#include <string.h>

#include "cpu/isa/neon/neon.h"

#define UNROLL _Pragma("GCC unroll 16")

enum {
    GROUP_VECS = GROUP / 4,
    GROUP_PAIRS = GROUP / 2,
    TILE_ROWS = 4,  /* rows of an SDOT tile, which has all vectors of a group */
    TILE_PAIRS = 4, /* pairs of rows, and of queries, of an SMMLA tile */
};

#define WITH_DOTPROD __attribute__((target("arch=armv8.2-a+dotprod")))
#define WITH_I8MM    __attribute__((target("arch=armv8.2-a+i8mm")))

/* ---- plain --------------------------------------------------------------------------------------------------------------- */

static bool present(void)
{
    return true;
}

/* Two products of 127 * 127 fit in 16 bits. */
static void one(const int8_t *query, const int8_t *rows, int32_t row_count, int32_t padded, int32_t *out)
{
    for (int32_t r = 0; r < row_count; r++, rows += padded) {
        int32x4_t sums = vdupq_n_s32(0);
        for (int32_t i = 0; i < padded; i += 16) {
            const int8x16_t a = vld1q_s8(query + i), b = vld1q_s8(rows + i);
            int16x8_t products = vmull_s8(vget_low_s8(a), vget_low_s8(b));
            products = vmlal_s8(products, vget_high_s8(a), vget_high_s8(b));
            sums = vpadalq_s16(sums, products);
            __builtin_prefetch(rows + i + PREFETCH_BYTES);
        }
        out[r] = vaddvq_s32(sums);
    }
}

static void pack(const int8_t *codes, int32_t padded, int8_t *packed)
{
    memcpy(packed, codes, (size_t)GROUP * (size_t)padded);
}

static void groups(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                   int32_t *out)
{
    for (int32_t g = 0; g < group_count; g++, packed += packed_group_bytes(&products_neon, padded)) {
        for (int32_t q = 0; q < GROUP; q++) {
            int32_t column[UNIT_ROWS];
            one(packed + q * padded, prepared, row_count, padded, column);
            for (int32_t r = 0; r < row_count; r++)
                out[(g * UNIT_ROWS + r) * GROUP + q] = column[r];
        }
    }
}

static void one_high(const int8_t *query, const uint8_t *highs, int32_t row_count, int32_t padded, int32_t *out)
{
    const int32_t half = padded / 2;
    for (int32_t r = 0; r < row_count; r++, highs += half) {
        int32_t sum = 0;
        for (int32_t i = 0; i < half; i++)
            sum += query[i] * (int8_t)(highs[i] & 0xf0) + query[half + i] * (int8_t)(highs[i] << 4 & 0xf0);
        out[r] = sum;
    }
}

const screen_products products_neon = {
    .name = "neon", .present = present, .code_bytes = 1, .one = one, .one_high = one_high, .pack = pack, .groups = groups};

/* ---- SDOT ---------------------------------------------------------------------------------------------------------------- */

WITH_DOTPROD static void dotprod_one(const int8_t *query, const int8_t *rows, int32_t row_count, int32_t padded, int32_t *out)
{
    for (int32_t r = 0; r < row_count; r += 4, rows += 4 * (int64_t)padded) {
        int32x4_t sums[4];
        UNROLL for (int j = 0; j < 4; j++) sums[j] = vdupq_n_s32(0);
        for (int32_t i = 0; i < padded; i += 16) {
            const int8x16_t codes = vld1q_s8(query + i);
            UNROLL for (int j = 0; j < 4; j++)
            {
                sums[j] = vdotq_s32(sums[j], vld1q_s8(rows + j * padded + i), codes);
                if (i % 64 == 0)
                    __builtin_prefetch(rows + j * padded + i + PREFETCH_BYTES);
            }
        }
        vst1q_s32(out + r, vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3])));
    }
}

WITH_DOTPROD static void dotprod_one_high(const int8_t *query, const uint8_t *highs, int32_t row_count, int32_t padded,
                                          int32_t *out)
{
    const int32_t half = padded / 2;
    const uint8x16_t upper = vdupq_n_u8(0xf0);
    for (int32_t r = 0; r < row_count; r += 4, highs += 4 * (int64_t)half) {
        int32x4_t sums[4];
        UNROLL for (int j = 0; j < 4; j++) sums[j] = vdupq_n_s32(0);
        for (int32_t i = 0; i < half; i += 16) {
            const int8x16_t first = vld1q_s8(query + i), second = vld1q_s8(query + half + i);
            UNROLL for (int j = 0; j < 4; j++)
            {
                const uint8x16_t both = vld1q_u8(highs + j * half + i);
                sums[j] = vdotq_s32(sums[j], vreinterpretq_s8_u8(vandq_u8(both, upper)), first);
                sums[j] = vdotq_s32(sums[j], vreinterpretq_s8_u8(vshlq_n_u8(both, 4)), second);
                if (i % 64 == 0)
                    __builtin_prefetch(highs + j * half + i + PREFETCH_BYTES);
            }
        }
        vst1q_s32(out + r, vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3])));
    }
}

static void dotprod_pack(const int8_t *codes, int32_t padded, int8_t *packed)
{
    for (int32_t i = 0; i < padded; i += 4)
        for (int32_t q = 0; q < GROUP; q++, packed += 4)
            memcpy(packed, codes + q * padded + i, 4);
}

WITH_DOTPROD static void dotprod_tile(const int8_t *packed, const int8_t *rows, int32_t padded, int32_t *out)
{
    int32x4_t sums[TILE_ROWS][GROUP_VECS];
    UNROLL for (int r = 0; r < TILE_ROWS; r++) UNROLL for (int v = 0; v < GROUP_VECS; v++) sums[r][v] = vdupq_n_s32(0);
    for (int32_t i = 0; i < padded; i += 16, packed += 16 * GROUP) {
        int8x16_t row[TILE_ROWS];
        UNROLL for (int r = 0; r < TILE_ROWS; r++) row[r] = vld1q_s8(rows + r * padded + i);
#define STEP(lane)                                                                                                             \
    UNROLL for (int v = 0; v < GROUP_VECS; v++)                                                                                \
    {                                                                                                                          \
        const int8x16_t queries = vld1q_s8(packed + (lane) * 4 * GROUP + v * 16);                                              \
        UNROLL for (int r = 0; r < TILE_ROWS; r++) sums[r][v] = vdotq_laneq_s32(sums[r][v], queries, row[r], lane);            \
    }
        STEP(0)
        STEP(1)
        STEP(2)
        STEP(3)
#undef STEP
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++) UNROLL for (int v = 0; v < GROUP_VECS; v++)
        vst1q_s32(out + r * GROUP + v * 4, sums[r][v]);
}

static void dotprod_groups(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                           int32_t *out)
{
    for (int32_t g = 0; g < group_count; g++, packed += packed_group_bytes(&products_dotprod, padded))
        for (int32_t r = 0; r < row_count; r += TILE_ROWS)
            dotprod_tile(packed, prepared + r * padded, padded, out + (g * UNIT_ROWS + r) * GROUP);
}

const screen_products products_dotprod = {.name = "dotprod",
                                          .present = neon_has_dotprod,
                                          .code_bytes = 1,
                                          .one = dotprod_one,
                                          .one_high = dotprod_one_high,
                                          .pack = dotprod_pack,
                                          .groups = dotprod_groups};

/* ---- SMMLA --------------------------------------------------------------------------------------------------------------- */

/* Packs pairs of queries, eight codes of each. A tile finds its pairs one after the other. */
static void i8mm_pack(const int8_t *codes, int32_t padded, int8_t *packed)
{
    for (int32_t i = 0; i < padded; i += 8)
        for (int32_t q = 0; q < GROUP; q++, packed += 8)
            memcpy(packed, codes + q * padded + i, 8);
}

/* Packs pairs of rows the same way, except that one pair follows the other. */
static void i8mm_prepare(const int8_t *rows, int32_t row_count, int32_t padded, int8_t *prepared)
{
    for (int32_t r = 0; r < row_count; r += 2, rows += 2 * (int64_t)padded) {
        for (int32_t i = 0; i < padded; i += 16, prepared += 32) {
            const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(rows + i));
            const int64x2_t b = vreinterpretq_s64_s8(vld1q_s8(rows + padded + i));
            vst1q_s8(prepared, vreinterpretq_s8_s64(vtrn1q_s64(a, b)));
            vst1q_s8(prepared + 16, vreinterpretq_s8_s64(vtrn2q_s64(a, b)));
        }
    }
}

/* Multiplies eight rows by eight queries. */
WITH_I8MM static void i8mm_tile(const int8_t *packed, const int8_t *rows, int32_t padded, int32_t *out)
{
    int32x4_t sums[TILE_PAIRS][TILE_PAIRS];
    UNROLL for (int r = 0; r < TILE_PAIRS; r++) UNROLL for (int q = 0; q < TILE_PAIRS; q++) sums[r][q] = vdupq_n_s32(0);
    for (int32_t i = 0; i < padded; i += 8) {
        int8x16_t row[TILE_PAIRS];
        UNROLL for (int r = 0; r < TILE_PAIRS; r++) row[r] = vld1q_s8(rows + (r * padded + i) * 2);
        UNROLL for (int q = 0; q < TILE_PAIRS; q++)
        {
            const int8x16_t queries = vld1q_s8(packed + i * GROUP + q * 16);
            UNROLL for (int r = 0; r < TILE_PAIRS; r++) sums[r][q] = vmmlaq_s32(sums[r][q], row[r], queries);
        }
    }
    UNROLL for (int r = 0; r < TILE_PAIRS; r++)
    {
        UNROLL for (int q = 0; q < TILE_PAIRS; q += 2)
        {
            const int64x2_t a = vreinterpretq_s64_s32(sums[r][q]), b = vreinterpretq_s64_s32(sums[r][q + 1]);
            vst1q_s32(out + 2 * r * GROUP + q * 2, vreinterpretq_s32_s64(vtrn1q_s64(a, b)));
            vst1q_s32(out + (2 * r + 1) * GROUP + q * 2, vreinterpretq_s32_s64(vtrn2q_s64(a, b)));
        }
    }
}

static void i8mm_groups(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                        int32_t *out)
{
    for (int32_t g = 0; g < group_count; g++, packed += packed_group_bytes(&products_i8mm, padded))
        for (int32_t r = 0; r < row_count; r += 2 * TILE_PAIRS)
            for (int32_t q = 0; q < GROUP_PAIRS; q += TILE_PAIRS)
                i8mm_tile(packed + q * 16, prepared + r * padded, padded, out + (g * UNIT_ROWS + r) * GROUP + q * 2);
}

const screen_products products_i8mm = {.name = "i8mm",
                                       .present = neon_has_i8mm,
                                       .code_bytes = 1,
                                       .one = dotprod_one,
                                       .one_high = dotprod_one_high,
                                       .pack = i8mm_pack,
                                       .prepare = i8mm_prepare,
                                       .groups = i8mm_groups};
