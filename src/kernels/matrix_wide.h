/* Products of bytes for chips that multiply from shared memory: wide_multiply(), and wide_half_multiply() for half of the rows
 * and of the bytes, which only begin.
 *
 * What they read must stay, and the sums must not be touched, until wide_wait() or wide_half_wait(); wide_wait_but_last() waits
 * for all multiplications but the one begun last, and lets only what those read be overwritten.
 *
 * A team of 128 threads owns 64 queries x 128 rows, and each thread 64 of the sums, or 64 x 64 and 32: number j * 4 + i * 2 + c
 * belongs to query wide_query(i) and row wide_row(j, c) of the team's tile. Queries and rows lie in shared memory in slabs of
 * 64 bytes of each, as screen_piece() has them, aligned to 1024 bytes.
 *
 * NVIDIA sm_90a: wgmma m64n128k32 and m64n64k32, whose 64-byte exchange of pieces is the one of screen_piece(). All others, and
 * the emulator, by dot4_i8.
 */
#ifndef WW_KERNELS_MATRIX_WIDE_H
#define WW_KERNELS_MATRIX_WIDE_H

#include "kernels/simt.h"

#include "kernels/screen.h"

enum { WIDE_TEAM = 128, WIDE_QUERIES = 64, WIDE_ROWS = 128, WIDE_SUMS = 64 };

DEVICE uint32_t wide_query(uint32_t i)
{
    return thread_index() % WIDE_TEAM / 32 * 16 + thread_index() % 32 / 4 + 8 * i;
}

DEVICE uint32_t wide_row(uint32_t j, uint32_t c)
{
    return j * 8 + thread_index() % 4 * 2 + c;
}

#if defined(__NVPTX__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* The first place at or behind `shared` that is aligned to 1024 bytes. */
DEVICE uint32_t *wide_aligned(uint32_t *shared)
{
    const uint32_t at = (uint32_t)(uintptr_t)(__attribute__((address_space(3))) uint32_t *)shared;
    return shared + (-at & 1023u) / 4;
}

/* Four numbers of the rows, in one access: the compiler would take apart a load that it could see into. */
DEVICE f32x4 wide_numbers(const float *from)
{
    f32x4 value;
    const uint32_t at = (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) float *)from;
    __asm__ volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                     : "r"(at));
    return value;
}

/* What the chip wants to know of a slab: where it is, that eight rows are 512 bytes, and the exchange by 64 bytes. */
DEVICE uint64_t wide_slab(const uint32_t *slab)
{
    const uint32_t at = (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) uint32_t *)slab;
    return (uint64_t)2 << 62 | (uint64_t)(512 / 16) << 32 | (uint64_t)1 << 16 | (at & 0x3ffffu) >> 4;
}

#define WIDE_4(at)  "+r"(sums[at]), "+r"(sums[(at) + 1]), "+r"(sums[(at) + 2]), "+r"(sums[(at) + 3])
#define WIDE_16(at) WIDE_4(at), WIDE_4((at) + 4), WIDE_4((at) + 8), WIDE_4((at) + 12)

/* Multiplies 32 bytes of each; `more` is 0 for the first, which forgets what the sums were. */
DEVICE void wide_step(uint64_t queries, uint64_t rows, int32_t more, int32_t *sums)
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
                     : WIDE_16(0), WIDE_16(16), WIDE_16(32), WIDE_16(48)
                     : "l"(queries), "l"(rows), "r"(more));
}

