/* ww_filter(payload, filter) and ww_filter(payload, filter, id): a filter as a dictionary (vectors/filter/filter.h) in SQL.
 * They return 1 if the row meets the filter, else 0. Without the id no condition on ids is met. */
#include <stdio.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/json/json.h"
#include "base/memory.h"
#include "store/filter/filter.h"
#include "store/filter/filter_text.h"
#include "vectors/filter/filter.h"

static void forget(void *kept)
{
    filter_free(kept);
    memory_free(kept);
}

/* Reads the filter, which SQLite keeps for the next rows if the argument is a constant. Returns NULL after reporting an
 * error. */
static filter *read_filter(sqlite3_context *context, sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    filter *f = text ? memory_alloc_zeroed(1, sizeof *f) : NULL;
    if (!f) {
        if (sqlite3_value_type(value) == SQLITE_NULL)
            sqlite3_result_error(context, "ww_filter: the filter is NULL; {} admits every row", -1);
        else
            sqlite3_result_error_nomem(context);
        return NULL;
    }
    const ww_status status = strlen(text) == (size_t)sqlite3_value_bytes(value)
                                 ? filter_read(text, f)
                                 : ww_fail(WW_INVALID_ARGUMENT, "filter: there is a NUL in the text");
    if (status == WW_OK)
        return f;
    memory_free(f);
    if (status == WW_OUT_OF_MEMORY)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_error(context, ww_error_message(), -1);
    return NULL;
}

static void filter_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    FLOAT_GUARD(); /* numbers are read */
    filter *kept = sqlite3_get_auxdata(context, 1);
    filter *f = kept ? kept : read_filter(context, values[1]);
    if (!f)
        return;
    const char *payload = (const char *)sqlite3_value_text(values[0]);
    const size_t length = payload ? strlen(payload) : 0;
    filter_row row = {.payload = payload};
    if (count > 2 && sqlite3_value_type(values[2]) == SQLITE_TEXT) {
        row.id = (const char *)sqlite3_value_text(values[2]);
        row.id_length = (size_t)sqlite3_value_bytes(values[2]);
    }
    json_fault fault;
    bool matches = false;
    /* Payloads were checked when they were written, but the file may come from anybody. */
    const bool read = payload || sqlite3_value_type(values[0]) == SQLITE_NULL;
    if (payload && (length != (size_t)sqlite3_value_bytes(values[0]) || !json_check(payload, length, &fault)))
        sqlite3_result_error(context, "ww_filter: a payload is not JSON", -1);
    else if (read && filter_matches(f, &row, &matches) == WW_OK)
        sqlite3_result_int(context, matches);
    else
        sqlite3_result_error_nomem(context);
    if (!kept)
        sqlite3_set_auxdata(context, 1, f, forget); /* may free it at once */
}

int filter_dictionary_register(sqlite3 *db)
{
    int code = SQLITE_OK;
    for (int arguments = 2; code == SQLITE_OK && arguments <= 3; arguments++)
        code = sqlite3_create_function_v2(db, "ww_filter", arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                          NULL, filter_function, NULL, NULL, NULL);
    return code;
}

/* The query's where is checked alone first: with unbalanced brackets it could escape the brackets added here. */
ww_status filter_where_of(const ww_query *query, filter_where *where, void **held)
{
    static const char name[] = ":warpwave_filter", call[] = "ww_filter(payload, :warpwave_filter, id)";
    *where = (filter_where){query->where, query->parameters, query->parameter_count};
    *held = NULL;
    if (!query->filter)
        return WW_OK;
    ww_status status = query->where ? filter_text_check(query->where) : WW_OK;
    if (status != WW_OK)
        return status;
    const size_t values_bytes = ((size_t)query->parameter_count + 1) * sizeof(ww_parameter);
    const size_t text_bytes = (query->where ? strlen(query->where) : 0) + sizeof call + sizeof "(\n) AND ";
    char *memory = memory_alloc(values_bytes + text_bytes);
    if (!memory)
        return memory_failed("a filter", values_bytes + text_bytes);
    ww_parameter *values = (ww_parameter *)(void *)memory;
    if (query->parameter_count > 0)
        memcpy(values, query->parameters, (size_t)query->parameter_count * sizeof *values);
    values[query->parameter_count] = (ww_parameter){.name = name, .type = WW_VALUE_TEXT, .text = query->filter};
    if (query->where)
        snprintf(memory + values_bytes, text_bytes, "(%s\n) AND %s", query->where, call);
    else
        snprintf(memory + values_bytes, text_bytes, "%s", call);
    *where = (filter_where){memory + values_bytes, values, query->parameter_count + 1};
    *held = memory;
    return WW_OK;
}
