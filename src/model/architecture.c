/* The table of architectures, and reading a model's metadata without trusting it. */
#include "model/architecture.h"

#include <stdio.h>
#include <string.h>

#include "arithmetic/math/f64.h"
#include "base/status.h"
#include "base/text.h"

enum { KEY_BYTES = 128, LAYERS_MAX = 1024, WIDTH_MAX = 1 << 20, HEADS_MAX = 4096, EXPERTS_MAX = 4096 };
#define VOCABULARY_MAX (1LL << 24)
#define CONTEXT_MAX    (1LL << 24)

static const architecture ARCHITECTURES[] = {
    {.name = "bert", .kind = WW_MODEL_ENCODER, .biases = true, .activation = WW_GELU_ERF, .head_activation = WW_TANH},
    {.name = "nomic-bert",
     .kind = WW_MODEL_ENCODER,
     .rope = true,
     .gated = true,
     .activation = WW_SILU,
     .head_activation = WW_TANH},
    {.name = "jina-bert-v2",
     .kind = WW_MODEL_ENCODER,
     .alibi = true,
     .biases = true,
     .gated = true,
     .fused = true,
     .activation = WW_GELU_ERF,
     .head_activation = WW_TANH},
    {.name = "mpnet",
     .kind = WW_MODEL_ENCODER,
     .distances = true,
     .biases = true,
     .activation = WW_GELU_ERF,
     .head_activation = WW_TANH},
    {.name = "model2vec", .kind = WW_MODEL_ENCODER, .lookup = true},
    {.name = "modern-bert",
     .kind = WW_MODEL_ENCODER,
     .rope = true,
     .gated = true,
     .fused = true,
     .norms_before = true,
     .window_pattern = 3,
     .window_first = true,
     .window_base = 10000.0,
     .activation = WW_GELU_ERF,
     .head_activation = WW_GELU_ERF},
    {.name = "gemma-embedding",
     .kind = WW_MODEL_ENCODER,
     .bidirectional = true,
     .rope = true,
     .head_norms = true,
     .post_norms = true,
     .scaled_embedding = true,
     .gated = true,
     .window_pattern = 6,
     .window_base = 10000.0,
     .activation = WW_GELU},
    {.name = "llama", .kind = WW_MODEL_DECODER, .rope = true, .interleaved = true, .gated = true, .activation = WW_SILU},
    {.name = "qwen2", .kind = WW_MODEL_DECODER, .rope = true, .biases = true, .gated = true, .activation = WW_SILU},
    {.name = "qwen3",
     .kind = WW_MODEL_DECODER,
     .rope = true,
     .head_norms = true,
     .answers = true,
     .gated = true,
     .activation = WW_SILU},
    {.name = "gemma3",
     .kind = WW_MODEL_DECODER,
     .rope = true,
     .head_norms = true,
     .post_norms = true,
     .scaled_embedding = true,
     .gated = true,
     .window_pattern = 6,
     .width_layers = 62,
     .window_base = 10000.0,
     .activation = WW_GELU},
    {.name = "gemma2",
     .kind = WW_MODEL_DECODER,
     .rope = true,
     .post_norms = true,
     .scaled_embedding = true,
     .gated = true,
     .window_pattern = 2,
     .width_layers = 46,
     .activation = WW_GELU},
    {.name = "phi3", .kind = WW_MODEL_DECODER, .rope = true, .fused = true, .gated = true, .activation = WW_SILU},
    {.name = "granite",
     .kind = WW_MODEL_DECODER,
     .rope = true,
     .interleaved = true,
     .multipliers = true,
     .gated = true,
     .activation = WW_SILU},
    {.name = "olmo2",
     .kind = WW_MODEL_DECODER,
     .rope = true,
     .whole_norms = true,
     .post_norms = true,
     .no_pre_norms = true,
     .gated = true,
     .window_pattern = 4,
     .activation = WW_SILU},
    {.name = "smollm3",
     .kind = WW_MODEL_DECODER,
     .rope = true,
     .interleaved = true,
     .gated = true,
     .plain_pattern = 4,
     .activation = WW_SILU},
    {.name = "qwen3moe",
     .kind = WW_MODEL_DECODER,
     .rope = true,
     .head_norms = true,
     .gated = true,
     .experts = true,
     .activation = WW_SILU},
    {.name = "gpt-oss",
     .kind = WW_MODEL_DECODER,
     .rope = true,
     .biases = true,
     .gated = true,
     .window_scaled = true,
     .yarn_exact = true,
     .window_pattern = 2,
     .activation = WW_SILU,
     .network_norm = "post_attention_norm",
     .experts = true,
     .clamped = true,
     .sinks = true},
    {.name = "mistral3", .kind = WW_MODEL_DECODER, .rope = true, .interleaved = true, .gated = true, .activation = WW_SILU},
};
enum { ARCHITECTURE_COUNT = sizeof ARCHITECTURES / sizeof *ARCHITECTURES };

