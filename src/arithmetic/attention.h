/* Attention: what it computes, to the bit, and how keys and values lie in memory. Shared by CPU code and kernels.
 *
 * A query of head h at position p sees keys [first, end) of its sequence: all of them, or with a causal mask those up to p, and
 * with a window the last `window` of these. Chunk c is positions 256c to 256c + 255, whatever the window, batch or split, and
 * key j of a chunk is position 256c + j. For each chunk with at least one visible key:
 *
 *     s_j = scale * sum of q_i k_ji      8 accumulators from +0: element i goes to number i mod 8 by fma, in increasing i; then
 *                                        number a takes in number a + 4, a + 2, a + 1; the product with scale is rounded once
 *                                        with a cap c: s_j becomes c * tanh(s_j / c)
 *                                        with a slope a of the head (ALiBi): s_j becomes fma(-a, |p - 256c - j|, s_j)
 *     m_c = the largest s_j
 *     p_j = row_exponential_f32(s_j, m_c)
 *     l_c = sum of p_j, o_c = sum of p_j v_j     again 8 accumulators: key j goes to number j mod 8; masked keys are skipped
 *
 * With m the largest m_c, and c ascending: f = row_exponential_f32(m_c, m), l = fma(f, l_c, l), o = fma(f, o_c, o), both from
 * +0. The result is o / l. A head with a sink s, a score without a value, uses m' = the larger of m and s and f =
 * row_exponential_f32(m, m'); its result is (f o) / fma(f, l, row_exponential_f32(s, m')). The result is 0 if no key is
 * visible, and every NaN has the same bits. Keys and values are rounded to the type of the cache, including those of the
 * current tokens. So the result does not depend on how the work is divided.
 *
 * The cache consists of pages. A page holds one chunk of one sequence, for every layer. A layer's part of a page holds the keys
 * of all heads, then the values of all heads. Keys are stored in groups of 32, and a group in pieces of 8 elements with 32 keys
 * side by side: a wave with one key per lane reads whole cache lines, and a piece has one element for each accumulator. Values
 * are stored row by row. q8_0 stores the codes in the same order, a byte each; the scales, one f16 per 32 elements, follow all
 * codes of the layer.
 */
#ifndef WW_ARITHMETIC_ATTENTION_H
#define WW_ARITHMETIC_ATTENTION_H

#include <stdint.h>

#include "arithmetic/convert.h"
#include "arithmetic/rows.h"

enum {
    ATTENTION_CHUNK = 256, /* positions */
    ATTENTION_LANES = 8,   /* accumulators */
    ATTENTION_GROUP = 32,  /* keys stored together */
    ATTENTION_BLOCK = 32,  /* elements with one scale */
    ATTENTION_HEAD_MIN = 32,
    ATTENTION_HEAD_MAX = 256,   /* a multiple of 8; of 32 for q8_0 */
    ATTENTION_F16_NAN = 0x7e00, /* the scale of a block that could not be encoded */
};

/* Same values as ww_attention_type (static assertions in tensor/attention.c). */
enum attention_type { ATTENTION_F16, ATTENTION_F32, ATTENTION_Q8_0 };

/* A layer's part of a page: its shape and where it starts. */
typedef struct attention_layer {
    int32_t type; /* an attention_type */
    int32_t kv_heads, head_size;
    int32_t unused;
    int64_t offset; /* bytes from the start of the page, a multiple of 16 */
} attention_layer;

CANON_FUNCTION int64_t attention_element_bytes(int32_t type)
{
    return type == ATTENTION_F32 ? 4 : type == ATTENTION_F16 ? 2 : 1;
}

/* Bytes of a layer's part, a multiple of 256. A page is the sum over all layers. */
CANON_FUNCTION int64_t attention_layer_bytes(int32_t type, int32_t kv_heads, int32_t head_size)
{
    const int64_t elements = (int64_t)2 * kv_heads * ATTENTION_CHUNK * head_size;
    return elements * attention_element_bytes(type) + (type == ATTENTION_Q8_0 ? elements / ATTENTION_BLOCK * 2 : 0);
}

/* Bytes from the start of the layer's part to the keys of a head, to its values, and to the scales of both. */
CANON_FUNCTION int64_t attention_keys_at(const attention_layer *layer, int32_t head)
{
    return (int64_t)head * ATTENTION_CHUNK * layer->head_size * attention_element_bytes(layer->type);
}

CANON_FUNCTION int64_t attention_values_at(const attention_layer *layer, int32_t head)
{
    return attention_keys_at(layer, layer->kv_heads + head);
}

CANON_FUNCTION int64_t attention_key_scales_at(const attention_layer *layer, int32_t head)
{
    return attention_keys_at(layer, 2 * layer->kv_heads) +
           (int64_t)head * ATTENTION_CHUNK * (layer->head_size / ATTENTION_BLOCK) * 2;
}

CANON_FUNCTION int64_t attention_value_scales_at(const attention_layer *layer, int32_t head)
{
    return attention_key_scales_at(layer, layer->kv_heads + head);
}

