/* Payloads: checked in one pass, then stored as text. */
#include "vectors/write/payloads.h"

#include <string.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"

ww_status payload_check(const char *name, int64_t number, const char *text)
{
    json_fault fault;
    if (json_check(text, strlen(text), &fault))
        return WW_OK;
    const bool limit = strncmp(fault.what, "too ", 4) == 0; /* then it exceeds a limit, but can be valid JSON */
    return ww_fail(WW_INVALID_ARGUMENT,
                   "collection '%s': payload %lld of the batch is %s%s at line %zu, column %zu; give JSON text, or NULL for "
                   "none",
                   name, (long long)number, limit ? "" : "not JSON: ", fault.what, fault.line, fault.column);
}

ww_status payload_check_merge(const char *name, const char *text)
{
    const char *object = json_root(text);
    if (json_type_of(object) != JSON_OBJECT)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s': what is merged into payloads must be an object", name);
    int64_t fields = 0;
    for (const char *at = json_first(object); at; at = json_next(at))
        fields++;
    if (fields <= PAYLOAD_MERGE_FIELDS_MAX)
        return WW_OK;
    return ww_fail(WW_OUT_OF_RANGE, "collection '%s': %lld fields were given to merge into payloads; the maximum is %d", name,
                   (long long)fields, PAYLOAD_MERGE_FIELDS_MAX);
}

/* Writes a field, with the key `key` and the value at `value`, after the fields from `begin` on. */
static char *put_field(char *to, const char *begin, const char *key, const char *value)
{
    const size_t key_bytes = (size_t)(json_end(key) - key), value_bytes = (size_t)(json_end(value) - value);
    if (to != begin + 1)
        *to++ = ',';
    memcpy(to, key, key_bytes);
    to += key_bytes;
    *to++ = ':';
    memcpy(to, value, value_bytes);
    return to + value_bytes;
}

/* Both are objects; `key` has room for the longest of their keys. */
static void merge_objects(const char *old, const char *fields, char *key, char *merged)
{
    char *to = merged;
    *to++ = '{';
    for (const char *at = json_first(old); at; at = json_next(at)) {
        const char *replaced = json_find(fields, key, json_text_read(at, key));
        to = put_field(to, merged, at, replaced ? replaced : json_member(at));
    }
    for (const char *at = json_first(fields); at; at = json_next(at)) {
        const size_t length = json_text_read(at, key);
        if (!json_find(old, key, length) && json_find(fields, key, length) == json_member(at))
            to = put_field(to, merged, at, json_member(at));
    }
    *to++ = '}';
    *to = '\0';
}

/* Counts the bytes. A replaced field takes the bytes of the new one. A new field can replace several old fields of its name, so
 * those are counted. */
static size_t merged_bytes(const char *old, const char *fields, char *key)
{
    size_t bytes = 3 + strlen(fields);
    for (const char *at = json_first(old); at; at = json_next(at)) {
        const char *replaced = json_find(fields, key, json_text_read(at, key));
        const char *value = replaced ? replaced : json_member(at);
        bytes += (size_t)(json_end(at) - at) + (size_t)(json_end(value) - value) + 2;
    }
    return bytes;
}

ww_status payload_merge(const char *name, const char *old, const char *fields, char **merged)
{
    json_fault fault;
    const char *before = old ? old : "{}";
    const bool sound = json_check(before, strlen(before), &fault); /* a store's file may have been written by another program */
    if (!sound || json_type_of(json_root(before)) != JSON_OBJECT)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "collection '%s': a payload is not an object, so fields cannot be merged into it; nothing was changed",
                       name);
    before = json_root(before);
    const char *added = json_root(fields);
    const size_t key_bytes = strlen(before) + strlen(added);
    char *key = memory_alloc(key_bytes);
    if (!key)
        return memory_failed("the keys of a payload", key_bytes);
    const size_t bytes = merged_bytes(before, added, key);
    *merged = bytes <= JSON_BYTES_MAX ? memory_alloc(bytes) : NULL;
    if (*merged)
        merge_objects(before, added, key, *merged);
    memory_free(key);
    if (bytes > JSON_BYTES_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "collection '%s': a merged payload would have %zu bytes; the maximum is %d", name,
                       bytes, JSON_BYTES_MAX);
    return *merged ? WW_OK : memory_failed("a payload", bytes);
}

ww_status payload_page_make(row_page *page, int64_t *bytes)
{
    if (page->payloads)
        return WW_OK;
    page->payloads = memory_alloc_zeroed(PAGE_ROWS, sizeof *page->payloads);
    if (!page->payloads)
        return memory_failed("a page of payloads", PAGE_ROWS * sizeof *page->payloads);
    *bytes += (int64_t)(PAGE_ROWS * sizeof *page->payloads);
    return WW_OK;
}

ww_status payload_put(row_store *store, int64_t row, const char *text, int64_t *bytes)
{
    row_page *page = store_page(store, row);
    const ww_status status = payload_page_make(page, bytes);
    if (status != WW_OK)
        return status;
    const size_t length = strlen(text);
    char *copy = memory_copy_text(text, length);
    if (!copy)
        return memory_failed("a payload", length + 1);
    page->payloads[row % PAGE_ROWS] = copy;
    *bytes += (int64_t)length + 1;
    return WW_OK;
}

const char *payload_get(const row_store *store, int64_t row)
{
    const row_page *page = store_page(store, row);
    return page->payloads ? page->payloads[row % PAGE_ROWS] : NULL;
}

void payload_drop(row_page *page, int64_t slot, int64_t count)
{
    for (int64_t i = slot; page->payloads && i < slot + count; i++) {
        memory_free(page->payloads[i]);
        page->payloads[i] = NULL;
    }
}
