/* Model folders in the layout of model hubs. */
#include "support/models/folder.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"

#define WORD "\xE2\x96\x81"

enum { PATH_BYTES = SCRATCH_PATH_BYTES + 64 };

static char chosen[64] = "folder";

void folder_choose(const char *name)
{
    assert_true(snprintf(chosen, sizeof chosen, "%s", name) < (int)sizeof chosen);
}

const char *in_folder(const char *name)
{
    static char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", scratch_path(chosen), name);
    return path;
}

void folder_file(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

void folder_text_file(const char *name, const char *content)
{
    folder_file(name, content, strlen(content));
}

/* ---- tokenizers ---------------------------------------------------------------------------------------------------------- */

const char FOLDER_WORDPIECE[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"[PAD]\",\"special\":true},{\"id\":1,\"content\":\"[UNK]\",\"special\":true},"
    "{\"id\":2,\"content\":\"[CLS]\",\"special\":true},{\"id\":3,\"content\":\"[SEP]\",\"special\":true}],"
    "\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true,\"strip_accents\":null},"
    "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"un\":4,\"##able\":5}}}";
const char FOLDER_SPECIAL[] =
    "{\"cls_token\":\"[CLS]\",\"sep_token\":\"[SEP]\",\"unk_token\":\"[UNK]\",\"pad_token\":\"[PAD]\"}";

static void put_byte(message *m, unsigned byte)
{
    assert_true(m->count < sizeof m->bytes);
    m->bytes[m->count++] = (unsigned char)byte;
}

static void put_piece(message *m, const char *piece, float score, int kind)
{
    const size_t length = strlen(piece);
    unsigned char bits[4];
    memcpy(bits, &score, sizeof bits);
    put_byte(m, 1 << 3 | 2);
    put_byte(m, (unsigned)(2 + length + 5 + (kind != 1 ? 2 : 0)));
    put_byte(m, 1 << 3 | 2);
    put_byte(m, (unsigned)length);
    for (size_t i = 0; i < length; i++)
        put_byte(m, (unsigned char)piece[i]);
    put_byte(m, 2 << 3 | 5);
    for (int i = 0; i < 4; i++)
        put_byte(m, bits[i]);
    if (kind != 1) {
        put_byte(m, 3 << 3);
        put_byte(m, (unsigned)kind);
    }
}

/* Writes the algorithm with which it was trained, and that no space is put before a text. */
static void put_specs(message *m, unsigned algorithm)
{
    static const unsigned char normalizer[] = {3 << 3 | 2, 2, 3 << 3, 0};
    const unsigned char trainer[] = {2 << 3 | 2, 2, 3 << 3, (unsigned char)algorithm};
    for (size_t i = 0; i < sizeof trainer; i++)
        put_byte(m, trainer[i]);
    for (size_t i = 0; i < sizeof normalizer; i++)
        put_byte(m, normalizer[i]);
}

message sentencepiece_model(unsigned algorithm)
{
    message m = {.count = 0};
    put_piece(&m, "<unk>", 0, 2);
    put_piece(&m, "<s>", 0, 3);
    put_piece(&m, "</s>", 0, 3);
    put_piece(&m, "a", -4, 1);
    put_piece(&m, "b", -5, 1);
    put_piece(&m, "c", -6, 1);
    put_piece(&m, "bc", -1, 1); /* is merged before "ab" */
    put_piece(&m, "ab", -2, 1);
    put_piece(&m, "abc", -3, 1);
    put_piece(&m, WORD, -7, 1);
    put_piece(&m, "<start_of_turn>", 0, 4);
    put_specs(&m, algorithm);
    return m;
}

static const char FALLBACK[] = "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{}},"
                               "\"added_tokens\":[{\"id\":10,\"content\":\"<start_of_turn>\",\"special\":true}]}";

/* ---- configurations ------------------------------------------------------------------------------------------------------ */

const char DECODER_CONFIG[] =
    "{\"architectures\":[\"%s\"],\"hidden_size\":64,\"num_hidden_layers\":%d,\"num_attention_heads\":2,\"num_key_value_heads\":"
    "1,"
    "\"head_dim\":32,\"intermediate_size\":%d,\"max_position_embeddings\":1024,\"vocab_size\":96,\"rms_norm_eps\":1e-5,"
    "\"rope_theta\":%d.0%s}";
static const char GEMMA3_MORE[] = ",\"sliding_window\":7,\"hidden_activation\":\"gelu_pytorch_tanh\","
                                  "\"query_pre_attn_scalar\":32,\"rope_local_base_freq\":10000.0,\"sliding_window_pattern\":6,"
                                  "\"final_logit_softcapping\":null";
static const char GEMMA2_MORE[] = ",\"sliding_window\":7,\"hidden_activation\":\"gelu_pytorch_tanh\","
                                  "\"query_pre_attn_scalar\":32,\"attn_logit_softcapping\":2.0,\"final_logit_softcapping\":3.0";
static const char GRANITE_MORE[] = ",\"embedding_multiplier\":3.0,\"residual_multiplier\":0.5,\"attention_multiplier\":0.25,"
                                   "\"logits_scaling\":4";
static const char SMOLLM3_MORE[] = ",\"no_rope_layers\":[1,1,1,0],\"sliding_window\":5";

static const char YARN[] = ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":256}";
static const char GPT_OSS_MORE[] =
    ",\"num_local_experts\":6,\"num_experts_per_tok\":3,\"sliding_window\":5,\"swiglu_limit\":7.0,"
    "\"layer_types\":[\"sliding_attention\",\"full_attention\"]";
static const char QWEN3MOE_MORE[] = ",\"num_experts\":6,\"num_experts_per_tok\":3,\"moe_intermediate_size\":32,\"norm_topk_"
                                    "prob\":true,\"decoder_sparse_step\":1";
static const char MISTRAL3_MORE[] =
    ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":256,\"mscale\":1.0,"
    "\"mscale_all_dim\":1.0,\"llama_4_scaling_beta\":0.5,\"rope_theta\":20000.0}";
static const char OLMO3_MORE[] = ",\"sliding_window\":5,\"layer_types\":[\"sliding_attention\",\"sliding_attention\","
                                 "\"sliding_attention\",\"full_attention\"]";

/* Factors as tiny.c has them, for contexts up to a quarter and for longer ones. */
static const char *longrope(void)
{
    static char text[1024];
    size_t at = (size_t)snprintf(text, sizeof text, "%s",
                                 ",\"original_max_position_embeddings\":256,\"rope_scaling\":{\"type\":\"longrope\","
                                 "\"attention_factor\":1.25");
    for (int n = 0; n < 2; n++) {
        at += (size_t)snprintf(text + at, sizeof text - at, ",\"%s_factor\":[", n ? "long" : "short");
        for (int i = 0; i < 16; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%g", i ? "," : "", 1 + (n ? 3.0 : 1.0) * i / 16);
        at += (size_t)snprintf(text + at, sizeof text - at, "]");
    }
    snprintf(text + at, sizeof text - at, "}");
    return text;
}

static const char *more_of(const tiny_shape *s)
{
    static char both[1024];
    static const struct {
        const char *architecture, *more;
    } list[] = {{"gemma3", GEMMA3_MORE},   {"gemma2", GEMMA2_MORE},     {"granite", GRANITE_MORE},
                {"smollm3", SMOLLM3_MORE}, {"mistral3", MISTRAL3_MORE}, {"qwen3moe", QWEN3MOE_MORE}};
    if (strcmp(s->architecture, "gpt-oss") == 0) {
        snprintf(both, sizeof both, "%s%s", GPT_OSS_MORE, YARN);
        return both;
    }
    if (s->rope_factors)
        return longrope();
    if (strcmp(s->architecture, "olmo2") == 0 && s->window > 0)
        return OLMO3_MORE;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(s->architecture, list[i].architecture) == 0)
            return list[i].more;
    return "";
}

static const char JINA_CONFIG[] =
    "{\"architectures\":[\"JinaBertForMaskedLM\"],\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"intermediate_size\":96,\"max_position_embeddings\":1024,\"vocab_size\":96,\"type_vocab_size\":2,"
    "\"layer_norm_eps\":1e-5,\"hidden_act\":\"gelu\",\"position_embedding_type\":\"alibi\",\"feed_forward_type\":\"geglu\"}";
static const char BERT_CONFIG[] =
    "{\"architectures\":[\"BertModel\"],\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"intermediate_size\":96,\"max_position_embeddings\":1024,\"vocab_size\":96,\"type_vocab_size\":2,"
    "\"layer_norm_eps\":1e-5,\"hidden_act\":\"gelu\"}";
static const char NOMIC_CONFIG[] =
    "{\"architectures\":[\"NomicBertModel\"],\"n_embd\":64,\"n_layer\":2,\"n_head\":2,\"n_inner\":96,\"n_positions\":1024,"
    "\"vocab_size\":96,\"type_vocab_size\":2,\"layer_norm_epsilon\":1e-5,\"activation_function\":\"swiglu\","
    "\"rotary_emb_base\":20000,\"rotary_emb_fraction\":1.0,\"prenorm\":false,\"qkv_proj_bias\":false}";

tiny_shape folder_shape(const char *architecture)
{
    tiny_shape shape = tiny_default(architecture);
    if (strcmp(architecture, "gemma3") == 0) {
        shape.layers = 6; /* the last sees everything */
        shape.window = 7;
        shape.tied = true;
    }
    if (strcmp(architecture, "gemma2") == 0)
        shape.window = 7;
    if (strcmp(architecture, "smollm3") == 0)
        shape.layers = 4; /* the last has no rope */
    if (strcmp(architecture, "jina-bert-v2") == 0)
        shape.heads = shape.key_heads = 2; /* a folder says nothing of the size of heads */
    if (strcmp(architecture, "gpt-oss") == 0)
        shape.window = 5;
    if (strcmp(architecture, "gpt-oss") == 0 || strcmp(architecture, "mistral3") == 0) {
        shape.scaling = "yarn";
        shape.scaling_factor = 4.0;
    }
    if (shape.experts && strcmp(architecture, "gpt-oss") == 0)
        shape.hidden = TINY_EXPERT_HIDDEN; /* one number says both */
    return shape;
}

void folder_write(const tiny_model *m, const char *class)
{
    char config[2048];
    const char *architecture = m->shape.architecture;
    const bool encoder = strstr(architecture, "bert") != NULL;
    mkdir(scratch_path(chosen), 0700);
    unlink(in_folder("tokenizer.model"));
    unlink(in_folder("tokenizer.json"));
    folder_write_tensors(m, NULL);
    snprintf(config, sizeof config, DECODER_CONFIG, class, (int)m->shape.layers, (int)m->shape.hidden,
             10000 * (int)m->shape.layers, more_of(&m->shape));
    folder_text_file("config.json", strcmp(architecture, "bert") == 0           ? BERT_CONFIG
                                    : strcmp(architecture, "nomic-bert") == 0   ? NOMIC_CONFIG
                                    : strcmp(architecture, "jina-bert-v2") == 0 ? JINA_CONFIG
                                                                                : config);
    if (encoder) {
        folder_text_file("tokenizer.json", FOLDER_WORDPIECE);
        folder_text_file("special_tokens_map.json", FOLDER_SPECIAL);
        mkdir(in_folder("1_Pooling"), 0700);
        folder_text_file("1_Pooling/config.json", "{\"pooling_mode_cls_token\":false,\"pooling_mode_mean_tokens\":true}");
        return;
    }
    const message pieces = sentencepiece_model(2);
    folder_file("tokenizer.model", pieces.bytes, pieces.count);
    unlink(in_folder("special_tokens_map.json"));
    if (strcmp(architecture, "gemma3") == 0)
        folder_text_file("tokenizer.json", FALLBACK);
}
