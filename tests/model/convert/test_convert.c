/* Converting a model's folder to a GGUF file: names, keys, the order of rows, types, and refused folders. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/conversions.h"
#include "support/check.h"
#include "support/data/tokens.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "support/models/folder.h"
#include "support/scratch.h"

#define WORD "\xE2\x96\x81"

enum { WIDTH = 32, HEADS = 4, KEY_HEADS = 2, HEAD = 8, HIDDEN = 64, TOKENS = 7 };

static char folder[SCRATCH_PATH_BYTES];
enum { BYTE_TOKENS = 260, NUMBERS = BYTE_TOKENS * WIDTH }; /* as many as the largest tensor has */
static float numbers[NUMBERS];

static void write_file(const char *name, const char *text)
{
    char path[SCRATCH_PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

typedef struct test_tensor {
    const char *name;
    int64_t rows, cols; /* no columns: a vector */
} test_tensor;

static void write_tensors(const test_tensor *tensors, int64_t count)
{
    ww_array arrays[32];
    char path[SCRATCH_PATH_BYTES + 64];
    for (int64_t i = 0; i < count; i++) {
        arrays[i] = ww_array_default();
        arrays[i].name = tensors[i].name;
        arrays[i].element = WW_ELEMENT_F32;
        arrays[i].rank = tensors[i].cols > 0 ? 2 : 1;
        arrays[i].shape[0] = tensors[i].rows;
        arrays[i].shape[1] = tensors[i].cols;
        arrays[i].data = numbers;
    }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    CHECK_OK(ww_safetensors_write(path, arrays, count, NULL));
}

static const char BERT_CONFIG[] =
    "{\"architectures\":[\"BertModel\"],\"hidden_size\":32,\"num_hidden_layers\":1,\"num_attention_heads\":4,\"intermediate_"
    "size\":64,"
    "\"max_position_embeddings\":16,\"vocab_size\":7,\"type_vocab_size\":2,\"layer_norm_eps\":1e-12,\"hidden_act\":\"gelu\"}";
static const test_tensor BERT_TENSORS[] = {
    {"embeddings.word_embeddings.weight", TOKENS, WIDTH},
    {"embeddings.position_embeddings.weight", 16, WIDTH},
    {"embeddings.token_type_embeddings.weight", 2, WIDTH},
    {"embeddings.LayerNorm.weight", WIDTH, 0},
    {"encoder.layer.0.attention.self.query.weight", WIDTH, WIDTH},
    {"encoder.layer.0.attention.self.query.bias", WIDTH, 0},
    {"encoder.layer.0.intermediate.dense.weight", HIDDEN, WIDTH},
    {"encoder.layer.0.output.LayerNorm.bias", WIDTH, 0},
    {"pooler.dense.weight", WIDTH, WIDTH},
};
enum { BERT_COUNT = sizeof BERT_TENSORS / sizeof BERT_TENSORS[0] };

static void make_bert(void)
{
    char path[SCRATCH_PATH_BYTES + 64];
    snprintf(folder, sizeof folder, "%s", scratch_path("a-bert"));
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/1_Pooling", folder);
    mkdir(path, 0700);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (float)i;
    write_file("config.json", BERT_CONFIG);
    write_file("tokenizer.json", FOLDER_WORDPIECE);
    write_file(
        "special_tokens_map.json",
        "{\"cls_token\":\"[CLS]\",\"sep_token\":{\"content\":\"[SEP]\"},\"unk_token\":\"[UNK]\",\"pad_token\":\"[PAD]\"}");
    write_file("1_Pooling/config.json", "{\"pooling_mode_cls_token\":false,\"pooling_mode_mean_tokens\":true}");
    write_file("sentence_bert_config.json", "{\"max_seq_length\":12}");
    write_file("README.md", "---\nlicense: apache-2.0\n---\nlicense: none\n");
    write_tensors(BERT_TENSORS, BERT_COUNT);
}

static ww_status convert(const char *type, ww_conversion_report *report)
{
    ww_device *device = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    const ww_conversion job = {.folder = folder, .out_path = scratch_path("out.gguf"), .type = type, .device = device};
    const ww_status status = convert_folder(&job, report);
    ww_device_close(device);
    return status;
}

static void the_public_call_converts_and_refuses_what_is_missing(void **state)
{
    (void)state;
    ww_device *device = NULL;
    ww_conversion job = ww_conversion_default();
    ww_conversion_report report = ww_conversion_report_default();
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_convert(NULL, &report));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_convert(&job, &report));
    assert_non_null(strstr(ww_error_message(), "folder is NULL"));
    make_bert();
    job.folder = folder;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_convert(&job, &report));
    assert_non_null(strstr(ww_error_message(), "out_path is NULL"));
    job.out_path = scratch_path("public.gguf");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_convert(&job, &report));
    assert_non_null(strstr(ww_error_message(), "device is NULL"));
    job.device = device, job.type = "q8_K";
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_convert(&job, &report));
    assert_non_null(strstr(ww_error_message(), "for activations"));
    job.type = "q8_0";
    CHECK_OK(ww_model_convert(&job, NULL));
    CHECK_OK(ww_model_convert(&job, &report));
    assert_string_equal(report.architecture, "bert");
    assert_int_equal(report.tensors, BERT_COUNT - 1); /* without the pooler */
    ww_device_close(device);
}

