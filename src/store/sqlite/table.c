/* The virtual table as a whole. */
#include "store/sqlite/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "store/sqlite/functions.h"
#include "store/texts/texts.h"

/* Suffixes of the tables behind it: NAME_rows, ... */
static const char *const SUFFIXES[] = {"rows",     "vectors",   "removed", "ivf",           "ivf_lists",     "ivf_centroids",
                                       "ivf_rows", "ivf_rules", "sparse",  "sparse_blocks", "sparse_pending"};

enum { MESSAGE_BYTES = 1024 };

static const char REENTERED[] =
    "a trigger, a foreign key action or a view uses the table while its own tables are read or written; drop it";

int table_refuse(table *t, int code, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sqlite3_free(t->base.zErrMsg);
    t->base.zErrMsg = sqlite3_mprintf("%s: %s", t->name, text);
    return t->base.zErrMsg ? code : SQLITE_NOMEM;
}

int table_failed(table *t, ww_status status)
{
    if (status == WW_OK || status == WW_OUT_OF_MEMORY)
        return value_result_code(status);
    if (t->reentered && !t->busy)
        return table_refuse(t, SQLITE_ERROR, "%s", REENTERED);
    char message[MESSAGE_BYTES];
    text_without_calls(message, sizeof message, ww_error_message());
    return table_refuse(t, value_result_code(status), "%s", message);
}

void table_close_writer(table *t)
{
    writer_close(t->writer);
    t->writer = NULL;
    t->shadow_is_checked = false;
}

/* Releases everything except the table itself; afterwards the table has nothing open on the connection. */
static void table_release(table *t)
{
    kept_filters_clear(&t->filters);
    table_close_writer(t);
    view_close(t->view);
    t->view = NULL;
    t->read_by = 0;
}

static void table_free(table *t)
{
    table_release(t);
    vector_buffer_free(&t->vector);
    sparse_text_free(&t->sparse);
    memory_free(t->schema);
    memory_free(t->name);
    sqlite3_free(t->base.zErrMsg);
    memory_free(t);
}

ww_status table_open(sqlite3 *db, const char *schema, const char *name, const collection_record *record, table **opened)
{
    table *t = memory_alloc_zeroed(1, sizeof *t);
    if (!t)
        return memory_failed("a table", sizeof *t);
    t->db = db;
    t->schema = memory_copy_text(schema, strlen(schema));
    t->name = memory_copy_text(name, strlen(name));
    t->arguments = (table_arguments){.dim = record->dim, .metric = record->metric, .type = record->type};
    text_copy(t->arguments.device, sizeof t->arguments.device, "auto");
    if (t->schema && t->name) {
        *opened = t;
        return WW_OK;
    }
    table_free(t);
    return memory_failed("a table", strlen(schema) + strlen(name));
}

void table_close(table *t)
{
    if (t)
        table_free(t);
}

ww_status table_check_model(const table *t, sqlite3_value *vector)
{
    sqlite3_stmt *found = NULL;
    const void *bytes = sqlite3_value_type(vector) == SQLITE_BLOB ? sqlite3_value_blob(vector) : NULL;
    if (!bytes || !t->embedder || !embedder_made(t->embedder, bytes, (size_t)sqlite3_value_bytes(vector)))
        return WW_OK;
    ww_status status = schema_statement(t->db, &found,
                                        "SELECT m.name, m.fingerprint FROM \"%w\".warpwave_models AS m JOIN "
                                        "\"%w\".warpwave_collections AS c ON c.uid = m.uid WHERE c.name = %Q",
                                        t->schema, t->schema, t->name);
    if (status == WW_CORRUPT_FILE)
        return WW_OK; /* without the table of models no model is stored */
    if (status == WW_OK && sqlite3_step(found) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(found, 0), *kept = (const char *)sqlite3_column_text(found, 1);
        const char *made = embedder_fingerprint(t->embedder);
        if (kept && strcmp(kept, made) != 0)
            status = ww_fail(
                WW_INVALID_ARGUMENT,
                "its vectors were made by the model '%s' (%.16s...), and ww_embed() uses another one (%.16s...), whose vectors "
                "cannot be compared with them",
                name ? name : "", kept, made);
    }
    sqlite3_finalize(found);
    return status;
}

static ww_status open_view(table *t, bool uncertain)
{
    const view_config config = {
        .db = t->db, .schema = t->schema, .name = t->name, .device_name = t->arguments.device, .rows = t->arguments.rows};
    const ww_status status = view_open(&config, &t->view);
    if (status == WW_OK && uncertain)
        view_uncertain(t->view);
    return status;
}

