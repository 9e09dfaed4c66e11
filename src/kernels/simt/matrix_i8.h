/* Tile products of bytes with the chip's matrix instructions.
 *
 * A wave owns as many columns as it has lanes, and takes rows in strips of 16. Each lane has 16 of a strip's sums: number
 * r * MATRIX_LANE_COLUMNS + c is in row matrix_strip_row(r) of the strip and column matrix_column(c) of the wave, which depend
 * on the chip. matrix_strip() multiplies 32 bytes of each row and column. matrix_strip_16() multiplies 16, laid out as
 * matrix_lines says. matrix_multiply() multiplies 64 bytes of 64 rows: then sum r * MATRIX_LANE_COLUMNS + c is in row
 * matrix_row(r), and the first half of all r are the first 32 rows.
 *
 * Rows and columns are in shared memory in slabs of 64 bytes of each, placed by screen_piece().
 *
 * NVIDIA from sm_80: mma.sync m16n8k32. AMD gfx908, gfx90a, gfx942: MFMA 16x16; gfx11 and gfx12: WMMA 16x16x16. All other
 * chips and the emulator: dot4_i8. The sums are exact integers, so the order of bytes does not matter, as long as it is the
 * same for rows and columns.
 */
#ifndef WW_KERNELS_SIMT_MATRIX_I8_H
#define WW_KERNELS_SIMT_MATRIX_I8_H

#include "kernels/simt/simt.h"

#include "arithmetic/screen.h"

enum { MATRIX_ROWS = 64, MATRIX_SUMS = 64, MATRIX_STRIP = 16 };

#define MATRIX_COLUMNS wave_size()

DEVICE u32x4 matrix_load(const uint32_t *slab, uint32_t row, uint32_t piece)
{
    return load_u32x4(AT_RANGE(slab, screen_piece(row, piece), 4));
}

/* Word w of the four words of line l is at index l * stride + w / 2 * half + w % 2. */
typedef struct matrix_lines {
    uint32_t stride, half;
} matrix_lines;

/* Loads all four words of a line. */
DEVICE u32x4 matrix_sixteen(const uint32_t *from, matrix_lines lie, uint32_t line)
{
#if defined(__NVPTX__)
    return load_u32x4(from + line * lie.stride);
#else
    const u32x2 low = load_u32x2_readonly(from + line * lie.stride),
                high = load_u32x2_readonly(from + line * lie.stride + lie.half);
    const u32x4 words = {low.x, low.y, high.x, high.y};
    return words;
#endif
}

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 800
/* ---- mma.sync: a lane has rows lane/4 + 8r, and two of each 8 columns ---------------------------------------------------- */

enum { MATRIX_LANE_COLUMNS = 8 };

DEVICE uint32_t matrix_strip_row(uint32_t r)
{
    return lane() / 4 + 8 * r;
}

DEVICE uint32_t matrix_column(uint32_t c)
{
    return lane() % 4 * 2 + c % 2 + c / 2 * 8;
}

/* Loads four blocks of 8 rows x 16 bytes. Lanes 8i to 8i + 7 pass the addresses of the rows of block i. */
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

/* Two sums of a row, and two of the row eight below. Input and output sums may be in different registers, so that a constant to
 * start from stays where it is. */
DEVICE void matrix_mma(int32_t *upper, int32_t *lower, u32x4 x, uint32_t q0, uint32_t q1)
{
    int32_t a, b, c, d;
    __asm__(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
        : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(q0), "r"(q1), "r"(upper[0]), "r"(upper[1]), "r"(lower[0]), "r"(lower[1]));
    upper[0] = a;
    upper[1] = b;
    lower[0] = c;
    lower[1] = d;
}

typedef struct matrix_columns {
    u32x4 of[2];
} matrix_columns;

DEVICE matrix_columns matrix_take(const uint32_t *slab, uint32_t first, uint32_t half)
{
    matrix_columns columns;
    UNROLL
    for (uint32_t i = 0; i < 2; i++)
        columns.of[i] =
            matrix_blocks(slab + screen_piece(first + i * 16 + lane() / 16 * 8 + lane() % 8, half * 2 + lane() / 8 % 2));
    return columns;
}

