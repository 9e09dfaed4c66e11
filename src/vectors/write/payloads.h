/* Payloads: a JSON text for each row, stored unchanged.
 *
 * A page of 64 rows has pointers to payloads only if one of its rows has a payload, so rows without payloads take no memory for
 * them.
 */
#ifndef WW_VECTORS_PAYLOADS_H
#define WW_VECTORS_PAYLOADS_H

#include <stdint.h>

#include "vectors/segments.h"

/* Returns WW_OK if `text` is one JSON value (an object, but also a number or a string) within the limits of base/json/json.h,
 * otherwise WW_INVALID_ARGUMENT naming payload `number` of the batch of collection `name` and the place. */
ww_status payload_check(const char *name, int64_t number, const char *text);

/* Returns WW_OK if `text`, which payload_check() has accepted, is an object of at most PAYLOAD_MERGE_FIELDS_MAX fields. Merging
 * searches the other payload for each of them. */
enum { PAYLOAD_MERGE_FIELDS_MAX = 1000 };
ww_status payload_check_merge(const char *name, const char *text);

/* Merges `fields`, which payload_check_merge() has accepted, into the object `old`, NULL for none: its fields replace fields of
 * the same name, and the others are appended. The result is in `merged` (memory_free()). Refuses an `old` that is not an
 * object. */
ww_status payload_merge(const char *name, const char *old, const char *fields, char **merged);

/* Stores a copy of `text` for `row`, which has no payload yet, and adds its size to `bytes`. */
ww_status payload_put(row_store *store, int64_t row, const char *text, int64_t *bytes);

/* Allocates the pointers of a page if it has none, and adds their size to `bytes`. */
ww_status payload_page_make(row_page *page, int64_t *bytes);

/* Returns the payload of a row below rows_capacity, or NULL. */
const char *payload_get(const row_store *store, int64_t row);

/* Frees the payloads of `count` rows of a page, from slot `slot` on. */
void payload_drop(row_page *page, int64_t slot, int64_t count);

#endif
