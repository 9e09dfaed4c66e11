/* Real models compared with float64 references. In tests/data/model, outputs.json has tokens, greedy tokens with the margin
 * between first and second, how near another program comes, and embeddings; NAME.f32 has all logits of SmolLM2; for other
 * models, outputs.json has every n-th logit. WARPWAVE_MODELS names the folder of the models (scripts/demo/fetch-models.py
 * fetches them); without it this is skipped. WARPWAVE_TEST_DEVICES names the devices.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/convert/convert.h"
#include "support/devices.h"
#include "support/models/tiny.h"
#include "support/scratch.h"

enum { TOKENS_MAX = 256 };

static json_t *expected;

/* Returns the path of a model; skips the test if it does not exist. */
static const char *path_of(const char *name)
{
    static char path[SCRATCH_PATH_BYTES];
    const char *folder = getenv("WARPWAVE_MODELS");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "", name);
    if (!folder || access(path, R_OK) != 0) {
        printf("SKIP: no %s in the folder that WARPWAVE_MODELS names; scripts/demo/fetch-models.py fetches it\n", name);
        skip();
    }
    return path;
}

static ww_model *open_model(ww_device *device, const char *path, ww_activations activations, ww_quant_type cache)
{
    ww_model_options options = ww_model_options_default();
    ww_model *model;
    options.activations = activations;
    options.cache = cache;
    CHECK_OK(ww_model_open(path, device, &options, &model));
    return model;
}

static int integers(const json_t *list, int32_t *out)
{
    const size_t count = json_array_size(list);
    assert_true(count <= TOKENS_MAX);
    for (size_t i = 0; i < count; i++)
        out[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return (int)count;
}

static int64_t vocabulary_of(ww_model *model)
{
    ww_model_info info = ww_model_info_default();
    CHECK_OK(ww_model_describe(model, &info));
    return info.vocabulary;
}

/* The reference's logits: all of them (stride 1), or every stride-th. */
typedef struct reference {
    float *logits;
    size_t count, stride;
} reference;

static reference read_reference(const json_t *one, int64_t vocabulary)
{
    const json_t *sampled = json_object_get(one, "logits");
    reference r = {.logits = malloc((size_t)vocabulary * sizeof *r.logits), .count = (size_t)vocabulary, .stride = 1};
    if (sampled) {
        r.stride = (size_t)json_integer_value(json_object_get(one, "stride"));
        r.count = json_array_size(sampled);
        for (size_t i = 0; i < r.count; i++)
            r.logits[i] = (float)json_number_value(json_array_get(sampled, i));
        return r;
    }
    char path[512];
    snprintf(path, sizeof path, TEST_DATA_DIR "/model/smollm2_%s.f32", json_string_value(json_object_get(one, "name")));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(r.logits, sizeof *r.logits, r.count + 1, file), r.count);
    fclose(file);
    return r;
}

/* How much logits differ from the reference's: the largest difference, and the cosine, over the stored ones. */
typedef struct distance {
    double largest, cosine;
} distance;

static distance distance_of(const reference *r, const float *logits)
{
    double largest = 0.0, dot = 0.0, ours = 0.0, theirs = 0.0;
    for (size_t i = 0; i < r->count; i++) {
        const double a = (double)logits[i * r->stride], b = (double)r->logits[i];
        largest = fmax(largest, fabs(a - b));
        dot += a * b;
        ours += a * a;
        theirs += b * b;
    }
    return (distance){largest, dot / sqrt(ours * theirs)};
}

