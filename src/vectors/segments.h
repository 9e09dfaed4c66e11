/* Where a collection's rows are: segments on the device, each with a shelf on the host for what belongs to its rows.
 *
 * A segment is allocated once at its full size and never moves, so growth copies nothing and never needs old and new at once.
 * Segments are filled one after the other; a row's number is its place in that order. Everything here is called with the
 * collection's lock held: reading functions with either kind, the others with the writer's.
 */
#ifndef WW_VECTORS_SEGMENTS_H
#define WW_VECTORS_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/backend.h"

enum {
    PAGE_ROWS = 64,                        /* rows to a word of the live mask, and to a page of ids and payloads */
    SEGMENT_BYTES_MAX = 256 * 1024 * 1024, /* of rows; one row more than that never happens: a row has 256 KiB at most */
    SEGMENT_GROWTH_PART = 32               /* a collection that grows row by row grows by this part of itself */
};

/* The ids of up to 64 rows, one behind the other without NULs. 64 ids of 256 bytes end at 16384, which fits 16 bits. */
typedef struct id_page {
    uint16_t ends[PAGE_ROWS];
    char bytes[];
} id_page;

/* What the host keeps for 64 rows: their ids, if any of them has one, 64 pointers to payloads, and their handles (handles.h).
 */
typedef struct row_page {
    id_page *ids;
    char **payloads;
    int64_t *handles;     /* 64, or NULL: the first handle and those that follow it */
    int64_t first_handle; /* the smallest handle that a row in order may have here; earlier pages have smaller ones */
} row_page;

/* The host's side of a segment. Its live words are authoritative; the device's copy is out of date in [dirty_first, dirty_end).
 */
typedef struct row_shelf {
    uint64_t *live;
    row_page *pages;
    char *copy;          /* the segment's rows again, dim elements each, if the store keeps a copy; else NULL */
    int64_t dirty_first; /* in words; dirty_first >= dirty_end: nothing to push */
    int64_t dirty_end;
} row_shelf;

typedef struct row_store {
    ww_device *device;     /* borrowed from the collection */
    device_stream *stream; /* borrowed from the collection; for writers only */
    int32_t dim;
    int32_t type;      /* of the rows (arithmetic/row_types.h) */
    bool keep_copy;    /* the host has all rows, too */
    bool screen;       /* do segments have codes? */
    bool rows_on_host; /* are their rows in pinned memory of the host? */
    segment *segments;
    row_shelf *shelves; /* as many */
    int64_t segment_count;
    int64_t segment_slots; /* entries that the two arrays have room for */
    int64_t rows_count;    /* live and removed */
    int64_t rows_live;
    int64_t rows_capacity;
    int64_t bytes_ids; /* in pages */
    int64_t bytes_payloads;
    int64_t bytes_handles; /* in pages */
} row_store;

/* What is kept of a row beside its vector, norm and live bit. */
typedef struct row_shape {
    int32_t dim;
    int32_t type;
    bool screen;       /* codes, on the device */
    bool keep_copy;    /* the vector again, on the host */
    bool rows_on_host; /* the vector on the host instead of the device */
} row_shape;

/* Makes an empty store in `store`, which takes nothing over: device and stream stay the caller's. */
ww_status store_create(row_store *store, ww_device *device, device_stream *writes, row_shape shape);

/* Frees all segments with their ids and payloads; the store is empty then and can be used again. */
void store_clear(row_store *store);

/* The same and the store itself. Accepts one that is all zero. */
void store_destroy(row_store *store);

/* Adds segments until there is room for `rows` rows in all. On failure the store is as before. */
ww_status store_grow(row_store *store, int64_t rows);

/* Frees the segments from number `segment_count` on: the way back from store_grow. */
void store_shrink(row_store *store, int64_t segment_count);

/* How many segments have rows in them. */
int64_t store_segments_used(const row_store *store);

/* The number of the segment that has, or will have, `row`, which is below rows_capacity. */
int64_t store_segment_of(const row_store *store, int64_t row);

/* The page of `row`, which is below rows_capacity. */
row_page *store_page(const row_store *store, int64_t row);

/* The description of a segment of the store; capacity and the fields that choose a member are 0. */
segment_plan store_plan(const row_store *store);

/* Bytes of a row's dim elements, as callers and the host's copy have them. */
size_t store_element_bytes(const row_store *store);

/* The host's copy of `row`, which is below rows_capacity; later rows of its segment follow. NULL if no copy is kept. */
char *store_copy_of(const row_store *store, int64_t row);

/* Raises the number of rows to `rows`; they have been written. */
void store_commit(row_store *store, int64_t rows);

/* Is `row` (any number) there and not removed? */
bool store_is_live(const row_store *store, int64_t row);

/* The first live row after `row`, or -1; `row` may be -1. */
int64_t store_next(const row_store *store, int64_t row);

/* Marks rows as live or not, in the host's words only; store_push_live() brings the device up to date. */
void store_mark(row_store *store, int64_t first, int64_t count, bool live);

/* Copies the live words that were marked since the last push to the device. After a failure they wait for the next push, by the
 * next writer or searcher: so a failed write is undone by marking back, which cannot fail. Blocking. */
ww_status store_push_live(row_store *store);

/* Has all live words of segment `s` pushed the next time: its buffers are new. */
void store_push_all(row_store *store, int64_t s);

/* Copies the state of the rows of `from`, which are live and how many there are, to `to`, which has room. Pushes nothing. */
void store_copy_state(row_store *to, const row_store *from);

/* Moves the pages of all rows, ids, payloads and handles, from `from` to `to`, which has room; `from` has none then. */
void store_move_pages(row_store *to, row_store *from);

/* Is the device behind? Only after a failed push, outside of a write. */
bool store_is_stale(const row_store *store);

#endif