/* Decoders that were trained on to embed, every token seeing the whole text: files say so by attention.causal. */
#define EMBEDDER .kind = WW_MODEL_ENCODER, .bidirectional = true, .rope = true, .gated = true, .activation = WW_SILU
static const architecture EMBEDDERS[] = {
    {.name = "llama", EMBEDDER, .interleaved = true},
    {.name = "qwen2", EMBEDDER, .biases = true},
    {.name = "qwen3", EMBEDDER, .head_norms = true},
};

static const architecture *find_embedder(const ww_gguf *gguf, const char *name)
{
    char key[KEY_BYTES];
    int32_t causal = 1;
    snprintf(key, sizeof key, "%s.attention.causal", name);
    if (ww_gguf_bool(gguf, key, &causal) != WW_OK || causal)
        return NULL;
    for (size_t i = 0; i < sizeof EMBEDDERS / sizeof *EMBEDDERS; i++)
        if (strcmp(EMBEDDERS[i].name, name) == 0)
            return &EMBEDDERS[i];
    return NULL;
}

ww_status architecture_find(const ww_gguf *gguf, const architecture **found)
{
    const char *name;
    char known[256] = "";
    const ww_status status = ww_gguf_text(gguf, "general.architecture", &name, NULL);
    if (status != WW_OK)
        return status;
    for (int i = 0; i < ARCHITECTURE_COUNT; i++) {
        if (strcmp(ARCHITECTURES[i].name, name) == 0) {
            const architecture *embedder = find_embedder(gguf, name);
            *found = embedder ? embedder : &ARCHITECTURES[i];
            return WW_OK;
        }
        text_append(known, sizeof known, i == 0 ? "" : i + 1 < ARCHITECTURE_COUNT ? ", " : " and ");
        text_append(known, sizeof known, ARCHITECTURES[i].name);
    }
    return ww_fail(WW_UNSUPPORTED, "the model's architecture is '%s'; known are %s", name, known);
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

/* Reads keys of one architecture. The first failure stays in `status`, and nothing is read after it. */
typedef struct reader {
    const ww_gguf *gguf;
    const architecture *architecture;
    ww_status status;
    char key[KEY_BYTES];
} reader;

#define FAIL(r, ...) ((r)->status = (r)->status == WW_OK ? ww_fail(__VA_ARGS__) : (r)->status)

static const char *key_of(reader *r, const char *name)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->architecture->name, name);
    return r->key;
}

static bool is_there(reader *r, const char *name)
{
    int64_t index;
    return r->status == WW_OK && ww_gguf_find_value(r->gguf, key_of(r, name), &index) == WW_OK;
}

typedef struct bounds {
    int64_t min, max;
} bounds;

static void read_integer(reader *r, const char *name, bounds allowed, int64_t *value)
{
    int64_t found;
    if (r->status != WW_OK || (r->status = ww_gguf_i64(r->gguf, key_of(r, name), &found)) != WW_OK)
        return;
    if (found < allowed.min || found > allowed.max)
        FAIL(r, WW_CORRUPT_FILE, "%s is %lld; a model has %lld to %lld", r->key, (long long)found, (long long)allowed.min,
             (long long)allowed.max);
    else
        *value = found;
}

static void read_size(reader *r, const char *name, int64_t max, int32_t *value)
{
    int64_t found = *value;
    read_integer(r, name, (bounds){1, max}, &found);
    *value = (int32_t)found;
}

static void read_positive(reader *r, const char *name, double *value)
{
    double found;
    if (r->status != WW_OK || (r->status = ww_gguf_f64(r->gguf, key_of(r, name), &found)) != WW_OK)
        return;
    if (!(found > 0.0) || found > 1e30)
        FAIL(r, WW_CORRUPT_FILE, "%s is %g; it must be above 0", r->key, found);
    else
        *value = found;
}

