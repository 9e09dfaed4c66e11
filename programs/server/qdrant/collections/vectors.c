/* The vectors of a collection. */
#include "server/qdrant/collections/vectors.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/collections/settings.h"
#include "server/qdrant/select.h"
#include "server/qdrant/vectors/multi.h"
#include "server/qdrant/vectors/sparse.h"
#include "server/route.h"
#include "server/work/changes.h"

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static const char *const distances[] = {[WW_COSINE] = "Cosine", [WW_L2] = "Euclid", [WW_DOT] = "Dot"};

static bool text_is(const char *value, const char *text)
{
    return value && json_type_of(value) == JSON_TEXT && json_text_is(value, text, strlen(text));
}

static bool read_distance(request *r, const char *value, ww_metric *metric, bool *manhattan)
{
    *manhattan = text_is(value, "Manhattan");
    *metric = WW_L2;
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++)
        if (text_is(value, distances[i])) {
            *metric = (ww_metric)i;
            return true;
        }
    return *manhattan ? true : request_fail(r, 400, "vectors.distance: Cosine, Euclid, Dot or Manhattan is needed");
}

static bool read_datatype(request *r, const char *value, ww_vector_type *type)
{
    static const struct {
        const char *name;
        ww_vector_type type;
    } TYPES[] = {{"float32", WW_VECTOR_F32}, {"float16", WW_VECTOR_F16}, {"uint8", WW_VECTOR_U8}};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (text_is(value, TYPES[i].name)) {
            *type = TYPES[i].type;
            return true;
        }
    return value ? request_fail(r, 400, "vectors.datatype: float32, float16 or uint8 is needed") : true;
}

/* {"size": 4, "distance": "Dot"} */
static bool read_vector(request *r, const char *vector, ww_collection_config *config, bool kinds[KIND_COUNT])
{
    int64_t size = 0;
    *config = ww_collection_config_default();
    if (json_type_of(vector) != JSON_OBJECT || !json_given(vector, "size"))
        return request_fail(r, 400, "vectors: an object with size and distance is needed");
    if (!request_read_integer(r, vector, "size", 1, &size) ||
        !read_distance(r, json_given(vector, "distance"), &config->metric, &kinds[KIND_MANHATTAN]) ||
        !read_datatype(r, json_given(vector, "datatype"), &config->type))
        return false;
    const char *multi = json_given(vector, "multivector_config");
    kinds[KIND_MULTI] = multi != NULL;
    if (multi && !multi_check_config(r, multi, config->metric))
        return false;
    if (size > WW_DIM_MAX)
        return request_fail(r, 400, "vectors.size: is %lld; the maximum is %d", (long long)size, WW_DIM_MAX);
    config->dim = (int32_t)size;
    return true;
}

/* The name of the collection with a vector's values, "docs/image". */
static bool name_part(request *r, const char *collection, const char *vector, char name[256])
{
    const int length = snprintf(name, 256, "%s/%s", collection, vector);
    return length <= 128 ? true
                         : request_fail(r, 400, "vectors: the names of collection and vector have 127 bytes together at most");
}

/* Reads a member of {"image": {...}, ...}. */
static bool read_named(request *r, const char *key, vectors_plan *p)
{
    char name[128];
    ww_collection_config *config = &p->parts[p->part_count];
    if (!vector_name_read(key, name))
        return request_fail(r, 400, "vectors: a name has at most %d bytes", VECTOR_NAME_MAX);
    if (name[0] == '\0') { /* the vectors without a name keep the collection's, and the points get another */
        p->layout = (layout){.split = true, .unnamed = true};
        return read_vector(r, json_member(key), &p->config, p->kinds);
    }
    if (p->part_count == VECTORS_MAX)
        return request_fail(r, 400, "vectors: more than %d names", VECTORS_MAX);
    if (!read_vector(r, json_member(key), config, p->parts_kinds[p->part_count]) ||
        !name_part(r, r->names[0], name, p->names[p->part_count]))
        return false;
    config->name = p->names[p->part_count++];
    return true;
}

/* Reads the dense vectors. */
static bool read_dense(request *r, const char *vectors, vectors_plan *p)
{
    if (vectors && json_type_of(vectors) != JSON_OBJECT)
        return request_fail(r, 400, "vectors: an object with size and distance is needed");
    const char *only = vectors ? json_find(vectors, "", 0) : NULL;
    if (only && json_type_of(only) == JSON_OBJECT && !json_next(json_first(vectors)))
        vectors = only; /* {"": {...}} is the vector without a name */
    const char *first = vectors ? json_first(vectors) : NULL;
    p->config = layout_points_config(r->names[0]);
    if (first && json_type_of(json_member(first)) != JSON_OBJECT) {
        const bool read = read_vector(r, vectors, &p->config, p->kinds);
        p->config.name = r->names[0];
        if (p->kinds[KIND_MULTI]) /* points without a multivector have nothing in its collection */
            p->layout = (layout){.split = true, .unnamed = true};
        return read;
    }
    p->layout.split = !first;
    for (const char *key = first; key; key = json_next(key))
        if (!read_named(r, key, p))
            return false;
    p->config.name = r->names[0];
    return true;
}

