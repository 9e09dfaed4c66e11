/* Running operations on points: each is one transaction of the store, over all parts of a collection with named vectors. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/collections/strict.h"
#include "server/qdrant/operation.h"
#include "server/qdrant/payload.h"
#include "server/qdrant/select.h"
#include "server/work/changes.h"
#include "server/work/documents.h"

/* ---- upserts ------------------------------------------------------------------------------------------------------------- */

typedef struct place {
    const char *id;
    int64_t number;
} place;

static int compare_places(const void *first, const void *second)
{
    const place *a = first, *b = second;
    const int ids = strcmp(a->id, b->id);
    return ids != 0 ? ids : (a->number > b->number) - (a->number < b->number);
}

/* Keeps, in order, the points whose id does not occur again later; `kept` has room for all. */
static ww_status keep_last(const operation *o, int64_t *kept, int64_t *count)
{
    place *places = memory_alloc((size_t)(o->count + 1) * sizeof *places);
    char *replaced = memory_alloc_zeroed((size_t)o->count + 1, 1);
    const bool memory = places && replaced;
    for (int64_t i = 0; memory && i < o->count; i++)
        places[i] = (place){o->ids[i], i};
    if (memory && o->count > 1)
        qsort(places, (size_t)o->count, sizeof *places, compare_places);
    for (int64_t i = 0; memory && i + 1 < o->count; i++)
        if (strcmp(places[i].id, places[i + 1].id) == 0)
            replaced[places[i].number] = 1;
    *count = 0;
    for (int64_t i = 0; memory && i < o->count; i++)
        if (!replaced[i])
            kept[(*count)++] = i;
    memory_free(places);
    memory_free(replaced);
    return memory ? WW_OK : memory_failed("points", (size_t)o->count * sizeof *places);
}

static ww_status find_points(const entry *e, const operation *o, uint32_t fetch, ww_results **found);

/* The id of a point that was found with its payload; NULL if there is none, or none that the key sees. */
static const char *found_id(const operation *o, const ww_results *found, int64_t i)
{
    const char *id = ww_results_id(found, 0, i);
    return !id || !o->grant || filter_admits(o->grant->seen, id, ww_results_payload(found, 0, i)) ? id : NULL;
}

/* Fails, and the answer is 403. */
static ww_status forbid(const operation *o, const char *id, const char *why)
{
    *o->forbidden = true;
    return ww_fail(WW_INVALID_ARGUMENT, "the key may not write the point %s: %s", id, why);
}

/* May the key leave a point behind with this payload? */
static ww_status check_written(const operation *o, const char *id, const char *payload)
{
    return !o->grant || filter_admits(o->grant->written, id, payload)
               ? WW_OK
               : forbid(o, id, "its payload must have the values that the key sees, and no others beside them");
}

/* Checks that the points of an upsert are the key's, before and after. New vectors are for points that exist. */
static ww_status check_upsert(const entry *e, const operation *o)
{
    ww_results *there = NULL;
    if (!o->grant)
        return WW_OK;
    ww_status status = find_points(e, o, WW_FETCH_IDS | WW_FETCH_PAYLOADS, &there);
    for (int64_t i = 0; status == WW_OK && i < o->count; i++) {
        const char *id = o->ids[i];
        if (ww_results_id(there, 0, i) && !found_id(o, there, i))
            status = o->kind == OPERATION_UPSERT ? forbid(o, id, "it exists, and the key does not see it")
                                                 : ww_fail(WW_NOT_FOUND, "Not found: No point with id %s found", id);
        if (status == WW_OK && o->kind == OPERATION_UPSERT)
            status = check_written(o, id, o->payloads[i]);
    }
    ww_results_destroy(there);
    return status;
}

