/* Notes about collections. */
#include "server/notes.h"

#include <string.h>

#include "base/memory.h"
#include "server/cluster/sql_writer.h"
#include "server/state.h"

/* The same without the lock. */
static ww_status open_unlocked(server *s, bool needed)
{
    if (s->notes)
        return WW_OK;
    ww_status status = ww_store_collection(s->store, NOTES_COLLECTION, &s->notes);
    if (status != WW_NOT_FOUND || !needed)
        return status == WW_NOT_FOUND ? WW_OK : status;
    ww_collection_config config = ww_collection_config_default();
    config.name = NOTES_COLLECTION;
    config.dim = 1;
    config.metric = WW_DOT;
    return ww_store_create(s->store, &config, &s->notes);
}

/* Opens the collection of notes; creates it if `needed`. */
static ww_status open_notes(server *s, bool needed)
{
    pthread_mutex_lock(&s->notes_lock);
    const ww_status status = open_unlocked(s, needed);
    pthread_mutex_unlock(&s->notes_lock);
    return status;
}

ww_status notes_put(server *s, const char *name, const char *value)
{
    const float nothing = 0;
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = 1;
    rows.vectors = &nothing;
    rows.ids = &name;
    rows.payloads = &value;
    if (sql_writer_here())
        return sql_writer_note(sql_writer_here(), name, value);
    const ww_status status = open_notes(s, true);
    return status == WW_OK ? ww_collection_upsert(s->notes, &rows) : status;
}

ww_status notes_remove(server *s, const char *name)
{
    if (sql_writer_here())
        return sql_writer_note(sql_writer_here(), name, NULL);
    const ww_status status = open_notes(s, false);
    return status == WW_OK && s->notes ? ww_collection_discard(s->notes, &name, 1, NULL) : status;
}

ww_status notes_each(server *s, const char *prefix, void (*tell)(void *user, const char *rest, const char *value), void *user)
{
    ww_results *all = NULL;
    ww_get get = ww_get_default();
    get.count = WW_ROWS_MAX;
    get.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS;
    if (sql_writer_here())
        return sql_writer_notes(sql_writer_here(), prefix, tell, user);
    ww_status status = open_notes(s, false);
    if (status != WW_OK || !s->notes)
        return status;
    status = ww_collection_get(s->notes, &get, &all);
    const size_t length = strlen(prefix);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(all, 0); i++) {
        const char *name = ww_results_id(all, 0, i), *value = ww_results_payload(all, 0, i);
        if (name && value && strncmp(name, prefix, length) == 0)
            tell(user, name + length, value);
    }
    ww_results_destroy(all);
    return status;
}

typedef struct removal {
    server *server;
    const char *prefix;
    ww_status status;
} removal;

static void remove_one(void *user, const char *rest, const char *value)
{
    removal *all = user;
    const size_t prefix = strlen(all->prefix), length = strlen(rest);
    char *name = memory_alloc(prefix + length + 1);
    (void)value;
    if (!name) {
        all->status = memory_failed("a note", prefix + length + 1);
        return;
    }
    memcpy(name, all->prefix, prefix);
    memcpy(name + prefix, rest, length + 1);
    if (all->status == WW_OK)
        all->status = notes_remove(all->server, name);
    memory_free(name);
}

ww_status notes_remove_all(server *s, const char *prefix)
{
    removal all = {s, prefix, WW_OK};
    const ww_status status = notes_each(s, prefix, remove_one, &all);
    return status != WW_OK ? status : all.status;
}

/* ---- notes about vectors ------------------------------------------------------------------------------------------------- */

static ww_status vector_name(out *name, const char *kind, const char *collection, const char *vector)
{
    out_format(name, "%s/%s/%s", kind, collection, vector);
    return name->failed ? memory_failed("a note", name->length) : WW_OK;
}

ww_status vector_notes_put(server *s, const char *kind, const char *collection, const char *vector, const char *value)
{
    out name = {0};
    ww_status status = vector_name(&name, kind, collection, vector);
    if (status == WW_OK)
        status = value ? notes_put(s, name.bytes, value) : notes_remove(s, name.bytes);
    out_free(&name);
    return status;
}

ww_status vector_notes_each(server *s, const char *kind, const char *collection,
                            void (*tell)(void *user, const char *rest, const char *value), void *user)
{
    out name = {0};
    ww_status status = vector_name(&name, kind, collection, "");
    if (status == WW_OK)
        status = notes_each(s, name.bytes, tell, user);
    out_free(&name);
    return status;
}

ww_status vector_notes_remove(server *s, const char *kind, const char *collection)
{
    out name = {0};
    ww_status status = vector_name(&name, kind, collection, "");
    if (status == WW_OK)
        status = notes_remove_all(s, name.bytes);
    out_free(&name);
    return status;
}
