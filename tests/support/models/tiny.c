/* Small models with random weights: which tensors an architecture has, and writing them. */
#include "support/models/tiny.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/data/random.h"
#include "support/data/vocabulary.h"

/* Is it built as an encoder? EmbeddingGemma is built as a decoder. */
static bool encodes(const char *architecture)
{
    return strstr(architecture, "bert") || strcmp(architecture, "mpnet") == 0;
}

tiny_shape tiny_default(const char *architecture)
{
    const bool encoder = encodes(architecture);
    const bool jina = strcmp(architecture, "jina-bert-v2") == 0;
    const bool mixture = strcmp(architecture, "qwen3moe") == 0 || strcmp(architecture, "gpt-oss") == 0;
    return (tiny_shape){.architecture = architecture,
                        .layers = 2,
                        .width = 64,
                        .hidden = 96,
                        .heads = jina ? 3 : 2, /* three, so that there are slopes of both kinds */
                        .key_heads = jina      ? 3
                                     : encoder ? 2
                                               : 1,
                        .head_size = 32,
                        .vocabulary = 96,
                        .context = 1024,
                        .pooling = 1,
                        .experts = mixture ? 6 : 0,
                        .experts_used = mixture ? 3 : 0,
                        .seed = 7};
}

static bool is(const tiny_shape *s, const char *architecture)
{
    return strcmp(s->architecture, architecture) == 0;
}

/* Matrices are about 1 / sqrt(columns), so that activations stay about 1. Norms and biases have usual values. */
static void add_experts(tiny_model *m, const char *name, int64_t experts, int64_t rows, int64_t cols)
{
    tiny_tensor *t = &m->tensors[m->count++];
    test_random random = {m->shape.seed * 1000 + (uint64_t)m->count};
    const int64_t count = (experts ? experts : 1) * (rows ? rows : 1) * cols;
    assert_true(m->count <= TINY_TENSORS_MAX);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->rows = rows;
    t->cols = cols;
    t->experts = experts;
    t->values = malloc((size_t)count * sizeof *t->values);
    assert_non_null(t->values);
    const bool norm = strstr(name, "norm.weight") != NULL, bias = strstr(name, "bias") != NULL;
    const bool factors = strncmp(name, "rope_f", 6) == 0;
    for (int64_t i = 0; i < count; i++) {
        const float x = random_normal(&random);
        t->values[i] = factors ? 1.0f + (strstr(name, "short") ? 1.0f : 3.0f) * (float)i / (float)count
                       : norm  ? 1.0f + 0.1f * x
                       : bias  ? 0.1f * x
                               : x / sqrtf((float)cols);
    }
}

static void add(tiny_model *m, const char *name, int64_t rows, int64_t cols)
{
    add_experts(m, name, 0, rows, cols);
}

static void add_named(tiny_model *m, int layer, const char *what, int64_t rows, int64_t cols)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", layer, what);
    add(m, name, rows, cols);
}

