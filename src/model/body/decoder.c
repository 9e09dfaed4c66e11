/* The decoder: Llama and its relatives, which differ in attributes (architecture.h).
 *
 *     x = embedding[token]
 *     each layer:  x += output(attention(norm(x)));  x += down(act(gate(norm(x))) * up(norm(x)))
 *     logits = output(norm(x))
 *
 * Every operation computes a row, in a fixed order, from that row alone or from its own sequence's keys. So the rest of the
 * batch does not change the bits of a token.
 */
#include <warpwave/tensor_rows.h>

#include "model/body/body.h"

/* Norms each head, or all heads together, from x to out. */
static ww_status norm_heads(const pass *p, const norm *n, const ww_tensor *x, ww_tensor *out)
{
    const int64_t size = n->weight.layout.shape[0];
    const int64_t heads = ww_layout_elements(&x->layout) / size;
    const ww_tensor from = rows_of(x, heads, size);
    ww_tensor to = rows_of(out, heads, size);
    return ww_tensor_rms_norm(&from, &n->weight, p->model->sizes.eps, &to);
}

static ww_status project(const pass *p, const layer_weights *l, attention_of_layer *a)
{
    const ww_model *model = p->model;
    const pass_tensors *t = &model->work.pass;
    const model_sizes *s = &model->sizes;
    const int64_t queries = (int64_t)s->heads * s->head_size, keys = (int64_t)s->key_heads * s->head_size;
    ww_tensor x = rows_of(&t->x, p->tokens, s->width), normed = rows_of(&t->normed, p->tokens, s->width);
    a->q = rows_of(&t->q, p->tokens, queries);
    a->k = rows_of(&t->k, p->tokens, keys);
    a->v = rows_of(&t->v, p->tokens, keys);
    a->attended = rows_of(&t->attended, p->tokens, queries);
    if (l->joined.matrix) {
        const int64_t all = queries + 2 * keys;
        ww_tensor out = rows_of(&t->q, p->tokens, all);
        a->q = columns_of(&t->q, p->tokens, all, 0, queries);
        a->k = columns_of(&t->q, p->tokens, all, queries, keys);
        a->v = columns_of(&t->q, p->tokens, all, queries + keys, keys);
        return body_linear(model, &(linear_step){.linear = &l->joined, .x = &x, .norm = &l->attention_norm, .out = &out});
    }
    const bool pre = l->attention_norm.weight.storage;
    const ww_tensor *from = pre ? &normed : &x;
    ww_status status = pre ? ww_tensor_rms_norm(&x, &l->attention_norm.weight, s->eps, &normed) : WW_OK;
    if (status == WW_OK)
        status = body_linear(model, &(linear_step){.linear = &l->query, .x = from, .out = &a->q});
    if (status == WW_OK)
        status = body_linear(model, &(linear_step){.linear = &l->key, .x = from, .out = &a->k});
    if (status == WW_OK)
        status = body_linear(model, &(linear_step){.linear = &l->value, .x = from, .out = &a->v});
    if (status != WW_OK || !l->query_norm.weight.storage)
        return status;
    ww_tensor q = rows_of(&t->q_normed, p->tokens, queries), k = rows_of(&t->k_normed, p->tokens, keys);
    status = norm_heads(p, &l->query_norm, &a->q, &q);
    if (status == WW_OK)
        status = norm_heads(p, &l->key_norm, &a->k, &k);
    a->q = q;
    a->k = k;
    return status;
}

/* x += y, with y normed if there is a norm, and scaled. */
static ww_status add_residual(const pass *p, const norm *post, ww_tensor *x, ww_tensor *y)
{
    const double scale = p->model->sizes.residual_scale;
    ww_tensor normed = rows_of(&p->model->work.pass.normed, p->tokens, p->model->sizes.width);
    ww_tensor *sum = post->weight.storage ? &normed : y;
    ww_status status = post->weight.storage ? ww_tensor_rms_norm(y, &post->weight, p->model->sizes.eps, &normed) : WW_OK;
    if (status == WW_OK && scale != 1.0)
        status = ww_tensor_affine(sum, scale, 0.0, sum);
    return status == WW_OK ? body_add(x, sum) : status;
}

/* Scales up the queries of tokens far into a text. */
static ww_status scale_queries(const pass *p, ww_tensor *q)
{
    if (p->model->sizes.temperature == 0.0)
        return WW_OK;
    const ww_tensor scales = rows_of(&p->model->work.scales.tensor, p->tokens, 1);
    return ww_tensor_binary(WW_MUL, q, &scales, q);
}

