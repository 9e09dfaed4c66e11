/* Collections of Qdrant's API: creating, describing and dropping them, their aliases and indexes. The store's worker does all
 * of it. */
#include <stdio.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/notes.h"
#include "server/qdrant/collections/aliases.h"
#include "server/qdrant/collections/indexes.h"
#include "server/qdrant/collections/settings.h"
#include "server/qdrant/collections/vectors.h"
#include "server/qdrant/select.h"
#include "server/qdrant/vectors/sparse.h"
#include "server/route.h"
#include "server/state.h"
#include "server/work/changes.h"

/* ---- making -------------------------------------------------------------------------------------------------------------- */

static bool prepare_create(request *r)
{
    const char *body = request_body(r), *vectors = body ? json_given(body, "vectors") : NULL;
    if (!body)
        return false;
    const char *sharding = json_given(body, "sharding_method");
    if (sharding && (json_type_of(sharding) != JSON_TEXT || !json_text_is(sharding, "auto", 4)))
        return request_fail(r, 501, "sharding_method: shards are not supported");
    if (json_given(body, "init_from"))
        return request_fail(r, 501, "init_from: copying a collection is not supported");
    if (strchr(r->names[0], '/') || strcmp(r->names[0], NOTES_COLLECTION) == 0)
        return request_fail(r, 400, "the name '%s' cannot be used", r->names[0]);
    vectors_plan *p = request_plan_create(r, sizeof *p, memory_free);
    return p && vectors_plan_read(r, vectors, json_given(body, "sparse_vectors"), p) && vectors_permitted(r, p) &&
           settings_check(r, body);
}

/* Creates the collections of the parts, then the main one. Parts without a main collection are left from an interrupted
 * call. */
static ww_status create_all(server *s, const vectors_plan *p)
{
    char points[LAYOUT_NAME_BYTES];
    size_t made = 0;
    layout_points_name(p->config.name, points);
    ww_status status = changes_drop_collection(s, points);
    if (status == WW_OK || status == WW_NOT_FOUND)
        status = vectors_note(s, p);
    for (; status == WW_OK && made < p->part_count; made++) {
        status = changes_drop_collection(s, p->parts[made].name);
        if (status == WW_OK || status == WW_NOT_FOUND)
            status =
                changes_create_collection(s, &p->parts[made], vectors_row_kind(p->parts_sparse[made], p->parts_kinds[made]));
    }
    if (status == WW_OK)
        status = changes_create_collection(s, &p->config, vectors_row_kind(NULL, p->kinds));
    for (size_t i = 0; status != WW_OK && !changes_are_shared() && i < made; i++)
        (void)ww_store_drop(s->store, p->parts[i].name); /* the first failure is reported */
    return status;
}

static void run_create(request *r)
{
    const vectors_plan *p = r->plan;
    entry *there = entry_open(r->server, r->names[0]);
    if (there) {
        const bool is_alias = strcmp(there->name, r->names[0]) != 0;
        entry_release(r->server, there);
        request_fail(r, 409, "Wrong input: %s `%s` already exists!", is_alias ? "Alias" : "Collection", r->names[0]);
        return;
    }
    const ww_status status = create_all(r->server, p);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    entry *made = entry_open(r->server, r->names[0]);
    const ww_status kept = settings_keep(r->server, r->names[0], made, json_root(r->body));
    if (made)
        entry_release(r->server, made);
    if (kept == WW_OK)
        request_result_true(r);
    else
        request_fail_status(r, kept);
}

static bool prepare_patch(request *r)
{
    const char *body = request_body(r);
    return body && settings_check(r, body);
}

static void run_patch(request *r)
{
    if (!request_open_collection(r))
        return;
    const ww_status status = settings_keep(r->server, r->entry->name, r->entry, json_root(r->body));
    if (status == WW_OK)
        request_result_true(r);
    else
        request_fail_status(r, status);
}

typedef struct aliases_of {
    server *server;
    const char *collection;
    ww_status status;
} aliases_of;

