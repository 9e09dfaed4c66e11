/* Products of f16, bf16 or f32 by tiles, in slabs of 64 bytes of k: fast_multiply() over what the chip has for it.
 *
 * A wave owns 64 rows x as many columns as it has lanes, and each lane 64 of the sums, which are f32, FAST_LANE_ROWS x
 * FAST_LANE_COLUMNS: number r * FAST_LANE_COLUMNS + c belongs to row fast_row(r) and column fast_column(c) of the wave's tile.
 * Rows and columns lie in shared memory with k along them, 16 words each, the four pieces of 16 bytes placed by fast_piece() so
 * that eight neighbours' same pieces lie in different banks. Which of the columns in shared memory the wave's are is up to the
 * caller: a lane says it of FAST_PLACES of them, number i being column fast_place_column(i) of the wave's tile.
 *
 * NVIDIA from sm_80: mma.sync, 32 bytes of k at a time; f32 is rounded to TF32 by fast_round() before. AMD's CDNA: MFMA; RDNA 3
 * and 4: WMMA; both for f16 and bf16. All others, and the emulator: one fma after the other.
 */
#ifndef WW_KERNELS_SIMT_MATRIX_F16_H
#define WW_KERNELS_SIMT_MATRIX_F16_H

#include "kernels/simt/simt.h"

#include "arithmetic/convert.h"

enum { FAST_ROWS = 64, FAST_SUMS = 64, FAST_WORDS = 16 };

/* How a loop over the halves is unrolled: RDNA's compiler takes the loads of both together, and more registers than there are;
 * elsewhere sums may be chosen by the half. */
#if defined(__GFX11__) || defined(__GFX12__)
#define FAST_HALVES UNROLL_BY(1)
#else
#define FAST_HALVES UNROLL
#endif

DEVICE uint32_t fast_piece(uint32_t row, uint32_t piece)
{
    return row * FAST_WORDS + (piece ^ (row >> 1 & 3)) * 4;
}

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 800

enum { FAST_PLACES = 2, FAST_LANE_ROWS = 8, FAST_LANE_COLUMNS = 8 };

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

/* Four blocks of 8 rows x 16 bytes; lanes 8i.. say where block i has its rows. */
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

/* Half of a slab, 32 bytes of k: `rows` are the tile's 64. */
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

#elif defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__)
/* ---- MFMA: 16 lanes have 16 columns, the four sixteens of a wave four rows of 16 each -------------------------------------
 */

enum { FAST_PLACES = 4, FAST_LANE_ROWS = 16, FAST_LANE_COLUMNS = 4 };

typedef float fast_four __attribute__((ext_vector_type(4)));
typedef _Float16 fast_halves __attribute__((ext_vector_type(4)));
typedef short fast_shorts __attribute__((ext_vector_type(4)));
typedef short fast_pair __attribute__((ext_vector_type(2)));
typedef uint32_t fast_two __attribute__((ext_vector_type(2)));

DEVICE uint32_t fast_row(uint32_t r)
{
    return r / 4 * 16 + lane() / 16 * 4 + r % 4;
}

DEVICE uint32_t fast_column(uint32_t c)
{
    return c * 16 + lane() % 16;
}

DEVICE uint32_t fast_place_column(uint32_t i)
{
    return fast_column(i);
}

/* 16 steps of k: sixteen i has four of them. */
DEVICE fast_four fast_mfma(int32_t type, fast_two x, fast_two q, fast_four sum)
{
    if (type == TYPE_F16)
        return __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(fast_halves, x), __builtin_bit_cast(fast_halves, q),
                                                     sum, 0, 0, 0);
#if defined(__gfx908__)
    sum = __builtin_amdgcn_mfma_f32_16x16x8bf16(__builtin_bit_cast(fast_pair, x.x), __builtin_bit_cast(fast_pair, q.x), sum, 0,
                                                0, 0);
    return __builtin_amdgcn_mfma_f32_16x16x8bf16(__builtin_bit_cast(fast_pair, x.y), __builtin_bit_cast(fast_pair, q.y), sum, 0,
                                                 0, 0);
#else
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(fast_shorts, x), __builtin_bit_cast(fast_shorts, q),
                                                     sum, 0, 0, 0);
#endif
}

/* Half of the columns: all of k at once, so that a lane reads 16 bytes, which meet no other's banks. */
DEVICE void fast_multiply(int32_t type, const uint32_t *rows, const uint32_t *columns, const uint32_t *places, uint32_t half,
                          float *sums)
{
    u32x4 x[4], q[2];
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        x[i] = load_u32x4(rows + fast_piece(i * 16 + lane() % 16, lane() / 16));
    UNROLL
    for (uint32_t j = 0; j < 2; j++)
        q[j] = load_u32x4(columns + fast_piece(places[half * 2 + j], lane() / 16));
    UNROLL
    for (uint32_t i = 0; i < 8; i++) {
        float *own = sums + i / 2 * 16 + half * 2 + i % 2;
        const u32x4 a = x[i / 2], b = q[i % 2];
        const fast_two a_first = {a.x, a.y}, a_second = {a.z, a.w}, b_first = {b.x, b.y}, b_second = {b.z, b.w};
        fast_four sum = {own[0], own[4], own[8], own[12]};
        sum = fast_mfma(type, a_second, b_second, fast_mfma(type, a_first, b_first, sum));
        own[0] = sum.x;
        own[4] = sum.y;
        own[8] = sum.z;
        own[12] = sum.w;
    }
}

