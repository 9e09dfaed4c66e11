/* Products of bytes for tiles of quantized matrices: 32 rows x 16 columns x 32 bytes by a team of 32 threads.
 *
 * A thread has 32 results of its team's 32 x 32, number r * 8 + n * 2 + e in row r * 8 + thread / 4 and column n * 8 +
 * thread % 4 * 2 + e; a multiplication makes 16 of them, of two neighbouring n. Rows and columns lie in shared memory by 64
 * bytes, four pieces of 16 each, in an order that spreads them over the banks.
 *
 * NVIDIA from sm_80: mma.sync m16n8k32 and m16n8k16. All others, and the emulator, by dot4_i8.
 */
#ifndef WW_KERNELS_QUANT_TILE_H
#define WW_KERNELS_QUANT_TILE_H

#include "kernels/simt.h"

#include "kernels/blocks.h"
#include "kernels/quant.h"

DEVICE uint32_t tile_row(uint32_t thread, uint32_t i)
{
    return i / 8 * 8 + thread / 4;
}

DEVICE uint32_t tile_column(uint32_t thread, uint32_t i)
{
    return i % 8 / 2 * 8 + thread % 4 * 2 + i % 2;
}

/* Where piece `piece` of a line is, in words. */
DEVICE uint32_t tile_piece(uint32_t line, uint32_t piece)
{
    return line * 16 + (piece ^ (line >> 1 & 3)) * 4;
}

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 800

/* 32 bytes of 32 rows. */
typedef struct tile_words {
    u32x4 of[2];
} tile_words;

/* Four blocks of 8 lines x 16 bytes; threads 8i.. of the team say where block i has its lines. */
DEVICE u32x4 tile_load(const uint32_t *from)
{
    u32x4 value;
    const uint32_t shared = (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) uint32_t *)from;
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "r"(shared)
                     : "memory");
    return value;
}

DEVICE tile_words tile_take_rows(const uint32_t *lines, uint32_t first, uint32_t half, uint32_t thread)
{
    tile_words rows;
    UNROLL
    for (uint32_t t = 0; t < 2; t++)
        rows.of[t] = tile_load(lines + tile_piece(first + t * 16 + thread % 16, half * 2 + thread / 16));
    return rows;
}

typedef u32x4 tile_words_columns;

DEVICE tile_words_columns tile_take_columns(const uint32_t *lines, uint32_t first, uint32_t half, uint32_t thread)
{
    return tile_load(lines + tile_piece(first + thread / 16 * 8 + thread % 8, half * 2 + thread / 8 % 2));
}

