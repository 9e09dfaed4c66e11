/* Segments: how they grow, the live mask, and finding the place of a row by its number. */
#include "vectors/segments.h"

#include <string.h>

#include <warpwave/vectors.h>

#include "arithmetic/canon.h"
#include "arithmetic/row_types.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/segment_buffers.h"

enum { SEGMENT_SLOTS_FIRST = 8 };

static size_t row_bytes(const row_store *store)
{
    return (size_t)canon_padded(store->dim) * row_type_bytes(store->type);
}

size_t store_element_bytes(const row_store *store)
{
    return (size_t)store->dim * row_type_bytes(store->type);
}

segment_plan store_plan(const row_store *store)
{
    return (segment_plan){.dim = store->dim,
                          .type = store->type,
                          .screen = store->screen,
                          .live = true,
                          .stream = store->stream,
                          .rows_on_host = store->rows_on_host,
                          .member = MEMBER_ANY};
}

ww_status store_create(row_store *store, ww_device *device, device_stream *writes, row_shape shape)
{
    *store = (row_store){.device = device,
                         .stream = writes,
                         .dim = shape.dim,
                         .type = shape.type,
                         .screen = shape.screen,
                         .keep_copy = shape.keep_copy,
                         .rows_on_host = shape.rows_on_host,
                         .segment_slots = SEGMENT_SLOTS_FIRST};
    store->segments = memory_alloc(SEGMENT_SLOTS_FIRST * sizeof *store->segments);
    store->shelves = memory_alloc(SEGMENT_SLOTS_FIRST * sizeof *store->shelves);
    if (store->segments && store->shelves)
        return WW_OK;
    store_destroy(store);
    return memory_failed("the list of a collection's segments",
                         SEGMENT_SLOTS_FIRST * (sizeof *store->segments + sizeof *store->shelves));
}

static void shelf_destroy(row_shelf *shelf, int64_t rows_capacity)
{
    for (int64_t p = 0; shelf->pages && p < rows_capacity / PAGE_ROWS; p++) {
        row_page *page = &shelf->pages[p];
        for (int i = 0; page->payloads && i < PAGE_ROWS; i++)
            memory_free(page->payloads[i]);
        memory_free(page->payloads);
        memory_free(page->handles);
        memory_free(page->ids);
    }
    memory_free(shelf->copy);
    memory_free(shelf->pages);
    memory_free(shelf->live);
}

void store_shrink(row_store *store, int64_t segment_count)
{
    while (store->segment_count > segment_count) {
        const int64_t last = --store->segment_count;
        store->rows_capacity -= store->segments[last].capacity;
        shelf_destroy(&store->shelves[last], store->segments[last].capacity);
        store->device->backend->segment_destroy(store->device, &store->segments[last]);
    }
}

void store_clear(row_store *store)
{
    store_shrink(store, 0);
    store->rows_count = store->rows_live = 0;
    store->bytes_ids = store->bytes_payloads = store->bytes_handles = 0;
}

void store_destroy(row_store *store)
{
    if (store->segments && store->shelves)
        store_clear(store);
    memory_free(store->shelves);
    memory_free(store->segments);
    *store = (row_store){0};
}

/* If memory runs out, both arrays keep their old capacity; it does not matter that the first array is larger then. */
static ww_status reserve_slot(row_store *store)
{
    if (store->segment_count < store->segment_slots)
        return WW_OK;
    const int64_t slots = store->segment_slots * 2;
    segment *segments = memory_resize(store->segments, (size_t)slots * sizeof *segments);
    if (segments)
        store->segments = segments;
    row_shelf *shelves = segments ? memory_resize(store->shelves, (size_t)slots * sizeof *shelves) : NULL;
    if (!shelves)
        return memory_failed("the list of a collection's segments", (size_t)slots * (sizeof *segments + sizeof *shelves));
    store->shelves = shelves;
    store->segment_slots = slots;
    return WW_OK;
}

/* Puts a whole batch in as few segments as possible. If a collection grows row by row, a segment has 1/32 of the rows so far:
 * at most 3% is unused, and a million rows take a few hundred segments. */
static int64_t growth_rows(const row_store *store, int64_t missing)
{
    const int64_t rows_max = SEGMENT_BYTES_MAX / (int64_t)row_bytes(store) / PAGE_ROWS * PAGE_ROWS;
    const int64_t wanted = max_i64(max_i64(missing, store->rows_capacity / SEGMENT_GROWTH_PART), PAGE_ROWS);
    return min_i64(round_up_i64(wanted, PAGE_ROWS), rows_max);
}

static ww_status shelf_create(const row_store *store, row_shelf *shelf, int64_t rows_capacity)
{
    const size_t words = (size_t)rows_capacity / PAGE_ROWS;
    shelf->live = memory_alloc_zeroed(words, sizeof *shelf->live);
    shelf->pages = shelf->live ? memory_alloc_zeroed(words, sizeof *shelf->pages) : NULL;
    if (!shelf->pages)
        return memory_failed("pages for ids", words * (sizeof *shelf->live + sizeof *shelf->pages));
    const size_t copy_bytes = (size_t)rows_capacity * store_element_bytes(store);
    if (store->keep_copy && !(shelf->copy = memory_alloc_aligned(copy_bytes)))
        return memory_failed("the host's copy of rows", copy_bytes);
    return WW_OK;
}

