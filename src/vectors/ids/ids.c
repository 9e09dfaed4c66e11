/* The table of ids, and the pages that hold their texts.
 *
 * Open addressing with buckets of one cache line. An id goes to the first bucket with a free slot, starting at its home bucket,
 * and each full bucket that it passes counts it. A search continues past a bucket only if that count is not 0, and removing an
 * id decrements the counts again. So there are no tombstones, nothing is shifted, and neither inserting nor undoing it can
 * fail.
 */
#include "vectors/ids/ids.h"

#include <stddef.h>
#include <string.h>

#include "base/memory.h"

_Static_assert(sizeof(id_bucket) == CACHE_LINE_BYTES, "a bucket is a cache line");

/* 10 of 12 slots are used on average when the table is full: then about one id in sixteen is outside its home bucket. */
enum { BUCKET_ENTRIES = 10 };

uint64_t id_hash(const id_table *table, id_text id)
{
    return hash_bytes(table->key, id.bytes, id.length);
}

void id_table_create(id_table *table)
{
    *table = (id_table){.key = hash_process_key()};
}

void id_table_destroy(id_table *table)
{
    memory_free(table->buckets);
    *table = (id_table){.key = table->key};
}

int64_t id_table_bytes(const id_table *table)
{
    return (int64_t)(table->bucket_count * sizeof *table->buckets);
}

bool id_table_holds(const id_table *table, int64_t entries)
{
    return (uint64_t)entries <= table->bucket_count * BUCKET_ENTRIES;
}

/* The number of buckets is arbitrary: the hash is used as a fraction of one. */
static uint64_t home_of(const id_table *table, uint64_t hash)
{
    return (uint64_t)((unsigned __int128)hash * table->bucket_count >> 64);
}

static uint64_t bucket_after(const id_table *table, uint64_t bucket)
{
    return bucket + 1 < table->bucket_count ? bucket + 1 : 0;
}

static uint8_t tag_of(uint64_t hash)
{
    return (uint8_t)(1 + (hash & 0xffff) * 255 / 65536);
}

/* Returns a bit for each slot whose tag is `tag`. The sum cannot carry from one byte to the next, so no other slot is
 * marked. */
static uint32_t slots_with(const id_bucket *bucket, uint8_t tag)
{
    const uint64_t ones = 0x0101010101010101u;
    const uint64_t low_bits = 0x7f * ones;
    uint64_t parts[2] = {0};
    memcpy(parts, bucket->tags, BUCKET_SLOTS);
    uint32_t slots = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t differs = parts[i] ^ tag * ones;
        const uint64_t equal = ~(((differs & low_bits) + low_bits) | differs | low_bits);
        slots |= (uint32_t)((equal >> 7) * 0x0102040810204080u >> 56) << 8 * i;
    }
    return slots & ((1u << BUCKET_SLOTS) - 1);
}

void id_table_prefetch(const id_table *table, uint64_t hash)
{
    __builtin_prefetch(&table->buckets[home_of(table, hash)], 1);
}

/* Inline in this file, where a batch looks up a million ids. */
static inline id_probe probe_begin(const id_table *table, uint64_t hash)
{
    const uint64_t home = table->entries > 0 ? home_of(table, hash) : 0;
    return (id_probe){.table = table,
                      .bucket = home,
                      .tag = tag_of(hash),
                      .slots = table->entries > 0 ? slots_with(&table->buckets[home], tag_of(hash)) : 0};
}

static inline int64_t probe_next(id_probe *probe)
{
    const id_table *table = probe->table;
    while (probe->slots == 0) {
        if (table->entries == 0 || table->buckets[probe->bucket].passed == 0)
            return -1;
        probe->bucket = bucket_after(table, probe->bucket);
        probe->slots = slots_with(&table->buckets[probe->bucket], probe->tag);
    }
    const int slot = __builtin_ctz(probe->slots);
    probe->slots &= probe->slots - 1;
    return table->buckets[probe->bucket].rows[slot];
}

id_probe id_table_probe(const id_table *table, uint64_t hash)
{
    return probe_begin(table, hash);
}

int64_t id_probe_next(id_probe *probe)
{
    return probe_next(probe);
}

int64_t id_table_find(const id_table *table, const row_store *store, id_text id, uint64_t hash)
{
    int64_t row;
    for (id_probe probe = probe_begin(table, hash); (row = probe_next(&probe)) >= 0;) {
        const id_text stored = store_id(store, row);
        if (stored.length == id.length && memcmp(stored.bytes, id.bytes, id.length) == 0)
            return row;
    }
    return -1;
}

