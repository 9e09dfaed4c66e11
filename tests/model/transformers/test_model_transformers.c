/* Logits of every decoder, with random weights, beside those of the transformers package, which computes them from the same
 * file: tests/model/transformers/make_transformers_cases.py has written transformers_cases.json. Float activations and a cache
 * of f32.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "support/devices.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

enum { VOCABULARY = 96, TOKENS_LONG = 300, EACH = 8 }; /* every eighth logit is kept */

/* The models; the script finds them by their names. */
static const struct model_case {
    const char *name, *architecture;
    int32_t layers, window, context;
    bool factors, yarn;
} cases[] = {
    {"llama", "llama", 2, 0, 1024, false, false},       {"qwen2", "qwen2", 2, 0, 1024, false, false},
    {"qwen3", "qwen3", 2, 0, 1024, false, false},       {"gemma2", "gemma2", 4, 7, 1024, false, false},
    {"phi3", "phi3", 2, 0, 1024, false, false},         {"phi3-window", "phi3", 2, 9, 1024, false, false},
    {"phi3-factors", "phi3", 2, 0, 64, true, false},    {"granite", "granite", 2, 0, 1024, false, false},
    {"olmo2", "olmo2", 2, 0, 1024, false, false},       {"olmo3", "olmo2", 5, 7, 1024, false, true},
    {"smollm3", "smollm3", 5, 0, 1024, false, false},   {"mistral3", "mistral3", 2, 0, 64, false, true},
    {"qwen3moe", "qwen3moe", 2, 0, 1024, false, false}, {"gpt-oss", "gpt-oss", 3, 7, 1024, false, true},
};
enum { CASES = sizeof cases / sizeof *cases };

static void write_case(const struct model_case *c, const char *path)
{
    tiny_model tiny;
    tiny_shape shape = tiny_default(c->architecture);
    shape.layers = c->layers;
    shape.window = c->window;
    shape.context = c->context;
    shape.rope_factors = c->factors;
    shape.scaling = c->yarn ? "yarn" : NULL;
    shape.scaling_factor = 4.0;
    shape.width = 128;
    shape.heads = 4;
    shape.key_heads = 2;
    tiny_make(&tiny, &shape);
    tiny_write(&tiny, path);
    tiny_free(&tiny);
}

/* As the script has them. */
static void make_tokens(int32_t *ids, int count)
{
    for (int t = 0; t < count; t++)
        ids[t] = (7 * t * t + 13 * t + 5) % VOCABULARY;
}

static void check_text(ww_model *model, const char *name, const json_t *expected, int tokens)
{
    ww_session *session;
    int32_t ids[TOKENS_LONG];
    float logits[VOCABULARY];
    make_tokens(ids, tokens);
    CHECK_OK(ww_session_create(model, &session));
    CHECK_OK(ww_session_feed(session, ids, (size_t)tokens));
    CHECK_OK(ww_session_logits(session, logits));
    ww_session_destroy(session);
    assert_int_equal(json_array_size(expected), VOCABULARY / EACH);
    for (int i = 0; i < VOCABULARY / EACH; i++) {
        const double right = json_number_value(json_array_get(expected, (size_t)i));
        if (fabs((double)logits[EACH * i] - right) > 1e-4)
            fail_msg("%s, %d tokens: logit %d is %g, not %g", name, tokens, EACH * i, (double)logits[EACH * i], right);
    }
}

/* Every text that is kept of a model; long ones not where that takes long. */
static void check_case(ww_device *device, const struct model_case *c, const json_t *texts)
{
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    const char *count;
    json_t *logits;
    options.activations = WW_ACTIVATIONS_FLOAT;
    options.cache = WW_QUANT_F32;
    write_case(c, scratch_path("model.gguf"));
    assert_true(json_object_size(texts) > 0);
    json_object_foreach((json_t *)(uintptr_t)texts, count, logits)
    {
        const int tokens = atoi(count);
        if (tokens > 64 && device_is_slow(device))
            continue;
        /* phi3 has other factors for contexts that are longer than the original one; transformers goes by the text. */
        options.context = c->factors ? (tokens > c->context / 4 ? c->context : c->context / 4) : 0;
        CHECK_OK(ww_model_open(scratch_path("model.gguf"), device, &options, &model));
        check_text(model, c->name, logits, tokens);
        ww_model_close(model);
    }
}

static void decoders_give_the_logits_of_transformers(void **state)
{
    json_error_t error;
    json_t *expected = json_load_file(SOURCE_DIR "/tests/model/transformers/transformers_cases.json", 0, &error);
    if (!expected)
        fail_msg("transformers_cases.json: %s", error.text);
    for (int i = 0; i < CASES; i++)
        check_case(*state, &cases[i], json_object_get(expected, cases[i].name));
    json_decref(expected);
}

int main(void)
{
    const char *folder = getenv("WARPWAVE_WRITE_MODELS"); /* the script asks for the files */
    for (int i = 0; folder && i < CASES; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s.gguf", folder, cases[i].name);
        write_case(&cases[i], path);
    }
    if (folder)
        return 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(decoders_give_the_logits_of_transformers)};
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    const int failed = RUN_ON_EVERY_DEVICE("model transformers", tests);
    return scratch_teardown(&scratch) != 0 || failed;
}
