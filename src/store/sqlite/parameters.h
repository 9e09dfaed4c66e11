/* The values of a filter's parameters, given as JSON: an array, by place, or an object, by name. */
#ifndef WW_STORE_SQLITE_PARAMETERS_H
#define WW_STORE_SQLITE_PARAMETERS_H

#include <warpwave/vectors.h>

#include "store/sqlite_api.h"

typedef struct parameter_list {
    ww_parameter *values; /* names and texts are in memory of their own */
    int64_t count, capacity;
} parameter_list;

void parameters_free(parameter_list *list);

/* Reads them from an SQL value with SQLite's JSON functions. Refuses other JSON, and values that are arrays or objects. Free
 * the list with parameters_free(), even after a failure. */
ww_status parameters_read(sqlite3 *db, sqlite3_value *json, parameter_list *list);

#endif