/* Keeps, in order, the points of an upsert that its mode and filter allow. */
static ww_status keep_changed(const entry *e, const operation *o, int64_t *kept, int64_t *count)
{
    ww_results *there = NULL;
    int64_t left = 0;
    if (o->mode == UPDATE_OR_INSERT && !o->update_filter.filter)
        return WW_OK;
    ww_filter *resolved = NULL;
    ww_status status = filter_resolve(e, &o->update_filter, &resolved);
    const ww_filter *filter = resolved ? resolved : o->update_filter.filter;
    if (status == WW_OK)
        status = find_points(e, o, WW_FETCH_IDS | WW_FETCH_PAYLOADS, &there);
    for (int64_t i = 0; status == WW_OK && i < *count; i++) {
        const char *id = ww_results_id(there, 0, kept[i]);
        int32_t admitted = id ? o->mode != INSERT_ONLY : o->mode != UPDATE_ONLY;
        if (id && admitted && filter)
            status = ww_filter_matches(filter, id, ww_results_payload(there, 0, kept[i]), &admitted);
        if (admitted)
            kept[left++] = kept[i];
    }
    *count = left;
    ww_filter_destroy(resolved);
    ww_results_destroy(there);
    return status;
}

/* The texts of rows that are written. */
typedef struct row_texts {
    const char **list; /* NULL: none */
    ww_results *old;   /* has those that stay */
} row_texts;

static void row_texts_free(row_texts *t)
{
    ww_results_destroy(t->old);
    memory_free(t->list);
}

/* Finds the texts of `count` rows: those that their vectors are made of, by their numbers. A point of which only the vector is
 * new, and not made of a text, keeps the text that it has. */
static ww_status row_texts_find(row_texts *t, const entry *e, const operation *o, const ww_rows *rows, const int64_t *numbers)
{
    *t = (row_texts){0};
    const bool keep = o->kind == OPERATION_UPDATE_VECTORS;
    if (rows->count == 0 || (!o->documents && !keep))
        return WW_OK;
    ww_status status = keep ? points_get(e, rows->ids, rows->count, WW_FETCH_TEXTS, &t->old) : WW_OK;
    if (status == WW_OK) {
        t->list = memory_alloc((size_t)rows->count * sizeof *t->list);
        status = t->list ? WW_OK : memory_failed("texts", (size_t)rows->count * sizeof *t->list);
    }
    for (int64_t i = 0; status == WW_OK && i < rows->count; i++)
        t->list[i] = numbers[i] >= 0 ? document_text(o->documents, numbers[i]) : keep ? ww_results_text(t->old, 0, i) : NULL;
    return status;
}

static ww_status upsert(entry *e, const operation *o)
{
    const size_t count = (size_t)o->count, dim = (size_t)o->dim;
    if (o->count == 0)
        return WW_OK;
    if (o->dim != e->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "Wrong input: Vector dimension error: expected dim: %d, got %lld", (int)e->dim,
                       (long long)o->dim);
    int64_t *kept = memory_alloc(2 * count * sizeof *kept), row_count = 0;
    const char **ids = memory_alloc(count * sizeof *ids), **payloads = memory_alloc(count * sizeof *payloads);
    ww_status status =
        kept && ids && payloads ? keep_last(o, kept, &row_count) : memory_failed("points", 4 * count * sizeof *kept);
    if (status == WW_OK)
        status = keep_changed(e, o, kept, &row_count);
    const bool fewer = status == WW_OK && row_count < o->count;
    float *packed = fewer ? memory_alloc(((size_t)row_count * dim + 1) * sizeof *packed) : NULL;
    int64_t *numbers = kept ? kept + count : NULL; /* of the rows' texts */
    if (fewer && !packed)
        status = memory_failed("points", (size_t)row_count * dim * sizeof *packed);
    for (int64_t i = 0; status == WW_OK && i < row_count; i++) {
        ids[i] = o->ids[kept[i]];
        payloads[i] = o->payloads[kept[i]];
        numbers[i] = o->texts[kept[i]];
        if (packed)
            memcpy(packed + (size_t)i * dim, o->vectors + (size_t)kept[i] * dim, dim * sizeof *packed);
    }
    ww_rows rows = ww_rows_default();
    row_texts texts = {0};
    rows.count = row_count;
    rows.dim = e->dim;
    rows.vectors = packed ? packed : o->vectors;
    rows.ids = ids;
    rows.payloads = o->kind == OPERATION_UPSERT ? payloads : NULL;
    if (status == WW_OK && o->documents) /* otherwise an upsert has no texts, and new vectors change none */
        status = row_texts_find(&texts, e, o, &rows, numbers);
    rows.texts = texts.list;
    if (status == WW_OK && o->kind == OPERATION_UPSERT)
        status = strict_admits(e, ids, row_count);
    if (status == WW_OK && row_count > 0)
        status = o->kind == OPERATION_UPSERT ? entry_upsert(e, &rows) : entry_update(e, &rows);
    row_texts_free(&texts);
    memory_free(packed);
    memory_free(kept);
    memory_free(ids);
    memory_free(payloads);
    return status;
}

