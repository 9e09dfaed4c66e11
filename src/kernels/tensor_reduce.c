/* Reductions in canonical order (reduce.h), a kernel for each kind.
 *
 * Elements that lie side by side: 16 lanes make a run of 4096, four accumulators each, so that a step of 64 elements is one
 * load of four by every lane and the fold never leaves the group. Results that lie side by side: a block takes 64 of them, four
 * threads for each, which have every fourth accumulator.
 */
#include "kernels/elements.h"

#include "kernels/row_arguments.h"

#define shuffle_f32(value, mask) wave_shuffle_xor_f32(value, mask)
#define shuffle_f64(value, mask) canon_bits_double(wave_shuffle_xor_u64(canon_double_bits(value), (mask)))
#define shuffle_i64(value, mask) ((int64_t)wave_shuffle_xor_u64((uint64_t)(value), (mask)))

#define divided_f32(value, by) ((value) / (float)(by))
#define divided_f64(value, by) ((value) / (double)(by))
#define divided_i64(value, by) (value)

/* ---- rows
 * -------------------------------------------------------------------------------------------------------------------- */

enum { AHEAD = 8 }; /* steps whose loads are under way together */

/* Sums of f32 by fours. `end` is where whole steps end. */
DEVICE int64_t join_chunks(const reduce_args *args, const void *x, int64_t i, int64_t end, float *sums)
{
    const int32_t bytes = bytes_f32(args->type);
    const int64_t lane_first = 4 * (thread_index() % REDUCE_GROUP);
    for (; i + AHEAD * REDUCE_LANES <= end; i += AHEAD * REDUCE_LANES) {
        chunk_bits held[AHEAD];
        UNROLL for (int32_t a = 0; a < AHEAD; a++) held[a] = chunk_load(x, i + a * REDUCE_LANES + lane_first, bytes);
        UNROLL for (int32_t a = 0; a < AHEAD; a++)
        {
            const chunk_f32 v = chunk_to_f32(held[a], args->type);
            if (args->op == REDUCE_SUM)
                EACH sums[j] += v.v[j];
            else
                EACH sums[j] = reduce_join_f32(args->op, sums[j], v.v[j]);
        }
    }
    return i;
}

#define join_chunks_f32(args, x, i, end, sums) ((args)->chunks ? join_chunks(args, x, i, end, sums) : (i))
#define join_chunks_f64(args, x, i, end, sums) (i)
#define join_chunks_i64(args, x, i, end, sums) (i)

