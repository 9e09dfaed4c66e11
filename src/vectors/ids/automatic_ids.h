/* Automatic ids: a row that was added without an id has its handle in decimal as id, and while a collection has no other ids,
 * none is stored.
 *
 * The texts and the table of ids are made by the first call that adds an id of the caller's. Until then a million rows cost no
 * more than their vectors, also when some of them are removed or renumbered.
 */
#ifndef WW_VECTORS_AUTOMATIC_IDS_H
#define WW_VECTORS_AUTOMATIC_IDS_H

#include "vectors/collection.h"

enum { HANDLE_DIGITS = 19 }; /* handles are below 2^63 */

/* `handle` in decimal, at the end of `digits`, which has room for HANDLE_DIGITS. */
id_text handle_in_digits(int64_t handle, char *digits);

/* The handle that `id` is the decimal text of, or -1: no sign, no leading zero, nothing after it. */
int64_t handle_from_digits(id_text id);

/* The row that has this id, or -1: whether ids are stored or not. */
int64_t collection_find(const ww_collection *collection, id_text id);

/* The id of a row that was written; `digits` has room for HANDLE_DIGITS, and the text may point into it. */
id_text collection_row_id(const ww_collection *collection, int64_t row, char *digits);

/* Stores all ids, so that others can be added. The collection answers the same before and after, and if this fails. */
ww_status collection_store_ids(ww_collection *collection);

#endif
