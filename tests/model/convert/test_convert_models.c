/* Every architecture that models are run of is converted from a folder, as model hubs have it, with random weights: the file
 * gives the bits of the one that was written straight, which are near the reference in doubles (support/models/tiny.h).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/conversions.h"
#include "model/convert/names.h"
#include "support/memory.h"
#include "support/models/folder.h"
#include "support/scratch.h"

enum { VOCABULARY = 96, WIDTH = 64, TOKENS = 9 };

static ww_device *device;
static const int32_t text[TOKENS] = {3, 14, 15, 92, 65, 35, 8, 9, 79};

static ww_status convert(void)
{
    return folder_convert(device, NULL);
}

/* ---- what they compute --------------------------------------------------------------------------------------------------- */

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

static void check_shape(tiny_shape shape, const char *class)
{
    tiny_model m;
    const char *architecture = shape.architecture;
    const bool encoder = strstr(architecture, "bert") != NULL;
    const int count = encoder ? WIDTH : VOCABULARY;
    float straight[VOCABULARY], converted[VOCABULARY];
    double reference[VOCABULARY];
    tiny_make(&m, &shape);
    if (strcmp(architecture, "gpt-oss") == 0)
        folder_round_experts(&m);
    tiny_write(&m, scratch_path("straight.gguf"));
    folder_write(&m, class);
    CHECK_OK(folder_convert(device, shape.experts ? "f32" : NULL));
    compute("straight.gguf", encoder, straight);
    compute("out.gguf", encoder, converted);
    if (memcmp(straight, converted, (size_t)count * sizeof *converted) != 0)
        fail_msg("%s: the converted model computes other bits", architecture);
    /* transformers/test_model_transformers.c has references for the others. */
    const bool known =
        (encoder && strcmp(architecture, "jina-bert-v2") != 0) || strstr("llama qwen2 qwen3 gemma3", architecture);
    if (known)
        (encoder ? tiny_embedding : tiny_logits)(&m, text, TOKENS, reference);
    for (int i = 0; i < count && known; i++)
        if (fabs((double)converted[i] - reference[i]) > 1e-4)
            fail_msg("%s: number %d is %g, not %g", architecture, i, (double)converted[i], reference[i]);
    tiny_free(&m);
}

static void check_architecture(const char *architecture, const char *class)
{
    check_shape(folder_shape(architecture), class);
}

/* Windows of OLMo 3, and factors of rope for long contexts. */
static void check_variants(void)
{
    tiny_shape shape = folder_shape("olmo2");
    shape.layers = 4; /* the last sees everything */
    shape.window = 5;
    check_shape(shape, "Olmo3ForCausalLM");
    shape = folder_shape("phi3");
    shape.rope_factors = true;
    check_shape(shape, "Phi3ForCausalLM");
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
    check_architecture("jina-bert-v2", "JinaBertForMaskedLM");
    check_architecture("mistral3", "Ministral3ForCausalLM");
    check_architecture("qwen3moe", "Qwen3MoeForCausalLM");
    check_architecture("gpt-oss", "GptOssForCausalLM");
    check_variants();
}

static void make_folder(const char *architecture, const char *class)
{
    tiny_model m;
    const tiny_shape shape = folder_shape(architecture);
    tiny_make(&m, &shape);
    if (strcmp(architecture, "gpt-oss") == 0)
        folder_round_experts(&m);
    folder_write(&m, class);
    tiny_free(&m);
}