static ww_gguf *converted(const char *type)
{
    ww_gguf *g = NULL;
    ww_conversion_report report;
    CHECK_OK(convert(type, &report));
    CHECK_OK(ww_gguf_open(scratch_path("out.gguf"), &g));
    return g;
}

static ww_gguf_tensor tensor_of(const ww_gguf *g, const char *name, int64_t *index)
{
    ww_gguf_tensor t = ww_gguf_tensor_default();
    CHECK_OK(ww_gguf_find_tensor(g, name, index));
    CHECK_OK(ww_gguf_tensor_at(g, *index, &t));
    return t;
}

static void check_refused_folder(ww_status expected, const char *word)
{
    ww_conversion_report report;
    remove(scratch_path("out.gguf"));
    const int64_t held = blocks_held();
    CHECK_FAILS(expected, convert(NULL, &report));
    if (!strstr(ww_error_message(), word))
        fail_msg("'%s' is not in: %s", word, ww_error_message());
    assert_int_equal(blocks_held(), held);
    assert_null(fopen(scratch_path("out.gguf"), "r"));
}

static void an_encoder_becomes_a_file_that_others_read(void **state)
{
    (void)state;
    int64_t number = 0, index = 0;
    const char *text = NULL;
    double epsilon = 0;
    make_bert();
    ww_gguf *g = converted("q8_0");
    CHECK_OK(ww_gguf_text(g, "general.architecture", &text, NULL));
    assert_string_equal(text, "bert");
    CHECK_OK(ww_gguf_text(g, "general.name", &text, NULL));
    assert_string_equal(text, "a-bert");
    CHECK_OK(ww_gguf_text(g, "general.license", &text, NULL));
    assert_string_equal(text, "apache-2.0");
    CHECK_OK(ww_gguf_i64(g, "bert.feed_forward_length", &number));
    assert_int_equal(number, HIDDEN);
    CHECK_OK(ww_gguf_i64(g, "bert.pooling_type", &number));
    assert_int_equal(number, 1);
    CHECK_OK(ww_gguf_i64(g, "warpwave.embedding_tokens", &number));
    assert_int_equal(number, 12);
    CHECK_OK(ww_gguf_f64(g, "bert.attention.layer_norm_epsilon", &epsilon));
    assert_true(epsilon == (double)1e-12F);
    ww_gguf_tensor t = tensor_of(g, "blk.0.ffn_up.weight", &index);
    assert_int_equal(t.type, WW_QUANT_Q8_0);
    assert_int_equal(t.shape[0], WIDTH);
    assert_int_equal(t.shape[1], HIDDEN);
    assert_int_equal(tensor_of(g, "position_embd.weight", &index).type, WW_QUANT_F32); /* stays as it is */
    assert_int_equal(tensor_of(g, "blk.0.attn_q.bias", &index).type, WW_QUANT_F32);
    assert_int_equal(tensor_of(g, "token_embd.weight", &index).type, WW_QUANT_Q8_0);
    CHECK_FAILS(WW_NOT_FOUND, ww_gguf_find_tensor(g, "pooler.dense.weight", &index));
    tokenizer *tokens = NULL;
    CHECK_OK(tokenizer_create(g, &tokens));
    CHECK_IDS(tokens, "Unable", 0, IDS(2, 4, 5, 3));
    assert_int_equal(tokenizer_size(tokens), TOKENS); /* the seventh is padding */
    tokenizer_destroy(tokens);
    ww_gguf_close(g);
}

