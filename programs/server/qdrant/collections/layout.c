/* How the points of a collection lie in the store. */
#include "server/qdrant/collections/layout.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/cluster/sql_writer.h"
#include "server/notes.h"
#include "server/qdrant/select.h"
#include "server/route.h"
#include "server/work/changes.h"

/* ---- the note ------------------------------------------------------------------------------------------------------------ */

static void note_name(const char *collection, char name[LAYOUT_NAME_BYTES])
{
    snprintf(name, LAYOUT_NAME_BYTES, "layout/%s", collection);
}

static void tell_layout(void *user, const char *rest, const char *value)
{
    layout *found = user;
    const char *unnamed = json_given(json_root(value), "unnamed");
    if (rest[0] != '\0')
        return; /* of a collection with a longer name */
    found->split = true;
    found->unnamed = unnamed && json_type_of(unnamed) == JSON_TRUE;
}

ww_status layout_read(server *s, const char *collection, layout *found)
{
    char name[LAYOUT_NAME_BYTES];
    *found = (layout){false, false};
    note_name(collection, name);
    return notes_each(s, name, tell_layout, found);
}

ww_status layout_note(server *s, const char *collection, layout how)
{
    char name[LAYOUT_NAME_BYTES];
    note_name(collection, name);
    return how.split ? notes_put(s, name, how.unnamed ? "{\"unnamed\":true}" : "{\"unnamed\":false}") : notes_remove(s, name);
}

static const char *const KINDS[] = {[KIND_MANHATTAN] = "manhattan", [KIND_MULTI] = "multi"};

ww_status layout_note_kind(server *s, vector_kind kind, const char *collection, const char *vector, bool is)
{
    return vector_notes_put(s, KINDS[kind], collection, vector, is ? "{}" : NULL);
}

ww_status layout_forget_kinds(server *s, const char *collection)
{
    const ww_status status = vector_notes_remove(s, KINDS[KIND_MANHATTAN], collection);
    return status == WW_OK ? vector_notes_remove(s, KINDS[KIND_MULTI], collection) : status;
}

static void mark_manhattan(void *user, const char *rest, const char *value)
{
    entry *e = user;
    (void)value;
    if (!e->split && rest[0] == '\0')
        e->manhattan = true;
    for (size_t i = 0; i < e->part_count; i++)
        if (strcmp(e->parts[i].name, rest) == 0)
            e->parts[i].manhattan = true;
}

static void mark_multi(void *user, const char *rest, const char *value)
{
    entry *e = user;
    (void)value;
    for (size_t i = 0; i < e->part_count; i++)
        if (strcmp(e->parts[i].name, rest) == 0)
            e->parts[i].multi = true;
}

ww_status layout_mark_kinds(server *s, entry *e)
{
    const ww_status status = vector_notes_each(s, KINDS[KIND_MANHATTAN], e->name, mark_manhattan, e);
    return status == WW_OK ? vector_notes_each(s, KINDS[KIND_MULTI], e->name, mark_multi, e) : status;
}

void layout_points_name(const char *collection, char name[LAYOUT_NAME_BYTES])
{
    snprintf(name, LAYOUT_NAME_BYTES, "%s/", collection);
}

ww_collection_config layout_points_config(const char *name)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = name;
    config.dim = 1;
    config.metric = WW_DOT;
    return config;
}

/* ---- splitting ----------------------------------------------------------------------------------------------------------- */

/* Copies ids and payloads to the collection of all points. */
static ww_status copy_points(void *user, const ww_results *found)
{
    const int64_t count = ww_results_count(found, 0);
    const char **ids = memory_alloc((size_t)(count + 1) * sizeof *ids);
    const char **payloads = memory_alloc((size_t)(count + 1) * sizeof *payloads);
    float *nothing = memory_alloc_zeroed((size_t)count + 1, sizeof *nothing);
    ww_status status =
        ids && payloads && nothing ? WW_OK : memory_failed("points", (size_t)count * (2 * sizeof *ids + sizeof *nothing));
    ww_rows rows = ww_rows_default();
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        ids[i] = ww_results_id(found, 0, i);
        payloads[i] = ww_results_payload(found, 0, i);
    }
    rows.count = count;
    rows.dim = 1;
    rows.vectors = nothing;
    rows.ids = ids;
    rows.payloads = payloads;
    if (status == WW_OK && count > 0)
        status = ww_collection_upsert(user, &rows);
    memory_free(ids);
    memory_free(payloads);
    memory_free(nothing);
    return status;
}

