/* Shared by the attention kernels: pieces of 8 elements from a page, and which keys a query sees. */
#ifndef WW_KERNELS_ATTENTION_ATTENTION_CACHE_H
#define WW_KERNELS_ATTENTION_ATTENTION_CACHE_H

#include "kernels/simt/simt.h"

#include "arithmetic/attention_window.h"
#include "kernels/attention/attention_args.h"

typedef struct attention_piece {
    float x[ATTENTION_LANES];
} attention_piece;

DEVICE attention_piece piece_of_f16(const uint16_t *from)
{
    const u32x4 words = load_u32x4((const uint32_t *)from);
    const uint32_t each[4] = {words.x, words.y, words.z, words.w};
    attention_piece piece;
    UNROLL for (int32_t i = 0; i < 4; i++)
    {
        piece.x[2 * i] = widen_f16((uint16_t)(each[i] & 0xffffu));
        piece.x[2 * i + 1] = widen_f16((uint16_t)(each[i] >> 16));
    }
    return piece;
}

DEVICE attention_piece piece_of_f32(const float *from)
{
    const f32x4 low = load_f32x4(from), high = load_f32x4(from + 4);
    const attention_piece piece = {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    return piece;
}

DEVICE attention_piece piece_of_q8_0(const int8_t *from, uint16_t scale)
{
    const uint64_t codes = *(const uint64_t *)from;
    const float d = widen_f16(scale);
    attention_piece piece;
    UNROLL for (int32_t i = 0; i < ATTENTION_LANES; i++) piece.x[i] = (float)(int8_t)(codes >> 8 * i) * d;
    return piece;
}

/* The 8 elements starting at index `place` of `elements`; `scale` is the index of their scale in `scales`. The type is a
 * constant where this is inlined. */
DEVICE attention_piece piece_at(int32_t type, const char *elements, int32_t place, const char *scales, int32_t scale)
{
    if (type == ATTENTION_F16)
        return piece_of_f16((const uint16_t *)elements + place);
    if (type == ATTENTION_F32)
        return piece_of_f32((const float *)elements + place);
    return piece_of_q8_0((const int8_t *)elements + place, ((const uint16_t *)scales)[scale]);
}

/* Keys and values of one head in one page. */
typedef struct attention_page {
    const char *keys, *values, *key_scales, *value_scales;
} attention_page;

DEVICE attention_page page_of(const attention_args *args, int32_t sequence, int32_t chunk, int32_t head)
{
    const uint64_t address = args->pages[sequence * args->pages_stride + chunk];
    const char *part = IN_GLOBAL(const char, (const char *)(uintptr_t)address) + args->layer.offset;
    attention_page page;
    page.keys = part + attention_keys_at(&args->layer, head);
    page.values = part + attention_values_at(&args->layer, head);
    page.key_scales = part + attention_key_scales_at(&args->layer, head);
    page.value_scales = part + attention_value_scales_at(&args->layer, head);
    return page;
}

/* Elements i .. i + 7 of key j, and of value j. */
DEVICE attention_piece key_piece(int32_t type, const attention_args *args, const attention_page *page, int32_t j, int32_t i)
{
    const int32_t size = args->layer.head_size;
    const int32_t scale = type == ATTENTION_Q8_0 ? attention_key_scale_place(size, j, i) : 0;
    return piece_at(type, page->keys, attention_key_place(size, j, i), page->key_scales, scale);
}

DEVICE attention_piece value_piece(int32_t type, const attention_args *args, const attention_page *page, int32_t j, int32_t i)
{
    const int32_t place = j * args->layer.head_size + i;
    return piece_at(type, page->values, place, page->value_scales, place / ATTENTION_BLOCK);
}

DEVICE attention_range seen_by(const attention_args *args, int64_t token)
{
    return attention_seen_around(&args->mask, args->positions[token], args->lengths[args->sequences[token]], args->keys_max);
}

DEVICE float *part_of(const attention_args *args, int64_t token, int32_t head, int32_t chunk)
{
    const int64_t query = (token - args->first_token) * args->heads + head;
    return args->parts + (query * args->chunks + chunk) * (ATTENTION_PART_SUMS + args->layer.head_size);
}

DEVICE float *result_of(const attention_args *args, int64_t token, int32_t head)
{
    return args->out + (token * args->heads + head) * args->layer.head_size;
}

/* Element i of a query's result, merged from its chunks; there are at least two. */
DEVICE float merged(const attention_args *args, int32_t head, const float *part, int32_t count, int32_t i)
{
    const int32_t apart = ATTENTION_PART_SUMS + args->layer.head_size;
    float highest = part[0], l = 0.0f, o = 0.0f;
    UNROLL_BY(4) for (int32_t c = 1; c < count; c++) highest = row_larger_f32(highest, part[c * apart]);
    UNROLL_BY(4) for (int32_t c = 0; c < count; c++)
    {
        const float f = row_exponential_f32(part[c * apart], highest);
        l = fma_f32(f, part[c * apart + 1], l);
        o = fma_f32(f, part[c * apart + ATTENTION_PART_SUMS + i], o);
    }
    return args->sinks ? attention_result_with_sink(o, l, highest, args->sinks[head]) : attention_result(o, l);
}

/* The same for a query with one chunk. */
DEVICE float result_of_one(const attention_args *args, int32_t head, float o, float l, float highest)
{
    return args->sinks ? attention_result_with_sink(o + 0.0f, l, highest, args->sinks[head]) : attention_result_of_one(o, l);
}

/* The largest over 32 lanes, returned in all of them. */
DEVICE float largest_of_32(float x)
{
    for (uint32_t mask = 16; mask > 0; mask /= 2)
        x = row_larger_f32(x, wave_shuffle_xor_f32(x, mask));
    return x;
}

/* The sum of 8 lanes, folded like accumulators (4, 2, 1), returned in all of them. */
DEVICE float fold_of_8(float x)
{
    x = x + wave_shuffle_xor_f32(x, 4);
    x = x + wave_shuffle_xor_f32(x, 2);
    return x + wave_shuffle_xor_f32(x, 1);
}

#endif
