/* Tile products of f16, bf16 or f32, in slabs of 64 bytes of k: fast_multiply() with the chip's matrix instructions.
 *
 * A wave owns 64 rows x as many columns as it has lanes, and each lane has 64 of the f32 sums. Sum fast_sum(r, c) belongs to
 * row fast_row(r) and column fast_column(c) of the wave's tile, with r below FAST_LANE_ROWS and c below FAST_LANE_COLUMNS. Rows
 * and columns are in shared memory, 16 words of k each. fast_piece() swizzles their four pieces of 16 bytes so that the same
 * piece of eight neighbours is in different banks. The caller chooses which columns in shared memory are the wave's: each lane
 * passes the places of FAST_PLACES of them, place i for column fast_place_column(i) of the wave's tile. A slab takes FAST_PARTS
 * calls.
 *
 * NVIDIA from sm_80: mma.sync, 32 bytes of k at a time; fast_round() first rounds f32 to TF32. AMD: MFMA 16x16 on gfx908,
 * gfx90a and gfx942, WMMA 16x16x16 on gfx11 and gfx12 (matrix_f16_amd.h). All other chips and the emulator: dot2_f16() for
 * f16, and one fma after the other for bf16 and f32. FAST_BY_DOT2 compiles this last form for chips with matrix units, too,
 * because tests can execute only the code of these chips (tests/codeobjects).
 *
 * A caller that may choose which row or column of a matrix is at which place in shared memory puts line fast_line(p) at place
 * p; fast_place() is the inverse. Then one lane has FAST_ADJACENT neighbours of a row of results. Of 32 neighbouring lines, the
 * first of every four are at eight adjacent places, and so are the second, third and fourth.
 */
#ifndef WW_KERNELS_SIMT_MATRIX_F16_H
#define WW_KERNELS_SIMT_MATRIX_F16_H

#include "kernels/simt/simt.h"

#include "arithmetic/convert.h"

enum { FAST_ROWS = 64, FAST_SUMS = 64, FAST_WORDS = 16 };

DEVICE uint32_t fast_piece(uint32_t row, uint32_t piece)
{
    return row * FAST_WORDS + (piece ^ (row >> 1 & 3)) * 4;
}

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 800

enum { FAST_PLACES = 2, FAST_PARTS = 2, FAST_LANE_COLUMNS = 8, FAST_ADJACENT = 2 };

DEVICE uint32_t fast_place_column(uint32_t i)
{
    return i * 16 + lane() / 16 * 8 + lane() % 8;
}

DEVICE uint32_t fast_row(uint32_t r)
{
    return lane() / 4 + 8 * r;
}

DEVICE uint32_t fast_column(uint32_t c)
{
    return lane() % 4 * 2 + c % 2 + c / 2 * 8;
}

/* To the nearest TF32. */
DEVICE uint32_t fast_round(uint32_t bits)
{
    uint32_t rounded;
    __asm__("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(canon_bits_float(bits)));
    return rounded;
}

/* Loads four blocks of 8 rows x 16 bytes. Lanes 8i to 8i + 7 pass the addresses of the rows of block i. */
DEVICE u32x4 fast_blocks(const uint32_t *from)
{
    u32x4 value;
    const uint32_t shared = (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) uint32_t *)from;
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "r"(shared)
                     : "memory");
    return value;
}

#define FAST_MMA(shape)                                                                                                        \
    __asm__("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                       \
            : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])                                                   \
            : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(q0), "r"(q1))

DEVICE void fast_mma(int32_t type, float *upper, float *lower, u32x4 x, uint32_t q0, uint32_t q1)
{
    if (type == TYPE_F16)
        FAST_MMA("m16n8k16.row.col.f32.f16.f16.f32");
    else if (type == TYPE_BF16)
        FAST_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
    else
        FAST_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
}

/* Multiplies half of a slab, 32 bytes of k. `rows` are the 64 rows of the tile. */
DEVICE void fast_multiply(int32_t type, const uint32_t *rows, const uint32_t *columns, const uint32_t *places, uint32_t half,
                          float *sums)
{
    u32x4 x[4], q[2];
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        x[i] = fast_blocks(rows + fast_piece(i * 16 + lane() % 16, half * 2 + lane() / 16));
    UNROLL
    for (uint32_t i = 0; i < 2; i++)
        q[i] = fast_blocks(columns + fast_piece(places[i], half * 2 + lane() / 8 % 2));
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        UNROLL
        for (uint32_t j = 0; j < 2; j++) {
            float *upper = sums + (2 * i) * 8 + 4 * j, *lower = upper + 8;
            fast_mma(type, upper, lower, x[i], q[j].x, q[j].y);
            fast_mma(type, upper + 2, lower + 2, x[i], q[j].z, q[j].w);
        }
    }
}

