/* Keys and values into the pages of a cache, and queries rotated in place. A thread has a pair of elements of a query, or 32
 * elements of a key or a value: what q8_0 gives one scale.
 */
#include "kernels/simt/simt.h"

#include "arithmetic/blocks/encode.h"
#include "kernels/attention/attention_args.h"

DEVICE void turn_pair(const attention_store_args *args, float *head, int32_t pair, const float *cosines, const float *sines)
{
    const int32_t halves = args->rope == ATTENTION_ROPE_HALVES;
    float *a = head + (halves ? pair : 2 * pair), *b = head + (halves ? pair + args->half : 2 * pair + 1);
    const float first = row_turn_first_f32(*a, *b, cosines[pair], sines[pair]);
    const float second = row_turn_second_f32(*a, *b, cosines[pair], sines[pair]);
    *a = first;
    *b = second;
}

DEVICE void put_q8_0(const attention_store_args *args, char *part, const float *x, int32_t head, int32_t key, int32_t first,
                     int32_t values)
{
    const int32_t size = args->layer.head_size;
    block_q8_0 block;
    uint16_t scale = ATTENTION_F16_NAN;
    const int bad = encode_q8_0(x, &block);
    if (!bad)
        scale = (uint16_t)block.d;
    const int32_t place = values ? (key * size + first) / ATTENTION_BLOCK : attention_key_scale_place(size, key, first);
    uint16_t *scales = (uint16_t *)(part + (values ? attention_value_scales_at(&args->layer, head)
                                                   : attention_key_scales_at(&args->layer, head)));
    int8_t *to = (int8_t *)(part + (values ? attention_values_at(&args->layer, head) : attention_keys_at(&args->layer, head)));
    scales[place] = scale;
    UNROLL for (int32_t i = 0; i < ATTENTION_BLOCK; i++)
    {
        const int32_t piece = first + i / ATTENTION_LANES * ATTENTION_LANES;
        const int32_t at = values ? key * size + first + i : attention_key_place(size, key, piece) + i % ATTENTION_LANES;
        to[at] = bad ? (int8_t)0 : block.codes[i];
    }
}

/* Elements [first, end) of a head, `end` at most 32 further, one by one. */
DEVICE void put_floats(const attention_store_args *args, char *part, const float *x, int32_t head, int32_t key, int32_t first,
                       int32_t values)
{
    const int32_t size = args->layer.head_size;
    char *to = part + (values ? attention_values_at(&args->layer, head) : attention_keys_at(&args->layer, head));
    UNROLL for (int32_t i = 0; i < ATTENTION_BLOCK; i++)
    {
        const int32_t element = first + i, piece = element / ATTENTION_LANES * ATTENTION_LANES;
        if (element >= size)
            continue;
        const int32_t at = values ? key * size + element : attention_key_place(size, key, piece) + element - piece;
        if (args->layer.type == ATTENTION_F32)
            ((float *)to)[at] = x[i];
        else
            ((uint16_t *)to)[at] = narrow_f16(x[i]);
    }
}

/* Elements first .. first + 31 of a key, or of a value: number `head` of the token's. */
DEVICE void put_block(const attention_store_args *args, int64_t token, int32_t head, int32_t first, int32_t values)
{
    const int32_t size = args->layer.head_size, position = args->positions[token];
    const uint64_t page = args->pages[args->sequences[token] * args->pages_stride + position / ATTENTION_CHUNK];
    char *part = IN_GLOBAL(char, (char *)(uintptr_t)page) + args->layer.offset;
    const int64_t row = position < args->rope_positions ? position : args->rope_positions - 1;
    const float *from = (values ? args->v + token * args->v_stride : args->k + token * args->k_stride) + (int64_t)head * size;
    const int32_t rope = values ? ATTENTION_ROPE_NONE : args->rope;
    float x[ATTENTION_BLOCK];
    UNROLL for (int32_t i = 0; i < ATTENTION_BLOCK; i++) x[i] =
        first + i < size ? attention_roped(from, first + i, rope, args->half, args->cosines + row * args->half,
                                           args->sines + row * args->half)
                         : 0.0f;
    if (args->layer.type == ATTENTION_Q8_0)
        put_q8_0(args, part, x, head, position % ATTENTION_CHUNK, first, values);
    else
        put_floats(args, part, x, head, position % ATTENTION_CHUNK, first, values);
}

KERNEL(attention_store, attention_store_args, ATTENTION_THREADS)
{
    const int32_t size = args.layer.head_size, blocks = (size + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK;
    const int32_t pairs = args.rope != ATTENTION_ROPE_NONE && args.q ? args.heads * args.half : 0;
    const int32_t each = pairs + 2 * args.layer.kv_heads * blocks;
    for (int64_t item = (int64_t)block_index() * ATTENTION_THREADS + thread_index(); item < args.tokens * each;
         item += (int64_t)block_count() * ATTENTION_THREADS) {
        const int64_t token = item / each;
        const int32_t work = (int32_t)(item - token * each);
        if (work < pairs) {
            const int32_t position = args.positions[token];
            const int64_t row = (position < args.rope_positions ? position : args.rope_positions - 1) * args.half;
            float *head = args.q + token * args.q_stride + (int64_t)(work / args.half) * size;
            turn_pair(&args, head, work % args.half, args.cosines + row, args.sines + row);
            continue;
        }
        const int32_t block = work - pairs, head = block / blocks % args.layer.kv_heads;
        put_block(&args, token, head, block % blocks * ATTENTION_BLOCK, block / blocks >= args.layer.kv_heads);
    }
}