/* A view opened in the middle of a write transaction cannot know whether the transaction has changed the collection. */
ww_status table_view(table *t, view **opened)
{
    const ww_status status =
        t->view ? WW_OK : open_view(t, t->uncertain || sqlite3_txn_state(t->db, t->schema) == SQLITE_TXN_WRITE);
    *opened = t->view;
    return status;
}

ww_status table_writer(table *t, writer **opened)
{
    ww_status status = t->writer ? WW_OK : writer_open(t->db, t->schema, t->name, &t->writer);
    *opened = t->writer;
    return status;
}

ww_status table_enter(table *t)
{
    t->reentered = t->busy;
    if (t->busy)
        return ww_fail(WW_INVALID_ARGUMENT, "%s", REENTERED);
    t->busy = true;
    return WW_OK;
}

void table_leave(table *t)
{
    t->busy = false;
}

/* The arguments must agree with the collection; missing ones are taken from it. */
static ww_status table_agree(table *t, const collection_record *record)
{
    table_arguments *said = &t->arguments;
    if (said->dim != 0 && said->dim != record->dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "dim=%d, but the existing collection has dim=%d", said->dim, record->dim);
    if (said->metric_given && said->metric != record->metric)
        return ww_fail(WW_INVALID_ARGUMENT, "metric=%s, but the existing collection has metric=%s",
                       ww_metric_name(said->metric), ww_metric_name(record->metric));
    if (said->type_given && said->type != record->type)
        return ww_fail(WW_INVALID_ARGUMENT, "type=%s, but the existing collection has type=%s", value_type_name(said->type),
                       value_type_name(record->type));
    said->dim = record->dim;
    said->metric = record->metric;
    said->type = record->type;
    return WW_OK;
}

/* Must be called before the first change of a transaction, while everything in the file is committed: later nobody can tell. */
static ww_status table_changes(table *t)
{
    const ww_status status = t->view ? WW_OK : open_view(t, t->uncertain);
    return status == WW_OK ? view_changed_first(t->view) : status;
}

/* Creates the tables behind a new virtual table, or takes over those that a store created. */
static ww_status table_make(table *t)
{
    collection_record record;
    ww_status status = schema_prepare(t->db, t->schema);
    if (status == WW_OK)
        status = schema_find(t->db, t->schema, t->name, &record);
    if (status == WW_OK)
        return table_agree(t, &record);
    if (status != WW_NOT_FOUND)
        return status;
    if (t->arguments.dim == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "dim is missing; write USING warpwave(dim=384)");
    ww_collection_config config = ww_collection_config_default();
    config.name = t->name;
    config.dim = t->arguments.dim;
    config.metric = t->arguments.metric;
    config.type = t->arguments.type;
    status = schema_create(t->db, t->schema, &config, true, NULL);
    t->uncertain = false; /* no other connection has this collection */
    return status == WW_OK ? table_changes(t) : status;
}

ww_status table_check_record(const table *t, const collection_record *record)
{
    if (record->dim == t->arguments.dim && record->metric == t->arguments.metric && record->type == t->arguments.type)
        return WW_OK;
    return ww_fail(WW_CORRUPT_FILE,
                   "the table was made with dim=%d, metric=%s, type=%s, and its record says dim=%d, metric=%s, type=%s",
                   t->arguments.dim, ww_metric_name(t->arguments.metric), value_type_name(t->arguments.type), record->dim,
                   ww_metric_name(record->metric), value_type_name(record->type));
}

/* A table whose collection is damaged or missing can be connected, so that it can be dropped; reading or writing it fails with
 * the reason. */
static ww_status table_find(table *t)
{
    collection_record record;
    const ww_status status = schema_find(t->db, t->schema, t->name, &record);
    if (status == WW_OK)
        (void)table_agree(t, &record);
    return status == WW_OUT_OF_MEMORY || status == WW_BUSY ? status : WW_OK;
}

static int refuse_new(ww_status status, char **message)
{
    char text[MESSAGE_BYTES];
    text_without_calls(text, sizeof text, ww_error_message());
    if (status != WW_OUT_OF_MEMORY)
        *message = sqlite3_mprintf("warpwave: %s", text);
    return value_result_code(status);
}

