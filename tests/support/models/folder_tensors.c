/* The tensors of a small model in the layout of a folder: other names, other row orders, experts as separate tensors or as
 * codes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/data/random.h"
#include "support/models/folder.h"

enum { ARRAYS_MAX = 256, CODED_BLOCK = 32 };

/* The name of a tensor in the folder; `{}` is the layer's number. */
typedef struct other_name {
    const char *gguf, *folder;
} other_name;

static const other_name DECODER[] = {
    {"token_embd", "embed_tokens"},
    {"output_norm", "norm"},
    {"output", "lm_head"},
    {"attn_q", "layers.{}.self_attn.q_proj"},
    {"attn_k", "layers.{}.self_attn.k_proj"},
    {"attn_v", "layers.{}.self_attn.v_proj"},
    {"attn_output", "layers.{}.self_attn.o_proj"},
    {"attn_q_norm", "layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "layers.{}.self_attn.k_norm"},
    {"attn_norm", "layers.{}.input_layernorm"},
    {"ffn_norm", "layers.{}.post_attention_layernorm"},
    {"ffn_gate", "layers.{}.mlp.gate_proj"},
    {"ffn_up", "layers.{}.mlp.up_proj"},
    {"ffn_down", "layers.{}.mlp.down_proj"},
    {NULL, NULL},
};
static const other_name GEMMA3[] = {
    {"ffn_norm", "layers.{}.pre_feedforward_layernorm"},
    {"post_attention_norm", "layers.{}.post_attention_layernorm"},
    {"post_ffw_norm", "layers.{}.post_feedforward_layernorm"},
    {NULL, NULL},
};
static const other_name OLMO2[] = {
    {"post_attention_norm", "layers.{}.post_attention_layernorm"},
    {"post_ffw_norm", "layers.{}.post_feedforward_layernorm"},
    {NULL, NULL},
};
static const other_name PHI3[] = {
    {"attn_qkv", "layers.{}.self_attn.qkv_proj"},
    {"ffn_up", "layers.{}.mlp.gate_up_proj"},
    {NULL, NULL},
};
static const other_name GPT_OSS[] = {
    {"post_attention_norm", "layers.{}.post_attention_layernorm"},
    {"ffn_gate_inp", "layers.{}.mlp.router"},
    {NULL, NULL},
};
static const other_name QWEN3MOE[] = {
    {"ffn_gate_inp", "layers.{}.mlp.gate"},
    {NULL, NULL},
};
static const other_name JINA[] = {
    {"ffn_up", "encoder.layer.{}.mlp.gated_layers"},
    {"ffn_down", "encoder.layer.{}.mlp.wo"},
    {"layer_output_norm", "encoder.layer.{}.mlp.layernorm"},
    {NULL, NULL},
};
static const other_name BERT[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"attn_q", "encoder.layer.{}.attention.self.query"},
    {"attn_k", "encoder.layer.{}.attention.self.key"},
    {"attn_v", "encoder.layer.{}.attention.self.value"},
    {"attn_output", "encoder.layer.{}.attention.output.dense"},
    {"attn_output_norm", "encoder.layer.{}.attention.output.LayerNorm"},
    {"layer_output_norm", "encoder.layer.{}.output.LayerNorm"},
    {"ffn_up", "encoder.layer.{}.intermediate.dense"},
    {"ffn_down", "encoder.layer.{}.output.dense"},
    {NULL, NULL},
};
static const other_name MPNET[] = {
    {"attn_rel_b", "encoder.relative_attention_bias"},
    {"attn_q", "encoder.layer.{}.attention.attn.q"},
    {"attn_k", "encoder.layer.{}.attention.attn.k"},
    {"attn_v", "encoder.layer.{}.attention.attn.v"},
    {"attn_output", "encoder.layer.{}.attention.attn.o"},
    {"attn_output_norm", "encoder.layer.{}.attention.LayerNorm"},
    {NULL, NULL},
};
static const other_name NOMIC[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "emb_ln"},
    {"attn_qkv", "encoder.layers.{}.attn.Wqkv"},
    {"attn_output", "encoder.layers.{}.attn.out_proj"},
    {"attn_output_norm", "encoder.layers.{}.norm1"},
    {"layer_output_norm", "encoder.layers.{}.norm2"},
    {"ffn_up", "encoder.layers.{}.mlp.fc11"},
    {"ffn_gate", "encoder.layers.{}.mlp.fc12"},
    {"ffn_down", "encoder.layers.{}.mlp.fc2"},
    {NULL, NULL},
};

