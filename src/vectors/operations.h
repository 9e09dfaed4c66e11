/* What a collection can do, as one table: filled by collections in memory (collection.c) and by those in a store's file
 * (store/reading.c).
 *
 * Every public call checks its arguments once, in this room, and then goes through the table. So everything that comes here is
 * checked, but for what only the rows themselves can tell: ids that are there or not, payloads that stay. No function is
 * called in another process than the collection was made in.
 */
#ifndef WW_VECTORS_OPERATIONS_H
#define WW_VECTORS_OPERATIONS_H

#include <stdbool.h>

#include <warpwave/selection.h>
#include <warpwave/vectors.h>

typedef enum write_kind {
    WRITE_ADD,
    WRITE_UPSERT,
    WRITE_UPDATE /* of rows that are there; without payloads or texts theirs stay */
} write_kind;

/* One thing of a row, and where the caller wants it: the field that `fetch` names. */
typedef struct row_request {
    uint32_t fetch;  /* 0: the handle; WW_FETCH_VECTORS: elements; WW_FETCH_IDS or WW_FETCH_PAYLOADS: text */
    int64_t *handle; /* what is not asked for is not looked at */
    void *elements;  /* dim, in the collection's type */
    const char *function;
    char *text; /* as ww_collection_id() has it */
    size_t capacity;
    size_t *length;
} row_request;

/* New payloads: payloads[i] for ids[i], or, with a selection, payloads[0] for every row of it. */
typedef struct payload_change {
    const char *const *ids;
    const char *const *payloads;
    int64_t count;                 /* of the lists */
    const ww_selection *selection; /* NULL: there are ids */
    bool merge;                    /* their fields replace those of the old ones */
} payload_change;

typedef struct collection_operations {
    bool host_rows; /* writes take rows from memory of the host only, no tensors of a GPU */
    bool where;     /* queries may have a `where` */
    bool has_index; /* it may have an index, which is the collection's `index` (vectors/ivf) */
    bool texts;     /* rows may have texts, and queries a `match` */

    /* Writes: whole or not at all. Of a store, on disk when they return. */
    ww_status (*write)(ww_collection *c, const ww_rows *rows, write_kind kind);
    ww_status (*remove)(ww_collection *c, const char *const *ids, int64_t count, int64_t *missing); /* NULL: all or none */
    ww_status (*select_remove)(ww_collection *c, const ww_selection *selection, int64_t *removed);
    ww_status (*set_payloads)(ww_collection *c, const payload_change *change, int64_t *changed);
    ww_status (*clear)(ww_collection *c);
    ww_status (*compact)(ww_collection *c, ww_progress progress, void *user);
    ww_status (*reserve)(ww_collection *c, int64_t rows);
    ww_status (*move)(ww_collection *c, ww_device *device);
    ww_status (*check)(ww_collection *c, ww_damage_report *report, ww_progress progress, void *user);

    /* Reads. A query's host queries are finite, and its query_tensor, if there is one, is dense f32 on a GPU. */
    ww_status (*query)(ww_collection *c, const ww_query *query, ww_results **results);
    ww_status (*search)(ww_collection *c, const ww_query *query, int64_t *rows, float *scores); /* something to find */
    ww_status (*get)(ww_collection *c, const ww_get *get, ww_results **results);
    ww_status (*select)(ww_collection *c, const ww_selection *selection, uint32_t fetch, ww_results **results);
    ww_status (*select_count)(ww_collection *c, const ww_selection *selection, int64_t *count);
    ww_status (*find)(ww_collection *c, const char *id, int64_t *row);
    ww_status (*find_handle)(ww_collection *c, int64_t handle, int64_t *row);
    ww_status (*row)(ww_collection *c, int64_t row, const row_request *request); /* WW_NOT_FOUND if it is not there */
    int64_t (*next)(ww_collection *c, int64_t row);
    int64_t (*count)(ww_collection *c);
    ww_status (*describe)(ww_collection *c, ww_collection_info *info); /* all of ours: no struct_size to mind */
    ww_device *(*device)(ww_collection *c); /* what searches now; the caller closes it. NULL: it cannot be had */

    void (*destroy)(ww_collection *c); /* with the struct itself */
} collection_operations;

#endif
