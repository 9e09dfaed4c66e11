/* Every architecture that models are run of is converted from a folder, as model hubs have it, with random weights: the file
 * gives the bits of the one that was written straight, which are near the reference in doubles (support/models/tiny.h).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "model/convert/convert.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

#define WORD "\xE2\x96\x81"

enum { VOCABULARY = 96, WIDTH = 64, TOKENS = 9, TENSORS_MAX = 128, PATH_BYTES = SCRATCH_PATH_BYTES + 64 };

static ww_device *device;
static const int32_t text[TOKENS] = {3, 14, 15, 92, 65, 35, 8, 9, 79};

/* ---- a folder --------------------------------------------------------------------------------------------------------------
 */

static const char *in_folder(const char *name)
{
    static char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", scratch_path("folder"), name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

static void write_text(const char *name, const char *content)
{
    write_file(name, content, strlen(content));
}

/* What a tensor is called in the folder; `{}` is the layer's number. */
typedef struct other_name {
    const char *gguf, *folder;
} other_name;

static const other_name DECODER[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"attn_q", "model.layers.{}.self_attn.q_proj"},
    {"attn_k", "model.layers.{}.self_attn.k_proj"},
    {"attn_v", "model.layers.{}.self_attn.v_proj"},
    {"attn_output", "model.layers.{}.self_attn.o_proj"},
    {"attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"attn_norm", "model.layers.{}.input_layernorm"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"ffn_up", "model.layers.{}.mlp.up_proj"},
    {"ffn_down", "model.layers.{}.mlp.down_proj"},
    {NULL, NULL},
};
static const other_name GEMMA3[] = {
    {"ffn_norm", "model.layers.{}.pre_feedforward_layernorm"},
    {"post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
    {NULL, NULL},
};
static const other_name OLMO2[] = {
    {"post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
    {NULL, NULL},
};
static const other_name PHI3[] = {
    {"attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
    {"ffn_up", "model.layers.{}.mlp.gate_up_proj"},
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

static const char *find_name(const other_name *names, const char *gguf)
{
    for (; names->gguf; names++)
        if (strcmp(names->gguf, gguf) == 0)
            return names->folder;
    return NULL;
}

/* The name of a tensor of an architecture: "blk.3.attn_q.weight" to that of the folder. */
static void name_in_folder(const char *architecture, const char *name, char out[128])
{
    char middle[64] = "", ending[16] = "";
    int layer = 0;
    if (sscanf(name, "blk.%d.%63[^.].%15s", &layer, middle, ending) != 3)
        assert_int_equal(sscanf(name, "%63[^.].%15s", middle, ending), 2);
    const char *found = strncmp(architecture, "gemma", 5) == 0 ? find_name(GEMMA3, middle)
                        : strcmp(architecture, "olmo2") == 0   ? find_name(OLMO2, middle)
                        : strcmp(architecture, "phi3") == 0    ? find_name(PHI3, middle)
                                                               : NULL;
    if (!found)
        found = find_name(strcmp(architecture, "bert") == 0         ? BERT
                          : strcmp(architecture, "nomic-bert") == 0 ? NOMIC
                                                                    : DECODER,
                          middle);
    if (!found)
        fail_msg("the test has no name for %s", name);
    const char *place = strstr(found, "{}");
    if (place)
        snprintf(out, 128, "%.*s%d%s.%s", (int)(place - found), found, layer, place + 2, ending);
    else
        snprintf(out, 128, "%s.%s", found, ending);
}

/* A tensor's numbers as the folder has them: rows of Llama's queries and keys in halves, Gemma's norms less 1. */
static float *numbers_in_folder(const tiny_model *m, const tiny_tensor *t)
{
    const int64_t rows = t->rows ? t->rows : 1, size = m->shape.head_size;
    float *made = malloc((size_t)(rows * t->cols) * sizeof *made);
    const bool llama = strstr("llama granite smollm3", m->shape.architecture) != NULL;
    const bool gemma = strncmp(m->shape.architecture, "gemma", 5) == 0;
    const bool pairs = llama && (strstr(t->name, "attn_q.weight") || strstr(t->name, "attn_k.weight"));
    for (int64_t row = 0; row < rows; row++) {
        const int64_t within = row % size, to = pairs ? row - within + within % 2 * (size / 2) + within / 2 : row;
        memcpy(made + to * t->cols, t->values + row * t->cols, (size_t)t->cols * sizeof *made);
    }
    for (int64_t i = 0; i < rows * t->cols && gemma && strstr(t->name, "norm"); i++)
        made[i] -= 1.0f; /* exact: they are near 1 */
    return made;
}

static void write_tensors(const tiny_model *m)
{
    static ww_array arrays[TENSORS_MAX];
    static char names[TENSORS_MAX][128];
    for (int32_t i = 0; i < m->count; i++) {
        const tiny_tensor *t = &m->tensors[i];
        arrays[i] = ww_array_default();
        name_in_folder(m->shape.architecture, t->name, names[i]);
        arrays[i].name = names[i];
        arrays[i].element = WW_ELEMENT_F32;
        arrays[i].rank = t->rows ? 2 : 1;
        arrays[i].shape[0] = t->rows ? t->rows : t->cols;
        arrays[i].shape[1] = t->cols;
        arrays[i].data = numbers_in_folder(m, t);
    }
    CHECK_OK(ww_safetensors_write(in_folder("model.safetensors"), arrays, m->count, NULL));
    for (int32_t i = 0; i < m->count; i++)
        free((void *)(uintptr_t)arrays[i].data);
}

/* ---- tokenizers ------------------------------------------------------------------------------------------------------------
 */

static const char WORDPIECE[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"[PAD]\",\"special\":true},{\"id\":1,\"content\":\"[UNK]\",\"special\":true},"
    "{\"id\":2,\"content\":\"[CLS]\",\"special\":true},{\"id\":3,\"content\":\"[SEP]\",\"special\":true}],"
    "\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true,\"strip_accents\":null},"
    "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"un\":4,\"##able\":5}}}";
static const char SPECIAL[] =
    "{\"cls_token\":\"[CLS]\",\"sep_token\":\"[SEP]\",\"unk_token\":\"[UNK]\",\"pad_token\":\"[PAD]\"}";

typedef struct message {
    unsigned char bytes[4096];
    size_t count;
} message;

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

/* How it was trained (the algorithm), and that no space is put before a text. */
static void put_specs(message *m, unsigned algorithm)
{
    static const unsigned char normalizer[] = {3 << 3 | 2, 2, 3 << 3, 0};
    const unsigned char trainer[] = {2 << 3 | 2, 2, 3 << 3, (unsigned char)algorithm};
    for (size_t i = 0; i < sizeof trainer; i++)
        put_byte(m, trainer[i]);
    for (size_t i = 0; i < sizeof normalizer; i++)
        put_byte(m, normalizer[i]);
}

static message sentencepiece_model(unsigned algorithm)
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

/* ---- configurations --------------------------------------------------------------------------------------------------------
 */

static const char DECODER_CONFIG[] =
    "{\"architectures\":[\"%s\"],\"hidden_size\":64,\"num_hidden_layers\":%d,\"num_attention_heads\":2,\"num_key_value_heads\":"
    "1,"
    "\"head_dim\":32,\"intermediate_size\":96,\"max_position_embeddings\":1024,\"vocab_size\":96,\"rms_norm_eps\":1e-5,"
    "\"rope_theta\":%d.0%s}";
static const char GEMMA3_MORE[] = ",\"sliding_window\":7,\"hidden_activation\":\"gelu_pytorch_tanh\","
                                  "\"query_pre_attn_scalar\":32,\"rope_local_base_freq\":10000.0,\"sliding_window_pattern\":6,"
                                  "\"final_logit_softcapping\":null";
static const char GEMMA2_MORE[] = ",\"sliding_window\":7,\"hidden_activation\":\"gelu_pytorch_tanh\","
                                  "\"query_pre_attn_scalar\":32,\"attn_logit_softcapping\":2.0,\"final_logit_softcapping\":3.0";
static const char GRANITE_MORE[] = ",\"embedding_multiplier\":3.0,\"residual_multiplier\":0.5,\"attention_multiplier\":0.25,"
                                   "\"logits_scaling\":4";
static const char SMOLLM3_MORE[] = ",\"no_rope_layers\":[1,1,1,0],\"sliding_window\":5";

static const char *more_of(const char *architecture)
{
    return strcmp(architecture, "gemma3") == 0    ? GEMMA3_MORE
           : strcmp(architecture, "gemma2") == 0  ? GEMMA2_MORE
           : strcmp(architecture, "granite") == 0 ? GRANITE_MORE
           : strcmp(architecture, "smollm3") == 0 ? SMOLLM3_MORE
                                                  : "";
}

static const char BERT_CONFIG[] =
    "{\"architectures\":[\"BertModel\"],\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":2,"
    "\"intermediate_size\":96,\"max_position_embeddings\":1024,\"vocab_size\":96,\"type_vocab_size\":2,"
    "\"layer_norm_eps\":1e-5,\"hidden_act\":\"gelu\"}";
static const char NOMIC_CONFIG[] =
    "{\"architectures\":[\"NomicBertModel\"],\"n_embd\":64,\"n_layer\":2,\"n_head\":2,\"n_inner\":96,\"n_positions\":1024,"
    "\"vocab_size\":96,\"type_vocab_size\":2,\"layer_norm_epsilon\":1e-5,\"activation_function\":\"swiglu\","
    "\"rotary_emb_base\":20000,\"rotary_emb_fraction\":1.0,\"prenorm\":false,\"qkv_proj_bias\":false}";

static tiny_shape shape_of(const char *architecture)
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
    return shape;
}

static void write_folder(const tiny_model *m, const char *class)
{
    char config[1024];
    const char *architecture = m->shape.architecture;
    const bool encoder = strstr(architecture, "bert") != NULL;
    mkdir(scratch_path("folder"), 0700);
    unlink(in_folder("tokenizer.model"));
    unlink(in_folder("tokenizer.json"));
    write_tensors(m);
    snprintf(config, sizeof config, DECODER_CONFIG, class, (int)m->shape.layers, 10000 * (int)m->shape.layers,
             more_of(architecture));
    write_text("config.json", strcmp(architecture, "bert") == 0         ? BERT_CONFIG
                              : strcmp(architecture, "nomic-bert") == 0 ? NOMIC_CONFIG
                                                                        : config);
    if (encoder) {
        write_text("tokenizer.json", WORDPIECE);
        write_text("special_tokens_map.json", SPECIAL);
        mkdir(in_folder("1_Pooling"), 0700);
        write_text("1_Pooling/config.json", "{\"pooling_mode_cls_token\":false,\"pooling_mode_mean_tokens\":true}");
        return;
    }
    const message pieces = sentencepiece_model(2);
    write_file("tokenizer.model", pieces.bytes, pieces.count);
    unlink(in_folder("special_tokens_map.json"));
    if (strcmp(architecture, "gemma3") == 0)
        write_text("tokenizer.json", FALLBACK);
}

static ww_status convert(void)
{
    convert_report report;
    const convert_job job = {.folder = scratch_path("folder"), .out_path = scratch_path("out.gguf"), .device = device};
    unlink(job.out_path);
    return convert_folder(&job, &report);
}

/* ---- what they compute -----------------------------------------------------------------------------------------------------
 */

static ww_model *open_model(const char *name)
{
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    options.activations = WW_ACTIVATIONS_FLOAT;
    options.cache = WW_QUANT_F32;
    CHECK_OK(ww_model_open(scratch_path(name), device, &options, &model));
    return model;
}

static void compute(const char *name, bool encoder, float *out)
{
    ww_model *model = open_model(name);
    if (encoder) {
        const size_t count = TOKENS;
        CHECK_OK(ww_model_embed_tokens(model, text, &count, 1, out));
    } else {
        ww_session *session;
        CHECK_OK(ww_session_create(model, &session));
        CHECK_OK(ww_session_feed(session, text, TOKENS));
        CHECK_OK(ww_session_logits(session, out));
        ww_session_destroy(session);
    }
    ww_model_close(model);
}

static void check_architecture(const char *architecture, const char *class)
{
    tiny_model m;
    const tiny_shape shape = shape_of(architecture);
    const bool encoder = strstr(architecture, "bert") != NULL;
    const int count = encoder ? WIDTH : VOCABULARY;
    float straight[VOCABULARY], converted[VOCABULARY];
    double reference[VOCABULARY];
    tiny_make(&m, &shape);
    tiny_write(&m, scratch_path("straight.gguf"));
    write_folder(&m, class);
    CHECK_OK(convert());
    compute("straight.gguf", encoder, straight);
    compute("out.gguf", encoder, converted);
    if (memcmp(straight, converted, (size_t)count * sizeof *converted) != 0)
        fail_msg("%s: the converted model computes other bits", architecture);
    /* Of the others transformers/test_model_transformers.c has the reference. */
    const bool known = encoder || strstr("llama qwen2 qwen3 gemma3", architecture);
    if (known)
        (encoder ? tiny_embedding : tiny_logits)(&m, text, TOKENS, reference);
    for (int i = 0; i < count && known; i++)
        if (fabs((double)converted[i] - reference[i]) > 1e-4)
            fail_msg("%s: number %d is %g, not %g", architecture, i, (double)converted[i], reference[i]);
    tiny_free(&m);
}

static void every_architecture_that_is_run_is_converted(void **state)
{
    (void)state;
    check_architecture("llama", "LlamaForCausalLM");
    check_architecture("llama", "MistralForCausalLM");
    check_architecture("qwen2", "Qwen2ForCausalLM");
    check_architecture("qwen3", "Qwen3ForCausalLM");
    check_architecture("gemma3", "Gemma3ForCausalLM");
    check_architecture("gemma2", "Gemma2ForCausalLM");
    check_architecture("phi3", "Phi3ForCausalLM");
    check_architecture("granite", "GraniteForCausalLM");
    check_architecture("olmo2", "Olmo2ForCausalLM");
    check_architecture("smollm3", "SmolLM3ForCausalLM");
    check_architecture("bert", "BertModel");
    check_architecture("nomic-bert", "NomicBertModel");
}

static void make_gemma(void)
{
    tiny_model m;
    const tiny_shape shape = shape_of("gemma3");
    tiny_make(&m, &shape);
    write_folder(&m, "Gemma3ForCausalLM");
    tiny_free(&m);
}

static void pieces_and_scores_come_from_sentencepieces_own_file(void **state)
{
    (void)state;
    int32_t ids[8];
    size_t count = 0;
    make_gemma();
    CHECK_OK(convert());
    ww_model *model = open_model("out.gguf");
    CHECK_OK(ww_model_tokenize(model, "abc a<start_of_turn>", 20, 0, ids, 8, &count));
    /* No BOS: the file's template adds none. "bc" has the best score; then "abc". */
    static const int32_t expected[] = {8, 9, 3, 10};
    assert_int_equal(count, 4);
    assert_memory_equal(ids, expected, sizeof expected);
    ww_model_close(model);
}

static void check_refused(ww_status expected, const char *word)
{
    const int64_t held = memory_blocks_held();
    CHECK_FAILS(expected, convert());
    if (!strstr(ww_error_message(), word))
        fail_msg("'%s' is not in: %s", word, ww_error_message());
    assert_int_equal(memory_blocks_held(), held);
    assert_int_equal(access(scratch_path("out.gguf"), F_OK), -1);
}

/* A configuration of Gemma 3 that says something else. */
static void check_config(const char *more, const char *word)
{
    char config[1024];
    snprintf(config, sizeof config, DECODER_CONFIG, "Gemma3ForCausalLM", 6, 60000, more);
    write_text("config.json", config);
    check_refused(WW_UNSUPPORTED, word);
}

static void what_has_no_keys_is_refused_by_name(void **state)
{
    (void)state;
    make_gemma();
    check_config(",\"hidden_activation\":\"relu\"", "hidden_activation is 'relu'");
    check_config(",\"sliding_window_pattern\":4", "sliding_window_pattern is 4");
    check_config(",\"rope_local_base_freq\":5000.0", "rope_local_base_freq is 5000");
    check_config(",\"query_pre_attn_scalar\":64", "query_pre_attn_scalar is 64");
    check_config(",\"final_logit_softcapping\":30.0", "final_logit_softcapping");
    check_config(",\"layer_types\":[\"full_attention\"]", "layer_types says 'full_attention' of layer 0");
    make_gemma();
    unlink(in_folder("tokenizer.model"));
    check_refused(WW_UNSUPPORTED, "tokenizer.model is missing");
    unlink(in_folder("tokenizer.json"));
    check_refused(WW_NOT_FOUND, "neither tokenizer.json nor tokenizer.model");
    make_gemma();
    const message unigram = sentencepiece_model(1);
    write_file("tokenizer.model", unigram.bytes, unigram.count);
    check_refused(WW_UNSUPPORTED, "other than BPE");
    static const char *const flags[] = {"prenorm", "qkv_proj_bias", "rotary_emb_interleaved"};
    for (size_t i = 0; i < 3; i++) {
        char config[256];
        snprintf(config, sizeof config, "{\"architectures\":[\"NomicBertModel\"],\"%s\":true}", flags[i]);
        write_text("config.json", config);
        check_refused(WW_UNSUPPORTED, flags[i]);
    }
}

/* Cut anywhere, or with any byte changed: a status, or a file that can be opened or not; never a crash. */
static void a_damaged_tokenizer_model_is_harmless(void **state)
{
    (void)state;
    const message whole = sentencepiece_model(2);
    make_gemma();
    for (size_t cut = 0; cut < whole.count; cut += 3) {
        write_file("tokenizer.model", whole.bytes, cut);
        (void)convert();
    }
    for (size_t at = 0; at < whole.count; at += 2) {
        message damaged = whole;
        damaged.bytes[at] ^= 0x81;
        write_file("tokenizer.model", damaged.bytes, damaged.count);
        (void)convert();
    }
    write_file("tokenizer.model", whole.bytes, 5);
    check_refused(WW_CORRUPT_FILE, "no SentencePiece model");
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    make_gemma();
    CHECK_OK(convert());
    const int64_t held = memory_blocks_held();
    for (int64_t n = 1;; n++) {
        memory_fail_at(n);
        const ww_status status = convert();
        memory_fail_at(0);
        assert_int_equal(memory_blocks_held(), held);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_true(n < 20000);
    }
}

static int setup(void **state)
{
    CHECK_OK(ww_device_open("cpu", &device));
    return scratch_setup(state);
}

static int teardown(void **state)
{
    ww_device_close(device);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_that_is_run_is_converted),
        cmocka_unit_test(pieces_and_scores_come_from_sentencepieces_own_file),
        cmocka_unit_test(what_has_no_keys_is_refused_by_name),
        cmocka_unit_test(a_damaged_tokenizer_model_is_harmless),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