/* Codes of mxfp4 do not change unless another type is requested; keys that only long texts need are stored. */
static void codes_and_scales_are_kept(void **state)
{
    (void)state;
    ww_gguf *gguf;
    ww_gguf_tensor t = ww_gguf_tensor_default();
    int64_t index;
    double number = 0.0;
    make_folder("gpt-oss", "GptOssForCausalLM");
    CHECK_OK(convert());
    CHECK_OK(ww_gguf_open(scratch_path("out.gguf"), &gguf));
    CHECK_OK(ww_gguf_find_tensor(gguf, "blk.1.ffn_up_exps.weight", &index));
    CHECK_OK(ww_gguf_tensor_at(gguf, index, &t));
    assert_int_equal(t.type, WW_QUANT_MXFP4);
    ww_gguf_close(gguf);
    ww_model_close(open_model("out.gguf"));
    make_folder("mistral3", "Ministral3ForCausalLM");
    CHECK_OK(convert());
    CHECK_OK(ww_gguf_open(scratch_path("out.gguf"), &gguf));
    CHECK_OK(ww_gguf_f64(gguf, "mistral3.attention.temperature_scale", &number));
    assert_true(number == 0.5);
    CHECK_OK(ww_gguf_f64(gguf, "mistral3.rope.scaling.yarn_log_multiplier", &number));
    assert_true(number == 1.0);
    ww_gguf_close(gguf);
}

/* Nothing but the name tells such a folder from a model that continues texts. */
static void mxbai_rerank_keeps_its_question(void **state)
{
    (void)state;
    ww_gguf *gguf;
    const char *found = "";
    folder_choose("mxbai-rerank-tiny");
    make_folder("qwen2", "Qwen2ForCausalLM");
    folder_choose("folder");
    const ww_conversion job = {
        .folder = scratch_path("mxbai-rerank-tiny"), .out_path = scratch_path("out.gguf"), .device = device};
    ww_conversion_report report;
    CHECK_OK(convert_folder(&job, &report));
    CHECK_OK(ww_gguf_open(scratch_path("out.gguf"), &gguf));
    CHECK_OK(ww_gguf_text(gguf, "tokenizer.chat_template.rerank", &found, NULL));
    assert_non_null(strstr(found, "query: {query}\ndocument: {document}\nYou are a search relevance expert"));
    CHECK_OK(ww_gguf_text(gguf, "warpwave.rerank.yes", &found, NULL));
    assert_string_equal(found, "1");
    CHECK_OK(ww_gguf_text(gguf, "warpwave.rerank.no", &found, NULL));
    assert_string_equal(found, "0");
    ww_gguf_close(gguf);
}

/* The guide's list of classes is that of the table. */
static void the_guide_lists_every_class(void **state)
{
    (void)state;
    static char guide[1 << 17], list[4096];
    FILE *file = fopen(SOURCE_DIR "/docs/guide/models.md", "r");
    assert_non_null(file);
    guide[fread(guide, 1, sizeof guide - 1, file)] = '\0';
    fclose(file);
    list[0] = '\0';
    for (const architecture_names *a = ARCHITECTURES; a->name; a++) {
        snprintf(list + strlen(list), sizeof list - strlen(list), "| `%s` |", a->name);
        for (const char *const *class = a->classes; *class; class ++)
            snprintf(list + strlen(list), sizeof list - strlen(list), " `%s`", *class);
        snprintf(list + strlen(list), sizeof list - strlen(list), " |\n");
    }
    if (!strstr(guide, list))
        fail_msg("docs/guide/models.md does not have this table:\n%s", list);
}

static void make_gemma(void)
{
    make_folder("gemma3", "Gemma3ForCausalLM");
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
    /* No BOS, because the file's template adds none. "bc" has the best score; then "abc". */
    static const int32_t expected[] = {8, 9, 3, 10};
    assert_int_equal(count, 4);
    assert_memory_equal(ids, expected, sizeof expected);
    ww_model_close(model);
}

static void check_refused(ww_status expected, const char *word)
{
    const int64_t held = blocks_held();
    CHECK_FAILS(expected, convert());
    if (!strstr(ww_error_message(), word))
        fail_msg("'%s' is not in: %s", word, ww_error_message());
    assert_int_equal(blocks_held(), held);
    assert_int_equal(access(scratch_path("out.gguf"), F_OK), -1);
}

