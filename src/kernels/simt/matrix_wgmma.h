/* Products of bytes for chips that multiply from shared memory. wgmma_multiply() starts the product of a tile.
 * wgmma_half_multiply() starts that of half of the rows and half of the bytes, and of one number for each query and row.
 *
 * Until wgmma_wait() or wgmma_half_wait() returns, their inputs must not change, and the sums must not be touched.
 * wgmma_wait_but_last() and wgmma_wait_but_two() wait for all multiplications except the one or two started last; the inputs of
 * the others may then be overwritten.
 *
 * A team of 128 threads owns 64 queries x 128 rows, and each thread has 64 of the sums; for half a product 64 x 64 and 32. Sum
 * j * 4 + i * 2 + c belongs to query wgmma_query(i) and row wgmma_row(j, c) of the team's tile. Queries and rows are in shared
 * memory in slabs of 64 bytes of each, placed by screen_piece() and aligned to 1024 bytes.
 *
 * NVIDIA sm_90a: wgmma m64n128k32 and m64n64k32, whose 64-byte swizzle is that of screen_piece(). All other chips and the
 * emulator: dot4_i8.
 */
#ifndef WW_KERNELS_SIMT_MATRIX_WGMMA_H
#define WW_KERNELS_SIMT_MATRIX_WGMMA_H

#include "kernels/simt/simt.h"

#include "arithmetic/blocks/blocks.h"
#include "arithmetic/screen.h"

enum { WGMMA_TEAM = 128, WGMMA_QUERIES = 64, WGMMA_ROWS = 128, WGMMA_SUMS = 64 };

DEVICE uint32_t wgmma_query(uint32_t i)
{
    return thread_index() % WGMMA_TEAM / 32 * 16 + thread_index() % 32 / 4 + 8 * i;
}

DEVICE uint32_t wgmma_row(uint32_t j, uint32_t c)
{
    return j * 8 + thread_index() % 4 * 2 + c;
}

#if defined(__NVPTX__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Rounds `shared` up to a multiple of 1024 bytes. */
DEVICE uint32_t *wgmma_aligned(uint32_t *shared)
{
    const uint32_t at = (uint32_t)(uintptr_t)(__attribute__((address_space(3))) uint32_t *)shared;
    return shared + (-at & 1023u) / 4;
}

/* Loads four numbers of the rows in one access. Inline assembly, because the compiler would split a plain load. */
DEVICE f32x4 wgmma_numbers(const float *from)
{
    f32x4 value;
    const uint32_t at = (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) float *)from;
    __asm__ volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                     : "r"(at));
    return value;
}

/* The matrix descriptor of a slab: its address, 512 bytes per eight rows, 64-byte swizzle. */
DEVICE uint64_t wgmma_slab(const uint32_t *slab)
{
    const uint32_t at = (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) uint32_t *)slab;
    return (uint64_t)2 << 62 | (uint64_t)(512 / 16) << 32 | (uint64_t)1 << 16 | (at & 0x3ffffu) >> 4;
}

#define WGMMA_4(at)  "+r"(sums[at]), "+r"(sums[(at) + 1]), "+r"(sums[(at) + 2]), "+r"(sums[(at) + 3])
#define WGMMA_16(at) WGMMA_4(at), WGMMA_4((at) + 4), WGMMA_4((at) + 8), WGMMA_4((at) + 12)

/* Multiplies 32 bytes of each. With `more` 0, the sums start at 0. */
DEVICE void wgmma_step(uint64_t queries, uint64_t rows, int32_t more, int32_t *sums)
{
    __asm__ volatile("{\n"
                     ".reg .pred more;\n"
                     "setp.ne.b32 more, %66, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, more;\n"
                     "}"
                     : WGMMA_16(0), WGMMA_16(16), WGMMA_16(32), WGMMA_16(48)
                     : "l"(queries), "l"(rows), "r"(more));
}

