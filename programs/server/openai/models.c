/* The models of the server, and the routes of OpenAI's API. */
#include <string.h>
#include <time.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/system/cores.h"
#include "server/openai/openai.h"

static ww_status samplers_start(server *s)
{
    enum { SAMPLERS_MAX = 8 };
    int32_t cores[SAMPLERS_MAX], count = 0;
    const ww_status status = s->config.model_count > 0 ? cores_to_use(cores, SAMPLERS_MAX, &count) : WW_OK;
    return status == WW_OK && count > 0 ? pool_create(NULL, count, &s->samplers) : status;
}

ww_status models_load(server *s)
{
    const server_config *config = &s->config;
    ww_model_options options = ww_model_options_default();
    ww_status status = samplers_start(s);
    options.chat_template = config->chat_template;
    s->models = memory_alloc_zeroed(config->model_count + 1, sizeof *s->models);
    if (!s->models)
        return memory_failed("models", config->model_count * sizeof *s->models);
    for (size_t i = 0; status == WW_OK && i < config->model_count; i++) {
        served_model *m = &s->models[i];
        m->info = ww_model_info_default();
        m->name = memory_copy_text(config->model_names[i], strlen(config->model_names[i]));
        status =
            m->name ? ww_model_open(config->model_paths[i], config->device, &options, &m->model) : memory_failed("a model", 1);
        if (status == WW_OK)
            status = ww_model_describe(m->model, &m->info);
        m->created = (int64_t)time(NULL);
        queue_init(&m->queue, s, m->name, model_can(m, TASK_GENERATE) ? generations_run : embeddings_run);
        m->queue.owner = m;
        m->queue.all = true;
        s->model_count = i + 1;
    }
    return status;
}

void models_free(server *s)
{
    for (size_t i = 0; i < s->model_count; i++) {
        generations_free(&s->models[i]);
        ww_model_close(s->models[i].model);
        memory_free(s->models[i].name);
    }
    memory_free(s->models);
    s->models = NULL;
    s->model_count = 0;
    pool_destroy(s->samplers);
    s->samplers = NULL;
}

bool model_can(const served_model *m, model_task task)
{
    const bool generates = m->info.kind == WW_MODEL_DECODER && !m->info.embeds && m->info.pooling != WW_POOLING_RANK;
    return task == TASK_EMBED    ? m->info.embeds != 0
           : task == TASK_RERANK ? m->info.reranks != 0
                                 : task == TASK_ANY || generates;
}

static const char *const tasks[] = {[TASK_EMBED] = "embed", [TASK_RERANK] = "rerank", [TASK_GENERATE] = "generate text"};

served_model *model_of_request(request *r, const char *body, model_task task)
{
    server *s = r->server;
    char *name = request_copy_text(r, json_given(body, "model"), "model");
    served_model *found = NULL;
    if (!name)
        return NULL;
    for (size_t i = 0; i < s->model_count; i++)
        if (strcmp(s->models[i].name, name) == 0)
            found = &s->models[i];
    const bool able = found && model_can(found, task);
    if (!found)
        request_fail(r, 404, "The model `%s` does not exist", name);
    else if (!able)
        request_fail(r, 400, "model: '%s' does not %s", name, tasks[task]);
    memory_free(name);
    if (!able)
        return NULL;
    r->queue = &found->queue;
    return found;
}

served_model *model_for_task(request *r, const char *body, model_task task)
{
    server *s = r->server;
    served_model *found = NULL;
    size_t able = 0;
    if (body && json_given(body, "model"))
        return model_of_request(r, body, task);
    for (int all = 0; all < 2 && able == 0; all++)
        for (size_t i = 0; i < s->model_count; i++)
            if (model_can(&s->models[i], task) && (all || !model_can(&s->models[i], TASK_GENERATE)) && able++ == 0)
                found = &s->models[i];
    if (able == 1) {
        r->queue = &found->queue;
        return found;
    }
    if (able == 0)
        request_fail(r, 404, "the server has no model for this; --model serves one");
    else
        request_fail(r, 400, "model: several models can do this; name one");
    return NULL;
}

static void put_model(out *o, const served_model *m)
{
    out_text(o, "{\"id\":");
    out_quoted(o, m->name, strlen(m->name));
    out_format(o, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"warpwave\"}", (long long)m->created);
}

static bool list_models(request *r)
{
    const server *s = r->server;
    r->status = 200;
    out_text(&r->answer, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < s->model_count; i++) {
        out_text(&r->answer, i > 0 ? "," : "");
        put_model(&r->answer, &s->models[i]);
    }
    out_text(&r->answer, "]}");
    return true;
}

static bool get_model(request *r)
{
    const server *s = r->server;
    for (size_t i = 0; i < s->model_count; i++)
        if (strcmp(s->models[i].name, r->names[0]) == 0) {
            r->status = 200;
            put_model(&r->answer, &s->models[i]);
            return true;
        }
    return request_fail(r, 404, "The model `%s` does not exist", r->names[0]);
}