/* A configuration of Gemma 3 that says something else. */
static void check_config(const char *more, const char *word)
{
    char config[1024];
    snprintf(config, sizeof config, DECODER_CONFIG, "Gemma3ForCausalLM", 6, 96, 60000, more);
    folder_text_file("config.json", config);
    check_refused(WW_UNSUPPORTED, word);
}

static void features_without_keys_are_refused_by_name(void **state)
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
    check_refused(WW_NOT_FOUND, "neither tokenizer.json nor SentencePiece's tokenizer.model");
    make_gemma();
    const message unigram = sentencepiece_model(1);
    folder_file("tokenizer.model", unigram.bytes, unigram.count);
    check_refused(WW_UNSUPPORTED, "other than BPE");
    static const char *const flags[] = {"prenorm", "qkv_proj_bias", "rotary_emb_interleaved"};
    for (size_t i = 0; i < 3; i++) {
        char config[256];
        snprintf(config, sizeof config, "{\"architectures\":[\"NomicBertModel\"],\"%s\":true}", flags[i]);
        folder_text_file("config.json", config);
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
        folder_file("tokenizer.model", whole.bytes, cut);
        (void)convert();
    }
    for (size_t at = 0; at < whole.count; at += 2) {
        message damaged = whole;
        damaged.bytes[at] ^= 0x81;
        folder_file("tokenizer.model", damaged.bytes, damaged.count);
        (void)convert();
    }
    folder_file("tokenizer.model", whole.bytes, 5);
    check_refused(WW_CORRUPT_FILE, "not a SentencePiece model");
}

/* Experts that are missing, or too many, or of another shape; codes without scales. */
static void experts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    char config[1024];
    static const char MORE[] =
        ",\"num_experts\":%d,\"num_experts_per_tok\":3,\"moe_intermediate_size\":32,\"norm_topk_prob\":%s";
    static const struct {
        int experts;
        const char *norm, *word;
        ww_status status;
    } wrong[] = {{7, "true", "no tensor has expert 6 of 'blk.0.ffn_gate_exps.weight'", WW_CORRUPT_FILE},
                 {5, "true", "is of expert 5 of 5", WW_CORRUPT_FILE},
                 {6, "false", "norm_topk_prob is not true", WW_UNSUPPORTED}};
    make_folder("qwen3moe", "Qwen3MoeForCausalLM");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char more[256];
        snprintf(more, sizeof more, MORE, wrong[i].experts, wrong[i].norm);
        snprintf(config, sizeof config, DECODER_CONFIG, "Qwen3MoeForCausalLM", 2, 96, 20000, more);
        folder_text_file("config.json", config);
        check_refused(wrong[i].status, wrong[i].word);
    }
    snprintf(config, sizeof config, DECODER_CONFIG, "GptOssForCausalLM", 2, 32, 20000, ",\"num_local_experts\":6");
    folder_text_file("config.json", config);
    check_refused(WW_UNSUPPORTED, "has no name in GGUF files of the architecture 'gpt-oss'");
}

static void check_allocations(void)
{
    convert_with_faults(
        &(ww_conversion){.folder = scratch_path("folder"), .out_path = scratch_path("out.gguf"), .device = device});
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    make_gemma();
    check_allocations();
    make_folder("qwen3moe", "Qwen3MoeForCausalLM");
    check_allocations();
    make_folder("gpt-oss", "GptOssForCausalLM");
    check_allocations();
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
        cmocka_unit_test(codes_and_scales_are_kept),
        cmocka_unit_test(mxbai_rerank_keeps_its_question),
        cmocka_unit_test(the_guide_lists_every_class),
        cmocka_unit_test(experts_that_do_not_fit_are_refused),
        cmocka_unit_test(pieces_and_scores_come_from_sentencepieces_own_file),
        cmocka_unit_test(features_without_keys_are_refused_by_name),
        cmocka_unit_test(a_damaged_tokenizer_model_is_harmless),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
