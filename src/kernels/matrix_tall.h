/* Products of bytes in registers with f16 in shared memory, whose sums are f32: tall_take() and tall_multiply(), for integers
 * of which all sums stay below 2^24, so that nothing is rounded.
 *
 * A team of 128 threads owns 64 rows x 64 columns at a time, and each thread 32 of the sums: number j * 4 + i * 2 + c belongs
 * to row wide_query(i) and column wide_row(j, c) (matrix_wide.h). Rows lie 32 bytes behind each other. Columns lie 64 bytes
 * behind each other, their pieces of 16 bytes as screen_piece() has them, aligned to 1024 bytes, and in them element e of 32 is
 * number quant_tall_place(e): so that a thread reads eight neighbouring bytes of a row.
 *
 * NVIDIA sm_90a: wgmma m64n64k16. All others, and the emulator: one element after the other.
 */
#ifndef WW_KERNELS_MATRIX_TALL_H
#define WW_KERNELS_MATRIX_TALL_H

#include "kernels/matrix_wide.h"

#include "kernels/blocks.h"
#include "kernels/quant.h"

enum { TALL_SUMS = 32, TALL_ROW_WORDS = 8, TALL_COLUMN_WORDS = 16 };

#if defined(__NVPTX__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Two rows' eight elements, as f16. */
typedef struct tall_rows {
    uint32_t of[8];
} tall_rows;

/* Four bytes, 128 larger, below 1024 in f16; then that is taken off. */
DEVICE void tall_widen(uint32_t bytes, uint32_t *low, uint32_t *high)
{
    const uint32_t larger = bytes ^ 0x80808080u;
    __asm__("{\n"
            ".reg .b32 two;\n"
            "prmt.b32 two, %2, 0x64646464, 0x4140;\n"
            "add.rn.f16x2 %0, two, %3;\n"
            "prmt.b32 two, %2, 0x64646464, 0x4342;\n"
            "add.rn.f16x2 %1, two, %3;\n"
            "}"
            : "=&r"(*low), "=r"(*high)
            : "r"(larger), "r"(0xe480e480u)); /* -1152 twice */
}

DEVICE tall_rows tall_take(const uint32_t *rows)
{
    tall_rows taken;
    UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const f32x2 two = load_f32x2((const float *)(rows + wide_query(i) * TALL_ROW_WORDS + thread_index() % 4 * 2));
        tall_widen(canon_float_bits(two.x), &taken.of[i], &taken.of[2 + i]);
        tall_widen(canon_float_bits(two.y), &taken.of[4 + i], &taken.of[6 + i]);
    }
    return taken;
}

#define TALL_4(at)  "+f"(sums[at]), "+f"(sums[(at) + 1]), "+f"(sums[(at) + 2]), "+f"(sums[(at) + 3])
#define TALL_16(at) TALL_4(at), TALL_4((at) + 4), TALL_4((at) + 8), TALL_4((at) + 12)

/* 16 elements of each; `more` is 0 for the first, which forgets what the sums were. */
DEVICE void tall_step(const uint32_t *rows, uint64_t columns, int32_t more, float *sums)
{
    __asm__ volatile("{\n"
                     ".reg .pred more;\n"
                     "setp.ne.b32 more, %37, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                     "{%32, %33, %34, %35}, %36, more, 1, 1, 0;\n"
                     "}"
                     : TALL_16(0), TALL_16(16)
                     : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(columns), "r"(more));
}

/* Begins; what is read must stay, and the sums must not be touched, until tall_wait(). */
DEVICE void tall_multiply(const tall_rows *rows, const uint32_t *columns, float *sums)
{
    const uint64_t slab = wide_slab(columns);
    __asm__ volatile("wgmma.fence.sync.aligned;" ::: "memory");
    tall_step(rows->of, slab, 0, sums);
    tall_step(rows->of + 4, slab + 32 / 16, 1, sums);
    __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

DEVICE void tall_wait(float *sums)
{
    __asm__ volatile("wgmma.wait_group.sync.aligned 0;" : TALL_16(0), TALL_16(16)::"memory");
}

/* For all but the multiplication begun last. */
DEVICE void tall_wait_but_last(float *sums)
{
    __asm__ volatile("wgmma.wait_group.sync.aligned 1;" : TALL_16(0), TALL_16(16)::"memory");
}

#else

typedef struct tall_rows {
    const uint32_t *from;
} tall_rows;

DEVICE tall_rows tall_take(const uint32_t *rows)
{
    const tall_rows taken = {rows};
    return taken;
}

/* Element e of a column; of integers no half is lost. */
DEVICE int32_t tall_element(const uint32_t *columns, uint32_t column, uint32_t e)
{
    const uint32_t at = quant_tall_place(e), word = AT(columns, screen_piece(column, at / 8) + at / 2 % 4);
    return (int32_t)block_f32_from_f16((uint16_t)(word >> at % 2 * 16));
}

DEVICE void tall_multiply(const tall_rows *rows, const uint32_t *columns, float *sums)
{
    UNROLL_BY(1)
    for (uint32_t n = 0; n < TALL_SUMS; n++) {
        int32_t sum = 0;
        UNROLL_BY(1)
        for (uint32_t e = 0; e < 32; e++) {
            const uint32_t word = AT(rows->from, wide_query(n / 2 % 2) * TALL_ROW_WORDS + e / 4);
            sum += (int8_t)(word >> e % 4 * 8) * tall_element(columns, wide_row(n / 4, n % 2), e);
        }
        sums[n] = (float)sum;
    }
}

DEVICE void tall_wait(float *sums)
{
    (void)sums;
}

DEVICE void tall_wait_but_last(float *sums)
{
    (void)sums;
}

#endif

#endif
