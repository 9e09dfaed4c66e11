/* Automatic ids: the id of a row that was added without one is its handle in decimal. While a collection has no other ids, none
 * is stored.
 *
 * The first call that adds a caller's id makes the texts and the table of ids. Until then a million rows cost no more than
 * their vectors, even if some are removed or renumbered.
 */
#ifndef WW_VECTORS_AUTOMATIC_IDS_H
#define WW_VECTORS_AUTOMATIC_IDS_H

#include "vectors/collection.h"

enum { HANDLE_DIGITS = 19 }; /* handles are below 2^63 */

/* Writes `handle` in decimal at the end of `digits`, which has room for HANDLE_DIGITS. */
id_text handle_in_digits(int64_t handle, char *digits);

/* Returns the handle whose decimal text is `id`, or -1: no sign, no leading zero, nothing after it. */
int64_t handle_from_digits(id_text id);

/* Returns the row with this id, or -1, whether ids are stored or not. */
int64_t collection_find(const ww_collection *collection, id_text id);

/* Returns the id of a row that was written. `digits` has room for HANDLE_DIGITS, and the id may point to it. */
id_text collection_row_id(const ww_collection *collection, int64_t row, char *digits);

/* Stores all ids, so that others can be added. The collection gives the same answers afterwards, also after a failure. */
ww_status collection_store_ids(ww_collection *collection);

#endif