/* The router and the experts of a layer. */
static void add_mixture(tiny_model *m, int i)
{
    static const char *const names[] = {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
    const tiny_shape *s = &m->shape;
    add_named(m, i, "ffn_gate_inp.weight", s->experts, s->width);
    if (is(s, "gpt-oss"))
        add_named(m, i, "ffn_gate_inp.bias", 0, s->experts);
    for (int n = 0; n < 3; n++) {
        const int64_t rows = n < 2 ? TINY_EXPERT_HIDDEN : s->width, cols = n < 2 ? s->width : TINY_EXPERT_HIDDEN;
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s.weight", i, names[n]);
        add_experts(m, name, s->experts, rows, cols);
        snprintf(name, sizeof name, "%s.bias", names[n]);
        if (is(s, "gpt-oss"))
            add_named(m, i, name, s->experts, rows);
    }
}

/* What Jina's model of code has. */
static void add_more_norms(tiny_model *m, int i)
{
    static const char *const names[] = {"attn_q_norm", "attn_k_norm", "attn_norm_2"};
    const tiny_shape *s = &m->shape;
    for (int n = 0; n < 3; n++) {
        const int64_t length = n < 2 ? (int64_t)s->heads * s->head_size : s->width;
        char name[64];
        snprintf(name, sizeof name, "%s.weight", names[n]);
        add_named(m, i, name, 0, length);
        snprintf(name, sizeof name, "%s.bias", names[n]);
        add_named(m, i, name, 0, length);
    }
}

/* Norms before and after the two halves of a layer. */
static void add_norms(tiny_model *m, int i)
{
    const tiny_shape *s = &m->shape;
    const bool modern = is(s, "modern-bert"), behind = encodes(s->architecture) && !modern, olmo = is(s, "olmo2");
    const bool gemma = is(s, "gemma2") || is(s, "gemma3") || is(s, "gemma-embedding");
    if (!olmo) {
        if (!modern || i > 0)
            add_named(m, i, behind ? "attn_output_norm.weight" : "attn_norm.weight", 0, s->width);
        add_named(m, i,
                  behind             ? "layer_output_norm.weight"
                  : is(s, "gpt-oss") ? "post_attention_norm.weight"
                                     : "ffn_norm.weight",
                  0, s->width);
    }
    if (gemma || olmo) {
        add_named(m, i, "post_attention_norm.weight", 0, s->width);
        add_named(m, i, "post_ffw_norm.weight", 0, s->width);
    }
}

static void add_layer(tiny_model *m, int i)
{
    const tiny_shape *s = &m->shape;
    const bool encoder = encodes(s->architecture), jina = is(s, "jina-bert-v2"), bert = is(s, "bert") || is(s, "mpnet") || jina,
               nomic = is(s, "nomic-bert");
    const int64_t queries = (int64_t)s->heads * s->head_size, keys = (int64_t)s->key_heads * s->head_size;
    const bool oss = is(s, "gpt-oss"), olmo = is(s, "olmo2"), modern = is(s, "modern-bert"), phi = is(s, "phi3") || modern;
    const bool gemma = is(s, "gemma3") || is(s, "gemma-embedding");
    if (nomic || phi) {
        add_named(m, i, "attn_qkv.weight", queries + 2 * keys, s->width);
    } else {
        add_named(m, i, "attn_q.weight", queries, s->width);
        add_named(m, i, "attn_k.weight", keys, s->width);
        add_named(m, i, "attn_v.weight", keys, s->width);
    }
    if (bert || oss || is(s, "qwen2")) {
        add_named(m, i, "attn_q.bias", 0, queries);
        add_named(m, i, "attn_k.bias", 0, keys);
        add_named(m, i, "attn_v.bias", 0, keys);
    }
    add_named(m, i, "attn_output.weight", s->width, queries);
    if (oss) {
        add_named(m, i, "attn_output.bias", 0, s->width);
        add_named(m, i, "attn_sinks.weight", 0, s->heads);
    }
    if (is(s, "qwen3") || is(s, "qwen3moe") || gemma || olmo) {
        add_named(m, i, "attn_q_norm.weight", 0, olmo ? queries : s->head_size);
        add_named(m, i, "attn_k_norm.weight", 0, olmo ? keys : s->head_size);
    }
    add_norms(m, i);
    if (s->experts) {
        add_mixture(m, i);
        return;
    }
    const bool fused = phi || (jina && !s->norms_twice);
    if ((!bert && !phi) || (jina && !fused))
        add_named(m, i, "ffn_gate.weight", s->hidden, s->width);
    add_named(m, i, "ffn_up.weight", (fused ? 2 : 1) * s->hidden, s->width);
    add_named(m, i, "ffn_down.weight", s->width, s->hidden);
    if (encoder && !modern) {
        add_named(m, i, "attn_output_norm.bias", 0, s->width);
        add_named(m, i, "layer_output_norm.bias", 0, s->width);
    }
    if (bert) {
        add_named(m, i, "attn_output.bias", 0, s->width);
        if (!jina)
            add_named(m, i, "ffn_up.bias", 0, s->hidden);
        add_named(m, i, "ffn_down.bias", 0, s->width);
    }
    if (s->norms_twice)
        add_more_norms(m, i);
}

static void add_head(tiny_model *m)
{
    const bool bert = is(&m->shape, "bert");
    if (is(&m->shape, "jina-bert-v2")) {
        add(m, "cls.weight", 1, m->shape.width);
        add(m, "cls.bias", 0, 1);
    } else if (strstr(m->shape.architecture, "bert")) {
        add(m, "cls.weight", m->shape.width, m->shape.width);
        if (bert)
            add(m, "cls.bias", 0, m->shape.width);
        else
            add(m, "cls.norm.weight", 0, m->shape.width);
        add(m, "cls.output.weight", 1, m->shape.width);
        add(m, "cls.output.bias", 0, 1);
    } else {
        add(m, "cls.output.weight", 2, m->shape.width);
    }
}

void tiny_make(tiny_model *m, const tiny_shape *shape)
{
    *m = (tiny_model){.shape = *shape};
    const bool encoder = encodes(shape->architecture), mpnet = is(shape, "mpnet");
    add(m, "token_embd.weight", shape->vocabulary, shape->width);
    if (is(shape, "model2vec"))
        return;
    if (encoder) {
        const bool modern = is(shape, "modern-bert");
        if (mpnet)
            add(m, "attn_rel_b.weight", 32, shape->heads);
        else if (!modern)
            add(m, "token_types.weight", 2, shape->width);
        add(m, "token_embd_norm.weight", 0, shape->width);
        add(m, modern ? "output_norm.weight" : "token_embd_norm.bias", 0, shape->width);
        if (is(shape, "bert") || mpnet)
            add(m, "position_embd.weight", shape->context, shape->width);
    } else {
        const bool embedder = is(shape, "gemma-embedding");
        add(m, "output_norm.weight", 0, shape->width);
        if (embedder)
            add(m, "dense_2.weight", 2 * shape->width, shape->width);
        if (embedder)
            add(m, "dense_3.weight", shape->width, 2 * shape->width);
        if (!shape->tied && !embedder)
            add(m, "output.weight", shape->vocabulary, shape->width);
        if (shape->rope_factors && is(shape, "phi3")) {
            add(m, "rope_factors_short.weight", 0, shape->head_size / 2);
            add(m, "rope_factors_long.weight", 0, shape->head_size / 2);
        } else if (shape->rope_factors) {
            add(m, "rope_freqs.weight", 0, shape->head_size / 2);
        }
    }
    if (shape->pooling == WW_POOLING_RANK)
        add_head(m);
    for (int i = 0; i < shape->layers; i++)
        add_layer(m, i);
}

void tiny_free(tiny_model *m)
{
    for (int32_t i = 0; i < m->count; i++)
        free(m->tensors[i].values);
    m->count = 0;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

typedef struct tiny_writer {
    ww_gguf_writer *writer;
    const tiny_fault *fault;
    const char *architecture;
} tiny_writer;

static void put_number(tiny_writer *w, const char *name, double value, ww_gguf_kind kind)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", w->architecture, name);
    if (w->fault->leave_out && strcmp(w->fault->leave_out, name) == 0)
        return;
    if (w->fault->key && strcmp(w->fault->key, name) == 0)
        value = w->fault->number;
    ww_gguf_value v = ww_gguf_value_default();
    const float as_float = (float)value;
    const int64_t as_integer = (int64_t)value;
    v.key = key;
    v.kind = v.element = kind;
    v.count = 1;
    v.data = kind == WW_GGUF_F32 ? (const void *)&as_float : (const void *)&as_integer;
    v.data_bytes = kind == WW_GGUF_F32 ? sizeof as_float : sizeof as_integer;
    CHECK_OK(ww_gguf_writer_value(w->writer, &v));
}

static void put_text(tiny_writer *w, const char *key, const char *text)
{
    if (w->fault->leave_out && strcmp(w->fault->leave_out, key) == 0)
        return;
    if (w->fault->text_key && strcmp(w->fault->text_key, key) == 0)
        text = w->fault->text;
    CHECK_OK(ww_gguf_writer_string(w->writer, key, text));
}

static void put_bool(tiny_writer *w, const char *key, bool value)
{
    const unsigned char byte = value;
    ww_gguf_value v = ww_gguf_value_default();
    v.key = key;
    v.kind = v.element = WW_GGUF_BOOL;
    v.count = 1;
    v.data = &byte;
    v.data_bytes = 1;
    CHECK_OK(ww_gguf_writer_value(w->writer, &v));
}

/* What only some architectures have. */
static void put_extras(tiny_writer *w, const tiny_shape *s)
{
    static const struct {
        const char *architecture, *key;
        double value;
    } extras[] = {{"gemma2", "attn_logit_softcapping", 2.0},
                  {"gemma2", "final_logit_softcapping", 3.0},
                  {"granite", "embedding_scale", 3.0},
                  {"granite", "residual_scale", 0.5},
                  {"granite", "attention.scale", 0.25},
                  {"granite", "logit_scale", 4.0},
                  {"mistral3", "attention.temperature_scale", 0.5},
                  {"mistral3", "rope.scaling.yarn_log_multiplier", 1.0}};
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++)
        if (is(s, extras[i].architecture))
            put_number(w, extras[i].key, extras[i].value, WW_GGUF_F32);
    if (is(s, "modern-bert"))
        put_text(w, "modern-bert.hidden_activation", "gelu");
    if (is(s, "phi3") && s->rope_factors) {
        const int32_t quarter = s->context / 4;
        put_number(w, "rope.scaling.original_context_length", quarter, WW_GGUF_I64);
        put_number(w, "rope.scaling.attn_factor", 1.25, WW_GGUF_F32);
    }
    if (s->experts) {
        put_number(w, "expert_count", s->experts, WW_GGUF_I64);
        put_number(w, "expert_used_count", s->experts_used, WW_GGUF_I64);
        put_number(w, "expert_feed_forward_length", TINY_EXPERT_HIDDEN, WW_GGUF_I64);
    }
}

