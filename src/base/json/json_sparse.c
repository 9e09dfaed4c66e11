/* Reading a sparse vector from JSON. */
#include "base/json/json_sparse.h"

#include <string.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/status.h"

static const char *list_of(const char *object, const char *key)
{
    const char *list = json_type_of(object) == JSON_OBJECT ? json_find(object, key, strlen(key)) : NULL;
    return list && json_type_of(list) == JSON_LIST ? list : NULL;
}

static int64_t length_of(const char *list)
{
    return json_first(list) ? json_numbers_count(list) : 0;
}

static ww_status read_indices(const char *list, uint32_t *indices)
{
    int64_t count = 0;
    for (const char *at = json_first(list); at; at = json_next(at), count++) {
        const json_number number = json_type_of(at) == JSON_NUMBER ? json_number_of(at) : (json_number){0};
        if (!number.is_integer || number.integer < 0 || number.integer > UINT32_MAX)
            return ww_fail(WW_INVALID_ARGUMENT, "indices[%lld]: an integer of 0 to 4294967295 is needed", (long long)count);
        indices[count] = (uint32_t)number.integer;
    }
    return WW_OK;
}

ww_status json_sparse_read(const char *value, int64_t count_max, json_sparse *read)
{
    const char *indices = list_of(value, "indices"), *values = list_of(value, "values");
    *read = (json_sparse){0};
    if (!indices || !values)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "the lists indices and values are needed: {\"indices\": [3, 7], \"values\": [0.5, 1]}");
    const int64_t count = length_of(indices);
    if (count < 0 || length_of(values) < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: a list of numbers is needed", count < 0 ? "indices" : "values");
    if (count != length_of(values) || count > count_max)
        return ww_fail(WW_INVALID_ARGUMENT, "there are %lld indices and %lld values; they must be equally many, at most %lld",
                       (long long)count, (long long)length_of(values), (long long)count_max);
    read->count = count;
    read->indices = memory_alloc((size_t)(count + 1) * sizeof *read->indices);
    read->values = memory_alloc((size_t)(count + 1) * sizeof *read->values);
    ww_status status = read->indices && read->values ? read_indices(indices, read->indices)
                                                     : memory_failed("a sparse vector", (size_t)count * sizeof *read->indices);
    if (status == WW_OK && count > 0 && !json_numbers_read(values, read->values))
        status = ww_fail(WW_INVALID_ARGUMENT, "values: a list of numbers is needed");
    if (status != WW_OK)
        json_sparse_free(read);
    return status;
}

ww_status json_sparse_read_text(const char *text, int64_t count_max, json_sparse *read)
{
    json_fault fault = {0};
    *read = (json_sparse){0};
    if (!json_check(text, strlen(text), &fault))
        return ww_fail(WW_INVALID_ARGUMENT, "not JSON: %s at line %zu, column %zu", fault.what, fault.line, fault.column);
    return json_sparse_read(json_root(text), count_max, read);
}

void json_sparse_free(json_sparse *read)
{
    memory_free(read->indices);
    memory_free(read->values);
    *read = (json_sparse){0};
}