/* Appends a segment of at most `rows` rows: a group divides them by the shares of its members. */
static ww_status segment_append(row_store *store, int64_t rows, int64_t rows_wanted)
{
    const backend *api = store->device->backend;
    ww_status status = reserve_slot(store);
    if (status != WW_OK)
        return status;
    segment_plan plan = store_plan(store);
    plan.capacity = rows;
    plan.rows_wanted = rows_wanted;
    plan.others = store->segments;
    plan.others_count = store->segment_count;
    segment made = {0};
    row_shelf beside = {0};
    status = api->segment_create(store->device, &plan, &made);
    if (status == WW_OK)
        status = shelf_create(store, &beside, made.capacity);
    if (status != WW_OK) {
        shelf_destroy(&beside, made.capacity);
        api->segment_destroy(store->device, &made);
        return status;
    }
    made.first_row = store->rows_capacity;
    store->segments[store->segment_count] = made;
    store->shelves[store->segment_count] = beside;
    store->segment_count++;
    store->rows_capacity += made.capacity;
    return WW_OK;
}

/* Fails before anything is allocated if there is clearly not enough memory: an operating system that overcommits would let
 * every segment be made. For less than a full segment the check is skipped. */
static ww_status room_check(const row_store *store, int64_t missing)
{
    const segment_plan plan = store_plan(store);
    const segment_row_bytes each = segment_bytes_of_row(store->device, &plan);
    const double on_host = (double)missing * (double)((store->keep_copy ? store_element_bytes(store) : 0) + each.host);
    const int64_t available = on_host >= SEGMENT_BYTES_MAX ? memory_available_bytes() : 0; /* 0: unknown */
    if (available > 0 && on_host > (double)available)
        return memory_failed(each.host > 0 ? "rows on the host" : "the host's copy of rows",
                             on_host < 9e18 ? (size_t)on_host : INT64_MAX);
    const double needed = (double)missing * (double)each.device;
    if (needed < SEGMENT_BYTES_MAX)
        return WW_OK;
    ww_memory_info memory = ww_memory_info_default();
    const ww_status status = store->device->backend->memory(store->device, &memory);
    const int64_t room = memory.free_bytes + memory.pooled_bytes;
    if (status != WW_OK || needed <= (double)room)
        return status;
    char asked[32], left[32], total[32];
    return ww_fail(WW_OUT_OF_MEMORY,
                   "%lld more rows: %s asked, %s free of %s on %s; add fewer, compact, or open another device",
                   (long long)missing, human_bytes(asked, needed < 9e18 ? (int64_t)needed : INT64_MAX), human_bytes(left, room),
                   human_bytes(total, memory.total_bytes), store->device->info.id);
}

/* If the collection grows row by row, the wanted number of rows is its growth. */
static ww_status append_some(row_store *store, int64_t missing)
{
    const int64_t rows = growth_rows(store, missing);
    return segment_append(store, rows, max_i64(missing, rows));
}

ww_status store_grow(row_store *store, int64_t rows)
{
    const int64_t before = store->segment_count;
    ww_status status = room_check(store, rows - store->rows_capacity);
    while (status == WW_OK && store->rows_capacity < rows)
        status = append_some(store, rows - store->rows_capacity);
    if (status != WW_OK)
        store_shrink(store, before);
    return status;
}

int64_t store_segments_used(const row_store *store)
{
    return store->rows_count > 0 ? store_segment_of(store, store->rows_count - 1) + 1 : 0;
}