#elif !defined(FAST_BY_DOT2) && (defined(SIMT_MFMA) || defined(SIMT_WMMA))

#include "kernels/simt/matrix_f16_amd.h"

#else /* a lane has every eighth row and multiplies a piece of 16 bytes at a time */

enum { FAST_PLACES = 8, FAST_PARTS = 2, FAST_LANE_COLUMNS = 8, FAST_ADJACENT = 4 };

DEVICE uint32_t fast_row(uint32_t r)
{
    return lane() / (wave_size() / 8) + 8 * r;
}

DEVICE uint32_t fast_column(uint32_t c)
{
    return lane() % (wave_size() / 8) + wave_size() / 8 * (c / 4) + wave_size() / 4 * (c % 4);
}

DEVICE uint32_t fast_place_column(uint32_t i)
{
    return fast_column(i);
}

DEVICE uint32_t fast_round(uint32_t bits)
{
    return bits;
}

/* Adds two products of f16 to an f32 sum. The number of roundings depends on the chip. */
DEVICE float dot2_f16(uint32_t a, uint32_t b, float sum)
{
#if defined(SIMT_DOT2_F16)
    return SIMT_DOT2_F16(a, b, sum);
#else
    return fma_f32(widen_f16((uint16_t)(a >> 16)), widen_f16((uint16_t)(b >> 16)),
                   fma_f32(widen_f16((uint16_t)a), widen_f16((uint16_t)b), sum));
#endif
}

DEVICE float fast_dot(int32_t type, uint32_t a, uint32_t b, float sum)
{
    if (type == TYPE_F32)
        return fma_f32(canon_bits_float(a), canon_bits_float(b), sum);
    if (type == TYPE_F16)
        return dot2_f16(a, b, sum);
    return fma_f32(widen_bf16((uint16_t)(a >> 16)), widen_bf16((uint16_t)(b >> 16)),
                   fma_f32(widen_bf16((uint16_t)a), widen_bf16((uint16_t)b), sum));
}

/* Multiplies one piece of 16 bytes of each row and column. */
DEVICE void fast_multiply_piece(int32_t type, const uint32_t *rows, const uint32_t *columns, const uint32_t *places,
                                uint32_t piece, float *sums)
{
    u32x4 x[8];
    UNROLL
    for (uint32_t r = 0; r < 8; r++)
        x[r] = load_u32x4(AT_RANGE(rows, fast_piece(fast_row(r), piece), 4));
    UNROLL
    for (uint32_t c = 0; c < 8; c++) {
        const u32x4 q = load_u32x4(AT_RANGE(columns, fast_piece(places[c], piece), 4));
        UNROLL
        for (uint32_t r = 0; r < 8; r++)
            sums[r * 8 + c] = fast_dot(type, x[r].x, q.x, sums[r * 8 + c]);
        UNROLL
        for (uint32_t r = 0; r < 8; r++)
            sums[r * 8 + c] = fast_dot(type, x[r].y, q.y, sums[r * 8 + c]);
        UNROLL
        for (uint32_t r = 0; r < 8; r++)
            sums[r * 8 + c] = fast_dot(type, x[r].z, q.z, sums[r * 8 + c]);
        UNROLL
        for (uint32_t r = 0; r < 8; r++)
            sums[r * 8 + c] = fast_dot(type, x[r].w, q.w, sums[r * 8 + c]);
    }
}

DEVICE void fast_multiply(int32_t type, const uint32_t *rows, const uint32_t *columns, const uint32_t *places, uint32_t half,
                          float *sums)
{
    fast_multiply_piece(type, rows, columns, places, half * 2, sums);
    fast_multiply_piece(type, rows, columns, places, half * 2 + 1, sums);
}

#endif

enum { FAST_LANE_ROWS = FAST_SUMS / FAST_LANE_COLUMNS };

#if !defined(FAST_OWN_ORDER)

DEVICE uint32_t fast_sum(uint32_t r, uint32_t c)
{
    return r * 8 + c;
}

DEVICE uint32_t fast_line(uint32_t place)
{
    const uint32_t lanes = wave_size();
    return place / lanes * lanes + place % (lanes / 4) * 4 + place / (lanes / 4) % 4;
}

DEVICE uint32_t fast_place(uint32_t line)
{
    const uint32_t lanes = wave_size();
    return line / lanes * lanes + line % lanes / 4 + line % 4 * (lanes / 4);
}

/* Combines element 0 or 1 of two words into one. Each word has two elements of 16 bits. */
DEVICE uint32_t fast_pair(uint32_t low, uint32_t high, uint32_t element)
{
    return element == 0 ? (low & 0xffffu) | high << 16 : low >> 16 | (high & 0xffff0000u);
}

/* The tile of a block, of `count` tiles. */
DEVICE uint32_t fast_tile(uint32_t block, uint32_t count)
{
    (void)count;
    return block;
}

#endif

#endif
