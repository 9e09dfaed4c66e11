/* Payloads of existing rows: set, replaced, merged and removed without touching the vectors.
 *
 * Texts are checked before the lock is taken. Under the lock rows are found and pages made; then payloads are swapped one after
 * the other, so an id that appears twice is merged twice. If memory runs out, they are swapped back.
 */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "vectors/filter/select.h"
#include "vectors/ids/automatic_ids.h"
#include "vectors/write/payloads.h"

typedef struct update {
    int64_t row;
    const char *given; /* the caller's text; NULL: none */
    char *text;        /* first the new payload, then the one that it replaced */
    bool made_page;    /* the row's page had no payloads before */
} update;

typedef struct update_list {
    update *updates;
    int64_t count;
    bool merge;
} update_list;

static ww_status list_check(const ww_collection *c, const char *function, const payload_change *change)
{
    ww_status status = collection_check(c, function);
    if (status != WW_OK)
        return status;
    if (change->count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: count is %lld; it must not be negative", function, (long long)change->count);
    if (change->count > 0 && (!change->ids || !change->payloads))
        return fail_null(function, change->ids ? "payloads" : "ids");
    for (int64_t i = 0; status == WW_OK && i < change->count; i++) {
        if (!change->ids[i])
            status = ww_fail(WW_INVALID_ARGUMENT, "%s: id %lld of the list is NULL", function, (long long)i);
        else if (change->payloads[i])
            status = payload_check(c->name, i, change->payloads[i]);
        else if (change->merge)
            status = ww_fail(WW_INVALID_ARGUMENT, "%s: payload %lld of the list is NULL", function, (long long)i);
        if (status == WW_OK && change->merge)
            status = payload_check_merge(c->name, change->payloads[i]);
    }
    return status;
}

static void list_destroy(update_list *list)
{
    for (int64_t i = 0; list->updates && i < list->count; i++)
        memory_free(list->updates[i].text);
    memory_free(list->updates);
}

static ww_status list_create(update_list *list, int64_t count)
{
    list->updates = memory_alloc_zeroed((size_t)count, sizeof *list->updates);
    if (!list->updates)
        return memory_failed("the list of payloads to set", (size_t)count * sizeof *list->updates);
    list->count = count;
    return WW_OK;
}

/* Finds the rows and their new payloads. Called with the lock. */
static ww_status find_rows(update_list *list, const ww_collection *c, const payload_change *change)
{
    selected_rows found = {0};
    ww_status status = change->selection ? selected_rows_find(c, change->selection, &found) : WW_OK;
    if (status == WW_OK)
        status = list_create(list, change->selection ? found.count : change->count);
    for (int64_t i = 0; status == WW_OK && i < list->count; i++) {
        update *u = &list->updates[i];
        const char *id = change->selection ? NULL : change->ids[i];
        u->given = change->payloads[change->selection ? 0 : i];
        if (id)
            u->row = collection_find(c, (id_text){id, (uint32_t)strnlen(id, WW_ID_BYTES_MAX + 1)});
        else if (found.rows)
            u->row = found.rows[i].row;
        if (u->row < 0)
            status = ww_fail(WW_NOT_FOUND, "collection '%s': there is no id '%.*s' to give a payload; nothing was changed",
                             c->name, WW_ID_BYTES_MAX, id);
    }
    memory_free(found.rows);
    return status;
}

/* Makes room for payloads in every page that will have one. If memory runs out, frees that again. */
static ww_status make_pages(update_list *list, row_store *store, int64_t *bytes)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < list->count; i++) {
        row_page *page = store_page(store, list->updates[i].row);
        if (!list->updates[i].given || page->payloads)
            continue;
        status = payload_page_make(page, bytes);
        list->updates[i].made_page = status == WW_OK;
    }
    return status;
}

static void give_pages_back(const update_list *list, row_store *store)
{
    for (int64_t i = 0; i < list->count; i++)
        if (list->updates[i].made_page) {
            row_page *page = store_page(store, list->updates[i].row);
            memory_free(page->payloads);
            page->payloads = NULL;
        }
}