static const other_name MODERN[] = {
    {"token_embd", "embeddings.tok_embeddings"},
    {"token_embd_norm", "embeddings.norm"},
    {"output_norm", "final_norm"},
    {"attn_norm", "layers.{}.attn_norm"},
    {"attn_qkv", "layers.{}.attn.Wqkv"},
    {"attn_output", "layers.{}.attn.Wo"},
    {"ffn_norm", "layers.{}.mlp_norm"},
    {"ffn_up", "layers.{}.mlp.Wi"},
    {"ffn_down", "layers.{}.mlp.Wo"},
    {NULL, NULL},
};

/* Where the names of an architecture are; those of architectures that are not listed are in DECODER. */
static const struct {
    const char *architecture;
    const other_name *first, *then;
} LISTS[] = {{"gemma3", GEMMA3, DECODER},  {"gemma2", GEMMA3, DECODER},     {"gemma-embedding", GEMMA3, DECODER},
             {"olmo2", OLMO2, DECODER},    {"phi3", PHI3, DECODER},         {"gpt-oss", GPT_OSS, DECODER},
             {"bert", BERT, BERT},         {"qwen3moe", QWEN3MOE, DECODER}, {"jina-bert-v2", JINA, BERT},
             {"nomic-bert", NOMIC, NOMIC}, {"modern-bert", MODERN, MODERN}, {"mpnet", MPNET, BERT}};

static const char *find_name(const other_name *names, const char *gguf)
{
    for (; names->gguf; names++)
        if (strcmp(names->gguf, gguf) == 0)
            return names->folder;
    return NULL;
}

static const char *find_of_architecture(const char *architecture, const char *gguf)
{
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++)
        if (strcmp(architecture, LISTS[i].architecture) == 0) {
            const char *found = find_name(LISTS[i].first, gguf);
            return found ? found : find_name(LISTS[i].then, gguf);
        }
    return find_name(DECODER, gguf);
}

/* Returns the name of one of the head's tensors; NULL if it is another tensor. */
static const char *find_of_head(const folder_class *class, const char *name)
{
    return strncmp(name, "cls.output.", 11) == 0 ? class->output
           : strncmp(name, "cls.norm.", 9) == 0  ? class->norm
           : strncmp(name, "cls.", 4) == 0       ? class->dense
                                                 : NULL;
}

/* "blk.3.attn_q.weight" to the name in the folder. */
static void name_in_folder(const char *architecture, const folder_class *class, const char *name, char out[128])
{
    char middle[64] = "", ending[16] = "";
    int layer = 0;
    const char *head = find_of_head(class, name);
    if (head) {
        snprintf(out, 128, "%s%s", head, strrchr(name, '.'));
        return;
    }
    if (sscanf(name, "blk.%d.%63[^.].%15s", &layer, middle, ending) != 3)
        assert_int_equal(sscanf(name, "%63[^.].%15s", middle, ending), 2);
    const char *found = find_of_architecture(architecture, middle), *place = found ? strstr(found, "{}") : NULL;
    const char *prefix = strcmp(middle, "output") == 0 ? "" : class->prefix;
    if (!found)
        fail_msg("the test has no name for %s", name);
    else if (place)
        snprintf(out, 128, "%s%.*s%d%s.%s", prefix, (int)(place - found), found, layer, place + 2, ending);
    else
        snprintf(out, 128, "%s%s.%s", prefix, found, ending);
}

/* A tensor's numbers as the folder has them: rows of Llama's queries and keys in halves, Gemma's norms less 1, and rows of
 * zeros in front. */
static float *numbers_in_folder(const tiny_model *m, const tiny_tensor *t, int64_t skipped)
{
    const int64_t rows = t->rows ? t->rows : 1, size = m->shape.head_size;
    float *made = calloc((size_t)((rows + skipped) * t->cols), sizeof *made);
    const bool llama = strstr("llama granite smollm3 mistral3", m->shape.architecture) != NULL;
    const bool gemma = strncmp(m->shape.architecture, "gemma", 5) == 0;
    const bool pairs = llama && (strstr(t->name, "attn_q.weight") || strstr(t->name, "attn_k.weight"));
    assert_non_null(made);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t within = row % size, to = pairs ? row - within + within % 2 * (size / 2) + within / 2 : row;
        memcpy(made + (to + skipped) * t->cols, t->values + row * t->cols, (size_t)t->cols * sizeof *made);
    }
    for (int64_t i = 0; i < rows * t->cols && gemma && strstr(t->name, "norm"); i++)
        made[i] -= 1.0f; /* exact: they are near 1 */
    return made;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------- */

