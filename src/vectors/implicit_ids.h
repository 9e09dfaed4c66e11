/* Implicit ids: rows that were added without ids have their row number as id, and while a collection has no others, no id is
 * stored.
 *
 * The texts and the table of ids are made by the first call that needs them: one that adds an id, removes a row, or renumbers
 * rows. Until then a million rows cost no more than their vectors.
 */
#ifndef WW_VECTORS_NUMBERED_H
#define WW_VECTORS_NUMBERED_H

#include "vectors/collection.h"

enum { ROW_DIGITS = 10 }; /* row numbers are below 2^32 */

/* `row` in decimal, at the end of `digits`, which has room for ROW_DIGITS. */
id_text row_in_digits(int64_t row, char *digits);

/* The row that has this id, or -1: whether ids are stored or not. */
int64_t collection_find(const ww_collection *collection, id_text id);

/* The id of a live row; `digits` has room for ROW_DIGITS, and the text may point into it. */
id_text collection_row_id(const ww_collection *collection, int64_t row, char *digits);

/* Stores all ids, so that they can be changed. The collection answers the same before and after, and if this fails. */
ww_status collection_store_ids(ww_collection *collection);

#endif