static void put_metadata(tiny_writer *w, const tiny_shape *s)
{
    const bool encoder = encodes(s->architecture);
    put_text(w, "general.architecture", s->architecture);
    put_text(w, "general.name", "tiny");
    put_text(w, "general.license", "none");
    if (s->tokens)
        vocabulary_put(s->tokens, w->writer);
    else
        put_text(w, "tokenizer.ggml.model", "none");
    if (s->chat_template)
        put_text(w, "tokenizer.chat_template", s->chat_template);
    put_number(w, "block_count", s->layers, WW_GGUF_I64);
    put_number(w, "embedding_length", s->width, WW_GGUF_I64);
    put_number(w, "feed_forward_length", s->hidden, WW_GGUF_I64);
    put_number(w, "attention.head_count", s->heads, WW_GGUF_I64);
    put_number(w, "attention.head_count_kv", s->key_heads, WW_GGUF_I64);
    put_number(w, "attention.key_length", s->head_size, WW_GGUF_I64);
    put_number(w, "context_length", s->context, WW_GGUF_I64);
    put_number(w, "vocab_size", s->vocabulary, WW_GGUF_I64);
    put_number(w, encoder ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-5, WW_GGUF_F32);
    if (!is(s, "bert") && !is(s, "mpnet") && !is(s, "jina-bert-v2"))
        put_number(w, "rope.freq_base", 10000.0 * s->layers, WW_GGUF_F32);
    if (s->scaling) {
        char key[64];
        snprintf(key, sizeof key, "%s.rope.scaling.type", s->architecture);
        put_text(w, key, s->scaling);
        put_number(w, "rope.scaling.factor", s->scaling_factor, WW_GGUF_F32);
        const int32_t quarter = s->context / 4;
        put_number(w, "rope.scaling.original_context_length", quarter, WW_GGUF_I64);
    }
    put_extras(w, s);
    if (s->window)
        put_number(w, "attention.sliding_window", s->window, WW_GGUF_I64);
    if (encoder || s->sees_all || s->pooling > WW_POOLING_MEAN || is(s, "gemma-embedding") || is(s, "model2vec"))
        put_number(w, "pooling_type", s->pooling, WW_GGUF_I64);
    if (s->question) {
        put_text(w, "tokenizer.chat_template.rerank", s->question);
        put_text(w, "warpwave.rerank.yes", "yes");
        put_text(w, "warpwave.rerank.no", "no");
    }
    if (s->ranks_mean)
        put_bool(w, "warpwave.rank_mean", true);
    if (s->sees_all) {
        char key[64];
        snprintf(key, sizeof key, "%s.attention.causal", s->architecture);
        put_bool(w, key, false);
    }
}

