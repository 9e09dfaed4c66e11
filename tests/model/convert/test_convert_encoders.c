/* Folders of encoders and rerankers: the converted file computes the bits of the file that the same weights were written to,
 * and its tokenizer reads texts as the folder says. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <warpwave/arrays.h>

#include "base/memory.h"
#include "model/convert/convert.h"
#include "model/passes.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

enum { WIDTH = 64, TOKENS = 40, TENSORS_MAX = TINY_TENSORS_MAX, PATH_BYTES = 4096 };

static ww_device *device;

static const char *in_folder(const char *name)
{
    static char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", scratch_path("folder"), name);
    return path;
}

static void write_text(const char *name, const char *content)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, strlen(content), file), strlen(content));
    fclose(file);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------------------
 */

/* What a tensor is called in the folder; `{}` is the layer's number. */
typedef struct other_name {
    const char *gguf, *folder;
} other_name;

static const other_name BERT[] = {{"token_embd", "embeddings.word_embeddings"},
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
                                  {NULL, NULL}};
static const other_name MODERN[] = {{"token_embd", "embeddings.tok_embeddings"},
                                    {"token_embd_norm", "embeddings.norm"},
                                    {"output_norm", "final_norm"},
                                    {"attn_norm", "layers.{}.attn_norm"},
                                    {"attn_qkv", "layers.{}.attn.Wqkv"},
                                    {"attn_output", "layers.{}.attn.Wo"},
                                    {"ffn_norm", "layers.{}.mlp_norm"},
                                    {"ffn_up", "layers.{}.mlp.Wi"},
                                    {"ffn_down", "layers.{}.mlp.Wo"},
                                    {NULL, NULL}};
static const other_name GEMMA[] = {{"token_embd", "embed_tokens"},
                                   {"output_norm", "norm"},
                                   {"attn_q", "layers.{}.self_attn.q_proj"},
                                   {"attn_k", "layers.{}.self_attn.k_proj"},
                                   {"attn_v", "layers.{}.self_attn.v_proj"},
                                   {"attn_output", "layers.{}.self_attn.o_proj"},
                                   {"attn_q_norm", "layers.{}.self_attn.q_norm"},
                                   {"attn_k_norm", "layers.{}.self_attn.k_norm"},
                                   {"attn_norm", "layers.{}.input_layernorm"},
                                   {"post_attention_norm", "layers.{}.post_attention_layernorm"},
                                   {"ffn_norm", "layers.{}.pre_feedforward_layernorm"},
                                   {"post_ffw_norm", "layers.{}.post_feedforward_layernorm"},
                                   {"ffn_gate", "layers.{}.mlp.gate_proj"},
                                   {"ffn_up", "layers.{}.mlp.up_proj"},
                                   {"ffn_down", "layers.{}.mlp.down_proj"},
                                   {NULL, NULL}};

/* A class of models: its configuration, and where its head is. */
typedef struct model_class {
    const char *class, *architecture, *prefix, *more; /* of config.json */
    const other_name *names;
    const char *dense, *norm, *output; /* of the head; NULL: it embeds */
    int32_t skipped;                   /* rows of positions in front */
    bool ranks_mean;
} model_class;

static const model_class CLASSES[] = {
    {"BertForSequenceClassification", "bert", "bert.", "", BERT, "bert.pooler.dense", NULL, "classifier", 0, false},
    {"XLMRobertaModel", "bert", "", ",\"pad_token_id\":1", BERT, NULL, NULL, NULL, 2, false},
    {"XLMRobertaForSequenceClassification", "bert", "roberta.", ",\"pad_token_id\":1", BERT, "classifier.dense", NULL,
     "classifier.out_proj", 2, false},
    {"ModernBertModel", "modern-bert", "", "", MODERN, NULL, NULL, NULL, 0, false},
    {"ModernBertForSequenceClassification", "modern-bert", "model.", ",\"classifier_pooling\":\"mean\"", MODERN, "head.dense",
     "head.norm", "classifier", 0, true},
    {"Gemma3TextModel", "gemma-embedding", "", ",\"use_bidirectional_attention\":true", GEMMA, NULL, NULL, NULL, 0, false},
};
enum { CLASS_COUNT = sizeof CLASSES / sizeof *CLASSES };