static int32_t first_choice(const float *logits, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

/* Teacher forcing: the reference's tokens are fed, and must be our first choice wherever the margin is above `margin`. */
static void check_choices(ww_session *session, const json_t *one, double margin, float *logits, int64_t vocabulary)
{
    int32_t greedy[TOKENS_MAX];
    const int count = integers(json_object_get(one, "greedy"), greedy);
    for (int i = 0; i < count; i++) {
        const double between = json_number_value(json_array_get(json_object_get(one, "margins"), (size_t)i));
        CHECK_OK(ww_session_logits(session, logits));
        const int32_t chosen = first_choice(logits, vocabulary);
        if (chosen != greedy[i] && between > margin)
            fail_msg("token %d is %d, not %d, with a margin of %g", i, (int)chosen, (int)greedy[i], between);
        CHECK_OK(ww_session_feed(session, &greedy[i], 1));
    }
}

typedef struct limits {
    ww_activations activations;
    ww_quant_type cache;
    double largest;    /* difference of a logit; 0: not looked at */
    double cosine;     /* minimum */
    double below_peer; /* how much the cosine may be below another program's; 0: not checked */
    double margin;     /* above it ours is the first choice */
} limits;

/* Reports each limit separately, with the measured value. */
static void check_limits(const char *name, const json_t *one, const limits *l, distance d)
{
    const char *text = json_string_value(json_object_get(one, "name"));
    const double peer = json_number_value(json_object_get(one, "peer_cosine"));
    if (getenv("WARPWAVE_GOLDEN_PRINT"))
        printf("%s, %s: largest difference %.2e, cosine %.6f (another program's: %.6f)\n", name, text, d.largest, d.cosine,
               peer);
    if (l->largest > 0.0 && !(d.largest <= l->largest))
        fail_msg("%s, %s: a logit is %g from the reference's; %g is allowed", name, text, d.largest, l->largest);
    if (!(d.cosine >= l->cosine))
        fail_msg("%s, %s: the cosine to the reference is %.6f; %g is wanted", name, text, d.cosine, l->cosine);
    if (l->below_peer > 0.0 && !(d.cosine >= peer - l->below_peer))
        fail_msg("%s, %s: the cosine is %.6f, another program's %.6f; %g below is allowed", name, text, d.cosine, peer,
                 l->below_peer);
}

static void check_decoder(ww_device *device, const char *name, const limits *l)
{
    ww_model *model = open_model(device, path_of(name), l->activations, l->cache);
    const int64_t vocabulary = vocabulary_of(model);
    float *logits = malloc((size_t)vocabulary * sizeof *logits);
    size_t index;
    json_t *one;
    int cases = 0;
    json_array_foreach(json_object_get(expected, "decoders"), index, one)
    {
        int32_t ids[TOKENS_MAX];
        ww_session *session;
        if (strcmp(json_string_value(json_object_get(one, "model")), name) != 0)
            continue;
        const int count = integers(json_object_get(one, "ids"), ids);
        reference r = read_reference(one, vocabulary);
        CHECK_OK(ww_session_create(model, &session));
        CHECK_OK(ww_session_feed(session, ids, (size_t)count));
        CHECK_OK(ww_session_logits(session, logits));
        check_limits(name, one, l, distance_of(&r, logits));
        check_choices(session, one, l->margin, logits, vocabulary);
        ww_session_destroy(session);
        free(r.logits);
        cases++;
    }
    assert_true(cases > 0);
    free(logits);
    ww_model_close(model);
}

/* With 8-bit activations: near the reference, not much farther than another program, and with the same first choice wherever
 * that is clear. */
static void smollm2_is_near_its_reference(void **state)
{
    const limits coded = {WW_ACTIVATIONS_CODED, WW_QUANT_F16, 0.0, 0.998, 0.0005, 0.25};
    check_decoder(*state, "SmolLM2-135M-Instruct.Q4_1.gguf", &coded);
}

static void smollm2_with_float_activations_is_its_reference(void **state)
{
    const limits f32 = {WW_ACTIVATIONS_FLOAT, WW_QUANT_F32, 1e-3, 0.99999, 0.0, 0.05};
    const limits f16 = {WW_ACTIVATIONS_FLOAT, WW_QUANT_F16, 3e-2, 0.9999, 0.0, 0.05};
    check_decoder(*state, "SmolLM2-135M-Instruct.Q4_1.gguf", &f32);
    check_decoder(*state, "SmolLM2-135M-Instruct.Q4_1.gguf", &f16);
}

static void gemma3_and_qwen2_are_near_theirs(void **state)
{
    const limits coded = {WW_ACTIVATIONS_CODED, WW_QUANT_F16, 0.0, 0.998, 0.0005, 0.25};
    const limits gemma = {WW_ACTIVATIONS_FLOAT, WW_QUANT_F32, 2e-2, 0.99999, 0.0, 0.05}; /* its GELU is a table of f16 */
    check_decoder(*state, "gemma-3-270m-q4_k_m.gguf", &coded);
    check_decoder(*state, "gemma-3-270m-q4_k_m.gguf", &gemma);
    check_decoder(*state, "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", &coded);
}

static void check_encoder(ww_device *device, const char *type, double least)
{
    const char *folder = path_of("all-MiniLM-L6-v2"); /* skips before anything is allocated */
    ww_device *cpu;
    ww_conversion_report report;
    const json_t *sentences = json_object_get(expected, "sentences"), *wanted = json_object_get(expected, "embeddings");
    const size_t count = json_array_size(sentences), width = json_array_size(json_array_get(wanted, 0));
    const char *texts[16];
    float *vectors = malloc(count * width * sizeof *vectors);
    CHECK_OK(ww_device_open("cpu", &cpu));
    const ww_conversion job = {.folder = folder, .out_path = scratch_path("minilm.gguf"), .type = type, .device = cpu};
    CHECK_OK(convert_folder(&job, &report));
    ww_model *model = open_model(device, job.out_path, WW_ACTIVATIONS_CODED, WW_QUANT_F16);
    for (size_t i = 0; i < count; i++)
        texts[i] = json_string_value(json_array_get(sentences, i));
    CHECK_OK(ww_model_embed(model, texts, NULL, count, NULL, vectors));
    for (size_t i = 0; i < count; i++) {
        double dot = 0.0;
        for (size_t d = 0; d < width; d++)
            dot += (double)vectors[i * width + d] * json_number_value(json_array_get(json_array_get(wanted, i), d));
        if (dot < least)
            fail_msg("MiniLM %s, sentence %zu: cosine %.7f", type, i, dot);
    }
    free(vectors);
    ww_model_close(model);
    ww_device_close(cpu);
}

static void minilm_gives_the_embeddings_of_its_reference(void **state)
{
    check_encoder(*state, "f32", 0.99999);
    check_encoder(*state, "q8_0", 0.999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minilm_gives_the_embeddings_of_its_reference),
        cmocka_unit_test(smollm2_is_near_its_reference),
        cmocka_unit_test(smollm2_with_float_activations_is_its_reference),
        cmocka_unit_test(gemma3_and_qwen2_are_near_theirs),
    };
    void *scratch;
    expected = json_load_file(TEST_DATA_DIR "/model/outputs.json", 0, NULL);
    if (!expected || scratch_setup(&scratch) != 0)
        return 1;
    setenv("WARPWAVE_TEST_DEVICES", "cpu", 0); /* real models are too much for an emulated device */
    const int failed = RUN_ON_EVERY_DEVICE("real models", tests);
    json_decref(expected);
    return scratch_teardown(&scratch) != 0 || failed;
}