static ww_status run_layer(const pass *p, int32_t number)
{
    const ww_model *model = p->model;
    const model_sizes *s = &model->sizes;
    const layer_weights *l = &model->weights.layers[number];
    const bool scaled = s->residual_scale != 1.0;
    const bool apart = scaled || l->attention_post_norm.weight.storage;
    const bool network_apart = scaled || model->architecture->experts || l->feed_forward_post_norm.weight.storage;
    ww_tensor x = rows_of(&model->work.pass.x, p->tokens, s->width), y = rows_of(&model->work.pass.y, p->tokens, s->width);
    const bool causal = model->architecture->kind == WW_MODEL_DECODER;
    attention_of_layer a = {.layer = causal ? number : 0, /* an encoder's pages have room for one layer */
                            .causal = causal,
                            .window = layer_has_window(model->architecture, s, number),
                            .rope = layer_has_rope(model->architecture, number),
                            .sinks = l->sinks.storage ? &l->sinks : NULL};
    const linear_step output = {.linear = &l->output, .x = &a.attended, .adds = !apart, .out = apart ? &y : &x};
    const feed_forward network = {.layer = l,
                                  .x = &x,
                                  .norm = l->feed_forward_norm.weight.storage ? &l->feed_forward_norm : NULL,
                                  .residual = network_apart ? NULL : &x,
                                  .y = &y};
    ww_status status = body_check_cancelled(p);
    if (status == WW_OK)
        status = project(p, l, &a);
    if (status == WW_OK)
        status = scale_queries(p, &a.q);
    if (status == WW_OK)
        status = body_attention(p, &a);
    if (status == WW_OK)
        status = body_linear(model, &output);
    if (status == WW_OK && apart)
        status = add_residual(p, &l->attention_post_norm, &x, &y);
    if (status == WW_OK)
        status = model->architecture->experts ? body_experts(p, &network) : body_feed_forward(p, &network);
    if (status == WW_OK && network_apart)
        status = add_residual(p, &l->feed_forward_post_norm, &x, &y);
    return status;
}

ww_status decoder_run(const pass *p)
{
    const ww_model *model = p->model;
    const ww_tensor ids = list_of(&model->work.ids, p->tokens);
    ww_tensor x = rows_of(&model->work.pass.x, p->tokens, model->sizes.width);
    ww_status status = body_rows(model->weights.embedding, &ids, &x);
    if (status == WW_OK && model->sizes.embedding_scale != 1.0)
        status = ww_tensor_affine(&x, model->sizes.embedding_scale, 0.0, &x);
    for (int32_t i = 0; status == WW_OK && i < model->sizes.layers; i++)
        status = run_layer(p, i);
    return status;
}

ww_status decoder_project(const pass *p, const ww_tensor *rows)
{
    const ww_model *model = p->model;
    const workspace *w = &model->work;
    const int64_t count = rows->layout.shape[0];
    ww_tensor out = rows_of(&w->logits, count, model->sizes.vocabulary);
    const linear output = {.matrix = model->weights.output};
    const double scale = model->sizes.logits_scale, cap = model->sizes.logit_cap;
    ww_status status =
        body_linear(model, &(linear_step){.linear = &output, .x = rows, .norm = &model->weights.output_norm, .out = &out});
    if (status == WW_OK && scale != 1.0)
        status = ww_tensor_affine(&out, scale, 0.0, &out);
    if (status == WW_OK && cap != 0.0)
        status = ww_tensor_affine(&out, 1.0 / cap, 0.0, &out);
    if (status == WW_OK && cap != 0.0)
        status = ww_tensor_unary(WW_TANH, &out, &out);
    if (status == WW_OK && cap != 0.0)
        status = ww_tensor_affine(&out, cap, 0.0, &out);
    return status;
}

/* Are the rows consecutive? Then they need no copy. */
static bool are_neighbours(const uint32_t *rows, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        if (rows[i] != rows[0] + (uint32_t)i)
            return false;
    return true;
}

ww_status decoder_logits(const pass *p, const uint32_t *rows, int64_t count, float *logits)
{
    ww_model *model = p->model;
    workspace *w = &model->work;
    const int64_t width = model->sizes.width;
    const ww_tensor x = rows_of(&w->pass.x, p->tokens, width), out = rows_of(&w->logits, count, model->sizes.vocabulary);
    ww_tensor last = rows_of(&w->pass.x, count, width);
    ww_status status = WW_OK;
    if (are_neighbours(rows, count)) {
        last.layout.offset = (int64_t)rows[0] * width;
    } else {
        last = rows_of(&w->pass.y, count, width);
        status = upload_write(w, &w->rows, WW_U32, rows, count);
        const ww_tensor ids = list_of(&w->rows, count);
        if (status == WW_OK)
            status = ww_tensor_index_select(&x, &ids, 0, &last);
    }
    if (status == WW_OK)
        status = decoder_project(p, &last);
    return status == WW_OK ? ww_tensor_to_host(&out, logits) : status;
}