/* ---- vectors with names -------------------------------------------------------------------------------------------------- */

/* Checks all names and sizes before anything is written. */
static ww_status check_named(const entry *e, const operation *o)
{
    if (!e->split && o->named_count == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "Wrong input: a vector is needed");
    for (int64_t i = 0; i < o->named_count; i++) {
        named_vector *v = &o->named[i];
        const entry *part = entry_part(e, v->name);
        v->part = part;
        if (part && !part->multi && v->multi.count > 0)
            return ww_fail(WW_INVALID_ARGUMENT, "Wrong input: the vector '%s' is not a multivector", v->name);
        if (part && part->multi && v->text >= 0)
            return ww_fail(WW_UNSUPPORTED, "Wrong input: the vector '%s' is a multivector, which no model makes of a text",
                           v->name);
        if (!part || part == e)
            return ww_fail(WW_INVALID_ARGUMENT, "Wrong input: Not existing vector name error: %s", v->name);
        if (part->sparse != v->is_sparse)
            return ww_fail(WW_INVALID_ARGUMENT, "Wrong input: the vector '%s' is %s", v->name,
                           part->sparse ? "sparse: indices and values are needed" : "not sparse");
        if (!part->sparse && part->dim != v->dim)
            return ww_fail(WW_DIMENSION_MISMATCH, "Wrong input: Vector dimension error: expected dim: %d, got %lld",
                           (int)part->dim, (long long)v->dim);
    }
    return WW_OK;
}

/* Rows of one part, or of the main collection. */
typedef struct part_rows {
    const char **ids, **payloads, **missing; /* missing: points without this vector */
    float *vectors;
    ww_sparse_vector *sparse; /* of a part with sparse vectors */
    ww_multivector *multi;    /* of a part with multivectors */
    int64_t *texts;           /* numbers of documents; -1: none */
    int64_t count, missing_count;
} part_rows;

static void part_rows_free(part_rows *rows)
{
    memory_free(rows->ids);
    memory_free(rows->payloads);
    memory_free(rows->missing);
    memory_free(rows->vectors);
    memory_free(rows->sparse);
    memory_free(rows->multi);
    memory_free(rows->texts);
}

static ww_status part_rows_make(part_rows *rows, int64_t count, int32_t dim)
{
    *rows = (part_rows){0};
    rows->ids = memory_alloc((size_t)(count + 1) * sizeof *rows->ids);
    rows->payloads = memory_alloc((size_t)(count + 1) * sizeof *rows->payloads);
    rows->missing = memory_alloc((size_t)(count + 1) * sizeof *rows->missing);
    rows->vectors = memory_alloc_zeroed((size_t)count * (size_t)dim + 1, sizeof *rows->vectors);
    rows->sparse = memory_alloc_zeroed((size_t)count + 1, sizeof *rows->sparse);
    rows->multi = memory_alloc_zeroed((size_t)count + 1, sizeof *rows->multi);
    rows->texts = memory_alloc((size_t)(count + 1) * sizeof *rows->texts);
    return rows->ids && rows->payloads && rows->missing && rows->vectors && rows->sparse && rows->multi && rows->texts
               ? WW_OK
               : memory_failed("points", (size_t)count * (size_t)dim * sizeof(float));
}

/* The payload of a point: that of the upsert, or for new vectors the existing one. */
static const char *payload_of(const operation *o, const ww_results *old, int64_t number)
{
    return old ? ww_results_payload(old, 0, number) : o->payloads[number];
}

