/* Model calls on a scene: a decoder with two sessions, an encoder, and a reranker. */
#include "model/model_calls.h"

#include <string.h>

#include "model/model.h"
#include "support/scratch.h"

const int32_t calls_prompt[CALLS_PROMPT] = {3, 14, 15, 92, 65, 35};

static ww_device *device;
static ww_model *decoder, *encoder, *ranker;
static ww_session *session, *other;
static float expected[CALLS_VOCABULARY], expected_next[CALLS_VOCABULARY], expected_vectors[2 * CALLS_WIDTH];

void write_tiny_model(const char *kind, ww_quant_type type, int32_t layers, const char *name)
{
    tiny_model m;
    tiny_shape shape = tiny_default(kind);
    shape.type = type;
    shape.layers = layers;
    tiny_make(&m, &shape);
    tiny_write(&m, scratch_path(name));
    tiny_free(&m);
}

void write_tiny_embedder(const char *kind, ww_quant_type type, const char *name)
{
    tiny_model m;
    tiny_shape shape = tiny_default(kind);
    shape.type = type;
    shape.pooling = strcmp(kind, "qwen3") == 0 ? WW_POOLING_LAST : WW_POOLING_MEAN;
    shape.window = strstr(kind, "modern") || strstr(kind, "gemma") ? 6 : 0;
    tiny_make(&m, &shape);
    tiny_write(&m, scratch_path(name));
    tiny_free(&m);
}

void model_calls_write_files(void)
{
    tiny_write_ranker(1, scratch_path("ranker.gguf"));
    write_tiny_model("llama", WW_QUANT_Q8_0, 1, "decoder.gguf");
    write_tiny_model("gpt-oss", WW_QUANT_MXFP4, 1, "mixture.gguf");
    write_tiny_model("bert", WW_QUANT_F32, 1, "encoder.gguf");
}

/* ---- calls --------------------------------------------------------------------------------------------------------------- */

static ww_status call_open(void)
{
    ww_model *model = NULL;
    const ww_status status = ww_model_open(scratch_path("decoder.gguf"), device, NULL, &model);
    assert_int_equal(status == WW_OK, model != NULL);
    ww_model_close(model);
    return status;
}

/* A mixture of experts from its file to its logits. */
static ww_status call_mixture(void)
{
    ww_model *model = NULL;
    ww_session *made = NULL;
    ww_status status = ww_model_open(scratch_path("mixture.gguf"), device, NULL, &model);
    if (status == WW_OK)
        status = ww_session_create(model, &made);
    if (status == WW_OK)
        status = ww_session_feed(made, calls_prompt, 2);
    ww_session_destroy(made);
    ww_model_close(model);
    return status;
}

static ww_status call_create(void)
{
    ww_session *made = NULL;
    ww_status status = ww_session_create(decoder, &made);
    if (status == WW_OK)
        status = ww_session_feed(made, calls_prompt, CALLS_PROMPT);
    ww_session_destroy(made);
    return status;
}

/* Feeds a fork, so that the session does not change. */
static ww_status feed_fork(const int32_t *ids, size_t count, float *logits)
{
    ww_session *fork = NULL;
    ww_status status = ww_session_fork(session, &fork);
    if (status == WW_OK)
        status = ww_session_feed(fork, ids, count);
    if (status == WW_OK && logits)
        status = ww_session_logits(fork, logits);
    ww_session_destroy(fork);
    return status;
}

static ww_status call_feed(void)
{
    return feed_fork(calls_prompt, 2, NULL);
}

/* A step, which was recorded before on a device that can. */
static ww_status call_step(void)
{
    return feed_fork(calls_prompt, 1, NULL);
}

static void before_step(void)
{
    for (int i = 0; i < 2; i++)
        CHECK_OK(call_step());
}

static void before_record(void)
{
    workspace_forget_steps(&decoder->work);
}

/* The first step of a model, the second, which is recorded, a replay of it, and its end. */
static ww_status call_record(void)
{
    ww_status status = WW_OK;
    for (int i = 0; i < 3 && status == WW_OK; i++)
        status = feed_fork(calls_prompt + i, 1, NULL);
    workspace_forget_steps(&decoder->work);
    return status;
}

static ww_status call_feed_many(void)
{
    ww_session *forks[2] = {NULL, NULL};
    const int32_t *const ids[2] = {calls_prompt, calls_prompt + 1};
    const size_t counts[2] = {1, 3};
    ww_status status = ww_session_fork(session, &forks[0]);
    if (status == WW_OK)
        status = ww_session_fork(other, &forks[1]);
    if (status == WW_OK)
        status = ww_sessions_feed(forks, ids, counts, 2);
    ww_session_destroy(forks[0]);
    ww_session_destroy(forks[1]);
    return status;
}

