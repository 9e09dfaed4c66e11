/* Embedding texts: the public calls. */
#include <math.h>
#include <string.h>

#include <warpwave/vectors.h>

#include "base/float_guard.h"
#include "base/structs.h"
#include "model/passes.h"

STRUCT_INIT(ww_embedding, {0})

static ww_status check_embeds(const ww_model *model, const char *call)
{
    const ww_status status = model_check(model, call);
    if (status == WW_OK && !model->info.embeds)
        return ww_fail(
            WW_UNSUPPORTED, "%s: this model (%s) does not embed texts: %s", call, model->architecture->name,
            model->architecture->kind == WW_MODEL_DECODER
                ? "its file names no pooling, so it continues them; open it with pooling last (--pooling last) to embed"
                : "it compares them with a query, so rerank with it");
    return status;
}

ww_status ww_model_embed_tokens(ww_model *model, const int32_t *ids, const size_t *counts, size_t count, float *vectors)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_embed_tokens";
    const ww_status status = check_embeds(model, call);
    if (status != WW_OK || count == 0)
        return status;
    if (!ids || !counts || !vectors)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, !ids ? "ids" : counts ? "vectors" : "counts");
    size_t tokens = 0;
    for (size_t i = 0; i < count; i++) {
        if (counts[i] == 0 || counts[i] > (size_t)model->context)
            return ww_fail(WW_OUT_OF_RANGE, "%s: text %zu has %zu tokens; it must have 1 to %lld", call, i, counts[i],
                           (long long)model->context);
        for (size_t t = 0; t < counts[i]; t++, tokens++)
            if (ids[tokens] < 0 || ids[tokens] >= model->sizes.vocabulary)
                return ww_fail(WW_OUT_OF_RANGE, "%s: id %d of text %zu is not a token; the vocabulary has %lld", call,
                               (int)ids[tokens], i, (long long)model->sizes.vocabulary);
    }
    return passes_run(&(text_job){.model = model,
                                  .ids = ids,
                                  .counts = counts,
                                  .count = count,
                                  .results = vectors,
                                  .doing = "embedding",
                                  .total = count});
}

ww_status ww_model_prompt(const ww_model *model, const char *name, const char **text)
{
    FLOAT_GUARD();
    const ww_status status = model_check(model, "ww_model_prompt");
    if (status == WW_OK && !text)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_model_prompt: text is NULL");
    return status == WW_OK ? prompts_find(&model->prompts, name, text) : status;
}

ww_status ww_model_embed(ww_model *model, const char *const *all, const size_t *bytes, size_t count, const ww_embedding *how,
                         float *vectors)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_embed";
    ww_embedding read = ww_embedding_default();
    const char *prompt = "";
    ww_status status = check_embeds(model, call);
    if (status == WW_OK && !model->tokenizer)
        status = ww_fail(WW_UNSUPPORTED, "%s: the model has no tokenizer", call);
    if (status == WW_OK && how)
        status = struct_read(&read, sizeof read, how, call, "ww_embedding");
    if (status == WW_OK)
        status = prompts_find(&model->prompts, read.prompt, &prompt);
    if (status == WW_OK && read.cut)
        *read.cut = 0;
    if (status != WW_OK || count == 0)
        return status;
    if (!all || !vectors)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, all ? "vectors" : "texts");
    for (size_t i = 0; i < count; i++)
        if (!all[i] && !(bytes && bytes[i] == 0))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: text %zu is NULL", call, i);
    text_job job = {.model = model,
                    .results = vectors,
                    .progress = read.progress,
                    .progress_user = read.progress_user,
                    .doing = "embedding",
                    .total = count};
    status =
        passes_run_texts(&job, &(text_batch){.model = model, .texts = all, .bytes = bytes, .prompt = prompt, .call = call});
    if (status == WW_OK && read.cut)
        *read.cut = job.cut;
    return status;
}

ww_status ww_embeddings_shorten(float *vectors, size_t count, int32_t width, int32_t dimensions)
{
    FLOAT_GUARD();
    const char *const call = "ww_embeddings_shorten";
    if (width < 1 || dimensions < 1 || dimensions > width)
        return ww_fail(WW_OUT_OF_RANGE, "%s: dimensions is %d; it must be 1 to %d, the width of the vectors", call,
                       (int)dimensions, (int)width);
    if (!vectors && count > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: vectors is NULL", call);
    for (size_t i = 0; i < count; i++) {
        float *v = vectors + i * (size_t)dimensions, squared = 0.0f;
        memmove(v, vectors + i * (size_t)width, (size_t)dimensions * sizeof *v);
        const ww_status status = ww_score(WW_DOT, v, v, dimensions, &squared);
        if (status != WW_OK)
            return status;
        const float length = sqrtf(squared);
        for (int32_t d = 0; d < dimensions && length > 0.0f; d++)
            v[d] /= length;
    }
    return WW_OK;
}