static void forget_alias(void *user, const char *rest, const char *value)
{
    aliases_of *all = user;
    const char *collection = json_given(json_root(value), "collection");
    out note = {0};
    if (all->status != WW_OK || !collection || !json_text_is(collection, all->collection, strlen(all->collection)))
        return;
    out_format(&note, "alias:%s", rest);
    all->status = note.failed ? memory_failed("an alias", note.length) : notes_remove(all->server, note.bytes);
    if (all->status == WW_OK && !changes_are_shared())
        alias_forget(all->server, rest);
    out_free(&note);
}

/* Forgets the aliases of a collection, and which model made its vectors. */
static ww_status forget_names(server *s, const char *collection)
{
    char model[300];
    aliases_of all = {s, collection, WW_OK};
    const ww_status status = notes_each(s, "alias:", forget_alias, &all);
    snprintf(model, sizeof model, "model/%s", collection);
    return status != WW_OK ? status : all.status != WW_OK ? all.status : notes_remove(s, model);
}

static void run_delete(request *r)
{
    entry *there = entry_open(r->server, r->names[0]);
    char prefix[300];
    if (there && strcmp(there->name, r->names[0]) != 0) { /* an alias is deleted by /collections/aliases */
        entry_release(r->server, there);
        there = NULL;
    }
    if (!there) { /* as Qdrant answers */
        request_result_begin(r);
        out_text(&r->answer, "false");
        request_result_end(r);
        return;
    }
    snprintf(prefix, sizeof prefix, "index/%s/", there->name);
    ww_status status = changes_drop_collection(r->server, there->name);
    for (size_t i = 0; status == WW_OK && i < there->part_count; i++) {
        char part[300];
        snprintf(part, sizeof part, "%s/%s", there->name, there->parts[i].name);
        status = changes_drop_collection(r->server, part);
    }
    if (status == WW_OK && !changes_are_shared())
        entry_forget(r->server, there->name);
    if (status == WW_OK)
        status = forget_names(r->server, there->name);
    if (status == WW_OK)
        status = notes_remove_all(r->server, prefix);
    if (status == WW_OK)
        status = settings_forget(r->server, there->name);
    if (status == WW_OK)
        status = layout_note(r->server, there->name, (layout){.split = false});
    if (status == WW_OK)
        status = layout_forget_kinds(r->server, there->name);
    if (status == WW_OK)
        status = sparse_forget(r->server, there->name);
    entry_release(r->server, there);
    if (status == WW_OK)
        request_result_true(r);
    else
        request_fail_status(r, status);
}

/* ---- describing ---------------------------------------------------------------------------------------------------------- */

static void run_list(request *r)
{
    ww_results *list = NULL;
    bool begun = false;
    const ww_status status = ww_store_list(r->server->store, &list);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    request_result_begin(r);
    out_text(&r->answer, "{\"collections\":[");
    for (int64_t i = 0; i < ww_results_count(list, 0); i++) {
        const char *name = ww_results_id(list, 0, i);
        if (strcmp(name, NOTES_COLLECTION) == 0 || strchr(name, '/') || !access_sees(r, name, false))
            continue;
        out_text(&r->answer, begun ? ",{\"name\":" : "{\"name\":");
        out_quoted(&r->answer, name, strlen(name));
        out_text(&r->answer, "}");
        begun = true;
    }
    out_text(&r->answer, "]}");
    request_result_end(r);
    ww_results_destroy(list);
}

static void run_exists(request *r)
{
    entry *there = entry_open(r->server, r->names[0]);
    request_result_begin(r);
    out_format(&r->answer, "{\"exists\":%s}", there ? "true" : "false");
    request_result_end(r);
    if (there)
        entry_release(r->server, there);
}

