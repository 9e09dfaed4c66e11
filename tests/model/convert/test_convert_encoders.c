/* Folders of encoders and rerankers: the converted file computes the bits of the file that the same weights were written to,
 * and its tokenizer reads texts as the folder says. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/conversions.h"
#include "model/passes.h"
#include "support/models/folder.h"
#include "support/scratch.h"

enum { WIDTH = 64, TOKENS = 40 };

static ww_device *device;

/* A class of models: its name and keys in config.json, and how its folder is written. */
typedef struct model_class {
    const char *class, *architecture, *more;
    folder_class folder;
    bool ranks_mean;
} model_class;

static const model_class CLASSES[] = {
    {"BertForSequenceClassification", "bert", "", {"bert.", "bert.pooler.dense", NULL, "classifier", 0}, false},
    {"XLMRobertaModel", "bert", ",\"pad_token_id\":1", {"", NULL, NULL, NULL, 2}, false},
    {"XLMRobertaForSequenceClassification",
     "bert",
     ",\"pad_token_id\":1",
     {"roberta.", "classifier.dense", NULL, "classifier.out_proj", 2},
     false},
    {"ModernBertModel", "modern-bert", "", {"", NULL, NULL, NULL, 0}, false},
    {"ModernBertForSequenceClassification",
     "modern-bert",
     ",\"classifier_pooling\":\"mean\"",
     {"model.", "head.dense", "head.norm", "classifier", 0},
     true},
    {"MPNetModel", "mpnet", ",\"pad_token_id\":1", {"", NULL, NULL, NULL, 2}, false},
    {"Qwen2ForCausalLM", "qwen2", ",\"is_causal\":false", {"model.", NULL, NULL, NULL, 0}, false},
    {"Gemma3TextModel", "gemma-embedding", ",\"use_bidirectional_attention\":true", {"", NULL, NULL, NULL, 0}, false},
};
enum { CLASS_COUNT = sizeof CLASSES / sizeof *CLASSES };

static const char UNIGRAM[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true},{\"id\":1,\"content\":\"<pad>\",\"special\":true},"
    "{\"id\":2,\"content\":\"</s>\",\"special\":true},{\"id\":3,\"content\":\"<unk>\",\"special\":true}],"
    "\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAAB4AA==\"},"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},{\"type\":\"Metaspace\"}]},"
    "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",2],\"cls\":[\"<s>\",0]},"
    "\"model\":{\"type\":\"Unigram\",\"unk_id\":3,\"vocab\":[[\"<s>\",0],[\"<pad>\",0],[\"</s>\",0],[\"<unk>\",0],"
    "[\"\xE2\x96\x81\",-2],[\"a\",-2],[\"\xE2\x96\x81"
    "a\",-1],[\"b\",-3]]}}";

/* Is it built as a decoder? */
static bool is_decoder(const model_class *c)
{
    return strcmp(c->architecture, "gemma-embedding") == 0 || strcmp(c->architecture, "qwen2") == 0;
}

static void write_folder(const model_class *c, const tiny_model *m)
{
    char config[1024];
    const bool decoder = is_decoder(c), modern = strcmp(c->architecture, "modern-bert") == 0;
    mkdir(scratch_path("folder"), 0700);
    snprintf(config, sizeof config,
             "{\"architectures\":[\"%s\"],\"hidden_size\":64,\"num_hidden_layers\":%d,\"num_attention_heads\":2,"
             "\"num_key_value_heads\":%d,\"head_dim\":32,\"intermediate_size\":96,\"max_position_embeddings\":%d,"
             "\"vocab_size\":96,\"type_vocab_size\":2,\"%s\":1e-5,\"rope_theta\":%d.0,\"global_rope_theta\":%d.0,"
             "\"sliding_window\":%d,\"local_attention\":%d,\"query_pre_attn_scalar\":32%s}",
             c->class, (int)m->shape.layers, decoder ? 1 : 2, 1024 + c->folder.skipped,
             decoder  ? "rms_norm_eps"
             : modern ? "norm_eps"
                      : "layer_norm_eps",
             10000 * (int)m->shape.layers, 10000 * (int)m->shape.layers, (int)m->shape.window, (int)m->shape.window, c->more);
    folder_text_file("config.json", config);
    folder_text_file("tokenizer.json", UNIGRAM);
    folder_text_file("special_tokens_map.json", "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"unk_token\":\"<unk>\"}");
    mkdir(in_folder("1_Pooling"), 0700);
    folder_text_file("1_Pooling/config.json", "{\"pooling_mode_mean_tokens\":true}");
    folder_write_tensors(m, &c->folder);
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
    shape.pooling = c->folder.output ? WW_POOLING_RANK : WW_POOLING_MEAN;
    shape.ranks_mean = c->ranks_mean;
    shape.sees_all = strcmp(c->architecture, "qwen2") == 0;
    shape.tied = true;
    shape.window = strcmp(c->architecture, "bert") == 0 || strcmp(c->architecture, "mpnet") == 0 ? 0 : 6;
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

static void check_refused(const char *class, const char *more, const char *word)
{
    char config[512];
    snprintf(config, sizeof config, "{\"architectures\":[\"%s\"],\"max_position_embeddings\":64%s}", class, more);
    folder_text_file("config.json", config);
    if (folder_convert(device, NULL) == WW_OK || !strstr(ww_error_message(), word))
        fail_msg("'%s' is not in: %s", word, ww_error_message());
}

static void unsupported_features_of_encoders_are_refused_by_name(void **state)
{
    (void)state;
    tiny_model m = make_class(&CLASSES[CLASS_COUNT - 1]);
    tiny_free(&m);
    check_refused("MPNetModel", ",\"relative_attention_num_buckets\":16", "relative_attention_num_buckets is 16");
    check_refused("ModernBertModel", ",\"norm_bias\":true", "norm_bias is true");
    check_refused("ModernBertModel", ",\"global_attn_every_n_layers\":2", "global_attn_every_n_layers is 2");
    check_refused("ModernBertModel", ",\"hidden_activation\":\"relu\"", "'relu'");
    check_refused("XLMRobertaModel", ",\"pad_token_id\":70", "pad_token_id is 70");
    check_refused("Gemma3TextModel", "", "use_bidirectional_attention");
    folder_text_file("2_Dense/config.json", "{\"activation_function\":\"torch.nn.modules.activation.Tanh\"}");
    check_refused("Gemma3TextModel", ",\"use_bidirectional_attention\":true", "Tanh");
    folder_text_file("modules.json", "[{\"type\":\"sentence_transformers.models.LSTM\",\"path\":\"2_LSTM\"}]");
    check_refused("Gemma3TextModel", ",\"use_bidirectional_attention\":true", "models.LSTM' is not supported");
    folder_text_file("modules.json", "[{\"type\":\"sentence_transformers.models.Dense\",\"path\":\"../x\"}]");
    check_refused("Gemma3TextModel", ",\"use_bidirectional_attention\":true", "'../x' is not the name of a folder");
    unlink(in_folder("modules.json"));
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    tiny_model m = make_class(&CLASSES[CLASS_COUNT - 1]);
    tiny_free(&m);
    convert_with_faults(
        &(ww_conversion){.folder = scratch_path("folder"), .out_path = scratch_path("out.gguf"), .device = device});
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
        cmocka_unit_test_setup_teardown(unsupported_features_of_encoders_are_refused_by_name, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
