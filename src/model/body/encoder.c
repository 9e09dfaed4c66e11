/* The encoder: BERT and its relatives. Every token sees all of its text.
 *
 *     x = norm(embedding[token] + type + position)
 *     each layer:  x = norm(x + output(attention(x)));  x = norm(x + down(act(up(x))))
 *
 * ModernBERT norms before instead, and again after all layers (pooling.c):
 *
 *     each layer:  x += output(attention(norm(x)));  x += down(act(up(norm(x))))
 *
 * A model that only looks up rows has neither norm nor layers.
 *
 * Jina's models for code norm queries and keys, and add and norm the layer's input again after attention:
 *
 *     each layer:  y = norm(x + norm(x + output(attention(x))));  x = norm(y + down(act(gate(y)) * up(y)))
 */
#include <warpwave/tensor_rows.h>

#include "model/body/body.h"

static ww_status norm_rows(const pass *p, const norm *n, const ww_tensor *x, ww_tensor *out)
{
    return ww_tensor_layer_norm(x, &n->weight, n->bias.storage ? &n->bias : NULL, p->model->sizes.eps, out);
}

/* out = norm(x + y); x is the sum. */
static ww_status add_and_norm(const pass *p, const norm *n, ww_tensor *x, const ww_tensor *y, ww_tensor *out)
{
    const ww_status status = body_add(x, y);
    return status == WW_OK ? norm_rows(p, n, x, out) : status;
}

/* Queries, keys and values of `in`. */
static ww_status project(const pass *p, const layer_weights *l, const ww_tensor *in, attention_of_layer *a)
{
    const ww_model *model = p->model;
    ww_status status = body_linear(model, &(linear_step){.linear = &l->query, .x = in, .out = &a->q});
    if (status == WW_OK)
        status = body_linear(model, &(linear_step){.linear = &l->key, .x = in, .out = &a->k});
    if (status == WW_OK)
        status = body_linear(model, &(linear_step){.linear = &l->value, .x = in, .out = &a->v});
    if (status == WW_OK && l->query_norm.weight.storage)
        status = norm_rows(p, &l->query_norm, &a->q, &a->q);
    if (status == WW_OK && l->key_norm.weight.storage)
        status = norm_rows(p, &l->key_norm, &a->k, &a->k);
    return status;
}

/* out = norm(x + norm(x + y)). */
static ww_status add_and_norm_twice(const pass *p, const layer_weights *l, const ww_tensor *x, ww_tensor *y, ww_tensor *out)
{
    const ww_status status = add_and_norm(p, &l->attention_norm, y, x, out);
    return status == WW_OK ? add_and_norm(p, &l->attention_post_norm, out, x, out) : status;
}

/* Reads and writes x; `normed` has intermediate results. */
static ww_status run_layer(const pass *p, int32_t number)
{
    const ww_model *model = p->model;
    const pass_tensors *t = &model->work.pass;
    const model_sizes *s = &model->sizes;
    const layer_weights *l = &model->weights.layers[number];
    const int64_t queries = (int64_t)s->heads * s->head_size, keys = (int64_t)s->key_heads * s->head_size;
    ww_tensor x = rows_of(&t->x, p->tokens, s->width), y = rows_of(&t->y, p->tokens, s->width);
    ww_tensor between = rows_of(&t->normed, p->tokens, s->width);
    attention_of_layer a = {.layer = 0, /* pages have room for one layer, used by one after the other */
                            .rope = model->architecture->rope,
                            .window = layer_has_window(model->architecture, s, number),
                            .q = rows_of(&t->q, p->tokens, queries),
                            .k = rows_of(&t->k, p->tokens, keys),
                            .v = rows_of(&t->v, p->tokens, keys),
                            .attended = rows_of(&t->attended, p->tokens, queries)};
    const bool before = model->architecture->norms_before, norms = before && l->attention_norm.weight.storage;
    const ww_tensor *in = norms ? &between : &x;
    ww_status status = body_check_cancelled(p);
    if (status == WW_OK && norms)
        status = norm_rows(p, &l->attention_norm, &x, &between);
    if (status == WW_OK)
        status = project(p, l, in, &a);
    if (status == WW_OK)
        status = model->architecture->distances ? body_attention_by_distance(p, &a) : body_attention(p, &a);
    if (status == WW_OK)
        status = body_linear(model, &(linear_step){.linear = &l->output, .x = &a.attended, .out = &y});
    if (status == WW_OK)
        status = l->attention_post_norm.weight.storage
                     ? add_and_norm_twice(p, l, &x, &y, &between)
                     : add_and_norm(p, before ? &l->feed_forward_norm : &l->attention_norm, &x, &y, &between);
    if (status == WW_OK)
        status = body_feed_forward(p, &(feed_forward){.layer = l, .x = &between, .y = &y});
    if (status == WW_OK)
        status = before ? body_add(&x, &y) : add_and_norm(p, &l->feed_forward_norm, &between, &y, &x);
    return status;
}

ww_status encoder_run(const pass *p)
{
    const ww_model *model = p->model;
    const weights *w = &model->weights;
    const int64_t width = model->sizes.width;
    const ww_tensor ids = list_of(&model->work.ids, p->tokens), places = list_of(&model->work.rows, p->tokens);
    const ww_tensor types = list_of(&model->work.types, p->tokens);
    ww_tensor x = rows_of(&model->work.pass.x, p->tokens, width), sum = rows_of(&model->work.pass.y, p->tokens, width);
    ww_tensor learned = rows_of(&model->work.pass.normed, p->tokens, width);
    if (model->architecture->lookup)
        return body_rows(w->embedding, &ids, &x);
    ww_status status = body_rows(w->embedding, &ids, &sum);
    if (status == WW_OK && p->has_types)
        status = body_rows(w->token_types, &types, &learned);
    if (status == WW_OK && (p->has_types || w->token_type.storage))
        status = body_add(&sum, p->has_types ? &learned : &w->token_type);
    if (status == WW_OK && w->positions)
        status = body_rows(w->positions, &places, &learned);
    if (status == WW_OK && w->positions)
        status = body_add(&sum, &learned);
    if (status == WW_OK)
        status = norm_rows(p, &w->embedding_norm, &sum, &x);
    for (int32_t i = 0; status == WW_OK && i < model->sizes.layers; i++)
        status = run_layer(p, i);
    return status;
}
