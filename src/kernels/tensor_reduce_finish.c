/* The rounds of a reduction after the first, in one launch: a block for each result (reduce.h).
 *
 * What the first round left, a number for each run of 4096 elements, lies side by side. 64 threads take a run of those, one
 * accumulator each, with many loads under way; what comes out is at most a run, and stays in shared memory.
 */
#include "kernels/elements.h"

#include "kernels/row_arguments.h"

#define shuffle_f32(value, mask) wave_shuffle_xor_f32(value, mask)
#define shuffle_f64(value, mask) canon_bits_double(wave_shuffle_xor_u64(canon_double_bits(value), (mask)))
#define shuffle_i64(value, mask) ((int64_t)wave_shuffle_xor_u64((uint64_t)(value), (mask)))

#define divided_f32(value, by) ((value) / (float)(by))
#define divided_f64(value, by) ((value) / (double)(by))
#define divided_i64(value, by) (value)

/* Joins 64 accumulators, one a thread, in the order of folding. */
#define FOLD(kind, sum)                                                                                                        \
    do {                                                                                                                       \
        AT(folds, thread) = sum;                                                                                               \
        barrier();                                                                                                             \
        sum = reduce_join_##kind(args.op, sum, AT(folds, thread ^ 32));                                                        \
        UNROLL for (uint32_t mask_ = 16; mask_ > 0; mask_ /= 2) sum =                                                          \
            reduce_join_##kind(args.op, sum, shuffle_##kind(sum, mask_));                                                      \
        barrier();                                                                                                             \
    } while (0)

enum { AHEAD = 16, GROUPS = REDUCE_THREADS / REDUCE_LANES };

#define REDUCE_FINISH(T, kind)                                                                                                 \
    KERNEL(tensor_reduce_finish_##kind, reduce_args, REDUCE_THREADS)                                                           \
    {                                                                                                                          \
        SHARED(T, folds, REDUCE_THREADS);                                                                                      \
        SHARED(T, results, REDUCE_FINISH_RUNS);                                                                                \
        const int32_t thread = (int32_t)thread_index();                                                                        \
        const int32_t n = (int32_t)args.n, runs = (int32_t)args.runs;                                                          \
        const T *x = (const T *)args.x + (int64_t)block_index() * n;                                                           \
        const T neutral = reduce_neutral_##kind(args.op);                                                                      \
        T sum = neutral;                                                                                                       \
        for (int32_t base = 0; base < runs; base += GROUPS) {                                                                  \
            const int32_t run = base + thread / REDUCE_LANES;                                                                  \
            const int32_t end = (run + 1) * REDUCE_RUN < n ? (run + 1) * REDUCE_RUN : n;                                       \
            sum = neutral;                                                                                                     \
            for (int32_t i = run * REDUCE_RUN + thread % REDUCE_LANES; i < end; i += AHEAD * REDUCE_LANES) {                   \
                T ahead[AHEAD];                                                                                                \
                UNROLL for (int32_t a = 0; a < AHEAD; a++) ahead[a] =                                                          \
                    i + a * REDUCE_LANES < end ? x[i + a * REDUCE_LANES] : neutral;                                            \
                UNROLL for (int32_t a = 0; a < AHEAD; a++) if (i + a * REDUCE_LANES < end) sum =                               \
                    reduce_join_##kind(args.op, sum, ahead[a]);                                                                \
            }                                                                                                                  \
            FOLD(kind, sum);                                                                                                   \
            if (thread % REDUCE_LANES == 0 && run < runs)                                                                      \
                AT(results, run) = sum;                                                                                        \
        }                                                                                                                      \
        barrier();                                                                                                             \
        if (runs > 1) {                                                                                                        \
            sum = neutral;                                                                                                     \
            for (int32_t i = thread; thread < REDUCE_LANES && i < runs; i += REDUCE_LANES)                                     \
                sum = reduce_join_##kind(args.op, sum, AT(results, i));                                                        \
            FOLD(kind, sum);                                                                                                   \
        }                                                                                                                      \
        if (thread == 0) {                                                                                                     \
            const T result = args.divide_by ? divided_##kind(sum, args.divide_by) : sum;                                       \
            bits_put(args.out, block_index(), type_bytes(args.to), kind##_to_bits(result, args.to));                           \
        }                                                                                                                      \
    }

REDUCE_FINISH(float, f32)
REDUCE_FINISH(double, f64)
REDUCE_FINISH(int64_t, i64)