/* Exchanges the payload of the row and that of the update. */
static void exchange(update *u, row_store *store)
{
    row_page *page = store_page(store, u->row);
    if (!page->payloads)
        return; /* there is no payload before and after */
    char *old = page->payloads[u->row % PAGE_ROWS];
    page->payloads[u->row % PAGE_ROWS] = u->text;
    store->bytes_payloads += (u->text ? (int64_t)strlen(u->text) + 1 : 0) - (old ? (int64_t)strlen(old) + 1 : 0);
    u->text = old;
}

static ww_status make_text(const update_list *list, update *u, const ww_collection *c)
{
    if (!u->given)
        return WW_OK;
    if (list->merge)
        return payload_merge(c->name, payload_get(&c->store, u->row), u->given, &u->text);
    const size_t length = strlen(u->given);
    u->text = memory_copy_text(u->given, length);
    return u->text ? WW_OK : memory_failed("a payload", length + 1);
}

/* If an id is named twice, the last payload wins. */
static ww_status exchange_all(update_list *list, ww_collection *c)
{
    ww_status status = WW_OK;
    int64_t done = 0;
    for (; status == WW_OK && done < list->count; done += status == WW_OK) {
        status = make_text(list, &list->updates[done], c);
        if (status == WW_OK)
            exchange(&list->updates[done], &c->store);
    }
    while (status != WW_OK && done > 0)
        exchange(&list->updates[--done], &c->store);
    return status;
}

ww_status memory_set_payloads(ww_collection *c, const payload_change *change, int64_t *changed)
{
    update_list list = {.merge = change->merge};
    int64_t bytes = 0;
    collection_lock_rows(c);
    ww_status status = find_rows(&list, c, change);
    if (status == WW_OK)
        status = make_pages(&list, &c->store, &bytes);
    if (status == WW_OK)
        status = exchange_all(&list, c);
    if (status == WW_OK)
        c->store.bytes_payloads += bytes;
    else if (list.updates)
        give_pages_back(&list, &c->store);
    collection_unlock(c);
    *changed = list.count;
    list_destroy(&list);
    return status;
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

static ww_status set_listed(ww_collection *c, const char *function, const payload_change *change)
{
    int64_t changed = 0;
    const ww_status status = list_check(c, function, change);
    return status == WW_OK && change->count > 0 ? c->operations->set_payloads(c, change, &changed) : status;
}

ww_status ww_collection_set_payloads(ww_collection *collection, const char *const *ids, const char *const *payloads,
                                     int64_t count)
{
    FLOAT_GUARD();
    const payload_change change = {.ids = ids, .payloads = payloads, .count = count};
    return set_listed(collection, "ww_collection_set_payloads", &change);
}

ww_status ww_collection_merge_payloads(ww_collection *collection, const char *const *ids, const char *const *payloads,
                                       int64_t count)
{
    FLOAT_GUARD();
    const payload_change change = {.ids = ids, .payloads = payloads, .count = count, .merge = true};
    return set_listed(collection, "ww_collection_merge_payloads", &change);
}

ww_status ww_collection_select_payload(ww_collection *collection, const ww_selection *selection, const char *payload,
                                       ww_payload_change how, int64_t *changed)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_select_payload";
    const bool merge = how == WW_PAYLOAD_MERGE;
    ww_selection read = {0};
    const payload_change change = {.payloads = &payload, .selection = &read, .merge = merge};
    int64_t rows = 0;
    ww_status status = selection_read(collection, function, selection, &read);
    if (status == WW_OK && !merge && how != WW_PAYLOAD_SET)
        status =
            ww_fail(WW_INVALID_ARGUMENT, "%s: change is %d; it must be WW_PAYLOAD_SET or WW_PAYLOAD_MERGE", function, (int)how);
    if (status == WW_OK && merge && !payload)
        status = fail_null(function, "payload");
    if (status == WW_OK && payload)
        status = payload_check(collection->name, 0, payload);
    if (status == WW_OK && merge)
        status = payload_check_merge(collection->name, payload);
    if (status == WW_OK)
        status = collection->operations->set_payloads(collection, &change, &rows);
    if (status == WW_OK && changed)
        *changed = rows;
    return status;
}
