/* Sparse vectors as SQL values. */
#include "store/sqlite/sparse_text.h"

#include <string.h>

#include "base/memory.h"
#include "store/sqlite/value.h"

void sparse_text_free(sparse_text *read)
{
    sparse_sorted_free(&read->sorted);
    json_sparse_free(&read->read);
}

ww_status sparse_text_read(sqlite3_value *value, sparse_text *read)
{
    sparse_text_free(read);
    if (sqlite3_value_type(value) == SQLITE_NULL)
        return WW_OK;
    if (sqlite3_value_type(value) != SQLITE_TEXT)
        return ww_fail(WW_INVALID_ARGUMENT, "sparse is %s; write it as {\"indices\": [3, 7], \"values\": [0.5, 1]}",
                       value_kind(value));
    const char *text = (const char *)sqlite3_value_text(value);
    if (!text)
        return memory_failed("a sparse vector", 0);
    if (strlen(text) != (size_t)sqlite3_value_bytes(value))
        return ww_fail(WW_INVALID_ARGUMENT, "sparse has a NUL at byte %zu", strlen(text) + 1);
    const ww_status status = json_sparse_read_text(text, WW_SPARSE_MAX, &read->read);
    if (status != WW_OK)
        return status;
    const ww_sparse_vector vector = {read->read.count, read->read.indices, read->read.values};
    return sparse_sort("row", 0, &vector, &read->sorted);
}

char *sparse_text_json(const ww_sparse_vector *vector)
{
    sqlite3_str *json = sqlite3_str_new(NULL);
    sqlite3_str_appendall(json, "{\"indices\":");
    for (int64_t i = 0; i < vector->count; i++)
        sqlite3_str_appendf(json, i == 0 ? "[%lld" : ",%lld", (long long)vector->indices[i]);
    char *values = vector_to_json(vector->values, (int32_t)vector->count);
    sqlite3_str_appendf(json, "],\"values\":%s}", values);
    const bool failed = !values || sqlite3_str_errcode(json) != SQLITE_OK;
    char *text = sqlite3_str_finish(json);
    sqlite3_free(values);
    if (!failed)
        return text;
    sqlite3_free(text);
    return NULL;
}