/* Splits the points of `kept`, which ascend, into those with and those without the part's vector. */
static void part_rows_fill(part_rows *rows, const entry *part, const operation *o, const int64_t *kept, int64_t count)
{
    int64_t at = 0; /* named vectors are in the order of points */
    for (int64_t i = 0; i < count; i++) {
        const named_vector *found = NULL;
        for (; at < o->named_count && o->named[at].point <= kept[i]; at++)
            if (!found && o->named[at].point == kept[i] && o->named[at].part == part)
                found = &o->named[at];
        if (!found) {
            rows->missing[rows->missing_count++] = o->ids[kept[i]];
            continue;
        }
        const float *values = found->values     ? found->values
                              : found->row >= 0 ? o->vectors + found->row * o->dim
                                                : o->text_vectors + found->text_offset;
        if (part->sparse)
            rows->sparse[rows->count] = found->sparse;
        else if (part->multi) /* one vector is a multivector, too */
            rows->multi[rows->count] = found->multi.count > 0 ? found->multi : (ww_multivector){1, part->dim, values};
        else
            memcpy(rows->vectors + rows->count * part->dim, values, (size_t)part->dim * sizeof *values);
        rows->payloads[rows->count] =
            (const char *)(uintptr_t)kept[i]; /* the number of the point, until the payload is known */
        rows->texts[rows->count] = found->text;
        rows->ids[rows->count++] = o->ids[kept[i]];
    }
}

static ww_status upsert_rows(const entry *to, const operation *o, const part_rows *from)
{
    ww_rows rows = ww_rows_default();
    row_texts texts;
    rows.count = from->count;
    rows.dim = to->dim;
    rows.vectors = from->vectors;
    rows.ids = from->ids;
    rows.payloads = from->payloads;
    rows.sparse = to->sparse ? from->sparse : NULL;
    rows.multi = to->multi ? from->multi : NULL;
    ww_status status = row_texts_find(&texts, to, o, &rows, from->texts);
    rows.texts = texts.list;
    if (status == WW_OK && from->count > 0)
        status = entry_upsert(to, &rows);
    row_texts_free(&texts);
    return status;
}

/* Writes one part. Updating vectors leaves a point's other vectors alone; an upsert replaces them all. */
static ww_status upsert_part(const entry *part, const operation *o, const int64_t *kept, int64_t count, const ww_results *old)
{
    part_rows rows;
    ww_status status = part_rows_make(&rows, count, part->dim);
    if (status == WW_OK) {
        part_rows_fill(&rows, part, o, kept, count);
        for (int64_t i = 0; i < rows.count; i++)
            rows.payloads[i] = payload_of(o, old, (int64_t)(uintptr_t)rows.payloads[i]);
        status = upsert_rows(part, o, &rows);
    }
    if (status == WW_OK && o->kind == OPERATION_UPSERT && rows.missing_count > 0)
        status = entry_discard(part, rows.missing, rows.missing_count, NULL);
    part_rows_free(&rows);
    return status;
}

/* Writes the points themselves first, so that no vector is found without its point. */
static ww_status upsert_named(entry *e, const operation *o)
{
    part_rows points = {0};
    ww_results *old = NULL;
    int64_t count = 0;
    int64_t *kept = memory_alloc((size_t)(o->count + 1) * sizeof *kept);
    ww_status status = kept ? check_named(e, o) : memory_failed("points", (size_t)o->count * sizeof *kept);
    if (status == WW_OK)
        status = keep_last(o, kept, &count);
    if (status == WW_OK)
        status = keep_changed(e, o, kept, &count);
    if (status == WW_OK && o->kind == OPERATION_UPSERT)
        status = part_rows_make(&points, count, e->dim);
    for (int64_t i = 0; status == WW_OK && points.ids && i < count; i++) {
        points.ids[i] = o->ids[kept[i]];
        points.payloads[i] = o->payloads[kept[i]];
        points.texts[i] = -1;
        points.count++;
    }
    if (status == WW_OK && o->kind == OPERATION_UPSERT)
        status = strict_admits(e, points.ids, count);
    if (status == WW_OK)
        status = o->kind == OPERATION_UPSERT ? upsert_rows(e, o, &points)
                                             : find_points(e, o, WW_FETCH_IDS | WW_FETCH_PAYLOADS, &old);
    for (int64_t i = 0; status == WW_OK && old && i < o->count; i++)
        if (!ww_results_id(old, 0, i))
            status = ww_fail(WW_NOT_FOUND, "Not found: No point with id %s found", o->ids[i]);
    for (size_t i = 0; status == WW_OK && i < e->part_count; i++)
        status = upsert_part(&e->parts[i], o, kept, count, old);
    ww_results_destroy(old);
    part_rows_free(&points);
    memory_free(kept);
    return status;
}

/* ---- payloads ------------------------------------------------------------------------------------------------------------ */

