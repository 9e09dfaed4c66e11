/* Attention of tensors: one sequence whose keys and values are stored in pages of its own, and its queries. */
#include <warpwave/attention.h>

#include <math.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "tensor/tensor.h"

_Static_assert((int)WW_ATTENTION_F16 == (int)ATTENTION_F16 && (int)WW_ATTENTION_F32 == (int)ATTENTION_F32 &&
                   (int)WW_ATTENTION_Q8_0 == (int)ATTENTION_Q8_0,
               "types of a cache have the same numbers inside");

STRUCT_INIT(ww_attention, {.first_position = -1})

static const char *const OPERATION = "attention";

typedef struct attention_call {
    ww_attention how;
    const ww_tensor *q, *k, *v;
    ww_device *device;
    int32_t heads, kv_heads, head_size;
    int64_t queries, keys;
    const float *data[3];  /* of q, k and v, dense */
    ww_tensor dense[3];    /* copies of tensors that were not dense; released at the end */
    buffer pages, numbers; /* numbers: addresses of pages, then the length, then sequences and positions */
} attention_call;

/* ---- checks -------------------------------------------------------------------------------------------------------------- */

static ww_status check_operand(const char *role, const ww_tensor *x, const ww_tensor *q)
{
    ww_status status = check_tensor(OPERATION, role, x);
    if (status == WW_OK && x->storage->dtype != WW_F32)
        status = ww_fail(WW_UNSUPPORTED, "attention: %s is %s; it must be f32", role, ww_dtype_name(x->storage->dtype));
    if (status == WW_OK && x->layout.rank != 3)
        status = ww_fail(WW_DIMENSION_MISMATCH, "attention: %s has shape %s; it must be [tokens, heads, head size]", role,
                         SHAPE_TEXT(&x->layout));
    return status == WW_OK ? check_same_device(OPERATION, q, x) : status;
}

static ww_status check_shapes(const attention_call *c)
{
    const int64_t *q = c->q->layout.shape, *k = c->k->layout.shape, *v = c->v->layout.shape;
    if (k[0] != v[0] || k[1] != v[1] || k[2] != v[2] || k[2] != q[2])
        return ww_fail(WW_DIMENSION_MISMATCH,
                       "attention: q has shape %s, k %s, v %s; k and v must have the same, and all the same head size",
                       SHAPE_TEXT(&c->q->layout), SHAPE_TEXT(&c->k->layout), SHAPE_TEXT(&c->v->layout));
    if (q[1] < 1 || k[1] < 1 || q[1] % k[1] != 0 || q[1] > INT16_MAX)
        return ww_fail(WW_DIMENSION_MISMATCH,
                       "attention: %lld query heads and %lld key heads; the first must be a multiple of the second, at most %d",
                       (long long)q[1], (long long)k[1], INT16_MAX);
    const int64_t multiple = c->how.type == WW_ATTENTION_Q8_0 ? ATTENTION_BLOCK : ATTENTION_LANES;
    if (q[2] < ATTENTION_HEAD_MIN || q[2] > ATTENTION_HEAD_MAX || q[2] % multiple != 0)
        return ww_fail(WW_UNSUPPORTED, "attention: the head size is %lld; it must be a multiple of %lld from %d to %d",
                       (long long)q[2], (long long)multiple, ATTENTION_HEAD_MIN, ATTENTION_HEAD_MAX);
    if (k[0] > INT32_MAX - ATTENTION_CHUNK || q[0] > INT32_MAX - ATTENTION_CHUNK)
        return ww_fail(WW_UNSUPPORTED, "attention: %lld queries and %lld keys; each must be below 2^31", (long long)q[0],
                       (long long)k[0]);
    return WW_OK;
}

