/* Collections of Qdrant's API: making, describing and dropping them, their aliases and indexes. All of it is asked of the
 * store. */
#include <stdio.h>
#include <string.h>

#include "base/json_value.h"
#include "base/memory.h"
#include "server/notes.h"
#include "server/qdrant/aliases.h"
#include "server/route.h"
#include "server/state.h"

/* ---- the store's worker ----------------------------------------------------------------------------------------------------
 */

bool store_run(queue *q, request *taken)
{
    for (request *r = taken, *next; r; r = next) {
        next = r->next;
        if (atomic_load(&r->gone)) {
            request_fail(r, 499, "the client has gone, or the deadline is over");
        } else if (r->route->work == WORK_COLLECTION) { /* of a collection that was not known */
            r->entry = entry_open(q->server, r->names[0]);
            if (r->entry) {
                queue_submit(&r->entry->queue, r);
                continue;
            }
            request_fail(r, 404, "Not found: Collection `%s` doesn't exist!", r->names[0]);
        } else {
            r->route->run(r);
        }
        request_done(r);
    }
    return false;
}

/* ---- making ----------------------------------------------------------------------------------------------------------------
 */

static const char *const distances[] = {[WW_COSINE] = "Cosine", [WW_L2] = "Euclid", [WW_DOT] = "Dot"};