static bool left_out(const tiny_fault *f, const tiny_tensor *t)
{
    return f->leave_out && strcmp(f->leave_out, t->name) == 0;
}

/* Only matrices of a layer, the embedding and the output are coded. */
static ww_quant_type type_of(const tiny_model *m, const tiny_tensor *t)
{
    const bool small = t->rows == 0 || strstr(t->name, "token_types") || strstr(t->name, "position") ||
                       strstr(t->name, "cls") || strstr(t->name, "dense_") || strstr(t->name, "bias") ||
                       strstr(t->name, "gate_inp") || strstr(t->name, "rel_b");
    return small ? WW_QUANT_F32 : m->shape.gate_f16 && strstr(t->name, "ffn_gate") ? WW_QUANT_F16 : m->shape.type;
}

static void declare(tiny_writer *w, const tiny_model *m, const tiny_tensor *t)
{
    ww_gguf_tensor declared = ww_gguf_tensor_default();
    const bool reshaped = w->fault->reshaped && strcmp(w->fault->reshaped, t->name) == 0;
    declared.name = t->name;
    declared.type = (int32_t)type_of(m, t);
    declared.rank = t->experts ? 3 : t->rows ? 2 : 1;
    declared.shape[0] = t->cols;
    declared.shape[1] = t->rows ? t->rows : 1;
    if (reshaped && t->rows) {
        declared.shape[0] = t->rows;
        declared.shape[1] = t->cols;
    } else if (reshaped) {
        declared.shape[0]--;
    }
    declared.shape[2] = t->experts ? t->experts : 1;
    declared.shape[3] = 1;
    CHECK_OK(ww_gguf_writer_tensor(w->writer, &declared));
}

