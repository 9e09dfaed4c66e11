/* Ids: finding a row by its text, and the text of a row.
 *
 * The texts lie in pages of 64 rows (segments.h): two bytes a row beside the text. The table that finds them has buckets of
 * one cache line: 12 row numbers with a byte of each one's hash, 6.4 bytes a row when it is full.
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
    uint32_t passed;            /* ids that belong here or before and are in a later bucket because this one was full */
} id_bucket;

typedef struct id_table {
    id_bucket *buckets;
    uint64_t bucket_count;
    int64_t entries;
    const hash_key *key; /* the process's */
} id_table;

/* An empty table without memory. */
void id_table_create(id_table *table);
void id_table_destroy(id_table *table);
int64_t id_table_bytes(const id_table *table);

/* The rows whose entry may be the one that is looked for: the caller compares. */
typedef struct id_probe {
    const id_table *table;
    uint64_t bucket;
    uint32_t slots; /* of the bucket, not yet given */
    uint8_t tag;
} id_probe;

id_probe id_table_probe(const id_table *table, uint64_t hash);
/* The next such row, or -1. */
int64_t id_probe_next(id_probe *probe);

/* Can the table take this many entries in all? */
bool id_table_holds(const id_table *table, int64_t entries);

/* Makes an empty table in `larger` with room for `entries`, and for at least a quarter more than `table` has. */
ww_status id_table_make(const id_table *table, int64_t entries, id_table *larger);

/* Makes a table with room for `entries` in `larger`, with everything that `table` has, read from `store`; `table` stays. */
ww_status id_table_grow(const id_table *table, const row_store *store, int64_t entries, id_table *larger);

uint64_t id_hash(const id_table *table, id_text id);

/* Prefetches the bucket of `hash` into the cache. */
void id_table_prefetch(const id_table *table, uint64_t hash);

/* The row that has this id, or -1. */
int64_t id_table_find(const id_table *table, const row_store *store, id_text id, uint64_t hash);

/* Adds an id that is not there; there must be room. Cannot fail, nor can the next two, whose entry must be there. */
void id_table_insert(id_table *table, uint64_t hash, int64_t row);
void id_table_remove(id_table *table, uint64_t hash, int64_t row);
void id_table_replace(id_table *table, uint64_t hash, int64_t old_row, int64_t new_row);

/* The id of a row that has one. */
id_text store_id(const row_store *store, int64_t row);

/* A page with the first `kept` ids of `old` (which may be NULL if kept is 0) and `count` more behind them; NULL if there is
 * no memory. */
id_page *id_page_make(const id_page *old, int32_t kept, const id_text *ids, int32_t count);

/* The bytes that a page with `count` ids takes. */
int64_t id_page_bytes(const id_page *page, int32_t count);

#endif