#define SAMPLING                                                                                                               \
    "\"model\":{\"type\":\"string\"},\"max_tokens\":{\"type\":\"integer\"},\"max_completion_tokens\":{\"type\":\"integer\"},"  \
    "\"temperature\":{\"type\":\"number\"},\"top_p\":{"                                                                        \
    "\"type\":\"number\"},\"frequency_penalty\":{\"type\":\"number\"},\"presence_penalty\":{\"type\":\"number\"},"             \
    "\"repetition_penalty\":{\"type\":\"number\"},\"seed\":{\"type\":\"integer\"},\"stop\":{},\"response_format\":{"           \
    "\"type\":\"object\"},\"grammar\":{\"type\":\"string\"},\"stream\":{\"type\":\"boolean\"},\"stream_options\":{\"type\":"   \
    "\"object\"},\"n\":{\"type\":\"integer\"},"                                                                                \
    "\"logprobs\":{}"

static const route routes[] = {
    {"GET", "/v1/models", RIGHT_MODEL, WORK_HERE, list_models, NULL, "List models", NULL, "The models.", false},
    {"GET", "/v1/models/{model}", RIGHT_MODEL, WORK_HERE, get_model, NULL, "One model", NULL, "The model.", false},
    {"POST", "/v1/embeddings", RIGHT_MODEL, WORK_MODEL, prepare_embeddings, NULL, "Embed texts",
     "\"model\":{\"type\":\"string\"},\"input\":{},\"encoding_format\":{\"type\":\"string\"},\"dimensions\":{\"type\":"
     "\"integer\"},\"prompt_name\":{\"type\":\"string\"}",
     "A vector for each text.", false},
    {"POST", "/v1/rerank", RIGHT_MODEL, WORK_MODEL, prepare_rerank, NULL, "Say how well texts answer a query",
     "\"model\":{\"type\":\"string\"},\"query\":{\"type\":\"string\"},\"documents\":{\"type\":\"array\",\"items\":{}},\"top_"
     "n\":{"
     "\"type\":\"integer\"},\"return_documents\":{\"type\":\"boolean\"}",
     "The texts' numbers with their scores, the best first.", false},
    {"POST", "/embed", RIGHT_MODEL, WORK_MODEL, prepare_embed, NULL, "Embed texts (text-embeddings-inference)",
     "\"inputs\":{},\"normalize\":{\"type\":\"boolean\"},\"truncate\":{\"type\":\"boolean\"},\"dimensions\":{\"type\":"
     "\"integer\"},"
     "\"prompt_name\":{\"type\":\"string\"},\"model\":{\"type\":\"string\"}",
     "A vector for each text.", false},
    {"POST", "/rerank", RIGHT_MODEL, WORK_MODEL, prepare_rerank_tei, NULL,
     "Say how well texts answer a query (text-embeddings-inference)",
     "\"query\":{\"type\":\"string\"},\"texts\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"raw_scores\":{\"type\":"
     "\"boolean\"},\"return_text\":{\"type\":\"boolean\"},\"truncate\":{\"type\":\"boolean\"},\"model\":{\"type\":\"string\"}",
     "The texts' numbers with their scores, the best first.", false},
    {"POST", "/tokenize", RIGHT_MODEL, WORK_HERE, prepare_tokenize, NULL, "The tokens of texts (text-embeddings-inference)",
     "\"inputs\":{},\"add_special_tokens\":{\"type\":\"boolean\"},\"model\":{\"type\":\"string\"}", "The tokens of each text.",
     false},
    {"GET", "/info", RIGHT_MODEL, WORK_HERE, prepare_info, NULL, "The model that embeds or reranks (text-embeddings-inference)",
     NULL, "Its name, its kind and its limits.", false},
    {"POST", "/v1/completions", RIGHT_MODEL, WORK_MODEL, prepare_completion, NULL, "Continue a text", "\"prompt\":{}," SAMPLING,
     "The text, or events while it is generated.", false},
    {"POST", "/v1/chat/completions", RIGHT_MODEL, WORK_MODEL, prepare_chat, NULL, "Answer in a conversation",
     "\"messages\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},\"top_logprobs\":{\"type\":\"integer\"},\"tools\":{"
     "\"type\":"
     "\"array\",\"items\":{\"type\":\"object\"}},\"tool_choice\":{}," SAMPLING,
     "The answer, or events while it is generated.", false},
    {"POST", "/v1/responses", RIGHT_MODEL, WORK_MODEL, prepare_response, NULL, "Answer in a conversation, in items",
     "\"model\":{\"type\":\"string\"},\"input\":{},\"instructions\":{\"type\":\"string\"},\"max_output_tokens\":{\"type\":"
     "\"integer\"},\"tools\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},\"tool_choice\":{},\"text\":{\"type\":"
     "\"object\"},\"stream\":{\"type\":\"boolean\"}",
     "The answer, or events while it is generated.", false},
};

const route_table routes_openai = {routes, sizeof routes / sizeof *routes};