typedef struct create_plan {
    ww_collection_config config;
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

static bool prepare_create(request *r)
{
    const char *body = request_body(r), *vectors = body ? json_given(body, "vectors") : NULL;
    int64_t size = 0;
    if (!body)
        return false;
    const char *sparse = json_given(body, "sparse_vectors");
    if (sparse && json_type_of(sparse) == JSON_OBJECT && json_first(sparse))
        return request_fail(r, 501, "sparse_vectors: sparse vectors are not supported");
    if (!vectors || json_type_of(vectors) != JSON_OBJECT)
        return request_fail(r, 400, "vectors: an object with size and distance is needed");
    if (!json_given(vectors, "size"))
        return request_fail(r, 501, "vectors.size: is needed; vectors with names are not supported");
    if (json_given(vectors, "multivector_config"))
        return request_fail(r, 501, "vectors.multivector_config: several vectors for a point are not supported");
    create_plan *p = memory_alloc_zeroed(1, sizeof *p);
    if (!p)
        return request_fail_status(r, memory_failed("a collection", sizeof *p));
    r->plan = p;
    r->plan_free = memory_free;
    p->config = ww_collection_config_default();
    p->config.name = r->names[0];
    if (!request_read_integer(r, vectors, "size", 1, &size) ||
        !read_distance(r, json_given(vectors, "distance"), &p->config.metric) ||
        !read_datatype(r, json_given(vectors, "datatype"), &p->config.type))
        return false;
    if (size > WW_DIM_MAX)
        return request_fail(r, 400, "vectors.size: is %lld; the maximum is %d", (long long)size, WW_DIM_MAX);
    if (strchr(r->names[0], '/') || strcmp(r->names[0], NOTES_COLLECTION) == 0)
        return request_fail(r, 400, "the name '%s' cannot be used", r->names[0]);
    p->config.dim = (int32_t)size;
    return true;
}

static void run_create(request *r)
{
    const create_plan *p = r->plan;
    entry *there = entry_open(r->server, r->names[0]);
    if (there) {
        entry_release(r->server, there);
        request_fail(r, 409, "Wrong input: Collection `%s` already exists!", r->names[0]);
        return;
    }
    const ww_status status = ww_store_create(r->server->store, &p->config, NULL);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    entry *made = entry_open(r->server, r->names[0]);
    if (made)
        entry_release(r->server, made);
    request_result_true(r);
}

/* Settings of indexes and optimizers, which there are none of: answers are exact whatever they say. */
static bool prepare_patch(request *r)
{
    return request_body(r) != NULL;
}

static void run_patch(request *r)
{
    entry *there = entry_open(r->server, r->names[0]);
    if (!there) {
        request_fail(r, 404, "Not found: Collection `%s` doesn't exist!", r->names[0]);
        return;
    }
    entry_release(r->server, there);
    request_result_true(r);
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

static void run_delete(request *r)
{
    entry *there = entry_open(r->server, r->names[0]);
    char prefix[300];
    if (!there) { /* as Qdrant answers */
        request_result_begin(r);
        out_text(&r->answer, "false");
        request_result_end(r);
        return;
    }
    snprintf(prefix, sizeof prefix, "index:%s:", there->name);
    ww_status status = ww_store_drop(r->server->store, there->name);
    if (status == WW_OK) {
        entry_forget(r->server, there->name);
        status = forget_aliases(r->server, there->name);
    }
    if (status == WW_OK)
        status = notes_remove_all(r->server, prefix);
    entry_release(r->server, there);
    if (status == WW_OK)
        request_result_true(r);
    else
        request_fail_status(r, status);
}

/* ---- describing ------------------------------------------------------------------------------------------------------------
 */

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
        if (strcmp(name, NOTES_COLLECTION) == 0)
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

typedef struct schema_list {
    out *to;
    bool begun;
} schema_list;

static void tell_index(void *user, const char *rest, const char *value)
{
    schema_list *list = user;
    out_text(list->to, list->begun ? "," : "");
    out_quoted(list->to, rest, strlen(rest));
    out_text(list->to, ":");
    out_text(list->to, value);
    list->begun = true;
}

static void put_description(request *r, const entry *e, const ww_collection_info *info)
{
    static const char *const DATATYPES[] = {"float32", "float16", "float32", "uint8", "uint8"};
    out *o = &r->answer;
    char prefix[300];
    schema_list list = {o, false};
    out_format(o, "{\"status\":\"green\",\"optimizer_status\":\"ok\",\"indexed_vectors_count\":0,\"points_count\":%lld,",
               (long long)info->rows_live);
    out_format(o, "\"segments_count\":%lld,\"config\":{\"params\":{\"vectors\":{\"size\":%d,\"distance\":\"%s\"",
               (long long)(info->segments > 0 ? info->segments : 1), (int)info->dim, distances[info->metric]);
    if (info->type != WW_VECTOR_F32)
        out_format(o, ",\"datatype\":\"%s\"", DATATYPES[info->type]);
    out_text(o, "},\"shard_number\":1,\"replication_factor\":1,\"write_consistency_factor\":1,\"on_disk_payload\":true},"
                "\"hnsw_config\":{\"m\":0,\"ef_construct\":4,\"full_scan_threshold\":10000,\"max_indexing_threads\":0,"
                "\"on_disk\":false},\"optimizer_config\":{\"deleted_threshold\":0.2,\"vacuum_min_vector_number\":1000,"
                "\"default_segment_number\":0,\"max_segment_size\":null,\"memmap_threshold\":null,\"indexing_threshold\":0,"
                "\"flush_interval_sec\":0,\"max_optimization_threads\":null},\"wal_config\":{\"wal_capacity_mb\":32,"
                "\"wal_segments_ahead\":0},\"quantization_config\":null},\"payload_schema\":{");
    snprintf(prefix, sizeof prefix, "index:%s:", e->name);
    (void)notes_each(r->server, prefix, tell_index, &list); /* without them the description is still right */
    out_text(o, "}}");
}

static void run_describe(request *r)
{
    entry *e = entry_open(r->server, r->names[0]);
    ww_collection_info info = ww_collection_info_default();
    if (!e) {
        request_fail(r, 404, "Not found: Collection `%s` doesn't exist!", r->names[0]);
        return;
    }
    const ww_status status = ww_collection_describe(e->collection, &info);
    if (status == WW_OK) {
        request_result_begin(r);
        put_description(r, e, &info);
        request_result_end(r);
    } else {
        request_fail_status(r, status);
    }
    entry_release(r->server, e);
}

/* ---- indexes ---------------------------------------------------------------------------------------------------------------
 */

/* An index changes no answer here; which fields are said to have one is kept, because clients read it back. */
static bool prepare_index(request *r)
{
    const char *body = request_body(r);
    char *field = body ? request_copy_text(r, json_given(body, "field_name"), "field_name") : NULL;
    if (!field)
        return false;
    r->plan = field;
    r->plan_free = memory_free;
    return true;
}

static void run_index(request *r)
{
    entry *e = entry_open(r->server, r->names[0]);
    if (!e) {
        request_fail(r, 404, "Not found: Collection `%s` doesn't exist!", r->names[0]);
        return;
    }
    out name = {0}, value = {0};
    const char *body = json_root(r->body), *schema = json_given(body, "field_schema");
    const char *type = schema && json_type_of(schema) == JSON_OBJECT ? json_given(schema, "type") : schema;
    out_format(&name, "index:%s:%s", e->name, (const char *)r->plan);
    out_text(&value, "{\"data_type\":");
    if (type && json_type_of(type) == JSON_TEXT)
        out_bytes(&value, type, (size_t)(json_end(type) - type));
    else
        out_text(&value, "\"keyword\"");
    if (schema && json_type_of(schema) == JSON_OBJECT) {
        out_text(&value, ",\"params\":");
        out_bytes(&value, schema, (size_t)(json_end(schema) - schema));
    }
    out_text(&value, ",\"points\":0}");
    const ww_status status =
        name.failed || value.failed ? memory_failed("an index", name.length) : notes_put(r->server, name.bytes, value.bytes);
    if (status != WW_OK) {
        request_fail_status(r, status);
    } else {
        request_result_begin(r);
        out_format(&r->answer, "{\"operation_id\":%lld,\"status\":\"completed\"}", atomic_fetch_add(&r->server->operations, 1));
        request_result_end(r);
    }
    out_free(&name);
    out_free(&value);
    entry_release(r->server, e);
}

static void run_unindex(request *r)
{
    entry *e = entry_open(r->server, r->names[0]);
    char note[512];
    if (!e) {
        request_fail(r, 404, "Not found: Collection `%s` doesn't exist!", r->names[0]);
        return;
    }
    snprintf(note, sizeof note, "index:%s:%s", e->name, r->names[1]);
    entry_release(r->server, e);
    const ww_status status = notes_remove(r->server, note);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    request_result_begin(r);
    out_format(&r->answer, "{\"operation_id\":%lld,\"status\":\"completed\"}", atomic_fetch_add(&r->server->operations, 1));
    request_result_end(r);
}

/* ---- the table -------------------------------------------------------------------------------------------------------------
 */

#define COLLECTION "/collections/{collection_name}"

static const route routes[] = {
    {"GET", "/collections", RIGHT_READ, WORK_STORE, NULL, run_list, "List collections", NULL, "Their names.", false},
    {"POST", "/collections/aliases", RIGHT_WRITE, WORK_STORE, prepare_aliases, run_aliases, "Make, rename and delete aliases",
     "\"actions\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}", "True.", false},
    {"GET", "/aliases", RIGHT_READ, WORK_STORE, NULL, run_list_aliases, "List aliases", NULL, "Aliases with their collections.",
     false},
    {"GET", COLLECTION, RIGHT_READ, WORK_STORE, NULL, run_describe, "Describe a collection", NULL, "Its size and settings.",
     false},
    {"PUT", COLLECTION, RIGHT_WRITE, WORK_STORE, prepare_create, run_create, "Make a collection",
     "\"vectors\":{\"type\":\"object\"}", "True.", false},
    {"PATCH", COLLECTION, RIGHT_WRITE, WORK_STORE, prepare_patch, run_patch, "Change settings, none of which changes an answer",
     "\"optimizers_config\":{\"type\":\"object\"}", "True.", false},
    {"DELETE", COLLECTION, RIGHT_WRITE, WORK_STORE, NULL, run_delete, "Drop a collection", NULL, "Whether it was there.",
     false},
    {"GET", COLLECTION "/exists", RIGHT_READ, WORK_STORE, NULL, run_exists, "Is there a collection?", NULL,
     "Whether it is there.", false},
    {"GET", COLLECTION "/aliases", RIGHT_READ, WORK_STORE, NULL, run_list_aliases, "List the aliases of a collection", NULL,
     "Its aliases.", false},
    {"PUT", COLLECTION "/index", RIGHT_WRITE, WORK_STORE, prepare_index, run_index, "Say that a key of payloads is indexed",
     "\"field_name\":{\"type\":\"string\"},\"field_schema\":{}", "The number and the state of the operation.", false},
    {"DELETE", COLLECTION "/index/{field_name}", RIGHT_WRITE, WORK_STORE, NULL, run_unindex, "Say that it is not any more",
     NULL, "The number and the state of the operation.", false},
};

const route_table routes_collections = {routes, sizeof routes / sizeof *routes};
