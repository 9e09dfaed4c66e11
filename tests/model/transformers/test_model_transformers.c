/* Logits of every decoder, with random weights, beside those of the transformers package, which computes them from the same
 * file: tests/model/transformers/make_transformers_cases.py has written transformers_cases.json. Float activations and a cache
 * of f32.
 */
#include "model/transformers/cases.h"
#include "support/models/tiny.h"

enum { EACH = 8 }; /* every eighth logit is kept */

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

static void check_text(ww_model *model, const json_t *expected, int tokens)
{
    ww_session *session;
    int32_t ids[TOKENS_LONG];
    float logits[VOCABULARY];
    make_tokens(ids, tokens);
    CHECK_OK(ww_session_create(model, &session));
    CHECK_OK(ww_session_feed(session, ids, (size_t)tokens));
    CHECK_OK(ww_session_logits(session, logits));
    ww_session_destroy(session);
    check_numbers(logits, VOCABULARY, EACH, expected, 1e-4);
}

/* Checks all stored texts of a model; skips long ones where they take long. */
static void check_case(ww_device *device, int number, const json_t *texts)
{
    const struct model_case *c = &cases[number];
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    const char *count;
    json_t *logits;
    options.activations = WW_ACTIVATIONS_FLOAT;
    options.cache = WW_QUANT_F32;
    json_object_foreach((json_t *)(uintptr_t)texts, count, logits)
    {
        const int tokens = atoi(count);
        if (tokens > 64 && device_is_slow(device))
            continue;
        /* phi3 has other factors for contexts that are longer than the original one; transformers chooses by the length of the
         * text. */
        options.context = c->factors ? (tokens > c->context / 4 ? c->context : c->context / 4) : 0;
        CHECK_OK(ww_model_open(scratch_path("model.gguf"), device, &options, &model));
        check_text(model, logits, tokens);
        ww_model_close(model);
    }
}

int main(void)
{
    const case_list list = {"model transformers", "transformers_cases.json", CASES, case_name, write_case, check_case};
    return run_cases(&list);
}
