/* Selections: rows that meet conditions, to get, count or remove them or to change their payloads.
 *
 * A selection has the conditions of a query without its vectors: a filter, an SQL expression, and where
 * to begin and end. The SQL expression works only in stores, the rest also in memory. Rows come in order of their handles, the
 * order in which their ids were first added, so a page begins where the last one ended even if rows were written in between.
 */
#ifndef WARPWAVE_SELECTION_H
#define WARPWAVE_SELECTION_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/results.h>
#include <warpwave/status.h>
#include <warpwave/vectors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which rows: those that meet everything given here. Everything stays the caller's and is read only during the call.
 */
typedef struct ww_selection {
    size_t struct_size;
    const ww_filter *filter; /* as in ww_query; NULL: all rows */
    const char *where;       /* as in ww_query; NULL: all rows */
    const ww_parameter *parameters;
    int64_t parameter_count;
    int64_t first_handle;    /* only rows with this handle or a larger one: that of the last row of a page, plus 1; 0: all */
    int64_t limit;           /* at most this many, in order of handles; 0: all */
    const ww_cancel *cancel; /* as in ww_query; stops the search for the rows, not a change that has begun */
} ww_selection;

/* How a payload is changed. */
typedef enum ww_payload_change {
    WW_PAYLOAD_SET = 0,  /* it is replaced */
    WW_PAYLOAD_MERGE = 1 /* fields of the new object replace those of the old one, and the others stay */
} ww_payload_change;

/* All rows; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_selection_init(void *value, size_t struct_size);
static inline ww_selection ww_selection_default(void)
{
    ww_selection value;
    ww_selection_init(&value, sizeof value);
    return value;
}

/* Gets the rows of a selection as results of one query, with score 0 and what `fetch` (WW_FETCH_...) names. Refuses invalid
 * conditions, and a `where` for a collection in memory. May wait for a writer. */
WW_API ww_status ww_collection_select(ww_collection *collection, const ww_selection *selection, uint32_t fetch,
                                      ww_results **results);

/* Returns in `count` how many rows a selection has. Otherwise as ww_collection_select(). */
WW_API ww_status ww_collection_select_count(ww_collection *collection, const ww_selection *selection, int64_t *count);

/* A cursor reads a snapshot of rows in pages, while others write: rows that are added, changed or removed after it was
 * created come as they were, once each. In a store it keeps a read transaction, so the file does not shrink and cannot be
 * compacted until it is destroyed. In memory, the first write after its creation waits until the rows that the cursor has not
 * returned yet are copied. */
typedef struct ww_cursor ww_cursor;

/* Creates a cursor over the rows of a selection in order of handles, or, if it is NULL, over all rows in their order. `fetch`
 * is as for ww_collection_select(). In the thread of a ww_store_begin(), it has the transaction's own writes if there is no
 * selection. Destroy the cursor before its collection. Refuses what ww_collection_select() refuses. May wait for a writer. */
WW_API ww_status ww_cursor_create(ww_collection *collection, const ww_selection *selection, uint32_t fetch, ww_cursor **cursor);

/* Returns the next rows as results of one query: at most `count` (1 to WW_ROWS_MAX), none at the end. After a failure the same
 * rows can be asked for again. If their copy failed before a write, every call fails as it did. May wait for a writer. */
WW_API ww_status ww_cursor_next(ww_cursor *cursor, int64_t count, ww_results **results);

/* Frees the cursor, and ends its read transaction. Accepts NULL. */
WW_API void ww_cursor_destroy(ww_cursor *cursor);

/* Removes the rows of a selection, all or none, and returns their number in `removed` (may be NULL). Refuses a selection
 * with neither a filter nor a where: ww_collection_clear() removes all rows. Waits for readers. */
WW_API ww_status ww_collection_select_remove(ww_collection *collection, const ww_selection *selection, int64_t *removed);

/* Gives every row of a selection the payload (JSON text, NULL for none), or merges its fields into theirs; all or nothing.
 * `changed` (may be NULL) gets the number of rows. A merge needs an object of at most 1,000 fields, and is refused if a row's
 * payload is not an object; a row without a payload gets the new one. Waits for readers. */
WW_API ww_status ww_collection_select_payload(ww_collection *collection, const ww_selection *selection, const char *payload,
                                              ww_payload_change change, int64_t *changed);

/* Merges the fields of payloads[i] into the payload of ids[i], one after the other; all or nothing. An id that does not exist
 * is WW_NOT_FOUND. Each payload is as for a merge above, and not NULL. Waits for readers. */
WW_API ww_status ww_collection_merge_payloads(ww_collection *collection, const char *const *ids, const char *const *payloads,
                                              int64_t count);

#ifdef __cplusplus
}
#endif

#endif
