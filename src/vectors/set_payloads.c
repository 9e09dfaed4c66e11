/* Payloads of rows that are there: given, replaced and removed without touching the vectors.
 *
 * Texts are checked and copied before the lock is taken, and everything that can fail under it comes before the first payload
 * changes.
 */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/payloads.h"

typedef struct update {
    int64_t row;
    char *text;     /* the new payload, ours; NULL: none */
    bool made_page; /* the row's page had no place for payloads */
} update;

typedef struct update_list {
    const char *const *ids;
    const char *const *payloads;
    int64_t count;
    update *updates;
} update_list;

static const char function[] = "ww_collection_set_payloads";

static ww_status list_check(const update_list *list, const ww_collection *c)
{
    ww_status status = collection_check(c, function);
    if (status != WW_OK)
        return status;
    if (list->count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: count is %lld; it must not be negative", function, (long long)list->count);
    if (list->count > 0 && (!list->ids || !list->payloads))
        return fail_null(function, list->ids ? "payloads" : "ids");
    for (int64_t i = 0; status == WW_OK && i < list->count; i++) {
        if (!list->ids[i])
            status = ww_fail(WW_INVALID_ARGUMENT, "%s: id %lld of the list is NULL", function, (long long)i);
        else if (list->payloads[i])
            status = payload_check(c->name, i, list->payloads[i]);
    }
    return status;
}

static ww_status list_create(update_list *list)
{
    list->updates = memory_alloc_zeroed((size_t)list->count, sizeof *list->updates);
    if (!list->updates)
        return memory_failed("the list of payloads to set", (size_t)list->count * sizeof *list->updates);
    for (int64_t i = 0; i < list->count; i++) {
        const size_t length = list->payloads[i] ? strlen(list->payloads[i]) : 0;
        if (list->payloads[i] && !(list->updates[i].text = memory_copy_text(list->payloads[i], length)))
            return memory_failed("a payload", length + 1);
    }
    return WW_OK;
}

static void list_destroy(update_list *list)
{
    for (int64_t i = 0; list->updates && i < list->count; i++)
        memory_free(list->updates[i].text);
    memory_free(list->updates);
}

static ww_status find_rows(update_list *list, const ww_collection *c)
{
    for (int64_t i = 0; i < list->count; i++) {
        const char *id = list->ids[i];
        list->updates[i].row = collection_find(c, (id_text){id, (uint32_t)strnlen(id, WW_ID_BYTES_MAX + 1)});
        if (list->updates[i].row < 0)
            return ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%.*s' to give a payload; nothing was changed",
                           c->name, WW_ID_BYTES_MAX, id);
    }
    return WW_OK;
}

/* Places for payloads in every page that will have one; given back if one cannot be had. */
static ww_status make_pages(update_list *list, row_store *store)
{
    ww_status status = WW_OK;
    int64_t bytes = 0;
    for (int64_t i = 0; status == WW_OK && i < list->count; i++) {
        row_page *page = store_page(store, list->updates[i].row);
        if (!list->updates[i].text || page->payloads)
            continue;
        status = payload_page_make(page, &bytes);
        list->updates[i].made_page = status == WW_OK;
    }
    for (int64_t i = 0; status != WW_OK && i < list->count; i++)
        if (list->updates[i].made_page) {
            row_page *page = store_page(store, list->updates[i].row);
            memory_free(page->payloads);
            page->payloads = NULL;
        }
    if (status == WW_OK)
        store->bytes_payloads += bytes;
    return status;
}

/* Exchanges the payloads; the old ones are freed with the list. Of an id that is named twice the later payload stays. */
static void commit(update_list *list, row_store *store)
{
    for (int64_t i = 0; i < list->count; i++) {
        update *u = &list->updates[i];
        row_page *page = store_page(store, u->row);
        if (!page->payloads)
            continue; /* there is none, and there shall be none */
        char *old = page->payloads[u->row % PAGE_ROWS];
        page->payloads[u->row % PAGE_ROWS] = u->text;
        store->bytes_payloads += (u->text ? (int64_t)strlen(u->text) + 1 : 0) - (old ? (int64_t)strlen(old) + 1 : 0);
        u->text = old;
    }
}

ww_status memory_set_payloads(ww_collection *c, const char *const *ids, const char *const *payloads, int64_t count)
{
    update_list list = {.ids = ids, .payloads = payloads, .count = count};
    ww_status status = list_create(&list);
    if (status == WW_OK) {
        collection_lock_write(c);
        status = find_rows(&list, c);
        if (status == WW_OK)
            status = make_pages(&list, &c->store);
        if (status == WW_OK)
            commit(&list, &c->store);
        collection_unlock(c);
    }
    list_destroy(&list);
    return status;
}

ww_status ww_collection_set_payloads(ww_collection *collection, const char *const *ids, const char *const *payloads,
                                     int64_t count)
{
    FLOAT_GUARD();
    const update_list list = {.ids = ids, .payloads = payloads, .count = count};
    const ww_status status = list_check(&list, collection);
    return status == WW_OK && count > 0 ? collection->operations->set_payloads(collection, ids, payloads, count) : status;
}
