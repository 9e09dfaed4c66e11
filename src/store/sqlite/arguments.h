/* The arguments of CREATE VIRTUAL TABLE docs USING warpwave(...): dim=384, metric=cosine, type=f32, device=auto,
 * rows=device, vectors=blob. */
#ifndef WW_STORE_SQLITE_ARGUMENTS_H
#define WW_STORE_SQLITE_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/vectors.h>

#include "store/sqlite/value.h"

typedef struct table_arguments {
    int32_t dim; /* 0: not given */
    ww_metric metric;
    ww_vector_type type;
    char device[256];
    ww_row_place rows;
    bool vectors_as_json; /* the column vector comes out as text */
    bool metric_given, type_given, device_given, rows_given, vectors_given;
} table_arguments;

/* Reads `count` arguments, each NAME=VALUE, with or without quotes around the value. Refuses unknown names, a name given twice,
 * and values that are unknown or out of range. Missing arguments get their defaults. */
ww_status arguments_read(const char *const *texts, int count, table_arguments *arguments);

#endif
