/* Reranking: how well each text answers a query. */
#include "base/float_guard.h"
#include "model/passes.h"

ww_status ww_model_rerank(ww_model *model, const char *query, const char *const *texts, const size_t *bytes, size_t count,
                          float *scores, ww_progress progress, void *user)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_rerank";
    pair_query pair = {0};
    ww_status status = model_check(model, call);
    if (status == WW_OK && !model->info.reranks)
        status = ww_fail(WW_UNSUPPORTED,
                         "%s: this model (%s) does not rerank: its pooling is not rank, and it is not Qwen3-Reranker", call,
                         model->architecture->name);
    if (status != WW_OK || count == 0)
        return status;
    if (!query || !texts || !scores)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, !query ? "query" : texts ? "scores" : "texts");
    for (size_t i = 0; i < count; i++)
        if (!texts[i] && !(bytes && bytes[i] == 0))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: text %zu is NULL", call, i);
    status = pair_query_make(model, query, &pair);
    if (status != WW_OK)
        return status;
    text_job job = {
        .model = model, .results = scores, .progress = progress, .progress_user = user, .doing = "reranking", .total = count};
    status = passes_run_texts(&job, &(text_batch){.model = model, .texts = texts, .bytes = bytes, .pair = &pair, .call = call});
    pair_query_free(&pair);
    return status;
}
