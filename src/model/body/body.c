/* What both bodies do with tensors. Attention and the lookup of rows call the device's table directly: opening the model and
 * feeding the tokens have already checked everything, so nothing has to wait for another check of the ids.
 */
#include "model/body/body.h"

#include <warpwave/tensor_rows.h>

#include "device/attention_jobs.h"
#include "device/quant_jobs.h"
#include "quant/matrix.h"
#include "tensor/tensor.h"

ww_status body_check_cancelled(const pass *p)
{
    if (p->cancelled && p->cancelled(p->who))
        return ww_fail(WW_CANCELLED, "the session was cancelled");
    return WW_OK;
}

ww_status body_add(ww_tensor *x, const ww_tensor *y)
{
    return ww_tensor_binary(WW_ADD, x, y, x);
}

/* A product of tensors, for an encoder's weights that are not quantized. */
static ww_status multiply_plain(const ww_tensor *matrix, const ww_tensor *x, ww_tensor *out)
{
    const int64_t rows = matrix->layout.shape[0], cols = matrix->layout.shape[1];
    const ww_tensor transposed = {.storage = matrix->storage,
                                  .layout = {.rank = 2, .shape = {cols, rows}, .strides = {1, cols}}};
    return ww_tensor_matmul(x, &transposed, WW_MATH_CANONICAL, out);
}

/* ww_quant_multiply() also does what comes with a product, except for other gates than silu and for a bias, which must be added
 * to the product before anything else. */
ww_status body_linear(const ww_model *model, const linear_step *s)
{
    const linear *l = s->linear;
    const ww_unary activation = model->architecture->activation;
    const bool gates_apart = s->up && (l->plain.storage || activation != WW_SILU);
    const bool adds_apart = s->adds && (l->plain.storage || l->bias.storage);
    ww_tensor gated = {0}, product = {0};
    const ww_tensor *x = gates_apart ? &gated : s->x;
    ww_tensor *out = adds_apart ? &product : s->out;
    ww_quant_product how = ww_quant_product_default();
    how.queued = 1;
    how.activations = model->activations;
    how.norm_weight = s->norm ? &s->norm->weight : NULL;
    how.norm_eps = model->sizes.eps;
    how.up = gates_apart ? NULL : s->up;
    how.accumulate = s->adds && !adds_apart;
    ww_status status = gates_apart ? ww_tensor_unary(activation, s->x, &gated) : WW_OK;
    if (status == WW_OK && gates_apart)
        status = ww_tensor_binary(WW_MUL, &gated, s->up, &gated);
    if (status == WW_OK)
        status = l->plain.storage ? multiply_plain(&l->plain, x, out) : ww_quant_multiply(l->matrix, x, &how, out);
    if (status == WW_OK && l->bias.storage)
        status = body_add(out, &l->bias);
    if (status == WW_OK && adds_apart)
        status = body_add(s->out, &product);
    ww_tensor_release(&product);
    ww_tensor_release(&gated);
    return status;
}

static void *data_of(const ww_tensor *x)
{
    return (char *)x->storage->data.data + x->layout.offset * (int64_t)ww_dtype_bytes(x->storage->dtype);
}

ww_status body_rows(const ww_quant *matrix, const ww_tensor *ids, ww_tensor *out)
{
    const quant_decode_tensor_job job = {.type = (int32_t)matrix->type,
                                         .from = &matrix->memory->blocks,
                                         .from_offset = matrix->offset,
                                         .rows = matrix->rows,
                                         .cols = matrix->cols,
                                         .ids = data_of(ids),
                                         .id_bytes = (int32_t)ww_dtype_bytes(WW_U32),
                                         .count = ids->layout.shape[0],
                                         .to = data_of(out),
                                         .to_type = WW_QUANT_F32};
    ww_device *device = matrix->memory->device;
    return device->backend->quants->decode_tensor(device, &job);
}

/* ---- attention ----------------------------------------------------------------------------------------------------------- */

static attention_batch batch_of(const pass *p, int32_t layer)
{
    const workspace *w = &p->model->work;
    const page_pool *cache = &p->model->pool;
    return (attention_batch){.tokens = p->tokens,
                             .sequences = data_of(&w->sequences.tensor),
                             .positions = data_of(&w->positions.tensor),
                             .pages = data_of(&w->pages.tensor),
                             .pages_stride = p->pages_stride,
                             .lengths = data_of(&w->lengths.tensor),
                             .layer = {.type = cache->type,
                                       .kv_heads = cache->key_heads,
                                       .head_size = cache->head_size,
                                       .offset = layer * cache->layer_bytes}};
}

