/* Rounds keys and values to the cache's type and puts them into its pages: used by attention_store for any tokens, and by
 * attention_chunk for its own token. */
#ifndef WW_KERNELS_ATTENTION_ATTENTION_PUT_H
#define WW_KERNELS_ATTENTION_ATTENTION_PUT_H

#include "kernels/simt/simt.h"

#include "arithmetic/blocks/encode.h"
#include "kernels/attention/attention_args.h"

/* The source and the destination of a head of a key or a value. */
typedef struct stored_head {
    const float *from;
    const float *cosines, *sines;
    char *part; /* of the page */
    int32_t head, key;
    int32_t values, rope;
} stored_head;

DEVICE stored_head stored_head_of(const attention_store_args *args, int64_t token, int32_t head)
{
    const int32_t kv_heads = args->layer.kv_heads, position = args->positions[token];
    const uint64_t page = args->pages[args->sequences[token] * args->pages_stride + position / ATTENTION_CHUNK];
    const int64_t row = (position < args->rope_positions ? position : args->rope_positions - 1) * args->half;
    stored_head h;
    h.values = head >= kv_heads;
    h.head = h.values ? head - kv_heads : head;
    h.key = position % ATTENTION_CHUNK;
    h.rope = h.values ? ATTENTION_ROPE_NONE : args->rope;
    h.from = (h.values ? args->v + token * args->v_stride : args->k + token * args->k_stride) +
             (int64_t)h.head * args->layer.head_size;
    h.cosines = args->cosines + row;
    h.sines = args->sines + row;
    h.part = IN_GLOBAL(char, (char *)(uintptr_t)page) + args->layer.offset;
    return h;
}

DEVICE float element_of(const attention_store_args *args, const stored_head *h, int32_t i)
{
    return attention_roped(h->from, i, h->rope, args->half, h->cosines, h->sines);
}

/* The place of the first of elements i .. i + 7. */
DEVICE int32_t place_of(const attention_store_args *args, const stored_head *h, int32_t i)
{
    const int32_t size = args->layer.head_size;
    return h->values ? h->key * size + i : attention_key_place(size, h->key, i);
}

/* Stores piece `piece` of the token; pieces of keys come first. */
DEVICE void put_piece(const attention_store_args *args, int64_t token, int32_t piece)
{
    const int32_t pieces = args->layer.head_size / ATTENTION_LANES, first = piece % pieces * ATTENTION_LANES;
    const stored_head h = stored_head_of(args, token, piece / pieces);
    char *to = h.part + (h.values ? attention_values_at(&args->layer, h.head) : attention_keys_at(&args->layer, h.head));
    const int32_t place = place_of(args, &h, first);
    for (int32_t i = 0; i < ATTENTION_LANES; i++) {
        const float x = element_of(args, &h, first + i);
        if (args->layer.type == ATTENTION_F32)
            ((float *)to)[place + i] = x;
        else
            ((uint16_t *)to)[place + i] = narrow_f16(x);
    }
}

/* Stores only element i of a head; not for q8_0. */
DEVICE void put_element(const attention_store_args *args, const stored_head *h, int32_t i)
{
    char *to = h->part + (h->values ? attention_values_at(&args->layer, h->head) : attention_keys_at(&args->layer, h->head));
    const int32_t place = place_of(args, h, i / ATTENTION_LANES * ATTENTION_LANES) + i % ATTENTION_LANES;
    const float x = element_of(args, h, i);
    if (args->layer.type == ATTENTION_F32)
        ((float *)to)[place] = x;
    else
        ((uint16_t *)to)[place] = narrow_f16(x);
}

/* Stores block `block` of the token's blocks of 32, element by element, as encode_q8_0() does. */
DEVICE void put_block(const attention_store_args *args, int64_t token, int32_t block)
{
    const int32_t size = args->layer.head_size, blocks = size / ATTENTION_BLOCK, first = block % blocks * ATTENTION_BLOCK;
    const stored_head h = stored_head_of(args, token, block / blocks);
    int8_t *to =
        (int8_t *)(h.part + (h.values ? attention_values_at(&args->layer, h.head) : attention_keys_at(&args->layer, h.head)));
    uint16_t *scales = (uint16_t *)(h.part + (h.values ? attention_value_scales_at(&args->layer, h.head)
                                                       : attention_key_scales_at(&args->layer, h.head)));
    int32_t largest = 0;
    for (int32_t i = 0; i < ATTENTION_BLOCK; i++) {
        const int32_t bits = magnitude_bits(element_of(args, &h, first + i));
        largest = bits > largest ? bits : largest;
    }
    const float d = canon_bits_float((uint32_t)largest) / 127.0f, inverse = block_inverse(d);
    const uint16_t scale = (uint16_t)block_f16_from_f32(d);
    const int bad = (largest >= BLOCK_INFINITE) | block_f16_bad(scale);
    scales[h.values ? (h.key * size + first) / ATTENTION_BLOCK : attention_key_scale_place(size, h.key, first)] =
        bad ? (uint16_t)ATTENTION_F16_NAN : scale;
    for (int32_t i = 0; i < ATTENTION_BLOCK; i++) {
        const int32_t code = bad ? 0 : block_round_away(element_of(args, &h, first + i) * inverse);
        to[place_of(args, &h, first + i / ATTENTION_LANES * ATTENTION_LANES) + i % ATTENTION_LANES] = (int8_t)code;
    }
}

#endif