/* Reads a member of {"words": {...}, ...}. */
static bool read_sparse(request *r, const char *key, vectors_plan *p)
{
    char name[128];
    if (!vector_name_read(key, name) || name[0] == '\0')
        return request_fail(r, 400, "sparse_vectors: a name has 1 to %d bytes", VECTOR_NAME_MAX);
    if (p->part_count == VECTORS_MAX)
        return request_fail(r, 400, "sparse_vectors: more than %d names", VECTORS_MAX);
    char *full = p->names[p->part_count];
    if (!name_part(r, r->names[0], name, full) || !sparse_check_settings(r, json_member(key)))
        return false;
    for (size_t i = 0; i < p->part_count; i++)
        if (strcmp(p->names[i], full) == 0)
            return request_fail(r, 400, "sparse_vectors: '%s' is the name of a dense vector, too", name);
    p->parts[p->part_count] = layout_points_config(full);
    p->parts_sparse[p->part_count++] = json_member(key);
    return true;
}

bool vectors_plan_read(request *r, const char *vectors, const char *sparse, vectors_plan *p)
{
    if (sparse && json_type_of(sparse) != JSON_OBJECT)
        return request_fail(r, 400, "sparse_vectors: an object with the settings of each vector is needed");
    const char *first = sparse ? json_first(sparse) : NULL;
    if (!read_dense(r, vectors, p))
        return false;
    for (const char *key = first; key; key = json_next(key))
        if (!read_sparse(r, key, p))
            return false;
    if (first && !p->layout.split && p->part_count > 0 && p->parts_sparse[0]) /* beside one vector without a name */
        p->layout = (layout){.split = true, .unnamed = true};
    if (!p->layout.unnamed)
        return true;
    if (!name_part(r, r->names[0], "", p->names[p->part_count]))
        return false;
    p->parts[p->part_count] = layout_points_config(p->names[p->part_count]);
    p->part_count++;
    return true;
}

const char *vectors_row_kind(const char *sparse, const bool kinds[KIND_COUNT])
{
    return sparse ? " sparse" : kinds[KIND_MULTI] ? " multi" : "";
}

bool vectors_permitted(request *r, const vectors_plan *p)
{
    const follow_config *config = &r->server->config.follow;
    const bool manhattan = p->kinds[KIND_MANHATTAN];
    if (config->cluster && config->shards > 1 && (p->part_count > 0 || p->layout.split || manhattan))
        return request_fail(r, 501, "%s: not supported in a cluster with shards",
                            manhattan ? "Manhattan" : "vectors with names");
    return true;
}

/* Writes a note for each kind of the vector, and removes those of others. */
static ww_status note_kinds(server *s, const char *collection, const char *vector, const bool kinds[KIND_COUNT])
{
    ww_status status = WW_OK;
    for (vector_kind kind = 0; status == WW_OK && kind < KIND_COUNT; kind++)
        status = layout_note_kind(s, kind, collection, vector, kinds[kind]);
    return status;
}

