/* Reductions in canonical order (reduce.h), one kernel per kind. Adjacent elements: 16 lanes reduce a chunk of 4096, four
 * accumulators each, so a step of 64 elements is one load of four per lane and the fold never leaves the group. For a single
 * result, the last block to finish does the rounds after the first. Adjacent results that tensor_reduce_columns.c does not
 * handle: a block computes 64 of them with four threads each; a thread has every fourth accumulator.
 */
#include "kernels/reduce/reduce_rounds.h"

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

/* Reduces whole steps by quads, with eight loads in flight. Returns where they end. */
DEVICE int64_t join_steps(int32_t op, int32_t type, const void *x, int64_t i, int64_t end, float *sums)
{
    enum { PREFETCH = 8 };
    const int32_t bytes = bytes_f32(type);
    const int64_t lane_first = 4 * (thread_index() % REDUCE_GROUP);
    for (; i + PREFETCH * REDUCE_LANES <= end; i += PREFETCH * REDUCE_LANES) {
        quad_bits loaded[PREFETCH];
        UNROLL for (int32_t a = 0; a < PREFETCH; a++) loaded[a] = quad_load(x, i + a * REDUCE_LANES + lane_first, bytes);
        UNROLL for (int32_t a = 0; a < PREFETCH; a++)
        {
            const quad_f32 v = quad_to_f32(loaded[a], type);
            EACH sums[j] = reduce_join_f32(op, sums[j], v.v[j]);
        }
    }
    UNROLL_BY(4) for (; i + REDUCE_LANES <= end; i += REDUCE_LANES)
    {
        const quad_f32 v = quad_to_f32(quad_load(x, i + lane_first, bytes), type);
        EACH sums[j] = reduce_join_f32(op, sums[j], v.v[j]);
    }
    return i;
}

/* The common cases have their own loops. Most rows of 16-bit types go to tensor_reduce_half.c instead. */
DEVICE int64_t join_quads(const reduce_args *args, const void *x, int64_t i, int64_t end, float *sums)
{
    if (args->type == TYPE_F32 && args->op == REDUCE_SUM)
        return join_steps(REDUCE_SUM, TYPE_F32, x, i, end, sums);
    if (args->type == TYPE_F32 && args->op == REDUCE_MAX)
        return join_steps(REDUCE_MAX, TYPE_F32, x, i, end, sums);
    return join_steps(args->op, args->type, x, i, end, sums);
}

#define join_quads_f32(args, x, i, end, sums) ((args)->quads ? join_quads(args, x, i, end, sums) : (i))
#define join_quads_f64(args, x, i, end, sums) (i)
#define join_quads_i64(args, x, i, end, sums) (i)

