/* Stores keys and values in the pages of a cache, and rotates queries in place. A thread has a pair of elements of a query, or
 * a piece of 8 elements of a key or value; for q8_0, four such pieces, which share a scale.
 */
#include "kernels/attention/attention_put.h"

DEVICE void turn_pair(const attention_store_args *args, float *head, int32_t pair, const float *cosines, const float *sines)
{
    const int32_t halves = args->rope == ATTENTION_ROPE_HALVES;
    float *a = head + (halves ? pair : 2 * pair), *b = head + (halves ? pair + args->half : 2 * pair + 1);
    /* Without queries there are no pairs. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    const float first = row_turn_first_f32(*a, *b, cosines[pair], sines[pair]);
    const float second = row_turn_second_f32(*a, *b, cosines[pair], sines[pair]);
    *a = first;
    *b = second;
}

/* Items of a token: pairs of its queries, then pieces or blocks of its keys and values. */
DEVICE void store_items(const attention_store_args *args, int32_t q8_0)
{
    const int32_t size = args->layer.head_size;
    launches_wait();
    launches_next();
    const int32_t pairs = args->rope != ATTENTION_ROPE_NONE && args->q ? args->heads * args->half : 0;
    const int32_t each = pairs + 2 * args->layer.kv_heads * (size / (q8_0 ? ATTENTION_BLOCK : ATTENTION_LANES));
    for (int64_t item = (int64_t)block_index() * ATTENTION_THREADS + thread_index(); item < args->tokens * each;
         item += (int64_t)block_count() * ATTENTION_THREADS) {
        const int64_t token = item / each;
        const int32_t work = (int32_t)(item - token * each);
        if (work < pairs) {
            const int32_t position = args->positions[token];
            const int64_t row = (position < args->rope_positions ? position : args->rope_positions - 1) * args->half;
            float *head = args->q + token * args->q_stride + (int64_t)(work / args->half) * size;
            turn_pair(args, head, work % args->half, args->cosines + row, args->sines + row);
        } else if (q8_0) {
            put_block(args, token, work - pairs);
        } else {
            put_piece(args, token, work - pairs);
        }
    }
}

KERNEL(attention_store, attention_store_args, ATTENTION_THREADS)
{
    store_items(&args, 0);
}

KERNEL(attention_store_q8_0, attention_store_args, ATTENTION_THREADS)
{
    store_items(&args, 1);
}
