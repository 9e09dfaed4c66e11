/* A model's output is a function of text and weights: the same bits alone and in batches of 2, 7, 32 and 256, in one piece and
 * in pieces of 1, 13 and 512, with one thread and with two, with each instruction set, on every device. The reference is the
 * CPU's, one text alone in one piece. Models have two layers and random weights.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/isa/isa.h"
#include "model/model_calls.h"
#include "support/data/random.h"
#include "support/devices.h"
#include "support/scratch.h"

enum { VOCABULARY = 96, WIDTH = 64, TEXTS = 256, LENGTH_MAX = 560, LENGTH_SLOW = 18 };

static int32_t texts[TEXTS][LENGTH_MAX];
static size_t lengths[TEXTS];
static float expected[TEXTS][VOCABULARY], expected_vectors[TEXTS][WIDTH];

/* Lengths from 1 up. The first text is longer than two pages, except where that takes long; there, texts after the seventh are
 * short. */
static void make_texts(bool slow)
{
    test_random random = {5};
    for (int i = 0; i < TEXTS; i++) {
        const size_t most = slow ? (i < 7 ? LENGTH_SLOW : i < 32 ? 2 : 1) : i == 0 ? LENGTH_MAX : i == 1 ? 300 : 40;
        lengths[i] = i == 0 ? most : 1 + random_below(&random, most);
        for (size_t t = 0; t < lengths[i]; t++)
            texts[i][t] = (int32_t)random_below(&random, VOCABULARY);
    }
}

static ww_model *open_model(ww_device *device, const char *path, ww_quant_type cache)
{
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    options.cache = cache;
    CHECK_OK(ww_model_open(path, device, &options, &model));
    return model;
}

static void feed_pieces(ww_model *model, int text, size_t piece, float *logits)
{
    ww_session *session;
    CHECK_OK(ww_session_create(model, &session));
    for (size_t at = 0; at < lengths[text]; at += piece)
        CHECK_OK(ww_session_feed(session, texts[text] + at, lengths[text] - at < piece ? lengths[text] - at : piece));
    CHECK_OK(ww_session_logits(session, logits));
    ww_session_destroy(session);
}

static void check_same(const char *what, int text, const float *logits)
{
    if (memcmp(logits, expected[text], sizeof expected[text]) != 0)
        fail_msg("%s: text %d has other bits than alone on the CPU", what, text);
}

/* Runs `count` texts at once; with `twice`, the last token of each in a second batch. */
static void check_batch(ww_model *model, int count, bool twice)
{
    ww_session *sessions[TEXTS] = {NULL};
    const int32_t *ids[TEXTS] = {NULL};
    size_t counts[TEXTS] = {0};
    float logits[VOCABULARY];
    for (int i = 0; i < count; i++) {
        CHECK_OK(ww_session_create(model, &sessions[i]));
        ids[i] = texts[i];
        counts[i] = lengths[i] - (twice ? 1 : 0);
    }
    CHECK_OK(ww_sessions_feed(sessions, ids, counts, (size_t)count));
    for (int i = 0; i < count && twice; i++) {
        ids[i] = texts[i] + counts[i];
        counts[i] = 1;
    }
    if (twice)
        CHECK_OK(ww_sessions_feed(sessions, ids, counts, (size_t)count));
    for (int i = 0; i < count; i++) {
        CHECK_OK(ww_session_logits(sessions[i], logits));
        check_same(twice ? "a batch, then a token each" : "a batch", i, logits);
        ww_session_destroy(sessions[i]);
    }
}

/* Each text by itself, in one piece, on the CPU. */
static void compute_expected(ww_quant_type cache, int count)
{
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_model *model = open_model(cpu, scratch_path("model.gguf"), cache);
    for (int i = 0; i < count; i++)
        feed_pieces(model, i, lengths[i], expected[i]);
    ww_model_close(model);
    ww_device_close(cpu);
}