ww_status vectors_note(server *s, const vectors_plan *p)
{
    const char *name = p->config.name;
    ww_status status = layout_note(s, name, p->layout);
    if (status == WW_OK)
        status = layout_forget_kinds(s, name);
    if (status == WW_OK)
        status = sparse_forget(s, name);
    if (status == WW_OK)
        status = note_kinds(s, name, "", p->kinds);
    for (size_t i = 0; status == WW_OK && i < p->part_count; i++)
        if (p->parts_sparse[i])
            status = sparse_note(s, name, p->names[i] + strlen(name) + 1, p->parts_sparse[i]);
        else if (p->names[i][strlen(name) + 1] != '\0') /* not the points of a split collection */
            status = note_kinds(s, name, p->names[i] + strlen(name) + 1, p->parts_kinds[i]);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

/* {"size": 4, "distance": "Dot"} */
static void put_vector(out *o, const entry *e, const char *kept)
{
    static const char *const DATATYPES[] = {"float32", "float16", "float32", "uint8", "uint8"};
    ww_collection_info info = ww_collection_info_default();
    out_format(o, "{\"size\":%d,\"distance\":\"%s\"", (int)e->dim, e->manhattan ? "Manhattan" : distances[e->metric]);
    if (ww_collection_describe(e->collection, &info) == WW_OK && info.type != WW_VECTOR_F32)
        out_format(o, ",\"datatype\":\"%s\"", DATATYPES[info.type]);
    if (e->multi)
        out_text(o, ",\"multivector_config\":{\"comparator\":\"max_sim\"}");
    settings_put_vector(o, kept);
    out_text(o, "}");
}

/* What is kept of the vector with this name. */
static const char *kept_of(const char *kept, const char *name)
{
    return kept ? json_find(kept, name, strlen(name)) : NULL;
}

void vectors_describe(out *o, const entry *e, const char *kept)
{
    const entry *unnamed = entry_part(e, "");
    size_t dense = 0;
    for (size_t i = 0; i < e->part_count; i++)
        dense += !e->parts[i].sparse;
    if (!e->split || (dense == 1 && unnamed)) {
        put_vector(o, entry_part(e, ""), kept_of(kept, ""));
        return;
    }
    bool begun = false;
    out_text(o, "{");
    for (size_t i = 0; i < e->part_count; i++) {
        if (e->parts[i].sparse)
            continue;
        out_text(o, begun ? "," : "");
        begun = true;
        out_quoted(o, e->parts[i].name, strlen(e->parts[i].name));
        out_text(o, ":");
        put_vector(o, &e->parts[i], kept_of(kept, e->parts[i].name));
    }
    out_text(o, "}");
}

/* ---- changing ------------------------------------------------------------------------------------------------------------ */

/* {"size": 4, "distance": "Dot"}, or that as "dense" */
bool prepare_add_vector(request *r)
{
    const char *body = request_body(r), *dense = body ? json_given(body, "dense") : NULL;
    vectors_plan *p = body ? request_plan_create(r, sizeof *p, memory_free) : NULL;
    if (!p || strlen(r->names[1]) > VECTOR_NAME_MAX)
        return p ? request_fail(r, 400, "vectors: a name has 1 to %d bytes", VECTOR_NAME_MAX) : false;
    if (json_given(body, "sparse")) {
        p->parts_sparse[0] = json_given(body, "sparse");
        p->parts[0] = layout_points_config(p->names[0]);
        return name_part(r, r->names[0], r->names[1], p->names[0]) && sparse_check_settings(r, p->parts_sparse[0]) &&
               vectors_permitted(r, p);
    }
    return name_part(r, r->names[0], r->names[1], p->names[0]) &&
           read_vector(r, dense ? dense : body, &p->parts[0], p->kinds) && vectors_permitted(r, p) &&
           settings_check_vector(r, dense ? dense : body);
}

/* Opens the collection with its vectors as they are now. Requests that run keep what they have. */
static void reopen(request *r)
{
    if (!changes_are_shared()) {
        entry_forget(r->server, r->entry->name);
        entry *again = entry_open(r->server, r->entry->name);
        if (again)
            entry_release(r->server, again);
    }
    request_result_true(r);
}

/* Makes the collection of the vector's values; one that has only vectors without names is split first. */
static ww_status add_vector(request *r)
{
    vectors_plan *p = r->plan;
    const char *body = json_root(r->body), *dense = json_given(body, "dense");
    ww_status status = r->entry->split ? WW_OK : layout_split(r);
    snprintf(p->names[0], sizeof p->names[0], "%s/%s", r->entry->name, r->names[1]); /* the path may have an alias */
    p->parts[0].name = p->names[0];
    if (status == WW_OK && !p->parts_sparse[0])
        status = settings_keep_vector(r->server, r->entry, r->names[1], dense ? dense : body);
    if (status == WW_OK)
        status = sparse_note(r->server, r->entry->name, r->names[1], p->parts_sparse[0]);
    if (status == WW_OK)
        status = note_kinds(r->server, r->entry->name, r->names[1], p->kinds);
    return status == WW_OK ? changes_create_collection(r->server, &p->parts[0], vectors_row_kind(p->parts_sparse[0], p->kinds))
                           : status;
}

void run_add_vector(request *r)
{
    const entry *e = r->entry;
    if (e->split && entry_part(e, r->names[1])) {
        request_fail(r, 409, "Wrong input: Vector `%s` already exists!", r->names[1]);
        return;
    }
    if (e->part_count >= VECTORS_MAX) {
        request_fail(r, 400, "vectors: more than %d names", VECTORS_MAX);
        return;
    }
    const ww_status status = add_vector(r);
    if (status == WW_OK)
        reopen(r);
    else
        request_fail_status(r, status);
}

void run_remove_vector(request *r)
{
    char name[300];
    const entry *e = r->entry;
    if (!e->split || !entry_part(e, r->names[1])) {
        request_fail(r, 404, "Not found: Vector `%s` doesn't exist!", r->names[1]);
        return;
    }
    /* Without any vector the points would be taken for a plain collection. */
    ww_status status = e->part_count == 1 ? layout_note(r->server, e->name, (layout){.split = true}) : WW_OK;
    snprintf(name, sizeof name, "%s/%s", e->name, r->names[1]);
    if (status == WW_OK)
        status = changes_drop_collection(r->server, name);
    if (status == WW_OK)
        status = settings_keep_vector(r->server, r->entry, r->names[1], NULL);
    if (status == WW_OK)
        status = sparse_note(r->server, r->entry->name, r->names[1], NULL);
    if (status == WW_OK)
        status = note_kinds(r->server, r->entry->name, r->names[1], (const bool[KIND_COUNT]){false});
    if (status == WW_OK)
        reopen(r);
    else
        request_fail_status(r, status);
}