/* "blk.3.attn_q.weight" to the name in the folder. */
static void name_in_folder(const model_class *c, const char *name, char out[128])
{
    char middle[64] = "", ending[16] = "";
    int layer = 0;
    const char *head = strncmp(name, "cls.output.", 11) == 0 ? c->output
                       : strncmp(name, "cls.norm.", 9) == 0  ? c->norm
                       : strncmp(name, "cls.", 4) == 0       ? c->dense
                                                             : NULL;
    if (head) {
        snprintf(out, 128, "%s%s", head, strrchr(name, '.'));
        return;
    }
    if (sscanf(name, "blk.%d.%63[^.].%15s", &layer, middle, ending) != 3)
        assert_int_equal(sscanf(name, "%63[^.].%15s", middle, ending), 2);
    for (const other_name *n = c->names; n->gguf; n++)
        if (strcmp(n->gguf, middle) == 0) {
            const char *place = strstr(n->folder, "{}");
            if (place)
                snprintf(out, 128, "%s%.*s%d%s.%s", c->prefix, (int)(place - n->folder), n->folder, layer, place + 2, ending);
            else
                snprintf(out, 128, "%s%s.%s", c->prefix, n->folder, ending);
            return;
        }
    fail_msg("the test has no name for %s", name);
}

/* The numbers as the folder has them: rows of positions that no token has in front, Gemma's norms less 1. */
static ww_array array_of(const model_class *c, const tiny_tensor *t, char name[128])
{
    ww_array a = ww_array_default();
    const int64_t skipped = strcmp(t->name, "position_embd.weight") == 0 ? c->skipped : 0;
    const int64_t rows = t->rows ? t->rows : 1, first = skipped * t->cols;
    float *made = calloc((size_t)((rows + skipped) * t->cols), sizeof *made);
    assert_non_null(made);
    memcpy(made + first, t->values, (size_t)(rows * t->cols) * sizeof *made);
    for (int64_t i = 0; i < rows * t->cols && c->names == GEMMA && strstr(t->name, "norm"); i++)
        made[i] -= 1.0f; /* exact: they are near 1 */
    if (strncmp(t->name, "dense_", 6) == 0)
        snprintf(name, 128, "linear.weight");
    else
        name_in_folder(c, t->name, name);
    a.name = name;
    a.element = WW_ELEMENT_F32;
    a.rank = t->rows ? 2 : 1;
    a.shape[0] = t->rows ? rows + skipped : t->cols;
    a.shape[1] = t->cols;
    a.data = made;
    return a;
}

static void write_dense(const ww_array *array, const char *folder)
{
    char name[64];
    mkdir(in_folder(folder), 0700);
    snprintf(name, sizeof name, "%s/model.safetensors", folder);
    CHECK_OK(ww_safetensors_write(in_folder(name), array, 1, NULL));
    snprintf(name, sizeof name, "%s/config.json", folder);
    write_text(name, "{\"activation_function\":\"torch.nn.modules.linear.Identity\",\"bias\":false}");
}

static void write_tensors(const model_class *c, const tiny_model *m)
{
    static ww_array arrays[TENSORS_MAX];
    static char names[TENSORS_MAX][128];
    int32_t count = 0;
    for (int32_t i = 0; i < m->count; i++) {
        arrays[count] = array_of(c, &m->tensors[i], names[count]);
        if (strncmp(m->tensors[i].name, "dense_", 6) == 0) {
            write_dense(&arrays[count], strstr(m->tensors[i].name, "dense_2") ? "2_Dense" : "3_Dense");
            free((void *)(uintptr_t)arrays[count].data);
        } else {
            count++;
        }
    }
    CHECK_OK(ww_safetensors_write(in_folder("model.safetensors"), arrays, count, NULL));
    for (int32_t i = 0; i < count; i++)
        free((void *)(uintptr_t)arrays[i].data);
}

/* ---- folders ----------------------------------------------------------------------------------------------------------------
 */

static const char UNIGRAM[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true},{\"id\":1,\"content\":\"<pad>\",\"special\":true},"
    "{\"id\":2,\"content\":\"</s>\",\"special\":true},{\"id\":3,\"content\":\"<unk>\",\"special\":true}],"
    "\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAAB4AA==\"},"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},{\"type\":\"Metaspace\"}]},"
    "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",2],\"cls\":[\"<s>\",0]},"
    "\"model\":{\"type\":\"Unigram\",\"unk_id\":3,\"vocab\":[[\"<s>\",0],[\"<pad>\",0],[\"</s>\",0],[\"<unk>\",0],"
    "[\"\xE2\x96\x81\",-2],[\"a\",-2],[\"\xE2\x96\x81"
    "a\",-1],[\"b\",-3]]}}";

