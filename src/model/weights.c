/* The tensors of each architecture, by their names in files. */
#include "model/weights.h"

#include <string.h>

#include "base/memory.h"
#include "model/weights_loader.h"
#include "quant/matrix.h"

/* ---- bodies -------------------------------------------------------------------------------------------------------------- */

/* Can q, k and v be one product? Only if nothing is done with the queries alone before rope. */
static bool may_join(const weights_source *s)
{
    const architecture *a = s->architecture;
    return a->kind == WW_MODEL_DECODER && !a->head_norms && !a->whole_norms && !a->biases && s->sizes->temperature == 0.0;
}

static bool has_tensor(const loader *l, int32_t layer, const char *what)
{
    char name[LOADER_NAME_BYTES];
    int64_t index;
    return ww_gguf_find_tensor(l->source->gguf, loader_name(name, layer, what, "weight"), &index) == WW_OK;
}

/* Loads the norms of queries and keys, per head or for all heads together; Jina's encoders may have them, with biases. */
static ww_status load_head_norms(loader *l, int32_t i, layer_weights *to)
{
    const model_sizes *s = l->source->sizes;
    const architecture *a = l->source->architecture;
    const bool optional = a->alibi && has_tensor(l, i, "attn_q_norm");
    if (!a->head_norms && !a->whole_norms && !optional)
        return WW_OK;
    const int64_t queries = a->head_norms ? s->head_size : (int64_t)s->heads * s->head_size;
    const int64_t keys = a->head_norms ? s->head_size : (int64_t)s->key_heads * s->head_size;
    ww_status status = loader_norm(l, (norm_name){i, "attn_q_norm", queries, optional}, &to->query_norm);
    return status == WW_OK ? loader_norm(l, (norm_name){i, "attn_k_norm", keys, optional}, &to->key_norm) : status;
}

/* Loads q, k and v; in nomic-bert's files they are one tensor, and these are views of it. */
static ww_status load_attention(loader *l, int32_t i, layer_weights *to)
{
    const model_sizes *s = l->source->sizes;
    const architecture *a = l->source->architecture;
    const int64_t width = s->width, queries = (int64_t)s->heads * s->head_size, keys = (int64_t)s->key_heads * s->head_size;
    char name[LOADER_NAME_BYTES];
    ww_status status = WW_OK;
    const joined_name joined = {
        .layer = i, .count = 3, .parts = {{"attn_q", queries}, {"attn_k", keys}, {"attn_v", keys}}, .cols = width};
    if (a->fused && a->kind == WW_MODEL_DECODER && has_tensor(l, i, "attn_qkv")) {
        status = loader_linear(l, (linear_name){i, "attn_qkv", queries + 2 * keys, width, false}, &to->joined);
    } else if (may_join(l->source) && loader_can_join(l, &joined)) {
        status = loader_joined(l, &joined, &to->joined);
    } else if (a->kind == WW_MODEL_ENCODER && has_tensor(l, i, "attn_qkv")) {
        linear all = {0};
        status = loader_linear(l, (linear_name){i, "attn_qkv", queries + 2 * keys, width, false}, &all);
        linear *const parts[] = {&to->query, &to->key, &to->value};
        const int64_t firsts[] = {0, queries, queries + keys, queries + 2 * keys};
        for (int p = 0; p < 3 && status == WW_OK; p++) {
            status = ww_quant_view(all.matrix, firsts[p], firsts[p + 1] - firsts[p], &parts[p]->matrix);
            if (status == WW_OK && all.bias.storage)
                status = ww_tensor_narrow(&all.bias, 0, firsts[p], firsts[p + 1] - firsts[p], &parts[p]->bias);
        }
        ww_quant_destroy(all.matrix);
        ww_tensor_release(&all.bias);
    } else {
        status = loader_linear(l, (linear_name){i, "attn_q", queries, width, a->biases}, &to->query);
        if (status == WW_OK)
            status = loader_linear(l, (linear_name){i, "attn_k", keys, width, a->biases}, &to->key);
        if (status == WW_OK)
            status = loader_linear(l, (linear_name){i, "attn_v", keys, width, a->biases}, &to->value);
    }
    if (status == WW_OK)
        status =
            loader_linear(l, (linear_name){i, "attn_output", width, queries, a->biases && !has_decoder_body(a)}, &to->output);
    if (status == WW_OK && a->sinks)
        status =
            loader_vector(l, &(wanted){.name = loader_name(name, i, "attn_sinks", "weight"), .cols = s->heads}, &to->sinks);
    return status == WW_OK ? load_head_norms(l, i, to) : status;
}

