/* Whole tiles of two dense operands of the same type, for tensor_binary_heavy.c and tensor_binary_short.c: which units a thread
 * has, and a loop over them for each operation.
 */
#ifndef WW_KERNELS_ELEMENTWISE_BINARY_TILES_H
#define WW_KERNELS_ELEMENTWISE_BINARY_TILES_H

#include "kernels/elementwise/elements.h"

#include "kernels/elementwise/math_shared.h"

/* Where a thread's units are, and the first of them on its way, when nothing before may still write them. */
#define BINARY_TILE_BEGIN                                                                                                      \
    launches_wait();                                                                                                           \
    launches_next();                                                                                                           \
    const int64_t begin = 16 * ((int64_t)block_index() * ELEMENTWISE_THREADS * TURNS + thread_index());                        \
    const char *x_from = (const char *)IN_GLOBAL(char, args.in[0].data) + begin;                                               \
    const char *y_from = (const char *)IN_GLOBAL(char, args.in[1].data) + begin;                                               \
    char *to = (char *)IN_GLOBAL(char, args.out.data) + begin;                                                                 \
    chunk_bits x_now = chunk_load(x_from, 0, 4);                                                                               \
    chunk_bits y_now = chunk_load(y_from, 0, 4);                                                                               \
    POW_TABLE;

/* All turns of a thread by `turn`, which makes `result` of x_unit and y_unit; the units of the next are on their way then. */
#define BINARY_TILE_TURNS(turn)                                                                                                \
    UNROLL_BY(1) for (int32_t left = TURNS; left > 0; left--)                                                                  \
    {                                                                                                                          \
        const chunk_bits x_unit = x_now;                                                                                       \
        const chunk_bits y_unit = y_now;                                                                                       \
        chunk_bits result = {{0, 0, 0, 0}};                                                                                    \
        x_from += 16 * ELEMENTWISE_THREADS;                                                                                    \
        y_from += 16 * ELEMENTWISE_THREADS;                                                                                    \
        if (left > 1) {                                                                                                        \
            x_now = chunk_load(x_from, 0, 4);                                                                                  \
            y_now = chunk_load(y_from, 0, 4);                                                                                  \
        }                                                                                                                      \
        turn chunk_store(to, 0, 4, result);                                                                                    \
        to += 16 * ELEMENTWISE_THREADS;                                                                                        \
    }

#endif
