/* Keeping the store like the schema `warpwave`. */
#include "server/cluster/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "server/cluster/follow_state.h"
#include "server/nodes/nodes.h"
#include "server/notes.h"

#define NUMBER_NOTE "cluster"

const table_config shared_tables[SHARED_TABLES] = {
    [SHARED_COLLECTIONS] = {.collection = "collections",
                            .table = "warpwave.collections",
                            .payload = "name,dim,metric,type",
                            .raw = true},
    [SHARED_NOTES] = {.collection = "notes", .table = "warpwave.notes", .payload = "value", .raw = true},
    [SHARED_POINTS] = {.collection = "points",
                       .table = "warpwave.points",
                       .vector = "vector",
                       .text = "text",
                       .payload = "payload",
                       .raw = true}};

/* Whatever several nodes make at the same time they make one after the other. Vectors do not shrink by compression, and a text
 * may be anything, so ids are compared byte by byte. */
static const char schema_sql[] =
    "BEGIN; SELECT pg_advisory_xact_lock(" NODES_LOCK_CLASS ", 0); CREATE SCHEMA IF NOT EXISTS warpwave; "
    "CREATE TABLE IF NOT EXISTS warpwave.collections (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text "
    "COLLATE "
    "\"C\" NOT NULL UNIQUE, dim int NOT NULL, metric text NOT NULL, type text NOT NULL); "
    "CREATE TABLE IF NOT EXISTS warpwave.notes (name text COLLATE \"C\" PRIMARY KEY, value json NOT NULL); "
    "CREATE TABLE IF NOT EXISTS warpwave.points (collection bigint REFERENCES warpwave.collections ON DELETE CASCADE, id text "
    "COLLATE \"C\", vector bytea NOT NULL, text text, payload json, PRIMARY KEY (collection, id)); "
    "CREATE TABLE IF NOT EXISTS warpwave.commits (node text PRIMARY KEY, token bigint NOT NULL); "
    "ALTER TABLE warpwave.points ALTER COLUMN vector SET STORAGE EXTERNAL; COMMIT";

/* A collection of the store. */
typedef struct shared_collection {
    int64_t number;
    followed_table table; /* what the applier needs to know of it */
} shared_collection;

struct shared_schema {
    ww_store *store;
    shared_collection **list; /* by number */
    int32_t count, capacity;
    out touched; /* names that have changed since the last commit, each with a NUL */
};

/* ---- the schema ---------------------------------------------------------------------------------------------------------- */

ww_status shared_make_schema(PGconn *sql)
{
    PGresult *row = NULL;
    ww_status status = pg_run(sql, "warpwave", "SELECT (to_regclass('warpwave.points') IS NOT NULL)::int", NULL, &row);
    const bool made = status == WW_OK && strcmp(pg_field(row, 0, 0), "1") == 0;
    PQclear(row);
    if (status != WW_OK || made)
        return status;
    status = pg_do(sql, "CREATE SCHEMA warpwave", schema_sql);
    if (status == WW_OK)
        return WW_OK;
    PQclear(PQexec(sql, "ROLLBACK"));
    return status;
}

/* A row of the table of collections. */
typedef struct description {
    int64_t number;
    char name[SHARED_NAME_MAX + 1];
    int32_t dim;
    ww_metric metric;
    ww_vector_type type;
    row_kind kind;
} description;

/* As they follow the type, "f32 sparse". */
static const char *const kind_names[ROW_KINDS] = {[ROWS_DENSE] = "", [ROWS_SPARSE] = " sparse", [ROWS_MULTI] = " multi"};

static bool read_kind(const char *text, row_kind *kind)
{
    for (int i = 0; i < ROW_KINDS; i++)
        if (strcmp(text, kind_names[i]) == 0) {
            *kind = (row_kind)i;
            return true;
        }
    return false;
}

/* ---- the list ------------------------------------------------------------------------------------------------------------ */

/* Sets up what is known of a collection; rows have an id, a vector, a text and a payload. */
static void describe(shared_collection *c, const description *d)
{
    followed_table *t = &c->table;
    c->number = d->number;
    text_copy(t->collection, sizeof t->collection, d->name);
    text_copy(t->schema, sizeof t->schema, "warpwave");
    text_copy(t->name, sizeof t->name, "points");
    t->metric = d->metric;
    t->dim = d->dim;
    t->kind = d->kind;
    t->key_count = t->payload_count = t->shards = 1;
    t->vector_form = VECTOR_BYTES;
    t->has_text = t->whole_payload = true;
    t->order = d->number;
}