typedef struct array_list {
    ww_array arrays[ARRAYS_MAX];
    char names[ARRAYS_MAX][128];
    int64_t count;
} array_list;

/* Adds an array of rank 1 to 4, whose `shape` ends with a 0. Takes over the data, which free() frees. */
static ww_array *add_array(array_list *list, ww_element element, const int64_t *shape, void *data)
{
    ww_array *a = &list->arrays[list->count];
    assert_true(list->count < ARRAYS_MAX);
    *a = ww_array_default();
    a->name = list->names[list->count++];
    a->element = element;
    for (a->rank = 0; shape[a->rank] > 0; a->rank++)
        a->shape[a->rank] = shape[a->rank];
    a->data = data;
    return a;
}

static void *copy_of(const void *from, size_t bytes)
{
    void *made = malloc(bytes);
    assert_non_null(made);
    memcpy(made, from, bytes);
    return made;
}

/* Experts that are a tensor each. */
static void add_each_expert(array_list *list, const tiny_tensor *t, int layer, const char *what)
{
    const int64_t size = t->rows * t->cols, shape[3] = {t->rows, t->cols, 0};
    for (int64_t e = t->experts - 1; e >= 0; e--) { /* from the last to the first, so that no reader depends on their order */
        void *values = copy_of(t->values + e * size, (size_t)size * sizeof *t->values);
        add_array(list, WW_ELEMENT_F32, shape, values);
        snprintf(list->names[list->count - 1], 128, "model.layers.%d.mlp.experts.%d.%s_proj.weight", layer, (int)e, what);
    }
}

static const float FP4[16] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};

void folder_round_experts(tiny_model *m)
{
    test_random random = {3};
    for (int32_t i = 0; i < m->count; i++) {
        const tiny_tensor *t = &m->tensors[i];
        for (int64_t n = 0; t->experts > 0 && n < t->experts * t->rows * t->cols; n++)
            t->values[n] = ldexpf(FP4[random_below(&random, 16)], n / CODED_BLOCK % 2 ? -4 : -5);
    }
}

/* The code of a number, and the exponent of its block, as folder_round_experts() has made them. */
static unsigned code_of(const float *values, int64_t n)
{
    const float value = ldexpf(values[n], n / CODED_BLOCK % 2 ? 4 : 5);
    for (unsigned code = 0; code < 16; code++)
        if (memcmp(&FP4[code], &value, sizeof value) == 0)
            return code;
    fail_msg("%g is not a number of four bits", (double)value);
    return 0;
}

/* gpt-oss: codes of all experts, two to a byte, and scales; rows of two tensors take turns where `odd` is one. */
static void add_codes(array_list *list, const tiny_tensor *even, const tiny_tensor *odd, int layer, const char *what)
{
    const int64_t blocks = even->cols / CODED_BLOCK, each = odd ? 2 : 1, rows = even->experts * even->rows * each;
    unsigned char *codes = malloc((size_t)(rows * blocks * 16)), *scales = malloc((size_t)(rows * blocks));
    assert_true(codes && scales);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t b = 0; b < blocks; b++) {
            const float *values = odd && r % 2 ? odd->values : even->values;
            const int64_t at = r / each * even->cols + b * CODED_BLOCK;
            scales[r * blocks + b] = at / CODED_BLOCK % 2 ? 127 - 4 : 127 - 5;
            for (int64_t i = 0; i < 16; i++)
                codes[(r * blocks + b) * 16 + i] =
                    (unsigned char)(code_of(values, at + 2 * i) | code_of(values, at + 2 * i + 1) << 4);
        }
    const int64_t shape[5] = {even->experts, even->rows * each, blocks, 16, 0},
                  scale_shape[4] = {shape[0], shape[1], blocks, 0};
    add_array(list, WW_ELEMENT_U8, shape, codes);
    snprintf(list->names[list->count - 1], 128, "model.layers.%d.mlp.experts.%s_proj_blocks", layer, what);
    add_array(list, WW_ELEMENT_U8, scale_shape, scales);
    snprintf(list->names[list->count - 1], 128, "model.layers.%d.mlp.experts.%s_proj_scales", layer, what);
}

