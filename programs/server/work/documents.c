/* Texts in place of vectors. */
#include "server/work/documents.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/route.h"
#include "server/work/changes.h"

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

void documents_count_cut(documents *d)
{
    enum { MARKS = 8 }; /* tokens around a text */
    const size_t context = (size_t)d->model->info.context;
    d->cut = 0;
    for (size_t i = 0; i < d->inputs.count; i++) {
        size_t tokens = 0;
        const size_t bytes = d->inputs.bytes[i]; /* no token has less than a byte */
        if (bytes + MARKS > context &&
            ww_model_tokenize(d->model->model, d->inputs.texts[i], bytes, 0, NULL, 0, &tokens) == WW_OK)
            d->cut += tokens > context;
    }
}

bool is_document(const char *value)
{
    const char *text = value && json_type_of(value) == JSON_OBJECT ? json_given(value, "text") : NULL;
    return text && json_type_of(text) == JSON_TEXT; /* a vector may also be named "text" */
}

bool is_words(const char *value)
{
    const char *name = is_document(value) ? json_given(value, "model") : NULL;
    return name && json_type_of(name) == JSON_TEXT && (json_text_is(name, "bm25", 4) || json_text_is(name, "Qdrant/bm25", 11));
}

/* Finds the model that the document names, or the only one that embeds. NULL: the request failed. */
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
        request_fail(r, 400, "a text in place of a vector needs a model that embeds: the server has none; --model serves one");
    else
        request_fail(r, 400,
                     name ? "text: its \"model\" is not a model of this server that embeds"
                          : "text: several models embed here; name one as \"model\"");
    return NULL;
}

/* Makes room for one more text. */
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

const char *document_text(const documents *d, int64_t number)
{
    return d->inputs.texts[number] + strlen(d->prefix);
}

/* Finds the prefix that the texts of a request need. */
static void find_prefix(const request *r, char prefix[PREFIX_BYTES])
{
    server *s = r->server;
    prefix[0] = '\0';
    if (!r->entry)
        return;
    pthread_mutex_lock(&s->lock);
    text_copy(prefix, PREFIX_BYTES, route_changes(r->route) ? r->entry->document_prefix : r->entry->query_prefix);
    pthread_mutex_unlock(&s->lock);
}

bool documents_prefix(request *r)
{
    documents *d = r->documents;
    char prefix[PREFIX_BYTES];
    find_prefix(r, prefix);
    const size_t before = strlen(d->prefix), now = strlen(prefix);
    if (strcmp(d->prefix, prefix) == 0)
        return true;
    for (size_t i = 0; i < d->inputs.count; i++) {
        const size_t own = d->inputs.bytes[i] - before;
        char *text = memory_alloc(now + own + 1);
        if (!text)
            return request_fail_status(r, memory_failed("a text", now + own + 1));
        memcpy(text, prefix, now);
        memcpy(text + now, d->inputs.texts[i] + before, own + 1);
        memory_free(d->inputs.texts[i]);
        d->inputs.texts[i] = text;
        d->inputs.bytes[i] = now + own;
    }
    text_copy(d->prefix, sizeof d->prefix, prefix);
    return true;
}

/* Takes a prompt of the model as a prefix; one that is too long is left out. */
static void take_prompt(const served_model *m, const char *name, char *prefix, size_t capacity)
{
    const char *text = "";
    if (ww_model_prompt(m->model, name, &text) == WW_OK && strlen(text) < capacity)
        text_copy(prefix, capacity, text);
}

/* Reads the model of the collection; if it has none, uses that of the texts. */
static ww_status read_model(const request *r, ww_store_model *kept)
{
    const documents *d = r->documents;
    const ww_status status = ww_store_get_model(r->server->store, r->entry->name, kept);
    if (status != WW_NOT_FOUND)
        return status;
    *kept = ww_store_model_default();
    text_copy(kept->name, sizeof kept->name, d->model->name);
    text_copy(kept->fingerprint, sizeof kept->fingerprint, d->model->info.fingerprint);
    take_prompt(d->model, "query", kept->query_prefix, sizeof kept->query_prefix);
    take_prompt(d->model, "document", kept->document_prefix, sizeof kept->document_prefix);
    return route_changes(r->route) ? changes_set_model(r->server, r->entry->name, kept) : WW_OK;
}

readiness documents_check(request *r)
{
    documents *d = r->documents;
    ww_store_model kept = ww_store_model_default();
    char prefix[PREFIX_BYTES];
    if (!d)
        return REQUEST_READY;
    const ww_status status = read_model(r, &kept);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return REQUEST_REFUSED;
    }
    if (strcmp(kept.fingerprint, d->model->info.fingerprint) != 0) {
        request_fail(r, 400, "text: the vectors of '%s' were made by the model '%s', not by '%s'", r->entry->name, kept.name,
                     d->model->name);
        return REQUEST_REFUSED;
    }
    entry_set_prefixes(r->server, r->entry, &kept);
    find_prefix(r, prefix);
    if (strcmp(prefix, d->prefix) == 0)
        return REQUEST_READY;
    if (!documents_prefix(r))
        return REQUEST_REFUSED;
    queue_submit(&d->model->queue, r);
    return REQUEST_SENT_ON;
}
