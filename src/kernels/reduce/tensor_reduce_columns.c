/* Reductions of floats of up to 32 bits with adjacent results: a block takes 64 results and a chunk of 4096 elements of each
 * (reduce.h).
 *
 * Memory-bound, so the bytes in flight decide. A thread loads 16 bytes, next to those of its neighbours: four results of f32
 * for two of the 64 accumulators, or eight of a narrower type for one. All 64 are folded in shared memory. If a result has
 * several chunks, the last of its blocks to finish uses their results as the accumulators of the second round.
 */
#include "kernels/reduce/reduce_rounds.h"

enum {
    COLUMNS = REDUCE_COLUMNS,
    THREADS = REDUCE_COLUMNS_THREADS,
    WIDE_UNITS = COLUMNS / 4,
    WIDE_APART = THREADS / WIDE_UNITS, /* distance of the two accumulators of a thread */
    WIDE_PREFETCH = 4,
    NARROW_UNITS = COLUMNS / 8,
    NARROW_PREFETCH = 8,
    FOLD_GROUPS = THREADS / COLUMNS,
};

/* The block's part of the work. */
typedef struct columns_part {
    int64_t first_out, chunk, begin, end; /* elements of the chunk */
} columns_part;

DEVICE columns_part columns_part_of(const reduce_args *args)
{
    const int64_t blocks = (args->outs + COLUMNS - 1) / COLUMNS;
    columns_part part;
    part.chunk = (int64_t)block_index() / blocks;
    part.first_out = ((int64_t)block_index() - part.chunk * blocks) * COLUMNS;
    part.begin = part.chunk * REDUCE_CHUNK;
    part.end = part.begin + REDUCE_CHUNK < args->n ? part.begin + REDUCE_CHUNK : args->n;
    return part;
}

/* ---- accumulators -------------------------------------------------------------------------------------------------------- */

DEVICE float narrow_element(int32_t type, quad_bits bits, int32_t j)
{
    if (type == TYPE_F8E4M3)
        return widen_f8e4m3((uint8_t)(bits.word[j / 4] >> (8 * (j % 4))));
    const uint16_t half = (uint16_t)(bits.word[j / 2] >> (16 * (j % 2)));
    return type == TYPE_F16 ? widen_f16(half) : widen_bf16(half);
}

DEVICE quad_bits narrow_load(int32_t type, const char *x, int64_t at)
{
    return type == TYPE_F8E4M3 ? quad_load(x + at, 0, 2) : quad_load(x + 2 * at, 0, 4);
}

/* Joins elements of eight results, `stride` apart, to one accumulator of each result. Waits for the previous launch halfway. */
DEVICE void join_narrow(int32_t op, int32_t type, const reduce_args *args, const columns_part *part, bool *met, float *folded)
{
    const int32_t unit = (int32_t)thread_index() % NARROW_UNITS, lane = (int32_t)thread_index() / NARROW_UNITS;
    const int64_t out = part->first_out + 8 * unit, stride = args->reduced.strides[0];
    const int64_t middle = part->begin + (part->end - part->begin) / 2;
    float sums[8];
    UNROLL for (int32_t j = 0; j < 8; j++) sums[j] = reduce_neutral_f32(op);
    if (out < args->outs) {
        const char *x = (const char *)args->x + reduce_place(&args->kept, out) * bytes_f32(type);
        int64_t i = part->begin + lane;
        for (; i + (NARROW_PREFETCH - 1) * REDUCE_LANES < part->end; i += NARROW_PREFETCH * REDUCE_LANES) {
            quad_bits loaded[NARROW_PREFETCH];
            UNROLL for (int32_t a = 0; a < NARROW_PREFETCH; a++) loaded[a] =
                narrow_load(type, x, (i + a * REDUCE_LANES) * stride);
            UNROLL for (int32_t a = 0; a < NARROW_PREFETCH; a++) UNROLL for (int32_t j = 0; j < 8; j++) sums[j] =
                reduce_join_f32(op, sums[j], narrow_element(type, loaded[a], j));
            if (i >= middle)
                launches_meet(met);
        }
        UNROLL_BY(1) for (; i < part->end; i += REDUCE_LANES)
        {
            const quad_bits bits = narrow_load(type, x, i * stride);
            UNROLL for (int32_t j = 0; j < 8; j++) sums[j] = reduce_join_f32(op, sums[j], narrow_element(type, bits, j));
        }
    }
    UNROLL for (int32_t j = 0; j < 8; j++) AT(folded, lane * COLUMNS + 8 * unit + j) = sums[j];
}