static ww_status call_sample(void)
{
    ww_sampling sampling = ww_sampling_default();
    int32_t token;
    sampling.temperature = 1.0;
    sampling.top_k = 5;
    sampling.repetition_penalty = 1.2;
    return ww_session_sample(session, &sampling, &token);
}

static ww_status call_save(void)
{
    return ww_session_save(session, scratch_path("saved"));
}

static ww_status call_load(void)
{
    ww_session *loaded = NULL;
    const ww_status status = ww_session_load(decoder, scratch_path("whole"), &loaded);
    assert_int_equal(status == WW_OK, loaded != NULL);
    ww_session_destroy(loaded);
    return status;
}

static ww_status embed(float *vectors)
{
    const size_t counts[2] = {4, 2};
    return ww_model_embed_tokens(encoder, calls_prompt, counts, 2, vectors);
}

static ww_status call_embed(void)
{
    float vectors[2 * CALLS_WIDTH];
    return embed(vectors);
}

static ww_status call_rerank(void)
{
    static const char *const texts[] = {"a fox", "dogs", ""};
    float scores[3];
    return ww_model_rerank(ranker, "a dog", texts, NULL, 3, scores, NULL, NULL);
}

const model_call model_calls[] = {
    {.name = "open", .call = call_open, .opens = true},
    {.name = "mixture", .call = call_mixture, .opens = true},
    {.name = "create", .call = call_create},
    {.name = "feed", .call = call_feed},
    {.name = "step", .call = call_step, .before = before_step},
    {.name = "record", .call = call_record, .before = before_record},
    {.name = "feed many", .call = call_feed_many},
    {.name = "sample", .call = call_sample},
    {.name = "save", .call = call_save},
    {.name = "load", .call = call_load},
    {.name = "embed", .call = call_embed},
    {.name = "rerank", .call = call_rerank},
    {.name = NULL},
};

/* ---- the scene ----------------------------------------------------------------------------------------------------------- */

void model_calls_begin(ww_device *opened)
{
    device = opened;
    CHECK_OK(ww_model_open(scratch_path("decoder.gguf"), device, NULL, &decoder));
    CHECK_OK(ww_model_open(scratch_path("encoder.gguf"), device, NULL, &encoder));
    CHECK_OK(ww_model_open(scratch_path("ranker.gguf"), device, NULL, &ranker));
    CHECK_OK(ww_session_create(decoder, &session));
    CHECK_OK(ww_session_create(decoder, &other));
    CHECK_OK(ww_session_feed(session, calls_prompt, CALLS_PROMPT));
    CHECK_OK(ww_session_feed(other, calls_prompt, 2));
    CHECK_OK(ww_session_logits(session, expected));
    CHECK_OK(ww_session_save(session, scratch_path("whole")));
}

void model_calls_warm(void)
{
    for (const model_call *c = model_calls; c->name; c++)
        CHECK_OK(c->call());
    CHECK_OK(feed_fork(calls_prompt, 1, expected_next));
    CHECK_OK(embed(expected_vectors));
}

void model_calls_check(const char *what, bool whole)
{
    float logits[CALLS_VOCABULARY], vectors[2 * CALLS_WIDTH];
    CHECK_OK(ww_session_logits(session, logits));
    if (ww_session_length(session) != CALLS_PROMPT || memcmp(logits, expected, sizeof logits) != 0)
        fail_msg("%s: the session has changed", what);
    const ww_status fed = feed_fork(calls_prompt, 1, logits);
    if (fed != WW_OK || memcmp(logits, expected_next, sizeof logits) != 0)
        fail_msg("%s: the session does not go on as it would have: %s", what, fed == WW_OK ? "bits" : ww_error_message());
    if (!whole)
        return;
    const ww_status embedded = embed(vectors);
    if (embedded != WW_OK || memcmp(vectors, expected_vectors, sizeof vectors) != 0)
        fail_msg("%s: texts are not embedded as before: %s", what, embedded == WW_OK ? "bits" : ww_error_message());
}

void model_calls_end(void)
{
    ww_session_destroy(other);
    ww_session_destroy(session);
    ww_model_close(ranker);
    ww_model_close(encoder);
    ww_model_close(decoder);
}
