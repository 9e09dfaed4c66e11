/* Attention: for each query the sum of the values, weighted by the softmax of its scaled dot products with the keys.
 *
 * Keys and values are rounded to the type of a cache first. Sums are in one order on every device, by chunks of 256 positions
 * (docs/design/attention.md): a query has the same bits alone or in a batch, on every device. Checks, results and waiting are
 * as in tensor.h.
 */
#ifndef WARPWAVE_ATTENTION_H
#define WARPWAVE_ATTENTION_H

#include <stdbool.h>

#include <warpwave/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What keys and values are rounded to. */
typedef enum ww_attention_type {
    WW_ATTENTION_F16 = 0,
    WW_ATTENTION_F32 = 1,
    WW_ATTENTION_Q8_0 = 2 /* as ggml's q8_0: 32 elements share a scale; the head size must be a multiple of 32 */
} ww_attention_type;

typedef struct ww_attention {
    size_t struct_size; /* set by ww_attention_default() */
    ww_attention_type type;
    bool causal;            /* a query sees keys up to its own position */
    int64_t window;         /* causal: only the last `window` of these, its own position included; 0: all */
    int64_t first_position; /* of the first query; the others follow. -1, the default: the queries are at the last positions */
    double scale;           /* of the dot products; 0, the default: 1 / sqrt(head size) */
} ww_attention;

/* Every default but first_position is zero; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_attention_init(void *value, size_t struct_size);

static inline ww_attention ww_attention_default(void)
{
    ww_attention value;
    ww_attention_init(&value, sizeof value);
    return value;
}

/* f32 tensors: q is [queries, heads, head size], k and v are [keys, key heads, head size]; the result has the shape of q. Heads
 * are a multiple of key heads: head h uses key head h / (heads / key heads). Head sizes are multiples of 8, 32 to 256. A query
 * that sees no key gets zeros. `how` may be NULL for the defaults. Needs memory for the rounded keys and values. */
WW_API ww_status ww_tensor_attention(const ww_tensor *q, const ww_tensor *k, const ww_tensor *v, const ww_attention *how,
                                     ww_tensor *out);

#ifdef __cplusplus
}
#endif

#endif