int64_t store_segment_of(const row_store *store, int64_t row)
{
    int64_t low = 0;
    int64_t high = store->segment_count - 1;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (store->segments[middle].first_row <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

row_page *store_page(const row_store *store, int64_t row)
{
    const int64_t s = store_segment_of(store, row);
    return &store->shelves[s].pages[(row - store->segments[s].first_row) / PAGE_ROWS];
}

char *store_copy_of(const row_store *store, int64_t row)
{
    if (!store->keep_copy)
        return NULL;
    const int64_t s = store_segment_of(store, row);
    return store->shelves[s].copy + (size_t)(row - store->segments[s].first_row) * store_element_bytes(store);
}

void store_commit(row_store *store, int64_t rows)
{
    for (int64_t s = max_i64(0, store_segments_used(store) - 1); s < store->segment_count; s++)
        store->segments[s].count = max_i64(0, min_i64(rows - store->segments[s].first_row, store->segments[s].capacity));
    store->rows_count = rows;
}

bool store_is_live(const row_store *store, int64_t row)
{
    if (row < 0 || row >= store->rows_count)
        return false;
    const int64_t s = store_segment_of(store, row);
    const int64_t at = row - store->segments[s].first_row;
    return store->shelves[s].live[at / PAGE_ROWS] >> (at % PAGE_ROWS) & 1;
}

int64_t store_next(const row_store *store, int64_t row)
{
    const int64_t from = row < 0 ? 0 : row + 1;
    if (from >= store->rows_count)
        return -1;
    int64_t s = store_segment_of(store, from);
    int64_t word = (from - store->segments[s].first_row) / PAGE_ROWS;
    uint64_t bits = store->shelves[s].live[word] & (UINT64_MAX << (from % PAGE_ROWS));
    while (bits == 0) {
        if (++word * PAGE_ROWS >= store->segments[s].count) {
            word = 0;
            if (++s >= store->segment_count || store->segments[s].count == 0)
                return -1;
        }
        bits = store->shelves[s].live[word];
    }
    return store->segments[s].first_row + word * PAGE_ROWS + __builtin_ctzll(bits);
}

static void shelf_mark(row_shelf *shelf, int64_t first, int64_t end, bool live)
{
    for (int64_t row = first; row < end;) {
        const int64_t word = row / PAGE_ROWS;
        const int64_t bits = min_i64(end - row, PAGE_ROWS - row % PAGE_ROWS);
        const uint64_t mask = (bits == PAGE_ROWS ? UINT64_MAX : (UINT64_C(1) << bits) - 1) << (row % PAGE_ROWS);
        shelf->live[word] = live ? shelf->live[word] | mask : shelf->live[word] & ~mask;
        row += bits;
    }
    const int64_t first_word = first / PAGE_ROWS;
    const int64_t end_word = (end + PAGE_ROWS - 1) / PAGE_ROWS;
    const bool clean = shelf->dirty_first >= shelf->dirty_end;
    shelf->dirty_first = clean ? first_word : min_i64(shelf->dirty_first, first_word);
    shelf->dirty_end = clean ? end_word : max_i64(shelf->dirty_end, end_word);
}

void store_mark(row_store *store, int64_t first, int64_t count, bool live)
{
    const int64_t end = first + count;
    for (int64_t s = count > 0 ? store_segment_of(store, first) : store->segment_count; s < store->segment_count; s++) {
        const segment *part = &store->segments[s];
        if (part->first_row >= end)
            break;
        shelf_mark(&store->shelves[s], max_i64(first - part->first_row, 0), min_i64(end - part->first_row, part->capacity),
                   live);
    }
}

ww_status store_push_live(row_store *store)
{
    const backend *api = store->device->backend;
    ww_status status = WW_OK;
    for (int64_t s = 0; status == WW_OK && s < store->segment_count; s++) {
        const row_shelf *shelf = &store->shelves[s];
        const int64_t words = shelf->dirty_end - shelf->dirty_first;
        if (words > 0)
            status = api->copy_in(store->device, store->stream,
                                  (buffer_range){&store->segments[s].live, (size_t)shelf->dirty_first * sizeof(uint64_t),
                                                 (size_t)words * sizeof(uint64_t)},
                                  shelf->live + shelf->dirty_first);
    }
    if (status == WW_OK)
        status = api->stream_synchronize(store->device, store->stream);
    for (int64_t s = 0; status == WW_OK && s < store->segment_count; s++)
        store->shelves[s].dirty_first = store->shelves[s].dirty_end = 0;
    return status;
}

void store_push_all(row_store *store, int64_t s)
{
    store->shelves[s].dirty_first = 0;
    store->shelves[s].dirty_end = store->segments[s].capacity / PAGE_ROWS;
}

/* Both stores have whole pages in each segment, so a word or a page of one is a word or a page of the other. */
void store_copy_state(row_store *to, const row_store *from)
{
    for (int64_t row = 0; row < from->rows_count; row += PAGE_ROWS) {
        const int64_t s = store_segment_of(from, row), t = store_segment_of(to, row);
        row_shelf *shelf = &to->shelves[t];
        const int64_t word = (row - to->segments[t].first_row) / PAGE_ROWS;
        shelf->live[word] = from->shelves[s].live[(row - from->segments[s].first_row) / PAGE_ROWS];
        shelf->dirty_first = 0;
        shelf->dirty_end = word + 1;
    }
    store_commit(to, from->rows_count);
    to->rows_live = from->rows_live;
}

void store_move_pages(row_store *to, row_store *from)
{
    for (int64_t row = 0; row < from->rows_count; row += PAGE_ROWS) {
        row_page *page = store_page(from, row);
        *store_page(to, row) = *page;
        *page = (row_page){0};
    }
    to->bytes_ids = from->bytes_ids;
    to->bytes_payloads = from->bytes_payloads;
    to->bytes_handles = from->bytes_handles;
    from->bytes_ids = from->bytes_payloads = from->bytes_handles = 0;
}

bool store_is_stale(const row_store *store)
{
    for (int64_t s = 0; s < store->segment_count; s++)
        if (store->shelves[s].dirty_first < store->shelves[s].dirty_end)
            return true;
    return false;
}
