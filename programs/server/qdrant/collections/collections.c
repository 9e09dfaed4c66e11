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
#include "server/qdrant/select.h"
#include "server/reserve.h"
#include "server/route.h"
#include "server/state.h"

/* ---- making -------------------------------------------------------------------------------------------------------------- */

static const char *const distances[] = {[WW_COSINE] = "Cosine", [WW_L2] = "Euclid", [WW_DOT] = "Dot"};

enum { PARTS_MAX = 64 };

typedef struct create_plan {
    ww_collection_config config; /* of the main collection */
    ww_collection_config parts[PARTS_MAX];
    char names[PARTS_MAX][256];
    size_t part_count;
} create_plan;

static bool read_distance(request *r, const char *value, ww_metric *metric)
{
    for (size_t i = 0; value && json_type_of(value) == JSON_TEXT && i < sizeof distances / sizeof *distances; i++)
        if (json_text_is(value, distances[i], strlen(distances[i]))) {
            *metric = (ww_metric)i;
            return true;
        }
    if (value && json_type_of(value) == JSON_TEXT && json_text_is(value, "Manhattan", 9))
        return request_fail(r, 501, "vectors.distance: Manhattan is not supported");
    return request_fail(r, 400, "vectors.distance: Cosine, Euclid or Dot is needed");
}

static bool read_datatype(request *r, const char *value, ww_vector_type *type)
{
    static const struct {
        const char *name;
        ww_vector_type type;
    } TYPES[] = {{"float32", WW_VECTOR_F32}, {"float16", WW_VECTOR_F16}, {"uint8", WW_VECTOR_U8}};
    for (size_t i = 0; value && json_type_of(value) == JSON_TEXT && i < sizeof TYPES / sizeof *TYPES; i++)
        if (json_text_is(value, TYPES[i].name, strlen(TYPES[i].name))) {
            *type = TYPES[i].type;
            return true;
        }
    return value ? request_fail(r, 400, "vectors.datatype: float32, float16 or uint8 is needed") : true;
}

/* {"size": 4, "distance": "Dot"} */
static bool read_vectors(request *r, const char *vectors, ww_collection_config *config)
{
    int64_t size = 0;
    *config = ww_collection_config_default();
    if (json_type_of(vectors) != JSON_OBJECT || !json_given(vectors, "size"))
        return request_fail(r, 400, "vectors: an object with size and distance is needed");
    if (json_given(vectors, "multivector_config"))
        return request_fail(r, 501, "vectors.multivector_config: several vectors for a point are not supported");
    if (!request_read_integer(r, vectors, "size", 1, &size) ||
        !read_distance(r, json_given(vectors, "distance"), &config->metric) ||
        !read_datatype(r, json_given(vectors, "datatype"), &config->type))
        return false;
    if (size > WW_DIM_MAX)
        return request_fail(r, 400, "vectors.size: is %lld; the maximum is %d", (long long)size, WW_DIM_MAX);
    config->dim = (int32_t)size;
    return true;
}

/* {"image": {"size": 4, "distance": "Dot"}, ...}: then the points themselves have no vectors. */
static bool read_parts(request *r, const char *vectors, create_plan *p)
{
    p->config = ww_collection_config_default();
    p->config.dim = 1;
    p->config.metric = WW_DOT;
    for (const char *key = json_first(vectors); key; key = json_next(key), p->part_count++) {
        char name[128];
        if (p->part_count == PARTS_MAX)
            return request_fail(r, 400, "vectors: more than %d names", PARTS_MAX);
        if (!vector_name_read(key, name) || name[0] == '\0')
            return request_fail(r, 400, "vectors: a name has 1 to 118 bytes");
        if (!read_vectors(r, json_member(key), &p->parts[p->part_count]))
            return false;
        const int length = snprintf(p->names[p->part_count], sizeof p->names[0], "%s/%s", r->names[0], name);
        if (length > 128)
            return request_fail(r, 400, "vectors: the names of collection and vector have 127 bytes together at most");
        p->parts[p->part_count].name = p->names[p->part_count];
    }
    return true;
}