DEVICE void wgmma_multiply(const uint32_t *queries, const uint32_t *rows, bool more, int32_t *sums)
{
    const uint64_t q = wgmma_slab(queries), x = wgmma_slab(rows);
    __asm__ volatile("wgmma.fence.sync.aligned;" ::: "memory");
    wgmma_step(q, x, more, sums);
    wgmma_step(q + 32 / 16, x + 32 / 16, 1, sums);
    __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

#define WGMMA_FLOATS_4(at)  "+f"(products[at]), "+f"(products[(at) + 1]), "+f"(products[(at) + 2]), "+f"(products[(at) + 3])
#define WGMMA_FLOATS_16(at) WGMMA_FLOATS_4(at), WGMMA_FLOATS_4((at) + 4), WGMMA_FLOATS_4((at) + 8), WGMMA_FLOATS_4((at) + 12)

/* A lane's part of the matrix of wgmma_factor_of(). */
typedef struct wgmma_factor {
    uint32_t of[4];
} wgmma_factor;

/* A word with a number, as f16, in half `which` and 0 in the other. */
DEVICE uint32_t wgmma_one_of_two(float number, uint32_t which)
{
    uint32_t word;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(which ? number : 0.0f), "f"(which ? 0.0f : number));
    return word;
}

/* A matrix with the numbers of the queries, all f16 values, in column 4 * four + one of 16, and zeros elsewhere. It multiplies
 * them with the rows' numbers at that place. */
DEVICE wgmma_factor wgmma_factor_of(const float *queries, uint32_t four, uint32_t one)
{
    const bool own = thread_index() % 4 == four % 2 * 2 + one / 2;
    const uint32_t first = own ? wgmma_one_of_two(queries[wgmma_query(0)], one % 2) : 0;
    const uint32_t second = own ? wgmma_one_of_two(queries[wgmma_query(1)], one % 2) : 0;
    const bool later = four >= 2;
    const wgmma_factor factor = {{later ? 0 : first, later ? 0 : second, later ? first : 0, later ? second : 0}};
    return factor;
}

/* The matrix descriptor of a slab of 16 f16 numbers per row: 256 bytes per eight rows, 32-byte swizzle. */
DEVICE uint64_t wgmma_numbers_slab(const uint32_t *slab)
{
    const uint32_t at = (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) uint32_t *)slab;
    return (uint64_t)3 << 62 | (uint64_t)(256 / 16) << 32 | (uint64_t)1 << 16 | (at & 0x3ffffu) >> 4;
}

/* Multiplies 32 bytes from byte 32 * half on of 64 queries and 64 rows, and their numbers, whose products are exact. Overwrites
 * 32 sums and 32 products. */
