/* Rows that were added without ids: their id is their number, and as long as a collection has no others, nothing is stored.
 *
 * Texts and the table of ids are made when the first call needs them: one that brings an id, takes a row out, or numbers rows
 * anew. Until then adding a million rows costs no more than their vectors.
 */
#ifndef WW_VECTORS_NUMBERED_H
#define WW_VECTORS_NUMBERED_H

#include "vectors/collection.h"

enum { ROW_DIGITS = 10 }; /* row numbers are below 2^32 */

/* `row` in decimal, at the end of `digits`, which has room for ROW_DIGITS. */
id_text row_in_digits(int64_t row, char *digits);

/* The row that has this id, or -1: whether ids are stored or not. */
int64_t collection_find(const ww_collection *collection, id_text id);

/* The id of a row that is there; `digits` has room for ROW_DIGITS, and the text may lie in it. */
id_text collection_row_id(const ww_collection *collection, int64_t row, char *digits);

/* Has all ids stored, so that they can be changed. What the collection answers stays the same, also if it fails. */
ww_status collection_store_ids(ww_collection *collection);

#endif