static bool prepare_create(request *r)
{
    const char *body = request_body(r), *vectors = body ? json_given(body, "vectors") : NULL;
    if (!body)
        return false;
    const char *sharding = json_given(body, "sharding_method"), *sparse = json_given(body, "sparse_vectors");
    if (sharding && (json_type_of(sharding) != JSON_TEXT || !json_text_is(sharding, "auto", 4)))
        return request_fail(r, 501, "sharding_method: shards are not supported");
    if (json_given(body, "init_from"))
        return request_fail(r, 501, "init_from: copying a collection is not supported");
    if (sparse && json_type_of(sparse) == JSON_OBJECT && json_first(sparse))
        return request_fail(r, 501, "sparse_vectors: sparse vectors are not supported");
    if (!vectors || json_type_of(vectors) != JSON_OBJECT || !json_first(vectors))
        return request_fail(r, 400, "vectors: an object with size and distance is needed");
    if (strchr(r->names[0], '/') || strcmp(r->names[0], NOTES_COLLECTION) == 0)
        return request_fail(r, 400, "the name '%s' cannot be used", r->names[0]);
    create_plan *p = request_plan_create(r, sizeof *p, memory_free);
    if (!p)
        return false;
    const char *unnamed = json_find(vectors, "", 0); /* {"": {...}} is the vector without a name */
    if (unnamed && json_type_of(unnamed) == JSON_OBJECT && json_next(json_first(vectors)))
        return request_fail(r, 501, "vectors: a vector without a name beside others is not supported");
    vectors = unnamed && json_type_of(unnamed) == JSON_OBJECT ? unnamed : vectors;
    const char *first = json_first(vectors) ? json_member(json_first(vectors)) : vectors;
    const bool read = json_type_of(first) == JSON_OBJECT ? read_parts(r, vectors, p) : read_vectors(r, vectors, &p->config);
    p->config.name = r->names[0];
    return read && settings_check(r, body);
}

/* Creates the collections of the parts, then the main one. Parts without a main collection are left from an interrupted
 * call. */
static ww_status create_all(server *s, const create_plan *p)
{
    ww_status status = WW_OK;
    size_t made = 0;
    for (; status == WW_OK && made < p->part_count; made++) {
        status = ww_store_drop(s->store, p->parts[made].name);
        if (status == WW_OK || status == WW_NOT_FOUND)
            status = ww_store_create(s->store, &p->parts[made], NULL);
    }
    if (status == WW_OK)
        status = ww_store_create(s->store, &p->config, NULL);
    for (size_t i = 0; status != WW_OK && i < made; i++)
        (void)ww_store_drop(s->store, p->parts[i].name); /* the first failure is reported */
    return status;
}

static void run_create(request *r)
{
    const create_plan *p = r->plan;
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
    const ww_status kept = made ? settings_keep(r->server, made, json_root(r->body)) : WW_OK;
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
    const ww_status status = settings_keep(r->server, r->entry, json_root(r->body));
    if (status == WW_OK)
        request_result_true(r);
    else
        request_fail_status(r, status);
}

/* Forgets the aliases of a collection. */
static ww_status forget_aliases(server *s, const char *collection)
{
    ww_status status = WW_OK;
    for (bool found = true; found && status == WW_OK;) {
        char note[512] = "";
        pthread_mutex_lock(&s->lock);
        for (const alias *a = s->aliases; a; a = a->next)
            if (strcmp(a->collection, collection) == 0)
                snprintf(note, sizeof note, "alias:%s", a->name);
        pthread_mutex_unlock(&s->lock);
        found = note[0] != '\0';
        if (found)
            status = notes_remove(s, note);
        if (found)
            alias_forget(s, note + 6);
    }
    return status;
}