static void write_folder(const model_class *c, const tiny_model *m)
{
    char config[1024];
    const bool gemma = c->names == GEMMA, modern = c->names == MODERN;
    mkdir(scratch_path("folder"), 0700);
    snprintf(config, sizeof config,
             "{\"architectures\":[\"%s\"],\"hidden_size\":64,\"num_hidden_layers\":%d,\"num_attention_heads\":2,"
             "\"num_key_value_heads\":%d,\"head_dim\":32,\"intermediate_size\":96,\"max_position_embeddings\":%d,"
             "\"vocab_size\":96,\"type_vocab_size\":2,\"%s\":1e-5,\"rope_theta\":%d.0,\"global_rope_theta\":%d.0,"
             "\"sliding_window\":%d,\"local_attention\":%d,\"query_pre_attn_scalar\":32%s}",
             c->class, (int)m->shape.layers, gemma ? 1 : 2, 1024 + c->skipped,
             gemma    ? "rms_norm_eps"
             : modern ? "norm_eps"
                      : "layer_norm_eps",
             10000 * (int)m->shape.layers, 10000 * (int)m->shape.layers, (int)m->shape.window, (int)m->shape.window, c->more);
    write_text("config.json", config);
    write_text("tokenizer.json", UNIGRAM);
    write_text("special_tokens_map.json", "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"unk_token\":\"<unk>\"}");
    mkdir(in_folder("1_Pooling"), 0700);
    write_text("1_Pooling/config.json", "{\"pooling_mode_mean_tokens\":true}");
    write_tensors(c, m);
}

static void run(const char *path, bool has_tokens, float out[WIDTH])
{
    static int32_t ids[TOKENS];
    const size_t count = TOKENS;
    ww_model *model;
    CHECK_OK(ww_model_open(path, device, NULL, &model));
    for (int t = 0; t < TOKENS; t++)
        ids[t] = (7 * t * t + 13 * t + 5) % 96;
    const text_job job = {
        .model = model, .ids = ids, .counts = &count, .count = 1, .results = out, .doing = "testing", .total = 1};
    CHECK_OK(passes_run(&job));
    if (has_tokens) {
        static const int32_t expected[] = {0, 6, 5, 4, 7, 2};
        int32_t found[16];
        size_t tokens = 0;
        CHECK_OK(ww_model_tokenize(model, " aa  b ", 7, 0, found, 16, &tokens));
        assert_int_equal(tokens, sizeof expected / sizeof *expected);
        assert_memory_equal(found, expected, sizeof expected);
    }
    ww_model_close(model);
}

static tiny_model make_class(const model_class *c)
{
    tiny_model m;
    tiny_shape shape = tiny_default(c->architecture);
    shape.layers = 4;
    shape.pooling = c->output ? WW_POOLING_RANK : WW_POOLING_MEAN;
    shape.ranks_mean = c->ranks_mean;
    shape.window = c->names == BERT ? 0 : 6;
    tiny_make(&m, &shape);
    write_folder(c, &m);
    return m;
}

static void a_folder_computes_the_bits_of_a_file(void **state)
{
    (void)state;
    for (int i = 0; i < CLASS_COUNT; i++) {
        float file[WIDTH] = {0}, folder[WIDTH] = {0};
        tiny_model m = make_class(&CLASSES[i]);
        tiny_write(&m, scratch_path("model.gguf"));
        run(scratch_path("model.gguf"), false, file);
        run(scratch_path("folder"), true, folder);
        if (memcmp(file, folder, sizeof file) != 0)
            fail_msg("%s: the folder's first number is %g, the file's %g", CLASSES[i].class, (double)folder[0],
                     (double)file[0]);
        tiny_free(&m);
    }
}

static ww_status convert(void)
{
    convert_report report;
    const convert_job job = {.folder = scratch_path("folder"), .out_path = scratch_path("out.gguf"), .device = device};
    return convert_folder(&job, &report);
}

static void check_refused(const char *class, const char *more, const char *word)
{
    char config[512];
    snprintf(config, sizeof config, "{\"architectures\":[\"%s\"],\"max_position_embeddings\":64%s}", class, more);
    write_text("config.json", config);
    if (convert() == WW_OK || !strstr(ww_error_message(), word))
        fail_msg("'%s' is not in: %s", word, ww_error_message());
}

static void what_encoders_do_not_have_is_refused_by_name(void **state)
{
    (void)state;
    tiny_model m = make_class(&CLASSES[5]);
    tiny_free(&m);
    check_refused("ModernBertModel", ",\"norm_bias\":true", "norm_bias is true");
    check_refused("ModernBertModel", ",\"global_attn_every_n_layers\":2", "global_attn_every_n_layers is 2");
    check_refused("ModernBertModel", ",\"hidden_activation\":\"relu\"", "'relu'");
    check_refused("XLMRobertaModel", ",\"pad_token_id\":70", "pad_token_id is 70");
    check_refused("Gemma3TextModel", "", "use_bidirectional_attention");
    write_text("2_Dense/config.json", "{\"activation_function\":\"torch.nn.modules.activation.Tanh\"}");
    check_refused("Gemma3TextModel", ",\"use_bidirectional_attention\":true", "Tanh");
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    tiny_model m = make_class(&CLASSES[5]);
    tiny_free(&m);
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
        cmocka_unit_test_setup_teardown(a_folder_computes_the_bits_of_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(what_encoders_do_not_have_is_refused_by_name, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
