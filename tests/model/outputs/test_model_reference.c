/* Every architecture, with random weights, compared with a reference in doubles: float activations and a cache of f32, so that
 * they differ only by rounding.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/data/random.h"
#include "support/devices.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

enum { VOCABULARY = 96, WIDTH = 64, TOKENS_MAX = 300 };

static void random_tokens(int32_t *ids, int count, uint64_t seed)
{
    test_random random = {seed};
    for (int i = 0; i < count; i++)
        ids[i] = (int32_t)random_below(&random, VOCABULARY);
}

/* Rounds the values to f16, so that the reference need not do that. */
static void make_gates_f16(const tiny_model *tiny)
{
    for (int32_t t = 0; t < tiny->count; t++)
        for (int64_t i = 0; strstr(tiny->tensors[t].name, "ffn_gate") && i < tiny->tensors[t].rows * tiny->tensors[t].cols; i++)
            tiny->tensors[t].values[i] = roundf(tiny->tensors[t].values[i] * 1024.0f) / 1024.0f;
}

static void check_logits(ww_device *device, const tiny_shape *shape, int tokens)
{
    tiny_model tiny;
    int32_t ids[TOKENS_MAX];
    float logits[VOCABULARY];
    double expected[VOCABULARY];
    tiny_make(&tiny, shape);
    if (shape->gate_f16)
        make_gates_f16(&tiny);
    tiny_write(&tiny, scratch_path("model.gguf"));
    random_tokens(ids, tokens, 11);
    ww_model *model = tiny_open_precise(device, scratch_path("model.gguf"));
    ww_session *session;
    CHECK_OK(ww_session_create(model, &session));
    CHECK_OK(ww_session_feed(session, ids, (size_t)tokens));
    CHECK_OK(ww_session_logits(session, logits));
    tiny_logits(&tiny, ids, tokens, expected);
    for (int i = 0; i < VOCABULARY; i++)
        if (fabs((double)logits[i] - expected[i]) > 1e-4)
            fail_msg("%s: logit %d is %g, not %g", shape->architecture, i, (double)logits[i], expected[i]);
    ww_session_destroy(session);
    ww_model_close(model);
    tiny_free(&tiny);
}

static int tokens_for(ww_device *device)
{
    return device_is_slow(device) ? 12 : TOKENS_MAX; /* past a page */
}

static void decoders_give_the_logits_of_the_reference(void **state)
{
    static const char *const names[] = {"llama", "qwen2", "qwen3", "gemma3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tiny_shape shape = tiny_default(names[i]);
        check_logits(*state, &shape, tokens_for(*state));
    }
}

static void grouped_heads_tied_embeddings_and_other_head_sizes_are_computed(void **state)
{
    tiny_shape shape = tiny_default("llama");
    shape.tied = true;
    shape.heads = 4;
    shape.key_heads = 2;
    shape.head_size = 40; /* not width / heads */
    check_logits(*state, &shape, 20);
}

/* Gate and up as two products with separate memory: the gate must not overwrite what it gates. */
static void a_gate_that_is_not_joined_with_its_matrix_is_computed(void **state)
{
    static const char *const names[] = {"llama", "gemma3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tiny_shape shape = tiny_default(names[i]);
        shape.gate_f16 = true;
        check_logits(*state, &shape, 12);
    }
}

static void windows_hide_what_is_before_them(void **state)
{
    tiny_shape shape = tiny_default("llama");
    shape.window = 5;
    check_logits(*state, &shape, 20);
    shape = tiny_default("gemma3");
    shape.window = 7;
    shape.layers = 6; /* the last sees everything, with another base */
    check_logits(*state, &shape, 20);
}

static void rope_is_scaled_as_the_metadata_says(void **state)
{
    tiny_shape shape = tiny_default("llama");
    shape.scaling = "linear";
    shape.scaling_factor = 4.0;
    check_logits(*state, &shape, 20);
    shape.scaling = "yarn";
    check_logits(*state, &shape, 20);
    shape.scaling = NULL;
    shape.rope_factors = true;
    check_logits(*state, &shape, 20);
}