/* The same for values that may be missing; then `value` stays unchanged. */
static void read_integer_if_there(reader *r, const char *name, bounds allowed, int64_t *value)
{
    if (is_there(r, name))
        read_integer(r, name, allowed, value);
}

static void read_size_if_there(reader *r, const char *name, int64_t max, int32_t *value)
{
    if (is_there(r, name))
        read_size(r, name, max, value);
}

static void read_positive_if_there(reader *r, const char *name, double *value)
{
    if (is_there(r, name))
        read_positive(r, name, value);
}

/* ---- sizes --------------------------------------------------------------------------------------------------------------- */

static void read_heads(reader *r, model_sizes *s)
{
    read_size(r, "attention.head_count", HEADS_MAX, &s->heads);
    s->key_heads = s->heads;
    read_size_if_there(r, "attention.head_count_kv", HEADS_MAX, &s->key_heads);
    if (r->status != WW_OK)
        return;
    if (s->heads % s->key_heads)
        FAIL(r, WW_CORRUPT_FILE, "%d heads do not share %d heads of keys evenly", (int)s->heads, (int)s->key_heads);
    if (!is_there(r, "attention.key_length") && s->width % s->heads)
        FAIL(r, WW_CORRUPT_FILE, "a width of %d is not a multiple of %d heads", (int)s->width, (int)s->heads);
    s->head_size = s->width / s->heads;
    read_size_if_there(r, "attention.key_length", WIDTH_MAX, &s->head_size);
    int32_t value_size = s->head_size;
    read_size_if_there(r, "attention.value_length", WIDTH_MAX, &value_size);
    if (value_size != s->head_size)
        FAIL(r, WW_UNSUPPORTED, "value heads of %d elements with key heads of %d are not supported", (int)value_size,
             (int)s->head_size);
    if ((int64_t)s->heads * s->head_size > WIDTH_MAX)
        FAIL(r, WW_CORRUPT_FILE, "%d heads of %d elements are too many", (int)s->heads, (int)s->head_size);
    s->attention_scale = 1.0 / canon_sqrt_f64(s->head_size);
}

/* Reads yarn's keys. If the file has its own multiplier, cosines are divided by what it makes of the factor: with 1 nothing is
 * left. */
static void read_yarn(reader *r, model_sizes *s)
{
    double multiplier = 0.0;
    read_positive_if_there(r, "rope.scaling.yarn_beta_fast", &s->yarn_fast);
    read_positive_if_there(r, "rope.scaling.yarn_beta_slow", &s->yarn_slow);
    read_positive_if_there(r, "rope.scaling.yarn_log_multiplier", &multiplier);
    const double logarithm = s->rope_factor > 1.0 ? canon_log_f64(s->rope_factor) : 0.0;
    s->rope_attention *= (1.0 + 0.1 * logarithm) / (1.0 + 0.1 * multiplier * logarithm);
    s->scaling = ROPE_SCALING_YARN;
}

/* "none", "linear", "yarn" and "longrope", whose factors are tensors; files older than the type key have only a factor, which
 * is linear. */
static void read_rope_scaling(reader *r, model_sizes *s)
{
    read_positive_if_there(r, "rope.scale_linear", &s->rope_factor);
    read_positive_if_there(r, "rope.scaling.factor", &s->rope_factor);
    const char *type = s->rope_factor != 1.0 ? "linear" : "none";
    if (is_there(r, "rope.scaling.type"))
        r->status = ww_gguf_text(r->gguf, r->key, &type, NULL);
    s->rope_original_context = s->context;
    read_integer_if_there(r, "rope.scaling.original_context_length", (bounds){1, CONTEXT_MAX}, &s->rope_original_context);
    read_positive_if_there(r, "rope.scaling.attn_factor", &s->rope_attention);
    if (strcmp(type, "linear") == 0)
        s->scaling = ROPE_SCALING_LINEAR;
    else if (strcmp(type, "yarn") == 0)
        read_yarn(r, s);
    else if (strcmp(type, "none") == 0 || strcmp(type, "longrope") == 0)
        s->rope_factor = 1.0;
    else
        FAIL(r, WW_UNSUPPORTED, "%s is '%s'; none, linear, yarn and longrope are known", key_of(r, "rope.scaling.type"), type);
}