static ww_status check_how(attention_call *c)
{
    const ww_attention *how = &c->how;
    if ((int)how->type < 0 || (int)how->type > (int)WW_ATTENTION_Q8_0)
        return ww_fail(WW_INVALID_ARGUMENT, "attention: type %d is not a ww_attention_type", (int)how->type);
    if (how->window < 0 || (how->window > 0 && !how->causal))
        return ww_fail(WW_INVALID_ARGUMENT, "attention: the window is %lld%s; it must be 0, or positive with a causal mask",
                       (long long)how->window, how->causal ? "" : " without a causal mask");
    if (!isfinite(how->scale))
        return ww_fail(WW_INVALID_ARGUMENT, "attention: the scale is %g; it must be finite", how->scale);
    if (how->first_position < -1 || how->first_position > INT32_MAX - ATTENTION_CHUNK - c->q->layout.shape[0])
        return ww_fail(WW_OUT_OF_RANGE, "attention: first_position is %lld; it must be -1, or a position below 2^31",
                       (long long)how->first_position);
    if (how->first_position == -1 && how->causal && c->q->layout.shape[0] > c->k->layout.shape[0])
        return ww_fail(WW_DIMENSION_MISMATCH,
                       "attention: %lld queries and %lld keys; queries that are the last of the keys cannot be more of them",
                       (long long)c->q->layout.shape[0], (long long)c->k->layout.shape[0]);
    return WW_OK;
}

