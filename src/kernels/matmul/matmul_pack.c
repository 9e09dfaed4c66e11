/* Copies a matrix whose layout matmul_fast_* cannot read: writes its m lines along k, padded to n with +0, lines args.c_row
 * apart, to args.c. It reads args.a, whose lines are args.a_row apart and whose steps of k are args.a_column apart.
 *
 * Bound by memory: a thread writes 16 bytes. Neighbouring threads have neighbouring pieces of a line, or the same piece of
 * neighbouring lines if lines are adjacent in memory (MATMUL_ACROSS_K).
 */
#include "kernels/matmul/matmul_common.h"

DEVICE uint32_t pack_element(uint32_t bytes, const matmul_args *args, int64_t line_at, int32_t k)
{
    if (k >= args->k)
        return 0;
    const int64_t at = line_at + k * args->a_column;
    return bytes == 4 ? ((const uint32_t *)args->a)[at] : ((const uint16_t *)args->a)[at];
}

DEVICE void pack_piece(uint32_t bytes, const matmul_args *args, int64_t from, int64_t to, int64_t number)
{
    const int32_t each = (int32_t)(16 / bytes), pieces = args->n / each;
    const bool across = args->a_layout == MATMUL_ACROSS_K;
    const int64_t line = across ? number % args->m : number / pieces;
    const int32_t k = (int32_t)(across ? number / args->m : number % pieces) * each;
    uint32_t words[4];
    UNROLL for (int32_t i = 0; i < 4; i++)
    {
        const int64_t at = from + line * args->a_row;
        words[i] = bytes == 4 ? pack_element(bytes, args, at, k + i)
                              : pack_element(bytes, args, at, k + 2 * i) | pack_element(bytes, args, at, k + 2 * i + 1) << 16;
    }
    const u32x4 piece = {words[0], words[1], words[2], words[3]};
    *(u32x4 *)((char *)args->c + (to + line * args->c_row + k) * bytes) = piece;
}

KERNEL(matmul_pack, matmul_args, MATMUL_THREADS)
{
    const int64_t number = (int64_t)block_index() * MATMUL_THREADS + thread_index();
    const int32_t bytes = args.type == TYPE_F32 ? 4 : 2;
    int64_t a_begin, b_begin, c_begin;
    if (number >= (int64_t)args.m * (args.n / (16 / bytes)))
        return;
    for (int64_t batch = block_index_y(); batch < args.batches; batch += block_count_y()) {
        matmul_begin(&args, batch, &a_begin, &b_begin, &c_begin);
        if (bytes == 4)
            pack_piece(4, &args, a_begin, c_begin, number);
        else
            pack_piece(2, &args, a_begin, c_begin, number);
    }
}