/* The last column, for commands, has the table's name. It is left out if another column has that name. */
static int declare(sqlite3 *db, const char *name)
{
    static const char *const NAMES[] = {"id",    "vector",   "payload", "query",  "k",      "radius", "filter", "parameters",
                                        "score", "distance", "text",    "nprobe", "recall", "proven", "sparse", "modifier"};
    bool taken = false;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        taken = taken || sqlite3_stricmp(name, NAMES[i]) == 0;
    char *text =
        taken ? sqlite3_mprintf("%s)", TABLE_DECLARATION) : sqlite3_mprintf("%s, \"%w\" HIDDEN)", TABLE_DECLARATION, name);
    const int code = text ? sqlite3_declare_vtab(db, text) : SQLITE_NOMEM;
    sqlite3_free(text);
    return code;
}

/* `texts` are the module, the database, the table, then the arguments. */
static int table_start(sqlite3 *db, const void *user, int count, const char *const *texts, bool make, sqlite3_vtab **vtab,
                       char **message)
{
    FLOAT_GUARD();
    table *t = memory_alloc_zeroed(1, sizeof *t);
    if (!t)
        return SQLITE_NOMEM;
    t->db = db;
    t->embedder = user;
    t->schema = memory_copy_text(texts[1], strlen(texts[1]));
    t->name = memory_copy_text(texts[2], strlen(texts[2]));
    t->uncertain = sqlite3_txn_state(db, texts[1]) == SQLITE_TXN_WRITE;
    ww_status status = t->schema && t->name ? WW_OK : memory_failed("a table", 0);
    if (status == WW_OK)
        status = arguments_read(texts + 3, count - 3, &t->arguments);
    if (status == WW_OK)
        status = make ? table_make(t) : table_find(t);
    int code = status == WW_OK ? declare(db, t->name) : refuse_new(status, message);
    if (code == SQLITE_OK)
        code = sqlite3_vtab_config(db, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
    if (code == SQLITE_OK)
        *vtab = &t->base;
    else
        table_free(t);
    return code;
}

static int table_create(sqlite3 *db, void *user, int count, const char *const *texts, sqlite3_vtab **vtab, char **message)
{
    return table_start(db, user, count, texts, true, vtab, message);
}

static int table_connect(sqlite3 *db, void *user, int count, const char *const *texts, sqlite3_vtab **vtab, char **message)
{
    return table_start(db, user, count, texts, false, vtab, message);
}

static int table_disconnect(sqlite3_vtab *vtab)
{
    table_free((table *)vtab);
    return SQLITE_OK;
}

/* Drops the tables of a collection whose record is missing. */
static ww_status drop_remains(const table *t)
{
    ww_status status = texts_drop(&(text_tables){t->db, t->schema, t->name});
    for (size_t i = 0; status == WW_OK && i < sizeof SUFFIXES / sizeof *SUFFIXES; i++)
        status = schema_run(t->db, "DROP TABLE IF EXISTS \"%w\".\"%w_%s\"", t->schema, t->name, SUFFIXES[i]);
    return status;
}

static int table_destroy(sqlite3_vtab *vtab)
{
    table *t = (table *)vtab;
    ww_status status = table_enter(t);
    if (status != WW_OK)
        return table_failed(t, status);
    table_release(t);
    status = schema_drop(t->db, t->schema, t->name);
    if (status == WW_NOT_FOUND || status == WW_CORRUPT_FILE) /* WW_CORRUPT_FILE: the table of records is missing or damaged */
        status = drop_remains(t);
    table_leave(t);
    if (status == WW_OK) {
        table_free(t);
        return SQLITE_OK;
    }
    const int code = table_failed(t, status);
    if (t->base.zErrMsg) /* DROP TABLE is the only statement for which SQLite does not take the table's message */
        sqlite3_log(code, "%s", t->base.zErrMsg);
    return code;
}

static int table_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    table *t = (table *)vtab;
    char *message = NULL;
    const int code = plan_choose(t->arguments.metric, info, &message);
    if (!message)
        return code;
    table_refuse(t, code, "%s", message);
    sqlite3_free(message);
    return code;
}

static int table_begin(sqlite3_vtab *vtab)
{
    table *t = (table *)vtab;
    ww_status status = table_enter(t);
    if (status == WW_OK) {
        status = table_changes(t);
        table_leave(t);
    }
    return table_failed(t, status);
}