/* An encoder's float weights become a tensor: there are always many rows to multiply, which tensor products are made for. The
 * weights of its values always do, because coded activations cost an embedding most of its precision there. On a CPU f32
 * weights stay where they are. */
static ww_status make_plain(loader *l, linear *of, bool always)
{
    ww_quant_info info = ww_quant_info_default();
    ww_status status = of->matrix ? ww_quant_describe(of->matrix, &info) : WW_OK;
    const bool floats = info.type == WW_QUANT_F32 || info.type == WW_QUANT_F16 || info.type == WW_QUANT_BF16;
    if (status != WW_OK || !of->matrix || (!floats && !always))
        return status;
    status = quant_into_tensor(of->matrix, &of->plain);
    if (status == WW_OK && !of->plain.storage) {
        status = ww_quant_dequantize(of->matrix, 0, info.rows, WW_F32, &of->plain);
        if (status != WW_OK)
            return status;
        l->w->bytes_mapped -= of->matrix->memory->map ? info.bytes : 0;
        ww_quant_destroy(of->matrix);
    }
    if (status == WW_OK)
        of->matrix = NULL;
    return status;
}

static ww_status make_layer_plain(loader *l, layer_weights *x)
{
    linear *const linears[] = {&x->query, &x->key, &x->value, &x->output, &x->gate, &x->gate_up, &x->up, &x->down};
    ww_status status = WW_OK;
    for (size_t i = 0; i < sizeof linears / sizeof *linears && status == WW_OK; i++)
        status = make_plain(l, linears[i], linears[i] == &x->value);
    return status;
}

/* The first layer of ModernBERT has none: its input is already normed. */
static bool has_attention_norm(const loader *l, int32_t layer)
{
    return !l->source->architecture->norms_before || layer > 0 || has_tensor(l, 0, "attn_norm");
}

/* Loads the norms of a layer: before its two parts (for BERT after them, with biases), after them, or both. */
static ww_status load_layer_norms(loader *l, int32_t i, layer_weights *to)
{
    const architecture *a = l->source->architecture;
    const bool behind = !has_decoder_body(a) && !a->norms_before;
    const char *network = behind ? "layer_output_norm" : a->network_norm ? a->network_norm : "ffn_norm";
    const int64_t width = l->source->sizes->width;
    ww_status status = WW_OK;
    if (!a->no_pre_norms && has_attention_norm(l, i))
        status = loader_norm(l, (norm_name){i, behind ? "attn_output_norm" : "attn_norm", width, behind}, &to->attention_norm);
    if (status == WW_OK && !a->no_pre_norms)
        status = loader_norm(l, (norm_name){i, network, width, behind}, &to->feed_forward_norm);
    if (status == WW_OK && a->post_norms)
        status = loader_norm(l, (norm_name){i, "post_attention_norm", width, false}, &to->attention_post_norm);
    if (status == WW_OK && a->alibi && has_tensor(l, i, "attn_norm_2"))
        status = loader_norm(l, (norm_name){i, "attn_norm_2", width, true}, &to->attention_post_norm);
    if (status == WW_OK && a->post_norms)
        status = loader_norm(l, (norm_name){i, "post_ffw_norm", width, false}, &to->feed_forward_post_norm);
    return status;
}

static ww_status load_feed_forward(loader *l, int32_t i, layer_weights *to)
{
    const architecture *a = l->source->architecture;
    const bool biased = a->biases && !has_decoder_body(a);
    const int64_t width = l->source->sizes->width, hidden = l->source->sizes->hidden;
    const joined_name gate_up = {.layer = i, .count = 2, .parts = {{"ffn_gate", hidden}, {"ffn_up", hidden}}, .cols = width};
    ww_status status = WW_OK;
    if (a->fused && !has_tensor(l, i, "ffn_gate")) {
        status = loader_linear(l, (linear_name){i, "ffn_up", 2 * hidden, width, false}, &to->gate_up);
    } else if (a->gated && loader_can_join(l, &gate_up)) {
        status = loader_joined(l, &gate_up, &to->gate_up);
    } else {
        if (a->gated)
            status = loader_linear(l, (linear_name){i, "ffn_gate", hidden, width, false}, &to->gate);
        if (status == WW_OK)
            status = loader_linear(l, (linear_name){i, "ffn_up", hidden, width, biased && !a->gated}, &to->up);
    }
    return status == WW_OK ? loader_linear(l, (linear_name){i, "ffn_down", width, hidden, biased}, &to->down) : status;
}