static void numbers_stay_as_they_are_without_a_type(void **state)
{
    (void)state;
    float read[WIDTH * WIDTH];
    int64_t index = 0;
    make_bert();
    ww_gguf *g = converted(NULL);
    assert_int_equal(tensor_of(g, "blk.0.attn_q.weight", &index).type, WW_QUANT_F32);
    CHECK_OK(ww_gguf_read(g, index, 0, read, sizeof read));
    assert_memory_equal(read, numbers, sizeof read); /* encoders' rows are not permuted */
    ww_gguf_close(g);
    g = converted("f16");
    assert_int_equal(tensor_of(g, "blk.0.attn_q.weight", &index).type, WW_QUANT_F16);
    ww_gguf_close(g);
}

static const char LLAMA_CONFIG[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":32,\"num_hidden_layers\":1,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"intermediate_size\":64,\"max_position_embeddings\":131072,\"vocab_size\":260,\"rms_norm_eps\":"
    "1e-5,"
    "\"rope_theta\":500000.0,\"eos_token_id\":[258,259],\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,"
    "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192}}";
static const test_tensor LLAMA_TENSORS[] = {
    {"model.embed_tokens.weight", BYTE_TOKENS, WIDTH},
    {"model.layers.0.self_attn.q_proj.weight", HEADS *HEAD, WIDTH},
    {"model.layers.0.self_attn.k_proj.weight", KEY_HEADS *HEAD, WIDTH},
    {"model.layers.0.self_attn.v_proj.weight", KEY_HEADS *HEAD, WIDTH},
    {"model.layers.0.input_layernorm.weight", WIDTH, 0},
    {"model.norm.weight", WIDTH, 0},
};

/* A tokenizer.json of the 256 bytes, a merge in the newer form, and an expression. `whole`: words that are tokens are not
 * merged. */
static void write_byte_tokenizer(const char *expression, bool whole)
{
    json_t *all = json_object(), *model = json_object(), *vocab = json_object(), *split = json_object(), *bytes = json_object();
    test_vocabulary v = vocabulary_empty("gpt2");
    char path[SCRATCH_PATH_BYTES + 64];
    vocabulary_add_alphabet(&v);
    for (int i = 0; i < 256; i++)
        json_object_set_new(vocab, v.tokens[i], json_integer(i));
    json_object_set_new(vocab, "he", json_integer(256));
    json_object_set_new(vocab, "<|begin|>", json_integer(257));
    json_object_set_new(model, "type", json_string("BPE"));
    json_object_set_new(model, "ignore_merges", json_boolean(whole));
    json_object_set_new(model, "vocab", vocab);
    json_object_set_new(model, "merges", json_pack("[[s,s]]", "h", "e"));
    json_object_set_new(all, "model", model);
    json_object_set_new(all, "added_tokens", json_pack("[{s:i,s:s,s:b}]", "id", 257, "content", "<|begin|>", "special", 1));
    json_object_set_new(split, "type", json_string("Split"));
    json_object_set_new(split, "pattern", json_pack("{s:s}", "Regex", expression));
    json_object_set_new(bytes, "type", json_string("ByteLevel"));
    json_object_set_new(bytes, "use_regex", json_false());
    json_object_set_new(all, "pre_tokenizer", json_pack("{s:s,s:[o,o]}", "type", "Sequence", "pretokenizers", split, bytes));
    json_object_set_new(all, "post_processor",
                        json_pack("{s:s,s:[{s:{s:s}},{s:{s:s}}]}", "type", "TemplateProcessing", "single", "SpecialToken", "id",
                                  "<|begin|>", "Sequence", "id", "A"));
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    assert_int_equal(json_dump_file(all, path, 0), 0);
    json_decref(all);
}

static const char LLAMA3_EXPRESSION[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                                        "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static void make_llama(void)
{
    snprintf(folder, sizeof folder, "%s", scratch_path("a-llama"));
    mkdir(folder, 0700);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (float)i;
    write_file("config.json", LLAMA_CONFIG);
    write_file("tokenizer_config.json", "{\"bos_token\":\"<|begin|>\",\"chat_template\":\"<|start_header_id|> <|eot_id|>\"}");
    write_byte_tokenizer(LLAMA3_EXPRESSION, true);
    write_tensors(LLAMA_TENSORS, sizeof LLAMA_TENSORS / sizeof LLAMA_TENSORS[0]);
}

static void check_chat(const char *expected)
{
    const char *text = NULL;
    ww_gguf *g = converted(NULL);
    CHECK_OK(ww_gguf_text(g, "tokenizer.chat_template", &text, NULL));
    assert_string_equal(text, expected);
    ww_gguf_close(g);
}

static void a_chat_template_is_found_in_every_place(void **state)
{
    (void)state;
    make_llama();
    check_chat("<|start_header_id|> <|eot_id|>");
    write_file("tokenizer_config.json",
               "{\"bos_token\":\"<|begin|>\",\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"a\"},"
               "{\"name\":\"default\",\"template\":\"b\"}]}");
    check_chat("b");
    write_file("chat_template.jinja", "{{ 'c' }}\n");
    check_chat("{{ 'c' }}\n");
}

static void rows_of_queries_and_keys_are_put_in_pairs(void **state)
{
    (void)state;
    float read[HEADS * HEAD * WIDTH];
    int64_t index = 0, number = 0;
    make_llama();
    ww_gguf *g = converted(NULL);
    tensor_of(g, "blk.0.attn_q.weight", &index);
    CHECK_OK(ww_gguf_read(g, index, 0, read, sizeof read));
    for (int row = 0; row < HEADS * HEAD; row++) {
        const int head = row / HEAD, within = row % HEAD;
        const int from = head * HEAD + within % 2 * (HEAD / 2) + within / 2; /* halves become neighbours */
        assert_memory_equal(read + row * WIDTH, numbers + from * WIDTH, WIDTH * sizeof(float));
    }
    tensor_of(g, "blk.0.attn_k.weight", &index);
    CHECK_OK(ww_gguf_read(g, index, 0, read, (size_t)KEY_HEADS * HEAD * WIDTH * sizeof(float)));
    assert_memory_equal(read + WIDTH, numbers + HEAD / 2 * WIDTH, WIDTH * sizeof(float));
    tensor_of(g, "blk.0.attn_v.weight", &index);
    CHECK_OK(ww_gguf_read(g, index, 0, read, (size_t)KEY_HEADS * HEAD * WIDTH * sizeof(float)));
    assert_memory_equal(read, numbers, (size_t)KEY_HEADS * HEAD * WIDTH * sizeof(float));
    /* Llama 3's scaling: a factor for each frequency, from none to the full one. */
    assert_int_equal(tensor_of(g, "rope_freqs.weight", &index).shape[0], HEAD / 2);
    CHECK_OK(ww_gguf_read(g, index, 0, read, HEAD / 2 * sizeof(float)));
    assert_true(read[0] == 1.0F && read[1] == 1.0F && read[3] == 8.0F);
    assert_true(read[2] > 1.0F && read[2] < 8.0F);
    CHECK_OK(ww_gguf_i64(g, "llama.attention.head_count_kv", &number));
    assert_int_equal(number, KEY_HEADS);
    CHECK_OK(ww_gguf_i64(g, "tokenizer.ggml.eos_token_id", &number));
    assert_int_equal(number, 258);
    tokenizer *tokens = NULL;
    CHECK_OK(tokenizer_create(g, &tokens));
    assert_string_equal(tokenizer_pre(tokens), "llama-bpe");
    CHECK_IDS(tokens, "he h", 0, IDS(257, 256, ' ', 'h')); /* the template adds BOS */
    tokenizer_destroy(tokens);
    ww_gguf_close(g);
}

/* Those of the mixtures of OpenAI, and of models with GPT-4's expression, whose words are merged like any text. */
static void pre_tokenizers_are_recognised_by_their_expressions(void **state)
{
    static const char gpt4o[] = "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
                                "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
                                "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+"
                                "[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    static const struct {
        const char *expression, *name;
    } cases[] = {{gpt4o, "gpt-4o"}, {LLAMA3_EXPRESSION, "dbrx"}};
    (void)state;
    make_llama();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = NULL;
        write_byte_tokenizer(cases[i].expression, false);
        ww_gguf *g = converted(NULL);
        CHECK_OK(ww_gguf_text(g, "tokenizer.ggml.pre", &name, NULL));
        assert_string_equal(name, cases[i].name);
        ww_gguf_close(g);
    }
}