#define REDUCE_ROWS(T, kind)                                                                                                   \
    KERNEL(tensor_reduce_rows_##kind, reduce_args, REDUCE_THREADS)                                                             \
    {                                                                                                                          \
        SHARED(T, folds, REDUCE_THREADS);                                                                                      \
        SHARED(T, results, REDUCE_FINISH_CHUNKS);                                                                              \
        SHARED(uint32_t, ticket, 1);                                                                                           \
        const int64_t item = (int64_t)block_index() * (REDUCE_THREADS / REDUCE_GROUP) + thread_index() / REDUCE_GROUP;         \
        const int64_t out = item / args.chunks;                                                                                \
        const int64_t chunk = item - out * args.chunks;                                                                        \
        const bool here = out < args.outs;                                                                                     \
        const int32_t bytes = type_bytes(args.type);                                                                           \
        T sums[4];                                                                                                             \
        UNROLL for (int32_t j = 0; j < 4; j++) sums[j] = reduce_neutral_##kind(args.op);                                       \
        if (here) {                                                                                                            \
            const char *x = (const char *)args.x + reduce_place(&args.kept, out) * bytes;                                      \
            const int64_t end = (chunk + 1) * REDUCE_CHUNK < args.n ? (chunk + 1) * REDUCE_CHUNK : args.n;                     \
            int64_t i = join_quads_##kind(&args, x, chunk * REDUCE_CHUNK, end, sums);                                          \
            for (; i < end; i += REDUCE_LANES)                                                                                 \
                UNROLL for (int32_t j = 0; j < 4; j++)                                                                         \
                {                                                                                                              \
                    const int64_t mine = i + 4 * (thread_index() % REDUCE_GROUP) + j;                                          \
                    if (mine < end) {                                                                                          \
                        const int64_t at = args.dense ? mine : reduce_place(&args.reduced, mine);                              \
                        sums[j] = reduce_join_##kind(args.op, sums[j], bits_to_##kind(bits_at(x, at, bytes), args.type));      \
                    }                                                                                                          \
                }                                                                                                              \
        }                                                                                                                      \
        UNROLL for (uint32_t mask = REDUCE_GROUP / 2; mask > 0; mask /= 2) UNROLL for (int32_t j = 0; j < 4; j++)              \
        {                                                                                                                      \
            const T other = shuffle_##kind(sums[j], mask);                                                                     \
            sums[j] = reduce_join_##kind(args.op, sums[j], other);                                                             \
        }                                                                                                                      \
        sums[0] = reduce_join_##kind(args.op, sums[0], sums[2]);                                                               \
        sums[1] = reduce_join_##kind(args.op, sums[1], sums[3]);                                                               \
        sums[0] = reduce_join_##kind(args.op, sums[0], sums[1]);                                                               \
        const bool first = here && thread_index() % REDUCE_GROUP == 0;                                                         \
        chunk_ends_##kind(&args, first, out *args.chunks + chunk, sums[0], folds, results, ticket);                            \
    }

REDUCE_ROWS(float, f32)
REDUCE_ROWS(double, f64)
REDUCE_ROWS(int64_t, i64)

/* ---- columns ------------------------------------------------------------------------------------------------------------- */

enum { SHARES = REDUCE_THREADS / REDUCE_COLUMNS, SHARE_LANES = REDUCE_LANES / SHARES };

/* Thread (share, column) has the accumulators share, share + 4, ..., so it can do the folds of 32, 16, 8 and 4 alone. */
#define REDUCE_COLUMNS_OF(T, kind)                                                                                             \
    KERNEL(tensor_reduce_columns_##kind, reduce_args, REDUCE_THREADS)                                                          \
    {                                                                                                                          \
        SHARED(T, folded, REDUCE_THREADS);                                                                                     \
        const int32_t column = (int32_t)(thread_index() % REDUCE_COLUMNS);                                                     \
        const int32_t share = (int32_t)(thread_index() / REDUCE_COLUMNS);                                                      \
        const int64_t blocks = (args.outs + REDUCE_COLUMNS - 1) / REDUCE_COLUMNS;                                              \
        const int64_t chunk = (int64_t)block_index() / blocks;                                                                 \
        const int64_t out = ((int64_t)block_index() - chunk * blocks) * REDUCE_COLUMNS + column;                               \
        const int32_t bytes = type_bytes(args.type);                                                                           \
        T sums[SHARE_LANES];                                                                                                   \
        UNROLL for (int32_t q = 0; q < SHARE_LANES; q++) sums[q] = reduce_neutral_##kind(args.op);                             \
        if (out < args.outs) {                                                                                                 \
            const char *x = (const char *)args.x + reduce_place(&args.kept, out) * bytes;                                      \
            const int64_t end = (chunk + 1) * REDUCE_CHUNK < args.n ? (chunk + 1) * REDUCE_CHUNK : args.n;                     \
            for (int64_t i = chunk * REDUCE_CHUNK + share; i < end; i += REDUCE_LANES)                                         \
                UNROLL for (int32_t q = 0; q < SHARE_LANES; q++)                                                               \
                {                                                                                                              \
                    const int64_t mine = i + q * SHARES;                                                                       \
                    if (mine < end) {                                                                                          \
                        const uint64_t bits = bits_at(x, mine * args.reduced.strides[0], bytes);                               \
                        sums[q] = reduce_join_##kind(args.op, sums[q], bits_to_##kind(bits, args.type));                       \
                    }                                                                                                          \
                }                                                                                                              \
        }                                                                                                                      \
        UNROLL for (int32_t s = SHARE_LANES / 2; s > 0; s /= 2) UNROLL for (int32_t q = 0; q < s; q++) sums[q] =               \
            reduce_join_##kind(args.op, sums[q], sums[q + s]);                                                                 \
        AT(folded, thread_index()) = sums[0];                                                                                  \
        barrier();                                                                                                             \
        if (share == 0 && out < args.outs) {                                                                                   \
            const T even = reduce_join_##kind(args.op, sums[0], AT(folded, column + 2 * REDUCE_COLUMNS));                      \
            const T odd =                                                                                                      \
                reduce_join_##kind(args.op, AT(folded, column + REDUCE_COLUMNS), AT(folded, column + 3 * REDUCE_COLUMNS));     \
            put_##kind(&args, out *args.chunks + chunk, reduce_join_##kind(args.op, even, odd));                               \
        }                                                                                                                      \
    }

REDUCE_COLUMNS_OF(float, f32)
REDUCE_COLUMNS_OF(double, f64)
REDUCE_COLUMNS_OF(int64_t, i64)