/* The same for four f32 results and two accumulators of each. */
DEVICE void join_wide(int32_t op, const reduce_args *args, const columns_part *part, float *folded)
{
    const int32_t unit = (int32_t)thread_index() % WIDE_UNITS, lane = (int32_t)thread_index() / WIDE_UNITS;
    const int64_t out = part->first_out + 4 * unit, stride = args->reduced.strides[0];
    float sums[2][4];
    UNROLL for (int32_t h = 0; h < 2; h++) EACH sums[h][j] = reduce_neutral_f32(op);
    if (out < args->outs) {
        const float *x = (const float *)args->x + reduce_place(&args->kept, out);
        int64_t i = part->begin + lane;
        for (; i + (2 * WIDE_PREFETCH - 1) * WIDE_APART < part->end; i += WIDE_PREFETCH * REDUCE_LANES) {
            quad_bits loaded[2 * WIDE_PREFETCH];
            UNROLL for (int32_t a = 0; a < 2 * WIDE_PREFETCH; a++) loaded[a] = quad_load(x, (i + a * WIDE_APART) * stride, 4);
            UNROLL for (int32_t a = 0; a < 2 * WIDE_PREFETCH; a++) EACH sums[a % 2][j] =
                reduce_join_f32(op, sums[a % 2][j], canon_bits_float(loaded[a].word[j]));
        }
        UNROLL_BY(1) for (; i < part->end; i += REDUCE_LANES)
        {
            UNROLL for (int32_t h = 0; h < 2; h++) if (i + h * WIDE_APART < part->end)
            {
                const quad_bits bits = quad_load(x, (i + h * WIDE_APART) * stride, 4);
                EACH sums[h][j] = reduce_join_f32(op, sums[h][j], canon_bits_float(bits.word[j]));
            }
        }
    }
    UNROLL for (int32_t h = 0; h < 2; h++) EACH AT(folded, (lane + h * WIDE_APART) * COLUMNS + 4 * unit + j) = sums[h][j];
}

/* ---- folding ------------------------------------------------------------------------------------------------------------- */

/* Folds the 64 accumulators of each result; thread t < 64 returns result t. `folded` may be overwritten afterwards. */
DEVICE float fold_columns(int32_t op, float *folded)
{
    const int32_t column = (int32_t)thread_index() % COLUMNS, group = (int32_t)thread_index() / COLUMNS;
    float own[REDUCE_LANES / FOLD_GROUPS], last[FOLD_GROUPS];
    barrier();
    UNROLL for (int32_t q = 0; q < REDUCE_LANES / FOLD_GROUPS; q++) own[q] =
        AT(folded, (group + q * FOLD_GROUPS) * COLUMNS + column);
    UNROLL for (int32_t s = REDUCE_LANES / FOLD_GROUPS / 2; s > 0; s /= 2) UNROLL for (int32_t q = 0; q < s; q++) own[q] =
        reduce_join_f32(op, own[q], own[q + s]);
    barrier();
    AT(folded, group * COLUMNS + column) = own[0];
    barrier();
    UNROLL for (int32_t g = 0; g < FOLD_GROUPS; g++) last[g] = AT(folded, g * COLUMNS + column);
    UNROLL for (int32_t s = FOLD_GROUPS / 2; s > 0; s /= 2) UNROLL for (int32_t g = 0; g < s; g++) last[g] =
        reduce_join_f32(op, last[g], last[g + s]);
    barrier();
    return last[0];
}

#define JOIN_COLUMNS(op)                                                                                                       \
    if (args.type == TYPE_F32)                                                                                                 \
        join_wide(op, &args, &part, folded);                                                                                   \
    else if (args.type == TYPE_F16)                                                                                            \
        join_narrow(op, TYPE_F16, &args, &part, &met, folded);                                                                 \
    else if (args.type == TYPE_BF16)                                                                                           \
        join_narrow(op, TYPE_BF16, &args, &part, &met, folded);                                                                \
    else                                                                                                                       \
        join_narrow(op, TYPE_F8E4M3, &args, &part, &met, folded);

KERNEL(tensor_reduce_columns_vectors, reduce_args, REDUCE_COLUMNS_THREADS)
{
    SHARED(float, folded, REDUCE_LANES *COLUMNS);
    SHARED(uint32_t, ticket, 1);
    const columns_part part = columns_part_of(&args);
    const int32_t thread = (int32_t)thread_index();
    const bool mine = thread < COLUMNS && part.first_out + thread < args.outs;
    bool met = false;
    if (!args.apart)
        launches_meet(&met);
    if (args.op == REDUCE_SUM) {
        JOIN_COLUMNS(REDUCE_SUM)
    } else {
        JOIN_COLUMNS(args.op)
    }
    float result = fold_columns(args.op, folded);
    launches_meet(&met);
    if (args.ready != NULL) {
        if (mine)
            between_put_f32(args.between, (part.first_out + thread) * args.chunks + part.chunk, result);
        if (!reduce_is_last(args.ready + part.first_out / COLUMNS, (uint32_t)args.chunks, ticket))
            return;
        for (int32_t i = thread; i < REDUCE_LANES * COLUMNS; i += THREADS) {
            const int64_t chunk = i / COLUMNS, out = part.first_out + i % COLUMNS;
            float sum = reduce_neutral_f32(args.op);
            if (chunk < args.chunks && out < args.outs)
                sum = reduce_join_f32(args.op, sum, between_f32(args.between, out * args.chunks + chunk));
            AT(folded, i) = sum;
        }
        result = fold_columns(args.op, folded);
        if (mine)
            put_f32(&args, part.first_out + thread, result);
    } else if (mine) {
        put_f32(&args, (part.first_out + thread) * args.chunks + part.chunk, result);
    }
}
