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
    filter_destroy(kept);
}

/* Reads the filter, which SQLite keeps for the next rows if the argument is a constant. Returns NULL after reporting an
 * error. */
static ww_filter *read_filter(sqlite3_context *context, sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    ww_filter *f = NULL;
    if (!text) {
        if (sqlite3_value_type(value) == SQLITE_NULL)
            sqlite3_result_error(context, "ww_filter: the filter is NULL; {} admits every row", -1);
        else
            sqlite3_result_error_nomem(context);
        return NULL;
    }
    const ww_status status = strlen(text) == (size_t)sqlite3_value_bytes(value)
                                 ? filter_read(text, &f)
                                 : ww_fail(WW_INVALID_ARGUMENT, "filter: there is a NUL in the text");
    if (status == WW_OK)
        return f;
    if (status == WW_OUT_OF_MEMORY)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_error(context, ww_error_message(), -1);
    return NULL;
}

static void filter_function(sqlite3_context *context, int count, sqlite3_value **values)
{
    FLOAT_GUARD(); /* numbers are read */
    const ww_filter *bound = sqlite3_value_pointer(values[1], FILTER_POINTER),
                    *kept = bound ? bound : sqlite3_get_auxdata(context, 1);
    ww_filter *read = kept ? NULL : read_filter(context, values[1]);
    const ww_filter *f = kept ? kept : read;
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
    const bool there = payload || sqlite3_value_type(values[0]) == SQLITE_NULL;
    if (payload && (length != (size_t)sqlite3_value_bytes(values[0]) || !json_check(payload, length, &fault)))
        sqlite3_result_error(context, "ww_filter: a payload is not JSON", -1);
    else if (there && filter_matches(f, &row, &matches) == WW_OK)
        sqlite3_result_int(context, matches);
    else
        sqlite3_result_error_nomem(context);
    if (read)
        sqlite3_set_auxdata(context, 1, read, forget); /* may free it at once */
}

int filter_dictionary_register(sqlite3 *db)
{
    int code = SQLITE_OK;
    for (int arguments = 2; code == SQLITE_OK && arguments <= 3; arguments++)
        code = sqlite3_create_function_v2(db, "ww_filter", arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                          NULL, filter_function, NULL, NULL, NULL);
    return code;
}
