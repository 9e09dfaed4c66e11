/* The rounds of a reduction after the first, in one launch: a block for each result (reduce.h). What the first round left, a
 * number for each chunk of 4096 elements, lies side by side.
 */
#include "kernels/reduce/reduce_rounds.h"

#define REDUCE_FINISH(T, kind)                                                                                                 \
    KERNEL(tensor_reduce_finish_##kind, reduce_args, REDUCE_THREADS)                                                           \
    {                                                                                                                          \
        SHARED(T, folds, REDUCE_THREADS);                                                                                      \
        SHARED(T, results, REDUCE_FINISH_CHUNKS);                                                                              \
        const T sum = rest_##kind(args.op, args.x, (int64_t)block_index() * args.n, (int32_t)args.n, folds, results);          \
        if (thread_index() == 0)                                                                                               \
            put_##kind(&args, block_index(), sum);                                                                             \
    }

REDUCE_FINISH(float, f32)
REDUCE_FINISH(double, f64)
REDUCE_FINISH(int64_t, i64)
