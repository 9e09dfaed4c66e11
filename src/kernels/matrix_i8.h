/* Products of bytes by tiles: one function, matrix_multiply(), over whatever the chip has for it.
 *
 * A wave owns 64 rows x MATRIX_COLUMNS queries, as many as it has lanes, and each lane 64 of the sums: MATRIX_LANE_ROWS x
 * MATRIX_LANE_COLUMNS, which ones is the chip's own affair: sum number r * MATRIX_LANE_COLUMNS + c belongs to row
 * matrix_row(r) and query matrix_column(c) of the wave's tile. Rows of a lane with r in the first half are among the first 32.
 *
 * Rows and queries lie in shared memory in slabs of 64 bytes of each, as screen_piece() has them.
 *
 * NVIDIA from sm_80: mma.sync m16n8k32. AMD gfx908, gfx90a, gfx942: MFMA 16x16; gfx11 and gfx12: WMMA 16x16x16. The sums are
 * exact integers, so it does not matter which bytes meet in which instruction, as long as the same of both sides do. All
 * others, and the emulator: dot4_i8.
 */
#ifndef WW_KERNELS_MATRIX_I8_H
#define WW_KERNELS_MATRIX_I8_H

#include "kernels/simt.h"

#include "kernels/screen.h"

enum { MATRIX_ROWS = 64, MATRIX_SUMS = 64 };

#define MATRIX_COLUMNS wave_size()

DEVICE u32x4 matrix_load(const uint32_t *slab, uint32_t row, uint32_t piece)
{
    return load_u32x4(AT_RANGE(slab, screen_piece(row, piece), 4));
}

/* ---- by dot4_i8: lanes stand 8 deep, each has every eighth row -------------------------------------------------------------
 */

DEVICE uint32_t matrix_plain_row(uint32_t r)
{
    return lane() / (wave_size() / 8) + 8 * r;
}

DEVICE uint32_t matrix_plain_column(uint32_t c)
{
    return lane() % (wave_size() / 8) + wave_size() / 8 * c;
}

#if defined(SIMT_DOT4_IS_LONG)
/* Four bytes of each row at a time: they are taken apart once for all queries, and more of them would not fit in registers
 * beside the sums. */
DEVICE void matrix_plain_multiply(const uint32_t *rows, uint32_t first_row, const uint32_t *queries, uint32_t first_query,
                                  int32_t *sums)
{
    UNROLL_BY(1)
    for (uint32_t word = 0; word < 16; word++) {
        uint32_t x[8];
        UNROLL
        for (uint32_t r = 0; r < 8; r++)
            x[r] = AT(rows, screen_piece(first_row + matrix_plain_row(r), word / 4) + word % 4);
        UNROLL
        for (uint32_t c = 0; c < 8; c++) {
            const uint32_t q = AT(queries, screen_piece(first_query + matrix_plain_column(c), word / 4) + word % 4);
            UNROLL
            for (uint32_t r = 0; r < 8; r++)
                sums[r * 8 + c] = dot4_i8(x[r], q, sums[r * 8 + c]);
        }
    }
}
#else
DEVICE void matrix_plain_multiply(const uint32_t *rows, uint32_t first_row, const uint32_t *queries, uint32_t first_query,
                                  int32_t *sums)
{
    UNROLL_BY(1)
    for (uint32_t piece = 0; piece < 4; piece++) {
        u32x4 x[8];
        UNROLL
        for (uint32_t r = 0; r < 8; r++)
            x[r] = matrix_load(rows, first_row + matrix_plain_row(r), piece);
        UNROLL
        for (uint32_t c = 0; c < 8; c++) {
            const u32x4 q = matrix_load(queries, first_query + matrix_plain_column(c), piece);
            UNROLL
            for (uint32_t r = 0; r < 8; r++)
                sums[r * 8 + c] = dot16_i8(x[r], q, sums[r * 8 + c]);
        }
    }
}
#endif

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 800
/* ---- mma.sync: a lane has rows lane/4 + 8r, and of each 8 queries two ------------------------------------------------------
 */

enum { MATRIX_LANE_ROWS = 8, MATRIX_LANE_COLUMNS = 8 };

DEVICE uint32_t matrix_row(uint32_t r)
{
    return lane() / 4 + 8 * r;
}

DEVICE uint32_t matrix_column(uint32_t c)
{
    return lane() % 4 * 2 + c % 2 + c / 2 * 8;
}

/* Four blocks of 8 rows x 16 bytes; lanes 8i.. say where block i has its rows. */
DEVICE u32x4 matrix_blocks(const uint32_t *from)
{
    u32x4 value;
    const uint32_t shared = (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) uint32_t *)from;
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "r"(shared)
                     : "memory");
    return value;
}

DEVICE void matrix_mma(int32_t *upper, int32_t *lower, u32x4 x, uint32_t q0, uint32_t q1)
{
    __asm__("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+r"(upper[0]), "+r"(upper[1]), "+r"(lower[0]), "+r"(lower[1])
            : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(q0), "r"(q1));
}

