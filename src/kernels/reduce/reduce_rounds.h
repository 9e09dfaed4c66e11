/* Shared by the reduction kernels: joining across lanes, writing results, and the rounds after the first. One block does those
 * rounds, either in another launch or at the end of the first, where the last block to finish sees all results.
 */
#ifndef WW_KERNELS_REDUCE_REDUCE_ROUNDS_H
#define WW_KERNELS_REDUCE_REDUCE_ROUNDS_H

#include "kernels/elementwise/elements.h"

#include "kernels/reduce/row_arguments.h"
#include "kernels/simt/last_block.h"

#define shuffle_f32(value, mask) wave_shuffle_xor_f32(value, mask)
#define shuffle_f64(value, mask) canon_bits_double(wave_shuffle_xor_u64(canon_double_bits(value), (mask)))
#define shuffle_i64(value, mask) ((int64_t)wave_shuffle_xor_u64((uint64_t)(value), (mask)))

#define divided_f32(value, by) ((value) / (float)(by))
#define divided_f64(value, by) ((value) / (double)(by))
#define divided_i64(value, by) (value)

/* Same as block_is_last(); resets `ready` to 0. */
DEVICE bool reduce_is_last(uint32_t *ready, uint32_t blocks, uint32_t *ticket)
{
    const bool last = block_is_last(ready, blocks, ticket);
    if (last && thread_index() == 0)
        atomic_store_u32(ready, 0);
    return last;
}

/* Stores a result for the next round, as bits, because blocks of the same launch may read it. */
DEVICE void between_put_f32(void *between, int64_t at, float value)
{
    atomic_store_u32((uint32_t *)between + at, canon_float_bits(value));
}

DEVICE void between_put_f64(void *between, int64_t at, double value)
{
    atomic_store_u64((uint64_t *)between + at, canon_double_bits(value));
}

DEVICE void between_put_i64(void *between, int64_t at, int64_t value)
{
    atomic_store_u64((uint64_t *)between + at, (uint64_t)value);
}

#define between_f32(between, at) canon_bits_float(atomic_load_u32((const uint32_t *)(between) + (at)))
#define between_f64(between, at) canon_bits_double(atomic_load_u64((const uint64_t *)(between) + (at)))
#define between_i64(between, at) ((int64_t)atomic_load_u64((const uint64_t *)(between) + (at)))

enum { REST_BYTES = 128, REST_GROUPS = REDUCE_THREADS / REDUCE_LANES };

/* Joins 64 accumulators, one per thread, in the canonical order. */
#define REST_FOLD(kind, sum)                                                                                                   \
    do {                                                                                                                       \
        AT(folds, thread) = sum;                                                                                               \
        barrier();                                                                                                             \
        sum = reduce_join_##kind(op, sum, AT(folds, thread ^ 32));                                                             \
        UNROLL for (uint32_t mask_ = 16; mask_ > 0; mask_ /= 2) sum = reduce_join_##kind(op, sum, shuffle_##kind(sum, mask_)); \
        barrier();                                                                                                             \
    } while (0)

/* put_KIND writes a result. rest_KIND reduces the `n` numbers in `x`, at most REDUCE_FINISH_CHUNKS chunks. 64 threads reduce a
 * chunk, one accumulator each, with many loads in flight; the results of chunks stay in shared memory. Called by a block of
 * REDUCE_THREADS; thread 0 gets the result. chunk_ends_KIND stores the result of a chunk, `value`, as element `at` of this
 * round, if `mine`. For a single result, the last block then does the rest. Called by all threads. */
#define REDUCE_ROUNDS(T, kind)                                                                                                 \
    DEVICE void put_##kind(const reduce_args *args, int64_t at, T value)                                                       \
    {                                                                                                                          \
        const T result = args->divide_by ? divided_##kind(value, args->divide_by) : value;                                     \
        bits_put(args->out, at, type_bytes(args->to), kind##_to_bits(result, args->to));                                       \
    }                                                                                                                          \
    DEVICE T rest_##kind(int32_t op, const void *x, int64_t first, int32_t n, T *folds, T *results)                            \
    {                                                                                                                          \
        enum { PREFETCH = REST_BYTES / sizeof(T) };                                                                            \
        const int32_t thread = (int32_t)thread_index(), chunks = (n + REDUCE_CHUNK - 1) / REDUCE_CHUNK;                        \
        const T neutral = reduce_neutral_##kind(op);                                                                           \
        T sum = neutral;                                                                                                       \
        for (int32_t base = 0; base < chunks; base += REST_GROUPS) {                                                           \
            const int32_t chunk = base + thread / REDUCE_LANES;                                                                \
            const int32_t end = (chunk + 1) * REDUCE_CHUNK < n ? (chunk + 1) * REDUCE_CHUNK : n;                               \
            sum = neutral;                                                                                                     \
            int32_t i = chunk * REDUCE_CHUNK + thread % REDUCE_LANES;                                                          \
            for (; i + (PREFETCH - 1) * REDUCE_LANES < end; i += PREFETCH * REDUCE_LANES) {                                    \
                T loaded[PREFETCH];                                                                                            \
                UNROLL for (int32_t a = 0; a < PREFETCH; a++) loaded[a] = between_##kind(x, first + i + a * REDUCE_LANES);     \
                UNROLL for (int32_t a = 0; a < PREFETCH; a++) sum = reduce_join_##kind(op, sum, loaded[a]);                    \
            }                                                                                                                  \
            UNROLL_BY(1) for (; i < end; i += REDUCE_LANES) sum = reduce_join_##kind(op, sum, between_##kind(x, first + i));   \
            REST_FOLD(kind, sum);                                                                                              \
            if (thread % REDUCE_LANES == 0 && chunk < chunks)                                                                  \
                AT(results, chunk) = sum;                                                                                      \
        }                                                                                                                      \
        barrier();                                                                                                             \
        if (chunks > 1) {                                                                                                      \
            sum = neutral;                                                                                                     \
            for (int32_t i = thread; thread < REDUCE_LANES && i < chunks; i += REDUCE_LANES)                                   \
                sum = reduce_join_##kind(op, sum, AT(results, i));                                                             \
            REST_FOLD(kind, sum);                                                                                              \
        }                                                                                                                      \
        return sum;                                                                                                            \
    }                                                                                                                          \
    DEVICE void chunk_ends_##kind(const reduce_args *args, bool mine, int64_t at, T value, T *folds, T *results,               \
                                  uint32_t *ticket)                                                                            \
    {                                                                                                                          \
        if (args->ready == NULL) {                                                                                             \
            if (mine)                                                                                                          \
                put_##kind(args, at, value);                                                                                   \
            return;                                                                                                            \
        }                                                                                                                      \
        if (mine)                                                                                                              \
            between_put_##kind(args->between, at, value);                                                                      \
        if (reduce_is_last(args->ready, block_count(), ticket)) {                                                              \
            const T sum = rest_##kind(args->op, args->between, 0, (int32_t)args->chunks, folds, results);                      \
            if (thread_index() == 0)                                                                                           \
                put_##kind(args, 0, sum);                                                                                      \
        }                                                                                                                      \
    }

REDUCE_ROUNDS(float, f32)
REDUCE_ROUNDS(double, f64)
REDUCE_ROUNDS(int64_t, i64)

#endif
