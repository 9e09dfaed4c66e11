/* A collection of text: opening and closing it, and adding texts. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/text.h"
#include "text/text_state.h"

STRUCT_INIT(ww_text_config, {0})
STRUCT_INIT(ww_text_rows, {0})

ww_status text_check_handle(const ww_text *t, const char *function)
{
    return t ? WW_OK : ww_fail(WW_INVALID_ARGUMENT, "%s: text is NULL", function);
}

ww_collection *ww_text_collection(ww_text *text)
{
    return text ? text->collection : NULL;
}

ww_model *ww_text_model(ww_text *text)
{
    return text ? text->model : NULL;
}

const ww_store_model *ww_text_kept(const ww_text *text)
{
    return text ? &text->kept : NULL;
}

void ww_text_close(ww_text *text)
{
    if (!text)
        return;
    ww_collection_destroy(text->collection);
    if (text->model_is_own)
        ww_model_close(text->model);
    memory_free(text);
}

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

/* A collection that is being opened, step by step. */
typedef struct opening {
    ww_store *store;
    const char *name;
    const ww_text_config *config;
    ww_text *t;
    bool has_kept;       /* a model is recorded with the collection, in t->kept */
    ww_store_model made; /* the record to store */
} opening;

static ww_status open_model(opening *o)
{
    const ww_text_config *config = o->config;
    ww_text *t = o->t;
    const char *path = config->model ? config->model : t->kept.path;
    ww_status status = WW_OK;
    if (config->opened) {
        t->model = config->opened;
    } else if (path[0] == '\0') {
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': %s; give the model", o->name,
                       o->has_kept ? "its model was not read from a file" : "no model is kept with it");
    } else if (!config->device) {
        return ww_fail(WW_INVALID_ARGUMENT, "ww_text_open: config->device is NULL, and the model must be opened");
    } else {
        ww_model_options options = ww_model_options_default();
        options.progress = config->progress;
        options.progress_user = config->progress_user;
        status = ww_model_open(path, config->device, &options, &t->model);
        t->model_is_own = status == WW_OK;
    }
    t->info = ww_model_info_default();
    if (status == WW_OK)
        status = ww_model_describe(t->model, &t->info);
    if (status == WW_OK && !t->info.embeds)
        status =
            ww_fail(WW_UNSUPPORTED, "this model (%s) does not embed texts, it %s; give one that embeds", t->info.architecture,
                    t->info.kind == WW_MODEL_DECODER ? "continues them" : "compares them with a query");
    return status;
}

static ww_status take_text(char *to, size_t room, const char *text, const char *what)
{
    const size_t length = strlen(text);
    if (length >= room || !utf8_check(text, length))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_text_open: %s is too long or no UTF-8; it has at most %zu bytes", what,
                       room - 1);
    text_copy(to, room, text);
    return WW_OK;
}

/* Makes the record of the model to store. */
static ww_status describe_model(opening *o)
{
    static const char *const POOLINGS[] = {
        [WW_POOLING_NONE] = "none", [WW_POOLING_MEAN] = "mean", [WW_POOLING_CLS] = "cls", [WW_POOLING_LAST] = "last"};
    const ww_text_config *config = o->config;
    const ww_text *t = o->t;
    const unsigned pooling = (unsigned)t->info.pooling;
    char whole[PATH_MAX];
    o->made = t->kept;
    text_copy(o->made.name, sizeof o->made.name, t->info.name);
    text_copy(o->made.fingerprint, sizeof o->made.fingerprint, t->info.fingerprint);
    text_copy(o->made.pooling, sizeof o->made.pooling, pooling < sizeof POOLINGS / sizeof *POOLINGS ? POOLINGS[pooling] : "");
    const char *absolute = config->model ? realpath(config->model, whole) : NULL;
    if (absolute && strlen(absolute) < sizeof o->made.path && utf8_check(absolute, strlen(absolute)))
        text_copy(o->made.path, sizeof o->made.path, absolute);
    const char *query = config->query_prefix, *document = config->document_prefix;
    ww_status status = WW_OK;
    if (!query && !o->has_kept)
        status = ww_model_prompt(t->model, "query", &query);
    if (status == WW_OK && !document && !o->has_kept)
        status = ww_model_prompt(t->model, "document", &document);
    if (status == WW_OK && query)
        status = take_text(o->made.query_prefix, sizeof o->made.query_prefix, query, "query_prefix");
    if (status == WW_OK && document)
        status = take_text(o->made.document_prefix, sizeof o->made.document_prefix, document, "document_prefix");
    return status;
}