static void put_values(tiny_writer *w, const tiny_model *m, const tiny_tensor *t)
{
    const int64_t rows = (t->experts ? t->experts : 1) * (t->rows ? t->rows : 1);
    const ww_quant_type type = type_of(m, t);
    const bool poisoned = w->fault->poisoned && strcmp(w->fault->poisoned, t->name) == 0;
    const bool reshaped = w->fault->reshaped && strcmp(w->fault->reshaped, t->name) == 0;
    float *copy = malloc((size_t)(rows * t->cols) * sizeof *copy);
    memcpy(copy, t->values, (size_t)(rows * t->cols) * sizeof *copy);
    if (poisoned)
        copy[w->fault->poisoned_at] = NAN;
    if (type == WW_QUANT_F32) {
        const int64_t count = reshaped && !t->rows ? t->cols - 1 : rows * t->cols;
        CHECK_OK(ww_gguf_writer_data(w->writer, copy, (size_t)count * sizeof *copy));
    } else {
        ww_device *cpu;
        ww_quant *coded;
        int64_t row_bytes;
        CHECK_OK(ww_device_open("cpu", &cpu));
        CHECK_OK(ww_quant_from_f32(cpu, type, t->values, rows, t->cols, 0, &coded));
        CHECK_OK(ww_quant_row_bytes(type, t->cols, &row_bytes));
        unsigned char *blocks = malloc((size_t)(rows * row_bytes));
        CHECK_OK(ww_quant_read_blocks(coded, 0, rows, blocks));
        if (poisoned) /* the scale of the first block: an f16 that is not finite */
            blocks[0] = 0, blocks[1] = 0x7e;
        CHECK_OK(ww_gguf_writer_data(w->writer, blocks, (size_t)(rows * row_bytes)));
        free(blocks);
        ww_quant_destroy(coded);
        ww_device_close(cpu);
    }
    free(copy);
}

void tiny_write_wrong(const tiny_model *m, const tiny_fault *fault, const char *path)
{
    tiny_writer w = {.fault = fault, .architecture = m->shape.architecture};
    const tiny_tensor extra = {.name = "extra.weight", .cols = 4, .values = (float[4]){0}};
    CHECK_OK(ww_gguf_writer_create(&w.writer));
    put_metadata(&w, &m->shape);
    for (int32_t i = 0; i < m->count; i++)
        if (!left_out(fault, &m->tensors[i]))
            declare(&w, m, &m->tensors[i]);
    if (fault->extra)
        declare(&w, m, &extra);
    CHECK_OK(ww_gguf_writer_open(w.writer, path));
    for (int32_t i = 0; i < m->count; i++)
        if (!left_out(fault, &m->tensors[i]))
            put_values(&w, m, &m->tensors[i]);
    if (fault->extra)
        put_values(&w, m, &extra);
    CHECK_OK(ww_gguf_writer_finish(w.writer));
    ww_gguf_writer_destroy(w.writer);
}

void tiny_write(const tiny_model *m, const char *path)
{
    tiny_write_wrong(m, &(tiny_fault){0}, path);
}
