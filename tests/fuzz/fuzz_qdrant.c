/* Any bytes as a filter in Qdrant's syntax and a payload, separated by a NUL: the filter is refused with a message, or it
 * admits or rejects every JSON payload, and "must_not" does the opposite. Bytes as a path to a field: a path that is read leads
 * through any payload.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/json/json_path.h"
#include "base/memory.h"
#include "server/qdrant/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool admits(const char *json, const char *payload, bool *out)
{
    ww_filter *f = NULL;
    json_fault fault;
    filter_facts facts = {0};
    int32_t matches = -1;
    if (!json_check(json, strlen(json), &fault))
        return false;
    if (ww_filter_create(&f) != WW_OK)
        abort();
    const bool read = filter_read_qdrant(f, json_root(json), NULL, &facts) == WW_OK;
    if (read && ww_filter_matches(f, "7", payload, &matches) != WW_OK)
        abort();
    ww_filter_destroy(f);
    *out = matches;
    return read;
}

static bool count(void *user, const char *value)
{
    size_t *visited = user;
    if (json_end(value) <= value)
        abort();
    return ++*visited < 100;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = memory_alloc(size + 2), *opposite = memory_alloc(size + 32);
    if (!text || !opposite)
        abort();
    memcpy(text, bytes, size);
    text[size] = text[size + 1] = '\0';
    const size_t length = strlen(text);
    const char *payload = length < size ? text + length + 1 : NULL;
    json_fault fault;
    bool first = false, second = false;
    if (payload && !json_check(payload, strlen(payload), &fault))
        payload = NULL;
    snprintf(opposite, size + 32, "{\"must_not\": [%s]}", text);
    if (admits(text, payload, &first) && strchr(text, '{') && admits(opposite, payload, &second) && first == second)
        abort();
    json_path path;
    size_t visited = 0;
    if (payload && !json_path_read(text, length, &path))
        (void)json_path_visit(path.parts, path.count, json_root(payload), &(json_visit){count, &visited, size & 1});
    memory_free(text);
    memory_free(opposite);
    return 0;
}