static ww_status check_same_model(const opening *o)
{
    if (!o->has_kept || strcmp(o->t->kept.fingerprint, o->made.fingerprint) == 0)
        return WW_OK;
    return ww_fail(WW_INVALID_ARGUMENT,
                   "the vectors of '%s' are of the model '%s' (%.16s...), not of '%s' (%.16s...), and its vectors cannot be "
                   "compared with them",
                   o->name, o->t->kept.name, o->t->kept.fingerprint, o->made.name, o->made.fingerprint);
}

static ww_status make_collection(const opening *o)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = o->name;
    config.dim = o->t->info.width;
    config.metric = o->config->metric;
    config.type = o->config->type;
    return ww_store_create(o->store, &config, &o->t->collection);
}

static ww_status check_collection(const opening *o)
{
    ww_collection_info info = ww_collection_info_default();
    ww_status status = ww_collection_describe(o->t->collection, &info);
    if (status == WW_OK && info.dim != o->t->info.width)
        status = ww_fail(WW_DIMENSION_MISMATCH, "the model makes vectors of dimension %d, those of the collection '%s' have %d",
                         o->t->info.width, o->name, info.dim);
    if (status == WW_OK && info.rows_live > 0 && !o->has_kept)
        status = ww_fail(WW_INVALID_ARGUMENT,
                         "the collection '%s' has %lld rows that no model is kept for; add texts to a collection of their own",
                         o->name, (long long)info.rows_live);
    return status;
}

static ww_status open_steps(opening *o)
{
    ww_text *t = o->t;
    t->kept = ww_store_model_default();
    ww_status status = ww_store_collection(o->store, o->name, &t->collection);
    if (status == WW_OK) {
        status = ww_store_get_model(o->store, o->name, &t->kept);
        o->has_kept = status == WW_OK;
    }
    const bool may_go_on = status == WW_OK || (status == WW_NOT_FOUND && (t->collection || o->config->create));
    if (!may_go_on)
        return status;
    status = open_model(o);
    if (status == WW_OK)
        status = describe_model(o);
    if (status == WW_OK)
        status = check_same_model(o);
    if (status == WW_OK && !t->collection)
        status = make_collection(o);
    if (status == WW_OK)
        status = check_collection(o);
    const bool other_prefixes = strcmp(t->kept.query_prefix, o->made.query_prefix) != 0 ||
                                strcmp(t->kept.document_prefix, o->made.document_prefix) != 0;
    if (status == WW_OK && (!o->has_kept || other_prefixes || (o->config->create && strcmp(t->kept.path, o->made.path) != 0)))
        status = ww_store_set_model(o->store, o->name, &o->made);
    t->kept = o->made;
    return status;
}

ww_status ww_text_open(ww_store *store, const char *collection, const ww_text_config *config, ww_text **text)
{
    FLOAT_GUARD();
    static const char function[] = "ww_text_open";
    ww_text_config read;
    if (!store || !collection || !config || !text)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function,
                       !store        ? "store"
                       : !collection ? "collection"
                       : !config     ? "config"
                                     : "text");
    ww_status status = struct_read(&read, sizeof read, config, function, "ww_text_config");
    if (status != WW_OK)
        return status;
    opening o = {.store = store, .name = collection, .config = &read, .t = memory_alloc_zeroed(1, sizeof *o.t)};
    if (!o.t)
        return memory_failed("a collection of text", sizeof *o.t);
    status = open_steps(&o);
    if (status == WW_OK)
        *text = o.t;
    else
        ww_text_close(o.t);
    return status;
}

/* ---- texts --------------------------------------------------------------------------------------------------------------- */

