/* Payloads: checked in one pass, then kept as text. */
#include "vectors/payloads.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"

ww_status payload_check(const char *name, int64_t number, const char *text)
{
    json_fault fault;
    if (json_check(text, strlen(text), &fault))
        return WW_OK;
    const bool limit = strncmp(fault.what, "too ", 4) == 0; /* it may be JSON all the same */
    return ww_fail(WW_INVALID_ARGUMENT,
                   "collection '%s': payload %lld of the batch is %s%s at line %zu, column %zu; give JSON text, or NULL for "
                   "none",
                   name, (long long)number, limit ? "" : "not JSON: ", fault.what, fault.line, fault.column);
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