/* Loads the matrices of all experts under one name, and their biases if the architecture has any. */
static ww_status load_expert_linear(loader *l, linear_name n, expert_linear *out)
{
    char name[LOADER_NAME_BYTES];
    const int64_t experts = l->source->sizes->experts;
    const wanted matrices = {
        .name = loader_name(name, n.layer, n.what, "weight"), .rows = n.rows, .cols = n.cols, .experts = experts};
    ww_status status = loader_matrix(l, &matrices, &out->matrices);
    if (status != WW_OK || !n.biased)
        return status;
    return loader_matrix(l, &(wanted){.name = loader_name(name, n.layer, n.what, "bias"), .rows = experts, .cols = n.rows},
                         &out->biases);
}

static ww_status load_experts(loader *l, int32_t i, layer_weights *to)
{
    const model_sizes *s = l->source->sizes;
    const bool biased = l->source->architecture->biases;
    const int64_t width = s->width, hidden = s->expert_hidden;
    ww_status status = loader_linear(l, (linear_name){i, "ffn_gate_inp", s->experts, width, biased}, &to->router);
    if (status == WW_OK)
        status = load_expert_linear(l, (linear_name){i, "ffn_gate_exps", hidden, width, biased}, &to->gates);
    if (status == WW_OK)
        status = load_expert_linear(l, (linear_name){i, "ffn_up_exps", hidden, width, biased}, &to->ups);
    return status == WW_OK ? load_expert_linear(l, (linear_name){i, "ffn_down_exps", width, hidden, biased}, &to->downs)
                           : status;
}

static ww_status load_layer(loader *l, int32_t i)
{
    layer_weights *to = &l->w->layers[i];
    ww_status status = load_attention(l, i, to);
    if (status == WW_OK)
        status = load_layer_norms(l, i, to);
    if (status == WW_OK)
        status = l->source->architecture->experts ? load_experts(l, i, to) : load_feed_forward(l, i, to);
    if (status == WW_OK && !has_decoder_body(l->source->architecture))
        status = make_layer_plain(l, to);
    return status;
}

/* The number of rows of the embedding is the vocabulary, which the metadata need not contain. */
static ww_status load_embedding(loader *l)
{
    model_sizes *s = l->source->sizes;
    ww_gguf_tensor t = ww_gguf_tensor_default();
    int64_t index;
    if (s->vocabulary == 0 && ww_gguf_find_tensor(l->source->gguf, "token_embd.weight", &index) == WW_OK &&
        ww_gguf_tensor_at(l->source->gguf, index, &t) == WW_OK)
        s->vocabulary = t.shape[1];
    if (s->vocabulary > INT32_MAX)
        return ww_fail(WW_CORRUPT_FILE, "a vocabulary of %lld tokens is too large", (long long)s->vocabulary);
    return loader_matrix(l, &(wanted){.name = "token_embd.weight", .rows = s->vocabulary, .cols = s->width}, &l->w->embedding);
}

static ww_status load_encoder(loader *l)
{
    const model_sizes *s = l->source->sizes;
    ww_quant *types = NULL;
    int64_t index;
    ww_gguf_tensor t = ww_gguf_tensor_default();
    const bool before = l->source->architecture->norms_before;
    ww_status status = loader_norm(l, (norm_name){-1, "token_embd_norm", s->width, !before}, &l->w->embedding_norm);
    if (status == WW_OK && before)
        status = loader_norm(l, (norm_name){-1, "output_norm", s->width, false}, &l->w->output_norm);
    if (status == WW_OK && l->source->architecture->alibi)
        status = positions_slopes(l);
    if (status == WW_OK && l->source->architecture->distances)
        status = positions_distances(l);
    if (status == WW_OK && !l->source->architecture->alibi && !l->source->architecture->rope)
        status =
            loader_matrix(l, &(wanted){.name = "position_embd.weight", .rows = s->context, .cols = s->width}, &l->w->positions);
    if (status != WW_OK || ww_gguf_find_tensor(l->source->gguf, "token_types.weight", &index) != WW_OK)
        return status;
    status = ww_gguf_tensor_at(l->source->gguf, index, &t);
    if (status == WW_OK)
        status = loader_matrix(
            l, &(wanted){.name = "token_types.weight", .rows = t.rank == 1 ? 0 : t.shape[1], .cols = s->width}, &types);
    if (status == WW_OK)
        status = ww_quant_dequantize(types, 0, 1, WW_F32, &l->w->token_type);
    if (status == WW_OK)
        status = ww_tensor_squeeze(&l->w->token_type, 0, &l->w->token_type);
    if (status == WW_OK && t.rank > 1 && t.shape[1] > 1)
        l->w->token_types = types;
    else
        ww_quant_destroy(types);
    return status;
}

