/* Reading the values of a filter's parameters. They are bound to it, never pasted into its text. */
#include "store/sqlite/parameters.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "store/schema.h"
#include "store/sqlite/value.h"

static const char SHAPE[] =
    "parameters are a JSON array, by place, or an object, by name: json_array(2000), json_object('lang', 'en')";

void parameters_free(parameter_list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        memory_free((void *)(uintptr_t)list->values[i].name);
        memory_free((void *)(uintptr_t)list->values[i].text);
    }
    memory_free(list->values);
    *list = (parameter_list){0};
}

/* Appends a zeroed entry: a NULL by place. */
static ww_parameter *append(parameter_list *list)
{
    if (list->count == list->capacity) {
        const int64_t capacity = 2 * list->capacity + 4;
        ww_parameter *moved = memory_resize(list->values, (size_t)capacity * sizeof *moved);
        if (!moved)
            return NULL;
        list->values = moved;
        list->capacity = capacity;
    }
    ww_parameter *made = &list->values[list->count++];
    *made = (ww_parameter){0};
    return made;
}

/* Copies a name, with a colon in front unless it begins with a sign. `key` is NULL if SQLite had no memory for it. */
static char *name_copy(const char *key)
{
    if (!key)
        return NULL;
    const size_t length = strlen(key);
    if (length > 0 && strchr(":@$?", key[0]))
        return memory_copy_text(key, length);
    char *made = memory_alloc(length + 2);
    if (made) {
        made[0] = ':';
        memcpy(made + 1, key, length + 1);
    }
    return made;
}

/* Takes the value in the statement's current row: key, value, JSON type. */
static ww_status take(sqlite3_stmt *s, parameter_list *list)
{
    const char *kind = (const char *)sqlite3_column_text(s, 2);
    ww_parameter *made = append(list);
    if (!made || !kind)
        return memory_failed("the parameters of a filter", sizeof *made);
    if (sqlite3_column_type(s, 0) == SQLITE_NULL)
        return ww_fail(WW_INVALID_ARGUMENT, "%s", SHAPE);
    const bool is_list = strcmp(kind, "array") == 0 && sqlite3_column_type(s, 0) == SQLITE_TEXT;
    if ((strcmp(kind, "array") == 0 && !is_list) || strcmp(kind, "object") == 0)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "parameter %s is an %s; it must be null, true, false, a number, a text or, with a name, a list",
                       sqlite3_column_text(s, 0), kind);
    if (sqlite3_column_type(s, 0) == SQLITE_TEXT && !(made->name = name_copy((const char *)sqlite3_column_text(s, 0))))
        return memory_failed("the parameters of a filter", (size_t)sqlite3_column_bytes(s, 0));
    switch (sqlite3_column_type(s, 1)) {
    case SQLITE_INTEGER:
        made->type = WW_VALUE_INTEGER;
        made->integer = sqlite3_column_int64(s, 1);
        break;
    case SQLITE_FLOAT:
        made->type = WW_VALUE_REAL;
        made->real = sqlite3_column_double(s, 1);
        break;
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_column_text(s, 1);
        const size_t length = (size_t)sqlite3_column_bytes(s, 1);
        if (text && strlen(text) != length)
            return ww_fail(WW_INVALID_ARGUMENT, "parameter %s has a NUL at byte %zu", sqlite3_column_text(s, 0),
                           strlen(text) + 1);
        made->type = is_list ? WW_VALUE_LIST : WW_VALUE_TEXT;
        made->text = text ? memory_copy_text(text, length) : NULL;
        return made->text ? WW_OK : memory_failed("the parameters of a filter", length);
    }
    default:
        break;
    }
    return WW_OK;
}

ww_status parameters_read(sqlite3 *db, sqlite3_value *json, parameter_list *list)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_value_type(json) != SQLITE_TEXT)
        return ww_fail(WW_INVALID_ARGUMENT, "parameters is %s; %s", value_kind(json), SHAPE);
    ww_status status = schema_statement(db, &s, "SELECT key, value, type FROM json_each(?1)");
    if (status != WW_OK)
        return status;
    sqlite3_bind_value(s, 1, json);
    int code = SQLITE_DONE;
    while (status == WW_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
        status = take(s, list);
    if (status == WW_OK && code == SQLITE_ERROR)
        status = ww_fail(WW_INVALID_ARGUMENT, "parameters: %s; %s", sqlite3_errmsg(db), SHAPE);
    else if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(db, code, "reading the parameters of a filter");
    sqlite3_finalize(s);
    return status;
}