DEVICE void matrix_strip(const uint32_t *slab, uint32_t first, uint32_t half, const matrix_columns *columns, int32_t *sums)
{
    const u32x4 x = matrix_blocks(slab + screen_piece(first + lane() % 16, half * 2 + lane() / 16));
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        matrix_mma(sums + 4 * i, sums + 8 + 4 * i, x, columns->of[i].x, columns->of[i].y);
        matrix_mma(sums + 4 * i + 2, sums + 8 + 4 * i + 2, x, columns->of[i].z, columns->of[i].w);
    }
}

DEVICE void matrix_strip_16(const uint32_t *rows, const uint32_t *columns, matrix_lines lie, matrix_lines of_columns,
                            int32_t *sums)
{
    const uint32_t stride = lie.stride, at = lane() / 4 * stride + lane() % 4;
    (void)of_columns; /* the same */
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        int32_t *upper = sums + 2 * i, *lower = upper + 8;
        __asm__("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                : "+r"(upper[0]), "+r"(upper[1]), "+r"(lower[0]), "+r"(lower[1])
                : "r"(rows[at]), "r"(rows[at + 8 * stride]), "r"(columns[at + i * 8 * stride]));
    }
}

#elif defined(SIMT_MFMA)
/* ---- MFMA: each 16 lanes of a wave have 16 columns and four rows; sixteen i multiplies bytes 8i to 8i + 7 ---------------- */

#define MATRIX_BY_FOUR
#define MATRIX_FOUR_ROWS /* a lane's rows come in fours, side by side */

enum { MATRIX_LANE_COLUMNS = 4 };

typedef int32_t matrix_four __attribute__((ext_vector_type(4)));
typedef uint32_t matrix_two __attribute__((ext_vector_type(2)));

DEVICE uint32_t matrix_strip_row(uint32_t r)
{
    return lane() / 16 * 4 + r;
}

DEVICE uint32_t matrix_column(uint32_t c)
{
    return c * 16 + lane() % 16;
}

DEVICE matrix_two matrix_eight_bytes(const uint32_t *from)
{
    return *(const matrix_two *)from;
}

DEVICE matrix_two matrix_part(const uint32_t *slab, uint32_t line, uint32_t half)
{
    return matrix_eight_bytes(slab + screen_piece(line, half * 2 + lane() / 32) + lane() / 16 % 2 * 2);
}

DEVICE matrix_four matrix_mfma_four(matrix_two x, matrix_two q, matrix_four sum)
{
#if defined(SIMT_CDNA3)
    return __builtin_amdgcn_mfma_i32_16x16x32_i8((long)((uint64_t)x.y << 32 | x.x), (long)((uint64_t)q.y << 32 | q.x), sum, 0,
                                                 0, 0);
#else
    sum = __builtin_amdgcn_mfma_i32_16x16x16i8((int)x.x, (int)q.x, sum, 0, 0, 0);
    return __builtin_amdgcn_mfma_i32_16x16x16i8((int)x.y, (int)q.y, sum, 0, 0, 0);
#endif
}

DEVICE void matrix_mfma(matrix_two x, matrix_two q, int32_t *sums)
{
    matrix_four sum = {sums[0], sums[4], sums[8], sums[12]};
    sum = matrix_mfma_four(x, q, sum);
    sums[0] = sum.x;
    sums[4] = sum.y;
    sums[8] = sum.z;
    sums[12] = sum.w;
}

typedef struct matrix_columns {
    matrix_two of[4];
} matrix_columns;

DEVICE matrix_columns matrix_take(const uint32_t *slab, uint32_t first, uint32_t half)
{
    matrix_columns columns;
    UNROLL
    for (uint32_t j = 0; j < 4; j++)
        columns.of[j] = matrix_part(slab, first + j * 16 + lane() % 16, half);
    return columns;
}