/* Adds their biases in the same way. */
static void add_biases(array_list *list, const tiny_tensor *even, const tiny_tensor *odd, int layer, const char *what)
{
    const int64_t each = odd ? 2 : 1, shape[3] = {even->rows, even->cols * each, 0}, count = shape[0] * shape[1];
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (odd && i % 2 ? odd : even)->values[i / each];
    add_array(list, WW_ELEMENT_F32, shape, values);
    snprintf(list->names[list->count - 1], 128, "model.layers.%d.mlp.experts.%s_proj_bias", layer, what);
}

static const tiny_tensor *find_tensor(const tiny_model *m, int layer, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", layer, what);
    for (int32_t i = 0; i < m->count; i++)
        if (strcmp(m->tensors[i].name, name) == 0)
            return &m->tensors[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Adds everything that is not a single float tensor in both formats. */
static void add_experts(array_list *list, const tiny_model *m)
{
    for (int layer = 0; layer < m->shape.layers && m->shape.experts; layer++) {
        const tiny_tensor *gate = find_tensor(m, layer, "ffn_gate_exps.weight");
        const tiny_tensor *up = find_tensor(m, layer, "ffn_up_exps.weight"),
                          *down = find_tensor(m, layer, "ffn_down_exps.weight");
        if (strcmp(m->shape.architecture, "gpt-oss") != 0) {
            add_each_expert(list, gate, layer, "gate");
            add_each_expert(list, up, layer, "up");
            add_each_expert(list, down, layer, "down");
            continue;
        }
        add_codes(list, gate, up, layer, "gate_up");
        add_codes(list, down, NULL, layer, "down");
        add_biases(list, find_tensor(m, layer, "ffn_gate_exps.bias"), find_tensor(m, layer, "ffn_up_exps.bias"), layer,
                   "gate_up");
        add_biases(list, find_tensor(m, layer, "ffn_down_exps.bias"), NULL, layer, "down");
        const tiny_tensor *sinks = find_tensor(m, layer, "attn_sinks.weight");
        const int64_t shape[2] = {sinks->cols, 0};
        add_array(list, WW_ELEMENT_F32, shape, copy_of(sinks->values, (size_t)sinks->cols * sizeof(float)));
        snprintf(list->names[list->count - 1], 128, "model.layers.%d.self_attn.sinks", layer);
    }
}

/* Writes a layer after the pooling, which has its own folder. */
static void write_dense(const tiny_model *m, const tiny_tensor *t)
{
    static array_list list;
    char name[64];
    const char *folder = strstr(t->name, "dense_2") ? "2_Dense" : "3_Dense";
    const int64_t shape[3] = {t->rows, t->cols, 0};
    list.count = 0;
    add_array(&list, WW_ELEMENT_F32, shape, numbers_in_folder(m, t, 0));
    snprintf(list.names[0], 128, "linear.weight");
    mkdir(in_folder(folder), 0700);
    snprintf(name, sizeof name, "%s/model.safetensors", folder);
    CHECK_OK(ww_safetensors_write(in_folder(name), list.arrays, 1, NULL));
    free((void *)(uintptr_t)list.arrays[0].data);
    snprintf(name, sizeof name, "%s/config.json", folder);
    folder_text_file(name, "{\"activation_function\":\"torch.nn.modules.linear.Identity\",\"bias\":false}");
}

void folder_write_tensors(const tiny_model *m, const folder_class *class)
{
    static array_list list;
    static const folder_class encoder = {.prefix = ""}, decoder = {.prefix = "model."};
    class = class ? class : strstr(m->shape.architecture, "bert") ? &encoder : &decoder;
    list.count = 0;
    for (int32_t i = 0; i < m->count; i++) {
        const tiny_tensor *t = &m->tensors[i];
        const int64_t skipped = strcmp(t->name, "position_embd.weight") == 0 ? class->skipped : 0;
        const int64_t shape[3] = {t->rows ? t->rows + skipped : t->cols, t->rows ? t->cols : 0, 0};
        if (strstr(t->name, "_exps.") || strstr(t->name, "attn_sinks") || strncmp(t->name, "rope_f", 6) == 0)
            continue;
        if (strncmp(t->name, "dense_", 6) == 0) {
            write_dense(m, t);
            continue;
        }
        add_array(&list, WW_ELEMENT_F32, shape, numbers_in_folder(m, t, skipped));
        name_in_folder(m->shape.architecture, class, t->name, list.names[list.count - 1]);
    }
    add_experts(&list, m);
    CHECK_OK(ww_safetensors_write(in_folder("model.safetensors"), list.arrays, list.count, NULL));
    for (int64_t i = 0; i < list.count; i++)
        free((void *)(uintptr_t)list.arrays[i].data);
}