static void read_rope(reader *r, model_sizes *s)
{
    s->rope_size = s->head_size;
    read_size_if_there(r, "rope.dimension_count", s->head_size, &s->rope_size);
    read_positive_if_there(r, "rope.freq_base", &s->rope_base);
    read_rope_scaling(r, s);
    if (s->rope_size % 2)
        FAIL(r, WW_CORRUPT_FILE, "%s is %d; it must be even", key_of(r, "rope.dimension_count"), (int)s->rope_size);
}

/* An encoder's window is symmetric: half of the file's number on either side. */
static void read_window(reader *r, model_sizes *s)
{
    int64_t window = 0;
    s->window_base = r->architecture->window_base;
    read_integer_if_there(r, "attention.sliding_window", (bounds){0, INT32_MAX}, &window);
    if (r->architecture->window_pattern > 0)
        read_positive_if_there(r, "rope.freq_base_swa", &s->window_base);
    if (window == 1 && r->architecture->kind == WW_MODEL_ENCODER)
        FAIL(r, WW_UNSUPPORTED, "%s is 1; an encoder's window has at least 2 tokens", key_of(r, "attention.sliding_window"));
    s->window = (int32_t)window;
}

/* Has the file the head of a model that ranks? That of Jina's rerankers is one row. */
static bool has_head(const reader *r)
{
    int64_t index;
    return ww_gguf_find_tensor(r->gguf, "cls.output.weight", &index) == WW_OK ||
           (r->architecture->alibi && ww_gguf_find_tensor(r->gguf, "cls.weight", &index) == WW_OK);
}

/* Does the head read the mean of all tokens? `said`: the file names the pooling. Files of other programs do not, and these
 * programs take the mean for ModernBERT. */
static bool ranks_by_mean(const reader *r, bool said)
{
    int32_t mean = 0;
    if (!said)
        return r->architecture->norms_before;
    return ww_gguf_bool(r->gguf, "warpwave.rank_mean", &mean) == WW_OK && mean == 1;
}

/* Takes `given`, or the file's pooling if that is none. A file with a head need not name its pooling. */
static void read_pooling(reader *r, ww_pooling given, model_sizes *s)
{
    int64_t pooling = WW_POOLING_NONE;
    read_integer_if_there(r, "pooling_type", (bounds){0, INT32_MAX}, &pooling);
    if (r->status != WW_OK)
        return; /* looking for tensors would replace the message */
    const bool said = pooling == WW_POOLING_RANK, head = has_head(r);
    if (head && (given == WW_POOLING_RANK || pooling == WW_POOLING_NONE))
        pooling = WW_POOLING_RANK;
    int64_t answers;
    const bool asked = r->architecture->answers || ww_gguf_find_value(r->gguf, "warpwave.rerank.yes", &answers) == WW_OK;
    if (given == WW_POOLING_RANK && pooling != WW_POOLING_RANK && !asked)
        FAIL(r, WW_UNSUPPORTED, "the model does not rerank: it has no head for it (cls.output.weight)");
    given = given == WW_POOLING_RANK ? WW_POOLING_NONE : given;
    if (given != WW_POOLING_NONE && pooling == WW_POOLING_RANK)
        FAIL(r, WW_UNSUPPORTED, "a pooling is given, but the model reranks and does not embed");
    s->pooling_given = given != WW_POOLING_NONE && (int64_t)given != pooling;
    pooling = given != WW_POOLING_NONE ? (int64_t)given : pooling;
    if (pooling > WW_POOLING_RANK || (pooling == WW_POOLING_NONE && r->architecture->kind == WW_MODEL_ENCODER)) {
        FAIL(
            r, WW_UNSUPPORTED,
            "%s is %lld; 1 (mean), 2 (cls), 3 (last) and 4 (rank) are known; --pooling, or `pooling`, gives one to a file that "
            "names none",
            key_of(r, "pooling_type"), (long long)pooling);
        return;
    }
    s->pooling = (ww_pooling)pooling;
    s->ranks_mean = r->status == WW_OK && pooling == WW_POOLING_RANK && ranks_by_mean(r, said);
}