/* What an interrupted call has left is dropped first: it means nothing before there is a note. */
static ww_status make_points(const entry *e)
{
    char name[LAYOUT_NAME_BYTES];
    ww_collection *points = NULL;
    ww_store *store = e->queue.server->store;
    layout_points_name(e->name, name);
    const ww_collection_config config = layout_points_config(name);
    ww_status status = ww_store_drop(store, name);
    if (status == WW_OK || status == WW_NOT_FOUND)
        status = ww_store_create(store, &config, &points);
    if (status == WW_OK)
        status = rows_each(e, &(point_filter){0}, WW_FETCH_IDS | WW_FETCH_PAYLOADS, copy_points, points);
    ww_collection_destroy(points);
    return status;
}

/* Makes the points of a collection in the cluster, unless another node has just done it. */
static ww_status make_shared_points(server *s, const char *collection)
{
    char name[LAYOUT_NAME_BYTES];
    layout now;
    ww_status status = layout_read(s, collection, &now);
    if (status != WW_OK || now.split)
        return status;
    layout_points_name(collection, name);
    const ww_collection_config config = layout_points_config(name);
    status = changes_create_collection(s, &config, "");
    if (status == WW_OK)
        status = sql_writer_copy_points(sql_writer_here(), collection, name);
    return status == WW_OK ? layout_note(s, collection, (layout){.split = true, .unnamed = true}) : status;
}

/* The same within the transaction that is open, or as one. */
static ww_status split_shared(server *s, const char *collection)
{
    if (s->config.follow.shards > 1)
        return ww_fail(WW_UNSUPPORTED,
                       "points that lack the vector, and vectors with names: not supported in a cluster with shards");
    if (changes_are_shared())
        return make_shared_points(s, collection);
    ww_status status = sql_writer_begin(s->writer);
    if (status != WW_OK)
        return status;
    status = make_shared_points(s, collection);
    if (status == WW_OK)
        return sql_writer_commit(s->writer);
    sql_writer_rollback(s->writer);
    return status;
}

ww_status layout_split(request *r)
{
    entry *old = r->entry;
    ww_status status = r->server->writer ? split_shared(r->server, old->name) : make_points(old);
    if (status == WW_OK && !r->server->writer)
        status = layout_note(r->server, old->name, (layout){.split = true, .unnamed = true});
    if (status != WW_OK || changes_are_shared()) /* the rest of the transaction needs only the name */
        return status;
    entry_forget(r->server, old->name);
    entry *made = entry_open(r->server, old->name);
    if (!made)
        return ww_fail(WW_NOT_FOUND, "Not found: Collection `%s` doesn't exist!", old->name);
    r->entry = made;
    entry_release(r->server, old);
    return WW_OK;
}

/* How many vectors the store has for an entry; -1: the entry is plain, and shall stay so. */
static int64_t vectors_of(server *s, const entry *e, const ww_results *list)
{
    const size_t length = strlen(e->name);
    layout now = {e->split, false};
    int64_t count = 0;
    if (!e->split && (layout_read(s, e->name, &now) != WW_OK || !now.split))
        return -1;
    for (int64_t i = 0; i < ww_results_count(list, 0); i++) {
        const char *name = ww_results_id(list, 0, i);
        count += strncmp(name, e->name, length) == 0 && name[length] == '/' && name[length + 1] != '\0';
    }
    return count + (e->part_count > 0 && e->parts[0].name[0] == '\0');
}

void layout_look(server *s)
{
    ww_results *list = NULL;
    if (ww_store_list(s->store, &list) != WW_OK)
        return; /* the next turn looks */
    for (entry *e = entry_next(s, NULL); e; e = entry_next(s, e)) {
        const int64_t vectors = vectors_of(s, e, list);
        if (vectors >= 0 && (!e->split || vectors != (int64_t)e->part_count) && !atomic_load(&e->replaced))
            entry_forget(s, e->name);
    }
    ww_results_destroy(list);
}

bool layout_is_old(request *r)
{
    layout now = {false, false};
    entry *e = r->entry;
    if (atomic_load(&e->replaced))
        return true;
    if (!route_changes(r->route) || e->split || layout_read(r->server, e->name, &now) != WW_OK || !now.split)
        return false;
    entry_forget(r->server, e->name); /* another server has split it */
    return true;
}