/* With `all`, also the largest batch. */
static void check_decoder(ww_device *device, ww_quant_type cache, bool all)
{
    const bool slow = device_is_slow(device);
    static const size_t pieces[] = {1, 13, 512};
    float logits[VOCABULARY];
    compute_expected(cache, all ? TEXTS : 32);
    ww_model *model = open_model(device, scratch_path("model.gguf"), cache);
    for (int p = 0; p < 3; p++) {
        feed_pieces(model, 0, pieces[p], logits);
        check_same("pieces", 0, logits);
    }
    check_batch(model, 2, false);
    check_batch(model, 7, true);
    if (all || !slow)
        check_batch(model, 32, !slow);
    if (all)
        check_batch(model, TEXTS, !slow);
    ww_model_close(model);
}

static void logits_have_the_same_bits_in_any_batch_and_in_any_pieces(void **state)
{
    make_texts(device_is_slow(*state));
    write_tiny_model("llama", WW_QUANT_Q4_1, 2, "model.gguf");
    check_decoder(*state, WW_QUANT_F16, !TEST_INSTRUMENTED || !device_is_slow(*state));
}

static void so_they_have_with_other_weights_and_caches(void **state)
{
    make_texts(true);
    write_tiny_model("gemma3", WW_QUANT_Q8_0, 2, "model.gguf");
    check_decoder(*state, WW_QUANT_Q8_0, false);
    write_tiny_model("qwen3", WW_QUANT_F32, 2, "model.gguf");
    check_decoder(*state, WW_QUANT_F32, false);
    write_tiny_model("qwen2", WW_QUANT_F16, 2, "model.gguf");
    check_decoder(*state, WW_QUANT_F16, false);
}

/* With the features of each: windows, sinks, scales, factors, experts. */
static void every_other_decoder_has_the_same_bits(void **state)
{
    static const struct {
        const char *architecture;
        ww_quant_type type, cache;
        int32_t layers, window;
        const char *scaling;
        bool quick; /* also on devices that are slow */
    } list[] = {{"phi3", WW_QUANT_Q4_1, WW_QUANT_F16, 1, 0, NULL, false},
                {"gemma2", WW_QUANT_Q8_0, WW_QUANT_F16, 1, 9, NULL, true},
                {"granite", WW_QUANT_Q8_0, WW_QUANT_F16, 1, 0, NULL, false},
                {"olmo2", WW_QUANT_F16, WW_QUANT_F16, 1, 0, NULL, false},
                {"smollm3", WW_QUANT_Q8_0, WW_QUANT_Q8_0, 4, 0, NULL, false},
                {"mistral3", WW_QUANT_Q8_0, WW_QUANT_F32, 1, 0, "yarn", false},
                {"qwen3moe", WW_QUANT_Q4_0, WW_QUANT_F16, 1, 0, NULL, false},
                {"qwen3moe", WW_QUANT_F32, WW_QUANT_F32, 1, 0, NULL, false},
                {"gpt-oss", WW_QUANT_MXFP4, WW_QUANT_F16, 1, 9, "yarn", true}};
    make_texts(device_is_slow(*state));
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        tiny_model tiny;
        tiny_shape shape = tiny_default(list[i].architecture);
        if (device_is_slow(*state) && !list[i].quick && !test_is_long())
            continue;
        shape.type = list[i].type;
        shape.layers = list[i].layers;
        shape.window = list[i].window;
        shape.scaling = list[i].scaling;
        shape.scaling_factor = 4.0;
        shape.rope_factors = strcmp(list[i].architecture, "phi3") == 0;
        tiny_make(&tiny, &shape);
        tiny_write(&tiny, scratch_path("model.gguf"));
        tiny_free(&tiny);
        check_decoder(*state, list[i].cache, false);
    }
}

static void embed(ww_model *model, int first, int count, float *vectors)
{
    static int32_t ids[TEXTS * LENGTH_MAX];
    size_t total = 0;
    for (int i = first; i < first + count; i++) {
        memcpy(ids + total, texts[i], lengths[i] * sizeof *ids);
        total += lengths[i];
    }
    CHECK_OK(ww_model_embed_tokens(model, ids, lengths + first, (size_t)count, vectors));
}

