/* Changes, in the store or in the cluster. */
#include "server/work/changes.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/cluster/sql_writer.h"
#include "server/cluster/values.h"
#include "server/notes.h"
#include "server/reserve.h"
#include "server/route.h"

bool changes_are_shared(void)
{
    return sql_writer_here() != NULL;
}

/* ---- transactions -------------------------------------------------------------------------------------------------------- */

ww_status changes_begin(server *s)
{
    const bool within = sql_writer_here() != NULL;
    ww_status status = s->writer && !within ? sql_writer_begin(s->writer) : WW_OK;
    if (status != WW_OK)
        return status;
    status = ww_store_begin(s->store);
    if (status != WW_OK && s->writer && !within)
        sql_writer_rollback(s->writer);
    return status;
}

/* A route that is not batched commits to the cluster when it is done (changes_run). */
ww_status changes_commit(server *s)
{
    if (!s->writer)
        return ww_store_commit(s->store);
    const ww_status status = ww_store_rollback(s->store);
    if (s->shared_route)
        return status;
    if (status == WW_OK)
        return sql_writer_commit(s->writer);
    sql_writer_rollback(s->writer);
    return status;
}

void changes_rollback(server *s)
{
    (void)ww_store_rollback(s->store); /* the message stays that of the failure */
    if (s->writer && !s->shared_route)
        sql_writer_rollback(s->writer);
}

static void run_shared(request *r)
{
    server *s = r->server;
    ww_status status = sql_writer_begin(s->writer);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    s->shared_route = true;
    r->route->run(r);
    s->shared_route = false;
    if (r->status != 200) {
        sql_writer_rollback(s->writer);
        return;
    }
    status = sql_writer_commit(s->writer);
    if (status != WW_OK)
        request_fail_status(r, status);
}

void changes_run(request *list)
{
    const bool cluster = changes_cluster(list);
    if (!cluster || list->route->batched)
        list->route->run(list);
    else
        run_shared(list);
    for (request *r = list; cluster && r; r = r->next)
        pg_lsn_write(follower_lsn(r->server->follower), r->lsn);
}

bool changes_cluster(const request *r)
{
    return r->server->writer && route_changes(r->route) && !strstr(r->route->path, "/map/"); /* maps are the node's own */
}

bool changes_find_collection(request *r)
{
    entry *there = changes_cluster(r) ? entry_open(r->server, r->names[0]) : NULL;
    if (there || !changes_cluster(r)) {
        if (there)
            entry_release(r->server, there);
        return true;
    }
    const ww_status status = sql_writer_begin(r->server->writer);
    if (status != WW_OK)
        return request_fail_status(r, status);
    sql_writer_rollback(r->server->writer);
    return true;
}