static ww_status put_description(request *r, entry *e, const ww_collection_info *info)
{
    out *o = &r->answer;
    int64_t points = info->rows_live;
    const ww_filter *seen = r->grant ? r->grant->seen : NULL;
    ww_status status = seen ? rows_count(e, &(point_filter){.filter = (ww_filter *)(uintptr_t)seen}, &points) : WW_OK;
    out_format(o, "{\"status\":\"green\",\"optimizer_status\":\"ok\",\"indexed_vectors_count\":0,\"points_count\":%lld,",
               (long long)points);
    out_format(o, "\"segments_count\":%lld,\"config\":{", (long long)(info->segments > 0 ? info->segments : 1));
    settings_put(r->server, o, e);
    out_text(o, "},\"payload_schema\":");
    if (seen) /* the indexes count the points of others, too */
        out_text(o, "{}");
    else
        status = indexes_put(o, e);
    out_text(o, "}");
    return status;
}

static void run_describe(request *r)
{
    ww_collection_info info = ww_collection_info_default();
    if (!request_open_collection(r))
        return;
    const ww_status status = ww_collection_describe(r->entry->collection, &info);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    request_result_begin(r);
    const ww_status put = put_description(r, r->entry, &info);
    request_result_end(r);
    if (put != WW_OK)
        request_fail_status(r, put);
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

#define COLLECTION "/collections/{collection_name}"

static const route routes[] = {
    {"GET", "/collections", RIGHT_LIST, WORK_STORE_READ, NULL, run_list, "List collections", NULL, "Their names.", false},
    {"POST", "/collections/aliases", RIGHT_WRITE, WORK_STORE, prepare_aliases, run_aliases, "Make, rename and delete aliases",
     "\"actions\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}", "True.", false},
    {"GET", "/aliases", RIGHT_LIST, WORK_STORE_READ, NULL, run_list_aliases, "List aliases", NULL,
     "Aliases with their collections.", false},
    {"GET", COLLECTION, RIGHT_POINTS, WORK_STORE_READ, NULL, run_describe, "Describe a collection", NULL,
     "Its size and settings.", false},
    {"PUT", COLLECTION, RIGHT_WRITE, WORK_STORE, prepare_create, run_create, "Make a collection",
     "\"vectors\":{\"type\":\"object\"}", "True.", false},
    {"PATCH", COLLECTION, RIGHT_WRITE, WORK_STORE, prepare_patch, run_patch, "Change settings",
     "\"optimizers_config\":{\"type\":\"object\"}", "True.", false},
    {"DELETE", COLLECTION, RIGHT_WRITE, WORK_STORE, NULL, run_delete, "Drop a collection", NULL, "Whether it existed.", false},
    {"PUT", COLLECTION "/vectors/{vector_name}", RIGHT_CHANGE, WORK_COLLECTION, prepare_add_vector, run_add_vector,
     "Add a vector with a name to a collection", "\"size\":{\"type\":\"integer\"},\"distance\":{\"type\":\"string\"}", "True.",
     false},
    {"DELETE", COLLECTION "/vectors/{vector_name}", RIGHT_CHANGE, WORK_COLLECTION, NULL, run_remove_vector,
     "Remove a vector and all its values", NULL, "True.", false},
    {"GET", COLLECTION "/exists", RIGHT_POINTS, WORK_STORE_READ, NULL, run_exists, "Does the collection exist?", NULL,
     "Whether it exists.", false},
    {"GET", COLLECTION "/aliases", RIGHT_POINTS, WORK_STORE_READ, NULL, run_list_aliases, "List the aliases of a collection",
     NULL, "Its aliases.", false},
    {"PUT", COLLECTION "/index", RIGHT_CHANGE, WORK_STORE, prepare_index, run_index, "Declare a payload key as indexed",
     "\"field_name\":{\"type\":\"string\"},\"field_schema\":{}", "The number and the state of the operation.", false},
    {"DELETE", COLLECTION "/index/{field_name}", RIGHT_CHANGE, WORK_STORE, NULL, run_unindex, "Declare it as no longer indexed",
     NULL, "The number and the state of the operation.", false},
};

const route_table routes_collections = {routes, sizeof routes / sizeof *routes};