DEVICE void wide_multiply(const uint32_t *queries, const uint32_t *rows, bool more, int32_t *sums)
{
    const uint64_t q = wide_slab(queries), x = wide_slab(rows);
    __asm__ volatile("wgmma.fence.sync.aligned;" ::: "memory");
    wide_step(q, x, more, sums);
    wide_step(q + 32 / 16, x + 32 / 16, 1, sums);
    __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Bytes 32 * half.. of all, into sums that forget what they were. */
DEVICE void wide_multiply_32(const uint32_t *queries, const uint32_t *rows, uint32_t half, int32_t *sums)
{
    __asm__ volatile("wgmma.fence.sync.aligned;" ::: "memory");
    wide_step(wide_slab(queries) + half * (32 / 16), wide_slab(rows) + half * (32 / 16), 0, sums);
    __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* What one wave has of 64 numbers that belong to queries. */
typedef struct wide_factors {
    float of[2];
} wide_factors;

/* Only the first of four neighbouring lanes counts for the tensor cores. */
DEVICE wide_factors wide_factors_of(const float *queries)
{
    wide_factors factors;
    factors.of[0] = thread_index() % 4 == 0 ? queries[wide_query(0)] : 0.0f;
    factors.of[1] = thread_index() % 4 == 0 ? queries[wide_query(1)] : 0.0f;
    return factors;
}

/* Times numbers of 8 rows, to the four products that belong to their sums: each number has at most 11 bits, so they are exact.
 */
DEVICE void wide_products(wide_factors factors, const float *rows, float *products)
{
    __asm__("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
            : "=f"(products[0]), "=f"(products[1]), "=f"(products[2]), "=f"(products[3])
            : "r"(__builtin_bit_cast(uint32_t, factors.of[0])), "r"(__builtin_bit_cast(uint32_t, factors.of[1])),
              "r"(__builtin_bit_cast(uint32_t, rows[lane() / 4])), "f"(0.0f));
}

DEVICE void wide_wait_but_last(void)
{
    __asm__ volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}

DEVICE void wide_wait_but_two(void)
{
    __asm__ volatile("wgmma.wait_group.sync.aligned 2;" ::: "memory");
}

/* The same, when `sums` are not those of the last. */
DEVICE void wide_wait_but_one(int32_t *sums)
{
    __asm__ volatile("wgmma.wait_group.sync.aligned 1;" : WIDE_16(0), WIDE_16(16), WIDE_16(32), WIDE_16(48)::"memory");
}

/* What this thread's copies brought to shared memory is seen by multiplications that begin after the next barrier. */
DEVICE void wide_copied(void)
{
    __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* 16 bytes of this wave's 16 queries and of 8 rows, from lines that are `stride` words apart, added to the four sums of the
 * rows: at once. */
DEVICE void wide_multiply_16(const uint32_t *queries, const uint32_t *rows, uint32_t stride, int32_t *sums)
{
    const uint32_t at = lane() / 4 * stride + lane() % 4;
    queries += thread_index() % WIDE_TEAM / 32 * 16 * stride;
    __asm__("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
            : "r"(queries[at]), "r"(queries[at + 8 * stride]), "r"(rows[at]));
}

DEVICE void wide_wait(int32_t *sums)
{
    __asm__ volatile("wgmma.wait_group.sync.aligned 0;" : WIDE_16(0), WIDE_16(16), WIDE_16(32), WIDE_16(48)::"memory");
}

#else

DEVICE uint32_t *wide_aligned(uint32_t *shared)
{
    return shared;
}

DEVICE f32x4 wide_numbers(const float *from)
{
    return load_f32x4(from);
}

DEVICE void wide_multiply_piece(const uint32_t *queries, const uint32_t *rows, uint32_t eights, uint32_t piece, int32_t *sums)
{
    const u32x4 q0 = load_u32x4(AT_RANGE(queries, screen_piece(wide_query(0), piece), 4));
    const u32x4 q1 = load_u32x4(AT_RANGE(queries, screen_piece(wide_query(1), piece), 4));
    UNROLL
    for (uint32_t j = 0; j < eights; j++)
        UNROLL
    for (uint32_t c = 0; c < 2; c++) {
        const u32x4 x = load_u32x4(AT_RANGE(rows, screen_piece(wide_row(j, c), piece), 4));
        sums[j * 4 + c] = dot16_i8(x, q0, sums[j * 4 + c]);
        sums[j * 4 + 2 + c] = dot16_i8(x, q1, sums[j * 4 + 2 + c]);
    }
}

DEVICE void wide_multiply(const uint32_t *queries, const uint32_t *rows, bool more, int32_t *sums)
{
    UNROLL
    for (uint32_t i = 0; !more && i < WIDE_SUMS; i++)
        sums[i] = 0;
    UNROLL_BY(1)
    for (uint32_t piece = 0; piece < 4; piece++)
        wide_multiply_piece(queries, rows, 16, piece, sums);
}

DEVICE void wide_multiply_32(const uint32_t *queries, const uint32_t *rows, uint32_t half, int32_t *sums)
{
    UNROLL
    for (uint32_t i = 0; i < WIDE_SUMS; i++)
        sums[i] = 0;
    UNROLL_BY(1)
    for (uint32_t piece = half * 2; piece < half * 2 + 2; piece++)
        wide_multiply_piece(queries, rows, 16, piece, sums);
}

typedef struct wide_factors {
    float of[2];
} wide_factors;

DEVICE wide_factors wide_factors_of(const float *queries)
{
    const wide_factors factors = {{AT(queries, wide_query(0)), AT(queries, wide_query(1))}};
    return factors;
}

DEVICE void wide_products(wide_factors factors, const float *rows, float *products)
{
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        products[i] = factors.of[i / 2] * AT(rows, wide_row(0, i % 2));
}

DEVICE void wide_wait_but_one(int32_t *sums)
{
    (void)sums;
}

DEVICE void wide_copied(void)
{
}

DEVICE void wide_multiply_16(const uint32_t *queries, const uint32_t *rows, uint32_t stride, int32_t *sums)
{
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        sums[i] = dot16_i8(load_u32x4(AT_RANGE(queries, wide_query(i / 2) * stride, 4)),
                           load_u32x4(AT_RANGE(rows, wide_row(0, i % 2) * stride, 4)), sums[i]);
}

DEVICE void wide_wait_but_last(void)
{
}

DEVICE void wide_wait_but_two(void)
{
}

DEVICE void wide_wait(int32_t *sums)
{
    (void)sums;
}

#endif

#endif