bool changes_permitted(request *r)
{
    if (!r->server->config.follow.cluster || !route_changes(r->route))
        return true;
    if (strstr(r->route->path, "/snapshots"))
        return request_fail(r, 501,
                            "snapshots cannot be put into a cluster; the collections are in PostgreSQL, so use its backups");
    return true;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

ww_status entry_upsert(const entry *to, const ww_rows *rows)
{
    const ww_status status = ww_collection_upsert(to->collection, rows);
    return status == WW_OK && sql_writer_here() ? sql_writer_upsert(sql_writer_here(), to->stored, rows) : status;
}

ww_status entry_update(const entry *to, const ww_rows *rows)
{
    const ww_status status = ww_collection_update(to->collection, rows);
    return status == WW_OK && sql_writer_here() ? sql_writer_update(sql_writer_here(), to->stored, rows) : status;
}

ww_status entry_discard(const entry *to, const char *const *ids, int64_t count, int64_t *missing)
{
    const ww_status status = ww_collection_discard(to->collection, ids, count, missing);
    return status == WW_OK && sql_writer_here() ? sql_writer_discard(sql_writer_here(), to->stored, ids, count) : status;
}

ww_status entry_set_payloads(const entry *to, const char *const *ids, const char *const *payloads, int64_t count)
{
    const ww_status status = ww_collection_set_payloads(to->collection, ids, payloads, count);
    return status == WW_OK && sql_writer_here() ? sql_writer_set_payloads(sql_writer_here(), to->stored, ids, payloads, count)
                                                : status;
}

ww_status entry_load(const entry *of, const char *const *ids, int64_t count)
{
    if (!sql_writer_here() || of->queue.server->config.follow.shards <= 1)
        return WW_OK;
    ww_status status = sql_writer_load(sql_writer_here(), of->stored, of->collection, ids, count);
    for (size_t i = 0; status == WW_OK && i < of->part_count; i++)
        status = sql_writer_load(sql_writer_here(), of->parts[i].stored, of->parts[i].collection, ids, count);
    return status;
}

/* ---- collections and models ---------------------------------------------------------------------------------------------- */

ww_status changes_create_collection(server *s, const ww_collection_config *config, const char *kind)
{
    return sql_writer_here() ? sql_writer_create_collection(sql_writer_here(), config, kind)
                             : ww_store_create(s->store, config, NULL);
}

ww_status changes_drop_collection(server *s, const char *name)
{
    if (sql_writer_here())
        return sql_writer_drop_collection(sql_writer_here(), name);
    const ww_status status = ww_store_drop(s->store, name);
    return reserve_give(s, status) ? ww_store_drop(s->store, name) : status; /* also when the disk is full */
}

/* In a cluster the model is a note, "model/NAME", of which each node makes the store's own. */
ww_status changes_set_model(server *s, const char *collection, const ww_store_model *model)
{
    const char *const members[][2] = {{"name", model->name},
                                      {"fingerprint", model->fingerprint},
                                      {"query_prefix", model->query_prefix},
                                      {"document_prefix", model->document_prefix}};
    out name = {0}, value = {0};
    if (!s->writer)
        return ww_store_set_model(s->store, collection, model);
    out_format(&name, "model/%s", collection);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        out_format(&value, "%s\"%s\":", i > 0 ? "," : "{", members[i][0]);
        out_quoted(&value, members[i][1], strlen(members[i][1]));
    }
    out_text(&value, "}");
    ww_status status = name.failed || value.failed ? memory_failed("a note", value.length) : sql_writer_begin(s->writer);
    if (status == WW_OK) {
        status = notes_put(s, name.bytes, value.bytes);
        if (status == WW_OK)
            status = sql_writer_commit(s->writer);
        else
            sql_writer_rollback(s->writer);
    }
    out_free(&name);
    out_free(&value);
    return status;
}

static void read_member(const char *object, const char *key, char *text, size_t capacity)
{
    const char *value = json_find_field(object, key);
    text[0] = '\0';
    if (value && json_type_of(value) == JSON_TEXT && (size_t)(json_end(value) - value) <= capacity)
        text[json_text_read(value, text)] = '\0';
}

static void set_model(void *user, const char *rest, const char *value)
{
    server *s = user;
    ww_store_model model = ww_store_model_default();
    read_member(value, "name", model.name, sizeof model.name);
    read_member(value, "fingerprint", model.fingerprint, sizeof model.fingerprint);
    read_member(value, "query_prefix", model.query_prefix, sizeof model.query_prefix);
    read_member(value, "document_prefix", model.document_prefix, sizeof model.document_prefix);
    (void)ww_store_set_model(s->store, rest, &model); /* of a collection that is gone by now */
}

ww_status changes_read_models(server *s)
{
    return notes_each(s, "model/", set_model, s);
}

/* ---- what comes back ----------------------------------------------------------------------------------------------------- */

/* Collections of the store are NAME and NAME/VECTOR, notes of one collection KIND/NAME and KIND/NAME/MORE: whatever has one of
 * these names is opened again. */
static void forget(server *s, const char *name, size_t length)
{
    char text[256]; /* longer than any name */
    if (length >= sizeof text)
        return;
    memcpy(text, name, length);
    text[length] = '\0';
    entry_forget(s, text);
}

void changes_came(void *user, const char *name)
{
    server *s = user;
    const char *slash = strchr(name, '/');
    if (strncmp(name, "alias:", 6) == 0) {
        (void)aliases_load(s); /* after a failure the old ones stay */
        return;
    }
    if (strncmp(name, "model/", 6) == 0)
        (void)changes_read_models(s);
    forget(s, name, slash ? (size_t)(slash - name) : strlen(name));
    if (slash)
        forget(s, slash + 1, strcspn(slash + 1, "/"));
}