static ww_status insert(shared_schema *m, const description *d)
{
    if (m->count == m->capacity) {
        const int32_t larger = m->capacity > 0 ? 2 * m->capacity : 16;
        shared_collection **list = memory_resize(m->list, (size_t)larger * sizeof(shared_collection *));
        if (!list)
            return memory_failed("a list of collections", (size_t)larger * sizeof *list);
        m->list = list;
        m->capacity = larger;
    }
    shared_collection *c = memory_alloc_zeroed(1, sizeof *c);
    if (!c)
        return memory_failed("a collection", sizeof *c);
    describe(c, d);
    int32_t at = m->count++;
    for (; at > 0 && m->list[at - 1]->number > d->number; at--)
        m->list[at] = m->list[at - 1];
    m->list[at] = c;
    return WW_OK;
}

static shared_collection *find(const shared_schema *m, int64_t number)
{
    int32_t low = 0, high = m->count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (m->list[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->count && m->list[low]->number == number ? m->list[low] : NULL;
}

static void touch(shared_schema *m, const char *name)
{
    out_bytes(&m->touched, name, strlen(name) + 1);
}

void shared_tell(follower *f)
{
    shared_schema *m = f->shared;
    for (size_t at = 0; m && at < m->touched.length; at += strlen(m->touched.bytes + at) + 1)
        f->listener.touched(f->listener.user, m->touched.bytes + at);
    if (m)
        m->touched.length = 0;
}

/* ---- the store ----------------------------------------------------------------------------------------------------------- */

/* The number of a collection of the store; 0: it has none. */
static ww_status read_number(ww_store *store, const char *name, int64_t *number, row_kind *kind)
{
    char text[WW_NOTE_BYTES] = "", *end = text;
    const ww_status status = ww_store_get_note(store, name, NUMBER_NOTE, text);
    *number = status == WW_OK ? strtoll(text, &end, 10) : 0;
    *kind = ROWS_DENSE;
    (void)read_kind(end, kind);
    return status == WW_NOT_FOUND ? WW_OK : status;
}

/* Calls `take` for each collection of the store but the notes. */
static ww_status each_stored(ww_store *store, ww_status (*take)(void *user, const description *d), void *user)
{
    ww_results *list = NULL;
    ww_status status = ww_store_list(store, &list);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(list, 0); i++) {
        const char *name = ww_results_id(list, 0, i);
        description d = {.number = 0};
        if (strcmp(name, NOTES_COLLECTION) == 0)
            continue;
        text_copy(d.name, sizeof d.name, name);
        status = read_number(store, name, &d.number, &d.kind);
        if (status == WW_OK)
            status = take(user, &d);
    }
    ww_results_destroy(list);
    return status;
}

/* A collection without a number and without rows is left from a start that was killed. */
static ww_status check_own(void *user, const description *d)
{
    ww_collection *collection = NULL;
    if (d->number > 0)
        return WW_OK;
    const ww_status status = ww_store_collection(user, d->name, &collection);
    const int64_t rows = status == WW_OK ? ww_collection_count(collection) : 0;
    ww_collection_destroy(collection);
    return rows == 0 ? status
                     : ww_fail(WW_INVALID_ARGUMENT,
                               "the file has a collection '%s' of its own, with rows; with --cluster it is a cache of the "
                               "database, so give another file, and copy the points through the API",
                               d->name);
}

ww_status shared_create(ww_store *store, shared_schema **made)
{
    shared_schema *m = memory_alloc_zeroed(1, sizeof *m);
    if (!m)
        return memory_failed("a cluster", sizeof *m);
    m->store = store;
    const ww_status status = each_stored(store, check_own, store);
    if (status == WW_OK)
        *made = m;
    else
        shared_destroy(m);
    return status;
}

void shared_destroy(shared_schema *m)
{
    for (int32_t i = 0; m && i < m->count; i++)
        memory_free(m->list[i]);
    if (!m)
        return;
    memory_free(m->list);
    out_free(&m->touched);
    memory_free(m);
}

static ww_status take_stored(void *user, const description *stored)
{
    description d = *stored;
    shared_schema *m = ((follower *)user)->shared;
    ww_collection_info info = ww_collection_info_default();
    ww_collection *collection = NULL;
    if (d.number == 0 || find(m, d.number))
        return WW_OK;
    ww_status status = ww_store_collection(m->store, d.name, &collection);
    if (status == WW_OK)
        status = ww_collection_describe(collection, &info);
    ww_collection_destroy(collection);
    d.dim = info.dim;
    d.metric = info.metric;
    return status == WW_OK ? insert(m, &d) : status;
}

/* The applier counts all collections in its digest, so it knows them from the beginning. */
ww_status shared_read_store(follower *f)
{
    ww_status status = each_stored(f->shared->store, take_stored, f);
    for (int32_t i = 0; status == WW_OK && i < f->shared->count; i++) {
        ww_collection *collection = NULL;
        status = applier_collection(f->applier, &f->shared->list[i]->table, &collection);
    }
    return status;
}

/* ---- collections --------------------------------------------------------------------------------------------------------- */

static ww_status drop_at(follower *f, int32_t at)
{
    shared_schema *m = f->shared;
    shared_collection *c = m->list[at];
    applier_forget(f->applier, &c->table);
    const ww_status status = ww_store_drop(m->store, c->table.collection);
    if (status != WW_OK && status != WW_NOT_FOUND)
        return status;
    touch(m, c->table.collection);
    memmove(m->list + at, m->list + at + 1, (size_t)(--m->count - at) * sizeof *m->list);
    memory_free(c);
    return WW_OK;
}

/* Drops the collection with this number, or with this name. */
static ww_status drop(follower *f, int64_t number, const char *name)
{
    ww_status status = WW_OK;
    for (int32_t i = f->shared->count - 1; status == WW_OK && i >= 0; i--)
        if (f->shared->list[i]->number == number || strcmp(f->shared->list[i]->table.collection, name) == 0)
            status = drop_at(f, i);
    return status;
}

static bool read_types(description *d, const char *metric, const char *type)
{
    bool known_metric = false, known_type = false;
    for (int i = WW_COSINE; !known_metric && i <= WW_DOT; i++) {
        d->metric = (ww_metric)i;
        known_metric = strcmp(ww_metric_name(d->metric), metric) == 0;
    }
    for (int i = WW_VECTOR_F32; !known_type && i <= WW_VECTOR_U8; i++) {
        const char *name = ww_vector_type_name((ww_vector_type)i);
        d->type = (ww_vector_type)i;
        known_type = strncmp(type, name, strlen(name)) == 0 && read_kind(type + strlen(name), &d->kind);
    }
    return known_metric && known_type;
}

/* Makes the collection, unless the store has it. The number comes last: a collection without it means nothing. */
static ww_status make(follower *f, const description *d)
{
    shared_schema *m = f->shared;
    char number[40];
    ww_collection_config config = ww_collection_config_default();
    if (find(m, d->number))
        return WW_OK;
    ww_status status = drop(f, 0, d->name);
    if (status == WW_OK)
        status = ww_store_drop(m->store, d->name);
    config.name = d->name;
    config.dim = d->dim;
    config.metric = d->metric;
    config.type = d->type;
    if (status == WW_OK || status == WW_NOT_FOUND)
        status = ww_store_create(m->store, &config, NULL);
    snprintf(number, sizeof number, "%lld%s", (long long)d->number, kind_names[d->kind]);
    if (status == WW_OK)
        status = ww_store_set_note(m->store, d->name, NUMBER_NOTE, number);
    if (status == WW_OK)
        status = insert(m, d);
    ww_collection *collection = NULL;
    if (status == WW_OK)
        status = applier_collection(f->applier, &find(m, d->number)->table, &collection);
    touch(m, d->name);
    return status;
}

static void copy_value(char *text, size_t capacity, const pg_value *value)
{
    const size_t length = value->presence != PG_TEXT ? 0 : value->length < capacity ? value->length : capacity - 1;
    memcpy(text, value->bytes ? value->bytes : "", length);
    text[length] = '\0';
}

static int64_t number_of(const pg_value *value)
{
    char text[24];
    copy_value(text, sizeof text, value);
    return strtoll(text, NULL, 10);
}

/* A row of the stream, in the order of shared_tables. */
static ww_status make_of_row(follower *f, const table_row *row)
{
    char dim[16], metric[16], type[16];
    description d = {.number = number_of(row->keys[0])};
    copy_value(d.name, sizeof d.name, row->payload[0]);
    copy_value(dim, sizeof dim, row->payload[1]);
    copy_value(metric, sizeof metric, row->payload[2]);
    copy_value(type, sizeof type, row->payload[3]);
    d.dim = (int32_t)strtol(dim, NULL, 10);
    if (!read_types(&d, metric, type))
        return ww_fail(WW_UNSUPPORTED,
                       "the collection '%s' has the metric %s and the type %s, which this version does not know", d.name,
                       metric, type);
    return make(f, &d);
}

/* ---- the copy ------------------------------------------------------------------------------------------------------------ */

static bool is_listed(const PGresult *rows, int64_t number)
{
    for (int i = 0; i < PQntuples(rows); i++)
        if (strtoll(pg_field(rows, i, 0), NULL, 10) == number)
            return true;
    return false;
}

static ww_status make_listed(follower *f, const PGresult *rows)
{
    ww_status status = WW_OK;
    for (int32_t i = f->shared->count - 1; status == WW_OK && i >= 0; i--)
        if (!is_listed(rows, f->shared->list[i]->number))
            status = drop_at(f, i);
    for (int i = 0; status == WW_OK && i < PQntuples(rows); i++) {
        pg_value values[5];
        table_row row = {.keys = {values}, .payload = {values + 1, values + 2, values + 3, values + 4}};
        for (int column = 0; column < 5; column++)
            values[column] = (pg_value){PG_TEXT, pg_field(rows, i, column), (size_t)PQgetlength(rows, i, column)};
        status = make_of_row(f, &row);
    }
    return status;
}

ww_status shared_begin_copy(follower *f)
{
    PGresult *rows = NULL;
    ww_status status = pg_run(f->sql, "warpwave.collections",
                              "SELECT number, name, dim, metric, type FROM warpwave.collections ORDER BY number", NULL, &rows);
    if (status == WW_OK)
        status = make_listed(f, rows);
    PQclear(rows);
    if (status == WW_OK)
        status = applier_clear_notes(f->applier);
    touch(f->shared, "alias:");
    for (int32_t i = 0; status == WW_OK && i < f->shared->count; i++) {
        touch(f->shared, f->shared->list[i]->table.collection);
        status = applier_clear(f->applier, &f->shared->list[i]->table);
    }
    return status;
}

/* ---- changes ------------------------------------------------------------------------------------------------------------- */

static ww_status apply_collection(follower *f, const table_row *old, const table_row *row)
{
    const ww_status status = old ? drop(f, number_of(old->keys[0]), "") : WW_OK;
    return status == WW_OK && row ? make_of_row(f, row) : status;
}

static ww_status apply_note(follower *f, const table_row *old, const table_row *row)
{
    const pg_value *name = old ? old->keys[0] : row->keys[0], *value = row ? row->payload[0] : NULL;
    ww_status status = WW_OK;
    if (old || (value && value->presence == PG_TEXT))
        status = applier_note(f->applier, name, old ? NULL : value);
    if (status == WW_OK && name->presence == PG_TEXT) {
        out_bytes(&f->shared->touched, name->bytes, name->length);
        out_bytes(&f->shared->touched, "", 1);
    }
    return status == WW_OK && old && row ? apply_note(f, NULL, row) : status;
}

/* Points of collections that are gone are removed with them, or were never to be shown. */
static ww_status apply_point(follower *f, const row_source *from, const table_row *old, const table_row *row)
{
    const shared_collection *before = old ? find(f->shared, number_of(old->keys[0])) : NULL;
    const shared_collection *now = row ? find(f->shared, number_of(row->keys[0])) : NULL;
    table_row old_point, point;
    ww_status status = WW_OK;
    if (before) {
        old_point.keys[0] = old->keys[1];
        status = applier_remove(f->applier, &before->table, &old_point);
    }
    if (status != WW_OK || !now)
        return status;
    const row_source of_collection = {&now->table, from->lsn, from->connection};
    point.keys[0] = row->keys[1];
    point.vector = row->vector;
    point.text = row->text;
    point.payload[0] = row->payload[0];
    return applier_change(f->applier, &of_collection, NULL, &point);
}

ww_status shared_apply(follower *f, int table, const row_source *from, const table_row *old, const table_row *row)
{
    switch (table) {
    case SHARED_COLLECTIONS:
        return apply_collection(f, old, row);
    case SHARED_NOTES:
        return apply_note(f, old, row);
    default:
        return apply_point(f, from, old, row);
    }
}

ww_status shared_truncate(follower *f, int table)
{
    ww_status status = WW_OK;
    if (table == SHARED_NOTES) {
        touch(f->shared, "alias:");
        status = applier_clear_notes(f->applier);
    }
    for (int32_t i = f->shared->count - 1; status == WW_OK && i >= 0; i--)
        if (table == SHARED_COLLECTIONS)
            status = drop_at(f, i);
        else if (table == SHARED_POINTS)
            status = applier_clear(f->applier, &f->shared->list[i]->table);
        else
            touch(f->shared, f->shared->list[i]->table.collection);
    return status;
}
