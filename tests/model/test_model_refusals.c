/* Files that are not models are refused when they are opened, with a message that names them, and nothing leaks. */
#include <stdlib.h>
#include <string.h>

#include "support/data/vocabulary.h"
#include "support/memory.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

static ww_device *device;
static tiny_model llama, bert;

static void check_refused(const tiny_model *m, tiny_fault fault, ww_status expected, const char *word)
{
    ww_model *model = NULL;
    const char *path = scratch_path("wrong.gguf");
    tiny_write_wrong(m, &fault, path);
    const int64_t held = blocks_held();
    const ww_status status = ww_model_open(path, device, NULL, &model);
    if (status != expected || !strstr(ww_error_message(), word) || !strstr(ww_error_message(), "wrong.gguf"))
        fail_msg("%s, not %s with '%s': %s", ww_status_name(status), ww_status_name(expected), word, ww_error_message());
    assert_null(model);
    assert_int_equal(blocks_held(), held);
}

static void an_architecture_that_is_not_known_is_named_with_those_that_are(void **state)
{
    (void)state;
    check_refused(&llama, (tiny_fault){.text_key = "general.architecture", .text = "mamba"}, WW_UNSUPPORTED,
                  "'mamba'; known are bert, nomic-bert, jina-bert-v2, mpnet, model2vec, modern-bert, gemma-embedding, llama, "
                  "qwen2, qwen3, gemma3, "
                  "gemma2, phi3, granite, olmo2, smollm3, qwen3moe, gpt-oss and mistral3");
    check_refused(&llama, (tiny_fault){.leave_out = "general.architecture"}, WW_NOT_FOUND, "general.architecture");
}

