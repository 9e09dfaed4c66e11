/* Where a collection's rows are: segments on the device, each with a shelf on the host for the other data of its rows.
 *
 * A segment is allocated once at its full size and never moves, so growing copies nothing and never needs memory for the old
 * and the new segment at once. Segments are filled one after the other; a row's number is its place in that order. Everything
 * here is called with the collection's lock held: reading functions with either kind, the others with the writer's.
 */
#ifndef WW_VECTORS_SEGMENTS_H
#define WW_VECTORS_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/backend.h"

enum {
    PAGE_ROWS = 64,                        /* rows per word of the live mask, and per page of ids and payloads */
    SEGMENT_BYTES_MAX = 256 * 1024 * 1024, /* of rows; even a single row is smaller: at most 256 KiB */
    SEGMENT_GROWTH_PART = 32               /* a collection that grows row by row grows by 1/32 of its size */
};

/* The ids of up to 64 rows, contiguous, without NULs. 64 ids of 256 bytes take 16384, so offsets fit in 16 bits. */
typedef struct id_page {
    uint16_t ends[PAGE_ROWS];
    char bytes[];
} id_page;

/* What the host keeps for 64 rows: their ids, if one of them has a stored id, 64 pointers to payloads, and their handles
   (handles.h). */
typedef struct row_page {
    id_page *ids;
    char **payloads;
    int64_t *handles;     /* 64 handles; NULL: they are first_handle and the following ones */
    int64_t first_handle; /* the smallest handle that a row in order can have here; handles of earlier pages are smaller */
} row_page;

/* The host's side of a segment. Its live words are authoritative; the device's copy is out of date in [dirty_first, dirty_end).
 */
typedef struct row_shelf {
    uint64_t *live;
    row_page *pages;
    char *copy;          /* the segment's rows in host memory, dim elements each, if the store keeps a copy; otherwise NULL */
    int64_t dirty_first; /* in words; if dirty_first >= dirty_end, the device is up to date */
    int64_t dirty_end;
} row_shelf;

typedef struct row_store {
    ww_device *device;     /* borrowed from the collection */
    device_stream *stream; /* borrowed from the collection; for writers only */
    int32_t dim;
    int32_t type;      /* of the rows (arithmetic/row_types.h) */
    bool keep_copy;    /* the host also has all rows */
    bool screen;       /* segments have codes */
    bool rows_on_host; /* rows are in pinned host memory */
    segment *segments;
    row_shelf *shelves; /* one per segment */
    int64_t segment_count;
    int64_t segment_slots; /* entries that both arrays have room for */
    int64_t rows_count;    /* live and removed */
    int64_t rows_live;
    int64_t rows_capacity;
    int64_t bytes_ids; /* of pages */
    int64_t bytes_payloads;
    int64_t bytes_handles; /* of pages */
} row_store;

/* What is stored for a row besides its vector, norm and live bit. */
typedef struct row_shape {
    int32_t dim;
    int32_t type;
    bool screen;       /* its codes, on the device */
    bool keep_copy;    /* a second copy of the vector, on the host */
    bool rows_on_host; /* the vector on the host instead of the device */
} row_shape;

/* Makes an empty store in `store`. Device and stream still belong to the caller. */
ww_status store_create(row_store *store, ww_device *device, device_stream *writes, row_shape shape);

/* Frees all segments with their ids and payloads. The store is empty then and can be used again. */
void store_clear(row_store *store);

/* Does that and frees the store itself. Accepts a store that is all zero. */
void store_destroy(row_store *store);

/* Adds segments until there is room for `rows` rows. If it fails, the store does not change. */
ww_status store_grow(row_store *store, int64_t rows);

/* Frees the segments from number `segment_count` on, to undo store_grow(). */
void store_shrink(row_store *store, int64_t segment_count);

/* Returns how many segments contain rows. */
int64_t store_segments_used(const row_store *store);

/* Returns the number of the segment that has, or will have, `row`, which must be below rows_capacity. */
int64_t store_segment_of(const row_store *store, int64_t row);

/* Returns the page of `row`, which must be below rows_capacity. */
row_page *store_page(const row_store *store, int64_t row);

/* Returns the plan of a segment of the store; capacity and the fields that choose a member are 0. */
segment_plan store_plan(const row_store *store);

/* Returns the bytes of a row's dim elements in callers' memory and in the host's copy. */
size_t store_element_bytes(const row_store *store);

/* Returns the host's copy of `row`, which must be below rows_capacity; later rows of its segment follow it. NULL if there is no
 * copy. */
char *store_copy_of(const row_store *store, int64_t row);

/* Sets the number of rows to `rows`; the new ones have been written. */
void store_commit(row_store *store, int64_t rows);

/* Returns true if `row` (any number) exists and is not removed. */
bool store_is_live(const row_store *store, int64_t row);

/* Returns the first live row after `row`, or -1; `row` may be -1. */
int64_t store_next(const row_store *store, int64_t row);

/* Marks rows as live or removed, only in the host's words; store_push_live() updates the device. */
void store_mark(row_store *store, int64_t first, int64_t count, bool live);

/* Copies the live words that were marked since the last push to the device. After a failure, the next writer or searcher pushes
 * them: so a failed write is undone by marking the rows back, which cannot fail. Blocking. */
ww_status store_push_live(row_store *store);

/* Makes the next push copy all live words of segment `s`, because its buffers are new. */
void store_push_all(row_store *store, int64_t s);

/* Copies the number of rows of `from`, and which are live, to `to`, which has room. Does not push. */
void store_copy_state(row_store *to, const row_store *from);

/* Moves the pages of all rows, with ids, payloads and handles, from `from` to `to`, which has room. `from` has none
 * afterwards. */
void store_move_pages(row_store *to, row_store *from);

/* Returns true if the device is out of date. Outside of writes, that is only so after a failed push. */
bool store_is_stale(const row_store *store);

#endif