ww_status body_attention(const pass *p, const attention_of_layer *a)
{
    ww_model *model = p->model;
    const model_sizes *s = &model->sizes;
    const rope_table *rope = &model->work.rope[a->window];
    const attention_batch batch = batch_of(p, a->layer);
    attention_store_job store = {.batch = batch,
                                 .heads = s->heads,
                                 .q = data_of(&a->q),
                                 .k = data_of(&a->k),
                                 .v = data_of(&a->v),
                                 .q_stride = a->q.layout.strides[0],
                                 .k_stride = a->k.layout.strides[0],
                                 .v_stride = a->v.layout.strides[0],
                                 .rope = ATTENTION_ROPE_NONE};
    if (a->rope) {
        store.rope = model->architecture->interleaved ? ATTENTION_ROPE_INTERLEAVED : ATTENTION_ROPE_HALVES;
        store.half = s->rope_size / 2;
        store.cosines = data_of(&rope->cosines);
        store.sines = data_of(&rope->sines);
        store.rope_positions = rope->positions;
    }
    const attention_job job = {.batch = batch,
                               .store = &store,
                               .heads = s->heads,
                               .q = store.q,
                               .q_stride = store.q_stride,
                               .mask = {.causal = a->causal,
                                        .window = !a->window  ? 0
                                                  : a->causal ? s->window
                                                              : s->window / 2},
                               .scale = (float)s->attention_scale,
                               .cap = (float)s->attention_cap,
                               .sinks = a->sinks ? data_of(a->sinks) : NULL,
                               .slopes = model->weights.slopes.storage ? data_of(&model->weights.slopes) : NULL,
                               .keys_max = p->keys_max,
                               .runs = p->tokens > p->sequences,
                               .out = data_of(&a->attended)};
    return tensors_of(model->device)->attention(model->device, &job);
}

/* ---- the feed-forward network -------------------------------------------------------------------------------------------- */

/* Gate and up, one product or two. */
static ww_status gate_and_up(const pass *p, const feed_forward *f, ww_tensor *gate, ww_tensor *up)
{
    const ww_model *model = p->model;
    const pass_tensors *t = &model->work.pass;
    const layer_weights *l = f->layer;
    const int64_t hidden = model->sizes.hidden;
    if (l->gate_up.matrix || l->gate_up.plain.storage) {
        ww_tensor both = rows_of(&t->gate, p->tokens, 2 * hidden);
        *gate = columns_of(&t->gate, p->tokens, 2 * hidden, 0, hidden);
        *up = columns_of(&t->gate, p->tokens, 2 * hidden, hidden, hidden);
        return body_linear(model, &(linear_step){.linear = &l->gate_up, .x = f->x, .norm = f->norm, .out = &both});
    }
    *gate = rows_of(&t->gate, p->tokens, hidden);
    *up = rows_of(&t->up, p->tokens, hidden);
    ww_tensor normed = rows_of(&t->normed, p->tokens, model->sizes.width);
    const ww_tensor *x = f->norm ? &normed : f->x;
    ww_status status = f->norm ? ww_tensor_rms_norm(f->x, &f->norm->weight, model->sizes.eps, &normed) : WW_OK;
    if (status == WW_OK)
        status = body_linear(model, &(linear_step){.linear = &l->up, .x = x, .out = up});
    return status == WW_OK ? body_linear(model, &(linear_step){.linear = &l->gate, .x = x, .out = gate}) : status;
}

ww_status body_feed_forward(const pass *p, const feed_forward *f)
{
    const ww_model *model = p->model;
    const layer_weights *l = f->layer;
    ww_tensor inner = rows_of(&model->work.pass.up, p->tokens, model->sizes.hidden), gate, up;
    linear_step down = {.linear = &l->down, .x = &inner, .adds = f->residual != NULL, .out = f->residual ? f->residual : f->y};
    ww_status status;
    if (model->architecture->gated) {
        status = gate_and_up(p, f, &gate, &up);
        down.x = &gate;
        down.up = &up;
    } else {
        status = body_linear(model, &(linear_step){.linear = &l->up, .x = f->x, .norm = f->norm, .out = &inner});
        if (status == WW_OK)
            status = ww_tensor_unary(model->architecture->activation, &inner, &inner);
    }
    return status == WW_OK ? body_linear(model, &down) : status;
}