static void check_embedding(ww_device *device, const tiny_shape *shape)
{
    tiny_model tiny;
    int32_t ids[TOKENS_MAX];
    float vectors[2 * WIDTH];
    double expected[WIDTH];
    const size_t counts[2] = {(size_t)tokens_for(device) - 5, 5};
    tiny_make(&tiny, shape);
    tiny_write(&tiny, scratch_path("model.gguf"));
    random_tokens(ids, tokens_for(device), 12);
    ww_model *model = tiny_open_precise(device, scratch_path("model.gguf"));
    CHECK_OK(ww_model_embed_tokens(model, ids, counts, 2, vectors));
    for (int n = 0; n < 2; n++) {
        tiny_embedding(&tiny, n ? ids + counts[0] : ids, (int)counts[n], expected);
        for (int i = 0; i < WIDTH; i++)
            if (fabs((double)vectors[n * WIDTH + i] - expected[i]) > 1e-5)
                fail_msg("%s: element %d of text %d is %g, not %g", shape->architecture, i, n, (double)vectors[n * WIDTH + i],
                         expected[i]);
    }
    ww_model_close(model);
    tiny_free(&tiny);
}

static void encoders_give_the_embeddings_of_the_reference(void **state)
{
    static const char *const names[] = {"bert", "nomic-bert", "qwen3"};
    for (int pooling = WW_POOLING_MEAN; pooling <= WW_POOLING_LAST; pooling++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            tiny_shape shape = tiny_default(names[i]);
            shape.pooling = pooling;
            if (strcmp(names[i], "qwen3") == 0 && pooling == WW_POOLING_MEAN)
                continue; /* a decoder's file does not have the key */
            check_embedding(*state, &shape);
        }
}

/* The embedding of a file that says `written`, opened with the option `given`. */
static void embed_with(ww_device *device, const char *architecture, int32_t written, ww_pooling given, float vector[64])
{
    static const int32_t ids[] = {3, 1, 4, 1, 5, 9, 2, 6};
    const size_t count = sizeof ids / sizeof *ids;
    tiny_model tiny;
    tiny_shape shape = tiny_default(architecture);
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    shape.pooling = written;
    tiny_make(&tiny, &shape);
    tiny_write(&tiny, scratch_path("pooled.gguf"));
    tiny_free(&tiny);
    options.pooling = given;
    CHECK_OK(ww_model_open(scratch_path("pooled.gguf"), device, &options, &model));
    ww_model_info info = ww_model_info_default();
    CHECK_OK(ww_model_describe(model, &info));
    assert_int_equal(strchr(info.fingerprint, '-') != NULL, given != WW_POOLING_NONE && (int32_t)given != written);
    CHECK_OK(ww_model_embed_tokens(model, ids, &count, 1, vector));
    ww_model_close(model);
}

static void a_pooling_can_be_given_instead_of_the_files(void **state)
{
    static const char *const architectures[] = {"llama", "bert"};
    float right[64], given[64];
    for (int i = 0; i < 2; i++)
        for (int32_t pooling = WW_POOLING_CLS; pooling <= WW_POOLING_LAST; pooling++) {
            embed_with(*state, architectures[i], pooling, WW_POOLING_NONE, right);
            embed_with(*state, architectures[i], WW_POOLING_CLS + WW_POOLING_LAST - pooling, (ww_pooling)pooling, given);
            assert_memory_equal(given, right, sizeof right);
        }
    embed_with(*state, "llama", WW_POOLING_LAST, WW_POOLING_NONE, right);
    embed_with(*state, "llama", WW_POOLING_MEAN, WW_POOLING_LAST, given); /* a decoder's file does not have the key */
    assert_memory_equal(given, right, sizeof right);
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    options.pooling = WW_POOLING_RANK; /* without a head */
    CHECK_FAILS(WW_UNSUPPORTED, ww_model_open(scratch_path("pooled.gguf"), *state, &options, &model));
    options.pooling = (ww_pooling)(WW_POOLING_RANK + 1);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_model_open(scratch_path("pooled.gguf"), *state, &options, &model));
    options.pooling = WW_POOLING_MEAN;
    tiny_write_ranker(1, scratch_path("ranker.gguf"));
    CHECK_FAILS(WW_UNSUPPORTED, ww_model_open(scratch_path("ranker.gguf"), *state, &options, &model));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoders_give_the_logits_of_the_reference),
        cmocka_unit_test(grouped_heads_tied_embeddings_and_other_head_sizes_are_computed),
        cmocka_unit_test(a_gate_that_is_not_joined_with_its_matrix_is_computed),
        cmocka_unit_test(windows_hide_what_is_before_them),
        cmocka_unit_test(rope_is_scaled_as_the_metadata_says),
        cmocka_unit_test(encoders_give_the_embeddings_of_the_reference),
        cmocka_unit_test(a_pooling_can_be_given_instead_of_the_files),
    };
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    const int failed = RUN_ON_EVERY_DEVICE("model reference", tests);
    return scratch_teardown(&scratch) != 0 || failed;
}
