/* Payloads: checked with jansson, then kept as text; nothing of the parsed form stays. */
#include "vectors/payloads.h"

#include <jansson.h>
#include <string.h>

#include "base/memory.h"

ww_status payload_check(const char *name, int64_t number, const char *text)
{
    /* Integers are read as reals because only their form matters here: one of thirty digits is JSON, too. */
    const size_t flags = JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL;
    json_error_t error;
    json_t *value = json_loadb(text, strlen(text), flags, &error);
    if (value) {
        json_decref(value);
        return WW_OK;
    }
    if (json_error_code(&error) == json_error_out_of_memory)
        return memory_failed("checking a payload", strlen(text));
    return ww_fail(
        WW_INVALID_ARGUMENT,
        "collection '%s': payload %lld of the batch is not JSON: %s at line %d, column %d; give JSON text, or NULL for none",
        name, (long long)number, error.text, error.line, error.column);
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