static void table_ended(table *t)
{
    int foreign_keys = 0; /* foreign key actions run as part of our statements */
    t->uncertain = t->shadow_is_checked = false;
    if (sqlite3_db_config(t->db, SQLITE_DBCONFIG_ENABLE_FKEY, -1, &foreign_keys) != SQLITE_OK || foreign_keys)
        table_close_writer(t);
    if (t->writer)
        writer_forget(t->writer);
    if (t->view)
        view_ended(t->view);
}

static int table_commit(sqlite3_vtab *vtab)
{
    table_ended((table *)vtab);
    return SQLITE_OK;
}

static int table_rollback(sqlite3_vtab *vtab)
{
    table_ended((table *)vtab);
    return SQLITE_OK;
}

/* There is nothing to write before a savepoint, but SQLite reports a rollback to one only if this function exists. */
static int table_savepoint(sqlite3_vtab *vtab, int number)
{
    (void)vtab, (void)number;
    return SQLITE_OK;
}

static int table_rollback_to(sqlite3_vtab *vtab, int number)
{
    const table *t = (const table *)vtab;
    (void)number;
    if (t->busy) /* one of our own statements is undone: it failed, or runs again because the schema has changed */
        return SQLITE_OK;
    if (t->writer)
        writer_forget(t->writer);
    if (t->view)
        view_rolled_back(t->view);
    return SQLITE_OK;
}

static int table_rename(sqlite3_vtab *vtab, const char *name)
{
    FLOAT_GUARD();
    table *t = (table *)vtab;
    ww_status status = table_enter(t);
    if (status != WW_OK)
        return table_failed(t, status);
    char *copy = memory_copy_text(name, strlen(name));
    status = copy ? shadow_check(t, true) : memory_failed("a table's name", strlen(name));
    table_release(t);
    t->uncertain = true; /* closed the view that knew the committed state */
    if (status == WW_OK)
        status = schema_rename(t->db, t->schema, t->name, name, true);
    table_leave(t);
    if (status != WW_OK) {
        memory_free(copy);
        return table_failed(t, status);
    }
    memory_free(t->name);
    t->name = copy;
    return SQLITE_OK;
}

static int table_shadow_name(const char *suffix)
{
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++)
        if (sqlite3_stricmp(suffix, SUFFIXES[i]) == 0)
            return 1;
    return 0;
}

/* PRAGMA integrity_check calls it in SQLite 3.44 and later. */
static int table_integrity(sqlite3_vtab *vtab, const char *schema, const char *name, int flags, char **problem)
{
    FLOAT_GUARD();
    table *t = (table *)vtab;
    (void)schema, (void)name;
    const bool quick = flags & 1;
    ww_status status = table_enter(t);
    if (status == WW_OK) {
        status = table_check(t, quick, problem);
        table_leave(t);
    }
    if (status == WW_OK || *problem || status == WW_OUT_OF_MEMORY)
        return status == WW_OUT_OF_MEMORY ? SQLITE_NOMEM : SQLITE_OK;
    char message[MESSAGE_BYTES];
    text_without_calls(message, sizeof message, ww_error_message());
    *problem = sqlite3_mprintf("%s: %s", t->name, message);
    return *problem ? SQLITE_OK : SQLITE_NOMEM;
}

/* The header may be older than the SQLite that runs. Members that came later follow the declared ones, as in SQLite's
 * struct. */
static const struct {
    sqlite3_module module;
#if SQLITE_VERSION_NUMBER < 3044000
    int (*xIntegrity)(sqlite3_vtab *, const char *, const char *, int, char **);
#endif
} MODULE = {
    .module =
        {
            .iVersion = 4,
            .xCreate = table_create,
            .xConnect = table_connect,
            .xBestIndex = table_best_index,
            .xDisconnect = table_disconnect,
            .xDestroy = table_destroy,
            .xOpen = cursor_open,
            .xClose = cursor_close,
            .xFilter = cursor_filter,
            .xNext = cursor_next,
            .xEof = cursor_eof,
            .xColumn = cursor_column,
            .xRowid = cursor_rowid,
            .xUpdate = table_update,
            .xBegin = table_begin,
            .xCommit = table_commit,
            .xRollback = table_rollback,
            .xRename = table_rename,
            .xSavepoint = table_savepoint,
            .xRollbackTo = table_rollback_to,
            .xShadowName = table_shadow_name,
#if SQLITE_VERSION_NUMBER >= 3044000
            .xIntegrity = table_integrity,
#endif
        },
#if SQLITE_VERSION_NUMBER < 3044000
    .xIntegrity = table_integrity,
#endif
};

const sqlite3_module *const table_module = &MODULE.module;
