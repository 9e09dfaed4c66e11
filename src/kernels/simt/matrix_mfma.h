/* Products of bytes by MFMA with rows in registers: a wave multiplies as many rows as it has lanes with 128 columns.
 *
 * A wave reads its rows once from global memory, and columns from shared memory, once for all 64 rows. Rows are in four strips,
 * columns in groups of sixteen. For strip s and sixteen c, a lane has four sums, number (s * MFMA_SIXTEENS + c) * 4 + r with r
 * below 4, of row mfma_row(s) + r and column mfma_column(c).
 *
 * A lane holds piece lane / 16, 16 bytes, of row lane % 16 of each strip, and the same of columns. The sums are exact integers,
 * so the order of bytes does not matter, as long as it is the same for rows and columns. The emulator multiplies by dot16_i8;
 * its waves may have 32 lanes, and strips then have eight rows.
 */
#ifndef WW_KERNELS_SIMT_MATRIX_MFMA_H
#define WW_KERNELS_SIMT_MATRIX_MFMA_H

#include "kernels/simt/simt.h"

#include "arithmetic/screen.h"

enum { MFMA_COLUMNS = 128, MFMA_SIXTEENS = MFMA_COLUMNS / 16, MFMA_STRIPS = 4, MFMA_SUMS = MFMA_STRIPS * MFMA_SIXTEENS * 4 };

DEVICE uint32_t mfma_row(uint32_t strip)
{
    return strip * (wave_size() / 4) + lane() / 16 * 4;
}

DEVICE uint32_t mfma_column(uint32_t sixteen)
{
    return sixteen * 16 + lane() % 16;
}

#if defined(SIMT_MFMA)

typedef int32_t mfma_four __attribute__((ext_vector_type(4)));

/* A pointer to global memory. With a generic pointer, the chip would also wait as for an access to shared memory. */
#define MFMA_GLOBAL(type, pointer) ((const __attribute__((address_space(1))) type *)(pointer))

/* Loads 16 bytes, `at` words from an address that is the same for all lanes. */
DEVICE u32x4 mfma_load_words(const uint32_t *from, uint32_t at)
{
    const simt_words v = *MFMA_GLOBAL(simt_words, from + at);
    const u32x4 words = {v.x, v.y, v.z, v.w};
    return words;
}

/* One float for each of four rows. An instruction computes two of them. */
typedef float mfma_quad __attribute__((ext_vector_type(4)));

DEVICE mfma_quad mfma_fma_quads(mfma_quad a, mfma_quad b, mfma_quad c)
{
    return __builtin_elementwise_fma(a, b, c);
}

/* Whether any predicate is true in any lane. The compiler already has each predicate as a mask. */
DEVICE bool mfma_any(const bool *predicates, const uint32_t count)
{
    uint64_t any = 0;
    UNROLL
    for (uint32_t i = 0; i < count; i++)
        any |= wave_ballot(predicates[i]);
    return any != 0;
}

DEVICE void mfma_store(uint32_t *to, u32x4 words)
{
    const simt_words v = {words.x, words.y, words.z, words.w};
    *(simt_words *)to = v;
}

/* 64 bytes of each row. */
typedef struct mfma_rows {
    u32x4 of[MFMA_STRIPS];
} mfma_rows;

/* `slab`, in global memory, has 64 bytes of each of 64 rows (screen_piece). */
DEVICE mfma_rows mfma_load(const uint32_t *slab, uint32_t first)
{
    mfma_rows rows;
    UNROLL
    for (uint32_t s = 0; s < MFMA_STRIPS; s++)
        rows.of[s] = mfma_load_words(slab, screen_piece(first + s * 16 + lane() % 16, lane() / 16));
    return rows;
}

