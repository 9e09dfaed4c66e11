/* Texts in place of vectors. */
#include "server/openai/documents.h"

#include <stdio.h>
#include <string.h>

#include "base/json_value.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/route.h"

void embedding_inputs_free(embedding_inputs *inputs)
{
    for (size_t i = 0; inputs->texts && i < inputs->count; i++)
        memory_free(inputs->texts[i]);
    memory_free(inputs->texts);
    memory_free(inputs->bytes);
    memory_free(inputs->tokens);
    memory_free(inputs->counts);
    *inputs = (embedding_inputs){0};
}

void documents_free(documents *d)
{
    if (!d)
        return;
    embedding_inputs_free(&d->inputs);
    memory_free(d->places);
    memory_free(d);
}

bool is_document(const char *value)
{
    const char *text = value && json_type_of(value) == JSON_OBJECT ? json_given(value, "text") : NULL;
    return text && json_type_of(text) == JSON_TEXT; /* a vector may be called "text", too */
}

/* The model that the document names, or the only one that embeds; NULL: the request failed. */
static served_model *model_of(request *r, const char *value)
{
    server *s = r->server;
    const char *name = json_given(value, "model");
    served_model *found = NULL;
    size_t encoders = 0;
    for (size_t i = 0; i < s->model_count; i++) {
        served_model *m = &s->models[i];
        if (!m->info.embeds)
            continue;
        encoders++;
        if (name ? json_type_of(name) == JSON_TEXT && json_text_is(name, m->name, strlen(m->name)) : encoders == 1)
            found = m;
    }
    if (found && (name || encoders == 1))
        return found;
    if (encoders == 0)
        request_fail(r, 400, "a text in place of a vector needs a model that embeds: the server has none, --model serves one");
    else
        request_fail(r, 400,
                     name ? "text: the model that it names does not embed here"
                          : "text: several models embed here; name one as \"model\"");
    return NULL;
}

/* Room for one more text. */
static bool reserve(documents *d)
{
    if (d->inputs.count < d->capacity)
        return true;
    const size_t larger = d->capacity > 0 ? 2 * d->capacity : 16;
    char **texts = memory_resize(d->inputs.texts, larger * sizeof *texts);
    if (texts)
        d->inputs.texts = texts;
    size_t *bytes = memory_resize(d->inputs.bytes, larger * sizeof *bytes);
    if (bytes)
        d->inputs.bytes = bytes;
    struct document_place *places = memory_resize(d->places, larger * sizeof *places);
    if (places)
        d->places = places;
    if (!texts || !bytes || !places)
        return false;
    d->capacity = larger;
    return true;
}

int64_t document_add(request *r, const char *value, float **base, int64_t offset)
{
    served_model *m = model_of(r, value);
    if (!m)
        return -1;
    if (!r->documents)
        r->documents = memory_alloc_zeroed(1, sizeof *r->documents);
    documents *d = r->documents;
    if (!d || !reserve(d)) {
        request_fail_status(r, memory_failed("texts", sizeof *d));
        return -1;
    }
    if (d->model && d->model != m) {
        request_fail(r, 400, "text: all texts of a request need the same model");
        return -1;
    }
    char *text = request_copy_text(r, json_given(value, "text"), "text");
    if (!text)
        return -1;
    d->model = m;
    d->places[d->inputs.count] = (struct document_place){base, offset};
    d->inputs.bytes[d->inputs.count] = strlen(text);
    d->inputs.texts[d->inputs.count++] = text;
    return m->info.width;
}

bool documents_check(request *r)
{
    const documents *d = r->documents;
    ww_store_model model = ww_store_model_default(), kept = ww_store_model_default();
    if (!d)
        return true;
    text_copy(model.name, sizeof model.name, d->model->name);
    text_copy(model.fingerprint, sizeof model.fingerprint, d->model->info.fingerprint);
    if (r->route->right == RIGHT_WRITE) {
        const ww_status status = ww_store_set_model(r->server->store, r->entry->name, &model);
        return status == WW_OK ? true : request_fail_status(r, status);
    }
    const ww_status status = ww_store_get_model(r->server->store, r->entry->name, &kept);
    if (status == WW_NOT_FOUND || (status == WW_OK && strcmp(kept.fingerprint, model.fingerprint) == 0))
        return true;
    if (status != WW_OK)
        return request_fail_status(r, status);
    return request_fail(r, 400, "text: the vectors of '%s' are of the model '%s', not of '%s'", r->entry->name, kept.name,
                        model.name);
}