/* Writes a payload without the values that the keys lead to. */
static void put_without_keys(out *all, const operation *o, const char *old)
{
    out from = {0}, to = {0};
    out_text(&from, old);
    for (size_t i = 0; i < o->key_count && !from.failed && !to.failed; i++) {
        to.length = 0;
        payload_put_without(&to, from.bytes, &o->keys[i]);
        out_bytes(&to, "", 1);
        const out swapped = from;
        from = to;
        to = swapped;
    }
    all->failed = all->failed || from.failed || to.failed;
    if (!all->failed)
        out_text(all, from.bytes);
    out_free(&from);
    out_free(&to);
}

/* Writes the new payload of a point, with a NUL after it. */
static void put_payload(out *all, const operation *o, const char *old)
{
    if (o->kind == OPERATION_OVERWRITE_PAYLOAD)
        out_text(all, o->payload);
    else if (o->kind == OPERATION_SET_PAYLOAD)
        payload_put_set(all, old, o->keys, o->payload);
    else if (o->kind == OPERATION_DELETE_PAYLOAD)
        put_without_keys(all, o, old ? old : "{}");
    out_bytes(all, "", 1);
}

/* Sets the same payloads in a part, for the points that it has. */
static ww_status set_part_payloads(const entry *part, const char **ids, const char **payloads, int64_t count)
{
    ww_results *there = NULL;
    const char **own_ids = memory_alloc((size_t)(count + 1) * sizeof *own_ids);
    const char **own_payloads = memory_alloc((size_t)(count + 1) * sizeof *own_payloads);
    int64_t own = 0;
    ww_status status = own_ids && own_payloads ? points_get(part, ids, count, WW_FETCH_IDS, &there)
                                               : memory_failed("payloads", (size_t)count * 2 * sizeof *own_ids);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        if (ww_results_id(there, 0, i)) {
            own_ids[own] = ids[i];
            own_payloads[own++] = payloads[i];
        }
    if (status == WW_OK && own > 0)
        status = entry_set_payloads(part, own_ids, own_payloads, own);
    ww_results_destroy(there);
    memory_free(own_ids);
    memory_free(own_payloads);
    return status;
}

/* Gives each of the points in `found` its new payload. */
static ww_status change_payloads(entry *e, const operation *o, const ww_results *found)
{
    const int64_t count = ww_results_count(found, 0);
    const char **ids = memory_alloc((size_t)(count + 1) * sizeof *ids);
    const char **payloads = memory_alloc((size_t)(count + 1) * sizeof *payloads);
    size_t *starts = memory_alloc((size_t)(count + 1) * sizeof *starts);
    ww_status status = ids && payloads && starts ? WW_OK : memory_failed("payloads", (size_t)count * 3 * sizeof *ids);
    out all = {0};
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        ids[i] = found_id(o, found, i);
        starts[i] = all.length;
        if (!ids[i])
            status = ww_fail(WW_NOT_FOUND, "Not found: No point with id %s found", o->ids[i]);
        else if (o->kind != OPERATION_CLEAR_PAYLOAD)
            put_payload(&all, o, ww_results_payload(found, 0, i));
        if (status == WW_OK && !all.failed)
            status = check_written(o, ids[i], o->kind == OPERATION_CLEAR_PAYLOAD ? NULL : all.bytes + starts[i]);
    }
    if (status == WW_OK && all.failed)
        status = memory_failed("payloads", all.length);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        payloads[i] = o->kind == OPERATION_CLEAR_PAYLOAD ? NULL : all.bytes + starts[i];
    if (status == WW_OK && count > 0)
        status = entry_set_payloads(e, ids, payloads, count);
    for (size_t i = 0; status == WW_OK && count > 0 && i < e->part_count; i++)
        status = set_part_payloads(&e->parts[i], ids, payloads, count);
    out_free(&all);
    memory_free(ids);
    memory_free(payloads);
    memory_free(starts);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------- */

/* The ids that an operation names (memory_free()); NULL: out of memory. */
static const char **list_ids(const operation *o)
{
    const char **ids = memory_alloc((size_t)(o->count + 1) * sizeof *ids);
    if (!ids)
        (void)memory_failed("ids", (size_t)o->count * sizeof *ids);
    for (int64_t i = 0; ids && i < o->count; i++)
        ids[i] = o->ids[i];
    return ids;
}