DEVICE void wgmma_half_multiply(const uint32_t *queries, const uint32_t *rows, uint32_t half, wgmma_factor factor,
                                const uint32_t *numbers, int32_t *sums, float *products)
{
    __asm__ volatile("wgmma.fence.sync.aligned;" ::: "memory");
    __asm__ volatile("{\n"
                     ".reg .pred more;\n"
                     "setp.ne.b32 more, 0, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, more;\n"
                     "}"
                     : WGMMA_16(0), WGMMA_16(16)
                     : "l"(wgmma_slab(queries) + half * (32 / 16)), "l"(wgmma_slab(rows) + half * (32 / 16)));
    __asm__ volatile("{\n"
                     ".reg .pred more;\n"
                     "setp.ne.b32 more, 0, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                     "{%32, %33, %34, %35}, %36, more, 1, 1, 0;\n"
                     "}"
                     : WGMMA_FLOATS_16(0), WGMMA_FLOATS_16(16)
                     : "r"(factor.of[0]), "r"(factor.of[1]), "r"(factor.of[2]), "r"(factor.of[3]),
                       "l"(wgmma_numbers_slab(numbers)));
    __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits for all multiplications, or for all but the last one started. */
DEVICE void wgmma_half_wait(bool all, int32_t *sums, float *products)
{
    if (all)
        __asm__ volatile("wgmma.wait_group.sync.aligned 0;"
                         : WGMMA_16(0), WGMMA_16(16), WGMMA_FLOATS_16(0), WGMMA_FLOATS_16(16)::"memory");
    else
        __asm__ volatile("wgmma.wait_group.sync.aligned 1;"
                         : WGMMA_16(0), WGMMA_16(16), WGMMA_FLOATS_16(0), WGMMA_FLOATS_16(16)::"memory");
}

DEVICE void wgmma_wait_but_last(void)
{
    __asm__ volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}

DEVICE void wgmma_wait_but_two(void)
{
    __asm__ volatile("wgmma.wait_group.sync.aligned 2;" ::: "memory");
}

/* Adds the products of 16 bytes of this wave's 16 queries and 8 rows, in lines `stride` words apart, to four sums. Not
 * asynchronous: the sums are complete when it returns. */
DEVICE void wgmma_multiply_16(const uint32_t *queries, const uint32_t *rows, uint32_t stride, int32_t *sums)
{
    const uint32_t at = lane() / 4 * stride + lane() % 4;
    queries += thread_index() % WGMMA_TEAM / 32 * 16 * stride;
    __asm__("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
            : "r"(queries[at]), "r"(queries[at + 8 * stride]), "r"(rows[at]));
}

DEVICE void wgmma_wait(int32_t *sums)
{
    __asm__ volatile("wgmma.wait_group.sync.aligned 0;" : WGMMA_16(0), WGMMA_16(16), WGMMA_16(32), WGMMA_16(48)::"memory");
}

#else

DEVICE uint32_t *wgmma_aligned(uint32_t *shared)
{
    return shared;
}

DEVICE f32x4 wgmma_numbers(const float *from)
{
    return load_f32x4(from);
}

DEVICE void wgmma_multiply_piece(const uint32_t *queries, const uint32_t *rows, uint32_t eights, uint32_t piece, int32_t *sums)
{
    const u32x4 q0 = load_u32x4(AT_RANGE(queries, screen_piece(wgmma_query(0), piece), 4));
    const u32x4 q1 = load_u32x4(AT_RANGE(queries, screen_piece(wgmma_query(1), piece), 4));
    UNROLL
    for (uint32_t j = 0; j < eights; j++)
        UNROLL
    for (uint32_t c = 0; c < 2; c++) {
        const u32x4 x = load_u32x4(AT_RANGE(rows, screen_piece(wgmma_row(j, c), piece), 4));
        sums[j * 4 + c] = dot16_i8(x, q0, sums[j * 4 + c]);
        sums[j * 4 + 2 + c] = dot16_i8(x, q1, sums[j * 4 + 2 + c]);
    }
}

DEVICE void wgmma_multiply(const uint32_t *queries, const uint32_t *rows, bool more, int32_t *sums)
{
    UNROLL
    for (uint32_t i = 0; !more && i < WGMMA_SUMS; i++)
        sums[i] = 0;
    UNROLL_BY(1)
    for (uint32_t piece = 0; piece < 4; piece++)
        wgmma_multiply_piece(queries, rows, 16, piece, sums);
}

typedef struct wgmma_factor {
    float of[2];
    uint32_t place;
} wgmma_factor;

DEVICE wgmma_factor wgmma_factor_of(const float *queries, uint32_t four, uint32_t one)
{
    const wgmma_factor factor = {{AT(queries, wgmma_query(0)), AT(queries, wgmma_query(1))}, 4 * four + one};
    return factor;
}

DEVICE void wgmma_half_multiply(const uint32_t *queries, const uint32_t *rows, uint32_t half, wgmma_factor factor,
                                const uint32_t *numbers, int32_t *sums, float *products)
{
    UNROLL
    for (uint32_t i = 0; i < WGMMA_SUMS / 2; i++) {
        const uint32_t row = wgmma_row(i / 4, i % 2), piece = factor.place / 8 ^ (row >> 2 & 1);
        const uint16_t number = AT((const uint16_t *)numbers, row * 16 + piece * 8 + factor.place % 8);
        products[i] = factor.of[i / 2 % 2] * block_f32_from_f16(number);
        sums[i] = 0;
    }
    UNROLL_BY(1)
    for (uint32_t piece = half * 2; piece < half * 2 + 2; piece++)
        wgmma_multiply_piece(queries, rows, 8, piece, sums);
}

DEVICE void wgmma_half_wait(bool all, int32_t *sums, float *products)
{
    (void)all;
    (void)sums;
    (void)products;
}

DEVICE void wgmma_multiply_16(const uint32_t *queries, const uint32_t *rows, uint32_t stride, int32_t *sums)
{
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        sums[i] = dot16_i8(load_u32x4(AT_RANGE(queries, wgmma_query(i / 2) * stride, 4)),
                           load_u32x4(AT_RANGE(rows, wgmma_row(0, i % 2) * stride, 4)), sums[i]);
}

DEVICE void wgmma_wait_but_last(void)
{
}

DEVICE void wgmma_wait_but_two(void)
{
}

DEVICE void wgmma_wait(int32_t *sums)
{
    (void)sums;
}

#endif

#endif
