/* The models of the server, and the routes of OpenAI's API. */
#include <string.h>
#include <time.h>

#include "base/json_value.h"
#include "base/memory.h"
#include "server/openai/openai.h"

ww_status models_load(server *s)
{
    const server_config *config = &s->config;
    ww_status status = WW_OK;
    s->models = memory_alloc_zeroed(config->model_count + 1, sizeof *s->models);
    if (!s->models)
        return memory_failed("models", config->model_count * sizeof *s->models);
    for (size_t i = 0; status == WW_OK && i < config->model_count; i++) {
        served_model *m = &s->models[i];
        m->info = ww_model_info_default();
        m->name = memory_copy_text(config->model_names[i], strlen(config->model_names[i]));
        status = m->name ? ww_model_open(config->model_paths[i], config->device, NULL, &m->model) : memory_failed("a model", 1);
        if (status == WW_OK)
            status = ww_model_describe(m->model, &m->info);
        m->created = (int64_t)time(NULL);
        queue_init(&m->queue, s, m->name, m->info.kind == WW_MODEL_ENCODER ? embeddings_run : generations_run);
        m->queue.owner = m;
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
}

served_model *model_of_request(request *r, const char *body, ww_model_kind kind)
{
    server *s = r->server;
    char *name = request_copy_text(r, json_given(body, "model"), "model");
    served_model *found = NULL;
    if (!name)
        return NULL;
    for (size_t i = 0; i < s->model_count; i++)
        if (strcmp(s->models[i].name, name) == 0)
            found = &s->models[i];
    if (!found)
        request_fail(r, 404, "The model `%s` does not exist", name);
    else if (found->info.kind != kind)
        request_fail(r, 400, "model: '%s' %s", name,
                     kind == WW_MODEL_ENCODER ? "generates text and does not embed" : "embeds and does not generate text");
    memory_free(name);
    if (!found || found->info.kind != kind)
        return NULL;
    r->queue = &found->queue;
    return found;
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
    "\"model\":{\"type\":\"string\"},\"max_tokens\":{\"type\":\"integer\"},\"temperature\":{\"type\":\"number\"},\"top_p\":{"  \
    "\"type\":\"number\"},\"seed\":{\"type\":\"integer\"},\"stop\":{},\"response_format\":{\"type\":\"object\"},\"grammar\":{" \
    "\"type\":\"string\"},\"stream\":{\"type\":\"boolean\"}"

static const route routes[] = {
    {"GET", "/v1/models", RIGHT_READ, WORK_HERE, list_models, NULL, "List models", NULL, "The models.", false},
    {"GET", "/v1/models/{model}", RIGHT_READ, WORK_HERE, get_model, NULL, "One model", NULL, "The model.", false},
    {"POST", "/v1/embeddings", RIGHT_READ, WORK_MODEL, prepare_embeddings, NULL, "Embed texts",
     "\"model\":{\"type\":\"string\"},\"input\":{},\"encoding_format\":{\"type\":\"string\"},\"dimensions\":{\"type\":"
     "\"integer\"}",
     "A vector for each text.", false},
    {"POST", "/v1/completions", RIGHT_READ, WORK_MODEL, prepare_completion, NULL, "Continue a text", "\"prompt\":{}," SAMPLING,
     "The text, or events while it is generated.", false},
    {"POST", "/v1/chat/completions", RIGHT_READ, WORK_MODEL, prepare_chat, NULL, "Answer in a conversation",
     "\"messages\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}," SAMPLING,
     "The answer, or events while it is generated.", false},
};

const route_table routes_openai = {routes, sizeof routes / sizeof *routes};
