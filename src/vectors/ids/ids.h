/* Ids: finding a row by its text, and the text of a row.
 *
 * The texts are in pages of 64 rows (segments.h), which take two bytes per row besides the text. The table that finds them has
 * buckets of one cache line: 12 row numbers, each with a byte of its hash, 6.4 bytes per row when the table is full.
 */
#ifndef WW_VECTORS_IDS_H
#define WW_VECTORS_IDS_H

#include <stdint.h>

#include "base/tables/hash.h"
#include "vectors/segments.h"

typedef struct id_text {
    const char *bytes; /* not terminated */
    uint32_t length;
} id_text;

enum { BUCKET_SLOTS = 12 };

typedef struct id_bucket {
    uint32_t rows[BUCKET_SLOTS];
    uint8_t tags[BUCKET_SLOTS]; /* of the hash, never 0; 0: the slot is free */
    uint32_t passed;            /* ids of this or an earlier home bucket that are in a later one, because this one was full */
} id_bucket;

typedef struct id_table {
    id_bucket *buckets;
    uint64_t bucket_count;
    int64_t entries;
    const hash_key *key; /* the process's key */
} id_table;

/* An empty table without memory. */
void id_table_create(id_table *table);
void id_table_destroy(id_table *table);
int64_t id_table_bytes(const id_table *table);

/* The rows whose entries may be the searched one: the caller compares their ids. */
typedef struct id_probe {
    const id_table *table;
    uint64_t bucket;
    uint32_t slots; /* slots of the bucket that were not returned yet */
    uint8_t tag;
} id_probe;

id_probe id_table_probe(const id_table *table, uint64_t hash);
/* Returns the next such row, or -1. */
int64_t id_probe_next(id_probe *probe);

/* Returns true if the table can hold this many entries. */
bool id_table_holds(const id_table *table, int64_t entries);

/* Makes an empty table in `larger` with room for `entries`, and for at least a quarter more than `table` has. */
ww_status id_table_make(const id_table *table, int64_t entries, id_table *larger);

/* Makes a table in `larger` with room for `entries` and all entries of `table`, read from `store`; `table` does not change. */
ww_status id_table_grow(const id_table *table, const row_store *store, int64_t entries, id_table *larger);

uint64_t id_hash(const id_table *table, id_text id);

/* Prefetches the bucket of `hash` into the cache. */
void id_table_prefetch(const id_table *table, uint64_t hash);

/* Returns the row that has this id, or -1. */
int64_t id_table_find(const id_table *table, const row_store *store, id_text id, uint64_t hash);

/* Adds an id that is not in the table, which must have room. This and the next two functions cannot fail; those two need an
 * existing entry. */
void id_table_insert(id_table *table, uint64_t hash, int64_t row);
void id_table_remove(id_table *table, uint64_t hash, int64_t row);
void id_table_replace(id_table *table, uint64_t hash, int64_t old_row, int64_t new_row);

/* Returns the id of a row that has one. */
id_text store_id(const row_store *store, int64_t row);

/* Makes a page with the first `kept` ids of `old` (which may be NULL if kept is 0), followed by `count` more. Returns NULL if
 * there is not enough memory. */
id_page *id_page_make(const id_page *old, int32_t kept, const id_text *ids, int32_t count);

/* Returns the bytes of a page with `count` ids. */
int64_t id_page_bytes(const id_page *page, int32_t count);

#endif