/* Drops a collection of the store, also when the disk is full. */
static ww_status drop(const server *s, const char *name)
{
    const ww_status status = ww_store_drop(s->store, name);
    return reserve_give(s, status) ? ww_store_drop(s->store, name) : status;
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
    ww_status status = drop(r->server, there->name);
    for (size_t i = 0; status == WW_OK && i < there->part_count; i++) {
        char part[300];
        snprintf(part, sizeof part, "%s/%s", there->name, there->parts[i].name);
        status = drop(r->server, part);
    }
    if (status == WW_OK) {
        entry_forget(r->server, there->name);
        status = forget_aliases(r->server, there->name);
    }
    if (status == WW_OK)
        status = notes_remove_all(r->server, prefix);
    if (status == WW_OK)
        status = settings_forget(r->server, there->name);
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
        if (strcmp(name, NOTES_COLLECTION) == 0 || strchr(name, '/'))
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

/* {"size": 4, "distance": "Dot"} */
static void put_vectors(out *o, const entry *e)
{
    static const char *const DATATYPES[] = {"float32", "float16", "float32", "uint8", "uint8"};
    ww_collection_info info = ww_collection_info_default();
    out_format(o, "{\"size\":%d,\"distance\":\"%s\"", (int)e->dim, distances[e->metric]);
    if (ww_collection_describe(e->collection, &info) == WW_OK && info.type != WW_VECTOR_F32)
        out_format(o, ",\"datatype\":\"%s\"", DATATYPES[info.type]);
    out_text(o, "}");
}

static void put_all_vectors(out *o, const entry *e)
{
    if (e->part_count == 0)
        put_vectors(o, e);
    for (size_t i = 0; i < e->part_count; i++) {
        out_text(o, i > 0 ? "," : "{");
        out_quoted(o, e->parts[i].name, strlen(e->parts[i].name));
        out_text(o, ":");
        put_vectors(o, &e->parts[i]);
    }
    out_text(o, e->part_count > 0 ? "}" : "");
}

static ww_status put_description(request *r, entry *e, const ww_collection_info *info)
{
    out *o = &r->answer, vectors = {0};
    out_format(o, "{\"status\":\"green\",\"optimizer_status\":\"ok\",\"indexed_vectors_count\":0,\"points_count\":%lld,",
               (long long)info->rows_live);
    out_format(o, "\"segments_count\":%lld,\"config\":{", (long long)(info->segments > 0 ? info->segments : 1));
    put_all_vectors(&vectors, e);
    if (vectors.bytes && !vectors.failed)
        settings_put(r->server, o, e, vectors.bytes);
    o->failed = o->failed || vectors.failed;
    out_free(&vectors);
    out_text(o, "},\"payload_schema\":");
    const ww_status status = indexes_put(o, e);
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

/* ---- vectors of a collection that exists -----------------------------------------------------------------------------------
 */

/* {"size": 4, "distance": "Dot"}, or that as "dense" */
static bool prepare_add_vector(request *r)
{
    const char *body = request_body(r), *dense = body ? json_given(body, "dense") : NULL;
    create_plan *p = body ? request_plan_create(r, sizeof *p, memory_free) : NULL;
    if (!p || strlen(r->names[1]) > 118)
        return p ? request_fail(r, 400, "vectors: a name has 1 to 118 bytes") : false;
    if (json_given(body, "sparse"))
        return request_fail(r, 501, "sparse: sparse vectors are not supported");
    const int length = snprintf(p->names[0], sizeof p->names[0], "%s/%s", r->names[0], r->names[1]);
    if (length > 128)
        return request_fail(r, 400, "vectors: the names of collection and vector have 127 bytes together at most");
    if (!read_vectors(r, dense ? dense : body, &p->parts[0]))
        return false;
    p->parts[0].name = p->names[0];
    return true;
}

/* Opens the collection with its vectors as they are now. Requests that run keep what they have. */
static void reopen(request *r)
{
    entry_forget(r->server, r->entry->name);
    entry *again = entry_open(r->server, r->entry->name);
    if (again)
        entry_release(r->server, again);
    request_result_true(r);
}

static void run_add_vector(request *r)
{
    create_plan *p = r->plan;
    if (!request_open_collection(r))
        return;
    const entry *e = r->entry;
    if (e->part_count == 0) {
        request_fail(r, 400, "Wrong input: vectors of this collection have no names");
        return;
    }
    if (entry_part(e, r->names[1])) {
        request_fail(r, 409, "Wrong input: Vector `%s` already exists!", r->names[1]);
        return;
    }
    if (e->part_count == PARTS_MAX) {
        request_fail(r, 400, "vectors: more than %d names", PARTS_MAX);
        return;
    }
    snprintf(p->names[0], sizeof p->names[0], "%s/%s", e->name, r->names[1]); /* the path may have an alias */
    const ww_status status = ww_store_create(r->server->store, &p->parts[0], NULL);
    if (status == WW_OK)
        reopen(r);
    else
        request_fail_status(r, status);
}

static void run_remove_vector(request *r)
{
    char name[300];
    if (!request_open_collection(r))
        return;
    if (r->entry->part_count == 0 || !entry_part(r->entry, r->names[1])) {
        request_fail(r, 404, "Not found: Vector `%s` doesn't exist!", r->names[1]);
        return;
    }
    if (r->entry->part_count == 1) {
        request_fail(r, 400, "Wrong input: `%s` is the only vector of the collection", r->names[1]);
        return;
    }
    snprintf(name, sizeof name, "%s/%s", r->entry->name, r->names[1]);
    const ww_status status = ww_store_drop(r->server->store, name);
    if (status == WW_OK)
        reopen(r);
    else
        request_fail_status(r, status);
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

#define COLLECTION "/collections/{collection_name}"

static const route routes[] = {
    {"GET", "/collections", RIGHT_READ, WORK_STORE_READ, NULL, run_list, "List collections", NULL, "Their names.", false},
    {"POST", "/collections/aliases", RIGHT_WRITE, WORK_STORE, prepare_aliases, run_aliases, "Make, rename and delete aliases",
     "\"actions\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}", "True.", false},
    {"GET", "/aliases", RIGHT_READ, WORK_STORE_READ, NULL, run_list_aliases, "List aliases", NULL,
     "Aliases with their collections.", false},
    {"GET", COLLECTION, RIGHT_READ, WORK_STORE_READ, NULL, run_describe, "Describe a collection", NULL,
     "Its size and settings.", false},
    {"PUT", COLLECTION, RIGHT_WRITE, WORK_STORE, prepare_create, run_create, "Make a collection",
     "\"vectors\":{\"type\":\"object\"}", "True.", false},
    {"PATCH", COLLECTION, RIGHT_WRITE, WORK_STORE, prepare_patch, run_patch, "Change settings",
     "\"optimizers_config\":{\"type\":\"object\"}", "True.", false},
    {"DELETE", COLLECTION, RIGHT_WRITE, WORK_STORE, NULL, run_delete, "Drop a collection", NULL, "Whether it existed.", false},
    {"PUT", COLLECTION "/vectors/{vector_name}", RIGHT_WRITE, WORK_STORE, prepare_add_vector, run_add_vector,
     "Add a vector to a collection whose vectors have names",
     "\"size\":{\"type\":\"integer\"},\"distance\":{\"type\":\"string\"}", "True.", false},
    {"DELETE", COLLECTION "/vectors/{vector_name}", RIGHT_WRITE, WORK_STORE, NULL, run_remove_vector,
     "Remove a vector and all its values", NULL, "True.", false},
    {"GET", COLLECTION "/exists", RIGHT_READ, WORK_STORE_READ, NULL, run_exists, "Does the collection exist?", NULL,
     "Whether it exists.", false},
    {"GET", COLLECTION "/aliases", RIGHT_READ, WORK_STORE_READ, NULL, run_list_aliases, "List the aliases of a collection",
     NULL, "Its aliases.", false},
    {"PUT", COLLECTION "/index", RIGHT_WRITE, WORK_STORE, prepare_index, run_index, "Declare a payload key as indexed",
     "\"field_name\":{\"type\":\"string\"},\"field_schema\":{}", "The number and the state of the operation.", false},
    {"DELETE", COLLECTION "/index/{field_name}", RIGHT_WRITE, WORK_STORE, NULL, run_unindex, "Declare it as no longer indexed",
     NULL, "The number and the state of the operation.", false},
};

const route_table routes_collections = {routes, sizeof routes / sizeof *routes};
