/* Embeddings and scores of every encoder and of decoders that embed or rank, with random weights, beside those of the
 * transformers package, which computes them from the same files: make_embedder_cases.py has written embedder_cases.json. (The
 * package has no class for jina-bert-v2: the script has its formulas.) Float
 * activations and a cache of f32.
 */
#include <string.h>

#include "model/passes.h"
#include "model/transformers/cases.h"
#include "support/models/tiny.h"

enum { WIDTH = 64, EACH = 4 }; /* every fourth number is kept */

/* The models; the script finds them by their names. */
enum case_flags { RANKS_MEAN = 1, NORMS_TWICE = 2, SEES_ALL = 4 };
static const struct model_case {
    const char *name, *architecture;
    int32_t layers, window, pooling, flags;
} cases[] = {
    {"bert", "bert", 2, 0, WW_POOLING_MEAN, 0},
    {"roberta", "bert", 2, 0, WW_POOLING_CLS, 0},
    {"bert-rank", "bert", 2, 0, WW_POOLING_RANK, 0},
    {"roberta-rank", "bert", 2, 0, WW_POOLING_RANK, 0},
    {"modern-bert", "modern-bert", 5, 8, WW_POOLING_MEAN, 0},
    {"modern-bert-rank", "modern-bert", 4, 6, WW_POOLING_RANK, 0},
    {"modern-bert-mean", "modern-bert", 2, 0, WW_POOLING_RANK, RANKS_MEAN},
    {"jina-bert-v2", "jina-bert-v2", 2, 0, WW_POOLING_MEAN, 0},
    {"jina-bert-v2-code", "jina-bert-v2", 2, 0, WW_POOLING_MEAN, NORMS_TWICE},
    {"gemma-embedding", "gemma-embedding", 7, 8, WW_POOLING_MEAN, 0},
    {"mpnet", "mpnet", 2, 0, WW_POOLING_MEAN, 0},
    {"model2vec", "model2vec", 0, 0, WW_POOLING_MEAN, 0},
    {"llama-sees-all", "llama", 2, 0, WW_POOLING_MEAN, SEES_ALL},
    {"qwen2-sees-all", "qwen2", 2, 0, WW_POOLING_MEAN, SEES_ALL},
    {"qwen3-sees-all", "qwen3", 2, 0, WW_POOLING_LAST, SEES_ALL},
    {"qwen3", "qwen3", 2, 0, WW_POOLING_LAST, 0},
    {"qwen3-rank", "qwen3", 2, 0, WW_POOLING_RANK, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

static const char *case_name(int number)
{
    return cases[number].name;
}

static void write_case(int number, const char *path)
{
    const struct model_case *c = &cases[number];
    tiny_model tiny;
    tiny_shape shape = tiny_default(c->architecture);
    shape.layers = c->layers;
    shape.window = c->window;
    shape.pooling = c->pooling;
    shape.ranks_mean = c->flags & RANKS_MEAN;
    shape.norms_twice = c->flags & NORMS_TWICE;
    shape.sees_all = c->flags & SEES_ALL;
    shape.tied = true;
    tiny_make(&tiny, &shape);
    tiny_write(&tiny, path);
    tiny_free(&tiny);
}

/* Runs a single text, as a pair whose second half has the second type if the model has types. */
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

/* Checks all stored texts of a model; skips long ones where they take long. */
static void check_case(ww_device *device, int number, const json_t *texts)
{
    const struct model_case *c = &cases[number];
    const bool ranks = c->pooling == WW_POOLING_RANK;
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    const char *count;
    json_t *numbers;
    options.activations = WW_ACTIVATIONS_FLOAT;
    options.cache = WW_QUANT_F32;
    CHECK_OK(ww_model_open(scratch_path("model.gguf"), device, &options, &model));
    json_object_foreach((json_t *)(uintptr_t)texts, count, numbers)
    {
        float out[WIDTH] = {0};
        if (atoi(count) > 64 && device_is_slow(device))
            continue;
        run(model, c, atoi(count), out);
        check_numbers(out, ranks ? 1 : WIDTH, ranks ? 1 : EACH, numbers, 2e-5);
    }
    ww_model_close(model);
}

int main(void)
{
    const case_list list = {"model embedders", "embedder_cases.json", CASES, case_name, write_case, check_case};
    return run_cases(&list);
}