DEVICE void matrix_strip(const uint32_t *slab, uint32_t first, uint32_t half, const matrix_columns *columns, int32_t *sums)
{
    const matrix_two x = matrix_part(slab, first + lane() % 16, half);
    UNROLL
    for (uint32_t j = 0; j < 4; j++)
        matrix_mfma(x, columns->of[j], sums + j);
}

/* A lane's part of 16 bytes of a line. Lanes 32 to 63 have nothing to multiply: they take zeros for rows. */
DEVICE matrix_two matrix_part_16(const uint32_t *from, matrix_lines lie, uint32_t line)
{
    return matrix_eight_bytes(from + line * lie.stride + lane() / 16 % 2 * lie.half);
}

DEVICE matrix_two matrix_row_part_16(const uint32_t *from, matrix_lines lie, uint32_t line)
{
    return matrix_part_16(from, lie, line) & (lane() < 32 ? UINT32_MAX : 0);
}

/* 64 bytes of a line for two products, of which each 16 lanes have 16 bytes. A lane reads its 16 bytes at once, because two
 * reads of eight would have bank conflicts. */
typedef struct matrix_pair {
    matrix_two of[2];
} matrix_pair;

DEVICE matrix_pair matrix_both(const uint32_t *slab, uint32_t line)
{
    simt_words v = *(const simt_words *)AT_RANGE(slab, screen_piece(line, lane() / 16), 4);
    __asm__("" : "+v"(v)); /* otherwise the compiler splits it into two reads */
    const matrix_pair both = {{{v.x, v.y}, {v.z, v.w}}};
    return both;
}

/* Both products: one instruction on gfx950. */
DEVICE matrix_four matrix_mfma_both(matrix_pair x, matrix_pair q, matrix_four sum)
{
#if defined(__gfx950__)
    return __builtin_amdgcn_mfma_i32_16x16x64_i8(__builtin_bit_cast(matrix_four, x), __builtin_bit_cast(matrix_four, q), sum, 0,
                                                 0, 0);
#else
    return matrix_mfma_four(x.of[1], q.of[1], matrix_mfma_four(x.of[0], q.of[0], sum));
#endif
}

#elif defined(SIMT_WMMA)
/* ---- WMMA: each 16 lanes of a wave have 16 columns and eight of 16 rows -------------------------------------------------- */

#if defined(__GFX12__)
#define MATRIX_FOUR_ROWS
#endif

enum { MATRIX_LANE_COLUMNS = 2 };

typedef int32_t matrix_eight __attribute__((ext_vector_type(8)));
typedef int32_t matrix_four __attribute__((ext_vector_type(4)));
typedef int32_t matrix_two __attribute__((ext_vector_type(2)));

DEVICE uint32_t matrix_strip_row(uint32_t r)
{
#if defined(__GFX11__)
    return r * 2 + lane() / 16;
#else
    return lane() / 16 * 8 + r;
#endif
}

DEVICE uint32_t matrix_column(uint32_t c)
{
    return c * 16 + lane() % 16;
}

/* gfx11 needs the same 16 bytes in both halves of a wave. gfx12 needs half of them in each, so the second half of the wave
 * loads the other piece of 32 bytes, and two instructions multiply both. */
#if defined(__GFX11__)
enum { MATRIX_PARTS = 2 };
#else
enum { MATRIX_PARTS = 1 };
#endif

DEVICE u32x4 matrix_part(const uint32_t *slab, uint32_t line, uint32_t half, uint32_t part)
{
    return matrix_load(slab, line, half * 2 + (MATRIX_PARTS == 2 ? part : lane() / 16));
}

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

DEVICE void matrix_wmma_sums(u32x4 x, u32x4 q, int32_t *sums)
{
    matrix_eight sum;
    UNROLL
    for (uint32_t k = 0; k < 8; k++)
        sum[k] = sums[k * 2];
    sum = matrix_wmma(x, q, sum);
    UNROLL
    for (uint32_t k = 0; k < 8; k++)
        sums[k * 2] = sum[k];
}

typedef struct matrix_columns {
    u32x4 of[2][MATRIX_PARTS];
} matrix_columns;

