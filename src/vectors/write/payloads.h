/* Payloads: a JSON text beside a row, kept as it came.
 *
 * A page of 64 rows has pointers to payloads only if one of them has a payload, so rows without any cost nothing.
 */
#ifndef WW_VECTORS_PAYLOADS_H
#define WW_VECTORS_PAYLOADS_H

#include <stdint.h>

#include "vectors/segments.h"

/* WW_OK if `text` is one JSON value (an object, but also a number or a string) within the limits of base/json/json.h, otherwise
 * WW_INVALID_ARGUMENT naming payload `number` of the batch of collection `name` and the place. */
ww_status payload_check(const char *name, int64_t number, const char *text);

/* WW_OK if `text`, which payload_check() has accepted, is an object of at most PAYLOAD_MERGE_FIELDS_MAX fields. Merging looks
 * for each of them among those of the other payload. */
enum { PAYLOAD_MERGE_FIELDS_MAX = 1000 };
ww_status payload_check_merge(const char *name, const char *text);

/* Makes in `merged` (memory_free()) the object `old`, NULL for none, with the fields of `fields`, which payload_check_merge()
 * has accepted: they replace fields of the same name, and the others are appended. Refuses an `old` that is not an object. */
ww_status payload_merge(const char *name, const char *old, const char *fields, char **merged);

/* Keeps a copy of `text` for `row`, which has none yet, and adds what it took to `bytes`. */
ww_status payload_put(row_store *store, int64_t row, const char *text, int64_t *bytes);

/* Gives the pointers of a page their memory if it has none, and adds it to `bytes`. */
ww_status payload_page_make(row_page *page, int64_t *bytes);

/* The payload of a row below rows_capacity, or NULL. */
const char *payload_get(const row_store *store, int64_t row);

/* Forgets the payloads of `count` rows from slot `slot` of a page on. */
void payload_drop(row_page *page, int64_t slot, int64_t count);

#endif
