/* Notes: short texts that a program keeps with a collection, in a table with the collections' uids, made with the first note.
 */
#include <string.h>

#include "base/float_guard.h"
#include "base/status.h"
#include "base/text.h"
#include "store/store_state.h"

typedef struct note {
    const char *function; /* for messages */
    const char *collection, *key;
} note;

static ww_status check_text(const note *n, const char *what, const char *text, size_t room)
{
    const size_t length = text ? strnlen(text, room) : 0;
    if (!text)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the %s is NULL", n->function, what);
    if (length == room || !utf8_check(text, length))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the %s is not UTF-8 or longer than %zu bytes", n->function, what, room - 1);
    return WW_OK;
}

static ww_status check_call(ww_store *store, const note *n)
{
    const ww_status status = store_check_handle(store, n->function);
    if (status == WW_OK && !n->collection)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the collection is NULL", n->function);
    return status == WW_OK ? check_text(n, "key", n->key, WW_NOTE_KEY_BYTES) : status;
}

/* Prepares a statement about the note; its parameters are ?1, the key, and ?2, the text. */
static ww_status about(ww_store *store, const note *n, const char *sql, sqlite3_stmt **statement)
{
    collection_record record;
    ww_status status = schema_find(store->writer, "main", n->collection, &record);
    if (status == WW_OK)
        status = schema_statement(store->writer, statement, sql, (long long)record.uid);
    if (status == WW_OK)
        sqlite3_bind_text(*statement, 1, n->key, -1, SQLITE_STATIC);
    return status;
}

ww_status notes_prepare(sqlite3 *db, const char *schema)
{
    return schema_run(db,
                      "CREATE TABLE IF NOT EXISTS \"%w\".warpwave_notes(uid INTEGER NOT NULL, key TEXT NOT NULL, text TEXT NOT "
                      "NULL, PRIMARY KEY(uid, key)) WITHOUT ROWID",
                      schema);
}

static ww_status write_note(ww_store *store, const note *n, const char *text)
{
    sqlite3_stmt *writing = NULL;
    ww_status status = notes_prepare(store->writer, "main");
    if (status == WW_OK) /* delete the notes of dropped collections */
        status = schema_run(store->writer,
                            "DELETE FROM main.warpwave_notes WHERE uid NOT IN (SELECT uid FROM main.warpwave_collections)");
    if (status == WW_OK)
        status = about(store, n,
                       text ? "INSERT OR REPLACE INTO main.warpwave_notes(uid, key, text) VALUES(%lld, ?1, ?2)"
                            : "DELETE FROM main.warpwave_notes WHERE uid = %lld AND key = ?1",
                       &writing);
    if (status == WW_OK && text)
        sqlite3_bind_text(writing, 2, text, -1, SQLITE_STATIC);
    if (status == WW_OK)
        status = schema_step(writing);
    sqlite3_finalize(writing);
    return status;
}

ww_status ww_store_set_note(ww_store *store, const char *collection, const char *key, const char *text)
{
    FLOAT_GUARD();
    const note n = {"ww_store_set_note", collection, key};
    ww_status status = check_call(store, &n);
    if (status == WW_OK && text)
        status = check_text(&n, "text", text, WW_NOTE_BYTES);
    if (status == WW_OK && !store_is_mine(store)) { /* what ww_store_begin() has checked otherwise */
        collection_record record;
        status = store_check_writable(store);
        if (status == WW_OK) /* an empty file has no list of collections */
            status = store_find_record(store, collection, &record);
    }
    if (status == WW_OK)
        status = store_begin_write(store, 0);
    return status == WW_OK ? store_end_write(store, write_note(store, &n, text)) : status;
}

static ww_status read_note(ww_store *store, const note *n, char text[WW_NOTE_BYTES])
{
    sqlite3_stmt *reading = NULL;
    ww_status status = schema_statement(store->writer, &reading,
                                        "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'warpwave_notes'");
    const int there = status == WW_OK ? sqlite3_step(reading) : SQLITE_ERROR;
    sqlite3_finalize(reading);
    reading = NULL;
    if (status == WW_OK && there == SQLITE_ROW)
        status = about(store, n, "SELECT text FROM main.warpwave_notes WHERE uid = %lld AND key = ?1", &reading);
    if (status != WW_OK)
        return status;
    const int code = reading ? sqlite3_step(reading) : there;
    if (code == SQLITE_ROW) {
        const char *found = (const char *)sqlite3_column_text(reading, 0);
        text_copy(text, WW_NOTE_BYTES, found ? found : "");
    } else if (code == SQLITE_DONE) {
        status = ww_fail(WW_NOT_FOUND, "the collection '%s' has no note '%s'", n->collection, n->key);
    } else {
        status = sqlite_failed(store->writer, code, "reading a note");
    }
    sqlite3_finalize(reading);
    return status;
}

ww_status ww_store_get_note(ww_store *store, const char *collection, const char *key, char text[WW_NOTE_BYTES])
{
    FLOAT_GUARD();
    const note n = {"ww_store_get_note", collection, key};
    collection_record record;
    ww_status status = check_call(store, &n);
    if (status == WW_OK && !text)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: text is NULL", n.function);
    const bool mine = status == WW_OK && store_is_mine(store);
    if (status == WW_OK && !mine)
        status = store_find_record(store, collection, &record);
    if (status == WW_OK && !mine)
        status = store_lock(store);
    if (status != WW_OK)
        return status;
    status = read_note(store, &n, text);
    if (!mine)
        store_unlock(store);
    return status;
}
