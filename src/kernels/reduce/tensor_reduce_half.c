/* Reductions of rows of 16-bit floats in canonical order (reduce.h), 16 bytes per load: 8 lanes reduce a chunk of 4096, eight
 * accumulators each, with half as many loads as tensor_reduce.c, which loads 8 bytes. Row lengths are multiples of 64.
 */
#include "kernels/reduce/reduce_rounds.h"

enum { PREFETCH = 8, OWN = REDUCE_LANES / REDUCE_HALF_GROUP, GROUP = REDUCE_HALF_GROUP };

#define EACH_OWN UNROLL for (int32_t j = 0; j < OWN; j++)

DEVICE void join_unit(int32_t op, int32_t type, u32x4 unit, float *sums)
{
    const uint32_t words[4] = {unit.x, unit.y, unit.z, unit.w};
    EACH_OWN
    {
        const uint32_t half = words[j / 2] >> (16 * (j % 2));
        sums[j] = reduce_join_f32(op, sums[j], type == TYPE_F16 ? widen_f16((uint16_t)half) : widen_bf16((uint16_t)half));
    }
}

/* Joins `count` steps of 64 elements; `x` is the lane's first. It waits for the previous launch halfway. From there on the next
 * launch may also start, so it has loads in flight when this one ends. */
DEVICE void join_row(int32_t op, int32_t type, const uint16_t *x, int32_t count, bool *met, float *sums)
{
    int32_t i = 0;
    for (; i + PREFETCH <= count; i += PREFETCH) {
        u32x4 loaded[PREFETCH];
        UNROLL for (int32_t a = 0; a < PREFETCH; a++) loaded[a] =
            load_u32x4((const uint32_t *)(const void *)(x + (i + a) * REDUCE_LANES));
        UNROLL for (int32_t a = 0; a < PREFETCH; a++) join_unit(op, type, loaded[a], sums);
        if (2 * i >= count)
            launches_meet(met);
    }
    UNROLL_BY(1)
    for (; i < count; i++)
        join_unit(op, type, load_u32x4((const uint32_t *)(const void *)(x + i * REDUCE_LANES)), sums);
}

#define JOIN_TYPES(op)                                                                                                         \
    if (args.type == TYPE_F16)                                                                                                 \
        join_row(op, TYPE_F16, x, count, &met, sums);                                                                          \
    else                                                                                                                       \
        join_row(op, TYPE_BF16, x, count, &met, sums);

KERNEL(tensor_reduce_rows_half, reduce_args, REDUCE_THREADS)
{
    SHARED(float, folds, REDUCE_THREADS);
    SHARED(float, results, REDUCE_FINISH_CHUNKS);
    SHARED(uint32_t, ticket, 1);
    const int64_t item = (int64_t)block_index() * (REDUCE_THREADS / GROUP) + thread_index() / GROUP;
    const int64_t out = item / args.chunks, chunk = item - out * args.chunks, left = args.n - chunk * REDUCE_CHUNK;
    const bool here = out < args.outs;
    const int32_t count = here ? (int32_t)(left < REDUCE_CHUNK ? left : REDUCE_CHUNK) / REDUCE_LANES : 0;
    const int64_t place = here ? reduce_place(&args.kept, out) + chunk * REDUCE_CHUNK + OWN * (thread_index() % GROUP) : 0;
    const uint16_t *x = (const uint16_t *)args.x + place;
    float sums[OWN];
    EACH_OWN sums[j] = reduce_neutral_f32(args.op);
    bool met = false;
    if (!args.apart)
        launches_meet(&met);
    if (args.op == REDUCE_SUM) {
        JOIN_TYPES(REDUCE_SUM)
    } else if (args.op == REDUCE_MAX) {
        JOIN_TYPES(REDUCE_MAX)
    } else {
        JOIN_TYPES(args.op)
    }
    UNROLL for (uint32_t mask = GROUP / 2; mask > 0; mask /= 2) EACH_OWN
    {
        const float other = wave_shuffle_xor_f32(sums[j], mask);
        sums[j] = reduce_join_f32(args.op, sums[j], other);
    }
    UNROLL for (int32_t s = OWN / 2; s > 0; s /= 2) UNROLL for (int32_t j = 0; j < s; j++) sums[j] =
        reduce_join_f32(args.op, sums[j], sums[j + s]);
    launches_meet(&met);
    chunk_ends_f32(&args, here && thread_index() % GROUP == 0, item, sums[0], folds, results, ticket);
}