static void check_encoder(ww_device *device, const char *architecture, ww_quant_type type, bool all)
{
    static const int batches[] = {1, 2, 7, 32, TEXTS};
    static float vectors[TEXTS][WIDTH];
    ww_device *cpu;
    write_tiny_embedder(architecture, type, "model.gguf");
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_model *model = open_model(cpu, scratch_path("model.gguf"), WW_QUANT_F16);
    for (int i = 0; i < (all ? TEXTS : 7); i++)
        embed(model, i, 1, expected_vectors[i]);
    ww_model_close(model);
    model = open_model(device, scratch_path("model.gguf"), WW_QUANT_F16);
    for (int b = 0; b < (all ? 5 : 3); b++) {
        embed(model, 0, batches[b], vectors[0]);
        for (int i = 0; i < batches[b]; i++)
            if (memcmp(vectors[i], expected_vectors[i], sizeof vectors[i]) != 0)
                fail_msg("%s, %d texts: text %d has another embedding than alone on the CPU", architecture, batches[b], i);
    }
    ww_model_close(model);
    ww_device_close(cpu);
}

static void embeddings_have_the_same_bits_in_any_batch(void **state)
{
    const bool has_time = !device_is_slow(*state) || (test_is_long() && !TEST_INSTRUMENTED);
    make_texts(device_is_slow(*state));
    check_encoder(*state, "bert", WW_QUANT_F32, !device_is_slow(*state));
    check_encoder(*state, "bert", WW_QUANT_Q8_0, has_time);
    check_encoder(*state, "nomic-bert", WW_QUANT_Q8_0, false);
    check_encoder(*state, "qwen3", WW_QUANT_Q8_0, false);
    check_encoder(*state, "modern-bert", WW_QUANT_Q8_0, false);
    check_encoder(*state, "gemma-embedding", WW_QUANT_Q8_0, false);
    check_encoder(*state, "jina-bert-v2", WW_QUANT_Q8_0, false);
    check_encoder(*state, "mpnet", WW_QUANT_Q8_0, false);
}

/* A CPU as the variable `name` says it shall be. */
static ww_device *open_cpu(const char *name, const char *value)
{
    ww_device *device;
    const char *before = getenv(name);
    char *kept = before ? strdup(before) : NULL;
    setenv(name, value, 1);
    CHECK_OK(ww_device_open("cpu", &device));
    if (kept)
        setenv(name, kept, 1);
    else
        unsetenv(name);
    free(kept);
    return device;
}

/* All of the matrix but the largest batches on that CPU. */
static void check_cpu(const char *name, const char *value)
{
    static float vectors[7][WIDTH];
    float logits[VOCABULARY];
    ww_device *device = open_cpu(name, value);
    ww_model *model = open_model(device, scratch_path("model.gguf"), WW_QUANT_F16);
    static const size_t pieces[] = {512, 13, 1};
    for (int t = 0; t < 3; t++) { /* the longest in the largest pieces */
        feed_pieces(model, t, pieces[t], logits);
        check_same(value, t, logits);
    }
    check_batch(model, 7, true);
    ww_model_close(model);
    model = open_model(device, scratch_path("encoder.gguf"), WW_QUANT_F16);
    embed(model, 0, 7, vectors[0]);
    for (int i = 0; i < 7; i++)
        if (memcmp(vectors[i], expected_vectors[i], sizeof vectors[i]) != 0)
            fail_msg("%s=%s: text %d has another embedding", name, value, i);
    ww_model_close(model);
    ww_device_close(device);
}