/* Returns the texts with the prefix before each, in one block; memory_free(). NULL if there is not enough memory. */
static const char **with_prefix(const text_list *list)
{
    const size_t prefix = strlen(list->prefix);
    size_t bytes = (size_t)list->count * sizeof(char *) + 1;
    for (int64_t i = 0; i < list->count; i++)
        bytes += prefix + strlen(list->texts[i]) + 1;
    const char **block = memory_alloc(bytes);
    char *at = block ? (char *)(block + list->count) : NULL;
    for (int64_t i = 0; block && i < list->count; i++) {
        const size_t length = strlen(list->texts[i]) + 1;
        block[i] = at;
        memcpy(at, list->prefix, prefix);
        memcpy(at + prefix, list->texts[i], length);
        at += prefix + length;
    }
    return block;
}

ww_status text_embed(ww_text *t, const text_list *list, float **vectors)
{
    size_t bytes = 0;
    const char **prefixed = NULL;
    ww_embedding how = ww_embedding_default();
    how.prompt = ""; /* the collection's prefix is used */
    how.progress = list->progress;
    how.progress_user = list->progress_user;
    *vectors = NULL;
    for (int64_t i = 0; i < list->count; i++)
        if (!list->texts[i])
            return ww_fail(WW_INVALID_ARGUMENT, "text %lld is NULL", (long long)i);
    if (!size_multiply((size_t)list->count, (size_t)t->info.width * sizeof **vectors, &bytes))
        return memory_failed("vectors of texts", SIZE_MAX / 2);
    if (list->prefix[0] && !(prefixed = with_prefix(list)))
        return memory_failed("texts with a prefix", bytes);
    *vectors = memory_alloc(bytes);
    ww_status status = *vectors ? WW_OK : memory_failed("vectors of texts", bytes);
    if (status == WW_OK)
        status = ww_model_embed(t->model, prefixed ? prefixed : list->texts, NULL, (size_t)list->count, &how, *vectors);
    memory_free(prefixed);
    return status;
}

/* Refuses ids that exist already before anything is embedded, which takes much longer. */
static ww_status check_new(ww_text *t, const ww_text_rows *rows)
{
    for (int64_t i = 0; rows->ids && i < rows->count; i++) {
        int64_t row;
        if (rows->ids[i] && ww_collection_find(t->collection, rows->ids[i], &row) == WW_OK)
            return ww_fail(WW_DUPLICATE_ID, "id '%.300s' of text %lld exists already; upsert replaces it", rows->ids[i],
                           (long long)i);
    }
    return WW_OK;
}

ww_status text_write(ww_text *t, const ww_text_rows *rows, const id_list *discards, bool upsert)
{
    const text_list list = {rows->texts, rows->count, t->kept.document_prefix, rows->progress, rows->progress_user};
    ww_rows added = ww_rows_default();
    float *vectors = NULL;
    ww_status status = upsert ? WW_OK : check_new(t, rows);
    if (status == WW_OK && rows->count > 0)
        status = text_embed(t, &list, &vectors);
    added.count = rows->count;
    added.dim = t->info.width;
    added.vectors = vectors;
    added.ids = rows->ids;
    added.payloads = rows->payloads;
    added.texts = rows->texts;
    added.discard_ids = (const char *const *)discards->ids;
    added.discard_count = discards->count;
    if (status == WW_OK)
        status = upsert ? ww_collection_upsert(t->collection, &added) : ww_collection_add(t->collection, &added);
    memory_free(vectors);
    return status;
}

static ww_status write_rows(ww_text *text, const ww_text_rows *rows, bool upsert, const char *function)
{
    ww_text_rows read;
    ww_status status = text_check_handle(text, function);
    if (status == WW_OK)
        status = struct_read(&read, sizeof read, rows, function, "ww_text_rows");
    if (status != WW_OK)
        return status;
    if (read.count < 0 || read.count > WW_ROWS_MAX || (read.count > 0 && !read.texts))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: count is %lld, and texts is %s", function, (long long)read.count,
                       read.texts ? "given" : "NULL");
    return text_write(text, &read, &(id_list){0}, upsert);
}

ww_status ww_text_add(ww_text *text, const ww_text_rows *rows)
{
    FLOAT_GUARD();
    return write_rows(text, rows, false, "ww_text_add");
}

ww_status ww_text_upsert(ww_text *text, const ww_text_rows *rows)
{
    FLOAT_GUARD();
    return write_rows(text, rows, true, "ww_text_upsert");
}