static void every_tensor_and_key_that_is_missing_is_named(void **state)
{
    (void)state;
    for (int32_t i = 0; i < llama.count; i++)
        if (strcmp(llama.tensors[i].name, "output.weight") != 0)
            check_refused(&llama, (tiny_fault){.leave_out = llama.tensors[i].name}, WW_CORRUPT_FILE, llama.tensors[i].name);
    for (int32_t i = 0; i < bert.count; i++)
        if (strcmp(bert.tensors[i].name, "token_types.weight") != 0)
            check_refused(&bert, (tiny_fault){.leave_out = bert.tensors[i].name}, WW_CORRUPT_FILE, bert.tensors[i].name);
    static const char *const keys[] = {"block_count",          "embedding_length", "feed_forward_length",
                                       "attention.head_count", "context_length",   "attention.layer_norm_rms_epsilon"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        check_refused(&llama, (tiny_fault){.leave_out = keys[i]}, WW_NOT_FOUND, keys[i]);
}

static void wrong_files_of_mpnet_are_refused(void **state)
{
    (void)state;
    tiny_model mpnet;
    const tiny_shape shape = tiny_default("mpnet");
    tiny_make(&mpnet, &shape);
    tiny_write(&mpnet, scratch_path("right.gguf"));
    ww_model_close(tiny_open_precise(device, scratch_path("right.gguf"))); /* a CPU keeps one large block for the next */
    for (int32_t i = 0; i < mpnet.count; i++)
        check_refused(&mpnet, (tiny_fault){.leave_out = mpnet.tensors[i].name}, WW_CORRUPT_FILE, mpnet.tensors[i].name);
    check_refused(&mpnet, (tiny_fault){.reshaped = "attn_rel_b.weight"}, WW_CORRUPT_FILE, "attn_rel_b.weight");
    check_refused(&mpnet, (tiny_fault){.key = "context_length", .number = 5000}, WW_UNSUPPORTED, "learned distances");
    tiny_free(&mpnet);
}

static void wrong_metadata_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        double number;
        ww_status status;
        const char *word;
    } lies[] = {
        {"block_count", 0, WW_CORRUPT_FILE, "llama.block_count is 0"},
        {"block_count", 3, WW_CORRUPT_FILE, "blk.2."},
        {"block_count", 1, WW_UNSUPPORTED, "blk.1."},
        {"block_count", 4e9, WW_CORRUPT_FILE, "block_count"},
        {"embedding_length", 32, WW_CORRUPT_FILE, "token_embd.weight"},
        {"embedding_length", -64, WW_CORRUPT_FILE, "embedding_length"},
        {"embedding_length", 1e15, WW_CORRUPT_FILE, "embedding_length"},
        {"feed_forward_length", 97, WW_CORRUPT_FILE, "ffn_gate.weight"},
        {"attention.head_count", 4, WW_CORRUPT_FILE, "attn_q.weight"},
        {"attention.head_count", 0, WW_CORRUPT_FILE, "head_count"},
        {"attention.head_count_kv", 2, WW_CORRUPT_FILE, "attn_k.weight"},
        {"attention.head_count_kv", 3, WW_CORRUPT_FILE, "evenly"},
        {"attention.key_length", 16, WW_UNSUPPORTED, "16 elements"},
        {"attention.key_length", 64, WW_CORRUPT_FILE, "attn_q.weight"},
        {"vocab_size", 95, WW_CORRUPT_FILE, "token_embd.weight"},
        {"context_length", 0, WW_CORRUPT_FILE, "context_length"},
        {"context_length", 1e18, WW_CORRUPT_FILE, "context_length"},
        {"attention.layer_norm_rms_epsilon", -1, WW_CORRUPT_FILE, "epsilon"},
        {"rope.freq_base", 0, WW_CORRUPT_FILE, "freq_base"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        check_refused(&llama, (tiny_fault){.key = lies[i].key, .number = lies[i].number}, lies[i].status, lies[i].word);
    check_refused(&bert, (tiny_fault){.key = "pooling_type", .number = 5}, WW_UNSUPPORTED, "pooling_type");
    check_refused(&bert, (tiny_fault){.key = "context_length", .number = 512}, WW_CORRUPT_FILE, "position_embd.weight");
}

static void shapes_weights_and_tensors_that_are_wrong_are_named(void **state)
{
    (void)state;
    check_refused(&llama, (tiny_fault){.reshaped = "blk.1.ffn_down.weight"}, WW_CORRUPT_FILE, "blk.1.ffn_down.weight");
    check_refused(&llama, (tiny_fault){.reshaped = "blk.0.attn_norm.weight"}, WW_CORRUPT_FILE, "blk.0.attn_norm.weight");
    check_refused(&llama, (tiny_fault){.poisoned = "blk.1.attn_v.weight"}, WW_CORRUPT_FILE, "blk.1.attn_v.weight");
    check_refused(&llama, (tiny_fault){.poisoned = "output_norm.weight", .poisoned_at = 63}, WW_CORRUPT_FILE,
                  "'output_norm.weight' has weights that are not finite");
    check_refused(&bert, (tiny_fault){.poisoned = "token_embd.weight", .poisoned_at = 64 * 96 - 1}, WW_CORRUPT_FILE,
                  "token_embd.weight");
    check_refused(&llama, (tiny_fault){.extra = "extra.weight"}, WW_UNSUPPORTED, "'extra.weight'");
}

static void mixtures_of_experts_are_checked(void **state)
{
    (void)state;
    tiny_model m;
    tiny_shape shape = tiny_default("gpt-oss");
    shape.layers = 1;
    tiny_make(&m, &shape);
    for (int32_t i = 0; i < m.count; i++)
        if (strcmp(m.tensors[i].name, "output.weight") != 0 && strcmp(m.tensors[i].name, "blk.0.attn_output.bias") != 0)
            check_refused(&m, (tiny_fault){.leave_out = m.tensors[i].name}, WW_CORRUPT_FILE, m.tensors[i].name);
    check_refused(&m, (tiny_fault){.leave_out = "expert_count"}, WW_NOT_FOUND, "expert_count");
    check_refused(&m, (tiny_fault){.key = "expert_count", .number = 5}, WW_CORRUPT_FILE, "ffn_gate_inp.weight");
    check_refused(&m, (tiny_fault){.key = "expert_count", .number = 1e9}, WW_CORRUPT_FILE, "expert_count");
    check_refused(&m, (tiny_fault){.key = "expert_used_count", .number = 7}, WW_CORRUPT_FILE, "gpt-oss.expert_used_count is 7");
    check_refused(&m, (tiny_fault){.key = "expert_feed_forward_length", .number = 64}, WW_CORRUPT_FILE,
                  "'blk.0.ffn_gate_exps.weight' has shape [64, 32, 6]; the metadata says [64, 64, 6]");
    tiny_free(&m);
}

/* Granite's embedders are like ModernBERT, with SiLU. */
static void another_activation_is_refused(void **state)
{
    (void)state;
    tiny_model m;
    const tiny_shape shape = tiny_default("modern-bert");
    tiny_make(&m, &shape);
    check_refused(&m, (tiny_fault){.text_key = "modern-bert.hidden_activation", .text = "silu"}, WW_UNSUPPORTED, "is 'silu'");
    tiny_free(&m);
}

static void a_vocabulary_of_another_size_than_the_embedding_is_refused(void **state)
{
    (void)state;
    test_vocabulary v = vocabulary_empty("gpt2");
    tiny_model m;
    tiny_shape shape = tiny_default("llama");
    v.pre = "gpt-2";
    v.merge_count = 0;
    vocabulary_add_alphabet(&v);
    shape.tokens = &v;
    shape.vocabulary = 257;
    tiny_make(&m, &shape);
    check_refused(&m, (tiny_fault){0}, WW_CORRUPT_FILE, "the tokenizer has 256 tokens, the embedding 257 rows");
    tiny_free(&m);
    v.pre = "klingon";
    shape.vocabulary = 256;
    tiny_make(&m, &shape);
    check_refused(&m, (tiny_fault){0}, WW_UNSUPPORTED, "klingon");
    tiny_free(&m);
}

/* Cut anywhere: refused, and nothing else. */
static void a_cut_file_is_refused(void **state)
{
    (void)state;
    size_t size;
    ww_model *model = NULL;
    tiny_write(&llama, scratch_path("wrong.gguf"));
    char *bytes = scratch_content(scratch_path("wrong.gguf"), &size);
    for (size_t cut = 0; cut < size; cut += size / 23) {
        scratch_write("wrong.gguf", bytes, cut);
        assert_int_not_equal(ww_model_open(scratch_path("wrong.gguf"), device, NULL, &model), WW_OK);
        assert_null(model);
    }
    free(bytes);
}

static int stop(int64_t done, int64_t total, void *user)
{
    assert_true(done <= total);
    return ++*(int *)user == 5;
}

static void loading_can_be_cancelled_and_arguments_are_checked(void **state)
{
    (void)state;
    int calls = 0;
    ww_model *model = NULL;
    ww_model_options options = ww_model_options_default();
    tiny_write(&llama, scratch_path("wrong.gguf"));
    options.progress = stop;
    options.progress_user = &calls;
    const int64_t held = blocks_held();
    CHECK_FAILS(WW_CANCELLED, ww_model_open(scratch_path("wrong.gguf"), device, &options, &model));
    assert_int_equal(blocks_held(), held);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_open(NULL, device, NULL, &model));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_open("x", NULL, NULL, &model));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_open("x", device, NULL, NULL));
    options = ww_model_options_default();
    options.cache = WW_QUANT_Q4_0;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_open(scratch_path("wrong.gguf"), device, &options, &model));
    options = ww_model_options_default();
    options.activations = (ww_activations)7;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_open(scratch_path("wrong.gguf"), device, &options, &model));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_describe(NULL, NULL));
    assert_null(model);
}

static int setup(void **state)
{
    tiny_shape shape = tiny_default("llama");
    shape.type = WW_QUANT_Q8_0;
    tiny_make(&llama, &shape);
    shape = tiny_default("bert");
    tiny_make(&bert, &shape);
    CHECK_OK(ww_device_open("cpu", &device));
    return scratch_setup(state);
}

static int teardown(void **state)
{
    tiny_free(&llama);
    tiny_free(&bert);
    ww_device_close(device);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_architecture_that_is_not_known_is_named_with_those_that_are),
        cmocka_unit_test(every_tensor_and_key_that_is_missing_is_named),
        cmocka_unit_test(wrong_files_of_mpnet_are_refused),
        cmocka_unit_test(wrong_metadata_is_refused),
        cmocka_unit_test(shapes_weights_and_tensors_that_are_wrong_are_named),
        cmocka_unit_test(another_activation_is_refused),
        cmocka_unit_test(mixtures_of_experts_are_checked),
        cmocka_unit_test(a_vocabulary_of_another_size_than_the_embedding_is_refused),
        cmocka_unit_test(a_cut_file_is_refused),
        cmocka_unit_test(loading_can_be_cancelled_and_arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