/* Once, with CPUs of other threads and instruction sets. */
static void threads_and_instruction_sets_do_not_change_bits(void **state)
{
    ww_device_info info = ww_device_info_default();
    ww_device *cpu;
    CHECK_OK(ww_device_describe(*state, &info));
    if (strcmp(info.backend, "cpu") != 0)
        return; /* it was, with the CPU */
    make_texts(false);
    write_tiny_model("llama", WW_QUANT_Q8_0, 2, "model.gguf");
    write_tiny_model("bert", WW_QUANT_Q8_0, 2, "encoder.gguf");
    compute_expected(WW_QUANT_F16, 7);
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_model *model = open_model(cpu, scratch_path("encoder.gguf"), WW_QUANT_F16);
    for (int i = 0; i < 7; i++)
        embed(model, i, 1, expected_vectors[i]);
    ww_model_close(model);
    ww_device_close(cpu);
    check_cpu("WARPWAVE_THREADS", "1");
    check_cpu("WARPWAVE_THREADS", "2");
    int sets = 0;
    for (const instruction_set *const *set = instruction_sets; *set; set++)
        if ((*set)->present()) {
            check_cpu("WARPWAVE_ISA", (*set)->name);
            sets++;
        }
    assert_true(sets > 0);
}

/* ---- one short prompt of real models, at night --------------------------------------------------------------------------- */

static float *real_logits(ww_device *device, const char *path, int64_t *count)
{
    ww_model *model;
    ww_session *session;
    int32_t ids[16];
    size_t tokens = 0;
    ww_model_info about = ww_model_info_default();
    CHECK_OK(ww_model_open(path, device, NULL, &model));
    CHECK_OK(ww_model_describe(model, &about));
    CHECK_OK(ww_model_tokenize(model, "The sky is", 10, 0, ids, 16, &tokens));
    *count = about.kind == WW_MODEL_ENCODER ? about.width : about.vocabulary;
    float *out = malloc((size_t)*count * sizeof *out);
    if (about.kind == WW_MODEL_ENCODER) {
        CHECK_OK(ww_model_embed_tokens(model, ids, &tokens, 1, out));
    } else {
        CHECK_OK(ww_session_create(model, &session));
        CHECK_OK(ww_session_feed(session, ids, tokens));
        CHECK_OK(ww_session_logits(session, out));
        ww_session_destroy(session);
    }
    ww_model_close(model);
    return out;
}

static void real_models_have_the_same_bits_on_every_device(void **state)
{
    static const char *const names[] = {"SmolLM2-135M-Instruct.Q4_1.gguf", "all-MiniLM-L6-v2.q8_0.gguf",
                                        "gemma-3-270m-q4_k_m.gguf"};
    const char *folder = getenv("WARPWAVE_MODELS");
    int found = 0;
    for (size_t i = 0; folder && i < sizeof names / sizeof *names; i++) {
        char path[512];
        int64_t count = 0, count_here = 0;
        ww_device *cpu;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (access(path, R_OK) != 0)
            continue;
        CHECK_OK(ww_device_open("cpu", &cpu));
        float *right = real_logits(cpu, path, &count), *here = real_logits(*state, path, &count_here);
        assert_int_equal(count, count_here);
        if (memcmp(right, here, (size_t)count * sizeof *here) != 0)
            fail_msg("%s: other bits than on the CPU", names[i]);
        printf("%s: %lld numbers alike\n", names[i], (long long)count);
        free(right);
        free(here);
        ww_device_close(cpu);
        found++;
    }
    if (found == 0) {
        printf("SKIP: no real models in the folder that WARPWAVE_MODELS names; scripts/demo/fetch-models.py fetches them\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_have_the_same_bits_in_any_batch_and_in_any_pieces),
        cmocka_unit_test(so_they_have_with_other_weights_and_caches),
        cmocka_unit_test(every_other_decoder_has_the_same_bits),
        cmocka_unit_test(embeddings_have_the_same_bits_in_any_batch),
        cmocka_unit_test(threads_and_instruction_sets_do_not_change_bits),
    };
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    const struct CMUnitTest nightly[] = {cmocka_unit_test(real_models_have_the_same_bits_on_every_device)};
    const int failed = getenv("WARPWAVE_NIGHTLY") ? RUN_ON_EVERY_DEVICE("real models' bits", nightly)
                                                  : RUN_ON_EVERY_DEVICE("model bits", tests);
    return scratch_teardown(&scratch) != 0 || failed;
}