/* The points that an operation names, or its filter finds. */
static ww_status find_points(const entry *e, const operation *o, uint32_t fetch, ww_results **found)
{
    if (o->filter.filter)
        return rows_matching(e, &o->filter, fetch, found);
    const char **ids = list_ids(o);
    const ww_status status = ids ? points_get(e, ids, o->count, fetch, found) : WW_OUT_OF_MEMORY;
    memory_free(ids);
    return status;
}

/* A node with a part of the rows gets those that the operation names from the database. */
static ww_status find_absent(const entry *e, const operation *o)
{
    if (!changes_are_shared() || e->queue.server->config.follow.shards <= 1)
        return WW_OK;
    if (o->filter.filter)
        return ww_fail(WW_UNSUPPORTED, "changing points by a filter: not supported in a cluster with shards; list their ids");
    const char **ids = list_ids(o);
    const ww_status status = ids ? entry_load(e, ids, o->count) : WW_OUT_OF_MEMORY;
    memory_free(ids);
    return status;
}

/* Does the JSON list contain the text? */
static bool lists_name(const char *list, const char *name)
{
    for (const char *at = json_first(list); at; at = json_next(at))
        if (json_type_of(at) == JSON_TEXT && json_text_is(at, name, strlen(name)))
            return true;
    return false;
}

/* Deletes points, or only their vectors with some names. */
static ww_status delete_points(entry *e, const operation *o, const ww_results *found)
{
    const char *names = o->kind == OPERATION_DELETE ? NULL : o->vector_names;
    const int64_t count = ww_results_count(found, 0);
    const char **ids = memory_alloc((size_t)(count + 1) * sizeof *ids);
    int64_t there = 0;
    if (!ids)
        return memory_failed("ids", (size_t)count * sizeof *ids);
    for (int64_t i = 0; i < count; i++)
        if (found_id(o, found, i))
            ids[there++] = ww_results_id(found, 0, i);
    ww_status status = WW_OK;
    for (size_t i = 0; status == WW_OK && there > 0 && i < e->part_count; i++)
        if (!names || lists_name(names, e->parts[i].name))
            status = entry_discard(&e->parts[i], ids, there, NULL);
    if (status == WW_OK && there > 0 && !names)
        status = entry_discard(e, ids, there, NULL);
    memory_free(ids);
    return status;
}

/* Writes vectors without names to a collection that is split: there their name is "". */
static ww_status upsert_unnamed(entry *e, const operation *o)
{
    operation named = *o;
    named.named = memory_alloc((size_t)(o->count + 1) * sizeof *named.named);
    if (!named.named)
        return memory_failed("vectors", (size_t)o->count * sizeof *named.named);
    for (int64_t i = 0; i < o->count; i++)
        named.named[i] = (named_vector){.point = i, .dim = o->dim, .text = o->texts[i], .row = i};
    named.named_count = o->count;
    const ww_status status = upsert_named(e, &named);
    memory_free(named.named);
    return status;
}

ww_status operation_run(entry *e, const operation *o)
{
    ww_status checked = find_absent(e, o);
    if (checked == WW_OK && (o->kind == OPERATION_UPSERT || o->kind == OPERATION_UPDATE_VECTORS))
        checked = check_upsert(e, o);
    if (checked != WW_OK)
        return checked;
    if (o->kind == OPERATION_UPSERT || o->kind == OPERATION_UPDATE_VECTORS)
        return o->named ? upsert_named(e, o) : e->split ? upsert_unnamed(e, o) : upsert(e, o);
    if (o->kind == OPERATION_DELETE_VECTORS && !e->split)
        return ww_fail(WW_INVALID_ARGUMENT, "Wrong input: vectors of this collection have no names");
    ww_results *found = NULL;
    if (!o->filter.filter && o->count == 0)
        return WW_OK;
    ww_status status = find_points(e, o, WW_FETCH_IDS | WW_FETCH_PAYLOADS, &found);
    if (status == WW_OK)
        status = o->kind == OPERATION_DELETE || o->kind == OPERATION_DELETE_VECTORS ? delete_points(e, o, found)
                                                                                    : change_payloads(e, o, found);
    ww_results_destroy(found);
    return status;
}

bool operation_can_join(const operation *o)
{
    return !o->grant && !o->filter.filter && !o->update_filter.filter && o->mode == UPDATE_OR_INSERT && !o->bare;
}