/* Position of element i of key j among a head's keys, and position of its scale. i is a multiple of 8; 8 are contiguous. */
CANON_FUNCTION int32_t attention_key_place(int32_t head_size, int32_t j, int32_t i)
{
    return ((j / ATTENTION_GROUP) * (head_size / ATTENTION_LANES) + i / ATTENTION_LANES) * (ATTENTION_GROUP * ATTENTION_LANES) +
           j % ATTENTION_GROUP * ATTENTION_LANES;
}

CANON_FUNCTION int32_t attention_key_scale_place(int32_t head_size, int32_t j, int32_t i)
{
    return ((j / ATTENTION_GROUP) * (head_size / ATTENTION_BLOCK) + i / ATTENTION_BLOCK) * ATTENTION_GROUP +
           j % ATTENTION_GROUP;
}

/* ---- which keys a query sees --------------------------------------------------------------------------------------------- */

typedef struct attention_mask {
    int32_t causal; /* 0: all keys of the sequence */
    int32_t window; /* causal: only the last `window` keys; 0: no limit */
} attention_mask;

typedef struct attention_range {
    int32_t first, end;
} attention_range;

/* The keys visible to a query at `position` in a sequence of `length` keys. Only the first `limit` keys count. */
CANON_FUNCTION attention_range attention_seen(const attention_mask *mask, int32_t position, int32_t length, int32_t limit)
{
    attention_range seen;
    seen.end = length < limit ? length : limit;
    if (mask->causal && position < seen.end)
        seen.end = position + 1;
    seen.first = mask->causal && mask->window > 0 && position >= mask->window ? position - mask->window + 1 : 0;
    seen.end = seen.end > seen.first ? seen.end : seen.first;
    return seen;
}

/* The part in chunk c, counted from the start of the chunk. It is empty if end <= first. */
CANON_FUNCTION attention_range attention_in_chunk(attention_range seen, int32_t c)
{
    const int32_t begin = c * ATTENTION_CHUNK;
    attention_range part;
    part.first = seen.first > begin ? seen.first - begin : 0;
    part.end = seen.end - begin < ATTENTION_CHUNK ? seen.end - begin : ATTENTION_CHUNK;
    return part;
}

/* The chunks with a visible key: [first, end). */
CANON_FUNCTION attention_range attention_chunks(attention_range seen)
{
    attention_range chunks;
    chunks.first = seen.first / ATTENTION_CHUNK;
    chunks.end = seen.end > seen.first ? (seen.end + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK : chunks.first;
    return chunks;
}

/* ---- arithmetic ---------------------------------------------------------------------------------------------------------- */

CANON_FUNCTION float attention_fold(const float *sums)
{
    const float a = sums[0] + sums[4], b = sums[1] + sums[5], c = sums[2] + sums[6], d = sums[3] + sums[7];
    return (a + c) + (b + d);
}

CANON_FUNCTION float attention_result(float o, float l)
{
    return one_nan_f32(o / l);
}

/* The result for a head with a sink; `highest` is m. */
CANON_FUNCTION float attention_result_with_sink(float o, float l, float highest, float sink)
{
    const float m = row_larger_f32(highest, sink), f = row_exponential_f32(highest, m);
    return attention_result(f * o, canon_fma_f32(f, l, row_exponential_f32(sink, m)));
}

/* A score limited by a cap. */
CANON_FUNCTION float attention_capped(float score, float cap)
{
    return cap * canon_tanh_f32(score / cap);
}

/* The score of a key `distance` positions before or after the query, in a head with a slope. */
CANON_FUNCTION float attention_sloped(float score, float slope, int32_t distance)
{
    return canon_fma_f32(-slope, (float)(distance < 0 ? -distance : distance), score);
}

/* The result for a query with one chunk. Merging would use f = 1, which changes only the sign of a zero. */
CANON_FUNCTION float attention_result_of_one(float o, float l)
{
    return attention_result(o + 0.0f, l);
}

/* ---- rotary embedding ---------------------------------------------------------------------------------------------------- */

enum attention_rope { ATTENTION_ROPE_NONE, ATTENTION_ROPE_HALVES, ATTENTION_ROPE_INTERLEAVED };

/* The pairs of a head are (i, i + half) or (2i, 2i + 1) for i < half. Elements from 2 half on are unchanged. */
CANON_FUNCTION float attention_roped(const float *head, int32_t i, int32_t rope, int32_t half, const float *cosines,
                                     const float *sines)
{
    if (rope == ATTENTION_ROPE_NONE || i >= 2 * half)
        return head[i];
    const int32_t halves = rope == ATTENTION_ROPE_HALVES;
    const int32_t pair = halves ? (i < half ? i : i - half) : i / 2;
    const int32_t second = halves ? i >= half : i & 1;
    const float a = head[halves ? pair : 2 * pair], b = head[halves ? pair + half : 2 * pair + 1];
    return second ? row_turn_second_f32(a, b, cosines[pair], sines[pair])
                  : row_turn_first_f32(a, b, cosines[pair], sines[pair]);
}

#endif