DEVICE matrix_columns matrix_take(const uint32_t *slab, uint32_t first, uint32_t half)
{
    matrix_columns columns;
    UNROLL
    for (uint32_t i = 0; i < 2 * MATRIX_PARTS; i++)
        columns.of[i % 2][i / 2] = matrix_part(slab, first + i % 2 * 16 + lane() % 16, half, i / 2);
    return columns;
}

DEVICE void matrix_strip(const uint32_t *slab, uint32_t first, uint32_t half, const matrix_columns *columns, int32_t *sums)
{
    UNROLL
    for (uint32_t part = 0; part < MATRIX_PARTS; part++) {
        const u32x4 x = matrix_part(slab, first + lane() % 16, half, part);
        UNROLL
        for (uint32_t j = 0; j < 2; j++)
            matrix_wmma_sums(x, columns->of[j][part], sums + j);
    }
}

/* On gfx12 the second half of the wave has nothing to multiply and takes zeros. */
DEVICE void matrix_strip_16(const uint32_t *rows, const uint32_t *columns, matrix_lines lie, matrix_lines of_columns,
                            int32_t *sums)
{
    const uint32_t mask = MATRIX_PARTS == 2 || lane() < 16 ? UINT32_MAX : 0;
    const u32x4 four = matrix_sixteen(rows, lie, lane() % 16), x = {four.x & mask, four.y & mask, four.z & mask, four.w & mask};
    UNROLL
    for (uint32_t j = 0; j < 2; j++)
        matrix_wmma_sums(x, matrix_sixteen(columns, of_columns, lane() % 16 + j * 16), sums + j);
}

#else
/* ---- dot4_i8: a lane has every eighth row -------------------------------------------------------------------------------- */

#define MATRIX_PLAIN

enum { MATRIX_LANE_COLUMNS = 8 };

DEVICE uint32_t matrix_strip_row(uint32_t r)
{
    return lane() / (wave_size() / 8) + 8 * r;
}

DEVICE uint32_t matrix_column(uint32_t c)
{
    return lane() % (wave_size() / 8) + wave_size() / 8 * c;
}

/* Their address only: registers have no room for all of them. */
typedef struct matrix_columns {
    const uint32_t *slab;
    uint32_t first, half;
} matrix_columns;

DEVICE matrix_columns matrix_take(const uint32_t *slab, uint32_t first, uint32_t half)
{
    const matrix_columns columns = {slab, first, half};
    return columns;
}

/* Without a dot4 instruction, four bytes of a row are unpacked once for all columns. More than one word at a time would not fit
 * in registers beside the sums. */
#if defined(SIMT_DOT4_IS_LONG)
enum { MATRIX_AT_ONCE = 1 };
typedef uint32_t matrix_words;
#define MATRIX_WORDS(from, at) AT(from, at)
#define MATRIX_SIXTEEN(from, lie, line, at)                                                                                    \
    AT(from, (line) * (lie).stride + (at) / 2 * (lie).half + (at) % 2) /* word `at` of the line */
#define MATRIX_DOT dot4_i8
#else
enum { MATRIX_AT_ONCE = 4 };
typedef u32x4 matrix_words;
#define MATRIX_WORDS(from, at)              load_u32x4(AT_RANGE(from, at, 4))
#define MATRIX_SIXTEEN(from, lie, line, at) matrix_sixteen(from, lie, line)
#define MATRIX_DOT                          dot16_i8
#endif

/* Not unrolled: the loads of all iterations together would need all registers. */
DEVICE void matrix_strip(const uint32_t *slab, uint32_t first, uint32_t half, const matrix_columns *columns, int32_t *sums)
{
    UNROLL_BY(1)
    for (uint32_t word = 0; word < 8; word += MATRIX_AT_ONCE) {
        const uint32_t piece = word / 4, at = word % 4;
        const matrix_words upper = MATRIX_WORDS(slab, screen_piece(first + matrix_strip_row(0), half * 2 + piece) + at);
        const matrix_words lower = MATRIX_WORDS(slab, screen_piece(first + matrix_strip_row(1), half * 2 + piece) + at);
        UNROLL
        for (uint32_t c = 0; c < 8; c++) {
            const uint32_t line = columns->first + matrix_column(c);
            const matrix_words q = MATRIX_WORDS(columns->slab, screen_piece(line, columns->half * 2 + piece) + at);
            sums[c] = MATRIX_DOT(upper, q, sums[c]);
            sums[8 + c] = MATRIX_DOT(lower, q, sums[8 + c]);
        }
    }
}