static void read_experts(reader *r, model_sizes *s)
{
    read_size(r, "expert_count", EXPERTS_MAX, &s->experts);
    read_size(r, "expert_used_count", s->experts, &s->experts_used);
    if (r->status != WW_OK)
        return;
    s->expert_hidden = s->hidden / s->experts_used;
    read_size_if_there(r, "expert_feed_forward_length", WIDTH_MAX, &s->expert_hidden);
}

/* Reads the scales and caps of a decoder. */
static void read_scales(reader *r, model_sizes *s)
{
    read_positive_if_there(r, "attn_logit_softcapping", &s->attention_cap);
    read_positive_if_there(r, "final_logit_softcapping", &s->logit_cap);
    read_positive_if_there(r, "attention.temperature_scale", &s->temperature);
    if (r->architecture->scaled_embedding)
        s->embedding_scale = (double)(float)canon_sqrt_f64(s->width);
    if (r->architecture->multipliers) {
        read_positive_if_there(r, "embedding_scale", &s->embedding_scale);
        read_positive_if_there(r, "residual_scale", &s->residual_scale);
        read_positive_if_there(r, "attention.scale", &s->attention_scale);
        read_positive_if_there(r, "logit_scale", &s->logits_scale);
    }
    s->logits_scale = 1.0 / s->logits_scale; /* the key is a divisor */
    if (r->architecture->width_layers == s->layers && s->heads > 0)
        s->attention_scale = 1.0 / canon_sqrt_f64((double)s->width / s->heads);
}

/* Refuses attributes that the bodies do not compute. */
static void refuse_others(reader *r)
{
    const bool decoder = r->architecture->kind == WW_MODEL_DECODER;
    const char *activation = "gelu";
    int64_t experts = 0;
    int32_t causal = decoder;
    read_integer_if_there(r, "expert_count", (bounds){0, INT32_MAX}, &experts);
    if (experts > 0 && !r->architecture->experts)
        FAIL(r, WW_UNSUPPORTED, "%s with %lld experts is not supported", r->architecture->name, (long long)experts);
    if (r->architecture->norms_before && is_there(r, "hidden_activation"))
        r->status = ww_gguf_text(r->gguf, r->key, &activation, NULL);
    if (strcmp(activation, "gelu") != 0)
        FAIL(r, WW_UNSUPPORTED, "%s is '%s'; only gelu is supported", r->key, activation);
    if (is_there(r, "attention.causal"))
        r->status = ww_gguf_bool(r->gguf, r->key, &causal);
    if (causal != decoder)
        FAIL(r, WW_UNSUPPORTED, "%s is %s; that is not supported for %s", r->key, causal ? "true" : "false",
             r->architecture->name);
}

/* Reads what only models with layers have. */
static void read_layers(reader *r, model_sizes *s)
{
    const architecture *a = r->architecture;
    const bool decoder = has_decoder_body(a);
    read_size(r, "block_count", LAYERS_MAX, &s->layers);
    read_size(r, "feed_forward_length", WIDTH_MAX, &s->hidden);
    read_positive(r, decoder ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", &s->eps);
    read_heads(r, s);
    if (a->rope)
        read_rope(r, s);
    if (decoder || a->window_pattern > 0)
        read_window(r, s);
    if (decoder)
        read_scales(r, s);
    if (a->experts)
        read_experts(r, s);
}

ww_status sizes_read(const ww_gguf *gguf, const architecture *a, ww_pooling pooling, model_sizes *sizes)
{
    reader r = {.gguf = gguf, .architecture = a};
    model_sizes s = {.rope_base = 10000.0,
                     .rope_factor = 1.0,
                     .rope_attention = 1.0,
                     .yarn_fast = 32.0,
                     .yarn_slow = 1.0,
                     .embedding_scale = 1.0,
                     .residual_scale = 1.0,
                     .logits_scale = 1.0};
    refuse_others(&r);
    read_size(&r, "embedding_length", WIDTH_MAX, &s.width);
    read_integer(&r, "context_length", (bounds){1, CONTEXT_MAX}, &s.context);
    read_integer_if_there(&r, "vocab_size", (bounds){1, VOCABULARY_MAX}, &s.vocabulary);
    s.vector = s.width;
    if (!a->lookup)
        read_layers(&r, &s);
    read_pooling(&r, pooling, &s);
    if (r.status == WW_OK)
        *sizes = s;
    return r.status;
}