/* ---- the head of a model that ranks -------------------------------------------------------------------------------------- */

/* An encoder's head gives one score, a decoder's gives yes and no, in this order. The head of Jina's rerankers is one row,
 * `cls`. */
static ww_status load_head(loader *l)
{
    const model_sizes *s = l->source->sizes;
    const architecture *a = l->source->architecture;
    const bool encoder = a->kind == WW_MODEL_ENCODER;
    const bool one_row = a->alibi && !has_tensor(l, -1, "cls.output");
    rank_head *head = &l->w->head;
    ww_status status = WW_OK;
    head->labels = encoder ? 1 : 2;
    if (encoder && !one_row)
        status = loader_linear(l, (linear_name){-1, "cls", s->width, s->width, false}, &head->dense);
    if (status == WW_OK && a->norms_before)
        status = loader_norm(l, (norm_name){-1, "cls.norm", s->width, false}, &head->norm);
    if (status == WW_OK)
        status =
            loader_linear(l, (linear_name){-1, one_row ? "cls" : "cls.output", head->labels, s->width, false}, &head->output);
    if (status == WW_OK)
        status = make_plain(l, &head->dense, true);
    return status == WW_OK ? make_plain(l, &head->output, true) : status;
}

ww_status weights_load_answers(const weights *w, const int32_t ids[2], rank_head *out)
{
    ww_tensor rows[2] = {0};
    ww_status status = WW_OK;
    for (int i = 0; i < 2 && status == WW_OK; i++)
        status = ww_quant_dequantize(w->output, ids[i], 1, WW_F32, &rows[i]);
    if (status == WW_OK)
        status = ww_tensor_cat(rows, 2, 0, &out->output.plain);
    out->labels = 2;
    ww_tensor_release(&rows[0]);
    ww_tensor_release(&rows[1]);
    return status;
}

static ww_status load_decoder(loader *l)
{
    const model_sizes *s = l->source->sizes;
    ww_status status = loader_norm(l, (norm_name){-1, "output_norm", s->width, false}, &l->w->output_norm);
    if (status == WW_OK)
        status = loader_matrix(l, &(wanted){.name = "output.weight", .rows = s->vocabulary, .cols = s->width, .optional = true},
                               &l->w->output);
    if (status == WW_OK && !l->w->output) {
        l->w->output = l->w->embedding;
        l->w->output_is_tied = true;
    }
    static const double limits[2] = {7.0, -7.0};
    const int64_t one = 1;
    for (int i = 0; i < 2 && status == WW_OK && l->source->architecture->clamped; i++)
        status = ww_tensor_full(l->source->device, WW_F32, 1, &one, limits[i], &l->w->limits[i]);
    return status == WW_OK ? positions_factors(l) : status;
}

/* Loads the layers after the pooling of a model that embeds: none to two. The last one says how long an embedding is. */
static ww_status load_dense(loader *l)
{
    static const char *const NAMES[DENSE_LAYERS] = {"dense_2", "dense_3"};
    ww_status status = WW_OK;
    for (int i = 0; i < DENSE_LAYERS && status == WW_OK && has_tensor(l, -1, NAMES[i]); i++) {
        char name[LOADER_NAME_BYTES];
        ww_gguf_tensor t = ww_gguf_tensor_default();
        int64_t index;
        status = ww_gguf_find_tensor(l->source->gguf, loader_name(name, -1, NAMES[i], "weight"), &index);
        if (status == WW_OK)
            status = ww_gguf_tensor_at(l->source->gguf, index, &t);
        const int64_t rows = t.rank == 2 && t.shape[1] <= INT32_MAX ? t.shape[1] : 1;
        if (status == WW_OK)
            status = loader_linear(l, (linear_name){-1, NAMES[i], rows, l->source->sizes->vector, false}, &l->w->dense[i]);
        if (status == WW_OK)
            status = make_plain(l, &l->w->dense[i], true);
        l->source->sizes->vector = (int32_t)rows;
    }
    return status;
}