DEVICE void matrix_strip_16(const uint32_t *rows, const uint32_t *columns, matrix_lines lie, matrix_lines of_columns,
                            int32_t *sums)
{
    UNROLL_BY(1)
    for (uint32_t at = 0; at < 4; at += MATRIX_AT_ONCE) {
        const matrix_words upper = MATRIX_SIXTEEN(rows, lie, matrix_strip_row(0), at);
        const matrix_words lower = MATRIX_SIXTEEN(rows, lie, matrix_strip_row(1), at);
        UNROLL
        for (uint32_t c = 0; c < 8; c++) {
            const matrix_words q = MATRIX_SIXTEEN(columns, of_columns, matrix_column(c), at);
            sums[c] = MATRIX_DOT(upper, q, sums[c]);
            sums[8 + c] = MATRIX_DOT(lower, q, sums[8 + c]);
        }
    }
}

#endif

/* ---- 64 rows ------------------------------------------------------------------------------------------------------------- */

enum { MATRIX_STRIP_ROWS = 16 / MATRIX_LANE_COLUMNS, MATRIX_LANE_ROWS = 64 / MATRIX_LANE_COLUMNS };

DEVICE uint32_t matrix_row(uint32_t r)
{
    return r / MATRIX_STRIP_ROWS * MATRIX_STRIP + matrix_strip_row(r % MATRIX_STRIP_ROWS);
}

#if defined(MATRIX_PLAIN)

/* Reads rows once for all columns, not strip by strip. */
DEVICE void matrix_multiply(const uint32_t *rows, uint32_t first_row, const uint32_t *queries, uint32_t first_query,
                            int32_t *sums)
{
    UNROLL_BY(1)
    for (uint32_t word = 0; word < 16; word += MATRIX_AT_ONCE) {
        matrix_words x[8];
        UNROLL
        for (uint32_t r = 0; r < 8; r++)
            x[r] = MATRIX_WORDS(rows, screen_piece(first_row + matrix_row(r), word / 4) + word % 4);
        UNROLL
        for (uint32_t c = 0; c < 8; c++) {
            const matrix_words q = MATRIX_WORDS(queries, screen_piece(first_query + matrix_column(c), word / 4) + word % 4);
            UNROLL
            for (uint32_t r = 0; r < 8; r++)
                sums[r * 8 + c] = MATRIX_DOT(x[r], q, sums[r * 8 + c]);
        }
    }
}

#else

/* Unrolled, AMD's compiler would hoist the loads of both halves and need too many registers for two waves. */
#if defined(__NVPTX__)
#define MATRIX_HALVES UNROLL
#else
#define MATRIX_HALVES UNROLL_BY(1)
#endif

DEVICE void matrix_multiply(const uint32_t *rows, uint32_t first_row, const uint32_t *queries, uint32_t first_query,
                            int32_t *sums)
{
    MATRIX_HALVES
    for (uint32_t half = 0; half < 2; half++) {
        const matrix_columns columns = matrix_take(queries, first_query, half);
        UNROLL
        for (uint32_t strip = 0; strip < MATRIX_ROWS / MATRIX_STRIP; strip++)
            matrix_strip(rows, first_row + strip * MATRIX_STRIP, half, &columns, sums + strip * 16);
    }
}

#endif

/* Whether any lane of the wave has work for some of its sums. Always true on chips where needless work costs less than the
 * branch. */
#if defined(__NVPTX__)
#define MATRIX_ANY(predicate) true
#else
#define MATRIX_ANY(predicate) wave_any(predicate)
#endif

#endif