/* 16 rows x 8 columns: two results in row thread / 4, two eight rows below. */
DEVICE void tile_mma_32(int32_t *upper, int32_t *lower, u32x4 a, uint32_t b0, uint32_t b1)
{
    __asm__("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+r"(upper[0]), "+r"(upper[1]), "+r"(lower[0]), "+r"(lower[1])
            : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

DEVICE void tile_mma_16(int32_t *upper, int32_t *lower, uint32_t a0, uint32_t a1, uint32_t b)
{
    __asm__("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+r"(upper[0]), "+r"(upper[1]), "+r"(lower[0]), "+r"(lower[1])
            : "r"(a0), "r"(a1), "r"(b));
}

DEVICE void tile_multiply_32(tile_words rows, tile_words_columns columns, int32_t *sums)
{
    UNROLL
    for (uint32_t t = 0; t < 2; t++) {
        tile_mma_32(sums + t * 8, sums + t * 8 + 4, rows.of[t], columns.x, columns.y);
        tile_mma_32(sums + t * 8 + 2, sums + t * 8 + 6, rows.of[t], columns.z, columns.w);
    }
}

DEVICE void tile_multiply_16(tile_words rows, tile_words_columns columns, uint32_t run, int32_t *sums)
{
    UNROLL
    for (uint32_t t = 0; t < 2; t++) {
        const u32x4 a = rows.of[t];
        const uint32_t a0 = run ? a.z : a.x, a1 = run ? a.w : a.y;
        tile_mma_16(sums + t * 8, sums + t * 8 + 4, a0, a1, run ? columns.y : columns.x);
        tile_mma_16(sums + t * 8 + 2, sums + t * 8 + 6, a0, a1, run ? columns.w : columns.z);
    }
}

DEVICE void tile_multiply_records(const uint32_t *records, uint32_t row, uint32_t column, uint32_t thread, int32_t *low,
                                  int32_t *high)
{
    const uint32_t line = thread / 4, word = thread % 4;
    UNROLL
    for (uint32_t n = 0; n < 2; n++) {
        const uint32_t *b = records + (column + n * 8 + line) * QUANT_RECORD + word;
        UNROLL
        for (uint32_t t = 0; t < 2; t++) {
            const uint32_t *a = records + (row + t * 16 + line) * QUANT_RECORD + 4 + word;
            const uint32_t upper = t * 8 + n * 2, lower = upper + 4;
            tile_mma_16(low + upper, low + lower, a[0], a[8 * QUANT_RECORD], b[0]);
            tile_mma_16(high + upper, high + lower, a[0], a[8 * QUANT_RECORD], b[4]);
        }
    }
}

#else

/* Where the lines are; the words are taken when they are wanted. */
typedef struct tile_words {
    const uint32_t *lines;
    uint32_t first, half;
} tile_words;

typedef struct tile_words_columns {
    const uint32_t *lines;
    uint32_t first, half;
} tile_words_columns;

DEVICE tile_words tile_take_rows(const uint32_t *lines, uint32_t first, uint32_t half, uint32_t thread)
{
    const tile_words rows = {lines, first + thread / 4, half};
    return rows;
}

DEVICE tile_words_columns tile_take_columns(const uint32_t *lines, uint32_t first, uint32_t half, uint32_t thread)
{
    const tile_words_columns columns = {lines, first + thread % 4 * 2, half};
    return columns;
}

/* 16 bytes of four rows and four columns. */
DEVICE void tile_multiply_16(tile_words rows, tile_words_columns columns, uint32_t run, int32_t *sums)
{
    const uint32_t piece = rows.half * 2 + run;
    u32x4 a[4];
    UNROLL
    for (uint32_t r = 0; r < 4; r++)
        a[r] = load_u32x4(AT_RANGE(rows.lines, tile_piece(rows.first + r * 8, piece), 4));
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const u32x4 b = load_u32x4(AT_RANGE(columns.lines, tile_piece(columns.first + tile_column(0, i), piece), 4));
        UNROLL
        for (uint32_t r = 0; r < 4; r++)
            sums[r * 4 + i] = dot16_i8(a[r], b, sums[r * 4 + i]);
    }
}

DEVICE void tile_multiply_32(tile_words rows, tile_words_columns columns, int32_t *sums)
{
    tile_multiply_16(rows, columns, 0, sums);
    tile_multiply_16(rows, columns, 1, sums);
}

/* Minima of rows by the low and the high bytes of the sums of columns. */
DEVICE void tile_multiply_records(const uint32_t *records, uint32_t row, uint32_t column, uint32_t thread, int32_t *low,
                                  int32_t *high)
{
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t *b = AT_RANGE(records, (column + tile_column(thread, i)) * QUANT_RECORD, 8);
        UNROLL
        for (uint32_t r = 0; r < 4; r++) {
            const u32x4 a = load_u32x4(AT_RANGE(records, (row + r * 8 + thread / 4) * QUANT_RECORD + 4, 4));
            low[r * 4 + i] = dot16_i8(a, load_u32x4(b), low[r * 4 + i]);
            high[r * 4 + i] = dot16_i8(a, load_u32x4(b + 4), high[r * 4 + i]);
        }
    }
}

#endif

#endif