void id_table_insert(id_table *table, uint64_t hash, int64_t row)
{
    for (uint64_t at = home_of(table, hash);; at = bucket_after(table, at)) {
        id_bucket *bucket = &table->buckets[at];
        const uint32_t free_slots = slots_with(bucket, 0);
        if (free_slots) {
            const int slot = __builtin_ctz(free_slots);
            bucket->rows[slot] = (uint32_t)row;
            bucket->tags[slot] = tag_of(hash);
            table->entries++;
            return;
        }
        bucket->passed++;
    }
}

/* Returns the bucket and slot of an existing entry. */
static id_bucket *entry_of(const id_table *table, uint64_t hash, int64_t row, int *slot)
{
    for (uint64_t at = home_of(table, hash);; at = bucket_after(table, at)) {
        id_bucket *bucket = &table->buckets[at];
        for (uint32_t slots = slots_with(bucket, tag_of(hash)); slots; slots &= slots - 1) {
            *slot = __builtin_ctz(slots);
            if (bucket->rows[*slot] == (uint32_t)row)
                return bucket;
        }
    }
}

void id_table_remove(id_table *table, uint64_t hash, int64_t row)
{
    int slot;
    id_bucket *bucket = entry_of(table, hash, row, &slot);
    bucket->tags[slot] = 0;
    for (uint64_t at = home_of(table, hash); &table->buckets[at] != bucket; at = bucket_after(table, at))
        table->buckets[at].passed--;
    table->entries--;
}

void id_table_replace(id_table *table, uint64_t hash, int64_t old_row, int64_t new_row)
{
    int slot;
    id_bucket *bucket = entry_of(table, hash, old_row, &slot);
    bucket->rows[slot] = (uint32_t)new_row;
}

/* Hashes a page of rows before it inserts any, so the buckets are fetched from memory together. */
static void insert_live(id_table *table, const row_store *store)
{
    uint64_t hashes[PAGE_ROWS];
    int64_t rows[PAGE_ROWS];
    int64_t row = store_next(store, -1);
    while (row >= 0) {
        int count = 0;
        for (; row >= 0 && count < PAGE_ROWS; row = store_next(store, row), count++) {
            rows[count] = row;
            hashes[count] = id_hash(table, store_id(store, row));
            id_table_prefetch(table, hashes[count]);
        }
        for (int i = 0; i < count; i++)
            id_table_insert(table, hashes[i], rows[i]);
    }
}

ww_status id_table_make(const id_table *table, int64_t entries, id_table *larger)
{
    const uint64_t needed = ((uint64_t)entries + BUCKET_ENTRIES - 1) / BUCKET_ENTRIES;
    const uint64_t stepped = table->bucket_count + table->bucket_count / 4; /* so that small adds do not rebuild it each time */
    *larger = (id_table){.key = table->key, .bucket_count = needed > stepped ? needed : stepped};
    const size_t bytes = (size_t)id_table_bytes(larger);
    larger->buckets = memory_alloc_aligned(bytes);
    if (!larger->buckets) {
        *larger = (id_table){0};
        return memory_failed("a table of ids", bytes);
    }
    memset(larger->buckets, 0, bytes);
    return WW_OK;
}

ww_status id_table_grow(const id_table *table, const row_store *store, int64_t entries, id_table *larger)
{
    const ww_status status = id_table_make(table, entries, larger);
    if (status == WW_OK && table->entries > 0)
        insert_live(larger, store);
    return status;
}

id_text store_id(const row_store *store, int64_t row)
{
    const id_page *page = store_page(store, row)->ids;
    const int64_t at = row % PAGE_ROWS;
    const uint32_t begin = at > 0 ? page->ends[at - 1] : 0;
    return (id_text){page->bytes + begin, page->ends[at] - begin};
}

id_page *id_page_make(const id_page *old, int32_t kept, const id_text *ids, int32_t count)
{
    uint32_t bytes = kept > 0 ? old->ends[kept - 1] : 0;
    const uint32_t kept_bytes = bytes;
    for (int32_t i = 0; i < count; i++)
        bytes += ids[i].length;
    id_page *page = memory_alloc(sizeof *page + bytes);
    if (!page)
        return NULL;
    if (kept > 0) {
        memcpy(page->ends, old->ends, (size_t)kept * sizeof *page->ends);
        memcpy(page->bytes, old->bytes, kept_bytes);
    }
    uint32_t end = kept_bytes;
    for (int32_t i = 0; i < count; i++) {
        memcpy(page->bytes + end, ids[i].bytes, ids[i].length);
        end += ids[i].length;
        page->ends[kept + i] = (uint16_t)end;
    }
    return page;
}

int64_t id_page_bytes(const id_page *page, int32_t count)
{
    return (int64_t)sizeof *page + (count > 0 ? page->ends[count - 1] : 0);
}