DEVICE void matrix_multiply(const uint32_t *rows, uint32_t first_row, const uint32_t *queries, uint32_t first_query,
                            int32_t *sums)
{
    UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        u32x4 x[4], q[2];
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            x[i] = matrix_blocks(rows + screen_piece(first_row + i * 16 + lane() % 16, half * 2 + lane() / 16));
        UNROLL
        for (uint32_t i = 0; i < 2; i++)
            q[i] = matrix_blocks(queries +
                                 screen_piece(first_query + i * 16 + lane() / 16 * 8 + lane() % 8, half * 2 + lane() / 8 % 2));
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            UNROLL
        for (uint32_t j = 0; j < 2; j++) {
            int32_t *upper = sums + (2 * i) * 8 + 4 * j, *lower = upper + 8;
            matrix_mma(upper, lower, x[i], q[j].x, q[j].y);
            matrix_mma(upper + 2, lower + 2, x[i], q[j].z, q[j].w);
        }
    }
}

#elif defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__)
/* ---- MFMA: 16 lanes have 16 queries, the four sixteens of a wave four rows each; lanes of sixteen i multiply piece i --------
 */

enum { MATRIX_LANE_ROWS = 16, MATRIX_LANE_COLUMNS = 4 };

typedef int32_t matrix_four __attribute__((ext_vector_type(4)));

DEVICE uint32_t matrix_row(uint32_t r)
{
    return r / 4 * 16 + lane() / 16 * 4 + r % 4;
}

DEVICE uint32_t matrix_column(uint32_t c)
{
    return c * 16 + lane() % 16;
}

DEVICE matrix_four matrix_mfma(u32x4 x, u32x4 q, matrix_four sum)
{
#if defined(__gfx942__)
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

DEVICE void matrix_multiply(const uint32_t *rows, uint32_t first_row, const uint32_t *queries, uint32_t first_query,
                            int32_t *sums)
{
    u32x4 q[4];
    UNROLL
    for (uint32_t j = 0; j < 4; j++)
        q[j] = matrix_load(queries, first_query + j * 16 + lane() % 16, lane() / 16);
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const u32x4 x = matrix_load(rows, first_row + i * 16 + lane() % 16, lane() / 16);
        UNROLL
        for (uint32_t j = 0; j < 4; j++) {
            int32_t *at = sums + i * 16 + j;
            const matrix_four before = {at[0], at[4], at[8], at[12]};
            const matrix_four sum = matrix_mfma(x, q[j], before);
            at[0] = sum.x;
            at[4] = sum.y;
            at[8] = sum.z;
            at[12] = sum.w;
        }
    }
}

#elif defined(__GFX11__) || defined(__GFX12__)
/* ---- WMMA: 16 lanes have 16 queries, the two sixteens of a wave eight rows of 16 each ---------------------------------------
 */

enum { MATRIX_LANE_ROWS = 32, MATRIX_LANE_COLUMNS = 2 };

typedef int32_t matrix_eight __attribute__((ext_vector_type(8)));
typedef int32_t matrix_four __attribute__((ext_vector_type(4)));
typedef int32_t matrix_two __attribute__((ext_vector_type(2)));

DEVICE uint32_t matrix_row(uint32_t r)
{
#if defined(__GFX11__)
    return r / 8 * 16 + r % 8 * 2 + lane() / 16;
#else
    return r / 8 * 16 + lane() / 16 * 8 + r % 8;
#endif
}

DEVICE uint32_t matrix_column(uint32_t c)
{
    return c * 16 + lane() % 16;
}

/* gfx11 wants a whole piece in both sixteens; gfx12 half of the bytes in each, so that the second takes the next piece and
 * two instructions do both. */
DEVICE matrix_eight matrix_wmma(u32x4 x, u32x4 q, matrix_eight sum)
{
#if defined(__GFX11__)
    const matrix_four a = {(int)x.x, (int)x.y, (int)x.z, (int)x.w}, b = {(int)q.x, (int)q.y, (int)q.z, (int)q.w};
    return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, a, true, b, sum, false);
#else
    const matrix_two a = {(int)x.x, (int)x.y}, b = {(int)q.x, (int)q.y}, c = {(int)x.z, (int)x.w}, d = {(int)q.z, (int)q.w};
    sum = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, a, true, b, sum, false);
    return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, c, true, d, sum, false);
#endif
}

DEVICE void matrix_multiply(const uint32_t *rows, uint32_t first_row, const uint32_t *queries, uint32_t first_query,
                            int32_t *sums)
{
#if defined(__GFX11__)
    const uint32_t together = 1, behind = 0;
#else
    const uint32_t together = 2, behind = lane() / 16;
#endif
    UNROLL
    for (uint32_t piece = 0; piece < 4; piece += together)
        UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const u32x4 x = matrix_load(rows, first_row + i * 16 + lane() % 16, piece + behind);
        UNROLL
        for (uint32_t j = 0; j < 2; j++) {
            const u32x4 q = matrix_load(queries, first_query + j * 16 + lane() % 16, piece + behind);
            matrix_eight sum;
            UNROLL
            for (uint32_t k = 0; k < 8; k++)
                sum[k] = sums[(i * 8 + k) * 2 + j];
            sum = matrix_wmma(x, q, sum);
            UNROLL
            for (uint32_t k = 0; k < 8; k++)
                sums[(i * 8 + k) * 2 + j] = sum[k];
        }
    }
}

#else

enum { MATRIX_LANE_ROWS = 8, MATRIX_LANE_COLUMNS = 8 };

#define matrix_row      matrix_plain_row
#define matrix_column   matrix_plain_column
#define matrix_multiply matrix_plain_multiply

#endif

#endif