DEVICE mfma_four mfma_product(u32x4 x, u32x4 q, mfma_four sum)
{
#if defined(__gfx950__)
    return __builtin_amdgcn_mfma_i32_16x16x64_i8(__builtin_bit_cast(mfma_four, x), __builtin_bit_cast(mfma_four, q), sum, 0, 0,
                                                 0);
#elif defined(SIMT_CDNA3)
    sum = __builtin_amdgcn_mfma_i32_16x16x32_i8((long)((uint64_t)x.y << 32 | x.x), (long)((uint64_t)q.y << 32 | q.x), sum, 0, 0,
                                                0);
    return __builtin_amdgcn_mfma_i32_16x16x32_i8((long)((uint64_t)x.w << 32 | x.z), (long)((uint64_t)q.w << 32 | q.z), sum, 0,
                                                 0, 0);
#else
    sum = __builtin_amdgcn_mfma_i32_16x16x16i8((int)x.x, (int)q.x, sum, 0, 0, 0);
    sum = __builtin_amdgcn_mfma_i32_16x16x16i8((int)x.y, (int)q.y, sum, 0, 0, 0);
    sum = __builtin_amdgcn_mfma_i32_16x16x16i8((int)x.z, (int)q.z, sum, 0, 0, 0);
    return __builtin_amdgcn_mfma_i32_16x16x16i8((int)x.w, (int)q.w, sum, 0, 0, 0);
#endif
}

/* Adds the products of 64 bytes of rows and columns. With `begin`, the sums start at 0 at no cost. `columns` is two slabs in
 * shared memory. */
DEVICE void mfma_multiply(const bool begin, const mfma_rows *rows, const uint32_t *columns, int32_t *sums)
{
    UNROLL
    for (uint32_t c = 0; c < MFMA_SIXTEENS; c++) {
        if (c == MFMA_SIXTEENS / 2)
            SCHEDULE_APART(); /* all columns at once would need too many registers */
        simt_words v = *(const simt_words *)(columns + screen_piece(c * 16 + lane() % 16, lane() / 16));
        __asm__("" : "+v"(v)); /* otherwise the compiler splits it into two reads with bank conflicts */
        const u32x4 q = {v.x, v.y, v.z, v.w};
        UNROLL
        for (uint32_t s = 0; s < MFMA_STRIPS; s++) {
            int32_t *const four = sums + (s * MFMA_SIXTEENS + c) * 4;
            const mfma_four none = {0, 0, 0, 0}, before = {four[0], four[1], four[2], four[3]};
            const mfma_four sum = mfma_product(rows->of[s], q, begin ? none : before);
            four[0] = sum.x;
            four[1] = sum.y;
            four[2] = sum.z;
            four[3] = sum.w;
        }
    }
}

#else

#define MFMA_GLOBAL(type, pointer) ((const type *)(pointer))

DEVICE u32x4 mfma_load_words(const uint32_t *from, uint32_t at)
{
    return load_u32x4(from + at);
}

typedef float mfma_quad __attribute__((vector_size(16)));

DEVICE mfma_quad mfma_fma_quads(mfma_quad a, mfma_quad b, mfma_quad c)
{
    for (uint32_t r = 0; r < 4; r++)
        c[r] = fma_f32(a[r], b[r], c[r]);
    return c;
}

DEVICE bool mfma_any(const bool *predicates, const uint32_t count)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++)
        any = any || predicates[i];
    return wave_any(any);
}

DEVICE void mfma_store(uint32_t *to, u32x4 words)
{
    to[0] = words.x;
    to[1] = words.y;
    to[2] = words.z;
    to[3] = words.w;
}

typedef struct mfma_rows {
    const uint32_t *slab;
    uint32_t first;
} mfma_rows;

DEVICE mfma_rows mfma_load(const uint32_t *slab, uint32_t first)
{
    const mfma_rows rows = {slab, first};
    return rows;
}

DEVICE void mfma_multiply(const bool begin, const mfma_rows *rows, const uint32_t *columns, int32_t *sums)
{
    for (uint32_t i = 0; i < MFMA_SUMS; i++) {
        const uint32_t row = rows->first + mfma_row(i / (4 * MFMA_SIXTEENS)) + i % 4,
                       column = mfma_column(i / 4 % MFMA_SIXTEENS);
        int32_t sum = begin ? 0 : sums[i];
        for (uint32_t piece = 0; piece < 4; piece++)
            sum = dot16_i8(load_u32x4(rows->slab + screen_piece(row, piece)),
                           load_u32x4(AT_RANGE(columns, screen_piece(column, piece), 4)), sum);
        sums[i] = sum;
    }
}

#endif

DEVICE mfma_quad mfma_fma(float a, mfma_quad b, mfma_quad c)
{
    const mfma_quad all = {a, a, a, a};
    return mfma_fma_quads(all, b, c);
}

#endif
