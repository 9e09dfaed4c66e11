/* Embeddings and scores of every encoder and of decoders that embed or rank, with random weights, beside those of the
 * transformers package, which computes them from the same files: make_embedder_cases.py has written embedder_cases.json. Float
 * activations and a cache of f32.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "model/passes.h"
#include "support/devices.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

enum { VOCABULARY = 96, WIDTH = 64, TOKENS_LONG = 300, EACH = 4 }; /* every fourth number is kept */

/* The models; the script finds them by their names. */
static const struct model_case {
    const char *name, *architecture;
    int32_t layers, window, pooling;
    bool ranks_mean;
} cases[] = {
    {"bert", "bert", 2, 0, WW_POOLING_MEAN, false},
    {"roberta", "bert", 2, 0, WW_POOLING_CLS, false},
    {"bert-rank", "bert", 2, 0, WW_POOLING_RANK, false},
    {"roberta-rank", "bert", 2, 0, WW_POOLING_RANK, false},
    {"modern-bert", "modern-bert", 5, 8, WW_POOLING_MEAN, false},
    {"modern-bert-rank", "modern-bert", 4, 6, WW_POOLING_RANK, false},
    {"modern-bert-mean", "modern-bert", 2, 0, WW_POOLING_RANK, true},
    {"gemma-embedding", "gemma-embedding", 7, 8, WW_POOLING_MEAN, false},
    {"qwen3", "qwen3", 2, 0, WW_POOLING_LAST, false},
    {"qwen3-rank", "qwen3", 2, 0, WW_POOLING_RANK, false},
};
enum { CASES = sizeof cases / sizeof *cases };

static void write_case(const struct model_case *c, const char *path)
{
    tiny_model tiny;
    tiny_shape shape = tiny_default(c->architecture);
    shape.layers = c->layers;
    shape.window = c->window;
    shape.pooling = c->pooling;
    shape.ranks_mean = c->ranks_mean;
    shape.tied = true;
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

/* A text alone, as a pair whose second half is of the second type where the model tells them apart. */
static void run(ww_model *model, const struct model_case *c, int tokens, float *out)
{
    static int32_t ids[TOKENS_LONG];
    const size_t count = (size_t)tokens, first = count / 2;
    const text_job job = {.model = model,
                          .ids = ids,
                          .counts = &count,
                          .firsts = strcmp(c->name, "bert-rank") == 0 ? &first : NULL,
                          .count = 1,
                          .results = out,
                          .doing = "testing",
                          .total = 1};
    make_tokens(ids, tokens);
    CHECK_OK(passes_run(&job));
}

static void check_text(ww_model *model, const struct model_case *c, const json_t *expected, int tokens)
{
    float out[WIDTH] = {0};
    const int each = c->pooling == WW_POOLING_RANK ? 1 : EACH, count = c->pooling == WW_POOLING_RANK ? 1 : WIDTH / EACH;
    run(model, c, tokens, out);
    assert_int_equal(json_array_size(expected), count);
    for (int i = 0; i < count; i++) {
        const double right = json_number_value(json_array_get(expected, (size_t)i));
        if (fabs((double)out[each * i] - right) > 2e-5)
            fail_msg("%s, %d tokens: number %d is %g, not %g", c->name, tokens, each * i, (double)out[each * i], right);
    }
}

/* Every text that is kept of a model; long ones not where that takes long. */
static void check_case(ww_device *device, const struct model_case *c, const json_t *texts)
{
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    const char *count;
    json_t *numbers;
    options.activations = WW_ACTIVATIONS_FLOAT;
    options.cache = WW_QUANT_F32;
    write_case(c, scratch_path("model.gguf"));
    assert_true(json_object_size(texts) > 0);
    CHECK_OK(ww_model_open(scratch_path("model.gguf"), device, &options, &model));
    json_object_foreach((json_t *)(uintptr_t)texts, count, numbers)
    {
        if (atoi(count) <= 64 || !device_is_slow(device))
            check_text(model, c, numbers, atoi(count));
    }
    ww_model_close(model);
}

static void models_give_the_numbers_of_transformers(void **state)
{
    json_error_t error;
    json_t *expected = json_load_file(SOURCE_DIR "/tests/model/transformers/embedder_cases.json", 0, &error);
    if (!expected)
        fail_msg("embedder_cases.json: %s", error.text);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_give_the_numbers_of_transformers)};
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    const int failed = RUN_ON_EVERY_DEVICE("model embedders", tests);
    return scratch_teardown(&scratch) != 0 || failed;
}