static void unsupported_models_are_refused_by_name(void **state)
{
    (void)state;
    static const test_tensor strange[] = {{"encoder.layer.0.adapter.weight", 4, 4}};
    static const char t5[] = "{\"architectures\":[\"T5Model\"]}",
                      relu[] = "{\"architectures\":[\"BertModel\"],\"hidden_act\":\"relu\"}";
    make_bert();
    write_file("config.json", t5);
    check_refused_folder(WW_UNSUPPORTED, "'T5Model'");
    write_file("config.json", "{");
    check_refused_folder(WW_CORRUPT_FILE, "config.json: line 1");
    write_file("config.json", relu);
    check_refused_folder(WW_UNSUPPORTED, "'relu'");
    make_bert();
    write_tensors(strange, 1);
    check_refused_folder(WW_UNSUPPORTED, "'encoder.layer.0.adapter.weight'");
    make_bert();
    write_file("tokenizer.json", "{\"model\":{\"type\":\"WordLevel\"}}");
    check_refused_folder(WW_UNSUPPORTED, "tokenizer.json");
    write_file("tokenizer.json", "{\"model\":{\"type\":\"Unigram\"}}");
    check_refused_folder(WW_UNSUPPORTED, "without pieces");
    write_file("tokenizer.json", "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}");
    check_refused_folder(WW_UNSUPPORTED, "not a text with a score");
    write_file("tokenizer.json", "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1.5]]},"
                                 "\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"?\"}}");
    check_refused_folder(WW_UNSUPPORTED, "not base64");
    write_file("tokenizer.json",
               "{\"normalizer\":{\"type\":\"BertNormalizer\"},\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":7}}}");
    check_refused_folder(WW_CORRUPT_FILE, "the token 'a' has the id 7");
    write_file("tokenizer.json", "{\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true,\"strip_accents\":false},"
                                 "\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}");
    check_refused_folder(WW_UNSUPPORTED, "accents");
    make_bert();
    write_file("1_Pooling/config.json", "{\"pooling_mode_max_tokens\":true}");
    check_refused_folder(WW_UNSUPPORTED, "neither mean nor cls");
    make_llama();
    write_byte_tokenizer("[a-z]+", false);
    check_refused_folder(WW_UNSUPPORTED, "pre-tokenizer");
    make_bert();
    ww_conversion_report report;
    CHECK_FAILS(WW_INVALID_ARGUMENT, convert("q8_1", &report));
    assert_int_not_equal(convert("q9_9", &report), WW_OK);
    snprintf(folder, sizeof folder, "%s", scratch_path("nothing"));
    check_refused_folder(WW_NOT_FOUND, "config.json");
}