static ww_status check_call(attention_call *c, const ww_attention *how, const ww_tensor *out)
{
    ww_attention_init(&c->how, sizeof c->how);
    ww_status status = check_out(OPERATION, out);
    if (status == WW_OK && how)
        status = struct_read(&c->how, sizeof c->how, how, "ww_tensor_attention", "ww_attention");
    if (status == WW_OK)
        status = check_operand("q", c->q, c->q);
    if (status == WW_OK)
        status = check_operand("k", c->k, c->q);
    if (status == WW_OK)
        status = check_operand("v", c->v, c->q);
    if (status == WW_OK)
        status = check_how(c);
    return status == WW_OK ? check_shapes(c) : status;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

/* Where each list starts in `numbers`. */
static size_t length_at(const attention_call *c)
{
    return (size_t)divide_up_i64(c->keys, ATTENTION_CHUNK) * sizeof(uint64_t);
}

static size_t tokens_at(const attention_call *c)
{
    return length_at(c) + 2 * sizeof(int32_t);
}

/* Writes the sequences, all 0, the positions of keys, and the positions of queries. */
static ww_status make_numbers(attention_call *c)
{
    const int64_t rows_max = max_i64(c->keys, c->queries), pages = divide_up_i64(c->keys, ATTENTION_CHUNK);
    const size_t bytes = tokens_at(c) + (size_t)(rows_max + c->keys + c->queries) * sizeof(int32_t);
    const int64_t page_bytes = attention_layer_bytes((int32_t)c->how.type, c->kv_heads, c->head_size);
    const int64_t first = c->how.first_position >= 0 ? c->how.first_position : max_i64(c->keys - c->queries, 0);
    char *host = memory_alloc_zeroed(1, bytes);
    if (!host)
        return memory_failed("attention's positions", bytes);
    for (int64_t i = 0; i < pages; i++)
        ((uint64_t *)(void *)host)[i] = (uint64_t)(uintptr_t)((char *)c->pages.data + i * page_bytes);
    *(int32_t *)(void *)(host + length_at(c)) = (int32_t)c->keys;
    int32_t *positions = (int32_t *)(void *)(host + tokens_at(c)) + rows_max;
    for (int64_t i = 0; i < c->keys; i++)
        positions[i] = (int32_t)i;
    for (int64_t i = 0; i < c->queries; i++)
        positions[c->keys + i] = (int32_t)(first + i);
    ww_status status = tensors_of(c->device)->alloc(c->device, bytes, &c->numbers);
    if (status == WW_OK)
        status = tensors_of(c->device)->write(c->device, &c->numbers, host);
    memory_free(host);
    return status;
}

static ww_status make_memory(attention_call *c)
{
    const int64_t page_bytes = attention_layer_bytes((int32_t)c->how.type, c->kv_heads, c->head_size);
    const ww_tensor *given[3] = {c->q, c->k, c->v};
    ww_status status = WW_OK;
    for (int32_t i = 0; i < 3 && status == WW_OK; i++) {
        const bool dense = layout_is_dense(&given[i]->layout);
        if (!dense)
            status = ww_tensor_contiguous(given[i], &c->dense[i]);
        if (status == WW_OK)
            c->data[i] = operand_of(dense ? given[i] : &c->dense[i]).data;
    }
    if (status == WW_OK)
        status =
            tensors_of(c->device)->alloc(c->device, (size_t)(divide_up_i64(c->keys, ATTENTION_CHUNK) * page_bytes), &c->pages);
    return status == WW_OK ? make_numbers(c) : status;
}

static void release_memory(attention_call *c)
{
    for (int32_t i = 0; i < 3; i++)
        ww_tensor_release(&c->dense[i]);
    tensors_of(c->device)->release(c->device, &c->numbers);
    tensors_of(c->device)->release(c->device, &c->pages);
}

/* ---- the call ------------------------------------------------------------------------------------------------------------ */

static attention_batch batch_of(const attention_call *c, int64_t tokens, int64_t positions_from)
{
    const int32_t *sequences = (const int32_t *)(const void *)((const char *)c->numbers.data + tokens_at(c));
    return (attention_batch){.tokens = tokens,
                             .sequences = sequences,
                             .positions = sequences + max_i64(c->keys, c->queries) + positions_from,
                             .pages = c->numbers.data,
                             .pages_stride = divide_up_i64(c->keys, ATTENTION_CHUNK),
                             .lengths = (const int32_t *)(const void *)((const char *)c->numbers.data + length_at(c)),
                             .layer = {.type = (int32_t)c->how.type, .kv_heads = c->kv_heads, .head_size = c->head_size}};
}

static ww_status run(const attention_call *c, float *out)
{
    const int64_t row = (int64_t)c->kv_heads * c->head_size;
    const attention_store_job store = {
        .batch = batch_of(c, c->keys, 0), .k = c->data[1], .v = c->data[2], .k_stride = row, .v_stride = row};
    const double scale = c->how.scale != 0.0 ? c->how.scale : 1.0 / sqrt((double)c->head_size);
    const attention_job attend = {.batch = batch_of(c, c->queries, c->keys),
                                  .heads = c->heads,
                                  .q = c->data[0],
                                  .q_stride = (int64_t)c->heads * c->head_size,
                                  .mask = {.causal = c->how.causal, .window = (int32_t)min_i64(c->how.window, INT32_MAX)},
                                  .scale = (float)scale,
                                  .keys_max = (int32_t)c->keys,
                                  .runs = c->queries > 1,
                                  .out = out};
    const ww_status status = tensors_of(c->device)->attention_store(c->device, &store);
    return status == WW_OK ? tensors_of(c->device)->attention(c->device, &attend) : status;
}

ww_status ww_tensor_attention(const ww_tensor *q, const ww_tensor *k, const ww_tensor *v, const ww_attention *how,
                              ww_tensor *out)
{
    FLOAT_GUARD();
    attention_call c = {.q = q, .k = k, .v = v};
    ww_status status = check_call(&c, how, out);
    if (status != WW_OK)
        return status;
    c.device = q->storage->device;
    c.queries = q->layout.shape[0];
    c.keys = k->layout.shape[0];
    c.heads = (int32_t)q->layout.shape[1];
    c.kv_heads = (int32_t)k->layout.shape[1];
    c.head_size = (int32_t)q->layout.shape[2];
    const bool any = c.queries > 0 && c.keys > 0;
    result r = {.operation = OPERATION, .out = out, .inputs = {q, k, v}};
    if (any)
        status = make_memory(&c);
    if (status == WW_OK)
        status = result_begin(&r, c.device, WW_F32, 3, q->layout.shape);
    if (status == WW_OK) {
        status = any ? run(&c, operand_of(&r.at).data) : result_zero(&r);
        status = result_end(&r, status);
    }
    release_memory(&c);
    return status;
}