/* What a model has once, by its body. */
static ww_status load_once(loader *l)
{
    const architecture *a = l->source->architecture;
    if (a->lookup)
        return WW_OK;
    if (a->bidirectional)
        return loader_norm(l, (norm_name){-1, "output_norm", l->source->sizes->width, false}, &l->w->output_norm);
    return a->kind == WW_MODEL_ENCODER ? load_encoder(l) : load_decoder(l);
}

/* Refuses a tensor that nothing uses: the bodies would not compute that model. */
static ww_status refuse_unused(const loader *l)
{
    ww_gguf_tensor t = ww_gguf_tensor_default();
    for (int64_t i = 0; i < l->tensors; i++)
        if (!l->used[i] && ww_gguf_tensor_at(l->source->gguf, i, &t) == WW_OK)
            return ww_fail(WW_UNSUPPORTED, "tensor '%s' is not part of a model of architecture %s", t.name,
                           l->source->architecture->name);
    return WW_OK;
}

ww_status weights_load(const weights_source *source, weights *out)
{
    weights w = {0};
    loader l = {.source = source, .w = &w};
    ww_gguf_info info = ww_gguf_info_default();
    ww_status status = ww_gguf_describe(source->gguf, &info);
    if (status != WW_OK)
        return status;
    const int32_t layers = source->sizes->layers;
    l.tensors = info.tensors;
    l.bytes_total = info.data_bytes;
    l.used = memory_alloc_zeroed((size_t)info.tensors, sizeof *l.used);
    w.layers = memory_alloc_zeroed((size_t)layers + 1, sizeof *w.layers); /* there may be none */
    w.layer_count = w.layers ? layers : 0;
    if (!l.used || !w.layers)
        status = memory_failed("layers of a model", (size_t)layers * sizeof *w.layers);
    if (status == WW_OK)
        status = load_embedding(&l);
    if (status == WW_OK)
        status = load_once(&l);
    if (status == WW_OK && source->sizes->pooling != WW_POOLING_NONE)
        status = source->sizes->pooling == WW_POOLING_RANK ? load_head(&l) : load_dense(&l);
    for (int32_t i = 0; status == WW_OK && i < layers; i++)
        status = load_layer(&l, i);
    if (status == WW_OK)
        status = refuse_unused(&l);
    memory_free(l.used);
    if (status == WW_OK)
        *out = w;
    else
        weights_free(&w);
    return status;
}

/* ---- the end ------------------------------------------------------------------------------------------------------------- */

static void norm_free(norm *n)
{
    ww_tensor_release(&n->weight);
    ww_tensor_release(&n->bias);
}

static void linear_free(linear *l)
{
    ww_tensor_release(&l->plain);
    ww_quant_destroy(l->matrix);
    ww_tensor_release(&l->bias);
}

void weights_free(weights *w)
{
    for (int32_t i = 0; i < w->layer_count; i++) {
        layer_weights *x = &w->layers[i];
        linear *const linears[] = {&x->joined, &x->query,   &x->key, &x->value, &x->output,
                                   &x->gate,   &x->gate_up, &x->up,  &x->down,  &x->router};
        norm *const norms[] = {&x->attention_norm,      &x->query_norm,        &x->key_norm,
                               &x->attention_post_norm, &x->feed_forward_norm, &x->feed_forward_post_norm};
        for (size_t n = 0; n < sizeof linears / sizeof *linears; n++)
            linear_free(linears[n]);
        for (size_t n = 0; n < sizeof norms / sizeof *norms; n++)
            norm_free(norms[n]);
        ww_tensor_release(&x->sinks);
        expert_linear *const experts[] = {&x->gates, &x->ups, &x->downs};
        for (size_t n = 0; n < sizeof experts / sizeof *experts; n++) {
            ww_quant_destroy(experts[n]->matrices);
            ww_quant_destroy(experts[n]->biases);
        }
    }
    for (int i = 0; i < 2; i++)
        ww_tensor_release(&w->limits[i]);
    ww_tensor_release(&w->slopes);
    ww_tensor_release(&w->distances);
    memory_free(w->layers);
    memory_free(w->rope_factors);
    norm_free(&w->embedding_norm);
    norm_free(&w->output_norm);
    for (int i = 0; i < DENSE_LAYERS; i++)
        linear_free(&w->dense[i]);
    norm_free(&w->head.norm);
    linear_free(&w->head.dense);
    linear_free(&w->head.output);
    ww_tensor_release(&w->token_type);
    ww_quant_destroy(w->token_types);
    ww_quant_destroy(w->positions);
    if (!w->output_is_tied)
        ww_quant_destroy(w->output);
    ww_quant_destroy(w->embedding);
    *w = (weights){0};
}
