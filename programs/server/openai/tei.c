/* The rest of the API of text-embeddings-inference: tokenizing, and describing the model. */
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/openai/openai.h"

/* One text as [{"id": 7, "text": "fox", "special": false}, ...]. */
static bool put_tokens(request *r, const served_model *m, const char *value, uint32_t flags)
{
    char *text = request_copy_text(r, value, "inputs");
    size_t count = 0;
    if (!text)
        return false;
    ww_status status = ww_model_tokenize(m->model, text, strlen(text), flags, NULL, 0, &count);
    int32_t *ids = status == WW_OK ? memory_alloc((count + 1) * sizeof *ids) : NULL;
    if (status == WW_OK && !ids)
        status = memory_failed("tokens", count * sizeof *ids);
    if (status == WW_OK)
        status = ww_model_tokenize(m->model, text, strlen(text), flags, ids, count, &count);
    out_text(&r->answer, "[");
    for (size_t i = 0; status == WW_OK && i < count; i++) {
        const char *bytes = NULL;
        size_t length = 0;
        status = ww_tokenizer_piece(ww_model_tokenizer(m->model), ids[i], &bytes, &length);
        out_format(&r->answer, "%s{\"id\":%d,\"text\":", i > 0 ? "," : "", (int)ids[i]);
        out_quoted(&r->answer, bytes ? bytes : "", length);
        out_format(&r->answer, ",\"special\":%s}",
                   ww_tokenizer_is_special(ww_model_tokenizer(m->model), ids[i]) ? "true" : "false");
    }
    out_text(&r->answer, "]");
    memory_free(ids);
    memory_free(text);
    return status == WW_OK ? true : request_fail_status(r, status);
}

bool prepare_tokenize(request *r)
{
    const char *body = request_body(r), *inputs = body ? json_given(body, "inputs") : NULL;
    const served_model *m = body ? model_for_task(r, body, json_given(body, "model") ? TASK_ANY : TASK_EMBED) : NULL;
    bool add = true, begun = false;
    if (!m || !request_read_bool(r, body, "add_special_tokens", &add))
        return false;
    const bool list = inputs && json_type_of(inputs) == JSON_LIST;
    if (!inputs)
        return request_fail(r, 400, "inputs: a text or a list of texts is needed");
    r->status = 200;
    out_text(&r->answer, "[");
    for (const char *at = list ? json_first(inputs) : inputs; at; at = list ? json_next(at) : NULL) {
        out_text(&r->answer, begun ? "," : "");
        begun = true;
        if (!put_tokens(r, m, at, add ? 0 : WW_TOKENS_NO_ADD))
            return false;
    }
    out_text(&r->answer, "]");
    return true;
}

bool prepare_info(request *r)
{
    static const char *const POOLINGS[] = {[WW_POOLING_NONE] = "none",
                                           [WW_POOLING_MEAN] = "mean",
                                           [WW_POOLING_CLS] = "cls",
                                           [WW_POOLING_LAST] = "last_token",
                                           [WW_POOLING_RANK] = "rank"};
    const server *s = r->server;
    const served_model *m = NULL;
    for (int all = 0; all < 2 && !m; all++)
        for (size_t i = 0; i < s->model_count && !m; i++)
            if ((model_can(&s->models[i], TASK_EMBED) || model_can(&s->models[i], TASK_RERANK)) &&
                (all || !model_can(&s->models[i], TASK_GENERATE)))
                m = &s->models[i];
    if (!m)
        return request_fail(r, 404, "the server has no model that embeds or reranks");
    r->status = 200;
    out_text(&r->answer, "{\"model_id\":");
    out_quoted(&r->answer, m->name, strlen(m->name));
    if (model_can(m, TASK_RERANK))
        out_text(&r->answer, ",\"model_type\":{\"reranker\":{}}");
    else
        out_format(&r->answer, ",\"model_type\":{\"embedding\":{\"pooling\":\"%s\"}}", POOLINGS[m->info.pooling]);
    out_format(&r->answer, ",\"max_input_length\":%lld,\"auto_truncate\":true,\"version\":\"" WW_VERSION_TEXT "\"}",
               (long long)m->info.context);
    return true;
}