#elif defined(__GFX11__) || defined(__GFX12__)
/* ---- WMMA: 16 lanes have 16 columns, the two sixteens of a wave eight rows of 16 each --------------------------------------
 * gfx11 wants 16 steps of k in both sixteens, gfx12 eight in each. */

enum { FAST_PLACES = 2, FAST_LANE_ROWS = 32, FAST_LANE_COLUMNS = 2 };

typedef float fast_eight __attribute__((ext_vector_type(8)));
#if defined(__GFX11__)
enum { FAST_PIECES = 2 };
typedef uint32_t fast_words __attribute__((ext_vector_type(8)));
typedef _Float16 fast_halves __attribute__((ext_vector_type(16)));
typedef short fast_shorts __attribute__((ext_vector_type(16)));
#define FAST_WMMA(type) __builtin_amdgcn_wmma_f32_16x16x16_##type##_w32
#else
enum { FAST_PIECES = 1 };
typedef uint32_t fast_words __attribute__((ext_vector_type(4)));
typedef _Float16 fast_halves __attribute__((ext_vector_type(8)));
typedef short fast_shorts __attribute__((ext_vector_type(8)));
#define FAST_WMMA(type) __builtin_amdgcn_wmma_f32_16x16x16_##type##_w32_gfx12
#endif

DEVICE uint32_t fast_row(uint32_t r)
{
    return r / 8 * 16 + (FAST_PIECES == 2 ? r % 8 * 2 + lane() / 16 : lane() / 16 * 8 + r % 8);
}

DEVICE uint32_t fast_column(uint32_t c)
{
    return c * 16 + lane() % 16;
}

DEVICE uint32_t fast_place_column(uint32_t i)
{
    return fast_column(i);
}

DEVICE fast_words fast_operand(const uint32_t *slab, uint32_t line, uint32_t steps)
{
    fast_words words;
    UNROLL
    for (uint32_t p = 0; p < FAST_PIECES; p++) {
        const u32x4 four = load_u32x4(slab + fast_piece(line, steps * 2 + (FAST_PIECES == 2 ? p : lane() / 16)));
        words[p * 4] = four.x;
        words[p * 4 + 1] = four.y;
        words[p * 4 + 2] = four.z;
        words[p * 4 + 3] = four.w;
    }
    return words;
}

/* Half of a slab. */
DEVICE void fast_multiply(int32_t type, const uint32_t *rows, const uint32_t *columns, const uint32_t *places, uint32_t half,
                          float *sums)
{
    fast_words q[2];
    UNROLL
    for (uint32_t j = 0; j < 2; j++)
        q[j] = fast_operand(columns, places[j], half);
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const fast_words x = fast_operand(rows, i * 16 + lane() % 16, half);
        UNROLL
        for (uint32_t j = 0; j < 2; j++) {
            fast_eight sum;
            UNROLL
            for (uint32_t e = 0; e < 8; e++)
                sum[e] = sums[(i * 8 + e) * 2 + j];
            if (type == TYPE_F16)
                sum = FAST_WMMA(f16)(__builtin_bit_cast(fast_halves, x), __builtin_bit_cast(fast_halves, q[j]), sum);
            else
                sum = FAST_WMMA(bf16)(__builtin_bit_cast(fast_shorts, x), __builtin_bit_cast(fast_shorts, q[j]), sum);
            UNROLL
            for (uint32_t e = 0; e < 8; e++)
                sums[(i * 8 + e) * 2 + j] = sum[e];
        }
    }
}

#else /* lanes stand 8 deep, each has every eighth row */

enum { FAST_PLACES = 8, FAST_LANE_ROWS = 8, FAST_LANE_COLUMNS = 8 };

DEVICE uint32_t fast_row(uint32_t r)
{
    return lane() / (wave_size() / 8) + 8 * r;
}

DEVICE uint32_t fast_column(uint32_t c)
{
    return lane() % (wave_size() / 8) + wave_size() / 8 * c;
}

DEVICE uint32_t fast_place_column(uint32_t i)
{
    return fast_column(i);
}

DEVICE uint32_t fast_round(uint32_t bits)
{
    return bits;
}

DEVICE float fast_dot(int32_t type, uint32_t a, uint32_t b, float sum)
{
    if (type == TYPE_F32)
        return fma_f32(canon_bits_float(a), canon_bits_float(b), sum);
    if (type == TYPE_F16)
        return fma_f32(widen_f16((uint16_t)(a >> 16)), widen_f16((uint16_t)(b >> 16)),
                       fma_f32(widen_f16((uint16_t)a), widen_f16((uint16_t)b), sum));
    return fma_f32(widen_bf16((uint16_t)(a >> 16)), widen_bf16((uint16_t)(b >> 16)),
                   fma_f32(widen_bf16((uint16_t)a), widen_bf16((uint16_t)b), sum));
}

DEVICE void fast_multiply(int32_t type, const uint32_t *rows, const uint32_t *columns, const uint32_t *places, uint32_t half,
                          float *sums)
{
    UNROLL_BY(1)
    for (uint32_t word = half * (FAST_WORDS / 2); word < (half + 1) * (FAST_WORDS / 2); word++) {
        uint32_t x[8];
        UNROLL
        for (uint32_t r = 0; r < 8; r++)
            x[r] = AT(rows, fast_piece(fast_row(r), word / 4) + word % 4);
        UNROLL
        for (uint32_t c = 0; c < 8; c++) {
            const uint32_t q = AT(columns, fast_piece(places[c], word / 4) + word % 4);
            UNROLL
            for (uint32_t r = 0; r < 8; r++)
                sums[r * 8 + c] = fast_dot(type, x[r], q, sums[r * 8 + c]);
        }
    }
}

#endif

#endif
