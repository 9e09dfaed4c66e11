/* Handles: 64-bit numbers that name rows permanently.
 *
 * A row gets the next number when its id is new. It keeps the number when an upsert replaces its vector, when compact renumbers
 * rows and when the collection moves. No number is used twice. So handles ascend with the rows, except for replaced rows, and
 * little has to be stored: a page has its first handle, and a list of all 64 only if they are not consecutive. A handle is
 * found by binary search over the pages. Rows whose handle is smaller than their page's first handle, because they replaced an
 * older row, are out of order and found by a table.
 */
#ifndef WW_VECTORS_HANDLES_H
#define WW_VECTORS_HANDLES_H

#include "vectors/ids/ids.h"

/* Returns the handle of a row that was written, live or not. */
int64_t store_handle(const row_store *store, int64_t row);

/* Returns true if the row is out of order, so that only the table finds it. */
bool handle_is_out_of_order(const row_store *store, int64_t row);

/* Sets the handle, and returns true if the row is out of order. */
bool handle_order(const row_store *store, int64_t row, int64_t *handle);

/* Returns the live row with this handle, or -1. `moved` is the table of rows that are out of order. */
int64_t handle_find(const id_table *moved, const row_store *store, int64_t handle);

/* Returns the first row of the last page that starts with `handle` or less. A row that is in order and has this handle is in
 * that page; rows in order with larger handles are in that page or later ones. */
int64_t handle_page(const row_store *store, int64_t handle);

/* Copies the handles of `count` rows, in ascending order, for one page of another store. */
void store_handles(const row_store *store, const int64_t *rows, int64_t count, int64_t *handles);

/* The handles of `count` rows starting at slot `slot` of a page. `first` is larger than all handles of earlier pages that are
 * in order; smaller handles in this page are out of order. */
typedef struct page_handles {
    const int64_t *handles;
    int64_t slot;
    int64_t count;
    int64_t first;
} page_handles;

/* Stores them in the page, and adds the bytes that this took to `bytes`. */
ww_status handle_page_set(row_page *page, page_handles set, int64_t *bytes);

/* The same for rows with consecutive handles, starting at `first`. Returns false if that needs a list. */
bool handle_page_follow(row_page *page, int64_t slot, int64_t first);

uint64_t handle_hash(const id_table *moved, int64_t handle);

/* Makes a table in `larger` with room for `entries` and all entries of `moved`; `moved` does not change. */
ww_status handle_table_grow(const id_table *moved, const row_store *store, int64_t entries, id_table *larger);

#endif
