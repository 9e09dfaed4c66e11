/* Writes keys and values to the pages of a cache: rotated, rounded to the cache's type, in the layout of attention.h. */
#include <string.h>

#include "arithmetic/blocks/encode.h"
#include "cpu/attention/attention_loops.h"
#include "cpu/tensor/tensor.h"

enum { GRAIN_ELEMENTS = 1 << 15 };

typedef struct store_work {
    const attention_store_job *job;
    const attention_loops *loops;
} store_work;

/* Where a token's head goes: the layer's part of its page, and the index of the key in the page. */
typedef struct place {
    char *part;
    int32_t head, key;
    bool values;
} place;

/* Codes a block of 32 elements and returns its scale, which is NaN if the block cannot be coded. */
static uint16_t code_block(const float *x, int8_t *codes)
{
    block_q8_0 block;
    if (encode_q8_0(x, &block) == 0) {
        memcpy(codes, block.codes, sizeof block.codes);
        return (uint16_t)block.d;
    }
    memset(codes, 0, sizeof block.codes);
    return ATTENTION_F16_NAN;
}

static void put_q8_0(const attention_layer *layer, place at, const float *x)
{
    const int32_t size = layer->head_size;
    int8_t *to = (int8_t *)at.part + (at.values ? attention_values_at(layer, at.head) : attention_keys_at(layer, at.head));
    uint16_t *scales = (uint16_t *)(void *)(at.part + (at.values ? attention_value_scales_at(layer, at.head)
                                                                 : attention_key_scales_at(layer, at.head)));
    for (int32_t i = 0; i < size; i += ATTENTION_BLOCK) {
        int8_t codes[ATTENTION_BLOCK];
        const uint16_t scale = code_block(x + i, codes);
        if (at.values) {
            scales[(at.key * size + i) / ATTENTION_BLOCK] = scale;
            memcpy(to + at.key * size + i, codes, sizeof codes);
            continue;
        }
        scales[attention_key_scale_place(size, at.key, i)] = scale;
        for (int32_t piece = 0; piece < ATTENTION_BLOCK; piece += ATTENTION_LANES)
            memcpy(to + attention_key_place(size, at.key, i + piece), codes + piece, ATTENTION_LANES);
    }
}

/* Writes the bytes of f16 and f32 elements, in pieces of 8 or all together. */
static void put_floats(const attention_layer *layer, place at, const void *elements)
{
    const int32_t size = layer->head_size;
    const int64_t bytes = attention_element_bytes(layer->type);
    if (at.values) {
        memcpy(at.part + attention_values_at(layer, at.head) + at.key * size * bytes, elements, (size_t)(size * bytes));
        return;
    }
    for (int32_t i = 0; i < size; i += ATTENTION_LANES)
        memcpy(at.part + attention_keys_at(layer, at.head) + attention_key_place(size, at.key, i) * bytes,
               (const char *)elements + i * bytes, (size_t)(ATTENTION_LANES * bytes));
}

static void put_head(const store_work *w, place at, const float *x)
{
    const attention_layer *layer = &w->job->batch.layer;
    uint16_t halves[ATTENTION_HEAD_MAX];
    if (layer->type == ATTENTION_Q8_0)
        put_q8_0(layer, at, x);
    else if (layer->type == ATTENTION_F32)
        put_floats(layer, at, x);
    else {
        w->loops->narrow_f16(halves, x, layer->head_size);
        put_floats(layer, at, halves);
    }
}

static void store_token(const store_work *w, int64_t token)
{
    const attention_store_job *job = w->job;
    const attention_batch *batch = &job->batch;
    const attention_layer *layer = &batch->layer;
    const int32_t size = layer->head_size, position = batch->positions[token];
    const int64_t row = (position < job->rope_positions ? position : job->rope_positions - 1) * job->half;
    const uint64_t page = batch->pages[batch->sequences[token] * batch->pages_stride + position / ATTENTION_CHUNK];
    place at = {.part = (char *)(uintptr_t)page + layer->offset, .key = position % ATTENTION_CHUNK};
    attention_turn turn = {.head_size = size, .rope = job->rope, .half = job->half};
    if (job->rope != ATTENTION_ROPE_NONE) {
        turn.cosines = job->cosines + row;
        turn.sines = job->sines + row;
    }
    for (int32_t head = 0; job->q && job->rope != ATTENTION_ROPE_NONE && head < job->heads; head++) {
        turn.to = job->q + token * job->q_stride + head * size;
        turn.from = turn.to;
        w->loops->rope(&turn);
    }
    for (at.head = 0; at.head < layer->kv_heads; at.head++) {
        float rotated[ATTENTION_HEAD_MAX];
        turn.to = rotated;
        turn.from = job->k + token * job->k_stride + at.head * size;
        w->loops->rope(&turn);
        at.values = false;
        put_head(w, at, rotated);
        at.values = true;
        put_head(w, at, job->v + token * job->v_stride + at.head * size);
    }
}

static void store_range(void *context, int64_t begin, int64_t end)
{
    for (int64_t token = begin; token < end; token++)
        store_token(context, token);
}

ww_status cpu_attention_store(ww_device *device, const attention_store_job *job)
{
    store_work w = {.job = job, .loops = ((cpu_device *)device)->isa->attention};
    const int64_t elements = (int64_t)(job->heads + 2 * job->batch.layer.kv_heads) * job->batch.layer.head_size;
    cpu_run_ranges(device, job->batch.tokens, GRAIN_ELEMENTS / elements, store_range, &w);
    return WW_OK;
}