/* Writes the folder with one number of config.json replaced. */
static void write_config_with(const char *config, const char *key, const char *number)
{
    char changed[1024];
    const char *at = strstr(config, key);
    assert_non_null(at);
    const size_t front = (size_t)(at - config) + strlen(key) + 2; /* after the quotation mark and the colon */
    const char *behind = config + front + strspn(config + front, "0123456789");
    assert_true(snprintf(changed, sizeof changed, "%.*s%s%s", (int)front, config, number, behind) < (int)sizeof changed);
    write_file("config.json", changed);
}

static void sizes_that_the_tensors_do_not_have_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *number, *word;
    } cases[] = {
        {"vocab_size", "20000000", "vocab_size is 20000000; the tensor 'embeddings.word_embeddings.weight' has 7 rows"},
        {"vocab_size", "6", "vocab_size is 6"},
        {"vocab_size", "-1", "vocab_size is -1"},
        {"vocab_size", "4294967303", "vocab_size is 4294967303"},
        {"hidden_size", "1048576", "hidden_size is 1048576; the tensor 'embeddings.word_embeddings.weight' has 32 columns"},
        {"num_hidden_layers", "1000000000", "num_hidden_layers is 1000000000; the tensors are of 1 layers"},
        {"max_position_embeddings", "2000000000", "has 16 rows"},
        {"intermediate_size", "9223372036854775807", "intermediate_size is 9223372036854775807"},
        {"num_attention_heads", "-9223372036854775808", "num_attention_heads is"},
        {"type_vocab_size", "4611686018427387904", "type_vocab_size is"},
    };
    make_bert();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_config_with(BERT_CONFIG, cases[i].key, cases[i].number);
        check_refused_folder(WW_CORRUPT_FILE, cases[i].word);
    }
    write_file("config.json", BERT_CONFIG);
    write_tensors(BERT_TENSORS + 1, BERT_COUNT - 1);
    check_refused_folder(WW_CORRUPT_FILE, "embeddings of tokens");
    make_llama();
    static const char *const heads[] = {"9223372036854775807", "4611686018427387904", "4611686018427387905", "-2"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        write_config_with(LLAMA_CONFIG, "num_key_value_heads", heads[i]);
        check_refused_folder(WW_CORRUPT_FILE, "num_key_value_heads is");
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    ww_device *device = NULL;
    make_bert();
    CHECK_OK(ww_device_open("cpu", &device));
    const ww_conversion job = {.folder = folder, .out_path = scratch_path("faults.gguf"), .type = "q8_0", .device = device};
    fault_count("allocation", (long)convert_with_faults(&job));
    ww_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_encoder_becomes_a_file_that_others_read),
        cmocka_unit_test(numbers_stay_as_they_are_without_a_type),
        cmocka_unit_test(rows_of_queries_and_keys_are_put_in_pairs),
        cmocka_unit_test(a_chat_template_is_found_in_every_place),
        cmocka_unit_test(pre_tokenizers_are_recognised_by_their_expressions),
        cmocka_unit_test(unsupported_models_are_refused_by_name),
        cmocka_unit_test(sizes_that_the_tensors_do_not_have_are_refused),
        cmocka_unit_test(the_public_call_converts_and_refuses_what_is_missing),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