#define REDUCE_ROWS(T, kind)                                                                                                   \
    KERNEL(tensor_reduce_rows_##kind, reduce_args, REDUCE_THREADS)                                                             \
    {                                                                                                                          \
        const int64_t item = (int64_t)block_index() * (REDUCE_THREADS / REDUCE_GROUP) + thread_index() / REDUCE_GROUP;         \
        const int64_t out = item / args.runs;                                                                                  \
        const int64_t run = item - out * args.runs;                                                                            \
        const bool here = out < args.outs;                                                                                     \
        const int32_t bytes = type_bytes(args.type);                                                                           \
        T sums[4];                                                                                                             \
        UNROLL for (int32_t j = 0; j < 4; j++) sums[j] = reduce_neutral_##kind(args.op);                                       \
        if (here) {                                                                                                            \
            const char *x = (const char *)args.x + reduce_place(&args.kept, out) * bytes;                                      \
            const int64_t end = (run + 1) * REDUCE_RUN < args.n ? (run + 1) * REDUCE_RUN : args.n;                             \
            int64_t i = join_chunks_##kind(&args, x, run * REDUCE_RUN, end, sums);                                             \
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
        if (here && thread_index() % REDUCE_GROUP == 0)                                                                        \
            put_##kind(&args, out *args.runs + run, sums[0]);                                                                  \
    }

#define PUT(T, kind)                                                                                                           \
    DEVICE void put_##kind(const reduce_args *args, int64_t at, T value)                                                       \
    {                                                                                                                          \
        const T result = args->divide_by ? divided_##kind(value, args->divide_by) : value;                                     \
        bits_put(args->out, at, type_bytes(args->to), kind##_to_bits(result, args->to));                                       \
    }

PUT(float, f32)
PUT(double, f64)
PUT(int64_t, i64)
REDUCE_ROWS(float, f32)
REDUCE_ROWS(double, f64)
REDUCE_ROWS(int64_t, i64)

/* ---- columns
 * ----------------------------------------------------------------------------------------------------------------- */

enum { SHARES = REDUCE_THREADS / REDUCE_COLUMNS, SHARE_LANES = REDUCE_LANES / SHARES };

/* Thread (share, column) has the accumulators share, share + 4, ...: those that a fold of 32, 16, 8 or 4 joins are its own. */
#define REDUCE_COLUMNS_OF(T, kind)                                                                                             \
    KERNEL(tensor_reduce_columns_##kind, reduce_args, REDUCE_THREADS)                                                          \
    {                                                                                                                          \
        SHARED(T, folded, REDUCE_THREADS);                                                                                     \
        const int32_t column = (int32_t)(thread_index() % REDUCE_COLUMNS);                                                     \
        const int32_t share = (int32_t)(thread_index() / REDUCE_COLUMNS);                                                      \
        const int64_t blocks = (args.outs + REDUCE_COLUMNS - 1) / REDUCE_COLUMNS;                                              \
        const int64_t run = (int64_t)block_index() / blocks;                                                                   \
        const int64_t out = ((int64_t)block_index() - run * blocks) * REDUCE_COLUMNS + column;                                 \
        const int32_t bytes = type_bytes(args.type);                                                                           \
        T sums[SHARE_LANES];                                                                                                   \
        UNROLL for (int32_t q = 0; q < SHARE_LANES; q++) sums[q] = reduce_neutral_##kind(args.op);                             \
        if (out < args.outs) {                                                                                                 \
            const char *x = (const char *)args.x + reduce_place(&args.kept, out) * bytes;                                      \
            const int64_t end = (run + 1) * REDUCE_RUN < args.n ? (run + 1) * REDUCE_RUN : args.n;                             \
            for (int64_t i = run * REDUCE_RUN + share; i < end; i += REDUCE_LANES)                                             \
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
            put_##kind(&args, out *args.runs + run, reduce_join_##kind(args.op, even, odd));                                   \
        }                                                                                                                      \
    }

REDUCE_COLUMNS_OF(float, f32)
REDUCE_COLUMNS_OF(double, f64)
REDUCE_COLUMNS_OF(int64_t, i64)

/* Four results a thread, loaded at once: 16 threads beside each other have 64 of them, 16 such groups every 16th accumulator.
 */
KERNEL(tensor_reduce_columns_chunks, reduce_args, REDUCE_THREADS)
{
    SHARED(float, folded, REDUCE_THREADS * 4);
    const int32_t thread = (int32_t)thread_index();
    const int32_t share = thread / REDUCE_GROUP;
    const int64_t blocks = (args.outs + REDUCE_COLUMNS - 1) / REDUCE_COLUMNS;
    const int64_t run = (int64_t)block_index() / blocks;
    const int64_t out = ((int64_t)block_index() - run * blocks) * REDUCE_COLUMNS + 4 * (thread % REDUCE_GROUP);
    const int64_t stride = args.reduced.strides[0];
    const int32_t bytes = bytes_f32(args.type);
    float sums[4][4];
    UNROLL for (int32_t q = 0; q < 4; q++) EACH sums[q][j] = reduce_neutral_f32(args.op);
    if (out < args.outs) {
        const char *x = (const char *)args.x + reduce_place(&args.kept, out) * bytes;
        const int64_t end = (run + 1) * REDUCE_RUN < args.n ? (run + 1) * REDUCE_RUN : args.n;
        int64_t i = run * REDUCE_RUN + share;
        UNROLL_BY(2) for (; i + 3 * REDUCE_GROUP < end; i += REDUCE_LANES)
        {
            chunk_bits ahead[4];
            UNROLL for (int32_t q = 0; q < 4; q++) ahead[q] = chunk_load(x, (i + q * REDUCE_GROUP) * stride, bytes);
            UNROLL for (int32_t q = 0; q < 4; q++)
            {
                const chunk_f32 v = chunk_to_f32(ahead[q], args.type);
                if (args.op == REDUCE_SUM)
                    EACH sums[q][j] += v.v[j];
                else
                    EACH sums[q][j] = reduce_join_f32(args.op, sums[q][j], v.v[j]);
            }
        }
        UNROLL for (int32_t q = 0; q < 4; q++) if (i + q * REDUCE_GROUP < end)
        {
            const chunk_f32 v = chunk_to_f32(chunk_load(x, (i + q * REDUCE_GROUP) * stride, bytes), args.type);
            EACH sums[q][j] = reduce_join_f32(args.op, sums[q][j], v.v[j]);
        }
    }
    EACH
    {
        const float even = reduce_join_f32(args.op, sums[0][j], sums[2][j]);
        const float odd = reduce_join_f32(args.op, sums[1][j], sums[3][j]);
        sums[0][j] = reduce_join_f32(args.op, even, odd);
        AT(folded, 4 * thread + j) = sums[0][j];
    }
    barrier();
    for (int32_t s = REDUCE_GROUP / 2; s > 0; s /= 2) {
        if (share < s)
            EACH
            {
                sums[0][j] = reduce_join_f32(args.op, sums[0][j], AT(folded, 4 * (thread + s * REDUCE_GROUP) + j));
                AT(folded, 4 * thread + j) = sums[0][j];
            }
        barrier();
    }
    if (share == 0 && out < args.outs)
        EACH put_f32(&args, (out + j) * args.runs + run, sums[0][j]);
}
